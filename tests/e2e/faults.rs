//! What goes wrong on the GPU comes back typed, with Xid and address, quickly; other channels go on, and a new one
//! works afterwards.

use std::time::{Duration, Instant};

use fixtures::reference;
use nv_abi::{compute::AMPERE_COMPUTE_A as compute, method::Form};
use nv_driver::{ChannelFault, ComputeQueue, CopyQueue, Device, Engine, Error, Module, System};
use nv_simulator::{host::FaultReporting, machine::Machine, profile::Profile};
use tests::{DEADLINE, Place};

use crate::launches::load;

pub mod bodies {
    pub use super::*;
    tests::everywhere! { one:
        every_stimulus_ends_the_channel_with_its_xid_and_address
        a_dead_channel_refuses_more_work_at_once
        other_clients_go_on_beside_a_fault
    }
}

/// An address that no test maps: addresses are handed out far above.
const UNMAPPED: u64 = 0x1_2345_6000;

/// An H200 takes 40 to 130 ms; the rest is for a busy computer.
const QUICKLY: Duration = Duration::from_secs(2);

/// A way to end a channel, and how the card reports it.
struct Stimulus {
    name: &'static str,
    /// Submits it; an error is one of submission, which none of these is.
    provoke: fn(&Place, &Device) -> Result<Where, Error>,
    /// The Xid that the notifier carries.
    xid: u32,
    /// The MMU's name for the fault, where it is one.
    mmu: Option<&'static str>,
}

/// The address that the report must name, if one.
type Where = Option<u64>;

fn header(subchannel: u8, address: u32, count: u32) -> u32 {
    nv_abi::method::Header { form: Form::Increment, subchannel, address, count }.encode().unwrap()
}

fn launch(
    place: &Place,
    device: &Device,
    kernel: &str,
    arguments: &[nv_driver::Argument],
) -> Result<(), Error> {
    load(place, device, kernel).launch([1, 1, 1], [32, 1, 1], arguments)
}

/// The rows are what an H200 did with driver 580.159.04.
const STIMULI: &[Stimulus] = &[
    Stimulus {
        name: "a host release to unmapped memory",
        provoke: |_, device| {
            ComputeQueue::new(device).write(UNMAPPED, 1, true).submit()?;
            Ok(Some(UNMAPPED))
        },
        xid: 31,
        mmu: Some("FAULT_PDE"),
    },
    Stimulus {
        name: "a copy from unmapped memory",
        provoke: |_, device| {
            let target = device.video::<u32>(16)?;
            let mut queue = CopyQueue::new(device);
            queue.copy(target.address(), UNMAPPED, 64).submit()?;
            Ok(Some(UNMAPPED))
        },
        xid: 31,
        mmu: Some("FAULT_PDE"),
    },
    Stimulus {
        name: "a copy to read-only memory",
        provoke: |_, device| {
            let (target, source) = (device.read_only_from(&[1u32; 16])?, device.video::<u32>(16)?);
            CopyQueue::new(device).copy(target.address(), source.address(), 64).submit()?;
            let address = target.address();
            // The memory must outlive the copy.
            let _ = device.wait(&device.signal(0)?, 1, Duration::from_secs(1));
            Ok(Some(address))
        },
        xid: 31,
        mmu: Some("FAULT_RO_VIOLATION"),
    },
    Stimulus {
        name: "an inline upload to unmapped memory",
        provoke: |_, device| {
            ComputeQueue::new(device).copy_from_cpu(UNMAPPED, &[0; 16]).submit()?;
            Ok(Some(UNMAPPED))
        },
        xid: 31,
        mmu: Some("FAULT_PDE"),
    },
    Stimulus {
        name: "a store of a kernel to unmapped memory",
        provoke: |place, device| {
            launch(place, device, "store_at", &[UNMAPPED.into(), 0i64.into(), 7u32.into(), 3u32.into()])?;
            Ok(Some(UNMAPPED))
        },
        xid: 31,
        mmu: Some("FAULT_PDE"),
    },
    Stimulus {
        name: "a store of a kernel to read-only memory",
        provoke: |place, device| {
            let target = device.read_only_from(&[1u32; 16])?;
            launch(place, device, "store_at", &[(&target).into(), 4i64.into(), 7u32.into(), 3u32.into()])?;
            Ok(Some(target.address()))
        },
        xid: 31,
        mmu: Some("FAULT_RO_VIOLATION"),
    },
    Stimulus {
        name: "a misaligned load of a kernel",
        provoke: |place, device| {
            let memory = device.video::<u64>(4)?;
            launch(place, device, "load_at", &[(&memory).into(), (&memory).into(), 4i64.into()])?;
            Ok(None)
        },
        xid: 13,
        mmu: None,
    },
    Stimulus {
        name: "a store of a kernel beyond its shared memory",
        provoke: |place, device| {
            let memory = device.video::<u32>(32)?;
            launch(place, device, "shared_store_at", &[(&memory).into(), (1u32 << 20).into()])?;
            Ok(None)
        },
        xid: 13,
        mmu: None,
    },
    Stimulus {
        name: "a trap",
        provoke: |place, device| {
            let memory = device.video::<u32>(32)?;
            launch(place, device, "trap", &[(&memory).into(), 5u32.into()])?;
            Ok(None)
        },
        xid: 13,
        mmu: None,
    },
    Stimulus {
        name: "a misaligned 64-bit semaphore",
        provoke: |_, device| {
            let signal = device.signal(0)?;
            ComputeQueue::new(device).write(signal.address() + 4, 1, true).submit()?;
            Ok(None)
        },
        xid: 32,
        mmu: None,
    },
    Stimulus {
        name: "host method 4, which is illegal",
        provoke: |_, device| {
            ComputeQueue::new(device).words(&[header(0, 4, 1), 0]).submit()?;
            Ok(None)
        },
        xid: 32,
        mmu: None,
    },
    Stimulus {
        name: "a class that no object of the channel has",
        provoke: |_, device| {
            ComputeQueue::new(device).words(&[header(1, 0, 1), 0x1234]).submit()?;
            Ok(None)
        },
        xid: 13,
        mmu: None,
    },
    Stimulus {
        name: "a method that the compute class does not have",
        provoke: |_, device| {
            ComputeQueue::new(device).words(&[header(1, 0xff8, 1), 0]).submit()?;
            Ok(None)
        },
        xid: 11,
        mmu: None,
    },
];

