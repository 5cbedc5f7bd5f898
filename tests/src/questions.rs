//! What instructions do to memory and to the lanes of a warp, as questions that a card and the simulator answer.
//!
//! A [`Question`] is a short sequence of instructions in the frame of [`crate::probe`], with addresses in the lanes' first
//! input words and conditions in the last one. The example `differential` asks a card and writes its answers to
//! `fixtures/differential/h200_questions.txt`; the end-to-end test `silicon` asks the simulator the same.

use nv_driver::{Device, LaunchOptions};
use sass::{Arch, FieldId, Instruction, Marks, Op, Operand, Row, SlotKind, SpecialRegister, decode, encode};

use crate::probe::{self, BLOCK, INPUTS, ProbeError, Program, Random, inputs};

/// Lanes of every question: two blocks.
pub const LANES: usize = 2 * BLOCK as usize;
/// Bytes of memory for a lane.
const SHARE: usize = 64;
/// Bytes of shared memory of a block.
const SHARED: u32 = 16 * BLOCK;

/// Words as ptxas writes them for sm_90; operands and fields are replaced.
mod word {
    pub const LDG: u128 = 0x000e_a800_0c1e_1d00_0000_0004_0404_7981;
    pub const LD: u128 = 0x000e_a400_0c10_1900_0000_0004_0200_7980;
    pub const LD_PLAIN: u128 = 0x000e_a400_0010_0b00_0000_0000_0408_7980;
    pub const LDGSTS: u128 = 0x000f_c000_0b90_1c44_0000_0000_0400_7fae;
    pub const STS: u128 = 0x0041_e800_0000_0c00_0000_0004_0800_7388;
    pub const LDS: u128 = 0x000e_6800_0000_0c00_0000_0000_0908_7984;
    pub const LDGDEPBAR: u128 = 0x000e_2800_0000_0000_0000_0000_0000_79af;
    pub const DEPBAR: u128 = 0x000f_c000_0000_0000_0000_8000_0000_791a;
    pub const LDSM: u128 = 0x000f_c000_0000_0200_0000_0000_0404_783b;
    pub const ATOMG: u128 = 0x002e_a200_081e_e1c4_0000_0009_0405_09a8;
    pub const QSPC: u128 = 0x0006_a200_0000_0100_0000_0000_02ff_73aa;
    pub const MOV: u128 = 0x000f_e200_0000_0f00_0000_0000_0000_7802;
    pub const VOTE: u128 = 0x000f_e200_038e_0100_0000_0000_0000_7806;
    pub const S2R: u128 = 0x000e_2200_0000_2100_0000_0000_0000_7919;
    pub const CS2R: u128 = 0x000f_cc00_0001_5000_0000_0000_0002_7805;
    pub const BRA: u128 = 0x000f_c000_0380_0000_0000_0000_0000_7947;
}

/// Which addresses are at fault: those of lanes for which an operand says that nothing is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    None,
    /// Of no memory.
    Absent,
    /// Odd.
    Misaligned,
}

/// A sequence of instructions, and what its lanes are given.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked, in words that tell it from every other.
    pub name: String,
    program: Program,
    /// Lanes with this bit 0 in the last input word have a bad address.
    bad: (bool, Bad),
    /// The input words are pairs of halves at which something changes.
    halves: bool,
}

impl Question {
    fn new(name: impl Into<String>, sequence: &[Instruction]) -> Result<Self, ProbeError> {
        let options = LaunchOptions { dynamic_shared: SHARED, ..LaunchOptions::default() };
        let program = Program::of(sequence)?.with_options(options);
        Ok(Self { name: name.into(), program, bad: (false, Bad::None), halves: false })
    }

    /// What all lanes hold after the sequence, as [`Program::run`] gives it.
    ///
    /// # Errors
    /// The device refuses the program, or faults.
    pub fn ask(&self, device: &Device) -> Result<Vec<u32>, ProbeError> {
        let mut random = Random(41);
        let data: Vec<u32> = (0..LANES * SHARE / 4).map(|_| random.bits() as u32).collect();
        let memory = device.buffer_from(&data)?;
        let mut words = Vec::with_capacity(LANES * INPUTS);
        for lane in 0..LANES {
            let mut input = inputs(&mut random);
            let share = memory.address() + (lane * SHARE) as u64;
            input[15] = input[15] & !1 | u32::from(condition(lane, random.bits()));
            let (which, bad) = self.bad;
            let address = match bad {
                Bad::Absent if (input[15] & 1 != 0) == which => 0x10_0000,
                Bad::Misaligned if (input[15] & 1 != 0) == which => share + 1,
                _ => share,
            };
            if self.halves {
                for word in &mut input[..15] {
                    let mut half = || u32::from(HALVES[random.below(HALVES.len() as u64) as usize]);
                    *word = half() | half() << 16;
                }
            } else {
                (input[0], input[1]) = (address as u32, (address >> 32) as u32);
                input[4] = 16 * (lane as u32 % BLOCK);
            }
            words.extend(input);
        }
        self.program.run_words(device, &[0; INPUTS], &words)
    }
}

