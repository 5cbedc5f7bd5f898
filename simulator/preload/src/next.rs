//! The functions behind the interposed ones: the next definition of the same symbol.

use std::{
    ffi::{CStr, c_void},
    marker::PhantomData,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A function of libc, or of another library that is loaded before it, looked up once.
pub(crate) struct Next<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// The function `name`.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to that C function.
    pub(crate) const unsafe fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()), signature: PhantomData }
    }

    /// The function; `None` where no later library has it.
    pub(crate) fn get(&self) -> Option<F> {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            // SAFETY: the name is a C string. Two threads that come here at once store the same address.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Ordering::Relaxed);
        }
        if address.is_null() {
            return None;
        }
        // SAFETY: whoever made `self` vouched for `F` being a pointer to this function, of the size of an address.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }
}
