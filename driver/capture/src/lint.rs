//! What in a capture is wrong, or works only by luck.
//!
//! Each rule says where its claim comes from, and has an example that it finds and one that it does not.

use std::{collections::BTreeMap, fmt};

use nv_abi::{
    Bits, Field,
    compute::HOPPER_COMPUTE_A::INVALIDATE_SHADER_CACHES_NO_WFI,
    dump::{Packet, Unknowns},
    gpfifo::Entry,
    qmd::{self, CONSTANT_BUFFERS, Launch, Version},
};

use crate::{
    Capture,
    action::{Action, Step, Stream, chain},
    describe,
    event::{Event, Memory, MemoryKind},
    symbols::Symbols,
    tracker::Tracker,
    words::{address_at, holds, of_bytes},
};

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it finds.
    pub finds: &'static str,
    /// Why that is wrong, and who says so.
    pub source: &'static str,
    check: fn(&mut Linter<'_>, &Submitted<'_>),
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// Which submission of the capture, from 0.
    pub submission: usize,
    /// Byte offset in its pushbuffer, where one word is to blame.
    pub offset: Option<usize>,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "submission {}", self.submission)?;
        if let Some(offset) = self.offset {
            write!(f, ", {offset:#06x}")?;
        }
        write!(f, ": {} [{}]", self.what, self.rule)
    }
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        name: "misaligned-semaphore",
        finds: "a semaphore at an address that its width or timestamp does not allow",
        source: "measured on an H200: 64-bit payloads need 8 bytes, timestamps 16, else Xid 32 (PBDMA SEMAPHORE)",
        check: misaligned_semaphore,
    },
    Rule {
        name: "release-without-wait",
        finds: "a host release after a launch or a copy that does not wait for it",
        source: "clc56f.h, SEM_EXECUTE_RELEASE_WFI: without it the write may pass earlier work of the engine",
        check: release_without_wait,
    },
    Rule {
        name: "stale-instructions",
        finds: "a launch of code that was uploaded after the instruction caches were last invalidated",
        source: "INVALIDATE_SHADER_CACHES_NO_WFI, INSTRUCTION: the caches do not see writes to memory by themselves",
        check: stale_instructions,
    },
    Rule {
        name: "unordered-copy",
        finds: "a launch whose argument points into what another channel copied, without a wait between them",
        source: "channels run independently; only a semaphore orders them, or the CPU, whose waiting a capture does not show",
        check: unordered_copy,
    },
    Rule {
        name: "constant-bank-size",
        finds: "a descriptor whose constant bank reaches past its allocation or above 64 KiB",
        source: "QMD CONSTANT_BUFFER_SIZE_SHIFTED4 counts 16 bytes; a size given in bytes is 16 times too large",
        check: constant_bank_size,
    },
    Rule {
        name: "disabled-slot",
        finds: "descriptor fields that the hardware ignores because their slot is not enabled",
        source: "QMD RELEASE_ENABLE, CONSTANT_BUFFER_VALID, DEPENDENT_QMD_ENABLE",
        check: disabled_slot,
    },
    Rule {
        name: "no-such-method",
        finds: "a method, field or value that the class does not have",
        source: "the class headers of NVIDIA/open-gpu-doc; measured on an H200: Xid 11 or 69",
        check: no_such_method,
    },
    Rule {
        name: "indistinguishable-release",
        finds: "the same value released twice to one address by one submission, without a wait for it in between",
        source: "who waits for it cannot tell the second release from the first",
        check: indistinguishable_release,
    },
    Rule {
        name: "ring-overrun",
        finds: "a ring entry, or command memory, that is written again although nothing told that the GPU had read it",
        source: "measured on an H200: the get pointer runs ahead of what is read, and command memory given back by it was \
                 overwritten in use (Xid 32); only a release behind the work says that it was read",
        check: ring_overrun,
    },
    Rule {
        name: "freed-memory",
        finds: "an address whose mapping went before the submission",
        source: "the GPU faults on it (Xid 31), or reads what lies there next",
        check: freed_memory,
    },
];

