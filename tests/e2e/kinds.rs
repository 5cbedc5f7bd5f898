//! Kernels of every kind (`fixtures/kinds`) in several builds: for three architectures, at full and at low optimisation,
//! and with fast mathematics. They use different parts of the instruction set, and give the same results.
//!
//! Builds for debugging call `__assertfail`, which the loader refuses. `dropped` is left out: ptxas lets lanes that leave
//! a barrier wait for the others of their warp first, who wait at the barrier; `of_hopper` too: for sm_90 ptxas takes one
//! predicate for another there.

use std::collections::BTreeMap;

use nv_driver::Module;
use nv_simulator::profile::Profile;
use tests::Place;

use crate::data::numbers;

/// How `fixtures/kinds` was built.
const BUILDS: [&str; 3] = ["O3", "O1", "fast"];
const KERNELS: [&str; 12] = [
    "stencil",
    "warp_operations",
    "tiles",
    "integers",
    "packed_integers",
    "floats",
    "library",
    "halves",
    "tensor",
    "control",
    "atomics",
    "asynchronous",
];

/// Words of the input, the result and the scratch memory.
const INPUT: u32 = 1024;
const RESULT: usize = 256;
const SCRATCH: usize = 4096;

/// What a kernel leaves: its results, and its scratch memory with the table of keys in order, since who comes first
/// decides where a key is.
type Left = (Vec<u32>, Vec<u32>);

/// What the host knows of a kernel's results.
fn reference(kernel: &str, input: &[u32]) -> Option<Vec<u32>> {
    let threads = 0..RESULT;
    let at = |i: usize| input[i % INPUT as usize];
    Some(match kernel {
        "stencil" => threads
            .map(|i| (0..7).fold(0u32, |sum, d| sum.wrapping_mul(5).wrapping_add(at(i + 1021 + d))))
            .collect(),
        "tiles" => threads
            .map(|i| {
                let (block, t) = (i / 128, i % 128);
                if t >= 64 {
                    return 0;
                }
                let a = |k: usize, row: usize, j: usize| (at(k * 128 + row * 16 + j) & 255) as f32 - 128.0;
                let b = |k: usize, j: usize, column: usize| {
                    (at(512 + k * 128 + j * 8 + column + block) & 255) as f32 - 100.0
                };
                let steps = (0..2).flat_map(|k| (0..16).map(move |j| (k, j)));
                steps.fold(0f32, |sum, (k, j)| a(k, t / 8, j).mul_add(b(k, j, t % 8), sum)).to_bits()
            })
            .collect(),
        "integers" => threads.map(|i| integers(at(i), at(i + 256) | 1)).collect(),
        // A bit for each function that was not as exact as it should be.
        "library" => vec![0; RESULT],
        "atomics" => threads
            .map(|i| {
                let block = &input[i / 128 * 128..][..128];
                let sum = |f: fn(u32) -> u64| block.iter().map(|x| f(*x)).fold(0u64, u64::wrapping_add);
                match i % 128 {
                    0 => sum(u64::from) as u32,
                    1 => block.iter().copied().max().unwrap_or(0),
                    2 => block.iter().copied().min().unwrap_or(0),
                    3 => block.iter().fold(0, |all, x| all | x),
                    4 => block.iter().fold(0, |all, x| all ^ x),
                    5 => 128,
                    8 | 10 => sum(u64::from) as u32,
                    9 => block.iter().copied().max().unwrap_or(0) << 8,
                    12 => sum(|x| u64::from(x & 0xffff)) as u32,
                    _ => 0,
                }
            })
            .collect(),
        _ => return None,
    })
}

