//! The split of rows into blocks of work.

use super::columns::CHAIN_ROWS;
use std::ops::Range;

/// The maximum number of blocks with column sums. More blocks would balance more threads, but each needs scratchpad
/// that is read again when the sums are added.
const MOST_BLOCKS: usize = 32;
/// The maximum number of blocks with fewer than [`ELEMENTS_OF_MANY`] elements.
const FEW_BLOCKS: usize = 8;
const ELEMENTS_OF_MANY: usize = 512 * 1024;
/// The minimum elements of a block, unless it is the only one.
const ELEMENTS_OF_ONE: usize = 32 * 1024;

/// A split of rows into blocks of whole units; only the last unit may be shorter. Blocks differ by at most one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    rows: usize,
    /// Rows of a unit.
    step: usize,
    count: usize,
    /// The units of every block, and how many blocks have one more. Divisions take long for a call on a single row, so
    /// they are done once.
    units: usize,
    more: usize,
}

impl Blocks {
    /// At most `count` blocks of units of `step` rows.
    #[inline]
    pub(crate) fn at_most(rows: usize, count: usize, step: usize) -> Self {
        let all = rows.div_ceil(step);
        let count = count.max(1).min(all);
        let divisor = count.max(1);
        Self { rows, step, count, units: all / divisor, more: all % divisor }
    }

    /// Blocks of whole chains of column sums, except at the end. The split depends only on the shape.
    #[inline]
    pub(crate) fn of_column_sums(rows: usize, cols: usize) -> Self {
        let elements = rows.saturating_mul(cols);
        let few = (elements / ELEMENTS_OF_ONE).clamp(1, FEW_BLOCKS);
        let count = few.max(elements / ELEMENTS_OF_MANY).min(MOST_BLOCKS);
        let step = rows.div_ceil(count).next_multiple_of(CHAIN_ROWS).max(CHAIN_ROWS);
        Self::at_most(rows, usize::MAX, step)
    }

    /// About `count` blocks, for work whose results do not depend on the split.
    #[inline]
    pub(crate) fn about(rows: usize, count: usize) -> Self {
        const SOME_ROWS: usize = 4;
        let some = rows.div_ceil(count.max(1)).next_multiple_of(SOME_ROWS).max(1);
        Self::at_most(rows, usize::MAX, if rows < count * SOME_ROWS { 1 } else { some })
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn range(self, block: usize) -> Range<usize> {
        self.start(block)..self.rows.min(self.start(block + 1))
    }

    /// The first row of a block.
    #[inline]
    fn start(self, block: usize) -> usize {
        (block * self.units + block * self.more / self.count) * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_row_once_in_whole_chains() {
        for rows in 0..5000 {
            let cols = rows % 7 * 1000;
            let column_sums = Blocks::of_column_sums(rows, cols);
            for blocks in [column_sums, Blocks::about(rows, 7), Blocks::at_most(rows, 9, 5)] {
                let mut next = 0;
                for block in 0..blocks.count() {
                    let range = blocks.range(block);
                    assert_eq!(range.start, next);
                    assert!(range.end > range.start);
                    next = range.end;
                }
                assert_eq!(next, rows);
            }
            assert!(column_sums.count() <= MOST_BLOCKS);
            for block in 0..column_sums.count() {
                assert!(column_sums.range(block).start.is_multiple_of(CHAIN_ROWS));
            }
        }
    }

    #[test]
    fn blocks_differ_by_at_most_a_unit() {
        for (rows, count, step) in [(257, 8, 4), (257, 8, 16), (1000, 7, 1), (300, 64, 16)] {
            let blocks = Blocks::at_most(rows, count, step);
            assert_eq!(blocks.count(), count.min(rows.div_ceil(step)));
            let units = |block: usize| blocks.range(block).len().div_ceil(step);
            let least = rows / step / blocks.count();
            assert!((0..blocks.count()).all(|block| (least..=least + 1).contains(&units(block))));
        }
    }
}
