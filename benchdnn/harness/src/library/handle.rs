//! A handle of the library as a Rust value.

use crate::executor::Refusal;
use norm_sys::norm_status_t;
use std::ptr;
use std::time::{Duration, Instant};

/// An object of the library that is destroyed with this value.
#[derive(Debug)]
pub struct Handle<T> {
    raw: *mut T,
    creation: Duration,
    destroy: unsafe extern "C" fn(*mut T) -> norm_status_t,
}

impl<T> Handle<T> {
    /// Creates an object with `create`, which writes the handle.
    pub fn create(
        destroy: unsafe extern "C" fn(*mut T) -> norm_status_t,
        create: impl FnOnce(*mut *mut T) -> Result<(), Refusal>,
    ) -> Result<Handle<T>, Refusal> {
        let mut raw = ptr::null_mut();
        let start = Instant::now();
        create(&mut raw)?;
        Ok(Handle { raw, creation: start.elapsed(), destroy })
    }

    /// How long `create` took.
    pub fn creation(&self) -> Duration {
        self.creation
    }

    /// The handle, valid as long as this value.
    pub fn raw(&self) -> *mut T {
        self.raw
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: the handle came from the library's create function and is destroyed once. A
        // failure leaves nothing to do.
        unsafe { (self.destroy)(self.raw) };
    }
}