/// Zeros, ones, the smallest and largest numbers, infinities and NaNs of both formats, and the NaN of what is out of bounds.
const HALVES: [u16; 20] = [
    0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x8400, 0x007f, 0x0080, 0x3c00, 0xbc00, 0x3f80, 0xbf80, 0x7bff,
    0x7c00, 0xfc00, 0x7f80, 0x7fff, 0x7ff7, 0xfff7,
];

/// Whether a lane's `P0` holds. Warps differ: none, all, any, one lane, all but one, half, the last one, any.
fn condition(lane: usize, random: u64) -> bool {
    match (lane / 32 % 8, lane % 32) {
        (0, _) => false,
        (1, _) => true,
        (3, lane) => lane == 0,
        (4, lane) => lane != 0,
        (5, lane) => lane >= 16,
        (6, lane) => lane == 31,
        _ => random >> 20 & 1 != 0,
    }
}

fn register(index: u8) -> Operand {
    Operand::Register { index, marks: Marks::default(), half: sass::Half::Both }
}

fn predicate(index: u8, negated: bool) -> Operand {
    Operand::Predicate { index, negated, uniform: false }
}

const fn immediate(bits: u64) -> Operand {
    Operand::Immediate { bits, kind: sass::ImmediateKind::Unsigned }
}

/// A template with its operands replaced, and what waits for its results.
fn made(word: u128, arch: Arch, operands: &[(usize, Operand)]) -> Result<Instruction, ProbeError> {
    let mut made = decode(word, 0, arch).map_err(|error| ProbeError::Template(error.to_string()))?;
    made.guard = sass::Guard::ALWAYS;
    for (slot, operand) in operands {
        let operand = match (*operand, made.operands().get(*slot).copied()) {
            // The kind of address is the template's.
            (
                Operand::Address { base, offset, .. },
                Some(Operand::Address { wide, scale, uniform, descriptor, .. }),
            ) => {
                let descriptor = descriptor.map(|_| 4);
                Operand::Address { base, wide, scale, uniform, descriptor, offset }
            }
            (operand, _) => operand,
        };
        made.set_operand(*slot, operand)
            .ok_or_else(|| ProbeError::Template(format!("{} has no operand {slot}", made.op.name())))?;
    }
    Ok(made)
}

fn at(base: u8) -> Operand {
    Operand::Address { base, wide: false, scale: 0, uniform: None, descriptor: None, offset: 0 }
}

/// The instruction with a field set to what is spelled so.
fn with(instruction: &Instruction, id: FieldId, spelled: &str) -> Option<Instruction> {
    let row: &Row = instruction.row;
    let modifier = row.modifiers.iter().find(|modifier| modifier.id == id)?;
    let value = modifier.spelling.iter().position(|name| *name == spelled)?;
    let word = encode(instruction).ok()? & !modifier.bits.mask() | modifier.bits.put(value as u64)?;
    decode(word, 0, instruction.arch).ok().filter(|found| found.spelling(id) == Some(spelled))
}

/// Widths of loads, as they are spelled.
const SIZES: [&str; 7] = [".U8", ".S8", ".U16", ".S16", "", ".64", ".128"];

/// All questions for code of sm_90.
///
/// # Errors
/// A template does not fit the instruction table.
pub fn all(arch: Arch) -> Result<Vec<Question>, ProbeError> {
    let mut all = Vec::new();
    loads(arch, &mut all)?;
    copies(arch, &mut all)?;
    matrices(arch, &mut all)?;
    others(arch, &mut all)?;
    branches(arch, &mut all)?;
    specials(arch, &mut all)?;
    factors(arch, &mut all)?;
    Ok(all)
}

/// Loads with a predicate behind the address, and with one that they write.
fn loads(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    for (base, enables) in [(word::LDG, true), (word::LD, true), (word::LD_PLAIN, true)] {
        let plain = made(base, arch, &[(0, register(24)), (1, at(8))])?;
        for size in SIZES {
            let Some(sized) = with(&plain, FieldId::Size, size) else { continue };
            for (index, negated) in [(0, false), (0, true), (7, true)] {
                let mut load = sized;
                load.set_operand(3, predicate(index, negated));
                let bads = [Bad::None, Bad::Absent, Bad::Misaligned];
                for bad in bads.into_iter().filter(|bad| enables && (index == 0 || *bad == Bad::None)) {
                    let mut question = Question::new(format!("{load} {bad:?}"), &[load])?;
                    question.bad = (negated, bad);
                    all.push(question);
                }
            }
            for (index, negated) in [(7, false), (0, false)] {
                let mut load = sized;
                load.set_operand(2, predicate(4, false));
                load.set_operand(3, predicate(index, negated));
                all.push(Question::new(format!("{load} writes P4"), &[load])?);
            }
        }
    }
    Ok(())
}

