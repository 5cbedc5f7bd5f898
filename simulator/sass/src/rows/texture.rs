//! Texture and surface accesses.
use super::FieldId as F;
use super::Op::*;
use super::build::*;
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
const EVICT: Modifier = field(F::Evict, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA"]);
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
        let fields: Vec<Modifier> = [&[SCATTER], &fields[..]].concat();
        t.row(op, (opcode + difference) as u16, 0, &operands, &fields).until = Arch::Sm90;
    }
}

pub(super) fn add(t: &mut Rows) {
    // Two destinations of two registers each, coordinates, and what did not fit beside them.
    let [second, first, a, b] = [unreused(64), unreused(16), unreused(24), unreused(32)];
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
    let b = b.hidden(Hide::Neutral);
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

    // Surfaces.
    let shape = field(F::Shape, 61, 3, &[".1D", ".1D_BUFFER", ".1D_ARRAY", ".2D", ".2D_ARRAY", ".3D"]);
    let bytes = field(F::ByteAddress, 72, 1, &["", ".BA"]);
    let size = field(F::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128"]);
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
    for (load, store, handle) in [
        (0x99a, 0x99e, vec![unreused(64)]),
        (0xb99, 0xb9d, vec![imm(54, 5), imm(40, 14)]),
        (0x1f99, 0x1f9d, vec![ureg(40), imm(46, 8)]),
    ] {
        let loaded = [&[unreused(16), coordinates], &handle[..], &[RESIDENT]].concat();
        let stored = [&[coordinates, unreused(32)], &handle[..]].concat();
        for (op, opcode, slots, orders) in
            [(Suld, load, &loaded, super::memory::LOAD), (Sust, store, &stored, super::memory::STORE)]
        {
            let first = t.0.len();
            super::memory::ordered(
                t,
                op,
                opcode,
                slots,
                &[bytes, shape, EVICT, size, super::memory::ORDER, out],
                orders,
            );
            for row in &mut t.0[first..] {
                row.until = row.until.min(Arch::Sm90);
            }
        }
    }
}
