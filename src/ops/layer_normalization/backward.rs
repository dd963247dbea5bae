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
//! One sweep sums each row. A second one, over two rows at once, stores diff_src and adds the column terms to chains in
//! f32. Rows that need f64 are left to `f64_backward`.

use super::gradient::{
    ADD, GLOBAL, Gradient, Kind, LAYER, READ_SCALE, RMS, Row, RowSums, SUM_BOTH, SUM_SCALE, Stream,
    Types,
};
use super::job::{Backward, Given};
use super::normalize::Prefetch;
use super::schedule::TILE;
use super::types::KernelTypes;
use crate::rows::row_lanes::slopes;
use crate::rows::statistics::{Statistics, reciprocal};
use crate::rows::{CHAIN_ROWS, ColumnSums};
use crate::simd::{
    Bf16, Cache, Element, F16, F32, Level, Simd, entry_points, fold, fold_beside, map, unroll,
    zeroed,
};
use crate::tensor::DataType;

const GLOBAL_RMS: u8 = GLOBAL | RMS;
const ALL: u8 = READ_SCALE | SUM_BOTH;
const SCALE: u8 = READ_SCALE | SUM_SCALE;

/// Runs rows `first` to `last - 1`, or up to a row that needs f64, and adds to the block's column sums at `sums`.
/// Returns the row it stopped at.
///
/// # Safety
/// The rows and sums exist and belong to this thread, `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn backward_rows<
    S: Simd,
    Src: Element,
    Dd: Element,
    Ds: Element,
    const MODE: u8,
    const PARAMS: u8,
