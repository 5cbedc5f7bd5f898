//! One instruction at a time, on a card or on the simulator, with every bit of its results seen.
//!
//! A [`Program`] loads sixteen registers of random and edge-valued bits for each lane, executes one instruction, and
//! stores what its registers, predicates and uniform registers hold afterwards. The program is made of encoded
//! instructions and stands in the place of the fixture kernel `probe`'s code, so that the driver launches it like any other.
//!
//! | registers | hold |
//! | --- | --- |
//! | `R8`..`R23`, `UR8`..`UR23` | the lane's sixteen input words; the uniform ones those of the warp's first lane |
//! | `P0`..`P6` | bits 0 to 6 of the last input word; `UP0`..`UP6` whether `UR8`..`UR14` are negative |
//! | `R24`..`R31`, `UR24`, `UR25` | where results go; constants before |
//! | `c[0]`, the kernel's third parameter | sixteen random words |

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Range,
    sync::{Mutex, PoisonError},
};

use nv_abi::arch::Generation;
use nv_driver::{Argument, Buffer, Device, Error, LaunchOptions, Module};
use sass::{Arch, Bank, Control, EncodeError, Instruction, Op, Operand, Row, SlotKind, decode, encode};

/// Words loaded for a lane.
pub const INPUTS: usize = 16;
/// Words stored for a lane: `R24` to `R31`, the predicates, two uniform registers and two uniform predicates, zeros.
pub const OUTPUTS: usize = 16;
/// Threads of a block.
pub const BLOCK: u32 = 128;

/// Words that every generation from sm_80 to sm_90 reads alike, as ptxas of CUDA 13.5 writes them.
mod template {
    pub const S2R: u128 = 0x000e2200000021000000000000007919;
    pub const MOV_IMMEDIATE: u128 = 0x000fe20000000f000000000100027802;
    pub const MOV_UNIFORM: u128 = 0x000fe20008000f000000000400027c02;
    pub const UMOV: u128 = 0x003fca00000000000000000100057882;
    pub const IMAD: u128 = 0x000fca00078e02000000000205027224;
    pub const IMAD_WIDE: u128 = 0x001fc600078e00020000000200027825;
    pub const IMAD_IMMEDIATE: u128 = 0x010fe200078e02000000000207007824;
    pub const IADD3_IMMEDIATE: u128 = 0x000fc00007ffe0ff0000000100007810;
    pub const ISETP_NE: u128 = 0x000fd60003f05270000000ff0000720c;
    pub const BRA: u128 = 0x000fea00038000000000000000040947;
    pub const LDC: u128 = 0x000e24000000080000000000ff007b82;
    pub const LDC_64: u128 = 0x000e220000000a0000008600ff027b82;
    pub const ULDC_64: u128 = 0x000fe40000000a000000460000047ab9;
    pub const LDG_128: u128 = 0x000eaa000c1e1d000000000464647981;
    pub const STG_128: u128 = 0x0001e2000c101d040000006478007986;
    pub const R2P: u128 = 0x000fe200000000000000000300007804;
    pub const P2R: u128 = 0x000fc0000000000000000001ff037803;
    pub const R2UR: u128 = 0x000fc000000e000000000000040473c2;
    /// An H200 takes the older opcode, which nvdisasm prints for sm_90 too, for illegal.
    pub const R2UR_SM90: u128 = 0x000e2200000e000000000000020872ca;
    pub const UISETP_GE_U32: u128 = 0x000fe4000bf06070000000030400788c;
    pub const USEL: u128 = 0x000fc8000c0000000000000108087887;
    pub const NOP: u128 = 0x000fc000000000000000000000007918;
    pub const EXIT: u128 = 0x000fea0003800000000000000000794d;
}

/// Why a probe could not be made or run.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The instruction cannot be probed: it moves program counters, touches memory, or reads a clock.
    #[error("{} is more than a function of registers", .0.name())]
    NotPure(Op),
    /// The registers that the program needs do not fit the row.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The words of this module are not those of the instruction table.
    #[error("{0}")]
    Template(String),
    /// The fixture kernel cannot be had or is not as expected.
    #[error("{0}")]
    Fixture(String),
    /// The driver or the device refused.
    #[error(transparent)]
    Device(#[from] Error),
}

