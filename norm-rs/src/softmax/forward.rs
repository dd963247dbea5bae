//! The forward pass: builder, primitive, arguments.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::{Algorithm, axis_to_c};
use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// Builds a [`Forward`]; see [`Forward::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    engine: &'b Engine,
    src: &'b MemoryDesc,
    dst: Option<&'b MemoryDesc>,
    axis: usize,
    algorithm: Algorithm,
    attr: Option<&'b Attr>,
}

impl<'b> ForwardBuilder<'b> {
    /// The destination: the dimensions of `src`, and a type that the [module](super) lists.
    /// Default: type and layout of `src`.
    pub fn dst(self, desc: &'b MemoryDesc) -> Self {
        Self { dst: Some(desc), ..self }
    }

    /// What is computed. Default: [`Algorithm::Accurate`].
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Attributes: scales of src and dst, eltwise and binary post-operations. `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the axis is not a
    /// dimension of `src` or the dimensions differ.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that
    /// the operation does not support.
    pub fn build(self) -> Result<Forward> {
        let Self { engine, src, dst, axis, algorithm, attr } = self;
        let c_axis = axis_to_c(axis)?;
        // SAFETY: all objects are valid, NULL is allowed for attr; on success a primitive
        // descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_softmax_forward_primitive_desc_create(
                    out,
                    engine.as_ptr(),
                    // Training and inference are the same.
                    sys::norm_forward_training,
                    algorithm.to_c(),
                    src.as_ptr(),
                    dst.unwrap_or(src).as_ptr(),
                    c_axis,
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Forward { primitive: Primitive::new(&desc)?, algorithm, axis })
    }
}

/// The forward pass of softmax or logsoftmax. The formulas are at the [module](super).
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::softmax::{Algorithm, Forward, ForwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let desc = MemoryDesc::dense(&[2, 2], DataType::F32)?;
/// let log_softmax = Forward::new(&engine, &desc, 1).algorithm(Algorithm::Log).build()?;
///
/// let src = Memory::from_slice(&engine, &desc, &[0.0f32, 0.0, 1.0, 1.0])?;
/// let mut dst = Memory::new(&engine, &desc)?;
/// log_softmax.execute(&Stream::new(&engine)?, ForwardArgs::new(&src, &mut dst))?;
/// assert_eq!(dst.as_slice::<f32>()?, [-2f32.ln(); 4]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Forward {
    primitive: Primitive,
    algorithm: Algorithm,
    axis: usize,
}

impl Forward {
    /// A forward pass along dimension `axis` of `src`, counted from 0.
    ///
    /// `src` has 1 to 12 dimensions, a type that the [module](super) lists, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(engine: &'b Engine, src: &'b MemoryDesc, axis: usize) -> ForwardBuilder<'b> {
        let algorithm = Algorithm::default();
        ForwardBuilder { engine, src, dst: None, axis, algorithm, attr: None }
    }

    /// Computes `dst`, which is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used, or does not have the primitive's descriptor. On failure nothing is
    /// written.
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

    /// Softmax or logsoftmax.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The dimension of the rows.
    pub fn axis(&self) -> usize {
        self.axis
    }
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward")
            .field("algorithm", &self.algorithm)
            .field("axis", &self.axis)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one forward execution.
#[derive(Debug)]
#[must_use]
pub struct ForwardArgs<'x>(Args<'x>);

crate::args::dropout_args!(ForwardArgs);

impl<'x> ForwardArgs<'x> {
    /// From `src` to `dst`.
    pub fn new<A: Access>(src: &'x Memory<'_, A>, dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, src).output(Arg::Dst, dst))
    }

    /// `src` is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place(src_dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().in_place(Arg::Src, Arg::Dst, src_dst))
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

    /// The logarithms of the sums of the rows, with [`Attr::set_softmax_stats`].
    pub fn softmax_stats(self, stats: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::SoftmaxStats, stats))
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
