//! The order of dot products, over vectors of 16 results.
//!
//! f32 and f16: one chain of fused multiply-adds from +0. bf16: for each 32 terms, one chain of the even terms and one
//! of the odd ones, each from +0; the two are added, and then added to the sum. x86 documents this order for its bf16
//! dot products on tiles, so tiles and fused multiply-adds give the same bits.

use super::ahead::Ahead;
use crate::simd::lanes::Lanes;
use crate::simd::{LANES, Simd, unroll, zeroed};
use std::hint::black_box;
use std::ops::Range;

/// The number of terms in a group of bf16.
pub(super) const GROUP: usize = 32;

/// Padding between rows of left operands, in floats, so that a column's elements are in different banks of a cache.
pub(super) const PAD: usize = 4;

/// Rows of left operands that use a panel while it is in the first-level cache: a multiple of the rows of every tile.
pub(super) const ROWS: usize = 24;

/// The left operand, with a number per row and term.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub(super) start: *const f32,
    /// The strides of rows and of terms.
    pub(super) row: usize,
    pub(super) term: usize,
}

/// The right operand, with vectors of 16 results, one vector per term.
#[derive(Clone, Copy)]
pub(super) struct Right {
    pub(super) start: *const f32,
    /// The strides of terms and of vectors of results.
    pub(super) term: usize,
    pub(super) panel: usize,
}

impl Left {
    #[inline(always)]
    pub(super) fn from(self, row: usize, term: usize) -> Self {
        Self { start: self.start.wrapping_add(row * self.row + term * self.term), ..self }
    }

    #[inline(always)]
    fn every_other(self) -> Self {
        Self { term: 2 * self.term, ..self }
    }
}

impl Right {
    pub(super) const NONE: Self = Self { start: std::ptr::null(), term: 0, panel: 0 };

    #[inline(always)]
    pub(super) fn from(self, panel: usize, term: usize) -> Self {
        Self { start: self.start.wrapping_add(panel * self.panel + term * self.term), ..self }
    }

    #[inline(always)]
    fn every_other(self) -> Self {
        Self { term: 2 * self.term, ..self }
    }
}

impl Right {
    /// Terms from `start` on, offset as if they began with term 0.
    pub(super) fn offset(self, start: usize) -> Self {
        Self { start: self.start.wrapping_sub(start * self.term), ..self }
    }

    /// Panels of keys that begin with key `start` of a block, offset as if they began with its first.
    pub(super) fn of_block(self, start: usize) -> Self {
        Self { start: self.start.wrapping_sub(start / LANES * self.panel), ..self }
    }
}

/// Terms of a right operand that are consecutive in memory.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Offset as if the run began with term 0.
    pub(super) right: Right,
    /// The index after its last term.
    pub(super) end: usize,
}

impl Run {
    /// All terms.
    pub(super) fn all(right: Right) -> Self {
        Self { right, end: usize::MAX }
    }
}

/// `R` rows of `C` vectors.
pub(super) type Tile<S, const R: usize, const C: usize> = [[<S as Simd>::F32x16; C]; R];

/// Continues the chains in `sums` with `count` terms of both operands.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn chain<S: Simd, const R: usize, const C: usize, A: Ahead>(
    mut sums: Tile<S, R, C>,
    left: Left,
    right: Right,
    count: usize,
    ahead: &mut A,
) -> Tile<S, R, C> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (mut a, mut b) = (left, right);
        for _ in 0..count {
            ahead.fetch::<S>();
            add_term::<S, R, C>(&mut sums, a, b);
            (a, b) = (a.from(0, 1), b.from(0, 1));
        }
        sums
    }
}

/// The sums of the even and of the odd terms among `count` terms from `first`. Computed side by side, they give the
/// multipliers enough independent sums with half the rows.
///
/// # Safety
/// As [`chain`].
#[inline(always)]
unsafe fn chains<S: Simd, const R: usize, const C: usize, A: Ahead>(
    left: Left,
    right: Right,
    (first, count): (usize, usize),
    ahead: &mut A,
) -> [Tile<S, R, C>; 2] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut even = zeroed();
        let mut odd = even;
        let (mut a, mut b) = (left.from(0, first), right.from(0, first));
        for _ in 0..count / 2 {
            ahead.fetch::<S>();
            ahead.fetch::<S>();
            add_term::<S, R, C>(&mut even, a, b);
            add_term::<S, R, C>(&mut odd, a.from(0, 1), b.from(0, 1));
            (a, b) = (a.from(0, 2), b.from(0, 2));
        }
        if count % 2 == 1 {
            add_term::<S, R, C>(&mut even, a, b);
        }
        [even, odd]
    }
}

