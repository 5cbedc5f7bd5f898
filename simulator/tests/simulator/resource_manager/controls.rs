//! Controls one by one: what they answer, and what of their parameters is refused.

use nv_abi::rm::class::Privilege;

use super::{
    channel::{Bench, DATA, release as channel_release},
    *,
};
use crate::client_memory;

fn pointer(bytes: &mut [u8]) -> u64 {
    bytes.as_mut_ptr().expose_provenance() as u64
}

/// The module's numbers of the first two GPUs.
fn gpu_ids(raw: &Raw) -> [u64; 2] {
    use rm::NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS as P;
    let mut ids = raw.record(&P::STRUCT, &[]);
    assert_eq!(raw.control(raw.client, c::NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, &mut ids), Status::NV_OK);
    [0, 1].map(|i| ids.get_at(&P::gpuIds, i).unwrap())
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn tables_of_capabilities_have_exactly_their_length() {
    use rm::{
        NV0080_CTRL_DMA_GET_CAPS_PARAMS as Dma, NV0080_CTRL_FB_GET_CAPS_PARAMS as Fb,
        NV0080_CTRL_FIFO_GET_CAPS_PARAMS as Fifo, NV0080_CTRL_FIFO_GET_CAPS_V2_PARAMS as FifoV2,
        NV0080_CTRL_GR_GET_CAPS_PARAMS as Gr, NV0080_CTRL_GR_GET_CAPS_V2_PARAMS as GrV2,
    };
    let raw = Raw::new();
    let device = raw.device();
    let mut table = vec![0_u8; 23];
    for (command, layout, length, size, caps) in [
        (c::NV0080_CTRL_CMD_GR_GET_CAPS, &Gr::STRUCT, 23, &Gr::capsTblSize, &Gr::capsTbl),
        (c::NV0080_CTRL_CMD_FB_GET_CAPS, &Fb::STRUCT, 3, &Fb::capsTblSize, &Fb::capsTbl),
        (c::NV0080_CTRL_CMD_FIFO_GET_CAPS, &Fifo::STRUCT, 2, &Fifo::capsTblSize, &Fifo::capsTbl),
    ] {
        let at = pointer(&mut table);
        let call = |given: u64, at: u64| {
            raw.control(device, command, &mut raw.record(layout, &[(size, given), (caps, at)]))
        };
        assert_eq!(call(length, at), Status::NV_OK, "{}", layout.name);
        assert_eq!(call(length + 1, at), Status::INVALID_ARGUMENT, "{}", layout.name);
        assert_eq!(call(length - 1, at), Status::INVALID_ARGUMENT, "{}", layout.name);
    }
    let mut dma = raw.record(&Dma::STRUCT, &[(&Dma::capsTblSize, 8)]);
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_DMA_GET_CAPS, &mut dma), Status::NV_OK);
    // Pointers of 32 bits, sparse ranges, several address spaces (ctrl0080dma.h).
    assert_eq!(dma.get_at(&Dma::capsTbl, 0), Ok(0x01 | 0x08 | 0x10));
    let mut fifo = raw.record(&FifoV2::STRUCT, &[]);
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_FIFO_GET_CAPS_V2, &mut fifo), Status::NV_OK);
    // Pushbuffers in both memories, no pipelined page tables; several spaces in a group (ctrl0080fifo.h).
    assert_eq!(fifo.bytes(), [0x02 | 0x04 | 0x80, 0x20]);
    // What a client says is filled in already is left as it is.
    let mut gr = raw.record(&GrV2::STRUCT, &[(&GrV2::bCapsPopulated, 1)]);
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_GR_GET_CAPS_V2, &mut gr), Status::NV_OK);
    assert!(gr.bytes()[..23].iter().all(|byte| *byte == 0));
    gr.set(&GrV2::bCapsPopulated, 0).unwrap();
    assert_eq!(raw.control(device, c::NV0080_CTRL_CMD_GR_GET_CAPS_V2, &mut gr), Status::NV_OK);
    assert!(gr.bytes()[..23].iter().any(|byte| *byte != 0));
}

