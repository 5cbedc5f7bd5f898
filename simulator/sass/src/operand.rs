//! Operands as the program sees them: registers, constants, addresses, labels.

/// Sign and complement marks in front of a source operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks {
    /// Arithmetic negation, printed `-`.
    pub negate: bool,
    /// Absolute value (taken before the negation), printed `|..|`.
    pub absolute: bool,
    /// One's complement, printed `~`.
    pub invert: bool,
}

/// Which 16-bit halves of a packed register an operand reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Half {
    /// Both halves in place (not printed).
    #[default]
    Both,
    /// The register holds one 32-bit float, `.F32`.
    F32,
    /// The low half twice, `.H0_H0`.
    Low,
    /// The high half twice, `.H1_H1`.
    High,
    /// The high half of the register as one 16-bit value, `.H1`; [`Self::Both`] then means the low half.
    Upper,
    /// Byte 1 of the register, `.B1`; [`Self::Both`] then means byte 0.
    Byte1,
    /// Byte 2 of the register, `.B2`.
    Byte2,
    /// Byte 3 of the register, `.B3`.
    Byte3,
    /// The low half in the high one's place and the high one, negated, in the low one's: `.H0_NH1`.
    LowNegatedHigh,
}

/// How the bits of an immediate are meant, which decides its spelling only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImmediateKind {
    /// Printed as unsigned hexadecimal.
    Unsigned,
    /// Printed as signed hexadecimal of the slot's own width.
    Signed,
    /// A 32-bit float.
    F32,
    /// The high 32 bits of a 64-bit float; the low ones are zero.
    F64High,
    /// One 16-bit float in the low half.
    F16,
    /// One bfloat16 in the low half.
    Bf16,
    /// Two 16-bit floats, the high one printed first.
    F16x2,
    /// Two bfloat16, the high one printed first.
    Bf16x2,
}

/// Where a constant operand's bank comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bank {
    /// A numbered bank, `c[0x0]`.
    Number(u8),
    /// A bindless bank described by a uniform register pair, `cx[UR4]`.
    Uniform(u8),
}

/// A special register, by its number (as `S2R` encodes it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpecialRegister(pub u8);

impl SpecialRegister {
    /// Lane within the warp.
    pub const LANEID: Self = Self(0x00);
    /// Clock counter; the S2UR and S2R spelling of [`Self::CLOCKLO`]'s whole.
    pub const CLOCK: Self = Self(0x01);
    /// Virtual configuration.
    pub const VIRTCFG: Self = Self(0x02);
    /// Virtual warp identifier.
    pub const VIRTID: Self = Self(0x03);
    /// Thread index, x.
    pub const TID_X: Self = Self(0x21);
    /// Thread index, y.
    pub const TID_Y: Self = Self(0x22);
    /// Thread index, z.
    pub const TID_Z: Self = Self(0x23);
    /// CTA index, x.
    pub const CTAID_X: Self = Self(0x25);
    /// CTA index, y.
    pub const CTAID_Y: Self = Self(0x26);
    /// CTA index, z.
    pub const CTAID_Z: Self = Self(0x27);
    /// High half of the shared window's generic address (sm_90 and later).
    pub const SWINHI: Self = Self(0x2f);
    /// Bytes of shared memory.
    pub const SMEMSZ: Self = Self(0x32);
    /// Lanes equal to this one.
    pub const EQMASK: Self = Self(0x38);
    /// Lanes below this one.
    pub const LTMASK: Self = Self(0x39);
    /// Lanes up to this one.
    pub const LEMASK: Self = Self(0x3a);
    /// Lanes above this one.
    pub const GTMASK: Self = Self(0x3b);
    /// This lane and those above it.
    pub const GEMASK: Self = Self(0x3c);
    /// Low half of the cycle counter.
    pub const CLOCKLO: Self = Self(0x50);
    /// High half of the cycle counter.
    pub const CLOCKHI: Self = Self(0x51);
    /// Low half of the nanosecond timer.
    pub const GLOBALTIMERLO: Self = Self(0x52);
    /// High half of the nanosecond timer.
    pub const GLOBALTIMERHI: Self = Self(0x53);
    /// Rank of the CTA in its cluster (sm_90 and later).
    pub const CGA_CTA_ID: Self = Self(0x88);
    /// Always reads zero.
    pub const ZERO: Self = Self(0xff);
}

/// One operand. Every slot of a row yields one, printed or not, in printed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A vector register; 255 is `RZ`.
    Register {
        /// Register number, 255 for `RZ`.
        index: u8,
        /// Sign and complement.
        marks: Marks,
        /// Halves read.
        half: Half,
    },
    /// A uniform register; [`Operand::URZ`] is the zero register.
    UniformRegister {
        /// Register number, 63 for `URZ` (255 from sm_100 on).
        index: u8,
        /// Sign and complement.
        marks: Marks,
        /// Halves read.
        half: Half,
    },
    /// A predicate; 7 is `PT`.
    Predicate {
        /// Predicate number, 7 for `PT`.
        index: u8,
        /// Read inverted.
        negated: bool,
        /// One of the uniform predicates.
        uniform: bool,
    },
    /// An immediate, raw.
    Immediate {
        /// The encoded bits, not extended.
        bits: u64,
        /// How they are meant.
        kind: ImmediateKind,
    },
    /// A constant-bank word.
    Constant {
        /// Bank.
        bank: Bank,
        /// Byte offset: 0 to 65535 without an index, signed with one.
        offset: i32,
        /// Index register added to the offset; 255 is none.
        index: u8,
        /// Index is a uniform register, not a vector one.
        uniform_index: bool,
        /// Sign and complement.
        marks: Marks,
        /// Halves read.
        half: Half,
    },
    /// A memory address.
    Address {
        /// Base register; 255 is none.
        base: u8,
        /// The base is a 64-bit register pair.
        wide: bool,
        /// log2 of the factor of the base (shared memory `.X4` and so on).
        scale: u8,
        /// Uniform register added to the base.
        uniform: Option<u8>,
        /// Uniform register pair holding the memory descriptor.
        descriptor: Option<u8>,
        /// Signed byte offset.
        offset: i32,
    },
    /// A code address: absolute, in bytes, in the space of the address given to `decode`.
    Label {
        /// Target in bytes.
        target: i64,
    },
    /// A convergence barrier `B0` to `B15`.
    Barrier(u8),
    /// A scoreboard `SB0` to `SB7`.
    Scoreboard(u8),
    /// Scoreboards waited for, one bit each, `{2,0}`.
    ScoreboardSet(u8),
    /// A special register.
    Special(SpecialRegister),
    /// All predicates at once, `PR`.
    AllPredicates,
    /// One of a row's own words (a texture's shape, say): its number in the slot's list.
    Word(u8),
}

impl Operand {
    /// Register number of the vector zero register.
    pub const RZ: u8 = 255;
    /// Register number of the uniform zero register before sm_100.
    pub const URZ: u8 = 63;
    /// Number of the always-true predicate.
    pub const PT: u8 = 7;
}