/// [`product`] for bf16, with all registers used for one chain at a time. In each group the even terms come first.
/// Their sums and those of the groups are kept in memory. So each load of a term of the right operand serves more rows.
///
/// # Safety
/// As [`chain`].
#[inline(always)]
unsafe fn product_in_turns<S: Simd, const R: usize, const C: usize, A: Ahead>(
    left: Left,
    right: Right,
    count: usize,
    ahead: &mut A,
) -> Tile<S, R, C> {
    let mut room = [[[[0.0f32; LANES]; C]; R]; 2];
    // Otherwise the compiler would keep some of these sums in registers and spill those of the chain.
    let room = black_box(&raw mut room).cast::<f32>();
    let place = |of, r, c| room.wrapping_add(((of * R + r) * C + c) * LANES);
    let (evens, sums) = (0, 1);
    // SAFETY: guaranteed by the caller; the room has two tiles.
    unsafe {
        // A single loop; for it, the compiler finds enough registers.
        for turn in 0..2 * count.div_ceil(GROUP) {
            let (first, is_odd) = (turn / 2 * GROUP, turn % 2);
            let terms = (GROUP.min(count - first) + 1 - is_odd) / 2;
            let (a, b) = (left.from(0, first + is_odd), right.from(0, first + is_odd));
            let (a, b, none) = (a.every_other(), b.every_other(), zeroed());
            let chain = chain::<S, R, C, A>(none, a, b, terms, ahead);
            if is_odd == 0 {
                unroll!(to 8: r in R, {
                    unroll!(c in C, {
                        S::store(place(evens, r, c), chain[r][c]);
                    });
                });
                continue;
            }
            unroll!(to 8: r in R, {
                unroll!(c in C, {
                    let both = S::add(S::load(place(evens, r, c)), chain[r][c]);
                    S::store(place(sums, r, c), S::add(S::load(place(sums, r, c)), both));
                });
            });
        }
        let mut tile: [[S::F32x16; C]; R] = zeroed();
        unroll!(to 8: r in R, {
            unroll!(c in C, {
                tile[r][c] = S::load(place(sums, r, c));
            });
        });
        tile
    }
}

/// # Safety
/// As [`chain`], for the first term of both.
#[inline(always)]
unsafe fn add_term<S: Simd, const R: usize, const C: usize>(
    sums: &mut Tile<S, R, C>,
    left: Left,
    right: Right,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut vectors = S::zeros::<C>();
        unroll!(c in C, {
            vectors[c] = S::load(right.start.wrapping_add(c * right.panel));
        });
        unroll!(to 8: r in R, {
            let x = S::splat(*left.start.wrapping_add(r * left.row));
            unroll!(c in C, {
                sums[r][c] = S::fma(x, vectors[c], sums[r][c]);
            });
        });
    }
}

/// Dot products of `count` terms, in the order of bf16 or of f32.
///
/// # Safety
/// As [`chain`].
#[inline(always)]
pub(super) unsafe fn product<
    S: Simd,
    const BF16: bool,
    const R: usize,
    const C: usize,
    A: Ahead,
>(
    left: Left,
    right: Right,
    count: usize,
    ahead: &mut A,
) -> Tile<S, R, C> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !BF16 {
            return chain::<S, R, C, A>(zeroed(), left, right, count, ahead);
        }
        if const { R > 3 && !S::MANY_REGISTERS } {
            return product_in_turns::<S, R, C, A>(left, right, count, ahead);
        }
        let mut sums: [[S::F32x16; C]; R] = zeroed();
        let mut first = 0;
        while first < count {
            let terms = GROUP.min(count - first);
            let [even, odd] = chains::<S, R, C, A>(left, right, (first, terms), ahead);
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

/// [`product`] of the left operand and some terms of the right one, for the vectors from `panel` on. In bf16, the right
/// operand is a single run.
///
/// # Safety
/// As [`chain`], and the runs have all of the terms.
#[inline(always)]
pub(super) unsafe fn product_of_runs<
    S: Simd,
    const BF16: bool,
    const R: usize,
    const C: usize,
    A: Ahead,
>(
    left: Left,
    (runs, panel): (&[Run], usize),
    terms: Range<usize>,
    ahead: &mut A,
) -> Tile<S, R, C> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if BF16 {
            let right = runs.get_unchecked(0).right.from(panel, terms.start);
            return product::<S, BF16, R, C, A>(left, right, terms.len(), ahead);
        }
        let (mut sums, mut left, mut term) = (zeroed(), left, terms.start);
        for run in runs {
            let count = run.end.min(terms.end).saturating_sub(term);
            let right = run.right.from(panel, term);
            sums = chain::<S, R, C, A>(sums, left, right, count, ahead);
            (left, term) = (left.from(0, count), term + count);
        }
        sums
    }
}

