//! The synchronization primitives of the board. `tests/model` replaces this module with a model
//! checker's types, so the board uses no other shared state.

pub(super) use super::policy::{CallerCpu, SpinBudget, WakeThrottle, WorkerAffinity};
pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread::yield_now;
