//! The sweeps over a row: its maximum, the sum of products, and the output.

use crate::heap::LINE;
use crate::simd::lanes::Lanes;
use crate::simd::{
    Element, First, Fold, Full, GROUP, LANES, Map, Simd, Terms, Width, math, unroll,
};
use std::cell::Cell;

/// Prefetches [`TURN`] vectors of a row.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn prefetch<S: Simd, E: Element>(element: E, row: *const u8, i: usize) {
    let size = element.size();
    let mut line = 0;
    while line < TURN * LANES * size {
        // SAFETY: guaranteed by the caller.
        unsafe { S::prefetch(row.wrapping_add(i * size + line)) }
        line += LINE;
    }
}

/// A row of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Row<E> {
    pub(super) element: E,
    pub(super) start: *mut u8,
    /// Whether it may be stored non-temporally.
    pub(super) streams: bool,
}

// SAFETY of the blocks below: guaranteed by the callers.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element> Row<E> {
    /// # Safety
    /// The elements of a vector of this width exist from `i` on, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn load<S: Simd, W: Width>(&self, i: usize, width: W) -> Lanes<S> {
        unsafe { Lanes::new(width.load_as::<S, E>(self.element, self.start, i)) }
    }

    /// [`load`](Self::load), with another value in the lanes that do not exist.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_or<S: Simd, W: Width>(&self, i: usize, width: W, other: f32) -> Lanes<S> {
        let n = width.n();
        unsafe {
            let values = self.load::<S, W>(i, width);
            if n == LANES {
                return values;
            }
            let there = Lanes::<S>::new(S::first_n(S::splat(1.0), n)).eq(1.0);
            there.select(values, values.all(other))
        }
    }

    /// Stores `N` whole vectors, non-temporally if that is allowed.
    ///
    /// # Safety
    /// As [`load`](Self::load), and no other thread accesses them.
    #[inline(always)]
    unsafe fn stream_all<S: Simd, const N: usize>(&self, i: usize, values: &[S::F32x16; N]) {
        unsafe {
            if self.streams {
                self.element.stream_all::<S, N>(self.start, i, values);
            } else {
                self.element.store_all::<S, N>(self.start, i, values);
            }
        }
    }
}

/// Independent maxima in the long loop.
const CHAINS: usize = 4;

/// The largest of `cols` elements; ignores NaN.
///
/// # Safety
/// There is at least one, and the CPU supports the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn largest<S: Simd, E: Element>(row: &Row<E>, cols: usize) -> f32 {
    // SAFETY: guaranteed by the caller; the last vector overlaps the previous one.
    unsafe {
        if cols < LANES {
            return row.load_or::<S, _>(0, First(cols), f32::NEG_INFINITY).largest();
        }
        let mut largest = [Lanes::<S>::new(S::splat(f32::NEG_INFINITY)); CHAINS];
        let mut i = 0;
        while i + CHAINS * LANES <= cols {
            unroll!(k in CHAINS, {
                largest[k] = row.load(i + k * LANES, Full).max(largest[k]);
            });
            i += CHAINS * LANES;
        }
        let [mut a, b, c, d] = largest;
        while i + LANES <= cols {
            a = row.load(i, Full).max(a);
            i += LANES;
        }
        a = row.load(cols - LANES, Full).max(a);
        a.max(b).max(c.max(d)).largest()
    }
}

/// The maximum of a row, computed vector by vector.
pub(super) struct Largest<S: Simd, E> {
    pub(super) row: Row<E>,
    pub(super) largest: Cell<Lanes<S>>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element> Map<S> for Largest<S, E> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let values = unsafe { self.row.load_or::<S, W>(i, width, f32::NEG_INFINITY) };
        self.largest.set(values.max(self.largest.get()));
    }
}

/// A row forward. With `LOG`, the factor is the logarithm of the sum, else its reciprocal.
///
/// The exponentials of a group are all computed before they are summed. In a single loop, each addition would wait for
/// a long chain of dependent instructions, and fewer vectors would fit the processor's out-of-order window.
pub(super) struct Forward<E, const LOG: bool> {
    pub(super) src: Row<E>,
    pub(super) dst: Row<E>,
    /// Room for the exponentials of a row, or of a group with `LOG`.
    pub(super) kept: *mut f32,
    pub(super) max: f32,
    pub(super) factor: f32,
    /// The row of src after the next one, if rows come from memory.
    pub(super) later: Option<[*const u8; 1]>,
}

