//! Pushbuffers, ring entries, descriptors and cubins for programs that read JSON.

use std::collections::HashMap;

use nv_abi::{
    dump::{self, FieldValue, Packet},
    gpfifo::Entry,
    method::Form,
    qmd::{self, Version},
};
use nv_capture::{Capture, Event, Memory, Stream, Symbols, describe};
use nv_driver::program::{Cubin, KernelInfo};
use serde_json::{Value, json};

fn field(value: &FieldValue) -> Value {
    json!({
        "name": value.name,
        "lowest_bit": value.position,
        "number": value.number,
        "text": value.text,
        "known": value.known,
    })
}

fn packet(packet: &Packet) -> Value {
    let calls: Vec<Value> = packet
        .calls
        .iter()
        .map(|call| {
            json!({
                "offset": call.offset,
                "word": call.word,
                "address": call.address,
                "method": call.method.map(|(method, _)| method.name),
                "element": call.method.map(|(_, element)| element),
                "fields": call.fields().iter().map(field).collect::<Vec<_>>(),
            })
        })
        .collect();
    let form = packet.header.as_ref().ok().map(|header| match header.form {
        Form::Increment => "increment",
        Form::NonIncrement => "non-increment",
        Form::IncrementOnce => "increment once",
        Form::Immediate(_) => "immediate",
        Form::OldIncrement => "old increment",
        Form::OldNonIncrement => "old non-increment",
        Form::SetSubDeviceMask(_) => "set sub-device mask",
        Form::StoreSubDeviceMask(_) => "store sub-device mask",
        Form::UseSubDeviceMask => "use sub-device mask",
        Form::EndSegment => "end of segment",
    });
    json!({
        "offset": packet.offset,
        "word": packet.word,
        "form": form,
        "error": packet.header.as_ref().err().map(ToString::to_string),
        "subchannel": packet.header.as_ref().ok().map(|header| header.subchannel),
        "owner": packet.owner,
        "calls": calls,
        "zero_words": packet.zeroes,
        "missing_words": packet.missing,
        "unread_words": packet.unread,
    })
}

/// A segment's packets.
pub fn packets(packets: &[Packet]) -> Value {
    packets.iter().map(packet).collect()
}

/// A ring's entries.
pub fn entries(entries: &[u64]) -> Value {
    let entry = |raw: &u64| match Entry::decode(*raw) {
        Entry::Segment { address, length, subroutine, sync, conditional } => json!({
            "raw": raw,
            "kind": "segment",
            "address": address,
            "words": length,
            "subroutine": subroutine,
            "sync": sync,
            "conditional": conditional,
        }),
        Entry::Control { opcode, operand } => {
            json!({ "raw": raw, "kind": "control", "opcode": opcode, "operand": operand })
        }
    };
    entries.iter().map(entry).collect()
}

/// A descriptor: what it asks for, and its fields.
pub fn descriptor(version: Version, bytes: &[u8]) -> Result<Value, nv_abi::FieldError> {
    let fields = dump::qmd_fields(version, bytes)?;
    let launch = match qmd::read(version, bytes) {
        Ok(launch) => json!({
            "program": launch.program_address,
            "grid": launch.grid,
            "block": launch.block,
            "registers": launch.registers,
            "barriers": launch.barriers,
            "shared_bytes": launch.shared_bytes,
            "local_low_bytes": launch.local_low_bytes,
            "local_high_bytes": launch.local_high_bytes,
            "constant_banks": launch
                .constant_buffers
                .iter()
                .map(|bank| bank.map(|bank| json!({ "address": bank.address, "bytes": bank.bytes })))
                .collect::<Vec<_>>(),
            "releases": launch
                .releases
                .iter()
                .map(|release| json!({ "address": release.address, "payload": release.payload }))
                .collect::<Vec<_>>(),
            "dependents": launch.dependents.iter().map(|dependent| dependent.address).collect::<Vec<_>>(),
        }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    Ok(json!({
        "version": version.rows().layout.name,
        "launch": launch,
        "fields": fields.iter().map(field).collect::<Vec<_>>(),
    }))
}

/// A capture's submissions: entry, packets and what they do.
pub fn submissions(capture: &Capture) -> Value {
    let symbols = Symbols::of(capture);
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut memory: Vec<Value> = Vec::new();
    let mut found = Vec::new();
    for event in &capture.events {
        match event {
            Event::Memory(Memory { kind, address, bytes }) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                memory.push(json!({ "kind": kind.word(), "address": address, "bytes": hex }));
            }
            Event::Submission(submission) => {
                let stream =
                    streams.entry(submission.channel).or_insert_with(|| Stream::new(submission.class));
                let (decoded, steps) =
                    submission.words.as_ref().map(|words| stream.segment(words)).unwrap_or_default();
                let actions: Vec<Value> = steps
                    .iter()
                    .map(|step| json!({ "offset": step.offset, "text": describe(&step.action, &symbols) }))
                    .collect();
                found.push(json!({
                    "channel": submission.channel,
                    "class": submission.class,
                    "slot": submission.slot,
                    "entry": entries(&[submission.entry]),
                    "nanoseconds": submission.time,
                    "packets": packets(&decoded),
                    "actions": actions,
                    "memory": std::mem::take(&mut memory),
                }));
            }
            _ => {}
        }
    }
    found.into()
}

/// A cubin's kernels.
pub fn cubin(cubin: &Cubin) -> Value {
    let kernel = |kernel: &KernelInfo| {
        json!({
            "name": kernel.name,
            "code": { "offset": kernel.code.start, "bytes": kernel.code.end - kernel.code.start },
            "registers": kernel.registers,
            "barriers": kernel.barriers,
            "static_shared_bytes": kernel.shared_bytes,
            "stack_bytes": kernel.stack_bytes,
            "parameter_base": kernel.parameter_base,
            "parameter_bytes": kernel.parameter_bytes,
            "parameters": kernel
                .parameters
                .iter()
                .map(|p| json!({ "ordinal": p.ordinal, "offset": p.offset, "bytes": p.size }))
                .collect::<Vec<_>>(),
            "constant_banks": kernel
                .constant_banks
                .iter()
                .map(|bank| bank.map(|bank| json!({ "offset": bank.offset, "bytes": bank.bytes })))
                .collect::<Vec<_>>(),
            "max_threads": kernel.max_threads,
            "required_threads": kernel.required_threads,
            "attributes": kernel
                .attributes
                .iter()
                .map(|attribute| json!({
                    "id": attribute.id,
                    "name": attribute.name(),
                    "bytes": attribute.payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                }))
                .collect::<Vec<_>>(),
        })
    };
    json!({
        "dialect": format!("{:?}", cubin.dialect()),
        "sm": cubin.sm(),
        "image_bytes": cubin.image_bytes(),
        "kernels": cubin.kernels().iter().map(kernel).collect::<Vec<_>>(),
    })
}
