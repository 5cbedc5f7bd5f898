//! Ring entries and pushbuffer segments, decoded and as text.

use std::{borrow::Cow, fmt::Write};

use super::{FieldValue, Unknowns, hex_block, is_hexadecimal, uncovered, value};
use crate::{
    Bits,
    arch::Generation,
    gpfifo::{Entry, GP_ENTRY},
    host,
    method::{ClassTable, Form, Header, HeaderError, Method, class_table},
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

    /// The class of a subchannel.
    pub fn class(&self, subchannel: u8) -> Option<u32> {
        self.bound.get(usize::from(subchannel)).copied().flatten()
    }

    /// The table that an address of a subchannel belongs to: the channel's own below 0x100.
    pub fn table(&self, subchannel: u8, address: u32) -> Option<&'static ClassTable> {
        if address < host::METHODS_END { Some(self.host) } else { class_table(self.class(subchannel)?) }
    }

    fn owner(&self, subchannel: u8, address: u32) -> Cow<'static, str> {
        if address < host::METHODS_END {
            return "host".into();
        }
        self.class(subchannel).map_or("no class bound".into(), class_word)
    }
}

fn class_word(number: u32) -> Cow<'static, str> {
    let name =
        class_table(number).map(|table| table.name).or_else(|| class::class(number).map(|class| class.name));
    name.map_or_else(|| format!("class {number:#06x}").into(), Cow::Borrowed)
}

/// The vendor's name of a class, or its number.
pub fn class_name(number: u32) -> String {
    class_word(number).into_owned()
}

/// One data word with the method it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Byte offset of the word in the segment.
    pub offset: usize,
    /// The word; of immediate data the 13 bits.
    pub word: u32,
    /// The method's byte address.
    pub address: u32,
    /// The row of the method, and which of its elements; `None` if the class has no such method or none is bound.
    pub method: Option<(&'static Method, u32)>,
}

impl Call {
    fn new(subchannels: &Subchannels, header: &Header, offset: usize, index: u32, word: u32) -> Self {
        let address = header.address_of(index);
        let table = subchannels.table(header.subchannel, address);
        let method = table.and_then(|table| table.method(address));
        Self { offset, word, address, method }
    }

    /// The word's fields; the first, and those that are not zero.
    pub fn fields(&self) -> Vec<FieldValue> {
        self.method.map_or_else(Vec::new, |(method, _)| fields(method, self.word))
    }

