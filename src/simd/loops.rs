//! The loops that own order, unrolling and tails: [`fold`] and [`fold_wide`] turn a row into sums,
//! [`map`] turns rows into rows.
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

/// What a [`fold`] sums: for the vector that begins at element `i`, `K` pairs of factors.
pub(crate) trait Fold<S: Simd, const K: usize> {
    /// # Safety
    /// Elements `i` to `i + 15` are there.
    unsafe fn terms(&self, i: usize) -> [(S::F, S::F); K];
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; what the other lanes hold does not matter.
    unsafe fn terms_n(&self, i: usize, n: usize) -> [(S::F, S::F); K];
}

/// What a [`fold_wide`] sums, in f64.
pub(crate) trait WideFold<S: Simd> {
    /// # Safety
    /// Elements `i` to `i + 15` are there.
    unsafe fn term(&self, i: usize) -> S::D;
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; what the other lanes hold does not matter.
    unsafe fn term_n(&self, i: usize, n: usize) -> S::D;
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

/// The `K` sums of products over `cols` elements.
///
/// # Safety
/// Elements 0 to `cols - 1` are there; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn fold<S: Simd, const K: usize, T: Fold<S, K>>(
    cols: usize,
    terms: &T,
) -> [f64; K] {
    let mut total = [0.0; K];
    let mut begin = 0;
    while begin < cols {
        let end = cols.min(begin + BLOCK);
        // SAFETY: all elements named lie below `end`.
        unsafe {
            let mut wide = [S::wide_splat(0.0); K];
            let mut i = begin;
            while i + GROUP <= end {
                let part = group::<S, K, T>(i, terms);
                for k in 0..K {
                    wide[k] = S::wide_add(wide[k], S::widen(part[k]));
                }
                i += GROUP;
            }
            if i < end {
                let part = group_partial::<S, K, T>(i, end - i, terms);
                for k in 0..K {
                    wide[k] = S::wide_add(wide[k], S::widen(part[k]));
                }
            }
            for k in 0..K {
                total[k] += S::wide_sum(wide[k]);
            }
        }
        begin = end;
    }
    total
}

/// One whole group.
///
/// # Safety
/// Elements `i` to `i + GROUP - 1` are there.
#[inline(always)]
unsafe fn group<S: Simd, const K: usize, T: Fold<S, K>>(i: usize, terms: &T) -> [S::F; K] {
    // SAFETY: the caller's.
    unsafe {
        let mut chains = [[S::splat(0.0); K]; CHAINS];
        for (c, chain) in chains.iter_mut().enumerate() {
            for v in 0..CHAIN {
                let pairs = terms.terms(i + (c * CHAIN + v) * LANES);
                for k in 0..K {
                    chain[k] = S::fma(pairs[k].0, pairs[k].1, chain[k]);
                }
            }
        }
        join::<S, K>(&chains)
    }
}

/// A group of fewer than [`GROUP`] elements.
///
/// # Safety
/// Elements `i` to `i + len - 1` are there, `len` is between 1 and `GROUP - 1`.
#[inline(always)]
unsafe fn group_partial<S: Simd, const K: usize, T: Fold<S, K>>(
    i: usize,
    len: usize,
    terms: &T,
) -> [S::F; K] {
    // SAFETY: the caller's; each vector is whole or cut at `len`.
    unsafe {
        let mut chains = [[S::splat(0.0); K]; CHAINS];
        let mut at = 0;
        for chain in &mut chains {
            let end = (at + CHAIN * LANES).min(len);
            while at + LANES <= end {
                let pairs = terms.terms(i + at);
                for k in 0..K {
                    chain[k] = S::fma(pairs[k].0, pairs[k].1, chain[k]);
                }
                at += LANES;
            }
            if at < end {
                let n = end - at;
                let pairs = terms.terms_n(i + at, n);
                for k in 0..K {
                    let (a, b) = (S::first_n(pairs[k].0, n), S::first_n(pairs[k].1, n));
                    chain[k] = S::fma(a, b, chain[k]);
                }
                at = end;
            }
        }
        join::<S, K>(&chains)
    }
}

