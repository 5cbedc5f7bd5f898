//! What is lost: objects whose dependences are freed, and a GPU that falls off the bus.

use std::time::Duration;

use super::{
    channel::{Bench, DATA, release},
    *,
};

impl Raw {
    /// What a control that no class has is answered on an object.
    fn unknown_control(&self, object: u32) -> Status {
        self.control_raw(self.client, object, 0x2080_3fff, 0, 0)
    }

    pub(super) fn is_there(&self, object: u32) -> bool {
        match self.unknown_control(object) {
            Status::NOT_SUPPORTED => true,
            Status::RESOURCE_LOST => false,
            status => panic!("{object:#x}: {status}"),
        }
    }
}

#[test]
fn what_depends_on_a_freed_object_is_lost_and_keeps_its_handle() {
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    let mut channel = bench.channel(group, share);
    bench.schedule(group);
    bench.assert_works(&mut channel);
    let free = |bench: &Bench, handle| assert_eq!(bench.raw.free(bench.raw.client, handle), Status::NV_OK);
    free(&bench, bench.notifier_memory);
    assert!(bench.raw.is_there(channel.handle), "it does not depend on its notifiers");
    bench.assert_works(&mut channel);

    free(&bench, share);
    assert_eq!(bench.raw.unknown_control(share), Status::OBJECT_NOT_FOUND);
    assert!(!bench.raw.is_there(channel.handle), "it depends on its context share");
    assert!(bench.raw.is_there(group), "and is not all of the group");
    let copy = bench.raw.engine_classes().2;
    let below = bench.raw.alloc(bench.raw.client, channel.handle, 0, copy, None);
    assert_eq!(below, Err(Status::INVALID_OBJECT_PARENT));
    let twin = bench.raw.dup(bench.raw.client, bench.device, bench.raw.client, channel.handle);
    assert_eq!(twin, Err(Status::RESOURCE_LOST));
    free(&bench, channel.handle);
    assert_eq!(bench.raw.unknown_control(channel.handle), Status::OBJECT_NOT_FOUND);

    let share = bench.raw.share(group, bench.space).unwrap();
    let twin = bench.raw.dup(bench.raw.client, group, bench.raw.client, share).unwrap();
    free(&bench, bench.space);
    assert!(!bench.raw.is_there(share) && !bench.raw.is_there(twin), "what work runs in");
    // Freeing what is below something lost, or all of it, is as ever.
    let before = bench.raw.machine.object_count();
    free(&bench, group);
    assert_eq!(before - bench.raw.machine.object_count(), 3);
}

#[test]
fn a_channel_is_lost_with_the_memory_of_its_userd() {
    let mut bench = Bench::hopper();
    let mut channel = bench.ready();
    bench.assert_works(&mut channel);
    let memory = bench.work_memory;
    assert_eq!(bench.raw.free(bench.raw.client, memory), Status::NV_OK);
    assert!(!bench.raw.is_there(channel.handle));
}

#[test]
fn a_gpu_that_falls_off_the_bus_takes_its_channels_along() {
    use rm::{NV2080_CTRL_GPU_GET_ID_PARAMS as Id, NV2080_CTRL_TIMER_GET_TIME_PARAMS as Time};
    const UNAVAILABLE: u64 = 191;
    const XID: u32 = 79;
    let builder = Machine::builder().gpu(Profile::h200()).gpu(Profile::h200()).driver("580.159.04");
    let mut bench = Bench::new(builder, Branch::R580);
    let mut channel = bench.ready();
    bench.assert_works(&mut channel);
    let fd = bench.raw.machine.open(Node::Ctl).unwrap();
    assert_eq!(bench.os_event(fd), Status::NV_OK);
    let event = bench.event(bench.subdevice, class::NV01_EVENT_OS_EVENT, UNAVAILABLE, fd).unwrap();
    assert_eq!(bench.arm(UNAVAILABLE, 2), Status::NV_OK);

    assert!(!bench.raw.machine.lose_gpu(2), "there is none");
    assert!(bench.raw.machine.lose_gpu(0));
    assert_eq!(bench.take(fd), Ok((event, UNAVAILABLE as u32, XID, 0, false)));
    let (info32, _, status, _) = bench.notifier(&channel);
    assert_eq!((info32, status), (XID, 0xffff));

    let raw = &bench.raw;
    let poll = |fd| raw.machine.poll(fd, Duration::ZERO).unwrap();
    assert!(poll(raw.gpu).hung_up);
    let other = raw.machine.open(Node::Gpu(1)).unwrap();
    assert!(!poll(other).hung_up && !poll(raw.ctl).hung_up);
    let layout = &rm::NVOS00_PARAMETERS::STRUCT;
    assert_eq!(raw.escape(raw.gpu, number::NV_ESC_RM_FREE, layout, &[]).map(drop), Err(Errno::EINVAL));
    let control = |command, layout| raw.control(bench.subdevice, command, &mut raw.record(layout, &[]));
    assert_eq!(control(c::NV2080_CTRL_CMD_TIMER_GET_TIME, &Time::STRUCT), Status::GPU_IS_LOST);
    assert_eq!(control(c::NV2080_CTRL_CMD_GPU_GET_ID, &Id::STRUCT), Status::NV_OK, "it needs no GPU");

    // Nothing is done any more.
    let before = bench.data_word(0x8000);
    bench.submit(&mut channel, &release(DATA + 0x8000, before + 1));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(bench.data_word(0x8000), before);
}
