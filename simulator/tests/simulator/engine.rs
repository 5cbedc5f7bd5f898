//! Engines on hand-made pushbuffers, through a whole channel. Numbers are written out.

use std::sync::atomic::Ordering;

use nv_simulator::{
    engine::is_state,
    fault::{Fault, LaunchError},
    host::ChannelState,
    profile::Profile,
};

use crate::host::{BASE, Channel, DATA, Rig, inc, semaphore};

const COPY: [u32; 2] = [inc_const(4, 0, 1), 0xc7b5];
const COMPUTE: [u32; 2] = [inc_const(1, 0, 1), 0xc9c0];

const fn inc_const(subchannel: u32, address: u32, count: u32) -> u32 {
    0x2000_0000 | count << 16 | subchannel << 13 | address >> 2
}

fn halves(offset: u64) -> [u32; 2] {
    let address = BASE + offset;
    [(address >> 32) as u32, address as u32]
}

/// A copy with everything that a transfer takes.
struct Transfer {
    source: u64,
    target: u64,
    pitch: [u32; 2],
    length: u32,
    lines: u32,
    launch: u32,
}

impl Transfer {
    fn words(&self) -> Vec<u32> {
        let mut words = COPY.to_vec();
        words.push(inc(4, 0x400, 8));
        words.extend(halves(self.source));
        words.extend(halves(self.target));
        words.extend(self.pitch);
        words.extend([self.length, self.lines, inc(4, 0x300, 1), self.launch]);
        words
    }
}

fn fill(channel: &Channel, offset: u64, bytes: impl IntoIterator<Item = u8>) {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    channel.memory.write(offset, &bytes).expect("inside");
}

fn bytes(channel: &Channel, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    channel.memory.read(offset, &mut bytes).expect("inside");
    bytes
}

#[test]
fn a_copy_moves_exactly_its_bytes() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    fill(&channel, DATA, 1..=200);
    // Without MULTI_LINE the line count and the pitches are ignored.
    let transfer = Transfer {
        source: DATA + 3,
        target: DATA + 0x1001,
        pitch: [9, 9],
        length: 101,
        lines: 7,
        launch: 0x182,
    };
    rig.run(&mut channel, &transfer.words());
    assert_eq!(bytes(&channel, DATA + 0x1001, 101), (4..105).collect::<Vec<u8>>());
    assert_eq!(bytes(&channel, DATA + 0x1000, 1), [0]);
    assert_eq!(bytes(&channel, DATA + 0x1001 + 101, 1), [0]);
    assert_eq!(rig.host.counters().bytes_copied, 101);
}

#[test]
fn a_copy_of_several_lines_follows_signed_pitches() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    fill(&channel, DATA, 0..64);
    let transfer = Transfer {
        source: DATA,
        target: DATA + 0x1020,
        pitch: [16, (-8i32) as u32],
        length: 4,
        lines: 3,
        launch: 0x382,
    };
    rig.run(&mut channel, &transfer.words());
    assert_eq!(bytes(&channel, DATA + 0x1020, 4), [0, 1, 2, 3]);
    assert_eq!(bytes(&channel, DATA + 0x1018, 4), [16, 17, 18, 19]);
    assert_eq!(bytes(&channel, DATA + 0x1010, 4), [32, 33, 34, 35]);
}

#[test]
fn remapped_constants_fill_memory_and_need_no_source() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    // Elements of one four-byte component, from CONST_A; the source address is not mapped.
    let mut words = COPY.to_vec();
    words.extend([inc(4, 0x700, 3), 0x1234_5678, 0, 4 | 3 << 16]);
    let transfer =
        Transfer { source: 1 << 36, target: DATA + 4, pitch: [0; 2], length: 5, lines: 1, launch: 0x582 };
    words.extend(transfer.words());
    rig.run(&mut channel, &words);
    let expected = [0u32, 0x1234_5678, 0x1234_5678, 0x1234_5678, 0x1234_5678, 0x1234_5678, 0];
    let found: Vec<u32> = (0..7).map(|index| channel.word(DATA + 4 * index)).collect();
    assert_eq!(found, expected);
}

