//! The model checker's counterpart of `src/threads/sync.rs`.

pub(super) use loom::hint::spin_loop;
pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(super) use loom::thread::yield_now;

/// Never spins: polling again reaches no new state, and the model must cover sleeping.
pub(super) struct SpinBudget;

impl SpinBudget {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn is_spent(&mut self) -> bool {
        true
    }
}

/// Always wakes.
pub(super) struct WakeThrottle;

impl WakeThrottle {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn is_due(&self) -> bool {
        true
    }

    pub(super) fn helped(&self) {}
}

/// No worker is ever on its caller's CPU.
pub(super) struct CallerCpu;

impl CallerCpu {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn record(&self) {}

    pub(super) fn is_current(&self) -> bool {
        false
    }
}

/// See [`CallerCpu`].
pub(super) struct WorkerAffinity;

impl WorkerAffinity {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn move_off(&mut self, _caller: &CallerCpu) -> bool {
        false
    }
}
