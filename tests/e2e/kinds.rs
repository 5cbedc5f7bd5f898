//! Kernels of every kind (`fixtures/kinds`) in several builds: for three architectures, at full and at low optimisation,
//! with fast mathematics, and for debuggers. They use different parts of the instruction set, and give the same results.

use std::collections::BTreeMap;

use nv_driver::{Argument, Device, LaunchOptions, Module};
use nv_simulator::{machine::Machine, profile::Profile};
use tests::Place;

use crate::{algorithms, data::numbers, runtime::Printed};

/// How `fixtures/kinds` was built.
const BUILDS: [&str; 4] = ["O3", "O1", "fast", "G"];
const KERNELS: [&str; 26] = [
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
    "dropped",
    "of_hopper",
    "memory",
    "matrices",
    "reductions",
    "bit_fields",
    "roundings",
    "half_conversions",
    "products",
    "pipeline",
    "spaces",
    "atomic_scopes",
    "allocations",
    "grid_meets",
];
/// Kernels of `fixtures/kinds/waiting.cu`.
const WAITING: [&str; 4] = ["lock_spun_for", "lock_slept_for", "one_thread_awaited", "chain_backwards"];

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
        // How many phases a thread waits for before it leaves the barrier.
        "dropped" => threads.map(|i| 3 - i as u32 % 4).collect(),
        "of_hopper" => threads.map(|i| of_hopper(input, i)).collect(),
        "memory" => threads.map(|i| memory(input, i)).collect(),
        "matrices" => threads.map(|i| matrices(input, i)).collect(),
        "allocations" => threads
            .map(|i| {
                (0..=at(i) & 3).rev().fold(0u32, |r, n| r.wrapping_mul(3).wrapping_add(at(i).wrapping_add(n)))
            })
            .collect(),
        "grid_meets" => threads.map(|i| at((i + 128) % 256).wrapping_add(256)).collect(),
        "lock_spun_for" | "lock_slept_for" => vec![3; RESULT],
        "one_thread_awaited" => vec![1; RESULT],
        "chain_backwards" => threads.map(|i| 256 - i as u32).collect(),
        _ => return algorithms::reference(kernel, input),
    })
}

/// The kernel of that name for one thread: a warp's matrix of halves as it was stored and turned around, one elected
/// thread, and a barrier that was over after and not before.
fn of_hopper(input: &[u32], i: usize) -> u32 {
    let warp = &input[i / 32 * 32..][..32];
    let mut matrices = [[0u32; 64]; 2];
    for (lane, x) in warp.iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        for half in 0..2 {
            matrices[0][row * 8 + column + half] = x >> (16 * half) & 0xffff;
            matrices[1][(column + half) * 8 + row] = x.wrapping_mul(3) >> (16 * half) & 0xffff;
        }
    }
    let all = matrices.iter().flatten();
    all.fold(0u32, |sum, half| sum.wrapping_mul(3).wrapping_add(*half)).wrapping_add(3)
}

/// The scratch memory of the kernel of that name: sums of vectors, and vectors that were exchanged.
fn scratch_of_hopper(input: &[u32]) -> Vec<u32> {
    let mut scratch = vec![0u32; SCRATCH];
    let add = |scratch: &mut Vec<u32>, at: usize, numbers: &[u32]| {
        for (to, number) in scratch[at..].iter_mut().zip(numbers) {
            *to = (f32::from_bits(*to) + *number as f32).to_bits();
        }
    };
    for (i, &x) in input[..RESULT].iter().enumerate() {
        add(&mut scratch, 256 + 4 * (x as usize % 8), &[1, x & 3, 2, x >> 28]);
        add(&mut scratch, 256 + 4 * (8 + x as usize % 4), &[x & 7, 5]);
        scratch[1024 + 4 * i..][..4].copy_from_slice(&[1, 2, 3, x]);
    }
    scratch
}

/// The kernel of that name for one thread.
fn memory(input: &[u32], i: usize) -> u32 {
    const TABLE: [u32; 32] =
        [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5];
    const VARIABLES: [u32; 16] = [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5];
    let byte = |n: usize| input[n / 4] >> (8 * (n % 4)) & 0xff;
    let half = |n: usize| input[n / 2] >> (16 * (n % 2)) & 0xffff;
    let sum =
        |terms: &[(u32, u32)]| terms.iter().fold(0u32, |r, (v, by)| r.wrapping_add(v.wrapping_mul(*by)));
    let mut r = sum(&[
        (byte(i), 3),
        (byte(i + 300) as i8 as u32, 1),
        (half(i + 5) as i16 as u32, 5),
        (half(i + 77), 1),
        (input[i], 1),
        (input[i + 1], 3),
        (input[i + 2], 5),
        (input[i + 3], 7),
        (input[i + 4], 9),
        (input[i + 5], 11),
    ]);
    let (four, two) = (&input[4 * (i & 127)..], &input[2 * (i & 255)..]);
    r ^= sum(&[(four[0], 1), (four[1], 3), (four[2], 5), (four[3], 7), (two[0], 9), (two[1], 11)]);
    let table = |n: usize| TABLE.get(n & 63).copied().unwrap_or(0);
    let variable = VARIABLES.get(i >> 2 & 63).copied().unwrap_or(0);
    r = sum(&[(r, 1), (table(i), 1), (variable, 1), (table(i / 128), 1)]);
    sum(&[(r, 1), (2, 1), ((r & 0xff) << 8, 1), ((r >> 8 & 0xffff) << 16, 1)])
}

