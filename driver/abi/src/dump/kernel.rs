//! Calls of the kernel interface, decoded and as text.

use std::{collections::BTreeMap, fmt::Write};

use super::{FieldValue, Unknowns, hex_block, words};
use crate::{
    Branch, Node, Record, Struct,
    ioctl::{self, escape, nr, size},
    record::Kind,
    rm::{Status, class, control, nv_ioctl_card_info_t},
    uvm::call,
};

/// Which class an object is of, by client and handle: learned from the calls that make and free objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handles(BTreeMap<(u32, u32), u32>);

impl Handles {
    /// None known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The class of an object.
    pub fn class(&self, client: u32, handle: u32) -> Option<u32> {
        self.0.get(&(client, handle)).or_else(|| self.0.get(&(handle, handle))).copied()
    }

    /// Notes an object.
    pub fn insert(&mut self, client: u32, handle: u32, class: u32) {
        self.0.insert((client, handle), class);
    }

    /// Forgets an object; with its client, all of the client's.
    pub fn remove(&mut self, client: u32, handle: u32) {
        if client == handle {
            self.0.retain(|(of, _), _| *of != client);
        }
        self.0.remove(&(client, handle));
    }
}

/// One call on a device node, as it crossed the boundary. Bytes that were not recorded are empty slices.
#[derive(Clone, Copy, Debug)]
pub struct KernelCall<'a> {
    /// The node of its descriptor.
    pub node: Node,
    /// The request word.
    pub request: u32,
    /// The argument before the call.
    pub before: &'a [u8],
    /// The argument after it; the same as before where only one was recorded.
    pub after: &'a [u8],
    /// What the argument's parameter pointer pointed to, before.
    pub nested_before: &'a [u8],
    /// The same after.
    pub nested_after: &'a [u8],
}

/// A field before and after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Before.
    pub before: FieldValue,
    /// After, where the call changed it.
    pub after: Option<FieldValue>,
}

/// One struct of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The struct's name, or what the bytes are where no row describes them.
    pub name: String,
    /// Its size in bytes in this driver branch, or how many bytes there are.
    pub bytes: usize,
    /// Bytes that were recorded, where these are fewer.
    pub recorded: Option<usize>,
    /// Every field that is not zero before or after.
    pub rows: Vec<Row>,
    /// The bytes after the call, where no row describes them.
    pub raw: Vec<u8>,
}

/// A decoded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedCall {
    /// The call's name.
    pub name: String,
    /// Whether the call has a row.
    pub known: bool,
    /// The class of an allocation or the command of a control, by name.
    pub subject: Option<String>,
    /// Whether the subject has a row.
    pub subject_known: bool,
    /// What the argument's status field says after the call.
    pub status: Option<Status>,
    /// The argument, then what it points to.
    pub parts: Vec<Part>,
}

impl DecodedCall {
    /// Adds what no row explains to a count.
    pub fn count_unknown(&self, unknowns: &mut Unknowns) {
        if !self.known {
            unknowns.add(&self.name);
        }
        if let (Some(subject), false) = (&self.subject, self.subject_known) {
            unknowns.add(subject);
        }
        for part in self.parts.iter().filter(|part| !part.raw.is_empty()) {
            unknowns.add(format!("fields of {}", part.name));
        }
    }

    /// The call in one line, without its fields.
    pub fn title(&self) -> String {
        let mut line = self.name.clone();
        if let Some(subject) = &self.subject {
            let _ = write!(line, " {subject}");
        }
        if let Some(status) = self.status {
            let _ = write!(line, ": {status}");
        }
        line
    }
}

/// Decodes a call. Objects that it makes or frees are noted in `handles`, and handles are shown as what they are.
pub fn kernel_call(call: &KernelCall<'_>, branch: Branch, handles: &mut Handles) -> DecodedCall {
    let mut decoded = if call.node == Node::Uvm { uvm_call(call, branch) } else { frontend(call, branch) };
    let client = client(&decoded).unwrap_or(0);
    note_new(&decoded, client, handles);
    for part in &mut decoded.parts {
        for row in &mut part.rows {
            name_handle(&mut row.before, client, handles);
            if let Some(after) = &mut row.after {
                name_handle(after, client, handles);
            }
        }
    }
    note_old(&decoded, client, handles);
    decoded
}

