//! Fixture kernels against their host references.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{
    Compile, Configuration, ConstantBuffer, FaultKind, Launch, Observe, Observed, Processor, Statistics,
    Traffic,
};

const CODE: u64 = 0x10_0000;
const BANKS: u64 = 0x20_0000;
const DATA: u64 = 0x100_0000;

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut all = [0; 8];
    all[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(all)
}

/// `(name, bytes, sh_info)` of every section.
fn sections(elf: &[u8]) -> Vec<(String, &[u8], u32)> {
    let at = number(elf, 0x28, 8) as usize;
    let count = number(elf, 0x3c, 2) as usize;
    let names = number(elf, 0x3e, 2) as usize;
    let field = |i: usize, offset, size| number(elf, at + 64 * i + offset, size) as usize;
    let base = field(names, 0x18, 8);
    (0..count)
        .map(|i| {
            let name = &elf[base + field(i, 0, 4)..];
            let end = name.iter().position(|b| *b == 0).unwrap_or(0);
            let (offset, size) = (field(i, 0x18, 8), field(i, 0x20, 8));
            let bytes = if field(i, 4, 4) == 8 { &[][..] } else { &elf[offset..offset + size] };
            (String::from_utf8_lossy(&name[..end]).into_owned(), bytes, field(i, 0x2c, 4) as u32)
        })
        .collect()
}

struct Bench {
    processor: Processor,
    space: Arc<AddressSpace>,
    arch: &'static str,
    observe: Observe,
    /// What was observed of the last launch.
    observed: RefCell<Observed>,
}

impl Bench {
    fn new(arch: &'static str) -> Self {
        Self::with(arch, Configuration::default())
    }

    fn with(arch: &'static str, configuration: Configuration) -> Self {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 18), (BANKS, 1 << 19), (DATA, 1 << 22)] {
            let backing = Arc::new(Backing::new("test", bytes).expect("small"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
        }
        let (observe, observed) = Default::default();
        Self { processor: Processor::new(configuration), space, arch, observe, observed }
    }

    /// One that observes its launches.
    fn observing(arch: &'static str) -> Self {
        Self { observe: Observe { instructions: true, blocks: true }, ..Self::new(arch) }
    }

    fn write(&self, at: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.space.snapshot().write(DATA + at, &bytes).expect("mapped");
    }

    fn read(&self, at: u64, words: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * words];
        self.space.snapshot().read(DATA + at, &mut bytes).expect("mapped");
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    fn launch(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        parameters: &[u8],
    ) -> Result<Statistics, nv_sm::Fault> {
        let elf = fixtures::cubin(self.arch, kernel).expect("a fixture");
        self.launch_elf(&elf, kernel, grid, block, 16, parameters)
    }

    fn launch_elf(
        &self,
        elf: &[u8],
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        barriers: u32,
        parameters: &[u8],
    ) -> Result<Statistics, nv_sm::Fault> {
        let sections = sections(elf);
        let map = self.space.snapshot();
        let (_, code, info) = sections.iter().find(|s| s.0 == format!(".text.{kernel}")).expect("the kernel");
        map.write(CODE, code).expect("mapped");
        let mut banks = [None; 8];
        for (name, bytes, _) in &sections {
            for bank in [2, 3] {
                if *name == format!(".nv.constant{bank}") || *name == format!(".nv.constant{bank}.{kernel}") {
                    let address = BANKS + 0x1_0000 * bank as u64;
                    map.write(address, bytes).expect("mapped");
                    banks[bank] = Some(ConstantBuffer { address, bytes: bytes.len() as u32 });
                }
            }
        }
        let shared = sections.iter().any(|s| s.0 == format!(".nv.shared.{kernel}"));
        let hopper = self.arch == "sm_90";
        let mut zero = vec![0; if hopper { 0x210 } else { 0x160 }];
        for (i, v) in block.iter().chain(&grid).enumerate() {
            zero[4 * i..4 * i + 4].copy_from_slice(&v.to_le_bytes());
        }
        zero[0x18..0x20].copy_from_slice(&0x7294_0000_0000u64.to_le_bytes());
        zero[0x20..0x28].copy_from_slice(&0x7293_0000_0000u64.to_le_bytes());
        zero[0x28..0x2c].copy_from_slice(&0xff_fdc0u32.to_le_bytes());
        zero.extend_from_slice(parameters);
        map.write(BANKS, &zero).expect("mapped");
        banks[0] = Some(ConstantBuffer { address: BANKS, bytes: zero.len() as u32 });
        let launch = Launch {
            program_address: CODE,
            grid,
            block,
            cluster: [1; 3],
            // The register count is in sh_info up to sm_89 only.
            registers: if hopper { 255 } else { info >> 24 },
            shared_bytes: if shared { 48 << 10 } else { 1 << 10 },
            local_bytes: 0x4000,
            barriers,
            constant_buffers: banks,
            shared_window: 0x7294_0000_0000,
            local_window: 0x7293_0000_0000,
            sm: self.arch[3..5].parse().expect("a number"),
            textures: nv_sm::Textures::default(),
            grid_id: 1,
        };
        let stop = AtomicBool::new(false);
        let (result, observed) = self.processor.run_observed(&launch, &map, &stop, self.observe);
        self.observed.replace(observed);
        result
    }

    /// What the last launch did to memory, over all instructions.
    fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        let observed = self.observed.borrow();
        observed.instructions.values().filter_map(|executed| executed.traffic).for_each(|one| all.add(&one));
        all
    }
}