#[test]
fn lists_of_the_older_form_are_limited_by_the_newer_one() {
    use rm::{NV2080_CTRL_BUS_GET_INFO_PARAMS as Bus, NV2080_CTRL_FB_GET_INFO_PARAMS as Fb};
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    // Two elements of (index, value): the PCI bus, and one past the last index.
    let mut list = vec![0_u8; 4096];
    list[0] = 0x0f;
    let at = pointer(&mut list);
    let bus = |count| {
        let fields = [(&Bus::busInfoListSize, count), (&Bus::busInfoList, at)];
        raw.control(subdevice, c::NV2080_CTRL_CMD_BUS_GET_INFO, &mut raw.record(&Bus::STRUCT, &fields))
    };
    assert_eq!(bus(1), Status::NV_OK);
    assert_ne!(words(&list)[1], 0, "the number of the bus");
    assert_eq!(bus(0), Status::INVALID_ARGUMENT);
    assert_eq!(bus(53), Status::OUT_OF_RANGE, "the newer form has room for 52");
    client_memory::write(at, &0x34_u32.to_le_bytes()).unwrap();
    assert_eq!(bus(1), Status::INVALID_ARGUMENT, "an index that there is none of");
    // The size that the caller names is not looked at: 0 and a pointer would be refused else.
    let mut fb = raw.record(&Fb::STRUCT, &[(&Fb::fbInfoListSize, 1), (&Fb::fbInfoList, at)]);
    client_memory::write(at, &0x08_u32.to_le_bytes()).unwrap();
    let parameters = pointer(fb.bytes_mut());
    let status = raw.control_raw(raw.client, subdevice, c::NV2080_CTRL_CMD_FB_GET_INFO, parameters, 0);
    assert_eq!((status, words(&list)[1]), (Status::NV_OK, 24 << 20), "KiB of video memory");
}

#[test]
fn lists_are_neither_empty_nor_longer_than_their_room() {
    use rm::{NV0080_CTRL_GR_GET_INFO_PARAMS as DeviceGr, NV2080_CTRL_GPU_GET_INFO_V2_PARAMS as Gpu};
    let raw = Raw::new();
    let device = raw.device();
    let subdevice = raw.subdevice(device);
    let gpu = |count, index| {
        let fields = [(&Gpu::gpuInfoListSize, count), (&Gpu::gpuInfoList_index, index)];
        raw.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_INFO_V2, &mut raw.record(&Gpu::STRUCT, &fields))
    };
    assert_eq!(gpu(1, 0x22), Status::NV_OK);
    assert_eq!(gpu(0, 0x22), Status::INVALID_ARGUMENT);
    assert_eq!(gpu(0x1000, 0x22), Status::INVALID_ARGUMENT);
    assert_eq!(gpu(1, 0x0100_0022), Status::INVALID_ARGUMENT, "a group of indices that there is none of");
    assert_eq!(gpu(1, 0xffff), Status::INVALID_ARGUMENT);
    // Of a list of graphics information, what is past the longest is not looked at.
    let mut list = vec![0_u8; 4096];
    for element in list.as_chunks_mut::<8>().0.iter_mut().take(0x3a) {
        element[0] = 0x0c;
    }
    list[0x3a * 8] = 0xff;
    let fields = [(&DeviceGr::grInfoListSize, 0x40), (&DeviceGr::grInfoList, pointer(&mut list))];
    let status =
        raw.control(device, c::NV0080_CTRL_CMD_GR_GET_INFO, &mut raw.record(&DeviceGr::STRUCT, &fields));
    assert_eq!((status, words(&list)[0x39 * 2 + 1], words(&list)[0x3a * 2 + 1]), (Status::NV_OK, 0x809, 0));
    let none = raw.control(device, c::NV0080_CTRL_CMD_GR_GET_INFO, &mut raw.record(&DeviceGr::STRUCT, &[]));
    assert_eq!(none, Status::INVALID_ARGUMENT);
}

