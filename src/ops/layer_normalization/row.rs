//! The statistics of a row, and when f32 is accurate enough for them.
//!
//! One sweep sums the squares of a row about its provisional mean, which is the mean of its first elements, and the
//! values or the deviations. The variance is the mean square less the square of the provisional mean's error. If that
//! correction is too large, [`two_pass`] sums the squares about the mean itself. If squares overflow or vanish in f32,
//! the row needs f64.

use crate::rows::row_lanes::{RowLanes, per_col_of, variance_about};
use crate::rows::statistics::{Statistics, corrected, in_range, per_col};
use crate::simd::{CHAIN, Element, F32, Fold, LANES, Simd, Sums, Term, Terms, Width, fold};
use crate::tensor::DataType;
use std::marker::PhantomData;

/// The mean of about the first [`PROVISIONAL_COLS`] elements, or of all elements of a shorter row; 0 with RMS. Rounded
/// to f32, it is the value about which the sums of a row are taken.
///
/// # Safety
/// There are `cols` elements, at least one, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn provisional_mean<S: Simd, E: Element, Dst: Element, const RMS: bool>(
    element: E,
    src: *const u8,
    cols: usize,
) -> f64 {
    if RMS {
        return 0.0;
    }
    // SAFETY: guaranteed by the caller.
    let sum = unsafe {
        S::wide_sum(if cols > PROVISIONAL_COLS {
            provisional_lanes::<S, E>(element, src)
        } else {
            value_lanes::<S, E, Dst>(element, src, cols)
        })
    };
    per_col(sum, cols.min(PROVISIONAL_COLS))
}

/// The lane sums of about the first [`PROVISIONAL_COLS`] elements.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn provisional_lanes<S: Simd, E: Element>(
    element: E,
    src: *const u8,
) -> S::F64x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let low = S::add(element.load::<S>(src, 0), element.load::<S>(src, LANES));
        let third = element.load::<S>(src, 2 * LANES);
        let high = S::add(third, element.load::<S>(src, 3 * LANES));
        S::widen(S::add(low, high))
    }
}

/// The lane sums of at most [`PROVISIONAL_COLS`] elements in the order of a fold.
///
/// # Safety
/// There are `cols` elements, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn value_lanes<S: Simd, E: Element, Dst: Element>(
    element: E,
    src: *const u8,
    cols: usize,
) -> S::F64x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Only one of them is used.
        let (mut narrow, mut wide) = (S::zero(), S::wide_zero());
        let mut i = 0;
        while i < cols {
            let n = cols - i;
            let x = if n >= LANES {
                element.load::<S>(src, i)
            } else {
                S::first_n(element.load_n::<S>(src, i, n), n)
            };
            if sums_values_in_f32::<E, Dst>(element) {
                narrow = S::add(narrow, x);
            } else {
                wide = S::wide_add(wide, S::widen(x));
            }
            i += LANES;
        }
        if sums_values_in_f32::<E, Dst>(element) { S::widen(narrow) } else { wide }
    }
}

/// Whether the values of a row of at most [`PROVISIONAL_COLS`] elements are summed in f32, a chain per lane. If src and
/// dst both have at most 16 bits, the rounding errors do not matter; exact types have none.
#[inline(always)]
pub(super) fn sums_values_in_f32<Src: Element, Dst: Element>(src: Src) -> bool {
    src.half() && Dst::HALF || Src::EXACT
}

/// Whether a type of dst has 16 bits or fewer, as `Element::HALF` says. Deviations are then summed in f32 chains,
/// because the rounding errors do not matter.
pub(super) fn at_most_16_bits(dst: DataType) -> bool {
    dst.is_half() || matches!(dst, DataType::S8 | DataType::U8)
}

/// The number of elements in the provisional mean.
pub(super) const PROVISIONAL_COLS: usize = 4 * LANES;

