//! What micro-operations become: the same as their handlers in [`super::super::execute`] compute, in instructions of AVX2
//! for eight lanes. A test runs everything that is here beside the handlers.

use sass::lane::float;
use sass::lane::integer::Direction;
use sass::lane::{FloatMode, Rounding, Sign, Subnormals};

use super::super::execute::float::marks;
use super::super::execute::integer::shift_kind;
use super::super::micro::{Micro, PredicateOut, RowIndex};
use super::assembler::{Operand, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_SIGNED, Vector, Ymm};
use super::builder::{Builder, Emitted, Full, Number, Truth, UNORDERED};

const fn flag(op: &Micro, position: u32) -> bool {
    op.extra >> position & 1 != 0
}

/// `vector(a, b)` where the order of both does not matter.
fn either(b: &mut Builder<'_>, vector: Vector, x: RowIndex, y: RowIndex) -> Result<Ymm, Full> {
    // The one that is in no register, or in the pool, is read from memory.
    let (x, y) = if b.is_near(y) && !b.is_near(x) { (y, x) } else { (x, y) };
    let (x, y) = if x.is_pool() { (y, x) } else { (x, y) };
    let x = b.bits(x)?;
    let y = b.bits_operand(y)?;
    b.make(vector, x, y)
}

/// `vector(a, b)` in this order.
fn both(b: &mut Builder<'_>, vector: Vector, x: RowIndex, y: RowIndex) -> Result<Ymm, Full> {
    let x = b.bits(x)?;
    let y = b.bits_operand(y)?;
    b.make(vector, x, y)
}

fn put_either(b: &mut Builder<'_>, op: &Micro, vector: Vector) -> Emitted {
    let out = either(b, vector, op.a, op.b)?;
    b.put(op.d, out)
}

/// `register = register vector operand`.
fn apply(b: &mut Builder<'_>, vector: Vector, register: Ymm, operand: impl Into<Operand>) {
    b.asm.vector(vector, register, register, operand);
}

fn invert(b: &mut Builder<'_>, register: Ymm) {
    let ones = b.number(Number::Ones);
    apply(b, Vector::VPXOR, register, ones);
}

pub(crate) fn copy(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let from = b.bits_operand(op.b)?;
    let out = b.temporary()?;
    b.asm.load(out, from);
    b.put(op.d, out)
}

pub(crate) fn add(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_either(b, op, Vector::VPADDD)
}

pub(crate) fn subtract(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = both(b, Vector::VPSUBD, op.a, op.b)?;
    b.put(op.d, out)
}

pub(crate) fn and(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_either(b, op, Vector::VPAND)
}

pub(crate) fn or(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_either(b, op, Vector::VPOR)
}

pub(crate) fn xor(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_either(b, op, Vector::VPXOR)
}

pub(crate) fn multiply(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_either(b, op, Vector::VPMULLD)
}

/// `first(a, b)`, then `second` with `c`.
fn two_steps(b: &mut Builder<'_>, op: &Micro, first: Vector, second: Vector) -> Emitted {
    let out = either(b, first, op.a, op.b)?;
    let c = b.bits_operand(op.c)?;
    apply(b, second, out, c);
    b.put(op.d, out)
}

pub(crate) fn add3(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    two_steps(b, op, Vector::VPADDD, Vector::VPADDD)
}

pub(crate) fn xor3(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    two_steps(b, op, Vector::VPXOR, Vector::VPXOR)
}

pub(crate) fn multiply_add(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    two_steps(b, op, Vector::VPMULLD, Vector::VPADDD)
}

pub(crate) fn multiply_subtract(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    two_steps(b, op, Vector::VPMULLD, Vector::VPSUBD)
}

/// `a + b + c`, each negated where `extra` says so.
pub(crate) fn add3_negated(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let rows = [op.a, op.b, op.c];
    // Begin with one that is not negated, if there is one.
    let start = (0..3).find(|i| !flag(op, *i as u32));
    let out = b.temporary()?;
    match start {
        Some(start) => {
            let from = b.bits_operand(rows[start])?;
            b.asm.load(out, from);
        }
        None => b.asm.vector(Vector::VPXOR, out, out, out),
    }
    for (i, row) in rows.into_iter().enumerate() {
        if Some(i) != start && row != RowIndex::ZERO {
            let vector = if flag(op, i as u32) { Vector::VPSUBD } else { Vector::VPADDD };
            let operand = b.bits_operand(row)?;
            apply(b, vector, out, operand);
        }
    }
    b.put(op.d, out)
}

/// A source, all bits flipped where `flip` says so.
fn flipped(b: &mut Builder<'_>, row: RowIndex, flip: bool) -> Result<Ymm, Full> {
    let from = b.bits(row)?;
    if !flip {
        return Ok(from);
    }
    let ones = b.number(Number::Ones);
    b.make(Vector::VPXOR, from, ones)
}

/// Adds one in the lanes where the predicate holds.
fn add_carry(b: &mut Builder<'_>, register: Ymm, carry: Truth) {
    match carry {
        Truth::Never => {}
        Truth::Always => {
            let ones = b.number(Number::Ones);
            apply(b, Vector::VPSUBD, register, ones);
        }
        Truth::Where(mask) => apply(b, Vector::VPSUBD, register, mask),
        Truth::Unless(mask) => {
            let ones = b.number(Number::Ones);
            apply(b, Vector::VPSUBD, register, ones);
            apply(b, Vector::VPADDD, register, mask);
        }
    }
}

