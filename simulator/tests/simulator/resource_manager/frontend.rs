//! The smaller ioctls, controls of channels, and the statuses of UVM's channel and mapping calls.

use super::{
    channel::{Bench, header},
    *,
};

#[test]
fn the_memory_block_size_stays_what_it_was_first() {
    use rm::nv_ioctl_sys_params_t as P;
    let raw = Raw::new();
    let set = |bytes| {
        raw.escape(raw.ctl, number::NV_ESC_SYS_PARAMS, &P::STRUCT, &[(&P::memblock_size, bytes)]).map(|_| ())
    };
    assert_eq!(set(1 << 27), Ok(()));
    assert_eq!(set(1 << 27), Ok(()));
    assert_eq!(set(1 << 28), Err(Errno::EBUSY));
}

#[test]
fn gpus_are_attached_once_to_a_control_file() {
    let raw = Raw::new();
    let attach = |fd, ids: &[u32]| {
        let mut bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let request = number::request(number::NV_ESC_ATTACH_GPUS_TO_FD, bytes.len());
        raw.machine.ioctl(fd, request, &mut bytes)
    };
    let second = || raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, raw.device_params(1));
    assert_eq!(second(), Err(Status::INVALID_DEVICE), "its node is not open");
    assert_eq!(attach(raw.gpu, &[0x200]), Err(Errno::EINVAL), "not a control file");
    assert_eq!(attach(raw.ctl, &[0x900]), Err(Errno::EINVAL), "no such GPU");
    assert_eq!(attach(raw.ctl, &[0x200, 0]), Ok(()));
    assert_eq!(attach(raw.ctl, &[0x200]), Err(Errno::EINVAL), "again");
    assert!(second().is_ok());
}

#[test]
fn a_call_may_come_in_an_envelope() {
    use rm::{NVOS00_PARAMETERS as Free, nv_ioctl_xfer_t as Envelope};
    let raw = Raw::new();
    let device = raw.device();
    let mut inner =
        raw.record(&Free::STRUCT, &[(&Free::hRoot, raw.client.into()), (&Free::hObjectOld, device.into())]);
    let pointer = inner.bytes_mut().as_mut_ptr().expose_provenance() as u64;
    let send = |nr: u32, size: u64, pointer: u64| {
        let fields = [(&Envelope::cmd, nr.into()), (&Envelope::size, size), (&Envelope::ptr, pointer)];
        raw.escape(raw.ctl, number::NV_ESC_IOCTL_XFER_CMD, &Envelope::STRUCT, &fields).map(|_| ())
    };
    assert_eq!(send(number::NV_ESC_RM_FREE, 12, pointer), Err(Errno::EINVAL), "size");
    assert_eq!(send(0x99, 16, pointer), Err(Errno::EINVAL), "number");
    assert_eq!(send(number::NV_ESC_RM_FREE, 16, 16), Err(Errno::EFAULT), "pointer");
    assert_eq!(send(number::NV_ESC_RM_FREE, 16, pointer), Ok(()));
    let mut count = raw.record(&rm::NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS::STRUCT, &[]);
    let asked = raw.control(device, c::NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES, &mut count);
    assert_eq!(asked, Status::OBJECT_NOT_FOUND, "the device is gone");
}

#[test]
fn ioctls_that_are_not_simulated_are_refused_and_listed() {
    let raw = Raw::new();
    for (nr, fd) in [
        (number::NV_ESC_RM_I2C_ACCESS, raw.gpu),
        (number::NV_ESC_RM_IDLE_CHANNELS, raw.ctl),
        (number::NV_ESC_RM_ACCESS_REGISTRY, raw.ctl),
        (number::NV_ESC_EXPORT_TO_DMABUF_FD, raw.gpu),
        (number::NV_ESC_SET_NUMA_STATUS, raw.gpu),
    ] {
        let described = number::escape(nr).unwrap();
        let size = described.argument.map_or(8, |layout| layout.size(raw.branch));
        let before = raw.machine.unsupported().len();
        let mut argument = vec![0; size];
        let result = raw.machine.ioctl(fd, number::request(nr, size), &mut argument);
        let status = described.argument.and_then(|layout| {
            let field = layout.field("status").or_else(|| layout.field("Status"))?;
            Record::from_bytes(layout, raw.branch, &argument).ok()?.get(field).ok()
        });
        let refused = result == Err(Errno::EINVAL) || status == Some(Status::NOT_SUPPORTED.0.into());
        assert!(refused, "{}: {result:?}, {status:?}", described.name);
        let lacks = raw.machine.unsupported();
        assert_eq!(lacks.len(), before + 1);
        assert!(lacks.iter().any(|lack| lack.what.contains(described.name)), "{lacks:?}");
    }
}

