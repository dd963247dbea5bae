//! The kernels for channels first: the positions of a channel are contiguous and form vectors.

use super::kernel::{Backward, Entry, Forward, Job, Kernels, kernels};
use super::statistics::{probe_at, probes};
use crate::simd::{
    Bf16, Element, F32, Fold, Full, LANES, Level, Map, Runtime, Simd, Term, Terms, Width,
    entry_points, fold, map, read_scalar,
};
use crate::tensor::DataType;

/// Sums the values of a channel and their squares about a number.
struct Moments<E> {
    element: E,
    src: *const u8,
    about: f32,
}

impl<E: Element> Moments<E> {
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn of<S: Simd>(&self, x: S::F32x16) -> Terms<S, 1> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let d = S::sub(x, S::splat(self.about));
            Terms::with_f64([(d, d)], S::widen(x))
        }
    }
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element> Fold<S, 1> for Moments<E> {
    const TERM: Term = Term::F64;

    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 1> {
        unsafe { self.of::<S>(width.load_as::<S, _>(self.element, self.src, i)) }
    }
}

/// # Safety
/// The channels exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn moments<S: Simd, E: Element>(job: &Job) {
    let element = E::of(job.src.data_type);
    for channel in 0..job.channels {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let about = job.about.add(channel).read();
            let terms = Moments { element, src: job.src.at_channel(channel), about };
            let sums = fold::<S, 1, _>(job.positions, &terms);
            job.second.add(channel).write(sums.products[0]);
            job.first.add(channel).write(sums.terms);
        }
    }
}

/// # Safety
/// As [`moments`].
#[inline(always)]
unsafe fn probe<S: Simd, E: Element>(job: &Job) {
    let count = probes(job.positions);
    for channel in 0..job.channels {
        let src = job.src.at_channel(channel);
        // One at a time, because they are few and not contiguous.
        let mut sum = 0.0;
        for probe in 0..count {
            let at = probe_at(probe, count, job.positions);
            // SAFETY: guaranteed by the caller.
            let x = unsafe { read_scalar(job.src.data_type, src, at) };
            sum = if probe == 0 { x } else { sum + x };
        }
        // SAFETY: as above.
        unsafe { job.probes.add(channel).write(sum) };
    }
}

/// Normalizes a channel.
struct Normalize<S: Simd, Src, Dst> {
    src_type: Src,
    dst_type: Dst,
    src: *const u8,
    dst: *mut u8,
    numbers: Forward<S>,
}

impl<S: Simd, Src: Element, Dst: Element> Normalize<S, Src, Dst> {
    /// # Safety
    /// The vector from `i` on exists, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    unsafe fn value<W: Width>(&self, i: usize, width: W) -> S::F32x16 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.numbers.apply(width.load_as::<S, _>(self.src_type, self.src, i)) }
    }
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dst: Element> Map<S> for Normalize<S, Src, Dst> {
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        unsafe { width.store_as::<S, _>(self.dst_type, self.dst, i, self.value(i, width)) }
    }
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        unsafe {
            let at = [i, i + LANES, i + 2 * LANES, i + 3 * LANES];
            let values = [
                self.value(at[0], Full),
                self.value(at[1], Full),
                self.value(at[2], Full),
                self.value(at[3], Full),
            ];
            self.dst_type.store_all::<S, 4>(self.dst, i, &values);
        }
    }
}

/// # Safety
/// As [`moments`], and no other thread accesses the channels of dst.
#[inline(always)]
unsafe fn normalize<S: Simd, Src: Element, Dst: Element>(job: &Job) {
    for channel in 0..job.channels {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let op = Normalize {
                src_type: Src::of(job.src.data_type),
                dst_type: Dst::of(job.dst.data_type),
                src: job.src.at_channel(channel),
                dst: job.dst.at_channel(channel),
                numbers: Forward::<S>::of_channel(job, channel),
            };
            map::<S, _>(job.positions, &op);
        }
    }
}

