//! Texture and surface accesses.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
use super::memory::{ATOMIC, EVICT, LOAD, ORDER, REDUCTION, SIZE, STORE, ordered};
use crate::row::NO_BIT;
use crate::{Arch, Bits, Hide, Modifier, Slot, SlotKind};

/// A register whose operand-reuse flag the text does not show.
const fn unreused(lo: u8) -> Slot {
    let half = crate::HalfBits::None;
    slot(SlotKind::Register { lo, marks: crate::MarkBits::NONE, half, reuse: 0, tag: "" })
}
const SHAPES: &[&str] = &["1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", "!", "ARRAY_CUBE"];
const SHAPE: Slot = slot(SlotKind::Word { bits: Bits::run(61, 3), spelling: SHAPES });
/// A gather reads four neighbours, which a line does not have.
const GATHER_SHAPE: Slot = slot(SlotKind::Word {
    bits: Bits::run(61, 3),
    spelling: &["!", "2D", "!", "CUBE", "!", "ARRAY_2D", "!", "ARRAY_CUBE"],
});
/// Components that are written.
const MASK: Slot = imm(72, 4).hidden(Hide::Ones);
const RESIDENT: Slot = pred(81).hidden(Hide::LeadingOrNeutral);
const SCATTER: Modifier = field(F::Scatter, 60, 1, &["", ".SCR"]);
const HALF_RESULT: Modifier = field(F::DestinationType, 79, 2, &["", ".F16.RN", ".F16.RZ"]);
const NODEP: Modifier = field(F::NoDependency, 90, 1, &["", ".NODEP"]);
const DEPTH: Modifier = field(F::DepthCompare, 78, 1, &["", ".DC"]);
const OFFSET: Modifier = field(F::Offset, 76, 1, &["", ".AOFFI"]);

/// How an instruction names its texture: bank and offset of its handle, the handle in a register, or a bank
/// that a uniform register describes. The opcode's difference from the first, the operands, and bit 59.
fn forms() -> [(i16, Vec<Slot>, Modifier); 3] {
    let maybe = field(F::Bindless, 59, 1, &["", ".B"]);
    let always = field(F::Bindless, 59, 1, &["!", ".B"]);
    let never = field(F::Bindless, 59, 1, &[""]);
    [
        (0, vec![imm(54, 5), imm(40, 14)], maybe),
        (0x361 - 0xb60, vec![], always),
        (0x1f60 - 0xb60, vec![ureg(40), imm(46, 8)], never),
    ]
}

/// One row for each way to name the texture.
fn textures(
    t: &mut Rows,
    op: super::Op,
    opcode: i16,
    offset: bool,
    slots: &[Slot],
    shape: &[Slot],
    fields: &[Modifier],
) {
    for (difference, handle, bindless) in forms() {
        let operands = [slots, &handle, shape, &[MASK, RESIDENT]].concat();
        let place = usize::from(offset);
        let fields = [&fields[..place], &[bindless], &fields[place..]].concat();
        let scatter: &[Modifier] = if op == Txd || op == Txq { &[] } else { &[SCATTER] };
        let fields: Vec<Modifier> = [scatter, &fields[..]].concat();
        t.row(op, (opcode + difference) as u16, 0, &operands, &fields).until = Arch::Sm90;
    }
}

