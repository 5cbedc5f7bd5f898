//! Moves, selections, predicates, votes, shuffles and special registers.

use sass::{Arch, FieldId as F, Op, Operand, SpecialRegister};

use super::super::execute::{integer, moves as x};
use super::super::micro::Micro;
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Mov | Op::Umov => mov(r),
        Op::Sel | Op::Usel => sel(r),
        Op::S2r | Op::S2ur => s2r(r),
        Op::Cs2r => cs2r(r),
        Op::P2r => p2r(r),
        Op::R2p => r2p(r),
        Op::Plop3 => plop3(r),
        Op::Vote => vote(r),
        Op::Voteu => voteu(r),
        Op::Shfl => shfl(r),
        Op::Match => match_(r),
        Op::R2ur => r2ur(r),
        Op::Redux => redux(r),
        Op::Rpcmov => rpcmov(r),
        Op::Elect => elect(r),
        _ => return None,
    })
}

fn mov(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.micro::<integer::Move>();
    micro.d = r.to(0, 1)?;
    micro.b = r.plain(1, 1)?;
    if r.has(2) {
        let quad = r.immediate(2)?;
        if quad != 15 {
            micro.run = r.plain_handler::<x::MoveQuad>();
            micro.payload = quad;
        }
    }
    Ok(micro)
}

/// RPCMOV: between a register and one of the pair Rpc.
fn rpcmov(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<integer::Move>();
    if matches!(r.instruction.operands().first(), Some(Operand::Word(_))) {
        micro.d = r.scratch(0)?;
        micro.b = r.plain(1, 1)?;
    } else {
        micro.d = r.to(0, 1)?;
        micro.b = r.scratch(1)?;
    }
    Ok(micro)
}

fn sel(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.micro::<x::Sel>();
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.from[0] = r.predicate(3)?;
    Ok(micro)
}

/// Bytes of the windows of shared and local memory, as an H200 says.
const WINDOW_BYTES: u64 = 1 << 24;
/// What an H200 has in SR_VIRTCFG beside the numbers of SMs, warps and lanes.
const HOPPER_CONFIGURATION: u64 = 1 << 30;
/// Special registers that are not zero on an H200, or not always, and that nobody explains: SR_NLATC, SR_SM_SPA_VERSION,
/// SR_REGALLOC, SR_VIRTUALENGINEID, SR_WARPGROUP_INFO, SR_WARPGROUPID, SR_GpcLocalCgaId, SR_AFFINITY, SR_LMEMLOSZ. It takes
/// none of all 256 for illegal, and gives zero for the others that are not listed in [`special`], in clusters too.
const UNEXPLAINED: [u8; 9] = [0x2a, 0x2c, 0x3d, 0x44, 0x86, 0x87, 0x89, 0x1c, 0x36];

/// Whether an instruction writes a uniform register.
fn is_uniform(r: &Reader<'_>) -> bool {
    matches!(r.instruction.operands().first(), Some(Operand::UniformRegister { .. }))
}

