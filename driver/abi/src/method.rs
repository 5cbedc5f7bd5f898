//! Pushbuffer methods: the header word in all its forms, and class tables of methods with their fields.

use std::sync::OnceLock;

use crate::{Field, Layout, layout};

layout! {
    /// The header word of a pushbuffer segment (`NVC56F_DMA_*` in `clc56f.h`).
    pub mod METHOD_HEADER: 32 bits {
        ADDRESS 11:0 >> 2;
        ADDRESS_OLD 12:2 >> 2;
        SUBDEVICE_MASK 15:4;
        SUBCHANNEL 15:13;
        TERT_OP 17:16 { GRP0_INC_METHOD = 0, GRP0_SET_SUB_DEV_MASK = 1, GRP0_STORE_SUB_DEV_MASK = 2, GRP0_USE_SUB_DEV_MASK = 3 };
        COUNT_OLD 28:18;
        COUNT 28:16;
        IMMD_DATA 28:16;
        SEC_OP 31:29 {
            GRP0_USE_TERT = 0, INC_METHOD = 1, GRP2_USE_TERT = 2, NON_INC_METHOD = 3, IMMD_DATA_METHOD = 4,
            ONE_INC = 5, RESERVED6 = 6, END_PB_SEGMENT = 7,
        };
    }
}

/// What the words after a header mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Each word goes to the next method.
    Increment,
    /// Every word goes to the same method.
    NonIncrement,
    /// The first word goes to the method, all others to the next one.
    IncrementOnce,
    /// No words follow; the header holds 13 bits of data.
    Immediate(u16),
    /// The old coding of [`Form::Increment`] with 11 bits of count (`GRP0`, or the NOP that a zero word is).
    OldIncrement,
    /// The old coding of [`Form::NonIncrement`] (`GRP2`).
    OldNonIncrement,
    /// Sets the sub-device mask.
    SetSubDeviceMask(u16),
    /// Stores the sub-device mask.
    StoreSubDeviceMask(u16),
    /// Uses the stored sub-device mask.
    UseSubDeviceMask,
    /// Ends the segment: what follows it is not executed.
    EndSegment,
}

/// A decoded header word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The form.
    pub form: Form,
    /// The subchannel, 0 to 7; 0 where the form has none.
    pub subchannel: u8,
    /// Byte address of the first method; 0 where the form has none.
    pub address: u32,
    /// Data words that follow.
    pub count: u32,
}

/// Why a header word cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A field of the header does not fit.
    #[error("method header: {0}")]
    Field(#[from] crate::FieldError),
    /// The word has a form that hardware rejects.
    #[error("method header {word:#010x}: SEC_OP {sec_op} is reserved")]
    Reserved {
        /// The word.
        word: u32,
        /// Its SEC_OP field.
        sec_op: u32,
    },
    /// The segment ends before the header's data does.
    #[error("method header at word {index} announces {count} words, the segment has {left} left")]
    Truncated {
        /// Index of the header in the segment.
        index: usize,
        /// Words announced.
        count: u32,
        /// Words left.
        left: usize,
    },
    /// Fields that the form lacks were set.
    #[error("a {form:?} header takes no {what}")]
    Unused {
        /// The form.
        form: Form,
        /// What was set.
        what: &'static str,
    },
}

impl Header {
    /// The word, or what does not fit.
    pub fn encode(&self) -> Result<u32, HeaderError> {
        use METHOD_HEADER as H;
        use METHOD_HEADER::{SEC_OP, TERT_OP};
        let put =
            |field: &Field, value: u64| Ok::<u32, HeaderError>((field.encode(value)? as u32) << field.lo);
        let unused = |set: bool, what| {
            if set { Err(HeaderError::Unused { form: self.form, what }) } else { Ok(()) }
        };
        let subchannel = put(&H::SUBCHANNEL, self.subchannel.into())?;
        let current = |sec_op: u64, count_or_data: u64| {
            Ok(put(&SEC_OP, sec_op)?
                | put(&H::COUNT, count_or_data)?
                | subchannel
                | put(&H::ADDRESS, self.address.into())?)
        };
        let old = |sec_op: u64| {
            Ok(put(&SEC_OP, sec_op)?
                | put(&H::COUNT_OLD, self.count.into())?
                | subchannel
                | put(&H::ADDRESS_OLD, self.address.into())?)
        };
        let masked = |tert_op: u64, mask: u16| {
            unused(self.subchannel != 0, "subchannel")?;
            unused(self.address != 0, "address")?;
            unused(self.count != 0, "data")?;
            Ok(put(&TERT_OP, tert_op)? | put(&H::SUBDEVICE_MASK, mask.into())?)
        };
        match self.form {
            Form::Increment => current(SEC_OP::INC_METHOD, self.count.into()),
            Form::NonIncrement => current(SEC_OP::NON_INC_METHOD, self.count.into()),
            Form::IncrementOnce => current(SEC_OP::ONE_INC, self.count.into()),
            Form::Immediate(data) => {
                unused(self.count != 0, "data")?;
                current(SEC_OP::IMMD_DATA_METHOD, data.into())
            }
            Form::OldIncrement => old(SEC_OP::GRP0_USE_TERT),
            Form::OldNonIncrement => old(SEC_OP::GRP2_USE_TERT),
            Form::SetSubDeviceMask(mask) => masked(TERT_OP::GRP0_SET_SUB_DEV_MASK, mask),
            Form::StoreSubDeviceMask(mask) => masked(TERT_OP::GRP0_STORE_SUB_DEV_MASK, mask),
            Form::UseSubDeviceMask => masked(TERT_OP::GRP0_USE_SUB_DEV_MASK, 0),
            Form::EndSegment => {
                unused(self.subchannel != 0, "subchannel")?;
                unused(self.address != 0, "address")?;
                unused(self.count != 0, "data")?;
                put(&SEC_OP, SEC_OP::END_PB_SEGMENT)
            }
        }
    }

