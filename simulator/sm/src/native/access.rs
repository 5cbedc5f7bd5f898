//! Loads and stores in compiled code, and what makes them safe.
//!
//! Every eight lanes look at their addresses where they have them: those that rise by the item's size, or are all the same, lie
//! in one window on global memory that the worker knows, or within the block's shared memory, and are aligned, are read or written by
//! the code itself. What several loads read from one base is looked at once. Everything else leaves the straight way, and comes
//! back to it: [`super::aid`] looks at addresses that lie otherwise, and executes what is left by the instruction's handler.

use super::super::execute::memory::{SCALE, SHARED, SIGNED, WIDE};
use super::super::memory::{PLACE, WINDOW_BYTES, WINDOWS, Window, Windows};
use super::super::micro::{Micro, PredicateIn, RowIndex};
use super::aid::{self, Site};
use super::assembler::{
    Arithmetic, Assembler, Condition, General, Label, Memory, R14, R15, RAX, RSP, SHIFT_LEFT, SHIFT_RIGHT,
    SHIFT_RIGHT_SIGNED, Vector, Ymm, at,
};
use super::builder::{ACTIVE, Builder, Emitted, Full, Held, Name, Number, SCRATCH, Truth};
use super::plan::Reached;
use nv_memory::AccessKind;

/// Where [`Windows`] are, in functions for runs.
pub(super) const WINDOWS_AT: General = R15;

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub space: u8,
    /// Of an item.
    pub bytes: u8,
    pub stores: bool,
}

impl Access {
    /// Registers that an item takes.
    pub(super) fn words(self) -> u16 {
        u16::from(self.bytes / 4).max(1)
    }
}

/// What an access adds its offset to, and the offsets of all accesses that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub access: Access,
    pub row: RowIndex,
    pub uniform: RowIndex,
    pub scale: u8,
    pub wide: bool,
    pub guard: PredicateIn,
    /// The first and the last offset.
    pub offsets: [i32; 2],
}

impl Base {
    fn of(op: &Micro, access: Access) -> Self {
        let offset = op.payload as u32 as i32;
        Self {
            access,
            row: op.a,
            uniform: RowIndex((op.payload >> 32) as u16),
            scale: (op.payload >> SCALE & 7) as u8,
            wide: op.payload & WIDE != 0,
            guard: if op.kind & Micro::GUARDED != 0 { op.guard } else { PredicateIn::TRUE },
            offsets: [offset; 2],
        }
    }

    /// Takes another load in, if it reads from the same base and is aligned as the first is. Whether it did.
    fn join(&mut self, other: &Self) -> bool {
        let apart = other.offsets[0].wrapping_sub(self.offsets[0]);
        let joins = Self { offsets: self.offsets, ..*other } == *self
            && !self.access.stores
            && apart & (i32::from(self.access.bytes) - 1) == 0;
        if joins {
            self.offsets = [self.offsets[0].min(other.offsets[0]), self.offsets[1].max(other.offsets[1])];
        }
        joins
    }

    /// Whether it is another one where `name` is written.
    fn depends(&self, name: Name) -> bool {
        match name {
            Name::Row(row) => {
                let row = RowIndex(row);
                let high = |of: RowIndex| row == of || row == of.plus(1);
                (if self.wide { high(self.row) } else { row == self.row }) || high(self.uniform)
            }
            Name::Predicate(number) => number == self.guard.0 & 15,
        }
    }

    /// How the lanes lie that most accesses are by.
    pub(super) fn usual(&self) -> Way {
        let narrow = u32::from(self.access.bytes) >> self.scale == 0;
        let vector = self.access.space == SHARED && self.access.bytes > 4 && !self.access.stores;
        if vector || narrow || self.row == RowIndex::ZERO { Way::Same } else { Way::Rising }
    }

    /// The offset behind the last byte that eight lanes of that kind access.
    pub(super) fn end(&self, way: Way) -> i32 {
        let lanes = if way == Way::Rising { 8 } else { 1 };
        self.offsets[1].wrapping_add(lanes * i32::from(self.access.bytes))
    }
}

