//! Tuning: how long a thread spins before it sleeps, and when to wake sleeping workers. These
//! choices affect speed only, never correctness.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread spins before it sleeps. Longer than the gap between back-to-back executions,
/// far shorter than a scheduler time slice.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// Spins between two readings of the clock.
const SPINS_PER_CLOCK: u32 = 64;

/// How long a thread spins before it sleeps.
pub(super) struct SpinBudget {
    since: Instant,
    spins: u32,
}

impl SpinBudget {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), spins: 0 }
    }

    /// Spins once. True if the budget is used up.
    pub(super) fn is_spent(&mut self) -> bool {
        self.spins += 1;
        if self.spins < SPINS_PER_CLOCK {
            spin_loop();
            return false;
        }
        self.spins = 0;
        self.since.elapsed() >= SPIN_TIME
    }
}

/// Decides when to try something that may turn out useless. After each useless try, the number of jobs until the next
/// try doubles, up to `2^MOST`.
pub(super) struct Backoff<const MOST: u32> {
    /// Tries since the last useful one.
    useless: AtomicU32,
    /// Jobs since the last try.
    skipped: AtomicU32,
}

impl<const MOST: u32> Backoff<MOST> {
    pub(super) const fn new() -> Self {
        Self { useless: AtomicU32::new(0), skipped: AtomicU32::new(0) }
    }

    /// Whether this job should try.
    pub(super) fn is_due(&self) -> bool {
        let useless = self.useless.load(Ordering::Relaxed);
        let skipped = self.skipped.load(Ordering::Relaxed) + 1;
        if skipped >> useless == 0 {
            self.skipped.store(skipped, Ordering::Relaxed);
            return false;
        }
        self.skipped.store(0, Ordering::Relaxed);
        self.useless.store((useless + 1).min(MOST), Ordering::Relaxed);
        true
    }

    /// Records that the last try was useful.
    pub(super) fn helped(&self) {
        if self.useless.load(Ordering::Relaxed) > 0 {
            self.useless.store(0, Ordering::Relaxed);
        }
    }
}

/// Decides whether a short job wakes sleeping workers. Long jobs always do.
///
/// A wake costs the caller a system call. It pays only if a worker gets a CPU before this job, or one soon after it,
/// has finished. At least one job in 32 wakes workers, so at most one call in 20 pays for a useless wake.
pub(super) type WakeThrottle = Backoff<5>;

/// Decides when to try again to start workers that the system refused. A refusal costs some 10 microseconds, and its
/// cause may go away soon or never.
pub(super) type StartThrottle = Backoff<10>;

/// The CPU that the most recent caller ran on.
pub(super) struct CallerCpu(AtomicUsize);

const UNKNOWN_CPU: usize = usize::MAX;

impl CallerCpu {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(UNKNOWN_CPU))
    }

    /// Records the calling thread's CPU. Workers poll this value, so it is only written when it
    /// changes.
    pub(super) fn record(&self) {
        let cpu = current_cpu().unwrap_or(UNKNOWN_CPU);
        if self.0.load(Ordering::Relaxed) != cpu {
            self.0.store(cpu, Ordering::Relaxed);
        }
    }

    /// Whether this worker runs on the caller's CPU and so keeps the caller from running.
    pub(super) fn is_current(&self) -> bool {
        current_cpu() == Some(self.0.load(Ordering::Relaxed))
    }
}

/// A worker's CPU affinity. The scheduler may wake a worker on its caller's CPU while other CPUs
/// are idle, and leave it there. The worker then excludes that CPU from its own mask.
pub(super) struct WorkerAffinity {
    /// The worker's original mask, and the mask that it last set.
    #[cfg(target_os = "linux")]
    masks: Option<(libc::cpu_set_t, libc::cpu_set_t)>,
}

impl WorkerAffinity {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            masks: affinity().map(|mask| (mask, mask)),
        }
    }

    /// Moves off the caller's CPU. Returns whether this thread now runs elsewhere.
    #[cfg(target_os = "linux")]
    pub(super) fn move_off(&mut self, caller: &CallerCpu) -> bool {
        let cpu = caller.0.load(Ordering::Relaxed);
        let (Some((own, current)), Some(now)) = (&mut self.masks, affinity()) else { return false };
        // SAFETY: the sets are plain memory, and `cpu` is checked against their size.
        unsafe {
            if cpu >= libc::CPU_SETSIZE as usize {
                return false;
            }
            // Another part of the process has changed the mask since.
            if !libc::CPU_EQUAL(&now, current) {
                *own = now;
            }
            *current = *own;
            libc::CPU_CLR(cpu, current);
            let size = size_of::<libc::cpu_set_t>();
            if libc::CPU_COUNT(current) == 0 || libc::sched_setaffinity(0, size, current) != 0 {
                *current = now;
                return false;
            }
        }
        !caller.is_current()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn move_off(&mut self, _caller: &CallerCpu) -> bool {
        false
    }
}

/// The CPUs that this thread may run on.
#[cfg(target_os = "linux")]
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is plain memory, and the call writes it.
    unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        (libc::sched_getaffinity(0, size, &raw mut mask) == 0).then_some(mask)
    }
}

/// The CPU that this thread runs on, where the system reports it cheaply.
fn current_cpu() -> Option<usize> {
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
    fn useless_wakes_back_off_and_help_resets() {
        let throttle = WakeThrottle::new();
        let gaps: Vec<_> = (0..8).map(|_| (1..).find(|_| throttle.is_due())).collect();
        assert_eq!(gaps, [1, 2, 4, 8, 16, 32, 32, 32].map(Some));
        throttle.helped();
        assert!(throttle.is_due());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_worker_moves_off_its_callers_cpu() {
        std::thread::spawn(|| {
            let Some(own) = affinity() else { return };
            // SAFETY: the set was read from the system.
            let processors = unsafe { libc::CPU_COUNT(&own) };
            let mut worker = WorkerAffinity::new();
            for _ in 0..4 {
                let caller = CallerCpu::new();
                caller.record();
                let cpu = caller.0.load(Ordering::Relaxed);
                assert_eq!(worker.move_off(&caller), processors > 1);
                if processors > 1 {
                    assert_ne!(current_cpu(), Some(cpu));
                    let current = affinity().expect("it was read before");
                    // SAFETY: as above.
                    assert_eq!(unsafe { libc::CPU_COUNT(&current) }, processors - 1);
                }
            }
        })
        .join()
        .expect("the thread ends");
    }
}
