//! nvdisasm's spelling.
use crate::code::is_hidden;
use crate::lane::convert::FloatFormat;
use crate::row::{ALWAYS, NO_BIT, uniform_width};
use crate::{
    Arch, Bank, FieldId, Half, HalfBits, Hide, ImmediateKind, Instruction, Marks, Op, Operand, SlotKind,
    SpecialRegister,
};
use std::fmt::{self, Write};

/// C's `%.{digits}g` for a finite number.
fn general(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// C's `%.{decimals}e` for a finite number.
fn exponential(value: f64, decimals: usize) -> String {
    let scientific = format!("{value:.decimals$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// A floating-point number of the low bits of `bits`.
fn float(bits: u64, format: FloatFormat) -> String {
    let (value, fields) = (format.value(bits), format.format());
    let negative = bits & fields.sign_bit() != 0;
    let sign = if negative { '-' } else { '+' };
    if value.is_nan() {
        let quiet = bits >> (fields.fraction_bits - 1) & 1 != 0;
        return format!("{sign}{}NAN ", if quiet { 'Q' } else { 'S' });
    }
    if value.is_infinite() {
        return format!("{sign}INF ");
    }
    if value == 0.0 && negative {
        return "-0.0 ".into();
    }
    // The tool switches to the exponent early, and then keeps trailing zeros.
    if value.abs() >= 1e9 {
        return exponential(value, 20);
    }
    general(value, 20)
}

/// Two 16-bit numbers, the high one first.
fn floats(bits: u64, format: FloatFormat) -> String {
    format!("{}, {}", float(bits >> 16, format), float(bits, format))
}

fn immediate(bits: u64, width: u8, kind: ImmediateKind) -> String {
    match kind {
        ImmediateKind::Unsigned => format!("{bits:#x}"),
        ImmediateKind::Signed => {
            let unused = 64 - u32::from(width);
            signed(((bits << unused) as i64) >> unused)
        }
        ImmediateKind::F32 => float(bits, FloatFormat::F32),
        ImmediateKind::F64High => float(bits << 32, FloatFormat::F64),
        ImmediateKind::F16 => float(bits, FloatFormat::F16),
        ImmediateKind::Bf16 => float(bits, FloatFormat::Bf16),
        ImmediateKind::F16x2 => floats(bits, FloatFormat::F16),
        ImmediateKind::Bf16x2 => floats(bits, FloatFormat::Bf16),
    }
}

fn signed(value: i64) -> String {
    if value < 0 { format!("-{:#x}", value.unsigned_abs()) } else { format!("{value:#x}") }
}

fn register(index: u8) -> String {
    if index == Operand::RZ { "RZ".into() } else { format!("R{index}") }
}

fn uniform(index: u8, arch: Arch) -> String {
    let zero = usize::from(index) == (1 << uniform_width(arch)) - 1;
    if zero { "URZ".into() } else { format!("UR{index}") }
}

fn half_suffix(half: Half) -> &'static str {
    match half {
        Half::Both => "",
        Half::F32 => ".F32",
        Half::Low => ".H0_H0",
        Half::High => ".H1_H1",
        Half::Upper => ".H1",
        Half::Byte1 => ".B1",
        Half::Byte2 => ".B2",
        Half::Byte3 => ".B3",
        Half::LowNegatedHigh => ".H0_NH1",
    }
}

/// A source with its marks. Of a register's packed halves the text tells outside the bars, of all else inside.
fn marked(name: &str, marks: Marks, half: Half, reused: &str) -> String {
    let part = half_suffix(half);
    let inner = match (marks.absolute, half) {
        (false, _) => format!("{name}{reused}{part}"),
        (true, Half::F32 | Half::Low | Half::High | Half::LowNegatedHigh) if name.starts_with('R') => {
            format!("|{name}|{reused}{part}")
        }
        (true, _) => format!("|{name}{part}|{reused}"),
    };
    let sign = if marks.negate { "-" } else { "" };
    let complement = if marks.invert { "~" } else { "" };
    format!("{sign}{complement}{inner}")
}

/// Names by number with the generations that know them; what has none prints as `SR<number>`.
const SPECIAL_NAMES: &[(u8, &str, Arch, Arch)] = &{
    use Arch::{Sm75, Sm80, Sm90, Sm100, Sm120};
    [
        (0x00, "SR_LANEID", Sm75, Sm120),
        (0x01, "SR_CLOCK", Sm75, Sm120),
        (0x02, "SR_VIRTCFG", Sm75, Sm120),
        (0x03, "SR_VIRTID", Sm75, Sm120),
        (0x0f, "SR_ORDERING_TICKET", Sm75, Sm120),
        (0x10, "SR_PRIM_TYPE", Sm75, Sm120),
        (0x11, "SR_INVOCATION_ID", Sm75, Sm120),
        (0x12, "SR_Y_DIRECTION", Sm75, Sm120),
        (0x13, "SR_THREAD_KILL", Sm75, Sm120),
        (0x14, "SM_SHADER_TYPE", Sm75, Sm120),
        (0x15, "SR_DIRECTCBEWRITEADDRESSLOW", Sm75, Sm120),
        (0x16, "SR_DIRECTCBEWRITEADDRESSHIGH", Sm75, Sm120),
        (0x17, "SR_DIRECTCBEWRITEENABLED", Sm75, Sm120),
        (0x18, "SR_MACHINE_ID_0", Sm75, Sm75),
        (0x18, "SR_SW_SCRATCH", Sm80, Sm120),
        (0x19, "SR_MACHINE_ID_1", Sm75, Sm120),
        (0x1a, "SR_MACHINE_ID_2", Sm75, Sm120),
        (0x1b, "SR_MACHINE_ID_3", Sm75, Sm120),
        (0x1c, "SR_AFFINITY", Sm75, Sm120),
        (0x1d, "SR_INVOCATION_INFO", Sm75, Sm120),
        (0x1e, "SR_WSCALEFACTOR_XY", Sm75, Sm120),
        (0x1f, "SR_WSCALEFACTOR_Z", Sm75, Sm120),
        (0x20, "SR_TID", Sm75, Sm120),
        (0x21, "SR_TID.X", Sm75, Sm120),
        (0x22, "SR_TID.Y", Sm75, Sm120),
        (0x23, "SR_TID.Z", Sm75, Sm120),
        (0x25, "SR_CTAID.X", Sm75, Sm120),
        (0x26, "SR_CTAID.Y", Sm75, Sm120),
        (0x27, "SR_CTAID.Z", Sm75, Sm120),
        (0x28, "SR_NTID", Sm75, Sm120),
        (0x29, "SR_CirQueueIncrMinusOne", Sm75, Sm120),
        (0x2a, "SR_NLATC", Sm75, Sm120),
        (0x2c, "SR_SM_SPA_VERSION", Sm75, Sm120),
        (0x2d, "SR_MULTIPASSSHADERINFO", Sm75, Sm120),
        (0x2e, "SR_LWINHI", Sm75, Sm120),
        (0x2f, "SR_SWINHI", Sm75, Sm120),
        (0x30, "SR_SWINLO", Sm75, Sm120),
        (0x31, "SR_SWINSZ", Sm75, Sm120),
        (0x32, "SR_SMEMSZ", Sm75, Sm120),
        (0x33, "SR_SMEMBANKS", Sm75, Sm120),
        (0x34, "SR_LWINLO", Sm75, Sm120),
        (0x35, "SR_LWINSZ", Sm75, Sm120),
        (0x36, "SR_LMEMLOSZ", Sm75, Sm120),
        (0x37, "SR_LMEMHIOFF", Sm75, Sm120),
        (0x38, "SR_EQMASK", Sm75, Sm120),
        (0x39, "SR_LTMASK", Sm75, Sm120),
        (0x3a, "SR_LEMASK", Sm75, Sm120),
        (0x3b, "SR_GTMASK", Sm75, Sm120),
        (0x3c, "SR_GEMASK", Sm75, Sm120),
        (0x3d, "SR_REGALLOC", Sm75, Sm120),
        (0x3e, "SR_BARRIERALLOC", Sm75, Sm120),
        (0x40, "SR_GLOBALERRORSTATUS", Sm75, Sm120),
        (0x41, "SR_CGAERRORSTATUS", Sm90, Sm120),
        (0x42, "SR_WARPERRORSTATUS", Sm75, Sm120),
        (0x43, "SR_VIRTUALSMID", Sm75, Sm120),
        (0x44, "SR_VIRTUALENGINEID", Sm75, Sm120),
        (0x50, "SR_CLOCKLO", Sm75, Sm120),
        (0x51, "SR_CLOCKHI", Sm75, Sm120),
        (0x52, "SR_GLOBALTIMERLO", Sm75, Sm120),
        (0x53, "SR_GLOBALTIMERHI", Sm75, Sm120),
        (0x54, "SR_ESR_PC", Sm75, Sm120),
        (0x55, "SR_ESR_PC_HI", Sm75, Sm120),
        (0x60, "SR_HWTASKID", Sm75, Sm120),
        (0x61, "SR_CIRCULARQUEUEENTRYINDEX", Sm75, Sm120),
        (0x62, "SR_CIRCULARQUEUEENTRYADDRESSLOW", Sm75, Sm120),
        (0x63, "SR_CIRCULARQUEUEENTRYADDRESSHIGH", Sm75, Sm120),
        (0x64, "SR_PM0", Sm75, Sm120),
        (0x65, "SR_PM_HI0", Sm75, Sm120),
        (0x66, "SR_PM1", Sm75, Sm120),
        (0x67, "SR_PM_HI1", Sm75, Sm120),
        (0x68, "SR_PM2", Sm75, Sm120),
        (0x69, "SR_PM_HI2", Sm75, Sm120),
        (0x6a, "SR_PM3", Sm75, Sm120),
        (0x6b, "SR_PM_HI3", Sm75, Sm120),
        (0x6c, "SR_PM4", Sm75, Sm120),
        (0x6d, "SR_PM_HI4", Sm75, Sm120),
        (0x6e, "SR_PM5", Sm75, Sm120),
        (0x6f, "SR_PM_HI5", Sm75, Sm120),
        (0x70, "SR_PM6", Sm75, Sm120),
        (0x71, "SR_PM_HI6", Sm75, Sm120),
        (0x72, "SR_PM7", Sm75, Sm120),
        (0x73, "SR_PM_HI7", Sm75, Sm120),
        (0x74, "SR_SNAP_PM0", Sm75, Sm120),
        (0x75, "SR_SNAP_PM_HI0", Sm75, Sm120),
        (0x76, "SR_SNAP_PM1", Sm75, Sm120),
        (0x77, "SR_SNAP_PM_HI1", Sm75, Sm120),
        (0x78, "SR_SNAP_PM2", Sm75, Sm120),
        (0x79, "SR_SNAP_PM_HI2", Sm75, Sm120),
        (0x7a, "SR_SNAP_PM3", Sm75, Sm120),
        (0x7b, "SR_SNAP_PM_HI3", Sm75, Sm120),
        (0x7c, "SR_SNAP_PM4", Sm75, Sm120),
        (0x7d, "SR_SNAP_PM_HI4", Sm75, Sm120),
        (0x7e, "SR_SNAP_PM5", Sm75, Sm120),
        (0x7f, "SR_SNAP_PM_HI5", Sm75, Sm120),
        (0x80, "SR_SNAP_PM6", Sm75, Sm120),
        (0x81, "SR_SNAP_PM_HI6", Sm75, Sm120),
        (0x82, "SR_SNAP_PM7", Sm75, Sm120),
        (0x83, "SR_SNAP_PM_HI7", Sm75, Sm120),
        (0x84, "SR_VARIABLE_RATE", Sm75, Sm120),
        (0x85, "__HIR0X000", Sm75, Sm120),
        (0x86, "SR_WARPGROUP_INFO", Sm90, Sm90),
        (0x87, "SR_WARPGROUPID", Sm90, Sm90),
        (0x88, "SR_CgaCtaId", Sm90, Sm120),
        (0x89, "SR_GpcLocalCgaId", Sm90, Sm120),
        (0x8a, "SR_CgaSize", Sm100, Sm120),
        (0x8b, "SR_CTARegPoolSz", Sm90, Sm120),
        (0x8d, "SR_TMemSz", Sm100, Sm120),
        (0x8e, "SR_CONTEXT_SAVE_ADDR_LO", Sm120, Sm120),
        (0x8f, "SR_CONTEXT_SAVE_ADDR_HI", Sm120, Sm120),
        (0xff, "SRZ", Sm75, Sm120),
    ]
};

fn special(register: SpecialRegister, arch: Arch) -> String {
    let known = |(number, _, since, until): &&(u8, &str, Arch, Arch)| {
        *number == register.0 && *since <= arch && arch <= *until
    };
    match SPECIAL_NAMES.iter().find(known) {
        Some((_, name, ..)) => (*name).into(),
        None => format!("SR{}", register.0),
    }
}

impl fmt::Display for SpecialRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SPECIAL_NAMES.iter().rfind(|(number, ..)| *number == self.0) {
            Some((_, name, ..)) => f.write_str(name),
            None => write!(f, "SR{}", self.0),
        }
    }
}

