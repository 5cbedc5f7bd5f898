//! Channels: a ring of entries that point at command memory, its control words, a doorbell token and an error notifier.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use nv_abi::gpfifo::{USERD_GP_GET, USERD_GP_PUT};
use nv_abi::rm::{
    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS, NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS,
    NV_CTXSHARE_ALLOCATION_PARAMETERS, NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS,
    NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS, NvNotification,
    class, control,
    flags::{NV_CTXSHARE_ALLOCATION_FLAGS, NV2080_ENGINE_TYPE_GRAPHICS},
};

use crate::{
    Error,
    error::{ChannelFault, MmuFaultInfo},
    gpu::Gpu,
    memory::{Allocation, Request, address, bounds},
    pushbuffer,
    rm::flags,
    system::lock,
};

/// Entries of one ring.
const ENTRIES: u32 = 0x1_0000;
/// Bytes from one channel's ring to the next in the shared area; the control words follow each ring.
const RING_STRIDE: u64 = 0x10_0000;
/// Command memory of one channel. The fences' own commands come first.
const COMMANDS: u64 = 2 << 20;
/// Bytes of one fence's commands.
const FENCE_BYTES: u64 = 32;
/// Fences that can be under way.
const FENCES: u64 = 64;
/// First byte of command memory for submissions.
const FIRST_COMMAND: u64 = FENCES * FENCE_BYTES;
/// Bytes of commands behind which a fence is due.
const FENCE_EVERY: u64 = COMMANDS / 16;
/// Byte offset in the notifier's page of the word that fences store.
const FENCE_WORD: u64 = 0x800;
/// The address window that UVM wants with a channel registration.
const CHANNEL_WINDOW: u64 = 0x400_0000;
/// The notifier's status once the channel has died.
const NOTIFIER_ERROR: u32 = 0xffff;
/// The Xid of an MMU fault.
const XID_MMU_FAULT: u32 = 31;
/// What GET_MMU_FAULT_INFO calls the fault of a channel that had none (measured on H200).
const NO_FAULT: &str = "NONE";

/// Byte offset of a word of the notifier, which has one layout in every branch.
fn offset_of(field: &nv_abi::StructField) -> u64 {
    field.offset(nv_abi::Branch::R535).unwrap_or(0).into()
}

/// Which of a device's two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The compute channel.
    Compute,
    /// The copy channel.
    Copy,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compute => "compute",
            Self::Copy => "copy",
        })
    }
}

/// The channel group of a device with its ring area.
#[derive(Debug)]
pub(crate) struct ChannelGroup {
    gpu: Arc<Gpu>,
    object: u32,
    context_share: u32,
    area: Arc<Allocation>,
}

impl ChannelGroup {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Arc<Self>, Error> {
        use NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as group_parameters;
        use NV_CTXSHARE_ALLOCATION_PARAMETERS as share_parameters;
        let system = &gpu.system;
        let mut params = system.record(&group_parameters::STRUCT);
        params.set(&group_parameters::engineType, NV2080_ENGINE_TYPE_GRAPHICS.into())?;
        let object = system.alloc(gpu.device, class::KEPLER_CHANNEL_GROUP_A, Some(&mut params))?;
        let area = Request::video("the ring area", 2 * RING_STRIDE).contiguous().huge().visible();
        let area = Arc::new(Allocation::new(gpu, area)?);
        let mut params = system.record(&share_parameters::STRUCT);
        params.set(&share_parameters::hVASpace, gpu.vaspace.into())?;
        params.set(
            &share_parameters::flags,
            flags(&[(
                &NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT,
                NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT::ASYNC,
            )])?,
        )?;
        let context_share = system.alloc(object, class::FERMI_CONTEXT_SHARE_A, Some(&mut params))?;
        Ok(Arc::new(Self { gpu: Arc::clone(gpu), object, context_share, area }))
    }

    /// Lets the group's channels run.
    pub(crate) fn schedule(&self) -> Result<(), Error> {
        use NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS as p;
        let mut params = self.gpu.system.record(&p::STRUCT);
        params.set(&p::bEnable, 1)?;
        self.gpu.system.control(self.object, control::NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut params)
    }
}

impl Drop for ChannelGroup {
    fn drop(&mut self) {
        // Frees the channels below it as well; nothing can be reported from here.
        let _ = self.gpu.system.free(self.gpu.device, self.object);
    }
}

/// Command memory that submissions occupy until a fence says that the GPU has read it. The get pointer cannot say so: the
/// GPU takes ring entries before it reads what they point at (measured on H200).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Occupied {
    /// Byte offsets.
    start: u64,
    end: u64,
    /// The fence behind them.
    fence: u64,
}

#[derive(Debug)]
struct Ring {
    /// Entries submitted so far.
    put: u64,
    /// Fences submitted so far.
    fences: u64,
    /// First byte of command memory that has been used since the last fence, and the next free one.
    first: u64,
    next: u64,
    occupied: VecDeque<Occupied>,
}