/// The terms of a row's statistics: the squares of the deviations from `about` and, unless RMS, the values in f64. If
/// dst has 16 bits or fewer, the deviations in f32 replace the values, since they are as small as the row's spread.
#[derive(Clone, Copy)]
pub(super) struct Moments<E, Dst, const RMS: bool> {
    pub(super) element: E,
    pub(super) src: *const u8,
    pub(super) about: f32,
    /// The unrounded [`provisional_mean`].
    provisional_mean: f64,
    dst: PhantomData<Dst>,
}

impl<S: Simd, E: Element, Dst: Element, const RMS: bool> Fold<S, 1> for Moments<E, Dst, RMS> {
    const TERM: Term = match (RMS, Dst::HALF || E::EXACT) {
        (true, _) => Term::None,
        (false, true) => Term::F32,
        (false, false) => Term::F64,
    };
    const IN_ORDER: bool = S::MANY_REGISTERS && (E::HALF || !RMS);

    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.of::<S>(width.load_as::<S, _>(self.element, self.src, i)) }
    }
}

impl<E: Element, Dst: Element, const RMS: bool> Moments<E, Dst, RMS> {
    /// The moments of a row about a value.
    #[inline(always)]
    pub(super) fn about(element: E, src: *const u8, about: f32) -> Self {
        Self { element, src, about, provisional_mean: 0.0, dst: PhantomData }
    }

    /// The deviations of a vector of values.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn deviation<S: Simd>(&self, x: S::F32x16) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { if RMS { x } else { S::sub(x, S::splat(self.about)) } }
    }

    /// The lane sums of the squares of a row of `NV` full vectors, at most two chains. The fold's other chains are zero.
    ///
    /// # Safety
    /// The row has so many elements, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn squares<S: Simd, const NV: usize>(&self) -> S::F64x16 {
        const { assert!(NV <= 2 * CHAIN) };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sum = S::zero();
            for v in 0..NV.min(CHAIN) {
                let d = self.deviation::<S>(self.element.load::<S>(self.src, v * LANES));
                sum = S::fma(d, d, sum);
            }
            if const { NV > CHAIN } {
                let mut second = S::zero();
                for v in CHAIN..NV {
                    let d = self.deviation::<S>(self.element.load::<S>(self.src, v * LANES));
                    second = S::fma(d, d, second);
                }
                sum = S::add(sum, second);
            }
            S::widen(sum)
        }
    }

    /// The terms of a vector of values.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn of<S: Simd>(&self, x: S::F32x16) -> Terms<S, 1> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let d = self.deviation::<S>(x);
            if RMS {
                Terms::products([(d, d)])
            } else if Dst::HALF {
                Terms::with_f32([(d, d)], d)
            } else if E::EXACT {
                // Exact, so the bits are those of f64 sums.
                Terms::with_f32([(d, d)], x)
            } else {
                Terms::with_f64([(d, d)], S::widen(x))
            }
        }
    }

    /// The moments of a row about its provisional mean.
    ///
    /// # Safety
    /// As [`provisional_mean`].
    #[inline(always)]
    pub(super) unsafe fn new<S: Simd>(element: E, src: *const u8, cols: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        let provisional_mean = unsafe { provisional_mean::<S, E, Dst, RMS>(element, src, cols) };
        Self { provisional_mean, ..Self::about(element, src, provisional_mean as f32) }
    }

    /// The mean of the row.
    #[inline(always)]
    fn mean(&self, cols: usize, terms: f64) -> f64 {
        if RMS {
            0.0
        } else if cols <= PROVISIONAL_COLS {
            self.provisional_mean
        } else {
            // SAFETY: scalar code needs no instruction set.
            unsafe { mean_of_terms::<f64, Dst>(terms, self.about.into(), cols) }
        }
    }

    /// The statistics from the sums. `None` if the row needs f64, or [`two_pass`] because the provisional mean is too
    /// far from the mean.
    #[inline(always)]
    pub(super) fn statistics(&self, cols: usize, sums: &Sums<1>) -> Option<Statistics> {
        let mean_square = per_col(sums.products[0], cols);
        let mean = self.mean(cols, sums.terms);
        // SAFETY: scalar code needs no instruction set.
        let (variance, trusted) =
            unsafe { variance_about::<f64, RMS>(mean_square, mean, self.about.into()) };
        trusted.then_some(Statistics { mean, variance })
    }
}

