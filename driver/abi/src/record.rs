//! C structs declared as rows: offsets per driver branch, accessed by name through the layout engine.
//!
//! The kernel module's structs grow and move between branches. A [`Struct`] lists every field once, with its offset
//! in the first branch and each change since; a [`Record`] is the bytes of one struct at one branch.

use crate::{Bits, BitsMut, Branch, Field, FieldError};

/// How a field is read by people; the size follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned number of 1, 2, 4 or 8 bytes.
    Unsigned(u32),
    /// A signed number of 1, 2, 4 or 8 bytes; get and set carry its two's complement, cut to the size.
    Signed(u32),
    /// One byte, zero or not.
    Bool,
    /// An object handle, 4 bytes.
    Handle,
    /// A status number, 4 bytes.
    Status,
    /// A class number, 4 bytes.
    Class,
    /// A control command, 4 bytes.
    Command,
    /// A file descriptor, 4 bytes, signed.
    Descriptor,
    /// A pointer into the caller's memory, 8 bytes.
    Pointer,
}

impl Kind {
    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) => bytes,
            Self::Bool => 1,
            Self::Handle | Self::Status | Self::Class | Self::Command | Self::Descriptor => 4,
            Self::Pointer => 8,
        }
    }
}

/// One row of a [`Struct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructField {
    /// The vendor's name; a nested struct's field is named `outer_inner`.
    pub name: &'static str,
    /// How to read one element.
    pub kind: Kind,
    /// Elements in the oldest branch; 1 for a plain field.
    pub count: u32,
    /// Bytes from one element to the next in the oldest branch.
    pub stride: u32,
    /// Where the field lies from each branch on, oldest first.
    pub placements: &'static [Placement],
}

/// Where a field lies from one branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The first branch with this placement.
    pub since: Branch,
    /// Byte offset of the first element; `None` where the branch's struct lacks the field.
    pub offset: Option<u32>,
    /// Elements, where the branch has another number than the row says; else 0.
    pub count: u32,
    /// Bytes from one element to the next, where the elements have grown; else 0.
    pub stride: u32,
}

impl StructField {
    const fn placement(&self, branch: Branch) -> Option<&Placement> {
        let mut found = None;
        let mut i = 0;
        while i < self.placements.len() {
            if self.placements[i].since as u32 <= branch as u32 {
                found = Some(&self.placements[i]);
            }
            i += 1;
        }
        found
    }

    /// Byte offset of the first element at `branch`.
    pub const fn offset(&self, branch: Branch) -> Option<u32> {
        match self.placement(branch) {
            Some(placement) => placement.offset,
            None => None,
        }
    }

    /// Elements at `branch`.
    pub const fn count(&self, branch: Branch) -> u32 {
        match self.placement(branch) {
            Some(placement) if placement.count != 0 => placement.count,
            _ => self.count,
        }
    }

    /// Bytes from one element to the next at `branch`.
    pub const fn stride(&self, branch: Branch) -> u32 {
        match self.placement(branch) {
            Some(placement) if placement.stride != 0 => placement.stride,
            _ => self.stride,
        }
    }

    /// The row as a bit field of the struct at `branch`.
    pub fn at(&self, branch: Branch) -> Result<Field, FieldError> {
        let offset = self.offset(branch).ok_or(FieldError::Absent { field: self.name, branch })?;
        let width = 8 * self.kind.bytes();
        Ok(Field {
            name: self.name,
            hi: offset * 8 + width - 1,
            lo: offset * 8,
            count: self.count(branch),
            stride: self.stride(branch) * 8,
            shift: 0,
            enumerants: &[],
        })
    }
}

/// A C struct of the kernel interface, in every branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Struct {
    /// The vendor's name.
    pub name: &'static str,
    /// Size in bytes from each branch on, oldest first.
    pub sizes: &'static [(Branch, u32)],
    /// Every row, in the order declared.
    pub fields: &'static [StructField],
}

impl Struct {
    /// Size in bytes at `branch`.
    pub const fn size(&self, branch: Branch) -> usize {
        let mut found = self.sizes[0].1;
        let mut i = 0;
        while i < self.sizes.len() {
            if self.sizes[i].0 as u32 <= branch as u32 {
                found = self.sizes[i].1;
            }
            i += 1;
        }
        found as usize
    }

    /// The largest size in any branch: what to allocate where the kernel copies its own size.
    pub const fn max_size(&self) -> usize {
        let mut max = 0;
        let mut i = 0;
        while i < self.sizes.len() {
            if self.sizes[i].1 > max {
                max = self.sizes[i].1;
            }
            i += 1;
        }
        max as usize
    }

