//! Source lines of machine code, from the `.debug_line` section that `nvcc -lineinfo` leaves in a cubin.
//!
//! A DWARF line program of version 2 or 3. Each of its sequences begins with an address that is relocated to a function.

use std::collections::BTreeMap;

use goblin::elf::Elf;

/// Lines of the functions of a cubin.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// By function and byte offset in it: the index of the file, and the line.
    rows: BTreeMap<(String, u64), (usize, u64)>,
    files: Vec<String>,
}

/// Bytes that are read from front to back.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(self.take(bytes)?);
        Some(u64::from_le_bytes(all))
    }

    /// LEB128, signed where `signed`.
    fn leb(&mut self, signed: bool) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.number(1)?;
            if shift < 64 {
                value |= (byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if signed && shift < 64 && byte & 0x40 != 0 {
                    value |= u64::MAX << shift;
                }
                return Some(value as i64);
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        self.at += end + 1;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

// Opcodes of the line program, by the names of the DWARF standard.
const DW_LNE_END_SEQUENCE: u64 = 1;
const DW_LNE_SET_ADDRESS: u64 = 2;
const DW_LNS_COPY: u8 = 1;
const DW_LNS_ADVANCE_PC: u8 = 2;
const DW_LNS_ADVANCE_LINE: u8 = 3;
const DW_LNS_SET_FILE: u8 = 4;
const DW_LNS_CONST_ADD_PC: u8 = 8;
const DW_LNS_FIXED_ADVANCE_PC: u8 = 9;

impl Lines {
    /// The lines of a cubin; none where it has none, or in a form that is not read here.
    pub fn of(cubin: &[u8]) -> Self {
        let mut lines = Self::default();
        // What was read before something odd stays.
        let _ = lines.read(cubin);
        lines
    }

    /// The source line of an instruction: of the row at its offset or the next one below.
    pub fn find(&self, function: &str, offset: u64) -> Option<(&str, u64)> {
        let start = (function.to_owned(), 0);
        let (_, (file, line)) = self.rows.range(start..=(function.to_owned(), offset)).next_back()?;
        Some((self.files.get(*file)?, *line))
    }

    fn read(&mut self, cubin: &[u8]) -> Option<()> {
        let elf = Elf::parse(cubin).ok()?;
        let name = |index: usize| elf.shdr_strtab.get_at(index).unwrap_or("");
        let section = |wanted: &str| elf.section_headers.iter().find(|s| name(s.sh_name) == wanted);
        let bytes = |section: &goblin::elf::SectionHeader| cubin.get(section.file_range()?);
        let program = bytes(section(".debug_line")?)?;
        // Where an address stands in the program: the function that it is of.
        let mut functions = BTreeMap::new();
        let relocations = bytes(section(".rel.debug_line")?)?;
        for entry in relocations.as_chunks::<16>().0 {
            let mut reader = Reader { bytes: entry, at: 0 };
            let (place, info) = (reader.number(8)?, reader.number(8)?);
            let symbol = elf.syms.get((info >> 32) as usize)?;
            functions.insert(place as usize, elf.strtab.get_at(symbol.st_name)?.to_owned());
        }
        let mut reader = Reader { bytes: program, at: 0 };
        while reader.at < program.len() {
            self.unit(&mut reader, &functions)?;
        }
        Some(())
    }

    /// One compilation unit's program.
    fn unit(&mut self, reader: &mut Reader<'_>, functions: &BTreeMap<usize, String>) -> Option<()> {
        let length = reader.number(4)? as usize;
        let end = reader.at.checked_add(length)?;
        let version = reader.number(2)?;
        if !(2..=3).contains(&version) {
            reader.at = end;
            return Some(());
        }
        let header = reader.number(4)? as usize;
        let program = reader.at.checked_add(header)?;
        let unit = reader.number(1)?;
        let _is_statement = reader.number(1)?;
        let base = reader.number(1)? as u8 as i8;
        let range = reader.number(1)?.max(1);
        let opcodes = reader.number(1)?.max(1);
        let operands = reader.take(opcodes as usize - 1)?;
        while !reader.text()?.is_empty() {}
        let first = self.files.len();
        loop {
            let file = reader.text()?;
            if file.is_empty() {
                break;
            }
            // Directory, time, size.
            for _ in 0..3 {
                reader.leb(false)?;
            }
            self.files.push(file);
        }
        reader.at = program;
        let (mut function, mut address, mut file, mut line) = (None, 0_u64, 1_usize, 1_i64);
        while reader.at < end {
            let opcode = reader.number(1)? as u8;
            let mut row = false;
            match opcode {
                0 => {
                    let length = reader.leb(false)? as usize;
                    let next = reader.at.checked_add(length)?;
                    match reader.number(1)? {
                        DW_LNE_END_SEQUENCE => (function, address, file, line) = (None, 0, 1, 1),
                        DW_LNE_SET_ADDRESS => {
                            function = functions.get(&reader.at).cloned();
                            address = reader.number(8)?;
                        }
                        // Inlined calls, which NVIDIA has opcodes of its own for, and the like.
                        _ => {}
                    }
                    reader.at = next;
                }
                DW_LNS_COPY => row = true,
                DW_LNS_ADVANCE_PC => address = address.wrapping_add(reader.leb(false)? as u64 * unit),
                DW_LNS_ADVANCE_LINE => line += reader.leb(true)?,
                DW_LNS_SET_FILE => file = reader.leb(false)? as usize,
                DW_LNS_CONST_ADD_PC => address += (255 - opcodes) / range * unit,
                DW_LNS_FIXED_ADVANCE_PC => address += reader.number(2)?,
                _ if u64::from(opcode) < opcodes => {
                    for _ in 0..*operands.get(usize::from(opcode) - 1)? {
                        reader.leb(false)?;
                    }
                }
                special => {
                    let adjusted = u64::from(special) - opcodes;
                    address += adjusted / range * unit;
                    line += i64::from(base) + (adjusted % range) as i64;
                    row = true;
                }
            }
            if let (true, Some(function)) = (row, &function) {
                let place = (first + file.saturating_sub(1), u64::try_from(line).unwrap_or(0));
                self.rows.insert((function.clone(), address), place);
            }
        }
        Some(())
    }
}
