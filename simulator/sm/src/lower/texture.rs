//! Textures and surfaces. What they read is `nv_texture`'s.
//!
//! Where operands lie follows from what nvcc emits. Of a texture instruction, the first vector of registers holds the
//! layer and the coordinates, the second what else there is: handle, level, offsets, reference value. With `.SCR` all of
//! that is one list, of which the first half (rounded up) is in the first vector. TXD has the handle first, the layer
//! last, and derivatives in the second vector. Results go to two vectors of two registers each.

use sass::{FieldId as F, Op, Operand};

use nv_texture::{OutOfRange, Shape, SurfaceShape};

use super::super::atomic::{AtomicOperation, AtomicType, code as atomic_code, exists};
use super::super::execute::texture as x;
use super::super::micro::{Micro, RowIndex};
use super::memory::operation;
use super::reader::{Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Tex => sample(r),
        Op::Txd => derivatives(r),
        Op::Tld => fetch(r),
        Op::Tld4 => gather(r),
        Op::Txq => query(r),
        Op::Suld | Op::SuldFormat => surface_load(r),
        Op::Sust | Op::SustFormat => surface_store(r),
        Op::Sured => surface_reduce(r),
        _ => return None,
    })
}

/// Number of the active lanes among what BMOV reaches.
const MACTIVE: u8 = 26;

/// Where the handle is.
#[derive(Clone, Copy)]
enum Handle {
    /// In this row.
    Row(RowIndex),
    /// In this row, with zero in the next one.
    Pair(RowIndex),
    /// Among the operands.
    Operand,
}

/// The handle's operands, from `slot` on, and how many slots they take.
fn handle(r: &mut Reader<'_>, slot: usize, texture: bool) -> Read<(Handle, usize)> {
    let bindless = r.flag(F::Bindless);
    match r.instruction.operands().get(slot) {
        Some(Operand::UniformRegister { .. }) => {
            let row = r.plain(slot, if texture { 2 } else { 1 })?;
            if r.immediate(slot + 1)? != 0 {
                return Err(Refusal::unsupported("an offset behind a handle's register"));
            }
            Ok((if texture { Handle::Pair(row) } else { Handle::Row(row) }, 2))
        }
        Some(Operand::Immediate { .. }) if !bindless => {
            let (bank, word) = (r.immediate(slot)?, r.immediate(slot + 1)?);
            Ok((Handle::Row(r.constant_word(bank as u8, 4 * word as u32)), 2))
        }
        Some(Operand::Immediate { .. }) => Err(Refusal::unsupported("a handle's constant with .B")),
        Some(Operand::Register { .. }) if !texture => Ok((Handle::Row(r.plain(slot, 1)?), 1)),
        _ => Ok((Handle::Operand, 0)),
    }
}

/// What all texture instructions have: destinations, handle, shape, components.
struct Common {
    micro: Micro,
    handle: Handle,
    shape: Shape,
}

fn common(r: &mut Reader<'_>, mut micro: Micro) -> Read<Common> {
    r.ignore(F::Evict);
    r.ignore(F::NoDependency);
    if r.flag(F::DestinationType) {
        return Err(Refusal::unsupported("results of halves"));
    }
    let (handle, slots) = handle(r, 4, true)?;
    let slot = 4 + slots;
    let number = r.word(slot)?;
    let shape = Shape::BY_NUMBER.get(usize::from(number)).copied().flatten();
    let shape = shape.ok_or_else(|| Refusal::unsupported(format!("shape {number}")))?;
    results(r, &mut micro, slot + 1)?;
    micro.to[0] = r.predicate_to(slot + 2)?;
    micro.payload |= u64::from(number) << x::SHAPE;
    put_handle(&mut micro, handle);
    Ok(Common { micro, handle, shape })
}

fn put_handle(micro: &mut Micro, handle: Handle) {
    match handle {
        Handle::Row(row) => micro.payload |= u64::from(row.0),
        Handle::Pair(row) => micro.payload |= u64::from(row.0) | x::HANDLE_IS_PAIR,
        Handle::Operand => micro.payload |= x::HANDLE_IS_OPERAND,
    }
}

/// Destinations by the mask of components in `slot`.
fn results(r: &mut Reader<'_>, micro: &mut Micro, slot: usize) -> Read<()> {
    let mask = r.immediate(slot)? as u8 & 15;
    let count = mask.count_ones() as u16;
    micro.d = r.to(1, count.min(2))?;
    micro.c = r.to(0, count.saturating_sub(2))?;
    micro.payload |= u64::from(mask) << x::MASK;
    Ok(())
}

