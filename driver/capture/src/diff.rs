//! What two captures, or two pushbuffers, mean differently.
//!
//! Both sides become items: per channel what each submission does, per launch what its descriptor and its arguments say,
//! and the calls. Items are aligned by what they are; addresses and handles are equal if they correspond one to one, so
//! that two runs of one program, on other addresses and with other handles, do not differ.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use nv_abi::{
    Node,
    dump::{FieldValue, Handles, qmd_fields},
    qmd,
    record::Kind,
};

use crate::{
    Capture,
    action::{Action, Stream},
    describe,
    describe::by,
    event::{Event, IoctlEvent, Memory, MemoryKind},
    symbols::Symbols,
    tracker::Tracker,
    words,
};

/// A value of an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    /// Compared as it is.
    Text(String),
    /// A name: compared by what it corresponds to.
    Name(Space, u64),
}

/// What a name is one of: those of different spaces are different even if their numbers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Space {
    /// Addresses and handles, which clients choose from one pool or the other.
    General,
    /// Descriptors, as the number of their opening: one that is closed and given out again is another.
    Descriptor,
    /// Channels, as doorbells name them.
    Token,
    /// Halves of addresses, as methods take them.
    Half,
}

/// One thing that one side does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Item {
    /// What kind of thing.
    kind: String,
    /// The thing in words, with its own side's addresses.
    text: String,
    values: Vec<(String, Value)>,
}

impl Item {
    /// Whether both are the same but for names.
    fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(|((a, x), (b, y))| {
                a == b
                    && match (x, y) {
                        (Value::Text(x), Value::Text(y)) => x == y,
                        (Value::Name(a, x), Value::Name(b, y)) => a == b && (*x == 0) == (*y == 0),
                        _ => false,
                    }
            })
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the second side does it.
    Added(String),
    /// Only the first side does it.
    Removed(String),
    /// Both do it, otherwise.
    Changed {
        /// What, in the words of the second side.
        what: String,
        /// How, a phrase for each value.
        how: Vec<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(what) => write!(f, "+ {what}"),
            Self::Removed(what) => write!(f, "- {what}"),
            Self::Changed { what, how } => {
                write!(f, "~ {what}")?;
                how.iter().try_for_each(|how| write!(f, "\n    {how}"))
            }
        }
    }
}

/// The differences of one stream: a channel, or the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Which stream.
    pub name: String,
    /// Its differences in order.
    pub changes: Vec<Change>,
}

/// All differences. Empty if both sides mean the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Streams that differ.
    pub sections: Vec<Section>,
    /// Items compared, of the longer side.
    pub compared: usize,
}

impl Diff {
    /// Whether both sides mean the same.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// How many differences there are.
    pub fn len(&self) -> usize {
        self.sections.iter().map(|section| section.changes.len()).sum()
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "no difference in meaning, {} items compared", self.compared);
        }
        for section in &self.sections {
            writeln!(f, "{}", section.name)?;
            // The same again is said once.
            let mut texts: Vec<(String, usize)> = Vec::new();
            for change in section.changes.iter().map(ToString::to_string) {
                match texts.iter_mut().find(|(text, _)| *text == change) {
                    Some((_, times)) => *times += 1,
                    None => texts.push((change, 1)),
                }
            }
            for (text, times) in texts {
                let (first, rest) = text.split_once('\n').map_or((&*text, None), |(a, b)| (a, Some(b)));
                match times {
                    1 => writeln!(f, "  {first}")?,
                    _ => writeln!(f, "  {first}  ({times} times)")?,
                }
                if let Some(rest) = rest {
                    writeln!(f, "  {}", rest.replace('\n', "\n  "))?;
                }
            }
        }
        let count = self.len();
        let plural = if count == 1 { "" } else { "s" };
        writeln!(f, "{count} difference{plural}, {} items compared", self.compared)
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Calls as well as submissions.
    pub calls: bool,
    /// How submissions are cut, and their ring entries.
    pub boundaries: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { calls: true, boundaries: true }
    }
}

