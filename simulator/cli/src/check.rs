//! `mockgpu diff`, `lint`, `replay`, `timeline`: captures compared, judged, done again and shown, with an exit code for CI.

use std::path::PathBuf;

use clap::Args;
use nv_abi::{Branch, Ioctl, Mmio, arch, dump::Handles};
use nv_capture::{Action, Capture, Event, Stream, cut, diff, lint, page, replay, timeline};
use nv_driver::os::{NvidiaNodes, SharedPages};
use nv_simulator::machine::Machine;
use serde_json::json;

use crate::{
    dump::Generation,
    paint::Paint,
    simulated::{DRIVER, Gpu, MachineError},
    source::{self, Cubins, Source, SourceError},
};

/// What to compare.
#[derive(Debug, Args)]
pub struct Diff {
    /// A capture, a recording of JSON lines, or the raw words of a pushbuffer.
    a: PathBuf,
    /// What to compare it with, of the same kind.
    b: PathBuf,
    /// The driver version of recordings of JSON lines.
    #[arg(long, default_value = DRIVER)]
    driver: String,
    #[command(flatten)]
    generation: Generation,
    #[command(flatten)]
    cubins: Cubins,
    /// Compare submissions only, not the calls.
    #[arg(long)]
    submissions: bool,
    /// Overlook where one submission ends and the next begins.
    #[arg(long)]
    joined: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// What to judge.
#[derive(Debug, Args)]
pub struct Lint {
    #[command(flatten)]
    source: Option<Source>,
    /// Print the rules with their sources instead.
    #[arg(long)]
    rules: bool,
    /// Overlook this rule.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// What to do again.
#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    source: Source,
    /// The simulated GPU; by default one of the generation that the capture is of.
    #[arg(long, value_enum)]
    gpu: Option<Gpu>,
    /// Use the card in this machine.
    #[arg(long, conflicts_with = "gpu")]
    card: bool,
    /// Cut this submission out, from 0 as `lint` counts them, and do it alone: earlier launches are left out, and what they
    /// would have released is put into memory.
    #[arg(long, value_name = "SUBMISSION")]
    only: Option<usize>,
}

/// What to show.
#[derive(Debug, Args)]
pub struct Timeline {
    #[command(flatten)]
    source: Source,
    /// The file to write; standard output without it.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// A page for a browser, with pushbuffers and descriptors behind the submissions, instead of a trace.
    #[arg(long)]
    html: bool,
}

/// What was found, or why nothing was looked for.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A file is none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// One file is text and the other is not.
    #[error("one is a capture, the other raw words: there is nothing to compare")]
    Kinds,
    /// A pushbuffer ends inside a word.
    #[error("{}: {bytes} bytes are no whole number of words", file.display())]
    Words {
        /// The file.
        file: PathBuf,
        /// Its size.
        bytes: usize,
    },
    /// There is no such rule.
    #[error("no rule {0:?}; `mockgpu lint --rules` prints them")]
    Rule(String),
    /// The capture is shorter.
    #[error("the capture has no submission {0}")]
    NoSubmission(usize),
    /// No file was named.
    #[error("name a capture, or ask for --rules")]
    NoFile,
    /// No machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The trace or page cannot be written.
    #[error("{}: {error}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Answers differ. Everything was printed.
    #[error("{0} answers differ")]
    Answers(usize),
    /// They differ. Everything was printed.
    #[error("{0} differences in meaning")]
    Different(usize),
    /// Rules were broken. Everything was printed.
    #[error("{0} findings")]
    Found(usize),
}

/// Compares and prints. Differences are an error.
pub fn diff(arguments: &Diff, paint: Paint) -> Result<(), CheckError> {
    let (a, b) = (source::read(&arguments.a)?, source::read(&arguments.b)?);
    let found = match (source::is_text(&a), source::is_text(&b)) {
        (true, true) => {
            let mut a = source::parse(&arguments.a, &a, &arguments.driver)?;
            let mut b = source::parse(&arguments.b, &b, &arguments.driver)?;
            for capture in [&mut a, &mut b] {
                arguments.cubins.name(capture)?;
            }
            let options = diff::Options { calls: !arguments.submissions, boundaries: !arguments.joined };
            diff::captures(&a, &b, options)
        }
        (false, false) => {
            let words = |file: &PathBuf, bytes: &[u8]| match bytes.as_chunks::<4>() {
                (words, []) => Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<u32>>()),
                _ => Err(CheckError::Words { file: file.clone(), bytes: bytes.len() }),
            };
            let (a, b) = (words(&arguments.a, &a)?, words(&arguments.b, &b)?);
            let generation = arch::Generation::from(arguments.generation);
            let mut stream = Stream::of(generation);
            stream.bind(1, generation.classes().compute);
            stream.bind(4, generation.classes().copy);
            diff::pushbuffers(&a, &b, &stream)
        }
        _ => return Err(CheckError::Kinds),
    };
    if arguments.json {
        let section = |section: &diff::Section| {
            let changes: Vec<String> = section.changes.iter().map(ToString::to_string).collect();
            json!({ "stream": section.name, "changes": changes })
        };
        let sections: Vec<_> = found.sections.iter().map(section).collect();
        crate::print(&format!("{:#}\n", json!({ "compared": found.compared, "streams": sections })));
    } else {
        crate::print(&paint.dump(&found.to_string()));
    }
    if found.is_empty() { Ok(()) } else { Err(CheckError::Different(found.len())) }
}