/// How the active ones of eight lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Way {
    /// All eight are active, each right behind the one before.
    Rising,
    /// At one place.
    Same,
    /// Each right behind the one before, but not all are active.
    SomeRising,
    /// Anyhow, within reach of each other.
    Scattered,
    /// The handler has to look for them.
    Anywhere,
}

/// Where eight lanes find a base, or where `Way` is [`Way::Anywhere`] not.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Place {
    /// The memory at the end of the first lane's range, as [`Base::end`] of a usual way has it; where lanes are scattered of
    /// what index 0 would be.
    pub pointer: *const u8,
    pub way: Way,
    /// What makes an index of a lane's register.
    pub bias: u32,
}

/// Places of a run at most, one of which is for those that are needed only once.
pub(super) const PLACES: usize = 8;
const ONCE: usize = PLACES - 1;

/// What runs keep on the stack.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Stack {
    pub places: [Place; PLACES],
    pub common: Common,
    /// What is computed before a run: see [`super::plan`].
    scalars: [u64; SCALARS],
    /// What the function was given.
    frame: *const super::Frame,
    /// Of loops: what is told of the member at hand, its lanes that go around, turns that are left, and whether one is the last.
    ledger: *mut super::loops::Left,
    taken: u64,
    rounds: u32,
    stops: u32,
    /// Of runs: whether addresses of a member could not be known before. Those of the others are mostly made alike.
    unplanned: u64,
    aligns: u64,
}

// Functions that are called expect a stack that is aligned so.
const _: () = assert!(size_of::<Stack>().is_multiple_of(16));

/// What the function was given.
pub(super) const FRAME: Memory = on_stack(std::mem::offset_of!(Stack, frame));
/// What is told of a loop and the member at hand.
pub(super) const LEDGER: Memory = on_stack(std::mem::offset_of!(Stack, ledger));
/// The lanes of the member that go around.
pub(super) const TAKEN: Memory = on_stack(std::mem::offset_of!(Stack, taken));
/// Turns that are left.
pub(super) const ROUNDS: Memory = on_stack(std::mem::offset_of!(Stack, rounds));
/// Whether the turn is the last.
pub(super) const STOPS: Memory = on_stack(std::mem::offset_of!(Stack, stops));

/// Whether addresses of a member could not be known before its run.
pub(super) const UNPLANNED: Memory = on_stack(std::mem::offset_of!(Stack, unplanned));

/// Numbers that are computed before a run, at most.
pub(super) const SCALARS: usize = 64;

/// What all accesses need to know. See [`super::Frame`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Common {
    /// The block's shared memory, its bytes, and where it begins among shared addresses.
    pub shared: *mut u8,
    pub shared_bytes: u64,
    pub window: u64,
    /// The [`super::super::core::Core`], for [`aid`].
    pub core: *mut (),
    /// Indices of the block's threads, by warps, and of the block.
    pub threads: *const super::special::ThreadIndices,
    pub block: [u32; 4],
    pub aligned: u64,
}

const fn on_stack(offset: usize) -> Memory {
    at(RSP, offset as i32)
}

pub(super) const fn common(offset: usize) -> Memory {
    on_stack(std::mem::offset_of!(Stack, common) + offset)
}

/// A number that is computed before a run.
pub(super) const fn scalar(number: usize) -> Memory {
    on_stack(std::mem::offset_of!(Stack, scalars) + 8 * number)
}

/// A part of a place on the stack.
const fn place(slot: usize, offset: usize) -> Memory {
    on_stack(std::mem::offset_of!(Stack, places) + slot * size_of::<Place>() + offset)
}

const fn pointer_of(slot: usize) -> Memory {
    place(slot, std::mem::offset_of!(Place, pointer))
}

const fn way_of(slot: usize) -> Memory {
    place(slot, std::mem::offset_of!(Place, way))
}

/// Bases that were looked at, for the eight lanes at hand.
#[derive(Debug, Default)]
pub(super) struct Looked {
    bases: Vec<Base>,
    /// As many were given a place.
    slots: usize,
    /// Those that hold.
    valid: Vec<usize>,
}

