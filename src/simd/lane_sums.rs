//! The sums of 16 rows, completed together.

use super::{FOUR, LANES, Quad, Simd};
use std::mem::MaybeUninit;

/// The lane sums of 16 rows, of which [`wide_quarter`](Simd::wide_quarter) leaves four lanes each.
#[repr(align(64))]
pub(crate) struct LaneSums([MaybeUninit<[f64; FOUR]>; LANES]);

impl LaneSums {
    /// Uninitialized, because each row is written before it is read.
    pub(crate) const NONE: Self = Self([const { MaybeUninit::uninit() }; LANES]);

    /// # Safety
    /// The instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn set<S: Simd>(&mut self, row: usize, sums: S::F64x16) {
        // SAFETY: guaranteed by the caller.
        unsafe { S::F64x4::store(self.0[row].as_mut_ptr().cast(), S::wide_quarter(sums)) }
    }

    /// Sets rows `row`, which is even, and `row + 1`. The vectors that [`totals`](LaneSums::totals) loads were then
    /// stored whole, so that the processor forwards them.
    ///
    /// # Safety
    /// The instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn set_two<S: Simd>(&mut self, row: usize, sums: [S::F64x16; 2]) {
        // SAFETY: guaranteed by the caller.
        unsafe { S::store_quarters(self.0[row..row + 2].as_mut_ptr().cast(), sums) }
    }

    /// Lane `i` is the [`wide_sum`](Simd::wide_sum) of row `i`.
    ///
    /// # Safety
    /// All rows were set, and the instruction set of `S` is available.
    #[inline(always)]
    pub(crate) unsafe fn totals<S: Simd>(&self) -> S::F64x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { S::sums_of_quarters(self.0.as_ptr().cast()) }
    }
}
