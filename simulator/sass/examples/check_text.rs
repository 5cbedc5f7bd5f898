//! Compares decoded text with nvdisasm's: lines of `word address note text` on standard input, where the text
//! `-` means that nvdisasm refuses the word, and the note `i` that refusing it is as good as printing it.
use std::collections::BTreeMap;
use std::io::BufRead;

fn main() {
    let sm = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(89);
    let shown: usize = std::env::args().nth(2).and_then(|a| a.parse().ok()).unwrap_or(2);
    let Some(arch) = sass::Arch::from_sm(sm) else {
        eprintln!("unknown generation sm_{sm}");
        return;
    };
    let (mut good, mut total) = (0, 0);
    let mut bad: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let [word, address, note, expected] = parts[..] else { continue };
        let (Ok(word), Ok(address)) = (u128::from_str_radix(word, 16), u64::from_str_radix(address, 16))
        else {
            continue;
        };
        total += 1;
        let decoded = sass::decode(word, address, arch);
        let (kind, found) = match &decoded {
            Ok(instruction) => {
                let text = instruction.to_string();
                let kind = if expected == "-" { "loose" } else { "wrong" };
                match sass::encode(instruction) {
                    Ok(back) if back == word => (kind, text),
                    other => ("encode", format!("encodes to {other:x?}")),
                }
            }
            Err(error) => ("missing", error.to_string()),
        };
        let refused = decoded.is_err() && (expected == "-" || note == "i");
        if found == expected || refused {
            good += 1;
        } else {
            let opcode = (word & 0xfff) | (word >> 91 & 1) << 12;
            let name = expected.split(' ').find(|p| !p.starts_with('@')).map_or("", |p| p.trim_matches('-'));
            let name = if name.is_empty() { decoded.as_ref().map_or("", |i| i.op.name()) } else { name };
            bad.entry(format!("{kind} {} {opcode:04x}", name.split('.').next().unwrap_or("")))
                .or_default()
                .push(format!("   {word:032x} want {expected}\n{:38}got  {found}", ""));
        }
    }
    println!("{good} of {total}");
    let mut bad: Vec<_> = bad.into_iter().collect();
    bad.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    for (key, lines) in bad {
        println!("{key} {}", lines.len());
        for line in lines.iter().step_by(lines.len().div_ceil(shown)) {
            println!("{line}");
        }
    }
}
