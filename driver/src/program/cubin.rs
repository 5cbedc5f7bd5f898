//! The loader: an ELF file with its kernels, constant banks, initial data and relocations.

use std::{collections::BTreeMap, ops::Range};

use goblin::elf::{
    Elf, SectionHeader,
    header::{ELFCLASS64, ELFDATA2LSB},
    section_header::{SHF_ALLOC, SHF_EXECINSTR, SHN_UNDEF, SHT_NOBITS, SHT_PROGBITS, SHT_REL, SHT_RELA},
    sym::STT_FUNC,
};

use super::{Attribute, CubinError, ParameterInfo, Relocation, RelocationKind, Symbol};

const EM_CUDA: u16 = 190;
/// `st_other` of a kernel's symbol.
const STO_CUDA_ENTRY: u8 = 0x10;
/// Everything in the image starts on such a boundary: code needs 128, constant banks 64 from Hopper on.
const PLACEMENT: u64 = 256;
/// Free bytes after the last section: instruction prefetch reads past the code's end.
const SLACK: u64 = 0x1000;
/// No cubin asks for more; a corrupted size does.
const LARGEST_IMAGE: u64 = 1 << 28;
/// A constant bank's hardware limit.
const LARGEST_BANK: u64 = 1 << 16;

/// The two ELF header dialects of cubins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// ABI version 7: CUDA up to 12.9 for sm_90 and older. The SM number is in bits 7:0 of `e_flags`.
    Abi7,
    /// ABI version 8: CUDA 13, and 12.9 for sm_100 and newer. The SM number is in bits 15:8 of `e_flags`.
    Abi8,
}

/// A constant bank inside the device image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank {
    /// Byte offset in the device image.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
}

/// What a launch needs to know of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The symbol's name, mangled as the compiler left it.
    pub name: String,
    /// The code, as byte offsets in the device image.
    pub code: Range<u64>,
    /// Registers per thread.
    pub registers: u32,
    /// Hardware barriers, at least 1.
    pub barriers: u32,
    /// Statically allocated shared memory in bytes, as the section says (from sm_90 on the driver's 1 KiB included).
    pub shared_bytes: u32,
    /// Stack per thread in bytes, callees included; with recursion, its own frame and 1 KiB.
    pub stack_bytes: u32,
    /// Offset of the first parameter in constant bank 0.
    pub parameter_base: u32,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
    /// The parameters in the order of the signature.
    pub parameters: Vec<ParameterInfo>,
    /// Constant banks 1 to 7 (0 is filled at launch).
    pub constant_banks: [Option<ConstantBank>; 8],
    /// The largest block that the kernel was compiled for, if it says so.
    pub max_threads: Option<[u32; 3]>,
    /// The only block that the kernel was compiled for, if it says so.
    pub required_threads: Option<[u32; 3]>,
    /// The only cluster that the kernel was compiled for, in blocks, if it says so.
    pub required_cluster: Option<[u32; 3]>,
    /// Every record of the kernel's own `.nv.info` section.
    pub attributes: Vec<Attribute>,
}

/// A function that kernels call, compiled as a piece of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The symbol's name.
    pub name: String,
    /// The code, as byte offsets in the device image.
    pub code: Range<u64>,
    /// Registers per thread.
    pub registers: u32,
    /// Stack per thread in bytes.
    pub stack_bytes: u32,
}

/// A parsed cubin: the device image with its relocations, and its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    dialect: Dialect,
    sm: u32,
    image: Vec<u8>,
    sections: Vec<(String, Range<u64>)>,
    relocations: Vec<Relocation>,
    externals: Vec<String>,
    kernels: Vec<KernelInfo>,
    functions: Vec<FunctionInfo>,
    attributes: Vec<Attribute>,
    global_init: Option<Range<u64>>,
}

/// Registers of a thread that instructions can name, and one that is none.
const MOST_REGISTERS: u32 = 256;
/// The compiler's mark of a kernel whose stack has no bound: it recurses or calls through pointers.
const UNBOUNDED_STACK: u32 = u32::MAX;
/// What such a kernel gets: the default stack limit of NVIDIA's runtime.
const DEFAULT_STACK: u32 = 1024;

