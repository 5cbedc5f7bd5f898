//! Fixture kernels through the whole driver on simulated GPUs, against the host references.

use std::sync::Arc;

use fixtures::reference;
use nv_driver::{Argument, Buffer, Device, Element, Module, Options, System};
use nv_simulator::{machine::Machine, profile::Profile};

/// Runs `body` on a fresh machine of each profile that the cubins are for.
fn on_each_gpu(body: impl Fn(&Device)) {
    for profile in [Profile::ad102(), Profile::h200()] {
        let machine: Arc<Machine> = Machine::builder().driver("580.159.04").gpu(profile).build().unwrap();
        let system = System::open(machine.clone()).unwrap();
        let device = Device::open_on(&system, 0, Options::default()).unwrap();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&device)));
        if let Err(panic) = outcome {
            eprintln!("on sm_{}: {:#?}", device.sm(), machine.faults());
            std::panic::resume_unwind(panic);
        }
        assert!(machine.faults().is_empty(), "{:?}", machine.faults());
    }
}

fn launch(device: &Device, kernel: &str, grid: [u32; 3], block: [u32; 3], arguments: &[Argument]) {
    let cubin = fixtures::cubin(&format!("sm_{}", device.sm()), kernel).unwrap();
    let module = Module::load(device, &cubin).unwrap();
    let result =
        module.kernel(kernel).unwrap().launch(grid, block, arguments).and_then(|()| device.synchronize());
    result.unwrap_or_else(|error| panic!("{kernel} on sm_{}: {error}", device.sm()));
}

fn zeroes<T: Element>(device: &Device, len: usize) -> Buffer<T> {
    device.buffer_from(&vec![T::default(); len]).unwrap()
}

fn numbers(n: u32, seed: u32) -> Vec<u32> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    (0..n).map(step).collect()
}

fn floats(n: u32, seed: u32) -> Vec<f32> {
    numbers(n, seed).into_iter().map(|x| (x >> 8) as f32 / 65_536.0 - 128.0).collect()
}

const N: u32 = 1000;
const LINE: ([u32; 3], [u32; 3]) = ([4, 1, 1], [256, 1, 1]);

#[test]
fn vector_add_matches_the_host() {
    on_each_gpu(|device| {
        let (a, b) = (floats(N, 1), floats(N, 2));
        let out = zeroes::<f32>(device, N as usize);
        let (da, db) = (device.buffer_from(&a).unwrap(), device.buffer_from(&b).unwrap());
        launch(device, "vector_add", LINE.0, LINE.1, &[(&out).into(), (&da).into(), (&db).into(), N.into()]);
        assert_eq!(out.to_vec().unwrap(), reference::vector_add(&a, &b));
    });
}

#[test]
fn saxpy_fuses_as_the_host_does() {
    on_each_gpu(|device| {
        let (x, y) = (floats(N, 3), floats(N, 4));
        let (dx, dy) = (device.buffer_from(&x).unwrap(), device.buffer_from(&y).unwrap());
        launch(device, "saxpy", LINE.0, LINE.1, &[(&dy).into(), (&dx).into(), 1.7f32.into(), N.into()]);
        assert_eq!(dy.to_vec().unwrap(), reference::saxpy(&y, &x, 1.7));
    });
}

#[test]
fn daxpy_fuses_in_double_precision() {
    on_each_gpu(|device| {
        let double = |seed| floats(N, seed).into_iter().map(|x| f64::from(x) / 3.0).collect::<Vec<_>>();
        let (x, y) = (double(5), double(6));
        let (dx, dy) = (device.buffer_from(&x).unwrap(), device.buffer_from(&y).unwrap());
        launch(device, "daxpy", LINE.0, LINE.1, &[(&dy).into(), (&dx).into(), 0.1f64.into(), N.into()]);
        assert_eq!(dy.to_vec().unwrap(), reference::daxpy(&y, &x, 0.1));
    });
}

#[test]
fn matmul_through_shared_tiles_is_bit_exact() {
    on_each_gpu(|device| {
        let (m, n, k) = (40u32, 50u32, 33u32);
        let (a, b) = (floats(m * k, 7), floats(k * n, 8));
        let (da, db) = (device.buffer_from(&a).unwrap(), device.buffer_from(&b).unwrap());
        let out = zeroes::<f32>(device, (m * n) as usize);
        let arguments = [(&out).into(), (&da).into(), (&db).into(), m.into(), n.into(), k.into()];
        launch(device, "matmul", [n.div_ceil(16), m.div_ceil(16), 1], [16, 16, 1], &arguments);
        assert_eq!(out.to_vec().unwrap(), reference::matmul(&a, &b, m as usize, n as usize, k as usize));
    });
}