#[test]
fn remapped_components_are_swizzled_and_may_keep_the_target() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    fill(&channel, DATA, [1, 2, 3, 4]);
    fill(&channel, DATA + 0x100, [0xaa; 8]);
    // One-byte components, two in the source, four in the target: Y, NO_WRITE, X, CONST_B.
    let components = 1 | 6 << 4 | 5 << 12 | 1 << 20 | 3 << 24;
    let mut words = COPY.to_vec();
    words.extend([inc(4, 0x700, 3), 0, 0xee, components]);
    let transfer =
        Transfer { source: DATA, target: DATA + 0x100, pitch: [0; 2], length: 2, lines: 1, launch: 0x582 };
    words.extend(transfer.words());
    rig.run(&mut channel, &words);
    assert_eq!(bytes(&channel, DATA + 0x100, 8), [2, 0xaa, 1, 0xee, 4, 0xaa, 3, 0xee]);
}

#[test]
fn a_component_that_the_source_lacks_is_a_bad_value() {
    let rig = Rig::new(Profile::ad102());
    let mut words = COPY.to_vec();
    words.extend([inc(4, 0x708, 1), 2 | 1 << 20]);
    let transfer =
        Transfer { source: DATA, target: DATA + 0x100, pitch: [0; 2], length: 2, lines: 1, launch: 0x582 };
    words.extend(transfer.words());
    let report = rig.fault(&mut rig.channel(), &words);
    assert_eq!(report.fault.xid(), Some(69), "{report}");
}

#[test]
fn copy_semaphores_have_one_two_or_four_words_and_reduce() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let release = |payload: u64, launch: u32| {
        let mut words = COPY.to_vec();
        words.push(inc(4, 0x240, 4));
        words.extend(halves(DATA));
        words.extend([payload as u32, (payload >> 32) as u32, inc(4, 0x300, 1), launch]);
        words
    };
    channel.set(DATA, u64::MAX);
    rig.run(&mut channel, &release(0x5_0000_0001, 0x8));
    assert_eq!(channel.long(DATA), 0xffff_ffff_0000_0001);
    rig.run(&mut channel, &release(0x5_0000_0002, 0x0800_0008));
    assert_eq!(channel.long(DATA), 0x5_0000_0002);
    // The seed's word: FLUSH_ENABLE and a four-word release.
    rig.run(&mut channel, &release(0x5_0000_0003, 0x14));
    assert_eq!(channel.long(DATA), 3);
    assert!(channel.long(DATA + 8) > 0);
    // A 32-bit unsigned sum.
    rig.run(&mut channel, &release(4, 0x8 | 5 << 14 | 1 << 18 | 1 << 19));
    assert_eq!(channel.long(DATA), 7);
}

#[test]
fn copies_that_are_not_simulated_say_so() {
    let rig = Rig::new(Profile::ad102());
    for launch in [0x082, 0x102, 0x1182, 0x2182, 0x18] {
        let transfer =
            Transfer { source: DATA, target: DATA + 0x100, pitch: [0; 2], length: 4, lines: 1, launch };
        let report = rig.fault(&mut rig.channel(), &transfer.words());
        let named = matches!(report.fault, Fault::NotSimulated { class: 0xc7b5, method: "LAUNCH_DMA", .. });
        assert!(named, "{launch:#x}: {report}");
    }
}

#[test]
fn a_copy_that_is_more_than_a_copy_is_refused_by_name() {
    for (launch, what) in
        [(0x10_0182, "secure copies"), (0x40_0182, "protected video memory"), (0x80_0182, "memory scrubbing")]
    {
        let rig = Rig::new(Profile::h200());
        let mut channel = rig.channel();
        let mut words = vec![inc_const(4, 0, 1), 0xc8b5];
        words.extend([inc(4, 0x418, 1), 4, inc(4, 0x300, 1), launch]);
        let report = rig.fault(&mut channel, &words);
        assert!(report.to_string().contains(what), "{report}");
    }
}

#[test]
fn a_copy_faults_on_what_is_not_mapped() {
    let rig = Rig::new(Profile::ad102());
    let length = 16;
    for (source, target, client) in
        [(1 << 36, DATA, "copy engine, source"), (DATA, 1 << 36, "copy engine, destination")]
    {
        let transfer = Transfer { source, target, pitch: [0; 2], length, lines: 1, launch: 0x182 };
        let report = rig.fault(&mut rig.channel(), &transfer.words());
        assert!(matches!(report.fault, Fault::Mmu { client: who, .. } if who == client), "{report}");
    }
}