impl Looked {
    fn base(&self, slot: usize) -> Option<Base> {
        self.bases.get(slot).copied()
    }

    fn find(&self, base: &Base) -> Option<usize> {
        self.valid.iter().copied().find(|slot| {
            let mut all = self.bases[*slot];
            all.join(base) && all == self.bases[*slot]
        })
    }

    /// The base is known from here on, in a place of its own if there is one left.
    fn add(&mut self, base: Base) -> Option<usize> {
        let slot = self.slots;
        (slot < ONCE).then(|| {
            self.slots += 1;
            self.bases.push(base);
            self.valid.push(slot);
            slot
        })
    }

    /// Something is written.
    pub(super) fn forget(&mut self, name: Name) {
        self.valid.retain(|slot| !self.bases[*slot].depends(name));
    }
}

/// The ways of an access for lanes that do not lie as most do, which are written behind the run.
#[derive(Debug)]
pub(super) struct Cold {
    site: Site,
    usual: Option<Way>,
    slot: usize,
    /// Some of the lanes are active, or none.
    partly: Option<Label>,
    /// The lanes do not lie as most do, or not where they are expected.
    look: Option<Label>,
    /// The same, which is known.
    other: Label,
    /// Where the usual access begins, and where the way goes on.
    access: Label,
    back: Label,
    offset: i32,
    words: usize,
    /// What is loaded.
    outs: [Ymm; 4],
    /// The index, if it is in a register.
    index: Option<Ymm>,
    /// The lanes that access, if not all do.
    mask: Option<Ymm>,
    spare: Ymm,
    /// What has to be stored for the handler.
    held: Held,
}

/// The lanes of an instruction: none at all, all eight, or those of a mask.
enum Lanes {
    None,
    All,
    Some(Ymm),
}

fn lanes(b: &mut Builder<'_>) -> Result<Lanes, Full> {
    let masked = b.is_masked();
    Ok(match b.guard() {
        Truth::Never => Lanes::None,
        Truth::Always if masked => Lanes::Some(ACTIVE),
        Truth::Always => Lanes::All,
        guard => {
            let guard = b.mask(guard)?;
            Lanes::Some(if masked { b.make(Vector::VPAND, guard, ACTIVE)? } else { guard })
        }
    })
}

/// Emits a load of so many bytes by each lane.
pub(crate) fn load<const BYTES: usize, const SPACE: u8>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    emit(b, op, Access { space: SPACE, bytes: BYTES as u8, stores: false })
}

/// Emits a store of so many bytes by each lane.
pub(crate) fn store<const BYTES: usize, const SPACE: u8>(b: &mut Builder<'_>, op: &Micro) -> Emitted {
    emit(b, op, Access { space: SPACE, bytes: BYTES as u8, stores: true })
}

