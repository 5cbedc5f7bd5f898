//! What NVIDIA's own library sent to an H200, read by this crate: nothing of it was written here.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use fixtures::recordings::cuda_mix;
use nv_abi::{Branch, arch::Generation, dump::Unknowns, rm::class};
use nv_capture::{
    Capture, Event, Stream, Submission, Symbol, diff, format, lint,
    normal::normalise,
    page::page,
    text,
    timeline::{self, trace},
};

/// Rings begin at multiples of so many bytes from the first one.
const RING: u64 = 0x3000;
const FIRST_RING: u64 = 0x2_0060_0000;

/// The recording as a capture; a ring stands for its channel. The segments that bind the classes were not kept, so they
/// are put in front.
fn capture() -> Capture {
    let recording = cuda_mix().unwrap();
    let mut events = Vec::new();
    for line in fixtures::text("recordings/cuda_mix.symbols.txt").unwrap().lines() {
        if line.starts_with('#') {
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (address, bytes, name) = (number(next()), number(next()), next().to_owned());
        events.push(Event::Symbol(Symbol { address, bytes, name }));
    }
    let mut known = Vec::new();
    for push in recording.pushbuffers {
        let ring = ((push.slot - FIRST_RING) / RING) as u32;
        let slot = ((push.slot - FIRST_RING) % RING / 8) as u32;
        let submission = |slot, entry, words| {
            let class = class::HOPPER_CHANNEL_GPFIFO_A;
            Event::Submission(Submission {
                channel: ring,
                class,
                slot,
                entry,
                words: Some(words),
                time: None,
            })
        };
        if !known.contains(&ring) {
            known.push(ring);
            let bind = |subchannel: u32, class| [1 << 29 | 1 << 16 | subchannel << 13, class];
            let words = [bind(1, class::HOPPER_COMPUTE_A), bind(4, class::HOPPER_DMA_COPY_A)].concat();
            events.push(submission(0, 0, words));
        }
        events.push(submission(slot, push.entry, push.words));
    }
    Capture { branch: Branch::R580, events }
}

#[test]
fn every_submission_decodes_with_nothing_unknown() {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut unknowns = Unknowns::default();
    let mut submissions = 0;
    for event in capture().events {
        let Event::Submission(submission) = event else { continue };
        let stream = streams.entry(submission.channel).or_insert_with(|| Stream::of(Generation::Hopper));
        let (packets, _) = stream.segment(&submission.words.unwrap());
        packets.iter().for_each(|packet| packet.count_unknown(&mut unknowns));
        submissions += 1;
    }
    assert!(submissions > 150, "{submissions}");
    assert!(unknowns.is_empty(), "{unknowns}");
}

#[test]
fn all_fourteen_launches_show_kernel_grid_block_registers_and_constants() {
    let text = text::launches(&capture());
    assert!(text.ends_with("14 launches\n"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_the_library_does_reads_as_actions() {
    insta::assert_snapshot!(text::actions(&normalise(&capture())));
}

#[test]
fn the_librarys_pushbuffers_break_no_rule_but_leave_addresses_in_slots_that_do_nothing() {
    let findings = lint::lint(&capture());
    assert!(!findings.is_empty());
    for finding in findings {
        assert_eq!(finding.rule, "disabled-slot", "{finding}");
    }
}

/// What stands in the page for its script to read.
fn page_data(page: &str) -> serde_json::Value {
    let line = page.lines().find_map(|line| line.strip_prefix("const capture = ")).unwrap();
    serde_json::from_str(line.strip_suffix(';').unwrap()).unwrap()
}

#[test]
fn page_and_trace_show_every_submission_and_the_page_its_words() {
    let capture = capture();
    let count = capture.events.iter().filter(|event| matches!(event, Event::Submission(_))).count();
    let trace: serde_json::Value = serde_json::from_str(&trace(&capture)).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert_eq!(slices.count(), count);
    let data = page_data(&page(&capture, "cuda_mix"));
    let submissions = data["submissions"].as_array().unwrap();
    assert_eq!(submissions.len(), count);
    let lines = data["lines"].as_array().unwrap();
    let text = |index: usize| {
        let numbers = submissions[index]["text"].as_array().unwrap().iter();
        numbers.map(|number| lines[number.as_u64().unwrap() as usize].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert!((0..count).all(|index| text(index)[0].starts_with("slot ")));
    let launches =
        (0..count).map(|index| text(index).iter().filter(|line| line.starts_with("  = launch: ")).count());
    assert_eq!(launches.sum::<usize>(), 14);
    // Each line once.
    assert_eq!(lines.iter().map(ToString::to_string).collect::<BTreeSet<_>>().len(), lines.len());
    // Slices of one channel follow each other.
    for (a, b) in submissions.iter().zip(&submissions[1..]).filter(|(a, b)| a["channel"] == b["channel"]) {
        assert!(a["end"].as_u64() <= b["start"].as_u64(), "{a} {b}");
    }
}

#[test]
fn no_numbers_of_a_capture_make_reading_it_panic() {
    let text = fixtures::text("recordings/tinygrad_add.h200.capture").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let whole = format::parse(&text).unwrap();
    let rows = (0..lines.len()).filter(|index| lines[*index].starts_with("    0"));
    for (turn, row) in rows.enumerate().filter(|(turn, _)| turn % 9 == 0) {
        // All words of a row are as large as they can be, or the last four.
        let kept = if turn % 18 == 0 { 0 } else { 4 };
        let words = lines[row].split_ascii_whitespace().enumerate();
        let words = words.map(|(index, word)| if index > kept { "ffffffff" } else { word });
        let hostile = format!("    {}", words.collect::<Vec<_>>().join(" "));
        let mut changed = lines.clone();
        changed[row] = &hostile;
        let Ok(capture) = format::parse(&changed.join("\n")) else { continue };
        assert!(!text::submissions(&capture, 0).is_empty(), "line {row}");
        let _ = (lint::lint(&capture), timeline::summary(&capture));
        if turn % 72 == 0 {
            assert!(diff::captures(&whole, &capture, diff::Options::default()).compared > 0, "line {row}");
        }
    }
}