#[test]
fn inline_data_goes_to_memory_in_every_header_form() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let start = |offset: u64, bytes: u32| {
        let mut words = COMPUTE.to_vec();
        words.push(inc(1, 0x188, 2));
        words.extend(halves(offset));
        words.extend([inc(1, 0x180, 2), bytes, 1]);
        words
    };
    // Non-incrementing, as the seed writes it; the last word counts in part.
    let mut words = start(DATA, 10);
    words.extend([inc(1, 0x1b0, 1), 0x41, 0x6000_0000 | 3 << 16 | 1 << 13 | 0x1b4 >> 2]);
    words.extend([0x0403_0201, 0x0807_0605, 0xffff_0a09]);
    rig.run(&mut channel, &words);
    assert_eq!(bytes(&channel, DATA, 11), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
    // One increment: the first word is LAUNCH_DMA's, all others are data.
    let mut words = start(DATA + 0x20, 8);
    words.extend([0xa000_0000 | 3 << 16 | 1 << 13 | 0x1b0 >> 2, 0x41, 7, 8]);
    rig.run(&mut channel, &words);
    assert_eq!(channel.long(DATA + 0x20), 0x8_0000_0007);
    // Immediate.
    let mut words = start(DATA + 0x40, 4);
    words.extend([inc(1, 0x1b0, 1), 0x41, 0x8000_0000 | 0x1234 << 16 | 1 << 13 | 0x1b4 >> 2]);
    rig.run(&mut channel, &words);
    assert_eq!(channel.long(DATA + 0x40), 0x1234);
}

#[test]
fn inline_data_releases_its_semaphore_when_complete() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = COMPUTE.to_vec();
    words.push(inc(1, 0x1dc, 3));
    words.extend(halves(DATA + 0x100));
    words.extend([0x77, inc(1, 0x188, 2)]);
    words.extend(halves(DATA));
    words.extend([inc(1, 0x180, 2), 8, 1, inc(1, 0x1b0, 1), 0x21]);
    words.extend([0x6000_0000 | 1 << 16 | 1 << 13 | 0x1b4 >> 2, 1]);
    rig.run(&mut channel, &words);
    assert_eq!((channel.long(DATA), channel.long(DATA + 0x100)), (0, 0));
    rig.run(&mut channel, &[0x6000_0000 | 1 << 16 | 1 << 13 | 0x1b4 >> 2, 2]);
    assert_eq!((channel.long(DATA), channel.long(DATA + 0x100)), (0x2_0000_0001, 0x77));
    assert!(channel.long(DATA + 0x108) > 0);
}

#[test]
fn inline_data_that_nobody_awaits_is_a_bad_value() {
    let rig = Rig::new(Profile::ad102());
    let report = rig.fault(&mut rig.channel(), &[&COMPUTE[..], &[inc(1, 0x1b4, 1), 1]].concat());
    assert!(matches!(report.fault, Fault::BadValue { method: "LOAD_INLINE_DATA", .. }), "{report}");
}

#[test]
fn report_semaphores_are_released_and_reduced() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let report = |payload: u32, execute: u32| {
        let mut words = COMPUTE.to_vec();
        words.push(inc(1, 0x1b00, 4));
        words.extend(halves(DATA));
        words.extend([payload, execute]);
        words
    };
    rig.run(&mut channel, &report(5, 1 << 28));
    assert_eq!(channel.long(DATA), 5);
    rig.run(&mut channel, &report(6, 1 << 28 | 1 << 3));
    assert_eq!(channel.long(DATA), 11);
    rig.run(&mut channel, &report(7, 0));
    assert_eq!(channel.long(DATA), 7);
    assert!(channel.long(DATA + 8) > 0);
    // The newer method with a payload of 64 bits.
    let mut words = vec![inc(1, 0x158, 5), 9, 1];
    words.extend([halves(DATA)[1], halves(DATA)[0], 2 << 3 | 1 << 12]);
    rig.run(&mut channel, &words);
    assert_eq!(channel.long(DATA), 0x1_0000_0009);
}

#[test]
fn an_object_keeps_its_state_over_set_object() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = COMPUTE.to_vec();
    words.push(inc(1, 0x1b00, 3));
    words.extend(halves(DATA));
    words.push(5);
    words.extend(COMPUTE);
    words.extend([inc(1, 0x1b0c, 1), 1 << 28]);
    rig.run(&mut channel, &words);
    assert_eq!(channel.long(DATA), 5);
}

