//! The loops, which own the order of sums, unrolling and tails: [`fold`] reduces a row to sums, [`map`] computes rows
//! from rows, and [`map_and_fold`] does both in one sweep.
//!
//! The order of a sum is part of the numerics contract. The reference implementation repeats it with scalars, lane by
//! lane:
//!
//! 1. A row is split into blocks of [`BLOCK`] elements, a block into groups of [`GROUP`], a group into
//!    vectors of 16 lanes. Only the last of each may be partial; missing lanes count as zero.
//! 2. In a group, each four consecutive vectors form a chain: each lane starts at zero and accumulates one fused
//!    multiply-add per vector. The four chains are added as `(c0 + c1) + (c2 + c3)`, in f32.
//! 3. Group sums are widened to f64 and added lane by lane, in order. The 16 lanes of a block are added pairwise, the
//!    upper half to the lower one; blocks are added in order.
//! 4. A fold may have one term besides its products. An f32 term is summed like the products. An f64 term is added lane
//!    by lane, in order, and its lanes are added like those of group sums.
//!
//! An f32 sum has at most 4 + 2 roundings, so the error of a sum of terms of one sign is below 4 ulp for rows of any
//! length. A long row can be split at blocks without changing a bit.

use super::terms::{Chain, Fold, Sums};
use super::{Element, First, Full, LANES, Simd, Width, unroll, zeroed};

/// Vectors in a chain.
pub(crate) const CHAIN: usize = 4;
/// Chains in a group.
const CHAINS: usize = 4;
/// Elements in a group.
pub(crate) const GROUP: usize = LANES * CHAIN * CHAINS;
/// Elements in a block: enough to be worth waking a thread for, and few enough to split long rows.
pub(crate) const BLOCK: usize = 128 * GROUP;

/// The body of a [`map`], for the vector at element `i`.
pub(crate) trait Map<S: Simd> {
    /// The vectors per iteration; 1 if each takes many instructions.
    const UNROLL: usize = 4;
    /// Whether two of the vectors that are left after the last whole iteration are better computed together.
    const PAIRS: bool = false;

    /// # Safety
    /// The elements of a vector of this width exist from `i` on.
    unsafe fn apply<W: Width>(&self, i: usize, width: W);
    /// [`apply`](Map::apply) to `UNROLL` whole vectors.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        unroll!(v in Self::UNROLL, {
            // SAFETY: guaranteed by the caller.
            unsafe { self.apply(i + v * LANES, Full) }
        });
    }
    /// [`apply`](Map::apply) to two whole vectors.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn pair(&self, i: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.apply(i, Full);
            self.apply(i + LANES, Full);
        }
    }
}

/// Does nothing, for folds without a map.
struct Nothing;

impl<S: Simd> Map<S> for Nothing {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, _i: usize, _width: W) {}
}

/// The sums over `cols` elements.
///
/// # Safety
/// Elements 0 to `cols - 1` exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn fold<S: Simd, const K: usize, T: Fold<S, K>>(
    cols: usize,
    terms: &T,
) -> Sums<K> {
    // SAFETY: guaranteed by the caller.
    unsafe { fold_beside::<S, K, T, Nothing>(cols, terms, &Nothing) }
}

/// [`fold`], with `op` applied to each vector after it is summed.
///
/// # Safety
/// Elements 0 to `cols - 1` exist for both, `terms` reads nothing that `op` writes, and the CPU supports the
/// instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn fold_beside<S: Simd, const K: usize, T: Fold<S, K>, M: Map<S>>(
    cols: usize,
    terms: &T,
    op: &M,
) -> Sums<K> {
    // SAFETY: numbers.
    let mut total: Sums<K> = unsafe { zeroed() };
    let mut begin = 0;
    while begin < cols {
        let end = cols.min(begin + BLOCK);
        // SAFETY: all elements are below `end`.
        let [sums] = unsafe { block::<S, K, 1, T, M>(begin, end, std::array::from_ref(terms), op) };
        unroll!(k in K, {
            total.products[k] += sums.products[k];
        });
        total.terms += sums.terms;
        begin = end;
    }
    total
}

