//! What every call from C goes through: a panic becomes `norm_runtime_error`, a failure becomes a
//! status and this thread's last error.

use super::last_error;
use super::status::code;
use crate::error::{Error, Result, Status};
use norm_sys as sys;
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
    last_error::set(function, error);
    code(error.status)
}

fn panicked() -> Error {
    Error::new(Status::RuntimeError, "a defect of the library was caught")
}

/// Declares an exported function. Without a value after `else` it returns a status and the body a
/// `Result<()>`; with one, the body is a `Result` of the return type and the value stands for failure.
macro_rules! exported {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers are NULL or valid as `norm.h` describes.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> norm_sys::norm_status_t {
            super::guard::status(stringify!($name), || $body)
        }
        const _: unsafe extern "C" fn($($ty),*) -> norm_sys::norm_status_t = norm_sys::$name;
    };
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty, else $otherwise:expr; $body:block) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// Pointers are NULL or valid as `norm.h` describes.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            super::guard::value(stringify!($name), $otherwise, || $body)
        }
        const _: unsafe extern "C" fn($($ty),*) -> $ret = norm_sys::$name;
    };
}
pub(super) use exported;
