//! The control field: what the scheduler is told. It never changes a result.
use std::fmt;

/// Scheduling information in bits 105 to 125 of every instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control {
    /// Cycles to wait before the next instruction, 0 to 15.
    pub stall: u8,
    /// The bit that, cleared, lets the scheduler prefer another warp.
    pub yield_flag: bool,
    /// Scoreboard released when the result is written; 7 is none.
    pub write_barrier: u8,
    /// Scoreboard released when the sources have been read; 7 is none.
    pub read_barrier: u8,
    /// Scoreboards waited for before issue, one bit each.
    pub wait_mask: u8,
    /// Operand-reuse cache flags, one bit per source slot.
    pub reuse: u8,
}

impl Control {
    /// Bits of the word that belong to the control field.
    pub const MASK: u128 = ((1 << 21) - 1) << 105;

    /// Takes the control field out of a word.
    #[must_use]
    pub const fn from_word(word: u128) -> Self {
        Self {
            stall: (word >> 105 & 15) as u8,
            yield_flag: word >> 109 & 1 != 0,
            write_barrier: (word >> 110 & 7) as u8,
            read_barrier: (word >> 113 & 7) as u8,
            wait_mask: (word >> 116 & 63) as u8,
            reuse: (word >> 122 & 15) as u8,
        }
    }

    /// The control field in place; bits too wide for a part are cut off.
    #[must_use]
    pub const fn to_word(self) -> u128 {
        ((self.stall as u128 & 15) << 105)
            | ((self.yield_flag as u128) << 109)
            | ((self.write_barrier as u128 & 7) << 110)
            | ((self.read_barrier as u128 & 7) << 113)
            | ((self.wait_mask as u128 & 63) << 116)
            | ((self.reuse as u128 & 15) << 122)
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let barrier = |b: u8| if b == 7 { '-' } else { char::from(b'0' + b) };
        for bit in 0..6 {
            let waits = self.wait_mask >> bit & 1 != 0;
            write!(f, "{}", if waits { char::from(b'0' + bit) } else { '-' })?;
        }
        write!(
            f,
            ":R{}:W{}:{}:S{:02}",
            barrier(self.read_barrier),
            barrier(self.write_barrier),
            if self.yield_flag { '-' } else { 'Y' },
            self.stall
        )
    }
}
