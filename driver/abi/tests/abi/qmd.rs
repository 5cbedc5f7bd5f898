//! Launch descriptors.

use nv_abi::qmd::*;

fn full(version: Version) -> Qmd {
    let mut qmd = Qmd::new(version);
    qmd.set_grid([100_000, 7, 3]).unwrap();
    qmd.set_block([256, 2, 1]).unwrap();
    qmd.set_program(0x10_0020_4000, 0x1000).unwrap();
    qmd.set_registers(64).unwrap();
    qmd.set_barriers(2).unwrap();
    qmd.set_shared_memory(0x4800, [9, 26, 9]).unwrap();
    qmd.set_local_memory(0x640).unwrap();
    qmd.set_constant_buffer(3, ConstantBuffer { address: 0x10_4000_0040, bytes: 0x210 }).unwrap();
    qmd.set_release(
        1,
        Some(Release {
            address: 0x20_0000_0010,
            payload: 0x1_0000_0002,
            structure_size: StructureSize::FourWords,
            payload_64: true,
            membar: true,
            reduction: None,
            trap_type: 1,
        }),
    )
    .unwrap();
    qmd.set_dependent(0, Some(Dependent { address: 0x10_0000_ff00, action: 1, prefetch: true })).unwrap();
    qmd
}

#[test]
fn a_launch_of_clusters_has_a_type_of_its_own() {
    for version in Version::ALL {
        let mut qmd = full(version);
        assert_eq!(read(version, qmd.bytes()).unwrap().cluster, None);
        let set = qmd.set_cluster([4, 2, 1]);
        assert_eq!(set.is_ok(), version != Version::V03_00);
        let cluster = (version != Version::V03_00).then_some([4, 2, 1]);
        assert_eq!(read(version, qmd.bytes()).unwrap().cluster, cluster);
    }
}

#[test]
fn a_new_descriptor_says_its_version() {
    for version in Version::ALL {
        let launch = read(version, Qmd::new(version).bytes()).unwrap();
        assert_eq!(launch.qmd_type, (version != Version::V03_00).then_some(2));
    }
}

#[test]
fn what_was_set_is_read_back_in_every_version() {
    for version in Version::ALL {
        let launch = read(version, full(version).bytes()).unwrap();
        assert_eq!(launch.grid, [100_000, 7, 3]);
        assert_eq!(launch.block, [256, 2, 1]);
        assert_eq!(launch.program_address, 0x10_0020_4000);
        assert_eq!((launch.registers, launch.barriers), (64, 2));
        assert_eq!((launch.shared_bytes, launch.local_high_bytes), (0x4800, 0x640));
        let mut buffers = [None; 8];
        buffers[3] = Some(ConstantBuffer { address: 0x10_4000_0040, bytes: 0x210 });
        assert_eq!(launch.constant_buffers, buffers);
        assert_eq!(launch.releases.len(), 1);
        assert_eq!(launch.releases[0].payload, 0x1_0000_0002);
        assert_eq!(launch.dependents, [Dependent { address: 0x10_0000_ff00, action: 1, prefetch: true }]);
    }
}

#[test]
fn links_are_what_a_whole_reading_says_of_them() {
    for version in Version::ALL {
        let mut qmd = full(version);
        qmd.set_constant_buffer(0, ConstantBuffer { address: 0x10_0000_0100, bytes: 0x180 }).unwrap();
        let (launch, found) = (read(version, qmd.bytes()).unwrap(), links(version, qmd.bytes()).unwrap());
        assert_eq!(found.bank, launch.constant_buffers[0]);
        assert_eq!(found.bank.map(|bank| bank.bytes), Some(0x180));
        assert_eq!(found.releases, [(0x20_0000_0010, 0x1_0000_0002)]);
        assert_eq!(found.dependents, [0x10_0000_ff00]);
        assert!(links(version, &vec![0; qmd.bytes().len()]).is_err());
    }
}

#[test]
fn every_address_moves_and_nothing_else() {
    for version in Version::ALL {
        let qmd = full(version);
        let mut moved = qmd.bytes().to_vec();
        relocate(version, &mut moved, |address| address + 0x10_0000).unwrap();
        let (old, new) = (read(version, qmd.bytes()).unwrap(), read(version, &moved).unwrap());
        assert_eq!(new.program_address, old.program_address + 0x10_0000);
        assert_eq!(new.releases[0].address, old.releases[0].address + 0x10_0000);
        assert_eq!(new.releases[0].payload, old.releases[0].payload);
        assert_eq!(new.dependents[0].address, old.dependents[0].address + 0x10_0000);
        let mut back = moved.clone();
        relocate(version, &mut back, |address| address - 0x10_0000).unwrap();
        assert_eq!(back, qmd.bytes());
        assert!(matches!(relocate(version, &mut moved, |_| 1 << 60), Err(RelocateError::Field(_))));
    }
}

#[test]
fn a_descriptor_of_another_version_is_refused_by_name() {
    let error = read(Version::V04_00, &vec![0; 384]).unwrap_err();
    assert_eq!(error.to_string(), "QMD of version 00_00 where V04_00 is taken");
    assert!(matches!(read(Version::V03_00, &[0; 64]), Err(ReadError::Field(_))));
}

#[test]
fn an_address_off_the_versions_unit_or_above_its_width_is_refused() {
    let buffer = ConstantBuffer { address: 0x10_0000_0010, bytes: 16 };
    assert!(Qmd::new(Version::V03_00).set_constant_buffer(0, buffer).is_ok());
    assert!(Qmd::new(Version::V04_00).set_constant_buffer(0, buffer).is_err());
    assert!(Qmd::new(Version::V03_00).set_program(1 << 49, 0).is_err());
    assert!(Qmd::new(Version::V03_00).set_grid([1, 1 << 16, 1]).is_err());
    assert!(Qmd::new(Version::V03_00).set_constant_buffer(8, buffer).is_err());
}
