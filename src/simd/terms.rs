//! What folds sum: the terms of a vector, and the chains that they are added to.

use super::{Simd, unroll};

/// What a [`fold`](super::fold) sums: for the vector that begins at element `i`, `K` products in f32, and a term of its own
/// if there is one.
pub(crate) trait Fold<S: Simd, const K: usize> {
    const TERM: Term = Term::None;

    /// # Safety
    /// Elements `i` to `i + 15` are there.
    unsafe fn terms(&self, i: usize) -> Terms<S, K>;
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; what the other lanes hold does not matter.
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, K>;
}

/// What a fold sums besides products.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    None,
    /// One in f64.
    Wide,
    /// One in f32, in chains as products are.
    Narrow,
}

/// The terms of a vector.
pub(crate) struct Terms<S: Simd, const K: usize> {
    factors: [(S::F, S::F); K],
    wide: S::D,
    narrow: S::F,
}

/// The sums of the terms of a few vectors, in f32.
#[derive(Clone, Copy)]
pub(super) struct Chain<S: Simd, const K: usize> {
    pub(super) products: [S::F; K],
    pub(super) narrow: S::F,
}

impl<S: Simd, const K: usize> Chain<S, K> {
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(super) unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        let zero = unsafe { S::splat(0.0) };
        Self { products: [zero; K], narrow: zero }
    }

    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(super) unsafe fn join<T: Fold<S, K>>(&self, other: &Self) -> Self {
        let mut sums = *self;
        // SAFETY: the caller's.
        unsafe {
            unroll!(k in K, {
                sums.products[k] = S::add(sums.products[k], other.products[k]);
            });
            if T::TERM == Term::Narrow {
                sums.narrow = S::add(sums.narrow, other.narrow);
            }
        }
        sums
    }
}

impl<S: Simd, const K: usize> Terms<S, K> {
    /// Products alone.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(crate) unsafe fn products(factors: [(S::F, S::F); K]) -> Self {
        // SAFETY: the caller's.
        unsafe { Self { factors, wide: S::wide_splat(0.0), narrow: S::splat(0.0) } }
    }

    /// Products, and a term in f64.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(crate) unsafe fn with_wide(factors: [(S::F, S::F); K], wide: S::D) -> Self {
        // SAFETY: the caller's.
        Self { factors, wide, narrow: unsafe { S::splat(0.0) } }
    }

    /// Products, and a term in f32.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(crate) unsafe fn with_narrow(factors: [(S::F, S::F); K], narrow: S::F) -> Self {
        // SAFETY: the caller's.
        Self { factors, wide: unsafe { S::wide_splat(0.0) }, narrow }
    }

    /// Adds what is summed in f32 to a chain and the term in f64 to a sum.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(super) unsafe fn add<T: Fold<S, K>>(&self, chain: &mut Chain<S, K>, wide: &mut S::D) {
        // SAFETY: the caller's.
        unsafe {
            unroll!(k in K, {
                let (a, b) = self.factors[k];
                chain.products[k] = S::fma(a, b, chain.products[k]);
            });
            match T::TERM {
                Term::None => (),
                Term::Wide => *wide = S::wide_add(*wide, self.wide),
                Term::Narrow => chain.narrow = S::add(chain.narrow, self.narrow),
            }
        }
    }

    /// The first `n` lanes, and zeros.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(super) unsafe fn first_n<T: Fold<S, K>>(mut self, n: usize) -> Self {
        // SAFETY: the caller's.
        unsafe {
            unroll!(k in K, {
                let (a, b) = self.factors[k];
                self.factors[k] = (S::first_n(a, n), S::first_n(b, n));
            });
            match T::TERM {
                Term::None => (),
                Term::Wide => self.wide = S::wide_first_n(self.wide, n),
                Term::Narrow => self.narrow = S::first_n(self.narrow, n),
            }
        }
        self
    }
}

/// What a fold comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<const K: usize> {
    /// Of the products of each pair of factors.
    pub(crate) products: [f64; K],
    /// Of the terms of their own.
    pub(crate) terms: f64,
}
