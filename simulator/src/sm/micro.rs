//! Machine words decoded into what the executor runs.

use sass::lane::convert::FloatFormat;
use sass::lane::half::{HalfFormat, HalfMode, Swizzle};
use sass::lane::integer::{Direction, PermuteMode, ShiftKind};
use sass::lane::mma::{Accumulator, Factor, Generation};
use sass::lane::mufu::Function;
use sass::lane::{
    Boolean, FloatCompare, FloatMode, IntegerCompare, IntegerType, Rounding, Sign, Subnormals, Width,
};

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// RZ or URZ.
    Zero,
    Register(u8),
    Uniform(u8),
    Immediate(u32),
    Constant {
        bank: u8,
        offset: u32,
    },
}

/// A source operand with the modifiers of its slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub slot: Slot,
    pub negate: bool,
    pub absolute: bool,
}

/// A memory address operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub uniform: Slot,
    pub offset: i32,
    /// The base (operand `a`) and uniform part are register pairs.
    pub wide: bool,
    /// Log2 of the base's scale.
    pub scale: u8,
}

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Generic,
    Global,
    Shared,
    Local,
}

/// Size and extension of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub bytes: u8,
    pub signed: bool,
}

/// Operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOperation {
    Add,
    Min,
    Max,
    Increment,
    Decrement,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
}

/// Type of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    F32,
    F16x2,
    Bf16x2,
    F64,
}

impl AtomicType {
    pub const fn bytes(self) -> u8 {
        match self {
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }
}

/// SHFL's addressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

/// REDUX's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    And,
    Or,
    Xor,
    Sum,
    Min,
    Max,
}

/// BAR's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierForm {
    Sync,
    Arrive,
    ReducePopc,
    ReduceAnd,
    ReduceOr,
}

/// What to do, with the modifiers resolved.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Illegal,
    Register,
    Unmapped,
    Nop,
    Mov,
    Sel,
    Fsel { flushes: bool },
    Fmnmx { flushes: bool, nan: bool },
    Fsetp { compare: FloatCompare, boolean: Boolean, flushes: bool },
    Isetp { compare: IntegerCompare, boolean: Boolean, sign: Sign, extended: bool },
    DoubleMinMax { minimum: bool },
    Dsetp { compare: FloatCompare, boolean: Boolean },
    Iadd3 { extended: bool },
    Lea { shift: u32, high: bool, extended: bool, sign_extend: bool },
    Lop3 { table: u8, and: bool },
    Plop3 { tables: [u8; 2] },
    Iabs,
    Popc,
    Flo { sign: Sign, shift: bool },
    Brev,
    Prmt { mode: PermuteMode },
    Imnmx { sign: Sign },
    Viadd,
    Shf { kind: ShiftKind },
    Sgxt { sign: Sign, wrap: bool },
    Bmsk { wrap: bool },
    Fadd { mode: FloatMode },
    Fmul { mode: FloatMode, scale: i32 },
    Ffma { mode: FloatMode },
    Imad { extended: bool, negate_product: bool },
    ImadWide { sign: Sign, extended: bool, negate_product: bool },
    ImadHi { sign: Sign },
    Idp4 { sign_a: Sign, sign_b: Sign },
    Dadd { rounding: Rounding },
    Dmul { rounding: Rounding },
    Dfma { rounding: Rounding },
    Hadd2 { mode: HalfMode, swizzle: [Swizzle; 2], f32: bool },
    Hmul2 { mode: HalfMode, swizzle: [Swizzle; 2] },
    Fset { compare: FloatCompare, boolean: Boolean, flushes: bool },
    Hsetp2 { compare: FloatCompare, boolean: Boolean, mode: HalfMode, swizzle: [Swizzle; 2] },
    Hset2 { compare: FloatCompare, boolean: Boolean, mode: HalfMode, swizzle: [Swizzle; 2], float: bool },
    Hfma2 { mode: HalfMode, swizzle: [Swizzle; 3] },
    Hmma { factor: Factor, accumulator: Accumulator, k: u8, generation: Generation },
    F2fp { format: HalfFormat, rounding: Rounding, relu: bool },
    Mufu { function: Function },
    Fchk,
    F2f { from: FloatFormat, to: FloatFormat, rounding: Rounding, flushes: bool },
    F2i { from: FloatFormat, to: IntegerType, rounding: Rounding, flushes: bool },
    I2f { from: IntegerType, to: FloatFormat, rounding: Rounding, byte: u8 },
    Frnd { format: FloatFormat, rounding: Rounding, flushes: bool },
    P2r { byte: u8 },
    R2p { byte: u8 },
    S2r { register: u8, wide: bool },
    R2ur,
    Vote { mode: u8 },
    Shfl { mode: Shuffle },
    Redux { operation: Reduction, sign: Sign },
    Ldc { size: Size, bank: u8, offset: i32 },
    Load { space: Space, size: Size, address: Address },
    Store { space: Space, size: Size, address: Address },
    Atomic { space: Space, operation: AtomicOperation, kind: AtomicType, address: Address },
    AtomicPopcIncrement { address: Address },
    Fence,
    Bar { form: BarrierForm, index: u8, threads: u16 },
    B2r,
    Bra { target: u64 },
    BraDiv { target: u64, invert: bool, converged: bool },
    Brx { base: u64 },
    Jmx { offset: u64 },
    Bssy { barrier: u8 },
    Bsync { barrier: u8 },
    Break { barrier: u8 },
    BmovFrom { barrier: u8, clear: bool },
    BmovTo { barrier: u8 },
    Warpsync,
    Yield,
    Call { target: u64 },
    Ret { base: u64 },
    Lepc,
    Trap,
    Exit,
}

