//! Ownership of C objects: [`Handle`] destroys the object that a `*_create` or `*_clone` function
//! returned, once, with the function for its type.

use std::ptr::{self, NonNull};

use norm_sys as sys;

use crate::error::{Error, Result, check};

/// A type of C object, tied to its destructor.
pub(crate) trait Object {
    /// # Safety
    /// The caller owns `object` and has not destroyed it before.
    unsafe fn destroy(object: *mut Self) -> sys::norm_status_t;
}

macro_rules! objects {
    ($($object:ident => $destroy:ident;)*) => {$(
        impl Object for sys::$object {
            unsafe fn destroy(object: *mut Self) -> sys::norm_status_t {
                // SAFETY: guaranteed by the caller.
                unsafe { sys::$destroy(object) }
            }
        }
    )*};
}
objects! {
    norm_engine => norm_engine_destroy;
    norm_stream => norm_stream_destroy;
    norm_memory_desc => norm_memory_desc_destroy;
    norm_memory => norm_memory_destroy;
    norm_primitive_attr => norm_primitive_attr_destroy;
    norm_post_ops => norm_post_ops_destroy;
    norm_primitive_desc => norm_primitive_desc_destroy;
    norm_primitive => norm_primitive_destroy;
    norm_kv_cache => norm_kv_cache_destroy;
}

/// An owned C object.
pub(crate) struct Handle<T: Object>(NonNull<T>);

// SAFETY: objects are not tied to a thread. Many threads may read one at the same time; modifying
// or destroying it requires exclusive access (norm.h, "Threads"). This crate modifies objects only
// through `&mut` and destroys them in `drop`. Types without concurrent reads (Stream) are not Sync.
unsafe impl<T: Object> Send for Handle<T> {}
// SAFETY: as for Send.
unsafe impl<T: Object> Sync for Handle<T> {}

impl<T: Object> Handle<T> {
    /// Owns the object that `create` stores through its argument on success.
    ///
    /// # Safety
    /// On success `create` has stored an object that the caller owns.
    pub(crate) unsafe fn create(
        create: impl FnOnce(*mut *mut T) -> sys::norm_status_t,
    ) -> Result<Self> {
        let mut object = ptr::null_mut();
        check(create(&mut object))?;
        NonNull::new(object).map(Self).ok_or(Error::defect("the library created no object"))
    }

    /// The object, for C functions.
    ///
    /// The pointer is mutable because the C types require it. Whether the object may be modified
    /// depends on how the owner is borrowed.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: the handle owns the object, and drop runs once. A destructor cannot act on the
        // status.
        let _ = unsafe { T::destroy(self.0.as_ptr()) };
    }
}