#[test]
fn engines_go_to_the_clients_memory_where_there_is_room() {
    use rm::NV2080_CTRL_GPU_GET_ENGINES_PARAMS as P;
    let raw = Raw::new();
    let subdevice = raw.subdevice(raw.device());
    let mut engines = raw.record(&P::STRUCT, &[]);
    assert_eq!(raw.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_ENGINES, &mut engines), Status::NV_OK);
    let count = engines.get(&P::engineCount).unwrap();
    let mut list = vec![0_u8; count as usize * 4];
    engines.set(&P::engineList, pointer(&mut list)).unwrap();
    assert_eq!(raw.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_ENGINES, &mut engines), Status::NV_OK);
    assert_eq!(words(&list)[0], 1, "graphics comes first");
    engines.set(&P::engineCount, count - 1).unwrap();
    let status = raw.control(subdevice, c::NV2080_CTRL_CMD_GPU_GET_ENGINES, &mut engines);
    assert_eq!(status, Status::BUFFER_TOO_SMALL);
}

#[test]
fn the_machine_is_as_after_boot() {
    use rm::{
        NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE_PARAMS as Confidential,
        NV0000_CTRL_GPU_QUERY_DRAIN_STATE_PARAMS as Drain,
        NV0000_CTRL_GPUACCT_GET_ACCOUNTING_STATE_PARAMS as Accounting,
        NV0000_CTRL_GSYNC_GET_ATTACHED_IDS_PARAMS as Gsync,
        NV0080_CTRL_GPU_QUERY_SW_STATE_PERSISTENCE_PARAMS as Persistence,
        NV2080_CTRL_GPU_GET_ENCODER_CAPACITY_PARAMS as Encoder,
    };
    let raw = Raw::new();
    let device = raw.device();
    let subdevice = raw.subdevice(device);
    let id = gpu_ids(&raw)[0];
    let mut drain = raw.record(&Drain::STRUCT, &[(&Drain::gpuId, id), (&Drain::drainState, 7)]);
    let query = c::NV0000_CTRL_CMD_GPU_QUERY_DRAIN_STATE;
    assert_eq!(raw.control(raw.client, query, &mut drain), Status::NV_OK);
    assert_eq!(drain.get(&Drain::drainState), Ok(0));
    drain.set(&Drain::gpuId, 0xdead).unwrap();
    assert_eq!(raw.control(raw.client, query, &mut drain), Status::OBJECT_NOT_FOUND);
    let mut accounting = raw.record(&Accounting::STRUCT, &[(&Accounting::gpuId, id)]);
    let query = c::NV0000_CTRL_CMD_GPUACCT_GET_ACCOUNTING_STATE;
    assert_eq!(raw.control(raw.client, query, &mut accounting), Status::NV_OK);
    assert_eq!(accounting.get(&Accounting::state), Ok(1), "disabled");
    accounting.set(&Accounting::gpuId, 0xdead).unwrap();
    assert_eq!(raw.control(raw.client, query, &mut accounting), Status::INVALID_ARGUMENT);
    let mut gsync = raw.record(&Gsync::STRUCT, &[]);
    assert_eq!(raw.control(raw.client, c::NV0000_CTRL_CMD_GSYNC_GET_ATTACHED_IDS, &mut gsync), Status::NV_OK);
    assert!(gsync.bytes().iter().all(|byte| *byte == 0xff));
    let mut state = raw.record(&Persistence::STRUCT, &[]);
    let query = c::NV0080_CTRL_CMD_GPU_QUERY_SW_STATE_PERSISTENCE;
    assert_eq!(raw.control(device, query, &mut state), Status::NV_OK);
    assert_eq!(state.get(&Persistence::swStatePersistence), Ok(1), "disabled");
    // Ada encodes AV1; the type after it there is none of.
    for (kind, status) in [(0, Status::NV_OK), (2, Status::NV_OK), (3, Status::INVALID_ARGUMENT)] {
        let mut encoder = raw.record(&Encoder::STRUCT, &[(&Encoder::queryType, kind)]);
        let query = c::NV2080_CTRL_CMD_GPU_GET_ENCODER_CAPACITY;
        assert_eq!(raw.control(subdevice, query, &mut encoder), status, "{kind}");
        assert_eq!(encoder.get(&Encoder::encoderCapacity), Ok(if status == Status::NV_OK { 100 } else { 0 }));
    }
    let mut params = vec![0; 8];
    let confidential =
        raw.alloc_bytes(raw.client, class::NV_CONFIDENTIAL_COMPUTE, &mut params).expect("for every client");
    let mut state = raw.record(&Confidential::STRUCT, &[(&Confidential::bAcceptClientRequest, 1)]);
    let query = c::NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE;
    assert_eq!(raw.control(confidential, query, &mut state), Status::NV_OK);
    assert_eq!(state.get(&Confidential::bAcceptClientRequest), Ok(0));
}

