//! Backward over rows so short that the per-row scalar work would dominate: a chain of column sums at a time.
//!
//! The rows of a chain are stored together, so their column terms stay in registers. The bits are those of the
//! row-by-row kernel.

use super::backward::Kernel;
use super::gradient::{ADD, READ_SCALE, SUM_SCALE, SUM_SHIFT, Vectors};
use super::job::ChainScalars;
use super::row::load_if;
use super::schedule::{LONGEST_CHAIN_AHEAD, LONGEST_CHAINED_STREAMED};
use super::short_forward::prefetch;
use crate::rows::CHAIN_ROWS;
use crate::simd::{
    Cache, Element, First, Full, LANES, Level, Simd, Width, add_wide, opaque, unroll, zeroed,
};
use std::hint::black_box;

// SAFETY of every block below: rows exist and belong to this thread, `cols` is not 0, and the CPU supports the
// instruction set of `S`, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// Runs whole chains of short rows from `first`. Returns the row it stopped at.
    ///
    /// The scalars of very short rows are computed one chain ahead, so the stores hide the latency of their square
    /// roots and divisions. Rows to which a gradient is added are longer.
    #[inline(always)]
    pub(super) unsafe fn short_chains<S: Simd>(&self, first: usize, last: usize) -> usize {
        let job = self.job;
        let mut row = first;
        let (Some(compute), Some(src_step), Some(dd_step), Some(ds_step)) =
            (job.short, job.src_rows.step(), job.diff_dst_rows.step(), job.diff_src_rows.step())
        else {
            return row;
        };
        if const { !S::UNROLLS || PARAMS & ADD != 0 } {
            return row;
        }
        let types = &self.types;
        // Opaque, as in forward.
        let steps = black_box((src_step * types.src.size(), dd_step * types.diff_dst.size()));
        let ds_step = black_box(ds_step * types.diff_src.size());
        let longest = types.src.size().max(types.diff_dst.size()) * job.cols;
        if job.streams && longest > LONGEST_CHAINED_STREAMED {
            return row;
        }
        let ahead = longest <= LONGEST_CHAIN_AHEAD;
        let rows_ahead = if ahead { job.chain_rows_ahead } else { 0 };
        let streams = job.streams
            && types.diff_src.streams(unsafe { self.diff_src(row) })
            && ds_step == job.cols * types.diff_src.size()
            && ds_step.is_multiple_of(64);
        let mut scalars = [ChainScalars::NONE; 2];
        let [mut current, mut next] = scalars.each_mut();
        unsafe {
            let compute_chain = |row: usize, scalars: &mut ChainScalars| {
                row + CHAIN_ROWS <= last && compute(job, row, steps, scalars)
            };
            let mut ready = compute_chain(row, current);
            if ready {
                self.sums.begin(job.cols);
            }
            while ready {
                if ahead {
                    ready = compute_chain(row + CHAIN_ROWS, next);
                }
                let rows = ChainRows {
                    src: self.src(row),
                    diff_dst: self.diff_dst(row),
                    diff_src: opaque(self.diff_src(row)).cast_mut(),
                    steps: (steps.0, steps.1, ds_step),
                    scalars: current,
                    ahead: rows_ahead,
                    cache: job.prefetched_into,
                };
                if streams {
                    self.store_chain::<S, true>(&rows);
                } else {
                    self.store_chain::<S, false>(&rows);
                }
                if !ahead {
                    ready = compute_chain(row + CHAIN_ROWS, next);
                }
                std::mem::swap(&mut current, &mut next);
                row += CHAIN_ROWS;
            }
        }
        row
    }

    /// Stores a chain of rows and adds their column terms.
    #[inline(always)]
    unsafe fn store_chain<S: Simd, const STREAMS: bool>(&self, rows: &ChainRows<'_>) {
        let cols = self.job.cols;
        let mut i = 0;
        unsafe {
            if const { STREAMS && S::MANY_REGISTERS } && cols == LANES && rows.ahead == 0 {
                rows.prefetch_line::<S>();
            }
            if S::MANY_REGISTERS {
                while i + 4 * LANES <= cols {
                    self.store_columns::<S, 4, STREAMS>(rows, i);
                    i += 4 * LANES;
                }
                if i + 2 * LANES <= cols {
                    self.store_columns::<S, 2, STREAMS>(rows, i);
                    i += 2 * LANES;
                }
            }
            if const { matches!(S::LEVEL, Level::Avx2) && STREAMS && Ds::HALF } {
                // Whole cache lines of each row, as in `Stream`; the number of vectors is even.
                while i < cols {
                    self.store_columns::<S, 2, STREAMS>(rows, i);
                    i += 2 * LANES;
                }
            }
            while i + LANES <= cols {
                self.store_columns::<S, 1, STREAMS>(rows, i);
                i += LANES;
            }
            // Streamed rows are whole cache lines.
            if !STREAMS && i < cols {
                self.store_tail::<S>(rows, i, cols - i);
            }
        }
    }

    /// Stores `N` vectors of each row at element `i`, non-temporally with `STREAMS`, and adds their column terms.
    #[inline(always)]
    unsafe fn store_columns<S: Simd, const N: usize, const STREAMS: bool>(
        &self,
        rows: &ChainRows<'_>,
        i: usize,
    ) {
        let types = &self.types;
        unsafe {
            let mut scale = S::zeros::<N>();
            unroll!(v in N, {
                let at = i + v * LANES;
                scale[v] = load_if::<S>(PARAMS & READ_SCALE != 0, self.job.scale, at, Full);
            });
            let mut chains: [(S::F32x16, S::F32x16); N] = zeroed();
            for row in 0..CHAIN_ROWS {
                let (vectors, src, diff_dst, diff_src) = rows.row::<S>(row);
                let mut outs = S::zeros::<N>();
                unroll!(v in N, {
                    let x = types.src.load::<S>(src, i + v * LANES);
                    let dd = types.diff_dst.load::<S>(diff_dst, i + v * LANES);
                    outs[v] = vectors.gradient::<MODE, PARAMS>(x, dd, scale[v], &mut chains[v]);
                });
                if STREAMS && (!S::MANY_REGISTERS || rows.ahead > 0) {
                    rows.prefetch::<S, _>(types.src, (src, rows.steps.0), i, N * LANES);
                    rows.prefetch::<S, _>(types.diff_dst, (diff_dst, rows.steps.1), i, N * LANES);
                }
                if STREAMS {
                    types.diff_src.stream_all::<S, N>(diff_src, i, &outs);
                } else {
                    types.diff_src.store_all::<S, N>(diff_src, i, &outs);
                }
            }
            unroll!(v in N, {
                self.add_columns::<S>(i + v * LANES, Full, chains[v]);
            });
        }
    }

    /// Stores the last `n` elements of each row, fewer than a vector, and adds their column terms.
    #[inline(always)]
    unsafe fn store_tail<S: Simd>(&self, rows: &ChainRows<'_>, i: usize, n: usize) {
        let types = &self.types;
        unsafe {
            let width = First(n);
            let scale = load_if::<S>(PARAMS & READ_SCALE != 0, self.job.scale, i, width);
            let mut chains = (S::zero(), S::zero());
            for row in 0..CHAIN_ROWS {
                let (vectors, src, diff_dst, diff_src) = rows.row::<S>(row);
                let x = width.load_as::<S, _>(types.src, src, i);
                let dd = width.load_as::<S, _>(types.diff_dst, diff_dst, i);
                let out = vectors.gradient::<MODE, PARAMS>(x, dd, scale, &mut chains);
                width.store_as::<S, _>(types.diff_src, diff_src, i, out);
            }
            self.add_columns::<S>(i, width, chains);
        }
    }

    /// Adds the chains of a vector of columns to the column sums.
    #[inline(always)]
    unsafe fn add_columns<S: Simd>(
        &self,
        i: usize,
        width: impl Width,
        chains: (S::F32x16, S::F32x16),
    ) {
        unsafe {
            if const { PARAMS & SUM_SCALE != 0 } {
                add_wide::<S, 1>(self.sums.diff_scale.add(i), [S::widen(chains.0)], width);
            }
            if const { PARAMS & SUM_SHIFT != 0 } {
                add_wide::<S, 1>(self.sums.diff_shift.add(i), [S::widen(chains.1)], width);
            }
        }
    }
}

