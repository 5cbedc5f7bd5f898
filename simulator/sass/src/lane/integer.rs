//! Integer arithmetic, logic, shifts and comparisons.
//!
//! Semantics follow the PTX description of the instruction that compiles to each mnemonic and the
//! way `ptxas` chains them for 64-bit arithmetic; `.X` forms take negation as one's complement.

use super::{Boolean, IntegerCompare, IntegerType, Sign};

/// Result of IADD3: the sum and the carries out of bit 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum3 {
    /// Low 32 bits of the sum.
    pub value: u32,
    /// First carry: the whole sum reached 2^32.
    pub carry0: bool,
    /// Second carry: the whole sum reached 2 * 2^32.
    pub carry1: bool,
}

/// All ones for true.
#[inline(always)]
const fn mask(condition: bool) -> u32 {
    0u32.wrapping_sub(condition as u32)
}

/// IADD3: `a + b + c`, each operand negated (two's complement) where `negate` says so.
///
/// Negation counts in the carry: `a - 0` carries, as a 64-bit subtraction needs. How the hardware
/// splits a double carry between its two predicates was not measured; their sum is right, and the
/// consumer (`IADD3.X`) adds both. Three negated zeros would carry three times; that third carry is
/// lost.
#[inline(always)]
pub fn iadd3(a: u32, b: u32, c: u32, negate: [bool; 3]) -> Sum3 {
    let extra = u64::from(negate[0]) + u64::from(negate[1]) + u64::from(negate[2]);
    sum3(a, b, c, negate, extra)
}

/// IADD3.X: `a + b + c + carry0 + carry1`, each operand inverted (one's complement) where `invert`
/// says so.
#[inline(always)]
pub fn iadd3_x(a: u32, b: u32, c: u32, invert: [bool; 3], carry: [bool; 2]) -> Sum3 {
    sum3(a, b, c, invert, u64::from(carry[0]) + u64::from(carry[1]))
}

#[inline(always)]
fn sum3(a: u32, b: u32, c: u32, invert: [bool; 3], extra: u64) -> Sum3 {
    let total = u64::from(a ^ mask(invert[0]))
        + u64::from(b ^ mask(invert[1]))
        + u64::from(c ^ mask(invert[2]))
        + extra;
    let carry = total >> 32;
    Sum3 { value: total as u32, carry0: carry >= 1, carry1: carry >= 2 }
}

/// IMAD: low 32 bits of `a * b + c`. Signedness does not matter.
#[inline(always)]
pub const fn imad(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_mul(b).wrapping_add(c)
}

/// IMAD.X: low 32 bits of `a * b + c + carry`. A negated `c` is passed inverted.
#[inline(always)]
pub const fn imad_x(a: u32, b: u32, c: u32, carry: bool) -> u32 {
    a.wrapping_mul(b).wrapping_add(c).wrapping_add(carry as u32)
}

/// The full product of two registers.
#[inline(always)]
const fn product(a: u32, b: u32, sign: Sign) -> u64 {
    match sign {
        Sign::Signed => (a as i32 as i64).wrapping_mul(b as i32 as i64) as u64,
        Sign::Unsigned => (a as u64).wrapping_mul(b as u64),
    }
}

/// IMAD.WIDE: `a * b + c` with a 64-bit product, addend and result.
#[inline(always)]
pub const fn imad_wide(a: u32, b: u32, c: u64, sign: Sign) -> u64 {
    product(a, b, sign).wrapping_add(c)
}

/// IMAD.WIDE with carries (`.X`, or a predicate destination): `a * b + c + carry` and the carry out
/// of bit 63. A negated `c` is passed inverted, with `carry` set unless the form is `.X`.
#[inline(always)]
pub const fn imad_wide_carry(a: u32, b: u32, c: u64, carry: bool, sign: Sign) -> (u64, bool) {
    let (sum, first) = product(a, b, sign).overflowing_add(c);
    let (sum, second) = sum.overflowing_add(carry as u64);
    (sum, first | second)
}

/// IMAD.HI: high 32 bits of `a * b + c`. The addend is a register pair (integer division relies
/// on that: its last step adds the reciprocal in the high register of the pair).
#[inline(always)]
pub const fn imad_hi(a: u32, b: u32, c: u64, sign: Sign) -> u32 {
    (product(a, b, sign).wrapping_add(c) >> 32) as u32
}

