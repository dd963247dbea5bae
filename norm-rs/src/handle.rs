//! Ownership of C objects: [`Handle`] frees what a `*_create` or `*_clone` function returned, once,
//! with the function that belongs to its type.

use std::ptr::{self, NonNull};

use norm_sys as sys;

use crate::error::{Error, Result, check};

/// A type of C object, tied to the function that frees it.
pub(crate) trait Object {
    /// # Safety
    /// `object` came from a function that gave it to the caller, and was not destroyed before.
    unsafe fn destroy(object: *mut Self) -> sys::norm_status_t;
}

macro_rules! objects {
    ($($object:ident => $destroy:ident;)*) => {$(
        impl Object for sys::$object {
            unsafe fn destroy(object: *mut Self) -> sys::norm_status_t {
                // SAFETY: the caller's promise is what the C function asks for.
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
}

/// An owned C object.
pub(crate) struct Handle<T: Object>(NonNull<T>);

// SAFETY: norm.h, "Threads": an object belongs to no thread; many threads may read it at once, and
// changing or destroying it needs exclusion. This crate changes objects through `&mut` alone and
// destroys them in `drop`. Types for which reading is not enough (Stream) take Sync away again.
unsafe impl<T: Object> Send for Handle<T> {}
// SAFETY: as for Send.
unsafe impl<T: Object> Sync for Handle<T> {}

impl<T: Object> Handle<T> {
    /// Owns what `create` stores through its argument, if it succeeds.
    ///
    /// # Safety
    /// On success `create` has stored an object that the caller is to destroy.
    pub(crate) unsafe fn create(
        create: impl FnOnce(*mut *mut T) -> sys::norm_status_t,
    ) -> Result<Self> {
        let mut object = ptr::null_mut();
        check(create(&mut object))?;
        NonNull::new(object).map(Self).ok_or(Error::defect("the library created no object"))
    }

    /// The object, for C functions.
    ///
    /// The pointer is mutable because C's types ask for it; whether the object may be changed is
    /// decided by how the owner is borrowed.
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: `create` promised that the object is ours, and drop runs once. The status says
        // nothing that a destructor could act on.
        let _ = unsafe { T::destroy(self.0.as_ptr()) };
    }
}
