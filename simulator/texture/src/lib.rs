//! The texture units of a simulated GPU: what a texture header and a sampler make of coordinates.
//!
//! Between the streaming multiprocessors (`nv-sm`), whose texture and surface instructions ask, and [`nv_abi::texture`],
//! which reads descriptors. Everything here is computed; memory is reached through [`Texels`] only.
//!
//! [`Texture`] is a header and a sampler that passed their checks. `format` turns memory into components, `layout`
//! says where a texel lies, `coordinate` finds texels and weights, `sample` puts them together, `surface` is for loads
//! and stores by position. What a texture can ask for and is not simulated is an [`Unsupported`], by name.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod coordinate;
mod format;
mod layout;
mod sample;
mod surface;
mod texture;

pub use sample::{Compare, Filtered, Lod, Position, ReadError};
pub use surface::{OutOfRange, Place, SurfaceShape};
pub use texture::{Shape, Texture, TextureError, Unsupported};

/// Memory as the texture unit reads it.
pub trait Texels {
    /// Why a read fails.
    type Error;

    /// Reads 1, 2, 4, 8 or 16 bytes at an address that is a multiple of that; the first byte in the lowest bits.
    ///
    /// # Errors
    /// The address is not readable.
    fn read(&mut self, address: u64, bytes: u32) -> Result<u128, Self::Error>;
}
