//! Attention forward.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::{Causal, Common, Window, args, builder, dim, primitive};
use crate::attr::Attr;
use crate::engine::Engine;
use crate::error::Result;
use crate::handle::Handle;
use crate::kv_cache::SdpaArgs;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args, Call, Primitive};
use crate::stream::Stream;

/// Builds a [`Forward`]; see [`Forward::inference`] and [`Forward::training`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ForwardBuilder<'b> {
    pub(crate) common: Common<'b>,
    prop_kind: sys::norm_prop_kind_t,
    page_table: Option<&'b MemoryDesc>,
    attr: Option<&'b Attr>,
}

builder!(ForwardBuilder);

impl<'b> ForwardBuilder<'b> {
    /// Keys and values are in pages: keys are `N x G x D x P` and values `N x G x P x E`, and key `j` of sequence `b`
    /// is key `j % P` of page `table[b, j/P]`. The table is dense s32, `B x pages`. Default: no pages.
    pub fn page_table(self, desc: &'b MemoryDesc) -> Self {
        Self { page_table: Some(desc), ..self }
    }

    /// Attributes: scales of [`Arg::Keys`] and [`Arg::Values`]. `build` copies them.
    pub fn attr(self, attr: &'b Attr) -> Self {
        Self { attr: Some(attr), ..self }
    }

    /// Also computes the entropy of the weights in nats, averaged over the queries, for each sequence and head.
    pub fn entropy(mut self) -> Self {
        self.common.flags |= sys::norm_sdpa_entropy;
        self
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if dimensions do not fit or a number is out of
    /// its range, [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types that the operation does not
    /// support.
    pub fn build(self) -> Result<Forward> {
        let Self { common, prop_kind, page_table, attr } = self;
        let dst = common.resolved_dst()?;
        let (window_kind, window) = common.window.to_c()?;
        let first_keys = dim("first_keys", common.first_keys)?;
        let (mask, mask_type) = common.mask_to_c();
        // SAFETY: all objects are valid, and NULL where it is allowed; on success a primitive descriptor that the caller
        // owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_sdpa_forward_primitive_desc_create(
                    out,
                    common.engine.as_ptr(),
                    prop_kind,
                    common.query.as_ptr(),
                    common.key.as_ptr(),
                    common.value.as_ptr(),
                    dst.as_ptr(),
                    mask,
                    page_table.map_or(ptr::null(), MemoryDesc::as_ptr),
                    mask_type,
                    window_kind,
                    window,
                    first_keys,
                    common.resolved_scale(),
                    common.soft_cap,
                    common.flags,
                    attr.map_or(ptr::null(), Attr::as_ptr),
                )
            })
        }?;
        Ok(Forward { primitive: Primitive::new(&desc)? })
    }
}

/// Attention. Threads can share it and execute it at the same time. One primitive serves every step of a decode: keys
/// and values have the size of the cache, and the lengths say how much of it is filled.
///
/// ```
/// use norm_rs::sdpa::{Causal, Forward, ForwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream, Tag};
///
/// let engine = Engine::cpu()?;
/// // 1 sequence, 1 head, 2 queries and 2 keys of 1 element; values of 2.
/// let query = MemoryDesc::dense(&[1, 1, 2, 1], DataType::F32)?;
/// let key = MemoryDesc::with_tag(&[1, 1, 1, 2], DataType::F32, Tag::Abdc)?;
/// let value = MemoryDesc::dense(&[1, 1, 2, 2], DataType::F32)?;
/// let builder = Forward::inference(&engine, &query, &key, &value);
/// let attention = builder.causal(Causal::TopLeft).build()?;
///
/// let queries = Memory::from_slice(&engine, &query, &[1.0f32, 1.0])?;
/// let keys = Memory::from_slice(&engine, &key, &[5.0f32, 5.0])?;
/// let values = Memory::from_slice(&engine, &value, &[1.0f32, 2.0, 3.0, 6.0])?;
/// let mut dst = Memory::new(&engine, &value)?;
/// let args = ForwardArgs::new(&queries, &keys, &values, &mut dst);
/// attention.execute(&Stream::new(&engine)?, args)?;
/// // The first query sees only its own key, the second two with the same score.
/// assert_eq!(dst.as_slice::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Forward {
    primitive: Primitive,
}

