//! What the board is built of. The models in `tests/model` put a model checker's own types in this
//! place, so the board names nothing else that threads share.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a thread keeps looking before it sleeps. Longer than the gap between two executions of a
/// program that does little else, far shorter than a scheduler's slice.
const LOOK_FOR: Duration = Duration::from_micros(50);
/// Looks between two readings of the clock.
const LOOKS: u32 = 64;

/// How long a thread looks for a change before it sleeps.
pub(super) struct Patience {
    since: Instant,
    looks: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), looks: 0 }
    }

    /// Counts a look that found nothing; true if it was the last one.
    pub(super) fn ends(&mut self) -> bool {
        self.looks += 1;
        if self.looks < LOOKS {
            spin_loop();
            return false;
        }
        self.looks = 0;
        self.since.elapsed() >= LOOK_FOR
    }
}