/// A [`map`] and `R` [`fold`]s in one sweep over at most a block of elements, so that one computes while the other
/// waits for memory. The bits are those of separate sweeps.
///
/// # Safety
/// Elements 0 to `cols - 1` exist for all, `cols` is at most [`BLOCK`], `terms` read nothing that `op` writes, and the
/// CPU supports the instruction set of `S`.
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
    // SAFETY: guaranteed by the caller.
    unsafe { block::<S, K, R, T, M>(0, cols, terms, op) }
}

/// The f64 sums of a fold over a block, lane by lane.
#[derive(Clone, Copy)]
pub(crate) struct Running<S: Simd, const K: usize> {
    pub(crate) products: [S::F64x16; K],
    pub(crate) terms: S::F64x16,
}

/// The lane sums over at most [`GROUP`] elements. [`wide_sum`](Simd::wide_sum) of them gives the sums of [`fold`].
///
/// # Safety
/// Elements 0 to `cols - 1` exist, at least one, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn lane_sums<S: Simd, const K: usize, T: Fold<S, K>>(
    cols: usize,
    terms: &T,
) -> Running<S, K> {
    // SAFETY: guaranteed by the caller. Missing chains are zero.
    unsafe {
        terms.begin(0, cols);
        let mut running: [Running<S, K>; 1] = zeroed();
        // Unrolled by hand: an array with a variable index would go through memory.
        let chains = cols / (CHAIN * LANES);
        let mut a = whole_chain::<S, K, T>(0, chains, terms, &mut running);
        let mut b = whole_chain::<S, K, T>(1, chains, terms, &mut running);
        let mut c = whole_chain::<S, K, T>(2, chains, terms, &mut running);
        let mut d = whole_chain::<S, K, T>(3, chains, terms, &mut running);
        let [mut running] = running;
        let at = chains * CHAIN * LANES;
        if at < cols {
            let mut last = Chain::zero();
            partial_chain::<S, K, T>(at, cols, terms, &mut last, &mut running.terms);
            match chains {
                0 => a = last,
                1 => b = last,
                2 => c = last,
                _ => d = last,
            }
        }
        let chains = [a, b, c, d];
        running.add_group::<T>(&join_chains::<S, K, T>(&chains));
        running
    }
}

/// `R` folds over elements `begin` to `end - 1`, at most a block of them, and `op` applied to each vector.
///
/// # Safety
/// The elements exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn block<S: Simd, const K: usize, const R: usize, T: Fold<S, K>, M: Map<S>>(
    begin: usize,
    end: usize,
    terms: &[T; R],
    op: &M,
) -> [Sums<K>; R] {
    // SAFETY: all elements are below `end`.
    unsafe {
        let mut running: [Running<S, K>; R] = zeroed();
        let mut i = begin;
        // Without unrolling, all groups are summed as the last one is.
        let groups_end = if S::UNROLLS { end - (end - begin) % GROUP } else { begin };
        while i < groups_end {
            unroll!(r in R, {
                terms[r].begin(i, GROUP);
            });
            let group = if T::LONG {
                let mut chains: [[Chain<S, K>; R]; CHAINS] = zeroed();
                for (c, sums) in chains.iter_mut().enumerate() {
                    *sums = chain::<S, K, R, T, M, true>(
                        i + c * CHAIN * LANES,
                        terms,
                        op,
                        &mut running,
                    );
                }
                let [c0, c1, c2, c3] = &chains;
                let low = join_all::<S, K, R, T>(c0, c1);
                join_all::<S, K, R, T>(&low, &join_all::<S, K, R, T>(c2, c3))
            } else {
                let c0 = chain::<S, K, R, T, M, true>(i, terms, op, &mut running);
                let c1 = chain::<S, K, R, T, M, true>(i + CHAIN * LANES, terms, op, &mut running);
                let low = join_all::<S, K, R, T>(&c0, &c1);
                let c2 =
                    chain::<S, K, R, T, M, true>(i + 2 * CHAIN * LANES, terms, op, &mut running);
                let c3 =
                    chain::<S, K, R, T, M, true>(i + 3 * CHAIN * LANES, terms, op, &mut running);
                join_all::<S, K, R, T>(&low, &join_all::<S, K, R, T>(&c2, &c3))
            };
            unroll!(r in R, {
                running[r].add_group::<T>(&group[r]);
            });
            i += GROUP;
        }
        while i < end {
            let len = if S::UNROLLS { end - i } else { GROUP.min(end - i) };
            unroll!(r in R, {
                running[r].add_partial(i, len, &terms[r]);
            });
            vectors::<S, M>(i, i + len, op);
            i += GROUP;
            if S::UNROLLS {
                break;
            }
        }
        let mut sums: [Sums<K>; R] = zeroed();
        unroll!(r in R, {
            unroll!(k in K, {
                sums[r].products[k] = S::wide_sum(running[r].products[k]);
            });
            if const { T::TERM.exists() } {
                sums[r].terms = S::wide_sum(running[r].terms);
            }
        });
        sums
    }
}