/// One submission, decoded.
struct Submitted<'a> {
    number: usize,
    channel: u32,
    /// Where its pushbuffer lies.
    place: Option<u64>,
    words: &'a [u32],
    packets: &'a [Packet],
    steps: &'a [Step],
    version: Version,
    /// Descriptors and banks by address.
    memory: &'a BTreeMap<(MemoryKind, u64), Vec<u8>>,
}

impl Submitted<'_> {
    /// The descriptors that the submission launches, those that depend on others included.
    fn launches(&self) -> Vec<Launched> {
        let mut found = Vec::new();
        for step in self.steps {
            let Action::Launch { qmd, inline, .. } = &step.action else { continue };
            let read = |address: u64, _: usize| {
                let noted = self.memory.get(&(MemoryKind::Qmd, address)).cloned();
                noted.or_else(|| (address == *qmd).then(|| inline.clone()).flatten())
            };
            for (address, bytes) in chain(self.version, *qmd, read) {
                if let Ok(launch) = qmd::read(self.version, &bytes) {
                    found.push(Launched { offset: step.offset, address, bytes, launch });
                }
            }
        }
        found
    }
}

/// A descriptor that is launched.
struct Launched {
    /// Byte offset of the launch in the pushbuffer.
    offset: usize,
    /// Where the descriptor lies.
    address: u64,
    bytes: Vec<u8>,
    launch: Launch,
}

/// What rules remember from one submission to the next.
struct Linter<'a> {
    symbols: &'a Symbols,
    tracker: Tracker,
    /// The name of the rule that is being checked.
    rule: &'static str,
    findings: Vec<Finding>,
    /// By channel: work that no release waits for yet.
    unfinished: BTreeMap<u32, &'static str>,
    /// Ranges that were written since instruction caches were last invalidated.
    written: Vec<(u64, u64)>,
    /// Copies by channel: range, and the semaphore that is released behind it, once that is known.
    copies: Vec<Copied>,
    /// Ranges that went.
    freed: Vec<(u64, u64)>,
    /// By channel: command memory of submissions that no release stands behind yet, with its words.
    unread: BTreeMap<u32, Vec<(u64, Vec<u32>)>>,
}

#[derive(Debug)]
struct Copied {
    channel: u32,
    start: u64,
    bytes: u64,
    semaphore: Option<(u64, u64)>,
    /// Channels that waited for it.
    waited: Vec<u32>,
}

impl Linter<'_> {
    /// Notes what the rule that is being checked has found.
    fn find(&mut self, of: &Submitted<'_>, offset: Option<usize>, what: String) {
        self.findings.push(Finding { rule: self.rule, submission: of.number, offset, what });
    }
}

/// Checks a capture by every rule.
pub fn lint(capture: &Capture) -> Vec<Finding> {
    let symbols = Symbols::of(capture);
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut memory = BTreeMap::new();
    let mut number = 0;
    let mut linter = Linter {
        symbols: &symbols,
        tracker: Tracker::new(capture.branch),
        rule: "",
        findings: Vec::new(),
        unfinished: BTreeMap::new(),
        written: Vec::new(),
        copies: Vec::new(),
        freed: Vec::new(),
        unread: BTreeMap::new(),
    };
    for event in &capture.events {
        match event {
            Event::Ioctl(call) => {
                linter.tracker.ioctl(call);
                let new = linter.tracker.take_new_gpu_ranges();
                linter.freed.retain(|(start, _)| !new.iter().any(|(new, _)| new == start));
                let old = linter.tracker.take_old_gpu_ranges();
                // What comes to lie there next is other memory.
                linter.copies.retain(|copy| !old.iter().any(|range| holds(*range, copy.start)));
                linter.freed.extend(old);
            }
            Event::Memory(Memory { kind, address, bytes }) => {
                memory.insert((*kind, *address), bytes.clone());
            }
            Event::Submission(submission) => {
                let stream =
                    streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
                if let Some(words) = &submission.words {
                    let (packets, steps) = stream.segment(words);
                    let submitted = Submitted {
                        number,
                        channel: submission.channel,
                        place: match Entry::decode(submission.entry) {
                            Entry::Segment { address, .. } => Some(address),
                            Entry::Control { .. } => None,
                        },
                        words,
                        packets: &packets,
                        steps: &steps,
                        version: stream.qmd_version(),
                        memory: &memory,
                    };
                    for rule in RULES {
                        linter.rule = rule.name;
                        (rule.check)(&mut linter, &submitted);
                    }
                }
                number += 1;
            }
            _ => {}
        }
    }
    // Launches of one chain stand at one word, and may all use the same.
    linter.findings.dedup();
    linter.findings
}

