//! RM_ALLOC: objects of every class but channels.

use std::{
    collections::{BTreeSet, btree_map::Entry},
    sync::Arc,
};

use nv_abi::{
    Bits, Errno, Fd, Node, Record, StructField,
    rm::{
        NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS as Group, NV_CTXSHARE_ALLOCATION_PARAMETERS as ContextShare,
        NV_HOPPER_USERMODE_A_PARAMS as UsermodeParams, NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS as VirtualParams,
        NV_VASPACE_ALLOCATION_PARAMETERS as VaSpaceParams, NV0080_ALLOC_PARAMETERS as DeviceParams,
        NV83DE_ALLOC_PARAMETERS as DebuggerParams, NV503B_ALLOC_PARAMETERS as PeerParams,
        NV2080_ALLOC_PARAMETERS as SubdeviceParams, NVOS21_PARAMETERS, NVOS64_PARAMETERS, Status,
        class::{Class, NV01_ROOT_CLIENT, Parameters, Parent, Privilege, class, exists},
        flags::{NV_CTXSHARE_ALLOCATION_FLAGS, NV_VASPACE_ALLOCATION_FLAGS},
    },
};

use super::{Client, Kernel, Kind, Object, Refusal, VaSpace};
use crate::client_memory;

/// What a constructor gets.
pub(super) struct Allocation {
    pub(super) client: u32,
    pub(super) parent: u32,
    /// The handle that the object gets.
    pub(super) new: u32,
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
    ("BinaryApi", Kernel::new_stateless),
    ("BinaryApiPrivileged", Kernel::new_stateless),
    ("GenericEngineApi", Kernel::new_stateless),
    ("ConfidentialComputeApi", Kernel::new_stateless),
    ("TimerApi", Kernel::new_stateless),
    ("DiagApi", Kernel::new_stateless),
    ("ZbcApi", Kernel::new_stateless),
    ("MpsApi", Kernel::new_stateless),
    ("Profiler", Kernel::new_profiler),
    ("GPUInstanceSubscription", Kernel::new_part),
    ("MemoryFabric", Kernel::new_fabric_memory),
    ("GpuUserSharedData", Kernel::new_shared_data),
    ("ThirdPartyP2P", Kernel::new_third_party_p2p),
    ("Event", Kernel::new_event),
    ("ContextDma", Kernel::new_context_dma),
    ("P2PApi", Kernel::new_peer),
    ("UserModeApi", Kernel::new_usermode),
    ("VideoMemory", Kernel::new_video_memory),
    ("SystemMemory", Kernel::new_system_memory),
    ("VirtualMemoryRange", Kernel::new_virtual_memory),
    ("VirtualMemory", Kernel::new_virtual_allocation),
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

/// Subcontexts of a channel group.
const SUBCONTEXTS: u32 = 64;
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
        let class = class(number).filter(|_| exists(number, self.branch)).ok_or(Status::INVALID_CLASS)?;
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
            // Whatever root class was asked for, this one is made.
            return Ok(p.set(&P::hClass, NV01_ROOT_CLIENT.into())?);
        }
        self.client(fd, root, Status::INVALID_OBJECT_HANDLE)?;
        if class.privilege > self.user {
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
        let allocation = Allocation { client: root, parent, new: handle, class, params, depends: Vec::new() };
        if let Some(params) = self.construct(allocation)? {
            client_memory::write(pointer, params.bytes())?;
        }
        Ok(())
    }

    /// RM_ALLOC_OBJECT: the oldest form, without parameters.
    pub(super) fn rm_alloc_object(&mut self, fd: Fd, p: &mut Record) -> Result<(), Refusal> {
        // Its four fields lie where RM_ALLOC has them.
        self.allocate(fd, p, 0)
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
    pub(super) fn place(
        &mut self,
        client: u32,
        parent: u32,
        wanted: u32,
        class: &'static Class,
    ) -> Result<u32, Refusal> {
        self.check_parent(client, parent, class)?;
        self.free_handle(client, wanted)
    }

    /// Checks whether a class may be under a parent: known, no second of a single one, allowed, not too deep.
    pub(super) fn check_parent(
        &self,
        client: u32,
        parent: u32,
        class: &'static Class,
    ) -> Result<(), Refusal> {
        let state = self.clients.get(&client).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        let above = match parent {
            _ if parent == client => None,
            _ => Some(state.objects.get(&parent).ok_or(Status::OBJECT_NOT_FOUND)?),
        };
        let siblings = state.objects.values().filter(|object| object.parent == parent);
        if class.single && siblings.into_iter().any(|object| object.class.internal == class.internal) {
            return Err(Status::STATE_IN_USE.into());
        }
        // Nothing can be below what is lost.
        if above.is_some_and(|above| matches!(above.kind, Kind::Lost)) {
            return Err(Status::INVALID_OBJECT_PARENT.into());
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
        Ok(())
    }

    /// `wanted` if it is free, or the next free handle if that is 0.
    pub(super) fn free_handle(&mut self, client: u32, wanted: u32) -> Result<u32, Refusal> {
        if wanted == client {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        }
        let state = self.clients.get_mut(&client).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        if wanted == 0 {
            return Ok(state.pick_handle().ok_or(Status::INSUFFICIENT_RESOURCES)?);
        }
        if state.objects.contains_key(&wanted) {
            return Err(Status::INSERT_DUPLICATE_NAME.into());
        }
        Ok(wanted)
    }

    /// Puts an object into a client's name space.
    pub(super) fn insert(&mut self, client: u32, handle: u32, object: Object) -> Result<(), Refusal> {
        let state = self.clients.get_mut(&client).ok_or(Status::INVALID_OBJECT_HANDLE)?;
        state.objects.insert(handle, object);
        Ok(())
    }

    /// Builds the object, gives it the handle and returns the updated parameters.
    fn construct(&mut self, mut allocation: Allocation) -> Result<Option<Record>, Refusal> {
        let class = allocation.class;
        let constructor = CONSTRUCTORS.iter().find(|(internal, _)| *internal == class.internal);
        let Some((_, constructor)) = constructor else {
            return Err(self.not_supported(format!("class {} ({:#06x})", class.name, class.number)));
        };
        let kind = constructor(self, &mut allocation)?;
        let mut object = Object::new(allocation.parent, class, kind);
        object.depends = allocation.depends;
        if let Kind::Device { gpu, .. } | Kind::Subdevice { gpu } = object.kind {
            self.cache.add_object(allocation.client, allocation.new, gpu);
        }
        self.insert(allocation.client, allocation.new, object)?;
        Ok(allocation.params)
    }

    /// The GPU that an object is of.
    pub(super) fn gpu_of(&self, client: u32, handle: u32) -> Result<usize, Status> {
        match &self.object(client, handle)?.kind {
            Kind::Device { gpu, .. }
            | Kind::Subdevice { gpu }
            | Kind::Usermode { gpu, .. }
            | Kind::ChannelGroup { gpu, .. }
            | Kind::ThirdPartyP2p { gpu, .. }
            | Kind::Peer { gpu, .. }
            | Kind::Stateless { gpu: Some(gpu) }
            | Kind::Debugger { gpu, .. } => Ok(*gpu),
            Kind::Channel(channel) => Ok(channel.gpu),
            Kind::VaSpace(space) | Kind::VirtualMemory { space, .. } | Kind::ContextShare { space, .. } => {
                Ok(space.gpu)
            }
            Kind::Memory(_)
            | Kind::ContextDma { .. }
            | Kind::Engine
            | Kind::Event
            | Kind::Lost
            | Kind::Stateless { gpu: None } => Err(Status::INVALID_DEVICE),
        }
    }

    fn new_device(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = a.get(&DeviceParams::deviceId)? as usize;
        let state = self.gpus.get(gpu).ok_or(Status::INVALID_DEVICE)?;
        if !state.is_attached() {
            return Err(Status::INVALID_DEVICE.into());
        }
        Ok(Kind::Device { gpu, space: VaSpace::new(gpu, state.profile.address_limit, false) })
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
        let in_bar1 = a.params.is_some() && a.get(&UsermodeParams::bBar1Mapping)? != 0;
        Ok(Kind::Usermode { gpu, in_bar1 })
    }

    /// An object that only exists.
    fn new_stateless(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = if a.parent == a.client { None } else { Some(self.gpu_of(a.client, a.parent)?) };
        if let Some(gpu) = gpu
            && !self.gpus[gpu].profile.classes.contains(&a.class.number)
        {
            return Err(Status::INVALID_CLASS.into());
        }
        Ok(Kind::Stateless { gpu })
    }

    /// GF100_PROFILER: profiling is for root (`NVreg_RestrictProfilingToAdminUsers`).
    fn new_profiler(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        if self.user < Privilege::Root {
            return Err(Status::INSUFFICIENT_PERMISSIONS.into());
        }
        let gpu = self.gpu_of(a.client, a.parent)?;
        Ok(Kind::Stateless { gpu: Some(gpu) })
    }

    /// AMPERE_SMC_PARTITION_REF: a GPU that is whole has no parts.
    fn new_part(&mut self, _: &mut Allocation) -> Result<Kind, Refusal> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// NV_MEMORY_FABRIC: a GPU that is not behind an NVSwitch has no address space of the fabric.
    fn new_fabric_memory(&mut self, _: &mut Allocation) -> Result<Kind, Refusal> {
        Err(Status::NOT_SUPPORTED.into())
    }

    /// NV50_P2P: two subdevices that reach each other.
    fn new_peer(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let subdevice = |handle: u32| match self.object(a.client, handle).map(|object| &object.kind) {
            Ok(Kind::Subdevice { gpu }) => Ok(*gpu),
            _ => Err(Status::INVALID_ARGUMENT),
        };
        let (local, peer) = (a.handle(&PeerParams::hSubDevice)?, a.handle(&PeerParams::hPeerSubDevice)?);
        let (gpu, other) = (subdevice(local)?, subdevice(peer)?);
        for mask in [&PeerParams::subDevicePeerIdMask, &PeerParams::peerSubDevicePeerIdMask] {
            let mask = a.get(mask)?;
            if mask != 0 && !mask.is_power_of_two() {
                return Err(Status::INVALID_ARGUMENT.into());
            }
        }
        // A GPU has no way to itself over the bus.
        if gpu == other {
            return Err(Status::NOT_SUPPORTED.into());
        }
        a.depends.extend([local, peer]);
        Ok(Kind::Peer { gpu, peer: other })
    }

    fn new_third_party_p2p(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let gpu = self.gpu_of(a.client, a.parent)?;
        Ok(Kind::ThirdPartyP2p { gpu, spaces: Vec::new(), memory: Vec::new() })
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
        let end = if size == 0 { limit } else { end };
        // Without a size the space goes on to the end; the answer says how far that is.
        a.set(&VaSpaceParams::vaSize, end - base)?;
        Ok(Kind::VaSpace(VaSpace::new(gpu, end, externally_owned)))
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

    /// The address space that a parameter names, which the new object then depends on; `None` where it names none.
    fn named_space(&self, a: &mut Allocation, field: &StructField) -> Result<Option<Arc<VaSpace>>, Refusal> {
        let handle = a.handle(field)?;
        if handle == 0 {
            return Ok(None);
        }
        a.depends.push(handle);
        Ok(Some(self.va_space(a.client, handle)?))
    }

    /// The same, or the device's where the parameter names none.
    pub(super) fn space_of(&self, a: &mut Allocation, field: &StructField) -> Result<Arc<VaSpace>, Refusal> {
        match self.named_space(a, field)? {
            Some(space) => Ok(space),
            None => Ok(self.default_space(a.client, a.parent)?),
        }
    }

    fn new_virtual_memory(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let space = self.space_of(a, &VirtualParams::hVASpace)?;
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
        let space = self.named_space(a, &Group::hVASpace)?;
        let state = &mut self.gpus[gpu];
        if state.profile.runlist(engine).is_none() {
            return Err(Status::INVALID_ARGUMENT.into());
        }
        let id = state.next_group;
        state.next_group += 1;
        // The module makes two context shares of its own in every group, and takes handles for them.
        let client = self.clients.get_mut(&a.client).ok_or(Status::INVALID_CLIENT)?;
        client.pick_handle();
        client.pick_handle();
        let subcontexts = BTreeSet::new();
        Ok(Kind::ChannelGroup { gpu, id, engine, space, timeslice: 0, subcontexts })
    }

    fn new_context_share(&mut self, a: &mut Allocation) -> Result<Kind, Refusal> {
        let space = self.space_of(a, &ContextShare::hVASpace)?;
        // Measured on H200: UVM must have taken the space over first.
        if !space.is_usable() {
            return Err(Status::INVALID_STATE.into());
        }
        let flags = (a.get(&ContextShare::flags)? as u32).to_le_bytes();
        let wanted = a.get(&ContextShare::subctxId)? as u32;
        let Kind::ChannelGroup { subcontexts, .. } = &mut self.object_mut(a.client, a.parent)?.kind else {
            return Err(Status::INVALID_OBJECT_PARENT.into());
        };
        // The synchronous one is subcontext 0; measured on H200: asynchronous ones are given out from the top.
        let free = |subcontext: &u32| !subcontexts.contains(subcontext);
        let subcontext = match Bits::new(&flags).get(&NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT)? {
            NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT::SYNC => 0,
            NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT::ASYNC => {
                (1..SUBCONTEXTS).rev().find(free).ok_or(Status::INSUFFICIENT_RESOURCES)?
            }
            NV_CTXSHARE_ALLOCATION_FLAGS::SUBCONTEXT::SPECIFIED => {
                if wanted >= SUBCONTEXTS || !free(&wanted) {
                    return Err(Status::INSUFFICIENT_RESOURCES.into());
                }
                wanted
            }
            _ => (0..SUBCONTEXTS).find(free).ok_or(Status::INSUFFICIENT_RESOURCES)?,
        };
        subcontexts.insert(subcontext);
        a.set(&ContextShare::subctxId, subcontext.into())?;
        Ok(Kind::ContextShare { space, subcontext })
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
        Ok(Kind::Debugger { gpu, channel, exception_mask: 0, cleared: 0 })
    }
}
