//! A job's blocks cut into shares, one for each thread, so that a block meets the same thread, and its rows
//! that thread's caches, from one execution to the next.

use super::MAX_SHARES;
use std::ops::Range;

/// What is left of a share in one word, so that one compare-and-swap claims a block of this very job:
/// generation in the upper 32 bits, then the next block (16), then the end (16).
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Share(pub(super) u64);

/// The most blocks that a share can count.
pub(super) const MAX_BLOCKS: usize = (1 << Share::BLOCK_BITS) - 1;

impl Share {
    const BLOCK_BITS: u32 = 16;
    const ONE: u64 = 1 << Self::BLOCK_BITS;

    /// Of a job's blocks, cut into `shares` runs of about the same length, the run number `index`. The first
    /// ones are the longer: their thread, the caller, is the first to begin.
    pub(super) fn new(generation: u32, blocks: usize, shares: usize, index: usize) -> Self {
        let begin = (blocks * index).div_ceil(shares) as u64;
        let end = (blocks * (index + 1)).div_ceil(shares) as u64;
        Self(u64::from(generation) << (2 * Self::BLOCK_BITS) | begin << Self::BLOCK_BITS | end)
    }

    fn generation(self) -> u32 {
        (self.0 >> (2 * Self::BLOCK_BITS)) as u32
    }

    /// The blocks that nobody has claimed.
    fn blocks(self) -> Range<usize> {
        let place = |word: u64| (word & (Self::ONE - 1)) as usize;
        place(self.0 >> Self::BLOCK_BITS)..place(self.0)
    }

    /// A block, and the share without it, if the share is of that generation and has one left: the first for
    /// its own thread, the last for others, who so take what that thread would come to last.
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

/// How many shares a job for `width` threads has.
pub(super) fn shares(width: usize) -> usize {
    width.min(MAX_SHARES)
}

/// The share that a worker begins with, and keeps from job to job of the same width. Workers count from 1;
/// the first share is the caller's, and the others are dealt out in turns, as any worker may take part.
pub(super) fn own_share(worker: usize, width: usize) -> usize {
    let place = 1 + (worker - 1) % (width - 1).max(1);
    place % shares(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_runs_of_about_the_same_length() {
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
    fn the_owner_takes_the_first_block_and_others_the_last() {
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
    fn each_worker_has_a_share_of_its_own_while_there_are_enough() {
        for width in 2..=MAX_SHARES {
            let own: Vec<_> = (1..width).map(|worker| own_share(worker, width)).collect();
            assert_eq!(own, (1..width).collect::<Vec<_>>());
            // More workers than the job has room for spare the caller's.
            assert!((width..=255).all(|worker| (1..width).contains(&own_share(worker, width))));
        }
        assert!((1..=255).all(|worker| own_share(worker, 255) < MAX_SHARES));
        assert_eq!(own_share(1, 1), 0);
    }
}
