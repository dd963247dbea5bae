//! Gated activation (SwiGLU, GEGLU, ReGLU, GLU), forward ([`Forward`]) and backward ([`Backward`]).
//!
//! ```text
//! g = min(gate, limit), u = max(-limit, min(up, limit)) + shift
//! forward   dst = f(g)*u
//! backward  diff_gate = diff_dst*u*f'(g), 0 where gate > limit
//!           diff_up = diff_dst*f(g),      0 where up is beyond the limits
//! ```
//!
//! [`Activation`] has the functions, [`Packing`] says where gate and up are. Inputs and gradients are f32, bf16 or f16
//! in any combination; dst forward also s8, u8, f8_e4m3 or f8_e5m2.

mod backward;

pub use backward::{Backward, BackwardArgs, BackwardBuilder};

use std::fmt;
use std::ptr;

use norm_sys as sys;

use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// The function of the gate `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// `g/(1 + exp(-alpha*g))`: SwiGLU with an alpha of 1.
    Swish(f32),
    /// `g*(1 + erf(g/sqrt(2)))/2`: GEGLU.
    GeluErf,
    /// `g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3)))/2`
    GeluTanh,
    /// `g` above 0, else `alpha*g`: ReGLU with an alpha of 0.
    Relu(f32),
    /// `1/(1 + exp(-g))`: GLU.
    Logistic,
    /// `alpha*g`: bilinear with an alpha of 1.
    Linear(f32),
}

impl Activation {
    /// The algorithm and alpha.
    fn to_c(self) -> (sys::norm_alg_kind_t, f32) {
        match self {
            Self::Swish(alpha) => (sys::norm_eltwise_swish, alpha),
            Self::GeluErf => (sys::norm_eltwise_gelu_erf, 0.0),
            Self::GeluTanh => (sys::norm_eltwise_gelu_tanh, 0.0),
            Self::Relu(alpha) => (sys::norm_eltwise_relu, alpha),
            Self::Logistic => (sys::norm_eltwise_logistic, 0.0),
            Self::Linear(alpha) => (sys::norm_eltwise_linear, alpha),
        }
    }
}

/// Where gate and up are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// The first half of each row of `src` is the gate, the second is up.
    GateFirst,
    /// The first half is up.
    UpFirst,
    /// They alternate, the gate first.
    Interleaved,
}

impl Packing {
    fn to_c(self) -> sys::norm_gate_packing_t {
        match self {
            Self::GateFirst => sys::norm_gate_first,
            Self::UpFirst => sys::norm_up_first,
            Self::Interleaved => sys::norm_gate_interleaved,
        }
    }
}

/// The descriptors of the inputs.
#[derive(Clone, Copy, Debug)]
enum Inputs<'b> {
    Packed(&'b MemoryDesc, Packing),
    /// The gate and up.
    Separate(&'b MemoryDesc, &'b MemoryDesc),
}

impl Inputs<'_> {
    /// The packing, src and up.
    fn to_c(
        self,
    ) -> (sys::norm_gate_packing_t, sys::const_norm_memory_desc_t, sys::const_norm_memory_desc_t)
    {
        match self {
            Self::Packed(src, packing) => (packing.to_c(), src.as_ptr(), ptr::null()),
            Self::Separate(gate, up) => (sys::norm_gate_separate, gate.as_ptr(), up.as_ptr()),
        }
    }
}

/// Builds a [`Forward`]; see [`Forward::packed`] and [`Forward::separate`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    engine: &'b Engine,
    inputs: Inputs<'b>,
    dst: &'b MemoryDesc,
    activation: Activation,
    limit: f32,
    shift: f32,
    attr: Option<&'b Attr>,
}

impl<'b> ForwardBuilder<'b> {
    /// The bound of gate from above and of up on both sides; above 0. Default: none.
    pub fn limit(self, limit: f32) -> Self {
        Self { limit, ..self }
    }

    /// What is added to up. Default: 0.
    pub fn shift(self, shift: f32) -> Self {
        Self { shift, ..self }
    }

