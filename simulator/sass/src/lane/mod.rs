//! What each instruction computes, for one lane.
//!
//! Pure functions from register bits to register bits: a 32-bit register is a `u32`, a register pair
//! a `u64` (low register first), a predicate a `bool`. They know nothing of encodings, warps or
//! memory. The interpreter chooses a function and its parameters once per instruction and runs it
//! over 32 lanes; everything small is `#[inline(always)]`, so that such a loop vectorises.
//!
//! Nothing here allocates, panics or is unsafe: every bit pattern is a legal operand. Where a rule
//! was not measured on a card, the function says so.

/// Declares the values of an instruction field, in order from 0, with the list of them.
macro_rules! field_values {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them, in the order of the instruction field.
            pub const ALL: [$name; [$($name::$variant),*].len()] = [$($name::$variant),*];
        }
    };
}

pub mod atomic;
pub mod convert;
pub mod double;
pub mod float;
pub mod half;
pub mod integer;
pub mod mbarrier;
pub mod mma;
pub mod mufu;
pub mod soft;
pub mod warp;

field_values! {
    /// Rounding mode of a floating-point operation.
    pub enum Rounding {
        /// `RN`: to nearest, ties to even.
        Nearest,
        /// `RM`: towards minus infinity (also `FLOOR`).
        Down,
        /// `RP`: towards plus infinity (also `CEIL`).
        Up,
        /// `RZ`: towards zero (also `TRUNC`).
        Zero,
    }
}

impl Rounding {
    /// The mode that a two-bit instruction field names; higher bits are not looked at.
    #[inline(always)]
    pub const fn from_code(code: u32) -> Rounding {
        Rounding::ALL[(code & 3) as usize]
    }
}

field_values! {
    /// The sixteen comparisons of FSETP, FSET, DSETP and HSETP2.
    ///
    /// The numbers are the instruction field's, and also say what each does: bit 0 holds for less,
    /// bit 1 for equal, bit 2 for greater, bit 3 for unordered operands.
    #[expect(missing_docs, reason = "the names are the vendor's and say it all")]
    pub enum FloatCompare {
        F, LT, EQ, LE, GT, NE, GE, NUM, NAN, LTU, EQU, LEU, GTU, NEU, GEU, T,
    }
}

impl FloatCompare {
    /// The comparison that a four-bit instruction field names; higher bits are not looked at.
    #[inline(always)]
    pub const fn from_code(code: u32) -> FloatCompare {
        FloatCompare::ALL[(code & 15) as usize]
    }

    /// Whether the comparison holds. FP16 and FP32 operands are widened first.
    #[inline(always)]
    pub fn holds(self, a: f64, b: f64) -> bool {
        self.meets([a < b, a == b, a > b, a.is_nan() | b.is_nan()])
    }

    /// Whether the comparison holds for FP32 operands.
    #[inline(always)]
    pub fn holds_f32(self, a: f32, b: f32) -> bool {
        self.meets([a < b, a == b, a > b, a.is_nan() | b.is_nan()])
    }

    #[inline(always)]
    fn meets(self, [less, equal, greater, unordered]: [bool; 4]) -> bool {
        let relation =
            u8::from(less) | u8::from(equal) << 1 | u8::from(greater) << 2 | u8::from(unordered) << 3;
        self as u8 & relation != 0
    }
}

/// A minimum or maximum of two operands: by their order where both are numbers, else by whether a NaN wins.
#[inline(always)]
fn min_max<T>([a, b]: [T; 2], nans: [bool; 2], less: bool, minimum: bool, nan_wins: bool, nan: T) -> T {
    match nans {
        [false, false] => {
            if less == minimum {
                a
            } else {
                b
            }
        }
        [true, false] if !nan_wins => b,
        [false, true] if !nan_wins => a,
        _ => nan,
    }
}

