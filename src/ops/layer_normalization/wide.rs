//! Rows in f64: all those of a problem with a tensor of that type, and those that the kernels leave, because
//! f32 does not carry them (squares that overflow or vanish, means too large to subtract) or because their
//! statistics take another sweep.
//!
//! The latter are rare, so one function per direction and level looks types and flags up as it goes.
//! The formulas are those of `forward` and `backward`.

use super::columns::ColumnSums;
use super::forward::low_term;
use super::job::{Backward, Forward, Given, StatisticsUse};
use super::row::{Statistics, again, reciprocal};
use crate::simd::{
    Element, Factors, Fold, LANES, Level, Map, Runtime, Simd, Term, Terms, add_wide, entry_points,
    fold, map,
};
use crate::tensor::DataType;

/// An element type whose values are f64 in the lanes.
pub(super) trait WideElement: Copy + 'static {
    /// Whether it may be f64, so that a row is never taken in f32.
    const DOUBLE: bool;

    fn of(data_type: DataType) -> Self;
    /// As `Element::scaled`.
    #[inline(always)]
    fn scaled(self, _factors: Factors) -> Self {
        self
    }
    /// `n` elements, 16 for a whole vector.
    ///
    /// # Safety
    /// They are there; the instruction set of `S` is too.
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::D;
    /// Rounds, by way of f32 unless the type is f64, and writes `n` elements, 16 for a whole vector.
    ///
    /// # Safety
    /// As [`get`](WideElement::get).
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::D, n: usize);
}

/// All that [`Runtime`] looks up.
type Number = Runtime<false, true>;

/// f64.
#[derive(Clone, Copy)]
struct F64;

/// f64 or what [`Runtime`] looks up.
#[derive(Clone, Copy)]
struct Any(DataType);

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl WideElement for Number {
    const DOUBLE: bool = false;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Element::of(data_type)
    }
    #[inline(always)]
    fn scaled(self, factors: Factors) -> Self {
        Element::scaled(self, factors)
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::D {
        unsafe { S::widen(load_lanes::<S>(self, p, i, n)) }
    }
    #[inline(always)]
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::D, n: usize) {
        unsafe { store_lanes::<S>(self, p, i, S::narrow(v), n) }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl WideElement for F64 {
    const DOUBLE: bool = true;

    #[inline(always)]
    fn of(_: DataType) -> Self {
        Self
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::D {
        let p = p.cast::<f64>();
        unsafe { if n == LANES { S::wide_load(p.add(i)) } else { S::wide_load_n(p.add(i), n) } }
    }
    #[inline(always)]
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::D, n: usize) {
        let p = p.cast::<f64>();
        unsafe {
            if n == LANES {
                S::wide_store(p.add(i), v);
            } else {
                S::wide_store_n(p.add(i), v, n);
            }
        }
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl WideElement for Any {
    const DOUBLE: bool = true;

    #[inline(always)]
    fn of(data_type: DataType) -> Self {
        Self(data_type)
    }
    #[inline(always)]
    unsafe fn get<S: Simd>(self, p: *const u8, i: usize, n: usize) -> S::D {
        unsafe {
            match self.0 {
                DataType::F64 => F64.get::<S>(p, i, n),
                other => <Number as WideElement>::of(other).get::<S>(p, i, n),
            }
        }
    }
    #[inline(always)]
    unsafe fn put<S: Simd>(self, p: *mut u8, i: usize, v: S::D, n: usize) {
        unsafe {
            match self.0 {
                DataType::F64 => F64.put::<S>(p, i, v, n),
                other => <Number as WideElement>::of(other).put::<S>(p, i, v, n),
            }
        }
    }
}

/// A fold in f64 alone: one term per vector, whole or not.
trait WideTerms<S: Simd> {
    /// # Safety
    /// Elements `i` to `i + n - 1` are there; `n` is 16 for a whole vector.
    unsafe fn term(&self, i: usize, n: usize) -> S::D;
}

/// The fold of such terms.
struct InWide<'a, T>(&'a T);

impl<S: Simd, T: WideTerms<S>> Fold<S, 0> for InWide<'_, T> {
    const TERM: Term = Term::Wide;

    #[inline(always)]
    unsafe fn terms(&self, i: usize) -> Terms<S, 0> {
        // SAFETY: the caller's.
        unsafe { self.terms_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn terms_n(&self, i: usize, n: usize) -> Terms<S, 0> {
        // SAFETY: the caller's.
        unsafe { Terms::with_wide([], self.0.term(i, n)) }
    }
}

/// The sum of a row's terms.
///
/// # Safety
/// As [`fold`].
#[inline(always)]
unsafe fn sum<S: Simd, T: WideTerms<S>>(cols: usize, terms: &T) -> f64 {
    // SAFETY: the caller's.
    unsafe { fold::<S, 0, _>(cols, &InWide(terms)).terms }
}

/// The values of a row.
struct Values<E> {
    element: E,
    src: *const u8,
}

impl<S: Simd, E: WideElement> WideTerms<S> for Values<E> {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe { self.element.get::<S>(self.src, i, n) }
    }
}

/// The squares of a row's distances from `mean`.
struct Squares<S: Simd, E> {
    element: E,
    src: *const u8,
    mean: S::D,
}

impl<S: Simd, E: WideElement> WideTerms<S> for Squares<S, E> {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let d = S::wide_sub(self.element.get::<S>(self.src, i, n), self.mean);
            S::wide_mul(d, d)
        }
    }
}

