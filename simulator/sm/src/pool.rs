//! Threads that help with launches: one rayon pool for all GPUs of the process, made at the first call.
//!
//! Whoever launches works too, and never waits for a helper that has not begun: a launch that spins for ever, and holds
//! all helpers, keeps no other launch from finishing.

use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Something to help with.
pub(super) trait Job: Send + Sync {
    /// Works until there is nothing left to do.
    fn help(&self);
}

/// A job that helpers were called for.
pub(super) struct Call {
    seats: Mutex<Seats>,
    left: Condvar,
}

#[derive(Debug)]
struct Seats {
    /// Helpers that may still join.
    free: usize,
    /// Helpers at work.
    taken: usize,
}

/// `None` where the system gives no threads: the owner of a job then does all of it.
static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    // A job that panics ends there; its owner sees that blocks are missing.
    let builder = ThreadPoolBuilder::new().panic_handler(|_| ());
    builder.thread_name(|index| format!("mockgpu-sm-{index}")).build().ok()
});

/// Gives a seat back, also after a panic.
struct Seat<'a>(&'a Call);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.seats().taken -= 1;
        self.0.left.notify_all();
    }
}

/// Calls for up to `helpers` threads.
pub(super) fn call(job: Arc<dyn Job>, helpers: usize) -> Arc<Call> {
    let call = Arc::new(Call { seats: Mutex::new(Seats { free: helpers, taken: 0 }), left: Condvar::new() });
    if let Some(pool) = &*POOL {
        for _ in 0..helpers.min(pool.current_num_threads()) {
            let (call, job) = (Arc::clone(&call), Arc::clone(&job));
            pool.spawn(move || {
                if let Some(_seat) = call.take_seat() {
                    job.help();
                }
            });
        }
    }
    call
}

impl Call {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        // What the mutex holds is valid after every statement.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_seat(&self) -> Option<Seat<'_>> {
        let mut seats = self.seats();
        seats.free = seats.free.checked_sub(1)?;
        seats.taken += 1;
        Some(Seat(self))
    }

    /// Lets nobody else join.
    pub fn close(&self) {
        self.seats().free = 0;
    }

    /// Waits for the helpers to leave, at most for `limit`. Whether they have.
    pub fn wait(&self, limit: Duration) -> bool {
        let mut seats = self.seats();
        if seats.taken > 0 {
            seats = self.left.wait_timeout(seats, limit).unwrap_or_else(PoisonError::into_inner).0;
        }
        seats.taken == 0
    }
}
