//! A computer with simulated GPUs: the nodes, as a driver opens them.
#![forbid(unsafe_code)]

use std::{
    collections::BTreeMap,
    fmt,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use nv_abi::{Branch, Errno, Fd, Ioctl, Mapping, Mmio, Node};

pub use nv_abi::rm::class::Privilege;

pub use crate::rm::{Readiness, Unsupported};
use crate::{
    engine::{Grid, Interpreter},
    fault::FaultReport,
    host::{Counters, FaultReporting, Host},
    memory::{Backing, BackingError, PAGE, unmap_for_client},
    profile::Profile,
    rm::{Gpu, Kernel, MapContext},
    sm::{Compile, Observe},
    source::{CubinError, Program},
    uvm::ClientView,
};

/// Why a machine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The driver version is no version, or older than the oldest branch.
    #[error("driver version {0:?} belongs to no branch that is simulated")]
    Driver(String),
    /// More GPUs than the class of ids holds.
    #[error("{0} GPUs; a machine holds up to 32")]
    TooMany(usize),
    /// A place that a PCI bus does not have.
    #[error("PCI slot {:#x} on bus {:#x}; slots are below 0x20", .0.slot, .0.bus)]
    Slot(PciPlace),
    /// Two GPUs at one place.
    #[error("two GPUs on PCI bus {:#x} slot {:#x}", .0.bus, .0.slot)]
    Occupied(PciPlace),
    /// The host system gave no memory.
    #[error(transparent)]
    Memory(#[from] BackingError),
}

/// Where a GPU sits; the PCI domain and function are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciPlace {
    /// Bus number.
    pub bus: u8,
    /// Slot (device) number, below 32.
    pub slot: u8,
}

/// Describes a [`Machine`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    profiles: Vec<(Profile, PciPlace)>,
    driver: String,
    vram: Option<u64>,
    user: Privilege,
    reporting: FaultReporting,
    uvm_needs_mm: bool,
    seed: Option<u64>,
    compile: Compile,
}

impl Builder {
    /// Adds a GPU. The first is `/dev/nvidia0`.
    pub fn gpu(self, profile: Profile) -> Self {
        // More than that many are refused when the machine is built.
        let bus = u8::try_from(self.profiles.len() + 1).unwrap_or(u8::MAX);
        self.gpu_at(profile, PciPlace { bus, slot: 0 })
    }

    /// Adds a GPU at a place on the PCI bus, which its id and its addresses follow from. A place that does not exist,
    /// and two GPUs at one place, are refused by [`Builder::build`].
    pub fn gpu_at(mut self, profile: Profile, place: PciPlace) -> Self {
        self.profiles.push((profile, place));
        self
    }

    /// The version that the kernel module reports; its branch decides struct layouts. 570.124.06 if not called.
    pub fn driver(mut self, version: &str) -> Self {
        version.clone_into(&mut self.driver);
        self
    }

    /// Bytes of video memory of every GPU, all of it for clients, instead of the profile's.
    pub fn vram(mut self, bytes: u64) -> Self {
        self.vram = Some(bytes);
        self
    }

    /// Who the clients are: classes that only root or the kernel may allocate are refused to others. Root if not called.
    pub fn user(mut self, user: Privilege) -> Self {
        self.user = user;
        self
    }

    /// When clients are told of faults. At once if not called.
    pub fn fault_reporting(mut self, reporting: FaultReporting) -> Self {
        self.reporting = reporting;
        self
    }

    /// Whether UVM wants UVM_MM_INITIALIZE on a second descriptor, as the module that was measured does. Where it does
    /// not, the call answers WARN_NOTHING_TO_DO. True if not called.
    pub fn uvm_needs_mm(mut self, needs: bool) -> Self {
        self.uvm_needs_mm = needs;
        self
    }

    /// Makes kernels repeat themselves: one thread executes all blocks and warps in an order that the seed decides.
    /// Another seed gives another order that the card could have taken. Slower than without.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What of kernels becomes code of this computer. What is executed often, if not called; kernels do the same either way.
    pub fn compile(mut self, compile: Compile) -> Self {
        self.compile = compile;
        self
    }

