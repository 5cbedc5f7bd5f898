//! Controls that answer what the GPU and the module are, by what they are about.

mod bus;
mod gpu;
mod graphics;
mod memory;
mod peers;
mod process;
mod system;

use nv_abi::{Record, StructField, rm::Status};

use super::{Gpu, Kernel, Refusal, control::Target};
use crate::{client_memory, profile::Info};

/// A UUID as text: `GPU-` and the bytes in hexadecimal, grouped.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Fills a UUID in, as bytes or as text with its terminating zero; returns its length.
fn set_uuid(p: &mut Record, field: &StructField, uuid: &[u8; 16], binary: bool) -> Result<u64, Refusal> {
    let text = uuid_text(uuid);
    let bytes: &[u8] = if binary { uuid } else { text.as_bytes() };
    set_bytes(p, field, bytes)?;
    if binary {
        return Ok(16);
    }
    p.set_at(field, bytes.len() as u32, 0)?;
    Ok(bytes.len() as u64 + 1)
}

/// Fills the first elements of an array of bytes in.
fn set_bytes(p: &mut Record, field: &StructField, bytes: &[u8]) -> Result<(), Refusal> {
    for (i, byte) in (0..).zip(bytes) {
        p.set_at(field, i, (*byte).into())?;
    }
    Ok(())
}

/// The value of an index in a list of the profile.
fn find(list: &[Info], index: u32) -> Option<u32> {
    list.iter().find(|(known, _)| *known == index).map(|(_, value)| *value)
}

/// A list control whose elements lie in its own parameters.
struct Listed {
    /// The control's name, for what it lacks.
    name: &'static str,
    size: StructField,
    index: StructField,
    data: StructField,
    /// One past the highest index that the module knows.
    end: u32,
}

/// A list control of the older form, which the module turns into the newer one.
struct ConvertedList {
    /// The control's name, for what it lacks.
    name: &'static str,
    /// Elements that the newer form has room for.
    room: u32,
    /// One past the highest index that the module knows.
    end: u32,
}

impl Kernel {
    pub(super) fn gpu(&self, target: Target) -> Result<&Gpu, Status> {
        Ok(&self.gpus[self.gpu_of(target.client, target.object)?])
    }

    fn gpu_by_id(&self, id: u64) -> Result<(usize, &Gpu), Status> {
        let found = self.gpus.iter().enumerate().find(|(_, gpu)| u64::from(gpu.id) == id);
        found.ok_or(Status::INVALID_ARGUMENT)
    }

    /// Answers a list: every element's index has its value, or the whole call fails. What the module knows and the
    /// profile does not is refused by name.
    fn answer_list(
        &mut self,
        p: &mut Record,
        list: &Listed,
        answer: impl Fn(&Self, u32) -> Result<Option<u32>, Status>,
    ) -> Result<(), Refusal> {
        let count = p.get(&list.size)?;
        if count == 0 || count > u64::from(list.index.count(p.branch())) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        for i in 0..count as u32 {
            let index = p.get_at(&list.index, i)? as u32;
            if index >= list.end {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            match answer(self, index)? {
                Some(value) => p.set_at(&list.data, i, value.into())?,
                None => return Err(self.not_supported(format!("{} index {index:#x}", list.name))),
            }
        }
        Ok(())
    }

    /// Answers a list of the older form: (pointer, elements).
    fn answer_converted_list(
        &mut self,
        list: &ConvertedList,
        (pointer, count): (u64, u64),
        answer: impl Fn(&Self, u32) -> Result<Option<u32>, Status>,
    ) -> Result<(), Refusal> {
        if count > list.room.into() {
            return Err(Status::OUT_OF_RANGE.into());
        }
        // The newer form refuses an empty list.
        if count == 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        self.answer_client_list(pointer, count, |kernel, index| {
            if index >= list.end {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            let value = answer(kernel, index)?;
            value.ok_or_else(|| kernel.not_supported(format!("{} index {index:#x}", list.name)))
        })
    }

    /// Answers a list that the client points to, of elements {index, data} with 32 bits each.
    fn answer_client_list(
        &mut self,
        pointer: u64,
        count: u64,
        mut answer: impl FnMut(&mut Self, u32) -> Result<u32, Refusal>,
    ) -> Result<(), Refusal> {
        let mut list = vec![0; count as usize * 8];
        client_memory::read(pointer, &mut list)?;
        for [index, data] in list.as_chunks_mut::<4>().0.as_chunks_mut::<2>().0 {
            *data = answer(self, u32::from_le_bytes(*index))?.to_le_bytes();
        }
        Ok(client_memory::write(pointer, &list)?)
    }
}
