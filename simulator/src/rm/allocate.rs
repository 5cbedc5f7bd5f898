//! RM_ALLOC: objects of every class but channels.

use std::{
    collections::btree_map::Entry,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nv_abi::{
    Bits, Errno, Fd, Node, Record, StructField,
    rm::{
        NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as Group, NV_CTXSHARE_ALLOCATION_PARAMETERS as ContextShare,
        NV_MEMORY_ALLOCATION_PARAMS as MemoryParams, NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS as VirtualParams,
        NV_VASPACE_ALLOCATION_PARAMETERS as VaSpaceParams, NV0080_ALLOC_PARAMETERS as DeviceParams,
        NV83DE_ALLOC_PARAMETERS as DebuggerParams, NV2080_ALLOC_PARAMETERS as SubdeviceParams,
        NVOS02_PARAMETERS, NVOS21_PARAMETERS, NVOS55_PARAMETERS as Dup, NVOS64_PARAMETERS, Status,
        class::{Class, Parameters, Parent, Privilege, class},
        flags::{NV_VASPACE_ALLOCATION_FLAGS, NVOS02_FLAGS, NVOS32_ATTR, NVOS32_ATTR2},
        nv_ioctl_nvos02_parameters_with_fd as AllocMemory,
    },
};

use super::{Client, Kernel, Kind, Memory, MemoryHome, Object, Refusal, VaSpace};
use crate::{
    client_memory,
    memory::{AddressSpace, AliasError, Backing, PAGE},
};

/// What a constructor gets.
pub(super) struct Allocation {
    pub(super) client: u32,
    pub(super) parent: u32,
    pub(super) class: &'static Class,
    /// The parameters, which the constructor may update. `None` where the client gave none.
    pub(super) params: Option<Record>,
    /// What the object depends on, besides its parent; the constructor fills it in.
    pub(super) depends: Vec<u32>,
}

impl Allocation {
    /// A parameter; 0 where the client gave no parameters.
    pub(super) fn get(&self, field: &StructField) -> Result<u64, Refusal> {
        self.params.as_ref().map_or(Ok(0), |params| Ok(params.get(field)?))
    }

    pub(super) fn handle(&self, field: &StructField) -> Result<u32, Refusal> {
        Ok(self.get(field)? as u32)
    }

    /// Answers a parameter, where the client gave any.
    pub(super) fn set(&mut self, field: &StructField, value: u64) -> Result<(), Refusal> {
        match &mut self.params {
            Some(params) => Ok(params.set(field, value)?),
            None => Ok(()),
        }
    }
}

type Constructor = fn(&mut Kernel, &mut Allocation) -> Result<Kind, Refusal>;

/// Constructors by the module's internal class. A class without one is not simulated.
const CONSTRUCTORS: &[(&str, Constructor)] = &[
    ("Device", Kernel::new_device),
    ("Subdevice", Kernel::new_subdevice),
    ("UserModeApi", Kernel::new_usermode),
    ("VideoMemory", Kernel::new_video_memory),
    ("SystemMemory", Kernel::new_system_memory),
    ("VirtualMemoryRange", Kernel::new_virtual_memory),
    ("VaSpaceApi", Kernel::new_va_space),
    ("KernelChannelGroupApi", Kernel::new_channel_group),
    ("KernelCtxShareApi", Kernel::new_context_share),
    ("KernelChannel", Kernel::new_channel),
    ("KernelGraphicsObject", Kernel::new_engine),
    ("KernelCeContext", Kernel::new_engine),
    ("KernelSMDebuggerSession", Kernel::new_debugger),
];

/// What an object counts as for its children's parent rule.
fn parent_kind(object: Option<&Object>) -> Parent {
    match object.map(|object| object.class.internal) {
        None => Parent::Client,
        Some("Device") => Parent::Device,
        Some("Subdevice") => Parent::Subdevice,
        Some("KernelChannelGroupApi") => Parent::ChannelGroup,
        Some("KernelChannel") => Parent::Channel,
        Some("GPUInstanceSubscription") => Parent::GpuInstanceSubscription,
        // Nothing has any other object as its only parent.
        Some(_) => Parent::Any,
    }
}

/// The highest depth of the object tree (RS_MAX_RESOURCE_DEPTH).
const MAX_DEPTH: usize = 6;

impl Kernel {
    /// RM_ALLOC, in either of its two structs.
    pub(super) fn rm_alloc(&mut self, fd: Fd, argument: &mut [u8]) -> Result<(), Refusal> {
        let short = NVOS21_PARAMETERS::STRUCT.size(self.branch);
        let layout = match argument.len() {
            size if size == short => &NVOS21_PARAMETERS::STRUCT,
            size if size == NVOS64_PARAMETERS::STRUCT.size(self.branch) => &NVOS64_PARAMETERS::STRUCT,
            _ => return Err(Errno::EINVAL.into()),
        };
        let long = argument.len() != short;
        // The first four fields and the pointer lie at the same place in both structs; rights asked for are granted,
        // as the measured root user's are.
        super::escape::with_record(self, layout, argument, "status", |kernel, record| {
            let pointer = record.get(if long {
                &NVOS64_PARAMETERS::pAllocParms
            } else {
                &NVOS21_PARAMETERS::pAllocParms
            })?;
            kernel.allocate(fd, record, pointer)
        })?;
        Ok(())
    }

    fn allocate(&mut self, fd: Fd, p: &mut Record, pointer: u64) -> Result<(), Refusal> {
        use NVOS21_PARAMETERS as P;
        let (root, parent) = (p.get(&P::hRoot)? as u32, p.get(&P::hObjectParent)? as u32);
        let (wanted, number) = (p.get(&P::hObjectNew)? as u32, p.get(&P::hClass)? as u32);
        let class = class(number).ok_or(Status::INVALID_CLASS)?;
        // Events may be allocated through any descriptor, all else through the control node.
        if class.internal != "Event" && self.file(fd)?.node != Node::Ctl {
            return Err(Errno::EINVAL.into());
        }
        if pointer == 0 && matches!(class.parameters, Parameters::Required(_)) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        if class.internal == "RmClientResource" {
            let handle = self.new_client(fd)?;
            p.set(&P::hObjectNew, handle.into())?;
            return Ok(());
        }
        self.client(fd, root, Status::INVALID_OBJECT_HANDLE)?;
        if class.privilege == Privilege::Kernel {
            return Err(Status::INSUFFICIENT_PERMISSIONS.into());
        }
        let handle = self.place(root, parent, wanted, class)?;
        // The module fills the handle in before it constructs; only the status tells whether it is one.
        p.set(&P::hObjectNew, handle.into())?;

        let layout = match class.parameters {
            Parameters::Optional(layout) | Parameters::Required(layout) if pointer != 0 => layout,
            _ => None,
        };
        // The size is the module's own, whatever the caller's paramsSize says.
        let params = layout
            .map(|layout| {
                let mut record = Record::zeroed(layout, self.branch);
                client_memory::read(pointer, record.bytes_mut())?;
                Ok::<_, Errno>(record)
            })
            .transpose()?;
        let allocation = Allocation { client: root, parent, class, params, depends: Vec::new() };
        if let Some(params) = self.construct(allocation, handle)? {
            client_memory::write(pointer, params.bytes())?;
        }
        Ok(())
    }

    fn new_client(&mut self, fd: Fd) -> Result<u32, Refusal> {
        let owner = self.file(fd)?.serial;
        for _ in 0..Self::CLIENTS {
            let handle = Self::FIRST_CLIENT + self.next_client;
            self.next_client = (self.next_client + 1) % Self::CLIENTS;
            if let Entry::Vacant(free) = self.clients.entry(handle) {
                free.insert(Client::new(handle, owner));
                return Ok(handle);
            }
        }
        Err(Status::INSUFFICIENT_RESOURCES.into())
    }

    /// Checks where a new object goes and gives its handle: `wanted`, or the next free one if that is 0.
    fn place(
        &mut self,
        client: u32,
        parent: u32,
        wanted: u32,
        class: &'static Class,
    ) -> Result<u32, Refusal> {
        let state = self.clients.get_mut(&client).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        let above = match parent {
            _ if parent == client => None,
            _ => Some(state.objects.get(&parent).ok_or(Status::OBJECT_NOT_FOUND)?),
        };
        let siblings = state.objects.values().filter(|object| object.parent == parent);
        if class.single && siblings.into_iter().any(|object| object.class.internal == class.internal) {
            return Err(Status::STATE_IN_USE.into());
        }
        let kind = parent_kind(above);
        if !class.parents.iter().any(|allowed| *allowed == Parent::Any || *allowed == kind) {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        }
        let mut depth = 1;
        let mut at = parent;
        while let Some(object) = state.objects.get(&at) {
            depth += 1;
            at = object.parent;
        }
        if depth > MAX_DEPTH {
            return Err(Status::ILLEGAL_ACTION.into());
        }
        if wanted == client {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        }
        if wanted == 0 {
            return Ok(state.pick_handle().ok_or(Status::INSUFFICIENT_RESOURCES)?);
        }
        if state.objects.contains_key(&wanted) {
            return Err(Status::INSERT_DUPLICATE_NAME.into());
        }
        Ok(wanted)
    }

    /// Builds the object, gives it the handle and returns the updated parameters.
    fn construct(&mut self, mut allocation: Allocation, handle: u32) -> Result<Option<Record>, Refusal> {
        let class = allocation.class;
        let constructor = CONSTRUCTORS.iter().find(|(internal, _)| *internal == class.internal);
        let Some((_, constructor)) = constructor else {
            return Err(self.not_supported(format!("class {} ({:#06x})", class.name, class.number)));
        };
        let kind = constructor(self, &mut allocation)?;
        let object = Object { parent: allocation.parent, class, kind, depends: allocation.depends };
        let client = self.clients.get_mut(&allocation.client).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        client.objects.insert(handle, object);
        Ok(allocation.params)
    }

    /// The GPU that an object is of.
    pub(super) fn gpu_of(&self, client: u32, handle: u32) -> Result<usize, Status> {
        match &self.object(client, handle)?.kind {
            Kind::Device { gpu, .. }
            | Kind::Subdevice { gpu }
            | Kind::Usermode { gpu }
            | Kind::ChannelGroup { gpu, .. }
            | Kind::Debugger { gpu, .. } => Ok(*gpu),
            Kind::Channel(channel) => Ok(channel.gpu),
            Kind::VaSpace(space) | Kind::VirtualMemory { space, .. } | Kind::ContextShare { space } => {
                Ok(space.gpu)
            }
            Kind::Memory(_) | Kind::Engine => Err(Status::INVALID_DEVICE),
        }
    }

    fn new_device(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = a.get(&DeviceParams::deviceId)? as usize;
        let state = self.gpus.get(gpu).ok_or(Status::INVALID_DEVICE)?;
        if !state.is_attached() {
            return Err(Status::INVALID_DEVICE.into());
        }
        let space = VaSpace {
            gpu,
            space: AddressSpace::new(state.profile.address_limit),
            externally_owned: false,
            registered: AtomicBool::new(false),
        };
        Ok(Kind::Device { gpu, space: Arc::new(space) })
    }

    fn new_subdevice(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        if a.get(&SubdeviceParams::subDeviceId)? != 0 {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let client = self.clients.get(&a.client).ok_or(Status::INVALID_CLIENT)?;
        let second =
            |object: &Object| object.parent == a.parent && matches!(object.kind, Kind::Subdevice { .. });
        if client.objects.values().any(second) {
            return Err(Status::INSUFFICIENT_RESOURCES.into());
        }
        Ok(Kind::Subdevice { gpu })
    }

    fn new_usermode(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        if !self.gpus[gpu].profile.usermode_classes.contains(&a.class.number) {
            return Err(Status::INVALID_CLASS.into());
        }
        Ok(Kind::Usermode { gpu })
    }

    fn new_video_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        self.new_memory(a, MemoryHome::Video { gpu })
    }

    fn new_system_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        self.new_memory(a, MemoryHome::System)
    }

    fn new_memory(&mut self, a: &mut Allocation, home: MemoryHome) -> Result<Kind, Refusal> {
        let attr = (a.get(&MemoryParams::attr)? as u32).to_le_bytes();
        let attr2 = (a.get(&MemoryParams::attr2)? as u32).to_le_bytes();
        let (attr, attr2) = (Bits::new(&attr), Bits::new(&attr2));
        let bytes = a.get(&MemoryParams::size)?;
        let alignment = a.get(&MemoryParams::alignment)?;
        if bytes == 0 || (alignment != 0 && !alignment.is_power_of_two()) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        // A class stands for a place; attributes that name another contradict it.
        let place = attr.get(&NVOS32_ATTR::LOCATION)?;
        let fits = match home {
            MemoryHome::Video { .. } => place != NVOS32_ATTR::LOCATION::PCI,
            _ => place != NVOS32_ATTR::LOCATION::VIDMEM,
        };
        if !fits {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let page_size = match (attr.get(&NVOS32_ATTR::PAGE_SIZE)?, home) {
            (NVOS32_ATTR::PAGE_SIZE::HUGE, _) => match attr2.get(&NVOS32_ATTR2::PAGE_SIZE_HUGE)? {
                NVOS32_ATTR2::PAGE_SIZE_HUGE::DEFAULT | NVOS32_ATTR2::PAGE_SIZE_HUGE::SIZE_2MB => 2 << 20,
                NVOS32_ATTR2::PAGE_SIZE_HUGE::SIZE_512MB => 512 << 20,
                _ => return Err(self.not_supported("256 GiB pages")),
            },
            (NVOS32_ATTR::PAGE_SIZE::BIG, _) => 64 << 10,
            (NVOS32_ATTR::PAGE_SIZE::DEFAULT, MemoryHome::Video { .. }) if bytes >= 64 << 10 => 64 << 10,
            _ => PAGE,
        };
        let size = bytes.checked_next_multiple_of(page_size).ok_or(Status::NO_MEMORY)?;
        let physical = self.next_physical.checked_next_multiple_of(page_size.max(alignment));
        let physical = physical.ok_or(Status::NO_MEMORY)?;
        let next_physical = physical.checked_add(size).ok_or(Status::NO_MEMORY)?;
        let mut accounted = None;
        if let MemoryHome::Video { gpu } = home {
            let gpu = &self.gpus[gpu];
            let used = gpu.vram_used.load(Ordering::Relaxed);
            if used.checked_add(size).is_none_or(|sum| sum > gpu.profile.vram_bytes) {
                return Err(Status::NO_MEMORY.into());
            }
            accounted = Some(Arc::clone(&gpu.vram_used));
        }
        let name = match home {
            MemoryHome::Video { gpu } => format!("video memory of GPU {gpu}"),
            _ => "system memory".to_owned(),
        };
        let backing = Backing::new(&name, size).map_err(|_| Status::NO_MEMORY)?;
        if let Some(used) = &accounted {
            used.fetch_add(size, Ordering::Relaxed);
        }
        let memory = Memory {
            backing: Arc::new(backing),
            home,
            size,
            page_size,
            device_read_only: attr2.get(&NVOS32_ATTR2::PROTECTION_DEVICE)? != 0,
            accounted,
        };
        self.next_physical = next_physical;
        a.set(&MemoryParams::size, size)?;
        a.set(&MemoryParams::limit, size - 1)?;
        a.set(&MemoryParams::offset, physical)?;
        Ok(Kind::Memory(Arc::new(memory)))
    }

    fn new_va_space(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        /// `index`: a new address space, and the one that the device has already.
        const NEW: u64 = 0;
        const DEVICE: u64 = 3;
        let gpu = self.gpu_of(a.client, a.parent)?;
        match a.get(&VaSpaceParams::index)? {
            NEW => {}
            DEVICE => return Ok(Kind::VaSpace(self.default_space(a.client, a.parent)?)),
            index => return Err(self.not_supported(format!("FERMI_VASPACE_A with index {index}"))),
        }
        let flags = (a.get(&VaSpaceParams::flags)? as u32).to_le_bytes();
        let externally_owned = Bits::new(&flags).get(&NV_VASPACE_ALLOCATION_FLAGS::IS_EXTERNALLY_OWNED)? != 0;
        let limit = self.gpus[gpu].profile.address_limit;
        let (base, size) = (a.get(&VaSpaceParams::vaBase)?, a.get(&VaSpaceParams::vaSize)?);
        let end = base.checked_add(size).filter(|end| *end <= limit).ok_or(Status::INVALID_ARGUMENT)?;
        let space = VaSpace {
            gpu,
            space: AddressSpace::new(if size == 0 { limit } else { end }),
            externally_owned,
            registered: AtomicBool::new(false),
        };
        Ok(Kind::VaSpace(Arc::new(space)))
    }

    /// The address space of the device above an object.
    pub(super) fn default_space(&self, client: u32, mut handle: u32) -> Result<Arc<VaSpace>, Status> {
        loop {
            let object = self.object(client, handle)?;
            match &object.kind {
                Kind::Device { space, .. } => return Ok(Arc::clone(space)),
                _ => handle = object.parent,
            }
        }
    }

    /// An address space by handle.
    pub(crate) fn va_space(&self, client: u32, handle: u32) -> Result<Arc<VaSpace>, Status> {
        match &self.object(client, handle)?.kind {
            Kind::VaSpace(space) => Ok(Arc::clone(space)),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        }
    }

    fn new_virtual_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let handle = a.handle(&VirtualParams::hVASpace)?;
        let space = if handle == 0 {
            self.default_space(a.client, a.parent)?
        } else {
            a.depends.push(handle);
            self.va_space(a.client, handle)?
        };
        let (offset, limit) = (a.get(&VirtualParams::offset)?, a.get(&VirtualParams::limit)?);
        if limit != 0 && limit < offset {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let limit = if limit == 0 { u64::MAX } else { limit };
        Ok(Kind::VirtualMemory { space, offset, limit })
    }

    fn new_channel_group(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        let engine = a.get(&Group::engineType)? as u32;
        let handle = a.handle(&Group::hVASpace)?;
        let space = if handle == 0 {
            None
        } else {
            a.depends.push(handle);
            Some(self.va_space(a.client, handle)?)
        };
        let state = &mut self.gpus[gpu];
        let id = state.next_group;
        state.next_group += 1;
        Ok(Kind::ChannelGroup { gpu, id, engine, space, timeslice: 0 })
    }

    fn new_context_share(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let handle = a.handle(&ContextShare::hVASpace)?;
        let space = if handle == 0 {
            self.default_space(a.client, a.parent)?
        } else {
            a.depends.push(handle);
            self.va_space(a.client, handle)?
        };
        // Measured on H200: UVM must have taken the space over first.
        if !space.is_usable() {
            return Err(Status::INVALID_STATE.into());
        }
        a.set(&ContextShare::subctxId, 0)?;
        Ok(Kind::ContextShare { space })
    }

    fn new_debugger(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        let (client, engine) =
            (a.handle(&DebuggerParams::hAppClient)?, a.handle(&DebuggerParams::hClass3dObject)?);
        let client = if client == 0 { a.client } else { client };
        let object = self.object(client, engine)?;
        if !matches!(object.kind, Kind::Engine) {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let Kind::Channel(channel) = &self.object(client, object.parent)?.kind else {
            return Err(Status::INVALID_ARGUMENT.into());
        };
        let channel = channel.id;
        if client == a.client {
            a.depends.push(engine);
        }
        Ok(Kind::Debugger { gpu, channel })
    }

    /// RM_ALLOC_MEMORY on a GPU's node: pins memory that the client has mapped.
    pub(super) fn rm_alloc_memory(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        use AllocMemory as P;
        let (root, parent) = (p.get(&P::hRoot)? as u32, p.get(&P::hObjectParent)? as u32);
        let number = p.get(&P::hClass)? as u32;
        let row = class(number).ok_or(Status::INVALID_CLASS)?;
        self.client(fd, root, Status::INVALID_CLIENT)?;
        if row.internal != "OsDescMemory" {
            return Err(self.not_supported(format!("{} of {}", NVOS02_PARAMETERS::STRUCT.name, row.name)));
        }
        let handle = self.place(root, parent, p.get(&P::hObjectNew)? as u32, row)?;
        let (address, limit) = (p.get(&P::pMemory)?, p.get(&P::limit)?);
        if !address.is_multiple_of(PAGE) {
            return Err(Status::NOT_SUPPORTED.into());
        }
        let flags = (p.get(&P::flags)? as u32).to_le_bytes();
        let flags = Bits::new(&flags);
        let coherency = flags.get(&NVOS02_FLAGS::COHERENCY)?;
        if flags.get(&NVOS02_FLAGS::LOCATION)? != NVOS02_FLAGS::LOCATION::PCI
            || flags.get(&NVOS02_FLAGS::MAPPING)? != NVOS02_FLAGS::MAPPING::NO_MAP
            || !matches!(
                coherency,
                NVOS02_FLAGS::COHERENCY::UNCACHED
                    | NVOS02_FLAGS::COHERENCY::CACHED
                    | NVOS02_FLAGS::COHERENCY::WRITE_BACK
            )
        {
            return Err(Status::INVALID_FLAGS.into());
        }
        let size = limit
            .checked_add(1)
            .and_then(|bytes| bytes.checked_next_multiple_of(PAGE))
            .ok_or(Status::INVALID_LIMIT)?;
        let backing = match Backing::alias("client memory", address, size) {
            Ok(backing) => backing,
            Err(AliasError::NotMapped { .. } | AliasError::Range { .. }) => {
                return Err(Status::INVALID_ADDRESS.into());
            }
            Err(AliasError::Private { .. }) => {
                return Err(self.not_supported("NV01_MEMORY_SYSTEM_OS_DESCRIPTOR of a private mapping"));
            }
            Err(AliasError::Maps(_) | AliasError::System { .. }) => {
                return Err(Status::OPERATING_SYSTEM.into());
            }
        };
        let memory = Memory {
            backing: Arc::new(backing),
            home: MemoryHome::Client,
            size,
            page_size: PAGE,
            device_read_only: flags.get(&NVOS02_FLAGS::DEVICE_READ_ONLY)? != 0,
            accounted: None,
        };
        let object = Object { parent, class: row, kind: Kind::Memory(Arc::new(memory)), depends: Vec::new() };
        let client = self.clients.get_mut(&root).ok_or(Status::INVALID_CLIENT)?;
        client.objects.insert(handle, object);
        p.set(&P::hObjectNew, handle.into())?;
        Ok(())
    }

    /// RM_DUP_OBJECT: memory and address spaces, within what one file owns.
    pub(super) fn rm_dup_object(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        let (client, parent) = (p.get(&Dup::hClient)? as u32, p.get(&Dup::hParent)? as u32);
        let (from, source) = (p.get(&Dup::hClientSrc)? as u32, p.get(&Dup::hObjectSrc)? as u32);
        self.client(fd, client, Status::INVALID_CLIENT)?;
        if !self.clients.contains_key(&from) {
            return Err(Status::INVALID_CLIENT.into());
        }
        // No share policy can be set yet, so that only the owner has the right.
        self.client(fd, from, Status::INVALID_CLIENT).map_err(|_| Status::INSUFFICIENT_PERMISSIONS)?;
        let object = self.object(from, source)?;
        let class = object.class;
        let kind = match &object.kind {
            Kind::Memory(memory) => Some(Kind::Memory(Arc::clone(memory))),
            Kind::VaSpace(space) => Some(Kind::VaSpace(Arc::clone(space))),
            _ => None,
        };
        let Some(kind) = kind else {
            return Err(self.not_supported(format!("NV_ESC_RM_DUP_OBJECT of {}", class.name)));
        };
        let handle = self.place(client, parent, p.get(&Dup::hObject)? as u32, class)?;
        let client = self.clients.get_mut(&client).ok_or(Status::INVALID_CLIENT)?;
        client.objects.insert(handle, Object { parent, class, kind, depends: Vec::new() });
        p.set(&Dup::hObject, handle.into())?;
        Ok(())
    }
}
