//! The loops that own order, unrolling and tails: [`fold`] turns a row into sums, [`map`] turns rows into
//! rows, and [`map_and_fold`] does both in one sweep.
//!
//! The order of a sum is part of the numerics contract (the reference implementation repeats it with
//! plain scalars, lane by lane):
//!
//! 1. A row is cut into blocks of [`BLOCK`] elements, a block into groups of [`GROUP`], a group into
//!    vectors of 16 lanes. Only the last of each may be short; missing lanes count as zero.
//! 2. In a group, four vectors in a row make a chain: each lane starts at zero and takes one fused
//!    multiply-add per vector. The four chains join as `(c0 + c1) + (c2 + c3)`, still f32.
//! 3. Group sums are widened to f64 and added lane by lane, in order. A block's 16 lanes join by
//!    halves; blocks are added in order.
//! 4. Terms that are f64 from the start are added lane by lane, in order, and joined as group sums are.
//!
//! No f32 sum is longer than 4 + 2 roundings, so the error of a sum of same-signed terms stays below
//! 4 ulp for rows of any length, and a long row can be split at blocks without changing a bit.

use super::{LANES, Simd};

/// Vectors in a chain.
pub(crate) const CHAIN: usize = 4;
/// Chains in a group.
const CHAINS: usize = 4;
/// Elements in a group.
pub(crate) const GROUP: usize = LANES * CHAIN * CHAINS;
/// Elements in a block: far more than a thread needs to be worth waking, far fewer than a long row.
pub(crate) const BLOCK: usize = 128 * GROUP;

/// What a [`fold`] sums: for the vector that begins at element `i`, `K` products in f32, and one term in
/// f64 if there is one.
pub(crate) trait Fold<S: Simd, const K: usize> {
    /// Whether there is a term in f64.
    const WIDE: bool = false;

    /// # Safety
    /// Elements `i` to `i + 15` are there.
    unsafe fn terms(&self, i: usize) -> Terms<S, K>;
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; what the other lanes hold does not matter.
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, K>;
}

/// The terms of a vector.
pub(crate) struct Terms<S: Simd, const K: usize> {
    factors: [(S::F, S::F); K],
    wide: S::D,
}

