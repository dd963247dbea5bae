//! The library's own worker threads, which serve a board of jobs.
//!
//! The team is never freed, so a worker that wakes late reads valid memory and finds nothing to claim. A child of
//! fork() has none of the workers and starts its own team.

use super::board::Board;
use super::body::Body;
use super::job::Length;
use super::policy::StartThrottle;
use super::slot::MAX_WIDTH;
use super::worker::{self, Work};
use crate::fork::in_children;
use crate::heap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Maximum number of jobs in flight.
const SLOTS: usize = 16;

struct Team {
    board: Board<SLOTS>,
    /// The number of workers started.
    workers: Mutex<usize>,
    /// A copy that is read without the lock.
    worker_count: AtomicUsize,
    starts: StartThrottle,
    /// The number of workers that have entered their main loop; `started` signals each.
    running: Mutex<usize>,
    started: Condvar,
}

static TEAM: AtomicPtr<Team> = AtomicPtr::new(std::ptr::null_mut());

/// Runs the blocks on the team; see [`super::Threads::run`].
pub(super) fn run(blocks: usize, width: usize, length: Length, body: Body<'_>) -> usize {
    let width = width.min(MAX_WIDTH);
    let Some(team) = Team::get() else {
        (0..blocks).for_each(|block| body.run(block));
        return 1;
    };
    team.grow(width - 1);
    let outcome = team.board.run(blocks, width, length, body);
    if outcome.panicked {
        resume_unwind(Box::new("a block panicked on a worker"));
    }
    outcome.threads
}

impl Team {
    fn new() -> Self {
        Self {
            board: Board::new(),
            workers: Mutex::new(0),
            worker_count: AtomicUsize::new(0),
            starts: StartThrottle::new(),
            running: Mutex::new(0),
            started: Condvar::new(),
        }
    }

    /// This process's team, created on first use; `None` if the system lacks the memory.
    fn get() -> Option<&'static Self> {
        let team = TEAM.load(Ordering::Acquire);
        if team.is_null() {
            return Self::create();
        }
        // SAFETY: a team is never freed once published.
        Some(unsafe { &*team })
    }

    #[cold]
    fn create() -> Option<&'static Self> {
        if !reset_team_in_children() {
            return None;
        }
        let fresh = Box::into_raw(heap::boxed(Self::new()).ok()?);
        let none = std::ptr::null_mut();
        match TEAM.compare_exchange(none, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: a team is never freed once published.
            Ok(_) => Some(unsafe { &*fresh }),
            Err(published) => {
                // SAFETY: no other thread has seen this one.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: as above.
                Some(unsafe { &*published })
            }
        }
    }

    /// Starts workers until there are `count`, and waits until they run: a starting thread allocates, and later
    /// executions must not. If the system refuses to start more, fewer threads do the work, and a later execution tries
    /// again.
    #[inline]
    fn grow(&'static self, count: usize) {
        if self.worker_count.load(Ordering::Relaxed) < count {
            self.start_workers(count);
        }
    }

    #[cold]
    fn start_workers(&'static self, count: usize) {
        if !self.starts.is_due() {
            return;
        }
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let signals = BlockedSignals::new();
        while *workers < count && worker::start(self) {
            *workers += 1;
        }
        drop(signals);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running < *workers {
            running = self.started.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        drop(running);
        self.worker_count.store(*workers, Ordering::Relaxed);
        if *workers >= count {
            self.starts.helped();
        }
    }
}

impl Work for Team {
    fn work(&'static self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        let number = *running;
        drop(running);
        self.started.notify_all();
        worker::name(number);
        self.board.serve(number, || false);
    }
}

/// Blocks signals while worker threads start, so that the program's own threads handle them.
/// Synchronous faults stay unblocked, so that the program learns of them.
struct BlockedSignals {
    #[cfg(unix)]
    previous: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> Self {
        #[cfg(unix)]
        // SAFETY: both sets are initialized before they are read.
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
        // SAFETY: the mask was read from the system.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.previous,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Makes a child of fork() start its own team: it must not wait for the parent's workers, nor touch
/// locks that they may have held. Returns whether the system agreed.
fn reset_team_in_children() -> bool {
    extern "C" fn forget() {
        TEAM.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    in_children(forget, &REGISTERED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn every_block_runs_once() {
        for blocks in [1, 2, 7, 64, 1000] {
            for width in [2, 3, 8] {
                let counts: Vec<AtomicUsize> = (0..blocks).map(|_| AtomicUsize::new(0)).collect();
                let threads = run(
                    blocks,
                    width,
                    Length::Long,
                    Body::new(&|block| {
                        counts[block].fetch_add(1, Ordering::Relaxed);
                    }),
                );
                assert!((1..=width).contains(&threads), "{threads} of {width}");
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn concurrent_jobs_do_not_mix() {
        std::thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let sum = AtomicUsize::new(0);
                        run(
                            10,
                            3,
                            Length::Short,
                            Body::new(&|block| {
                                sum.fetch_add(block, Ordering::Relaxed);
                            }),
                        );
                        assert_eq!(sum.into_inner(), 45);
                    }
                });
            }
        });
    }

    /// A slot that is reused for a larger job hands out no block before that job is written.
    #[test]
    fn jobs_of_changing_size_run_every_block_once() {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..4000 {
                        let blocks = if round % 2 == 0 { 2 } else { 200 };
                        let counts: Vec<AtomicUsize> =
                            (0..blocks).map(|_| AtomicUsize::new(0)).collect();
                        run(
                            blocks,
                            2 + round % 3,
                            Length::Long,
                            Body::new(&|block| {
                                counts[block].fetch_add(1, Ordering::Relaxed);
                            }),
                        );
                        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_survives() {
        let caught =
            catch_unwind(|| run(8, 2, Length::Long, Body::new(&|block| assert!(block != 5))));
        assert!(caught.is_err());
        let ran = AtomicUsize::new(0);
        run(
            8,
            2,
            Length::Long,
            Body::new(&|_| {
                ran.fetch_add(1, Ordering::Relaxed);
            }),
        );
        assert_eq!(ran.into_inner(), 8);
    }
}
