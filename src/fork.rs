//! Handlers that a child of fork() runs first. A child only has the forking thread.

use std::sync::atomic::{AtomicBool, Ordering};

/// Makes children call `handler`, which only uses atomics. Two threads may both register it, which is harmless. Neither
/// waits for the other, which may not exist in a child. Returns whether the system has registered it.
pub(crate) fn in_children(handler: extern "C" fn(), registered: &AtomicBool) -> bool {
    #[cfg(unix)]
    if !registered.load(Ordering::Relaxed) {
        // SAFETY: the handler is safe to call in a child.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(handler)) };
        registered.store(refused == 0, Ordering::Relaxed);
        return refused == 0;
    }
    #[cfg(not(unix))]
    let _ = (handler, registered, Ordering::Relaxed);
    true
}
