//! The formula over dense rows of one type: three sweeps forward, two backward.
//!
//! ```text
//! forward            max = max(x)
//!   accurate         dst = exp(x - max);  sum = fold(dst);  dst = dst * (1/sum)
//!   inf as zero      likewise, with max = 0 for a row of -inf, and 0 for 1/0
//!   log              sum = fold(exp(x - max));              dst = (x - max) - log(sum)
//!   stats            max + log(sum)
//! backward accurate  sum = fold(diff_dst*dst);         diff_src = dst * (diff_dst - sum)
//!   log              sum = fold(diff_dst);             diff_src = diff_dst - exp(dst)*sum
//! ```

use super::problem::SoftmaxAlgorithm;
use super::sweeps::{Backward, Forward, Largest, Row, largest, stats_of_infinite};
use crate::rows::{RowTensor, TENSORS};
use crate::simd::lanes::Lanes;
use crate::simd::{
    Bf16, Element, F16, F32, GROUP, Level, Simd, entry_points, fold, fold_beside, lane_sums, map,
    math, unroll,
};
use crate::tensor::DataType;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// The arguments of a kernel.
pub(super) struct Job<'a> {
    pub(super) cols: usize,
    pub(super) forward: bool,
    pub(super) algorithm: SoftmaxAlgorithm,
    /// src and dst, or dst, diff_dst and diff_src, of the kernel's type.
    pub(super) tensors: &'a [RowTensor; TENSORS],
    /// Forward: the logarithm of each row's sum.
    pub(super) stats: Option<RowTensor>,
    /// Forward: room for a row of f32, or null if dst can keep the exponentials.
    pub(super) room: *mut f32,
    /// Whether the output is stored non-temporally, if its alignment allows that, and rows to come are prefetched.
    pub(super) streams: bool,
}

impl Job<'_> {
    #[inline(always)]
    fn row<E: Element>(&self, element: E, tensor: usize, row: usize) -> Row<E> {
        let tensor = &self.tensors[tensor];
        let start = tensor.address.wrapping_add(tensor.rows.offset(row) * element.size());
        Row { element, start, streams: self.streams && element.streams(start) }
    }

    /// Rows to prefetch, if rows are stored non-temporally.
    #[inline(always)]
    fn later<E: Element, const N: usize>(&self, element: E, row: usize) -> Option<[*const u8; N]> {
        if !self.streams {
            return None;
        }
        let mut later = [std::ptr::null(); N];
        unroll!(tensor in N, {
            later[tensor] = self.row(element, tensor, row).start.cast_const();
        });
        Some(later)
    }
}

/// `1/sum`; 0 for a row of zeros.
#[inline(always)]
pub(super) fn reciprocal(sum: f64) -> f32 {
    if sum == 0.0 { 0.0 } else { (1.0 / sum) as f32 }
}

/// Computes a row whose maximum is known. Returns the maximum of the next row, computed while this one is summed; the
/// `last` row repeats itself.
///
/// # Safety
/// The rows exist in the type of `E`, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_row<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (row, last): (usize, usize),
    largest: f32,
) -> f32 {
    let (src, dst) = (job.row(element, 0, row), job.row(element, 1, row));
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Before the sweeps, which may overwrite the row.
        let infinite = match job.stats {
            Some(_) if largest.is_infinite() => {
                Some(stats_of_infinite::<S, E>(&src, job.cols, largest))
            }
            _ => None,
        };
        let max = job.algorithm.distance_from(largest);
        let mut group = [const { MaybeUninit::<f32>::uninit() }; GROUP];
        let kept = match () {
            () if LOG => group.as_mut_ptr().cast(),
            () if job.room.is_null() => dst.start.cast(),
            () => job.room,
        };
        let later = job.later(element, (row + 2).min(last));
        let mut forward = Forward::<E, LOG> { src, dst, kept, max, factor: 0.0, later };
        let next = Largest::<S, E> {
            row: job.row(element, 0, (row + 1).min(last)),
            largest: Cell::new(Lanes::new(S::splat(f32::NEG_INFINITY))),
        };
        let sum = fold_beside::<S, 1, _, _>(job.cols, &forward, &next).products[0];
        // All lanes of the logarithm are equal.
        let mut log = 0.0;
        if LOG || job.stats.is_some() {
            log = math::log(Lanes::<S>::new(S::splat(sum as f32))).largest();
        }
        forward.factor = if LOG { log } else { reciprocal(sum) };
        map::<S, _>(job.cols, &forward);
        if let Some(stats) = &job.stats {
            let value = infinite.unwrap_or(max + log);
            let place = stats.address.cast::<f32>().wrapping_add(stats.rows.offset(row));
            // The maximum and the logarithm may lose NaN.
            place.write_unaligned(if sum.is_nan() && infinite.is_none() {
                f32::NAN
            } else {
                value
            });
        }
        next.largest.get().largest()
    }
}

/// # Safety
/// As [`forward_row`], for rows `first` to `last - 1`, at least one.
#[inline(always)]
unsafe fn forward_rows<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (first, last): (usize, usize),
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut max = largest::<S, E>(&job.row(element, 0, first), job.cols);
        for row in first..last {
            max = forward_row::<S, E, LOG>(job, element, (row, last - 1), max);
        }
    }
}

/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn backward_rows<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (first, last): (usize, usize),
) {
    for row in first..last {
        let mut row = Backward::<E, LOG> {
            dst: job.row(element, 0, row),
            diff_dst: job.row(element, 1, row),
            diff_src: job.row(element, 2, row),
            sum: 0.0,
            later: job.later(element, (row + 1).min(last - 1)),
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Short rows without the loops of long ones.
            let sum = if S::UNROLLS && job.cols <= GROUP {
                S::wide_sum(lane_sums::<S, 1, _>(job.cols, &row).products[0])
            } else {
                fold::<S, 1, _>(job.cols, &row).products[0]
            };
            row.sum = sum as f32;
            map::<S, _>(job.cols, &row);
        }
    }
}

/// Computes rows `first` to `last - 1`.
///
/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn rows<S: Simd, E: Element>(job: &Job<'_>, first: usize, last: usize) {
    let (element, range) = (E::of(job.tensors[0].data_type), (first, last));
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (job.forward, job.algorithm) {
            (true, SoftmaxAlgorithm::Log) => forward_rows::<S, E, true>(job, element, range),
            (true, _) => forward_rows::<S, E, false>(job, element, range),
            (false, SoftmaxAlgorithm::Log) => backward_rows::<S, E, true>(job, element, range),
            (false, _) => backward_rows::<S, E, false>(job, element, range),
        }
    }
}

entry_points! {
    /// Rows, per level.
    mod entries: rows<E: Element>(job: &Job<'_>, first: usize, last: usize) -> ();
}

pub(super) type Entry = unsafe fn(&Job<'_>, usize, usize);

/// The kernel for rows of f32.
pub(super) fn entry(level: Level) -> Entry {
    entries::at::<F32>(level).unwrap_or(entries::portable::entry_portable::<F32>)
}

/// The kernel for rows of a 16-bit type; `None` if its rows must be converted to f32.
pub(super) fn half_entry(level: Level, data_type: DataType) -> Option<Entry> {
    match data_type {
        DataType::Bf16 => entries::at::<Bf16>(level),
        DataType::F16 => entries::at::<F16>(level),
        _ => None,
    }
}
