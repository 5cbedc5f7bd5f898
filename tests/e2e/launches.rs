//! Launches beyond a single one: chains, release slots, bound queues, many in flight, local memory that grows.

use std::time::Duration;

use fixtures::reference;
use nv_driver::{ArgumentPath, ComputeQueue, CopyQueue, Device, Error, Kernel, Module};
use tests::{DEADLINE, Place};

use crate::data::{floats, numbers};

pub mod bodies {
    pub use super::*;
    tests::everywhere! { one:
        chained_launches_run_after_each_other
        releases_after_a_launch_come_after_its_stores
        a_bound_queue_is_patched_and_submitted_again
        a_bound_copy_is_patched_and_submitted_again
        arguments_in_the_pushbuffer_cannot_be_patched
        many_launches_are_in_flight_at_once
        local_memory_grows_while_older_kernels_stay_usable
        a_launch_is_timed_from_both_sides
        copies_and_launches_keep_their_order_on_the_timeline
        mappings_through_the_resource_manager_carry_launches
    }
    tests::everywhere! { two:
        a_kernel_reads_the_other_gpus_memory
    }
}

pub fn load(place: &Place, device: &Device, kernel: &str) -> Kernel {
    let cubin = fixtures::cubin(place.code_for(device), kernel).unwrap();
    Module::load(device, &cubin).unwrap().kernel(kernel).unwrap()
}

pub fn chained_launches_run_after_each_other(place: &Place) {
    for (fold, path) in [
        (true, ArgumentPath::CpuWritten),
        (false, ArgumentPath::CpuWritten),
        (true, ArgumentPath::InlineToMemory),
        (false, ArgumentPath::InlineToMemory),
    ] {
        let device =
            place.device_with(0, |options| (options.fold_releases, options.arguments) = (fold, path));
        let kernel = load(place, &device, "saxpy");
        let (y, x) = (floats(300, 1), floats(300, 2));
        let (dy, dx) = (device.buffer_from(&y).unwrap(), device.buffer_from(&x).unwrap());
        let done = device.signal(0).unwrap();
        let mut queue = ComputeQueue::new(&device);
        let mut expected = y;
        for step in 1..=8 {
            let a = 1.0 / step as f32;
            let arguments = [(&dy).into(), (&dx).into(), a.into(), 300u32.into()];
            queue.exec(&kernel, [2, 1, 1], [128, 1, 1], &arguments).unwrap();
            expected = reference::saxpy(&expected, &x, a);
        }
        queue.signal(&done, 0x1_0000_0001).submit().unwrap();
        device.wait(&done, 0x1_0000_0001, DEADLINE).unwrap();
        assert_eq!(dy.to_vec().unwrap(), expected, "folded {fold}, {path:?}");
    }
}

pub fn releases_after_a_launch_come_after_its_stores(place: &Place) {
    let device = place.device(0);
    let kernel = load(place, &device, "iota");
    let out = device.host::<u32>(1000).unwrap();
    // More than a descriptor has slots for: the rest goes through the host.
    let signals: Vec<_> = (0..4).map(|_| device.signal(0).unwrap()).collect();
    let mut queue = ComputeQueue::new(&device);
    queue.exec(&kernel, [4, 1, 1], [256, 1, 1], &[(&out).into(), 1000u32.into(), 9u32.into()]).unwrap();
    for (value, signal) in (1..).zip(&signals) {
        queue.signal(signal, value << 32 | 1);
    }
    queue.submit().unwrap();
    device.wait(&signals[0], 1 << 32 | 1, DEADLINE).unwrap();
    assert_eq!(out.to_vec().unwrap(), reference::iota(1000, 9));
    for (value, signal) in (1..).zip(&signals) {
        device.wait(signal, value << 32 | 1, DEADLINE).unwrap();
        assert_eq!(signal.value().unwrap(), value << 32 | 1);
    }
}

