//! Recordings as other tools write them: JSON lines, one system call each.
//!
//! A line has `op` (`open`, `mmap` or `ioctl`) and `path`. A call has `request` and `ret`, and where they were recorded
//! `arg_in`, `arg_out` (the argument's bytes before and after, in hexadecimal), `params_in` and `params_out` (the same
//! of what the argument points to). [`memory`] adds what the process's memory held.

pub mod memory;

use nv_abi::{Branch, Errno, Fd, Node};
use serde_json::Value;

use crate::{
    Capture,
    event::{Event, IoctlEvent},
};

/// Why a recording could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A line is no JSON object.
    #[error("line {line}: {reason}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A field is missing or of another kind.
    #[error("line {line}: no {field} that reads as one")]
    Field {
        /// The line, from 1.
        line: usize,
        /// The field.
        field: &'static str,
    },
    /// The path is none of the device nodes.
    #[error("line {line}: {path} is none of the device nodes")]
    Path {
        /// The line, from 1.
        line: usize,
        /// The path.
        path: String,
    },
    /// The operation is unknown.
    #[error("line {line}: {op:?} is no operation that is recorded")]
    Operation {
        /// The line, from 1.
        line: usize,
        /// The operation.
        op: String,
    },
}

/// Reads a recording made under a driver of this branch. Descriptors of calls are those that were opened last on the
/// same node, because the lines do not name them.
pub fn json_lines(text: &str, branch: Branch) -> Result<Capture, ImportError> {
    let mut events = Vec::new();
    let mut last: Vec<(Node, Fd)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let line = Line { number: index + 1, value: parse(index + 1, line)? };
        let path = line.text("path")?;
        let node =
            path.parse().map_err(|_| ImportError::Path { line: line.number, path: path.to_owned() })?;
        let fd = last.iter().rfind(|(of, _)| *of == node).map_or(Fd(-1), |(_, fd)| *fd);
        match line.text("op")? {
            "open" => {
                let number = line.signed("fd")?;
                let result = if number < 0 { Err(Errno(-number)) } else { Ok(Fd(number)) };
                last.extend(result.ok().map(|fd| (node, fd)));
                events.push(Event::Open { node, result });
            }
            "mmap" => {
                let (length, offset) = (line.number("len")?, line.number("offset")?);
                // The address was not recorded.
                let result = Ok(line.number("address").unwrap_or(0));
                events.push(Event::Map { fd, length, offset, result });
            }
            "ioctl" => {
                let request = u32::try_from(line.number("request")?)
                    .map_err(|_| ImportError::Field { line: line.number, field: "request" })?;
                let ret = line.signed("ret")?;
                let mut after = line.bytes("arg_out")?;
                if after.is_empty() {
                    after = line.bytes("uvm_arg_out_first96")?;
                }
                events.push(Event::Ioctl(Box::new(IoctlEvent {
                    fd,
                    node,
                    request,
                    before: line.bytes("arg_in")?,
                    after,
                    nested_before: line.bytes("params_in")?,
                    nested_after: line.bytes("params_out")?,
                    result: if ret < 0 { Err(Errno(-ret)) } else { Ok(()) },
                })));
            }
            op => return Err(ImportError::Operation { line: line.number, op: op.to_owned() }),
        }
    }
    Ok(Capture { branch, events })
}

fn parse(line: usize, text: &str) -> Result<Value, ImportError> {
    serde_json::from_str(text).map_err(|error| ImportError::Json { line, reason: error.to_string() })
}

struct Line {
    number: usize,
    value: Value,
}

impl Line {
    fn wrong(&self, field: &'static str) -> ImportError {
        ImportError::Field { line: self.number, field }
    }

    fn text(&self, field: &'static str) -> Result<&str, ImportError> {
        self.value.get(field).and_then(Value::as_str).ok_or_else(|| self.wrong(field))
    }

    fn number(&self, field: &'static str) -> Result<u64, ImportError> {
        self.value.get(field).and_then(Value::as_u64).ok_or_else(|| self.wrong(field))
    }

    fn signed(&self, field: &'static str) -> Result<i32, ImportError> {
        let number = self.value.get(field).and_then(Value::as_i64);
        number.and_then(|number| i32::try_from(number).ok()).ok_or_else(|| self.wrong(field))
    }

    /// Hexadecimal digits as bytes; none where the field is missing.
    fn bytes(&self, field: &'static str) -> Result<Vec<u8>, ImportError> {
        let Some(value) = self.value.get(field) else { return Ok(Vec::new()) };
        value.as_str().and_then(bytes_of).ok_or_else(|| self.wrong(field))
    }
}

/// Hexadecimal digits as bytes.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    match digits?.as_chunks::<2>() {
        (pairs, []) => Some(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events_and_calls_get_the_descriptor_opened_last() {
        let text = r#"{"op": "open", "path": "/dev/nvidiactl", "flags": 2, "fd": 3}
{"op": "ioctl", "path": "/dev/nvidiactl", "request": 3222292009, "arg_in": "0102", "ret": 0, "arg_out": "0103"}
{"op": "mmap", "path": "/dev/nvidiactl", "len": 4096, "prot": 1, "flags": 1, "offset": 0}"#;
        let capture = json_lines(text, Branch::R580).unwrap();
        assert_eq!(capture.events.len(), 3);
        let Event::Ioctl(call) = &capture.events[1] else { panic!() };
        assert_eq!((call.fd, call.node, call.request), (Fd(3), Node::Ctl, 0xc010_4629));
        assert_eq!((call.before.as_slice(), call.after.as_slice()), (&[1, 2][..], &[1, 3][..]));
    }

    #[test]
    fn a_line_that_does_not_read_is_named() {
        let error = |text| json_lines(text, Branch::R580).unwrap_err().to_string();
        assert!(error("\nnonsense").starts_with("line 2: "));
        assert_eq!(
            error(r#"{"op":"open","path":"/dev/null","fd":1}"#),
            "line 1: /dev/null is none of the device nodes"
        );
        assert_eq!(
            error(r#"{"op":"read","path":"/dev/nvidia0"}"#),
            "line 1: \"read\" is no operation that is recorded"
        );
        let odd = r#"{"op":"ioctl","path":"/dev/nvidia0","request":1,"ret":0,"arg_in":"123"}"#;
        assert_eq!(error(odd), "line 1: no arg_in that reads as one");
    }
}
