//! A capture as a trace for Perfetto or a browser's `about:tracing`: a track per channel, a slice per submission with what
//! it does, an arrow from each release to the waits for it.
//!
//! A slice begins when its submission was handed over. When the GPU finished it is not in a capture: a slice ends where
//! the next one of its channel begins, and the last of each after a microsecond.

use std::collections::{BTreeMap, HashMap};

use nv_abi::qmd;
use serde_json::{Value, json};

use crate::{
    Capture,
    action::{Action, Stream, chain},
    describe,
    event::{Event, MemoryKind},
    symbols::Symbols,
};

/// One submission.
struct Slice {
    channel: u32,
    name: String,
    /// Nanoseconds.
    start: u64,
    actions: Vec<String>,
}

/// The trace as JSON text (Trace Event Format). Submissions without a time are put a microsecond apart.
pub fn trace(capture: &Capture) -> String {
    let symbols = Symbols::of(&capture.events);
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut memory: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    let mut releases: Vec<(usize, u64, u64)> = Vec::new();
    let mut waits: Vec<(usize, u64, u64)> = Vec::new();
    let mut clock = 0;
    for event in &capture.events {
        match event {
            Event::Memory(found) if found.kind == MemoryKind::Qmd => {
                memory.insert(found.address, found.bytes.clone());
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
                slices.push(Slice { channel: submission.channel, name, start: clock, actions });
            }
            _ => {}
        }
    }
    render(&slices, &releases, &waits)
}

fn render(slices: &[Slice], releases: &[(usize, u64, u64)], waits: &[(usize, u64, u64)]) -> String {
    let mut events: Vec<Value> = Vec::new();
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    for slice in slices.iter().rev() {
        let end = next.insert(slice.channel, slice.start).unwrap_or(slice.start + 1000);
        events.push(json!({
            "name": slice.name,
            "cat": "submission",
            "ph": "X",
            "pid": 1,
            "tid": slice.channel,
            "ts": microseconds(slice.start),
            "dur": microseconds(end.saturating_sub(slice.start)).max(0.001),
            "args": { "actions": slice.actions },
        }));
    }
    events.reverse();
    for channel in next.keys() {
        events.push(json!({
            "name": "thread_name", "ph": "M", "pid": 1, "tid": channel,
            "args": { "name": format!("channel {channel:#x}") },
        }));
    }
    for (id, (waiting, address, payload)) in waits.iter().enumerate() {
        // The release that satisfies it: the last before it of at least the value.
        let from =
            releases.iter().rev().find(|(at, to, value)| at <= waiting && to == address && value >= payload);
        let Some((releasing, ..)) = from else { continue };
        for (phase, index) in [("s", *releasing), ("f", *waiting)] {
            let slice = &slices[index];
            events.push(json!({
                "name": "semaphore", "cat": "semaphore", "ph": phase, "bp": "e", "id": id, "pid": 1,
                "tid": slice.channel, "ts": microseconds(slice.start),
            }));
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ns" }).to_string()
}
