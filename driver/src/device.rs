//! A GPU, opened: channels, timeline, local memory, and what people do with it.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use nv_abi::{arch::Classes, compute::AMPERE_COMPUTE_A as compute, host::AMPERE_CHANNEL_GPFIFO_A as host};

use crate::{
    Argument, Backend, Buffer, Element, Error, Kernel, LaunchOptions, Signal, System,
    channel::{Channel, ChannelGroup, Engine},
    error::ChannelFault,
    gpu::{Geometry, Gpu},
    memory::{Allocation, BUFFER, Location, Request, bounds},
    pushbuffer::{COMPUTE, COPY, Pushbuffer, upper_lower},
    qmd::{LOCAL_WINDOW, SHARED_WINDOW},
    queue::{ArgumentPath, Command, Commands, Context, arena_bytes, encode, store_launch},
    runtime::{Runtime, Sink},
    signal::SignalPool,
    system::lock,
    texture::Pool,
};

/// How a device is opened and used.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where kernel arguments are written.
    pub arguments: ArgumentPath,
    /// Releases after a launch go into the launch's own slots.
    pub fold_releases: bool,
    /// Every mapping is made through RM (MAP_MEMORY_DMA) as well as UVM, as today's client does.
    pub map_memory_dma: bool,
    /// Ask for the highest clocks. Leaves the card's settings alone unless set.
    pub performance_boost: bool,
    /// The longest that any wait of the driver itself takes.
    pub deadline: Duration,
    /// Bytes of the buffer for what kernels print, rounded up to a power of two.
    pub printf_buffer_bytes: u64,
    /// Bytes of the heap of malloc in kernels, its book-keeping aside.
    pub malloc_heap_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            arguments: ArgumentPath::default(),
            fold_releases: true,
            map_memory_dma: false,
            performance_boost: false,
            deadline: Duration::from_secs(30),
            // Both as CUDA has them.
            printf_buffer_bytes: 1 << 20,
            malloc_heap_bytes: 8 << 20,
        }
    }
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The minor number of its node.
    pub minor: u32,
    /// PCI domain, bus, slot and function.
    pub pci: [u32; 4],
    /// PCI device number.
    pub pci_device: u16,
    /// The UUID's 16 bytes.
    pub uuid: [u8; 16],
    /// The SM number: 89 for sm_89.
    pub sm: u32,
    /// Counts of its parts.
    pub geometry: Geometry,
    /// The classes in use.
    pub classes: Classes,
    /// The kernel module's version.
    pub driver_version: String,
}

/// Argument memory of the device.
const ARGUMENTS: u64 = 16 << 20;
/// Copies between slices and invisible memory go through as much pinned memory.
const STAGING: u64 = 2 << 20;
/// Local memory comes in this unit per thread.
const LOCAL_UNIT: u32 = 32;
/// SMs that the seed allows for; the hardware's field has 9 bits.
const MAX_SM_COUNT: u32 = 0xff;

/// A GPU. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device(Arc<Inner>);

/// Fields drop in order: the channels stop before their memory goes.
#[derive(Debug)]
struct Inner {
    compute: Channel,
    copy: Channel,
    #[allow(dead_code, reason = "owns the group: freed after its channels")]
    group: Arc<ChannelGroup>,
    /// Grown under the lock; read without it while a queue is encoded.
    local_bytes: AtomicU32,
    local: Mutex<Option<Allocation>>,
    /// Loaded, under `loading`, with the first module that calls it.
    runtime: OnceLock<Runtime>,
    loading: Mutex<()>,
    /// Made, under `loading`, with the first texture.
    descriptors: OnceLock<Pool>,
    /// What the group died of, once that is known.
    fault: OnceLock<ChannelFault>,
    sink: Mutex<Sink>,
    arguments: Mutex<Arguments>,
    staging: Mutex<Allocation>,
    timeline: Mutex<Timeline>,
    pool: Arc<SignalPool>,
    options: Options,
    gpu: Arc<Gpu>,
}

#[derive(Debug)]
struct Arguments {
    memory: Allocation,
    next: u64,
    /// Released by the compute channel when the ring begins anew.
    signal: Signal,
    turns: u64,
}