/// The lanes in which `sum` is below `part`, which was added: those that carry.
fn carries(b: &mut Builder<'_>, sum: Ymm, part: impl Into<Operand>) -> Result<Ymm, Full> {
    let most = b.make(Vector::VPMAXUD, sum, part)?;
    apply(b, Vector::VPCMPEQD, most, sum);
    invert(b, most);
    Ok(most)
}

pub(crate) fn add_carry_out(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = either(b, Vector::VPADDD, op.a, op.b)?;
    let part = b.bits_operand(op.b)?;
    let carry = carries(b, out, part)?;
    b.put(op.d, out)?;
    b.put_predicate(op.to[0], carry)?;
    if op.to[1] != PredicateOut::NONE {
        let none = b.temporary()?;
        b.asm.vector(Vector::VPXOR, none, none, none);
        b.put_predicate(op.to[1], none)?;
    }
    Ok(())
}

/// IADD3 and IADD3.X with carries out.
pub(crate) fn add3_carry<const EXTENDED: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (first, second) = if EXTENDED {
        (b.predicate(op.from[0])?, b.predicate(op.from[1])?)
    } else {
        // Each negated source adds one.
        let ones = op.extra.count_ones();
        let truth = |least| if ones >= least { Truth::Always } else { Truth::Never };
        (truth(1), truth(2))
    };
    let three = !EXTENDED && op.extra.count_ones() == 3;
    let x = flipped(b, op.a, flag(op, 0))?;
    let y = flipped(b, op.b, flag(op, 1))?;
    let z = flipped(b, op.c, flag(op, 2))?;
    let out = b.make(Vector::VPADDD, x, y)?;
    // Carries are counted as -1 each.
    let count = carries(b, out, y)?;
    b.release(x);
    b.release(y);
    let step = |b: &mut Builder<'_>, add: Truth| -> Emitted {
        if add == Truth::Never {
            return Ok(());
        }
        // What was all ones and becomes zero carries.
        add_carry(b, out, add);
        let zero = b.number(Number::Zero);
        let over = b.make(Vector::VPCMPEQD, out, zero)?;
        match add {
            Truth::Where(mask) => apply(b, Vector::VPAND, over, mask),
            Truth::Unless(mask) => b.asm.vector(Vector::VPANDN, over, mask, over),
            Truth::Always | Truth::Never => {}
        }
        apply(b, Vector::VPADDD, count, over);
        b.release(over);
        Ok(())
    };
    step(b, first)?;
    step(b, second)?;
    if three {
        step(b, Truth::Always)?;
    }
    apply(b, Vector::VPADDD, out, z);
    let over = carries(b, out, z)?;
    apply(b, Vector::VPADDD, count, over);
    b.release(over);
    b.put(op.d, out)?;
    let zero = b.number(Number::Zero);
    let once = b.make(Vector::VPCMPEQD, count, zero)?;
    invert(b, once);
    b.put_predicate(op.to[0], once)?;
    if op.to[1] == PredicateOut::NONE {
        return Ok(());
    }
    // At least two: below -1.
    let ones = b.temporary()?;
    b.asm.vector(Vector::VPCMPEQD, ones, ones, ones);
    let twice = b.make(Vector::VPCMPGTD, ones, count)?;
    b.put_predicate(op.to[1], twice)
}

pub(crate) fn add3_extended(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (p, q) = (b.predicate(op.from[0])?, b.predicate(op.from[1])?);
    let x = flipped(b, op.a, flag(op, 0))?;
    let y = flipped(b, op.b, flag(op, 1))?;
    let out = b.make(Vector::VPADDD, x, y)?;
    if op.c != RowIndex::ZERO || flag(op, 2) {
        let z = flipped(b, op.c, flag(op, 2))?;
        apply(b, Vector::VPADDD, out, z);
    }
    add_carry(b, out, p);
    add_carry(b, out, q);
    b.put(op.d, out)
}

pub(crate) fn multiply_extended(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let p = b.predicate(op.from[0])?;
    let out = either(b, Vector::VPMULLD, op.a, op.b)?;
    let c = flipped(b, op.c, flag(op, 0))?;
    apply(b, Vector::VPADDD, out, c);
    add_carry(b, out, p);
    b.put(op.d, out)
}

/// [`multiply_wide`]'s immediate of VPBLENDD that takes odd lanes from the second source.
const ODD: u8 = 0xaa;

pub(crate) fn multiply_wide<const SIGNED: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (even, odd) = products_wide::<SIGNED>(b, op)?;
    let low = b.temporary()?;
    b.asm.shift_wide(SHIFT_LEFT, low, odd, 32);
    b.asm.vector_immediate(Vector::VPBLENDD, low, even, low, ODD);
    b.asm.shift_wide(SHIFT_RIGHT, even, even, 32);
    b.asm.vector_immediate(Vector::VPBLENDD, even, even, odd, ODD);
    b.release(odd);
    b.put(op.d, low)?;
    b.put(op.d.plus(1), even)
}

pub(crate) fn multiply_high<const SIGNED: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (even, odd) = products_wide::<SIGNED>(b, op)?;
    b.asm.shift_wide(SHIFT_RIGHT, even, even, 32);
    b.asm.vector_immediate(Vector::VPBLENDD, even, even, odd, ODD);
    b.release(odd);
    b.put(op.d, even)
}