/// The number of a field in the first part: after the call, where it changed.
fn number(decoded: &DecodedCall, name: &str) -> Option<u64> {
    let row = decoded.parts.first()?.rows.iter().find(|row| row.before.name == name)?;
    Some(row.after.as_ref().unwrap_or(&row.before).number)
}

fn client(decoded: &DecodedCall) -> Option<u32> {
    ["hClient", "hRoot"].into_iter().find_map(|name| number(decoded, name)).map(|handle| handle as u32)
}

fn failed(decoded: &DecodedCall) -> bool {
    decoded.status.is_some_and(|status| !status.is_ok())
}

/// Notes an object that the call made.
fn note_new(decoded: &DecodedCall, client: u32, handles: &mut Handles) {
    let handle = |name| number(decoded, name).map(|handle| handle as u32);
    if let (Some(new), Some(class), false) = (handle("hObjectNew"), handle("hClass"), failed(decoded)) {
        // A root object is its own client.
        handles.insert(if client == 0 { new } else { client }, new, class);
    }
}

/// Forgets an object that the call freed.
fn note_old(decoded: &DecodedCall, client: u32, handles: &mut Handles) {
    if let (Some(old), false) = (number(decoded, "hObjectOld"), failed(decoded)) {
        let old = old as u32;
        handles.remove(if client == 0 { old } else { client }, old);
    }
}

fn name_handle(field: &mut FieldValue, client: u32, handles: &Handles) {
    if field.kind == Some(Kind::Handle)
        && field.number != 0
        && let Some(class) = handles.class(client, field.number as u32)
    {
        let _ = write!(field.text, " ({})", super::class_name(class));
    }
}

fn frontend(call: &KernelCall<'_>, branch: Branch) -> DecodedCall {
    let number = nr(call.request);
    let row = escape(number);
    let mut decoded = DecodedCall {
        name: row.map_or_else(|| format!("ioctl {number:#04x}"), |row| row.name.to_owned()),
        known: row.is_some(),
        subject: None,
        subject_known: true,
        status: None,
        parts: Vec::new(),
    };
    if number == ioctl::NV_ESC_CARD_INFO {
        decoded.parts = cards(call, branch);
        return decoded;
    }
    let of = ioctl::argument(number, call.before.len(), branch);
    let name = decoded.name.clone();
    decoded.parts.push(part(&format!("the argument of {name}"), of, branch, call.before, call.after));
    decoded.status = status(of, branch, call.after);
    let value = |field: &str| self::number(&decoded, field).map(|number| number as u32);
    if number == ioctl::NV_ESC_RM_CONTROL {
        let command = value("cmd").unwrap_or(0);
        let row = control::control(command);
        decoded.subject =
            Some(row.map_or_else(|| format!("command {command:#010x}"), |row| row.name.to_owned()));
        decoded.subject_known = row.is_some();
        if !call.nested_before.is_empty() || !call.nested_after.is_empty() {
            let name = decoded.subject.clone().unwrap_or_default();
            let of = row.and_then(|row| row.parameters);
            let name = format!("the parameters of {name}");
            decoded.parts.push(part(&name, of, branch, call.nested_before, call.nested_after));
        }
    } else if let Some(number) = value("hClass") {
        let row = class::class(number);
        decoded.subject = Some(super::class_name(number));
        decoded.subject_known = row.is_some();
        let of = row.and_then(|row| row.parameters.rows());
        if !call.nested_before.is_empty() || !call.nested_after.is_empty() {
            let name = format!("the parameters of {}", super::class_name(number));
            decoded.parts.push(part(&name, of, branch, call.nested_before, call.nested_after));
        }
    }
    decoded
}

/// CARD_INFO's argument is an array with one entry per GPU.
fn cards(call: &KernelCall<'_>, branch: Branch) -> Vec<Part> {
    let of = &nv_ioctl_card_info_t::STRUCT;
    let size = of.size(branch);
    let valid = |entry: &&[u8]| entry.first().is_some_and(|valid| *valid != 0);
    let used: Vec<Part> = call
        .after
        .chunks_exact(size)
        .filter(valid)
        .map(|entry| part(of.name, Some(of), branch, entry, entry))
        .collect();
    if used.is_empty() {
        return vec![Part {
            name: format!("{}, none valid", of.name),
            bytes: call.after.len(),
            recorded: None,
            rows: Vec::new(),
            raw: Vec::new(),
        }];
    }
    used
}