/// The means of rows, from the sums of their terms: the values or, if dst has 16 bits or fewer, the deviations from
/// `about`.
///
/// # Safety
/// As [`RowLanes`].
#[inline(always)]
pub(super) unsafe fn mean_of_terms<L: RowLanes, Dst: Element>(
    terms: L,
    about: L,
    cols: usize,
) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mean = per_col_of(terms, cols);
        if Dst::HALF { L::add(about, mean) } else { mean }
    }
}

/// The statistics of a row by two passes, the second about the mean rounded to f32; `None` if the row needs f64. `rms` is
/// not a constant, and both passes are one loop, because such rows are rare.
///
/// # Safety
/// As [`provisional_mean`].
#[inline(always)]
pub(super) unsafe fn two_pass<S: Simd, E: Element>(
    element: E,
    src: *const u8,
    cols: usize,
    rms: bool,
) -> Option<Statistics> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut moments = if rms {
            Moments::<E, F32, false>::about(element, src, 0.0)
        } else {
            Moments::new::<S>(element, src, cols)
        };
        let (mut first, mut mean) = (true, 0.0);
        let mean_square = loop {
            let sums = fold::<S, 1, _>(cols, &moments);
            let mean_square = per_col(sums.products[0], cols);
            if rms || !first {
                break mean_square;
            }
            mean = moments.mean(cols, sums.terms);
            if mean_square == 0.0 {
                break mean_square;
            }
            moments.about = mean as f32;
            first = false;
        };
        let about = moments.about;
        if mean_square == 0.0 {
            // All elements are equal (0 with RMS), or their squares underflow.
            let deviations = Deviations { element, src, about };
            let constant = fold::<S, 0, _>(cols, &deviations).terms == 0.0;
            return constant.then_some(Statistics { mean: f64::from(about), variance: 0.0 });
        }
        let variance = corrected(mean_square, mean, about);
        in_range(mean_square).then_some(Statistics { mean, variance })
    }
}

/// The squares of a row's deviations from `about`, in f64, where they do not underflow.
struct Deviations<E> {
    element: E,
    src: *const u8,
    about: f32,
}

impl<E> Deviations<E> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn of<S: Simd>(&self, x: S::F32x16) -> Terms<S, 0> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let d = S::wide_sub(S::widen(x), S::wide_splat(f64::from(self.about)));
            Terms::with_f64([], S::wide_mul(d, d))
        }
    }
}

impl<S: Simd, E: Element> Fold<S, 0> for Deviations<E> {
    const TERM: Term = Term::F64;

    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 0> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.of::<S>(width.load_as::<S, _>(self.element, self.src, i)) }
    }
}

/// A vector, or zeros if it is not wanted.
///
/// # Safety
/// Its elements exist from `i` on if it is wanted, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn load_if<S: Simd>(
    wanted: bool,
    p: *const f32,
    i: usize,
    width: impl Width,
) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { if wanted { width.load::<S>(p.add(i)) } else { S::zero() } }
}

/// Stores a vector if it is wanted.
///
/// # Safety
/// As [`load_if`].
#[inline(always)]
pub(super) unsafe fn store_if<S: Simd>(
    wanted: bool,
    p: *mut f32,
    i: usize,
    v: S::F32x16,
    width: impl Width,
) {
    if wanted {
        // SAFETY: guaranteed by the caller.
        unsafe { width.store::<S>(p.add(i), v) }
    }
}
