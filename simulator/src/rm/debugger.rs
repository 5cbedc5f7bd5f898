//! The debugger class: what went wrong on the SMs and in the MMU, as CUDA's library reads it after an exception.

use std::sync::Arc;

use nv_abi::{
    Errno, Record,
    rm::{
        NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS as Suspend,
        NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS as Clear,
        NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS as ClearSingle,
        NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS as States,
        NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS as ReadMemory,
        NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS as DebugFault,
        NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS as Single,
        NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS as ExceptionMask,
        NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS as ErrbarDebug,
        NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS as MmuDebug, Status,
    },
};

use super::{Kernel, Kind, Refusal, control::Target};
use crate::{
    client_memory,
    fault::FaultReport,
    host,
    memory::AccessKind,
    sm::{Fault, FaultKind},
};

/// Error numbers of a warp's exception register (HWW_WARP_ESR 15:0), as open drivers name them.
mod esr {
    pub(super) const MISALIGNED_PC: u32 = 0x05;
    pub(super) const PC_OVERFLOW: u32 = 0x06;
    pub(super) const ILLEGAL_INSTR_ENCODING: u32 = 0x09;
    pub(super) const ILLEGAL_INSTR_PARAM: u32 = 0x0b;
    pub(super) const INVALID_CONST_ADDR: u32 = 0x0c;
    pub(super) const OOR_REG: u32 = 0x0d;
    pub(super) const OOR_ADDR: u32 = 0x0e;
    pub(super) const MISALIGNED_ADDR: u32 = 0x0f;
    pub(super) const INVALID_ADDR_SPACE: u32 = 0x10;
    /// HWW_GLOBAL_ESR: a breakpoint instruction, which a trap is.
    pub(super) const BPT_INT: u32 = 0x10;
    /// HWW_WARP_ESR: the address register holds the address.
    pub(super) const ADDR_VALID: u32 = 1 << 24;
}

/// The registers of one SM after an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmState {
    /// HWW_GLOBAL_ESR.
    pub global_esr: u32,
    /// HWW_WARP_ESR.
    pub warp_esr: u32,
    /// HWW_WARP_ESR_ADDR.
    pub address: u64,
    /// HWW_WARP_ESR_PC.
    pub program_counter: u64,
}

/// What an exception leaves in the registers. `None` for what is no exception of a warp.
pub fn registers(fault: &Fault) -> Option<SmState> {
    let (error, address) = match &fault.kind {
        FaultKind::UnknownInstruction | FaultKind::IllegalForm(_) | FaultKind::Unsupported(_) => {
            (esr::ILLEGAL_INSTR_ENCODING, None)
        }
        // Which of them a card reports for textures was not seen.
        FaultKind::Texture(_) => (esr::ILLEGAL_INSTR_PARAM, None),
        FaultKind::OutOfRangeSurface { .. } => (esr::OOR_ADDR, None),
        FaultKind::OutOfRangeRegister { .. } => (esr::OOR_REG, None),
        FaultKind::IllegalBarrier { .. } => (esr::ILLEGAL_INSTR_PARAM, None),
        FaultKind::Misaligned { address } => (esr::MISALIGNED_ADDR, Some(*address)),
        FaultKind::OutOfRangeShared { address }
        | FaultKind::OutOfRangeLocal { address }
        | FaultKind::ClusterTarget { address } => (esr::OOR_ADDR, Some(*address)),
        FaultKind::InvalidAddressSpace { address } => (esr::INVALID_ADDR_SPACE, Some(*address)),
        FaultKind::Constant { .. } | FaultKind::BindlessConstant { .. } => (esr::INVALID_CONST_ADDR, None),
        FaultKind::InvalidPc if !fault.program_counter.is_multiple_of(16) => (esr::MISALIGNED_PC, None),
        FaultKind::InvalidPc => (esr::PC_OVERFLOW, None),
        FaultKind::Trap => (0, None),
        FaultKind::Mmu(_) | FaultKind::Launch(_) | FaultKind::Stopped => return None,
    };
    let trap = fault.kind == FaultKind::Trap;
    let valid = if address.is_some() { esr::ADDR_VALID } else { 0 };
    Some(SmState {
        global_esr: if trap { esr::BPT_INT } else { 0 },
        warp_esr: if trap { 0 } else { error | (fault.warp & 0xff) << 16 | valid },
        address: address.unwrap_or(0),
        program_counter: fault.program_counter,
    })
}

