//! Barriers in shared memory: ATOMS.ARRIVE, SYNCS, ARRIVES.

use sass::FieldId as F;

use super::super::execute::Nothing;
use super::super::execute::mbarrier as x;
use super::super::micro::Micro;
use super::memory::put_address;
use super::reader::{Read, Reader, Refusal};

/// ATOMS.ARRIVE.64.
pub(super) fn arrive(r: &mut Reader<'_>) -> Read<Micro> {
    r.ignore(F::Function);
    pair(r)?;
    let mut micro = r.plain_micro::<x::ArriveAmpere>();
    micro.d = r.to(0, 2)?;
    let address = r.address(1, false)?;
    put_address(&mut micro, address);
    Ok(micro)
}

fn pair(r: &mut Reader<'_>) -> Read<()> {
    match r.spelling(F::Size) {
        ".64" => Ok(()),
        other => Err(Refusal::unsupported(format!("size {other}"))),
    }
}

/// ARRIVES.LDGSTSBAR: what is to happen once the copies of a thread are done, which they are.
pub(super) fn copies_done(r: &mut Reader<'_>) -> Read<Micro> {
    pair(r)?;
    let mut micro = match (r.instruction.arch < sass::Arch::Sm90, r.spelling(F::Count)) {
        (true, "") => r.plain_micro::<x::ArriveAmpere>(),
        (false, ".ARVCNT") => {
            let micro = r.plain_micro::<x::Arrive>();
            Micro { extra: x::COUNT_ONE, ..micro }
        }
        (false, ".TRANSCNT") => {
            let micro = r.plain_micro::<x::Arrive>();
            Micro { extra: x::TRANSACTION_ONE_DONE, ..micro }
        }
        (_, other) => return Err(Refusal::unsupported(format!("count {other}"))),
    };
    let address = r.address(0, false)?;
    put_address(&mut micro, address);
    Ok(micro)
}

/// SYNCS in its forms, which differ in their operands.
pub(super) fn syncs(r: &mut Reader<'_>) -> Read<Micro> {
    match r.spelling(F::Function) {
        ".ARRIVE.TRANS64" => arrive_transactions(r),
        ".PHASECHK.TRANS64" => {
            // Whether to wait for a while is a hint.
            r.ignore(F::TryWait);
            let mut micro = r.plain_micro::<x::CheckPhase>();
            micro.to[0] = r.predicate_to(0)?;
            let address = r.address(1, false)?;
            put_address(&mut micro, address);
            micro.b = r.plain(2, 1)?;
            Ok(micro)
        }
        ".EXCH.64" => {
            let mut micro = r.plain_micro::<x::Exchange>();
            micro.d = r.to(0, 2)?;
            let address = r.address(1, false)?;
            put_address(&mut micro, address);
            micro.b = r.plain(2, 2)?;
            Ok(micro)
        }
        // Nothing is kept of a barrier outside its memory.
        ".CCTL.IV" => {
            r.address(0, false)?;
            Ok(r.plain_micro::<Nothing>())
        }
        other => Err(Refusal::unsupported(format!("function {other}"))),
    }
}

fn arrive_transactions(r: &mut Reader<'_>) -> Read<Micro> {
    // Arrivals and transactions: none, one, as many as the register says, or less by as many.
    let counts = match r.spelling(F::Count) {
        "" => x::COUNT_ONE | x::TRANSACTIONS,
        ".A1T0" => x::COUNT_ONE,
        ".A0T1" => x::TRANSACTION_ONE,
        ".A0TR" => x::TRANSACTIONS,
        ".A0TX" => x::TRANSACTIONS_DONE,
        ".ART0" => x::COUNTS,
        other => return Err(Refusal::unsupported(format!("counts {other}"))),
    };
    // With `.RED` there is no result, and none is asked for.
    r.ignore(F::Reduction);
    let together = r.flag(F::Tmask);
    let leaves = r.flag(F::OptOut);
    let mut micro =
        if together { r.plain_micro::<x::ArriveTogether>() } else { r.plain_micro::<x::Arrive>() };
    micro.extra = counts | if leaves { x::LEAVES } else { 0 };
    micro.d = r.to(0, 2)?;
    let address = r.address(1, false)?;
    put_address(&mut micro, address);
    micro.b = r.plain(2, 1)?;
    Ok(micro)
}