/// The number of rows of a tile: as many as the registers allow or, with `FEW` rows, as the multipliers need.
pub(super) const fn rows_at_once<S: Simd, const BF16: bool, const FEW: bool>() -> usize {
    match (S::UNROLLS, FEW, S::MANY_REGISTERS, BF16) {
        (false, ..) => 1,
        (true, true, ..) => 4,
        (true, false, false, true) => 3,
        (true, false, false, false) => 6,
        (true, false, true, true) => 4,
        (true, false, true, false) => 8,
    }
}

/// Runs `$body` over all of `$count` rows, with a constant number `$R` of them at a time, as many as possible.
macro_rules! by_rows {
    ($S:ident, $BF16:ident, $FEW:tt, $count:expr, |$at:ident, $R:ident| $body:expr) => {{
        let (mut $at, count) = (0, $count);
        $crate::ops::sdpa::order::by_rows!(@ 8, $S, $BF16, $FEW, count, |$at, $R| $body);
        $crate::ops::sdpa::order::by_rows!(@ 6, $S, $BF16, $FEW, count, |$at, $R| $body);
        $crate::ops::sdpa::order::by_rows!(@ 4, $S, $BF16, $FEW, count, |$at, $R| $body);
        $crate::ops::sdpa::order::by_rows!(@ 3, $S, $BF16, $FEW, count, |$at, $R| $body);
        $crate::ops::sdpa::order::by_rows!(@ 2, $S, $BF16, $FEW, count, |$at, $R| $body);
        while $at < count {
            const $R: usize = 1;
            $body;
            $at += 1;
        }
    }};
    (@ $rows:literal, $S:ident, $BF16:ident, $FEW:tt, $count:ident, |$at:ident, $R:ident| $body:expr) => {
        if const {
            let most = $crate::ops::sdpa::order::rows_at_once::<$S, $BF16, $FEW>();
            $rows == most || $rows == 4 && most > 4 || $rows == 2 && most > 2 && $FEW
        } {
            while $at + $rows <= $count {
                const $R: usize = $rows;
                $body;
                $at += $R;
            }
        }
    };
}
pub(super) use by_rows;

/// Runs `$body` for the vectors in `$range`, two at a time if there are enough registers.
macro_rules! by_vectors {
    ($S:ident, $range:expr, |$at:ident, $C:ident| $body:expr) => {{
        let range = $range;
        let mut $at = range.start;
        if $S::MANY_REGISTERS {
            while $at + 2 <= range.end {
                const $C: usize = 2;
                $body;
                $at += $C;
            }
        }
        while $at < range.end {
            const $C: usize = 1;
            $body;
            $at += $C;
        }
    }};
}
pub(super) use by_vectors;

/// Whether no value of a tile is NaN or infinite.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn is_finite<S: Simd, const R: usize, const C: usize>(
    tile: &Tile<S, R, C>,
) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sum = S::zero();
        unroll!(to 8: r in R, {
            unroll!(c in C, {
                sum = S::fma(tile[r][c], S::zero(), sum);
            });
        });
        let sum = Lanes::<S>::new(sum);
        sum.eq(0.0).select(0.0, sum.all(1.0)).largest() == 0.0
    }
}

/// [`product_of_runs`] of a row and a vector of results, without the terms whose left factor is 0, whatever the right
/// one is.
///
/// # Safety
/// As [`product_of_runs`].
#[inline(always)]
pub(super) unsafe fn careful_product<S: Simd, const BF16: bool>(
    left: Left,
    (runs, panel): (&[Run], usize),
    terms: Range<usize>,
) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let count = terms.len();
        let chain = |first: usize, end: usize, every: usize| {
            let mut sum = S::zero();
            let mut term = first;
            while term < end {
                let x = *left.from(0, term).start;
                if x != 0.0 {
                    let right = terms.start + term;
                    let of = runs.iter().find(|run| right < run.end).unwrap_unchecked();
                    let vector = S::load(of.right.from(panel, right).start);
                    sum = S::fma(S::splat(x), vector, sum);
                }
                term += every;
            }
            sum
        };
        if !BF16 {
            return chain(0, count, 1);
        }
        let mut sum = S::zero();
        let mut first = 0;
        while first < count {
            let end = count.min(first + GROUP);
            sum = S::add(sum, S::add(chain(first, end, 2), chain(first + 1, end, 2)));
            first += GROUP;
        }
        sum
    }
}

/// The same order in scalar code, for the terms that `get` returns. `CAREFUL` omits terms whose left factor is 0.
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