fn misaligned_semaphore(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    for step in submitted.steps {
        let (address, unit, why) = match &step.action {
            Action::Acquire { address, wide: true, .. } => (*address, 8, "64-bit payload"),
            Action::Release { address, timestamp: true, .. } => (*address, 16, "timestamp"),
            Action::Release { address, wide: true, .. } => (*address, 8, "64-bit payload"),
            _ => continue,
        };
        if address % unit != 0 {
            let what = format!("a semaphore with a {why} at {address:#x}, which is no multiple of {unit}");
            linter.find(submitted, Some(step.offset), what);
        }
    }
}

fn release_without_wait(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    for step in submitted.steps {
        match &step.action {
            Action::Launch { .. } => {
                linter.unfinished.insert(submitted.channel, "launch");
            }
            Action::Copy { .. } => {
                linter.unfinished.insert(submitted.channel, "copy");
            }
            Action::WaitForIdle | Action::CopyRelease { .. } | Action::Report { .. } => {
                linter.unfinished.remove(&submitted.channel);
            }
            Action::Invalidate { wait_for_idle: true, .. } => {
                linter.unfinished.remove(&submitted.channel);
            }
            Action::Release { wait_for_idle, address, payload, .. } => {
                if let Some(work) = linter.unfinished.get(&submitted.channel)
                    && !wait_for_idle
                {
                    let at = linter.symbols.text(*address);
                    let what =
                        format!("{payload:#x} to {at} may come before the end of the {work} in front of it");
                    linter.find(submitted, Some(step.offset), what);
                }
                linter.unfinished.remove(&submitted.channel);
            }
            _ => {}
        }
    }
}

