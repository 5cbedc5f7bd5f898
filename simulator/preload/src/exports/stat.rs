//! `stat`, `access` and their kin.

use std::ffi::{c_char, c_int, c_uint};

use libc::{mode_t, stat as Stat, statx as StatX};
use nv_abi::{Errno, Node};

use super::{fail, look};
use crate::{
    next::Next,
    options::Options,
    path::{Known, numbers},
    process::{node, owns},
};

/// What is said of a path or descriptor: its mode, its size and its device numbers.
struct Facts {
    mode: mode_t,
    size: i64,
    device: (u32, u32),
}

fn node_facts(node: Node) -> Facts {
    Facts { mode: libc::S_IFCHR | 0o666, size: 0, device: numbers(node) }
}

/// The facts of a path; `None` where the real function is to answer.
fn facts(known: &Known, options: &Options) -> Option<Result<Facts, Errno>> {
    Some(match known {
        Known::Node(node) => Ok(node_facts(*node)),
        Known::Text(text) => {
            let size = i64::try_from(text.content(options).len()).unwrap_or(0);
            Ok(Facts { mode: libc::S_IFREG | 0o444, size, device: (0, 0) })
        }
        Known::Directory(_) => Ok(Facts { mode: libc::S_IFDIR | 0o555, size: 0, device: (0, 0) }),
        Known::Absent => Err(Errno::ENOENT),
        Known::Changed(_) => return None,
    })
}

/// An inode number that differs between nodes, for programs that compare files by it.
fn inode(facts: &Facts) -> u64 {
    let (major, minor) = facts.device;
    0x6d6f_0000_0000 | u64::from(major) << 16 | u64::from(minor)
}

impl Facts {
    /// # Safety
    /// `to` must be valid for writing.
    unsafe fn store(&self, to: *mut Stat) -> c_int {
        // SAFETY: all zeros are a valid value of this struct of integers.
        let mut stat: Stat = unsafe { std::mem::zeroed() };
        stat.st_mode = self.mode;
        stat.st_nlink = 1;
        stat.st_size = self.size;
        stat.st_blksize = 4096;
        stat.st_ino = inode(self);
        stat.st_rdev = libc::makedev(self.device.0, self.device.1);
        // SAFETY: by contract.
        unsafe { to.write(stat) };
        0
    }

    /// # Safety
    /// `to` must be valid for writing.
    unsafe fn store_extended(&self, to: *mut StatX) -> c_int {
        // SAFETY: all zeros are a valid value of this struct of integers.
        let mut stat: StatX = unsafe { std::mem::zeroed() };
        stat.stx_mask = libc::STATX_BASIC_STATS;
        stat.stx_mode = self.mode as u16;
        stat.stx_nlink = 1;
        stat.stx_size = self.size as u64;
        stat.stx_blksize = 4096;
        stat.stx_ino = inode(self);
        (stat.stx_rdev_major, stat.stx_rdev_minor) = self.device;
        // SAFETY: by contract.
        unsafe { to.write(stat) };
        0
    }
}

/// Answers for a path, or not.
///
/// # Safety
/// `path` must be null or a C string, `to` valid for writing.
unsafe fn path_stat(directory: c_int, path: *const c_char, to: *mut Stat) -> Option<c_int> {
    // SAFETY: by contract.
    let (known, options) = unsafe { look(directory, path) }?;
    Some(match facts(&known, options)? {
        // SAFETY: by contract.
        Ok(facts) => unsafe { facts.store(to) },
        Err(errno) => fail(errno),
    })
}

/// Answers for a descriptor of a node, or not.
///
/// # Safety
/// `to` must be valid for writing.
unsafe fn descriptor_stat(fd: c_int, to: *mut Stat) -> Option<c_int> {
    let node = if owns(fd) { node(fd) } else { None }?;
    // SAFETY: by contract.
    Some(unsafe { node_facts(node).store(to) })
}

macro_rules! by_path {
    ($($name:ident($($version:ident)?) $literal:literal;)*) => { $(
        /// See stat(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($version: c_int,)? path: *const c_char, to: *mut Stat) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<unsafe extern "C" fn($(by_path!(@int $version),)? *const c_char, *mut Stat) -> c_int> =
                // SAFETY: the signature is that of the function of this name.
                unsafe { Next::new($literal) };
            // SAFETY: the caller's arguments.
            if let Some(result) = unsafe { path_stat(libc::AT_FDCWD, path, to) } {
                return result;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { next($($version,)? path, to) },
                None => fail(Errno::ENOSYS),
            }
        }
    )* };
    (@int $version:ident) => { c_int };
}

