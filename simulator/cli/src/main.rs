//! The command-line tool: launch cubins on a simulated GPU, and read what drivers and GPUs say to each other.
//!
//! Without a command it shows the main job: see [`tour`].
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![forbid(unsafe_code)]

mod bench;
mod check;
mod coverage;
mod doctor;
mod dump;
mod launch;
mod paint;
mod profile;
mod report;
mod run;
mod simulated;
mod source;
mod tour;

use std::{io::Write as _, process::ExitCode};

use clap::{Parser, Subcommand};

use paint::Paint;

/// Work with NVIDIA's user-space compute interface on a machine without a GPU.
///
/// Without a command: bring up a simulated GPU, run a kernel on it, and show everything on the way.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Launch a kernel of a cubin on a simulated GPU.
    Launch(launch::Launch),
    /// Print a file in words.
    Dump(dump::Dump),
    /// Say what two captures, or two pushbuffers, mean differently. Fails if they do.
    Diff(check::Diff),
    /// Say what in a capture is wrong or works only by luck. Fails if something is.
    Lint(check::Lint),
    /// Do again what a capture says, on a simulated GPU or a card. Fails if answers differ.
    Replay(check::Replay),
    /// Turn a capture into a trace for Perfetto or a browser.
    Timeline(check::Timeline),
    /// Measure how fast whole launches are on a simulated GPU.
    Bench(bench::Bench),
    /// Say what this machine has, and what follows.
    Doctor,
    /// Say which machine instructions are known, checked and executed, of all or of a cubin.
    Report(coverage::Coverage),
    /// Run a program that does not know of the simulator on simulated GPUs.
    ///
    /// Where HCQDEV_WAIT_TIMEOUT_MS is not set, it is set to ten minutes: tinygrad gives up on a GPU after 30 seconds, which
    /// large work takes on a simulated one.
    ///
    /// The exit code is the program's. Where that is 0 although a GPU faulted, or lacked something that was asked for,
    /// it is 3.
    Run(run::Run),
    /// Run a program on this machine's own card and record what they say to each other.
    Record(run::RecordCalls),
    /// What `run` starts: not for people.
    #[command(hide = true)]
    Become(run::Become),
}

/// Writes to standard output. A reader that went away, as `head` does, is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn main() -> ExitCode {
    let paint = Paint::of_stdout();
    let done = |()| ExitCode::SUCCESS;
    let result: Result<ExitCode, Box<dyn std::error::Error>> = match Arguments::parse().command {
        None => tour::run(paint).map(done).map_err(Into::into),
        Some(Command::Launch(launch)) => launch::run(&launch, paint).map(done).map_err(Into::into),
        Some(Command::Dump(dump)) => {
            dump::run(&dump, paint).map(|text| print(&text)).map(done).map_err(Into::into)
        }
        Some(Command::Diff(diff)) => check::diff(&diff, paint).map(done).map_err(Into::into),
        Some(Command::Lint(lint)) => check::lint(&lint).map(done).map_err(Into::into),
        Some(Command::Replay(replay)) => check::replay(&replay).map(done).map_err(Into::into),
        Some(Command::Timeline(timeline)) => check::timeline(&timeline).map(done).map_err(Into::into),
        Some(Command::Report(what)) => {
            coverage::run(&what).map(|text| print(&text)).map(done).map_err(Into::into)
        }
        Some(Command::Bench(bench)) => {
            bench::run(&bench).map(|text| print(&text)).map(done).map_err(Into::into)
        }
        Some(Command::Doctor) => {
            print(&doctor::report(&doctor::Machine::look()));
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Run(options)) => run::run(&options).map_err(Into::into),
        Some(Command::Record(options)) => run::record(&options).map_err(Into::into),
        Some(Command::Become(options)) => run::become_program(&options).map_err(Into::into),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mockgpu: {error}");
            ExitCode::FAILURE
        }
    }
}
