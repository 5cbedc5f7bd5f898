//! The layout engine: bit fields declared as rows, read by setter, getter, dump and tests alike.
//!
//! A row is `NAME hi:lo`, as NVIDIA's class headers write it, with an optional array stride, address shift and
//! enumerants. [`layout!`](crate::layout!) turns rows into one constant per field and one table of all of them, and
//! checks at compile time that every field lies inside its layout.

use std::fmt;

use bitvec::{field::BitField, order::Lsb0, view::BitView};

/// A named value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumerant {
    /// The vendor's name, without the field's.
    pub name: &'static str,
    /// The value in the field.
    pub value: u64,
}

/// One row: where a field lies and how to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The vendor's name.
    pub name: &'static str,
    /// Highest bit, inclusive, of the first element.
    pub hi: u32,
    /// Lowest bit of the first element.
    pub lo: u32,
    /// Elements; 1 for a plain field.
    pub count: u32,
    /// Bits from one element to the next; 0 for a plain field.
    pub stride: u32,
    /// The field holds the value shifted right by this many bits, which must be zero.
    pub shift: u32,
    /// Named values; empty for a number.
    pub enumerants: &'static [Enumerant],
}

impl Field {
    /// A plain field of one element.
    pub const fn new(name: &'static str, hi: u32, lo: u32) -> Self {
        Self { name, hi, lo, count: 1, stride: 0, shift: 0, enumerants: &[] }
    }

    /// One element of an array as a plain field.
    pub const fn element(&self, index: u32) -> Self {
        assert!(index < self.count, "element of an array field");
        Self {
            hi: self.hi + index * self.stride,
            lo: self.lo + index * self.stride,
            count: 1,
            stride: 0,
            ..*self
        }
    }

    /// Width in bits, 1 to 64.
    pub const fn width(&self) -> u32 {
        self.hi - self.lo + 1
    }

    /// One bit past the last element's highest.
    pub const fn end(&self) -> u32 {
        self.hi + 1 + (self.count - 1) * self.stride
    }

    /// Whether the row is well formed and lies inside `bits` bits.
    pub const fn is_inside(&self, bits: u32) -> bool {
        self.hi >= self.lo
            && self.width() <= 64
            && self.count >= 1
            && (self.count == 1 || self.stride >= self.width())
            && self.end() <= bits
    }

    /// The largest value the setter takes.
    pub const fn max(&self) -> u64 {
        let raw = if self.width() == 64 { u64::MAX } else { (1 << self.width()) - 1 };
        // A shifted field of 64 bits would overflow; no hardware has one.
        raw << self.shift
    }

    /// The name of `value`, if it is one of the enumerants.
    pub fn enumerant(&self, value: u64) -> Option<&'static str> {
        self.enumerants.iter().find(|e| e.value == value).map(|e| e.name)
    }

    /// The value of the field's first element in a word of up to 64 bits; the bits that the word lacks are zero.
    pub const fn decode(&self, word: u64) -> u64 {
        let bits = if self.lo < 64 { word >> self.lo } else { 0 };
        let mask = if self.width() == 64 { u64::MAX } else { (1 << self.width()) - 1 };
        (bits & mask) << self.shift
    }

    /// The field's bits for `value`, checked as the setter checks them.
    pub fn encode(&self, value: u64) -> Result<u64, FieldError> {
        let raw = value >> self.shift;
        if raw << self.shift != value {
            return Err(FieldError::Misaligned { field: self.name, value, alignment: 1 << self.shift });
        }
        if self.width() < 64 && raw >> self.width() != 0 {
            return Err(FieldError::TooLarge { field: self.name, value, max: self.max() });
        }
        Ok(raw)
    }
}

