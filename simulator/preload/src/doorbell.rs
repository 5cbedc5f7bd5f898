//! Seeing doorbells ring in a program that rings them by a plain store.
//!
//! The host kernel can write-protect a page and tell another thread of a store to it before the store is done
//! (userfaultfd). A thread of this library waits for that on the doorbell pages that the program maps, wakes the
//! channels, and gives them a moment: short work is done when the store returns, as on a card, which is a hundred times
//! faster than a program can look. Some clients count on that without knowing. Where the host kernel does not offer it,
//! the simulator's own look at the put pointers has to do.

use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nv_simulator::machine::{Doorbell, Machine};

/// How long a store to a doorbell waits for the work that it announces.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long the page stays open for the store; one that comes later is told of again.
const OPEN: Duration = Duration::from_millis(2);
/// Between two looks. A thread that sleeps is woken in time on a busy machine; one that yields is not.
const PAUSE: Duration = Duration::from_micros(3);
/// A token that no channel has, by which a store is seen to have happened.
const NO_TOKEN: u32 = u32::MAX;
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

/// Bytes that are protected: the page with the doorbell register.
const PAGE: u64 = 4096;

/// The descriptor by which the host kernel tells of stores, and what it watches.
struct Watch {
    file: OwnedFd,
    /// By the page's address in the program.
    pages: Mutex<BTreeMap<u64, Doorbell>>,
}

impl Watch {
    /// `None` where the host kernel does not offer it to this process.
    fn open() -> Option<Self> {
        // SAFETY: the call has no preconditions.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: just opened and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let watch = Self { file, pages: Mutex::default() };
        let features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
        watch.call(UFFDIO_API, &mut [UFFD_API, features, 0]).then_some(watch)
    }

    fn pages(&self) -> MutexGuard<'_, BTreeMap<u64, Doorbell>> {
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

    fn add(&self, page: u64, doorbell: Doorbell) {
        if self.call(UFFDIO_REGISTER, &mut [page, PAGE, UFFDIO_REGISTER_MODE_WP, 0]) {
            self.pages().insert(page, doorbell);
            if !self.protect(page, true) {
                self.remove(page);
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
            let page = u64::from_le_bytes(address) & !(PAGE - 1);
            let doorbell = self.pages().get(&page).cloned();
            match doorbell {
                Some(doorbell) => self.ring(page, &doorbell),
                None => self.remove(page),
            }
        }
    }

    fn ring(&self, page: u64, doorbell: &Doorbell) {
        doorbell.host.announce();
        doorbell.host.settle(PATIENCE);
        let register = Machine::DOORBELL.into();
        // A page of memory that lives as long as the machine: neither access fails.
        let marked = doorbell.page.write_u32(register, NO_TOKEN).is_ok();
        if !self.protect(page, false) {
            return self.remove(page);
        }
        let end = Instant::now() + OPEN;
        while marked && doorbell.page.read_u32(register) == Ok(NO_TOKEN) && Instant::now() < end {
            thread::sleep(PAUSE);
        }
        if !self.protect(page, true) {
            self.remove(page);
        }
    }
}

/// How many more ioctls look for a mapping.
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// The program has just asked for a doorbell page: its mapping is about to come.
pub(crate) fn expect() {
    LOOKING.store(LOOKS, Ordering::Release);
}

/// Looks for mappings of doorbell pages in the program, if one is expected: the program may have made it past this
/// library.
pub(crate) fn look(machine: &Machine) {
    if LOOKING.load(Ordering::Acquire) == 0 {
        return;
    }
    LOOKING.fetch_sub(1, Ordering::AcqRel);
    let Some(watch) = watch() else {
        LOOKING.store(0, Ordering::Release);
        return;
    };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let doorbells = machine.doorbells();
    let mut there = Vec::new();
    for (start, inode) in maps.lines().filter_map(mapping) {
        if let Some(doorbell) = doorbells.iter().find(|d| d.inode == inode && d.page.address() != start) {
            there.push(start);
            if !watch.pages().contains_key(&start) {
                watch.add(start, doorbell.clone());
                LOOKING.store(0, Ordering::Release);
            }
        }
    }
    let gone: Vec<u64> = watch.pages().keys().copied().filter(|page| !there.contains(page)).collect();
    gone.into_iter().for_each(|page| watch.remove(page));
}

/// Start and inode of a line of `/proc/self/maps`.
fn mapping(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let start = u64::from_str_radix(words.next()?.split('-').next()?, 16).ok()?;
    // Rights, offset, device, inode.
    let inode = words.nth(3)?.parse().ok()?;
    Some((start, inode))
}

/// The watch of this process, made when it is first wanted. A child of `fork` has neither the thread nor the machine
/// and makes its own.
fn watch() -> Option<Arc<Watch>> {
    static WATCH: Mutex<Option<(i32, Option<Arc<Watch>>)>> = Mutex::new(None);
    // SAFETY: getpid has no preconditions.
    let process = unsafe { libc::getpid() };
    let mut made = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, watch)) = &*made
        && *of == process
    {
        return watch.clone();
    }
    let watch = Watch::open().map(Arc::new).filter(|watch| {
        let own = Arc::clone(watch);
        thread::Builder::new().name("doorbell".to_owned()).spawn(move || own.run()).is_ok()
    });
    *made = Some((process, watch.clone()));
    watch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_inode_are_read_from_a_line_of_maps() {
        let line = "7f0000010000-7f0000020000 rw-s 00000000 00:01 2053   /memfd:usermode (deleted)";
        assert_eq!(mapping(line), Some((0x7f00_0001_0000, 2053)));
        assert_eq!(mapping(""), None);
    }
}
