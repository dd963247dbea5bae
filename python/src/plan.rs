//! Primitives, and the ones that each thread used last.
//!
//! Creating a primitive takes microseconds, executing a small one a fraction of one. The key of a
//! primitive is everything but the addresses, so a call finds the primitive of an earlier one and
//! sets the addresses in its memory objects.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use arrayvec::ArrayVec;
use norm_rs::binary::Binary;
use norm_rs::eltwise::Eltwise;
use norm_rs::group_normalization as group;
use norm_rs::info::{CpuIsa, effective_cpu_isa};
use norm_rs::layer_normalization::{Backward, Flags, Forward};
use norm_rs::memory_desc::MAX_NDIMS;
use norm_rs::primitive::{Arg, Args, Primitive, PropKind};
use norm_rs::rope;
use norm_rs::sdpa;
use norm_rs::softmax::{self, Algorithm};
use norm_rs::{
    Attr, DataType, DynamicScale, Engine, Memory, MemoryDesc, ResidualRounding, Result, Stream,
};

use crate::options::Options;
pub(crate) use crate::plan_attention::Attention;
use crate::plan_elementwise::Elementwise;
pub(crate) use crate::plan_elementwise::Gated;
pub(crate) use crate::plan_groups::Groups;
pub(crate) use crate::plan_rope::{MOST_SECTIONS, OfHeads, Rotation, Sections};

/// The number of primitives that each thread caches.
///
/// A model has few distinct problems: its widths, forward and backward, for one or two batch sizes
/// at a time.
const CACHED: usize = 32;

/// The most arguments, those of the gradient of attention: three tensors and their gradients, dst and its gradient,
/// log-sum-exp, mask and sinks and their gradients, slopes, two kinds of lengths.
const MAX_OPERANDS: usize = 16;

/// Sizes or strides.
pub(crate) type Strides = ArrayVec<usize, MAX_NDIMS>;

/// An argument of a primitive.
#[derive(Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) arg: Arg,
    pub(crate) data_type: DataType,
    /// One for each dimension of the argument.
    pub(crate) strides: Strides,
    /// The sizes, if they do not follow from those of the problem.
    pub(crate) dims: Option<Strides>,
}

/// What is computed from the rows.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Operation {
    Normalization {
        flags: Flags,
        epsilon: f32,
        options: Options,
    },
    GroupNormalization(Groups),
    Softmax {
        algorithm: Algorithm,
        axis: usize,
    },
    Rope(Rotation),
    Eltwise {
        function: Eltwise,
        alpha: f32,
        beta: f32,
        /// Whether the gradient is computed from dst.
        from_dst: bool,
    },
    /// `None` selects by a condition.
    Binary(Option<Binary>),
    Gated(Gated),
    Attention(Attention),
}

/// What a primitive computes: the key of the cache.
#[derive(Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) prop_kind: PropKind,
    pub(crate) operation: Operation,
    /// The sizes of src or, for the gradient of softmax, dst.
    pub(crate) dims: Strides,
    pub(crate) operands: ArrayVec<Operand, MAX_OPERANDS>,
}

impl Problem {
    fn operand(&self, arg: Arg) -> Option<&Operand> {
        self.operands.iter().find(|operand| operand.arg == arg)
    }

    /// The descriptor of an argument.
    fn desc(&self, operand: &Operand) -> Result<MemoryDesc> {
        let Operand { arg, data_type, strides, dims } = operand;
        if let Some(dims) = dims {
            return MemoryDesc::with_strides(dims, *data_type, strides);
        }
        let (rows, cols) = self.dims.split_at(self.dims.len() - 1);
        let (statistics, parameters): (Strides, &[usize]) = match self.operation {
            Operation::GroupNormalization(of) => {
                ([self.dims[0], of.groups].into_iter().collect(), &self.dims[1..2])
            }
            _ => (rows.iter().copied().collect(), cols),
        };
        match arg {
            Arg::Mean | Arg::Variance => MemoryDesc::with_strides(&statistics, *data_type, strides),
            Arg::Scale | Arg::Shift | Arg::DiffScale | Arg::DiffShift => {
                MemoryDesc::with_strides(parameters, *data_type, strides)
            }
            Arg::DstScale | Arg::DstZeroPoint => {
                let group = self.group().max(1);
                let dims: Strides = rows.iter().copied().chain([cols[0] / group]).collect();
                MemoryDesc::dense(&dims, *data_type)
            }
            _ => MemoryDesc::with_strides(&self.dims, *data_type, strides),
        }
    }

