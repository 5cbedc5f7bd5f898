//! Which function and source line an instruction is of.
//!
//! A GPU knows addresses only. Whoever has the cubin gives it to [`crate::machine::Machine::add_cubin`]; after a fault
//! the code in memory is compared with the functions so learned. Every instruction has to agree, but for those that the
//! cubin says are relocated. [`Programs`] does the same for whoever has code from elsewhere.
#![forbid(unsafe_code)]

mod lines;

use std::{collections::BTreeSet, fmt, sync::Arc};

use goblin::elf::{
    Elf,
    section_header::{SHF_EXECINSTR, SHT_RELA},
};

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

/// Bytes of code at an offset from where it begins, as far as they are known.
type Code<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// The code of one `.text` section.
#[derive(Debug)]
struct Function {
    name: String,
    code: Vec<u8>,
    /// Offsets of the instructions that are relocated: what stands there is not known before the code is loaded.
    relocated: BTreeSet<u64>,
}

impl Function {
    /// Its instructions that are the same wherever it is loaded, with their offsets.
    fn fixed(&self) -> impl Iterator<Item = (u64, &[u8; INSTRUCTION])> {
        let all = (0_u64..).step_by(INSTRUCTION).zip(self.code.as_chunks::<INSTRUCTION>().0);
        all.filter(|(offset, _)| !self.relocated.contains(offset))
    }

    /// Whether code is this function's.
    fn is(&self, code: Code<'_>) -> bool {
        let same = |offset: u64, expected: &[u8]| {
            code(offset, expected.len()).is_some_and(|found| found == expected)
        };
        // Most functions differ in their first instruction, and little is read of them.
        let first = self.fixed().next().is_some_and(|(offset, expected)| same(offset, expected));
        let whole = || code(0, self.code.len());
        first
            && whole().is_some_and(|whole| {
                self.fixed().all(|(offset, expected)| whole[offset as usize..].starts_with(expected))
            })
    }

    fn is_at(&self, map: &Arc<AddressMap>, address: u64) -> bool {
        self.is(&|offset, bytes| {
            let mut found = vec![0; bytes];
            map.read(address.checked_add(offset)?, &mut found).ok()?;
            Some(found)
        })
    }

    /// The offset in this function of the instruction at `address`, which is `word`, if it is of this function.
    fn offset_of(&self, map: &Arc<AddressMap>, address: u64, word: &[u8; INSTRUCTION]) -> Option<u64> {
        let mut alike = self.fixed().filter(|(_, code)| *code == word).map(|(offset, _)| offset);
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
        let name = |section: usize| {
            let header = elf.section_headers.get(section);
            header.and_then(|header| elf.shdr_strtab.get_at(header.sh_name)).unwrap_or_default()
        };
        let relocated = |text: &str| {
            let tables = elf.section_headers.iter().enumerate().filter(|(index, _)| {
                let table = name(*index).strip_prefix(".rel");
                table.is_some_and(|table| table.strip_prefix('a').unwrap_or(table) == text)
            });
            let entries = tables.flat_map(|(_, table)| {
                let bytes = table.file_range().and_then(|range| cubin.get(range)).unwrap_or_default();
                bytes.chunks_exact(if table.sh_type == SHT_RELA { 24 } else { 16 })
            });
            // An entry begins with its offset.
            let offsets = entries.filter_map(|entry| entry.first_chunk().copied().map(u64::from_le_bytes));
            offsets.map(|offset| offset & !(INSTRUCTION as u64 - 1)).collect()
        };
        let code = elf.section_headers.iter().enumerate().filter(|(_, section)| {
            section.sh_flags & u64::from(SHF_EXECINSTR) != 0 && section.sh_size >= INSTRUCTION as u64
        });
        let functions: Vec<Function> = code
            .filter_map(|(index, section)| {
                let text = name(index);
                let code = cubin.get(section.file_range()?)?;
                Some(Function {
                    name: text.strip_prefix(".text.")?.to_owned(),
                    code: code.to_vec(),
                    relocated: relocated(text),
                })
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

    /// Offsets of a function's instructions that are relocated when it is loaded.
    pub fn relocated(&self, name: &str) -> Vec<u64> {
        let function = self.functions.iter().find(|function| function.name == name);
        function.map(|function| function.relocated.iter().copied().collect()).unwrap_or_default()
    }

    /// The machine code of a function, before relocation.
    pub fn code(&self, name: &str) -> Option<&[u8]> {
        self.functions.iter().find(|function| function.name == name).map(|function| &*function.code)
    }
}

/// Cubins by whose functions code is known again; the newest is asked first.
#[derive(Debug, Default)]
pub struct Programs(Vec<Arc<Program>>);

impl Programs {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns the functions of a cubin, and their source lines if it has them. Returns how many functions it has.
    pub fn add_cubin(&mut self, cubin: &[u8]) -> Result<usize, CubinError> {
        let program = Arc::new(Program::of(cubin)?);
        let functions = program.len();
        self.add(program);
        Ok(functions)
    }

    /// The function whose code this is, by what is known of the code, with its bytes: `code` gives so many bytes at an offset.
    pub fn identify(&self, code: &dyn Fn(u64, usize) -> Option<Vec<u8>>) -> Option<(&str, u64)> {
        let (_, function) = self.functions().find(|(_, function)| function.is(code))?;
        Some((&function.name, function.code.len() as u64))
    }

    /// The function that has these instructions at these offsets, with the lines of its cubin.
    pub fn executed(&self, words: impl Iterator<Item = (u64, u128)> + Clone) -> Option<(&str, &Lines)> {
        let has = |function: &Function, offset: u64, word: u128| {
            function.relocated.contains(&offset)
                || function
                    .code
                    .get(offset as usize..)
                    .is_some_and(|rest| rest.starts_with(&word.to_le_bytes()))
        };
        let all = |function: &Function| words.clone().all(|(offset, word)| has(function, offset, word));
        let (program, function) = self.functions().find(|(_, function)| all(function))?;
        Some((&function.name, &program.lines))
    }

    /// The newest first: addresses are used again.
    fn functions(&self) -> impl Iterator<Item = (&Program, &Function)> {
        self.0.iter().rev().flat_map(|program| program.functions.iter().map(move |f| (&**program, f)))
    }

    /// Learns the functions of a cubin that was read.
    pub fn add(&mut self, program: Arc<Program>) {
        if self.0.len() == PROGRAMS {
            self.0.remove(0);
        }
        self.0.push(program);
    }

    /// What is known of an instruction of a kernel that begins at `program`. `None` where neither is.
    pub fn find(&self, map: &Arc<AddressMap>, program: u64, instruction: u64) -> Option<Source> {
        let kernel = self.functions().find(|(_, function)| function.is_at(map, program));
        let inside = kernel.and_then(|(p, function)| {
            let offset = instruction.checked_sub(program)?;
            (offset < function.code.len() as u64).then_some((p, function, offset))
        });
        let place = inside.or_else(|| {
            let mut word = [0; INSTRUCTION];
            map.read(instruction, &mut word).ok()?;
            self.functions()
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
