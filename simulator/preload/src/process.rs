//! The machine of this process: when it is made, what `fork` does to it, what is said at exit.

use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};

use nv_abi::{
    Errno, Fd, Ioctl, Mapping, Node, Record,
    ioctl::{NV_ESC_ALLOC_OS_EVENT, NV_ESC_IOCTL_XFER_CMD, NV_ESC_RM_MAP_MEMORY, nr, size},
    rm::{Status, nv_ioctl_nvos33_parameters_with_fd as MapMemory, nv_ioctl_xfer_t as Transfer},
};
use nv_simulator::{
    engine::{KernelProfile, Profiles},
    machine::{Machine, Managed, MapSource},
    sm::Observe,
};

use crate::{
    client,
    descriptor::{INHERITED, SIMULATED},
    doorbell::{self, Watch},
    exports::directory::Listing,
    options::{self, Options, PROFILE},
    record::{self, Recorder},
    report::{self, Line},
};

/// What the interposed functions share.
pub(crate) struct Shared {
    machine: Option<Arc<Machine>>,
    /// Who sees doorbells ring. `Some(None)` where the host kernel lets nobody.
    watch: Option<Option<Arc<Watch>>>,
    /// Directories that are shown with changes, by the address of their stream.
    pub(crate) listings: BTreeMap<usize, Listing>,
    /// What the program does with nodes, where that is written down.
    pub(crate) recorder: Option<Recorder>,
    /// Mappings of managed memory by address: bytes, and whose they are.
    pub(crate) managed: BTreeMap<u64, (u64, Managed)>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    machine: None,
    watch: None,
    listings: BTreeMap::new(),
    recorder: None,
    managed: BTreeMap::new(),
});
/// The process that made the machine. A child between `vfork` and `exec` runs in the same memory and has another id.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// The last lines of the report are written.
static FINISHED: AtomicBool = AtomicBool::new(false);
/// Held by the thread that forks, so that no other one is changing what is shared.
static FORKING: ForkGuard = ForkGuard(std::cell::UnsafeCell::new(None));

struct ForkGuard(std::cell::UnsafeCell<Option<MutexGuard<'static, Shared>>>);

// SAFETY: only touched by the fork handlers, on the thread that forks, while it holds the mutex.
unsafe impl Sync for ForkGuard {}

/// The shared state. Never held over a call into the machine.
pub(crate) fn shared() -> MutexGuard<'static, Shared> {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handlers are functions of this library, which stays loaded.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child))
        };
    });
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn before_fork() {
    let guard = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this thread holds the mutex, which guards the cell.
    unsafe { *FORKING.0.get() = Some(guard) };
}

unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: this thread took the mutex in `before_fork` and still holds it.
    drop(unsafe { (*FORKING.0.get()).take() });
}

unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: as in the parent; the child's only thread is the copy of the one that forked.
    if let Some(mut guard) = unsafe { (*FORKING.0.get()).take() } {
        // The threads of the machine exist in the parent only. Dropping it would wait for them.
        std::mem::forget(guard.machine.take());
        if let Some(watch) = guard.watch.take().flatten() {
            Watch::abandon(watch);
        }
        // The parent goes on writing it.
        guard.recorder = None;
        record::forget();
        SIMULATED.move_to(&INHERITED);
        OWNER.store(0, Ordering::Release);
        FINISHED.store(false, Ordering::Release);
    }
}

/// Whether a descriptor is of this process's machine, and this is the process.
pub(crate) fn owns(fd: RawFd) -> bool {
    // SAFETY: getpid has no preconditions.
    SIMULATED.contains(fd) && OWNER.load(Ordering::Acquire) == unsafe { libc::getpid() }
}

/// The machine, if there is one.
fn machine() -> Result<Arc<Machine>, Errno> {
    shared().machine.clone().ok_or(Errno::EBADF)
}

/// The machine, made if there is none.
fn make() -> Result<Arc<Machine>, Errno> {
    let mut shared = shared();
    if let Some(machine) = &shared.machine {
        // SAFETY: getpid has no preconditions.
        if OWNER.load(Ordering::Acquire) != unsafe { libc::getpid() } {
            // Between vfork and exec, in the parent's memory.
            return Err(Errno::ENODEV);
        }
        return Ok(Arc::clone(machine));
    }
    let options = Options::get().map_err(|error| {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            report::write(Line::Trouble, &error.to_string());
        }
        Errno::ENODEV
    })?;
    let mut builder = Machine::builder().driver(&options.driver);
    for _ in 0..options.gpus {
        builder = builder.gpu(options.profile.clone());
    }
    if let Some(bytes) = options.vram {
        builder = builder.vram(bytes);
    }
    let machine = builder.build().map_err(|error| {
        report::write(Line::Trouble, &error.to_string());
        Errno::ENODEV
    })?;
    machine.observe_faults(|fault| {
        let text = fault.to_string();
        report::write(Line::Fault, &text);
        record::fault(&text);
    });
    for cubin in options::cubins() {
        if let Err(error) = machine.add_cubin(cubin) {
            report::write(Line::Trouble, &error.to_string());
        }
    }
    observe(&machine);
    finish_at_exit();
    // SAFETY: getpid has no preconditions.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
    shared.machine = Some(Arc::clone(&machine));
    drop(shared);
    let program = std::env::args_os().next().unwrap_or_default();
    report::write(Line::Start, &program.to_string_lossy());
    Ok(machine)
}

