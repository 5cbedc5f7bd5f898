//! A device through the whole driver: bring-up, memory, copies, semaphores, timestamps.

use std::{
    thread,
    time::{Duration, Instant},
};

use nv_driver::{ComputeQueue, Condition, CopyQueue, Device, Error, Lines, Options, System};
use nv_simulator::{machine::Machine, profile::Profile};
use tests::{DEADLINE, Place};

use crate::data::numbers;

pub mod bodies {
    pub use super::*;
    tests::everywhere! { one:
        values_survive_the_way_through_every_kind_of_memory
        mappings_through_the_resource_manager_as_well_change_nothing
        a_read_only_buffer_reads_as_it_was_filled
        a_copy_then_a_signal_arrive_in_order
        lines_are_copied_by_their_pitches
        a_fill_stores_one_word_again_and_again
        an_inline_upload_of_any_length_reaches_video_memory
        acquire_resumes_on_plain_cpu_store
        an_acquire_holds_until_its_condition_holds
        releases_of_32_bits_leave_the_upper_half_alone
        a_copy_signal_beyond_32_bits_goes_through_the_host
        a_wait_that_nothing_satisfies_ends_at_its_deadline
        timestamps_grow_and_lie_in_this_epoch
        buffers_refuse_what_lies_outside_them
    }
    tests::everywhere! { two:
        gpus_reach_each_others_memory_once_it_is_shared
        a_signal_of_one_gpu_starts_work_on_the_other
    }
}

#[test]
fn every_profile_opens_under_every_driver_branch() {
    for version in crate::branches::VERSIONS {
        for (profile, sm) in [(Profile::ad102(), 89), (Profile::ga102(), 86), (Profile::h200(), 90)] {
            let machine = Machine::builder().driver(version).gpu(profile).build().unwrap();
            let system = System::open(machine.clone()).unwrap();
            let device = Device::open_on(&system, 0, Options::default())
                .unwrap_or_else(|error| panic!("sm_{sm} under {version}: {error}"));
            assert_eq!(device.sm(), sm);
            assert_eq!(device.info().driver_version, version);
            device.synchronize().unwrap();
            assert!(machine.faults().is_empty() && machine.unsupported().is_empty());
        }
    }
}

#[test]
fn longer_copies_than_the_engine_takes_are_split_at_2_gib() {
    let place = Place::simulated("ada", &[Profile::ad102()]);
    let device = place.device(0);
    for (bytes, commands) in [(0, 0), (1, 1), (1 << 31, 1), ((1 << 31) + 1, 2), (5 << 30, 3)] {
        let mut queue = CopyQueue::new(&device);
        // Encoded, never submitted.
        queue.copy(1 << 40, 1 << 41, bytes);
        assert_eq!(queue.len(), commands, "{bytes:#x} bytes");
    }
    let mut queue = CopyQueue::new(&device);
    queue.fill(1 << 40, 7, (1 << 29) + 1);
    assert_eq!(queue.len(), 2);
}

pub fn values_survive_the_way_through_every_kind_of_memory(place: &Place) {
    survive(&place.device(0));
}

pub fn mappings_through_the_resource_manager_as_well_change_nothing(place: &Place) {
    survive(&place.device_with(0, |options| options.map_memory_dma = true));
}

fn survive(device: &Device) {
    // More than one staging buffer, and no multiple of it.
    let values: Vec<u64> = (0..300_001).map(|index| u64::MAX / (index + 1)).collect();
    let buffers = [
        device.video::<u64>(values.len()).unwrap(),
        device.visible::<u64>(values.len()).unwrap(),
        device.system_memory::<u64>(values.len()).unwrap(),
        device.host::<u64>(values.len()).unwrap(),
    ];
    for from in &buffers {
        from.copy_from(&values).unwrap();
        assert!(from.to_vec().unwrap() == values, "{:?}", from.location());
        for to in buffers.iter().filter(|to| to.address() != from.address()) {
            device.copy(to.address(), from.address(), from.bytes()).unwrap();
            assert!(to.to_vec().unwrap() == values, "{:?} to {:?}", from.location(), to.location());
            device.copy(to.address(), to.address() + 4, to.bytes() - 4).unwrap();
        }
    }
}

pub fn a_read_only_buffer_reads_as_it_was_filled(place: &Place) {
    let device = place.device(0);
    let constants = device.read_only_from(&[1u32, 2, 3, 4]).unwrap();
    let target = device.video::<u32>(4).unwrap();
    device.copy(target.address(), constants.address(), 16).unwrap();
    assert_eq!(target.to_vec().unwrap(), [1, 2, 3, 4]);
}