impl Ring {
    const NEW: Self =
        Self { put: 0, fences: 0, first: FIRST_COMMAND, next: FIRST_COMMAND, occupied: VecDeque::new() };
}

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) engine: Engine,
    group: Arc<ChannelGroup>,
    object: u32,
    token: u32,
    /// Byte offset of the ring in the group's area.
    ring_offset: u64,
    notifier: Allocation,
    commands: Allocation,
    window: u64,
    registered: bool,
    ring: Mutex<Ring>,
    fault: Mutex<Option<ChannelFault>>,
}

impl Channel {
    /// Makes a channel with the one engine object it needs.
    pub(crate) fn new(group: &Arc<ChannelGroup>, engine: Engine) -> Result<Self, Error> {
        use NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS as p;
        use NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS as token_parameters;
        let gpu = &group.gpu;
        let system = &gpu.system;
        let ring_offset = match engine {
            Engine::Compute => 0,
            Engine::Copy => RING_STRIDE,
        };
        let notifier = Allocation::new(gpu, Request::system("the notifier", 0x1000))?;
        let mut params = system.record(&p::STRUCT);
        params.set(&p::hObjectError, notifier.handle().into())?;
        params.set(&p::hObjectBuffer, group.area.handle().into())?;
        params.set(&p::gpFifoOffset, group.area.address() + ring_offset)?;
        params.set(&p::gpFifoEntries, ENTRIES.into())?;
        params.set(&p::hContextShare, group.context_share.into())?;
        params.set(&p::hUserdMemory, group.area.handle().into())?;
        params.set(&p::userdOffset, ring_offset + u64::from(ENTRIES) * 8)?;
        let object = system.alloc(group.object, gpu.classes.channel, Some(&mut params))?;
        let engine_class = match engine {
            Engine::Compute => gpu.classes.compute,
            Engine::Copy => gpu.classes.copy,
        };
        system.alloc(object, engine_class, None)?;
        let mut params = system.record(&token_parameters::STRUCT);
        params.set(&token_parameters::workSubmitToken, u32::MAX.into())?;
        system.control(object, control::NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut params)?;
        let token = params.get(&token_parameters::workSubmitToken)? as u32;
        let commands = Allocation::new(gpu, Request::video("command memory", COMMANDS).huge().visible())?;
        let window = address::allocate(CHANNEL_WINDOW, 0x1000)?;
        let mut channel = Self {
            engine,
            group: Arc::clone(group),
            object,
            token,
            ring_offset,
            notifier,
            commands,
            window,
            registered: false,
            ring: Mutex::new(Ring::NEW),
            fault: Mutex::default(),
        };
        channel.gpu().system.uvm_register_channel(&gpu.uuid, object, window, CHANNEL_WINDOW)?;
        channel.registered = true;
        Ok(channel)
    }

    fn gpu(&self) -> &Arc<Gpu> {
        &self.group.gpu
    }

    /// Byte offset of the control words in the group's area.
    fn userd(&self) -> u64 {
        self.ring_offset + u64::from(ENTRIES) * 8
    }

    /// Entries that the GPU has taken from the ring.
    fn taken(&self, ring: &Ring) -> Result<u64, Error> {
        let get = self.group.area.window()?.load32(self.userd() + USERD_GP_GET)?;
        let behind = (ring.put as u32).wrapping_sub(get) & (ENTRIES - 1);
        // Whatever the word says: the GPU can write it.
        Ok(ring.put.saturating_sub(behind.into()))
    }

    /// Number of the last fence that the GPU has reached.
    fn reached(&self, ring: &Ring) -> Result<u64, Error> {
        let word = self.notifier.window()?.load32(FENCE_WORD)?;
        Ok(ring.fences.saturating_sub((ring.fences as u32).wrapping_sub(word).into()))
    }

