//! Streams of directories: generated ones, and real ones without a real card's nodes and with simulated ones.

use std::{
    ffi::{CStr, c_char, c_int},
    sync::atomic::{AtomicUsize, Ordering},
};

use libc::{DIR, dirent};
use nv_abi::Errno;

use super::{fail, look};
use crate::{
    next::Next,
    path::{EntryKind, Known, hides},
    process::shared,
};

type Read = unsafe extern "C" fn(*mut DIR) -> *mut dirent;

// SAFETY: the signature is that of the function of this name.
static OPEN: Next<unsafe extern "C" fn(*const c_char) -> *mut DIR> = unsafe { Next::new(c"opendir") };
// SAFETY: the signature is that of the function of this name.
static CLOSE: Next<unsafe extern "C" fn(*mut DIR) -> c_int> = unsafe { Next::new(c"closedir") };
// SAFETY: the signature is that of the function of this name.
static REWIND: Next<unsafe extern "C" fn(*mut DIR)> = unsafe { Next::new(c"rewinddir") };

/// Streams that are shown with changes: while there are none, reading any stream costs one load more.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A stream that is shown with changes.
pub(crate) struct Listing {
    /// The real directory, whose entries come first; `None` for a generated one.
    real: Option<String>,
    /// Entries that the simulated module adds.
    added: Vec<(String, EntryKind)>,
    next: usize,
    /// The entry that was given out last: it stays valid until the next one is read.
    entry: Box<dirent>,
}

impl Listing {
    fn new(real: Option<String>, added: Vec<(String, EntryKind)>) -> Self {
        // SAFETY: all zeros are a valid value of this struct of integers.
        let entry = Box::new(unsafe { std::mem::zeroed() });
        Self { real, added, next: 0, entry }
    }

    /// The next added entry, or null after the last.
    fn added(&mut self) -> *mut dirent {
        let Some((name, kind)) = self.added.get(self.next) else { return std::ptr::null_mut() };
        self.next += 1;
        self.entry.d_ino = 0x6d6f_0000 + self.next as u64;
        self.entry.d_off = self.next as i64;
        self.entry.d_reclen = size_of::<dirent>() as u16;
        self.entry.d_type = match kind {
            EntryKind::Node => libc::DT_CHR,
            EntryKind::File => libc::DT_REG,
            EntryKind::Directory => libc::DT_DIR,
        };
        self.entry.d_name.fill(0);
        // Names are short; the last byte stays 0 in any case.
        let room = self.entry.d_name.len() - 1;
        for (to, from) in self.entry.d_name.iter_mut().zip(name.bytes().take(room)) {
            *to = from as c_char;
        }
        &raw mut *self.entry
    }
}

/// See opendir(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    let Some(open) = OPEN.get() else {
        fail(Errno::ENOSYS);
        return std::ptr::null_mut();
    };
    // SAFETY: the caller passes a path.
    let listing = match unsafe { look(libc::AT_FDCWD, path) } {
        None => None,
        Some((Known::Changed(added), _)) => {
            // SAFETY: not null, since it was looked at.
            let real = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
            Some(Listing::new(Some(real), added))
        }
        Some((Known::Directory(added), _)) => Some(Listing::new(None, added)),
        Some((Known::Absent, _)) => {
            fail(Errno::ENOENT);
            return std::ptr::null_mut();
        }
        Some((Known::Node(_) | Known::Text(_), _)) => {
            fail(Errno(libc::ENOTDIR));
            return std::ptr::null_mut();
        }
    };
    let Some(listing) = listing else {
        // SAFETY: the caller's argument, passed on.
        return unsafe { open(path) };
    };
    // A generated directory's stream is one of the root, of which nothing is read.
    let real = if listing.real.is_some() { path } else { c"/".as_ptr() };
    // SAFETY: a C string.
    let stream = unsafe { open(real) };
    if !stream.is_null() {
        shared().listings.insert(stream as usize, listing);
        COUNT.fetch_add(1, Ordering::Release);
    }
    stream
}

/// Reads an entry of a stream that is shown with changes; `None` for any other stream.
///
/// # Safety
/// `stream` must be an open stream, and `next` read from it.
unsafe fn read_listing(stream: *mut DIR, next: Read) -> Option<*mut dirent> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let real = shared().listings.get(&(stream as usize))?.real.clone();
    if let Some(directory) = real {
        loop {
            // SAFETY: by contract.
            let entry = unsafe { next(stream) };
            if entry.is_null() {
                break;
            }
            // SAFETY: an entry's name is a C string.
            let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) };
            if !hides(&directory, &name.to_string_lossy()) {
                return Some(entry);
            }
        }
    }
    Some(shared().listings.get_mut(&(stream as usize)).map_or(std::ptr::null_mut(), Listing::added))
}

macro_rules! read {
    ($($name:ident $literal:literal;)*) => { $(
        /// See readdir(3).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(stream: *mut DIR) -> *mut dirent {
            // SAFETY: the signature is that of the function of this name; both have the same struct on platforms with
            // 64-bit offsets.
            static NEXT: Next<Read> = unsafe { Next::new($literal) };
            let Some(next) = NEXT.get() else {
                fail(Errno::ENOSYS);
                return std::ptr::null_mut();
            };
            // SAFETY: the caller's stream.
            match unsafe { read_listing(stream, next) } {
                Some(entry) => entry,
                // SAFETY: the caller's argument, passed on.
                None => unsafe { next(stream) },
            }
        }
    )* };
}

read! {
    readdir c"readdir";
    readdir64 c"readdir64";
}

/// See closedir(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(stream: *mut DIR) -> c_int {
    if COUNT.load(Ordering::Acquire) != 0 && shared().listings.remove(&(stream as usize)).is_some() {
        COUNT.fetch_sub(1, Ordering::Release);
    }
    match CLOSE.get() {
        // SAFETY: the caller's argument, passed on.
        Some(next) => unsafe { next(stream) },
        None => fail(Errno::ENOSYS),
    }
}

/// See rewinddir(3).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rewinddir(stream: *mut DIR) {
    if COUNT.load(Ordering::Acquire) != 0
        && let Some(listing) = shared().listings.get_mut(&(stream as usize))
    {
        listing.next = 0;
    }
    if let Some(next) = REWIND.get() {
        // SAFETY: the caller's argument, passed on.
        unsafe { next(stream) };
    }
}
