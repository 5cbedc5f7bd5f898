//! Instructions of x86-64, of which compiled runs are made: AVX2 by rows, and the few others that loops need.
//!
//! Opcodes are those of Intel's Software Developer's Manual, volume 2.

/// A vector register, of eight lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ymm(pub u8);

/// A general register, by its number in encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct General(pub u8);

pub(super) const RAX: General = General(0);
pub(super) const RCX: General = General(1);
pub(super) const RDX: General = General(2);
pub(super) const RBX: General = General(3);
pub(super) const RSP: General = General(4);
pub(super) const RBP: General = General(5);
pub(super) const RSI: General = General(6);
pub(super) const RDI: General = General(7);
pub(super) const R8: General = General(8);
pub(super) const R9: General = General(9);
pub(super) const R10: General = General(10);
pub(super) const R11: General = General(11);
pub(super) const R12: General = General(12);
pub(super) const R13: General = General(13);
pub(super) const R14: General = General(14);
pub(super) const R15: General = General(15);

/// An address: a register and a distance, and for some a register that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub base: General,
    pub index: Option<General>,
    pub offset: i32,
}

/// The bytes from `base + offset` on.
pub(super) const fn at(base: General, offset: i32) -> Memory {
    Memory { base, index: None, offset }
}

/// The last operand of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Ymm),
    Memory(Memory),
}

impl From<Ymm> for Operand {
    fn from(register: Ymm) -> Self {
        Self::Register(register)
    }
}

impl From<Memory> for Operand {
    fn from(memory: Memory) -> Self {
        Self::Memory(memory)
    }
}

/// How a vector instruction is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector {
    /// The prefix that it stands for: 0 none, 1 66, 2 F3, 3 F2.
    prefix: u8,
    /// The map: 1 0F, 2 0F 38, 3 0F 3A.
    map: u8,
    opcode: u8,
}

