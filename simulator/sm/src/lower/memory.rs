//! Loads, stores, atomics, constants and fences.

use sass::{Bank, FieldId as F, Op, Operand};

use sass::lane::atomic::AtomicOperation as LaneOperation;

use super::super::atomic::{AtomicOperation, AtomicType, code as atomic_code, exists};
use super::super::execute::{Nothing, bindless, memory as x};
use super::super::micro::{Handler, Micro, PredicateIn, PredicateOut, RowIndex};
use super::mbarrier;
use super::reader::{Address, Read, Reader, Refusal};

pub(super) fn lower(r: &mut Reader<'_>) -> Option<Read<Micro>> {
    Some(match r.instruction.op {
        Op::Ldg => load(r, x::GLOBAL),
        Op::Ld => load(r, x::GENERIC),
        Op::Lds => load(r, x::SHARED),
        Op::Ldl => load(r, x::LOCAL),
        Op::Stg => store(r, x::GLOBAL),
        Op::St => store(r, x::GENERIC),
        Op::Sts => store(r, x::SHARED),
        Op::Stl => store(r, x::LOCAL),
        Op::Ldc | Op::Uldc => ldc(r),
        Op::Atoms if r.instruction.spelling(F::Function) == Some(".ARRIVE") => mbarrier::arrive(r),
        Op::Red | Op::Redg | Op::Atomg | Op::AtomgCas => atomic(r, x::GLOBAL),
        Op::Atom | Op::AtomCas => atomic(r, x::GENERIC),
        Op::Atoms | Op::AtomsCas | Op::AtomsCast => atomic(r, x::SHARED),
        Op::Syncs => mbarrier::syncs(r),
        Op::Arrives => mbarrier::copies_done(r),
        Op::Ldsm => matrix(r, 0, 1),
        Op::Stsm => matrix(r, 1, 0),
        Op::Ldgsts => ldgsts(r),
        Op::Qspc => qspc(r),
        Op::Membar | Op::Fence => fence(r),
        // Copies are made when they are issued, and the caches are coherent: there is nothing to wait for.
        Op::Ldgdepbar | Op::Depbar | Op::Errbar | Op::Cgaerrbar | Op::Cctl | Op::CctlLine => nothing(r),
        _ => return None,
    })
}

fn nothing(r: &mut Reader<'_>) -> Read<Micro> {
    for slot in 0..r.instruction.operands().len() {
        r.ignore_operand(slot);
    }
    for modifier in &r.instruction.row.modifiers {
        r.ignore(modifier.id);
    }
    Ok(r.plain_micro::<Nothing>())
}

fn fence(r: &mut Reader<'_>) -> Read<Micro> {
    // The strongest order serves all scopes.
    r.ignore(F::Mode);
    r.ignore(F::Scope);
    Ok(r.plain_micro::<x::Fence>())
}

/// Bytes and signedness of an access.
pub(super) fn size(r: &mut Reader<'_>) -> Read<(u32, bool)> {
    Ok(match r.spelling(F::Size) {
        ".U8" => (1, false),
        ".S8" => (1, true),
        ".U16" => (2, false),
        ".S16" => (2, true),
        "" | ".32" => (4, false),
        ".64" => (8, false),
        ".128" => (16, false),
        other => return Err(Refusal::unsupported(format!("size {other}"))),
    })
}

/// Order, scope and hints to caches. Memory here is as ordered as the host's, whatever the instruction asks for;
/// `.STRONG` loads count as looking for something.
fn hints(r: &mut Reader<'_>) -> bool {
    r.ignore(F::Evict);
    r.ignore(F::Prefetch);
    r.spelling(F::Order).contains("STRONG")
}

/// Calls a handler that is generic over bytes and space.
macro_rules! by_bytes {
    ($r:expr, $bytes:expr, $space:expr, $x:path) => {
        by_bytes!($r, $bytes, $space, $x, [1 2 4 8 16])
    };
    ($r:expr, $bytes:expr, $space:expr, $x:path, [$($n:literal)*]) => {{
        use $x as Handler;
        match ($bytes, $space) {
            $(
                ($n, x::GLOBAL) => $r.handler::<Handler<$n, { x::GLOBAL }>>(),
                ($n, x::SHARED) => $r.handler::<Handler<$n, { x::SHARED }>>(),
                ($n, x::LOCAL) => $r.plain_handler::<Handler<$n, { x::LOCAL }>>(),
                ($n, _) => $r.plain_handler::<Handler<$n, { x::GENERIC }>>(),
            )*
            (other, _) => return Err(Refusal::unsupported(format!("accesses of {other} bytes"))),
        }
    }};
}

