//! RM_CONTROL: the order of checks, and the controls of channels, groups and debuggers.

use nv_abi::{
    Fd, Record, StructField,
    rm::{
        NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS as Reset, NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS as ClassEngine,
        NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS as FaultInfo,
        NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS as DisableChannels,
        NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS as GroupSchedule, NVA06C_CTRL_TIMESLICE_PARAMS as Timeslice,
        NVA06F_CTRL_BIND_PARAMS as Bind, NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS as ChannelSchedule,
        NVA06F_CTRL_SET_ERROR_NOTIFIER_PARAMS as SetErrorNotifier,
        NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS as Token,
        NVC36F_CTRL_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX_PARAMS as TokenIndex, NVOS54_PARAMETERS as P,
        Status,
        control::{self as c, control},
        flags::NV2080_ENGINE_TYPE_GRAPHICS,
    },
};

use super::{Kernel, Kind, Refusal, channel::NOTIFIER_BYTES, clocks, object::Channel};
use crate::client_memory;

/// The object that a control was called on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) client: u32,
    pub(super) object: u32,
}

type Handler = fn(&mut Kernel, Target, &mut Record) -> Result<(), Refusal>;

/// Controls without a public name that NVIDIA's library calls, and the size of their parameters. They are answered as
/// the card that was recorded answered them, which accepted them and changed no parameter; what they ask for is not
/// known, and not done.
const UNNAMED: &[(u32, &str, usize)] = &[
    (0x2080_8159, "Subdevice", 332),
    (0x2080_8162, "Subdevice", 1),
    (0x2080_9038, "Subdevice", 4),
    (0x2081_0108, "BinaryApi", 992),
    (0x2080_0145, "Subdevice", 0),
];

/// Classes with a common base that exports controls, and the base.
const BASES: &[(&str, &str)] = &[
    ("VideoMemory", "Memory"),
    ("SystemMemory", "Memory"),
    ("OsDescMemory", "Memory"),
    ("VirtualMemory", "Memory"),
    ("VirtualMemoryRange", "Memory"),
    ("GpuUserSharedData", "Memory"),
    ("UserModeApi", "Memory"),
];

/// Whether objects of an internal class answer what `exporter` exports.
fn exports(internal: &str, exporter: &str) -> bool {
    internal == exporter || BASES.contains(&(internal, exporter))
}

/// Controls of a GPU's objects that need no GPU (RMCTRL_FLAGS_NO_GPUS_ACCESS), of those that are simulated.
const WITHOUT_GPU: &[u32] = &[
    c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST,
    c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2,
    c::NV0080_CTRL_CMD_GR_GET_CAPS,
    c::NV0080_CTRL_CMD_GR_GET_CAPS_V2,
    c::NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG,
    c::NV2080_CTRL_CMD_GPU_GET_ID,
    c::NV2080_CTRL_CMD_GPU_GET_NAME_STRING,
    c::NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING,
    c::NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO,
    c::NV2080_CTRL_CMD_GR_GET_CAPS_V2,
    c::NV2080_CTRL_CMD_MC_GET_ARCH_INFO,
    c::NV2080_CTRL_CMD_OS_UNIX_VIDMEM_PERSISTENCE_STATUS,
];

