//! The vector implementations of a level, for channels first and channels last.

use super::kernel::{Job, Kernels, Order, Plane};
use super::plan::{Plan, PlanSpec};
use super::problem::{CHANNELS, GroupNormalization, Shape};
use super::stage::{Staging, staging};
use super::surround::{Seen, Surround, TENSORS, plain};
use super::sweeps::{Call, Channels, Numbers, Sweeps};
use super::{channels_first, channels_last};
use crate::error::{Error, Result};
use crate::heap::{Counted, counted};
use crate::primitive::{Implementation, PostOpChain, Variant};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc};
use std::ptr::{null, null_mut};

/// The algorithm for tensors whose channels are adjacent; the general one is for adjacent positions.
pub(super) const CHANNELS_LAST: &str = "channels_last";

/// The strides of samples, channels and positions of a tensor, in elements.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    data_type: DataType,
    sample: usize,
    channel: usize,
    position: usize,
}

impl Steps {
    /// `None` if positions have no constant stride.
    fn of(desc: &MemoryDesc) -> Option<Self> {
        let (dims, strides) = (desc.dims(), desc.strides());
        let (mut position, mut next) = (0, None);
        for (dim, stride) in dims[2..].iter().zip(&strides[2..]).rev().filter(|(dim, _)| **dim != 1)
        {
            match next {
                None => position = *stride,
                Some(next) if next != *stride => return None,
                Some(_) => {}
            }
            next = Some(dim * stride);
        }
        // The stride of a dimension of one element is not used, and may be so large that bytes overflow.
        let stride = |at: usize| if dims[at] == 1 { 0 } else { strides[at] as usize };
        Some(Self {
            data_type: desc.data_type()?,
            sample: stride(0),
            channel: stride(1),
            position: position as usize,
        })
    }

    /// The channels of a sample.
    fn plane(&self, start: *mut u8, at: Channels) -> Plane {
        let size = self.data_type.size();
        let offset = at.sample * self.sample + at.first * self.channel;
        Plane {
            start: start.wrapping_add(offset * size),
            data_type: self.data_type,
            channel: self.channel * size,
            position: self.position * size,
        }
    }
}

/// The vector implementation of a level, or why it does not support the problem.
pub(super) fn make(
    p: &GroupNormalization,
    variant: &'static Variant,
    level: Level,
) -> Result<Box<Counted<dyn Implementation>>> {
    let forward = p.prop_kind.is_forward();
    let mut seen = plain(p);
    if p.dynamic_scales().is_some() {
        // The kernels store f32 on a stage; later steps store dst in any layout.
        seen[1] = seen[0].clone();
    }
    let mut steps = steps_of(&seen)?;
    for post_op in p.attr.post_ops.iter() {
        if post_op.operands().any(MemoryDesc::is_blocked) {
            let text = "the layout of a post-operation's tensor is blocked";
            return Err(Error::unimplemented(text));
        }
    }
    let order = order(variant, &p.shape, &steps)?;
    if p.dynamic_scales().is_some() && order == Order::ChannelsLast && p.shape.positions > 1 {
        return Err(Error::unimplemented("the elements that share a scale are not adjacent"));
    }
    let mut groups_at_once = groups_at_once(&p.shape, order);
    if order == Order::ChannelsLast {
        groups_at_once = groups_at_once.next_multiple_of(p.quantized_groups()).min(p.shape.groups);
    }
    let around = Surround::new(p, level, order, groups_at_once * p.shape.per_group())?;
    if let Some(around) = &around {
        seen = around.seen(p)?;
        steps = steps_of(&seen)?;
    }
    let [src, dst, diff_src] = steps;
    let chain = chain(p, order)?;
    let types = steps.map(|steps| steps.data_type);
    let stored = stage_type(types, chain.is_some());
    let kernels = match order {
        Order::ChannelsFirst => channels_first::kernels,
        Order::ChannelsLast => channels_last::kernels,
    }(level, types, stored);
    let sweeps = Vectors {
        shape: p.shape,
        order,
        src,
        dst,
        diff_src,
        kernels,
        staging: (forward && stored.is_none()).then(|| staging(level, innermost(&p.dst))),
    };
    let spec = PlanSpec { groups_at_once, chain, seen, around };
    Ok(counted(Plan::new(p, variant, sweeps, spec)?)?)
}

