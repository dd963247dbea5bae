//! Holds one job at a time: publishes it, hands out its blocks and counts their completion.

use super::body::Body;
use super::job::MAX_SHARES;
use super::share::{MAX_BLOCKS, Share, own_share, shares};
use super::sync::{
    AtomicBool, AtomicPtr, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, SpinBudget, spin_loop,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// A job and its free seats in one word: generation (upper 32 bits), width (16 bits), free seats
/// (16 bits). The job's shares have the same generation.
#[derive(Clone, Copy)]
struct Job(u64);

impl Job {
    fn new(generation: u32, width: usize) -> Self {
        // The caller has a seat from the start.
        Self(u64::from(generation) << 32 | (width as u64) << 16 | (width as u64 - 1))
    }
    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
    fn width(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }
    fn seats(self) -> u64 {
        self.0 & 0xffff
    }
    fn take_seat(self) -> Self {
        Self(self.0 - 1)
    }
}

/// Maximum number of threads per job.
pub(super) const MAX_WIDTH: usize = super::MAX_THREADS;
const _: () = assert!(MAX_WIDTH < 1 << 16);

/// A job's progress in one word: unfinished blocks (lower 32 bits), threads that ran a block, and
/// the top bit, set while the caller sleeps until the last block finishes.
#[derive(Clone, Copy)]
struct Progress(u64);

impl Progress {
    const ONE_THREAD: u64 = 1 << 32;
    const CALLER_SLEEPS: u64 = 1 << 63;

    fn blocks_left(self) -> u64 {
        self.0 & (Self::ONE_THREAD - 1)
    }
    fn threads(self) -> usize {
        ((self.0 & !Self::CALLER_SLEEPS) / Self::ONE_THREAD) as usize
    }
    fn caller_sleeps(self) -> bool {
        self.0 & Self::CALLER_SLEEPS != 0
    }
}
const _: () = assert!((MAX_BLOCKS as u64) < Progress::ONE_THREAD);

/// A share on its own cache line, so that claiming a block does not disturb other threads.
#[repr(align(64))]
struct PaddedShare(AtomicU64);

#[repr(align(128))]
pub(crate) struct Slot {
    taken: AtomicBool,
    panicked: AtomicBool,
    /// The words of the body.
    body: [AtomicPtr<()>; 2],
    job: AtomicU64,
    progress: AtomicU64,
    lock: Mutex<()>,
    all_done: Condvar,
    shares: [PaddedShare; MAX_SHARES],
}

/// The outcome of a job.
pub(super) struct Outcome {
    /// The number of threads that ran a block.
    pub(super) threads: usize,
    pub(super) panicked: bool,
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            body: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            job: AtomicU64::new(Job::new(0, 1).0),
            progress: AtomicU64::new(0),
            lock: Mutex::new(()),
            all_done: Condvar::new(),
            shares: std::array::from_fn(|_| PaddedShare(AtomicU64::new(0))),
        }
    }

    /// Reserves the slot for a job. False if it is in use.
    pub(super) fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire)
    }

    /// Publishes a job in a reserved slot, calls `announce` to announce it, runs blocks, waits for the
    /// blocks that other threads have claimed, and frees the slot.
    pub(super) fn run(
        &self,
        blocks: usize,
        width: usize,
        body: Body<'_>,
        announce: impl FnOnce(),
    ) -> Outcome {
        let job = self.publish(blocks, width, body);
        announce();
        self.work_on(job, 0, true);
        let threads = self.wait().threads();
        let panicked = self.panicked.load(Ordering::Relaxed);
        self.taken.store(false, Ordering::Release);
        Outcome { threads, panicked }
    }

    /// Writes a job. The previous job's shares are empty, so a thread that still looks for that job
    /// claims nothing in the meantime. A thread that sees this job also sees everything written
    /// before it.
    fn publish(&self, blocks: usize, width: usize, body: Body<'_>) -> Job {
        let last = Job(self.job.load(Ordering::Relaxed)).generation();
        let job = Job::new(last.wrapping_add(1), width);
        for (word, value) in self.body.iter().zip(body.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.progress.store(blocks as u64, Ordering::Relaxed);
        self.panicked.store(false, Ordering::Relaxed);
        let count = shares(width);
        for (index, line) in self.shares[..count].iter().enumerate() {
            let share = Share::new(job.generation(), blocks, count, index);
            line.0.store(share.0, Ordering::Relaxed);
        }
        self.job.store(job.0, Ordering::Release);
        job
    }

    /// Joins the current job as worker number `worker` (from 1) and runs blocks until none is left.
    /// Returns whether this worker ran a block; it runs none if the job has no free seat.
    pub(super) fn help(&self, worker: usize) -> bool {
        if !self.taken.load(Ordering::Relaxed) {
            return false;
        }
        let job = Job(self.job.load(Ordering::Acquire));
        self.work_on(job, own_share(worker, job.width()), false)
    }

    /// Claims and runs blocks until none is left, starting with share `own`. Returns whether this
    /// thread ran a block.
    fn work_on(&self, job: Job, own: usize, is_caller: bool) -> bool {
        // This job's body, unless it has no unclaimed blocks: then the words may be of later ones.
        let words = [0, 1].map(|word: usize| self.body[word].load(Ordering::Relaxed));
        let (mut has_seat, mut ran) = (is_caller, false);
        let count = shares(job.width());
        for place in own..own + count {
            let line = &self.shares[place % count].0;
            let mut done = 0;
            loop {
                let seen = Share(line.load(Ordering::Relaxed));
                let Some((block, rest)) = seen.claim(job.generation(), place == own) else { break };
                has_seat = has_seat || self.take_seat(job);
                if !has_seat {
                    return false;
                }
                let (relaxed, seen) = (Ordering::Relaxed, seen.0);
                if line.compare_exchange_weak(seen, rest.0, relaxed, relaxed).is_err() {
                    spin_loop();
                    continue;
                }
                // SAFETY: the block is claimed but not finished, so the words are of this job, and the caller waits.
                let run = AssertUnwindSafe(|| unsafe { Body::from_words(words) }.run(block));
                if catch_unwind(run).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
                done += 1;
            }
            if done > 0 {
                self.count(done, !ran);
                ran = true;
            }
        }
        ran
    }

    /// Takes a seat if the slot still holds this job and a seat is free.
    fn take_seat(&self, job: Job) -> bool {
        let (relaxed, mut seen) = (Ordering::Relaxed, self.job.load(Ordering::Relaxed));
        while Job(seen).generation() == job.generation() && Job(seen).seats() > 0 {
            let taken = Job(seen).take_seat().0;
            match self.job.compare_exchange_weak(seen, taken, relaxed, relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Counts blocks that this thread has finished. `first` marks the thread's first count.
    fn count(&self, blocks: u64, first: bool) {
        let threads = if first { Progress::ONE_THREAD } else { 0 };
        // Release ordering makes the blocks' writes visible to the caller that reads the count.
        let change = threads.wrapping_sub(blocks);
        let before = Progress(self.progress.fetch_add(change, Ordering::Release));
        if before.caller_sleeps() && before.blocks_left() == blocks {
            // The caller holds the lock from setting its bit until it waits.
            drop(self.lock());
            self.all_done.notify_one();
        }
    }

    /// Waits until every block has finished. All of them are claimed, so all of them are running.
    fn wait(&self) -> Progress {
        let mut budget = None;
        loop {
            let progress = Progress(self.progress.load(Ordering::Acquire));
            if progress.blocks_left() == 0 {
                return progress;
            }
            if budget.get_or_insert_with(SpinBudget::new).is_spent() {
                return self.sleep();
            }
        }
    }

    fn sleep(&self) -> Progress {
        let mut guard = self.lock();
        let flag = Progress::CALLER_SLEEPS;
        let mut progress = Progress(self.progress.fetch_or(flag, Ordering::Acquire));
        while progress.blocks_left() > 0 {
            guard = self.all_done.wait(guard).unwrap_or_else(PoisonError::into_inner);
            progress = Progress(self.progress.load(Ordering::Acquire));
        }
        drop(guard);
        progress
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
