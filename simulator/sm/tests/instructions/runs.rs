//! Whole programs of random instructions, compiled and by handlers: registers, predicates, memory, faults and counts are the
//! same. What single instructions compute is compared with a reference elsewhere; here it is about everything that
//! compiling changes: values that stay in vector registers, guards, lanes that do not run, what is not stored because it is
//! overwritten, loads and stores whose lanes lie anyhow, or where they must not, and that other lanes of the warp look at
//! before and after.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{Compile, Configuration, ConstantBuffer, Fault, Launch, Processor, Statistics};
use sass::{Arch, Bank, FieldId, Guard, Instruction, Op, Operand, SpecialRegister};

use super::lab::{self, Frame, immediate, predicate, register};
use super::random;

pub(super) const CODE: u64 = lab::CODE;
const BANK: u64 = 0x40_0000;
pub(super) const INPUT: u64 = 0x100_0000;
pub(super) const OUTPUT: u64 = 0x200_0000;
/// Memory that is read only.
pub(super) const FIXED: u64 = 0x300_0000;
/// What lanes of a warp store for each other.
const COMMON: u64 = OUTPUT + (1 << 19);
pub(super) const BYTES: u64 = 1 << 20;
const SHARED_BYTES: u32 = 16 << 10;
/// Where threads store, each for itself.
const STORED: i32 = 12 << 10;
/// Where the lanes of a warp store for each other, in global and in shared memory alike: so many bytes for each warp.
const PASSED: i32 = 10 << 10;
const WARP_BYTES: u64 = 256;
const THREADS: usize = 144;
/// Threads of a block's rows: where there are several rows, the indices of a warp's threads are no line.
const WIDTHS: [u64; 3] = [THREADS as u64, 16, 8];
const PROGRAMS: usize = 250;

/// BAR.SYNC.DEFER_BLOCKING 0x0.
const BARRIER: u128 = 0x000f_ec00_0001_0000_0000_0000_0000_7b1d;

/// Instructions before a program that is to lie across two pages.
const ACROSS: usize = 110;

/// NOP.
pub(super) const NOTHING: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

/// Registers that instructions read and write.
pub(super) const FIRST: u8 = 32;
pub(super) const COUNT: u8 = 16;
/// Addresses, which only the beginning writes: of single words and of items of 16 bytes, the same for eight lanes, and
/// anywhere; then pairs of the same in global memory.
const SHARED: [u8; 4] = [4, 5, 6, 7];
const GLOBAL: [u8; 3] = [8, 10, 12];
/// Where lanes of a warp store for each other: in global memory a word each, a pair; in shared memory a word each, and one
/// for all.
const PASS_GLOBAL: u8 = 24;
const PASS_SHARED: [u8; 2] = [26, 27];
/// Addresses that are computed right before.
const COMPUTED: u8 = 28;
/// How often the thread goes around, and where its results go.
const TURNS: u8 = 14;
const TO: u8 = 16;
const SCRATCH: u8 = 20;

/// Mnemonics of which programs are made: all that are compiled, and some that are not.
const MNEMONICS: &[Op] = &[
    Op::Iadd3,
    Op::Imad,
    Op::ImadWide,
    Op::Isetp,
    Op::Imnmx,
    Op::Iabs,
    Op::Lop3,
    Op::Shf,
    Op::Lea,
    Op::Sel,
    Op::Mov,
    Op::Fadd,
    Op::Fmul,
    Op::Ffma,
    Op::Fmnmx,
    Op::Fsel,
    Op::Fsetp,
    Op::Plop3,
    Op::Uiadd3,
    Op::Ulop3,
    Op::Ushf,
    Op::Uimad,
    Op::ImadHi,
    Op::Prmt,
    Op::Popc,
    Op::I2f,
    Op::F2i,
    Op::Mufu,
    Op::Hadd2,
    Op::Hmul2,
    Op::Hfma2,
    Op::F2f,
    Op::F2fp,
    Op::Frnd,
    Op::P2r,
    Op::R2p,
    Op::Brev,
];

