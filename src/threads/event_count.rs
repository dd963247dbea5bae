//! An event count: it counts published jobs in one word, and workers sleep on it until there is another.

use super::sync::{AtomicU64, Condvar, Mutex, Ordering};
use std::sync::PoisonError;

/// Advanced once per job. The epoch and the number of sleepers share a word: either the publisher
/// sees the sleeper, or the sleeper sees the new epoch.
pub(super) struct EventCount {
    /// The epoch in the upper bits, then the number of sleeping threads.
    state: AtomicU64,
    lock: Mutex<()>,
    advanced: Condvar,
}

const SLEEPER_BITS: u32 = 16;
const SLEEPERS: u64 = (1 << SLEEPER_BITS) - 1;

/// The number of events so far.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Epoch(u64);

impl EventCount {
    pub(super) fn new() -> Self {
        Self { state: AtomicU64::new(0), lock: Mutex::new(()), advanced: Condvar::new() }
    }

    /// The current epoch. A thread that observes an epoch sees everything published before it.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.state.load(Ordering::Acquire) >> SLEEPER_BITS)
    }

    /// Advances the epoch. Returns the number of threads that were asleep.
    pub(super) fn advance(&self) -> usize {
        let before = self.state.fetch_add(1 << SLEEPER_BITS, Ordering::Release);
        (before & SLEEPERS) as usize
    }

    /// Wakes up to `count` threads that slept when the epoch advanced.
    pub(super) fn wake(&self, count: usize) {
        // A sleeper holds the lock from counting itself until it waits, so by now it waits or has
        // seen the new epoch.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in 0..count {
            self.advanced.notify_one();
        }
    }

    /// Sleeps until the epoch differs from `seen`.
    pub(super) fn wait(&self, seen: Epoch) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.fetch_add(1, Ordering::Relaxed);
        while self.epoch() == seen {
            guard = self.advanced.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.state.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
    }
}