/// # Safety
/// The instruction set of `S` is there.
#[inline(always)]
unsafe fn join<S: Simd, const K: usize>(chains: &[[S::F; K]; CHAINS]) -> [S::F; K] {
    let mut sums = chains[0];
    for k in 0..K {
        // SAFETY: the caller's.
        unsafe {
            let low = S::add(chains[0][k], chains[1][k]);
            let high = S::add(chains[2][k], chains[3][k]);
            sums[k] = S::add(low, high);
        }
    }
    sums
}

/// The sum of terms over `cols` elements, in f64 throughout: even and odd vectors of a block make a
/// chain each, `even + odd` joins by halves, blocks are added in order.
///
/// # Safety
/// Elements 0 to `cols - 1` are there; the instruction set of `S` is too.
#[inline(always)]
pub(crate) unsafe fn fold_wide<S: Simd, T: WideFold<S>>(cols: usize, terms: &T) -> f64 {
    let mut total = 0.0;
    let mut begin = 0;
    while begin < cols {
        let end = cols.min(begin + BLOCK);
        // SAFETY: all elements named lie below `end`.
        unsafe {
            let mut even = S::wide_splat(0.0);
            let mut odd = S::wide_splat(0.0);
            let mut i = begin;
            while i + 2 * LANES <= end {
                even = S::wide_add(even, terms.term(i));
                odd = S::wide_add(odd, terms.term(i + LANES));
                i += 2 * LANES;
            }
            if i + LANES <= end {
                even = S::wide_add(even, terms.term(i));
                i += LANES;
                if i < end {
                    odd = S::wide_add(odd, S::wide_first_n(terms.term_n(i, end - i), end - i));
                }
            } else if i < end {
                even = S::wide_add(even, S::wide_first_n(terms.term_n(i, end - i), end - i));
            }
            total += S::wide_sum(S::wide_add(even, odd));
        }
        begin = end;
    }
    total
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

/// [`map`] and `R` of [`fold_wide`] in one sweep, for at most a block of elements: what one row waits for
/// from memory, the other computes in. The bits are those of all apart.
///
/// # Safety
/// Elements 0 to `cols - 1` are there for all, `cols` is at most [`BLOCK`], and what `op` writes `terms` do
/// not read; the instruction set of `S` is there.
#[inline(always)]
pub(crate) unsafe fn map_and_fold_wide<S: Simd, M: Map<S>, T: WideFold<S>, const R: usize>(
    cols: usize,
    op: &M,
    terms: &[T; R],
) -> [f64; R] {
    let mut totals = [0.0; R];
    // SAFETY: all elements named lie below `cols`.
    unsafe {
        let mut even = [S::wide_splat(0.0); R];
        let mut odd = even;
        let mut i = 0;
        while i + 2 * LANES <= cols {
            for r in 0..R {
                even[r] = S::wide_add(even[r], terms[r].term(i));
            }
            op.apply(i);
            for r in 0..R {
                odd[r] = S::wide_add(odd[r], terms[r].term(i + LANES));
            }
            op.apply(i + LANES);
            i += 2 * LANES;
        }
        // What is left is a vector, a part of one, or both, in this order.
        let mut chain = &mut even;
        while i < cols {
            let n = LANES.min(cols - i);
            for r in 0..R {
                let term = if n == LANES {
                    terms[r].term(i)
                } else {
                    S::wide_first_n(terms[r].term_n(i, n), n)
                };
                chain[r] = S::wide_add(chain[r], term);
            }
            if n == LANES {
                op.apply(i);
            } else {
                op.apply_n(i, n);
            }
            i += n;
            chain = &mut odd;
        }
        for r in 0..R {
            totals[r] += S::wide_sum(S::wide_add(even[r], odd[r]));
        }
    }
    totals
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