/// Copies to shared memory of which a predicate says whether they read.
fn copies(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    let before = made(word::STS, arch, &[(0, at(12)), (1, register(16))])?;
    let commit = made(word::LDGDEPBAR, arch, &[])?;
    let wait = made(word::DEPBAR, arch, &[])?;
    let after = made(word::LDS, arch, &[(0, register(24)), (1, at(12))])?;
    let plain = made(word::LDGSTS, arch, &[(0, at(12)), (1, at(8))])?;
    for (size, bypass) in [("", ""), (".64", ""), (".128", ""), (".128", ".BYPASS")] {
        let sized = with(&plain, FieldId::Bypass, bypass).and_then(|copy| with(&copy, FieldId::Size, size));
        for fill in ["", ".ZFILL"] {
            let Some(filled) = sized.and_then(|copy| with(&copy, FieldId::ZeroFill, fill)) else { continue };
            for (index, negated) in [(0, false), (0, true), (7, true), (7, false)] {
                let mut copy = filled;
                copy.set_operand(2, predicate(index, negated));
                for bad in [Bad::None, Bad::Absent, Bad::Misaligned] {
                    if index == 7 && bad != Bad::None {
                        continue;
                    }
                    let mut question =
                        Question::new(format!("{copy} {bad:?}"), &[before, copy, commit, wait, after])?;
                    question.bad = (negated, bad);
                    all.push(question);
                }
            }
        }
    }
    Ok(())
}

/// LDSM with every layout and count.
fn matrices(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    let before = made(word::STS, arch, &[(0, at(12)), (1, register(16))])?;
    let plain = made(word::LDSM, arch, &[(0, register(24)), (1, at(12))])?;
    for layout in [".M88", ".MT88", ".M816", ".M832"] {
        for count in ["", ".2", ".4"] {
            let load =
                with(&plain, FieldId::Transpose, layout).and_then(|load| with(&load, FieldId::Count, count));
            if let Some(load) = load {
                all.push(Question::new(format!("{load}"), &[before, load])?);
            }
        }
    }
    Ok(())
}

/// A row's first instruction with nothing but zeros and predicates that hold.
fn blank(op: Op, arch: Arch) -> impl Iterator<Item = Instruction> {
    sass::rows().iter().filter(move |row| row.op == op && row.exists_on(arch)).filter_map(move |row| {
        let word = row.fixed | u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91 | 7 << 12;
        let mut blank = decode(word, 0, arch).ok().filter(|found| std::ptr::eq(found.row, row))?;
        for (place, slot) in row.slots.iter().enumerate() {
            if let SlotKind::Predicate { uniform, .. } = slot.kind {
                blank.set_operand(place, Operand::Predicate { index: 7, negated: false, uniform });
            }
        }
        blank.control = sass::Control { write_barrier: 7, read_barrier: 7, ..blank.control };
        Some(blank)
    })
}

/// Atomics that write a predicate, queries of spaces that write a register, and ends of threads.
fn others(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    for written in [7, 4] {
        let add = made(
            word::ATOMG,
            arch,
            &[(0, predicate(written, false)), (1, register(24)), (2, at(8)), (3, register(16))],
        )?;
        all.push(Question::new(format!("{add}"), &[add])?);
    }
    for space in [".G", ".L", ".S", ".D"] {
        for (base, of, window) in [(8, "global", None), (12, "shared", Some(0x2f)), (12, "local", Some(0x2e))]
        {
            let query =
                made(word::QSPC, arch, &[(0, predicate(4, false)), (1, register(24)), (2, at(base))])?;
            let Some(query) = with(&query, FieldId::Mode, space) else { continue };
            let high = |number| made(word::S2R, arch, &[(0, register(13)), (1, special(number))]);
            let sequence = match window {
                Some(number) => vec![high(number)?, query],
                None => vec![query],
            };
            all.push(Question::new(format!("{query} {of}"), &sequence)?);
        }
        // What would be another block's, were there a cluster.
        let query = made(word::QSPC, arch, &[(0, predicate(4, false)), (1, register(24)), (2, at(12))])?;
        let Some(query) = with(&query, FieldId::Mode, space) else { continue };
        let low = made(word::MOV, arch, &[(0, register(12)), (1, immediate(1 << 24))])?;
        let high = made(word::S2R, arch, &[(0, register(13)), (1, special(0x2f))])?;
        all.push(Question::new(format!("{query} another block's shared"), &[low, high, query])?);
    }
    let vote = made(word::VOTE, arch, &[(0, register(26))])?;
    for kill in blank(Op::Kill, arch) {
        all.push(Question::new(format!("{kill}"), &[kill, vote])?);
        let mut guarded = kill;
        guarded.guard.index = 0;
        all.push(Question::new(format!("{guarded}"), &[guarded, vote])?);
        let mut conditional = kill;
        conditional.set_operand(0, predicate(0, false));
        all.push(Question::new(format!("{conditional}"), &[conditional, vote])?);
    }
    Ok(())
}

