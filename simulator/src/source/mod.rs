//! Which function and source line an instruction is of.
//!
//! A GPU knows addresses only. Whoever has the cubin gives it to [`crate::machine::Machine::add_cubin`]; after a fault
//! the code in memory is compared with the functions so learned. Relocated words differ from the cubin's, so most of
//! a function has to agree, not all.
#![forbid(unsafe_code)]

mod lines;

use std::{fmt, sync::Arc};

use goblin::elf::{Elf, section_header::SHF_EXECINSTR};

use crate::memory::AddressMap;
pub use lines::Lines;

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;
/// Cubins that are remembered; the oldest is forgotten first.
const PROGRAMS: usize = 1024;

/// Why a cubin was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// It is no ELF file.
    #[error("no cubin: {0}")]
    Elf(String),
    /// It has no section of machine code.
    #[error("the cubin has no functions")]
    NoFunctions,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The kernel that was launched, if its cubin is known.
    pub kernel: Option<String>,
    /// The function that the instruction is of, and its offset in bytes.
    pub function: Option<(String, u64)>,
    /// File and line, where the cubin has line information.
    pub line: Option<(String, u64)>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(kernel) = &self.kernel {
            write!(f, "kernel {kernel}")?;
            separator = ", ";
        }
        if let Some((function, offset)) = &self.function {
            write!(f, "{separator}at {function}+{offset:#x}")?;
            separator = ", ";
        }
        if let Some((file, line)) = &self.line {
            write!(f, "{separator}{file}:{line}")?;
        }
        Ok(())
    }
}

/// The code of one `.text` section.
#[derive(Debug)]
struct Function {
    name: String,
    code: Vec<u8>,
}

impl Function {
    /// Whether this is the code at `address`: at least seven of eight instructions agree.
    fn is_at(&self, map: &Arc<AddressMap>, address: u64) -> bool {
        let mut found = vec![0; self.code.len()];
        if map.read(address, &mut found).is_err() {
            return false;
        }
        let pairs = self.code.chunks_exact(INSTRUCTION).zip(found.chunks_exact(INSTRUCTION));
        let (mut all, mut same) = (0, 0);
        for (expected, found) in pairs {
            all += 1;
            same += usize::from(expected == found);
        }
        same * 8 >= all * 7
    }

    /// The offset in this function of the instruction at `address`, which is `word`, if it is of this function.
    fn offset_of(&self, map: &Arc<AddressMap>, address: u64, word: &[u8]) -> Option<u64> {
        let offsets = self.code.chunks_exact(INSTRUCTION).zip((0_u64..).step_by(INSTRUCTION));
        let mut alike = offsets.filter(|(code, _)| *code == word).map(|(_, offset)| offset);
        alike.find(|offset| address.checked_sub(*offset).is_some_and(|start| self.is_at(map, start)))
    }
}

/// The functions of one cubin.
#[derive(Debug)]
pub struct Program {
    functions: Vec<Function>,
    lines: Lines,
}

impl Program {
    /// Reads a cubin.
    pub fn of(cubin: &[u8]) -> Result<Self, CubinError> {
        let elf = Elf::parse(cubin).map_err(|error| CubinError::Elf(error.to_string()))?;
        let code = elf.section_headers.iter().filter(|section| {
            section.sh_flags & u64::from(SHF_EXECINSTR) != 0 && section.sh_size >= INSTRUCTION as u64
        });
        let functions: Vec<Function> = code
            .filter_map(|section| {
                let name = elf.shdr_strtab.get_at(section.sh_name)?.strip_prefix(".text.")?;
                let code = cubin.get(section.file_range()?)?;
                Some(Function { name: name.to_owned(), code: code.to_vec() })
            })
            .collect();
        if functions.is_empty() {
            return Err(CubinError::NoFunctions);
        }
        Ok(Self { functions, lines: Lines::of(cubin) })
    }

    /// How many there are; at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// The machine code of a function, before relocation.
    pub fn code(&self, name: &str) -> Option<&[u8]> {
        self.functions.iter().find(|function| function.name == name).map(|function| &*function.code)
    }
}

/// The cubins that a GPU was told of.
#[derive(Debug, Default)]
pub struct Programs(Vec<Arc<Program>>);

impl Programs {
    /// Tells of one more; of very many, the oldest is forgotten.
    pub fn add(&mut self, program: Arc<Program>) {
        if self.0.len() == PROGRAMS {
            self.0.remove(0);
        }
        self.0.push(program);
    }

    /// What is known of an instruction of a kernel that begins at `program`. `None` where neither is.
    pub fn find(&self, map: &Arc<AddressMap>, program: u64, instruction: u64) -> Option<Source> {
        // The newest first: addresses are used again.
        let functions =
            || self.0.iter().rev().flat_map(|p| p.functions.iter().map(move |function| (p, function)));
        let kernel = functions().find(|(_, function)| function.is_at(map, program));
        let inside = kernel.and_then(|(p, function)| {
            let offset = instruction.checked_sub(program)?;
            (offset < function.code.len() as u64).then_some((p, function, offset))
        });
        let place = inside.or_else(|| {
            let mut word = [0; INSTRUCTION];
            map.read(instruction, &mut word).ok()?;
            functions()
                .find_map(|(p, function)| Some((p, function, function.offset_of(map, instruction, &word)?)))
        });
        if kernel.is_none() && place.is_none() {
            return None;
        }
        let line = place.and_then(|(p, function, offset)| p.lines.find(&function.name, offset));
        Some(Source {
            kernel: kernel.map(|(_, function)| function.name.clone()),
            function: place.map(|(_, function, offset)| (function.name.clone(), offset)),
            line: line.map(|(file, line)| (file.to_owned(), line)),
        })
    }
}
