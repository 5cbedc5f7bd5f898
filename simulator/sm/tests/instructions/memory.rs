//! Instructions that reach memory, or other lanes of the warp, through the interpreter: each row of the instruction
//! table, each value of each field, each kind of address, in each space that the address may lie in.
//!
//! Every thread of one warp has a slot of 64 bytes in global, shared and local memory. An instruction runs on slots that
//! are filled anew; its registers, predicate and slots are compared with `model`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{Configuration, ConstantBuffer, Fault, Launch, Processor, Statistics};
use sass::{Arch, Bank, FieldId, Half, Instruction, Marks, Op, Operand, Row, SpecialRegister};

use super::lab::{self, CODE, Frame, immediate, predicate, register, uniform, uniform_predicate};
use super::model::{self, BEFORE, CONSTANTS, Given, SLOT, Space, Thread, WARP};
use super::{Tally, claims, random};

const BANK: u64 = 0x40_0000;
const INPUT: u64 = 0x100_0000;
const OUTPUT: u64 = 0x110_0000;
const GLOBAL: u64 = 0x140_0000;
const BYTES: usize = 1 << 23;
/// Low, so that addresses of 32 bits reach it too.
const SHARED_WINDOW: u64 = 0x7200_0000;
const LOCAL_WINDOW: u64 = 0x7293_0000_0000;

/// Instructions of one launch.
const BATCH: usize = 100;
/// Words that are read for a thread: registers and the first content of its slots.
const INPUTS: usize = 24;
/// Words that are stored for a thread: four of the result, the predicate, and from the sixteenth on its slot.
const OUTPUTS: usize = 32;

/// Where things are while the instructions run.
mod at {
    /// The slot's address, the same through the windows of shared and of local memory, each a pair.
    pub const GLOBAL: u8 = 2;
    pub const SHARED_GENERIC: u8 = 6;
    pub const LOCAL_GENERIC: u8 = 44;
    /// The slot's offset in shared and in local memory, and that divided by 4, 8 and 16.
    pub const OFFSET: u8 = 4;
    pub const QUARTER: u8 = 57;
    pub const EIGHTH: u8 = 58;
    pub const SIXTEENTH: u8 = 59;
    /// Four words each.
    pub const DATA: [u8; 2] = [8, 12];
    /// What the slot holds before.
    pub const CONTENT: u8 = 16;
    pub const RESULT: u8 = 40;
    pub const SCRATCH: u8 = 48;
    pub const OUTPUT: u8 = 52;
    pub const INPUT: u8 = 54;
    pub const ONE: u8 = 60;
    /// Uniform registers: the description of constant bank 0, of memory, an addend, the result.
    pub const DESCRIPTION: u8 = 4;
    pub const DESCRIPTOR: u8 = 6;
    pub const ADDEND: u8 = 8;
    pub const UNIFORM_RESULT: u8 = 20;
}

/// Everything here.
pub const ALL: &[Op] = &[
    Op::Ldg,
    Op::Ld,
    Op::Lds,
    Op::Ldl,
    Op::Stg,
    Op::St,
    Op::Sts,
    Op::Stl,
    Op::Ldc,
    Op::Uldc,
    Op::Ldgsts,
    Op::Atom,
    Op::AtomCas,
    Op::Atomg,
    Op::AtomgCas,
    Op::Red,
    Op::Redg,
    Op::Atoms,
    Op::AtomsCas,
    Op::AtomsCast,
    Op::Ldsm,
    Op::Stsm,
    Op::Qspc,
    Op::Shfl,
    Op::Vote,
    Op::Voteu,
    Op::Match,
    Op::Redux,
    Op::Elect,
];

