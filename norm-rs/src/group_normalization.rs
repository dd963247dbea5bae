//! Group normalization and grouped RMS normalization, forward ([`Forward`]) and backward
//! ([`Backward`]).
//!
//! A tensor has `N` samples of `C` channels, in dimensions 0 and 1, and any positions in the others.
//! `G` groups of neighbouring channels divide the channels. The `M` elements of a group `x` share a
//! mean and a variance; scale and shift have a value per channel:
//!
//! ```text
//! group norm     mean     = sum(x) / M
//!                variance = sum((x - mean)^2) / M                (population)
//!                dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
//! RMS_NORM       variance = sum(x^2) / M
//!                dst      = x / sqrt(variance + epsilon) * scale + shift
//! ```
//!
//! (Wu and He, *Group Normalization*, 2018.) The gradient is that of
//! [`layer_normalization`](crate::layer_normalization) with groups for rows, and `diff_scale` and `diff_shift` are sums
//! over samples and positions. The arguments are those of layer normalization too, and so are [`Attr::set_residual`],
//! [`Attr::set_gate`] and the flags that go with them: gated grouped RMS normalization is `Flags::RMS_NORM |
//! Flags::GATE_OUTPUT`.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | `src`, `dst` | 2 to 5: `N`, `C`, spatial | f32, bf16, f16, f64; forward also s8, u8, f8_e4m3, f8_e5m2; in any combination |
//! | `diff_src`, `diff_dst` | those of `src` | f32, bf16, f16, f64, in any combination |
//! | `mean`, `variance` | `[N, G]`, dense | f32 |
//! | `scale`, `shift`, `diff_scale`, `diff_shift` | `[C]`, dense | f32 |

use std::ptr;

use norm_sys as sys;

use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::layer_normalization::any_like;
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Call, Primitive, PropKind};
use crate::stream::Stream;

pub use crate::layer_normalization::{BackwardArgs, DEFAULT_EPSILON, Flags, ForwardArgs};

/// Builds a [`Forward`]; see [`Forward::training`] and [`Forward::inference`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    engine: &'b Engine,
    prop_kind: PropKind,
    src: &'b MemoryDesc,
    dst: Option<&'b MemoryDesc>,
    groups: i64,
    epsilon: f32,
    flags: Flags,
    attr: Option<&'b Attr>,
}

impl<'b> ForwardBuilder<'b> {
    /// The destination: the dimensions of `src`, and a type that the [module](self) lists.
    /// Default: type and layout of `src`.
    pub fn dst(self, desc: &'b MemoryDesc) -> Self {
        Self { dst: Some(desc), ..self }
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
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if groups do not divide
    /// the channels, or dimensions, epsilon or flags are inconsistent.
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types and attributes that
    /// the operation does not support.
    pub fn build(self) -> Result<Forward> {
        let like_src = any_like(self.src)?;
        // SAFETY: all objects are valid, NULL is allowed for attr; on success a primitive
        // descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_group_normalization_forward_primitive_desc_create(
                    out,
                    self.engine.as_ptr(),
                    self.prop_kind.to_c(),
                    self.src.as_ptr(),
                    self.dst.unwrap_or(&like_src).as_ptr(),
                    self.groups,
                    self.epsilon,
                    self.flags.to_c(),
                    self.attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Forward { primitive: Primitive::new(&desc)? })
    }
}

/// The forward pass of group normalization. The formulas are at the [module](self).
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::group_normalization::{Forward, ForwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// // One sample, four channels of two positions, two groups.
/// let desc = MemoryDesc::dense(&[1, 4, 2], DataType::F32)?;
/// let norm = Forward::inference(&engine, &desc, 2).epsilon(0.0).build()?;
///
/// let src = [1.0f32, 3.0, 1.0, 3.0, 5.0, 5.0, -5.0, -5.0];
/// let src = Memory::from_slice(&engine, &desc, &src)?;
/// let mut dst = Memory::new(&engine, &desc)?;
/// norm.execute(&Stream::new(&engine)?, ForwardArgs::new(&src, &mut dst))?;
/// assert_eq!(dst.as_slice::<f32>()?, [-1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0]);
///
/// // With other primitives in one parallel region, here a second norm of the same source.
/// let others = Forward::inference(&engine, &desc, 1).epsilon(0.0).build()?;
/// let mut other = Memory::new(&engine, &desc)?;
/// Stream::new(&engine)?.execute_many(&[
///     norm.with(ForwardArgs::new(&src, &mut dst))?,
///     others.with(ForwardArgs::new(&src, &mut other))?,
/// ])?;
/// // The mean is 1.
/// assert_eq!(other.as_slice::<f32>()?[0], 0.0);
///
/// let error = Forward::inference(&engine, &desc, 3).build().unwrap_err();
/// assert!(error.to_string().contains("3 groups do not divide 4 channels"));
/// # Ok::<(), norm_rs::Error>(())
/// ```
#[derive(Debug)]
pub struct Forward {
    primitive: Primitive,
}

impl Forward {
    fn of_kind<'b>(
        engine: &'b Engine,
        src: &'b MemoryDesc,
        groups: i64,
        prop_kind: PropKind,
    ) -> ForwardBuilder<'b> {
        let (epsilon, flags) = (DEFAULT_EPSILON, Flags::NONE);
        ForwardBuilder { engine, prop_kind, src, dst: None, groups, epsilon, flags, attr: None }
    }

    /// A forward pass with mean and variance as outputs for the backward pass.
    ///
    /// `src` has 2 to 5 dimensions, a type that the [module](self) lists, and any layout except
    /// [`Tag::Any`](crate::Tag::Any). `groups` divides its channels.
    pub fn training<'b>(
        engine: &'b Engine,
        src: &'b MemoryDesc,
        groups: i64,
    ) -> ForwardBuilder<'b> {
        Self::of_kind(engine, src, groups, PropKind::ForwardTraining)
    }

    /// A forward pass without statistics as outputs.
    pub fn inference<'b>(
        engine: &'b Engine,
        src: &'b MemoryDesc,
        groups: i64,
    ) -> ForwardBuilder<'b> {
        Self::of_kind(engine, src, groups, PropKind::ForwardInference)
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

    /// The primitive: descriptors of the arguments, name of the implementation, scratchpad.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }
}

