//! Matrix products that follow one another, which are executed together where none needs another's result: the same registers
//! come out as where one is computed after the other by the rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{Compile, Configuration, ConstantBuffer, Launch, Processor};
use sass::lane::mma::{Accumulator, Factor, LANES, Numerics, Register, hmma};
use sass::{Arch, FieldId, Op, Operand, SpecialRegister};

use super::lab::{self, Frame, immediate, register, uniform_predicate};
use super::random;

const BANK: u64 = 0x40_0000;
const INPUT: u64 = 0x100_0000;
const OUTPUT: u64 = 0x200_0000;
const BYTES: u64 = 1 << 20;
const WARPS: usize = 3;
const THREADS: usize = LANES * WARPS;
/// Registers that take part: in places where four lie together.
const FIRST: u8 = 16;
const COUNT: usize = 32;
const PRODUCTS: usize = 24;
const PROGRAMS: usize = 40;

/// The first registers of D, A, B and C, and whether factors are BF16.
type Product = ([u8; 4], bool);

fn program(products: &[Product]) -> Vec<u128> {
    let mut frame = Frame { arch: Arch::Sm89, words: Vec::new() };
    let f = &mut frame;
    f.push(Op::S2r, &[], &[register(0), Operand::Special(SpecialRegister::TID_X)]);
    for (to, start) in [(2, INPUT), (4, OUTPUT)] {
        f.mov(to, start);
        f.push(Op::Imad, &[], &[register(to), register(0), immediate(4 * COUNT as u64), register(to)]);
        f.mov(to + 1, 0);
    }
    let fours = || (0..COUNT as u8 / 4).map(|four| (i32::from(four) * 16, FIRST + 4 * four));
    for (offset, to) in fours() {
        f.access(Op::Ldg, 2, offset, to);
    }
    for ([d, a, b, c], brain) in products {
        let kind = if *brain { ".BF16" } else { "" };
        let fields = [(FieldId::Shape, ".16816"), (FieldId::Accumulate, ".F32"), (FieldId::SourceType, kind)];
        f.push(
            Op::Hmma,
            &fields,
            &[register(*d), register(*a), register(*b), register(*c), uniform_predicate(7)],
        );
    }
    for (offset, from) in fours() {
        f.access(Op::Stg, 4, offset, from);
    }
    f.push(Op::Exit, &[], &[]);
    frame.words
}

/// The registers of a warp after a product.
fn multiply(registers: &mut [Register], ([d, a, b, c], brain): Product) {
    let of = |first: u8, count: usize| -> Vec<Register> {
        let number = |i: usize| usize::from(first) + i;
        let value = |i: usize| {
            if first == Operand::RZ { [0; LANES] } else { registers[number(i) - usize::from(FIRST)] }
        };
        (0..count).map(value).collect()
    };
    let factor = if brain { Factor::Bf16 } else { Factor::F16 };
    let result = hmma(factor, Accumulator::F32, 16, Numerics::AMPERE, &of(a, 4), &of(b, 2), &of(c, 4));
    let at = usize::from(d - FIRST);
    registers[at..at + 4].copy_from_slice(&result.expect("a form"));
}

#[test]
fn products_in_a_row_are_those_of_one_after_the_other() {
    let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
    for (at, bytes) in [(lab::CODE, 1 << 16), (BANK, 1 << 16), (INPUT, BYTES), (OUTPUT, BYTES)] {
        let backing = Arc::new(Backing::new("products", bytes).expect("small"));
        space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
    }
    let map = space.snapshot();
    let configuration = Configuration { threads: 1, compile: Compile::Never, ..Configuration::default() };
    let processor = Processor::new(configuration);
    let mut state = 5;
    for number in 0..PROGRAMS {
        let mut pick = |choices: usize| random(&mut state) as usize % choices;
        // Few registers, so that products need one another's results and overwrite what they read; or results apart.
        let apart = pick(2) == 0;
        let products: Vec<Product> = (0..PRODUCTS)
            .map(|_| {
                let mut four = |from: usize, to: usize| FIRST + 4 * (from + pick(to - from)) as u8;
                let [d, a, c] = if apart {
                    [four(4, 8), four(0, 3), four(4, 8)]
                } else {
                    [four(0, 8), four(0, 8), four(0, 8)]
                };
                let b = if apart { four(3, 4) } else { four(0, 8) } + 2 * pick(2) as u8;
                let c = [d, d, c, Operand::RZ][pick(4)];
                ([d, a, b, c], number % 2 == 1 && pick(4) != 0)
            })
            .collect();
        // FP16 in both halves are BF16 too, and FP32: of moderate size, now and then anything.
        let words: Vec<u32> = (0..THREADS * COUNT)
            .map(|_| {
                let bits = random(&mut state);
                if bits >> 32 & 0xfff == 0 { bits as u32 } else { bits as u32 & 0x87ff_87ff | 0x3800_3800 }
            })
            .collect();
        let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
        let code: Vec<u8> = program(&products).iter().flat_map(|word| word.to_le_bytes()).collect();
        map.write(lab::CODE, &code).expect("mapped");
        map.write(INPUT, &bytes(&words)).expect("mapped");
        let mut constant_buffers = [None; 8];
        constant_buffers[0] = Some(ConstantBuffer { address: BANK, bytes: lab::BANK_BYTES });
        let launch = Launch {
            program_address: lab::CODE,
            grid: [1; 3],
            block: [THREADS as u32, 1, 1],
            cluster: [1; 3],
            registers: 64,
            shared_bytes: 0,
            local_bytes: 0,
            barriers: 0,
            constant_buffers,
            shared_window: 0x7294_0000_0000,
            local_window: 0x7293_0000_0000,
            sm: Arch::Sm89.sm(),
            textures: nv_sm::Textures::default(),
            grid_id: 1,
        };
        processor.run(&launch, &map, &AtomicBool::new(false)).expect("no fault");
        let mut expected = words.clone();
        for warp in expected.chunks_mut(LANES * COUNT) {
            let mut registers: Vec<Register> = (0..COUNT)
                .map(|register| std::array::from_fn(|lane| warp[lane * COUNT + register]))
                .collect();
            for product in &products {
                multiply(&mut registers, *product);
            }
            for (lane, words) in warp.chunks_mut(COUNT).enumerate() {
                for (word, register) in words.iter_mut().zip(&registers) {
                    *word = register[lane];
                }
            }
        }
        let mut out = vec![0; 4 * words.len()];
        map.read(OUTPUT, &mut out).expect("mapped");
        assert!(out == bytes(&expected), "program {number}: {products:?}");
    }
}
