//! What the tests may claim: that everything which the interpreter executes is compared with something else.
//!
//! A [`Part`] is a row with one value of one of its fields, or with one mark, half or kind of address of one of its
//! operands. Of every row and architecture it is asked which parts lowering takes; each of them must have been compared,
//! here or with a card, or be named with where that is done and why not here.

use std::collections::{BTreeMap, BTreeSet};

use sass::{Arch, Bank, Half, Instruction, Marks, Op, Operand, Row};

use super::lab;

/// A row by its place in the table, and what of it.
pub type Part = (usize, String);

/// The place of a row in the table.
fn place(row: &Row) -> usize {
    let rows = sass::rows();
    let place = (std::ptr::from_ref(row).addr() - rows.as_ptr().addr()) / size_of::<Row>();
    assert!(std::ptr::eq(&rows[place], row), "every row is one of the table's");
    place
}

fn of_source(slot: usize, marks: Marks, half: Half, parts: &mut Vec<String>) {
    let marked = [(marks.negate, "-"), (marks.absolute, "||"), (marks.invert, "~")];
    parts.extend(marked.iter().filter(|(set, _)| *set).map(|(_, mark)| format!("operand {slot} {mark}")));
    if half != Half::Both {
        parts.push(format!("operand {slot} {half:?}"));
    }
}

/// The parts of an instruction. The row itself is one.
pub fn parts(instruction: &Instruction) -> impl Iterator<Item = Part> {
    let row = place(instruction.row);
    let mut parts = vec![String::new()];
    for modifier in &instruction.row.modifiers {
        if let Some(spelling) = instruction.spelling(modifier.id).filter(|spelling| !spelling.is_empty()) {
            parts.push(format!("{:?} {spelling}", modifier.id));
        }
    }
    for (slot, operand) in instruction.operands().iter().enumerate() {
        match *operand {
            Operand::Register { marks, half, .. } | Operand::UniformRegister { marks, half, .. } => {
                of_source(slot, marks, half, &mut parts);
            }
            Operand::Constant { bank, index, marks, half, .. } => {
                of_source(slot, marks, half, &mut parts);
                if index != Operand::RZ && matches!(bank, Bank::Number(_)) {
                    parts.push(format!("operand {slot} indexed"));
                }
            }
            Operand::Predicate { negated: true, .. } => parts.push(format!("operand {slot} !")),
            Operand::Address { wide, scale, .. } => {
                if wide {
                    parts.push(format!("operand {slot} wide"));
                }
                if scale != 0 {
                    parts.push(format!("operand {slot} scaled by {}", 1 << scale));
                }
            }
            _ => {}
        }
    }
    parts.into_iter().map(move |part| (row, part))
}

/// Instructions of a row with these field values: one with plain operands, and one for each mark, half and kind of
/// address of each operand.
fn instructions(row: &'static Row, values: &[u16], arch: Arch) -> Vec<Instruction> {
    let Some(blank) = lab::blank(row, values, arch) else { return Vec::new() };
    // With predicates that always hold, and nowhere to write any.
    let mut plain = blank;
    for (slot, operand) in blank.operands().iter().enumerate() {
        if let Operand::Predicate { uniform, .. } = *operand {
            plain.set_operand(slot, Operand::Predicate { index: Operand::PT, negated: false, uniform });
        }
    }
    let plain = lab::settle(&plain).unwrap_or(blank);
    let mut all = vec![blank, plain];
    all.extend(lab::forms(&blank, true, &[1]).into_iter().take(1));
    for slot in 0..plain.operands().len() {
        for operand in variants(plain.operands()[slot]) {
            let mut changed = plain;
            if changed.set_operand(slot, operand).is_some() {
                all.extend(lab::settle(&changed));
            }
        }
    }
    all
}

fn variants(operand: Operand) -> Vec<Operand> {
    let marks = [(true, false, false), (false, true, false), (false, false, true)];
    let marks = marks.map(|(negate, absolute, invert)| Marks { negate, absolute, invert });
    let halves = [Half::F32, Half::Low, Half::High, Half::LowNegatedHigh];
    let halves = halves.into_iter().chain([Half::Upper, Half::Byte1, Half::Byte2, Half::Byte3]);
    let plain = (Marks::default(), Half::Both);
    let sources = marks.map(|marks| (marks, plain.1)).into_iter().chain(halves.map(|half| (plain.0, half)));
    match operand {
        Operand::Register { index, .. } => {
            sources.map(|(marks, half)| Operand::Register { index, marks, half }).collect()
        }
        Operand::UniformRegister { index, .. } => {
            sources.map(|(marks, half)| Operand::UniformRegister { index, marks, half }).collect()
        }
        Operand::Constant { bank, offset, uniform_index, index, .. } => {
            let marked = sources.map(|(marks, half)| Operand::Constant {
                bank,
                offset,
                index: Operand::RZ,
                uniform_index,
                marks,
                half,
            });
            let (marks, half) = plain;
            let index = if index == Operand::RZ { 4 } else { Operand::RZ };
            marked.chain([Operand::Constant { bank, offset, index, uniform_index, marks, half }]).collect()
        }
        Operand::Predicate { index, uniform, .. } => {
            vec![Operand::Predicate { index, negated: true, uniform }]
        }
        Operand::Address { base, wide, scale: _, uniform, descriptor, offset } => {
            let kind = |wide, scale| Operand::Address { base, wide, scale, uniform, descriptor, offset };
            vec![kind(!wide, 0), kind(wide, 1), kind(wide, 2), kind(wide, 3)]
        }
        _ => Vec::new(),
    }
}