    /// Builds the machine.
    pub fn build(self) -> Result<Arc<Machine>, BuildError> {
        let branch =
            Branch::from_version(&self.driver).ok_or_else(|| BuildError::Driver(self.driver.clone()))?;
        if self.profiles.len() > 32 {
            return Err(BuildError::TooMany(self.profiles.len()));
        }
        let mut gpus = Vec::new();
        for (index, (mut profile, place)) in (0_u8..).zip(self.profiles) {
            if place.slot >= 32 {
                return Err(BuildError::Slot(place));
            }
            if gpus.iter().any(|gpu: &Gpu| gpu.place == place) {
                return Err(BuildError::Occupied(place));
            }
            if let Some(bytes) = self.vram {
                profile.vram_bytes = bytes;
                profile.reserved_vram_bytes = 0;
            }
            let profile = Arc::new(profile);
            let interpreter = Interpreter::new(&profile, self.seed, self.compile);
            let host = Host::new(Arc::clone(&profile), Arc::new(interpreter));
            host.set_fault_reporting(self.reporting);
            gpus.push(Gpu::new(index, place, profile, host)?);
        }
        let hosts = gpus.iter().map(|gpu| Arc::clone(&gpu.host)).collect();
        let kernel = Kernel::new(branch, self.driver, self.user, self.uvm_needs_mm, gpus);
        Ok(Arc::new(Machine { kernel: Mutex::new(kernel), mappings: Mutex::default(), hosts }))
    }
}

/// A mapping in the client's address space.
#[derive(Debug)]
struct ClientMapping {
    length: u64,
    /// What is mapped, from which byte on.
    memory: (Arc<Backing>, u64),
    /// The UVM file whose managed memory this is, by serial.
    uvm: Option<u64>,
    /// The GPU behind it, where the mapping is a doorbell page.
    doorbell: Option<Arc<Host>>,
}

/// A computer with simulated GPUs and the kernel module for them.
///
/// It answers what a driver asks of the device nodes ([`Ioctl`]) and of the doorbell page ([`Mmio`]). Several machines
/// live side by side in one process. Engines run on threads of their own.
pub struct Machine {
    kernel: Mutex<Kernel>,
    mappings: Mutex<BTreeMap<u64, ClientMapping>>,
    hosts: Vec<Arc<Host>>,
}

impl Machine {
    /// The doorbell's offset in the usermode page (`dev_usermode`, NV_USERMODE_NOTIFY_CHANNEL_PENDING).
    pub const DOORBELL: u32 = 0x90;

    /// The doorbell pages of all GPUs.
    pub fn doorbells(&self) -> Vec<Doorbell> {
        let kernel = self.kernel();
        let doorbell = |gpu: &Gpu| {
            let host = Arc::clone(&gpu.host);
            let inode = gpu.usermode.inode()?;
            let put_pointer = |(memory, offset): (Arc<Backing>, u64)| {
                Some(PutPointer { inode: memory.inode()?, offset, mapped_at: memory.address() })
            };
            let put_pointers = host.put_pointers().into_iter().filter_map(put_pointer).collect();
            Some(Doorbell { inode, address: gpu.usermode.address(), put_pointers, host })
        };
        kernel.gpus.iter().filter_map(doorbell).collect()
    }

    /// How many channels have been made so far, on all GPUs.
    pub fn channels_made(&self) -> u32 {
        self.hosts.iter().map(|host| host.channels_made()).sum()
    }

    /// A machine to be described further: no GPU yet.
    pub fn builder() -> Builder {
        Builder {
            profiles: Vec::new(),
            driver: "570.124.06".to_owned(),
            vram: None,
            user: Privilege::Root,
            reporting: FaultReporting::AtOnce,
            uvm_needs_mm: true,
            seed: None,
            compile: Compile::default(),
        }
    }

    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        // A call that panicked leaves the object tree as it was between two steps; later calls answer for themselves.
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mappings(&self) -> MutexGuard<'_, BTreeMap<u64, ClientMapping>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many GPUs there are.
    pub fn gpu_count(&self) -> usize {
        self.hosts.len()
    }

    /// What a GPU is, by minor number.
    pub fn profile(&self, gpu: usize) -> Option<Arc<Profile>> {
        Some(Arc::clone(&self.kernel().gpus.get(gpu)?.profile))
    }

    /// The host interface of a GPU by minor number.
    pub fn host(&self, gpu: usize) -> Option<&Arc<Host>> {
        self.hosts.get(gpu)
    }

    /// The faults of all GPUs, by time.
    pub fn faults(&self) -> Vec<FaultReport> {
        let mut faults: Vec<_> = self.hosts.iter().flat_map(|host| host.faults()).collect();
        faults.sort_by_key(|fault| fault.time);
        faults
    }

    /// Calls `observer` with every fault of any GPU as it happens, on the thread of the channel. It must not call the
    /// machine back.
    pub fn observe_faults(&self, observer: impl Fn(&FaultReport) + Send + Sync + 'static) {
        let observer = Arc::new(observer);
        for host in &self.hosts {
            let observer = Arc::clone(&observer);
            host.set_fault_observer(Box::new(move |report| observer(report)));
        }
    }

