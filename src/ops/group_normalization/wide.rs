//! Groups that are computed in f64: those whose squares overflow or underflow in f32, and all if a tensor is f64.
//!
//! All implementations share these scalar loops, for any layout. Sums have the lanes and blocks of the f64 terms of
//! `simd::fold`.

use super::problem::{GroupNormalization, Shape};
use super::statistics::join;
use super::surround::Seen;
use super::sweeps::Call;
use crate::error::Result;
use crate::primitive::BoundChain;
use crate::rows::halve;
use crate::rows::statistics::{Statistics, exact, reciprocal};
use crate::simd::{BLOCK, LANES, read_scalar, read_wide, write_scalar, write_wide};
use crate::tensor::{DataType, MemoryDesc, Offsets, Support};

/// The elements of a tensor of any layout, by their logical index.
pub(super) struct Tensor {
    data_type: DataType,
    offsets: Offsets,
}

// SAFETY of the blocks below: the execution's buffers were checked to hold every element of the descriptor, and threads
// write disjoint ones.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Tensor {
    pub(super) fn new(desc: &MemoryDesc) -> Result<Self> {
        let data_type = desc.data_type().unwrap_or(DataType::F32);
        Ok(Self { data_type, offsets: Offsets::of(desc)? })
    }

    /// The address of an element. The first one need not exist, because a stage holds only a part of a tensor.
    fn place(&self, start: *mut u8, at: usize) -> *mut u8 {
        start.wrapping_add(self.offsets.offset(at) * self.data_type.size())
    }

    pub(super) fn get(&self, start: *const u8, at: usize) -> f32 {
        unsafe { read_scalar(self.data_type, self.place(start.cast_mut(), at), 0) }
    }

    pub(super) fn set(&self, start: *mut u8, at: usize, value: f32) {
        unsafe { write_scalar(self.data_type, self.place(start, at), 0, value) }
    }

    fn get_f64(&self, start: *const u8, at: usize) -> f64 {
        unsafe { read_wide(self.data_type, self.place(start.cast_mut(), at), 0) }
    }

    fn set_f64(&self, start: *mut u8, at: usize, value: f64) {
        if self.data_type.support() == Support::Forward && !self.data_type.is_integer() {
            // 8-bit floats are rounded through f32.
            return self.set(start, at, value as f32);
        }
        unsafe { write_wide(self.data_type, self.place(start, at), 0, value) }
    }
}

/// An element of dst after the post-operations, whose rows are the innermost logical dimension.
pub(super) fn apply(bound: &BoundChain<'_>, value: f32, at: usize, innermost: usize) -> f32 {
    // SAFETY: the execution's buffers were checked, and the element exists.
    unsafe { bound.applied(value, (at / innermost, at % innermost)) }
}

/// The groups of a problem in f64.
pub(super) struct Wide {
    shape: Shape,
    src: Tensor,
    dst: Tensor,
    diff_src: Tensor,
    /// The innermost dimension.
    innermost: usize,
    epsilon: f64,
    rms: bool,
    global: bool,
    /// Whether a tensor is f64, so that given f32 statistics are not accurate enough.
    pub(super) double: bool,
}

/// The parameter of a channel.
///
/// # Safety
/// It exists.
unsafe fn parameter(values: *const f32, channel: usize) -> f64 {
    // SAFETY: guaranteed by the caller.
    f64::from(unsafe { values.add(channel).read_unaligned() })
}

impl Wide {
    pub(super) fn new(p: &GroupNormalization, [src, dst, diff_src]: &Seen) -> Result<Self> {
        let descs = [&p.src, &p.dst, &p.diff_src];
        Ok(Self {
            shape: p.shape,
            src: Tensor::new(src)?,
            dst: Tensor::new(dst)?,
            diff_src: Tensor::new(diff_src)?,
            innermost: p.src.dims().last().map_or(1, |last| *last as usize),
            epsilon: exact(p.epsilon),
            rms: p.flags.rms(),
            global: p.flags.global_stats(),
            double: descs.iter().any(|desc| desc.data_type() == Some(DataType::F64)),
        })
    }