/// Compares two captures.
pub fn captures(a: &Capture, b: &Capture, options: Options) -> Diff {
    let (left, right) = (streams(a, options), streams(b, options));
    let mut names = Names::default();
    let mut diff = Diff::default();
    let keys: Vec<&String> = {
        let mut keys: Vec<&String> = left.iter().map(|(key, _)| key).collect();
        keys.extend(right.iter().map(|(key, _)| key).filter(|key| !left.iter().any(|(k, _)| k == *key)));
        keys
    };
    let of = |side: &[(String, Vec<Item>)], key: &str| {
        side.iter().find(|(k, _)| k == key).map(|(_, items)| items.clone()).unwrap_or_default()
    };
    for key in keys {
        let (left, right) = (of(&left, key), of(&right, key));
        diff.compared += left.len().max(right.len());
        let changes = compare(&left, &right, &mut names);
        if !changes.is_empty() {
            diff.sections.push(Section { name: key.clone(), changes });
        }
    }
    diff
}

/// Compares two pushbuffers that begin in the same state.
pub fn pushbuffers(a: &[u32], b: &[u32], stream: &Stream) -> Diff {
    let items = |words: &[u32]| {
        let mut stream = stream.clone();
        let (_, steps) = stream.segment(words);
        let version = stream.qmd_version();
        let mut items = Vec::new();
        for step in steps {
            items.push(action_item(&step.action, &Symbols::new()));
            if let Action::Launch { inline: Some(bytes), .. } = &step.action {
                items.extend(qmd_item(version, bytes, &Symbols::new()));
            }
        }
        items
    };
    let (left, right) = (items(a), items(b));
    let changes = compare(&left, &right, &mut Names::default());
    let sections =
        if changes.is_empty() { Vec::new() } else { vec![Section { name: "pushbuffer".into(), changes }] };
    Diff { sections, compared: left.len().max(right.len()) }
}

/// Which name of one side corresponds to which of the other.
#[derive(Debug, Default)]
struct Names {
    forward: HashMap<(Space, u64), u64>,
    backward: HashMap<(Space, u64), u64>,
}

impl Names {
    /// Whether the two correspond; two that nobody has named yet do from now on.
    fn agree(&mut self, space: Space, a: u64, b: u64) -> bool {
        match (self.forward.get(&(space, a)), self.backward.get(&(space, b))) {
            (Some(known), _) => *known == b,
            (None, Some(_)) => false,
            (None, None) => {
                self.forward.insert((space, a), b);
                self.backward.insert((space, b), a);
                true
            }
        }
    }
}

