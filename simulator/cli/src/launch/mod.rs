//! `mockgpu launch`: a kernel of a cubin, with arguments from the command line.
#![allow(rustdoc::broken_intra_doc_links, reason = "the help of arguments has brackets")]

mod data;
mod element;
mod spec;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::Args;
use nv_capture::{Recording, format};
use nv_driver::{
    Argument, Buffer, Device, Module,
    program::{Cubin, KernelInfo},
};
use nv_simulator::{
    engine::{Grid, Profiles},
    host::Counters,
    sm::Observe,
};
use serde_json::{Value, json};

pub use data::DataError;
use data::Mismatch;
use spec::Spec;

use crate::{
    paint::Paint,
    profile::{self, Lines, Names},
    simulated::{Choice, MachineError, Simulated},
    source::{self, SourceError},
};

/// What to launch.
#[derive(Debug, Args)]
pub struct Launch {
    /// The cubin.
    file: PathBuf,
    /// The kernel; may be left out where the cubin has only one.
    kernel: Option<String>,
    /// Blocks, as X, X,Y or X,Y,Z.
    #[arg(long, default_value = "1", value_parser = dimensions)]
    grid: [u32; 3],
    /// Threads of a block, as X, X,Y or X,Y,Z.
    #[arg(long, default_value = "1", value_parser = dimensions)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    #[arg(long, default_value_t = 0)]
    shared: u32,
    #[command(flatten)]
    machine: Choice,
    /// Seed of random buffers that name none.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The next argument: u32:7, f32:1.5, f32[1000]=iota,out, f32[1000]=@in.bin,save=out.bin,expect=@right.bin~1e-5,
    /// bytes:00ff10, null. Fills: zeros, ones, iota[:START], const:N, random[:SEED], @FILE.
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    arguments: Vec<Spec>,
    /// Write what the driver and the GPU said to each other to this file.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Count what every instruction does, and print the disassembly with the counts. Execution then takes many times as
    /// long.
    #[arg(long)]
    profile: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut found = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("at most three dimensions".to_owned());
    }
    for (place, part) in found.iter_mut().zip(parts) {
        *place = part.trim().parse().map_err(|_| format!("{part:?} is no number"))?;
    }
    Ok(found)
}

