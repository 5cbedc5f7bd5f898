//! Channels on hand-made rings and pushbuffers. Every number is written out, so that nothing here depends on the
//! tables that the host decodes with.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use nv_simulator::{
    engine::{Executor, ShaderFault},
    fault::{Fault, FaultReport},
    host::{ChannelId, ChannelSpec, ChannelState, Event, Host, now},
    memory::{Access, AddressMap, AddressSpace, Backing},
    profile::Profile,
    sm,
};

pub const BASE: u64 = 0x10_0000_0000;
const RING: u64 = 0;
const ENTRIES: u32 = 8;
const USERD: u64 = 0x1000;
const NOTIFIER: u64 = 0x1800;
const PUSHBUFFER: u64 = 0x2000;
/// Where tests keep semaphores and data.
pub const DATA: u64 = 0x10_000;
const BYTES: u64 = 0x40_000;
pub const LIMIT: Duration = Duration::from_secs(10);

/// Remembers the grids it is given.
#[derive(Default)]
pub struct Recorder {
    pub grids: Mutex<Vec<sm::Launch>>,
    pub fault: AtomicBool,
    pub endless: AtomicBool,
}

impl Executor for Recorder {
    fn execute(
        &self,
        grid: &sm::Launch,
        _: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<sm::Statistics, ShaderFault> {
        self.grids.lock().expect("no panics").push(grid.clone());
        if self.fault.load(Ordering::Relaxed) {
            return Err(ShaderFault { text: "illegal instruction".to_owned(), mmu: None, exception: None });
        }
        while self.endless.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(sm::Statistics { instructions: 3, lane_instructions: 96, ctas: 1 })
    }
}

/// One channel with memory of its own at [`BASE`].
pub struct Channel {
    pub id: ChannelId,
    pub memory: Arc<Backing>,
    token: u32,
    put: u32,
    cursor: u64,
}

/// A GPU.
pub struct Rig {
    pub host: Arc<Host>,
    pub recorder: Arc<Recorder>,
    tokens: AtomicU32,
}

impl Rig {
    pub fn new(profile: Profile) -> Self {
        let recorder = Arc::new(Recorder::default());
        let host = Host::new(Arc::new(profile), Arc::clone(&recorder) as Arc<dyn Executor>);
        host.set_enabled(7, true);
        Self { host, recorder, tokens: AtomicU32::new(0x10) }
    }

    /// A channel of group 7, which is enabled, with the classes of Ada or Hopper.
    pub fn channel(&self) -> Channel {
        self.channel_of(7)
    }

    pub fn channel_of(&self, group: u32) -> Channel {
        self.channel_with(group, None)
    }

    fn channel_with(&self, group: u32, acquire_timeout: Option<Duration>) -> Channel {
        let memory = Arc::new(Backing::new("test memory", BYTES).expect("memory"));
        let space = AddressSpace::new(1 << 49);
        space.map(BASE, BYTES, Arc::clone(&memory), 0, Access::ReadWriteAtomic).expect("free");
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let id = self.host.add_channel(ChannelSpec {
            ring_address: BASE + RING,
            entries: ENTRIES,
            userd: (Arc::clone(&memory), USERD),
            notifier: Some((Arc::clone(&memory), NOTIFIER)),
            space,
            group,
            subcontext: None,
            engine: 1,
            token,
            acquire_timeout,
        });
        for class in [0xc9c0, 0xc7b5, 0xcbc0, 0xc8b5] {
            self.host.bind_class(id, class);
        }
        Channel { id, memory, token, put: 0, cursor: PUSHBUFFER }
    }

    pub fn submit(&self, channel: &mut Channel, words: &[u32]) {
        self.submit_silently(channel, words);
        self.host.doorbell(channel.token);
    }

    /// Submits and waits until the channel has done it all.
    pub fn run(&self, channel: &mut Channel, words: &[u32]) {
        self.submit(channel, words);
        self.wait(channel, ChannelState::Idle);
    }

