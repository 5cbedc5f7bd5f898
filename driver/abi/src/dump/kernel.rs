//! Calls of the kernel interface as text.

use std::fmt::Write;

use super::{hex_block, words};
use crate::{
    Branch, Record, Struct,
    ioctl::{escape, nr, size},
    record::{Kind, StructField},
    rm::{Status, class, control},
    uvm::call,
};

/// A struct: every field that is not zero.
pub fn record(record: &Record) -> String {
    let of = record.of();
    let branch = record.branch();
    let mut out = format!("{}, {} bytes, driver branch {branch}\n", of.name, of.size(branch));
    for field in of.fields {
        let Some(offset) = field.offset(branch) else { continue };
        for index in 0..field.count(branch) {
            let text = match record.get_at(field, index) {
                Ok(0) => continue,
                Ok(number) => value(field, number),
                Err(error) => error.to_string(),
            };
            let name = match field.count(branch) {
                1 => field.name.to_owned(),
                _ => format!("{}[{index}]", field.name),
            };
            let _ = writeln!(out, "  {:#06x}  {name:<32}  {text}", offset + index * field.stride);
        }
    }
    out
}

fn value(field: &StructField, number: u64) -> String {
    let named = |name: Option<&'static str>| match name {
        Some(name) => format!("{number:#x} ({name})"),
        None => format!("{number:#x}"),
    };
    match field.kind {
        Kind::Status => Status(number as u32).to_string(),
        Kind::Signed(bytes) => {
            let shift = 64 - 8 * bytes;
            (((number << shift) as i64) >> shift).to_string()
        }
        Kind::Bool => "true".to_owned(),
        _ if field.name == "hClass" => named(class::class(number as u32).map(|class| class.name)),
        _ if field.name == "cmd" => named(control::control(number as u32).map(|control| control.name)),
        Kind::Handle | Kind::Pointer => format!("{number:#x}"),
        Kind::Unsigned(_) if number < 10 => number.to_string(),
        Kind::Unsigned(_) => format!("{number:#x}"),
    }
}

fn argument(out: &mut String, of: Option<&'static Struct>, branch: Branch, bytes: &[u8]) {
    match of.map(|of| Record::from_bytes(of, branch, bytes)) {
        Some(Ok(argument)) => out.push_str(&record(&argument)),
        Some(Err(error)) => {
            let _ = writeln!(out, "{error}");
            hex_block(out, 2, &words(bytes));
        }
        None => {
            let _ = writeln!(out, "{} bytes", bytes.len());
            hex_block(out, 2, &words(bytes));
        }
    }
}

/// A frontend ioctl with its argument.
pub fn ioctl(request: u32, branch: Branch, bytes: &[u8]) -> String {
    let row = escape(nr(request));
    let name = row.map_or_else(|| format!("unknown ioctl {:#04x}", nr(request)), |row| row.name.to_owned());
    let mut out = format!("{name} (request {request:#010x}, {} bytes): ", size(request));
    argument(&mut out, row.and_then(|row| row.argument), branch, bytes);
    out
}

/// A call of the UVM node with its argument.
pub fn uvm(request: u32, branch: Branch, bytes: &[u8]) -> String {
    let row = call(request);
    let name = row.map_or_else(|| format!("unknown UVM call {request:#x}"), |row| row.name.to_owned());
    let mut out = format!("{name}: ");
    argument(&mut out, row.and_then(|row| row.argument), branch, bytes);
    out
}
