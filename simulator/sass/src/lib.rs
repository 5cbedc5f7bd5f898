//! Skeleton.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
pub mod lane;