/// Builds a [`Backward`]; see [`Backward::new`] and [`Backward::data`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    engine: &'b Engine,
    prop_kind: PropKind,
    src: &'b MemoryDesc,
    diff_src: Option<&'b MemoryDesc>,
    diff_dst: Option<&'b MemoryDesc>,
    groups: i64,
    epsilon: f32,
    flags: Flags,
    attr: Option<&'b Attr>,
}

impl<'b> BackwardBuilder<'b> {
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

    /// Added to the variance under the root in the forward pass. Default: [`DEFAULT_EPSILON`].
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
    /// As [`ForwardBuilder::build`].
    pub fn build(self) -> Result<Backward> {
        let like_src = any_like(self.src)?;
        // SAFETY: all objects are valid, NULL is allowed for the hint and attr; on success a
        // primitive descriptor that the caller owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_group_normalization_backward_primitive_desc_create(
                    out,
                    self.engine.as_ptr(),
                    self.prop_kind.to_c(),
                    self.diff_src.unwrap_or(&like_src).as_ptr(),
                    self.diff_dst.unwrap_or(&like_src).as_ptr(),
                    self.src.as_ptr(),
                    self.groups,
                    self.epsilon,
                    self.flags.to_c(),
                    ptr::null(),
                    self.attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Backward { primitive: Primitive::new(&desc)? })
    }
}

/// The backward pass of group normalization. The formulas are at the [module](self).
///
/// Threads can share it and execute it at the same time.
///
/// ```
/// use norm_rs::group_normalization::{Backward, BackwardArgs, Flags};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let desc = MemoryDesc::dense(&[1, 2, 2], DataType::F32)?;
/// let (stat, channels) =
///     (MemoryDesc::dense(&[1, 1], DataType::F32)?, MemoryDesc::dense(&[2], DataType::F32)?);
/// let gradient = Backward::new(&engine, &desc, 1).flags(Flags::SHIFT).epsilon(0.0).build()?;
///
/// let src = Memory::from_slice(&engine, &desc, &[1.0f32, 3.0, 1.0, 3.0])?;
/// let diff_dst = Memory::from_slice(&engine, &desc, &[1.0f32, 1.0, 2.0, 2.0])?;
/// let mean = Memory::from_slice(&engine, &stat, &[2.0f32])?;
/// let variance = Memory::from_slice(&engine, &stat, &[1.0f32])?;
/// let mut diff_src = Memory::new(&engine, &desc)?;
/// let mut diff_shift = Memory::new(&engine, &channels)?;
/// let args = BackwardArgs::new(&src, &diff_dst, &mut diff_src);
/// let args = args.mean(&mean).variance(&variance).diff_shift(&mut diff_shift);
/// gradient.execute(&Stream::new(&engine)?, args)?;
/// assert_eq!(diff_src.as_slice::<f32>()?, [-0.5, -0.5, 0.5, 0.5]);
/// assert_eq!(diff_shift.as_slice::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
#[derive(Debug)]
pub struct Backward {
    primitive: Primitive,
}

impl Backward {
    fn of_kind<'b>(
        engine: &'b Engine,
        src: &'b MemoryDesc,
        groups: i64,
        prop_kind: PropKind,
    ) -> BackwardBuilder<'b> {
        let (epsilon, flags) = (DEFAULT_EPSILON, Flags::NONE);
        let (diff_src, diff_dst, attr) = (None, None, None);
        BackwardBuilder { engine, prop_kind, src, diff_src, diff_dst, groups, epsilon, flags, attr }
    }

    /// The gradients of the source and, with their flags, of scale and shift.
    ///
    /// `src` has 2 to 5 dimensions, f32, bf16, f16 or f64, and any layout except
    /// [`Tag::Any`](crate::Tag::Any). `groups` divides its channels.
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(engine: &'b Engine, src: &'b MemoryDesc, groups: i64) -> BackwardBuilder<'b> {
        Self::of_kind(engine, src, groups, PropKind::Backward)
    }

    /// The gradient of the source only, for frozen parameters. `scale` is still read with its flag.
    pub fn data<'b>(engine: &'b Engine, src: &'b MemoryDesc, groups: i64) -> BackwardBuilder<'b> {
        Self::of_kind(engine, src, groups, PropKind::BackwardData)
    }

    /// Computes the gradients. The outputs are complete on return.
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
    /// As [`execute`](Self::execute).
    pub fn with<'x>(&'x self, args: BackwardArgs<'x>) -> Result<Call<'x>> {
        self.primitive.with(args.0)
    }

    /// The primitive: descriptors of the arguments, name of the implementation, scratchpad.
    pub fn primitive(&self) -> &Primitive {
        &self.primitive
    }
}