/// The steps of all tensors.
fn steps_of(seen: &Seen) -> Result<[Steps; TENSORS]> {
    let mut all = [None; TENSORS];
    for (steps, desc) in all.iter_mut().zip(seen) {
        let data_type = desc.data_type().unwrap_or(DataType::F32);
        if !is_runtime(data_type) {
            let name = data_type.name();
            return Err(Error::unimplemented(format_args!("{name} is computed without vectors")));
        }
        *steps = if desc.is_blocked() { None } else { Steps::of(desc) };
    }
    match all {
        [Some(src), Some(dst), Some(diff_src)] => Ok([src, dst, diff_src]),
        _ => Err(Error::unimplemented("the positions of a channel have no constant stride")),
    }
}

/// The size of the innermost dimension.
fn innermost(desc: &MemoryDesc) -> usize {
    desc.dims().last().map_or(1, |last| *last as usize)
}

/// Whether [`Runtime`] supports the type.
fn is_runtime(data_type: DataType) -> bool {
    use DataType::{Bf16, F16, F32, S8, U8};
    matches!(data_type, F32 | Bf16 | F16 | S8 | U8)
}

/// The order of a variant, which all tensors have.
fn order(variant: &Variant, shape: &Shape, steps: &[Steps]) -> Result<Order> {
    let all = |adjacent: &dyn Fn(&Steps) -> bool| steps.iter().all(adjacent);
    if variant.algorithm == CHANNELS_LAST {
        return match all(&|steps| steps.channel == 1 || shape.channels == 1) {
            true => Ok(Order::ChannelsLast),
            false => Err(Error::unimplemented("the channels of a tensor are not adjacent")),
        };
    }
    match shape.positions > 1 && all(&|steps| steps.position == 1) {
        true => Ok(Order::ChannelsFirst),
        false => Err(Error::unimplemented("the positions of a tensor are not adjacent")),
    }
}

/// The post-operations. Their rows are those of dst along its innermost dimension, or channels if these are last.
fn chain(p: &GroupNormalization, order: Order) -> Result<Option<PostOpChain>> {
    if !p.prop_kind.is_forward() {
        return Ok(None);
    }
    let outer = [0, 1, 2, 3, 4];
    let last = match order {
        Order::ChannelsFirst => None,
        Order::ChannelsLast => Some(CHANNELS),
    };
    p.chain(last, Some(&outer[..p.dst.ndims() - 1]))
}

/// The type of dst that the kernels store; `None` if they store f32 on a stage.
fn stage_type([src, dst, _]: [DataType; 3], has_chain: bool) -> Option<DataType> {
    use DataType::{Bf16 as B, F32 as F};
    let native = matches!((src, dst), (_, F) | (F, B) | (B, B));
    (native && !has_chain).then_some(dst)
}

/// For channels last, the fewest channels of a unit: whole cache lines of several vectors.
const FEWEST_CHANNELS: usize = 64;
/// The fewest elements of a unit.
const FEWEST_ELEMENTS: usize = 8192;
/// The most channels of a unit that are a multiple of 16.
const MOST_CHANNELS: usize = 256;

/// The number of groups in a unit.
fn groups_at_once(shape: &Shape, order: Order) -> usize {
    let per_group = shape.per_group();
    if order == Order::ChannelsFirst {
        return FEWEST_ELEMENTS.div_ceil(shape.elements().max(1)).clamp(1, shape.groups);
    }
    let wanted = FEWEST_CHANNELS.max(FEWEST_ELEMENTS / shape.positions.max(1));
    // The fewest groups that form whole vectors. A group of an empty tensor may have any number of channels.
    let rest = per_group % 16;
    let whole = (1..=16).find(|groups| (groups * rest).is_multiple_of(16)).unwrap_or(1);
    let step = if per_group <= MOST_CHANNELS / whole { whole } else { 1 };
    (step * wanted.div_ceil(step * per_group)).clamp(1, shape.groups)
}

