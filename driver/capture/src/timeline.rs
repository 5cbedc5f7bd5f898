//! When a capture's submissions were made: a track per channel, a slice per submission with what it does, an arrow from
//! each release to the waits for it. Where a simulated GPU was recorded also which grids ran when, and which worker of
//! the simulator, each of which does the work of SMs, executed which block. As a trace for Perfetto or a browser's `about:tracing` ([`trace`]), or as a page that
//! shows pushbuffers and descriptors too ([`page`](crate::page::page)).
//!
//! A slice begins when its submission was handed over. When the GPU finished it is not in a capture: a slice ends where
//! the next one of its channel begins, and the last of each after a microsecond.

use std::collections::{BTreeSet, HashMap};

use nv_abi::qmd;
use serde_json::{Value, json};

use crate::{
    Capture,
    action::{Action, Stream, chain},
    describe::{by, describe},
    event::{Event, MemoryKind},
    symbols::Symbols,
};

/// One submission.
pub(crate) struct Slice {
    pub(crate) channel: u32,
    pub(crate) name: String,
    /// Nanoseconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) actions: Vec<String>,
}

/// A release, and a wait that it satisfies, as indices of their slices.
pub(crate) struct Arrow {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// A grid or a block that ran.
pub(crate) struct Work {
    /// The track: `None` for grids, else the worker.
    pub(crate) worker: Option<u32>,
    pub(crate) name: String,
    /// Nanoseconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A capture in time.
pub(crate) struct Timeline {
    pub(crate) work: Vec<Work>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) arrows: Vec<Arrow>,
}

/// How much a trace shows, in a line.
pub fn summary(capture: &Capture) -> String {
    let Timeline { work, slices, arrows } = timeline(capture);
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let channels: BTreeSet<u32> = slices.iter().map(|slice| slice.channel).collect();
    let submissions = count(slices.len(), "submission");
    let mut text =
        format!("{submissions} on {}, {}", count(channels.len(), "channel"), count(arrows.len(), "arrow"));
    let grids = work.iter().filter(|work| work.worker.is_none()).count();
    if grids > 0 {
        let blocks = count(work.len() - grids, "block");
        text.push_str(&format!(", {} of {blocks}", count(grids, "grid")));
    }
    text
}

/// Reads a capture. Submissions without a time are put a microsecond apart.
pub(crate) fn timeline(capture: &Capture) -> Timeline {
    let symbols = Symbols::of(capture);
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut memory: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    let mut releases: Vec<(usize, u64, u64)> = Vec::new();
    let mut waits: Vec<(usize, u64, u64)> = Vec::new();
    let mut work = Vec::new();
    let mut clock = 0;
    for event in &capture.events {
        match event {
            Event::Memory(found) if found.kind == MemoryKind::Qmd => {
                memory.insert(found.address, found.bytes.clone());
            }
            Event::Grid(grid) => {
                let kernel = symbols.text(grid.program);
                let name = format!("{kernel}, {} x {}", by(grid.grid), by(grid.block));
                work.push(Work { worker: None, name, start: grid.start, end: grid.end });
                work.extend(grid.blocks.iter().map(|block| Work {
                    worker: Some(block.worker),
                    name: format!("{kernel} {:?}", block.index),
                    start: block.start,
                    end: block.end,
                }));
            }
            Event::Submission(submission) => {
                clock = submission.time.unwrap_or(clock + 1000);
                let stream =
                    streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
                let steps =
                    submission.words.as_ref().map(|words| stream.segment(words).1).unwrap_or_default();
                let index = slices.len();
                let mut name = String::new();
                for step in &steps {
                    match &step.action {
                        Action::Launch { qmd, .. } => {
                            let version = stream.qmd_version();
                            let read = |address, bytes| {
                                memory.get(&address).cloned().or_else(|| stream.written(address, bytes))
                            };
                            for (_, bytes) in chain(version, *qmd, read) {
                                let Ok(launch) = qmd::read(version, &bytes) else { continue };
                                name = symbols.text(launch.program_address);
                                releases.extend(
                                    launch
                                        .releases
                                        .iter()
                                        .map(|release| (index, release.address, release.payload)),
                                );
                            }
                        }
                        Action::Copy { release, .. } => {
                            "copy".clone_into(&mut name);
                            releases.extend(release.map(|(address, payload)| (index, address, payload)));
                        }
                        Action::Release { address, payload, .. }
                        | Action::CopyRelease { address, payload, .. }
                        | Action::Report { address, payload, .. } => {
                            releases.push((index, *address, *payload));
                        }
                        Action::Acquire { address, payload, .. } => waits.push((index, *address, *payload)),
                        _ => {}
                    }
                }
                if name.is_empty() {
                    name =
                        steps.first().map_or_else(|| "nothing".to_owned(), |s| describe(&s.action, &symbols));
                }
                let actions = steps.iter().map(|step| describe(&step.action, &symbols)).collect();
                let (channel, start) = (submission.channel, clock);
                slices.push(Slice { channel, name, start, end: start, actions });
            }
            _ => {}
        }
    }
    let mut next: HashMap<u32, u64> = HashMap::new();
    for slice in slices.iter_mut().rev() {
        let end = next.insert(slice.channel, slice.start).unwrap_or(slice.start + 1000);
        slice.end = end.max(slice.start + 1);
    }
    let arrows = waits.iter().filter_map(|&(to, address, payload)| {
        // The release that satisfies it: the last before it of at least the value.
        let before =
            |&&(at, place, value): &&(usize, u64, u64)| at <= to && place == address && value >= payload;
        releases.iter().rev().find(before).map(|&(from, ..)| Arrow { from, to })
    });
    let arrows = arrows.collect();
    Timeline { work, slices, arrows }
}

/// The trace as JSON text (Trace Event Format).
pub fn trace(capture: &Capture) -> String {
    let Timeline { work, slices, arrows } = timeline(capture);
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    let mut events: Vec<Value> = Vec::new();
    for slice in &slices {
        events.push(json!({
            "name": slice.name,
            "cat": "submission",
            "ph": "X",
            "pid": 1,
            "tid": slice.channel,
            "ts": microseconds(slice.start),
            "dur": microseconds(slice.end - slice.start),
            "args": { "actions": slice.actions },
        }));
    }
    for channel in slices.iter().map(|slice| slice.channel).collect::<BTreeSet<_>>() {
        events.push(json!({
            "name": "thread_name", "ph": "M", "pid": 1, "tid": channel,
            "args": { "name": format!("channel {channel:#x}") },
        }));
    }
    let process = |pid: u32, name: &str| json!({ "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name } });
    events.push(process(1, "submissions"));
    if !work.is_empty() {
        events.push(process(2, "the GPU"));
    }
    // Grids are the first track, workers those behind it.
    let track = |work: &Work| work.worker.map_or(0, |worker| worker + 1);
    for work in &work {
        events.push(json!({
            "name": work.name,
            "cat": if work.worker.is_some() { "block" } else { "grid" },
            "ph": "X",
            "pid": 2,
            "tid": track(work),
            "ts": microseconds(work.start),
            "dur": microseconds(work.end.saturating_sub(work.start)),
        }));
    }
    for tid in work.iter().map(track).collect::<BTreeSet<_>>() {
        let name = if tid == 0 { "grids".to_owned() } else { format!("SM worker {}", tid - 1) };
        events.push(json!({
            "name": "thread_name", "ph": "M", "pid": 2, "tid": tid, "args": { "name": name },
        }));
    }
    for (id, arrow) in arrows.iter().enumerate() {
        for (phase, index) in [("s", arrow.from), ("f", arrow.to)] {
            let slice = &slices[index];
            events.push(json!({
                "name": "semaphore", "cat": "semaphore", "ph": phase, "bp": "e", "id": id, "pid": 1,
                "tid": slice.channel, "ts": microseconds(slice.start),
            }));
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
}
