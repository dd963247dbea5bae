//! The sums over rows, diff_scale and diff_shift: which rows make a block, and how blocks are joined.
//!
//! Rows are cut into blocks whose size depends on the number of rows alone. A block's rows are summed
//! in order into f64, [`TILE`] rows at a time in f32 before; the blocks are joined by a fixed binary
//! tree. So neither the threads nor the instruction set change a bit.

use crate::simd::write_scalar;
use crate::tensor::DataType;
use std::ops::Range;

/// Rows whose terms are summed in f32, one after another, before they are added in f64.
pub(super) const TILE: usize = 4;

/// The most blocks that rows are cut into. More would balance more threads, but each takes C f64 of
/// scratchpad per sum and is read once more when they are joined.
const MOST_BLOCKS: usize = 32;
/// The fewest rows in a block.
const FEWEST_ROWS: usize = 16;

/// How rows are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    rows: usize,
    pub(super) rows_per_block: usize,
}

impl Blocks {
    /// The blocks of the column sums over `rows` rows: whole tiles, except at the end.
    pub(super) fn of_column_sums(rows: usize) -> Self {
        let even = rows.div_ceil(MOST_BLOCKS).next_multiple_of(TILE);
        Self { rows, rows_per_block: even.max(FEWEST_ROWS) }
    }

    /// About `count` blocks, for work whose result does not depend on the cut.
    pub(super) fn about(rows: usize, count: usize) -> Self {
        let rows_per_block = rows.div_ceil(count.max(1)).next_multiple_of(TILE).max(1);
        Self { rows, rows_per_block: if rows < count * TILE { 1 } else { rows_per_block } }
    }

    pub(super) fn count(self) -> usize {
        self.rows.div_ceil(self.rows_per_block)
    }

    pub(super) fn range(self, block: usize) -> Range<usize> {
        let first = block * self.rows_per_block;
        first..self.rows.min(first + self.rows_per_block)
    }
}

/// Joins `blocks` partial sums of `cols` columns, stored one block after another at `sums`, and writes
/// the totals; zeros if there are none. Blocks `i` and `i + 1`, then `i` and `i + 2`, and so on.
///
/// # Safety
/// The partial sums are there and nobody else uses them; `out` takes `cols` elements of the type.
pub(super) unsafe fn join(
    sums: *mut f64,
    blocks: usize,
    stride: usize,
    cols: usize,
    out_type: DataType,
    out: *mut u8,
) {
    let mut step = 1;
    while step < blocks {
        for left in (0..blocks - step).step_by(2 * step) {
            // SAFETY: both blocks exist and are different.
            let (a, b) = unsafe {
                let right = sums.add((left + step) * stride);
                (
                    std::slice::from_raw_parts_mut(sums.add(left * stride), cols),
                    std::slice::from_raw_parts(right, cols),
                )
            };
            for (a, b) in a.iter_mut().zip(b) {
                *a += b;
            }
        }
        step *= 2;
    }
    for col in 0..cols {
        // SAFETY: the caller's.
        unsafe {
            let total = if blocks == 0 { 0.0 } else { *sums.add(col) };
            write_scalar(out_type, out, col, total as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_row_once_in_whole_tiles() {
        for rows in 0..3000 {
            for blocks in [Blocks::of_column_sums(rows), Blocks::about(rows, 7)] {
                let mut next = 0;
                for block in 0..blocks.count() {
                    let range = blocks.range(block);
                    assert_eq!(range.start, next);
                    assert!(range.end > range.start);
                    next = range.end;
                }
                assert_eq!(next, rows);
            }
            let blocks = Blocks::of_column_sums(rows);
            assert!(blocks.count() <= MOST_BLOCKS && blocks.rows_per_block.is_multiple_of(TILE));
        }
    }

    #[test]
    fn a_join_is_the_sum() {
        for blocks in 0..20 {
            let mut sums: Vec<f64> = (0..blocks * 3).map(|i| i as f64).collect();
            let mut out = [7.0f32; 2];
            let out_p = out.as_mut_ptr().cast();
            // SAFETY: blocks of stride 3, of which 2 columns are joined.
            unsafe { join(sums.as_mut_ptr(), blocks, 3, 2, DataType::F32, out_p) };
            for (col, &total) in out.iter().enumerate() {
                let want: usize = (0..blocks).map(|b| b * 3 + col).sum();
                assert_eq!(total, want as f32);
            }
        }
    }
}