/// One chain of each of `R` folds: four vectors. `op` follows the folds vector by vector, or after the whole chain if
/// it is unrolled by as many vectors. If `ORDERED`, the folds that are faster in order are kept so.
///
/// # Safety
/// The four vectors from `i` on exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn chain<
    S: Simd,
    const K: usize,
    const R: usize,
    T: Fold<S, K>,
    M: Map<S>,
    const ORDERED: bool,
>(
    i: usize,
    terms: &[T; R],
    op: &M,
    running: &mut [Running<S, K>; R],
) -> [Chain<S, K>; R] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut chains: [Chain<S, K>; R] = zeroed();
        // A loop that the optimizer may leave: operations with post-operations are loops themselves.
        for v in 0..CHAIN {
            let at = i + v * LANES;
            unroll!(r in R, {
                let (terms, sum) = (terms[r].terms(at, Full), &mut running[r].terms);
                if v == 0 {
                    chains[r] = terms.start::<T>(sum);
                } else {
                    terms.add::<T>(&mut chains[r], sum);
                }
            });
            if const { M::UNROLL != CHAIN } {
                op.apply(at, Full);
            }
        }
        if const { ORDERED && T::IN_ORDER } {
            unroll!(r in R, {
                unroll!(k in K, {
                    chains[r].products[k] = S::in_order(chains[r].products[k]);
                });
            });
        }
        if const { M::UNROLL == CHAIN } {
            op.turn(i);
        }
        chains
    }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn join_all<S: Simd, const K: usize, const R: usize, T: Fold<S, K>>(
    a: &[Chain<S, K>; R],
    b: &[Chain<S, K>; R],
) -> [Chain<S, K>; R] {
    let mut sums = *a;
    unroll!(r in R, {
        // SAFETY: guaranteed by the caller.
        sums[r] = unsafe { a[r].join::<T>(&b[r]) };
    });
    sums
}

impl<S: Simd, const K: usize> Running<S, K> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn add_group<T: Fold<S, K>>(&mut self, group: &Chain<S, K>) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            unroll!(k in K, {
                self.products[k] = S::wide_add(self.products[k], S::widen(group.products[k]));
            });
            if const { T::TERM.is_f32() } {
                self.terms = S::wide_add(self.terms, S::widen(group.f32_term));
            }
        }
    }

    /// A group of at most [`GROUP`] elements.
    ///
    /// # Safety
    /// Elements `i` to `i + len - 1` exist, `len` is between 1 and `GROUP`,
    /// and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn add_partial<T: Fold<S, K>>(&mut self, i: usize, len: usize, terms: &T) {
        // SAFETY: guaranteed by the caller; the last vector may be partial.
        unsafe {
            terms.begin(i, len);
            let mut chains: [Chain<S, K>; CHAINS] = zeroed();
            let (mut c, mut at) = (0, i);
            // The number of iterations is not a constant, so the loop stays a loop: a kernel has several of them.
            while at < i + len {
                let end = (at + CHAIN * LANES).min(i + len);
                let mut chain = Chain::zero();
                partial_chain::<S, K, T>(at, end, terms, &mut chain, &mut self.terms);
                match c {
                    0 => chains[0] = chain,
                    1 => chains[1] = chain,
                    2 => chains[2] = chain,
                    _ => chains[3] = chain,
                }
                (c, at) = (c + 1, end);
            }
            self.add_group::<T>(&join_chains::<S, K, T>(&chains));
        }
    }
}

