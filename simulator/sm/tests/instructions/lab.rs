//! Runs single instructions, assembled by the instruction table, on chosen values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nv_memory::{Access, AddressSpace, Backing};
use nv_sm::{Compile, Configuration, ConstantBuffer, Fault, FaultKind, Launch, Processor};
use sass::{Arch, Bank, FieldId, Half, Instruction, Marks, Op, Operand, Row, SlotKind, SpecialRegister};

/// Where programs lie.
pub const CODE: u64 = 0x10_0000;
const BANK: u64 = 0x40_0000;
const DATA: u64 = 0x100_0000;

/// Which of the instructions at `places` (words from [`CODE`]) a fault is of, and why it was refused.
pub fn refused(fault: Fault, places: &BTreeMap<usize, usize>) -> (usize, String) {
    let place = (fault.program_counter - CODE) as usize / 16;
    let number = places.get(&place).copied();
    let number = number.unwrap_or_else(|| panic!("the frame itself faults: {fault:?}"));
    match fault.kind {
        FaultKind::Unsupported(name) => (number, name),
        other => (number, format!("{other:?}")),
    }
}

/// Threads of a launch: one input each.
pub const THREADS: usize = 128;

/// Words of an input: three register pairs and two truth values.
const INPUTS: usize = 8;
/// Words of a result: a register pair and two predicates, stored at once.
const RESULTS: usize = 4;
/// Bytes of the inputs, and of the results of one place.
const INPUT_BYTES: usize = INPUTS * THREADS * 4;
const RESULT_BYTES: usize = RESULTS * THREADS * 4;

/// Registers of the inputs, the result, and scratch.
const SOURCES: [u8; 3] = [8, 12, 16];
const RESULT: u8 = 40;
/// Addresses of the thread's inputs, and of its results.
const ADDRESS: u8 = 2;
const RESULTS_AT: u8 = 4;
const SCRATCH: u8 = 30;
const ONE: u8 = 31;

/// What every thread works on.
pub type Input = [u64; 4];

/// What an instruction leaves: the result register pair, and the two predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    pub value: u64,
    pub predicates: [bool; 2],
}

/// Before the instruction runs the result is this, and both predicates are false.
pub const BEFORE: u64 = 0x5555_5555_aaaa_aaaa;

/// Operand 2 of the first word of constant bank 0 that the forms read, and its value.
pub const CONSTANT: (i32, u64) = (0x20, 0x4049_0fdb_3f81_0203);

/// Uniform registers of the inputs of a warp's first thread, and the result of uniform instructions.
const UNIFORM_SOURCES: [u8; 3] = [8, 10, 12];
const UNIFORM_RESULT: u8 = 20;
const UNIFORM_SCRATCH: u8 = 22;
const UNIFORM_ONE: u8 = 23;

/// Uniform registers that describe constant bank 0, and where in it the description is.
const DESCRIPTION: u8 = 4;
const DESCRIPTION_AT: i32 = 0x30;
/// Bytes of constant bank 0.
pub const BANK_BYTES: u32 = 0x1000;

pub fn register(index: u8) -> Operand {
    Operand::Register { index, marks: Marks::default(), half: Half::Both }
}

pub fn uniform(index: u8) -> Operand {
    Operand::UniformRegister { index, marks: Marks::default(), half: Half::Both }
}

pub fn predicate(index: u8) -> Operand {
    Operand::Predicate { index, negated: false, uniform: false }
}

pub fn uniform_predicate(index: u8) -> Operand {
    Operand::Predicate { index, negated: false, uniform: true }
}

pub fn immediate(bits: u64) -> Operand {
    Operand::Immediate { bits, kind: sass::ImmediateKind::Unsigned }
}

/// Whether an instruction computes with what all lanes have in common.
pub fn is_uniform(row: &Row) -> bool {
    row.uniform_guard
}

