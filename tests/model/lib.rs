//! The board of `src/threads`, compiled with a model checker's atomics, locks and threads. The
//! checker explores every interleaving within a preemption bound.
#![cfg(test)]

mod boards;
mod crews;
mod runners;
mod slots;
#[cfg(target_os = "linux")]
mod stacks;
mod sync;

#[path = "../../src/threads/board.rs"]
mod board;
#[path = "../../src/threads/body.rs"]
mod body;
#[path = "../../src/threads/crew.rs"]
mod crew;
#[path = "../../src/threads/event_count.rs"]
mod event_count;
#[path = "../../src/threads/share.rs"]
mod share;
#[path = "../../src/threads/slot.rs"]
mod slot;

/// Explores the interleavings of `body` with at most `preemptions` preemptions.
fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

/// Definitions of `src/threads/job.rs`.
mod job {
    #[derive(PartialEq)]
    pub(super) enum Length {
        Long,
    }
    /// Smaller than in the library, so that the models cover threads that use the same share.
    pub(super) const MAX_SHARES: usize = 2;
}
const MAX_THREADS: usize = 255;
