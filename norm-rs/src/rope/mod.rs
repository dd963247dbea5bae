//! Rotary position embedding, forward ([`Forward`]) and backward ([`Backward`]), and its frequencies and weights.
//!
//! The pairs of each head are rotated by angles that grow with the position of the token:
//!
//! ```text
//! angle = position * frequency[i]
//! a' = a*cos(angle) - b*sin(angle)        b' = a*sin(angle) + b*cos(angle)
//! ```
//!
//! The last dimension of `src` is a head; the others are tokens, heads and batches. The [`Pairing`] says which elements
//! form a pair. It has no default: weights for one give wrong results with another. Angles are computed in f64, once
//! per token, so they are accurate at any position. Backward rotates the other way.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | `src`, `dst` | 2 to 6 | f32, bf16, f16, in any combination |
//! | `positions` | those of `src` without the last, 1 where tokens share it | s32, s64 |
//! | `frequencies` | `rotary_dims / 2` | f64 |
//! | `cos`, `sin` | positions x `rotary_dims / 2` | f32, bf16, f16 |
//! | `slots` | tokens | s64 |

mod arguments;
mod weights;

pub use arguments::{BackwardArgs, ForwardArgs};
pub use weights::{Pairing, Scaling, frequencies, permute};

use std::fmt;
use std::ptr;

use norm_sys as sys;

use self::weights::to_c;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Call, Primitive};
use crate::stream::Stream;

/// The normalization of a head before its rotation: `src / sqrt(mean(src^2) + epsilon)`.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'b> {
    /// Added under the root.
    pub epsilon: f32,
    /// A factor for each element, f32, bf16 or f16.
    pub scale: Option<&'b MemoryDesc>,
    /// Whether 1 is added to the scale.
    pub scale_plus_one: bool,
    /// Whether values are rounded to the type of `dst` before the rotation.
    pub rounded: bool,
}

/// What both directions share.
#[derive(Clone, Copy, Debug)]
struct Common<'b> {
    engine: &'b Engine,
    pairing: Pairing,
    input: &'b MemoryDesc,
    output: Option<&'b MemoryDesc>,
    positions: &'b MemoryDesc,
    index_dim: Option<usize>,
    table: Option<&'b MemoryDesc>,
    rotary_dims: Option<usize>,
    magnitude: f32,
    sections: &'b [usize],
    interleaved_sections: bool,
}

/// [`Common`] for C.
struct Converted {
    angles: sys::norm_rope_angles_t,
    index_dim: i32,
    table: sys::const_norm_memory_desc_t,
    rotary_dims: sys::norm_dim_t,
    sections: Vec<sys::norm_dim_t>,
    flags: u32,
}

impl Norm<'_> {
    fn flags(&self) -> u32 {
        let set = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        sys::norm_rms_norm
            | set(self.scale.is_some(), sys::norm_use_scale)
            | set(self.scale_plus_one, sys::norm_scale_plus_one)
            | set(self.rounded, sys::norm_rope_norm_rounded)
    }
}

impl Common<'_> {
    fn convert(&self) -> Result<Converted> {
        let index_dim = match self.index_dim {
            None => -1,
            Some(dim) => i32::try_from(to_c("index_dim", dim)?).unwrap_or(i32::MAX),
        };
        let head = self.input.dims().last().copied().unwrap_or(0);
        let sections = self.sections.iter().map(|pairs| to_c("sections", *pairs));
        Ok(Converted {
            angles: match self.table {
                None => sys::norm_rope_from_frequencies,
                Some(_) => sys::norm_rope_from_tables,
            },
            index_dim,
            table: self.table.map_or(ptr::null(), MemoryDesc::as_ptr),
            rotary_dims: to_c("rotary_dims", self.rotary_dims.unwrap_or(head))?,
            sections: sections.collect::<Result<_>>()?,
            flags: if self.interleaved_sections { sys::norm_rope_interleaved_sections } else { 0 },
        })
    }
}

