//! Seeing doorbells ring that no other way shows, a real card's above all: their pages are closed for stores, and a store
//! to one is a SIGSEGV that this module takes.
//!
//! A closed page is mapped a second time, elsewhere. The handler reads the instruction that was to store, lets what was
//! submitted be noted, makes the same store through the second mapping and goes on behind the instruction. The page is
//! never open, so that no thread's store is missed; reading it works as ever.
//!
//! What is the program's stays the program's: its own action for SIGSEGV is kept here and is taken for every other fault
//! (`exports::signal` hands it over), no thread can block the signal, and nothing runs on a stack of the program's, which
//! may be as small as the kernel allows. A page whose doorbell is rung by an instruction that [`store`](crate::store) does
//! not know is opened for good, and that is said.

use std::{
    io,
    os::fd::RawFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};

use crate::{
    exports::{
        map::{map_again, protect, unmap},
        signal::{mask, set_action},
    },
    maps::PAGE,
    record,
    store::{self, Registers, Store},
};

/// Closed ranges that there can be at once.
const PLACES: usize = 64;
/// Bytes of the stack on which submissions are looked at.
const STACK: usize = 1 << 20;

/// A range that is closed for stores; none while it has no bytes.
struct Place {
    start: AtomicU64,
    bytes: AtomicU64,
    /// Where the second mapping begins.
    second: AtomicU64,
    /// It was opened for good.
    open: AtomicBool,
}

/// Changed only by who holds [`crate::process::shared`].
static CLOSED: [Place; PLACES] = [const {
    Place {
        start: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        second: AtomicU64::new(0),
        open: AtomicBool::new(false),
    }
}; PLACES];
/// The top of the stack on which submissions are looked at; 0 until there is one.
static TOP: AtomicUsize = AtomicUsize::new(0);
/// Held while that stack is in use.
static STACK_IN_USE: Mutex<()> = Mutex::new(());
/// What the program wants done on SIGSEGV, from the moment on when this module takes the signal.
static WANTED: Mutex<Option<Action>> = Mutex::new(None);
/// This module takes the signal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The action of a signal.
#[derive(Clone, Copy)]
pub(crate) struct Action(pub(crate) sigaction);

// SAFETY: numbers and addresses of functions, which every thread may call.
unsafe impl Send for Action {}

impl Place {
    fn find(address: u64) -> Option<&'static Self> {
        CLOSED.iter().find(|place| {
            let bytes = place.bytes.load(Ordering::Acquire);
            address.wrapping_sub(place.start.load(Ordering::Acquire)) < bytes
        })
    }

    fn protect(&self, protection: c_int) -> io::Result<()> {
        let (start, bytes) = (self.start.load(Ordering::Acquire), self.bytes.load(Ordering::Acquire));
        // SAFETY: a mapping of a node's memory, which no reference points into.
        unsafe { protect(start, bytes, protection) }
    }

    /// Lets stores through from now on, also those that came too late for it.
    fn open(&self) {
        if self.protect(libc::PROT_READ | libc::PROT_WRITE).is_ok() {
            self.open.store(true, Ordering::Release);
        }
    }
}

/// Runs something with all signals of this thread blocked: one whose handler asks for what is locked meanwhile would wait
/// for ever.
fn undisturbed<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are filled before they are read, and the thread gets its own back.
    unsafe {
        let (mut all, mut own): (sigset_t, sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        mask(libc::SIG_SETMASK, &raw const all, &raw mut own);
        let result = act();
        mask(libc::SIG_SETMASK, &raw const own, std::ptr::null_mut());
        result
    }
}

fn wanted() -> MutexGuard<'static, Option<Action>> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the program's action for SIGSEGV is kept here and not with the kernel.
pub(crate) fn takes(signal: c_int) -> bool {
    signal == libc::SIGSEGV && TAKEN.load(Ordering::Acquire)
}

/// The program's action for SIGSEGV, and another one in its place.
pub(crate) fn exchange(new: Option<Action>) -> Option<Action> {
    undisturbed(|| {
        let mut wanted = wanted();
        let old = *wanted;
        if new.is_some() {
            *wanted = new;
        }
        old
    })
}

