//! The gradient of a gated activation.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::{Activation, Forward, ForwardBuilder, Packing};
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// Builds a [`Backward`]; see [`Backward::packed`] and [`Backward::separate`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    forward: ForwardBuilder<'b>,
    dst: Option<&'b MemoryDesc>,
    gradients: Option<(&'b MemoryDesc, Option<&'b MemoryDesc>)>,
}

impl<'b> BackwardBuilder<'b> {
    /// As [`ForwardBuilder::limit`].
    pub fn limit(self, limit: f32) -> Self {
        Self { forward: self.forward.limit(limit), ..self }
    }

    /// As [`ForwardBuilder::shift`].
    pub fn shift(self, shift: f32) -> Self {
        Self { forward: self.forward.shift(shift), ..self }
    }

    /// The descriptors of the gradients of src and, with [`Backward::separate`], of up. Default: those of the inputs.
    pub fn diff_src(self, diff_src: &'b MemoryDesc, diff_up: Option<&'b MemoryDesc>) -> Self {
        Self { gradients: Some((diff_src, diff_up)), ..self }
    }

    /// Forward's result is written again. Default: it is not.
    pub fn dst(self, desc: &'b MemoryDesc) -> Self {
        Self { dst: Some(desc), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// As [`ForwardBuilder::build`].
    pub fn build(self) -> Result<Backward> {
        let ForwardBuilder { engine, inputs, dst: diff_dst, activation, limit, shift, .. } =
            self.forward;
        let ((kind, alpha), (packing, src, up)) = (activation.to_c(), inputs.to_c());
        let (diff_src, diff_up) = match self.gradients {
            Some((first, second)) => {
                (first.as_ptr(), second.map_or(ptr::null(), MemoryDesc::as_ptr))
            }
            None => (src, up),
        };
        // SAFETY: all objects are valid, NULL is allowed for up, dst, the hint and attr; on success a primitive
        // descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_gated_backward_primitive_desc_create(
                    out,
                    engine.as_ptr(),
                    kind,
                    packing,
                    diff_src,
                    diff_up,
                    diff_dst.as_ptr(),
                    src,
                    up,
                    self.dst.map_or(ptr::null(), MemoryDesc::as_ptr),
                    alpha,
                    limit,
                    shift,
                    ptr::null(),
                    ptr::null(),
                )
            })
        }?;
        Ok(Backward { primitive: Primitive::new(&desc)?, activation })
    }
}

/// The gradient of a gated activation, from the inputs of forward.
///
/// ```
/// use norm_rs::gated::{Activation, Backward, BackwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let desc = MemoryDesc::dense(&[1, 2], DataType::F32)?;
/// let bilinear = Backward::separate(&engine, Activation::Linear(1.0), &desc, &desc, &desc).build()?;
///
/// let gate = Memory::from_slice(&engine, &desc, &[2.0f32, 3.0])?;
/// let up = Memory::from_slice(&engine, &desc, &[5.0f32, 7.0])?;
/// let diff_dst = Memory::from_slice(&engine, &desc, &[1.0f32, 10.0])?;
/// let (mut diff_gate, mut diff_up) = (Memory::new(&engine, &desc)?, Memory::new(&engine, &desc)?);
/// let args = BackwardArgs::new(&gate, &diff_dst, &mut diff_gate).up(&up).diff_up(&mut diff_up);
/// bilinear.execute(&Stream::new(&engine)?, args)?;
/// assert_eq!(diff_gate.as_slice::<f32>()?, [5.0, 70.0]);
/// assert_eq!(diff_up.as_slice::<f32>()?, [2.0, 30.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Backward {
    primitive: Primitive,
    activation: Activation,
}

impl Backward {
    /// Of gate and up in one tensor; see [`Forward::packed`].
    pub fn packed<'b>(
        engine: &'b Engine,
        activation: Activation,
        src: &'b MemoryDesc,
        packing: Packing,
        diff_dst: &'b MemoryDesc,
    ) -> BackwardBuilder<'b> {
        let forward = Forward::packed(engine, activation, src, packing, diff_dst);
        BackwardBuilder { forward, dst: None, gradients: None }
    }

    /// Of two tensors; see [`Forward::separate`].
    pub fn separate<'b>(
        engine: &'b Engine,
        activation: Activation,
        gate: &'b MemoryDesc,
        up: &'b MemoryDesc,
        diff_dst: &'b MemoryDesc,
    ) -> BackwardBuilder<'b> {
        let forward = Forward::separate(engine, activation, gate, up, diff_dst);
        BackwardBuilder { forward, dst: None, gradients: None }
    }

    /// Computes the gradients, which are complete on return.
    ///
    /// # Errors
    /// As [`Forward::execute`].
    ///
    /// # Panics
    /// As [`Primitive::execute`].
    pub fn execute(&self, stream: &Stream<'_>, args: BackwardArgs<'_>) -> Result<()> {
        self.primitive.execute(stream, args.0)
    }

    /// This primitive with arguments, for [`Stream::execute_many`].
    ///
    /// # Errors
    /// As [`Forward::execute`].
    pub fn with<'x>(&'x self, args: BackwardArgs<'x>) -> Result<Call<'x>> {
        self.primitive.with(args.0)
    }

    /// The primitive: descriptors of the arguments, name of the implementation.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }
}

impl fmt::Debug for Backward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backward")
            .field("activation", &self.activation)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one backward execution.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(Args<'x>);

impl<'x> BackwardArgs<'x> {
    /// From `src`, packed or the gate, and `diff_dst` to `diff_src`.
    pub fn new<A: Access, B: Access>(
        src: &'x Memory<'_, A>,
        diff_dst: &'x Memory<'_, B>,
        diff_src: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(Arg::Src, src).input(Arg::DiffDst, diff_dst);
        Self(args.output(Arg::DiffSrc, diff_src))
    }

    /// `src`, packed or the gate, is overwritten with `diff_src`; their types and layouts must be the same.
    pub fn in_place<A: Access>(src_diff: &'x mut Memory<'_>, diff_dst: &'x Memory<'_, A>) -> Self {
        let args = Args::new().in_place(Arg::Src, Arg::DiffSrc, src_diff);
        Self(args.input(Arg::DiffDst, diff_dst))
    }

    /// `diff_dst` is overwritten with the gradient of the gate, with [`Backward::separate`]; their types and layouts
    /// must be the same.
    pub fn in_place_of_diff_dst<A: Access>(
        gate: &'x Memory<'_, A>,
        diff: &'x mut Memory<'_>,
    ) -> Self {
        Self(Args::new().input(Arg::Src, gate).in_place(Arg::DiffDst, Arg::DiffSrc, diff))
    }

    /// Up is overwritten with its gradient, with [`Backward::separate`]; their types and layouts must be the same.
    pub fn up_in_place(self, up_diff: &'x mut Memory<'_>) -> Self {
        Self(self.0.in_place(Arg::Src1, Arg::DiffSrc1, up_diff))
    }

    /// Up, with [`Backward::separate`].
    pub fn up<A: Access>(self, up: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Src1, up))
    }

    /// The gradient with respect to up, with [`Backward::separate`].
    pub fn diff_up(self, diff_up: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffSrc1, diff_up))
    }

    /// Forward's result, with [`BackwardBuilder::dst`].
    pub fn dst(self, dst: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Dst, dst))
    }
}
