//! The steps around the kernels: a residual before them, a gate before or after them, and their gradients.
//!
//! The steps run on the channels of one unit at a time, so that elements stay in a cache. Tensors that the kernels
//! cannot access in place are staged as f32, one unit at a time. The kernels see a stage as a tensor whose samples all
//! have the same address.

use super::kernel::Order;
use super::problem::{CHANNELS, GroupNormalization, Shape};
use super::sweeps::{Call, Channels};
use crate::error::{Error, Result};
use crate::primitive::Arguments;
use crate::primitive::normalization::Normalization;
use crate::rows::{Around, Normalized, Section, Sections};
use crate::simd::Level;
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc};
use norm_sys as sys;

/// The most staged tensors: src, dst or diff_dst, and diff_src.
pub(super) const TENSORS: usize = 3;

/// The tensors that the kernels see: src, dst or diff_dst, and diff_src.
pub(super) type Seen = [MemoryDesc; TENSORS];

/// The steps of a problem.
pub(super) struct Surround {
    sections: Sections,
    order: Order,
    staged: [bool; TENSORS],
    shape: Shape,
    /// The most channels of a unit.
    width: usize,
    /// For channels first, the columns of a row.
    cols: usize,
}

/// The stages of a unit; null for a tensor that is not staged.
pub(super) type Stages = [*mut f32; TENSORS];

impl Surround {
    /// The steps of a problem whose units have up to `width` channels, if it has any.
    pub(super) fn new(
        p: &GroupNormalization,
        level: Level,
        order: Order,
        width: usize,
    ) -> Result<Option<Self>> {
        if !p.has_steps() {
            return Ok(None);
        }
        if [&p.src, &p.dst, &p.diff_src].into_iter().any(MemoryDesc::is_blocked) {
            return Err(Error::unimplemented("steps around the normalization of a blocked layout"));
        }
        let flat = is_flat(p);
        let positions = p.shape.positions;
        let view = |desc: &MemoryDesc| {
            // Dynamic scales have fewer positions.
            let merged = if flat { merged(desc) } else { None };
            let merged = merged.unwrap_or_else(|| desc.clone());
            if order == Order::ChannelsLast { merged.with_last(CHANNELS) } else { merged }
        };
        let dims = view(&p.src).ndims();
        let outer: [usize; MAX_NDIMS] = std::array::from_fn(|dim| dim);
        let around = Around::of(p, view, &outer[..dims - 1]);
        let sections = around.map(|around| Sections::new(level, around));
        Ok(sections.map(|sections| Self {
            staged: sections.staged(),
            sections,
            order,
            shape: p.shape,
            width,
            cols: if flat { positions } else { p.src.dims()[dims - 1] as usize },
        }))
    }

    /// The elements of a stage.
    fn elements(&self) -> usize {
        self.width.saturating_mul(self.shape.positions).saturating_add(16) & !15
    }

    /// Bytes of the stages of a unit.
    pub(super) fn bytes(&self) -> usize {
        let count = self.staged.iter().filter(|staged| **staged).count();
        self.elements().saturating_mul(count * size_of::<f32>())
    }

    /// Assigns the stages to a part of the scratchpad.
    pub(super) fn stages(&self, start: *mut u8) -> Stages {
        let mut next = start.cast::<f32>();
        self.staged.map(|staged| {
            let stage = if staged { next } else { std::ptr::null_mut() };
            next = if staged { next.wrapping_add(self.elements()) } else { next };
            stage
        })
    }

    /// The tensors that the kernels see.
    pub(super) fn seen(&self, p: &GroupNormalization) -> Result<Seen> {
        let [src, dst, diff_src] = plain(p);
        Ok([self.seen_tensor(0, src)?, self.seen_tensor(1, dst)?, self.seen_tensor(2, diff_src)?])
    }

    fn seen_tensor(&self, index: usize, desc: MemoryDesc) -> Result<MemoryDesc> {
        if !self.staged[index] {
            return Ok(desc);
        }
        let (dims, last) = (desc.dims(), desc.ndims() - 1);
        let mut strides = [0; MAX_NDIMS];
        let mut step = match self.order {
            Order::ChannelsFirst => 1,
            Order::ChannelsLast => self.width as i64,
        };
        for dim in (CHANNELS + 1..=last).rev() {
            strides[dim] = step;
            step = step.saturating_mul(dims[dim]);
        }
        strides[CHANNELS] = match self.order {
            Order::ChannelsFirst => step,
            Order::ChannelsLast => 1,
        };
        MemoryDesc::with_strides(dims, DataType::F32, &strides[..=last])
    }