/// The handler of a special register, with its number where the handler serves several.
fn special(r: &Reader<'_>, register: u8) -> Read<Micro> {
    let hopper = r.instruction.arch == Arch::Sm90;
    let with = |micro: Micro, payload: u64| Ok(Micro { payload, ..micro });
    let (thread, block) = if is_uniform(r) {
        (r.plain_micro::<x::ThreadIndex<true>>(), r.plain_micro::<x::BlockIndex<true>>())
    } else {
        (r.plain_micro::<x::ThreadIndex<false>>(), r.plain_micro::<x::BlockIndex<false>>())
    };
    match SpecialRegister(register) {
        SpecialRegister::LANEID => with(r.plain_micro::<x::LaneNumber>(), 0),
        SpecialRegister(0x20) => with(r.plain_micro::<x::ThreadIndexPacked>(), 0),
        SpecialRegister::TID_X => with(thread, 0),
        SpecialRegister::TID_Y => with(thread, 1),
        SpecialRegister::TID_Z => with(thread, 2),
        SpecialRegister::CTAID_X => with(block, 0),
        SpecialRegister::CTAID_Y => with(block, 1),
        SpecialRegister::CTAID_Z => with(block, 2),
        SpecialRegister::SWINHI => with(r.plain_micro::<x::SharedWindow>(), 32),
        SpecialRegister(0x30) => with(r.plain_micro::<x::SharedWindow>(), 0),
        SpecialRegister(0x2e) => with(r.plain_micro::<x::LocalWindow>(), 32),
        SpecialRegister(0x34) => with(r.plain_micro::<x::LocalWindow>(), 0),
        // SR_SWINSZ, SR_LWINSZ.
        SpecialRegister(0x31 | 0x35) => with(r.plain_micro::<x::Fixed>(), WINDOW_BYTES),
        SpecialRegister(0x28) => with(r.plain_micro::<x::Threads>(), 0),
        SpecialRegister(0x3e) => with(r.plain_micro::<x::Barriers>(), 0),
        SpecialRegister::SMEMSZ => with(r.plain_micro::<x::SharedBytes>(), 0),
        SpecialRegister::EQMASK => with(r.plain_micro::<x::LaneMask>(), 0),
        SpecialRegister::LTMASK => with(r.plain_micro::<x::LaneMask>(), 1),
        SpecialRegister::LEMASK => with(r.plain_micro::<x::LaneMask>(), 2),
        SpecialRegister::GTMASK => with(r.plain_micro::<x::LaneMask>(), 3),
        SpecialRegister::GEMASK => with(r.plain_micro::<x::LaneMask>(), 4),
        SpecialRegister::CLOCK if hopper => with(r.plain_micro::<x::Zero>(), 0),
        SpecialRegister::CLOCK | SpecialRegister::CLOCKLO => with(r.plain_micro::<x::Clock>(), 0),
        SpecialRegister::CLOCKHI => with(r.plain_micro::<x::Clock>(), 32),
        SpecialRegister::GLOBALTIMERLO => with(r.plain_micro::<x::GlobalTimer>(), 0),
        SpecialRegister::GLOBALTIMERHI => with(r.plain_micro::<x::GlobalTimer>(), 32),
        SpecialRegister::CGA_CTA_ID => with(r.plain_micro::<x::ClusterRank>(), 0),
        SpecialRegister::ZERO => with(r.plain_micro::<x::Zero>(), 0),
        SpecialRegister(0x37) => with(r.plain_micro::<x::StackBottom>(), 0),
        SpecialRegister::VIRTCFG => {
            with(r.plain_micro::<x::VirtualConfiguration>(), if hopper { HOPPER_CONFIGURATION } else { 0 })
        }
        SpecialRegister::VIRTID => with(r.plain_micro::<x::VirtualNumber>(), 0),
        SpecialRegister(0x43) => with(r.plain_micro::<x::MultiprocessorNumber>(), 0),
        // SM_SHADER_TYPE: compute.
        SpecialRegister(0x14) if hopper => with(r.plain_micro::<x::Fixed>(), 6),
        other if hopper && !UNEXPLAINED.contains(&other.0) => with(r.plain_micro::<x::Zero>(), 0),
        _ => Err(Refusal::unsupported(format!("special register {register:#x}"))),
    }
}

fn s2r(r: &mut Reader<'_>) -> Read<Micro> {
    let register = r.special(1)?;
    let uniform = is_uniform(r);
    let mut micro = special(r, register)?;
    micro.d = r.to(0, 1)?;
    micro.extra = x::destination(false, uniform);
    Ok(micro)
}

fn cs2r(r: &mut Reader<'_>) -> Read<Micro> {
    let register = r.special(1)?;
    let wide = r.field(F::Pair64) == 1;
    let register = match (SpecialRegister(register), r.instruction.arch) {
        // A pair holds all of a clock by either name (measured on H200).
        (SpecialRegister::CLOCKHI, _) if wide => SpecialRegister::CLOCKLO.0,
        (SpecialRegister::GLOBALTIMERHI, _) if wide => SpecialRegister::GLOBALTIMERLO.0,
        (SpecialRegister::CLOCKLO | SpecialRegister::CLOCKHI | SpecialRegister::ZERO, _) => register,
        (SpecialRegister::GLOBALTIMERLO | SpecialRegister::GLOBALTIMERHI, _) => register,
        // An H200 has nothing else on this way, and says zero.
        (_, Arch::Sm90) => SpecialRegister::ZERO.0,
        _ => return Err(Refusal::unsupported(format!("special register {register:#x}"))),
    };
    let mut micro = special(r, register)?;
    micro.d = r.to(0, if wide { 2 } else { 1 })?;
    micro.extra = x::destination(wide, false);
    Ok(micro)
}

fn p2r(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::P2r>();
    micro.d = r.to(0, 1)?;
    r.ignore_operand(1);
    micro.a = r.plain(2, 1)?;
    micro.b = r.plain(3, 1)?;
    micro.payload = (8 * r.field(F::PredicateByte)).into();
    Ok(micro)
}

fn r2p(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::R2p>();
    r.ignore_operand(0);
    micro.a = r.plain(1, 1)?;
    micro.b = r.plain(2, 1)?;
    micro.payload = (8 * r.field(F::PredicateByte)).into();
    Ok(micro)
}

fn plop3(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Plop3>();
    micro.to = [r.predicate_to(0)?, r.predicate_to(1)?];
    // `.SIGN` is printed; which sources are registers says the same.
    r.ignore(F::SignOf);
    for slot in 0..3 {
        if matches!(r.operand(2 + slot)?, Operand::Predicate { .. }) {
            micro.from[slot] = r.predicate(2 + slot)?;
        } else {
            let row = r.plain(2 + slot, 1)?;
            *[&mut micro.a, &mut micro.b, &mut micro.c][slot] = row;
            micro.extra |= 1 << slot;
        }
    }
    if micro.extra != 0 {
        micro.run = r.plain_handler::<x::Plop3Signs>();
    }
    micro.payload = r.immediate(5)? & 0xff | (r.immediate(6)? & 0xff) << 8;
    Ok(micro)
}

