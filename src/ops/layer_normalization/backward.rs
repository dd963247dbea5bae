//! Backward, per row with `r = 1/sqrt(variance + epsilon)`, `xhat = (src - mean)*r` and
//! `d = scale*diff_dst`:
//!
//! ```text
//! layer norm        diff_src = r*d - r*sum(d)/C - xhat*(r*sum(d*xhat)/C)
//! rms_norm          diff_src = r*d - xhat*(r*sum(d*xhat)/C)
//! use_global_stats  diff_src = r*d
//! diff_scale += diff_dst*xhat, diff_shift += diff_dst
//! ```
//!
//! Two sweeps: one over each row for its sums; one over two rows at once, which writes diff_src and adds
//! column terms to chains in f32. Rows that f32 does not carry are left to `wide`.

use super::gradient::{
    GLOBAL, Gradient, Kind, LAYER, RMS, Row, RowSums, SUM_BOTH, SUM_SCALE, Stream, TILE, Types,
};
use super::job::{Backward, Given};
use super::row::{Statistics, per_col, reciprocal};
use super::types::KernelTypes;
use crate::rows::{CHAIN_ROWS, ColumnSums};
use crate::simd::{Bf16, Element, F16, F32, Level, Simd, entry_points, fold, map, unroll};
use crate::tensor::DataType;

const GLOBAL_RMS: u8 = GLOBAL | RMS;

/// Rows from `first` on, up to `last - 1` or to one that f32 does not carry; gives the row it stopped
/// at. Adds to the block's column sums at `sums`.
///
/// # Safety
/// The rows and sums are there and this thread's; `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn backward_rows<
    S: Simd,
    Src: Element,
    Dd: Element,
    Ds: Element,
    const MODE: u8,
    const SUMS: u8,
>(
    job: &Backward,
    first: usize,
    last: usize,
    sums: *mut f64,
) -> usize {
    let kernel = Kernel::<Src, Dd, Ds, MODE, SUMS> {
        job,
        types: Types {
            src: Src::of(job.src_type),
            diff_dst: Dd::of(job.diff_dst_type),
            diff_src: Ds::of(job.diff_src_type),
        },
        sums: job.column_sums(sums),
    };
    let mut row = first;
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Rows of a chain that an earlier call has left open.
        let mut open = kernel.sums.open_rows();
        loop {
            if open == 0 {
                row = kernel.short_chains::<S>(row, last);
            }
            let chain_end = last.min(row + CHAIN_ROWS - open);
            let chain_first = row;
            while row < chain_end {
                let ready = kernel.f32_rows(row, chain_end);
                let mut rows = [Row::NOTHING; TILE];
                for i in 0..ready {
                    rows[i] = kernel.prepare::<S>(row + i);
                }
                match ready {
                    0 => break,
                    TILE if job.streams => kernel.write_non_temporal::<S>(rows, row + TILE),
                    TILE => map::<S, _>(job.cols, &kernel.gradient(rows)),
                    _ => map::<S, _>(job.cols, &kernel.gradient([rows[0]])),
                }
                row += ready;
            }
            open += row - chain_first;
            let goes_on = job.more && row == last && open < CHAIN_ROWS;
            if open > 0 && !goes_on {
                kernel.sums.end_chains::<S>(job.cols);
                open = 0;
            }
            if row < chain_end || row == last {
                break;
            }
        }
        kernel.sums.leave_open(open);
        if job.streams {
            S::stream_fence();
        }
    }
    row
}

