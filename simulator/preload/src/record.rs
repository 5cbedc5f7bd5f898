//! Writing down what the program does with the nodes, simulated or a real card's, as a capture.
//!
//! Calls are seen where they pass this library. Mappings that are made past it, as Python's `ctypes` makes them, are found
//! in the kernel's list. What was submitted is noted, with its pushbuffers, launch descriptors and constant banks, when
//! its doorbell is about to ring: [`guard`] tells of that, or with a simulated GPU [`doorbell`]. Where neither can, a thread
//! looks at the put pointers, and finds what lies in memory then; a note in the capture says so.
//!
//! A capture is of one process: the first one that opens a node writes the file that was named, others write files of
//! their own with their number behind the name. A child of `fork` begins anew with what it opens itself.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use nv_abi::{Branch, Errno, Fd, Mapping, Node, ioctl};
use nv_capture::{
    Call, Event, Recording,
    format::Writer,
    naming::{Identify, Naming},
};
use nv_simulator::{engine::Grid, source::Programs};

use crate::{
    client,
    descriptor::RECORDED,
    doorbell, guard,
    maps::{self, PAGE},
    near,
    options::{self, Options, RECORD_DATA, is_card},
    process::{finish_at_exit, shared, try_shared},
    report::{self, Line},
};

/// How long the thread sleeps after it found something, and at most.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(2);
/// How long a program that rings a doorbell waits for who is looking already.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many doorbells look for mappings of the same attached memory: a list of all mappings takes a while.
const SOUGHT: u32 = 16;

/// Doorbells that rang and were not looked at.
static MISSED: AtomicU32 = AtomicU32::new(0);

/// Copies of up to so many bytes are kept with their data, unless `MOCKGPU_RECORD_DATA` says otherwise: code and
/// arguments are.
const DATA: u64 = 64 << 10;

/// The kernel module's branch; that of 580 where it does not say.
fn branch() -> Branch {
    let version = if is_card() {
        std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default()
    } else {
        Options::get().map(|options| options.driver.clone()).unwrap_or_default()
    };
    Branch::from_version(version.trim()).unwrap_or(Branch::R580)
}

/// Knows kernels by the cubins that are named, if any are.
fn naming() -> Option<Naming> {
    let mut programs = Programs::new();
    for cubin in options::cubins() {
        // The tool has looked at them before the program began.
        let _ = programs.add_cubin(cubin);
    }
    let identify: Identify =
        Box::new(move |code| programs.identify(code).map(|(name, bytes)| (name.to_owned(), bytes)));
    (!options::cubins().is_empty()).then(|| Naming::new(identify))
}

/// A descriptor that memory was attached to.
struct Attached {
    inode: u64,
    /// Mappings of the same file that there had been.
    others: Vec<u64>,
}

/// What is written down, and where.
pub(crate) struct Recorder {
    recording: Recording,
    /// Who names kernels, where there are cubins.
    naming: Option<Naming>,
    writer: Writer<File>,
    attached: BTreeMap<Fd, Attached>,
    /// Memory whose mappings doorbells have looked for, and how many.
    sought: (Vec<(Fd, u64)>, u32),
    /// Writing failed. That was said, and what follows is lost.
    failed: bool,
    /// Doorbells are to be seen by [`guard`].
    guarded: bool,
    /// How many mappings of doorbells that was done for.
    closed: usize,
    /// Of a mapping it could not be done. That was said.
    unseen: bool,
}