primitive!(Forward, ForwardArgs, "Forward");

impl Forward {
    /// Attention of queries to keys and values.
    pub fn inference<'b>(
        engine: &'b Engine,
        query: &'b MemoryDesc,
        key: &'b MemoryDesc,
        value: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        let common = Common::new(engine, query, key, value);
        let prop_kind = sys::norm_forward_inference;
        ForwardBuilder { common, prop_kind, page_table: None, attr: None }
    }

    /// The same, but also writes the logarithms of the sums, which [`Backward`](super::Backward) needs.
    pub fn training<'b>(
        engine: &'b Engine,
        query: &'b MemoryDesc,
        key: &'b MemoryDesc,
        value: &'b MemoryDesc,
    ) -> ForwardBuilder<'b> {
        let prop_kind = sys::norm_forward_training;
        ForwardBuilder { prop_kind, ..Self::inference(engine, query, key, value) }
    }
}

/// The memories of one forward execution.
#[derive(Debug)]
#[must_use]
pub struct ForwardArgs<'x>(pub(crate) Args<'x>);

args!(ForwardArgs);

impl<'x> ForwardArgs<'x> {
    /// From queries, keys and values to `dst`.
    pub fn new<A: Access, B: Access, C: Access>(
        queries: &'x Memory<'_, A>,
        keys: &'x Memory<'_, B>,
        values: &'x Memory<'_, C>,
        dst: &'x mut Memory<'_>,
    ) -> Self {
        let args = Args::new().input(Arg::Queries, queries).output(Arg::Dst, dst);
        Self(args.input(Arg::Keys, keys).input(Arg::Values, values))
    }

    /// The queries are overwritten with `dst`; their types and layouts must be the same.
    pub fn in_place<B: Access, C: Access>(
        queries_dst: &'x mut Memory<'_>,
        keys: &'x Memory<'_, B>,
        values: &'x Memory<'_, C>,
    ) -> Self {
        let args = Args::new().in_place(Arg::Queries, Arg::Dst, queries_dst);
        Self(args.input(Arg::Keys, keys).input(Arg::Values, values))
    }

    /// From queries and a layer of a [cache](crate::kv_cache), which is borrowed until the execution ends, to `dst`. The
    /// primitive has [key lengths](ForwardBuilder::key_lengths) and a [page table](ForwardBuilder::page_table).
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn cached<A: Access>(
        queries: &'x Memory<'_, A>,
        layer: SdpaArgs<'x>,
        dst: &'x mut Memory<'_>,
    ) -> Result<Self> {
        let args = Args::new().input(Arg::Queries, queries).output(Arg::Dst, dst);
        layer.bind(args).map(Self)
    }

    /// As [`cached`](Self::cached); the queries are overwritten with `dst`.
    ///
    /// # Errors
    /// As [`cached`](Self::cached).
    pub fn cached_in_place(queries_dst: &'x mut Memory<'_>, layer: SdpaArgs<'x>) -> Result<Self> {
        layer.bind(Args::new().in_place(Arg::Queries, Arg::Dst, queries_dst)).map(Self)
    }

    /// The scales of quantized keys: f32, `B x G x 1 x T`, with 1 for each dimension that is not in the mask of
    /// [`Attr::set_scales`].
    pub fn key_scales<A: Access>(self, scales: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::KeyScales, scales))
    }

    /// The scales of quantized values: f32, `B x G x T x 1`, likewise.
    pub fn value_scales<A: Access>(self, scales: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::ValueScales, scales))
    }

    /// The pages of each sequence.
    pub fn page_table<A: Access>(self, table: &'x Memory<'_, A>) -> Self {
        Self(self.0.input(Arg::PageTable, table))
    }

    /// The logarithms of the sums of `exp(score)`, -Inf if there are none, with [`Forward::training`].
    pub fn log_sum_exp(self, log_sum_exp: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Workspace, log_sum_exp))
    }

    /// The mean entropy of the weights, with [`ForwardBuilder::entropy`].
    pub fn entropy(self, entropy: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::Entropy, entropy))
    }
}
