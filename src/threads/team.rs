//! The library's own threads.
//!
//! An execution publishes a job in a slot; whoever runs claims its blocks, the caller included. The
//! caller returns when every claimed block is done: it never waits for a thread that has claimed
//! none, so a worker that the scheduler has not run yet costs nothing. Workers look for work a short
//! while after their last block and then sleep.
//!
//! Publishing, claiming and finishing allocate nothing. Slots live in a team that is never freed, so
//! a worker that wakes late reads valid memory and finds nothing to claim. A child of fork() has none
//! of the workers; it starts a team of its own.

use super::Body;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Jobs that can be in flight at once; an execution that finds no free slot runs on its own thread.
const SLOTS: usize = 16;
/// How long a worker without work keeps looking before it sleeps. Longer than the gap between two
/// executions of a program that does little else, far shorter than a scheduler's slice.
const LOOK_FOR: Duration = Duration::from_micros(50);
/// Checks between two readings of the clock while looking.
const LOOKS: usize = 64;

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
    fn begin(generation: u64) -> Self {
        Self(generation << (Self::BLOCK_BITS + Self::THREAD_BITS))
    }
    fn claimed(self, joins: bool) -> Self {
        Self(self.0 + 1 + (u64::from(joins) << Self::BLOCK_BITS))
    }
}

/// The most blocks and threads that a job's progress can count.
const MAX_BLOCKS: usize = (1 << Progress::BLOCK_BITS) - 1;
const MAX_WIDTH: usize = (1 << Progress::THREAD_BITS) - 1;

/// Where a job is published.
#[repr(align(128))]
struct Slot {
    taken: AtomicBool,
    progress: AtomicU64,
    blocks: AtomicUsize,
    width: AtomicUsize,
    body: AtomicPtr<()>,
    done: AtomicUsize,
    panicked: AtomicBool,
    /// Whether the caller sleeps until the last block is done.
    caller_sleeps: AtomicBool,
    lock: Mutex<()>,
    all_done: Condvar,
}

struct Team {
    slots: [Slot; SLOTS],
    /// Workers that exist.
    workers: Mutex<usize>,
    worker_count: AtomicUsize,
    /// Grows with every job, so that a worker about to sleep notices a new one.
    epoch: AtomicUsize,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    work: Condvar,
    /// Workers that have come to look for work, and the sign that one more has.
    begun: Mutex<usize>,
    one_more: Condvar,
}

static TEAM: AtomicPtr<Team> = AtomicPtr::new(std::ptr::null_mut());

/// Runs the blocks on the team; see [`super::Threads::run`].
pub(super) fn run(blocks: usize, width: usize, body: Body<'_>) -> usize {
    let width = width.min(MAX_WIDTH);
    let Some(team) = Team::get().filter(|_| blocks <= MAX_BLOCKS) else {
        (0..blocks).for_each(body);
        return 1;
    };
    team.grow(width - 1);
    let Some(slot) = team.slots.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire))
    else {
        (0..blocks).for_each(body);
        return 1;
    };

    // The body is a fat reference on this stack frame; the slot carries the frame's address.
    let context: *const Body<'_> = &raw const body;
    slot.body.store(context.cast_mut().cast(), Ordering::Relaxed);
    slot.blocks.store(blocks, Ordering::Relaxed);
    slot.width.store(width, Ordering::Relaxed);
    slot.done.store(0, Ordering::Relaxed);
    slot.panicked.store(false, Ordering::Relaxed);
    let generation = Progress(slot.progress.load(Ordering::Relaxed)).generation() + 1;
    slot.progress.store(Progress::begin(generation & 0xffff_ffff).0, Ordering::Release);
    team.wake(width - 1);

    slot.work_on();
    slot.wait();
    let threads = Progress(slot.progress.load(Ordering::Relaxed)).threads();
    let panicked = slot.panicked.load(Ordering::Relaxed);
    slot.taken.store(false, Ordering::Release);
    if panicked {
        resume_unwind(Box::new("a block panicked on a worker"));
    }
    threads
}

/// # Safety
/// `context` is the address of a `Body` that is alive.
unsafe fn call_body(context: *const (), block: usize) {
    // SAFETY: the caller's; the lifetime is only as long as this call.
    let body: Body<'_> = unsafe { *context.cast::<Body<'_>>() };
    body(block);
}

