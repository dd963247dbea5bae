//! Several tasks in one parallel region, each with its own blocks.
//!
//! The members of a crew claim whole tasks. Each begins with those of its own share, so that a task goes to the same
//! thread in every job. A task's blocks are offered to the other members, who claim them once no tasks are left. So
//! small tasks need no hand-over, and a large one still gets every member. A member waits only for tasks and blocks
//! that others have claimed. Like the board, a crew does not allocate.

use super::body::Body;
use super::job::MAX_SHARES;
use super::share::{MAX_BLOCKS, Share, shares};
use super::slot::{MAX_WIDTH, Slot};
use super::sync::{AtomicU64, Ordering, SpinBudget, yield_now};

/// Tasks, and a slot for the blocks of each task that may run at the same time.
pub(crate) struct Crew<'a> {
    /// As many as there are tasks or members, whichever is fewer.
    slots: &'a [Slot],
    tasks: usize,
    width: usize,
    /// The unclaimed tasks.
    shares: [AtomicU64; MAX_SHARES],
    /// Tasks finished, and members that have claimed one.
    finished: AtomicU64,
    seats: AtomicU64,
}

/// The generation of the only job in a crew's shares.
const GENERATION: u32 = 1;

/// A member that runs a task. Its index is below the number of slots.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    crew: &'a Crew<'a>,
    pub(crate) number: usize,
}

/// Counts a task as finished even if it panics, because the others wait for it.
struct Running<'a>(&'a AtomicU64);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Release ordering makes the task's writes visible to threads that read the count.
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl<'a> Crew<'a> {
    /// A crew of up to `width` members for a number of tasks, at most as many as a job may have blocks.
    pub(crate) fn new(slots: &'a [Slot], tasks: usize, width: usize) -> Self {
        let count = shares(width);
        let share = |index: usize| {
            if index < count { Share::new(GENERATION, tasks, count, index).0 } else { 0 }
        };
        let shares = std::array::from_fn(|index| AtomicU64::new(share(index)));
        Self { slots, tasks, width, shares, finished: AtomicU64::new(0), seats: AtomicU64::new(0) }
    }

    /// Claims a task of the share at `place`.
    fn claim(&self, place: usize, is_own: bool) -> Option<usize> {
        let share = &self.shares[place];
        let mut seen = share.load(Ordering::Relaxed);
        loop {
            let (task, rest) = Share(seen).claim(GENERATION, is_own)?;
            match share.compare_exchange_weak(seen, rest.0, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(task),
                Err(now) => seen = now,
            }
        }
    }

    /// Works as member number `index`, 0 to `width - 1`: claims tasks, then blocks of other members' tasks. Returns
    /// once every task has finished.
    pub(crate) fn work(&self, index: usize, task: impl Fn(usize, Member<'_>)) {
        let mut member = None;
        let count = shares(self.width);
        for place in index..index + count {
            while let Some(claimed) = self.claim(place % count, place == index) {
                let running = Running(&self.finished);
                let take_seat = || self.seats.fetch_add(1, Ordering::Relaxed) as usize;
                let member =
                    *member.get_or_insert_with(|| Member { crew: self, number: take_seat() });
                task(claimed, member);
                drop(running);
            }
        }
        let mut budget = SpinBudget::new();
        while self.finished.load(Ordering::Acquire) < self.tasks as u64 {
            let mut helped = false;
            for slot in self.slots {
                helped |= slot.help(index + 1);
            }
            if helped {
                budget = SpinBudget::new();
            } else if budget.is_spent() {
                yield_now();
            }
        }
    }
}

impl Member<'_> {
    /// Runs `body(0)` to `body(blocks - 1)`, each once, on at most `width` members. Returns the number of members that
    /// ran a block, after all blocks have finished.
    ///
    /// # Panics
    /// If a block did.
    pub(crate) fn run(&self, blocks: usize, width: usize, body: Body<'_>) -> usize {
        let width = width.min(blocks).min(self.crew.width).min(MAX_WIDTH);
        let slot = &self.crew.slots[self.number];
        if width <= 1 || blocks > MAX_BLOCKS || !slot.take() {
            (0..blocks).for_each(|block| body.run(block));
            return blocks.min(1);
        }
        let outcome = slot.run(blocks, width, body, || ());
        assert!(!outcome.panicked, "a block panicked");
        outcome.threads
    }
}
