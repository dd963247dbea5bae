//! Scaled dot-product attention, forward ([`Forward`]) and backward ([`Backward`]), on slices in one call
//! ([`attention()`]), and the width of its windows ([`adaptive_window`]).
//!
//! ```text
//! dst = softmax(mask(scale * Q K^T)) V
//! ```
//!
//! in tiles, without a tensor of queries x keys. A score is multiplied by the scale; then a soft cap, ALiBi and an
//! additive mask are applied, in this order. `norm_sdpa.h` has the formulas.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | queries | `B x H x S x D`: sequences, heads, queries, elements of a head | f32, bf16, f16 |
//! | keys | `B x G x D x T`: `G` divides `H`, and head `h` uses keys `h/(H/G)` | that of queries; forward also s8, f8_e4m3 |
//! | values | `B x G x T x E` | likewise |
//! | scales of keys, of values | `B x G x 1 x T`, `B x G x T x 1`; 1 where they are shared | f32 |
//! | dst | `B x H x S x E` | f32, bf16, f16 |
//! | mask | `B x H x S x T`, 1 where it is shared | f32, bf16, f16: added; u8: 0 hides a key |
//! | page table | `B x pages` | s32 |
//! | log-sum-exp | `B x H x S x 1` | f32 |
//! | entropy | `B x H` | f32 |
//! | sinks, ALiBi slopes | `H` | f32 |
//! | lengths of queries and keys | `B` | s32 |
//!
//! On slices, keys are `B x G x T x D`. Queries, keys, values, dst and the mask may have any strides. The usual cache,
//! `B x G x T x D` in memory, has [`Tag::Abdc`], or its descriptor with axes 2 and 3 exchanged
//! ([`MemoryDesc::permute_axes`]).
//!
//! Keys and values of s8 must have scales, and those of f8_e4m3 may: one for the tensor, one for each head (mask 2), or
//! one for each token and head (masks 11 for keys and 7 for values, with or without pages):
//!
//! ```
//! use norm_rs::primitive::Arg;
//! use norm_rs::sdpa::{Forward, ForwardArgs};
//! use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Stream, Tag};
//!
//! let engine = Engine::cpu()?;
//! let query = MemoryDesc::dense(&[1, 1, 1, 2], DataType::F32)?;
//! let key = MemoryDesc::with_tag(&[1, 1, 2, 2], DataType::S8, Tag::Abdc)?;
//! let value = MemoryDesc::dense(&[1, 1, 2, 2], DataType::S8)?;
//! let mut attr = Attr::new()?;
//! attr.set_scales(Arg::Keys, 0)?; // one for all
//! attr.set_scales(Arg::Values, 7)?; // for each sequence, head and token
//! let attention = Forward::inference(&engine, &query, &key, &value).attr(&attr).build()?;
//! let of = |arg| Ok::<_, norm_rs::Error>(attention.primitive().arg_desc(arg)?.expect("scales"));
//!
//! let q = Memory::from_slice(&engine, &query, &[0.0f32, 0.0])?; // even weights
//! let k = Memory::from_slice(&engine, &key, &[1i8, 2, 3, 4])?;
//! let v = Memory::from_slice(&engine, &value, &[100i8, -100, 10, 20])?;
//! let key_scales = Memory::from_slice(&engine, &of(Arg::KeyScales)?, &[0.5f32])?;
//! let value_scales = Memory::from_slice(&engine, &of(Arg::ValueScales)?, &[0.25f32, 0.5])?;
//! let mut dst = Memory::new(&engine, &query)?;
//! let args = ForwardArgs::new(&q, &k, &v, &mut dst);
//! let args = args.key_scales(&key_scales).value_scales(&value_scales);
//! attention.execute(&Stream::new(&engine)?, args)?;
//! assert_eq!(dst.as_slice::<f32>()?, [15.0, -7.5]);
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! A [cache](crate::kv_cache) owns the keys and values of several sequences, in pages.
//!
//! The bits of a row of dst depend only on its query and the keys and values that it sees: a token decoded alone has
//! the same bits as in a prefill.

mod adaptive;
mod backward;
mod forward;
mod quantized;
pub(crate) mod slices;

