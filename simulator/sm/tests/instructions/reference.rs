//! What the instructions compute, from the text of their fields. Integers in 128 bits; floating point by the lane
//! functions, which have tests of their own against integer arithmetic and a card.

use sass::lane::convert::{self, FloatFormat, Fp8, Tf32Rounding};
use sass::lane::half::{self, HalfFormat, HalfMode, Swizzle};
use sass::lane::mufu::{self, Function};
use sass::lane::{
    Boolean, FloatCompare, FloatMode, IntegerType, Rounding, Sign, Subnormals, Width, double, float,
};
use sass::{FieldId as F, Half, Instruction, Marks, Op, Operand};

use super::lab::{BEFORE, CONSTANT, Input, Output};

/// The values of an instruction's operands for one thread.
#[derive(Clone)]
struct Operands {
    /// Sources in order, without their marks: low word first.
    raw: Vec<u64>,
    marks: Vec<Marks>,
    parts: Vec<Half>,
    immediate: Vec<bool>,
    /// Predicates that are read, in order.
    read: Vec<bool>,
    /// Predicates that are written, in order.
    written: usize,
}

/// `first` is what the first thread of the warp works on, and uniform registers and predicates with it.
fn operands(i: &Instruction, input: &Input, first: &Input, writes_register: bool) -> Operands {
    let all_uniform = super::lab::is_uniform(i.row);
    let mut o =
        Operands { raw: vec![], marks: vec![], parts: vec![], immediate: vec![], read: vec![], written: 0 };
    let mut seen_result = !writes_register;
    for operand in i.operands() {
        match *operand {
            Operand::Register { .. } if !seen_result => seen_result = true,
            Operand::Register { index, marks, half } => {
                let value = match index {
                    8 => input[0],
                    12 => input[1],
                    16 => input[2],
                    _ => 0,
                };
                o.raw.push(value);
                o.marks.push(marks);
                o.parts.push(half);
                o.immediate.push(false);
            }
            Operand::UniformRegister { .. } if all_uniform && !seen_result => seen_result = true,
            Operand::UniformRegister { index, marks, half } => {
                o.raw.push(match index {
                    8 => first[0],
                    10 => first[1],
                    12 => first[2],
                    _ => 0,
                });
                o.marks.push(marks);
                o.parts.push(half);
                o.immediate.push(false);
            }
            Operand::Constant { marks, half, .. } => {
                o.raw.push(CONSTANT.1);
                o.marks.push(marks);
                o.parts.push(half);
                o.immediate.push(false);
            }
            Operand::Immediate { bits, .. } => {
                o.raw.push(bits);
                o.marks.push(Marks::default());
                o.parts.push(Half::Both);
                o.immediate.push(true);
            }
            Operand::Predicate { index, negated, uniform } => {
                let bits = if uniform { first[3] } else { input[3] };
                let value = match index {
                    0 => bits & 1 != 0,
                    1 => bits & 2 != 0,
                    2 | 3 => {
                        o.written += 1;
                        continue;
                    }
                    _ => true,
                };
                o.read.push(value != negated);
            }
            _ => {}
        }
    }
    o
}

impl Operands {
    fn word(&self, n: usize) -> u32 {
        self.raw[n] as u32
    }

    /// A 32-bit integer with its marks.
    fn int(&self, n: usize) -> u32 {
        let (word, marks) = (self.word(n), self.marks[n]);
        let word = if marks.absolute { (word as i32).wrapping_abs() as u32 } else { word };
        if marks.negate {
            word.wrapping_neg()
        } else if marks.invert {
            !word
        } else {
            word
        }
    }

    /// FP32 bits with their marks.
    fn f32(&self, n: usize) -> u32 {
        signs(self.raw[n], 31, self.marks[n]) as u32
    }

    /// FP64 bits with their marks, which leave NaNs alone. Immediates are high words.
    fn f64(&self, n: usize) -> u64 {
        let bits = if self.immediate[n] { self.raw[n] << 32 } else { self.raw[n] };
        if f64::from_bits(bits).is_nan() { bits } else { signs(bits, 63, self.marks[n]) }
    }

    /// The part of a register that a conversion reads.
    fn part(&self, n: usize) -> u64 {
        let shift = match self.parts[n] {
            Half::Upper | Half::Byte2 => 16,
            Half::Byte1 => 8,
            Half::Byte3 => 24,
            _ => 0,
        };
        u64::from(self.word(n) >> shift)
    }