/// Every control that is simulated.
const HANDLERS: &[(u32, Handler)] = &[
    (c::NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION, Kernel::build_version),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, Kernel::build_version_v2),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_FABRIC_STATUS, Kernel::fabric_status),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_FEATURES, Kernel::system_features),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS, Kernel::p2p_caps_v1),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2, Kernel::p2p_caps_v2),
    (c::NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_MATRIX, Kernel::peer_matrix),
    (c::NV0000_CTRL_CMD_GPU_QUERY_DRAIN_STATE, Kernel::drain_state),
    (c::NV0000_CTRL_CMD_GSYNC_GET_ATTACHED_IDS, Kernel::gsync_ids),
    (c::NV0000_CTRL_CMD_GPUACCT_GET_ACCOUNTING_STATE, Kernel::accounting_state),
    (c::NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO, Kernel::export_object_info),
    (c::NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECTS_TO_FD, Kernel::export_objects),
    (c::NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECTS_FROM_FD, Kernel::import_objects),
    (c::NV0041_CTRL_CMD_GET_SURFACE_INFO, Kernel::surface_info),
    (c::NV0080_CTRL_CMD_GPU_QUERY_SW_STATE_PERSISTENCE, Kernel::sw_state_persistence),
    (c::NV0080_CTRL_CMD_GR_GET_CAPS, Kernel::device_gr_caps),
    (c::NV0080_CTRL_CMD_GR_GET_CAPS_V2, Kernel::device_gr_caps_v2),
    (c::NV0080_CTRL_CMD_GR_GET_INFO, Kernel::device_gr_info),
    (c::NV0080_CTRL_CMD_FB_GET_CAPS, Kernel::fb_caps_v1),
    (c::NV0080_CTRL_CMD_FIFO_GET_CAPS, Kernel::fifo_caps),
    (c::NV0080_CTRL_CMD_FIFO_GET_CAPS_V2, Kernel::fifo_caps_v2),
    (c::NV0080_CTRL_CMD_DMA_GET_CAPS, Kernel::dma_caps),
    (c::NV2080_CTRL_CMD_GPU_GET_ENGINES, Kernel::engines_v1),
    (c::NV2080_CTRL_CMD_GPU_QUERY_ECC_CONFIGURATION, Kernel::ecc_configuration),
    (c::NV2080_CTRL_CMD_GPU_GET_ENCODER_CAPACITY, Kernel::encoder_capacity),
    (c::NV2080_CTRL_CMD_GPU_GET_ACTIVE_PARTITION_IDS, Kernel::without_mig),
    (c::NV2080_CTRL_CMD_GPU_GET_PIDS, Kernel::pids),
    (c::NV2080_CTRL_CMD_GPU_GET_PID_INFO, Kernel::pid_info),
    (c::NV2080_CTRL_CMD_TIMER_SET_GR_TICK_FREQ, Kernel::gr_tick_frequency),
    (c::NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, Kernel::disable_channels),
    (c::NV2080_CTRL_CMD_FB_GET_SEMAPHORE_SURFACE_LAYOUT, Kernel::semaphore_surface_layout),
    (c::NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS, Kernel::service_interrupts),
    (c::NV2080_CTRL_CMD_BUS_GET_INFO, Kernel::bus_info_v1),
    (c::NV2080_CTRL_CMD_RC_GET_WATCHDOG_INFO, Kernel::watchdog_info),
    (c::NV2080_CTRL_CMD_FLCN_GET_CTX_BUFFER_SIZE, Kernel::falcon_context_size),
    (c::NV2080_CTRL_CMD_OS_UNIX_VIDMEM_PERSISTENCE_STATUS, Kernel::vidmem_persistence),
    (c::NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, Kernel::debug_read_memory),
    (c::NVA06C_CTRL_CMD_BIND, Kernel::bind_group),
    (c::NVA06F_CTRL_CMD_SET_ERROR_NOTIFIER, Kernel::set_error_notifier),
    (c::NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE, Kernel::confidential_state),
    (c::NV_CONF_COMPUTE_CTRL_CMD_GPU_GET_NUM_SECURE_CHANNELS, Kernel::secure_channels),
    (c::NV0000_CTRL_CMD_SYNC_GPU_BOOST_GROUP_INFO, Kernel::boost_groups),
    (c::NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE, Kernel::address_space_type),
    (c::NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY, Kernel::set_inherited_share_policy),
    (c::NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD, Kernel::export_object),
    (c::NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_FROM_FD, Kernel::import_object),
    (c::NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS, Kernel::attached_ids),
    (c::NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, Kernel::probed_ids),
    (c::NV0000_CTRL_CMD_GPU_ATTACH_IDS, Kernel::attach_ids),
    (c::NV0000_CTRL_CMD_GPU_DETACH_IDS, Kernel::detach_ids),
    (c::NV0000_CTRL_CMD_GPU_GET_ID_INFO, Kernel::id_info),
    (c::NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, Kernel::id_info_v2),
    (c::NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS, Kernel::device_ids),
    (c::NV0000_CTRL_CMD_GPU_GET_PCI_INFO, Kernel::pci_info),
    (c::NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID, Kernel::uuid_from_gpu_id),
    (c::NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE, Kernel::memop_enable),
    (c::NV0000_CTRL_CMD_GPU_GET_ACTIVE_DEVICE_IDS, Kernel::active_devices),
    (c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST, Kernel::class_list),
    (c::NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2, Kernel::class_list_v2),
    (c::NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES, Kernel::num_subdevices),
    (c::NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE, Kernel::virtualization_mode),
    (c::NV0080_CTRL_CMD_FB_GET_CAPS_V2, Kernel::fb_caps),
    (c::NV0080_CTRL_CMD_HOST_GET_CAPS_V2, Kernel::host_caps),
    (c::NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST, Kernel::channel_list),
    (c::NV0080_CTRL_CMD_PERF_CUDA_LIMIT_SET_CONTROL, Kernel::cuda_limit),
    (c::NV2080_CTRL_CMD_GPU_GET_INFO_V2, Kernel::gpu_info),
    (c::NV2080_CTRL_CMD_GPU_GET_NAME_STRING, Kernel::name_string),
    (c::NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING, Kernel::short_name_string),
    (c::NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO, Kernel::simulation_info),
    (c::NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS, Kernel::ecc_status),
    (c::NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES, Kernel::compute_mode_rules),
    (c::NV2080_CTRL_CMD_GPU_GET_ID, Kernel::gpu_id),
    (c::NV2080_CTRL_CMD_GPU_GET_GID_INFO, Kernel::gid_info),
    (c::NV2080_CTRL_CMD_GPU_GET_ENGINES_V2, Kernel::engines),
    (c::NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG, Kernel::compute_policy),
    (c::NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO, Kernel::fabric_probe),
    (c::NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION, Kernel::set_notification),
    (c::NV2080_CTRL_CMD_TIMER_GET_TIME, Kernel::timer_get_time),
    (c::NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO, Kernel::time_correlation),
    (c::NV2080_CTRL_CMD_GR_GET_INFO, Kernel::gr_get_info),
    (c::NV2080_CTRL_CMD_GR_GET_SM_TO_GPC_TPC_MAPPINGS, Kernel::sm_mappings),
    (c::NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, Kernel::preemption_mode),
    (c::NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE, Kernel::context_size),
    (c::NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER, Kernel::sm_order),
    (c::NV2080_CTRL_CMD_GR_GET_CAPS_V2, Kernel::gr_caps),
    (c::NV2080_CTRL_CMD_GR_GET_GPC_MASK, Kernel::gpc_mask),
    (c::NV2080_CTRL_CMD_GR_GET_TPC_MASK, Kernel::tpc_mask),
    (c::NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER, Kernel::issue_rate),
    (c::NV2080_CTRL_CMD_FB_GET_INFO, Kernel::fb_info_v1),
    (c::NV2080_CTRL_CMD_FB_GET_INFO_V2, Kernel::fb_info),
    (c::NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE, Kernel::flush_gpu_cache),
    (c::NV2080_CTRL_CMD_MC_GET_ARCH_INFO, Kernel::arch_info),
    (c::NV2080_CTRL_CMD_BUS_GET_PCI_INFO, Kernel::bus_pci_info),
    (c::NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO, Kernel::bar_info),
    (c::NV2080_CTRL_CMD_BUS_GET_INFO_V2, Kernel::bus_info),
    (c::NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS, Kernel::pcie_atomics),
    (c::NV2080_CTRL_CMD_BUS_GET_C2C_INFO, Kernel::c2c_info),
    (c::NV2080_CTRL_CMD_PERF_BOOST, Kernel::perf_boost),
    (c::NV2080_CTRL_CMD_CE_GET_CAPS_V2, Kernel::one_copy_caps),
    (c::NV2080_CTRL_CMD_CE_GET_ALL_CAPS, Kernel::copy_caps),
    (c::NV2080_CTRL_CMD_NVLINK_GET_NVLINK_STATUS, Kernel::nvlink_status),
    (c::NV2080_CTRL_CMD_GSP_GET_FEATURES, Kernel::gsp_features),
    (c::NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO, Kernel::floor_sweeping),
    (c::NV503C_CTRL_CMD_REGISTER_VA_SPACE, Kernel::p2p_register_space),
    (c::NV503C_CTRL_CMD_UNREGISTER_VA_SPACE, Kernel::p2p_unregister_space),
    (c::NV503C_CTRL_CMD_REGISTER_VIDMEM, Kernel::p2p_register_memory),
    (c::NV503C_CTRL_CMD_UNREGISTER_VIDMEM, Kernel::p2p_unregister_memory),
    (c::NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG, Kernel::set_mode_mmu_debug),
    (c::NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK, Kernel::set_exception_mask),
    (c::NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, Kernel::read_all_sm_error_states),
    (c::NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, Kernel::read_single_sm_error_state),
    (c::NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, Kernel::clear_single_sm_error_state),
    (c::NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT, Kernel::suspend_context),
    (c::NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES, Kernel::clear_all_sm_error_states),
    (c::NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG, Kernel::set_mode_errbar_debug),
    (c::NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, Kernel::debug_mmu_fault_info),
    (c::NV906F_CTRL_GET_CLASS_ENGINEID, Kernel::class_engine_id),
    (c::NV906F_CTRL_CMD_RESET_CHANNEL, Kernel::reset_channel),
    (c::NV906F_CTRL_CMD_GET_MMU_FAULT_INFO, Kernel::mmu_fault_info),
    (c::NV90E6_CTRL_CMD_MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK, Kernel::error_masks),
    (c::NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, Kernel::schedule_group),
    (c::NVA06C_CTRL_CMD_SET_TIMESLICE, Kernel::set_timeslice),
    (c::NVA06C_CTRL_CMD_GET_TIMESLICE, Kernel::get_timeslice),
    (c::NVA06C_CTRL_CMD_PREEMPT, Kernel::preempt_group),
    (c::NVA06F_CTRL_CMD_GPFIFO_SCHEDULE, Kernel::schedule_channel),
    (c::NVA06F_CTRL_CMD_BIND, Kernel::bind_channel),
    (c::NVA06F_CTRL_CMD_STOP_CHANNEL, Kernel::stop_channel),
    (c::NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, Kernel::work_submit_token),
    (c::NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX, Kernel::set_token_notifier),
    (c::NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES, Kernel::confidential_capabilities),
];