fn parameters(pointers: &[u64], words: &[u32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = pointers.iter().flat_map(|p| (DATA + p).to_le_bytes()).collect();
    bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    bytes
}

fn floats(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32).map(|i| ((i.wrapping_mul(seed) >> 7) % 2000) as f32 / 16.0 - 60.0).collect()
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

/// Kernels run on every architecture that the fixtures have.
const ARCHES: [&str; 4] = ["sm_80", "sm_86", "sm_89", "sm_90"];

fn halves(v: &[u64]) -> Vec<u32> {
    v.iter().flat_map(|v| [*v as u32, (*v >> 32) as u32]).collect()
}

fn words(n: usize, seed: u32) -> Vec<u32> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        })
        .collect()
}

#[test]
fn elementwise_kernels_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let (a, b) = (floats(1000, 2_654_435_761), floats(1000, 40503));
        bench.write(0, &bits(&a));
        bench.write(0x1000, &bits(&b));
        let p = parameters(&[0x2000, 0, 0x1000], &[1000]);
        bench.launch("vector_add", [8, 1, 1], [128, 1, 1], &p).expect("runs");
        assert_eq!(bench.read(0x2000, 1000), bits(&fixtures::reference::vector_add(&a, &b)));
        let p = parameters(&[0, 0x1000], &[0.37f32.to_bits(), 1000]);
        bench.launch("saxpy", [2, 1, 1], [128, 1, 1], &p).expect("runs");
        assert_eq!(bench.read(0, 1000), bits(&fixtures::reference::saxpy(&a, &b, 0.37)), "{arch}");
        bench.write(0, &bits(&b));
        bench.launch("polynomial", [8, 1, 1], [128, 1, 1], &parameters(&[0x2000, 0], &[1000])).expect("runs");
        let expected: Vec<f32> = b.iter().map(|x| fixtures::reference::polynomial(*x)).collect();
        assert_eq!(bench.read(0x2000, 1000), bits(&expected), "{arch}");
    }
}

#[test]
fn matrix_kernels_through_shared_memory_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let (m, n, k) = (40, 50, 35);
        let (a, b) = (floats(m * k, 77773), floats(k * n, 99991));
        bench.write(0, &bits(&a));
        bench.write(0x10000, &bits(&b));
        let p = parameters(&[0x20000, 0, 0x10000], &[m as u32, n as u32, k as u32]);
        bench.launch("matmul", [4, 3, 1], [16, 16, 1], &p).expect("runs");
        assert_eq!(bench.read(0x20000, m * n), bits(&fixtures::reference::matmul(&a, &b, m, n, k)), "{arch}");
    }
}

