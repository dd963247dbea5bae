//! The statistics of rows so short that the per-row scalar work would dominate: 16 rows at once, with their scalars in
//! the lanes of a vector. The bits are those of the row-by-row kernel.
//!
//! Rows of up to [`PROVISIONAL_COLS`] elements have their own entries here. The forward kernel sums longer ones while
//! it stores other rows; this module only computes their scalars.

use super::job::{
    Forward, OverlappedRows, ROWS_AT_ONCE, ShortRows, ShortScalars, ShortStatistics, SumsOfRows,
};
use super::row::{
    Moments, PROVISIONAL_COLS, mean_of_terms, provisional_lanes, sums_values_in_f32, value_lanes,
};
use super::types::KernelTypes;
use crate::rows::row_lanes::{Normalizers, RowLanes, Sixteen, per_col_of, variance_about};
use crate::simd::{
    Bf16, Byte, Element, F16, F32, GROUP, HalfAsF32, LANES, LaneSums, Level, Simd, each_row,
    entry_points, lane_sums, unroll, zeroed,
};
use crate::tensor::DataType;

/// The longest row, in elements, that this module handles.
const LONGEST: usize = GROUP;

/// [`ROWS_AT_ONCE`] rows.
struct Rows<Src> {
    element: Src,
    first_row: *const u8,
    /// The distance between rows, in bytes.
    step: usize,
    cols: usize,
}

/// The moments of [`ROWS_AT_ONCE`] rows.
struct RowMoments<S: Simd> {
    provisional: [f32; ROWS_AT_ONCE],
    mean: Sixteen<S>,
    /// The mean squares of the deviations from the provisional means.
    mean_square: Sixteen<S>,
}

/// Computes the scalars of [`ROWS_AT_ONCE`] rows from `first` on and stores their statistics if they are outputs.
/// Returns false, with nothing stored, if one of the rows needs a second pass or f64.
///
/// # Safety
/// The rows exist, belong to this thread, have 1 to [`PROVISIONAL_COLS`] elements and are `src_step` bytes apart, and
/// the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn short_statistics<S: Simd, Src: Element, Dst: Element, const RMS: bool>(
    job: &Forward<'_>,
    first: usize,
    src_step: usize,
    scalars: &mut ShortScalars,
) -> bool {
    let (element, cols) = (Src::of(job.src_type), job.cols);
    let first_row = job.src.wrapping_add(job.src_rows.offset(first) * element.size());
    // SAFETY: guaranteed by the caller.
    unsafe {
        let rows = Rows { element, first_row, step: src_step, cols };
        let found = match (cols / LANES, cols % LANES) {
            (1, 0) => of_vectors::<S, Src, Dst, RMS, 1>(&rows),
            (2, 0) => of_vectors::<S, Src, Dst, RMS, 2>(&rows),
            (3, 0) => of_vectors::<S, Src, Dst, RMS, 3>(&rows),
            (4, 0) => of_vectors::<S, Src, Dst, RMS, 4>(&rows),
            _ => of_any::<S, Src, Dst, RMS>(&rows),
        };
        statistics_of::<S, RMS>(job, first, &found, scalars)
    }
}

/// The moments of rows of `NV` full vectors, a few instructions each.
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn of_vectors<S: Simd, Src: Element, Dst: Element, const RMS: bool, const NV: usize>(
    rows: &Rows<Src>,
) -> RowMoments<S> {
    let cols = NV * LANES;
    let &Rows { element, first_row, step, .. } = rows;
    let mut sums = LaneSums::NONE;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut provisional: [f32; ROWS_AT_ONCE] = zeroed();
        let mut mean = Sixteen(S::wide_zero());
        if !RMS {
            each_row!(r in S, {
                let row = first_row.add(r * step);
                sums.set::<S>(r, sum_values::<S, Src, Dst, NV>(element, row));
            });
            mean = per_col_of(Sixteen(sums.totals::<S>()), cols);
            S::store(provisional.as_mut_ptr(), Sixteen::round(mean));
        }
        each_row!(r in S, {
            let row = first_row.add(r * step);
            let moments = Moments::<Src, Dst, RMS>::about(element, row, provisional[r]);
            sums.set::<S>(r, moments.squares::<S, NV>());
        });
        let mean_square = per_col_of(Sixteen(sums.totals::<S>()), cols);
        RowMoments { provisional, mean, mean_square }
    }
}

