//! Runs the blocks of an execution on several threads.
//!
//! [`Threads`] runs numbered blocks on the library's own team or on the caller's pool. An operation defines its blocks;
//! a block's result must not depend on the thread that runs it. The body of a block sets the floating-point environment
//! itself. If a thread cannot be started, the others do its work.

mod board;
mod body;
mod caller;
mod count;
mod crew;
mod event_count;
mod job;
mod policy;
mod processors;
mod share;
mod slot;
mod sync;
mod team;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use body::Body;
pub(crate) use caller::{CallerPool, ParallelFor};
pub(crate) use count::{MAX_THREADS, default_threads, most_threads, set_threads, threads};
pub(crate) use crew::{Crew, Member};
pub(crate) use job::Length;
pub(crate) use slot::Slot;

/// The most tasks of a [`Crew`].
pub(crate) const MAX_TASKS: usize = share::MAX_BLOCKS;

/// The threads that an execution uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threads {
    Library,
    Caller(CallerPool),
}

impl Threads {
    /// The number of threads available to an execution.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Library => threads(),
            Self::Caller(pool) => pool.threads,
        }
    }

    /// Runs `body(0)` to `body(blocks - 1)`, each once, on at most `width` threads including the
    /// calling one. Returns the number of threads that ran a block, after all blocks have finished.
    #[inline]
    pub(crate) fn run(&self, blocks: usize, width: usize, length: Length, body: Body<'_>) -> usize {
        let width = width.min(blocks);
        if width <= 1 {
            (0..blocks).for_each(|block| body.run(block));
            return blocks.min(1);
        }
        match self {
            Self::Library => team::run(blocks, width, length, body),
            Self::Caller(pool) => pool.run(blocks, width, body),
        }
    }
}