/// Declares instructions: name, prefix, map, opcode.
macro_rules! vectors {
    ($($name:ident $prefix:literal $map:literal $opcode:literal;)*) => {
        impl Vector {
            $(pub(super) const $name: Self = Self { prefix: $prefix, map: $map, opcode: $opcode };)*

            /// All of them, by name.
            #[allow(dead_code, reason = "for the test, which takes this module in")]
            pub(super) const ALL: &[(&str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

vectors! {
    VMOVMSKPS 0 1 0x50;
    VADDPS 0 1 0x58;
    VMULPS 0 1 0x59;
    VCVTDQ2PS 0 1 0x5b;
    VSUBPS 0 1 0x5c;
    VCMPPS 0 1 0xc2;
    VSHUFPS 0 1 0xc6;
    VPUNPCKLDQ 1 1 0x62;
    VPCMPGTD 1 1 0x66;
    VPACKUSWB 1 1 0x67;
    VPUNPCKHDQ 1 1 0x6a;
    VPSHIFTD 1 1 0x72;
    VPSHIFTQ 1 1 0x73;
    VPUNPCKLQDQ 1 1 0x6c;
    VPUNPCKHQDQ 1 1 0x6d;
    VPCMPEQD 1 1 0x76;
    VPADDQ 1 1 0xd4;
    VPAND 1 1 0xdb;
    VPANDN 1 1 0xdf;
    VPOR 1 1 0xeb;
    VPXOR 1 1 0xef;
    VPMULUDQ 1 1 0xf4;
    VPSUBD 1 1 0xfa;
    VPADDD 1 1 0xfe;
    VMOVDQU 2 1 0x6f;
    VMOVDQU_STORE 2 1 0x7f;
    VPTEST 1 2 0x17;
    VPABSD 1 2 0x1e;
    VPMOVSXBD 1 2 0x21;
    VPMOVSXWD 1 2 0x23;
    VPMULDQ 1 2 0x28;
    VPACKUSDW 1 2 0x2b;
    VPMOVZXBD 1 2 0x31;
    VPMOVZXWD 1 2 0x33;
    VPMINSD 1 2 0x39;
    VPMINUD 1 2 0x3b;
    VPMAXSD 1 2 0x3d;
    VPMAXUD 1 2 0x3f;
    VPMULLD 1 2 0x40;
    VPSRLVD 1 2 0x45;
    VPSRAVD 1 2 0x46;
    VPSLLVD 1 2 0x47;
    VPBROADCASTD 1 2 0x58;
    VPBROADCASTB 1 2 0x78;
    VPBROADCASTW 1 2 0x79;
    VPMASKMOVD 1 2 0x8c;
    VPGATHERDD 1 2 0x90;
    VFMADD231PS 1 2 0xb8;
    VFMSUB231PS 1 2 0xba;
    VFNMADD231PS 1 2 0xbc;
    VFNMSUB231PS 1 2 0xbe;
    VPBLENDD 1 3 0x02;
    VBLENDVPS 1 3 0x4a;
    VPERM2I128 1 3 0x46;
}

/// What VPSHIFTD and VPSHIFTQ do, which stands where others have a register.
pub(super) const SHIFT_RIGHT: Ymm = Ymm(2);
/// See [`SHIFT_RIGHT`]. Double words only.
pub(super) const SHIFT_RIGHT_SIGNED: Ymm = Ymm(4);
/// See [`SHIFT_RIGHT`].
pub(super) const SHIFT_LEFT: Ymm = Ymm(6);

/// A place that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Conditions of jumps, by their number in encodings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    /// Less, of numbers without sign; what an addition carries out.
    Below = 2,
    NotBelow = 3,
    Zero = 4,
    NotZero = 5,
    NotAbove = 6,
    Above = 7,
    /// Less, of numbers with sign.
    Less = 12,
    NotLess = 13,
    NotGreater = 14,
    Greater = 15,
}

/// Arithmetic on general registers, by its opcode in the form `register, register or memory`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add = 0x03,
    Or = 0x0b,
    And = 0x23,
    Subtract = 0x2b,
    Xor = 0x33,
    Compare = 0x3b,
    Move = 0x8b,
    Test = 0x85,
}

/// Code that is being written.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    bytes: Vec<u8>,
    /// Where labels are.
    labels: Vec<Option<usize>>,
    /// Distances of 32 bits that end there, and the labels they lead to.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// The code, with all distances filled in; `None` if a label was not placed.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        for (end, label) in self.jumps {
            let to = self.labels[label.0]?;
            let distance = i32::try_from(to as i64 - end as i64).ok()?;
            self.bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
        }
        Some(self.bytes)
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// The bytes behind an opcode that name a register and an operand.
    fn operands(&mut self, register: u8, operand: Operand) {
        let register = (register & 7) << 3;
        match operand {
            Operand::Register(Ymm(number)) => self.byte(0xc0 | register | (number & 7)),
            Operand::Memory(Memory { base, index, offset }) => {
                let near = i8::try_from(offset);
                let mode = if near.is_ok() { 0x40 } else { 0x80 };
                let base = base.0 & 7;
                match index {
                    // As a base, this number says that one more byte follows.
                    None if base != RSP.0 => self.byte(mode | register | base),
                    _ => {
                        self.byte(mode | register | 4);
                        self.byte((index.unwrap_or(RSP).0 & 7) << 3 | base);
                    }
                }
                match near {
                    Ok(near) => self.byte(near as u8),
                    Err(_) => self.bytes.extend_from_slice(&offset.to_le_bytes()),
                }
            }
        }
    }

    /// The registers' highest bits in an operand: of the index, of the base or register.
    fn high_bits(operand: Operand) -> (u8, u8) {
        match operand {
            Operand::Register(Ymm(number)) => (0, number >> 3),
            Operand::Memory(Memory { base, index, .. }) => {
                (index.map_or(0, |index| index.0 >> 3), base.0 >> 3)
            }
        }
    }

    /// `to = vector(a, b)`.
    pub(super) fn vector(&mut self, vector: Vector, to: Ymm, a: Ymm, b: impl Into<Operand>) {
        let b = b.into();
        let (index, base) = Self::high_bits(b);
        self.byte(0xc4);
        self.byte((!(to.0 >> 3) & 1) << 7 | (!index & 1) << 6 | (!base & 1) << 5 | vector.map);
        // 256 bits.
        self.byte((!a.0 & 15) << 3 | 4 | vector.prefix);
        self.byte(vector.opcode);
        self.operands(to.0, b);
    }

    /// The same with a number of 8 bits behind it.
    pub(super) fn vector_immediate(
        &mut self,
        vector: Vector,
        to: Ymm,
        a: Ymm,
        b: impl Into<Operand>,
        immediate: u8,
    ) {
        self.vector(vector, to, a, b);
        self.byte(immediate);
    }

    /// `to = vector(from)`, for instructions of one source.
    pub(super) fn vector_one(&mut self, vector: Vector, to: Ymm, from: impl Into<Operand>) {
        self.vector(vector, to, Ymm(0), from);
    }

    /// `to = from` shifted, of double words.
    pub(super) fn shift(&mut self, kind: Ymm, to: Ymm, from: Ymm, count: u8) {
        self.vector_immediate(Vector::VPSHIFTD, kind, to, from, count);
    }

    /// `to = from` shifted, of quad words.
    pub(super) fn shift_wide(&mut self, kind: Ymm, to: Ymm, from: Ymm, count: u8) {
        self.vector_immediate(Vector::VPSHIFTQ, kind, to, from, count);
    }

    /// `to = mask < 0 ? yes : no`, by lanes.
    pub(super) fn blend(&mut self, to: Ymm, no: Ymm, yes: impl Into<Operand>, mask: Ymm) {
        self.vector_immediate(Vector::VBLENDVPS, to, no, yes, mask.0 << 4);
    }

    /// `to = from` with its quarters in the order of four numbers of two bits.
    pub(super) fn quarters(&mut self, to: Ymm, from: Ymm, order: u8) {
        // VPERMQ, the one here whose W is set.
        let start = self.bytes.len();
        self.vector_immediate(Vector { prefix: 1, map: 3, opcode: 0x00 }, to, Ymm(0), from, order);
        self.bytes[start + 2] |= 0x80;
    }

    /// `to` = the words at `base + index + offset` in the lanes of `mask`, which becomes zero. All registers differ.
    pub(super) fn gather(&mut self, to: Ymm, base: General, index: Ymm, offset: i32, mask: Ymm) {
        let memory = Memory { base, index: Some(General(index.0)), offset };
        self.vector(Vector::VPGATHERDD, to, mask, memory);
    }

    /// `to = operand`.
    pub(super) fn load(&mut self, to: Ymm, operand: impl Into<Operand>) {
        self.vector_one(Vector::VMOVDQU, to, operand);
    }

    /// `memory = from`.
    pub(super) fn store(&mut self, memory: Memory, from: Ymm) {
        self.vector_one(Vector::VMOVDQU_STORE, from, memory);
    }

    /// `memory` = the first 16 bytes of `from`.
    pub(super) fn store_sixteen(&mut self, memory: Memory, from: Ymm) {
        let start = self.bytes.len();
        self.store(memory, from);
        // Of 128 bits.
        self.bytes[start + 2] &= !4;
    }

    /// `memory` = the first 8 bytes of `from`.
    pub(super) fn store_eight(&mut self, memory: Memory, from: Ymm) {
        // VMOVQ, of 128 bits.
        let start = self.bytes.len();
        self.vector_one(Vector { prefix: 1, map: 1, opcode: 0xd6 }, from, memory);
        self.bytes[start + 2] &= !4;
    }

    /// The upper halves of all vector registers become zero, as code without AVX wants them.
    pub(super) fn zero_upper(&mut self) {
        self.bytes.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }

    /// An instruction on general registers. `wide`: of 64 bits.
    fn general(&mut self, wide: bool, opcode: &[u8], register: u8, operand: Operand) {
        let (index, base) = Self::high_bits(operand);
        self.byte(0x40 | u8::from(wide) << 3 | (register >> 3) << 2 | index << 1 | base);
        self.bytes.extend_from_slice(opcode);
        self.operands(register, operand);
    }

    /// `to = to operation from`, of 64 bits; TEST has no result.
    pub(super) fn wide(&mut self, operation: Arithmetic, to: General, from: General) {
        self.general(true, &[operation as u8], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to = to operation from`, of 32 bits.
    pub(super) fn narrow(&mut self, operation: Arithmetic, to: General, from: General) {
        self.general(false, &[operation as u8], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to = to operation memory`, of 64 bits.
    pub(super) fn wide_memory(&mut self, operation: Arithmetic, to: General, memory: Memory) {
        self.general(true, &[operation as u8], to.0, memory.into());
    }

    /// `to = to operation memory`, of 32 bits.
    pub(super) fn narrow_memory(&mut self, operation: Arithmetic, to: General, memory: Memory) {
        self.general(false, &[operation as u8], to.0, memory.into());
    }

    /// `to` = the first lane of `from`.
    pub(super) fn first_lane(&mut self, to: General, from: Ymm) {
        // VMOVD, of 128 bits.
        self.byte(0xc4);
        self.byte((!(from.0 >> 3) & 1) << 7 | 1 << 6 | (!(to.0 >> 3) & 1) << 5 | 1);
        self.byte(0x79);
        self.byte(0x7e);
        self.operands(from.0, Operand::Register(Ymm(to.0)));
    }

    /// `to = to * memory`, of 64 bits or of 32.
    pub(super) fn multiply_memory(&mut self, wide: bool, to: General, memory: Memory) {
        self.general(wide, &[0x0f, 0xaf], to.0, memory.into());
    }

    /// `to = to * from`, of 64 bits.
    pub(super) fn multiply(&mut self, to: General, from: General) {
        self.general(true, &[0x0f, 0xaf], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to = to * number`, of 64 bits.
    pub(super) fn multiply_number(&mut self, to: General, number: i32) {
        self.general(true, &[0x69], to.0, Operand::Register(Ymm(to.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `to = memory`, of 32 bits and with their sign.
    pub(super) fn load_signed(&mut self, to: General, memory: Memory) {
        self.general(true, &[0x63], to.0, memory.into());
    }

    /// `to` = the low 32 bits of `from`, with their sign.
    pub(super) fn extend_signed(&mut self, to: General, from: General) {
        self.general(true, &[0x63], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to = memory`, of 64 bits.
    pub(super) fn load_wide(&mut self, to: General, memory: Memory) {
        self.general(true, &[0x8b], to.0, memory.into());
    }

    /// `to = memory`, of 32 bits.
    pub(super) fn load_narrow(&mut self, to: General, memory: Memory) {
        self.general(false, &[0x8b], to.0, memory.into());
    }

    /// `to = memory`, one byte.
    pub(super) fn load_byte(&mut self, to: General, memory: Memory) {
        self.general(false, &[0x0f, 0xb6], to.0, memory.into());
    }

    /// `memory = from`, of 64 bits.
    pub(super) fn store_wide(&mut self, memory: Memory, from: General) {
        self.general(true, &[0x89], from.0, memory.into());
    }

    /// `memory = from`, of 32 bits.
    pub(super) fn store_narrow(&mut self, memory: Memory, from: General) {
        self.general(false, &[0x89], from.0, memory.into());
    }

    /// `memory = memory + from`, of 64 bits.
    pub(super) fn add_to_memory(&mut self, memory: Memory, from: General) {
        self.general(true, &[0x01], from.0, memory.into());
    }

    /// `memory = memory + 1`, of 32 bits.
    pub(super) fn increment(&mut self, memory: Memory) {
        self.general(false, &[0xff], 0, memory.into());
    }

    /// `memory` = the larger of it and `from`, which is changed; of 32 bits.
    pub(super) fn raise_memory(&mut self, memory: Memory, from: General) {
        // CMP, then CMOVB.
        self.general(false, &[0x3b], from.0, memory.into());
        self.general(false, &[0x0f, 0x42], from.0, memory.into());
        self.store_narrow(memory, from);
    }

    /// `memory = from`, one byte.
    pub(super) fn store_byte(&mut self, memory: Memory, from: General) {
        self.general(false, &[0x88], from.0, memory.into());
    }

    /// `to` = the lowest byte of `from`.
    pub(super) fn low_byte(&mut self, to: General, from: General) {
        self.general(false, &[0x0f, 0xb6], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to` = how many bits of `from` are set, of 32 bits.
    pub(super) fn count_ones(&mut self, to: General, from: General) {
        self.byte(0xf3);
        self.general(false, &[0x0f, 0xb8], to.0, Operand::Register(Ymm(from.0)));
    }

    /// `to = !to`, of 32 bits.
    pub(super) fn not(&mut self, to: General) {
        self.general(false, &[0xf7], 2, Operand::Register(Ymm(to.0)));
    }

    /// `to = to + number`, of 64 bits.
    pub(super) fn add_number(&mut self, to: General, number: i32) {
        self.general(true, &[0x81], 0, Operand::Register(Ymm(to.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `to = to + number`, of 32 bits.
    pub(super) fn add_narrow_number(&mut self, to: General, number: i32) {
        self.general(false, &[0x81], 0, Operand::Register(Ymm(to.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `to = to & number`, of 32 bits.
    pub(super) fn and_number(&mut self, to: General, number: i32) {
        self.general(false, &[0x81], 4, Operand::Register(Ymm(to.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Tests bits of the lowest byte of a register.
    pub(super) fn test_byte(&mut self, a: General, bits: u8) {
        self.general(false, &[0xf6], 0, Operand::Register(Ymm(a.0)));
        self.byte(bits);
    }

    /// Compares 32 bits with a number.
    pub(super) fn compare_number(&mut self, a: General, number: i32) {
        self.general(false, &[0x81], 7, Operand::Register(Ymm(a.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Compares 64 bits with a number.
    pub(super) fn compare_wide_number(&mut self, a: General, number: i32) {
        self.general(true, &[0x81], 7, Operand::Register(Ymm(a.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Compares 32 bits of memory with a number.
    pub(super) fn compare_memory(&mut self, memory: Memory, number: i32) {
        self.general(false, &[0x81], 7, memory.into());
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `to = number`, of 32 bits.
    pub(super) fn number(&mut self, to: General, number: i32) {
        self.general(false, &[0xc7], 0, Operand::Register(Ymm(to.0)));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `to = number`, of 64 bits.
    pub(super) fn address(&mut self, to: General, number: u64) {
        self.byte(0x48 | to.0 >> 3);
        self.byte(0xb8 | (to.0 & 7));
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `memory = number`, of 32 bits.
    pub(super) fn store_number(&mut self, memory: Memory, number: i32) {
        self.general(false, &[0xc7], 0, memory.into());
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// `memory` = itself rotated to the right, of 32 bits.
    pub(super) fn rotate_memory(&mut self, memory: Memory, count: u8) {
        self.general(false, &[0xc1], 1, memory.into());
        self.byte(count);
    }

    /// `to = to << count`, of 64 bits.
    pub(super) fn shift_left_wide(&mut self, to: General, count: u8) {
        self.general(true, &[0xc1], 4, Operand::Register(Ymm(to.0)));
        self.byte(count);
    }

    /// `to = to >> count`, of 64 bits.
    pub(super) fn shift_right_wide(&mut self, to: General, count: u8) {
        self.general(true, &[0xc1], 5, Operand::Register(Ymm(to.0)));
        self.byte(count);
    }

    /// `to = to << count`, of 32 bits.
    pub(super) fn shift_left(&mut self, to: General, count: u8) {
        self.general(false, &[0xc1], 4, Operand::Register(Ymm(to.0)));
        self.byte(count);
    }

    /// `to = to >> count`, of 32 bits.
    pub(super) fn shift_right(&mut self, to: General, count: u8) {
        self.general(false, &[0xc1], 5, Operand::Register(Ymm(to.0)));
        self.byte(count);
    }

    /// Saves a register.
    pub(super) fn push(&mut self, register: General) {
        self.byte(0x40 | register.0 >> 3);
        self.byte(0x50 | (register.0 & 7));
    }

    /// Takes it back.
    pub(super) fn pop(&mut self, register: General) {
        self.byte(0x40 | register.0 >> 3);
        self.byte(0x58 | (register.0 & 7));
    }

    /// Returns.
    pub(super) fn ret(&mut self) {
        self.byte(0xc3);
    }

    /// Calls the function that a register names.
    pub(super) fn call(&mut self, function: General) {
        self.general(false, &[0xff], 2, Operand::Register(Ymm(function.0)));
    }

    /// A place to be jumped to, not yet known.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The place is here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.bytes.len());
    }

    /// Jumps if the condition holds.
    pub(super) fn jump_if(&mut self, condition: Condition, label: Label) {
        self.bytes.extend_from_slice(&[0x0f, 0x80 | condition as u8, 0, 0, 0, 0]);
        self.jumps.push((self.bytes.len(), label));
    }

    /// Jumps.
    pub(super) fn jump(&mut self, label: Label) {
        self.bytes.extend_from_slice(&[0xe9, 0, 0, 0, 0]);
        self.jumps.push((self.bytes.len(), label));
    }
}
