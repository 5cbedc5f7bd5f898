//! The rows against what NVIDIA's own driver library sent to an H200: programs that nobody here wrote.

use fixtures::recordings::cuda_mix;
use nv_abi::{
    arch::Generation,
    dump::{self, Subchannels},
    gpfifo::Entry,
    method::walk,
    qmd::{Version, read, rows::V04_00},
    rm::class,
};

/// Subchannels as that library binds them before the segments that were kept.
fn subchannels() -> Subchannels {
    let mut subchannels = Subchannels::new(Generation::Hopper);
    subchannels.bind(1, class::HOPPER_COMPUTE_A);
    subchannels.bind(4, class::HOPPER_DMA_COPY_A);
    subchannels
}

#[test]
fn every_recorded_ring_entry_and_segment_decodes_to_methods_and_fields_with_rows() {
    let recording = cuda_mix().unwrap();
    assert!(recording.pushbuffers.len() > 10);
    let mut subchannels = subchannels();
    for segment in &recording.pushbuffers {
        let Entry::Segment { address, length, .. } = Entry::decode(segment.entry) else {
            panic!("slot {} is no segment", segment.slot)
        };
        assert_eq!(
            (address, length as usize),
            (segment.address, segment.words.len()),
            "slot {}",
            segment.slot
        );
        for write in walk(&segment.words) {
            write.unwrap();
        }
        let text = dump::pushbuffer(&segment.words, &mut subchannels);
        assert!(
            !text.contains("no such") && !text.contains("no class bound"),
            "slot {}:\n{text}",
            segment.slot
        );
    }
}

#[test]
fn every_recorded_descriptor_reads_as_a_launch_of_hopper() {
    let recording = cuda_mix().unwrap();
    const GRID_CTA: u8 = V04_00::QMD_TYPE::GRID_CTA as u8;
    let mut grids = 0;
    for qmd in &recording.qmds {
        let bytes: Vec<u8> = qmd.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let launch = read(Version::V04_00, &bytes).unwrap();
        let text = dump::qmd(Version::V04_00, &bytes).unwrap();
        if launch.qmd_type != Some(GRID_CTA) {
            // Queues and null grids, which start their dependents and run nothing.
            assert_eq!(launch.program_address, 0, "{:#x}:\n{text}", qmd.address);
            continue;
        }
        grids += 1;
        assert!(launch.grid.iter().chain(&launch.block).all(|&n| n > 0), "{:#x}:\n{text}", qmd.address);
        assert!(launch.registers >= 8 && launch.program_address != 0, "{:#x}:\n{text}", qmd.address);
        assert!(launch.constant_buffers[0].is_some(), "{:#x}:\n{text}", qmd.address);
        assert!(!text.contains("no field") && !text.contains("no such"), "{:#x}:\n{text}", qmd.address);
    }
    assert!(grids >= 5, "{grids}");
}
