//! The allocation of stages: a block of rows takes a free stage and returns it.
//!
//! There are as many stages as threads, so one is always free.

use super::schedule::MOST_STAGES;
use std::sync::atomic::{AtomicU64, Ordering};

const _: () = assert!(MOST_STAGES <= u64::BITS as usize);

/// A bit per slot: 1 means free.
pub(crate) struct Slots(AtomicU64);

impl Slots {
    /// `count` free slots, at most [`MOST_STAGES`].
    pub(crate) fn new(count: usize) -> Self {
        let free = u64::MAX >> (u64::BITS as usize - count.clamp(1, MOST_STAGES));
        Self(AtomicU64::new(free))
    }

    /// Takes the first free slot. There must be at least as many slots as threads that take one.
    pub(crate) fn take(&self) -> Slot<'_> {
        let mut free = self.0.load(Ordering::Relaxed);
        loop {
            let first = free & free.wrapping_neg();
            if first == 0 {
                std::hint::spin_loop();
                free = self.0.load(Ordering::Relaxed);
                continue;
            }
            // Acquire: the previous owner's accesses to the stage happen before the new owner's.
            let taken = self.0.compare_exchange_weak(
                free,
                free & !first,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Slot { slots: self, bit: first },
                Err(now) => free = now,
            }
        }
    }
}

/// A taken slot, which is freed on drop.
pub(crate) struct Slot<'s> {
    slots: &'s Slots,
    bit: u64,
}

impl Slot<'_> {
    pub(crate) fn number(&self) -> usize {
        self.bit.trailing_zeros() as usize
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.0.fetch_or(self.bit, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_slot_is_taken_once_and_returned() {
        let stages = Slots::new(3);
        let (a, b, c) = (stages.take(), stages.take(), stages.take());
        assert_eq!([a.number(), b.number(), c.number()], [0, 1, 2]);
        drop(b);
        let again = stages.take();
        assert_eq!(again.number(), 1);
        let all = Slots::new(usize::MAX);
        let taken: Vec<_> = (0..MOST_STAGES).map(|_| all.take()).collect();
        assert_eq!(taken[MOST_STAGES - 1].number(), MOST_STAGES - 1);
    }

    #[test]
    fn no_two_threads_share_a_slot() {
        let stages = Slots::new(4);
        let users: [AtomicUsize; 4] = Default::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let stage = stages.take();
                        let user = &users[stage.number()];
                        assert_eq!(user.fetch_add(1, Ordering::Relaxed), 0);
                        user.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
    }
}