#[test]
fn ecc_is_on_where_the_gpu_has_it() {
    use rm::NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS as P;
    for (profile, status) in [(Profile::h200(), Status::NV_OK), (Profile::ad102(), Status::NOT_SUPPORTED)] {
        let raw = Raw::on(Machine::builder().gpu(profile), Branch::R570);
        let subdevice = raw.subdevice(raw.device());
        let mut ecc = raw.record(&P::STRUCT, &[]);
        let query = c::NV2080_CTRL_CMD_GPU_QUERY_ECC_CONFIGURATION;
        assert_eq!(raw.control(subdevice, query, &mut ecc), status);
        let on = u64::from(status == Status::NV_OK);
        assert_eq!((ecc.get(&P::currentConfiguration), ecc.get(&P::defaultConfiguration)), (Ok(on), Ok(on)));
        let query = c::NV2080_CTRL_CMD_GPU_QUERY_INFOROM_ECC_SUPPORT;
        assert_eq!(raw.control_raw(raw.client, subdevice, query, 0, 0), status);
    }
}

#[test]
fn surfaces_tell_their_size_attributes_and_place() {
    use rm::NV0041_CTRL_GET_SURFACE_INFO_PARAMS as P;
    let raw = Raw::new();
    let device = raw.device();
    let video = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 3 << 20).unwrap();
    let system = raw.memory(device, class::NV01_MEMORY_SYSTEM, 3 * PAGE).unwrap();
    let ask = |memory, indices: &[u32]| {
        let mut list: Vec<u8> =
            indices.iter().flat_map(|i| [*i, 0x5a5a]).flat_map(u32::to_le_bytes).collect();
        let fields =
            [(&P::surfaceInfoListSize, indices.len() as u64), (&P::surfaceInfoList, pointer(&mut list))];
        let status =
            raw.control(memory, c::NV0041_CTRL_CMD_GET_SURFACE_INFO, &mut raw.record(&P::STRUCT, &fields));
        (status, words(&list).as_chunks::<2>().0.iter().map(|pair| pair[1]).collect::<Vec<_>>())
    };
    // Attributes, size low and high, size in pages of 4 KiB, page size, place.
    let all = [1, 2, 3, 7, 8, 9];
    assert_eq!(ask(video, &all), (Status::NV_OK, vec![0, 4 << 20, 0, 1024, 3 << 23, 2]), "2 MiB pages");
    assert_eq!(ask(system, &all), (Status::NV_OK, vec![0, 3 * 4096, 0, 3, 0, 1]));
    assert_eq!(ask(video, &[4]).0, Status::INVALID_ARGUMENT);
    assert_eq!(ask(video, &[]).0, Status::NV_OK);
}