/// Whether something happens that does once in so many times.
pub(super) fn one_in(times: u64, state: &mut u64) -> bool {
    random(state).is_multiple_of(times)
}

pub(super) fn forms(arch: Arch) -> Vec<Vec<Instruction>> {
    let one = |op: &Op| -> Vec<Instruction> {
        let rows = lab::rows_of(*op, arch);
        let blanks = rows.flat_map(|row| {
            lab::field_values(row, 60).into_iter().filter_map(move |values| lab::blank(row, &values, arch))
        });
        blanks
            .flat_map(|blank| lab::forms(&blank, true, &[0x1f, 0x3f81_0203, 0x8000_0001]))
            .filter(|form| nv_sm::executes(form).is_ok() && !form.operands().iter().any(is_described))
            .collect()
    };
    MNEMONICS.iter().map(one).filter(|forms| !forms.is_empty()).collect()
}

/// An operand of a bank that registers describe: any others make no bank.
fn is_described(operand: &Operand) -> bool {
    matches!(operand, Operand::Constant { bank: Bank::Uniform(_), .. })
}

/// The instruction with others of `count` registers and some predicates, and often a guard.
pub(super) fn vary(
    instruction: &Instruction,
    (count, predicates): (u8, u8),
    state: &mut u64,
) -> Option<u128> {
    let mut varied = *instruction;
    for (slot, operand) in instruction.operands().iter().enumerate() {
        let other = match *operand {
            Operand::Register { index, marks, half } if index != Operand::RZ => {
                let index = FIRST + (random(state) % u64::from(count - 1)) as u8;
                // Pairs mostly begin with an even one.
                Operand::Register {
                    index: index & !u8::from(!one_in(4, state) || index & 1 == 0),
                    marks,
                    half,
                }
            }
            Operand::UniformRegister { index, marks, half } if index != Operand::URZ => {
                Operand::UniformRegister { index: 6 + 2 * (random(state) % 6) as u8, marks, half }
            }
            Operand::Predicate { index, negated, uniform } if index != Operand::PT => {
                Operand::Predicate { index: (random(state) % u64::from(predicates)) as u8, negated, uniform }
            }
            other => other,
        };
        varied.set_operand(slot, other)?;
    }
    if one_in(4, state) {
        varied.guard = Guard {
            index: (random(state) % u64::from(predicates)) as u8,
            negated: one_in(2, state),
            uniform: instruction.row.uniform_guard,
        };
    }
    let word = sass::encode(&varied).ok()?;
    let again = sass::decode(word, CODE, instruction.arch).ok()?;
    nv_sm::executes(&again).is_ok().then_some(word)
}

pub(super) fn address(base: u8, wide: bool, offset: i32) -> Operand {
    Operand::Address { base, wide, scale: 0, uniform: None, descriptor: None, offset }
}

