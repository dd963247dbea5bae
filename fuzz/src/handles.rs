//! What every function of the C API guarantees: a refused call writes nothing and leaves a message.

use norm_sys as sys;
use std::cell::RefCell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The byte of results before a call.
const UNTOUCHED: u8 = 0x5a;

/// What the messages begin with that [`has_message`] leaves.
const SEEN: &str = "norm_get_primitive_cache_capacity: capacity";

thread_local! {
    /// The last message that was checked.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Asserts that a refused call has a message. The next call to be refused must have its own.
pub(crate) fn has_message() {
    let text = last_error();
    assert!(text.contains(": ") && !text.starts_with(SEEN), "a refused call says {text:?}");
    MESSAGE.set(text);
    // SAFETY: the call is refused.
    unsafe { sys::norm_get_primitive_cache_capacity(null_mut()) };
}

/// The message of the last refused call.
pub(crate) fn message() -> String {
    let text = last_error();
    if text.starts_with(SEEN) { MESSAGE.with_borrow(String::clone) } else { text }
}

fn last_error() -> String {
    // SAFETY: a string of this thread.
    unsafe { CStr::from_ptr(sys::norm_get_last_error()) }.to_string_lossy().into_owned()
}

/// Whether a call succeeded. If not, it has a message.
pub(crate) fn done(status: sys::norm_status_t) -> bool {
    if status != sys::norm_success {
        has_message();
    }
    status == sys::norm_success
}

/// Calls a function that writes a result. `T` is a type that any bytes are valid for.
pub(crate) fn got<T>(call: impl FnOnce(*mut T) -> sys::norm_status_t) -> Option<T> {
    let mut result = MaybeUninit::<T>::uninit();
    let start = result.as_mut_ptr();
    // SAFETY: the bytes of the result.
    unsafe { start.write_bytes(UNTOUCHED, 1) };
    if done(call(start)) {
        // SAFETY: all bytes are initialized.
        return Some(unsafe { result.assume_init() });
    }
    // SAFETY: as above, and all are initialized.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size_of::<T>()) };
    assert!(bytes.iter().all(|byte| *byte == UNTOUCHED), "a refused call wrote {bytes:?}");
    None
}

/// Calls a constructor that writes a handle.
pub(crate) fn made<T>(create: impl FnOnce(*mut *mut T) -> sys::norm_status_t) -> Option<*mut T> {
    let handle = got(create)?;
    assert!(!handle.is_null());
    Some(handle)
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
