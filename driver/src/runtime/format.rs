//! C's format strings: where conversions begin and end, and what their arguments become as text.
//!
//! The argument rules are those of `walk` in `driver/runtime/runtime.cu`. Texts are as glibc prints them.

use std::ops::ControlFlow;

/// No field is wider and no number longer: a format from the GPU cannot ask for gigabytes.
const LARGEST_FIELD: usize = 4096;

/// A conversion, read from the format; `*` not yet replaced.
#[derive(Clone, Copy, Debug, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    length: Length,
    letter: u8,
}

/// The size of an integer argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    Byte,
    Short,
    #[default]
    Int,
    Long,
}

/// The arguments, packed in their natural alignment, and the strings in the order of their conversions.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    pub(super) packed: &'a [u8],
    pub(super) strings: &'a [u8],
    at: usize,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(packed: &'a [u8], strings: &'a [u8]) -> Self {
        Self { packed, strings, at: 0 }
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.packed.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn double_word(&mut self) -> Option<u64> {
        let start = self.at.next_multiple_of(8);
        let bytes = self.packed.get(start..start + 8)?;
        self.at = start + 8;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.strings.iter().position(|byte| *byte == 0)?;
        let (string, rest) = self.strings.split_at(end);
        self.strings = &rest[1..];
        Some(string)
    }
}

/// Formats as printf does, behind what `out` has. `None` where the arguments are fewer than the format's.
pub(super) fn format(format: &[u8], arguments: &mut Arguments<'_>, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = format;
    while let Some(percent) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..percent]);
        rest = &rest[percent..];
        let mut reader = Reader { rest: &rest[1..] };
        let conversion = reader.conversion(arguments)?;
        let spelled = &rest[..rest.len() - reader.rest.len()];
        rest = reader.rest;
        match conversion {
            ControlFlow::Continue(conversion) => convert(&conversion, spelled, arguments, out)?,
            // The format ends inside it.
            ControlFlow::Break(()) => return Some(()),
        }
    }
    out.extend_from_slice(rest);
    Some(())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or(&[]);
    }

    fn number(&mut self) -> usize {
        let mut number = 0usize;
        while self.peek().is_ascii_digit() {
            number = number.saturating_mul(10).saturating_add(usize::from(self.peek() - b'0'));
            self.skip();
        }
        number.min(LARGEST_FIELD)
    }

    /// What follows a `%`. The outer `None` is a lack of arguments.
    fn conversion(&mut self, arguments: &mut Arguments<'_>) -> Option<ControlFlow<(), Conversion>> {
        let mut found = Conversion::default();
        loop {
            match self.peek() {
                b'-' => found.left = true,
                b'+' => found.plus = true,
                b' ' => found.space = true,
                b'#' => found.alternate = true,
                b'0' => found.zero = true,
                _ => break,
            }
            self.skip();
        }
        if self.peek() == b'*' {
            self.skip();
            let width = arguments.word()? as i32;
            found.left |= width < 0;
            found.width = (width.unsigned_abs() as usize).min(LARGEST_FIELD);
        } else {
            found.width = self.number();
        }
        if self.peek() == b'.' {
            self.skip();
            found.precision = if self.peek() == b'*' {
                self.skip();
                // A negative one counts as none.
                usize::try_from(arguments.word()? as i32).ok().map(|given| given.min(LARGEST_FIELD))
            } else {
                Some(self.number())
            };
        }
        loop {
            found.length = match (self.peek(), found.length) {
                (b'h', Length::Short) => Length::Byte,
                (b'h', Length::Long) | (b'l' | b'j' | b'z' | b't', _) => Length::Long,
                (b'h', _) => Length::Short,
                (b'L', length) => length,
                _ => break,
            };
            self.skip();
        }
        found.letter = self.peek();
        if found.letter == 0 {
            return Some(ControlFlow::Break(()));
        }
        self.skip();
        Some(ControlFlow::Continue(found))
    }
}