/// Sums the gradients of a channel of dst, and their products with xhat.
struct Products<S: Simd, Src, Dd> {
    src_type: Src,
    dd_type: Dd,
    src: *const u8,
    diff_dst: *const u8,
    numbers: Backward<S>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dd: Element> Fold<S, 2> for Products<S, Src, Dd> {
    #[inline(always)]
    unsafe fn terms<W: Width>(&self, i: usize, width: W) -> Terms<S, 2> {
        unsafe {
            let dd = width.load_as::<S, _>(self.dd_type, self.diff_dst, i);
            let xhat = self.numbers.xhat(width.load_as::<S, _>(self.src_type, self.src, i));
            Terms::products([(dd, S::splat(1.0)), (dd, xhat)])
        }
    }
}

/// # Safety
/// As [`moments`].
#[inline(always)]
unsafe fn products<S: Simd, Src: Element, Dd: Element>(job: &Job) {
    for channel in 0..job.channels {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let terms = Products {
                src_type: Src::of(job.src.data_type),
                dd_type: Dd::of(job.dst.data_type),
                src: job.src.at_channel(channel),
                diff_dst: job.dst.at_channel(channel),
                numbers: Backward::<S>::of_channel(job, channel),
            };
            let [of_d, of_xhat] = fold::<S, 2, _>(job.positions, &terms).products;
            job.first.add(channel).write(of_d);
            job.second.add(channel).write(of_xhat);
        }
    }
}

/// Computes the gradient of a channel.
struct Gradient<S: Simd, Src, Dd, Ds, const GLOBAL: bool> {
    src_type: Src,
    dd_type: Dd,
    ds_type: Ds,
    src: *const u8,
    diff_dst: *const u8,
    diff_src: *mut u8,
    numbers: Backward<S>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const GLOBAL: bool>
    Gradient<S, Src, Dd, Ds, GLOBAL>
{
    #[inline(always)]
    unsafe fn value<W: Width>(&self, i: usize, width: W) -> S::F32x16 {
        unsafe {
            let dd = width.load_as::<S, _>(self.dd_type, self.diff_dst, i);
            if GLOBAL {
                self.numbers.apply_globally(dd)
            } else {
                self.numbers.apply(width.load_as::<S, _>(self.src_type, self.src, i), dd)
            }
        }
    }
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dd: Element, Ds: Element, const GLOBAL: bool> Map<S>
    for Gradient<S, Src, Dd, Ds, GLOBAL>
{
    #[inline(always)]
    unsafe fn apply<W: Width>(&self, i: usize, width: W) {
        unsafe { width.store_as::<S, _>(self.ds_type, self.diff_src, i, self.value(i, width)) }
    }
    #[inline(always)]
    unsafe fn turn(&self, i: usize) {
        unsafe {
            let at = [i, i + LANES, i + 2 * LANES, i + 3 * LANES];
            let values = [
                self.value(at[0], Full),
                self.value(at[1], Full),
                self.value(at[2], Full),
                self.value(at[3], Full),
            ];
            self.ds_type.store_all::<S, 4>(self.diff_src, i, &values);
        }
    }
}

/// # Safety
/// As [`moments`], and no other thread accesses the channels of diff_src.
#[inline(always)]
unsafe fn channel_gradient<S: Simd, Src: Element, Dd: Element, Ds: Element, const GLOBAL: bool>(
    job: &Job,
    channel: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let op = Gradient::<S, Src, Dd, Ds, GLOBAL> {
            src_type: Src::of(job.src.data_type),
            dd_type: Dd::of(job.dst.data_type),
            ds_type: Ds::of(job.diff_src.data_type),
            src: job.src.at_channel(channel),
            diff_dst: job.dst.at_channel(channel),
            diff_src: job.diff_src.at_channel(channel),
            numbers: Backward::<S>::of_channel(job, channel),
        };
        map::<S, _>(job.positions, &op);
    }
}

/// # Safety
/// As [`channel_gradient`].
#[inline(always)]
unsafe fn gradient<S: Simd, Src: Element, Dd: Element, Ds: Element>(job: &Job) {
    for channel in 0..job.channels {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if job.global {
                channel_gradient::<S, Src, Dd, Ds, true>(job, channel);
            } else {
                channel_gradient::<S, Src, Dd, Ds, false>(job, channel);
            }
        }
    }
}

kernels! {}