    /// The row of that name.
    pub fn field(&self, name: &str) -> Option<&'static StructField> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The row of the status that a call leaves in its argument.
    pub fn status(&self) -> Option<&'static StructField> {
        self.fields.iter().find(|field| field.kind == Kind::Status && field.count == 1)
    }

    /// Panics, naming the row, unless every row lies inside the struct in every branch that has it. `record!` has it done at
    /// compile time.
    pub const fn check(&self) {
        let mut i = 0;
        while i < self.fields.len() {
            let field = &self.fields[i];
            // Between the branches that one of these names nothing changes.
            let mut change = 0;
            while change < self.sizes.len() + field.placements.len() {
                let branch = if change < self.sizes.len() {
                    self.sizes[change].0
                } else {
                    field.placements[change - self.sizes.len()].since
                };
                if let Some(offset) = field.offset(branch) {
                    let end = offset + field.kind.bytes() + (field.count(branch) - 1) * field.stride(branch);
                    assert!(end as usize <= self.size(branch), "{}", field.name);
                }
                change += 1;
            }
            i += 1;
        }
    }
}

/// The bytes of one struct at one branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    of: &'static Struct,
    branch: Branch,
    bytes: Vec<u8>,
}

impl Record {
    /// All zeroes.
    pub fn zeroed(of: &'static Struct, branch: Branch) -> Self {
        Self { of, branch, bytes: vec![0; of.size(branch)] }
    }

    /// A copy of the struct at the start of `bytes`, which may be longer.
    pub fn from_bytes(of: &'static Struct, branch: Branch, bytes: &[u8]) -> Result<Self, RecordError> {
        let size = of.size(branch);
        match bytes.get(..size) {
            Some(bytes) => Ok(Self { of, branch, bytes: bytes.to_vec() }),
            None => Err(RecordError { name: of.name, branch, size, got: bytes.len() }),
        }
    }

    /// A copy of as much of the struct as `bytes` has; the rest is zeroes.
    pub fn padded(of: &'static Struct, branch: Branch, bytes: &[u8]) -> Self {
        let mut record = Self::zeroed(of, branch);
        let length = bytes.len().min(record.bytes.len());
        record.bytes[..length].copy_from_slice(&bytes[..length]);
        record
    }

