//! The sums of 16 rows, completed together.

use super::{LANES, Simd};
use std::hint::black_box;
use std::mem::MaybeUninit;

/// Numbers that [`Simd::store_row`] stores of a row, at most.
pub(crate) const STORED: usize = 8;

/// The lane sums of 16 rows, partly added.
#[repr(align(64))]
pub(crate) struct LaneSums([MaybeUninit<[f64; STORED]>; LANES]);

impl LaneSums {
    /// Uninitialized, because each row is written before it is read.
    pub(crate) const NONE: Self = Self([const { MaybeUninit::uninit() }; LANES]);

    /// The number of rows, 16, opaque to the compiler, so that a loop over them stays a loop.
    #[inline(always)]
    pub(crate) fn rows() -> usize {
        black_box(LANES)
    }

    /// How many rows an iteration of a loop that sums rows handles, so that their vectors fit in the registers.
    pub(crate) const fn rows_at_once<S: Simd>() -> usize {
        if S::MANY_REGISTERS { 4 } else { 1 }
    }

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
