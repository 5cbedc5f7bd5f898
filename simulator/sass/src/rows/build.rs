//! Words that the rows are written in.
use super::{FieldId, Op};
use crate::row::{Hide, NO_BIT};
use crate::{Arch, Bits, HalfBits, ImmediateKind, MarkBits, Modifier, Row, Slot, SlotKind, Source};

pub(super) const fn slot(kind: SlotKind) -> Slot {
    Slot { kind, hide: Hide::Never }
}
pub(super) const fn marks(negate: u8, absolute: u8, invert: u8) -> MarkBits {
    MarkBits { negate, absolute, invert }
}
/// The reuse flag of a register place: first, second, third source.
const fn reuse_of(lo: u8) -> u8 {
    match lo {
        24 => 1,
        32 => 2,
        64 => 4,
        _ => 0,
    }
}
pub(super) const fn reg(lo: u8) -> Slot {
    reg_m(lo, MarkBits::NONE)
}
pub(super) const fn reg_m(lo: u8, marks: MarkBits) -> Slot {
    slot(SlotKind::Register { lo, marks, half: HalfBits::None, reuse: reuse_of(lo), tag: "" })
}
pub(super) const fn reg_half(lo: u8, marks: MarkBits, half: HalfBits) -> Slot {
    slot(SlotKind::Register { lo, marks, half, reuse: reuse_of(lo), tag: "" })
}
pub(super) const fn reg_tag(lo: u8, tag: &'static str) -> Slot {
    reg_tag_m(lo, tag, MarkBits::NONE)
}
pub(super) const fn reg_tag_m(lo: u8, tag: &'static str, marks: MarkBits) -> Slot {
    slot(SlotKind::Register { lo, marks, half: HalfBits::None, reuse: reuse_of(lo), tag })
}
pub(super) const fn ureg(lo: u8) -> Slot {
    slot(SlotKind::Uniform { lo, marks: MarkBits::NONE, half: HalfBits::None })
}
pub(super) const fn pred(lo: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not: NO_BIT, uniform: false, inverted: false })
}
pub(super) const fn pred_not(lo: u8, not: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not, uniform: false, inverted: false })
}
pub(super) const fn upred(lo: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not: NO_BIT, uniform: true, inverted: false })
}
pub(super) const fn upred_not(lo: u8, not: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not, uniform: true, inverted: false })
}
/// A predicate stored inverted: bits of zero mean `PT`, which is not printed.
pub(super) const fn pred_inverted(lo: u8, not: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not, uniform: false, inverted: true }).hidden(Hide::Neutral)
}
/// The same among the uniform predicates.
pub(super) const fn upred_inverted(lo: u8, not: u8) -> Slot {
    slot(SlotKind::Predicate { lo, not, uniform: true, inverted: true }).hidden(Hide::Neutral)
}
pub(super) const fn imm(lo: u8, width: u8) -> Slot {
    slot(SlotKind::Immediate { bits: Bits::run(lo, width), kind: ImmediateKind::Unsigned })
}
pub(super) const fn imm_split(low: (u8, u8), high: (u8, u8)) -> Slot {
    slot(SlotKind::Immediate { bits: Bits::split(low, high), kind: ImmediateKind::Unsigned })
}
pub(super) const fn field(id: FieldId, lo: u8, width: u8, spelling: &'static [&'static str]) -> Modifier {
    Modifier { id, bits: Bits::run(lo, width), spelling, operand: None }
}
pub(super) const fn field_split(
    id: FieldId,
    low: (u8, u8),
    high: (u8, u8),
    spelling: &'static [&'static str],
) -> Modifier {
    Modifier { id, bits: Bits::split(low, high), spelling, operand: None }
}

/// A field printed behind an operand instead of behind the mnemonic.
pub(super) const fn behind(operand: u8, modifier: Modifier) -> Modifier {
    Modifier { operand: Some(operand), ..modifier }
}

