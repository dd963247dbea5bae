//! The arguments that a cache lends to executions.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use norm_sys as sys;

use super::{KvCache, Sequence, count};
use crate::error::{Result, check};
use crate::memory::desc_of;
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Arg, Args};
use crate::sdpa::dim;

/// The most arguments: keys, values, table, lengths and, if keys and values are quantized, their scales.
const ROOM: usize = 8;

/// Arguments that the cache owns.
#[derive(Clone, Copy)]
struct Lent {
    pairs: [sys::norm_exec_arg_t; ROOM],
    count: usize,
}

impl Lent {
    /// The arguments that `get` writes. It is called with the size of the array.
    fn new(
        get: impl FnOnce(*mut i32, *mut sys::norm_exec_arg_t) -> sys::norm_status_t,
    ) -> Result<Self> {
        let mut pairs = [sys::norm_exec_arg_t { arg: 0, memory: ptr::null_mut() }; ROOM];
        let mut count = ROOM as i32;
        check(get(&mut count, pairs.as_mut_ptr()))?;
        Ok(Self { pairs, count: usize::try_from(count).unwrap_or(0).min(ROOM) })
    }

    fn pairs(&self) -> &[sys::norm_exec_arg_t] {
        &self.pairs[..self.count]
    }

    /// The descriptors and addresses of arguments of a kind of primitives.
    fn raw(&self, kind: sys::norm_primitive_kind_t) -> Result<Vec<RawArgument>> {
        let mut found = Vec::with_capacity(self.count);
        for pair in self.pairs() {
            let mut all = Arg::ALL.iter().filter(|arg| arg.is_of(kind));
            let Some(&arg) = all.find(|arg| arg.to_c() == pair.arg) else { continue };
            let mut data = ptr::null_mut();
            // SAFETY: the memory and its descriptor belong to the cache, which is borrowed; `data` is a place for the
            // answer.
            let desc = unsafe {
                check(sys::norm_memory_get_data_handle(pair.memory, &mut data))?;
                MemoryDesc::copy_of(desc_of(pair.memory)?)?
            };
            found.push(RawArgument { arg, desc, data: data.cast() });
        }
        Ok(found)
    }
}

// SAFETY: the memories belong to a cache, which is Send and which the owner of this borrows exclusively.
unsafe impl Send for Lent {}

/// The arguments with which attention reads a layer: keys, values, page table, key lengths, and the scales of quantized
/// keys and values. They borrow the cache; see [`KvCache`].
pub struct SdpaArgs<'x> {
    lent: Lent,
    cache: PhantomData<&'x mut KvCache>,
}

/// The arguments with which rope writes a layer: keys, slots and positions. They borrow the cache; see [`KvCache`].
pub struct RopeArgs<'x> {
    lent: Lent,
    cache: PhantomData<&'x mut KvCache>,
}

/// An argument for bindings to other languages; see [`SdpaArgs::raw`] and [`RopeArgs::raw`].
#[derive(Debug)]
#[non_exhaustive]
pub struct RawArgument {
    /// What it is.
    pub arg: Arg,
    /// The whole tensor of the cache. The table and the lengths have room for all sequences of the cache, slots and
    /// positions for the largest step.
    pub desc: MemoryDesc,
    /// The first element.
    pub data: *mut u8,
}

impl<'x> SdpaArgs<'x> {
    pub(crate) fn bind(self, args: Args<'x>) -> Result<Args<'x>> {
        args.of_cache(sys::norm_sdpa, self.lent.pairs())
    }

    /// The descriptors and addresses, for [`Memory::from_raw`] as inputs. They are up to date until the cache is borrowed
    /// mutably again.
    ///
    /// [`Memory::from_raw`]: crate::Memory::from_raw
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn raw(&self) -> Result<Vec<RawArgument>> {
        self.lent.raw(sys::norm_sdpa)
    }
}

impl<'x> RopeArgs<'x> {
    /// The descriptors and addresses: `dst` is an output, slots and positions are inputs. They are up to date until the
    /// cache is borrowed mutably again.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn raw(&self) -> Result<Vec<RawArgument>> {
        self.lent.raw(sys::norm_rope)
    }