/// splitmix64: the sequence is part of the golden files' meaning.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }
}

/// Bit patterns at which something changes: zeros, ones, extremes, subnormals, infinities and NaNs of every format.
const EDGES: [u32; 48] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0xffff_ffff,
    0x7fff_ffff,
    0x7fff_fffe,
    0xffff_fffe,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_0000,
    0x7f80_0001,
    0xffbf_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x4f7f_ffff,
    0x4f80_0000,
    0x5f00_0000,
    0xdf00_0000,
    0x3f00_0000,
    0x4b00_0001,
    0x3ff0_0000,
    0xbff0_0000,
    0x7ff0_0000,
    0xfff0_0000,
    0x7ff8_0000,
    0x000f_ffff,
    0x0010_0000,
    0x7fef_ffff,
    0x3c00_3c00,
    0xbc00_0001,
    0x7c00_fc00,
    0x7e00_fe00,
    0x03ff_83ff,
    0x0400_7bff,
    0x0000_001f,
    0x0000_0020,
];

/// Input words of one lane.
pub fn inputs(random: &mut Random) -> [u32; INPUTS] {
    std::array::from_fn(|_| {
        let bits = random.bits();
        match bits >> 60 {
            0..=3 => EDGES[(bits >> 8) as usize % EDGES.len()],
            4 => bits as u32 & 0xff,
            5 => (bits as u32 & 0xff).wrapping_neg(),
            // Floats of moderate size, so that sums and products cancel and round.
            6..=9 => (bits as u32 & 0x807f_ffff) | ((120 + (bits >> 40) as u32 % 16) << 23),
            _ => bits as u32,
        }
    })
}

/// The constants and the input words of all lanes of `blocks` blocks, made from `seed`.
#[must_use]
pub fn made_from(seed: u64, blocks: u32) -> ([u32; INPUTS], Vec<u32>) {
    let mut random = Random(seed);
    let constants = inputs(&mut random);
    let words = (0..blocks * BLOCK).flat_map(|_| inputs(&mut random)).collect();
    (constants, words)
}

/// A program around one instruction.
#[derive(Clone, Debug)]
pub struct Program {
    arch: Arch,
    words: Vec<u128>,
    options: LaunchOptions,
}

struct Builder {
    arch: Arch,
    words: Vec<u128>,
}

const fn register(index: u8) -> Operand {
    Operand::Register {
        index,
        marks: sass::Marks { negate: false, absolute: false, invert: false },
        half: sass::Half::Both,
    }
}

const fn uniform(index: u8) -> Operand {
    Operand::UniformRegister {
        index,
        marks: sass::Marks { negate: false, absolute: false, invert: false },
        half: sass::Half::Both,
    }
}

/// Everything waits for everything before it.
fn patient(mut control: Control) -> Control {
    control.stall = 13;
    control.yield_flag = false;
    control.wait_mask = 0x3f;
    control.reuse = 0;
    if control.write_barrier != 7 {
        control.write_barrier = 0;
    }
    if control.read_barrier != 7 {
        control.read_barrier = 1;
    }
    control
}

/// How input registers change between two rounds.
#[derive(Clone, Copy)]
enum Inputs {
    /// Each becomes itself times a constant plus its neighbour.
    Mixed,
    /// `step` is added to each.
    Counted { step: u32 },
}

impl Builder {
    fn template(&self, word: u128) -> Result<Instruction, ProbeError> {
        let mut instruction =
            decode(word, 0, self.arch).map_err(|error| ProbeError::Template(error.to_string()))?;
        instruction.guard = sass::Guard { uniform: instruction.guard.uniform, ..sass::Guard::ALWAYS };
        Ok(instruction)
    }