/// A load or a store by all lanes, each right behind the one before.
fn access_evenly(f: &mut Frame, state: &mut u64) {
    let choice = random(state);
    let data = register(FIRST + 4 * (choice >> 8 & 3) as u8);
    let (size, bytes, wider) = if choice >> 16 & 3 == 0 { (".128", 16, 1) } else { ("", 4, 0) };
    let offset = bytes * (choice >> 24 & 7) as i32;
    let near = 4 * (choice >> 24 & 15) as i32;
    let shared = |size| [(FieldId::Size, size)];
    let global = |size| [(FieldId::Wide64, ".E"), (FieldId::Size, size)];
    let pass_shared = address(PASS_SHARED[0], false, PASSED + near);
    let pass_global = address(PASS_GLOBAL, true, near);
    // The register below a base may be written, which is no concern of the base.
    if choice >> 32 & 3 == 0 {
        f.mov(PASS_GLOBAL + 1, 0);
    }
    // Bases may be computed right before.
    let (low, high) = (COMPUTED, COMPUTED + 1);
    let product = |f: &mut Frame, op, fields: &[_], by: u64, more: u8| {
        let carry = if op == Op::ImadWide { Some(predicate(7)) } else { None };
        let to = [register(low)].into_iter().chain(carry);
        let operands: Vec<_> = to.chain([register(0), immediate(by), register(more)]).collect();
        f.push(op, fields, &operands);
    };
    if choice >> 36 & 1 == 0 {
        match choice >> 37 & 3 {
            // Numbers of threads, four bytes each, which rise by 256 and fall by 252.
            0 => product(f, Op::ImadWide, &[(FieldId::Signed, "")], u64::from(252u32.wrapping_neg()), 2),
            // Eight bytes each.
            1 => product(f, Op::ImadWide, &[(FieldId::Signed, ".U32")], 4, GLOBAL[0]),
            2 => product(f, Op::Imad, &[], 4, 255),
            _ => product(f, Op::Imad, &[], 12, SHARED[0]),
        }
        match choice >> 37 & 3 {
            0 => f.push(Op::Ldg, &global(""), &[data, address(low, true, 16 + offset)]),
            1 => f.push(Op::Ldg, &global(".64"), &[data, address(low, true, 16 + 2 * offset)]),
            2 => f.push(Op::Lds, &shared(""), &[data, address(low, false, 16 + offset)]),
            _ => f.push(Op::Lds, &shared(".128"), &[data, address(low, false, 16 + 4 * (offset & !15))]),
        }
        if choice >> 40 & 7 == 0 {
            f.mov(high, choice >> 44);
        }
        return;
    }
    match choice % 7 {
        0 => f.push(Op::Sts, &shared(".128"), &[address(SHARED[1], false, STORED), data]),
        1 => f.push(Op::Ldg, &global(size), &[data, address(GLOBAL[wider], true, 16 + offset)]),
        2 => f.push(Op::Lds, &shared(size), &[data, address(SHARED[wider], false, 16 + offset)]),
        3 => f.push(Op::Lds, &shared(""), &[data, pass_shared]),
        4 => f.push(Op::Sts, &shared(""), &[pass_shared, data]),
        5 => f.push(Op::Ldg, &global(""), &[data, pass_global]),
        _ => f.push(Op::Stg, &global(""), &[pass_global, data]),
    }
}

/// A load or a store, mostly where it may be.
fn access(f: &mut Frame, state: &mut u64) {
    let size = [("", 4), (".64", 8), (".128", 16)][(random(state) % 3) as usize];
    let data = FIRST + 4 * (random(state) % 4) as u8;
    let choice = random(state);
    let offset = (size.1 * (choice >> 8 & 7) as i32) - if choice >> 16 & 3 == 0 { 16 } else { 0 };
    // The first base is for single words.
    let narrow = usize::from(size.1 != 4);
    let shared = [(FieldId::Size, size.0)];
    let global = [(FieldId::Wide64, ".E"), (FieldId::Size, size.0)];
    // Among the words of a warp.
    let near = 4 * (choice >> 24 & 15) as i32;
    match choice % 8 {
        0 => f.push(Op::Sts, &shared, &[address(SHARED[1], false, STORED), register(data)]),
        1 | 2 => {
            let base = GLOBAL[narrow + (choice >> 20) as usize % (3 - narrow)];
            f.push(Op::Ldg, &global, &[register(data), address(base, true, 16 + offset)]);
        }
        3 | 4 => {
            let base = SHARED[narrow + (choice >> 20) as usize % (4 - narrow)];
            f.push(Op::Lds, &shared, &[register(data), address(base, false, 16 + offset)]);
        }
        5 => {
            let word = [(FieldId::Size, "")];
            let base = PASS_SHARED[usize::from(choice >> 20 & 7 == 0)];
            let (op, operands) = if choice >> 23 & 1 == 0 {
                (Op::Lds, [register(data), address(base, false, PASSED + near)])
            } else {
                (Op::Sts, [address(base, false, PASSED + near), register(data)])
            };
            f.push(op, &word, &operands);
        }
        6 => f.push(Op::Stg, &global, &[address(TO, true, 320 + 16 * (near / 16)), register(data)]),
        _ => {
            let word = [(FieldId::Wide64, ".E"), (FieldId::Size, "")];
            let place = address(PASS_GLOBAL, true, near);
            let (op, operands) = if choice >> 23 & 1 == 0 {
                (Op::Ldg, [register(data), place])
            } else {
                (Op::Stg, [place, register(data)])
            };
            f.push(op, &word, &operands);
        }
    }
    if choice >> 32 & 3 == 0
        && let Some(word) = f.words.last_mut()
    {
        *word = *word & !(0xf << 12) | u128::from(choice >> 40 & 3 | (choice >> 44 & 1) << 3) << 12;
    }
}

