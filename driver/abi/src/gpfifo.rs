//! The ring of a channel: GPFIFO entries, control entries, and the control words that user space and host share.

use crate::{BitsMut, Field, FieldError, layout};

layout! {
    /// One ring entry of 8 bytes (`NVC56F_GP_ENTRY*` in `clc56f.h`).
    pub mod GP_ENTRY: 64 bits {
        FETCH 0:0 { UNCONDITIONAL = 0, CONDITIONAL = 1 };
        GET 31:2 >> 2;
        OPERAND 31:0;
        PB_EXTENDED_BASE_OPERAND 24:8;
        GET_HI 39:32;
        OPCODE 39:32 { NOP = 0, ILLEGAL = 1, GP_CRC = 2, PB_CRC = 3, SET_PB_SEGMENT_EXTENDED_BASE = 4 };
        LEVEL 41:41 { MAIN = 0, SUBROUTINE = 1 };
        LENGTH 62:42;
        SYNC 63:63 { PROCEED = 0, WAIT = 1 };
    }

    /// A doorbell token as the resource manager hands it out (channel and runlist; measured on H200).
    pub mod DOORBELL_TOKEN: 32 bits {
        CHANNEL_ID 11:0;
        RUNLIST_ID 22:16;
    }
}

/// Byte offset of the doorbell in the usermode page (`NVC361_NOTIFY_CHANNEL_PENDING`).
pub const NOTIFY_CHANNEL_PENDING: u32 = 0x90;
/// Bytes of the usermode region.
pub const USERMODE_BYTES: u64 = 0x10000;
/// Bytes of a channel's control area (USERD, `Nvc56fControl` in `clc56f.h`), and its alignment.
pub const USERD_BYTES: u64 = 512;
/// Byte offset in USERD of the index of the next entry that the host reads (`GPGet`).
pub const USERD_GP_GET: u64 = 0x88;
/// Byte offset in USERD of the index after the last valid entry (`GPPut`), the only word that user space writes.
pub const USERD_GP_PUT: u64 = 0x8c;

/// A decoded ring entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A pushbuffer segment.
    Segment {
        /// Address of the first word, a multiple of 4 below 2^40.
        address: u64,
        /// Words, 1 to 2^21-1.
        length: u32,
        /// A subroutine of the entry before it rather than a main segment.
        subroutine: bool,
        /// The host finishes the methods of the segment before it, before it fetches this one.
        sync: bool,
        /// Fetched only if the channel's condition holds.
        conditional: bool,
    },
    /// An entry of length zero.
    Control {
        /// The opcode, 8 bits.
        opcode: u8,
        /// The operand.
        operand: u32,
    },
}

impl Entry {
    /// A main segment, as drivers submit them.
    pub const fn segment(address: u64, length: u32) -> Self {
        Self::Segment { address, length, subroutine: false, sync: false, conditional: false }
    }

    /// The 8 bytes as a number, or what does not fit.
    pub fn encode(&self) -> Result<u64, FieldError> {
        let mut bytes = [0; 8];
        let mut bits = BitsMut::new(&mut bytes);
        match *self {
            Self::Segment { address, length, subroutine, sync, conditional } => {
                if length == 0 {
                    return Err(FieldError::Index { field: GP_ENTRY::LENGTH.name, index: 0, count: 0 });
                }
                bits.set(&GP_ENTRY::GET, address & 0xffff_ffff)?;
                bits.set(&GP_ENTRY::GET_HI, address >> 32)?;
                bits.set(&GP_ENTRY::LENGTH, length.into())?;
                bits.set(&GP_ENTRY::LEVEL, subroutine.into())?;
                bits.set(&GP_ENTRY::SYNC, sync.into())?;
                bits.set(&GP_ENTRY::FETCH, conditional.into())?;
            }
            Self::Control { opcode, operand } => {
                bits.set(&GP_ENTRY::OPERAND, operand.into())?;
                bits.set(&GP_ENTRY::OPCODE, opcode.into())?;
            }
        }
        Ok(u64::from_le_bytes(bytes))
    }

    /// The entry in 8 bytes. Every number is an entry; which control opcodes exist depends on the generation.
    pub fn decode(raw: u64) -> Self {
        let get = |field: &Field| field.decode(raw);
        let length = get(&GP_ENTRY::LENGTH) as u32;
        if length == 0 {
            return Self::Control {
                opcode: get(&GP_ENTRY::OPCODE) as u8,
                operand: get(&GP_ENTRY::OPERAND) as u32,
            };
        }
        Self::Segment {
            address: get(&GP_ENTRY::GET_HI) << 32 | get(&GP_ENTRY::GET),
            length,
            subroutine: get(&GP_ENTRY::LEVEL) != 0,
            sync: get(&GP_ENTRY::SYNC) != 0,
            conditional: get(&GP_ENTRY::FETCH) != 0,
        }
    }
}