/// Why nothing was launched, or what went wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The file is no cubin that can be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No kernel of that name, or none was named.
    #[error("{}", kernels(file, *named, present))]
    Kernel {
        /// The file.
        file: PathBuf,
        /// Whether one was named.
        named: bool,
        /// What there is.
        present: Vec<String>,
    },
    /// A wrong number of arguments.
    #[error("{kernel} takes {}, {given} were given\n{parameters}", count(*expected))]
    Count {
        /// The kernel.
        kernel: String,
        /// Parameters it has.
        expected: usize,
        /// Arguments given.
        given: usize,
        /// Its parameters in words.
        parameters: String,
    },
    /// An argument of a wrong size.
    #[error(
        "{kernel}: argument {index} ({spec}) has {given} bytes, the parameter has {expected}\n{parameters}"
    )]
    Size {
        /// The kernel.
        kernel: String,
        /// Which, from 0.
        index: usize,
        /// What was given.
        spec: String,
        /// Bytes of it.
        given: usize,
        /// Bytes of the parameter.
        expected: usize,
        /// The kernel's parameters in words.
        parameters: String,
    },
    /// A buffer could not be filled or judged.
    #[error(transparent)]
    Data(#[from] DataError),
    /// No machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] nv_driver::Error),
    /// The GPU faulted.
    #[error("{kernel} faulted: {error}\n{}", faults.join("\n"))]
    Fault {
        /// The kernel.
        kernel: String,
        /// As the driver met it.
        error: nv_driver::Error,
        /// As the simulator tells it.
        faults: Vec<String>,
    },
    /// A result cannot be saved.
    #[error("{}: {error}", file.display())]
    Save {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A result is not what was expected. Everything was printed.
    #[error("{0} of the buffers do not hold what was expected")]
    Mismatch(usize),
}

fn count(expected: usize) -> String {
    match expected {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    }
}

fn kernels(file: &Path, named: bool, present: &[String]) -> String {
    let what = if named { "no such kernel" } else { "name the kernel" };
    let list =
        if present.is_empty() { "it has none".to_owned() } else { format!("it has {}", present.join(", ")) };
    format!("{}: {what}; {list}", file.display())
}

/// The parameters of a kernel, one a line.
fn parameters(kernel: &KernelInfo) -> String {
    let mut text = String::new();
    for parameter in &kernel.parameters {
        let place = kernel.parameter_base + u32::from(parameter.offset);
        let hint = match parameter.size {
            1 => "u8:N or i8:N",
            2 => "u16:N, i16:N, f16:N or bf16:N",
            4 => "u32:N, i32:N or f32:N",
            8 => "a buffer such as f32[1000]=iota, or u64:N, i64:N, f64:N, null",
            _ => "bytes:HEX, a struct by value",
        };
        let _ = writeln!(
            text,
            "  --arg {}: {} bytes at c[0x0][{place:#x}]: {hint}",
            parameter.ordinal, parameter.size
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// What came out of one buffer.
struct Outcome {
    argument: usize,
    text: String,
    values: Option<String>,
    saved: Option<PathBuf>,
    /// Whether something was expected, and the first difference from it.
    compared: bool,
    mismatch: Option<Mismatch>,
}

/// What one launch did.
struct Done {
    gpu: usize,
    time: Duration,
    instructions: u64,
    lane_instructions: u64,
    outcomes: Vec<Outcome>,
}

/// Launches and prints. An error says what went wrong, after what could be printed was.
pub fn run(launch: &Launch, paint: Paint) -> Result<(), LaunchError> {
    let (bytes, cubin) = source::cubin(&launch.file)?;
    let kernel = choose(launch, &cubin)?;
    check(launch, kernel)?;
    let simulated = launch.machine.open(cubin.sm(), launch.capture.is_some())?;
    if let Some(recorder) = &simulated.recorder {
        recorder.note_data();
    }
    // What is wrong with a cubin is the driver's to say; here it only gives faults their names.
    let _ = simulated.machine.add_cubin(&bytes);
    let profiles = observe(launch, &simulated);
    let done: Result<Vec<Done>, LaunchError> = (0..simulated.machine.gpu_count())
        .map(|gpu| one(launch, &simulated, &simulated.device(gpu)?, gpu, &bytes, &kernel.name))
        .collect();
    // A launch that failed is worth reading most of all.
    if let (Some(file), Some(recorder)) = (&launch.capture, &simulated.recorder) {
        simulated.faults().iter().for_each(|fault| recorder.fault(fault));
        std::fs::write(file, format::text(&recorder.capture()))
            .map_err(|error| LaunchError::Save { file: file.clone(), error })?;
    }
    let all = done?;
    let taken = std::mem::take(&mut *profiles.lock().unwrap_or_else(PoisonError::into_inner));
    let profiles = taken.into_sorted();
    let names = Names { kernel: Some(kernel.name.clone()), lines: Lines::of(&bytes) };
    if launch.json {
        let mut object = to_json(launch, kernel, &simulated, &all);
        if launch.profile {
            object["profiles"] = profiles.iter().map(|profile| profile::to_json(profile, &names)).collect();
        }
        crate::print(&format!("{object:#}\n"));
    } else {
        let mut text = to_text(launch, kernel, &simulated, &all, paint);
        text.extend(profiles.iter().map(|profile| profile::text(profile, &names, true)));
        crate::print(&text);
    }
    let wrong =
        all.iter().flat_map(|done| &done.outcomes).filter(|outcome| outcome.mismatch.is_some()).count();
    if wrong > 0 { Err(LaunchError::Mismatch(wrong)) } else { Ok(()) }
}

/// Lets the machine tell of grids, where anybody wants to know: times for the capture, counts for profiles.
fn observe(launch: &Launch, simulated: &Simulated) -> Arc<Mutex<Profiles>> {
    let profiles = Arc::new(Mutex::new(Profiles::new()));
    let what = Observe { instructions: launch.profile, blocks: launch.capture.is_some() };
    if what == Observe::default() {
        return profiles;
    }
    let (kept, recorder) = (Arc::clone(&profiles), simulated.recorder.clone());
    simulated.machine.observe_grids(what, move |_, grid| {
        if let Some(recorder) = &recorder {
            recorder.with(|recording| note_grid(recording, &grid));
        }
        if what.instructions {
            kept.lock().unwrap_or_else(PoisonError::into_inner).add(&grid);
        }
    });
    profiles
}

fn note_grid(recording: &mut Recording, Grid { launch, start, end, observed, .. }: &Grid) {
    let blocks = observed.blocks.iter().map(|ran| (ran.block, ran.worker, [ran.start, ran.end]));
    recording.grid(launch.program_address, [launch.grid, launch.block], [*start, *end], blocks);
}

fn choose<'a>(launch: &Launch, cubin: &'a Cubin) -> Result<&'a KernelInfo, LaunchError> {
    let found = match (&launch.kernel, cubin.kernels()) {
        (Some(name), _) => cubin.kernel(name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    found.ok_or_else(|| LaunchError::Kernel {
        file: launch.file.clone(),
        named: launch.kernel.is_some(),
        present: cubin.kernels().iter().map(|kernel| kernel.name.clone()).collect(),
    })
}

fn check(launch: &Launch, kernel: &KernelInfo) -> Result<(), LaunchError> {
    let name = || kernel.name.clone();
    if launch.arguments.len() != kernel.parameters.len() {
        return Err(LaunchError::Count {
            kernel: name(),
            expected: kernel.parameters.len(),
            given: launch.arguments.len(),
            parameters: parameters(kernel),
        });
    }
    for (index, (spec, parameter)) in launch.arguments.iter().zip(&kernel.parameters).enumerate() {
        let (given, expected) = (spec.parameter_bytes(), usize::from(parameter.size));
        if given != expected {
            let spec = spec.to_string();
            return Err(LaunchError::Size {
                kernel: name(),
                index,
                spec,
                given,
                expected,
                parameters: parameters(kernel),
            });
        }
    }
    Ok(())
}

/// Counters of one GPU; all zero if there is no such GPU.
fn counters(simulated: &Simulated, gpu: usize) -> Counters {
    simulated.machine.statistics().get(gpu).copied().unwrap_or_default()
}

fn one(
    launch: &Launch,
    simulated: &Simulated,
    device: &Device,
    gpu: usize,
    cubin: &[u8],
    kernel: &str,
) -> Result<Done, LaunchError> {
    if launch.json {
        // What kernels print must not stand between the JSON.
        device.print_to(std::io::stderr());
    }
    let module = Module::load(device, cubin)?;
    let kernel = module.kernel(kernel)?;
    let name = |address, bytes, name: &str| {
        if let Some(recorder) = &simulated.recorder {
            recorder.name(address, bytes, name);
        }
    };
    let code = &kernel.info().code;
    name(module.address() + code.start, code.end - code.start, &kernel.info().name);
    name(device.timeline().0.address(), 16, "timeline");
    let mut buffers: Vec<Option<Buffer<u8>>> = Vec::new();
    let mut arguments: Vec<Argument> = Vec::new();
    for spec in &launch.arguments {
        let (argument, buffer) = match spec {
            Spec::Scalar { bytes, .. } | Spec::Bytes(bytes) => (Argument::bytes(bytes.clone()), None),
            Spec::Null => (0u64.into(), None),
            Spec::Buffer { element, len, fill, .. } => {
                let buffer = device.buffer_from(&data::make(*element, *len, fill, launch.seed)?)?;
                name(buffer.address(), buffer.bytes(), &format!("argument {}", arguments.len()));
                ((&buffer).into(), Some(buffer))
            }
        };
        arguments.push(argument);
        buffers.push(buffer);
    }
    let fault = |error| {
        let faults = simulated.faults();
        match error {
            nv_driver::Error::ChannelFault(_)
            | nv_driver::Error::Assertion(_)
            | nv_driver::Error::InvalidFree(_)
            | nv_driver::Error::Timeout { .. } => {
                LaunchError::Fault { kernel: kernel.info().name.clone(), error, faults }
            }
            error => LaunchError::Driver(error),
        }
    };
    let before = counters(simulated, gpu);
    let start = Instant::now();
    kernel
        .launch_with_shared(launch.grid, launch.block, launch.shared, &arguments)
        .and_then(|()| device.synchronize())
        .map_err(fault)?;
    let time = start.elapsed();
    let lost = device.lost_prints()?;
    if lost > 0 {
        eprintln!("{lost} prints of the kernel are lost: their buffer was full");
    }
    let after = counters(simulated, gpu);
    let mut outcomes = Vec::new();
    for (argument, (spec, buffer)) in launch.arguments.iter().zip(&buffers).enumerate() {
        if let (Spec::Buffer { element, print, save, expect, .. }, Some(buffer)) = (spec, buffer) {
            if print.is_none() && save.is_none() && expect.is_none() {
                continue;
            }
            let bytes = buffer.to_vec()?;
            if let Some(file) = save {
                std::fs::write(file, &bytes)
                    .map_err(|error| LaunchError::Save { file: file.clone(), error })?;
            }
            let mismatch = match expect {
                Some(expect) => data::compare(*element, &bytes, expect, launch.seed)?,
                None => None,
            };
            outcomes.push(Outcome {
                argument,
                text: spec.to_string(),
                values: print.map(|count| data::text(*element, &bytes, count)),
                saved: save.clone(),
                compared: expect.is_some(),
                mismatch,
            });
        }
    }
    Ok(Done {
        gpu,
        time,
        instructions: after.instructions - before.instructions,
        lane_instructions: after.lane_instructions - before.lane_instructions,
        outcomes,
    })
}

fn by([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z}")
}

fn to_text(
    launch: &Launch,
    kernel: &KernelInfo,
    simulated: &Simulated,
    all: &[Done],
    paint: Paint,
) -> String {
    let mut out = String::new();
    let profile = &simulated.profile;
    let _ = writeln!(
        out,
        "{} on a simulated {} ({}), driver {}",
        paint.heading(&kernel.name),
        profile.name,
        profile.chip,
        simulated.system.version()
    );
    let _ = writeln!(
        out,
        "grid {}, block {}, {} registers a thread, {} + {} bytes of shared memory",
        by(launch.grid),
        by(launch.block),
        kernel.registers,
        kernel.shared_bytes,
        launch.shared
    );
    for (index, spec) in launch.arguments.iter().enumerate() {
        let _ = writeln!(out, "  argument {index}  {spec}");
    }
    for done in all {
        if all.len() > 1 {
            let _ = writeln!(out, "{}", paint.heading(&format!("GPU {}", done.gpu)));
        }
        let _ = writeln!(
            out,
            "{} warp instructions, {} lane instructions, {:.3} ms",
            done.instructions,
            done.lane_instructions,
            done.time.as_secs_f64() * 1e3
        );
        for outcome in &done.outcomes {
            let _ = write!(out, "  argument {}  {}", outcome.argument, outcome.text);
            if let Some(values) = &outcome.values {
                let _ = write!(out, " -> {values}");
            }
            if let Some(file) = &outcome.saved {
                let _ = write!(out, ", saved to {}", file.display());
            }
            if let Some(Mismatch { count, index, got, want }) = &outcome.mismatch {
                let text = format!("{count} elements differ: [{index}] is {got}, expected {want}");
                let _ = write!(out, ", {}", paint.bad(&text));
            } else if outcome.compared {
                let _ = write!(out, ", {}", paint.good("as expected"));
            }
            out.push('\n');
        }
    }
    out
}

fn to_json(launch: &Launch, kernel: &KernelInfo, simulated: &Simulated, all: &[Done]) -> Value {
    let outcome = |outcome: &Outcome| {
        let mismatch = outcome
            .mismatch
            .as_ref()
            .map(|m| json!({ "count": m.count, "index": m.index, "got": m.got, "want": m.want }));
        json!({
            "argument": outcome.argument,
            "buffer": outcome.text,
            "values": outcome.values,
            "saved": outcome.saved,
            "as_expected": outcome.compared.then_some(outcome.mismatch.is_none()),
            "mismatch": mismatch,
        })
    };
    let done = |done: &Done| {
        json!({
            "gpu": done.gpu,
            "nanoseconds": done.time.as_nanos() as u64,
            "instructions": done.instructions,
            "lane_instructions": done.lane_instructions,
            "buffers": done.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        })
    };
    json!({
        "kernel": kernel.name,
        "device": simulated.profile.name,
        "chip": simulated.profile.chip,
        "driver": simulated.system.version(),
        "grid": launch.grid,
        "block": launch.block,
        "registers": kernel.registers,
        "static_shared_bytes": kernel.shared_bytes,
        "dynamic_shared_bytes": launch.shared,
        "arguments": launch.arguments.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "runs": all.iter().map(done).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_take_one_to_three_numbers() {
        assert_eq!(dimensions("4"), Ok([4, 1, 1]));
        assert_eq!(dimensions("4,2"), Ok([4, 2, 1]));
        assert_eq!(dimensions("4x2x3"), Ok([4, 2, 3]));
        assert!(dimensions("1,2,3,4").is_err() && dimensions("a").is_err() && dimensions("").is_err());
    }
}