/// `a * b + c` in 64 bits: the even lanes, and the odd ones.
fn products_wide<const SIGNED: bool>(b: &mut Builder<'_>, op: &Micro) -> Result<(Ymm, Ymm), Full> {
    let vector = if SIGNED { Vector::VPMULDQ } else { Vector::VPMULUDQ };
    let x = b.bits(op.a)?;
    let y = b.bits_operand(op.b)?;
    let even = b.make(vector, x, y)?;
    let odd = b.temporary()?;
    b.asm.shift_wide(SHIFT_RIGHT, odd, x, 32);
    if op.b.is_pool() {
        // The same in all lanes.
        apply(b, vector, odd, y);
    } else {
        let y = b.bits(op.b)?;
        let y_odd = b.temporary()?;
        b.asm.shift_wide(SHIFT_RIGHT, y_odd, y, 32);
        apply(b, vector, odd, y_odd);
        b.release(y_odd);
    }
    let (low, high) = (op.c, op.c.plus(1));
    if low != RowIndex::ZERO {
        let part = b.temporary()?;
        if low.is_pool() {
            let (low, high) = (b.bits(low)?, b.bits_operand(high)?);
            b.asm.vector_immediate(Vector::VPBLENDD, part, low, high, ODD);
            apply(b, Vector::VPADDQ, even, part);
            apply(b, Vector::VPADDQ, odd, part);
        } else {
            let (low, high) = (b.bits(low)?, b.bits(high)?);
            b.asm.shift_wide(SHIFT_LEFT, part, high, 32);
            b.asm.vector_immediate(Vector::VPBLENDD, part, low, part, ODD);
            apply(b, Vector::VPADDQ, even, part);
            b.asm.shift_wide(SHIFT_RIGHT, part, low, 32);
            b.asm.vector_immediate(Vector::VPBLENDD, part, part, high, ODD);
            apply(b, Vector::VPADDQ, odd, part);
        }
        b.release(part);
    }
    Ok((even, odd))
}

/// A mask, and whether it stands for its complement.
type Test = (Ymm, bool);

/// The lanes in which integers compare so: bit 0 of `code` less, bit 1 equal, bit 2 greater.
fn compare(b: &mut Builder<'_>, code: u32, signed: bool, x: RowIndex, y: RowIndex) -> Result<Test, Full> {
    match code & 7 {
        0 | 7 => {
            let none = b.temporary()?;
            b.asm.vector(Vector::VPXOR, none, none, none);
            Ok((none, code & 7 == 7))
        }
        2 | 5 => Ok((either(b, Vector::VPCMPEQD, x, y)?, code & 7 == 5)),
        // Greater, or not.
        4 | 3 if signed => Ok((both(b, Vector::VPCMPGTD, x, y)?, code & 7 == 3)),
        // Less, or not.
        _ if signed => Ok((both(b, Vector::VPCMPGTD, y, x)?, code & 7 == 6)),
        // The larger one is the first: not less; the smaller one is: not greater.
        code => {
            let not_less = code == 6 || code == 1;
            let first = b.bits(x)?;
            let second = b.bits_operand(y)?;
            let out = b.make(if not_less { Vector::VPMAXUD } else { Vector::VPMINUD }, first, second)?;
            apply(b, Vector::VPCMPEQD, out, first);
            Ok((out, code == 1 || code == 4))
        }
    }
}

/// `mask`, which is given away, combined with a predicate: 0 AND, 1 OR, 2 XOR.
fn combine(b: &mut Builder<'_>, boolean: u8, mask: Ymm, with: Truth) {
    match (boolean & 3, with) {
        (0, Truth::Always) | (1.., Truth::Never) => {}
        (0, Truth::Never) => apply(b, Vector::VPXOR, mask, mask),
        (1, Truth::Always) => apply(b, Vector::VPCMPEQD, mask, mask),
        (_, Truth::Always) => invert(b, mask),
        (0, Truth::Where(with)) => apply(b, Vector::VPAND, mask, with),
        (0, Truth::Unless(with)) => b.asm.vector(Vector::VPANDN, mask, with, mask),
        (1, Truth::Where(with)) => apply(b, Vector::VPOR, mask, with),
        // !(!mask & with)
        (1, Truth::Unless(with)) => {
            b.asm.vector(Vector::VPANDN, mask, mask, with);
            invert(b, mask);
        }
        (_, Truth::Where(with)) => apply(b, Vector::VPXOR, mask, with),
        (_, Truth::Unless(with)) => {
            apply(b, Vector::VPXOR, mask, with);
            invert(b, mask);
        }
    }
}

/// Writes both predicates of a comparison.
fn put_comparison(b: &mut Builder<'_>, op: &Micro, (test, inverted): Test) -> Emitted {
    let with = b.predicate(op.from[0])?;
    let other = if op.to[1] == PredicateOut::NONE {
        None
    } else {
        let other = b.temporary()?;
        b.asm.load(other, test);
        if !inverted {
            invert(b, other);
        }
        combine(b, op.extra, other, with);
        Some(other)
    };
    if inverted {
        invert(b, test);
    }
    combine(b, op.extra, test, with);
    b.put_predicate(op.to[0], test)?;
    other.map_or(Ok(()), |other| b.put_predicate(op.to[1], other))
}