    fn halves(&self, n: usize, format: HalfFormat) -> (u16, u16) {
        let swizzle = match self.parts[n] {
            Half::F32 => Swizzle::F32,
            Half::Low => Swizzle::H0H0,
            Half::High => Swizzle::H1H1,
            _ => Swizzle::H1H0,
        };
        let (absolute, negate) = (self.marks[n].absolute, self.marks[n].negate);
        let (low, high) = swizzle.apply(self.word(n), format);
        // Measured on H200: the halves change places before the marks count.
        let crossed = self.parts[n] == Half::LowNegatedHigh;
        half::modify(if crossed { (high ^ 0x8000, low) } else { (low, high) }, absolute, negate)
    }
}

fn signs(bits: u64, top: u32, marks: Marks) -> u64 {
    let bits = if marks.absolute { bits & !(1 << top) } else { bits };
    if marks.negate { bits ^ 1 << top } else { bits }
}

fn rounding(i: &Instruction) -> Rounding {
    match i.spelling(F::Rounding).unwrap_or("") {
        ".RM" | ".FLOOR" => Rounding::Down,
        ".RP" | ".CEIL" => Rounding::Up,
        ".RZ" | ".TRUNC" => Rounding::Zero,
        _ => Rounding::Nearest,
    }
}

fn flag(i: &Instruction, id: F) -> bool {
    !i.spelling(id).unwrap_or("").is_empty()
}

fn signed(i: &Instruction, id: F) -> Sign {
    let spelling = i.spelling(id).unwrap_or("");
    if spelling.starts_with(".U") { Sign::Unsigned } else { Sign::Signed }
}

fn boolean(i: &Instruction) -> Boolean {
    match i.spelling(F::Boolean) {
        Some(".OR") => Boolean::Or,
        Some(".XOR") => Boolean::Xor,
        _ => Boolean::And,
    }
}

fn float_mode(i: &Instruction) -> FloatMode {
    let subnormals = match i.spelling(F::Ftz).unwrap_or("") {
        ".FTZ" => Subnormals::Flush,
        ".FMZ" => Subnormals::FlushMultiplyZero,
        _ => Subnormals::Keep,
    };
    FloatMode { rounding: rounding(i), subnormals, saturate: flag(i, F::Saturate) }
}

fn half_mode(i: &Instruction) -> HalfMode {
    let format = if flag(i, F::BFloat16) { HalfFormat::Bf16 } else { HalfFormat::F16 };
    let flushes = matches!(i.spelling(F::Ftz), Some(".FTZ" | ".FMZ"));
    HalfMode { format, flushes, saturate: flag(i, F::Saturate), relu: flag(i, F::Relu) }
}

/// A product, or a sum with one, whose factors decide it alone: with `.FMZ` and a factor that is zero or subnormal, or with
/// `.OOB` and the NaN that stands for what is out of bounds.
fn special(i: &Instruction, mode: HalfMode, a: u16, b: u16, addend: Option<u16>) -> Option<u16> {
    let exponent = if mode.format == HalfFormat::Bf16 { 0x7f80 } else { 0x7c00 };
    match i.spelling(F::Ftz)? {
        ".FMZ" if a & exponent == 0 || b & exponent == 0 => {
            Some(addend.map_or(0, |addend| half::hadd(0, addend, mode)))
        }
        ".OOB" if a & 0x7fff == 0x7ff7 || b & 0x7fff == 0x7ff7 => Some(0),
        _ => None,
    }
}

/// Relation of two numbers by a comparison's name.
fn relation(name: &str, less: bool, equal: bool, greater: bool) -> bool {
    match name {
        ".LT" => less,
        ".EQ" => equal,
        ".LE" => less || equal,
        ".GT" => greater,
        ".NE" => !equal,
        ".GE" => greater || equal,
        ".T" => true,
        _ => false,
    }
}

fn number(x: u32, sign: Sign) -> i128 {
    if sign == Sign::Signed { i128::from(x as i32) } else { i128::from(x) }
}

/// A number of `bits` bits.
fn lane_of(x: u32, bits: u32, sign: Sign) -> i128 {
    let low = i128::from(x) & ((1 << bits) - 1);
    if sign == Sign::Signed && low >> (bits - 1) != 0 { low - (1 << bits) } else { low }
}

