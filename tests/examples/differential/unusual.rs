//! Forms that compilers do not write.

use nv_driver::{Device, LaunchOptions};
use sass::{FieldId, Instruction, Op, Operand, Row, decode};
use tests::probe::{self, BLOCK, OUTPUTS, Program, Random};

use crate::Failure;

/// The instruction of a row with such fields, the others being empty where they can be.
fn form(row: &'static Row, fields: &[(FieldId, &str)], arch: sass::Arch) -> Option<Instruction> {
    let mut word = row.fixed | u128::from(row.opcode & 0xfff) | u128::from(row.opcode >> 12) << 91 | 7 << 12;
    for modifier in &row.modifiers {
        let wanted = fields.iter().find(|(id, _)| *id == modifier.id).map_or("", |(_, name)| name);
        let at = modifier.spelling.iter().position(|spelling| *spelling == wanted);
        let at = at.or_else(|| modifier.spelling.iter().position(|spelling| *spelling != "!"))?;
        word |= modifier.bits.put(at as u64)?;
    }
    let mut instruction = decode(word, 0, arch).ok().filter(|found| std::ptr::eq(found.row, row))?;
    for (slot, operand) in instruction.operands().to_vec().into_iter().enumerate() {
        if let Operand::Predicate { uniform, .. } = operand {
            instruction.set_operand(slot, Operand::Predicate { index: 7, negated: false, uniform });
        }
    }
    let spelled = fields.iter().all(|(id, name)| instruction.spelling(*id) == Some(name));
    // As a fixture's word is: what it is waited for comes from the row's own words.
    instruction.control = sass::Control { write_barrier: 7, read_barrier: 7, ..instruction.control };
    spelled.then_some(instruction)
}

/// Forms that compilers do not write: halves with `.FMZ`, and functions of halves with marks.
pub fn forms(arch: sass::Arch) -> Vec<Instruction> {
    let mut all = Vec::new();
    for row in sass::rows().iter().filter(|row| row.exists_on(arch)) {
        match row.op {
            Op::Hmul2 | Op::Hfma2 | Op::Hfma2Mma => {
                let zero = (FieldId::Ftz, ".FMZ");
                let others =
                    [(FieldId::BFloat16, ".BF16_V2"), (FieldId::Saturate, ".SAT"), (FieldId::Relu, ".RELU")];
                all.extend(form(row, &[zero], arch));
                all.extend(others.iter().filter_map(|other| form(row, &[zero, *other], arch)));
            }
            Op::Mufu => {
                for function in [".EX2", ".TANH", ".RCP"] {
                    for format in [".F16", ".BF16"] {
                        let fields = [(FieldId::Function, function), (FieldId::Float32, format)];
                        all.extend(form(row, &fields, arch).map(|mut form| {
                            form.control.write_barrier = 0;
                            form
                        }));
                    }
                }
            }
            // Those that write predicates.
            Op::Vimnmx if row.slots.len() == 6 => {
                for kind in [".U32", "", ".U16x2", ".S16x2"] {
                    all.extend(form(row, &[(FieldId::Signed, kind)], arch));
                    all.extend(form(row, &[(FieldId::Signed, kind), (FieldId::Relu, ".RELU")], arch));
                }
            }
            Op::P2r | Op::R2p => {
                for byte in ["", ".B1", ".B2", ".B3"] {
                    all.extend(form(row, &[(FieldId::PredicateByte, byte)], arch));
                }
            }
            _ => {}
        }
    }
    all
}

