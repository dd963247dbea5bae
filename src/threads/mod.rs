//! Splitting an execution over threads.
//!
//! [`Threads`] runs numbered blocks on the library's own team or on the caller's pool. What a block is
//! belongs to the operation; its result must not depend on who runs it. Imports nothing of the
//! library: the floating-point environment is the caller's affair, inside the block.

mod bell;
mod board;
mod count;
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

/// The most shares that a job is cut into. Who finds none left has looked at all of them, each on a cache
/// line of its own; beyond, threads have shares in common.
const MAX_SHARES: usize = 32;

/// How long a piece of work takes: whether it lasts until a thread that sleeps has been woken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Short,
    Long,
}

/// A piece of work: called once for each block.
pub(crate) type Body<'a> = &'a (dyn Fn(usize) + Sync);

/// `norm_parallel_for_t`, not NULL.
type ParallelFor = unsafe extern "C" fn(
    pool: *mut c_void,
    count: c_int,
    body: sys::norm_parallel_body_t,
    context: *mut c_void,
);

/// The caller's own pool, as registered with a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerPool {
    pub(crate) parallel_for: ParallelFor,
    pub(crate) pool: *mut c_void,
    pub(crate) threads: usize,
}

// SAFETY: the pool pointer is only handed back to the caller's function, which the header asks to
// work from whatever thread executes on the stream.
unsafe impl Send for CallerPool {}
// SAFETY: as above.
unsafe impl Sync for CallerPool {}

/// Whose threads an execution uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threads {
    Library,
    Caller(CallerPool),
}

impl Threads {
    /// How many threads are worth splitting for.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Library => threads(),
            Self::Caller(pool) => pool.threads,
        }
    }

    /// Runs `body(0)` to `body(blocks - 1)`, each once, on at most `width` threads, the caller's
    /// among them, and gives the number of threads that ran a block. Returns when all have run.
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

/// What the callback gets: the body, and who has run.
struct CallerJob<'a> {
    body: Body<'a>,
    blocks: usize,
    next: AtomicUsize,
    ran: AtomicUsize,
    panicked: AtomicBool,
}

/// The caller's pool is asked for `width` pieces, and each claims blocks until none is left: the
/// blocks stay small for balance, and the callbacks few.
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
    // SAFETY: the function and its pool are the caller's, registered together; the job outlives it.
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