impl<S: Simd, const K: usize> Terms<S, K> {
    /// Products alone.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    pub(crate) unsafe fn products(factors: [(S::F, S::F); K]) -> Self {
        // SAFETY: the caller's.
        Self { factors, wide: unsafe { S::wide_splat(0.0) } }
    }

    /// Products, and a term in f64.
    #[inline(always)]
    pub(crate) fn with_wide(factors: [(S::F, S::F); K], wide: S::D) -> Self {
        Self { factors, wide }
    }

    /// Adds the products to a chain and the term in f64 to a sum.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn add<T: Fold<S, K>>(&self, chain: &mut [S::F; K], wide: &mut S::D) {
        // SAFETY: the caller's.
        unsafe {
            for (sum, (a, b)) in chain.iter_mut().zip(self.factors) {
                *sum = S::fma(a, b, *sum);
            }
            if T::WIDE {
                *wide = S::wide_add(*wide, self.wide);
            }
        }
    }

    /// The first `n` lanes, and zeros.
    ///
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn first_n<T: Fold<S, K>>(mut self, n: usize) -> Self {
        // SAFETY: the caller's.
        unsafe {
            for (a, b) in &mut self.factors {
                (*a, *b) = (S::first_n(*a, n), S::first_n(*b, n));
            }
            if T::WIDE {
                self.wide = S::wide_first_n(self.wide, n);
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
    /// Of the terms in f64.
    pub(crate) wide: f64,
}

/// What a [`map`] does with the vector that begins at element `i`.
pub(crate) trait Map<S: Simd> {
    /// How many vectors are taken per turn of the loop; 1 for those that do much with each.
    const UNROLL: usize = 4;

    /// # Safety
    /// Elements `i` to `i + 15` are there.
    unsafe fn apply(&self, i: usize);
    /// # Safety
    /// Elements `i` to `i + n - 1` are there.
    unsafe fn apply_n(&self, i: usize, n: usize);
}

/// What a fold does besides summing, when it does nothing.
struct Nothing;

impl<S: Simd> Map<S> for Nothing {
    #[inline(always)]
    unsafe fn apply(&self, _i: usize) {}
    #[inline(always)]
    unsafe fn apply_n(&self, _i: usize, _n: usize) {}
}

/// The sums over `cols` elements.
///
/// # Safety
/// Elements 0 to `cols - 1` are there; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn fold<S: Simd, const K: usize, T: Fold<S, K>>(
    cols: usize,
    terms: &T,
) -> Sums<K> {
    let mut total = Sums { products: [0.0; K], wide: 0.0 };
    let mut begin = 0;
    while begin < cols {
        let end = cols.min(begin + BLOCK);
        // SAFETY: all elements named lie below `end`.
        let [sums] = unsafe {
            block::<S, K, 1, T, Nothing>(begin, end, std::array::from_ref(terms), &Nothing)
        };
        for k in 0..K {
            total.products[k] += sums.products[k];
        }
        total.wide += sums.wide;
        begin = end;
    }
    total
}

/// [`map`] and `R` of [`fold`] in one sweep, for at most a block of elements: while one waits for memory,
/// the other computes. The bits are those of all apart.
///
/// # Safety
/// Elements 0 to `cols - 1` are there for all, `cols` is at most [`BLOCK`], and what `op` writes `terms` do
/// not read; the instruction set of `S` is there.
#[inline(always)]
pub(crate) unsafe fn map_and_fold<
    S: Simd,
    const K: usize,
    const R: usize,
    M: Map<S>,
    T: Fold<S, K>,
>(
    cols: usize,
    op: &M,
    terms: &[T; R],
) -> [Sums<K>; R] {
    // SAFETY: the caller's.
    unsafe { block::<S, K, R, T, M>(0, cols, terms, op) }
}

/// The f64 sums of a fold over a block, lane by lane: what its groups came to, and its wide terms.
#[derive(Clone, Copy)]
pub(crate) struct Running<S: Simd, const K: usize> {
    pub(crate) groups: [S::D; K],
    pub(crate) wide: S::D,
}

/// The sums over at most [`GROUP`] elements, whose lanes are not joined: [`fold`] joins them by
/// [`wide_sum`](Simd::wide_sum).
///
/// # Safety
/// Elements 0 to `cols - 1` are there, at least one; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn lane_sums<S: Simd, const K: usize, T: Fold<S, K>>(
    cols: usize,
    terms: &T,
) -> Running<S, K> {
    // SAFETY: the caller's. A whole group is a partial one that is not cut.
    unsafe {
        let zero = S::wide_splat(0.0);
        let mut running = Running { groups: [zero; K], wide: zero };
        running.add_partial(0, cols, terms);
        running
    }
}

/// `R` folds over elements `begin` to `end - 1`, at most a block of them, and `op` applied to each vector.
///
/// # Safety
/// The elements are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn block<S: Simd, const K: usize, const R: usize, T: Fold<S, K>, M: Map<S>>(
    begin: usize,
    end: usize,
    terms: &[T; R],
    op: &M,
) -> [Sums<K>; R] {
    // SAFETY: all elements named lie below `end`.
    unsafe {
        let zero = S::wide_splat(0.0);
        let mut running = [Running::<S, K> { groups: [zero; K], wide: zero }; R];
        let mut i = begin;
        while i + GROUP <= end {
            let c0 = chain::<S, K, R, T, M>(i, terms, op, &mut running);
            let c1 = chain::<S, K, R, T, M>(i + CHAIN * LANES, terms, op, &mut running);
            let low = add_all::<S, K, R>(&c0, &c1);
            let c2 = chain::<S, K, R, T, M>(i + 2 * CHAIN * LANES, terms, op, &mut running);
            let c3 = chain::<S, K, R, T, M>(i + 3 * CHAIN * LANES, terms, op, &mut running);
            let group = add_all::<S, K, R>(&low, &add_all::<S, K, R>(&c2, &c3));
            for r in 0..R {
                running[r].add_group(&group[r]);
            }
            i += GROUP;
        }
        if i < end {
            for r in 0..R {
                running[r].add_partial(i, end - i, &terms[r]);
            }
            while i + LANES <= end {
                op.apply(i);
                i += LANES;
            }
            if i < end {
                op.apply_n(i, end - i);
            }
        }
        let mut sums = [Sums { products: [0.0; K], wide: 0.0 }; R];
        for r in 0..R {
            for k in 0..K {
                sums[r].products[k] = S::wide_sum(running[r].groups[k]);
            }
            if T::WIDE {
                sums[r].wide = S::wide_sum(running[r].wide);
            }
        }
        sums
    }
}

