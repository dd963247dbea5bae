//! Backward in f64, for the same rows as [`f64_forward`](super::f64_forward), with the formulas of `backward`.

use super::f64_forward::{TwoTerms, parameter_or, statistics, totals};
use super::job::{Backward, Given};
use super::schedule::TILE;
use crate::rows::ColumnSums;
use crate::rows::statistics::reciprocal;
use crate::simd::{
    F64, LANES, Level, Map, Number, Simd, UpTo, WideElement, Width, add_wide, entry_points, map,
    narrow_to_odd, unroll, zeroed,
};
use crate::tensor::DataType;
use std::mem::MaybeUninit;
use std::ptr::null;

/// The types of a row's tensors.
#[derive(Clone, Copy)]
struct Types<E> {
    src: E,
    diff_dst: E,
    diff_src: E,
}

/// The gradient of a row. It sums `d` and `d*xhat`.
#[derive(Clone, Copy)]
struct GradientRow<'a, E> {
    job: &'a Backward<'a>,
    types: Types<E>,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    /// The gradient of the stored sum, if it is added.
    added: *const u8,
    mean: f64,
    r: f64,
    /// `r*sum(d)/C`.
    shift: f64,
    /// `r*sum(d*xhat)/C`.
    slope: f64,
}

impl<E: WideElement> GradientRow<'_, E> {
    /// `diff_dst` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn load<S: Simd>(&self, i: usize, width: impl Width) -> (S::F64x16, S::F64x16) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let x = self.types.src.get::<S>(self.src, i, width);
            let dd = self.types.diff_dst.get::<S>(self.diff_dst, i, width);
            let (mean, r) = (S::wide_splat(self.mean), S::wide_splat(self.r));
            (dd, S::wide_mul(S::wide_sub(x, mean), r))
        }
    }

    /// The f32 sum of a vector of the gradient and that of the stored sum.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn sum<S: Simd>(&self, i: usize, width: impl Width, value: S::F64x16) -> S::F64x16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let added = S::narrow(self.types.src.get::<S>(self.added, i, width));
            // The sum is rounded once more, as if the gradient were a tensor of its own in f32.
            let half = self.job.diff_src_type.is_half();
            let value = if half { narrow_to_odd::<S>(value) } else { S::narrow(value) };
            S::widen(S::add(added, value))
        }
    }
}

/// `scale*diff_dst` of a vector.
///
/// # Safety
/// As [`Map`], and scale is as long as a row.
#[inline(always)]
unsafe fn scaled<S: Simd>(
    job: &Backward<'_>,
    dd: S::F64x16,
    i: usize,
    width: impl Width,
) -> S::F64x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { S::wide_mul(S::widen(parameter_or::<S>(1.0, job.scale, i, width)), dd) }
}

impl<S: Simd, E: WideElement> TwoTerms<S> for GradientRow<'_, E> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize, width: UpTo) -> [S::F64x16; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (dd, xhat) = self.load::<S>(i, width);
            let d = scaled::<S>(self.job, dd, i, width);
            [d, S::wide_mul(d, xhat)]
        }
    }
}

/// The gradients of `R` rows, stored together, so column sums are loaded and stored once for all of them.
struct Gradients<'a, E, const R: usize> {
    rows: [GradientRow<'a, E>; R],
    /// The block's column sums; null if not wanted.
    diff_scale: *mut f64,
    diff_shift: *mut f64,
    /// Whether diff_src is stored non-temporally.
    streams: bool,
}

impl<S: Simd, E: WideElement, const R: usize> Map<S> for Gradients<'_, E, R> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let n = width.n();
        // SAFETY: guaranteed by the caller; the sums are null or as long as a row.
        unsafe {
            let mut terms: [[S::F64x16; 2]; R] = zeroed();
            unroll!(r in R, {
                let row = &self.rows[r];
                let job = row.job;
                let (dd, xhat) = row.load::<S>(i, width);
                terms[r] = [S::wide_mul(dd, xhat), dd];
                let scaled = S::wide_mul(scaled::<S>(job, dd, i, width), S::wide_splat(row.r));
                // Columns outside a partial norm do not contribute to the mean square.
                let inside = job.stat_cols.saturating_sub(i).min(n);
                let correction = S::wide_mul(xhat, S::wide_splat(row.slope));
                let correction = if inside < n { S::wide_first_n(correction, inside) } else { correction };
                let value = match (job.global_stats, job.rms) {
                    (true, _) => scaled,
                    (false, true) => S::wide_sub(scaled, correction),
                    (false, false) => {
                        S::wide_sub(S::wide_sub(scaled, S::wide_splat(row.shift)), correction)
                    }
                };
                // Only kernels of vector levels add a gradient, and none of f64.
                let adds = const { S::UNROLLS && !E::DOUBLE } && !row.added.is_null();
                let value = if adds { row.sum::<S>(i, width, value) } else { value };
                if self.streams && n == LANES {
                    row.types.diff_src.stream::<S>(row.diff_src, i, value);
                } else {
                    row.types.diff_src.put::<S>(row.diff_src, i, value, width);
                }
            });
            let all_sums = [self.diff_scale, self.diff_shift];
            unroll!(t in 2, {
                if !all_sums[t].is_null() {
                    let mut column: [S::F64x16; R] = zeroed();
                    unroll!(r in R, {
                        column[r] = terms[r][t];
                    });
                    add_wide::<S, R>(all_sums[t].add(i), column, width);
                }
            });
        }
    }
}