/// The lane sums of the values of a row of `NV` full vectors, in the order of [`value_lanes`].
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn sum_values<S: Simd, Src: Element, Dst: Element, const NV: usize>(
    element: Src,
    src: *const u8,
) -> S::F64x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if sums_values_in_f32::<Src, Dst>(element) {
            let mut narrow = S::zero();
            unroll!(v in NV, {
                narrow = S::add(narrow, element.load::<S>(src, v * LANES));
            });
            return S::widen(narrow);
        }
        let mut wide = S::wide_zero();
        unroll!(v in NV, {
            wide = S::wide_add(wide, element.load_f64::<S>(src, v * LANES));
        });
        wide
    }
}

/// The moments of rows of any length up to [`PROVISIONAL_COLS`].
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn of_any<S: Simd, Src: Element, Dst: Element, const RMS: bool>(
    rows: &Rows<Src>,
) -> RowMoments<S> {
    let &Rows { element, first_row, step, cols, .. } = rows;
    let mut sums = LaneSums::NONE;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut provisional: [f32; ROWS_AT_ONCE] = zeroed();
        let mut mean = Sixteen(S::wide_zero());
        if !RMS {
            for r in 0..ROWS_AT_ONCE {
                let src = first_row.add(r * step);
                sums.set::<S>(r, value_lanes::<S, Src, Dst>(element, src, cols));
            }
            mean = per_col_of(Sixteen(sums.totals::<S>()), cols);
            S::store(provisional.as_mut_ptr(), Sixteen::round(mean));
        }
        for r in 0..ROWS_AT_ONCE {
            let moments =
                Moments::<Src, Dst, RMS>::about(element, first_row.add(r * step), provisional[r]);
            let [squares] = lane_sums::<S, 1, _>(cols, &moments).products;
            sums.set::<S>(r, squares);
        }
        let mean_square = per_col_of(Sixteen(sums.totals::<S>()), cols);
        RowMoments { provisional, mean, mean_square }
    }
}

impl SumsOfRows {
    /// Sums row `r`.
    ///
    /// # Safety
    /// It has `cols` elements, more than [`PROVISIONAL_COLS`] unless RMS and at most [`LONGEST`], and the CPU supports
    /// the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn sum<S: Simd, Src: Element, Dst: Element, const RMS: bool>(
        &mut self,
        r: usize,
        (element, row): (Src, *const u8),
        cols: usize,
    ) {
        let moments = Moments::<Src, Dst, RMS>::about(element, row, self.provisional[r]);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sums = lane_sums::<S, 1, _>(cols, &moments);
            self.squares.set::<S>(r, sums.products[0]);
            if !RMS {
                self.terms.set::<S>(r, sums.terms);
            }
        }
    }
}

/// Computes the provisional means of [`ROWS_AT_ONCE`] rows at `first_row`, `step` bytes apart.
///
/// # Safety
/// The rows exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn provisional_means<S: Simd, Src: Element>(
    job: &Forward<'_>,
    first_row: *const u8,
    step: usize,
    sums: &mut SumsOfRows,
) {
    let element = Src::of(job.src_type);
    // SAFETY: guaranteed by the caller.
    unsafe {
        for r in 0..ROWS_AT_ONCE {
            let lanes = provisional_lanes::<S, Src>(element, first_row.add(r * step));
            sums.terms.set::<S>(r, lanes);
        }
        let means = per_col_of(Sixteen::<S>(sums.terms.totals::<S>()), PROVISIONAL_COLS);
        S::store(sums.provisional.as_mut_ptr(), Sixteen::round(means));
    }
}

/// As [`short_statistics`], for rows from `first` that were summed.
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn summed_statistics<S: Simd, Dst: Element, const RMS: bool>(
    job: &Forward<'_>,
    first: usize,
    sums: &SumsOfRows,
    scalars: &mut ShortScalars,
) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut mean = Sixteen(S::wide_zero());
        if !RMS {
            let about = Sixteen::widen(S::load(sums.provisional.as_ptr()));
            let terms = Sixteen(sums.terms.totals::<S>());
            mean = mean_of_terms::<Sixteen<S>, Dst>(terms, about, job.cols);
        }
        let mean_square = per_col_of(Sixteen(sums.squares.totals::<S>()), job.cols);
        let found = RowMoments { provisional: sums.provisional, mean, mean_square };
        statistics_of::<S, RMS>(job, first, &found, scalars)
    }
}