    /// What the record is.
    pub fn of(&self) -> &'static Struct {
        self.of
    }

    /// The branch whose layout the record has.
    pub fn branch(&self) -> Branch {
        self.branch
    }

    /// The value of a field, or of an array's first element.
    pub fn get(&self, field: &StructField) -> Result<u64, FieldError> {
        self.get_at(field, 0)
    }

    /// The value of one element.
    pub fn get_at(&self, field: &StructField, index: u32) -> Result<u64, FieldError> {
        Bits::new(&self.bytes).get_at(&field.at(self.branch)?, index)
    }

    /// Sets a field, or an array's first element.
    pub fn set(&mut self, field: &StructField, value: u64) -> Result<(), FieldError> {
        self.set_at(field, 0, value)
    }

    /// Sets one element. A value that does not fit is refused and nothing is changed.
    pub fn set_at(&mut self, field: &StructField, index: u32, value: u64) -> Result<(), FieldError> {
        BitsMut::new(&mut self.bytes).set_at(&field.at(self.branch)?, index, value)
    }

    /// Every element of an array of bytes.
    pub fn byte_array(&self, field: &StructField) -> Result<Vec<u8>, FieldError> {
        (0..field.count(self.branch)).map(|index| Ok(self.get_at(field, index)? as u8)).collect()
    }

    /// Sets the first elements of an array of bytes.
    pub fn set_byte_array(&mut self, field: &StructField, bytes: &[u8]) -> Result<(), FieldError> {
        (0..).zip(bytes).try_for_each(|(index, byte)| self.set_at(field, index, (*byte).into()))
    }

    /// An array of bytes as text, up to its first zero. Bytes that are no UTF-8 are replaced.
    pub fn text(&self, field: &StructField) -> Result<String, FieldError> {
        let bytes = self.byte_array(field)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// The struct's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The struct's bytes, to be passed to a call that updates them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// The buffer is shorter than the struct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {size} bytes in driver branch {branch}, the buffer has {got}")]
pub struct RecordError {
    /// The struct.
    pub name: &'static str,
    /// The branch.
    pub branch: Branch,
    /// Bytes needed.
    pub size: usize,
    /// Bytes given.
    pub got: usize,
}

/// Declares structs: a module per struct with one [`StructField`] constant per row and `STRUCT`.
///
/// A size or an offset is followed by its changes, as `R580 => 64`; `none` means that the branch lacks the field, and
/// `R550 => 0x18 x 256` gives an array another number of elements, and `R580 => 0x2 x 512 + 18` larger ones.
///
/// ```
/// nv_abi::record! {
///     /// An example: the second field came with 580 and moved the third.
///     pub mod EXAMPLE: 16, R580 => 24 {
///         hClient: handle @ 0x0;
///         flags: u32 @ none, R580 => 0x8;
///         address: u64 @ 0x8, R580 => 0x10;
///     }
/// }
/// use nv_abi::{Branch, Record};
/// let mut old = Record::zeroed(&EXAMPLE::STRUCT, Branch::R570);
/// old.set(&EXAMPLE::address, 7)?;
/// assert_eq!(old.bytes()[8], 7);
/// assert!(old.set(&EXAMPLE::flags, 1).is_err());
/// # Ok::<(), nv_abi::FieldError>(())
/// ```
#[macro_export]
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        $vis:vis mod $name:ident : $size:literal $(, $since:ident => $newer:literal)* {
            $(
                $field:ident : $kind:ident $([$count:literal $(+ $stride:literal)?])?
                @ $offset:tt $(, $moved:ident => $to:tt $(x $number:literal $(+ $step:literal)?)?)* ;
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[allow(non_snake_case, non_upper_case_globals, missing_docs)]
        $vis mod $name {
            $crate::record!(@fields $(
                { $field $kind [$($count $(+ $stride)?)?] $offset $(, $moved => $to $(x $number $(+ $step)?)?)* }
            )*);
            /// The struct: every row, and its size.
            pub const STRUCT: $crate::record::Struct = $crate::record::Struct {
                name: stringify!($name),
                sizes: &[
                    ($crate::Branch::R535, $size) $(, ($crate::Branch::$since, $newer))*
                ],
                fields: FIELDS,
            };
            const _: () = STRUCT.check();
        }
    )*};
    (@fields $({ $field:ident $kind:ident [$($count:tt)*] $offset:tt $(, $moved:ident => $to:tt $(x $number:literal $(+ $step:literal)?)?)* })*) => {
        $(
            pub const $field: $crate::record::StructField = $crate::record::StructField {
                name: $crate::layout::plain(stringify!($field)),
                kind: $crate::record!(@kind $kind),
                count: $crate::record!(@count $($count)*),
                stride: $crate::record!(@stride $kind $($count)*),
                placements: &[
                    $crate::record::Placement {
                        since: $crate::Branch::R535,
                        offset: $crate::record!(@offset $offset),
                        count: 0,
                        stride: 0,
                    }
                    $(, $crate::record::Placement {
                        since: $crate::Branch::$moved,
                        offset: $crate::record!(@offset $to),
                        count: 0 $(+ $number)?,
                        stride: 0 $($(+ $step)?)?,
                    })*
                ],
            };
        )*
        const FIELDS: &[$crate::record::StructField] = &[$($field),*];
    };
    (@offset none) => { None };
    (@offset $offset:literal) => { Some($offset) };
    (@count) => { 1 };
    (@count $count:literal $(+ $stride:literal)?) => { $count };
    (@stride $kind:ident) => { $crate::record!(@kind $kind).bytes() };
    (@stride $kind:ident $count:literal) => { $crate::record!(@kind $kind).bytes() };
    (@stride $kind:ident $count:literal + $stride:literal) => { $stride };
    (@kind u8) => { $crate::record::Kind::Unsigned(1) };
    (@kind u16) => { $crate::record::Kind::Unsigned(2) };
    (@kind u32) => { $crate::record::Kind::Unsigned(4) };
    (@kind u64) => { $crate::record::Kind::Unsigned(8) };
    (@kind i16) => { $crate::record::Kind::Signed(2) };
    (@kind i32) => { $crate::record::Kind::Signed(4) };
    (@kind i64) => { $crate::record::Kind::Signed(8) };
    (@kind bool) => { $crate::record::Kind::Bool };
    (@kind handle) => { $crate::record::Kind::Handle };
    (@kind status) => { $crate::record::Kind::Status };
    (@kind class) => { $crate::record::Kind::Class };
    (@kind command) => { $crate::record::Kind::Command };
    (@kind descriptor) => { $crate::record::Kind::Descriptor };
    (@kind pointer) => { $crate::record::Kind::Pointer };
}
