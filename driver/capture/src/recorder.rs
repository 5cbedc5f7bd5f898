//! Records a client while it works: a wrapper around any implementation of the boundary, the simulator's or the device
//! nodes'.

use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nv_abi::{Branch, Errno, Fd, Ioctl, Mapping, Mmio, Node};

use crate::{
    client::{ClientMemory, Near},
    event::{Event, Symbol},
    recording::{Call, Recording},
};

/// Wraps a backend and writes down what goes through it.
///
/// Submissions are read when the doorbell rings; see [`Recording`]. The client must be in the same process.
pub struct Recorder<B> {
    inner: Arc<B>,
    branch: Branch,
    memory: Arc<ClientMemory>,
    state: Mutex<Recording>,
}

impl<B> fmt::Debug for Recorder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("events", &self.state().events().len()).finish_non_exhaustive()
    }
}

impl<B> Recorder<B> {
    /// Records what goes to `inner`, whose kernel module is of this branch.
    ///
    /// # Errors
    /// The process's own memory cannot be opened (no `/proc`).
    pub fn new(inner: Arc<B>, branch: Branch) -> io::Result<Arc<Self>> {
        let state = Recording::new(branch)?;
        Ok(Arc::new(Self { inner, branch, memory: state.memory(), state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, Recording> {
        // A panic between two pushes leaves a shorter list, which is still one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on also notes what copies read, where the client can see it: a replay then has the data it needs.
    pub fn note_data(&self) {
        self.state().note_data(u64::MAX);
    }

    /// From now on reads the client's memory through `near` where that can: a simulator knows what it mapped, and a call of
    /// the system for every few bytes is most of what recording costs.
    pub fn ask(&self, near: Near) {
        self.memory.ask(near);
    }

    /// Everything so far.
    pub fn events(&self) -> Vec<Event> {
        self.state().events().to_vec()
    }

    /// Takes everything so far out; what comes later begins a new list.
    pub fn take(&self) -> Vec<Event> {
        self.state().take()
    }

    /// Names a range of GPU addresses.
    pub fn name(&self, address: u64, bytes: u64, name: &str) {
        self.state().note(Event::Symbol(Symbol { address, bytes, name: name.to_owned() }));
    }

    /// Notes a fault in words.
    pub fn fault(&self, text: &str) {
        self.state().note(Event::Fault(text.to_owned()));
    }

    /// Notes what no call tells of, in place: see [`Recording::grid`].
    pub fn with(&self, note: impl FnOnce(&mut Recording)) {
        note(&mut self.state());
    }

    /// What was recorded, as a whole.
    pub fn capture(&self) -> crate::Capture {
        crate::Capture { branch: self.branch, events: self.events() }
    }
}

impl<B: Ioctl> Ioctl for Recorder<B> {
    fn open(&self, node: Node) -> Result<Fd, Errno> {
        let result = self.inner.open(node);
        self.state().opened(node, result);
        result
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        let result = self.inner.close(fd);
        self.state().closed(fd, result);
        result
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        let node = self.state().node(fd);
        let call = Call::before(&self.memory, self.branch, (fd, node), request, argument);
        let result = self.inner.ioctl(fd, request, argument);
        let event = call.after(&self.memory, argument, result);
        self.state().called(event);
        result
    }

    fn mmap(&self, fd: Fd, mapping: Mapping) -> Result<u64, Errno> {
        let result = self.inner.mmap(fd, mapping);
        self.state().mapped(fd, mapping, result);
        result
    }

    fn munmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        let result = self.inner.munmap(address, length);
        self.state().unmapped(address, length, result);
        result
    }
}

impl<B: Mmio> Mmio for Recorder<B> {
    fn write32(&self, page: u64, offset: u32, value: u32) -> Result<(), Errno> {
        self.state().doorbell(offset, value);
        self.inner.write32(page, offset, value)
    }

    fn read32(&self, page: u64, offset: u32) -> Result<u32, Errno> {
        self.inner.read32(page, offset)
    }
}
