//! Memory that the GPU can reach: allocated by RM, mapped by UVM, and by the CPU where asked.

pub(crate) mod address;
mod buffer;

use std::sync::{Arc, Mutex};

use nv_abi::{
    Errno, Fd, Mapping, Node,
    ioctl::{NV_ESC_RM_ALLOC_MEMORY, NV_ESC_RM_MAP_MEMORY, NV_ESC_RM_MAP_MEMORY_DMA},
    rm::{
        NV_MEMORY_ALLOCATION_PARAMS as Params, NVOS46_PARAMETERS, class,
        flags::{NVOS02_FLAGS, NVOS32_ALLOC_FLAGS, NVOS32_ATTR, NVOS32_ATTR2, NVOS32_TYPE_NOTIFIER},
        nv_ioctl_nvos02_parameters_with_fd as Os02, nv_ioctl_nvos33_parameters_with_fd as Os33,
    },
};

pub(crate) use buffer::BUFFER;
pub use buffer::{Buffer, Element};

use crate::{
    Error,
    gpu::Gpu,
    os::{self, Window},
    rm::{flags, signed},
    system::{System, lock},
    uvm::MappingType,
};

/// Where an allocation's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// The GPU's own memory.
    Video,
    /// Main memory that RM allocates, uncached on the GPU's side.
    System,
    /// Pages of this process, pinned for the GPU.
    Host,
}

/// What to allocate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// What it is for, in errors.
    pub(crate) name: &'static str,
    pub(crate) location: Location,
    pub(crate) bytes: u64,
    pub(crate) visible: bool,
    pub(crate) contiguous: bool,
    /// 2 MiB pages.
    pub(crate) huge: bool,
    /// The GPU may not write it.
    pub(crate) read_only: bool,
}

impl Request {
    const fn new(name: &'static str, location: Location, bytes: u64, visible: bool) -> Self {
        Self { name, location, bytes, visible, contiguous: false, huge: false, read_only: false }
    }

    /// The GPU's own memory, in huge pages where it is large. Not visible unless asked for.
    pub(crate) const fn video(name: &'static str, bytes: u64) -> Self {
        let mut this = Self::new(name, Location::Video, bytes, false);
        this.huge = bytes > 16 << 20;
        this
    }

    pub(crate) const fn system(name: &'static str, bytes: u64) -> Self {
        Self::new(name, Location::System, bytes, true)
    }

    pub(crate) const fn host(name: &'static str, bytes: u64) -> Self {
        Self::new(name, Location::Host, bytes, true)
    }

    pub(crate) const fn visible(mut self) -> Self {
        self.visible = true;
        self
    }

    pub(crate) const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    pub(crate) const fn contiguous(mut self) -> Self {
        self.contiguous = true;
        self
    }

    pub(crate) const fn huge(mut self) -> Self {
        self.huge = true;
        self
    }
}

const PAGE: u64 = 4 << 10;
const HUGE_PAGE: u64 = 2 << 20;
/// Tries at another address when something else of the process lies at the one chosen.
const ATTEMPTS: usize = 64;
/// NVOS46 flags of today's client: 4 KiB pages, snooped, at the offset given.
const MAP_DMA_FLAGS: u64 = 0x8110;
/// NVOS46_FLAGS_ACCESS_READ_ONLY.
const MAP_DMA_READ_ONLY: u64 = 1;

/// Memory at one GPU virtual address. Dropping it unmaps it from every GPU, frees the object, then the CPU mapping,
/// then the address.
#[derive(Debug)]
pub(crate) struct Allocation {
    name: &'static str,
    gpu: Arc<Gpu>,
    handle: u32,
    address: u64,
    bytes: u64,
    location: Location,
    read_only: bool,
    window: Option<Window>,
    mapped: Mutex<Vec<u32>>,
    /// How far construction came, for the drop.
    range: bool,
}

