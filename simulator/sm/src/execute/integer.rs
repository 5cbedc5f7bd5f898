//! Integer arithmetic, logic and shifts.

use sass::lane::integer::{self, Direction, PermuteMode, ShiftKind};
use sass::lane::{IntegerCompare, IntegerType, Sign, Width};

#[cfg(target_arch = "x86_64")]
use super::super::avx2;
use super::super::core::Core;
use super::super::lanes::{LANES, ballot, bit, map};
use super::super::micro::{Flow, Level, Micro};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::{called::called, emit, plan::Linear};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::called_lanes;
use super::handlers;

#[inline(always)]
const fn sign(signed: bool) -> Sign {
    if signed { Sign::Signed } else { Sign::Unsigned }
}

/// A bit of [`Micro::extra`].
#[inline(always)]
const fn flag(op: &Micro, position: u32) -> bool {
    op.extra >> position & 1 != 0
}

/// All ones for a bit of [`Micro::extra`] that is set.
#[inline(always)]
const fn ones(op: &Micro, position: u32) -> u32 {
    (op.extra as u32 >> position & 1).wrapping_neg()
}

/// What VIMNMX, VIMNMX3 and VIADDMNMX have in [`Micro::extra`]: sign, whether of halves, `.RELU`.
#[inline(always)]
const fn video(op: &Micro) -> (Sign, bool, bool) {
    (sign(flag(op, 0)), flag(op, 1), flag(op, 2))
}

/// Writes both predicates of a comparison.
#[inline(always)]
pub(super) fn put_comparison(core: &mut Core<'_>, op: &Micro, mask: u32, truth: u32) -> Flow {
    let with = core.predicate(op.from[0]);
    let both = |truth: u32| match op.extra & 3 {
        0 => truth & with,
        1 => truth | with,
        _ => truth ^ with,
    };
    core.put_predicate(op.to[0], mask, both(truth));
    core.put_predicate(op.to[1], mask, both(!truth));
    Flow::Next
}

/// A shift's modifiers in a payload.
pub(crate) fn shift_code(kind: ShiftKind) -> u64 {
    let flags =
        [kind.direction == Direction::Right, kind.wide, kind.sign == Sign::Signed, kind.wrap, kind.high];
    flags.iter().enumerate().fold(0, |code, (i, flag)| code | u64::from(*flag) << i)
}

#[inline(always)]
pub(crate) const fn shift_kind(code: u64) -> ShiftKind {
    ShiftKind {
        direction: if code & 1 != 0 { Direction::Right } else { Direction::Left },
        wide: code & 2 != 0,
        sign: sign(code & 4 != 0),
        wrap: code & 8 != 0,
        high: code & 16 != 0,
    }
}

const PERMUTE: [PermuteMode; 7] = [
    PermuteMode::Index,
    PermuteMode::ForwardExtract,
    PermuteMode::BackwardExtract,
    PermuteMode::ReplicateByte,
    PermuteMode::EdgeClampLeft,
    PermuteMode::EdgeClampRight,
    PermuteMode::ReplicateHalf,
];

/// PRMT's mode in a payload.
pub(crate) fn permute_code(mode: PermuteMode) -> u64 {
    PERMUTE.iter().position(|known| *known == mode).unwrap_or(0) as u64
}

/// 64-bit products and sums of IMAD.WIDE and IMAD.HI, and the lanes that carry.
#[inline(always)]
fn wide_carry<L: Level>(core: &Core<'_>, op: &Micro) -> ([u64; LANES], u32) {
    let (flip, extended, sign) = (flag(op, 0), flag(op, 1), sign(flag(op, 2)));
    let p = core.predicate(op.from[0]);
    let (a, b, c) = (core.row(op.a), core.row(op.b), core.pair(op.c));
    let mut out = [0; LANES];
    let mut carries = [0; LANES];
    for i in 0..LANES {
        let c = if flip { !c[i] } else { c[i] };
        let carry = if extended { bit(p, i) } else { flip };
        let (v, over) = integer::imad_wide_carry(a[i], b[i], c, carry, sign);
        out[i] = v;
        carries[i] = u32::from(over).wrapping_neg();
    }
    (out, L::signs(&carries))
}