struct Vectors {
    shape: Shape,
    order: Order,
    src: Steps,
    dst: Steps,
    diff_src: Steps,
    kernels: Kernels,
    /// For types and post-operations that the kernels do not store.
    staging: Option<Staging>,
}

impl Vectors {
    /// A job without outputs of sums.
    fn job(&self, call: &Call<'_>, at: Channels) -> Job {
        Job {
            channels: at.count,
            positions: self.shape.positions,
            src: self.src.plane(call.src, at),
            dst: self.dst.plane(call.dst, at),
            diff_src: self.diff_src.plane(call.diff_src, at),
            about: null(),
            high: null(),
            r: null(),
            low: null(),
            slope: null(),
            scale: call.scale.wrapping_add(at.first),
            shift: call.shift.wrapping_add(at.first),
            first: null_mut(),
            second: null_mut(),
            probes: null_mut(),
            global: false,
        }
    }

    /// As [`job`](Self::job), with scalars.
    fn job_with(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>) -> Job {
        Job {
            high: numbers.high.as_ptr(),
            r: numbers.r.as_ptr(),
            low: numbers.low.as_ptr(),
            slope: numbers.slope.as_ptr(),
            ..self.job(call, at)
        }
    }
}

// SAFETY of the blocks below: the execution's buffers were checked, threads access disjoint channels, scalars and sums
// have a value per channel, and the machine has the level.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Sweeps for Vectors {
    fn probe(&self, call: &Call<'_>, at: Channels, sums: &mut [f32]) {
        let job = Job { probes: sums.as_mut_ptr(), ..self.job(call, at) };
        unsafe { (self.kernels.probe)(&job) }
    }

    fn moments(
        &self,
        call: &Call<'_>,
        at: Channels,
        about: &[f32],
        [values, squares]: [&mut [f64]; 2],
    ) {
        let (first, second) = (values.as_mut_ptr(), squares.as_mut_ptr());
        let job = Job { about: about.as_ptr(), first, second, ..self.job(call, at) };
        unsafe { (self.kernels.moments)(&job) }
    }

    fn normalize(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>) {
        let job = self.job_with(call, at, numbers);
        match &self.staging {
            None => unsafe { (self.kernels.normalize)(&job) },
            Some(staging) => {
                staging.run(&job, self.order, &self.shape, at, call.chain, self.kernels.normalize);
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
        let (first, second) = (of_d.as_mut_ptr(), of_xhat.as_mut_ptr());
        let job = Job { first, second, ..self.job_with(call, at, numbers) };
        unsafe { (self.kernels.products)(&job) }
    }

    fn gradient(&self, call: &Call<'_>, at: Channels, numbers: &Numbers<'_>, constant: bool) {
        let job = Job { global: constant, ..self.job_with(call, at, numbers) };
        unsafe { (self.kernels.gradient)(&job) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Shape, Steps, groups_at_once};
    use crate::tensor::{DataType, MemoryDesc};

    #[test]
    fn huge_groups_are_alone() {
        let per_group = (1 << 60) + 1;
        let shape = Shape {
            samples: 0,
            channels: 4 * per_group,
            groups: 4,
            positions: 1,
            counted: per_group,
        };
        assert_eq!(groups_at_once(&shape, Order::ChannelsLast), 1);
    }

    #[test]
    fn strides_of_one_element_do_not_count() {
        let huge = i64::MAX / 2;
        let desc = MemoryDesc::with_strides(&[1, 1, 5, 1], DataType::F32, &[huge, huge, 1, huge]);
        let steps = Steps::of(&desc.expect("a descriptor")).expect("constant strides");
        assert_eq!((steps.sample, steps.channel, steps.position), (0, 0, 1));
    }
}
