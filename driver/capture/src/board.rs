//! Which GPUs of one machine stand for which of another: a client passes on what the kernel module told it of them, their
//! numbers and UUIDs.

use std::collections::HashMap;

use nv_abi::{
    Branch, Record, Struct,
    record::{Kind, StructField},
    rm::{NV2080_CTRL_GPU_GET_GID_INFO_PARAMS as GetGidInfo, nv_ioctl_card_info_t as CardInfo},
};

/// Bytes of a UUID.
const UUID: usize = 16;

/// Numbers and UUIDs of GPUs there, with those of the GPUs here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Boards {
    numbers: HashMap<u64, u64>,
    uuids: HashMap<Vec<u8>, Vec<u8>>,
}

/// Whether a field holds numbers of GPUs.
fn is_number(field: &StructField) -> bool {
    field.kind == Kind::Unsigned(4) && field.name.to_ascii_lowercase().replace('_', "").contains("gpuid")
}

/// Whether a field holds a UUID, byte for byte.
fn is_uuid(of: &'static Struct, field: &StructField, branch: Branch) -> bool {
    let bytes = field.count(branch) as usize;
    field.kind == Kind::Unsigned(1)
        && bytes >= UUID
        && (field.name.to_ascii_lowercase().ends_with("uuid")
            || (of == &GetGidInfo::STRUCT && field.name == "data"))
}

/// A UUID that is written as two numbers, in fields of these two names.
fn halves(of: &'static Struct) -> Vec<[&'static StructField; 2]> {
    let pair = |low: &'static StructField| {
        let name = low.name.strip_suffix("UuidLow")?;
        Some([low, of.field(&format!("{name}UuidHigh"))?])
    };
    of.fields.iter().filter_map(pair).collect()
}

impl Boards {
    /// Learns from an argument what it answered there and what it answers here. What was passed in is no answer.
    pub(crate) fn learn(&mut self, of: &'static Struct, branch: Branch, [before, was, is]: [&[u8]; 3]) {
        let size = of.size(branch);
        if of == &CardInfo::STRUCT && was.len() > size && size > 0 {
            // One after the other.
            for at in (0..was.len()).step_by(size) {
                let part = |bytes: &[u8]| bytes.get(at..(at + size).min(bytes.len())).unwrap_or(&[]).to_vec();
                let [before, was, is] = [before, was, is].map(part);
                self.learn(of, branch, [&before, &was, &is]);
            }
            return;
        }
        let [before, was, is] = [before, was, is].map(|bytes| Record::padded(of, branch, bytes));
        for field in of.fields {
            if is_number(field) {
                for index in 0..field.count(branch) {
                    let value = |record: &Record| record.get_at(field, index).unwrap_or(0);
                    let (asked, old, new) = (value(&before), value(&was), value(&is));
                    let is_one = |number: u64| number != 0 && number != u64::from(u32::MAX);
                    if is_one(old) && is_one(new) && asked != old {
                        self.numbers.entry(old).or_insert(new);
                    }
                }
            } else if is_uuid(of, field, branch) {
                let value = |record: &Record| {
                    let mut bytes = record.byte_array(field).unwrap_or_default();
                    bytes.truncate(UUID);
                    bytes
                };
                let (asked, old, new) = (value(&before), value(&was), value(&is));
                let is_one = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
                if is_one(&old) && is_one(&new) && asked != old {
                    self.uuids.entry(old).or_insert(new);
                }
            }
        }
    }

