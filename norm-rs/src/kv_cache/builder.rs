//! The sizes of a cache.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use norm_sys as sys;

use super::KvCache;
use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::memory_desc::MemoryDesc;
use crate::sdpa::{Window, dim};

/// Builds a [`KvCache`]; see [`KvCache::contiguous`], [`KvCache::paged`] and [`KvCache::ring`]. The number of heads,
/// the size of keys and the number of tokens are required.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct KvCacheBuilder<'b> {
    engine: &'b Engine,
    kind: sys::norm_kv_cache_kind_t,
    data_type: DataType,
    layers: usize,
    heads: usize,
    key_size: usize,
    value_size: Option<usize>,
    sequences: usize,
    tokens: usize,
    step_tokens: Option<usize>,
    page_size: usize,
    pages: usize,
    window: Window,
    first_tokens: usize,
}

impl<'b> KvCacheBuilder<'b> {
    pub(super) fn new(
        engine: &'b Engine,
        kind: sys::norm_kv_cache_kind_t,
        data_type: DataType,
    ) -> Self {
        Self {
            engine,
            kind,
            data_type,
            layers: 1,
            heads: 0,
            key_size: 0,
            value_size: None,
            sequences: 1,
            tokens: 0,
            step_tokens: None,
            page_size: 0,
            pages: 0,
            window: Window::None,
            first_tokens: 0,
        }
    }

    /// Layers of the model. Default: 1.
    pub fn layers(self, layers: usize) -> Self {
        Self { layers, ..self }
    }

    /// Heads of keys and values.
    pub fn heads(self, heads: usize) -> Self {
        Self { heads, ..self }
    }

    /// Elements in a head of keys.
    pub fn key_size(self, key_size: usize) -> Self {
        Self { key_size, ..self }
    }

    /// Elements in a head of values. Default: the same as for keys.
    pub fn value_size(self, value_size: usize) -> Self {
        Self { value_size: Some(value_size), ..self }
    }

    /// The maximum number of sequences at a time. Default: 1.
    pub fn sequences(self, sequences: usize) -> Self {
        Self { sequences, ..self }
    }

    /// The maximum number of tokens per sequence.
    pub fn tokens(self, tokens: usize) -> Self {
        Self { tokens, ..self }
    }

    /// The maximum number of rows in the tensors of a step, all sequences together. Default: all tokens of all
    /// sequences.
    pub fn step_tokens(self, step_tokens: usize) -> Self {
        Self { step_tokens: Some(step_tokens), ..self }
    }

    /// Pages in the pool. Default: as many as all sequences can need.
    pub fn pages(self, pages: usize) -> Self {
        Self { pages, ..self }
    }

    /// How many first tokens of a sequence a ring keeps, for the [first keys](crate::sdpa::ForwardBuilder::first_keys)
    /// of attention. Default: 0.
    pub fn first_tokens(self, first_tokens: usize) -> Self {
        Self { first_tokens, ..self }
    }

    pub(super) fn page_size(self, page_size: usize) -> Self {
        Self { page_size, ..self }
    }

    pub(super) fn window(self, window: Window) -> Self {
        Self { window, ..self }
    }

    /// Allocates the cache, without sequences.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for a size that is missing or out of its range,
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for types that a cache does not have,
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn build(self) -> Result<KvCache> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        // The number of keys that a token sees, including its own.
        let seen = self.window.keys().unwrap_or(0);
        let every = self.sequences.saturating_mul(self.tokens);
        let sizes = [
            ("layers", self.layers),
            ("kv_heads", self.heads),
            ("key_size", self.key_size),
            ("value_size", self.value_size.unwrap_or(self.key_size)),
            ("sequences", self.sequences),
            ("tokens", self.tokens),
            ("step_tokens", self.step_tokens.unwrap_or(every)),
            ("page_size", self.page_size),
            ("pages", self.pages),
            ("window", seen),
            ("first_tokens", self.first_tokens),
        ];
        let mut c = [0; 11];
        for (to, (name, size)) in c.iter_mut().zip(sizes) {
            *to = dim(name, size)?;
        }
        let (engine, kind, data_type) = (self.engine.as_ptr(), self.kind, self.data_type.to_c());
        let [
            layers,
            heads,
            key_size,
            value_size,
            sequences,
            tokens,
            step,
            page,
            pages,
            window,
            first,
        ] = c;
        // SAFETY: the engine is valid; on success a cache that the caller owns is stored.
        let handle = unsafe {
            Handle::create(|out| {
                sys::norm_kv_cache_create(
                    out, engine, kind, data_type, layers, heads, key_size, value_size, sequences,
                    tokens, step, page, pages, window, first,
                )
            })
        }?;
        let quantized = matches!(self.data_type, DataType::S8 | DataType::F8E4m3);
        let [key, value, table, rope_dst] = descs(&handle, !quantized)?;
        let table = table.map_or(0, |table| table.dims().last().copied().unwrap_or(0));
        let (Some(key), Some(value)) = (key, value) else {
            return Err(Error::defect("the cache has no descriptors"));
        };
        Ok(KvCache {
            handle,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            data_type: self.data_type,
            layers: self.layers,
            sequences: self.sequences,
            key,
            value,
            rope_dst,
            columns: table,
            kept: (self.kind == sys::norm_kv_ring).then_some((seen, self.first_tokens)),
        })
    }
}

/// The descriptors of keys, values, the table and, if there are any, the keys that rope writes.
pub(super) fn descs(
    cache: &Handle<sys::norm_kv_cache>,
    with_rope: bool,
) -> Result<[Option<MemoryDesc>; 4]> {
    let mut found = [ptr::null_mut(); 4];
    let [key, value, table, rope_dst] = &mut found;
    let rope_dst = if with_rope { rope_dst } else { ptr::null_mut() };
    // SAFETY: the cache is valid, and descriptors may be NULL; on success descriptors that the caller owns are stored.
    check(unsafe { sys::norm_kv_cache_get_descs(cache.as_ptr(), 1, key, value, table, rope_dst) })?;
    // SAFETY: the descriptor was stored above, or is NULL.
    Ok(found.map(|desc| unsafe { MemoryDesc::owned(desc) }.ok()))
}