#[test]
fn every_uvm_call_is_answered_or_refused_and_listed() {
    let raw = Raw::new();
    raw.initialize_uvm();
    for call in u::CALLS.iter().filter(|call| call.exists(raw.branch)) {
        let Some(layout) = call.argument else { continue };
        let mut argument = vec![0; layout.size(raw.branch)];
        let result = raw.machine.ioctl(raw.uvm, call.number, &mut argument);
        let status = layout.field("rmStatus").map(|field| {
            Record::from_bytes(layout, raw.branch, &argument).unwrap().get(field).unwrap() as u32
        });
        if result.is_ok() && status == Some(Status::NOT_SUPPORTED.0) {
            let lacks = raw.machine.unsupported();
            assert!(lacks.iter().any(|lack| lack.what.contains(call.name)), "{} is not listed", call.name);
        }
    }
}

#[test]
fn a_channel_is_registered_where_its_buffers_have_room() {
    use u::UVM_REGISTER_CHANNEL_PARAMS as P;
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    let channel = bench.channel(group, share);
    let raw = &bench.raw;
    let register = |uuid: &[u8; 16], handle: u32, base: u64, length: u64| {
        let fields = [
            (&P::rmCtrlFd, raw.ctl.0 as u64),
            (&P::hClient, raw.client.into()),
            (&P::hChannel, handle.into()),
            (&P::base, base),
            (&P::length, length),
        ];
        raw.uvm_gpu(u::UVM_REGISTER_CHANNEL, "gpuUuid_uuid", uuid, &fields)
    };
    let unregister = |handle: u32| {
        use u::UVM_UNREGISTER_CHANNEL_PARAMS as P;
        let fields = [(&P::hClient, raw.client.into()), (&P::hChannel, handle.into())];
        raw.uvm_gpu(u::UVM_UNREGISTER_CHANNEL, "gpuUuid_uuid", &bench.uuid, &fields)
    };
    const BASE: u64 = 0x20_0000_0000;
    const LENGTH: u64 = 64 << 20;
    assert_eq!(register(&[9; 16], channel.handle, BASE, LENGTH), Status::INVALID_DEVICE);
    assert_eq!(register(&bench.uuid, bench.device, BASE, LENGTH), Status::INVALID_CHANNEL);
    assert_eq!(register(&bench.uuid, channel.handle, BASE + 1, LENGTH), Status::INVALID_ADDRESS);
    assert_eq!(register(&bench.uuid, channel.handle, 1 << 60, LENGTH), Status::OUT_OF_RANGE);
    assert_eq!(unregister(channel.handle), Status::INVALID_CHANNEL, "not registered");
    assert_eq!(register(&bench.uuid, channel.handle, BASE, LENGTH), Status::NV_OK);
    assert_eq!(register(&bench.uuid, channel.handle, BASE, LENGTH), Status::INVALID_CHANNEL, "again");
    assert_eq!(unregister(channel.handle), Status::NV_OK);
    assert_eq!(unregister(channel.handle), Status::INVALID_CHANNEL);
    // Its addresses are free again.
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, PAGE), Status::NV_OK);
    // A range without room for a context's buffers.
    let whole = raw.range(u::UVM_CREATE_EXTERNAL_RANGE, 0x30_0000_0000, LENGTH);
    assert_eq!(whole, Status::NV_OK);
    assert_eq!(register(&bench.uuid, channel.handle, 0x30_0000_0000, LENGTH), Status::INVALID_ADDRESS);
}

