//! The arguments of an execution: [`Arg`] and their memories ([`Args`]).

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use norm_sys as sys;

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};

macro_rules! args {
    ($($(#[$doc:meta])* $arg:ident = $constant:expr, $name:literal;)*) => {
        /// An argument of an execution.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Arg {
            $($(#[$doc])* $arg,)*
        }

        impl Arg {
            pub(crate) const ALL: &[Self] = &[$(Self::$arg,)*];

            /// The argument's name in errors and formulas: `"src"`, `"diff_scale"`, ...
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$arg => $name,)*
                }
            }

            pub(crate) fn to_c(self) -> i32 {
                match self {
                    $(Self::$arg => $constant,)*
                }
            }
        }
    };
}
args! {
    /// The source.
    Src = sys::NORM_ARG_SRC, "src";
    /// The second source.
    Src1 = sys::NORM_ARG_SRC_1, "src1";
    /// The condition of a selection.
    Src2 = sys::NORM_ARG_SRC_2, "src2";
    /// The destination.
    Dst = sys::NORM_ARG_DST, "dst";
    /// The mean of each row.
    Mean = sys::NORM_ARG_MEAN, "mean";
    /// The variance of each row; with RMS normalization, the mean of its squares.
    Variance = sys::NORM_ARG_VARIANCE, "variance";
    /// The factor of each column.
    Scale = sys::NORM_ARG_SCALE, "scale";
    /// The offset of each column.
    Shift = sys::NORM_ARG_SHIFT, "shift";
    /// The scratchpad.
    Scratchpad = sys::NORM_ARG_SCRATCHPAD, "scratchpad";
    /// The gradient with respect to the source.
    DiffSrc = sys::NORM_ARG_DIFF_SRC, "diff_src";
    /// The gradient with respect to the destination.
    DiffDst = sys::NORM_ARG_DIFF_DST, "diff_dst";
    /// The gradient with respect to the scale.
    DiffScale = sys::NORM_ARG_DIFF_SCALE, "diff_scale";
    /// The gradient with respect to the shift.
    DiffShift = sys::NORM_ARG_DIFF_SHIFT, "diff_shift";
    /// The scale that the source is multiplied by.
    SrcScale = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_SRC, "src_scale";
    /// The scale that the second source is multiplied by.
    Src1Scale = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_SRC_1, "src1_scale";
    /// The scales that the keys of attention are multiplied by.
    KeyScales = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_KEYS, "key_scales";
    /// The scales that the values of attention are multiplied by.
    ValueScales = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_VALUES, "value_scales";
    /// The scale that the destination is divided by.
    DstScale = sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST, "dst_scale";
    /// The zero points that dynamic quantization adds to the destination.
    DstZeroPoint = sys::NORM_ARG_ATTR_ZERO_POINTS | sys::NORM_ARG_DST, "dst_zero_point";
    /// The residual, added to the source before it is normalized.
    Residual = sys::NORM_ARG_RESIDUAL, "residual";
    /// The sum of source and residual.
    ResidualDst = sys::NORM_ARG_RESIDUAL_DST, "residual_dst";
    /// The gradient with respect to that sum.
    DiffResidualDst = sys::NORM_ARG_DIFF_RESIDUAL_DST, "diff_residual_dst";
    /// The gate, a factor of the result or of the input of the normalization.
    Gate = sys::NORM_ARG_GATE, "gate";
    /// The gradient with respect to the gate.
    DiffGate = sys::NORM_ARG_DIFF_GATE, "diff_gate";
    /// The positions of tokens.
    Positions = sys::NORM_ARG_POSITIONS, "positions";
    /// Radians per position, for each pair.
    RopeFrequencies = sys::NORM_ARG_ROPE_FREQUENCIES, "frequencies";
    /// The cosines of each position.
    RopeCos = sys::NORM_ARG_ROPE_COS, "cos";
    /// The sines of each position.
    RopeSin = sys::NORM_ARG_ROPE_SIN, "sin";
    /// The rows of the destination that tokens are written to.
    Slots = sys::NORM_ARG_SLOTS, "slots";
    /// The gradient with respect to the second source.
    DiffSrc1 = sys::NORM_ARG_DIFF_SRC_1, "diff_src1";
    /// The logarithms of the sums of softmax.
    SoftmaxStats = sys::NORM_ARG_SOFTMAX_STATS, "softmax_stats";
    /// Which elements dropout keeps.
    DropoutMask = sys::NORM_ARG_ATTR_DROPOUT_MASK, "dropout_mask";
    /// The probability that an element is dropped.
    DropoutProbability = sys::NORM_ARG_ATTR_DROPOUT_PROBABILITY, "dropout_probability";
    /// The seed of dropout.
    DropoutSeed = sys::NORM_ARG_ATTR_DROPOUT_SEED, "dropout_seed";
    /// The offset of dropout.
    DropoutOffset = sys::NORM_ARG_ATTR_DROPOUT_OFFSET, "dropout_offset";
    /// The queries of attention.
    Queries = sys::NORM_ARG_QUERIES, "queries";
    /// The keys of attention.
    Keys = sys::NORM_ARG_KEYS, "keys";
    /// The values of attention.
    Values = sys::NORM_ARG_VALUES, "values";
    /// The mask of attention.
    AttnMask = sys::NORM_ARG_ATTN_MASK, "attn_mask";
    /// The gradient with respect to the queries.
    DiffQueries = sys::NORM_ARG_DIFF_QUERIES, "diff_queries";
    /// The gradient with respect to the keys.
    DiffKeys = sys::NORM_ARG_DIFF_KEYS, "diff_keys";
    /// The gradient with respect to the values.
    DiffValues = sys::NORM_ARG_DIFF_VALUES, "diff_values";
    /// What backward needs of forward: of attention the logarithms of the sums.
    Workspace = sys::NORM_ARG_WORKSPACE, "workspace";
    /// The logits of attention's sinks.
    Sinks = sys::NORM_ARG_SINKS, "sinks";
    /// The gradient with respect to the mask of attention.
    DiffAttnMask = sys::NORM_ARG_DIFF_ATTN_MASK, "diff_attn_mask";
    /// The gradient with respect to the sinks.
    DiffSinks = sys::NORM_ARG_DIFF_SINKS, "diff_sinks";
    /// The slopes of ALiBi.
    AlibiSlopes = sys::NORM_ARG_ALIBI_SLOPES, "alibi_slopes";
    /// The queries of each sequence.
    QueryLengths = sys::NORM_ARG_QUERY_LENGTHS, "query_lengths";
    /// The keys of each sequence.
    KeyLengths = sys::NORM_ARG_KEY_LENGTHS, "key_lengths";
    /// The first queries of packed sequences.
    QueryOffsets = sys::NORM_ARG_QUERY_OFFSETS, "query_offsets";
    /// The first keys of packed sequences.
    KeyOffsets = sys::NORM_ARG_KEY_OFFSETS, "key_offsets";
    /// The pages of each sequence.
    PageTable = sys::NORM_ARG_PAGE_TABLE, "page_table";
    /// The mean entropy of the weights of attention.
    Entropy = sys::NORM_ARG_ENTROPY, "entropy";
}

