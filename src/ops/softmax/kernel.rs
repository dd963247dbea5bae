//! The formula over dense rows of f32: three sweeps forward, two backward.
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
    Fold, GROUP, LANES, Level, Map, Simd, Terms, Width, entry_points, fold, fold_beside, map, math,
    unroll,
};
use std::cell::Cell;
use std::mem::MaybeUninit;

/// The arguments of a kernel.
pub(super) struct Job<'a> {
    pub(super) cols: usize,
    pub(super) forward: bool,
    pub(super) algorithm: SoftmaxAlgorithm,
    /// src and dst, or dst, diff_dst and diff_src, in f32.
    pub(super) tensors: &'a [RowTensor; TENSORS],
    /// Forward: the logarithm of each row's sum.
    pub(super) stats: Option<RowTensor>,
    /// Whether a row's maximum is computed while the row before it is summed.
    pub(super) ahead: bool,
}

impl Job<'_> {
    #[inline(always)]
    fn row(&self, tensor: usize, row: usize) -> *mut f32 {
        let tensor = &self.tensors[tensor];
        tensor.address.cast::<f32>().wrapping_add(tensor.rows.offset(row))
    }
}

/// Independent maxima in the long loop.
const CHAINS: usize = 4;

/// The largest of `cols` elements; ignores NaN.
///
/// # Safety
/// There is at least one, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn largest<S: Simd>(row: *const f32, cols: usize) -> f32 {
    // SAFETY: guaranteed by the caller; the last vector overlaps the previous one.
    unsafe {
        let lowest = Lanes::<S>::new(S::splat(f32::NEG_INFINITY));
        if cols < LANES {
            let there = Lanes::<S>::new(S::first_n(S::splat(1.0), cols)).eq(1.0);
            return there.select(Lanes::load(row, cols), lowest).largest();
        }
        let mut largest = [lowest; CHAINS];
        let mut i = 0;
        while i + CHAINS * LANES <= cols {
            unroll!(k in CHAINS, {
                largest[k] = Lanes::load(row.add(i + k * LANES), LANES).max(largest[k]);
            });
            i += CHAINS * LANES;
        }
        let [mut a, b, c, d] = largest;
        while i + LANES <= cols {
            a = Lanes::load(row.add(i), LANES).max(a);
            i += LANES;
        }
        a = Lanes::load(row.add(cols - LANES), LANES).max(a);
        a.max(b).max(c.max(d)).largest()
    }
}

/// The maximum of a row, computed vector by vector.
struct Largest<S: Simd> {
    row: *const f32,
    largest: Cell<Lanes<S>>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> Map<S> for Largest<S> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        let n = width.n();
        unsafe {
            let mut values = Lanes::load(self.row.add(i), n);
            if n < LANES {
                let there = Lanes::<S>::new(S::first_n(S::splat(1.0), n)).eq(1.0);
                values = there.select(values, self.largest.get().all(f32::NEG_INFINITY));
            }
            self.largest.set(values.max(self.largest.get()));
        }
    }
}

/// A row forward. With `LOG`, the factor is the logarithm of the sum, else its reciprocal.
///
/// The exponentials of a group are all computed before they are summed. In a single loop, each addition would wait for
/// a long chain of dependent instructions, and fewer vectors would fit the processor's out-of-order window.
struct Forward<const LOG: bool> {
    src: *const f32,
    dst: *mut f32,
    /// Room for a group with `LOG`; otherwise the exponentials are kept in dst.
    kept: *mut f32,
    max: f32,
    factor: f32,
}

impl<const LOG: bool> Forward<LOG> {
    /// Where the exponential of an element is kept.
    #[inline(always)]
    fn place(&self, i: usize) -> *mut f32 {
        if LOG { self.kept.wrapping_add(i % GROUP) } else { self.dst.wrapping_add(i) }
    }

    /// Keeps the exponentials of `n` elements, at most a vector, in the scaled form of [`math::raised_exp`]. The sum
    /// and the product with the factor undo the scaling.
    ///
    /// # Safety
    /// The elements exist, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn keep<S: Simd>(&self, i: usize, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let distance = Lanes::<S>::load(self.src.add(i), n) - self.max;
            math::raised_exp(distance).store(self.place(i), n);
        }
    }
}

/// A row backward.
struct Backward<const LOG: bool> {
    dst: *const f32,
    diff_dst: *const f32,
    diff_src: *mut f32,
    sum: f32,
}

/// Implements `Fold` and `Map` for a row.
macro_rules! sweeps {
    ($row:ident,
     { $($more:tt)* }
     |$self:ident, $i:ident, $n:ident| $factors:expr, $value:expr) => {
        // SAFETY of the blocks below: the traits' contracts, passed through.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl<S: Simd, const LOG: bool> Fold<S, 1> for $row<LOG> {
            const LONG: bool = true;
            $($more)*

            #[inline(always)]
            unsafe fn terms<W: Width>(&$self, $i: usize, width: W) -> Terms<S, 1> {
                let $n = width.n();
                unsafe {
                    let (a, b): (Lanes<S>, Lanes<S>) = $factors;
                    Terms::products([(a.vector(), b.vector())])
                }
            }
        }
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl<S: Simd, const LOG: bool> Map<S> for $row<LOG> {
            const UNROLL: usize = 2;

            #[inline(always)]
            unsafe fn apply<W: Width>(&$self, $i: usize, width: W) {
                let $n = width.n();
                unsafe {
                    let (value, to): (Lanes<S>, *mut f32) = $value;
                    value.store(to.add($i), $n);
                }
            }
        }
    };
}