    /// Calls `observer` with every grid of any GPU when it has ended, on the thread of the channel; the number is the
    /// GPU's. It must not call the machine back. False if somebody observes already. Observing instructions makes
    /// execution slow; as long as nobody does, it costs nothing.
    pub fn observe_grids(
        &self,
        what: Observe,
        observer: impl Fn(usize, Grid) + Send + Sync + 'static,
    ) -> bool {
        let observer = Arc::new(observer);
        self.hosts.iter().enumerate().fold(true, |all, (gpu, host)| {
            let observer = Arc::clone(&observer);
            host.observe_grids(what, Box::new(move |grid| observer(gpu, grid))) && all
        })
    }

    /// Learns the functions of a cubin, and their source lines if it has them, by which reports of faults then name
    /// the kernel. Returns how many functions it has.
    pub fn add_cubin(&self, cubin: &[u8]) -> Result<usize, CubinError> {
        let program = Arc::new(Program::of(cubin)?);
        for host in &self.hosts {
            host.add_program(&program);
        }
        Ok(program.len())
    }

    /// What each GPU has done so far.
    pub fn statistics(&self) -> Vec<Counters> {
        self.hosts.iter().map(|host| host.counters()).collect()
    }

    /// Whether a control call is simulated, in some way.
    pub fn answers(command: u32) -> bool {
        Kernel::answers(command)
    }

