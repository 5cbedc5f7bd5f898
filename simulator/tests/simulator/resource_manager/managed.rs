//! Managed memory, semaphore pools, range groups, peers.

use std::{fs::File, os::unix::fs::FileExt};

use super::{
    channel::{Bench, DATA, header, release},
    *,
};
use crate::client_memory;

/// Addresses that nothing else in the process uses; each test has its own.
const PLACES: u64 = 0x6200_0000_0000;
/// An address that no test maps: for what is looked at in the simulator only.
const MANAGED: u64 = 0x6300_0000_0000;
/// The UUID that stands for the CPU.
const CPU: [u8; 16] =
    [0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2, 0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73];

impl Bench {
    fn managed(&self, base: u64, bytes: u64) -> Result<u64, Errno> {
        let mapping = Mapping { address: Some(base), length: bytes, offset: base };
        self.raw.machine.mmap(self.raw.uvm, mapping)
    }

    fn group_call(&self, call: u32, id: u64) -> Status {
        let layout = u::call(call).unwrap().argument.unwrap();
        self.raw.uvm(call, &[(layout.field("rangeGroupId").unwrap(), id)])
    }

    fn migration(&self, call: u32, ids: &[u64]) -> Status {
        use u::UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS as P;
        let mut record = self.raw.record(&P::STRUCT, &[(&P::numGroupIds, ids.len() as u64)]);
        for (i, id) in (0..).zip(ids) {
            record.set_at(&P::rangeGroupIds, i, *id).unwrap();
        }
        self.raw.machine.ioctl(self.raw.uvm, call, record.bytes_mut()).unwrap();
        Status(record.get(&P::rmStatus).unwrap() as u32)
    }

    fn policy(&self, call: u32, uuid_field: &str, uuid: &[u8; 16], base: u64, bytes: u64) -> Status {
        let layout = u::call(call).unwrap().argument.unwrap();
        let fields =
            [(layout.field("requestedBase").unwrap(), base), (layout.field("length").unwrap(), bytes)];
        self.raw.uvm_gpu(call, uuid_field, uuid, &fields)
    }
}

#[test]
fn managed_memory_is_one_for_cpu_and_gpu() {
    const BASE: u64 = PLACES;
    let mut bench = Bench::hopper();
    let mapping = Mapping { address: Some(BASE), length: PAGE, offset: BASE + PAGE };
    assert_eq!(bench.raw.machine.mmap(bench.raw.uvm, mapping), Err(Errno::EINVAL), "offset is not address");
    let fresh = bench.raw.machine.open(Node::Uvm).unwrap();
    let mapping = Mapping { address: Some(BASE), length: PAGE, offset: BASE };
    assert_eq!(bench.raw.machine.mmap(fresh, mapping), Err(Errno::EBADFD));
    assert_eq!(bench.managed(BASE, 4 * PAGE), Ok(BASE));
    assert_eq!(bench.managed(BASE, 4 * PAGE), Err(Errno(98)), "EADDRINUSE");
    assert_eq!(bench.raw.range(u::UVM_VALIDATE_VA_RANGE, BASE, 4 * PAGE), Status::NV_OK);
    assert_eq!(bench.raw.range(u::UVM_FREE, BASE, 4 * PAGE), Status::INVALID_ADDRESS, "munmap frees it");
    assert_eq!(bench.raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, PAGE), Status::UVM_ADDRESS_IN_USE);
    let mut channel = bench.ready();
    bench.submit(&mut channel, &release(BASE + PAGE, 0x1234));
    let mut word = [0; 4];
    bench.wait("the CPU sees the store", || {
        client_memory::read(BASE + PAGE, &mut word).unwrap();
        u32::from_le_bytes(word) == 0x1234
    });
    bench.raw.machine.munmap(BASE, 4 * PAGE).unwrap();
    assert_eq!(bench.raw.range(u::UVM_VALIDATE_VA_RANGE, BASE, 4 * PAGE), Status::INVALID_ADDRESS);
    bench.submit(&mut channel, &release(BASE + PAGE, 1));
    bench.wait("the GPU has it no more", || bench.notifier(&channel).0 == 31);
}

