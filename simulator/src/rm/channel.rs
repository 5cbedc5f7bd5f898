//! Channels and the engine classes on them.

use std::{sync::Arc, time::Duration};

use nv_abi::{
    Bits, BitsMut,
    rm::{
        NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as P, Status,
        class::{self, Privilege},
        flags::{NV2080_ENGINE_TYPE_GRAPHICS, NVOS04_FLAGS},
    },
};

use super::{Kernel, Kind, Refusal, VaSpace, allocate::Allocation, object::Channel};
use crate::{host::ChannelSpec, memory::Backing};

/// Bytes of USERD, and its alignment.
pub(super) const USERD_BYTES: u64 = 512;
/// Bytes of one notifier.
pub(super) const NOTIFIER_BYTES: u64 = 16;
/// How long an acquire may take on a channel with PBDMA_ACQUIRE_TIMEOUT (kernel_channel.c: about two seconds).
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// The notifier that receives the work submit token unless the client names another.
const WORK_SUBMIT_TOKEN: u32 = 1;

impl Kernel {
    pub(super) fn new_channel(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        if !self.gpus[gpu].profile.channel_classes.contains(&a.class.number) {
            return Err(Status::INVALID_CLASS.into());
        }
        let flags = (a.get(&P::flags)? as u32).to_le_bytes();
        if Bits::new(&flags).get(&NVOS04_FLAGS::CHANNEL_TYPE)? != NVOS04_FLAGS::CHANNEL_TYPE::PHYSICAL {
            return Err(Status::NOT_SUPPORTED.into());
        }
        let timeout = Bits::new(&flags).get(&NVOS04_FLAGS::CHANNEL_PBDMA_ACQUIRE_TIMEOUT)? != 0;
        let group = match &self.object(a.client, a.parent)?.kind {
            Kind::ChannelGroup { id, engine, space, .. } => Some((*id, *engine, space.clone())),
            _ => None,
        };
        let space =
            self.channel_space(a, group.as_ref().and_then(|(_, _, space)| space.clone()), group.is_some())?;

        // A channel that names no engine takes its group's.
        let named = a.get(&P::engineType)? as u32;
        let engine = match &group {
            Some((_, of_group, _)) if named == 0 => *of_group,
            Some((_, of_group, _)) if named != *of_group => return Err(Status::INVALID_ARGUMENT.into()),
            _ => named,
        };
        let runlist = self.gpus[gpu].profile.runlist(engine).ok_or(Status::INVALID_ARGUMENT)?;

        let entries = a.get(&P::gpFifoEntries)? as u32;
        if !entries.is_power_of_two() {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let notifier = match a.handle(&P::hObjectError)? {
            0 => None,
            handle => {
                let (memory, offset) = self.notifiers(a.client, handle).map_err(|_| Status::INVALID_STATE)?;
                // Freeing them leaves the channel as it is.
                Some((Arc::clone(&memory.backing), offset))
            }
        };
        let (userd, own) = match a.handle(&P::hUserdMemory)? {
            // The module has one ready, which the client maps as the channel's memory.
            0 => {
                let own = Backing::new("userd", USERD_BYTES).map(Arc::new).map_err(|_| Status::NO_MEMORY)?;
                ((Arc::clone(&own), 0), Some(own))
            }
            handle => {
                a.depends.push(handle);
                let memory = self.memory(a.client, handle)?;
                let offset = a.get(&P::userdOffset)?;
                let inside = offset.checked_add(USERD_BYTES).is_some_and(|end| end <= memory.size);
                if !inside || !offset.is_multiple_of(USERD_BYTES) {
                    return Err(Status::INVALID_ARGUMENT.into());
                }
                ((Arc::clone(&memory.backing), offset), None)
            }
        };

        let state = &mut self.gpus[gpu];
        let number = state.take_channel().ok_or(Status::NO_FREE_FIFOS)?;
        let group = match group {
            Some((id, _, _)) => id,
            // The module makes a group for a channel without one.
            None => {
                state.next_group += 1;
                state.next_group - 1
            }
        };
        let subcontext = match a.handle(&P::hContextShare)? {
            0 => None,
            share => match self.object(a.client, share)?.kind {
                Kind::ContextShare { subcontext, .. } => Some(subcontext),
                _ => None,
            },
        };
        let state = &mut self.gpus[gpu];
        let token = runlist << 16 | number;
        let id = state.host.add_channel(ChannelSpec {
            ring_address: a.get(&P::gpFifoOffset)?,
            entries,
            userd,
            notifier: notifier.clone(),
            space: Arc::clone(&space.space),
            group,
            subcontext,
            engine,
            token,
            acquire_timeout: timeout.then_some(ACQUIRE_TIMEOUT),
        });
        a.set(&P::cid, number.into())?;
        if self.user >= Privilege::Root {
            // Root's channels are privileged, and the answer says so.
            let mut flags = flags;
            BitsMut::new(&mut flags).set(&NVOS04_FLAGS::PRIVILEGED_CHANNEL, 1)?;
            a.set(&P::flags, u32::from_le_bytes(flags).into())?;
        }
        Ok(Kind::Channel(Channel {
            gpu,
            id,
            number,
            group,
            engine,
            token,
            notifier,
            token_notifier: WORK_SUBMIT_TOKEN,
            space,
            own_userd: own,
        }))
    }

    /// The address space that a channel names, in the order of the module's checks.
    fn channel_space(
        &self,
        a: &mut Allocation,
        of_group: Option<Arc<VaSpace>>,
        in_group: bool,
    ) -> Result<Arc<VaSpace>, Refusal> {
        let (share, space) = (a.handle(&P::hContextShare)?, a.handle(&P::hVASpace)?);
        if space != 0 && (share != 0 || in_group) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let found = if share != 0 {
            let object = self.object(a.client, share)?;
            let Kind::ContextShare { space, .. } = &object.kind else {
                return Err(Status::INVALID_ARGUMENT.into());
            };
            if object.parent != a.parent {
                return Err(Status::INVALID_OBJECT_PARENT.into());
            }
            a.depends.push(share);
            Arc::clone(space)
        } else if space != 0 {
            a.depends.push(space);
            self.va_space(a.client, space)?
        } else if in_group {
            of_group.ok_or(Status::INVALID_OBJECT)?
        } else {
            self.default_space(a.client, a.parent)?
        };
        if found.is_usable() { Ok(found) } else { Err(Status::INVALID_OBJECT.into()) }
    }

    /// An engine's class on a channel.
    pub(super) fn new_engine(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let Kind::Channel(channel) = &self.object(a.client, a.parent)?.kind else {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        };
        let (gpu, id, engine) = (channel.gpu, channel.id, channel.engine);
        let classes = self.gpus[gpu].profile.generation.classes();
        let known = [classes.compute, classes.copy, class::KEPLER_INLINE_TO_MEMORY_B];
        if !known.contains(&a.class.number) {
            // Engines of another generation do not exist on the card; graphics does, but is not simulated.
            let compute = a.class.name.ends_with("COMPUTE_A") || a.class.name.ends_with("COMPUTE_B");
            if compute || a.class.internal == "KernelCeContext" {
                return Err(Status::INVALID_CLASS.into());
            }
            return Err(self.not_supported(format!("class {} ({:#06x})", a.class.name, a.class.number)));
        }
        // A copy runlist has no graphics engine.
        if engine != NV2080_ENGINE_TYPE_GRAPHICS && a.class.internal != "KernelCeContext" {
            return Err(Status::INVALID_CLASS.into());
        }
        self.gpus[gpu].host.bind_class(id, a.class.number);
        Ok(Kind::Engine)
    }
}