impl Allocation {
    pub(crate) fn new(gpu: &Arc<Gpu>, request: Request) -> Result<Self, Error> {
        let alignment = if request.huge { HUGE_PAGE } else { PAGE };
        let bytes = request
            .bytes
            .max(1)
            .checked_next_multiple_of(alignment)
            .ok_or(Error::AddressSpace { bytes: request.bytes })?;
        // Dropping a half-made value undoes what was done.
        let mut this = Self {
            name: request.name,
            gpu: Arc::clone(gpu),
            handle: 0,
            address: 0,
            bytes,
            location: request.location,
            read_only: request.read_only,
            window: None,
            mapped: Mutex::default(),
            range: false,
        };
        match request.location {
            Location::Host => {
                this.place(alignment, |this, address| os::anonymous(address, this.bytes).map(drop))?;
                this.register_host()?;
            }
            Location::Video | Location::System => {
                this.handle = this.allocate(request, alignment)?;
                if request.visible {
                    this.map_cpu(alignment)?;
                } else {
                    this.address = address::allocate(bytes, alignment)?;
                }
            }
        }
        this.gpu.system.uvm_create_external_range(this.address, this.bytes)?;
        this.range = true;
        this.map(&Arc::clone(&this.gpu))?;
        Ok(this)
    }

    /// Takes an address and maps there, trying others where the process already has something.
    fn place(
        &mut self,
        alignment: u64,
        mut map: impl FnMut(&Self, u64) -> Result<(), Errno>,
    ) -> Result<(), Error> {
        let mut occupied = Vec::new();
        let mut result = Err(Error::AddressSpace { bytes: self.bytes });
        for _ in 0..ATTEMPTS {
            let address = address::allocate(self.bytes, alignment)?;
            match map(self, address) {
                Ok(()) => {
                    self.address = address;
                    // SAFETY: just mapped over the whole range, and unmapped only when this value drops.
                    self.window = Some(unsafe { Window::new(self.name, address, self.bytes) });
                    result = Ok(());
                    break;
                }
                Err(Errno::EEXIST) => occupied.push(address),
                Err(errno) => {
                    address::release(address, self.bytes);
                    result = Err(Error::System { call: "mmap", errno });
                    break;
                }
            }
        }
        // Addresses with foreign mappings stay taken: they would only be found again.
        drop(occupied);
        result
    }