#[test]
fn managed_memory_made_before_a_gpu_came_is_mapped_for_it() {
    const BASE: u64 = PLACES + (1 << 30);
    let bench = Bench::hopper();
    assert_eq!(bench.managed(BASE, PAGE), Ok(BASE));
    let unregister = |call, field| bench.raw.uvm_gpu(call, field, &bench.uuid, &[]);
    assert_eq!(unregister(u::UVM_UNREGISTER_GPU_VASPACE, "gpuUuid_uuid"), Status::NV_OK);
    assert_eq!(unregister(u::UVM_UNREGISTER_GPU_VASPACE, "gpuUuid_uuid"), Status::INVALID_DEVICE);
    assert_eq!(bench.raw.register_space(&bench.uuid, bench.space), Status::NV_OK);
    let mut bench = bench;
    let mut channel = bench.ready();
    // The ring's mapping went with the address space: it comes back by mapping again.
    bench.map_work();
    bench.submit(&mut channel, &release(BASE, 7));
    let mut word = [0; 4];
    bench.wait("the store", || {
        client_memory::read(BASE, &mut word).unwrap();
        word[0] == 7
    });
    bench.raw.machine.munmap(BASE, PAGE).unwrap();
}

#[test]
fn policies_need_managed_memory_without_gaps() {
    const BASE: u64 = PLACES + (2 << 30);
    let bench = Bench::hopper();
    bench.managed(BASE, 8 * PAGE).unwrap();
    let prefer = |uuid: &[u8; 16], base, bytes| {
        bench.policy(u::UVM_SET_PREFERRED_LOCATION, "preferredLocation_uuid", uuid, base, bytes)
    };
    assert_eq!(prefer(&CPU, BASE + 1, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(prefer(&CPU, BASE, 9 * PAGE), Status::INVALID_ADDRESS, "a gap");
    assert_eq!(prefer(&[3; 16], BASE, PAGE), Status::INVALID_DEVICE);
    assert_eq!(prefer(&bench.uuid, BASE, 2 * PAGE), Status::NV_OK);
    // The range was cut at the policy's end.
    assert_eq!(bench.raw.range(u::UVM_VALIDATE_VA_RANGE, BASE, 2 * PAGE), Status::NV_OK);
    assert_eq!(bench.raw.range(u::UVM_VALIDATE_VA_RANGE, BASE, 8 * PAGE), Status::INVALID_ADDRESS);
    assert_eq!(prefer(&CPU, BASE, 8 * PAGE), Status::NV_OK, "across the cut");
    let accessed =
        |uuid: &[u8; 16]| bench.policy(u::UVM_SET_ACCESSED_BY, "accessedByUuid_uuid", uuid, BASE, PAGE);
    assert_eq!(accessed(&bench.uuid), Status::NV_OK);
    assert_eq!(accessed(&[3; 16]), Status::INVALID_DEVICE);
    for call in
        [u::UVM_ENABLE_READ_DUPLICATION, u::UVM_DISABLE_READ_DUPLICATION, u::UVM_UNSET_PREFERRED_LOCATION]
    {
        let layout = u::call(call).unwrap().argument.unwrap();
        let fields = |bytes| {
            [(layout.field("requestedBase").unwrap(), BASE), (layout.field("length").unwrap(), bytes)]
        };
        assert_eq!(bench.raw.uvm(call, &fields(PAGE)), Status::NV_OK);
        assert_eq!(bench.raw.uvm(call, &fields(9 * PAGE)), Status::INVALID_ADDRESS);
    }
    bench.raw.machine.munmap(BASE, 8 * PAGE).unwrap();
}

#[test]
fn migration_moves_no_byte_and_releases_its_semaphore() {
    use u::UVM_MIGRATE_PARAMS as P;
    const BASE: u64 = PLACES + (3 << 30);
    const POOL: u64 = PLACES + (3 << 30) + 0x1000_0000;
    let bench = Bench::hopper();
    bench.managed(BASE, 2 * PAGE).unwrap();
    client_memory::write(BASE, b"kept").unwrap();
    let migrate = |uuid: &[u8; 16], fields: Fields<'_>| {
        bench.raw.uvm_gpu(u::UVM_MIGRATE, "destinationUuid_uuid", uuid, fields)
    };
    let range = [(&P::base, BASE), (&P::length, 2 * PAGE)];
    assert_eq!(migrate(&bench.uuid, &range), Status::NV_OK);
    assert_eq!(migrate(&CPU, &range), Status::NV_OK);
    assert_eq!(migrate(&[3; 16], &range), Status::INVALID_DEVICE);
    assert_eq!(migrate(&CPU, &[(&P::base, BASE), (&P::length, 3 * PAGE)]), Status::INVALID_ADDRESS);
    assert_eq!(migrate(&CPU, &[range[0], range[1], (&P::flags, 8)]), Status::INVALID_ARGUMENT);
    let semaphore = [range[0], range[1], (&P::semaphoreAddress, POOL + 16), (&P::semaphorePayload, 5)];
    assert_eq!(migrate(&CPU, &semaphore), Status::INVALID_ARGUMENT, "not when it is synchronous");
    let asynchronous = [semaphore[0], semaphore[1], semaphore[2], semaphore[3], (&P::flags, 1)];
    assert_eq!(migrate(&CPU, &asynchronous), Status::INVALID_ADDRESS, "no pool there");
    assert_eq!(bench.raw.range(u::UVM_ALLOC_SEMAPHORE_POOL, POOL, PAGE), Status::NV_OK);
    assert_eq!(bench.managed(POOL, PAGE), Ok(POOL), "mmap shows the pool");
    assert_eq!(migrate(&CPU, &asynchronous), Status::NV_OK);
    let (mut kept, mut word) = ([0; 4], [0; 4]);
    client_memory::read(BASE, &mut kept).unwrap();
    client_memory::read(POOL + 16, &mut word).unwrap();
    assert_eq!((&kept, u32::from_le_bytes(word)), (b"kept", 5));
    for (base, bytes) in [(BASE, 2 * PAGE), (POOL, PAGE)] {
        bench.raw.machine.munmap(base, bytes).unwrap();
    }
    assert_eq!(bench.raw.range(u::UVM_VALIDATE_VA_RANGE, POOL, PAGE), Status::NV_OK, "the pool stays");
    assert_eq!(bench.raw.range(u::UVM_FREE, POOL, PAGE), Status::NV_OK);
}

#[test]
fn every_gpu_reaches_a_semaphore_pool() {
    const POOL: u64 = PLACES + (4 << 30);
    let mut bench = Bench::hopper();
    assert_eq!(bench.raw.range(u::UVM_ALLOC_SEMAPHORE_POOL, POOL + 1, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(bench.raw.range(u::UVM_ALLOC_SEMAPHORE_POOL, DATA, PAGE), Status::UVM_ADDRESS_IN_USE);
    use u::UVM_ALLOC_SEMAPHORE_POOL_PARAMS as P;
    let fields = [(&P::base, POOL), (&P::length, PAGE), (&P::gpuAttributesCount, 257)];
    assert_eq!(bench.raw.uvm(u::UVM_ALLOC_SEMAPHORE_POOL, &fields), Status::INVALID_ARGUMENT);
    let fields = [(&P::base, POOL), (&P::length, PAGE), (&P::gpuAttributesCount, 1)];
    assert_eq!(bench.raw.uvm(u::UVM_ALLOC_SEMAPHORE_POOL, &fields), Status::INVALID_DEVICE, "GPU 0…0");
    assert_eq!(bench.raw.range(u::UVM_ALLOC_SEMAPHORE_POOL, POOL, PAGE), Status::NV_OK);
    let mut channel = bench.ready();
    bench.submit(&mut channel, &release(POOL, 9));
    bench.managed(POOL, PAGE).unwrap();
    let mut word = [0; 4];
    bench.wait("the release", || {
        client_memory::read(POOL, &mut word).unwrap();
        word[0] == 9
    });
    bench.raw.machine.munmap(POOL, PAGE).unwrap();
}

#[test]
fn range_groups_are_counted_up_and_forbid_migration_only_to_memory_with_a_home() {
    use u::{UVM_CREATE_RANGE_GROUP_PARAMS as Create, UVM_SET_RANGE_GROUP_PARAMS as Set};
    const BASE: u64 = PLACES + (5 << 30);
    let bench = Bench::hopper();
    let create = || {
        let mut record = bench.raw.record(&Create::STRUCT, &[]);
        bench.raw.machine.ioctl(bench.raw.uvm, u::UVM_CREATE_RANGE_GROUP, record.bytes_mut()).unwrap();
        record.get(&Create::rangeGroupId).unwrap()
    };
    assert_eq!((create(), create()), (1, 2), "as the card numbered them");
    assert_eq!(bench.group_call(u::UVM_DESTROY_RANGE_GROUP, 2), Status::NV_OK);
    assert_eq!(bench.group_call(u::UVM_DESTROY_RANGE_GROUP, 2), Status::OBJECT_NOT_FOUND);
    bench.managed(BASE, PAGE).unwrap();
    let set = |id, base| {
        let fields = [(&Set::rangeGroupId, id), (&Set::requestedBase, base), (&Set::length, PAGE)];
        bench.raw.uvm(u::UVM_SET_RANGE_GROUP, &fields)
    };
    assert_eq!(set(2, BASE), Status::OBJECT_NOT_FOUND);
    assert_eq!(set(1, BASE + PAGE), Status::INVALID_ADDRESS);
    assert_eq!(set(1, BASE), Status::NV_OK);
    assert_eq!(bench.migration(u::UVM_PREVENT_MIGRATION_RANGE_GROUPS, &[]), Status::INVALID_ARGUMENT);
    assert_eq!(bench.migration(u::UVM_PREVENT_MIGRATION_RANGE_GROUPS, &[1, 2]), Status::OBJECT_NOT_FOUND);
    assert_eq!(bench.migration(u::UVM_PREVENT_MIGRATION_RANGE_GROUPS, &[1]), Status::NV_OK);
    assert_eq!(set(1, BASE), Status::INVALID_ADDRESS, "it has no preferred location");
    assert_eq!(bench.migration(u::UVM_ALLOW_MIGRATION_RANGE_GROUPS, &[1]), Status::NV_OK);
    assert_eq!(set(1, BASE), Status::NV_OK);
    bench.raw.machine.munmap(BASE, PAGE).unwrap();
}

#[test]
fn a_sked_window_covers_one_page_of_the_mmu() {
    use u::UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS as P;
    const BASE: u64 = PLACES + (6 << 30);
    let bench = Bench::hopper();
    let map = |uuid: &[u8; 16], base, length| {
        let fields = [(&P::base, base), (&P::length, length)];
        bench.raw.uvm_gpu(u::UVM_MAP_DYNAMIC_PARALLELISM_REGION, "gpuUuid_uuid", uuid, &fields)
    };
    assert_eq!(map(&[3; 16], BASE, PAGE), Status::INVALID_DEVICE);
    assert_eq!(map(&bench.uuid, BASE, 2 * PAGE), Status::INVALID_ADDRESS, "no page size");
    assert_eq!(map(&bench.uuid, 1 << 57, PAGE), Status::OUT_OF_RANGE);
    assert_eq!(map(&bench.uuid, BASE, PAGE), Status::NV_OK);
    assert_eq!(map(&bench.uuid, BASE, PAGE), Status::UVM_ADDRESS_IN_USE);
    assert_eq!(bench.raw.range(u::UVM_FREE, BASE, PAGE), Status::NV_OK);
}

fn peer_call(raw: &Raw, call: u32, a: [u8; 16], b: [u8; 16]) -> Status {
    use u::UVM_ENABLE_PEER_ACCESS_PARAMS as P;
    let mut record = raw.record(&P::STRUCT, &[]);
    for i in 0..16 {
        record.set_at(&P::gpuUuidA_uuid, i, a[i as usize].into()).unwrap();
        record.set_at(&P::gpuUuidB_uuid, i, b[i as usize].into()).unwrap();
    }
    raw.machine.ioctl(raw.uvm, call, record.bytes_mut()).unwrap();
    Status(record.get(&P::rmStatus).unwrap() as u32)
}

/// Measured on two H200: enabling is 0x26, and mappings of the other's memory work.
#[test]
fn gpus_behind_nvlink_are_peers_from_the_start() {
    let two = Machine::builder().gpu(Profile::h200()).gpu(Profile::h200());
    let bench = Bench::new(two, Branch::R580);
    let (raw, uuid) = (&bench.raw, bench.uuid);
    let mut other = uuid;
    other[15] = 1;
    let node = raw.machine.open(Node::Gpu(1)).unwrap();
    let far_device =
        raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, raw.device_params(1)).unwrap();
    let far = raw.memory(far_device, class::NV01_MEMORY_LOCAL_USER, PAGE).unwrap();
    const BASE: u64 = 0x30_0000_0000;
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, PAGE), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, far, BASE, PAGE, 0), Status::INVALID_DEVICE, "not registered");
    assert_eq!(raw.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", &other, &[]), Status::NV_OK);
    assert_eq!(peer_call(raw, u::UVM_ENABLE_PEER_ACCESS, other, uuid), Status::INVALID_DEVICE);
    assert_eq!(raw.map_external(&uuid, far, BASE, PAGE, 0), Status::NV_OK);
    assert_eq!(peer_call(raw, u::UVM_DISABLE_PEER_ACCESS, other, uuid), Status::INVALID_DEVICE);
    raw.machine.close(node).unwrap();
}

