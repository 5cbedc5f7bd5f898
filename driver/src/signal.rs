//! Signals: a 64-bit value and a timestamp in pinned host memory that every device of a system can reach.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    Error,
    gpu::Gpu,
    memory::{Allocation, Request},
    system::lock,
};

/// Value at 0, timestamp in nanoseconds at 8.
const SLOT: u64 = 16;
const PAGE: u64 = 4 << 10;

/// How long a wait does nothing but look.
const SPIN: Duration = Duration::from_micros(20);
/// How long it lets others run between looks, after that.
const YIELD: Duration = Duration::from_micros(200);
/// How long it sleeps between looks in the end.
const SLEEP: Duration = Duration::from_micros(50);
/// Looks between two looks at the clock.
const LOOKS: u32 = 32;

/// Pages of slots, mapped for every GPU of the system.
#[derive(Debug)]
pub(crate) struct SignalPool {
    gpu: Arc<Gpu>,
    state: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    pages: Vec<Arc<Allocation>>,
    free: Vec<(usize, u64)>,
}

impl SignalPool {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Arc<Self> {
        let pool = Arc::new(Self { gpu: Arc::clone(gpu), state: Mutex::default() });
        gpu.system.register_pool(&pool);
        pool
    }

    /// Maps the pages for a GPU that came later.
    pub(crate) fn map(&self, gpu: &Arc<Gpu>) -> Result<(), Error> {
        lock(&self.state).pages.iter().try_for_each(|page| page.map(gpu))
    }

    pub(crate) fn take(self: &Arc<Self>, value: u64) -> Result<Signal, Error> {
        let mut state = lock(&self.state);
        if state.free.is_empty() {
            let page = Arc::new(Allocation::new(&self.gpu, Request::host("the signal page", PAGE))?);
            for gpu in self.gpu.system.gpus() {
                page.map(&gpu)?;
            }
            let index = state.pages.len();
            state.pages.push(page);
            state.free.extend((0..PAGE / SLOT).rev().map(|slot| (index, slot * SLOT)));
        }
        let (page, offset) = state.free.pop().ok_or(Error::AddressSpace { bytes: SLOT })?;
        let slot = Slot { pool: Arc::clone(self), page: Arc::clone(&state.pages[page]), index: page, offset };
        let signal = Signal(Arc::new(slot));
        drop(state);
        signal.set(value)?;
        Ok(signal)
    }
}

#[derive(Debug)]
struct Slot {
    pool: Arc<SignalPool>,
    page: Arc<Allocation>,
    index: usize,
    offset: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.pool.state).free.push((self.index, self.offset));
    }
}

/// A word that queues release and acquire, and that the CPU reads, sets and waits for. Clones are the same signal.
#[derive(Clone, Debug)]
pub struct Signal(Arc<Slot>);

impl Signal {
    /// The GPU virtual address of the value.
    pub fn address(&self) -> u64 {
        self.0.page.address() + self.0.offset
    }

    /// The value now.
    pub fn value(&self) -> Result<u64, Error> {
        self.0.page.window()?.load64(self.0.offset)
    }

    /// Sets the value from the CPU: a plain store, which also wakes acquires that wait for it.
    pub fn set(&self, value: u64) -> Result<(), Error> {
        self.0.page.window()?.store64(self.0.offset, value)
    }

    /// The time of the last release with a timestamp, in nanoseconds of the GPU's clock.
    pub fn timestamp(&self) -> Result<u64, Error> {
        self.0.page.window()?.load64(self.0.offset + 8)
    }

    /// Polls until the value is at least `value`; `check` runs now and then and may end the wait.
    pub(crate) fn poll(
        &self,
        value: u64,
        deadline: Duration,
        mut check: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let mut now = 0;
            for _ in 0..LOOKS {
                now = self.value()?;
                if now >= value {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            check()?;
            let waited = start.elapsed();
            if waited > deadline {
                return Err(Error::Timeout { after: deadline, wanted: value, value: now });
            }
            // Small work is done before a sleep would end.
            if waited > YIELD {
                std::thread::sleep(SLEEP);
            } else if waited > SPIN {
                std::thread::yield_now();
            }
        }
    }
}