/// The two vectors of operands: `first` values, then `rest`.
fn vectors(r: &mut Reader<'_>, micro: &mut Micro, first: usize, rest: usize) -> Read<()> {
    let all = first + rest;
    let first = if r.flag(F::Scatter) { all.div_ceil(2) } else { first };
    if first > 4 || all - first > 4 {
        return Err(Refusal::unsupported(format!("{all} operands")));
    }
    micro.a = r.plain(2, first as u16)?;
    micro.b = r.plain(3, (all - first) as u16)?;
    micro.payload |= (first as u64) << x::FIRST;
    Ok(())
}

/// Registers of the handle among the operands.
fn handle_words(handle: Handle) -> usize {
    match handle {
        Handle::Row(_) | Handle::Pair(_) => 0,
        Handle::Operand => 1,
    }
}

fn sample(r: &mut Reader<'_>) -> Read<Micro> {
    let micro = r.plain_micro::<x::Sample>();
    let Common { mut micro, handle, shape } = common(r, micro)?;
    // That lanes of a quad stay together is nothing to wait for here.
    r.ignore(F::NoDerivative);
    let (lod, words) = match r.spelling(F::LevelOfDetail) {
        "" => (x::LOD_COMPUTED, 0),
        ".LZ" => (x::LOD_ZERO, 0),
        ".LB" => (x::LOD_BIAS, 1),
        ".LL" => (x::LOD_LEVEL, 1),
        other => return Err(Refusal::unsupported(format!("level of detail {other}"))),
    };
    micro.payload |= lod << x::LOD;
    let (offset, compare) = (r.flag(F::Offset), r.flag(F::DepthCompare));
    micro.payload |= (x::HAS_OFFSET * u64::from(offset)) | (x::COMPARES * u64::from(compare));
    let first = shape.coordinates() + usize::from(shape.is_array());
    let rest = handle_words(handle) + words + usize::from(offset) + usize::from(compare);
    vectors(r, &mut micro, first, rest)?;
    Ok(micro)
}

fn derivatives(r: &mut Reader<'_>) -> Read<Micro> {
    let micro = r.plain_micro::<x::SampleByDerivatives>();
    let Common { mut micro, handle, shape } = common(r, micro)?;
    let first = handle_words(handle) + shape.coordinates() + usize::from(shape.is_array());
    micro.a = r.plain(2, first as u16)?;
    micro.b = r.plain(3, 2 * shape.coordinates() as u16)?;
    Ok(micro)
}

fn fetch(r: &mut Reader<'_>) -> Read<Micro> {
    let micro = r.plain_micro::<x::Fetch>();
    let Common { mut micro, handle, shape } = common(r, micro)?;
    let level = match r.spelling(F::LevelOfDetail) {
        ".LZ" => false,
        ".LL" => true,
        other => return Err(Refusal::unsupported(format!("level of detail {other}"))),
    };
    r.ignore(F::Clamp);
    let offset = r.flag(F::Offset);
    micro.payload |= (if level { x::LOD_LEVEL } else { x::LOD_ZERO }) << x::LOD;
    micro.payload |= x::HAS_OFFSET * u64::from(offset);
    let first = shape.coordinates() + usize::from(shape.is_array());
    vectors(r, &mut micro, first, handle_words(handle) + usize::from(level) + usize::from(offset))?;
    Ok(micro)
}

fn gather(r: &mut Reader<'_>) -> Read<Micro> {
    let micro = r.plain_micro::<x::Gather>();
    let Common { mut micro, handle, shape } = common(r, micro)?;
    let component = r.field(F::Component);
    let offset = match r.spelling(F::Offset) {
        "" => false,
        ".AOFFI" => true,
        other => return Err(Refusal::unsupported(format!("offsets {other}"))),
    };
    let compare = r.flag(F::DepthCompare);
    micro.extra = component as u8;
    micro.payload |= (x::HAS_OFFSET * u64::from(offset)) | (x::COMPARES * u64::from(compare));
    let first = shape.coordinates() + usize::from(shape.is_array());
    vectors(r, &mut micro, first, handle_words(handle) + usize::from(offset) + usize::from(compare))?;
    Ok(micro)
}

fn query(r: &mut Reader<'_>) -> Read<Micro> {
    r.ignore(F::NoDependency);
    let mut micro = r.plain_micro::<x::Query>();
    if r.word(3)? != 0 {
        return Err(Refusal::unsupported("this query"));
    }
    let (handle, slots) = handle(r, 4, true)?;
    results(r, &mut micro, 4 + slots)?;
    put_handle(&mut micro, handle);
    micro.a = r.plain(2, 1 + handle_words(handle) as u16)?;
    Ok(micro)
}