fn convert(
    conversion: &Conversion,
    spelled: &[u8],
    arguments: &mut Arguments<'_>,
    out: &mut Vec<u8>,
) -> Option<()> {
    match conversion.letter {
        b'%' => out.push(b'%'),
        b'd' | b'i' => {
            let value = match conversion.length {
                Length::Byte => i64::from(arguments.word()? as i8),
                Length::Short => i64::from(arguments.word()? as i16),
                Length::Int => i64::from(arguments.word()? as i32),
                Length::Long => arguments.double_word()? as i64,
            };
            let digits = value.unsigned_abs().to_string();
            integer(conversion, sign(conversion, value < 0), digits, value == 0, out);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let value = match conversion.length {
                Length::Byte => u64::from(arguments.word()? as u8),
                Length::Short => u64::from(arguments.word()? as u16),
                Length::Int => u64::from(arguments.word()?),
                Length::Long => arguments.double_word()?,
            };
            unsigned(conversion, value, out);
        }
        b'c' => pad(conversion, "", &[arguments.word()? as u8], false, out),
        b'p' => match arguments.double_word()? {
            0 => pad(conversion, "", b"(nil)", false, out),
            value => pad(conversion, "0x", format!("{value:x}").as_bytes(), conversion.zero, out),
        },
        b's' => {
            let null = arguments.double_word()? == 0;
            let text: &[u8] = match (null, conversion.precision) {
                (false, _) => arguments.string()?,
                // glibc does not cut this one short.
                (true, Some(0..6)) => b"",
                (true, _) => b"(null)",
            };
            pad(conversion, "", text, false, out);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            real(conversion, f64::from_bits(arguments.double_word()?), out);
        }
        // Nothing is stored, and nothing printed.
        b'n' => drop(arguments.double_word()?),
        _ => out.extend_from_slice(spelled),
    }
    Some(())
}

fn sign(conversion: &Conversion, negative: bool) -> &'static str {
    match (negative, conversion.plus, conversion.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (.., true) => " ",
        _ => "",
    }
}

fn unsigned(conversion: &Conversion, value: u64, out: &mut Vec<u8>) {
    let (mut digits, mut prefix) = match conversion.letter {
        b'o' => (format!("{value:o}"), ""),
        b'x' => (format!("{value:x}"), "0x"),
        b'X' => (format!("{value:X}"), "0X"),
        _ => (value.to_string(), ""),
    };
    if !conversion.alternate || value == 0 {
        prefix = "";
    }
    if conversion.letter == b'o' && conversion.alternate {
        // The first digit is a zero; a precision of zero does not take it away.
        if value != 0 && conversion.precision.is_none_or(|precision| precision <= digits.len()) {
            digits.insert(0, '0');
        } else if value == 0 && conversion.precision == Some(0) {
            return pad(conversion, "", b"0", false, out);
        }
    }
    integer(conversion, prefix, digits, value == 0, out);
}

/// Digits with their least number, behind a sign or prefix.
fn integer(conversion: &Conversion, prefix: &str, mut digits: String, is_zero: bool, out: &mut Vec<u8>) {
    if let Some(precision) = conversion.precision {
        if precision == 0 && is_zero {
            digits.clear();
        }
        if digits.len() < precision {
            digits.insert_str(0, &"0".repeat(precision - digits.len()));
        }
    }
    let zeros = conversion.zero && conversion.precision.is_none();
    pad(conversion, prefix, digits.as_bytes(), zeros, out);
}

fn real(conversion: &Conversion, value: f64, out: &mut Vec<u8>) {
    let upper = conversion.letter.is_ascii_uppercase();
    let sign = sign(conversion, value.is_sign_negative());
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        let name = if upper { name.to_uppercase() } else { name.to_owned() };
        return pad(conversion, sign, name.as_bytes(), false, out);
    }
    let magnitude = value.abs();
    let precision = conversion.precision.unwrap_or(6);
    let mut prefix = sign.to_owned();
    let mut text = match conversion.letter.to_ascii_lowercase() {
        b'f' => fixed(magnitude, precision, conversion.alternate),
        b'e' => {
            let (digits, exponent) = scientific(magnitude, precision);
            exponential(digits, exponent, conversion.alternate)
        }
        b'g' => general(magnitude, precision.max(1), conversion.alternate),
        _ => {
            prefix.push_str("0x");
            hexadecimal(magnitude, conversion.precision, conversion.alternate)
        }
    };
    if upper {
        text.make_ascii_uppercase();
        prefix.make_ascii_uppercase();
    }
    pad(conversion, &prefix, text.as_bytes(), conversion.zero, out);
}

