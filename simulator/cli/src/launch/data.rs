//! The contents of buffers: made before a launch, judged after it.

use std::path::PathBuf;

use super::{
    element::{Element, Number},
    spec::{Expectation, Fill},
};
use crate::source::{self, SourceError};

/// Why a buffer could not be filled or judged.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file has another size than the buffer.
    #[error("{}: {got} bytes, {element}[{len}] has {want}", file.display())]
    Size {
        /// The file.
        file: PathBuf,
        /// Its bytes.
        got: usize,
        /// Bytes of the buffer.
        want: usize,
        /// Type of the elements.
        element: Element,
        /// How many.
        len: usize,
    },
}

/// A sequence of numbers that look random and depend on the seed alone: SplitMix64.
#[derive(Clone, Debug)]
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// The bytes of a buffer. `seed` is for random ones that name none.
pub fn make(element: Element, len: usize, fill: &Fill, seed: u64) -> Result<Vec<u8>, DataError> {
    let repeat = |number: Number| {
        // Constants were encoded once when they were read; zero and one fit every type.
        element.encode(number).unwrap_or_else(|| vec![0; element.bytes()]).repeat(len)
    };
    Ok(match fill {
        Fill::Zeros => vec![0; len * element.bytes()],
        Fill::Ones => repeat(Number::Whole(1)),
        Fill::Constant(number) => repeat(*number),
        Fill::Iota(start) => (0..len as i128)
            .flat_map(|index| {
                let number = start + index;
                // Integers wrap, as a kernel's own arithmetic does.
                let wrapped = || number.to_le_bytes()[..element.bytes()].to_vec();
                element.encode(Number::Whole(number)).unwrap_or_else(wrapped)
            })
            .collect(),
        Fill::Random(own) => {
            let mut sequence = Sequence(own.unwrap_or(seed));
            (0..len)
                .flat_map(|_| {
                    let bits = sequence.next();
                    if element.is_float() {
                        // 24 bits: exact in single precision.
                        let real = (bits >> 40) as f64 / f64::from(1u32 << 23) - 1.0;
                        element.encode(Number::Real(real)).unwrap_or_default()
                    } else {
                        bits.to_le_bytes()[..element.bytes()].to_vec()
                    }
                })
                .collect()
        }
        Fill::File(file) => {
            let bytes = source::read(file)?;
            let want = len * element.bytes();
            if bytes.len() != want {
                return Err(DataError::Size { file: file.clone(), got: bytes.len(), want, element, len });
            }
            bytes
        }
    })
}

/// A difference from what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// How many elements differ.
    pub count: usize,
    /// The first that does.
    pub index: usize,
    /// What it is.
    pub got: String,
    /// What it should be.
    pub want: String,
}

/// Compares a buffer with what it should hold; `None` if it does.
pub fn compare(
    element: Element,
    got: &[u8],
    expect: &Expectation,
    seed: u64,
) -> Result<Option<Mismatch>, DataError> {
    let size = element.bytes();
    let want = make(element, got.len() / size, &expect.fill, seed)?;
    let pairs = got.chunks_exact(size).zip(want.chunks_exact(size));
    let differs = |got: &[u8], want: &[u8]| {
        if expect.tolerance == 0.0 {
            return got != want;
        }
        let real = |bytes| match element.decode(bytes) {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        };
        let (got, want) = (real(got), real(want));
        let both_nan = got.is_nan() && want.is_nan();
        let close = (got - want).abs() <= expect.tolerance * want.abs().max(f64::MIN_POSITIVE);
        !(both_nan || got == want || close)
    };
    let mut wrong = pairs.enumerate().filter(|(_, (got, want))| differs(got, want));
    let Some((index, (got, want))) = wrong.next() else { return Ok(None) };
    let (got, want) = (element.text(got), element.text(want));
    Ok(Some(Mismatch { count: 1 + wrong.count(), index, got, want }))
}

/// The first elements as text.
pub fn text(element: Element, bytes: &[u8], count: usize) -> String {
    let size = element.bytes();
    let shown: Vec<String> = bytes.chunks_exact(size).take(count).map(|one| element.text(one)).collect();
    let rest = if bytes.len() / size > count { " ..." } else { "" };
    shown.join(" ") + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fill_every_type() {
        let ints = make(Element::U16, 3, &Fill::Iota(65_535), 0).unwrap();
        assert_eq!(text(Element::U16, &ints, 3), "65535 0 1");
        let ones = make(Element::F16, 2, &Fill::Ones, 0).unwrap();
        assert_eq!(text(Element::F16, &ones, 1), "1 ...");
        let random = |fill: Fill, seed| make(Element::F32, 100, &fill, seed).unwrap();
        assert_eq!(random(Fill::Random(Some(3)), 1), random(Fill::Random(None), 3));
        assert_ne!(random(Fill::Random(None), 1), random(Fill::Random(None), 2));
        let reals = random(Fill::Random(None), 1);
        assert!(reals.chunks_exact(4).all(|one| match Element::F32.decode(one) {
            Number::Real(number) => (-1.0..1.0).contains(&number),
            Number::Whole(_) => false,
        }));
    }

    #[test]
    fn a_wrong_element_is_named_and_a_tolerance_forgives_small_ones() {
        let expect = |tolerance| Expectation { fill: Fill::Constant(Number::Real(2.0)), tolerance };
        let got: Vec<u8> = [2.0f32, 2.00001, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let exact = compare(Element::F32, &got, &expect(0.0), 0).unwrap().unwrap();
        assert_eq!((exact.count, exact.index, exact.want.as_str()), (2, 1, "2"));
        let loose = compare(Element::F32, &got, &expect(1e-4), 0).unwrap().unwrap();
        assert_eq!((loose.count, loose.index, loose.got.as_str()), (1, 2, "3"));
        assert_eq!(compare(Element::F32, &got, &expect(0.5), 0).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_missing_or_of_another_size_is_named() {
        let error = make(Element::U32, 1, &Fill::File("no/such/file".into()), 0).unwrap_err();
        assert!(error.to_string().starts_with("no/such/file: "), "{error}");
        let error = make(Element::U8, 1, &Fill::File("Cargo.toml".into()), 0).unwrap_err();
        assert!(error.to_string().contains("u8[1] has 1"), "{error}");
    }
}