/// Takes SIGSEGV, again where the program gave it to another handler past this library.
fn take_signal() -> io::Result<()> {
    if TOP.load(Ordering::Acquire) == 0 {
        // SAFETY: a new mapping, kept for ever; its first page is closed, so that a stack that is too small is a fault.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let stack = libc::mmap(std::ptr::null_mut(), STACK, both, flags, -1, 0);
            if stack == libc::MAP_FAILED || libc::mprotect(stack, PAGE as usize, libc::PROT_NONE) != 0 {
                return Err(io::Error::last_os_error());
            }
            TOP.store(stack as usize + STACK, Ordering::Release);
        }
    }
    // SAFETY: an action of zeros is filled in; the handler is a function of this library, which stays loaded.
    unsafe {
        let mut action: sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigfillset(&raw mut action.sa_mask);
        let mut before: sigaction = std::mem::zeroed();
        set_action(libc::SIGSEGV, std::ptr::null(), &raw mut before)?;
        if before.sa_sigaction == action.sa_sigaction {
            return Ok(());
        }
        exchange(Some(Action(before)));
        set_action(libc::SIGSEGV, &raw const action, std::ptr::null_mut())?;
        TAKEN.store(true, Ordering::Release);
        // This thread may have it blocked since before this library had a say.
        let mut own: sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut own);
        libc::sigaddset(&raw mut own, libc::SIGSEGV);
        mask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut());
    }
    Ok(())
}

/// Sees to it that the signal still comes here, if any range is closed.
pub(crate) fn stay() {
    if TAKEN.load(Ordering::Acquire) {
        // Only what the kernel does not refuse the first time is asked for.
        let _ = take_signal();
    }
}

/// Whether a mapping that begins there is closed, or is the second one of such a mapping.
pub(crate) fn is_known(start: u64) -> bool {
    CLOSED.iter().any(|place| {
        let known = [&place.start, &place.second].map(|known| known.load(Ordering::Acquire));
        place.bytes.load(Ordering::Acquire) != 0 && known.contains(&start)
    })
}

/// Closes a mapping of a doorbell, which is one of `fd` from its beginning on. Only for who holds the shared state.
///
/// # Errors
/// What the kernel refused. The mapping is open then.
pub(crate) fn close(start: u64, length: u64, fd: RawFd) -> io::Result<()> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(io::Error::other("instructions of this processor are not read"));
    }
    take_signal()?;
    let bytes = length.next_multiple_of(PAGE);
    let is_free = |place: &&Place| place.bytes.load(Ordering::Acquire) == 0;
    let place = CLOSED.iter().find(is_free).ok_or_else(|| io::Error::other("there are too many of them"))?;
    place.second.store(map_again(fd, length)?, Ordering::Release);
    place.start.store(start, Ordering::Release);
    place.open.store(false, Ordering::Release);
    place.bytes.store(bytes, Ordering::Release);
    place.protect(libc::PROT_READ).inspect_err(|_| release(place))
}

/// Gives a place back.
fn release(place: &Place) {
    let bytes = place.bytes.swap(0, Ordering::AcqRel);
    // SAFETY: the second mapping is this module's, and no handler finds it any more. One that is in it stores to a page
    // that its program is unmapping.
    unsafe { unmap(place.second.load(Ordering::Acquire), bytes) };
}

/// A mapping is about to go, or is gone: if it was closed it is open again. Whether it was. Only for who holds the shared
/// state.
pub(crate) fn forget(start: u64) -> bool {
    let is_it = |place: &&Place| {
        place.start.load(Ordering::Acquire) == start && place.bytes.load(Ordering::Acquire) != 0
    };
    let Some(place) = CLOSED.iter().find(is_it) else { return false };
    place.open();
    release(place);
    true
}

/// What the handler has done to a closed page, for [`record`] to note.
struct Rung {
    /// Byte of the mapping.
    offset: u32,
    /// What is stored; none where the instruction is not known.
    value: Option<u32>,
    /// Its first bytes, where it is not known.
    code: [u8; 8],
}

extern "C" fn look(rung: *mut c_void) {
    // SAFETY: `on_fault` passes its own value, which lives longer than this call.
    let rung = unsafe { &*rung.cast::<Rung>() };
    match rung.value {
        Some(value) => record::rung(rung.offset, value),
        None => {
            let code: Vec<String> = rung.code.iter().map(|byte| format!("{byte:02x}")).collect();
            record::rung_unseen(&code.join(" "));
        }
    }
}

/// Calls a function on the stack of this module.
///
/// # Safety
/// The caller holds [`STACK_IN_USE`], and [`take_signal`] has made the stack.
#[cfg(target_arch = "x86_64")]
unsafe fn on_own_stack(function: extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: r12 survives the call by C's rules, so that the thread gets its stack back; the top is a multiple of 16.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {function}",
            "mov rsp, r12",
            top = in(reg) TOP.load(Ordering::Acquire),
            function = in(reg) function,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn on_own_stack(function: extern "C" fn(*mut c_void), argument: *mut c_void) {
    function(argument);
}

/// General registers of a context in the order of their numbers in instructions.
#[cfg(target_arch = "x86_64")]
const ORDER: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// The handler.
///
/// # Safety
/// Only the kernel calls it.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes what is asked for with SA_SIGINFO; a field of every fault.
    let (address, is_fault) = unsafe { ((*info).si_addr() as u64, (*info).si_code > 0) };
    if is_fault && let Some(place) = Place::find(address) {
        // SAFETY: this thread's own location.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: the context of a fault at a store to a closed page.
        unsafe { stored(place, address, context.cast()) };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        return;
    }
    // SAFETY: the kernel's own arguments, passed on.
    unsafe { pass_on(signal, info, context) };
}

