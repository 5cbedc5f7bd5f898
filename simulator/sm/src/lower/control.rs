//! Branches, convergence, barriers.

use sass::{FieldId as F, Op, Operand};

use super::super::block::BARRIERS;
use super::super::control::{BarOperands, Step};
use super::super::execute::{Control, Nothing, control as x};
use super::super::fault::FaultKind;
use super::super::micro::{Micro, PredicateIn};
use super::super::run::branch;
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Nop => nop(r),
        Op::Bra => bra(r),
        Op::Call => call(r),
        Op::Ret => ret(r),
        Op::Brx => brx(r),
        Op::Jmx => jmx(r),
        Op::Jmp => jmp(r),
        Op::Kill => Err(Refusal::Illegal("it ends pixels, which compute has none of")),
        Op::Exit => conditional(r, Step::Exit),
        Op::Bssy => bssy(r),
        Op::Bsync => convergence(r, Step::Bsync),
        Op::Break => convergence(r, Step::Break),
        Op::Warpsync => warpsync(r),
        Op::Yield => conditional(r, Step::Yield),
        Op::Nanosleep => nanosleep(r),
        // Products of four warps are not simulated, and so nothing is under way that could be waited for.
        Op::Warpgroup => {
            r.ignore(F::Mode);
            (0..r.instruction.operands().len()).for_each(|slot| r.ignore_operand(slot));
            Ok(r.plain_micro::<Nothing>())
        }
        Op::Endcollective => Ok(r.plain_micro::<Nothing>()),
        Op::Bmov => bmov(r),
        Op::Lepc => lepc(r),
        Op::Bpt => bpt(r),
        Op::Bar => bar(r),
        Op::B2r => b2r(r),
        Op::UcgabarArv => Ok(Micro { extra: Step::ClusterArrive as u8, ..r.plain_micro::<Control>() }),
        Op::UcgabarWait => Ok(Micro { extra: Step::ClusterWait as u8, ..r.plain_micro::<Control>() }),
        // The grid that this one depends on ended before it began, and those that depend on it begin when it ended.
        Op::Preexit | Op::Acqbulk => Ok(r.plain_micro::<Nothing>()),
        _ => return None,
    })
}

fn nop(r: &Reader<'_>) -> Read<Micro> {
    Ok(r.plain_micro::<Nothing>())
}

/// A step of [`super::super::control`] whose condition is operand 0.
fn conditional(r: &mut Reader<'_>, step: Step) -> Read<Micro> {
    let mut micro = r.plain_micro::<Control>();
    micro.extra = step as u8;
    micro.from[0] = r.predicate(0)?;
    Ok(micro)
}

fn bra(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = Micro::new(branch);
    micro.from[0] = r.predicate(0)?;
    if r.has(2) {
        // BRA.DIV and BRA.CONV: a uniform register holds the lanes that should be together.
        let converged = match r.spelling(F::Divergence) {
            ".DIV" => false,
            ".CONV" => true,
            other => return Err(Refusal::unsupported(format!("test {other:?}"))),
        };
        let (members, invert) = r.invertible(1)?;
        micro.run = r.plain_handler::<Control>();
        micro.a = members;
        micro.extra = Step::BranchIfDivergent as u8;
        micro.to[0].0 = u8::from(invert) | u8::from(converged) << 1;
        micro.payload = r.label(2)?;
    } else {
        micro.payload = r.label(1)?;
        match r.spelling(F::Divergence) {
            ".U.ANY" => micro.extra = Micro::ANY,
            // `.U` is the compiler's word that all lanes go one way. Where they would not, an H200 goes on behind it.
            ".U" => micro.extra = Micro::ALL,
            "" => {}
            other => return Err(Refusal::unsupported(format!("test {other}"))),
        }
    }
    Ok(micro)
}

/// A jump by register: [`Step::Jump`] adds the payload.
fn jump(r: &mut Reader<'_>, base: u64) -> Read<Micro> {
    let mut micro = conditional(r, Step::Jump)?;
    micro.a = r.plain(1, 2)?;
    micro.payload = base;
    Ok(micro)
}

fn next(r: &Reader<'_>) -> u64 {
    r.instruction.address.wrapping_add(16)
}

fn call(r: &mut Reader<'_>) -> Read<Micro> {
    // `.REL`, `.ABS`: the label is what it says. `.NOINC` is about a counter of the API's calls.
    let absolute = r.spelling(F::Absolute) == ".ABS";
    r.ignore(F::NoIncrement);
    match r.instruction.operands().get(1) {
        Some(Operand::Label { .. }) => {
            let mut micro = Micro::new(branch);
            micro.from[0] = r.predicate(0)?;
            micro.payload = r.label(1)?;
            Ok(micro)
        }
        _ => {
            let base = if r.has(2) { r.label(2)? } else { 0 };
            debug_assert!(!absolute || base == 0, "an absolute call by register has no label");
            jump(r, base)
        }
    }
}

fn ret(r: &mut Reader<'_>) -> Read<Micro> {
    r.ignore(F::Absolute);
    r.ignore(F::NoDecrement);
    let base = r.label(2)?;
    jump(r, base)
}

fn brx(r: &mut Reader<'_>) -> Read<Micro> {
    let base = next(r).wrapping_add(r.label(2)?);
    jump(r, base)
}

/// JMX: as BRX, from the beginning of memory.
fn jmx(r: &mut Reader<'_>) -> Read<Micro> {
    let base = r.label(2)?;
    jump(r, base)
}

/// JMP: a branch to an address.
fn jmp(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = Micro::new(branch);
    micro.from[0] = r.predicate(0)?;
    micro.payload = r.label(1)?;
    Ok(micro)
}