#[inline(always)]
fn prmt(op: &Micro, a: u32, b: u32, c: u32) -> u32 {
    integer::prmt(a, b, c, PERMUTE[op.payload as usize % PERMUTE.len()])
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
called_lanes! {
    Prmt = |op, [a, b, c]| prmt(op, a, b, c), reads [true, true, true];
    Popc = |op, [_a, b, _c]| integer::popc(b ^ ones(op, 0)), reads [false, true, false];
    Brev = |_op, [_a, b, _c]| b.reverse_bits(), reads [false, true, false];
}

handlers! {
    /// Copies a register.
    Move [emit::copy, linear Linear::Copy] = |core, op| core.rows3(op, |_, b, _| *b);
    /// `a + b`.
    Add [emit::add, linear Linear::Sum] = |core, op| core.team2(op, |a, b| a.wrapping_add(b));
    /// `a - b`.
    Subtract [emit::subtract, linear Linear::Difference] = |core, op| core.team2(op, |a, b| a.wrapping_sub(b));
    /// `a + b + c`.
    Add3 [emit::add3, linear Linear::SumOfThree] = |core, op| core.team3(op, |a, b, c| a.wrapping_add(b).wrapping_add(c));
    /// `a + b + c`, each negated where `extra` says so.
    Add3Negated [emit::add3_negated, linear Linear::SumOfThree] = |core, op| {
        let (x, y, z) = (ones(op, 0), ones(op, 1), ones(op, 2));
        let extra = op.extra.count_ones();
        core.team3(op, |a, b, c| {
            (a ^ x).wrapping_add(b ^ y).wrapping_add(c ^ z).wrapping_add(extra)
        })
    };
    /// `a + b` with the carry.
    AddCarry [emit::add_carry_out] = |core, op, mask| {
        let (a, b) = (core.row(op.a), core.row(op.b));
        let (mut out, mut carry) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            out[i] = a[i].wrapping_add(b[i]);
            carry[i] = u32::from(out[i] < b[i]).wrapping_neg();
        }
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, L::signs(&carry));
        core.put_predicate(op.to[1], mask, 0);
        Flow::Next
    };
    /// IADD3.X without carries out.
    Add3Extended [emit::add3_extended] = |core, op, mask| {
        let (p, q) = (core.predicate(op.from[0]), core.predicate(op.from[1]));
        let (x, y, z) = (ones(op, 0), ones(op, 1), ones(op, 2));
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            let carry = (p >> i & 1) + (q >> i & 1);
            out[i] = (a[i] ^ x).wrapping_add(b[i] ^ y).wrapping_add(c[i] ^ z).wrapping_add(carry);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// IADD3 and IADD3.X with everything.
    Add3Carry<const EXTENDED: bool> [emit::add3_carry::<EXTENDED>] = |core, op, mask| {
        let flip = [flag(op, 0), flag(op, 1), flag(op, 2)];
        let (p, q) = (core.predicate(op.from[0]), core.predicate(op.from[1]));
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        let (mut first, mut second) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            let sum = if EXTENDED {
                integer::iadd3_x(a[i], b[i], c[i], flip, [bit(p, i), bit(q, i)])
            } else {
                integer::iadd3(a[i], b[i], c[i], flip)
            };
            out[i] = sum.value;
            first[i] = u32::from(sum.carry0).wrapping_neg();
            second[i] = u32::from(sum.carry1).wrapping_neg();
        }
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, L::signs(&first));
        core.put_predicate(op.to[1], mask, L::signs(&second));
        Flow::Next
    };
    /// `a * b`.
    Mul [emit::multiply, linear Linear::Product] = |core, op| core.team2(op, |a, b| a.wrapping_mul(b));
    /// `a * b + c`.
    Mad [emit::multiply_add, linear Linear::ProductSum] = |core, op| core.team3(op, |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    /// `a * b - c`.
    MadNegated [emit::multiply_subtract] = |core, op| core.team3(op, |a, b, c| a.wrapping_mul(b).wrapping_sub(c));
    /// IMAD.X.
    MadExtended [emit::multiply_extended] = |core, op, mask| {
        let flip = ones(op, 0);
        let p = core.predicate(op.from[0]);
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = integer::imad_x(a[i], b[i], c[i] ^ flip, bit(p, i));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// `a * b + c` in 64 bits.
    MadWide<const SIGNED: bool> [emit::multiply_wide::<SIGNED>, linear Linear::Wide { signed: SIGNED }] = |core, op, mask| {
        let (a, b) = (core.row(op.a), core.row(op.b));
        let (low, high) = (core.row(op.c), core.row(op.c.plus(1)));
        #[cfg(target_arch = "x86_64")]
        if L::AVX2 {
            // SAFETY: the processor has the feature.
            let [low, high] = unsafe { avx2::multiply_wide::<SIGNED>(a, b, [low, high]) };
            core.put(op.d, mask, &low);
            core.put(op.d.plus(1), mask, &high);
            return Flow::Next;
        }
        let mut out = [[0; LANES]; 2];
        for i in 0..LANES {
            let c = u64::from(low[i]) | u64::from(high[i]) << 32;
            let v = integer::imad_wide(a[i], b[i], c, sign(SIGNED));
            out[0][i] = v as u32;
            out[1][i] = (v >> 32) as u32;
        }
        core.put(op.d, mask, &out[0]);
        core.put(op.d.plus(1), mask, &out[1]);
        Flow::Next
    };
    /// IMAD.WIDE with carries, or with the addend negated.
    MadWideCarry = |core, op, mask| {
        let (out, carries) = wide_carry::<L>(core, op);
        core.put_pair(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, carries);
        Flow::Next
    };
    /// IMAD.HI without carries, and with its addend as it is.
    MadHighPlain<const SIGNED: bool> [emit::multiply_high::<SIGNED>] = |core, op, mask| {
        let (out, _) = wide_carry::<L>(core, op);
        core.put(op.d, mask, &map(&out, |v| (v >> 32) as u32));
        Flow::Next
    };
    /// IMAD.HI.
    MadHigh = |core, op, mask| {
        let (out, carries) = wide_carry::<L>(core, op);
        core.put(op.d, mask, &map(&out, |v| (v >> 32) as u32));
        core.put_predicate(op.to[0], mask, carries);
        Flow::Next
    };
    /// ISETP.
    Isetp<const COMPARE: u32, const SIGNED: bool> [emit::compare_integers::<COMPARE, SIGNED>, linear Linear::Comparison { code: COMPARE, signed: SIGNED }] = |core, op, mask| {
        let (a, b) = (core.row(op.a), core.row(op.b));
        let compare = IntegerCompare::from_code(COMPARE);
        let truth = L::ballot(|i| integer::compare(a[i], b[i], compare, sign(SIGNED)));
        put_comparison(core, op, mask, truth)
    };
    /// ISETP.EX.
    IsetpExtended [emit::compare_extended] = |core, op, mask| {
        let (a, b) = (core.row(op.a), core.row(op.b));
        let low = core.predicate(op.from[1]);
        let compare = IntegerCompare::from_code(op.payload as u32 & 7);
        let sign = sign(op.payload & 0x100 != 0);
        let truth = ballot(|i| integer::compare_ex(a[i], b[i], compare, sign, bit(low, i)));
        put_comparison(core, op, mask, truth)
    };
    /// IMNMX.
    Imnmx<const SIGNED: bool> [emit::minimum_maximum::<SIGNED>] = |core, op, mask| {
        let minimum = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = integer::imnmx(a[i], b[i], bit(minimum, i), sign(SIGNED));
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// IABS.
    Iabs [emit::absolute] = |core, op| core.team1(op, |b| (b as i32).wrapping_abs() as u32);
    /// BREV.
    Brev [called::<Brev>, apart true] = |core, op| core.team1(op, |b| b.reverse_bits());
    /// POPC.
    Popc [called::<Popc>, apart true] = |core, op| {
        let flip = ones(op, 0);
        core.team1(op, |v| integer::popc(v ^ flip))
    };
    /// FLO.
    Flo = |core, op, mask| {
        let (flip, sign, shift) = (ones(op, 0), sign(flag(op, 1)), flag(op, 2));
        let b = core.row(op.b);
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = integer::flo(b[i] ^ flip, sign, shift);
        }
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, ballot(|i| out[i] != u32::MAX));
        Flow::Next
    };
    /// `a & b`.
    And [emit::and] = |core, op| core.team2(op, |a, b| a & b);
    /// `a | b`.
    Or [emit::or] = |core, op| core.team2(op, |a, b| a | b);
    /// `a ^ b`.
    Xor [emit::xor] = |core, op| core.team2(op, |a, b| a ^ b);
    /// `a ^ b ^ c`.
    Xor3 [emit::xor3] = |core, op| core.team3(op, |a, b, c| a ^ b ^ c);
    /// LOP3.
    Lop3 [emit::logic] = |core, op| {
        let table = op.payload as u8;
        core.team3(op, |a, b, c| integer::lop3(a, b, c, table))
    };
    /// LOP3 with a predicate.
    Lop3Predicate [emit::logic_predicate] = |core, op, mask| {
        let table = op.payload as u8;
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = integer::lop3(a[i], b[i], c[i], table);
        }
        let set = L::ballot(|i| out[i] != 0) | core.predicate(op.from[0]);
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, set);
        Flow::Next
    };
    /// SHF with everything.
    Shf = |core, op| {
        let kind = shift_kind(op.payload);
        core.team3(op, |a, b, c| integer::shf(a, b, c, kind))
    };
    /// The same of a pair that is shifted by 32 at most.
    ShfWord [emit::shift_words] = |core, op| {
        let kind = shift_kind(op.payload);
        core.team3(op, |a, b, c| integer::shf(a, b, c, kind))
    };
    /// The low word of the pair `{c, a}`, shifted left by less than 32.
    ShiftLeft [emit::shift_left, linear Linear::Shifted] = |core, op| {
        let count = op.payload as u32 & 31;
        core.rows3(op, |a, _, _| map(a, |a| a << count))
    };
    /// The high word of the pair, shifted right by less than 32.
    ShiftRight [emit::shift_right] = |core, op| {
        let count = op.payload as u32 & 31;
        core.rows3(op, |_, _, c| map(c, |c| c >> count))
    };
    /// The same with sign.
    ShiftRightSigned [emit::shift_right_signed] = |core, op| {
        let count = op.payload as u32 & 31;
        core.rows3(op, |_, _, c| map(c, |c| (c as i32 >> count) as u32))
    };
    /// The high word of the pair, shifted left by 1 to 31.
    FunnelLeft [emit::funnel_left] = |core, op| {
        let count = op.payload as u32 & 31;
        core.team3(op, |a, _, c| c << count | a >> ((32 - count) & 31))
    };
    /// The low word of the pair, shifted right by 1 to 31.
    FunnelRight [emit::funnel_right] = |core, op| {
        let count = op.payload as u32 & 31;
        core.team3(op, |a, _, c| a >> count | c << ((32 - count) & 31))
    };
    /// `(a << n) + b`.
    LeaPlain [emit::scaled_add, linear Linear::Scaled] = |core, op| {
        let count = op.payload as u32 & 31;
        core.team2(op, |a, b| (a << count).wrapping_add(b))
    };
    /// LEA with everything.
    Lea [emit::scaled_add_carry] = |core, op, mask| {
        let shift = op.payload as u32;
        let (negate, negate_b) = (flag(op, 0), flag(op, 1));
        let (high, extended, sign_extend) = (flag(op, 2), flag(op, 3), flag(op, 4));
        let p = core.predicate(op.from[0]);
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let mut out = [0; LANES];
        let mut carry = [0; LANES];
        for i in 0..LANES {
            // A negated addend is its complement and a carry in, which shows in the carry out (measured on H200).
            let b = if negate_b { !b[i] } else { b[i] };
            let carry_in = if extended { bit(p, i) } else { negate || negate_b };
            let upper = if sign_extend { integer::sign_fill(a[i]) } else { c[i] };
            let (v, over) = if high {
                integer::lea_hi_x(a[i], upper, b, shift, negate, carry_in)
            } else {
                integer::lea_x(a[i], b, shift, negate, carry_in)
            };
            out[i] = v;
            carry[i] = u32::from(over).wrapping_neg();
        }
        core.put(op.d, mask, &out);
        core.put_predicate(op.to[0], mask, L::signs(&carry));
        Flow::Next
    };
    /// PRMT.
    Prmt [called::<Prmt>, apart true] = |core, op| core.team3(op, |a, b, c| prmt(op, a, b, c));
    /// BMSK.
    Bmsk = |core, op| {
        let wrap = flag(op, 0);
        core.team2(op, |a, b| integer::bmsk(a, b, wrap))
    };
    /// SGXT.
    Sgxt = |core, op| {
        let (wrap, sign) = (flag(op, 0), sign(flag(op, 1)));
        core.team2(op, |a, b| integer::sgxt(a, b, sign, wrap))
    };
    /// IDP.4A.
    Idp4 = |core, op| {
        let (sign_a, sign_b) = (sign(flag(op, 0)), sign(flag(op, 1)));
        let negate = flag(op, 2);
        core.team3(op, |a, b, c| integer::idp_4a(a, b, if negate { c.wrapping_neg() } else { c }, sign_a, sign_b))
    };
    /// IDP.2A.
    Idp2<const HIGH: bool> = |core, op| {
        let (sign_a, sign_b) = (sign(flag(op, 0)), sign(flag(op, 1)));
        let negate = flag(op, 2);
        core.team3(op, |a, b, c| integer::idp_2a(a, b, if negate { c.wrapping_neg() } else { c }, HIGH, sign_a, sign_b))
    };
    /// VIADD.16x2.
    ViaddPacked = |core, op, mask| {
        let negate = flag(op, 0);
        core.map2_slow(op, mask, |a, b| integer::viadd_16x2(a, if negate { integer::negate_16x2(b) } else { b }))
    };
    /// VIMNMX of halves, or with `.RELU`.
    Vimnmx = |core, op, mask| {
        let (sign, packed, relu) = video(op);
        let minimum = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let function = if packed { integer::vimnmx_16x2 } else { integer::vimnmx };
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = function(a[i], b[i], bit(minimum, i), sign, relu);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// VIMNMX with predicates: whether the first source is the result, for the low half and the high one, or twice for one
    /// number (measured on H200).
    VimnmxWhich = |core, op, mask| {
        let (sign, packed, relu) = video(op);
        let minimum = core.predicate(op.from[0]);
        let (a, b) = (core.row(op.a), core.row(op.b));
        let (mut out, mut which) = ([0; LANES], [[false; 2]; LANES]);
        for i in 0..LANES {
            let least = bit(minimum, i);
            let first = |a: u32, b: u32, lost: u32| {
                let number = |v: u32| match sign {
                    Sign::Signed => i64::from((v << lost) as i32),
                    Sign::Unsigned => i64::from(v << lost),
                };
                let (a, b) = (number(a), number(b));
                let found = if least { a.min(b) } else { a.max(b) };
                a == if relu { found.max(0) } else { found }
            };
            if packed {
                out[i] = integer::vimnmx_16x2(a[i], b[i], least, sign, relu);
                which[i] = [first(a[i], b[i], 16), first(a[i] >> 16, b[i] >> 16, 16)];
            } else {
                out[i] = integer::vimnmx(a[i], b[i], least, sign, relu);
                which[i] = [first(a[i], b[i], 0); 2];
            }
        }
        core.put(op.d, mask, &out);
        for (half, to) in op.to.into_iter().enumerate() {
            core.put_predicate(to, mask, ballot(|i| which[i][half]));
        }
        Flow::Next
    };
    /// VIMNMX3.
    Vimnmx3 = |core, op, mask| {
        let (sign, packed, relu) = video(op);
        let minimum = core.predicate(op.from[0]);
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let function = if packed { integer::vimnmx3_16x2 } else { integer::vimnmx3 };
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = function(a[i], b[i], c[i], bit(minimum, i), sign, relu);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// VIADDMNMX.
    Viaddmnmx = |core, op, mask| {
        let (sign, packed, relu) = video(op);
        let negate = flag(op, 3);
        let minimum = core.predicate(op.from[0]);
        let (a, b, c) = (core.row(op.a), core.row(op.b), core.row(op.c));
        let function = if packed { integer::viaddmnmx_16x2 } else { integer::viaddmnmx };
        let mut out = [0; LANES];
        for i in 0..LANES {
            let b = match (negate, packed) {
                (false, _) => b[i],
                (true, false) => b[i].wrapping_neg(),
                (true, true) => integer::negate_16x2(b[i]),
            };
            out[i] = function(a[i], b, c[i], bit(minimum, i), sign, relu);
        }
        core.put(op.d, mask, &out);
        Flow::Next
    };
    /// VABSDIFF.
    Vabsdiff = |core, op| {
        let sign = sign(flag(op, 0));
        core.team3(op, |a, b, c| integer::vabsdiff(a, b, c, sign))
    };
    /// VABSDIFF4.
    Vabsdiff4 = |core, op| {
        let (sign, accumulate) = (sign(flag(op, 0)), flag(op, 1));
        core.team3(op, |a, b, c| integer::vabsdiff4(a, b, c, sign, accumulate))
    };
    /// I2I.SAT.
    I2i = |core, op| {
        let width = if op.payload == 8 { Width::B8 } else { Width::B16 };
        let to = IntegerType { width, sign: sign(flag(op, 0)) };
        core.team1(op, |v| integer::i2i_sat(v, IntegerType::S32, to))
    };
    /// I2IP.SAT.
    I2ip = |core, op, mask| {
        let (sign, width, shift) = (sign(flag(op, 0)), op.payload as u32 & 31, op.payload >> 8 & 31);
        core.map3_slow(op, mask, |a, b, c| integer::i2ip(a, b, c >> shift, width.max(1), sign))
    };
}