/// A control without parameters.
type BareHandler = fn(&mut Kernel, Target) -> Result<(), Refusal>;

/// Controls without parameters. There is no watchdog, and nothing is ever suspended.
const BARE: &[(u32, BareHandler)] = &[
    (c::NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT, |_, _| Ok(())),
    (c::NV2080_CTRL_CMD_RC_RELEASE_WATCHDOG_REQUESTS, |_, _| Ok(())),
    (c::NV2080_CTRL_CMD_RC_SOFT_DISABLE_WATCHDOG, |_, _| Ok(())),
    (c::NV2080_CTRL_CMD_GPU_QUERY_INFOROM_ECC_SUPPORT, Kernel::inforom_ecc_support),
];

/// Writes text into an array of characters, cut to fit, with a terminating zero.
pub(super) fn set_text(record: &mut Record, field: &StructField, text: &str) -> Result<(), Refusal> {
    let count = field.count(record.branch());
    let mut bytes = text.bytes().take(count.saturating_sub(1) as usize);
    for i in 0..count {
        record.set_at(field, i, bytes.next().unwrap_or(0).into())?;
    }
    Ok(())
}

impl Kernel {
    /// RM_CONTROL. The checks are in the module's order.
    pub(super) fn rm_control(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, object) = (p.get(&P::hClient)? as u32, p.get(&P::hObject)? as u32);
        let command = p.get(&P::cmd)? as u32;
        // The null command of every class does nothing, even for a client that is gone.
        if command & 0x3fff == 0 {
            return Ok(());
        }
        self.client(fd, client, Status::INVALID_CLIENT)?;
        let (pointer, size) = (p.get(&P::params)?, p.get(&P::paramsSize)? as usize);
        let row = control(command).filter(|row| row.exists(self.branch));
        // An older form is turned into its newer one before anything else is looked at.
        let converted = row.is_some_and(|row| row.is_converted(self.branch));
        if (pointer == 0) != (size == 0) && !converted {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if let Some(expected) = row.filter(|_| !converted).and_then(|row| row.size(self.branch))
            && expected != size
        {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if let Some(row) = row.filter(|row| row.cached.is_some() && !converted) {
            let mut input = vec![0; size];
            client_memory::read(pointer, &mut input)?;
            if let Some(answer) = self.cache.answer(client, object, row, &input) {
                return Ok(client_memory::write(pointer, answer)?);
            }
        }
        let internal =
            if object == client { "RmClientResource" } else { self.object(client, object)?.class.internal };
        let Some(row) = row else {
            return self.control_without_row(Target { client, object }, internal, command, pointer, size);
        };
        if !exports(internal, row.exporter) {
            return Err(Status::NOT_SUPPORTED.into());
        }
        if row.privilege(self.branch) > self.user {
            return Err(Status::INSUFFICIENT_PERMISSIONS.into());
        }
        if !WITHOUT_GPU.contains(&command)
            && let Ok(Some(gpu)) = self.device_above(client, object)
            && self.gpus[gpu].lost
        {
            return Err(Status::GPU_IS_LOST.into());
        }
        let target = Target { client, object };
        if let Some((_, handler)) = BARE.iter().find(|(number, _)| *number == command) {
            return handler(self, target);
        }
        let handler = HANDLERS.iter().find(|(number, _)| *number == command);
        let (Some((_, handler)), Some(layout)) = (handler, row.parameters) else {
            return Err(self.control_not_supported(command));
        };
        let mut params = Record::zeroed(layout, self.branch);
        client_memory::read(pointer, params.bytes_mut())?;
        let input = params.clone();
        handler(self, target, &mut params)?;
        client_memory::write(pointer, params.bytes())?;
        self.cache.keep(client, object, row, input.bytes(), params.bytes());
        Ok(())
    }

    /// What the tables do not name: what NVIDIA's library was seen to ask for, or nothing.
    fn control_without_row(
        &mut self,
        target: Target,
        internal: &str,
        command: u32,
        pointer: u64,
        size: usize,
    ) -> Result<(), Refusal> {
        if let Some(expected) = clocks::size(command) {
            return self.clock_control(target, command, (pointer, size), (internal, expected));
        }
        match UNNAMED.iter().find(|(number, ..)| *number == command) {
            None => Err(self.control_not_supported(command)),
            Some((_, exporter, _)) if *exporter != internal => Err(Status::NOT_SUPPORTED.into()),
            Some((.., expected)) if *expected != size => Err(Status::INVALID_ARGUMENT.into()),
            Some(_) => {
                // The parameters must be there, as they are copied in.
                client_memory::read(pointer, &mut vec![0; size])?;
                self.note_gap(format!("control without a name ({command:#010x}), accepted and not done"));
                Ok(())
            }
        }
    }

    /// A control of [`clocks`], with the place and size of its parameters, and with what it was called on and what
    /// size it takes.
    fn clock_control(
        &mut self,
        target: Target,
        command: u32,
        (pointer, size): (u64, usize),
        (internal, expected): (&str, usize),
    ) -> Result<(), Refusal> {
        if internal != "Subdevice" {
            return Err(Status::NOT_SUPPORTED.into());
        }
        if size != expected {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let clocks = self.gpu(target)?.profile.clocks;
        let mut bytes = vec![0; size];
        client_memory::read(pointer, &mut bytes)?;
        let mut words: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        clocks::answer(command, &mut words, clocks)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok(client_memory::write(pointer, &bytes)?)
    }

    /// Whether a control is simulated, in some way.
    pub(crate) fn answers(command: u32) -> bool {
        HANDLERS.iter().any(|(number, _)| *number == command)
            || BARE.iter().any(|(number, _)| *number == command)
            || clocks::size(command).is_some()
            || UNNAMED.iter().any(|(number, ..)| *number == command)
    }

    pub(super) fn control_not_supported(&mut self, command: u32) -> Refusal {
        let name = control(command).map_or("control without a name", |row| row.name);
        self.not_supported(format!("{name} ({command:#010x})"))
    }

    fn channel(&self, target: Target) -> Result<&Channel, Status> {
        match &self.object(target.client, target.object)?.kind {
            Kind::Channel(channel) => Ok(channel),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    fn channel_mut(&mut self, target: Target) -> Result<&mut Channel, Status> {
        match &mut self.object_mut(target.client, target.object)?.kind {
            Kind::Channel(channel) => Ok(channel),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    fn schedule_group(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let Kind::ChannelGroup { gpu, id, .. } = self.object(target.client, target.object)?.kind else {
            return Err(Status::INVALID_OBJECT_HANDLE.into());
        };
        let enable = p.get(&GroupSchedule::bEnable)? != 0;
        self.gpus[gpu].host.set_enabled(id, enable);
        Ok(())
    }

    fn schedule_channel(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let enable = p.get(&ChannelSchedule::bEnable)? != 0;
        let channel = self.channel(target)?;
        self.gpus[channel.gpu].host.set_channel_enabled(channel.id, enable);
        Ok(())
    }

    fn bind_channel(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        // A channel has its engine from its construction; binding it to another is refused.
        if p.get(&Bind::engineType)? == u64::from(self.channel(target)?.engine) {
            Ok(())
        } else {
            Err(Status::INVALID_ARGUMENT.into())
        }
    }

    fn bind_group(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        // As for a channel: a group has its engine from its construction.
        match self.object(target.client, target.object)?.kind {
            Kind::ChannelGroup { engine, .. } if p.get(&Bind::engineType)? == u64::from(engine) => Ok(()),
            Kind::ChannelGroup { .. } => Err(Status::INVALID_ARGUMENT.into()),
            _ => Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
    }

    /// SET_ERROR_NOTIFIER: the client has the notifier written, and nothing else happens.
    fn set_error_notifier(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// ROBUST_CHANNEL_GR_EXCEPTION (`nverror.h`).
        const XID: u32 = 13;
        let whole_group = p.get(&SetErrorNotifier::bNotifyEachChannelInTSG)? != 0;
        let channel = self.channel(target)?;
        self.gpus[channel.gpu].host.notify_error(channel.id, XID, whole_group);
        Ok(())
    }

    /// FIFO_DISABLE_CHANNELS: takes channels off their runlists, or puts them back.
    fn disable_channels(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        use DisableChannels as P;
        // The event is the kernel's own.
        if p.get(&P::pRunlistPreemptEvent)? != 0 {
            return Err(Status::INSUFFICIENT_PERMISSIONS.into());
        }
        let count = p.get(&P::numChannels)?;
        if count > u64::from(P::hChannelList.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if p.get(&P::bRewindGpPut)? != 0 {
            return Err(self.not_supported("NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS with bRewindGpPut"));
        }
        let gpu = self.gpu_of(target.client, target.object)?;
        let mut channels = Vec::new();
        for i in 0..count as u32 {
            let (client, handle) =
                (p.get_at(&P::hClientList, i)? as u32, p.get_at(&P::hChannelList, i)? as u32);
            let owner = self.clients.get(&target.client).map(|client| client.owner);
            match self.clients.get(&client) {
                Some(client) if Some(client.owner) == owner => {}
                _ => return Err(Status::INVALID_CLIENT.into()),
            }
            match self.object(client, handle).map(|object| &object.kind) {
                Ok(Kind::Channel(channel)) if channel.gpu == gpu => channels.push(channel.id),
                _ => return Err(Status::INVALID_CHANNEL.into()),
            }
        }
        let enable = p.get(&P::bDisable)? == 0;
        for channel in channels {
            self.gpus[gpu].host.set_channel_enabled(channel, enable);
        }
        Ok(())
    }

    fn set_timeslice(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let value = p.get(&Timeslice::timesliceUs)?;
        match &mut self.object_mut(target.client, target.object)?.kind {
            Kind::ChannelGroup { timeslice, .. } => {
                *timeslice = value;
                Ok(())
            }
            _ => Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
    }

    fn get_timeslice(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let Kind::ChannelGroup { timeslice, .. } = self.object(target.client, target.object)?.kind else {
            return Err(Status::INVALID_OBJECT_HANDLE.into());
        };
        Ok(p.set(&Timeslice::timesliceUs, timeslice)?)
    }

    fn work_submit_token(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let channel = self.channel(target)?;
        p.set(&Token::workSubmitToken, channel.token.into())?;
        // Measured on H200: the token is also stored as a notification.
        if let Some((memory, offset)) = &channel.notifier {
            let at = offset + u64::from(channel.token_notifier) * NOTIFIER_BYTES;
            let stored = memory
                .write_u32(at + 8, channel.token)
                .and_then(|()| memory.write_u32(at + 12, 0xffff << 16));
            stored.map_err(|_| Status::INVALID_ADDRESS)?;
        }
        Ok(())
    }

    fn set_token_notifier(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let index = p.get(&TokenIndex::index)? as u32;
        let channel = self.channel_mut(target)?;
        let Some((memory, offset)) = &channel.notifier else {
            return Err(Status::INVALID_STATE.into());
        };
        let end = offset + (u64::from(index) + 1) * NOTIFIER_BYTES;
        if index == 0 || end > memory.len() {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        channel.token_notifier = index;
        Ok(())
    }

    fn class_engine_id(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let handle = p.get(&ClassEngine::hObject)? as u32;
        let channel = self.channel(target)?;
        let (mut engine, gpu) = (channel.engine, channel.gpu);
        let object = self.object(target.client, handle)?;
        // Measured on H200: copies on a graphics channel run on the copy engine that is paired with graphics.
        if object.class.internal == "KernelCeContext" && engine == NV2080_ENGINE_TYPE_GRAPHICS {
            engine = self.gpus[gpu].profile.graphics_copy;
        }
        if object.parent != target.object || !matches!(object.kind, Kind::Engine) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let class = object.class.number;
        p.set(&ClassEngine::classID, class.into())?;
        // What SET_OBJECT takes: the class; the engine field is 0 but for software.
        p.set(&ClassEngine::classEngineID, class.into())?;
        p.set(&ClassEngine::engineID, engine.into())?;
        Ok(())
    }

    fn reset_channel(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// RESETCHANNEL_VERIF_ERROR (`nverror.h`).
        const XID: u32 = 43;
        if p.get(&Reset::subdeviceInstance)? != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let channel = self.channel(target)?;
        self.gpus[channel.gpu].host.reset_channel(channel.id, XID);
        Ok(())
    }

    fn mmu_fault_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let channel = self.channel(target)?;
        if let Some(fault) = self.gpus[channel.gpu].host.mmu_fault(channel.id) {
            p.set(&FaultInfo::addrHi, fault.va >> 32)?;
            // The address of the page, as measured.
            p.set(&FaultInfo::addrLo, fault.va & 0xffff_f000)?;
            p.set(&FaultInfo::faultType, fault.kind.number().into())?;
            return set_text(p, &FaultInfo::faultString, fault.kind.name());
        }
        // Measured on H200 on a channel that died with its group: type 0 at address 0.
        set_text(p, &FaultInfo::faultString, "NONE")
    }

    /// PREEMPT: takes a group off its engine and puts it back; channels never hold an engine here.
    fn preempt_group(&mut self, target: Target, _: &mut Record) -> Result<(), Refusal> {
        match self.object(target.client, target.object)?.kind {
            Kind::ChannelGroup { .. } => Ok(()),
            _ => Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
    }

    /// STOP_CHANNEL: no work of the channel from now on.
    fn stop_channel(&mut self, target: Target, _: &mut Record) -> Result<(), Refusal> {
        let channel = self.channel(target)?;
        self.gpus[channel.gpu].host.set_channel_enabled(channel.id, false);
        Ok(())
    }
}
