//! The terms that folds sum, and the chains that accumulate them.

use super::{Simd, Width, unroll, zeroed};

/// The terms of a [`fold`](super::fold). For the vector at element `i`, there are `K` products in f32 and at most one
/// other term.
pub(crate) trait Fold<S: Simd, const K: usize> {
    const TERM: Term = Term::None;
    /// Whether a term takes so many instructions that the loop over chains is not unrolled.
    const LONG: bool = false;
    /// Whether the chains of long rows are computed in order. The compiler may begin with the last one, whose loads
    /// come last, and may even load it first, which hardware prefetchers follow worse. On a Zen 4, RMS in f32 took up
    /// to 1.2 times as long backward from memory; forward with 16 bits, 1.0 to 1.05 times anywhere, in one case 1.25.
    /// On a Zen 5, LayerNorm in f32 took up to 1.1 times as long, forward and backward. The order costs other sums up
    /// to 5 per cent, and RMS in f32 forward up to 7 from a shared cache on a Zen 5, where it gained up to 4 from
    /// memory on a Zen 4. It would cost rows of 128 f32 backward 3 to 4 per cent from memory; other rows of up to
    /// [`GROUP`](super::GROUP) columns are as fast without it.
    const IN_ORDER: bool = false;

    /// Called before the terms of a group, whose elements are `i` to `i + n - 1`.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn begin(&self, _i: usize, _n: usize) {}
    /// # Safety
    /// The elements of a vector of this width exist from `i` on. Other lanes of the result are ignored.
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, K>;
}

/// The term of a fold besides its products.
#[derive(Clone, Copy)]
pub(crate) enum Term {
    None,
    /// Summed in f64.
    F64,
    /// Summed in f32 chains, as products are.
    F32,
}

impl Term {
    pub(super) const fn exists(self) -> bool {
        !matches!(self, Self::None)
    }

    pub(super) const fn is_f64(self) -> bool {
        matches!(self, Self::F64)
    }

    pub(super) const fn is_f32(self) -> bool {
        matches!(self, Self::F32)
    }
}

/// The terms of a vector.
pub(crate) struct Terms<S: Simd, const K: usize> {
    factors: [(S::F32x16, S::F32x16); K],
    f64_term: S::F64x16,
    f32_term: S::F32x16,
}

/// The f32 sums of the terms of a few vectors.
#[derive(Clone, Copy)]
pub(super) struct Chain<S: Simd, const K: usize> {
    pub(super) products: [S::F32x16; K],
    pub(super) f32_term: S::F32x16,
}

impl<S: Simd, const K: usize> Chain<S, K> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn zero() -> Self {
        // SAFETY: vectors are numbers.
        unsafe { zeroed() }
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn join<T: Fold<S, K>>(&self, other: &Self) -> Self {
        let mut sums = *self;
        // SAFETY: guaranteed by the caller.
        unsafe {
            unroll!(k in K, {
                sums.products[k] = S::add(sums.products[k], other.products[k]);
            });
            if const { T::TERM.is_f32() } {
                sums.f32_term = S::add(sums.f32_term, other.f32_term);
            }
        }
        sums
    }
}

impl<S: Simd, const K: usize> Terms<S, K> {
    /// Products only.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(crate) unsafe fn products(factors: [(S::F32x16, S::F32x16); K]) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Self { factors, f64_term: S::wide_zero(), f32_term: S::zero() } }
    }

    /// Products and an f64 term.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(crate) unsafe fn with_f64(
        factors: [(S::F32x16, S::F32x16); K],
        f64_term: S::F64x16,
    ) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { factors, f64_term, f32_term: unsafe { S::zero() } }
    }

    /// Products and an f32 term.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(crate) unsafe fn with_f32(
        factors: [(S::F32x16, S::F32x16); K],
        f32_term: S::F32x16,
    ) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { factors, f64_term: unsafe { S::wide_zero() }, f32_term }
    }

    /// A chain that starts with these products and this f32 term instead of adding them to zero. Only the sign of a
    /// zero may differ, and that disappears when group sums are added to the f64 sum. Adds the f64 term to its sum.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn start<T: Fold<S, K>>(&self, f64_term: &mut S::F64x16) -> Chain<S, K> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut chain = Chain { f32_term: self.f32_term, ..Chain::zero() };
            unroll!(k in K, {
                let (a, b) = self.factors[k];
                chain.products[k] = S::mul(a, b);
            });
            if const { T::TERM.is_f64() } {
                *f64_term = S::wide_add(*f64_term, self.f64_term);
            }
            chain
        }
    }

    /// Adds the products and the f32 term to a chain, or the f64 term to a sum.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn add<T: Fold<S, K>>(
        &self,
        chain: &mut Chain<S, K>,
        f64_term: &mut S::F64x16,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            unroll!(k in K, {
                let (a, b) = self.factors[k];
                chain.products[k] = S::fma(a, b, chain.products[k]);
            });
            if const { T::TERM.is_f64() } {
                *f64_term = S::wide_add(*f64_term, self.f64_term);
            }
            if const { T::TERM.is_f32() } {
                chain.f32_term = S::add(chain.f32_term, self.f32_term);
            }
        }
    }

    /// The first `n` lanes, and zeros in the others.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn first_n<T: Fold<S, K>>(mut self, n: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            unroll!(k in K, {
                let (a, b) = self.factors[k];
                self.factors[k] = (S::first_n(a, n), S::first_n(b, n));
            });
            if const { T::TERM.is_f64() } {
                self.f64_term = S::wide_first_n(self.f64_term, n);
            }
            if const { T::TERM.is_f32() } {
                self.f32_term = S::first_n(self.f32_term, n);
            }
        }
        self
    }
}

/// The results of a fold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<const K: usize> {
    /// The sum of each product.
    pub(crate) products: [f64; K],
    /// The sum of the other term.
    pub(crate) terms: f64,
}