/// The spaces that a mnemonic's addresses may lie in; of those that have none, the first says nothing.
fn spaces(op: Op) -> &'static [Space] {
    match op {
        Op::Ld | Op::St | Op::Qspc => &[Space::Global, Space::Shared, Space::Local],
        Op::Atom | Op::AtomCas => &[Space::Global, Space::Shared, Space::Local],
        Op::Lds | Op::Sts | Op::Atoms | Op::AtomsCas | Op::AtomsCast | Op::Ldsm | Op::Stsm => {
            &[Space::Shared]
        }
        Op::Ldl | Op::Stl => &[Space::Local],
        _ => &[Space::Global],
    }
}

/// Combinations of field values in which every value occurs, and every combination of those that count for the result.
fn combinations(row: &'static Row, arch: Arch) -> Vec<Instruction> {
    let mut seen = BTreeSet::new();
    let counts = [FieldId::Size, FieldId::Function, FieldId::Count, FieldId::Transpose, FieldId::ZeroFill];
    lab::field_values(row, 1 << 14)
        .iter()
        .filter_map(|values| lab::blank(row, values, arch))
        .filter(|instruction| {
            let together: Vec<_> = counts.iter().map(|id| instruction.field(*id)).collect();
            let mut new = seen.insert(format!("{together:?}"));
            for modifier in &row.modifiers {
                new |= seen.insert(format!("{:?} {:?}", modifier.id, instruction.field(modifier.id)));
            }
            new
        })
        .collect()
}

/// The choices for one operand.
fn choices(instruction: &Instruction, slot: usize, space: Space) -> Vec<Operand> {
    let operands = instruction.operands();
    let address = operands.iter().position(|operand| matches!(operand, Operand::Address { .. }));
    let before = |what: fn(&Operand) -> bool| operands[..slot].iter().filter(|operand| what(operand)).count();
    let hidden = instruction.row.slots[slot].hide == sass::Hide::Always;
    match operands[slot] {
        Operand::Register { .. } | Operand::UniformRegister { .. } if hidden => vec![register(Operand::RZ)],
        Operand::UniformRegister { .. } => vec![uniform(at::UNIFORM_RESULT)],
        Operand::Register { .. } => {
            let is_register = |operand: &Operand| matches!(operand, Operand::Register { .. });
            let writes = matches!(instruction.op, Op::Redux | Op::Elect | Op::Voteu)
                || address.is_some_and(|address| slot > address);
            let earlier = before(is_register);
            if !writes && earlier == 0 {
                return vec![register(at::RESULT), register(Operand::RZ)];
            }
            // Those behind the address, or behind the result.
            let number = match address {
                Some(address) => {
                    operands[address..slot].iter().filter(|operand| is_register(operand)).count()
                }
                None if writes => earlier,
                None => earlier - 1,
            };
            let sources = [at::DATA[0], at::DATA[1], at::DATA[1] + 1];
            vec![register(sources.get(number).copied().unwrap_or(Operand::RZ))]
        }
        Operand::Predicate { uniform: true, .. } => vec![uniform_predicate(7)],
        Operand::Predicate { .. } => {
            let is_predicate = |operand: &Operand| matches!(operand, Operand::Predicate { .. });
            let not = Operand::Predicate { index: 0, negated: true, uniform: false };
            let written = before(is_predicate) == 0 && address.is_none_or(|address| slot < address);
            // That of LDG stands behind the address.
            let written = written && instruction.op != Op::Voteu || instruction.op == Op::Ldg && slot == 2;
            // Which of them the row has is the encoder's to say.
            if written { vec![predicate(7), predicate(2)] } else { vec![predicate(7), predicate(0), not] }
        }
        Operand::Address { scale: _, uniform, descriptor, .. } => {
            addresses(instruction, slot, space, uniform.is_some() || descriptor.is_some())
        }
        Operand::Constant { .. } => {
            let (marks, half, offset) = (Marks::default(), Half::Both, CONSTANTS as i32);
            let constant = |bank, index, uniform_index| Operand::Constant {
                bank,
                offset,
                index,
                uniform_index,
                marks,
                half,
            };
            let mut all = vec![constant(Bank::Number(0), Operand::RZ, false)];
            all.push(constant(Bank::Number(0), at::EIGHTH, false));
            all.push(constant(Bank::Number(0), at::ADDEND, true));
            all.push(constant(Bank::Uniform(at::DESCRIPTION), Operand::RZ, false));
            all.push(constant(Bank::Uniform(at::DESCRIPTION), at::EIGHTH, false));
            all
        }
        // Lane and mask of SHFL.
        Operand::Immediate { kind, .. } => {
            let bits: &[u64] = if slot == 4 { &[0x1f, 0x181c, 0x0c07] } else { &[3, 17] };
            bits.iter().map(|&bits| Operand::Immediate { bits, kind }).collect()
        }
        operand => vec![operand],
    }
}