/// A row's instruction with such field values and the operands that decoding zeros gives; `None` where they do not
/// make an instruction of that row.
pub fn blank(row: &'static Row, values: &[u16], arch: Arch) -> Option<Instruction> {
    let mut word = row.fixed | u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91 | 7 << 12;
    for (modifier, &value) in row.modifiers.iter().zip(values) {
        word |= modifier.bits.put(value.into())?;
    }
    let instruction = sass::decode(word, CODE, arch).ok()?;
    std::ptr::eq(instruction.row, row).then_some(instruction)
}

/// The instruction, if its operands can be encoded and decode to themselves.
pub fn settle(instruction: &Instruction) -> Option<Instruction> {
    let word = sass::encode(instruction).ok()?;
    let again = sass::decode(word, instruction.address, instruction.arch).ok()?;
    let same = std::ptr::eq(again.row, instruction.row) && again.operands() == instruction.operands();
    same.then_some(again)
}

/// Rows of a mnemonic on an architecture.
pub fn rows_of(op: Op, arch: Arch) -> impl Iterator<Item = &'static Row> {
    sass::rows().iter().filter(move |row| row.op == op && (row.since..=row.until).contains(&arch))
}

/// Every combination of a row's field values; of very many, `most` spread over all.
pub fn field_values(row: &Row, most: usize) -> Vec<Vec<u16>> {
    let choices: Vec<Vec<u16>> = row
        .modifiers
        .iter()
        .map(|modifier| {
            let known = (0u16..).zip(modifier.spelling).filter(|(_, spelling)| **spelling != "!");
            known.map(|(value, _)| value).collect()
        })
        .collect();
    let total: usize = choices.iter().map(Vec::len).product();
    // A step that shares no factor with the number of all comes to every value of every field.
    let shared =
        |step: usize| (2..=step).any(|factor| step.is_multiple_of(factor) && total.is_multiple_of(factor));
    let step = (total.div_ceil(most).max(1)..).find(|step| !shared(*step)).unwrap_or(1);
    (0..total)
        .step_by(step)
        .map(|mut index| {
            choices
                .iter()
                .map(|choice| {
                    let value = choice[index % choice.len()];
                    index /= choice.len();
                    value
                })
                .collect()
        })
        .collect()
}

