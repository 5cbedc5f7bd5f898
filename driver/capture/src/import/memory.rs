//! What a process's mappings held when it ended, as other tools write it: the submissions that a recording of calls alone
//! does not have.
//!
//! The text has `REGION address length node` for each mapping, all in hexadecimal, and after it `PAGE offset bytes` for
//! pages of it, without zeroes at their ends. Where calls were recorded beside it, they tell where the rings of channels
//! lie. GPU addresses are taken for the client's, which is so for what vendors' libraries and this driver map.

use std::collections::BTreeMap;

use nv_abi::gpfifo::Entry;

use super::bytes_of;
use crate::{
    Capture,
    action::Stream,
    event::{Event, Submission},
    found::Found,
    tracker::{Channel, Tracker},
    words,
};

const PAGE: u64 = 0x1000;

/// Why a text is no recording of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A line that is neither a region nor a page of one.
    #[error("line {0}: neither `REGION address length node` nor `PAGE offset bytes`")]
    Line(usize),
    /// There is nothing that calls told of.
    #[error("no channel of the recorded calls has its ring in the recorded memory")]
    NoRing,
}

/// Pages by address.
struct Pages(BTreeMap<u64, Vec<u8>>);

impl Pages {
    fn parse(text: &str) -> Result<Self, MemoryError> {
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let mut region = None;
        let mut pages = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = || MemoryError::Line(index + 1);
            match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                ["REGION", address, ..] => region = Some(number(address).ok_or_else(wrong)?),
                ["PAGE", offset, ref bytes @ ..] if bytes.len() <= 1 => {
                    // A page of zeroes has none.
                    let bytes = bytes.first().unwrap_or(&"");
                    let address = region.and_then(|region: u64| region.checked_add(number(offset)?));
                    let address = address.filter(|address| address.is_multiple_of(PAGE));
                    let bytes = bytes_of(bytes).filter(|bytes| bytes.len() as u64 <= PAGE);
                    pages.insert(address.ok_or_else(wrong)?, bytes.ok_or_else(wrong)?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(Self(pages))
    }

    /// Bytes at an address; `None` where a page of them was not recorded.
    fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(bytes as u64)?;
        let mut found = Vec::new();
        let mut at = address;
        while at < end {
            let page = self.0.get(&(at & !(PAGE - 1)))?;
            let inside = (at % PAGE) as usize;
            let count = (PAGE - at % PAGE).min(end - at) as usize;
            let known = page.get(inside..).unwrap_or(&[]);
            found.extend(known.iter().take(count));
            at += count as u64;
            // What was cut is zero.
            found.resize((at - address) as usize, 0);
        }
        Some(found)
    }

    /// The entries of a channel's ring that lead to recorded memory, in the order of their slots.
    fn submissions(&self, channel: &Channel) -> Vec<Event> {
        let mut stream = Stream::new(channel.class);
        let mut events = Vec::new();
        // A ring is within pages that were recorded, so that a length out of a broken recording ends with them.
        for slot in 0..channel.entries {
            let place = channel.ring.saturating_add(u64::from(slot) * 8);
            let Some(entry) =
                self.read(place, 8).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))
            else {
                if self.0.range(place..).next().is_none() {
                    break;
                }
                continue;
            };
            let Entry::Segment { address, length, .. } = Entry::decode(entry) else { continue };
            let Some(bytes) = self.read(address, length as usize * 4).filter(|_| length > 0) else {
                continue;
            };
            let words = Some(words::of_bytes(&bytes));
            let (channel, class) = (channel.handle, channel.class);
            let submission = Submission { channel, class, slot, entry, words, time: None };
            let found =
                Found::of(submission, &mut stream, 0, &mut |address, bytes| self.read(address, bytes));
            events.extend(found.memory.into_iter().map(Event::Memory));
            events.push(Event::Submission(found.submission));
        }
        events
    }
}