pub(super) fn put_address(micro: &mut Micro, address: Address) {
    micro.a = address.base;
    let flags = (x::WIDE * u64::from(address.wide)) | (u64::from(address.scale) << x::SCALE);
    micro.payload |= u64::from(address.offset as u32) | u64::from(address.uniform.0) << 32 | flags;
}

fn load(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let long = r.flag(F::Wide64);
    let (bytes, signed) = size(r)?;
    let strong = hints(r);
    // A predicate behind the address says which lanes load; the others get zeros.
    let enabled = if r.has(3) { r.predicate(3)? } else { PredicateIn::TRUE };
    let run = if enabled == PredicateIn::TRUE {
        by_bytes!(r, bytes, space, x::Load)
    } else {
        by_bytes!(r, bytes, space, x::LoadWhere)
    };
    let mut micro = Micro::new(run);
    micro.from[0] = enabled;
    micro.d = r.to(0, (bytes / 4).max(1) as u16)?;
    let address = r.address(1, long)?;
    put_address(&mut micro, address);
    if space == x::GENERIC {
        // Compilers leave 0 in the field that is a predicate of LDG: it is none of LD's, and stays (measured on H200).
        r.ignore_operand(2);
    } else if r.has(2) && r.predicate_to(2)? != PredicateOut::NONE {
        // What it says is not known; an H200 writes false, whether or not a lane loads.
        micro.to[0] = r.predicate_to(2)?;
        micro.run = by_bytes!(r, bytes, space, x::LoadWhere);
    }
    micro.payload |= (x::SIGNED * u64::from(signed)) | (x::STRONG * u64::from(strong));
    Ok(micro)
}

fn store(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let long = r.flag(F::Wide64);
    let (bytes, _) = size(r)?;
    hints(r);
    let mut micro = Micro::new(by_bytes!(r, bytes, space, x::Store));
    let address = r.address(0, long)?;
    put_address(&mut micro, address);
    micro.b = r.plain(1, (bytes / 4).max(1) as u16)?;
    Ok(micro)
}

/// LDC and ULDC from a bank that registers describe.
fn ldc_bindless(r: &mut Reader<'_>, bytes: u32, signed: bool) -> Read<Micro> {
    let Operand::Constant { bank: Bank::Uniform(bank), offset, index, .. } = r.operand(1)? else {
        return Err(Refusal::unsupported("this operand"));
    };
    let mut micro = r.plain_micro::<bindless::LoadBindless>();
    micro.d = r.to(0, (bytes / 4).max(1) as u16)?;
    micro.a = r.index(index, false)?;
    micro.b = r.described_bank(bank)?;
    micro.payload = u64::from(offset as u32) | u64::from(bytes) << 40;
    micro.extra = u8::from(signed);
    Ok(micro)
}

fn ldc(r: &mut Reader<'_>) -> Read<Micro> {
    let (bytes, signed) = size(r)?;
    let words = (bytes / 4).max(1) as u16;
    let Operand::Constant { bank, offset, index, uniform_index, .. } = r.operand(1)? else {
        return Err(Refusal::unsupported("this operand"));
    };
    if words > 2 {
        return Err(Refusal::unsupported("this size"));
    }
    let Bank::Number(bank) = bank else { return ldc_bindless(r, bytes, signed) };
    if index == Operand::RZ && bytes >= 4 {
        let mut micro = r.micro::<x::CopyRows>();
        micro.d = r.to(0, words)?;
        micro.b = r.plain(1, words)?;
        micro.extra = words as u8;
        return Ok(micro);
    }
    let mut micro = r.plain_micro::<x::LoadConstant>();
    micro.d = r.to(0, words)?;
    micro.a = r.index(index, uniform_index)?;
    micro.payload = u64::from(offset as u32) | u64::from(bank) << 32 | u64::from(bytes) << 40;
    micro.extra = u8::from(signed);
    Ok(micro)
}

pub(super) fn operation(r: &mut Reader<'_>) -> Read<AtomicOperation> {
    use AtomicOperation as A;
    Ok(match r.spelling(F::Function) {
        ".ADD" => A::Lane(LaneOperation::Add),
        ".MIN" => A::Lane(LaneOperation::Min),
        ".MAX" => A::Lane(LaneOperation::Max),
        ".INC" => A::Lane(LaneOperation::Increment),
        ".DEC" => A::Lane(LaneOperation::Decrement),
        ".AND" => A::Lane(LaneOperation::And),
        ".OR" => A::Lane(LaneOperation::Or),
        ".XOR" => A::Lane(LaneOperation::Xor),
        ".EXCH" => A::Lane(LaneOperation::Exchange),
        ".CAS" => A::CompareExchange,
        ".POPC.INC" => A::PopcIncrement,
        // ATOMS has one of these names in its mnemonic. The result is 1 if it stored; the code retries until then.
        "" | ".SPIN" | ".CAST" | ".CAST.SPIN" => A::CompareStore,
        other => return Err(Refusal::unsupported(format!("operation {other}"))),
    })
}