/// A predicate operand: bits 2:0 the index (7 is true), bit 3 negation.
pub(super) type PredicateOperand = u8;

/// One decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    pub op: Op,
    /// Guard predicate.
    pub guard: PredicateOperand,
    /// The instruction belongs to the uniform datapath.
    pub uniform: bool,
    pub destination: u8,
    pub a: Source,
    pub b: Source,
    pub c: Source,
    /// Destination predicates (7: none).
    pub to: [u8; 2],
    /// Source predicates, at bits 87, 77 and 68.
    pub from: [PredicateOperand; 3],
    /// The word itself, for reports.
    pub word: u128,
}

struct Word(u128);

impl Word {
    fn bits(&self, low: u32, count: u32) -> u32 {
        ((self.0 >> low) & ((1 << count) - 1)) as u32
    }
    fn flag(&self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }
    fn signed(&self, low: u32, count: u32) -> i64 {
        let value = (self.0 >> low) as u64 & ((1 << count) - 1);
        ((value << (64 - count)) as i64) >> (64 - count)
    }
    fn register(&self, low: u32) -> Slot {
        match self.bits(low, 8) as u8 {
            255 => Slot::Zero,
            index => Slot::Register(index),
        }
    }
    fn uniform(&self, low: u32) -> Slot {
        match self.bits(low, 6) as u8 {
            63 => Slot::Zero,
            index => Slot::Uniform(index),
        }
    }
    fn sign(&self, bit: u32) -> Sign {
        if self.flag(bit) { Sign::Signed } else { Sign::Unsigned }
    }
    fn boolean(&self) -> Option<Boolean> {
        [Boolean::And, Boolean::Or, Boolean::Xor].get(self.bits(74, 2) as usize).copied()
    }
    fn rounding(&self) -> Rounding {
        Rounding::from_code(self.bits(78, 2))
    }
    fn float_mode(&self, fmz: Option<u32>) -> FloatMode {
        let subnormals = if fmz.is_some_and(|bit| self.flag(bit)) {
            Subnormals::FlushMultiplyZero
        } else if self.flag(80) {
            Subnormals::Flush
        } else {
            Subnormals::Keep
        };
        FloatMode { rounding: self.rounding(), subnormals, saturate: self.flag(77) }
    }
    fn float_format(&self, low: u32) -> Option<FloatFormat> {
        [None, Some(FloatFormat::F16), Some(FloatFormat::F32), Some(FloatFormat::F64)]
            [self.bits(low, 2) as usize]
    }
    fn integer(&self, low: u32, sign: Sign) -> IntegerType {
        let width = [Width::B8, Width::B16, Width::B32, Width::B64][self.bits(low, 2) as usize];
        IntegerType { width, sign }
    }
    fn size(&self) -> Option<Size> {
        let (bytes, signed) = match self.bits(73, 3) {
            0 => (1, false),
            1 => (1, true),
            2 => (2, false),
            3 => (2, true),
            4 => (4, false),
            5 => (8, false),
            6 => (16, false),
            _ => return None,
        };
        Some(Size { bytes, signed })
    }
    fn half_mode(&self, relu: Option<u32>) -> HalfMode {
        HalfMode {
            format: if self.flag(85) { HalfFormat::Bf16 } else { HalfFormat::F16 },
            flushes: self.flag(80),
            saturate: self.flag(77),
            relu: relu.is_some_and(|bit| self.flag(bit)),
        }
    }
    fn swizzle(&self, low: u32) -> Swizzle {
        [Swizzle::H1H0, Swizzle::F32, Swizzle::H0H0, Swizzle::H1H1][self.bits(low, 2) as usize]
    }
    /// An address of the given kind: `uniform` says at which bit a uniform register may stand.
    fn address(&self, uniform: u32, wide: bool, scaled: bool, descriptor: bool) -> Address {
        Address {
            uniform: if self.flag(91) && !descriptor { self.uniform(uniform) } else { Slot::Zero },
            offset: self.signed(40, 24) as i32,
            wide,
            scale: if scaled { [0, 2, 3, 4][self.bits(78, 2) as usize] } else { 0 },
        }
    }
    fn atomic_type(&self) -> AtomicType {
        [
            AtomicType::U32,
            AtomicType::S32,
            AtomicType::U64,
            AtomicType::F32,
            AtomicType::F16x2,
            AtomicType::S64,
            AtomicType::F64,
            AtomicType::Bf16x2,
        ][self.bits(73, 3) as usize]
    }
    fn atomic_operation(&self, bits: u32) -> Option<AtomicOperation> {
        [
            AtomicOperation::Add,
            AtomicOperation::Min,
            AtomicOperation::Max,
            AtomicOperation::Increment,
            AtomicOperation::Decrement,
            AtomicOperation::And,
            AtomicOperation::Or,
            AtomicOperation::Xor,
            AtomicOperation::Exchange,
        ]
        .get(self.bits(87, bits) as usize)
        .copied()
    }
    fn target(&self, address: u64, sm: u32) -> u64 {
        // sm_90 holds eight more, lower bits of the target in 23:16.
        let offset = if sm >= 90 {
            (self.signed(34, 47) << 10) | i64::from(self.bits(16, 8) << 2)
        } else {
            self.signed(34, 48) << 2
        };
        address.wrapping_add(16).wrapping_add(offset as u64)
    }
}