pub use adaptive::{Previous, Strategy, adaptive_window};
pub use backward::{Backward, BackwardArgs, BackwardBuilder};
pub use forward::{Forward, ForwardArgs, ForwardBuilder};
pub use quantized::attention_quantized;
pub use slices::{
    Gradients, Heads, Mask, Options, Results, attention, attention_backward, attention_training,
};

use std::ptr;

use norm_sys as sys;

use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory_desc::MemoryDesc;
use crate::tag::Tag;

/// Which keys a query sees by its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Causal {
    /// All.
    #[default]
    No,
    /// Query `i` sees the keys `0` to `i`.
    TopLeft,
    /// The last query sees the last key: query `i` sees the keys up to `i + (keys - queries)`, with the lengths of its
    /// sequence. Use this to decode.
    BottomRight,
}

/// How many keys before its own a query sees; a window implies a causal mask. Models count in both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// All.
    #[default]
    None,
    /// This many keys including its own; 1 or more.
    WithSelf(usize),
    /// Its own key and this many before it.
    BeforeSelf(usize),
}

impl Window {
    /// The keys that a query sees, its own among them; `None` for all.
    pub fn keys(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::WithSelf(window) => Some(window),
            Self::BeforeSelf(window) => Some(window.saturating_add(1)),
        }
    }

    pub(crate) fn to_c(self) -> Result<(sys::norm_attn_window_t, sys::norm_dim_t)> {
        let (kind, window) = match self {
            Self::None => (sys::norm_window_none, 0),
            Self::WithSelf(window) => (sys::norm_window_with_self, window),
            Self::BeforeSelf(window) => (sys::norm_window_before_self, window),
        };
        Ok((kind, dim("window", window)?))
    }
}

/// A size for C.
pub(crate) fn dim(name: &'static str, value: usize) -> Result<sys::norm_dim_t> {
    let too_large = |_| Error::invalid(name, format_args!("is {value}: too large"));
    sys::norm_dim_t::try_from(value).map_err(too_large)
}

/// What both directions share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common<'b> {
    pub(crate) engine: &'b Engine,
    pub(crate) query: &'b MemoryDesc,
    pub(crate) key: &'b MemoryDesc,
    pub(crate) value: &'b MemoryDesc,
    pub(crate) dst: Option<&'b MemoryDesc>,
    pub(crate) mask: Option<&'b MemoryDesc>,
    pub(crate) causal: Causal,
    pub(crate) window: Window,
    pub(crate) first_keys: usize,
    pub(crate) scale: Option<f32>,
    pub(crate) soft_cap: f32,
    pub(crate) flags: u32,
}

impl<'b> Common<'b> {
    fn new(
        engine: &'b Engine,
        query: &'b MemoryDesc,
        key: &'b MemoryDesc,
        value: &'b MemoryDesc,
    ) -> Self {
        let (causal, window) = (Causal::No, Window::None);
        let (dst, mask, scale) = (None, None, None);
        Self {
            engine,
            query,
            key,
            value,
            dst,
            mask,
            causal,
            window,
            first_keys: 0,
            scale,
            soft_cap: 0.0,
            flags: 0,
        }
    }

    /// The requested dst, or one with the layout of queries.
    fn resolved_dst(&self) -> Result<MemoryDesc> {
        if let Some(dst) = self.dst {
            return Ok(dst.clone());
        }
        let mut dims = self.query.dims().to_vec();
        if let (Some(last), Some(size)) = (dims.last_mut(), self.value.dims().last()) {
            *last = *size;
        }
        let data_type = self.query.data_type().unwrap_or(DataType::F32);
        MemoryDesc::with_tag(&dims, data_type, Tag::Any)
    }

    /// The requested scale, or `1/sqrt(D)`.
    fn resolved_scale(&self) -> f32 {
        let usual = || {
            let size = self.query.dims().last().map_or(1, |size| *size);
            (1.0 / (size.max(1) as f64).sqrt()) as f32
        };
        self.scale.unwrap_or_else(usual)
    }

    fn mask_to_c(&self) -> (sys::const_norm_memory_desc_t, sys::norm_attn_mask_type_t) {
        let kind = match (self.causal, self.mask) {
            (Causal::No, None) => sys::norm_attn_mask_undef,
            (Causal::No, Some(_)) => sys::norm_attn_mask_buffer,
            (Causal::TopLeft, _) => sys::norm_attn_mask_top_left,
            (Causal::BottomRight, _) => sys::norm_attn_mask_bottom_right,
        };
        (self.mask.map_or(ptr::null(), MemoryDesc::as_ptr), kind)
    }
}

