//! Constants of banks that a pair of uniform registers describes, `cx[UR4][0x10]`.
//!
//! The word is not known before the instruction runs. As an operand of arithmetic it is put into rows of the warp's own
//! first, from where the instruction reads it as it reads any register.

use nv_memory::AccessKind;

use super::super::core::Core;
use super::super::fault::FaultKind;
use super::super::lanes::{LANES, each, first};
use super::super::memory::load;
use super::super::micro::{Flow, Micro, RowIndex};
use super::super::run;
use super::handlers;

/// An instruction with such an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    /// The instruction as it is once the rows hold the operand.
    pub inner: Micro,
    /// Where the bank's description is.
    pub bank: RowIndex,
    /// Byte offset of the operand.
    pub offset: u32,
    /// The rows, as many as the operand has words.
    pub to: RowIndex,
    pub words: u16,
}

/// What a pair of uniform registers says: a bank's address and size, both in units of 16 bytes.
///
/// The address has 45 bits and the size the 19 above them (Mesa's NVK lays descriptors out so for GPUs from Volta to
/// Hopper; no compiler output of ours has one).
const fn bank(description: u64) -> (u64, u64) {
    const ADDRESS_BITS: u32 = 45;
    ((description & ((1 << ADDRESS_BITS) - 1)) << 4, description >> ADDRESS_BITS << 4)
}

impl Core<'_> {
    /// A word of a described bank.
    fn bindless_word(&mut self, description: u64, offset: u32) -> Result<u32, FaultKind> {
        let (address, bytes) = bank(description);
        if u64::from(offset) + 4 > bytes {
            return Err(FaultKind::BindlessConstant { address, bytes, offset });
        }
        let launch = self.launch;
        let from = self.caches.windows.lane(&launch.map, AccessKind::Read, address + u64::from(offset), 4)?;
        // SAFETY: the look-up made sure of range and alignment; the map outlives the launch.
        Ok(unsafe { load::<4>(from) }[0])
    }

    fn fill_bindless(&mut self, operand: &Operand) -> Result<(), FaultKind> {
        for member in 0..self.team.count {
            self.enter(member);
            // An instruction that runs in no lane reads nothing.
            if self.guarded(&operand.inner) == 0 {
                continue;
            }
            let description = self.pair_lane(operand.bank, 0);
            for word in 0..operand.words {
                let value = self.bindless_word(description, operand.offset + 4 * u32::from(word))?;
                self.put_uniform(operand.to.plus(word), value);
            }
        }
        Ok(())
    }
}

handlers! {
    /// An instruction with an operand of a described bank.
    WithOperand = |core, op| {
        let Some(operand) = core.bindless.get(op.payload as usize).copied() else {
            return core.fail(FaultKind::UnknownInstruction);
        };
        match core.fill_bindless(&operand) {
            // SAFETY: lowering made the instruction for this warp's registers, as it made the one at hand.
            Ok(()) => unsafe { run::alone(core, &operand.inner) },
            Err(kind) => core.fail(kind),
        }
    };
    /// LDC and ULDC.
    LoadBindless = |core, op, mask| {
        let bytes = (op.payload >> 40) as u32 & 15;
        let mut out = [[0; LANES]; 2];
        // The uniform datapath has no lanes, and runs once.
        let lanes = if op.kind & Micro::UNIFORM != 0 { 1 << first(mask) } else { mask };
        for lane in each(lanes) {
            let at = core.row(op.a)[lane].wrapping_add(op.payload as u32);
            if !at.is_multiple_of(bytes.max(1)) {
                return core.fail(FaultKind::Misaligned { address: at.into() });
            }
            let description = core.pair_lane(op.b, 0);
            let mut words = [0; 2];
            for (word, to) in (0..).zip(&mut words).take(bytes.div_ceil(4) as usize) {
                match core.bindless_word(description, (at & !3).wrapping_add(4 * word)) {
                    Ok(value) => *to = value,
                    Err(kind) => return core.fail(kind),
                }
            }
            if bytes < 4 {
                let shift = 32 - 8 * bytes;
                let word = words[0] >> (8 * (at & 3)) << shift;
                words[0] = if op.extra != 0 { (word as i32 >> shift) as u32 } else { word >> shift };
            }
            (out[0][lane], out[1][lane]) = (words[0], words[1]);
        }
        if op.kind & Micro::UNIFORM != 0 {
            let lane = first(mask);
            out = out.map(|row| [row[lane]; LANES]);
        }
        core.put(op.d, mask, &out[0]);
        if bytes == 8 {
            core.put(op.d.plus(1), mask, &out[1]);
        }
        Flow::Next
    };
}