    /// Appends a template with some of its operands replaced.
    fn put(&mut self, word: u128, operands: &[(usize, Operand)]) -> Result<(), ProbeError> {
        let mut instruction = self.template(word)?;
        for (slot, operand) in operands {
            let operand = match (operand, instruction.operands().get(*slot)) {
                // How an immediate is spelled is the row's business.
                (Operand::Immediate { bits, .. }, Some(Operand::Immediate { kind, .. })) => {
                    Operand::Immediate { bits: *bits, kind: *kind }
                }
                (operand, _) => *operand,
            };
            instruction.set_operand(*slot, operand).ok_or_else(|| {
                ProbeError::Template(format!("{} has no operand {slot}", instruction.op.name()))
            })?;
        }
        self.push(instruction)
    }

    fn push(&mut self, mut instruction: Instruction) -> Result<(), ProbeError> {
        instruction.control = patient(instruction.control);
        self.words.push(encode(&instruction)?);
        Ok(())
    }

    /// Appends a load or store of 16 bytes at `offset` from the register pair `base`.
    fn access(&mut self, word: u128, base: u8, offset: i32, data: u8) -> Result<(), ProbeError> {
        let is_address = |o: &Operand| matches!(o, Operand::Address { .. });
        let is_register = |o: &Operand| matches!(o, Operand::Register { .. });
        let (place, value) = (self.place(word, is_address, 0)?, self.place(word, is_register, 0)?);
        let Operand::Address { wide, scale, uniform, descriptor, .. } =
            self.template(word)?.operands()[place]
        else {
            return Err(ProbeError::Template(String::from("no address")));
        };
        let at = Operand::Address { base, wide, scale, uniform, descriptor, offset };
        self.put(word, &[(place, at), (value, register(data))])
    }

    /// `d = a * factor + c`.
    fn multiply_add(&mut self, d: u8, a: u8, factor: u32, c: u8) -> Result<(), ProbeError> {
        let is_register = |o: &Operand| matches!(o, Operand::Register { .. });
        let is_immediate = |o: &Operand| matches!(o, Operand::Immediate { .. });
        let [to, from, sum] = [0, 1, 2].map(|n| self.place(template::IMAD_IMMEDIATE, is_register, n));
        let place = self.place(template::IMAD_IMMEDIATE, is_immediate, 0)?;
        let operands =
            [(to?, register(d)), (from?, register(a)), (place, immediate(factor)), (sum?, register(c))];
        self.put(template::IMAD_IMMEDIATE, &operands)
    }

    /// `d += value`.
    fn add(&mut self, d: u8, value: u32) -> Result<(), ProbeError> {
        let is_register = |o: &Operand| matches!(o, Operand::Register { .. });
        let is_immediate = |o: &Operand| matches!(o, Operand::Immediate { .. });
        let [to, from] = [0, 1].map(|n| self.place(template::IADD3_IMMEDIATE, is_register, n));
        let place = self.place(template::IADD3_IMMEDIATE, is_immediate, 0)?;
        let operands = [(to?, register(d)), (from?, register(d)), (place, immediate(value))];
        self.put(template::IADD3_IMMEDIATE, &operands)
    }

    /// Adds the results to the digests, makes new inputs, and goes back to `start` while rounds are left.
    fn next_round(&mut self, start: usize, inputs: Inputs) -> Result<(), ProbeError> {
        for i in 0..8 {
            self.multiply_add(40 + i, 40 + i, 0x0100_0193, 24 + i)?;
        }
        self.multiply_add(47, 47, 0x0100_0193, 32)?;
        for i in 8..24u8 {
            match inputs {
                Inputs::Mixed => self.multiply_add(i, i, 0x915f_77f5, 8 + (i - 7) % 16)?,
                Inputs::Counted { step } => self.add(i, step)?,
            }
        }
        self.add(48, u32::MAX)?;
        let is_register = |o: &Operand| matches!(o, Operand::Register { .. });
        let from = self.place(template::ISETP_NE, is_register, 0)?;
        let p6 = Operand::Predicate { index: 6, negated: false, uniform: false };
        self.put(template::ISETP_NE, &[(0, p6), (from, register(48))])?;
        let mut branch = self.template(template::BRA)?;
        branch.guard.index = 6;
        branch.address = 16 * self.words.len() as u64;
        let label = self.place(template::BRA, |o| matches!(o, Operand::Label { .. }), 0)?;
        let target = Operand::Label { target: 16 * start as i64 };
        branch.set_operand(label, target).ok_or_else(|| ProbeError::Template(String::from("no label")))?;
        self.push(branch)?;
        for i in 0..8 {
            self.multiply_add(24 + i, 40 + i, 1, Operand::RZ)?;
        }
        Ok(())
    }

