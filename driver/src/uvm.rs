//! Calls of the UVM node: GPU address spaces and the ranges mapped into them.

use nv_abi::{
    Fd, Record, Struct, StructField,
    rm::Status,
    uvm::{
        self, UVM_CREATE_EXTERNAL_RANGE_PARAMS, UVM_ENABLE_PEER_ACCESS_PARAMS, UVM_FREE_PARAMS,
        UVM_INITIALIZE_PARAMS, UVM_MAP_EXTERNAL_ALLOCATION_PARAMS, UVM_MM_INITIALIZE_PARAMS,
        UVM_REGISTER_CHANNEL_PARAMS, UVM_REGISTER_GPU_PARAMS, UVM_REGISTER_GPU_VASPACE_PARAMS,
        UVM_UNREGISTER_CHANNEL_PARAMS, UVM_UNREGISTER_GPU_PARAMS, UVM_UNREGISTER_GPU_VASPACE_PARAMS,
    },
};

use crate::{
    Error,
    rm::{signed, status},
    system::System,
};

/// A GPU's UUID, as UVM names GPUs.
pub(crate) type Uuid = [u8; 16];

/// `gpuMappingType` (`UvmGpuMappingType` of uvm_types.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappingType {
    /// What the seed and today's backend pass.
    ReadWriteAtomic = 1,
    ReadOnly = 3,
}

fn call_name(request: u32) -> &'static str {
    uvm::call(request).map_or("unknown UVM call", |row| row.name)
}

impl System {
    /// Issues a call and returns its status. The kernel copies its own struct's size, so the buffer is the newest.
    fn uvm_status(&self, fd: Fd, request: u32, record: &Record) -> Result<Status, Error> {
        let mut bytes = vec![0; record.of().max_size()];
        bytes[..record.bytes().len()].copy_from_slice(record.bytes());
        self.backend
            .ioctl(fd, request, &mut bytes)
            .map_err(|errno| Error::System { call: call_name(request), errno })?;
        status(&Record::from_bytes(record.of(), self.branch, &bytes)?)
    }

    fn uvm_call(&self, request: u32, record: &Record) -> Result<(), Error> {
        match self.uvm_status(self.uvm, request, record)? {
            Status::NV_OK => Ok(()),
            status => Err(Error::Uvm { call: call_name(request), status }),
        }
    }

    fn with_uuid(&self, of: &'static Struct, field: &StructField, uuid: &Uuid) -> Result<Record, Error> {
        let mut record = self.record(of);
        record.set_byte_array(field, uuid)?;
        Ok(record)
    }

    pub(crate) fn uvm_initialize(&self) -> Result<(), Error> {
        use UVM_INITIALIZE_PARAMS as p;
        self.uvm_call(uvm::UVM_INITIALIZE, &self.record(&p::STRUCT))
    }

    /// On a second descriptor. Where the module needs no memory-map reference it says WARN_NOTHING_TO_DO.
    pub(crate) fn uvm_mm_initialize(&self, second: Fd) -> Result<(), Error> {
        use UVM_MM_INITIALIZE_PARAMS as p;
        let mut record = self.record(&p::STRUCT);
        record.set(&p::uvmFd, signed(self.uvm.0))?;
        match self.uvm_status(second, uvm::UVM_MM_INITIALIZE, &record)? {
            Status::NV_OK | Status::WARN_NOTHING_TO_DO => Ok(()),
            status => Err(Error::Uvm { call: call_name(uvm::UVM_MM_INITIALIZE), status }),
        }
    }

    pub(crate) fn uvm_register_gpu(&self, uuid: &Uuid) -> Result<(), Error> {
        use UVM_REGISTER_GPU_PARAMS as p;
        let mut record = self.with_uuid(&p::STRUCT, &p::gpu_uuid_uuid, uuid)?;
        record.set(&p::rmCtrlFd, signed(-1))?;
        self.uvm_call(uvm::UVM_REGISTER_GPU, &record)
    }

    pub(crate) fn uvm_unregister_gpu(&self, uuid: &Uuid) -> Result<(), Error> {
        use UVM_UNREGISTER_GPU_PARAMS as p;
        let record = self.with_uuid(&p::STRUCT, &p::gpu_uuid_uuid, uuid)?;
        self.uvm_call(uvm::UVM_UNREGISTER_GPU, &record)
    }

