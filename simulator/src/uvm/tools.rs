//! Calls for tools: other eyes on a process's managed memory, and which processors a VA space has.

use nv_abi::{
    Branch, Record, StructField,
    rm::Status,
    uvm::{
        UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS as Table, UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS as Read,
        UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS as Write,
    },
};

use super::{CPU, RangeKind, Space};
use crate::{
    client_memory,
    memory::{Backing, PAGE},
    rm::{Kernel, Refusal},
};

/// TOOLS_FLUSH_EVENTS: no queue of events is ever filled.
pub(super) fn flush_events(_: &mut Kernel, _: &mut Space, _: &mut Record) -> Result<(), Refusal> {
    Ok(())
}

/// TOOLS_READ_PROCESS_MEMORY: bytes of managed memory, as far as there is any.
pub(super) fn read_memory(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let buffer = p.get(&Read::buffer)?;
    let fields = [&Read::targetVa, &Read::size, &Read::bytesRead];
    for_each_page(space, p, fields, |memory, offset, done, page| {
        memory.read(offset, page).map_err(|_| Status::INVALID_ADDRESS)?;
        let to = buffer.checked_add(done).ok_or(Status::INVALID_ARGUMENT)?;
        client_memory::write(to, page).map_err(|_| Status::INVALID_ARGUMENT)
    })
}

/// TOOLS_WRITE_PROCESS_MEMORY: the other way.
pub(super) fn write_memory(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let buffer = p.get(&Write::buffer)?;
    let fields = [&Write::targetVa, &Write::size, &Write::bytesWritten];
    for_each_page(space, p, fields, |memory, offset, done, page| {
        let from = buffer.checked_add(done).ok_or(Status::INVALID_ARGUMENT)?;
        client_memory::read(from, page).map_err(|_| Status::INVALID_ARGUMENT)?;
        memory.write(offset, page).map_err(|_| Status::INVALID_ADDRESS)
    })
}

/// Goes through managed memory in pieces that end at pages: memory, offset in it, bytes done before, room for the
/// piece. The answer counts what was done before an error.
fn for_each_page(
    space: &Space,
    p: &mut Record,
    [target, size, count]: [&StructField; 3],
    mut each: impl FnMut(&Backing, u64, u64, &mut [u8]) -> Result<(), Status>,
) -> Result<(), Refusal> {
    let (target, size) = (p.get(target)?, p.get(size)?);
    // The module goes on from what the caller says is done.
    let mut done = p.get(count)?;
    let mut page = [0; PAGE as usize];
    while done < size {
        let va = target.checked_add(done).ok_or(Status::INVALID_ADDRESS)?;
        let (memory, offset) = managed_at(space, va).ok_or(Status::INVALID_ADDRESS)?;
        let bytes = (PAGE - va % PAGE).min(size - done);
        each(memory, offset, done, &mut page[..bytes as usize])?;
        done += bytes;
        p.set(count, done)?;
    }
    Ok(())
}

/// The managed memory at an address.
fn managed_at(space: &Space, va: u64) -> Option<(&Backing, u64)> {
    let (start, range) = space.ranges.range(..=va).next_back()?;
    match &range.kind {
        RangeKind::Managed(managed) if range.end > va => Some(managed.memory_at(va - start)),
        _ => None,
    }
}

/// Processors of the oldest table: the CPU and 32 GPUs.
const PROCESSORS_V1: u32 = 33;
/// Processors since GPUs have parts, each with 8 numbers: the CPU and 256.
const PROCESSORS_V2: u32 = 257;

/// TOOLS_GET_PROCESSOR_UUID_TABLE: UUIDs by the numbers that events name processors with. Every branch has its own way
/// to say which of the two tables is meant.
pub(super) fn uuid_table(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    let pointer = p.get(&Table::tablePtr)?;
    match p.branch() {
        Branch::R535 => {
            let table = processors(space, PROCESSORS_V1, 1);
            let known = highest(&table) + 1;
            p.set(&Table::count, known.into())?;
            write_table(pointer, &table[..known as usize])
        }
        Branch::R550 => {
            let given = p.get(&Table::count)? as u32;
            let first = given == 0 && pointer != 0;
            let (version, room, step) = match given {
                0 if first => (1, PROCESSORS_V1, 1),
                1..=PROCESSORS_V2 => (2, given, 8),
                _ => (2, PROCESSORS_V2, 8),
            };
            p.set(&Table::version, version)?;
            let table = processors(space, PROCESSORS_V2, step);
            p.set(&Table::count, (highest(&table) + 1).into())?;
            if pointer == 0 { Ok(()) } else { write_table(pointer, &table[..room as usize]) }
        }
        Branch::R560 => match p.get(&Table::version)? {
            1 => write_table(pointer, &processors(space, PROCESSORS_V1, 1)),
            2 => write_table(pointer, &processors(space, PROCESSORS_V2, 8)),
            _ => Err(Status::INVALID_ARGUMENT.into()),
        },
        _ => write_table(pointer, &processors(space, PROCESSORS_V1, 1)),
    }
}

/// TOOLS_GET_PROCESSOR_UUID_TABLE_V2.
pub(super) fn uuid_table_v2(_: &mut Kernel, space: &mut Space, p: &mut Record) -> Result<(), Refusal> {
    write_table(p.get(&Table::tablePtr)?, &processors(space, PROCESSORS_V2, 8))
}

/// The CPU and the GPUs of a VA space by number: GPUs from 1 on, `step` numbers apart.
fn processors(space: &Space, room: u32, step: u32) -> Vec<super::Uuid> {
    let mut table = vec![[0; 16]; room as usize];
    table[0] = CPU;
    for (uuid, registered) in &space.gpus {
        if let Some(place) = table.get_mut(1 + registered.gpu * step as usize) {
            *place = *uuid;
        }
    }
    table
}

/// The highest number that is a processor's.
fn highest(table: &[super::Uuid]) -> u32 {
    table.iter().rposition(|uuid| *uuid != [0; 16]).unwrap_or(0) as u32
}

fn write_table(pointer: u64, table: &[super::Uuid]) -> Result<(), Refusal> {
    client_memory::write(pointer, table.as_flattened()).map_err(|_| Status::INVALID_ADDRESS.into())
}
