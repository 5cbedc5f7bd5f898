//! Programs without loops, compiled and by handlers: blocks that are executed at once, and those for which something does not
//! hold. Threads leave at bounds, memory ends, is read only, or is stored to and loaded from by neighbours.

use nv_sm::{Compile, Fault, Statistics};
use sass::{Arch, FieldId, Instruction, Op, Operand, SpecialRegister};

use super::lab::{Frame, immediate, predicate, register};
use super::random;
use super::runs::{
    BYTES, COUNT, FIRST, FIXED, Gpu, INPUT, OUTPUT, address, forms, listing, one_in, smallest, vary,
};

const PROGRAMS: usize = 250;
/// Most threads of a grid, and the bytes of an item of 16 bytes for each.
const THREADS: u64 = 1024;
const PLANE: i32 = 16 * THREADS as i32;
/// What nobody stores to.
const APART: usize = 17 * PLANE as usize;
/// Blocks, mostly of whole warps in a row.
const BLOCKS: [[u32; 3]; 8] =
    [[32, 1, 1], [64, 1, 1], [256, 1, 1], [128, 1, 1], [256, 1, 1], [144, 1, 1], [16, 4, 1], [64, 2, 1]];

/// The number of the thread in the grid, and of the block.
const THREAD: u8 = 0;
const BLOCK: u8 = 1;
/// Addresses of items of 4, 8, 16, 1 and 2 bytes that are loaded and stored, pairs.
const FROM: [u8; 5] = [2, 4, 6, 16, 18];
const TO: [u8; 5] = [8, 10, 12, 22, 24];
/// Of one item for all.
const SAME: u8 = 14;
const SCRATCH: u8 = 20;
/// The predicate of checks: random instructions have those below.
const LEAVES: u8 = 5;

/// An EXIT for threads that a comparison finds.
fn leave(f: &mut Frame, threads: u64, state: &mut u64) {
    let choice = random(state);
    // Mostly nobody is beyond the bound.
    let bound = match choice & 7 {
        0 => threads - 1,
        1 => threads / 2,
        2 => 0x8000_0000,
        _ => threads,
    };
    let signed = ["", ".U32"][(choice >> 3 & 1) as usize];
    let (what, with) = if choice >> 4 & 3 == 0 { (BLOCK, 64) } else { (THREAD, bound) };
    let compare = |f: &mut Frame, test: &str, boolean: &str, from: Operand| {
        let fields = [(FieldId::Compare, test), (FieldId::Signed, signed), (FieldId::Boolean, boolean)];
        f.push(Op::Isetp, &fields, &[predicate(LEAVES), predicate(7), register(what), immediate(with), from]);
    };
    let mut guard = u128::from(LEAVES);
    match choice >> 8 & 3 {
        0 => {
            compare(f, ".LT", ".AND", predicate(7));
            guard |= 8;
        }
        1 => {
            compare(f, ".GT", ".AND", predicate(7));
            compare(f, ".EQ", ".OR", predicate(LEAVES));
        }
        _ => compare(f, ".GE", ".AND", predicate(7)),
    }
    f.push(Op::Exit, &[], &[]);
    if let Some(word) = f.words.last_mut() {
        *word = *word & !(0xf << 12) | guard << 12;
    }
}

/// An access to an item of its own by each thread, or to one by all. Items of a size have planes of their own.
fn access(f: &mut Frame, op: Op, data: u8, only: Option<usize>, state: &mut u64) {
    let wide = only.unwrap_or((random(state) % 5) as usize);
    let (bases, plane) = match op {
        Op::Ldg => (FROM, 0),
        _ if only.is_some() => (TO, PLANE * (random(state) % 2) as i32),
        _ if wide >= 3 => (TO, PLANE * (12 + wide as i32)),
        _ => (TO, PLANE * (2 * wide as i32 + (random(state) % 2) as i32)),
    };
    let size = match (wide, one_in(2, state) && op == Op::Ldg) {
        (3, true) => ".S8",
        (4, true) => ".S16",
        _ => ["", ".64", ".128", ".U8", ".U16"][wide],
    };
    let fields = [(FieldId::Wide64, ".E"), (FieldId::Size, size)];
    let base = if op == Op::Ldg && one_in(8, state) { SAME } else { bases[wide] };
    let place = address(base, true, plane);
    let operands = if op == Op::Ldg { [register(data), place] } else { [place, register(data)] };
    f.push(op, &fields, &operands);
}

