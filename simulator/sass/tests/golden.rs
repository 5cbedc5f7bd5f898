//! Words of compiled kernels against nvdisasm's text (`fixtures/sass`, made with nvdisasm 13.5.37).
use sass::{Arch, Control, decode, encode, rows};
use std::path::PathBuf;

/// Mnemonics that still have a form without a row. A word of theirs may be refused, never misread.
const PENDING: &[&str] = &[
    "ATOM", "ATOMS", "BMMA", "BRA", "F2FP", "F2I", "FENCE", "HMMA", "HSET2", "HSETP2", "I2I", "LDGSTS",
    "LEPC", "PLOP3", "QMMA", "QSPC", "ST", "SULD", "SUST", "SYNCS", "TEX", "TLD", "TLD4", "VIADD", "VIMNMX3",
    "WARPSYNC",
];
/// The same for Turing, which numbers memory orders otherwise.
const PENDING_TURING: &[&str] = &["ATOMG", "DEPBAR", "LD", "LDG", "LDS", "NANOSLEEP", "RED", "STG"];

fn golden(arch: Arch) -> Vec<(u128, u64, String)> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/sass/{}.txt", file(arch)));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().unwrap_or_else(|| panic!("short line {line}"));
            let word = u128::from_str_radix(next(), 16).unwrap();
            let address = u64::from_str_radix(next(), 16).unwrap();
            (word, address, next().to_string())
        })
        .collect()
}

fn file(arch: Arch) -> String {
    arch.to_string()
}

const GOLDEN: [Arch; 5] = [Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90];

#[test]
fn every_golden_word_prints_as_nvdisasm() {
    for arch in GOLDEN {
        let words = golden(arch);
        let mut refused = 0;
        for (word, address, expected) in &words {
            match decode(*word, *address, arch) {
                Ok(instruction) => {
                    assert_eq!(&instruction.to_string(), expected, "{arch} {word:#034x}");
                    assert_eq!(encode(&instruction), Ok(*word), "{arch} {expected}");
                }
                Err(error) => {
                    refused += 1;
                    let mnemonic = expected.split(' ').find(|part| !part.starts_with('@')).unwrap();
                    let mnemonic = mnemonic.split('.').next().unwrap();
                    let turing = arch == Arch::Sm75 && PENDING_TURING.contains(&mnemonic);
                    assert!(PENDING.contains(&mnemonic) || turing, "{arch} {expected}: {error}");
                }
            }
        }
        assert!(words.len() > 1000, "{arch}: only {} golden words", words.len());
        let limit = if arch == Arch::Sm75 { words.len() / 4 } else { words.len() / 16 };
        assert!(refused <= limit, "{arch}: {refused} of {} words refused", words.len());
    }
}

#[test]
fn flipped_bits_decode_to_an_error_or_encode_back() {
    for arch in GOLDEN {
        for (word, address, _) in golden(arch).iter().step_by(3) {
            for bit in 0..128 {
                let flipped = word ^ (1 << bit);
                if let Ok(instruction) = decode(flipped, *address, arch) {
                    assert_eq!(encode(&instruction), Ok(flipped), "{arch} {instruction}");
                }
            }
        }
    }
}

#[test]
fn no_two_parts_of_a_row_share_bits_unless_they_read_the_same() {
    for row in rows() {
        let mut seen = 0;
        for modifier in &row.modifiers {
            assert_eq!(seen & modifier.bits.mask(), 0, "{:?} {:?}", row.op, modifier.id);
            seen |= modifier.bits.mask();
        }
        for slot in &row.slots {
            assert_eq!(seen & slot.kind.mask(row.until), 0, "{:?} {slot:?}", row.op);
        }
        assert_eq!(seen & Control::MASK, 0, "{:?}", row.op);
    }
}