#[test]
fn gpus_reach_each_other_over_nvlink_or_pci_and_have_numbers_while_connected() {
    use rm::{
        NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS as V1, NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS as V2,
        NV503B_ALLOC_PARAMETERS as Peers,
    };
    // Writes, reads, the module's way, PCI; or writes, reads, NVLink, atomics.
    for (profile, pair, statuses) in [
        (Profile::ad102(), 0x47, [0, 0, 5, 5, 0, 5, 0, 5, 5]),
        (Profile::h200(), 0x1b, [0, 0, 0, 0, 5, 5, 5, 5, 5]),
    ] {
        let raw = Raw::on(Machine::builder().gpu(profile.clone()).gpu(profile), Branch::R570);
        let second = raw.machine.open(Node::Gpu(1)).unwrap();
        let ids = gpu_ids(&raw);
        let ask = |ids: &[u64]| {
            let mut caps = raw.record(&V2::STRUCT, &[(&V2::gpuCount, ids.len() as u64)]);
            for (i, id) in (0..).zip(ids.iter().take(32)) {
                caps.set_at(&V2::gpuIds, i, *id).unwrap();
            }
            let status = raw.control(raw.client, c::NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2, &mut caps);
            let told: Vec<u64> = (0..9).map(|i| caps.get_at(&V2::p2pCapsStatus, i).unwrap()).collect();
            (status, caps.get(&V2::p2pCaps).unwrap(), told, caps.get_at(&V2::busPeerIds, 1).unwrap())
        };
        assert_eq!(ask(&ids), (Status::NV_OK, pair, statuses.to_vec(), 0xffff_ffff));
        assert_eq!(ask(&[ids[0], ids[0]]).1, 0, "itself");
        assert_eq!(ask(&[ids[0], 0xdead]).0, Status::INVALID_ARGUMENT);
        assert_eq!(ask(&[]).0, Status::INVALID_ARGUMENT);
        assert_eq!(ask(&[ids[0]; 33]).0, Status::INVALID_ARGUMENT);
        // An object that connects them gives them numbers.
        let subdevices = [0, 1].map(|i| {
            let params = raw.device_params(i);
            let device = raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, params).unwrap();
            raw.subdevice(device)
        });
        let params = raw.record(
            &Peers::STRUCT,
            &[(&Peers::hSubDevice, subdevices[0].into()), (&Peers::hPeerSubDevice, subdevices[1].into())],
        );
        let peers = raw.alloc(raw.client, raw.client, 0, class::NV50_P2P, Some(params)).unwrap();
        assert_eq!(ask(&ids).3, 0);
        let mut table = vec![0xee_u8; 16];
        let mut caps = raw.record(&V1::STRUCT, &[(&V1::gpuCount, 2), (&V1::busPeerIds, pointer(&mut table))]);
        for (i, id) in (0..).zip(&ids) {
            caps.set_at(&V1::gpuIds, i, *id).unwrap();
        }
        let status = raw.control(raw.client, c::NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS, &mut caps);
        assert_eq!((status, caps.get(&V1::p2pCaps)), (Status::NV_OK, Ok(pair)));
        assert_eq!(words(&table), [0xffff_ffff, 0, 0, 0xffff_ffff]);
        assert_eq!(raw.free(raw.client, peers), Status::NV_OK);
        assert_eq!(ask(&ids).3, 0xffff_ffff);
        raw.machine.close(second).unwrap();
    }
}

#[test]
fn processes_are_told_by_what_they_have_on_the_gpu() {
    use rm::{NV2080_CTRL_GPU_GET_PID_INFO_PARAMS as Info, NV2080_CTRL_GPU_GET_PIDS_PARAMS as Pids};
    let mut bench = Bench::hopper();
    let own = u64::from(std::process::id());
    let pids = |bench: &Bench, kind, id: u32| {
        let fields = [(&Pids::idType, kind), (&Pids::id, id.into())];
        let mut pids = bench.raw.record(&Pids::STRUCT, &fields);
        let status = bench.raw.control(bench.subdevice, c::NV2080_CTRL_CMD_GPU_GET_PIDS, &mut pids);
        (status, pids.get(&Pids::pidTblCount).unwrap(), pids.get(&Pids::pidTbl).unwrap())
    };
    let compute = bench.raw.engine_classes().1;
    assert_eq!(pids(&bench, 0, class::NV20_SUBDEVICE_0), (Status::NV_OK, 1, own));
    assert_eq!(pids(&bench, 0, compute), (Status::NV_OK, 0, 0), "no channel has the class yet");
    bench.ready();
    assert_eq!(pids(&bench, 0, compute), (Status::NV_OK, 1, own));
    assert_eq!(pids(&bench, 0, class::MPS_COMPUTE).1, 0);
    assert_eq!(pids(&bench, 1, 0).1, 0, "no guest");
    assert_eq!(pids(&bench, 2, 0).0, Status::INVALID_ARGUMENT);

    let info = |count, pid, index| {
        let fields = [
            (&Info::pidInfoListCount, count),
            (&Info::pidInfoList_pid, pid),
            (&Info::pidInfoList_index, index),
        ];
        let mut info = bench.raw.record(&Info::STRUCT, &fields);
        let status = bench.raw.control(bench.subdevice, c::NV2080_CTRL_CMD_GPU_GET_PID_INFO, &mut info);
        let told =
            [&Info::pidInfoList_result, &Info::pidInfoList_memPrivate, &Info::pidInfoList_memSharedOwned];
        (status, told.map(|field| info.get(field).unwrap()))
    };
    // The rings are mapped by UVM as well, which makes their memory shared.
    assert_eq!(info(1, own, 0), (Status::NV_OK, [0, 0, 2 << 20]));
    bench.raw.memory(bench.device, class::NV01_MEMORY_LOCAL_USER, 4 << 20).unwrap();
    assert_eq!(info(1, own, 0), (Status::NV_OK, [0, 4 << 20, 2 << 20]));
    assert_eq!(info(1, 1, 0), (Status::NV_OK, [0, 0, 0]), "another process");
    let invalid = u64::from(Status::INVALID_ARGUMENT.0);
    assert_eq!(info(1, own, 1).1[0], invalid, "an index that there is none of");
    assert_eq!(info(0, own, 0).0, Status::INVALID_ARGUMENT);
    assert_eq!(info(201, own, 0).0, Status::INVALID_ARGUMENT);
}

