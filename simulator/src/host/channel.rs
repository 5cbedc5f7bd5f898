//! Host methods: those below byte address 0x100, which the channel itself executes on any subchannel.

use std::sync::atomic::{Ordering, fence};

use nv_abi::{
    arch::Generation,
    host::{AMPERE_CHANNEL_GPFIFO_A as ampere, HOPPER_CHANNEL_GPFIFO_A as hopper},
};

use super::semaphore::{self, Acquire, Reduction, Release, Width};
use crate::{
    engine::{Context, check_value, field},
    fault::{Fault, PbdmaInterrupt},
};

/// Methods from here on belong to the object of the subchannel.
pub(super) const FIRST_ENGINE_METHOD: u32 = 0x100;

const ILLEGAL: u32 = ampere::ILLEGAL.address;
const NOP: u32 = ampere::NOP.address;
const SEMAPHOREA: u32 = ampere::SEMAPHOREA.address;
const SEMAPHOREB: u32 = ampere::SEMAPHOREB.address;
const SEMAPHOREC: u32 = ampere::SEMAPHOREC.address;
const SEMAPHORED: u32 = ampere::SEMAPHORED.address;
const NON_STALL_INTERRUPT: u32 = ampere::NON_STALL_INTERRUPT.address;
const FB_FLUSH: u32 = ampere::FB_FLUSH.address;
const MEM_OP_A: u32 = ampere::MEM_OP_A.address;
const MEM_OP_B: u32 = ampere::MEM_OP_B.address;
const MEM_OP_C: u32 = ampere::MEM_OP_C.address;
const MEM_OP_D: u32 = ampere::MEM_OP_D.address;
const SET_REFERENCE: u32 = ampere::SET_REFERENCE.address;
const SEM_ADDR_LO: u32 = ampere::SEM_ADDR_LO.address;
const SEM_ADDR_HI: u32 = ampere::SEM_ADDR_HI.address;
const SEM_PAYLOAD_LO: u32 = ampere::SEM_PAYLOAD_LO.address;
const SEM_PAYLOAD_HI: u32 = ampere::SEM_PAYLOAD_HI.address;
const SEM_EXECUTE: u32 = ampere::SEM_EXECUTE.address;
const WFI: u32 = ampere::WFI.address;
const YIELD: u32 = ampere::YIELD.address;

/// What a method came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Done.
    Done,
    /// To be tried again: the acquire does not pass.
    Blocked { address: u64, payload: u64 },
    /// SET_REFERENCE: to be stored in USERD.
    Reference(u32),
}

/// The registers of the host's semaphore methods.
#[derive(Debug)]
pub(super) struct HostMethods {
    generation: Generation,
    address_lower: u32,
    address_upper: u32,
    payload_lower: u32,
    payload_upper: u32,
    legacy_address_lower: u32,
    legacy_address_upper: u32,
    legacy_payload: u32,
}

fn method_fault(reason: impl Into<String>) -> Fault {
    Fault::Pbdma { interrupt: PbdmaInterrupt::Method, reason: reason.into() }
}

fn semaphore_fault(reason: String) -> Fault {
    Fault::Pbdma { interrupt: PbdmaInterrupt::Semaphore, reason }
}

