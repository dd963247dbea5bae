//! Backward in f64, for the same rows as [`f64_forward`](super::f64_forward), with the formulas of `backward`.

use super::f64_forward::{TwoTerms, parameter_or, statistics, totals};
use super::job::{Backward, Given};
use crate::rows::ColumnSums;
use crate::rows::statistics::reciprocal;
use crate::simd::{
    AnyWide, F64, LANES, Level, Map, Number, Simd, UpTo, WideElement, Width, add_wide,
    entry_points, map, narrow_to_odd, unroll, zeroed,
};
use crate::tensor::DataType;
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
struct GradientRow<'a, S: Simd, E> {
    job: &'a Backward<'a>,
    types: Types<E>,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    /// The gradient of the stored sum, if it is added.
    added: *const u8,
    mean: S::F64x16,
    r: S::F64x16,
    /// `r*sum(d)/C`.
    shift: S::F64x16,
    /// `r*sum(d*xhat)/C`.
    slope: S::F64x16,
}

impl<S: Simd, E: WideElement> GradientRow<'_, S, E> {
    /// `diff_dst` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn load(&self, i: usize, width: impl Width) -> (S::F64x16, S::F64x16) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let x = self.types.src.get::<S>(self.src, i, width);
            let dd = self.types.diff_dst.get::<S>(self.diff_dst, i, width);
            (dd, S::wide_mul(S::wide_sub(x, self.mean), self.r))
        }
    }

    /// The f32 sum of a vector of the gradient and that of the stored sum.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn sum(&self, i: usize, width: impl Width, value: S::F64x16) -> S::F64x16 {
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

impl<S: Simd, E: WideElement> TwoTerms<S> for GradientRow<'_, S, E> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize, width: UpTo) -> [S::F64x16; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (dd, xhat) = self.load(i, width);
            let d = scaled::<S>(self.job, dd, i, width);
            [d, S::wide_mul(d, xhat)]
        }
    }
}

/// The gradients of `R` rows, stored together, so column sums are loaded and stored once for all of them.
struct Gradients<'a, S: Simd, E, const R: usize> {
    rows: [GradientRow<'a, S, E>; R],
    /// The block's column sums; null if not wanted.
    diff_scale: *mut f64,
    diff_shift: *mut f64,
    /// Whether diff_src is stored non-temporally.
    streams: bool,
}

impl<S: Simd, E: WideElement, const R: usize> Map<S> for Gradients<'_, S, E, R> {
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
                let (dd, xhat) = row.load(i, width);
                terms[r] = [S::wide_mul(dd, xhat), dd];
                let scaled = S::wide_mul(scaled::<S>(job, dd, i, width), row.r);
                // Columns outside a partial norm do not contribute to the mean square.
                let inside = job.stat_cols.saturating_sub(i).min(n);
                let correction = S::wide_mul(xhat, row.slope);
                let correction = if inside < n { S::wide_first_n(correction, inside) } else { correction };
                let value = match (job.global_stats, job.rms) {
                    (true, _) => scaled,
                    (false, true) => S::wide_sub(scaled, correction),
                    (false, false) => S::wide_sub(S::wide_sub(scaled, row.shift), correction),
                };
                // Only kernels of vector levels add a gradient, and none of f64.
                let adds = S::UNROLLS && !E::DOUBLE && !row.added.is_null();
                let value = if adds { row.sum(i, width, value) } else { value };
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
) -> GradientRow<'a, S, E> {
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
            Given::F32(found) | Given::F64(found) if job.global_stats || !E::DOUBLE => found,
            _ => statistics::<S, _>(types.src, src, job.stat_cols, job.rms, null()),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let (dd_offset, ds_offset) = (job.diff_dst_rows.offset(row), job.diff_src_rows.offset(row));
        let mut gradient = GradientRow::<S, E> {
            job,
            types,
            src,
            diff_dst: job.diff_dst.wrapping_add(dd_offset * job.diff_dst_type.size()),
            diff_src: job.diff_src.wrapping_add(ds_offset * job.diff_src_type.size()),
            added: job.added(row),
            mean: S::wide_splat(found.mean),
            r: S::wide_splat(r),
            shift: S::wide_zero(),
            slope: S::wide_zero(),
        };
        if !job.global_stats {
            let per_col = r / job.stat_cols as f64;
            let [d, d_xhat] = totals::<S, _>(cols, &gradient, null());
            gradient.shift = S::wide_splat(per_col * d);
            gradient.slope = S::wide_splat(per_col * d_xhat);
        }
        gradient
    }
}

/// Backward over `R` rows.
///
/// # Safety
/// The rows and their block's column sums exist and belong to this thread, `cols` is not 0, and the CPU supports the
/// instruction set of `S`.
#[inline(always)]
unsafe fn backward_some<S: Simd, E: WideElement, const R: usize>(
    job: &Backward<'_>,
    first: usize,
    sums: *mut f64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sums = job.column_sums(sums);
        sums.begin(job.cols);
        let ColumnSums { diff_scale, diff_shift, .. } = sums;
        let mut rows = [gradient_row::<S, E>(job, first); R];
        for r in 1..R {
            rows[r] = gradient_row::<S, E>(job, first + r);
        }
        let mut streams = job.streams;
        unroll!(r in R, {
            streams &= rows[r].types.diff_src.streams(rows[r].diff_src);
        });
        map(job.cols, &Gradients { rows, diff_scale, diff_shift, streams });
    }
}

/// Backward over rows.
///
/// # Safety
/// As [`backward_some`].
#[inline(always)]
unsafe fn backward_rows<S: Simd, E: WideElement>(
    job: &Backward<'_>,
    first: usize,
    last: usize,
    sums: *mut f64,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut row = first;
        while row + 2 <= last {
            backward_some::<S, E, 2>(job, row, sums);
            row += 2;
        }
        if row < last {
            backward_some::<S, E, 1>(job, row, sums);
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
    fn typed<E: WideElement>(level: Level) -> Entry {
        entries::at::<E>(level).unwrap_or(entries::portable::entry_portable::<E>)
    }
    match types.iter().filter(|t| **t == DataType::F64).count() {
        0 => typed::<Number>(level),
        3 => typed::<F64>(level),
        _ => typed::<AnyWide>(level),
    }
}
