//! Tensor cores: HMMA, QMMA, IMMA, BMMA and DMMA, dense and sparse, one warp at a time.
//!
//! The Hopper rules were measured on an H200 without a differing bit, for every form that `ptxas` compiles. The
//! Ampere and Ada constants are published ones (MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis, arXiv
//! 2512.07004), checked against results recorded on A100, A2, L40S and RTX 1000 Ada for single steps. The order
//! of the two steps there, the split of sparse forms, and special values were not measured.
//!
//! Fragments are arrays of registers: `fragment[register][lane]`.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
mod double;
mod float;
pub mod fused;
mod integer;
pub mod layout;
mod sparse;

pub use double::{Pair, dmma};
pub use float::{FloatMatrix, Registers, float_mma};
pub use integer::{BitOperation, Integer, IntegerMatrix, bmma, imma};
pub use sparse::Sparsity;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One register of every lane.
pub type Register = [u32; LANES];

/// Type of the factors of HMMA and QMMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factor {
    /// FP16.
    F16,
    /// BF16.
    Bf16,
    /// TF32: the low 13 bits of a register are not read.
    Tf32,
    /// FP8 with 4 exponent and 3 fraction bits; no infinity.
    E4M3,
    /// FP8 with 5 exponent and 2 fraction bits.
    E5M2,
}

impl Factor {
    /// Elements in a register.
    pub const fn per_register(self) -> usize {
        match self {
            Factor::F16 | Factor::Bf16 => 2,
            Factor::Tf32 => 1,
            Factor::E4M3 | Factor::E5M2 => 4,
        }
    }

    /// The type is one of QMMA's.
    pub const fn is_fp8(self) -> bool {
        matches!(self, Factor::E4M3 | Factor::E5M2)
    }

    /// Exponent and fraction bits.
    const fn fields(self) -> (u32, u32) {
        match self {
            Factor::F16 => (5, 10),
            Factor::Bf16 => (8, 7),
            Factor::Tf32 => (8, 10),
            Factor::E4M3 => (4, 3),
            Factor::E5M2 => (5, 2),
        }
    }
}

/// Type of the addend and result of HMMA and QMMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// `.F16`: two elements in a register, rounded to nearest even.
    F16,
    /// `.F32`: cut off toward zero.
    F32,
}

/// How a floating-point tensor core adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Numerics {
    /// Fraction bits kept below the largest exponent.
    pub fraction_bits: i32,
    /// Bytes of a stored row of A that one fused step takes in.
    pub step_bytes: usize,
    /// The largest exponent never counts as less than the accumulator's smallest normal exponent
    /// minus this.
    pub floor_below: i32,
    /// Fraction bits of an FP32 result.
    pub result_bits: u32,
}

impl Numerics {
    /// HMMA of sm_80, sm_86, sm_89 (published).
    pub const AMPERE: Numerics =
        Numerics { fraction_bits: 24, step_bytes: 16, floor_below: 6, result_bits: 23 };
    /// HMMA of sm_90 (measured on H200).
    pub const HOPPER: Numerics =
        Numerics { fraction_bits: 25, step_bytes: 32, floor_below: 7, result_bits: 23 };
    /// QMMA of sm_89 (published).
    pub const ADA_QMMA: Numerics =
        Numerics { fraction_bits: 13, step_bytes: 16, floor_below: 118, result_bits: 13 };
}

/// HMMA without `.SP`: [`float_mma`] with equal types. `k` is the last number of the shape.
pub fn hmma(
    factor: Factor,
    accumulator: Accumulator,
    k: usize,
    numerics: Numerics,
    a: &[Register],
    b: &[Register],
    c: &[Register],
) -> Option<[Register; 4]> {
    let form = FloatMatrix { factors: [factor; 2], accumulator, k, sparse: false };
    float_mma(form, numerics, a, b, c, None)
}
