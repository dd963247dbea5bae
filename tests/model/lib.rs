//! The board of `src/threads`, compiled with a model checker's atomics, locks and threads, and run in
//! every order that they allow within a bound.
#![cfg(test)]

mod boards;
mod runners;
mod slots;
mod sync;

#[path = "../../src/threads/bell.rs"]
mod bell;
#[path = "../../src/threads/board.rs"]
mod board;
#[path = "../../src/threads/share.rs"]
mod share;
#[path = "../../src/threads/slot.rs"]
mod slot;

/// What `src/threads` defines for its files.
type Body<'a> = &'a (dyn Fn(usize) + Sync);
#[derive(PartialEq)]
enum Length {
    Long,
}
const MAX_THREADS: usize = 255;
/// Fewer than there, so that threads have shares in common.
const MAX_SHARES: usize = 2;