    /// Submits what must fault and returns the report.
    pub fn fault(&self, channel: &mut Channel, words: &[u32]) -> FaultReport {
        self.submit(channel, words);
        until("the notifier", || channel.memory.read_u32(NOTIFIER + 12).expect("inside") >> 16 == 0xffff);
        let report = self.host.faults().pop().expect("a report");
        assert_eq!(channel.word(NOTIFIER + 8), report.fault.xid().expect("has one"), "{report}");
        assert_eq!(channel.word(NOTIFIER + 12), 0xffff_0001);
        report
    }

    /// Stores an entry and the put pointer, as a client does, and rings no bell.
    fn submit_silently(&self, channel: &mut Channel, words: &[u32]) {
        let at = channel.cursor;
        for (index, word) in words.iter().enumerate() {
            channel.memory.write_u32(at + 4 * index as u64, *word).expect("inside");
        }
        channel.cursor += 4 * words.len() as u64;
        let entry = (BASE + at) | (words.len() as u64) << 42;
        self.entry(channel, entry);
    }

    fn entry(&self, channel: &mut Channel, entry: u64) {
        channel.memory.write_u64(RING + 8 * u64::from(channel.put), entry).expect("inside");
        channel.put = (channel.put + 1) % ENTRIES;
        channel.memory.write_u32(USERD + 0x8c, channel.put).expect("inside");
    }

    pub fn wait(&self, channel: &Channel, state: ChannelState) {
        until("the state", || {
            // The pointers first: a channel that took an entry is not idle before it has executed it.
            let taken = channel.word(USERD + 0x88) == channel.word(USERD + 0x8c);
            (taken || state != ChannelState::Idle) && self.host.channel_state(channel.id) == Some(state)
        });
    }
}

impl Channel {
    pub fn word(&self, offset: u64) -> u32 {
        self.memory.read_u32(offset).expect("inside")
    }

    pub fn long(&self, offset: u64) -> u64 {
        self.memory.read_u64(offset).expect("inside")
    }

    pub fn set(&self, offset: u64, value: u64) {
        self.memory.write_u64(offset, value).expect("inside");
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// The header of an incrementing method.
pub fn inc(subchannel: u32, address: u32, count: u32) -> u32 {
    0x2000_0000 | count << 16 | subchannel << 13 | address >> 2
}

/// A semaphore operation of the host: SEM_ADDR_LO to SEM_EXECUTE in one header.
pub fn semaphore(offset: u64, payload: u64, execute: u32) -> Vec<u32> {
    let address = BASE + offset;
    vec![
        inc(0, 0x5c, 5),
        address as u32,
        (address >> 32) as u32,
        payload as u32,
        (payload >> 32) as u32,
        execute,
    ]
}

fn reference(value: u32) -> [u32; 2] {
    [inc(0, 0x50, 1), value]
}

#[test]
fn acquire_resumes_on_plain_cpu_store() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = semaphore(DATA, 5, 0x0100_0003);
    words.extend(semaphore(DATA + 16, 0x1_0000_0002, 0x0100_0001));
    rig.submit(&mut channel, &words);
    rig.wait(&channel, ChannelState::Blocked { address: BASE + DATA, payload: 5 });
    assert_eq!(channel.long(DATA + 16), 0);
    channel.set(DATA, 5);
    until("the release", || channel.long(DATA + 16) == 0x1_0000_0002);
}

#[test]
fn a_host_that_is_idle_has_done_what_was_submitted() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    for round in 1..=3000u32 {
        // Many words, so that there is time between an entry's taking and its end.
        let mut words = reference(round).repeat(100);
        words.extend(semaphore(DATA, u64::from(round), 1));
        channel.cursor = PUSHBUFFER;
        rig.submit(&mut channel, &words);
        assert!(rig.host.wait_idle(LIMIT));
        assert_eq!(channel.word(DATA), round);
    }
}

#[test]
fn a_blocked_acquire_holds_only_its_channel() {
    let rig = Rig::new(Profile::ad102());
    let (mut first, mut second) = (rig.channel(), rig.channel());
    rig.submit(&mut first, &semaphore(DATA, 5, 0x0100_0000));
    rig.wait(&first, ChannelState::Blocked { address: BASE + DATA, payload: 5 });
    rig.run(&mut second, &semaphore(DATA, 9, 1));
    assert_eq!(second.word(DATA), 9);
    assert!(!rig.host.wait_idle(Duration::from_millis(5)));
    first.set(DATA, 5);
    assert!(rig.host.wait_idle(LIMIT));
}

#[test]
fn a_long_kernel_holds_only_its_channel_and_ends_with_it() {
    let rig = Rig::new(Profile::ad102());
    rig.recorder.endless.store(true, Ordering::Relaxed);
    let (mut first, mut second) = (rig.channel(), rig.channel());
    crate::engine::write_qmd(&first, DATA);
    rig.submit(&mut first, &crate::engine::launch(DATA));
    until("the kernel", || !rig.recorder.grids.lock().expect("no panics").is_empty());
    rig.run(&mut second, &semaphore(DATA, 9, 1));
    rig.host.remove_channel(first.id);
    assert_eq!(rig.host.channel_state(first.id), None);
    assert!(rig.host.faults().is_empty());
}

#[test]
fn the_ring_wraps_and_the_get_pointer_follows() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    for value in 1..=3 * ENTRIES {
        rig.run(&mut channel, &reference(value));
        assert_eq!(channel.word(USERD + 0x48), value);
        assert_eq!(channel.word(USERD + 0x88), value % ENTRIES);
    }
}

