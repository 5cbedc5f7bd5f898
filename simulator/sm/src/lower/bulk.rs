//! Copies that the block does not wait for: UBLKCP, UBLKRED, UBLKPF, STAS, and what orders them.

use sass::{FieldId as F, Op};

use super::super::atomic::{AtomicOperation, AtomicType, code as atomic_code, exists};
use super::super::execute::{Nothing, bulk as x};
use super::super::micro::{Micro, RowIndex};
use super::memory::operation;
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Ublkcp => copy(r),
        Op::Ublkred => reduce(r),
        Op::Ublkpf => prefetch(r),
        Op::Stas => store(r),
        // Copies are made when they are issued: there is nothing to wait for, and nothing that was kept.
        Op::Utmacmdflush => Ok(r.plain_micro::<Nothing>()),
        Op::Utmacctl => {
            r.ignore(F::Mode);
            r.address(0, true).map(|_| r.plain_micro::<Nothing>())
        }
        _ => return None,
    })
}

/// Which of the two spaces a side of a copy is in.
fn is_shared(r: &mut Reader<'_>, side: F) -> Read<bool> {
    match r.spelling(side) {
        ".G" => Ok(false),
        ".S" => Ok(true),
        other => Err(Refusal::unsupported(format!("space {other}"))),
    }
}

/// The two addresses and the size.
fn operands(r: &mut Reader<'_>, micro: &mut Micro) -> Read<()> {
    micro.a = r.address(0, true)?.uniform;
    micro.b = r.address(1, true)?.uniform;
    micro.c = r.plain(2, 1)?;
    // How long caches keep it.
    r.ignore(F::CacheHint);
    r.ignore_operand(3);
    Ok(())
}

fn copy(r: &mut Reader<'_>) -> Read<Micro> {
    let (to, from) = (is_shared(r, F::DestinationSpace)?, is_shared(r, F::SourceSpace)?);
    let multicast = r.flag(F::Multicast);
    r.ignore(F::Prefetch);
    r.ignore(F::Sequenced);
    if !to && (multicast || !from) {
        return Err(Refusal::unsupported("this way"));
    }
    let mut micro = r.plain_micro::<x::BulkCopy>();
    operands(r, &mut micro)?;
    micro.extra = (x::TO_SHARED * u8::from(to))
        | (x::FROM_SHARED * u8::from(from))
        | (x::MULTICAST * u8::from(multicast));
    Ok(micro)
}

fn reduce(r: &mut Reader<'_>) -> Read<Micro> {
    let to = is_shared(r, F::DestinationSpace)?;
    is_shared(r, F::SourceSpace)?;
    let kind = match r.spelling(F::Size) {
        "" => AtomicType::U32,
        ".S32" => AtomicType::S32,
        ".U64" => AtomicType::U64,
        ".S64" => AtomicType::S64,
        ".F16.RN" => AtomicType::F16x2,
        ".BF16.RN" => AtomicType::Bf16x2,
        ".F32.RN" => AtomicType::F32 { flushes: false },
        ".F32.FTZ.RN" => AtomicType::F32 { flushes: true },
        ".F64.RN" => AtomicType::F64,
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    let operation = operation(r)?;
    if !matches!(operation, AtomicOperation::Lane(_)) || !exists(operation, kind) {
        return Err(Refusal::unsupported(format!("{operation:?} of {kind:?}")));
    }
    let mut micro = r.plain_micro::<x::BulkReduce>();
    operands(r, &mut micro)?;
    micro.extra = x::TO_SHARED * u8::from(to);
    micro.payload = atomic_code(operation, kind).into();
    Ok(micro)
}

/// UBLKPF.L2: there are no caches.
fn prefetch(r: &mut Reader<'_>) -> Read<Micro> {
    r.address(0, true)?;
    r.plain(1, 1)?;
    r.ignore(F::CacheHint);
    r.ignore_operand(2);
    Ok(r.plain_micro::<Nothing>())
}

fn store(r: &mut Reader<'_>) -> Read<Micro> {
    let (mut micro, words) = match r.spelling(F::Size) {
        "" => (r.plain_micro::<x::StoreAndTell<4>>(), 1),
        ".64" => (r.plain_micro::<x::StoreAndTell<8>>(), 2),
        ".128" => (r.plain_micro::<x::StoreAndTell<16>>(), 4),
        other => return Err(Refusal::unsupported(format!("size {other}"))),
    };
    let address = r.address(0, true)?;
    if address.uniform != RowIndex::ZERO || address.scale != 0 {
        return Err(Refusal::unsupported("this form of the address"));
    }
    micro.a = address.base;
    micro.payload = u64::from(address.offset as u32);
    micro.b = r.plain(1, words)?;
    Ok(micro)
}
