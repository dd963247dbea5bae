//! Where jobs are published and workers look for them.
//!
//! An execution publishes a job in a slot; whoever runs claims its blocks, the caller included: those of
//! its own share first, so that rows stay in the caches where they are, then whatever is left. The caller
//! returns when every claimed block is done: it never waits for a thread that has claimed
//! none, so a worker that the scheduler has not run yet costs nothing. Workers look for work a short
//! while after their last block and then sleep.
//!
//! A worker on its caller's processor keeps the caller from running. The scheduler puts it there when
//! others keep the rest busy, or to let the rest sleep; it then keeps off that processor, and if it has no other takes no
//! block and sleeps at once.
//!
//! Publishing, claiming and finishing allocate nothing. What threads share here comes from `sync`
//! alone, so that a model checker can run it.

use super::bell::Bell;
use super::share::MAX_BLOCKS;
use super::slot::{MAX_WIDTH, Outcome, Slot};
use super::sync::{CallerPlace, Patience, WorkerPlace, Zeal};
use super::{Body, Length};

/// `SLOTS` jobs can be in flight at once; an execution that finds no free slot runs on its own thread.
pub(super) struct Board<const SLOTS: usize> {
    slots: [Slot; SLOTS],
    pub(super) bell: Bell,
    zeal: Zeal,
    caller: CallerPlace,
}

impl<const SLOTS: usize> Board<SLOTS> {
    pub(super) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| Slot::new()),
            bell: Bell::new(),
            zeal: Zeal::new(),
            caller: CallerPlace::new(),
        }
    }

    /// Runs `body(0)` to `body(blocks - 1)`, each once, on this thread and workers, `width` in all.
    pub(super) fn run(
        &self,
        blocks: usize,
        width: usize,
        length: Length,
        body: Body<'_>,
    ) -> Outcome {
        // A slot is taken only if the job fits its shares.
        let fits = blocks <= MAX_BLOCKS;
        let slot = if fits { self.slots.iter().find(|slot| slot.take()) } else { None };
        let Some(slot) = slot else {
            (0..blocks).for_each(body);
            return Outcome { threads: 1, panicked: false };
        };
        let width = width.min(MAX_WIDTH);
        self.caller.note();
        let mut woke = false;
        let outcome = slot.run(blocks, width, body, || {
            let sleepers = self.bell.ring();
            woke = sleepers > 0 && (length == Length::Long || self.zeal.wakes());
            if woke {
                self.bell.wake(sleepers.min(width - 1));
            }
        });
        // Of a short job, who was woken for it takes what the caller would have done meanwhile.
        if outcome.threads > 1 && (length == Length::Long || !woke) {
            self.zeal.helped();
        }
        outcome
    }

    /// The life of worker number `worker`, from 1: until `ends`, of which a ring tells.
    pub(super) fn serve(&self, worker: usize, ends: impl Fn() -> bool) {
        let mut patience = Patience::new();
        let mut place = WorkerPlace::new();
        loop {
            let heard = self.bell.listen();
            if ends() {
                return;
            }
            let mut worked = false;
            if !self.caller.is_mine() || place.leave(&self.caller) {
                for slot in &self.slots {
                    worked |= slot.help(worker);
                }
            }
            if worked {
                patience = Patience::new();
            }
            while self.bell.listen() == heard {
                if patience.ends() || self.caller.is_mine() {
                    self.bell.sleep(heard);
                    patience = Patience::new();
                }
            }
        }
    }
}
