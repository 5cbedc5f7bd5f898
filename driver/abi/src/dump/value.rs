//! A field with its value: what every dump is made of.

use std::{collections::BTreeMap, fmt};

use super::value;
use crate::{Bits, Field, FieldError, record::Kind};

/// One field and its value, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// The vendor's name; an element of an array with its index, as `NAME[2]`.
    pub name: String,
    /// Where the field begins: a bit of a word or of a descriptor, a byte of a struct.
    pub position: u32,
    /// The number in the field.
    pub number: u64,
    /// The number in words: an enumerant's, class's, command's or status's name, or the number itself.
    pub text: String,
    /// What a struct's field holds; `None` for bits of a word or of a descriptor.
    pub kind: Option<Kind>,
    /// Whether a row explains it: false for bits of no field and for numbers that should have a name and have none.
    pub known: bool,
}

impl FieldValue {
    /// The value of one element of a bit field. `hexadecimal` decides how a number without a name is written where the
    /// field's own name does not.
    pub(super) fn of(
        field: &Field,
        index: u32,
        bits: &Bits<'_>,
        hexadecimal: bool,
    ) -> Result<Self, FieldError> {
        let number = bits.get_at(field, index)?;
        let name = if field.count > 1 { format!("{}[{index}]", field.name) } else { field.name.to_owned() };
        Ok(Self {
            name,
            position: field.lo + index * field.stride,
            number,
            text: value(field, number, hexadecimal),
            kind: None,
            known: field.enumerants.is_empty() || field.enumerant(number).is_some(),
        })
    }
}

/// What no row explains, with how often it was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknowns(BTreeMap<String, u64>);

impl Unknowns {
    /// Counts one more of something that is described in words.
    pub fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// How many there were in all.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Whether everything was explained.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with its count, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, count)| (what.as_str(), *count))
    }
}

impl fmt::Display for Unknowns {
    /// One line per kind; one line in all where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "nothing unknown");
        }
        writeln!(f, "unknown: {}", self.total())?;
        for (what, count) in self.iter() {
            writeln!(f, "  {count:>4} x {what}")?;
        }
        Ok(())
    }
}
