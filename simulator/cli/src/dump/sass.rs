//! `mockgpu dump sass`: machine code, function by function.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use nv_abi::dump::Unknowns;
use nv_driver::program::{Cubin, CubinError};
use sass::{Arch, DecodeError, Instruction, Operand};
use serde_json::{Value, json};

/// A function of a cubin.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where it begins in the device image.
    pub start: u64,
    /// Its instructions.
    pub lines: Vec<Line>,
}

/// One instruction.
#[derive(Debug)]
pub struct Line {
    /// Byte offset in the function.
    pub offset: u64,
    /// The machine word.
    pub word: u128,
    /// The label in front of it, where something branches here.
    pub label: Option<String>,
    /// What the scheduler is told.
    pub control: String,
    /// The instruction as nvdisasm writes it, with labels for branch targets; or why there is none.
    pub text: Result<String, String>,
}

/// Why there is no listing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SassError {
    /// No rows for the architecture.
    #[error("no instruction table for sm_{0}")]
    Architecture(u32),
    /// The image does not link.
    #[error(transparent)]
    Link(#[from] CubinError),
    /// No function of that name.
    #[error("no function {name:?}; there are {}", present.join(", "))]
    Function {
        /// What was asked for.
        name: String,
        /// What there is.
        present: Vec<String>,
    },
}

/// Code sections of the device image with the functions' names.
pub fn functions(cubin: &Cubin) -> Vec<(String, Range<u64>)> {
    let code =
        |(name, range): &(String, Range<u64>)| Some((name.strip_prefix(".text.")?.to_owned(), range.clone()));
    cubin.sections().iter().filter_map(code).collect()
}

/// The instructions of a range of a device image: address, word, and what the word says.
pub fn instructions(
    image: &[u8],
    range: &Range<u64>,
    arch: Arch,
) -> impl Iterator<Item = (u64, u128, Result<Instruction, DecodeError>)> {
    // A cubin's sections lie inside its image.
    let code = image.get(range.start as usize..range.end as usize).unwrap_or(&[]);
    code.as_chunks::<16>().0.iter().zip((range.start..).step_by(16)).map(move |(bytes, address)| {
        let word = u128::from_le_bytes(*bytes);
        (address, word, sass::decode(word, address, arch))
    })
}

/// The listing of every function, or of one.
pub fn listing(cubin: &Cubin, only: Option<&str>) -> Result<Vec<Function>, SassError> {
    let arch = Arch::from_sm(cubin.sm()).ok_or(SassError::Architecture(cubin.sm()))?;
    // At address 0, so that absolute branch targets are offsets in the image.
    let image = cubin.link_with(0, |_| Some(0))?;
    let all = functions(cubin);
    if let Some(name) = only.filter(|name| !all.iter().any(|(known, _)| known == name)) {
        let present = all.into_iter().map(|(name, _)| name).collect();
        return Err(SassError::Function { name: name.to_owned(), present });
    }
    let wanted = all.iter().filter(|(name, _)| only.is_none_or(|only| only == name));
    Ok(wanted.map(|(name, range)| function(name, range, &image, arch, &all)).collect())
}