/// What kernels did, where that is asked for.
static PROFILES: Mutex<Profiles> = Mutex::new(Profiles::new());

/// Lets the machine tell of grids, where anybody wants to know.
fn observe(machine: &Machine) {
    let what =
        Observe { instructions: std::env::var_os(PROFILE).is_some(), blocks: options::capture().is_some() };
    if what != Observe::default() {
        machine.observe_grids(what, move |_, grid| {
            record::grid(&grid);
            if what.instructions {
                PROFILES.lock().unwrap_or_else(PoisonError::into_inner).add(&grid);
            }
        });
    }
}

/// Lets [`finish`] run when the program ends by `exit`.
pub(crate) fn finish_at_exit() {
    extern "C" fn at_exit() {
        finish();
    }
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the handler is a function of this library, which stays loaded.
        unsafe { libc::atexit(at_exit) };
    });
}

/// The shared state, unless somebody holds it.
pub(crate) fn try_shared() -> Option<MutexGuard<'static, Shared>> {
    SHARED.try_lock().ok()
}

/// Writes the last lines of the report, once, and of a recording.
pub(crate) fn finish() {
    record::finish();
    // SAFETY: getpid has no preconditions.
    let process = unsafe { libc::getpid() };
    // A child between vfork and exec that gives up has nothing to say.
    if OWNER.load(Ordering::Acquire) != process || FINISHED.swap(true, Ordering::AcqRel) {
        return;
    }
    // An exit from within a signal handler may have interrupted whoever holds the lock.
    let machine = try_shared().and_then(|shared| shared.machine.clone());
    let Some(machine) = machine else { return };
    for unsupported in machine.unsupported() {
        report::write(Line::Unsupported, &format!("{} {}", unsupported.count, unsupported.what));
    }
    let total =
        |get: fn(&nv_simulator::host::Counters) -> u64| machine.statistics().iter().map(get).sum::<u64>();
    let text = format!(
        "gpus={} kernels={} instructions={} lane_instructions={} bytes_copied={} methods={}",
        machine.gpu_count(),
        total(|c| c.launches),
        total(|c| c.instructions),
        total(|c| c.lane_instructions),
        total(|c| c.bytes_copied),
        total(|c| c.methods)
    );
    report::write(Line::Statistics, &text);
    let profiles = PROFILES.try_lock().map(|mut profiles| std::mem::take(&mut *profiles)).unwrap_or_default();
    for line in profiles.into_sorted().iter().flat_map(KernelProfile::lines) {
        report::write(Line::Profile, &line);
    }
    report::write(Line::End, "");
}

/// Runs a call so that a bug of the simulator is an error of the call and a line of the report, and not the end of the
/// program.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        report::write(Line::Trouble, &format!("a bug of the simulator: {what}"));
        Err(Errno(libc::EIO))
    })
}

/// Opens a node.
pub(crate) fn open(node: Node, flags: i32) -> Result<RawFd, Errno> {
    if flags & libc::O_DIRECTORY != 0 {
        return Err(Errno(libc::ENOTDIR));
    }
    let machine = make()?;
    let close_on_exec = if flags & libc::O_CLOEXEC != 0 { libc::EFD_CLOEXEC } else { 0 };
    // Not mappable, and poll waits on it: what a node is until memory is attached to it.
    // SAFETY: eventfd has no preconditions.
    let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | close_on_exec) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: just opened and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    machine.open_at(node, Fd(fd))?;
    if !SIMULATED.insert(fd) {
        machine.close(Fd(fd))?;
        return Err(Errno::EMFILE);
    }
    std::mem::forget(file);
    Ok(fd)
}

/// The error of the last call of libc.
pub(crate) fn last_error() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// The descriptor is about to be closed or replaced.
pub(crate) fn closing(fd: RawFd) -> Result<(), Errno> {
    SIMULATED.remove(fd);
    guarded(|| machine()?.close(Fd(fd)))
}

/// `to` has just become a duplicate of `fd`.
pub(crate) fn duplicated(fd: RawFd, to: RawFd) -> Result<(), Errno> {
    guarded(|| machine()?.duplicate(Fd(fd), Fd(to)))?;
    if SIMULATED.insert(to) {
        return Ok(());
    }
    machine()?.close(Fd(to))?;
    Err(Errno::EMFILE)
}

/// What a descriptor is of.
pub(crate) fn node(fd: RawFd) -> Option<Node> {
    machine().ok()?.node(Fd(fd))
}

