//! A device through the whole driver, on simulated machines: bring-up, copies, semaphores, faults.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use nv_driver::{ComputeQueue, CopyQueue, Device, Error, Options, System};
use nv_simulator::{machine::Machine, profile::Profile};

const DEADLINE: Duration = Duration::from_secs(10);

fn system(driver: &str, profiles: &[Profile]) -> (Arc<Machine>, Arc<System>) {
    let builder = profiles.iter().fold(Machine::builder().driver(driver), |b, p| b.gpu(p.clone()));
    let machine = builder.build().unwrap();
    let system = System::open(machine.clone()).unwrap();
    (machine, system)
}

fn device() -> (Arc<Machine>, Device) {
    let (machine, system) = system("580.159.04", &[Profile::ad102()]);
    (machine, Device::open_on(&system, 0, Options::default()).unwrap())
}

#[test]
fn every_profile_opens_under_every_driver_branch() {
    for version in ["535.288.01", "550.163.01", "570.211.01", "580.159.04", "595.45.04"] {
        for (profile, sm) in [(Profile::ad102(), 89), (Profile::ga102(), 86), (Profile::h200(), 90)] {
            let (machine, system) = system(version, &[profile]);
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
fn values_survive_the_way_through_every_kind_of_memory() {
    let (_machine, device) = device();
    let values: Vec<u32> = (0..300_000u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    for buffer in [
        device.video::<u32>(values.len()).unwrap(),
        device.visible::<u32>(values.len()).unwrap(),
        device.system_memory::<u32>(values.len()).unwrap(),
        device.host::<u32>(values.len()).unwrap(),
    ] {
        buffer.copy_from(&values).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), values, "{:?}", buffer.location());
    }
}

#[test]
fn a_copy_then_a_signal_arrive_in_order() {
    let (_machine, device) = device();
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

#[test]
fn an_inline_upload_of_any_length_reaches_video_memory() {
    let (_machine, device) = device();
    for bytes in [4usize, 16, 4095 * 4, 40_000] {
        let data: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
        let target = device.video::<u8>(bytes).unwrap();
        let done = device.signal(0).unwrap();
        ComputeQueue::new(&device).copy_from_cpu(target.address(), &data).signal(&done, 1).submit().unwrap();
        device.wait(&done, 1, DEADLINE).unwrap();
        assert_eq!(target.to_vec().unwrap(), data);
    }
}

#[test]
fn acquire_resumes_on_plain_cpu_store() {
    let (_machine, device) = device();
    let (gate, done) = (device.signal(0).unwrap(), device.signal(0).unwrap());
    ComputeQueue::new(&device).wait(&gate, 5).signal(&done, 1).submit().unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(done.value().unwrap(), 0, "the acquire did not wait");
    gate.set(5).unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
}

#[test]
fn a_wait_that_nothing_satisfies_ends_at_its_deadline() {
    let (_machine, device) = device();
    let never = device.signal(0).unwrap();
    let start = Instant::now();
    assert!(device.wait(&never, 1, Duration::from_millis(50)).is_err());
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn timestamps_grow_and_lie_in_this_epoch() {
    let (_machine, device) = device();
    let (first, second, done) =
        (device.signal(0).unwrap(), device.signal(0).unwrap(), device.signal(0).unwrap());
    ComputeQueue::new(&device).timestamp(&first).timestamp(&second).signal(&done, 1).submit().unwrap();
    device.wait(&done, 1, DEADLINE).unwrap();
    let (first, second) = (first.timestamp().unwrap(), second.timestamp().unwrap());
    // Nanoseconds since 1970, later than 2020: 580.159 gives wall-clock time.
    assert!(first > 1_577_836_800_000_000_000 && second >= first, "{first} {second}");
}

#[test]
fn a_copy_from_unmapped_memory_is_reported_with_its_address_and_leaves_a_new_device_usable() {
    let (machine, system) = system("580.159.04", &[Profile::ad102()]);
    let device = Device::open_on(&system, 0, Options::default()).unwrap();
    let target = device.video::<u32>(16).unwrap();
    let done = device.signal(0).unwrap();
    CopyQueue::new(&device).copy(target.address(), 0xdead_0000, 64).signal(&done, 1).submit().unwrap();
    let start = Instant::now();
    let error = device.wait(&done, 1, DEADLINE).unwrap_err();
    let Error::ChannelFault(fault) = error else { panic!("{error}") };
    assert_eq!(fault.xid, 31);
    assert_eq!(fault.mmu.as_ref().map(|mmu| mmu.address), Some(0xdead_0000));
    assert!(start.elapsed() < Duration::from_secs(1), "a fault is no time-out");
    assert_eq!(machine.faults().len(), 1);
    // One process registers a GPU with UVM once, so the dead device goes first.
    drop((target, done, device));
    let fresh = Device::open_on(&system, 0, Options::default()).unwrap();
    assert_eq!(fresh.buffer_from(&[1u32, 2, 3]).unwrap().to_vec().unwrap(), [1, 2, 3]);
}

#[test]
fn two_gpus_reach_each_others_memory_once_it_is_shared() {
    let (_machine, system) = system("580.159.04", &[Profile::ad102(), Profile::ad102()]);
    let first = Device::open_on(&system, 0, Options::default()).unwrap();
    let second = Device::open_on(&system, 1, Options::default()).unwrap();
    let source = first.buffer_from(&[3.5f64; 512]).unwrap();
    let target = second.video::<f64>(512).unwrap();
    source.share_with(&second).unwrap();
    second.copy(target.address(), source.address(), source.bytes()).unwrap();
    second.synchronize().unwrap();
    assert_eq!(target.to_vec().unwrap(), [3.5; 512]);
}