#[test]
fn reductions_by_shuffle_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let a = floats(1000, 2_654_435_761);
        bench.write(0, &bits(&a));
        let p = parameters(&[0x2000, 0], &[1000]);
        bench.launch("reduce_f32", [4, 1, 1], [256, 1, 1], &p).expect("runs");
        assert_eq!(bench.read(0x2000, 4), bits(&fixtures::reference::reduce_f32(&a, 256)), "{arch}");
        let v = words(1000, 7);
        bench.write(0, &v);
        bench.launch("reduce_u32", [4, 1, 1], [256, 1, 1], &p).expect("runs");
        assert_eq!(bench.read(0x2000, 4), fixtures::reference::reduce_u32(&v, 256), "{arch}");
        bench.launch("warp_max", [4, 1, 1], [256, 1, 1], &p).expect("runs");
        let expected = halves(&fixtures::reference::warp_max(&v));
        assert_eq!(bench.read(0x2000, expected.len()), expected, "{arch}");
    }
}

/// The results are those of a launch that nobody observes, and the counts add up.
#[test]
fn observed_launches_do_the_same_and_say_what() {
    for arch in ARCHES {
        for (kernel, grid, block, p) in [
            ("vector_add", [8, 1, 1], [128, 1, 1], parameters(&[0x2000, 0, 0x1000], &[1000])),
            ("matmul", [4, 3, 1], [16, 16, 1], parameters(&[0x20000, 0, 0x10000], &[40, 50, 35])),
            ("reduce_f32", [4, 1, 1], [256, 1, 1], parameters(&[0x2000, 0], &[1000])),
            ("softmax", [5, 1, 1], [128, 1, 1], parameters(&[0x2000, 0], &[100])),
        ] {
            let run = |bench: Bench| {
                let numbers = floats(4000, 2_654_435_761);
                bench.write(0, &bits(&numbers[..1000]));
                bench.write(0x10000, &bits(&numbers));
                let statistics = bench.launch(kernel, grid, block, &p).expect("runs");
                (statistics, bench.read(0, 0x10000), bench.observed.take())
            };
            let (plain, memory, nothing) = run(Bench::new(arch));
            let (statistics, same, observed) = run(Bench::observing(arch));
            // Warps that run alone may meet their lanes elsewhere, so that an instruction is executed once more or less.
            assert_eq!(statistics.lane_instructions, plain.lane_instructions, "{kernel} {arch}");
            assert_eq!(memory, same, "{kernel} {arch}");
            assert_eq!(nothing, Observed::default());
            let sum = |f: fn(&nv_sm::Executed) -> u64| observed.instructions.values().map(f).sum::<u64>();
            let sums = (sum(|executed| executed.warps), sum(|executed| executed.lanes));
            assert_eq!(sums, (statistics.instructions, statistics.lane_instructions), "{kernel} {arch}");
            assert_eq!(observed.blocks.len() as u64, plain.ctas, "{kernel} {arch}");
            assert!(observed.blocks.iter().all(|ran| ran.start <= ran.end));
        }
    }
}

#[test]
fn sectors_are_those_of_the_arrays() {
    let bench = Bench::observing("sm_89");
    let p = parameters(&[0x2000, 0, 0x1000], &[1000]);
    bench.launch("vector_add", [8, 1, 1], [128, 1, 1], &p).expect("runs");
    let sectors = 3 * 1000 * 4 / 32;
    let expected = Traffic { bytes: 12_000, sectors, least_sectors: sectors, passes: 0, least_passes: 0 };
    assert_eq!(bench.traffic(), expected);
}

/// A transposition through a tile without padding: the column of the tile lies in one bank, and the column of the
/// result in as many sectors as it has numbers.
#[test]
fn columns_cost_what_the_rules_say() {
    let bench = Bench::observing("sm_89");
    let elf = fixtures::bytes("lines/transpose.sm_89.cubin").expect("a fixture");
    let p = parameters(&[0x2000, 0], &[32]);
    bench.launch_elf(&elf, "transpose", [1, 1, 1], [32, 32, 1], 16, &p).expect("runs");
    let (rows, columns) = (32 * 4, 32 * 32);
    let expected = Traffic {
        bytes: 5 * 4096,
        sectors: rows + columns,
        least_sectors: 2 * rows,
        passes: 32 + 32 + 32 * 32,
        least_passes: 3 * 32,
    };
    assert_eq!(bench.traffic(), expected);
}

