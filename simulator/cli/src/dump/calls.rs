//! `mockgpu dump ioctl`: the calls of a recording.

use std::fmt::Write as _;

use nv_abi::dump::{FieldValue, Handles, Part, Unknowns, kernel_call_text};
use nv_capture::{Capture, Event};
use serde_json::{Value, json};

/// The calls as text, with what no row explains counted at the end.
pub fn text(capture: &Capture) -> String {
    let mut out = String::new();
    let mut handles = Handles::new();
    let mut unknowns = Unknowns::default();
    // Writing to a string cannot fail.
    for (number, event) in capture.events.iter().enumerate() {
        let _ = write!(out, "#{number} ");
        match event {
            Event::Open { node, result: Ok(fd) } => {
                let _ = writeln!(out, "open {node} = {}", fd.0);
            }
            Event::Open { node, result: Err(errno) } => {
                let _ = writeln!(out, "open {node}: {errno}");
            }
            Event::Close { fd, .. } => {
                let _ = writeln!(out, "close {}", fd.0);
            }
            Event::Map { fd, length, result, .. } => {
                let _ = match result {
                    Ok(0) => writeln!(out, "map {length:#x} bytes of descriptor {}", fd.0),
                    Ok(address) => {
                        writeln!(out, "map {length:#x} bytes of descriptor {} at {address:#x}", fd.0)
                    }
                    Err(errno) => writeln!(out, "map {length:#x} bytes of descriptor {}: {errno}", fd.0),
                };
            }
            Event::Unmap { address, length, .. } => {
                let _ = writeln!(out, "unmap {length:#x} bytes at {address:#x}");
            }
            Event::Ioctl(call) => {
                let decoded = call.decode(capture.branch, &mut handles);
                decoded.count_unknown(&mut unknowns);
                let _ = write!(out, "{} ", call.node);
                if let Err(errno) = call.result {
                    let _ = write!(out, "{errno} ");
                }
                out.push_str(&kernel_call_text(&decoded));
            }
            Event::Doorbell { value, .. } => {
                let _ = writeln!(out, "doorbell {value:#x}");
            }
            Event::Submission(submission) => {
                let _ = writeln!(
                    out,
                    "submission to channel {:#x}, slot {}: {}",
                    submission.channel,
                    submission.slot,
                    nv_abi::dump::entry(submission.entry)
                );
            }
            Event::Memory(memory) => {
                let _ = writeln!(
                    out,
                    "{} at {:#x}, {} bytes",
                    memory.kind.word(),
                    memory.address,
                    memory.bytes.len()
                );
            }
            Event::Symbol(symbol) => {
                let _ = writeln!(out, "{} at {:#x}, {:#x} bytes", symbol.name, symbol.address, symbol.bytes);
            }
            Event::Fault(text) => {
                let _ = writeln!(out, "fault: {text}");
            }
            Event::Note(text) => {
                let _ = writeln!(out, "note: {text}");
            }
            Event::Grid(grid) => {
                let _ = writeln!(
                    out,
                    "grid of {:#x}: {:?} blocks of {:?} threads, {} ns",
                    grid.program,
                    grid.grid,
                    grid.block,
                    grid.end.saturating_sub(grid.start)
                );
            }
        }
    }
    out + &unknowns.to_string()
}

fn field(value: &FieldValue) -> Value {
    json!({ "number": value.number, "text": value.text })
}

fn part(part: &Part) -> Value {
    let rows: Vec<Value> = part
        .rows
        .iter()
        .map(|row| {
            json!({
                "name": row.before.name,
                "offset": row.before.position,
                "before": field(&row.before),
                "after": row.after.as_ref().map(field),
            })
        })
        .collect();
    let raw: String = part.raw.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "struct": part.name, "bytes": part.bytes, "recorded": part.recorded, "fields": rows, "raw": raw })
}

/// The calls for programs: one object each, other events left out.
pub fn to_json(capture: &Capture) -> Value {
    let mut handles = Handles::new();
    let calls = capture.events.iter().enumerate().filter_map(|(number, event)| {
        let Event::Ioctl(call) = event else { return None };
        let decoded = call.decode(capture.branch, &mut handles);
        Some(json!({
            "number": number,
            "node": call.node.to_string(),
            "request": call.request,
            "name": decoded.name,
            "known": decoded.known && decoded.subject_known,
            "subject": decoded.subject,
            "status": decoded.status.map(|status| json!({ "number": status.0, "text": status.to_string() })),
            "errno": call.result.err().map(|errno| errno.0),
            "structs": decoded.parts.iter().map(part).collect::<Vec<_>>(),
        }))
    });
    calls.collect()
}
