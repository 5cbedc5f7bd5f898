//! Captures and pushbuffers with addresses that depend on nothing but the program: every range that is used gets a
//! place of its own, in the order of first use. Two runs of one program then read the same.

use std::collections::{BTreeMap, HashMap};

use nv_abi::{
    dump::{Packet, class_name},
    gpfifo::Entry,
    host,
    qmd::{self, Version},
};

use crate::{
    Capture,
    action::Stream,
    event::{Event, Memory, MemoryKind, Submission, Symbol},
    tracker::Tracker,
    words::{address_at, of_bytes, to_bytes},
};

/// Places are so far apart; offsets inside a range are kept.
const SPACING: u64 = 1 << 32;
/// An address in no known range stands for its page.
const PAGE: u64 = 0x1000;

/// Which place each range got.
#[derive(Clone, Debug, Default)]
pub struct Places {
    ranges: BTreeMap<u64, u64>,
    given: HashMap<u64, u64>,
}

impl Places {
    /// No ranges known, no places given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a range known: its addresses stay together.
    pub fn insert(&mut self, address: u64, bytes: u64) {
        self.ranges.insert(address, bytes);
    }

    fn range(&self, address: u64) -> Option<u64> {
        let (start, bytes) = self.ranges.range(..=address).next_back()?;
        (address - start < *bytes).then_some(*start)
    }

    /// Where an address goes. 0 stays 0.
    pub fn place(&mut self, address: u64) -> u64 {
        if address == 0 {
            return 0;
        }
        let start = self.range(address).unwrap_or(address & !(PAGE - 1));
        let next = (self.given.len() as u64 + 1) * SPACING;
        self.given.entry(start).or_insert(next).wrapping_add(address - start)
    }

    /// Moves pointers among words: two words that together lie in a known range.
    fn place_pointers(&mut self, words: &mut [u32]) {
        let mut index = 0;
        while index < words.len() {
            match address_at(words, index, |number| self.range(number).is_some()) {
                Some(address) => {
                    let moved = self.place(address);
                    (words[index], words[index + 1]) = (moved as u32, (moved >> 32) as u32);
                    index += 2;
                }
                None => index += 1,
            }
        }
    }
}

/// Methods that hold one address between them: the upper word's and the lower word's.
const PAIRS: [(&str, &str); 16] = [
    ("SEM_ADDR_HI", "SEM_ADDR_LO"),
    ("SEMAPHOREA", "SEMAPHOREB"),
    ("OFFSET_OUT_UPPER", "OFFSET_OUT"),
    ("SET_REPORT_SEMAPHORE_A", "SET_REPORT_SEMAPHORE_B"),
    ("SET_REPORT_SEMAPHORE_ADDRESS_UPPER", "SET_REPORT_SEMAPHORE_ADDRESS_LOWER"),
    ("SET_I2M_SEMAPHORE_A", "SET_I2M_SEMAPHORE_B"),
    ("SET_SHADER_LOCAL_MEMORY_A", "SET_SHADER_LOCAL_MEMORY_B"),
    ("SET_TEX_SAMPLER_POOL_A", "SET_TEX_SAMPLER_POOL_B"),
    ("SET_TEX_HEADER_POOL_A", "SET_TEX_HEADER_POOL_B"),
    ("SET_TRAP_HANDLER_A", "SET_TRAP_HANDLER_B"),
    ("SET_VALID_SPAN_OVERFLOW_AREA_A", "SET_VALID_SPAN_OVERFLOW_AREA_B"),
    ("SET_RENDER_ENABLE_A", "SET_RENDER_ENABLE_B"),
    ("OFFSET_IN_UPPER", "OFFSET_IN_LOWER"),
    ("OFFSET_OUT_UPPER", "OFFSET_OUT_LOWER"),
    ("SET_SEMAPHORE_A", "SET_SEMAPHORE_B"),
    ("SET_NOTIFY_A", "SET_NOTIFY_B"),
];

/// The halves of one address as far as they were sent: the word, and where it stands if that is in this segment.
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    words: [u32; 2],
    index: [Option<usize>; 2],
}

/// Addresses that a channel has sent.
#[derive(Clone, Debug, Default)]
struct Pointers(HashMap<(u8, usize), Halves>);

impl Pointers {
    /// Moves the addresses of a segment.
    fn segment(&mut self, words: &mut [u32], packets: &[Packet], version: Version, places: &mut Places) {
        for halves in self.0.values_mut() {
            halves.index = [None; 2];
        }
        for packet in packets {
            let Ok(header) = packet.header else { continue };
            let mut touched = Vec::new();
            let mut inline = Vec::new();
            for call in &packet.calls {
                let Some((method, _)) = call.method else { continue };
                let index = call.offset / 4;
                if method.name == "SEND_PCAS_A" {
                    words[index] = (places.place(u64::from(call.word) << 8) >> 8) as u32;
                }
                if method.name == "LOAD_INLINE_DATA" {
                    inline.push(index);
                }
                let slot = if call.address < host::METHODS_END { 0 } else { header.subchannel };
                let pair = PAIRS.iter().enumerate().find_map(|(pair, (upper, lower))| match method.name {
                    // Both kinds of engine have the upper half under one name.
                    name if name == *lower => Some((pair, 1)),
                    name if name == *upper && is_pair_of(&packet.owner, lower) => Some((pair, 0)),
                    _ => None,
                });
                let Some((pair, half)) = pair else { continue };
                let halves = self.0.entry((slot, pair)).or_default();
                halves.words[half] = call.word;
                halves.index[half] = Some(index);
                touched.push((slot, pair));
            }
            for key in touched {
                let Some(halves) = self.0.get(&key) else { continue };
                let [upper, lower] = halves.words;
                let moved = places.place(u64::from(upper) << 32 | u64::from(lower));
                for (index, word) in halves.index.iter().zip([(moved >> 32) as u32, moved as u32]) {
                    if let Some(index) = index {
                        words[*index] = word;
                    }
                }
            }
            if let [first, .., last] = inline[..] {
                let data = &mut words[first..=last];
                let mut bytes = to_bytes(data);
                if bytes.len() == version.bytes()
                    && qmd::relocate(version, &mut bytes, |a| places.place(a)).is_ok()
                {
                    data.copy_from_slice(&of_bytes(&bytes));
                } else {
                    places.place_pointers(data);
                }
            }
        }
    }
}