/// Why a field was not set or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The value has more bits than the field.
    #[error("{field}: {value:#x} does not fit, the largest value is {max:#x}")]
    TooLarge {
        /// The field's name.
        field: &'static str,
        /// What was to be set.
        value: u64,
        /// What would have been accepted.
        max: u64,
    },
    /// An address has bits below the field's shift.
    #[error("{field}: {value:#x} is not a multiple of {alignment:#x}")]
    Misaligned {
        /// The field's name.
        field: &'static str,
        /// What was to be set.
        value: u64,
        /// The unit.
        alignment: u64,
    },
    /// An array has fewer elements.
    #[error("{field}[{index}]: the field has {count} elements")]
    Index {
        /// The field's name.
        field: &'static str,
        /// The element asked for.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// The buffer ends before the field does.
    #[error("{field}: ends at bit {end} of a buffer of {bits} bits")]
    Bounds {
        /// The field's name.
        field: &'static str,
        /// One past the field's last bit.
        end: u32,
        /// The buffer's size.
        bits: usize,
    },
    /// The struct of this driver branch has no such field.
    #[error("{field} does not exist in driver branch {branch}")]
    Absent {
        /// The field's name.
        field: &'static str,
        /// The branch.
        branch: crate::Branch,
    },
}

/// A named set of rows of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The vendor's name.
    pub name: &'static str,
    /// Size in bits.
    pub bits: u32,
    /// Every row, in the order declared.
    pub fields: &'static [Field],
}

impl Layout {
    /// Size in bytes.
    pub const fn bytes(&self) -> usize {
        self.bits as usize / 8
    }

    /// Panics, naming the row, unless every row is well formed and inside. `layout!` has it done at compile time.
    pub const fn check(&self) {
        let mut i = 0;
        while i < self.fields.len() {
            assert!(self.fields[i].is_inside(self.bits), "{}", self.fields[i].name);
            i += 1;
        }
    }

    /// The row of that name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// A row's vendor name from its Rust identifier: `type` is written `r#type`, `32BIT` is written `_32BIT`.
#[doc(hidden)]
pub const fn plain(name: &'static str) -> &'static str {
    let rest = match name.as_bytes() {
        [b'r', b'#', rest @ ..] => rest,
        [b'_', rest @ ..] if !rest.is_empty() && rest[0].is_ascii_digit() => rest,
        _ => return name,
    };
    match std::str::from_utf8(rest) {
        Ok(name) => name,
        Err(_) => name,
    }
}

fn element(field: &Field, index: u32, bits: usize) -> Result<std::ops::Range<usize>, FieldError> {
    if index >= field.count {
        return Err(FieldError::Index { field: field.name, index, count: field.count });
    }
    let lo = field.lo + index * field.stride;
    let end = lo + field.width();
    if end as usize > bits {
        return Err(FieldError::Bounds { field: field.name, end, bits });
    }
    Ok(lo as usize..end as usize)
}

/// At most eight bytes as a number. Nearly every field lies in eight bytes, which are much faster to load and store than any
/// bits.
fn eight(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Reads fields of little-endian bytes.
#[derive(Clone, Copy)]
pub struct Bits<'a>(&'a [u8]);

impl<'a> Bits<'a> {
    /// A view of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The value of a plain field, or of an array's first element.
    pub fn get(&self, field: &Field) -> Result<u64, FieldError> {
        self.get_at(field, 0)
    }

    /// The value of one element.
    pub fn get_at(&self, field: &Field, index: u32) -> Result<u64, FieldError> {
        let range = element(field, index, self.0.len() * 8)?;
        let (first, inside) = (range.start / 8, range.start % 8);
        let raw = if inside + range.len() <= 64 {
            let bytes = &self.0[first..self.0.len().min(first + 8)];
            eight(bytes) >> inside & (u64::MAX >> (64 - range.len()))
        } else {
            self.0.view_bits::<Lsb0>()[range].load_le::<u64>()
        };
        Ok(raw << field.shift)
    }
}

impl fmt::Debug for Bits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({})", self.0.len() * 8)
    }
}

/// Sets fields of little-endian bytes.
pub struct BitsMut<'a>(&'a mut [u8]);