>(
    job: &Backward<'_>,
    first: usize,
    last: usize,
    sums: *mut f64,
) -> usize {
    let kernel = Kernel::<Src, Dd, Ds, MODE, PARAMS> {
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
        // Rows of a chain that an earlier call left open.
        let mut open = kernel.sums.open_rows();
        loop {
            if open == 0 {
                row = kernel.short_chains::<S>(row, last);
            }
            let chain_end = last.min(row + CHAIN_ROWS - open);
            let chain_first = row;
            while row < chain_end {
                let ready = kernel.f32_rows(row, chain_end);
                if ready == 0 {
                    break;
                }
                kernel.rows::<S>(row, ready);
                row += ready;
            }
            open += row - chain_first;
            let goes_on = job.more && row == last && open < CHAIN_ROWS;
            if open > 0 && !goes_on {
                let ends_block = row == last && !job.more;
                if !(job.single_chains && ends_block && kernel.sums.are_empty()) {
                    kernel.sums.end_chains::<S>(job.cols);
                }
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
pub(super) struct Kernel<'a, Src, Dd, Ds, const MODE: u8, const PARAMS: u8> {
    pub(super) job: &'a Backward<'a>,
    pub(super) types: Types<Src, Dd, Ds>,
    /// The column sums of the block.
    pub(super) sums: ColumnSums,
}

// SAFETY of every block below: rows exist and belong to this thread, `cols` is not 0, and the CPU supports the
// instruction set of `S`, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// Runs both sweeps over `count` rows, at most a tile.
    #[inline(always)]
    unsafe fn rows<S: Simd>(&self, row: usize, count: usize) {
        let job = self.job;
        unsafe {
            // All rows are prepared in one loop, so the sweep is compiled once.
            let mut rows: [Row; TILE] = zeroed();
            for i in 0..count {
                rows[i] = self.prepare::<S>(row + i);
            }
            match count {
                _ if Self::PARTIAL && job.stat_cols < job.cols => {
                    for row in &rows[..count] {
                        self.partial::<S>(row);
                    }
                }
                TILE if S::UNROLLS && job.streams && self.streams(&rows) => {
                    self.write_non_temporal::<S>(rows, row + job.rows_ahead);
                }
                TILE => map::<S, _>(job.cols, &self.gradient(rows)),
                _ => map::<S, _>(job.cols, &self.gradient([rows[0]])),
            }
        }
    }

    /// Whether the kernel supports partial norms. One kernel per level does.
    const PARTIAL: bool = MODE == RMS && PARAMS == ALL;

    /// The second sweep of a partial norm. Columns outside it do not contribute to the mean square.
    #[inline(always)]
    unsafe fn partial<S: Simd>(&self, row: &Row) {
        let (job, types) = (self.job, self.types);
        let (inside, sums) = (job.stat_cols, self.sums.from(job.stat_cols));
        let outside = Row {
            src: row.src.wrapping_add(inside * types.src.size()),
            diff_dst: row.diff_dst.wrapping_add(inside * types.diff_dst.size()),
            diff_src: row.diff_src.wrapping_add(inside * types.diff_src.size()),
            slope: 0.0,
            ..*row
        };
        let scale = job.scale.wrapping_add(inside);
        unsafe {
            map::<S, _>(inside, &self.gradient([*row]));
            let gradient =
                Gradient::<_, _, _, MODE, PARAMS, 1> { types, rows: [outside], scale, sums: &sums };
            map::<S, _>(job.cols - inside, &gradient);
        }
    }

    /// The number of rows from `first`, at most a tile, for which f32 is accurate enough.
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

    /// The gradient of the stored sum, if the kernel adds it.
    #[inline(always)]
    unsafe fn added(&self, row: usize) -> *const u8 {
        if const { PARAMS & ADD == 0 } { std::ptr::null() } else { self.job.added(row) }
    }

    /// Whether rows of src are prefetched while other rows are summed, and other inputs while they are stored. With
    /// constant statistics, nothing is summed. Loading bf16 takes more instructions: from memory on a Zen 5, long rows
    /// of it then took up to 1.1 times as long.
    #[inline(always)]
    fn splits_prefetch<S: Simd>(&self) -> bool {
        (const { S::MANY_REGISTERS && !Src::PAIRED && MODE & GLOBAL == 0 })
            && self.job.splits_prefetch
    }

    /// The first sweep over a row.
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&self, row: usize) -> Row {
        let job = self.job;
        unsafe {
            let found = match job.given(row) {
                Given::F32(found) | Given::F64(found) => found,
                // `f32_rows` excludes such rows.
                Given::Recompute => Statistics { mean: 0.0, variance: 0.0 },
            };
            let (mean, r) = (found.mean as f32, reciprocal(found.variance, job.epsilon) as f32);
            let (src, diff_dst) = (self.src(row), self.diff_dst(row));
            let (diff_src, added) = (self.diff_src(row), self.added(row));
            let sums = RowSums::<S, Src, Dd, MODE, PARAMS> {
                src_type: self.types.src,
                dd_type: self.types.diff_dst,
                src,
                diff_dst,
                scale: job.scale,
                mean: S::splat(mean),
                r: S::splat(r),
            };
            let splits = self.splits_prefetch::<S>();
            let next = if splits { self.src(row + job.rows_ahead) } else { std::ptr::null() };
            let next = Prefetch { row: next, size: self.types.src.size(), cache: Cache::First };
            let sums = match MODE {
                LAYER if splits => fold_beside::<S, 2, _, _>(job.cols, &sums, &next).products,
                RMS if splits => {
                    [0.0, fold_beside::<S, 1, _, _>(job.cols, &sums, &next).products[0]]
                }
                LAYER => fold::<S, 2, _>(job.cols, &sums).products,
                RMS => [0.0, fold::<S, 1, _>(job.cols, &sums).products[0]],
                _ => [0.0, 0.0],
            };
            let [shift, slope] = slopes::<f64>(r, job.stat_cols, sums);
            Row { src, diff_dst, diff_src, added, mean, r, shift, slope }
        }
    }

    #[inline(always)]
    fn gradient<const R: usize>(
        &self,
        rows: [Row; R],
    ) -> Gradient<'_, Src, Dd, Ds, MODE, PARAMS, R> {
        Gradient { types: self.types, rows, scale: self.job.scale, sums: &self.sums }
    }

    /// Whether the alignment of the rows of a tile allows non-temporal stores.
    #[inline(always)]
    fn streams(&self, rows: &[Row; TILE]) -> bool {
        let mut streams = true;
        unroll!(r in TILE, {
            streams &= self.types.diff_src.streams(rows[r].diff_src);
        });
        streams
    }

    /// The second sweep over a tile, with non-temporal stores. Prefetches what the rows from `next` read, unless it was
    /// prefetched before.
    #[inline(always)]
    unsafe fn write_non_temporal<S: Simd>(&self, rows: [Row; TILE], next: usize) {
        unsafe {
            let splits = self.splits_prefetch::<S>();
            let mut ahead: [[*const u8; 3]; TILE] = zeroed();
            unroll!(i in TILE, {
                let row = next + i;
                // Prefetching what is in the cache costs less than deciding not to.
                let src = if splits { rows[i].src } else { self.src(row) };
                ahead[i] = [src, self.diff_dst(row), self.added(row)];
            });
            let (gradient, job) = (self.gradient(rows), self.job);
            let cache = job.prefetched_into;
            map::<S, _>(job.cols, &Stream { gradient, next: ahead, cache });
        }
    }
}

