//! Splits a job's blocks into one share per thread. A block goes to the same thread in every
//! execution, so its rows stay in that thread's caches.

use super::job::MAX_SHARES;
use std::ops::Range;

/// The unclaimed blocks of a share in one word: generation (upper 32 bits), next block (16), end
/// (16). One compare-and-swap claims a block, and only of the right job.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Share(pub(super) u64);

/// Maximum number of blocks per job.
pub(super) const MAX_BLOCKS: usize = (1 << Share::BLOCK_BITS) - 1;

impl Share {
    const BLOCK_BITS: u32 = 16;
    const ONE: u64 = 1 << Self::BLOCK_BITS;

    /// Share number `index` when a job's blocks are split evenly into `shares` ranges. The first
    /// ranges are the longer ones, because the caller starts first.
    pub(super) fn new(generation: u32, blocks: usize, shares: usize, index: usize) -> Self {
        let begin = (blocks * index).div_ceil(shares) as u64;
        let end = (blocks * (index + 1)).div_ceil(shares) as u64;
        Self(u64::from(generation) << (2 * Self::BLOCK_BITS) | begin << Self::BLOCK_BITS | end)
    }

    fn generation(self) -> u32 {
        (self.0 >> (2 * Self::BLOCK_BITS)) as u32
    }

    /// The unclaimed blocks.
    fn blocks(self) -> Range<usize> {
        let place = |word: u64| (word & (Self::ONE - 1)) as usize;
        place(self.0 >> Self::BLOCK_BITS)..place(self.0)
    }

    /// Claims a block and returns it with the share that remains. `None` if the share is empty or
    /// belongs to another generation. The owner claims from the front. Other threads claim from the
    /// end, which the owner reaches last.
    pub(super) fn claim(self, generation: u32, is_own: bool) -> Option<(usize, Self)> {
        let blocks = self.blocks();
        if blocks.is_empty() || self.generation() != generation {
            None
        } else if is_own {
            Some((blocks.start, Self(self.0 + Self::ONE)))
        } else {
            Some((blocks.end - 1, Self(self.0 - 1)))
        }
    }
}

/// The number of shares in a job for `width` threads.
pub(super) fn shares(width: usize) -> usize {
    width.min(MAX_SHARES)
}

/// The share that a worker starts with, the same for every job of one width. Workers count from 1.
/// The first share is the caller's. The others are assigned round-robin, because any worker may
/// take part.
pub(super) fn own_share(worker: usize, width: usize) -> usize {
    let place = 1 + (worker - 1) % (width - 1).max(1);
    place % shares(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_cover_all_blocks() {
        for blocks in [0, 1, 2, 7, 8, 33, 1000, MAX_BLOCKS] {
            for shares in 1..=MAX_SHARES {
                let runs: Vec<_> = (0..shares)
                    .map(|index| Share::new(9, blocks, shares, index).blocks())
                    .collect();
                assert!(runs.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert_eq!((runs[0].start, runs[shares - 1].end), (0, blocks));
                let lengths = || runs.iter().map(ExactSizeIterator::len);
                assert!(lengths().all(|length| length.abs_diff(blocks / shares) <= 1));
                assert_eq!(lengths().max(), Some(runs[0].len()));
            }
        }
    }

    #[test]
    fn the_owner_claims_from_the_front_and_others_from_the_end() {
        for generation in [0, 1, u32::MAX] {
            let mut share = Share::new(generation, 10, 2, 1);
            let mut claimed = vec![];
            for is_own in [true, false, true, false, true] {
                assert!(share.claim(generation.wrapping_sub(1), is_own).is_none());
                let (block, rest) = share.claim(generation, is_own).expect("a block is left");
                claimed.push(block);
                share = rest;
            }
            assert_eq!(claimed, [5, 9, 6, 8, 7]);
            assert!([true, false].iter().all(|is_own| share.claim(generation, *is_own).is_none()));
        }
    }

    #[test]
    fn workers_have_distinct_shares_up_to_the_maximum() {
        for width in 2..=MAX_SHARES {
            let own: Vec<_> = (1..width).map(|worker| own_share(worker, width)).collect();
            assert_eq!(own, (1..width).collect::<Vec<_>>());
            // Surplus workers do not start on the caller's share.
            assert!((width..=255).all(|worker| (1..width).contains(&own_share(worker, width))));
        }
        assert!((1..=255).all(|worker| own_share(worker, 255) < MAX_SHARES));
        assert_eq!(own_share(1, 1), 0);
    }
}
