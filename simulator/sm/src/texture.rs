//! Textures of a launch: handles, pools, and descriptors that were read.

use std::collections::HashMap;
use std::sync::Arc;

use nv_abi::texture::{DESCRIPTOR_BYTES, HeaderVersion};
use nv_memory::AddressMap;
use nv_texture::{Texture, TextureError};

use super::fault::FaultKind;
use super::launch::Prepared;
use super::memory::Windows;

/// A pool of texture headers or samplers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorPool {
    /// Virtual address.
    pub address: u64,
    /// The last index there is.
    pub last: u32,
}

/// What a channel says about textures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Textures {
    /// Headers, if the channel named a pool.
    pub headers: Option<DescriptorPool>,
    /// Samplers, likewise.
    pub samplers: Option<DescriptorPool>,
    /// A texture's sampler has the index of its header; otherwise the handle names both.
    pub sampler_by_header: bool,
    /// How headers are read.
    pub version: HeaderVersion,
}

impl Default for Textures {
    fn default() -> Self {
        Self { headers: None, samplers: None, sampler_by_header: false, version: HeaderVersion::V1 }
    }
}

/// Bits of a handle that are the header's index; the others are the sampler's.
const HEADER_BITS: u32 = 20;

/// Global memory for the texture unit.
pub(crate) struct Memory<'a> {
    pub windows: &'a mut Windows,
    pub map: &'a AddressMap,
}

/// The textures that a worker's launch has used, by handle.
#[derive(Debug, Default)]
pub(crate) struct Cache(HashMap<u32, Result<Arc<Texture>, FaultKind>>);

impl Cache {
    /// Forgets all. To be called before a launch.
    pub fn start(&mut self) {
        self.0.clear();
    }

    /// The texture of a handle.
    pub fn get(
        &mut self,
        launch: &Prepared,
        windows: &mut Windows,
        handle: u32,
    ) -> Result<Arc<Texture>, FaultKind> {
        if let Some(known) = self.0.get(&handle) {
            return known.clone();
        }
        let found = read(launch, windows, handle).map(Arc::new);
        self.0.insert(handle, found.clone());
        found
    }
}

fn read(launch: &Prepared, windows: &mut Windows, handle: u32) -> Result<Texture, FaultKind> {
    let textures = &launch.launch.textures;
    let index = handle & ((1 << HEADER_BITS) - 1);
    let sampler = if textures.sampler_by_header { index } else { handle >> HEADER_BITS };
    let mut memory = Memory { windows, map: &launch.map };
    let mut header_bytes = [0; DESCRIPTOR_BYTES];
    match textures.headers {
        Some(pool) if index <= pool.last => descriptor(&mut memory, pool, index, &mut header_bytes)?,
        Some(pool) => {
            return Err(FaultKind::Texture(format!(
                "header {index:#x} is outside the pool, which ends with {:#x}",
                pool.last
            )));
        }
        None => return Err(FaultKind::Texture("the channel has no pool of texture headers".to_owned())),
    }
    let mut sampler_bytes = [0; DESCRIPTOR_BYTES];
    // Surfaces and fetches need no sampler: that there is none is said when one is used.
    let have = match textures.samplers {
        Some(pool) if sampler <= pool.last => {
            descriptor(&mut memory, pool, sampler, &mut sampler_bytes).is_ok()
        }
        _ => false,
    };
    Texture::new(textures.version, &header_bytes, have.then_some(&sampler_bytes))
        .map_err(|error| fault(&error))
}

fn descriptor(
    memory: &mut Memory<'_>,
    pool: DescriptorPool,
    index: u32,
    to: &mut [u8; DESCRIPTOR_BYTES],
) -> Result<(), FaultKind> {
    use nv_texture::Texels as _;
    let address = pool.address.wrapping_add(u64::from(index) * DESCRIPTOR_BYTES as u64);
    for (half, to) in (0..).zip(to.chunks_exact_mut(16)) {
        to.copy_from_slice(&memory.read(address.wrapping_add(16 * half), 16)?.to_le_bytes());
    }
    Ok(())
}

/// The fault of a texture that cannot be used.
pub(crate) fn fault(error: &TextureError) -> FaultKind {
    match error {
        TextureError::Descriptor(error) => FaultKind::Texture(error.to_string()),
        TextureError::Unsupported(what) => FaultKind::Unsupported(format!("texture: {what}")),
    }
}