/// As on an H200: with an acquire blocked and more entries behind it, the pointer is two entries past the acquire.
#[test]
fn the_get_pointer_runs_ahead_of_what_is_read() {
    let rig = Rig::new(Profile::h200());
    let mut channel = rig.channel();
    rig.submit(&mut channel, &semaphore(DATA, 1, 0));
    rig.wait(&channel, ChannelState::Blocked { address: BASE + DATA, payload: 1 });
    assert_eq!(channel.word(USERD + 0x88), 1);
    for _ in 0..3 {
        rig.submit(&mut channel, &semaphore(DATA + 8, 1, 1));
    }
    until("the pointer", || channel.word(USERD + 0x88) == 2);
    channel.set(DATA, 1);
    rig.wait(&channel, ChannelState::Idle);
    assert_eq!(channel.word(USERD + 0x88), 4);
}

#[test]
fn work_is_found_without_a_doorbell() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    rig.wait(&channel, ChannelState::Idle);
    rig.submit_silently(&mut channel, &reference(77));
    until("the reference", || channel.word(USERD + 0x48) == 77);
}

#[test]
fn a_group_that_is_not_scheduled_does_nothing_until_it_is() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel_of(8);
    rig.submit(&mut channel, &reference(1));
    std::thread::sleep(Duration::from_millis(3));
    assert_eq!(rig.host.channel_state(channel.id), Some(ChannelState::Disabled));
    assert_eq!(channel.word(USERD + 0x48), 0);
    rig.host.set_enabled(8, true);
    until("the reference", || channel.word(USERD + 0x48) == 1);
}

#[test]
fn an_unknown_token_rings_nothing() {
    let rig = Rig::new(Profile::ad102());
    rig.host.doorbell(0xdead);
    assert!(rig.host.wait_idle(LIMIT));
}

