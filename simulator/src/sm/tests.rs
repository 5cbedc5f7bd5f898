//! Fixture kernels against their host references.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{ConstantBuffer, FaultKind, Launch, Options, Statistics, run};
use crate::memory::{Access, AddressSpace, Backing};

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
    space: Arc<AddressSpace>,
}

impl Bench {
    fn new() -> Self {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 18), (BANKS, 1 << 18), (DATA, 1 << 22)] {
            let backing = Arc::new(Backing::new("test", bytes).expect("small"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
        }
        Self { space }
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
    ) -> Result<Statistics, super::Fault> {
        let elf = fixtures::cubin("sm_89", kernel).expect("a fixture");
        let sections = sections(&elf);
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
        let mut zero = vec![0; 0x160];
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
            registers: (info >> 24).max(16),
            shared_bytes: if shared { 48 << 10 } else { 1 << 10 },
            local_bytes: 0x4000,
            barriers: 16,
            constant_buffers: banks,
            shared_window: 0x7294_0000_0000,
            local_window: 0x7293_0000_0000,
            sm: 89,
            grid_id: 1,
        };
        let stop = AtomicBool::new(false);
        run(&launch, &map, &Options::new(&stop))
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

#[test]
fn vector_add_equals_the_host() {
    let bench = Bench::new();
    let (a, b) = (floats(1000, 2_654_435_761), floats(1000, 40503));
    bench.write(0, &bits(&a));
    bench.write(0x1000, &bits(&b));
    let p = parameters(&[0x2000, 0, 0x1000], &[1000]);
    bench.launch("vector_add", [8, 1, 1], [128, 1, 1], &p).expect("runs");
    assert_eq!(bench.read(0x2000, 1000), bits(&fixtures::reference::vector_add(&a, &b)));
}

#[test]
fn reductions_by_shuffle_equal_the_host() {
    let bench = Bench::new();
    let a = floats(1024, 2_654_435_761);
    bench.write(0, &bits(&a));
    let p = parameters(&[0x2000, 0], &[1024]);
    bench.launch("reduce_f32", [4, 1, 1], [256, 1, 1], &p).expect("runs");
    assert_eq!(bench.read(0x2000, 4), bits(&fixtures::reference::reduce_f32(&a, 256)));
}

#[test]
fn a_trap_is_a_typed_fault() {
    let fault = Bench::new().launch("trap", [1, 1, 1], [32, 1, 1], &parameters(&[0], &[3]));
    assert_eq!(fault.expect_err("BPT.TRAP").kind, FaultKind::Trap);
}
