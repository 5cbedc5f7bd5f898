//! The resource manager: the kernel module's side of `/dev/nvidiactl` and `/dev/nvidiaN`.
//!
//! `escape` takes the ioctls apart, `allocate` and `channel` build objects, `control` answers control calls, `mapping`
//! makes memory visible to CPU and GPU, `free` takes objects away. What is not simulated is refused with the status
//! that the module uses for what it does not have, and is remembered for [`crate::machine::Machine::unsupported`].
#![forbid(unsafe_code)]

mod allocate;
mod cache;
mod channel;
mod clocks;
mod context_dma;
mod control;
mod debugger;
mod escape;
mod events;
mod free;
mod mapping;
mod memory;
mod object;
mod p2p;
mod query;
mod sharing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicU64},
};

use nv_abi::{
    Branch, Errno, Fd, FieldError, Node,
    record::RecordError,
    rm::{Status, class::Privilege},
};

pub use debugger::{SmState, registers};
pub(crate) use escape::with_record;
pub(crate) use events::Events;
pub use events::Readiness;
pub(crate) use object::{Client, Kind, Memory, MemoryHome, Object, VaSpace};

use crate::{
    host::Host,
    machine::PciPlace,
    memory::{Backing, BackingError},
    profile::{Bar, Profile},
    uvm,
};

/// Why a call did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The system call fails.
    Errno(Errno),
    /// The system call succeeds and its status says why the request did not.
    Status(Status),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<FieldError> for Refusal {
    /// A row that the branch lacks, or an answer that its field cannot hold.
    fn from(_: FieldError) -> Self {
        Self::Status(Status::GENERIC)
    }
}

impl From<RecordError> for Refusal {
    /// The buffer is shorter than the struct: reading on would leave it.
    fn from(_: RecordError) -> Self {
        Self::Errno(Errno::EFAULT)
    }
}

/// Something that a client asked for and the simulator does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What, in words, with the vendor's name where there is one.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// One simulated GPU as the kernel module knows it.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) profile: Arc<Profile>,
    pub(crate) host: Arc<Host>,
    pub(crate) uuid: [u8; 16],
    /// The module's number for the GPU: PCI domain, bus and slot.
    pub(crate) id: u32,
    pub(crate) place: PciPlace,
    /// Which one it is.
    index: u8,
    /// The doorbell page and the registers around it.
    pub(crate) usermode: Arc<Backing>,
    /// Bytes of video memory that are allocated.
    pub(crate) vram_used: Arc<AtomicU64>,
    /// Descriptors of the node that are open; the GPU is attached while there are any.
    open: u32,
    /// A control or ioctl attached the GPU.
    attached: bool,
    /// It has fallen off the bus.
    lost: bool,
    /// Channel ids in use.
    channels: BTreeSet<u32>,
    next_group: u32,
    /// Where the next video memory object lies.
    next_physical: u64,
}

impl Gpu {
    pub(crate) const USERMODE_BYTES: u64 = 0x10000;

    pub(crate) fn new(
        index: u8,
        place: PciPlace,
        profile: Arc<Profile>,
        host: Arc<Host>,
    ) -> Result<Self, BackingError> {
        let mut uuid = *b"mockgpu-card-\0\0\0";
        uuid[15] = index;
        Ok(Self {
            profile,
            host,
            uuid,
            id: u32::from(place.bus) << 8 | u32::from(place.slot),
            place,
            index,
            usermode: Arc::new(Backing::new("usermode", Self::USERMODE_BYTES)?),
            vram_used: Arc::default(),
            open: 0,
            attached: false,
            lost: false,
            channels: BTreeSet::new(),
            next_group: 1,
            next_physical: 0x40_0000,
        })
    }

    /// Takes the lowest channel id that is free; `None` when the runlist is full.
    fn take_channel(&mut self) -> Option<u32> {
        /// The card that was measured gave its first client channel this id; the module has those before.
        const FIRST: u32 = 10;
        /// Ids that a work submit token holds are 12 bits, of which the hardware has half.
        const CHANNELS: u32 = 2048;
        let id = (FIRST..CHANNELS).find(|id| !self.channels.contains(id))?;
        self.channels.insert(id);
        Some(id)
    }

