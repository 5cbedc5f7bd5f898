//! The GPU's clock: nanoseconds since the Unix epoch, never going back. Measured on H200: semaphore timestamps are
//! wall-clock nanoseconds.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

static LAST: AtomicU64 = AtomicU64::new(0);

/// The time now. A later call never returns less, whatever the wall clock does.
pub fn now() -> u64 {
    let wall = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    LAST.fetch_max(wall, Ordering::Relaxed).max(wall)
}
