//! The sums over rows, diff_scale and diff_shift: which rows make a block, and how blocks are joined.
//!
//! Rows are cut into blocks whose size depends on the shape alone. In a block, up to
//! [`CHAIN_ROWS`] rows that f32 carries make a chain per column, in f32 and in order; a chain ends there,
//! before a row that f32 does not carry, and with the block, and is then added in f64. The blocks are
//! joined by a fixed binary tree. So neither the threads nor the instruction set change a bit, and a
//! kernel may take any number of rows at once.

use super::job::Backward;
use crate::simd::{Element, LANES, Level, Map, Runtime, Simd, add_wide, entry_points, map};
use crate::tensor::DataType;
use std::ops::Range;

/// Rows whose terms are summed in f32, one after another, before they are added in f64.
pub(super) const CHAIN_ROWS: usize = 16;

/// The most blocks that rows are cut into. More would balance more threads, but each takes room in the
/// scratchpad and is read once more when they are joined.
const MOST_BLOCKS: usize = 32;
/// The most blocks as long as they would not have [`ELEMENTS_OF_MANY`] elements each.
const FEW_BLOCKS: usize = 8;
const ELEMENTS_OF_MANY: usize = 512 * 1024;
/// Elements that pay for a block of their own.
const ELEMENTS_OF_ONE: usize = 32 * 1024;

/// How rows are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    rows: usize,
    pub(super) rows_per_block: usize,
}

impl Blocks {
    /// The blocks of the column sums of a problem: whole chains, except at the end.
    pub(super) fn of_column_sums(rows: usize, cols: usize) -> Self {
        let elements = rows.saturating_mul(cols);
        let few = (elements / ELEMENTS_OF_ONE).clamp(1, FEW_BLOCKS);
        let count = few.max(elements / ELEMENTS_OF_MANY).min(MOST_BLOCKS);
        let rows_per_block = rows.div_ceil(count).next_multiple_of(CHAIN_ROWS).max(CHAIN_ROWS);
        Self { rows, rows_per_block }
    }

    /// About `count` blocks, for work whose result does not depend on the cut.
    pub(super) fn about(rows: usize, count: usize) -> Self {
        const SOME_ROWS: usize = 4;
        let rows_per_block = rows.div_ceil(count.max(1)).next_multiple_of(SOME_ROWS).max(1);
        Self { rows, rows_per_block: if rows < count * SOME_ROWS { 1 } else { rows_per_block } }
    }

    /// At most `count` blocks, of whole `step` rows except at the end.
    pub(super) fn at_most(rows: usize, count: usize, step: usize) -> Self {
        let rows_per_block = rows.div_ceil(count.max(1)).max(1).next_multiple_of(step);
        Self { rows, rows_per_block }
    }

    pub(super) fn count(self) -> usize {
        self.rows.div_ceil(self.rows_per_block)
    }

    pub(super) fn range(self, block: usize) -> Range<usize> {
        let first = block * self.rows_per_block;
        first..self.rows.min(first + self.rows_per_block)
    }
}

/// Where a block has its sums; null for those that are not asked for.
pub(super) struct ColumnSums {
    pub(super) diff_scale: *mut f64,
    pub(super) diff_shift: *mut f64,
    /// The chains that are not ended yet.
    pub(super) scale_chain: *mut f32,
    pub(super) shift_chain: *mut f32,
}

impl ColumnSums {
    /// How many f64 take the sums of a block with `count` of diff_scale and diff_shift.
    pub(super) fn size(count: usize, cols: usize) -> usize {
        let sums = count.saturating_mul(cols);
        sums.saturating_add(sums.div_ceil(2)).checked_next_multiple_of(8).unwrap_or(usize::MAX)
    }

    /// The sums of the block whose part of the scratchpad begins at `block`.
    #[inline(always)]
    pub(super) fn new(job: &Backward, block: *mut f64) -> Self {
        let (scale, shift) = (usize::from(job.sums_scale), usize::from(job.sums_shift));
        let at = |index: usize, wanted: bool| {
            if wanted { block.wrapping_add(index * job.cols) } else { std::ptr::null_mut() }
        };
        let chains = block.wrapping_add((scale + shift) * job.cols).cast::<f32>();
        let chain = |index: usize, wanted: bool| {
            if wanted { chains.wrapping_add(index * job.cols) } else { std::ptr::null_mut() }
        };
        Self {
            diff_scale: at(0, job.sums_scale),
            diff_shift: at(scale, job.sums_shift),
            scale_chain: chain(0, job.sums_scale),
            shift_chain: chain(scale, job.sums_shift),
        }
    }