    /// A base address register, or an empty one.
    pub(crate) fn bar(&self, index: usize) -> Bar {
        /// Bytes of bus addresses for each GPU.
        const WINDOW: u64 = 1 << 41;
        let bar = self.profile.bars.get(index).copied().unwrap_or(Bar { offset: 0, bytes: 0 });
        let place = if bar.bytes == 0 { 0 } else { bar.offset + u64::from(self.index) * WINDOW };
        Bar { offset: place, ..bar }
    }

    fn is_attached(&self) -> bool {
        self.open > 0 || self.attached
    }
}

/// What RM_MAP_MEMORY left on a descriptor for `mmap`.
#[derive(Clone, Debug)]
pub(crate) struct MapContext {
    pub(crate) backing: Arc<Backing>,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) read_only: bool,
    /// The GPU whose doorbell page this is.
    pub(crate) doorbell: Option<usize>,
}

/// An open descriptor.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) node: Node,
    /// Tells files apart that had the same descriptor number.
    pub(crate) serial: u64,
    /// The control file that REGISTER_FD tied this one to, by serial.
    registered: Option<u64>,
    pub(crate) context: Option<MapContext>,
    attached_gpus: bool,
    /// The objects that OS_UNIX_EXPORT_OBJECT_TO_FD or OS_UNIX_EXPORT_OBJECTS_TO_FD put here.
    exported: Option<sharing::Exports>,
    pub(crate) uvm: uvm::File,
}

impl File {
    /// The GPU whose node it is.
    pub(crate) fn gpu(&self) -> Option<usize> {
        match self.node {
            Node::Gpu(minor) => Some(minor as usize),
            Node::Ctl | Node::Uvm => None,
        }
    }
}

/// A CPU mapping that RM knows of, by the cookie that RM_MAP_MEMORY returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuMapping {
    client: u32,
    memory: u32,
}

/// What RM_MAP_MEMORY_DMA mapped. It lives as long as the memory and the virtual memory do.
#[derive(Debug)]
struct DmaMapping {
    client: u32,
    memory: u32,
    virtual_memory: u32,
    space: Arc<VaSpace>,
    va: u64,
    bytes: u64,
}

/// The kernel module's state. One lock guards it, as the module's API lock does.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) branch: Branch,
    pub(crate) version: String,
    /// UVM keeps a reference to the process's memory and wants MM_INITIALIZE first.
    pub(crate) uvm_needs_mm: bool,
    pub(crate) gpus: Vec<Gpu>,
    /// Open files by serial.
    pub(crate) files: BTreeMap<u64, File>,
    /// Descriptors: the serial of the file that each number stands for. Several numbers may share a file.
    descriptors: BTreeMap<i32, u64>,
    pub(crate) events: Arc<Events>,
    /// Who the clients are.
    user: Privilege,
    clients: BTreeMap<u32, Client>,
    unsupported: BTreeMap<String, u64>,
    cache: cache::ControlCache,
    cpu_mappings: BTreeMap<u64, CpuMapping>,
    dma_mappings: Vec<DmaMapping>,
    memblock_size: Option<u64>,
    serial: u64,
    next_client: u32,
    next_cookie: u64,
}

impl Kernel {
    /// The first descriptor: a process has three open before.
    const FIRST_FD: i32 = 3;
    /// Client handles are this and an index.
    const FIRST_CLIENT: u32 = 0xc1d0_0000;
    const CLIENTS: u32 = 0x10_0000;

