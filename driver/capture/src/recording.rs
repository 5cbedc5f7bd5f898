//! What a client does, as far as it is told: the part of recording that does not depend on how its calls are caught.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
    time::Instant,
};

use nv_abi::{
    Branch, Errno, Fd, Mapping, Node, Record,
    gpfifo::{Entry, NOTIFY_CHANNEL_PENDING},
    ioctl::{self, NV_ESC_RM_ALLOC, NV_ESC_RM_CONTROL, nr},
    rm::class::class,
};

use crate::{
    action::Stream,
    client::ClientMemory,
    event::{Block, Event, Grid, IoctlEvent, Memory, MemoryKind, Submission},
    format::LARGEST_BLOCK,
    found::Found,
    tracker::{Channel, Tracker, View},
    words,
};

/// Nested parameters beyond this many bytes are not recorded: no struct that clients send is larger.
const LARGEST_PARAMETERS: usize = 1 << 20;
/// Bytes of parameters that are recorded of an object of a class that no table has.
const UNKNOWN_PARAMETERS: usize = 512;

/// A client's calls, mappings and submissions, in order.
///
/// Whoever catches them tells of each. Submissions, launch descriptors and constant banks are read from the client's own
/// view of its memory, so the client must be this process.
#[derive(Debug)]
pub struct Recording {
    branch: Branch,
    memory: Arc<ClientMemory>,
    events: Vec<Event>,
    tracker: Tracker,
    streams: HashMap<u32, Stream>,
    /// The last value that a submission noted so far releases, by address.
    released: HashMap<u64, u64>,
    start: Instant,
    /// Sources of copies of up to so many bytes are noted as well.
    data: u64,
    /// Bytes that are read at once where less is asked for.
    ahead: u64,
}

impl Recording {
    /// Records a client of a kernel module of this branch.
    ///
    /// # Errors
    /// The process's own memory cannot be opened (no `/proc`).
    pub fn new(branch: Branch) -> io::Result<Self> {
        Ok(Self {
            branch,
            memory: Arc::new(ClientMemory::open()?),
            events: Vec::new(),
            tracker: Tracker::new(branch),
            streams: HashMap::new(),
            released: HashMap::new(),
            start: Instant::now(),
            data: 0,
            ahead: 0,
        })
    }

    /// The kernel module's branch.
    pub fn branch(&self) -> Branch {
        self.branch
    }

    /// The client's memory.
    pub fn memory(&self) -> Arc<ClientMemory> {
        Arc::clone(&self.memory)
    }

    /// From now on also notes what copies of up to so many bytes read, where the client can see it: a replay then has the
    /// data it needs. Copies of more bytes than a block of a capture may have (256 MiB) are never noted.
    pub fn note_data(&mut self, most: u64) {
        self.data = most.min(LARGEST_BLOCK as u64);
    }

    /// From now on reads so many bytes at once where less is asked for, a power of two: descriptors and banks of many
    /// launches often lie side by side, and each reading is a call of the system (1.6 us, with 4 KiB 1.8 us). Not for
    /// video memory of a card, where every byte takes its time.
    pub fn read_ahead(&mut self, bytes: usize) {
        self.ahead = bytes.next_power_of_two() as u64;
    }

    /// Everything that was not taken yet.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes everything so far out; what comes later begins a new list.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Notes something that no call tells of: a name, a fault.
    pub fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Notes bytes of GPU memory as they are now; false if the client does not see them all.
    pub fn note_memory(&mut self, address: u64, bytes: usize) -> bool {
        let found = self.read(address, bytes);
        let memory = found.map(|bytes| Event::Memory(Memory { kind: MemoryKind::Other, address, bytes }));
        let is_seen = memory.is_some();
        self.events.extend(memory);
        is_seen
    }

    /// A grid ran. The blocks are their indices, workers and times; see [`Grid`].
    pub fn grid(
        &mut self,
        program: u64,
        [grid, block]: [[u32; 3]; 2],
        [start, end]: [Instant; 2],
        blocks: impl IntoIterator<Item = ([u32; 3], usize, [Instant; 2])>,
    ) {
        let time = |at: Instant| at.saturating_duration_since(self.start).as_nanos() as u64;
        let blocks = blocks.into_iter().take(Grid::MOST).map(|(index, worker, [start, end])| Block {
            index,
            worker: worker as u32,
            start: time(start),
            end: time(end),
        });
        let blocks = blocks.collect();
        let event = Grid { program, grid, block, start: time(start), end: time(end), blocks };
        self.events.push(Event::Grid(event));
    }