impl Kernel {
    /// The session's host and channel, and since when its error states count.
    fn debugger(&self, target: Target) -> Result<(Arc<host::Host>, host::ChannelId, u64), Status> {
        match self.object(target.client, target.object)?.kind {
            Kind::Debugger { gpu, channel, cleared, .. } => {
                Ok((Arc::clone(&self.gpus[gpu].host), channel, cleared))
            }
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    /// The SM that an exception happened on and its registers, newest first.
    fn exception(&self, target: Target) -> Result<Option<(u32, SmState)>, Status> {
        let (host, channel, cleared) = self.debugger(target)?;
        let sms = self.sm_count(target)?.max(1);
        let shown = |report: &&FaultReport| report.channel == channel && report.time > cleared;
        let reports = host.faults();
        let fault = reports.iter().rev().find(shown).and_then(|report| report.fault.exception());
        // Blocks go round the SMs.
        Ok(fault.and_then(|fault| Some(((u64::from(fault.cta[0]) % sms) as u32, registers(fault)?))))
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
        match &mut self.object_mut(target.client, target.object)?.kind {
            Kind::Debugger { exception_mask, .. } => {
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

    pub(super) fn suspend_context(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        // An exception has ended the channel already: there is nothing that could go on.
        self.debugger(target)?;
        p.set(&Suspend::waitForEvent, 0)?;
        Ok(p.set(&Suspend::hResidentChannel, 0)?)
    }

    /// From now on the session's exceptions so far are none.
    fn clear_exceptions(&mut self, target: Target) -> Result<(), Status> {
        match &mut self.object_mut(target.client, target.object)?.kind {
            Kind::Debugger { cleared, .. } => {
                *cleared = host::now();
                Ok(())
            }
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    pub(super) fn clear_all_sm_error_states(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        if p.get(&Clear::numSMsToClear)? > self.sm_count(target)? {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        Ok(self.clear_exceptions(target)?)
    }

    pub(super) fn clear_single_sm_error_state(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        if self.state_of(target, p.get(&ClearSingle::smID)?)?.is_some() {
            self.clear_exceptions(target)?;
        }
        Ok(())
    }

    fn sm_count(&self, target: Target) -> Result<u64, Status> {
        let gpu = self.gpu_of(target.client, target.object)?;
        Ok(self.gpus[gpu].profile.sm_count().into())
    }

    /// The registers of one SM, where the session's exception happened on it.
    fn state_of(&self, target: Target, sm: u64) -> Result<Option<SmState>, Status> {
        if sm >= self.sm_count(target)? {
            return Err(Status::INVALID_ARGUMENT);
        }
        let exception = self.exception(target)?;
        Ok(exception.filter(|(at, _)| u64::from(*at) == sm).map(|(_, state)| state))
    }

    pub(super) fn read_single_sm_error_state(
        &mut self,
        target: Target,
        p: &mut Record,
    ) -> Result<(), Refusal> {
        let state = self.state_of(target, p.get(&Single::smID)?)?.unwrap_or_default();
        p.set(&Single::smErrorState_hwwGlobalEsr, state.global_esr.into())?;
        p.set(&Single::smErrorState_hwwWarpEsr, state.warp_esr.into())?;
        p.set(&Single::smErrorState_hwwWarpEsrPc, state.program_counter & 0xffff_ffff)?;
        p.set(&Single::smErrorState_hwwEsrAddr, state.address)?;
        Ok(p.set(&Single::smErrorState_hwwWarpEsrPc64, state.program_counter)?)
    }

    pub(super) fn read_all_sm_error_states(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (host, channel, _) = self.debugger(target)?;
        let (first, count) = (p.get(&States::startingSM)? as u32, p.get(&States::numSMsToRead)? as u32);
        if count > States::smErrorStateArray_hwwGlobalEsr.count {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let fault = host.mmu_fault(channel);
        p.set(&States::mmuFault_valid, fault.is_some().into())?;
        p.set(&States::mmuFault_faultInfo, fault.map_or(0, |fault| fault.kind.number()).into())?;
        let exception = self.exception(target)?;
        for at in 0..count {
            let here = exception.filter(|(sm, _)| sm.checked_sub(first) == Some(at));
            let state = here.map(|(_, state)| state).unwrap_or_default();
            p.set_at(&States::smErrorStateArray_hwwGlobalEsr, at, state.global_esr.into())?;
            p.set_at(&States::smErrorStateArray_hwwWarpEsr, at, state.warp_esr.into())?;
            p.set_at(&States::smErrorStateArray_hwwWarpEsrPc, at, state.program_counter & 0xffff_ffff)?;
            p.set_at(&States::smErrorStateArray_hwwEsrAddr, at, state.address)?;
            p.set_at(&States::smErrorStateArray_hwwWarpEsrPc64, at, state.program_counter)?;
        }
        Ok(())
    }

    /// READ_MEMORY: bytes of one of the client's memory objects.
    pub(super) fn debug_read_memory(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        /// Bytes that go from one memory to the other at a time.
        const PIECE: u64 = 1 << 16;
        let handle = p.get(&ReadMemory::hMemory)? as u32;
        let (offset, length) = (p.get(&ReadMemory::offset)?, p.get(&ReadMemory::length)?);
        let to = p.get(&ReadMemory::buffer)?;
        let memory = match self.object(target.client, handle).map(|object| &object.kind) {
            Ok(Kind::Memory(memory)) => Arc::clone(memory),
            Ok(_) => return Err(Status::INVALID_ARGUMENT.into()),
            Err(_) => return Err(Status::INSUFFICIENT_PERMISSIONS.into()),
        };
        if length == 0 || offset.checked_add(length).is_none_or(|end| end > memory.size) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let mut piece = vec![0; PIECE.min(length) as usize];
        let mut done = 0;
        while done < length {
            let bytes = &mut piece[..PIECE.min(length - done) as usize];
            memory.backing.read(offset + done, bytes).map_err(|_| Status::INVALID_ADDRESS)?;
            client_memory::write(to.checked_add(done).ok_or(Errno::EFAULT)?, bytes)?;
            done += bytes.len() as u64;
        }
        Ok(())
    }

    pub(super) fn debug_mmu_fault_info(&mut self, target: Target, p: &mut Record) -> Result<(), Refusal> {
        let (host, channel, _) = self.debugger(target)?;
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