pub fn a_bound_queue_is_patched_and_submitted_again(place: &Place) {
    let device = place.device(0);
    let kernel = load(place, &device, "vector_add");
    let (ones, twos) =
        (device.buffer_from(&[1.0f32; 128]).unwrap(), device.buffer_from(&[2.0f32; 128]).unwrap());
    let sum = device.buffer_from(&[0.0f32; 128]).unwrap();
    let (gate, done) = (device.signal(0).unwrap(), device.signal(0).unwrap());
    let mut queue = ComputeQueue::new(&device);
    let arguments = |x| [(&sum).into(), (&sum).into(), x, 128u32.into()];
    let wait = queue.wait(&gate, 1).last().unwrap();
    let launch =
        queue.exec(&kernel, [1, 1, 1], [64, 1, 1], &arguments((&ones).into())).unwrap().last().unwrap();
    let signal = queue.signal(&done, 1).last().unwrap();
    let mut queue = queue.bind().unwrap();
    for turn in 1..=3u64 {
        queue.set_signal(wait, &gate, turn).unwrap();
        queue.set_signal(signal, &done, turn).unwrap();
        queue.set_dimensions(launch, [turn.min(2) as u32, 1, 1], [64, 1, 1]).unwrap();
        let x = if turn == 3 { &twos } else { &ones };
        queue.set_arguments(launch, &arguments(x.into())).unwrap();
        queue.submit().unwrap();
        assert_eq!(done.value().unwrap(), turn - 1, "it did not wait");
        gate.set(turn).unwrap();
        device.wait(&done, turn, DEADLINE).unwrap();
    }
    let values = sum.to_vec().unwrap();
    assert_eq!((&values[..64], &values[64..]), (&[4.0f32; 64][..], &[3.0f32; 64][..]));

    // What a command is not, it cannot be patched as.
    let refused = [
        queue.set_copy(launch, 0, 0, 4),
        queue.set_dimensions(signal, [1, 1, 1], [1, 1, 1]),
        queue.set_signal(launch, &gate, 1),
    ];
    assert!(refused.iter().all(|result| matches!(result, Err(Error::Queue(_)))), "{refused:?}");
    assert!(matches!(queue.set_dimensions(launch, [1, 1, 1], [2048, 1, 1]), Err(Error::Launch { .. })));
    assert!(matches!(queue.set_arguments(launch, &[]), Err(Error::ArgumentCount { given: 0, .. })));
}

pub fn a_bound_copy_is_patched_and_submitted_again(place: &Place) {
    let device = place.device(0);
    let values = numbers(64, 3);
    let (source, target) = (device.buffer_from(&values).unwrap(), device.buffer_from(&[0u32; 64]).unwrap());
    let done = device.signal(0).unwrap();
    let mut queue = CopyQueue::new(&device);
    let copy = queue.copy(target.address(), source.address(), 16).last().unwrap();
    let signal = queue.signal(&done, 1).last().unwrap();
    let mut queue = queue.bind().unwrap();
    for turn in 0..4u64 {
        let (to, from) = (target.address() + 64 * turn, source.address() + 64 * (3 - turn));
        queue.set_copy(copy, to, from, 64).unwrap();
        queue.set_signal(signal, &done, turn + 1).unwrap();
        queue.submit().unwrap();
        device.wait(&done, turn + 1, DEADLINE).unwrap();
    }
    let expected: Vec<u32> = values.chunks(16).rev().flatten().copied().collect();
    assert_eq!(target.to_vec().unwrap(), expected);
    // The copy engine's payload has 32 bits.
    assert!(matches!(queue.set_signal(signal, &done, 1 << 32), Err(Error::Queue(_))));
}

pub fn arguments_in_the_pushbuffer_cannot_be_patched(place: &Place) {
    let device = place.device_with(0, |options| options.arguments = ArgumentPath::InlineToMemory);
    let kernel = load(place, &device, "iota");
    let out = device.buffer_from(&[0u32; 32]).unwrap();
    let done = device.signal(0).unwrap();
    let mut queue = ComputeQueue::new(&device);
    let arguments = [(&out).into(), 32u32.into(), 5u32.into()];
    let launch = queue.exec(&kernel, [1, 1, 1], [32, 1, 1], &arguments).unwrap().last().unwrap();
    queue.signal(&done, 1);
    let mut queue = queue.bind().unwrap();
    assert!(matches!(queue.set_arguments(launch, &arguments), Err(Error::Queue(_))));
    queue.submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
    assert_eq!(out.to_vec().unwrap(), reference::iota(32, 5));
}

pub fn many_launches_are_in_flight_at_once(place: &Place) {
    let device = place.device(0);
    let kernel = load(place, &device, "iota");
    let out: Vec<_> = (0..8).map(|_| device.buffer_from(&[0u32; 64]).unwrap()).collect();
    let (gate, done) = (device.signal(0).unwrap(), device.signal(0).unwrap());
    ComputeQueue::new(&device).wait(&gate, 1).submit().unwrap();
    for round in 0..250u32 {
        let mut queue = ComputeQueue::new(&device);
        for (index, out) in (0..).zip(&out) {
            let arguments = [out.into(), 64u32.into(), (1000 * round + index).into()];
            queue.exec(&kernel, [2, 1, 1], [32, 1, 1], &arguments).unwrap();
        }
        queue.signal(&done, u64::from(round) + 1).submit().unwrap();
    }
    assert_eq!(done.value().unwrap(), 0, "nothing runs before the gate opens");
    gate.set(1).unwrap();
    device.wait(&done, 250, DEADLINE).unwrap();
    for (index, out) in (0..).zip(&out) {
        assert_eq!(out.to_vec().unwrap(), reference::iota(64, 249_000 + index));
    }
}