#[derive(Debug)]
struct Timeline {
    signal: Signal,
    /// The value that the last submission releases.
    last: u64,
}

impl Device {
    /// Opens GPU number `index` of a backend with the usual options, as a system of its own.
    pub fn open(backend: Arc<dyn Backend>, index: usize) -> Result<Self, Error> {
        Self::open_on(&System::open(backend)?, index, Options::default())
    }

    /// Opens GPU number `index` of a system. Devices of one system can share memory and signals.
    pub fn open_on(system: &Arc<System>, index: usize, options: Options) -> Result<Self, Error> {
        let gpu = Gpu::open(system, index, &options)?;
        for pool in system.pools() {
            pool.map(&gpu)?;
        }
        let pool = SignalPool::new(&gpu);
        let group = ChannelGroup::new(&gpu)?;
        let compute = Channel::new(&group, Engine::Compute)?;
        let copy = Channel::new(&group, Engine::Copy)?;
        group.schedule()?;
        let memory = Allocation::new(&gpu, Request::video("the argument memory", ARGUMENTS).visible())?;
        let arguments = Arguments { memory, next: 0, signal: pool.take(0)?, turns: 0 };
        let device = Self(Arc::new(Inner {
            compute,
            copy,
            group,
            local_bytes: AtomicU32::new(0),
            local: Mutex::default(),
            runtime: OnceLock::new(),
            loading: Mutex::default(),
            descriptors: OnceLock::new(),
            fault: OnceLock::new(),
            sink: Mutex::default(),
            arguments: Mutex::new(arguments),
            staging: Mutex::new(Allocation::new(&gpu, Request::host("the staging buffer", STAGING))?),
            timeline: Mutex::new(Timeline { signal: pool.take(0)?, last: 0 }),
            pool,
            options,
            gpu,
        }));
        device.set_up()?;
        Ok(device)
    }

    /// Binds the classes to their subchannels and sets the windows of the generic address space.
    fn set_up(&self) -> Result<(), Error> {
        let classes = self.gpu().classes;
        let mut push = Pushbuffer::default();
        push.methods(COMPUTE, &compute::SET_OBJECT, &[classes.compute])?;
        push.methods(COMPUTE, &compute::SET_SHADER_LOCAL_MEMORY_WINDOW_A, &upper_lower(LOCAL_WINDOW))?;
        push.methods(COMPUTE, &compute::SET_SHADER_SHARED_MEMORY_WINDOW_A, &upper_lower(SHARED_WINDOW))?;
        self.run(Engine::Compute, Some(push), Commands::default())?;
        let mut push = Pushbuffer::default();
        push.methods(COPY, &host::SET_OBJECT, &[classes.copy])?;
        self.run(Engine::Copy, Some(push), Commands::default())?;
        self.synchronize()
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.0.gpu
    }

    pub(crate) fn channel(&self, engine: Engine) -> &Channel {
        match engine {
            Engine::Compute => &self.0.compute,
            Engine::Copy => &self.0.copy,
        }
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.0.options.deadline
    }

    /// What the device is.
    pub fn info(&self) -> DeviceInfo {
        let gpu = self.gpu();
        DeviceInfo {
            minor: gpu.card.minor,
            pci: gpu.card.pci,
            pci_device: gpu.card.pci_device,
            uuid: gpu.uuid,
            sm: self.sm(),
            geometry: gpu.geometry,
            classes: gpu.classes,
            driver_version: gpu.system.version().to_owned(),
        }
    }

    /// The options in use.
    pub fn options(&self) -> Options {
        self.0.options
    }

    /// The system it belongs to.
    pub fn system(&self) -> &Arc<System> {
        &self.gpu().system
    }

    /// The SM number, 89 for sm_89: from GR_GET_INFO, whose number has major and minor in a byte each.
    pub fn sm(&self) -> u32 {
        let version = self.gpu().geometry.sm_version;
        (version >> 8 & 0xff) * 10 + (version & 0xf)
    }

