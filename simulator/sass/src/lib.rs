//! Skeleton.
pub mod lane;