/// The stack that a kernel needs, from what its two attributes say and the largest frame of its functions.
///
/// The older dialect does not mark recursion: the minimum then leaves out frames that are certainly there.
fn stack(minimum: Option<u32>, frame: Option<u32>, callee: u32) -> u32 {
    let frame = frame.unwrap_or(0);
    match minimum {
        Some(UNBOUNDED_STACK) => frame.saturating_add(DEFAULT_STACK),
        minimum if minimum.unwrap_or(0) < frame.saturating_add(callee) && callee > 0 => {
            frame.saturating_add(callee).saturating_add(DEFAULT_STACK)
        }
        minimum => minimum.unwrap_or(0).max(frame),
    }
}

/// A section that is part of the device image.
struct Placed {
    offset: u64,
    bytes: u64,
}

fn content<'a>(bytes: &'a [u8], header: &SectionHeader, name: &str) -> Result<&'a [u8], CubinError> {
    let bounds = || CubinError::SectionBounds { section: name.to_owned() };
    let start = usize::try_from(header.sh_offset).map_err(|_| bounds())?;
    let length = usize::try_from(header.sh_size).map_err(|_| bounds())?;
    bytes.get(start..start.checked_add(length).ok_or_else(bounds)?).ok_or_else(bounds)
}

/// `.nv.constant3` and `.nv.constant2.kernel`: bank and kernel.
fn constant_section(name: &str) -> Option<(u32, Option<&str>)> {
    let rest = name.strip_prefix(".nv.constant")?;
    let (bank, kernel) = match rest.split_once('.') {
        Some((bank, kernel)) => (bank, Some(kernel)),
        None => (rest, None),
    };
    Some((bank.parse().ok()?, kernel))
}

/// Whether the section's bytes are uploaded. Constant bank 0 is made at launch; shared memory has no bytes.
fn is_placed(header: &SectionHeader, name: &str) -> bool {
    header.sh_flags & u64::from(SHF_ALLOC) != 0
        && !name.starts_with(".nv.shared")
        && !name.starts_with(".nv.local")
        && !matches!(constant_section(name), Some((0, _)))
        && matches!(header.sh_type, SHT_PROGBITS | SHT_NOBITS)
}