fn addresses(instruction: &Instruction, slot: usize, space: Space, has_uniform: bool) -> Vec<Operand> {
    // LDGSTS has one address of shared memory and one of global memory.
    let space = match instruction.op {
        Op::Ldgsts if slot == 0 => Space::Shared,
        _ => space,
    };
    let generic = matches!(instruction.op, Op::Ld | Op::St | Op::Atom | Op::AtomCas | Op::Qspc);
    let bases: &[(u8, u8)] = match space {
        Space::Global => &[(at::GLOBAL, 0)],
        Space::Shared if generic => &[(at::SHARED_GENERIC, 0)],
        Space::Local if generic => &[(at::LOCAL_GENERIC, 0)],
        _ => &[(at::OFFSET, 0), (at::QUARTER, 2), (at::EIGHTH, 3), (at::SIXTEENTH, 4)],
    };
    let pairs: &[(Option<u8>, Option<u8>)] = if has_uniform {
        &[(Some(at::ADDEND), None), (None, Some(at::DESCRIPTOR)), (Some(Operand::URZ), None)]
    } else {
        &[(None, None)]
    };
    let mut all = Vec::new();
    for &(base, scale) in bases {
        for &(uniform, descriptor) in pairs {
            for wide in [true, false] {
                for offset in [16, 0] {
                    all.push(Operand::Address { base, wide, scale, uniform, descriptor, offset });
                }
            }
        }
    }
    all
}

/// An instruction with each choice for each operand, the other operands having their first one that can be encoded.
fn dressed(blank: &Instruction, space: Space) -> Vec<Instruction> {
    let generic = matches!(blank.op, Op::Ld | Op::St | Op::Qspc | Op::Atom | Op::AtomCas);
    // Addresses of 32 bits do not reach the window of local memory.
    let far = generic && space == Space::Local;
    if far && blank.spelling(FieldId::Wide64) == Some("") {
        return Vec::new();
    }
    let slots = blank.operands().len();
    let all: Vec<Vec<Operand>> = (0..slots).map(|slot| choices(blank, slot, space)).collect();
    let with = |instruction: &Instruction, slot: usize, operand: Operand| {
        let mut changed = *instruction;
        changed.set_operand(slot, operand)?;
        lab::settle(&changed)
    };
    let mut plain = *blank;
    for (slot, choices) in all.iter().enumerate() {
        let Some(set) = choices.iter().find_map(|operand| with(&plain, slot, *operand)) else {
            return Vec::new();
        };
        plain = set;
    }
    let mut out = vec![plain];
    for (slot, choices) in all.iter().enumerate() {
        for operand in choices.iter().filter(|operand| **operand != plain.operands()[slot]) {
            out.extend(with(&plain, slot, *operand));
        }
    }
    let short = |operand: &Operand| match operand {
        Operand::Address { wide, uniform, descriptor, .. } => {
            !wide && (uniform.is_some() || descriptor.is_some())
        }
        _ => false,
    };
    out.retain(|instruction| !far || !instruction.operands().iter().any(short));
    out
}

struct Bench {
    arch: Arch,
    processor: Processor,
    space: Arc<AddressSpace>,
}

