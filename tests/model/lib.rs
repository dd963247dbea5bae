//! The board of `src/threads`, compiled with a model checker's atomics, locks and threads, and run in
//! every order that they allow within a bound.
#![cfg(test)]

mod models;
mod sync;

#[path = "../../src/threads/bell.rs"]
mod bell;
#[path = "../../src/threads/board.rs"]
mod board;
#[path = "../../src/threads/slot.rs"]
mod slot;

/// What `src/threads` defines for its files.
type Body<'a> = &'a (dyn Fn(usize) + Sync);
const MAX_THREADS: usize = 255;
