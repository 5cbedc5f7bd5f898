//! The questions of `tests::questions`, to a card and to the simulator.

use std::fmt::Write as _;

use nv_driver::Device;
use nv_simulator::profile::Profile;
use tests::{
    probe::{OUTPUTS, digest},
    questions::{self, LANES},
};

use crate::{Failure, Settings, card, simulated};

/// Asks everything and prints what differs; with `--golden`, what the card answered.
pub fn ask_all(
    settings: &Settings,
    mut real: Option<Device>,
    arch: sass::Arch,
    version: &str,
) -> Result<(), Failure> {
    let profile = Profile::h200();
    let mut simulator = simulated(&profile)?;
    let mut golden = format!(
        "# What an H200 (driver {version}) left in all lanes after each sequence of `tests::questions`: FNV-1a of {} words, or\n\
         # `refused`. Written by `cargo run -p tests --features tools --example differential -- --questions --golden FILE`.\n",
        LANES * OUTPUTS,
    );
    let (mut same, mut all) = (0, 0);
    for question in questions::all(arch)? {
        if settings.only.as_ref().is_some_and(|only| !question.name.contains(only.as_str())) {
            continue;
        }
        all += 1;
        let mine = question.ask(&simulator);
        if mine.is_err() {
            simulator = simulated(&profile)?;
        }
        let Some(device) = &real else {
            match &mine {
                Ok(words) => print_lanes(&question.name, "simulator", words, settings.examples),
                Err(error) => println!("{}: {error}", question.name),
            }
            continue;
        };
        let theirs = question.ask(device);
        if theirs.is_err() {
            drop(real.take());
            real = Some(card()?);
        }
        let answer = theirs
            .as_ref()
            .map_or_else(|_| String::from("refused"), |words| format!("{:016x}", digest(words)));
        let _ = writeln!(golden, "{answer} {}", question.name);
        match (mine, theirs) {
            (Ok(mine), Ok(theirs)) if mine == theirs => same += 1,
            (Err(_), Err(_)) => same += 1,
            (mine, theirs) => {
                println!("DIFFERS {}", question.name);
                for (who, what) in [("simulator", mine), ("card", theirs)] {
                    match what {
                        Ok(words) => print_lanes("", who, &words, settings.examples),
                        Err(error) => println!("  {who}: {error}"),
                    }
                }
            }
        }
    }
    println!("{same} of {all} the same");
    if let Some(path) = &settings.golden {
        std::fs::write(path, golden)?;
    }
    Ok(())
}

/// What lanes of every warp hold.
fn print_lanes(name: &str, who: &str, words: &[u32], examples: usize) {
    println!("{name} {who}");
    let shown = |lane: usize| lane % 32 < examples || lane % 32 == 31;
    for (lane, words) in words.chunks(OUTPUTS).enumerate().filter(|(lane, _)| shown(*lane)) {
        let text: Vec<String> = words.iter().take(10).map(|word| format!("{word:08x}")).collect();
        println!("  {lane:3} {}", text.join(" "));
    }
}
