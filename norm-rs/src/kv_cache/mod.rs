//! A cache of the keys and values of [attention](crate::sdpa): [`KvCache`].
//!
//! A cache owns the keys and values of several sequences in all layers of a model. They are stored in pages of several
//! tokens. One step of a model is
//!
//! 1. [`KvCache::extend`] makes room for the new tokens of each sequence, in all layers;
//! 2. in each layer, [`KvCache::write`] writes them, or [rope](crate::rope::ForwardArgs::to_cache) writes the keys and
//!    [`KvCache::write_values`] the values;
//! 3. attention reads them, with [`ForwardArgs::cached`](crate::sdpa::ForwardArgs::cached).
//!
//! ```
//! use norm_rs::kv_cache::{KvCache, Rows};
//! use norm_rs::sdpa::{Causal, Forward, ForwardArgs};
//! use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
//!
//! let engine = Engine::cpu()?;
//! let stream = Stream::new(&engine)?;
//! // One head of 2 elements; 2 sequences of up to 64 tokens, in pages of 16.
//! let builder = KvCache::paged(&engine, DataType::F32, 16).heads(1).key_size(2);
//! let mut cache = builder.sequences(2).tokens(64).build()?;
//!
//! // One primitive for every step and every layer.
//! let row = MemoryDesc::dense(&[1, 1, 1, 2], DataType::F32)?;
//! let table = cache.page_table_desc(1)?;
//! let builder = Forward::inference(&engine, &row, cache.key_desc(), cache.value_desc());
//! let attention = builder.causal(Causal::BottomRight).key_lengths().page_table(&table).build()?;
//!
//! let sequence = cache.new_sequence()?;
//! let query = Memory::from_slice(&engine, &row, &[1.0f32, 0.0])?;
//! let mut dst = Memory::new(&engine, &row)?;
//! for (key, value) in [([1.0f32, 0.0], [1.0f32, 2.0]), ([1.0, 0.0], [3.0, 4.0])] {
//!     let key = Memory::from_slice(&engine, &row, &key)?;
//!     let value = Memory::from_slice(&engine, &row, &value)?;
//!     cache.extend(&[(sequence, 1)], Rows::Packed)?;
//!     cache.write(&stream, 0, &key, &value)?;
//!     let layer = cache.sdpa_args(0, &[sequence])?;
//!     attention.execute(&stream, ForwardArgs::cached(&query, layer, &mut dst)?)?;
//! }
//! assert_eq!(dst.as_slice::<f32>()?, [2.0, 3.0]); // two keys of the same score
//! # Ok::<(), norm_rs::Error>(())
//! ```
//!
//! A token has the same bits as with plain tensors, whatever the kind of the cache and however tokens are divided into
//! steps. A cache of s8 or f8_e4m3 quantizes what is written; create the attention that reads it with the attributes
//! [`KvCache::attr`]. `docs/kv_cache.md` has the details.

mod arguments;
mod builder;
mod slices;

pub use arguments::{RawArgument, RopeArgs, SdpaArgs};
pub use builder::KvCacheBuilder;

use std::fmt;
use std::ptr;

use norm_sys as sys;

use crate::attr::Attr;
use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::memory::{Access, Memory};
use crate::memory_desc::MemoryDesc;
use crate::primitive::Arg;
use crate::sdpa::{Window, dim};
use crate::stream::Stream;

/// A sequence of a [`KvCache`]. Numbers are never reused, so using a dropped sequence is always an error, as is using a
/// sequence of another cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence {
    number: sys::norm_dim_t,
    /// The id of the cache, 1 or more.
    cache: u64,
}

impl Sequence {
    /// An empty place in a batch: no sequence, 0 tokens.
    pub const NONE: Self = Self { number: -1, cache: 0 };

    /// Its number in the cache, 0 or more; -1 for [`NONE`](Self::NONE).
    pub fn number(self) -> i64 {
        self.number
    }
}

/// How the rows of a step's tensors are assigned to sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// Without gaps: the tokens of one sequence follow those of the one before.
    Packed,
    /// This many rows for each sequence: token `s` of sequence `b` is row `b*rows + s`.
    Padded(usize),
}

/// The contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Sequences begun and not dropped.
    pub sequences: usize,
    /// Tokens per page.
    pub page_size: usize,
    /// Bytes of the keys and values of a page in all layers.
    pub page_bytes: usize,
    /// Pages in the pool.
    pub pages: usize,
    /// Pages that belong to sequences.
    pub used_pages: usize,
    /// Pages that belong to several sequences; they also count as used.
    pub shared_pages: usize,
    /// Pages copied since creation; a page in all layers counts once.
    pub copied_pages: usize,
    /// Bytes of keys, values and tables.
    pub bytes: usize,
}

