//! Captures as text: one event begins in column 0, what belongs to it is indented. Diffs of it read well, and it
//! compresses well.
//!
//! ```text
//! mockgpu capture 1
//! branch 580
//! open /dev/nvidiactl = 3
//! ioctl 3 /dev/nvidiactl c020462b = ok # NV_ESC_RM_ALLOC NV01_DEVICE_0: NV_OK (0x0)
//!   in 32
//!     0000 c1d00001 c1d00001 00000000 00000080 9d4890a0 00007ffc 00000000 00000000
//!   out 32
//!     ...
//!   params 56
//!     ...
//! map 3 1000 0 = 7f0000000000
//! submit caf00008 c56f 5 00003210004000b4 12345
//!   words 12
//!     0000 20050017 00202010 00000010 00000005 00000000 01000003 200125a6 00001011
//!     0020 200120ad 10088002 200120b0 00000009
//! memory qmd 1008800200 256
//!     ...
//! symbol 1000205000 fa0 sum
//! doorbell 90 a
//! fault Xid 31: ...
//! note what is submitted was looked for every 0.1 to 2 ms
//! grid 1000205000 4 1 1 256 1 1 81230 90110
//!   block 0 0 0 1 81500 84020
//!   ...
//! ```
//!
//! Numbers are hexadecimal, but for descriptors, counts of bytes and words, slots, sizes of grids and times, which are
//! decimal. Bytes are
//! little-endian words, eight a line with the byte offset in front; lines of zeroes are left out. `out` and `params-out`
//! are left out where a call changed nothing. `= ok`, `= value` or `! errno` ends a call. A line that begins with `#`,
//! and what follows ` # ` on a call's line, is a comment.

use std::{fmt::Write as _, io, iter::Peekable};

use nv_abi::{
    Branch, Errno, Fd,
    dump::{Handles, hex_rows},
};

use crate::{
    Capture,
    event::{Block, Event, Grid, IoctlEvent, Memory, MemoryKind, Submission, Symbol},
    words,
};

/// The first line.
pub const HEADER: &str = "mockgpu capture 1";

/// Bytes of text that are handed over at once.
const AT_ONCE: usize = 64 << 10;

/// Writes events as they come.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    branch: Branch,
    handles: Handles,
    /// What is written at once.
    text: String,
}

impl<W: io::Write> Writer<W> {
    /// Writes the head of a capture.
    pub fn new(mut to: W, branch: Branch) -> io::Result<Self> {
        writeln!(to, "{HEADER}\nbranch {branch}")?;
        Ok(Self { to, branch, handles: Handles::new(), text: String::new() })
    }

    /// Writes events, all with one call where they are not many.
    pub fn events(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            event_text(&mut self.text, event, self.branch, &mut self.handles);
            if self.text.len() >= AT_ONCE {
                self.write()?;
            }
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.to.write_all(self.text.as_bytes());
        self.text.clear();
        written
    }

