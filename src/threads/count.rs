//! How many threads an execution may use.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest count that can be asked for.
pub(crate) const MAX_THREADS: usize = 255;

/// What was set; 0 for the default.
static SET: AtomicUsize = AtomicUsize::new(0);

/// `NORM_NUM_THREADS`, or the processors that the process may run on.
pub(crate) fn default_threads() -> usize {
    /// 0 until it is known. Nobody waits for who finds out: after fork() it may not be there.
    static DEFAULT: AtomicUsize = AtomicUsize::new(0);
    let known = DEFAULT.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let asked = std::env::var("NORM_NUM_THREADS").ok().and_then(|v| v.trim().parse().ok());
    let count = asked
        .filter(|&n: &usize| n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let count = count.min(MAX_THREADS);
    match DEFAULT.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => count,
        Err(first) => first,
    }
}

/// The count in force, the calling thread included.
pub(crate) fn threads() -> usize {
    match SET.load(Ordering::Relaxed) {
        0 => default_threads(),
        n => n,
    }
}

/// Sets the count; 0 for the default.
pub(crate) fn set_threads(count: usize) {
    SET.store(count.min(MAX_THREADS), Ordering::Relaxed);
}