/// The chain of elements `begin` to `end - 1`, possibly none, and their f64 terms.
///
/// # Safety
/// They exist and are at most [`CHAIN`] vectors, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn partial_chain<S: Simd, const K: usize, T: Fold<S, K>>(
    begin: usize,
    end: usize,
    terms: &T,
    chain: &mut Chain<S, K>,
    wide: &mut S::F64x16,
) {
    let mut at = begin;
    // SAFETY: guaranteed by the caller; the last vector may be partial.
    unsafe {
        while at + LANES <= end {
            terms.terms(at, Full).add::<T>(chain, wide);
            at += LANES;
        }
        if at < end {
            let n = end - at;
            terms.terms(at, First(n)).first_n::<T>(n).add::<T>(chain, wide);
        }
    }
}

/// Chain `index` if it is below `chains`, or zeros.
///
/// # Safety
/// The elements of `chains` chains exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn whole_chain<S: Simd, const K: usize, T: Fold<S, K>>(
    index: usize,
    chains: usize,
    terms: &T,
    running: &mut [Running<S, K>; 1],
) -> Chain<S, K> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if index >= chains {
            return Chain::zero();
        }
        let terms = std::array::from_ref(terms);
        let [sums] =
            chain::<S, K, 1, T, Nothing, false>(index * CHAIN * LANES, terms, &Nothing, running);
        sums
    }
}

/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn join_chains<S: Simd, const K: usize, T: Fold<S, K>>(
    [a, b, c, d]: &[Chain<S, K>; CHAINS],
) -> Chain<S, K> {
    // SAFETY: guaranteed by the caller.
    unsafe { a.join::<T>(b).join::<T>(&c.join::<T>(d)) }
}

/// Applies `op` to every vector of `cols` elements.
///
/// # Safety
/// Elements 0 to `cols - 1` exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(crate) unsafe fn map<S: Simd, T: Map<S>>(cols: usize, op: &T) {
    let mut i = 0;
    // The ends are computed before the loops, which then need only one addition and one comparison.
    // SAFETY: all elements are below `cols`.
    unsafe {
        if const { S::UNROLLS && T::UNROLL > 1 } {
            let end = cols - cols % (T::UNROLL * LANES);
            while i < end {
                op.turn(i);
                i += T::UNROLL * LANES;
            }
        }
        if const { S::UNROLLS && T::PAIRS } && cols - i >= 2 * LANES {
            op.pair(i);
            i += 2 * LANES;
        }
        vectors::<S, T>(i, cols, op);
    }
}

/// Applies `op` to the elements from `i` to `end - 1`, vector by vector: a [`map`] with less code, for short rows.
///
/// # Safety
/// As [`map`].
#[inline(always)]
pub(crate) unsafe fn vectors<S: Simd, T: Map<S>>(mut i: usize, end: usize, op: &T) {
    // SAFETY: all elements are below `end`.
    unsafe {
        let whole = end - (end - i) % LANES;
        while i < whole {
            op.apply(i, Full);
            i += LANES;
        }
        if i < end {
            op.apply(i, First(end - i));
        }
    }
}

/// The [`Map`] that converts elements of a type to f32.
pub(crate) struct Widened<E> {
    pub(crate) element: E,
    pub(crate) from: *const u8,
    pub(crate) to: *mut f32,
}

impl<S: Simd, E: Element> Map<S> for Widened<E> {
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let values = width.load_as::<S, _>(self.element, self.from, i);
            width.store::<S>(self.to.add(i), values);
        }
    }
}