    /// What was asked for and is not simulated.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let instructions = self.hosts.iter().flat_map(|host| host.unsupported());
        let instructions = instructions.map(|(what, count)| Unsupported { what, count });
        let mut all = self.kernel().unsupported();
        all.extend(instructions);
        all
    }

    /// Whether an event waits on a descriptor, as `poll(2)` would tell; waits for one up to `limit`. An event without
    /// data is taken by this call, one with data by RM_GET_EVENT_DATA.
    pub fn poll(&self, fd: Fd, limit: Duration) -> Result<Readiness, Errno> {
        let (events, file) = {
            let kernel = self.kernel();
            let file = kernel.file(fd)?;
            (Arc::clone(&kernel.events), (file.serial, file.gpu()))
        };
        Ok(events.poll(file.0, file.1, limit))
    }

    /// Takes a GPU off the bus, as a fault of it does: its channels stop with Xid 79 in their notifiers, its nodes hang
    /// up, and controls that need it are GPU_IS_LOST. `false` if there is no such GPU.
    pub fn lose_gpu(&self, gpu: usize) -> bool {
        self.kernel().lose_gpu(gpu)
    }

    /// Lets a non-blocking eventfd be readable exactly while [`Machine::poll`] would find something on a descriptor, for
    /// clients that wait in the host system. It goes away with the descriptor's last duplicate. `EBADF` if the descriptor is
    /// not open.
    pub fn signal_events(&self, fd: Fd, eventfd: OwnedFd) -> Result<(), Errno> {
        let kernel = self.kernel();
        let file = kernel.file(fd)?.serial;
        kernel.events.signal(file, eventfd);
        Ok(())
    }

    /// Bytes of a GPU's memory that are allocated. `None` for a GPU that there is not.
    pub fn video_memory_in_use(&self, gpu: usize) -> Option<u64> {
        let kernel = self.kernel();
        Some(kernel.gpus.get(gpu)?.vram_used.load(Ordering::Relaxed))
    }

    /// How many things clients have left with the kernel module: clients, objects, mappings, events. 0 when all is
    /// freed.
    pub fn object_count(&self) -> usize {
        self.kernel().object_count()
    }

    /// Waits until no GPU has anything that it could do; false if `limit` passes first.
    pub fn wait_idle(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        self.hosts.iter().all(|host| host.wait_idle(end.saturating_duration_since(Instant::now())))
    }

    /// Maps what UVM has at an address; managed memory that cannot be mapped there does not come to be.
    fn map_uvm(&self, serial: u64, view: ClientView, mapping: Mapping) -> Result<u64, Errno> {
        let mut mappings = self.mappings();
        match view.backing.map_for_client(mapping.address, view.offset, mapping.length, true) {
            Ok(address) => {
                let memory = (view.backing, view.offset);
                let entry =
                    ClientMapping { length: mapping.length, memory, uvm: Some(serial), doorbell: None };
                mappings.insert(address, entry);
                Ok(address)
            }
            Err(errno) => {
                drop(mappings);
                self.kernel().uvm_munmap(serial, mapping.offset, mapping.length);
                Err(errno)
            }
        }
    }

    /// Opens a node under the descriptor number `fd` of the caller's choice, where [`Ioctl::open`] picks one. A process
    /// whose real descriptors stand for simulated nodes keeps both numbers the same this way, so that numbers inside
    /// arguments mean what they say. `EEXIST` if the number is in use.
    pub fn open_at(&self, node: Node, fd: Fd) -> Result<(), Errno> {
        self.kernel().open_at(node, fd)
    }

    /// Makes `to` another number for the open file of `fd`, as `dup2` does with a number that is free.
    pub fn duplicate(&self, fd: Fd, to: Fd) -> Result<(), Errno> {
        self.kernel().duplicate(fd, to)
    }

    /// The node that a descriptor was opened on.
    pub fn node(&self, fd: Fd) -> Option<Node> {
        self.kernel().file(fd).ok().map(|file| file.node)
    }

    /// The driver branch whose struct layouts the kernel module has.
    pub fn branch(&self) -> Branch {
        self.kernel().branch
    }

    /// What RM_MAP_MEMORY attached to a descriptor. `None` where nothing is.
    pub fn attached(&self, fd: Fd) -> Result<Option<MapSource>, Errno> {
        let Some(context) = self.kernel().file(fd)?.context.clone() else { return Ok(None) };
        MapSource::of(&context, context.length.next_multiple_of(PAGE)).map(Some)
    }

    /// Checks a mapping as `mmap` of the descriptor does and gives the file to map instead, for callers that map
    /// themselves. Managed memory of a UVM descriptor comes to be at the mapping's offset; [`Machine::unmapped`] ends it.
    pub fn map_source(&self, fd: Fd, mapping: Mapping) -> Result<MapSource, Errno> {
        self.map_source_for(std::process::id(), fd, mapping)
    }

    /// The same for a process that may be another one: a UVM descriptor that keeps a process's memory is for that alone.
    pub fn map_source_for(&self, process: u32, fd: Fd, mapping: Mapping) -> Result<MapSource, Errno> {
        if let Some((serial, view)) = self.view_uvm(fd, mapping, process)? {
            let managed = Managed(serial);
            let file = view.backing.client_file(true).inspect_err(|_| {
                self.unmapped(managed, mapping.offset, mapping.length);
            })?;
            return Ok(MapSource {
                file,
                offset: view.offset,
                length: mapping.length,
                managed: Some(managed),
                doorbell: false,
            });
        }
        let (context, length, _) = self.mappable(fd, &mapping)?;
        MapSource::of(&context, length)
    }

    /// What a UVM descriptor maps, which may come to be by this, and the file that it is of. `None` for other nodes.
    fn view_uvm(&self, fd: Fd, mapping: Mapping, process: u32) -> Result<Option<(u64, ClientView)>, Errno> {
        let mut kernel = self.kernel();
        let file = kernel.file(fd)?;
        if file.node != Node::Uvm {
            return Ok(None);
        }
        let serial = file.serial;
        Ok(Some((serial, kernel.uvm_mmap(fd, mapping, process)?)))
    }

    /// The caller took away its mapping of managed memory, or could not make it.
    pub fn unmapped(&self, managed: Managed, address: u64, length: u64) {
        self.kernel().uvm_munmap(managed.0, address, length);
    }

    /// What a mapping of a descriptor would map, its bytes in whole pages, and the GPU whose doorbell it is.
    fn mappable(&self, fd: Fd, mapping: &Mapping) -> Result<(MapContext, u64, Option<Arc<Host>>), Errno> {
        let kernel = self.kernel();
        let file = kernel.file(fd)?;
        if mapping.offset != 0 {
            return Err(Errno::EINVAL);
        }
        let context = file.context.clone().ok_or(Errno::EINVAL)?;
        let length = check(file.node, &context, mapping)?;
        let doorbell = context.doorbell.map(|gpu| Arc::clone(&kernel.gpus[gpu].host));
        Ok((context, length, doorbell))
    }

    fn doorbell_page(&self, page: u64, offset: u32) -> Result<(Arc<Host>, Arc<Backing>), Errno> {
        let mappings = self.mappings();
        let mapping = mappings.get(&page).ok_or(Errno::EFAULT)?;
        if u64::from(offset) + 4 > mapping.length || !offset.is_multiple_of(4) {
            return Err(Errno::EFAULT);
        }
        let host = mapping.doorbell.clone().ok_or(Errno::EFAULT)?;
        Ok((host, Arc::clone(&mapping.memory.0)))
    }

    /// Reads what a mapping that [`Ioctl::mmap`] gave shows, without a call of the host system; false where no one mapping
    /// shows all of it.
    pub fn read_mapped(&self, address: u64, to: &mut [u8]) -> bool {
        let mappings = self.mappings();
        let Some((start, mapping)) = mappings.range(..=address).next_back() else { return false };
        let (inside, (memory, offset)) = (address - start, &mapping.memory);
        let fits = inside.checked_add(to.len() as u64).is_some_and(|end| end <= mapping.length);
        fits && memory.read(offset + inside, to).is_ok()
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("gpus", &self.hosts.len()).finish_non_exhaustive()
    }
}