/// The kernel of that name for one thread.
fn integers(x: u32, y: u32) -> u32 {
    let (sx, sy) = (x as i32, y as i32);
    let (a, b) = (u64::from(x) << 32 | u64::from(y), (u64::from(y) << 13 ^ u64::from(x)) | 1);
    let sum = |parts: &[u32]| parts.iter().fold(0u32, |sum, part| sum.wrapping_add(*part));
    let mut r = sum(&[
        x / y,
        x % y,
        sx.wrapping_div((y >> 7 | 3) as i32) as u32,
        sx.wrapping_rem((y >> 9 | 5) as i32) as u32,
        (a / b) as u32,
        (a % b) as u32,
        (a as i64 / 1_000_003) as u32,
    ]);
    let wide = u128::from(a) * u128::from(b);
    r ^= sum(&[
        (wide >> 64) as u32,
        (wide >> 96) as u32,
        ((u64::from(x) * u64::from(y)) >> 32) as u32,
        ((i64::from(sx) * i64::from(sy)) >> 32) as u32,
    ]);
    let bytes = |n: u32| (u64::from(y) << 32 | u64::from(x)) >> (8 * n) as u64 & 0xff;
    let permuted = [5, 1, 7, 3].iter().rev().fold(0, |word, n| word << 8 | bytes(*n) as u32);
    r = sum(&[
        r,
        x.count_ones(),
        y.leading_zeros(),
        if x == 0 { 0 } else { x.trailing_zeros() + 1 },
        a.count_ones(),
        b.leading_zeros(),
        x.reverse_bits(),
        permuted,
        ((u64::from(y) << 32 | u64::from(x)) << (x & 31) >> 32) as u32,
        ((u64::from(y) << 32 | u64::from(x)) >> (y & 31)) as u32,
        x >> (y & 31),
        (sx >> (y & 31)) as u32,
    ]);
    let byte = |v: u32, n: u32| i32::from((v >> (8 * n)) as i8);
    let half = |v: u32, n: u32| i32::from((v >> (16 * n)) as i16);
    let dp4a = (0..4).map(|n| byte(x, n) * byte(y, n)).sum::<i32>() + 7;
    let dp2a = (0..2).map(|n| half(x, n) * byte(y, n)).sum::<i32>() + 9;
    r = sum(&[r, dp4a as u32, dp2a as u32, sx.abs_diff(sy).wrapping_add(x)]);
    let parts = [sx.unsigned_abs(), sx.min(sy) as u32, x.max(y), x << 3 | y >> 29];
    sum(&[r, sum(&parts), (a as i64).unsigned_abs() as u32])
}

/// Runs every kernel of every build for a GPU, and compares.
fn compare(profile: Profile, arch: &str, common: &mut BTreeMap<&'static str, (String, Left)>) {
    let place = Place::simulated("kinds", &[profile]);
    let device = place.device(0);
    let input = numbers(INPUT, 7);
    for build in BUILDS {
        let name = format!("kinds/{arch}/{build}.cubin");
        let cubin = fixtures::bytes(&name).unwrap();
        let module = Module::load(&device, &cubin).unwrap_or_else(|error| panic!("{name}: {error}"));
        for kernel in KERNELS {
            let given = device.buffer_from(&input).unwrap();
            let out = device.buffer_from(&vec![0u32; RESULT]).unwrap();
            let scratch = device.buffer_from(&vec![0u32; SCRATCH]).unwrap();
            let arguments = [(&given).into(), (&out).into(), (&scratch).into()];
            module
                .kernel(kernel)
                .and_then(|kernel| kernel.launch([2, 1, 1], [128, 1, 1], &arguments))
                .and_then(|()| device.synchronize())
                .unwrap_or_else(|error| panic!("{kernel} of {name}: {error}"));
            let (out, mut scratch) = (out.to_vec().unwrap(), scratch.to_vec().unwrap());
            scratch[128..256].sort_unstable();
            if let Some(expected) = reference(kernel, &input) {
                assert_eq!(out, expected, "{kernel} of {name}");
            }
            let (first, left) =
                common.entry(kernel).or_insert_with(|| (name.clone(), (out.clone(), scratch.clone())));
            assert!(*left == (out, scratch), "{kernel}: {name} differs from {first}");
        }
    }
}

#[test]
fn every_build_of_every_kernel_gives_the_same_results() {
    let mut common = BTreeMap::new();
    compare(Profile::ad102(), "sm_89", &mut common);
    compare(Profile::ga102(), "sm_80", &mut common);
    compare(Profile::h200(), "sm_90", &mut common);
    assert_eq!(common.len(), KERNELS.len());
}