/// Sets bits `hi:lo` of a descriptor in memory.
fn set_bits(qmd: &mut [u8], hi: usize, lo: usize, value: u64) {
    for bit in lo..=hi {
        let mask = 1 << (bit % 8);
        if value >> (bit - lo) & 1 != 0 {
            qmd[bit / 8] |= mask;
        } else {
            qmd[bit / 8] &= !mask;
        }
    }
}

/// A version 3.0 descriptor that passes every check, by the bits of NVIDIA's class header.
fn qmd() -> Vec<u8> {
    let mut qmd = vec![0; 256];
    set_bits(&mut qmd, 583, 580, 3);
    set_bits(&mut qmd, 415, 384, 4);
    set_bits(&mut qmd, 431, 416, 3);
    set_bits(&mut qmd, 463, 448, 2);
    set_bits(&mut qmd, 607, 592, 64);
    set_bits(&mut qmd, 623, 608, 2);
    set_bits(&mut qmd, 639, 624, 1);
    set_bits(&mut qmd, 656, 648, 32);
    set_bits(&mut qmd, 561, 544, 0x400);
    set_bits(&mut qmd, 767, 763, 1);
    set_bits(&mut qmd, 1567, 1536, BASE + 0x2_0000);
    set_bits(&mut qmd, 1584, 1568, (BASE + 0x2_0000) >> 32);
    set_bits(&mut qmd, 640, 640, 1);
    set_bits(&mut qmd, 1055, 1024, BASE + 0x3_0000);
    set_bits(&mut qmd, 1072, 1056, (BASE + 0x3_0000) >> 32);
    set_bits(&mut qmd, 1087, 1075, 0x160 / 16);
    qmd
}

/// Writes such a descriptor.
pub(crate) fn write_qmd(channel: &Channel, offset: u64) {
    channel.memory.write(offset, &qmd()).expect("inside");
}

/// Windows and the seed's three launch methods.
pub(crate) fn launch(offset: u64) -> Vec<u32> {
    let mut words = COMPUTE.to_vec();
    words.extend([inc(1, 0x7b0, 2), 0, 0xff00_0000, inc(1, 0x2a0, 2), 0, 0xfe00_0000]);
    words.extend([inc(1, 0x1698, 1), 0x1011]);
    words.extend([inc(1, 0x2b4, 1), ((BASE + offset) >> 8) as u32, inc(1, 0x2c0, 1), 9]);
    words
}

fn release0(qmd: &mut [u8], address: u64, payload: u64) {
    set_bits(qmd, 823, 823, 1);
    set_bits(qmd, 799, 768, address);
    set_bits(qmd, 807, 800, address >> 32);
    set_bits(qmd, 863, 832, payload);
    set_bits(qmd, 895, 864, payload >> 32);
}

#[test]
fn a_qmd_reaches_the_executor_and_releases_its_semaphores() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut qmd = qmd();
    release0(&mut qmd, BASE + DATA + 0x800, 0x5_0000_0007);
    // Slot 1 adds one word.
    set_bits(&mut qmd, 951, 951, 1);
    set_bits(&mut qmd, 927, 896, BASE + DATA + 0x900);
    set_bits(&mut qmd, 935, 928, (BASE + DATA + 0x900) >> 32);
    set_bits(&mut qmd, 954, 954, 1);
    set_bits(&mut qmd, 959, 958, 1);
    set_bits(&mut qmd, 991, 960, 3);
    channel.memory.write(DATA, &qmd).expect("inside");
    channel.set(DATA + 0x900, 4);
    rig.run(&mut channel, &launch(DATA));
    let grids = rig.recorder.grids.lock().expect("no panics").clone();
    assert_eq!(grids.len(), 1);
    let grid = &grids[0];
    assert_eq!((grid.grid, grid.block), ([4, 3, 2], [64, 2, 1]));
    assert_eq!((grid.program_address, grid.registers), (BASE + 0x2_0000, 32));
    assert_eq!((grid.shared_bytes, grid.barriers, grid.sm), (0x400, 1, 89));
    assert_eq!((grid.shared_window, grid.local_window), (0xfe00_0000, 0xff00_0000));
    let bank = grid.constant_buffers[0].expect("valid");
    assert_eq!((bank.address, bank.bytes), (BASE + 0x3_0000, 0x160));
    assert_eq!(grid.constant_buffers[1], None);
    // Four words with a 32-bit payload, as the wire has it.
    assert_eq!(channel.long(DATA + 0x800), 7);
    assert!(channel.long(DATA + 0x808) > 0);
    assert_eq!(channel.long(DATA + 0x900), 7);
    assert_eq!(rig.host.counters().instructions, 3);
}

