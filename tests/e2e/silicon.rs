//! What an H200 left behind each instruction, replayed on the simulated one.

use std::{collections::BTreeMap, thread};

use nv_driver::Device;
use nv_simulator::{machine::Machine, profile::Profile};
use tests::{
    DRIVER, Place,
    probe::{BLOCK, INPUTS, OUTPUTS, Program, Random, digest, made_from},
    questions::{self, Question},
};

mod bodies {
    use super::negating_a_sparse_factor_is_flipping_its_signs;

    tests::everywhere! { one: negating_a_sparse_factor_is_flipping_its_signs }
}

/// A line: the word, and the digest of what its lanes stored; none where the card refused it.
fn golden(file: &str) -> Vec<(u128, Option<u64>)> {
    let text = fixtures::text(file).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split_whitespace();
            let word = u128::from_str_radix(columns.next().unwrap(), 16).unwrap();
            let answer = columns.next().unwrap();
            (word, (answer != "refused").then(|| u64::from_str_radix(answer, 16).unwrap()))
        })
        .collect()
}

fn device() -> Device {
    let machine = Machine::builder().gpu(Profile::h200()).driver(DRIVER).build().unwrap();
    Device::open(machine, 0).unwrap()
}

#[test]
fn every_probed_instruction_leaves_the_bits_that_an_h200_left() {
    let golden = [golden("differential/h200.txt"), golden("differential/h200_unusual.txt")].concat();
    let (constants, inputs) = made_from(1, 1024 / BLOCK);
    let share = golden.len().div_ceil(thread::available_parallelism().map_or(1, usize::from));
    let different: Vec<String> = thread::scope(|scope| {
        let parts = golden.chunks(share).map(|part| scope.spawn(|| differences(part, &constants, &inputs)));
        parts.collect::<Vec<_>>().into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(golden.len() > 1000, "only {} instructions", golden.len());
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), golden.len(), different.join("\n"));
}

/// Memory, branches, ends of threads, special registers, special halves: `tests::questions`.
#[test]
fn questions_are_answered_as_an_h200_answered_them() {
    let text = fixtures::text("differential/h200_questions.txt").unwrap();
    let golden: BTreeMap<&str, &str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .map(|(answer, name)| (name, answer))
        .collect();
    let questions = questions::all(sass::Arch::Sm90).unwrap();
    let share = questions.len().div_ceil(thread::available_parallelism().map_or(1, usize::from));
    let different: Vec<String> = thread::scope(|scope| {
        let parts = questions.chunks(share).map(|part| scope.spawn(|| other_answers(part, &golden)));
        parts.collect::<Vec<_>>().into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert_eq!(questions.len(), golden.len(), "questions and answers");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

/// The questions that one simulated H200 answers in another way.
fn other_answers(questions: &[Question], golden: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut gpu = device();
    let mut different = Vec::new();
    for question in questions {
        let answer = match question.ask(&gpu) {
            Ok(words) => format!("{:016x}", digest(&words)),
            Err(_) => {
                gpu = device();
                String::from("refused")
            }
        };
        if golden.get(question.name.as_str()) != Some(&answer.as_str()) {
            different.push(format!("{}: {answer}", question.name));
        }
    }
    different
}

/// What one simulated H200 does in another way.
fn differences(golden: &[(u128, Option<u64>)], constants: &[u32; INPUTS], inputs: &[u32]) -> Vec<String> {
    let fresh = || {
        let device = device();
        let output = device.visible(inputs.len() / INPUTS * OUTPUTS).unwrap();
        let inputs = device.buffer_from(inputs).unwrap();
        (device, inputs, output)
    };
    let mut gpu = fresh();
    let mut different = Vec::new();
    for (word, expected) in golden {
        let decoded = sass::decode(*word, 0, sass::Arch::Sm90);
        let text = decoded.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        let answer = decoded.map_err(|error| error.to_string()).and_then(|instruction| {
            let program = Program::new(&instruction).map_err(|error| error.to_string())?;
            program.run_on(&gpu.0, constants, &gpu.1, &gpu.2).map_err(|error| {
                gpu = fresh();
                error.to_string()
            })
        });
        match (answer, expected) {
            (Ok(words), Some(expected)) if digest(&words) == *expected => {}
            (Err(_), None) => {}
            (Ok(_), Some(_)) => different.push(format!("{word:032x} {text}: other bits")),
            (Ok(_), None) => different.push(format!("{word:032x} {text}: the card refuses it")),
            (Err(error), Some(_)) => different.push(format!("{word:032x} {text}: {error}")),
        }
    }
    different
}

/// `HMMA.SP.16816.F32.TF32` without marks; its factors are `R8` to `R11` and `R12` to `R15`, its metadata is `R20`.
const SPARSE: u128 = 0x03ff_da00_0008_1a10_0000_140c_0818_723c;
const NEGATES_FIRST: u128 = 1 << 72;
const NEGATES_SECOND: u128 = 1 << 63;

/// With metadata that selects one of two elements: 4 or 14 in each four bits. What a card makes of a negated factor and
/// other metadata, which PTX leaves undefined, is not known.
fn negating_a_sparse_factor_is_flipping_its_signs(place: &Place) {
    let device = place.device(0);
    let arch = sass::Arch::from_sm(device.sm()).unwrap();
    let mut random = Random(11);
    let words: Vec<[u32; INPUTS]> = (0..BLOCK)
        .map(|_| {
            let mut input = [0; INPUTS];
            // Between 2^-32 and 2^32.
            input.fill_with(|| {
                let bits = random.bits();
                bits as u32 & 0x807f_ffff | (95 + (bits >> 32) as u32 % 64) << 23
            });
            input[12] = (0..8).fold(0, |word, _| word << 4 | if random.below(2) == 0 { 4 } else { 14 });
            input
        })
        .collect();
    let product = |marks: u128, flipped: &[usize]| {
        let instruction = sass::decode(SPARSE | marks, 0, arch).unwrap();
        let mut inputs = words.clone();
        for input in &mut inputs {
            for register in flipped {
                input[*register] ^= 0x8000_0000;
            }
        }
        let stored =
            Program::new(&instruction).unwrap().run_words(&device, &[0; INPUTS], &inputs.concat()).unwrap();
        stored.chunks(OUTPUTS).flat_map(|lane| lane[..4].to_vec()).collect::<Vec<_>>()
    };
    let plain = product(0, &[]);
    let negated = product(NEGATES_SECOND, &[]);
    assert_ne!(plain, negated);
    assert_eq!(negated, product(0, &[4, 5, 6, 7]));
    assert_eq!(negated, product(NEGATES_FIRST, &[]));
    assert_eq!(negated, product(0, &[0, 1, 2, 3]));
    assert_eq!(plain, product(NEGATES_FIRST | NEGATES_SECOND, &[]));
}