#[test]
fn softmax_is_within_the_measured_tolerance() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let a: Vec<f32> = floats(500, 2_654_435_761).iter().map(|x| x / 4.0).collect();
        bench.write(0, &bits(&a));
        bench.launch("softmax", [5, 1, 1], [128, 1, 1], &parameters(&[0x2000, 0], &[100])).expect("runs");
        for (have, want) in bench.read(0x2000, 500).iter().zip(fixtures::reference::softmax(&a, 100)) {
            let have = f32::from_bits(*have);
            assert!(
                (have - want).abs() <= want * fixtures::reference::SOFTMAX_TOLERANCE,
                "{have} {want} {arch}"
            );
        }
    }
}

#[test]
fn atomics_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let v = words(500, 3);
        let bytes: Vec<u8> = v.iter().flat_map(|w| w.to_le_bytes()).collect();
        bench.write(0, &v);
        bench
            .launch("histogram", [3, 1, 1], [128, 1, 1], &parameters(&[0x2000, 0x3000, 0], &[2000]))
            .expect("runs");
        let (bins, largest) = fixtures::reference::histogram(&bytes);
        assert_eq!(bench.read(0x2000, 256), bins, "{arch}");
        assert_eq!(bench.read(0x3000, 1), [largest], "{arch}");
        let p = parameters(&[0x4000, 0x4008, 0x5000], &[64, 1000]);
        bench.launch("tickets", [8, 1, 1], [128, 1, 1], &p).expect("runs");
        let (next, sum) = fixtures::reference::tickets(1000);
        assert_eq!(bench.read(0x4000, 1), [next], "{arch}");
        assert_eq!(bench.read(0x4008, 2), halves(&[sum]), "{arch}");
        assert!(fixtures::reference::tickets_are_possible(&bench.read(0x5000, 64), 1000), "{arch}");
    }
}

#[test]
fn integer_divisions_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let (a, b) = (words(512, 5), words(512, 11));
        let b: Vec<u32> = b.iter().enumerate().map(|(i, v)| (v >> (i % 28)).max(1)).collect();
        bench.write(0, &a);
        bench.write(0x1000, &b);
        let run = |kernel, n: u32| {
            let p = parameters(&[0x2000, 0x4000, 0, 0x1000], &[n]);
            bench.launch(kernel, [4, 1, 1], [128, 1, 1], &p).expect("runs");
            (bench.read(0x2000, 512), bench.read(0x4000, 512))
        };
        let pairs = || a.iter().zip(&b);
        assert_eq!(run("divide_u32", 512).0, pairs().map(|(a, b)| a / b).collect::<Vec<_>>(), "{arch}");
        assert_eq!(run("divide_u32", 512).1, pairs().map(|(a, b)| a % b).collect::<Vec<_>>(), "{arch}");
        let signed =
            |f: fn(i32, i32) -> i32| pairs().map(|(a, b)| f(*a as i32, *b as i32) as u32).collect::<Vec<_>>();
        assert_eq!(run("divide_i32", 512).0, signed(i32::wrapping_div), "{arch}");
        assert_eq!(run("divide_i32", 512).1, signed(i32::wrapping_rem), "{arch}");
        let wide = |v: &[u32]| -> Vec<u64> {
            v.chunks(2).map(|p| u64::from(p[0]) | u64::from(p[1]) << 32).collect()
        };
        let (c, mut d) = (wide(&a), wide(&b));
        for (i, v) in d.iter_mut().enumerate() {
            *v = (*v >> (i % 60)).max(1);
        }
        bench.write(0x1000, &halves(&d));
        let each =
            |f: fn(u64, u64) -> u64| halves(&c.iter().zip(&d).map(|(a, b)| f(*a, *b)).collect::<Vec<_>>());
        assert_eq!(run("divide_u64", 256).0, each(|a, b| a / b), "{arch}");
        assert_eq!(run("divide_u64", 256).1, each(|a, b| a % b), "{arch}");
        assert_eq!(run("divide_i64", 256).0, each(|a, b| (a as i64).wrapping_div(b as i64) as u64), "{arch}");
        assert_eq!(run("divide_i64", 256).1, each(|a, b| (a as i64).wrapping_rem(b as i64) as u64), "{arch}");
        let p = parameters(&[0x2000, 0], &[256]);
        bench.launch("divide_constant", [4, 1, 1], [128, 1, 1], &p).expect("runs");
        let expected: Vec<u64> = c.iter().map(|x| fixtures::reference::divide_constant(*x)).collect();
        assert_eq!(bench.read(0x2000, 512), halves(&expected), "{arch}");
    }
}