/// A program, and how much of it is between the beginning and the end.
fn program(arch: Arch, forms: &[Vec<Instruction>], width: u64, state: &mut u64) -> Vec<u128> {
    let mut frame = Frame { arch, words: Vec::new() };
    let f = &mut frame;
    f.push(Op::S2r, &[], &[register(0), Operand::Special(SpecialRegister::TID_X)]);
    f.push(Op::S2r, &[], &[register(1), Operand::Special(SpecialRegister::TID_Y)]);
    f.push(Op::Imad, &[], &[register(0), register(1), immediate(width), register(0)]);
    let product = |f: &mut Frame, to: u8, by: u64, start: u64| {
        f.mov(to, start);
        f.push(Op::Imad, &[], &[register(to), register(0), immediate(by), register(to)]);
    };
    product(f, 2, 256, INPUT);
    f.mov(3, 0);
    for quad in 0..COUNT / 4 {
        f.access(Op::Ldg, 2, i32::from(quad) * 16, FIRST + 4 * quad);
    }
    // Addresses, the number of turns, predicates; the random ones come from the input too.
    for to in SCRATCH..SCRATCH + 4 {
        f.mov(to, 0);
    }
    product(f, SHARED[0], 4, 0);
    product(f, SHARED[1], 16, 0);
    // Shared memory holds what the launch before left, which hostile lanes get to see, and after a fault is a matter of order.
    let row = 16 * THREADS as i32;
    let rows = (0..SHARED_BYTES as i32 - row).step_by(row as usize);
    for at in rows.chain([SHARED_BYTES as i32 - row]) {
        f.access(Op::Sts, SHARED[1], at, SCRATCH);
    }
    f.words.push(BARRIER);
    f.access(Op::Ldg, 2, 64, SCRATCH);
    let copy = |f: &mut Frame, to: u8, from: u8| {
        f.push(Op::Mov, &[], &[register(to), register(from), immediate(0xf)]);
    };
    copy(f, SHARED[2], SCRATCH);
    copy(f, SHARED[3], SCRATCH + 1);
    copy(f, TURNS, SCRATCH + 2);
    product(f, GLOBAL[0], 4, INPUT);
    product(f, GLOBAL[1], 16, INPUT);
    f.mov(GLOBAL[2], INPUT);
    f.push(
        Op::Iadd3,
        &[],
        &[register(GLOBAL[2]), predicate(7), predicate(7), register(GLOBAL[2]), register(SCRATCH + 3)],
    );
    for base in GLOBAL {
        f.mov(base + 1, 0);
    }
    for index in 0..7 {
        f.set(index, FIRST + 2 * index);
    }
    for index in 0..8 {
        f.make_uniform(6 + 2 * index.min(5), FIRST + index);
    }
    for index in 0..7 {
        f.set_uniform(index, 6 + 2 * index.min(5));
    }
    product(f, TO, 512, OUTPUT);
    f.mov(TO + 1, 0);
    for quad in 0..4 {
        f.access(Op::Sts, SHARED[1], 2560 * quad, FIRST + 4 * quad as u8);
    }
    f.access(Op::Sts, SHARED[1], STORED, FIRST);
    f.access(Op::Ldg, 2, 80, PASS_GLOBAL);
    f.words.push(BARRIER);
    // Lanes meet behind the loop, as compilers have it.
    let meeting = f.words.len();
    f.words.push(NOTHING);
    let start = f.words.len();
    // Small ones are likely to be loops that are compiled as such: of few registers, arithmetic of single lanes alone.
    let small = one_in(2, state);
    // Some go around evenly, with accesses in order.
    let even = one_in(2, state);
    let (range, length) =
        if small { ((4, 2), 1 + random(state) % 24) } else { ((COUNT, 5), 4 + random(state) % 90) };
    let mut exits = Vec::new();
    for _ in 0..length {
        if one_in(
            if !small {
                8
            } else if even {
                4
            } else {
                16
            },
            state,
        ) {
            if even && !one_in(16, state) {
                access_evenly(f, state);
            } else {
                access(f, state);
            }
            continue;
        }
        if small && !even && exits.len() < 2 && one_in(8, state) {
            exits.push(f.words.len());
            f.words.push(NOTHING);
        }
        let mnemonic = &forms[random(state) as usize % forms.len()];
        let instruction = &mnemonic[random(state) as usize % mnemonic.len()];
        if small && (instruction.row.uniform_guard || !nv_sm::compiles(instruction)) {
            continue;
        }
        if let Some(word) = vary(instruction, range, state) {
            f.words.push(word);
        }
    }
    // Lanes leave one by one.
    f.mov(SCRATCH, u32::MAX.into());
    f.push(
        Op::Iadd3,
        &[],
        &[register(TURNS), predicate(7), predicate(7), register(TURNS), register(SCRATCH)],
    );
    f.set(6, TURNS);
    // Labels are encoded as if the instruction were the first one.
    let back = CODE as i64 - 16 * (f.words.len() - start) as i64;
    f.push(Op::Bra, &[], &[predicate(7), Operand::Label { target: back }]);
    if let Some(word) = f.words.last_mut() {
        *word = *word & !(0xf << 12) | 6 << 12;
    }
    // Some lanes leave before.
    for exit in exits {
        let behind = CODE as i64 + 16 * (f.words.len() - exit) as i64;
        f.push(Op::Bra, &[], &[predicate(7), Operand::Label { target: behind }]);
        if let Some(word) = f.words.pop() {
            f.words[exit] =
                word & !(0xf << 12) | u128::from(random(state) % 2 + 8 * (random(state) % 2)) << 12;
        }
    }
    let behind = CODE as i64 + 16 * (f.words.len() - meeting) as i64;
    f.push(Op::Bssy, &[], &[predicate(7), Operand::Barrier(0), Operand::Label { target: behind }]);
    f.words.swap_remove(meeting);
    f.push(Op::Bsync, &[], &[predicate(7), Operand::Barrier(0)]);
    for quad in 0..COUNT / 4 {
        f.access(Op::Stg, TO, i32::from(quad) * 16, FIRST + 4 * quad);
    }
    for index in 0..7 {
        let held = [register(SCRATCH), register(0), register(255), predicate(index)];
        f.push(Op::Sel, &[], &held);
        f.access(Op::Stg, TO, 64 + 16 * i32::from(index), SCRATCH);
    }
    for index in 0..6 {
        f.copy_uniform(SCRATCH, 6 + 2 * index);
        f.access(Op::Stg, TO, 192 + 16 * i32::from(index), SCRATCH);
    }
    f.access(Op::Lds, SHARED[1], STORED, SCRATCH);
    f.access(Op::Stg, TO, 304, SCRATCH);
    f.push(Op::Exit, &[], &[]);
    frame.words
}

