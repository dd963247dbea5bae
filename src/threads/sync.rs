//! What the board is built of. The models in `tests/model` put a model checker's own types in this
//! place, so the board names nothing else that threads share.

pub(super) use super::policy::{CallerPlace, Patience, WorkerPlace, Zeal};
pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