fn function(
    name: &str,
    range: &Range<u64>,
    image: &[u8],
    arch: Arch,
    all: &[(String, Range<u64>)],
) -> Function {
    let decoded: Vec<_> = instructions(image, range, arch).collect();
    let target = |instruction: &Instruction| {
        instruction.operands().iter().find_map(|operand| match operand {
            Operand::Label { target } => u64::try_from(*target).ok(),
            _ => None,
        })
    };
    let mut labels = BTreeMap::new();
    for (_, _, instruction) in &decoded {
        if let Some(target) =
            instruction.as_ref().ok().and_then(target).filter(|target| range.contains(target))
        {
            labels.insert(target, String::new());
        }
    }
    for (index, label) in labels.values_mut().enumerate() {
        *label = format!(".L_{index}");
    }
    let place = |target: u64| {
        labels.get(&target).cloned().or_else(|| {
            let (name, range) = all.iter().find(|(_, range)| range.contains(&target))?;
            let offset = target - range.start;
            Some(if offset == 0 { name.clone() } else { format!("{name}+{offset:#x}") })
        })
    };
    let lines = decoded
        .iter()
        .map(|(address, word, instruction)| {
            let text = match instruction {
                Ok(instruction) => {
                    let text = instruction.to_string();
                    let named = target(instruction).and_then(|target| Some((target, place(target)?)));
                    Ok(match named {
                        Some((target, name)) => text.replace(&format!("{target:#x}"), &format!("`({name})")),
                        None => text,
                    })
                }
                Err(error) => Err(error.to_string()),
            };
            Line {
                offset: address - range.start,
                word: *word,
                label: labels.get(address).cloned(),
                control: sass::Control::from_word(*word).to_string(),
                text,
            }
        })
        .collect();
    Function { name: name.to_owned(), start: range.start, lines }
}

/// One line of a listing, its label in front.
pub fn line_text(line: &Line) -> String {
    let mut out = String::new();
    if let Some(label) = &line.label {
        let _ = writeln!(out, "{label}:");
    }
    let _ = match &line.text {
        Ok(text) => writeln!(out, "  {:04x}  {:032x}  {}  {text}", line.offset, line.word, line.control),
        Err(error) => {
            writeln!(out, "  {:04x}  {:032x}  {}  unknown: {error}", line.offset, line.word, line.control)
        }
    };
    out
}

/// The listing as text.
pub fn text(functions: &[Function]) -> String {
    let mut out = String::new();
    for function in functions {
        let bytes = function.lines.len() * 16;
        let _ = writeln!(out, "{}, {bytes} bytes at {:#x} of the image", function.name, function.start);
        for line in &function.lines {
            out.push_str(&line_text(line));
        }
        out.push('\n');
    }
    out
}

/// The listing for programs.
pub fn to_json(functions: &[Function]) -> Value {
    let line = |line: &Line| {
        json!({
            "offset": line.offset,
            "word": format!("{:032x}", line.word),
            "label": line.label,
            "control": line.control,
            "text": line.text.as_ref().ok(),
            "error": line.text.as_ref().err(),
        })
    };
    let function = |function: &Function| {
        json!({
            "name": function.name,
            "image_offset": function.start,
            "instructions": function.lines.iter().map(line).collect::<Vec<_>>(),
        })
    };
    functions.iter().map(function).collect()
}

/// Words that the table does not explain.
pub fn unknowns(functions: &[Function]) -> Unknowns {
    let mut unknowns = Unknowns::default();
    for line in functions.iter().flat_map(|function| &function.lines) {
        if let Err(error) = &line.text {
            unknowns.add(error);
        }
    }
    unknowns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fixture_prints_with_labels_and_without_unknown_words() {
        for arch in ["sm_80", "sm_86", "sm_89"] {
            for module in fixtures::MODULES {
                let cubin = Cubin::parse(&fixtures::cubin(arch, module.name).unwrap()).unwrap();
                let functions = listing(&cubin, None).unwrap();
                assert!(module.kernels.iter().all(|kernel| functions.iter().any(|f| f.name == *kernel)));
                assert!(unknowns(&functions).is_empty(), "{arch} {}: {}", module.name, unknowns(&functions));
            }
        }
    }

    #[test]
    fn a_branch_names_its_label_and_a_missing_function_is_refused() {
        let cubin = Cubin::parse(&fixtures::cubin("sm_89", "vector_add").unwrap()).unwrap();
        let functions = listing(&cubin, Some("vector_add")).unwrap();
        let text = text(&functions);
        // The loop at the end of every kernel, on itself.
        assert!(text.contains("BRA `(.L_") && text.contains(".L_0:\n"), "{text}");
        let error = listing(&cubin, Some("nothing")).unwrap_err();
        assert!(error.to_string().contains("there are vector_add"), "{error}");
    }
}
