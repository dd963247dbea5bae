//! A place where one job at a time is published, its blocks are claimed and their ends are counted.

use super::Body;
use super::sync::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, Patience,
    spin_loop,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// A job's progress in one word, so that one compare-and-swap claims a block of this very job:
/// generation in the upper 32 bits, then threads that take part (8), then the next block (24).
#[derive(Clone, Copy, PartialEq)]
struct Progress(u64);

impl Progress {
    const BLOCK_BITS: u32 = 24;
    const THREAD_BITS: u32 = 8;

    fn next_block(self) -> usize {
        (self.0 & ((1 << Self::BLOCK_BITS) - 1)) as usize
    }
    fn threads(self) -> usize {
        (self.0 >> Self::BLOCK_BITS & ((1 << Self::THREAD_BITS) - 1)) as usize
    }
    fn generation(self) -> u64 {
        self.0 >> (Self::BLOCK_BITS + Self::THREAD_BITS)
    }
    /// A job that is being written: it has no block to claim, whatever its number of blocks.
    fn closed(generation: u64) -> Self {
        Self(Self::begin(generation).0 | ((1 << Self::BLOCK_BITS) - 1))
    }
    /// A job of which no block is claimed; its caller takes part from the start, so that it always can.
    fn begin(generation: u64) -> Self {
        Self(generation << (Self::BLOCK_BITS + Self::THREAD_BITS) | 1 << Self::BLOCK_BITS)
    }
    fn claimed(self, joins: bool) -> Self {
        Self(self.0 + 1 + (u64::from(joins) << Self::BLOCK_BITS))
    }
}

/// The most blocks and threads that a job's progress can count.
pub(super) const MAX_BLOCKS: usize = (1 << Progress::BLOCK_BITS) - 2;
pub(super) const MAX_WIDTH: usize = super::MAX_THREADS;
const _: () = assert!(MAX_WIDTH < 1 << Progress::THREAD_BITS);

/// In the count of blocks that are done: the caller sleeps until the last one is.
const CALLER_SLEEPS: usize = 1 << (usize::BITS - 1);
const _: () = assert!(MAX_BLOCKS < CALLER_SLEEPS);

#[repr(align(128))]
pub(super) struct Slot {
    taken: AtomicBool,
    progress: AtomicU64,
    blocks: AtomicUsize,
    width: AtomicUsize,
    body: AtomicPtr<()>,
    done: AtomicUsize,
    panicked: AtomicBool,
    lock: Mutex<()>,
    all_done: Condvar,
}

/// How a job went.
pub(super) struct Outcome {
    /// Threads that ran a block.
    pub(super) threads: usize,
    pub(super) panicked: bool,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            blocks: AtomicUsize::new(0),
            width: AtomicUsize::new(0),
            body: AtomicPtr::new(std::ptr::null_mut()),
            done: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            lock: Mutex::new(()),
            all_done: Condvar::new(),
        }
    }

    /// Takes the slot for a job; false if another has it.
    pub(super) fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire)
    }

    /// Publishes a job in a slot that was taken, lets `ring` tell of it, takes part, waits for the
    /// blocks that others have claimed, and gives the slot back.
    pub(super) fn run(
        &self,
        blocks: usize,
        width: usize,
        body: Body<'_>,
        ring: impl FnOnce(),
    ) -> Outcome {
        // The body is a fat reference on this stack frame; the slot carries the frame's address.
        let context: *const Body<'_> = &raw const body;
        self.publish(blocks, width, context.cast());
        ring();
        let caller_worked = self.work_on(true);
        self.wait(blocks);
        let threads = Progress(self.progress.load(Ordering::Relaxed)).threads();
        let panicked = self.panicked.load(Ordering::Relaxed);
        self.taken.store(false, Ordering::Release);
        Outcome { threads: if caller_worked { threads } else { threads - 1 }, panicked }
    }

    /// Writes a job. It is closed while its parts are written: a thread that reads a new part has to see
    /// that, so its claim of what it saw before fails.
    fn publish(&self, blocks: usize, width: usize, body: *const ()) {
        let last = Progress(self.progress.load(Ordering::Relaxed)).generation();
        let generation = (last + 1) & 0xffff_ffff;
        self.progress.store(Progress::closed(generation).0, Ordering::Relaxed);
        self.body.store(body.cast_mut(), Ordering::Release);
        self.width.store(width, Ordering::Release);
        self.blocks.store(blocks, Ordering::Release);
        self.done.store(0, Ordering::Relaxed);
        self.panicked.store(false, Ordering::Relaxed);
        self.progress.store(Progress::begin(generation).0, Ordering::Release);
    }

    /// Claims and runs blocks until none is left; says whether there was one.
    pub(super) fn work_on(&self, is_caller: bool) -> bool {
        let mut joined = None;
        loop {
            let seen = Progress(self.progress.load(Ordering::Acquire));
            let joins = !is_caller && joined != Some(seen.generation());
            let blocks = self.blocks.load(Ordering::Acquire);
            let full = joins && seen.threads() >= self.width.load(Ordering::Acquire);
            if seen.next_block() >= blocks || full {
                return joined.is_some();
            }
            // Read before the claim: if the claim succeeds, the job is still the one that was seen,
            // and its caller waits for the block.
            let context = self.body.load(Ordering::Acquire);
            let claim = self.progress.compare_exchange_weak(
                seen.0,
                seen.claimed(joins).0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if claim.is_err() {
                spin_loop();
                continue;
            }
            joined = Some(seen.generation());
            // SAFETY: the block is claimed and not done, so the caller's frame is alive.
            let run = AssertUnwindSafe(|| unsafe { call_body(context, seen.next_block()) });
            if catch_unwind(run).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            // What the block wrote is the caller's once it has seen the count.
            let before = self.done.fetch_add(1, Ordering::Release);
            if before == CALLER_SLEEPS | (blocks - 1) {
                // The caller holds the lock from its sign until it waits.
                drop(self.lock());
                self.all_done.notify_one();
            }
        }
    }

    /// Waits until every block is done. All are claimed, so each is being run.
    fn wait(&self, blocks: usize) {
        let mut patience = Patience::new();
        while self.done.load(Ordering::Acquire) != blocks {
            if patience.ends() {
                return self.sleep(blocks);
            }
        }
    }

    fn sleep(&self, blocks: usize) {
        let mut guard = self.lock();
        let mut done = self.done.fetch_or(CALLER_SLEEPS, Ordering::Acquire);
        while done & !CALLER_SLEEPS != blocks {
            guard = self.all_done.wait(guard).unwrap_or_else(PoisonError::into_inner);
            done = self.done.load(Ordering::Acquire);
        }
        drop(guard);
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Safety
/// `context` is the address of a `Body` that is alive.
unsafe fn call_body(context: *const (), block: usize) {
    // SAFETY: the caller's; the lifetime is only as long as this call.
    let body: Body<'_> = unsafe { *context.cast::<Body<'_>>() };
    body(block);
}
