//! The kernels for channels last: the channels of a position are contiguous and form vectors.

use super::kernel::{Backward, Entry, Forward, Job, Kernels, kernels};
use super::position_sums::{Summed, sum};
use super::statistics::{probe_at, probes};
use crate::simd::{Bf16, Element, F32, LANES, Level, Runtime, Simd, UpTo, Width, entry_points};
use crate::tensor::DataType;

/// Sums the values of channels and their squares about a number per channel.
#[derive(Clone, Copy)]
struct Moments<S: Simd, E> {
    element: E,
    src: *const u8,
    step: usize,
    about: S::F32x16,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, E: Element> Summed<S> for Moments<S, E> {
    const WIDE: bool = true;

    #[inline(always)]
    unsafe fn prefetch(&self, position: usize) {
        unsafe { S::prefetch(self.src.wrapping_add(position * self.step)) }
    }

    #[inline(always)]
    unsafe fn terms(&self, position: usize, n: usize) -> (S::F32x16, S::F32x16, S::F32x16) {
        unsafe {
            let x = load::<S, E>(self.element, self.src.wrapping_add(position * self.step), n);
            let d = S::sub(x, self.about);
            (x, d, d)
        }
    }
}

/// `n` elements, 16 for a full vector.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn load<S: Simd, E: Element>(element: E, p: *const u8, n: usize) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { UpTo(n).load_as::<S, E>(element, p, 0) }
}

/// # Safety
/// The channels exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn moments<S: Simd, E: Element>(job: &Job) {
    let element = E::of(job.src.data_type);
    // SAFETY: guaranteed by the caller.
    unsafe {
        sum::<S, Moments<S, E>>(
            job,
            #[inline(always)]
            |channel, n| Moments {
                element,
                src: job.src.at_channel(channel),
                step: job.src.position,
                about: load::<S, F32>(F32, job.about.add(channel).cast(), n),
            },
        );
    }
}

/// # Safety
/// As [`moments`].
#[inline(always)]
unsafe fn probe<S: Simd, E: Element>(job: &Job) {
    let element = E::of(job.src.data_type);
    let count = probes(job.positions);
    let mut channel = 0;
    while channel < job.channels {
        let n = LANES.min(job.channels - channel);
        let src = job.src.at_channel(channel);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sum = load::<S, E>(element, src, n);
            for probe in 1..count {
                let at = probe_at(probe, count, job.positions) * job.src.position;
                sum = S::add(sum, load::<S, E>(element, src.wrapping_add(at), n));
            }
            UpTo(n).store::<S>(job.probes.add(channel), sum);
        }
        channel += n;
    }
}

/// # Safety
/// As [`moments`], and no other thread accesses the channels of dst.
#[inline(always)]
unsafe fn normalize<S: Simd, Src: Element, Dst: Element>(job: &Job) {
    let (src_type, dst_type) = (Src::of(job.src.data_type), Dst::of(job.dst.data_type));
    let mut position = 0;
    while position < job.positions {
        // Several positions at once share their channels' scalars.
        let rows = ROWS.min(job.positions - position);
        let (src, dst) = (job.src.at_position(position), job.dst.at_position(position));
        let whole = job.channels - job.channels % (2 * LANES);
        let mut channel = 0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            while channel < whole {
                let one = Forward::<S>::of_channels(job, channel, LANES);
                let two = Forward::<S>::of_channels(job, channel + LANES, LANES);
                let mut row = 0;
                while row < rows {
                    let from = src.wrapping_add(row * job.src.position);
                    let to = dst.wrapping_add(row * job.dst.position);
                    let values = [
                        one.apply(src_type.load::<S>(from, channel)),
                        two.apply(src_type.load::<S>(from, channel + LANES)),
                    ];
                    dst_type.store_all::<S, 2>(to, channel, &values);
                    row += 1;
                }
                channel += 2 * LANES;
            }
            while channel < job.channels {
                let n = LANES.min(job.channels - channel);
                let numbers = Forward::<S>::of_channels(job, channel, n);
                let mut row = 0;
                while row < rows {
                    let from = src.wrapping_add(row * job.src.position);
                    let to = dst.wrapping_add(row * job.dst.position);
                    let x = UpTo(n).load_as::<S, Src>(src_type, from, channel);
                    UpTo(n).store_as::<S, Dst>(dst_type, to, channel, numbers.apply(x));
                    row += 1;
                }
                channel += n;
            }
        }
        position += rows;
    }
}