    /// A node was opened, or could not be.
    pub fn opened(&mut self, node: Node, result: Result<Fd, Errno>) {
        if let Ok(fd) = result {
            self.tracker.nodes.insert(fd, node);
        }
        self.events.push(Event::Open { node, result });
    }

    /// A descriptor was closed.
    pub fn closed(&mut self, fd: Fd, result: Result<(), Errno>) {
        self.tracker.closed(fd);
        self.events.push(Event::Close { fd, result });
    }

    /// What a descriptor is of. One that was not seen being opened is taken for the control node's.
    pub fn node(&self, fd: Fd) -> Node {
        self.tracker.nodes.get(&fd).copied().unwrap_or(Node::Ctl)
    }

    /// A call was made.
    pub fn called(&mut self, event: IoctlEvent) {
        self.tracker.ioctl(&event);
        self.events.push(Event::Ioctl(Box::new(event)));
    }

    /// A mapping was made, or could not be.
    pub fn mapped(&mut self, fd: Fd, mapping: Mapping, result: Result<u64, Errno>) {
        if let Ok(address) = result {
            self.tracker.mapped(fd, address, mapping.length);
        }
        self.events.push(Event::Map { fd, length: mapping.length, offset: mapping.offset, result });
    }

    /// A mapping went.
    pub fn unmapped(&mut self, address: u64, length: u64, result: Result<(), Errno>) {
        self.tracker.unmapped(address);
        self.events.push(Event::Unmap { address, length, result });
    }

    /// Descriptors that memory was attached to and whose mapping was not told of, with the bytes that it has, the oldest
    /// first.
    pub fn attached(&self) -> Vec<(Fd, u64)> {
        self.tracker.unmapped_attachments()
    }

    /// The client's mappings of nodes: first address and bytes.
    pub fn mappings(&self) -> Vec<(u64, u64)> {
        self.tracker.mappings()
    }

    /// The client is about to store to a doorbell page. Told before the GPU sees it, what lies in memory is what was
    /// submitted.
    pub fn doorbell(&mut self, offset: u32, value: u32) {
        if offset == NOTIFY_CHANNEL_PENDING {
            for channel in self.tracker.channels_of_token(value) {
                self.submissions(&channel).into_iter().for_each(|found| self.keep(found));
            }
        }
        self.events.push(Event::Doorbell { offset, value });
    }

    /// Whether a mapping of a descriptor shows doorbells.
    pub fn is_doorbell(&self, fd: Fd) -> bool {
        self.tracker.is_doorbell(fd)
    }

    /// Whether a channel has that token.
    pub fn is_token(&self, token: u32) -> bool {
        !self.tracker.channels_of_token(token).is_empty()
    }

    /// Looks at every channel for what was submitted since it was last looked at: for clients whose doorbells nobody
    /// sees. What was submitted is noted as rung.
    ///
    /// Submissions of several channels that are found at once are put into an order in which none waits for a later one,
    /// where there is one.
    pub fn look(&mut self) {
        let channels: Vec<Channel> = self.tracker.channels().cloned().collect();
        let mut queues: Vec<(Option<u32>, VecDeque<Found>)> = Vec::new();
        for channel in channels {
            let found = self.submissions(&channel);
            if !found.is_empty() {
                queues.push((channel.token, found.into()));
            }
        }
        let mut last = 0;
        while !queues.is_empty() {
            last = last.min(queues.len() - 1);
            // The one that went on before goes on, so that a channel's submissions stay together where they can.
            let order = (last..queues.len()).chain(0..last);
            last = order.into_iter().find(|at| !self.is_early(&queues, *at)).unwrap_or(last);
            let (token, queue) = &mut queues[last];
            let token = *token;
            let Some(found) = queue.pop_front() else {
                queues.remove(last);
                continue;
            };
            let rung = queue.is_empty();
            self.keep(found);
            if let (true, Some(value)) = (rung, token) {
                self.events.push(Event::Doorbell { offset: NOTIFY_CHANNEL_PENDING, value });
            }
        }
    }

