//! Every fixture kernel through the whole driver, bit for bit against the host reference: on one GPU and on each of
//! two, with arguments written by the CPU and with arguments in the pushbuffer.

use std::collections::BTreeSet;

use fixtures::reference;
use nv_driver::{Argument, ArgumentPath, Buffer, Device, Element, Kernel, Module};
use tests::Place;

use crate::data::{doubles, floats, numbers, wide};

/// A device with the cubins for it.
struct Run<'a> {
    device: &'a Device,
    arch: &'static str,
}

impl Run<'_> {
    fn module(&self, name: &str) -> Module {
        let cubin = fixtures::cubin(self.arch, name).unwrap();
        Module::load(self.device, &cubin).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.module(name).kernel(name).unwrap()
    }

    fn launch(&self, name: &str, grid: [u32; 3], block: [u32; 3], arguments: &[Argument]) {
        self.launch_with_shared(name, grid, block, 0, arguments);
    }

    fn launch_with_shared(
        &self,
        name: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: &[Argument],
    ) {
        self.kernel(name)
            .launch_with_shared(grid, block, shared, arguments)
            .and_then(|()| self.device.synchronize())
            .unwrap_or_else(|error| panic!("{name} of {}: {error}", self.arch));
    }

    fn upload<T: Element>(&self, values: &[T]) -> Buffer<T> {
        self.device.buffer_from(values).unwrap()
    }

    fn zeroes<T: Element>(&self, len: usize) -> Buffer<T> {
        self.upload(&vec![T::default(); len])
    }
}

