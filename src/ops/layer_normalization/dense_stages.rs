//! What passes from stage to stage while [`dense`](super::dense) rows are computed: sums, statistics and the scalars that
//! normalize, a group of rows at a time.

use crate::rows::row_lanes::Four;
use crate::simd::{FOUR, Quad, Simd};

/// Rows in a group.
pub(super) const ROWS: usize = FOUR;
/// Rows between one stage and the next. Storing that many rows hides a square root and a division.
const AHEAD: usize = 3 * ROWS;
/// Groups whose scalars are in the ring.
pub(super) const RING: usize = 8;

/// The scalars of a group.
#[derive(Clone, Copy)]
pub(super) struct Scalars {
    /// Kept from the first stage to the second, for rows of up to
    /// [`PROVISIONAL_COLS`](super::row::PROVISIONAL_COLS) elements.
    pub(super) mean: [f64; ROWS],
    /// The mean rounded to f32. Until the variance is computed, the provisional mean.
    pub(super) high: [f32; ROWS],
    pub(super) low: [f32; ROWS],
    pub(super) r: [f32; ROWS],
}

/// The ring index of the group that begins at `row`.
#[inline(always)]
pub(super) fn place(row: usize) -> usize {
    row / ROWS % RING
}

/// The sums of a group, each a quarter of a vector of lanes per row.
#[derive(Clone, Copy)]
pub(super) struct Sums<S: Simd> {
    /// The values for the mean or the provisional mean.
    pub(super) values: [S::F64x4; ROWS],
    pub(super) squares: [S::F64x4; ROWS],
    /// The values or the deviations, summed together with the squares.
    pub(super) terms: [S::F64x4; ROWS],
}

/// The sums of a group's squares and terms, a row per lane.
#[derive(Clone, Copy)]
pub(super) struct Totals<S: Simd> {
    pub(super) squares: S::F64x4,
    pub(super) terms: S::F64x4,
}

impl<S: Simd> Totals<S> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn of(sums: &Sums<S>) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Self { squares: S::F64x4::sums(sums.squares), terms: S::F64x4::sums(sums.terms) } }
    }
}

/// The statistics of a group.
#[derive(Clone, Copy)]
pub(super) struct GroupStatistics<S: Simd> {
    pub(super) mean: Four<S>,
    pub(super) variance: Four<S>,
}

/// Scale and shift in registers. The compiler would load them for every row, since dst may be the same memory for all it
/// knows.
pub(super) struct Affine<S: Simd> {
    pub(super) scale: [S::F32x16; 4],
    pub(super) shift: [S::F32x16; 4],
}

/// How many rows have passed each stage.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) means: usize,
    pub(super) sums: usize,
    pub(super) variances: usize,
    pub(super) stores: usize,
}

/// What one step of the loop does: which stages advance, and where their groups begin.
pub(super) struct Step {
    pub(super) mean: bool,
    pub(super) squares: bool,
    pub(super) store: bool,
    pub(super) prefetches: bool,
    pub(super) non_temporal: bool,
    pub(super) mean_src: *const u8,
    pub(super) squares_src: *const u8,
    pub(super) store_src: *const u8,
    pub(super) dst: *mut u8,
}

impl Passed {
    /// The next step in `end` rows at two addresses, `steps` bytes apart.
    #[inline(always)]
    pub(super) fn step<const RMS: bool, S: Simd>(
        &self,
        end: usize,
        (src, dst): (*const u8, *mut u8),
        steps: (usize, usize),
        (prefetches, non_temporal): (bool, bool),
    ) -> Step {
        const { assert!(RING * ROWS >= 2 * (AHEAD + ROWS)) };
        let &Passed { means, sums, stores, .. } = self;
        Step {
            mean: !RMS && means < end.min(sums + AHEAD + ROWS),
            squares: (!counts_late::<S>(RMS) || sums < end)
                && (RMS || means >= end.min(sums + AHEAD)),
            store: sums >= stores + AHEAD,
            prefetches,
            non_temporal,
            mean_src: src.wrapping_add(means * steps.0),
            squares_src: src.wrapping_add(sums * steps.0),
            store_src: src.wrapping_add(stores * steps.0),
            dst: dst.wrapping_add(stores * steps.1),
        }
    }
}

/// Whether a group's statistics are computed one step after its sums. A step of RMS is so short that it would wait for its
/// own sums: rows of 64 elements take 0.77 to 0.97 of the time on a Zen 3. With a mean, which needs more registers, they
/// take up to 1.19 times as long that way. AVX-512 was not measured.
pub(super) const fn counts_late<S: Simd>(rms: bool) -> bool {
    rms && !S::MANY_REGISTERS
}
