//! The command-line tool: what this machine has, and the text of what drivers and GPUs say to each other.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![forbid(unsafe_code)]

mod doctor;
mod dump;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Work with NVIDIA's user-space compute interface on a machine without a GPU.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say what this machine has, and what follows.
    Doctor,
    /// Print a file in words.
    #[command(subcommand)]
    Dump(dump::What),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Doctor => {
            print!("{}", doctor::report(&doctor::Machine::look()));
            Ok(())
        }
        Command::Dump(what) => dump::run(&what).map(|text| print!("{text}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mockgpu: {error}");
            ExitCode::FAILURE
        }
    }
}