macro_rules! builder {
    ($name:ident) => {
        impl<'b> $name<'b> {
            /// How many first elements of a head are rotated; the others are copied. Default: all.
            pub fn rotary_dims(mut self, rotary_dims: usize) -> Self {
                self.common.rotary_dims = Some(rotary_dims);
                self
            }

            /// A factor for cosines and sines, as from [`frequencies`]. Default: 1.
            pub fn magnitude(mut self, magnitude: f32) -> Self {
                self.common.magnitude = magnitude;
                self
            }

            /// Cosines and sines are rows of tables with this descriptor. Default: they are computed from frequencies.
            pub fn tables(mut self, table: &'b MemoryDesc) -> Self {
                self.common.table = Some(table);
                self
            }

            /// A dimension of the input whose index is added to positions, which have 1 there.
            pub fn index_dim(mut self, dim: usize) -> Self {
                self.common.index_dim = Some(dim);
                self
            }

            /// How many pairs each part of a position rotates; positions have one more dimension, for the parts. With
            /// `interleaved` the parts alternate pair by pair.
            pub fn sections(mut self, pairs: &'b [usize], interleaved: bool) -> Self {
                self.common.sections = pairs;
                self.common.interleaved_sections = interleaved;
                self
            }
        }
    };
}
builder!(ForwardBuilder);
builder!(BackwardBuilder);

/// Builds a [`Forward`]; see [`Forward::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    common: Common<'b>,
    norm: Option<Norm<'b>>,
    slots: bool,
}

impl<'b> ForwardBuilder<'b> {
    /// The destination. Default: type and layout of `src`.
    pub fn dst(mut self, desc: &'b MemoryDesc) -> Self {
        self.common.output = Some(desc);
        self
    }

    /// Heads are normalized first.
    pub fn norm(self, norm: Norm<'b>) -> Self {
        Self { norm: Some(norm), ..self }
    }

    /// Token `t` of dimension 0 is written to row `slots[t]` of `dst`, which has slots, or pages and slots of a page,
    /// instead of tokens.
    pub fn slots(self) -> Self {
        Self { slots: true, ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if dimensions do not fit,
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types that the operation does not support.
    pub fn build(self) -> Result<Forward> {
        let Self { common, norm, slots } = self;
        let c = common.convert()?;
        let of_norm = norm.map_or(0, |norm| norm.flags());
        let flags = c.flags | of_norm | if slots { sys::norm_write_slots } else { 0 };
        let scale = norm.and_then(|norm| norm.scale);
        // SAFETY: all objects are valid, and NULL where it is allowed; on success a primitive descriptor that the caller
        // owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_rope_forward_primitive_desc_create(
                    out,
                    common.engine.as_ptr(),
                    sys::norm_forward_inference,
                    common.pairing.to_c(),
                    c.angles,
                    common.input.as_ptr(),
                    common.output.unwrap_or(common.input).as_ptr(),
                    common.positions.as_ptr(),
                    c.index_dim,
                    c.table,
                    scale.map_or(ptr::null(), MemoryDesc::as_ptr),
                    c.rotary_dims,
                    common.magnitude,
                    c.sections.len() as i32,
                    c.sections.as_ptr(),
                    norm.map_or(0.0, |norm| norm.epsilon),
                    flags,
                    ptr::null(),
                )
            })
        }?;
        Ok(Forward { primitive: Primitive::new(&desc)? })
    }
}

/// The rotation, optionally after a normalization. The [module](self) has the formulas.
///
/// ```
/// use norm_rs::rope::{Forward, ForwardArgs, Pairing, Scaling, frequencies};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// // 2 tokens, 1 head of 2 elements; the heads of a token share its position.
/// let heads = MemoryDesc::dense(&[2, 1, 2], DataType::F32)?;
/// let tokens = MemoryDesc::dense(&[2, 1], DataType::S32)?;
/// let rope = Forward::new(&engine, Pairing::HalfSplit, &heads, &tokens).build()?;
///
/// let (values, _) = frequencies(Scaling::None, 2, 10000.0)?;
/// let frequencies = MemoryDesc::dense(&[1], DataType::F64)?;
/// let frequencies = Memory::from_slice(&engine, &frequencies, &values)?;
/// let positions = Memory::from_slice(&engine, &tokens, &[0i32, 1])?;
/// let src = Memory::from_slice(&engine, &heads, &[1.0f32, 0.0, 1.0, 0.0])?;
/// let mut dst = Memory::new(&engine, &heads)?;
/// let args = ForwardArgs::new(&src, &mut dst, &positions).frequencies(&frequencies);
/// rope.execute(&Stream::new(&engine)?, args)?;
/// assert_eq!(dst.as_slice::<f32>()?, [1.0, 0.0, 1f32.cos(), 1f32.sin()]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Forward {
    primitive: Primitive,
}

/// Builds a [`Backward`]; see [`Backward::new`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BackwardBuilder<'b> {
    common: Common<'b>,
    /// With the descriptor of src.
    norm: Option<(Norm<'b>, &'b MemoryDesc)>,
    diff_scale: Option<&'b MemoryDesc>,
}

