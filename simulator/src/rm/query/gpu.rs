//! Controls of a device or subdevice that say which GPU it is.

use std::ops::RangeInclusive;

use nv_abi::{
    Branch, Record,
    arch::Generation,
    rm::{
        NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS as ClassList,
        NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS as ClassListV2,
        NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS as NumSubdevices,
        NV0080_CTRL_GPU_GET_VIRTUALIZATION_MODE_PARAMS as Virtualization,
        NV0080_CTRL_GPU_QUERY_SW_STATE_PERSISTENCE_PARAMS as SwState,
        NV90E6_CTRL_MASTER_GET_VIRTUAL_FUNCTION_ERROR_CONT_INTR_MASK_PARAMS as ErrorMasks,
        NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO_PARAMS as FabricProbe,
        NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS as Policies,
        NV2080_CTRL_GPU_GET_ENCODER_CAPACITY_PARAMS as Encoder,
        NV2080_CTRL_GPU_GET_ENGINES_PARAMS as EnginesV1, NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS as Engines,
        NV2080_CTRL_GPU_GET_GID_INFO_PARAMS as Gid, NV2080_CTRL_GPU_GET_ID_PARAMS as GpuId,
        NV2080_CTRL_GPU_GET_INFO_V2_PARAMS as GpuInfo, NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS as NameString,
        NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS as ShortName,
        NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS as Simulation,
        NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS as ComputeMode,
        NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS as EccConfiguration,
        NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS as Ecc, NV2080_CTRL_GSP_GET_FEATURES_PARAMS as Gsp,
        NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS as ArchInfo,
        NV2080_CTRL_OS_UNIX_VIDMEM_PERSISTENCE_STATUS_PARAMS as VidmemPersistence,
        NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS as Watchdog,
        NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS as Correlation,
        NV2080_CTRL_TIMER_GET_TIME_PARAMS as Time, Status, class,
    },
};

use super::{
    super::{Kernel, Refusal, control::Target, control::set_text},
    Listed, find, set_uuid,
};
use crate::{client_memory, host};

/// What NV2080_CTRL_CMD_GPU_GET_INFO_V2 answers for all GPUs alike.
struct InfoOfAll {
    index: u32,
    value: u32,
    /// The branches whose module knows the index.
    branches: RangeInclusive<Branch>,
}

const EVER: RangeInclusive<Branch> = Branch::R535..=Branch::R610;

/// From `subdeviceCtrlCmdGpuGetInfoV2` of the open kernel module and `ctrl2080gpu.h`: a desktop or server GPU that is
/// not passed through, without partitions, in a machine with a PCI bus of x86.
const INFO_OF_ALL: &[InfoOfAll] = &[
    // MINOR_REVISION_EXT, NETLIST_REV0 and 1.
    InfoOfAll { index: 0x04, value: 0, branches: EVER },
    InfoOfAll { index: 0x12, value: 0, branches: EVER },
    InfoOfAll { index: 0x13, value: 0, branches: EVER },
    // SYSMEM_ACCESS: yes.
    InfoOfAll { index: 0x1f, value: 1, branches: EVER },
    // SURPRISE_REMOVAL_POSSIBLE: no.
    InfoOfAll { index: 0x25, value: 0, branches: EVER },
    // IBMNPU_RELAXED_ORDERING: unsupported.
    InfoOfAll { index: 0x26, value: u32::MAX, branches: Branch::R535..=Branch::R550 },
    // NVSWITCH_PROXY_DETECTED: no.
    InfoOfAll { index: 0x28, value: 0, branches: EVER },
    // PER_RUNLIST_CHANNEL_RAM: from Ampere on.
    InfoOfAll { index: 0x2f, value: 1, branches: EVER },
    // GPU_ATS_CAPABILITY: no.
    InfoOfAll { index: 0x30, value: 0, branches: EVER },
    // MOBILE_CONFIG_ENABLED: no.
    InfoOfAll { index: 0x35, value: 0, branches: EVER },
    // GPU_PROFILING_CAPABILITY: enabled.
    InfoOfAll { index: 0x36, value: 1, branches: EVER },
    // IS_RESETLESS_MIG_SUPPORTED: no.
    InfoOfAll { index: 0x3f, value: 0, branches: EVER },
    // IS_LOCALIZATION_SUPPORTED and GPU_NON_PASID_ATS_CAPABILITY: no.
    InfoOfAll { index: 0x41, value: 0, branches: Branch::R580..=Branch::R610 },
    InfoOfAll { index: 0x42, value: 0, branches: Branch::R580..=Branch::R610 },
];

