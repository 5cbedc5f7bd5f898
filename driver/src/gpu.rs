//! One GPU as RM and UVM know it: device, subdevice, address space, classes, geometry.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use nv_abi::{
    Fd, Mapping,
    arch::{Classes, Generation},
    gpfifo::{NOTIFY_CHANNEL_PENDING, USERMODE_BYTES},
    rm::{
        NV_HOPPER_USERMODE_A_PARAMS, NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS, NV_VASPACE_ALLOCATION_PARAMETERS,
        NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS, NV0080_ALLOC_PARAMETERS, NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS,
        NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS, NV2080_ALLOC_PARAMETERS,
        NV2080_CTRL_GPU_GET_GID_INFO_PARAMS, NV2080_CTRL_GR_GET_INFO_PARAMS, NV2080_CTRL_PERF_BOOST_PARAMS,
        class, control,
        flags::{
            NV_DEVICE_ALLOCATION_VAMODE_MULTIPLE_VASPACES,
            NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES, NV_VASPACE_ALLOCATION_FLAGS,
        },
    },
};

use crate::{
    Error, Options,
    rm::{Card, flags},
    system::{System, lock},
    uvm::Uuid,
};

/// `flags` of GET_GID_INFO: the bare 16 bytes.
const GID_FORMAT_BINARY: u64 = 2;
/// Boost to the highest clock, as a CUDA client of high priority.
const PERF_BOOST_MAX: u64 = 1 << 4 | 1 << 6 | 1;

/// Indices of GR_GET_INFO (`NV2080_CTRL_GR_INFO_INDEX_*` in `ctrl2080gr.h`): LITTER_NUM_GPCS, LITTER_NUM_TPC_PER_GPC,
/// LITTER_NUM_SM_PER_TPC, MAX_WARPS_PER_SM, SM_VERSION.
const GR_INFO: [u32; 5] = [0x14, 0x17, 0x20, 0x0d, 0x0c];

/// Counts of the GPU's parts, from GR_GET_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Graphics processing clusters.
    pub gpcs: u32,
    /// TPCs in each.
    pub tpcs_per_gpc: u32,
    /// SMs in each.
    pub sms_per_tpc: u32,
    /// Warps that one SM can hold.
    pub warps_per_sm: u32,
    /// The SM's version: major in 15:8, minor in 7:0.
    pub sm_version: u32,
}

#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) system: Arc<System>,
    pub(crate) card: Card,
    pub(crate) fd: Fd,
    pub(crate) device: u32,
    pub(crate) vaspace: u32,
    /// NV01_MEMORY_VIRTUAL, where mappings are made through RM as well.
    pub(crate) virtual_memory: Option<u32>,
    pub(crate) uuid: Uuid,
    pub(crate) classes: Classes,
    pub(crate) generation: Generation,
    pub(crate) geometry: Geometry,
    doorbell: u64,
    registered: (bool, bool),
    /// The other GPUs that are open, with why there is no peer access.
    peers: Mutex<BTreeMap<Uuid, Option<String>>>,
}

fn choose(list: &[u32], wanted: &[u32], what: &'static str) -> Result<u32, Error> {
    wanted.iter().copied().find(|class| list.contains(class)).ok_or(Error::NoClass { what })
}

/// The classes to use of those on the GPU's list: of each kind the newest that this driver knows.
fn choose_all(list: &[u32]) -> Result<Classes, Error> {
    use class as c;
    Ok(Classes {
        channel: choose(
            list,
            &[
                c::BLACKWELL_CHANNEL_GPFIFO_B,
                c::BLACKWELL_CHANNEL_GPFIFO_A,
                c::HOPPER_CHANNEL_GPFIFO_A,
                c::AMPERE_CHANNEL_GPFIFO_A,
            ],
            "channel",
        )?,
        usermode: choose(
            list,
            &[c::HOPPER_USERMODE_A, c::TURING_USERMODE_A, c::AMPERE_USERMODE_A],
            "usermode",
        )?,
        compute: choose(
            list,
            &[
                c::BLACKWELL_COMPUTE_B,
                c::BLACKWELL_COMPUTE_A,
                c::HOPPER_COMPUTE_A,
                c::ADA_COMPUTE_A,
                c::AMPERE_COMPUTE_B,
                c::AMPERE_COMPUTE_A,
            ],
            "compute",
        )?,
        copy: choose(
            list,
            &[
                c::BLACKWELL_DMA_COPY_B,
                c::BLACKWELL_DMA_COPY_A,
                c::HOPPER_DMA_COPY_A,
                c::AMPERE_DMA_COPY_B,
                c::AMPERE_DMA_COPY_A,
            ],
            "copy",
        )?,
    })
}