#[test]
fn early_exits_from_a_loop_equal_the_host() {
    let view = fixtures::reference::View { left: -2.0, top: -1.25, pixel: 0.05, limit: 200 };
    let expected = fixtures::reference::mandelbrot(60, 50, view);
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let [left, top, pixel] = [view.left, view.top, view.pixel].map(f32::to_bits);
        let p = parameters(&[0], &[60, 50, left, top, pixel, 200]);
        bench.launch("mandelbrot", [4, 7, 1], [16, 8, 1], &p).expect("runs");
        assert_eq!(bench.read(0, 3000), expected, "{arch}");
    }
}

#[test]
fn fp64_and_half_kernels_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let a: Vec<f64> = floats(200, 77773).iter().map(|x| f64::from(*x).abs() + 0.1).collect();
        let b: Vec<f64> = floats(200, 99991).iter().map(|x| f64::from(*x) * 1.7 + 0.3).collect();
        let raw = |v: &[f64]| halves(&v.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        bench.write(0, &raw(&a));
        bench.write(0x1000, &raw(&b));
        let mut p = parameters(&[0x2000, 0x3000, 0x4000, 0, 0x1000], &[200]);
        bench.launch("double_ops", [2, 1, 1], [128, 1, 1], &p).expect("runs");
        let all: Vec<_> = a.iter().zip(&b).map(|(a, b)| fixtures::reference::double_ops(*a, *b)).collect();
        assert_eq!(bench.read(0x2000, 400), raw(&all.iter().map(|x| x.0).collect::<Vec<_>>()), "{arch}");
        assert_eq!(bench.read(0x3000, 400), raw(&all.iter().map(|x| x.1).collect::<Vec<_>>()), "{arch}");
        assert_eq!(
            bench.read(0x4000, 400),
            halves(&all.iter().map(|x| x.2 as u64).collect::<Vec<_>>()),
            "{arch}"
        );
        p = parameters(&[0, 0x1000], &halves(&[1.1f64.to_bits()]));
        p.extend(200u32.to_le_bytes());
        bench.launch("daxpy", [2, 1, 1], [128, 1, 1], &p).expect("runs");
        assert_eq!(bench.read(0, 400), raw(&fixtures::reference::daxpy(&a, &b, 1.1)), "{arch}");
        // Exponents stay in the middle, so that nothing is a NaN.
        let pairs = |seed| words(300, seed).iter().map(|v| v & 0xbfff_bfff | 0x2000_2000).collect::<Vec<_>>();
        let (c, d) = (pairs(17), pairs(23));
        bench.write(0, &c);
        bench.write(0x1000, &d);
        let p = parameters(&[0x2000, 0x3000, 0x4000, 0, 0x1000], &[300]);
        bench.launch("half2_ops", [3, 1, 1], [128, 1, 1], &p).expect("runs");
        let all: Vec<_> = c.iter().zip(&d).map(|(a, b)| fixtures::reference::half2_ops(*a, *b)).collect();
        assert_eq!(bench.read(0x2000, 300), all.iter().map(|x| x.0).collect::<Vec<_>>(), "{arch}");
        assert_eq!(bench.read(0x3000, 300), all.iter().map(|x| x.1).collect::<Vec<_>>(), "{arch}");
        assert_eq!(bench.read(0x4000, 300), all.iter().map(|x| x.2).collect::<Vec<_>>(), "{arch}");
    }
}

