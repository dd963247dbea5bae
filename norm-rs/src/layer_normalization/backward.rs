//! The backward pass: builder, primitive, arguments.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::forward::any_like;
use super::{DEFAULT_EPSILON, Flags};
use crate::attr::Attr;
use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive, PropKind};
use crate::stream::Stream;

/// Builds a [`Backward`]; see [`Backward::new`] and [`Backward::data`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    engine: &'b Engine,
    prop_kind: PropKind,
    src: &'b MemoryDesc,
    diff_src: Option<&'b MemoryDesc>,
    diff_dst: Option<&'b MemoryDesc>,
    stats: Option<&'b MemoryDesc>,
    scale_shift_type: DataType,
    diff_scale_shift_type: DataType,
    epsilon: f32,
    flags: Flags,
    attr: Option<&'b Attr>,
}

impl<'b> BackwardBuilder<'b> {
    fn of_kind(engine: &'b Engine, prop_kind: PropKind, src: &'b MemoryDesc) -> Self {
        Self {
            engine,
            prop_kind,
            src,
            diff_src: None,
            diff_dst: None,
            stats: None,
            scale_shift_type: DataType::F32,
            diff_scale_shift_type: DataType::F32,
            epsilon: DEFAULT_EPSILON,
            flags: Flags::NONE,
            attr: None,
        }
    }

    /// The gradient with respect to `src`: the dimensions of `src`; f32, bf16, f16 or f64. Default:
    /// type and layout of `src`.
    pub fn diff_src(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_src: Some(desc), ..self }
    }

    /// The gradient with respect to `dst`: the dimensions of `src`; f32, bf16, f16 or f64. Default:
    /// type and layout of `src`.
    pub fn diff_dst(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_dst: Some(desc), ..self }
    }

    /// Mean and variance: f32, the dimensions of `src` without the last. Default: the dimension
    /// order of `src`.
    pub fn stats(self, desc: &'b MemoryDesc) -> Self {
        Self { stats: Some(desc), ..self }
    }

    /// The element type of `scale`: f32 (the default), bf16 or f16.
    pub fn scale_shift_type(self, data_type: DataType) -> Self {
        Self { scale_shift_type: data_type, ..self }
    }

    /// The element type of `diff_scale` and `diff_shift`: f32 (the default), bf16 or f16.
    pub fn diff_scale_shift_type(self, data_type: DataType) -> Self {
        Self { diff_scale_shift_type: data_type, ..self }
    }

    /// Added to the variance under the root in the forward pass; finite and not negative. Default:
    /// [`DEFAULT_EPSILON`].
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon, ..self }
    }

    /// The flags of the forward pass. Default: none.
    pub fn flags(self, flags: Flags) -> Self {
        Self { flags, ..self }
    }

    /// Attributes; `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if types, dimensions,
    /// epsilon or flags are inconsistent.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for attributes that the
    /// operation does not support.
    pub fn build(self) -> Result<Backward> {
        let like_src = match (self.diff_src, self.diff_dst) {
            (Some(_), Some(_)) => None,
            _ => Some(any_like(self.src)?),
        };
        let diff = |given: Option<&MemoryDesc>| {
            given.or(like_src.as_ref()).map_or(ptr::null(), MemoryDesc::as_ptr)
        };
        // SAFETY: all objects are valid, NULL is allowed for stat_desc, the hint and attr; on
        // success a primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_layer_normalization_backward_primitive_desc_create_v2(
                    out,
                    self.engine.as_ptr(),
                    self.prop_kind.to_c(),
                    diff(self.diff_src),
                    diff(self.diff_dst),
                    self.src.as_ptr(),
                    self.stats.map_or(ptr::null(), MemoryDesc::as_ptr),
                    self.diff_scale_shift_type.to_c(),
                    self.scale_shift_type.to_c(),
                    self.epsilon,
                    self.flags.to_c(),
                    ptr::null(),
                    self.attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        let primitive = Primitive::new(&desc)?;
        Ok(Backward {
            primitive,
            prop_kind: self.prop_kind,
            epsilon: self.epsilon,
            flags: self.flags,
        })
    }
}

/// The backward pass of layer or RMS normalization. The formulas are at the [module](super).
///
/// Threads can share it and execute it at the same time. `examples/training_step.rs` has both
/// passes.
pub struct Backward {
    primitive: Primitive,
    prop_kind: PropKind,
    epsilon: f32,
    flags: Flags,
}

