//! The forward pass: builder, primitive, arguments.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::{DEFAULT_EPSILON, Flags};
use crate::attr::Attr;
use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive, PropKind};
use crate::stream::Stream;
use crate::tag::Tag;

/// Builds a [`Forward`]; see [`Forward::training`] and [`Forward::inference`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    engine: &'b Engine,
    prop_kind: PropKind,
    src: &'b MemoryDesc,
    dst: Option<&'b MemoryDesc>,
    stats: Option<&'b MemoryDesc>,
    scale_shift_type: DataType,
    epsilon: f32,
    flags: Flags,
    attr: Option<&'b Attr>,
}

impl<'b> ForwardBuilder<'b> {
    fn new(engine: &'b Engine, prop_kind: PropKind, src: &'b MemoryDesc) -> Self {
        Self {
            engine,
            prop_kind,
            src,
            dst: None,
            stats: None,
            scale_shift_type: DataType::F32,
            epsilon: DEFAULT_EPSILON,
            flags: Flags::NONE,
            attr: None,
        }
    }

    /// The destination: the dimensions of `src`, and a type that the [module](super) lists.
    /// Default: type and layout of `src`.
    pub fn dst(self, desc: &'b MemoryDesc) -> Self {
        Self { dst: Some(desc), ..self }
    }

    /// Mean and variance: f32, the dimensions of `src` without the last. Default: the dimension
    /// order of `src`.
    pub fn stats(self, desc: &'b MemoryDesc) -> Self {
        Self { stats: Some(desc), ..self }
    }

    /// The element type of scale and shift: f32 (the default), bf16 or f16.
    pub fn scale_shift_type(self, data_type: DataType) -> Self {
        Self { scale_shift_type: data_type, ..self }
    }

    /// Added to the variance under the root; finite and not negative. Default: [`DEFAULT_EPSILON`].
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon, ..self }
    }

    /// The flags. Default: none.
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
    pub fn build(self) -> Result<Forward> {
        let like_src;
        let dst = match self.dst {
            Some(dst) => dst,
            None => {
                like_src = any_like(self.src)?;
                &like_src
            }
        };
        // SAFETY: all objects are valid, NULL is allowed for stat_desc and attr; on success a
        // primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_layer_normalization_forward_primitive_desc_create_v2(
                    out,
                    self.engine.as_ptr(),
                    self.prop_kind.to_c(),
                    self.src.as_ptr(),
                    dst.as_ptr(),
                    self.stats.map_or(ptr::null(), MemoryDesc::as_ptr),
                    self.scale_shift_type.to_c(),
                    self.epsilon,
                    self.flags.to_c(),
                    self.attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        let primitive = Primitive::new(&desc)?;
        Ok(Forward {
            primitive,
            prop_kind: self.prop_kind,
            epsilon: self.epsilon,
            flags: self.flags,
        })
    }
}

/// The dimensions and type of a tensor, with any layout.
pub(crate) fn any_like(src: &MemoryDesc) -> Result<MemoryDesc> {
    let data_type = src.data_type().ok_or_else(|| {
        Error::invalid("src", "is an empty descriptor; describe its dimensions and type")
    })?;
    MemoryDesc::with_tag(&src.dims(), data_type, Tag::Any)
}

/// The forward pass of layer or RMS normalization. The formulas are at the [module](super).
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let stream = Stream::new(&engine)?;
/// let rows = MemoryDesc::dense(&[2, 2], DataType::F32)?;
/// let rms_norm = Forward::inference(&engine, &rows).flags(Flags::RMS_NORM).epsilon(0.0).build()?;
///
/// let x = [1.0f32, 7.0, 6.0, 8.0]; // root mean squares 5 and sqrt(50)
/// let mut y = [0.0f32; 4];
/// let src = Memory::from_slice(&engine, &rows, &x)?;
/// let mut dst = Memory::from_mut_slice(&engine, &rows, &mut y)?;
/// rms_norm.execute(&stream, ForwardArgs::new(&src, &mut dst))?;
/// assert_eq!(y[..2], [0.2, 1.4]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Forward {
    primitive: Primitive,
    prop_kind: PropKind,
    epsilon: f32,
    flags: Flags,
}

impl Forward {
    /// A forward pass with mean and variance as outputs for the backward pass.
    ///
    /// `src` has 2 to 5 dimensions, a type that the [module](super) lists, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    pub fn training<'b>(engine: &'b Engine, src: &'b MemoryDesc) -> ForwardBuilder<'b> {
        ForwardBuilder::new(engine, PropKind::ForwardTraining, src)
    }

    /// A forward pass without statistics as outputs.
    ///
    /// `src` has 2 to 5 dimensions, a type that the [module](super) lists, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    pub fn inference<'b>(engine: &'b Engine, src: &'b MemoryDesc) -> ForwardBuilder<'b> {
        ForwardBuilder::new(engine, PropKind::ForwardInference, src)
    }

    /// Normalizes. The outputs are complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used with these flags, or does not have the primitive's descriptor. On
    /// failure nothing is written.
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: ForwardArgs<'_>) -> Result<()> {
        self.primitive.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: ForwardArgs<'x>) -> Result<Call<'x>> {
        self.primitive.with(args.0)
    }

    pub(crate) fn into_primitive(self) -> Primitive {
        self.primitive
    }

    /// The primitive: descriptors of the arguments, name of the implementation, scratchpad.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }

    /// Training or inference.
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

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward")
            .field("prop_kind", &self.prop_kind)
            .field("flags", &self.flags)
            .field("epsilon", &self.epsilon)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one forward execution.
