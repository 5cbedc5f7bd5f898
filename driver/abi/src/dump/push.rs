//! Ring entries and pushbuffer segments as text.

use std::fmt::Write;

use super::{hex_block, is_hexadecimal, uncovered, value};
use crate::{
    Bits,
    arch::Generation,
    gpfifo::{Entry, GP_ENTRY},
    host,
    method::{ClassTable, Form, Header, Method, class_table},
    rm::class,
};

/// A ring entry in one line.
pub fn entry(raw: u64) -> String {
    match Entry::decode(raw) {
        Entry::Segment { address, length, subroutine, sync, conditional } => {
            let mut text = format!("segment {address:#x}, {length} words");
            for (set, name) in
                [(subroutine, "subroutine"), (sync, "after the one before"), (conditional, "conditional")]
            {
                if set {
                    let _ = write!(text, ", {name}");
                }
            }
            text
        }
        Entry::Control { opcode, operand } => {
            format!("control {}, operand {operand:#x}", value(&GP_ENTRY::OPCODE, opcode.into(), false))
        }
    }
}

/// Which class each subchannel of a channel speaks to: the state that a dump carries from segment to segment.
#[derive(Clone, Debug)]
pub struct Subchannels {
    host: &'static ClassTable,
    bound: [Option<u32>; 8],
}

impl Subchannels {
    /// Nothing bound yet, on a channel of this generation.
    pub fn new(generation: Generation) -> Self {
        Self { host: generation.host_methods(), bound: [None; 8] }
    }

    /// As if SET_OBJECT with this class had been sent. A subchannel above 7 does not exist and is left alone.
    pub fn bind(&mut self, subchannel: u8, class: u32) {
        if let Some(bound) = self.bound.get_mut(usize::from(subchannel)) {
            *bound = Some(class);
        }
    }

    fn class(&self, subchannel: u8) -> Option<u32> {
        self.bound.get(usize::from(subchannel)).copied().flatten()
    }

    /// The table that an address of a subchannel belongs to: the channel's own below 0x100.
    fn table(&self, subchannel: u8, address: u32) -> Option<&'static ClassTable> {
        if address < host::METHODS_END { Some(self.host) } else { class_table(self.class(subchannel)?) }
    }

    fn owner(&self, subchannel: u8, address: u32) -> String {
        if address < host::METHODS_END {
            return format!("subchannel {subchannel}, host");
        }
        match self.class(subchannel) {
            None => format!("subchannel {subchannel}, no class bound"),
            Some(number) => format!("subchannel {subchannel}, {}", class_name(number)),
        }
    }
}

fn class_name(number: u32) -> String {
    let name =
        class_table(number).map(|table| table.name).or_else(|| class::class(number).map(|class| class.name));
    name.map_or_else(|| format!("class {number:#06x}"), str::to_owned)
}

/// One data word with the method it goes to.
struct Call<'a> {
    offset: usize,
    word: u32,
    address: u32,
    method: Option<(&'a Method, u32)>,
}

impl Call<'_> {
    fn name(&self) -> String {
        match self.method {
            None => format!("{:#06x} (no such method)", self.address),
            Some((method, element)) if method.count > 1 => format!("{}[{element}]", method.name),
            Some((method, _)) => method.name.to_owned(),
        }
    }

    /// Plain data: one field of all bits.
    fn is_data_of(&self, other: &Self) -> bool {
        let plain =
            |call: &Self| call.method.filter(|(m, _)| m.layout.fields.iter().all(|f| f.width() == 32));
        match (plain(self), plain(other)) {
            (Some((a, _)), Some((b, _))) => a.name == b.name,
            _ => false,
        }
    }

    fn fields(&self) -> String {
        let Some((method, _)) = self.method else { return format!("{:#x}", self.word) };
        let bytes = self.word.to_le_bytes();
        let bits = Bits::new(&bytes);
        let mut parts = Vec::new();
        for (index, field) in method.layout.fields.iter().enumerate() {
            // Rows of methods lie inside 32 bits (asserted where they are declared), so no read can fail.
            let number = bits.get(field).unwrap_or(0);
            if index != 0 && number == 0 {
                continue;
            }
            let hexadecimal = field.name == "VALUE" && is_hexadecimal(method.name);
            let mut text = value(field, number, hexadecimal);
            if field.name == "NVCLASS" || field.name == "CLASS_ID" {
                let _ = write!(text, " ({})", class_name(number as u32));
            }
            parts.push(if ["V", "VALUE"].contains(&field.name) {
                text
            } else {
                format!("{}={text}", field.name)
            });
        }
        for (_, rest) in uncovered(&bytes, method.layout.fields) {
            parts.push(format!("bits {rest:#x} (no such field)"));
        }
        parts.join(" ")
    }
}

