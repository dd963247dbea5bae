//! The formula over dense rows of one type: three sweeps forward, two backward.
//!
//! ```text
//! forward            max = max(x)
//!   accurate         dst = exp(x - max);  sum = fold(dst);  dst = dst * (1/sum)
//!   inf as zero      likewise, with max = 0 for a row of -inf, and 0 for 1/0
//!   log              sum = fold(exp(x - max));              dst = (x - max) - log(sum)
//!   stats            max + log(sum)
//! backward accurate  sum = fold(diff_dst*dst);         diff_src = dst * (diff_dst - sum)
//!   log              sum = fold(diff_dst);             diff_src = diff_dst - exp(dst)*sum
//! ```

use super::problem::SoftmaxAlgorithm;
use crate::rows::{RowTensor, TENSORS};
use crate::simd::lanes::Lanes;
use crate::simd::{
    Bf16, Element, F16, F32, First, Fold, Full, GROUP, LANES, Level, Map, Simd, Terms, Width,
    entry_points, fold, fold_beside, map, math, unroll,
};
use crate::tensor::DataType;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// The arguments of a kernel.
pub(super) struct Job<'a> {
    pub(super) cols: usize,
    pub(super) forward: bool,
    pub(super) algorithm: SoftmaxAlgorithm,
    /// src and dst, or dst, diff_dst and diff_src, of the kernel's type.
    pub(super) tensors: &'a [RowTensor; TENSORS],
    /// Forward: the logarithm of each row's sum.
    pub(super) stats: Option<RowTensor>,
    /// Forward: room for a row of f32, or null if dst can keep the exponentials.
    pub(super) room: *mut f32,
    /// Whether the output is stored non-temporally, if its alignment allows that, and rows to come are prefetched.
    pub(super) streams: bool,
}

impl Job<'_> {
    #[inline(always)]
    fn row<E: Element>(&self, element: E, tensor: usize, row: usize) -> Row<E> {
        let tensor = &self.tensors[tensor];
        let start = tensor.address.wrapping_add(tensor.rows.offset(row) * element.size());
        Row { element, start, streams: self.streams && element.streams(start) }
    }

    /// Rows to prefetch, if rows are stored non-temporally.
    #[inline(always)]
    fn later<E: Element, const N: usize>(&self, element: E, row: usize) -> Option<[*const u8; N]> {
        if !self.streams {
            return None;
        }
        let mut later = [std::ptr::null(); N];
        unroll!(tensor in N, {
            later[tensor] = self.row(element, tensor, row).start.cast_const();
        });
        Some(later)
    }
}