/// Runs a case on every GPU of the place, by both ways that arguments travel.
fn by_both_paths(place: &Place, case: fn(&Run<'_>)) {
    for index in 0..place.gpus() {
        for path in [ArgumentPath::CpuWritten, ArgumentPath::InlineToMemory] {
            let device = place.device_with(index, |options| options.arguments = path);
            case(&Run { device: &device, arch: place.code_for(&device) });
        }
    }
}

/// The cases, each with the kernels that it runs; a test makes sure that no fixture is left out.
macro_rules! cases {
    ($($case:ident: $($kernel:literal)*;)*) => {
        const COVERED: &[&str] = &[$($($kernel),*),*];
        mod bodies {
            $(pub fn $case(place: &tests::Place) {
                super::by_both_paths(place, super::$case);
            })*
        }
        pub mod cases {
            use super::bodies::*;
            tests::everywhere!(kernels: $($case)*);
        }
    };
}

cases! {
    vector_add: "vector_add";
    saxpy: "saxpy";
    daxpy: "daxpy";
    double_division_root_and_truncation: "double_ops";
    matmul_through_shared_tiles: "matmul";
    block_sums_by_shuffles: "reduce_u32" "reduce_f32";
    largest_of_each_warp_and_who_has_it: "warp_max";
    histogram_with_shared_and_global_atomics: "histogram";
    tickets_from_atomics_are_handed_out_once: "tickets";
    division_of_32_bits: "divide_u32" "divide_i32";
    division_of_64_bits: "divide_u64" "divide_i64";
    division_by_constants: "divide_constant";
    mandelbrot_leaves_its_loop_lane_by_lane: "mandelbrot";
    transpose_through_shared_memory: "transpose";
    strided_copy_with_negative_strides: "strided_copy";
    softmax_within_its_tolerance: "softmax";
    half2_arithmetic: "half2_ops";
    constants_and_globals_with_first_values: "polynomial" "lookup" "read_visits";
    local_arrays_and_calls: "local_array" "recursion";
    deep_local_memory_grown_on_demand: "deep_local";
    blocks_that_wait_for_each_other: "handshake";
    reversal_in_dynamic_shared_memory: "reverse";
    scalars_and_a_struct_by_value: "iota" "scalars";
    geometry_in_all_three_dimensions: "geometry";
    a_kernel_without_parameters: "empty";
    the_probes_body_before_it_is_replaced: "probe";
    locks_that_lanes_of_a_warp_take_in_turn: "spin_lock";
    warps_that_wait_for_each_other_without_a_barrier: "relay";
    a_barrier_of_all_blocks_by_atomics: "grid_barrier";
    sums_that_look_back_over_more_blocks_than_threads: "look_back";
    votes_and_reductions_of_a_warp: "votes";
    matches_in_a_warp: "matches";
    shuffles_of_every_kind: "shuffles";
    virtual_calls_of_several_classes: "make_shapes" "virtual_calls";
    calls_through_function_pointers: "choose_functions" "function_pointers";
    a_switch_of_many_cases: "many_cases";
    atomics_on_shared_and_global_words: "atomics_of_every_kind";
    tensor_cores_on_whole_numbers: "mma_f16";
    asynchronous_copies_to_shared_memory: "async_copy";
    integer_operations_on_bits: "bits";
    what_faults_elsewhere_works_in_bounds: "store_at" "load_at" "shared_store_at" "trap";
}

const N: u32 = 1000;
const GRID: [u32; 3] = [4, 1, 1];
const BLOCK: [u32; 3] = [256, 1, 1];

fn vector_add(run: &Run<'_>) {
    let (a, b) = (floats(N, 1), floats(N, 2));
    let (out, da, db) = (run.zeroes::<f32>(N as usize), run.upload(&a), run.upload(&b));
    run.launch("vector_add", GRID, BLOCK, &[(&out).into(), (&da).into(), (&db).into(), N.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::vector_add(&a, &b));
}

fn saxpy(run: &Run<'_>) {
    let (x, y) = (floats(N, 3), floats(N, 4));
    let (dx, dy) = (run.upload(&x), run.upload(&y));
    run.launch("saxpy", GRID, BLOCK, &[(&dy).into(), (&dx).into(), 1.7f32.into(), N.into()]);
    assert_eq!(dy.to_vec().unwrap(), reference::saxpy(&y, &x, 1.7));
}

fn daxpy(run: &Run<'_>) {
    let (x, y) = (doubles(N, 5), doubles(N, 6));
    let (dx, dy) = (run.upload(&x), run.upload(&y));
    run.launch("daxpy", GRID, BLOCK, &[(&dy).into(), (&dx).into(), 0.1f64.into(), N.into()]);
    assert_eq!(dy.to_vec().unwrap(), reference::daxpy(&y, &x, 0.1));
}

fn double_division_root_and_truncation(run: &Run<'_>) {
    // Every magnitude from 2^-1022 to 2^1022, and the edges; roots of negative numbers are NaNs and left out.
    let scale = |i: usize, x: f64| x * (((i * 37) % 2045) as f64 - 1022.0).exp2();
    let mut a: Vec<f64> = doubles(N, 7).into_iter().enumerate().map(|(i, x)| scale(i, x.abs())).collect();
    let mut b: Vec<f64> = doubles(N, 8).into_iter().enumerate().map(|(i, x)| scale(i / 3, x)).collect();
    let edges = [0.0, f64::MIN_POSITIVE, 5e-324, 1.0, f64::MAX, f64::INFINITY, 9.3e18, 0.1];
    a[..8].copy_from_slice(&edges);
    b[..8].copy_from_slice(&[3.0, -3.0, 7.0, -0.1, 0.3, 1e300, -9.3e18, -0.0]);
    let (quotient, root, truncated) =
        (run.zeroes::<f64>(a.len()), run.zeroes::<f64>(a.len()), run.zeroes::<i64>(a.len()));
    let (da, db) = (run.upload(&a), run.upload(&b));
    let arguments =
        [(&quotient).into(), (&root).into(), (&truncated).into(), (&da).into(), (&db).into(), N.into()];
    run.launch("double_ops", GRID, BLOCK, &arguments);
    let (quotient, root, truncated) =
        (quotient.to_vec().unwrap(), root.to_vec().unwrap(), truncated.to_vec().unwrap());
    for i in 0..a.len() {
        let (q, r, t) = reference::double_ops(a[i], b[i]);
        let got = (quotient[i].to_bits(), root[i].to_bits(), truncated[i]);
        assert_eq!(got, (q.to_bits(), r.to_bits(), t), "{i}: {:e} and {:e}", a[i], b[i]);
    }
}

fn matmul_through_shared_tiles(run: &Run<'_>) {
    let (m, n, k) = (40u32, 50u32, 33u32);
    let (a, b) = (floats(m * k, 7), floats(k * n, 8));
    let (out, da, db) = (run.zeroes::<f32>((m * n) as usize), run.upload(&a), run.upload(&b));
    let arguments = [(&out).into(), (&da).into(), (&db).into(), m.into(), n.into(), k.into()];
    run.launch("matmul", [n.div_ceil(16), m.div_ceil(16), 1], [16, 16, 1], &arguments);
    assert_eq!(out.to_vec().unwrap(), reference::matmul(&a, &b, m as usize, n as usize, k as usize));
}

fn block_sums_by_shuffles(run: &Run<'_>) {
    let (words, reals) = (numbers(N, 9), floats(N, 10));
    let (dw, dr) = (run.upload(&words), run.upload(&reals));
    let (ow, or) = (run.zeroes::<u32>(4), run.zeroes::<f32>(4));
    run.launch("reduce_u32", GRID, BLOCK, &[(&ow).into(), (&dw).into(), N.into()]);
    run.launch("reduce_f32", GRID, BLOCK, &[(&or).into(), (&dr).into(), N.into()]);
    assert_eq!(ow.to_vec().unwrap(), reference::reduce_u32(&words, 256));
    assert_eq!(or.to_vec().unwrap(), reference::reduce_f32(&reals, 256));
}

fn largest_of_each_warp_and_who_has_it(run: &Run<'_>) {
    // Few different values, so that several lanes share the largest.
    let input: Vec<u32> = numbers(992, 19).into_iter().map(|x| x % 13).collect();
    let (out, source) = (run.zeroes::<u64>(31), run.upload(&input));
    run.launch("warp_max", GRID, BLOCK, &[(&out).into(), (&source).into(), 992u32.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::warp_max(&input));
}

fn histogram_with_shared_and_global_atomics(run: &Run<'_>) {
    let data: Vec<u8> = numbers(10_000, 11).into_iter().map(|x| x as u8).collect();
    let (bins, largest, input) = (run.zeroes::<u32>(256), run.zeroes::<u32>(1), run.upload(&data));
    let arguments = [(&bins).into(), (&largest).into(), (&input).into(), 10_000u32.into()];
    run.launch("histogram", [8, 1, 1], [128, 1, 1], &arguments);
    let (expected, last) = reference::histogram(&data);
    assert_eq!(bins.to_vec().unwrap(), expected);
    assert_eq!(largest.to_vec().unwrap(), [last]);
}

fn tickets_from_atomics_are_handed_out_once(run: &Run<'_>) {
    let (next, sum, slots) = (run.zeroes::<u32>(1), run.zeroes::<u64>(1), run.zeroes::<u32>(100));
    let arguments = [(&next).into(), (&sum).into(), (&slots).into(), 100u32.into(), N.into()];
    run.launch("tickets", GRID, BLOCK, &arguments);
    let (last, total) = reference::tickets(N);
    assert_eq!((next.to_vec().unwrap(), sum.to_vec().unwrap()), (vec![last], vec![total]));
    let slots = slots.to_vec().unwrap();
    assert!(reference::tickets_are_possible(&slots, N), "{slots:?}");
}

fn divides<T: Element>(run: &Run<'_>, kernel: &str, a: &[T], b: &[T], expected: impl Fn(T, T) -> (T, T)) {
    let n = a.len();
    let (quotient, remainder) = (run.zeroes::<T>(n), run.zeroes::<T>(n));
    let (da, db) = (run.upload(a), run.upload(b));
    let arguments = [(&quotient).into(), (&remainder).into(), (&da).into(), (&db).into(), (n as u32).into()];
    run.launch(kernel, GRID, BLOCK, &arguments);
    let (quotient, remainder) = (quotient.to_vec().unwrap(), remainder.to_vec().unwrap());
    for i in 0..n {
        assert_eq!((quotient[i], remainder[i]), expected(a[i], b[i]), "{kernel}: {:?} / {:?}", a[i], b[i]);
    }
}

fn division_of_32_bits(run: &Run<'_>) {
    // Divisors of every size that are not zero.
    let a = numbers(N, 12);
    let b: Vec<u32> = (0..).zip(numbers(N, 13)).map(|(i, x): (u32, u32)| (x >> (i % 32)).max(1)).collect();
    divides(run, "divide_u32", &a, &b, |a, b| (a / b, a % b));
    let signed = |v: &[u32]| v.iter().map(|x| *x as i32).collect::<Vec<_>>();
    divides(run, "divide_i32", &signed(&a), &signed(&b), |a, b| (a.wrapping_div(b), a.wrapping_rem(b)));
}

fn division_of_64_bits(run: &Run<'_>) {
    let a = wide(N, 12);
    let b: Vec<u64> = (0..).zip(wide(N, 13)).map(|(i, x): (u32, u64)| (x >> (i % 64)).max(1)).collect();
    divides(run, "divide_u64", &a, &b, |a, b| (a / b, a % b));
    let signed = |v: &[u64]| v.iter().map(|x| *x as i64).collect::<Vec<_>>();
    divides(run, "divide_i64", &signed(&a), &signed(&b), |a, b| (a.wrapping_div(b), a.wrapping_rem(b)));
}

fn division_by_constants(run: &Run<'_>) {
    let x = wide(N, 20);
    let (out, input) = (run.zeroes::<u64>(x.len()), run.upload(&x));
    run.launch("divide_constant", GRID, BLOCK, &[(&out).into(), (&input).into(), N.into()]);
    let expected: Vec<u64> = x.iter().map(|x| reference::divide_constant(*x)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

fn mandelbrot_leaves_its_loop_lane_by_lane(run: &Run<'_>) {
    let view = reference::View { left: -2.0, top: -1.25, pixel: 0.06, limit: 100 };
    let (width, height) = (50u32, 42u32);
    let steps = run.zeroes::<u32>((width * height) as usize);
    let arguments = [
        (&steps).into(),
        width.into(),
        height.into(),
        view.left.into(),
        view.top.into(),
        view.pixel.into(),
        view.limit.into(),
    ];
    run.launch("mandelbrot", [7, 6, 1], [8, 8, 1], &arguments);
    assert_eq!(steps.to_vec().unwrap(), reference::mandelbrot(width, height, view));
}

fn transpose_through_shared_memory(run: &Run<'_>) {
    // Ragged edges in both directions.
    let (width, height) = (70u32, 45u32);
    let input = floats(width * height, 14);
    let (out, source) = (run.zeroes::<f32>(input.len()), run.upload(&input));
    let arguments = [(&out).into(), (&source).into(), width.into(), height.into()];
    run.launch("transpose", [width.div_ceil(32), height.div_ceil(32), 1], [32, 8, 1], &arguments);
    assert_eq!(out.to_vec().unwrap(), reference::transpose(&input, width as usize));
}

fn strided_copy_with_negative_strides(run: &Run<'_>) {
    for (to, from) in [(1i64, 1i64), (3, 2), (-3, 2), (1, -4), (-2, -1)] {
        let n = 500u32;
        let (source, mut expected) = (numbers(2000, 21), numbers(2000, 22));
        let (input, out) = (run.upload(&source), run.upload(&expected));
        // A negative stride starts at the end.
        let origin = |stride: i64| if stride < 0 { 1999 } else { 0 };
        let at = |buffer: &Buffer<u32>, stride| buffer.address() + 4 * origin(stride) as u64;
        let arguments = [at(&out, to).into(), at(&input, from).into(), n.into(), to.into(), from.into()];
        run.launch("strided_copy", GRID, BLOCK, &arguments);
        reference::strided_copy(&mut expected, origin(to), to, &source, origin(from), from, n).unwrap();
        assert_eq!(out.to_vec().unwrap(), expected, "strides {to} and {from}");
    }
}

fn softmax_within_its_tolerance(run: &Run<'_>) {
    for columns in [5u32, 128, 300] {
        let rows = 4;
        let input: Vec<f32> = floats(rows * columns, 23).into_iter().map(|x| x / 6.4).collect();
        let (out, source) = (run.zeroes::<f32>(input.len()), run.upload(&input));
        run.launch("softmax", [rows, 1, 1], [128, 1, 1], &[(&out).into(), (&source).into(), columns.into()]);
        let expected = reference::softmax(&input, columns as usize);
        for (i, (got, expected)) in out.to_vec().unwrap().iter().zip(&expected).enumerate() {
            let difference = (got - expected).abs() / expected;
            assert!(difference <= reference::SOFTMAX_TOLERANCE, "{i}: {got:e}, not {expected:e}");
        }
    }
}

fn half2_arithmetic(run: &Run<'_>) {
    let finite = |seed| numbers(N, seed).into_iter().map(|x| x & 0xbbff_bbff).collect::<Vec<_>>();
    let (a, b) = (finite(15), finite(16));
    let (da, db) = (run.upload(&a), run.upload(&b));
    let out = [(); 3].map(|()| run.zeroes::<u32>(N as usize));
    let arguments =
        [(&out[0]).into(), (&out[1]).into(), (&out[2]).into(), (&da).into(), (&db).into(), N.into()];
    run.launch("half2_ops", GRID, BLOCK, &arguments);
    let out = out.map(|buffer| buffer.to_vec().unwrap());
    for i in 0..N as usize {
        assert_eq!((out[0][i], out[1][i], out[2][i]), reference::half2_ops(a[i], b[i]), "{i}");
    }
}

fn constants_and_globals_with_first_values(run: &Run<'_>) {
    let x = floats(N, 17);
    let (dx, out) = (run.upload(&x), run.zeroes::<f32>(N as usize));
    run.launch("polynomial", GRID, BLOCK, &[(&out).into(), (&dx).into(), N.into()]);
    assert_eq!(out.to_vec().unwrap(), x.iter().map(|x| reference::polynomial(*x)).collect::<Vec<_>>());

    // One module, so that launches after each other see the same globals.
    let module = run.module("constants");
    let (out, visits) = (run.zeroes::<u32>(N as usize), run.zeroes::<u32>(16));
    let (expected, growth) = reference::lookup(3, N);
    let lookup = module.kernel("lookup").unwrap();
    for _ in 0..2 {
        lookup.launch(GRID, BLOCK, &[(&out).into(), 3u32.into(), N.into()]).unwrap();
    }
    module.kernel("read_visits").unwrap().launch([1, 1, 1], [16, 1, 1], &[(&visits).into()]).unwrap();
    assert_eq!(out.to_vec().unwrap(), expected);
    assert_eq!(visits.to_vec().unwrap(), growth.map(|visits| 2 * visits));
}

fn local_arrays_and_calls(run: &Run<'_>) {
    let input = numbers(N, 18);
    let (source, out) = (run.upload(&input), run.zeroes::<u32>(N as usize));
    let arguments = [(&out).into(), (&source).into(), N.into()];
    run.launch("local_array", GRID, BLOCK, &arguments);
    let expected: Vec<u32> = input.iter().map(|x| reference::local_array(*x)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
    run.launch("recursion", GRID, BLOCK, &arguments);
    let expected: Vec<u32> = input.iter().map(|x| reference::recursion(*x)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

fn deep_local_memory_grown_on_demand(run: &Run<'_>) {
    let before = run.device.local_memory_per_thread();
    let kernel = run.kernel("deep_local");
    let after = run.device.local_memory_per_thread();
    assert!(before < 8192 && after >= 8192, "{before} bytes, then {after}");
    let out = run.zeroes::<u32>(100);
    kernel.launch([2, 1, 1], [64, 1, 1], &[(&out).into(), 7u32.into(), 100u32.into()]).unwrap();
    let expected: Vec<u32> = (0..100).map(|i| reference::deep_local(7, i)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

fn blocks_that_wait_for_each_other(run: &Run<'_>) {
    let (turn, log) = (run.zeroes::<u32>(1), run.zeroes::<u32>(20));
    run.launch("handshake", [2, 1, 1], [1, 1, 1], &[(&turn).into(), (&log).into(), 10u32.into()]);
    assert_eq!(log.to_vec().unwrap(), reference::handshake(10));
    assert_eq!(turn.to_vec().unwrap(), [20]);
}

fn reversal_in_dynamic_shared_memory(run: &Run<'_>) {
    // The largest is more than code gets without asking for it.
    for block in [32u32, 96, 1024] {
        let input = numbers(3 * block, 24);
        let (out, source) = (run.zeroes::<u32>(input.len()), run.upload(&input));
        let shared = if block == 1024 { 90 << 10 } else { 4 * block };
        let arguments = [(&out).into(), (&source).into()];
        run.launch_with_shared("reverse", [3, 1, 1], [block, 1, 1], shared, &arguments);
        assert_eq!(out.to_vec().unwrap(), reference::reverse(&input, block as usize), "blocks of {block}");
    }
}

fn scalars_and_a_struct_by_value(run: &Run<'_>) {
    let out = run.zeroes::<u32>(N as usize);
    run.launch("iota", GRID, BLOCK, &[(&out).into(), N.into(), 0xffff_ff00u32.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::iota(N, 0xffff_ff00));

    let pair = reference::Pair { first: 0x1234_5678, second: 0x9abc_def0_1122_3344, third: 0x5a };
    let out = run.zeroes::<u64>(9);
    let arguments = [
        (&out).into(),
        0xa5u8.into(),
        0xbeefu16.into(),
        0xdead_beefu32.into(),
        0x0123_4567_89ab_cdefu64.into(),
        1.5f32.into(),
        (-2.25f64).into(),
        Argument::bytes(pair.to_bytes()),
    ];
    run.launch("scalars", [1, 1, 1], [1, 1, 1], &arguments);
    let expected = reference::scalars((0xa5, 0xbeef, 0xdead_beef, 0x0123_4567_89ab_cdef), (1.5, -2.25), pair);
    assert_eq!(out.to_vec().unwrap(), expected);
}

fn geometry_in_all_three_dimensions(run: &Run<'_>) {
    for (grid, block) in [([3, 2, 2], [5, 3, 2]), ([1, 1, 7], [1, 1, 64]), ([2, 1, 1], [1, 33, 1])] {
        let expected = reference::geometry(grid, block);
        let out = run.zeroes::<u32>(8 * expected.len());
        run.launch("geometry", grid, block, &[(&out).into()]);
        assert_eq!(out.to_vec().unwrap().as_chunks::<8>().0, expected, "{grid:?} of {block:?}");
    }
}

fn a_kernel_without_parameters(run: &Run<'_>) {
    run.launch("empty", [7, 5, 3], [1024, 1, 1], &[]);
}

fn what_faults_elsewhere_works_in_bounds(run: &Run<'_>) {
    let words = run.zeroes::<u32>(16);
    let arguments = [(&words).into(), 20i64.into(), 7u32.into(), 40u32.into()];
    run.launch("store_at", [2, 1, 1], [32, 1, 1], &arguments);
    let mut expected = [0; 16];
    expected[5] = 7;
    assert_eq!(words.to_vec().unwrap(), expected);

    let (out, source) = (run.zeroes::<u64>(1), run.upload(&wide(4, 25)));
    run.launch("load_at", [1, 1, 1], [1, 1, 1], &[(&out).into(), (&source).into(), 24i64.into()]);
    assert_eq!(out.to_vec().unwrap(), wide(4, 25)[3..]);

    let out = run.zeroes::<u32>(32);
    run.launch("shared_store_at", [1, 1, 1], [32, 1, 1], &[(&out).into(), 36u32.into()]);
    let expected: Vec<u32> = (0..32).map(|i| if i == 9 { 7 } else { i }).collect();
    assert_eq!(out.to_vec().unwrap(), expected);

    let out = run.zeroes::<u32>(64);
    run.launch("trap", [2, 1, 1], [32, 1, 1], &[(&out).into(), 64u32.into()]);
    assert_eq!(out.to_vec().unwrap(), (0..64).collect::<Vec<u32>>());
}

fn the_probes_body_before_it_is_replaced(run: &Run<'_>) {
    let input = numbers(24 * 1024 * 4, 26);
    let constants: [u32; 16] = numbers(16, 27).try_into().unwrap();
    let (out, source) = (run.zeroes::<u32>(input.len()), run.upload(&input));
    let constant_bytes: Vec<u8> = constants.iter().flat_map(|word| word.to_le_bytes()).collect();
    let arguments = [(&out).into(), (&source).into(), Argument::bytes(constant_bytes)];
    run.launch("probe", [8, 1, 1], [128, 1, 1], &arguments);
    assert!(out.to_vec().unwrap() == reference::probe(&input, constants));
}

fn locks_that_lanes_of_a_warp_take_in_turn(run: &Run<'_>) {
    let (lock, counter) = (run.zeroes::<u32>(1), run.zeroes::<u32>(1));
    run.launch("spin_lock", [3, 1, 1], [64, 1, 1], &[(&lock).into(), (&counter).into(), 3u32.into()]);
    assert_eq!((lock.to_vec().unwrap(), counter.to_vec().unwrap()), (vec![0], vec![3 * 64 * 3]));
}

fn warps_that_wait_for_each_other_without_a_barrier(run: &Run<'_>) {
    let input = numbers(1000, 28);
    let (out, source) = (run.zeroes::<u32>(1000), run.upload(&input));
    run.launch("relay", [1, 1, 1], [64, 1, 1], &[(&out).into(), (&source).into(), 1000u32.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::relay(&input));
}

fn a_barrier_of_all_blocks_by_atomics(run: &Run<'_>) {
    // More blocks than this computer has threads, fewer than the smallest GPU has multiprocessors.
    let (blocks, rounds) = (40u32, 3u32);
    let (arrived, values) = (run.zeroes::<u32>(1), run.zeroes::<u32>(2 * blocks as usize));
    let arguments = [(&arrived).into(), (&values).into(), rounds.into()];
    run.launch("grid_barrier", [blocks, 1, 1], [32, 1, 1], &arguments);
    assert_eq!(values.to_vec().unwrap(), reference::grid_barrier(blocks, rounds));
    assert_eq!(arrived.to_vec().unwrap(), [blocks * rounds]);
}

fn sums_that_look_back_over_more_blocks_than_threads(run: &Run<'_>) {
    let input = numbers(200 * 128 - 50, 29);
    let n = input.len() as u32;
    let (out, source) = (run.zeroes::<u32>(input.len()), run.upload(&input));
    let (state, ticket) = (run.zeroes::<u64>(200), run.zeroes::<u32>(1));
    let arguments = [(&out).into(), (&source).into(), (&state).into(), (&ticket).into(), n.into()];
    run.launch("look_back", [200, 1, 1], [128, 1, 1], &arguments);
    assert!(out.to_vec().unwrap() == reference::look_back(&input));
}

fn votes_and_reductions_of_a_warp(run: &Run<'_>) {
    let mut input = numbers(512, 30);
    // Both outcomes of each vote.
    input[40] = 5;
    input[64..96].iter_mut().for_each(|value| *value &= !3);
    let (out, source) = (run.zeroes::<u32>(512 / 4), run.upload(&input));
    run.launch("votes", [2, 1, 1], [256, 1, 1], &[(&out).into(), (&source).into()]);
    assert_eq!(out.to_vec().unwrap(), reference::votes(&input));
}

fn matches_in_a_warp(run: &Run<'_>) {
    let mut input = numbers(512, 31);
    input[128..160].iter_mut().for_each(|value| *value = *value % 1024 + 5 * 1024);
    let (out, source) = (run.zeroes::<u32>(1024), run.upload(&input));
    run.launch("matches", [4, 1, 1], [128, 1, 1], &[(&out).into(), (&source).into()]);
    assert_eq!(out.to_vec().unwrap(), reference::matches(&input));
}

fn shuffles_of_every_kind(run: &Run<'_>) {
    let input = numbers(256, 32);
    let (out, source) = (run.zeroes::<u32>(6 * 256), run.upload(&input));
    run.launch("shuffles", [2, 1, 1], [128, 1, 1], &[(&out).into(), (&source).into()]);
    assert_eq!(out.to_vec().unwrap(), reference::shuffles(&input));
}

/// Launches a kernel of a module that others of it have run in.
fn launch_of(module: &Module, kernel: &str, arguments: &[Argument]) {
    module.kernel(kernel).unwrap().launch(GRID, BLOCK, arguments).unwrap();
}

fn virtual_calls_of_several_classes(run: &Run<'_>) {
    let input = numbers(N, 33);
    let (source, out) = (run.upload(&input), run.zeroes::<u32>(N as usize));
    let shapes = run.zeroes::<u32>(4 * N as usize);
    // The objects point into their module's memory, so one module makes and calls them.
    let module = run.module("calls");
    launch_of(&module, "make_shapes", &[(&shapes).into(), (&source).into(), N.into()]);
    launch_of(&module, "virtual_calls", &[(&out).into(), (&shapes).into(), N.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::virtual_calls(&input));
}

fn calls_through_function_pointers(run: &Run<'_>) {
    let input = numbers(N, 34);
    let (source, out) = (run.upload(&input), run.zeroes::<u32>(N as usize));
    let chosen = run.zeroes::<u64>(N as usize);
    let module = run.module("calls");
    launch_of(&module, "choose_functions", &[(&chosen).into(), (&source).into(), N.into()]);
    launch_of(&module, "function_pointers", &[(&out).into(), (&chosen).into(), (&source).into(), N.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::function_pointers(&input));
}

fn a_switch_of_many_cases(run: &Run<'_>) {
    let (input, old) = (numbers(N, 35), numbers(N, 36));
    let (source, out) = (run.upload(&input), run.upload(&old));
    run.launch("many_cases", GRID, BLOCK, &[(&out).into(), (&source).into(), N.into()]);
    assert_eq!(out.to_vec().unwrap(), reference::many_cases(&old, &input));
}

fn atomics_on_shared_and_global_words(run: &Run<'_>) {
    let input = numbers(N, 37);
    let first = |seed: u32| {
        let mut words: [u32; 9] = numbers(9, seed).try_into().unwrap();
        // In the range that the wrapping ones count through.
        (words[6], words[7]) = (3, 8);
        let longs: [u64; 3] = wide(3, seed).try_into().unwrap();
        reference::AtomicWords { words, longs, sum: 0.5 }
    };
    let (global, shared) = (first(38), first(39));
    let words = run.upload(&[global.words, shared.words].concat());
    let longs = run.upload(&[global.longs, shared.longs].concat());
    let (sums, source) = (run.upload(&[global.sum, shared.sum]), run.upload(&input));
    let arguments = [(&words).into(), (&longs).into(), (&sums).into(), (&source).into(), N.into()];
    run.launch("atomics_of_every_kind", GRID, BLOCK, &arguments);
    // Only the first block's threads change its shared words.
    let (global, shared) = (global.after(&input), shared.after(&input[..256]));
    assert_eq!(words.to_vec().unwrap(), [global.words, shared.words].concat());
    assert_eq!(longs.to_vec().unwrap(), [global.longs, shared.longs].concat());
    assert_eq!(sums.to_vec().unwrap(), [global.sum, shared.sum]);
}

fn tensor_cores_on_whole_numbers(run: &Run<'_>) {
    let tiles = 6;
    let small = |n: u32, seed| numbers(n, seed).into_iter().map(|x| (x % 33) as i32 - 16).collect::<Vec<_>>();
    let (a, b, c) = (small(256 * tiles, 40), small(128 * tiles, 41), small(128 * tiles, 42));
    let halves = |values: &[i32]| {
        run.upload(&values.iter().map(|value| reference::half_bits(*value)).collect::<Vec<u16>>())
    };
    let (da, db) = (halves(&a), halves(&b));
    let dc = run.upload(&c.iter().map(|value| *value as f32).collect::<Vec<f32>>());
    let out = run.zeroes::<f32>(c.len());
    let arguments = [(&out).into(), (&da).into(), (&db).into(), (&dc).into()];
    run.launch("mma_f16", [tiles, 1, 1], [32, 1, 1], &arguments);
    let tile = |i: usize| reference::mma(&a[256 * i..][..256], &b[128 * i..][..128], &c[128 * i..][..128]);
    assert_eq!(out.to_vec().unwrap(), (0..tiles as usize).flat_map(tile).collect::<Vec<f32>>());
}

fn asynchronous_copies_to_shared_memory(run: &Run<'_>) {
    let input = numbers(4 * 64 * 5, 43);
    let (out, source) = (run.zeroes::<u32>(input.len()), run.upload(&input));
    run.launch("async_copy", [5, 1, 1], [64, 1, 1], &[(&out).into(), (&source).into()]);
    let expected: Vec<u32> = input.iter().map(|x| x.wrapping_mul(2).wrapping_add(1)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

fn integer_operations_on_bits(run: &Run<'_>) {
    let mut input = numbers(N, 44);
    input[..6].copy_from_slice(&[0, u32::MAX, 1, 1 << 31, 0, 0]);
    let (out, source) = (run.zeroes::<u32>(12 * input.len()), run.upload(&input));
    run.launch("bits", GRID, BLOCK, &[(&out).into(), (&source).into(), N.into()]);
    let (out, expected) = (out.to_vec().unwrap(), reference::bits(&input));
    for (i, (got, expected)) in out.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "word {} of element {}", i % 12, i / 12);
    }
}

#[test]
fn every_fixture_kernel_has_a_case() {
    let covered: BTreeSet<&str> =
        COVERED.iter().chain(crate::runtime::COVERED).chain(crate::textures::COVERED).copied().collect();
    let present: BTreeSet<&str> =
        fixtures::MODULES.iter().flat_map(|module| module.kernels).copied().collect();
    assert_eq!(covered, present);
}
