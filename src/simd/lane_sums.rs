//! The sums of 16 rows, completed together.

use super::{LANES, Simd};
use std::mem::MaybeUninit;

/// Numbers that [`Simd::store_row`] stores of a row, at most.
pub(crate) const STORED: usize = 8;

/// The lane sums of 16 rows, partly added.
#[repr(align(64))]
pub(crate) struct LaneSums([MaybeUninit<[f64; STORED]>; LANES]);

impl LaneSums {
    /// Uninitialized, because each row is written before it is read.
    pub(crate) const NONE: Self = Self([const { MaybeUninit::uninit() }; LANES]);

    /// # Safety
    /// The instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn set<S: Simd>(&mut self, row: usize, sums: S::F64x16) {
        // SAFETY: guaranteed by the caller.
        unsafe { S::store_row(self.0[row].as_mut_ptr().cast(), sums) }
    }

    /// Lane `i` is the [`wide_sum`](Simd::wide_sum) of row `i`.
    ///
    /// # Safety
    /// All rows were set, and the instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn totals<S: Simd>(&self) -> S::F64x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { S::sum_rows(self.0.as_ptr().cast()) }
    }
}

/// How many rows an iteration of [`each_row`] handles.
pub(crate) const fn rows_at_once<S: Simd>() -> usize {
    if S::MANY_REGISTERS { 4 } else { 1 }
}

/// `each_row!(r in S, { ... })` is `for r in 0..16 { ... }`, with as many rows in an iteration as fit in the registers of
/// `S`. The compiler does not know the number of rows, so the loop stays a loop.
macro_rules! each_row {
    ($r:ident in $S:ty, $body:block) => {{
        let (mut first, end) = (0, std::hint::black_box($crate::simd::LANES));
        while first < end {
            $crate::simd::unroll!(next in $crate::simd::rows_at_once::<$S>(), {
                let $r = first + next;
                $body
            });
            first += $crate::simd::rows_at_once::<$S>();
        }
    }};
}
pub(crate) use each_row;