#[test]
fn block_sums_by_shuffles_match_in_order_and_bits() {
    on_each_gpu(|device| {
        let (words, reals) = (numbers(N, 9), floats(N, 10));
        let (dw, dr) = (device.buffer_from(&words).unwrap(), device.buffer_from(&reals).unwrap());
        let (ow, or) = (zeroes::<u32>(device, 4), zeroes::<f32>(device, 4));
        launch(device, "reduce_u32", LINE.0, LINE.1, &[(&ow).into(), (&dw).into(), N.into()]);
        launch(device, "reduce_f32", LINE.0, LINE.1, &[(&or).into(), (&dr).into(), N.into()]);
        assert_eq!(ow.to_vec().unwrap(), reference::reduce_u32(&words, 256));
        assert_eq!(or.to_vec().unwrap(), reference::reduce_f32(&reals, 256));
    });
}

#[test]
fn a_histogram_with_shared_and_global_atomics_counts_every_byte() {
    on_each_gpu(|device| {
        let data: Vec<u8> = numbers(10_000, 11).into_iter().map(|x| x as u8).collect();
        let (bins, largest) = (zeroes::<u32>(device, 256), zeroes::<u32>(device, 1));
        let input = device.buffer_from(&data).unwrap();
        let n = data.len() as u32;
        launch(
            device,
            "histogram",
            [8, 1, 1],
            [128, 1, 1],
            &[(&bins).into(), (&largest).into(), (&input).into(), n.into()],
        );
        let (expected, last) = reference::histogram(&data);
        assert_eq!(bins.to_vec().unwrap(), expected);
        assert_eq!(largest.to_vec().unwrap(), [last]);
    });
}

fn divides<T: Element>(device: &Device, kernel: &str, a: &[T], b: &[T], expected: &[(T, T)]) {
    let n = a.len();
    let (quotient, remainder) = (zeroes::<T>(device, n), zeroes::<T>(device, n));
    let (da, db) = (device.buffer_from(a).unwrap(), device.buffer_from(b).unwrap());
    let arguments = [(&quotient).into(), (&remainder).into(), (&da).into(), (&db).into(), (n as u32).into()];
    launch(device, kernel, LINE.0, LINE.1, &arguments);
    let got: Vec<(T, T)> = quotient.to_vec().unwrap().into_iter().zip(remainder.to_vec().unwrap()).collect();
    assert_eq!(got, expected, "{kernel} on sm_{}", device.sm());
}

/// Dividends, and divisors of every size that are not zero.
fn divisions() -> (Vec<u32>, Vec<u32>) {
    let shrink = |(i, x): (usize, u32)| (x >> (i % 32)).max(1);
    (numbers(N, 12), numbers(N, 13).into_iter().enumerate().map(shrink).collect())
}

#[test]
fn integer_division_of_32_bits_is_exact() {
    on_each_gpu(|device| {
        let (a, b) = divisions();
        let expected: Vec<_> = a.iter().zip(&b).map(|(a, b)| (a / b, a % b)).collect();
        divides(device, "divide_u32", &a, &b, &expected);
        let signed = |v: &[u32]| v.iter().map(|x| *x as i32).collect::<Vec<_>>();
        let (a, b) = (signed(&a), signed(&b));
        let expected: Vec<_> =
            a.iter().zip(&b).map(|(a, b)| (a.wrapping_div(*b), a.wrapping_rem(*b))).collect();
        divides(device, "divide_i32", &a, &b, &expected);
    });
}

#[test]
fn integer_division_of_64_bits_is_exact() {
    on_each_gpu(|device| {
        let (a, b) = divisions();
        let wide = |hi: &[u32], lo: &[u32]| -> Vec<u64> {
            hi.iter().zip(lo).map(|(h, l)| u64::from(*h) << 32 | u64::from(*l)).collect()
        };
        let shrink = |(i, x): (usize, u64)| (x >> (i % 64)).max(1);
        let (a, b): (_, Vec<u64>) =
            (wide(&a, &b), wide(&b, &a).into_iter().enumerate().map(shrink).collect());
        let expected: Vec<_> = a.iter().zip(&b).map(|(a, b)| (a / b, a % b)).collect();
        divides(device, "divide_u64", &a, &b, &expected);
    });
}