fn address(operand: &Operand, slot: &SlotKind, arch: Arch) -> String {
    let Operand::Address { base, wide, scale, uniform: added, descriptor, offset } = *operand else {
        return String::new();
    };
    let quiet = matches!(slot, SlotKind::Address { quiet: true, .. });
    let mut text = String::new();
    if let Some(index) = descriptor.filter(|_| arch >= Arch::Sm90) {
        text = format!("desc[{}]", uniform(index, arch));
    }
    let mut parts = Vec::new();
    // Turing says when a register beside a uniform one is a single one, which others do not have.
    let turing =
        arch == Arch::Sm75 && added.is_some() && matches!(slot, SlotKind::Address { wide: 0..ALWAYS, .. });
    let scaled = scale != 0 && added.is_some();
    if base != Operand::RZ
        || (added.is_none() && offset == 0)
        || (wide && !quiet && arch != Arch::Sm75)
        || scaled
    {
        let pair = match wide {
            true if !quiet => ".64",
            false if turing => ".U32",
            _ => "",
        };
        let factor = if base == Operand::RZ && !scaled { 0 } else { usize::from(scale) };
        let factor = ["", "", ".X4", ".X8", ".X16"].get(factor).copied().unwrap_or("");
        parts.push(format!("{}{pair}{factor}", register(base)));
    }
    if let Some(index) = added {
        parts.push(uniform(index, arch));
    }
    if offset != 0 {
        let alone = parts.is_empty();
        // Alone, an offset is an address, which has no sign.
        let width = if let SlotKind::Address { offset, .. } = slot { offset.width() } else { 24 };
        let unsigned = alone && width >= 24;
        let value = if unsigned { i64::from(offset) & ((1 << width) - 1) } else { i64::from(offset) };
        parts.push(signed(value));
    }
    let _ = write!(text, "[{}]", parts.join("+"));
    text
}