/// The class list: the inline form, or where that is refused the one with a pointer.
fn class_list(system: &System, device: u32) -> Result<Vec<u32>, Error> {
    use NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS as v1;
    use NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS as v2;
    let mut record = system.record(&v2::STRUCT);
    if system.control(device, control::NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2, &mut record).is_ok() {
        let count = record.get(&v2::numClasses)? as u32;
        return (0..count).map(|index| Ok(record.get_at(&v2::classList, index)? as u32)).collect();
    }
    let mut record = system.record(&v1::STRUCT);
    system.control(device, control::NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut record)?;
    let mut list = vec![0u8; record.get(&v1::numClasses)? as usize * 4];
    record.set(&v1::classList, list.as_mut_ptr().expose_provenance() as u64)?;
    system.control(device, control::NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut record)?;
    Ok(list.as_chunks::<4>().0.iter().map(|class| u32::from_le_bytes(*class)).collect())
}

fn geometry(system: &System, subdevice: u32) -> Result<Geometry, Error> {
    use NV2080_CTRL_GR_GET_INFO_PARAMS as p;
    // Pairs of index and value.
    let mut list: [[u8; 4]; 2 * GR_INFO.len()] = [[0; 4]; 2 * GR_INFO.len()];
    for (pair, index) in list.as_chunks_mut::<2>().0.iter_mut().zip(GR_INFO) {
        pair[0] = index.to_le_bytes();
    }
    let mut record = system.record(&p::STRUCT);
    record.set(&p::grInfoListSize, GR_INFO.len() as u64)?;
    record.set(&p::grInfoList, list.as_mut_ptr().expose_provenance() as u64)?;
    system.control(subdevice, control::NV2080_CTRL_CMD_GR_GET_INFO, &mut record)?;
    let [gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm, sm_version] =
        std::array::from_fn(|index| u32::from_le_bytes(list[2 * index + 1]));
    Ok(Geometry { gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm, sm_version })
}

impl Gpu {
    pub(crate) fn open(system: &Arc<System>, index: usize, options: &Options) -> Result<Arc<Self>, Error> {
        let card = system.cards.get(index).ok_or(Error::NoDevice { index, count: system.cards.len() })?;
        let fd = system.open_gpu(card.minor)?;
        let gpu = Self::allocate(system, card.clone(), fd, options);
        if gpu.is_err() {
            // The first error is the one to report.
            let _ = system.backend.close(fd);
        }
        let gpu = Arc::new(gpu?);
        for other in system.gpus() {
            // GPUs without a link stay apart: mapping each other's video memory then says why.
            let apart = system.uvm_enable_peer_access(&gpu.uuid, &other.uuid).err().map(|e| e.to_string());
            lock(&gpu.peers).insert(other.uuid, apart.clone());
            lock(&other.peers).insert(gpu.uuid, apart);
        }
        system.register(&gpu);
        Ok(gpu)
    }

