//! Forward for rows so short that joining lanes, a root and two quotients per row would be most of the work:
//! 16 rows at once, whose scalars are the lanes of a vector. The bits are those of row after row.

use super::forward::{Kernel, Row};
use super::row::{LARGEST, Moments, NEAR, PILOT, SMALLEST, Statistics, pilot_lanes};
use crate::simd::{Element, GROUP, LANES, Simd, lane_sums};

/// The longest row that is taken so.
pub(super) const LONGEST: usize = GROUP;
/// Rows at once.
pub(super) const ROWS: usize = LANES;

/// [`ROWS`] rows, ready to be written, whose statistics are written if they are outputs; `None` if f32 does
/// not carry one of them, or its sums have to be taken once more.
///
/// # Safety
/// As `forward_rows`, for rows `first` to `first + ROWS - 1`; `cols` is at most [`LONGEST`].
#[inline(always)]
pub(super) unsafe fn ready<
    S: Simd,
    Src: Element,
    Dst: Element,
    const RMS: bool,
    const AFFINE: u8,
>(
    kernel: &Kernel<'_, Src, Dst, RMS, AFFINE>,
    first: usize,
) -> Option<[Row; ROWS]> {
    let job = kernel.job;
    let (element, cols) = (kernel.src_type, job.cols);
    // SAFETY: the caller's.
    unsafe {
        let n = S::wide_splat(cols as f64);
        let zero = S::wide_splat(0.0);
        let mut pilots = [0.0f32; ROWS];
        let mut lanes = [zero; ROWS];
        if !RMS {
            for (r, lanes) in lanes.iter_mut().enumerate() {
                *lanes = pilot_lanes::<S, Src>(element, kernel.src(first + r), cols);
            }
            let sums = S::wide_sums(&lanes);
            let means = if cols < PILOT {
                S::wide_div(sums, n)
            } else {
                S::wide_mul(sums, S::wide_splat(1.0 / PILOT as f64))
            };
            S::store(pilots.as_mut_ptr(), S::narrow(means));
        }
        let mut squares = [zero; ROWS];
        for r in 0..ROWS {
            let src = kernel.src(first + r);
            let moments = Moments::<Src, RMS> { element, src, about: pilots[r] };
            let sums = lane_sums::<S, 1, _>(cols, &moments);
            (squares[r], lanes[r]) = (sums.groups[0], sums.wide);
        }
        let mean_square = S::wide_div(S::wide_sums(&squares), n);
        let (mut mean, mut variance) = (zero, mean_square);
        if !RMS {
            mean = S::wide_div(S::wide_sums(&lanes), n);
            let offset = S::wide_sub(mean, S::widen(S::load(pilots.as_ptr())));
            let square = S::wide_mul(offset, offset);
            variance = S::wide_sub(mean_square, square);
            let near = S::wide_sub(S::wide_mul(mean_square, S::wide_splat(NEAR)), square);
            if !S::wide_all_between(near, 0.0, f64::MAX) {
                return None;
            }
        }
        if !S::wide_all_between(mean_square, SMALLEST, LARGEST) {
            return None;
        }
        let root = S::wide_sqrt(S::wide_add(variance, S::wide_splat(job.epsilon)));
        let r = S::narrow(S::wide_div(S::wide_splat(1.0), root));
        let high = S::narrow(mean);
        let low = S::wide_mul(S::wide_sub(S::widen(high), mean), S::widen(r));
        let mut scalars = [[0.0f32; ROWS]; 3];
        S::store(scalars[0].as_mut_ptr(), high);
        S::store(scalars[1].as_mut_ptr(), S::narrow(low));
        S::store(scalars[2].as_mut_ptr(), r);
        let mut statistics = [[0.0f64; ROWS]; 2];
        S::wide_store(statistics[0].as_mut_ptr(), mean);
        S::wide_store(statistics[1].as_mut_ptr(), variance);
        let [high, low, r] = scalars;
        let mut rows = [kernel.row(first, high[0], low[0], r[0]); ROWS];
        for i in 0..ROWS {
            let found = Statistics { mean: statistics[0][i], variance: statistics[1][i] };
            job.write(first + i, &found);
            rows[i] = kernel.row(first + i, high[i], low[i], r[i]);
        }
        Some(rows)
    }
}