/// Items of each stream. Channels are in the order in which they were made, which a program keeps to where it uses many at
/// once; those whose making the capture does not have, in the order in which they were first used.
fn streams(capture: &Capture, options: Options) -> Vec<(String, Vec<Item>)> {
    let symbols = Symbols::of(capture);
    let mut handles = Handles::new();
    let mut tracker = Tracker::new(capture.branch);
    let mut ranges: BTreeMap<u64, u64> = BTreeMap::new();
    let mut calls = Vec::new();
    let mut channels: Vec<(u32, Stream, Vec<Item>)> = Vec::new();
    let mut memory: Vec<&Memory> = Vec::new();
    // Openings so far, and which of them each descriptor is of.
    let mut opened = 0;
    let mut descriptors: HashMap<u64, u64> = HashMap::new();
    for event in &capture.events {
        match event {
            Event::Open { result: Ok(fd), .. } => {
                opened += 1;
                descriptors.insert(fd.0 as u64, opened);
            }
            Event::Ioctl(call) => {
                tracker.ioctl(call);
                ranges.extend(tracker.take_new_gpu_ranges());
                for channel in tracker.channels() {
                    if !channels.iter().any(|(handle, ..)| *handle == channel.handle) {
                        channels.push((channel.handle, Stream::new(channel.class), Vec::new()));
                    }
                }
                if options.calls {
                    calls.push(call_item(call, capture, &mut handles, &descriptors));
                }
            }
            Event::Symbol(symbol) => {
                ranges.entry(symbol.address).or_insert(symbol.bytes);
            }
            Event::Memory(found) => memory.push(found),
            Event::Submission(submission) => {
                let place = channels.iter().position(|(handle, ..)| *handle == submission.channel);
                let index = place.unwrap_or_else(|| {
                    channels.push((submission.channel, Stream::new(submission.class), Vec::new()));
                    channels.len() - 1
                });
                let (_, stream, items) = &mut channels[index];
                if options.boundaries {
                    items.push(Item {
                        kind: "submission".into(),
                        text: "a submission of its own".into(),
                        values: vec![(
                            "readable".into(),
                            Value::Text(submission.words.is_some().to_string()),
                        )],
                    });
                }
                let Some(words) = &submission.words else { continue };
                let (_, steps) = stream.segment(words);
                let version = stream.qmd_version();
                let generation = stream.generation();
                for step in &steps {
                    items.push(action_item(&step.action, &symbols));
                }
                let descriptors: Vec<u64> = {
                    let qmds = memory.iter().filter(|found| found.kind == MemoryKind::Qmd);
                    qmds.map(|found| found.address).collect()
                };
                for found in memory.drain(..) {
                    match found.kind {
                        MemoryKind::Qmd => items.extend(qmd_item(version, &found.bytes, &symbols)),
                        MemoryKind::ConstantBank => {
                            // Clients that declare a bank too long put their descriptor into it.
                            let inside = |at: &u64| at.checked_sub(found.address).map(|at| at as usize);
                            let ends = descriptors.iter().filter_map(inside).min();
                            let end = ends.unwrap_or(usize::MAX).min(found.bytes.len());
                            items.push(bank_item(
                                generation.constant_bank().parameters as usize,
                                &found.bytes[..end],
                                &ranges,
                            ));
                        }
                        MemoryKind::Other => {}
                    }
                }
            }
            _ => {}
        }
    }
    let mut all: Vec<(String, Vec<Item>)> = Vec::new();
    if options.calls {
        all.push(("calls".to_owned(), calls));
    }
    for (index, (_, stream, items)) in channels.into_iter().enumerate() {
        let has = |class: u32| (0..8).any(|subchannel| stream.subchannels().class(subchannel) == Some(class));
        let classes = stream.generation().classes();
        let what = match (has(classes.compute), has(classes.copy)) {
            (true, _) => "compute",
            (_, true) => "copy",
            _ => "no engine bound",
        };
        if !items.is_empty() {
            all.push((format!("channel {index} ({what})"), items));
        }
    }
    all
}

fn text(name: &str, value: impl fmt::Display) -> (String, Value) {
    (name.to_owned(), Value::Text(value.to_string()))
}

fn name(name: &str, value: u64) -> (String, Value) {
    (name.to_owned(), Value::Name(Space::General, value))
}