fn uvm_call(request: &KernelCall<'_>, branch: Branch) -> DecodedCall {
    let row = call(request.request);
    let name = row.map_or_else(|| format!("UVM call {:#x}", request.request), |row| row.name.to_owned());
    let of = row.and_then(|row| row.argument);
    let mut parts = Vec::new();
    if of.is_some() || row.is_none() {
        parts.push(part(&format!("the argument of {name}"), of, branch, request.before, request.after));
    }
    let status = status(of, branch, request.after);
    DecodedCall { name, known: row.is_some(), subject: None, subject_known: true, status, parts }
}

/// The argument's status field after the call.
fn status(of: Option<&'static Struct>, branch: Branch, after: &[u8]) -> Option<Status> {
    let of = of?;
    let record = Record::padded(of, branch, after);
    let field = of.status()?;
    // A status that was not recorded is no status.
    let end = field.offset(branch)? as usize + 4;
    (end <= after.len()).then(|| record.get(field).ok().map(Status::from))?
}

fn part(name: &str, of: Option<&'static Struct>, branch: Branch, before: &[u8], after: &[u8]) -> Part {
    // Where only one side was recorded, nothing is known to have changed.
    let after = if after.is_empty() { before } else { after };
    let before = if before.is_empty() { after } else { before };
    let Some(of) = of else {
        return Part {
            name: name.to_owned(),
            bytes: after.len(),
            recorded: None,
            rows: Vec::new(),
            raw: after.to_vec(),
        };
    };
    let size = of.size(branch);
    let old = values(&Record::padded(of, branch, before));
    let mut new = values(&Record::padded(of, branch, after));
    let mut rows = Vec::new();
    for before in old {
        let after = new
            .iter()
            .position(|after| after.name == before.name && after.position == before.position)
            .map(|index| new.remove(index));
        if before.number != 0 || !before.text.is_empty() || after.is_some() {
            let zero = || FieldValue { number: 0, text: "0".to_owned(), ..before.clone() };
            let after = after.unwrap_or_else(zero);
            let after = (after.text != before.text).then_some(after);
            rows.push(Row { before, after });
        }
    }
    for after in new {
        let before = FieldValue { number: 0, text: "0".to_owned(), ..after.clone() };
        rows.push(Row { before, after: Some(after) });
    }
    rows.sort_by_key(|row| row.before.position);
    let recorded = before.len().max(after.len());
    Part {
        name: of.name.to_owned(),
        bytes: size,
        recorded: (recorded < size).then_some(recorded),
        rows,
        raw: Vec::new(),
    }
}

/// Every field of a struct that is not zero, by offset. Arrays of bytes are one value: a text where they are one.
fn values(record: &Record) -> Vec<FieldValue> {
    let branch = record.branch();
    let mut found = Vec::new();
    for field in record.of().fields {
        let Some(offset) = field.offset(branch) else { continue };
        let count = field.count(branch);
        // Rows lie inside their structs (asserted where they are declared), so no read can fail.
        let get = |index| record.get_at(field, index).unwrap_or(0);
        let stride = field.stride(branch);
        if count > 1 && field.kind == Kind::Unsigned(1) && stride == 1 {
            let bytes = record.byte_array(field).unwrap_or_default();
            if bytes.iter().any(|byte| *byte != 0) {
                let mut low = [0; 8];
                let head = bytes.len().min(8);
                low[..head].copy_from_slice(&bytes[..head]);
                found.push(FieldValue {
                    name: field.name.to_owned(),
                    position: offset,
                    number: u64::from_le_bytes(low),
                    text: byte_text(&bytes),
                    kind: Some(field.kind),
                    known: true,
                });
            }
            continue;
        }
        for index in 0..count {
            let number = get(index);
            if number == 0 {
                continue;
            }
            let name = if count == 1 { field.name.to_owned() } else { format!("{}[{index}]", field.name) };
            found.push(FieldValue {
                name,
                position: offset + index * stride,
                number,
                text: value(field.kind, number),
                kind: Some(field.kind),
                known: true,
            });
        }
    }
    found
}

