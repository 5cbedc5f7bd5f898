//! Instructions of single lanes that have no form in vector instructions: compiled code calls what computes them, for eight
//! lanes at a time. That takes longer than their handlers, but a loop or a block that is executed at once needs all its instructions
//! to have a form.

use super::super::micro::{Execute, Micro};
use super::builder::{Builder, Emitted};

/// Lanes of a vector register.
pub(super) const EIGHT: usize = 8;

/// An instruction of which each lane is a function of its sources in this lane, and of [`Micro::payload`] and
/// [`Micro::extra`].
pub(crate) trait Called: Execute {
    /// Sources that it reads.
    const SOURCES: [bool; 3];

    /// What it leaves in a lane.
    fn lane(op: &Micro, sources: [u32; 3]) -> u32;

    /// The same for eight.
    #[inline(always)]
    fn lanes(op: &Micro, [a, b, c]: [&[u32; EIGHT]; 3]) -> [u32; EIGHT] {
        let mut out = [0; EIGHT];
        for i in 0..EIGHT {
            out[i] = Self::lane(op, [a[i], b[i], c[i]]);
        }
        out
    }
}

/// What is called: `registers` are all vector registers, of which `numbers` names three sources and a result, a byte each.
pub(super) type Help =
    unsafe extern "sysv64" fn(registers: *mut [[u32; EIGHT]; 16], numbers: u32, payload: u64, extra: u32);

/// Emits an instruction that is called.
pub(crate) fn called<T: Called>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    let mut registers = [None; 3];
    for ((register, row), read) in registers.iter_mut().zip([op.a, op.b, op.c]).zip(T::SOURCES) {
        if read {
            *register = Some(b.bits(row)?);
        }
    }
    let out = b.temporary()?;
    b.call_lanes(help::<T>, op, registers.map(|register| register.unwrap_or(out)), out);
    b.put(op.d, out)
}

/// # Safety
/// As for [`Help`]: compiled code saved its registers there, and waits.
unsafe extern "sysv64" fn help<T: Called>(
    registers: *mut [[u32; EIGHT]; 16],
    numbers: u32,
    payload: u64,
    extra: u32,
) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    let [a, b, c, out] = numbers.to_le_bytes().map(|number| usize::from(number & 15));
    let op = Micro { payload, extra: extra as u8, ..Micro::new(super::enter) };
    registers[out] = T::lanes(&op, [&registers[a], &registers[b], &registers[c]]);
}
