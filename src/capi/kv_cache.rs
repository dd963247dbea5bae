//! KV caches.

use super::engine::HeldEngine;
use super::exported;
use super::handle::{Handle, Out, Part, count_of, handles, is_null, slice};
use super::memory::Memory;
use super::stream::Stream;
use crate::cache::{Cache, CacheKind, Parameters, Rows, Shape};
use crate::error::{Error, Result};
use crate::heap;
use crate::mark::{Kind, Mark};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;
use std::ffi::c_int;

/// A cache, and memory objects for the buffers that it owns.
#[repr(C)]
struct KvCache {
    mark: Mark,
    cache: Cache,
    /// The table, lengths, slots and positions; then for each layer keys, values, and the scales of both or, without
    /// scales, keys as rope writes them.
    memories: Vec<Part<Memory>>,
}

handles! {
    KvCache: norm_kv_cache = KvCache;
}

/// The memories before those of layers.
const SHARED: usize = 4;

impl KvCache {
    fn new(engine: &HeldEngine, shape: Shape) -> Result<Self> {
        let cache = Cache::new(shape)?;
        let part = |desc: Result<MemoryDesc>, data| Part::new(Memory::part(engine, desc?, data));
        let mut memories = heap::list([
            part(shape.table_desc(shape.sequences), cache.table_address())?,
            part(shape.lengths_desc(), cache.lengths_address())?,
            part(shape.slots_desc(), cache.slots_address())?,
            part(shape.positions_desc(), cache.positions_address())?,
        ])?;
        for layer in 0..shape.layers {
            let keys = cache.keys(layer);
            heap::push(&mut memories, part(shape.key_desc(), keys)?)?;
            heap::push(&mut memories, part(shape.value_desc(), cache.values(layer))?)?;
            if shape.is_quantized() {
                let (of_keys, of_values) = (cache.key_scales(layer), cache.value_scales(layer));
                heap::push(&mut memories, part(shape.key_scale_desc(), of_keys)?)?;
                heap::push(&mut memories, part(shape.value_scale_desc(), of_values)?)?;
            } else {
                heap::push(&mut memories, part(shape.rope_dst_desc(), keys)?)?;
            }
        }
        Ok(Self { mark: Mark::part(Kind::KvCache), cache, memories })
    }

    fn memory(&self, index: usize) -> sys::norm_memory_t {
        self.memories[index].handle()
    }

    fn of_layer(&self, layer: usize, index: usize) -> sys::norm_memory_t {
        let per_layer = if self.cache.shape().is_quantized() { 4 } else { 3 };
        self.memory(SHARED + layer * per_layer + index)
    }

    /// Checks that rope can write to the cache: it stores its results without scales.
    fn check_rope(&self, name: &str) -> Result<()> {
        if !self.cache.shape().is_quantized() {
            return Ok(());
        }
        Err(Error::unimplemented(format_args!(
            "{name}: rope cannot write keys of {}, which have scales; have it write a tensor, and \
             pass that to norm_kv_cache_write",
            self.cache.shape().data_type.name()
        )))
    }
}

/// Writes arguments, or only their number if `args` is NULL.
///
/// # Safety
/// `nargs` is NULL or can be written, and `args` is NULL or has room for `*nargs`.
unsafe fn put(
    pairs: &[(c_int, sys::norm_memory_t)],
    nargs: *mut c_int,
    args: *mut sys::norm_exec_arg_t,
) {
    // SAFETY: guaranteed by the caller, and checked by `check_room`.
    unsafe {
        if !args.is_null() {
            for (index, &(arg, memory)) in pairs.iter().enumerate() {
                args.add(index).write(sys::norm_exec_arg_t { arg, memory });
            }
        }
        nargs.write(pairs.len() as c_int);
    }
}

/// # Safety
/// As [`put`].
unsafe fn check_room(
    nargs: *mut c_int,
    args: *mut sys::norm_exec_arg_t,
    count: usize,
) -> Result<()> {
    if nargs.is_null() {
        return Err(is_null("nargs"));
    }
    // SAFETY: guaranteed by the caller.
    let room = unsafe { nargs.read() };
    if !args.is_null() && usize::try_from(room).unwrap_or(0) < count {
        let text = format_args!("nargs: room for {room} arguments, but there are {count}");
        return Err(Error::invalid(text));
    }
    Ok(())
}

