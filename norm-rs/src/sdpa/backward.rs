//! The gradients of attention.

use std::fmt;
use std::ptr;

use norm_sys as sys;

use super::{Causal, Common, Window, args, builder, dim, primitive};
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
    pub(super) common: Common<'b>,
    gradients: Option<[&'b MemoryDesc; 3]>,
    diff_dst: Option<&'b MemoryDesc>,
    diff_mask: Option<&'b MemoryDesc>,
}

builder!(BackwardBuilder);

impl<'b> BackwardBuilder<'b> {
    /// The descriptors of the gradients of queries, keys and values. Default: the same as the tensors'.
    pub fn gradients(
        self,
        diff_query: &'b MemoryDesc,
        diff_key: &'b MemoryDesc,
        diff_value: &'b MemoryDesc,
    ) -> Self {
        Self { gradients: Some([diff_query, diff_key, diff_value]), ..self }
    }

    /// The descriptor of the gradient of the result, which has the type of queries. Default: the layout of `dst`.
    pub fn diff_dst(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_dst: Some(desc), ..self }
    }

    /// Also computes the gradient of an additive mask, with this descriptor, which has the mask's dimensions. Default:
    /// no.
    pub fn diff_mask(self, desc: &'b MemoryDesc) -> Self {
        Self { diff_mask: Some(desc), ..self }
    }

    /// Validates the problem and chooses the implementation.
    ///
    /// # Errors
    /// As [`ForwardBuilder::build`](super::ForwardBuilder::build).
    pub fn build(self) -> Result<Backward> {
        let Self { common, gradients, diff_dst, diff_mask } = self;
        let dst = common.resolved_dst()?;
        let [query, key, value] = gradients.unwrap_or([common.query, common.key, common.value]);
        let any = Common { dst: None, ..common }.resolved_dst()?;
        let (window_kind, window) = common.window.to_c()?;
        let first_keys = dim("first_keys", common.first_keys)?;
        let (mask, mask_type) = common.mask_to_c();
        // SAFETY: all objects are valid, and NULL where it is allowed; on success a primitive descriptor that the caller
        // owns is stored.
        let desc = unsafe {
            Handle::create(|out| {
                sys::norm_sdpa_backward_primitive_desc_create(
                    out,
                    common.engine.as_ptr(),
                    query.as_ptr(),
                    key.as_ptr(),
                    value.as_ptr(),
                    diff_dst.unwrap_or(&any).as_ptr(),
                    common.query.as_ptr(),
                    common.key.as_ptr(),
                    common.value.as_ptr(),
                    dst.as_ptr(),
                    mask,
                    diff_mask.map_or(ptr::null(), MemoryDesc::as_ptr),
                    mask_type,
                    window_kind,
                    window,
                    first_keys,
                    common.resolved_scale(),
                    common.soft_cap,
                    common.flags,
                    ptr::null(),
                    ptr::null(),
                )
            })
        }?;
        Ok(Backward { primitive: Primitive::new(&desc)? })
    }
}