#[test]
fn peers_memory_goes_when_peer_access_ends() {
    let two = Machine::builder().gpu(Profile::ad102()).gpu(Profile::ad102());
    let mut bench = Bench::new(two, Branch::R570);
    let mut channel = bench.ready();
    let (raw, device, uuid) = (&bench.raw, bench.device, bench.uuid);
    let mut other = uuid;
    other[15] = 1;
    let node = raw.machine.open(Node::Gpu(1)).unwrap();
    assert_eq!(raw.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", &other, &[]), Status::NV_OK);
    let far_device =
        raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, raw.device_params(1)).unwrap();
    let far = raw.memory(far_device, class::NV01_MEMORY_LOCAL_USER, PAGE).unwrap();
    let near = raw.memory(device, class::NV01_MEMORY_LOCAL_USER, PAGE).unwrap();
    const BASE: u64 = 0x30_0000_0000;
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, 2 * PAGE), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, far, BASE, PAGE, 0), Status::INVALID_DEVICE, "no peers");
    let peer = |call| peer_call(raw, call, other, uuid);
    assert_eq!(peer(u::UVM_DISABLE_PEER_ACCESS), Status::INVALID_DEVICE);
    assert_eq!(peer(u::UVM_ENABLE_PEER_ACCESS), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, far, BASE, PAGE, 0), Status::NV_OK);
    assert_eq!(raw.map_external(&uuid, near, BASE + PAGE, PAGE, 0), Status::NV_OK);
    let mut store = |address, value: u32| {
        let done = DATA + 0x100;
        bench.submit(&mut channel, &[release(address, value), release(done, value)].concat());
        bench.wait("both releases or a fault", || {
            bench.data_word(0x100) == value || bench.notifier(&channel).2 == 0xffff
        });
        bench.notifier(&channel).0
    };
    assert_eq!((store(BASE, 1), store(BASE + PAGE, 2)), (0, 0));
    assert_eq!(peer(u::UVM_DISABLE_PEER_ACCESS), Status::NV_OK);
    assert_eq!(store(BASE + PAGE, 3), 0, "the own memory stays");
    assert_eq!(store(BASE, 4), 31, "the peer's is gone");
    raw.machine.close(node).unwrap();
}

