//! Events through descriptors, and what a client sees of faults.

use std::time::Duration;

use super::{
    channel::{Bench, DATA, LIMIT, header, release},
    *,
};

impl Bench {
    /// ALLOC_OS_EVENT on a descriptor.
    pub(super) fn os_event(&self, fd: Fd) -> Status {
        use rm::nv_ioctl_alloc_os_event_t as P;
        let fields = [(&P::hClient, self.raw.client.into()), (&P::fd, fd.0 as u64)];
        let record = self.raw.escape(fd, number::NV_ESC_ALLOC_OS_EVENT, &P::STRUCT, &fields).unwrap();
        Status(record.get(&P::Status).unwrap() as u32)
    }

    /// An event object under `source` that goes to `fd`.
    pub(super) fn event(&self, source: u32, class: u32, index: u64, fd: Fd) -> Result<u32, Status> {
        use rm::NV0005_ALLOC_PARAMETERS as P;
        let params = self.raw.record(
            &P::STRUCT,
            &[(&P::hClass, class.into()), (&P::notifyIndex, index), (&P::data, fd.0 as u64)],
        );
        self.raw.alloc(self.raw.client, source, 0, class, Some(params))
    }

    pub(super) fn arm(&self, index: u64, action: u64) -> Status {
        use rm::NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS as P;
        let mut params = self.raw.record(&P::STRUCT, &[(&P::event, index), (&P::action, action)]);
        self.raw.control(self.subdevice, c::NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION, &mut params)
    }

    /// RM_GET_EVENT_DATA: object, index, info32, info16, more.
    pub(super) fn take(&self, fd: Fd) -> Result<(u32, u32, u32, u16, bool), Status> {
        use rm::{NVOS41_PARAMETERS as P, NvUnixEvent as Event};
        let mut event = self.raw.record(&Event::STRUCT, &[]);
        let pointer = event.bytes_mut().as_mut_ptr() as u64;
        let fields = [(&P::pEvent, pointer)];
        let record = self.raw.escape(fd, number::NV_ESC_RM_GET_EVENT_DATA, &P::STRUCT, &fields).unwrap();
        match Status(record.get(&P::status).unwrap() as u32) {
            Status::NV_OK => Ok((
                event.get(&Event::hObject).unwrap() as u32,
                event.get(&Event::NotifyIndex).unwrap() as u32,
                event.get(&Event::info32).unwrap() as u32,
                event.get(&Event::info16).unwrap() as u16,
                record.get(&P::MoreEvents).unwrap() != 0,
            )),
            status => Err(status),
        }
    }

    fn readable(&self, fd: Fd, limit: Duration) -> bool {
        self.raw.machine.poll(fd, limit).unwrap().readable
    }
}

const RC_ERROR: u64 = 37;
const OS_EVENT: u32 = class::NV01_EVENT_OS_EVENT;

#[test]
fn an_os_event_is_made_once_per_client_and_descriptor() {
    use rm::nv_ioctl_free_os_event_t as P;
    let bench = Bench::hopper();
    let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    assert_eq!(bench.os_event(fd), Status::INSUFFICIENT_RESOURCES);
    let free = || {
        let fields = [(&P::hClient, bench.raw.client.into()), (&P::fd, fd.0 as u64)];
        let record = bench.raw.escape(fd, number::NV_ESC_FREE_OS_EVENT, &P::STRUCT, &fields).unwrap();
        Status(record.get(&P::Status).unwrap() as u32)
    };
    assert_eq!(free(), Status::NV_OK);
    assert_eq!(free(), Status::INVALID_EVENT);
}