impl Cubin {
    /// Reads a cubin of either dialect. Nothing of a damaged file is trusted: every damage is an error or harmless.
    pub fn parse(bytes: &[u8]) -> Result<Self, CubinError> {
        let elf = Elf::parse(bytes).map_err(|error| CubinError::Elf(error.to_string()))?;
        let ident = &elf.header.e_ident;
        if ident[4] != ELFCLASS64 || ident[5] != ELFDATA2LSB {
            return Err(CubinError::NotCuda("not a 64-bit little-endian file".to_owned()));
        }
        if elf.header.e_machine != EM_CUDA {
            return Err(CubinError::NotCuda(format!("machine {}", elf.header.e_machine)));
        }
        let (dialect, sm) = match ident[8] {
            7 => (Dialect::Abi7, elf.header.e_flags & 0xff),
            8 => (Dialect::Abi8, elf.header.e_flags >> 8 & 0xff),
            other => return Err(CubinError::Dialect(other)),
        };
        let names: Vec<&str> = elf
            .section_headers
            .iter()
            .map(|header| elf.shdr_strtab.get_at(header.sh_name).unwrap_or(""))
            .collect();

        // Place what is uploaded.
        let mut placed: BTreeMap<usize, Placed> = BTreeMap::new();
        let mut sections = Vec::new();
        let mut end = 0u64;
        let mut global_init = None;
        for (index, header) in elf.section_headers.iter().enumerate() {
            let name = names[index];
            if !is_placed(header, name) {
                continue;
            }
            if let Some((bank, _)) = constant_section(name)
                && (bank > 7 || header.sh_size > LARGEST_BANK)
            {
                return Err(CubinError::ConstantBank { section: name.to_owned(), bytes: header.sh_size });
            }
            let offset = end.next_multiple_of(PLACEMENT);
            end = offset
                .checked_add(header.sh_size)
                .filter(|end| *end <= LARGEST_IMAGE)
                .ok_or(CubinError::ImageTooLarge { bytes: header.sh_size })?;
            if name == ".nv.global.init" {
                global_init = Some(offset..end);
            }
            sections.push((name.to_owned(), offset..end));
            placed.insert(index, Placed { offset, bytes: header.sh_size });
        }
        let mut image = vec![0; (end.next_multiple_of(PLACEMENT) + SLACK) as usize];
        for (&index, place) in &placed {
            let header = &elf.section_headers[index];
            if header.sh_type == SHT_PROGBITS {
                let data = content(bytes, header, names[index])?;
                image[place.offset as usize..][..data.len()].copy_from_slice(data);
            }
        }

        let mut externals = Vec::new();
        let relocations = relocations(&elf, bytes, &names, &placed, &mut externals)?;

        // Attributes of the module and of each kernel.
        let mut attributes = Vec::new();
        let mut kernel_attributes: BTreeMap<&str, Vec<Attribute>> = BTreeMap::new();
        for (index, header) in elf.section_headers.iter().enumerate() {
            let name = names[index];
            if name == ".nv.info" {
                attributes.extend(Attribute::parse_all(name, content(bytes, header, name)?)?);
            } else if let Some(kernel) = name.strip_prefix(".nv.info.") {
                let records = Attribute::parse_all(name, content(bytes, header, name)?)?;
                kernel_attributes.entry(kernel).or_default().extend(records);
            }
        }

        let mut kernels = Vec::new();
        let mut functions = Vec::new();
        for (symbol_index, symbol) in elf.syms.iter().enumerate() {
            if symbol.st_type() != STT_FUNC || symbol.st_shndx == SHN_UNDEF as usize {
                continue;
            }
            let is_kernel = symbol.st_other & STO_CUDA_ENTRY != 0;
            let name = elf.strtab.get_at(symbol.st_name).unwrap_or("");
            let entry_bounds = || CubinError::EntryBounds { kernel: name.to_owned() };
            let place = placed.get(&symbol.st_shndx).ok_or_else(entry_bounds)?;
            let header = &elf.section_headers[symbol.st_shndx];
            if header.sh_flags & u64::from(SHF_EXECINSTR) == 0
                || symbol.st_value >= place.bytes
                || symbol.st_value % 16 != 0
            {
                return Err(entry_bounds());
            }
            let code = place.offset + symbol.st_value..place.offset + place.bytes;
            if !is_kernel {
                // A kernel's own helpers lie in its section, and its figures count them.
                if symbol.st_value == 0 {
                    functions.push(function(name, symbol_index as u32, code, header, &attributes)?);
                }
                continue;
            }
            let own = kernel_attributes.remove(name).unwrap_or_default();
            kernels.push(kernel(
                name,
                symbol_index as u32,
                code,
                header,
                own,
                &attributes,
                callee_frame(&elf, name, &attributes),
                &elf.section_headers,
                &names,
                &placed,
            )?);
        }
        Ok(Self {
            dialect,
            sm,
            image,
            sections,
            relocations,
            externals,
            kernels,
            functions,
            attributes,
            global_init,
        })
    }

    /// The header dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The SM number the code is for: 89 for sm_89.
    pub fn sm(&self) -> u32 {
        self.sm
    }

