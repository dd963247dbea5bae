//! The order of dot products, over vectors of 16 results.
//!
//! f32 and f16: one chain of fused multiply-adds from +0. bf16: for each 32 terms a chain of the even and one of the odd
//! ones, each from +0, added to each other and then to the sum. That is the order that x86 documents for its bf16 dot
//! products of tiles, so they and fused multiply-adds give the same bits.

use crate::simd::{Simd, unroll};

/// The terms of a group of bf16.
pub(super) const GROUP: usize = 32;

/// The left operand: a number per row and term.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub(super) start: *const f32,
    /// The distances of rows and of terms.
    pub(super) row: usize,
    pub(super) term: usize,
}

/// The right operand: vectors of 16 results, a vector per term.
#[derive(Clone, Copy)]
pub(super) struct Right {
    pub(super) start: *const f32,
    /// The distances of terms and of vectors of results.
    pub(super) term: usize,
    pub(super) panel: usize,
}

impl Left {
    #[inline(always)]
    pub(super) fn from(self, row: usize, term: usize) -> Self {
        Self { start: self.start.wrapping_add(row * self.row + term * self.term), ..self }
    }
}

impl Right {
    #[inline(always)]
    pub(super) fn from(self, panel: usize, term: usize) -> Self {
        Self { start: self.start.wrapping_add(panel * self.panel + term * self.term), ..self }
    }
}

/// `R` rows of `C` vectors.
pub(super) type Tile<S, const R: usize, const C: usize> = [[<S as Simd>::F32x16; C]; R];

/// The sums over `count` terms, each `every` terms.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn chain<S: Simd, const R: usize, const C: usize>(
    left: Left,
    right: Right,
    count: usize,
    every: usize,
) -> Tile<S, R, C> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [[S::splat(0.0); C]; R];
        let (mut a, mut b) = (left.start, right.start);
        for _ in 0..count {
            let mut vectors = [S::splat(0.0); C];
            unroll!(c in C, {
                vectors[c] = S::load(b.wrapping_add(c * right.panel));
            });
            unroll!(to 8: r in R, {
                let x = S::splat(*a.wrapping_add(r * left.row));
                unroll!(c in C, {
                    sums[r][c] = S::fma(x, vectors[c], sums[r][c]);
                });
            });
            a = a.wrapping_add(every * left.term);
            b = b.wrapping_add(every * right.term);
        }
        sums
    }
}

/// Dot products of `count` terms, in the order of bf16 or of f32.
///
/// # Safety
/// As [`chain`].
#[inline(always)]
pub(super) unsafe fn product<S: Simd, const BF16: bool, const R: usize, const C: usize>(
    left: Left,
    right: Right,
    count: usize,
) -> Tile<S, R, C> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !BF16 {
            return chain::<S, R, C>(left, right, count, 1);
        }
        let mut sums = [[S::splat(0.0); C]; R];
        let mut first = 0;
        while first < count {
            let terms = GROUP.min(count - first);
            let (a, b) = (left.from(0, first), right.from(0, first));
            let even = chain::<S, R, C>(a, b, terms.div_ceil(2), 2);
            let odd = chain::<S, R, C>(a.from(0, 1), b.from(0, 1), terms / 2, 2);
            unroll!(to 8: r in R, {
                unroll!(c in C, {
                    sums[r][c] = S::add(sums[r][c], S::add(even[r][c], odd[r][c]));
                });
            });
            first += GROUP;
        }
        sums
    }
}

/// [`product`] of a row and a vector of results, without the terms whose left factor is 0, whatever the right one is.
///
/// # Safety
/// As [`chain`].
#[inline(always)]
pub(super) unsafe fn careful_product<S: Simd, const BF16: bool>(
    left: Left,
    right: Right,
    count: usize,
) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let chain = |first: usize, end: usize, every: usize| {
            let mut sum = S::splat(0.0);
            let mut term = first;
            while term < end {
                let x = *left.from(0, term).start;
                if x != 0.0 {
                    sum = S::fma(S::splat(x), S::load(right.from(0, term).start), sum);
                }
                term += every;
            }
            sum
        };
        if !BF16 {
            return chain(0, count, 1);
        }
        let mut sum = S::splat(0.0);
        let mut first = 0;
        while first < count {
            let end = count.min(first + GROUP);
            sum = S::add(sum, S::add(chain(first, end, 2), chain(first + 1, end, 2)));
            first += GROUP;
        }
        sum
    }
}

/// The order with scalars, for terms that `get` returns. With `CAREFUL`, terms whose left factor is 0 are left out.
pub(super) fn plain_product<const CAREFUL: bool>(
    is_bf16: bool,
    count: usize,
    get: impl Fn(usize) -> (f32, f32),
) -> f32 {
    let chain = |first: usize, end: usize, every: usize| {
        (first..end).step_by(every).fold(0.0f32, |sum, term| match get(term) {
            (0.0, _) if CAREFUL => sum,
            (a, b) => a.mul_add(b, sum),
        })
    };
    if !is_bf16 {
        return chain(0, count, 1);
    }
    (0..count).step_by(GROUP).fold(0.0, |sum, first| {
        let end = count.min(first + GROUP);
        sum + (chain(first, end, 2) + chain(first + 1, end, 2))
    })
}