    /// The method's name, with the element's index where it has several.
    pub fn name(&self) -> String {
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

    /// The word in terms of its fields.
    pub fn text(&self) -> String {
        if self.method.is_none() {
            return format!("{:#x}", self.word);
        }
        let part = |field: &FieldValue| match field.name.as_str() {
            "V" | "VALUE" | "" => field.text.clone(),
            name => format!("{name}={}", field.text),
        };
        self.fields().iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

fn fields(method: &Method, word: u32) -> Vec<FieldValue> {
    let bytes = word.to_le_bytes();
    let bits = Bits::new(&bytes);
    let mut found = Vec::new();
    for (index, field) in method.layout.fields.iter().enumerate() {
        let hexadecimal = field.name == "VALUE" && is_hexadecimal(method.name);
        // Rows of methods lie inside 32 bits (asserted where they are declared), so no read can fail.
        let Ok(mut value) = FieldValue::of(field, 0, &bits, hexadecimal) else { continue };
        if index != 0 && value.number == 0 {
            continue;
        }
        if field.name == "NVCLASS" || field.name == "CLASS_ID" {
            let _ = write!(value.text, " ({})", class_name(value.number as u32));
        }
        found.push(value);
    }
    for (_, rest) in uncovered(&bytes, method.layout.fields) {
        found.push(FieldValue {
            name: String::new(),
            position: rest.trailing_zeros(),
            number: rest.into(),
            text: format!("bits {rest:#x} (no such field)"),
            kind: None,
            known: false,
        });
    }
    found
}

/// A header with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Byte offset of the header in the segment.
    pub offset: usize,
    /// The header word.
    pub word: u32,
    /// The decoded header, or why it is none; nothing after a bad one is decoded.
    pub header: Result<Header, HeaderError>,
    /// Whom the methods belong to: `host`, a class's name, or `no class bound`.
    pub owner: Cow<'static, str>,
    /// The data words. Immediate data is one word.
    pub calls: Vec<Call>,
    /// Words of a run of zero headers, which do nothing; 0 for any other header.
    pub zeroes: usize,
    /// Words that the header announces and the segment lacks.
    pub missing: usize,
    /// Words after an END_PB_SEGMENT, which the host does not read.
    pub unread: Vec<u32>,
}

impl Packet {
    /// Adds what no row explains to a count.
    pub fn count_unknown(&self, unknowns: &mut Unknowns) {
        if let Err(error) = &self.header {
            unknowns.add(error.to_string());
        }
        if self.missing > 0 {
            unknowns.add(format!("header at the end of a segment, {} words too early", self.missing));
        }
        for call in &self.calls {
            match call.method {
                None => unknowns.add(format!("method {:#06x} of {}", call.address, self.owner)),
                Some((method, _)) => {
                    for field in call.fields().iter().filter(|field| !field.known) {
                        unknowns.add(format!("{} {}: {}", method.name, field.name, field.text));
                    }
                }
            }
        }
    }
}

/// The packets of a segment. SET_OBJECT changes `subchannels`.
pub fn packets(segment: &[u32], subchannels: &mut Subchannels) -> Vec<Packet> {
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(&word) = segment.get(next) {
        let mut packet = Packet {
            offset: next * 4,
            word,
            header: Header::decode(word),
            owner: Cow::Borrowed(""),
            calls: Vec::new(),
            zeroes: 0,
            missing: 0,
            unread: Vec::new(),
        };
        next += 1;
        let Ok(header) = &packet.header else {
            found.push(packet);
            break;
        };
        if word == 0 {
            packet.zeroes = 1 + segment[next..].iter().take_while(|&&word| word == 0).count();
            next += packet.zeroes - 1;
            found.push(packet);
            continue;
        }
        packet.owner = subchannels.owner(header.subchannel, header.address);
        let available = &segment[next..];
        let data = &available[..available.len().min(header.count as usize)];
        match header.form {
            Form::Immediate(data) => {
                packet.calls.push(Call::new(subchannels, header, packet.offset, 0, data.into()));
            }
            Form::EndSegment => packet.unread = available.to_vec(),
            _ => {
                for (index, &word) in (0..).zip(data) {
                    let offset = (next + index as usize) * 4;
                    packet.calls.push(Call::new(subchannels, header, offset, index, word));
                }
                packet.missing = header.count as usize - data.len();
                next += data.len();
            }
        }
        for call in &packet.calls {
            if call.address == 0 {
                subchannels.bind(header.subchannel, call.word & 0xffff);
            }
        }
        let ends = header.form == Form::EndSegment;
        found.push(packet);
        if ends {
            break;
        }
    }
    found
}

/// A pushbuffer segment: per word its byte offset, the raw word, and what it means. SET_OBJECT changes `subchannels`.
pub fn pushbuffer(segment: &[u32], subchannels: &mut Subchannels) -> String {
    packets(segment, subchannels).iter().map(packet).collect()
}

/// The text of one packet.
pub fn packet(packet: &Packet) -> String {
    let Packet { offset, word, owner, .. } = packet;
    let mut out = format!("{offset:04x}  {word:08x}  ");
    let header = match &packet.header {
        Ok(header) => header,
        Err(error) => {
            let _ = writeln!(out, "{error}");
            return out;
        }
    };
    if packet.zeroes > 0 {
        let _ = writeln!(out, "no operation, {} words", packet.zeroes);
        return out;
    }
    let subchannel = header.subchannel;
    let form = match header.form {
        Form::Increment => "increment",
        Form::NonIncrement => "non-increment",
        Form::IncrementOnce => "increment once",
        Form::OldIncrement => "old increment",
        Form::OldNonIncrement => "old non-increment",
        Form::Immediate(_) => {
            let call =
                packet.calls.first().map_or_else(String::new, |c| format!("{} {}", c.name(), c.text()));
            let _ = writeln!(out, "subchannel {subchannel}, {owner}, immediate: {call}");
            return out;
        }
        Form::SetSubDeviceMask(mask) => {
            let _ = writeln!(out, "set sub-device mask {mask:#x}");
            return out;
        }
        Form::StoreSubDeviceMask(mask) => {
            let _ = writeln!(out, "store sub-device mask {mask:#x}");
            return out;
        }
        Form::UseSubDeviceMask => {
            let _ = writeln!(out, "use sub-device mask");
            return out;
        }
        Form::EndSegment => {
            let _ = writeln!(out, "end of segment");
            if !packet.unread.is_empty() {
                let _ = writeln!(out, "      not executed:");
                hex_block(&mut out, 6, &packet.unread);
            }
            return out;
        }
    };
    let plural = if header.count == 1 { "" } else { "s" };
    let _ = writeln!(out, "subchannel {subchannel}, {owner}, {form}, {} word{plural}", header.count);
    write_calls(&mut out, &packet.calls);
    if packet.missing > 0 {
        let _ = writeln!(out, "      the segment ends here, {} words too early", packet.missing);
    }
    out
}

/// Data words that go to one method are shown as a block from this many on.
const BLOCK: usize = 4;

fn write_calls(out: &mut String, calls: &[Call]) {
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
            let line = format!(
                "{:04x}  {:08x}    {:name_width$}  {}",
                first.offset,
                first.word,
                first.name(),
                first.text()
            );
            let _ = writeln!(out, "{}", line.trim_end());
            rest = &rest[1..];
        }
    }
}