/// Type of the elements of an atomic, and how many there are.
fn atomic_type(r: &mut Reader<'_>) -> Read<(AtomicType, u16)> {
    let spelling = r.spelling(F::Size);
    let single = |kind| Ok((kind, 1));
    match spelling {
        "" | ".U32" | ".32" => return single(AtomicType::U32),
        ".S32" => return single(AtomicType::S32),
        ".64" | ".U64" => return single(AtomicType::U64),
        ".S64" => return single(AtomicType::S64),
        ".F64.RN" => return single(AtomicType::F64),
        _ => {}
    }
    let name = spelling.split('.').nth(1).unwrap_or("");
    let flushes = spelling.contains(".FTZ");
    Ok(match name {
        "F32" => (AtomicType::F32 { flushes }, 1),
        "F32x2" => (AtomicType::F32 { flushes }, 2),
        "F32x4" => (AtomicType::F32 { flushes }, 4),
        "F16x2" => (AtomicType::F16x2, 1),
        "F16x4" => (AtomicType::F16x2, 2),
        "F16x8" => (AtomicType::F16x2, 4),
        "BF16x2" => (AtomicType::Bf16x2, 1),
        "BF16x4" => (AtomicType::Bf16x2, 2),
        "BF16x8" => (AtomicType::Bf16x2, 4),
        _ => return Err(Refusal::unsupported(format!("type {spelling}"))),
    })
}

/// The handler of an atomic. Integer additions have handlers of their own.
fn atomic_handler(r: &Reader<'_>, space: u8, operation: AtomicOperation, kind: AtomicType) -> Handler {
    let adds = operation == AtomicOperation::Lane(LaneOperation::Add)
        && matches!(kind, AtomicType::U32 | AtomicType::S32);
    match space {
        x::GLOBAL if adds => r.plain_handler::<x::AddGlobal>(),
        x::SHARED if adds => r.plain_handler::<x::AddShared>(),
        x::GLOBAL => r.plain_handler::<x::Atomic<{ x::GLOBAL }>>(),
        x::SHARED => r.plain_handler::<x::Atomic<{ x::SHARED }>>(),
        _ => r.plain_handler::<x::Atomic<{ x::GENERIC }>>(),
    }
}

/// Atomics of 16 bytes: an exchange, or with `compare` a compare-and-swap.
fn atomic_128(r: &Reader<'_>, space: u8, compare: bool) -> Handler {
    match (space, compare) {
        (x::GLOBAL, false) => r.plain_handler::<x::Atomic128<{ x::GLOBAL }, false>>(),
        (x::GLOBAL, true) => r.plain_handler::<x::Atomic128<{ x::GLOBAL }, true>>(),
        (x::SHARED, false) => r.plain_handler::<x::Atomic128<{ x::SHARED }, false>>(),
        (x::SHARED, true) => r.plain_handler::<x::Atomic128<{ x::SHARED }, true>>(),
        (_, false) => r.plain_handler::<x::Atomic128<{ x::GENERIC }, false>>(),
        (_, true) => r.plain_handler::<x::Atomic128<{ x::GENERIC }, true>>(),
    }
}

