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

/// A split of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    rows: usize,
    pub(crate) rows_per_block: usize,
    /// A division takes long for a call on a single row, so it is done once.
    count: usize,
}

impl Blocks {
    #[inline]
    fn of(rows: usize, rows_per_block: usize) -> Self {
        Self { rows, rows_per_block, count: rows.div_ceil(rows_per_block) }
    }

    /// Blocks of whole chains of column sums, except at the end. The split depends only on the shape.
    #[inline]
    pub(crate) fn of_column_sums(rows: usize, cols: usize) -> Self {
        let elements = rows.saturating_mul(cols);
        let few = (elements / ELEMENTS_OF_ONE).clamp(1, FEW_BLOCKS);
        let count = few.max(elements / ELEMENTS_OF_MANY).min(MOST_BLOCKS);
        let rows_per_block = rows.div_ceil(count).next_multiple_of(CHAIN_ROWS).max(CHAIN_ROWS);
        Self::of(rows, rows_per_block)
    }

    /// About `count` blocks, for work whose results do not depend on the split.
    #[inline]
    pub(crate) fn about(rows: usize, count: usize) -> Self {
        const SOME_ROWS: usize = 4;
        let rows_per_block = rows.div_ceil(count.max(1)).next_multiple_of(SOME_ROWS).max(1);
        Self::of(rows, if rows < count * SOME_ROWS { 1 } else { rows_per_block })
    }

    /// At most `count` blocks, each with a multiple of `step` rows except the last.
    #[inline]
    pub(crate) fn at_most(rows: usize, count: usize, step: usize) -> Self {
        let rows_per_block = rows.div_ceil(count.max(1)).max(1).next_multiple_of(step);
        Self::of(rows, rows_per_block)
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn range(self, block: usize) -> Range<usize> {
        let first = block * self.rows_per_block;
        first..self.rows.min(first + self.rows_per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_row_once_in_whole_chains() {
        for rows in 0..5000 {
            let cols = rows % 7 * 1000;
            for blocks in [Blocks::of_column_sums(rows, cols), Blocks::about(rows, 7)] {
                let mut next = 0;
                for block in 0..blocks.count() {
                    let range = blocks.range(block);
                    assert_eq!(range.start, next);
                    assert!(range.end > range.start);
                    next = range.end;
                }
                assert_eq!(next, rows);
            }
            let blocks = Blocks::of_column_sums(rows, cols);
            assert!(blocks.count() <= MOST_BLOCKS);
            assert!(blocks.rows_per_block.is_multiple_of(CHAIN_ROWS));
        }
    }
}
