//! What is tuned: how long a thread looks before it sleeps, and when a sleeping one is worth waking. Nothing
//! is wrong with any answer; it only takes longer.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread keeps looking before it sleeps. Longer than the gap between two executions of a
/// program that does little else, far shorter than a scheduler's slice.
const LOOK_FOR: Duration = Duration::from_micros(50);
/// Looks between two readings of the clock.
const LOOKS: u32 = 64;

/// How long a thread looks for a change before it sleeps.
pub(super) struct Patience {
    since: Instant,
    looks: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), looks: 0 }
    }

    /// Counts a look that found nothing; true if it was the last one.
    pub(super) fn ends(&mut self) -> bool {
        self.looks += 1;
        if self.looks < LOOKS {
            spin_loop();
            return false;
        }
        self.looks = 0;
        self.since.elapsed() >= LOOK_FOR
    }
}

/// Whether sleeping workers are worth waking. Waking costs the caller a system call, and helps only if
/// a worker gets a processor before this job, or one that follows closely, is over. After each wake in
/// vain, twice as many jobs go by before the next. A short job is over
/// first, and wakes for those that follow.
pub(super) struct Zeal {
    /// Wakes since a worker last helped.
    in_vain: AtomicU32,
    /// Jobs gone by since the last wake.
    passed: AtomicU32,
}

/// The most wakes in vain that count: of 32 jobs one wakes somebody, even if that never helps. So
/// less than one call of 20 is slow for it.
const MOST_IN_VAIN: u32 = 5;

impl Zeal {
    pub(super) const fn new() -> Self {
        Self { in_vain: AtomicU32::new(0), passed: AtomicU32::new(0) }
    }

    /// Whether a job is to wake who sleeps.
    pub(super) fn wakes(&self) -> bool {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let passed = self.passed.load(Ordering::Relaxed) + 1;
        if passed >> in_vain == 0 {
            self.passed.store(passed, Ordering::Relaxed);
            return false;
        }
        self.passed.store(0, Ordering::Relaxed);
        self.in_vain.store((in_vain + 1).min(MOST_IN_VAIN), Ordering::Relaxed);
        true
    }

    /// A worker took part in a job.
    pub(super) fn helped(&self) {
        if self.in_vain.load(Ordering::Relaxed) > 0 {
            self.in_vain.store(0, Ordering::Relaxed);
        }
    }
}

/// The processor of the last caller.
pub(super) struct CallerPlace(AtomicUsize);

const NOWHERE: usize = usize::MAX;

impl CallerPlace {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(NOWHERE))
    }

    /// The caller is this thread. Workers look here all the time, so the place is written only if it is
    /// another.
    pub(super) fn note(&self) {
        let place = processor().unwrap_or(NOWHERE);
        if self.0.load(Ordering::Relaxed) != place {
            self.0.store(place, Ordering::Relaxed);
        }
    }

    /// Whether this thread, which is not the caller, keeps it from running.
    pub(super) fn is_mine(&self) -> bool {
        processor() == Some(self.0.load(Ordering::Relaxed))
    }
}

/// The processor that runs this thread, if the system says so cheaply.
fn processor() -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: no arguments.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_in_vain_becomes_rare_and_help_makes_it_common() {
        let zeal = Zeal::new();
        let gaps: Vec<_> = (0..8).map(|_| (1..).find(|_| zeal.wakes())).collect();
        assert_eq!(gaps, [1, 2, 4, 8, 16, 32, 32, 32].map(Some));
        zeal.helped();
        assert!(zeal.wakes());
    }
}