#[test]
fn atomics_and_pageable_access_answer_as_a_card_on_pci_does() {
    use u::UVM_PAGEABLE_MEM_ACCESS_PARAMS as P;
    let bench = Bench::hopper();
    let mut record = bench.raw.record(&P::STRUCT, &[(&P::pageableMemAccess, 1)]);
    bench.raw.machine.ioctl(bench.raw.uvm, u::UVM_PAGEABLE_MEM_ACCESS, record.bytes_mut()).unwrap();
    assert_eq!((record.get(&P::pageableMemAccess), record.get(&P::rmStatus)), (Ok(0), Ok(0)));
    let on =
        |uuid: &[u8; 16]| bench.raw.uvm_gpu(u::UVM_PAGEABLE_MEM_ACCESS_ON_GPU, "gpu_uuid_uuid", uuid, &[]);
    assert_eq!((on(&bench.uuid), on(&[3; 16])), (Status::NV_OK, Status::INVALID_DEVICE));
    let atomics =
        |uuid: &[u8; 16]| bench.raw.uvm_gpu(u::UVM_ENABLE_SYSTEM_WIDE_ATOMICS, "gpu_uuid_uuid", uuid, &[]);
    assert_eq!((atomics(&bench.uuid), atomics(&[3; 16])), (Status::NOT_SUPPORTED, Status::INVALID_DEVICE));
}