pub fn a_copy_then_a_signal_arrive_in_order(place: &Place) {
    let device = place.device(0);
    let source = device.buffer_from(&[0x1234_5678_9abc_def0u64; 1000]).unwrap();
    let target = device.video::<u64>(1000).unwrap();
    let done = device.signal(0).unwrap();
    CopyQueue::new(&device)
        .copy(target.address(), source.address(), source.bytes())
        .signal(&done, 7)
        .submit()
        .unwrap();
    device.wait(&done, 7, DEADLINE).unwrap();
    assert_eq!(target.to_vec().unwrap(), [0x1234_5678_9abc_def0u64; 1000]);
}

/// Submits what `fill` adds to a copy queue, and waits for it.
fn copies(device: &Device, fill: impl FnOnce(&mut CopyQueue)) {
    let done = device.signal(0).unwrap();
    let mut queue = CopyQueue::new(device);
    fill(&mut queue);
    queue.signal(&done, 1).submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
}

pub fn lines_are_copied_by_their_pitches(place: &Place) {
    let device = place.device(0);
    let image: Vec<u8> = (0..4096u32).map(|i| (i * 7) as u8).collect();
    let (source, target) = (device.buffer_from(&image).unwrap(), device.buffer_from(&[0u8; 4096]).unwrap());
    // 40 bytes of each of 13 lines of 96, packed into lines of 64.
    let lines = Lines { bytes: 40, count: 13, source_pitch: 96, destination_pitch: 64 };
    copies(&device, |queue| {
        queue.copy_lines(target.address() + 3, source.address() + 5, lines);
    });
    let mut expected = vec![0u8; 4096];
    for line in 0..13 {
        expected[3 + 64 * line..][..40].copy_from_slice(&image[5 + 96 * line..][..40]);
    }
    assert_eq!(target.to_vec().unwrap(), expected);
}

pub fn a_fill_stores_one_word_again_and_again(place: &Place) {
    let device = place.device(0);
    let target = device.buffer_from(&[1u32; 1000]).unwrap();
    copies(&device, |queue| {
        queue.fill(target.address() + 40, 0xdead_beef, 700);
    });
    let expected: Vec<u32> =
        (0..1000).map(|i| if (10..710).contains(&i) { 0xdead_beef } else { 1 }).collect();
    assert_eq!(target.to_vec().unwrap(), expected);
}

pub fn an_inline_upload_of_any_length_reaches_video_memory(place: &Place) {
    let device = place.device(0);
    for bytes in [4usize, 16, 4095 * 4, 40_000] {
        let data: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
        let target = device.video::<u8>(bytes).unwrap();
        let done = device.signal(0).unwrap();
        ComputeQueue::new(&device).copy_from_cpu(target.address(), &data).signal(&done, 1).submit().unwrap();
        device.wait(&done, 1, DEADLINE).unwrap();
        assert_eq!(target.to_vec().unwrap(), data);
    }
}

pub fn acquire_resumes_on_plain_cpu_store(place: &Place) {
    let device = place.device(0);
    let (gate, done) = (device.signal(0).unwrap(), device.signal(0).unwrap());
    ComputeQueue::new(&device).wait(&gate, 5).signal(&done, 1).submit().unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(done.value().unwrap(), 0, "the acquire did not wait");
    gate.set(5).unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
}

pub fn an_acquire_holds_until_its_condition_holds(place: &Place) {
    use Condition::{AnyBit, Equal, GreaterOrEqual, Nor};
    let device = place.device(0);
    let cases: [(Condition, bool, u64, u64, u64); 7] = [
        // The condition, whether 64 bits count, its value; memory that holds it up, and memory that lets it pass.
        (Equal, true, 1 << 40, 1 << 41, 1 << 40),
        (Equal, false, 7, 8, 1 << 32 | 7),
        (GreaterOrEqual, true, 1 << 40, (1 << 40) - 1, 1 << 41),
        // Modulo: 2 is seven past -5.
        (GreaterOrEqual, true, 5u64.wrapping_neg(), 6u64.wrapping_neg(), 2),
        (GreaterOrEqual, false, 0xffff_fff0, 0xffff_ffef, 4),
        (AnyBit, false, 0b0110, 0b1001, 0b0100),
        (Nor, false, 0xffff_0000, 0x0000_ffff, 0x0000_fffe),
    ];
    for (condition, wide, value, closed, open) in cases {
        let (gate, done) = (device.signal(closed).unwrap(), device.signal(0).unwrap());
        let mut queue = ComputeQueue::new(&device);
        queue.poll(gate.address(), value, condition, wide).signal(&done, 1).submit().unwrap();
        thread::sleep(Duration::from_millis(3));
        assert_eq!(done.value().unwrap(), 0, "{condition:?} of {value:#x} passed {closed:#x}");
        gate.set(open).unwrap();
        device
            .wait(&done, 1, DEADLINE)
            .unwrap_or_else(|error| panic!("{condition:?} of {value:#x} by {open:#x}: {error}"));
    }
}

