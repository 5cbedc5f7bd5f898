//! Values of the recording that stand for something of the recording process: descriptors, client handles, the GPU's
//! UUID.

use std::collections::BTreeMap;

use nv_abi::{Fd, StructField, record::Kind};

/// The UUID that the recordings have.
pub const RECORDED_UUID: [u8; 16] =
    [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

/// What a field's values stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A number that is the same everywhere.
    Plain,
    /// A client's or object's handle.
    Handle,
    /// A file descriptor.
    Descriptor,
    /// A pointer into the caller's memory.
    Pointer,
    /// A byte of a GPU's UUID.
    UuidByte,
    /// Eight bytes of it.
    UuidHalf(usize),
}

/// Reads the meaning from the declaration.
pub fn meaning(of: &str, field: &StructField) -> Meaning {
    match (of, field.name) {
        // An event's `data` is a descriptor that the struct calls a pointer.
        ("NV0005_ALLOC_PARAMETERS", "data") | (_, "fd" | "ctl_fd" | "rmCtrlFd" | "uvmFd") => {
            Meaning::Descriptor
        }
        ("NV2080_CTRL_GPU_GET_GID_INFO_PARAMS", "data") => Meaning::UuidByte,
        (_, "perGpuAttributes_gpuUuidLow") => Meaning::UuidHalf(0),
        (_, "perGpuAttributes_gpuUuidHigh") => Meaning::UuidHalf(1),
        (_, name) if name.to_lowercase().ends_with("uuid") && field.count == 16 => Meaning::UuidByte,
        // Addresses that RM makes up, which the client hands back.
        (_, "pLinearAddress" | "pOldCpuAddress" | "pNewCpuAddress") => Meaning::Plain,
        _ => match field.kind {
            Kind::Handle => Meaning::Handle,
            Kind::Pointer => Meaning::Pointer,
            _ => Meaning::Plain,
        },
    }
}

/// From the recording's values to ours.
#[derive(Debug, Default)]
pub struct Bindings {
    pub fds: BTreeMap<i32, Fd>,
    pub handles: BTreeMap<u64, u64>,
    pub uuid: [u8; 16],
}

impl Bindings {
    /// Our value for one of the recording's.
    pub fn bind(&self, meaning: Meaning, index: u32, value: u64) -> u64 {
        match meaning {
            Meaning::Plain | Meaning::Pointer => value,
            Meaning::Handle => self.handles.get(&value).copied().unwrap_or(value),
            Meaning::Descriptor => match self.fds.get(&(value as i32)) {
                Some(fd) => fd.0 as u32 as u64,
                None => value,
            },
            Meaning::UuidByte => match index as usize {
                at if RECORDED_UUID.get(at).copied().map(u64::from) == Some(value) => self.uuid[at].into(),
                _ => value,
            },
            Meaning::UuidHalf(half) => {
                let part = |uuid: &[u8; 16]| u64::from_le_bytes(std::array::from_fn(|i| uuid[8 * half + i]));
                if value == part(&RECORDED_UUID) { part(&self.uuid) } else { value }
            }
        }
    }
}