/// A job with the types of its kernel.
pub(super) struct Kernel<'a, Src, Dd, Ds, const MODE: u8, const SUMS: u8> {
    pub(super) job: &'a Backward,
    pub(super) types: Types<Src, Dd, Ds>,
    /// The block's.
    pub(super) sums: ColumnSums,
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const SUMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, SUMS>
{
    /// How many rows from `first` on f32 carries, up to a tile.
    #[inline(always)]
    unsafe fn f32_rows(&self, first: usize, last: usize) -> usize {
        let end = last.min(first + TILE);
        let mut row = first;
        while row < end && matches!(unsafe { self.job.given(row) }, Given::F32(_)) {
            row += 1;
        }
        row - first
    }

    #[inline(always)]
    pub(super) unsafe fn src(&self, row: usize) -> *const u8 {
        self.job.src.wrapping_add(self.job.src_rows.offset(row) * self.types.src.size())
    }

    #[inline(always)]
    pub(super) unsafe fn diff_dst(&self, row: usize) -> *const u8 {
        let offset = self.job.diff_dst_rows.offset(row) * self.types.diff_dst.size();
        self.job.diff_dst.wrapping_add(offset)
    }

    #[inline(always)]
    pub(super) unsafe fn diff_src(&self, row: usize) -> *mut u8 {
        let offset = self.job.diff_src_rows.offset(row) * self.types.diff_src.size();
        self.job.diff_src.wrapping_add(offset)
    }

    /// The first sweep of a row.
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&self, row: usize) -> Row {
        let job = self.job;
        unsafe {
            let found = match job.given(row) {
                Given::F32(found) | Given::F64(found) => found,
                // Not among the rows that are taken here.
                Given::Recompute => Statistics { mean: 0.0, variance: 0.0 },
            };
            let (mean, r) = (found.mean as f32, reciprocal(found.variance, job.epsilon) as f32);
            let (src, diff_dst) = (self.src(row), self.diff_dst(row));
            let diff_src = self.diff_src(row);
            let sums = RowSums::<S, Src, Dd, MODE> {
                src_type: self.types.src,
                dd_type: self.types.diff_dst,
                src,
                diff_dst,
                scale: job.scale,
                mean: S::splat(mean),
                r: S::splat(r),
            };
            let [sum_d, sum_d_xhat] = match MODE {
                LAYER => fold::<S, 2, _>(job.cols, &sums).products,
                RMS => [0.0, fold::<S, 1, _>(job.cols, &sums).products[0]],
                _ => [0.0, 0.0],
            };
            let per_col = per_col(f64::from(r), job.cols);
            let (shift, slope) = (-(per_col * sum_d) as f32, (per_col * sum_d_xhat) as f32);
            Row { src, diff_dst, diff_src, mean, r, shift, slope }
        }
    }

    #[inline(always)]
    fn gradient<const R: usize>(&self, rows: [Row; R]) -> Gradient<'_, Src, Dd, Ds, MODE, SUMS, R> {
        Gradient { types: self.types, rows, scale: self.job.scale, sums: &self.sums }
    }

    /// The second sweep of a tile, of which `next` comes next.
    #[inline(always)]
    unsafe fn write_non_temporal<S: Simd>(&self, rows: [Row; TILE], next: usize) {
        let gradient = self.gradient(rows);
        let mut streams = true;
        unroll!(r in TILE, {
            streams &= self.types.diff_src.streams(rows[r].diff_src);
        });
        unsafe {
            if streams {
                let mut ahead = [(self.job.src, self.job.diff_dst); TILE];
                unroll!(i in TILE, {
                    ahead[i] = (self.src(next + i), self.diff_dst(next + i));
                });
                map::<S, _>(self.job.cols, &Stream { gradient, next: ahead });
            } else {
                map::<S, _>(self.job.cols, &gradient);
            }
        }
    }
}

entry_points! {
    /// Rows backward, per level.
    mod entries: backward_rows<Src: Element, Dd: Element, Ds: Element;
        const MODE: u8, const SUMS: u8>(
        job: &Backward, first: usize, last: usize, sums: *mut f64
    ) -> usize;
}

/// Runs rows from `first` on into a block's column sums and gives the row it stopped at: `last`, or one
/// for `wide`.
pub(super) type Entry = unsafe fn(&Backward, usize, usize, *mut f64) -> usize;

/// The kernel for a problem's types and what is computed; `None` if all rows are computed in f64.
pub(super) fn entry(level: Level, types: &KernelTypes, kind: Kind) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let entry = match types.all() {
        _ if types.double() => return None,
        [B, B, B] => usual::<Bf16, Bf16, Bf16>(level, kind),
        [H, H, H] => usual::<F16, F16, F16>(level, kind),
        [F, B, F] => usual::<F32, Bf16, F32>(level, kind),
        [B, F, B] => usual::<Bf16, F32, Bf16>(level, kind),
        _ => match (kind.mode, kind.sums) {
            (RMS, SUM_BOTH) => entries::at::<F32, F32, F32, RMS, SUM_BOTH>(level),
            (GLOBAL, _) => entries::at::<F32, F32, F32, GLOBAL, SUM_BOTH>(level),
            (GLOBAL_RMS, _) => entries::at::<F32, F32, F32, GLOBAL_RMS, SUM_BOTH>(level),
            _ => usual::<F32, F32, F32>(level, kind),
        },
    };
    use entries::portable::entry_portable as portable;
    Some(entry.unwrap_or(match kind.mode {
        LAYER => portable::<F32, F32, F32, LAYER, SUM_BOTH>,
        RMS => portable::<F32, F32, F32, RMS, SUM_BOTH>,
        GLOBAL => portable::<F32, F32, F32, GLOBAL, SUM_BOTH>,
        _ => portable::<F32, F32, F32, GLOBAL_RMS, SUM_BOTH>,
    }))
}

fn usual<Src: Element, Dd: Element, Ds: Element>(level: Level, kind: Kind) -> Option<Entry> {
    match (kind.mode, kind.sums) {
        (RMS, 0) => entries::at::<Src, Dd, Ds, RMS, 0>(level),
        (RMS, _) => entries::at::<Src, Dd, Ds, RMS, SUM_SCALE>(level),
        (_, 0) => entries::at::<Src, Dd, Ds, LAYER, 0>(level),
        _ => entries::at::<Src, Dd, Ds, LAYER, SUM_BOTH>(level),
    }
}