    pub(crate) fn new(
        branch: Branch,
        version: String,
        user: Privilege,
        uvm_needs_mm: bool,
        gpus: Vec<Gpu>,
    ) -> Self {
        let events = Arc::<Events>::default();
        for (index, gpu) in gpus.iter().enumerate() {
            let events = Arc::clone(&events);
            gpu.host.set_event_sink(Box::new(move |event| events.post(index, event)));
        }
        Self {
            events,
            user,
            branch,
            version,
            uvm_needs_mm,
            gpus,
            files: BTreeMap::new(),
            descriptors: BTreeMap::new(),
            clients: BTreeMap::new(),
            unsupported: BTreeMap::new(),
            cache: cache::ControlCache::default(),
            cpu_mappings: BTreeMap::new(),
            dma_mappings: Vec::new(),
            memblock_size: None,
            serial: 0,
            next_client: 0,
            next_cookie: 1,
        }
    }

    pub(crate) fn open(&mut self, node: Node) -> Result<Fd, Errno> {
        // As the host does, the lowest number that is free.
        let free = |fd: &i32| !self.descriptors.contains_key(fd);
        let fd = Fd((Self::FIRST_FD..).find(free).ok_or(Errno::EMFILE)?);
        self.open_at(node, fd)?;
        Ok(fd)
    }

    /// Opens a node under a number that the caller chose; `EEXIST` if it is in use.
    pub(crate) fn open_at(&mut self, node: Node, fd: Fd) -> Result<(), Errno> {
        if self.descriptors.contains_key(&fd.0) {
            return Err(Errno::EEXIST);
        }
        if let Node::Gpu(minor) = node {
            self.gpus.get_mut(minor as usize).ok_or(Errno::ENOENT)?.open += 1;
        }
        self.serial += 1;
        let file = File {
            node,
            serial: self.serial,
            registered: None,
            context: None,
            attached_gpus: false,
            exported: None,
            uvm: uvm::File::Fresh,
        };
        self.files.insert(self.serial, file);
        self.descriptors.insert(fd.0, self.serial);
        Ok(())
    }

    /// Makes `to` another number of the file that `fd` stands for; `EEXIST` if it is in use.
    pub(crate) fn duplicate(&mut self, fd: Fd, to: Fd) -> Result<(), Errno> {
        let serial = *self.descriptors.get(&fd.0).ok_or(Errno::EBADF)?;
        if self.descriptors.contains_key(&to.0) {
            return Err(Errno::EEXIST);
        }
        self.descriptors.insert(to.0, serial);
        Ok(())
    }

    /// Gives a number back; the last one of a file closes it.
    pub(crate) fn close(&mut self, fd: Fd) -> Result<(), Errno> {
        let serial = self.descriptors.remove(&fd.0).ok_or(Errno::EBADF)?;
        if self.descriptors.values().any(|other| *other == serial) {
            return Ok(());
        }
        let file = self.files.remove(&serial).ok_or(Errno::EBADF)?;
        self.events.close(file.serial);
        match file.node {
            Node::Ctl => {
                let owned = self.clients.values().filter(|client| client.owner == file.serial);
                for client in owned.map(|client| client.handle).collect::<Vec<_>>() {
                    self.free_client(client);
                }
            }
            Node::Gpu(minor) => {
                if let Some(gpu) = self.gpus.get_mut(minor as usize) {
                    gpu.open = gpu.open.saturating_sub(1);
                }
            }
            Node::Uvm => uvm::close(self, file.uvm),
        }
        Ok(())
    }

    pub(crate) fn ioctl(&mut self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        let file = self.file(fd)?;
        if file.gpu().and_then(|gpu| self.gpus.get(gpu)).is_some_and(|gpu| gpu.lost) {
            return Err(Errno::EINVAL);
        }
        match file.node {
            Node::Uvm => uvm::ioctl(self, fd, request, argument),
            Node::Ctl | Node::Gpu(_) => escape::ioctl(self, fd, request, argument),
        }
    }