impl Slot {
    fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            blocks: AtomicUsize::new(0),
            width: AtomicUsize::new(0),
            body: AtomicPtr::new(std::ptr::null_mut()),
            done: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            caller_sleeps: AtomicBool::new(false),
            lock: Mutex::new(()),
            all_done: Condvar::new(),
        }
    }

    /// Claims and runs blocks until none is left; says whether there was one.
    fn work_on(&self) -> bool {
        let mut joined = None;
        loop {
            let seen = Progress(self.progress.load(Ordering::Acquire));
            let joins = joined != Some(seen.generation());
            let blocks = self.blocks.load(Ordering::Relaxed);
            let full = joins && seen.threads() >= self.width.load(Ordering::Relaxed);
            if seen.next_block() >= blocks || full {
                return joined.is_some();
            }
            // Read before the claim: if the claim succeeds, the job is still the one that was seen,
            // and its caller waits for the block.
            let context = self.body.load(Ordering::Relaxed);
            let claim = self.progress.compare_exchange_weak(
                seen.0,
                seen.claimed(joins).0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if claim.is_err() {
                std::hint::spin_loop();
                continue;
            }
            joined = Some(seen.generation());
            // SAFETY: the block is claimed and not done, so the caller's frame is alive.
            let run = AssertUnwindSafe(|| unsafe { call_body(context, seen.next_block()) });
            if catch_unwind(run).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.done.fetch_add(1, Ordering::SeqCst) + 1 == blocks
                && self.caller_sleeps.load(Ordering::SeqCst)
            {
                // The lock orders this behind the caller's check; the slot outlives everything.
                drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
                self.all_done.notify_one();
            }
        }
    }

    /// Waits until every block is done. All are claimed, so each is being run.
    fn wait(&self) {
        let blocks = self.blocks.load(Ordering::Relaxed);
        let is_done = || self.done.load(Ordering::SeqCst) == blocks;
        let begin = Instant::now();
        while begin.elapsed() < LOOK_FOR {
            for _ in 0..LOOKS {
                if is_done() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.caller_sleeps.store(true, Ordering::SeqCst);
        while !is_done() {
            guard = self.all_done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

impl Team {
    /// This process's team, made on first use; `None` if there is no memory for it.
    fn get() -> Option<&'static Self> {
        let team = TEAM.load(Ordering::Acquire);
        if !team.is_null() {
            // SAFETY: a team is never freed.
            return Some(unsafe { &*team });
        }
        forget_team_in_children();
        let fresh = Box::into_raw(Box::new(Self {
            slots: std::array::from_fn(|_| Slot::new()),
            workers: Mutex::new(0),
            worker_count: AtomicUsize::new(0),
            epoch: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            work: Condvar::new(),
            begun: Mutex::new(0),
            one_more: Condvar::new(),
        }));
        match TEAM.compare_exchange(
            std::ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            // SAFETY: a team is never freed once published.
            Ok(_) => Some(unsafe { &*fresh }),
            Err(published) => {
                // SAFETY: nobody else has seen this one.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: a published team is never freed.
                Some(unsafe { &*published })
            }
        }
    }

    /// Starts workers until there are `count`, and waits until they have begun: a thread allocates as it
    /// starts, and no later execution may. If the system gives none, fewer do the work.
    fn grow(&'static self, count: usize) {
        if self.worker_count.load(Ordering::Relaxed) >= count {
            return;
        }
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        while *workers < count {
            let name = format!("norm-{}", *workers + 1);
            let worker = std::thread::Builder::new().name(name).spawn(|| self.serve());
            if worker.is_err() {
                break;
            }
            *workers += 1;
        }
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while *begun < *workers {
            begun = self.one_more.wait(begun).unwrap_or_else(PoisonError::into_inner);
        }
        drop(begun);
        self.worker_count.store(*workers, Ordering::Relaxed);
    }

    /// Lets up to `count` sleeping workers know that there is a job.
    fn wake(&self, count: usize) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::SeqCst);
        if sleepers == 0 {
            return;
        }
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in 0..count.min(sleepers) {
            self.work.notify_one();
        }
    }

    /// A worker's life.
    fn serve(&self) {
        block_signals();
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.one_more.notify_one();
        let mut idle_since = Instant::now();
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let mut worked = false;
            for slot in &self.slots {
                worked |= slot.work_on();
            }
            if worked {
                idle_since = Instant::now();
                continue;
            }
            for _ in 0..LOOKS {
                if self.epoch.load(Ordering::Relaxed) != epoch {
                    break;
                }
                std::hint::spin_loop();
            }
            if self.epoch.load(Ordering::Relaxed) == epoch && idle_since.elapsed() >= LOOK_FOR {
                self.sleep(epoch);
                idle_since = Instant::now();
            }
        }
    }

    /// Sleeps until there is a job newer than `epoch`.
    fn sleep(&self, epoch: usize) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.epoch.load(Ordering::SeqCst) == epoch {
            guard = self.work.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Signals are for the program's own threads.
fn block_signals() {
    #[cfg(unix)]
    // SAFETY: the set is initialised by sigfillset before it is read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// After fork() the child has only the forking thread: it must not wait for workers that are gone, nor
/// touch locks that one of them may have held.
fn forget_team_in_children() {
    #[cfg(unix)]
    {
        extern "C" fn forget() {
            TEAM.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler only stores to an atomic.
            unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_runs_once() {
        for blocks in [1, 2, 7, 64, 1000] {
            for width in [2, 3, 8] {
                let counts: Vec<AtomicUsize> = (0..blocks).map(|_| AtomicUsize::new(0)).collect();
                let threads = run(blocks, width, &|block| {
                    counts[block].fetch_add(1, Ordering::Relaxed);
                });
                assert!((1..=width).contains(&threads), "{threads} of {width}");
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn jobs_from_many_threads_do_not_mix() {
        std::thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let sum = AtomicUsize::new(0);
                        run(10, 3, &|block| {
                            sum.fetch_add(block, Ordering::Relaxed);
                        });
                        assert_eq!(sum.into_inner(), 45);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_lives_on() {
        let caught = catch_unwind(|| run(8, 2, &|block| assert!(block != 5)));
        assert!(caught.is_err());
        let ran = AtomicUsize::new(0);
        run(8, 2, &|_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 8);
    }
}
