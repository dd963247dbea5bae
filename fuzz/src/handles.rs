//! What every constructor of the C API guarantees.

use norm_sys as sys;
use std::ffi::CStr;
use std::ptr::without_provenance_mut;

/// Asserts that a refused call has a message.
pub(crate) fn has_message() {
    // SAFETY: a string of this thread.
    let text = unsafe { CStr::from_ptr(sys::norm_get_last_error()) };
    assert!(text.to_bytes().contains(&b':'), "a refused call says {text:?}");
}

/// The message of the last refused call.
pub(crate) fn message() -> String {
    // SAFETY: a string of this thread.
    unsafe { CStr::from_ptr(sys::norm_get_last_error()) }.to_string_lossy().into_owned()
}

/// Calls a constructor that writes a handle.
pub(crate) fn made<T>(create: impl FnOnce(*mut *mut T) -> sys::norm_status_t) -> Option<*mut T> {
    let untouched = without_provenance_mut(0x5a5a);
    let mut handle = untouched;
    if create(&raw mut handle) == sys::norm_success {
        assert!(!handle.is_null());
        return Some(handle);
    }
    assert!(handle == untouched, "a refused call wrote a handle");
    has_message();
    None
}

/// An engine and a stream on it.
pub(crate) fn engine_and_stream() -> (sys::norm_engine_t, sys::norm_stream_t) {
    // SAFETY: the engine is live.
    unsafe {
        let engine = made(|out| sys::norm_engine_create(out, sys::norm_cpu, 0)).expect("a CPU");
        let stream = made(|out| sys::norm_stream_create(out, engine, 1)).expect("a stream");
        (engine, stream)
    }
}