#[test]
fn a_va_space_is_for_the_process_whose_memory_it_keeps() {
    let raw = Raw::new();
    raw.initialize_uvm();
    let mapping = Mapping { address: Some(MANAGED), length: PAGE, offset: MANAGED };
    let other = std::process::id() + 1;
    let refused = raw.machine.map_source_for(other, raw.uvm, mapping);
    assert_eq!(refused.map(|_| ()), Err(Errno::EOPNOTSUPP));
    // A VA space without a process's memory does not look.
    let second = raw.machine.open(Node::Uvm).unwrap();
    let fields = [(&u::UVM_INITIALIZE_PARAMS::flags, 0)];
    assert_eq!(raw.uvm_on(second, u::UVM_INITIALIZE, &fields), Status::NV_OK);
    assert!(raw.machine.map_source_for(other, second, mapping).is_ok());
}

#[test]
fn a_mapping_of_uvm_lies_where_its_offset_says() {
    let raw = Raw::new();
    let map = |fd, address, length, offset| {
        raw.machine.map_source(fd, Mapping { address, length, offset }).map(|_| ())
    };
    assert_eq!(map(raw.uvm, Some(MANAGED), PAGE, MANAGED), Err(Errno::EBADFD), "not initialised");
    let mm = raw.initialize_uvm();
    assert_eq!(map(mm, Some(MANAGED), PAGE, MANAGED), Err(Errno::EBADFD), "no VA space");
    assert_eq!(map(raw.uvm, Some(MANAGED), PAGE, MANAGED + PAGE), Err(Errno::EINVAL));
    assert_eq!(map(raw.uvm, None, PAGE, MANAGED), Err(Errno::EINVAL));
    assert_eq!(map(raw.uvm, Some(MANAGED), 0, MANAGED), Err(Errno::EINVAL));
    assert_eq!(raw.range(u::UVM_CREATE_EXTERNAL_RANGE, MANAGED, 4 * PAGE), Status::NV_OK);
    assert_eq!(map(raw.uvm, Some(MANAGED + PAGE), PAGE, MANAGED + PAGE), Err(Errno(98)), "a range is there");
    assert_eq!(map(raw.uvm, Some(MANAGED + 4 * PAGE), PAGE, MANAGED + 4 * PAGE), Ok(()));
}