fn action_item(action: &Action, symbols: &Symbols) -> Item {
    let (kind, values) = match action {
        Action::Bind { subchannel, class } => {
            ("bind", vec![text("subchannel", subchannel), text("class", format_args!("{class:#x}"))])
        }
        Action::Acquire { address, payload, wide, operation } => (
            "acquire",
            vec![
                name("address", *address),
                text("payload", format_args!("{payload:#x}")),
                text("bits", if *wide { 64 } else { 32 }),
                text("operation", operation),
            ],
        ),
        Action::Release { address, payload, wide, operation, wait_for_idle, timestamp } => (
            "release",
            vec![
                name("address", *address),
                text("payload", format_args!("{payload:#x}")),
                text("bits", if *wide { 64 } else { 32 }),
                text("operation", operation),
                text("waits for idle", wait_for_idle),
                text("timestamp", timestamp),
            ],
        ),
        Action::Report { address, payload, execute } => (
            "report",
            vec![
                name("address", *address),
                text("payload", format_args!("{payload:#x}")),
                text("execute", format_args!("{execute:#x}")),
            ],
        ),
        Action::Upload { address, bytes } => {
            // What descriptors and banks hold is compared where they are launched.
            ("upload", vec![name("address", *address), text("bytes", bytes.len())])
        }
        Action::Launch { qmd, action, .. } => {
            ("launch", vec![name("descriptor", *qmd), text("action", action)])
        }
        Action::Copy { source, destination, line, lines, pitches, release, launch } => {
            let mut values = vec![
                name("source", *source),
                name("destination", *destination),
                text("bytes", line),
                text("lines", lines),
                text("pitches", format_args!("{} and {}", pitches[0], pitches[1])),
                text("LAUNCH_DMA", format_args!("{launch:#x}")),
            ];
            if let Some((address, payload)) = release {
                values.extend([name("semaphore", *address), text("payload", format_args!("{payload:#x}"))]);
            }
            ("copy", values)
        }
        Action::CopyRelease { address, payload, launch } => (
            "copy release",
            vec![
                name("address", *address),
                text("payload", format_args!("{payload:#x}")),
                text("LAUNCH_DMA", format_args!("{launch:#x}")),
            ],
        ),
        Action::Invalidate { data, wait_for_idle } => (
            "invalidate",
            vec![text("caches", format_args!("{data:#x}")), text("waits for idle", wait_for_idle)],
        ),
        Action::WaitForIdle => ("wait for idle", Vec::new()),
        Action::LocalMemory { address } => ("local memory", vec![name("address", *address)]),
        Action::Method { owner, name, data, text: fields } => {
            // Windows, trap handlers: a method whose only field is a half of an address.
            let is_half = |(field, _): (&str, &str)| field.contains("ADDRESS");
            let value = match fields.split_once('=').is_some_and(is_half) && !fields.contains(' ') {
                true => ("half".to_owned(), Value::Name(Space::Half, u64::from(*data))),
                false => text("value", fields),
            };
            return Item {
                kind: format!("{owner} {name}"),
                text: format!("{owner} {name} {fields}"),
                values: vec![value],
            };
        }
        Action::Broken(reason) => ("broken", vec![text("reason", reason)]),
    };
    Item { kind: kind.to_owned(), text: describe(action, symbols), values }
}

fn qmd_item(version: qmd::Version, bytes: &[u8], symbols: &Symbols) -> Option<Item> {
    let launch = qmd::read(version, bytes).ok()?;
    let mut values = vec![
        text("grid", by(launch.grid)),
        text("block", by(launch.block)),
        name("program", launch.program_address),
    ];
    values.extend(launch.cluster.map(|cluster| text("cluster", by(cluster))));
    for (index, bank) in launch.constant_buffers.iter().enumerate() {
        values.extend(bank.map(|bank| name(&format!("constant bank {index}"), bank.address)));
    }
    for release in &launch.releases {
        values.extend([
            name("release to", release.address),
            text("release of", format_args!("{:#x}", release.payload)),
        ]);
    }
    values.extend(launch.dependents.iter().map(|dependent| name("dependent", dependent.address)));
    // Everything else, field by field, with the addresses taken out.
    let mut rest = bytes.to_vec();
    qmd::relocate(version, &mut rest, |_| 0).ok()?;
    let shown = |name: &str| {
        ["GRID_", "CTA_RASTER_", "CTA_THREAD_DIMENSION", "PAYLOAD_LOWER", "PAYLOAD_UPPER"]
            .iter()
            .any(|part| name.contains(part))
    };
    let fields = qmd_fields(version, &rest).ok()?;
    values.extend(fields.into_iter().filter(|field| !shown(&field.name)).map(|f| text(&f.name, f.text)));
    let what = format!(
        "descriptor of {}, grid {}, block {}",
        symbols.text(launch.program_address),
        by(launch.grid),
        by(launch.block)
    );
    Some(Item { kind: "descriptor".into(), text: what, values })
}