pub(crate) fn compare_integers<const COMPARE: u32, const SIGNED: bool>(
    b: &mut Builder<'_>,
    op: &Micro,
) -> Emitted {
    let test = compare(b, COMPARE, SIGNED, op.a, op.b)?;
    put_comparison(b, op, test)
}

/// ISETP.EX: equal high words hand on what the low words gave.
pub(crate) fn compare_extended(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let code = op.payload as u32 & 7;
    let (test, inverted) = compare(b, code, op.payload & 0x100 != 0, op.a, op.b)?;
    if code != 0 && code != 7 {
        if inverted {
            invert(b, test);
        }
        let low = b.predicate(op.from[1])?;
        let low = b.mask(low)?;
        let equal = either(b, Vector::VPCMPEQD, op.a, op.b)?;
        b.asm.blend(test, test, low, equal);
        b.release(equal);
        return put_comparison(b, op, (test, false));
    }
    put_comparison(b, op, (test, inverted))
}

/// `yes` where a predicate holds, `no` elsewhere, in a new register.
fn select(b: &mut Builder<'_>, truth: Truth, yes: Ymm, no: Ymm) -> Result<Ymm, Full> {
    let out = b.temporary()?;
    match truth {
        Truth::Always => b.asm.load(out, yes),
        Truth::Never => b.asm.load(out, no),
        Truth::Where(mask) => b.asm.blend(out, no, yes, mask),
        Truth::Unless(mask) => b.asm.blend(out, yes, no, mask),
    }
    Ok(out)
}

pub(crate) fn choose(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let p = b.predicate(op.from[0])?;
    let (x, y) = (b.bits(op.a)?, b.bits(op.b)?);
    let out = select(b, p, x, y)?;
    b.put(op.d, out)
}

pub(crate) fn minimum_maximum<const SIGNED: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (least, most) =
        if SIGNED { (Vector::VPMINSD, Vector::VPMAXSD) } else { (Vector::VPMINUD, Vector::VPMAXUD) };
    let p = b.predicate(op.from[0])?;
    let out = match p {
        Truth::Always => either(b, least, op.a, op.b)?,
        Truth::Never => either(b, most, op.a, op.b)?,
        _ => {
            let (x, y) = (either(b, least, op.a, op.b)?, either(b, most, op.a, op.b)?);
            select(b, p, x, y)?
        }
    };
    b.put(op.d, out)
}

pub(crate) fn absolute(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let from = b.bits_operand(op.b)?;
    let out = b.temporary()?;
    b.asm.vector_one(Vector::VPABSD, out, from);
    b.put(op.d, out)
}

fn put_shift(b: &mut Builder<'_>, op: &Micro, kind: Ymm, from: RowIndex) -> Emitted {
    let from = b.bits(from)?;
    let out = b.temporary()?;
    b.asm.shift(kind, out, from, op.payload as u8 & 31);
    b.put(op.d, out)
}

pub(crate) fn shift_left(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_shift(b, op, SHIFT_LEFT, op.a)
}

pub(crate) fn shift_right(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_shift(b, op, SHIFT_RIGHT, op.c)
}

pub(crate) fn shift_right_signed(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    put_shift(b, op, SHIFT_RIGHT_SIGNED, op.c)
}

/// A word of the pair `{high, low}`, shifted left by `count`, or right by what is left of 32.
fn funnel(b: &mut Builder<'_>, high: RowIndex, low: RowIndex, count: u8) -> Result<Ymm, Full> {
    let (high, low) = (b.bits(high)?, b.bits(low)?);
    let out = b.temporary()?;
    let part = b.temporary()?;
    b.asm.shift(SHIFT_LEFT, out, high, count & 31);
    b.asm.shift(SHIFT_RIGHT, part, low, (32 - count) & 31);
    apply(b, Vector::VPOR, out, part);
    b.release(part);
    Ok(out)
}

pub(crate) fn funnel_left(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = funnel(b, op.c, op.a, op.payload as u8 & 31)?;
    b.put(op.d, out)
}

pub(crate) fn funnel_right(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let out = funnel(b, op.c, op.a, (32 - (op.payload as u8 & 31)) & 31)?;
    b.put(op.d, out)
}

/// SHF of a pair that is shifted by 32 at most: counts above leave nothing, or the sign.
pub(crate) fn shift_words(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let kind = shift_kind(op.payload);
    let right = kind.direction == Direction::Right;
    let count = b.bits(op.b)?;
    let count = if kind.wrap {
        let ones = b.number(Number::Five);
        b.make(Vector::VPAND, count, ones)?
    } else {
        let most = b.number(Number::ThirtyTwo);
        b.make(Vector::VPMINUD, count, most)?
    };
    let (along, other) =
        if right { (Vector::VPSRLVD, Vector::VPSLLVD) } else { (Vector::VPSLLVD, Vector::VPSRLVD) };
    // The word that nothing is shifted into, or both.
    if kind.high == right {
        let signed = right && kind.sign == Sign::Signed;
        let from = b.bits(if right { op.c } else { op.a })?;
        let out = b.make(if signed { Vector::VPSRAVD } else { along }, from, count)?;
        return b.put(op.d, out);
    }
    let (from, into) = if right { (op.a, op.c) } else { (op.c, op.a) };
    let (from, into) = (b.bits(from)?, b.bits(into)?);
    let most = b.temporary()?;
    let all = b.number(Number::ThirtyTwo);
    b.asm.load(most, all);
    apply(b, Vector::VPSUBD, most, count);
    let part = b.make(other, into, most)?;
    let out = b.make(along, from, count)?;
    apply(b, Vector::VPOR, out, part);
    b.release(most);
    b.release(part);
    b.put(op.d, out)
}

