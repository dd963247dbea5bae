//! How workers learn that there is a job: one word that counts the rings, and a place to sleep.

use super::sync::{AtomicU64, Condvar, Mutex, Ordering};
use std::sync::PoisonError;

/// Rung for every job. Rings and sleepers share a word, so that a ring sees who sleeps and a sleeper
/// sees every ring: one of the two always notices the other.
pub(super) struct Bell {
    /// Rings in the upper bits, then the number of threads that sleep.
    state: AtomicU64,
    lock: Mutex<()>,
    rung: Condvar,
}

const SLEEPER_BITS: u32 = 16;
const SLEEPERS: u64 = (1 << SLEEPER_BITS) - 1;

/// How often the bell had rung when somebody listened.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Heard(u64);

impl Bell {
    pub(super) fn new() -> Self {
        Self { state: AtomicU64::new(0), lock: Mutex::new(()), rung: Condvar::new() }
    }

    /// What was published before a ring that is heard is seen by the one who hears it.
    pub(super) fn listen(&self) -> Heard {
        Heard(self.state.load(Ordering::Acquire) >> SLEEPER_BITS)
    }

    /// Rings, and gives the number of those who sleep through it.
    pub(super) fn ring(&self) -> usize {
        let before = self.state.fetch_add(1 << SLEEPER_BITS, Ordering::Release);
        (before & SLEEPERS) as usize
    }

    /// Wakes some who slept when the bell was rung.
    pub(super) fn wake(&self, count: usize) {
        // A sleeper holds the lock from its count until it waits: now it waits, or has heard.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in 0..count {
            self.rung.notify_one();
        }
    }

    /// Sleeps until there is a ring after those that were heard.
    pub(super) fn sleep(&self, heard: Heard) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.fetch_add(1, Ordering::Relaxed);
        while self.listen() == heard {
            guard = self.rung.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.state.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
    }
}