/// Forms of an instruction: its operands named, sources with each of their marks and parts in turn.
///
/// Sources are the input registers, in order; the first register is the result unless the instruction writes predicates
/// only. Predicates before the first source are written, those behind are read.
pub fn forms(blank: &Instruction, writes_register: bool, immediates: &[u64]) -> Vec<Instruction> {
    let mut plain = *blank;
    let (mut sources, mut written, mut read) = (0, 0, 0);
    let mut slots = Vec::new();
    let mut conditions = Vec::new();
    let mut seen_result = !writes_register;
    let mut seen_source = false;
    let all_uniform = is_uniform(blank.row);
    for (slot, operand) in blank.operands().iter().enumerate() {
        let set = match *operand {
            Operand::Register { .. } if !seen_result => {
                seen_result = true;
                register(RESULT)
            }
            Operand::UniformRegister { .. } if all_uniform && !seen_result => {
                seen_result = true;
                uniform(UNIFORM_RESULT)
            }
            Operand::Register { .. } => {
                seen_source = true;
                sources += 1;
                slots.push(slot);
                match SOURCES.get(sources - 1) {
                    Some(&index) => register(index),
                    None => register(Operand::RZ),
                }
            }
            Operand::UniformRegister { .. } => {
                seen_source = true;
                sources += 1;
                slots.push(slot);
                uniform(UNIFORM_SOURCES.get(sources - 1).copied().unwrap_or(Operand::URZ))
            }
            Operand::Constant { bank, .. } => {
                seen_source = true;
                sources += 1;
                slots.push(slot);
                Operand::Constant {
                    bank: match bank {
                        Bank::Number(_) => Bank::Number(0),
                        Bank::Uniform(_) => Bank::Uniform(DESCRIPTION),
                    },
                    offset: CONSTANT.0,
                    index: Operand::RZ,
                    uniform_index: false,
                    marks: Marks::default(),
                    half: Half::Both,
                }
            }
            Operand::Immediate { kind, .. } => {
                seen_source = true;
                sources += 1;
                Operand::Immediate { bits: immediates[slot % immediates.len()] & fits(blank, slot), kind }
            }
            Operand::Word(_) => Operand::Word(immediates[0] as u8 ^ 0xe4),
            Operand::AllPredicates => Operand::AllPredicates,
            Operand::Predicate { uniform, .. }
                if uniform == all_uniform && !seen_source && written < 2 && !is_read(blank, slot) =>
            {
                written += 1;
                Operand::Predicate { index: [2, 3][written - 1], negated: false, uniform }
            }
            Operand::Predicate { uniform, .. } => {
                read += 1;
                conditions.push(slot);
                Operand::Predicate { index: [0, 1, 7][(read - 1).min(2)], negated: false, uniform }
            }
            _ => return Vec::new(),
        };
        if plain.set_operand(slot, set).is_none() {
            return Vec::new();
        }
    }
    let Some(first) = settle(&plain) else { return Vec::new() };
    let mut all = vec![first];
    for &slot in &slots {
        let bits = [(true, false, false), (false, true, false), (true, true, false), (false, false, true)];
        for (negate, absolute, invert) in bits {
            let marked = Marks { negate, absolute, invert };
            all.extend(changed(&first, slot, |marks, _| *marks = marked));
        }
        let halves = [Half::F32, Half::Low, Half::High, Half::LowNegatedHigh];
        let parts = [Half::Upper, Half::Byte1, Half::Byte2, Half::Byte3];
        for part in halves.into_iter().chain(parts) {
            all.extend(changed(&first, slot, |_, half| *half = part));
        }
    }
    // Crossed halves go with a condition that always holds.
    let mut unconditional = first;
    for &slot in &conditions {
        let Operand::Predicate { uniform, .. } = first.operands()[slot] else { continue };
        unconditional.set_operand(slot, Operand::Predicate { index: 7, negated: false, uniform });
    }
    if !conditions.is_empty()
        && let Some(unconditional) = settle(&unconditional)
    {
        for &slot in &slots {
            all.extend(changed(&unconditional, slot, |_, half| *half = Half::LowNegatedHigh));
        }
    }
    for slot in conditions {
        let mut changed = first;
        if let Operand::Predicate { index, uniform, .. } = first.operands()[slot]
            && changed.set_operand(slot, Operand::Predicate { index, negated: true, uniform }).is_some()
        {
            all.extend(settle(&changed));
        }
    }
    all
}

/// The bits that an immediate's slot has place for.
fn fits(blank: &Instruction, slot: usize) -> u64 {
    match blank.row.slots[slot].kind {
        SlotKind::Immediate { bits, .. } => (1 << bits.width()) - 1,
        _ => 0,
    }
}

/// PLOP3 and the like read predicates before any register.
fn is_read(blank: &Instruction, slot: usize) -> bool {
    matches!(blank.op, Op::Plop3) && slot >= 2
}

fn changed(from: &Instruction, slot: usize, change: impl Fn(&mut Marks, &mut Half)) -> Option<Instruction> {
    let mut changed = *from;
    let mut operand = from.operands()[slot];
    match &mut operand {
        Operand::Register { marks, half, .. }
        | Operand::UniformRegister { marks, half, .. }
        | Operand::Constant { marks, half, .. } => change(marks, half),
        _ => return None,
    }
    changed.set_operand(slot, operand)?;
    settle(&changed)
}