/// Copies as many registers as `extra` says.
pub(crate) fn copy_rows(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let mut outs = Vec::new();
    for word in 0..u16::from(op.extra) {
        let from = b.bits_operand(op.b.plus(word))?;
        let out = b.temporary()?;
        b.asm.load(out, from);
        outs.push(out);
    }
    for (word, out) in outs.into_iter().enumerate() {
        b.put(op.d.plus(word as u16), out)?;
    }
    Ok(())
}

/// SRZ into one register or two.
pub(crate) fn zero(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    if flag(op, 1) {
        // A uniform register, which all lanes write whichever run.
        return Err(Full);
    }
    for word in 0..=u16::from(flag(op, 0)) {
        let out = b.temporary()?;
        b.asm.vector(Vector::VPXOR, out, out, out);
        b.put(op.d.plus(word), out)?;
    }
    Ok(())
}

pub(crate) fn scaled_add(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let x = b.bits(op.a)?;
    let y = b.bits_operand(op.b)?;
    let out = b.temporary()?;
    b.asm.shift(SHIFT_LEFT, out, x, op.payload as u8 & 31);
    apply(b, Vector::VPADDD, out, y);
    b.put(op.d, out)
}

/// LEA with everything.
pub(crate) fn scaled_add_carry(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let shift = op.payload as u8 & 31;
    let (negate, negate_b) = (flag(op, 0), flag(op, 1));
    let (high, extended, sign_extend) = (flag(op, 2), flag(op, 3), flag(op, 4));
    let carry = if extended {
        b.predicate(op.from[0])?
    } else if negate || negate_b {
        Truth::Always
    } else {
        Truth::Never
    };
    let x = b.bits(op.a)?;
    let shifted = b.temporary()?;
    if high {
        let upper = if sign_extend {
            let fill = b.temporary()?;
            b.asm.shift(SHIFT_RIGHT_SIGNED, fill, x, 31);
            fill
        } else {
            b.bits(op.c)?
        };
        b.asm.shift(SHIFT_LEFT, shifted, upper, shift);
        if shift != 0 {
            let part = b.temporary()?;
            b.asm.shift(SHIFT_RIGHT, part, x, 32 - shift);
            apply(b, Vector::VPOR, shifted, part);
            b.release(part);
        }
    } else {
        b.asm.shift(SHIFT_LEFT, shifted, x, shift);
    }
    if negate {
        invert(b, shifted);
    }
    let y = flipped(b, op.b, negate_b)?;
    let out = b.make(Vector::VPADDD, shifted, y)?;
    b.release(shifted);
    if op.to[0] == PredicateOut::NONE {
        add_carry(b, out, carry);
        return b.put(op.d, out);
    }
    let over = carries(b, out, y)?;
    if carry != Truth::Never {
        add_carry(b, out, carry);
        let zero = b.number(Number::Zero);
        let again = b.make(Vector::VPCMPEQD, out, zero)?;
        combine(b, 0, again, carry);
        apply(b, Vector::VPOR, over, again);
        b.release(again);
    }
    b.put(op.d, out)?;
    b.put_predicate(op.to[0], over)
}

/// What a function of two bits needs: its table has bit `2 * x + y`.
fn two_bits(b: &mut Builder<'_>, table: u8, x: Ymm, y: Ymm) -> Result<Ymm, Full> {
    let out = b.temporary()?;
    let complement = table & 1 != 0 && table & 15 != 0b1111;
    let plain = if complement { !table & 15 } else { table & 15 };
    match plain {
        0b0000 => b.asm.vector(Vector::VPXOR, out, out, out),
        0b1111 => b.asm.vector(Vector::VPCMPEQD, out, out, out),
        0b1000 => b.asm.vector(Vector::VPAND, out, x, y),
        0b0100 => b.asm.vector(Vector::VPANDN, out, y, x),
        0b0010 => b.asm.vector(Vector::VPANDN, out, x, y),
        0b1100 => b.asm.load(out, x),
        0b1010 => b.asm.load(out, y),
        0b0110 => b.asm.vector(Vector::VPXOR, out, x, y),
        _ => b.asm.vector(Vector::VPOR, out, x, y),
    }
    if complement {
        invert(b, out);
    }
    Ok(out)
}