/// Whether the class of that name has the method.
fn is_pair_of(owner: &str, lower: &str) -> bool {
    let tables = [host::CLASSES, nv_abi::compute::CLASSES, nv_abi::copy::CLASSES];
    owner == "host"
        || tables
            .into_iter()
            .flatten()
            .any(|table| class_name(table.number) == owner && table.named(lower).is_some())
}

/// A segment with its addresses moved. `stream` is the channel's state before it, and after it on return.
pub fn segment(words: &[u32], stream: &mut Stream, places: &mut Places) -> Vec<u32> {
    moved(words, stream, &mut Pointers::default(), places)
}

fn moved(words: &[u32], stream: &mut Stream, pointers: &mut Pointers, places: &mut Places) -> Vec<u32> {
    let (packets, _) = stream.segment(words);
    let mut moved = words.to_vec();
    pointers.segment(&mut moved, &packets, stream.qmd_version(), places);
    moved
}

/// What a capture says of submissions, with addresses moved: symbols, memory, submissions and faults. Calls and
/// mappings are left out: they are how the ranges became known.
pub fn normalise(capture: &Capture) -> Capture {
    let mut places = Places::new();
    let mut tracker = Tracker::new(capture.branch);
    for event in &capture.events {
        match event {
            Event::Ioctl(call) => tracker.ioctl(call),
            Event::Symbol(symbol) if tracker.gpu_range(symbol.address).is_none() => {
                places.insert(symbol.address, symbol.bytes);
            }
            _ => {}
        }
        for (address, bytes) in tracker.take_new_gpu_ranges() {
            places.insert(address, bytes);
        }
    }
    let mut streams: HashMap<u32, (Stream, Pointers)> = HashMap::new();
    // Memory stands before the submission that needs it, but its place follows from the submission.
    let mut waiting: Vec<&Memory> = Vec::new();
    let mut events = Vec::new();
    let mut symbols = Vec::new();
    for event in &capture.events {
        match event {
            Event::Memory(memory) => waiting.push(memory),
            Event::Submission(submission) => {
                let (stream, pointers) = streams
                    .entry(submission.channel)
                    .or_insert_with(|| (Stream::new(submission.class), Pointers::default()));
                let words =
                    submission.words.as_ref().map(|words| moved(words, stream, pointers, &mut places));
                let version = stream.qmd_version();
                let memory: Vec<Event> = waiting
                    .drain(..)
                    .rev()
                    .map(|memory| Event::Memory(memory_moved(memory, version, &mut places)))
                    .collect();
                events.extend(memory.into_iter().rev());
                let entry = entry_moved(submission.entry, &mut places);
                events.push(Event::Submission(Submission { words, entry, time: None, ..submission.clone() }));
            }
            Event::Symbol(symbol) => symbols.push(symbol),
            Event::Fault(_) => events.push(event.clone()),
            _ => {}
        }
    }
    // Only what was used: places given here would depend on the order of the names.
    let used = symbols.into_iter().filter(|symbol| {
        let start = places.range(symbol.address).unwrap_or(symbol.address & !(PAGE - 1));
        places.given.contains_key(&start)
    });
    let named: Vec<Symbol> = used.cloned().collect();
    let mut all: Vec<Event> = named
        .into_iter()
        .map(|symbol| Event::Symbol(Symbol { address: places.place(symbol.address), ..symbol }))
        .collect();
    all.extend(events);
    Capture { branch: capture.branch, events: all }
}

fn memory_moved(memory: &Memory, version: Version, places: &mut Places) -> Memory {
    let mut bytes = memory.bytes.clone();
    let relocated =
        memory.kind == MemoryKind::Qmd && qmd::relocate(version, &mut bytes, |a| places.place(a)).is_ok();
    if !relocated {
        let mut words = of_bytes(&bytes);
        places.place_pointers(&mut words);
        bytes[..words.len() * 4].copy_from_slice(&to_bytes(&words));
    }
    Memory { kind: memory.kind, address: places.place(memory.address), bytes }
}

fn entry_moved(raw: u64, places: &mut Places) -> u64 {
    match Entry::decode(raw) {
        Entry::Segment { address, length, subroutine, sync, conditional } => {
            let address = places.place(address);
            // A place may lie above the entry's 40 bits when a capture uses very many ranges; the old one then stays.
            Entry::Segment { address, length, subroutine, sync, conditional }.encode().unwrap_or(raw)
        }
        Entry::Control { .. } => raw,
    }
}
