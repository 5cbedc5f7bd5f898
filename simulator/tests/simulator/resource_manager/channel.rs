//! A channel that works: for tests of what happens when work goes wrong. Numbers are written out, so that nothing here
//! depends on the tables that the simulator decodes with.

use std::time::{Duration, Instant};

use super::*;
use crate::client_memory;

/// GPU addresses: one memory object holds ring, USERD and pushbuffer of up to eight channels; another is for data.
pub(super) const WORK: u64 = 0x10_0000_0000;
pub(super) const DATA: u64 = 0x11_0000_0000;
const BYTES: u64 = 2 << 20;
const PER_CHANNEL: u64 = 0x4_0000;
const USERD: u64 = 0x1_0000;
const PUSHBUFFER: u64 = 0x2_0000;
const ENTRIES: u64 = 16;
/// How long anything may take before a test fails.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// A GPU with memory that both sides see.
pub(super) struct Bench {
    pub(super) raw: Raw,
    pub(super) device: u32,
    pub(super) subdevice: u32,
    pub(super) space: u32,
    pub(super) uuid: [u8; 16],
    pub(super) work_memory: u32,
    /// Where the client sees it.
    work: u64,
    pub(super) data: u64,
    pub(super) data_memory: u32,
    page: u64,
    pub(super) notifier_memory: u32,
    notifiers: u64,
    channels: u64,
}

/// A channel of a bench.
#[derive(Clone, Copy)]
pub(super) struct Gpfifo {
    pub(super) handle: u32,
    index: u64,
    token: u32,
    put: u64,
    cursor: u64,
    /// Where the client sees USERD.
    userd: u64,
}

/// A method header with incrementing addresses.
pub(super) const fn header(subchannel: u32, method: u32, count: u32) -> u32 {
    1 << 29 | count << 16 | subchannel << 13 | method >> 2
}