pub(super) fn add(t: &mut Rows) {
    // Two destinations of two registers each, coordinates, and what did not fit beside them.
    let [second, first, a, b] = [unreused(64), unreused(16), unreused(24), unreused(32)];
    let b = b.hidden(Hide::Neutral);
    let lod = field(F::LevelOfDetail, 87, 3, &["", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", ".LC.FDV"]);
    let derivative = field(F::NoDerivative, 77, 1, &["", ".NDV"]);
    textures(
        t,
        Tex,
        0xb60,
        false,
        &[second, first, a, b],
        &[SHAPE],
        &[HALF_RESULT, lod, OFFSET, DEPTH, EVICT, derivative, NODEP],
    );
    let component = field(F::Component, 87, 2, &[".R", ".G", ".B", ".A"]);
    let offsets = field(F::Offset, 76, 2, &["", ".AOFFI", ".PTP"]);
    textures(
        t,
        Tld4,
        0xb63,
        true,
        &[second, first, a, b],
        &[GATHER_SHAPE],
        &[component, HALF_RESULT, offsets, DEPTH, EVICT, NODEP],
    );
    let level = field(F::LevelOfDetail, 87, 3, &["!", ".LZ", "!", ".LL"]);
    let samples = field(F::Samples, 78, 1, &["", ".MS"]);
    let clamped = field(F::Clamp, 77, 1, &["", ".CL"]);
    textures(
        t,
        Tld,
        0xb66,
        false,
        &[second, first, a, b],
        &[SHAPE],
        &[HALF_RESULT, level, OFFSET, EVICT, samples, clamped, NODEP],
    );

    // Explicit derivatives.
    let limit = field(F::LevelOfDetail, 87, 1, &["", ".LC"]);
    let flat = slot(SlotKind::Word {
        bits: Bits::run(61, 3),
        spelling: &["1D", "2D", "!", "!", "ARRAY_1D", "ARRAY_2D"],
    });
    textures(
        t,
        Txd,
        0xb6c,
        false,
        &[second, first, a, b],
        &[flat],
        &[HALF_RESULT, limit, OFFSET, EVICT, NODEP],
    );
    // Queries print what is asked for before the texture.
    let what = slot(SlotKind::Word {
        bits: Bits::run(62, 2),
        spelling: &["TEX_HEADER_DIMENSION", "TEX_HEADER_TEXTURE_TYPE", "TEX_HEADER_SAMPLER_POS"],
    });
    for (difference, handle, bindless) in forms() {
        let slots = [&[second, first, a, what], &handle[..], &[imm(72, 4)]].concat();
        t.row(Txq, (0xb6f + difference) as u16, 0, &slots, &[bindless, NODEP]).until = Arch::Sm90;
    }
    surfaces(t);
}

/// Loads and stores of surfaces, by bytes or by the surface's format, and atomics on them.
fn surfaces(t: &mut Rows) {
    let shape = field(F::Shape, 61, 3, &[".1D", ".1D_BUFFER", ".1D_ARRAY", ".2D", ".2D_ARRAY", ".3D"]);
    let bytes = field(F::ByteAddress, 72, 1, &["", ".BA"]);
    let coordinates = slot(SlotKind::Address {
        base: 24,
        offset: Bits::run(0, 0),
        wide: NO_BIT,
        quiet: false,
        scale: NO_BIT,
        uniform: NO_BIT,
        descriptor: NO_BIT,
    });
    let out = field(F::OutOfRange, 59, 2, &[".IGN", "", ".TRAP"]);
    let components = field(
        F::Size,
        72,
        4,
        &["!", ".R", "!", ".RG", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", "!", ""],
    );
    let kinds =
        field(F::Size, 73, 3, &["", ".S32", ".U64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".SD32", ".SD64"]);
    // By a register, by bank and offset, by a described bank.
    let handles = [vec![unreused(64)], vec![imm(54, 5), imm(40, 14)], vec![ureg(40), imm(46, 8)]];
    let opcodes = [
        (Suld, [0x99a, 0xb99, 0x1f99]),
        (Sust, [0x99e, 0xb9d, 0x1f9d]),
        (SuldFormat, [0x998, 0xb97, 0x1f97]),
        (SustFormat, [0x99c, 0xb9b, 0x1f9b]),
        (Sured, [0x3a0, 0x59f, 0x1f9f]),
        (Suatom, [0x394, 0x593, 0x1f93]),
    ];
    let (d, data) = (unreused(16), unreused(32));
    t.span(Arch::Sm75, Arch::Sm90, |t| {
        for (op, opcodes) in opcodes {
            for (handle, opcode) in handles.iter().zip(opcodes) {
                let (front, fields, orders): (&[Slot], &[Modifier], _) = match op {
                    Suld => (&[d, coordinates], &[bytes, shape, EVICT, SIZE, ORDER, out], LOAD),
                    Sust => (&[coordinates, data], &[bytes, shape, EVICT, SIZE, ORDER, out], STORE),
                    SuldFormat => (&[d, coordinates], &[shape, EVICT, ORDER, components, out], LOAD),
                    SustFormat => (&[coordinates, data], &[shape, EVICT, ORDER, components, out], STORE),
                    Sured => {
                        (&[coordinates, data], &[bytes, shape, REDUCTION, EVICT, kinds, ORDER, out], STORE)
                    }
                    _ => (
                        &[pred(81).hidden(Hide::Neutral), d, coordinates, data],
                        &[bytes, shape, ATOMIC, EVICT, kinds, ORDER, out],
                        STORE,
                    ),
                };
                let resident: &[Slot] = if matches!(op, Suld | SuldFormat) { &[RESIDENT] } else { &[] };
                let slots = [front, handle, resident].concat();
                ordered(t, op, opcode, &slots, fields, orders);
            }
        }
    });
}