    /// A buffer in the GPU's memory that the CPU does not see.
    pub fn video<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.buffer(len, Location::Video, false)
    }

    /// A buffer in the GPU's memory that the CPU has mapped.
    pub fn visible<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.buffer(len, Location::Video, true)
    }

    /// A buffer in main memory that RM allocates.
    pub fn system_memory<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.buffer(len, Location::System, true)
    }

    /// A buffer in pinned pages of this process.
    pub fn host<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.buffer(len, Location::Host, true)
    }

    /// A buffer in the GPU's memory with the values of a slice.
    pub fn buffer_from<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = self.video(values.len())?;
        buffer.copy_from(values)?;
        Ok(buffer)
    }

    /// A buffer in the GPU's memory with the values of a slice, which the GPU cannot write: a store is a fault.
    pub fn read_only_from<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let request = Request::video(BUFFER, size_of_val(values) as u64).visible().read_only();
        let buffer = Buffer::new(self, Allocation::new(self.gpu(), request)?, values.len());
        buffer.copy_from(values)?;
        Ok(buffer)
    }

    fn buffer<T: Element>(&self, len: usize, location: Location, visible: bool) -> Result<Buffer<T>, Error> {
        let bytes =
            (len as u64).checked_mul(T::BYTES as u64).ok_or(Error::AddressSpace { bytes: u64::MAX })?;
        let request = match location {
            Location::Video if visible => Request::video(BUFFER, bytes).visible(),
            Location::Video => Request::video(BUFFER, bytes),
            Location::System => Request::system(BUFFER, bytes),
            Location::Host => Request::host(BUFFER, bytes),
        };
        Ok(Buffer::new(self, Allocation::new(self.gpu(), request)?, len))
    }

    /// A signal with a first value.
    pub fn signal(&self, value: u64) -> Result<Signal, Error> {
        self.0.pool.take(value)
    }

    /// Waits until a signal is at least `value`. A dead channel of this device ends the wait with its fault.
    pub fn wait(&self, signal: &Signal, value: u64, deadline: Duration) -> Result<(), Error> {
        signal.poll(value, deadline, || self.check())
    }

    /// An error if one of the channels has died: what a thread of the kernel says about it, or else the fault.
    pub fn check(&self) -> Result<(), Error> {
        match (self.check_channels(), self.0.runtime.get()) {
            (Err(Error::ChannelFault(fault)), Some(runtime)) => {
                // A sink that does not take what was printed before must not hide the fault.
                let _ = runtime.drain(&mut lock(&self.0.sink), true);
                Err(runtime.failure(&fault)?.unwrap_or(Error::ChannelFault(fault)))
            }
            (result, _) => result,
        }
    }

    fn check_channels(&self) -> Result<(), Error> {
        if let Some(fault) = self.0.fault.get() {
            return Err(Error::ChannelFault(Box::new(fault.clone())));
        }
        let channels = (&self.0.compute, &self.0.copy);
        let faults = match (channels.0.fault()?, channels.1.fault()?) {
            (None, None) => return Ok(()),
            (compute @ Some(_), None) => (compute, Self::told_soon(channels.1)?),
            (None, copy @ Some(_)) => (Self::told_soon(channels.0)?, copy),
            both => both,
        };
        let fault = ChannelFault::of_group(faults.0.into_iter().chain(faults.1));
        match fault {
            // Whatever is asked later, the answer stays.
            Some(fault) => Err(Error::ChannelFault(Box::new(self.0.fault.get_or_init(|| fault).clone()))),
            None => Ok(()),
        }
    }

    /// The fault of a channel whose group has died: the kernel module writes the notifiers one after the other.
    fn told_soon(channel: &Channel) -> Result<Option<ChannelFault>, Error> {
        /// More than enough between two stores of the kernel module, and rare.
        const SOON: Duration = Duration::from_millis(250);
        let end = Instant::now() + SOON;
        loop {
            let fault = channel.fault()?;
            if fault.is_some() || Instant::now() >= end {
                return Ok(fault);
            }
            std::thread::yield_now();
        }
    }

    /// Waits for everything that went through the device's timeline: launches, uploads and downloads.
    pub fn synchronize(&self) -> Result<(), Error> {
        let (signal, last) = {
            let timeline = lock(&self.0.timeline);
            (timeline.signal.clone(), timeline.last)
        };
        self.wait(&signal, last, self.deadline())?;
        self.print()
    }

    /// Gives what kernels have printed to the sink.
    fn print(&self) -> Result<(), Error> {
        match self.0.runtime.get() {
            Some(runtime) => runtime.drain(&mut lock(&self.0.sink), false),
            None => Ok(()),
        }
    }

    /// Where `printf` of kernels goes from now on; standard output unless set. It is written at every synchronisation
    /// ([`Device::synchronize`] and all that waits for the device), under a lock: it must not use the device.
    pub fn print_to(&self, sink: impl Write + Send + 'static) {
        *lock(&self.0.sink) = Sink::new(Box::new(sink));
    }

    /// How many calls of `printf` were lost because [`Options::printf_buffer_bytes`] of unprinted text were there.
    pub fn lost_prints(&self) -> Result<u64, Error> {
        self.0.runtime.get().map_or(Ok(0), Runtime::dropped)
    }

    /// The device runtime, loaded unless it is.
    pub(crate) fn load_runtime(&self) -> Result<&Runtime, Error> {
        let _loading = lock(&self.0.loading);
        match self.0.runtime.get() {
            Some(runtime) => Ok(runtime),
            None => {
                let runtime = Runtime::load(self)?;
                Ok(self.0.runtime.get_or_init(|| runtime))
            }
        }
    }

    /// The descriptors of textures, which the compute channel is told of when they are first wanted.
    pub(crate) fn descriptors(&self) -> Result<&Pool, Error> {
        let _loading = lock(&self.0.loading);
        match self.0.descriptors.get() {
            Some(pool) => Ok(pool),
            None => {
                let pool = Pool::new(self)?;
                self.run(Engine::Compute, Some(pool.methods()?), Commands::default())?;
                Ok(self.0.descriptors.get_or_init(|| pool))
            }
        }
    }

    /// The timeline's signal and the value that the last submission releases.
    pub fn timeline(&self) -> (Signal, u64) {
        let timeline = lock(&self.0.timeline);
        (timeline.signal.clone(), timeline.last)
    }

    /// Copies bytes between GPU addresses, in order with the timeline, without waiting.
    pub fn copy(&self, destination: u64, source: u64, bytes: u64) -> Result<(), Error> {
        let mut queue = crate::CopyQueue::new(self);
        queue.copy(destination, source, bytes);
        self.run(Engine::Copy, None, queue.commands)
    }

    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        options: &LaunchOptions,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        let launch = kernel.prepare(grid, block, options, arguments)?;
        launch.check(self.gpu())?;
        let commands = Commands { list: vec![Command::Launch(Box::new(launch))], signals: Vec::new() };
        self.run(Engine::Compute, None, commands)
    }

    /// Submits commands behind everything on the timeline, and releases its next value.
    fn run(&self, engine: Engine, setup: Option<Pushbuffer>, commands: Commands) -> Result<(), Error> {
        let mut timeline = lock(&self.0.timeline);
        let mut all = Commands::default();
        all.wait(&timeline.signal, timeline.last);
        all.list.extend(commands.list);
        let next = timeline.last + 1;
        match (engine, u32::try_from(next)) {
            (Engine::Copy, Ok(value)) => {
                all.list.push(Command::CopyRelease { address: timeline.signal.address(), value });
            }
            _ => all.release(&timeline.signal, next, false),
        }
        if let Some(setup) = setup {
            self.channel(engine).submit(&setup.words, self.deadline())?;
        }
        self.submit(engine, &all)?;
        timeline.last = next;
        Ok(())
    }

    pub(crate) fn context(&self, arena: u64) -> Context {
        Context {
            generation: self.gpu().generation,
            path: self.0.options.arguments,
            fold_releases: self.0.options.fold_releases,
            arena,
            local_bytes: self.local_memory_per_thread(),
        }
    }

    /// Encodes commands with argument memory from the device's ring and submits them.
    pub(crate) fn submit(&self, engine: Engine, commands: &Commands) -> Result<(), Error> {
        let bytes = arena_bytes(self.gpu().generation, &commands.list);
        let mut arguments = lock(&self.0.arguments);
        if bytes > arguments.memory.bytes() {
            return Err(bounds("the argument memory", 0, bytes, arguments.memory.bytes()));
        }
        if arguments.next + bytes > arguments.memory.bytes() {
            arguments.turns += 1;
            let (signal, turns) = (arguments.signal.clone(), arguments.turns);
            self.release_on(Engine::Compute, &signal, turns)?;
            self.wait(&signal, turns, self.deadline())?;
            arguments.next = 0;
        }
        let base = arguments.next;
        let encoded = encode(&self.context(arguments.memory.address() + base), &commands.list)?;
        for launch in &encoded.launches {
            store_launch(&arguments.memory, base, launch)?;
        }
        arguments.next = base + bytes;
        self.channel(engine).submit(&encoded.words, self.deadline()).map_err(|error| self.explain(error))
    }

    /// Where the channel that refused only died with its group, the fault of the one that caused it.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match (&error, self.check()) {
            (Error::ChannelFault(_), Err(cause)) => cause,
            _ => error,
        }
    }

    /// A release behind everything on one channel.
    fn release_on(&self, engine: Engine, signal: &Signal, value: u64) -> Result<(), Error> {
        let mut commands = Commands::default();
        commands.release(signal, value, false);
        let encoded = encode(&self.context(0), &commands.list)?;
        self.channel(engine).submit(&encoded.words, self.deadline())
    }

    /// Waits until one channel has finished everything, also what went past the timeline.
    pub(crate) fn drain(&self, engine: Engine) -> Result<(), Error> {
        let signal = self.signal(0)?;
        self.release_on(engine, &signal, 1)?;
        self.wait(&signal, 1, self.deadline())
    }

    /// Copies a slice to GPU memory through pinned pages and the copy queue, and waits for it.
    pub(crate) fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let staging = lock(&self.0.staging);
        for (index, chunk) in bytes.chunks(STAGING as usize).enumerate() {
            self.synchronize()?;
            staging.window()?.write(0, chunk)?;
            self.copy(address + index as u64 * STAGING, staging.address(), chunk.len() as u64)?;
        }
        self.synchronize()
    }

    /// Copies GPU memory into a slice the same way.
    pub(crate) fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let staging = lock(&self.0.staging);
        for (index, chunk) in bytes.chunks_mut(STAGING as usize).enumerate() {
            self.copy(staging.address(), address + index as u64 * STAGING, chunk.len() as u64)?;
            self.synchronize()?;
            staging.window()?.read(0, chunk)?;
        }
        Ok(())
    }

    /// Grows local memory so that every thread of a full GPU has `bytes`. The old memory goes once nothing uses it.
    pub(crate) fn reserve_local_memory(&self, bytes: u32) -> Result<(), Error> {
        let bytes =
            bytes.checked_next_multiple_of(LOCAL_UNIT).ok_or(Error::AddressSpace { bytes: bytes.into() })?;
        let mut local = lock(&self.0.local);
        if bytes <= self.local_memory_per_thread() {
            return Ok(());
        }
        let geometry = self.gpu().geometry;
        let per_warp = (u64::from(bytes) * 32).next_multiple_of(0x200);
        let per_tpc = (per_warp * u64::from(geometry.warps_per_sm) * u64::from(geometry.sms_per_tpc))
            .next_multiple_of(0x8000);
        let tpcs = u64::from(geometry.gpcs) * u64::from(geometry.tpcs_per_gpc);
        let total = (per_tpc * tpcs).next_multiple_of(0x2_0000);
        let memory = Allocation::new(self.gpu(), Request::video("local memory", total).huge())?;
        self.drain(Engine::Compute)?;
        let mut push = Pushbuffer::default();
        push.methods(COMPUTE, &compute::SET_SHADER_LOCAL_MEMORY_A, &upper_lower(memory.address()))?;
        let [upper, lower] = upper_lower(per_tpc);
        push.methods(
            COMPUTE,
            &compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
            &[upper, lower, MAX_SM_COUNT],
        )?;
        self.channel(Engine::Compute).submit(&push.words, self.deadline())?;
        // Before the old memory goes, the methods above must have been taken.
        self.drain(Engine::Compute)?;
        self.0.local_bytes.store(bytes, Ordering::Release);
        *local = Some(memory);
        Ok(())
    }

    /// Bytes of local memory that each thread has now.
    pub fn local_memory_per_thread(&self) -> u32 {
        self.0.local_bytes.load(Ordering::Acquire)
    }
}