    /// The place of the kind `wanted` among an instruction's operands.
    fn place(&self, word: u128, wanted: fn(&Operand) -> bool, nth: usize) -> Result<usize, ProbeError> {
        let instruction = self.template(word)?;
        let mut places = instruction.operands().iter().enumerate().filter(|(_, o)| wanted(o));
        places
            .nth(nth)
            .map(|(place, _)| place)
            .ok_or_else(|| ProbeError::Template(format!("{}: no such operand", instruction.op.name())))
    }
}

const fn immediate(bits: u32) -> Operand {
    Operand::Immediate { bits: bits as u64, kind: sass::ImmediateKind::Unsigned }
}

const fn constant(offset: u32) -> Operand {
    Operand::Constant {
        bank: Bank::Number(0),
        offset: offset as i32,
        index: Operand::RZ,
        uniform_index: false,
        marks: sass::Marks { negate: false, absolute: false, invert: false },
        half: sass::Half::Both,
    }
}

/// Offset of the kernel's parameters in constant bank 0, and of the memory descriptor.
const fn layout(arch: Arch) -> (u32, u32) {
    let generation = match arch {
        Arch::Sm90 => Generation::Hopper,
        _ => Generation::Ampere,
    };
    let bank = generation.constant_bank();
    (bank.parameters, bank.memory_descriptor)
}

/// Offset of the sixteen random constants in bank 0.
#[must_use]
pub const fn constants_offset(arch: Arch) -> u32 {
    layout(arch).0 + 16
}

/// Mnemonics that are more than a function of registers and constants.
#[must_use]
pub fn is_pure(instruction: &Instruction) -> bool {
    let plain = instruction.operands().iter().all(|operand| {
        matches!(
            operand,
            Operand::Register { .. }
                | Operand::UniformRegister { .. }
                | Operand::Predicate { .. }
                | Operand::Immediate { .. }
                | Operand::Constant { bank: Bank::Number(_), index: Operand::RZ, .. }
                | Operand::AllPredicates
        )
    });
    let control = matches!(
        instruction.op,
        Op::Bar
            | Op::Bpt
            | Op::Bra
            | Op::Break
            | Op::Brx
            | Op::Jmp
            | Op::Jmx
            | Op::Bssy
            | Op::Bsync
            | Op::Call
            | Op::Ret
            | Op::Exit
            | Op::Kill
            | Op::Cctl
            | Op::Cs2r
            | Op::S2r
            | Op::S2ur
            | Op::Depbar
            | Op::Ldgdepbar
            | Op::Errbar
            | Op::Cgaerrbar
            | Op::Endcollective
            | Op::Membar
            | Op::Nanosleep
            | Op::Warpsync
            | Op::Yield
            | Op::Lepc
            | Op::Bmov
            | Op::B2r
            | Op::Nop
            | Op::Qspc
            | Op::Ldc
            | Op::Uldc
    );
    plain && !control
}

/// Whether the mnemonic reads other lanes, so that all of them must take part.
#[must_use]
pub fn is_collective(op: Op) -> bool {
    matches!(
        op,
        Op::Hmma
            | Op::Imma
            | Op::Dmma
            | Op::Movm
            | Op::Shfl
            | Op::Match
            | Op::Redux
            | Op::Vote
            | Op::Voteu
            | Op::R2ur
    ) || op.name().ends_with("MMA") && !matches!(op, Op::Hfma2Mma)
}