/// What each thread of the warp has in its registers, and in its slot before.
fn threads(seed: u64) -> [Given; WARP] {
    let mut state = seed;
    std::array::from_fn(|_| {
        let mut word = || match random(&mut state) {
            bits if bits >> 61 == 0 => super::EDGES[bits as usize % super::EDGES.len()] as u32,
            bits if bits >> 61 == 1 => super::EDGES[bits as usize % super::EDGES.len()] as u32 | 0x3c00_0000,
            // Few values, so that some threads have the same.
            bits if bits >> 61 < 4 => bits as u32 & 3,
            // Floats of moderate size.
            bits if bits >> 61 == 4 => bits as u32 & 0x83ff_ffff | 0x3800_0000,
            bits => bits as u32,
        };
        let data = [[0; 4]; 2].map(|words| words.map(|_: u32| word()));
        let mut content = [0; SLOT / 4].map(|_: u32| word());
        content[0] &= 1;
        // What is to be compared with is often there.
        if word() & 1 == 0 {
            let at = if word() & 2 == 0 { 4 } else { 8 };
            content[at..at + 4].copy_from_slice(&data[0]);
        }
        Given { data, content }
    })
}

impl Bench {
    fn new(arch: Arch) -> Self {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 21), (BANK, 1 << 16), (INPUT, BYTES as u64)] {
            let backing = Arc::new(Backing::new("memory", bytes).expect("small"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
        }
        let map = space.snapshot();
        let description = BANK >> 4 | u64::from(lab::BANK_BYTES >> 4) << 45;
        let words = [description, model::ADDEND];
        for (at, word) in words.iter().enumerate() {
            map.write(BANK + 0x30 + 8 * at as u64, &word.to_le_bytes()).expect("mapped");
        }
        map.write(BANK + CONSTANTS, &model::constants()).expect("mapped");
        let configuration = Configuration { threads: 1, ..Configuration::default() };
        Self { arch, processor: Processor::new(configuration), space }
    }

    fn program(&self, instructions: &[(usize, Instruction, Space)]) -> (Vec<u128>, BTreeMap<usize, usize>) {
        let mut frame = Frame { arch: self.arch, words: Vec::new() };
        let f = &mut frame;
        f.push(Op::S2r, &[], &[register(0), Operand::Special(SpecialRegister::TID_X)]);
        let scaled = |f: &mut Frame, to: u8, by: u64, start: u64| {
            f.mov(to, start);
            f.push(Op::Imad, &[], &[register(to), register(0), immediate(by), register(to)]);
        };
        for (to, divisor) in [(at::OFFSET, 1), (at::QUARTER, 4), (at::EIGHTH, 8), (at::SIXTEENTH, 16)] {
            scaled(f, to, SLOT as u64 / divisor, 0);
        }
        for (pair, window) in [(at::SHARED_GENERIC, SHARED_WINDOW), (at::LOCAL_GENERIC, LOCAL_WINDOW)] {
            scaled(f, pair, SLOT as u64, window & 0xffff_ffff);
            f.mov(pair + 1, window >> 32);
        }
        scaled(f, at::OUTPUT, 4 * OUTPUTS as u64, OUTPUT);
        scaled(f, at::INPUT, 4 * INPUTS as u64, INPUT);
        for zero in [at::OUTPUT + 1, at::INPUT + 1, at::GLOBAL + 1] {
            f.mov(zero, 0);
        }
        f.mov(at::ONE, 1);
        let quads =
            [at::DATA[0], at::DATA[1], at::CONTENT, at::CONTENT + 4, at::CONTENT + 8, at::CONTENT + 12];
        for (i, to) in quads.into_iter().enumerate() {
            f.access(Op::Ldg, at::INPUT, 16 * i as i32, to);
        }
        // Holds in the threads whose slot begins with 1.
        f.set(0, at::CONTENT);
        let constant = |offset| Operand::Constant {
            bank: Bank::Number(0),
            offset,
            index: Operand::RZ,
            uniform_index: false,
            marks: Marks::default(),
            half: Half::Both,
        };
        for (to, offset) in [(at::DESCRIPTION, 0x30), (at::ADDEND, 0x38)] {
            f.push(Op::Uldc, &[(FieldId::Size, ".64")], &[uniform(to), constant(offset)]);
        }
        let mut places = BTreeMap::new();
        for (place, &(number, instruction, space)) in instructions.iter().enumerate() {
            let uniform_result =
                instruction.operands().iter().any(|o| matches!(o, Operand::UniformRegister { .. }));
            scaled(f, at::GLOBAL, SLOT as u64, GLOBAL + (place * WARP * SLOT) as u64);
            for word in 0..4 {
                f.mov(at::RESULT + word, BEFORE[usize::from(word)].into());
                if uniform_result {
                    f.mov_uniform(at::UNIFORM_RESULT + word, BEFORE[usize::from(word)].into());
                }
            }
            f.set(2, Operand::RZ);
            let touches = if instruction.op == Op::Ldgsts { Space::Shared } else { space };
            let (load, store) = match touches {
                Space::Local => (Op::Ldl, Op::Stl),
                _ => (Op::Lds, Op::Sts),
            };
            for quad in 0..4 {
                f.access(store, at::OFFSET, 16 * i32::from(quad), at::CONTENT + 4 * quad);
            }
            places.insert(f.words.len(), number);
            f.words.push(instruction.word);
            if uniform_result {
                for word in 0..4 {
                    f.copy_uniform(at::RESULT + word, at::UNIFORM_RESULT + word);
                }
            }
            let out = (place * WARP * OUTPUTS * 4) as i32;
            f.access(Op::Stg, at::OUTPUT, out, at::RESULT);
            let held = [register(at::SCRATCH), register(at::ONE), register(Operand::RZ), predicate(2)];
            f.push(Op::Sel, &[], &held);
            f.access(Op::Stg, at::OUTPUT, out + 16, at::SCRATCH);
            for quad in 0..4 {
                f.access(load, at::OFFSET, 16 * quad, at::SCRATCH);
                f.access(Op::Stg, at::OUTPUT, out + 64 + 16 * quad, at::SCRATCH);
            }
        }
        f.push(Op::Exit, &[], &[]);
        (frame.words, places)
    }

    /// Runs a program in one warp.
    fn launch(&self, words: &[u128]) -> Result<Statistics, Fault> {
        let map = self.space.snapshot();
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        map.write(CODE, &code).expect("mapped");
        let mut constant_buffers = [None; 8];
        constant_buffers[0] = Some(ConstantBuffer { address: BANK, bytes: lab::BANK_BYTES });
        let launch = Launch {
            program_address: CODE,
            grid: [1, 1, 1],
            block: [WARP as u32, 1, 1],
            cluster: [1; 3],
            registers: 64,
            shared_bytes: 4096,
            local_bytes: 4096,
            barriers: 1,
            constant_buffers,
            shared_window: SHARED_WINDOW,
            local_window: LOCAL_WINDOW,
            sm: self.arch.sm(),
            textures: nv_sm::Textures::default(),
            grid_id: 1,
        };
        self.processor.run(&launch, &map, &AtomicBool::new(false))
    }

    /// Runs each instruction; what cannot run yields the fault's name instead.
    fn run(
        &self,
        instructions: &[(Instruction, Space)],
        given: &[Given; WARP],
    ) -> Vec<Result<Vec<Thread>, String>> {
        let map = self.space.snapshot();
        let words: Vec<u32> =
            given.iter().flat_map(|given| given.data.concat().into_iter().chain(given.content)).collect();
        let input: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        map.write(INPUT, &input).expect("mapped");
        let slots: Vec<u8> = given.iter().flat_map(|given| given.bytes()).collect();
        let mut results: Vec<Option<Result<Vec<Thread>, String>>> = vec![None; instructions.len()];
        while let Some(first) = results.iter().position(Option::is_none) {
            let waiting = (first..instructions.len()).filter(|&i| results[i].is_none()).take(BATCH);
            let batch: Vec<_> = waiting.map(|i| (i, instructions[i].0, instructions[i].1)).collect();
            let (words, places) = self.program(&batch);
            for place in 0..batch.len() {
                map.write(GLOBAL + (place * WARP * SLOT) as u64, &slots).expect("mapped");
            }
            match self.launch(&words) {
                Ok(_) => {
                    for (place, &(number, instruction, space)) in batch.iter().enumerate() {
                        let in_global = space == Space::Global && instruction.op != Op::Ldgsts;
                        let thread = |t: usize| {
                            let at = OUTPUT + ((place * WARP + t) * OUTPUTS * 4) as u64;
                            let word = |n: usize| map.load_u32(at + 4 * n as u64).expect("mapped");
                            let mut slot = [0; SLOT];
                            let from =
                                if in_global { GLOBAL + ((place * WARP + t) * SLOT) as u64 } else { at + 64 };
                            map.read(from, &mut slot).expect("mapped");
                            Thread { result: [0, 1, 2, 3].map(word), predicate: word(4) != 0, slot }
                        };
                        results[number] = Some(Ok((0..WARP).map(thread).collect()));
                    }
                }
                Err(fault) => {
                    let (number, name) = lab::refused(fault, &places);
                    results[number] = Some(Err(name));
                }
            }
        }
        results.into_iter().flatten().collect()
    }
}