fn emit(b: &mut Builder<'_>, op: &Micro, access: Access) -> Emitted {
    let words = usize::from(access.bytes) / 4;
    if let Some(planned) = b.planned() {
        return emit_planned(b, op, access, planned);
    }
    if words == 0 {
        return emit_small(b, op, access);
    }
    let mut base = Base::of(op, access);
    let offset = base.offsets[0];
    let lanes = match lanes(b)? {
        Lanes::None => return Ok(()),
        Lanes::All => None,
        Lanes::Some(mask) => Some(mask),
    };
    for row in [base.uniform, base.uniform.plus(1)] {
        b.reads_in_memory(Name::Row(row.0));
    }
    let known = b.looked.find(&base);
    let mut again = false;
    if known.is_none() && !access.stores {
        for (op, access) in b.loads_ahead(|name| base.depends(name)) {
            again |= base.join(&Base::of(&op, access));
        }
    }
    let slot = match known {
        Some(slot) => slot,
        None if again => b.looked.add(base).unwrap_or(ONCE),
        None => ONCE,
    };
    if known.is_none() && slot == ONCE {
        base.offsets = [offset; 2];
    }
    if let Some(known) = known.and_then(|slot| b.looked.base(slot)) {
        base = known;
    }
    // What is stored, and where.
    let mut data = [Ymm(0); 4];
    if access.stores {
        for (word, data) in data.iter_mut().enumerate().take(words) {
            *data = b.bits(op.b.plus(word as u16))?;
        }
    }
    let (low, high) = if known.is_some() {
        b.reads(Name::Row(base.row.0));
        (None, None)
    } else {
        let high = if base.wide { Some(b.bits(base.row.plus(1))?) } else { None };
        (Some(b.bits(base.row)?), high)
    };
    let mut outs = [Ymm(0); 4];
    if !access.stores {
        for out in outs.iter_mut().take(words) {
            *out = b.temporary()?;
        }
    }
    // Whatever a register is taken for is done before the ways part.
    let (spare, second) = (b.temporary()?, b.temporary()?);
    let [look, other, to, back, partly] = [(); 5].map(|()| b.asm.label());
    // Lanes of which not all run are looked at by the way behind.
    let usual_way = base.usual();
    let usual = (!b.is_masked()).then_some(usual_way);
    let offset = offset.wrapping_sub(base.end(usual_way));
    let cold = Cold {
        site: b.site(base, [low, high, lanes], slot),
        usual,
        slot,
        partly: lanes.is_some().then_some(partly),
        look: known.is_none().then_some(look),
        other,
        access: to,
        back,
        offset,
        words,
        outs,
        index: b.near(base.row),
        mask: lanes,
        spare,
        held: b.held(),
    };
    if let Some(mask) = lanes {
        b.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), mask);
        b.asm.compare_number(RAX, 0xff);
        b.asm.jump_if(Condition::NotZero, partly);
    }
    match (low, usual) {
        // Not all lanes run: what is behind jumps there.
        (_, None) => {}
        (Some(low), Some(way)) => {
            check(b, &base, (low, high), way, spare, look);
            if slot != ONCE {
                b.asm.store_wide(pointer_of(slot), RAX);
                b.asm.store_number(way_of(slot), way as i32);
            }
        }
        (None, Some(way)) => {
            b.asm.load_wide(RAX, pointer_of(slot));
            b.asm.compare_memory(way_of(slot), way as i32);
            b.asm.jump_if(Condition::NotZero, other);
        }
    }
    b.asm.place(to);
    if usual.is_some() {
        match (access.stores, usual_way) {
            (true, _) => store_rising(b, &data, words, offset, [spare, second]),
            (false, Way::Rising) => rising(b, &outs, words, offset),
            (false, _) => same(b, &outs[..words], offset),
        }
    }
    b.asm.place(back);
    b.cold.push(cold);
    b.release(spare);
    b.release(second);
    if access.stores {
        return Ok(());
    }
    for (word, out) in outs.into_iter().enumerate().take(words) {
        b.put(op.d.plus(word as u16), out)?;
    }
    Ok(())
}

/// Says what an access of less than a word reads and writes. There is code for it only where its memory is known before.
fn emit_small(b: &mut Builder<'_>, op: &Micro, access: Access) -> Emitted {
    let nowhere = b.asm.label();
    b.asm.jump(nowhere);
    let base = Base::of(op, access);
    let rows = [base.row, base.row.plus(1), base.uniform, base.uniform.plus(1)];
    rows.into_iter().for_each(|row| b.reads(Name::Row(row.0)));
    if access.stores {
        return b.bits(op.b).map(|_| ());
    }
    let out = b.temporary()?;
    b.put(op.d, out)
}

