//! The scratchpad of an execution: the scalars of a unit's channels, and the sums over blocks of samples.

use super::sweeps::Numbers;
use crate::primitive::Execution;
use norm_sys as sys;
use std::ops::Range;

/// The most blocks of samples in backward. Each has its own sums of diff_scale and diff_shift.
pub(super) const MOST_SAMPLE_BLOCKS: usize = 32;

/// The scalars and sums of a unit's channels.
pub(super) struct Workspace<'a> {
    /// Sums of values, or of diff_dst.
    pub(super) first: &'a mut [f64],
    /// Sums of squares, or of diff_dst*xhat.
    pub(super) second: &'a mut [f64],
    /// The number that is subtracted before squaring, or the slopes of backward.
    pub(super) about: &'a mut [f32],
    pub(super) high: &'a mut [f32],
    pub(super) r: &'a mut [f32],
    pub(super) low: &'a mut [f32],
}

impl Workspace<'_> {
    /// Bytes for a number of channels.
    pub(super) fn size(channels: usize) -> usize {
        let each = 2 * size_of::<f64>() + 4 * size_of::<f32>();
        channels.saturating_mul(each).checked_next_multiple_of(64).unwrap_or(usize::MAX)
    }

    /// # Safety
    /// `start` is aligned and has the bytes of [`size`](Self::size), which belong to this thread.
    pub(super) unsafe fn new(start: *mut u8, channels: usize) -> Self {
        let wide = |index: usize| {
            let first = start.cast::<f64>().wrapping_add(index * channels);
            // SAFETY: guaranteed by the caller; any bytes are valid numbers.
            unsafe {
                first.write_bytes(0, channels);
                std::slice::from_raw_parts_mut(first, channels)
            }
        };
        let narrow = |index: usize| {
            let first = start.cast::<f32>().wrapping_add((4 + index) * channels);
            // SAFETY: as above.
            unsafe {
                first.write_bytes(0, channels);
                std::slice::from_raw_parts_mut(first, channels)
            }
        };
        Self {
            first: wide(0),
            second: wide(1),
            about: narrow(0),
            high: narrow(1),
            r: narrow(2),
            low: narrow(3),
        }
    }

    /// The scalars of a run of channels.
    pub(super) fn numbers(&self, run: &Range<usize>) -> Numbers<'_> {
        Numbers {
            high: &self.high[run.clone()],
            r: &self.r[run.clone()],
            low: &self.low[run.clone()],
            slope: &self.about[run.clone()],
        }
    }
}

/// The sums of diff_dst and of diff_dst*xhat over blocks of samples, for each channel.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) start: *mut f64,
    pub(super) channels: usize,
    pub(super) blocks: usize,
}

// SAFETY: threads write disjoint channels of blocks.
unsafe impl Sync for Sums {}

impl Sums {
    /// The first channel's sum in a block.
    fn at(self, index: usize, block: usize) -> *mut f64 {
        self.start.wrapping_add((index * self.blocks + block) * self.channels)
    }

    pub(super) fn clear(self, block: usize, first: usize, channels: usize) {
        for index in 0..2 {
            // SAFETY: the scratchpad has these sums, and they belong to this thread.
            unsafe { self.at(index, block).add(first).write_bytes(0, channels) };
        }
    }

    pub(super) fn add(self, block: usize, first: usize, terms: [&[f64]; 2]) {
        for (index, terms) in terms.into_iter().enumerate() {
            let sums = self.at(index, block).wrapping_add(first);
            for (channel, term) in terms.iter().enumerate() {
                // SAFETY: as above.
                unsafe { *sums.add(channel) += term };
            }
        }
    }

    /// Stores zeros as diff_scale and diff_shift, if they are arguments.
    pub(super) fn clear_outputs(execution: &Execution<'_>, channels: usize) {
        for id in [sys::NORM_ARG_DIFF_SCALE, sys::NORM_ARG_DIFF_SHIFT] {
            let out = execution.arguments.get(id).cast::<f32>();
            for channel in 0..if out.is_null() { 0 } else { channels } {
                // SAFETY: the output was checked to have a value per channel.
                unsafe { out.add(channel).write_unaligned(0.0) };
            }
        }
    }

    /// Adds the sums of blocks of samples and stores them to diff_scale and diff_shift, if these are arguments.
    pub(super) fn join(self, execution: &Execution<'_>) {
        // The first sum is that of diff_dst.
        for (index, id) in [(1, sys::NORM_ARG_DIFF_SCALE), (0, sys::NORM_ARG_DIFF_SHIFT)] {
            let out = execution.arguments.get(id).cast::<f32>();
            for channel in 0..if out.is_null() { 0 } else { self.channels } {
                let total = self.total(index, channel, self.blocks);
                // SAFETY: the output was checked to have a value per channel.
                unsafe { out.add(channel).write_unaligned(total as f32) };
            }
        }
    }

    /// The sum of a channel over all blocks: adds blocks `i` and `i + 1`, then `i` and `i + 2`, and so on.
    fn total(self, index: usize, channel: usize, blocks: usize) -> f64 {
        let mut sums = [0.0; MOST_SAMPLE_BLOCKS];
        for (block, sum) in sums.iter_mut().enumerate().take(blocks) {
            // SAFETY: all threads have finished.
            *sum = unsafe { self.at(index, block).add(channel).read() };
        }
        let mut step = 1;
        while step < blocks {
            for left in (0..blocks - step).step_by(2 * step) {
                sums[left] += sums[left + step];
            }
            step *= 2;
        }
        sums[0]
    }
}

/// An address that threads share; each accesses its own part.
#[derive(Clone, Copy)]
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: see above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn get(self) -> *mut u8 {
        self.0
    }
}
