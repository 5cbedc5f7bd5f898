//! Conversions.

use sass::lane::convert::{self, FloatFormat, Fp8, Tf32Rounding};
use sass::lane::half::{self, HalfFormat};
use sass::lane::{IntegerType, Rounding, Sign, Width};

use super::super::core::Core;
use super::super::lanes::{LANES, bit, map};
use super::super::micro::{Flow, Micro};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::super::native::{called::called, emit};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::called_lanes;
use super::float::marks;
use super::handlers;

const FLOATS: [FloatFormat; 4] = [FloatFormat::F16, FloatFormat::Bf16, FloatFormat::F32, FloatFormat::F64];
const WIDTHS: [Width; 4] = [Width::B8, Width::B16, Width::B32, Width::B64];

/// What a conversion reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formats {
    pub float: FloatFormat,
    /// F2F's result.
    pub other: FloatFormat,
    pub integer: IntegerType,
    pub rounding: Rounding,
    pub flushes: bool,
    /// Bits of the register below the part that is read.
    pub shift: u64,
}

impl Formats {
    /// To be overwritten in part.
    pub const NONE: Self = Self {
        float: FloatFormat::F32,
        other: FloatFormat::F32,
        integer: IntegerType::U32,
        rounding: Rounding::Nearest,
        flushes: false,
        shift: 0,
    };

    /// As a payload.
    pub fn code(self) -> u64 {
        let float = |format| FLOATS.iter().position(|known| *known == format).unwrap_or(2) as u64;
        let width = WIDTHS.iter().position(|known| *known == self.integer.width).unwrap_or(2) as u64;
        let rounding = Rounding::ALL.iter().position(|known| *known == self.rounding).unwrap_or(0) as u64;
        float(self.float)
            | float(self.other) << 2
            | width << 4
            | u64::from(self.integer.sign == Sign::Signed) << 6
            | rounding << 7
            | u64::from(self.flushes) << 9
            | self.shift << 10
    }

    #[inline(always)]
    fn of(code: u64) -> Self {
        let sign = if code >> 6 & 1 != 0 { Sign::Signed } else { Sign::Unsigned };
        Self {
            float: FLOATS[(code & 3) as usize],
            other: FLOATS[(code >> 2 & 3) as usize],
            integer: IntegerType { width: WIDTHS[(code >> 4 & 3) as usize], sign },
            rounding: Rounding::from_code((code >> 7) as u32),
            flushes: code >> 9 & 1 != 0,
            shift: code >> 10,
        }
    }
}

/// F2FP's modifiers as a payload.
pub(crate) fn pack_code(format: HalfFormat, rounding: Rounding, relu: bool) -> u64 {
    let rounding = Rounding::ALL.iter().position(|known| *known == rounding).unwrap_or(0) as u64;
    rounding | u64::from(format == HalfFormat::Bf16) << 2 | u64::from(relu) << 3
}

/// An 8-bit format and `.RELU` as a payload.
pub(crate) fn fp8_code(format: Fp8, relu: bool) -> u64 {
    u64::from(format == Fp8::E5M2) | u64::from(relu) << 1
}

/// The same, and how far to shift down the half that is read.
#[inline(always)]
fn fp8(payload: u64) -> (Fp8, bool, u32) {
    let format = if payload & 1 != 0 { Fp8::E5M2 } else { Fp8::E4M3 };
    (format, payload & 2 != 0, (payload >> 8 & 31) as u32)
}

/// The second source as a number of that format, marks applied.
#[inline(always)]
fn source(core: &Core<'_>, op: &Micro, format: FloatFormat, shift: u64) -> [u64; LANES] {
    match format {
        FloatFormat::F64 => super::double::source(core, op.b, op.extra.into(), 1),
        _ => map(core.row(op.b), |v| narrow_source(op, format, shift, v)),
    }
}

/// The same of a lane, of a format of at most 32 bits.
#[inline(always)]
fn narrow_source(op: &Micro, format: FloatFormat, shift: u64, v: u32) -> u64 {
    if format == FloatFormat::F32 {
        let (keep, flip) = marks(op.extra.into(), 1);
        // Widened, a NaN keeps its sign (measured on H200).
        let widens = Formats::of(op.payload).other == FloatFormat::F64;
        let nan = v & 0x7fff_ffff > 0x7f80_0000;
        return u64::from(if widens && nan { v } else { (v & keep) ^ flip });
    }
    let (negate, absolute) = (op.extra >> 1 & 1 != 0, op.extra >> 4 & 1 != 0);
    u64::from(half::modify(((v >> shift) as u16, 0), absolute, negate).0)
}

#[inline(always)]
fn f2i(op: &Micro, v: u64) -> u64 {
    let f = Formats::of(op.payload);
    convert::f2i_nan(v, f.float, f.integer, f.rounding, f.flushes, op.extra & 0x80 != 0)
}

#[inline(always)]
fn i2f(op: &Micro, v: u64) -> u64 {
    let f = Formats::of(op.payload);
    convert::i2f(v >> f.shift, f.integer, f.float, f.rounding)
}

#[inline(always)]
fn f2f(op: &Micro, v: u64) -> u64 {
    let f = Formats::of(op.payload);
    convert::f2f(v, f.float, f.other, f.rounding, f.flushes)
}

#[inline(always)]
fn frnd(op: &Micro, v: u64) -> u64 {
    let f = Formats::of(op.payload);
    convert::frnd(v, f.float, f.rounding, f.flushes)
}