impl Recorder {
    fn start(path: &str) -> io::Result<Self> {
        let first = File::create_new(path);
        let file = match first {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                File::create(format!("{path}.{}", std::process::id()))?
            }
            other => other?,
        };
        let branch = branch();
        let mut recording = Recording::new(branch)?;
        let data = std::env::var(RECORD_DATA).ok().and_then(|text| options::size(&text));
        recording.note_data(data.unwrap_or(DATA));
        recording.memory().ask(Box::new(near::read));
        if !is_card() {
            recording.read_ahead(PAGE as usize);
        }
        let writer = Writer::new(file, branch)?;
        Ok(Self {
            recording,
            naming: naming(),
            writer,
            attached: BTreeMap::new(),
            sought: (Vec::new(), 0),
            failed: false,
            // The simulator has a better way, where the host kernel offers it.
            guarded: is_card() || !doorbell::is_offered(),
            closed: 0,
            unseen: false,
        })
    }

    /// A mapping was made, or could not be.
    fn mapped(&mut self, fd: Fd, mapping: Mapping, result: Result<u64, Errno>) {
        self.recording.mapped(fd, mapping, result);
        let Ok(address) = result else { return };
        if self.guarded && self.recording.is_doorbell(fd) {
            // What was submitted before is seen as the first thing, and no doorbell tells of it.
            self.recording.look();
            // A look at all mappings may have found it first.
            if guard::is_known(address) {
                return;
            }
            match guard::close(address, mapping.length, fd.0) {
                Ok(()) => self.closed += 1,
                Err(error) => self.doorbells_unseen(&format!("their page cannot be closed: {error}")),
            }
        }
    }

    /// A mapping is gone, or about to go.
    fn forget_doorbell(&mut self, address: u64) {
        if guard::forget(address) {
            self.closed -= 1;
        }
    }

    /// Says that submissions are looked for from now on, and may be seen late.
    fn doorbells_unseen(&mut self, why: &str) {
        if !std::mem::replace(&mut self.unseen, true) {
            let text = format!(
                "doorbells are not seen: {why}; put pointers are looked at every 0.1 to 2 ms instead, and what a program \
                 changes within that time is noted as it is then"
            );
            report::write(Line::Note, &text);
            self.recording.note(Event::Note(text));
        }
    }

    /// Whether every doorbell is seen, so that nobody needs to look for what was submitted.
    fn sees_doorbells(&self) -> bool {
        self.closed > 0 && !self.unseen
    }

    /// A doorbell is about to ring. What lies in memory now is what was submitted.
    fn rung(&mut self, offset: u32, value: u32) {
        let waiting = self.recording.attached();
        if self.sought.0 != waiting {
            self.sought = (waiting, 0);
        }
        if self.sought.1 < SOUGHT {
            self.sought.1 += 1;
            self.find_mappings();
        }
        if !self.recording.is_token(value) {
            // The program came to it by another way than is known.
            self.recording.look();
        }
        self.recording.doorbell(offset, value);
        self.note_missed();
        self.write();
    }

    fn note_missed(&mut self) {
        let missed = MISSED.swap(0, Ordering::AcqRel);
        if missed > 0 {
            let text = format!("{missed} doorbells rang unseen, because this library was busy");
            self.recording.note(Event::Note(text));
        }
    }

    /// Writes what was noted: whole events, so that a program that is killed leaves whole ones.
    fn write(&mut self) -> bool {
        let mut events = self.recording.take();
        if let Some(naming) = &mut self.naming {
            events = naming.name(events, &|address, bytes| self.recording.read(address, bytes));
        }
        if let Err(error) = self.writer.events(&events)
            && !std::mem::replace(&mut self.failed, true)
        {
            report::write(Line::Trouble, &format!("the capture cannot be written: {error}"));
        }
        !events.is_empty()
    }

    /// Finds mappings that were made, and that went, past this library.
    fn find_mappings(&mut self) {
        let waiting = self.recording.attached();
        if waiting.is_empty() {
            return;
        }
        let all = maps::all();
        for (address, length) in self.recording.mappings() {
            if !all.iter().any(|mapping| mapping.inode != 0 && !mapping.shows(address)) {
                self.forget_doorbell(address);
                self.recording.unmapped(address, length, Ok(()));
            }
        }
        for (fd, length) in waiting {
            let Some(Attached { inode, others }) = self.attached.get(&fd) else { continue };
            let inode = *inode;
            let bytes = length.next_multiple_of(PAGE);
            let found = all.iter().find(|mapping| {
                mapping.inode == inode
                    && mapping.end - mapping.start == bytes
                    && !others.contains(&mapping.start)
                    && !guard::is_known(mapping.start)
            });
            let Some(start) = found.map(|mapping| mapping.start) else { continue };
            let mapping = Mapping { address: None, length, offset: 0 };
            self.mapped(fd, mapping, Ok(start));
            // It is no other descriptor's.
            let same = self.attached.values_mut().filter(|attached| attached.inode == inode);
            same.for_each(|attached| attached.others.push(start));
        }
    }

    /// Notes which mappings there were before memory that has just been attached is mapped.
    fn note_attached(&mut self) {
        let waiting = self.recording.attached();
        self.attached.retain(|fd, _| waiting.iter().any(|(known, _)| known == fd));
        for (fd, _) in waiting {
            if self.attached.contains_key(&fd) {
                continue;
            }
            let Some(inode) = inode(fd) else { continue };
            let others = maps::all().into_iter().filter(|mapping| mapping.inode == inode);
            let others = others.map(|mapping| mapping.start).collect();
            self.attached.insert(fd, Attached { inode, others });
        }
    }

    /// Everything that can be seen from outside the program's calls.
    fn look(&mut self) -> bool {
        self.find_mappings();
        self.recording.look();
        self.note_missed();
        self.write()
    }

    /// The same, where nothing tells of what was submitted meanwhile.
    fn glance(&mut self) -> bool {
        guard::stay();
        if self.sees_doorbells() {
            self.find_mappings();
            self.write()
        } else {
            self.look()
        }
    }
}