/// The file behind what RM_MAP_MEMORY attached to a descriptor, for a client whose `mmap` the host system itself is to
/// serve.
#[derive(Debug)]
pub struct MapSource {
    /// Holds the bytes; opened read-only where the mapping is to be.
    pub file: OwnedFd,
    /// Where in the file the mapping begins.
    pub offset: u64,
    /// Bytes that may be mapped, whole pages.
    pub length: u64,
    /// Set where the mapping is one of managed memory.
    pub managed: Option<Managed>,
    /// Whether it is a doorbell page.
    pub doorbell: bool,
}

impl MapSource {
    /// Of what RM_MAP_MEMORY left on a descriptor.
    fn of(context: &MapContext, length: u64) -> Result<Self, Errno> {
        let file = context.backing.client_file(!context.read_only)?;
        let doorbell = context.doorbell.is_some();
        Ok(Self { file, offset: context.offset, length, managed: None, doorbell })
    }
}

/// A channel's put pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutPointer {
    /// The inode of the memory's file.
    pub inode: u64,
    /// Bytes into the file.
    pub offset: u64,
    /// The simulator's own mapping of the memory.
    pub mapped_at: u64,
}

/// A GPU's doorbell page, for those who watch the client's stores to it.
#[derive(Clone, Debug)]
pub struct Doorbell {
    /// The inode of the page's file, by which its mappings can be told.
    pub inode: u64,
    /// The simulator's own mapping of it.
    pub address: u64,
    /// Where the GPU's channels have their put pointers, which a client stores to before it rings.
    pub put_pointers: Vec<PutPointer>,
    /// Whom the doorbell rings.
    pub host: Arc<Host>,
}

/// Whose managed memory a mapping is: a UVM file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Managed(u64);

/// Checks a mapping against what RM_MAP_MEMORY left on the descriptor, as the module's `mmap` does.
fn check(node: Node, context: &MapContext, mapping: &Mapping) -> Result<u64, Errno> {
    let length = mapping.length.checked_next_multiple_of(PAGE).ok_or(Errno::EINVAL)?;
    let have = context.length.next_multiple_of(PAGE);
    match node {
        Node::Gpu(_) if length != have => Err(Errno::ENXIO),
        _ if length > have => Err(Errno::ERANGE),
        _ if length == 0 => Err(Errno::EINVAL),
        _ => Ok(length),
    }
}

impl Ioctl for Machine {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        self.kernel().open(node)
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.kernel().close(fd)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        self.kernel().ioctl(fd, request, argument)
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        if let Some((serial, view)) = self.view_uvm(fd, mapping, std::process::id())? {
            return self.map_uvm(serial, view, mapping);
        }
        let (context, length, doorbell) = self.mappable(fd, &mapping)?;
        let mut mappings = self.mappings();
        let address =
            context.backing.map_for_client(mapping.address, context.offset, length, !context.read_only)?;
        let memory = (context.backing, context.offset);
        mappings.insert(address, ClientMapping { length: mapping.length, memory, uvm: None, doorbell });
        Ok(address)
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        let uvm = {
            let mut mappings = self.mappings();
            let mapping = mappings.get(&address).filter(|mapping| mapping.length == length);
            let uvm = mapping.ok_or(Errno::EINVAL)?.uvm;
            unmap_for_client(address, length)?;
            mappings.remove(&address);
            uvm
        };
        if let Some(serial) = uvm {
            self.kernel().uvm_munmap(serial, address, length);
        }
        Ok(())
    }
}

impl Mmio for Machine {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        let (host, memory) = self.doorbell_page(page, offset)?;
        memory.write_u32(offset.into(), value).map_err(|_| Errno::EFAULT)?;
        if offset == Self::DOORBELL {
            host.doorbell(value);
        }
        Ok(())
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        let (_, memory) = self.doorbell_page(page, offset)?;
        memory.read_u32(offset.into()).map_err(|_| Errno::EFAULT)
    }
}
