//! Does again what a capture says, on any backend, and tells where the answers differ.
//!
//! Descriptors, handles and what stands for a GPU are translated; argument structs are sent again from the capture; memory that a submission
//! needs is put where the backend has mapped it. What the CPU did to mapped memory in between is not in a capture, so a
//! wait for a value that only the CPU stores does not end in a replay: it is reported as a channel that stopped.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    time::{Duration, Instant},
};

use nv_abi::{
    Errno, Fd, Ioctl, Mapping, Mmio, Node, Record, Struct,
    dump::Handles,
    gpfifo::{Entry, NOTIFY_CHANNEL_PENDING},
    ioctl::{self, nr},
    qmd,
    record::Kind,
    rm::{Status, class, control, nv_ioctl_card_info_t, nv_ioctl_nvos02_parameters_with_fd},
    uvm,
};

use crate::{
    Capture,
    action::{Action, Stream, chain},
    board::Boards,
    client::ClientMemory,
    diff::{is_given, is_name},
    event::{Event, IoctlEvent, MemoryKind},
    tracker::{Channel, Tracker},
    words::to_bytes,
};

/// How long a channel may take for one submission.
const DEADLINE: Duration = Duration::from_secs(5);

/// Something that came out otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which event of the capture, from 0.
    pub event: usize,
    /// What differs.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}", self.event, self.what)
    }
}

/// What a replay did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls that were made.
    pub calls: usize,
    /// Calls that were left out: they point at memory that the capture does not have.
    pub left_out: usize,
    /// Ring entries that were handed over.
    pub submissions: usize,
    /// Semaphores whose last value was looked at.
    pub semaphores: usize,
    /// Where answers differ.
    pub differences: Vec<Difference>,
}

/// Replays a capture on a backend. `pages` gives zeroed pages of this process that can be shared with a GPU, by size in
/// bytes, and keeps them until the replay is over: they stand for those that the client registered.
///
/// # Errors
/// The process's own memory cannot be opened.
pub fn replay<B: Ioctl + Mmio + ?Sized>(
    capture: &Capture,
    backend: &B,
    pages: &mut dyn FnMut(u64) -> Result<u64, Errno>,
) -> io::Result<Report> {
    let mut replay = Replay {
        backend,
        capture,
        memory: ClientMemory::open_writable()?,
        old: Tracker::new(capture.branch),
        new: Tracker::new(capture.branch),
        fds: HashMap::new(),
        handles: HashMap::new(),
        boards: Boards::default(),
        named: [Handles::new(), Handles::new()],
        mappings: HashMap::new(),
        doorbell: None,
        pages,
        page: 0,
        stopped: Vec::new(),
        streams: HashMap::new(),
        notes: HashMap::new(),
        released: BTreeMap::new(),
        report: Report::default(),
        event: 0,
    };
    for (index, event) in capture.events.iter().enumerate() {
        replay.event = index;
        replay.step(event);
    }
    replay.semaphores();
    Ok(replay.report)
}

struct Replay<'a, B: ?Sized> {
    backend: &'a B,
    capture: &'a Capture,
    memory: ClientMemory,
    old: Tracker,
    new: Tracker,
    fds: HashMap<Fd, Fd>,
    handles: HashMap<u32, u32>,
    boards: Boards,
    named: [Handles; 2],
    /// Old address of a mapping to its new one.
    mappings: HashMap<u64, u64>,
    doorbell: Option<u64>,
    pages: &'a mut dyn FnMut(u64) -> Result<u64, Errno>,
    /// The pages that were given last.
    page: u64,
    /// Channels that stopped: nobody waits for them again.
    stopped: Vec<u32>,
    streams: HashMap<u32, Stream>,
    notes: HashMap<(MemoryKind, u64), Vec<u8>>,
    /// The last value of each semaphore: payload, and whether it has 64 bits.
    released: BTreeMap<u64, (u64, bool)>,
    report: Report,
    event: usize,
}

