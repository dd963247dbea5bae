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
const MAX_BLOCKS: usize = (1 << Progress::BLOCK_BITS) - 2;
const MAX_WIDTH: usize = super::MAX_THREADS;
const _: () = assert!(MAX_WIDTH < 1 << Progress::THREAD_BITS);

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
    /// What was asked for when workers were last started, be it had or not.
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
    let team = Team::get();
    team.grow(width - 1);
    let free = |slot: &&Slot| !slot.taken.swap(true, Ordering::Acquire);
    // A slot is taken only if the job fits its progress.
    let slot = if blocks <= MAX_BLOCKS { team.slots.iter().find(free) } else { None };
    let Some(slot) = slot else {
        (0..blocks).for_each(body);
        return 1;
    };

    // The body is a fat reference on this stack frame; the slot carries the frame's address.
    let context: *const Body<'_> = &raw const body;
    slot.publish(blocks, width, context.cast());
    team.wake(width - 1);

    let caller_worked = slot.work_on(true);
    slot.wait();
    let threads = Progress(slot.progress.load(Ordering::Relaxed)).threads();
    let panicked = slot.panicked.load(Ordering::Relaxed);
    slot.taken.store(false, Ordering::Release);
    if panicked {
        resume_unwind(Box::new("a block panicked on a worker"));
    }
    if caller_worked { threads } else { threads - 1 }
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

    /// Writes a job. It is closed while its parts are written: a worker that reads a new part has to see
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
    fn work_on(&self, is_caller: bool) -> bool {
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
    /// This process's team, made on first use.
    fn get() -> &'static Self {
        let team = TEAM.load(Ordering::Acquire);
        if !team.is_null() {
            // SAFETY: a team is never freed.
            return unsafe { &*team };
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
            Ok(_) => unsafe { &*fresh },
            Err(published) => {
                // SAFETY: nobody else has seen this one.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: a published team is never freed.
                unsafe { &*published }
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
        let signals = BlockedSignals::new();
        while *workers < count {
            let name = format!("norm-{}", *workers + 1);
            let worker = std::thread::Builder::new().name(name).spawn(|| self.serve());
            if worker.is_err() {
                break;
            }
            *workers += 1;
        }
        drop(signals);
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while *begun < *workers {
            begun = self.one_more.wait(begun).unwrap_or_else(PoisonError::into_inner);
        }
        drop(begun);
        self.worker_count.store(count, Ordering::Relaxed);
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
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.one_more.notify_one();
        let mut idle_since = Instant::now();
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let mut worked = false;
            for slot in &self.slots {
                worked |= slot.work_on(false);
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

/// Keeps signals from the threads that are started while this lives: they are for the program's own.
/// Those that a thread causes itself stay, so that the program hears of a fault.
struct BlockedSignals {
    #[cfg(unix)]
    previous: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> Self {
        #[cfg(unix)]
        // SAFETY: both sets are initialised before they are read.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut previous: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut set);
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
                libc::sigdelset(&raw mut set, own);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut previous);
            Self { previous }
        }
        #[cfg(not(unix))]
        Self {}
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: the mask that was in force.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.previous,
                std::ptr::null_mut(),
            );
        }
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

    /// A slot that is used again for a larger job gives no block of it away before it is written.
    #[test]
    fn jobs_of_changing_size_run_every_block_once() {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..4000 {
                        let blocks = if round % 2 == 0 { 2 } else { 200 };
                        let counts: Vec<AtomicUsize> =
                            (0..blocks).map(|_| AtomicUsize::new(0)).collect();
                        run(blocks, 2 + round % 3, &|block| {
                            counts[block].fetch_add(1, Ordering::Relaxed);
                        });
                        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
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