/// A store to a closed page.
///
/// # Safety
/// The context is that of the thread, whose last instruction faulted at the address.
#[cfg(target_arch = "x86_64")]
unsafe fn stored(place: &Place, address: u64, context: *mut ucontext_t) {
    if place.open.load(Ordering::Acquire) {
        // It was opened in the meantime: once more.
        return;
    }
    // SAFETY: by contract.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let values: Registers = ORDER.map(|register| registers[register as usize].cast_unsigned());
    let at = registers[libc::REG_RIP as usize].cast_unsigned();
    // SAFETY: the processor has read the instruction, of which no byte more is asked for than it has.
    let found = store::decode(at, &values, |byte| Some(unsafe { ((at + byte) as *const u8).read() }));
    let found = found.filter(|store| store.address == address);
    let offset = address - place.start.load(Ordering::Acquire);
    let mut rung = Rung { offset: offset as u32, value: found.map(|store| store.value as u32), code: [0; 8] };
    if found.is_none() {
        // SAFETY: as above; an instruction shorter than that may end at the end of what is mapped.
        let rest = (PAGE - at % PAGE).min(8);
        for (byte, to) in (at..at + rest).zip(&mut rung.code) {
            // SAFETY: on the page of the instruction's first byte.
            *to = unsafe { (byte as *const u8).read() };
        }
    }
    if record::is_owner() {
        let _in_use = STACK_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held, and there are no closed pages without the stack.
        unsafe { on_own_stack(look, (&raw mut rung).cast()) };
    }
    let Some(Store { value, wide, swapped, length, .. }) = found else { return place.open() };
    let second = place.second.load(Ordering::Acquire) + offset;
    // SAFETY: the second mapping shows the same bytes, and a store that faulted at an aligned address is aligned; what is
    // not aligned is split by no program that rings a doorbell.
    let before = unsafe {
        match (wide, swapped) {
            (false, None) => {
                (second as *mut u32).write_volatile(value as u32);
                0
            }
            (true, None) => {
                (second as *mut u64).write_volatile(value);
                0
            }
            (false, Some(_)) => {
                let place = std::sync::atomic::AtomicU32::from_ptr(second as *mut u32);
                place.swap(value as u32, Ordering::SeqCst).into()
            }
            (true, Some(_)) => AtomicU64::from_ptr(second as *mut u64).swap(value, Ordering::SeqCst),
        }
    };
    if let Some(register) = swapped {
        registers[ORDER[register] as usize] = before.cast_signed();
    }
    registers[libc::REG_RIP as usize] = (at + length).cast_signed();
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn stored(place: &Place, _: u64, _: *mut ucontext_t) {
    place.open();
}

/// Does what the program wants done on the signal.
///
/// # Safety
/// The arguments are the kernel's.
unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let action = wanted().as_ref().map(|action| action.0);
    let handler = action.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    // SAFETY: by contract.
    let is_fault = unsafe { (*info).si_code } > 0;
    if handler == libc::SIG_IGN && !is_fault {
        return;
    }
    let (Some(action), false) = (action, handler == libc::SIG_DFL || handler == libc::SIG_IGN) else {
        // The program dies of it: at once, or when the instruction faults again.
        // SAFETY: plain calls; the signal is blocked until the handler returns.
        unsafe {
            let default: sigaction = std::mem::zeroed();
            let _ = set_action(signal, &raw const default, std::ptr::null_mut());
            if !is_fault {
                libc::raise(signal);
            }
        }
        return;
    };
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: an action of zeros is the default one.
        *wanted() = Some(Action(unsafe { std::mem::zeroed() }));
    }
    // SAFETY: the handler is the program's own for this signal, of the type that its flags say, and runs with the mask that
    // it would have without this library.
    unsafe {
        let mut blocked = (*context.cast::<ucontext_t>()).uc_sigmask;
        for other in 1..=64 {
            let is_own = other == signal && action.sa_flags & libc::SA_NODEFER == 0;
            if is_own || libc::sigismember(&raw const action.sa_mask, other) == 1 {
                libc::sigaddset(&raw mut blocked, other);
            }
        }
        mask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
        if action.sa_flags & libc::SA_SIGINFO == 0 {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        } else {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(handler);
            handler(signal, info, context);
        }
    }
}