/// The kernel of that name for one thread.
fn matrices(input: &[u32], i: usize) -> u32 {
    let (block, t) = (i / 128, i % 128);
    let mut sums = [0i64; 2];
    for tile in 0..2 {
        let (row, k0) = (16 * block, 64 * tile);
        let a = |y: usize, x: usize| {
            let at = 4 * ((row * 4 + k0 + y * 4 + x / 4) & 255) + x % 4;
            i64::from(input[at] & 63) - 31 + (x % 4) as i64
        };
        let b = |y: usize, x: usize| {
            let at = 4 * ((k0 * 2 + y * 4 + x / 4 + 31) & 255) + x % 4;
            i64::from(input[at] & 31) - if x.is_multiple_of(4) { 7 } else { 0 }
        };
        for j in 0..16 {
            for (half, sum) in sums.iter_mut().enumerate() {
                *sum += a(t / 16 + 8 * half, j) * b(j, t % 16);
            }
        }
    }
    (sums[0] * 31 + sums[1]) as u32
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
    let printed = Printed::default();
    device.print_to(printed.clone());
    let mut files = vec![("waiting".to_owned(), &WAITING[..])];
    for build in BUILDS {
        files.push((build.to_owned(), &KERNELS[..]));
        files.push((format!("algorithms_{build}"), &algorithms::KERNELS[..]));
    }
    for (build, kernels) in files {
        let name = format!("kinds/{arch}/{build}.cubin");
        let cubin = fixtures::bytes(&name).unwrap();
        let module = Module::load(&device, &cubin).unwrap_or_else(|error| panic!("{name}: {error}"));
        for &kernel in kernels {
            let given = device.buffer_from(&input).unwrap();
            let out = device.buffer_from(&vec![0u32; RESULT]).unwrap();
            let scratch = device.buffer_from(&vec![0u32; SCRATCH]).unwrap();
            let mut arguments: Vec<Argument> = vec![(&given).into(), (&out).into(), (&scratch).into()];
            let (mut grid, mut block) = ([2, 1, 1], [128, 1, 1]);
            if kernel == "given" {
                arguments.push(Argument::bytes(algorithms::given()));
                (grid, block) = (algorithms::GIVEN_GRID, algorithms::GIVEN_BLOCK);
            }
            let cooperative = kernel == "grid_meets";
            let options = LaunchOptions { cooperative, ..LaunchOptions::default() };
            module
                .kernel(kernel)
                .and_then(|kernel| kernel.launch_with(grid, block, &options, &arguments))
                .and_then(|()| device.synchronize())
                .unwrap_or_else(|error| panic!("{kernel} of {name}: {error}"));
            let (out, mut scratch) = (out.to_vec().unwrap(), scratch.to_vec().unwrap());
            scratch[128..256].sort_unstable();
            if kernel == "of_hopper" {
                assert_eq!(scratch, scratch_of_hopper(&input), "{kernel} of {name}");
            }
            if kernel == "said" {
                let mut lines: Vec<String> = printed.take().lines().map(str::to_owned).collect();
                lines.sort_unstable();
                assert_eq!(lines, algorithms::said(&input), "{kernel} of {name}");
            }
            let (first, left) = common.entry(kernel).or_insert_with(|| {
                if let Some(expected) = reference(kernel, &input) {
                    assert_eq!(out, expected, "{kernel} of {name}");
                }
                (name.clone(), (out.clone(), scratch.clone()))
            });
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
    assert_eq!(common.len(), KERNELS.len() + algorithms::KERNELS.len() + WAITING.len());
}

/// One thread runs everything, in an order that the seed decides.
#[test]
fn threads_that_wait_for_each_other_end_in_any_order() {
    let input = numbers(INPUT, 7);
    for seed in 0..4 {
        let machine =
            Machine::builder().gpu(Profile::ga102()).driver(tests::DRIVER).seed(seed).build().unwrap();
        let device = Device::open(machine, 0).unwrap();
        let module = Module::load(&device, &fixtures::bytes("kinds/sm_80/waiting.cubin").unwrap()).unwrap();
        for kernel in WAITING {
            let given = device.buffer_from(&input).unwrap();
            let out = device.buffer_from(&vec![0u32; RESULT]).unwrap();
            let scratch = device.buffer_from(&vec![0u32; SCRATCH]).unwrap();
            let arguments = [(&given).into(), (&out).into(), (&scratch).into()];
            module.kernel(kernel).unwrap().launch([2, 1, 1], [128, 1, 1], &arguments).unwrap();
            let out = out.to_vec().unwrap_or_else(|error| panic!("{kernel}, seed {seed}: {error}"));
            assert_eq!(Some(out), reference(kernel, &input), "{kernel}, seed {seed}");
        }
    }
}