#[test]
fn channels_are_taken_off_their_runlist_and_put_back() {
    use rm::NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS as P;
    let mut bench = Bench::hopper();
    let mut channel = bench.ready();
    let call = |bench: &Bench, fields: Fields<'_>| {
        let mut params = bench.raw.record(&P::STRUCT, fields);
        bench.raw.control(bench.subdevice, c::NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &mut params)
    };
    let one = |client: u32, disable| {
        [
            (&P::bDisable, disable),
            (&P::numChannels, 1),
            (&P::hClientList, client.into()),
            (&P::hChannelList, channel.handle.into()),
        ]
    };
    let client = bench.raw.client;
    let (off, on, other) = (one(client, 1), one(client, 0), one(0xc1d0_0fff, 1));
    assert_eq!(call(&bench, &off), Status::NV_OK);
    bench.submit(&mut channel, &channel_release(DATA, 7));
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(bench.data_word(0), 0, "off the runlist nothing runs");
    assert_eq!(call(&bench, &on), Status::NV_OK);
    bench.wait("release", || bench.data_word(0) == 7);
    assert_eq!(call(&bench, &other), Status::INVALID_CLIENT);
    assert_eq!(call(&bench, &[(&P::numChannels, 65)]), Status::INVALID_ARGUMENT);
    let event = call(&bench, &[(&P::pRunlistPreemptEvent, 1)]);
    assert_eq!(event, Status::INSUFFICIENT_PERMISSIONS, "the kernel's own");
    let unknown = [(&P::numChannels, 1), (&P::hClientList, client.into()), (&P::hChannelList, 0x77)];
    assert_eq!(call(&bench, &unknown), Status::INVALID_CHANNEL);
}

#[test]
fn a_client_may_have_its_notifiers_written() {
    use rm::NVA06F_CTRL_SET_ERROR_NOTIFIER_PARAMS as P;
    let mut bench = Bench::hopper();
    let (group, share) = bench.group();
    let mut one = bench.channel(group, share);
    let two = bench.channel(group, share);
    bench.schedule(group);
    let tell = |bench: &Bench, whole| {
        let mut params = bench.raw.record(&P::STRUCT, &[(&P::bNotifyEachChannelInTSG, whole)]);
        bench.raw.control(one.handle, c::NVA06F_CTRL_CMD_SET_ERROR_NOTIFIER, &mut params)
    };
    assert_eq!(tell(&bench, 0), Status::NV_OK);
    assert_eq!(bench.notifier(&one), (13, 1, 0xffff, true));
    assert_eq!(bench.notifier(&two).2, 0);
    assert_eq!(tell(&bench, 1), Status::NV_OK);
    assert_eq!(bench.notifier(&two), (13, 1, 0xffff, true));
    // Nothing has ended.
    bench.assert_works(&mut one);
}

