//! Words of compiled kernels, and words with one bit flipped, against nvdisasm's text (`fixtures/sass`, made with
//! nvdisasm 13.5.37).
use sass::{Arch, Control, decode, encode, rows};
use std::path::PathBuf;

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sass").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn golden_line(line: &str) -> (u128, u64, &str) {
    let mut parts = line.splitn(3, ' ');
    let mut next = || parts.next().unwrap_or_else(|| panic!("short line {line}"));
    let word = u128::from_str_radix(next(), 16).unwrap();
    let address = u64::from_str_radix(next(), 16).unwrap();
    (word, address, next())
}

fn golden(arch: Arch) -> Vec<(u128, u64, String)> {
    let text = read(&format!("{arch}.txt"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(golden_line).map(|(word, address, text)| (word, address, text.to_owned())).collect()
}

/// Generations whose words are all known.
const COMPLETE: [Arch; 5] = [Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90];

#[test]
fn every_golden_word_prints_as_nvdisasm_and_encodes_back() {
    for arch in COMPLETE {
        let words = golden(arch);
        assert!(words.len() > 1000, "{arch}: only {} golden words", words.len());
        for (word, address, expected) in &words {
            let instruction =
                decode(*word, *address, arch).unwrap_or_else(|e| panic!("{arch} {expected}: {e}"));
            assert_eq!(&instruction.to_string(), expected, "{arch} {word:#034x}");
            assert_eq!(encode(&instruction), Ok(*word), "{arch} {expected}");
        }
    }
}

/// Blackwell's table is not whole: a word is refused by name of its opcode, or read right.
#[test]
fn a_blackwell_word_is_refused_or_prints_as_nvdisasm() {
    for arch in [Arch::Sm100, Arch::Sm120] {
        let words = golden(arch);
        let mut known = 0;
        for (word, address, expected) in &words {
            if let Ok(instruction) = decode(*word, *address, arch) {
                known += 1;
                assert_eq!(&instruction.to_string(), expected, "{arch} {word:#034x}");
                assert_eq!(encode(&instruction), Ok(*word), "{arch} {expected}");
            }
        }
        assert!(known * 10 >= words.len() * 6, "{arch}: {known} of {} words known", words.len());
    }
}

/// A base word's line and the lines of its flips.
struct Sweep<'a> {
    word: u128,
    address: u64,
    text: &'a str,
    flips: Vec<(u32, Option<String>)>,
}

fn sweeps(text: &str) -> Vec<Sweep<'_>> {
    let mut all: Vec<Sweep<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let first = line.split(' ').next().unwrap();
        if first.len() == 32 {
            let (word, address, text) = golden_line(line);
            all.push(Sweep { word, address, text, flips: Vec::new() });
            continue;
        }
        let sweep = all.last_mut().unwrap();
        let mut parts = line.splitn(4, ' ');
        let bit = parts.next().unwrap().parse().unwrap();
        let front = parts.next().unwrap();
        let changed = (front != "-").then(|| {
            let front: usize = front.parse().unwrap();
            let behind: usize = parts.next().unwrap().parse().unwrap();
            let middle = parts.next().unwrap_or("");
            format!("{}{middle}{}", &sweep.text[..front], &sweep.text[sweep.text.len() - behind..])
        });
        sweep.flips.push((bit, changed));
    }
    all
}

/// Every bit of a word of each row and shape: what it changes in the text is what it changes here. A flip may be
/// refused (some forms no compute compiler emits), and a few are accepted that nvdisasm refuses; none is misread.
#[test]
fn single_bit_flips_print_as_nvdisasm() {
    let bits: Vec<u32> = (12..105).filter(|&bit| bit != 91).collect();
    for arch in COMPLETE {
        let text = read(&format!("flips/{arch}.txt"));
        let (mut total, mut refused, mut loose) = (0u32, 0u32, 0u32);
        for sweep in sweeps(&text) {
            for (place, &bit) in bits.iter().enumerate() {
                let word = sweep.word ^ 1 << bit;
                let address = sweep.address + 16 * (place as u64 + 1);
                let found = decode(word, address, arch);
                total += 1;
                match (sweep.flips.iter().find(|(flipped, _)| *flipped == bit), found) {
                    (Some((_, Some(expected))), Ok(found)) => {
                        assert_eq!(&found.to_string(), expected, "{arch} {word:#034x}, bit {bit}");
                    }
                    (Some((_, Some(_))), Err(_)) => refused += 1,
                    (Some((_, None)), Ok(_)) => loose += 1,
                    // A bit without an effect on the text may be refused.
                    (None, Ok(found)) => {
                        assert_eq!(found.to_string(), sweep.text, "{arch} {word:#034x}, bit {bit}");
                    }
                    (Some((_, None)) | None, Err(_)) => {}
                }
            }
        }
        assert!(total > 20_000, "{arch}: only {total} flips");
        assert!(refused * 100 < total, "{arch}: {refused} of {total} flips refused that nvdisasm prints");
        assert!(loose * 2000 < total, "{arch}: {loose} of {total} flips accepted that nvdisasm refuses");
    }
}

#[test]
fn constants_of_described_banks_print_as_nvdisasm_and_encode_back() {
    for arch in COMPLETE {
        let text = read(&format!("bindless/{arch}.txt"));
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(golden_line).collect();
        assert!(!lines.is_empty());
        for (word, address, expected) in lines {
            let instruction =
                decode(word, address, arch).unwrap_or_else(|e| panic!("{arch} {expected}: {e}"));
            assert_eq!(instruction.to_string(), expected, "{arch} {word:#034x}");
            assert_eq!(encode(&instruction), Ok(word), "{arch} {expected}");
        }
    }
}

#[test]
fn flipped_bits_decode_to_an_error_or_encode_back() {
    for arch in Arch::ALL {
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
