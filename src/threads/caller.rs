//! Runs blocks on the caller's thread pool.

use super::body::Body;
use norm_sys as sys;
use std::os::raw::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// `norm_parallel_for_t`, not NULL. If an exception leaves it, the process ends in a defined way; this is the only
/// option while pieces are still running.
pub(crate) type ParallelFor = unsafe extern "C-unwind" fn(
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

/// The context passed to the callback.
struct Job<'a> {
    body: Body<'a>,
    blocks: usize,
    next: AtomicUsize,
    ran: AtomicUsize,
    panicked: AtomicBool,
}

impl Job<'_> {
    /// Claims blocks until none is left.
    fn work(&self) {
        let mut first = true;
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= self.blocks {
                return;
            }
            if std::mem::take(&mut first) {
                self.ran.fetch_add(1, Ordering::Relaxed);
            }
            if catch_unwind(AssertUnwindSafe(|| self.body.run(block))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl CallerPool {
    /// Submits `width` pieces. Each claims blocks until none is left, so that blocks stay small for
    /// load balance while the number of callbacks stays low. Blocks that no piece has claimed run
    /// here: a pool that drops pieces leaves no rows out.
    pub(super) fn run(&self, blocks: usize, width: usize, body: Body<'_>) -> usize {
        unsafe extern "C" fn piece(_index: c_int, context: *mut c_void) {
            // SAFETY: `context` is the job below, which outlives the call to `parallel_for`.
            unsafe { &*context.cast::<Job<'_>>() }.work();
        }
        let job = Job {
            body,
            blocks,
            next: AtomicUsize::new(0),
            ran: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
        };
        let cancellation = Uncancelled::enter();
        // SAFETY: the caller registered the function and its pool together, and the job outlives
        // the call.
        unsafe {
            (self.parallel_for)(
                self.pool,
                width as c_int,
                Some(piece),
                (&raw const job).cast_mut().cast(),
            );
        }
        drop(cancellation);
        job.work();
        if job.panicked.load(Ordering::Relaxed) {
            resume_unwind(Box::new("a block panicked on the caller's pool"));
        }
        job.ran.load(Ordering::Relaxed)
    }
}

/// While it lives, pthread_cancel() of this thread waits: a cancellation would unwind this
/// library's frames, which ends the process, while other threads still run pieces.
struct Uncancelled {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    previous: c_int,
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod cancellation {
    use std::os::raw::c_int;

    pub(super) const DISABLED: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };

    unsafe extern "C" {
        pub(super) fn pthread_setcancelstate(state: c_int, previous: *mut c_int) -> c_int;
    }
}

impl Uncancelled {
    fn enter() -> Self {
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        {
            let mut previous = 0;
            // SAFETY: the previous state is written.
            unsafe {
                cancellation::pthread_setcancelstate(cancellation::DISABLED, &raw mut previous);
            }
            Self { previous }
        }
        #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
        Self {}
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        // SAFETY: the state was read from the system.
        unsafe {
            let mut ignored = 0;
            cancellation::pthread_setcancelstate(self.previous, &raw mut ignored);
        }
    }
}