    /// Attributes: eltwise and binary post-operations, and scales of [`Arg::Dst`], also dynamic ones. `build` copies
    /// them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the dimensions do not fit or a number is out
    /// of its range. [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that the
    /// operation does not support.
    pub fn build(self) -> Result<Forward> {
        let Self { engine, inputs, dst, activation, limit, shift, attr } = self;
        let ((kind, alpha), (packing, src, up)) = (activation.to_c(), inputs.to_c());
        // SAFETY: all objects are valid, NULL is allowed for up and attr; on success a primitive descriptor that the
        // caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_gated_forward_primitive_desc_create(
                    out,
                    engine.as_ptr(),
                    // Training and inference are the same.
                    sys::norm_forward_training,
                    kind,
                    packing,
                    src,
                    up,
                    dst.as_ptr(),
                    alpha,
                    limit,
                    shift,
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Forward { primitive: Primitive::new(&desc)?, activation })
    }
}

/// A gated activation. Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::gated::{Activation, Forward, ForwardArgs, Packing};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let both = MemoryDesc::dense(&[1, 4], DataType::F32)?;
/// let half = MemoryDesc::dense(&[1, 2], DataType::F32)?;
/// let builder = Forward::packed(&engine, Activation::Relu(0.0), &both, Packing::GateFirst, &half);
/// let reglu = builder.build()?;
///
/// let src = Memory::from_slice(&engine, &both, &[2.0f32, -1.0, 5.0, 7.0])?;
/// let mut dst = Memory::new(&engine, &half)?;
/// reglu.execute(&Stream::new(&engine)?, ForwardArgs::new(&src, &mut dst))?;
/// assert_eq!(dst.as_slice::<f32>()?, [10.0, 0.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Forward {
    primitive: Primitive,
    activation: Activation,
}

impl Forward {
    /// Of gate and up in one tensor, whose last dimension is twice that of `dst`.
    pub fn packed<'b>(
        engine: &'b Engine,
        activation: Activation,
        src: &'b MemoryDesc,
        packing: Packing,
        dst: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        Self::of(engine, activation, Inputs::Packed(src, packing), dst)
    }

    /// Of two tensors with the dimensions of `dst`.
    pub fn separate<'b>(
        engine: &'b Engine,
        activation: Activation,
        gate: &'b MemoryDesc,
        up: &'b MemoryDesc,
        dst: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        Self::of(engine, activation, Inputs::Separate(gate, up), dst)
    }

    fn of<'b>(
        engine: &'b Engine,
        activation: Activation,
        inputs: Inputs<'b>,
        dst: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        let (limit, shift) = (f32::INFINITY, 0.0);
        ForwardBuilder { engine, inputs, dst, activation, limit, shift, attr: None }
    }

    /// Computes `dst`, which is complete on return.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it is missing, not used,
    /// or does not have the primitive's descriptor. On failure nothing is written.
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

    /// The primitive: descriptors of the arguments, name of the implementation.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward")
            .field("activation", &self.activation)
            .field("implementation", &self.primitive.implementation())
            .finish()
    }
}

/// The memories of one forward execution.
#[derive(Debug)]
#[must_use]
pub struct ForwardArgs<'x>(Args<'x>);

impl<'x> ForwardArgs<'x> {
    /// From `src`, packed or the gate, to `dst`.
    pub fn new<A: Access>(src: &'x Memory<'_, A>, dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, src).output(Arg::Dst, dst))
    }

    /// The gate of [`Forward::separate`] is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place(gate_dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().in_place(Arg::Src, Arg::Dst, gate_dst))
    }

    /// Up of [`Forward::separate`] is overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place_of_up<A: Access>(gate: &'x Memory<'_, A>, up_dst: &'x mut Memory<'_>) -> Self {
        Self(Args::new().input(Arg::Src, gate).in_place(Arg::Src1, Arg::Dst, up_dst))
    }

    /// Up, with [`Forward::separate`].
    pub fn up<A: Access>(self, up: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::Src1, up))
    }

    /// The scale that the result is divided by, with [`Attr::set_scales`] of [`Arg::Dst`].
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

    /// The operand of entry `index` of the [post-operations](crate::post_ops::PostOps).
    pub fn operand<A: Access>(self, index: usize, operand: &'x Memory<'_, A>) -> Self {
        Self(self.0.operand(index, operand))
    }
}