/// RED and REDG, ATOM, ATOMG and ATOMS. Where there are operands: a predicate that is written, a register that is
/// written, the address, one or two values.
fn atomic(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let operation = operation(r)?;
    let long = r.flag(F::Wide64);
    hints(r);
    let whole = r.spelling(F::Size) == ".128";
    let (kind, count) = if whole { (AtomicType::U32, 4) } else { atomic_type(r)? };
    let words = count * (kind.bytes() / 4) as u16;
    let first = r.instruction.operands().first();
    let writes_predicate = matches!(first, Some(Operand::Predicate { index, .. }) if *index != Operand::PT);
    let run = match operation {
        AtomicOperation::Lane(LaneOperation::Exchange) if whole => atomic_128(r, space, false),
        AtomicOperation::CompareExchange if whole => atomic_128(r, space, true),
        _ if whole || !exists(operation, kind) => {
            return Err(Refusal::unsupported(format!("{operation:?} of {kind:?}")));
        }
        // Those for additions know neither several elements nor a predicate.
        _ if count == 1 && !writes_predicate => atomic_handler(r, space, operation, kind),
        _ if space == x::GLOBAL => r.plain_handler::<x::Atomic<{ x::GLOBAL }>>(),
        _ if space == x::SHARED => r.plain_handler::<x::Atomic<{ x::SHARED }>>(),
        _ => r.plain_handler::<x::Atomic<{ x::GENERIC }>>(),
    };
    let mut micro = Micro::new(run);
    micro.extra = atomic_code(operation, kind);
    micro.payload = u64::from(count.trailing_zeros()) << x::COUNT;
    let mut slot = 0;
    if matches!(r.instruction.operands().first(), Some(Operand::Predicate { .. })) {
        micro.to[0] = r.predicate_to(0)?;
        slot = 1;
    }
    if matches!(r.instruction.operands().get(slot), Some(Operand::Register { .. })) {
        micro.d = r.to(slot, words)?;
        slot += 1;
    }
    if micro.d == RowIndex::SINK {
        micro.payload |= x::NO_RESULT;
    }
    let address = r.address(slot, long)?;
    put_address(&mut micro, address);
    if r.has(slot + 1) {
        micro.b = r.plain(slot + 1, words)?;
    }
    if matches!(operation, AtomicOperation::CompareExchange | AtomicOperation::CompareStore) {
        micro.c = r.plain(slot + 2, words)?;
    }
    Ok(micro)
}

/// LDSM and STSM, whose registers and address are the operands `registers` and `address`.
fn matrix(r: &mut Reader<'_>, registers: usize, address: usize) -> Read<Micro> {
    let count = match r.spelling(F::Count) {
        "" => 1,
        ".2" => 2,
        ".4" => 4,
        other => return Err(Refusal::unsupported(format!("{other} matrices"))),
    };
    let transpose = match r.spelling(F::Transpose) {
        ".M88" => false,
        ".MT88" => true,
        ".M816" | ".M832" => return Err(Refusal::Illegal("an H200 has no such layout of matrices")),
        other => return Err(Refusal::unsupported(format!("layout {other}"))),
    };
    let mut micro = if r.instruction.op == Op::Ldsm {
        let mut micro = r.plain_micro::<x::LoadMatrix>();
        micro.d = r.to(registers, count)?;
        micro
    } else {
        let mut micro = r.plain_micro::<x::StoreMatrix>();
        micro.b = r.plain(registers, count)?;
        micro
    };
    let address = r.address(address, false)?;
    put_address(&mut micro, address);
    micro.extra = count as u8 | u8::from(transpose) << 7;
    Ok(micro)
}

/// LDGSTS: global memory to shared memory. The copy is made at once.
fn ldgsts(r: &mut Reader<'_>) -> Read<Micro> {
    let long = r.flag(F::Wide64);
    let (bytes, _) = size(r)?;
    hints(r);
    r.ignore(F::Bypass);
    let zero_fill = r.flag(F::ZeroFill);
    let run = match bytes {
        4 => r.plain_handler::<x::CopyToShared<4>>(),
        8 => r.plain_handler::<x::CopyToShared<8>>(),
        16 => r.plain_handler::<x::CopyToShared<16>>(),
        _ => return Err(Refusal::unsupported("this size")),
    };
    let mut micro = Micro::new(run);
    let shared = r.address(0, false)?;
    if shared.uniform != RowIndex::ZERO || shared.scale != 0 {
        return Err(Refusal::unsupported("this form of the shared address"));
    }
    let global = r.address(1, long)?;
    put_address(&mut micro, global);
    micro.b = shared.base;
    micro.c = r.constant_row(shared.offset as u32);
    micro.from[0] = r.predicate(2)?;
    micro.extra = zero_fill.into();
    Ok(micro)
}

/// QSPC: whether a generic address lies in a space.
fn qspc(r: &mut Reader<'_>) -> Read<Micro> {
    let space = match r.spelling(F::Mode) {
        ".G" => x::IN_GLOBAL,
        ".L" => x::IN_LOCAL,
        ".S" => x::IN_SHARED,
        ".D" => x::IN_CLUSTER,
        other => return Err(Refusal::unsupported(format!("space {other}"))),
    };
    let mut micro = r.plain_micro::<x::QuerySpace>();
    micro.to[0] = r.predicate_to(0)?;
    micro.d = r.to(1, 1)?;
    let long = r.flag(F::Wide64);
    let address = r.address(2, long)?;
    put_address(&mut micro, address);
    micro.extra = space as u8;
    Ok(micro)
}