/// Asks a device what only a card knows, and prints what it says. What is refused costs a device.
pub fn ask(name: &str, open: &dyn Fn() -> Result<Device, Failure>, arch: sass::Arch) -> Result<(), Failure> {
    let mut device = open()?;
    let mut ask = |what: &str, question: &dyn Fn(&Device) -> Result<String, Failure>| {
        match question(&device) {
            Ok(answer) => println!("{name}: {what}: {answer}"),
            Err(error) => {
                println!("{name}: {what}: {error}");
                device = open()?;
            }
        }
        Ok::<(), Failure>(())
    };
    let rows = |op: Op| sass::rows().iter().filter(move |row| row.op == op && row.exists_on(arch));
    for row in rows(Op::Hfma2) {
        let Some(form) = form(row, &[(FieldId::Ftz, ".OOB")], arch) else { continue };
        let Ok(dressed) = probe::dress(&form, None) else { continue };
        let registers = |o: &&Operand| matches!(o, Operand::Register { index: 8 | 12 | 16, .. });
        if dressed.operands().iter().filter(registers).count() == 3 {
            for place in 0..3 {
                ask(&format!("{dressed}, source {place}"), &|device| out_of_bounds(device, &dressed, place))?;
            }
        }
    }
    // What a launch of clusters changes is asked again in one.
    for (cluster, numbers) in [(None, 0..=255u8), (Some([2, 1, 1]), 0x86..=0x8f)] {
        for row in rows(Op::S2r) {
            let Some(blank) = form(row, &[], arch) else { continue };
            for number in numbers.clone() {
                let mut special = blank;
                let register =
                    Operand::Register { index: 24, marks: sass::Marks::default(), half: sass::Half::Both };
                special.set_operand(0, register);
                special.set_operand(1, Operand::Special(sass::SpecialRegister(number)));
                special.control.write_barrier = 0;
                let Ok(word) = sass::encode(&special) else { continue };
                let Ok(special) = decode(word, 0, arch) else { continue };
                let what = format!("{special} ({number:#x}), cluster {cluster:?}");
                ask(&what, &|device| first_words(device, &special, cluster))?;
            }
        }
    }
    Ok(())
}

/// What some lanes have in the first register of results.
fn first_words(
    device: &Device,
    instruction: &Instruction,
    cluster: Option<[u32; 3]>,
) -> Result<String, Failure> {
    let program =
        Program::new(instruction)?.with_options(LaunchOptions { cluster, ..LaunchOptions::default() });
    let mut random = Random(5);
    let words: Vec<u32> = (0..4 * BLOCK).flat_map(|_| probe::inputs(&mut random)).collect();
    let stored = program.run_words(device, &[0; probe::INPUTS], &words)?;
    let some: [String; 8] =
        [0, 1, 31, 32, 127, 128, 256, 511].map(|lane| format!("{:08x}", stored[lane * OUTPUTS]));
    Ok(format!("R24 {}", some.join(", ")))
}

/// For every half as one source, the others being 1: which have a result that is not the plain one.
fn out_of_bounds(device: &Device, instruction: &Instruction, place: usize) -> Result<String, Failure> {
    let program = Program::new(instruction)?;
    let (one, infinity) = match instruction.spelling(FieldId::BFloat16) {
        Some(".BF16_V2") => (0x3f80_3f80, 0x7f80),
        _ => (0x3c00_3c00, 0x7c00),
    };
    let mut words = Vec::new();
    for value in 0..1u32 << 16 {
        let mut input = [0; probe::INPUTS];
        (input[0], input[4], input[8]) = (one, one, one);
        input[4 * place] = value << 16 | value;
        words.extend(input);
    }
    let stored = program.run_words(device, &[0; probe::INPUTS], &words)?;
    // Runs of values by their result, where that is zero or no number.
    let mut runs: Vec<(u32, u32, u32)> = Vec::new();
    for (value, lane) in (0..).zip(stored.chunks(OUTPUTS)) {
        let result = lane[0] & 0xffff;
        if result & 0x7fff != 0 && result & 0x7fff <= infinity {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.1 + 1 == value && run.2 == lane[0] => run.1 = value,
            _ => runs.push((value, value, lane[0])),
        }
    }
    let text: Vec<String> = runs
        .iter()
        .take(40)
        .map(|(first, last, to)| format!("{first:04x}..{last:04x} gives {to:08x}"))
        .collect();
    Ok(text.join(", "))
}
