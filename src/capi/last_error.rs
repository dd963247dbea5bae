//! This thread's last failure.

use super::exported;
use crate::error::Error;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps a failure as `function: sentence`.
pub(super) fn set(function: &str, error: &Error) {
    let text = format!("{function}: {error}").replace('\0', "?");
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
}

exported! {
    /// The sentence, or an empty one.
    fn norm_get_last_error() -> *const c_char, else c"".as_ptr(); {
        Ok(LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(CStr::as_ptr(c"")))
    }
}
