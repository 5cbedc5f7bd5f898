//! Records a client while it works: a wrapper around any implementation of the boundary, the simulator's or the device
//! nodes'.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use nv_abi::{
    Branch, Errno, Fd, Ioctl, Mapping, Mmio, Node, Record,
    gpfifo::{Entry, NOTIFY_CHANNEL_PENDING},
    ioctl::{self, NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, nr},
    qmd,
    rm::class::class,
};

use crate::{
    action::{Action, Stream, chain},
    client::ClientMemory,
    event::{Event, IoctlEvent, Memory, MemoryKind, Submission, Symbol},
    tracker::Tracker,
    words,
};

/// Nested parameters beyond this many bytes are not recorded: no struct that clients send is larger.
const LARGEST_PARAMETERS: usize = 1 << 20;

/// Wraps a backend and writes down what goes through it.
///
/// Submissions are read when the doorbell rings, from the client's own view of its rings and pushbuffers; so are launch
/// descriptors and constant banks, where the client can see them. The client must be in the same process.
pub struct Recorder<B> {
    inner: Arc<B>,
    memory: ClientMemory,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    branch: Branch,
    events: Vec<Event>,
    tracker: Tracker,
    streams: HashMap<u32, Stream>,
    start: Instant,
    /// Whether the sources of copies are noted as well.
    data: bool,
}

impl<B> fmt::Debug for Recorder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("events", &self.state().events.len()).finish_non_exhaustive()
    }
}

impl<B> Recorder<B> {
    /// Records what goes to `inner`, whose kernel module is of this branch.
    ///
    /// # Errors
    /// The process's own memory cannot be opened (no `/proc`).
    pub fn new(inner: Arc<B>, branch: Branch) -> io::Result<Arc<Self>> {
        let state = State {
            branch,
            events: Vec::new(),
            tracker: Tracker::new(branch),
            streams: HashMap::new(),
            start: Instant::now(),
            data: false,
        };
        Ok(Arc::new(Self { inner, memory: ClientMemory::open()?, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic between two pushes leaves a shorter list, which is still one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on also notes what copies read, where the client can see it: a replay then has the data it needs.
    pub fn note_data(&self) {
        self.state().data = true;
    }

    /// Everything so far.
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// Takes everything so far out; what comes later begins a new list.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().events)
    }

    /// Names a range of GPU addresses.
    pub fn name(&self, address: u64, bytes: u64, name: &str) {
        self.state().events.push(Event::Symbol(Symbol { address, bytes, name: name.to_owned() }));
    }

    /// Notes a fault in words.
    pub fn fault(&self, text: &str) {
        self.state().events.push(Event::Fault(text.to_owned()));
    }

    /// What was recorded, as a whole.
    pub fn capture(&self) -> crate::Capture {
        let state = self.state();
        crate::Capture { branch: state.branch, events: state.events.clone() }
    }

    /// The bytes behind the argument's parameter pointer; none where there are none to be had.
    fn nested(&self, node: Node, request: u32, branch: Branch, argument: &[u8]) -> Vec<u8> {
        let found = nested(node, request, branch, argument);
        let found = found.filter(|(pointer, bytes)| *pointer != 0 && *bytes <= LARGEST_PARAMETERS);
        found.and_then(|(pointer, bytes)| self.memory.read(pointer, bytes)).unwrap_or_default()
    }

    /// Reads GPU memory as the client sees it.
    fn read(&self, tracker: &Tracker, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let (client, left) = tracker.client_address(address)?;
        (bytes as u64 <= left).then(|| self.memory.read(client, bytes))?
    }

    /// Notes the ring entries between what was seen and the put pointer.
    fn submissions(&self, state: &mut State, token: u32) {
        let Some(channel) = state.tracker.channel_of_token(token).map(|channel| channel.clone()) else {
            return;
        };
        let put = state.tracker.put_pointer(&channel).and_then(|address| self.memory.word(address));
        let Some(put) = put.filter(|put| *put < channel.entries) else { return };
        let mut slot = channel.next;
        while slot != put {
            let entry = self.read(&state.tracker, channel.ring + u64::from(slot) * 8, 8);
            let Some(entry) = entry.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))) else {
                break;
            };
            let words = match Entry::decode(entry) {
                Entry::Segment { address, length, .. } => {
                    let bytes = self.read(&state.tracker, address, length as usize * 4);
                    bytes.map(|bytes| words::of_bytes(&bytes))
                }
                Entry::Control { .. } => None,
            };
            let time = Some(state.start.elapsed().as_nanos() as u64);
            if let Some(words) = &words {
                self.launches(state, channel.handle, channel.class, words);
            }
            state.events.push(Event::Submission(Submission {
                channel: channel.handle,
                class: channel.class,
                slot,
                entry,
                words,
                time,
            }));
            slot = (slot + 1) % channel.entries;
        }
        if let Some(channel) = state.tracker.channel_of_token(token) {
            channel.next = slot;
        }
    }