/// LEA: `(a << shift) + b` and the carry out of bit 31. With `negate` the shifted operand is
/// negated (two's complement, counted in the carry).
#[inline(always)]
pub const fn lea(a: u32, b: u32, shift: u32, negate: bool) -> (u32, bool) {
    let shifted = (a << (shift & 31)) ^ mask(negate);
    let total = shifted as u64 + b as u64 + negate as u64;
    (total as u32, total >> 32 != 0)
}

/// LEA.X: `(a << shift) + b + carry`; with `invert` the shifted operand is inverted.
#[inline(always)]
pub const fn lea_x(a: u32, b: u32, shift: u32, invert: bool, carry: bool) -> (u32, bool) {
    let shifted = (a << (shift & 31)) ^ mask(invert);
    let total = shifted as u64 + b as u64 + carry as u64;
    (total as u32, total >> 32 != 0)
}

/// LEA.HI: the high word of `{high, low} << shift`, plus `b`, and the carry out of bit 31.
///
/// For `.SX32` pass [`sign_fill`] of `low` as `high`. With `negate` the shifted word is negated.
#[inline(always)]
pub const fn lea_hi(low: u32, high: u32, b: u32, shift: u32, negate: bool) -> (u32, bool) {
    lea_hi_x(low, high, b, shift, negate, negate)
}

/// LEA.HI.X: as [`lea_hi`] plus `carry`; with `invert` the shifted word is inverted.
#[inline(always)]
pub const fn lea_hi_x(low: u32, high: u32, b: u32, shift: u32, invert: bool, carry: bool) -> (u32, bool) {
    let pair = (high as u64) << 32 | low as u64;
    let shifted = ((pair << (shift & 31)) >> 32) as u32 ^ mask(invert);
    let total = shifted as u64 + b as u64 + carry as u64;
    (total as u32, total >> 32 != 0)
}

/// 32 copies of the sign bit.
#[inline(always)]
pub const fn sign_fill(a: u32) -> u32 {
    (a as i32 >> 31) as u32
}

/// LOP3.LUT: bit `i` of the result is bit `a_i * 4 + b_i * 2 + c_i` of `table`.
///
/// LOP3's predicate result is `value != 0`.
#[inline(always)]
pub const fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    (mask(table & 0x01 != 0) & !a & !b & !c)
        | (mask(table & 0x02 != 0) & !a & !b & c)
        | (mask(table & 0x04 != 0) & !a & b & !c)
        | (mask(table & 0x08 != 0) & !a & b & c)
        | (mask(table & 0x10 != 0) & a & !b & !c)
        | (mask(table & 0x20 != 0) & a & !b & c)
        | (mask(table & 0x40 != 0) & a & b & !c)
        | (mask(table & 0x80 != 0) & a & b & c)
}

/// PLOP3.LUT: the same table on three predicates. The instruction has two tables, one for each
/// predicate destination.
#[inline(always)]
pub const fn plop3(a: bool, b: bool, c: bool, table: u8) -> bool {
    (table >> ((a as u8) << 2 | (b as u8) << 1 | c as u8)) & 1 != 0
}

/// Direction of SHF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `.L`
    Left,
    /// `.R`
    Right,
}

/// Modifiers of SHF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShiftKind {
    /// `.L` or `.R`.
    pub direction: Direction,
    /// `.S64`/`.U64` instead of `.S32`/`.U32`: the count goes up to 64, else to 32.
    pub wide: bool,
    /// Signed type: a right shift copies the sign of the high word.
    pub sign: Sign,
    /// `.W`: the count is taken modulo 64 or 32 instead of clamped.
    pub wrap: bool,
    /// `.HI`: the high word of the shifted pair is the result, else the low word.
    pub high: bool,
}

/// SHF: funnel shift of the pair `{high, low}`.
#[inline(always)]
pub const fn shf(low: u32, count: u32, high: u32, kind: ShiftKind) -> u32 {
    let limit = if kind.wide { 64 } else { 32 };
    let count = if kind.wrap {
        count & (limit - 1)
    } else if count > limit {
        limit
    } else {
        count
    };
    let pair = (high as u64) << 32 | low as u64;
    // A count of 64 shifts twice by 32.
    let (first, second) = if count > 32 { (32, count - 32) } else { (count, 0) };
    let shifted = match (kind.direction, kind.sign) {
        (Direction::Left, _) => (pair << first) << second,
        (Direction::Right, Sign::Unsigned) => (pair >> first) >> second,
        (Direction::Right, Sign::Signed) => (((pair as i64) >> first) >> second) as u64,
    };
    if kind.high { (shifted >> 32) as u32 } else { shifted as u32 }
}

