//! Compares decoded text with nvdisasm's: lines of `word address count text` on standard input.
use std::collections::BTreeMap;
use std::io::BufRead;

fn main() {
    let sm = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(89);
    let Some(arch) = sass::Arch::from_sm(sm) else {
        eprintln!("unknown generation sm_{sm}");
        return;
    };
    let (mut good, mut total) = (0, 0);
    let mut bad: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let [word, address, _, expected] = parts[..] else { continue };
        let (Ok(word), Ok(address)) = (u128::from_str_radix(word, 16), u64::from_str_radix(address, 16))
        else {
            continue;
        };
        total += 1;
        let found = match sass::decode(word, address, arch) {
            Ok(instruction) => match sass::encode(&instruction) {
                Ok(back) if back == word => instruction.to_string(),
                other => format!("encodes to {other:x?}"),
            },
            Err(error) => error.to_string(),
        };
        if found == expected {
            good += 1;
        } else {
            let opcode = (word & 0xfff) | (word >> 91 & 1) << 12;
            let key = expected.split(' ').find(|p| !p.starts_with('@')).unwrap_or("").split('.').next();
            bad.entry(format!("{} {opcode:04x}", key.unwrap_or("")))
                .or_default()
                .push(format!("   {word:032x} want {expected}\n{:38}got  {found}", ""));
        }
    }
    println!("{good} of {total}");
    let mut bad: Vec<_> = bad.into_iter().collect();
    bad.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    for (key, lines) in bad {
        println!("{key} {}", lines.len());
        for line in lines.iter().step_by(lines.len().div_ceil(2)) {
            println!("{line}");
        }
    }
}