/// Every part of every row that lowering takes on one of the architectures.
pub fn executed(arches: &[Arch]) -> BTreeMap<Part, Op> {
    let mut all = BTreeMap::new();
    for &arch in arches {
        for row in sass::rows().iter().filter(|row| row.exists_on(arch)) {
            for values in lab::field_values(row, 300) {
                for instruction in instructions(row, &values, arch) {
                    if nv_sm::executes(&instruction).is_ok() {
                        all.extend(parts(&instruction).map(|part| (part, row.op)));
                    }
                }
            }
        }
    }
    all
}

/// Parts of the instructions whose results a card gave, which the end-to-end test `silicon` compares bit by bit.
pub fn compared_with_card() -> BTreeSet<Part> {
    let text = fixtures::text("differential/h200.txt").expect("a fixture");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains(" refused "));
    lines
        .filter_map(|line| u128::from_str_radix(line.split(' ').next()?, 16).ok())
        .filter_map(|word| sass::decode(word, 0, Arch::Sm90).ok())
        .flat_map(|instruction| parts(&instruction).collect::<Vec<_>>())
        .collect()
}

/// A part in words.
pub fn words((row, part): &Part) -> String {
    let row = &sass::rows()[*row];
    format!("{} {:#06x} {part}", row.op.name(), row.opcode)
}

/// What is not compared part by part, by the beginnings of its words, and what does compare it.
///
/// `kinds` is `tests/e2e/kinds.rs`: kernels in four builds for three architectures, against each other and the host.
pub const ELSEWHERE: &[(&str, &str)] = &[
    // Where threads go on, and when.
    ("BRA ", CONTROL),
    ("BRX ", CONTROL),
    ("JMP ", "`jumps_by_register_and_to_an_address`"),
    ("JMX ", "`jumps_by_register_and_to_an_address`"),
    ("CALL ", CONTROL),
    ("RET ", CONTROL),
    ("LEPC ", CONTROL),
    ("EXIT ", CONTROL),
    ("BREAK ", CONTROL),
    ("BSSY ", CONTROL),
    ("BSYNC ", CONTROL),
    ("BMOV.32 ", CONTROL),
    ("RPCMOV.32 ", CONTROL),
    ("WARPSYNC ", CONTROL),
    ("ENDCOLLECTIVE ", CONTROL),
    ("NOP ", "it does nothing"),
    ("YIELD ", WAITING),
    ("NANOSLEEP ", WAITING),
    ("BAR ", "barriers of `kernels.rs`, and `control` and `spaces` of `kinds`"),
    ("B2R ", "barriers that count, of `control` in `kinds`"),
    ("BPT.TRAP ", "e2e `faults`, on the card too"),
    // What special registers say depends on the launch.
    ("S2R ", SPECIAL),
    ("S2UR ", SPECIAL),
    ("CS2R ", SPECIAL),
    ("R2UR 0x03c2", "it brings the operands of every uniform instruction here, before sm_90"),
    // Memory is as ordered as the host's, and has no caches: nothing can be told of them by one warp.
    ("MEMBAR ", ORDER),
    ("FENCE.VIEW.ASYNC ", ORDER),
    ("ERRBAR ", ORDER),
    ("CGAERRBAR ", ORDER),
    ("CCTL ", ORDER),
    ("DEPBAR.LE ", ORDER),
    ("LDGDEPBAR ", ORDER),
    ("WARPGROUP ", "products of four warps are not executed: there is nothing to wait for"),
    ("UTMACCTL ", ORDER),
    ("UTMACMDFLUSH ", ORDER),
    ("UBLKPF.L2 ", ORDER),
    // Barriers in memory.
    ("ATOMS 0x1f8c", BARRIERS),
    ("SYNCS ", BARRIERS),
    ("ARRIVES.LDGSTSBAR ", BARRIERS),
    ("UBLKCP ", CLUSTERS),
    ("UBLKRED ", CLUSTERS),
    ("STAS ", CLUSTERS),
    ("UCGABAR_ARV ", CLUSTERS),
    ("UCGABAR_WAIT ", CLUSTERS),
    // Matrix products.
    ("BMMA ", PRODUCTS),
    ("DMMA ", PRODUCTS),
    ("HMMA ", PRODUCTS),
    ("IMMA ", PRODUCTS),
    ("QMMA ", PRODUCTS),
    // Textures and surfaces.
    ("SULD.D ", TEXTURES),
    ("SURED.D ", TEXTURES),
    ("SUST.D ", TEXTURES),
    ("SUST.P ", TEXTURES),
    ("TEX ", TEXTURES),
    ("TLD ", TEXTURES),
    ("TXD ", TEXTURES),
    ("TXQ ", TEXTURES),
];

const CONTROL: &str = "where threads are is seen in what they do: `control`, `spaces`, `warp_operations` of `kinds`, \
    `calls` and divergence of `kernels.rs`";
const WAITING: &str = "that the others go on is seen in whole programs: `waiting` of `kinds`, `kernels.rs`";
const SPECIAL: &str = "e2e `kernels` and `clusters` compare them with the launch";
const ORDER: &str = "order and caches: e2e `kernels` and `waiting` of `kinds` rely on it";
const BARRIERS: &str =
    "phases need several threads: `asynchronous`, `dropped`, `of_hopper` of `kinds`, e2e `clusters`";
const CLUSTERS: &str = "it needs several blocks: e2e `clusters`, on the card too";
const PRODUCTS: &str = "every form against digests of an H200 in `sass` (`fixtures/mma`), through the interpreter those of \
    sm_90 likewise (`silicon`), and `tensor`, `products`, `matrices` of `kinds` for what older ones encode differently";
const TEXTURES: &str = "e2e `textures` and `fixtures/texture`, which an H200 filled";