/// Picks a row by its operands, with the named fields and the first value of all others.
fn helper(arch: Arch, op: Op, fields: &[(FieldId, &str)], operands: &[Operand]) -> u128 {
    for row in rows_of(op, arch) {
        let values: Option<Vec<u16>> = row
            .modifiers
            .iter()
            .map(|modifier| {
                let wanted = fields.iter().find(|(id, _)| *id == modifier.id).map_or("", |(_, name)| name);
                let at = modifier.spelling.iter().position(|spelling| *spelling == wanted);
                at.or_else(|| modifier.spelling.iter().position(|spelling| *spelling != "!"))
                    .map(|value| value as u16)
            })
            .collect();
        let Some(mut instruction) = values.and_then(|values| blank(row, &values, arch)) else { continue };
        let spelled = fields.iter().all(|(id, name)| instruction.spelling(*id) == Some(name));
        let slots = instruction.operands().len();
        if !spelled || slots < operands.len() {
            continue;
        }
        for slot in 0..slots {
            let operand = operands.get(slot).copied().unwrap_or(match instruction.operands()[slot] {
                Operand::Predicate { uniform, .. } => {
                    Operand::Predicate { index: 7, negated: false, uniform }
                }
                Operand::Register { .. } => register(Operand::RZ),
                other => other,
            });
            // How an immediate is meant is the slot's to say.
            let operand = match (operand, instruction.operands()[slot]) {
                (Operand::Immediate { bits, .. }, Operand::Immediate { kind, .. }) => {
                    Operand::Immediate { bits, kind }
                }
                // So is how an address is made up; base and offset are ours.
                (
                    Operand::Address { base, offset, .. },
                    Operand::Address { wide, scale, uniform: None, descriptor: None, .. },
                ) => Operand::Address { base, wide, scale, uniform: None, descriptor: None, offset },
                (operand, _) => operand,
            };
            instruction.set_operand(slot, operand);
        }
        if let Some(instruction) = settle(&instruction) {
            return instruction.word;
        }
    }
    panic!("no row of {op:?} on {arch:?} takes {operands:?} with {fields:?}");
}

/// Words of the program around the instructions.
pub struct Frame {
    pub arch: Arch,
    pub words: Vec<u128>,
}

impl Frame {
    pub fn push(&mut self, op: Op, fields: &[(FieldId, &str)], operands: &[Operand]) {
        self.words.push(helper(self.arch, op, fields, operands));
    }

    pub fn mov(&mut self, to: u8, bits: u64) {
        self.push(Op::Mov, &[], &[register(to), immediate(bits), immediate(0xf)]);
    }

    pub fn mov_uniform(&mut self, to: u8, bits: u64) {
        self.push(Op::Umov, &[], &[uniform(to), immediate(bits)]);
    }

    /// A uniform register's value in a vector register.
    pub fn copy_uniform(&mut self, to: u8, from: u8) {
        self.push(Op::Mov, &[], &[register(to), uniform(from), immediate(0xf)]);
    }

    /// The first lane's value of a vector register in a uniform one.
    pub fn make_uniform(&mut self, to: u8, from: u8) {
        self.push(Op::R2ur, &[], &[predicate(7), uniform(to), register(from)]);
    }

    /// A uniform predicate that holds where the uniform register is not zero.
    pub fn set_uniform(&mut self, index: u8, from: u8) {
        let fields = [(FieldId::Compare, ".NE"), (FieldId::Signed, ".U32"), (FieldId::Boolean, ".AND")];
        let (to, none) = (uniform_predicate(index), uniform_predicate(7));
        self.push(Op::Uisetp, &fields, &[to, none, uniform(from), uniform(Operand::URZ), none]);
    }

    /// Loads or stores 16 bytes at an offset from a register: a pair, or an offset in the block's or the thread's memory.
    pub fn access(&mut self, op: Op, base: u8, offset: i32, data: u8) {
        let address =
            Operand::Address { base, wide: true, scale: 0, uniform: None, descriptor: None, offset };
        let operands = match op {
            Op::Ldg | Op::Lds | Op::Ldl => [register(data), address],
            _ => [address, register(data)],
        };
        let fields: &[(FieldId, &str)] = match op {
            Op::Ldg | Op::Stg => &[(FieldId::Wide64, ".E"), (FieldId::Size, ".128")],
            _ => &[(FieldId::Size, ".128")],
        };
        self.push(op, fields, &operands);
    }