    pub(crate) fn bind(self, args: Args<'x>) -> Result<Args<'x>> {
        args.of_cache(sys::norm_rope, self.lent.pairs())
    }
}

impl KvCache {
    /// The arguments with which attention reads a layer, for sequences in this order; pass them to
    /// [`ForwardArgs::cached`](crate::sdpa::ForwardArgs::cached). A sequence may appear twice. The primitive may have
    /// more sequences: those places are empty and have length 0.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the cache has no such layer or sequence, or
    /// has fewer places.
    pub fn sdpa_args(&mut self, layer: usize, sequences: &[Sequence]) -> Result<SdpaArgs<'_>> {
        let (cache, layer) = (self.handle.as_ptr(), dim("layer", layer)?);
        let numbers = sequences.iter().map(|sequence| self.number(*sequence));
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        let count = count("sequences", numbers.len())?;
        // SAFETY: the cache is valid and borrowed exclusively until the result is dropped. There are `count` numbers, and
        // `nargs` is the size of `args`.
        let lent = Lent::new(|nargs, args| unsafe {
            sys::norm_kv_cache_get_arguments(cache, layer, count, numbers.as_ptr(), nargs, args)
        })?;
        Ok(SdpaArgs { lent, cache: PhantomData })
    }

    /// The arguments with which rope writes the open step's keys to a layer; pass them to
    /// [`rope::ForwardArgs::to_cache`](crate::rope::ForwardArgs::to_cache). Rope's `src` is `T x heads x key_size` with
    /// the rows of the step, where `T` is between their number and the maximum rows of a step; its positions are `T x
    /// 1`, s32. Rows without a token are not written.
    ///
    /// ```
    /// use norm_rs::kv_cache::{KvCache, Rows};
    /// use norm_rs::rope::{Forward, ForwardArgs, Pairing, Scaling, frequencies};
    /// use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream};
    ///
    /// let engine = Engine::cpu()?;
    /// let stream = Stream::new(&engine)?;
    /// let builder = KvCache::paged(&engine, DataType::F32, 4).heads(1).key_size(2);
    /// let mut cache = builder.tokens(8).build()?;
    /// let src = MemoryDesc::dense(&[3, 1, 2], DataType::F32)?; // up to 3 tokens
    /// let positions = MemoryDesc::dense(&[3, 1], DataType::S32)?;
    /// let rope = Forward::new(&engine, Pairing::HalfSplit, &src, &positions)
    ///     .dst(cache.rope_dst_desc()?)
    ///     .slots()
    ///     .build()?;
    ///
    /// let sequence = cache.new_sequence()?;
    /// cache.extend(&[(sequence, 2)], Rows::Packed)?;
    /// let keys = Memory::from_slice(&engine, &src, &[1.0f32, 0.0, 1.0, 0.0, 9.0, 9.0])?;
    /// let (values, _) = frequencies(Scaling::None, 2, 10000.0)?;
    /// let of_pairs = MemoryDesc::dense(&[1], DataType::F64)?;
    /// let of_pairs = Memory::from_slice(&engine, &of_pairs, &values)?;
    /// let args = ForwardArgs::to_cache(&keys, cache.rope_args(0)?)?;
    /// rope.execute(&stream, args.frequencies(&of_pairs))?;
    /// # Ok::<(), norm_rs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the cache has no such layer,
    /// [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for s8 and f8_e4m3: rope does not quantize.
    pub fn rope_args(&mut self, layer: usize) -> Result<RopeArgs<'_>> {
        let (cache, layer) = (self.handle.as_ptr(), dim("layer", layer)?);
        // SAFETY: as above.
        let lent = Lent::new(|nargs, args| unsafe {
            sys::norm_kv_cache_get_rope_arguments(cache, layer, nargs, args)
        })?;
        Ok(RopeArgs { lent, cache: PhantomData })
    }
}

impl fmt::Debug for SdpaArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SdpaArgs").field("count", &self.lent.count).finish()
    }
}

impl fmt::Debug for RopeArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RopeArgs").field("count", &self.lent.count).finish()
    }
}