/// Emits a load or a store of less than a word whose memory is known. (No register may be taken here: that may need RAX.)
fn small(b: &mut Builder<'_>, op: &Micro, planned: Reached, [row, part]: [Ymm; 2], place: Memory) {
    let access = planned.access;
    let byte = access.bytes == 1;
    if access.stores {
        let mask = b.number(if byte { Number::LowByte } else { Number::LowHalf });
        b.asm.vector(Vector::VPAND, part, row, mask);
        b.asm.vector(Vector::VPACKUSDW, part, part, part);
        if byte {
            b.asm.vector(Vector::VPACKUSWB, part, part, part);
        }
        // The first quarter, and the third.
        b.asm.quarters(part, part, 0x08);
        if byte {
            b.asm.vector_immediate(Vector::VSHUFPS, part, part, part, 0x08);
            b.asm.store_eight(place, part);
        } else {
            b.asm.store_sixteen(place, part);
        }
        return;
    }
    let signed = op.payload & SIGNED != 0;
    if planned.same {
        b.asm.vector_one(if byte { Vector::VPBROADCASTB } else { Vector::VPBROADCASTW }, row, place);
        let kind = if signed { SHIFT_RIGHT_SIGNED } else { SHIFT_RIGHT };
        b.asm.shift(kind, row, row, 32 - 8 * access.bytes);
        return;
    }
    let widen = match (byte, signed) {
        (true, false) => Vector::VPMOVZXBD,
        (true, true) => Vector::VPMOVSXBD,
        (false, false) => Vector::VPMOVZXWD,
        (false, true) => Vector::VPMOVSXWD,
    };
    b.asm.vector_one(widen, row, place);
}

/// Emits an access whose memory is known.
fn emit_planned(b: &mut Builder<'_>, op: &Micro, access: Access, planned: Reached) -> Emitted {
    let words = usize::from(access.words());
    let mut rows = [Ymm(0); 4];
    for (word, row) in rows.iter_mut().enumerate().take(words) {
        *row = if access.stores { b.bits(op.b.plus(word as u16))? } else { b.temporary()? };
    }
    let spare = if access.stores { [b.temporary()?, b.temporary()?] } else { [Ymm(0); 2] };
    let pointer = scalar(planned.scalar);
    let passed = b.passed() && !planned.same;
    let offset = if passed { -8 * i32::from(access.bytes) } else { 0 };
    b.asm.load_wide(RAX, pointer);
    match (access.stores, planned.same) {
        _ if access.bytes < 4 => small(b, op, planned, [rows[0], spare[0]], at(RAX, offset)),
        (true, _) => store_rising(b, &rows, words, offset, spare),
        (false, true) => same(b, &rows[..words], offset),
        (false, false) => rising(b, &rows, words, offset),
    }
    if !planned.same && !passed {
        b.asm.add_number(RAX, 8 * i32::from(access.bytes));
        b.asm.store_wide(pointer, RAX);
    }
    if access.stores {
        return Ok(());
    }
    for (word, row) in rows.into_iter().enumerate().take(words) {
        b.put(op.d.plus(word as u16), row)?;
    }
    Ok(())
}

/// Looks whether all eight lanes lie in a way, and makes RAX the [`Place::pointer`] of it; where not, goes to `fail`.
fn check(
    b: &mut Builder<'_>,
    base: &Base,
    (low, high): (Ymm, Option<Ymm>),
    way: Way,
    spare: Ymm,
    fail: Label,
) {
    use Arithmetic::{Add, Move, Or};
    let Access { space, bytes, .. } = base.access;
    let step = u32::from(bytes) >> base.scale;
    if base.row != RowIndex::ZERO {
        b.asm.vector_one(Vector::VPBROADCASTD, SCRATCH, low);
        if way == Way::Rising {
            let steps = b.number(Number::steps(step));
            b.asm.vector(Vector::VPADDD, SCRATCH, SCRATCH, steps);
        }
        b.asm.vector(Vector::VPCMPEQD, SCRATCH, SCRATCH, low);
        if let Some(high) = high {
            b.asm.vector_one(Vector::VPBROADCASTD, spare, high);
            b.asm.vector(Vector::VPCMPEQD, spare, spare, high);
            b.asm.vector(Vector::VPAND, SCRATCH, SCRATCH, spare);
        }
        b.asm.vector_one(Vector::VMOVMSKPS, Ymm(RAX.0), SCRATCH);
        b.asm.compare_number(RAX, 0xff);
        b.asm.jump_if(Condition::NotZero, fail);
    }
    let uniform = |word: u16| Builder::memory(Name::Row(base.uniform.plus(word).0));
    let end = base.end(way);
    let span = end.wrapping_sub(base.offsets[0]);
    b.asm.first_lane(RAX, low);
    if space == SHARED {
        if base.scale != 0 {
            b.asm.shift_left(RAX, base.scale);
        }
        if base.uniform != RowIndex::ZERO {
            b.asm.narrow_memory(Add, RAX, uniform(0));
        }
        return reach(b.asm, base.access, base.offsets[0], Span::Fixed(span), fail, fail);
    }
    if way == Way::Rising {
        // Low words that wrap around do not rise.
        b.asm.narrow(Move, R14, RAX);
        b.asm.add_narrow_number(R14, 7 * i32::from(bytes));
        b.asm.jump_if(Condition::Below, fail);
    }
    if let Some(high) = high {
        b.asm.first_lane(R14, high);
        b.asm.shift_left_wide(R14, 32);
        b.asm.wide(Or, RAX, R14);
    }
    if base.uniform != RowIndex::ZERO {
        b.asm.load_narrow(R14, uniform(0));
        b.asm.wide(Add, RAX, R14);
        b.asm.load_narrow(R14, uniform(1));
        b.asm.shift_left_wide(R14, 32);
        b.asm.wide(Add, RAX, R14);
    }
    reach(b.asm, base.access, base.offsets[0], Span::Fixed(span), fail, fail);
}