impl Bench {
    pub(super) fn new(builder: Builder, branch: Branch) -> Self {
        let raw = Raw::on(builder, branch);
        let (device, subdevice, uuid, space) = raw.with_space();
        assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
        let map = |memory: u32, va: u64, bytes: u64| {
            assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, va, bytes), Status::NV_OK);
            assert_eq!(raw.map_external(&uuid, memory, va, bytes, 0), Status::NV_OK);
        };
        let see = |memory: u32, bytes: u64, node: Node| {
            let fd = raw.machine.open(node).unwrap();
            assert_eq!(raw.map_memory(device, memory, bytes, fd), Status::NV_OK);
            let mapping = Mapping { address: None, length: bytes, offset: 0 };
            let address = raw.machine.mmap(fd, mapping).unwrap();
            raw.machine.close(fd).unwrap();
            address
        };
        let work_memory = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, BYTES).unwrap();
        map(work_memory, WORK, BYTES);
        let data_memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, BYTES).unwrap();
        map(data_memory, DATA, BYTES);
        let notifier_memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
        let usermode = *raw.usermode_classes().last().unwrap();
        let page = raw.alloc(raw.client, subdevice, 0, usermode, None).unwrap();
        Self {
            work: see(work_memory, BYTES, Node::Gpu(0)),
            data: see(data_memory, BYTES, Node::Ctl),
            notifiers: see(notifier_memory, PAGE, Node::Ctl),
            page: see(page, 0x10000, Node::Gpu(0)),
            device,
            subdevice,
            space,
            uuid,
            work_memory,
            data_memory,
            notifier_memory,
            channels: 0,
            raw,
        }
    }

    /// Maps the rings again, after UVM gave the address space up.
    pub(super) fn map_work(&self) {
        assert_eq!(self.raw.map_external(&self.uuid, self.work_memory, WORK, BYTES, 0), Status::NV_OK);
    }

    pub(super) fn hopper() -> Self {
        Self::new(Machine::builder().gpu(Profile::h200()).driver("580.159.04"), Branch::R580)
    }

    /// A group with a context share, scheduled.
    pub(super) fn group(&self) -> (u32, u32) {
        let group = self.raw.group(self.device);
        let share = self.raw.share(group, self.space).unwrap();
        (group, share)
    }

    /// A channel of a group with the generation's compute and copy classes.
    pub(super) fn channel(&mut self, group: u32, share: u32) -> Gpfifo {
        self.channel_with(group, share, 0)
    }

    /// The same with flags.
    pub(super) fn channel_with(&mut self, group: u32, share: u32, flags: u64) -> Gpfifo {
        use rm::NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as P;
        let at = self.channels * PER_CHANNEL;
        let fields = [(&P::hUserdMemory, self.work_memory.into()), (&P::userdOffset, at + USERD)];
        let userd = self.work + at + USERD;
        let mut channel = self.channel_of(group, share, flags, &fields);
        channel.userd = userd;
        channel
    }

    /// The same with what says where USERD is, if that is not the module's affair.
    fn channel_of(&mut self, group: u32, share: u32, flags: u64, userd: Fields<'_>) -> Gpfifo {
        use rm::{
            NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as P,
            NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS as Token,
        };
        let index = self.channels;
        self.channels += 1;
        let at = index * PER_CHANNEL;
        let raw = &self.raw;
        // A notifier array of two entries for each channel, by a window into the page.
        let window = raw.record(
            &rm::NV_CONTEXT_DMA_ALLOCATION_PARAMS::STRUCT,
            &[
                (&rm::NV_CONTEXT_DMA_ALLOCATION_PARAMS::hMemory, self.notifier_memory.into()),
                (&rm::NV_CONTEXT_DMA_ALLOCATION_PARAMS::offset, index * 64),
                (&rm::NV_CONTEXT_DMA_ALLOCATION_PARAMS::limit, 63),
            ],
        );
        let error = raw.alloc(raw.client, self.device, 0, class::NV01_CONTEXT_DMA, Some(window)).unwrap();
        let mut fields = vec![
            (&P::hObjectError, error.into()),
            (&P::flags, flags),
            (&P::gpFifoOffset, WORK + at),
            (&P::gpFifoEntries, ENTRIES),
            (&P::hContextShare, share.into()),
        ];
        fields.extend(userd);
        let params = raw.record(&P::STRUCT, &fields);
        let (channel, compute, copy) = raw.engine_classes();
        let handle = raw.alloc(raw.client, group, 0, channel, Some(params)).unwrap();
        for object in [compute, copy] {
            raw.alloc(raw.client, handle, 0, object, None).unwrap();
        }
        let mut token = raw.record(&Token::STRUCT, &[]);
        let get = c::NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN;
        assert_eq!(raw.control(handle, get, &mut token), Status::NV_OK);
        let token = token.get(&Token::workSubmitToken).unwrap() as u32;
        Gpfifo { handle, index, token, put: 0, cursor: 0, userd: 0 }
    }

    /// Puts a group on its runlist.
    pub(super) fn schedule(&self, group: u32) {
        use rm::NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS as P;
        let mut params = self.raw.record(&P::STRUCT, &[(&P::bEnable, 1)]);
        assert_eq!(self.raw.control(group, c::NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut params), Status::NV_OK);
    }

    /// One scheduled channel in a group of its own.
    pub(super) fn ready(&mut self) -> Gpfifo {
        let (group, share) = self.group();
        let channel = self.channel(group, share);
        self.schedule(group);
        channel
    }

    /// Submits words as one ring entry and rings the doorbell.
    pub(super) fn submit(&self, channel: &mut Gpfifo, words: &[u32]) {
        let base = channel.index * PER_CHANNEL;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = base + PUSHBUFFER + channel.cursor;
        channel.cursor += (bytes.len() as u64).next_multiple_of(64);
        client_memory::write(self.work + at, &bytes).unwrap();
        let entry = (WORK + at) | (words.len() as u64) << 42;
        client_memory::write(self.work + base + channel.put * 8, &entry.to_le_bytes()).unwrap();
        channel.put = (channel.put + 1) % ENTRIES;
        client_memory::write(channel.userd + 0x8c, &(channel.put as u32).to_le_bytes()).unwrap();
        self.raw.machine.write32(self.page, 0x90, channel.token).unwrap();
    }

    fn word(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        client_memory::read(address, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    pub(super) fn data_word(&self, offset: u64) -> u32 {
        self.word(self.data + offset)
    }

    /// The get pointer that the host wrote back.
    pub(super) fn get(&self, channel: &Gpfifo) -> u32 {
        self.word(channel.userd + 0x88)
    }

    /// Error notifier 0: info32, info16, status, and whether it has a time.
    pub(super) fn notifier(&self, channel: &Gpfifo) -> (u32, u16, u16, bool) {
        let at = self.notifiers + channel.index * 64;
        let last = self.word(at + 12);
        (self.word(at + 8), last as u16, (last >> 16) as u16, self.word(at) != 0)
    }

    pub(super) fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + LIMIT;
        while !done() {
            assert!(Instant::now() < end, "{what}: not within {LIMIT:?}");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// A release of a semaphore through the host, and the wait for it: the channel works.
    pub(super) fn assert_works(&self, channel: &mut Gpfifo) {
        let at = 0x1000 + channel.index * 16;
        let value = self.data_word(at) + 1;
        self.submit(channel, &release(DATA + at, value));
        self.wait("release", || self.data_word(at) == value);
    }
}

/// A host semaphore release of 32 bits: SEM_ADDR_LO to SEM_EXECUTE.
pub(super) fn release(address: u64, payload: u32) -> [u32; 6] {
    [header(0, 0x5c, 5), address as u32, (address >> 32) as u32, payload, 0, 1]
}

impl Raw {
    pub(super) fn engine_classes(&self) -> (u32, u32, u32) {
        let classes = self.generation().classes();
        (classes.channel, classes.compute, classes.copy)
    }

    fn generation(&self) -> nv_abi::arch::Generation {
        self.machine.profile(0).unwrap().generation
    }

    pub(super) fn usermode_classes(&self) -> Vec<u32> {
        vec![self.generation().classes().usermode]
    }
}

#[test]
fn the_module_gives_userd_to_a_channel_without_memory_for_it() {
    const USERD_BYTES: u64 = 0x200;
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    let mut own = bench.channel(group, share);
    let mut channel = bench.channel_of(group, share, 0, &[]);
    bench.schedule(group);
    let machine = Arc::clone(&bench.raw.machine);
    let fd = machine.open(Node::Gpu(0)).unwrap();
    let map = |channel: Gpfifo, length| bench.raw.map_memory(bench.device, channel.handle, length, fd);
    assert_eq!(map(own, USERD_BYTES), Status::INVALID_REQUEST, "it is memory of the client's");
    assert_eq!(map(channel, USERD_BYTES + 1), Status::INVALID_LIMIT);
    assert_eq!(map(channel, USERD_BYTES), Status::NV_OK);
    channel.userd = machine.mmap(fd, Mapping { address: None, length: PAGE, offset: 0 }).unwrap();
    bench.assert_works(&mut channel);
    assert_eq!(bench.get(&channel), 1);
    bench.assert_works(&mut own);
}