const PLAIN: Source = Source {
    third: false,
    negate: false,
    absolute: false,
    invert: false,
    half: HalfBits::None,
    kind: ImmediateKind::Unsigned,
};
pub(super) const fn source(source: Source) -> Slot {
    slot(SlotKind::Source(source))
}
/// Integer source, unsigned immediates.
pub(super) const B: Slot = source(PLAIN);
/// Integer source, signed immediates.
pub(super) const B_S: Slot = source(Source { kind: ImmediateKind::Signed, ..PLAIN });
/// Integer source with a sign, signed immediates.
pub(super) const B_NS: Slot = source(Source { kind: ImmediateKind::Signed, negate: true, ..PLAIN });
/// Integer source with a sign, unsigned immediates.
pub(super) const B_N: Slot = source(Source { negate: true, ..PLAIN });
/// Integer source with a complement, unsigned immediates.
pub(super) const B_I: Slot = source(Source { invert: true, ..PLAIN });
/// Integer source with a complement, signed immediates.
pub(super) const B_IS: Slot = source(Source { kind: ImmediateKind::Signed, invert: true, ..PLAIN });
/// Float source.
pub(super) const B_F32: Slot =
    source(Source { kind: ImmediateKind::F32, negate: true, absolute: true, ..PLAIN });
/// Double source.
pub(super) const B_F64: Slot =
    source(Source { kind: ImmediateKind::F64High, negate: true, absolute: true, ..PLAIN });
/// Packed half source.
pub(super) const B_F16: Slot = source(Source {
    kind: ImmediateKind::F16x2,
    negate: true,
    absolute: true,
    half: HalfBits::Packed(60),
    ..PLAIN
});
/// Packed half source that always reads both halves in place.
pub(super) const B_F16_WHOLE: Slot = source(Source {
    kind: ImmediateKind::F16x2,
    negate: true,
    absolute: true,
    half: HalfBits::Whole,
    ..PLAIN
});
/// The same source as the third instead of the second.
pub(super) const fn third(slot: Slot) -> Slot {
    match slot.kind {
        SlotKind::Source(s) => Slot { kind: SlotKind::Source(Source { third: true, ..s }), hide: slot.hide },
        _ => slot,
    }
}

/// Forms of an opcode with a second and no third source.
pub(super) const FORMS_B: &[u16] = &[1, 4, 5, 6];
/// The same when the opcode counts that source as its third.
pub(super) const FORMS_C: &[u16] = &[1, 2, 3, 7];
/// Forms with both.
pub(super) const FORMS_BC: &[u16] = &[1, 2, 3, 4, 5, 6, 7];

fn place(source: Source, form: u16, uniform_datapath: bool, alone: bool, as_third: bool) -> SlotKind {
    // In forms 2, 3 and 7 the third source sits at 63:32 and the second one moves to 71:64.
    let swapped = matches!(form, 2 | 3 | 7);
    let special = if alone { true } else { source.third == swapped };
    let sign = if special { 63 } else { 75 };
    let bits = MarkBits {
        negate: if source.negate { sign } else { NO_BIT },
        absolute: match (source.absolute, special) {
            (false, _) => NO_BIT,
            (true, true) => 62,
            (true, false) => 74,
        },
        invert: if source.invert { sign } else { NO_BIT },
    };
    let (bits, half) = match (source.half, special) {
        (HalfBits::Packed(_), true) => (MarkBits { negate: 63, absolute: 62, ..bits }, HalfBits::Packed(60)),
        (HalfBits::Crossed(_), true) => {
            (MarkBits { negate: 63, absolute: 62, ..bits }, HalfBits::Crossed(60))
        }
        (HalfBits::Crossed(_), false) => {
            (MarkBits { negate: 84, absolute: 83, ..bits }, HalfBits::Crossed(81))
        }
        (HalfBits::Paired(_), true) => (MarkBits { negate: 63, absolute: 62, ..bits }, HalfBits::Paired(60)),
        (HalfBits::Paired(_), false) => (MarkBits { negate: 84, absolute: 83, ..bits }, HalfBits::Paired(81)),
        (HalfBits::Packed(_), false) => (MarkBits { negate: 84, absolute: 83, ..bits }, HalfBits::Packed(81)),
        (HalfBits::Whole, true) => (MarkBits { negate: 63, absolute: 62, ..bits }, HalfBits::None),
        (HalfBits::Whole, false) => (MarkBits { negate: 84, absolute: 83, ..bits }, HalfBits::None),
        (half, _) => (bits, half),
    };
    let lo = if special { 32 } else { 64 };
    match (special, form) {
        // An immediate has no part of it chosen and no sign of its own.
        (true, 2 | 4) => SlotKind::Immediate { bits: Bits::run(32, 32), kind: source.kind },
        (true, 3 | 5) => {
            SlotKind::Constant { words: true, marks: bits, half, index: NO_BIT, uniform_index: false }
        }
        (true, 6 | 7) => SlotKind::Uniform { lo, marks: bits, half },
        _ if uniform_datapath => SlotKind::Uniform { lo, marks: bits, half },
        _ => {
            let reuse = if source.third || as_third { 4 } else { 2 };
            SlotKind::Register { lo, marks: bits, half, reuse, tag: "" }
        }
    }
}

