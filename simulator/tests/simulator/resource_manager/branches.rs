//! Driver branches: one flow under each, and clients that were built for another.

use super::{channel::Bench, *};

/// A version of each branch, as its modules report it.
pub(super) const VERSIONS: [(Branch, &str); 9] = [
    (Branch::R535, "535.288.01"),
    (Branch::R550, "550.163.01"),
    (Branch::R560, "560.35.03"),
    (Branch::R565, "565.77"),
    (Branch::R570, "570.211.01"),
    (Branch::R580, "580.159.04"),
    (Branch::R590, "590.48.01"),
    (Branch::R595, "595.45.04"),
    (Branch::R610, "610.43.02"),
];

fn builder(version: &str) -> Builder {
    Machine::builder().gpu(Profile::h200()).driver(version)
}

#[test]
fn bring_up_mapping_and_submission_work_under_every_branch() {
    for (branch, version) in VERSIONS {
        let mut bench = Bench::new(builder(version), branch);
        let mut channel = bench.ready();
        bench.assert_works(&mut channel);
        let before = bench.raw.machine.unsupported();
        assert!(before.is_empty(), "{version}: {before:?}");
        let freed = bench.raw.free(bench.raw.client, bench.raw.client);
        assert_eq!((freed, bench.raw.machine.object_count()), (Status::NV_OK, 0), "{version}");
    }
}

#[test]
fn a_frontend_struct_of_another_branch_is_einval() {
    use rm::{NVOS46_PARAMETERS as MapDma, NVOS47_PARAMETERS as UnmapDma};
    for (branch, version) in VERSIONS {
        let raw = Raw::on(builder(version), branch);
        for (nr, layout) in [
            (number::NV_ESC_RM_MAP_MEMORY_DMA, &MapDma::STRUCT),
            (number::NV_ESC_RM_UNMAP_MEMORY_DMA, &UnmapDma::STRUCT),
        ] {
            for (other, _) in VERSIONS {
                let size = layout.size(other);
                let result = raw.machine.ioctl(raw.ctl, number::request(nr, size), &mut vec![0; size]);
                let expected = if size == layout.size(branch) { Ok(()) } else { Err(Errno::EINVAL) };
                assert_eq!(result, expected, "{} of {other} under {version}", layout.name);
            }
        }
    }
}

#[test]
fn control_parameters_of_another_branch_are_invalid_argument() {
    for (branch, version) in VERSIONS {
        let raw = Raw::on(builder(version), branch);
        let device = raw.device();
        let subdevice = raw.subdevice(device);
        let group = raw.group(device);
        for (object, command) in [
            (device, c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2),
            (subdevice, c::NV2080_CTRL_CMD_GPU_GET_INFO_V2),
            (subdevice, c::NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER),
            (group, c::NVA06C_CTRL_CMD_GPFIFO_SCHEDULE),
        ] {
            let row = c::control(command).unwrap();
            for (other, _) in VERSIONS {
                let size = row.size(other).unwrap();
                let mut params = vec![0_u8; size];
                if command == c::NV2080_CTRL_CMD_GPU_GET_INFO_V2 {
                    // One element, of an index that there is.
                    (params[0], params[4]) = (1, 0x22);
                }
                let status =
                    raw.control_raw(raw.client, object, command, params.as_mut_ptr() as u64, size as u64);
                let fits = row.size(branch) == Some(size);
                let expected = if fits { Status::NV_OK } else { Status::INVALID_ARGUMENT };
                assert_eq!(status, expected, "{} of {other} under {version}", row.name);
            }
        }
    }
}

#[test]
fn uvm_copies_the_modules_own_size_whatever_the_client_was_built_for() {
    // An old client of UVM_FREE under 590: the status lands where it keeps the length, and its own status field keeps
    // what was there.
    use u::UVM_FREE_PARAMS as P;
    const BASE: u64 = 0x10_0000_0000;
    let raw = Raw::on(builder("590.48.01"), Branch::R590);
    raw.initialize_uvm();
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, PAGE), Status::NV_OK);
    let mut old = Record::zeroed(&P::STRUCT, Branch::R580);
    old.set(&P::base, BASE).unwrap();
    old.set(&P::length, PAGE).unwrap();
    old.set(&P::rmStatus, 0x55).unwrap();
    raw.machine.ioctl(raw.uvm, u::UVM_FREE, old.bytes_mut()).unwrap();
    assert_eq!(old.get(&P::rmStatus), Ok(0x55), "stale");
    assert_eq!(old.get(&P::length), Ok(0), "the low half is the status");
    // A new client under 580: the module reads and writes 24 bytes, past the 16 that it has.
    let raw = Raw::on(builder("580.159.04"), Branch::R580);
    let mut new = Record::zeroed(&P::STRUCT, Branch::R590);
    assert_eq!(raw.machine.ioctl(raw.uvm, u::UVM_FREE, new.bytes_mut()), Err(Errno::EFAULT));
}

