//! The backward pass: builder, primitive, arguments.

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

/// Builds a [`Backward`]; see [`Backward::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    engine: &'b Engine,
    dst: &'b MemoryDesc,
    diff_dst: Option<&'b MemoryDesc>,
    diff_src: Option<&'b MemoryDesc>,
    axis: usize,
    algorithm: Algorithm,
    attr: Option<&'b Attr>,
}

impl<'b> BackwardBuilder<'b> {
    /// The gradient with respect to `dst`: the dimensions of `dst`; f32, bf16 or f16. Default: type
    /// and layout of `dst`.
    pub fn diff_dst(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_dst: Some(desc), ..self }
    }

    /// The gradient with respect to `src`: the dimensions of `dst`; f32, bf16 or f16. Default: type
    /// and layout of `diff_dst`.
    pub fn diff_src(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_src: Some(desc), ..self }
    }

    /// What forward computed. Default: [`Algorithm::Accurate`].
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Attributes: the scratchpad mode. `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the axis is not a
    /// dimension of `dst` or the dimensions differ.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that
    /// the operation does not support.
    pub fn build(self) -> Result<Backward> {
        let Self { engine, dst, diff_dst, diff_src, axis, algorithm, attr } = self;
        let diff_dst = diff_dst.unwrap_or(dst);
        let c_axis = axis_to_c(axis)?;
        // SAFETY: all objects are valid, NULL is allowed for the hint and attr; on success a
        // primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_softmax_backward_primitive_desc_create(
                    out,
                    engine.as_ptr(),
                    algorithm.to_c(),
                    diff_src.unwrap_or(diff_dst).as_ptr(),
                    diff_dst.as_ptr(),
                    dst.as_ptr(),
                    c_axis,
                    ptr::null(),
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Backward { primitive: Primitive::new(&desc)?, algorithm, axis })
    }
}

/// The backward pass of softmax or logsoftmax. The formulas are at the [module](super).
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::softmax::{Backward, BackwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let desc = MemoryDesc::dense(&[1, 2], DataType::F32)?;
/// let softmax_backward = Backward::new(&engine, &desc, 1).build()?;
///
/// let dst = Memory::from_slice(&engine, &desc, &[0.5f32, 0.5])?;
/// let diff_dst = Memory::from_slice(&engine, &desc, &[1.0f32, 3.0])?;
/// let mut diff_src = Memory::new(&engine, &desc)?;
/// let args = BackwardArgs::new(&dst, &diff_dst, &mut diff_src);
/// softmax_backward.execute(&Stream::new(&engine)?, args)?;
/// assert_eq!(diff_src.as_slice::<f32>()?, [-0.5, 0.5]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Backward {
    primitive: Primitive,
    algorithm: Algorithm,
    axis: usize,
}

impl Backward {
    /// A backward pass along dimension `axis` of `dst`, counted from 0.
    ///
    /// `dst` has 1 to 12 dimensions, f32, bf16 or f16, and any layout except
    /// [`Tag::Any`](crate::Tag::Any).
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(engine: &'b Engine, dst: &'b MemoryDesc, axis: usize) -> BackwardBuilder<'b> {
        let algorithm = Algorithm::default();
        BackwardBuilder { engine, dst, diff_dst: None, diff_src: None, axis, algorithm, attr: None }
    }

    /// Computes `diff_src`, which is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it
    /// is missing, not used, or does not have the primitive's descriptor. On failure nothing is
    /// written.
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

    /// Softmax or logsoftmax.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The dimension of the rows.
    pub fn axis(&self) -> usize {
        self.axis
    }
}

impl fmt::Debug for Backward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backward")
            .field("algorithm", &self.algorithm)
            .field("axis", &self.axis)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one backward execution.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(Args<'x>);

impl<'x> BackwardArgs<'x> {
    /// From `dst` and `diff_dst` to `diff_src`.
    pub fn new<A: Access, B: Access>(
        dst: &'x Memory<'_, A>,
        diff_dst: &'x Memory<'_, B>,
        diff_src: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(Arg::Dst, dst).input(Arg::DiffDst, diff_dst);
        Self(args.output(Arg::DiffSrc, diff_src))
    }

    /// `diff_dst` is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place<A: Access>(dst: &'x Memory<'_, A>, diff: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Dst, dst).in_place(Arg::DiffDst, Arg::DiffSrc, diff))
    }

    /// `dst` is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place_of_dst<A: Access>(
        dst_diff: &'x mut Memory<'_>,
        diff_dst: &'x Memory<'_, A>,
    ) -> Self {
        let args = Args::new().in_place(Arg::Dst, Arg::DiffSrc, dst_diff);
        Self(args.input(Arg::DiffDst, diff_dst))
    }

    /// The scratchpad, with the descriptor [`Primitive::scratchpad_desc`] and
    /// [`ScratchpadMode::User`](crate::attr::ScratchpadMode::User).
    pub fn scratchpad(self, scratchpad: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Scratchpad, scratchpad))
    }
}