///
/// | | `scale`, `shift` | `mean`, `variance` |
/// |---|---|---|
/// | inference | with their flags | no |
/// | training | with their flags | `mean_out`, `variance_out` |
/// | `GLOBAL_STATS` | with their flags | `mean`, `variance` |
/// | `RMS_NORM` | with their flags | as above without the mean |
///
/// One memory cannot be source and destination by accident; use [`in_place`](Self::in_place):
///
/// ```compile_fail,E0502
/// # use norm_rs::layer_normalization::ForwardArgs;
/// # use norm_rs::{DataType, Engine, Memory, MemoryDesc};
/// # let engine = Engine::cpu()?;
/// # let desc = MemoryDesc::dense(&[2, 3], DataType::F32)?;
/// let mut x = Memory::new(&engine, &desc)?;
/// let args = ForwardArgs::new(&x, &mut x);
/// # Ok::<(), norm_rs::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct ForwardArgs<'x>(pub(crate) Args<'x>);

impl<'x> ForwardArgs<'x> {
    /// From `src` to `dst`.
    pub fn new<A: Access>(src: &'x Memory<'_, A>, dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, src).output(Arg::Dst, dst))
    }

    /// `src` is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place(src_dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().in_place(Arg::Src, Arg::Dst, src_dst))
    }

    /// Input of `[C]` with [`Flags::SCALE`].
    pub fn scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Scale, scale))
    }

    /// Input of `[C]` with [`Flags::SHIFT`].
    pub fn shift<A: Access>(self, shift: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Shift, shift))
    }

    /// Input with [`Flags::GLOBAL_STATS`], without [`Flags::RMS_NORM`].
    pub fn mean<A: Access>(self, mean: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Mean, mean))
    }

    /// Input with [`Flags::GLOBAL_STATS`].
    pub fn variance<A: Access>(self, variance: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Variance, variance))
    }

    /// Output of training, without [`Flags::RMS_NORM`].
    pub fn mean_out(self, mean: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Mean, mean))
    }

    /// Output of training.
    pub fn variance_out(self, variance: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Variance, variance))
    }

    /// The scale that the result is multiplied by before post-operations, with [`Attr::set_scales`]
    /// of [`Arg::Src`].
    pub fn src_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::SrcScale, scale))
    }

    /// The scale that the result is divided by before it is rounded, with [`Attr::set_scales`] of
    /// [`Arg::Dst`].
    pub fn dst_scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::DstScale, scale))
    }

    /// Output with [`Attr::set_dynamic_scales`]: the scales that the library computed.
    pub fn dst_scale_out(self, scale: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DstScale, scale))
    }

    /// Output with [`Attr::set_dynamic_zero_points`].
    pub fn dst_zero_point_out(self, zero_point: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DstZeroPoint, zero_point))
    }

    /// Input with [`Attr::set_residual`]: the residual, added to `src`.
    pub fn residual<A: Access>(self, residual: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Residual, residual))
    }

    /// Output with [`Attr::set_residual`]: `src + residual`.
    pub fn residual_dst(self, sum: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::ResidualDst, sum))
    }

    /// The residual is overwritten with the sum; their types and layouts must be the same.
    pub fn residual_in_place(self, residual: &'x mut Memory<'_>) -> Self {
        Self(self.0.in_place(Arg::Residual, Arg::ResidualDst, residual))
    }

    /// Input with [`Attr::set_gate`].
    pub fn gate<A: Access>(self, gate: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Gate, gate))
    }

    /// The operand of entry `index` of the [post-operations](crate::post_ops::PostOps).
    pub fn operand<A: Access>(self, index: usize, operand: &'x Memory<'_, A>) -> Self {
        Self(self.0.operand(index, operand))
    }

    /// The condition of entry `index`, which is a [`select`](crate::post_ops::PostOps::select).
    pub fn condition<A: Access>(self, index: usize, condition: &'x Memory<'_, A>) -> Self {
        Self(self.0.condition(index, condition))
    }

    /// The scratchpad, with the descriptor [`Primitive::scratchpad_desc`] and
    /// [`ScratchpadMode::User`](crate::attr::ScratchpadMode::User).
    pub fn scratchpad(self, scratchpad: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Scratchpad, scratchpad))
    }
}
