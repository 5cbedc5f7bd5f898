//! One binary of end-to-end tests.

mod cubins;
mod device;
mod launch;
mod snapshots;