    /// Notes the descriptors and constant banks that a segment launches, before the segment itself.
    fn launches(&self, state: &mut State, channel: u32, class: u32, words: &[u32]) {
        let stream = state.streams.entry(channel).or_insert_with(|| Stream::new(class));
        let (_, steps) = stream.segment(words);
        let version = stream.qmd_version();
        let mut found = Vec::new();
        for step in steps {
            if let (true, Action::Copy { source, line, lines: 1, .. }) = (state.data, &step.action)
                && let Some(bytes) = self.read(&state.tracker, *source, *line as usize)
            {
                found.push(Memory { kind: MemoryKind::Other, address: *source, bytes });
            }
            let Action::Launch { qmd, .. } = step.action else { continue };
            let read = |address, bytes| {
                self.read(&state.tracker, address, bytes).or_else(|| stream.written(address, bytes))
            };
            for (address, bytes) in chain(version, qmd, read) {
                if let Ok(launch) = qmd::read(version, &bytes)
                    && let Some(bank) = launch.constant_buffers[0]
                    && let Some(bytes) = read(bank.address, bank.bytes as usize)
                {
                    found.push(Memory { kind: MemoryKind::ConstantBank, address: bank.address, bytes });
                }
                found.push(Memory { kind: MemoryKind::Qmd, address, bytes });
            }
        }
        state.events.extend(found.into_iter().map(Event::Memory));
    }
}

/// Where the nested parameters of a call lie, and how many bytes they are.
fn nested(node: Node, request: u32, branch: Branch, argument: &[u8]) -> Option<(u64, usize)> {
    if node == Node::Uvm {
        return None;
    }
    let of = ioctl::argument(nr(request), argument.len(), branch)?;
    let record = Record::padded(of, branch, argument);
    let value = |name| record.get(of.field(name)?).ok();
    match nr(request) {
        NV_ESC_RM_CONTROL => Some((value("params")?, usize::try_from(value("paramsSize")?).ok()?)),
        NV_ESC_RM_ALLOC => {
            let rows = class(value("hClass")? as u32)?.parameters.rows()?;
            Some((value("pAllocParms")?, rows.size(branch)))
        }
        _ => None,
    }
}

impl<B: Ioctl> Ioctl for Recorder<B> {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        let result = self.inner.open(node);
        let mut state = self.state();
        if let Ok(fd) = result {
            state.tracker.nodes.insert(fd, node);
        }
        state.events.push(Event::Open { node, result });
        result
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        let result = self.inner.close(fd);
        let mut state = self.state();
        state.tracker.closed(fd);
        state.events.push(Event::Close { fd, result });
        result
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        let (node, branch) = {
            let state = self.state();
            (state.tracker.nodes.get(&fd).copied().unwrap_or(Node::Ctl), state.branch)
        };
        let before = argument.to_vec();
        let nested_before = self.nested(node, request, branch, argument);
        let result = self.inner.ioctl(fd, request, argument);
        let nested_after = self.nested(node, request, branch, argument);
        let event = IoctlEvent {
            fd,
            node,
            request,
            before,
            after: argument.to_vec(),
            nested_before,
            nested_after,
            result,
        };
        let mut state = self.state();
        state.tracker.ioctl(&event);
        state.events.push(Event::Ioctl(Box::new(event)));
        result
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        let result = self.inner.mmap(fd, mapping);
        let mut state = self.state();
        if let Ok(address) = result {
            state.tracker.mapped(fd, address, mapping.length);
        }
        state.events.push(Event::Map { fd, length: mapping.length, offset: mapping.offset, result });
        result
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        let result = self.inner.munmap(address, length);
        let mut state = self.state();
        state.tracker.unmapped(address);
        state.events.push(Event::Unmap { address, length, result });
        result
    }
}

impl<B: Mmio> Mmio for Recorder<B> {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        {
            // Before the GPU sees it: what lies in memory now is what was submitted.
            let mut state = self.state();
            if offset == NOTIFY_CHANNEL_PENDING {
                self.submissions(&mut state, value);
            }
            state.events.push(Event::Doorbell { offset, value });
        }
        self.inner.write32(page, offset, value)
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        self.inner.read32(page, offset)
    }
}