field_values! {
    /// The eight comparisons of ISETP.
    ///
    /// The numbers are the instruction field's: bit 0 holds for less, bit 1 for equal, bit 2 for greater.
    #[expect(missing_docs, reason = "the names are the vendor's and say it all")]
    pub enum IntegerCompare {
        F, LT, EQ, LE, GT, NE, GE, T,
    }
}

impl IntegerCompare {
    /// The comparison that a three-bit instruction field names; higher bits are not looked at.
    #[inline(always)]
    pub const fn from_code(code: u32) -> IntegerCompare {
        IntegerCompare::ALL[(code & 7) as usize]
    }
}

/// How a comparison is combined with the predicate operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boolean {
    /// `.AND`
    And,
    /// `.OR`
    Or,
    /// `.XOR`
    Xor,
}

impl Boolean {
    /// The operation on two truth values.
    #[inline(always)]
    pub const fn apply(self, a: bool, b: bool) -> bool {
        match self {
            Boolean::And => a & b,
            Boolean::Or => a | b,
            Boolean::Xor => a ^ b,
        }
    }

    /// Both results of a set-predicate instruction: the comparison and its complement, each combined
    /// with the predicate operand.
    #[inline(always)]
    pub const fn both(self, comparison: bool, predicate: bool) -> (bool, bool) {
        (self.apply(comparison, predicate), self.apply(!comparison, predicate))
    }
}

/// Signedness of an integer operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `.S32` and the like.
    Signed,
    /// `.U32` and the like.
    Unsigned,
}

/// Width of an integer in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Width {
    /// 8 bits.
    B8 = 8,
    /// 16 bits.
    B16 = 16,
    /// 32 bits.
    B32 = 32,
    /// 64 bits.
    B64 = 64,
}

impl Width {
    /// Number of bits.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self as u32
    }
}

/// Type of an integer operand or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntegerType {
    /// Width in bits.
    pub width: Width,
    /// Signedness.
    pub sign: Sign,
}

impl IntegerType {
    /// 32-bit signed.
    pub const S32: IntegerType = IntegerType { width: Width::B32, sign: Sign::Signed };
    /// 32-bit unsigned.
    pub const U32: IntegerType = IntegerType { width: Width::B32, sign: Sign::Unsigned };

    /// Smallest and largest value.
    #[inline(always)]
    pub const fn range(self) -> (i128, i128) {
        let bits = self.width.bits();
        match self.sign {
            Sign::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            Sign::Unsigned => (0, (1i128 << bits) - 1),
        }
    }

    /// The value that register bits hold; bits above the width are not looked at.
    #[inline(always)]
    pub const fn value(self, bits: u64) -> i128 {
        let unused = 64 - self.width.bits();
        match self.sign {
            Sign::Signed => (((bits << unused) as i64) >> unused) as i128,
            Sign::Unsigned => ((bits << unused) >> unused) as i128,
        }
    }
}

/// What a 32-bit multiply or add does with subnormal numbers and zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subnormals {
    /// Subnormal operands and results are kept.
    Keep,
    /// `.FTZ`: subnormal operands and results become zeros of the same sign.
    Flush,
    /// `.FMZ`: as `.FTZ`, and a product with a zero factor is +0 whatever the other factor is.
    FlushMultiplyZero,
}

impl Subnormals {
    /// Whether subnormals become zero.
    #[inline(always)]
    pub const fn flushes(self) -> bool {
        !matches!(self, Subnormals::Keep)
    }
}

/// Modifiers that FADD, FMUL and FFMA share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// Rounding mode.
    pub rounding: Rounding,
    /// `.FTZ`, `.FMZ` or neither.
    pub subnormals: Subnormals,
    /// `.SAT`: clamp the result to [0, 1], NaN to +0.
    pub saturate: bool,
}

impl FloatMode {
    /// No modifier: round to nearest, keep subnormals, no clamp.
    pub const PLAIN: FloatMode =
        FloatMode { rounding: Rounding::Nearest, subnormals: Subnormals::Keep, saturate: false };
}