/// A result of one number of 32 bits, or with `.16x2` of two: `f` gets what takes its number out of a register.
fn by_lanes(i: &Instruction, f: impl Fn(&dyn Fn(u32) -> i128, u32) -> u32) -> u32 {
    let sign = signed(i, F::Signed);
    if i.spelling(F::Signed).unwrap_or("").ends_with("x2") {
        let half = |shift: u32| f(&|x| lane_of(x >> shift, 16, sign), 16) & 0xffff;
        half(0) | half(16) << 16
    } else {
        f(&|x| number(x, sign), 32)
    }
}

/// The smallest or largest number; with `.RELU` 0 where its highest bit is set.
fn extreme(i: &Instruction, numbers: impl Iterator<Item = i128>, bits: u32, least: bool) -> u32 {
    let found = if least { numbers.min() } else { numbers.max() }.unwrap_or(0);
    if flag(i, F::Relu) && found >> (bits - 1) & 1 != 0 { 0 } else { found as u32 }
}

fn float_format(name: &str) -> FloatFormat {
    match name {
        ".F16" => FloatFormat::F16,
        ".BF16" => FloatFormat::Bf16,
        ".F64" => FloatFormat::F64,
        _ => FloatFormat::F32,
    }
}

fn integer_type(name: &str) -> IntegerType {
    let sign = if name.starts_with(".U") { Sign::Unsigned } else { Sign::Signed };
    let width = match name.trim_start_matches(['.', 'U', 'S']) {
        "8" => Width::B8,
        "16" => Width::B16,
        "64" => Width::B64,
        _ => Width::B32,
    };
    IntegerType { width, sign }
}

/// The sum of 64 bits of IMAD.WIDE and IMAD.HI, and whether it carries. A negated addend is its complement and one.
fn wide_sum(i: &Instruction, o: &Operands) -> (u64, bool) {
    let sign = signed(i, F::Signed);
    let product = (number(o.word(0), sign) * number(o.word(1), sign)) as u64;
    let addend = match (o.immediate[2], sign) {
        (true, Sign::Signed) => o.word(2) as i32 as i64 as u64,
        (true, _) => o.word(2).into(),
        _ => o.raw[2],
    };
    let flipped = o.marks[2].negate || o.marks[2].invert;
    let addend = if flipped { !addend } else { addend };
    let carry = if flag(i, F::Extended) { o.read[0] } else { o.marks[2].negate };
    let total = u128::from(product) + u128::from(addend) + u128::from(carry);
    (total as u64, total >> 64 != 0)
}

/// LEA: a part of the first source shifted, and the second one. A negated one is its complement and one.
fn lea(i: &Instruction, o: &Operands) -> Option<(u32, bool)> {
    let Operand::Immediate { bits: shift, .. } = i.operands()[5] else { return None };
    // The registers are the sources but for the immediates; the shift is the last of those.
    let upper = if flag(i, F::SignExtend32) { (o.word(0) as i32 >> 31) as u32 } else { o.word(2) };
    let shifted = if flag(i, F::High) {
        ((u128::from(upper) << 32 | u128::from(o.word(0))) << shift >> 32) as u32
    } else {
        o.word(0) << shift
    };
    let flip = |word: u32, marks: Marks| if marks.negate || marks.invert { !word } else { word };
    let (a, b) = (flip(shifted, o.marks[0]), flip(o.word(1), o.marks[1]));
    let carry = if flag(i, F::Extended) { o.read[0] } else { o.marks[0].negate || o.marks[1].negate };
    let total = u64::from(a) + u64::from(b) + u64::from(carry);
    Some((total as u32, total >> 32 != 0))
}

/// The vector instruction that computes the same as a uniform one.
fn vector_of(op: Op) -> Op {
    match op {
        Op::Uiadd3 => Op::Iadd3,
        Op::Uimad => Op::Imad,
        Op::UimadWide => Op::ImadWide,
        Op::Uisetp => Op::Isetp,
        Op::Ulop3 => Op::Lop3,
        Op::Ushf => Op::Shf,
        Op::Uprmt => Op::Prmt,
        Op::Ulea => Op::Lea,
        Op::Usel => Op::Sel,
        Op::Umov => Op::Mov,
        Op::Uflo => Op::Flo,
        Op::Upopc => Op::Popc,
        Op::Ubrev => Op::Brev,
        other => other,
    }
}

