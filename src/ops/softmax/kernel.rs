//! The formula over rows that lie densely: three sweeps forward, two backward.
//!
//! ```text
//! forward            max = max(x)
//!   accurate         e = exp(x - max), kept in f32; sum = fold(e);   dst = e * (1/sum)
//!   log              sum = fold(exp(x - max));                       dst = (x - max) - log(sum)
//! backward accurate  sum = fold(diff_dst*dst);  diff_src = dst * (diff_dst - sum)
//!   log              sum = fold(diff_dst);      diff_src = diff_dst - exp(dst)*sum
//! ```

use super::problem::SoftmaxAlgorithm;
use crate::simd::lanes::Lanes;
use crate::simd::{
    Bf16, Element, F16, F32, Fold, LANES, Level, Map, Runtime, Simd, Terms, entry_points, fold,
    map, math,
};
use crate::tensor::{DataType, RowMap};

/// What a kernel is told of one execution.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) cols: usize,
    pub(super) algorithm: SoftmaxAlgorithm,
    /// src, or diff_dst.
    pub(super) input: Tensor,
    /// dst, which backward reads.
    pub(super) dst: Tensor,
    /// dst, or diff_src.
    pub(super) output: Tensor,
}

/// Rows of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Tensor {
    pub(super) data_type: DataType,
    pub(super) start: *mut u8,
    pub(super) rows: RowMap,
}

// SAFETY: threads write different rows through these addresses; everything else is read.
unsafe impl Sync for Job {}

/// Any type, looked up at each access.
type Any = Runtime;

/// A row of elements of one type.
#[derive(Clone, Copy)]
struct Row<E> {
    element: E,
    start: *mut u8,
}

impl<E: Element> Row<E> {
    /// # Safety
    /// The row exists, and its type is that of the token.
    #[inline(always)]
    unsafe fn of(tensor: &Tensor, row: usize) -> Self {
        let element = E::of(tensor.data_type);
        Self { element, start: tensor.start.wrapping_add(tensor.rows.offset(row) * element.size()) }
    }

    /// Elements `i` to `i + n - 1`, and zeros.
    ///
    /// # Safety
    /// They are there, 1 to 16; the instruction set of `S` is too.
    #[inline(always)]
    unsafe fn load<S: Simd>(self, i: usize, n: usize) -> Lanes<S> {
        // SAFETY: the caller's.
        unsafe {
            Lanes::new(if n == LANES {
                self.element.load::<S>(self.start, i)
            } else {
                self.element.load_n::<S>(self.start, i, n)
            })
        }
    }

    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn store<S: Simd>(self, i: usize, n: usize, v: Lanes<S>) {
        // SAFETY: the caller's.
        unsafe {
            if n == LANES {
                self.element.store::<S>(self.start, i, v.vector());
            } else {
                self.element.store_n::<S>(self.start, i, v.vector(), n);
            }
        }
    }

    /// The largest element other than NaN.
    ///
    /// # Safety
    /// There are `cols` elements, at least one; the instruction set of `S` is too.
    #[inline(always)]
    unsafe fn largest<S: Simd>(self, cols: usize) -> f32 {
        const STEP: usize = 4 * LANES;
        // SAFETY: the caller's; the last vector covers some elements again.
        unsafe {
            let lowest = Lanes::<S>::new(S::splat(f32::NEG_INFINITY));
            if cols < LANES {
                let there = Lanes::<S>::new(S::first_n(S::splat(1.0), cols)).eq(1.0);
                return there.select(self.load::<S>(0, cols), lowest).largest();
            }
            let mut max = [lowest; 4];
            let mut i = 0;
            while i + STEP <= cols {
                for k in 0..max.len() {
                    max[k] = self.load::<S>(i + k * LANES, LANES).max(max[k]);
                }
                i += STEP;
            }
            let mut rest = max[0].max(max[1]).max(max[2].max(max[3]));
            while i + LANES <= cols {
                rest = self.load::<S>(i, LANES).max(rest);
                i += LANES;
            }
            self.load::<S>(cols - LANES, LANES).max(rest).largest()
        }
    }
}

/// A sweep that sums a product of each element.
trait Product<S: Simd> {
    /// # Safety
    /// As [`Row::load`].
    unsafe fn factors(&self, i: usize, n: usize) -> (Lanes<S>, Lanes<S>);
}

