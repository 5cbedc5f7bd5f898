//! `.nv.info` records: a format byte, an attribute number and a payload. All are kept, known or not.
//!
//! Numbers and payloads were cross-checked against cuobjdump's text on cubins of sm_75 to sm_120.

use super::CubinError;

/// How long a record's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeFormat {
    /// 1: no payload (two padding bytes).
    None,
    /// 2: one byte (and one of padding).
    Byte,
    /// 3: two bytes.
    Half,
    /// 4: a 16-bit length, then so many bytes.
    Sized,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute's number (`EIATTR_*`).
    pub id: u8,
    /// The payload's format.
    pub format: AttributeFormat,
    /// The payload, without padding.
    pub payload: Vec<u8>,
}

macro_rules! attributes {
    ($($(#[$meta:meta])* $name:ident = $id:literal;)*) => {
        impl Attribute {
            $($(#[$meta])* pub const $name: u8 = $id;)*

            /// The name of the attribute's number, without `EIATTR_`, where this crate knows it.
            pub fn name(&self) -> Option<&'static str> {
                match self.id {
                    $($id => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

attributes! {
    /// Largest block: three words.
    MAX_THREADS = 0x05;
    /// Where the parameters lie in constant bank 0: symbol, offset (16 bits), size (16 bits).
    PARAM_CBANK = 0x0a;
    /// External symbols used.
    EXTERNS = 0x0f;
    /// Required block: three words.
    REQNTID = 0x10;
    /// Stack frame of a function: symbol, bytes.
    FRAME_SIZE = 0x11;
    /// Least stack of a kernel with all that it calls: symbol, bytes.
    MIN_STACK_SIZE = 0x12;
    /// One kernel parameter: see [`ParameterInfo`].
    KPARAM_INFO = 0x17;
    /// Bytes of all parameters.
    CBANK_PARAM_SIZE = 0x19;
    /// Largest register count allowed.
    MAXREG_COUNT = 0x1b;
    /// Offsets of the EXIT instructions.
    EXIT_INSTR_OFFSETS = 0x1c;
    /// Call-return stack bytes.
    CRS_STACK_SIZE = 0x1e;
    /// Instructions of warp-wide operations.
    COOP_GROUP_INSTR_OFFSETS = 0x28;
    /// Their mask registers.
    COOP_GROUP_MASK_REGIDS = 0x29;
    /// Registers of a function: symbol, count.
    REGCOUNT = 0x2f;
    /// Compiler-made warp-wide instructions.
    INT_WARP_WIDE_INSTR_OFFSETS = 0x31;
    /// Targets of indirect branches.
    INDIRECT_BRANCH_TARGETS = 0x34;
    /// Workarounds compiled in.
    SW_WAR = 0x36;
    /// CUDA version of the compiler.
    CUDA_API_VERSION = 0x37;
    /// Number of mbarriers.
    NUM_MBARRIERS = 0x38;
    /// Their instructions.
    MBARRIER_INSTR_OFFSETS = 0x39;
    /// CTAs of a cluster, where the kernel says so: three words.
    CTA_PER_CLUSTER = 0x3d;
    /// The kernel is launched in clusters.
    EXPLICIT_CLUSTER = 0x3e;
    /// Calls of the device runtime.
    SYSCALL_OFFSETS = 0x46;
    /// Hardware barriers used.
    NUM_BARRIERS = 0x4c;
    /// Sparse matrix instructions.
    SPARSE_MMA_MASK = 0x50;
    /// Source language.
    LANGUAGE = 0x66;
}

impl Attribute {
    /// A little-endian word of the payload, counted in 4-byte steps.
    pub fn word(&self, index: usize) -> Option<u32> {
        let bytes = self.payload.get(index * 4..index * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The payload of a [`AttributeFormat::Half`] record.
    pub fn half(&self) -> Option<u16> {
        Some(u16::from_le_bytes(self.payload.get(..2)?.try_into().ok()?))
    }

    /// Reads the records of one section.
    pub fn parse_all(section: &str, bytes: &[u8]) -> Result<Vec<Self>, CubinError> {
        let mut found = Vec::new();
        let mut at = 0;
        let error = |offset, what| CubinError::Attribute { section: section.to_owned(), offset, what };
        while at < bytes.len() {
            let head: [u8; 4] = bytes
                .get(at..at + 4)
                .and_then(|head| head.try_into().ok())
                .ok_or_else(|| error(at, "is cut off"))?;
            let (format, payload, next) = match head[0] {
                1 => (AttributeFormat::None, &[][..], at + 4),
                2 => (AttributeFormat::Byte, &bytes[at + 2..at + 3], at + 4),
                3 => (AttributeFormat::Half, &bytes[at + 2..at + 4], at + 4),
                4 => {
                    let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
                    let payload =
                        bytes.get(at + 4..at + 4 + length).ok_or_else(|| error(at, "is cut off"))?;
                    (AttributeFormat::Sized, payload, at + 4 + length)
                }
                _ => return Err(error(at, "has an unknown format")),
            };
            found.push(Self { id: head[1], format, payload: payload.to_vec() });
            at = next;
        }
        Ok(found)
    }
}

/// One kernel parameter, from a KPARAM_INFO record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// Its place in the kernel's signature, from 0.
    pub ordinal: u16,
    /// Bytes from the first parameter byte.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
}

impl ParameterInfo {
    /// The record's content: index, ordinal and offset as halves, then a word with the size in 31:18.
    pub fn from_attribute(attribute: &Attribute) -> Option<Self> {
        if attribute.id != Attribute::KPARAM_INFO || attribute.payload.len() < 12 {
            return None;
        }
        let place = attribute.word(1)?;
        Some(Self {
            ordinal: place as u16,
            offset: (place >> 16) as u16,
            size: (attribute.word(2)? >> 18) as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_record_gives_ordinal_offset_and_size() {
        let bytes = [4, 0x17, 12, 0, 0, 0, 0, 0, 3, 0, 0x18, 0, 0, 0xf0, 0x21, 0];
        let records = Attribute::parse_all(".nv.info.k", &bytes).unwrap();
        assert_eq!(records[0].name(), Some("KPARAM_INFO"));
        assert_eq!(
            ParameterInfo::from_attribute(&records[0]),
            Some(ParameterInfo { ordinal: 3, offset: 0x18, size: 8 })
        );
    }

    #[test]
    fn unknown_attributes_are_kept_and_unknown_formats_refused() {
        let records = Attribute::parse_all("s", &[2, 0xee, 7, 0, 1, 0xef, 0, 0]).unwrap();
        assert_eq!(records[0].payload, [7]);
        assert_eq!((records[1].id, records[1].name()), (0xef, None));
        assert!(Attribute::parse_all("s", &[9, 0, 0, 0]).is_err());
        assert!(Attribute::parse_all("s", &[4, 0x17, 12, 0, 1]).is_err());
    }
}
