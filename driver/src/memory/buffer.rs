//! Typed buffers.

use std::{marker::PhantomData, sync::Arc};

use bytemuck::Pod;

use super::{Allocation, Location, bounds};
use crate::{Device, Error};

mod sealed {
    pub trait Sealed {}
}

/// A plain number that the GPU sees as the CPU does: little-endian integers and floats.
pub trait Element: sealed::Sealed + Pod + Default + PartialEq + std::fmt::Debug {
    /// Bytes of one element.
    const BYTES: usize = size_of::<Self>();

    /// The element's bytes, as a kernel argument takes them.
    fn bytes(self) -> Vec<u8> {
        bytemuck::bytes_of(&self).to_vec()
    }
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {}
    )*};
}

elements!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

// Elements go to the GPU as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "NVIDIA's driver has no big-endian host");

/// What errors call a buffer.
pub(crate) const BUFFER: &str = "the buffer";

/// The memory with the device that may still be using it.
#[derive(Debug)]
struct Held {
    device: Device,
    allocation: Allocation,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Memory must not go while the GPU uses it; a dead channel uses nothing.
        let _ = self.device.synchronize();
    }
}

/// GPU memory that holds `len` elements.
#[derive(Clone, Debug)]
pub struct Buffer<T: Element> {
    held: Arc<Held>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(device: &Device, allocation: Allocation, len: usize) -> Self {
        Self { held: Arc::new(Held { device: device.clone(), allocation }), len, element: PhantomData }
    }

    /// What keeps the memory.
    pub(crate) fn memory(&self) -> Arc<dyn std::fmt::Debug + Send + Sync> {
        Arc::<Held>::clone(&self.held)
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> u64 {
        (self.len * T::BYTES) as u64
    }

    /// The GPU virtual address, also the CPU's where it is visible.
    pub fn address(&self) -> u64 {
        self.held.allocation.address()
    }

    /// Where its pages are.
    pub fn location(&self) -> Location {
        self.held.allocation.location()
    }

    /// Whether the CPU has it mapped.
    pub fn is_visible(&self) -> bool {
        self.held.allocation.is_visible()
    }

    /// Copies a slice into the buffer, from its first element on: through the CPU's mapping, or else the copy queue.
    /// Work submitted before is finished first.
    pub fn copy_from(&self, values: &[T]) -> Result<(), Error> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if bytes.len() as u64 > self.bytes() {
            return Err(bounds(BUFFER, 0, bytes.len() as u64, self.bytes()));
        }
        if self.held.allocation.is_visible() {
            self.held.device.synchronize()?;
            self.held.allocation.window()?.write(0, bytes)
        } else {
            self.held.device.upload(self.address(), bytes)
        }
    }

    /// Copies the buffer's first elements out. Work submitted before is finished first.
    pub fn copy_to(&self, values: &mut [T]) -> Result<(), Error> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        if bytes.len() as u64 > self.bytes() {
            return Err(bounds(BUFFER, 0, bytes.len() as u64, self.bytes()));
        }
        if self.held.allocation.is_visible() {
            self.held.device.synchronize()?;
            self.held.allocation.window()?.read(0, bytes)
        } else {
            self.held.device.download(self.address(), bytes)
        }
    }

    /// All elements.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut values = bytemuck::zeroed_vec(self.len);
        self.copy_to(&mut values)?;
        Ok(values)
    }

    /// All elements as they are now, while work may be under way, or after its channel has died. The buffer must be
    /// visible to the CPU.
    pub fn peek(&self) -> Result<Vec<T>, Error> {
        let mut values = bytemuck::zeroed_vec(self.len);
        self.held.allocation.window()?.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Makes the buffer reachable, at the same address, for another device of the same system.
    pub fn share_with(&self, device: &Device) -> Result<(), Error> {
        self.held.allocation.map(device.gpu())
    }
}
