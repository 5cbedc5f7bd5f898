//! Random words that the rows accept, for a comparison with nvdisasm: `random_words SM COUNT SEED`, hexadecimal.
use sass::{Arch, Control, decode, rows};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().unwrap_or(1));
    let mut next = || arguments.next().unwrap_or(1);
    let (sm, count, mut state) = (next(), next(), next() | 1);
    let Some(arch) = Arch::from_sm(sm as u32) else {
        eprintln!("unknown generation sm_{sm}");
        return;
    };
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for row in rows().iter().filter(|row| row.exists_on(arch)) {
        let (mut found, mut tries) = (0, 0);
        while found < count && tries < 3000 * count {
            tries += 1;
            let bits = u128::from(random()) << 64 | u128::from(random());
            // Half of the words have few bits set, so that zero and neutral values occur.
            let bits = if tries % 2 == 0 {
                bits
            } else {
                bits & (u128::from(random()) << 64 | u128::from(random()))
            };
            let open = row.covered(arch) & !Control::MASK & !sass::OPCODE_MASK & !0xf000;
            let opcode = u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91;
            let word = row.fixed & !open | bits & open | opcode | 0x7000 | 0x7e0 << 105;
            if decode(word, 0, arch).is_ok() {
                println!("{word:032x}");
                found += 1;
            }
        }
    }
}
