//! A user-space NVIDIA compute driver: raw ioctls, no libcuda.
pub mod program;