fn stale_instructions(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    // Both methods that invalidate shader caches have the field at one place.
    let drops_instructions =
        |data: u32| INVALIDATE_SHADER_CACHES_NO_WFI::INSTRUCTION.decode(data.into()) != 0;
    let launches = submitted.launches();
    for step in submitted.steps {
        match &step.action {
            Action::Upload { address, bytes } => linter.written.push((*address, bytes.len() as u64)),
            Action::Copy { destination, line, lines, .. } => {
                linter.written.push((*destination, u64::from(*line) * u64::from(*lines)));
            }
            Action::Invalidate { data, .. } if drops_instructions(*data) => linter.written.clear(),
            Action::Launch { .. } => {
                for launched in launches.iter().filter(|launched| launched.offset == step.offset) {
                    let program = launched.launch.program_address;
                    let stale = linter.written.iter().any(|range| holds(*range, program));
                    if stale {
                        let at = linter.symbols.text(program);
                        let what = format!(
                            "the code at {at} was written after the last invalidation of instructions"
                        );
                        linter.find(submitted, Some(step.offset), what);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The pointers among the parameters of a launch: pairs of words that lie in a mapping.
fn pointers(linter: &Linter<'_>, submitted: &Submitted<'_>, launch: &Launch) -> Vec<u64> {
    let Some(bank) = launch.constant_buffers[0] else { return Vec::new() };
    let Some(bytes) = submitted.memory.get(&(MemoryKind::ConstantBank, bank.address)) else {
        return Vec::new();
    };
    let words = of_bytes(bytes);
    let known = |address| linter.tracker.gpu_range(address).is_some();
    (0..words.len()).filter_map(|index| address_at(&words, index, known)).collect()
}

fn unordered_copy(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    let launches = submitted.launches();
    for step in submitted.steps {
        match &step.action {
            Action::Copy { destination, line, lines, release, .. } => {
                linter.copies.push(Copied {
                    channel: submitted.channel,
                    start: *destination,
                    bytes: u64::from(*line) * u64::from(*lines),
                    semaphore: *release,
                    waited: Vec::new(),
                });
            }
            Action::CopyRelease { address, payload, .. }
            | Action::Release { address, payload, wait_for_idle: true, .. } => {
                let behind = linter.copies.iter_mut().filter(|copy| copy.channel == submitted.channel);
                for copy in behind.filter(|copy| copy.semaphore.is_none()) {
                    copy.semaphore = Some((*address, *payload));
                }
            }
            Action::Acquire { address, payload, .. } => {
                for copy in &mut linter.copies {
                    let done = copy.semaphore.is_some_and(|(at, value)| at == *address && value <= *payload);
                    if done {
                        copy.waited.push(submitted.channel);
                    }
                }
            }
            Action::Launch { .. } => {
                for launched in launches.iter().filter(|launched| launched.offset == step.offset) {
                    let used = pointers(linter, submitted, &launched.launch);
                    let unordered = linter.copies.iter().find(|copy| {
                        copy.channel != submitted.channel
                            && !copy.waited.contains(&submitted.channel)
                            && used.iter().any(|at| holds((copy.start, copy.bytes), *at))
                    });
                    if let Some(copy) = unordered {
                        let at = linter.symbols.text(copy.start);
                        let what = format!(
                            "the launch uses {at}, which channel {:#x} may still be copying unless the CPU has waited",
                            copy.channel
                        );
                        linter.find(submitted, Some(step.offset), what);
                    }
                }
            }
            _ => {}
        }
    }
}

fn constant_bank_size(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    const LARGEST: u64 = 64 << 10;
    for Launched { offset, launch, .. } in submitted.launches() {
        for (index, bank) in launch.constant_buffers.iter().enumerate() {
            let Some(bank) = bank else { continue };
            let left = linter
                .tracker
                .gpu_range(bank.address)
                .map_or(u64::MAX, |(start, bytes)| bytes - (bank.address - start));
            let why = if bank.bytes > LARGEST {
                "above the limit of 64 KiB".to_owned()
            } else if bank.bytes > left {
                format!("and its allocation ends after {left}")
            } else {
                continue;
            };
            let what =
                format!("constant bank {index} at {:#x} has {} bytes, {why}", bank.address, bank.bytes);
            linter.find(submitted, Some(offset), what);
        }
    }
}

fn disabled_slot(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    let rows = submitted.version.rows();
    for Launched { offset, address, bytes, .. } in submitted.launches() {
        let bits = Bits::new(&bytes);
        // The descriptor has been read, so it has all of its bits.
        let is_set = |field: &Field, index| bits.get_at(field, index).is_ok_and(|value| value != 0);
        let mut ignored = Vec::new();
        for index in (0..CONSTANT_BUFFERS).filter(|index| !is_set(&rows.constant_valid, *index)) {
            let fields = [&rows.constant_size, &rows.constant_address.lower];
            let set = fields.into_iter().filter(|field| is_set(field, index));
            ignored.extend(set.map(|field| format!("{}[{index}]", field.name)));
        }
        for release in rows.releases.iter().filter(|release| !is_set(&release.enable, 0)) {
            let address = &release.address.lower;
            ignored.extend(is_set(address, 0).then(|| address.name.to_owned()));
        }
        for dependent in rows.dependents.iter().filter(|dependent| !is_set(&dependent.enable, 0)) {
            let pointer = dependent.pointer.filter(|pointer| is_set(pointer, 0));
            ignored.extend(pointer.map(|pointer| pointer.name.to_owned()));
        }
        for name in ignored {
            let what =
                format!("{name} of the descriptor at {address:#x} is set, but its slot is not enabled");
            linter.find(submitted, Some(offset), what);
        }
    }
}

fn no_such_method(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    for packet in submitted.packets {
        let mut unknowns = Unknowns::default();
        packet.count_unknown(&mut unknowns);
        for (what, _) in unknowns.iter() {
            linter.find(submitted, Some(packet.offset), what.to_owned());
        }
    }
}

fn indistinguishable_release(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    // Between two submissions the CPU may have set the value back, which a capture does not show.
    let mut released: BTreeMap<u64, u64> = BTreeMap::new();
    for step in submitted.steps {
        match &step.action {
            // Payload 0 with a time beside it only wants the time.
            Action::Release { payload: 0, timestamp: true, .. } => {}
            Action::Release { address, payload, operation: "RELEASE", .. } => {
                let before = released.insert(*address, *payload);
                if before == Some(*payload) {
                    let what = format!("{} again", describe(&step.action, linter.symbols));
                    linter.find(submitted, Some(step.offset), what);
                }
            }
            Action::Acquire { address, .. } => {
                released.remove(address);
            }
            _ => {}
        }
    }
}

fn ring_overrun(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    let entries = linter.tracker.channel(submitted.channel).map(|channel| channel.entries as usize);
    let unread = linter.unread.entry(submitted.channel).or_default();
    let mut found = Vec::new();
    // One entry always stays free: a ring that is full looks like an empty one.
    if let Some(entries) = entries.filter(|entries| *entries > 0 && unread.len() + 1 >= *entries) {
        found.push(format!(
            "the ring has {entries} entries, and {} before this one may be unread",
            unread.len()
        ));
    }
    if let Some(place) = submitted.place {
        let bytes = |words: &[u32]| words.len() as u64 * 4;
        // The same words once more are no harm.
        let old = unread.iter().find(|(start, words)| {
            *start < place.saturating_add(bytes(submitted.words))
                && place < start.saturating_add(bytes(words))
                && (*start != place || words != submitted.words)
        });
        found.extend(old.map(|(start, _)| {
            format!(
                "the commands at {start:#x} were overwritten, and nothing told that the GPU had read them"
            )
        }));
        unread.push((place, submitted.words.to_vec()));
    }
    let releases = submitted.steps.iter().any(|step| {
        matches!(
            step.action,
            Action::Release { .. }
                | Action::Report { .. }
                | Action::CopyRelease { .. }
                | Action::Copy { release: Some(_), .. }
        )
    });
    if releases || submitted.launches().iter().any(|launched| !launched.launch.releases.is_empty()) {
        unread.clear();
    }
    found.into_iter().for_each(|what| linter.find(submitted, None, what));
}

fn freed_memory(linter: &mut Linter<'_>, submitted: &Submitted<'_>) {
    let mut used: Vec<(usize, u64)> = Vec::new();
    for step in submitted.steps {
        let at = step.offset;
        match &step.action {
            Action::Acquire { address, .. }
            | Action::Release { address, .. }
            | Action::Report { address, .. }
            | Action::Upload { address, .. }
            | Action::CopyRelease { address, .. }
            | Action::LocalMemory { address } => used.push((at, *address)),
            Action::Copy { source, destination, .. } => used.extend([(at, *source), (at, *destination)]),
            Action::Launch { qmd, .. } => used.push((at, *qmd)),
            _ => {}
        }
    }
    for Launched { offset, launch, .. } in submitted.launches() {
        used.push((offset, launch.program_address));
        used.extend(pointers(linter, submitted, &launch).into_iter().map(|address| (offset, address)));
    }
    for (offset, address) in used {
        let gone = linter.freed.iter().any(|range| holds(*range, address));
        if gone && linter.tracker.gpu_range(address).is_none() {
            let what = format!("{address:#x} was unmapped before");
            linter.find(submitted, Some(offset), what);
        }
    }
}