/// A forward branch around a move: which lanes go where, and which run together there and behind.
fn branches(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    let active = |to| made(word::VOTE, arch, &[(0, register(to))]);
    let set = |to, value| made(word::MOV, arch, &[(0, register(to)), (1, immediate(value))]);
    for kind in ["", ".U", ".U.ANY"] {
        for guarded in [true, false] {
            for negated in [false, true] {
                let mut branch = made(word::BRA, arch, &[])?;
                let Some(mut kinded) = with(&branch, FieldId::Divergence, kind) else { continue };
                if guarded {
                    kinded.guard.index = 0;
                    kinded.guard.negated = negated;
                } else {
                    kinded.set_operand(0, predicate(0, negated));
                }
                branch = kinded;
                let label = branch.operands().iter().position(|o| matches!(o, Operand::Label { .. }));
                let label = label.ok_or_else(|| ProbeError::Template(String::from("no label")))?;
                branch.address = 0;
                branch.set_operand(label, Operand::Label { target: 4 * 16 });
                let name = format!("{branch}");
                // Behind the label lanes may have met again or not.
                let sequence = [branch, set(24, 1)?, active(26)?, set(25, 2)?, set(28, 3)?];
                all.push(Question::new(name, &sequence)?);
            }
        }
    }
    Ok(())
}

const fn special(number: u8) -> Operand {
    Operand::Special(SpecialRegister(number))
}

/// Special registers that differ from launch to launch, from device to device, or in how a driver sets them up.
const CHANGING: [u8; 18] = [
    0x03, 0x1c, 0x2a, 0x2c, 0x36, 0x37, 0x3d, 0x43, 0x44, 0x50, 0x51, 0x52, 0x53, 0x86, 0x87, 0x89, 0x8a,
    0x8b,
];

/// Special registers: eight in a question by S2R and CS2R.32, four by CS2R.
fn specials(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    for (word, size, step) in [(word::S2R, None, 1), (word::CS2R, Some(".32"), 1), (word::CS2R, Some(""), 2)]
    {
        let mut sequence = Vec::new();
        let mut first = 0;
        for number in 0..=u8::MAX {
            if !CHANGING.contains(&number) {
                let to = 24 + step * sequence.len() as u8;
                let mut read = made(word, arch, &[(0, register(to)), (1, special(number))])?;
                if let Some(size) = size {
                    read = with(&read, FieldId::Pair64, size)
                        .ok_or_else(|| ProbeError::Template(String::from("no such CS2R")))?;
                }
                sequence.push(read);
            }
            if sequence.len() == 8 / usize::from(step) || number == u8::MAX {
                let kind =
                    sequence.first().map_or_else(String::new, |i: &Instruction| i.op.name().to_owned());
                let name = format!("{kind}{} of {first:#x} to {number:#x}", size.unwrap_or(""));
                if !sequence.is_empty() {
                    all.push(Question::new(name, &sequence)?);
                }
                sequence.clear();
                first = number.wrapping_add(1);
            }
        }
    }
    Ok(())
}

/// Products of halves with special factors.
fn factors(arch: Arch, all: &mut Vec<Question>) -> Result<(), ProbeError> {
    let mut random = Random(43);
    for op in [Op::Hmul2, Op::Hfma2, Op::Hfma2Mma] {
        for row in blank(op, arch) {
            for kind in [".FMZ", ".OOB"] {
                let Some(plain) = with(&row, FieldId::Ftz, kind) else { continue };
                let brain =
                    [".BF16_V2", ".BF16"].into_iter().find_map(|name| with(&plain, FieldId::BFloat16, name));
                for form in [Some(plain), brain].into_iter().flatten() {
                    let relu = with(&form, FieldId::Relu, ".RELU");
                    let saturating = with(&form, FieldId::Saturate, ".SAT");
                    for form in [Some(form), relu, saturating].into_iter().flatten() {
                        let dressed = [probe::dress(&form, None), probe::dress(&form, Some(&mut random))];
                        // Those with constants of described banks are left out.
                        for dressed in dressed.into_iter().flatten() {
                            let mut question =
                                Question::new(format!("{dressed} of special halves"), &[dressed])?;
                            question.halves = true;
                            all.push(question);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