/// Mode of PRMT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermuteMode {
    /// No modifier: each selector nibble names a byte; its bit 3 spreads that byte's sign instead.
    Index,
    /// `.F4E`: four bytes upwards from the selected one.
    ForwardExtract,
    /// `.B4E`: four bytes downwards from the selected one.
    BackwardExtract,
    /// `.RC8`: the selected byte four times.
    ReplicateByte,
    /// `.ECL`: byte i is the larger of i and the selector.
    EdgeClampLeft,
    /// `.ECR`: byte i is the smaller of i and the selector.
    EdgeClampRight,
    /// `.RC16`: the selected half twice.
    ReplicateHalf,
}

/// PRMT: picks four of the eight bytes of `{b, a}` (byte 0 is the lowest of `a`).
#[inline(always)]
pub const fn prmt(a: u32, selector: u32, b: u32, mode: PermuteMode) -> u32 {
    let bytes = (b as u64) << 32 | a as u64;
    let low = selector & 3;
    let mut result = 0;
    let mut i = 0;
    while i < 4 {
        let (index, spread) = match mode {
            PermuteMode::Index => {
                let nibble = selector >> (4 * i);
                (nibble & 7, nibble & 8 != 0)
            }
            PermuteMode::ForwardExtract => (low + i, false),
            PermuteMode::BackwardExtract => (low.wrapping_sub(i) & 7, false),
            PermuteMode::ReplicateByte => (low, false),
            PermuteMode::EdgeClampLeft => (if i > low { i } else { low }, false),
            PermuteMode::EdgeClampRight => (if i < low { i } else { low }, false),
            PermuteMode::ReplicateHalf => ((low & 1) * 2 + (i & 1), false),
        };
        let byte = (bytes >> (8 * index)) as u32 & 0xff;
        let byte = if spread { mask(byte & 0x80 != 0) & 0xff } else { byte };
        result |= byte << (8 * i);
        i += 1;
    }
    result
}

/// BMSK: ones in `width` bits from bit `start`. With `wrap` (`.W`) both are taken modulo 32,
/// else a start of 32 or more gives 0 and the mask ends at bit 31.
#[inline(always)]
pub const fn bmsk(start: u32, width: u32, wrap: bool) -> u32 {
    let (start, width) = if wrap { (start & 31, width & 31) } else { (start, width) };
    if start >= 32 {
        return 0;
    }
    let ones = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
    ones << start
}

/// SGXT: the low `bits` bits of `a`, sign- or zero-extended. With `wrap` (`.W`) the count is taken
/// modulo 32, else 32 and more leave `a` as it is. No bits give 0.
#[inline(always)]
pub const fn sgxt(a: u32, bits: u32, sign: Sign, wrap: bool) -> u32 {
    let bits = if wrap { bits & 31 } else { bits };
    if bits == 0 {
        return 0;
    }
    if bits >= 32 {
        return a;
    }
    let unused = 32 - bits;
    match sign {
        Sign::Signed => ((a << unused) as i32 >> unused) as u32,
        Sign::Unsigned => (a << unused) >> unused,
    }
}

/// FLO: number of the highest set bit, or with a signed type of the highest bit unlike the sign;
/// 0xffffffff if there is none. With `shift` (`.SH`) the left shift that brings it to bit 31.
#[inline(always)]
pub const fn flo(a: u32, sign: Sign, shift: bool) -> u32 {
    let bits = match sign {
        Sign::Signed => a ^ sign_fill(a),
        Sign::Unsigned => a,
    };
    if bits == 0 {
        u32::MAX
    } else if shift {
        bits.leading_zeros()
    } else {
        31 - bits.leading_zeros()
    }
}

/// POPC: number of set bits.
#[inline(always)]
pub const fn popc(a: u32) -> u32 {
    a.count_ones()
}

/// BREV: bits in reverse order.
#[inline(always)]
pub const fn brev(a: u32) -> u32 {
    a.reverse_bits()
}

/// IABS: absolute value; that of -2^31 is itself.
#[inline(always)]
pub const fn iabs(a: u32) -> u32 {
    (a as i32).wrapping_abs() as u32
}

/// Order of two registers as signed or unsigned numbers.
#[inline(always)]
const fn less(a: u32, b: u32, sign: Sign) -> bool {
    match sign {
        Sign::Signed => (a as i32) < (b as i32),
        Sign::Unsigned => a < b,
    }
}

/// IMNMX, VIMNMX: the smaller operand if `minimum`, else the larger.
#[inline(always)]
pub const fn imnmx(a: u32, b: u32, minimum: bool, sign: Sign) -> u32 {
    if less(a, b, sign) == minimum { a } else { b }
}