entry_points! {
    /// Backward, per level.
    mod entries: backward_rows<Src: Element, Dd: Element, Ds: Element;
        const MODE: u8, const PARAMS: u8>(
        job: &Backward<'_>, first: usize, last: usize, sums: *mut f64
    ) -> usize;
}

/// Runs rows from the first index to before the second and adds to a block's column sums. Returns the second index, or
/// the row that needs `f64_backward`.
pub(super) type Entry = unsafe fn(&Backward<'_>, usize, usize, *mut f64) -> usize;

/// The kernel for a problem's types and outputs; `None` if all rows are computed in f64.
pub(super) fn entry(level: Level, types: &KernelTypes, kind: Kind) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let entry = match types.all() {
        _ if types.double() => return None,
        [F, F, F] if types.adds => adding::<F32>(level, kind),
        [B, B, B] if types.adds => adding::<Bf16>(level, kind),
        [H, H, H] if types.adds => adding::<F16>(level, kind),
        [B, B, B] => usual::<Bf16, Bf16, Bf16>(level, kind),
        [H, H, H] => usual::<F16, F16, F16>(level, kind),
        [F, B, F] => usual::<F32, Bf16, F32>(level, kind),
        [B, F, B] => usual::<Bf16, F32, Bf16>(level, kind),
        _ => match (kind.mode, kind.sums) {
            (RMS, SUM_BOTH) => entries::at::<F32, F32, F32, RMS, ALL>(level),
            (GLOBAL, _) => entries::at::<F32, F32, F32, GLOBAL, ALL>(level),
            (GLOBAL_RMS, _) => entries::at::<F32, F32, F32, GLOBAL_RMS, ALL>(level),
            _ => usual::<F32, F32, F32>(level, kind),
        },
    };
    use entries::portable::entry_portable as portable;
    Some(entry.unwrap_or(match kind.mode {
        LAYER => portable::<F32, F32, F32, LAYER, ALL>,
        RMS => portable::<F32, F32, F32, RMS, ALL>,
        GLOBAL => portable::<F32, F32, F32, GLOBAL, ALL>,
        _ => portable::<F32, F32, F32, GLOBAL_RMS, ALL>,
    }))
}

fn usual<Src: Element, Dd: Element, Ds: Element>(level: Level, kind: Kind) -> Option<Entry> {
    match (kind.mode, kind.sums, kind.scaled) {
        (RMS, 0, false) => entries::at::<Src, Dd, Ds, RMS, 0>(level),
        (RMS, 0, true) => entries::at::<Src, Dd, Ds, RMS, READ_SCALE>(level),
        (RMS, _, _) => entries::at::<Src, Dd, Ds, RMS, SCALE>(level),
        (_, 0, false) => entries::at::<Src, Dd, Ds, LAYER, 0>(level),
        (_, 0, true) => entries::at::<Src, Dd, Ds, LAYER, READ_SCALE>(level),
        _ => entries::at::<Src, Dd, Ds, LAYER, ALL>(level),
    }
}

/// The kernels that add the gradient of a stored sum.
fn adding<E: Element>(level: Level, kind: Kind) -> Option<Entry> {
    match kind.mode {
        RMS => entries::at::<E, E, E, RMS, { SCALE | ADD }>(level),
        _ => entries::at::<E, E, E, LAYER, { ALL | ADD }>(level),
    }
}