exported! {
    /// Creates a cache.
    fn norm_kv_cache_create(
        cache: *mut sys::norm_kv_cache_t,
        engine: sys::norm_engine_t,
        kind: sys::norm_kv_cache_kind_t,
        data_type: sys::norm_data_type_t,
        layers: sys::norm_dim_t,
        kv_heads: sys::norm_dim_t,
        key_size: sys::norm_dim_t,
        value_size: sys::norm_dim_t,
        sequences: sys::norm_dim_t,
        tokens: sys::norm_dim_t,
        step_tokens: sys::norm_dim_t,
        page_size: sys::norm_dim_t,
        pages: sys::norm_dim_t,
        window: sys::norm_dim_t,
        first_tokens: sys::norm_dim_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (out, engine) = unsafe { (Out::new(cache, "cache")?, HeldEngine::new(engine, "engine")?) };
        let kind = CacheKind::given(kind, "kind")?;
        let Some(data_type) = DataType::of_code(data_type) else {
            let code = data_type as i32;
            return Err(Error::invalid(format_args!(
                "data_type: {code} is none of f32, bf16, f16, s8 and f8_e4m3"
            )));
        };
        let shape = Shape::new(&Parameters {
            kind,
            data_type,
            layers,
            kv_heads,
            key_size,
            value_size,
            sequences,
            tokens,
            step_tokens,
            page_size,
            pages,
            window,
            first_tokens,
        })?;
        out.set(KvCache::new(&engine, shape)?.into_c()?);
        Ok(())
    }
}

exported! {
    /// Frees a cache.
    fn norm_kv_cache_destroy(cache: sys::norm_kv_cache_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { KvCache::destroy(cache, "cache") }
    }
}

exported! {
    /// Begins a sequence.
    fn norm_kv_cache_new_sequence(cache: sys::norm_kv_cache_t, sequence: *mut sys::norm_dim_t) {
        // SAFETY: guaranteed by the caller.
        let (cache, out) = unsafe { (KvCache::get_mut(cache, "cache")?, Out::new(sequence, "sequence")?) };
        out.set(cache.cache.new_sequence()?);
        Ok(())
    }
}

exported! {
    /// Ends a sequence.
    fn norm_kv_cache_drop(cache: sys::norm_kv_cache_t, sequence: sys::norm_dim_t) {
        // SAFETY: guaranteed by the caller.
        unsafe { KvCache::get_mut(cache, "cache") }?.cache.drop_sequence(sequence)
    }
}

exported! {
    /// The tokens of a sequence.
    fn norm_kv_cache_get_length(
        cache: sys::const_norm_kv_cache_t,
        sequence: sys::norm_dim_t,
        length: *mut sys::norm_dim_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (cache, out) = unsafe { (KvCache::get(cache, "cache")?, Out::new(length, "length")?) };
        out.set(cache.cache.length(sequence)? as i64);
        Ok(())
    }
}

exported! {
    /// Drops the last tokens of a sequence.
    fn norm_kv_cache_truncate(
        cache: sys::norm_kv_cache_t,
        sequence: sys::norm_dim_t,
        length: sys::norm_dim_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { KvCache::get_mut(cache, "cache") }?.cache.truncate(sequence, length)
    }
}

exported! {
    /// Begins a sequence with the tokens of another.
    fn norm_kv_cache_fork(
        cache: sys::norm_kv_cache_t,
        sequence: sys::norm_dim_t,
        copy: *mut sys::norm_dim_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (cache, out) = unsafe { (KvCache::get_mut(cache, "cache")?, Out::new(copy, "copy")?) };
        out.set(cache.cache.fork(sequence)?);
        Ok(())
    }
}

exported! {
    /// Makes room for tokens.
    fn norm_kv_cache_extend(
        cache: sys::norm_kv_cache_t,
        count: c_int,
        sequences: *const sys::norm_dim_t,
        tokens: *const sys::norm_dim_t,
        rows: sys::norm_dim_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let cache = KvCache::get_mut(cache, "cache")?;
            let count = count_of(count, "count")?;
            let (sequences, tokens) = (slice(sequences, count, "sequences")?, slice(tokens, count, "tokens")?);
            cache.cache.extend(sequences, tokens, rows)
        }
    }
}

/// The tensor of a memory; `None` for NULL.
///
/// # Safety
/// A handle, as the header requires.
unsafe fn rows<'a>(memory: sys::const_norm_memory_t, name: &str) -> Result<Option<Rows<'a>>> {
    // SAFETY: guaranteed by the caller.
    let Some(memory) = (unsafe { Memory::get_optional(memory, name) })? else { return Ok(None) };
    memory.check_tensor(name)?;
    Ok(Some(Rows { desc: &memory.desc, data: memory.data }))
}

exported! {
    /// Writes keys and values of the step.
    fn norm_kv_cache_write(
        cache: sys::norm_kv_cache_t,
        stream: sys::norm_stream_t,
        layer: sys::norm_dim_t,
        keys: sys::const_norm_memory_t,
        values: sys::const_norm_memory_t,
    ) {
        // SAFETY: guaranteed by the caller; memories are as large as their descriptors say.
        unsafe {
            let cache = KvCache::get_mut(cache, "cache")?;
            let threads = Stream::get(stream, "stream")?.threads;
            let given = (rows(keys, "keys")?, rows(values, "values")?);
            cache.cache.write(layer, given, threads)
        }
    }
}