/// BMOV between the set of active lanes and a convergence barrier: around samples whose level of detail follows from the
/// coordinates of a quad, all of whose lanes then have to take part.
pub(super) fn lanes_at_hand(r: &mut Reader<'_>) -> Read<Micro> {
    let to_barrier = matches!(r.instruction.operands().first(), Some(Operand::Barrier(_)));
    let (barrier, lanes) = if to_barrier { (0, 1) } else { (1, 0) };
    if r.word(lanes)? != MACTIVE {
        return Err(Refusal::unsupported("other sets of lanes than MACTIVE"));
    }
    let mut micro = match to_barrier {
        true => r.plain_micro::<super::super::execute::control::Bssy>(),
        false => r.plain_micro::<x::LanesOfBarrier>(),
    };
    micro.payload = r.convergence(barrier)?.into();
    micro.extra = u8::from(r.flag(F::Quad));
    Ok(micro)
}

/// What surface instructions have in common: coordinates in `address`, the handle's operands from `from` on.
fn surface(r: &mut Reader<'_>, micro: &mut Micro, address: usize, from: usize) -> Read<()> {
    r.ignore(F::Evict);
    r.ignore(F::Order);
    let number = r.field(F::Shape);
    let shape = SurfaceShape::BY_NUMBER.get(number as usize);
    let shape = shape.ok_or_else(|| Refusal::unsupported(format!("shape {number}")))?;
    let out_of_range = match r.spelling(F::OutOfRange) {
        ".IGN" => OutOfRange::Ignore,
        "" => OutOfRange::Clamp,
        ".TRAP" => OutOfRange::Trap,
        other => return Err(Refusal::unsupported(format!("out of range {other}"))),
    };
    let (row, _) = handle(r, from, false)?;
    put_handle(micro, row);
    micro.payload |= u64::from(number) << x::SHAPE | (out_of_range as u64) << x::OUT_OF_RANGE;
    micro.payload |= x::BY_BYTES * u64::from(r.flag(F::ByteAddress));
    micro.a = r.vector_address(address, shape.coordinates() as u16)?;
    Ok(())
}

/// Bytes of an access, and whether it extends a sign.
fn bytes(r: &mut Reader<'_>) -> Read<(u32, bool)> {
    super::memory::size(r)
}

/// Components that an access by the surface's format has registers for.
fn components(r: &mut Reader<'_>) -> Read<u32> {
    match r.spelling(F::Size) {
        ".R" => Ok(1),
        ".RG" => Ok(2),
        "" => Ok(4),
        other => Err(Refusal::unsupported(format!("components {other}"))),
    }
}

fn surface_load(r: &mut Reader<'_>) -> Read<Micro> {
    if r.instruction.op == Op::SuldFormat {
        return Err(Refusal::unsupported("loads by the surface's format"));
    }
    let mut micro = r.plain_micro::<x::SurfaceLoad>();
    let (bytes, signed) = bytes(r)?;
    micro.d = r.to(0, (bytes / 4).max(1) as u16)?;
    micro.extra = bytes as u8;
    micro.payload |= x::SIGNED * u64::from(signed);
    surface(r, &mut micro, 1, 2)?;
    let last = r.instruction.operands().len() - 1;
    micro.to[0] = r.predicate_to(last)?;
    Ok(micro)
}

fn surface_store(r: &mut Reader<'_>) -> Read<Micro> {
    let (mut micro, words) = if r.instruction.op == Op::Sust {
        let (bytes, _) = bytes(r)?;
        (Micro { extra: bytes as u8, ..r.plain_micro::<x::SurfaceStore>() }, (bytes / 4).max(1))
    } else {
        let components = components(r)?;
        (Micro { extra: components as u8, ..r.plain_micro::<x::SurfaceStoreFormat>() }, components)
    };
    micro.b = r.plain(1, words as u16)?;
    surface(r, &mut micro, 0, 2)?;
    Ok(micro)
}

fn surface_reduce(r: &mut Reader<'_>) -> Read<Micro> {
    let operation = operation(r)?;
    let kind = match r.spelling(F::Size) {
        "" => AtomicType::U32,
        ".S32" => AtomicType::S32,
        ".U64" => AtomicType::U64,
        ".S64" => AtomicType::S64,
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    };
    if !matches!(operation, AtomicOperation::Lane(_)) || !exists(operation, kind) {
        return Err(Refusal::unsupported(format!("{operation:?} of {kind:?}")));
    }
    let mut micro = r.plain_micro::<x::SurfaceReduce>();
    micro.extra = atomic_code(operation, kind);
    micro.b = r.plain(1, (kind.bytes() / 4) as u16)?;
    surface(r, &mut micro, 0, 2)?;
    Ok(micro)
}