#[test]
fn local_memory_calls_and_recursion_equal_the_host() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        let v = words(200, 29);
        bench.write(0, &v);
        let p = parameters(&[0x2000, 0], &[200]);
        for (kernel, reference) in [
            ("local_array", fixtures::reference::local_array as fn(u32) -> u32),
            ("recursion", fixtures::reference::recursion),
        ] {
            bench.launch(kernel, [2, 1, 1], [128, 1, 1], &p).expect("runs");
            let expected: Vec<u32> = v.iter().map(|x| reference(*x)).collect();
            assert_eq!(bench.read(0x2000, 200), expected, "{kernel} {arch}");
        }
        bench.launch("deep_local", [2, 1, 1], [64, 1, 1], &parameters(&[0x2000], &[9, 100])).expect("runs");
        let expected: Vec<u32> = (0..100).map(|i| fixtures::reference::deep_local(9, i)).collect();
        assert_eq!(bench.read(0x2000, 100), expected, "{arch}");
    }
}

#[test]
fn blocks_that_wait_for_each_other_finish() {
    for arch in ARCHES {
        let bench = Bench::new(arch);
        bench.launch("handshake", [2, 1, 1], [1, 1, 1], &parameters(&[0, 0x1000], &[50])).expect("runs");
        assert_eq!(bench.read(0x1000, 100), fixtures::reference::handshake(50), "{arch}");
    }
}

#[test]
fn faults_are_typed_and_name_the_instruction() {
    let bench = Bench::new("sm_89");
    let fail = |kernel, p: &[u8]| bench.launch(kernel, [1, 1, 1], [32, 1, 1], p).expect_err("a fault");
    let fault = fail("trap", &parameters(&[0], &[3]));
    assert_eq!((fault.kind, fault.lanes), (FaultKind::Trap, 1 << 3));
    assert!(fault.text.contains("BPT.TRAP"), "{}", fault.text);
    let far = fail("store_at", &parameters(&[0], &[0, 0x100, 5, 0]));
    assert!(matches!(far.kind, FaultKind::Mmu(_)), "{far}");
    let odd = fail("load_at", &parameters(&[0, 0], &[4, 0]));
    assert_eq!(odd.kind, FaultKind::Misaligned { address: DATA + 4 });
    let shared = fail("shared_store_at", &parameters(&[0], &[1 << 20]));
    assert!(matches!(shared.kind, FaultKind::OutOfRangeShared { .. }), "{shared}");
}

/// Runs a kernel of `fixtures/sm` with its input at 0.
fn run(
    configuration: Configuration,
    kernel: &str,
    launch: ([u32; 3], [u32; 3]),
    p: &[u8],
    input: &[u32],
) -> Bench {
    let bench = Bench::with("sm_89", configuration);
    let elf = fixtures::bytes("sm/sm_89.cubin").expect("the fixture");
    bench.write(0, input);
    bench.launch_elf(&elf, kernel, launch.0, launch.1, 16, p).expect("runs");
    bench
}

fn plainly(kernel: &str, launch: ([u32; 3], [u32; 3]), p: &[u8], input: &[u32]) -> Bench {
    run(Configuration::default(), kernel, launch, p, input)
}

#[test]
fn barriers_named_by_a_register_hold_their_own_threads() {
    let p = parameters(&[0x2000], &[1, 64]);
    let bench = plainly("named_barriers", ([1, 1, 1], [256, 1, 1]), &p, &[]);
    let expected: Vec<u32> = (0..256).map(|t| (t ^ 63) * 3).collect();
    assert_eq!(bench.read(0x2000, 256), expected);
}

#[test]
fn a_barrier_that_the_launch_does_not_have_is_a_fault() {
    let bench = Bench::new("sm_89");
    let elf = fixtures::bytes("sm/sm_89.cubin").expect("the fixture");
    let p = parameters(&[0x2000], &[1, 64]);
    let fault =
        bench.launch_elf(&elf, "named_barriers", [1, 1, 1], [256, 1, 1], 4, &p).expect_err("5 barriers");
    assert!(
        matches!(fault.kind, FaultKind::IllegalBarrier { index: 4, threads: 64, barriers: 4 }),
        "{fault}"
    );
    let p = parameters(&[0x2000], &[1, 63]);
    let fault =
        bench.launch_elf(&elf, "named_barriers", [1, 1, 1], [256, 1, 1], 16, &p).expect_err("63 threads");
    assert!(matches!(fault.kind, FaultKind::IllegalBarrier { threads: 63, .. }), "{fault}");
}