    /// The kernels, in the order of the symbol table.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    /// Functions with a code section of their own, in the order of the symbol table.
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// Names that the code uses and the cubin does not define: calls of the device runtime, such as `vprintf`.
    pub fn externals(&self) -> &[String] {
        &self.externals
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Every record of the module's `.nv.info` section.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The sections of the device image with their byte ranges in it.
    pub fn sections(&self) -> &[(String, Range<u64>)] {
        &self.sections
    }

    /// The relocations of the device image.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// Where initialised global variables lie in the device image.
    pub fn global_init(&self) -> Option<Range<u64>> {
        self.global_init.clone()
    }

    /// Bytes of the device image, with room for prefetch after its end.
    pub fn image_bytes(&self) -> u64 {
        self.image.len() as u64
    }

    /// The device image as it must lie at GPU address `base`. A cubin with [`Cubin::externals`] is refused.
    pub fn link(&self, base: u64) -> Result<Vec<u8>, CubinError> {
        self.link_with(base, |_| None)
    }

    /// The same with the addresses of what the cubin leaves undefined.
    pub fn link_with(&self, base: u64, resolve: impl Fn(&str) -> Option<u64>) -> Result<Vec<u8>, CubinError> {
        let mut image = self.image.clone();
        for relocation in &self.relocations {
            let symbol = match relocation.symbol {
                Symbol::Image(offset) => base.wrapping_add(offset),
                Symbol::Absolute(value) => value,
                Symbol::External(index) => {
                    let name = self.externals.get(index).map_or("(no such index)", String::as_str);
                    resolve(name).ok_or_else(|| CubinError::UndefinedSymbol { symbol: name.to_owned() })?
                }
            };
            relocation.apply(&mut image, symbol)?;
        }
        Ok(image)
    }
}

/// The largest stack frame of the functions that belong to a kernel: compilers name them `$kernel$function`.
fn callee_frame(elf: &Elf<'_>, kernel: &str, module: &[Attribute]) -> u32 {
    let belongs = |symbol: usize| {
        let name = elf.syms.get(symbol).and_then(|symbol| elf.strtab.get_at(symbol.st_name)).unwrap_or("");
        name.strip_prefix('$')
            .and_then(|rest| rest.strip_prefix(kernel))
            .is_some_and(|rest| rest.starts_with('$'))
    };
    module
        .iter()
        .filter(|attribute| attribute.id == Attribute::FRAME_SIZE)
        .filter(|attribute| attribute.word(0).is_some_and(|symbol| belongs(symbol as usize)))
        .filter_map(|attribute| attribute.word(1))
        .max()
        .unwrap_or(0)
}

/// Registers per thread of a kernel or function: from its attribute or else its section.
fn registers(name: &str, attribute: Option<u32>, text: &SectionHeader) -> Result<u32, CubinError> {
    let registers = attribute
        .filter(|count| *count != 0)
        .or(Some(text.sh_info >> 24).filter(|count| *count != 0))
        .ok_or_else(|| CubinError::NoRegisterCount { kernel: name.to_owned() })?;
    if registers > MOST_REGISTERS {
        return Err(CubinError::RegisterCount { kernel: name.to_owned(), registers });
    }
    Ok(registers)
}

fn function(
    name: &str,
    symbol: u32,
    code: Range<u64>,
    text: &SectionHeader,
    module: &[Attribute],
) -> Result<FunctionInfo, CubinError> {
    let of_symbol = |id: u8| {
        let own = module.iter().find(|record| record.id == id && record.word(0) == Some(symbol));
        own.and_then(|record| record.word(1))
    };
    Ok(FunctionInfo {
        name: name.to_owned(),
        code,
        registers: registers(name, of_symbol(Attribute::REGCOUNT), text)?,
        stack_bytes: stack(of_symbol(Attribute::MIN_STACK_SIZE), of_symbol(Attribute::FRAME_SIZE), 0),
    })
}

#[allow(clippy::too_many_arguments)]
fn kernel(
    name: &str,
    symbol: u32,
    code: Range<u64>,
    text: &SectionHeader,
    own: Vec<Attribute>,
    module: &[Attribute],
    callee_frame: u32,
    headers: &[SectionHeader],
    names: &[&str],
    placed: &BTreeMap<usize, Placed>,
) -> Result<KernelInfo, CubinError> {
    let of_symbol = |id: u8| {
        own.iter()
            .chain(module)
            .filter(|attribute| attribute.id == id && attribute.word(0) == Some(symbol))
            .find_map(|attribute| attribute.word(1))
    };
    let words = |id: u8| {
        let attribute = own.iter().find(|attribute| attribute.id == id)?;
        Some([attribute.word(0)?, attribute.word(1)?, attribute.word(2)?])
    };
    let registers = registers(name, of_symbol(Attribute::REGCOUNT), text)?;
    let section = |wanted: &str| names.iter().position(|name| *name == wanted);

    let mut constant_banks = [None; 8];
    for (index, header) in headers.iter().enumerate() {
        if let Some((bank @ 1..=7, of)) = constant_section(names[index])
            && of.is_none_or(|of| of == name)
            && let Some(place) = placed.get(&index)
        {
            constant_banks[bank as usize] =
                Some(ConstantBank { offset: place.offset, bytes: header.sh_size as u32 });
        }
    }

    let mut parameters: Vec<_> = own.iter().filter_map(ParameterInfo::from_attribute).collect();
    parameters.sort_by_key(|parameter| parameter.ordinal);
    let place = own
        .iter()
        .find(|attribute| attribute.id == Attribute::PARAM_CBANK)
        .and_then(|attribute| attribute.word(1));
    let bank0 = section(&format!(".nv.constant0.{name}"))
        .map(|index| headers[index].sh_size)
        .unwrap_or(0)
        .min(LARGEST_BANK) as u32;
    let (parameter_base, parameter_bytes) = match place {
        Some(place) => (place & 0xffff, place >> 16),
        // Kernels without parameters have no record; their bank ends where parameters would begin.
        None => (bank0, 0),
    };
    for parameter in &parameters {
        if u32::from(parameter.offset) + u32::from(parameter.size) > parameter_bytes {
            return Err(CubinError::ParameterBounds {
                kernel: name.to_owned(),
                ordinal: parameter.ordinal,
                bytes: parameter_bytes,
            });
        }
    }

    let barriers = own
        .iter()
        .find(|attribute| attribute.id == Attribute::NUM_BARRIERS)
        .and_then(|attribute| attribute.payload.first().copied())
        .map_or(0, u32::from)
        // The older dialect keeps the number in the section flags, bits 26:20.
        .max((text.sh_flags >> 20 & 0x7f) as u32)
        .clamp(1, 16);
    let shared = section(&format!(".nv.shared.{name}")).map_or(0, |index| headers[index].sh_size);
    Ok(KernelInfo {
        name: name.to_owned(),
        code,
        registers,
        barriers,
        shared_bytes: u32::try_from(shared).unwrap_or(u32::MAX),
        stack_bytes: stack(
            of_symbol(Attribute::MIN_STACK_SIZE),
            of_symbol(Attribute::FRAME_SIZE),
            callee_frame,
        ),
        parameter_base,
        parameter_bytes,
        parameters,
        constant_banks,
        max_threads: words(Attribute::MAX_THREADS),
        required_threads: words(Attribute::REQNTID),
        required_cluster: words(Attribute::CTA_PER_CLUSTER).filter(|cluster| *cluster != [0; 3]),
        attributes: own,
    })
}

/// Every relocation of a section that is uploaded; debug sections' are not needed.
fn relocations(
    elf: &Elf<'_>,
    bytes: &[u8],
    names: &[&str],
    placed: &BTreeMap<usize, Placed>,
    externals: &mut Vec<String>,
) -> Result<Vec<Relocation>, CubinError> {
    let mut found = Vec::new();
    for (index, header) in elf.section_headers.iter().enumerate() {
        let entry = match header.sh_type {
            SHT_REL => 16,
            SHT_RELA => 24,
            _ => continue,
        };
        let Some(target) = placed.get(&(header.sh_info as usize)) else { continue };
        let section = names[header.sh_info as usize];
        for row in content(bytes, header, names[index])?.chunks_exact(entry) {
            let word = |at: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&row[at..at + 8]);
                u64::from_le_bytes(word)
            };
            let (offset, info) = (word(0), word(8));
            let kind = RelocationKind::from_elf(info as u32).ok_or_else(|| CubinError::RelocationKind {
                section: section.to_owned(),
                offset,
                kind: info as u32,
            })?;
            if offset.checked_add(kind.bytes()).is_none_or(|end| end > target.bytes) {
                return Err(CubinError::RelocationBounds { section: section.to_owned(), offset });
            }
            let undefined = |symbol: &str| CubinError::UndefinedSymbol { symbol: symbol.to_owned() };
            let symbol = elf.syms.get((info >> 32) as usize).ok_or_else(|| undefined("(no such index)"))?;
            let symbol_name = elf.strtab.get_at(symbol.st_name).unwrap_or("");
            let symbol = match placed.get(&symbol.st_shndx) {
                _ if kind.is_local() => Symbol::Absolute(0),
                Some(place) => Symbol::Image(place.offset.wrapping_add(symbol.st_value)),
                // Shared variables: an offset in the CTA's shared memory.
                None if names.get(symbol.st_shndx).is_some_and(|name| name.starts_with(".nv.shared")) => {
                    Symbol::Absolute(symbol.st_value)
                }
                None if symbol.st_shndx == SHN_UNDEF as usize && !symbol_name.is_empty() => {
                    let known = externals.iter().position(|name| name == symbol_name);
                    Symbol::External(known.unwrap_or_else(|| {
                        externals.push(symbol_name.to_owned());
                        externals.len() - 1
                    }))
                }
                None => return Err(undefined(symbol_name)),
            };
            found.push(Relocation {
                offset: target.offset + offset,
                kind,
                symbol,
                addend: (header.sh_type == SHT_RELA).then(|| word(16) as i64),
            });
        }
    }
    Ok(found)
}