/// The parameters of a constant bank; the driver's own words in it follow from the descriptor.
fn bank_item(parameters: usize, bytes: &[u8], ranges: &BTreeMap<u64, u64>) -> Item {
    let words = words::of_bytes(bytes.get(parameters..).unwrap_or(&[]));
    let known = |number: u64| {
        ranges.range(..=number).next_back().is_some_and(|(start, bytes)| number - start < *bytes)
    };
    let mut values = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let label = format!("argument bytes {:#x}", index * 4);
        match words::address_at(&words, index, known) {
            Some(address) => {
                values.push(name(&label, address));
                index += 2;
            }
            None => {
                values.push(text(&label, format_args!("{word:#x}")));
                index += 1;
            }
        }
    }
    Item { kind: "arguments".into(), text: format!("arguments, {} words", words.len()), values }
}

fn call_item(
    call: &IoctlEvent,
    capture: &Capture,
    handles: &mut Handles,
    descriptors: &HashMap<u64, u64>,
) -> Item {
    let decoded = call.decode(capture.branch, handles);
    let mut values = Vec::new();
    if let Err(errno) = call.result {
        values.push(text("errno", errno));
    }
    for part in &decoded.parts {
        for row in &part.rows {
            let field = row.after.as_ref().unwrap_or(&row.before);
            // Names: handles, pointers, addresses and what the kernel hands out; numbers that may well differ.
            if field.kind == Some(Kind::Pointer) && field.number != 0 {
                // Into memory that the caller has for the length of the call: where, means nothing.
                values.push(text(&field.name, "a pointer"));
            } else if let (Some(Kind::Descriptor), Some(number)) =
                (field.kind, descriptors.get(&field.number))
            {
                values.push((field.name.clone(), Value::Name(Space::Descriptor, *number)));
            } else if field.name == TOKEN {
                values.push((field.name.clone(), Value::Name(Space::Token, field.number)));
            } else if is_given(decoded.subject.as_deref().unwrap_or(""), field) {
                values.push(text(&field.name, "given"));
            } else if is_name(call.node, field) {
                values.push(name(&field.name, field.number));
            } else {
                values.push(text(&field.name, &field.text));
            }
        }
    }
    let title = decoded.title();
    let subject = decoded.subject.unwrap_or_default();
    Item { kind: format!("{} {subject}", decoded.name), text: title, values }
}

/// Whether a field of a call is what the kernel module or the board gives, and another run or board another: ids,
/// serial numbers, places in physical memory.
pub(crate) fn is_given(subject: &str, field: &FieldValue) -> bool {
    const IDS: [&str; 5] = ["owner", "cid", "gpuId", "gpu_id", "boardId"];
    let name = field.name.as_str();
    // An element of an array has its number behind the name.
    IDS.contains(&name)
        || name.to_ascii_lowercase().contains("gpuid")
        || name.to_ascii_lowercase().contains("uuid")
        || (name == "data" && subject == "NV2080_CTRL_CMD_GPU_GET_GID_INFO")
        || (name == "offset" && subject == "NV01_MEMORY_LOCAL_USER")
}

/// The field that says how doorbells name a channel.
const TOKEN: &str = "workSubmitToken";

/// Whether a field of a call is a name by itself: an object, an address, a descriptor.
pub(crate) fn is_name(node: Node, field: &FieldValue) -> bool {
    /// Numbers that stand for an address, or for a channel.
    const NAMES: [&str; 8] =
        ["base", "address", "dmaOffset", "gpFifoOffset", TOKEN, "requestedBase", "limit", "vaBase"];
    matches!(field.kind, Some(Kind::Handle | Kind::Pointer | Kind::Descriptor))
        || NAMES.contains(&field.name.as_str())
        || (node == Node::Uvm && field.name == "offset")
}

/// The two sides aligned, and what differs.
fn compare(left: &[Item], right: &[Item], names: &mut Names) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (a, b) in matches(left, right).into_iter().chain([(left.len(), right.len())]) {
        gap(&left[i..a], &right[j..b], names, &mut changes);
        if let (Some(x), Some(y)) = (left.get(a), right.get(b)) {
            differ(x, y, names, &mut changes);
        }
        (i, j) = (a + 1, b + 1);
    }
    changes
}

