//! Clusters of blocks (`fixtures/kinds/clusters.cu`): their shape, barrier, shared memory and copies, on Hopper.

use nv_driver::{Argument, Buffer, Device, Error, LaunchError, LaunchOptions, Module};
use tests::Place;

use crate::data::numbers;

macro_rules! on_hopper {
    ($($body:ident)*) => {$(
        mod $body {
            tests::everywhere!(@place on_hopper, $body, [h200]);
            tests::everywhere!(@card on_card, $body, 1);
        }
    )*};
}

mod bodies {
    pub use super::*;
    on_hopper! {
        a_block_knows_its_place_in_a_cluster_of_any_shape
        blocks_reach_the_shared_memory_of_their_cluster
        copies_tell_barriers_of_other_blocks
        blocks_arrive_at_barriers_of_each_other
        a_copy_reaches_several_blocks
        the_barrier_of_a_cluster_waits_for_nobody_who_left
        all_blocks_of_a_cluster_run_side_by_side
        clusters_that_cannot_be_are_refused
        what_a_block_reaches_of_another_is_what_an_h200_lets_it
    }
}

const BUILDS: [(&str, &[u8]); 2] = [
    ("O3", include_bytes!("../../fixtures/kinds/sm_90/clusters.cubin")),
    ("O1", include_bytes!("../../fixtures/kinds/sm_90/clusters_O1.cubin")),
];

/// A GPU with clusters; a card may be another one.
fn device(place: &Place) -> Option<Device> {
    let device = place.device(0);
    if device.sm() / 10 != 9 {
        tests::skip("clusters: the fixtures are for sm_90");
        return None;
    }
    Some(device)
}

/// What a kernel of each build leaves in `words` words that are zero before.
fn each_build(
    place: &Place,
    words: usize,
    launch: impl Fn(&Device, &Module, &Buffer<u32>) -> Result<(), Error>,
    check: impl Fn(&[u32], &str),
) {
    let Some(device) = device(place) else { return };
    for (build, cubin) in BUILDS {
        let module = Module::load(&device, cubin).unwrap();
        let out = device.buffer_from(&vec![0u32; words]).unwrap();
        launch(&device, &module, &out).unwrap_or_else(|error| panic!("{build}: {error}"));
        check(&out.to_vec().unwrap_or_else(|error| panic!("{build}: {error}")), build);
    }
}

/// Launches a kernel of `in` and `out`, which says itself what its clusters are.
fn run(
    place: &Place,
    name: &str,
    grid: [u32; 3],
    block: u32,
    words: usize,
    expected: impl Fn(&[u32]) -> Vec<u32>,
) {
    let input = numbers(1024, 5);
    let expected = expected(&input);
    each_build(
        place,
        words,
        |device, module, out| {
            let given = device.buffer_from(&input)?;
            module.kernel(name)?.launch(grid, [block, 1, 1], &[(&given).into(), out.into()])?;
            device.synchronize()
        },
        |left, build| assert_eq!(left, expected, "{name}, {build}"),
    );
}

pub fn a_block_knows_its_place_in_a_cluster_of_any_shape(place: &Place) {
    let shapes: [([u32; 3], Option<[u32; 3]>); 6] = [
        ([4, 3, 1], None),
        ([4, 3, 1], Some([1, 1, 1])),
        ([8, 2, 1], Some([4, 1, 1])),
        ([4, 4, 2], Some([2, 2, 1])),
        ([3, 2, 4], Some([3, 1, 2])),
        ([1, 8, 1], Some([1, 8, 1])),
    ];
    for (grid, cluster) in shapes {
        let options = LaunchOptions { cluster, ..LaunchOptions::default() };
        let shape = cluster.unwrap_or([1; 3]);
        let blocks = grid.iter().product::<u32>();
        each_build(
            place,
            16 * blocks as usize,
            |_, module, out| module.kernel("shape")?.launch_with(grid, [32, 1, 1], &options, &[out.into()]),
            |left, build| {
                for (block, words) in (0..).zip(left.chunks(16)) {
                    let at = [block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]];
                    let within = [0, 1, 2].map(|axis| at[axis] % shape[axis]);
                    let of = [0, 1, 2].map(|axis| at[axis] / shape[axis]);
                    let rank = within[0] + shape[0] * (within[1] + shape[1] * within[2]);
                    let size = shape.iter().product();
                    let explicit = u32::from(cluster.is_some());
                    let mut expected = vec![rank, size];
                    expected.extend(within.iter().chain(&shape).chain(&of));
                    expected.extend([grid[0] / shape[0], grid[1] / shape[1], explicit, 0, 0]);
                    assert_eq!(words, expected, "block {at:?} of {grid:?} in {cluster:?}, {build}");
                }
            },
        );
    }
}