impl Arg {
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// Whether this is the name of its id in a primitive of this kind: attention has its own names for some ids.
    pub(crate) fn is_of(self, kind: sys::norm_primitive_kind_t) -> bool {
        let attention = kind == sys::norm_sdpa;
        match self {
            Self::Src | Self::Src1 | Self::Src2 | Self::Shift => !attention,
            Self::DiffSrc | Self::DiffSrc1 | Self::DiffShift => !attention,
            Self::Queries | Self::Keys | Self::Values | Self::AttnMask => attention,
            Self::DiffQueries | Self::DiffKeys | Self::DiffValues => attention,
            Self::DiffAttnMask | Self::KeyScales | Self::ValueScales => attention,
            Self::SrcScale | Self::Src1Scale => !attention,
            _ => true,
        }
    }

    /// How to pass the argument, for messages.
    pub(crate) fn passed(self, direction: Direction) -> &'static str {
        match (self, direction) {
            (Self::Src | Self::Src1 | Self::Dst | Self::DiffSrc | Self::DiffDst, _) => {
                "to new() or in_place() of the arguments"
            }
            (Self::Mean, Direction::Output) => "with mean_out()",
            (Self::Variance, Direction::Output) => "with variance_out()",
            (Self::Mean, Direction::Input) => "with mean()",
            (Self::Variance, Direction::Input) => "with variance()",
            (Self::Scale, _) => "with scale()",
            (Self::Shift, _) => "with shift()",
            (Self::Scratchpad, _) => "with scratchpad()",
            (Self::DiffScale, _) => "with diff_scale()",
            (Self::DiffShift, _) => "with diff_shift()",
            (Self::SrcScale, _) => "with src_scale()",
            (Self::Src1Scale, _) => "with src1_scale()",
            (Self::KeyScales, _) => "with key_scales()",
            (Self::ValueScales, _) => "with value_scales()",
            (Self::Src2, _) => "with select() of the arguments",
            (Self::DstScale, Direction::Input) => "with dst_scale()",
            (Self::DstScale, Direction::Output) => "with dst_scale_out()",
            (Self::DstZeroPoint, _) => "with dst_zero_point_out()",
            (Self::Residual, _) => "with residual()",
            (Self::ResidualDst, _) => "with residual_dst() or residual_in_place()",
            (Self::DiffResidualDst, _) => "with diff_residual_dst()",
            (Self::Gate, _) => "with gate()",
            (Self::DiffGate, _) => "with diff_gate()",
            (Self::Positions, _) => "to new() or in_place() of the arguments",
            (Self::RopeFrequencies, _) => "with frequencies()",
            (Self::RopeCos | Self::RopeSin, _) => "with tables()",
            (Self::Slots, _) => "with slots()",
            (Self::DiffSrc1, _) => "with diff_up()",
            (Self::SoftmaxStats, _) => "with softmax_stats()",
            (Self::DropoutMask, _) => "with dropout_mask()",
            (Self::DropoutProbability | Self::DropoutSeed, _) => "with dropout()",
            (Self::DropoutOffset, _) => "with dropout_offset()",
            (Self::Queries | Self::Keys | Self::Values, _) => {
                "to new() or in_place() of the arguments"
            }
            (Self::DiffQueries | Self::DiffKeys | Self::DiffValues, _) => {
                "to new() of the arguments"
            }
            (Self::Workspace, Direction::Output) => "with log_sum_exp()",
            (Self::Workspace, Direction::Input) => "to new() of the arguments",
            (Self::AttnMask, _) => "with mask()",
            (Self::Sinks, _) => "with sinks()",
            (Self::DiffAttnMask, _) => "with diff_mask()",
            (Self::DiffSinks, _) => "with diff_sinks()",
            (Self::AlibiSlopes, _) => "with alibi_slopes()",
            (Self::QueryLengths, _) => "with query_lengths()",
            (Self::KeyLengths, _) => "with key_lengths()",
            (Self::QueryOffsets, _) => "with query_offsets()",
            (Self::KeyOffsets, _) => "with key_offsets()",
            (Self::PageTable, _) => "with page_table()",
            (Self::Entropy, _) => "with entropy()",
        }
    }

    /// How to build a primitive of layer normalization for the type of a memory, after the message that it has another.
    pub(crate) fn builder_of_type(
        self,
        given: Option<DataType>,
        own: Option<DataType>,
    ) -> &'static str {
        match self {
            _ if given == own => "",
            Self::Scale | Self::Shift => {
                ", or build a layer normalization with scale_shift_type of the memory's"
            }
            Self::DiffScale | Self::DiffShift => {
                ", or build a layer normalization with diff_scale_shift_type of the memory's"
            }
            _ => "",
        }
    }

    /// What to do about an argument that the primitive does not use, for messages.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::Scale => "leave it out, or build the primitive with Flags::SCALE",
            Self::Shift => "leave it out, or build the primitive with Flags::SHIFT",
            Self::Mean | Self::Variance => {
                "leave it out, or build the primitive for training or with Flags::GLOBAL_STATS"
            }
            Self::DiffScale => "leave it out, or use Backward::new with Flags::SCALE",
            Self::DiffShift => "leave it out, or use Backward::new with Flags::SHIFT",
            Self::SrcScale
            | Self::Src1Scale
            | Self::DstScale
            | Self::KeyScales
            | Self::ValueScales => "leave it out, or add it with Attr::set_scales",
            Self::Residual | Self::ResidualDst | Self::DiffResidualDst => {
                "leave it out, or add it with Attr::set_residual"
            }
            Self::Gate | Self::DiffGate => "leave it out, or add it with Attr::set_gate",
            Self::DstZeroPoint => "leave it out, or use Attr::set_dynamic_zero_points",
            Self::SoftmaxStats => "leave it out, or add it with Attr::set_softmax_stats",
            Self::DropoutMask
            | Self::DropoutProbability
            | Self::DropoutSeed
            | Self::DropoutOffset => "leave it out, or add it with Attr::set_dropout",
            Self::AttnMask
            | Self::PageTable
            | Self::Sinks
            | Self::DiffSinks
            | Self::DiffAttnMask
            | Self::AlibiSlopes
            | Self::QueryLengths
            | Self::KeyLengths
            | Self::QueryOffsets
            | Self::KeyOffsets
            | Self::Entropy => "leave it out, or build the primitive with it",
            Self::Workspace => "leave it out, or build the primitive with Forward::training",
            _ => "leave it out",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "an input",
            Self::Output => "an output",
        })
    }
}

