//! Seeing doorbells ring in a program that rings them by a plain store.
//!
//! The host kernel can write-protect a page and tell another thread of a store to it before the store is done
//! (userfaultfd). A thread of this library waits for that on the doorbell pages that the program maps, wakes the
//! channels, and gives them a moment: short work is done when the store returns, as on a card, which is a hundred times
//! faster than a program can look. Some clients count on that without knowing. Where the host kernel does not offer it,
//! the simulator's own look at the put pointers has to do.
//!
//! The page must be open for the store and closed again before the next one, however late this thread runs. So it takes
//! turns with the pages of the put pointers, which a program stores to before it rings: a store to the doorbell closes
//! them and opens the doorbell, a store to a put pointer closes the doorbell and opens that.

use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use nv_simulator::{host::Host, machine::Machine};

use crate::{
    maps::{self, PAGE},
    record,
    report::{self, Line},
};

/// How long a store to a doorbell waits for the work that it announces.
const PATIENCE: Duration = Duration::from_millis(20);
/// How many ioctls after RM_MAP_MEMORY the program's mapping is looked for.
const LOOKS: u32 = 16;

// linux/userfaultfd.h
const UFFD_API: u64 = 0xaa;
const UFFD_USER_MODE_ONLY: i32 = 1;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: libc::c_ulong = 0x8010_aa01;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const UFFD_FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
const UFFD_FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1 << 0;
const UFFD_EVENT_PAGEFAULT: u8 = 0x12;
/// Bytes of `struct uffd_msg`, and where the address lies in it.
const MESSAGE: usize = 32;
const MESSAGE_ADDRESS: usize = 16;

/// What a watched page holds, and of which GPU.
#[derive(Clone)]
struct Page {
    host: Arc<Host>,
    /// The doorbell, not a put pointer.
    doorbell: bool,
}

/// The descriptor by which the host kernel tells of stores, and what it watches.
pub(crate) struct Watch {
    file: OwnedFd,
    /// By the page's address in the program.
    pages: Mutex<BTreeMap<u64, Page>>,
    /// Work that a doorbell announced took longer than [`PATIENCE`], and no work since took less.
    late: AtomicBool,
}

impl Watch {
    /// Fails where the host kernel does not offer it to this process.
    fn open() -> std::io::Result<Self> {
        // SAFETY: the call has no preconditions.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: just opened and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let watch = Self { file, pages: Mutex::default(), late: AtomicBool::new(false) };
        let features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
        if watch.call(UFFDIO_API, &mut [UFFD_API, features, 0]) {
            Ok(watch)
        } else {
            Err(std::io::Error::last_os_error())
        }
    }

    /// A watch with its thread.
    fn start() -> std::io::Result<Arc<Self>> {
        let watch = Arc::new(Self::open()?);
        let own = Arc::clone(&watch);
        thread::Builder::new().name("doorbell".to_owned()).spawn(move || own.run())?;
        Ok(watch)
    }

    /// In a child of `fork`, which has neither the thread nor the machine: lets the descriptor go. What the watch holds
    /// may be between two states and is left alone.
    pub(crate) fn abandon(watch: Arc<Self>) {
        // SAFETY: nobody uses the descriptor any more: the watch is forgotten, and its thread is not in this process.
        unsafe { libc::close(watch.file.as_raw_fd()) };
        std::mem::forget(watch);
    }

    fn pages(&self) -> MutexGuard<'_, BTreeMap<u64, Page>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the descriptor's ioctls, all of whose arguments are 64-bit words.
    fn call(&self, request: libc::c_ulong, argument: &mut [u64]) -> bool {
        // SAFETY: the size that is part of each request is the size of the argument that is passed with it here, and
        // protecting a range changes no byte.
        unsafe { libc::ioctl(self.file.as_raw_fd(), request, argument.as_mut_ptr()) == 0 }
    }

    fn protect(&self, page: u64, protected: bool) -> bool {
        let mode = if protected { UFFDIO_WRITEPROTECT_MODE_WP } else { 0 };
        self.call(UFFDIO_WRITEPROTECT, &mut [page, PAGE, mode])
    }

    fn add(&self, address: u64, page: Page) {
        if self.call(UFFDIO_REGISTER, &mut [address, PAGE, UFFDIO_REGISTER_MODE_WP, 0]) {
            let doorbell = page.doorbell;
            self.pages().insert(address, page);
            // Put pointers are closed when the doorbell is first opened.
            if doorbell && !self.protect(address, true) {
                self.remove(address);
            }
        }
    }

    /// Stops watching a page; whoever waits to store goes on.
    fn remove(&self, page: u64) {
        self.call(UFFDIO_UNREGISTER, &mut [page, PAGE]);
        self.pages().remove(&page);
    }

