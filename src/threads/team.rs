//! The library's own threads, which serve a board of jobs.
//!
//! The team is never freed, so a worker that wakes late reads valid memory and finds nothing to claim.
//! A child of fork() has none of the workers; it starts a team of its own.

use super::board::Board;
use super::slot::MAX_WIDTH;
use super::{Body, Length};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Jobs that can be in flight at once.
const SLOTS: usize = 16;

struct Team {
    board: Board<SLOTS>,
    /// Workers that exist.
    workers: Mutex<usize>,
    /// What was asked for when workers were last started, be it had or not.
    worker_count: AtomicUsize,
    /// Workers that have come to look for work, and the sign that one more has.
    begun: Mutex<usize>,
    one_more: Condvar,
}

static TEAM: AtomicPtr<Team> = AtomicPtr::new(std::ptr::null_mut());

/// Runs the blocks on the team; see [`super::Threads::run`].
pub(super) fn run(blocks: usize, width: usize, length: Length, body: Body<'_>) -> usize {
    let width = width.min(MAX_WIDTH);
    let team = Team::get();
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
            begun: Mutex::new(0),
            one_more: Condvar::new(),
        }
    }

    /// This process's team, made on first use.
    fn get() -> &'static Self {
        let team = TEAM.load(Ordering::Acquire);
        if team.is_null() {
            return Self::first();
        }
        // SAFETY: a team is never freed once published.
        unsafe { &*team }
    }

    #[cold]
    fn first() -> &'static Self {
        forget_team_in_children();
        let fresh = Box::into_raw(Box::new(Self::new()));
        let none = std::ptr::null_mut();
        match TEAM.compare_exchange(none, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: a team is never freed once published.
            Ok(_) => unsafe { &*fresh },
            Err(published) => {
                // SAFETY: nobody else has seen this one.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: as above.
                unsafe { &*published }
            }
        }
    }

    /// Starts workers until there are `count`, and waits until they have begun: a thread allocates as it
    /// starts, and no later execution may. If the system gives none, fewer do the work.
    #[inline]
    fn grow(&'static self, count: usize) {
        if self.worker_count.load(Ordering::Relaxed) < count {
            self.start_workers(count);
        }
    }

    #[cold]
    fn start_workers(&'static self, count: usize) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let signals = BlockedSignals::new();
        while *workers < count {
            let number = *workers + 1;
            let thread = std::thread::Builder::new().name(format!("norm-{number}"));
            if thread.spawn(move || self.serve(number)).is_err() {
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
        self.worker_count.fetch_max(count, Ordering::Relaxed);
    }

    fn serve(&self, worker: usize) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.one_more.notify_all();
        self.board.serve(worker, || false);
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
/// touch locks that one of them may have held. Nothing here waits for another thread, which may be
/// gone as well: two that come at once register twice, which does no harm.
fn forget_team_in_children() {
    #[cfg(unix)]
    {
        extern "C" fn forget() {
            TEAM.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        if !REGISTERED.load(Ordering::Relaxed) {
            // SAFETY: the handler only stores to an atomic.
            unsafe { libc::pthread_atfork(None, None, Some(forget)) };
            REGISTERED.store(true, Ordering::Relaxed);
        }
    }
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
                let threads = run(blocks, width, Length::Long, &|block| {
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
                        run(10, 3, Length::Short, &|block| {
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
                        run(blocks, 2 + round % 3, Length::Long, &|block| {
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
        let caught = catch_unwind(|| run(8, 2, Length::Long, &|block| assert!(block != 5)));
        assert!(caught.is_err());
        let ran = AtomicUsize::new(0);
        run(8, 2, Length::Long, &|_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 8);
    }
}