impl Kernel {
    /// The GPU's classes that this module has.
    fn classes(&self, target: Target) -> Result<Vec<u32>, Status> {
        let all = self.gpu(target)?.profile.classes.iter().copied();
        Ok(all.filter(|class| class::exists(*class, self.branch)).collect())
    }

    pub(in super::super) fn class_list(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let classes = self.classes(target)?;
        let (given, pointer) = (p.get(&ClassList::numClasses)?, p.get(&ClassList::classList)?);
        // Without a list the call answers how long it has to be.
        if pointer != 0 {
            if given < classes.len() as u64 {
                return Err(Status::INVALID_ARGUMENT.into());
            }
            let bytes: Vec<u8> = classes.iter().flat_map(|class| class.to_le_bytes()).collect();
            client_memory::write(pointer, &bytes)?;
        }
        Ok(p.set(&ClassList::numClasses, classes.len() as u64)?)
    }

    pub(in super::super) fn class_list_v2(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let classes = self.classes(target)?;
        if classes.len() > ClassListV2::classList.count(self.branch) as usize {
            return Err(Status::INVALID_STATE.into());
        }
        for (i, class) in (0..).zip(&classes) {
            p.set_at(&ClassListV2::classList, i, (*class).into())?;
        }
        Ok(p.set(&ClassListV2::numClasses, classes.len() as u64)?)
    }