fn operand_text(instruction: &Instruction, index: usize) -> String {
    let arch = instruction.arch;
    let slot = &instruction.row.slots[index].kind;
    let operand = &instruction.operands[index];
    match *operand {
        Operand::Register { index: number, marks, half } => {
            let (reuse, tag) = match *slot {
                SlotKind::Register { reuse, tag, .. } => (reuse, tag),
                _ => (0, ""),
            };
            let reused = if instruction.control.reuse & reuse != 0 { ".reuse" } else { "" };
            marked(&register(number), marks, half, reused) + tag
        }
        Operand::UniformRegister { index: number, marks, half } => {
            let name = uniform(number, arch);
            match *slot {
                SlotKind::Described { name: front, .. } => format!("{front}[{name}]"),
                _ => marked(&name, marks, half, ""),
            }
        }
        Operand::Predicate { index: number, negated, uniform } => predicate(number, negated, uniform),
        Operand::Immediate { bits, kind } => {
            let width = match *slot {
                SlotKind::Immediate { bits, .. } => bits.width(),
                _ => 32,
            };
            let brain =
                kind == ImmediateKind::F16x2 && instruction.spelling(FieldId::BFloat16) == Some(".BF16_V2");
            let function = instruction.spelling(FieldId::Function);
            let kind = match instruction.op {
                _ if brain => ImmediateKind::Bf16x2,
                Op::Mufu if matches!(function, Some(".RCP64H" | ".RSQ64H")) => ImmediateKind::F64High,
                Op::Mufu if instruction.spelling(FieldId::Float32) == Some(".F16") => ImmediateKind::F16,
                Op::Mufu if instruction.spelling(FieldId::Float32) == Some(".BF16") => ImmediateKind::Bf16,
                Op::I2f | Op::I2fp
                    if instruction.spelling(FieldId::SourceType).is_some_and(|s| s.starts_with(".U")) =>
                {
                    ImmediateKind::Unsigned
                }
                _ => kind,
            };
            let text = immediate(bits, width, kind);
            // A single-precision sum reads the low half only.
            let single = instruction.op == Op::Hadd2 && instruction.flag(FieldId::Float32);
            match text.split_once(", ") {
                Some((_, low)) if single && arch >= Arch::Sm86 => low.into(),
                _ => text,
            }
        }
        Operand::Constant { bank, offset, index: number, uniform_index, marks, half } => {
            let name = match bank {
                Bank::Number(bank) => format!("c[{bank:#x}]"),
                Bank::Uniform(index) => format!("cx[{}]", uniform(index, arch)),
            };
            let base = match (uniform_index, number) {
                (false, Operand::RZ) => None,
                (false, number) => Some(register(number)),
                (true, number) => {
                    let text = uniform(number, arch);
                    (text != "URZ").then_some(text)
                }
            };
            let inner = match (base, offset) {
                (None, 0)
                    if matches!(
                        slot,
                        SlotKind::Constant { index, .. } | SlotKind::Bindless { index, .. } if *index != NO_BIT
                    ) =>
                {
                    "RZ".into()
                }
                // The tool reads offsets as signed whether or not there is an index.
                (None, offset) => signed((offset as i16).into()),
                (Some(base), 0) => base,
                (Some(base), offset) => format!("{base}+{}", signed(offset.into())),
            };
            // One of the tool's oddities.
            let narrow = instruction.op == Op::Plop3
                || instruction.op == Op::Mufu && instruction.flag(FieldId::Float32);
            let plain = matches!(
                slot,
                SlotKind::Constant { half: HalfBits::None, .. }
                    | SlotKind::Bindless { half: HalfBits::None, .. }
            );
            let space = if plain && !narrow { "" } else { " " };
            marked(&format!("{name}{space}[{inner}]"), marks, half, "")
        }
        Operand::Address { .. } => address(operand, slot, arch),
        Operand::Label { target } => signed(target),
        Operand::Barrier(number) => format!("B{number}"),
        Operand::Scoreboard(number) => format!("SB{number}"),
        Operand::ScoreboardSet(set) => {
            let members = (0..8).rev().filter(|bit| set >> bit & 1 != 0).map(|bit| bit.to_string());
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Operand::Special(register) => special(register, arch),
        Operand::AllPredicates => "PR".into(),
        Operand::Word(value) => match *slot {
            SlotKind::Signs(_) => (0..4)
                .rev()
                .map(|lane| ["PP", "PN", "NP", "ZP"][usize::from(value >> (2 * lane) & 3)])
                .collect(),
            SlotKind::Word { spelling, .. } => spelling.get(usize::from(value)).copied().unwrap_or("").into(),
            _ => String::new(),
        },
    }
}

fn predicate(index: u8, negated: bool, uniform: bool) -> String {
    let not = if negated { "!" } else { "" };
    let file = if uniform { "UP" } else { "P" };
    if index == Operand::PT { format!("{not}{file}T") } else { format!("{not}{file}{index}") }
}

/// The spelling that IMAD takes when its operands make it a move, an addition or a shift.
fn imad_alias(instruction: &Instruction) -> &'static str {
    let [_, a, b, c, _] = instruction.operands() else { return "" };
    if instruction.flag(FieldId::Extended) {
        return "";
    }
    let zero = |operand: &Operand| {
        matches!(*operand, Operand::Register { index: Operand::RZ, .. } | Operand::Immediate { bits: 0, .. })
    };
    let uniform = |operand: &Operand| matches!(*operand, Operand::UniformRegister { .. });
    if zero(a) || zero(b) {
        return if uniform(b) || uniform(c) { "" } else { ".MOV" };
    }
    match *b {
        Operand::Immediate { bits: 1, .. } => {
            if zero(c) {
                ".MOV"
            } else {
                ".IADD"
            }
        }
        Operand::Immediate { bits, .. }
            if zero(c) && (bits as u32).is_power_of_two() && !matches!(bits, 0x1_0000 | 0x8000_0000) =>
        {
            ".SHL"
        }
        _ => "",
    }
}