/// How many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Fixed(i32),
    /// Known when the code runs: 64 bits.
    At(Memory),
}

impl Span {
    /// Adds it to a register.
    pub(super) fn add_to(self, asm: &mut Assembler, to: General) {
        match self {
            Self::Fixed(bytes) => asm.add_number(to, bytes),
            Self::At(memory) => asm.wide_memory(Arithmetic::Add, to, memory),
        }
    }

    /// Takes it off a register.
    pub(super) fn take_off(self, asm: &mut Assembler, from: General) {
        match self {
            Self::Fixed(bytes) => asm.add_number(from, -bytes),
            Self::At(memory) => asm.wide_memory(Arithmetic::Subtract, from, memory),
        }
    }
}

/// A part of the window of which R14 is the place, as [`reach`] leaves it.
fn window(stores: bool, offset: usize) -> Memory {
    let kind = if stores { AccessKind::Write } else { AccessKind::Read };
    Memory { base: WINDOWS_AT, index: Some(R14), offset: (Windows::offset(kind) + offset) as i32 }
}

/// Makes RAX the address again of which [`reach`] found that the window at its place does not hold it.
pub(super) fn unreach(asm: &mut Assembler, stores: bool) {
    asm.wide_memory(Arithmetic::Add, RAX, window(stores, Window::START));
}

/// Makes of an address in RAX the memory behind `span` bytes from `offset` on, which all may be accessed and begin aligned;
/// where not, goes to `fail`, or to `missed` where the worker's windows do not hold the first of them.
pub(super) fn reach(
    asm: &mut Assembler,
    access: Access,
    offset: i32,
    span: Span,
    fail: Label,
    missed: Label,
) {
    use Arithmetic::{Add, Compare, Move, Subtract};
    let Access { space, bytes, stores } = access;
    if space == SHARED {
        asm.add_narrow_number(RAX, offset);
        asm.narrow_memory(Subtract, RAX, common(std::mem::offset_of!(Common, window)));
        asm.test_byte(RAX, bytes - 1);
        asm.jump_if(Condition::NotZero, fail);
        span.add_to(asm, RAX);
        asm.wide_memory(Compare, RAX, common(std::mem::offset_of!(Common, shared_bytes)));
        asm.jump_if(Condition::Above, fail);
        asm.wide_memory(Add, RAX, common(std::mem::offset_of!(Common, shared)));
        return;
    }
    asm.add_number(RAX, offset);
    asm.test_byte(RAX, bytes - 1);
    asm.jump_if(Condition::NotZero, fail);
    asm.wide(Move, R14, RAX);
    asm.shift_right_wide(R14, (PLACE - WINDOW_BYTES.trailing_zeros()) as u8);
    asm.and_number(R14, ((WINDOWS - 1) * WINDOW_BYTES) as i32);
    asm.wide_memory(Subtract, RAX, window(stores, Window::START));
    asm.wide_memory(Compare, RAX, window(stores, Window::LENGTH));
    asm.jump_if(Condition::NotBelow, missed);
    span.add_to(asm, RAX);
    asm.wide_memory(Compare, RAX, window(stores, Window::LENGTH));
    asm.jump_if(Condition::Above, fail);
    asm.wide_memory(Add, RAX, window(stores, Window::POINTER));
}