/// VIMNMX3: smallest or largest of three; with `relu` not below 0.
#[inline(always)]
pub const fn vimnmx3(a: u32, b: u32, c: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    relu_if(imnmx(imnmx(a, b, minimum, sign), c, minimum, sign), relu)
}

/// VIMNMX3.16x2: smallest or largest of three in each half; with `relu` not below 0.
#[inline(always)]
pub fn vimnmx3_16x2(a: u32, b: u32, c: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    relu_if_16x2(vimnmx_16x2(vimnmx_16x2(a, b, minimum, sign, false), c, minimum, sign, false), relu)
}

/// `.RELU`: a negative result becomes 0.
#[inline(always)]
const fn relu_if(a: u32, relu: bool) -> u32 {
    if relu && (a as i32) < 0 { 0 } else { a }
}

/// `.RELU` on both 16-bit halves.
#[inline(always)]
fn relu_if_16x2(a: u32, relu: bool) -> u32 {
    if relu { halves(a, 0, Sign::Signed, |x, _| relu_if(x, true)) } else { a }
}

/// VIMNMX with `.RELU` where `relu` says so: as [`imnmx`], but not below 0.
#[inline(always)]
pub const fn vimnmx(a: u32, b: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    relu_if(imnmx(a, b, minimum, sign), relu)
}

/// Applies `f` to both 16-bit halves, sign- or zero-extended to 32 bits.
#[inline(always)]
fn halves(a: u32, b: u32, sign: Sign, f: impl Fn(u32, u32) -> u32) -> u32 {
    let extend = |x: u32| match sign {
        Sign::Signed => x as i16 as i32 as u32,
        Sign::Unsigned => x & 0xffff,
    };
    f(extend(a), extend(b)) & 0xffff | f(extend(a >> 16), extend(b >> 16)) << 16
}

/// VIMNMX.16x2: minimum or maximum of each half; with `relu` not below 0.
#[inline(always)]
pub fn vimnmx_16x2(a: u32, b: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    relu_if_16x2(halves(a, b, sign, |x, y| imnmx(x, y, minimum, sign)), relu)
}

/// VIADD: `a + b`, wrapping.
#[inline(always)]
pub const fn viadd(a: u32, b: u32) -> u32 {
    a.wrapping_add(b)
}

/// VIADD.16x2: each half by itself, wrapping.
#[inline(always)]
pub fn viadd_16x2(a: u32, b: u32) -> u32 {
    halves(a, b, Sign::Unsigned, u32::wrapping_add)
}

/// The negative of each half by itself, wrapping: `-R` as a source of `.16x2`.
#[inline(always)]
pub fn negate_16x2(a: u32) -> u32 {
    halves(0, a, Sign::Unsigned, u32::wrapping_sub)
}

/// VIADDMNMX: minimum or maximum of the wrapped `a + b` and `c`; with `relu` not below 0.
#[inline(always)]
pub const fn viaddmnmx(a: u32, b: u32, c: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    relu_if(imnmx(a.wrapping_add(b), c, minimum, sign), relu)
}

/// VIADDMNMX.16x2: the same in each half.
#[inline(always)]
pub fn viaddmnmx_16x2(a: u32, b: u32, c: u32, minimum: bool, sign: Sign, relu: bool) -> u32 {
    vimnmx_16x2(viadd_16x2(a, b), c, minimum, sign, relu)
}

/// ISETP without `.EX`: the comparison alone. [`Boolean::both`] makes the two predicates of it.
#[inline(always)]
pub const fn compare(a: u32, b: u32, comparison: IntegerCompare, sign: Sign) -> bool {
    let relation = less(a, b, sign) as u8 | ((a == b) as u8) << 1 | (less(b, a, sign) as u8) << 2;
    comparison as u8 & relation != 0
}

/// ISETP.EX: the high words of a 64-bit comparison, given the result of the same comparison of the
/// low words. Unequal high words decide; equal ones hand `low` on.
#[inline(always)]
pub const fn compare_ex(a: u32, b: u32, comparison: IntegerCompare, sign: Sign, low: bool) -> bool {
    match comparison {
        IntegerCompare::F => false,
        IntegerCompare::T => true,
        _ if a == b => low,
        _ => compare(a, b, comparison, sign),
    }
}

/// ISETP: both predicates.
#[inline(always)]
pub const fn isetp(
    a: u32,
    b: u32,
    comparison: IntegerCompare,
    sign: Sign,
    boolean: Boolean,
    predicate: bool,
) -> (bool, bool) {
    boolean.both(compare(a, b, comparison, sign), predicate)
}