    fn address(offset: usize) -> Operand {
        Operand::Address {
            base: ADDRESS,
            wide: true,
            scale: 0,
            uniform: None,
            descriptor: None,
            offset: (offset * THREADS * 4) as i32,
        }
    }

    fn load(&mut self, to: u8, slot: usize) {
        self.memory(Op::Ldg, &[register(to), Self::address(slot)]);
    }

    fn memory(&mut self, op: Op, operands: &[Operand]) {
        self.push(op, &[(FieldId::Wide64, ".E"), (FieldId::Size, "")], operands);
    }

    /// A predicate that holds where the register is not zero.
    pub fn set(&mut self, index: u8, from: u8) {
        let fields = [(FieldId::Compare, ".NE"), (FieldId::Signed, ".U32"), (FieldId::Boolean, ".AND")];
        let operands = [predicate(index), predicate(7), register(from), register(Operand::RZ), predicate(7)];
        self.push(Op::Isetp, &fields, &operands);
    }
}

/// The program around the instructions under test. All programs of a lab are its beginning, so it is assembled once.
struct Around {
    /// Loads the inputs.
    before: Vec<u128>,
    /// What stands around each instruction under test: what prepares its results, and what collects them. The first two for
    /// results in vector registers, the others for those in uniform ones.
    around: [[Vec<u128>; 2]; 2],
    /// Stores what was collected, by the instruction's place.
    stores: Vec<u128>,
    /// Follows what writes all predicates.
    restore: Vec<u128>,
    /// Ends the program.
    after: Vec<u128>,
}

impl Around {
    /// Instructions of one program.
    const PLACES: usize = 250;

    fn new(arch: Arch) -> Self {
        let around =
            [false, true].map(|uniform| [Self::prepare(arch, uniform), Self::collect(arch, uniform)]);
        let mut stores = Frame { arch, words: Vec::new() };
        for place in 0..Self::PLACES {
            stores.access(Op::Stg, RESULTS_AT, (place * RESULT_BYTES) as i32, RESULT);
        }
        let mut after = Frame { arch, words: Vec::new() };
        after.push(Op::Exit, &[], &[]);
        let (before, restore) = (Self::load(arch), Self::restore(arch));
        Self { before, around, stores: stores.words, restore, after: after.words }
    }

    fn load(arch: Arch) -> Vec<u128> {
        let mut frame = Frame { arch, words: Vec::new() };
        frame.push(Op::S2r, &[], &[register(0), Operand::Special(SpecialRegister::TID_X)]);
        frame.mov(ADDRESS, DATA);
        frame.push(Op::Imad, &[], &[register(ADDRESS), register(0), immediate(4), register(ADDRESS)]);
        frame.mov(ADDRESS + 1, 0);
        frame.mov(RESULTS_AT, DATA + INPUT_BYTES as u64);
        let each = immediate(4 * RESULTS as u64);
        frame.push(Op::Imad, &[], &[register(RESULTS_AT), register(0), each, register(RESULTS_AT)]);
        frame.mov(RESULTS_AT + 1, 0);
        frame.mov(ONE, 1);
        let (marks, half) = (Marks::default(), Half::Both);
        let (bank, index, offset) = (Bank::Number(0), Operand::RZ, DESCRIPTION_AT);
        let described = [
            Operand::UniformRegister { index: DESCRIPTION, marks, half },
            Operand::Constant { bank, offset, index, uniform_index: false, marks, half },
        ];
        frame.push(Op::Uldc, &[(FieldId::Size, ".64")], &described);
        for (i, source) in SOURCES.into_iter().enumerate() {
            frame.load(source, 2 * i);
            frame.load(source + 1, 2 * i + 1);
        }
        for (i, index) in [0, 1].into_iter().enumerate() {
            frame.load(SCRATCH, 6 + i);
            frame.set(index, SCRATCH);
            frame.make_uniform(UNIFORM_SCRATCH, SCRATCH);
            frame.set_uniform(index, UNIFORM_SCRATCH);
        }
        for (to, from) in UNIFORM_SOURCES.into_iter().zip(SOURCES) {
            frame.make_uniform(to, from);
            frame.make_uniform(to + 1, from + 1);
        }
        frame.mov_uniform(UNIFORM_ONE, 1);
        frame.words
    }

