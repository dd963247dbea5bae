//! Wraps every call from C: a panic becomes `norm_runtime_error`, and a failure becomes a status
//! and this thread's last error.

use crate::error::{Error, Result, Status};
use crate::per_thread;
use crate::text::Text;
use norm_sys as sys;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function that returns a status.
#[inline]
pub(super) fn status(function: &str, f: impl FnOnce() -> Result<()>) -> sys::norm_status_t {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => sys::norm_success,
        Ok(Err(error)) => fail(function, &error),
        Err(_) => fail(function, &panicked()),
    }
}

/// Runs a function that returns a value, `otherwise` on failure.
#[inline]
pub(super) fn value<T>(function: &str, otherwise: T, f: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            fail(function, &error);
            otherwise
        }
        Err(_) => {
            fail(function, &panicked());
            otherwise
        }
    }
}

#[cold]
fn fail(function: &str, error: &Error) -> sys::norm_status_t {
    remember(function, error);
    code(error.status)
}

/// The C value of a failure.
fn code(status: Status) -> sys::norm_status_t {
    match status {
        Status::OutOfMemory => sys::norm_out_of_memory,
        Status::InvalidArguments => sys::norm_invalid_arguments,
        Status::Unimplemented => sys::norm_unimplemented,
        Status::LastImplReached => sys::norm_last_impl_reached,
        Status::RuntimeError => sys::norm_runtime_error,
        Status::NotRequired => sys::norm_not_required,
    }
}

/// Stores this thread's last error as `function: message`.
fn remember(function: &str, error: &Error) {
    per_thread::with(|thread| {
        let mut last = thread.last_error.borrow_mut();
        *last = Text::new();
        let _ = write!(last, "{function}: {error}");
    });
}

fn panicked() -> Error {
    Error::new(Status::RuntimeError, "internal error")
}

/// Declares an exported function: `fn norm_x as dnnl_x(...)`. The second name is exported only with the feature
/// `onednn-abi`. It is omitted for functions that oneDNN lacks or defines differently. `fn dnnl_x like norm_x(...)`
/// declares oneDNN's version of the latter.
///
/// Without `else`, the function returns a status and the body is a `Result<()>`. With `else value`,
/// the body is a `Result` of the return type, and the value is returned on failure.
macro_rules! exported {
    ($(#[$meta:meta])* fn $name:ident $($link:ident $other:ident)?($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        crate::capi::guard::exported! {
            @define [$(#[$meta])*] $name ($($arg: $ty),*) -> norm_sys::norm_status_t;
            crate::capi::guard::status(stringify!($name), || $body)
        }
        crate::capi::guard::exported! {
            @link $name $($link $other)? ($($arg: $ty),*) -> norm_sys::norm_status_t
        }
    };
    ($(#[$meta:meta])* fn $name:ident $($link:ident $other:ident)?($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty, else $otherwise:expr; $body:block) => {
        crate::capi::guard::exported! {
            @define [$(#[$meta])*] $name ($($arg: $ty),*) -> $ret;
            crate::capi::guard::value(stringify!($name), $otherwise, || $body)
        }
        crate::capi::guard::exported! { @link $name $($link $other)? ($($arg: $ty),*) -> $ret }
    };
    (@define [$(#[$meta:meta])*] $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty; $body:expr) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers are NULL or valid as `norm.h` describes.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            $body
        }
    };
    // Checks the prototype against the header's declaration.
    (@link $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        const _: unsafe extern "C" fn($($ty),*) -> $ret = norm_sys::$name;
    };
    (@link $name:ident like $declared:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        const _: unsafe extern "C" fn($($ty),*) -> $ret = norm_sys::$declared;
    };
    // A separate function, because a linker alias is not exported from a shared library.
    (@link $name:ident as $twin:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        const _: unsafe extern "C" fn($($ty),*) -> $ret = norm_sys::$name;
        #[cfg(feature = "onednn-abi")]
        const _: () = {
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $twin($($arg: $ty),*) -> $ret {
                // SAFETY: guaranteed by the caller.
                unsafe { $name($($arg),*) }
            }
            assert!(crate::capi::guard::differ_in_prefix(stringify!($name), stringify!($twin)));
        };
    };
}
pub(super) use exported;

/// Whether two names differ only in their prefix.
#[cfg(feature = "onednn-abi")]
pub(super) const fn differ_in_prefix(name: &str, twin: &str) -> bool {
    let (name, twin) = (name.as_bytes(), twin.as_bytes());
    let mut i = "norm".len();
    while i < name.len() && i < twin.len() && name[i] == twin[i] {
        i += 1;
    }
    i == name.len() && i == twin.len()
}