/// Compares every form of a mnemonic.
pub fn sweep(arch: Arch, tally: &mut Tally) {
    let bench = Bench::new(arch);
    for &op in ALL {
        let mut all = Vec::new();
        for row in lab::rows_of(op, arch) {
            for blank in combinations(row, arch) {
                for &space in spaces(op) {
                    // What becomes of these in local memory was not measured: they are faults.
                    let large =
                        |size: &str| [".128", "x4", "x8", "F32x"].iter().any(|part| size.contains(part));
                    let atomic = matches!(op, Op::Atom | Op::AtomCas);
                    if space == Space::Local && atomic && blank.spelling(FieldId::Size).is_some_and(large) {
                        continue;
                    }
                    let forms = dressed(&blank, space);
                    all.extend(forms.into_iter().map(|instruction| (instruction, space)));
                }
            }
        }
        // What lowering refuses is told apart without a launch each.
        let (all, refused): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(instruction, _)| nv_sm::executes(instruction).is_ok());
        for (instruction, _) in refused {
            if let Err(name) = nv_sm::executes(&instruction) {
                *tally.unsupported.entry(name).or_default() += 1;
            }
        }
        let given = threads(op as u64 + 1);
        for ((instruction, space), outcome) in all.iter().zip(bench.run(&all, &given)) {
            let outcome = outcome.map(|threads| (threads, model::expected(instruction, *space, &given)));
            match outcome {
                Err(name) => tally.wrong.push(format!("{instruction} in {space:?} memory: {name}")),
                Ok((_, None)) => *tally.without_reference.entry(instruction.to_string()).or_default() += 1,
                Ok((found, Some(expected))) if found == expected => {
                    tally.compared += 1;
                    tally.parts.extend(claims::parts(instruction));
                }
                Ok((found, Some(expected))) => {
                    let thread = (0..WARP).find(|t| found[*t] != expected[*t]).unwrap_or(0);
                    let (given, found, expected) = (&given[thread], &found[thread], &expected[thread]);
                    tally.wrong.push(format!(
                        "{instruction} in {space:?} memory, thread {thread}: {given:x?} gives {found:x?}, not {expected:x?}"
                    ));
                }
            }
        }
    }
}