/// The number of a descriptor's file.
fn inode(Fd(fd): Fd) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/self/fd/{fd}")).ok().map(|metadata| metadata.ino())
}

/// The process that is recorded. A child between `vfork` and `exec` runs in the same memory and has another id.
static OWNER: AtomicI32 = AtomicI32::new(0);

pub(crate) fn is_owner() -> bool {
    // SAFETY: getpid has no preconditions.
    OWNER.load(Ordering::Acquire) == unsafe { libc::getpid() }
}

/// Whether what is done with a descriptor is written down, and this is the process.
pub(crate) fn owns(fd: i32) -> bool {
    RECORDED.contains(fd) && is_owner()
}

/// In a child of `fork`: nothing is recorded until it opens a node itself.
pub(crate) fn forget() {
    near::forget_all();
    RECORDED.clear();
    OWNER.store(0, Ordering::Release);
}

/// Does something with the recorder, if there is one and this is the process.
fn with<T>(act: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    if !is_owner() {
        return None;
    }
    shared().recorder.as_mut().map(act)
}

/// A node was opened, or could not be.
pub(crate) fn opened(node: Node, result: Result<i32, Errno>) {
    let Some(path) = options::capture() else { return };
    let mut shared = shared();
    if shared.recorder.is_none() {
        // SAFETY: getpid has no preconditions.
        OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
        match Recorder::start(path) {
            Ok(recorder) => shared.recorder = Some(recorder),
            Err(error) => {
                static SAID: AtomicBool = AtomicBool::new(false);
                if !SAID.swap(true, Ordering::Relaxed) {
                    report::write(Line::Trouble, &format!("no capture is written to {path}: {error}"));
                }
                return;
            }
        }
        finish_at_exit();
        watch();
    }
    if !is_owner() {
        return;
    }
    let Some(recorder) = &mut shared.recorder else { return };
    recorder.recording.opened(node, result.map(Fd));
    recorder.write();
    if let Ok(fd) = result {
        RECORDED.insert(fd);
    }
}

/// A descriptor has another number as well. A capture has no word for that: the node is noted as opened again.
pub(crate) fn duplicated(from: i32, to: i32) {
    let done = with(|recorder| {
        let node = recorder.recording.node(Fd(from));
        recorder.recording.opened(node, Ok(Fd(to)));
        recorder.write()
    });
    if done.is_some() {
        RECORDED.insert(to);
    }
}

/// A descriptor is about to be closed.
pub(crate) fn closing(fd: i32) {
    RECORDED.remove(fd);
    with(|recorder| {
        recorder.find_mappings();
        recorder.recording.closed(Fd(fd), Ok(()));
        recorder.attached.remove(&Fd(fd));
        recorder.write()
    });
}

/// Maps memory of a node, whose descriptor is one that is recorded. Nobody looks at mappings meanwhile.
pub(crate) fn mapping(
    fd: i32,
    mapping: Mapping,
    readable: bool,
    map: impl FnOnce() -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    let mut shared = shared();
    let result = map();
    if let (Ok(address), true, Some(recorder)) = (result, readable, &shared.recorder)
        && recorder.recording.node(Fd(fd)) != Node::Uvm
    {
        near::mapped(address, mapping.length);
    }
    if let Some(recorder) = &mut shared.recorder {
        recorder.mapped(Fd(fd), mapping, result);
        recorder.write();
    }
    result
}

/// Does something with the recorder from within the handler of a store, whose thread may have interrupted whoever holds the
/// lock and must not wait for ever.
fn from_handler(act: impl FnOnce(&mut Recorder)) {
    let begun = Instant::now();
    loop {
        if let Some(mut shared) = try_shared() {
            if let Some(recorder) = &mut shared.recorder {
                // A bug of this library must not end the program.
                if catch_unwind(AssertUnwindSafe(|| act(recorder))).is_err() {
                    report::write(
                        Line::Trouble,
                        "a bug of the recorder: a submission may be missing in the capture",
                    );
                }
            }
            return;
        }
        if begun.elapsed() > PATIENCE {
            MISSED.fetch_add(1, Ordering::AcqRel);
            return;
        }
        thread::yield_now();
    }
}