    fn allocate(system: &Arc<System>, card: Card, fd: Fd, options: &Options) -> Result<Self, Error> {
        use NV_VASPACE_ALLOCATION_PARAMETERS as vaspace_parameters;
        use NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS as id_info;
        use NV0080_ALLOC_PARAMETERS as device_parameters;
        use NV2080_CTRL_GPU_GET_GID_INFO_PARAMS as gid;

        let mut info = system.record(&id_info::STRUCT);
        info.set(&id_info::gpuId, card.gpu_id.into())?;
        system.control(system.root, control::NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, &mut info)?;

        let mut params = system.record(&device_parameters::STRUCT);
        params.set(&device_parameters::deviceId, info.get(&id_info::deviceInstance)?)?;
        params.set(&device_parameters::hClientShare, system.root.into())?;
        // A virtual-memory object needs the device's own address space, which the other mode does not make: mapping
        // through it then fails with INVALID_STATE (measured on H200).
        let mode = if options.map_memory_dma {
            NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES
        } else {
            NV_DEVICE_ALLOCATION_VAMODE_MULTIPLE_VASPACES
        };
        params.set(&device_parameters::vaMode, mode.into())?;
        let device = system.alloc(system.root, class::NV01_DEVICE_0, Some(&mut params))?;
        // Whatever fails from here on, freeing the device frees what is below it.
        let rest = || -> Result<Self, Error> {
            let mut params = system.record(&NV2080_ALLOC_PARAMETERS::STRUCT);
            let subdevice = system.alloc(device, class::NV20_SUBDEVICE_0, Some(&mut params))?;
            let classes = choose_all(&class_list(system, device)?)?;
            let generation =
                Generation::of_compute_class(classes.compute).ok_or(Error::NoClass { what: "compute" })?;
            let doorbell = map_usermode(system, device, subdevice, card.minor, classes.usermode)?;
            if options.performance_boost {
                use NV2080_CTRL_PERF_BOOST_PARAMS as boost;
                let mut params = system.record(&boost::STRUCT);
                params.set(&boost::flags, PERF_BOOST_MAX)?;
                params.set(&boost::duration, u32::MAX.into())?;
                system.control(subdevice, control::NV2080_CTRL_CMD_PERF_BOOST, &mut params)?;
            }
            let virtual_memory = if options.map_memory_dma {
                use NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS as range;
                let mut params = system.record(&range::STRUCT);
                params.set(&range::limit, 0x1_ffff_ffff_ffff)?;
                Some(system.alloc(device, class::NV01_MEMORY_VIRTUAL, Some(&mut params))?)
            } else {
                None
            };
            let mut params = system.record(&vaspace_parameters::STRUCT);
            params.set(&vaspace_parameters::vaBase, 0x1000)?;
            params.set(&vaspace_parameters::vaSize, 0x1_ffff_fb00_0000)?;
            params.set(
                &vaspace_parameters::flags,
                flags(&[
                    (&NV_VASPACE_ALLOCATION_FLAGS::ENABLE_PAGE_FAULTING, 1),
                    (&NV_VASPACE_ALLOCATION_FLAGS::IS_EXTERNALLY_OWNED, 1),
                ])?,
            )?;
            let vaspace = system.alloc(device, class::FERMI_VASPACE_A, Some(&mut params))?;

            let mut params = system.record(&gid::STRUCT);
            params.set(&gid::flags, GID_FORMAT_BINARY)?;
            params.set(&gid::length, 16)?;
            system.control(subdevice, control::NV2080_CTRL_CMD_GPU_GET_GID_INFO, &mut params)?;
            let mut uuid = [0; 16];
            uuid.copy_from_slice(&params.byte_array(&gid::data)?[..16]);
            let mut gpu = Self {
                system: Arc::clone(system),
                card: card.clone(),
                fd,
                device,
                vaspace,
                virtual_memory,
                uuid,
                classes,
                generation,
                geometry: geometry(system, subdevice)?,
                doorbell,
                registered: (false, false),
                peers: Mutex::default(),
            };
            gpu.system.uvm_register_gpu(&uuid)?;
            gpu.registered.0 = true;
            gpu.system.uvm_register_vaspace(&uuid, vaspace)?;
            gpu.registered.1 = true;
            Ok(gpu)
        };
        rest().inspect_err(|_| {
            let _ = system.free(system.root, device);
        })
    }

    /// Rings the doorbell for a channel.
    pub(crate) fn ring(&self, token: u32) -> Result<(), Error> {
        self.system
            .backend
            .write32(self.doorbell, NOTIFY_CHANNEL_PENDING, token)
            .map_err(|errno| Error::System { call: "doorbell", errno })
    }

    /// What enabling peer access with `other` was refused with, if it was. Behind NVLink it always is, and the GPUs
    /// reach each other all the same.
    pub(crate) fn apart(&self, other: &Self) -> Option<String> {
        lock(&self.peers).get(&other.uuid).cloned().flatten()
    }
}

fn map_usermode(
    system: &Arc<System>,
    device: u32,
    subdevice: u32,
    minor: u32,
    usermode: u32,
) -> Result<u64, Error> {
    let mut params = system.record(&NV_HOPPER_USERMODE_A_PARAMS::STRUCT);
    params.set(&NV_HOPPER_USERMODE_A_PARAMS::bBar1Mapping, 1)?;
    let from_hopper = usermode >= class::HOPPER_USERMODE_A;
    let object = system.alloc(subdevice, usermode, from_hopper.then_some(&mut params))?;
    let fd = system.open_gpu(minor)?;
    let result = system.map_object(device, fd, object, USERMODE_BYTES).and_then(|()| {
        let mapping = Mapping { address: None, length: USERMODE_BYTES, offset: 0 };
        system.backend.mmap(fd, mapping).map_err(|errno| Error::System { call: "mmap", errno })
    });
    let _ = system.backend.close(fd);
    result
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Nothing can be reported from a drop.
        if self.registered.1 {
            let _ = self.system.uvm_unregister_vaspace(&self.uuid);
        }
        if self.registered.0 {
            let _ = self.system.uvm_unregister_gpu(&self.uuid);
        }
        let _ = self.system.backend.munmap(self.doorbell, USERMODE_BYTES);
        let _ = self.system.free(self.system.root, self.device);
        let _ = self.system.backend.close(self.fd);
    }
}