/// A cache of keys and values; see the [module](self).
///
/// It can move to another thread. Threads may share it to read [`length`](Self::length) and [`stats`](Self::stats);
/// everything else borrows it exclusively, and the arguments of attention and rope borrow it until the execution ends.
/// So outdated arguments cannot be used:
///
/// ```compile_fail,E0499
/// # use norm_rs::kv_cache::{KvCache, Rows};
/// # use norm_rs::sdpa::ForwardArgs;
/// # use norm_rs::{DataType, Engine, Memory};
/// # let engine = Engine::cpu()?;
/// # let mut cache = KvCache::paged(&engine, DataType::F32, 4).heads(1).key_size(2).tokens(8).build()?;
/// # let mut query = Memory::new(&engine, cache.value_desc())?;
/// let sequence = cache.new_sequence()?;
/// let layer = cache.sdpa_args(0, &[sequence])?;
/// cache.extend(&[(sequence, 1)], Rows::Packed)?;
/// let args = ForwardArgs::cached_in_place(&mut query, layer)?;
/// # Ok::<(), norm_rs::Error>(())
/// ```
pub struct KvCache {
    handle: Handle<sys::norm_kv_cache>,
    /// Unique in the program.
    id: u64,
    data_type: DataType,
    layers: usize,
    sequences: usize,
    key: MemoryDesc,
    value: MemoryDesc,
    /// `None` if rope cannot write keys.
    rope_dst: Option<MemoryDesc>,
    /// The columns of the page table.
    columns: usize,
    /// For a ring, the number of keys that a token sees and of first tokens that are kept; `None` if all tokens are kept.
    kept: Option<(usize, usize)>,
}