/// Waits for the end of a channel.
fn fault(device: &Device, name: &str) -> ChannelFault {
    let never = device.signal(0).unwrap();
    let start = Instant::now();
    match device.wait(&never, 1, DEADLINE) {
        Err(Error::ChannelFault(fault)) => {
            assert!(start.elapsed() < QUICKLY, "{name} took {:?}", start.elapsed());
            *fault
        }
        other => panic!("{name}: {other:?}"),
    }
}

pub fn every_stimulus_ends_the_channel_with_its_xid_and_address(place: &Place) {
    for Stimulus { name, provoke, xid, mmu } in STIMULI {
        place.expect_faults(1);
        let device = place.device(0);
        let address =
            provoke(place, &device).unwrap_or_else(|error| panic!("{name} is not submitted: {error}"));
        let fault = fault(&device, name);
        assert_eq!(fault.xid, *xid, "{name}: {fault}");
        assert_eq!(fault.mmu.as_ref().map(|found| found.name.as_str()), *mmu, "{name}: {fault}");
        // The MMU tells the page.
        let page = |address: u64| address & !0xfff;
        assert_eq!(fault.mmu.as_ref().map(|mmu| page(mmu.address)), address.map(page), "{name}: {fault}");
        let engine = if name.contains("copy") { Engine::Copy } else { Engine::Compute };
        assert_eq!(fault.engine, engine, "{name}");
        // A new device of the same client works. One client registers a GPU with UVM once, so the dead one goes first.
        drop(device);
        let fresh = place.device(0);
        assert_eq!(fresh.buffer_from(&[1u32, 2, 3]).unwrap().to_vec().unwrap(), [1, 2, 3], "after {name}");
    }
}

pub fn a_dead_channel_refuses_more_work_at_once(place: &Place) {
    place.expect_faults(1);
    let device = place.device(0);
    let buffer = device.buffer_from(&[7u32; 4]).unwrap();
    let kernel = load(place, &device, "iota");
    ComputeQueue::new(&device).write(UNMAPPED, 1, true).submit().unwrap();
    fault(&device, "the release");
    let start = Instant::now();
    let refused: [Result<(), Error>; 4] = [
        buffer.copy_from(&[1]),
        buffer.to_vec().map(drop),
        kernel.launch([1, 1, 1], [4, 1, 1], &[(&buffer).into(), 4u32.into(), 0u32.into()]),
        device.check(),
    ];
    // Every one of them tells the cause, whichever channel it met.
    for result in &refused {
        let Err(Error::ChannelFault(fault)) = result else { panic!("{refused:?}") };
        assert_eq!(fault.mmu.as_ref().map(|mmu| mmu.address), Some(UNMAPPED), "{fault}");
    }
    assert!(start.elapsed() < QUICKLY);
}