#[test]
fn a_debugger_reads_the_clients_memory() {
    use rm::{NV83DE_ALLOC_PARAMETERS as Session, NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS as P};
    let mut bench = Bench::hopper();
    let channel = bench.ready();
    let raw = &bench.raw;
    // The bench's compute object hangs under the channel; one more is as good.
    let compute = raw.alloc(raw.client, channel.handle, 0, raw.engine_classes().1, None).unwrap();
    let params = raw.record(&Session::STRUCT, &[(&Session::hClass3dObject, compute.into())]);
    let session = raw.alloc(raw.client, bench.device, 0, class::GT200_DEBUGGER, Some(params)).unwrap();
    client_memory::write(bench.data + 0x10_0000, b"what lies there").unwrap();
    let mut found = [0_u8; 15];
    let to = pointer(&mut found);
    let read = |memory: u32, offset, length| {
        let fields =
            [(&P::hMemory, memory.into()), (&P::offset, offset), (&P::length, length), (&P::buffer, to)];
        raw.control(session, c::NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, &mut raw.record(&P::STRUCT, &fields))
    };
    let data = bench.data_memory;
    assert_eq!(read(data, 0x10_0000, 15), Status::NV_OK);
    assert_eq!(&found, b"what lies there");
    assert_eq!(read(data, 0, 0), Status::INVALID_ARGUMENT);
    assert_eq!(read(data, 2 << 20, 1), Status::INVALID_ARGUMENT, "past its end");
    assert_eq!(read(data, u64::MAX, 2), Status::INVALID_ARGUMENT);
    assert_eq!(read(session, 0, 4), Status::INVALID_ARGUMENT, "no memory");
    assert_eq!(read(0x77, 0, 4), Status::INSUFFICIENT_PERMISSIONS, "nothing");
}

#[test]
fn descriptors_carry_many_objects_in_places() {
    use rm::{
        NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS as Export,
        NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS as Info,
        NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS as Import,
    };
    let raw = Raw::new();
    let device = raw.device();
    let video = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, 4 << 20).unwrap();
    let system = raw.memory(device, class::NV01_MEMORY_SYSTEM, PAGE).unwrap();
    let carrier = raw.machine.open(Node::Ctl).unwrap();
    let export = |fd: Fd, most, index, objects: &[u32], count| {
        let mut params = raw.record(
            &Export::STRUCT,
            &[
                (&Export::fd, fd.0 as u64),
                (&Export::hDevice, device.into()),
                (&Export::maxObjects, most),
                (&Export::index, index),
                (&Export::numObjects, count),
                (&Export::metadata, 0x5a),
            ],
        );
        for (i, object) in (0..).zip(objects) {
            params.set_at(&Export::objects, i, (*object).into()).unwrap();
        }
        raw.control(raw.client, c::NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECTS_TO_FD, &mut params)
    };
    let info = |fd: Fd| {
        let mut info = raw.record(&Info::STRUCT, &[(&Info::fd, fd.0 as u64)]);
        let status = raw.control(raw.client, c::NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO, &mut info);
        let told = [&Info::maxObjects, &Info::deviceInstance, &Info::gpuInstanceId, &Info::metadata];
        (status, told.map(|field| info.get(field).unwrap()))
    };
    assert_eq!(info(carrier).0, Status::INVALID_PARAMETER, "it carries nothing");
    assert_eq!(export(raw.gpu, 4, 0, &[video], 1), Status::INVALID_PARAMETER, "not a control file");
    assert_eq!(export(carrier, 0, 0, &[video], 1), Status::INVALID_PARAMETER, "no place");
    assert_eq!(export(carrier, 4, 0, &[0x77], 1), Status::OBJECT_NOT_FOUND);
    assert_eq!(info(carrier).0, Status::INVALID_PARAMETER, "what failed left nothing");
    assert_eq!(export(carrier, 4, 0, &[video], 1), Status::NV_OK);
    assert_eq!(export(carrier, 0, 2, &[system], 1), Status::NV_OK, "the places are there already");
    assert_eq!(export(carrier, 0, 4, &[system], 1), Status::OUT_OF_RANGE);
    assert_eq!(export(carrier, 0, 0, &[], 513), Status::INVALID_PARAMETER);
    assert_eq!(info(carrier), (Status::NV_OK, [4, 0, 0xffff_ffff, 0x5a]));

    let other = raw.alloc(0, 0, 0, class::NV01_ROOT_CLIENT, None).unwrap();
    let parent = raw.alloc(other, other, 0, class::NV01_DEVICE_0, raw.device_params(0)).unwrap();
    let import = |parent: u32, index, count| {
        let fields = [
            (&Import::fd, carrier.0 as u64),
            (&Import::hParent, parent.into()),
            (&Import::index, index),
            (&Import::numObjects, count),
        ];
        let mut params = raw.record(&Import::STRUCT, &fields);
        let size = params.bytes().len() as u64;
        let at = pointer(params.bytes_mut());
        let command = c::NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECTS_FROM_FD;
        let status = raw.control_raw(other, other, command, at, size);
        let made: Vec<(u32, u64)> = (0..4)
            .map(|i| {
                let handle = params.get_at(&Import::objects, i).unwrap() as u32;
                (handle, params.get_at(&Import::objectTypes, i).unwrap())
            })
            .collect();
        (status, made)
    };
    let (status, made) = import(parent, 0, 4);
    assert_eq!(status, Status::NV_OK);
    // Video memory, nothing, system memory, nothing.
    assert_eq!(made.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), [1, 0, 2, 0]);
    assert!(made[0].0 != 0 && made[1].0 == 0 && made[2].0 != 0);
    assert_eq!(import(parent, 1, 4).0, Status::OUT_OF_RANGE);
    assert_eq!(import(parent, 0, 129).0, Status::INVALID_PARAMETER);
    let before = raw.machine.object_count();
    assert_eq!(import(0x77, 0, 4).0, Status::INVALID_OBJECT_PARENT);
    assert_eq!(raw.machine.object_count(), before, "all or none");
}