#[test]
fn every_header_form_reaches_its_methods() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    // Zero words are no-ops; immediate data; the old incrementing and non-incrementing forms.
    rig.run(&mut channel, &[0, 0, 0x8000_0000 | 0x123 << 16 | 0x50 >> 2, 0]);
    assert_eq!(channel.word(USERD + 0x48), 0x123);
    rig.run(&mut channel, &[1 << 18 | 0x50, 0x1111]);
    assert_eq!(channel.word(USERD + 0x48), 0x1111);
    rig.run(&mut channel, &[0x4000_0000 | 2 << 18 | 0x50, 0x2222, 0x3333]);
    assert_eq!(channel.word(USERD + 0x48), 0x3333);
    rig.run(&mut channel, &[0x6000_0000 | 2 << 16 | 0x50 >> 2, 1, 0x4444]);
    assert_eq!(channel.word(USERD + 0x48), 0x4444);
    // One increment: SEM_PAYLOAD_LO takes the first word, SEM_PAYLOAD_HI all others.
    let address = BASE + DATA;
    let words = [inc(0, 0x5c, 2), address as u32, (address >> 32) as u32, 0xa000_0000 | 3 << 16 | 0x64 >> 2];
    rig.run(&mut channel, &[&words[..], &[7, 8, 9, inc(0, 0x6c, 1), 0x0100_0001]].concat());
    assert_eq!(channel.long(DATA), 0x9_0000_0007);
}

#[test]
fn data_of_a_method_may_lie_in_the_next_segment() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    rig.submit(&mut channel, &[inc(0, 0x50, 1)]);
    rig.run(&mut channel, &[0x5555]);
    assert_eq!(channel.word(USERD + 0x48), 0x5555);
}

#[test]
fn what_follows_an_end_of_segment_is_not_executed() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    rig.run(&mut channel, &[&reference(1)[..], &[0xe000_0000], &reference(2)].concat());
    assert_eq!(channel.word(USERD + 0x48), 1);
    rig.run(&mut channel, &reference(3));
    assert_eq!(channel.word(USERD + 0x48), 3);
}

#[test]
fn a_subdevice_mask_without_bit_0_keeps_methods_from_the_gpu() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    // Store mask 1, set mask 2, (masked write), use the stored one.
    let words = [2 << 16 | 1 << 4, 1 << 16 | 2 << 4, inc(0, 0x50, 1), 5, 3 << 16];
    rig.run(&mut channel, &words);
    assert_eq!(channel.word(USERD + 0x48), 0);
    rig.run(&mut channel, &reference(6));
    assert_eq!(channel.word(USERD + 0x48), 6);
}

#[test]
fn a_segment_longer_than_what_is_read_at_once_is_executed_whole() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let words: Vec<u32> = (1..=1500).flat_map(reference).collect();
    rig.run(&mut channel, &words);
    assert_eq!(channel.word(USERD + 0x48), 1500);
}

#[test]
fn releases_write_their_width_and_the_time() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    channel.set(DATA, u64::MAX);
    rig.run(&mut channel, &semaphore(DATA, 0x9_0000_0001, 1));
    assert_eq!(channel.long(DATA), 0xffff_ffff_0000_0001);
    rig.run(&mut channel, &semaphore(DATA, 0x9_0000_0001, 0x0100_0001));
    assert_eq!(channel.long(DATA), 0x9_0000_0001);
    // A 32-bit payload with the time is zero-extended (measured on H200).
    let before = now();
    channel.set(DATA, u64::MAX);
    rig.run(&mut channel, &semaphore(DATA, 0x9_0000_0002, 0x0200_0001));
    assert_eq!(channel.long(DATA), 2);
    assert!((before..=now()).contains(&channel.long(DATA + 8)));
    rig.run(&mut channel, &semaphore(DATA, 0x9_0000_0003, 0x0310_0001));
    assert_eq!(channel.long(DATA), 0x9_0000_0003);
}