/// Checks an `mmap` and gives the file to map.
pub(crate) fn map_source(fd: RawFd, mapping: Mapping) -> Result<MapSource, Errno> {
    guarded(|| machine()?.map_source(Fd(fd), mapping))
}

/// A mapping of managed memory is gone, or was not made.
pub(crate) fn unmapped(managed: Managed, address: u64, length: u64) {
    // Only a bug of the simulator fails here, and it is in the report then.
    let _ = guarded(|| {
        machine()?.unmapped(managed, address, length);
        Ok(())
    });
}

/// An ioctl on a simulated node.
///
/// # Safety
/// `address` must be what the program passed as the argument.
pub(crate) unsafe fn ioctl(fd: RawFd, request: u32, address: u64) -> Result<(), Errno> {
    guarded(|| {
        let machine = machine()?;
        let node = machine.node(Fd(fd)).ok_or(Errno::EBADF)?;
        let bytes = match node {
            // UVM's numbers carry no size: it copies its own struct.
            Node::Uvm => nv_abi::uvm::call(request)
                .and_then(|call| call.argument)
                .map_or(0, |argument| argument.size(machine.branch())),
            Node::Ctl | Node::Gpu(_) => size(request),
        };
        let mut argument = vec![0; bytes];
        client::read(address, &mut argument)?;
        let result = machine.ioctl(Fd(fd), request, &mut argument);
        if result != Err(Errno::EFAULT) {
            // SAFETY: by contract.
            unsafe { client::write(address, &argument) }?;
        }
        result?;
        doorbell::look(&machine, |start| shared().watch.get_or_insert_with(start).clone());
        if node != Node::Uvm && nr(request) == NV_ESC_ALLOC_OS_EVENT {
            signal_events(&machine, fd)?;
        }
        if node == Node::Ctl {
            attach(&machine, nr(request), &argument)?;
        }
        Ok(())
    })
}

/// Lets the eventfd that stands for a node be readable while events wait. One that memory is attached to is none.
fn signal_events(machine: &Machine, fd: RawFd) -> Result<(), Errno> {
    let is_eventfd = std::fs::read_link(format!("/proc/self/fd/{fd}"))
        .is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]");
    if !is_eventfd {
        return Ok(());
    }
    // SAFETY: the caller's descriptor is open, and lives longer than this function.
    let eventfd = unsafe { BorrowedFd::borrow_raw(fd) };
    let eventfd = eventfd.try_clone_to_owned().map_err(|_| last_error())?;
    machine.signal_events(Fd(fd), eventfd)
}

/// The program was told that events wait on a descriptor.
pub(crate) fn taken(fd: RawFd) {
    // A descriptor that was closed in the meantime has none.
    let _ = guarded(|| machine()?.poll(Fd(fd), Duration::ZERO));
}

/// After RM_MAP_MEMORY: puts the memory's file in the place of the descriptor that it was attached to.
fn attach(machine: &Machine, number: u32, argument: &[u8]) -> Result<(), Errno> {
    let branch = machine.branch();
    match number {
        NV_ESC_RM_MAP_MEMORY => {}
        NV_ESC_IOCTL_XFER_CMD => {
            let transfer =
                Record::from_bytes(&Transfer::STRUCT, branch, argument).map_err(|_| Errno::EFAULT)?;
            let get = |field| transfer.get(field).map_err(|_| Errno::EINVAL);
            let mut inner = vec![0; get(&Transfer::size)? as usize];
            let number = get(&Transfer::cmd)? as u32;
            if number != NV_ESC_RM_MAP_MEMORY {
                return Ok(());
            }
            client::read(get(&Transfer::ptr)?, &mut inner)?;
            return attach(machine, number, &inner);
        }
        _ => return Ok(()),
    }
    let map = Record::from_bytes(&MapMemory::STRUCT, branch, argument).map_err(|_| Errno::EFAULT)?;
    let get = |field| map.get(field).map_err(|_| Errno::EINVAL);
    if get(&MapMemory::status)? != u64::from(Status::NV_OK.0) {
        return Ok(());
    }
    let fd = get(&MapMemory::fd)? as u32 as i32;
    let Some(source) = machine.attached(Fd(fd))? else { return Ok(()) };
    if source.doorbell {
        doorbell::expect();
    }
    // A part of memory that does not begin at its start: only an `mmap` that this library sees can map it. The
    // descriptor stays as it was, and an `mmap` past the library fails.
    if source.offset != 0 {
        return Ok(());
    }
    // SAFETY: plain queries and changes of descriptors; the old file of `fd` is the eventfd of `open`.
    let replaced = unsafe {
        let close_on_exec = libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC != 0;
        crate::exports::descriptor::replace(source.file.as_raw_fd(), fd, close_on_exec)
    };
    if replaced < 0 { Err(last_error()) } else { Ok(()) }
}
