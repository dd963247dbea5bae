//! The scalars of short rows backward, computed for one chain of column sums at a time in the lanes of a vector. The
//! bits are those of the row-by-row kernel.

use super::gradient::{Kind, LAYER, READ_SCALE, RMS, RowSums};
use super::job::{Backward, ChainEntry, ChainScalars};
use super::schedule::{LONGEST_CHAINED, is_prefetched_in_sums};
use super::short_forward::prefetch;
use super::types::KernelTypes;
use crate::rows::CHAIN_ROWS;
use crate::rows::row_lanes::{RowLanes, Sixteen, given_in_range, slopes};
use crate::simd::{
    Bf16, Cache, Element, F16, F32, Full, GROUP, LANES, LaneSums, Level, Simd, each_row,
    entry_points, lane_sums, unroll, zeroed,
};
use crate::tensor::DataType;

/// The rows of a chain, with the scalars that their sums need.
struct Rows<'a, Src, Dd> {
    src_type: Src,
    dd_type: Dd,
    src: *const u8,
    diff_dst: *const u8,
    /// The distances between rows, in bytes.
    src_step: usize,
    dd_step: usize,
    scale: *const f32,
    mean: &'a [f32; CHAIN_ROWS],
    r: &'a [f32; CHAIN_ROWS],
    /// Whether to prefetch the chain after the next one into the second-level cache.
    prefetches: bool,
}

impl<Src: Element, Dd: Element> Rows<'_, Src, Dd> {
    /// # Safety
    /// The row is in the chain, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn row<S: Simd, const MODE: u8, const PARAMS: u8>(
        &self,
        row: usize,
    ) -> RowSums<S, Src, Dd, MODE, PARAMS> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            RowSums {
                src_type: self.src_type,
                dd_type: self.dd_type,
                src: self.src.wrapping_add(row * self.src_step),
                diff_dst: self.diff_dst.wrapping_add(row * self.dd_step),
                scale: self.scale,
                mean: S::splat(self.mean[row]),
                r: S::splat(self.r[row]),
            }
        }
    }

    /// Prefetches a row of `cols` f32 two chains later, which need not exist.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn prefetch<S: Simd>(&self, row: usize, cols: usize) {
        let later = row + 2 * CHAIN_ROWS;
        let src = self.src.wrapping_add(later * self.src_step);
        let diff_dst = self.diff_dst.wrapping_add(later * self.dd_step);
        // SAFETY: guaranteed by the caller.
        unsafe {
            prefetch::<S>(Cache::Second, src, cols * size_of::<f32>());
            prefetch::<S>(Cache::Second, diff_dst, cols * size_of::<f32>());
        }
    }

    /// The sums of a row of `NV` full vectors. One chain is enough, because the fold's other chains are zero.
    ///
    /// # Safety
    /// As [`Rows::row`].
    #[inline(always)]
    unsafe fn sum<S: Simd, const MODE: u8, const PARAMS: u8, const NV: usize>(
        &self,
        i: usize,
        lanes: &mut [LaneSums; 2],
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if const { S::MANY_REGISTERS && !Src::HALF && !Dd::HALF && is_prefetched_in_sums(NV * LANES) }
                && self.prefetches
            {
                self.prefetch::<S>(i, NV * LANES);
            }
            let row = self.row::<S, MODE, PARAMS>(i);
            let (mut d_sum, mut d_xhat_sum) = (S::zero(), S::zero());
            unroll!(v in NV, {
                let (d, xhat) = row.at(v * LANES, Full);
                d_sum = S::add(d, d_sum);
                d_xhat_sum = S::fma(d, xhat, d_xhat_sum);
            });
            if MODE == LAYER {
                lanes[0].set::<S>(i, S::widen(d_sum));
            }
            lanes[1].set::<S>(i, S::widen(d_xhat_sum));
        }
    }
}

/// `sum(d)` (0 with RMS) and `sum(d*xhat)` of each row.
///
/// # Safety
/// The rows exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn sums<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8>(
    rows: &Rows<'_, Src, Dd>,
    cols: usize,
) -> [S::F64x16; 2] {
    let mut lanes = [LaneSums::NONE, LaneSums::NONE];
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (cols / LANES, cols % LANES) {
            (1, 0) => sum_vectors::<S, Src, Dd, MODE, PARAMS, 1>(rows, &mut lanes),
            (2, 0) => sum_vectors::<S, Src, Dd, MODE, PARAMS, 2>(rows, &mut lanes),
            (3, 0) => sum_vectors::<S, Src, Dd, MODE, PARAMS, 3>(rows, &mut lanes),
            (4, 0) => sum_vectors::<S, Src, Dd, MODE, PARAMS, 4>(rows, &mut lanes),
            _ => sum_any::<S, Src, Dd, MODE, PARAMS>(rows, cols, &mut lanes),
        }
        let d = if MODE == LAYER { lanes[0].totals::<S>() } else { S::wide_zero() };
        [d, lanes[1].totals::<S>()]
    }
}

/// [`sums`] of rows of `NV` full vectors.
///
/// # Safety
/// As [`sums`].
#[inline(always)]
unsafe fn sum_vectors<
    S: Simd,
    Src: Element,
    Dd: Element,
    const MODE: u8,
    const PARAMS: u8,
    const NV: usize,
>(
    rows: &Rows<'_, Src, Dd>,
    lanes: &mut [LaneSums; 2],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if const { NV == 1 && S::UNROLLS } {
            // So little work per row that a loop would cost up to a tenth with AVX-512 and 3 per cent with AVX2.
            unroll!(to 16: i in CHAIN_ROWS, {
                rows.sum::<S, MODE, PARAMS, NV>(i, lanes);
            });
            return;
        }
        each_row!(r in S, {
            rows.sum::<S, MODE, PARAMS, NV>(r, lanes);
        });
    }
}