/// Byte `index` of a register as a number.
#[inline(always)]
const fn byte(a: u32, index: u32, sign: Sign) -> i32 {
    let bits = (a >> (8 * index)) as u8;
    match sign {
        Sign::Signed => bits as i8 as i32,
        Sign::Unsigned => bits as i32,
    }
}

/// Half `index` of a register as a number.
#[inline(always)]
const fn half(a: u32, index: u32, sign: Sign) -> i32 {
    let bits = (a >> (16 * index)) as u16;
    match sign {
        Sign::Signed => bits as i16 as i32,
        Sign::Unsigned => bits as i32,
    }
}

/// IDP.4A: `c` plus the dot product of four bytes and four bytes, wrapping.
#[inline(always)]
pub const fn idp_4a(a: u32, b: u32, c: u32, sign_a: Sign, sign_b: Sign) -> u32 {
    let sum = byte(a, 0, sign_a) * byte(b, 0, sign_b)
        + byte(a, 1, sign_a) * byte(b, 1, sign_b)
        + byte(a, 2, sign_a) * byte(b, 2, sign_b)
        + byte(a, 3, sign_a) * byte(b, 3, sign_b);
    c.wrapping_add(sum as u32)
}

/// IDP.2A: `c` plus the dot product of the two halves of `a` with two bytes of `b`, the low ones or
/// with `high` (`.HI`) the high ones, wrapping.
#[inline(always)]
pub const fn idp_2a(a: u32, b: u32, c: u32, high: bool, sign_a: Sign, sign_b: Sign) -> u32 {
    let first = if high { 2 } else { 0 };
    let sum = half(a, 0, sign_a) * byte(b, first, sign_b) + half(a, 1, sign_a) * byte(b, first + 1, sign_b);
    c.wrapping_add(sum as u32)
}

/// VABSDIFF: `|a - b| + c`, wrapping.
#[inline(always)]
pub const fn vabsdiff(a: u32, b: u32, c: u32, sign: Sign) -> u32 {
    let difference = if less(a, b, sign) { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
    difference.wrapping_add(c)
}

/// VABSDIFF4: `|a - b|` of each byte; with `accumulate` (`.ACC`) their sum plus `c`.
#[inline(always)]
pub const fn vabsdiff4(a: u32, b: u32, c: u32, sign: Sign, accumulate: bool) -> u32 {
    let d0 = byte(a, 0, sign).abs_diff(byte(b, 0, sign));
    let d1 = byte(a, 1, sign).abs_diff(byte(b, 1, sign));
    let d2 = byte(a, 2, sign).abs_diff(byte(b, 2, sign));
    let d3 = byte(a, 3, sign).abs_diff(byte(b, 3, sign));
    if accumulate { c.wrapping_add(d0 + d1 + d2 + d3) } else { d0 | d1 << 8 | d2 << 16 | d3 << 24 }
}

/// I2I with `.SAT`: clamps a number of type `from` to type `to`; the result is extended to the
/// register by `to`'s signedness.
#[inline(always)]
pub fn i2i_sat(a: u32, from: IntegerType, to: IntegerType) -> u32 {
    let (smallest, largest) = to.range();
    from.value(u64::from(a)).clamp(smallest, largest) as u32
}

/// I2I without `.SAT`: keeps the low bits of `to`'s width, extended by its signedness.
#[inline(always)]
pub const fn i2i(a: u32, from: IntegerType, to: IntegerType) -> u32 {
    to.value(from.value(a as u64) as u64) as u32
}

/// I2IP.SAT: clamps two 32-bit numbers to `bits` (16, 8, 4 or 2) of the given signedness and packs them: `a` above
/// `b`, and the low bits of `c` above both as far as they fit. Of 16 bits nothing of `c` is left.
#[inline(always)]
pub fn i2ip(a: u32, b: u32, c: u32, bits: u32, sign: Sign) -> u32 {
    let (smallest, largest) = match sign {
        Sign::Signed => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        Sign::Unsigned => (0, (1i64 << bits) - 1),
    };
    let clamp = |x: u32| i64::from(x as i32).clamp(smallest, largest) as u32 & ((1 << bits) - 1);
    let above = (u64::from(c) << (2 * bits)) as u32;
    above | clamp(a) << bits | clamp(b)
}

/// PLOP3.LUT of register signs (`R.SIGN`): [`plop3`] on the sign bits.
#[inline(always)]
pub const fn plop3_sign(a: u32, b: u32, c: u32, table: u8) -> bool {
    plop3((a as i32) < 0, (b as i32) < 0, (c as i32) < 0, table)
}