fn fixed(magnitude: f64, precision: usize, point: bool) -> String {
    let mut text = format!("{magnitude:.precision$}");
    if point && precision == 0 {
        text.push('.');
    }
    text
}

/// Digits with their point, and the decimal exponent.
fn scientific(magnitude: f64, precision: usize) -> (String, i32) {
    let text = format!("{magnitude:.precision$e}");
    // Rust always writes the `e` and a number behind it.
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

fn exponential(mut digits: String, exponent: i32, point: bool) -> String {
    if point && !digits.contains('.') {
        digits.push('.');
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn general(magnitude: f64, precision: usize, alternate: bool) -> String {
    let (digits, exponent) = scientific(magnitude, precision - 1);
    let trim = |text: String| match text.contains('.') && !alternate {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    match usize::try_from(exponent) {
        Ok(places) if places >= precision => exponential(trim(digits), exponent, alternate),
        Ok(places) => trim(fixed(magnitude, precision - 1 - places, alternate)),
        Err(_) if exponent < -4 => exponential(trim(digits), exponent, alternate),
        Err(_) => trim(fixed(magnitude, precision - 1 + exponent.unsigned_abs() as usize, alternate)),
    }
}

const MANTISSA_BITS: u32 = 52;
/// Hexadecimal digits of a mantissa.
const MANTISSA_DIGITS: usize = 13;

/// Without the leading 0x.
fn hexadecimal(magnitude: f64, precision: Option<usize>, point: bool) -> String {
    let bits = magnitude.to_bits();
    let (biased, fraction) = ((bits >> MANTISSA_BITS) as i32, bits & ((1 << MANTISSA_BITS) - 1));
    let exponent = match biased {
        0 if fraction == 0 => 0,
        0 => -1022,
        biased => biased - 1023,
    };
    // The digit before the point and thirteen after it.
    let mut mantissa = fraction | u64::from(biased != 0) << MANTISSA_BITS;
    let mut places = MANTISSA_DIGITS;
    if let Some(precision) = precision.filter(|precision| *precision < MANTISSA_DIGITS) {
        let cut = 4 * (MANTISSA_DIGITS - precision) as u32;
        let (half, lost) = (1u64 << (cut - 1), mantissa & ((1 << cut) - 1));
        mantissa >>= cut;
        if lost > half || (lost == half && mantissa & 1 == 1) {
            mantissa += 1;
        }
        places = precision;
    }
    let lead = mantissa >> (4 * places);
    let mut digits = match places {
        0 => String::new(),
        _ => format!("{:0places$x}", mantissa & ((1 << (4 * places)) - 1)),
    };
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(precision) => digits.push_str(&"0".repeat(precision.saturating_sub(places))),
    }
    let dot = if point || !digits.is_empty() { "." } else { "" };
    format!("{lead}{dot}{digits}p{exponent:+}")
}

/// Writes sign or prefix and text into the field.
fn pad(conversion: &Conversion, prefix: &str, text: &[u8], zeros: bool, out: &mut Vec<u8>) {
    let missing = conversion.width.saturating_sub(prefix.len() + text.len());
    let fill = |out: &mut Vec<u8>, byte: u8| out.resize(out.len() + missing, byte);
    let zeros = zeros && !conversion.left;
    if !zeros && !conversion.left {
        fill(out, b' ');
    }
    out.extend_from_slice(prefix.as_bytes());
    if zeros {
        fill(out, b'0');
    }
    out.extend_from_slice(text);
    if conversion.left {
        fill(out, b' ');
    }
}

#[cfg(test)]
mod tests;
