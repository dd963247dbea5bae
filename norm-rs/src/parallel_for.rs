//! The caller's threads behind C's `parallel_for` callback.
//!
//! The C library requires the callback to run each piece exactly once. A safe closure does not
//! guarantee that, and two threads in one piece would race. Every piece is therefore claimed before
//! it runs, and leftover pieces run at the end.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use norm_sys as sys;

/// The caller's closure: runs `body` for each index below the count.
pub(crate) type ParallelFor<'p> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Send + Sync + 'p;

/// The payload of a panic.
type Payload = Box<dyn Any + Send>;

/// The caller's closure, and the payload of its panic, if any.
pub(crate) struct Pool<'p> {
    parallel_for: Box<ParallelFor<'p>>,
    panic: Mutex<Option<Payload>>,
}

impl<'p> Pool<'p> {
    pub(crate) fn new(parallel_for: Box<ParallelFor<'p>>) -> Self {
        Self { parallel_for, panic: Mutex::new(None) }
    }

    /// The payload of a panic since the last call.
    pub(crate) fn take_panic(&self) -> Option<Payload> {
        self.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    /// Runs `piece` for each index below `count`, exactly once, whatever the closure does.
    fn run(&self, count: usize, piece: impl Fn(usize) + Sync) {
        let claims = Claims::new(count);
        let once = |index| {
            if claims.claim(index) {
                piece(index);
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.parallel_for)(count, &once)));
        (0..count).for_each(once);
        if let Err(payload) = outcome {
            *self.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(payload);
        }
    }
}

/// C's callback (`norm_parallel_for_t`).
///
/// # Safety
/// `pool` points to a [`Pool`]. Until this function returns, `body` may be called from any thread,
/// once for each index below `count`.
pub(crate) unsafe extern "C" fn run_on_pool(
    pool: *mut c_void,
    count: c_int,
    body: sys::norm_parallel_body_t,
    body_context: *mut c_void,
) {
    struct Context(*mut c_void);
    // SAFETY: a norm_parallel_body_t may be called on any thread with its context.
    unsafe impl Sync for Context {}
    impl Context {
        fn get(&self) -> *mut c_void {
            self.0
        }
    }

    let (Some(body), Ok(count)) = (body, usize::try_from(count)) else { return };
    let context = Context(body_context);
    // SAFETY: the stream that registered the pool keeps it alive while it executes.
    let pool = unsafe { &*pool.cast_const().cast::<Pool<'_>>() };
    // SAFETY: `run` hands out each index below `count` once and returns after all calls have
    // returned, because the closure borrows `body` only for the call. The index fits: it is less
    // than a c_int.
    pool.run(count, |index| unsafe { body(index as c_int, context.get()) });
}

/// One bit per piece: claimed or not.
struct Claims {
    count: usize,
    /// Enough for all but the largest problems: their executions do not allocate.
    inline: [AtomicU64; Self::INLINE],
    overflow: Vec<AtomicU64>,
}

impl Claims {
    const INLINE: usize = 16;

    fn new(count: usize) -> Self {
        let words = count.div_ceil(64);
        Self {
            count,
            inline: [const { AtomicU64::new(0) }; Self::INLINE],
            overflow: (Self::INLINE..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Claims a piece. True for the first caller, false for later ones and for an index out of
    /// range.
    fn claim(&self, index: usize) -> bool {
        if index >= self.count {
            return false;
        }
        let (word, bit) = (index / 64, 1 << (index % 64));
        let word = match self.inline.get(word) {
            Some(word) => word,
            None => &self.overflow[word - Self::INLINE],
        };
        // Relaxed: the bit guards no data; it only decides who runs the piece.
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Runs a pool over 3000 pieces (more than the inline claims) and checks that each ran once.
    fn each_runs_once(parallel_for: Box<ParallelFor<'_>>) -> Option<Payload> {
        let count = 3000;
        let runs: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let pool = Pool::new(parallel_for);
        pool.run(count, |index| {
            runs[index].fetch_add(1, Ordering::Relaxed);
        });
        for (index, runs) in runs.iter().enumerate() {
            assert_eq!(runs.load(Ordering::Relaxed), 1, "piece {index}");
        }
        pool.take_panic()
    }

    #[test]
    fn a_correct_pool_runs_each_piece_once() {
        assert!(each_runs_once(Box::new(|count, body| (0..count).for_each(body))).is_none());
    }

    #[test]
    fn a_pool_that_repeats_and_exceeds_runs_each_piece_once() {
        let everything_twice = |count, body: &(dyn Fn(usize) + Sync)| {
            std::thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(|| (0..count + 100).for_each(body));
                }
            });
        };
        assert!(each_runs_once(Box::new(everything_twice)).is_none());
    }

    #[test]
    fn a_pool_that_does_nothing_runs_each_piece_once() {
        assert!(each_runs_once(Box::new(|_, _| ())).is_none());
    }

    #[test]
    fn a_pool_that_panics_runs_each_piece_once_and_the_panic_is_kept() {
        let payload = each_runs_once(Box::new(|count, body| {
            (0..count / 2).for_each(body);
            panic!("the pool is empty");
        }));
        let payload = payload.expect("a panic");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"the pool is empty"));
    }
}