/// What the instruction should leave in a thread whose warp's first thread has the second input; `None` where there is no
/// reference.
pub fn expected(i: &Instruction, input: &Input, first: &Input, writes_register: bool) -> Option<Output> {
    let input = if super::lab::is_uniform(i.row) { first } else { input };
    let o = operands(i, input, first, writes_register);
    let text = |id: F| i.spelling(id).unwrap_or("");
    let word = |value: u32| Some((u64::from(value) | BEFORE & !0xffff_ffff, [false; 2]));
    let pair = |value: u64| Some((value, [false; 2]));
    let set = |comparison: bool, predicate: bool| {
        let both = boolean(i).both(comparison, predicate);
        Some((BEFORE, [both.0, both.1]))
    };
    let (value, predicates) = match vector_of(i.op) {
        Op::ImadWide => {
            let (sum, carries) = wide_sum(i, &o);
            Some((sum, [carries, false]))
        }
        Op::ImadHi => {
            let (sum, carries) = wide_sum(i, &o);
            Some((sum >> 32 | BEFORE & !0xffff_ffff, [carries, false]))
        }
        Op::Lea => {
            let (sum, carries) = lea(i, &o)?;
            Some((u64::from(sum) | BEFORE & !0xffff_ffff, [carries, false]))
        }
        Op::P2r => {
            // The third and fourth predicate were made false, and nothing sets those behind them.
            let (held, chosen) = (input[3] as u32 & 3, o.word(1) & 0xff);
            let by = 8 * i.field(F::PredicateByte)?;
            word(o.word(0) & !(chosen << by) | (held & chosen) << by)
        }
        Op::R2p => {
            let by = 8 * i.field(F::PredicateByte)?;
            let bit = |n: u32| o.word(1) >> n & o.word(0) >> (n + by) & 1 != 0;
            return Some(Output { value: BEFORE, predicates: [bit(2), bit(3)] });
        }
        Op::Fchk => {
            let slow = float::fchk(o.f32(0), o.f32(1));
            Some((BEFORE, [slow, false]))
        }
        Op::Iadd3 => {
            let values: Vec<u32> = (0..3).map(|n| o.int(n)).collect();
            let extended = flag(i, F::Extended);
            // A negated operand carries as its complement and one.
            let parts: u64 = (0..3)
                .map(|n| if o.marks[n].negate { u64::from(!o.word(n)) + 1 } else { u64::from(values[n]) })
                .sum();
            let carry = if extended { u64::from(o.read[0]) + u64::from(o.read[1]) } else { 0 };
            let total = parts + carry;
            Some((total & 0xffff_ffff | BEFORE & !0xffff_ffff, [total >> 32 >= 1, total >> 32 >= 2]))
        }
        Op::Imad => {
            let carry = flag(i, F::Extended) && o.read[0];
            word(o.word(0).wrapping_mul(o.word(1)).wrapping_add(o.int(2)).wrapping_add(carry.into()))
        }
        Op::Isetp => {
            let sign = signed(i, F::Signed);
            let (a, b) = (number(o.word(0), sign), number(o.word(1), sign));
            let name = text(F::Compare);
            let plain = relation(name, a < b, a == b, a > b);
            let low = o.read.get(1).copied().unwrap_or(true);
            let extended = flag(i, F::Extended) && a == b && !matches!(name, ".F" | ".T");
            set(if extended { low } else { plain }, o.read[0])
        }
        Op::Imnmx | Op::Vimnmx | Op::Vimnmx3 => {
            let count = if i.op == Op::Vimnmx3 { 3 } else { 2 };
            let value =
                by_lanes(i, |lane, bits| extreme(i, (0..count).map(|n| lane(o.word(n))), bits, o.read[0]));
            // Whether the first number is the result, in the low half and in the high one.
            let which = by_lanes(i, |lane, _| {
                let (a, b) = (lane(o.word(0)), lane(o.word(1)));
                let first = if o.read[0] { a <= b } else { a >= b };
                // With .RELU zero takes part, and may be the first number too.
                u32::from(if flag(i, F::Relu) { first && a >= 0 || a == 0 && b <= 0 } else { first })
            });
            let packed = i.spelling(F::Signed).unwrap_or("").ends_with("x2");
            let high = if packed { which >> 16 } else { which };
            word(value).map(|(value, _)| (value, [which & 1 != 0, high & 1 != 0]))
        }
        Op::Viadd if flag(i, F::Packed) => {
            let half = |shift: u32| {
                let (a, b) = ((o.word(0) >> shift) as i16, (o.word(1) >> shift) as i16);
                let sum = if o.marks[1].negate { a.wrapping_sub(b) } else { a.wrapping_add(b) };
                u32::from(sum as u16) << shift
            };
            word(half(0) | half(16))
        }
        Op::Viadd => word(o.word(0).wrapping_add(o.int(1))),
        Op::Viaddmnmx => word(by_lanes(i, |lane, bits| {
            let b = lane(o.word(1));
            let sum = lane(o.word(0)) + if o.marks[1].negate { -b } else { b };
            // The sum wraps before it is compared.
            let sum = lane_of(sum as u32, bits, signed(i, F::Signed));
            extreme(i, [sum, lane(o.word(2))].into_iter(), bits, o.read[0])
        })),
        Op::Iabs => word((o.word(0) as i32).unsigned_abs()),
        Op::Brev => word((0..32).fold(0, |r, bit| r | (o.word(0) >> bit & 1) << (31 - bit))),
        Op::Popc => word((0..32).map(|bit| o.int(0) >> bit & 1).sum()),
        Op::Flo => {
            let x = o.int(0);
            let x = if signed(i, F::Signed) == Sign::Signed && x >> 31 != 0 { !x } else { x };
            let at = (0..32).rev().find(|bit| x >> bit & 1 != 0);
            let shifted = flag(i, F::ShiftResult);
            let value = at.map_or(u32::MAX, |at| if shifted { 31 - at } else { at });
            word(value).map(|(value, _)| (value, [at.is_some(), false]))
        }
        Op::Lop3 => {
            let table = o.raw[3];
            let (a, b, c) = (o.word(0), o.word(1), o.word(2));
            let value = (0..32).fold(0, |value, bit| {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
                value | ((table >> index & 1) as u32) << bit
            });
            // The predicate operand is joined by OR.
            word(value).map(|(v, _)| (v, [value != 0 || o.read.first().is_some_and(|p| *p), false]))
        }
        Op::Shf => {
            let (low, count, high) = (o.word(0), o.word(1), o.word(2));
            let name = text(F::ShiftType);
            let limit = if name.ends_with("64") { 64 } else { 32 };
            let count = if flag(i, F::Wrap) { count % limit } else { count.min(limit) };
            let wide = i128::from(high as i32) << 32 | i128::from(low);
            let wide = if name.starts_with(".U") { wide & 0xffff_ffff_ffff_ffff } else { wide };
            let shifted = if text(F::Direction) == ".L" { wide << count } else { wide >> count };
            word(if flag(i, F::High) { shifted >> 32 } else { shifted } as u32)
        }
        Op::Prmt => {
            let (a, selector, b) = (o.word(0), o.word(1), o.word(2));
            let byte = |n: u32| if n < 4 { a >> (8 * n) & 0xff } else { b >> (8 * (n - 4)) & 0xff };
            let low = selector & 3;
            let value = (0..4).fold(0, |value, n| {
                let byte = match text(F::Mode) {
                    ".F4E" => byte(low + n),
                    ".B4E" => byte((8 + low - n) % 8),
                    ".RC8" => byte(low),
                    ".ECL" => byte(low.max(n)),
                    ".ECR" => byte(low.min(n)),
                    ".RC16" => byte((low & 1) * 2 + n % 2),
                    _ => {
                        let pick = selector >> (4 * n) & 15;
                        let byte = byte(pick & 7);
                        if pick < 8 {
                            byte
                        } else if byte & 0x80 != 0 {
                            0xff
                        } else {
                            0
                        }
                    }
                };
                value | byte << (8 * n)
            });
            word(value)
        }
        Op::Bmsk => {
            let (start, width) = (o.word(0), o.word(1));
            let (start, width) = if flag(i, F::Wrap) { (start % 32, width % 32) } else { (start, width) };
            word((0..32).fold(0, |mask, bit| {
                let inside = bit >= start && u64::from(bit) < u64::from(start) + u64::from(width);
                mask | u32::from(inside) << bit
            }))
        }
        Op::Sgxt => {
            let count = if flag(i, F::Wrap) { o.word(1) % 32 } else { o.word(1).min(32) };
            let low = u64::from(o.word(0)) & ((1 << count) - 1);
            let negative = signed(i, F::Signed) == Sign::Signed && count > 0 && low >> (count - 1) & 1 != 0;
            word(if negative { low.wrapping_sub(1 << count) } else { low } as u32)
        }
        Op::Idp => {
            let field = |x: u32, bits: u32, n: u32, sign: &str| {
                let field = i64::from(x >> (bits * n)) & ((1 << bits) - 1);
                let negative = sign.starts_with(".S") && field >> (bits - 1) & 1 != 0;
                if negative { field - (1 << bits) } else { field }
            };
            let (sa, sb) = (text(F::Signed), text(F::SourceSigned));
            let (a, b) = (o.word(0), o.word(1));
            let sum: i64 = match text(F::Mode) {
                ".4A" => (0..4).map(|n| field(a, 8, n, sa) * field(b, 8, n, sb)).sum(),
                mode => {
                    let first = if mode == ".2A.HI" { 2 } else { 0 };
                    (0..2).map(|n| field(a, 16, n, sa) * field(b, 8, first + n, sb)).sum()
                }
            };
            word(o.int(2).wrapping_add(sum as u32))
        }
        Op::Vabsdiff => {
            let sign = signed(i, F::Signed);
            let difference = number(o.word(0), sign) - number(o.word(1), sign);
            word((difference.unsigned_abs() as u32).wrapping_add(o.word(2)))
        }
        Op::Vabsdiff4 => {
            let byte = |x: u32, n: u32| {
                let byte = (x >> (8 * n)) as u8;
                if text(F::Signed) == ".U8" { i32::from(byte) } else { i32::from(byte as i8) }
            };
            let each = (0..4).map(|n| (byte(o.word(0), n) - byte(o.word(1), n)).unsigned_abs());
            word(if flag(i, F::Accumulate) {
                o.word(2).wrapping_add(each.sum())
            } else {
                each.enumerate().fold(0, |value, (n, x)| value | x << (8 * n))
            })
        }
        Op::I2i => {
            let x = i64::from(o.word(0) as i32);
            word(match text(F::DestinationType) {
                ".U8" => x.clamp(0, 0xff),
                ".S8" => x.clamp(-0x80, 0x7f),
                ".U16" => x.clamp(0, 0xffff),
                _ => x.clamp(-0x8000, 0x7fff),
            } as u32)
        }
        Op::I2ip => {
            let name = text(F::DestinationType);
            let bits: u32 = name[2..].parse().ok()?;
            let (least, most) = if name.starts_with(".S") {
                (-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1)
            } else {
                (0, (1 << bits) - 1)
            };
            let packed =
                |n: usize| (i64::from(o.word(n) as i32).clamp(least, most) & ((1 << bits) - 1)) as u64;
            // Of the third source comes what fits above the two.
            word((o.part(2) << (2 * bits) | packed(0) << bits | packed(1)) as u32)
        }
        Op::Fswzadd => {
            let Operand::Word(signs) = i.operands()[3] else { return None };
            let (a, b) = (o.word(0), o.word(1));
            let minus = |x: u32| x ^ 1 << 31;
            // The lowest bits of the thread's number are its place in the quad.
            let (a, b) = match signs >> (2 * input[3]) & 3 {
                0 => (a, b),
                1 => (a, minus(b)),
                2 => (minus(a), b),
                _ => (0, b),
            };
            word(float::fadd(a, b, float_mode(i)))
        }
        Op::Plop3 => {
            let mut registers = (0..).map(|n| o.word(n) >> 31 != 0);
            let mut predicates = o.read.iter().copied();
            let sources = i.operands()[2..5].iter().map(|operand| match operand {
                Operand::Predicate { .. } => predicates.next(),
                _ => registers.next(),
            });
            let index = sources.flatten().fold(0, |index, bit| index << 1 | u32::from(bit));
            let tables = [o.raw.len() - 2, o.raw.len() - 1].map(|n| o.word(n));
            Some((BEFORE, tables.map(|table| table >> index & 1 != 0)))
        }
        Op::Sel => word(if o.read[0] { o.word(0) } else { o.word(1) }),
        Op::Mov => {
            // The lowest bits of the thread's number are its place in the quad.
            let written = i.op == Op::Umov || o.raw[1] >> input[3] & 1 != 0;
            if written { word(o.word(0)) } else { Some((BEFORE, [false; 2])) }
        }
        Op::Fadd => word(float::fadd(o.f32(0), o.f32(1), float_mode(i))),
        Op::Fmul => {
            let scale = match text(F::Scale) {
                ".D8" => -3,
                ".D4" => -2,
                ".D2" => -1,
                ".M2" => 1,
                ".M4" => 2,
                ".M8" => 3,
                _ => 0,
            };
            word(float::fmul_scaled(o.f32(0), o.f32(1), scale, float_mode(i)))
        }
        Op::Ffma => word(float::ffma(o.f32(0), o.f32(1), o.f32(2), float_mode(i))),
        Op::Fmnmx => {
            let (a, b, nan) = (o.f32(0), o.f32(1), flag(i, F::Nan));
            let result = float::fmnmx(a, b, o.read[0], flag(i, F::Ftz), nan);
            let signs = (o.word(0) ^ o.word(1)) & 1 << 31;
            word(if flag(i, F::XorSign) && !f32::from_bits(result).is_nan() {
                result & !(1 << 31) | signs
            } else {
                result
            })
        }
        Op::Fsel => word(float::fsel(o.f32(0), o.f32(1), o.read[0], flag(i, F::Ftz))),
        Op::Fsetp | Op::Fset => {
            let compare = FloatCompare::from_code(i.field(F::Compare)?);
            let truth = float::compare(o.f32(0), o.f32(1), compare, flag(i, F::Ftz));
            if i.op == Op::Fsetp {
                set(truth, o.read[0])
            } else {
                word(float::fset(boolean(i).apply(truth, o.read[0]), flag(i, F::BFloat)))
            }
        }
        Op::Dadd => pair(double::dadd(o.f64(0), o.f64(1), rounding(i))),
        Op::Dmul => pair(double::dmul(o.f64(0), o.f64(1), rounding(i))),
        Op::Dfma => pair(double::dfma(o.f64(0), o.f64(1), o.f64(2), rounding(i))),
        Op::Dsetp if matches!(text(F::Compare), ".MIN" | ".MAX") => {
            // Which one to keep, joined with the source, and whether both are NaN, alone.
            let (keep, both) = double::min_max(o.f64(0), o.f64(1), text(F::Compare) == ".MIN");
            Some((BEFORE, [boolean(i).apply(keep, o.read[0]), both]))
        }
        Op::Dsetp => {
            let compare = FloatCompare::from_code(i.field(F::Compare)?);
            set(double::compare(o.f64(0), o.f64(1), compare), o.read[0])
        }
        Op::Hadd2 | Op::Hmul2 | Op::Hfma2 | Op::Hfma2Mma | Op::Hmnmx2 | Op::Hset2 | Op::Hsetp2 => {
            let mode = half_mode(i);
            let h = |n: usize| o.halves(n, mode.format);
            let compare = FloatCompare::from_code(i.field(F::Compare).unwrap_or(0));
            // A predicate behind a product's sources says where .RELU applies (measured on H200).
            let fused = HalfMode { relu: mode.relu && o.read.first().copied().unwrap_or(true), ..mode };
            match i.op {
                Op::Hadd2 if flag(i, F::Float32) => word(half::hadd_f32(h(0).0, h(1).0, mode.format)),
                Op::Hadd2 => word(half::hadd2(h(0), h(1), mode)),
                Op::Hmul2 => {
                    let ((a, x), (b, y)) = (h(0), h(1));
                    let of = |a, b| special(i, mode, a, b, None).unwrap_or_else(|| half::hmul(a, b, mode));
                    word(half::pack(of(a, b), of(x, y)))
                }
                Op::Hmnmx2 => {
                    let result = half::hmnmx2(h(0), h(1), o.read[0], flag(i, F::Nan), mode);
                    let raw = |n: usize| {
                        let plain = Operands { marks: vec![Marks::default(); o.marks.len()], ..o.clone() };
                        plain.halves(n, mode.format)
                    };
                    let (a, b) = (raw(0), raw(1));
                    let signed = |half: u16, sign: u16| match mode.format {
                        HalfFormat::F16 if half & 0x7fff > 0x7c00 => half,
                        HalfFormat::Bf16 if half & 0x7fff > 0x7f80 => half,
                        _ => half & 0x7fff | sign & 0x8000,
                    };
                    word(if flag(i, F::XorSign) {
                        half::pack(signed(result as u16, a.0 ^ b.0), signed((result >> 16) as u16, a.1 ^ b.1))
                    } else {
                        result
                    })
                }
                Op::Hset2 => {
                    let (joined, one) = (boolean(i), flag(i, F::BFloat));
                    word(half::hset2(h(0), h(1), compare, mode, one, joined, o.read[0]))
                }
                Op::Hsetp2 => {
                    let both = flag(i, F::HalvesAnd);
                    let (x, y) = half::hsetp2(h(0), h(1), compare, mode, both, boolean(i), o.read[0]);
                    Some((BEFORE, [x, y]))
                }
                _ => {
                    let ((a, x), (b, y), (c, z)) = (h(0), h(1), h(2));
                    let of = |a, b, c| {
                        special(i, fused, a, b, Some(c)).unwrap_or_else(|| half::hfma(a, b, c, fused))
                    };
                    word(half::pack(of(a, b, c), of(x, y, z)))
                }
            }
        }
        Op::F2i | Op::F2f | Op::Frnd => {
            let same = i.op == Op::Frnd;
            let from = float_format(text(if same { F::DestinationType } else { F::SourceType }));
            let bits = match from {
                FloatFormat::F64 => o.f64(0),
                // Widened, a NaN keeps its sign.
                FloatFormat::F32
                    if text(F::DestinationType) == ".F64" && f32::from_bits(o.word(0)).is_nan() =>
                {
                    u64::from(o.word(0))
                }
                FloatFormat::F32 => u64::from(o.f32(0)),
                _ => signs(o.part(0) & 0xffff, 15, o.marks[0]),
            };
            let flushes = flag(i, F::Ftz);
            let (result, wide) = match i.op {
                Op::F2i => {
                    let to = integer_type(text(F::DestinationType));
                    let result = convert::f2i_nan(bits, from, to, rounding(i), flushes, flag(i, F::Ntz));
                    (result, to.width == Width::B64)
                }
                Op::F2f => {
                    let to = float_format(text(F::DestinationType));
                    (convert::f2f(bits, from, to, rounding(i), flushes), to == FloatFormat::F64)
                }
                _ => (convert::frnd(bits, from, rounding(i), flushes), from == FloatFormat::F64),
            };
            if wide { pair(result) } else { word(result as u32) }
        }
        Op::I2f | Op::I2fp => {
            let from = integer_type(text(F::SourceType));
            let to = float_format(text(F::DestinationType));
            let bits = match from.width {
                Width::B64 if o.immediate[0] && from.sign == Sign::Signed => o.word(0) as i32 as i64 as u64,
                Width::B64 => o.raw[0],
                _ => o.part(0),
            };
            let result = convert::i2f(bits, from, to, rounding(i));
            if to == FloatFormat::F64 { pair(result) } else { word(result as u32) }
        }
        Op::F2fp => {
            let (relu, rounding) = (flag(i, F::Relu), rounding(i));
            let half = match text(F::DestinationType) {
                "" | ".F16" => HalfFormat::F16,
                _ => HalfFormat::Bf16,
            };
            let fp8 = |name: &str| if name == ".E4M3" { Fp8::E4M3 } else { Fp8::E5M2 };
            let to = fp8(text(F::DestinationType));
            match text(F::Mode) {
                ".PACK_AB" => word(convert::f2fp_pack(o.word(0), o.word(1), half, rounding, relu)),
                ".PACK_B" => {
                    let cut = rounding == Rounding::Zero;
                    let rounding = if cut { Tf32Rounding::Zero } else { Tf32Rounding::Nearest };
                    word(convert::f2fp_tf32(o.word(1), rounding, relu))
                }
                ".PACK_AB_MERGE_C" => {
                    word(convert::f2fp_pack_fp8(o.word(0), o.word(1), o.part(2) as u32, to, relu))
                }
                ".UNPACK_B_MERGE_C" => {
                    word(convert::f2fp_pack_fp8_from_f16(o.word(1), o.part(2) as u32, to, relu))
                }
                ".UNPACK_B" => {
                    let high = o.parts[1] == Half::Upper;
                    let pair = convert::f2fp_unpack_fp8(o.word(1), fp8(text(F::SourceType)), high);
                    word(if relu { convert::relu_pair(pair) } else { pair })
                }
                _ => None,
            }
        }
        Op::Mufu => {
            let function = Function::from_code(i.field(F::Function)?)?;
            match text(F::Float32) {
                "" => word(mufu::mufu(function, o.f32(0))),
                name => {
                    let format = if name == ".F16" { HalfFormat::F16 } else { HalfFormat::Bf16 };
                    let half = signs(o.part(0) & 0xffff, 15, o.marks[0]);
                    word(mufu::mufu_half(function, half as u16, format))
                }
            }
        }
        _ => None,
    }?;
    // Predicates that the form does not write stay false.
    let predicates = [predicates[0] && o.written > 0, predicates[1] && o.written > 1];
    Some(Output { value, predicates })
}
