//! How fast the tensor-core forms run here, in multiply-adds a second on one core.
//!
//! `cargo run --release -p sass --example tensor_speed`

use std::hint::black_box;
use std::time::Instant;

use sass::lane::mma::{self, Accumulator, Factor, FloatMatrix, LANES, Numerics, Register};

fn numbers(seed: &mut u64, half: bool) -> Register {
    std::array::from_fn(|_| {
        let mut next = || {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 40) as u32
        };
        if half {
            // FP16 between 2^-7 and 1.
            let one = |x: u32| (0x2000 + (x & 0x1bff)) | (x >> 1 & 0x8000);
            one(next()) | one(next()) << 16
        } else {
            (next() as f32 / 65536.0).to_bits()
        }
    })
}

/// Seconds that this thread has run; where the system does not say, seconds that have passed.
fn clock(start: Instant) -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = ran.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |ran| ran / 1e9)
}

fn measure(name: &str, mut run: impl FnMut(&mut [Register; 4])) {
    let mut d = [[0; LANES]; 4];
    let rounds = 50_000;
    let start = Instant::now();
    let before = clock(start);
    for _ in 0..rounds {
        run(&mut d);
    }
    let seconds = clock(start) - before;
    let rate = f64::from(rounds) * 16.0 * 8.0 * 16.0 / seconds;
    println!(
        "{name:40} {:8.2} G multiply-adds/s, {:6.1} ns each",
        rate / 1e9,
        seconds / f64::from(rounds) * 1e9
    );
    black_box(d);
}

fn main() {
    let mut seed = 1;
    let a: [Register; 4] = std::array::from_fn(|_| numbers(&mut seed, true));
    let b: [Register; 2] = std::array::from_fn(|_| numbers(&mut seed, true));
    for (name, numerics) in [("Hopper", Numerics::HOPPER), ("Ampere", Numerics::AMPERE)] {
        for accumulator in [Accumulator::F32, Accumulator::F16] {
            let registers = if accumulator == Accumulator::F32 { 4 } else { 2 };
            let form = FloatMatrix { factors: [Factor::F16; 2], accumulator, k: 16, sparse: false };
            measure(&format!("{name}, HMMA.16816.{accumulator:?}, long way"), |d| {
                let (a, b) = (black_box(&a), black_box(&b));
                *d = mma::float_mma(form, numerics, a, b, &d[..registers], None).unwrap_or(*d);
            });
            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c") {
                // SAFETY: the processor has the features, as was just asked.
                let mut scratch = unsafe { mma::avx2::Scratch::new() };
                measure(&format!("{name}, HMMA.16816.{accumulator:?}, AVX2"), |d| {
                    let operands: [&[Register]; 3] = [black_box(&a), black_box(&b), &d[..registers]];
                    // SAFETY: as above.
                    let result = unsafe { mma::avx2::float_mma(form, numerics, operands, &mut scratch) };
                    *d = *result.unwrap_or(d);
                });
            }
        }
    }
}