/// Data words that go to one method are shown as a block from this many on.
const BLOCK: usize = 4;

/// A pushbuffer segment: per word its byte offset, the raw word, and what it means. SET_OBJECT changes `subchannels`.
pub fn pushbuffer(segment: &[u32], subchannels: &mut Subchannels) -> String {
    let mut out = String::new();
    let mut next = 0;
    while let Some(&word) = segment.get(next) {
        let offset = next * 4;
        next += 1;
        let header = match Header::decode(word) {
            Ok(header) => header,
            Err(error) => {
                let _ = writeln!(out, "{offset:04x}  {word:08x}  {error}");
                break;
            }
        };
        if word == 0 {
            let zeroes = segment[next..].iter().take_while(|&&word| word == 0).count();
            next += zeroes;
            let _ = writeln!(out, "{offset:04x}  {word:08x}  no operation, {} words", zeroes + 1);
            continue;
        }
        let owner = subchannels.owner(header.subchannel, header.address);
        let available = &segment[next..];
        let data = &available[..available.len().min(header.count as usize)];
        let form = match header.form {
            Form::Increment => "increment",
            Form::NonIncrement => "non-increment",
            Form::IncrementOnce => "increment once",
            Form::OldIncrement => "old increment",
            Form::OldNonIncrement => "old non-increment",
            Form::Immediate(data) => {
                let call = call(subchannels, &header, offset, 0, data.into());
                if call.address == 0 {
                    subchannels.bind(header.subchannel, call.word);
                }
                let _ = writeln!(
                    out,
                    "{offset:04x}  {word:08x}  {owner}, immediate: {} {}",
                    call.name(),
                    call.fields()
                );
                continue;
            }
            Form::SetSubDeviceMask(mask) => {
                let _ = writeln!(out, "{offset:04x}  {word:08x}  set sub-device mask {mask:#x}");
                continue;
            }
            Form::StoreSubDeviceMask(mask) => {
                let _ = writeln!(out, "{offset:04x}  {word:08x}  store sub-device mask {mask:#x}");
                continue;
            }
            Form::UseSubDeviceMask => {
                let _ = writeln!(out, "{offset:04x}  {word:08x}  use sub-device mask");
                continue;
            }
            Form::EndSegment => {
                let _ = writeln!(out, "{offset:04x}  {word:08x}  end of segment");
                if !available.is_empty() {
                    let _ = writeln!(out, "      not executed:");
                    hex_block(&mut out, 6, available);
                }
                break;
            }
        };
        let plural = if header.count == 1 { "" } else { "s" };
        let _ = writeln!(out, "{offset:04x}  {word:08x}  {owner}, {form}, {} word{plural}", header.count);
        let mut calls: Vec<Call<'_>> = Vec::new();
        for (index, &word) in (0..).zip(data) {
            let call = call(subchannels, &header, (next + index as usize) * 4, index, word);
            if call.address == 0 {
                subchannels.bind(header.subchannel, word & 0xffff);
            }
            calls.push(call);
        }
        next += data.len();
        write_calls(&mut out, &calls);
        if data.len() < header.count as usize {
            let _ = writeln!(
                out,
                "      the segment ends here, {} words too early",
                header.count as usize - data.len()
            );
        }
    }
    out
}

fn call(subchannels: &Subchannels, header: &Header, offset: usize, index: u32, word: u32) -> Call<'static> {
    let address = header.address_of(index);
    let table = subchannels.table(header.subchannel, address);
    Call { offset, word, address, method: table.and_then(|table| table.method(address)) }
}

fn write_calls(out: &mut String, calls: &[Call<'_>]) {
    let mut rest = calls;
    let name_width = calls.iter().take(64).map(|call| call.name().len()).max().unwrap_or(0).min(40);
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|call| first.is_data_of(call)).count();
        if run >= BLOCK {
            let (block, after) = rest.split_at(run);
            let data: Vec<u32> = block.iter().map(|call| call.word).collect();
            let name = first.method.map_or("", |(method, _)| method.name);
            let _ = writeln!(out, "{:04x}              {name}, {} bytes", first.offset, run * 4);
            hex_block(out, 18, &data);
            rest = after;
        } else {
            let _ = writeln!(
                out,
                "{:04x}  {:08x}    {:name_width$}  {}",
                first.offset,
                first.word,
                first.name(),
                first.fields()
            );
            rest = &rest[1..];
        }
    }
}
