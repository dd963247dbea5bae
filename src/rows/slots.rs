//! Which stages are free: a block of rows takes one and gives it back.
//!
//! There are as many stages as threads at work, so that one is free for whoever asks.

use super::schedule::MOST_STAGES;
use std::sync::atomic::{AtomicU64, Ordering};

const _: () = assert!(MOST_STAGES <= u64::BITS as usize);

/// Slots by their numbers, a bit each: 1 is free.
pub(super) struct Slots(AtomicU64);

impl Slots {
    /// So many, all free; of more than [`MOST_STAGES`], those.
    pub(super) fn new(count: usize) -> Self {
        let free = u64::MAX >> (u64::BITS as usize - count.clamp(1, MOST_STAGES));
        Self(AtomicU64::new(free))
    }

    /// Takes the first free one. No more threads may ask at a time than there are stages.
    pub(super) fn take(&self) -> Slot<'_> {
        let mut free = self.0.load(Ordering::Relaxed);
        loop {
            let first = free & free.wrapping_neg();
            if first == 0 {
                std::hint::spin_loop();
                free = self.0.load(Ordering::Relaxed);
                continue;
            }
            // What its last owner wrote there comes before what the next one does.
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

/// A stage that belongs to whoever holds this.
pub(super) struct Slot<'s> {
    slots: &'s Slots,
    bit: u64,
}

impl Slot<'_> {
    pub(super) fn number(&self) -> usize {
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
    fn each_is_given_once_and_comes_back() {
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
    fn no_two_threads_have_the_same() {
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
