//! The formula as plain loops over scalars, for any layout and types, with the bits of the vector implementations.

use super::kernel::Order;
use super::plan::{Plan, PlanSpec};
use super::problem::{GroupNormalization, Shape};
use super::statistics::{probe_at, probes};
use super::surround::{Surround, plain, plain_order};
use super::sweeps::{Call, Channels, Numbers, Sweeps};
use super::wide::{Tensor, apply, fold};
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Implementation, Variant};
use crate::rows::plain_fold;
use crate::simd::Level;

/// Supports every problem.
pub(super) fn make(
    problem: &GroupNormalization,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let shape = &problem.shape;
    let order = plain_order(shape);
    let groups_at_once = match order {
        Order::ChannelsFirst => 1,
        Order::ChannelsLast => problem.quantized_groups(),
    };
    let width = groups_at_once * shape.per_group();
    let around = Surround::new(problem, Level::Portable, order, width)?;
    let seen = match &around {
        Some(around) => around.seen(problem)?,
        None => plain(problem),
    };
    let [src, dst, diff_src] = &seen;
    let sweeps = Loops {
        shape: problem.shape,
        src: Tensor::new(src)?,
        dst: Tensor::new(dst)?,
        diff_src: Tensor::new(diff_src)?,
        innermost: problem.src.dims().last().map_or(1, |last| *last as usize),
        rms: problem.flags.rms(),
    };
    let spec = PlanSpec { groups_at_once, chain: None, seen, around };
    Ok(counted(Plan::new(problem, variant, sweeps, spec)?)?)
}

struct Loops {
    shape: Shape,
    src: Tensor,
    /// diff_dst in backward.
    dst: Tensor,
    diff_src: Tensor,
    /// The innermost dimension.
    innermost: usize,
    rms: bool,
}

impl Loops {
    /// The logical index of a channel's first element.
    fn first(&self, at: Channels, channel: usize) -> usize {
        (at.sample * self.shape.channels + at.first + channel) * self.shape.positions
    }
}

impl Sweeps for Loops {
    fn probe(&self, call: &Call<'_>, at: Channels, sums: &mut [f32]) {
        let positions = self.shape.positions;
        let count = probes(positions);
        for (channel, sum) in sums.iter_mut().enumerate() {
            let first = self.first(at, channel);
            *sum = (0..count)
                .map(|probe| self.src.get(call.src, first + probe_at(probe, count, positions)))
                .reduce(|sum, x| sum + x)
                .unwrap_or(0.0);
        }
    }

    fn moments(
        &self,
        call: &Call<'_>,
        at: Channels,
        about: &[f32],
        [values, squares]: [&mut [f64]; 2],
    ) {
        let positions = self.shape.positions;
        for (channel, about) in about.iter().enumerate() {
            let first = self.first(at, channel);
            let x = |position| self.src.get(call.src, first + position);
            squares[channel] = plain_fold(positions, |p| (x(p) - about, x(p) - about));
            if !self.rms {
                values[channel] = fold(positions, |p| f64::from(x(p)));
            }
        }
    }

    fn normalize(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>) {
        for channel in 0..at.count {
            let first = self.first(at, channel);
            let (high, r, low) = (numbers.high[channel], numbers.r[channel], numbers.low[channel]);
            // SAFETY: scale and shift have a value per channel.
            let (scale, shift) = unsafe {
                (
                    call.scale.add(at.first + channel).read_unaligned(),
                    call.shift.add(at.first + channel).read_unaligned(),
                )
            };
            for at in first..first + self.shape.positions {
                let xhat = (self.src.get(call.src, at) - high).mul_add(r, low);
                let value = xhat.mul_add(scale, shift);
                let value =
                    call.chain.map_or(value, |chain| apply(chain, value, at, self.innermost));
                self.dst.set(call.dst, at, value);
            }
        }
    }

    fn products(
        &self,
        call: &Call<'_>,
        at: Channels,
        numbers: &Numbers<'_>,
        [of_d, of_xhat]: [&mut [f64]; 2],
    ) {
        for channel in 0..at.count {
            let first = self.first(at, channel);
            let (mean, r) = (numbers.high[channel], numbers.r[channel]);
            let dd = |position| self.dst.get(call.dst, first + position);
            let xhat = |position| (self.src.get(call.src, first + position) - mean) * r;
            of_d[channel] = plain_fold(self.shape.positions, |p| (dd(p), 1.0));
            of_xhat[channel] = plain_fold(self.shape.positions, |p| (dd(p), xhat(p)));
        }
    }

    fn gradient(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>, constant: bool) {
        for channel in 0..at.count {
            let first = self.first(at, channel);
            let (mean, r) = (numbers.high[channel], numbers.r[channel]);
            let (shift, slope) = (numbers.low[channel], numbers.slope[channel]);
            // SAFETY: scale has a value per channel.
            let scale = unsafe { call.scale.add(at.first + channel).read_unaligned() };
            for at in first..first + self.shape.positions {
                let d = self.dst.get(call.dst, at) * scale;
                let value = if constant {
                    d * r
                } else {
                    let xhat = (self.src.get(call.src, at) - mean) * r;
                    (-xhat).mul_add(slope, d.mul_add(r, shift))
                };
                self.diff_src.set(call.diff_src, at, value);
            }
        }
    }
}