/// The gradients of attention, from its result and the logarithms of its sums. The options are those of forward; pages
/// have no gradients.
///
/// ```
/// use norm_rs::sdpa::{Backward, BackwardArgs, Forward, ForwardArgs};
/// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
///
/// let engine = Engine::cpu()?;
/// let stream = Stream::new(&engine)?;
/// // 1 query, 2 keys, 1 element each; keys of dimensions D x T.
/// let query = MemoryDesc::dense(&[1, 1, 1, 1], DataType::F32)?;
/// let key = MemoryDesc::dense(&[1, 1, 1, 2], DataType::F32)?;
/// let value = MemoryDesc::dense(&[1, 1, 2, 1], DataType::F32)?;
/// let q = Memory::from_slice(&engine, &query, &[1.0f32])?;
/// let k = Memory::from_slice(&engine, &key, &[2.0f32, 2.0])?;
/// let v = Memory::from_slice(&engine, &value, &[1.0f32, 3.0])?;
/// let (mut dst, mut sums) = (Memory::new(&engine, &query)?, Memory::new(&engine, &query)?);
/// let forward = Forward::training(&engine, &query, &key, &value).build()?;
/// forward.execute(&stream, ForwardArgs::new(&q, &k, &v, &mut dst).log_sum_exp(&mut sums))?;
///
/// let backward = Backward::new(&engine, &query, &key, &value).build()?;
/// let diff_dst = Memory::from_slice(&engine, &query, &[10.0f32])?;
/// let mut diff_q = Memory::new(&engine, &query)?;
/// let (mut diff_k, mut diff_v) = (Memory::new(&engine, &key)?, Memory::new(&engine, &value)?);
/// let gradients = (&mut diff_q, &mut diff_k, &mut diff_v);
/// let args = BackwardArgs::new((&q, &k, &v), (&dst, &sums), &diff_dst, gradients);
/// backward.execute(&stream, args)?;
/// // Both weights are a half: half of the gradient goes to each value.
/// assert_eq!(diff_v.as_slice::<f32>()?, [5.0, 5.0]);
/// assert_eq!(diff_k.as_slice::<f32>()?, [-5.0, 5.0]);
/// assert_eq!(diff_q.as_slice::<f32>()?, [0.0]);
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct Backward {
    primitive: Primitive,
}

primitive!(Backward, BackwardArgs, "Backward");

impl Backward {
    /// The gradients of attention with these descriptors of queries, keys and values.
    #[expect(clippy::new_ret_no_self, reason = "as in layer_normalization")]
    pub fn new<'b>(
        engine: &'b Engine,
        query: &'b MemoryDesc,
        key: &'b MemoryDesc,
        value: &'b MemoryDesc,
    ) -> BackwardBuilder<'b> {
        let common = Common::new(engine, query, key, value);
        BackwardBuilder { common, gradients: None, diff_dst: None, diff_mask: None }
    }
}

/// The memories of one backward execution.
#[derive(Debug)]
#[must_use]
pub struct BackwardArgs<'x>(pub(super) Args<'x>);

args!(BackwardArgs);

impl<'x> BackwardArgs<'x> {
    /// Inputs are queries, keys and values, forward's `dst` and log-sum-exp, and the gradient of `dst`; outputs are the
    /// gradients of queries, keys and values.
    pub fn new<A: Access, B: Access, C: Access, D: Access, E: Access, F: Access>(
        (queries, keys, values): (&'x Memory<'_, A>, &'x Memory<'_, B>, &'x Memory<'_, C>),
        (dst, log_sum_exp): (&'x Memory<'_, D>, &'x Memory<'_, E>),
        diff_dst: &'x Memory<'_, F>,
        (diff_queries, diff_keys, diff_values): Gradients<'x, '_, '_, '_>,
    ) -> Self {
        let args = Args::new().input(Arg::Queries, queries).input(Arg::Keys, keys);
        let args = args.input(Arg::Values, values).input(Arg::Dst, dst);
        let args = args.input(Arg::Workspace, log_sum_exp).input(Arg::DiffDst, diff_dst);
        let args = args.output(Arg::DiffQueries, diff_queries).output(Arg::DiffKeys, diff_keys);
        Self(args.output(Arg::DiffValues, diff_values))
    }

    /// The gradient of the mask.
    pub fn diff_mask(self, diff_mask: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffAttnMask, diff_mask))
    }

    /// The gradient of the sinks.
    pub fn diff_sinks(self, diff_sinks: &'x mut Memory<'_>) -> Self {
        Self(self.0.output(Arg::DiffSinks, diff_sinks))
    }
}

/// The memories of the gradients of queries, keys and values.
type Gradients<'x, 'q, 'k, 'v> = (&'x mut Memory<'q>, &'x mut Memory<'k>, &'x mut Memory<'v>);