/// JMX and JMP, which compilers do not write, pass over what stands behind them.
#[test]
fn jumps_by_register_and_to_an_address() {
    for arch in super::ARCHES {
        let bench = Bench::new(arch);
        let mut frame = Frame { arch, words: Vec::new() };
        let f = &mut frame;
        for word in 0..4 {
            f.mov(at::RESULT + word, 1);
        }
        f.mov(at::OUTPUT, OUTPUT);
        f.mov(at::OUTPUT + 1, 0);
        // Two moves, the jump, and what it passes over.
        let behind = CODE + 16 * (f.words.len() as u64 + 4);
        f.mov(at::DATA[0], behind - 0x40);
        f.mov(at::DATA[0] + 1, 0);
        let always = predicate(7);
        f.push(Op::Jmx, &[], &[always, register(at::DATA[0]), Operand::Label { target: 0x40 }]);
        f.mov(at::RESULT, 2);
        f.mov(at::RESULT + 1, 3);
        let behind = CODE + 16 * (f.words.len() as u64 + 2);
        f.push(Op::Jmp, &[], &[always, Operand::Label { target: behind as i64 }]);
        f.mov(at::RESULT + 2, 2);
        f.mov(at::RESULT + 3, 4);
        f.access(Op::Stg, at::OUTPUT, 0, at::RESULT);
        f.push(Op::Exit, &[], &[]);
        bench.launch(&frame.words).unwrap_or_else(|fault| panic!("{arch:?}: {fault:?}"));
        let map = bench.space.snapshot();
        let stored = [0, 4, 8, 12].map(|at| map.load_u32(OUTPUT + at).expect("mapped"));
        assert_eq!(stored, [1, 3, 1, 4], "{arch:?}");
    }
}