/// A doorbell is about to ring.
pub(crate) fn rung(offset: u32, value: u32) {
    from_handler(|recorder| recorder.rung(offset, value));
}

/// A doorbell is about to ring by an instruction that is not known, and is not seen ringing any more.
pub(crate) fn rung_unseen(code: &str) {
    from_handler(|recorder| {
        recorder.doorbells_unseen(&format!("they are rung by an instruction that is not known, {code}"));
        recorder.look();
    });
}

/// Unmaps something. If it is a node's memory, what was submitted is looked at first, and nobody looks at mappings
/// meanwhile.
pub(crate) fn unmapping(
    address: u64,
    length: u64,
    unmap: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    if !is_owner() {
        return unmap();
    }
    let mut shared = shared();
    let is_it = |(start, _): &(u64, u64)| *start == address;
    let recorder =
        shared.recorder.as_mut().filter(|recorder| recorder.recording.mappings().iter().any(is_it));
    let Some(recorder) = recorder else {
        drop(shared);
        return unmap();
    };
    recorder.look();
    recorder.forget_doorbell(address);
    let result = unmap();
    if result.is_ok() {
        recorder.recording.unmapped(address, length, result);
    }
    recorder.write();
    result
}

/// A channel died, in words.
pub(crate) fn fault(text: &str) {
    with(|recorder| {
        recorder.look();
        recorder.recording.note(Event::Fault(text.to_owned()));
        recorder.write()
    });
}

/// A grid ran on a simulated GPU.
pub(crate) fn grid(Grid { launch, start, end, observed, .. }: &Grid) {
    with(|recorder| {
        // Its submission is older.
        recorder.look();
        let blocks = observed.blocks.iter().map(|ran| (ran.block, ran.worker, [ran.start, ran.end]));
        let sizes = [launch.grid, launch.block];
        recorder.recording.grid(launch.program_address, sizes, [*start, *end], blocks);
        recorder.write()
    });
}

/// Looks at the put pointers.
pub(crate) fn look() {
    with(Recorder::look);
}

/// The program ends: a last look.
pub(crate) fn finish() {
    // An exit from within a signal handler may have interrupted whoever holds the lock.
    if is_owner()
        && let Some(mut shared) = try_shared()
        && let Some(recorder) = &mut shared.recorder
    {
        recorder.look();
    }
}

/// Starts the thread that looks at the put pointers.
fn watch() {
    let life = || {
        let mut pause = SHORTEST;
        while shared().recorder.is_some() {
            let found = with(Recorder::glance).unwrap_or(false);
            pause = if found { SHORTEST } else { (pause * 2).min(LONGEST) };
            thread::sleep(pause);
        }
    };
    // Signals are the program's: its threads handle them.
    // SAFETY: the sets are filled before they are read, and this thread gets its own back.
    let started = unsafe {
        let (mut all, mut own) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut own);
        let started = thread::Builder::new().name("capture".to_owned()).spawn(life);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const own, std::ptr::null_mut());
        started
    };
    if let Err(error) = started {
        let text = format!("what is submitted is looked for at calls only: {error}");
        report::write(Line::Note, &text);
    }
}

/// The program's bytes at an address; nothing where they cannot be read.
fn bytes_at(address: u64, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    match client::read(address, &mut read) {
        Ok(()) => read,
        Err(_) => Vec::new(),
    }
}

/// Makes a call and records it.
pub(crate) fn ioctl(
    fd: i32,
    request: u32,
    address: u64,
    call: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let before = with(|recorder| {
        recorder.glance();
        let recording = &recorder.recording;
        (recording.node(Fd(fd)), recording.branch(), recording.memory())
    });
    let Some((node, branch, memory)) = before else { return call() };
    let bytes = match node {
        Node::Uvm => {
            let argument = nv_abi::uvm::call(request).and_then(|call| call.argument);
            argument.map_or(0, |argument| argument.size(branch))
        }
        Node::Ctl | Node::Gpu(_) => ioctl::size(request),
    };
    let begun = Call::before(&memory, branch, (Fd(fd), node), request, &bytes_at(address, bytes));
    let result = call();
    let event = begun.after(&memory, &bytes_at(address, bytes), result);
    with(|recorder| {
        recorder.recording.called(event);
        recorder.note_attached();
        recorder.write()
    });
    result
}