sweeps! { Forward,
    {
        #[inline(always)]
        unsafe fn begin(&self, mut i: usize, n: usize) {
            let end = i + n;
            unsafe {
                while i + LANES <= end {
                    self.keep::<S>(i, LANES);
                    i += LANES;
                }
                if i < end {
                    self.keep::<S>(i, end - i);
                }
            }
        }
    }
    |self, i, n|
    {
        let value = math::lowered(Lanes::load(self.place(i), n));
        (value, value.all(1.0))
    },
    if LOG {
        (Lanes::load(self.src.add(i), n) - self.max - self.factor, self.dst)
    } else {
        (math::lowered(Lanes::load(self.dst.add(i), n)) * self.factor, self.dst)
    }
}

sweeps! { Backward,
    {}
    |self, i, n|
    {
        let diff_dst = Lanes::load(self.diff_dst.add(i), n);
        (diff_dst, if LOG { diff_dst.all(1.0) } else { Lanes::load(self.dst.add(i), n) })
    },
    {
        let (dst, diff_dst) = (Lanes::load(self.dst.add(i), n), Lanes::load(self.diff_dst.add(i), n));
        let value = if LOG {
            math::exp(dst).neg_mul_add(self.sum, diff_dst)
        } else {
            dst * (diff_dst - self.sum)
        };
        (value, self.diff_src)
    }
}

/// `1/sum`; 0 for a row of zeros.
#[inline(always)]
pub(super) fn reciprocal(sum: f64) -> f32 {
    if sum == 0.0 { 0.0 } else { (1.0 / sum) as f32 }
}

/// Computes a row. With `AHEAD`, returns the maximum of the `next` row, computed while this one is summed.
///
/// # Safety
/// The rows exist in f32, no other thread writes them, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn forward_row<S: Simd, const LOG: bool, const AHEAD: bool>(
    job: &Job<'_>,
    row: usize,
    largest: f32,
    next: *const f32,
) -> f32 {
    let (src, dst) = (job.row(0, row), job.row(1, row));
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Before the sweeps, which may overwrite the row.
        let infinite = match job.stats {
            Some(_) if largest.is_infinite() => Some(stats_of_infinite(src, job.cols, largest)),
            _ => None,
        };
        let max = job.algorithm.distance_from(largest);
        let mut kept = [const { MaybeUninit::<f32>::uninit() }; GROUP];
        let kept = kept.as_mut_ptr().cast();
        let mut forward = Forward::<LOG> { src, dst, kept, max, factor: 0.0 };
        let mut after = f32::NEG_INFINITY;
        let sum = if AHEAD {
            let lowest = Lanes::new(S::splat(after));
            let next = Largest::<S> { row: next, largest: Cell::new(lowest) };
            let sum = fold_beside::<S, 1, _, _>(job.cols, &forward, &next);
            after = next.largest.get().largest();
            sum
        } else {
            fold::<S, 1, _>(job.cols, &forward)
        };
        let sum = sum.products[0];
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
        after
    }
}

/// # Safety
/// As [`forward_row`], for rows `first` to `last - 1`, at least one.
#[inline(always)]
unsafe fn forward_rows<S: Simd, const LOG: bool>(job: &Job<'_>, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !job.ahead {
            for row in first..last {
                let src = job.row(0, row);
                let largest = largest::<S>(src, job.cols);
                forward_row::<S, LOG, false>(job, row, largest, src);
            }
            return;
        }
        let mut largest = largest::<S>(job.row(0, first), job.cols);
        for row in first..last {
            // The last row has no next one and repeats itself.
            let next = job.row(0, (row + 1).min(last - 1));
            largest = forward_row::<S, LOG, true>(job, row, largest, next);
        }
    }
}

/// The logarithm of the sum of a row with an infinite maximum; NaN if the row has NaN.
///
/// # Safety
/// The row exists.
#[inline(always)]
pub(super) unsafe fn stats_of_infinite(row: *const f32, cols: usize, largest: f32) -> f32 {
    let mut stats = largest;
    for col in 0..cols {
        // SAFETY: guaranteed by the caller.
        if unsafe { *row.add(col) }.is_nan() {
            stats = f32::NAN;
        }
    }
    stats
}

/// # Safety
/// As [`forward_row`].
#[inline(always)]
unsafe fn backward_row<S: Simd, const LOG: bool>(job: &Job<'_>, row: usize) {
    let (dst, diff_dst, diff_src) = (job.row(0, row), job.row(1, row), job.row(2, row));
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut row = Backward::<LOG> { dst, diff_dst, diff_src, sum: 0.0 };
        row.sum = fold::<S, 1, _>(job.cols, &row).products[0] as f32;
        map::<S, _>(job.cols, &row);
    }
}

/// # Safety
/// As [`backward_row`], for rows `first` to `last - 1`.
#[inline(always)]
unsafe fn backward_rows<S: Simd, const LOG: bool>(job: &Job<'_>, first: usize, last: usize) {
    for row in first..last {
        // SAFETY: guaranteed by the caller.
        unsafe { backward_row::<S, LOG>(job, row) }
    }
}

/// Computes rows `first` to `last - 1`.
///
/// # Safety
/// As [`forward_row`], for all of them.
#[inline(always)]
unsafe fn rows<S: Simd>(job: &Job<'_>, first: usize, last: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (job.forward, job.algorithm) {
            (true, SoftmaxAlgorithm::Log) => forward_rows::<S, true>(job, first, last),
            (true, _) => forward_rows::<S, false>(job, first, last),
            (false, SoftmaxAlgorithm::Log) => backward_rows::<S, true>(job, first, last),
            (false, _) => backward_rows::<S, false>(job, first, last),
        }
    }
}

entry_points! {
    /// Rows, per level.
    mod entries: rows<>(job: &Job<'_>, first: usize, last: usize) -> ();
}

pub(super) type Entry = unsafe fn(&Job<'_>, usize, usize);

pub(super) fn entry(level: Level) -> Entry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
