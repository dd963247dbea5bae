//! The board on which callers publish jobs and workers find them.
//!
//! An execution publishes a job in a slot. The caller and the workers claim its blocks. Each thread first claims the
//! blocks of its own share, so that rows stay in the cache of one core, and then blocks left in other shares. The
//! caller returns when every block is done. It never waits for a thread that has claimed nothing, so a worker that the
//! scheduler has not run yet costs nothing. Workers spin for a short time after their last block and then sleep.
//!
//! A worker on its caller's CPU keeps the caller from running. The scheduler puts it there when other processes keep
//! the remaining CPUs busy, or to let those CPUs sleep. The worker then excludes that CPU from its affinity mask. If no
//! other CPU is left, it claims nothing and sleeps at once.
//!
//! Publishing, claiming and finishing do not allocate. All shared state uses types from `sync`, which a model checker
//! replaces.

use super::body::Body;
use super::event_count::EventCount;
use super::job::Length;
use super::share::MAX_BLOCKS;
use super::slot::{MAX_WIDTH, Outcome, Slot};
use super::sync::{CallerCpu, SpinBudget, WakeThrottle, WorkerAffinity};

/// Up to `SLOTS` jobs in flight. An execution that finds no free slot runs on the calling thread.
pub(super) struct Board<const SLOTS: usize> {
    slots: [Slot; SLOTS],
    pub(super) events: EventCount,
    throttle: WakeThrottle,
    caller: CallerCpu,
}

impl<const SLOTS: usize> Board<SLOTS> {
    pub(super) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| Slot::new()),
            events: EventCount::new(),
            throttle: WakeThrottle::new(),
            caller: CallerCpu::new(),
        }
    }

    /// Runs `body(0)` to `body(blocks - 1)`, each once, on at most `width` threads including this
    /// one.
    pub(super) fn run(
        &self,
        blocks: usize,
        width: usize,
        length: Length,
        body: Body<'_>,
    ) -> Outcome {
        // Reserve a slot only if the job's blocks fit the shares.
        let fits = blocks <= MAX_BLOCKS;
        let slot = if fits { self.slots.iter().find(|slot| slot.take()) } else { None };
        let Some(slot) = slot else {
            (0..blocks).for_each(|block| body.run(block));
            return Outcome { threads: 1, panicked: false };
        };
        let width = width.min(MAX_WIDTH);
        self.caller.record();
        let mut woke = false;
        let outcome = slot.run(blocks, width, body, || {
            let sleepers = self.events.advance();
            woke = sleepers > 0 && (length == Length::Long || self.throttle.is_due());
            if woke {
                self.events.wake(sleepers.min(width - 1));
            }
        });
        // A worker woken for a short job only does what the caller would have done during the wake.
        if outcome.threads > 1 && (length == Length::Long || !woke) {
            self.throttle.helped();
        }
        outcome
    }

    /// The main loop of worker `worker`, counted from 1. Returns once `ends` is true, which must be announced through
    /// the event count.
    pub(super) fn serve(&self, worker: usize, ends: impl Fn() -> bool) {
        let mut budget = SpinBudget::new();
        let mut affinity = WorkerAffinity::new();
        loop {
            let seen = self.events.epoch();
            if ends() {
                return;
            }
            let mut worked = false;
            if !self.caller.is_current() || affinity.move_off(&self.caller) {
                for slot in &self.slots {
                    worked |= slot.help(worker);
                }
            }
            if worked {
                budget = SpinBudget::new();
            }
            while self.events.epoch() == seen {
                if budget.is_spent() || self.caller.is_current() {
                    self.events.wait(seen);
                    budget = SpinBudget::new();
                }
            }
        }
    }
}