/// Items between two matches: those of one kind are the same thing changed, others came or went.
fn gap(left: &[Item], right: &[Item], names: &mut Names, changes: &mut Vec<Change>) {
    let mut next = 0;
    for item in left {
        match right[next..].iter().position(|other| other.kind == item.kind) {
            Some(ahead) => {
                changes.extend(right[next..next + ahead].iter().map(|item| Change::Added(item.text.clone())));
                next += ahead;
                differ(item, &right[next], names, changes);
                next += 1;
            }
            None => changes.push(Change::Removed(item.text.clone())),
        }
    }
    changes.extend(right[next..].iter().map(|item| Change::Added(item.text.clone())));
}

/// Two items of one kind.
fn differ(a: &Item, b: &Item, names: &mut Names, changes: &mut Vec<Change>) {
    let mut how = Vec::new();
    let mut rest: Vec<&(String, Value)> = b.values.iter().collect();
    for (field, old) in &a.values {
        let Some(place) = rest.iter().position(|(other, _)| other == field) else {
            how.push(phrase(&a.kind, field, &shown(old), "nothing"));
            continue;
        };
        let (_, new) = rest.remove(place);
        match (old, new) {
            (Value::Name(space, x), Value::Name(other, y)) if space == other => {
                if names.agree(*space, *x, *y) {
                    continue;
                }
                how.push(format!("{field} is another one: {x:#x} -> {y:#x}"));
            }
            _ if old == new => {}
            _ => how.push(phrase(&a.kind, field, &shown(old), &shown(new))),
        }
    }
    for (field, new) in rest {
        how.push(phrase(&a.kind, field, "nothing", &shown(new)));
    }
    if !how.is_empty() {
        changes.push(Change::Changed { what: b.text.clone(), how });
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Name(_, number) => format!("{number:#x}"),
    }
}

/// What a change means, where it is known to mean something.
fn phrase(kind: &str, field: &str, old: &str, new: &str) -> String {
    let meaning = match (kind, field, new) {
        ("release" | "invalidate", "waits for idle", "true") => "now waits for idle",
        ("release", "waits for idle", "false") => {
            "no longer waits for idle: the value may come before the work's end"
        }
        ("invalidate", "waits for idle", "false") => "no longer waits for idle",
        ("release", "timestamp", "true") => "now stores the time as well",
        ("release", "timestamp", "false") => "no longer stores the time",
        _ => return format!("{field}: {old} -> {new}"),
    };
    meaning.to_owned()
}

/// Longer runs than this are not aligned item by item: the table would not fit.
const LARGEST: usize = 4000;