#[test]
fn a_release_may_raise_an_interrupt_always_and_not_on_a_condition() {
    let rig = Rig::new(Profile::ad102());
    let events = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let sink = std::sync::Arc::clone(&events);
    rig.host.set_event_sink(Box::new(move |event| {
        if matches!(event, nv_simulator::host::Event::NonStall { .. }) {
            sink.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let mut channel = rig.channel();
    let mut qmd = qmd();
    release0(&mut qmd, BASE + DATA + 0x800, 7);
    for (trap, interrupts) in [(0, 0), (1, 1)] {
        set_bits(&mut qmd, 828, 827, trap);
        channel.memory.write(DATA, &qmd).expect("inside");
        rig.run(&mut channel, &launch(DATA));
        assert_eq!(events.load(Ordering::Relaxed), interrupts);
    }
    set_bits(&mut qmd, 828, 827, 2);
    channel.memory.write(DATA, &qmd).expect("inside");
    let report = rig.fault(&mut channel, &launch(DATA));
    assert!(matches!(report.fault, Fault::NotSimulated { .. }), "{report}");
}

#[test]
fn state_is_known_or_listed() {
    let rig = Rig::new(Profile::ad102());
    // Every SET_ method of every class is in one of the lists.
    for class in nv_abi::compute::CLASSES {
        for method in class.all() {
            let expected = method.name.starts_with("SET_") && !not_state(method.name);
            assert_eq!(is_state(method), expected, "{:#x} {}", class.number, method.name);
        }
    }
    let mut channel = rig.channel();
    let listed = || rig.host.unsupported();
    let set = |address, value| [&COMPUTE[..], &[inc(1, address, 1), value]].concat();
    // SET_QMD_VERSION, SET_SHADER_EXCEPTIONS as after reset, SET_TRAP_HANDLER_A with no handler.
    for (address, value) in [(0x288, 0x0003_0003), (0x1528, 1), (0x25f8, 0)] {
        rig.run(&mut channel, &set(address, value));
        assert_eq!(listed(), [], "{address:#x}");
    }
    for (address, value, name) in [
        (0x1528, 0, "SET_SHADER_EXCEPTIONS"),
        (0x25fc, 0x1000, "SET_TRAP_HANDLER_B"),
        (0x510, 1, "SET_FALCON04"),
        (0x337c, 1, "SET_SHADER_PERFORMANCE_COUNTER_EVENT"),
    ] {
        let before = listed().len();
        rig.run(&mut channel, &set(address, value));
        assert_eq!(listed().len(), before + 1);
        assert!(listed().iter().any(|(what, count)| what.contains(name) && *count == 1), "{:?}", listed());
    }
}

/// Methods with that beginning of a name which do something.
fn not_state(name: &str) -> bool {
    ["SET_OBJECT", "SET_REPORT_SEMAPHORE_D"].contains(&name)
}

#[test]
fn every_scheduling_form_launches_and_the_others_do_not() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    write_qmd(&channel, DATA);
    rig.run(&mut channel, &launch(DATA));
    let count = || rig.recorder.grids.lock().expect("no panics").len();
    let mut expected = 1;
    for (action, launches) in [(0, 0), (1, 0), (2, 1), (3, 1), (8, 0), (9, 1), (0xa, 1), (0xb, 1)] {
        rig.run(&mut channel, &[inc(1, 0x2c0, 1), action]);
        expected += launches;
        assert_eq!(count(), expected, "PCAS2 action {action}");
    }
    rig.run(&mut channel, &[inc(1, 0x2bc, 1), 3]);
    assert_eq!(count(), expected + 1);
    rig.run(&mut channel, &[inc(1, 0x2bc, 1), 1]);
    assert_eq!(count(), expected + 1);
    let report = rig.fault(&mut channel, &[inc(1, 0x2c0, 1), 7]);
    assert!(report.to_string().contains("DECREMENT_DEPENDENCE"), "{report}");
}

#[test]
fn a_chain_of_dependents_runs_in_order() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    for (index, next) in [Some(1u64), Some(2), None].into_iter().enumerate() {
        let mut qmd = qmd();
        set_bits(&mut qmd, 415, 384, index as u64 + 1);
        if let Some(next) = next {
            set_bits(&mut qmd, 511, 480, (BASE + DATA + 0x100 * next) >> 8);
            set_bits(&mut qmd, 512, 512, 1);
            set_bits(&mut qmd, 515, 513, 1);
        } else {
            release0(&mut qmd, BASE + DATA + 0x800, 9);
        }
        channel.memory.write(DATA + 0x100 * index as u64, &qmd).expect("inside");
    }
    rig.run(&mut channel, &launch(DATA));
    let widths: Vec<u32> =
        rig.recorder.grids.lock().expect("no panics").iter().map(|grid| grid.grid[0]).collect();
    assert_eq!(widths, [1, 2, 3]);
    assert_eq!(channel.long(DATA + 0x800), 9);
}

#[test]
fn an_inline_qmd_is_stored_and_launched_by_its_last_word() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = COMPUTE.to_vec();
    words.extend([inc(1, 0x7b0, 2), 0, 0xff00_0000, inc(1, 0x2a0, 2), 0, 0xfe00_0000]);
    words.extend([inc(1, 0x318, 66), 0, ((BASE + DATA) >> 8) as u32]);
    words.extend(qmd().chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    rig.run(&mut channel, &words);
    assert_eq!(rig.recorder.grids.lock().expect("no panics").len(), 1);
    assert_eq!(bytes(&channel, DATA, 256), qmd());
}

/// A descriptor of Ada in words.
fn words_of(qmd: &[u8]) -> impl Iterator<Item = u32> {
    qmd.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

#[test]
fn a_graph_starts_with_its_first_descriptor_and_each_of_the_others_once() {
    // As NVIDIA's library uploads graphs: the last one first, all but a grid of zeros at the head wait to be scheduled.
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = launch(DATA)[..COMPUTE.len() + 6].to_vec();
    for place in [2u64, 1, 0] {
        let mut qmd = qmd();
        set_bits(&mut qmd, 415, 384, place);
        if place == 0 {
            set_bits(&mut qmd, 463, 416, 0);
        } else {
            // REQUIRE_SCHEDULING_PCAS.
            set_bits(&mut qmd, 140, 140, 1);
        }
        if place == 2 {
            release0(&mut qmd, BASE + DATA + 0x800, 9);
        } else {
            set_bits(&mut qmd, 511, 480, (BASE + DATA + 0x100 * (place + 1)) >> 8);
            set_bits(&mut qmd, 515, 512, 3);
        }
        words.extend([inc(1, 0x318, 66), 0, ((BASE + DATA + 0x100 * place) >> 8) as u32]);
        words.extend(words_of(&qmd));
    }
    rig.run(&mut channel, &words);
    let widths: Vec<u32> =
        rig.recorder.grids.lock().expect("no panics").iter().map(|grid| grid.grid[0]).collect();
    assert_eq!(widths, [1, 2]);
    assert_eq!(channel.long(DATA + 0x800), 9);
    // PCAS2 hands one over that waits to be scheduled, or schedules it.
    for (action, launches) in [(0xa, 2), (3, 2), (9, 3)] {
        let pointer = ((BASE + DATA + 0x200) >> 8) as u32;
        rig.run(&mut channel, &[inc(1, 0x2b4, 1), pointer, inc(1, 0x2c0, 1), action]);
        assert_eq!(rig.recorder.grids.lock().expect("no panics").len(), launches, "PCAS2 action {action}");
    }
}

#[test]
fn a_grid_that_depends_on_two_starts_after_the_second() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let joined = BASE + DATA + 0x200;
    let mut last = qmd();
    // DEPENDENCE_COUNTER.
    set_bits(&mut last, 157, 142, 2);
    set_bits(&mut last, 415, 384, 77);
    channel.memory.write(DATA + 0x200, &last).expect("inside");
    for place in [0, 1] {
        let mut qmd = qmd();
        set_bits(&mut qmd, 511, 480, joined >> 8);
        // Enabled, DECREMENT_DEPENDENCE.
        set_bits(&mut qmd, 515, 512, 4 << 1 | 1);
        channel.memory.write(DATA + 0x100 * place, &qmd).expect("inside");
    }
    let widths = || {
        let grids = rig.recorder.grids.lock().expect("no panics");
        grids.iter().map(|grid| grid.grid[0]).collect::<Vec<u32>>()
    };
    rig.run(&mut channel, &launch(DATA + 0x200));
    rig.run(&mut channel, &launch(DATA));
    assert_eq!(widths(), [4]);
    rig.run(&mut channel, &launch(DATA + 0x100));
    assert_eq!(widths(), [4, 4, 77]);
}

#[test]
fn a_null_grid_of_hopper_runs_nothing_and_schedules_what_follows() {
    let rig = Rig::new(Profile::h200());
    let mut channel = rig.channel();
    let mut qmd = vec![0; 384];
    set_bits(&mut qmd, 583, 580, 4);
    // GRID_NULL with a release of one word.
    set_bits(&mut qmd, 25, 23, 1);
    set_bits(&mut qmd, 322, 320, 3);
    set_bits(&mut qmd, 671, 640, BASE + DATA + 0x800);
    set_bits(&mut qmd, 696, 672, (BASE + DATA + 0x800) >> 32);
    set_bits(&mut qmd, 735, 704, 6);
    channel.memory.write(DATA, &qmd).expect("inside");
    let pointer = ((BASE + DATA) >> 8) as u32;
    rig.run(&mut channel, &[inc(1, 0, 1), 0xcbc0, inc(1, 0x2b4, 1), pointer, inc(1, 0x2c0, 1), 9]);
    assert_eq!(rig.recorder.grids.lock().expect("no panics").len(), 0);
    assert_eq!(channel.word(DATA + 0x800), 6);
}

#[test]
fn channels_of_a_context_launch_with_what_one_of_them_set() {
    let rig = Rig::new(Profile::ad102());
    let (mut first, mut second) = (rig.channel(), rig.channel());
    // Windows and local memory: NON_THROTTLED is 1 MiB.
    let mut words = launch(DATA)[..COMPUTE.len() + 6].to_vec();
    words.extend([inc(1, 0x790, 2)]);
    words.extend(halves(DATA + 0x1000));
    words.extend([inc(1, 0x2e4, 3), 0, 1 << 20, 0xff]);
    rig.run(&mut first, &words);
    let mut qmd = qmd();
    set_bits(&mut qmd, 1623, 1600, 0x20);
    second.memory.write(DATA, &qmd).expect("inside");
    let schedule = [inc(1, 0x2b4, 1), ((BASE + DATA) >> 8) as u32, inc(1, 0x2c0, 1), 9];
    let words: Vec<u32> = COMPUTE.into_iter().chain(schedule).collect();
    rig.run(&mut second, &words);
    assert_eq!(rig.recorder.grids.lock().expect("no panics").len(), 1);
    // Another group has a context of its own.
    rig.host.set_enabled(8, true);
    let mut other = rig.channel_of(8);
    other.memory.write(DATA, &qmd).expect("inside");
    let report = rig.fault(&mut other, &words);
    assert!(
        matches!(report.fault, Fault::Launch { error: LaunchError::MemoryWindowOverlap { .. }, .. }),
        "{report}"
    );
}

#[test]
fn a_macro_fills_memory_through_inline_data() {
    // Method LOAD_INLINE_DATA without a step; as often as the first parameter says: the second.
    let program = [
        [0x14_0003, 0x1d00_001b, 0x71c0_8300],
        [0x3, 0x18c0_0000, 0xb01c_5f00],
        [0x20_0003, 0x18c0_0000, 0x300c_0300],
        [0x3, 0x18c0_0000, 0x318c_0301],
        [0x3, 0x18c0_0000, 0x318c_0300],
    ];
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut words = COMPUTE.to_vec();
    words.extend([inc(1, 0x114, 1), 0, 0x6000_0000 | 15 << 16 | 1 << 13 | 0x118 >> 2]);
    words.extend(program.as_flattened());
    words.extend([inc(1, 0x11c, 2), 0, 0]);
    words.extend([inc(1, 0x180, 2), 16, 1, inc(1, 0x188, 2)]);
    words.extend(halves(DATA));
    words.extend([inc(1, 0x1b0, 1), 0x41, inc(1, 0x3800, 2), 4, 0x0102_0304]);
    rig.run(&mut channel, &words);
    assert_eq!(bytes(&channel, DATA, 20), [[4, 3, 2, 1].repeat(4), vec![0; 4]].concat());
    let report = rig.fault(&mut channel, &[inc(1, 0x3808, 1), 4]);
    assert!(report.to_string().contains("program 1 was never loaded"), "{report}");
}

#[test]
fn the_scheduler_refuses_what_does_not_fit_an_sm() {
    let rig = Rig::new(Profile::ad102());
    let refused = |hi, lo, value| {
        let mut channel = rig.channel();
        let mut qmd = qmd();
        set_bits(&mut qmd, hi, lo, value);
        channel.memory.write(DATA, &qmd).expect("inside");
        let report = rig.fault(&mut channel, &launch(DATA));
        assert_eq!(report.fault.xid(), Some(13), "{report}");
        match report.fault {
            Fault::Launch { error, .. } => error,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(refused(607, 592, 0), LaunchError::ThreadDimensionZero(_)));
    assert!(matches!(refused(607, 592, 513), LaunchError::TotalThreads { threads: 1026, .. }));
    assert!(matches!(refused(431, 416, 0), LaunchError::GridDimension(_)));
    assert!(matches!(refused(656, 648, 256), LaunchError::RegisterCount { .. }));
    assert!(matches!(refused(561, 544, 100 * 1024 + 256), LaunchError::SharedMemorySize { .. }));
    assert!(matches!(refused(767, 763, 17), LaunchError::BarrierCount { .. }));
    assert!(matches!(refused(1567, 1536, 0x1234_5610), LaunchError::ProgramOffset(_)));
    assert!(matches!(refused(1623, 1600, 0x100), LaunchError::TotalTempSize { .. }));
    assert!(rig.recorder.grids.lock().expect("no panics").is_empty());
}

#[test]
fn registers_of_a_block_are_limited_by_the_sm() {
    let rig = Rig::new(Profile::ad102());
    let mut channel = rig.channel();
    let mut qmd = qmd();
    // 1024 threads with 64 registers just fit; with 72 they do not.
    set_bits(&mut qmd, 607, 592, 512);
    set_bits(&mut qmd, 656, 648, 64);
    channel.memory.write(DATA, &qmd).expect("inside");
    rig.run(&mut channel, &launch(DATA));
    set_bits(&mut qmd, 656, 648, 65);
    channel.memory.write(DATA, &qmd).expect("inside");
    let report = rig.fault(&mut channel, &launch(DATA));
    let error = LaunchError::TotalRegisterCount { registers: 65, threads: 1024, limit: 65_536 };
    assert!(matches!(report.fault, Fault::Launch { error: found, .. } if found == error));
}

#[test]
fn a_warps_fault_ends_the_channel_without_a_release() {
    let rig = Rig::new(Profile::ad102());
    rig.recorder.fault.store(true, Ordering::Relaxed);
    let mut channel = rig.channel();
    let mut qmd = qmd();
    release0(&mut qmd, BASE + DATA + 0x800, 1);
    channel.memory.write(DATA, &qmd).expect("inside");
    let report = rig.fault(&mut channel, &launch(DATA));
    assert_eq!(report.fault.xid(), Some(13));
    assert!(report.to_string().contains("illegal instruction"), "{report}");
    assert_eq!(channel.long(DATA + 0x800), 0);
}

#[test]
fn hopper_hangs_on_a_version_3_descriptor_without_any_error() {
    let rig = Rig::new(Profile::h200());
    let mut channel = rig.channel();
    write_qmd(&channel, DATA);
    let mut words = vec![inc(1, 0, 1), 0xcbc0];
    words.extend([inc(1, 0x2b4, 1), ((BASE + DATA) >> 8) as u32, inc(1, 0x2c0, 1), 9]);
    words.extend(semaphore(DATA + 0x800, 1, 0x0010_0001));
    rig.submit(&mut channel, &words);
    rig.wait(&channel, ChannelState::Hung);
    assert_eq!(channel.long(DATA + 0x800), 0);
    let report = rig.host.faults().pop().expect("people are told");
    assert_eq!(report.fault.xid(), None, "{report}");
}