/// The instruction with the registers of a probe. `random` also toggles marks and immediates, and replaces zero registers.
pub fn dress(instruction: &Instruction, random: Option<&mut Random>) -> Result<Instruction, ProbeError> {
    if !is_pure(instruction) {
        return Err(ProbeError::NotPure(instruction.op));
    }
    let mut dressed = *instruction;
    dressed.guard = sass::Guard { uniform: instruction.guard.uniform, ..sass::Guard::ALWAYS };
    dressed.control.reuse = 0;
    let row: &Row = instruction.row;
    let mut random = random;
    let (mut destinations, mut sources) = (0, 0);
    for (place, slot) in row.slots.iter().enumerate() {
        let fixed = slot.hide == sass::Hide::Always;
        let operand = match (instruction.operands()[place], &slot.kind) {
            (Operand::Register { index, marks, half }, SlotKind::Register { lo, marks: bits, .. }) => {
                let marks = toggle(random.as_deref_mut(), marks, *bits);
                let zero =
                    index == Operand::RZ && (fixed || slot.hide != sass::Hide::Never || random.is_none());
                let index = match lo {
                    16 => 24,
                    _ if zero => index,
                    24 => 8,
                    32 => 12,
                    64 => 16,
                    _ => 20,
                };
                Operand::Register { index, marks, half }
            }
            (Operand::UniformRegister { index, marks, half }, SlotKind::Uniform { lo, marks: bits, .. }) => {
                let marks = toggle(random.as_deref_mut(), marks, *bits);
                let index = match lo {
                    16 => 24,
                    _ if index == Operand::URZ => index,
                    24 => 8,
                    32 => 12,
                    _ => 16,
                };
                Operand::UniformRegister { index, marks, half }
            }
            (Operand::Predicate { negated, uniform, .. }, SlotKind::Predicate { not, .. }) => {
                let destination = *not == NO_BIT;
                let index = if destination {
                    destinations += 1;
                    3 + destinations
                } else {
                    sources += 1;
                    sources - 1
                };
                let negated = match random.as_deref_mut() {
                    Some(random) if !destination => random.bits() >> 5 & 1 != 0,
                    _ => negated,
                };
                // PT where the text hides it: the instruction has no such operand in this form.
                let index = match (slot.hide, instruction.operands()[place]) {
                    (sass::Hide::Unless(_) | sass::Hide::Always, Operand::Predicate { index: 7, .. }) => 7,
                    // Compilers pass UPT only; what another one does is not known.
                    _ if uniform && instruction.op.name().ends_with("MMA") => 7,
                    _ => index,
                };
                let negated = if index == 7 {
                    matches!(instruction.operands()[place], Operand::Predicate { negated: true, .. })
                } else {
                    negated
                };
                Operand::Predicate { index, negated, uniform }
            }
            (Operand::Immediate { bits, kind }, SlotKind::Immediate { bits: place, .. }) => {
                let bits = match random.as_deref_mut() {
                    Some(random) if place.width() == 32 => u64::from(inputs(random)[0]),
                    Some(random) if instruction.op == Op::Lop3 => random.bits() & 0xff,
                    _ => bits,
                };
                Operand::Immediate { bits, kind }
            }
            (Operand::Constant { marks, half, .. }, SlotKind::Constant { marks: bits, .. }) => {
                let which = random.as_deref_mut().map_or(0, |random| random.below(7) as u32 * 8);
                Operand::Constant {
                    bank: Bank::Number(0),
                    offset: (constants_offset(instruction.arch) + which) as i32,
                    index: Operand::RZ,
                    uniform_index: false,
                    marks: toggle(random.as_deref_mut(), marks, *bits),
                    half,
                }
            }
            (operand, _) => operand,
        };
        dressed.set_operand(place, operand);
    }
    dressed.control = patient(dressed.control);
    Ok(dressed)
}

/// The marks of an operand, thrown anew where its slot has them.
fn toggle(random: Option<&mut Random>, marks: sass::Marks, bits: sass::MarkBits) -> sass::Marks {
    let Some(random) = random else { return marks };
    let coin = random.bits();
    let take = |old, bit: u8, shift: u32| if bit == NO_BIT { old } else { coin >> shift & 1 != 0 };
    sass::Marks {
        negate: take(marks.negate, bits.negate, 3),
        absolute: take(marks.absolute, bits.absolute, 7),
        invert: take(marks.invert, bits.invert, 11),
    }
}