/// A program, and where its random part begins and ends.
fn program(
    arch: Arch,
    forms: &[Vec<Instruction>],
    [width, all, rows]: [u64; 3],
    state: &mut u64,
) -> (Vec<u128>, [usize; 2]) {
    let mut frame = Frame { arch, words: Vec::new() };
    let f = &mut frame;
    f.push(Op::S2r, &[], &[register(THREAD), Operand::Special(SpecialRegister::TID_X)]);
    f.push(Op::S2r, &[], &[register(BLOCK), Operand::Special(SpecialRegister::CTAID_X)]);
    f.push(Op::S2r, &[], &[register(SCRATCH), Operand::Special(SpecialRegister::CTAID_Y)]);
    let sum = [register(BLOCK), predicate(7), predicate(7), register(BLOCK), register(SCRATCH)];
    f.push(Op::Iadd3, &[], &sum);
    f.push(Op::S2r, &[], &[register(SCRATCH), Operand::Special(SpecialRegister::TID_Y)]);
    f.push(Op::Imad, &[], &[register(THREAD), register(SCRATCH), immediate(width), register(THREAD)]);
    f.push(Op::Imad, &[], &[register(THREAD), register(BLOCK), immediate(width * rows), register(THREAD)]);
    if one_in(2, state) {
        leave(f, all, state);
    }
    let choice = random(state);
    // What is loaded may be stored to in place, or by a neighbour; memory may end, be read only, askew, or not be there.
    let one_warp = width * rows <= 32;
    // Otherwise items of several sizes would be those of several threads.
    let only = (choice >> 8 & 15 == 1 && !one_warp).then_some((choice >> 20) as usize % 5);
    let from = if choice & 15 == 0 { INPUT + BYTES - 16 * all + 16 * (choice >> 4 & 3) } else { INPUT };
    let to = match choice >> 8 & 15 {
        0 => FIXED,
        1 => from,
        2 | 7..11 if one_warp => from + 16,
        3 => 0x500_0000,
        4 => OUTPUT + 2,
        5 => OUTPUT + BYTES - 8 * all,
        6 if one_warp => from + 64,
        _ => OUTPUT,
    };
    for (bases, start) in [(FROM, from), (TO, to)] {
        for (base, by) in bases.into_iter().zip([4, 8, 16, 1, 2]) {
            f.mov(base, start);
            f.mov(base + 1, 0);
            let sign = [(FieldId::Signed, ["", ".U32"][(choice >> 16 & 1) as usize])];
            let operands = [register(base), predicate(7), register(THREAD), immediate(by), register(base)];
            f.push(Op::ImadWide, &sign, &operands);
        }
    }
    f.mov(SAME, INPUT + APART as u64);
    f.mov(SAME + 1, 0);
    for quad in 0..COUNT / 4 {
        for word in 0..4 {
            f.mov(FIRST + 4 * quad + word, u64::from(random(state) as u32));
        }
        access(f, Op::Ldg, FIRST + 4 * quad, only, state);
    }
    for to in 6..17 {
        f.mov_uniform(to, u64::from(random(state) as u32));
    }
    // Without this they are what a warp begins with.
    if !one_in(8, state) {
        for index in 0..5 {
            f.set(index, FIRST + 2 * index);
        }
    }
    let start = f.words.len();
    for _ in 0..random(state) % 40 {
        if one_in(8, state) {
            let data = FIRST + 4 * (random(state) % 4) as u8;
            let op = if one_in(2, state) { Op::Ldg } else { Op::Stg };
            access(f, op, data, only, state);
            continue;
        }
        if one_in(16, state) {
            leave(f, all, state);
            continue;
        }
        let mnemonic = &forms[random(state) as usize % forms.len()];
        let instruction = &mnemonic[random(state) as usize % mnemonic.len()];
        if (!one_in(64, state) && !nv_sm::compiles(instruction)) || instruction.row.uniform_guard {
            continue;
        }
        if let Some(word) = vary(instruction, (COUNT, 5), state) {
            f.words.push(word);
        }
    }
    let end = f.words.len();
    for quad in 0..COUNT / 4 {
        let place = address(TO[2], true, PLANE * (6 + i32::from(quad)));
        let fields = [(FieldId::Wide64, ".E"), (FieldId::Size, ".128")];
        f.push(Op::Stg, &fields, &[place, register(FIRST + 4 * quad)]);
    }
    for index in 0..5 {
        let held = [register(SCRATCH), register(THREAD), register(255), predicate(index)];
        f.push(Op::Sel, &[], &held);
        let place = address(TO[0], true, PLANE * (10 + i32::from(index)));
        f.push(Op::Stg, &[(FieldId::Wide64, ".E"), (FieldId::Size, "")], &[place, register(SCRATCH)]);
    }
    f.push(Op::Exit, &[], &[]);
    (frame.words, [start, end])
}

