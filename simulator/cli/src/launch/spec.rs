//! Arguments as they are written on the command line.
//!
//! ```text
//! u32:7   f32:1.5   bytes:00ff10       a number, or the bytes of a struct passed by value
//! f32[1000]                            a buffer of zeroes
//! f32[1000]=FILL                       zeros, ones, iota, iota:START, const:N, random, random:SEED, @FILE
//! f32[1000]=FILL,out                   its first elements are printed; out:N prints N
//! f32[1000]=FILL,save=FILE             all of it goes to a file
//! f32[1000]=FILL,expect=FILL           it must hold that afterwards, bit for bit
//! f32[1000]=FILL,expect=FILL~1e-5      or with that relative tolerance
//! null                                 a null pointer
//! ```

use std::{fmt, path::PathBuf, str::FromStr};

use super::element::{Element, Number};

/// What a buffer holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Zeroes.
    Zeros,
    /// Ones.
    Ones,
    /// Start, start + 1, and so on.
    Iota(i128),
    /// One number everywhere.
    Constant(Number),
    /// Numbers that look random: whole ones of the whole range, reals of -1 to 1. Without a seed, the command's.
    Random(Option<u64>),
    /// The bytes of a file.
    File(PathBuf),
}

/// What a buffer must hold afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The right elements.
    pub fill: Fill,
    /// Relative tolerance; 0 compares bit for bit.
    pub tolerance: f64,
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// A number.
    Scalar {
        /// Its type.
        element: Element,
        /// The number.
        number: Number,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The bytes of a struct.
    Bytes(Vec<u8>),
    /// A null pointer.
    Null,
    /// A buffer.
    Buffer {
        /// Type of its elements.
        element: Element,
        /// How many.
        len: usize,
        /// What it holds at first.
        fill: Fill,
        /// How many elements to print afterwards.
        print: Option<usize>,
        /// Where to save it afterwards.
        save: Option<PathBuf>,
        /// What it must hold afterwards.
        expect: Option<Expectation>,
    },
}

/// Why a text is no argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The form is none.
    #[error(
        "{0:?} is no argument: write a number as u32:7 or f32:1.5, a buffer as f32[1000]=iota,out, \
         a struct as bytes:00ff10, or null"
    )]
    Form(String),
    /// The type is none.
    #[error("{0:?} is no type; there are {types}", types = Element::names())]
    Type(String),
    /// The number is none of its type.
    #[error("{number:?} is no {element}")]
    Number {
        /// The type.
        element: Element,
        /// What was written.
        number: String,
    },
    /// The count is none.
    #[error("{0:?} is no number of elements")]
    Count(String),
    /// The bytes are none.
    #[error("{0:?} are no bytes in hexadecimal")]
    Bytes(String),
    /// The fill is none.
    #[error(
        "{0:?} fills no buffer: write zeros, ones, iota, iota:START, const:N, random, random:SEED or @FILE"
    )]
    Fill(String),
    /// The flag is none.
    #[error("{0:?} is nothing to do with a buffer: write out, out:N, save=FILE or expect=FILL")]
    Flag(String),
}

/// Elements that `out` prints.
const PRINTED: usize = 8;

fn fill(element: Element, text: &str) -> Result<Fill, SpecError> {
    let refuse = || SpecError::Fill(text.to_owned());
    if let Some(file) = text.strip_prefix('@').filter(|file| !file.is_empty()) {
        return Ok(Fill::File(file.into()));
    }
    match text.split_once(':') {
        None => match text {
            "zeros" => Ok(Fill::Zeros),
            "ones" => Ok(Fill::Ones),
            "iota" => Ok(Fill::Iota(0)),
            "random" => Ok(Fill::Random(None)),
            _ => Err(refuse()),
        },
        Some(("iota", start)) => start.parse().map(Fill::Iota).map_err(|_| refuse()),
        Some(("random", seed)) => seed.parse().map(|seed| Fill::Random(Some(seed))).map_err(|_| refuse()),
        Some(("const", number)) => {
            let wrong = || SpecError::Number { element, number: number.to_owned() };
            let parsed = Number::parse(number).ok_or_else(wrong)?;
            element.encode(parsed).ok_or_else(wrong)?;
            Ok(Fill::Constant(parsed))
        }
        _ => Err(refuse()),
    }
}

