//! One binary of end-to-end tests.

mod cubins;
mod data;
mod device;
mod faults;
mod kernels;
mod launches;
mod raw;
mod refusals;
mod silicon;
mod snapshots;
