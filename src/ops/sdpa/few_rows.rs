//! Few rows, as in decoding. They process the keys of a block one group at a time, so the panels stay in the
//! first-level cache, and prefetch what they read next.

use super::ahead::Sets;
use super::blocks::{BlockKeys, whole_groups};
use super::forward::Job;
use super::kernel::{Block, FewRows};
use super::keys::Target;
use super::order::GROUP;
use super::rows::Heads;
use crate::simd::LANES;
use std::ops::Range;

impl Job<'_> {
    /// Adds a block of keys to few rows and meanwhile prefetches the block `next`.
    ///
    /// # Safety
    /// As [`block`](Self::block).
    pub(super) unsafe fn few_rows(
        &self,
        block: Block<'_>,
        place: (usize, usize),
        (keys, next): (Range<usize>, Option<&BlockKeys>),
        to: &Target,
    ) {
        let next = next.map(|(first, within)| whole_groups(*first, within));
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.multiply_keys(&block, place, (keys, next.clone()), to);
            let values = self.sets(&self.forward.inputs.values, place, block.weights, next);
            (self.forward.attend)(&Block { next: Some(&values), ..block });
        }
    }

    /// Multiplies few rows by the keys of a block, one group at a time, so the panels stay in the first-level cache.
    ///
    /// # Safety
    /// As [`part`](Self::part).
    unsafe fn multiply_keys(
        &self,
        block: &Block<'_>,
        place: (usize, usize),
        (keys, next): (Range<usize>, Option<Range<usize>>),
        to: &Target,
    ) {
        let mut key = keys.start;
        while key < keys.end {
            let end = keys.end.min(key + GROUP);
            let after = if end < keys.end { Some(end..keys.end) } else { next.clone() };
            let next = self.sets(&self.forward.inputs.keys, place, block.weights, after);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let heads = (&self.forward.inputs.keys, None);
                let panels = self.bound.row_panels(heads, place, key..end, to);
                (self.forward.multiply)(&FewRows {
                    block,
                    keys: panels.of_block(key - block.first),
                    vectors: (key - block.first) / LANES..(end - block.first).div_ceil(LANES),
                    next: &next,
                });
            }
            key = end;
        }
    }

    /// The first keys or values of a range, in sets to prefetch.
    fn sets<const N: usize>(
        &self,
        heads: &Heads,
        (sequence, group): (usize, usize),
        instead: *const f32,
        keys: Option<Range<usize>>,
    ) -> Sets<N> {
        Sets::new(instead.cast(), |set| {
            let keys = keys.as_ref()?;
            let key = keys.start + set * LANES;
            if key >= keys.end {
                return None;
            }
            // SAFETY: the arguments were checked, and keys that are seen are within the length.
            let (page, row) = unsafe { self.bound.sequences.page_of(sequence, key) };
            Some(heads.later(self.bound.arguments, (page, group), row))
        })
    }
}