fn convergence(r: &mut Reader<'_>, step: Step) -> Read<Micro> {
    // What Blackwell says of it is a promise that is kept anyway.
    r.ignore(F::Reliable);
    let mut micro = conditional(r, step)?;
    micro.payload = r.convergence(1)?.into();
    if step == Step::Bsync && micro.from[0] == PredicateIn::TRUE {
        micro.kind = Micro::BSYNC;
    }
    Ok(micro)
}

fn bssy(r: &mut Reader<'_>) -> Read<Micro> {
    // A condition other than PT is left unread, and so refused. The label is where lanes meet: BSYNC knows.
    r.ignore(F::Reliable);
    let mut micro = r.plain_micro::<x::Bssy>();
    micro.payload = r.convergence(1)?.into();
    r.ignore_operand(2);
    Ok(micro)
}

fn warpsync(r: &mut Reader<'_>) -> Read<Micro> {
    // `.ALL` names no mask.
    let exclusive = matches!(r.spelling(F::Exclusive), ".EXCLUSIVE" | ".COLLECTIVE");
    let mut micro = conditional(r, Step::Warpsync)?;
    match r.instruction.operands().get(1) {
        Some(Operand::Immediate { .. }) => {
            micro.payload = r.immediate(1)?;
            micro.to[0].0 = 0;
        }
        Some(Operand::Register { .. }) => {
            micro.a = r.plain(1, 1)?;
            micro.to[0].0 = 1 | u8::from(exclusive) << 1;
        }
        // All lanes; the label of a collective one is where its code ends.
        _ => {
            if r.has(1) {
                r.label(1)?;
            }
            micro.payload = u32::MAX.into();
            micro.to[0].0 = 0;
        }
    }
    if r.has(2) {
        r.ignore_operand(2);
    }
    Ok(micro)
}

fn nanosleep(r: &mut Reader<'_>) -> Read<Micro> {
    // How long, and whether a barrier in memory ends it sooner, is not the program's to know.
    r.ignore(F::WakenBySyncs);
    r.ignore(F::Warp);
    r.ignore(F::Random);
    r.ignore_operand(1);
    conditional(r, Step::Nanosleep)
}

fn bmov(r: &mut Reader<'_>) -> Read<Micro> {
    let names_lanes = |operand: &Operand| matches!(operand, Operand::Word(_));
    if r.instruction.operands().iter().any(names_lanes) {
        return super::texture::lanes_at_hand(r);
    }
    if matches!(r.instruction.operands().first(), Some(Operand::Barrier(_))) {
        let mut micro = r.plain_micro::<x::BmovTo>();
        micro.payload = r.convergence(0)?.into();
        micro.b = r.plain(1, 1)?;
        return Ok(micro);
    }
    let mut micro = r.plain_micro::<x::BmovFrom>();
    micro.d = r.to(0, 1)?;
    micro.payload = r.convergence(1)?.into();
    micro.extra = u8::from(r.flag(F::Clear));
    Ok(micro)
}

fn lepc(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Lepc>();
    micro.d = r.to(0, 2)?;
    // Without a label its own address: compilers take as much off again in front of a call by address.
    micro.payload = if r.has(1) { r.label(1)? } else { r.instruction.address };
    Ok(micro)
}

fn bpt(r: &mut Reader<'_>) -> Read<Micro> {
    r.ignore_operand(0);
    Ok(r.plain_micro::<x::Trap>())
}

fn bar(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<Control>();
    micro.extra = match (r.spelling(F::Mode), r.spelling(F::Reduction)) {
        (".SYNC", _) => Step::BarSync,
        (".ARV", _) => Step::BarArrive,
        (".RED", ".POPC") => Step::BarPopc,
        (".RED", ".AND") => Step::BarAnd,
        (".RED", ".OR") => Step::BarOr,
        (mode, function) => return Err(Refusal::unsupported(format!("{mode}{function}"))),
    } as u8;
    r.ignore(F::Defer);
    let reduces = r.spelling(F::Mode) == ".RED";
    // The barrier, the threads where they are named, and a predicate, whose place differs.
    let mut numbers = Vec::with_capacity(2);
    for slot in 0..r.instruction.operands().len() {
        match r.operand(slot)? {
            Operand::Predicate { .. } if reduces => micro.from[0] = r.predicate(slot)?,
            Operand::Predicate { .. } => {}
            Operand::Immediate { bits, .. } => numbers.push(Some(bits as u32)),
            _ => {
                micro.a = r.plain(slot, 1)?;
                numbers.push(None);
            }
        }
    }
    let operands = match numbers[..] {
        [Some(index)] => BarOperands::Immediate { index, threads: 0 },
        [Some(index), Some(threads)] => BarOperands::Immediate { index, threads },
        [Some(index), None] => BarOperands::Threads { index },
        [None] => BarOperands::Index { threads: 0 },
        [None, Some(threads)] => BarOperands::Index { threads },
        // Both in one register, which is printed twice.
        [None, None] => BarOperands::IndexAndThreads,
        _ => return Err(Refusal::unsupported(format!("{} numbers", numbers.len()))),
    };
    if let BarOperands::Immediate { index, .. } | BarOperands::Threads { index } = operands
        && index as usize >= BARRIERS
    {
        return Err(Refusal::unsupported(
            FaultKind::IllegalBarrier { index, threads: 0, barriers: BARRIERS as u32 }.to_string(),
        ));
    }
    micro.payload = operands.code();
    Ok(micro)
}

fn b2r(r: &mut Reader<'_>) -> Read<Micro> {
    match r.spelling(F::Mode) {
        ".RESULT" => {}
        other => return Err(Refusal::unsupported(format!("form {other}"))),
    }
    let mut micro = r.plain_micro::<x::B2r>();
    micro.d = r.to(0, 1)?;
    micro.to[0] = r.predicate_to(1)?;
    Ok(micro)
}