    /// The number of elements that share a dynamic scale, or 0.
    fn group(&self) -> usize {
        match self.operation {
            Operation::Normalization { options, .. } => options.group,
            Operation::GroupNormalization(of) => of.options.group,
            Operation::Gated(gated) => gated.group,
            _ => 0,
        }
    }

    /// Adds the dynamic scales of dst, which has `ndims` dimensions, and their zero points.
    pub(crate) fn quantize(&self, attr: &mut Attr, ndims: usize) -> Result<()> {
        let (group, scale) = (self.group(), self.operand(Arg::DstScale));
        let Some(scale) = scale.filter(|_| group > 0) else { return Ok(()) };
        let scale = match scale.data_type {
            DataType::E8m0 => DynamicScale::PowerOfTwo,
            other => DynamicScale::Largest(other),
        };
        attr.set_dynamic_scales(scale, group, ndims)?;
        if self.operand(Arg::DstZeroPoint).is_some() {
            attr.set_dynamic_zero_points(group, ndims)?;
        }
        Ok(())
    }

    /// The attributes of a normalization.
    pub(crate) fn attr(&self, options: &Options) -> Result<Attr> {
        let mut attr = Attr::new()?;
        let rounding =
            if options.exact { ResidualRounding::Exact } else { ResidualRounding::Rounded };
        if let Some(residual) = self.desc_of(Arg::Residual)? {
            attr.set_residual(&residual, self.desc_of(Arg::ResidualDst)?.as_ref(), rounding)?;
        }
        if let Some(sum) = self.desc_of(Arg::DiffResidualDst)? {
            attr.set_residual(&sum, Some(&sum), rounding)?;
        }
        if let Some(gate) = self.desc_of(Arg::Gate)? {
            attr.set_gate(&gate, options.gating)?;
        }
        attr.set_partial_norm(options.partial)?;
        self.quantize(&mut attr, self.dims.len())?;
        Ok(attr)
    }

    pub(crate) fn desc_of(&self, arg: Arg) -> Result<Option<MemoryDesc>> {
        self.operand(arg).map(|operand| self.desc(operand)).transpose()
    }

    /// The element type of the first of two arguments that exists.
    fn type_of(&self, args: [Arg; 2]) -> DataType {
        let operand = args.iter().find_map(|&arg| self.operand(arg));
        operand.map_or(DataType::F32, |operand| operand.data_type)
    }
}

/// The primitive of an operation and a direction.
enum Computation {
    Forward(Forward),
    Backward(Backward),
    Group(group::Forward),
    GroupBackward(group::Backward),
    Softmax(softmax::Forward),
    SoftmaxBackward(softmax::Backward),
    Rope(rope::Forward),
    RopeBackward(rope::Backward),
    Elementwise(Elementwise),
    Attention(sdpa::Forward),
    AttentionBackward(sdpa::Backward),
}

