//! The number of threads for a number of elements, and the distribution of independent, equal units of work over them.

use super::blocks::Blocks;
use super::schedule::{BLOCKS_PER_THREAD, ELEMENTS_PER_THREAD, ELEMENTS_TO_WAKE_FOR};
use crate::primitive::Execution;
use crate::threads::{Length, Threads};
use std::ops::Range;

/// The number of threads that pay off for a number of elements.
#[inline]
pub(crate) fn width_of(threads: Threads, elements: usize) -> usize {
    let worth = elements / ELEMENTS_PER_THREAD;
    if worth <= 1 { 1 } else { threads.count().min(worth) }
}

/// Whether sleeping threads are woken for a number of elements.
#[inline]
pub(crate) fn length_of(elements: usize) -> Length {
    if elements >= ELEMENTS_TO_WAKE_FOR { Length::Long } else { Length::Short }
}

/// Runs `body(block, units)` for ranges of `units` units, in at most `most` blocks, on up to `width` threads. Returns the
/// number of threads that took part.
pub(crate) fn spread(
    execution: &Execution<'_>,
    (units, elements): (usize, usize),
    (width, most): (usize, usize),
    body: &(dyn Fn(usize, Range<usize>) + Sync),
) -> usize {
    if units == 0 {
        return 1;
    }
    if width == 1 {
        body(0, 0..units);
        return 1;
    }
    let blocks = Blocks::at_most(units, (width * BLOCKS_PER_THREAD).min(most), 1);
    let length = length_of(elements);
    execution.run(blocks.count(), width, length, &|block| body(block, blocks.range(block))).max(1)
}
