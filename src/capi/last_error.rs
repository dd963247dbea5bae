//! This thread's last failure, which the guard stores.

use super::exported;
use crate::per_thread;
use std::ffi::c_char;

exported! {
    /// The last error message, or an empty string.
    fn norm_get_last_error() -> *const c_char, else c"".as_ptr(); {
        let last = per_thread::with(|thread| thread.last_error.borrow().as_c_str().as_ptr());
        Ok(last.unwrap_or(c"this thread has no memory for messages, or the process no key of POSIX threads for them".as_ptr()))
    }
}