/// What each thread begins with: registers, then addresses and turns.
fn input(state: &mut u64) -> Vec<u32> {
    // Warps have no order, so that only one may meet faults.
    let hostile = if one_in(3, state) { random(state) as usize % THREADS.div_ceil(32) } else { usize::MAX };
    let rare = 1 + random(state) % 32;
    let turns = if one_in(2, state) { Some(1 + random(state) as u32 % 5) } else { None };
    let mut words = vec![0; THREADS * 64];
    for (thread, words) in words.chunks_exact_mut(64).enumerate() {
        for word in &mut words[..16] {
            let bits = random(state);
            *word = match bits >> 60 {
                0..4 => super::EDGES[bits as usize % super::EDGES.len()] as u32,
                4..7 => 0x3f00_0000 + (bits as u32 & 0x01ff_ffff),
                7..9 => bits as u32 % 80,
                _ => bits as u32,
            };
        }
        words[16] = (random(state) % 256) as u32 * 16;
        words[17] = (thread / 8) as u32 * 32;
        words[18] = turns.unwrap_or(1 + (random(state) % 5) as u32);
        words[19] = (random(state) % 256) as u32 * 16;
        let (warp, lane) = ((thread / 32) as u64, (thread % 32) as u64);
        words[20] = (COMMON + WARP_BYTES * warp + 4 * lane) as u32;
        words[22] = (WARP_BYTES * warp + 4 * lane) as u32;
        words[23] = (WARP_BYTES * warp) as u32;
        if thread / 32 == hostile && one_in(rare, state) {
            let choice = random(state) as usize;
            match choice % 4 {
                0 => words[16] = [4, 0xffff_fff0, 0x3ffc, 0x000f_fff8][choice >> 8 & 3],
                1 => words[19] = [4, 0xffff_fff0, 0x3ffc, 0x000f_fff8][choice >> 8 & 3],
                2 => {
                    // To be read only, not at all, askew, and partly behind the end.
                    let places = [FIXED, 0x500_0000, COMMON + 2, OUTPUT + BYTES - 64];
                    words[20] = (places[choice >> 8 & 3] + 4 * lane) as u32;
                }
                // Askew, partly behind the end, and before the beginning: nowhere where another warp looks.
                _ => {
                    let passed = PASSED as u32;
                    let places = [2, SHARED_BYTES - passed - 32, 0u32.wrapping_sub(passed + 64)];
                    words[22] = places[(choice >> 8) % 3];
                }
            }
        }
    }
    words
}