    /// Takes a GPU off the bus. `false` if there is no such GPU.
    pub(crate) fn lose_gpu(&mut self, gpu: usize) -> bool {
        /// ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS.
        const XID: u32 = 79;
        let Some(state) = self.gpus.get_mut(gpu) else { return false };
        if std::mem::replace(&mut state.lost, true) {
            return true;
        }
        self.events.lose(gpu, XID);
        let objects = self.clients.values().flat_map(|client| client.objects.values());
        let channels: Vec<_> = objects
            .filter_map(|object| match &object.kind {
                Kind::Channel(channel) if channel.gpu == gpu => Some(channel.id),
                _ => None,
            })
            .collect();
        // All stop before any is told.
        for id in &channels {
            self.gpus[gpu].host.halt(*id);
        }
        for id in channels {
            self.gpus[gpu].host.notify_error(id, XID, false);
            self.events.post(gpu, &crate::host::Event::RobustChannel { channel: id, xid: XID });
        }
        true
    }

    pub(crate) fn file(&self, fd: Fd) -> Result<&File, Errno> {
        self.descriptors.get(&fd.0).and_then(|serial| self.files.get(serial)).ok_or(Errno::EBADF)
    }

    pub(crate) fn file_mut(&mut self, fd: Fd) -> Result<&mut File, Errno> {
        self.descriptors.get(&fd.0).and_then(|serial| self.files.get_mut(serial)).ok_or(Errno::EBADF)
    }

    /// A client that the descriptor may use. `unknown` is the status for a handle that is no client. Handles are bound
    /// to the file that made them; through any other file they are INVALID_CLIENT.
    pub(crate) fn client(&self, fd: Fd, handle: u32, unknown: Status) -> Result<&Client, Refusal> {
        let client = self.clients.get(&handle).ok_or(unknown)?;
        let file = self.file(fd)?;
        let identity = match file.node {
            Node::Ctl => Some(file.serial),
            Node::Gpu(_) | Node::Uvm => file.registered,
        };
        if Some(client.owner) != identity {
            return Err(Status::INVALID_CLIENT.into());
        }
        Ok(client)
    }

    /// An object by handle; RESOURCE_LOST for what lost something that it depends on.
    pub(crate) fn object(&self, client: u32, handle: u32) -> Result<&Object, Status> {
        let client = self.clients.get(&client).ok_or(Status::INVALID_CLIENT)?;
        match client.objects.get(&handle).ok_or(Status::OBJECT_NOT_FOUND)? {
            Object { kind: Kind::Lost, .. } => Err(Status::RESOURCE_LOST),
            object => Ok(object),
        }
    }

    pub(crate) fn object_mut(&mut self, client: u32, handle: u32) -> Result<&mut Object, Status> {
        let client = self.clients.get_mut(&client).ok_or(Status::INVALID_CLIENT)?;
        match client.objects.get_mut(&handle).ok_or(Status::OBJECT_NOT_FOUND)? {
            Object { kind: Kind::Lost, .. } => Err(Status::RESOURCE_LOST),
            object => Ok(object),
        }
    }

    /// A memory object by handle.
    pub(crate) fn memory(&self, client: u32, handle: u32) -> Result<&Arc<Memory>, Status> {
        match &self.object(client, handle)?.kind {
            Kind::Memory(memory) => Ok(memory),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    /// Remembers something that is not simulated and gives the refusal for it.
    pub(crate) fn not_supported(&mut self, what: impl Into<String>) -> Refusal {
        self.note_gap(what);
        Status::NOT_SUPPORTED.into()
    }

    /// Remembers something that is answered without being simulated.
    pub(crate) fn note_gap(&mut self, what: impl Into<String>) {
        *self.unsupported.entry(what.into()).or_default() += 1;
    }

    /// What clients have: clients and objects, and what events keep of them.
    pub(crate) fn object_count(&self) -> usize {
        let objects: usize = self.clients.values().map(|client| client.objects.len()).sum();
        self.clients.len() + objects + self.cpu_mappings.len() + self.dma_mappings.len() + self.events.count()
    }

    pub(crate) fn unsupported(&self) -> Vec<Unsupported> {
        self.unsupported
            .iter()
            .map(|(what, count)| Unsupported { what: what.clone(), count: *count })
            .collect()
    }
}
