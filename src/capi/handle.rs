//! C handles: the Rust type behind each, and its ownership.

use super::pool::POOLS;
use crate::error::{Error, Result};
use crate::mark::{Kind, Mark};
use crate::primitive::{Attr, PostOps};
use crate::tensor::MemoryDesc;
use crate::text::shown;
use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;

/// A Rust value that C holds by pointer. C owns the result of [`into_c`](Handle::into_c) until it
/// passes it to [`destroy`](Handle::destroy). The library keeps ownership of pointers from
/// [`lend`](Handle::lend).
///
/// # Safety
/// The value begins with a [`Mark`] of `KIND`, made by [`Mark::part`]. No other type has the kind.
pub(super) unsafe trait Handle: Sized + 'static {
    /// The opaque C struct.
    type C;
    const KIND: Kind;

    /// Moves the value to memory that C owns.
    fn into_c(self) -> Result<*mut Self::C> {
        place(self, Mark::owned(Self::KIND))
    }

    fn lend(&self) -> *const Self::C {
        std::ptr::from_ref(self).cast()
    }

    /// The object of a handle; `None` if it is NULL, was destroyed or is of another kind.
    ///
    /// # Safety
    /// `p` is NULL or a handle that `norm.h` allows: the library still has its memory. No other
    /// thread changes the object during the call.
    #[inline]
    unsafe fn find<'a>(p: *const Self::C) -> Option<&'a Self> {
        let mark = p.cast::<Mark>();
        if mark.is_null() || !mark.is_aligned() {
            return None;
        }
        // SAFETY: guaranteed by the caller. With this mark, the memory holds such an object.
        unsafe { (*mark).is(Self::KIND).then(|| &*p.cast::<Self>()) }
    }

    /// # Safety
    /// As [`find`](Handle::find).
    #[inline]
    unsafe fn get<'a>(p: *const Self::C, name: &str) -> Result<&'a Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::find(p).ok_or_else(|| Self::refuse(p, name)) }
    }

    /// `None` for NULL.
    ///
    /// # Safety
    /// As [`find`](Handle::find).
    unsafe fn get_optional<'a>(p: *const Self::C, name: &str) -> Result<Option<&'a Self>> {
        // SAFETY: guaranteed by the caller.
        if p.is_null() { Ok(None) } else { unsafe { Self::get(p, name) }.map(Some) }
    }

    /// # Safety
    /// As [`find`](Handle::find), and no other reference to the object is used during the call.
    unsafe fn get_mut<'a>(p: *mut Self::C, name: &str) -> Result<&'a mut Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::get(p, name)? };
        // SAFETY: as above; it is such an object.
        Ok(unsafe { &mut *p.cast::<Self>() })
    }

    /// Why a handle is refused.
    ///
    /// # Safety
    /// As [`find`](Handle::find).
    #[cold]
    unsafe fn refuse(p: *const Self::C, name: &str) -> Error {
        if p.is_null() {
            return is_null(name);
        }
        // SAFETY: guaranteed by the caller.
        let why = unsafe { stranger::<Self>(p) };
        Error::invalid(format_args!("{name}: {why}"))
    }

    /// Destroys the object of a handle. NULL is fine.
    ///
    /// # Safety
    /// As [`get_mut`](Handle::get_mut).
    unsafe fn destroy(p: *mut Self::C, name: &str) -> Result<()> {
        if !p.is_null() {
            // SAFETY: guaranteed by the caller.
            unsafe { Self::get(p, name)? };
            // SAFETY: as above; it is such an object.
            if unsafe { &*p.cast::<Mark>() } != &Mark::owned(Self::KIND) {
                return Err(is_owned(name));
            }
            // SAFETY: C owns it: it came from `into_c`.
            unsafe { remove::<Self>(p) };
        }
        Ok(())
    }
}

/// Moves a value to memory that keeps a mark when the value is gone.
fn place<T: Handle>(value: T, mark: Mark) -> Result<*mut T::C> {
    let place = POOLS[T::KIND as usize].take(Layout::new::<T>())?;
    // SAFETY: the memory has the layout of the value, which begins with its mark.
    unsafe {
        place.cast::<T>().write(value);
        place.cast::<Mark>().write(mark);
    }
    Ok(place.cast())
}

/// Ends a value. It and what is part of it lose their marks.
///
/// # Safety
/// It came from [`place`], and nobody uses it any more.
pub(super) unsafe fn remove<T: Handle>(p: *mut T::C) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let object = p.cast::<T>();
        drop(object.read());
        object.cast::<u8>().write_bytes(0, size_of::<T>());
        POOLS[T::KIND as usize].put(object.cast());
    }
}

/// An object that another owns and whose handle C may keep after both are gone.
pub(super) struct Part<T: Handle>(*mut T::C);

impl<T: Handle> Part<T> {
    pub(super) fn new(value: T) -> Result<Self> {
        Ok(Self(place(value, Mark::part(T::KIND))?))
    }

    pub(super) fn handle(&self) -> *mut T::C {
        self.0
    }
}

impl<T: Handle> Drop for Part<T> {
    fn drop(&mut self) {
        // SAFETY: it came from `place`, and its owner ends.
        unsafe { remove::<T>(self.0) }
    }
}

/// What a handle refers to if it is not a live `T`.
///
/// # Safety
/// As [`Handle::find`], and `p` is not NULL.
pub(super) unsafe fn stranger<T: Handle>(p: *const T::C) -> impl fmt::Display {
    let mark = p.cast::<Mark>();
    // SAFETY: guaranteed by the caller.
    let kind = if mark.is_aligned() { unsafe { (*mark).kind() } } else { None };
    shown(move |f| match kind {
        Some(kind) => write!(f, "it is a {}, not a {}", kind.name(), T::KIND.name()),
        None => write!(f, "it was destroyed, or never was a {}", T::KIND.name()),
    })
}

/// Implements [`Handle`] for types whose first field is `mark`.
macro_rules! handles {
    ($($type:ty: $c:ident = $kind:ident;)*) => {$(
        const _: () = assert!(std::mem::offset_of!($type, mark) == 0);
        // As norm.h says.
        const _: () = assert!(size_of::<$type>() < 1000);
        // SAFETY: the mark is the first field, and the types below are all that have one.
        unsafe impl crate::capi::handle::Handle for $type {
            type C = norm_sys::$c;
            const KIND: crate::mark::Kind = crate::mark::Kind::$kind;
        }
    )*};
}
pub(super) use handles;

handles! {
    MemoryDesc: norm_memory_desc = MemoryDesc;
    Attr: norm_primitive_attr = Attr;
    PostOps: norm_post_ops = PostOps;
}

/// The refusal to destroy an object that is not C's.
#[cold]
pub(super) fn is_owned(name: &str) -> Error {
    Error::invalid(format_args!("{name}: it is owned by another object, which destroys it"))
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

/// A number of items.
pub(super) fn count_of(count: c_int, name: &str) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::invalid(format_args!("{name}: {count} is negative")))
}

/// A C array as a slice.
///
/// # Safety
/// `p` is NULL or points to `len` readable elements that stay valid during the call.
#[inline]
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