    /// The header in a word; the reserved form is an error, as it is for hardware.
    pub fn decode(word: u32) -> Result<Self, HeaderError> {
        use METHOD_HEADER as H;
        use METHOD_HEADER::{SEC_OP, TERT_OP};
        let get = |field: &Field| field.decode(word.into());
        let subchannel = get(&H::SUBCHANNEL) as u8;
        let current = |form, count| Ok(Self { form, subchannel, address: get(&H::ADDRESS) as u32, count });
        let old = |form| {
            let (address, count) = (get(&H::ADDRESS_OLD) as u32, get(&H::COUNT_OLD) as u32);
            Ok(Self { form, subchannel, address, count })
        };
        let bare = |form| Ok(Self { form, subchannel: 0, address: 0, count: 0 });
        let count = get(&H::COUNT) as u32;
        let mask = get(&H::SUBDEVICE_MASK) as u16;
        match get(&SEC_OP) {
            SEC_OP::GRP0_USE_TERT => match get(&TERT_OP) {
                TERT_OP::GRP0_SET_SUB_DEV_MASK => bare(Form::SetSubDeviceMask(mask)),
                TERT_OP::GRP0_STORE_SUB_DEV_MASK => bare(Form::StoreSubDeviceMask(mask)),
                TERT_OP::GRP0_USE_SUB_DEV_MASK => bare(Form::UseSubDeviceMask),
                _ => old(Form::OldIncrement),
            },
            SEC_OP::INC_METHOD => current(Form::Increment, count),
            SEC_OP::GRP2_USE_TERT => old(Form::OldNonIncrement),
            SEC_OP::NON_INC_METHOD => current(Form::NonIncrement, count),
            SEC_OP::IMMD_DATA_METHOD => current(Form::Immediate(count as u16), 0),
            SEC_OP::ONE_INC => current(Form::IncrementOnce, count),
            SEC_OP::END_PB_SEGMENT => bare(Form::EndSegment),
            sec_op => Err(HeaderError::Reserved { word, sec_op: sec_op as u32 }),
        }
    }

    /// Byte address of the method that data word `index` goes to.
    pub const fn address_of(&self, index: u32) -> u32 {
        match self.form {
            Form::Increment | Form::OldIncrement => self.address + 4 * index,
            Form::IncrementOnce if index > 0 => self.address + 4,
            _ => self.address,
        }
    }
}

/// One method call of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Index of the data word in the segment; of the header for immediate data.
    pub index: usize,
    /// The subchannel.
    pub subchannel: u8,
    /// Byte address of the method.
    pub address: u32,
    /// The data.
    pub data: u32,
}

/// The method calls of a segment in order. Ends at an END_PB_SEGMENT header or after the first error.
pub fn walk(segment: &[u32]) -> Walk<'_> {
    Walk { segment, next: 0, header: None, done: 0 }
}

/// Iterator of [`walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    segment: &'a [u32],
    next: usize,
    header: Option<Header>,
    done: u32,
}

impl Iterator for Walk<'_> {
    type Item = Result<Write, HeaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(header) = self.header.filter(|header| self.done < header.count) {
                let data = *self.segment.get(self.next)?;
                let write = Write {
                    index: self.next,
                    subchannel: header.subchannel,
                    address: header.address_of(self.done),
                    data,
                };
                self.done += 1;
                self.next += 1;
                return Some(Ok(write));
            }
            let index = self.next;
            let word = *self.segment.get(index)?;
            self.next += 1;
            let header = match Header::decode(word) {
                Ok(header) => header,
                Err(error) => {
                    self.next = self.segment.len();
                    self.header = None;
                    return Some(Err(error));
                }
            };
            let left = self.segment.len() - self.next;
            if header.count as usize > left {
                self.next = self.segment.len();
                self.header = None;
                return Some(Err(HeaderError::Truncated { index, count: header.count, left }));
            }
            match header.form {
                Form::EndSegment => self.next = self.segment.len(),
                Form::Immediate(data) => {
                    return Some(Ok(Write {
                        index,
                        subchannel: header.subchannel,
                        address: header.address,
                        data: data.into(),
                    }));
                }
                _ => {
                    self.header = Some(header);
                    self.done = 0;
                }
            }
        }
    }
}