/// One item for all lanes.
fn same(b: &mut Builder<'_>, outs: &[Ymm], offset: i32) {
    for (word, out) in outs.iter().enumerate() {
        b.asm.vector_one(Vector::VPBROADCASTD, *out, at(RAX, offset.wrapping_add(4 * word as i32)));
    }
}

/// Neighbouring items for neighbouring lanes.
fn rising(b: &mut Builder<'_>, outs: &[Ymm; 4], words: usize, offset: i32) {
    let part = |number: i32| at(RAX, offset.wrapping_add(32 * number));
    match words {
        1 => b.asm.load(outs[0], part(0)),
        2 => {
            // Even words, then odd ones; halves are put in order last.
            let [low, high, ..] = *outs;
            b.asm.load(low, part(0));
            b.asm.vector_immediate(Vector::VSHUFPS, high, low, part(1), 0xdd);
            b.asm.vector_immediate(Vector::VSHUFPS, low, low, part(1), 0x88);
            b.asm.quarters(low, low, 0xd8);
            b.asm.quarters(high, high, 0xd8);
        }
        _ => {
            // Lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7 beside each other, then four by four words are turned.
            let [a, b1, c, d] = *outs;
            b.asm.load(SCRATCH, part(0));
            b.asm.vector_immediate(Vector::VPERM2I128, c, SCRATCH, part(2), 0x20);
            b.asm.vector_immediate(Vector::VPERM2I128, b1, SCRATCH, part(2), 0x31);
            b.asm.load(SCRATCH, part(1));
            b.asm.vector_immediate(Vector::VPERM2I128, d, SCRATCH, part(3), 0x20);
            b.asm.vector_immediate(Vector::VPERM2I128, a, SCRATCH, part(3), 0x31);
            b.asm.vector(Vector::VPUNPCKLDQ, SCRATCH, c, b1);
            b.asm.vector(Vector::VPUNPCKHDQ, c, c, b1);
            b.asm.vector(Vector::VPUNPCKLDQ, b1, d, a);
            b.asm.vector(Vector::VPUNPCKHDQ, d, d, a);
            b.asm.vector(Vector::VPUNPCKLQDQ, a, SCRATCH, b1);
            b.asm.vector(Vector::VPUNPCKHQDQ, b1, SCRATCH, b1);
            b.asm.vector(Vector::VPUNPCKLQDQ, SCRATCH, c, d);
            b.asm.vector(Vector::VPUNPCKHQDQ, d, c, d);
            b.asm.load(c, SCRATCH);
        }
    }
}

/// Neighbouring items of neighbouring lanes.
fn store_rising(b: &mut Builder<'_>, data: &[Ymm; 4], words: usize, offset: i32, [s, t]: [Ymm; 2]) {
    let part = |number: i32| at(RAX, offset.wrapping_add(32 * number));
    const LOW: u8 = 0x20;
    const HIGH: u8 = 0x31;
    match words {
        1 => b.asm.store(part(0), data[0]),
        2 => {
            b.asm.vector(Vector::VPUNPCKLDQ, s, data[0], data[1]);
            b.asm.vector(Vector::VPUNPCKHDQ, t, data[0], data[1]);
            for (number, half) in [(0, LOW), (1, HIGH)] {
                b.asm.vector_immediate(Vector::VPERM2I128, SCRATCH, s, t, half);
                b.asm.store(part(number), SCRATCH);
            }
        }
        _ => {
            // Lanes 0 and 1 with 4 and 5, then 2 and 3 with 6 and 7.
            for (first, unpack) in [(0, Vector::VPUNPCKLDQ), (1, Vector::VPUNPCKHDQ)] {
                b.asm.vector(unpack, s, data[0], data[1]);
                b.asm.vector(unpack, t, data[2], data[3]);
                b.asm.vector(Vector::VPUNPCKLQDQ, SCRATCH, s, t);
                b.asm.vector(Vector::VPUNPCKHQDQ, s, s, t);
                for (number, half) in [(first, LOW), (first + 2, HIGH)] {
                    b.asm.vector_immediate(Vector::VPERM2I128, t, SCRATCH, s, half);
                    b.asm.store(part(number), t);
                }
            }
        }
    }
}