/// A function of three bits, by its table: bit `4 * x + 2 * y + z`.
fn three_bits(b: &mut Builder<'_>, table: u8, sources: [Ymm; 3]) -> Result<Ymm, Full> {
    let bit = |x: u8, y: u8, z: u8| table >> (4 * x + 2 * y + z) & 1;
    // By one of the three, two functions of the others.
    let halves = |by: usize| {
        let mut halves = [0; 2];
        for (value, half) in halves.iter_mut().enumerate() {
            for others in 0..4 {
                let (p, q) = (others >> 1, others & 1);
                let v = value as u8;
                let one = match by {
                    0 => bit(v, p, q),
                    1 => bit(p, v, q),
                    _ => bit(p, q, v),
                };
                *half |= one << others;
            }
        }
        halves
    };
    let cost = |[no, yes]: [u8; 2]| -> u32 {
        let one = |table: u8| match table {
            0 | 15 | 0b1100 | 0b1010 => 0,
            0b1000 | 0b0100 | 0b0010 | 0b0110 | 0b1110 => 1,
            _ => 2,
        };
        if no == yes {
            one(no)
        } else if no == 0 {
            one(yes) + 1
        } else if yes == 15 || yes == 0 || yes == !no & 15 {
            one(no) + 1
        } else {
            one(no) + one(no ^ yes) + 2
        }
    };
    let by = (0..3).min_by_key(|by| cost(halves(*by))).unwrap_or(2);
    let [no, yes] = halves(by);
    let (x, y) = match by {
        0 => (sources[1], sources[2]),
        1 => (sources[0], sources[2]),
        _ => (sources[0], sources[1]),
    };
    let by = sources[by];
    if no == yes {
        return two_bits(b, no, x, y);
    }
    if no == 0 {
        let out = two_bits(b, yes, x, y)?;
        apply(b, Vector::VPAND, out, by);
        return Ok(out);
    }
    let out = two_bits(b, no, x, y)?;
    if yes == 15 {
        apply(b, Vector::VPOR, out, by);
    } else if yes == 0 {
        b.asm.vector(Vector::VPANDN, out, by, out);
    } else if yes == !no & 15 {
        apply(b, Vector::VPXOR, out, by);
    } else {
        let change = two_bits(b, no ^ yes, x, y)?;
        apply(b, Vector::VPAND, change, by);
        apply(b, Vector::VPXOR, out, change);
        b.release(change);
    }
    Ok(out)
}

pub(crate) fn logic(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let sources = [b.bits(op.a)?, b.bits(op.b)?, b.bits(op.c)?];
    let out = three_bits(b, op.payload as u8, sources)?;
    b.put(op.d, out)
}

/// LOP3 with a predicate.
pub(crate) fn logic_predicate(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let with = b.predicate(op.from[0])?;
    let sources = [b.bits(op.a)?, b.bits(op.b)?, b.bits(op.c)?];
    let out = three_bits(b, op.payload as u8, sources)?;
    let zero = b.number(Number::Zero);
    let set = b.make(Vector::VPCMPEQD, out, zero)?;
    invert(b, set);
    combine(b, 1, set, with);
    b.put(op.d, out)?;
    b.put_predicate(op.to[0], set)
}

/// PLOP3.
pub(crate) fn predicate_logic(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let mut sources = [Ymm(0); 3];
    for (source, from) in sources.iter_mut().zip(op.from) {
        let truth = b.predicate(from)?;
        *source = b.mask(truth)?;
    }
    let mut outs = [None; 2];
    for (i, out) in outs.iter_mut().enumerate() {
        if op.to[i] != PredicateOut::NONE {
            *out = Some(three_bits(b, (op.payload >> (8 * i)) as u8, sources)?);
        }
    }
    for (to, out) in op.to.into_iter().zip(outs) {
        if let Some(out) = out {
            b.put_predicate(to, out)?;
        }
    }
    Ok(())
}

pub(crate) fn float_of_integer<const SIGNED: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    if SIGNED {
        let from = b.bits_operand(op.b)?;
        let out = b.temporary()?;
        b.asm.vector_one(Vector::VCVTDQ2PS, out, from);
        return b.put(op.d, out);
    }
    // The high half times 65536, which is exact, and the low half are added with one rounding.
    let from = b.bits(op.b)?;
    let high = b.temporary()?;
    b.asm.shift(SHIFT_RIGHT, high, from, 16);
    b.asm.vector_one(Vector::VCVTDQ2PS, high, high);
    let half = b.number(Number::LowHalf);
    let out = b.make(Vector::VPAND, from, half)?;
    b.asm.vector_one(Vector::VCVTDQ2PS, out, out);
    let factor = b.number(Number::Float65536);
    b.asm.vector(Vector::VFMADD231PS, out, high, factor);
    b.release(high);
    b.put(op.d, out)
}

/// What marks leave to be done: bits that are cleared and flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    absolute: bool,
    negate: bool,
}

/// The marks of a source, in the form of [`marks`].
fn marks_of(bits: u64, slot: u32) -> Marks {
    let (keep, flip) = marks(bits, slot);
    Marks { absolute: keep != u32::MAX, negate: flip != 0 }
}

/// A source of FP32 arithmetic with its marks applied, and flushed.
fn marked<const FLUSH: bool>(b: &mut Builder<'_>, row: RowIndex, marks: Marks) -> Result<Ymm, Full> {
    let from = b.float(row)?;
    if !FLUSH && marks == (Marks { absolute: false, negate: false }) {
        return Ok(from);
    }
    let out = if FLUSH { flushed(b, from)? } else { b.temporary()? };
    let mut from = if FLUSH { out } else { from };
    if marks.absolute {
        let keep = b.number(Number::Magnitude);
        b.asm.vector(Vector::VPAND, out, from, keep);
        from = out;
    }
    if marks.negate {
        let flip = b.number(Number::Sign);
        b.asm.vector(Vector::VPXOR, out, from, flip);
    }
    Ok(out)
}