#[test]
fn every_reduction_computes_in_memory() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    // (execute, memory, payload, result)
    let cases = [
        (0x0000_0006, 5, 0xffff_ffff, 0xffff_ffff),
        (0x8000_0006, 5, 0xffff_ffff, 5),
        (0x0800_0006, 5, 0xffff_ffff, 5),
        (0x8800_0006, 5, 0xffff_ffff, 0xffff_ffff),
        (0x1000_0006, 0b1100, 0b1010, 0b0110),
        (0x1800_0006, 0b1100, 0b1010, 0b1000),
        (0x2000_0006, 0b1100, 0b1010, 0b1110),
        // A 32-bit sum leaves the upper word alone (measured on H200).
        (0x2800_0006, 0x7_ffff_ffff, 2, 0x7_0000_0001),
        (0xa900_0006, 0xffff_ffff, 2, 0x1_0000_0001),
        (0xb000_0006, 4, 4, 0),
        (0xb800_0006, 0, 4, 4),
        (0x0100_0006, 1, u64::MAX, u64::MAX),
        (0x8100_0006, 1, u64::MAX, 1),
    ];
    for (execute, memory, payload, result) in cases {
        channel.cursor = PUSHBUFFER;
        channel.set(DATA, memory);
        rig.run(&mut channel, &semaphore(DATA, payload, execute));
        assert_eq!(channel.long(DATA), result, "{execute:#x}");
    }
}

#[test]
fn every_acquire_blocks_until_its_condition_holds() {
    let rig = Rig::new(Profile::ad102());
    // (execute, payload, memory that blocks, memory that passes)
    let cases = [
        (0x0000_0000, 5, 4, 0xf_0000_0005),
        (0x0100_0000, 0x1_0000_0005, 5, 0x1_0000_0005),
        (0x0000_0002, 5, 4, 0xffff_fff0),
        (0x0000_0003, 5, 0xffff_fff0, 6),
        (0x0100_0003, 5, 0xffff_ffff_ffff_fff0, 6),
        (0x0000_0004, 6, 9, 2),
        (0x0000_0005, 0xffff_fffe, 1, 0),
    ];
    for (execute, payload, blocks, passes) in cases {
        let mut channel = rig.channel();
        channel.set(DATA, blocks);
        rig.submit(&mut channel, &semaphore(DATA, payload, execute));
        rig.wait(&channel, ChannelState::Blocked { address: BASE + DATA, payload });
        channel.set(DATA, passes);
        rig.wait(&channel, ChannelState::Idle);
        rig.host.remove_channel(channel.id);
    }
}

#[test]
fn an_acquire_times_out_only_on_a_channel_that_limits_it() {
    let rig = Rig::new(Profile::ad102());
    let limit = Duration::from_millis(20);
    let mut free = rig.channel_of(9);
    rig.host.set_enabled(9, true);
    rig.submit(&mut free, &semaphore(DATA, 5, 0x0100_0000));
    rig.wait(&free, ChannelState::Blocked { address: BASE + DATA, payload: 5 });
    let start = Instant::now();
    let report = rig.fault(&mut rig.channel_with(7, Some(limit)), &semaphore(DATA, 5, 0x0100_0000));
    assert!(start.elapsed() >= limit);
    let Fault::Pbdma { interrupt, .. } = report.fault else { panic!("{report}") };
    assert_eq!((interrupt.mask(), report.fault.xid()), (0x0400_0000, Some(32)), "{report}");
    let state = rig.host.channel_state(free.id);
    assert_eq!(state, Some(ChannelState::Blocked { address: BASE + DATA, payload: 5 }));
    // One that passes in time is none.
    let mut channel = rig.channel_with(9, Some(limit));
    rig.submit(&mut channel, &semaphore(DATA, 5, 0x0100_0000));
    channel.set(DATA, 5);
    rig.wait(&channel, ChannelState::Idle);
    std::thread::sleep(2 * limit);
    assert_eq!(rig.host.channel_state(channel.id), Some(ChannelState::Idle));
}

#[test]
fn the_old_semaphore_methods_work() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let old = |payload: u32, operation: u32| {
        let address = BASE + DATA;
        [inc(0, 0x10, 4), (address >> 32) as u32, address as u32, payload, operation]
    };
    channel.set(DATA, u64::MAX);
    rig.run(&mut channel, &old(3, 0x0100_0002));
    assert_eq!(channel.long(DATA), 0xffff_ffff_0000_0003);
    rig.run(&mut channel, &old(4, 0x0000_0002));
    assert_eq!(channel.long(DATA), 4);
    assert!(channel.long(DATA + 8) > 0);
    rig.run(&mut channel, &old(5, 0xa800_0010));
    assert_eq!(channel.word(DATA), 9);
    rig.submit(&mut channel, &old(10, 4));
    rig.wait(&channel, ChannelState::Blocked { address: BASE + DATA, payload: 10 });
    channel.set(DATA, 10);
    rig.wait(&channel, ChannelState::Idle);
}