/// Registers an operand spans, for the range check.
fn spans(op: &Op) -> (u32, [u32; 3]) {
    match op {
        Op::ImadWide { .. } => (2, [1, 1, 2]),
        Op::ImadHi { .. } => (1, [1, 1, 2]),
        Op::Hmma { factor, accumulator, k, .. } => {
            let b = u32::from(*k) / if *factor == Factor::Tf32 { 4 } else { 8 };
            let c = if *accumulator == Accumulator::F16 { 2 } else { 4 };
            (c, [2 * b, b, c])
        }
        Op::Dadd { .. } | Op::Dmul { .. } | Op::Dfma { .. } => (2, [2, 2, 2]),
        Op::Dsetp { .. } | Op::DoubleMinMax { .. } => (0, [2, 2, 0]),
        Op::F2f { from, to, .. } => (
            if *to == FloatFormat::F64 { 2 } else { 1 },
            [0, if *from == FloatFormat::F64 { 2 } else { 1 }, 0],
        ),
        Op::F2i { from, to, .. } => (
            if to.width == Width::B64 { 2 } else { 1 },
            [0, if *from == FloatFormat::F64 { 2 } else { 1 }, 0],
        ),
        Op::I2f { from, to, .. } => (
            if *to == FloatFormat::F64 { 2 } else { 1 },
            [0, if from.width == Width::B64 { 2 } else { 1 }, 0],
        ),
        Op::Frnd { format, .. } => {
            let n = if *format == FloatFormat::F64 { 2 } else { 1 };
            (n, [0, n, 0])
        }
        Op::S2r { wide: true, .. } => (2, [0; 3]),
        Op::Ldc { size, .. } => (u32::from(size.bytes).div_ceil(4), [1, 0, 0]),
        Op::Load { size, address, .. } => {
            (u32::from(size.bytes).div_ceil(4), [1 + u32::from(address.wide), 0, 0])
        }
        Op::Store { size, address, .. } => {
            (0, [1 + u32::from(address.wide), u32::from(size.bytes).div_ceil(4), 0])
        }
        Op::Atomic { kind, address, .. } => {
            let n = u32::from(kind.bytes()) / 4;
            (n, [1 + u32::from(address.wide), n, n])
        }
        Op::Ret { .. } | Op::Brx { .. } | Op::Jmx { .. } => (0, [2, 0, 0]),
        _ => (1, [1; 3]),
    }
}

/// Decodes the word at `address`. What is not known becomes [`Op::Illegal`], a register outside `registers`
/// [`Op::Register`]: they fault when reached.
pub(super) fn decode(word: u128, address: u64, sm: u32, registers: u32) -> Micro {
    let mut micro = extract(word, address, sm, registers);
    let known = sass::Arch::from_sm(sm).is_some_and(|arch| sass::decode(word, address, arch).is_ok());
    // The instruction table has no row for this one yet; `extract` checks its form and operation.
    let without_row = matches!(micro.op, Op::AtomicPopcIncrement { .. });
    if !known && !without_row {
        // A modifier that no row explains would be skipped in silence otherwise.
        micro.op = Op::Illegal;
    }
    micro
}