/// A zero-terminated text in quotes, or hexadecimal bytes without the zeroes at the end.
fn byte_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(end);
    if !text.is_empty()
        && rest.iter().all(|byte| *byte == 0)
        && text.iter().all(|byte| (0x20..0x7f).contains(byte))
    {
        return format!("{:?}", String::from_utf8_lossy(text));
    }
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..end].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn value(kind: Kind, number: u64) -> String {
    let named = |name: Option<&'static str>| match name {
        Some(name) => format!("{number:#x} ({name})"),
        None => format!("{number:#x}"),
    };
    let signed = |bytes: u32| {
        let shift = 64 - 8 * bytes;
        (((number << shift) as i64) >> shift).to_string()
    };
    match kind {
        Kind::Status => Status(number as u32).to_string(),
        Kind::Class => named(class::class(number as u32).map(|class| class.name)),
        Kind::Command => named(control::control(number as u32).map(|control| control.name)),
        Kind::Descriptor => signed(kind.bytes()),
        Kind::Signed(bytes) => signed(bytes),
        Kind::Bool => "true".to_owned(),
        Kind::Handle | Kind::Pointer => format!("{number:#x}"),
        Kind::Unsigned(_) if number < 10 => number.to_string(),
        Kind::Unsigned(_) => format!("{number:#x}"),
    }
}

/// A struct: every field that is not zero.
pub fn record(record: &Record) -> String {
    let branch = record.branch();
    let mut out = format!("{}, {} bytes, driver branch {branch}\n", record.of().name, record.bytes().len());
    for FieldValue { name, position, text, .. } in values(record) {
        let _ = writeln!(out, "  {position:#06x}  {name:<32}  {text}");
    }
    out
}

/// The array's name and the index in the name of an element.
fn array_element(name: &str) -> Option<(&str, &str)> {
    let (array, rest) = name.split_once('[')?;
    Some((array, rest.strip_suffix(']')?))
}

fn array(name: &str) -> Option<&str> {
    array_element(name).map(|(array, _)| array)
}

/// A decoded call as text: a title, then each struct with its fields, `before -> after` where the call changed one.
pub fn kernel_call_text(decoded: &DecodedCall) -> String {
    let mut out = decoded.title() + "\n";
    for part in &decoded.parts {
        let _ = write!(out, "  {}, {} bytes", part.name, part.bytes);
        if let Some(recorded) = part.recorded {
            let _ = write!(out, ", {recorded} recorded");
        }
        out.push('\n');
        let mut rows = part.rows.iter().peekable();
        while let Some(row) = rows.next() {
            let FieldValue { name, position, text, .. } = &row.before;
            let after = row.after.as_ref().map(|after| &after.text);
            // Elements after it that say the same.
            let (mut name, mut last) = (name.clone(), row);
            while let Some(next) = rows.next_if(|next| {
                array(&next.before.name).is_some()
                    && array(&next.before.name) == array(&row.before.name)
                    && next.before.text == *text
                    && next.after.as_ref().map(|after| &after.text) == after
            }) {
                last = next;
            }
            if let (Some((_, end)), false) = (array_element(&last.before.name), std::ptr::eq(last, row)) {
                name = name.replace(']', &format!("..={end}]"));
            }
            let _ = write!(out, "    {position:#06x}  {name:<28}  {text}");
            if let Some(after) = after {
                let _ = write!(out, " -> {after}");
            }
            out.push('\n');
        }
        hex_block(&mut out, 4, &words(&part.raw));
    }
    out
}

/// A frontend ioctl with its argument.
pub fn ioctl(request: u32, branch: Branch, bytes: &[u8]) -> String {
    let text = kernel_call_text(&one(Node::Ctl, request, branch, bytes));
    let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{title} (request {request:#010x}, {} bytes)\n{rest}", size(request))
}

/// A call of the UVM node with its argument.
pub fn uvm(request: u32, branch: Branch, bytes: &[u8]) -> String {
    kernel_call_text(&one(Node::Uvm, request, branch, bytes))
}

fn one(node: Node, request: u32, branch: Branch, bytes: &[u8]) -> DecodedCall {
    let call =
        KernelCall { node, request, before: bytes, after: bytes, nested_before: &[], nested_after: &[] };
    kernel_call(&call, branch, &mut Handles::new())
}