macro_rules! builder {
    ($name:ident) => {
        impl<'b> $name<'b> {
            /// The result's descriptor, `B x H x S x E`. Default: type and layout of queries.
            pub fn dst(mut self, desc: &'b MemoryDesc) -> Self {
                self.common.dst = Some(desc);
                self
            }

            /// A causal mask. Default: none.
            pub fn causal(mut self, causal: Causal) -> Self {
                self.common.causal = causal;
                self
            }

            /// A mask with this descriptor, in addition to a causal one. Default: none.
            pub fn mask(mut self, desc: &'b MemoryDesc) -> Self {
                self.common.mask = Some(desc);
                self
            }

            /// A sliding window. Default: none.
            pub fn window(mut self, window: Window) -> Self {
                self.common.window = window;
                self
            }

            /// How many first keys are also seen, besides those in the window. Default: none.
            pub fn first_keys(mut self, keys: usize) -> Self {
                self.common.first_keys = keys;
                self
            }

            /// The factor of the products; finite. Default: `1/sqrt(D)`.
            pub fn scale(mut self, scale: f32) -> Self {
                self.common.scale = Some(scale);
                self
            }

            /// Scores become `cap * tanh(score / cap)`; above 0. Default: no cap.
            pub fn soft_cap(mut self, cap: f32) -> Self {
                self.common.soft_cap = cap;
                self
            }

            /// Each head has an additional key with its own score and values of 0.
            pub fn sinks(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_sinks;
                self
            }

            /// `slope * (key - position)` is added to each score.
            pub fn alibi(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_alibi;
                self
            }

            /// Each sequence has its own number of queries, given at each execution.
            pub fn query_lengths(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_query_lengths;
                self
            }

            /// Each sequence has its own number of keys, given at each execution.
            pub fn key_lengths(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_key_lengths;
                self
            }

            /// The queries of all sequences, and the rows of the result, are stored one after another; each execution
            /// passes the offsets. Descriptors have a stride of 0 for sequences, and dst must be given.
            pub fn query_offsets(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_query_offsets;
                self
            }

            /// Likewise the keys and values.
            pub fn key_offsets(mut self) -> Self {
                self.common.flags |= sys::norm_sdpa_key_offsets;
                self
            }
        }
    };
}
use builder;

macro_rules! args {
    ($name:ident) => {
        impl<'x> $name<'x> {
            /// The mask.
            pub fn mask<A: Access>(self, mask: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::AttnMask, mask))
            }

            /// The scores of the sinks.
            pub fn sinks<A: Access>(self, sinks: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::Sinks, sinks))
            }

            /// The slopes of ALiBi.
            pub fn alibi_slopes<A: Access>(self, slopes: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::AlibiSlopes, slopes))
            }

            /// The queries of each sequence, from 0 to `S`.
            pub fn query_lengths<A: Access>(self, lengths: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::QueryLengths, lengths))
            }

            /// The keys of each sequence, from 0 to `T`.
            pub fn key_lengths<A: Access>(self, lengths: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::KeyLengths, lengths))
            }

            /// The first query of each packed sequence, and the end: `B + 1` ascending numbers, at most `S`.
            pub fn query_offsets<A: Access>(self, offsets: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::QueryOffsets, offsets))
            }

            /// The first key of each packed sequence, and the end: `B + 1` ascending numbers, at most `T`.
            pub fn key_offsets<A: Access>(self, offsets: &'x Memory<'_, A>) -> Self {
                Self(self.0.input(Arg::KeyOffsets, offsets))
            }
        }
    };
}
use args;

macro_rules! primitive {
    ($name:ident, $args:ident, $text:literal) => {
        impl $name {
            /// Computes the result, which is complete on return.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments), naming the argument: it is missing,
            /// not used or does not have the primitive's descriptor, or a length, an offset or a page is out of range.
            /// On failure nothing is written.
            ///
            /// # Panics
            /// As [`Primitive::execute`].
            pub fn execute(&self, stream: &Stream<'_>, args: $args<'_>) -> Result<()> {
                self.primitive.execute(stream, args.0)
            }

            /// This primitive with arguments, for [`Stream::execute_many`].
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
use primitive;