/// Prefetches [`TURN`] vectors of a row.
///
/// # Safety
/// The CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn prefetch<S: Simd, E: Element>(element: E, row: *const u8, i: usize) {
    const LINE: usize = 64;
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
struct Row<E> {
    element: E,
    start: *mut u8,
    /// Whether it may be stored non-temporally.
    streams: bool,
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
unsafe fn largest<S: Simd, E: Element>(row: &Row<E>, cols: usize) -> f32 {
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
struct Largest<S: Simd, E> {
    row: Row<E>,
    largest: Cell<Lanes<S>>,
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
struct Forward<E, const LOG: bool> {
    src: Row<E>,
    dst: Row<E>,
    /// Room for the exponentials of a row, or of a group with `LOG`.
    kept: *mut f32,
    max: f32,
    factor: f32,
    /// The row of src after the next one, if rows come from memory.
    later: Option<[*const u8; 1]>,
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
struct Backward<E, const LOG: bool> {
    dst: Row<E>,
    diff_dst: Row<E>,
    diff_src: Row<E>,
    sum: f32,
    /// The next rows of dst and diff_dst, if rows come from memory.
    later: Option<[*const u8; 2]>,
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
                    let mut values = [S::zero(); TURN];
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

/// `1/sum`; 0 for a row of zeros.
#[inline(always)]
pub(super) fn reciprocal(sum: f64) -> f32 {
    if sum == 0.0 { 0.0 } else { (1.0 / sum) as f32 }
}

/// Computes a row whose maximum is known. Returns the maximum of the next row, computed while this one is summed; the
/// `last` row repeats itself.
///
/// # Safety
/// The rows exist in the type of `E`, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_row<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (row, last): (usize, usize),
    largest: f32,
) -> f32 {
    let (src, dst) = (job.row(element, 0, row), job.row(element, 1, row));
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Before the sweeps, which may overwrite the row.
        let infinite = match job.stats {
            Some(_) if largest.is_infinite() => {
                Some(stats_of_infinite::<S, E>(&src, job.cols, largest))
            }
            _ => None,
        };
        let max = job.algorithm.distance_from(largest);
        let mut group = [const { MaybeUninit::<f32>::uninit() }; GROUP];
        let kept = match () {
            () if LOG => group.as_mut_ptr().cast(),
            () if job.room.is_null() => dst.start.cast(),
            () => job.room,
        };
        let later = job.later(element, (row + 2).min(last));
        let mut forward = Forward::<E, LOG> { src, dst, kept, max, factor: 0.0, later };
        let next = Largest::<S, E> {
            row: job.row(element, 0, (row + 1).min(last)),
            largest: Cell::new(Lanes::new(S::splat(f32::NEG_INFINITY))),
        };
        let sum = fold_beside::<S, 1, _, _>(job.cols, &forward, &next).products[0];
        // All lanes of the logarithm are equal.
        let mut log = 0.0;
        if LOG || job.stats.is_some() {
            log = math::log(Lanes::<S>::new(S::splat(sum as f32))).largest();
        }
        forward.factor = if LOG { log } else { reciprocal(sum) };
        map::<S, _>(job.cols, &forward);
        if let Some(stats) = &job.stats {
            let value = infinite.unwrap_or(max + log);
            let place = stats.address.cast::<f32>().wrapping_add(stats.rows.offset(row));
            // The maximum and the logarithm may lose NaN.
            place.write_unaligned(if sum.is_nan() && infinite.is_none() {
                f32::NAN
            } else {
                value
            });
        }
        next.largest.get().largest()
    }
}

/// # Safety
/// As [`forward_row`], for rows `first` to `last - 1`, at least one.
#[inline(always)]
unsafe fn forward_rows<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (first, last): (usize, usize),
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut max = largest::<S, E>(&job.row(element, 0, first), job.cols);
        for row in first..last {
            max = forward_row::<S, E, LOG>(job, element, (row, last - 1), max);
        }
    }
}

/// The logarithm of the sum of a row with an infinite maximum; NaN if the row has NaN.
///
/// # Safety
/// As [`largest`].
#[inline(always)]
unsafe fn stats_of_infinite<S: Simd, E: Element>(row: &Row<E>, cols: usize, largest: f32) -> f32 {
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

/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn backward_rows<S: Simd, E: Element, const LOG: bool>(
    job: &Job<'_>,
    element: E,
    (first, last): (usize, usize),
) {
    for row in first..last {
        let mut row = Backward::<E, LOG> {
            dst: job.row(element, 0, row),
            diff_dst: job.row(element, 1, row),
            diff_src: job.row(element, 2, row),
            sum: 0.0,
            later: job.later(element, (row + 1).min(last - 1)),
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            row.sum = fold::<S, 1, _>(job.cols, &row).products[0] as f32;
            map::<S, _>(job.cols, &row);
        }
    }
}

/// Computes rows `first` to `last - 1`.
///
/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn rows<S: Simd, E: Element>(job: &Job<'_>, first: usize, last: usize) {
    let (element, range) = (E::of(job.tensors[0].data_type), (first, last));
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (job.forward, job.algorithm) {
            (true, SoftmaxAlgorithm::Log) => forward_rows::<S, E, true>(job, element, range),
            (true, _) => forward_rows::<S, E, false>(job, element, range),
            (false, SoftmaxAlgorithm::Log) => backward_rows::<S, E, true>(job, element, range),
            (false, _) => backward_rows::<S, E, false>(job, element, range),
        }
    }
}

entry_points! {
    /// Rows, per level.
    mod entries: rows<E: Element>(job: &Job<'_>, first: usize, last: usize) -> ();
}

pub(super) type Entry = unsafe fn(&Job<'_>, usize, usize);

/// The kernel for rows of f32.
pub(super) fn entry(level: Level) -> Entry {
    entries::at::<F32>(level).unwrap_or(entries::portable::entry_portable::<F32>)
}

/// The kernel for rows of a 16-bit type; `None` if its rows must be converted to f32.
pub(super) fn half_entry(level: Level, data_type: DataType) -> Option<Entry> {
    match data_type {
        DataType::Bf16 => entries::at::<Bf16>(level),
        DataType::F16 => entries::at::<F16>(level),
        _ => None,
    }
}