/// Adds to a recording of calls what the memory of its process held at the end: every ring entry of its channels that leads
/// to recorded memory, channel by channel, before the channel goes. How a ring's entries were handed over, and when, memory
/// does not tell; what was written over meanwhile is read as it is at the end.
///
/// # Errors
/// The text is no recording of memory, or not of this process.
pub fn add(capture: &mut Capture, text: &str) -> Result<(), MemoryError> {
    let pages = Pages::parse(text)?;
    let mut tracker = Tracker::new(capture.branch);
    let mut events = Vec::new();
    let mut open: Vec<Channel> = Vec::new();
    let mut found = false;
    let mut end = |channel: Channel, events: &mut Vec<Event>| {
        let submissions = pages.submissions(&channel);
        found |= !submissions.is_empty();
        events.extend(submissions);
    };
    for event in std::mem::take(&mut capture.events) {
        if let Event::Ioctl(call) = &event {
            tracker.ioctl(call);
            let (stay, gone): (Vec<_>, Vec<_>) = open.into_iter().partition(|known| {
                tracker.channels().any(|channel| (channel.handle, channel.ring) == (known.handle, known.ring))
            });
            gone.into_iter().for_each(|channel| end(channel, &mut events));
            open = stay;
            let new =
                tracker.channels().filter(|channel| open.iter().all(|known| known.handle != channel.handle));
            let new: Vec<Channel> = new.cloned().collect();
            open.extend(new);
        }
        events.push(event);
    }
    open.into_iter().for_each(|channel| end(channel, &mut events));
    capture.events = events;
    if found { Ok(()) } else { Err(MemoryError::NoRing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MemoryKind;

    /// What memory held in the end, for a capture that was made while it changed.
    fn memory_of(capture: &Capture) -> String {
        let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut put = |address: u64, bytes: &[u8]| {
            for (at, byte) in (address..).zip(bytes) {
                let page = pages.entry(at & !(PAGE - 1)).or_insert_with(|| vec![0; PAGE as usize]);
                page[(at % PAGE) as usize] = *byte;
            }
        };
        let mut tracker = Tracker::new(capture.branch);
        for event in &capture.events {
            match event {
                Event::Ioctl(call) => tracker.ioctl(call),
                Event::Memory(memory) => put(memory.address, &memory.bytes),
                Event::Submission(submission) => {
                    let ring = tracker.channel(submission.channel).unwrap().ring;
                    put(ring + u64::from(submission.slot) * 8, &submission.entry.to_le_bytes());
                    let Entry::Segment { address, .. } = Entry::decode(submission.entry) else { continue };
                    put(address, &words::to_bytes(submission.words.as_ref().unwrap()));
                }
                _ => {}
            }
        }
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let lines = pages.iter().map(|(at, bytes)| {
            format!("REGION {at:#x} 1000 /dev/nvidia0\nPAGE 0 {}\n", hex(bytes).trim_end_matches("00"))
        });
        lines.collect()
    }

    #[test]
    fn calls_and_memory_together_have_every_submission() {
        let text = fixtures::text("recordings/tinygrad_add.h200.capture").unwrap();
        let whole = crate::format::parse(&text).unwrap();
        let is_call = |event: &Event| !matches!(event, Event::Submission(_) | Event::Memory(_));
        let mut calls = whole.clone();
        calls.events.retain(is_call);
        assert_eq!(add(&mut calls.clone(), "REGION 1000 1000 x\nPAGE 0 01"), Err(MemoryError::NoRing));
        add(&mut calls, &memory_of(&whole)).unwrap();
        let submissions = |capture: &Capture| {
            let of = |event: &Event| match event {
                Event::Submission(submission) => Some(Submission { time: None, ..submission.clone() }),
                _ => None,
            };
            let mut found: Vec<_> = capture.events.iter().filter_map(of).collect();
            found.sort_by_key(|submission| (submission.channel, submission.slot));
            found
        };
        assert!(!submissions(&whole).is_empty());
        assert_eq!(submissions(&calls), submissions(&whole));
        let kinds = |capture: &Capture, kind| {
            let of_kind = |event: &&Event| matches!(event, Event::Memory(memory) if memory.kind == kind);
            capture.events.iter().filter(of_kind).count()
        };
        for kind in [MemoryKind::Qmd, MemoryKind::ConstantBank] {
            assert_eq!(kinds(&calls, kind), kinds(&whole, kind), "{kind:?}");
        }
    }

    #[test]
    fn pages_are_read_across_their_borders_and_what_was_cut_is_zero() {
        let pages = Pages::parse("REGION 0x10000 3000 /dev/nvidia0\nPAGE 0 01\nPAGE 1000 0203\n\n").unwrap();
        assert_eq!(pages.read(0x10000, 2), Some(vec![1, 0]));
        assert_eq!(pages.read(0x10ffe, 5), Some(vec![0, 0, 2, 3, 0]));
        assert_eq!(pages.read(0x11fff, 2), None);
        assert_eq!(pages.read(u64::MAX, 2), None);
        for (text, line) in [
            ("PAGE 0 01", 1),
            ("REGION zz 1 x", 1),
            ("REGION 0 1000 x\nPAGE 8 01", 2),
            ("REGION 0 1000 x\nPAGE 0 011", 2),
            ("REGION 0 1000 x\nnonsense", 2),
            ("REGION 0 1000 x\nPAGE 0 00 00", 2),
            ("REGION ffffffffffffffff 1000 x\nPAGE 1 01", 2),
        ] {
            assert_eq!(Pages::parse(text).err(), Some(MemoryError::Line(line)), "{text}");
        }
    }
}
