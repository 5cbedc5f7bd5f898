//! What never reaches the GPU: the driver refuses it, and the error names the thing.

use std::time::{Duration, Instant};

use fixtures::reference;
use nv_driver::{ComputeQueue, Error, LaunchError, Module};
use tests::Place;

use crate::launches::load;

mod bodies {
    pub use super::*;
    tests::everywhere! { one:
        launches_that_cannot_run_are_refused
        arguments_of_a_wrong_number_or_size_are_refused
        kernels_and_gpus_that_are_not_there_are_refused
        a_cubin_of_another_architecture_is_refused
        a_full_ring_is_an_error_until_the_gpu_goes_on
    }
}

pub fn launches_that_cannot_run_are_refused(place: &Place) {
    let device = place.device(0);
    let out = device.buffer_from(&[0u32; 4]).unwrap();
    let iota = load(place, &device, "iota");
    let refused = |grid, block, shared| {
        let arguments = [(&out).into(), 4u32.into(), 0u32.into()];
        match iota.launch_with_shared(grid, block, shared, &arguments) {
            Err(Error::Launch { kernel, reason }) => {
                assert_eq!(kernel, "iota");
                reason
            }
            other => panic!("{grid:?} of {block:?}: {other:?}"),
        }
    };
    for (grid, block) in
        [([0, 1, 1], [1, 1, 1]), ([1, 65_536, 1], [1, 1, 1]), ([1, 1, 1], [1, 0, 1]), ([1, 1, 1], [1, 1, 65])]
    {
        assert!(matches!(refused(grid, block, 0), LaunchError::Dimension { .. }), "{grid:?} of {block:?}");
    }
    assert!(matches!(refused([1, 1, 1], [1024, 2, 1], 0), LaunchError::Threads { threads: 2048, .. }));
    let LaunchError::SharedMemory { bytes, limit } = refused([1, 1, 1], [4, 1, 1], 300 << 10) else {
        panic!("not refused for its shared memory")
    };
    assert!(bytes == 300 << 10 && bytes > limit.into(), "{bytes} of {limit}");
    // The GPU saw nothing of it, and works.
    iota.launch([1, 1, 1], [4, 1, 1], &[(&out).into(), 4u32.into(), 8u32.into()]).unwrap();
    assert_eq!(out.to_vec().unwrap(), reference::iota(4, 8));
}

pub fn arguments_of_a_wrong_number_or_size_are_refused(place: &Place) {
    let device = place.device(0);
    let out = device.buffer_from(&[0u32; 4]).unwrap();
    let iota = load(place, &device, "iota");
    let launch = |arguments: &[_]| iota.launch([1, 1, 1], [4, 1, 1], arguments).unwrap_err().to_string();
    assert_eq!(launch(&[]), "kernel iota takes 3 arguments, 0 were given");
    assert_eq!(
        launch(&[(&out).into(), 4u32.into(), 0u32.into(), 0u32.into()]),
        "kernel iota takes 3 arguments, 4 were given"
    );
    assert_eq!(
        launch(&[(&out).into(), 4u64.into(), 0u32.into()]),
        "kernel iota: argument 1 is 4 bytes, 8 were given"
    );
    // A queue checks as well, and stays usable.
    let mut queue = ComputeQueue::new(&device);
    assert!(matches!(
        queue.exec(&iota, [1, 1, 1], [4, 1, 1], &[0u32.into()]),
        Err(Error::ArgumentCount { expected: 3, given: 1, .. })
    ));
    assert!(queue.is_empty());
}

pub fn kernels_and_gpus_that_are_not_there_are_refused(place: &Place) {
    let device = place.device(0);
    let cubin = fixtures::cubin(place.code_for(&device), "reduce").unwrap();
    let module = Module::load(&device, &cubin).unwrap();
    let Err(Error::NoKernel { name, mut present }) = module.kernel("reduce_f64") else { panic!("found") };
    present.sort_unstable();
    assert_eq!(
        (name.as_str(), present),
        ("reduce_f64", ["reduce_f32", "reduce_u32", "warp_max"].map(str::to_owned).to_vec())
    );
    let count = place.gpus();
    let missing = nv_driver::Device::open_on(place.system(), count, nv_driver::Options::default());
    assert!(matches!(missing, Err(Error::NoDevice { index, count: of }) if (index, of) == (count, count)));
}

pub fn a_cubin_of_another_architecture_is_refused(place: &Place) {
    let device = place.device(0);
    let foreign = if device.sm() / 10 == 9 { "sm_89" } else { "sm_90" };
    let error = Module::load(&device, &fixtures::cubin(foreign, "iota").unwrap()).unwrap_err();
    assert!(matches!(error, Error::Architecture { device: sm, .. } if sm == device.sm()), "{error}");
    if device.sm() == 86 {
        let newer = Module::load(&device, &fixtures::cubin("sm_89", "iota").unwrap());
        assert!(matches!(newer, Err(Error::Architecture { cubin: 89, device: 86 })));
    }
}

pub fn a_full_ring_is_an_error_until_the_gpu_goes_on(place: &Place) {
    let device = place.device_with(0, |options| options.deadline = Duration::from_millis(200));
    let (gate, done) = (device.signal(0).unwrap(), device.signal(0).unwrap());
    let mut queue = ComputeQueue::new(&device);
    queue.wait(&gate, 1).submit().unwrap();

    // Command memory is full first where each submission brings its words along.
    let mut large = ComputeQueue::new(&device);
    let room = device.video::<u32>(0x4_0000).unwrap();
    large.copy_from_cpu(room.address(), &vec![0; 0x10_0000]);
    let mut accepted = 0u64;
    let error = loop {
        match large.submit() {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100, "command memory never fills");
    };
    assert!(matches!(error, Error::RingOverrun { ring: "command memory", .. }), "{error}");

    // The ring itself, where the words lie elsewhere.
    let mut bound = ComputeQueue::new(&device);
    let add = bound.signal(&done, 1).last().unwrap();
    let mut bound = bound.bind().unwrap();
    let start = Instant::now();
    let error = loop {
        match bound.submit() {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100_000, "the ring never fills");
    };
    assert!(matches!(error, Error::RingOverrun { ring: "GPFIFO", .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(accepted >= 65_000, "{accepted} entries of 65535");

    // Nothing was lost.
    gate.set(1).unwrap();
    device.wait(&done, 1, tests::DEADLINE).unwrap();
    let wait = |done: &nv_driver::Signal, value| device.wait(done, value, tests::DEADLINE).unwrap();
    // All entries are taken before the words they point at change.
    let last = device.signal(0).unwrap();
    let mut behind = ComputeQueue::new(&device);
    behind.signal(&last, 1);
    while behind.submit().is_err() {}
    wait(&last, 1);
    bound.set_signal(add, &done, 2).unwrap();
    bound.submit().unwrap();
    wait(&done, 2);
}
