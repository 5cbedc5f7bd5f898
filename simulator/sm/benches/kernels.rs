//! How fast kernels run: simulated on one worker, beside the same work in native Rust, in one run.
//!
//! `cargo bench -p nv-sm --bench kernels [-- NAME…]`. Every output is checked. The native figures are of one
//! thread: `scalar` keeps the compiler from using vectors, `vector` lets it, with the features that the interpreter
//! itself chooses. Figures are the best of several runs, by processor
//! time; machines are noisy, so compare ratios.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{Compile, Configuration, ConstantBuffer, Launch, Processor, Statistics};
use sass::lane::mma::{self, Accumulator, Factor, FloatMatrix, Integer, IntegerMatrix, Numerics, Register};

const CODE: u64 = 0x10_0000;
const BANK: u64 = 0x20_0000;
const DATA: u64 = 0x1000_0000;
const DATA_BYTES: u64 = 256 << 20;

/// A section of the cubin: name, bytes, `sh_info`.
type Section<'a> = (String, &'a [u8], u32);

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

fn sections(elf: &[u8]) -> Vec<Section<'_>> {
    let (at, count, names) = (number(elf, 0x28, 8), number(elf, 0x3c, 2), number(elf, 0x3e, 2));
    let field = |i: usize, offset, size| number(elf, at + 64 * i + offset, size);
    let base = field(names, 0x18, 8);
    (0..count)
        .map(|i| {
            let name = elf[base + field(i, 0, 4)..].split(|byte| *byte == 0).next().unwrap_or_default();
            let (offset, size) = (field(i, 0x18, 8), field(i, 0x20, 8));
            let bytes = if field(i, 4, 4) == 8 { &[][..] } else { &elf[offset..offset + size] };
            (String::from_utf8_lossy(name).into_owned(), bytes, field(i, 0x2c, 4) as u32)
        })
        .collect()
}

struct Gpu {
    processor: Processor,
    space: Arc<AddressSpace>,
    elf: Vec<u8>,
}

impl Gpu {
    fn new(threads: usize, compile: Compile) -> Self {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 16), (BANK, 1 << 16), (DATA, DATA_BYTES)] {
            let backing = Arc::new(Backing::new("bench", bytes).expect("memory"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("a free range");
        }
        let processor = Processor::new(Configuration { threads, compile, ..Configuration::default() });
        let elf = fixtures::bytes("bench/sm_89.cubin").expect("the fixture");
        Self { processor, space, elf }
    }

    fn write<T: Copy>(&self, at: u64, values: &[T], bytes: impl Fn(T) -> [u8; 4]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| bytes(*value)).collect();
        self.space.snapshot().write(DATA + at, &bytes).expect("mapped");
    }

    fn read<T>(&self, at: u64, count: usize, value: impl Fn([u8; 4]) -> T) -> Vec<T> {
        let mut bytes = vec![0; 4 * count];
        self.space.snapshot().read(DATA + at, &mut bytes).expect("mapped");
        bytes.chunks_exact(4).map(|b| value([b[0], b[1], b[2], b[3]])).collect()
    }

    fn launch(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        pointers: &[u64],
        words: &[u32],
    ) -> Launch {
        let sections = sections(&self.elf);
        let map = self.space.snapshot();
        let name = format!(".text.{kernel}");
        let (_, code, info) = sections.iter().find(|section| section.0 == name).expect("the kernel");
        // Nothing of another kernel stays behind this one: its branches would count as this one's.
        map.write(CODE, &[0; 1 << 16]).expect("mapped");
        map.write(CODE, code).expect("mapped");
        let shared = sections.iter().any(|section| section.0 == format!(".nv.shared.{kernel}"));
        let mut bank = vec![0; 0x160];
        for (i, v) in block.iter().chain(&grid).enumerate() {
            bank[4 * i..4 * i + 4].copy_from_slice(&v.to_le_bytes());
        }
        bank.extend(pointers.iter().flat_map(|pointer| (DATA + pointer).to_le_bytes()));
        bank.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        map.write(BANK, &bank).expect("mapped");
        let mut constant_buffers = [None; 8];
        constant_buffers[0] = Some(ConstantBuffer { address: BANK, bytes: bank.len() as u32 });
        Launch {
            program_address: CODE,
            grid,
            block,
            cluster: [1; 3],
            registers: info >> 24,
            shared_bytes: if shared { 4 << 10 } else { 0 },
            local_bytes: 0,
            barriers: 1,
            constant_buffers,
            shared_window: 0x7294_0000_0000,
            local_window: 0x7293_0000_0000,
            sm: 89,
            textures: nv_sm::Textures::default(),
            grid_id: 0,
        }
    }

    fn run(&self, launch: &Launch) -> Statistics {
        let stop = AtomicBool::new(false);
        self.processor.run(launch, &self.space.snapshot(), &stop).expect("the kernel runs")
    }
}

