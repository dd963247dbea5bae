//! The model checker's side of `src/threads/sync.rs`.

pub(super) use loom::hint::spin_loop;
pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};

/// Nobody looks twice: looking again takes the model nowhere new, and sleeping is what has to be right.
pub(super) struct Patience;

impl Patience {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn ends(&mut self) -> bool {
        true
    }
}

/// Everybody is woken.
pub(super) struct Zeal;

impl Zeal {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn wakes(&self) -> bool {
        true
    }

    pub(super) fn helped(&self) {}
}

/// Nobody is in another's way.
pub(super) struct CallerPlace;

impl CallerPlace {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn note(&self) {}

    pub(super) fn is_mine(&self) -> bool {
        false
    }
}

/// See [`CallerPlace`].
pub(super) struct WorkerPlace;

impl WorkerPlace {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn leave(&mut self, _caller: &CallerPlace) -> bool {
        false
    }
}