    /// Whether the first of a queue waits for something that another queue has.
    fn is_early(&self, queues: &[(Option<u32>, VecDeque<Found>)], at: usize) -> bool {
        let Some(first) = queues[at].1.front() else { return false };
        first.waits.iter().any(|(address, value)| {
            let is_done = |known: &u64| known >= value;
            let others = queues.iter().enumerate().filter(|(other, _)| *other != at);
            let mut releases = others.flat_map(|(_, (_, queue))| queue).flat_map(|found| &found.releases);
            !self.released.get(address).is_some_and(is_done)
                && releases.any(|(place, known)| place == address && is_done(known))
        })
    }

    fn keep(&mut self, found: Found) {
        self.released.extend(found.releases);
        self.events.extend(found.memory.into_iter().map(Event::Memory));
        self.events.push(Event::Submission(found.submission));
    }

    /// Bytes of GPU memory as they are now; `None` if the client does not see them all.
    pub fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.glance().read(address, bytes)
    }

    fn glance(&self) -> Glance<'_> {
        Glance {
            tracker: &self.tracker,
            memory: &self.memory,
            ahead: self.ahead,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The ring entries of a channel between what was seen and the put pointer.
    fn submissions(&mut self, channel: &Channel) -> Vec<Found> {
        let mut submissions = Vec::new();
        let put = self.tracker.put_pointer(channel).and_then(|address| self.memory.word(address));
        let Some(put) = put.filter(|put| *put < channel.entries) else { return submissions };
        if put == channel.next {
            return submissions;
        }
        let class = channel.class;
        let mut stream = self.streams.remove(&channel.handle).unwrap_or_else(|| Stream::new(class));
        let mut slot = channel.next;
        // What lies there now was written before the put pointer: one glance does for all of it.
        let mut glance = self.glance();
        while slot != put {
            let entry = glance.read(channel.ring.wrapping_add(u64::from(slot) * 8), 8);
            let Some(entry) = entry.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))) else {
                break;
            };
            let words = match Entry::decode(entry) {
                Entry::Segment { address, length, .. } => {
                    let bytes = glance.read(address, length as usize * 4);
                    bytes.map(|bytes| words::of_bytes(&bytes))
                }
                Entry::Control { .. } => None,
            };
            let time = Some(self.start.elapsed().as_nanos() as u64);
            let submission = Submission { channel: channel.handle, class, slot, entry, words, time };
            let mut read = |address, bytes| glance.read(address, bytes);
            submissions.push(Found::of(submission, &mut stream, self.data, &mut read));
            slot = (slot + 1) % channel.entries;
        }
        self.streams.insert(channel.handle, stream);
        self.tracker.seen(channel, slot);
        submissions
    }
}

/// A look at the client's memory at one moment: what was read for one question answers the next.
struct Glance<'a> {
    tracker: &'a Tracker,
    memory: &'a ClientMemory,
    ahead: u64,
    /// GPU address of what was read last.
    start: u64,
    bytes: Vec<u8>,
}

impl Glance<'_> {
    /// Bytes of GPU memory as the client sees them; `None` where it does not see them all.
    fn read(&mut self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let known = |glance: &Self| {
            let inside = usize::try_from(address.checked_sub(glance.start)?).ok()?;
            glance.bytes.get(inside..inside.checked_add(bytes)?).map(<[u8]>::to_vec)
        };
        if let Some(found) = known(self) {
            return Some(found);
        }
        let View { start, client, length } = self.tracker.view(address)?;
        let inside = address - start;
        if bytes as u64 > length - inside {
            return None;
        }
        if bytes as u64 >= self.ahead {
            return self.memory.read(client + inside, bytes);
        }
        // Around the address, as far as the client sees it.
        let first = start.max(address & !(self.ahead - 1));
        let end = (address + bytes as u64).checked_next_multiple_of(self.ahead).unwrap_or(u64::MAX);
        let end = end.min(start + length);
        let Some(read) = self.memory.read(client + (first - start), (end - first) as usize) else {
            // It unmapped a part.
            return self.memory.read(client + inside, bytes);
        };
        (self.start, self.bytes) = (first, read);
        known(self)
    }
}

/// A call that is being made.
#[derive(Debug)]
pub struct Call {
    branch: Branch,
    fd: Fd,
    node: Node,
    request: u32,
    before: Vec<u8>,
    nested_before: Vec<u8>,
}

