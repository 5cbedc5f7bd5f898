//! Captures and pushbuffers as text for people: what was submitted, what it does, what it launches.

use std::{collections::HashMap, fmt::Write};

use nv_abi::{
    arch::Generation,
    dump::{self, class_name},
    qmd,
};

use crate::{
    Capture,
    action::{Action, Stream, chain},
    describe,
    describe::by,
    event::{Event, Memory, MemoryKind, Submission},
    normal::{Places, segment},
    symbols::Symbols,
};

/// The submissions of a capture but the first `skip`: per submission its ring entry, its words, what it does, and the
/// descriptors and arguments of its launches. With names for addresses, where the capture has some.
pub fn submissions(capture: &Capture, skip: usize) -> String {
    let mut out = String::new();
    for (address, bytes, name) in Symbols::of(capture).iter() {
        let _ = writeln!(out, "{address:#x}  {bytes:>8} bytes  {name}");
    }
    let mut seen = 0;
    for section in sections(capture) {
        if let Section::Submission(_) = section {
            seen += 1;
        }
        match section {
            Section::Fault(text) => {
                let _ = writeln!(out, "\nfault: {text}");
            }
            Section::Note(text) => {
                let _ = writeln!(out, "\nnote: {text}");
            }
            Section::Submission(text) if seen > skip => {
                out.push('\n');
                out.push_str(&text);
            }
            Section::Submission(_) => {}
        }
    }
    out
}

/// A part of a capture, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// A channel's end.
    Fault(String),
    /// What whoever recorded has to say.
    Note(String),
    /// A submission, with its words and the descriptors and arguments of its launches.
    Submission(String),
}

/// The submissions, faults and notes of a capture, in order.
pub fn sections(capture: &Capture) -> Vec<Section> {
    let symbols = Symbols::of(capture);
    let mut sections = Vec::new();
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut memory = Vec::new();
    for event in &capture.events {
        match event {
            Event::Memory(found) => memory.push(found),
            Event::Fault(text) => sections.push(Section::Fault(text.clone())),
            Event::Note(text) => sections.push(Section::Note(text.clone())),
            Event::Submission(submission) => {
                let stream =
                    streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
                let text = submission_text(submission, stream, &mut memory, &symbols);
                sections.push(Section::Submission(text));
            }
            _ => {}
        }
    }
    sections
}

/// One submission, with the `memory` that was noted since the one before.
fn submission_text(
    submission: &Submission,
    stream: &mut Stream,
    memory: &mut Vec<&Memory>,
    symbols: &Symbols,
) -> String {
    let mut out = format!(
        "slot {} of channel {:#x} ({}): {}\n",
        submission.slot,
        submission.channel,
        class_name(submission.class),
        dump::entry(submission.entry)
    );
    let Some(words) = &submission.words else { return out };
    let (packets, steps) = stream.segment(words);
    for packet in &packets {
        out.push_str(&dump::packet(packet));
    }
    for step in &steps {
        let _ = writeln!(out, "  = {}", describe(&step.action, symbols));
    }
    let (version, generation) = (stream.qmd_version(), stream.generation());
    // The descriptor of a launch comes after its dependents' in no order that matters: by their places.
    for found in memory.drain(..) {
        let name = symbols.text(found.address);
        match found.kind {
            MemoryKind::Qmd => {
                let _ = write!(out, "at {name}: ");
                match dump::qmd(version, &found.bytes) {
                    Ok(text) => out.push_str(&text),
                    Err(error) => {
                        let _ = writeln!(out, "{error}");
                    }
                }
            }
            MemoryKind::ConstantBank => {
                let _ = write!(out, "at {name}: ");
                out.push_str(&dump::constant_bank(generation, &found.bytes));
            }
            MemoryKind::Other => {
                let _ = writeln!(out, "at {name}: {} bytes", found.bytes.len());
            }
        }
    }
    out
}

