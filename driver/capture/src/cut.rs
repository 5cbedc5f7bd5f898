//! One submission cut out of a capture, so that it can be replayed alone.
//!
//! What it stands on stays: all calls, memory that was noted, and what earlier submissions set, uploaded and copied.
//! Earlier launches go, with the whole submissions that they are in; the values which those would have released are
//! put into memory instead, so that nobody waits for them. Everything after the submission goes, but for the calls.

use std::collections::HashMap;

use nv_abi::qmd;

use crate::{
    Capture,
    action::{Action, Step, Stream, chain},
    event::{Event, Memory, MemoryKind, Submission},
    tracker::Tracker,
};

/// The capture with only the submission of that number, from 0; `None` if it has not so many.
pub fn only(capture: &Capture, number: usize) -> Option<Capture> {
    let is_submission = |event: &&Event| matches!(event, Event::Submission(_));
    if capture.events.iter().filter(is_submission).count() <= number {
        return None;
    }
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut descriptors: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut events = Vec::new();
    let mut seen = 0;
    // The ring entries that stay follow each other.
    let mut tracker = Tracker::new(capture.branch);
    let mut slots: HashMap<u32, u32> = HashMap::new();
    for event in &capture.events {
        let Event::Submission(submission) = event else {
            match event {
                Event::Memory(Memory { kind: MemoryKind::Qmd, address, bytes }) => {
                    descriptors.insert(*address, bytes.clone());
                }
                Event::Ioctl(call) => tracker.ioctl(call),
                _ => {}
            }
            // Doorbells behind the cut would have nothing to announce, and frees of what is not used are harmless.
            if seen <= number || !matches!(event, Event::Doorbell { .. } | Event::Memory(_) | Event::Grid(_))
            {
                events.push(event.clone());
            }
            continue;
        };
        let stream = streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
        let steps = submission.words.as_ref().map(|words| stream.segment(words).1).unwrap_or_default();
        let next = slots.entry(submission.channel).or_insert(submission.slot);
        let launches = steps.iter().any(|step| matches!(step.action, Action::Launch { .. }));
        match seen.cmp(&number) {
            std::cmp::Ordering::Less if launches => {
                let released = releases(stream, &steps, &descriptors);
                events.extend(released.into_iter().map(|(address, bytes)| {
                    Event::Memory(Memory { kind: MemoryKind::Other, address, bytes })
                }));
            }
            std::cmp::Ordering::Less | std::cmp::Ordering::Equal => {
                let entries = tracker.channel(submission.channel).map_or(u32::MAX, |channel| channel.entries);
                let slot = *next;
                *next = (slot + 1) % entries.max(1);
                events.push(Event::Submission(Submission { slot, ..submission.clone() }));
            }
            std::cmp::Ordering::Greater => {}
        }
        seen += 1;
    }
    Some(Capture { branch: capture.branch, events })
}

/// What a submission releases: addresses, and the bytes that stand there then.
fn releases(stream: &Stream, steps: &[Step], descriptors: &HashMap<u64, Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    let bytes = |value: u64, wide: bool| value.to_le_bytes()[..if wide { 8 } else { 4 }].to_vec();
    let version = stream.qmd_version();
    let mut found = Vec::new();
    for step in steps {
        match &step.action {
            Action::Release { address, payload, wide, operation: "RELEASE", .. } => {
                found.push((*address, bytes(*payload, *wide)));
            }
            Action::Report { address, payload, .. } => found.push((*address, bytes(*payload, false))),
            Action::Launch { qmd: first, .. } => {
                let read = |address, bytes| {
                    descriptors.get(&address).cloned().or_else(|| stream.written(address, bytes))
                };
                let launches = chain(version, *first, read).into_iter();
                let launches = launches.filter_map(|(_, bytes)| qmd::read(version, &bytes).ok());
                found.extend(
                    launches
                        .flat_map(|launch| launch.releases)
                        .map(|release| (release.address, bytes(release.payload, release.payload_64))),
                );
            }
            _ => {}
        }
    }
    found
}
