//! One binary of end-to-end tests.

mod algorithms;
mod branches;
mod clusters;
mod corpus;
mod corruption;
mod data;
mod device;
mod faults;
mod fuzz;
mod kernels;
mod kinds;
mod launches;
mod raw;
mod refusals;
mod runtime;
mod silicon;
mod snapshots;
mod structure;
mod textures;
mod tinygrad;