/// Processor time of this thread, in seconds: other programs on the machine do not count. (`getrusage` goes by ticks of
/// up to 4 ms on some kernels.)
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("this thread's clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

/// The shortest of several runs, each of them long enough to be measured. Where other programs run, the shortest is one
/// that nobody interrupted: so the work of a launch is chosen to fit in a few milliseconds.
fn best(mut f: impl FnMut()) -> f64 {
    let mut repeats = 1u32;
    let mut best = f64::MAX;
    let end = Instant::now() + Duration::from_secs(1);
    let mut runs = 0;
    while runs < 5 || Instant::now() < end {
        let start = processor_time();
        for _ in 0..repeats {
            f();
        }
        let time = processor_time() - start;
        if time < 2e-4 {
            repeats *= 2;
            continue;
        }
        best = best.min(time / f64::from(repeats));
        runs += 1;
    }
    best
}

/// Runs a native body as the compiler's baseline, or with the vector features of this machine.
fn native<T>(body: impl Fn() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,bmi2")]
        fn wide<T>(body: impl Fn() -> T) -> T {
            body()
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were found.
            return unsafe { wide(body) };
        }
    }
    body()
}

struct Line {
    name: &'static str,
    unit: &'static str,
    simulated: f64,
    scalar: f64,
    vector: f64,
    instructions: f64,
    goal: f64,
}

fn line(line: &Line) {
    let ratio = |native: f64| {
        if native > 0.0 { format!("{:>7.2}", native / line.simulated) } else { "      -".into() }
    };
    println!(
        "{:<13} {:>9.0} {:<9} {:>6.2} G lane-instr/s | scalar {:>8.0} ({}x) vector {:>8.0} ({}x) | goal {:>6.0}",
        line.name,
        line.simulated,
        line.unit,
        line.instructions / 1e9,
        line.scalar,
        ratio(line.scalar),
        line.vector,
        ratio(line.vector),
        line.goal,
    );
}

fn vecadd(gpu: &Gpu) {
    const N: usize = 1 << 17;
    let a: Vec<f32> = (0..N).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..N).map(|i| (i % 1000) as f32).collect();
    gpu.write(0, &a, f32::to_le_bytes);
    gpu.write(4 << 20, &b, f32::to_le_bytes);
    let launch =
        gpu.launch("vecadd", [N as u32 / 256, 1, 1], [256, 1, 1], &[0, 4 << 20, 8 << 20], &[N as u32]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    assert!(gpu.read(8 << 20, N, f32::from_le_bytes).iter().zip(&a).zip(&b).all(|((s, a), b)| *s == a + b));
    let mut out = vec![0.0; N];
    let scalar = best(|| {
        for i in 0..N {
            let i = black_box(i);
            out[i] = a[i] + b[i];
        }
    });
    let out = std::cell::RefCell::new(out);
    let vector = best(|| {
        native(|| {
            for ((out, a), b) in out.borrow_mut().iter_mut().zip(&a).zip(&b) {
                *out = a + b;
            }
            black_box(&out);
        });
    });
    let rate = |time: f64| N as f64 / time / 1e6;
    line(&Line {
        name: "vecadd",
        unit: "Melem/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: rate(vector),
        instructions: done.lane_instructions as f64 / time,
        goal: 1000.0,
    });
}