/// The same source with a part of its register chosen by bits of the row's own.
pub(super) const fn with_half(slot: Slot, half: HalfBits) -> Slot {
    let kind = match slot.kind {
        SlotKind::Source(s) => SlotKind::Source(Source { half, ..s }),
        SlotKind::Register { lo, marks, reuse, tag, .. } => {
            SlotKind::Register { lo, marks, half, reuse, tag }
        }
        kind => kind,
    };
    Slot { kind, hide: slot.hide }
}

/// Collects rows.
#[derive(Debug, Default)]
pub(super) struct Rows(pub(super) Vec<Row>);

impl Rows {
    /// A row with nothing left to decide.
    pub(super) fn row(
        &mut self,
        op: Op,
        opcode: u16,
        fixed: u128,
        slots: &[Slot],
        modifiers: &[Modifier],
    ) -> &mut Row {
        let index = self.0.len();
        debug_assert!(slots.len() <= crate::MAX_OPERANDS && modifiers.len() <= crate::MAX_MODIFIERS);
        self.0.push(Row {
            op,
            opcode,
            fixed,
            slots: slots.to_vec(),
            modifiers: modifiers.to_vec(),
            since: Arch::Sm75,
            until: Arch::Sm120,
            uniform_guard: false,
        });
        &mut self.0[index]
    }

    /// Bounds what a block adds to some generations.
    pub(super) fn span(&mut self, since: Arch, until: Arch, add: impl FnOnce(&mut Self)) {
        let first = self.0.len();
        add(self);
        for row in &mut self.0[first..] {
            row.since = row.since.max(since);
            row.until = row.until.min(until);
        }
        self.0.retain(|row| row.since <= row.until);
    }

    /// One row per form of an opcode of the arithmetic kind.
    pub(super) fn alu(
        &mut self,
        op: Op,
        base: u16,
        forms: &[u16],
        fixed: u128,
        slots: &[Slot],
        modifiers: &[Modifier],
    ) {
        self.expand(op, base, forms, fixed, slots, modifiers, false);
    }

    /// The same in the uniform datapath, whose opcodes all have bit 91.
    pub(super) fn ualu(
        &mut self,
        op: Op,
        base: u16,
        forms: &[u16],
        fixed: u128,
        slots: &[Slot],
        modifiers: &[Modifier],
    ) {
        self.expand(op, base, forms, fixed, slots, modifiers, true);
    }

    #[expect(clippy::too_many_arguments, reason = "a row's columns")]
    fn expand(
        &mut self,
        op: Op,
        base: u16,
        forms: &[u16],
        fixed: u128,
        slots: &[Slot],
        modifiers: &[Modifier],
        uniform: bool,
    ) {
        for &form in forms {
            let high = if uniform || form >= 6 { 0x1000 } else { 0 };
            let alone = slots.iter().filter(|s| matches!(s.kind, SlotKind::Source(_))).count() == 1
                && !slots.iter().any(|s| matches!(s.kind, SlotKind::Source(Source { third: true, .. })));
            // An opcode with forms 2, 3 and 7 counts its only source as the third.
            let as_third = alone && forms.contains(&2);
            let placed: Vec<Slot> = slots
                .iter()
                .map(|slot| match slot.kind {
                    SlotKind::Source(source) => {
                        Slot { kind: place(source, form, uniform, alone, as_third), hide: slot.hide }
                    }
                    _ => *slot,
                })
                .collect();
            self.row(op, high | form << 9 | base, fixed, &placed, modifiers).uniform_guard = uniform;
            // The same with a bank that uniform registers describe.
            let bindless: Vec<Slot> = placed
                .iter()
                .map(|slot| match slot.kind {
                    SlotKind::Constant { words, marks, half, index: NO_BIT, .. } => Slot {
                        kind: SlotKind::Bindless { bank: 32, words, marks, half, index: NO_BIT },
                        hide: slot.hide,
                    },
                    _ => *slot,
                })
                .collect();
            if !uniform && bindless != placed {
                self.row(op, 0x1000 | form << 9 | base, fixed, &bindless, modifiers).until = Arch::Sm90;
            }
        }
    }
}