impl<B: Ioctl + Mmio + ?Sized> Replay<'_, B> {
    fn differ(&mut self, what: String) {
        self.report.differences.push(Difference { event: self.event, what });
    }

    fn expect<T>(&mut self, call: &str, was: &Result<T, Errno>, is: Option<Errno>) {
        let was = was.as_ref().err().copied();
        if was != is {
            let text = |errno: Option<Errno>| errno.map_or_else(|| "success".to_owned(), |e| e.to_string());
            self.differ(format!("{call} gave {}, gives {}", text(was), text(is)));
        }
    }

    fn step(&mut self, event: &Event) {
        match event {
            Event::Open { node, result } => {
                let found = self.backend.open(*node);
                self.expect(&format!("opening {node}"), result, found.err());
                if let (Ok(old), Ok(new)) = (result, found) {
                    self.fds.insert(*old, new);
                    self.new.nodes.insert(new, *node);
                    self.old.nodes.insert(*old, *node);
                }
            }
            Event::Close { fd, result } => {
                if let Some(new) = self.fds.remove(fd) {
                    let found = self.backend.close(new);
                    self.expect("closing", result, found.err());
                    self.new.closed(new);
                }
                self.old.closed(*fd);
            }
            Event::Ioctl(call) => self.ioctl(call),
            Event::Map { fd, length, offset, result } => {
                let Some(new) = self.fds.get(fd).copied() else { return };
                let usermode = self.new.is_doorbell(new);
                // UVM maps addresses where they are, or not at all.
                let is_uvm = self.new.nodes.get(&new) == Some(&Node::Uvm);
                let address = (is_uvm && is_free(*offset, *length)).then_some(*offset);
                let mapping = Mapping { address, length: *length, offset: *offset };
                let found = self.backend.mmap(new, mapping);
                self.expect("mapping", result, found.err());
                if let (Ok(old), Ok(address)) = (result, found) {
                    self.mappings.insert(*old, address);
                    self.new.mapped(new, address, *length);
                    self.old.mapped(*fd, *old, *length);
                    if usermode {
                        self.doorbell = Some(address);
                    }
                }
            }
            Event::Unmap { address, length, result } => {
                if let Some(new) = self.mappings.remove(address) {
                    let found = self.backend.munmap(new, *length);
                    self.expect("unmapping", result, found.err());
                    self.new.unmapped(new);
                    if self.doorbell == Some(new) {
                        self.doorbell = None;
                    }
                }
                self.old.unmapped(*address);
            }
            Event::Memory(memory) => {
                self.notes.insert((memory.kind, memory.address), memory.bytes.clone());
                self.put(memory.address, &memory.bytes);
            }
            Event::Submission(submission) => {
                let Some(channel) = self.channel(submission.channel) else { return };
                if let (Entry::Segment { address, .. }, Some(words)) =
                    (Entry::decode(submission.entry), &submission.words)
                {
                    self.put(address, &to_bytes(words));
                    self.follow(submission.channel, submission.class, words);
                }
                self.put(
                    channel.ring.wrapping_add(u64::from(submission.slot) * 8),
                    &submission.entry.to_le_bytes(),
                );
                let next = (submission.slot + 1) % channel.entries.max(1);
                if let Some(put) = self.new.put_pointer(&channel)
                    && self.memory.write(put, &next.to_le_bytes()).is_some()
                {
                    self.report.submissions += 1;
                }
            }
            Event::Doorbell { offset, value } => self.ring(*offset, *value),
            Event::Symbol(_) | Event::Fault(_) | Event::Note(_) | Event::Grid(_) => {}
        }
    }

    /// The new channel that an old one's handle stands for.
    fn channel(&self, old: u32) -> Option<Channel> {
        let handle = self.handles.get(&old).copied().unwrap_or(old);
        self.new.channel(handle).cloned()
    }

    /// Puts bytes at a GPU address, where the client sees it. Elsewhere the GPU's own work has put them.
    fn put(&mut self, address: u64, bytes: &[u8]) {
        if let Some((client, left)) = self.new.client_address(address)
            && bytes.len() as u64 <= left
            && self.memory.write(client, bytes).is_none()
        {
            self.differ(format!("{} bytes at {address:#x} cannot be written", bytes.len()));
        }
    }

    /// Notes what a segment will have released.
    fn follow(&mut self, channel: u32, class: u32, words: &[u32]) {
        let stream = self.streams.entry(channel).or_insert_with(|| Stream::new(class));
        let (_, steps) = stream.segment(words);
        let version = stream.qmd_version();
        for step in steps {
            match step.action {
                Action::Release { address, payload, wide, operation: "RELEASE", .. } => {
                    self.released.insert(address, (payload, wide));
                }
                Action::CopyRelease { address, payload, .. }
                | Action::Copy { release: Some((address, payload)), .. } => {
                    self.released.insert(address, (payload, false));
                }
                Action::Launch { qmd: first, .. } => {
                    let read = |address, bytes| {
                        let noted = self.notes.get(&(MemoryKind::Qmd, address)).cloned();
                        noted.or_else(|| stream.written(address, bytes))
                    };
                    for (_, bytes) in chain(version, first, read) {
                        let launch = qmd::read(version, &bytes).ok();
                        for release in launch.into_iter().flat_map(|launch| launch.releases) {
                            self.released.insert(release.address, (release.payload, release.payload_64));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn ring(&mut self, offset: u32, value: u32) {
        for old in self.old.channels_of_token(value) {
            if let Some(channel) = self.channel(old.handle) {
                self.ring_for(&channel, offset, value);
            }
        }
    }

    fn ring_for(&mut self, channel: &Channel, offset: u32, value: u32) {
        let (Some(page), Some(token)) = (self.doorbell, channel.token) else {
            self.differ("there is no doorbell to ring".to_owned());
            return;
        };
        let token = if offset == NOTIFY_CHANNEL_PENDING { token } else { value };
        if let Err(errno) = self.backend.write32(page, offset, token) {
            self.differ(format!("the doorbell gives {errno}"));
            return;
        }
        let (Some(put), Some(get)) = (self.new.put_pointer(channel), self.new.get_pointer(channel)) else {
            return;
        };
        let start = Instant::now();
        while self.memory.word(put) != self.memory.word(get) && !self.stopped.contains(&channel.handle) {
            if start.elapsed() > DEADLINE {
                self.stopped.push(channel.handle);
                self.differ(format!("channel {:#x} stopped before the end of its ring", channel.handle));
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// The last value of every semaphore is what the capture released last.
    fn semaphores(&mut self) {
        for (address, (payload, wide)) in std::mem::take(&mut self.released) {
            let Some((client, _)) = self.new.client_address(address) else { continue };
            let bytes = if wide { 8 } else { 4 };
            let value = |memory: &ClientMemory| {
                let mut number = [0; 8];
                number[..bytes].copy_from_slice(&memory.read(client, bytes)?);
                Some(u64::from_le_bytes(number))
            };
            self.report.semaphores += 1;
            let start = Instant::now();
            while value(&self.memory) != Some(payload) {
                if start.elapsed() > DEADLINE / 5 {
                    let now = value(&self.memory).map_or_else(|| "nothing".to_owned(), |v| format!("{v:#x}"));
                    self.differ(format!("the semaphore at {address:#x} ends with {now}, not {payload:#x}"));
                    break;
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    fn ioctl(&mut self, call: &IoctlEvent) {
        self.old.ioctl(call);
        let Some(fd) = self.fds.get(&call.fd).copied() else {
            self.report.left_out += 1;
            return;
        };
        let (outer, inner) = structs(call, self.capture);
        let mut argument = call.before.clone();
        // A recording may hold less than the kernel reads.
        let whole = match call.node {
            Node::Uvm => outer.map_or(0, |of| of.size(self.capture.branch)),
            _ => ioctl::size(call.request),
        };
        if !argument.is_empty() && argument.len() < whole {
            argument.resize(whole, 0);
        }
        let mut nested = call.nested_before.clone();
        let points_at_nested = !nested.is_empty();
        let refused = self.translate(outer, &mut argument, points_at_nested.then_some(&mut nested))
            | self.translate_nested(inner, &mut nested);
        if refused || argument.is_empty() {
            self.report.left_out += 1;
            return;
        }
        self.report.calls += 1;
        let result = self.backend.ioctl(fd, call.request, &mut argument);
        let event = IoctlEvent {
            fd,
            node: call.node,
            request: call.request,
            before: call.before.clone(),
            after: argument,
            nested_before: call.nested_before.clone(),
            nested_after: nested,
            result,
        };
        self.new_handles(call, &event, outer);
        // The argument is as many structs as the caller has room for.
        let is_cards = call.node == Node::Ctl && nr(call.request) == ioctl::NV_ESC_CARD_INFO;
        if let Some(of) = is_cards.then_some(&nv_ioctl_card_info_t::STRUCT).or(outer) {
            self.boards.learn(of, self.capture.branch, [&call.before, &call.after, &event.after]);
        }
        if let Some(of) = inner {
            let sides = [&call.nested_before[..], &call.nested_after, &event.nested_after];
            self.boards.learn(of, self.capture.branch, sides);
        }
        // The new side's tracker learns from what was really sent and answered.
        let mut seen = event.clone();
        seen.before.clone_from(&seen.after);
        let mut sent = call.nested_before.clone();
        self.translate_nested(inner, &mut sent);
        seen.nested_before = sent;
        if outer == Some(&nv_ioctl_nvos02_parameters_with_fd::STRUCT) {
            use nv_ioctl_nvos02_parameters_with_fd as p;
            let mut record = Record::padded(&p::STRUCT, self.capture.branch, &seen.before);
            // The field exists in every branch, so it can be set.
            let _ = record.set(&p::pMemory, self.page);
            seen.before = record.bytes().to_vec();
        }
        self.new.ioctl(&seen);
        self.compare(call, &event);
    }

    /// Notes which new handle stands for an old one that the kernel chose.
    fn new_handles(&mut self, old: &IoctlEvent, new: &IoctlEvent, outer: Option<&'static Struct>) {
        let Some((of, field)) = outer.and_then(|of| Some((of, of.field("hObjectNew")?))) else { return };
        let value =
            |bytes: &[u8]| Record::padded(of, self.capture.branch, bytes).get(field).unwrap_or(0) as u32;
        let (was, is) = (value(&old.after), value(&new.after));
        if was != 0 && is != 0 {
            self.handles.insert(was, is);
        }
    }

    fn compare(&mut self, old: &IoctlEvent, new: &IoctlEvent) {
        let branch = self.capture.branch;
        let [old_names, new_names] = &mut self.named;
        let (was, is) = (old.decode(branch, old_names), new.decode(branch, new_names));
        let mut found = Vec::new();
        if old.result != new.result {
            found.push(format!("{:?} -> {:?}", old.result, new.result));
        }
        // A recording may have cut off the status.
        if was.status.is_some() && was.status != is.status {
            let text =
                |status: Option<Status>| status.map_or_else(|| "nothing".to_owned(), |s| s.to_string());
            found.push(format!("{} -> {}", text(was.status), text(is.status)));
        }
        for (a, b) in was.parts.iter().zip(&is.parts) {
            let value = |row: &nv_abi::dump::Row| row.after.as_ref().unwrap_or(&row.before).clone();
            for row in &a.rows {
                let a = value(row);
                let b = b.rows.iter().map(value).find(|b| b.name == a.name && b.position == a.position);
                let b = b.map_or_else(|| "0".to_owned(), |b| b.text);
                let may_differ = is_name(old.node, &a) || is_given(was.subject.as_deref().unwrap_or(""), &a);
                if a.text != b && !may_differ && a.number != 0 {
                    found.push(format!("{}: {} -> {b}", a.name, a.text));
                }
            }
        }
        if !found.is_empty() {
            self.differ(format!("{}: {}", was.title(), found.join(", ")));
        }
    }

    /// Puts this side's handles, descriptors and pointers into an argument. True if it points where nothing is known.
    fn translate(
        &mut self,
        of: Option<&'static Struct>,
        bytes: &mut [u8],
        nested: Option<&mut Vec<u8>>,
    ) -> bool {
        let Some(of) = of else { return false };
        let mut record = Record::padded(of, self.capture.branch, bytes);
        let nested = nested.map(|nested| nested.as_mut_ptr().expose_provenance() as u64);
        for field in of.fields {
            for index in 0..field.count(self.capture.branch) {
                let Ok(number) = record.get_at(field, index) else { continue };
                let new = match field.kind {
                    Kind::Handle => self.handles.get(&(number as u32)).map_or(number, |new| u64::from(*new)),
                    Kind::Pointer if number == 0 => 0,
                    Kind::Pointer => match (field.name, nested) {
                        ("params" | "pAllocParms", Some(pointer)) => pointer,
                        ("pMemory", _) => self.registered(&record),
                        // Out only: what goes in is not read.
                        ("pLinearAddress", _) => 0,
                        _ => return true,
                    },
                    Kind::Descriptor => match self.fds.get(&Fd(number as i32)) {
                        Some(new) => u64::from(new.0 as u32),
                        None => number,
                    },
                    _ => continue,
                };
                if new != number && record.set_at(field, index, new).is_err() {
                    return true;
                }
            }
        }
        self.boards.translate(&mut record);
        let length = bytes.len().min(record.bytes().len());
        bytes[..length].copy_from_slice(&record.bytes()[..length]);
        false
    }

    fn translate_nested(&mut self, of: Option<&'static Struct>, bytes: &mut [u8]) -> bool {
        self.translate(of, bytes, None)
    }

    /// Pages in place of those that the client registered; 0 if there are none to be had, which the call will refuse.
    fn registered(&mut self, record: &Record) -> u64 {
        use nv_ioctl_nvos02_parameters_with_fd as p;
        let bytes = record.get(&p::limit).unwrap_or(0).saturating_add(1);
        self.page = (self.pages)(bytes).unwrap_or(0);
        self.page
    }
}

/// Whether nothing of this process lies in a range of addresses, as far as the system tells.
fn is_free(start: u64, length: u64) -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let Some(end) = start.checked_add(length) else { return false };
    let bounds = |line: &str| {
        let (first, last) = line.split_whitespace().next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some((number(first)?, number(last)?))
    };
    text.lines().all(|line| bounds(line).is_some_and(|(first, last)| last <= start || first >= end))
}

/// The structs of a call's argument and of what it points to, where they have rows.
fn structs(call: &IoctlEvent, capture: &Capture) -> (Option<&'static Struct>, Option<&'static Struct>) {
    if call.node == Node::Uvm {
        return (uvm::call(call.request).and_then(|call| call.argument), None);
    }
    let number = nr(call.request);
    let outer = ioctl::argument(number, call.before.len(), capture.branch);
    let word = |name: &str| {
        let record = Record::padded(outer?, capture.branch, &call.before);
        record.get(outer?.field(name)?).ok().map(|number| number as u32)
    };
    let inner = match number {
        ioctl::NV_ESC_RM_ALLOC => {
            word("hClass").and_then(class::class).and_then(|class| class.parameters.rows())
        }
        ioctl::NV_ESC_RM_CONTROL => {
            word("cmd").and_then(control::control).and_then(|control| control.parameters)
        }
        _ => None,
    };
    (outer, inner)
}