    /// Writes what is still on its way.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A whole capture as text.
pub fn text(capture: &Capture) -> String {
    let mut out = format!("{HEADER}\nbranch {}\n", capture.branch);
    let mut handles = Handles::new();
    for event in &capture.events {
        event_text(&mut out, event, capture.branch, &mut handles);
    }
    out
}

fn outcome<T>(result: &Result<T, Errno>, value: impl Fn(&T) -> String) -> String {
    match result {
        Ok(done) => format!("= {}", value(done)),
        Err(errno) => format!("! {}", errno.0),
    }
}

fn ok<T>(_: &T) -> String {
    "ok".to_owned()
}

/// One line, whatever the text holds.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

fn event_text(out: &mut String, event: &Event, branch: Branch, handles: &mut Handles) {
    // Writing to a string cannot fail.
    let _ = match event {
        Event::Open { node, result } => {
            writeln!(out, "open {node} {}", outcome(result, |fd| fd.0.to_string()))
        }
        Event::Close { fd, result } => writeln!(out, "close {} {}", fd.0, outcome(result, ok)),
        Event::Map { fd, length, offset, result } => {
            writeln!(out, "map {} {length:x} {offset:x} {}", fd.0, outcome(result, |at| format!("{at:x}")))
        }
        Event::Unmap { address, length, result } => {
            writeln!(out, "unmap {address:x} {length:x} {}", outcome(result, ok))
        }
        Event::Doorbell { offset, value } => writeln!(out, "doorbell {offset:x} {value:x}"),
        Event::Symbol(Symbol { address, bytes, name }) => {
            writeln!(out, "symbol {address:x} {bytes:x} {}", escape(name))
        }
        Event::Fault(text) => writeln!(out, "fault {}", escape(text)),
        Event::Note(text) => writeln!(out, "note {}", escape(text)),
        Event::Grid(Grid { program, grid: [x, y, z], block: [i, j, k], start, end, blocks }) => {
            let _ = writeln!(out, "grid {program:x} {x} {y} {z} {i} {j} {k} {start} {end}");
            for Block { index: [x, y, z], worker, start, end } in blocks {
                let _ = writeln!(out, "  block {x} {y} {z} {worker} {start} {end}");
            }
            Ok(())
        }
        Event::Memory(Memory { kind, address, bytes }) => {
            let _ = writeln!(out, "memory {} {address:x} {}", kind.word(), bytes.len());
            block(out, bytes);
            Ok(())
        }
        Event::Submission(submission) => {
            let Submission { channel, class, slot, entry, words, time } = submission;
            let _ = write!(out, "submit {channel:x} {class:x} {slot} {entry:016x}");
            if let Some(time) = time {
                let _ = write!(out, " {time}");
            }
            out.push('\n');
            if let Some(words) = words {
                let _ = writeln!(out, "  words {}", words.len());
                block(out, &words::to_bytes(words));
            }
            Ok(())
        }
        Event::Ioctl(call) => {
            let IoctlEvent { fd, node, request, result, .. } = &**call;
            let title = call.decode(branch, handles).title();
            let _ = writeln!(out, "ioctl {} {node} {request:08x} {} # {title}", fd.0, outcome(result, ok));
            for (name, old, new) in [
                ("in", &call.before, None),
                ("out", &call.after, Some(&call.before)),
                ("params", &call.nested_before, None),
                ("params-out", &call.nested_after, Some(&call.nested_before)),
            ] {
                let unchanged = new.is_some_and(|before| before == old);
                let absent = old.is_empty() && new.is_none();
                if !unchanged && !absent {
                    let _ = writeln!(out, "  {name} {}", old.len());
                    block(out, old);
                }
            }
            Ok(())
        }
    };
}

/// Bytes as words, eight a line; lines of zeroes are left out.
fn block(out: &mut String, bytes: &[u8]) {
    hex_rows(out, "    ", bytes);
}

/// Why a text is no capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It does not begin as one.
    #[error("no capture of this version: the first line is {0:?}, not {HEADER:?}")]
    Header(String),
    /// It does not say under which driver branch it was made.
    #[error("no line says the driver branch")]
    NoBranch,
    /// The branch is unknown.
    #[error("line {line}: {text:?} is no driver branch")]
    Branch {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line that reads as nothing.
    #[error("line {line}: {text:?} is no event")]
    Event {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A block that says that it has more bytes than any has, or more than all blocks may have together.
    #[error("line {line}: a block of {bytes} bytes is too large")]
    Large {
        /// The line, from 1.
        line: usize,
        /// Bytes that the block has.
        bytes: usize,
    },
    /// Bytes that do not fit where they stand.
    #[error("line {line}: {text:?} is no row of words in {bytes} bytes")]
    Bytes {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
        /// Bytes that the block has.
        bytes: usize,
    },
}

/// Blocks larger than this are refused: nothing that is recorded is.
pub(crate) const LARGEST_BLOCK: usize = 1 << 28;
/// Bytes that all blocks have together, beyond eight for each letter of the capture: lines of zeroes are left out, and a
/// short text must not fill the memory of who reads it.
const ALL_BLOCKS: usize = 1 << 30;

struct Lines<'a, I: Iterator<Item = (usize, &'a str)>> {
    lines: Peekable<I>,
    /// The line that is read.
    number: usize,
    /// Bytes that blocks may still have.
    left: usize,
}

/// Reads a capture.
pub fn parse(text: &str) -> Result<Capture, FormatError> {
    let first = text.lines().next().unwrap_or("");
    if first.trim_end() != HEADER {
        // Of what may be no text at all, as much as tells what it is.
        return Err(FormatError::Header(first.chars().take(60).collect()));
    }
    let lines = text.lines().enumerate().skip(1).map(|(index, line)| (index + 1, line.trim_end()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let mut lines = Lines { lines, number: 0, left: ALL_BLOCKS.saturating_add(text.len().saturating_mul(8)) };
    let mut branch = None;
    let mut events = Vec::new();
    while let Some((number, line)) = lines.lines.next() {
        lines.number = number;
        let wrong = || FormatError::Event { line: number, text: line.to_owned() };
        if let Some(version) = line.strip_prefix("branch ") {
            branch = Branch::from_version(version);
            if branch.is_none() {
                return Err(FormatError::Branch { line: number, text: version.to_owned() });
            }
            continue;
        }
        events.push(lines.event(line).ok_or_else(wrong)??);
    }
    Ok(Capture { branch: branch.ok_or(FormatError::NoBranch)?, events })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn hex32(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// So many decimal numbers.
fn numbers<const N: usize>(words: &[&str]) -> Option<[u32; N]> {
    let numbers: Option<Vec<u32>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn result<T>(sign: &str, text: &str, value: impl Fn(&str) -> Option<T>) -> Option<Result<T, Errno>> {
    match sign {
        "=" => value(text).map(Ok),
        "!" => text.parse().ok().map(|number| Err(Errno(number))),
        _ => None,
    }
}

fn is_ok(text: &str) -> Option<()> {
    (text == "ok").then_some(())
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Lines<'a, I> {
    /// The event that begins with a line, or `None` if the line reads as none.
    fn event(&mut self, line: &str) -> Option<Result<Event, FormatError>> {
        let (kind, rest) = line.split_once(' ')?;
        let words: Vec<&str> = rest.split(" # ").next()?.split_ascii_whitespace().collect();
        let event = match (kind, &words[..]) {
            ("open", [path, sign, text]) => Event::Open {
                node: path.parse().ok()?,
                result: result(sign, text, |t| t.parse().ok().map(Fd))?,
            },
            ("close", [fd, sign, text]) => {
                Event::Close { fd: Fd(fd.parse().ok()?), result: result(sign, text, is_ok)? }
            }
            ("map", [fd, length, offset, sign, text]) => Event::Map {
                fd: Fd(fd.parse().ok()?),
                length: hex(length)?,
                offset: hex(offset)?,
                result: result(sign, text, hex)?,
            },
            ("unmap", [address, length, sign, text]) => Event::Unmap {
                address: hex(address)?,
                length: hex(length)?,
                result: result(sign, text, is_ok)?,
            },
            ("doorbell", [offset, value]) => Event::Doorbell { offset: hex32(offset)?, value: hex32(value)? },
            ("fault", _) => Event::Fault(unescape(rest)),
            ("note", _) => Event::Note(unescape(rest)),
            ("grid", [program, sizes @ .., start, end]) => {
                let sizes: [u32; 6] = numbers(sizes)?;
                let [grid, block] = *sizes.as_chunks::<3>().0 else { return None };
                Event::Grid(Grid {
                    program: hex(program)?,
                    grid,
                    block,
                    start: start.parse().ok()?,
                    end: end.parse().ok()?,
                    blocks: self.blocks()?,
                })
            }
            ("symbol", [address, bytes, ..]) => {
                let mut parts = rest.splitn(3, ' ');
                let name = parts.nth(2)?;
                Event::Symbol(Symbol { address: hex(address)?, bytes: hex(bytes)?, name: unescape(name) })
            }
            ("memory", [kind, address, length]) => {
                let kinds = [MemoryKind::Qmd, MemoryKind::ConstantBank, MemoryKind::Other];
                let kind = kinds.into_iter().find(|known| known.word() == *kind)?;
                let (address, length) = (hex(address)?, length.parse().ok()?);
                match self.block(length) {
                    Ok(bytes) => Event::Memory(Memory { kind, address, bytes }),
                    Err(error) => return Some(Err(error)),
                }
            }
            ("submit", [channel, class, slot, entry, time @ ..]) if time.len() <= 1 => {
                let (channel, class) = (hex32(channel)?, hex32(class)?);
                let (slot, entry) = (slot.parse().ok()?, hex(entry)?);
                let time = match time.first() {
                    Some(text) => Some(text.parse().ok()?),
                    None => None,
                };
                let words = match self.part("words", 4) {
                    Some(Ok(bytes)) => Some(words::of_bytes(&bytes)),
                    Some(Err(error)) => return Some(Err(error)),
                    None => None,
                };
                Event::Submission(Submission { channel, class, slot, entry, words, time })
            }
            ("ioctl", [fd, path, request, sign, text]) => {
                let (fd, node, request) = (Fd(fd.parse().ok()?), path.parse().ok()?, hex32(request)?);
                let result = result(sign, text, is_ok)?;
                let mut parts = Vec::new();
                for name in ["in", "out", "params", "params-out"] {
                    match self.part(name, 1).transpose() {
                        Ok(part) => parts.push(part),
                        Err(error) => return Some(Err(error)),
                    }
                }
                let [before, after, nested_before, nested_after] =
                    <[Option<Vec<u8>>; 4]>::try_from(parts).ok()?;
                let before = before.unwrap_or_default();
                let nested_before = nested_before.unwrap_or_default();
                Event::Ioctl(Box::new(IoctlEvent {
                    fd,
                    node,
                    request,
                    after: after.unwrap_or_else(|| before.clone()),
                    nested_after: nested_after.unwrap_or_else(|| nested_before.clone()),
                    before,
                    nested_before,
                    result,
                }))
            }
            _ => return None,
        };
        Some(Ok(event))
    }

    /// The blocks of a grid that come next; `None` if one reads as none.
    fn blocks(&mut self) -> Option<Vec<Block>> {
        let mut blocks = Vec::new();
        while let Some((_, line)) = self.lines.next_if(|(_, line)| line.starts_with("  block ")) {
            let words: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
            let [index @ .., start, end] = &words[..] else { return None };
            let [x, y, z, worker] = numbers(index)?;
            let (start, end) = (start.parse().ok()?, end.parse().ok()?);
            blocks.push(Block { index: [x, y, z], worker, start, end });
        }
        Some(blocks)
    }

    /// The block of that name, if it comes next; its length is in units of so many bytes.
    fn part(&mut self, name: &str, unit: usize) -> Option<Result<Vec<u8>, FormatError>> {
        let &(number, line) = self.lines.peek()?;
        let length = line.strip_prefix("  ")?.strip_prefix(name)?.strip_prefix(' ')?;
        let length = length.parse::<usize>().ok()?.checked_mul(unit)?;
        self.lines.next();
        self.number = number;
        Some(self.block(length))
    }

    fn block(&mut self, length: usize) -> Result<Vec<u8>, FormatError> {
        let refuse = |line, text: &str| FormatError::Bytes { line, text: text.to_owned(), bytes: length };
        if length > LARGEST_BLOCK.min(self.left) {
            return Err(FormatError::Large { line: self.number, bytes: length });
        }
        self.left -= length;
        let mut bytes = vec![0; length.next_multiple_of(4)];
        while let Some((number, line)) = self.lines.next_if(|(_, line)| line.starts_with("    ")) {
            let mut words = line.split_ascii_whitespace();
            let mut at = words.next().and_then(|offset| usize::from_str_radix(offset, 16).ok());
            for word in words {
                let place = at.and_then(|at| bytes.get_mut(at..at + 4)).zip(hex32(word));
                let (place, word) = place.ok_or_else(|| refuse(number, line))?;
                place.copy_from_slice(&word.to_le_bytes());
                at = at.map(|at| at + 4);
            }
            if at.is_none() {
                return Err(refuse(number, line));
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use nv_abi::Node;

    use super::*;

    fn sample() -> Capture {
        let call = IoctlEvent {
            fd: Fd(3),
            node: Node::Ctl,
            request: 0xc020_462a,
            before: (0..32).collect(),
            after: (1..33).collect(),
            nested_before: vec![0; 70],
            nested_after: (0..70).map(|byte| byte / 64).collect(),
            result: Ok(()),
        };
        let submission = Submission {
            channel: 0xcaf0_0008,
            class: 0xc56f,
            slot: 5,
            entry: 0x3210_0040_00b4,
            words: Some((0..20).collect()),
            time: Some(12),
        };
        let events = vec![
            Event::Open { node: Node::Gpu(1), result: Ok(Fd(4)) },
            Event::Open { node: Node::Uvm, result: Err(Errno::ENOENT) },
            Event::Ioctl(Box::new(call.clone())),
            Event::Ioctl(Box::new(IoctlEvent {
                after: call.before.clone(),
                nested_before: vec![],
                nested_after: vec![],
                result: Err(Errno::EINVAL),
                ..call
            })),
            Event::Map { fd: Fd(4), length: 0x1000, offset: 0, result: Ok(0x7f00_0000_0000) },
            Event::Unmap { address: 0x7f00_0000_0000, length: 0x1000, result: Ok(()) },
            Event::Submission(Submission { words: None, time: None, ..submission.clone() }),
            Event::Submission(submission),
            Event::Memory(Memory { kind: MemoryKind::Qmd, address: 0x10_0000_0200, bytes: vec![7; 33] }),
            Event::Symbol(Symbol { address: 0x1000, bytes: 16, name: "the sum # of it".into() }),
            Event::Doorbell { offset: 0x90, value: 10 },
            Event::Fault("Xid 31:\n  a \\ b".into()),
            Event::Note("seen late".into()),
            Event::Grid(Grid {
                program: 0x10_0020_5000,
                grid: [4, 2, 1],
                block: [256, 1, 1],
                start: 81_230,
                end: 90_110,
                blocks: vec![Block { index: [3, 1, 0], worker: 1, start: 81_500, end: 84_020 }],
            }),
            Event::Close { fd: Fd(4), result: Ok(()) },
        ];
        Capture { branch: Branch::R570, events }
    }

    #[test]
    fn a_capture_reads_back_from_its_text() {
        let capture = sample();
        let text = text(&capture);
        assert!(text.starts_with("mockgpu capture 1\nbranch 570\nopen /dev/nvidia1 = 4\n"), "{text}");
        assert_eq!(parse(&text).unwrap(), capture);
        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, capture.branch).unwrap();
        writer.events(&capture.events).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }

    #[test]
    fn every_line_of_it_that_is_broken_is_named_or_harmless() {
        let text = text(&sample());
        let count = text.lines().count();
        for broken in 0..count {
            for replacement in ["nonsense", "    0000 zz", "    ffff 00000000", "submit x", ""] {
                let lines: Vec<&str> = text
                    .lines()
                    .enumerate()
                    .map(|(i, line)| if i == broken { replacement } else { line })
                    .collect();
                // Never a panic; what is wrong is said with its line.
                if let Err(error) = parse(&lines.join("\n")) {
                    assert!(error.to_string().contains("line"), "{error}");
                }
            }
        }
        let large = |length: usize, times| {
            let line = format!("memory data 1000 {length}\n");
            parse(&format!("mockgpu capture 1\nbranch 580\n{}", line.repeat(times)))
        };
        assert_eq!(large(1 << 29, 1), Err(FormatError::Large { line: 3, bytes: 1 << 29 }));
        assert_eq!(large(1 << 28, 40), Err(FormatError::Large { line: 7, bytes: 1 << 28 }));
        assert_eq!(parse("mockgpu capture 2\n"), Err(FormatError::Header("mockgpu capture 2".into())));
        assert!(parse("").is_err());
        assert_eq!(parse("mockgpu capture 1\nopen /dev/nvidiactl = 3\n"), Err(FormatError::NoBranch));
    }
}
