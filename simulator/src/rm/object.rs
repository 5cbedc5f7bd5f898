//! The object tree: clients, and what they hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nv_abi::rm::class::Class;

use crate::{
    host::ChannelId,
    memory::{AddressSpace, Backing},
};

/// A client: a name space of objects that belongs to one control file.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) handle: u32,
    /// Serial of the control file that made it.
    pub(crate) owner: u64,
    pub(crate) objects: BTreeMap<u32, Object>,
    /// Policies of objects that have none of their own.
    pub(crate) inherited_shares: Vec<SharePolicy>,
    next: u32,
}

impl Client {
    const FIRST_OBJECT: u32 = 0xcaf0_0000;
    const OBJECTS: u32 = 0x8_0000;

    pub(crate) fn new(handle: u32, owner: u64) -> Self {
        Self { handle, owner, objects: BTreeMap::new(), inherited_shares: Vec::new(), next: 0 }
    }

    /// The next handle that is free in the module's own range; `None` when all are taken.
    pub(crate) fn pick_handle(&mut self) -> Option<u32> {
        for _ in 0..Self::OBJECTS {
            let handle = Self::FIRST_OBJECT + self.next;
            self.next = (self.next + 1) % Self::OBJECTS;
            if !self.objects.contains_key(&handle) {
                return Some(handle);
            }
        }
        None
    }
}

/// An object of a client.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) parent: u32,
    pub(crate) class: &'static Class,
    pub(crate) kind: Kind,
    /// Objects of the same client that this one cannot live without, besides its parent.
    pub(crate) depends: Vec<u32>,
    /// Who else may use it; `None` for what its client's inherited policies say.
    pub(crate) shares: Option<Vec<SharePolicy>>,
}

/// Rights that a client gives on its objects (RS_SHARE_POLICY, `rs_access.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharePolicy {
    /// The client, process or GPU that the policy is for, by `kind`.
    pub(crate) target: u32,
    /// Rights, bit by bit.
    pub(crate) access: u32,
    /// RS_SHARE_TYPE.
    pub(crate) kind: u16,
    /// RS_SHARE_ACTION_FLAG.
    pub(crate) action: u8,
}

impl Object {
    /// An object that depends on its parent alone.
    pub(crate) fn new(parent: u32, class: &'static Class, kind: Kind) -> Self {
        Self { parent, class, kind, depends: Vec::new(), shares: None }
    }
}

/// What an object is, with its state.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A GPU, with the address space that it gives to those who name none.
    Device { gpu: usize, space: Arc<VaSpace> },
    /// One GPU of a device.
    Subdevice { gpu: usize },
    /// The doorbell page, in the registers or (Hopper's parameters) in the window to video memory.
    Usermode { gpu: usize, in_bar1: bool },
    /// Memory.
    Memory(Arc<Memory>),
    /// A range of an address space that RM_MAP_MEMORY_DMA maps into.
    VirtualMemory { space: Arc<VaSpace>, offset: u64, limit: u64 },
    /// An address space.
    VaSpace(Arc<VaSpace>),
    /// Channels that are scheduled together.
    ChannelGroup {
        gpu: usize,
        id: u32,
        engine: u32,
        space: Option<Arc<VaSpace>>,
        timeslice: u64,
        /// Subcontexts given out: asynchronous ones from the top down.
        subcontexts: BTreeSet<u32>,
    },
    /// An address space for some channels of a group.
    ContextShare { space: Arc<VaSpace>, subcontext: u32 },
    /// A channel.
    Channel(Channel),
    /// An engine's class on a channel.
    Engine,
    /// A debugger session for the channel of an engine object.
    Debugger {
        gpu: usize,
        channel: ChannelId,
        exception_mask: u32,
        /// Error states up to this time were cleared.
        cleared: u64,
    },
    /// An event: what it listens to is kept by [`super::events::Events`].
    Event,
    /// A window into memory.
    ContextDma { memory: Arc<Memory>, offset: u64 },
    /// A way between two GPUs.
    Peer { gpu: usize, peer: usize },
    /// Address spaces and video memory that other devices may reach.
    ThirdPartyP2p { gpu: usize, spaces: Vec<u32>, memory: Vec<u32> },
    /// What is left when something is freed that the object depended on: a handle, until that is freed.
    Lost,
    /// An object that only exists, of a GPU or of none.
    Stateless { gpu: Option<usize> },
}

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) gpu: usize,
    pub(crate) id: ChannelId,
    /// The hardware's channel id.
    pub(crate) number: u32,
    /// The channel group, which the module makes where the client did not.
    pub(crate) group: u32,
    /// NV2080 engine type.
    pub(crate) engine: u32,
    pub(crate) token: u32,
    /// Where the notifiers lie, index 0 first.
    pub(crate) notifier: Option<(Arc<Backing>, u64)>,
    /// Index of the notifier that receives the token.
    pub(crate) token_notifier: u32,
    /// The address space that the channel's work runs in.
    pub(crate) space: Arc<VaSpace>,
    /// USERD, where the client gave no memory for it.
    pub(crate) own_userd: Option<Arc<Backing>>,
}

/// An address space object.
#[derive(Debug)]
pub(crate) struct VaSpace {
    pub(crate) gpu: usize,
    pub(crate) space: Arc<AddressSpace>,
    /// UVM manages it, not RM.
    pub(crate) externally_owned: bool,
    /// UVM has taken it over.
    pub(crate) registered: AtomicBool,
}

impl VaSpace {
    /// An empty one for addresses below `limit`.
    pub(crate) fn new(gpu: usize, limit: u64, externally_owned: bool) -> Arc<Self> {
        let space = AddressSpace::new(limit);
        Arc::new(Self { gpu, space, externally_owned, registered: AtomicBool::new(false) })
    }

    /// Whether work may run in it: a space that UVM is to own must have been registered there.
    pub(crate) fn is_usable(&self) -> bool {
        !self.externally_owned || self.registered.load(Ordering::Relaxed)
    }
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryHome {
    /// A GPU's own memory.
    Video { gpu: usize },
    /// The computer's memory.
    System,
    /// Memory that the client mapped first (an OS descriptor).
    Client,
}

/// A memory object. UVM and other clients hold on to it after its handle is freed.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) backing: Arc<Backing>,
    pub(crate) home: MemoryHome,
    /// Bytes, a multiple of `page_size`.
    pub(crate) size: u64,
    pub(crate) page_size: u64,
    /// NVOS32_ATTR as granted, of video memory; 0 for other memory, which the module keeps none of.
    pub(crate) attr: u32,
    pub(crate) device_read_only: bool,
    /// The counter of the GPU's memory, and how much of that is this object's.
    pub(crate) accounted: Option<(Arc<AtomicU64>, u64)>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some((used, taken)) = &self.accounted {
            used.fetch_sub(*taken, Ordering::Relaxed);
        }
    }
}