    /// The life of the thread.
    fn run(&self) {
        // Lets short sleeps end when they should; without it they only end later.
        // SAFETY: changes nothing but this thread's timer slack.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        loop {
            let mut message = [0_u8; MESSAGE];
            // SAFETY: the buffer is as long as is said.
            let bytes = unsafe { libc::read(self.file.as_raw_fd(), message.as_mut_ptr().cast(), MESSAGE) };
            if bytes != MESSAGE as isize {
                // The program closed the descriptor, or a signal came.
                if bytes < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                let pages: Vec<u64> = self.pages().keys().copied().collect();
                pages.into_iter().for_each(|page| self.remove(page));
                return;
            }
            if message[0] != UFFD_EVENT_PAGEFAULT {
                continue;
            }
            let mut address = [0; 8];
            address.copy_from_slice(&message[MESSAGE_ADDRESS..MESSAGE_ADDRESS + 8]);
            self.stored(u64::from_le_bytes(address) & !(PAGE - 1));
        }
    }

    /// The program is about to store to a page and waits.
    fn stored(&self, address: u64) {
        let page = self.pages().get(&address).cloned();
        let Some(page) = page else { return self.remove(address) };
        if page.doorbell {
            // What lies in memory now is what was submitted.
            record::look();
            page.host.announce();
            // A program that goes on submitting while a long kernel runs is held up once, and not every time.
            let late = self.late.load(Ordering::Relaxed);
            let settled = page.host.settle(if late { PATIENCE / 100 } else { PATIENCE });
            self.late.store(!settled, Ordering::Relaxed);
        }
        let turn = |other: &Page| other.doorbell != page.doorbell && Arc::ptr_eq(&other.host, &page.host);
        let others: Vec<u64> =
            self.pages().iter().filter(|(_, other)| turn(other)).map(|(address, _)| *address).collect();
        // A page that cannot be closed is one that the program unmapped.
        let closed = others.iter().filter(|other| self.protect(**other, true)).count();
        if !self.protect(address, false) || closed == 0 {
            self.remove(address);
        }
    }
}

/// Whether the host kernel offers it to this process.
pub(crate) fn is_offered() -> bool {
    Watch::open().is_ok()
}

/// How many more ioctls look for mappings.
static LOOKING: AtomicU32 = AtomicU32::new(0);
/// Channels that there had been at the last look.
static CHANNELS: AtomicU32 = AtomicU32::new(0);

/// The program has just asked for a doorbell page: its mapping is about to come.
pub(crate) fn expect() {
    LOOKING.store(LOOKS, Ordering::Release);
}

/// Looks for mappings of doorbell pages in the program, if one is expected: the program may have made it past this
/// library. `kept` gives the process's watch, which it makes by the function that it is given if there is none.
pub(crate) fn look(machine: &Machine, kept: impl FnOnce(fn() -> Option<Arc<Watch>>) -> Option<Arc<Watch>>) {
    let channels = machine.channels_made();
    if CHANNELS.swap(channels, Ordering::AcqRel) != channels {
        LOOKING.fetch_max(1, Ordering::AcqRel);
    }
    let more = |left: u32| left.checked_sub(1);
    if LOOKING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
        return;
    }
    let Some(watch) = kept(start) else {
        LOOKING.store(0, Ordering::Release);
        return;
    };
    let doorbells = machine.doorbells();
    let mut there = Vec::new();
    for mapping in maps::all() {
        for doorbell in &doorbells {
            let is_doorbell = doorbell.inode == mapping.inode && doorbell.address != mapping.start;
            let mut pages: Vec<u64> = is_doorbell.then_some(mapping.start).into_iter().collect();
            let userd = doorbell.put_pointers.iter().filter(|userd| userd.inode == mapping.inode);
            let userd = userd.filter(|userd| mapping.shows(userd.mapped_at));
            pages.extend(userd.filter_map(|userd| mapping.place(userd.offset)));
            for page in pages {
                there.push(page);
                if !watch.pages().contains_key(&page) {
                    let host = Arc::clone(&doorbell.host);
                    watch.add(page, Page { host, doorbell: is_doorbell });
                }
            }
        }
    }
    let gone: Vec<u64> = watch.pages().keys().copied().filter(|page| !there.contains(page)).collect();
    gone.into_iter().for_each(|page| watch.remove(page));
}

/// The watch, or a word in the report why there is none.
fn start() -> Option<Arc<Watch>> {
    let refused = |error| {
        let text =
            format!("doorbells are not watched, put pointers are polled instead: userfaultfd: {error}");
        report::write(Line::Note, &text);
    };
    Watch::start().map_err(refused).ok()
}