/// [`sums`] of rows of any length.
///
/// # Safety
/// As [`sums`].
#[inline(always)]
unsafe fn sum_any<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8>(
    rows: &Rows<'_, Src, Dd>,
    cols: usize,
    lanes: &mut [LaneSums; 2],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for i in 0..CHAIN_ROWS {
            let row = rows.row::<S, MODE, PARAMS>(i);
            if MODE == LAYER {
                let [d, d_xhat] = lane_sums::<S, 2, _>(cols, &row).products;
                lanes[0].set::<S>(i, d);
                lanes[1].set::<S>(i, d_xhat);
            } else {
                let [d_xhat] = lane_sums::<S, 1, _>(cols, &row).products;
                lanes[1].set::<S>(i, d_xhat);
            }
        }
    }
}

/// The means or variances of a chain's rows.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn statistics<S: Simd>(job: &Backward<'_>, given: *const f32, first: usize) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if job.stat_rows.step() == Some(1) {
            return S::load(given.add(job.stat_rows.offset(first)));
        }
        let mut values: [f32; CHAIN_ROWS] = zeroed();
        for i in 0..CHAIN_ROWS {
            values[i] = given.add(job.stat_rows.offset(first + i)).read_unaligned();
        }
        S::load(values.as_ptr())
    }
}

/// Computes the scalars of the chain that begins at `first`. Returns false if one of its rows needs f64.
///
/// # Safety
/// The rows exist, are `src_step` and `dd_step` bytes apart and have at least one column, and the CPU supports the
/// instruction set of `S`.
#[inline(always)]
unsafe fn chain_scalars<S: Simd, Src: Element, Dd: Element, const MODE: u8, const PARAMS: u8>(
    job: &Backward<'_>,
    first: usize,
    (src_step, dd_step): (usize, usize),
    scalars: &mut ChainScalars,
) -> bool {
    const { assert!(CHAIN_ROWS == LANES) };
    let (src_type, dd_type) = (Src::of(job.src_type), Dd::of(job.diff_dst_type));
    let ChainScalars { mean, r, shift, slope } = scalars;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let variance = Sixteen::<S>::widen(statistics::<S>(job, job.variance, first));
        let trusted = if MODE == LAYER {
            let means = statistics::<S>(job, job.mean, first);
            S::store(mean.as_mut_ptr(), means);
            given_in_range::<Sixteen<S>, false>(Sixteen::widen(means), variance)
        } else {
            given_in_range::<Sixteen<S>, true>(Sixteen::splat(0.0), variance)
        };
        if !trusted {
            return false;
        }
        let epsilon = Sixteen::splat(job.epsilon);
        let r_lanes = Sixteen::round(Sixteen::reciprocal_root(Sixteen::add(variance, epsilon)));
        S::store(r.as_mut_ptr(), r_lanes);
        let rows = Rows {
            src_type,
            dd_type,
            src: job.src.wrapping_add(job.src_rows.offset(first) * src_type.size()),
            diff_dst: job.diff_dst.wrapping_add(job.diff_dst_rows.offset(first) * dd_type.size()),
            src_step,
            dd_step,
            scale: job.scale,
            mean,
            r,
            prefetches: job.prefetched_in_sums,
        };
        let [d, d_xhat] = sums::<S, Src, Dd, MODE, PARAMS>(&rows, job.cols);
        let sums = [Sixteen(d), Sixteen(d_xhat)];
        let [shifts, slopes] = slopes::<Sixteen<S>>(r_lanes, job.cols, sums);
        S::store(slope.as_mut_ptr(), slopes);
        if MODE == LAYER {
            S::store(shift.as_mut_ptr(), shifts);
        }
    }
    true
}

entry_points! {
    /// The scalars of a chain, per level.
    mod entries: chain_scalars<Src: Element, Dd: Element; const MODE: u8, const PARAMS: u8>(
        job: &Backward<'_>, first: usize, steps: (usize, usize), scalars: &mut ChainScalars
    ) -> bool;
}

/// The entry for a problem; `None` if its rows are not short or the level has no vectors.
pub(super) fn entry(
    level: Level,
    types: &KernelTypes,
    kind: Kind,
    cols: usize,
) -> Option<ChainEntry> {
    use DataType::{Bf16 as B, F16 as H, F32 as F};
    let [src, diff_dst, _] = types.all();
    if cols > GROUP || cols * src.size().max(diff_dst.size()) > LONGEST_CHAINED {
        return None;
    }
    fn typed<Src: Element, Dd: Element>(level: Level, kind: Kind) -> Option<ChainEntry> {
        match (kind.mode, kind.scaled) {
            (LAYER, _) => entries::at::<Src, Dd, LAYER, READ_SCALE>(level),
            // There is so little work per element that multiplying by ones would cost up to 17 per cent.
            (RMS, false) => entries::at::<Src, Dd, RMS, 0>(level),
            (RMS, true) => entries::at::<Src, Dd, RMS, READ_SCALE>(level),
            _ => None,
        }
    }
    match (src, diff_dst) {
        (F, F) => typed::<F32, F32>(level, kind),
        (B, B) => typed::<Bf16, Bf16>(level, kind),
        (H, H) => typed::<F16, F16>(level, kind),
        (F, B) => typed::<F32, Bf16>(level, kind),
        (B, F) => typed::<Bf16, F32>(level, kind),
        _ => None,
    }
}