/// BSSY, BSYNC and a branch that one lane does not take. On sm_100 too, which has more to say of such barriers, and of
/// which nothing else runs here.
#[test]
fn lanes_meet_again_at_convergence_barriers() {
    for arch in [Arch::Sm80, Arch::Sm89, Arch::Sm90, Arch::Sm100] {
        let kinds: &[&str] = if arch == Arch::Sm100 { &["", ".RELIABLE", ".RECONVERGENT"] } else { &[""] };
        for kind in kinds {
            let bench = Bench::new(arch);
            let mut frame = Frame { arch, words: Vec::new() };
            let f = &mut frame;
            f.push(Op::S2r, &[], &[register(0), Operand::Special(SpecialRegister::TID_X)]);
            f.mov(at::OUTPUT, OUTPUT);
            f.push(Op::Imad, &[], &[register(at::OUTPUT), register(0), immediate(16), register(at::OUTPUT)]);
            f.mov(at::OUTPUT + 1, 0);
            f.set(0, 0);
            for word in 0..4 {
                f.mov(at::RESULT + word, 1);
            }
            let fields: &[(FieldId, &str)] = if kind.is_empty() { &[] } else { &[(FieldId::Reliable, kind)] };
            // Labels are encoded as if the instruction were the first one.
            let ahead = |bytes: u64| Operand::Label { target: (CODE + bytes) as i64 };
            let always = predicate(7);
            f.push(Op::Bssy, fields, &[always, Operand::Barrier(3), ahead(0x40)]);
            // Lanes but the first one pass over one instruction.
            let place = f.words.len();
            f.push(Op::Bra, &[], &[always, ahead(0x20)]);
            f.words[place] &= !(0xf << 12);
            f.mov(at::RESULT, 5);
            f.push(Op::Bsync, fields, &[always, Operand::Barrier(3)]);
            let together = [register(at::RESULT + 1), always, always];
            f.push(Op::Vote, &[(FieldId::Function, ".ALL")], &together);
            f.access(Op::Stg, at::OUTPUT, 0, at::RESULT);
            f.push(Op::Exit, &[], &[]);
            bench.launch(&frame.words).unwrap_or_else(|fault| panic!("{arch:?} {kind}: {fault:?}"));
            let map = bench.space.snapshot();
            for lane in 0..WARP as u64 {
                let stored = [0, 4].map(|at| map.load_u32(OUTPUT + 16 * lane + at).expect("mapped"));
                assert_eq!(stored, [if lane == 0 { 5 } else { 1 }, u32::MAX], "{arch:?} {kind}, lane {lane}");
            }
        }
    }
}