/// Subnormal numbers become zero of their sign, in a new register.
fn flushed(b: &mut Builder<'_>, from: Ymm) -> Result<Ymm, Full> {
    let exponent = b.number(Number::Exponent);
    let out = b.make(Vector::VPAND, from, exponent)?;
    let zero = b.number(Number::Zero);
    apply(b, Vector::VPCMPEQD, out, zero);
    // All bits but the sign go.
    b.asm.shift(SHIFT_RIGHT, out, out, 1);
    b.asm.vector(Vector::VPANDN, out, out, from);
    Ok(out)
}

/// The same as an operand.
fn marked_operand<const FLUSH: bool>(
    b: &mut Builder<'_>,
    row: RowIndex,
    marks: Marks,
) -> Result<Operand, Full> {
    if FLUSH || marks.absolute || marks.negate {
        Ok(marked::<FLUSH>(b, row, marks)?.into())
    } else {
        b.float_operand(row)
    }
}

pub(crate) fn float_add<const FLUSH: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (mut mx, mut my) = (marks_of(op.extra.into(), 0), marks_of(op.extra.into(), 1));
    let (mut x, mut y) = (op.a, op.b);
    if (b.is_near(y) && !b.is_near(x)) || (mx.negate && !my.negate) || x.is_pool() {
        (x, y, mx, my) = (y, x, my, mx);
    }
    // A negated second source is subtracted.
    let vector = if my.negate { Vector::VSUBPS } else { Vector::VADDPS };
    let x = marked::<FLUSH>(b, x, mx)?;
    let y = marked_operand::<FLUSH>(b, y, Marks { negate: false, ..my })?;
    let out = b.make(vector, x, y)?;
    // Sums near the smallest normal number are exact, so that flushing them is simple.
    let out = if FLUSH { flushed(b, out)? } else { out };
    b.put_float(op.d, out)
}

/// Flushes a product or a sum of one to which `sources` led. A result that was rounded to the smallest normal number may
/// have to be flushed, which is rare, and left to `help`.
fn flush_result(b: &mut Builder<'_>, out: Ymm, sources: [Ymm; 3], help: Help) -> Result<Ymm, Full> {
    let magnitude = b.number(Number::Magnitude);
    let least = b.make(Vector::VPAND, out, magnitude)?;
    let smallest = b.number(Number::SmallestNormal);
    apply(b, Vector::VPCMPEQD, least, smallest);
    b.call_where(least, help, [sources[0], sources[1], sources[2], out]);
    b.release(least);
    flushed(b, out)
}

pub(crate) fn float_multiply<const FLUSH: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (mut mx, mut my) = (marks_of(op.extra.into(), 0), marks_of(op.extra.into(), 1));
    let (mut x, mut y) = (op.a, op.b);
    if FLUSH {
        let (x, y) = (marked::<true>(b, x, mx)?, marked::<true>(b, y, my)?);
        let out = b.make(Vector::VMULPS, x, y)?;
        let out = flush_result(b, out, [x, y, y], help_multiply)?;
        return b.put_float(op.d, out);
    }
    if (b.is_near(y) && !b.is_near(x)) || my.negate || x.is_pool() {
        (x, y, mx, my) = (y, x, my, mx);
    }
    // One sign for both.
    mx.negate ^= my.negate;
    let x = marked::<false>(b, x, mx)?;
    let y = marked_operand::<false>(b, y, Marks { negate: false, ..my })?;
    let out = b.make(Vector::VMULPS, x, y)?;
    b.put_float(op.d, out)
}

pub(crate) fn float_multiply_add<const FLUSH: bool>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let [mut mx, mut my, mz] = [0, 1, 2].map(|slot| marks_of(op.extra.into(), slot));
    let (mut x, mut y) = (op.a, op.b);
    if FLUSH {
        let (x, y, z) = (marked::<true>(b, x, mx)?, marked::<true>(b, y, my)?, marked::<true>(b, op.c, mz)?);
        let out = b.temporary()?;
        b.asm.load(out, z);
        b.asm.vector(Vector::VFMADD231PS, out, x, y);
        let out = flush_result(b, out, [x, y, z], help_multiply_add)?;
        return b.put_float(op.d, out);
    }
    if (b.is_near(y) && !b.is_near(x)) || x.is_pool() {
        (x, y, mx, my) = (y, x, my, mx);
    }
    let vector = match (mx.negate ^ my.negate, mz.negate) {
        (false, false) => Vector::VFMADD231PS,
        (false, true) => Vector::VFMSUB231PS,
        (true, false) => Vector::VFNMADD231PS,
        (true, true) => Vector::VFNMSUB231PS,
    };
    let x = marked::<false>(b, x, Marks { negate: false, ..mx })?;
    let y = marked_operand::<false>(b, y, Marks { negate: false, ..my })?;
    let out = if mz.absolute {
        let z = b.float(op.c)?;
        let keep = b.number(Number::Magnitude);
        b.make(Vector::VPAND, z, keep)?
    } else {
        b.float_copy(op.c, op.d)?
    };
    b.asm.vector(vector, out, x, y);
    b.put_float(op.d, out)
}

/// What a call of [`Builder::call_where`] computes: `registers` are all vector registers, of which `numbers` names three
/// sources and a result, a byte each.
pub(super) type Help = unsafe extern "sysv64" fn(registers: *mut [[u32; 8]; 16], numbers: u32);