    /// The section of the steps for a unit.
    fn section(&self, at: Channels) -> Section {
        let Shape { channels, positions, .. } = self.shape;
        match self.order {
            Order::ChannelsFirst => {
                let (per_channel, first) = (positions / self.cols, at.sample * channels + at.first);
                Section {
                    rows: first * per_channel..(first + at.count) * per_channel,
                    cols: 0..self.cols,
                    step: self.cols,
                }
            }
            Order::ChannelsLast => Section {
                rows: at.sample * positions..(at.sample + 1) * positions,
                cols: at.first..at.first + at.count,
                step: self.width,
            },
        }
    }

    /// Runs the steps before the kernels. Returns the addresses that the kernels see.
    ///
    /// # Safety
    /// The execution's buffers were checked. The channels and the stages belong to this thread.
    pub(super) unsafe fn enter<'a>(
        &self,
        arguments: &Arguments,
        call: &Call<'a>,
        at: Channels,
        stages: Stages,
    ) -> Call<'a> {
        let [src, dst, diff_src] = stages;
        // SAFETY: guaranteed by the caller.
        unsafe { self.sections.enter(arguments, &self.section(at), [src, dst]) };
        let before = match self.order {
            Order::ChannelsFirst => at.first * self.shape.positions,
            Order::ChannelsLast => at.first,
        };
        let seen = |own: *mut u8, stage: *mut f32| {
            if stage.is_null() { own } else { stage.wrapping_sub(before).cast() }
        };
        Call {
            src: seen(call.src, src),
            dst: seen(call.dst, dst),
            diff_src: seen(call.diff_src, diff_src),
            ..*call
        }
    }

    /// Runs the steps after the kernels. Backward uses the mean and `1/sqrt(variance + epsilon)` of each channel.
    ///
    /// # Safety
    /// As [`enter`](Self::enter).
    pub(super) unsafe fn leave(
        &self,
        arguments: &Arguments,
        call: &Call<'_>,
        at: Channels,
        stages: Stages,
        [mean, r]: [&[f32]; 2],
    ) {
        let parameter = |p: *const f32| p.wrapping_add(at.first);
        let numbers = [mean.as_ptr(), r.as_ptr(), parameter(call.scale), parameter(call.shift)];
        let rows = match self.order {
            Order::ChannelsFirst => Some(self.shape.positions / self.cols),
            Order::ChannelsLast => None,
        };
        let normalized = Normalized::Channels { numbers, rows };
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.sections.leave(arguments, &self.section(at), [stages[1], stages[2]], &normalized)
        };
    }
}

/// The tensors that the kernels access without steps.
pub(super) fn plain(p: &GroupNormalization) -> Seen {
    let diff_src = if p.prop_kind.is_forward() { &p.src } else { &p.diff_src };
    [p.argument(p.normalized_argument()).clone(), p.dst.clone(), diff_src.clone()]
}

/// The order in which a problem is computed without vectors.
pub(super) fn plain_order(shape: &Shape) -> Order {
    if shape.positions > 1 { Order::ChannelsFirst } else { Order::ChannelsLast }
}

/// Whether the positions of a channel have a constant stride in all tensors that the steps access.
fn is_flat(p: &Normalization) -> bool {
    let of_steps = [
        sys::NORM_ARG_SRC,
        sys::NORM_ARG_RESIDUAL,
        sys::NORM_ARG_RESIDUAL_DST,
        sys::NORM_ARG_GATE,
        sys::NORM_ARG_DIFF_GATE,
        sys::NORM_ARG_DIFF_RESIDUAL_DST,
        sys::NORM_ARG_DIFF_DST,
        sys::NORM_ARG_DIFF_SRC,
    ];
    let quantized = p.dynamic_scales().map(|_| sys::NORM_ARG_DST);
    let all = of_steps.into_iter().chain(quantized);
    all.into_iter().filter(|id| p.has_argument(*id)).all(|id| merged(p.argument(id)).is_some())
}

/// A tensor with one dimension of positions; `None` if they have no constant stride.
fn merged(desc: &MemoryDesc) -> Option<MemoryDesc> {
    let [samples, channels, positions @ ..] = desc.dims() else { return None };
    desc.reshaped(&[*samples, *channels, positions.iter().product()]).ok()
}
