//! How fast the tensor-core forms run here, in multiply-adds a second on one core.
//!
//! `cargo run --release -p sass --features tools --example tensor_speed [-- TEXT…]`: those whose names have all of the
//! texts.

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::hint::black_box;
    use std::time::Instant;

    use sass::lane::Rounding;
    use sass::lane::mma::{
        self, Accumulator, Factor, FloatMatrix, Integer, IntegerMatrix, LANES, Numerics, Pair,
    };
    use sass::lane::mma::{
        Register,
        avx2::{Fragment, Scratch},
    };

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 32) as u32
        }

        /// A number between an eighth and two, of either sign; or a whole one up to four.
        fn number(&mut self, whole: bool, exponent_bits: u32, fraction_bits: u32) -> u32 {
            let bias = (1 << (exponent_bits - 1)) - 1;
            let (sign, below, any) = (self.next() >> 31, self.next() % 4, self.next());
            let sign = sign << (exponent_bits + fraction_bits);
            if whole {
                let power = below % 3;
                // 1, 2, 3 or 4.
                let half = any & u32::from(power == 1);
                return sign | (bias + power) << fraction_bits | half << (fraction_bits - 1);
            }
            sign | (bias - below) << fraction_bits | any & ((1 << fraction_bits) - 1)
        }

        fn fragment(&mut self, factor: Factor, whole: bool) -> [Register; 4] {
            std::array::from_fn(|_| {
                std::array::from_fn(|_| match factor {
                    Factor::F16 => self.number(whole, 5, 10) << 16 | self.number(whole, 5, 10),
                    Factor::Bf16 => self.number(whole, 8, 7) << 16 | self.number(whole, 8, 7),
                    Factor::Tf32 => self.number(whole, 8, 10) << 13,
                    Factor::E4M3 => (0..4).fold(0, |word, _| word << 8 | self.number(whole, 4, 3)),
                    Factor::E5M2 => (0..4).fold(0, |word, _| word << 8 | self.number(whole, 5, 2)),
                })
            })
        }
    }

    /// The shortest of many runs of a product of so many multiply-adds.
    fn measure(name: &str, products: usize, mut run: impl FnMut()) {
        if !std::env::args().skip(1).all(|text| name.contains(&text)) {
            return;
        }
        let mut best = f64::MAX;
        for _ in 0..3000 {
            let start = Instant::now();
            for _ in 0..16 {
                run();
            }
            best = best.min(start.elapsed().as_secs_f64() / 16.0);
        }
        println!(
            "{name:44} {:7.2} G multiply-adds/s, {:8.1} ns each",
            products as f64 / best / 1e9,
            best * 1e9
        );
    }

    fn floats(scratch: &mut Option<Scratch>) {
        let mut random = Random(1);
        let units = [("Hopper", Numerics::HOPPER), ("Ampere", Numerics::AMPERE), ("Ada", Numerics::ADA_QMMA)];
        let factors = [
            (Factor::F16, 16),
            (Factor::Bf16, 16),
            (Factor::Tf32, 8),
            (Factor::E4M3, 32),
            (Factor::E5M2, 32),
        ];
        for (unit, numerics) in units {
            for (factor, k) in factors.into_iter().filter(|(factor, _)| factor.is_fp8() == (unit == "Ada")) {
                for accumulator in [Accumulator::F32, Accumulator::F16] {
                    let form = FloatMatrix { factors: [factor; 2], accumulator, k, sparse: false };
                    let Some(registers) = form.registers() else { continue };
                    for whole in [false, true] {
                        let (a, b) = (random.fragment(factor, whole), random.fragment(factor, whole));
                        let (a, b) = (&a[..registers.a], &b[..registers.b]);
                        let kind = if whole { "small whole" } else { "any" };
                        let name = format!("{unit}, {factor:?} to {accumulator:?}, {kind}");
                        let mut d = [[0; LANES]; 4];
                        measure(&format!("{name}, plain"), 16 * 8 * k, || {
                            let c = &d[..registers.c];
                            let (a, b) = (black_box(a), black_box(b));
                            d = mma::float_mma(form, numerics, a, b, c, None).unwrap_or(d);
                        });
                        let Some(scratch) = scratch else { continue };
                        d = [[0; LANES]; 4];
                        measure(&format!("{name}, AVX2"), 16 * 8 * k, || {
                            let operands = [black_box(a), black_box(b)].map(Fragment::unnamed);
                            // SAFETY: there is room, so the processor has the features.
                            unsafe {
                                mma::avx2::float_mma(form, numerics, operands, &mut d[..registers.c], scratch)
                            };
                        });
                    }
                }
            }
        }
    }

    fn integers_and_doubles(scratch: &mut Option<Scratch>) {
        let mut random = Random(2);
        for (factor, k) in [(Integer::S8, 32), (Integer::U4, 64)] {
            let form = IntegerMatrix { rows: 16, k, factors: [factor; 2], saturate: false, sparse: false };
            let (a, b) = (random.fragment(Factor::F16, false), random.fragment(Factor::F16, false));
            let (b, c) = (&b[..2], [[0; LANES]; 4]);
            measure(&format!("{factor:?}, plain"), 16 * 8 * k, || {
                black_box(mma::imma(form, black_box(&a), black_box(b), &c, None));
            });
            let Some(scratch) = scratch else { continue };
            measure(&format!("{factor:?}, AVX2"), 16 * 8 * k, || {
                // SAFETY: there is room, so the processor has the features.
                black_box(unsafe { mma::avx2::imma(form, [black_box(&a), black_box(b), &c], scratch) });
            });
        }
        let a: [Pair; 8] = [std::array::from_fn(|lane| (lane as f64).to_bits()); 8];
        let (b, c) = ([a[0]; 4], [a[0]; 4]);
        measure("FP64, plain", 16 * 8 * 16, || {
            black_box(mma::dmma(16, 16, Rounding::Nearest, black_box(&a), black_box(&b), &c));
        });
        let Some(scratch) = scratch else { return };
        measure("FP64, AVX2", 16 * 8 * 16, || {
            // SAFETY: there is room, so the processor has the features.
            black_box(unsafe { mma::avx2::dmma(16, 16, [black_box(&a), black_box(&b), &c], scratch) });
        });
    }

    pub fn run() {
        use std::is_x86_feature_detected as has;
        let features = has!("avx2") && has!("f16c") && has!("fma");
        // SAFETY: the processor has the features.
        let mut scratch = features.then(|| unsafe { Scratch::new() });
        floats(&mut scratch);
        integers_and_doubles(&mut scratch);
    }
}

fn main() {
    #[cfg(target_arch = "x86_64")]
    x86_64::run();
    #[cfg(not(target_arch = "x86_64"))]
    eprintln!("there is nothing to compare the plain forms with on this architecture");
}