#[test]
fn interrupts_reach_the_kernel_modules_side() {
    let rig = Rig::new(Profile::ad102());
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    rig.host.set_event_sink(Box::new(move |event| sink.lock().expect("no panics").push(event.clone())));
    let mut channel = rig.channel();
    rig.run(&mut channel, &[inc(0, 0x20, 1), 0]);
    rig.fault(&mut channel, &[inc(0, 0x4, 1), 0]);
    until("both events", || events.lock().expect("no panics").len() == 2);
    let events = events.lock().expect("no panics");
    assert!(matches!(events[0], Event::NonStall { engine: 1, .. }));
    assert!(matches!(events[1], Event::RobustChannel { xid: 32, .. }));
}

#[test]
fn harmless_host_methods_do_nothing() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let words = [
        [inc(0, 0x8, 1), 0xffff_ffff],
        [inc(0, 0x24, 1), 0],
        [inc(0, 0x34, 1), 9 << 27],
        [inc(0, 0x34, 1), 5 << 27],
        [inc(0, 0x78, 1), 1],
        [inc(0, 0x80, 1), 3],
    ];
    rig.run(&mut channel, &words.concat());
    assert!(rig.host.faults().is_empty());
}

/// The stimuli that were measured on H200 and what they came to there.
#[test]
fn faults_have_the_xid_of_the_card() {
    let rig = Rig::new(Profile::h200());
    let object = |class| vec![inc(1, 0, 1), class];
    let cases: [(Vec<u32>, u32); 9] = [
        (semaphore(0x1_0000_0000, 1, 1), 31),
        (vec![inc(0, 0x4, 1), 0], 32),
        (vec![inc(0, 0xc, 1), 0], 32),
        (semaphore(DATA + 4, 1, 0x0100_0001), 32),
        (object(0x1234), 13),
        ([object(0xcbc0), vec![inc(1, 0xff8, 1), 0]].concat(), 11),
        ([object(0xcbc0), vec![inc(1, 0x2a4, 1), 0xfe00_0000]].concat(), 69),
        (vec![inc(3, 0x100, 1), 0], 13),
        (vec![0xc000_0000], 32),
    ];
    for (words, xid) in cases {
        let mut channel = rig.channel();
        let report = rig.fault(&mut channel, &words);
        assert_eq!(report.fault.xid(), Some(xid), "{report}");
        // The get pointer has passed the entry; later work is ignored.
        assert_eq!(channel.word(USERD + 0x88), 1);
        rig.submit(&mut channel, &reference(1));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(channel.word(USERD + 0x88), 1);
        assert_eq!(rig.host.channel_state(channel.id), Some(ChannelState::Dead));
        rig.host.remove_channel(channel.id);
    }
}

#[test]
fn pbdma_faults_name_the_interrupt_bit_that_the_card_prints() {
    let rig = Rig::new(Profile::ad102());
    let mask = |words: &[u32]| match rig.fault(&mut rig.channel(), words).fault {
        Fault::Pbdma { interrupt, .. } => interrupt.mask(),
        other => panic!("{other}"),
    };
    assert_eq!(mask(&[inc(0, 0x4, 1), 0]), 0x0020_0000);
    assert_eq!(mask(&semaphore(DATA + 4, 1, 0x0100_0001)), 0x0200_0000);
    assert_eq!(mask(&semaphore(DATA + 8, 1, 0x0200_0001)), 0x0200_0000);
    // 64-bit signed sums and increments do not exist.
    assert_eq!(mask(&semaphore(DATA, 1, 0x2900_0006)), 0x0200_0000);
    assert_eq!(mask(&semaphore(DATA, 1, 0xb100_0006)), 0x0200_0000);
    // A 40-bit address on Ada.
    assert_eq!(mask(&[inc(0, 0x60, 1), 0x100]), 0x0020_0000);
}