impl<'b> BackwardBuilder<'b> {
    /// The gradient of src. Default: type and layout of `diff_dst`.
    pub fn diff_src(mut self, desc: &'b MemoryDesc) -> Self {
        self.common.output = Some(desc);
        self
    }

    /// Includes the normalization of `src` in forward: the result is the gradient of `src`.
    pub fn norm(self, norm: Norm<'b>, src: &'b MemoryDesc) -> Self {
        Self { norm: Some((norm, src)), ..self }
    }

    /// Also computes the gradient of the scale of [`norm`](Self::norm), with this descriptor: f32, bf16 or f16.
    pub fn diff_scale(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_scale: Some(desc), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// As [`ForwardBuilder::build`].
    pub fn build(self) -> Result<Backward> {
        let Self { common, norm, diff_scale } = self;
        let c = common.convert()?;
        let or_null = |desc: Option<&MemoryDesc>| desc.map_or(ptr::null(), MemoryDesc::as_ptr);
        let (norm, src) = norm.unzip();
        // SAFETY: as for forward.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_rope_backward_primitive_desc_create(
                    out,
                    common.engine.as_ptr(),
                    common.pairing.to_c(),
                    c.angles,
                    common.output.unwrap_or(common.input).as_ptr(),
                    common.input.as_ptr(),
                    or_null(src),
                    common.positions.as_ptr(),
                    c.index_dim,
                    c.table,
                    or_null(norm.and_then(|norm| norm.scale)),
                    or_null(diff_scale),
                    c.rotary_dims,
                    common.magnitude,
                    c.sections.len() as i32,
                    c.sections.as_ptr(),
                    norm.map_or(0.0, |norm| norm.epsilon),
                    c.flags | norm.map_or(0, |norm| norm.flags()),
                    ptr::null(),
                    ptr::null(),
                )
            })
        }?;
        Ok(Backward { primitive: Primitive::new(&desc)? })
    }
}

/// The gradient of a [`Forward`]: the rotation by the negative angles, then through the normalization if there is one.
pub struct Backward {
    primitive: Primitive,
}

fn common<'b>(
    engine: &'b Engine,
    pairing: Pairing,
    input: &'b MemoryDesc,
    positions: &'b MemoryDesc,
) -> Common<'b> {
    Common {
        engine,
        pairing,
        input,
        output: None,
        positions,
        index_dim: None,
        table: None,
        rotary_dims: None,
        magnitude: 1.0,
        sections: &[],
        interleaved_sections: false,
    }
}

impl Forward {
    /// A rotation of the heads of `src`, with the descriptor of their positions.
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(
        engine: &'b Engine,
        pairing: Pairing,
        src: &'b MemoryDesc,
        positions: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        let common = common(engine, pairing, src, positions);
        ForwardBuilder { common, norm: None, slots: false }
    }
}

impl Backward {
    /// The rotation back of the heads of `diff_dst`, with the descriptor of their positions.
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(
        engine: &'b Engine,
        pairing: Pairing,
        diff_dst: &'b MemoryDesc,
        positions: &'b MemoryDesc,
    ) -> BackwardBuilder<'b> {
        let common = common(engine, pairing, diff_dst, positions);
        BackwardBuilder { common, norm: None, diff_scale: None }
    }
}

macro_rules! primitive {
    ($name:ident, $args:ident, $text:literal) => {
        impl $name {
            /// Computes the result, which is complete on return.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it is missing,
            /// not used or does not have the primitive's descriptor, or a position or a slot is out of range. On
            /// failure nothing is written.
            ///
            /// # Panics
            /// As [`Primitive::execute`].
            pub fn execute(&self, stream: &Stream<'_>, args: $args<'_>) -> Result<()> {
                self.primitive.execute(stream, args.0)
            }

            /// This primitive with arguments, for [`Stream::execute_many`], such as queries and keys in one call.
            ///
            /// # Errors
            /// As [`execute`](Self::execute).
            pub fn with<'x>(&'x self, args: $args<'x>) -> Result<Call<'x>> {
                self.primitive.with(args.0)
            }

            /// The primitive: descriptors of the arguments, name of the implementation.
            pub fn primitive(&self) -> &Primitive {
                &self.primitive
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let implementation = self.primitive.implementation();
                f.debug_struct($text).field("implementation", &implementation).finish()
            }
        }
    };
}
primitive!(Forward, ForwardArgs, "Forward");
primitive!(Backward, BackwardArgs, "Backward");
