//! The statistics of rows so short that joining lanes, a root and two quotients per row would be most of the
//! work: 16 rows at once, whose scalars are the lanes of a vector. The bits are those of row after row.

use super::job::Forward;
use super::row::{
    LARGEST, Moments, NEAR, PILOT, SMALLEST, Statistics, pilot_lanes, sums_halves, sums_narrowly,
};
use crate::simd::{
    Bf16, Byte, Element, F16, F32, GROUP, LANES, Level, Runtime, Simd, entry_points, lane_sums,
};
use crate::tensor::DataType;

/// The longest row that is taken so.
const LONGEST: usize = GROUP;
/// Rows at once.
pub(super) const ROWS: usize = LANES;

/// What writing [`ROWS`] rows takes.
pub(super) struct Scalars {
    pub(super) high: [f32; ROWS],
    /// What the mean is short of `high`, times `r`.
    pub(super) low: [f32; ROWS],
    pub(super) r: [f32; ROWS],
}

impl Scalars {
    pub(super) const NONE: Self = Self { high: [0.0; ROWS], low: [0.0; ROWS], r: [0.0; ROWS] };
}

/// The vectors of a row of up to 64 elements, of which the last may be cut.
///
/// # Safety
/// `cols` elements are there, more than `NV - 1` vectors and at most `NV`; the instruction set of `S` is too.
#[inline(always)]
unsafe fn load<S: Simd, E: Element, const NV: usize>(
    element: E,
    src: *const u8,
    cols: usize,
) -> [S::F; NV] {
    // SAFETY: the caller's.
    unsafe {
        let mut vectors = [S::splat(0.0); NV];
        for (v, vector) in vectors[..NV - 1].iter_mut().enumerate() {
            *vector = element.load::<S>(src, v * LANES);
        }
        let i = (NV - 1) * LANES;
        vectors[NV - 1] = if cols == NV * LANES {
            element.load::<S>(src, i)
        } else {
            S::first_n(element.load_n::<S>(src, i, cols - i), cols - i)
        };
        vectors
    }
}

/// The squares of a row about `about`, whose lanes are not joined.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn squares<S: Simd, E: Element, Dst: Element, const RMS: bool, const NV: usize>(
    moments: &Moments<E, Dst, RMS>,
    cols: usize,
) -> S::D {
    // SAFETY: the caller's.
    unsafe {
        // A single chain: the others of its group are zero.
        let mut chain = S::splat(0.0);
        let vectors = load::<S, E, NV>(moments.element, moments.src, cols);
        for (v, x) in vectors.into_iter().enumerate() {
            let mut d = moments.distance::<S>(x);
            if v == NV - 1 && cols != NV * LANES {
                d = S::first_n(d, cols - v * LANES);
            }
            chain = S::fma(d, d, chain);
        }
        S::widen(chain)
    }
}

/// The sum of a row's values, whose lanes are not joined.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn values<S: Simd, E: Element, Dst: Element, const NV: usize>(
    element: E,
    src: *const u8,
    cols: usize,
) -> S::D {
    // SAFETY: the caller's.
    unsafe {
        let (mut narrow, mut wide) = (S::splat(0.0), S::wide_splat(0.0));
        for (v, x) in load::<S, E, NV>(element, src, cols).into_iter().enumerate() {
            if sums_halves::<E, Dst>(element) {
                narrow = S::add(narrow, x);
            } else if v < NV - 1 || cols == NV * LANES {
                wide = S::wide_add(wide, element.load_wide::<S>(src, v * LANES));
            } else {
                wide = S::wide_add(wide, S::widen(x));
            }
        }
        if sums_halves::<E, Dst>(element) { S::widen(narrow) } else { wide }
    }
}

/// As [`row::per_col`](super::row::per_col).
///
/// # Safety
/// The instruction set of `S` is there.
#[inline(always)]
unsafe fn per_col<S: Simd>(v: S::D, cols: usize) -> S::D {
    // SAFETY: the caller's.
    unsafe { S::wide_mul(v, S::wide_splat(1.0 / cols as f64)) }
}

/// The statistics of rows `first` to `first + ROWS - 1`, which are written if they are outputs; false, and
/// nothing is written, if f32 does not carry one of them or its sums have to be taken once more.
///
/// # Safety
/// The rows are there and this thread's, of at most [`LONGEST`] and at least one element, `src_step` bytes
/// from each other; the instruction set of `S` is there.
#[inline(always)]
unsafe fn short_statistics<S: Simd, Src: Element, Dst: Element, const RMS: bool>(
    job: &Forward,
    first: usize,
    src_step: usize,
    scalars: &mut Scalars,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        match job.cols.div_ceil(LANES) {
            1 => of_vectors::<S, Src, Dst, RMS, 1>(job, first, src_step, scalars),
            2 => of_vectors::<S, Src, Dst, RMS, 2>(job, first, src_step, scalars),
            3 => of_vectors::<S, Src, Dst, RMS, 3>(job, first, src_step, scalars),
            4 => of_vectors::<S, Src, Dst, RMS, 4>(job, first, src_step, scalars),
            _ => of_vectors::<S, Src, Dst, RMS, 0>(job, first, src_step, scalars),
        }
    }
}