/// Judges and prints. Findings are an error.
pub fn lint(arguments: &Lint) -> Result<(), CheckError> {
    if arguments.rules {
        let rule = |rule: &lint::Rule| format!("{}\n  finds {}\n  {}\n", rule.name, rule.finds, rule.source);
        crate::print(&lint::RULES.iter().map(rule).collect::<String>());
        return Ok(());
    }
    let unknown = arguments.allow.iter().find(|name| !lint::RULES.iter().any(|rule| rule.name == **name));
    if let Some(name) = unknown {
        return Err(CheckError::Rule(name.clone()));
    }
    let capture = arguments.source.as_ref().ok_or(CheckError::NoFile)?.read()?;
    let mut findings = lint::lint(&capture);
    findings.retain(|finding| !arguments.allow.iter().any(|name| name == finding.rule));
    if arguments.json {
        let finding = |f: &lint::Finding| json!({ "rule": f.rule, "submission": f.submission, "offset": f.offset, "what": f.what });
        let findings: Vec<_> = findings.iter().map(finding).collect();
        crate::print(&format!("{:#}\n", json!(findings)));
    } else {
        let text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        crate::print(if text.is_empty() { "no rule is broken\n" } else { &text });
    }
    if findings.is_empty() { Ok(()) } else { Err(CheckError::Found(findings.len())) }
}

/// A GPU of the generation that a capture was made with, as far as its submissions tell.
fn gpu_of(capture: &Capture) -> Result<Gpu, MachineError> {
    let mut found = None;
    for event in &capture.events {
        let Event::Submission(submission) = event else { continue };
        let mut stream = Stream::new(submission.class);
        let steps = submission.words.as_ref().map(|words| stream.segment(words).1).unwrap_or_default();
        let bound = steps.iter().find_map(|step| match step.action {
            Action::Bind { class, .. } => arch::Generation::of_compute_class(class),
            _ => None,
        });
        found = bound.or(found).or(Some(stream.generation()));
        if bound.is_some() {
            break;
        }
    }
    match found.map(arch::Generation::sm) {
        Some(sm) => Gpu::for_sm(sm).ok_or(MachineError::NoGpu(sm)),
        // Without a submission any will do.
        None => Ok(Gpu::Ad102),
    }
}

/// The kernel module's version, where the capture has the call that asks for it.
fn version_of(capture: &Capture) -> Option<String> {
    let calls = capture.events.iter().filter_map(|event| match event {
        Event::Ioctl(call) => Some(call),
        _ => None,
    });
    calls.into_iter().find_map(|call| {
        let decoded = call.decode(capture.branch, &mut Handles::new());
        let rows = decoded.parts.into_iter().flat_map(|part| part.rows);
        let text = rows.map(|row| row.after.unwrap_or(row.before).text);
        // Only that call answers with such a text.
        let mut versions =
            text.filter_map(|text| Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned()));
        versions.find(|text| Branch::from_version(text) == Some(capture.branch))
    })
}

/// Replays and prints. Differences are an error.
pub fn replay(arguments: &Replay) -> Result<(), CheckError> {
    let mut capture = arguments.source.read()?;
    if let Some(number) = arguments.only {
        capture = cut::only(&capture, number).ok_or(CheckError::NoSubmission(number))?;
    }
    let on = |backend: &dyn Both| {
        let mut kept = Vec::new();
        let mut pages = |bytes| {
            let pages = SharedPages::new(bytes)?;
            let address = pages.address();
            kept.push(pages);
            Ok(address)
        };
        replay::replay(&capture, backend, &mut pages)
            .map_err(|error| CheckError::Machine(MachineError::Record(error)))
    };
    let (report, faults) = if arguments.card {
        (on(&NvidiaNodes::new())?, Vec::new())
    } else {
        let gpu = arguments.gpu.map_or_else(|| gpu_of(&capture), Ok)?;
        let version = version_of(&capture).unwrap_or_else(|| format!("{}.0", capture.branch));
        let machine = Machine::builder()
            .gpu(gpu.profile())
            .driver(&version)
            .build()
            .map_err(|error| CheckError::Machine(MachineError::Build(error)))?;
        for cubin in arguments.source.cubins().read()?.0 {
            // It was read a moment ago.
            let _ = machine.add_cubin(&cubin);
        }
        let report = on(&*machine)?;
        (report, machine.faults())
    };
    let mut text = String::new();
    for difference in &report.differences {
        text.push_str(&format!("{difference}\n"));
    }
    for fault in &faults {
        text.push_str(&format!("fault: {fault}\n"));
    }
    text.push_str(&format!(
        "{} calls replayed, {} left out; {} submissions; {} semaphores checked; {} differences, {} faults\n",
        report.calls,
        report.left_out,
        report.submissions,
        report.semaphores,
        report.differences.len(),
        faults.len()
    ));
    crate::print(&text);
    let wrong = report.differences.len() + faults.len();
    if wrong == 0 { Ok(()) } else { Err(CheckError::Answers(wrong)) }
}

/// Both halves of the boundary.
trait Both: Ioctl + Mmio {}

impl<T: Ioctl + Mmio> Both for T {}

/// Writes a capture's trace or page.
pub fn timeline(arguments: &Timeline) -> Result<(), CheckError> {
    let capture = arguments.source.read()?;
    let text = if arguments.html {
        page::page(&capture, &arguments.source.name())
    } else {
        timeline::trace(&capture)
    };
    match &arguments.output {
        Some(file) => {
            std::fs::write(file, text).map_err(|error| CheckError::Write { file: file.clone(), error })?;
            let opens = if arguments.html { "a browser" } else { "ui.perfetto.dev" };
            crate::print(&format!("{}: {}; {opens} opens it\n", file.display(), timeline::summary(&capture)));
            Ok(())
        }
        None => {
            crate::print(&(text + "\n"));
            Ok(())
        }
    }
}