    fn allocate(&self, request: Request, alignment: u64) -> Result<u32, Error> {
        let system = &self.gpu.system;
        let mut params = system.record(&Params::STRUCT);
        let physicality = if request.contiguous {
            NVOS32_ATTR::PHYSICALITY::CONTIGUOUS
        } else {
            NVOS32_ATTR::PHYSICALITY::ALLOW_NONCONTIGUOUS
        };
        let (number, attr, attr2, allocation);
        if request.location == Location::System {
            number = class::NV01_MEMORY_SYSTEM;
            attr = flags(&[
                (&NVOS32_ATTR::PHYSICALITY, physicality),
                (&NVOS32_ATTR::LOCATION, NVOS32_ATTR::LOCATION::PCI),
            ])?;
            attr2 = flags(&[
                (&NVOS32_ATTR2::ZBC, NVOS32_ATTR2::ZBC::PREFER_NO_ZBC),
                (&NVOS32_ATTR2::GPU_CACHEABLE, NVOS32_ATTR2::GPU_CACHEABLE::NO),
            ])?;
            allocation = flags(&[
                (&NVOS32_ALLOC_FLAGS::IGNORE_BANK_PLACEMENT, 1),
                (&NVOS32_ALLOC_FLAGS::MEMORY_HANDLE_PROVIDED, 1),
                (&NVOS32_ALLOC_FLAGS::MAP_NOT_REQUIRED, 1),
            ])?;
            params.set(&Params::r#type, NVOS32_TYPE_NOTIFIER.into())?;
        } else {
            number = class::NV01_MEMORY_LOCAL_USER;
            let (size, size_huge) = if request.huge {
                (NVOS32_ATTR::PAGE_SIZE::HUGE, NVOS32_ATTR2::PAGE_SIZE_HUGE::SIZE_2MB)
            } else {
                (NVOS32_ATTR::PAGE_SIZE::DEFAULT, NVOS32_ATTR2::PAGE_SIZE_HUGE::DEFAULT)
            };
            attr = flags(&[(&NVOS32_ATTR::PHYSICALITY, physicality), (&NVOS32_ATTR::PAGE_SIZE, size)])?;
            attr2 = flags(&[
                (&NVOS32_ATTR2::ZBC, NVOS32_ATTR2::ZBC::PREFER_NO_ZBC),
                (&NVOS32_ATTR2::GPU_CACHEABLE, NVOS32_ATTR2::GPU_CACHEABLE::YES),
                (&NVOS32_ATTR2::PAGE_SIZE_HUGE, size_huge),
            ])?;
            allocation = flags(&[
                (&NVOS32_ALLOC_FLAGS::IGNORE_BANK_PLACEMENT, 1),
                (&NVOS32_ALLOC_FLAGS::ALIGNMENT_FORCE, 1),
                (&NVOS32_ALLOC_FLAGS::MEMORY_HANDLE_PROVIDED, 1),
                (&NVOS32_ALLOC_FLAGS::MAP_NOT_REQUIRED, 1),
                (&NVOS32_ALLOC_FLAGS::PERSISTENT_VIDMEM, 1),
            ])?;
        }
        params.set(&Params::owner, system.root.into())?;
        params.set(&Params::flags, allocation)?;
        params.set(&Params::attr, attr)?;
        params.set(&Params::attr2, attr2)?;
        // 6: a pitch format of no particular depth, as the seed passes it.
        params.set(&Params::format, 6)?;
        params.set(&Params::size, self.bytes)?;
        params.set(&Params::alignment, alignment)?;
        params.set(&Params::limit, self.bytes - 1)?;
        system.alloc(self.gpu.device, number, Some(&mut params))
    }

    /// RM_MAP_MEMORY attaches the object to a descriptor of its own; mmap then maps it at the GPU's address.
    fn map_cpu(&mut self, alignment: u64) -> Result<(), Error> {
        let gpu = Arc::clone(&self.gpu);
        let fd = match self.location {
            Location::System => {
                gpu.system.backend.open(Node::Ctl).map_err(|errno| Error::Open { node: Node::Ctl, errno })?
            }
            _ => gpu.system.open_gpu(gpu.card.minor)?,
        };
        let result = gpu.system.map_object(gpu.device, fd, self.handle, self.bytes).and_then(|()| {
            self.place(alignment, |this, address| {
                let mapping = Mapping { address: Some(address), length: this.bytes, offset: 0 };
                gpu.system.backend.mmap(fd, mapping).map(drop)
            })
        });
        // The mapping outlives the descriptor.
        let _ = gpu.system.backend.close(fd);
        result
    }

    /// RM_ALLOC_MEMORY of an OS descriptor pins the pages.
    fn register_host(&mut self) -> Result<(), Error> {
        let system = &self.gpu.system;
        let handle = system.host_object();
        let mut record = system.record(&Os02::STRUCT);
        record.set(&Os02::hRoot, system.root.into())?;
        record.set(&Os02::hObjectParent, self.gpu.device.into())?;
        record.set(&Os02::hObjectNew, handle.into())?;
        record.set(&Os02::hClass, class::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR.into())?;
        record.set(
            &Os02::flags,
            flags(&[
                (&NVOS02_FLAGS::PHYSICALITY, NVOS02_FLAGS::PHYSICALITY::NONCONTIGUOUS),
                (&NVOS02_FLAGS::COHERENCY, NVOS02_FLAGS::COHERENCY::CACHED),
                (&NVOS02_FLAGS::MAPPING, NVOS02_FLAGS::MAPPING::NO_MAP),
            ])?,
        )?;
        record.set(&Os02::pMemory, self.address)?;
        record.set(&Os02::limit, self.bytes - 1)?;
        record.set(&Os02::fd, signed(-1))?;
        let class = " NV01_MEMORY_SYSTEM_OS_DESCRIPTOR";
        system.rm_call(self.gpu.fd, NV_ESC_RM_ALLOC_MEMORY, &mut record, || class.to_owned())?;
        self.handle = handle;
        Ok(())
    }

    /// Maps the memory at the same address for another GPU; a second time does nothing.
    pub(crate) fn map(&self, gpu: &Arc<Gpu>) -> Result<(), Error> {
        let mut mapped = lock(&self.mapped);
        if mapped.contains(&gpu.device) {
            return Ok(());
        }
        if let (Some(dma), true) = (gpu.virtual_memory, Arc::ptr_eq(gpu, &self.gpu)) {
            let access = if self.read_only { MAP_DMA_READ_ONLY } else { 0 };
            gpu.map_memory_dma(dma, self.handle, self.address, self.bytes, MAP_DMA_FLAGS | access)?;
        }
        let kind = if self.read_only { MappingType::ReadOnly } else { MappingType::ReadWriteAtomic };
        let result = gpu.system.uvm_map_external(&gpu.uuid, self.handle, self.address, self.bytes, kind);
        result.map_err(|error| match gpu.apart(&self.gpu) {
            Some(reason) if self.location == Location::Video => Error::NoPeerAccess { reason },
            _ => error,
        })?;
        mapped.push(gpu.device);
        Ok(())
    }

    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn location(&self) -> Location {
        self.location
    }

    /// The CPU's view, while this value lives.
    pub(crate) fn window(&self) -> Result<Window, Error> {
        self.window.ok_or(Error::NotVisible(self.name))
    }

    pub(crate) fn is_visible(&self) -> bool {
        self.window.is_some()
    }
}

/// An error for an access outside `what`.
pub(crate) fn bounds(what: &'static str, offset: u64, bytes: u64, size: u64) -> Error {
    Error::Bounds { what, offset, bytes, size }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Nothing can be reported from a drop; closing the descriptors frees whatever a failed call left.
        let system = &self.gpu.system;
        if self.range {
            let _ = system.uvm_free(self.address, self.bytes);
        }
        if self.handle != 0 {
            let _ = system.free(self.gpu.device, self.handle);
        }
        if self.window.take().is_some() {
            let _ = match self.location {
                Location::Host => os::free_anonymous(self.address, self.bytes),
                _ => system.backend.munmap(self.address, self.bytes),
            };
        }
        if self.address != 0 {
            address::release(self.address, self.bytes);
        }
    }
}