/// Pairs of indices that match, in order: a longest common subsequence, after what both begin and end with.
fn matches(left: &[Item], right: &[Item]) -> Vec<(usize, usize)> {
    let start = left.iter().zip(right).take_while(|(a, b)| a.is_like(b)).count();
    let (a, b) = (&left[start..], &right[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a.is_like(b)).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let mut found: Vec<(usize, usize)> = (0..start).map(|index| (index, index)).collect();
    if a.len() <= LARGEST && b.len() <= LARGEST {
        // Lengths of the longest common subsequences of the rests.
        let width = b.len() + 1;
        let mut table = vec![0u16; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                table[i * width + j] = if a[i].is_like(&b[j]) {
                    table[(i + 1) * width + j + 1] + 1
                } else {
                    table[(i + 1) * width + j].max(table[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            if a[i].is_like(&b[j]) {
                found.push((start + i, start + j));
                (i, j) = (i + 1, j + 1);
            } else if table[(i + 1) * width + j] >= table[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    found.extend((0..end).map(|index| (left.len() - end + index, right.len() - end + index)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use nv_abi::{
        Field,
        arch::Generation,
        host::AMPERE_CHANNEL_GPFIFO_A as host,
        method::{Form, Header},
    };

    fn release(address: u64, payload: u32, wfi: u32) -> Vec<u32> {
        let header =
            Header { form: Form::Increment, subchannel: 0, address: host::SEM_ADDR_LO.address, count: 5 };
        let place = |field: &Field, value: u32| value << field.lo;
        use host::SEM_EXECUTE as e;
        let execute = place(&e::OPERATION, 1) | place(&e::RELEASE_WFI, wfi) | place(&e::PAYLOAD_SIZE, 1);
        vec![header.encode().unwrap(), address as u32, (address >> 32) as u32, payload, 0, execute]
    }

    fn diff(a: &[Vec<u32>], b: &[Vec<u32>]) -> Diff {
        pushbuffers(&a.concat(), &b.concat(), &Stream::of(Generation::Ada))
    }

    #[test]
    fn other_addresses_are_no_difference_as_long_as_they_correspond() {
        let a = [release(0x1000, 1, 1), release(0x2000, 2, 1), release(0x1000, 3, 1)];
        let b = [release(0x7000, 1, 1), release(0x9000, 2, 1), release(0x7000, 3, 1)];
        assert_eq!(diff(&a, &b).to_string(), "no difference in meaning, 3 items compared\n");
        let crossed = [release(0x7000, 1, 1), release(0x9000, 2, 1), release(0x9000, 3, 1)];
        let found = diff(&a, &crossed);
        assert_eq!(found.len(), 1);
        assert!(found.to_string().contains("address is another one: 0x1000 -> 0x9000"), "{found}");
    }

    #[test]
    fn halves_of_addresses_that_correspond_are_no_difference() {
        use nv_abi::compute::ADA_COMPUTE_A as compute;
        let set = |halves: &[u32]| {
            let method = |(half, address): (&u32, u32)| {
                let header = Header { form: Form::Increment, subchannel: 1, address, count: 1 };
                vec![header.encode().unwrap(), *half]
            };
            let window = compute::SET_SHADER_SHARED_MEMORY_WINDOW_A.address;
            let handler = compute::SET_TRAP_HANDLER_A.address;
            halves.iter().zip([window, handler, window]).map(method).collect::<Vec<_>>()
        };
        let bound = |halves: &[u32]| {
            let mut stream = Stream::of(Generation::Ada);
            stream.bind(1, Generation::Ada.classes().compute);
            pushbuffers(&set(&[0x7f20, 0x7f1f, 0x7f20]).concat(), &set(halves).concat(), &stream)
        };
        let same = bound(&[0x7f25, 0x7f24, 0x7f25]);
        assert!(same.is_empty() && same.compared == 3, "{same}");
        assert_eq!(bound(&[0x7f25, 0x7f24, 0x7f24]).len(), 1);
    }

    #[test]
    fn a_release_that_waits_no_longer_is_said_in_words() {
        let found = diff(&[release(0x1000, 1, 1)], &[release(0x1000, 1, 0)]);
        assert!(found.to_string().contains("no longer waits for idle"), "{found}");
        let found = diff(&[release(0x1000, 1, 0)], &[release(0x1000, 1, 1)]);
        assert!(found.to_string().contains("now waits for idle"), "{found}");
    }

    #[test]
    fn the_same_difference_is_said_once_with_how_often() {
        let change =
            |what: &str| Change::Changed { what: what.to_owned(), how: vec!["size: 1 -> 2".to_owned()] };
        let changes = vec![change("memory"), Change::Added("wait".to_owned()), change("memory")];
        let section = Section { name: "calls".to_owned(), changes };
        let found = Diff { sections: vec![section], compared: 9 };
        let text =
            "calls\n  ~ memory  (2 times)\n      size: 1 -> 2\n  + wait\n3 differences, 9 items compared\n";
        assert_eq!(found.to_string(), text);
    }

    #[test]
    fn what_was_put_in_between_is_found_and_nothing_else() {
        let a = [release(0x1000, 1, 1), release(0x2000, 2, 1)];
        let b = [release(0x1000, 1, 1), release(0x3000, 9, 1), release(0x2000, 2, 1)];
        let found = diff(&a, &b);
        assert_eq!(found.len(), 1, "{found}");
        assert!(found.to_string().contains("+ RELEASE 0x9 to 0x3000"), "{found}");
        assert!(diff(&b, &a).to_string().contains("- RELEASE 0x9 to 0x3000"));
    }
}