#[test]
fn sparse_pages_replace_what_is_mapped_and_keep_nothing() {
    use u::UVM_MAP_EXTERNAL_SPARSE_PARAMS as P;
    const BASE: u64 = 0x20_0000_0000;
    const BIG: u64 = 64 << 10;
    let mut bench = Bench::hopper();
    let mut channel = bench.ready();
    let sparse = |bench: &Bench, uuid: &[u8; 16], base, length| {
        let fields = [(&P::base, base), (&P::length, length)];
        bench.raw.uvm_gpu(u::UVM_MAP_EXTERNAL_SPARSE, "gpuUuid_uuid", uuid, &fields)
    };
    let uuid = bench.uuid;
    assert_eq!(sparse(&bench, &uuid, BASE, BIG), Status::INVALID_ADDRESS, "no range");
    assert_eq!(bench.raw.range(u::UVM_CREATE_EXTERNAL_RANGE, BASE, 4 * BIG), Status::NV_OK);
    assert_eq!(sparse(&bench, &uuid, BASE + PAGE, BIG), Status::INVALID_ADDRESS, "not of big pages");
    assert_eq!(sparse(&bench, &uuid, BASE, PAGE), Status::INVALID_ADDRESS);
    assert_eq!(sparse(&bench, &uuid, BASE, 5 * BIG), Status::INVALID_ADDRESS, "out of the range");
    assert_eq!(sparse(&bench, &[7; 16], BASE, BIG), Status::INVALID_DEVICE);
    let memory = bench.raw.memory(bench.device, class::NV01_MEMORY_SYSTEM, 2 * BIG).unwrap();
    assert_eq!(bench.raw.map_external(&uuid, memory, BASE, 2 * BIG, 0), Status::NV_OK);
    assert_eq!(sparse(&bench, &uuid, BASE, 2 * BIG), Status::NV_OK);
    // A release goes nowhere and ends nothing; the acquire of its value would wait for ever, that of 0 passes.
    bench.submit(&mut channel, &release(BASE, 5));
    let acquire = [header(0, 0x5c, 5), BASE as u32, (BASE >> 32) as u32, 0, 0, 0];
    bench.submit(&mut channel, &acquire);
    bench.assert_works(&mut channel);
    assert_eq!(bench.notifier(&channel).2, 0);
    assert_eq!(bench.raw.range(u::UVM_FREE, BASE, 4 * BIG), Status::NV_OK);
}