impl<'a> BitsMut<'a> {
    /// A view of `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    /// Sets a plain field, or an array's first element.
    pub fn set(&mut self, field: &Field, value: u64) -> Result<(), FieldError> {
        self.set_at(field, 0, value)
    }

    /// Sets one element. A value that does not fit is refused and nothing is changed.
    pub fn set_at(&mut self, field: &Field, index: u32, value: u64) -> Result<(), FieldError> {
        let range = element(field, index, self.0.len() * 8)?;
        let raw = field.encode(value)?;
        let (first, inside) = (range.start / 8, range.start % 8);
        if inside + range.len() <= 64 {
            let end = self.0.len().min(first + 8);
            let bytes = &mut self.0[first..end];
            let mask = u64::MAX >> (64 - range.len()) << inside;
            let word = eight(bytes) & !mask | raw << inside;
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        } else {
            self.0.view_bits_mut::<Lsb0>()[range].store_le(raw);
        }
        Ok(())
    }
}

impl fmt::Debug for BitsMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitsMut({})", self.0.len() * 8)
    }
}

/// Declares a layout: a module with one [`Field`] constant per row and `LAYOUT`, the table of them all.
///
/// ```
/// nv_abi::layout! {
///     /// A word, for the sake of an example.
///     pub mod EXAMPLE: 64 bits {
///         KIND 1:0 { NONE = 0, SOME = 1 };
///         VALID[4] 8:8 + 2;
///         ADDRESS_SHIFTED8 63:32 >> 8;
///     }
/// }
/// use nv_abi::{Bits, BitsMut};
/// let mut bytes = [0; 8];
/// let mut word = BitsMut::new(&mut bytes);
/// word.set(&EXAMPLE::KIND, EXAMPLE::KIND::SOME)?;
/// word.set_at(&EXAMPLE::VALID, 3, 1)?;
/// word.set(&EXAMPLE::ADDRESS_SHIFTED8, 0x1200)?;
/// assert!(word.set(&EXAMPLE::ADDRESS_SHIFTED8, 0x1234).is_err());
/// assert_eq!(bytes, [1, 0x40, 0, 0, 0x12, 0, 0, 0]);
/// assert_eq!(Bits::new(&bytes).get(&EXAMPLE::ADDRESS_SHIFTED8)?, 0x1200);
/// # Ok::<(), nv_abi::FieldError>(())
/// ```
///
/// A name that begins with a digit is written with an underscore before it. A field with enumerants also gets a module
/// of its own name with one `u64` constant per enumerant: `EXAMPLE::KIND` is the row, `EXAMPLE::KIND::SOME` the value.
#[macro_export]
macro_rules! layout {
    ($(
        $(#[$meta:meta])*
        $vis:vis mod $name:ident : $bits:literal bits {
            $(
                $(#[$fmeta:meta])*
                $field:ident $([$count:literal])? $hi:literal : $lo:literal
                $(+ $stride:literal)? $(>> $shift:literal)?
                $({ $($ename:ident = $evalue:literal),* $(,)? })? ;
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[allow(non_snake_case, missing_docs)]
        $vis mod $name {
            $(
                $(#[$fmeta])*
                pub const $field: $crate::layout::Field = $crate::layout::Field {
                    name: $crate::layout::plain(stringify!($field)),
                    hi: $hi,
                    lo: $lo,
                    count: 1 $(* $count)?,
                    stride: 0 $(+ $stride)?,
                    shift: 0 $(+ $shift)?,
                    enumerants: &[$($($crate::layout::Enumerant { name: $crate::layout::plain(stringify!($ename)), value: $evalue }),*)?],
                };
                $(
                    #[doc = "Values of the field of the same name."]
                    pub mod $field {
                        $(pub const $ename: u64 = $evalue;)*
                    }
                )?
            )*
            /// Every row.
            pub const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                name: stringify!($name),
                bits: $bits,
                fields: &[$($field),*],
            };
            const _: () = LAYOUT.check();
        }
    )*};
}