/// The memories of one execution, borrowed for `'x`: inputs shared, outputs exclusively.
///
/// One memory cannot be input and output by accident; use [`in_place`](Self::in_place):
///
/// ```compile_fail,E0502
/// # use norm_rs::primitive::{Arg, Args};
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[2, 3], DataType::F32)?;
/// let mut x = Memory::new(&engine, &desc)?;
/// let args = Args::new().input(Arg::Src, &x).output(Arg::Dst, &mut x);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// Memory over a `&[T]` cannot be an output:
///
/// ```compile_fail,E0308
/// # use norm_rs::primitive::{Arg, Args};
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[3], DataType::F32)?;
/// let x = [1.0f32, 2.0, 3.0];
/// let mut memory = Memory::from_slice(&engine, &desc, &x)?;
/// let args = Args::new().output(Arg::Dst, &mut memory);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Args<'x> {
    slots: [Slot; Arg::COUNT],
    /// Operands of post-operations, by their C argument ids.
    pub(crate) operands: Vec<(i32, sys::norm_memory_t)>,
    memories: PhantomData<&'x mut ()>,
}

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// NULL if nothing is bound.
    pub(crate) memory: sys::norm_memory_t,
    pub(crate) direction: Direction,
    /// Whether the memory is a cache's, which may have more rows than the primitive.
    pub(crate) of_cache: bool,
}