pub(super) struct Gpu {
    processor: Processor,
    space: Arc<AddressSpace>,
}

impl Gpu {
    pub(super) fn new(compile: Compile) -> Self {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 16), (BANK, 1 << 16), (INPUT, BYTES), (OUTPUT, BYTES)] {
            let backing = Arc::new(Backing::new("runs", bytes).expect("small"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
        }
        let fixed = Arc::new(Backing::new("runs", 1 << 16).expect("small"));
        space.map(FIXED, 1 << 16, fixed, 0, Access::ReadOnly).expect("free");
        let bank: Vec<u8> = [0, lab::CONSTANT.1].iter().flat_map(|word| word.to_le_bytes()).collect();
        space.snapshot().write(BANK + lab::CONSTANT.0 as u64 - 8, &bank).expect("mapped");
        Self {
            processor: Processor::new(Configuration { threads: 1, compile, ..Configuration::default() }),
            space,
        }
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) {
        self.space.snapshot().write(address, bytes).expect("mapped");
    }

    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) {
        self.space.snapshot().read(address, bytes).expect("mapped");
    }

    /// Runs a program.
    pub(super) fn launch(
        &self,
        arch: Arch,
        words: &[u128],
        grid: [u32; 3],
        block: [u32; 3],
    ) -> Result<Statistics, Fault> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(CODE, &code);
        let mut constant_buffers = [None; 8];
        constant_buffers[0] = Some(ConstantBuffer { address: BANK, bytes: lab::BANK_BYTES });
        let launch = Launch {
            program_address: CODE,
            grid,
            block,
            cluster: [1; 3],
            registers: 64,
            shared_bytes: SHARED_BYTES,
            local_bytes: 0,
            barriers: 1,
            constant_buffers,
            shared_window: 0x7294_0000_0000,
            local_window: 0x7293_0000_0000,
            sm: arch.sm(),
            textures: nv_sm::Textures::default(),
            grid_id: 1,
        };
        self.processor.run(&launch, &self.space.snapshot(), &AtomicBool::new(false))
    }

    /// What a program leaves, and what was counted or what it failed with.
    fn run(&self, arch: Arch, words: &[u128], input: &[u32], width: u64) -> (Vec<u8>, String) {
        let input: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(INPUT, &input);
        let mut out = vec![0; THREADS * 512];
        self.write(OUTPUT, &out);
        let mut common = [0; WARP_BYTES as usize * THREADS.div_ceil(32)];
        self.write(COMMON, &common);
        let block = [width as u32, THREADS as u32 / width as u32, 1];
        let told = match self.launch(arch, words, [1; 3], block) {
            // Lanes that leave a compiled loop one by one come to its end together, and are counted once there.
            Ok(statistics) => format!("{} lanes", statistics.lane_instructions),
            // What else ran before the fault is a matter of order.
            Err(fault) => {
                let Fault { kind, program_counter, warp, lanes, .. } = fault;
                return (
                    Vec::new(),
                    format!("{kind:?} at {program_counter:#x} of lanes {lanes:#x} of {warp}"),
                );
            }
        };
        self.read(OUTPUT, &mut out);
        self.read(COMMON, &mut common);
        out.extend(common);
        (out, told)
    }
}