/// The launches of a capture: per launch its kernel, grid, block, shared memory, registers and the constants that it
/// reads. Descriptors come from the capture's memory, or from what the pushbuffers themselves upload.
pub fn launches(capture: &Capture) -> String {
    let symbols = Symbols::of(capture);
    let mut out = String::new();
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut noted: HashMap<(MemoryKind, u64), Vec<u8>> = HashMap::new();
    let mut count = 0;
    for event in &capture.events {
        match event {
            Event::Memory(memory) => {
                noted.insert((memory.kind, memory.address), memory.bytes.clone());
            }
            Event::Submission(submission) => {
                let stream =
                    streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
                let Some(words) = &submission.words else { continue };
                let (_, steps) = stream.segment(words);
                let (version, generation) = (stream.qmd_version(), stream.generation());
                let sent: Vec<u64> = steps
                    .iter()
                    .filter_map(|step| match step.action {
                        Action::Launch { qmd, .. } => Some(qmd),
                        _ => None,
                    })
                    .collect();
                for step in steps {
                    let Action::Launch { qmd: first, action, inline } = step.action else { continue };
                    let read = |address: u64, bytes: usize| {
                        let own = inline.clone().filter(|_| address == first);
                        own.or_else(|| noted.get(&(MemoryKind::Qmd, address)).cloned())
                            .or_else(|| stream.written(address, bytes))
                    };
                    for (address, bytes) in chain(version, first, read) {
                        // What depends on another launch may be handed over itself as well.
                        if address != first && sent.contains(&address) {
                            continue;
                        }
                        count += 1;
                        let _ = writeln!(
                            out,
                            "launch {count}: channel {:#x}, slot {}, {action}, descriptor at {}",
                            submission.channel,
                            submission.slot,
                            symbols.text(address)
                        );
                        let Ok(launch) = qmd::read(version, &bytes) else {
                            let _ = writeln!(out, "  not readable as {version:?}");
                            continue;
                        };
                        launch_text(&mut out, &launch, &symbols);
                        if let Some(bank) = launch.constant_buffers[0] {
                            let bytes = noted
                                .get(&(MemoryKind::ConstantBank, bank.address))
                                .cloned()
                                .or_else(|| stream.written_part(bank.address, bank.bytes as usize));
                            match bytes {
                                Some(bytes) => {
                                    out.push_str(&indent(&dump::constant_bank(generation, &bytes)));
                                }
                                None => {
                                    let _ = writeln!(out, "  constant bank 0 was not recorded");
                                }
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let _ = writeln!(out, "{count} launches");
    out
}

fn launch_text(out: &mut String, launch: &qmd::Launch, symbols: &Symbols) {
    if launch.program_address == 0 {
        let _ = writeln!(out, "  no program: it only starts what depends on it");
    } else {
        let _ = writeln!(
            out,
            "  {}, grid {}, block {}",
            symbols.text(launch.program_address),
            by(launch.grid),
            by(launch.block)
        );
    }
    let _ = writeln!(
        out,
        "  {} registers, {} barriers, {} bytes of shared memory, {} + {} bytes of local memory",
        launch.registers,
        launch.barriers,
        launch.shared_bytes,
        launch.local_low_bytes,
        launch.local_high_bytes
    );
    for (index, bank) in launch.constant_buffers.iter().enumerate() {
        if let Some(bank) = bank {
            let _ = writeln!(out, "  c[{index:#x}]: {} bytes at {}", bank.bytes, symbols.text(bank.address));
        }
    }
    for release in &launch.releases {
        let _ = writeln!(out, "  then {:#x} to {}", release.payload, symbols.text(release.address));
    }
    for dependent in &launch.dependents {
        let _ = writeln!(out, "  then the descriptor at {}", symbols.text(dependent.address));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// What every submission does, an action a line.
pub fn actions(capture: &Capture) -> String {
    let symbols = Symbols::of(capture);
    let mut out = String::new();
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    for event in &capture.events {
        let Event::Submission(submission) = event else { continue };
        let stream = streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
        let _ = writeln!(out, "channel {:#x}, slot {}", submission.channel, submission.slot);
        let Some(words) = &submission.words else { continue };
        for step in stream.segment(words).1 {
            let _ = writeln!(out, "  {}", describe(&step.action, &symbols));
        }
    }
    out
}

/// How a pushbuffer is printed for a snapshot: which generation it is for, what its subchannels hold, and which of its
/// addresses belong together.
///
/// ```
/// use nv_abi::arch::Generation;
/// use nv_capture::Listing;
///
/// // Two words to SEM_ADDR_LO and SEM_ADDR_HI.
/// let words = [0x2002_0017, 0x3040_5010, 0x7f];
/// let text = Listing::new(Generation::Ada).text(&words);
/// assert!(text.contains("SEM_ADDR_LO  OFFSET=0x10\n"), "{text}");
/// ```
#[derive(Clone, Debug)]
pub struct Listing {
    stream: Stream,
    places: Places,
    ranges: Vec<(u64, u64, String)>,
}

impl Listing {
    /// For pushbuffers of a generation, with its compute class on subchannel 1 and its copy class on subchannel 4.
    pub fn new(generation: Generation) -> Self {
        let mut stream = Stream::of(generation);
        stream.bind(1, generation.classes().compute);
        stream.bind(4, generation.classes().copy);
        Self { stream, places: Places::new(), ranges: Vec::new() }
    }

    /// As if SET_OBJECT with this class had been sent before.
    #[must_use]
    pub fn bind(mut self, subchannel: u8, class: u32) -> Self {
        self.stream.bind(subchannel, class);
        self
    }

    /// Names a range of addresses.
    #[must_use]
    pub fn name(mut self, address: u64, bytes: u64, name: &str) -> Self {
        self.places.insert(address, bytes);
        self.ranges.push((address, bytes, name.to_owned()));
        self
    }

    /// The words as text that depends on no address: each range, or page of addresses without one, has a place of its
    /// own in the order of first use.
    pub fn text(&mut self, words: &[u32]) -> String {
        let mut before = self.stream.clone();
        let moved = segment(words, &mut self.stream, &mut self.places);
        let mut symbols = Symbols::new();
        for (address, bytes, name) in &self.ranges {
            symbols.insert(self.places.place(*address), *bytes, name);
        }
        let (packets, steps) = before.segment(&moved);
        let mut out: String = packets.iter().map(dump::packet).collect();
        for step in steps {
            let _ = writeln!(out, "  = {}", describe(&step.action, &symbols));
            if let Action::Launch { inline: Some(bytes), .. } = &step.action {
                let version = before.qmd_version();
                if qmd::read(version, bytes).is_ok()
                    && let Ok(text) = dump::qmd(version, bytes)
                {
                    out.push_str(&text);
                }
            }
        }
        out
    }
}

/// Compares a pushbuffer's text with a snapshot, in one line: whatever addresses the run had.
///
/// Takes what [`Listing::new`] takes (or a [`Listing`]) and the words. The calling crate needs `insta` among its
/// dev-dependencies.
///
/// ```no_run
/// # let words = vec![0u32];
/// nv_capture::assert_pushbuffer_snapshot!(nv_abi::arch::Generation::Ada, &words);
/// ```
#[macro_export]
macro_rules! assert_pushbuffer_snapshot {
    ($listing:expr, $words:expr $(,)?) => {
        insta::assert_snapshot!($crate::Listing::from($listing).text($words))
    };
}

impl From<Generation> for Listing {
    fn from(generation: Generation) -> Self {
        Self::new(generation)
    }
}