/// The first sweep over a row: its statistics and sums.
///
/// # Safety
/// The row exists and belongs to this thread, `cols` is not 0, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn gradient_row<'a, S: Simd, E: WideElement>(
    job: &'a Backward<'_>,
    row: usize,
) -> GradientRow<'a, E> {
    let cols = job.cols;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let src = job.src.wrapping_add(job.src_rows.offset(row) * job.src_type.size());
        let types = Types {
            src: E::of(job.src_type),
            diff_dst: E::of(job.diff_dst_type),
            diff_src: E::of(job.diff_src_type).rounded_again(job.rounded_again),
        };
        let found = match job.given(row) {
            // The given statistics are f32, too coarse for an f64 gradient.
            Given::F32(found) | Given::F64(found) if job.global_stats || !job.has_f64() => found,
            _ => statistics::<S, _>(types.src, src, job.stat_cols, job.rms, null()),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let (dd_offset, ds_offset) = (job.diff_dst_rows.offset(row), job.diff_src_rows.offset(row));
        let mut gradient = GradientRow::<E> {
            job,
            types,
            src,
            diff_dst: job.diff_dst.wrapping_add(dd_offset * job.diff_dst_type.size()),
            diff_src: job.diff_src.wrapping_add(ds_offset * job.diff_src_type.size()),
            added: job.added(row),
            mean: found.mean,
            r,
            shift: 0.0,
            slope: 0.0,
        };
        if !job.global_stats {
            let per_col = r / job.stat_cols as f64;
            let [d, d_xhat] = totals::<S, _>(cols, &gradient, null());
            gradient.shift = per_col * d;
            gradient.slope = per_col * d_xhat;
        }
        gradient
    }
}

/// Stores the gradients of `R` rows and adds their column terms.
///
/// # Safety
/// As [`backward_rows`].
#[inline(always)]
unsafe fn store<S: Simd, E: WideElement, const R: usize>(
    job: &Backward<'_>,
    rows: [GradientRow<'_, E>; R],
    &ColumnSums { diff_scale, diff_shift, .. }: &ColumnSums,
) {
    let mut streams = job.streams;
    unroll!(r in R, {
        streams &= rows[r].types.diff_src.streams(rows[r].diff_src);
    });
    // SAFETY: guaranteed by the caller.
    unsafe { map::<S, _>(job.cols, &Gradients { rows, diff_scale, diff_shift, streams }) }
}

/// Backward over rows.
///
/// # Safety
/// The rows and their block's column sums exist and belong to this thread, `cols` is not 0, and the CPU supports the
/// instruction set of `S`.
#[inline(always)]
unsafe fn backward_rows<S: Simd, E: WideElement>(
    job: &Backward<'_>,
    first: usize,
    last: usize,
    sums: *mut f64,
) {
    let sums = job.column_sums(sums);
    // SAFETY: guaranteed by the caller.
    unsafe {
        sums.begin(job.cols);
        let mut row = first;
        while row < last {
            let count = TILE.min(last - row);
            // All rows are prepared in one loop, so the sweeps are compiled once.
            let mut rows = [const { MaybeUninit::uninit() }; TILE];
            for i in 0..count {
                rows[i].write(gradient_row::<S, E>(job, row + i));
            }
            let [a, b] = rows;
            if count == TILE {
                store::<S, E, TILE>(job, [a.assume_init(), b.assume_init()], &sums);
            } else {
                store::<S, E, 1>(job, [a.assume_init()], &sums);
            }
            row += count;
        }
        if job.streams {
            S::stream_fence();
        }
    }
}

entry_points! {
    /// Backward in f64, per level.
    mod entries: backward_rows<E: WideElement>(
        job: &Backward<'_>, first: usize, last: usize, sums: *mut f64
    ) -> ();
}

/// Runs rows from the first index to before the second and adds to their block's column sums.
pub(super) type Entry = unsafe fn(&Backward<'_>, usize, usize, *mut f64);

/// The entry for types of src, diff_dst and diff_src.
pub(super) fn entry(level: Level, types: [DataType; 3]) -> Entry {
    let entry = match types {
        [DataType::F64, DataType::F64, DataType::F64] => entries::at::<F64>(level),
        _ => entries::at::<Number>(level),
    };
    entry.unwrap_or(entries::portable::entry_portable::<Number>)
}