/// `n` elements in f32, 16 for a whole vector.
///
/// # Safety
/// They are there; the instruction set of `S` is too.
#[inline(always)]
unsafe fn load_lanes<S: Simd>(element: Number, p: *const u8, i: usize, n: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe { if n == LANES { element.load::<S>(p, i) } else { element.load_n::<S>(p, i, n) } }
}

/// `n` parameters, 16 for a whole vector.
///
/// # Safety
/// As [`load_lanes`].
#[inline(always)]
unsafe fn load_parameter<S: Simd>(p: *const f32, i: usize, n: usize) -> S::D {
    // SAFETY: the caller's.
    unsafe { S::widen(load_f32::<S>(p, i, n)) }
}

/// The same in f32.
///
/// # Safety
/// As [`load_lanes`].
#[inline(always)]
unsafe fn load_f32<S: Simd>(p: *const f32, i: usize, n: usize) -> S::F {
    // SAFETY: the caller's.
    unsafe { if n == LANES { S::load(p.add(i)) } else { S::load_n(p.add(i), n) } }
}

/// Rounds and writes `n` elements, 16 for a whole vector.
///
/// # Safety
/// As [`load_lanes`].
#[inline(always)]
unsafe fn store_lanes<S: Simd>(element: Number, p: *mut u8, i: usize, v: S::F, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        if n == LANES { element.store::<S>(p, i, v) } else { element.store_n::<S>(p, i, v, n) }
    }
}

/// The statistics of a row.
///
/// # Safety
/// `cols` elements are there, at least one; the instruction set of `S` is too.
#[inline(always)]
unsafe fn statistics<S: Simd, E: WideElement>(
    element: E,
    src: *const u8,
    cols: usize,
    rms: bool,
) -> Statistics {
    // SAFETY: the caller's.
    unsafe {
        let n = cols as f64;
        let mean = if rms { 0.0 } else { sum::<S, _>(cols, &Values { element, src }) / n };
        let squares = Squares::<S, E> { element, src, mean: S::wide_splat(mean) };
        Statistics { mean, variance: sum::<S, _>(cols, &squares) / n }
    }
}

/// `(x - mean) * r`, then scale and shift.
struct Normalize<'a, S: Simd, Src, Dst> {
    job: &'a Forward,
    src_type: Src,
    dst_type: Dst,
    src: *const u8,
    dst: *mut u8,
    mean: S::D,
    r: S::D,
}

impl<S: Simd, Src: WideElement, Dst: WideElement> Map<S> for Normalize<'_, S, Src, Dst> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.apply_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; scale and shift are null or as long as a row.
        unsafe {
            let x = self.src_type.get::<S>(self.src, i, n);
            let xhat = S::wide_mul(S::wide_sub(x, self.mean), self.r);
            let value = match (job.scale.is_null(), job.shift.is_null()) {
                (true, true) => xhat,
                (false, true) => S::wide_mul(xhat, load_parameter::<S>(job.scale, i, n)),
                (true, false) => S::wide_add(xhat, load_parameter::<S>(job.shift, i, n)),
                (false, false) => {
                    let scale = load_parameter::<S>(job.scale, i, n);
                    S::wide_fma(xhat, scale, load_parameter::<S>(job.shift, i, n))
                }
            };
            self.dst_type.put::<S>(self.dst, i, value, n);
        }
    }
}

/// The same in f32, with the roundings of `forward`.
struct NarrowNormalize<'a> {
    job: &'a Forward,
    src: *const u8,
    dst: *mut u8,
    high: f32,
    low: f32,
    r: f32,
}

impl<'a> NarrowNormalize<'a> {
    #[inline(always)]
    fn new(job: &'a Forward, src: *const u8, dst: *mut u8, found: &Statistics) -> Self {
        let high = found.mean as f32;
        let r = reciprocal(found.variance, job.epsilon) as f32;
        Self { job, src, dst, high, low: low_term(found.mean, high, r), r }
    }
}