#[test]
fn device_p2p_needs_a_window_that_the_module_does_not_make_by_itself() {
    use u::UVM_ALLOC_DEVICE_P2P_PARAMS as P;
    let bench = Bench::hopper();
    let ask = |uuid: &[u8; 16], base, length, offset| {
        let fields = [(&P::base, base), (&P::length, length), (&P::offset, offset)];
        bench.raw.uvm_gpu(u::UVM_ALLOC_DEVICE_P2P, "gpuUuid_uuid", uuid, &fields)
    };
    assert_eq!(ask(&bench.uuid, MANAGED, 0, 0), Status::INVALID_ARGUMENT);
    assert_eq!(ask(&bench.uuid, MANAGED, PAGE, 1), Status::INVALID_ARGUMENT);
    assert_eq!(ask(&bench.uuid, MANAGED, PAGE, u64::MAX), Status::INVALID_ARGUMENT);
    assert_eq!(ask(&[7; 16], MANAGED, PAGE, 0), Status::INVALID_DEVICE);
    assert_eq!(ask(&bench.uuid, MANAGED, PAGE, 0), Status::NOT_SUPPORTED);
    assert_eq!(bench.raw.machine.unsupported(), [], "as the module answers");
}

#[test]
fn tools_read_and_write_managed_memory_as_far_as_it_goes() {
    use u::{UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS as Read, UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS as Write};
    let raw = Raw::new();
    raw.initialize_uvm();
    let mapping = Mapping { address: Some(MANAGED), length: 2 * PAGE, offset: MANAGED };
    let source = raw.machine.map_source(raw.uvm, mapping).unwrap();
    let memory = File::from(source.file);
    let mut bytes = vec![0x5a_u8; 2 * PAGE as usize];
    let buffer = bytes.as_mut_ptr().expose_provenance() as u64;
    let call = |number, layout: &'static Struct, fields: Fields<'_>, done: &StructField| {
        let mut record = raw.record(layout, fields);
        raw.machine.ioctl(raw.uvm, number, record.bytes_mut()).unwrap();
        let status = record.get(layout.field("rmStatus").unwrap()).unwrap();
        (Status(status as u32), record.get(done).unwrap())
    };
    let write = |buffer: u64, size: u64, to: u64| {
        let fields = [(&Write::buffer, buffer), (&Write::size, size), (&Write::targetVa, to)];
        call(u::UVM_TOOLS_WRITE_PROCESS_MEMORY, &Write::STRUCT, &fields, &Write::bytesWritten)
    };
    let read = |buffer: u64, size: u64, from: u64| {
        let fields = [(&Read::buffer, buffer), (&Read::size, size), (&Read::targetVa, from)];
        call(u::UVM_TOOLS_READ_PROCESS_MEMORY, &Read::STRUCT, &fields, &Read::bytesRead)
    };
    assert_eq!(write(buffer, 100, MANAGED + PAGE - 50), (Status::NV_OK, 100), "over the end of a page");
    let mut word = [0; 4];
    memory.read_exact_at(&mut word, source.offset + PAGE - 4).unwrap();
    assert_eq!(word, [0x5a; 4]);
    assert_eq!(read(buffer, 200, MANAGED + 2 * PAGE - 100), (Status::INVALID_ADDRESS, 100), "over its end");
    assert_eq!(read(buffer, 4, MANAGED - PAGE), (Status::INVALID_ADDRESS, 0));
    assert_eq!(read(16, 4, MANAGED), (Status::INVALID_ARGUMENT, 0), "a bad buffer");
    assert_eq!(read(buffer, 0, 0), (Status::NV_OK, 0));
    assert_eq!(read(buffer, 8, MANAGED + PAGE - 4), (Status::NV_OK, 8));
    assert_eq!(raw.uvm(u::UVM_TOOLS_FLUSH_EVENTS, &[]), Status::NV_OK);
}

