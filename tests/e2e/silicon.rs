//! What an H200 left behind each instruction, replayed on the simulated one.

use nv_driver::Device;
use nv_simulator::{machine::Machine, profile::Profile};
use tests::{
    DRIVER,
    probe::{BLOCK, Program, digest},
};

/// A line: the word, and the digest of what its lanes stored; none where the card refused it.
fn golden() -> Vec<(u128, Option<u64>)> {
    let text = fixtures::text("differential/h200.txt").unwrap();
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
    let mut device = device();
    let (mut different, golden) = (Vec::new(), golden());
    for (word, expected) in &golden {
        let decoded = sass::decode(*word, 0, sass::Arch::Sm90);
        let text = decoded.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        let answer = decoded.map_err(|error| error.to_string()).and_then(|instruction| {
            let program = Program::new(&instruction).map_err(|error| error.to_string())?;
            program.run(&device, 1, 1024 / BLOCK).map_err(|error| {
                device = self::device();
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
    assert!(golden.len() > 1000, "only {} instructions", golden.len());
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), golden.len(), different.join("\n"));
}