    fn prepare(arch: Arch, all_uniform: bool) -> Vec<u128> {
        let mut frame = Frame { arch, words: Vec::new() };
        if all_uniform {
            frame.mov_uniform(UNIFORM_RESULT, BEFORE & 0xffff_ffff);
            frame.mov_uniform(UNIFORM_RESULT + 1, BEFORE >> 32);
            frame.set_uniform(2, Operand::URZ);
            frame.set_uniform(3, Operand::URZ);
        } else {
            frame.mov(RESULT, BEFORE & 0xffff_ffff);
            frame.mov(RESULT + 1, BEFORE >> 32);
            frame.set(2, Operand::RZ);
            frame.set(3, Operand::RZ);
        }
        frame.words
    }

    fn collect(arch: Arch, all_uniform: bool) -> Vec<u128> {
        let mut frame = Frame { arch, words: Vec::new() };
        if all_uniform {
            frame.copy_uniform(RESULT, UNIFORM_RESULT);
            frame.copy_uniform(RESULT + 1, UNIFORM_RESULT + 1);
        }
        for (index, to) in [(2, RESULT + 2), (3, RESULT + 3)] {
            if all_uniform {
                let (to_uniform, one, zero) = (UNIFORM_SCRATCH, UNIFORM_ONE, Operand::URZ);
                let operands = [uniform(to_uniform), uniform(one), uniform(zero), uniform_predicate(index)];
                frame.push(Op::Usel, &[], &operands);
                frame.copy_uniform(to, to_uniform);
            } else {
                let operands = [register(to), register(ONE), register(Operand::RZ), predicate(index)];
                frame.push(Op::Sel, &[], &operands);
            }
        }
        frame.words
    }

    /// Sets the predicates that are read again, behind what wrote them.
    fn restore(arch: Arch) -> Vec<u128> {
        let mut frame = Frame { arch, words: Vec::new() };
        for (i, index) in [0, 1].into_iter().enumerate() {
            frame.load(SCRATCH, 6 + i);
            frame.set(index, SCRATCH);
        }
        frame.words
    }

    /// The program with these instructions, as many as there are places.
    fn program(&self, instructions: &[(usize, &Instruction)]) -> Program {
        let mut words = self.before.clone();
        let mut places = BTreeMap::new();
        for (&store, &(number, instruction)) in self.stores.iter().zip(instructions) {
            let [prepare, collect] = &self.around[usize::from(is_uniform(instruction.row))];
            words.extend(prepare);
            places.insert(words.len(), number);
            words.push(instruction.word);
            words.extend(collect);
            words.push(store);
            if instruction.op == Op::R2p {
                words.extend(&self.restore);
            }
        }
        words.extend(&self.after);
        Program { words, places }
    }
}

/// A program's instructions, by where they are.
struct Program {
    words: Vec<u128>,
    /// First word and number of each instruction under test.
    places: BTreeMap<usize, usize>,
}

/// A GPU for one architecture.
pub struct Lab {
    arch: Arch,
    around: Around,
    processor: Processor,
    space: Arc<AddressSpace>,
}