#[test]
fn an_event_object_needs_its_descriptor_and_a_notifier_is_armed_once() {
    let bench = Bench::hopper();
    let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(bench.arm(RC_ERROR, 2), Status::INVALID_STATE, "nobody listens");
    assert_eq!(bench.event(bench.subdevice, OS_EVENT, RC_ERROR, fd), Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    let callback = class::NV01_EVENT_KERNEL_CALLBACK_EX;
    assert_eq!(bench.event(bench.subdevice, callback, RC_ERROR, fd), Err(Status::ILLEGAL_ACTION));
    let event = bench.event(bench.subdevice, OS_EVENT, RC_ERROR, fd).unwrap();
    assert_eq!(bench.arm(198, 2), Status::INVALID_ARGUMENT);
    assert_eq!(bench.arm(11, 2), Status::INVALID_ARGUMENT, "the timer's");
    assert_eq!(bench.arm(RC_ERROR, 3), Status::INVALID_ARGUMENT);
    assert_eq!(bench.arm(RC_ERROR, 2), Status::NV_OK);
    assert_eq!(bench.arm(RC_ERROR, 1), Status::INVALID_STATE, "armed already");
    assert_eq!(bench.arm(RC_ERROR, 0), Status::NV_OK);
    assert_eq!(bench.raw.free(bench.raw.client, event), Status::NV_OK);
    assert_eq!(bench.arm(RC_ERROR, 2), Status::INVALID_STATE, "nobody listens again");
    assert_eq!(bench.take(fd), Err(Status::OPERATING_SYSTEM), "nothing waits");
}

/// A way to make a channel fault, with what the card did.
struct Stimulus {
    name: &'static str,
    words: Vec<u32>,
    xid: u32,
}

/// The seven that were measured on an H200.
fn stimuli() -> Vec<Stimulus> {
    let unmapped = 0x1_2345_6000_u64;
    let copy = |method, value| [header(4, method, 1), value];
    let mut read = vec![header(4, 0, 1), class::HOPPER_DMA_COPY_A];
    for (method, value) in [
        (0x400, (unmapped >> 32) as u32),
        (0x404, unmapped as u32),
        (0x408, (DATA >> 32) as u32),
        (0x40c, DATA as u32),
        (0x418, 64),
        (0x41c, 1),
        // LAUNCH_DMA: non-pipelined, both layouts pitch.
        (0x300, 0x182),
    ] {
        read.extend(copy(method, value));
    }
    let compute = [header(1, 0, 1), class::HOPPER_COMPUTE_A];
    let mut misaligned = release(DATA + 4, 1);
    misaligned[5] |= 1 << 24;
    vec![
        Stimulus { name: "release to nowhere", words: release(unmapped, 1).to_vec(), xid: 31 },
        Stimulus { name: "copy from nowhere", words: read, xid: 31 },
        Stimulus { name: "host method 0x4", words: vec![header(0, 0x4, 1), 0], xid: 32 },
        Stimulus { name: "misaligned semaphore", words: misaligned.to_vec(), xid: 32 },
        Stimulus { name: "unknown class", words: vec![header(1, 0, 1), 0x1234], xid: 13 },
        Stimulus {
            name: "unknown compute method",
            words: [&compute[..], &[header(1, 0xff8, 1), 0]].concat(),
            xid: 11,
        },
        Stimulus {
            name: "bad value",
            words: [&compute[..], &[header(1, 0x2a0, 2), 0, 0xfe00_0000]].concat(),
            xid: 69,
        },
    ]
}

#[test]
fn each_measured_stimulus_gives_its_xid_notifier_event_and_a_silent_ring() {
    for stimulus in stimuli() {
        let name = stimulus.name;
        let mut bench = Bench::hopper();
        let (group, share) = bench.group();
        let mut faulty = bench.channel(group, share);
        let sibling = bench.channel(group, share);
        bench.schedule(group);
        let mut other = bench.ready();
        let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
        assert_eq!(bench.os_event(fd), Status::NV_OK);
        let event = bench.event(bench.subdevice, OS_EVENT, RC_ERROR, fd).unwrap();
        assert_eq!(bench.arm(RC_ERROR, 2), Status::NV_OK);
        assert!(!bench.readable(fd, Duration::ZERO), "{name}");

        bench.submit(&mut faulty, &stimulus.words);
        assert!(bench.readable(fd, LIMIT), "{name}: the event");
        assert_eq!(bench.take(fd), Ok((event, 37, stimulus.xid, 0xe9, false)), "{name}");
        assert!(!bench.readable(fd, Duration::ZERO), "{name}: taken");
        for channel in [&faulty, &sibling] {
            assert_eq!(bench.notifier(channel), (stimulus.xid, 1, 0xffff, true), "{name}");
        }
        assert_eq!(bench.notifier(&other).2, 0, "{name}: another group is not told");
        // The bad entry was taken; nothing after it is.
        assert_eq!(bench.get(&faulty), 1, "{name}");
        bench.submit(&mut faulty, &release(DATA, 1));
        bench.assert_works(&mut other);
        assert_eq!((bench.get(&faulty), bench.data_word(0)), (1, 0), "{name}: silent");
        assert_eq!(bench.raw.machine.faults().len(), 1, "{name}");
        // A new group works.
        assert_eq!(bench.raw.free(bench.raw.client, group), Status::NV_OK);
        let mut again = bench.ready();
        bench.assert_works(&mut again);
    }
}

#[test]
fn the_mmu_fault_is_told_by_the_channel_and_by_the_debugger() {
    use rm::{
        NV83DE_ALLOC_PARAMETERS as Debugger, NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS as Read,
        NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS as Info,
    };
    let mut bench = Bench::hopper();
    let mut channel = bench.ready();
    let compute =
        bench.raw.alloc(bench.raw.client, channel.handle, 0, class::HOPPER_COMPUTE_A, None).unwrap();
    let params = bench.raw.record(&Debugger::STRUCT, &[(&Debugger::hClass3dObject, compute.into())]);
    let debugger =
        bench.raw.alloc(bench.raw.client, bench.device, 0, class::GT200_DEBUGGER, Some(params)).unwrap();
    let mut read = bench.raw.record(&Read::STRUCT, &[]);
    let command = c::NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO;
    assert_eq!(bench.raw.control(debugger, command, &mut read), Status::NV_OK);
    assert_eq!(read.get(&Read::count), Ok(0), "before any fault");
    bench.submit(&mut channel, &release(0x1_2345_6010, 1));
    bench.wait("notifier", || bench.notifier(&channel).2 == 0xffff);
    let mut info = bench.raw.record(&Info::STRUCT, &[]);
    let get = c::NV906F_CTRL_CMD_GET_MMU_FAULT_INFO;
    assert_eq!(bench.raw.control(channel.handle, get, &mut info), Status::NV_OK, "a dead channel answers");
    assert_eq!(info.get(&Info::addrHi), Ok(1));
    assert_eq!(info.get(&Info::addrLo), Ok(0x2345_6000));
    assert_eq!(info.get(&Info::faultType), Ok(0));
    assert_eq!(&info.bytes()[12..21], b"FAULT_PDE");
    assert_eq!(bench.raw.control(debugger, command, &mut read), Status::NV_OK);
    assert_eq!(read.get(&Read::count), Ok(1));
    assert_eq!(read.get(&Read::mmuFaultInfoList_faultAddress), Ok(0x1_2345_6010));
    assert_eq!(read.get(&Read::mmuFaultInfoList_accessType), Ok(1), "a virtual write");
}

#[test]
fn a_single_shot_notifier_fires_once_and_a_data_less_event_is_taken_by_one_poll() {
    let mut bench = Bench::hopper();
    let (data, bare) =
        (bench.raw.machine.open(Node::Ctl).unwrap(), bench.raw.machine.open(Node::Ctl).unwrap());
    for fd in [data, bare] {
        assert_eq!(bench.os_event(fd), Status::NV_OK);
    }
    bench.event(bench.subdevice, OS_EVENT, RC_ERROR, data).unwrap();
    bench.event(bench.subdevice, OS_EVENT, RC_ERROR | 0x1000_0000, bare).unwrap();
    assert_eq!(bench.arm(RC_ERROR, 1), Status::NV_OK);
    let mut first = bench.ready();
    bench.submit(&mut first, &[header(0, 0x4, 1), 0]);
    assert!(bench.readable(data, LIMIT));
    let told = bench.take(data).unwrap();
    assert_eq!(told.2, 32);
    let mut second = bench.ready();
    bench.submit(&mut second, &[header(0, 0x4, 1), 0]);
    bench.wait("notifier", || bench.notifier(&second).2 == 0xffff);
    assert!(!bench.readable(data, Duration::from_millis(20)), "once");
    assert!(bench.readable(bare, Duration::ZERO), "everyone who listens heard the first");
    assert!(!bench.readable(bare, Duration::ZERO), "a poll takes it");
}

#[test]
fn a_non_stall_interrupt_wakes_who_waits_for_the_engine() {
    let mut bench = Bench::hopper();
    let mut channel = bench.ready();
    let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    // As libcuda asks: graphics, non-stalling, without data, of this subdevice.
    bench.event(bench.subdevice, OS_EVENT, 0x3800_000c, fd).unwrap();
    bench.submit(&mut channel, &[header(0, 0x20, 1), 0]);
    assert!(bench.readable(fd, LIMIT));
    assert_eq!(bench.take(fd), Err(Status::OPERATING_SYSTEM), "it has no data");
}

#[test]
fn closing_a_descriptor_or_freeing_the_client_ends_its_events() {
    let bench = Bench::hopper();
    let before = bench.raw.machine.object_count();
    let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    let event = bench.event(bench.subdevice, OS_EVENT, RC_ERROR, fd).unwrap();
    bench.raw.machine.close(fd).unwrap();
    assert_eq!(bench.arm(RC_ERROR, 2), Status::INVALID_STATE);
    assert_eq!(bench.raw.free(bench.raw.client, event), Status::NV_OK);
    assert_eq!(bench.raw.machine.object_count(), before);
    let fd = bench.raw.machine.open(Node::Gpu(0)).unwrap();
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    assert_eq!(bench.raw.free(bench.raw.client, bench.raw.client), Status::NV_OK);
    assert_eq!(bench.raw.machine.object_count(), 0);
}