/// The rows of a chain, ready to be stored.
struct ChainRows<'a> {
    src: *const u8,
    diff_dst: *const u8,
    /// Opaque: the compiler would keep 16 addresses in memory, and advance each for every chain.
    diff_src: *mut u8,
    /// The distances between rows of src, diff_dst and diff_src, in bytes.
    steps: (usize, usize, usize),
    scalars: &'a ChainScalars,
    /// How many rows after a stored one a row is prefetched; 0 if none is. With few registers, that is the row itself, which
    /// costs less than deciding not to.
    ahead: usize,
    /// The cache to prefetch it into; with few registers, always the first.
    cache: Cache,
}

impl ChainRows<'_> {
    /// Prefetches one line of the third chain from here, which need not exist, into the second-level cache. The hardware
    /// prefetches within a page, so this starts it on the next page. Where a chain lies across two pages, 16 columns of
    /// f32 took 0.93 to 0.97 of the time on a Zen 4.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn prefetch_line<S: Simd>(&self) {
        for (row, step) in [(self.src, self.steps.0), (self.diff_dst, self.steps.1)] {
            let line = row.wrapping_add(3 * CHAIN_ROWS * step);
            // SAFETY: guaranteed by the caller.
            unsafe { prefetch::<S>(Cache::Second, line, 1) }
        }
    }

    /// Prefetches `n` elements at `i` of the row that is `ahead` rows later, which need not exist.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn prefetch<S: Simd, E: Element>(
        &self,
        element: E,
        (row, step): (*const u8, usize),
        i: usize,
        n: usize,
    ) {
        let first = row.wrapping_add(self.ahead * step + i * element.size());
        // With few registers, inputs of backward are never prefetched into the second.
        let cache = if const { S::MANY_REGISTERS } { self.cache } else { Cache::First };
        // SAFETY: guaranteed by the caller.
        unsafe { prefetch::<S>(cache, first, n * element.size()) }
    }

    /// A row's scalars, and its addresses in src, diff_dst and diff_src.
    ///
    /// # Safety
    /// The row is in the chain, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, row: usize) -> (Vectors<S>, *const u8, *const u8, *mut u8) {
        let (src_step, dd_step, ds_step) = self.steps;
        let ChainScalars { mean, r, shift, slope } = self.scalars;
        // SAFETY: guaranteed by the caller.
        let vectors = unsafe {
            Vectors {
                mean: S::splat(mean[row]),
                r: S::splat(r[row]),
                shift: S::splat(shift[row]),
                slope: S::splat(slope[row]),
            }
        };
        (
            vectors,
            self.src.wrapping_add(row * src_step),
            self.diff_dst.wrapping_add(row * dd_step),
            self.diff_src.wrapping_add(row * ds_step),
        )
    }
}