impl Call {
    /// Before the call.
    pub fn before(
        memory: &ClientMemory,
        branch: Branch,
        (fd, node): (Fd, Node),
        request: u32,
        argument: &[u8],
    ) -> Self {
        let nested_before = nested(memory, node, request, branch, argument);
        Self { branch, fd, node, request, before: argument.to_vec(), nested_before }
    }

    /// After it.
    pub fn after(self, memory: &ClientMemory, argument: &[u8], result: Result<(), Errno>) -> IoctlEvent {
        let Self { branch, fd, node, request, before, nested_before } = self;
        let nested_after = nested(memory, node, request, branch, argument);
        IoctlEvent {
            fd,
            node,
            request,
            before,
            after: argument.to_vec(),
            nested_before,
            nested_after,
            result,
        }
    }
}

/// The bytes behind the argument's parameter pointer; none where there are none to be had.
fn nested(memory: &ClientMemory, node: Node, request: u32, branch: Branch, argument: &[u8]) -> Vec<u8> {
    let found = nested_place(node, request, branch, argument);
    let found = found.filter(|(pointer, bytes)| *pointer != 0 && *bytes <= LARGEST_PARAMETERS);
    found.and_then(|(pointer, bytes)| memory.read(pointer, bytes)).unwrap_or_default()
}

/// Where the nested parameters of a call lie, and how many bytes they are.
fn nested_place(node: Node, request: u32, branch: Branch, argument: &[u8]) -> Option<(u64, usize)> {
    if node == Node::Uvm {
        return None;
    }
    let of = ioctl::argument(nr(request), argument.len(), branch)?;
    let record = Record::padded(of, branch, argument);
    let value = |name| record.get(of.field(name)?).ok();
    match nr(request) {
        NV_ESC_RM_CONTROL => Some((value("params")?, usize::try_from(value("paramsSize")?).ok()?)),
        NV_ESC_RM_ALLOC => {
            let bytes = match class(value("hClass")? as u32) {
                Some(class) => class.parameters.rows()?.size(branch),
                None => match value("paramsSize").map(usize::try_from) {
                    Some(Ok(given @ 1..)) => given,
                    _ => UNKNOWN_PARAMETERS,
                },
            };
            Some((value("pAllocParms")?, bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nv_abi::rm::NVOS54_PARAMETERS as Control;

    use super::*;

    fn found(channel: u32, waits: &[(u64, u64)], releases: &[(u64, u64)]) -> Found {
        Found {
            submission: Submission { channel, class: 0, slot: 0, entry: 0, words: None, time: None },
            memory: Vec::new(),
            waits: waits.to_vec(),
            releases: releases.to_vec(),
        }
    }

    #[test]
    fn a_submission_is_early_while_what_it_waits_for_stands_in_another_queue() {
        let mut recording = Recording::new(Branch::R580).unwrap();
        let queues = [
            (None, VecDeque::from([found(1, &[(0x100, 5)], &[])])),
            (None, VecDeque::from([found(2, &[], &[(0x100, 4)]), found(2, &[], &[(0x100, 6)])])),
        ];
        assert!(recording.is_early(&queues, 0) && !recording.is_early(&queues, 1));
        recording.released.insert(0x100, 4);
        assert!(recording.is_early(&queues, 0));
        recording.released.insert(0x100, 5);
        assert!(!recording.is_early(&queues, 0));
        // Nobody will ever release it: it stays where it stands.
        let alone = [(None, VecDeque::from([found(1, &[(0x200, 1)], &[])]))];
        assert!(!recording.is_early(&alone, 0));
    }

    #[test]
    fn a_control_says_where_its_parameters_lie() {
        let mut p = Record::zeroed(&Control::STRUCT, Branch::R580);
        for (field, value) in [(&Control::params, 0x1000), (&Control::paramsSize, 24)] {
            p.set(field, value).unwrap();
        }
        let request = ioctl::request(NV_ESC_RM_CONTROL, p.bytes().len());
        let place = |node, bytes: &[u8]| nested_place(node, request, Branch::R580, bytes);
        assert_eq!(place(Node::Ctl, p.bytes()), Some((0x1000, 24)));
        assert_eq!(place(Node::Uvm, p.bytes()), None);
    }
}