/// One row of a class: a method and the fields of its data word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The vendor's name.
    pub name: &'static str,
    /// Byte address of the first element.
    pub address: u32,
    /// Elements; 1 for a plain method.
    pub count: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
    /// The data word's fields.
    pub layout: Layout,
}

/// A method and its element, if there is one.
type Place = Option<(&'static Method, u32)>;

/// A class: its own methods and what it inherits.
#[derive(Debug)]
pub struct ClassTable {
    /// The vendor's name.
    pub name: &'static str,
    /// The class number.
    pub number: u32,
    /// The class that it extends.
    pub parent: Option<&'static ClassTable>,
    /// Methods that the parent lacks or has otherwise.
    pub methods: &'static [Method],
    /// Names of the parent's methods that this class lacks.
    pub removed: &'static [&'static str],
    /// What is at each word; made when it is first asked for.
    by_word: OnceLock<Box<[Place]>>,
}

impl ClassTable {
    /// A class of these rows.
    pub const fn new(
        name: &'static str,
        number: u32,
        parent: Option<&'static Self>,
        methods: &'static [Method],
        removed: &'static [&'static str],
    ) -> Self {
        Self { name, number, parent, methods, removed, by_word: OnceLock::new() }
    }

    /// The method at byte address `address`, with its element.
    pub fn method(&self, address: u32) -> Option<(&'static Method, u32)> {
        if !address.is_multiple_of(4) {
            return None;
        }
        *self.by_word().get(address as usize / 4)?
    }

    fn by_word(&self) -> &[Place] {
        self.by_word.get_or_init(|| {
            let inherited = self.parent.map_or(&[][..], Self::by_word);
            let kept = |place: &Place| place.filter(|(method, _)| !self.removed.contains(&method.name));
            let mut places: Vec<Place> = inherited.iter().map(kept).collect();
            // Where methods overlap the first one is meant.
            for method in self.methods.iter().rev() {
                for element in 0..method.count {
                    let word = (method.address + element * method.stride) as usize / 4;
                    if word >= places.len() {
                        places.resize(word + 1, None);
                    }
                    places[word] = Some((method, element));
                }
            }
            places.into()
        })
    }

    /// The method of that name.
    pub fn named(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name == name).or_else(|| {
            let method = self.parent?.named(name)?;
            (!self.removed.contains(&method.name)).then_some(method)
        })
    }

    /// Every method, inherited ones included, by address.
    pub fn all(&self) -> Vec<&'static Method> {
        let mut all: Vec<&'static Method> = self.methods.iter().collect();
        for method in self.parent.iter().flat_map(|parent| parent.all()) {
            let replaced =
                self.methods.iter().any(|own| own.name == method.name || own.address == method.address);
            if !replaced && !self.removed.contains(&method.name) {
                all.push(method);
            }
        }
        all.sort_by_key(|method| method.address);
        all
    }
}

/// The method table of a class number, of any engine.
pub fn class_table(number: u32) -> Option<&'static ClassTable> {
    [crate::host::CLASSES, crate::compute::CLASSES, crate::copy::CLASSES]
        .into_iter()
        .flatten()
        .copied()
        .find(|table| table.number == number)
}

/// Declares classes: per class a module with one [`Method`] constant and one module of field constants per row, the
/// parent's rows beside its own, and `TABLE`; per file `CLASSES`. `AMPERE_CHANNEL_GPFIFO_A::SEM_EXECUTE` is the method,
/// `AMPERE_CHANNEL_GPFIFO_A::SEM_EXECUTE::OPERATION` a field of its data, `…::OPERATION::RELEASE` a value of that.
#[macro_export]
macro_rules! methods {
    ($(
        $(#[$meta:meta])*
        pub mod $class:ident = $number:literal $(of $parent:ident)? {
            $( $method:ident $([$count:literal + $stride:literal])? $address:literal { $($fields:tt)* } )*
        } $(without [$($removed:ident),* $(,)?])?
    )*) => {
        $(
            $(#[$meta])*
            #[allow(non_snake_case, missing_docs)]
            pub mod $class {
                $(
                    // What this class has otherwise is declared below and hides the parent's row of that name.
                    #[allow(unused_imports)]
                    pub use super::$parent::*;
                )?
                $(
                    $crate::layout! { pub mod $method: 32 bits { $($fields)* } }
                    pub const $method: $crate::method::Method = $crate::method::Method {
                        name: $crate::layout::plain(stringify!($method)),
                        address: $address,
                        count: 1 $(* $count)?,
                        stride: 0 $(+ $stride)?,
                        layout: $method::LAYOUT,
                    };
                )*
                /// The class.
                pub static TABLE: $crate::method::ClassTable = $crate::method::ClassTable::new(
                    stringify!($class),
                    $number,
                    $crate::methods!(@parent $($parent)?),
                    &[$($method),*],
                    &[$($($crate::layout::plain(stringify!($removed))),*)?],
                );
            }
        )*
        /// Every class of this engine.
        pub const CLASSES: &[&$crate::method::ClassTable] = &[$(&$class::TABLE),*];
    };
    (@parent) => { None };
    (@parent $parent:ident) => { Some(&super::$parent::TABLE) };
}