fn matmul(gpu: &Gpu) {
    const SIDE: usize = 128;
    let value = |i: usize| ((i * 7919) % 64) as f32 / 8.0 - 4.0;
    let a: Vec<f32> = (0..SIDE * SIDE).map(value).collect();
    let b: Vec<f32> = (0..SIDE * SIDE).map(|i| value(i + 3)).collect();
    gpu.write(0, &a, f32::to_le_bytes);
    gpu.write(4 << 20, &b, f32::to_le_bytes);
    let blocks = SIDE as u32 / 16;
    let launch =
        gpu.launch("matmul", [blocks, blocks, 1], [16, 16, 1], &[0, 4 << 20, 8 << 20], &[SIDE as u32]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let product = |at: usize| {
        let (row, column) = (at / SIDE, at % SIDE);
        (0..SIDE).fold(0f32, |sum, k| a[row * SIDE + k].mul_add(b[k * SIDE + column], sum))
    };
    let out = gpu.read(8 << 20, SIDE * SIDE, f32::from_le_bytes);
    assert!(out.iter().enumerate().step_by(37).all(|(at, value)| *value == product(at)));
    let scalar = best(|| {
        native(|| {
            for at in 0..SIDE * SIDE / 8 {
                black_box(product(black_box(at)));
            }
        });
    }) * 8.0;
    let vector = best(|| {
        native(|| {
            let mut row = [0f32; SIDE];
            for y in 0..SIDE {
                row.fill(0.0);
                for k in 0..SIDE {
                    let x = a[y * SIDE + k];
                    for (sum, b) in row.iter_mut().zip(&b[k * SIDE..(k + 1) * SIDE]) {
                        *sum = x.mul_add(*b, *sum);
                    }
                }
                black_box(&row);
            }
        });
    });
    let rate = |time: f64| (SIDE * SIDE * SIDE) as f64 / time / 1e6;
    line(&Line {
        name: "matmul",
        unit: "MFMA/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: rate(vector),
        instructions: done.lane_instructions as f64 / time,
        goal: 3000.0,
    });
}

fn reduce(gpu: &Gpu) {
    const N: usize = 1 << 17;
    const BLOCKS: usize = 8;
    let a: Vec<f32> = (0..N).map(|i| (i % 16) as f32).collect();
    gpu.write(0, &a, f32::to_le_bytes);
    let launch = gpu.launch("reduce", [BLOCKS as u32, 1, 1], [256, 1, 1], &[0, 8 << 20], &[N as u32]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let sum: f32 = gpu.read(8 << 20, BLOCKS, f32::from_le_bytes).iter().sum();
    assert_eq!(sum, a.iter().sum::<f32>());
    let scalar = best(|| {
        black_box(black_box(&a).iter().sum::<f32>());
    });
    let vector = best(|| {
        native(|| {
            let mut sums = [0f32; 64];
            for chunk in black_box(&a).chunks_exact(64) {
                for (sum, value) in sums.iter_mut().zip(chunk) {
                    *sum += value;
                }
            }
            black_box(sums);
        });
    });
    let rate = |time: f64| N as f64 / time / 1e6;
    line(&Line {
        name: "reduce",
        unit: "Melem/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: rate(vector),
        instructions: done.lane_instructions as f64 / time,
        goal: 1500.0,
    });
}

fn mandel(gpu: &Gpu) {
    const W: usize = 256;
    const H: usize = 16;
    const LIMIT: u32 = 256;
    let launch = gpu.launch(
        "mandel",
        [W as u32 / 32, H as u32 / 8, 1],
        [32, 8, 1],
        &[0],
        &[W as u32, H as u32, LIMIT],
    );
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let one = |column: usize, row: usize| {
        let re = -2.0 + 3.0 * column as f32 / W as f32;
        let im = -1.5 + 3.0 * row as f32 / H as f32;
        let (mut x, mut y, mut count) = (0f32, 0f32, 0);
        while count < LIMIT {
            let (xx, yy) = (x * x, y * y);
            if xx + yy > 4.0 {
                break;
            }
            y = (2.0 * x).mul_add(y, im);
            x = xx - yy + re;
            count += 1;
        }
        count
    };
    let counts = gpu.read(0, W * H, u32::from_le_bytes);
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    assert!(counts.iter().enumerate().all(|(at, count)| native(|| one(at % W, at / W)) == *count));
    let scalar = best(|| {
        native(|| {
            for at in 0..W * H {
                black_box(one(at % W, at / W));
            }
        });
    });
    let rate = |time: f64| total as f64 / time / 1e6;
    line(&Line {
        name: "mandel",
        unit: "Miter/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 1500.0,
    });
}

fn histogram(gpu: &Gpu) {
    const N: usize = 1 << 16;
    let a: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 9).collect();
    gpu.write(0, &a, u32::to_le_bytes);
    let launch = gpu.launch("histogram", [N as u32 / 256, 1, 1], [256, 1, 1], &[0, 8 << 20], &[N as u32]);
    let mut done = Statistics::default();
    let mut runs = 0;
    gpu.write(8 << 20, &[0; 256], u32::to_le_bytes);
    let time = best(|| {
        done = gpu.run(&launch);
        runs += 1;
    });
    let mut bins = vec![0u32; 256];
    let scalar = best(|| {
        bins.fill(0);
        for value in &a {
            bins[*value as usize & 255] += 1;
        }
        black_box(&bins);
    });
    let out = gpu.read(8 << 20, 256, u32::from_le_bytes);
    assert!(out.iter().zip(&bins).all(|(have, want)| *have == want * runs));
    let rate = |time: f64| N as f64 / time / 1e6;
    line(&Line {
        name: "histogram",
        unit: "Melem/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 50.0,
    });
}

fn alu(gpu: &Gpu) {
    let launch = gpu.launch("alu", [1, 1, 1], [256, 1, 1], &[0], &[250, 1.5f32.to_bits(), 7]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let handlers = Gpu::new(1, Compile::Never);
    handlers.run(&handlers.launch("alu", [1, 1, 1], [256, 1, 1], &[0], &[250, 1.5f32.to_bits(), 7]));
    assert_eq!(gpu.read(0, 256, u32::from_le_bytes), handlers.read(0, 256, u32::from_le_bytes));
    line(&Line {
        name: "alu",
        unit: "Minstr/s",
        simulated: done.lane_instructions as f64 / time / 1e6,
        scalar: 0.0,
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 10_000.0,
    });
}

/// Shared memory and little else: sums of words that are read again and again.
fn shared(gpu: &Gpu) {
    const ROUNDS: u32 = 128;
    const BLOCKS: u32 = 1;
    let launch = gpu.launch("shared", [BLOCKS, 1, 1], [256, 1, 1], &[0], &[ROUNDS]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let sum = |t: u32| {
        (0..ROUNDS)
            .fold(0u32, |sum, round| (0..8).fold(sum, |sum, i| sum.wrapping_add(t + 8 * i + round % 128)))
    };
    let out = gpu.read(0, 256, u32::from_le_bytes);
    assert!(out.iter().zip(0..).all(|(have, t)| *have == sum(t)));
    let rate = |time: f64| f64::from(BLOCKS * 256 * 8 * ROUNDS) / time / 1e6;
    line(&Line {
        name: "shared",
        unit: "Mload/s",
        simulated: rate(time),
        scalar: 0.0,
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 0.0,
    });
}

/// Products m16n8k16 with FP32 sums, whose results are whole numbers.
fn tensor(gpu: &Gpu, kernel: &'static str) {
    const ROUNDS: u32 = 20;
    const WARPS: u32 = 8;
    let launch = gpu.launch(kernel, [1, 1, 1], [32 * WARPS, 1, 1], &[0], &[ROUNDS]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let out = gpu.read(0, 32 * 4 * WARPS as usize, f32::from_le_bytes);
    for (at, value) in (0u32..).zip(out) {
        let (lane, register) = (at / 4 % 32, at % 4);
        let (row, column) = (lane / 4 + 8 * (register / 2), 2 * (lane % 4) + register % 2);
        assert_eq!(value, (4 * ROUNDS * 16 * (row + 1) * (column + 1)) as f32);
    }
    line(&Line {
        name: kernel,
        unit: "MMAC/s",
        simulated: f64::from(WARPS * ROUNDS * 4 * 16 * 8 * 16) / time / 1e6,
        scalar: 0.0,
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 10_000.0,
    });
}

fn tensor_f16(gpu: &Gpu) {
    tensor(gpu, "tensor_f16");
}

fn tensor_bf16(gpu: &Gpu) {
    tensor(gpu, "tensor_bf16");
}

/// What [`products`] multiplies.
#[derive(Clone, Copy)]
enum Kind {
    Float(FloatMatrix, Numerics),
    Integer(IntegerMatrix),
}

/// Numbers with the normal distribution, of so many exponent and fraction bits.
fn normal_bits(random: &mut u64, exponent_bits: u32, fraction_bits: u32) -> u32 {
    let mut uniform = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*random >> 11) + 1) as f64 / (1u64 << 53) as f64
    };
    let number = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = (number.abs().log2().floor() as i32).max(1 - bias);
    // Carries into the exponent where it has to; a subnormal has no leading one to be taken off.
    let fraction = (number.abs() / 2f64.powi(exponent - fraction_bits as i32)).round_ties_even() as u32;
    let bits = (((exponent + bias - 1) as u32) << fraction_bits) + fraction;
    bits | u32::from(number < 0.0) << (exponent_bits + fraction_bits)
}

/// Products of normally distributed numbers, or of any bytes, compared with the plain form of the arithmetic.
fn products(gpu: &Gpu, kernel: &'static str, kind: Kind) {
    const ROUNDS: u32 = 100;
    const WARPS: usize = 8;
    const THREADS: usize = 32 * WARPS;
    const SETS: usize = 2;
    let mut random = 1;
    let mut word = || match kind {
        Kind::Integer(_) => normal_bits(&mut random, 8, 23).wrapping_mul(0x9e37_79b9),
        Kind::Float(form, _) => match form.factors[0] {
            Factor::F16 => (0..2).fold(0, |word, _| word << 16 | normal_bits(&mut random, 5, 10)),
            Factor::Bf16 => (0..2).fold(0, |word, _| word << 16 | normal_bits(&mut random, 8, 7)),
            Factor::Tf32 => normal_bits(&mut random, 8, 10) << 13,
            Factor::E4M3 => (0..4).fold(0, |word, _| word << 8 | normal_bits(&mut random, 4, 3)),
            Factor::E5M2 => (0..4).fold(0, |word, _| word << 8 | normal_bits(&mut random, 5, 2)),
        },
    };
    let a: Vec<u32> = (0..SETS * THREADS * 4).map(|_| word()).collect();
    let b: Vec<u32> = (0..SETS * THREADS * 2).map(|_| word()).collect();
    gpu.write(0, &a, u32::to_le_bytes);
    gpu.write(1 << 20, &b, u32::to_le_bytes);
    let block = [THREADS as u32, 1, 1];
    let launch = gpu.launch(kernel, [1; 3], block, &[0, 1 << 20, 2 << 20], &[ROUNDS]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let out = gpu.read(2 << 20, 4 * THREADS * 4, u32::from_le_bytes);
    // Registers of a warp's fragment among those of all threads.
    let fragment = |words: &[u32], set: usize, warp: usize, count: usize| -> Vec<Register> {
        let at = |lane: usize, register: usize| ((set * THREADS + 32 * warp + lane) * count) + register;
        (0..count).map(|register| std::array::from_fn(|lane| words[at(lane, register)])).collect()
    };
    let mut k = 0;
    for (warp, i) in (0..WARPS).flat_map(|warp| (0..4).map(move |i| (warp, i))) {
        let (a, b) = (fragment(&a, i / 2, warp, 4), fragment(&b, i % 2, warp, 2));
        let mut d = [[0; 32]; 4];
        for _ in 0..ROUNDS {
            d = match kind {
                Kind::Float(form, numerics) => {
                    k = form.k;
                    mma::float_mma(form, numerics, &a, &b, &d, None)
                }
                Kind::Integer(form) => {
                    k = form.k;
                    mma::imma(form, &a, &b, &d, None)
                }
            }
            .expect("a form");
        }
        assert_eq!(fragment(&out, i, warp, 4), d);
    }
    line(&Line {
        name: kernel,
        unit: "MMAC/s",
        simulated: (WARPS * ROUNDS as usize * 4 * 16 * 8 * k) as f64 / time / 1e6,
        scalar: 0.0,
        vector: 0.0,
        instructions: done.lane_instructions as f64 / time,
        goal: 10_000.0,
    });
}

fn float_products(gpu: &Gpu, kernel: &'static str, factor: Factor, k: usize, numerics: Numerics) {
    let form = FloatMatrix { factors: [factor; 2], accumulator: Accumulator::F32, k, sparse: false };
    products(gpu, kernel, Kind::Float(form, numerics));
}

fn products_f16(gpu: &Gpu) {
    float_products(gpu, "products_f16", Factor::F16, 16, Numerics::AMPERE);
}

fn products_bf16(gpu: &Gpu) {
    float_products(gpu, "products_bf16", Factor::Bf16, 16, Numerics::AMPERE);
}

fn products_tf32(gpu: &Gpu) {
    float_products(gpu, "products_tf32", Factor::Tf32, 8, Numerics::AMPERE);
}

fn products_e4m3(gpu: &Gpu) {
    float_products(gpu, "products_e4m3", Factor::E4M3, 32, Numerics::ADA_QMMA);
}

fn products_s8(gpu: &Gpu) {
    let form = IntegerMatrix { rows: 16, k: 32, factors: [Integer::S8; 2], saturate: false, sparse: false };
    products(gpu, "products_s8", Kind::Integer(form));
}

/// Three points of FP64.
fn stencil(gpu: &Gpu) {
    const N: usize = 1 << 15;
    let a: Vec<f64> = (0..N).map(|i| (i % 1000) as f64).collect();
    let halves: Vec<u32> = a.iter().flat_map(|a| [a.to_bits() as u32, (a.to_bits() >> 32) as u32]).collect();
    gpu.write(0, &halves, u32::to_le_bytes);
    let launch = gpu.launch("stencil", [N as u32 / 256, 1, 1], [256, 1, 1], &[0, 8 << 20], &[N as u32]);
    let mut done = Statistics::default();
    let time = best(|| done = gpu.run(&launch));
    let out = gpu.read(8 << 20, 2 * N, u32::from_le_bytes);
    let point = |i: usize| 0.25f64.mul_add(a[i + 1], 0.25f64.mul_add(a[i - 1], 0.5 * a[i]));
    assert!(
        (1..N - 1)
            .all(|i| f64::from_bits(u64::from(out[2 * i]) | u64::from(out[2 * i + 1]) << 32) == point(i))
    );
    let mut sums = vec![0.0; N];
    let scalar = best(|| {
        native(|| {
            for i in 1..N - 1 {
                let i = black_box(i);
                black_box(point(i));
            }
        });
    });
    let cell = std::cell::RefCell::new(&mut sums);
    let vector = best(|| {
        native(|| {
            let mut sums = cell.borrow_mut();
            for i in 1..N - 1 {
                sums[i] = point(i);
            }
            black_box(&sums);
        });
    });
    let rate = |time: f64| N as f64 / time / 1e6;
    line(&Line {
        name: "stencil",
        unit: "Melem/s",
        simulated: rate(time),
        scalar: rate(scalar),
        vector: rate(vector),
        instructions: done.lane_instructions as f64 / time,
        goal: 0.0,
    });
}

/// Two workers against one, by the clock on the wall: only meaningful on a machine that has nothing else to do. Two
/// native threads that share nothing say how much the second processor is worth.
fn scaling(_: &Gpu) {
    let shortest = |f: &dyn Fn()| {
        (0..10)
            .map(|_| {
                let start = Instant::now();
                f();
                start.elapsed().as_secs_f64()
            })
            .fold(f64::MAX, f64::min)
    };
    let wall = |threads| {
        let gpu = Gpu::new(threads, Compile::default());
        let launch = gpu.launch("alu", [32, 1, 1], [256, 1, 1], &[0], &[1000, 1.5f32.to_bits(), 7]);
        shortest(&|| {
            gpu.run(&launch);
        })
    };
    let work = || {
        native(|| {
            let mut lanes = [1.0f32; 64];
            for _ in 0..black_box(200_000) {
                lanes = lanes.map(|lane| lane.mul_add(1.000_1, 0.5));
            }
            black_box(lanes);
        });
    };
    let alone = shortest(&work);
    let together = shortest(&|| {
        thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
    });
    println!(
        "scaling    {:>9.2} times the speed with two workers (alu, wall clock); two native threads {:.2}",
        wall(1) / wall(2),
        2.0 * alone / together,
    );
}

fn empty(gpu: &Gpu) {
    let launch = gpu.launch("empty", [1, 1, 1], [32, 1, 1], &[], &[]);
    let (map, stop) = (gpu.space.snapshot(), AtomicBool::new(false));
    let mut times: Vec<f64> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            gpu.processor.run(&launch, &map, &stop).expect("the kernel runs");
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("empty      {:>9.2} us a launch (median), without host and engine", times[1000]);
}

type Bench = fn(&Gpu);

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // With this word, handlers execute everything.
    let compile =
        if wanted.iter().any(|want| want == "handlers") { Compile::Never } else { Compile::default() };
    let wanted: Vec<String> = wanted.into_iter().filter(|want| want != "handlers").collect();
    let gpu = Gpu::new(1, compile);
    let all: [(&str, Bench); 17] = [
        ("alu", alu),
        ("vecadd", vecadd),
        ("matmul", matmul),
        ("reduce", reduce),
        ("mandel", mandel),
        ("histogram", histogram),
        ("shared", shared),
        ("tensor_f16", tensor_f16),
        ("tensor_bf16", tensor_bf16),
        ("products_f16", products_f16),
        ("products_bf16", products_bf16),
        ("products_tf32", products_tf32),
        ("products_e4m3", products_e4m3),
        ("products_s8", products_s8),
        ("stencil", stencil),
        ("scaling", scaling),
        ("empty", empty),
    ];
    for (name, f) in all {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            f(&gpu);
        }
    }
}