pub fn releases_of_32_bits_leave_the_upper_half_alone(place: &Place) {
    let device = place.device(0);
    let (word, done) = (device.signal(u64::MAX).unwrap(), device.signal(0).unwrap());
    let mut queue = ComputeQueue::new(&device);
    queue.write(word.address(), 5, false).signal(&done, 1).submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
    assert_eq!(word.value().unwrap(), 0xffff_ffff_0000_0005);
}

pub fn a_copy_signal_beyond_32_bits_goes_through_the_host(place: &Place) {
    let device = place.device(0);
    let done = device.signal(0).unwrap();
    for value in [0xffff_ffff, 0x1_0000_0000, 0x7654_3210_89ab_cdef] {
        CopyQueue::new(&device).signal(&done, value).submit().unwrap();
        device.wait(&done, value, DEADLINE).unwrap();
        assert_eq!(done.value().unwrap(), value);
    }
}

pub fn a_wait_that_nothing_satisfies_ends_at_its_deadline(place: &Place) {
    let device = place.device(0);
    let never = device.signal(3).unwrap();
    let start = Instant::now();
    let error = device.wait(&never, 4, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, Error::Timeout { wanted: 4, value: 3, .. }), "{error}");
    assert!((Duration::from_millis(50)..Duration::from_secs(5)).contains(&start.elapsed()));
}

pub fn timestamps_grow_and_lie_in_this_epoch(place: &Place) {
    let device = place.device(0);
    let [first, second, done] = [(); 3].map(|()| device.signal(0).unwrap());
    ComputeQueue::new(&device).timestamp(&first).timestamp(&second).signal(&done, 1).submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
    let (first, second) = (first.timestamp().unwrap(), second.timestamp().unwrap());
    // Nanoseconds since 1970, later than 2020: 580.159 gives wall-clock time.
    assert!(first > 1_577_836_800_000_000_000 && second >= first, "{first} {second}");
}

pub fn buffers_refuse_what_lies_outside_them(place: &Place) {
    let device = place.device(0);
    for buffer in [device.video::<u32>(4).unwrap(), device.visible::<u32>(4).unwrap()] {
        assert!(matches!(buffer.copy_from(&[0; 5]), Err(Error::Bounds { bytes: 20, size: 16, .. })));
        assert!(matches!(buffer.copy_to(&mut [0; 5]), Err(Error::Bounds { bytes: 20, size: 16, .. })));
    }
}

pub fn gpus_reach_each_others_memory_once_it_is_shared(place: &Place) {
    let (first, second) = (place.device(0), place.device(1));
    let source = first.buffer_from(&[3.5f64; 512]).unwrap();
    let target = second.video::<f64>(512).unwrap();
    match source.share_with(&second) {
        Err(error @ Error::NoPeerAccess { .. }) if place.machine().is_none() => {
            return tests::skip(&error.to_string());
        }
        result => result.unwrap(),
    }
    second.copy(target.address(), source.address(), source.bytes()).unwrap();
    second.synchronize().unwrap();
    assert_eq!(target.to_vec().unwrap(), [3.5; 512]);
}

pub fn a_signal_of_one_gpu_starts_work_on_the_other(place: &Place) {
    let (first, second) = (place.device(0), place.device(1));
    let shared = first.host::<u32>(1024).unwrap();
    shared.share_with(&second).unwrap();
    let (source, target) =
        (first.buffer_from(&numbers(1024, 5)).unwrap(), second.video::<u32>(1024).unwrap());
    let (gate, arrived, done) =
        (first.signal(0).unwrap(), first.signal(0).unwrap(), second.signal(0).unwrap());
    // The second waits for the first, which waits for the CPU.
    CopyQueue::new(&second)
        .wait(&arrived, 1)
        .copy(target.address(), shared.address(), 4096)
        .signal(&done, 1)
        .submit()
        .unwrap();
    CopyQueue::new(&first)
        .wait(&gate, 1)
        .copy(shared.address(), source.address(), 4096)
        .signal(&arrived, 1)
        .submit()
        .unwrap();
    thread::sleep(Duration::from_millis(5));
    assert_eq!((arrived.value().unwrap(), done.value().unwrap()), (0, 0));
    gate.set(1).unwrap();
    second.wait(&done, 1, DEADLINE).unwrap();
    assert_eq!(target.to_vec().unwrap(), numbers(1024, 5));
}