pub fn blocks_reach_the_shared_memory_of_their_cluster(place: &Place) {
    run(place, "ring", [8, 1, 1], 64, 512, |input| {
        (0..512)
            .map(|i| {
                let (block, t) = (i / 64, i % 64);
                let next = block / 4 * 4 + (block + 1) % 4;
                let sum = input[next * 64 + t].wrapping_mul(5).wrapping_add(input[i] + 3);
                sum.wrapping_add((block % 4) as u32 * 1000 + 4)
            })
            .collect()
    });
}

pub fn copies_tell_barriers_of_other_blocks(place: &Place) {
    const BLOCKS: usize = 4;
    run(place, "copies", [BLOCKS as u32, 1, 1], 128, (2 * BLOCKS + 1) * 128, |input| {
        let own = |i: usize| {
            let (block, t) = (i / 128, i % 128);
            let sent = [(t / 4) as u32, input[t / 4], (block as u32 & 1) ^ 1, 7][t % 4];
            input[i].wrapping_mul(3).wrapping_add(sent)
        };
        let all: Vec<u32> = (0..BLOCKS * 128).map(own).collect();
        let sums =
            (0..128).map(|t| (0..BLOCKS).fold(0u32, |sum, block| sum.wrapping_add(own(block * 128 + t))));
        let others = (0..BLOCKS * 128).map(|i| own(i ^ 128));
        all.iter().copied().chain(sums).chain(others).collect()
    });
}

pub fn blocks_arrive_at_barriers_of_each_other(place: &Place) {
    // Blocks one above the other make a cluster.
    run(place, "arrivals", [2, 2, 1], 32, 128, |input| {
        let from = |i: usize, phase: usize| input[((i ^ 64) + phase) & 255];
        (0..128).map(|i| from(i, 0).wrapping_mul(3).wrapping_add(from(i, 1))).collect()
    });
}

pub fn a_copy_reaches_several_blocks(place: &Place) {
    run(place, "multicast", [4, 1, 1], 128, 512, |input| {
        (0..512).map(|i| if i / 128 == 2 { 0 } else { input[i % 128] }).collect()
    });
}

pub fn the_barrier_of_a_cluster_waits_for_nobody_who_left(place: &Place) {
    each_build(
        place,
        6 * 96,
        |_, module, out| module.kernel("leaving")?.launch([6, 1, 1], [96, 1, 1], &[out.into()]),
        |left, build| {
            let expected: Vec<u32> = (0..6 * 96)
                .map(|i| match (i / 96 % 3, i % 96) {
                    (0, _) => 3,
                    (2, t) if t < 32 && t % 2 == 0 => 3,
                    (2, t) if t < 32 => 2,
                    _ => 1,
                })
                .collect();
            assert_eq!(left, expected, "{build}");
        },
    );
}

pub fn all_blocks_of_a_cluster_run_side_by_side(place: &Place) {
    run(place, "chain", [32, 1, 1], 32, 1024, |input| {
        let sum = |i: usize| {
            let (block, t) = (i / 32, i % 32);
            (block / 8 * 8..=block).fold(0u32, |sum, block| sum.wrapping_add(input[block * 32 + t]))
        };
        (0..1024).map(sum).collect()
    });
}