impl Lab {
    pub fn new(arch: Arch) -> Lab {
        let space = AddressSpace::new(AddressSpace::LIMIT_49_BITS);
        for (at, bytes) in [(CODE, 1 << 21), (BANK, 1 << 16), (DATA, 1 << 23)] {
            let backing = Arc::new(Backing::new("instructions", bytes).expect("small"));
            space.map(at, bytes, backing, 0, Access::ReadWriteAtomic).expect("free");
        }
        let bank: Vec<u8> = [0, CONSTANT.1].iter().flat_map(|word| word.to_le_bytes()).collect();
        space.snapshot().write(BANK + CONSTANT.0 as u64 - 8, &bank).expect("mapped");
        let description = BANK >> 4 | u64::from(BANK_BYTES >> 4) << 45;
        space.snapshot().write(BANK + DESCRIPTION_AT as u64, &description.to_le_bytes()).expect("mapped");
        // What handlers compute is compared on one architecture, what is compiled on the others: their forms are much the
        // same, and whole programs of both are compared on all of them.
        let compile = if arch == Arch::Sm89 { Compile::Never } else { Compile::Always };
        let configuration = Configuration { threads: 1, compile, ..Configuration::default() };
        let processor = Processor::new(configuration);
        Lab { arch, around: Around::new(arch), processor, space }
    }

    /// Runs each instruction on every input. What cannot run yields the fault's name instead.
    pub fn run(
        &self,
        instructions: &[Instruction],
        inputs: &[Input; THREADS],
    ) -> Vec<Result<Vec<Output>, String>> {
        let map = self.space.snapshot();
        for word in 0..INPUTS {
            for (thread, input) in inputs.iter().enumerate() {
                let value =
                    if word < 6 { input[word / 2] >> (32 * (word % 2)) } else { input[3] >> (word - 6) & 1 };
                map.store_u32(DATA + ((word * THREADS + thread) * 4) as u64, value as u32).expect("mapped");
            }
        }
        let mut results: Vec<Option<Result<Vec<Output>, String>>> = vec![None; instructions.len()];
        while let Some(first) = results.iter().position(Option::is_none) {
            let waiting = (first..instructions.len()).filter(|&i| results[i].is_none()).take(Around::PLACES);
            let batch: Vec<(usize, &Instruction)> = waiting.map(|i| (i, &instructions[i])).collect();
            let program = self.around.program(&batch);
            let bytes: Vec<u8> = program.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            map.write(CODE, &bytes).expect("mapped");
            let mut constant_buffers = [None; 8];
            constant_buffers[0] = Some(ConstantBuffer { address: BANK, bytes: BANK_BYTES });
            let launch = Launch {
                program_address: CODE,
                grid: [1, 1, 1],
                block: [THREADS as u32, 1, 1],
                cluster: [1; 3],
                registers: 64,
                shared_bytes: 1 << 10,
                local_bytes: 0x1000,
                barriers: 1,
                constant_buffers,
                shared_window: 0x7294_0000_0000,
                local_window: 0x7293_0000_0000,
                sm: self.arch.sm(),
                textures: nv_sm::Textures::default(),
                grid_id: 1,
            };
            match self.processor.run(&launch, &map, &AtomicBool::new(false)) {
                Ok(_) => {
                    let mut bytes = vec![0; batch.len() * RESULT_BYTES];
                    map.read(DATA + INPUT_BYTES as u64, &mut bytes).expect("mapped");
                    for (bytes, &(number, _)) in bytes.chunks_exact(RESULT_BYTES).zip(&batch) {
                        let output = |bytes: &[u8]| {
                            let word = |i: usize| {
                                u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * i + byte]))
                            };
                            Output {
                                value: u64::from(word(0)) | u64::from(word(1)) << 32,
                                predicates: [word(2) != 0, word(3) != 0],
                            }
                        };
                        let outputs = bytes.chunks_exact(4 * RESULTS).map(output).collect();
                        results[number] = Some(Ok(outputs));
                    }
                }
                Err(fault) => {
                    let (number, name) = refused(fault, &program.places);
                    results[number] = Some(Err(name));
                }
            }
        }
        results.into_iter().flatten().collect()
    }
}
