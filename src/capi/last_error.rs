//! This thread's last failure.

use super::exported;
use crate::error::Error;
use crate::per_thread;
use crate::text::Text;
use std::ffi::c_char;
use std::fmt::Write;

/// Stores a failure as `function: message`.
pub(super) fn set(function: &str, error: &Error) {
    per_thread::with(|thread| {
        let mut last = thread.last_error.borrow_mut();
        *last = Text::new();
        let _ = write!(last, "{function}: {error}");
    });
}

exported! {
    /// The last error message, or an empty string.
    fn norm_get_last_error() -> *const c_char, else c"".as_ptr(); {
        let last = per_thread::with(|thread| thread.last_error.borrow().as_c_str().as_ptr());
        Ok(last.unwrap_or(c"this thread has no memory for messages, or the process no key of POSIX threads for them".as_ptr()))
    }
}