#[test]
fn tools_know_processors_by_the_numbers_of_the_branch() {
    use u::UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS as P;
    for (branch, version) in branches::VERSIONS {
        let builder = Machine::builder().gpu(Profile::h200()).gpu(Profile::h200()).driver(version);
        let raw = Raw::on(builder, branch);
        raw.initialize_uvm();
        let params = raw.device_params(1);
        let node = raw.machine.open(Node::Gpu(1)).unwrap();
        let device = raw.alloc(raw.client, raw.client, 0, class::NV01_DEVICE_0, params).unwrap();
        let uuid = raw.uuid(raw.subdevice(device));
        assert_eq!(raw.uvm_gpu(u::UVM_REGISTER_GPU, "gpu_uuid_uuid", &uuid, &[]), Status::NV_OK);
        let ask = |number, fields: Fields<'_>| {
            let mut table = vec![[0xee_u8; 16]; 300];
            let mut record = raw.record(&P::STRUCT, fields);
            record.set(&P::tablePtr, table.as_mut_ptr().expose_provenance() as u64).unwrap();
            raw.machine.ioctl(raw.uvm, number, record.bytes_mut()).unwrap();
            let status = Status(record.get(&P::rmStatus).unwrap() as u32);
            // How long the table is, and where the GPU is in it.
            let length = table.iter().position(|entry| *entry == [0xee; 16]).unwrap();
            let place = table.iter().position(|entry| *entry == uuid);
            (status, length, place, record)
        };
        let first = |fields: Fields<'_>| ask(u::UVM_TOOLS_GET_PROCESSOR_UUID_TABLE, fields);
        match branch {
            Branch::R535 => {
                let (status, length, place, record) = first(&[]);
                assert_eq!((status, length, place), (Status::NV_OK, 3, Some(2)));
                assert_eq!(record.get(&P::count), Ok(3));
            }
            Branch::R550 => {
                let (status, length, place, record) = first(&[]);
                assert_eq!((status, length, place), (Status::NV_OK, 33, Some(2)));
                assert_eq!(record.get(&P::version), Ok(1));
                let (status, length, place, record) = first(&[(&P::count, 20)]);
                assert_eq!((status, length, place), (Status::NV_OK, 20, Some(9)));
                assert_eq!((record.get(&P::version), record.get(&P::count)), (Ok(2), Ok(10)));
            }
            Branch::R560 => {
                assert_eq!(first(&[]).0, Status::INVALID_ARGUMENT, "no version");
                assert_eq!(first(&[(&P::version, 1)]).2, Some(2));
                assert_eq!(first(&[(&P::version, 2)]).2, Some(9));
            }
            _ => {
                let (status, length, place, _) = first(&[]);
                assert_eq!((status, length, place), (Status::NV_OK, 33, Some(2)), "{version}");
                let (status, length, place, _) = ask(u::UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2, &[]);
                assert_eq!((status, length, place), (Status::NV_OK, 257, Some(9)), "{version}");
            }
        }
        raw.machine.close(node).unwrap();
    }
}
