//! Runs the blocks of an execution on several threads.
//!
//! [`Threads`] runs numbered blocks on the library's own team or on the caller's pool. An operation
//! defines its blocks; a block's result must not depend on the thread that runs it. This module
//! imports nothing else from the library. The body of a block sets the floating-point environment
//! itself.

mod board;
mod count;
mod event_count;
mod policy;
mod share;
mod slot;
mod sync;
mod team;
#[cfg(test)]
mod tests;

pub(crate) use count::{MAX_THREADS, default_threads, set_threads, threads};

use norm_sys as sys;
use std::os::raw::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of shares per job. A thread that finds no work has scanned every share, and each
/// share is on its own cache line. Jobs with more threads share the shares.
const MAX_SHARES: usize = 32;

/// Whether a job runs longer than it takes to wake a sleeping thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Short,
    Long,
}

/// The work of a job, called once per block.
pub(crate) type Body<'a> = &'a (dyn Fn(usize) + Sync);

/// `norm_parallel_for_t`, not NULL.
type ParallelFor = unsafe extern "C" fn(
    pool: *mut c_void,
    count: c_int,
    body: sys::norm_parallel_body_t,
    context: *mut c_void,
);

/// The caller's thread pool, as registered with a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerPool {
    pub(crate) parallel_for: ParallelFor,
    pub(crate) pool: *mut c_void,
    pub(crate) threads: usize,
}

// SAFETY: the pool pointer is only passed back to the caller's function, which the header requires
// to work from any thread that executes on the stream.
unsafe impl Send for CallerPool {}
// SAFETY: as above.
unsafe impl Sync for CallerPool {}

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
            (0..blocks).for_each(body);
            return blocks.min(1);
        }
        match self {
            Self::Library => team::run(blocks, width, length, body),
            Self::Caller(pool) => run_on_caller_pool(pool, blocks, width, body),
        }
    }
}

/// The context passed to the callback.
struct CallerJob<'a> {
    body: Body<'a>,
    blocks: usize,
    next: AtomicUsize,
    ran: AtomicUsize,
    panicked: AtomicBool,
}

/// Submits `width` pieces to the caller's pool. Each piece claims blocks until none is left. Blocks
/// stay small for load balance while the number of callbacks stays low.
fn run_on_caller_pool(pool: &CallerPool, blocks: usize, width: usize, body: Body<'_>) -> usize {
    unsafe extern "C" fn piece(_index: c_int, context: *mut c_void) {
        // SAFETY: `context` is the job below, which outlives the call to `parallel_for`.
        let job = unsafe { &*context.cast::<CallerJob<'_>>() };
        let mut first = true;
        loop {
            let block = job.next.fetch_add(1, Ordering::Relaxed);
            if block >= job.blocks {
                return;
            }
            if std::mem::take(&mut first) {
                job.ran.fetch_add(1, Ordering::Relaxed);
            }
            if catch_unwind(AssertUnwindSafe(|| (job.body)(block))).is_err() {
                job.panicked.store(true, Ordering::Relaxed);
            }
        }
    }
    let job = CallerJob {
        body,
        blocks,
        next: AtomicUsize::new(0),
        ran: AtomicUsize::new(0),
        panicked: AtomicBool::new(false),
    };
    // SAFETY: the caller registered the function and its pool together, and the job outlives the
    // call.
    unsafe {
        (pool.parallel_for)(
            pool.pool,
            width as c_int,
            Some(piece),
            (&raw const job).cast_mut().cast(),
        );
    }
    if job.panicked.load(Ordering::Relaxed) {
        resume_unwind(Box::new("a block panicked on the caller's pool"));
    }
    job.ran.load(Ordering::Relaxed)
}