#[test]
fn bad_ring_entries_and_pointers_are_faults() {
    let rig = Rig::new(Profile::ad102());
    let fault = |channel: &mut Channel| {
        rig.host.doorbell(channel.token);
        until("the fault", || channel.word(NOTIFIER + 12) != 0);
        rig.host.faults().pop().expect("a report").fault
    };
    let mut channel = rig.channel();
    rig.entry(&mut channel, 0);
    rig.host.doorbell(channel.token);
    rig.wait(&channel, ChannelState::Idle);
    rig.entry(&mut channel, 1 << 32);
    assert!(matches!(fault(&mut channel), Fault::Pbdma { interrupt, .. } if interrupt.mask() == 1 << 15));
    let mut channel = rig.channel_of(9);
    rig.host.set_enabled(9, true);
    channel.memory.write_u32(USERD + 0x8c, ENTRIES).expect("inside");
    assert!(matches!(fault(&mut channel), Fault::Pbdma { interrupt, .. } if interrupt.mask() == 1 << 14));
    let mut channel = rig.channel_of(10);
    rig.host.set_enabled(10, true);
    rig.entry(&mut channel, 0x20_0000_0000 | 4 << 42);
    assert!(matches!(fault(&mut channel), Fault::Mmu { client: "host, pushbuffer", .. }));
}

#[test]
fn a_fault_ends_its_group_and_no_other() {
    let rig = Rig::new(Profile::ad102());
    rig.host.set_enabled(11, true);
    let (mut first, mut sibling, mut other) = (rig.channel(), rig.channel(), rig.channel_of(11));
    rig.fault(&mut first, &semaphore(0x1_0000_0000, 1, 1));
    rig.wait(&sibling, ChannelState::Dead);
    assert_eq!((sibling.word(NOTIFIER + 8), sibling.word(NOTIFIER + 12)), (31, 0xffff_0001));
    assert!(sibling.long(NOTIFIER) > 0);
    rig.submit(&mut sibling, &reference(1));
    rig.run(&mut other, &reference(2));
    assert_eq!((sibling.word(USERD + 0x48), other.word(USERD + 0x48)), (0, 2));
    let fault = rig.host.mmu_fault(first.id).expect("an MMU fault");
    assert_eq!((fault.va, fault.kind.number()), (BASE + 0x1_0000_0000, 0));
    assert_eq!(rig.host.mmu_fault(other.id), None);
}

#[test]
fn a_report_says_what_and_where() {
    let rig = Rig::new(Profile::ad102());
    let report = rig.fault(&mut rig.channel(), &[0, inc(0, 0x4, 1), 0xabcd]);
    assert_eq!(
        report.to_string(),
        "Xid 32: channel 0 (token 0x10): PBDMA interrupt 0x00200000 (Method): ILLEGAL = 0x0000abcd \
         [ring entry 0, pushbuffer word 0x0000abcd at 0x1000002008]"
    );
    // What the channel did before, of host and engine, the newest eight.
    let mut words = vec![inc(0, 0x50, 1), 7, inc(1, 0, 1), 0xc9c0, inc(1, 0x100, 1), 1];
    words.extend([2, 3, 4, 5, 6, 7].into_iter().flat_map(|value| [inc(0, 0x50, 1), value]));
    words.extend([inc(1, 0xff8, 1), 9]);
    let report = rig.fault(&mut rig.channel(), &words);
    let expected = ", after SET_OBJECT = 0xc9c0, NO_OPERATION = 0x1, SET_REFERENCE = 0x2, SET_REFERENCE = 0x3, \
                    SET_REFERENCE = 0x4, SET_REFERENCE = 0x5, SET_REFERENCE = 0x6, SET_REFERENCE = 0x7]";
    assert!(report.to_string().ends_with(expected), "{report}");
}
