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

/// Whether sleeping workers are worth waking for a short job; for a long one they always are. Waking costs the
/// caller a system call, and helps only if a worker gets a processor before this job, or one that follows
/// closely, is over. After each wake in vain, twice as many jobs go by before the next.
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

/// Where a worker may run. The scheduler may wake it on its caller's processor while others idle, and leave it there:
/// then it keeps off that one by itself.
pub(super) struct WorkerPlace {
    /// Where it may run by itself, and where it was last told to.
    #[cfg(target_os = "linux")]
    masks: Option<(libc::cpu_set_t, libc::cpu_set_t)>,
}

impl WorkerPlace {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            masks: affinity().map(|mask| (mask, mask)),
        }
    }

    /// Moves away from the caller's processor; whether this thread is elsewhere then.
    #[cfg(target_os = "linux")]
    pub(super) fn leave(&mut self, caller: &CallerPlace) -> bool {
        let place = caller.0.load(Ordering::Relaxed);
        let (Some((own, told)), Some(now)) = (&mut self.masks, affinity()) else { return false };
        // SAFETY: sets are plain memory, and `place` is checked against their size.
        unsafe {
            if place >= libc::CPU_SETSIZE as usize {
                return false;
            }
            // Somebody else has set it meanwhile.
            if !libc::CPU_EQUAL(&now, told) {
                *own = now;
            }
            *told = *own;
            libc::CPU_CLR(place, told);
            let size = size_of::<libc::cpu_set_t>();
            if libc::CPU_COUNT(told) == 0 || libc::sched_setaffinity(0, size, told) != 0 {
                *told = now;
                return false;
            }
        }
        !caller.is_mine()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn leave(&mut self, _caller: &CallerPlace) -> bool {
        false
    }
}

/// Where this thread may run.
#[cfg(target_os = "linux")]
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: a set is plain memory; the call writes it.
    unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        (libc::sched_getaffinity(0, size, &raw mut mask) == 0).then_some(mask)
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_worker_leaves_its_callers_processor_and_may_come_back() {
        std::thread::spawn(|| {
            let Some(own) = affinity() else { return };
            // SAFETY: a set that was read.
            let processors = unsafe { libc::CPU_COUNT(&own) };
            let mut worker = WorkerPlace::new();
            for _ in 0..4 {
                let caller = CallerPlace::new();
                caller.note();
                let place = caller.0.load(Ordering::Relaxed);
                assert_eq!(worker.leave(&caller), processors > 1);
                if processors > 1 {
                    assert_ne!(processor(), Some(place));
                    let told = affinity().expect("it was read before");
                    // SAFETY: as above.
                    assert_eq!(unsafe { libc::CPU_COUNT(&told) }, processors - 1);
                }
            }
        })
        .join()
        .expect("the thread ends");
    }
}