fn expectation(element: Element, text: &str) -> Result<Expectation, SpecError> {
    // A file's name may hold the sign; the last one counts, and only before a number.
    if let Some((before, after)) = text.rsplit_once('~')
        && let Ok(tolerance) = after.parse()
    {
        return Ok(Expectation { fill: fill(element, before)?, tolerance });
    }
    Ok(Expectation { fill: fill(element, text)?, tolerance: 0.0 })
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn buffer(element: Element, count: &str, rest: &str) -> Result<Spec, SpecError> {
    let len: usize = count.parse().map_err(|_| SpecError::Count(count.to_owned()))?;
    if len == 0 || len.checked_mul(element.bytes()).is_none() {
        return Err(SpecError::Count(count.to_owned()));
    }
    let mut parts = rest.split(',');
    let first = parts.next().unwrap_or("");
    let first = match first.strip_prefix('=') {
        Some(text) => fill(element, text)?,
        None if first.is_empty() => Fill::Zeros,
        None => return Err(SpecError::Form(rest.to_owned())),
    };
    let (mut print, mut save, mut expect) = (None, None, None);
    for flag in parts {
        match flag.split_once(['=', ':']) {
            None if flag == "out" => print = Some(PRINTED),
            Some(("out", count)) => {
                print = Some(count.parse().map_err(|_| SpecError::Count(count.to_owned()))?);
            }
            Some(("save", file)) if !file.is_empty() => save = Some(file.into()),
            Some(("expect", text)) => expect = Some(expectation(element, text)?),
            _ => return Err(SpecError::Flag(flag.to_owned())),
        }
    }
    Ok(Spec::Buffer { element, len, fill: first, print, save, expect })
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let kind = |name: &str| Element::parse(name).ok_or_else(|| SpecError::Type(name.to_owned()));
        if let Some((name, rest)) = text.split_once('[').filter(|(name, _)| !name.contains([':', '='])) {
            let (count, rest) = rest.split_once(']').ok_or_else(|| SpecError::Form(text.to_owned()))?;
            return buffer(kind(name)?, count, rest);
        }
        let (name, value) = text.split_once(':').ok_or_else(|| SpecError::Form(text.to_owned()))?;
        if name == "bytes" {
            return hexadecimal(value).map(Self::Bytes).ok_or_else(|| SpecError::Bytes(value.to_owned()));
        }
        let element = kind(name)?;
        let wrong = || SpecError::Number { element, number: value.to_owned() };
        let number = Number::parse(value).ok_or_else(wrong)?;
        let bytes = element.encode(number).ok_or_else(wrong)?;
        Ok(Self::Scalar { element, number, bytes })
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => f.write_str("zeros"),
            Self::Ones => f.write_str("ones"),
            Self::Iota(0) => f.write_str("iota"),
            Self::Iota(start) => write!(f, "iota:{start}"),
            Self::Constant(Number::Whole(number)) => write!(f, "const:{number}"),
            Self::Constant(Number::Real(number)) => write!(f, "const:{number}"),
            Self::Random(None) => f.write_str("random"),
            Self::Random(Some(seed)) => write!(f, "random:{seed}"),
            Self::File(file) => write!(f, "@{}", file.display()),
        }
    }
}

impl Spec {
    /// Bytes of the parameter that takes it.
    pub fn parameter_bytes(&self) -> usize {
        match self {
            Self::Scalar { bytes, .. } | Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Buffer { .. } => 8,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar { element, bytes, .. } => write!(f, "{element}:{}", element.text(bytes)),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Null => f.write_str("null"),
            Self::Buffer { element, len, fill, .. } => write!(f, "{element}[{len}]={fill}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Spec, SpecError> {
        text.parse()
    }

    #[test]
    fn scalars_and_structs_become_their_bytes() {
        let bytes = |text: &str| match parse(text).unwrap() {
            Spec::Scalar { bytes, .. } | Spec::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes("u32:7"), [7, 0, 0, 0]);
        assert_eq!(bytes("f32:1.5"), 1.5f32.to_le_bytes());
        assert_eq!(bytes("i64:-2"), (-2i64).to_le_bytes());
        assert_eq!(bytes("f16:1"), [0, 0x3c]);
        assert_eq!(bytes("bytes:00ff10"), [0, 255, 16]);
        assert_eq!(parse("null"), Ok(Spec::Null));
    }

    #[test]
    fn a_buffer_says_how_it_is_filled_and_what_happens_to_it() {
        let spec = parse("f32[1000]=random:7,out:4,save=out.bin,expect=@right.bin~1e-5").unwrap();
        let Spec::Buffer { element, len, fill, print, save, expect } = spec else { panic!() };
        assert_eq!((element, len, fill, print), (Element::F32, 1000, Fill::Random(Some(7)), Some(4)));
        assert_eq!(save, Some("out.bin".into()));
        assert_eq!(expect, Some(Expectation { fill: Fill::File("right.bin".into()), tolerance: 1e-5 }));
        let spec = parse("u8[3],out").unwrap();
        assert!(matches!(spec, Spec::Buffer { fill: Fill::Zeros, print: Some(8), .. }), "{spec:?}");
    }

    #[test]
    fn what_is_no_argument_is_refused_by_what_is_wrong_with_it() {
        assert_eq!(parse("seven"), Err(SpecError::Form("seven".into())));
        assert_eq!(parse("f8:1"), Err(SpecError::Type("f8".into())));
        assert_eq!(parse("f32[10"), Err(SpecError::Form("f32[10".into())));
        assert_eq!(parse("f32[-1]"), Err(SpecError::Count("-1".into())));
        assert_eq!(parse("f32[0]"), Err(SpecError::Count("0".into())));
        assert_eq!(parse("f32[4]=noise"), Err(SpecError::Fill("noise".into())));
        assert_eq!(parse("f32[4]=ones,print"), Err(SpecError::Flag("print".into())));
        assert_eq!(parse("u8[4]=const:300").unwrap_err().to_string(), "\"300\" is no u8");
        assert_eq!(parse("u8:300").unwrap_err().to_string(), "\"300\" is no u8");
        assert_eq!(parse("bytes:abc"), Err(SpecError::Bytes("abc".into())));
    }
}