// SAFETY of the blocks below: guaranteed by the callers.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element, const LOG: bool> Forward<E, LOG> {
    /// Where the exponential of an element is kept.
    #[inline(always)]
    fn place(&self, i: usize) -> *mut f32 {
        self.kept.wrapping_add(if LOG { i % GROUP } else { i })
    }

    /// Keeps the exponentials of a vector, in the scaled form of [`math::raised_exp`]. The sum and the product with the
    /// factor undo the scaling.
    ///
    /// # Safety
    /// As [`Map::apply`].
    #[inline(always)]
    unsafe fn keep<S: Simd, W: Width>(&self, i: usize, width: W) {
        unsafe {
            let distance = self.src.load::<S, W>(i, width) - self.max;
            width.store::<S>(self.place(i), math::raised_exp(distance).vector());
        }
    }

    #[inline(always)]
    unsafe fn kept<S: Simd, W: Width>(&self, i: usize, width: W) -> Lanes<S> {
        unsafe { math::lowered(Lanes::new(width.load::<S>(self.place(i)))) }
    }

    #[inline(always)]
    unsafe fn begin<S: Simd>(&self, mut i: usize, n: usize) {
        let end = i + n;
        unsafe {
            while i + LANES <= end {
                self.keep::<S, _>(i, Full);
                i += LANES;
            }
            if i < end {
                self.keep::<S, _>(i, First(end - i));
            }
        }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd, W: Width>(&self, i: usize, width: W) -> [Lanes<S>; 2] {
        let value = unsafe { self.kept::<S, W>(i, width) };
        [value, value.all(1.0)]
    }

    #[inline(always)]
    unsafe fn value<S: Simd, W: Width>(&self, i: usize, width: W) -> Lanes<S> {
        unsafe {
            if LOG {
                self.src.load::<S, W>(i, width) - self.max - self.factor
            } else {
                self.kept::<S, W>(i, width) * self.factor
            }
        }
    }

    #[inline(always)]
    fn output(&self) -> &Row<E> {
        &self.dst
    }
}

/// A row backward.
pub(super) struct Backward<E, const LOG: bool> {
    pub(super) dst: Row<E>,
    pub(super) diff_dst: Row<E>,
    pub(super) diff_src: Row<E>,
    pub(super) sum: f32,
    /// The next rows of dst and diff_dst, if rows come from memory.
    pub(super) later: Option<[*const u8; 2]>,
}

// SAFETY of the blocks below: guaranteed by the callers.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<E: Element, const LOG: bool> Backward<E, LOG> {
    #[inline(always)]
    unsafe fn begin<S: Simd>(&self, _i: usize, _n: usize) {}

    #[inline(always)]
    unsafe fn factors<S: Simd, W: Width>(&self, i: usize, width: W) -> [Lanes<S>; 2] {
        unsafe {
            let diff_dst = self.diff_dst.load::<S, W>(i, width);
            [diff_dst, if LOG { diff_dst.all(1.0) } else { self.dst.load::<S, W>(i, width) }]
        }
    }

    #[inline(always)]
    unsafe fn value<S: Simd, W: Width>(&self, i: usize, width: W) -> Lanes<S> {
        unsafe {
            let dst = self.dst.load::<S, W>(i, width);
            let diff_dst = self.diff_dst.load::<S, W>(i, width);
            if LOG {
                math::exp(dst).neg_mul_add(self.sum, diff_dst)
            } else {
                dst * (diff_dst - self.sum)
            }
        }
    }

    #[inline(always)]
    fn output(&self) -> &Row<E> {
        &self.diff_src
    }
}

/// Vectors of an iteration of the last sweep.
const TURN: usize = 2;

/// The sweeps over a row: the sum of products of its `factors`, and its `value`s.
macro_rules! sweeps {
    ($($row:ident)*) => {$(
        // SAFETY of the blocks below: the traits' contracts, passed through.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl<S: Simd, E: Element, const LOG: bool> Fold<S, 1> for $row<E, LOG> {
            const LONG: bool = true;

            #[inline(always)]
            unsafe fn begin(&self, i: usize, n: usize) {
                unsafe { self.begin::<S>(i, n) }
            }
            #[inline(always)]
            unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
                unsafe {
                    let [a, b] = self.factors::<S, W>(i, width);
                    Terms::products([(a.vector(), b.vector())])
                }
            }
        }
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl<S: Simd, E: Element, const LOG: bool> Map<S> for $row<E, LOG> {
            const UNROLL: usize = TURN;

            #[inline(always)]
            unsafe fn turn(&self, i: usize) {
                unsafe {
                    let mut values = S::zeros::<TURN>();
                    unroll!(v in TURN, {
                        values[v] = self.value::<S, _>(i + v * LANES, Full).vector();
                    });
                    let &Row { element, start, .. } = self.output();
                    match self.later {
                        None => element.store_all::<S, TURN>(start, i, &values),
                        Some(rows) => {
                            for row in rows {
                                prefetch::<S, E>(element, row, i);
                            }
                            self.output().stream_all::<S, TURN>(i, &values);
                        }
                    }
                }
            }
            #[inline(always)]
            unsafe fn apply<W: Width>(&self, i: usize, width: W) {
                let &Row { element, start, .. } = self.output();
                unsafe {
                    let value = self.value::<S, W>(i, width);
                    width.store_as::<S, E>(element, start, i, value.vector());
                }
            }
        }
    )*};
}
sweeps! { Forward Backward }

/// The logarithm of the sum of a row with an infinite maximum; NaN if the row has NaN.
///
/// # Safety
/// As [`largest`].
#[inline(always)]
pub(super) unsafe fn stats_of_infinite<S: Simd, E: Element>(
    row: &Row<E>,
    cols: usize,
    largest: f32,
) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut nans = Lanes::<S>::new(S::zero());
        let mut i = 0;
        while i < cols {
            let x = match cols - i {
                n @ 0..LANES => row.load_or::<S, _>(i, First(n), 0.0),
                _ => row.load(i, Full),
            };
            nans = x.eq(x).select(nans, f32::NAN);
            i += LANES;
        }
        if nans.total().is_nan() { f32::NAN } else { largest }
    }
}