/// As [`short_statistics`], from the moments.
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn statistics_of<S: Simd, const RMS: bool>(
    job: &Forward<'_>,
    first: usize,
    found: &RowMoments<S>,
    scalars: &mut ShortScalars,
) -> bool {
    let RowMoments { provisional, mean, mean_square } = *found;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let about = Sixteen::widen(S::load(provisional.as_ptr()));
        let (variance, trusted) = variance_about::<Sixteen<S>, RMS>(mean_square, mean, about);
        if !trusted {
            return false;
        }
        let Normalizers { high, low, r } =
            Normalizers::<Sixteen<S>>::new::<RMS>(mean, variance, job.epsilon);
        S::store(scalars.r.as_mut_ptr(), r);
        if !RMS {
            S::store(scalars.high.as_mut_ptr(), high);
            S::store(scalars.low.as_mut_ptr(), low);
        }
        job.write_rows::<Sixteen<S>, RMS>(first, mean, variance);
        true
    }
}

entry_points! {
    /// The statistics of short rows, per level. Only `Dst::HALF` matters.
    mod entries: short_statistics<Src: Element, Dst: Element; const RMS: bool>(
        job: &Forward<'_>, first: usize, src_step: usize, scalars: &mut ShortScalars
    ) -> bool;
}

entry_points! {
    /// The provisional means of rows that the forward kernel sums, per level.
    mod means_entries: provisional_means<Src: Element>(
        job: &Forward<'_>, first_row: *const u8, step: usize, sums: &mut SumsOfRows
    ) -> ();
}

entry_points! {
    /// The statistics of rows that the forward kernel summed, per level. Only `Dst::HALF` matters.
    mod summed_entries: summed_statistics<Dst: Element; const RMS: bool>(
        job: &Forward<'_>, first: usize, sums: &SumsOfRows, scalars: &mut ShortScalars
    ) -> bool;
}

/// How the statistics of a problem's short rows are computed.
pub(super) fn of_rows(level: Level, types: &KernelTypes, rms: bool, cols: usize) -> ShortRows {
    if cols > LONGEST || level == Level::Portable || types.double() {
        return ShortRows::None;
    }
    let Some(overlapped) = overlapped(level, types, rms) else { return ShortRows::None };
    if cols > PROVISIONAL_COLS {
        return ShortRows::Overlapped(overlapped);
    }
    separate(level, types, rms)
        .map_or(ShortRows::None, |statistics| ShortRows::Separate(statistics, overlapped))
}

/// The functions for rows of any length up to [`PROVISIONAL_COLS`].
fn separate(level: Level, types: &KernelTypes, rms: bool) -> Option<ShortStatistics> {
    use DataType::{Bf16 as B, F16 as H, S8, U8};
    let (src, dst) = (types.src, types.dst);
    // RMS sums no values, so dst does not matter.
    match (src.data_type, dst.half && !rms, rms) {
        (B, true, _) => entries::at::<Bf16, F16, false>(level),
        (H, true, _) => entries::at::<F16, F16, false>(level),
        (_, true, _) if src.half => entries::at::<HalfAsF32, F16, false>(level),
        (_, true, _) => entries::at::<F32, F16, false>(level),
        (B, false, false) => entries::at::<Bf16, F32, false>(level),
        (H, false, false) => entries::at::<F16, F32, false>(level),
        (S8 | U8, false, false) => entries::at::<Byte, F32, false>(level),
        (_, false, false) => entries::at::<F32, F32, false>(level),
        (B, false, true) => entries::at::<Bf16, F32, true>(level),
        (H, false, true) => entries::at::<F16, F32, true>(level),
        (S8 | U8, false, true) => entries::at::<Byte, F32, true>(level),
        (_, false, true) => entries::at::<F32, F32, true>(level),
    }
}

/// The functions for rows that the forward kernel sums.
fn overlapped(level: Level, types: &KernelTypes, rms: bool) -> Option<OverlappedRows> {
    use DataType::{Bf16 as B, F16 as H, S8, U8};
    let means = match types.src.data_type {
        B => means_entries::at::<Bf16>(level),
        H => means_entries::at::<F16>(level),
        S8 | U8 => means_entries::at::<Byte>(level),
        _ => means_entries::at::<F32>(level),
    };
    let statistics = match (types.dst.half, rms) {
        (_, true) => summed_entries::at::<F32, true>(level),
        (true, false) => summed_entries::at::<F16, false>(level),
        (false, false) => summed_entries::at::<F32, false>(level),
    };
    Some(OverlappedRows { means: means?, statistics: statistics? })
}