/// nvdisasm's text of one instruction without the closing semicolon; labels as absolute addresses.
#[must_use]
pub fn text(instruction: &Instruction) -> String {
    let mut out = String::new();
    let guard = instruction.guard;
    if guard.index != Operand::PT || guard.negated {
        let _ = write!(out, "@{} ", predicate(guard.index, guard.negated, guard.uniform));
    }
    out.push_str(instruction.op.name());
    if instruction.op == Op::Imad {
        out.push_str(imad_alias(instruction));
    }
    let fields = || instruction.row.modifiers.iter().zip(&instruction.fields);
    for (modifier, &value) in fields().filter(|(modifier, _)| modifier.operand.is_none()) {
        out.push_str(modifier.spelling.get(usize::from(value)).copied().unwrap_or(""));
    }
    let leads = |hide| matches!(hide, Hide::Leading | Hide::LeadingOrNeutral);
    let slots = || instruction.row.slots.iter().enumerate();
    let leading = slots().filter(|(_, slot)| leads(slot.hide));
    let mut separator = " ";
    for (index, slot) in leading.chain(slots().filter(|(_, slot)| !leads(slot.hide))) {
        if is_hidden(instruction, index) {
            continue;
        }
        out.push_str(separator);
        out.push_str(&operand_text(instruction, index));
        for (modifier, &value) in fields().filter(|(m, _)| m.operand.map(usize::from) == Some(index)) {
            out.push_str(modifier.spelling.get(usize::from(value)).copied().unwrap_or(""));
        }
        separator = match (slot.kind, instruction.op) {
            // A register in front of a code address is added to it, not listed beside it.
            (SlotKind::Register { .. }, Op::Brx | Op::Jmx | Op::Call | Op::Ret) => " ",
            _ => ", ",
        };
    }
    out.truncate(out.trim_end().len());
    out
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}