exported! {
    /// The arguments of attention.
    fn norm_kv_cache_get_arguments(
        cache: sys::norm_kv_cache_t,
        layer: sys::norm_dim_t,
        count: c_int,
        sequences: *const sys::norm_dim_t,
        nargs: *mut c_int,
        args: *mut sys::norm_exec_arg_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let cache = KvCache::get_mut(cache, "cache")?;
            let layer = cache.cache.layer(layer)?;
            let sequences = slice(sequences, count_of(count, "count")?, "sequences")?;
            let quantized = cache.cache.shape().is_quantized();
            check_room(nargs, args, if quantized { 6 } else { 4 })?;
            if !args.is_null() {
                cache.cache.fill(layer, sequences)?;
            }
            let keys = (sys::NORM_ARG_KEYS, cache.of_layer(layer, 0));
            let values = (sys::NORM_ARG_VALUES, cache.of_layer(layer, 1));
            let table = (sys::NORM_ARG_PAGE_TABLE, cache.memory(0));
            let lengths = (sys::NORM_ARG_KEY_LENGTHS, cache.memory(1));
            if quantized {
                let of_keys = (sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_KEYS, cache.of_layer(layer, 2));
                let of_values = (sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_VALUES, cache.of_layer(layer, 3));
                put(&[keys, values, table, lengths, of_keys, of_values], nargs, args);
            } else {
                put(&[keys, values, table, lengths], nargs, args);
            }
        }
        Ok(())
    }
}

exported! {
    /// The arguments of rope.
    fn norm_kv_cache_get_rope_arguments(
        cache: sys::norm_kv_cache_t,
        layer: sys::norm_dim_t,
        nargs: *mut c_int,
        args: *mut sys::norm_exec_arg_t,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let cache = KvCache::get_mut(cache, "cache")?;
            let layer = cache.cache.layer(layer)?;
            check_room(nargs, args, 3)?;
            cache.check_rope("cache")?;
            if !args.is_null() {
                cache.cache.is_given_to_rope(layer);
            }
            let pairs = [
                (sys::NORM_ARG_DST, cache.of_layer(layer, 2)),
                (sys::NORM_ARG_SLOTS, cache.memory(2)),
                (sys::NORM_ARG_POSITIONS, cache.memory(3)),
            ];
            put(&pairs, nargs, args);
        }
        Ok(())
    }
}

exported! {
    /// The descriptors of these arguments.
    fn norm_kv_cache_get_descs(
        cache: sys::const_norm_kv_cache_t,
        count: c_int,
        key_desc: *mut sys::norm_memory_desc_t,
        value_desc: *mut sys::norm_memory_desc_t,
        page_table_desc: *mut sys::norm_memory_desc_t,
        rope_dst_desc: *mut sys::norm_memory_desc_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let cache = unsafe { KvCache::get(cache, "cache") }?;
        let (count, shape) = (count_of(count, "count")?, cache.cache.shape());
        if count > shape.sequences {
            return Err(Error::invalid(format_args!(
                "count: {count} sequences, but the cache has at most {}", shape.sequences
            )));
        }
        if !rope_dst_desc.is_null() {
            cache.check_rope("rope_dst_desc")?;
        }
        let descs = [
            (key_desc, shape.key_desc()?),
            (value_desc, shape.value_desc()?),
            (page_table_desc, shape.table_desc(count)?),
            (rope_dst_desc, shape.rope_dst_desc()?),
        ];
        let mut made = [std::ptr::null_mut(); 4];
        for (index, (out, desc)) in descs.into_iter().enumerate() {
            if out.is_null() {
                continue;
            }
            match desc.into_c() {
                Ok(desc) => made[index] = desc,
                Err(error) => {
                    // SAFETY: they were made above.
                    made.into_iter().try_for_each(|desc| unsafe { MemoryDesc::destroy(desc, "desc") })?;
                    return Err(error);
                }
            }
        }
        for (out, desc) in [key_desc, value_desc, page_table_desc, rope_dst_desc].into_iter().zip(made) {
            // SAFETY: guaranteed by the caller.
            unsafe { super::handle::put_optional(out, desc) };
        }
        Ok(())
    }
}

exported! {
    /// The counts of a cache.
    fn norm_kv_cache_get_stats(
        cache: sys::const_norm_kv_cache_t,
        stats: *mut sys::norm_kv_cache_stats_t,
    ) {
        // SAFETY: guaranteed by the caller.
        let (cache, out) = unsafe { (KvCache::get(cache, "cache")?, Out::new(stats, "stats")?) };
        let found = cache.cache.stats();
        out.set(sys::norm_kv_cache_stats_t {
            sequences: found.sequences as i64,
            page_size: found.page_size as i64,
            page_bytes: found.page_bytes as i64,
            pages: found.pages as i64,
            used_pages: found.used_pages as i64,
            shared_pages: found.shared_pages as i64,
            copied_pages: found.copied_pages as i64,
            bytes: found.bytes as i64,
        });
        Ok(())
    }
}