/// A slot without such a bit, as the rows say it.
const NO_BIT: u8 = 255;

impl Program {
    /// The program that executes `instruction`, dressed already.
    pub fn new(instruction: &Instruction) -> Result<Self, ProbeError> {
        Self::build(std::slice::from_ref(instruction), None)
    }

    /// The program that executes some instructions one after the other. Their labels count from the first of them.
    pub fn of(sequence: &[Instruction]) -> Result<Self, ProbeError> {
        Self::build(sequence, None)
    }

    /// The same, launched in another way.
    #[must_use]
    pub fn with_options(self, options: LaunchOptions) -> Self {
        Self { options, ..self }
    }

    /// The program that executes `instruction`, dressed already, that many times. Between two rounds each input register
    /// becomes itself times a constant plus its neighbour; what is stored in the place of `R24` to `R31` is a
    /// running digest of the results of all rounds.
    pub fn repeated(instruction: &Instruction, rounds: u32) -> Result<Self, ProbeError> {
        Self::build(std::slice::from_ref(instruction), Some((rounds, Inputs::Mixed)))
    }

    /// Like [`Program::repeated`], but `step` is added to each input register between two rounds.
    pub fn counted(instruction: &Instruction, rounds: u32, step: u32) -> Result<Self, ProbeError> {
        Self::build(std::slice::from_ref(instruction), Some((rounds, Inputs::Counted { step })))
    }