macro_rules! by_descriptor {
    ($($name:ident($($version:ident)?) $literal:literal;)*) => { $(
        /// See fstat(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($version: c_int,)? fd: c_int, to: *mut Stat) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<unsafe extern "C" fn($(by_path!(@int $version),)? c_int, *mut Stat) -> c_int> =
                // SAFETY: the signature is that of the function of this name.
                unsafe { Next::new($literal) };
            // SAFETY: the caller's argument.
            if let Some(result) = unsafe { descriptor_stat(fd, to) } {
                return result;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { next($($version,)? fd, to) },
                None => fail(Errno::ENOSYS),
            }
        }
    )* };
}

macro_rules! by_directory {
    ($($name:ident($($version:ident)?) $literal:literal;)*) => { $(
        /// See fstatat(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($version: c_int,)?
            directory: c_int,
            path: *const c_char,
            to: *mut Stat,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<
                unsafe extern "C" fn($(by_path!(@int $version),)? c_int, *const c_char, *mut Stat, c_int) -> c_int,
            // SAFETY: the signature is that of the function of this name.
            > = unsafe { Next::new($literal) };
            // SAFETY: the caller's arguments.
            let known = unsafe {
                // An empty path means the descriptor itself.
                match flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || *path == 0) {
                    true => descriptor_stat(directory, to),
                    false => path_stat(directory, path, to),
                }
            };
            if let Some(result) = known {
                return result;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { next($($version,)? directory, path, to, flags) },
                None => fail(Errno::ENOSYS),
            }
        }
    )* };
}

by_path! {
    stat() c"stat";
    stat64() c"stat64";
    lstat() c"lstat";
    lstat64() c"lstat64";
    __xstat(version) c"__xstat";
    __xstat64(version) c"__xstat64";
    __lxstat(version) c"__lxstat";
    __lxstat64(version) c"__lxstat64";
}

by_descriptor! {
    fstat() c"fstat";
    fstat64() c"fstat64";
    __fxstat(version) c"__fxstat";
    __fxstat64(version) c"__fxstat64";
}

by_directory! {
    fstatat() c"fstatat";
    fstatat64() c"fstatat64";
    __fxstatat(version) c"__fxstatat";
    __fxstatat64(version) c"__fxstatat64";
}

/// See statx(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut StatX,
) -> c_int {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut StatX) -> c_int> =
        unsafe { Next::new(c"statx") };
    // SAFETY: the caller's path.
    let empty = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path } == 0);
    let answer = if empty {
        if owns(directory) { node(directory).map(|node| Ok(node_facts(node))) } else { None }
    } else {
        // SAFETY: the caller's path.
        unsafe { look(directory, path) }.and_then(|(known, options)| facts(&known, options))
    };
    match (answer, NEXT.get()) {
        // SAFETY: the caller's place for the answer.
        (Some(Ok(facts)), _) => unsafe { facts.store_extended(to) },
        (Some(Err(errno)), _) => fail(errno),
        // SAFETY: the caller's arguments, passed on.
        (None, Some(next)) => unsafe { next(directory, path, flags, mask, to) },
        (None, None) => fail(Errno::ENOSYS),
    }
}

/// Whether a path may be used in a way; `None` where the real function is to answer.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn path_access(directory: c_int, path: *const c_char, mode: c_int) -> Option<c_int> {
    // SAFETY: by contract.
    let (known, _) = unsafe { look(directory, path) }?;
    let denied = match known {
        Known::Node(_) => mode & libc::X_OK != 0,
        Known::Text(_) => mode & (libc::W_OK | libc::X_OK) != 0,
        Known::Directory(_) => mode & libc::W_OK != 0,
        Known::Absent => return Some(fail(Errno::ENOENT)),
        Known::Changed(_) => return None,
    };
    Some(if denied { fail(Errno::EACCES) } else { 0 })
}

macro_rules! access {
    ($($name:ident $literal:literal;)*) => { $(
        /// See access(2).
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: c_int) -> c_int {
            // SAFETY: the signature is that of the function of this name.
            static NEXT: Next<unsafe extern "C" fn(*const c_char, c_int) -> c_int> = unsafe { Next::new($literal) };
            // SAFETY: the caller's arguments.
            if let Some(result) = unsafe { path_access(libc::AT_FDCWD, path, mode) } {
                return result;
            }
            match NEXT.get() {
                // SAFETY: the caller's arguments, passed on.
                Some(next) => unsafe { next(path, mode) },
                None => fail(Errno::ENOSYS),
            }
        }
    )* };
}

access! {
    access c"access";
    eaccess c"eaccess";
    euidaccess c"euidaccess";
}

/// See faccessat(2).
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faccessat(
    directory: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the signature is that of the function of this name.
    static NEXT: Next<unsafe extern "C" fn(c_int, *const c_char, c_int, c_int) -> c_int> =
        unsafe { Next::new(c"faccessat") };
    // SAFETY: the caller's arguments.
    if let Some(result) = unsafe { path_access(directory, path, mode) } {
        return result;
    }
    match NEXT.get() {
        // SAFETY: the caller's arguments, passed on.
        Some(next) => unsafe { next(directory, path, mode, flags) },
        None => fail(Errno::ENOSYS),
    }
}
