//! The number of threads that an execution may use.

use super::processors;
use crate::environment::Variable;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest thread count that can be set.
pub(crate) const MAX_THREADS: usize = 255;

/// The count that was set; 0 means the default.
static SET: AtomicUsize = AtomicUsize::new(0);

/// `NORM_NUM_THREADS`, or the number of processors available to the process.
pub(crate) fn default_threads() -> usize {
    /// 0 until computed. Not a `OnceLock`: after fork() the thread that holds it may not exist.
    static DEFAULT: AtomicUsize = AtomicUsize::new(0);
    let known = DEFAULT.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let variable = Variable::own("NUM_THREADS");
    let asked: Option<usize> = variable.as_ref().and_then(|variable| variable.value().parse().ok());
    let count = asked.filter(|count| *count > 0).unwrap_or_else(processors::available);
    let count = count.min(MAX_THREADS);
    if let Err(first) = DEFAULT.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed) {
        return first;
    }
    if let (Some(variable), None) = (variable, asked) {
        variable.warn(format_args!("it is not a number of threads, 1 to {MAX_THREADS}"));
    }
    count
}

/// The current count, including the calling thread.
#[inline]
pub(crate) fn threads() -> usize {
    match SET.load(Ordering::Relaxed) {
        0 => default_threads(),
        n => n,
    }
}

/// The most threads for which scratchpads have room: the current count, or the default if that is larger.
pub(crate) fn most_threads() -> usize {
    threads().max(default_threads())
}

/// Sets the count. 0 restores the default.
pub(crate) fn set_threads(count: usize) {
    SET.store(count.min(MAX_THREADS), Ordering::Relaxed);
}