    /// The logical index of a group's first element.
    fn first(&self, sample: usize, group: usize) -> usize {
        let channel = sample * self.shape.channels + group * self.shape.per_group();
        channel * self.shape.positions
    }

    /// The sum over a group's counted elements: over the positions of each channel, then over the channels.
    fn sum(&self, term: impl Fn(usize) -> f64) -> f64 {
        let positions = self.shape.positions;
        join(self.shape.counted, |channel| fold(positions, |p| term(channel * positions + p)))
    }

    /// The statistics of a group.
    pub(super) fn statistics(&self, call: &Call<'_>, sample: usize, group: usize) -> Statistics {
        let first = self.first(sample, group);
        let x = |i: usize| self.src.get_f64(call.src, first + i);
        let n = self.shape.counted_elements() as f64;
        if self.rms {
            return Statistics { mean: 0.0, variance: self.sum(|i| x(i) * x(i)) / n };
        }
        let about = x(0);
        let offset = self.sum(|i| x(i) - about) / n;
        let square = |i| {
            let d = (x(i) - about) - offset;
            d * d
        };
        Statistics { mean: about + offset, variance: self.sum(square) / n }
    }

    pub(super) fn forward(&self, call: &Call<'_>, sample: usize, group: usize, found: &Statistics) {
        let (first, per_group) = (self.first(sample, group), self.shape.per_group());
        let r = reciprocal(found.variance, self.epsilon);
        for i in 0..self.shape.elements() {
            let (at, channel) = (first + i, group * per_group + i / self.shape.positions);
            // SAFETY: the channel exists.
            let (scale, shift) =
                unsafe { (parameter(call.scale, channel), parameter(call.shift, channel)) };
            let xhat = (self.src.get_f64(call.src, at) - found.mean) * r;
            let value = xhat.mul_add(scale, shift);
            match call.plain_chain {
                None => self.dst.set_f64(call.dst, at, value),
                Some(bound) => {
                    self.dst.set(call.dst, at, apply(bound, value as f32, at, self.innermost));
                }
            }
        }
    }

    /// Computes the gradient of a group. The sums of its channels' diff_dst and diff_dst*xhat go to `sums`.
    pub(super) fn backward(
        &self,
        call: &Call<'_>,
        (sample, group): (usize, usize),
        found: &Statistics,
        [of_d, of_xhat]: [&mut [f64]; 2],
    ) {
        let (first, positions) = (self.first(sample, group), self.shape.positions);
        let r = reciprocal(found.variance, self.epsilon);
        let dd = |i: usize| self.dst.get_f64(call.dst, first + i);
        let xhat = |i: usize| (self.src.get_f64(call.src, first + i) - found.mean) * r;
        let per_group = self.shape.per_group();
        // SAFETY: the channel exists.
        let scale = |channel| unsafe { parameter(call.scale, group * per_group + channel) };
        for channel in 0..per_group {
            let start = channel * positions;
            of_d[channel] = fold(positions, |p| dd(start + p));
            of_xhat[channel] = fold(positions, |p| dd(start + p) * xhat(start + p));
        }
        let part = r / self.shape.counted_elements() as f64;
        let shift = part * join(per_group, |channel| scale(channel) * of_d[channel]);
        let slope = part * join(per_group, |channel| scale(channel) * of_xhat[channel]);
        for i in 0..self.shape.elements() {
            let (d, xhat) = (scale(i / positions) * dd(i), xhat(i));
            // Channels outside a partial norm do not contribute to the mean square.
            let value = match (self.global || i >= self.shape.counted_elements(), self.rms) {
                (true, _) => d * r,
                (false, true) => d * r - xhat * slope,
                (false, false) => d * r - shift - xhat * slope,
            };
            self.diff_src.set_f64(call.diff_src, first + i, value);
        }
    }
}

/// The sum over the positions of a channel: the f64 terms of `simd::fold`, one lane at a time.
pub(super) fn fold(positions: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut total = 0.0;
    for block in (0..positions).step_by(BLOCK) {
        let mut lanes = [0.0f64; LANES];
        for at in block..positions.min(block + BLOCK) {
            lanes[(at - block) % LANES] += term(at);
        }
        total += halve(lanes);
    }
    total
}