#[test]
fn asynchronous_copies_fill_the_rest_with_zeros() {
    let input = words(4 * 128, 41);
    let one = ([1, 1, 1], [128, 1, 1]);
    let bench = plainly("copy_async", one, &parameters(&[0x2000, 0], &[77]), &input);
    let expected: Vec<u32> = (0..128usize)
        .flat_map(|t| if t ^ 1 < 77 { input[4 * (t ^ 1)..4 * (t ^ 1) + 4].to_vec() } else { vec![0; 4] })
        .collect();
    assert_eq!(bench.read(0x2000, 512), expected);
    for bytes in 0..=8u32 {
        let bench = plainly("copy_part", one, &parameters(&[0x2000, 0], &[bytes]), &input);
        let mask = if bytes == 0 { 0 } else { u64::MAX >> (64 - 8 * bytes) };
        let expected: Vec<u32> = (0..128usize)
            .flat_map(|t| {
                let at = 2 * (t ^ 1);
                let v = (u64::from(input[at]) | u64::from(input[at + 1]) << 32) & mask;
                [v as u32, (v >> 32) as u32]
            })
            .collect();
        assert_eq!(bench.read(0x2000, 256), expected, "{bytes} bytes");
    }
}

#[test]
fn matrices_are_loaded_and_transposed() {
    let input = words(128, 43);
    let element = |matrix: usize, row: usize, column: usize| {
        let at = 64 * matrix + 8 * row + column;
        input[at / 2] >> (16 * (at % 2)) & 0xffff
    };
    let bench = plainly("matrices", ([1, 1, 1], [32, 1, 1]), &parameters(&[0x2000, 0], &[]), &input);
    let pair = |low: u32, high: u32| low | high << 16;
    let mut expected = Vec::new();
    for (matrix, transposed) in
        [0, 1, 2, 3].map(|m| (m, false)).into_iter().chain([0, 1, 2, 3, 0].map(|m| (m, true)))
    {
        for lane in 0..32 {
            let (row, column) = (lane / 4, lane % 4 * 2);
            expected.push(if transposed {
                pair(element(matrix, column, row), element(matrix, column + 1, row))
            } else {
                pair(element(matrix, row, column), element(matrix, row, column + 1))
            });
        }
    }
    assert_eq!(bench.read(0x2000, 9 * 32), expected);
}

#[test]
fn match_finds_the_lanes_with_one_value() {
    let input: Vec<u32> = (0..32).map(|i| i * i % 7).collect();
    let bench = plainly("matches", ([1, 1, 1], [32, 1, 1]), &parameters(&[0x2000, 0], &[]), &input);
    let any: Vec<u32> =
        input.iter().map(|v| (0..32).fold(0, |mask, i| mask | u32::from(input[i] == *v) << i)).collect();
    let sum: u32 = input.iter().sum();
    let out = bench.read(0x2000, 160);
    assert_eq!(out[..32], any);
    assert_eq!(out[32..96], [0; 64]);
    assert_eq!(out[96..128], any);
    assert_eq!(out[128..], [sum; 32]);
    let bench = plainly("matches", ([1, 1, 1], [32, 1, 1]), &parameters(&[0x2000, 0], &[]), &[9; 32]);
    assert_eq!(bench.read(0x2000, 64), [u32::MAX; 64]);
    assert_eq!(bench.read(0x2080 + 0x80, 32), [1; 32]);
}

/// One worker, several workers, and seeds: what waits for each other finishes in all of them.
fn schedules() -> Vec<Configuration> {
    let plain = Configuration::default();
    let mut all = vec![Configuration { threads: 1, ..plain }, Configuration { threads: 3, ..plain }];
    all.push(Configuration { threads: 3, compile: Compile::Always, ..plain });
    all.extend((1..4).map(|seed| Configuration { seed: Some(seed), ..plain }));
    all
}

