//! This thread's last failure.

use super::exported;
use crate::error::Error;
use crate::text::Text;
use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::Write;

/// Room for a function's name and a message.
const LONGEST: usize = 576;

thread_local! {
    static LAST: RefCell<Text<LONGEST>> = const { RefCell::new(Text::new()) };
}

/// Stores a failure as `function: message`.
pub(super) fn set(function: &str, error: &Error) {
    LAST.with(|last| {
        let mut last = last.borrow_mut();
        *last = Text::new();
        let _ = write!(last, "{function}: {error}");
    });
}

exported! {
    /// The last error message, or an empty string.
    fn norm_get_last_error() -> *const c_char, else c"".as_ptr(); {
        Ok(LAST.with(|last| last.borrow().as_c_str().as_ptr()))
    }
}