    fn build(sequence: &[Instruction], rounds: Option<(u32, Inputs)>) -> Result<Self, ProbeError> {
        use template as t;
        let arch = sequence.first().ok_or_else(|| ProbeError::Template(String::from("no instruction")))?.arch;
        let (parameters, descriptor) = layout(arch);
        let mut b = Builder { arch, words: Vec::new() };
        let is_constant = |o: &Operand| matches!(o, Operand::Constant { .. });
        let is_immediate = |o: &Operand| matches!(o, Operand::Immediate { .. });
        let is_predicate = |o: &Operand| matches!(o, Operand::Predicate { .. });
        let is_uniform = |o: &Operand| matches!(o, Operand::UniformRegister { .. });
        let is_register = |o: &Operand| matches!(o, Operand::Register { .. });
        let special = |number| Operand::Special(sass::SpecialRegister(number));
        b.put(t::S2R, &[(0, register(0)), (1, special(sass::SpecialRegister::TID_X.0))])?;
        b.put(t::S2R, &[(0, register(1)), (1, special(sass::SpecialRegister::CTAID_X.0))])?;
        let from = b.place(t::LDC, is_constant, 0)?;
        b.put(t::LDC, &[(0, register(2)), (from, constant(0))])?;
        let [d, a, f, c] = [0, 1, 2, 3].map(|n| b.place(t::IMAD, is_register, n));
        b.put(t::IMAD, &[(d?, register(0)), (a?, register(1)), (f?, register(2)), (c?, register(0))])?;
        let uldc = b.place(t::ULDC_64, is_constant, 0)?;
        b.put(t::ULDC_64, &[(0, uniform(4)), (uldc, constant(descriptor))])?;
        let factor = b.place(t::IMAD_WIDE, is_immediate, 0)?;
        for (to, parameter) in [(4, parameters + 8), (6, parameters)] {
            b.put(t::LDC_64, &[(0, register(to)), (from, constant(parameter))])?;
            let [d, a, c] = [0, 1, 2].map(|n| b.place(t::IMAD_WIDE, is_register, n));
            b.put(
                t::IMAD_WIDE,
                &[(d?, register(to)), (a?, register(0)), (factor, immediate(64)), (c?, register(to))],
            )?;
        }
        for i in 0..4u8 {
            b.access(t::LDG_128, 4, 16 * i32::from(i), 8 + 4 * i)?;
        }
        let source = b.place(t::MOV_IMMEDIATE, is_immediate, 0)?;
        for i in 0..8u8 {
            let before = 0x0101_0101u32.wrapping_mul(u32::from(i) + 0xa0);
            b.put(t::MOV_IMMEDIATE, &[(0, register(24 + i)), (source, immediate(before))])?;
        }
        let umov = b.place(t::UMOV, is_immediate, 0)?;
        for i in 24..28 {
            b.put(t::UMOV, &[(0, uniform(i)), (umov, immediate(0x5a5a_0000 | u32::from(i)))])?;
        }
        let r2ur = if arch >= Arch::Sm90 { t::R2UR_SM90 } else { t::R2UR };
        let (to, from) = (b.place(r2ur, is_uniform, 0)?, b.place(r2ur, is_register, 0)?);
        for i in 8..24 {
            b.put(r2ur, &[(to, uniform(i)), (from, register(i))])?;
        }
        let (p, a, v) = (
            b.place(t::UISETP_GE_U32, is_predicate, 0)?,
            b.place(t::UISETP_GE_U32, is_uniform, 0)?,
            b.place(t::UISETP_GE_U32, is_immediate, 0)?,
        );
        for i in 0..7u8 {
            let to = Operand::Predicate { index: i, negated: false, uniform: true };
            b.put(t::UISETP_GE_U32, &[(p, to), (a, uniform(8 + i)), (v, immediate(0x8000_0000))])?;
        }
        let mask = b.place(t::R2P, is_immediate, 0)?;
        let from = b.place(t::R2P, is_register, 0)?;
        if let Some((rounds, _)) = rounds {
            for i in 0..8 {
                b.put(t::MOV_IMMEDIATE, &[(0, register(40 + i)), (source, immediate(u32::from(i)))])?;
            }
            b.put(t::MOV_IMMEDIATE, &[(0, register(48)), (source, immediate(rounds))])?;
        }
        let start = b.words.len();
        b.put(t::R2P, &[(from, register(23)), (mask, immediate(0x7f))])?;
        for (place, instruction) in (0u64..).zip(sequence) {
            let mut placed = *instruction;
            placed.address = 16 * place;
            b.push(placed)?;
        }
        for _ in 0..4 {
            b.put(t::NOP, &[])?;
        }
        let mask = b.place(t::P2R, is_immediate, 0)?;
        b.put(t::P2R, &[(0, register(32)), (mask, immediate(0x7f))])?;
        if let Some((_, inputs)) = rounds {
            b.next_round(start, inputs)?;
        }
        let (one, which) = (b.place(t::USEL, is_immediate, 0)?, b.place(t::USEL, is_predicate, 0)?);
        let zero = b.place(t::USEL, is_uniform, 1)?;
        for i in 4..6u8 {
            let from = Operand::Predicate { index: i, negated: false, uniform: true };
            // Not taken gives the second operand.
            b.put(
                t::USEL,
                &[(0, uniform(22 + i)), (zero, uniform(Operand::URZ)), (one, immediate(1)), (which, from)],
            )?;
        }
        for i in 0..4u8 {
            b.put(t::MOV_UNIFORM, &[(0, register(33 + i)), (1, uniform(24 + i))])?;
        }
        for i in 37..40 {
            b.put(t::MOV_IMMEDIATE, &[(0, register(i)), (source, immediate(0))])?;
        }
        for i in 0..4u8 {
            b.access(t::STG_128, 6, 16 * i32::from(i), 24 + 4 * i)?;
        }
        b.put(t::EXIT, &[])?;
        Ok(Self { arch, words: b.words, options: LaunchOptions::default() })
    }

    /// The first `length` instructions, then EXIT: to find which one a card refuses.
    #[must_use]
    pub fn cut(&self, length: usize) -> Option<Self> {
        let mut words = self.words.get(..length)?.to_vec();
        words.push(template::EXIT);
        Some(Self { words, ..*self })
    }