    /// Waits until `enough` is true. What runs out is `name`, of which `needed` more is wanted.
    fn wait_room(
        &self,
        name: &'static str,
        needed: u64,
        deadline: Duration,
        mut enough: impl FnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        while !enough()? {
            self.check()?;
            if start.elapsed() > deadline {
                return Err(Error::RingOverrun { ring: name, needed, after: deadline });
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Has the GPU say when it has read all commands so far.
    fn fence(&self, ring: &mut Ring, deadline: Duration) -> Result<(), Error> {
        let fence = ring.fences + 1;
        // Its own commands lie where those of an earlier one did.
        self.wait_room("fences", 1, deadline, || Ok(self.reached(ring)? + FENCES >= fence))?;
        let words = pushbuffer::fence(self.notifier.address() + FENCE_WORD, fence as u32)?;
        let place = fence % FENCES * FENCE_BYTES;
        self.store_commands(place, &words)?;
        self.push(ring, self.commands.address() + place, words.len() as u32, deadline)?;
        ring.fences = fence;
        ring.occupied.push_back(Occupied { start: ring.first, end: ring.next, fence });
        ring.first = ring.next;
        Ok(())
    }

    fn store_commands(&self, offset: u64, words: &[u32]) -> Result<(), Error> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.commands.window()?.write(offset, &data)
    }

    /// Copies commands into command memory and submits them.
    pub(crate) fn submit(&self, words: &[u32], deadline: Duration) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let bytes = words.len() as u64 * 4;
        if bytes > COMMANDS - FIRST_COMMAND {
            return Err(bounds("command memory", FIRST_COMMAND, bytes, COMMANDS));
        }
        let ring = &mut *lock(&self.ring);
        let wraps = ring.next + bytes > COMMANDS;
        if wraps || ring.next - ring.first >= FENCE_EVERY {
            if ring.next > ring.first {
                self.fence(ring, deadline)?;
            }
            if wraps {
                (ring.first, ring.next) = (FIRST_COMMAND, FIRST_COMMAND);
            }
        }
        let (start, end) = (ring.next, ring.next + bytes);
        self.wait_room("command memory", bytes, deadline, || {
            let reached = self.reached(ring)?;
            ring.occupied.retain(|used| used.fence > reached);
            Ok(ring.occupied.iter().all(|used| used.end <= start || end <= used.start))
        })?;
        self.store_commands(start, words)?;
        self.push(ring, self.commands.address() + start, words.len() as u32, deadline)?;
        ring.next = end;
        Ok(())
    }

    /// Submits commands that already lie in GPU memory.
    pub(crate) fn submit_at(&self, address: u64, words: u32, deadline: Duration) -> Result<(), Error> {
        self.push(&mut lock(&self.ring), address, words, deadline)
    }

    fn push(&self, ring: &mut Ring, address: u64, words: u32, deadline: Duration) -> Result<(), Error> {
        self.check()?;
        // One entry stays free: equal indices mean an empty ring.
        self.wait_room("GPFIFO", 1, deadline, || Ok(ring.put - self.taken(ring)? < u64::from(ENTRIES) - 1))?;
        let entry = pushbuffer::entry(address, words)?;
        let area = self.group.area.window()?;
        let slot = self.ring_offset + (ring.put % u64::from(ENTRIES)) * 8;
        let next = (ring.put + 1) % u64::from(ENTRIES);
        area.store64(slot, entry)?;
        area.store32(self.userd() + USERD_GP_PUT, next as u32)?;
        ring.put += 1;
        self.gpu().ring(self.token)
    }

    /// An error if the channel has died.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.fault()? {
            Some(fault) => Err(Error::ChannelFault(Box::new(fault))),
            None => Ok(()),
        }
    }

    /// What the error notifier says, once the channel has died.
    pub(crate) fn fault(&self) -> Result<Option<ChannelFault>, Error> {
        use NvNotification as notification;
        let mut fault = lock(&self.fault);
        if fault.is_some() {
            return Ok(fault.clone());
        }
        let window = self.notifier.window()?;
        // The word with the status says whether the rest is there.
        let last = window.load32(offset_of(&notification::info16))?;
        if last >> 16 != NOTIFIER_ERROR {
            return Ok(None);
        }
        let xid = window.load32(offset_of(&notification::info32))?;
        // The high word comes first.
        let time = offset_of(&notification::timeStamp_nanoseconds);
        let timestamp = u64::from(window.load32(time)?) << 32 | u64::from(window.load32(time + 4)?);
        let mmu = if xid == XID_MMU_FAULT { self.mmu_fault()? } else { None };
        let found = ChannelFault { engine: self.engine, xid, engine_type: last as u16, timestamp, mmu };
        *fault = Some(found.clone());
        Ok(Some(found))
    }

    fn mmu_fault(&self) -> Result<Option<MmuFaultInfo>, Error> {
        use NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS as p;
        let mut params = self.gpu().system.record(&p::STRUCT);
        let command = control::NV906F_CTRL_CMD_GET_MMU_FAULT_INFO;
        if self.gpu().system.control(self.object, command, &mut params).is_err() {
            // The fault itself is what matters; its details are extra.
            return Ok(None);
        }
        let name = params.text(&p::faultString)?;
        if name.is_empty() || name == NO_FAULT {
            // Another channel of the group ran into it.
            return Ok(None);
        }
        Ok(Some(MmuFaultInfo {
            address: params.get(&p::addrHi)? << 32 | params.get(&p::addrLo)?,
            fault_type: params.get(&p::faultType)? as u32,
            name,
        }))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Nothing can be reported from a drop.
        let gpu = self.gpu();
        if self.registered {
            let _ = gpu.system.uvm_unregister_channel(&gpu.uuid, self.object);
        }
        let _ = gpu.system.free(self.group.object, self.object);
        address::release(self.window, CHANNEL_WINDOW);
    }
}
