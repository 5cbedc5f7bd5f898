//! The instruction table: one row per opcode and form, by family.
mod build;
mod control_flow;
mod float;
mod hopper;
mod integer;
mod memory;
mod moves;
mod tensor;
mod texture;
mod uniform;

use crate::Row;
use std::sync::LazyLock;

macro_rules! ops {
    ($($variant:ident $name:literal,)*) => {
        /// Mnemonics. Forms that compute something else (`IMAD.WIDE`) count as mnemonics of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Op {
            /// Every mnemonic.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// nvdisasm's spelling, without modifiers.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

ops! {
    Acqbulk "ACQBULK", Arrives "ARRIVES.LDGSTSBAR", Atom "ATOM", AtomCas "ATOM", Atomg "ATOMG", AtomgCas "ATOMG", Atoms "ATOMS", AtomsCas "ATOMS",
    AtomsCast "ATOMS.CAST", Bar "BAR", Bgmma "BGMMA", Bmma "BMMA", Bmov "BMOV.32", Bmsk "BMSK", Bpt "BPT.TRAP", Bra "BRA",
    Break "BREAK", Brev "BREV", Brx "BRX", Bssy "BSSY", Bsync "BSYNC", Call "CALL", Cctl "CCTL", CctlLine "CCTL", Cs2r "CS2R",
    Dadd "DADD", Depbar "DEPBAR.LE", Dfma "DFMA", Dmma "DMMA", Dmul "DMUL", Dsetp "DSETP",
    Elect "ELECT", Endcollective "ENDCOLLECTIVE", Errbar "ERRBAR", Cgaerrbar "CGAERRBAR", Exit "EXIT",
    F2f "F2F", F2fp "F2FP", F2i "F2I", Fadd "FADD", Fchk "FCHK", Fence "FENCE.VIEW.ASYNC", Ffma "FFMA", Flo "FLO", Fmnmx "FMNMX", Fmul "FMUL",
    Frnd "FRND", Fsel "FSEL", Fswzadd "FSWZADD", Fset "FSET", Fsetp "FSETP", Hadd2 "HADD2", Hfma2 "HFMA2", Hgmma "HGMMA", Hfma2Mma "HFMA2.MMA",
    Hmma "HMMA", Hmnmx2 "HMNMX2", Hmul2 "HMUL2", Hset2 "HSET2", Hsetp2 "HSETP2",
    I2f "I2F", I2fp "I2FP", I2i "I2I", I2ip "I2IP", Iabs "IABS", Iadd3 "IADD3", Idp "IDP", Igmma "IGMMA", Imad "IMAD",
    ImadHi "IMAD.HI", ImadWide "IMAD.WIDE", Imma "IMMA", Imnmx "IMNMX", Isetp "ISETP", Jmp "JMP", Jmx "JMX", Kill "KILL",
    Ld "LD", Ldc "LDC", Ldg "LDG", Ldgdepbar "LDGDEPBAR", Ldgsts "LDGSTS", Ldl "LDL", Lds "LDS", Ldsm "LDSM.16",
    Lea "LEA", Lepc "LEPC", Lop3 "LOP3.LUT", Match "MATCH", Membar "MEMBAR", Mov "MOV", Movm "MOVM.16",
    Mufu "MUFU", Nanosleep "NANOSLEEP", Nop "NOP", P2r "P2R", Plop3 "PLOP3.LUT", Popc "POPC", Preexit "PREEXIT", Prmt "PRMT",
    Qgmma "QGMMA", Qmma "QMMA", Qspc "QSPC", R2p "R2P", R2ur "R2UR", Red "RED", Redg "REDG", Redux "REDUX", Ret "RET", Rpcmov "RPCMOV.32", S2r "S2R", S2ur "S2UR", Sel "SEL", Sgxt "SGXT",
    Shf "SHF", Shfl "SHFL", St "ST", Stg "STG", Stas "STAS", Stl "STL", Sts "STS", Stsm "STSM.16", Suatom "SUATOM.D", Suld "SULD.D", SuldFormat "SULD.P", Sured "SURED.D", Sust "SUST.D", SustFormat "SUST.P", Syncs "SYNCS", Tex "TEX", Tld "TLD", Tld4 "TLD4", Txd "TXD", Txq "TXQ", Ublkcp "UBLKCP", Ubmsk "UBMSK", Ublkpf "UBLKPF.L2", Ublkred "UBLKRED", UcgabarArv "UCGABAR_ARV", UcgabarWait "UCGABAR_WAIT", Uflo "UFLO", Uiadd3 "UIADD3",
    Uimad "UIMAD", UimadWide "UIMAD.WIDE", Uisetp "UISETP", Uldc "ULDC", Ulea "ULEA", Ulop3 "ULOP3.LUT", Umov "UMOV",
    Ubrev "UBREV", Upopc "UPOPC", Usel "USEL", Usetmaxreg "USETMAXREG", Usgxt "USGXT", Ushf "USHF", Utmapf "UTMAPF.L2", Utmacctl "UTMACCTL", Utmacmdflush "UTMACMDFLUSH", Utmaldg "UTMALDG", Utmaredg "UTMAREDG", Utmastg "UTMASTG", Uprmt "UPRMT",
    Vabsdiff "VABSDIFF", Vabsdiff4 "VABSDIFF4", Viadd "VIADD", Viaddmnmx "VIADDMNMX", Vimnmx "VIMNMX", Vimnmx3 "VIMNMX3", Vote "VOTE", Voteu "VOTEU",
    Warpgroup "WARPGROUP", Warpsync "WARPSYNC", Yield "YIELD", B2r "B2R",
}

macro_rules! fields {
    ($($variant:ident $doc:literal,)*) => {
        /// Names of modifier fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FieldId { $(#[doc = $doc] $variant,)* }
    };
}

fields! {
    Ftz "Flush denormals to zero: 1 `.FTZ`; 2 `.FMZ`, where zero times anything is zero too.",
    Saturate "Clamp the result (floats: to 0..1).",
    Rounding "Rounding: 0 nearest even, 1 down, 2 up, 3 to zero; conversions to integers: 3 truncates.",
    Ntz "Not a trap for zero: `.NTZ`.",
    Scale "FMUL's power-of-two factor, 4 is one.",
    Compare "Comparison. Integers: 0 F, 1 LT, 2 EQ, 3 LE, 4 GT, 5 NE, 6 GE, 7 T. Floats: bits LT 1, EQ 2, GT 4, unordered 8; 7 is NUM, 8 is NAN.",
    Boolean "How a comparison joins the source predicate: 0 AND, 1 OR, 2 XOR.",
    Extended "Takes the carry or the low half's comparison: `.X`, `.EX`.",
    Signed "1 when the operands are signed.",
    SourceSigned "1 when the second operand is signed.",
    Size "Width or type of what is moved: for memory 0 U8, 1 S8, 2 U16, 3 S16, 4 32, 5 64, 6 128 bits.",
    DestinationType "Format written by a conversion.",
    SourceType "Format read by a conversion.",
    Function "Which of its functions an instruction computes (MUFU, ATOM, RED, SHFL, VOTE, REDUX...).",
    Mode "Variant of an instruction (PRMT, BAR, QSPC...).",
    Direction "Shift direction: 0 left, 1 right.",
    Wrap "Shift amounts wrap instead of clamping: `.W`.",
    High "The high part of the result: `.HI`.",
    ShiftType "SHF: 0 S64, 1 U64, 2 S32, 3 U32.",
    SignExtend32 "`.SX32`.",
    Nan "A NaN operand makes the result NaN: `.NAN`.",
    BFloat "Result as 1.0f or 0.0f instead of a mask: `.BF`.",
    BFloat16 "Packed bfloat16 instead of half: `.BF16_V2`.",
    Relu "Negative results become zero.",
    Float32 "Packed result as float: `.F32`.",
    Shape "Tensor tile.",
    Accumulate "Accumulator format, or `.ACC`.",
    Order "Memory order and scope.",
    Evict "Cache eviction priority: 1 normal.",
    Prefetch "L2 prefetch size.",
    Wide64 "64-bit addresses: `.E`.",
    Scope "Scope of a fence: 0 CTA, 2 GPU, 3 SYS, 5 VC.",
    Clear "`.CLEAR`.",
    NoIncrement "`.NOINC`.",
    Absolute "The target is an absolute address.",
    Bypass "`.BYPASS`.",
    ZeroFill "`.ZFILL`.",
    ShiftResult "`.SH`.",
    Divergence "BRA's convergence test: 2 DIV, 3 CONV.",
    Exclusive "`.EXCLUSIVE` or `.COLLECTIVE`.",
    Defer "`.DEFER_BLOCKING`.",
    Reduction "BAR.RED's function: 0 POPC, 1 AND, 2 OR.",
    Transpose "`.MT88`.",
    Count "Number of matrices.",
    NoDecrement "`.NODEC`.",
    PredicateByte "P2R and R2P: the byte of the register that holds predicates.",
    Pair64 "64-bit result.",
    HalvesAnd "HSETP2: both halves must agree: `.H_AND`.",
    Sparse "A of a matrix product is sparse, and a metadata register follows: `.SP`.",
    MetadataReuse "Operand-reuse flag of the metadata register.",
    XorSign "The sign is the exclusive or of both: `.XORSIGN`.",
    Private "Turing's `.PRIVATE`.",
    Unordered "Turing's `.U` of LDS.",
    Scatter "Results of a texture access go to two places: `.SCR`.",
    Bindless "The texture's handle comes from elsewhere: `.B`.",
    LevelOfDetail "How a texture access chooses the level of detail.",
    NoDependency "`.NODEP`.",
    DepthCompare "Compares depth: `.DC`.",
    Offset "Adds offsets to texture coordinates: `.AOFFI`, `.PTP`.",
    NoDerivative "`.NDV`.",
    Component "Component that a texture gather reads.",
    Samples "Multi-sample texture: `.MS`.",
    Clamp "`.CL`.",
    ByteAddress "Surface coordinate in bytes: `.BA`.",
    OutOfRange "What a surface access outside does: `.TRAP`, `.IGN`, or clamp.",
    Warp "NANOSLEEP's `.WARP`.",
    Random "NANOSLEEP's `.RAND`.",
    Packed "Two 16-bit lanes: `.16x2`.",
    WakenBySyncs "NANOSLEEP ends when a barrier in shared memory does: `.SYNCS`.",
    TryWait "SYNCS may wait for a while: `.TRYWAIT`.",
    Tmask "`.TMASK`.",
    OptOut "`.OPTOUT`.",
    Reliable "Blackwell's kinds of convergence barriers: 1 `.RELIABLE`, 2 `.RECONVERGENT`.",
    Quad "BMOV's `.PQUAD`.",
    SignOf "PLOP3 reads the sign of a register.",
    IgnoreKill "`.IGNOREKILL`.",
    Im2col "Tensor copies gather columns: `.IM2COL`.",
    Multicast "Several blocks of a cluster receive: `.MULTICAST`.",
    CacheHint "A descriptor says how to cache.",
    DestinationSpace "Memory that is written: 0 global, 1 shared.",
    SourceSpace "Memory that is read: 0 global, 1 shared.",
    Sequenced "`.SEQUENCED`.",
    NegateA "The first factor is negated.",
    ShortK "The inner size is half of the usual one.",
}

/// All rows, indexed by opcode.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
    by_opcode: Vec<Vec<u16>>,
}

impl Table {
    /// Rows of an opcode (bit 91 above bits 11:0), in the order they are to be tried.
    pub(crate) fn of(&self, opcode: u16) -> impl Iterator<Item = &Row> {
        let indices = self.by_opcode.get(usize::from(opcode)).map_or(&[][..], Vec::as_slice);
        indices.iter().map(|&index| &self.rows[usize::from(index)])
    }
}

/// The table, built on first use.
pub(crate) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let mut rows = build::Rows::default();
        float::add(&mut rows);
        integer::add(&mut rows);
        moves::add(&mut rows);
        memory::add(&mut rows);
        control_flow::add(&mut rows);
        tensor::add(&mut rows);
        texture::add(&mut rows);
        hopper::add(&mut rows);
        uniform::add(&mut rows);
        let mut by_opcode = vec![Vec::new(); 1 << 13];
        for (index, row) in rows.0.iter().enumerate() {
            by_opcode[usize::from(row.opcode)].push(index as u16);
        }
        Table { rows: rows.0, by_opcode }
    });
    &TABLE
}

/// Every row.
#[must_use]
pub fn rows() -> &'static [Row] {
    &table().rows
}