    /// The text of an instruction of the program.
    #[must_use]
    pub fn line(&self, index: usize) -> String {
        let text = |word: &u128| decode(*word, 16 * index as u64, self.arch).map(|i| i.to_string());
        self.words
            .get(index)
            .map_or_else(String::new, |word| format!("{word:032x} {}", text(word).unwrap_or_default()))
    }

    /// The cubin of the fixture kernel with this program in the place of its code.
    pub fn cubin(&self) -> Result<Vec<u8>, ProbeError> {
        let mut frames = FRAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = match frames.entry(self.arch) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Frame::new(self.arch)?),
        };
        let new: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if new.len() > frame.code.len() {
            return Err(frame_error(self.arch, &"its code is shorter than the program"));
        }
        let mut bytes = frame.cubin.clone();
        bytes[frame.code.start..][..new.len()].copy_from_slice(&new);
        Ok(bytes)
    }

    /// Runs the program on `blocks` blocks with inputs and constants made from `seed`; the words of every lane.
    pub fn run(&self, device: &Device, seed: u64, blocks: u32) -> Result<Vec<u32>, ProbeError> {
        let (constants, words) = made_from(seed, blocks);
        self.run_words(device, &constants, &words)
    }

    /// Runs the program on given words, [`INPUTS`] for each lane, in whole blocks.
    pub fn run_words(
        &self,
        device: &Device,
        constants: &[u32; INPUTS],
        words: &[u32],
    ) -> Result<Vec<u32>, ProbeError> {
        let output = device.video(words.len() / INPUTS * OUTPUTS)?;
        self.run_on(device, constants, &device.buffer_from(words)?, &output)
    }

    /// Runs the program on words that are in the device's memory, and with room there for [`OUTPUTS`] words of each lane.
    pub fn run_on(
        &self,
        device: &Device,
        constants: &[u32; INPUTS],
        input: &Buffer<u32>,
        output: &Buffer<u32>,
    ) -> Result<Vec<u32>, ProbeError> {
        let blocks = u32::try_from(input.len() / INPUTS).unwrap_or(u32::MAX) / BLOCK;
        let constants: Vec<u8> = constants.iter().flat_map(|word| word.to_le_bytes()).collect();
        let module = Module::load(device, &self.cubin()?)?;
        let arguments: [Argument; 3] = [output.into(), input.into(), Argument::bytes(constants)];
        let kernel = module.kernel("probe")?;
        kernel.launch_with([blocks, 1, 1], [BLOCK, 1, 1], &self.options, &arguments)?;
        Ok(output.to_vec()?)
    }
}

/// The fixture kernel whose code is replaced.
struct Frame {
    cubin: Vec<u8>,
    /// Where its code is.
    code: Range<usize>,
}

/// Those that were read.
static FRAMES: Mutex<BTreeMap<Arch, Frame>> = Mutex::new(BTreeMap::new());

fn frame_error(arch: Arch, error: &dyn std::fmt::Display) -> ProbeError {
    ProbeError::Fixture(format!("sm_{} probe: {error}", arch.sm()))
}

impl Frame {
    fn new(arch: Arch) -> Result<Self, ProbeError> {
        let failed = |error: &dyn std::fmt::Display| frame_error(arch, error);
        let bytes = fixtures::cubin(&format!("sm_{}", arch.sm()), "probe").map_err(|error| failed(&error))?;
        let cubin = nv_driver::program::Cubin::parse(&bytes).map_err(|error| failed(&error))?;
        let image = cubin.link(0).map_err(|error| failed(&error))?;
        let kernel = cubin.kernel("probe").ok_or_else(|| failed(&"no kernel"))?;
        let code = &image[kernel.code.start as usize..kernel.code.end as usize];
        let start = bytes
            .windows(code.len())
            .position(|window| window == code)
            .ok_or_else(|| failed(&"its code is relocated"))?;
        Ok(Self { code: start..start + code.len(), cubin: bytes })
    }
}

/// What a golden line holds of all the words that were stored: FNV-1a over them, 64 bits wide.
#[must_use]
pub fn digest(words: &[u32]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ u64::from(*word)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
