//! Cubins: parsed on the CPU ([`Cubin`]) without any device, linked to an address when a module is loaded.

mod attribute;
mod cubin;
mod module;
mod relocation;

pub use attribute::{Attribute, AttributeFormat, ParameterInfo};
pub use cubin::{ConstantBank, Cubin, Dialect, FunctionInfo, KernelInfo};
pub(crate) use module::pack;
pub use module::{Argument, Kernel, LaunchOptions, Module};
pub use relocation::{Relocation, RelocationKind, Symbol};

/// Why a cubin was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// goblin found no well-formed ELF file.
    #[error("not a well-formed ELF file: {0}")]
    Elf(String),
    /// An ELF file, but not a 64-bit little-endian CUDA one.
    #[error("not a CUDA ELF file: {0}")]
    NotCuda(String),
    /// Neither of the two header dialects.
    #[error("ELF ABI version {0} is neither of the dialects 7 and 8")]
    Dialect(u8),
    /// A section reaches past the end of the file.
    #[error("section {section} reaches past the end of the file")]
    SectionBounds {
        /// The section's name.
        section: String,
    },
    /// The device image would be larger than a cubin can ask for.
    #[error("the device image would take {bytes} bytes")]
    ImageTooLarge {
        /// Bytes asked for.
        bytes: u64,
    },
    /// An attribute record is cut off or has an unknown format.
    #[error("{section}: the attribute at byte {offset:#x} {what}")]
    Attribute {
        /// The section.
        section: String,
        /// Where in it.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// No register count by either route.
    #[error("kernel {kernel}: neither sh_info nor .nv.info gives a register count")]
    NoRegisterCount {
        /// The kernel.
        kernel: String,
    },
    /// More registers than a thread can have.
    #[error("kernel {kernel}: {registers} registers per thread")]
    RegisterCount {
        /// The kernel.
        kernel: String,
        /// What the cubin asks for.
        registers: u32,
    },
    /// A kernel's symbol lies outside its section.
    #[error("kernel {kernel}: the entry point lies outside its section")]
    EntryBounds {
        /// The kernel.
        kernel: String,
    },
    /// A kernel's parameters lie outside its constant bank or overlap it wrongly.
    #[error("kernel {kernel}: parameter {ordinal} lies outside the {bytes} parameter bytes")]
    ParameterBounds {
        /// The kernel.
        kernel: String,
        /// Which parameter.
        ordinal: u16,
        /// Bytes of all parameters.
        bytes: u32,
    },
    /// A constant bank is larger than the hardware's 64 KiB or has a number above 7.
    #[error("{section}: no such constant bank ({bytes} bytes)")]
    ConstantBank {
        /// The section.
        section: String,
        /// Its bytes.
        bytes: u64,
    },
    /// A relocation type this loader does not know.
    #[error("{section}+{offset:#x}: unknown relocation type {kind}")]
    RelocationKind {
        /// The section to be patched.
        section: String,
        /// Where in it.
        offset: u64,
        /// The ELF number.
        kind: u32,
    },
    /// A relocation patches bytes outside its section.
    #[error("{section}+{offset:#x}: the relocation lies outside the section")]
    RelocationBounds {
        /// The section to be patched.
        section: String,
        /// Where in it.
        offset: u64,
    },
    /// A relocated value does not fit its field.
    #[error("image+{offset:#x}: {value:#x} does not fit a {kind:?} relocation")]
    RelocationRange {
        /// Where in the device image.
        offset: u64,
        /// The value.
        value: u64,
        /// The relocation.
        kind: RelocationKind,
    },
    /// A symbol that neither a section of this cubin nor the device runtime defines.
    #[error("undefined symbol {symbol}")]
    UndefinedSymbol {
        /// Its name.
        symbol: String,
    },
}