impl<S: Simd> Map<S> for NarrowNormalize<'_> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { Map::<S>::apply_n(self, i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; scale and shift are null or as long as a row.
        unsafe {
            let x = load_lanes::<S>(Element::of(job.src_type), self.src, i, n);
            let r = S::splat(self.r);
            let xhat = if job.rms {
                S::mul(x, r)
            } else {
                S::fma(S::sub(x, S::splat(self.high)), r, S::splat(self.low))
            };
            let value = match (job.scale.is_null(), job.shift.is_null()) {
                (true, true) => xhat,
                (false, true) => S::mul(xhat, load_f32::<S>(job.scale, i, n)),
                (true, false) => S::add(xhat, load_f32::<S>(job.shift, i, n)),
                (false, false) => {
                    S::fma(xhat, load_f32::<S>(job.scale, i, n), load_f32::<S>(job.shift, i, n))
                }
            };
            let element = <Number as Element>::of(job.dst_type);
            store_lanes::<S>(Element::scaled(element, job.factors), self.dst, i, value, n);
        }
    }
}

/// One row forward.
///
/// # Safety
/// The row is there and this thread's; `cols` is not 0; the instruction set of `S` is there.
#[inline(always)]
unsafe fn forward_row<S: Simd, Src: WideElement, Dst: WideElement>(job: &Forward, row: usize) {
    // SAFETY: the caller's.
    unsafe {
        let src = job.src.wrapping_add(job.src_rows.offset(row) * job.src_type.size());
        let dst = job.dst.wrapping_add(job.dst_rows.offset(row) * job.dst_type.size());
        let found = if job.statistics == StatisticsUse::Given {
            let (mean, variance) = job.given_values(row);
            Statistics { mean: f64::from(mean), variance: f64::from(variance) }
        } else {
            let narrow = match (Src::DOUBLE || Dst::DOUBLE, job.rms) {
                (true, _) => None,
                (false, true) => again::<S, Number, true>(Element::of(job.src_type), src, job.cols),
                (false, false) => {
                    again::<S, Number, false>(Element::of(job.src_type), src, job.cols)
                }
            };
            if let Some(found) = narrow {
                job.write(row, &found);
                map::<S, _>(job.cols, &NarrowNormalize::new(job, src, dst, &found));
                return;
            }
            statistics::<S, _>(Src::of(job.src_type), src, job.cols, job.rms)
        };
        job.write(row, &found);
        let mean = S::wide_splat(found.mean);
        let r = S::wide_splat(reciprocal(found.variance, job.epsilon));
        let (src_type, dst_type) =
            (Src::of(job.src_type), Dst::of(job.dst_type).scaled(job.factors));
        map(job.cols, &Normalize::<S, _, _> { job, src_type, dst_type, src, dst, mean, r });
    }
}

/// The types of a row's tensors.
#[derive(Clone, Copy)]
struct Types<E> {
    src: E,
    diff_dst: E,
    diff_src: E,
}

/// A row backward. As a fold it sums `d`, or `d*xhat`.
struct Gradient<'a, S: Simd, E> {
    job: &'a Backward,
    types: Types<E>,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    /// The block's sums; null for those that are not asked for.
    diff_scale: *mut f64,
    diff_shift: *mut f64,
    mean: S::D,
    r: S::D,
    shift: S::D,
    slope: S::D,
    with_xhat: bool,
}

impl<S: Simd, E: WideElement> Gradient<'_, S, E> {
    /// `diff_dst`, `d` and `xhat` of a vector.
    ///
    /// # Safety
    /// As [`Map`].
    #[inline(always)]
    unsafe fn load(&self, i: usize, n: usize) -> (S::D, S::D, S::D) {
        let job = self.job;
        // SAFETY: the caller's; scale is null or as long as a row.
        unsafe {
            let x = self.types.src.get::<S>(self.src, i, n);
            let dd = self.types.diff_dst.get::<S>(self.diff_dst, i, n);
            let xhat = S::wide_mul(S::wide_sub(x, self.mean), self.r);
            if job.scale.is_null() {
                return (dd, dd, xhat);
            }
            (dd, S::wide_mul(load_parameter::<S>(job.scale, i, n), dd), xhat)
        }
    }
}

impl<S: Simd, E: WideElement> WideTerms<S> for Gradient<'_, S, E> {
    #[inline(always)]
    unsafe fn term(&self, i: usize, n: usize) -> S::D {
        // SAFETY: the caller's.
        unsafe {
            let (_, d, xhat) = self.load(i, n);
            if self.with_xhat { S::wide_mul(d, xhat) } else { d }
        }
    }
}

