//! The debugger class: what went wrong on the SMs and in the MMU, as CUDA's library reads it after an exception.

use std::sync::Arc;

use nv_abi::{
    Record,
    rm::{
        NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS as Clear,
        NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS as States,
        NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS as DebugFault,
        NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS as ExceptionMask,
        NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS as ErrbarDebug,
        NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS as MmuDebug, Status, control as c,
    },
};

use super::{Kernel, Kind, Refusal, control::Target};
use crate::{host, memory::AccessKind};

impl Kernel {
    fn debugger(&self, target: Target) -> Result<(Arc<host::Host>, host::ChannelId), Status> {
        match self.object(target.client, target.object)?.kind {
            Kind::Debugger { gpu, channel, .. } => Ok((Arc::clone(&self.gpus[gpu].host), channel)),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    pub(super) fn set_mode_mmu_debug(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        // Faults are kept for the debugger in either mode.
        match p.get(&MmuDebug::action)? {
            1 | 2 => Ok(()),
            _ => Err(Status::INVALID_ARGUMENT.into()),
        }
    }

    /// SET_EXCEPTION_MASK: which exceptions the session wants to stop at. Nothing stops here: every exception ends the
    /// channel and is kept for the session.
    pub(super) fn set_exception_mask(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let mask = p.get(&ExceptionMask::exceptionMask)? as u32;
        let client = self.clients.get_mut(&target.client).ok_or(Status::INVALID_CLIENT)?;
        match client.objects.get_mut(&target.object).map(|object| &mut object.kind) {
            Some(Kind::Debugger { exception_mask, .. }) => {
                *exception_mask = mask;
                Ok(())
            }
            _ => Err(Status::INVALID_OBJECT_HANDLE.into()),
        }
    }

    pub(super) fn set_mode_errbar_debug(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        // Barriers of warps that faulted are never waited for.
        match p.get(&ErrbarDebug::action)? {
            1 | 2 => Ok(()),
            _ => Err(Status::INVALID_ARGUMENT.into()),
        }
    }

    pub(super) fn clear_all_sm_error_states(&mut self, _: Target, p: &mut Record) -> Result<(), Refusal> {
        if p.get(&Clear::numSMsToClear)? > u64::from(States::smErrorStateArray_hwwGlobalEsr.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        Ok(())
    }

    pub(super) fn read_all_sm_error_states(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (host, channel) = self.debugger(target)?;
        let sms = p.get(&States::numSMsToRead)?;
        if sms > u64::from(States::smErrorStateArray_hwwGlobalEsr.count) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let fault = host.mmu_fault(channel);
        p.set(&States::mmuFault_valid, fault.is_some().into())?;
        p.set(&States::mmuFault_faultInfo, fault.map_or(0, |fault| fault.kind.number()).into())?;
        // Warp exceptions are reported through the error notifier and the fault report only.
        let warp = host.faults().iter().any(|report| {
            report.channel == channel && matches!(report.fault, crate::fault::Fault::Shader { .. })
        });
        if warp && fault.is_none() {
            return Err(self.control_not_supported(c::NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES));
        }
        Ok(())
    }

    pub(super) fn debug_mmu_fault_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (host, channel) = self.debugger(target)?;
        let fault = host.mmu_fault(channel);
        p.set(&DebugFault::count, fault.is_some().into())?;
        if let Some(fault) = fault {
            p.set(&DebugFault::mmuFaultInfoList_faultAddress, fault.va)?;
            p.set(&DebugFault::mmuFaultInfoList_faultType, fault.kind.number().into())?;
            p.set(&DebugFault::mmuFaultInfoList_accessType, access_type(fault.access).into())?;
        }
        Ok(())
    }
}

/// The MMU's number of an access: NV_PFAULT_ACCESS_TYPE (dev_fault), virtual.
fn access_type(access: AccessKind) -> u32 {
    match access {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
        AccessKind::Atomic => 2,
    }
}