impl Backward {
    /// The gradients of the source and, with their flags, of scale and shift.
    ///
    /// `src` has 2 to 5 dimensions, f32, bf16, f16 or f64, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    #[expect(clippy::new_ret_no_self, reason = "builders read Forward::training, Backward::new")]
    pub fn new<'b>(engine: &'b Engine, src: &'b MemoryDesc) -> BackwardBuilder<'b> {
        BackwardBuilder::of_kind(engine, PropKind::Backward, src)
    }

    /// The gradient of the source only, for frozen parameters. `scale` is still read with its flag.
    ///
    /// `src` has 2 to 5 dimensions, f32, bf16, f16 or f64, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    pub fn data<'b>(engine: &'b Engine, src: &'b MemoryDesc) -> BackwardBuilder<'b> {
        BackwardBuilder::of_kind(engine, PropKind::BackwardData, src)
    }

    /// Computes the gradients. The outputs are complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used with these flags, or does not have the primitive's descriptor. On
    /// failure nothing is written.
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: BackwardArgs<'_>) -> Result<()> {
        self.primitive.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: BackwardArgs<'x>) -> Result<Call<'x>> {
        self.primitive.with(args.0)
    }

    pub(crate) fn into_primitive(self) -> Primitive {
        self.primitive
    }

    /// The primitive: descriptors of the arguments, name of the implementation, scratchpad.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }

    /// `Backward` or `BackwardData`.
    pub fn prop_kind(&self) -> PropKind {
        self.prop_kind
    }

    /// Added to the variance under the root.
    pub fn epsilon(&self) -> f32 {
        self.epsilon
    }

    /// The flags.
    pub fn flags(&self) -> Flags {
        self.flags
    }
}

impl fmt::Debug for Backward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backward")
            .field("prop_kind", &self.prop_kind)
            .field("flags", &self.flags)
            .field("epsilon", &self.epsilon)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one backward execution.
///
/// Required: `src`, `diff_dst`, `diff_src`, [`variance`](Self::variance) (an input, from the
/// forward pass) and, without [`Flags::RMS_NORM`], [`mean`](Self::mean). The others depend on their
/// flags.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(pub(crate) Args<'x>);

impl<'x> BackwardArgs<'x> {
    /// From `src` and `diff_dst` to `diff_src`.
    pub fn new<A: Access, B: Access>(
        src: &'x Memory<'_, A>,
        diff_dst: &'x Memory<'_, B>,
        diff_src: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(Arg::Src, src).input(Arg::DiffDst, diff_dst);
        Self(args.output(Arg::DiffSrc, diff_src))
    }

    /// `diff_dst` is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place<A: Access>(src: &'x Memory<'_, A>, diff: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, src).in_place(Arg::DiffDst, Arg::DiffSrc, diff))
    }

    /// Input from the forward pass, without [`Flags::RMS_NORM`].
    pub fn mean<A: Access>(self, mean: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Mean, mean))
    }

    /// Input from the forward pass.
    pub fn variance<A: Access>(self, variance: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Variance, variance))
    }

    /// Input of `[C]` with [`Flags::SCALE`].
    pub fn scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Scale, scale))
    }

    /// Input of `[C]` with [`Flags::SHIFT`] and [`Flags::GATE_OUTPUT`], whose gradient needs it.
    pub fn shift<A: Access>(self, shift: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Shift, shift))
    }

    /// Input with [`Attr::set_residual`]: the gradient of the stored sum. `src` is that sum, and
    /// `diff_src` the gradient of both summands.
    pub fn diff_residual_dst<A: Access>(self, diff_sum: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::DiffResidualDst, diff_sum))
    }

    /// Input with [`Attr::set_gate`].
    pub fn gate<A: Access>(self, gate: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Gate, gate))
    }

    /// Output with [`Attr::set_gate`]: the gradient of the gate.
    pub fn diff_gate(self, diff_gate: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffGate, diff_gate))
    }

    /// Output of `[C]` with [`Flags::SCALE`], not for [`Backward::data`].
    pub fn diff_scale(self, diff_scale: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffScale, diff_scale))
    }

    /// Output of `[C]` with [`Flags::SHIFT`], not for [`Backward::data`].
    pub fn diff_shift(self, diff_shift: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffShift, diff_shift))
    }

    /// The scratchpad, with the descriptor [`Primitive::scratchpad_desc`] and
    /// [`ScratchpadMode::User`](crate::attr::ScratchpadMode::User).
    pub fn scratchpad(self, scratchpad: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Scratchpad, scratchpad))
    }
}