#[test]
fn mapping_attributes_are_checked_before_gpus_and_addresses() {
    use u::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as P;
    const BASE: u64 = 0x40_0000_0000;
    let raw = Raw::new();
    let (device, _, uuid, space) = raw.with_space();
    assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
    let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    for base in [BASE, 1 << 60] {
        assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, base, PAGE), Status::NV_OK);
    }
    let map = |fields: Fields<'_>| {
        let (low, high) = uuid.split_at(8);
        let mut record = raw.record(
            &P::STRUCT,
            &[
                (&P::base, BASE),
                (&P::length, PAGE),
                (&P::perGpuAttributes_gpuUuidLow, u64::from_le_bytes(low.try_into().unwrap())),
                (&P::perGpuAttributes_gpuUuidHigh, u64::from_le_bytes(high.try_into().unwrap())),
                (&P::gpuAttributesCount, 1),
                (&P::rmCtrlFd, raw.ctl.0 as u64),
                (&P::hClient, raw.client.into()),
                (&P::hMemory, memory.into()),
            ],
        );
        for (field, value) in fields {
            record.set(field, *value).unwrap();
        }
        raw.machine.ioctl(raw.uvm, u::UVM_MAP_EXTERNAL_ALLOCATION, record.bytes_mut()).unwrap();
        Status(record.get(&P::rmStatus).unwrap() as u32)
    };
    let nobody = (&P::perGpuAttributes_gpuUuidLow, 7);
    assert_eq!(map(&[(&P::gpuAttributesCount, 0), (&P::base, BASE + PAGE)]), Status::INVALID_ARGUMENT);
    assert_eq!(map(&[(&P::gpuAttributesCount, 257)]), Status::INVALID_ARGUMENT);
    assert_eq!(map(&[(&P::perGpuAttributes_gpuMappingType, 4), nobody]), Status::INVALID_ARGUMENT);
    assert_eq!(map(&[(&P::perGpuAttributes_gpuCachingType, 3), nobody]), Status::INVALID_ARGUMENT);
    assert_eq!(map(&[(&P::perGpuAttributes_gpuFormatType, 2), nobody]), Status::INVALID_ARGUMENT);
    assert_eq!(map(&[nobody, (&P::base, 1 << 60)]), Status::INVALID_DEVICE);
    assert_eq!(map(&[(&P::base, 1 << 60), (&P::hMemory, 0x77)]), Status::OUT_OF_RANGE);
    assert_eq!(map(&[]), Status::NV_OK);
}

#[test]
fn channels_are_reset_stopped_and_described_by_controls() {
    use rm::{
        NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS as Reset, NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS as Engine,
        NVA06C_CTRL_TIMESLICE_PARAMS as Timeslice,
    };
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    let (mut channel, mut other) = (bench.channel(group, share), bench.channel(group, share));
    bench.schedule(group);
    let raw = &bench.raw;
    let mut slice = raw.record(&Timeslice::STRUCT, &[(&Timeslice::timesliceUs, 1000)]);
    assert_eq!(raw.control(group, c::NVA06C_CTRL_CMD_SET_TIMESLICE, &mut slice), Status::NV_OK);
    slice.set(&Timeslice::timesliceUs, 0).unwrap();
    assert_eq!(raw.control(group, c::NVA06C_CTRL_CMD_GET_TIMESLICE, &mut slice), Status::NV_OK);
    assert_eq!(slice.get(&Timeslice::timesliceUs), Ok(1000));
    let compute = raw.alloc(raw.client, channel.handle, 0, class::HOPPER_COMPUTE_A, None).unwrap();
    let mut engine = raw.record(&Engine::STRUCT, &[(&Engine::hObject, compute.into())]);
    assert_eq!(raw.control(channel.handle, c::NV906F_CTRL_GET_CLASS_ENGINEID, &mut engine), Status::NV_OK);
    assert_eq!(engine.get(&Engine::classID), Ok(class::HOPPER_COMPUTE_A.into()));
    assert_eq!(engine.get(&Engine::engineID), Ok(1));
    engine.set(&Engine::hObject, 0x77).unwrap();
    let unknown = raw.control(channel.handle, c::NV906F_CTRL_GET_CLASS_ENGINEID, &mut engine);
    assert_eq!(unknown, Status::OBJECT_NOT_FOUND);
    bench.assert_works(&mut channel);
    // RESETCHANNEL_VERIF_ERROR goes to every channel of the group.
    let mut reset = bench.raw.record(&Reset::STRUCT, &[]);
    let status = bench.raw.control(channel.handle, c::NV906F_CTRL_CMD_RESET_CHANNEL, &mut reset);
    assert_eq!(status, Status::NV_OK);
    for channel in [&channel, &other] {
        assert_eq!(bench.notifier(channel), (43, 1, 0xffff, true));
    }
    let before = bench.get(&other);
    bench.submit(&mut other, &[header(0, 0x8, 1), 0]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(bench.get(&other), before, "silent");
}
