//! FP64 arithmetic and comparisons. Subnormals are always kept.
//!
//! A NaN operand is passed on with its payload, made quiet: the second factor's first, then the
//! addend's, then the first factor's; an invalid operation makes [`NAN`] (measured on H200 for DMMA,
//! DFMA, DMUL and DADD).

use super::soft::{Format, Number};
use super::{FloatCompare, Rounding};

/// The NaN that an invalid FP64 operation makes.
pub const NAN: u64 = 0xfff8_0000_0000_0000;

const QUIET: u64 = 1 << 51;
const SIGN: u64 = 1 << 63;

/// Whether the bits are a NaN.
#[inline(always)]
#[must_use]
pub const fn is_nan(a: u64) -> bool {
    Format::F64.is_nan(a)
}

/// The NaN operand that wins, if there is one.
#[inline(always)]
const fn operand_nan(first: u64, second: u64, third: u64) -> Option<u64> {
    if is_nan(first) {
        Some(first | QUIET)
    } else if is_nan(second) {
        Some(second | QUIET)
    } else if is_nan(third) {
        Some(third | QUIET)
    } else {
        None
    }
}

/// Passes numbers through and turns the host's NaN into [`NAN`] or the winning operand.
#[inline(always)]
fn finish(result: f64, first: u64, second: u64, third: u64) -> u64 {
    if result.is_nan() { operand_nan(first, second, third).unwrap_or(NAN) } else { result.to_bits() }
}

/// DADD: `a + b`.
#[inline(always)]
pub fn dadd(a: u64, b: u64, rounding: Rounding) -> u64 {
    let host = f64::from_bits(a) + f64::from_bits(b);
    if rounding == Rounding::Nearest || !host_is_finite(a, b, 0) {
        return finish(host, b, a, a);
    }
    let sum = Number::unpack(a, Format::F64).add(Number::unpack(b, Format::F64), rounding);
    sum.round(Format::F64, rounding)
}

/// DMUL: `a * b`.
#[inline(always)]
pub fn dmul(a: u64, b: u64, rounding: Rounding) -> u64 {
    let host = f64::from_bits(a) * f64::from_bits(b);
    if rounding == Rounding::Nearest || !host_is_finite(a, b, 0) {
        return finish(host, b, a, a);
    }
    let product = Number::unpack(a, Format::F64).multiply(Number::unpack(b, Format::F64));
    product.round(Format::F64, rounding)
}

/// DFMA: `a * b + c`, rounded once.
#[inline(always)]
pub fn dfma(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    if rounding == Rounding::Nearest || !host_is_finite(a, b, c) {
        let host = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
        return finish(host, b, c, a);
    }
    let product = Number::unpack(a, Format::F64).multiply(Number::unpack(b, Format::F64));
    product.add(Number::unpack(c, Format::F64), rounding).round(Format::F64, rounding)
}

/// Whether no operand is an infinity or a NaN.
#[inline(always)]
const fn host_is_finite(a: u64, b: u64, c: u64) -> bool {
    let infinity = Format::F64.infinity();
    a & !SIGN < infinity && b & !SIGN < infinity && c & !SIGN < infinity
}

/// DSETP: the comparison alone. [`super::Boolean::both`] makes the two predicates of it.
#[inline(always)]
pub fn compare(a: u64, b: u64, comparison: FloatCompare) -> bool {
    comparison.holds(f64::from_bits(a), f64::from_bits(b))
}

/// DSETP.MIN, DSETP.MAX: whether `a` is the operand to keep, and whether both are NaN.
///
/// These are the instruction's two predicates (here the second is not the complement of the first),
/// each then combined with the predicate operand. -0 is below +0; a NaN loses against a number. The
/// compiler selects with the first and, under the second, makes `b` quiet (measured on H200).
#[inline(always)]
pub const fn min_max(a: u64, b: u64, minimum: bool) -> (bool, bool) {
    let keeps = match (is_nan(a), is_nan(b)) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => {
            let (x, y) = (ordered(a), ordered(b));
            if minimum { x < y } else { x > y }
        }
    };
    (keeps, is_nan(a) && is_nan(b))
}

/// Maps the bits so that signed integer order is numeric order with -0 below +0.
#[inline(always)]
const fn ordered(a: u64) -> i64 {
    let a = a as i64;
    a ^ ((a >> 63) & i64::MAX)
}