#[test]
fn a_lock_that_each_lane_takes_is_given_on() {
    for configuration in schedules() {
        let p = parameters(&[0x2000, 0x2040], &[3]);
        let bench = run(configuration, "lane_lock", ([3, 1, 1], [64, 1, 1]), &p, &[]);
        assert_eq!(bench.read(0x2040, 1), [3 * 64 * 3], "{configuration:?}");
    }
}

#[test]
fn more_blocks_than_workers_meet_at_a_grid_barrier() {
    for configuration in schedules() {
        let blocks = 24;
        let p = parameters(&[0x1000, 0x2000], &[3]);
        let bench = run(configuration, "grid_barrier", ([blocks, 1, 1], [64, 1, 1]), &p, &[]);
        let out = bench.read(0x2000, 2 * blocks as usize);
        assert!(out[..24].iter().all(|v| *v == 1 + 2 + 3), "{configuration:?}");
        assert!(out[24..].iter().all(|v| *v == 1 + 3 + 6), "{configuration:?}");
    }
}

#[test]
fn blocks_that_look_back_and_warps_that_wait_for_each_other_finish() {
    for configuration in schedules() {
        let p = parameters(&[0x2000, 0], &[]);
        let bench = run(configuration, "look_back", ([40, 1, 1], [32, 1, 1]), &p, &[3; 40]);
        let expected: Vec<u32> = (1..=40).map(|i| 3 * i).collect();
        assert_eq!(bench.read(0x2000, 40), expected, "{configuration:?}");
        let bench =
            run(configuration, "warp_pipe", ([1, 1, 1], [64, 1, 1]), &parameters(&[0x2000], &[50]), &[]);
        let expected: Vec<u32> = (0..50).map(|i| i * 7 + 1).collect();
        assert_eq!(bench.read(0x2000, 50), expected, "{configuration:?}");
    }
}

#[test]
fn a_seed_repeats_itself_and_another_differs() {
    let order = |seed| {
        let configuration = Configuration { seed: Some(seed), ..Configuration::default() };
        let p = parameters(&[0x1000, 0x2000], &[]);
        run(configuration, "order", ([16, 1, 1], [256, 1, 1]), &p, &[]).read(0x2000, 128)
    };
    let first = order(1);
    assert_eq!(first, order(1));
    assert!((2..6).any(|seed| order(seed) != first));
}

#[test]
fn code_that_was_replaced_is_not_run_stale() {
    let bench = Bench::new("sm_89");
    bench.write(0, &[5; 32]);
    let p = parameters(&[0x2000, 0], &[32]);
    let elf = fixtures::bytes("sm/sm_89.cubin").expect("the fixture");
    for _ in 0..2 {
        bench.launch("divide_constant", [1, 1, 1], [32, 1, 1], &p).expect("runs");
        let divided = bench.read(0x2000, 2);
        bench.launch_elf(&elf, "matches", [1, 1, 1], [32, 1, 1], 16, &p).expect("runs");
        assert_eq!(bench.read(0x2000, 1), [u32::MAX]);
        assert_ne!(divided[0], u32::MAX);
    }
}

#[test]
fn what_is_not_simulated_is_named_and_counted() {
    let bench = Bench::new("sm_89");
    let fault = {
        let mut elf = fixtures::cubin("sm_89", "empty").expect("a fixture").to_vec();
        let exit =
            sections(&elf).into_iter().find(|section| section.0 == ".text.empty").expect("code").1.to_vec();
        let at = elf.windows(exit.len()).position(|bytes| bytes == exit).expect("code");
        // S2R of a counter of performance.
        let counter = 0x000e_2200_0000_6400_0000_0000_0000_7919_u128;
        elf[at..at + 16].copy_from_slice(&counter.to_le_bytes());
        bench.launch_elf(&elf, "empty", [1, 1, 1], [32, 1, 1], 16, &[]).expect_err("SR_PM0 is not simulated")
    };
    assert!(matches!(&fault.kind, FaultKind::Unsupported(what) if what.starts_with("S2R")), "{fault}");
    assert_eq!(bench.processor.unsupported().len(), 1);
}