#[test]
fn rm_alloc_reads_the_modules_own_size_whatever_the_client_was_built_for() {
    use rm::{NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as Channel, NVOS21_PARAMETERS as P};
    /// A page that nothing follows.
    const EDGE: u64 = 0x5a00_0000_0000;
    let old = Channel::STRUCT.size(Branch::R565) as u64;
    assert_eq!((old, Channel::STRUCT.size(Branch::R570)), (360, 368));
    for (branch, version) in VERSIONS {
        let raw = Raw::on(builder(version), branch);
        let device = raw.device();
        let group = raw.group(device);
        let memory = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
        let fd = raw.machine.open(Node::Ctl).unwrap();
        assert_eq!(raw.map_memory(device, memory, PAGE, fd), Status::NV_OK);
        let page = raw.machine.mmap(fd, Mapping { address: Some(EDGE), length: PAGE, offset: 0 }).unwrap();
        let fields = [
            (&P::hRoot, raw.client.into()),
            (&P::hObjectParent, group.into()),
            (&P::hClass, class::HOPPER_CHANNEL_GPFIFO_A.into()),
            (&P::pAllocParms, page + PAGE - old),
            // What the client says is not looked at.
            (&P::paramsSize, old),
        ];
        let result = raw.escape(raw.ctl, number::NV_ESC_RM_ALLOC, &P::STRUCT, &fields).map(|_| ());
        // A struct of 360 bytes at the end of the client's memory.
        let expected = if branch < Branch::R570 { Ok(()) } else { Err(Errno::EFAULT) };
        assert_eq!(result, expected, "{version}");
        raw.machine.munmap(page, PAGE).unwrap();
    }
}

#[test]
fn a_channel_of_a_client_of_595_lacks_its_userd_under_610_where_that_has_moved() {
    use rm::NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as P;
    for (branch, version, built_for) in [
        (Branch::R595, "595.45.04", Branch::R595),
        (Branch::R610, "610.43.02", Branch::R610),
        (Branch::R610, "610.43.02", Branch::R595),
        (Branch::R595, "595.45.04", Branch::R610),
    ] {
        let raw = Raw::on(builder(version), branch);
        let (device, _, uuid, space) = raw.with_space();
        assert_eq!(raw.register_space(&uuid, space), Status::NV_OK);
        let group = raw.group(device);
        let share = raw.share(group, space).unwrap();
        let memory = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 2 << 20).unwrap();
        let mut params = Record::zeroed(&P::STRUCT, built_for);
        for (field, value) in [
            (&P::gpFifoOffset, 0x10_0000_0000),
            (&P::gpFifoEntries, 0x400),
            (&P::hContextShare, share.into()),
            (&P::hUserdMemory, memory.into()),
            (&P::userdOffset, 0x2000),
        ] {
            params.set(field, value).unwrap();
        }
        // Whatever the other branch's struct has beyond it.
        let mut bytes = params.bytes().to_vec();
        bytes.resize(512, 0);
        let (status, channel) = {
            use rm::NVOS21_PARAMETERS as Call;
            let fields = [
                (&Call::hRoot, raw.client.into()),
                (&Call::hObjectParent, group.into()),
                (&Call::hClass, class::HOPPER_CHANNEL_GPFIFO_A.into()),
                (&Call::pAllocParms, bytes.as_mut_ptr().expose_provenance() as u64),
            ];
            let call = raw.escape(raw.ctl, number::NV_ESC_RM_ALLOC, &Call::STRUCT, &fields).unwrap();
            (Status(call.get(&Call::status).unwrap() as u32), call.get(&Call::hObjectNew).unwrap() as u32)
        };
        assert_eq!(status, Status::NV_OK, "{built_for} under {version}");
        // The module found no handle where it looked, and gave USERD of its own, which this client does not know of.
        assert_eq!(raw.free(raw.client, memory), Status::NV_OK);
        assert_eq!(raw.is_there(channel), branch != built_for, "{built_for} under {version}");
    }
}

#[test]
fn calls_come_and_go_with_the_branches() {
    for (branch, version) in VERSIONS {
        let raw = Raw::on(builder(version), branch);
        raw.initialize_uvm();
        let exists = |call: u32| {
            let bytes = u::call(call).unwrap().argument.unwrap().size(branch);
            raw.machine.ioctl(raw.uvm, call, &mut vec![0; bytes]) != Err(Errno::ENOSYS)
        };
        assert_eq!(exists(u::UVM_CREATE_RANGE_GROUP), branch < Branch::R610, "{version}");
        assert_eq!(exists(u::UVM_ENABLE_SYSTEM_WIDE_ATOMICS), branch < Branch::R590, "{version}");
        assert_eq!(exists(u::UVM_DISCARD), branch >= Branch::R580, "{version}");
        let size = rm::nv_ioctl_wait_open_complete_t::STRUCT.size(branch);
        let wait = raw.machine.ioctl(
            raw.gpu,
            number::request(number::NV_ESC_WAIT_OPEN_COMPLETE, size),
            &mut vec![0; size],
        );
        assert_eq!(wait.is_ok(), branch >= Branch::R550, "{version}");
    }
}

#[test]
fn the_version_that_a_machine_reports_decides_its_branch() {
    for (branch, version) in VERSIONS {
        assert_eq!(Branch::from_version(version), Some(branch));
    }
    assert!(Machine::builder().driver("470.1").build().is_err());
    assert!(Machine::builder().driver("new").build().is_err());
}