    pub(in super::super) fn num_subdevices(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&NumSubdevices::numSubDevices, 1)?)
    }

    pub(in super::super) fn virtualization_mode(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let mode = self.gpu(target)?.profile.virtualization_mode;
        Ok(p.set(&Virtualization::virtualizationMode, mode.into())?)
    }

    pub(in super::super) fn name_string(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        // Flag 1 asks for UTF-16.
        if p.get(&NameString::gpuNameStringFlags)? != 0 {
            return Err(self.not_supported("NV2080_CTRL_CMD_GPU_GET_NAME_STRING in UTF-16"));
        }
        let name = self.gpu(target)?.profile.name;
        set_text(p, &NameString::gpuNameString_ascii, name)
    }

    pub(in super::super) fn short_name_string(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let chip = self.gpu(target)?.profile.short_name;
        set_text(p, &ShortName::gpuShortNameString, chip)
    }

    /// GPU_GET_SIMULATION_INFO: the answer of silicon, so that clients take the way that they take on a card.
    pub(in super::super) fn simulation_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Simulation::r#type, 0)?)
    }

    pub(in super::super) fn gpu_id(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let id = self.gpu(target)?.id;
        Ok(p.set(&GpuId::gpuId, id.into())?)
    }

    pub(in super::super) fn gpu_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let list = Listed {
            name: "NV2080_CTRL_CMD_GPU_GET_INFO_V2",
            size: GpuInfo::gpuInfoListSize,
            index: GpuInfo::gpuInfoList_index,
            data: GpuInfo::gpuInfoList_data,
            // An index has the number of a group above it; there is one group, 0. The list has room for every index.
            end: GpuInfo::gpuInfoList_index.count(self.branch),
        };
        let branch = self.branch;
        self.answer_list(p, &list, |kernel, index| {
            let profile = &kernel.gpu(target)?.profile;
            let alike = INFO_OF_ALL.iter().find(|row| row.index == index && row.branches.contains(&branch));
            Ok(find(profile.gpu_info, index).or(alike.map(|row| row.value)))
        })
    }

    pub(in super::super) fn gid_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let uuid = self.gpu(target)?.uuid;
        if p.get(&Gid::index)? != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // Bit 1 of the flags asks for bytes, bit 0 for a digest that no module has any more.
        let flags = p.get(&Gid::flags)?;
        if flags & !2 != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let length = set_uuid(p, &Gid::data, &uuid, flags & 2 != 0)?;
        Ok(p.set(&Gid::length, length)?)
    }

    pub(in super::super) fn engines(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let engines = self.gpu(target)?.profile.engines;
        p.set(&Engines::engineCount, engines.len() as u64)?;
        for (i, engine) in (0..).zip(engines) {
            p.set_at(&Engines::engineList, i, (*engine).into())?;
        }
        Ok(())
    }

    /// GPU_GET_ENGINES: the same in the client's memory; without a list the call answers how long it has to be.
    pub(in super::super) fn engines_v1(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let engines = self.gpu(target)?.profile.engines;
        let (room, pointer) = (p.get(&EnginesV1::engineCount)?, p.get(&EnginesV1::engineList)?);
        if pointer != 0 {
            if room < engines.len() as u64 {
                return Err(Status::BUFFER_TOO_SMALL.into());
            }
            let bytes: Vec<u8> = engines.iter().flat_map(|engine| engine.to_le_bytes()).collect();
            client_memory::write(pointer, &bytes)?;
        }
        Ok(p.set(&EnginesV1::engineCount, engines.len() as u64)?)
    }

    /// GPU_GET_ENCODER_CAPACITY: all of it, whether or not the GPU has an encoder; AV1 only where it encodes that.
    pub(in super::super) fn encoder_capacity(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        /// NV2080_CTRL_GPU_GET_ENCODER_CAPACITY: H.264, HEVC, AV1.
        const H264: u64 = 0;
        const HEVC: u64 = 1;
        const AV1: u64 = 2;
        /// NV_ENC_CAPACITY_MAX_VALUE.
        const ALL: u64 = 100;
        match p.get(&Encoder::queryType)? {
            H264 | HEVC => {}
            AV1 if self.gpu(target)?.profile.generation == Generation::Ada => {}
            AV1 => return Err(Status::NOT_SUPPORTED.into()),
            _ => return Err(Status::INVALID_ARGUMENT.into()),
        }
        Ok(p.set(&Encoder::encoderCapacity, ALL)?)
    }

    /// What only a GPU in parts (MIG) answers.
    pub(in super::super) fn without_mig(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// GPU_QUERY_ECC_CONFIGURATION: on, and on again after the next start, where the GPU has it.
    pub(in super::super) fn ecc_configuration(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        self.inforom_ecc_support(target)?;
        p.set(&EccConfiguration::currentConfiguration, 1)?;
        Ok(p.set(&EccConfiguration::defaultConfiguration, 1)?)
    }

    /// GPU_QUERY_INFOROM_ECC_SUPPORT: whether there is memory that ECC can be kept for.
    pub(in super::super) fn inforom_ecc_support(&mut self, target: Target) -> Result<(), Refusal> {
        if self.gpu(target)?.profile.ecc_units.is_empty() {
            Err(Status::NOT_SUPPORTED.into())
        } else {
            Ok(())
        }
    }

    /// GPU_QUERY_SW_STATE_PERSISTENCE: as after boot, without a persistence daemon.
    pub(in super::super) fn sw_state_persistence(
        &mut self,
        _: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        /// NV0080_CTRL_GPU_SW_STATE_PERSISTENCE_DISABLED.
        const DISABLED: u64 = 1;
        Ok(p.set(&SwState::swStatePersistence, DISABLED)?)
    }

    /// OS_UNIX_VIDMEM_PERSISTENCE_STATUS: video memory does not outlive a suspend (`NVreg_PreserveVideoMemoryAllocations`
    /// is off unless asked for).
    pub(in super::super) fn vidmem_persistence(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&VidmemPersistence::bVidmemPersistent, 0)?)
    }

    /// RC_GET_WATCHDOG_INFO: initialised and disabled, as an H200 says after RC_SOFT_DISABLE_WATCHDOG (measured).
    pub(in super::super) fn watchdog_info(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV2080_CTRL_RC_GET_WATCHDOG_INFO_FLAGS_DISABLED and _INITIALIZED.
        const IDLE: u64 = 0b101;
        Ok(p.set(&Watchdog::watchdogStatusFlags, IDLE)?)
    }

    /// MC_SERVICE_INTERRUPTS: none is ever left pending.
    pub(in super::super) fn service_interrupts(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }

    /// TIMER_SET_GR_TICK_FREQ: the timestamps of simulated engines are of nanoseconds already.
    pub(in super::super) fn gr_tick_frequency(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }

    /// GPU_QUERY_ECC_STATUS: nothing ever goes wrong in simulated memory.
    pub(in super::super) fn ecc_status(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let units = self.gpu(target)?.profile.ecc_units;
        let count = Ecc::units_enabled.count(self.branch);
        for unit in units.iter().copied().filter(|unit| *unit < count) {
            p.set_at(&Ecc::units_enabled, unit, 1)?;
            p.set_at(&Ecc::units_scrubComplete, unit, 1)?;
            p.set_at(&Ecc::units_supported, unit, 1)?;
        }
        Ok(())
    }

    pub(in super::super) fn compute_mode_rules(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&ComputeMode::rules, 0)?)
    }

    /// GPU_GET_COMPUTE_POLICY_CONFIG: one policy, the default time slice.
    pub(in super::super) fn compute_policy(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        p.set(&Policies::numConfigs, 1)?;
        p.set(&Policies::configList_type, 0)?;
        Ok(p.set(&Policies::configList_timeslice, 0)?)
    }

    pub(in super::super) fn fabric_probe(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV2080_CTRL_GPU_FABRIC_PROBE_STATE_UNSUPPORTED.
        const UNSUPPORTED: u64 = 0;
        Ok(p.set(&FabricProbe::state, UNSUPPORTED)?)
    }

    pub(in super::super) fn gsp_features(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        p.set(&Gsp::gspFeatures, 1)?;
        p.set(&Gsp::bValid, 1)?;
        p.set(&Gsp::bDefaultGspRmGpu, 1)?;
        let version = self.version.clone();
        set_text(p, &Gsp::firmwareVersion, &version)
    }

    pub(in super::super) fn arch_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let profile = &self.gpu(target)?.profile;
        p.set(&ArchInfo::architecture, profile.architecture.into())?;
        p.set(&ArchInfo::implementation, profile.implementation.into())?;
        p.set(&ArchInfo::revision, profile.pci_revision.into())?;
        Ok(p.set(&ArchInfo::subRevision, profile.pci_sub_revision.into())?)
    }

    pub(in super::super) fn error_masks(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (ecc, nvlink) = self.gpu(target)?.profile.error_interrupt_masks;
        p.set(&ErrorMasks::eccMask, ecc.into())?;
        Ok(p.set(&ErrorMasks::nvlinkMask, nvlink.into())?)
    }

    pub(in super::super) fn timer_get_time(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        Ok(p.set(&Time::time_nsec, host::now())?)
    }

    /// TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO: the GPU's clock is the computer's.
    pub(in super::super) fn time_correlation(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        /// NV2080_TIMER_GPU_CPU_TIME_CPU_CLK_ID_OSTIME: the wall clock, in microseconds.
        const OSTIME: u64 = 1;
        let clock = p.get(&Correlation::cpuClkId)? & 0xf;
        let samples = p.get(&Correlation::sampleCount)?;
        if samples > u64::from(Correlation::samples_cpuTime.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if clock != OSTIME {
            return Err(self.not_supported(format!("time correlation with CPU clock {clock}")));
        }
        for i in 0..samples as u32 {
            let now = host::now();
            p.set_at(&Correlation::samples_cpuTime, i, now / 1000)?;
            p.set_at(&Correlation::samples_gpuTime, i, now)?;
        }
        Ok(())
    }

    /// PERF_BOOST: a request for clocks, which the simulated GPU does not have: always at its best.
    pub(in super::super) fn perf_boost(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }

    /// PERF_CUDA_LIMIT_SET_CONTROL: as for PERF_BOOST.
    pub(in super::super) fn cuda_limit(&mut self, _: Target, _: &mut Record) -> Result<(), Refusal> {
        Ok(())
    }
}