/// [`short_statistics`] of rows of `NV` vectors, or, with 0, of rows longer than a pilot.
///
/// # Safety
/// As [`short_statistics`].
#[inline(always)]
unsafe fn of_vectors<S: Simd, Src: Element, Dst: Element, const RMS: bool, const NV: usize>(
    job: &Forward,
    first: usize,
    src_step: usize,
    scalars: &mut Scalars,
) -> bool {
    let (element, cols) = (Src::of(job.src_type), job.cols);
    // SAFETY: the caller's.
    unsafe {
        let first_row = job.src.wrapping_add(job.src_rows.offset(first) * element.size());
        let zero = S::wide_splat(0.0);
        let mut pilots = [0.0f32; ROWS];
        let mut sums_of_terms = [zero; ROWS];
        let mut sums_of_squares = [zero; ROWS];
        let mut mean = zero;
        if !RMS {
            for (r, sum) in sums_of_terms.iter_mut().enumerate() {
                let src = first_row.add(r * src_step);
                *sum = if NV == 0 {
                    pilot_lanes::<S, Src>(element, src)
                } else {
                    values::<S, Src, Dst, NV>(element, src, cols)
                };
            }
            // All of a row's values, if they are few; then this is the mean.
            mean = per_col::<S>(S::wide_sums(&sums_of_terms), cols.min(PILOT));
            S::store(pilots.as_mut_ptr(), S::narrow(mean));
        }
        for r in 0..ROWS {
            let src = first_row.add(r * src_step);
            let moments = Moments::<Src, Dst, RMS>::about(element, src, pilots[r]);
            if job.fetches {
                // The rows that come next, while there is something to compute.
                let ahead = src.wrapping_add(ROWS * src_step);
                for line in (0..cols * element.size()).step_by(64) {
                    S::prefetch(ahead.wrapping_add(line));
                }
            }
            if NV == 0 {
                let sums = lane_sums::<S, 1, _>(cols, &moments);
                (sums_of_squares[r], sums_of_terms[r]) = (sums.products[0], sums.terms);
            } else {
                sums_of_squares[r] = squares::<S, Src, Dst, RMS, NV>(&moments, cols);
            }
        }
        let mean_square = per_col::<S>(S::wide_sums(&sums_of_squares), cols);
        let mut variance = mean_square;
        let mut carried = S::wide_all_between(mean_square, SMALLEST, LARGEST);
        if !RMS {
            let about = S::widen(S::load(pilots.as_ptr()));
            if NV == 0 {
                // The values, or the distances.
                mean = per_col::<S>(S::wide_sums(&sums_of_terms), cols);
                if Dst::HALF {
                    mean = S::wide_add(about, mean);
                }
            }
            let offset = S::wide_sub(mean, about);
            let square = S::wide_mul(offset, offset);
            variance = S::wide_sub(mean_square, square);
            let near = S::wide_sub(S::wide_mul(mean_square, S::wide_splat(NEAR)), square);
            carried &= S::wide_all_between(near, 0.0, f64::MAX);
        }
        if !carried {
            return false;
        }
        let root = S::wide_sqrt(S::wide_add(variance, S::wide_splat(job.epsilon)));
        let r = S::narrow(S::wide_div(S::wide_splat(1.0), root));
        S::store(scalars.r.as_mut_ptr(), r);
        if !RMS {
            let high = S::narrow(mean);
            let low = S::wide_mul(S::wide_sub(S::widen(high), mean), S::widen(r));
            S::store(scalars.high.as_mut_ptr(), high);
            S::store(scalars.low.as_mut_ptr(), S::narrow(low));
        }
        if job.writes_statistics() {
            let mut means = [0.0f64; ROWS];
            let mut variances = [0.0f64; ROWS];
            S::wide_store(means.as_mut_ptr(), mean);
            S::wide_store(variances.as_mut_ptr(), variance);
            for r in 0..ROWS {
                job.write(first + r, &Statistics { mean: means[r], variance: variances[r] });
            }
        }
        true
    }
}

entry_points! {
    /// The statistics of short rows, per level; of Dst it matters whether it has 16 bits.
    mod entries: short_statistics<Src: Element, Dst: Element; const RMS: bool>(
        job: &Forward, first: usize, src_step: usize, scalars: &mut Scalars
    ) -> bool;
}

/// See [`short_statistics`].
pub(super) type Entry = unsafe fn(&Forward, usize, usize, &mut Scalars) -> bool;

/// The statistics of a problem's rows, if they are short.
pub(super) fn entry(
    level: Level,
    (src, dst): (DataType, DataType),
    rms: bool,
    cols: usize,
) -> Option<Entry> {
    use DataType::{Bf16 as B, F16 as H, S8 as S, U8 as U};
    if cols > LONGEST {
        return None;
    }
    // With RMS there are no values to sum.
    let narrow = sums_narrowly(dst) && !rms;
    let typed = match (src, narrow, rms) {
        (B, true, _) => entries::at::<Bf16, F16, false>(level),
        (H, true, _) => entries::at::<F16, F16, false>(level),
        (_, true, _) => entries::at::<F32, F16, false>(level),
        (B, false, false) => entries::at::<Bf16, F32, false>(level),
        (H, false, false) => entries::at::<F16, F32, false>(level),
        (S | U, false, false) => entries::at::<Byte, F32, false>(level),
        (_, false, false) => entries::at::<F32, F32, false>(level),
        (B, false, true) => entries::at::<Bf16, F32, true>(level),
        (H, false, true) => entries::at::<F16, F32, true>(level),
        (S | U, false, true) => entries::at::<Byte, F32, true>(level),
        (_, false, true) => entries::at::<F32, F32, true>(level),
    };
    Some(typed.unwrap_or(match (narrow, rms) {
        (true, _) => entries::entry_portable::<Runtime<false, true>, F16, false>,
        (false, true) => entries::entry_portable::<Runtime<false, true>, F32, true>,
        (false, false) => entries::entry_portable::<Runtime<false, true>, F32, false>,
    }))
}