    /// Adds the chains to the sums and begins new ones.
    ///
    /// # Safety
    /// The sums have `cols` columns and are this thread's; the instruction set of `S` is there.
    #[inline(always)]
    pub(super) unsafe fn end_chains<S: Simd>(&self, cols: usize) {
        let both = [(self.diff_scale, self.scale_chain), (self.diff_shift, self.shift_chain)];
        for (sums, chain) in both {
            if !sums.is_null() {
                // SAFETY: the caller's.
                unsafe { map::<S, _>(cols, &EndChain { sums, chain }) };
            }
        }
    }
}

/// Adds a chain to its sum and begins a new one.
struct EndChain {
    sums: *mut f64,
    chain: *mut f32,
}

impl<S: Simd> Map<S> for EndChain {
    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe {
            let chain = self.chain.add(i);
            add_wide::<S, 1>(self.sums.add(i), [S::widen(S::load(chain))], LANES);
            S::store(chain, S::splat(0.0));
        }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe {
            let chain = self.chain.add(i);
            add_wide::<S, 1>(self.sums.add(i), [S::widen(S::load_n(chain, n))], n);
            S::store_n(chain, S::splat(0.0), n);
        }
    }
}

/// The sums of one output in all blocks, of which one begins `stride` f64 after the other.
#[derive(Clone, Copy)]
pub(super) struct Partial {
    pub(super) first: *mut f64,
    pub(super) blocks: usize,
    pub(super) stride: usize,
}

/// Joins partial sums and writes them out: blocks `i` and `i + 1`, then `i` and `i + 2`, and so on.
struct Join {
    partial: Partial,
    out_type: Runtime,
    out: *mut u8,
}

impl Join {
    /// # Safety
    /// As [`Map`]; `n` is 16 for a whole vector.
    #[inline(always)]
    unsafe fn at<S: Simd>(&self, i: usize, n: usize) {
        let Partial { first, blocks, stride } = self.partial;
        // SAFETY: the caller's.
        unsafe {
            let mut step = 1;
            while step < blocks {
                let mut left = 0;
                while left + step < blocks {
                    let right = first.add((left + step) * stride + i);
                    let terms =
                        if n == LANES { S::wide_load(right) } else { S::wide_load_n(right, n) };
                    add_wide::<S, 1>(first.add(left * stride + i), [terms], n);
                    left += 2 * step;
                }
                step *= 2;
            }
            let total = match (blocks, n == LANES) {
                (0, _) => S::wide_splat(0.0),
                (_, true) => S::wide_load(first.add(i)),
                (_, false) => S::wide_load_n(first.add(i), n),
            };
            if n == LANES {
                self.out_type.store::<S>(self.out, i, S::narrow(total));
            } else {
                self.out_type.store_n::<S>(self.out, i, S::narrow(total), n);
            }
        }
    }
}

impl<S: Simd> Map<S> for Join {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.at::<S>(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        // SAFETY: the caller's.
        unsafe { self.at::<S>(i, n) }
    }
}

/// Joins the partial sums of `cols` columns and writes the totals; zeros if there are no blocks.
///
/// # Safety
/// The partial sums are there and nobody else uses them; `out` takes `cols` elements of the type; the
/// instruction set of `S` is there.
#[inline(always)]
unsafe fn join_columns<S: Simd>(partial: &Partial, cols: usize, out_type: DataType, out: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        map::<S, _>(cols, &Join { partial: *partial, out_type: <Runtime>::of(out_type), out })
    }
}

entry_points! {
    /// The join, per level.
    mod entries: join_columns<>(
        partial: &Partial, cols: usize, out_type: DataType, out: *mut u8
    ) -> ();
}

/// Joins partial sums; see [`join_columns`].
pub(super) type JoinEntry = unsafe fn(&Partial, usize, DataType, *mut u8);

pub(super) fn join_entry(level: Level) -> JoinEntry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
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

    #[test]
    fn a_join_is_the_sum() {
        for (blocks, cols) in (0..20).flat_map(|blocks| [2, 16, 37].map(|cols| (blocks, cols))) {
            let stride = cols + 1;
            let mut sums: Vec<f64> = (0..blocks * stride).map(|i| i as f64).collect();
            let mut out = vec![7.0f32; cols];
            let partial = Partial { first: sums.as_mut_ptr(), blocks, stride };
            // SAFETY: blocks of `stride`, of which `cols` columns are joined, anywhere.
            unsafe {
                join_entry(Level::Portable)(&partial, cols, DataType::F32, out.as_mut_ptr().cast());
            }
            for (col, &total) in out.iter().enumerate() {
                let want: usize = (0..blocks).map(|b| b * stride + col).sum();
                assert_eq!(total, want as f32);
            }
        }
    }
}