impl Computation {
    fn new(engine: &Engine, problem: &Problem) -> Result<Self> {
        match problem.operation {
            Operation::Normalization { flags, epsilon, options } => {
                Self::normalization(engine, problem, (flags, epsilon), &options)
            }
            Operation::GroupNormalization(of) => match problem.prop_kind {
                PropKind::Backward | PropKind::BackwardData => {
                    of.backward(engine, problem).map(Self::GroupBackward)
                }
                _ => of.forward(engine, problem).map(Self::Group),
            },
            Operation::Softmax { algorithm, axis } => {
                Self::softmax(engine, problem, algorithm, axis)
            }
            Operation::Rope(rotation) if problem.operand(Arg::Dst).is_some() => {
                rotation.forward(engine, problem).map(Self::Rope)
            }
            Operation::Rope(rotation) => rotation.backward(engine, problem).map(Self::RopeBackward),
            Operation::Eltwise { function, alpha, beta, from_dst } => {
                Elementwise::eltwise(engine, problem, (function, from_dst), (alpha, beta))
                    .map(Self::Elementwise)
            }
            Operation::Binary(function) => {
                Elementwise::binary(engine, problem, function).map(Self::Elementwise)
            }
            Operation::Gated(gated) => {
                Elementwise::gated(engine, problem, &gated).map(Self::Elementwise)
            }
            Operation::Attention(attention) if problem.prop_kind == PropKind::Backward => {
                attention.backward(engine, problem).map(Self::AttentionBackward)
            }
            Operation::Attention(attention) => {
                attention.forward(engine, problem).map(Self::Attention)
            }
        }
    }

    fn softmax(
        engine: &Engine,
        problem: &Problem,
        algorithm: Algorithm,
        axis: usize,
    ) -> Result<Self> {
        let dst = problem.desc_of(Arg::Dst)?.expect("dst");
        if let Some(src) = problem.desc_of(Arg::Src)? {
            let mut attr = Attr::new()?;
            if let Some(stats) = problem.desc_of(Arg::SoftmaxStats)? {
                attr.set_softmax_stats(&stats)?;
            }
            let forward = softmax::Forward::new(engine, &src, axis).dst(&dst).attr(&attr);
            return forward.algorithm(algorithm).build().map(Self::Softmax);
        }
        let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
        let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
        let backward = softmax::Backward::new(engine, &dst, axis);
        let backward = backward.diff_dst(&diff_dst).diff_src(&diff_src).algorithm(algorithm);
        backward.build().map(Self::SoftmaxBackward)
    }

    fn normalization(
        engine: &Engine,
        problem: &Problem,
        (flags, epsilon): (Flags, f32),
        options: &Options,
    ) -> Result<Self> {
        let attr = problem.attr(options)?;
        let src = problem.desc_of(Arg::Src)?.expect("src");
        let stats = match problem.desc_of(Arg::Variance)? {
            None => problem.desc_of(Arg::Mean)?,
            stats => stats,
        };
        let params = problem.type_of([Arg::Scale, Arg::Shift]);
        let prop_kind = problem.prop_kind;
        match prop_kind {
            PropKind::ForwardTraining | PropKind::ForwardInference => {
                let builder = match prop_kind {
                    PropKind::ForwardTraining => Forward::training(engine, &src),
                    _ => Forward::inference(engine, &src),
                };
                let dst = problem.desc_of(Arg::Dst)?.expect("dst");
                let mut builder = builder.dst(&dst).scale_shift_type(params).attr(&attr);
                if let Some(stats) = &stats {
                    builder = builder.stats(stats);
                }
                builder.epsilon(epsilon).flags(flags).build().map(Self::Forward)
            }
            _ => {
                let builder = match prop_kind {
                    PropKind::Backward => Backward::new(engine, &src),
                    _ => Backward::data(engine, &src),
                };
                let diff_src = problem.desc_of(Arg::DiffSrc)?.expect("diff_src");
                let diff_dst = problem.desc_of(Arg::DiffDst)?.expect("diff_dst");
                let diff_params = problem.type_of([Arg::DiffScale, Arg::DiffShift]);
                let mut builder = builder.diff_src(&diff_src).diff_dst(&diff_dst).attr(&attr);
                builder = builder.scale_shift_type(params).diff_scale_shift_type(diff_params);
                if let Some(stats) = &stats {
                    builder = builder.stats(stats);
                }
                builder.epsilon(epsilon).flags(flags).build().map(Self::Backward)
            }
        }
    }

    fn primitive(&self) -> &Primitive {
        match self {
            Self::Forward(forward) => forward.primitive(),
            Self::Backward(backward) => backward.primitive(),
            Self::Group(forward) => forward.primitive(),
            Self::GroupBackward(backward) => backward.primitive(),
            Self::Softmax(forward) => forward.primitive(),
            Self::SoftmaxBackward(backward) => backward.primitive(),
            Self::Rope(forward) => forward.primitive(),
            Self::RopeBackward(backward) => backward.primitive(),
            Self::Elementwise(elementwise) => elementwise.primitive(),
            Self::Attention(forward) => forward.primitive(),
            Self::AttentionBackward(backward) => backward.primitive(),
        }
    }
}