impl<S: Simd, E: WideElement> Map<S> for Gradient<'_, S, E> {
    const UNROLL: usize = 1;

    #[inline(always)]
    unsafe fn apply(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe { self.apply_n(i, LANES) }
    }
    #[inline(always)]
    unsafe fn apply_n(&self, i: usize, n: usize) {
        let job = self.job;
        // SAFETY: the caller's; sums are null or as long as a row.
        unsafe {
            let (dd, d, xhat) = self.load(i, n);
            let scaled = S::wide_mul(d, self.r);
            let bend = S::wide_mul(xhat, self.slope);
            let value = match (job.global_stats, job.rms) {
                (true, _) => scaled,
                (false, true) => S::wide_sub(scaled, bend),
                (false, false) => S::wide_sub(S::wide_sub(scaled, self.shift), bend),
            };
            self.types.diff_src.put::<S>(self.diff_src, i, value, n);
            if !self.diff_scale.is_null() {
                add_wide::<S>(self.diff_scale.add(i), S::wide_mul(dd, xhat), n);
            }
            if !self.diff_shift.is_null() {
                add_wide::<S>(self.diff_shift.add(i), dd, n);
            }
        }
    }
}

/// One row backward.
///
/// # Safety
/// The row and its block's sums are there and this thread's; `cols` is not 0; the instruction set of
/// `S` is there.
#[inline(always)]
unsafe fn backward_row<S: Simd, E: WideElement>(job: &Backward, row: usize, sums: *mut f64) {
    let cols = job.cols;
    // SAFETY: the caller's.
    unsafe {
        let src = job.src.wrapping_add(job.src_rows.offset(row) * job.src_type.size());
        let types = Types {
            src: E::of(job.src_type),
            diff_dst: E::of(job.diff_dst_type),
            diff_src: E::of(job.diff_src_type),
        };
        let found = match job.given(row) {
            // In f32 the statistics given are too coarse for what is computed in f64.
            Given::Narrow(found) | Given::Wide(found) if job.global_stats || !E::DOUBLE => found,
            _ => statistics::<S, _>(types.src, src, cols, job.rms),
        };
        let r = reciprocal(found.variance, job.epsilon);
        let per_col = r / cols as f64;
        let ColumnSums { diff_scale, diff_shift, .. } = job.sums(sums);
        let (dd_offset, ds_offset) = (job.diff_dst_rows.offset(row), job.diff_src_rows.offset(row));
        let mut gradient = Gradient::<S, E> {
            job,
            types,
            src,
            diff_dst: job.diff_dst.wrapping_add(dd_offset * job.diff_dst_type.size()),
            diff_src: job.diff_src.wrapping_add(ds_offset * job.diff_src_type.size()),
            diff_scale,
            diff_shift,
            mean: S::wide_splat(found.mean),
            r: S::wide_splat(r),
            shift: S::wide_splat(0.0),
            slope: S::wide_splat(0.0),
            with_xhat: false,
        };
        if !job.global_stats {
            if !job.rms {
                gradient.shift = S::wide_splat(per_col * sum::<S, _>(cols, &gradient));
            }
            gradient.with_xhat = true;
            gradient.slope = S::wide_splat(per_col * sum::<S, _>(cols, &gradient));
        }
        map(cols, &gradient);
    }
}

entry_points! {
    /// A row forward, per level.
    mod forward_entries: forward_row<Src: WideElement, Dst: WideElement>(
        job: &Forward, row: usize
    ) -> ();
}

entry_points! {
    /// A row backward, per level.
    mod backward_entries: backward_row<E: WideElement>(
        job: &Backward, row: usize, sums: *mut f64
    ) -> ();
}

/// Runs one row of a job.
pub(super) type ForwardEntry = unsafe fn(&Forward, usize);
/// Runs one row of a job into its block's column sums.
pub(super) type BackwardEntry = unsafe fn(&Backward, usize, *mut f64);

/// For rows of these types; one of them is f64, or rows that the kernels leave come here.
pub(super) fn forward_entry(level: Level, src: DataType, dst: DataType) -> ForwardEntry {
    fn typed<Src: WideElement, Dst: WideElement>(level: Level) -> ForwardEntry {
        forward_entries::at::<Src, Dst>(level)
            .unwrap_or(forward_entries::entry_portable::<Src, Dst>)
    }
    match (src, dst) {
        (DataType::F64, DataType::F64) => typed::<F64, F64>(level),
        (DataType::F64, _) => typed::<F64, Number>(level),
        (_, DataType::F64) => typed::<Number, F64>(level),
        _ => typed::<Number, Number>(level),
    }
}

/// As [`forward_entry`], by the types of src, diff_dst and diff_src.
pub(super) fn backward_entry(level: Level, types: [DataType; 3]) -> BackwardEntry {
    fn typed<E: WideElement>(level: Level) -> BackwardEntry {
        backward_entries::at::<E>(level).unwrap_or(backward_entries::entry_portable::<E>)
    }
    match types.iter().filter(|t| **t == DataType::F64).count() {
        0 => typed::<Number>(level),
        3 => typed::<F64>(level),
        _ => typed::<Any>(level),
    }
}
