//! Backward over rows so short that joining lanes, a root and a quotient per row would be most of the work: a
//! chain of them at once, whose scalars are the lanes of a vector and whose column terms stay in registers. The
//! bits are those of row after row.

use super::backward::Kernel;
use super::columns::CHAIN_ROWS;
use super::gradient::{
    GLOBAL, LAYER, READ_SCALE, RMS, RowSums, SUM_SCALE, SUM_SHIFT, Vectors, load_if,
};
use super::job::Given;
use crate::simd::{Element, LANES, Simd, add_wide, lane_sums};
use std::mem::MaybeUninit;

/// The longest row of src or diff_dst that is taken so, in bytes.
const LONGEST: usize = 256;

/// What writing the rows of a chain takes.
struct Scalars {
    mean: [f32; CHAIN_ROWS],
    r: [f32; CHAIN_ROWS],
    /// `-r*sum(d)/C`.
    shift: [f32; CHAIN_ROWS],
    /// `r*sum(d*xhat)/C`.
    slope: [f32; CHAIN_ROWS],
}

/// Where the rows of a chain begin.
struct Rows {
    src: [*const u8; CHAIN_ROWS],
    diff_dst: [*const u8; CHAIN_ROWS],
    diff_src: [*mut u8; CHAIN_ROWS],
}

// SAFETY of every block below: rows exist and are this thread's, `cols` is not 0 and the instruction set
// of `S` is there, by the contract of `backward_rows`.
#[allow(clippy::undocumented_unsafe_blocks, clippy::needless_range_loop)]
impl<Src: Element, Dd: Element, Ds: Element, const MODE: u8, const PARAMS: u8>
    Kernel<'_, Src, Dd, Ds, MODE, PARAMS>
{
    /// A chain of short rows and its end; false, and nothing is written, if rows are longer, stored past the
    /// caches, or not carried by f32.
    #[inline(always)]
    pub(super) unsafe fn short_chain<S: Simd>(&self, first: usize) -> bool {
        const { assert!(CHAIN_ROWS == LANES) };
        let bytes = self.job.cols * self.types.src.size().max(self.types.diff_dst.size());
        if !Src::KNOWN || MODE & GLOBAL != 0 || bytes > LONGEST || self.job.streams {
            return false;
        }
        let mut rows = Rows {
            src: [std::ptr::null(); CHAIN_ROWS],
            diff_dst: [std::ptr::null(); CHAIN_ROWS],
            diff_src: [std::ptr::null_mut(); CHAIN_ROWS],
        };
        let none = [0.0; CHAIN_ROWS];
        let mut scalars = Scalars { mean: none, r: none, shift: none, slope: none };
        let mut variances = none;
        unsafe {
            for i in 0..CHAIN_ROWS {
                let Given::Narrow(found) = self.job.given(first + i) else { return false };
                (scalars.mean[i], variances[i]) = (found.mean as f32, found.variance as f32);
                rows.src[i] = self.src(first + i);
                rows.diff_dst[i] = self.diff_dst(first + i);
                rows.diff_src[i] = self.diff_src(first + i);
            }
            self.sum_short::<S>(&rows, &variances, &mut scalars);
            let mut i = 0;
            while i + LANES <= self.job.cols {
                self.write_short::<S>(&rows, &scalars, i, LANES);
                i += LANES;
            }
            if i < self.job.cols {
                self.write_short::<S>(&rows, &scalars, i, self.job.cols - i);
            }
        }
        true
    }

    /// The scalars of rows whose means are known.
    #[inline(always)]
    unsafe fn sum_short<S: Simd>(
        &self,
        rows: &Rows,
        variances: &[f32; CHAIN_ROWS],
        scalars: &mut Scalars,
    ) {
        let job = self.job;
        let Scalars { mean, r, shift, slope } = scalars;
        unsafe {
            let variance = S::widen(S::load(variances.as_ptr()));
            let root = S::wide_sqrt(S::wide_add(variance, S::wide_splat(job.epsilon)));
            let r_lanes = S::narrow(S::wide_div(S::wide_splat(1.0), root));
            S::store(r.as_mut_ptr(), r_lanes);
            let mut sums_d = [const { MaybeUninit::uninit() }; CHAIN_ROWS];
            let mut sums_d_xhat = [const { MaybeUninit::uninit() }; CHAIN_ROWS];
            for i in 0..CHAIN_ROWS {
                let sums = RowSums::<S, Src, Dd, MODE, PARAMS> {
                    src_type: self.types.src,
                    dd_type: self.types.diff_dst,
                    src: rows.src[i],
                    diff_dst: rows.diff_dst[i],
                    scale: job.scale,
                    mean: S::splat(mean[i]),
                    r: S::splat(r[i]),
                };
                if MODE == LAYER {
                    let [d, d_xhat] = lane_sums::<S, 2, _>(job.cols, &sums).products;
                    sums_d[i].write(d);
                    sums_d_xhat[i].write(d_xhat);
                } else if MODE == RMS {
                    let [d_xhat] = lane_sums::<S, 1, _>(job.cols, &sums).products;
                    sums_d_xhat[i].write(d_xhat);
                }
            }
            let per_col = S::wide_mul(S::widen(r_lanes), S::wide_splat(1.0 / job.cols as f64));
            let of = S::narrow(S::wide_mul(per_col, S::wide_sums(&sums_d_xhat)));
            S::store(slope.as_mut_ptr(), of);
            if MODE == LAYER {
                let of = S::narrow(S::wide_mul(per_col, S::wide_sums(&sums_d)));
                S::store(shift.as_mut_ptr(), S::mul(of, S::splat(-1.0)));
            }
        }
    }

    /// The vectors of all rows at element `i`, and their column terms; `n` is 16 for whole vectors.
    #[inline(always)]
    unsafe fn write_short<S: Simd>(&self, rows: &Rows, scalars: &Scalars, i: usize, n: usize) {
        let types = &self.types;
        unsafe {
            let scale = load_if::<S>(PARAMS & READ_SCALE != 0, self.job.scale, i, n);
            let mut chains = (S::splat(0.0), S::splat(0.0));
            for row in 0..CHAIN_ROWS {
                let vectors = Vectors::<S> {
                    mean: S::splat(scalars.mean[row]),
                    r: S::splat(scalars.r[row]),
                    shift: S::splat(scalars.shift[row]),
                    slope: S::splat(scalars.slope[row]),
                };
                let (src, diff_dst) = (rows.src[row], rows.diff_dst[row]);
                if n == LANES {
                    let x = types.src.load::<S>(src, i);
                    let dd = types.diff_dst.load::<S>(diff_dst, i);
                    let out = vectors.gradient::<MODE, PARAMS>(x, dd, scale, &mut chains);
                    types.diff_src.store_all::<S, 1>(rows.diff_src[row], i, &[out]);
                } else {
                    let x = types.src.load_n::<S>(src, i, n);
                    let dd = types.diff_dst.load_n::<S>(diff_dst, i, n);
                    let out = vectors.gradient::<MODE, PARAMS>(x, dd, scale, &mut chains);
                    types.diff_src.store_n::<S>(rows.diff_src[row], i, out, n);
                }
            }
            if PARAMS & SUM_SCALE != 0 {
                add_wide::<S, 1>(self.sums.diff_scale.add(i), [S::widen(chains.0)], n);
            }
            if PARAMS & SUM_SHIFT != 0 {
                add_wide::<S, 1>(self.sums.diff_shift.add(i), [S::widen(chains.1)], n);
            }
        }
    }
}