pub fn clusters_that_cannot_be_are_refused(place: &Place) {
    let Some(device) = device(place) else { return };
    let module = Module::load(&device, BUILDS[0].1).unwrap();
    let out = device.buffer_from(&[0u32; 512]).unwrap();
    let arguments: [Argument; 1] = [(&out).into()];
    let refusal = |kernel: &str, grid, cluster| {
        let options = LaunchOptions { cluster: Some(cluster), ..LaunchOptions::default() };
        let kernel = module.kernel(kernel).unwrap();
        match kernel.launch_with(grid, [32, 1, 1], &options, &arguments) {
            Err(Error::Launch { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let whole = refusal("shape", [5, 1, 1], [2, 1, 1]);
    assert_eq!(whole, LaunchError::GridOfClusters { grid: [5, 1, 1], cluster: [2, 1, 1] });
    for cluster in [[32, 1, 1], [0, 1, 1], [u32::MAX, 2, 1]] {
        let size = refusal("shape", [32, 2, 1], cluster);
        assert_eq!(size, LaunchError::ClusterSize { cluster, limit: 16 });
    }
    let other = refusal("leaving", [6, 1, 1], [2, 1, 1]);
    assert_eq!(other, LaunchError::CompiledCluster { compiled: [3, 1, 1], cluster: [2, 1, 1] });
}

/// Modes of `fixtures/kinds/cluster_probe.cu`, and what both blocks of a cluster find there: as an H200 answered.
pub fn what_a_block_reaches_of_another_is_what_an_h200_lets_it(place: &Place) {
    const PROBE: &[u8] = include_bytes!("../../fixtures/kinds/sm_90/cluster_probe.cubin");
    let options = LaunchOptions { cluster: Some([2, 1, 1]), ..LaunchOptions::default() };
    let ask = |mode: u32| {
        let device = device(place)?;
        let module = Module::load(&device, PROBE).unwrap();
        let out = device.visible::<u32>(32).unwrap();
        out.copy_from(&[0; 32]).unwrap();
        let arguments = [(&out).into(), mode.into(), 2u32.into()];
        module
            .kernel("cluster_probe")
            .unwrap()
            .launch_with([2, 1, 1], [64, 1, 1], &options, &arguments)
            .unwrap();
        Some(device.synchronize().map(|()| out.peek().unwrap()))
    };
    let words = |mode, first: usize, count: usize| {
        ask(mode).map(|left| {
            let left = left.unwrap_or_else(|error| panic!("mode {mode}: {error}"));
            [0, 16].map(|block| left[block + first..][..count].to_vec())
        })
    };
    // Through generic addresses: the block's own memory, the other's, and the first's, which has no number.
    for (mode, found) in [(5, [0x1000, 0x2000]), (6, [0x2000, 0x1000]), (7, [0x1000, 0x1000])] {
        let Some(left) = words(mode, 6, 1) else { return };
        assert_eq!(left, found.map(|word| vec![word]), "mode {mode}");
    }
    // A store, an addition and a compare-and-swap by the other.
    for (mode, found) in [(11, [0x77, 0x77]), (12, [0x1005, 0x2005]), (13, [9, 9])] {
        let Some(left) = words(mode, 9, 1) else { return };
        assert_eq!(left, found.map(|word| vec![word]), "mode {mode}");
    }
    // Spaces: the other's is not the block's, but the cluster's; without a number it is the first block's; whatever is
    // beyond is the cluster's too.
    let Some(left) = words(16, 6, 6) else { return };
    assert_eq!(left, [vec![0, 1, 1, 1, 1, 1], vec![0, 1, 1, 0, 1, 1]]);
    // Loads, stores and atomics of shared memory with another's number, or none; generic ones of blocks that are not
    // there, beyond the other's memory, and of a block that has ended.
    for mode in [2, 3, 4, 8, 9, 10, 14, 15, 19] {
        place.expect_faults(1);
        match ask(mode) {
            Some(Err(Error::ChannelFault(fault))) => assert_eq!(fault.xid, 13, "mode {mode}"),
            other => panic!("mode {mode}: {other:?}"),
        }
    }
}

/// Different seeds give different interleavings of a cluster's blocks, and the same results.
#[test]
fn clusters_do_the_same_in_any_order() {
    use nv_simulator::{machine::Machine, profile::Profile};

    let input = numbers(1024, 5);
    for seed in 0..8 {
        let machine =
            Machine::builder().gpu(Profile::h200()).driver(tests::DRIVER).seed(seed).build().unwrap();
        let device = Device::open(machine, 0).unwrap();
        let module = Module::load(&device, BUILDS[0].1).unwrap();
        let given = device.buffer_from(&input).unwrap();
        let out = device.buffer_from(&[0u32; 1024]).unwrap();
        let kernel = module.kernel("chain").unwrap();
        kernel.launch([32, 1, 1], [32, 1, 1], &[(&given).into(), (&out).into()]).unwrap();
        let expected: u32 = (24..32).fold(0u32, |sum, block| sum.wrapping_add(input[block * 32]));
        assert_eq!(out.to_vec().unwrap()[31 * 32], expected, "seed {seed}");
    }
}