impl Cold {
    /// Writes the other ways.
    pub(super) fn write(&self, b: &mut Builder<'_>, fault: Label) {
        let stores = self.site.base.access.stores;
        let slowly = b.asm.label();
        if let Some(partly) = self.partly {
            b.asm.place(partly);
            b.asm.narrow(Arithmetic::Test, RAX, RAX);
            b.asm.jump_if(Condition::Zero, self.back);
            if stores {
                b.asm.jump(slowly);
            }
        }
        if let Some(look) = self.look {
            b.asm.place(look);
            b.call_aid(aid::look, &self.site);
            if let Some(usual) = self.usual {
                b.asm.load_wide(RAX, pointer_of(self.slot));
                b.asm.compare_memory(way_of(self.slot), usual as i32);
                b.asm.jump_if(Condition::Zero, self.access);
            }
        }
        b.asm.place(self.other);
        if !stores {
            self.other_loads(b, slowly);
        }
        b.asm.place(slowly);
        b.copy_back(&self.held);
        b.call_aid(aid::slowly, &self.site);
        b.asm.narrow(Arithmetic::Test, RAX, RAX);
        b.asm.jump_if(Condition::NotZero, fault);
        if !stores {
            for (word, out) in self.outs.iter().enumerate().take(self.words) {
                b.asm.load(*out, Builder::memory(Name::Row(self.site.destination.plus(word as u16).0)));
            }
        }
        b.asm.jump(self.back);
    }

    fn other_loads(&self, b: &mut Builder<'_>, slowly: Label) {
        let outs = &self.outs[..self.words];
        b.asm.load_wide(RAX, pointer_of(self.slot));
        let way = |b: &mut Builder<'_>, way: Way, write: &dyn Fn(&mut Builder<'_>)| {
            let next = b.asm.label();
            b.asm.compare_memory(way_of(self.slot), way as i32);
            b.asm.jump_if(Condition::NotZero, next);
            write(b);
            b.asm.jump(self.back);
            b.asm.place(next);
        };
        if self.usual != Some(Way::Same) {
            way(b, Way::Same, &|b| same(b, outs, self.offset));
        }
        if self.usual == Some(Way::Same) {
            way(b, Way::Rising, &|b| rising(b, &self.outs, self.words, self.offset));
        }
        if let (Some(mask), [out]) = (self.mask, outs) {
            way(b, Way::SomeRising, &|b| {
                b.asm.vector(Vector::VPMASKMOVD, *out, mask, at(RAX, self.offset));
            });
        }
        b.asm.compare_memory(way_of(self.slot), Way::Scattered as i32);
        b.asm.jump_if(Condition::NotZero, slowly);
        for (word, out) in outs.iter().enumerate() {
            b.asm.vector_one(
                Vector::VPBROADCASTD,
                SCRATCH,
                place(self.slot, std::mem::offset_of!(Place, bias)),
            );
            match self.index {
                Some(index) => b.asm.shift(SHIFT_LEFT, *out, index, self.site.base.scale),
                None => {
                    b.asm.load(*out, Builder::memory(Name::Row(self.site.base.row.0)));
                    b.asm.shift(SHIFT_LEFT, *out, *out, self.site.base.scale);
                }
            }
            b.asm.vector(Vector::VPADDD, SCRATCH, SCRATCH, *out);
            match self.mask {
                Some(mask) => b.asm.load(self.spare, mask),
                None => b.asm.vector(Vector::VPCMPEQD, self.spare, self.spare, self.spare),
            }
            b.asm.gather(*out, RAX, SCRATCH, self.offset.wrapping_add(4 * word as i32), self.spare);
        }
        b.asm.jump(self.back);
    }
}