impl System {
    /// RM_MAP_MEMORY: attaches an object of `device` to `fd` for one mmap.
    pub(crate) fn map_object(&self, device: u32, fd: Fd, object: u32, length: u64) -> Result<(), Error> {
        let mut record = self.record(&Os33::STRUCT);
        record.set(&Os33::hClient, self.root.into())?;
        record.set(&Os33::hDevice, device.into())?;
        record.set(&Os33::hMemory, object.into())?;
        record.set(&Os33::length, length)?;
        record.set(&Os33::fd, signed(fd.0))?;
        self.rm_call(self.ctl, NV_ESC_RM_MAP_MEMORY, &mut record, String::new)
    }
}

impl Gpu {
    /// RM_MAP_MEMORY_DMA at a fixed address, which RM and UVM must agree on.
    fn map_memory_dma(
        &self,
        dma: u32,
        memory: u32,
        address: u64,
        length: u64,
        flags: u64,
    ) -> Result<(), Error> {
        use NVOS46_PARAMETERS as p;
        let mut record = self.system.record(&p::STRUCT);
        record.set(&p::hClient, self.system.root.into())?;
        record.set(&p::hDevice, self.device.into())?;
        record.set(&p::hDma, dma.into())?;
        record.set(&p::hMemory, memory.into())?;
        record.set(&p::length, length)?;
        record.set(&p::flags, flags)?;
        record.set(&p::dmaOffset, address)?;
        self.system.rm_call(self.system.ctl, NV_ESC_RM_MAP_MEMORY_DMA, &mut record, String::new)
    }
}
