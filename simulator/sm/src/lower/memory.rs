//! Loads, stores, atomics, constants and fences.

use sass::{Bank, FieldId as F, Op, Operand};

use super::super::atomic::{AtomicOperation, AtomicType};
use super::super::execute::{Nothing, memory as x};
use super::super::micro::{Handler, Micro, RowIndex};
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
        Op::Red | Op::Redg => reduction(r),
        Op::Atomg => atomic(r, x::GLOBAL),
        Op::Atom => atomic(r, x::GENERIC),
        Op::Atoms => atomic(r, x::SHARED),
        Op::AtomgCas => compare_exchange(r, x::GLOBAL),
        Op::AtomCas => compare_exchange(r, x::GENERIC),
        Op::AtomsCas => compare_exchange(r, x::SHARED),
        Op::AtomsCast => cast(r),
        Op::Ldsm => ldsm(r),
        Op::Ldgsts => ldgsts(r),
        Op::Qspc => qspc(r),
        Op::Membar => fence(r),
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
fn size(r: &mut Reader<'_>) -> Read<(u32, bool)> {
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

fn put_address(micro: &mut Micro, address: Address) {
    micro.a = address.base;
    let flags = (x::WIDE * u64::from(address.wide)) | (u64::from(address.scale) << x::SCALE);
    micro.payload |= u64::from(address.offset as u32) | u64::from(address.uniform.0) << 32 | flags;
}

fn load(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let long = r.flag(F::Wide64);
    let (bytes, signed) = size(r)?;
    let strong = hints(r);
    let mut micro = Micro::new(by_bytes!(r, bytes, space, x::Load));
    micro.d = r.to(0, (bytes / 4).max(1) as u16)?;
    let address = r.address(1, long)?;
    put_address(&mut micro, address);
    if space == x::GENERIC {
        // Compilers leave 0 in the field that is a predicate of LDG: it is none of LD's.
        r.ignore_operand(2);
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

fn ldc(r: &mut Reader<'_>) -> Read<Micro> {
    let (bytes, signed) = size(r)?;
    let words = (bytes / 4).max(1) as u16;
    let Operand::Constant { bank: Bank::Number(bank), offset, index, uniform_index, .. } = r.operand(1)?
    else {
        return Err(Refusal::unsupported("a bank named by a register"));
    };
    if words > 2 {
        return Err(Refusal::unsupported("this size"));
    }
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

fn operation(r: &mut Reader<'_>) -> Read<AtomicOperation> {
    Ok(match r.spelling(F::Function) {
        ".ADD" => AtomicOperation::Add,
        ".MIN" => AtomicOperation::Min,
        ".MAX" => AtomicOperation::Max,
        ".INC" => AtomicOperation::Increment,
        ".DEC" => AtomicOperation::Decrement,
        ".AND" => AtomicOperation::And,
        ".OR" => AtomicOperation::Or,
        ".XOR" => AtomicOperation::Xor,
        ".EXCH" => AtomicOperation::Exchange,
        ".CAS" => AtomicOperation::CompareExchange,
        ".POPC.INC" => AtomicOperation::PopcIncrement,
        other => return Err(Refusal::unsupported(format!("operation {other}"))),
    })
}

fn atomic_type(r: &mut Reader<'_>) -> Read<AtomicType> {
    Ok(match r.spelling(F::Size) {
        "" | ".U32" | ".32" => AtomicType::U32,
        ".S32" => AtomicType::S32,
        ".64" | ".U64" => AtomicType::U64,
        ".S64" => AtomicType::S64,
        ".F32.FTZ.RN" => AtomicType::F32,
        ".F16x2.RN" => AtomicType::F16x2,
        ".BF16x2.RN" => AtomicType::Bf16x2,
        ".F64.RN" => AtomicType::F64,
        other => return Err(Refusal::unsupported(format!("type {other}"))),
    })
}

/// The handler of an atomic. Integer additions have handlers of their own.
fn atomic_handler(r: &Reader<'_>, space: u8, operation: AtomicOperation, kind: AtomicType) -> Handler {
    let word = matches!(kind, AtomicType::U32 | AtomicType::S32);
    match (space, operation) {
        (x::GLOBAL, AtomicOperation::Add) if word => r.plain_handler::<x::AddGlobal>(),
        (x::SHARED, AtomicOperation::Add) if word => r.plain_handler::<x::AddShared>(),
        (x::GLOBAL, _) => r.plain_handler::<x::Atomic<{ x::GLOBAL }>>(),
        (x::SHARED, _) => r.plain_handler::<x::Atomic<{ x::SHARED }>>(),
        _ => r.plain_handler::<x::Atomic<{ x::GENERIC }>>(),
    }
}

fn reduction(r: &mut Reader<'_>) -> Read<Micro> {
    let (operation, kind) = (operation(r)?, atomic_type(r)?);
    let long = r.flag(F::Wide64);
    hints(r);
    let space = x::GLOBAL;
    let mut micro = Micro::new(atomic_handler(r, space, operation, kind));
    let address = r.address(0, long)?;
    put_address(&mut micro, address);
    micro.b = r.plain(1, u16::from(kind.bytes() / 4))?;
    micro.extra = x::atomic_code(operation, kind);
    micro.payload |= x::NO_RESULT;
    Ok(micro)
}

fn atomic(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let (operation, kind) = (operation(r)?, atomic_type(r)?);
    let words = u16::from(kind.bytes() / 4);
    let long = r.flag(F::Wide64);
    hints(r);
    let mut micro = Micro::new(atomic_handler(r, space, operation, kind));
    // ATOM and ATOMG have a predicate destination, of which nothing but PT is known.
    let first = usize::from(matches!(r.instruction.operands().first(), Some(Operand::Predicate { .. })));
    micro.d = r.to(first, words)?;
    let address = r.address(first + 1, long)?;
    put_address(&mut micro, address);
    if r.has(first + 2) {
        micro.b = r.plain(first + 2, words)?;
    }
    micro.extra = x::atomic_code(operation, kind);
    if micro.d == RowIndex::SINK {
        micro.payload |= x::NO_RESULT;
    }
    Ok(micro)
}

fn compare_exchange(r: &mut Reader<'_>, space: u8) -> Read<Micro> {
    let (operation, kind) = (operation(r)?, atomic_type(r)?);
    let words = u16::from(kind.bytes() / 4);
    let long = r.flag(F::Wide64);
    hints(r);
    let mut micro = Micro::new(atomic_handler(r, space, operation, kind));
    let first = usize::from(matches!(r.instruction.operands().first(), Some(Operand::Predicate { .. })));
    micro.d = r.to(first, words)?;
    let address = r.address(first + 1, long)?;
    put_address(&mut micro, address);
    micro.b = r.plain(first + 2, words)?;
    micro.c = r.plain(first + 3, words)?;
    micro.extra = x::atomic_code(operation, kind);
    Ok(micro)
}

/// ATOMS.CAST.SPIN: a compare-and-swap whose result is 1 if it stored; the compiler's code retries until then.
fn cast(r: &mut Reader<'_>) -> Read<Micro> {
    r.ignore(F::Function);
    let kind = atomic_type(r)?;
    let words = u16::from(kind.bytes() / 4);
    let mut micro = r.plain_micro::<x::Atomic<{ x::SHARED }>>();
    micro.d = r.to(0, words)?;
    let address = r.address(1, false)?;
    put_address(&mut micro, address);
    micro.b = r.plain(2, words)?;
    micro.c = r.plain(3, words)?;
    micro.extra = x::atomic_code(AtomicOperation::CompareStore, kind);
    Ok(micro)
}

fn ldsm(r: &mut Reader<'_>) -> Read<Micro> {
    let count = match r.spelling(F::Count) {
        "" => 1,
        ".2" => 2,
        ".4" => 4,
        other => return Err(Refusal::unsupported(format!("{other} matrices"))),
    };
    let transpose = match r.spelling(F::Transpose) {
        ".M88" => false,
        ".MT88" => true,
        other => return Err(Refusal::unsupported(format!("layout {other}"))),
    };
    let mut micro = r.plain_micro::<x::LoadMatrix>();
    micro.d = r.to(0, count)?;
    let address = r.address(1, false)?;
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
        ".G" => 0,
        ".L" => 1,
        ".S" => 2,
        other => return Err(Refusal::unsupported(format!("space {other}"))),
    };
    let mut micro = r.plain_micro::<x::QuerySpace>();
    micro.to[0] = r.predicate_to(0)?;
    micro.d = r.to(1, 1)?;
    let long = r.flag(F::Wide64);
    let address = r.address(2, long)?;
    put_address(&mut micro, address);
    micro.extra = space;
    if micro.d != RowIndex::SINK {
        return Err(Refusal::unsupported("a register result"));
    }
    Ok(micro)
}