impl HostMethods {
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            generation,
            address_lower: 0,
            address_upper: 0,
            payload_lower: 0,
            payload_upper: 0,
            legacy_address_lower: 0,
            legacy_address_upper: 0,
            legacy_payload: 0,
        }
    }

    /// Executes one.
    pub(super) fn method(
        &mut self,
        context: &Context<'_>,
        address: u32,
        data: u32,
    ) -> Result<Outcome, Fault> {
        let Some((method, _)) = self.generation.host_methods().method(address) else {
            return Err(method_fault(format!("the host has no method {address:#06x}")));
        };
        // The fields of MEM_OP overlap: which of them a word has is told by the operation.
        if !(MEM_OP_A..=MEM_OP_D).contains(&address)
            && let Err(reason) = check_value(method, data)
        {
            return Err(method_fault(format!("{} = {data:#010x}: {reason}", method.name)));
        }
        match address {
            NOP | MEM_OP_A | MEM_OP_B | MEM_OP_C => {}
            ILLEGAL => return Err(method_fault(format!("ILLEGAL = {data:#010x}"))),
            SEMAPHOREA => self.legacy_address_upper = data,
            SEMAPHOREB => self.legacy_address_lower = data,
            SEMAPHOREC => self.legacy_payload = data,
            SEMAPHORED => return self.legacy_semaphore(context, data),
            SEM_ADDR_LO => self.address_lower = data,
            SEM_ADDR_HI => self.address_upper = data,
            SEM_PAYLOAD_LO => self.payload_lower = data,
            SEM_PAYLOAD_HI => self.payload_upper = data,
            SEM_EXECUTE => return self.semaphore(context, data),
            NON_STALL_INTERRUPT => context.interrupt(),
            // Engines of a channel finish a method before the next one is taken, and stores are seen in order.
            FB_FLUSH | WFI => fence(Ordering::SeqCst),
            MEM_OP_D => self.memory_operation(data)?,
            SET_REFERENCE => return Ok(Outcome::Reference(data)),
            // Every channel runs on its own, so a yielded time slice changes nothing.
            YIELD => {}
            _ => {
                return Err(Fault::NotSimulated {
                    class: self.generation.classes().channel,
                    method: method.name,
                    what: format!("data {data:#010x}"),
                });
            }
        }
        Ok(Outcome::Done)
    }

    fn memory_operation(&self, data: u32) -> Result<(), Fault> {
        use ampere::MEM_OP_D::OPERATION;
        match field(data, &OPERATION) {
            OPERATION::MEMBAR => fence(Ordering::SeqCst),
            // Every access looks the address up in the newest map, and there are no caches to write back.
            OPERATION::MMU_TLB_INVALIDATE
            | OPERATION::MMU_TLB_INVALIDATE_TARGETED
            | OPERATION::L2_PEERMEM_INVALIDATE
            | OPERATION::L2_SYSMEM_INVALIDATE => fence(Ordering::SeqCst),
            hopper::MEM_OP_D::OPERATION::MMU_OPERATION if self.generation >= Generation::Hopper => {
                fence(Ordering::SeqCst);
            }
            operation => return Err(method_fault(format!("MEM_OP_D: operation {operation:#x}"))),
        }
        Ok(())
    }

    fn semaphore(&self, context: &Context<'_>, data: u32) -> Result<Outcome, Fault> {
        use ampere::SEM_EXECUTE::{OPERATION, PAYLOAD_SIZE, REDUCTION, REDUCTION_FORMAT, RELEASE_TIMESTAMP};
        let address = u64::from(self.address_upper) << 32 | u64::from(self.address_lower);
        let payload = u64::from(self.payload_upper) << 32 | u64::from(self.payload_lower);
        let width =
            if field(data, &PAYLOAD_SIZE) == PAYLOAD_SIZE::_64BIT { Width::Long } else { Width::Word };
        let timestamp = field(data, &RELEASE_TIMESTAMP) == RELEASE_TIMESTAMP::EN;
        let acquire = |condition| Self::acquire(context, condition, width, address, payload);
        match field(data, &OPERATION) {
            OPERATION::ACQUIRE => acquire(Acquire::Equal),
            OPERATION::ACQ_STRICT_GEQ => acquire(Acquire::StrictGreaterOrEqual),
            OPERATION::ACQ_CIRC_GEQ => acquire(Acquire::CircularGreaterOrEqual),
            OPERATION::ACQ_AND => acquire(Acquire::And),
            OPERATION::ACQ_NOR => acquire(Acquire::Nor),
            OPERATION::RELEASE => {
                Self::release(context, &Release { address, payload, width, timestamp, reduction: None })
            }
            OPERATION::REDUCTION => {
                let signed = field(data, &REDUCTION_FORMAT) == REDUCTION_FORMAT::SIGNED;
                let reduction = Some((reduction(field(data, &REDUCTION))?, signed));
                Self::release(context, &Release { address, payload, width, timestamp, reduction })
            }
            operation => Err(semaphore_fault(format!("SEM_EXECUTE: operation {operation}"))),
        }
    }

    fn legacy_semaphore(&self, context: &Context<'_>, data: u32) -> Result<Outcome, Fault> {
        use ampere::SEMAPHORED::{FORMAT, OPERATION, REDUCTION, RELEASE_SIZE};
        let address = u64::from(self.legacy_address_upper) << 32 | u64::from(self.legacy_address_lower);
        let payload = u64::from(self.legacy_payload);
        let acquire = |condition| Self::acquire(context, condition, Width::Word, address, payload);
        let width = Width::Word;
        match field(data, &OPERATION) {
            OPERATION::ACQUIRE => acquire(Acquire::Equal),
            // dev_pbdma describes the comparison of the old method as the circular one.
            OPERATION::ACQ_GEQ => acquire(Acquire::CircularGreaterOrEqual),
            OPERATION::ACQ_AND => acquire(Acquire::And),
            OPERATION::RELEASE => {
                let timestamp = field(data, &RELEASE_SIZE) == RELEASE_SIZE::_16BYTE;
                Self::release(context, &Release { address, payload, width, timestamp, reduction: None })
            }
            OPERATION::REDUCTION => {
                let signed = field(data, &FORMAT) == FORMAT::SIGNED;
                let reduction = Some((reduction(field(data, &REDUCTION))?, signed));
                Self::release(context, &Release { address, payload, width, timestamp: false, reduction })
            }
            operation => Err(semaphore_fault(format!("SEMAPHORED: operation {operation:#x}"))),
        }
    }

    fn acquire(
        context: &Context<'_>,
        condition: Acquire,
        width: Width,
        address: u64,
        payload: u64,
    ) -> Result<Outcome, Fault> {
        let memory = semaphore::load(context.map, address, width)
            .map_err(|error| context.semaphore_fault("host, semaphore acquire", error, semaphore_fault))?;
        if condition.passes(width, memory, payload) {
            Ok(Outcome::Done)
        } else {
            Ok(Outcome::Blocked { address, payload })
        }
    }

    fn release(context: &Context<'_>, release: &Release) -> Result<Outcome, Fault> {
        context.release("host, semaphore release", release, semaphore_fault)?;
        Ok(Outcome::Done)
    }
}

/// The reduction that a host method's field names.
fn reduction(number: u64) -> Result<Reduction, Fault> {
    Reduction::from_host(number).ok_or_else(|| semaphore_fault(format!("reduction {number}")))
}