#[inline(always)]
fn f2fp(op: &Micro, a: u32, b: u32) -> u32 {
    let format = if op.payload & 4 != 0 { HalfFormat::Bf16 } else { HalfFormat::F16 };
    let (rounding, relu) = (Rounding::from_code(op.payload as u32), op.payload & 8 != 0);
    convert::f2fp_pack(a, b, format, rounding, relu)
}

/// The source of a conversion that reads one register.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
fn one_register(op: &Micro, v: u32) -> u64 {
    let f = Formats::of(op.payload);
    narrow_source(op, f.float, f.shift, v)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
called_lanes! {
    F2i<false> = |op, [_a, b, _c]| f2i(op, one_register(op, b)) as u32, reads [false, true, false];
    I2f<false> = |op, [_a, b, _c]| i2f(op, b.into()) as u32, reads [false, true, false];
    F2f<false> = |op, [_a, b, _c]| f2f(op, one_register(op, b)) as u32, reads [false, true, false];
    Frnd<false> = |op, [_a, b, _c]| frnd(op, one_register(op, b)) as u32, reads [false, true, false];
    F2fp = |op, [a, b, _c]| f2fp(op, a, b), reads [true, true, false];
}

#[inline(always)]
fn each(v: &[u64; LANES], mask: u32, f: impl Fn(u64) -> u64) -> [u64; LANES] {
    let mut out = [0; LANES];
    for i in 0..LANES {
        if bit(mask, i) {
            out[i] = f(v[i]);
        }
    }
    out
}

handlers! {
    /// F2I. `WIDE`, here and below: one of both is a pair of registers.
    F2i<const WIDE: bool> [called::<F2i<false>>, apart true, if !WIDE] = |core, op, mask| {
        let f = Formats::of(op.payload);
        let v = source(core, op, f.float, f.shift);
        let out = each(&v, mask, |v| f2i(op, v));
        core.put_sized(op.d, mask, &out, f.integer.width == Width::B64);
        Flow::Next
    };
    /// I2F.
    I2f<const WIDE: bool> [called::<I2f<false>>, apart true, if !WIDE] = |core, op, mask| {
        let f = Formats::of(op.payload);
        let v = core.sized(op.b, f.integer.width == Width::B64);
        let out = each(&v, mask, |v| i2f(op, v));
        core.put_sized(op.d, mask, &out, f.float == FloatFormat::F64);
        Flow::Next
    };
    /// I2F from 32 bits to FP32, to nearest.
    I2fFast<const SIGNED: bool> [emit::float_of_integer::<SIGNED>] = |core, op| {
        let sign = if SIGNED { Sign::Signed } else { Sign::Unsigned };
        core.team1(op, |v| convert::i2f_f32(v, sign))
    };
    /// F2F.
    F2f<const WIDE: bool> [called::<F2f<false>>, apart true, if !WIDE] = |core, op, mask| {
        let f = Formats::of(op.payload);
        let v = source(core, op, f.float, f.shift);
        let out = each(&v, mask, |v| f2f(op, v));
        core.put_sized(op.d, mask, &out, f.other == FloatFormat::F64);
        Flow::Next
    };
    /// FRND.
    Frnd<const WIDE: bool> [called::<Frnd<false>>, apart true, if !WIDE] = |core, op, mask| {
        let f = Formats::of(op.payload);
        let v = source(core, op, f.float, f.shift);
        let out = each(&v, mask, |v| frnd(op, v));
        core.put_sized(op.d, mask, &out, f.float == FloatFormat::F64);
        Flow::Next
    };
    /// F2FP from FP32.
    F2fp [called::<F2fp>, apart true] = |core, op, mask| core.map2_slow(op, mask, |a, b| f2fp(op, a, b));
    /// F2FP.MERGE_C, into RZ.
    F2fpMerge = |core, op, mask| {
        let format = if op.payload & 4 != 0 { HalfFormat::Bf16 } else { HalfFormat::F16 };
        let (rounding, relu) = (Rounding::from_code(op.payload as u32), op.payload & 8 != 0);
        core.map1_slow(op, mask, |b| convert::f2fp_merge(b, 0, format, rounding, relu))
    };
    /// F2FP to TF32.
    F2fpTf32 = |core, op| {
        let rounding = match Rounding::from_code(op.payload as u32) {
            Rounding::Zero => Tf32Rounding::Zero,
            _ => Tf32Rounding::Nearest,
        };
        let relu = op.payload & 8 != 0;
        core.team1(op, |b| convert::f2fp_tf32(b, rounding, relu))
    };
    /// F2FP from FP32 to FP8.
    F2fp8 = |core, op, mask| {
        let (to, relu, shift) = fp8(op.payload);
        core.map3_slow(op, mask, |a, b, c| convert::f2fp_pack_fp8(a, b, c >> shift, to, relu))
    };
    /// F2FP from FP16 to FP8.
    F2fp8FromHalf = |core, op, mask| {
        let (to, relu, shift) = fp8(op.payload);
        core.map3_slow(op, mask, |_, b, c| convert::f2fp_pack_fp8_from_f16(b, c >> shift, to, relu))
    };
    /// F2FP from FP8 to FP16.
    F2fpUnpack = |core, op, mask| {
        let (from, relu, shift) = fp8(op.payload);
        core.map1_slow(op, mask, |b| {
            let pair = convert::f2fp_unpack_fp8(b, from, shift == 16);
            if relu { convert::relu_pair(pair) } else { pair }
        })
    };
}