    pub(crate) fn uvm_register_vaspace(&self, uuid: &Uuid, vaspace: u32) -> Result<(), Error> {
        use UVM_REGISTER_GPU_VASPACE_PARAMS as p;
        let mut record = self.with_uuid(&p::STRUCT, &p::gpuUuid_uuid, uuid)?;
        record.set(&p::rmCtrlFd, signed(self.ctl.0))?;
        record.set(&p::hClient, self.root.into())?;
        record.set(&p::hVaSpace, vaspace.into())?;
        self.uvm_call(uvm::UVM_REGISTER_GPU_VASPACE, &record)
    }

    pub(crate) fn uvm_unregister_vaspace(&self, uuid: &Uuid) -> Result<(), Error> {
        use UVM_UNREGISTER_GPU_VASPACE_PARAMS as p;
        let record = self.with_uuid(&p::STRUCT, &p::gpuUuid_uuid, uuid)?;
        self.uvm_call(uvm::UVM_UNREGISTER_GPU_VASPACE, &record)
    }

    pub(crate) fn uvm_enable_peer_access(&self, a: &Uuid, b: &Uuid) -> Result<(), Error> {
        use UVM_ENABLE_PEER_ACCESS_PARAMS as p;
        let mut record = self.with_uuid(&p::STRUCT, &p::gpuUuidA_uuid, a)?;
        record.set_byte_array(&p::gpuUuidB_uuid, b)?;
        self.uvm_call(uvm::UVM_ENABLE_PEER_ACCESS, &record)
    }

    pub(crate) fn uvm_register_channel(
        &self,
        uuid: &Uuid,
        channel: u32,
        base: u64,
        length: u64,
    ) -> Result<(), Error> {
        use UVM_REGISTER_CHANNEL_PARAMS as p;
        let mut record = self.with_uuid(&p::STRUCT, &p::gpuUuid_uuid, uuid)?;
        record.set(&p::rmCtrlFd, signed(self.ctl.0))?;
        record.set(&p::hClient, self.root.into())?;
        record.set(&p::hChannel, channel.into())?;
        record.set(&p::base, base)?;
        record.set(&p::length, length)?;
        self.uvm_call(uvm::UVM_REGISTER_CHANNEL, &record)
    }

    pub(crate) fn uvm_unregister_channel(&self, uuid: &Uuid, channel: u32) -> Result<(), Error> {
        use UVM_UNREGISTER_CHANNEL_PARAMS as p;
        let mut record = self.record(&p::STRUCT);
        if p::gpuUuid_uuid.offset(self.branch).is_some() {
            record.set_byte_array(&p::gpuUuid_uuid, uuid)?;
        }
        record.set(&p::hClient, self.root.into())?;
        record.set(&p::hChannel, channel.into())?;
        self.uvm_call(uvm::UVM_UNREGISTER_CHANNEL, &record)
    }

    pub(crate) fn uvm_create_external_range(&self, base: u64, length: u64) -> Result<(), Error> {
        use UVM_CREATE_EXTERNAL_RANGE_PARAMS as p;
        let mut record = self.record(&p::STRUCT);
        record.set(&p::base, base)?;
        record.set(&p::length, length)?;
        self.uvm_call(uvm::UVM_CREATE_EXTERNAL_RANGE, &record)
    }

    pub(crate) fn uvm_map_external(
        &self,
        uuid: &Uuid,
        memory: u32,
        base: u64,
        length: u64,
        kind: MappingType,
    ) -> Result<(), Error> {
        use UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as p;
        let mut record = self.record(&p::STRUCT);
        let half = |range: std::ops::Range<usize>| {
            uuid[range].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        record.set(&p::base, base)?;
        record.set(&p::length, length)?;
        record.set(&p::perGpuAttributes_gpuUuidLow, half(0..8))?;
        record.set(&p::perGpuAttributes_gpuUuidHigh, half(8..16))?;
        record.set(&p::perGpuAttributes_gpuMappingType, kind as u64)?;
        record.set(&p::gpuAttributesCount, 1)?;
        record.set(&p::rmCtrlFd, signed(self.ctl.0))?;
        record.set(&p::hClient, self.root.into())?;
        record.set(&p::hMemory, memory.into())?;
        self.uvm_call(uvm::UVM_MAP_EXTERNAL_ALLOCATION, &record)
    }

    pub(crate) fn uvm_free(&self, base: u64, length: u64) -> Result<(), Error> {
        use UVM_FREE_PARAMS as p;
        let mut record = self.record(&p::STRUCT);
        record.set(&p::base, base)?;
        // Gone from branch 590 on.
        if p::length.offset(self.branch).is_some() {
            record.set(&p::length, length)?;
        }
        self.uvm_call(uvm::UVM_FREE, &record)
    }
}