/// Positions that are computed together.
const ROWS: usize = 8;

/// Sums the gradients of channels of dst, and their products with xhat.
#[derive(Clone, Copy)]
struct Products<S: Simd, Src, Dd> {
    src_type: Src,
    dd_type: Dd,
    src: *const u8,
    diff_dst: *const u8,
    steps: [usize; 2],
    numbers: Backward<S>,
}

// SAFETY of the blocks below: the trait's contract, passed through.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd, Src: Element, Dd: Element> Summed<S> for Products<S, Src, Dd> {
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn prefetch(&self, position: usize) {
        let [src_step, dd_step] = self.steps;
        unsafe {
            S::prefetch(self.src.wrapping_add(position * src_step));
            S::prefetch(self.diff_dst.wrapping_add(position * dd_step));
        }
    }

    #[inline(always)]
    unsafe fn terms(&self, position: usize, n: usize) -> (S::F32x16, S::F32x16, S::F32x16) {
        let [src_step, dd_step] = self.steps;
        unsafe {
            let dd = load::<S, Dd>(self.dd_type, self.diff_dst.wrapping_add(position * dd_step), n);
            let x = load::<S, Src>(self.src_type, self.src.wrapping_add(position * src_step), n);
            (dd, dd, self.numbers.xhat(x))
        }
    }
}

/// # Safety
/// As [`moments`].
#[inline(always)]
unsafe fn products<S: Simd, Src: Element, Dd: Element>(job: &Job) {
    let (src_type, dd_type) = (Src::of(job.src.data_type), Dd::of(job.dst.data_type));
    // SAFETY: guaranteed by the caller.
    unsafe {
        sum::<S, Products<S, Src, Dd>>(
            job,
            #[inline(always)]
            |channel, n| Products {
                src_type,
                dd_type,
                src: job.src.at_channel(channel),
                diff_dst: job.dst.at_channel(channel),
                steps: [job.src.position, job.dst.position],
                numbers: Backward::<S>::of_channels(job, channel, n),
            },
        );
    }
}

/// # Safety
/// As [`moments`], and no other thread accesses the channels of diff_src.
#[inline(always)]
unsafe fn gradient<S: Simd, Src: Element, Dd: Element, Ds: Element>(job: &Job) {
    let (src_type, dd_type) = (Src::of(job.src.data_type), Dd::of(job.dst.data_type));
    let ds_type = Ds::of(job.diff_src.data_type);
    let mut position = 0;
    while position < job.positions {
        let rows = ROWS.min(job.positions - position);
        let mut channel = 0;
        while channel < job.channels {
            let n = LANES.min(job.channels - channel);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let numbers = Backward::<S>::of_channels(job, channel, n);
                let mut row = position;
                while row < position + rows {
                    let src = job.src.at_position(row).wrapping_add(channel * src_type.size());
                    let dd = job.dst.at_position(row).wrapping_add(channel * dd_type.size());
                    let dd = load::<S, Dd>(dd_type, dd, n);
                    let value = if job.global {
                        numbers.apply_globally(dd)
                    } else {
                        numbers.apply(load::<S, Src>(src_type, src, n), dd)
                    };
                    let to = job.diff_src.at_position(row);
                    UpTo(n).store_as::<S, Ds>(ds_type, to, channel, value);
                    row += 1;
                }
            }
            channel += n;
        }
        position += rows;
    }
}

kernels! {}
