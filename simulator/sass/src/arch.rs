//! Instruction-set versions.
use std::fmt;

/// A generation of the instruction set; the order is the order of release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// Turing.
    Sm75,
    /// Ampere, data centre.
    Sm80,
    /// Ampere, consumer.
    Sm86,
    /// Ada.
    Sm89,
    /// Hopper.
    Sm90,
    /// Blackwell, data centre.
    Sm100,
    /// Blackwell, consumer.
    Sm120,
}

impl Arch {
    /// Every generation, oldest first.
    pub const ALL: [Self; 7] =
        [Self::Sm75, Self::Sm80, Self::Sm86, Self::Sm89, Self::Sm90, Self::Sm100, Self::Sm120];

    /// From the compute capability as one number (89 for 8.9); `None` if this crate has no rows for it.
    #[must_use]
    pub const fn from_sm(sm: u32) -> Option<Self> {
        Some(match sm {
            75 => Self::Sm75,
            80 => Self::Sm80,
            86 => Self::Sm86,
            89 => Self::Sm89,
            90 => Self::Sm90,
            100 => Self::Sm100,
            120 => Self::Sm120,
            _ => return None,
        })
    }

    /// The compute capability as one number.
    #[must_use]
    pub const fn sm(self) -> u32 {
        match self {
            Self::Sm75 => 75,
            Self::Sm80 => 80,
            Self::Sm86 => 86,
            Self::Sm89 => 89,
            Self::Sm90 => 90,
            Self::Sm100 => 100,
            Self::Sm120 => 120,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.sm())
    }
}