/// A program with as little between two places as still differs.
pub(super) fn smallest(
    mut words: Vec<u128>,
    mut told: String,
    between: Range<usize>,
    differ: &dyn Fn(&[u128]) -> Option<String>,
) -> (Vec<u128>, String) {
    for _ in 0..2 {
        for i in between.clone() {
            let mut fewer = words.clone();
            fewer[i] = NOTHING;
            if let Some(differs) = differ(&fewer) {
                (words, told) = (fewer, differs);
            }
        }
    }
    (words, told)
}

pub(super) fn listing(arch: Arch, words: &[u128]) -> String {
    let line = |(i, word): (usize, &u128)| match sass::decode(*word, CODE + 16 * i as u64, arch) {
        Ok(instruction) => format!("{i:4} {instruction}\n"),
        Err(error) => format!("{i:4} {error}\n"),
    };
    words.iter().enumerate().filter(|(_, word)| **word != NOTHING).map(line).collect()
}

#[test]
fn compiled_programs_leave_what_handlers_do() {
    let (compiled, handlers) = (Gpu::new(Compile::Always), Gpu::new(Compile::Never));
    let mut state = 1;
    let mut faults = 0;
    for arch in [Arch::Sm80, Arch::Sm89, Arch::Sm90] {
        let forms = forms(arch);
        for number in 0..PROGRAMS {
            let width = WIDTHS[number % WIDTHS.len()];
            let mut words = program(arch, &forms, width, &mut state);
            if number % 3 == 0 {
                // The random part goes on in the next page of code.
                words.splice(..0, [NOTHING; ACROSS]);
            }
            let input = input(&mut state);
            let differ = |words: &[u128]| -> Option<String> {
                let (have, told) = compiled.run(arch, words, &input, width);
                let (wanted, expected) = handlers.run(arch, words, &input, width);
                if have == wanted && told == expected {
                    return None;
                }
                let at = have.iter().zip(&wanted).position(|(a, b)| a != b);
                let at = at.map(|at| (at / 512, at % 512 / 4));
                Some(format!("{told}, not {expected}; thread and word {at:?}"))
            };
            faults += usize::from(handlers.run(arch, &words, &input, width).0.is_empty());
            if let Some(told) = differ(&words) {
                let start = words.iter().rposition(|word| *word == BARRIER).map_or(0, |at| at + 1);
                let between = start..words.len() - 38;
                let (words, told) = smallest(words, told, between, &differ);
                panic!("program {number}: {told}\n{}", listing(arch, &words));
            }
        }
    }
    assert!((1..PROGRAMS).contains(&faults), "some programs fault, most do not: {faults}");
}