#[test]
fn mandelbrot_leaves_its_loop_early_lane_by_lane() {
    on_each_gpu(|device| {
        let view = reference::View { left: -2.0, top: -1.25, pixel: 0.06, limit: 100 };
        let (width, height) = (50u32, 42u32);
        let steps = zeroes::<u32>(device, (width * height) as usize);
        let arguments = [
            (&steps).into(),
            width.into(),
            height.into(),
            view.left.into(),
            view.top.into(),
            view.pixel.into(),
            view.limit.into(),
        ];
        launch(device, "mandelbrot", [7, 6, 1], [8, 8, 1], &arguments);
        assert_eq!(steps.to_vec().unwrap(), reference::mandelbrot(width, height, view));
    });
}

#[test]
fn transpose_through_shared_memory_moves_every_element() {
    on_each_gpu(|device| {
        let (width, height) = (64u32, 96u32);
        let input = floats(width * height, 14);
        let (out, source) = (zeroes::<f32>(device, input.len()), device.buffer_from(&input).unwrap());
        let arguments = [(&out).into(), (&source).into(), width.into(), height.into()];
        launch(device, "transpose", [width / 32, height / 32, 1], [32, 8, 1], &arguments);
        assert_eq!(out.to_vec().unwrap(), reference::transpose(&input, width as usize));
    });
}

#[test]
fn half2_arithmetic_rounds_as_the_card() {
    on_each_gpu(|device| {
        let finite = |seed| numbers(N, seed).into_iter().map(|x| x & 0xbbff_bbff).collect::<Vec<_>>();
        let (a, b) = (finite(15), finite(16));
        let (da, db) = (device.buffer_from(&a).unwrap(), device.buffer_from(&b).unwrap());
        let out = [(); 3].map(|()| zeroes::<u32>(device, N as usize));
        let arguments =
            [(&out[0]).into(), (&out[1]).into(), (&out[2]).into(), (&da).into(), (&db).into(), N.into()];
        launch(device, "half2_ops", LINE.0, LINE.1, &arguments);
        let out = out.map(|buffer| buffer.to_vec().unwrap());
        for i in 0..N as usize {
            assert_eq!((out[0][i], out[1][i], out[2][i]), reference::half2_ops(a[i], b[i]), "{i}");
        }
    });
}

#[test]
fn constants_and_initialised_globals_are_where_the_code_looks() {
    on_each_gpu(|device| {
        let x = floats(N, 17);
        let (dx, out) = (device.buffer_from(&x).unwrap(), zeroes::<f32>(device, N as usize));
        launch(device, "polynomial", LINE.0, LINE.1, &[(&out).into(), (&dx).into(), N.into()]);
        assert_eq!(out.to_vec().unwrap(), x.iter().map(|x| reference::polynomial(*x)).collect::<Vec<_>>());
        let out = zeroes::<u32>(device, N as usize);
        launch(device, "lookup", LINE.0, LINE.1, &[(&out).into(), 3u32.into(), N.into()]);
        assert_eq!(out.to_vec().unwrap(), reference::lookup(3, N).0);
    });
}

#[test]
fn local_arrays_and_calls_work_lane_by_lane() {
    on_each_gpu(|device| {
        let input = numbers(N, 18);
        let (source, out) = (device.buffer_from(&input).unwrap(), zeroes::<u32>(device, N as usize));
        launch(device, "local_array", LINE.0, LINE.1, &[(&out).into(), (&source).into(), N.into()]);
        assert_eq!(
            out.to_vec().unwrap(),
            input.iter().map(|x| reference::local_array(*x)).collect::<Vec<_>>()
        );
        launch(device, "recursion", LINE.0, LINE.1, &[(&out).into(), (&source).into(), N.into()]);
        assert_eq!(out.to_vec().unwrap(), input.iter().map(|x| reference::recursion(*x)).collect::<Vec<_>>());
    });
}

#[test]
fn two_blocks_that_wait_for_each_other_both_finish() {
    on_each_gpu(|device| {
        let (turn, log) = (zeroes::<u32>(device, 1), zeroes::<u32>(device, 20));
        launch(device, "handshake", [2, 1, 1], [1, 1, 1], &[(&turn).into(), (&log).into(), 10u32.into()]);
        assert_eq!(log.to_vec().unwrap(), reference::handshake(10));
    });
}