/// A sweep that writes each element.
trait Value<S: Simd> {
    /// # Safety
    /// As [`Row::load`].
    unsafe fn write(&self, i: usize, n: usize);
}

#[derive(Clone, Copy)]
struct Sweep<T>(T);

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, T: Product<S>> Fold<S, 1> for Sweep<T> {
    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> Terms<S, 1> {
        unsafe { self.terms_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, 1> {
        unsafe {
            let (a, b) = self.0.factors(i, n);
            Terms::products([(a.vector(), b.vector())])
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, T: Value<S>> Map<S> for Sweep<T> {
    const UNROLL: usize = 2;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        unsafe { self.0.write(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        unsafe { self.0.write(i, n) }
    }
}

/// `exp(x - max)`, kept if that is wanted.
struct Exponentials<E, const KEEP: bool> {
    src: Row<E>,
    max: f32,
    kept: Row<F32>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element, const KEEP: bool> Product<S> for Exponentials<E, KEEP> {
    #[inline(always)]
    unsafe fn factors(&self, i: usize, n: usize) -> (Lanes<S>, Lanes<S>) {
        unsafe {
            let value = math::exp(self.src.load::<S>(i, n) - self.max);
            if KEEP {
                self.kept.store(i, n, value);
            }
            (value, value.all(1.0))
        }
    }
}

struct Scaled<Dst> {
    values: Row<F32>,
    reciprocal: f32,
    dst: Row<Dst>,
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Dst: Element> Value<S> for Scaled<Dst> {
    #[inline(always)]
    unsafe fn write(&self, i: usize, n: usize) {
        unsafe { self.dst.store(i, n, self.values.load::<S>(i, n) * self.reciprocal) }
    }
}

struct Logarithms<S: Simd, Src, Dst> {
    src: Row<Src>,
    max: f32,
    log: Lanes<S>,
    dst: Row<Dst>,
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dst: Element> Value<S> for Logarithms<S, Src, Dst> {
    #[inline(always)]
    unsafe fn write(&self, i: usize, n: usize) {
        unsafe { self.dst.store(i, n, self.src.load::<S>(i, n) - self.max - self.log) }
    }
}

/// Rows `first` to `last - 1`. Values are kept in `kept`, or in dst where it is f32 and `kept` null.
///
/// # Safety
/// The rows are there and this thread's, and so is a row of `kept`; the instruction set of `S` is there.
#[inline(always)]
unsafe fn forward_rows<S: Simd, Src: Element, Dst: Element>(
    job: &Job,
    kept: *mut f32,
    first: usize,
    last: usize,
) {
    let cols = job.cols;
    for row in first..last {
        // SAFETY: the caller's.
        unsafe {
            let (src, dst) = (Row::<Src>::of(&job.input, row), Row::<Dst>::of(&job.output, row));
            let max = src.largest::<S>(cols);
            let start = if kept.is_null() { dst.start } else { kept.cast() };
            let kept = Row { element: F32, start };
            match job.algorithm {
                SoftmaxAlgorithm::Accurate => {
                    let terms = Sweep(Exponentials::<_, true> { src, max, kept });
                    let sum = fold::<S, 1, _>(cols, &terms).products[0];
                    let reciprocal = (1.0 / sum) as f32;
                    map::<S, _>(cols, &Sweep(Scaled { values: kept, reciprocal, dst }));
                }
                SoftmaxAlgorithm::Log => {
                    let terms = Sweep(Exponentials::<_, false> { src, max, kept });
                    let sum = fold::<S, 1, _>(cols, &terms).products[0] as f32;
                    let log = math::log(Lanes::<S>::new(S::splat(sum)));
                    map::<S, _>(cols, &Sweep(Logarithms { src, max, log, dst }));
                }
            }
        }
    }
}

/// `diff_dst*dst`, or diff_dst alone.
struct Gradients<E, const LOG: bool> {
    dst: Row<E>,
    diff_dst: Row<E>,
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element, const LOG: bool> Product<S> for Gradients<E, LOG> {
    #[inline(always)]
    unsafe fn factors(&self, i: usize, n: usize) -> (Lanes<S>, Lanes<S>) {
        unsafe {
            let diff_dst = self.diff_dst.load::<S>(i, n);
            (diff_dst, if LOG { diff_dst.all(1.0) } else { self.dst.load::<S>(i, n) })
        }
    }
}

struct Differences<E, const LOG: bool> {
    rows: Gradients<E, LOG>,
    sum: f32,
    diff_src: Row<E>,
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element, const LOG: bool> Value<S> for Differences<E, LOG> {
    #[inline(always)]
    unsafe fn write(&self, i: usize, n: usize) {
        unsafe {
            let dst = self.rows.dst.load::<S>(i, n);
            let diff_dst = self.rows.diff_dst.load::<S>(i, n);
            let value = if LOG {
                math::exp(dst).neg_mul_add(self.sum, diff_dst)
            } else {
                dst * (diff_dst - self.sum)
            };
            self.diff_src.store(i, n, value);
        }
    }
}

/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn backward_row<S: Simd, E: Element, const LOG: bool>(job: &Job, row: usize) {
    // SAFETY: the caller's.
    unsafe {
        let rows = || Gradients::<E, LOG> {
            dst: Row::of(&job.dst, row),
            diff_dst: Row::of(&job.input, row),
        };
        let sum = fold::<S, 1, _>(job.cols, &Sweep(rows())).products[0] as f32;
        let diff_src = Row::of(&job.output, row);
        map::<S, _>(job.cols, &Sweep(Differences { rows: rows(), sum, diff_src }));
    }
}

/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn backward_rows<S: Simd, E: Element>(
    job: &Job,
    _kept: *mut f32,
    first: usize,
    last: usize,
) {
    for row in first..last {
        // SAFETY: the caller's.
        unsafe {
            match job.algorithm {
                SoftmaxAlgorithm::Accurate => backward_row::<S, E, false>(job, row),
                SoftmaxAlgorithm::Log => backward_row::<S, E, true>(job, row),
            }
        }
    }
}

/// An element of f32, rounded.
struct Rounded {
    values: Row<F32>,
    dst: Row<Any>,
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> Value<S> for Rounded {
    #[inline(always)]
    unsafe fn write(&self, i: usize, n: usize) {
        unsafe { self.dst.store(i, n, self.values.load::<S>(i, n)) }
    }
}

/// Rows of f32, stored in the type of the output.
///
/// # Safety
/// As [`forward_rows`].
#[inline(always)]
unsafe fn store_rows<S: Simd>(job: &Job, _kept: *mut f32, first: usize, last: usize) {
    for row in first..last {
        // SAFETY: the caller's.
        unsafe {
            let (values, dst) = (Row::of(&job.input, row), Row::of(&job.output, row));
            map::<S, _>(job.cols, &Sweep(Rounded { values, dst }));
        }
    }
}

entry_points! {
    /// Rows stored.
    mod store: store_rows<>(job: &Job, kept: *mut f32, first: usize, last: usize) -> ();
}

entry_points! {
    /// Rows forward.
    mod forward: forward_rows<Src: Element, Dst: Element>(
        job: &Job, kept: *mut f32, first: usize, last: usize
    ) -> ();
}

entry_points! {
    /// Rows backward.
    mod backward: backward_rows<E: Element>(
        job: &Job, kept: *mut f32, first: usize, last: usize
    ) -> ();
}

pub(super) type Entry = unsafe fn(&Job, *mut f32, usize, usize);

pub(super) fn forward_entry(level: Level, src: DataType, dst: DataType) -> Entry {
    let entry = match (src, dst) {
        (DataType::F32, DataType::F32) => forward::at::<F32, F32>(level),
        (DataType::Bf16, DataType::Bf16) => forward::at::<Bf16, Bf16>(level),
        (DataType::F16, DataType::F16) => forward::at::<F16, F16>(level),
        _ => forward::at::<Any, Any>(level),
    };
    entry.unwrap_or(forward::portable::entry_portable::<Any, Any>)
}

pub(super) fn backward_entry(level: Level, types: [DataType; 3]) -> Entry {
    let entry = match types {
        [DataType::F32, DataType::F32, DataType::F32] => backward::at::<F32>(level),
        [DataType::Bf16, DataType::Bf16, DataType::Bf16] => backward::at::<Bf16>(level),
        [DataType::F16, DataType::F16, DataType::F16] => backward::at::<F16>(level),
        _ => backward::at::<Any>(level),
    };
    entry.unwrap_or(backward::portable::entry_portable::<Any>)
}

pub(super) fn store_entry(level: Level) -> Entry {
    store::at(level).unwrap_or(store::portable::entry_portable)
}