pub fn local_memory_grows_while_older_kernels_stay_usable(place: &Place) {
    let device = place.device(0);
    let input = numbers(64, 4);
    let (source, out) = (device.buffer_from(&input).unwrap(), device.video::<u32>(64).unwrap());
    let small = load(place, &device, "local_array");
    let expected: Vec<u32> = input.iter().map(|x| reference::local_array(*x)).collect();
    let run_small = || {
        small.launch([2, 1, 1], [32, 1, 1], &[(&out).into(), (&source).into(), 64u32.into()]).unwrap();
        assert_eq!(out.to_vec().unwrap(), expected);
    };
    run_small();
    let before = device.local_memory_per_thread();
    let deep = load(place, &device, "deep_local");
    assert!(device.local_memory_per_thread() > before);
    deep.launch([2, 1, 1], [32, 1, 1], &[(&out).into(), 3u32.into(), 64u32.into()]).unwrap();
    let deep_expected: Vec<u32> = (0..64).map(|i| reference::deep_local(3, i)).collect();
    assert_eq!(out.to_vec().unwrap(), deep_expected);
    run_small();
    // It never shrinks.
    let grown = device.local_memory_per_thread();
    let _another = load(place, &device, "local_array");
    assert_eq!(device.local_memory_per_thread(), grown);
}

pub fn a_launch_is_timed_from_both_sides(place: &Place) {
    let device = place.device(0);
    let kernel = load(place, &device, "mandelbrot");
    let out = device.video::<u32>(64 * 64).unwrap();
    let [start, end, done] = [(); 3].map(|()| device.signal(0).unwrap());
    let arguments = [
        (&out).into(),
        64u32.into(),
        64u32.into(),
        (-2.0f32).into(),
        (-1.25f32).into(),
        0.04f32.into(),
        200u32.into(),
    ];
    let mut queue = ComputeQueue::new(&device);
    queue.timestamp(&start);
    queue.exec(&kernel, [8, 8, 1], [8, 8, 1], &arguments).unwrap();
    queue.timestamp(&end).signal(&done, 1).submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
    let elapsed = end.timestamp().unwrap().checked_sub(start.timestamp().unwrap()).unwrap();
    // Up to 200 steps in each of 4096 pixels take some time, and not more than the suite waits.
    assert!((500..DEADLINE.as_nanos() as u64).contains(&elapsed), "{elapsed} ns");
}

pub fn copies_and_launches_keep_their_order_on_the_timeline(place: &Place) {
    let device = place.device(0);
    let kernel = load(place, &device, "iota");
    let (out, kept) = (device.video::<u32>(32).unwrap(), device.video::<u32>(32 * 20).unwrap());
    for turn in 0..20u32 {
        let arguments = [(&out).into(), 32u32.into(), (100 * turn).into()];
        kernel.launch([1, 1, 1], [32, 1, 1], &arguments).unwrap();
        device.copy(kept.address() + u64::from(turn) * 128, out.address(), 128).unwrap();
    }
    let (signal, last) = device.timeline();
    device.wait(&signal, last, Duration::from_secs(10)).unwrap();
    let expected: Vec<u32> = (0..20).flat_map(|turn| reference::iota(32, 100 * turn)).collect();
    assert_eq!(kept.to_vec().unwrap(), expected);
}

pub fn mappings_through_the_resource_manager_carry_launches(place: &Place) {
    let device = place.device_with(0, |options| options.map_memory_dma = true);
    // The mappings of memory that is given back go with it: its addresses are free for the next round.
    for round in 1..=3 {
        let kernel = load(place, &device, "iota");
        let out = device.visible::<u32>(256).unwrap();
        kernel.launch([2, 1, 1], [128, 1, 1], &[(&out).into(), 256u32.into(), round.into()]).unwrap();
        assert_eq!(out.to_vec().unwrap(), reference::iota(256, round));
    }
}

pub fn a_kernel_reads_the_other_gpus_memory(place: &Place) {
    let (first, second) = (place.device(0), place.device(1));
    let (a, b) = (floats(500, 1), floats(500, 2));
    let (da, db) = (first.buffer_from(&a).unwrap(), second.host::<f32>(500).unwrap());
    db.copy_from(&b).unwrap();
    match da.share_with(&second) {
        Err(error @ Error::NoPeerAccess { .. }) if place.machine().is_none() => {
            return tests::skip(&error.to_string());
        }
        result => result.unwrap(),
    }
    let out = second.video::<f32>(500).unwrap();
    let arguments = [(&out).into(), (&da).into(), (&db).into(), 500u32.into()];
    load(place, &second, "vector_add").launch([4, 1, 1], [128, 1, 1], &arguments).unwrap();
    assert_eq!(out.to_vec().unwrap(), reference::vector_add(&a, &b));
}
