//! Work in equal units that share nothing, spread over threads.

use super::blocks::Blocks;
use super::schedule::{BLOCKS_PER_THREAD, ELEMENTS_PER_THREAD, ELEMENTS_TO_WAKE_FOR};
use crate::primitive::Execution;
use crate::threads::Length;
use std::ops::Range;

/// The number of threads that pay for a number of elements.
pub(crate) fn width_of(execution: &Execution<'_>, elements: usize) -> usize {
    let worth = elements / ELEMENTS_PER_THREAD;
    if worth <= 1 { 1 } else { execution.threads.count().min(worth) }
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
    let long = elements >= ELEMENTS_TO_WAKE_FOR;
    let length = if long { Length::Long } else { Length::Short };
    execution.run(blocks.count(), width, length, &|block| body(block, blocks.range(block))).max(1)
}
