//! This thread's last failure.

use super::exported;
use crate::error::Error;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Stores a failure as `function: message`.
pub(super) fn set(function: &str, error: &Error) {
    let text = format!("{function}: {error}").replace('\0', "?");
    // Fails only on an exiting thread, whose storage is gone.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
}

exported! {
    /// The last error message, or an empty string.
    fn norm_get_last_error() -> *const c_char, else c"".as_ptr(); {
        Ok(LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(CStr::as_ptr(c"")))
    }
}
