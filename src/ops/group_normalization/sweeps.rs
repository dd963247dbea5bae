//! The loops over elements of an implementation: sums over the positions of channels, and elementwise results.
//! The plan does everything else.
//!
//! The sums of a channel over its positions are those of `simd::fold` over a row: a lane is a position modulo 16.

use super::problem::Shape;
use crate::primitive::{BoundChain, Execution};
use norm_sys as sys;
use std::ops::Range;

/// Neighbouring channels of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channels {
    pub(super) sample: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Channels {
    /// Channels `range` of these, counted from the first.
    pub(super) fn part(self, range: &Range<usize>) -> Self {
        Self { first: self.first + range.start, count: range.len(), ..self }
    }
}

/// The addresses of an execution.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) src: *mut u8,
    /// dst, or diff_dst.
    pub(super) dst: *mut u8,
    pub(super) diff_src: *mut u8,
    pub(super) mean: *mut f32,
    pub(super) variance: *mut f32,
    /// One value per channel; neutral if the problem has none.
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
    /// Post-operations, with rows as the implementation counts them.
    pub(super) chain: Option<&'a BoundChain<'a>>,
    /// The same with logical rows, for groups that are computed in f64.
    pub(super) plain_chain: Option<&'a BoundChain<'a>>,
}

// SAFETY: threads write disjoint groups through these pointers and only read the rest.
unsafe impl Sync for Call<'_> {}

impl Call<'_> {
    /// The addresses of tensors; `src` is the argument that is normalized.
    pub(super) fn new(execution: &Execution<'_>, src: i32, forward: bool) -> Self {
        let get = |id| execution.arguments.get(id);
        Self {
            src: get(src),
            dst: get(if forward { sys::NORM_ARG_DST } else { sys::NORM_ARG_DIFF_DST }),
            diff_src: get(sys::NORM_ARG_DIFF_SRC),
            mean: get(sys::NORM_ARG_MEAN).cast(),
            variance: get(sys::NORM_ARG_VARIANCE).cast(),
            scale: std::ptr::null(),
            shift: std::ptr::null(),
            chain: None,
            plain_chain: None,
        }
    }

    /// The given mean (0 without one) and variance of a group, counted over all samples.
    ///
    /// # Safety
    /// They exist.
    pub(super) unsafe fn given(&self, group: usize) -> (f32, f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mean =
                if self.mean.is_null() { 0.0 } else { self.mean.add(group).read_unaligned() };
            (mean, self.variance.add(group).read_unaligned())
        }
    }
}

/// The scalars of a run of channels.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    /// The mean, rounded.
    pub(super) high: &'a [f32],
    pub(super) r: &'a [f32],
    /// Forward: the rounding error of the mean, times `r`. Backward: `-r*sum(d)/M`.
    pub(super) low: &'a [f32],
    /// Backward: `r*sum(d*xhat)/M`.
    pub(super) slope: &'a [f32],
}

impl Numbers<'_> {
    /// The scalars of channels `range`, counted from the first.
    fn part(&self, range: &Range<usize>) -> Self {
        fn part<'a>(values: &'a [f32], range: &Range<usize>) -> &'a [f32] {
            &values[range.clone()]
        }
        Self {
            high: part(self.high, range),
            r: part(self.r, range),
            low: part(self.low, range),
            slope: part(self.slope, range),
        }
    }
}

/// The sweeps of an implementation. The tensors exist, threads write disjoint channels, and there is at least one
/// position.
pub(super) trait Sweeps: Send + Sync {
    /// Sums each channel's probes.
    fn probe(&self, call: &Call<'_>, at: Channels, sums: &mut [f32]);
    /// Sums each channel's values (not used by RMS), and the squares about the channel's number.
    fn moments(&self, call: &Call<'_>, at: Channels, about: &[f32], sums: [&mut [f64]; 2]);
    /// Normalizes, scales and shifts, applies post-operations and stores.
    fn normalize(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>);
    /// Sums each channel's diff_dst, and `diff_dst*xhat`.
    fn products(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>, sums: [&mut [f64]; 2]);
    /// Computes diff_src. The statistics are `constant` if they do not depend on src.
    fn gradient(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>, constant: bool);

    /// Computes the gradient of whole groups with a partial norm. Channels outside it do not contribute to the mean
    /// square.
    fn partial_gradient(
        &self,
        call: &Call<'_>,
        at: Channels,
        numbers: &Numbers<'_>,
        shape: &Shape,
    ) {
        for first in (0..at.count).step_by(shape.per_group()) {
            let (counted, end) = (first + shape.counted, first + shape.per_group());
            for (range, constant) in [(first..counted, false), (counted..end, true)] {
                self.gradient(call, at.part(&range), &numbers.part(&range), constant);
            }
        }
    }
}