impl Slot {
    const UNBOUND: Self =
        Self { memory: ptr::null_mut(), direction: Direction::Input, of_cache: false };

    pub(crate) fn is_bound(self) -> bool {
        !self.memory.is_null()
    }
}

impl Default for Args<'_> {
    fn default() -> Self {
        Self { slots: [Slot::UNBOUND; Arg::COUNT], operands: Vec::new(), memories: PhantomData }
    }
}

impl<'x> Args<'x> {
    /// No arguments yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds an input. Binding an argument again replaces its memory.
    #[must_use]
    pub fn input<A: Access>(self, arg: Arg, memory: &'x Memory<'_, A>) -> Self {
        self.bind(arg, memory.as_ptr(), Direction::Input)
    }

    /// Binds an output.
    #[must_use]
    pub fn output(self, arg: Arg, memory: &'x mut Memory<'_>) -> Self {
        self.bind(arg, memory.as_ptr(), Direction::Output)
    }

    /// Binds one memory as `input` and `output`. The primitive must have the same descriptor for both, and must allow
    /// it. In normalizations `Dst` may overwrite `Src`, `Residual` or `Gate`; `ResidualDst` `Src` or `Residual`; `DiffSrc`
    /// `DiffDst` or `DiffResidualDst`; `DiffGate` `Gate`. In the other operations `Dst` may overwrite `Src`, `Queries` of
    /// attention, and `Src1` of binary; `DiffSrc` may overwrite `DiffDst`, and the tensor that backward reads beside it.
    /// Each output of a gated activation may overwrite any input.
    #[must_use]
    pub fn in_place(self, input: Arg, output: Arg, memory: &'x mut Memory<'_>) -> Self {
        let memory = memory.as_ptr();
        self.bind(input, memory, Direction::Input).bind(output, memory, Direction::Output)
    }