/// `.ALL`, `.ANY`, `.EQ` as a payload.
fn vote_function(r: &mut Reader<'_>) -> Read<u64> {
    match r.spelling(F::Function) {
        ".ALL" => Ok(0),
        ".ANY" => Ok(1),
        ".EQ" => Ok(2),
        other => Err(Refusal::unsupported(format!("function {other}"))),
    }
}

fn vote(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = r.plain_micro::<x::Vote>();
    micro.payload = vote_function(r)?;
    micro.d = r.to(0, 1)?;
    micro.to[0] = r.predicate_to(1)?;
    micro.from[0] = r.predicate(2)?;
    Ok(micro)
}

fn voteu(r: &mut Reader<'_>) -> Read<Micro> {
    let micro = vote(r)?;
    Ok(Micro { run: r.plain_handler::<x::Voteu>(), ..micro })
}

fn shfl(r: &mut Reader<'_>) -> Read<Micro> {
    let mut micro = match r.spelling(F::Function) {
        ".IDX" => r.micro::<x::Shuffle<0>>(),
        ".UP" => r.micro::<x::Shuffle<1>>(),
        ".DOWN" => r.micro::<x::Shuffle<2>>(),
        ".BFLY" => r.micro::<x::Shuffle<3>>(),
        other => return Err(Refusal::unsupported(format!("function {other}"))),
    };
    micro.to[0] = r.predicate_to(0)?;
    micro.d = r.to(1, 1)?;
    micro.a = r.plain(2, 1)?;
    micro.b = r.plain(3, 1)?;
    micro.c = r.plain(4, 1)?;
    Ok(micro)
}

fn match_(r: &mut Reader<'_>) -> Read<Micro> {
    let wide = r.spelling(F::Pair64) == ".U64";
    let words = if wide { 2 } else { 1 };
    let mut micro = match r.spelling(F::Function) {
        ".ALL" => {
            let mut micro = r.plain_micro::<x::MatchAll>();
            micro.to[0] = r.predicate_to(0)?;
            micro.d = r.to(1, 1)?;
            micro.a = r.plain(2, words)?;
            micro
        }
        ".ANY" => {
            let mut micro = r.plain_micro::<x::MatchAny>();
            micro.d = r.to(0, 1)?;
            micro.a = r.plain(1, words)?;
            micro
        }
        other => return Err(Refusal::unsupported(format!("function {other}"))),
    };
    micro.extra = u8::from(wide);
    Ok(micro)
}

fn r2ur(r: &mut Reader<'_>) -> Read<Micro> {
    let or = match r.spelling(F::Function) {
        "" => false,
        ".OR" => true,
        other => return Err(Refusal::unsupported(format!("function {other}"))),
    };
    let mut micro = r.plain_micro::<x::R2ur>();
    micro.payload = or.into();
    // sm_90 has another opcode, with a predicate: which lanes hold another value than what all get. `.OR` joins it with
    // what it was (measured on H200).
    let first = usize::from(matches!(r.instruction.operands().first(), Some(Operand::Predicate { .. })));
    if first == 1 {
        micro.from[0] = r.predicate(0)?;
        micro.to[0] = r.predicate_to(0)?;
    } else if r.instruction.arch >= Arch::Sm90 {
        return Err(Refusal::Illegal("an H200 has no R2UR of this opcode"));
    }
    micro.d = r.to(first, 1)?;
    micro.a = r.plain(first + 1, 1)?;
    Ok(micro)
}

fn redux(r: &mut Reader<'_>) -> Read<Micro> {
    let function = match r.spelling(F::Function) {
        "" | ".AND" => 0,
        ".OR" => 1,
        ".XOR" => 2,
        ".SUM" => 3,
        ".MIN" => 4,
        ".MAX" => 5,
        other => return Err(Refusal::unsupported(format!("function {other}"))),
    };
    let signed = r.spelling(F::Signed) == ".S32";
    let mut micro = r.plain_micro::<x::Redux>();
    micro.payload = function | u64::from(signed) << 8;
    micro.d = r.to(0, 1)?;
    micro.a = r.plain(1, 1)?;
    Ok(micro)
}

/// ELECT: one lane of those for which the predicate holds.
fn elect(r: &mut Reader<'_>) -> Read<Micro> {
    // Nobody is killed in a compute kernel.
    r.ignore(F::IgnoreKill);
    let mut micro = r.plain_micro::<x::Elect>();
    micro.to[0] = r.predicate_to(0)?;
    micro.d = r.to(1, 1)?;
    micro.from[0] = r.predicate(2)?;
    Ok(micro)
}