/// What a program leaves in memory, and what was counted or what it failed with.
fn run(
    gpu: &Gpu,
    arch: Arch,
    words: &[u128],
    input: &[u8],
    grid: [u32; 3],
    block: [u32; 3],
) -> (Vec<u8>, String) {
    const AREA: usize = 18 * PLANE as usize;
    let mut memory = vec![0; 2 * AREA];
    memory[..input.len()].copy_from_slice(input);
    memory[APART..APART + 16].copy_from_slice(&input[..16]);
    gpu.write(INPUT, &memory[..AREA]);
    gpu.write(OUTPUT, &memory[AREA..]);
    // What a program left there that failed is a matter of order.
    for start in [INPUT, OUTPUT] {
        gpu.write(start + BYTES - PLANE as u64, &memory[AREA..AREA + PLANE as usize]);
    }
    match gpu.launch(arch, words, grid, block) {
        Ok(Statistics { instructions, lane_instructions, ctas }) => {
            gpu.read(INPUT, &mut memory[..AREA]);
            gpu.read(OUTPUT, &mut memory[AREA..]);
            (memory, format!("{instructions} instructions, {lane_instructions} lanes, {ctas} blocks"))
        }
        // Warps have no order: which of several faults is found is left open.
        Err(_) if block.iter().product::<u32>() > 32 => (Vec::new(), String::from("a fault")),
        Err(Fault { kind, program_counter, cta, warp, lanes, .. }) => {
            (Vec::new(), format!("{kind:?} at {program_counter:#x} of lanes {lanes:#x} of {warp} of {cta:?}"))
        }
    }
}

#[test]
fn blocks_that_are_executed_at_once_leave_what_handlers_do() {
    let (compiled, handlers) = (Gpu::new(Compile::Always), Gpu::new(Compile::Never));
    let mut state = 7;
    let mut faults = 0;
    for arch in [Arch::Sm80, Arch::Sm90] {
        let forms = forms(arch);
        for number in 0..PROGRAMS {
            let block = BLOCKS[number % BLOCKS.len()];
            let blocks = 1 + (random(&mut state) % 4) as u32;
            let grid = if one_in(4, &mut state) { [1, blocks, 1] } else { [blocks, 1, 1] };
            let [width, rows] = [block[0], block[1]].map(u64::from);
            let threads = [width, width * rows * u64::from(blocks), rows];
            let (words, [start, end]) = program(arch, &forms, threads, &mut state);
            let input: Vec<u8> = (0..PLANE / 8).flat_map(|_| random(&mut state).to_le_bytes()).collect();
            let differ = |words: &[u128]| -> Option<String> {
                let (have, told) = run(&compiled, arch, words, &input, grid, block);
                let (wanted, expected) = run(&handlers, arch, words, &input, grid, block);
                if have == wanted && told == expected {
                    return None;
                }
                let at = have.iter().zip(&wanted).position(|(a, b)| a != b);
                Some(format!("{told}, not {expected}; byte {at:?}"))
            };
            faults += usize::from(run(&handlers, arch, &words, &input, grid, block).0.is_empty());
            if let Some(told) = differ(&words) {
                let (words, told) = smallest(words, told, start..end, &differ);
                panic!("program {number}, {grid:?} {block:?}: {told}\n{}", listing(arch, &words));
            }
        }
    }
    assert!((1..PROGRAMS).contains(&faults), "some programs fault, most do not: {faults}");
}