pub fn other_clients_go_on_beside_a_fault(place: &Place) {
    place.expect_faults(1);
    let other = System::open(place.backend().clone()).unwrap();
    let other = Device::open_on(&other, 0, nv_driver::Options::default()).unwrap();
    let out = other.video::<u32>(256).unwrap();
    let (gate, done) = (other.signal(0).unwrap(), other.signal(0).unwrap());
    let kernel = load(place, &other, "iota");
    let mut queue = ComputeQueue::new(&other);
    queue.wait(&gate, 1);
    queue.exec(&kernel, [2, 1, 1], [128, 1, 1], &[(&out).into(), 256u32.into(), 3u32.into()]).unwrap();
    queue.signal(&done, 1).submit().unwrap();

    let device = place.device(0);
    ComputeQueue::new(&device).words(&[header(1, compute::SET_OBJECT.address, 1), 0x1234]).submit().unwrap();
    assert_eq!(fault(&device, "a wrong class").xid, 13);

    // Submitted before the fault, run after it.
    gate.set(1).unwrap();
    other.wait(&done, 1, DEADLINE).unwrap();
    assert_eq!(out.to_vec().unwrap(), reference::iota(256, 3));
}

/// What the simulated GPU says of a fault, beside what a driver meets: a card has nothing like it.
fn report(place: &Place) -> String {
    let faults = place.machine().unwrap().faults();
    faults.last().unwrap().to_string()
}

#[test]
fn a_report_names_kernel_instruction_warp_thread_and_the_nearest_memory() {
    Place::simulated("ada", &[Profile::ad102()]).run(|place| {
        place.expect_faults(1);
        let cubin = fixtures::cubin("sm_89", "store_at").unwrap();
        assert!(place.machine().unwrap().add_cubin(&cubin).unwrap() >= 4);
        let device = place.device(0);
        let memory = device.video::<u32>(1 << 20).unwrap();
        // One thread of 64, far past the memory.
        let arguments = [(&memory).into(), (1i64 << 40).into(), 7u32.into(), 37u32.into()];
        load(place, &device, "store_at").launch([1, 1, 1], [64, 1, 1], &arguments).unwrap();
        fault(&device, "the store");
        let text = report(place);
        let address = memory.address() + (1 << 40);
        for part in [
            "Xid 31: channel",
            &format!("{address:#x}"),
            "STG.E",
            "block [0, 0, 0], warp 1, lanes 0x00000020",
            "lane 5 is thread [37, 0, 0]",
            "bytes past the end of",
            "; kernel store_at, at store_at+0x",
            // What the channel had just done, of the commands that launched the kernel.
            ", after ",
            "SEND_PCAS_A = ",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    });
}

/// The kernel module writes the notifiers of a group one after the other, and a driver may look in between.
#[test]
fn the_channel_at_fault_is_named_while_its_group_is_being_told() {
    let settings = Machine::builder().fault_reporting(FaultReporting::OneByOne(Duration::from_millis(10)));
    Place::simulated_by("ada", &[Profile::ad102()], settings.driver(tests::DRIVER))
        .run(every_stimulus_ends_the_channel_with_its_xid_and_address);
}

#[test]
fn a_report_names_the_source_line_where_the_cubin_has_lines() {
    Place::simulated("ada", &[Profile::ad102()]).run(|place| {
        place.expect_faults(1);
        let cubin = fixtures::bytes("lines/transpose.sm_89.cubin").unwrap();
        assert_eq!(place.machine().unwrap().add_cubin(&cubin).unwrap(), 1);
        let device = place.device(0);
        let from = device.video::<f32>(1024).unwrap();
        let kernel = Module::load(&device, &cubin).unwrap().kernel("transpose").unwrap();
        kernel.launch([1, 1, 1], [32, 32, 1], &[UNMAPPED.into(), (&from).into(), 32u32.into()]).unwrap();
        fault(&device, "the store");
        let text = report(place);
        assert!(text.contains("; kernel transpose, at transpose+0x"), "{text}");
        assert!(text.contains(", transpose.cu:7 ["), "{text}");
    });
}