    /// Puts the GPUs here in place of those there.
    pub(crate) fn translate(&self, record: &mut Record) {
        if self.numbers.is_empty() && self.uuids.is_empty() {
            return;
        }
        let (of, branch) = (record.of(), record.branch());
        // What the branch lacks or what does not fit stays as it was: it came out of the same field.
        for field in of.fields {
            if is_number(field) {
                for index in 0..field.count(branch) {
                    let number = record.get_at(field, index).unwrap_or(0);
                    if let Some(new) = self.numbers.get(&number) {
                        let _ = record.set_at(field, index, *new);
                    }
                }
            } else if is_uuid(of, field, branch) {
                let mut bytes = record.byte_array(field).unwrap_or_default();
                if let Some(new) = bytes.get(..UUID).and_then(|old| self.uuids.get(old)) {
                    bytes[..UUID].copy_from_slice(new);
                    let _ = record.set_byte_array(field, &bytes);
                }
            }
        }
        for [low, high] in halves(of) {
            for index in 0..low.count(branch) {
                let half = |field| record.get_at(field, index).unwrap_or(0).to_le_bytes();
                let old = [half(low), half(high)];
                if let Some(new) = self.uuids.get(old.as_flattened())
                    && let ([first, second], []) = new.as_chunks::<8>()
                {
                    for (field, half) in [(low, first), (high, second)] {
                        let _ = record.set_at(field, index, u64::from_le_bytes(*half));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nv_abi::{
        rm::NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS as IdInfo,
        uvm::{UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as Map, UVM_REGISTER_GPU_PARAMS as Register},
    };

    use super::*;

    const BRANCH: Branch = Branch::R580;

    fn record(of: &'static Struct, values: &[(&StructField, u64)]) -> Record {
        let mut record = Record::zeroed(of, BRANCH);
        for (field, value) in values {
            record.set(field, *value).unwrap();
        }
        record
    }

    #[test]
    fn what_the_module_told_of_gpus_there_becomes_what_it_tells_here() {
        let mut boards = Boards::default();
        // Two cards, of which the first is no answer: it was passed in.
        let cards = |numbers: [u64; 2]| {
            numbers
                .map(|number| record(&CardInfo::STRUCT, &[(&CardInfo::gpu_id, number)]).bytes().to_vec())
                .concat()
        };
        boards.learn(&CardInfo::STRUCT, BRANCH, [&cards([9, 0]), &cards([9, 6]), &cards([9, 0x100])]);
        let uuid = |first: u8| -> Vec<u8> { (first..first + 16).collect() };
        let gid = |uuid: &[u8]| {
            let mut record = record(&GetGidInfo::STRUCT, &[]);
            let mut bytes = record.byte_array(&GetGidInfo::data).unwrap();
            bytes[..16].copy_from_slice(uuid);
            record.set_byte_array(&GetGidInfo::data, &bytes).unwrap();
            record.bytes().to_vec()
        };
        let empty = gid(&[0; 16]);
        boards.learn(&GetGidInfo::STRUCT, BRANCH, [&empty, &gid(&uuid(1)), &gid(&uuid(101))]);

        let mut id = record(&IdInfo::STRUCT, &[(&IdInfo::gpuId, 6)]);
        boards.translate(&mut id);
        assert_eq!(id.get(&IdInfo::gpuId), Ok(0x100));
        id.set(&IdInfo::gpuId, 9).unwrap();
        boards.translate(&mut id);
        assert_eq!(id.get(&IdInfo::gpuId), Ok(9));

        let mut register = record(&Register::STRUCT, &[]);
        register.set_byte_array(&Register::gpu_uuid_uuid, &uuid(1)).unwrap();
        boards.translate(&mut register);
        assert_eq!(register.byte_array(&Register::gpu_uuid_uuid).unwrap(), uuid(101));

        let halves =
            uuid(1).as_chunks::<8>().0.iter().map(|half| u64::from_le_bytes(*half)).collect::<Vec<_>>();
        let mut map = record(&Map::STRUCT, &[]);
        map.set_at(&Map::perGpuAttributes_gpuUuidLow, 0, halves[0]).unwrap();
        map.set_at(&Map::perGpuAttributes_gpuUuidHigh, 0, halves[1]).unwrap();
        boards.translate(&mut map);
        assert_eq!(
            map.get_at(&Map::perGpuAttributes_gpuUuidHigh, 0).map(u64::to_le_bytes).unwrap()[..],
            uuid(101)[8..]
        );
        assert_eq!(
            map.get_at(&Map::perGpuAttributes_gpuUuidLow, 0).map(u64::to_le_bytes).unwrap()[..],
            uuid(101)[..8]
        );
    }
}