/// Computes all lanes of a result anew.
///
/// # Safety
/// As for [`Help`].
unsafe fn help(registers: *mut [[u32; 8]; 16], numbers: u32, f: impl Fn(u32, u32, u32) -> u32) {
    // SAFETY: compiled code saved the registers there, and waits.
    let registers = unsafe { &mut *registers };
    let [x, y, z, out] = numbers.to_le_bytes().map(|number| usize::from(number & 15));
    for lane in 0..8 {
        registers[out][lane] = f(registers[x][lane], registers[y][lane], registers[z][lane]);
    }
}

const FLUSHING: FloatMode =
    FloatMode { rounding: Rounding::Nearest, subnormals: Subnormals::Flush, saturate: false };

unsafe extern "sysv64" fn help_multiply(registers: *mut [[u32; 8]; 16], numbers: u32) {
    // SAFETY: the caller's promise.
    unsafe { help(registers, numbers, |x, y, _| float::fmul(x, y, FLUSHING)) };
}

unsafe extern "sysv64" fn help_multiply_add(registers: *mut [[u32; 8]; 16], numbers: u32) {
    // SAFETY: the caller's promise.
    unsafe { help(registers, numbers, |x, y, z| float::ffma(x, y, z, FLUSHING)) };
}

/// VCMPPS's number for each of FSETP's comparisons.
const COMPARISONS: [u8; 16] =
    [0x0b, 0x11, 0x00, 0x12, 0x1e, 0x0c, 0x1d, 0x07, 0x03, 0x19, 0x08, 0x1a, 0x16, 0x04, 0x15, 0x0f];

pub(crate) fn compare_floats<const COMPARE: u32, const FLUSH: bool>(
    b: &mut Builder<'_>,
    op: &Micro,
) -> Emitted {
    let x = marked::<FLUSH>(b, op.a, marks_of(op.payload, 0))?;
    let y = marked_operand::<FLUSH>(b, op.b, marks_of(op.payload, 1))?;
    let out = b.temporary()?;
    b.asm.vector_immediate(Vector::VCMPPS, out, x, y, COMPARISONS[COMPARE as usize & 15]);
    put_comparison(b, op, (out, false))
}

/// FSEL without `.FTZ`.
pub(crate) fn choose_float(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let p = b.predicate(op.from[0])?;
    let source = |b: &mut Builder<'_>, row, marks: Marks| -> Result<Ymm, Full> {
        let from = b.bits(row)?;
        if !marks.absolute && !marks.negate {
            return Ok(from);
        }
        let out = b.temporary()?;
        b.asm.load(out, from);
        if marks.absolute {
            let keep = b.number(Number::Magnitude);
            apply(b, Vector::VPAND, out, keep);
        }
        if marks.negate {
            let flip = b.number(Number::Sign);
            apply(b, Vector::VPXOR, out, flip);
        }
        Ok(out)
    };
    let x = source(b, op.a, marks_of(op.extra.into(), 0))?;
    let y = source(b, op.b, marks_of(op.extra.into(), 1))?;
    let mut out = select(b, p, x, y)?;
    if op.payload != 0 {
        out = flushed(b, out)?;
    }
    b.put(op.d, out)
}

/// FMNMX: numbers before NaN, or with `.NAN` the other way; -0 is below +0.
pub(crate) fn float_minimum_maximum(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let (flushes, nan) = (op.payload & 1 != 0, op.payload & 2 != 0);
    let p = b.predicate(op.from[0])?;
    let source = |b: &mut Builder<'_>, row, slot| {
        let marks = marks_of(op.extra.into(), slot);
        if flushes { marked::<true>(b, row, marks) } else { marked::<false>(b, row, marks) }
    };
    let x = source(b, op.a, 0)?;
    let y = source(b, op.b, 1)?;
    // Bits whose order as signed integers is that of the numbers.
    let ordered = |b: &mut Builder<'_>, from: Ymm| -> Result<Ymm, Full> {
        let out = b.temporary()?;
        b.asm.shift(SHIFT_RIGHT_SIGNED, out, from, 31);
        b.asm.shift(SHIFT_RIGHT, out, out, 1);
        apply(b, Vector::VPXOR, out, from);
        Ok(out)
    };
    let (left, right) = (ordered(b, x)?, ordered(b, y)?);
    // The lanes in which the second source is the result.
    let second = b.make(Vector::VPCMPGTD, right, left)?;
    b.release(left);
    b.release(right);
    // So far those in which the first is less: of a minimum the first is the result then.
    match p {
        Truth::Always => invert(b, second),
        Truth::Never => {}
        Truth::Where(mask) => apply(b, Vector::VPXOR, second, mask),
        Truth::Unless(mask) => {
            apply(b, Vector::VPXOR, second, mask);
            invert(b, second);
        }
    }
    let out = b.temporary()?;
    b.asm.blend(out, x, y, second);
    let (of, other) = if nan { (x, y) } else { (y, x) };
    // Where the first is NaN the second is taken, and the other way round; with `.NAN` NaN itself.
    let test = b.temporary()?;
    b.asm.vector_immediate(Vector::VCMPPS, test, of, of, UNORDERED);
    b.asm.blend(out, out, if nan { of } else { other }, test);
    b.asm.vector_immediate(Vector::VCMPPS, test, other, other, UNORDERED);
    b.asm.blend(out, out, if nan { other } else { of }, test);
    b.release(test);
    b.put_float(op.d, out)
}
