//! Everything that this crate describes in words, for reviews and reports: decoded ([`packets`], [`qmd_fields`],
//! [`kernel_call`]) for programs that read it, and as text.
//!
//! Every name comes from the same rows that encoder and decoder read. What no row explains is shown as what it is: a raw
//! number, marked as unknown; nothing is left out in silence.

mod constant_bank;
mod kernel;
mod push;
mod qmd;
mod value;

pub use constant_bank::constant_bank;
pub use kernel::{
    DecodedCall, Handles, KernelCall, Part, Row, ioctl, kernel_call, kernel_call_text, record, uvm,
};
pub use push::{Call, Packet, Subchannels, class_name, entry, packet, packets, pushbuffer};
pub use qmd::{qmd, qmd_fields};
pub use value::{FieldValue, Unknowns};

use std::fmt::Write;

use crate::Field;

/// Whether a row's numbers are read as bits: a part of its name says address, mask and the like.
fn is_hexadecimal(name: &str) -> bool {
    const PARTS: [&str; 14] = [
        "A",
        "ADDR",
        "ADDRESS",
        "B",
        "BASE",
        "HANDLE",
        "LOWER",
        "MASK",
        "NVCLASS",
        "OFFSET",
        "PARAMETER",
        "PAYLOAD",
        "POINTER",
        "UPPER",
    ];
    name == "V" || name.split('_').any(|part| PARTS.contains(&part))
}

/// The value of a field: an enumerant's name, hexadecimal where `hexadecimal` or the field's name says so, else decimal.
fn value(field: &Field, value: u64, hexadecimal: bool) -> String {
    if let Some(name) = field.enumerant(value) {
        return name.to_owned();
    }
    if !field.enumerants.is_empty() {
        return format!("{value} (no such value)");
    }
    if field.width() > 1 && (hexadecimal || is_hexadecimal(field.name)) {
        format!("{value:#x}")
    } else {
        value.to_string()
    }
}

/// Bytes as words of eight hexadecimal digits, eight a line with the byte offset in front; lines of zeroes are left out.
/// Captures consist of it: no formatter is asked.
pub fn hex_rows(out: &mut String, indent: &str, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    fn put(out: &mut String, value: u32, skip: usize) {
        let digits: [u8; 8] = std::array::from_fn(|digit| DIGITS[(value >> (28 - 4 * digit) & 15) as usize]);
        // Digits are no bad UTF-8.
        out.push_str(std::str::from_utf8(&digits[skip..]).unwrap_or_default());
    }
    for (index, line) in bytes.chunks(32).enumerate() {
        if line.iter().all(|byte| *byte == 0) {
            continue;
        }
        out.push_str(indent);
        let offset = (index * 32) as u32;
        put(out, offset, (offset.leading_zeros() / 4).min(4) as usize);
        for chunk in line.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            out.push(' ');
            put(out, u32::from_le_bytes(word), 0);
        }
        out.push('\n');
    }
}

/// Words of eight hexadecimal digits, eight a line with the byte offset in front. Lines of zeroes are counted instead.
fn hex_block(out: &mut String, indent: usize, words: &[u32]) {
    let mut lines = words.chunks(8).enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let start = number * 32;
        let mut bytes = line.len() * 4;
        if line.iter().all(|&word| word == 0) {
            while let Some((_, next)) = lines.next_if(|(_, next)| next.iter().all(|&word| word == 0)) {
                bytes += next.len() * 4;
            }
            let _ = writeln!(out, "{:indent$}+{start:#05x}  {bytes} bytes of zeroes", "");
            continue;
        }
        let _ = write!(out, "{:indent$}+{start:#05x} ", "");
        for word in line {
            let _ = write!(out, " {word:08x}");
        }
        out.push('\n');
    }
}

/// Bytes as little-endian words; up to three bytes at the end are filled up with zeroes.
fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        })
        .collect()
}

/// Bits of `bytes` that none of `fields` covers and that are set: index of the 32-bit word and the bits in it.
fn uncovered(bytes: &[u8], fields: &[Field]) -> Vec<(usize, u32)> {
    let mut words = words(bytes);
    for field in fields {
        for index in 0..field.count {
            let lo = field.lo + index * field.stride;
            for bit in lo..lo + field.width() {
                if let Some(word) = words.get_mut(bit as usize / 32) {
                    *word &= !(1 << (bit % 32));
                }
            }
        }
    }
    words.into_iter().enumerate().filter(|(_, word)| *word != 0).collect()
}
