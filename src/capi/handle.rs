//! C handles: the Rust type behind each, and its ownership.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{Attr, PostOps};
use crate::tensor::MemoryDesc;
use norm_sys as sys;
use std::ffi::{CStr, c_char};

/// A Rust value that C holds by pointer. C owns the result of [`into_c`](Handle::into_c) until it
/// passes it to [`destroy`](Handle::destroy). The library keeps ownership of pointers from
/// [`lend`](Handle::lend).
pub(super) trait Handle: Sized {
    /// The opaque C struct.
    type C;

    fn into_c(self) -> Result<*mut Self::C> {
        Ok(Box::into_raw(heap::boxed(self)?).cast())
    }

    fn lend(&self) -> *const Self::C {
        std::ptr::from_ref(self).cast()
    }

    /// # Safety
    /// `p` is NULL or a live handle of this type.
    unsafe fn get<'a>(p: *const Self::C, name: &str) -> Result<&'a Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::get_optional(p) }.ok_or_else(|| is_null(name))
    }

    /// # Safety
    /// As [`get`](Handle::get).
    unsafe fn get_optional<'a>(p: *const Self::C) -> Option<&'a Self> {
        // SAFETY: guaranteed by the caller; the alignment is that of the box it came from.
        unsafe { p.cast::<Self>().as_ref() }
    }

    /// # Safety
    /// As [`get`](Handle::get), and no other reference to the object is used during the call.
    unsafe fn get_mut<'a>(p: *mut Self::C, name: &str) -> Result<&'a mut Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { p.cast::<Self>().as_mut() }.ok_or_else(|| is_null(name))
    }

    /// # Safety
    /// `p` is NULL or came from [`into_c`](Handle::into_c), and is not used again.
    unsafe fn destroy(p: *mut Self::C) {
        if !p.is_null() {
            // SAFETY: guaranteed by the caller.
            drop(unsafe { Box::from_raw(p.cast::<Self>()) });
        }
    }
}

impl Handle for MemoryDesc {
    type C = sys::norm_memory_desc;
}

impl Handle for Attr {
    type C = sys::norm_primitive_attr;
}

impl Handle for PostOps {
    type C = sys::norm_post_ops;
}

pub(super) fn is_null(name: &str) -> Error {
    Error::invalid(format_args!("{name} is NULL"))
}

/// An output parameter that is not NULL.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// `p` is NULL or writable.
    pub(super) unsafe fn new(p: *mut T, name: &str) -> Result<Self> {
        if p.is_null() { Err(is_null(name)) } else { Ok(Self(p)) }
    }

    pub(super) fn set(self, value: T) {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { self.0.write_unaligned(value) }
    }
}

/// A C array as a slice.
///
/// # Safety
/// `p` is NULL or points to `len` readable elements that stay valid during the call.
pub(super) unsafe fn slice<'a, T>(p: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if p.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { std::slice::from_raw_parts(p, len) })
}

/// A C string.
///
/// # Safety
/// `p` is NULL or a string that stays valid during the call.
pub(super) unsafe fn text<'a>(p: *const c_char, name: &str) -> Result<&'a str> {
    if p.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: guaranteed by the caller.
    let text = unsafe { CStr::from_ptr(p) };
    text.to_str().map_err(|_| Error::invalid(format_args!("{name}: {text:?} is not UTF-8")))
}

/// Writes an output unless it is NULL.
///
/// # Safety
/// `p` is NULL or writable.
pub(super) unsafe fn put_optional<T>(p: *mut T, value: T) {
    if !p.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { p.write_unaligned(value) }
    }
}
