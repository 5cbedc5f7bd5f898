//! Threads that help with launches. They are made once, for all GPUs of the process, and sleep while nobody calls.
//!
//! Whoever launches works too, and never waits for a helper that has not begun: a launch that spins for ever, and holds
//! all helpers, keeps no other launch from finishing.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Something to help with.
pub(super) trait Job: Send + Sync {
    /// Works until there is nothing left to do.
    fn help(&self);
}

/// A job that helpers were called for.
pub(super) struct Call {
    job: Arc<dyn Job>,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the mutexes hold is valid after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct State {
    calls: VecDeque<Arc<Call>>,
    threads: usize,
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    wake: Condvar,
}

static POOL: LazyLock<Pool> = LazyLock::new(Pool::default);

/// Gives a seat back, also after a panic.
struct Seat<'a>(&'a Call);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        lock(&self.0.seats).taken -= 1;
        self.0.left.notify_all();
    }
}

/// The life of a helper.
fn serve() {
    loop {
        let call = {
            let mut state = lock(&POOL.state);
            loop {
                let open = state.calls.front().cloned();
                match open {
                    Some(call) => {
                        let mut seats = lock(&call.seats);
                        if seats.free == 0 {
                            drop(seats);
                            state.calls.pop_front();
                            continue;
                        }
                        seats.free -= 1;
                        seats.taken += 1;
                        drop(seats);
                        break call;
                    }
                    None => state = POOL.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            }
        };
        let seat = Seat(&call);
        // A job that panics ends here; its owner sees that blocks are missing.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call.job.help()));
        drop(seat);
    }
}

/// Calls for up to `helpers` threads.
pub(super) fn call(job: Arc<dyn Job>, helpers: usize) -> Arc<Call> {
    let seats = Mutex::new(Seats { free: helpers, taken: 0 });
    let call = Arc::new(Call { job, seats, left: Condvar::new() });
    let mut state = lock(&POOL.state);
    while state.threads < helpers {
        let thread = thread::Builder::new().name("mockgpu-sm".to_owned());
        // Without a thread the owner does all the work itself.
        if thread.spawn(serve).is_err() {
            break;
        }
        state.threads += 1;
    }
    state.calls.push_back(Arc::clone(&call));
    drop(state);
    if helpers == 1 {
        POOL.wake.notify_one();
    } else {
        POOL.wake.notify_all();
    }
    call
}

impl Call {
    /// Lets nobody else join.
    pub fn close(&self) {
        lock(&self.seats).free = 0;
    }

    /// Waits for the helpers to leave, at most for `limit`. Whether they have.
    pub fn wait(&self, limit: Duration) -> bool {
        let mut seats = lock(&self.seats);
        if seats.taken > 0 {
            seats = self.left.wait_timeout(seats, limit).unwrap_or_else(PoisonError::into_inner).0;
        }
        seats.taken == 0
    }
}
