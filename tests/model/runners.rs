//! Records which thread ran each block of a job.
//!
//! A block writes an unsynchronized cell, and the caller reads it after the job. The checker reports unordered
//! accesses. The assertions here check that each block runs exactly once and that the thread count is right.

use crate::body::Body;
use crate::slot::Outcome;
use loom::cell::UnsafeCell;
use loom::thread::{self, ThreadId};
use std::collections::HashSet;

/// The thread that ran each block.
pub(super) struct Runners(Vec<UnsafeCell<Option<ThreadId>>>);

// SAFETY: the checker's cells report unordered accesses.
unsafe impl Send for Runners {}
// SAFETY: as above.
unsafe impl Sync for Runners {}

impl Runners {
    fn note(&self, block: usize) {
        // SAFETY: the checker reports a concurrent access.
        let before =
            self.0[block].with_mut(|runner| unsafe { (*runner).replace(thread::current().id()) });
        assert!(before.is_none(), "block {block} runs twice");
    }

    /// Checks that `run` runs each block once on at most `width` threads and counts the threads
    /// correctly. Returns, per block, whether this thread ran it.
    pub(super) fn of(
        blocks: usize,
        width: usize,
        run: impl FnOnce(Body<'_>) -> Outcome,
    ) -> Vec<bool> {
        let runners = Self((0..blocks).map(|_| UnsafeCell::new(None)).collect());
        let outcome = run(Body::new(&|block| runners.note(block)));
        // SAFETY: as above.
        let runner = |cell: &UnsafeCell<Option<ThreadId>>| cell.with(|runner| unsafe { *runner });
        let ran: Vec<_> = runners.0.iter().map(|cell| runner(cell).expect("a block ran")).collect();
        let threads = ran.iter().collect::<HashSet<_>>().len();
        assert_eq!(outcome.threads, threads);
        assert!(threads <= width && !outcome.panicked);
        ran.into_iter().map(|runner| runner == thread::current().id()).collect()
    }
}
