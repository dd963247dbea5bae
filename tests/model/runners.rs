//! What a model looks at: who ran each block of a job.
//!
//! A block writes a cell that nothing protects; its caller reads it after the job. The checker ends
//! with an error if the two are not ordered, if a block runs twice or not at all, and if the threads
//! that ran one are miscounted.

use crate::Body;
use crate::slot::Outcome;
use loom::cell::UnsafeCell;
use loom::thread::{self, ThreadId};
use std::collections::HashSet;

/// Who ran each block of a job.
pub(super) struct Runners(Vec<UnsafeCell<Option<ThreadId>>>);

// SAFETY: the checker's cells report accesses that are not ordered.
unsafe impl Send for Runners {}
// SAFETY: as above.
unsafe impl Sync for Runners {}

impl Runners {
    fn note(&self, block: usize) {
        // SAFETY: the checker reports another access at the same time.
        let before =
            self.0[block].with_mut(|runner| unsafe { (*runner).replace(thread::current().id()) });
        assert!(before.is_none(), "block {block} runs twice");
    }

    /// Finds that `run` runs each block of a job once on at most `width` threads, and counts them. True for
    /// blocks that this thread ran.
    pub(super) fn of(
        blocks: usize,
        width: usize,
        run: impl FnOnce(Body<'_>) -> Outcome,
    ) -> Vec<bool> {
        let runners = Self((0..blocks).map(|_| UnsafeCell::new(None)).collect());
        let outcome = run(&|block| runners.note(block));
        // SAFETY: as above.
        let runner = |cell: &UnsafeCell<Option<ThreadId>>| cell.with(|runner| unsafe { *runner });
        let ran: Vec<_> = runners.0.iter().map(|cell| runner(cell).expect("a block ran")).collect();
        let threads = ran.iter().collect::<HashSet<_>>().len();
        assert_eq!(outcome.threads, threads);
        assert!(threads <= width && !outcome.panicked);
        ran.into_iter().map(|runner| runner == thread::current().id()).collect()
    }
}