    /// Binds the operand of entry `index` of the [post-operations](crate::post_ops::PostOps).
    #[must_use]
    pub fn operand<A: Access>(self, index: usize, memory: &'x Memory<'_, A>) -> Self {
        self.bind_operand(operand_id(index, sys::NORM_ARG_SRC_1), memory.as_ptr())
    }

    /// Binds the condition of entry `index`, which is a
    /// [`select`](crate::post_ops::PostOps::select).
    #[must_use]
    pub fn condition<A: Access>(self, index: usize, memory: &'x Memory<'_, A>) -> Self {
        self.bind_operand(operand_id(index, sys::NORM_ARG_SRC_2), memory.as_ptr())
    }

    fn bind_operand(mut self, id: i32, memory: sys::norm_memory_t) -> Self {
        self.operands.retain(|(bound, _)| *bound != id);
        self.operands.push((id, memory));
        self
    }

    fn bind(mut self, arg: Arg, memory: sys::norm_memory_t, direction: Direction) -> Self {
        self.slots[arg as usize] = Slot { memory, direction, of_cache: false };
        self
    }

    /// Binds the arguments that a KV cache lends for `'x`, for a primitive of a kind.
    pub(crate) fn of_cache(
        mut self,
        kind: sys::norm_primitive_kind_t,
        pairs: &[sys::norm_exec_arg_t],
    ) -> Result<Self> {
        for pair in pairs {
            let mut all = Arg::ALL.iter().filter(|arg| arg.is_of(kind));
            let arg = all.find(|arg| arg.to_c() == pair.arg);
            let &arg = arg.ok_or(Error::defect("the cache has an argument without a name"))?;
            let direction = if arg == Arg::Dst { Direction::Output } else { Direction::Input };
            self.slots[arg as usize] = Slot { memory: pair.memory, direction, of_cache: true };
        }
        Ok(self)
    }

    pub(crate) fn slot(&self, arg: Arg) -> Slot {
        self.slots[arg as usize]
    }

    /// Another argument that is bound to the memory of an output.
    pub(crate) fn shares(&self, output: Arg, memory: sys::norm_memory_t) -> Option<Arg> {
        let mut others = Arg::ALL.iter().copied().filter(|&arg| arg != output);
        others.find(|&arg| self.slot(arg).memory == memory)
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = Arg::ALL.iter().filter(|&&arg| self.slot(arg).is_bound());
        f.debug_list().entries(bound).finish()
    }
}

/// Maximum number of entries in a list.
pub(crate) const MAX_POST_OPS: usize = 32;

/// The C argument id of an operand of entry `index`; an invalid id if `index` is out of range.
pub(crate) fn operand_id(index: usize, arg: i32) -> i32 {
    if index < MAX_POST_OPS { sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(index as i32) | arg } else { -1 }
}

/// The arguments of [`Attr::set_dropout`](crate::attr::Attr::set_dropout), for each kind of arguments that has them.
macro_rules! dropout_args {
    ($args:ident) => {
        impl<'x> $args<'x> {
            /// The probability, f32, and the seed, s64, of dropout: one element each.
            pub fn dropout<A: Access, B: Access>(
                self,
                probability: &'x Memory<'_, A>,
                seed: &'x Memory<'_, B>,
            ) -> Self {
                let args = self.0.input(Arg::DropoutProbability, probability);
                Self(args.input(Arg::DropoutSeed, seed))
            }

            /// The offset of dropout, one element, s64.
            pub fn dropout_offset<A: Access>(self, offset: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::DropoutOffset, offset))
            }

            /// The mask of dropout: 1 for kept elements, 0 for dropped ones.
            pub fn dropout_mask(self, mask: &'x mut Memory<'_>) -> Self {
                Self(self.0.output(Arg::DropoutMask, mask))
            }
        }
    };
}
pub(crate) use dropout_args;
