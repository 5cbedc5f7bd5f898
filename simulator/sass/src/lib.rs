//! NVIDIA machine code (SASS), Turing to Blackwell: decode, encode, print, and what a lane computes.
//!
//! One table of rows says what each opcode's bits mean. [`decode`], [`encode`] and the printer read the same
//! rows; the text is checked word by word against nvdisasm. The interpreter above this crate
//! matches on [`Op`], [`FieldId`] and [`Operand`] and never looks at bits; the arithmetic of one lane is in [`lane`].
#![forbid(unsafe_code)]

mod arch;
mod code;
mod control;
mod instruction;
pub mod lane;
mod operand;
mod row;
mod rows;
mod text;

pub use arch::Arch;
pub use code::{DecodeError, EncodeError, decode, encode};
pub use control::Control;
pub use instruction::{Guard, Instruction, MAX_MODIFIERS, MAX_OPERANDS};
pub use operand::{Bank, Half, ImmediateKind, Marks, Operand, SpecialRegister};
pub use row::{Bits, HalfBits, Hide, MarkBits, Modifier, OPCODE_MASK, Row, Slot, SlotKind, Source};
pub use rows::{FieldId, Op, rows};
pub use text::text;