#[test]
fn profiling_is_for_root() {
    for (user, status) in
        [(Privilege::User, Err(Status::INSUFFICIENT_PERMISSIONS)), (Privilege::Root, Ok(()))]
    {
        let raw = Raw::on(Machine::builder().gpu(Profile::h200()).user(user), Branch::R570);
        let subdevice = raw.subdevice(raw.device());
        let made = raw.alloc(raw.client, subdevice, 0, class::GF100_PROFILER, None);
        assert_eq!(made.map(|_| ()), status);
    }
}

#[test]
fn a_whole_gpu_without_a_fabric_has_no_parts_and_no_fabric_memory() {
    let raw = Raw::on(Machine::builder().gpu(Profile::h200()), Branch::R570);
    let subdevice = raw.subdevice(raw.device());
    for number in [class::AMPERE_SMC_PARTITION_REF, class::NV_MEMORY_FABRIC] {
        let made = raw.alloc_bytes(subdevice, number, &mut [0; 256]);
        assert_eq!(made, Err(Status::NOT_SUPPORTED));
    }
    // The card would say the same: nothing is missing.
    assert_eq!(raw.machine.unsupported(), []);
}

#[test]
fn a_version_that_does_not_fit_says_how_long_it_is() {
    use rm::NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS as P;
    let raw = Raw::new();
    let mut texts = vec![[0_u8; 256]; 3];
    let at: Vec<u64> = texts.iter_mut().map(|text| pointer(text)).collect();
    let ask = |size, title| {
        let fields = [
            (&P::sizeOfStrings, size),
            (&P::pDriverVersionBuffer, at[0]),
            (&P::pVersionBuffer, at[1]),
            (&P::pTitleBuffer, title),
        ];
        let mut params = raw.record(&P::STRUCT, &fields);
        let status = raw.control(raw.client, c::NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION, &mut params);
        (status, params.get(&P::sizeOfStrings).unwrap())
    };
    let (status, need) = ask(0, 0);
    assert_eq!(status, Status::NV_OK);
    assert!(need > 10);
    assert_eq!(ask(need - 1, at[2]).0, Status::INVALID_PARAM_STRUCT);
    assert_eq!(ask(need, at[2]).0, Status::NV_OK);
    assert_eq!(&texts[0][..11], b"570.124.06\0");
}
