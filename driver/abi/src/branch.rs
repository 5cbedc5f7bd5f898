//! Driver branches: the release lines between which struct layouts change.

use std::fmt;

/// A release line of the NVIDIA kernel module, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Branch {
    R535,
    R550,
    R560,
    R565,
    R570,
    R580,
    R590,
    R595,
    R610,
}

impl Branch {
    /// Every branch, oldest first.
    pub const ALL: [Self; 9] = [
        Self::R535,
        Self::R550,
        Self::R560,
        Self::R565,
        Self::R570,
        Self::R580,
        Self::R590,
        Self::R595,
        Self::R610,
    ];

    /// The first number of the branch's versions, as in `580.159.04`.
    pub const fn number(self) -> u32 {
        match self {
            Self::R535 => 535,
            Self::R550 => 550,
            Self::R560 => 560,
            Self::R565 => 565,
            Self::R570 => 570,
            Self::R580 => 580,
            Self::R590 => 590,
            Self::R595 => 595,
            Self::R610 => 610,
        }
    }

    /// The branch whose layouts a version such as `580.159.04` uses: the newest one that is not newer than it.
    /// `None` if the text has no leading number or is older than 535.
    pub fn from_version(version: &str) -> Option<Self> {
        let number: u32 = version.split('.').next()?.trim().parse().ok()?;
        Self::ALL.into_iter().rev().find(|branch| branch.number() <= number)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