/// The micro-operation of a word, looking only at the bits that it needs.
fn extract(word: u128, address: u64, sm: u32, registers: u32) -> Micro {
    let w = Word(word);
    let opcode = w.bits(0, 9);
    let form = w.bits(9, 3);
    let full = w.bits(0, 12);
    let uniform = matches!(
        opcode,
        0x082
            | 0x086
            | 0x087
            | 0x08c
            | 0x090
            | 0x091
            | 0x092
            | 0x096
            | 0x099
            | 0x09a
            | 0x09b
            | 0x09c
            | 0x0a4
            | 0x0a5
            | 0x0a7
            | 0x0b9
            | 0x0bd
            | 0x0be
            | 0x0bf
            | 0x1c3
    );
    let read = |low| if uniform { w.uniform(low) } else { w.register(low) };
    let source = |slot, negate, absolute| Source { slot, negate: w.flag(negate), absolute: w.flag(absolute) };
    let zero = Source { slot: Slot::Zero, negate: false, absolute: false };
    let at32 = source(read(32), 63, 62);
    let at64 = source(read(64), 75, 74);
    let immediate = Source { slot: Slot::Immediate(w.bits(32, 32)), negate: false, absolute: false };
    let bindless = matches!(form, 3 | 5) && w.flag(91);
    let constant = source(Slot::Constant { bank: w.bits(54, 5) as u8, offset: w.bits(38, 16) }, 63, 62);
    let from_uniform = source(w.uniform(32), 63, 62);
    let a = source(read(24), 72, 73);
    let (b, c) = match form {
        1 => (at32, at64),
        2 => (at64, immediate),
        3 => (at64, constant),
        4 => (immediate, at64),
        5 => (constant, at64),
        6 => (from_uniform, at64),
        7 => (at64, from_uniform),
        _ => (at32, at64),
    };
    let predicate = |low: u32| w.bits(low, 4) as u8;
    let mut m = Micro {
        op: Op::Illegal,
        guard: w.bits(12, 4) as u8,
        uniform,
        destination: w.bits(16, 8) as u8,
        a,
        b,
        c,
        to: [w.bits(81, 3) as u8, w.bits(84, 3) as u8],
        from: [predicate(87), predicate(77), predicate(68)],
        word,
    };
    if uniform {
        m.destination &= 63;
    }
    if bindless {
        return m;
    }
    let second = if matches!(form, 2 | 3 | 7) { c } else { b };
    let op = (|| -> Option<Op> {
        Some(match if uniform && opcode < 0x0c0 { opcode & !0x80 } else { opcode } {
            _ if full == 0x918 || full == 0x82d => Op::Nop,
            0x002 => Op::Mov,
            0x003 => Op::P2r { byte: w.bits(76, 2) as u8 },
            0x004 => Op::R2p { byte: w.bits(76, 2) as u8 },
            0x005 => Op::S2r { register: w.bits(72, 8) as u8, wide: w.flag(80) },
            0x006 => Op::Vote { mode: w.bits(72, 2) as u8 },
            0x007 => Op::Sel,
            0x008 => Op::Fsel { flushes: w.flag(80) },
            0x009 => Op::Fmnmx { flushes: w.flag(80), nan: w.flag(81) },
            0x00a if !w.flag(71) => Op::Fset {
                compare: FloatCompare::from_code(w.bits(76, 4)),
                boolean: w.boolean()?,
                flushes: w.flag(80),
            },
            0x033 | 0x034 if !(opcode == 0x034 && w.flag(71)) => {
                let compare = FloatCompare::from_code(w.bits(76, 4));
                let boolean =
                    [Boolean::And, Boolean::Or, Boolean::Xor].get(w.bits(69, 2) as usize).copied()?;
                // With an operand at 64, the place of BF16_V2 is taken.
                let format = if form == 1 && w.flag(65) { HalfFormat::Bf16 } else { HalfFormat::F16 };
                let mode = HalfMode { flushes: w.flag(80), ..HalfMode::plain(format) };
                let swizzle = [w.swizzle(74), if form == 1 { w.swizzle(60) } else { Swizzle::H1H0 }];
                if opcode == 0x034 {
                    Op::Hsetp2 { compare, boolean, mode, swizzle }
                } else {
                    Op::Hset2 { compare, boolean, mode, swizzle, float: w.flag(71) }
                }
            }
            0x00b => Op::Fsetp {
                compare: FloatCompare::from_code(w.bits(76, 4)),
                boolean: w.boolean()?,
                flushes: w.flag(80),
            },
            0x00c => Op::Isetp {
                compare: IntegerCompare::from_code(w.bits(76, 3)),
                boolean: w.boolean()?,
                sign: w.sign(73),
                extended: w.flag(72),
            },
            0x010 => Op::Iadd3 { extended: w.flag(74) },
            0x011 => Op::Lea {
                shift: w.bits(75, 5),
                high: w.flag(80),
                extended: w.flag(74),
                sign_extend: w.flag(73),
            },
            0x012 => Op::Lop3 { table: w.bits(72, 8) as u8, and: w.flag(80) },
            0x013 => Op::Iabs,
            0x016 => Op::Prmt {
                mode: *[
                    PermuteMode::Index,
                    PermuteMode::ForwardExtract,
                    PermuteMode::BackwardExtract,
                    PermuteMode::ReplicateByte,
                    PermuteMode::EdgeClampLeft,
                    PermuteMode::EdgeClampRight,
                    PermuteMode::ReplicateHalf,
                ]
                .get(w.bits(72, 3) as usize)?,
            },
            0x017 => Op::Imnmx { sign: w.sign(73) },
            0x019 => Op::Shf {
                kind: ShiftKind {
                    direction: if w.flag(76) { Direction::Right } else { Direction::Left },
                    wide: !w.flag(74),
                    sign: if w.flag(73) { Sign::Unsigned } else { Sign::Signed },
                    wrap: w.flag(75),
                    high: w.flag(80),
                },
            },
            0x01a => Op::Sgxt { sign: w.sign(73), wrap: w.flag(75) },
            0x01b => Op::Bmsk { wrap: w.flag(75) },
            0x01c => Op::Plop3 { tables: [(w.bits(64, 3) | w.bits(72, 5) << 3) as u8, w.bits(16, 8) as u8] },
            0x020 => Op::Fmul {
                mode: w.float_mode(Some(76)),
                scale: match w.bits(84, 3) as i32 {
                    0 => return None,
                    code => code - 4,
                },
            },
            0x021 => Op::Fadd { mode: w.float_mode(None) },
            0x023 => Op::Ffma { mode: w.float_mode(Some(76)) },
            0x024 => Op::Imad { extended: w.flag(74), negate_product: w.flag(72) },
            0x025 => Op::ImadWide { sign: w.sign(73), extended: w.flag(74), negate_product: w.flag(72) },
            0x026 if w.bits(75, 2) == 0 => Op::Idp4 { sign_a: w.sign(73), sign_b: w.sign(74) },
            0x027 if !w.flag(74) => Op::ImadHi { sign: w.sign(73) },
            0x028 => Op::Dmul { rounding: w.rounding() },
            0x029 => Op::Dadd { rounding: w.rounding() },
            // DSETP has MIN and MAX where FSETP has F and T.
            0x02a if matches!(w.bits(76, 4), 0 | 15) => {
                if w.bits(74, 2) != 0 {
                    return None;
                }
                Op::DoubleMinMax { minimum: !w.flag(76) }
            }
            0x02a => Op::Dsetp { compare: FloatCompare::from_code(w.bits(76, 4)), boolean: w.boolean()? },
            0x02b => Op::Dfma { rounding: w.rounding() },
            0x030 => Op::Hadd2 {
                mode: w.half_mode(None),
                swizzle: [w.swizzle(74), if form == 1 { w.swizzle(60) } else { Swizzle::H1H0 }],
                f32: w.flag(78),
            },
            0x032 => Op::Hmul2 {
                mode: w.half_mode(None),
                swizzle: [w.swizzle(74), if form == 1 { w.swizzle(60) } else { Swizzle::H1H0 }],
            },
            0x031 | 0x035 => Op::Hfma2 {
                mode: w.half_mode(Some(79)),
                swizzle: [
                    w.swizzle(74),
                    if form == 1 {
                        w.swizzle(60)
                    } else if matches!(form, 2 | 3) {
                        w.swizzle(81)
                    } else {
                        Swizzle::H1H0
                    },
                    if matches!(form, 2 | 3) { Swizzle::H1H0 } else { w.swizzle(81) },
                ],
            },
            0x03e if !uniform && w.bits(72, 4) == 0 && w.bits(77, 2) == 0 && w.bits(81, 10) == 0 => {
                Op::F2fp {
                    format: if w.flag(76) { HalfFormat::Bf16 } else { HalfFormat::F16 },
                    rounding: match w.bits(79, 2) {
                        0 => Rounding::Nearest,
                        3 => Rounding::Zero,
                        _ => return None,
                    },
                    relu: false,
                }
            }
            0x03d | 0x100 if uniform || opcode == 0x100 => Op::Flo { sign: w.sign(73), shift: w.flag(74) },
            0x036 if sm >= 90 => Op::Viadd,
            0x048 if sm >= 90 && w.bits(73, 14) >> 8 == 0x3f && w.bits(73, 8) == 0 => {
                Op::Imnmx { sign: w.sign(72) }
            }
            0x03e if uniform => Op::Brev,
            0x101 => Op::Brev,
            0x03f | 0x109 if uniform || opcode == 0x109 => Op::Popc,
            // Bits 81 and up but for the factors' format: sparse and other forms.
            0x03c if full == 0x23c && w.bits(84, 7) == 0 && !w.flag(81) => {
                let factor = *[Factor::F16, Factor::Bf16, Factor::Tf32].get(w.bits(82, 2) as usize)?;
                let k = match (w.flag(78), w.flag(75)) {
                    (false, false) => 8,
                    (false, true) if factor != Factor::Tf32 => 16,
                    (true, false) if factor == Factor::Tf32 => 4,
                    _ => return None,
                };
                let accumulator = if w.flag(76) { Accumulator::F32 } else { Accumulator::F16 };
                if accumulator == Accumulator::F16 && factor != Factor::F16 {
                    return None;
                }
                let generation = if sm >= 90 { Generation::HOPPER } else { Generation::AMPERE };
                Op::Hmma { factor, accumulator, k, generation }
            }
            0x045 => Op::I2f {
                from: IntegerType { width: Width::B32, sign: w.sign(74) },
                to: FloatFormat::F32,
                rounding: w.rounding(),
                byte: 0,
            },
            0x102 => Op::Fchk,
            0x104 | 0x110 => Op::F2f {
                from: w.float_format(84)?,
                to: if w.bits(75, 3) == 4 { FloatFormat::Bf16 } else { w.float_format(75)? },
                rounding: w.rounding(),
                flushes: w.flag(80),
            },
            0x105 | 0x111 => Op::F2i {
                from: w.float_format(84)?,
                to: w.integer(75, w.sign(72)),
                rounding: w.rounding(),
                flushes: w.flag(80),
            },
            0x106 | 0x112 => Op::I2f {
                from: w.integer(84, w.sign(74)),
                to: w.float_format(75)?,
                rounding: w.rounding(),
                byte: w.bits(60, 2) as u8 * u8::from(form == 1),
            },
            0x107 | 0x113 => {
                Op::Frnd { format: w.float_format(84)?, rounding: w.rounding(), flushes: w.flag(80) }
            }
            0x108 => Op::Mufu { function: Function::from_code(w.bits(74, 4))? },
            0x119 | 0x1c3 if full & 0xe00 == 0x800 => Op::S2r { register: w.bits(72, 8) as u8, wide: false },
            0x1c2 | 0x1ca if w.bits(72, 8) == 0 && m.to[0] == 7 => Op::R2ur,
            0x1c4 => Op::Redux {
                operation: *[
                    Reduction::And,
                    Reduction::Or,
                    Reduction::Xor,
                    Reduction::Sum,
                    Reduction::Min,
                    Reduction::Max,
                ]
                .get(w.bits(78, 3) as usize)?,
                sign: w.sign(73),
            },
            0x182 if full == 0xb82 && w.bits(78, 2) == 0 => {
                Op::Ldc { size: w.size()?, bank: w.bits(54, 5) as u8, offset: w.signed(38, 16) as i32 }
            }
            0x039 if full == 0xab9 => {
                Op::Ldc { size: w.size()?, bank: w.bits(54, 5) as u8, offset: w.bits(38, 16) as i32 }
            }
            0x189 => {
                m.a.negate = false;
                m.b = if matches!(form, 4 | 7) {
                    Source { slot: Slot::Immediate(w.bits(53, 5)), ..zero }
                } else {
                    Source { slot: w.register(32), ..zero }
                };
                m.c = if matches!(form, 2 | 7) {
                    Source { slot: Slot::Immediate(w.bits(40, 13)), ..zero }
                } else {
                    Source { slot: w.register(64), ..zero }
                };
                Op::Shfl {
                    mode: [Shuffle::Index, Shuffle::Up, Shuffle::Down, Shuffle::Butterfly]
                        [w.bits(58, 2) as usize],
                }
            }
            0x180 => Op::Load {
                space: Space::Generic,
                size: w.size()?,
                address: w.address(32, w.flag(72), false, true),
            },
            0x181 => Op::Load {
                space: Space::Global,
                size: w.size()?,
                address: w.address(32, w.flag(72), false, true),
            },
            0x184 => {
                Op::Load { space: Space::Shared, size: w.size()?, address: w.address(32, false, true, false) }
            }
            0x183 => {
                Op::Load { space: Space::Local, size: w.size()?, address: w.address(32, false, false, false) }
            }
            0x185 => Op::Store {
                space: Space::Generic,
                size: w.size()?,
                address: w.address(64, w.flag(72), false, true),
            },
            0x186 => Op::Store {
                space: Space::Global,
                size: w.size()?,
                address: w.address(64, w.flag(72), false, true),
            },
            0x188 => Op::Store {
                space: Space::Shared,
                size: w.size()?,
                address: w.address(64, false, true, false),
            },
            0x187 => Op::Store {
                space: Space::Local,
                size: w.size()?,
                address: w.address(64, false, false, false),
            },
            0x18e | 0x1a6 => {
                m.destination = 255;
                m.to[0] = 7;
                Op::Atomic {
                    space: Space::Global,
                    operation: w.atomic_operation(3)?,
                    kind: w.atomic_type(),
                    address: w.address(64, w.flag(72), false, true),
                }
            }
            0x1a8 | 0x18a => Op::Atomic {
                space: if opcode == 0x1a8 { Space::Global } else { Space::Generic },
                operation: w.atomic_operation(4)?,
                kind: w.atomic_type(),
                address: w.address(64, w.flag(72), false, true),
            },
            0x1a9 | 0x18b => Op::Atomic {
                space: if opcode == 0x1a9 { Space::Global } else { Space::Generic },
                operation: AtomicOperation::CompareExchange,
                kind: w.atomic_type(),
                address: w.address(64, w.flag(72), false, true),
            },
            0x18c if w.bits(87, 4) == if sm >= 90 { 11 } else { 10 } => {
                Op::AtomicPopcIncrement { address: w.address(64, false, true, false) }
            }
            0x18c => Op::Atomic {
                space: Space::Shared,
                operation: w.atomic_operation(4)?,
                kind: w.atomic_type(),
                address: w.address(64, false, true, false),
            },
            0x18d => Op::Atomic {
                space: Space::Shared,
                operation: AtomicOperation::CompareExchange,
                kind: w.atomic_type(),
                address: w.address(64, false, true, false),
            },
            0x192 | 0x1ab | 0x18f | 0x11a | 0x1af => Op::Fence,
            0x11d if full == 0xb1d => Op::Bar {
                form: match (w.bits(77, 3), w.bits(74, 2)) {
                    (0, _) => BarrierForm::Sync,
                    (1, _) => BarrierForm::Arrive,
                    (2, 0) => BarrierForm::ReducePopc,
                    (2, 1) => BarrierForm::ReduceAnd,
                    (2, 2) => BarrierForm::ReduceOr,
                    _ => return None,
                },
                index: w.bits(54, 4) as u8,
                threads: w.bits(42, 12) as u16,
            },
            0x11c if full == 0x31c => Op::B2r,
            0x147 if w.flag(91) => match w.bits(32, 2) {
                2 | 3 => {
                    m.a = Source { slot: w.uniform(24), ..zero };
                    Op::BraDiv {
                        target: w.target(address, sm),
                        invert: w.flag(30),
                        converged: w.bits(32, 2) == 3,
                    }
                }
                _ => return None,
            },
            0x147 | 0x14a if w.bits(32, 2) == 0 => {
                m.a = zero;
                let target = w.target(address, sm);
                Op::Bra { target: if opcode == 0x147 { target } else { target.wrapping_sub(address + 16) } }
            }
            0x149 => Op::Brx { base: w.target(address, sm) },
            0x14c => Op::Jmx { offset: w.target(address, sm).wrapping_sub(address + 16) },
            0x145 => Op::Bssy { barrier: w.bits(16, 4) as u8 },
            0x141 => Op::Bsync { barrier: w.bits(16, 4) as u8 },
            0x142 => Op::Break { barrier: w.bits(16, 4) as u8 },
            0x155 if full == 0x355 => Op::BmovFrom { barrier: w.bits(24, 4) as u8, clear: w.flag(84) },
            0x156 if full == 0x356 => Op::BmovTo { barrier: w.bits(24, 4) as u8 },
            0x148 => Op::Warpsync,
            0x146 | 0x15d => Op::Yield,
            0x144 if form == 4 => Op::Call { target: w.target(address, sm) },
            0x143 if form == 4 => Op::Call { target: w.target(address, sm).wrapping_sub(address + 16) },
            0x144 => Op::Brx { base: w.target(address, sm) },
            0x143 => Op::Jmx { offset: w.target(address, sm).wrapping_sub(address + 16) },
            0x150 => Op::Ret { base: w.target(address, sm) },
            0x14f => Op::Ret { base: 0 },
            0x14e => Op::Lepc,
            0x15c => Op::Trap,
            0x14d => Op::Exit,
            _ => return None,
        })
    })();
    let Some(op) = op else { return m };
    m.op = op;
    match op {
        // One 8-bit field at 32 holds the data, whatever the form says.
        Op::Store { .. } | Op::Atomic { .. } => {
            m.b = Source { slot: w.register(32), ..zero };
            m.c = Source { slot: w.register(64), ..zero };
            if !matches!(op, Op::Atomic { operation: AtomicOperation::CompareExchange, .. }) {
                m.c = zero;
            }
        }
        // ULDC takes no index.
        Op::Ldc { .. } if uniform => {
            m.a = zero;
            m.b = zero;
            m.c = zero;
        }
        Op::Load { .. } | Op::Ldc { .. } | Op::AtomicPopcIncrement { .. } => {
            m.b = zero;
            m.c = zero;
        }
        Op::Hsetp2 { .. } | Op::Hset2 { .. } => {
            m.b = second;
            m.c = zero;
            if matches!(op, Op::Hsetp2 { .. }) {
                m.destination = 255;
            }
        }
        Op::Fadd { .. } | Op::Hadd2 { .. } | Op::Hmul2 { .. } => {
            m.b = second;
            m.c = zero;
        }
        Op::Dadd { .. } => {
            m.b = if matches!(form, 4..=6) { b } else { c };
            m.c = zero;
        }
        // HFMA2 keeps the third operand's modifiers elsewhere.
        Op::Hfma2 { .. } if matches!(form, 1 | 4..=6) => {
            m.c.negate = w.flag(84);
            m.c.absolute = w.flag(83);
        }
        Op::Hfma2 { .. } => {
            m.b.negate = w.flag(84);
            m.b.absolute = w.flag(83);
        }
        Op::Isetp { .. } | Op::Fsetp { .. } | Op::Dsetp { .. } | Op::DoubleMinMax { .. } => {
            m.c = zero;
            m.destination = 255;
        }
        Op::Fmul { .. }
        | Op::Fset { .. }
        | Op::Dmul { .. }
        | Op::Sel
        | Op::Fsel { .. }
        | Op::Fmnmx { .. }
        | Op::Imnmx { .. } => m.c = zero,
        Op::Viadd | Op::Sgxt { .. } | Op::Bmsk { .. } | Op::P2r { .. } | Op::R2p { .. } | Op::F2fp { .. } => {
            m.c = zero;
        }
        Op::Fchk => {
            m.c = zero;
            m.destination = 255;
        }
        Op::Mov
        | Op::Iabs
        | Op::Popc
        | Op::Flo { .. }
        | Op::Brev
        | Op::Mufu { .. }
        | Op::F2f { .. }
        | Op::F2i { .. }
        | Op::I2f { .. }
        | Op::Frnd { .. } => {
            m.a = zero;
            m.c = zero;
        }
        Op::BmovTo { .. } => {
            m.a = zero;
            m.c = zero;
            m.destination = 255;
        }
        Op::Warpsync => {
            m.a = zero;
            m.c = zero;
            m.destination = 255;
        }
        Op::Redux { .. } | Op::R2ur | Op::Shfl { .. } => {
            if !matches!(op, Op::Shfl { .. }) {
                m.b = zero;
                m.c = zero;
            }
        }
        Op::Plop3 { .. } => {
            m.a = zero;
            m.b = zero;
            m.c = zero;
            m.destination = 255;
        }
        Op::Brx { .. } | Op::Jmx { .. } | Op::Ret { .. } => {
            m.b = zero;
            m.c = zero;
            m.destination = 255;
        }
        Op::S2r { .. } | Op::Vote { .. } | Op::BmovFrom { .. } | Op::B2r | Op::Lepc => {
            m.a = zero;
            m.b = zero;
            m.c = zero;
        }
        Op::Iadd3 { .. }
        | Op::Lea { .. }
        | Op::Lop3 { .. }
        | Op::Prmt { .. }
        | Op::Shf { .. }
        | Op::Ffma { .. } => {}
        Op::Hmma { .. }
        | Op::Imad { .. }
        | Op::ImadWide { .. }
        | Op::ImadHi { .. }
        | Op::Idp4 { .. }
        | Op::Dfma { .. } => {}
        _ => {
            if !matches!(op, Op::BraDiv { .. }) {
                m.a = zero;
            }
            m.b = zero;
            m.c = zero;
            m.destination = 255;
        }
    }
    let uniform_destination = uniform || matches!(op, Op::Redux { .. } | Op::R2ur);
    let (to, from) = spans(&op);
    let wide_uniform = uniform;
    let inside = |slot: Slot, count: u32| match slot {
        Slot::Register(index) => u32::from(index) + count.max(1) <= registers,
        Slot::Uniform(index) => !wide_uniform || u32::from(index) + count.max(1) <= 63,
        _ => true,
    };
    let destination = if uniform_destination {
        m.destination & 63 == 63 || u32::from(m.destination & 63) + to.max(1) <= 63
    } else {
        m.destination == 255 || u32::from(m.destination) + to.max(1) <= registers
    };
    if !destination || !inside(m.a.slot, from[0]) || !inside(m.b.slot, from[1]) || !inside(m.c.slot, from[2])
    {
        m.op = Op::Register;
    }
    m
}
