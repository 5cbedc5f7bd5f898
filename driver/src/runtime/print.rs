//! What kernels have printed: taken out of the ring, formatted, and given to the program's sink.

use std::{
    fmt,
    io::{self, Write},
};

use super::{
    format::{self, Arguments},
    layout::{ALIGNMENT, DROPPED, HEAD, RECORD, RESERVED, RING, TAIL},
};
use crate::{Error, os::Window};

/// Where a device's prints go.
pub(crate) struct Sink(Box<dyn Write + Send>);

impl Sink {
    pub(crate) fn new(write: Box<dyn Write + Send>) -> Self {
        Self(write)
    }
}

impl Default for Sink {
    fn default() -> Self {
        Self(Box::new(io::stdout()))
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// The ring of one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) state: Window,
    /// A power of two.
    pub(super) bytes: u64,
}

impl Ring {
    /// Prints that did not fit.
    pub(super) fn dropped(&self) -> Result<u64, Error> {
        self.state.load64(DROPPED)
    }

    /// Prints what is there. Records that are not all there end it, unless nothing can complete them any more.
    pub(super) fn drain(&self, sink: &mut Sink, dead: bool) -> Result<(), Error> {
        let head = self.state.load64(HEAD)?;
        let mut tail = self.state.load64(TAIL)?;
        if head == tail {
            return Ok(());
        }
        let mut out = Vec::new();
        let mut result = Ok(());
        while tail != head {
            let first = self.state.load32(RING + tail % self.bytes)?;
            let length = u64::from(first & !RESERVED);
            if first == 0 || (first & RESERVED != 0 && !dead) {
                break;
            }
            let fits = length >= RECORD as u64 && length.is_multiple_of(ALIGNMENT as u64);
            if !fits || length > head.wrapping_sub(tail) || length > self.bytes {
                result = Err(Error::PrintBuffer { position: tail });
            } else if first & RESERVED == 0 {
                let mut record = vec![0; length as usize];
                self.copy(tail, &mut record)?;
                if read(&record, &mut out).is_none() {
                    result = Err(Error::PrintBuffer { position: tail });
                }
            }
            // Where records do not follow each other any more, none of them can be found.
            let next = if fits && result.is_ok() { tail + length } else { head };
            self.clear(tail, next - tail)?;
            tail = next;
        }
        // The bytes must be free before the GPU is told so.
        self.state.store64(TAIL, tail)?;
        sink.0
            .write_all(&out)
            .and_then(|()| sink.0.flush())
            .map_err(|error| Error::PrintSink { error: error.to_string() })?;
        result
    }

    /// The two pieces of a range that may wrap: offsets in the state, and bytes of the first.
    fn pieces(&self, position: u64, length: u64) -> [(u64, u64); 2] {
        let start = position % self.bytes;
        let first = length.min(self.bytes - start);
        [(RING + start, first), (RING, length - first)]
    }

    fn copy(&self, position: u64, record: &mut [u8]) -> Result<(), Error> {
        let [(first, bytes), (second, _)] = self.pieces(position, record.len() as u64);
        let (head, tail) = record.split_at_mut(bytes as usize);
        self.state.read(first, head)?;
        self.state.read(second, tail)
    }

    fn clear(&self, position: u64, length: u64) -> Result<(), Error> {
        let zeros = vec![0; length.min(self.bytes) as usize];
        for (offset, bytes) in self.pieces(position, length.min(self.bytes)) {
            self.state.write(offset, &zeros[..bytes as usize])?;
        }
        Ok(())
    }
}

/// Formats one record. `None` where its parts do not fit into it.
fn read(record: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let word = |index: usize| {
        let bytes = record.get(4 * index..4 * index + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let mut at = RECORD;
    let mut part = |bytes: usize| {
        let part = record.get(at..at.checked_add(bytes)?)?;
        at = (at + bytes).next_multiple_of(ALIGNMENT);
        Some(part)
    };
    let (format, packed, strings) = (part(word(1)?)?, part(word(2)?)?, part(word(3)?)?);
    let format = format.strip_suffix(&[0])?;
    format::format(format, &mut Arguments::new(packed, strings), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as the device writes it.
    fn record(format: &str, packed: &[u8], strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; RECORD];
        let format = [format.as_bytes(), &[0]].concat();
        let parts = [format.as_slice(), packed, strings];
        for (index, part) in parts.into_iter().enumerate() {
            bytes[4 * index + 4..][..4].copy_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    #[test]
    fn a_record_gives_its_text() {
        let packed = [&7u32.to_le_bytes()[..], &[0; 4], &1u64.to_le_bytes()].concat();
        let mut out = Vec::new();
        read(&record("%d %s\n", &packed, b"seven\0"), &mut out).unwrap();
        assert_eq!(out, b"7 seven\n");
    }

    #[test]
    fn a_record_that_lies_about_its_parts_is_refused() {
        let good = record("%d\n", &7u32.to_le_bytes(), &[]);
        for index in 1..4 {
            let mut bad = good.clone();
            bad[4 * index..4 * index + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            assert!(read(&bad, &mut Vec::new()).is_none(), "part {index}");
        }
        // Fewer arguments than conversions.
        assert!(read(&record("%d %d\n", &7u32.to_le_bytes(), &[]), &mut Vec::new()).is_none());
        assert!(read(&record("%s\n", &1u64.to_le_bytes(), b"no end"), &mut Vec::new()).is_none());
        for length in 0..good.len() {
            read(&good[..length], &mut Vec::new());
        }
    }
}