/// One chain of each of `R` folds: four vectors, of which `op` takes each after the folds have.
///
/// # Safety
/// The vectors from `i` on are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn chain<S: Simd, const K: usize, const R: usize, T: Fold<S, K>, M: Map<S>>(
    i: usize,
    terms: &[T; R],
    op: &M,
    running: &mut [Running<S, K>; R],
) -> [[S::F; K]; R] {
    // SAFETY: the caller's.
    unsafe {
        let mut chains = [[S::splat(0.0); K]; R];
        for v in 0..CHAIN {
            let at = i + v * LANES;
            for r in 0..R {
                terms[r].terms(at).add::<T>(&mut chains[r], &mut running[r].wide);
            }
            op.apply(at);
        }
        chains
    }
}

/// # Safety
/// The instruction set of `S` is there.
#[inline(always)]
unsafe fn add_all<S: Simd, const K: usize, const R: usize>(
    a: &[[S::F; K]; R],
    b: &[[S::F; K]; R],
) -> [[S::F; K]; R] {
    let mut sums = *a;
    for r in 0..R {
        for k in 0..K {
            // SAFETY: the caller's.
            sums[r][k] = unsafe { S::add(a[r][k], b[r][k]) };
        }
    }
    sums
}

impl<S: Simd, const K: usize> Running<S, K> {
    /// # Safety
    /// The instruction set of `S` is there.
    #[inline(always)]
    unsafe fn add_group(&mut self, group: &[S::F; K]) {
        for (sum, part) in self.groups.iter_mut().zip(group) {
            // SAFETY: the caller's.
            *sum = unsafe { S::wide_add(*sum, S::widen(*part)) };
        }
    }

    /// A group of at most [`GROUP`] elements.
    ///
    /// # Safety
    /// Elements `i` to `i + len - 1` are there, `len` is between 1 and `GROUP`; the instruction set
    /// of `S` is there.
    #[inline(always)]
    unsafe fn add_partial<T: Fold<S, K>>(&mut self, i: usize, len: usize, terms: &T) {
        // SAFETY: the caller's; each vector is whole or cut at `len`.
        unsafe {
            let mut chains = [[[S::splat(0.0); K]; 1]; CHAINS];
            let mut at = 0;
            for [chain] in &mut chains {
                let end = (at + CHAIN * LANES).min(len);
                while at + LANES <= end {
                    terms.terms(i + at).add::<T>(chain, &mut self.wide);
                    at += LANES;
                }
                if at < end {
                    let n = end - at;
                    terms.terms_n(i + at, n).first_n::<T>(n).add::<T>(chain, &mut self.wide);
                    at = end;
                }
            }
            let low = add_all::<S, K, 1>(&chains[0], &chains[1]);
            let [sum] = add_all::<S, K, 1>(&low, &add_all::<S, K, 1>(&chains[2], &chains[3]));
            self.add_group(&sum);
        }
    }
}

/// Applies `op` to `cols` elements, each vector once.
///
/// # Safety
/// Elements 0 to `cols - 1` are there; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn map<S: Simd, T: Map<S>>(cols: usize, op: &T) {
    let mut i = 0;
    // SAFETY: all elements named lie below `cols`.
    unsafe {
        if S::UNROLLS {
            while i + T::UNROLL * LANES <= cols {
                for v in 0..T::UNROLL {
                    op.apply(i + v * LANES);
                }
                i += T::UNROLL * LANES;
            }
        }
        while i + LANES <= cols {
            op.apply(i);
            i += LANES;
        }
        if i < cols {
            op.apply_n(i, cols - i);
        }
    }
}

/// Adds the first `n` lanes to sums in memory; `n` is 16 for all.
///
/// # Safety
/// `n` sums are there; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn add_wide<S: Simd>(sums: *mut f64, terms: S::D, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        if n == LANES {
            S::wide_store(sums, S::wide_add(S::wide_load(sums), terms));
        } else {
            S::wide_store_n(sums, S::wide_add(S::wide_load_n(sums, n), terms), n);
        }
    }
}