/// Addresses, one for each operand of the problem.
pub(crate) type Addresses = ArrayVec<*mut u8, MAX_OPERANDS>;

/// A primitive and the objects for its arguments.
struct Plan {
    problem: Problem,
    /// The limit under which the primitive was created.
    isa: CpuIsa,
    computation: Computation,
    stream: Stream<'static>,
    /// One for each operand; they have no buffers between calls.
    memories: RefCell<Vec<Memory<'static>>>,
}

impl Plan {
    fn new(problem: &Problem, isa: CpuIsa) -> Result<Self> {
        let engine = Engine::cpu()?;
        let computation = Computation::new(&engine, problem)?;
        let memory = |operand: &Operand| {
            // SAFETY: null is allowed.
            unsafe { Memory::from_raw(&engine, &problem.desc(operand)?, std::ptr::null_mut()) }
        };
        let memories = problem.operands.iter().map(memory).collect::<Result<_>>()?;
        Ok(Self {
            problem: problem.clone(),
            isa,
            computation,
            stream: Stream::new(&engine)?,
            memories: RefCell::new(memories),
        })
    }

    /// # Safety
    /// Each address is that of a buffer of its operand's type and layout. Inputs are readable and
    /// outputs writable until the call returns.
    unsafe fn execute(&self, addresses: &[*mut u8]) -> Result<()> {
        let primitive = self.computation.primitive();
        let mut memories = self.memories.borrow_mut();
        let mut args = Args::new();
        let bound = memories.iter_mut().zip(addresses).zip(&self.problem.operands);
        for ((memory, &address), operand) in bound {
            // SAFETY: guaranteed by the caller. The memory is only used here, and gets new addresses before each
            // execution.
            unsafe { memory.set_raw(address) }?;
            args = if primitive.writes(operand.arg) {
                args.output(operand.arg, memory)
            } else {
                args.input(operand.arg, memory)
            };
        }
        primitive.execute(&self.stream, args)
    }
}

thread_local! {
    /// Most recently used first.
    static CACHE: RefCell<Vec<Rc<Plan>>> = const { RefCell::new(Vec::new()) };
    /// Whether a call on this thread has succeeded.
    static EXECUTED: Cell<bool> = const { Cell::new(false) };
}

/// The plan for a problem, from the cache or new. It moves to the front of the cache.
fn plan(problem: &Problem) -> Result<Rc<Plan>> {
    // The instruction-set limit applies to new primitives and may change between calls.
    let isa = effective_cpu_isa();
    CACHE.with_borrow_mut(|plans| {
        let found = plans.iter().position(|plan| plan.isa == isa && plan.problem == *problem);
        match found {
            Some(at) => plans[..=at].rotate_right(1),
            None => {
                let plan = Rc::new(Plan::new(problem, isa)?);
                plans.truncate(CACHED - 1);
                plans.insert(0, plan);
            }
        }
        Ok(Rc::clone(&plans[0]))
    })
}

/// Computes a problem.
///
/// # Safety
/// Each address is that of a buffer of its operand's type and layout. Inputs are readable and
/// outputs writable until the call returns.
pub(crate) unsafe fn execute(problem: &Problem, addresses: &Addresses) -> Result<()> {
    let plan = plan(problem)?;
    // SAFETY: guaranteed by the caller.
    unsafe { plan.execute(addresses) }?;
    EXECUTED.set(true);
    Ok(())
}

/// The name of the implementation that the calling thread used last.
pub(crate) fn last_implementation() -> Option<String> {
    if !EXECUTED.get() {
        return None;
    }
    let name = |plan: &Rc<Plan>| plan.computation.primitive().implementation().to_string();
    CACHE.with_borrow(|plans| plans.first().map(name))
}