impl KvCache {
    /// A cache with one page for each sequence, for all its tokens.
    pub fn contiguous(engine: &Engine, data_type: DataType) -> KvCacheBuilder<'_> {
        KvCacheBuilder::new(engine, sys::norm_kv_contiguous, data_type)
    }

    /// A cache with pages of `page_size` tokens; each sequence has as many as its tokens need.
    pub fn paged(engine: &Engine, data_type: DataType, page_size: usize) -> KvCacheBuilder<'_> {
        KvCacheBuilder::new(engine, sys::norm_kv_paged, data_type).page_size(page_size)
    }

    /// A paged cache for attention with a sliding window: pages that no further token sees return to the pool. Also set
    /// [`step_tokens`](KvCacheBuilder::step_tokens): the size of the cache depends on that and on the window. Attention
    /// must have this window or a narrower one, and [`Causal::BottomRight`](crate::sdpa::Causal::BottomRight).
    pub fn ring(
        engine: &Engine,
        data_type: DataType,
        page_size: usize,
        window: Window,
    ) -> KvCacheBuilder<'_> {
        let builder = KvCacheBuilder::new(engine, sys::norm_kv_ring, data_type);
        builder.page_size(page_size).window(window)
    }

    /// Begins a sequence without tokens.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if there are already as many as the cache was built
    /// for.
    pub fn new_sequence(&mut self) -> Result<Sequence> {
        let mut number = -1;
        // SAFETY: the cache is valid and borrowed exclusively; `number` is a place for the answer.
        check(unsafe { sys::norm_kv_cache_new_sequence(self.handle.as_ptr(), &mut number) })?;
        Ok(Sequence { number, cache: self.id })
    }

    /// The sequence with a [number](Sequence::number) of this cache. Whether it exists is checked when it is used.
    pub fn sequence(&self, number: i64) -> Sequence {
        if number == Sequence::NONE.number {
            Sequence::NONE
        } else {
            Sequence { number, cache: self.id }
        }
    }

    /// Ends a sequence and frees the pages that no other sequence shares.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the cache has no such sequence.
    pub fn drop_sequence(&mut self, sequence: Sequence) -> Result<()> {
        let number = self.number(sequence)?;
        // SAFETY: the cache is valid and borrowed exclusively.
        check(unsafe { sys::norm_kv_cache_drop(self.handle.as_ptr(), number) })
    }

    /// The number of tokens in a sequence.
    ///
    /// # Errors
    /// As [`drop_sequence`](Self::drop_sequence).
    pub fn length(&self, sequence: Sequence) -> Result<usize> {
        let (number, mut length) = (self.number(sequence)?, 0);
        // SAFETY: the cache is valid and nobody changes it; `length` is a place for the answer.
        check(unsafe { sys::norm_kv_cache_get_length(self.handle.as_ptr(), number, &mut length) })?;
        Ok(usize::try_from(length).unwrap_or(0))
    }

    /// Drops the tokens of a sequence from `length` on.
    ///
    /// # Errors
    /// As [`drop_sequence`](Self::drop_sequence); also if the sequence is shorter, and in a ring if the next token
    /// would see keys whose pages have returned to the pool. The tokens of the last extension can always be dropped.
    pub fn truncate(&mut self, sequence: Sequence, length: usize) -> Result<()> {
        let (number, length) = (self.number(sequence)?, dim("length", length)?);
        // SAFETY: the cache is valid and borrowed exclusively.
        check(unsafe { sys::norm_kv_cache_truncate(self.handle.as_ptr(), number, length) })
    }

    /// Begins a sequence with the tokens of another. Both share all pages. A sequence that extends a shared page that
    /// is not full gets a copy of that page only.
    ///
    /// # Errors
    /// As [`new_sequence`](Self::new_sequence) and [`drop_sequence`](Self::drop_sequence).
    pub fn fork(&mut self, sequence: Sequence) -> Result<Sequence> {
        let (number, mut copy) = (self.number(sequence)?, -1);
        // SAFETY: the cache is valid and borrowed exclusively; `copy` is a place for the answer.
        check(unsafe { sys::norm_kv_cache_fork(self.handle.as_ptr(), number, &mut copy) })?;
        Ok(Sequence { number: copy, cache: self.id })
    }

    /// Makes room for more tokens of different sequences, in all layers, and opens a step, to which keys and values are
    /// written. [`fork`](Self::fork), [`truncate`](Self::truncate) and [`drop_sequence`](Self::drop_sequence) end it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the pool has too few free pages,
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for more tokens than a sequence or a step may
    /// have. On failure nothing changes.
    pub fn extend(&mut self, tokens: &[(Sequence, usize)], rows: Rows) -> Result<()> {
        let rows = match rows {
            Rows::Packed => 0,
            Rows::Padded(0) => return Err(Error::invalid("rows", "is 0; pass 1 or more")),
            Rows::Padded(rows) => dim("rows", rows)?,
        };
        let mut numbers = Vec::with_capacity(tokens.len());
        let mut counts = Vec::with_capacity(tokens.len());
        for &(sequence, count) in tokens {
            numbers.push(self.number(sequence)?);
            counts.push(dim("tokens", count)?);
        }
        let (numbers, counts) = (numbers.as_ptr(), counts.as_ptr());
        let count = count("tokens", tokens.len())?;
        // SAFETY: the cache is valid and borrowed exclusively; both lists have `count` numbers.
        check(unsafe {
            sys::norm_kv_cache_extend(self.handle.as_ptr(), count, numbers, counts, rows)
        })
    }

    /// Writes the keys and values of the step to a layer, converted to the type of the cache: f32, bf16 or f16, with any
    /// strides, sequences x heads x rows x elements; after [`Rows::Packed`] 1 x heads x all rows x elements.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if no step is open, or dimensions are not those
    /// of the step. On failure nothing is written.
    ///
    /// # Panics
    /// If the closure passed to [`Stream::set_parallel_for`] panicked. Everything has been written then.
    pub fn write<A: Access, B: Access>(
        &mut self,
        stream: &Stream<'_>,
        layer: usize,
        keys: &Memory<'_, A>,
        values: &Memory<'_, B>,
    ) -> Result<()> {
        // SAFETY: both memories are valid.
        unsafe { self.write_raw(stream, layer, keys.as_ptr(), values.as_ptr()) }
    }

    /// [`write`](Self::write), only for keys.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_keys<A: Access>(
        &mut self,
        stream: &Stream<'_>,
        layer: usize,
        keys: &Memory<'_, A>,
    ) -> Result<()> {
        // SAFETY: the memory is valid.
        unsafe { self.write_raw(stream, layer, keys.as_ptr(), ptr::null_mut()) }
    }

    /// [`write`](Self::write), only for values, if [rope](crate::rope::ForwardArgs::to_cache) writes the keys.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_values<A: Access>(
        &mut self,
        stream: &Stream<'_>,
        layer: usize,
        values: &Memory<'_, A>,
    ) -> Result<()> {
        // SAFETY: the memory is valid.
        unsafe { self.write_raw(stream, layer, ptr::null_mut(), values.as_ptr()) }
    }

    /// # Safety
    /// Each memory is valid or NULL.
    unsafe fn write_raw(
        &mut self,
        stream: &Stream<'_>,
        layer: usize,
        keys: sys::norm_memory_t,
        values: sys::norm_memory_t,
    ) -> Result<()> {
        let (cache, layer) = (self.handle.as_ptr(), dim("layer", layer)?);
        // SAFETY: the cache is valid and borrowed exclusively, so no execution uses its memories; the rest is guaranteed
        // by the caller. The buffers of `keys` and `values` have the sizes of their descriptors. They are not the
        // cache's, which are never lent as a `Memory`.
        let status =
            unsafe { sys::norm_kv_cache_write(cache, stream.as_ptr(), layer, keys, values) };
        stream.resume_panic();
        check(status)
    }

    /// Keys as attention reads them: pages x heads x elements x tokens per page.
    pub fn key_desc(&self) -> &MemoryDesc {
        &self.key
    }

    /// Values as attention reads them: pages x heads x tokens per page x elements.
    pub fn value_desc(&self) -> &MemoryDesc {
        &self.value
    }

    /// The page table of `count` sequences.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for more than the cache was built for.
    pub fn page_table_desc(&self, count: usize) -> Result<MemoryDesc> {
        if count > self.sequences {
            let most = self.sequences;
            let reason = format_args!("is {count}, but the cache has at most {most} sequences");
            return Err(Error::invalid("count", reason));
        }
        MemoryDesc::dense(&[count, self.columns], DataType::S32)
    }

    /// Keys as rope writes them: pages x tokens per page x heads x elements, the same memory as
    /// [`key_desc`](Self::key_desc).
    ///
    /// # Errors
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for a cache of s8 or f8_e4m3: rope does not
    /// quantize. Have it write a tensor, and pass that to [`write`](Self::write).
    pub fn rope_dst_desc(&self) -> Result<&MemoryDesc> {
        if self.rope_dst.is_none() {
            // The library's error gives the reason.
            builder::descs(&self.handle, true)?;
        }
        self.rope_dst.as_ref().ok_or(Error::defect("the cache has no descriptor for rope"))
    }

    /// Attributes for attention that reads the cache: for s8 and f8_e4m3, a scale for each token and head of keys and
    /// values; for other types, none.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn attr(&self) -> Result<Attr> {
        let mut attr = Attr::new()?;
        if matches!(self.data_type, DataType::S8 | DataType::F8E4m3) {
            attr.set_scales(Arg::Keys, 11)?;
            attr.set_scales(Arg::Values, 7)?;
        }
        Ok(attr)
    }

    /// Whether the cache keeps every key that the last tokens see with a window and [first
    /// keys](crate::sdpa::ForwardBuilder::first_keys). A ring keeps no more than it was built for: attention that sees
    /// other keys is [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) once their pages have returned
    /// to the pool.
    pub fn keeps(&self, window: Window, first_keys: usize) -> bool {
        let Some((keys, first_tokens)) = self.kept else { return true };
        window.keys().is_some_and(|seen| seen <= keys) && first_keys <= first_tokens
    }

    /// The type of keys and values.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The layers of the model.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// The maximum number of sequences at a time.
    pub fn most_sequences(&self) -> usize {
        self.sequences
    }

    /// The contents of the cache.
    ///
    /// # Errors
    /// None in practice; only an internal error of the library.
    pub fn stats(&self) -> Result<Stats> {
        // SAFETY: all zeros are numbers.
        let mut of: sys::norm_kv_cache_stats_t = unsafe { std::mem::zeroed() };
        // SAFETY: the cache is valid and nobody changes it; `of` is a place for the answer.
        check(unsafe { sys::norm_kv_cache_get_stats(self.handle.as_ptr(), &mut of) })?;
        let size = |number: sys::norm_dim_t| usize::try_from(number).unwrap_or(0);
        Ok(Stats {
            sequences: size(of.sequences),
            page_size: size(of.page_size),
            page_bytes: size(of.page_bytes),
            pages: size(of.pages),
            used_pages: size(of.used_pages),
            shared_pages: size(of.shared_pages),
            copied_pages: size(of.copied_pages),
            bytes: size(of.bytes),
        })
    }

    /// The number of a sequence for C.
    fn number(&self, sequence: Sequence) -> Result<sys::norm_dim_t> {
        if sequence.cache == self.id || sequence == Sequence::NONE {
            return Ok(sequence.number);
        }
        let reason = format_args!("{} is of another cache", sequence.number);
        Err(Error::invalid("sequence", reason))
    }
}

/// A number of entries for C.
fn count(name: &'static str, count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::invalid(name, "has too many entries"))
}

impl fmt::Debug for KvCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvCache").field("key", &self.key).field("stats", &self.stats()).finish()
    }
}
