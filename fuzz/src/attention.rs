//! Attention and KV caches: problems with any options, and sequences of steps whose tokens are forked, truncated,
//! dropped, written and attended to. It checks what [`crate::calls`] checks, and that a cache has what was written to
//! it.

use crate::cache::Cache;
use crate::execution::Arguments;
use crate::fill::dim;
use crate::handles::{engine_and_stream, has_message, made, message};
use crate::layouts::{Descs, described};
use crate::sdpa;
use crate::source::Source;
use norm_sys as sys;
use std::ptr::{null, null_mut};

struct World {
    engine: sys::norm_engine_t,
    stream: sys::norm_stream_t,
    cache: Option<Cache>,
    executed: u64,
}

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed.
impl World {
    fn new() -> Self {
        let (engine, stream) = engine_and_stream();
        Self { engine, stream, cache: None, executed: 0 }
    }

    /// A problem, executed once or twice with different data.
    fn attend(&mut self, source: &mut Source<'_>) {
        let Some(problem) = sdpa::problem(source, self.engine, null_mut()) else { return };
        while source.one_in(3)
            && unsafe { sys::norm_primitive_desc_next_impl(problem) } == sys::norm_success
        {}
        if let Some(primitive) = made(|out| unsafe { sys::norm_primitive_create(out, problem) }) {
            for _ in 0..1 + source.below(2) {
                self.execute(problem, primitive, source);
            }
            unsafe { sys::norm_primitive_destroy(primitive) };
        }
        unsafe { sys::norm_primitive_desc_destroy(problem) };
    }

    fn execute(
        &mut self,
        problem: sys::norm_primitive_desc_t,
        primitive: sys::norm_primitive_t,
        source: &mut Source<'_>,
    ) {
        let Some(mut arguments) = Arguments::of(problem, false, &[], source) else { return };
        arguments.create_memories(self.engine, source);
        if source.one_in(8) {
            let other = described(&[2, 3, 4, 5], sys::norm_f32, None);
            arguments.spoil(self.engine, other.expect("a descriptor"), source);
            other.inspect(|desc| unsafe { _ = sys::norm_memory_desc_destroy(*desc) });
        }
        unsafe {
            sys::norm_set_num_threads(if cfg!(miri) { 1 } else { 1 + source.below(2) as i32 });
        }
        self.executed += u64::from(arguments.execute(primitive, self.stream));
        arguments.destroy();
    }

    /// Makes one call to the cache.
    fn step(&mut self, source: &mut Source<'_>) {
        let (engine, stream) = (self.engine, self.stream);
        let Some(cache) = &mut self.cache else {
            self.cache = Cache::new(source, engine);
            return;
        };
        match source.below(12) {
            0 => cache.begin(),
            1 if source.one_in(2) => cache.drop_sequence(source),
            1 => cache.ask(source),
            2 => cache.fork(source),
            3 => cache.truncate(source),
            4..=6 => cache.extend(source),
            7 | 8 => cache.write(source, engine, stream),
            9 => self.rotate(source),
            10 => self.attend_to_cache(source),
            _ if source.one_in(6) => {
                cache.verify();
                self.cache = None;
            }
            _ => cache.verify(),
        }
        if let Some(cache) = &self.cache {
            cache.check();
        }
    }

    /// Runs attention of one query per sequence with the cache's arguments. It must succeed.
    fn attend_to_cache(&mut self, source: &mut Source<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let ring = cache.kind == sys::norm_kv_ring;
        let whole = cache.sequences.iter().filter(|sequence| !(ring && sequence.is_cut));
        let mut numbers: Vec<i64> = whole.map(|sequence| sequence.number).collect();
        if numbers.len() < cache.places && source.one_in(3) {
            numbers.insert(0, -1);
        }
        if numbers.is_empty() {
            return;
        }
        let (b, heads) = (numbers.len() as i64, cache.heads * (1 + source.below(2) as i64));
        let mut descs = [null_mut(); 3];
        let at: [_; 3] = std::array::from_fn(|i| &raw mut descs[i]);
        let handle = cache.handle;
        let status = unsafe {
            sys::norm_kv_cache_get_descs(handle, b as i32, at[0], at[1], at[2], null_mut())
        };
        assert_eq!(status, sys::norm_success);
        let mut own = Descs::default();
        descs.iter().for_each(|desc| _ = own.keep(Some(*desc)));
        let data_type = if cache.is_quantized() { sys::norm_f32 } else { cache.data_type };
        let query = own.keep(described(&[b, heads, 1, cache.sizes[0]], data_type, None));
        let dst = own.keep(described(&[b, heads, 1, cache.sizes[1]], data_type, None));
        let (kind, window) = match ring {
            true => (sys::norm_window_with_self, cache.window as i64),
            false => (sys::norm_window_none, 0),
        };
        let first = if ring { cache.first_tokens as i64 } else { 0 };
        let attr = made(|out| unsafe { sys::norm_primitive_attr_create(out) }).expect("attributes");
        if cache.is_quantized() {
            unsafe {
                sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_KEYS, 11);
                sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_VALUES, 7);
            }
        }
        let [key, value, table] = descs;
        let problem = made(|out| unsafe {
            sys::norm_sdpa_forward_primitive_desc_create(
                out,
                self.engine,
                sys::norm_forward_inference,
                query,
                key,
                value,
                dst,
                null_mut(),
                table,
                sys::norm_attn_mask_bottom_right,
                kind,
                window,
                first,
                0.25,
                0.0,
                sys::norm_sdpa_key_lengths,
                attr,
            )
        });
        unsafe { sys::norm_primitive_attr_destroy(attr) };
        let problem = problem.expect("attention over a cache");
        let primitive = made(|out| unsafe { sys::norm_primitive_create(out, problem) });
        let primitive = primitive.expect("a primitive");
        let layer = source.below(cache.layers);
        let lent = cache.arguments(layer, &numbers);
        let arguments = lent.and_then(|lent| Arguments::of(problem, false, &lent, source));
        if let Some(mut arguments) = arguments {
            arguments.create_memories(self.engine, source);
            assert!(arguments.execute(primitive, self.stream), "attention: {}", message());
            self.executed += 1;
            arguments.destroy();
        }
        unsafe {
            sys::norm_primitive_destroy(primitive);
            sys::norm_primitive_desc_destroy(problem);
        }
    }

    /// Runs rope, which writes keys of the step to a layer.
    fn rotate(&mut self, source: &mut Source<'_>) {
        let Some(cache) = &mut self.cache else { return };
        let layer = source.below(cache.layers);
        let mut args = [sys::norm_exec_arg_t { arg: 0, memory: null_mut() }; 3];
        let mut dst = null_mut();
        let mut nargs = 3;
        let status = unsafe {
            let (layer, nargs) = (layer as i64, &raw mut nargs);
            sys::norm_kv_cache_get_rope_arguments(cache.handle, layer, nargs, args.as_mut_ptr())
        };
        assert_eq!(status != sys::norm_success, cache.is_quantized());
        if cache.is_quantized() {
            return has_message();
        }
        cache.roped[layer] = true;
        let status = unsafe {
            let (none, dst) = (null_mut(), &raw mut dst);
            sys::norm_kv_cache_get_descs(cache.handle, 0, none, none, none, dst)
        };
        assert_eq!(status, sys::norm_success);
        let mut own = Descs::default();
        own.keep(Some(dst));
        let (tokens, size) = (cache.step_tokens, cache.sizes[0]);
        let src = own.keep(described(&[tokens, cache.heads, size], cache.data_type, None));
        let positions = own.keep(described(&[tokens, 1], sys::norm_s32, None));
        let problem = made(|out| unsafe {
            sys::norm_rope_forward_primitive_desc_create(
                out,
                self.engine,
                sys::norm_forward_inference,
                sys::norm_rope_half_split,
                sys::norm_rope_from_frequencies,
                src,
                dst,
                positions,
                -1,
                null_mut(),
                null_mut(),
                size / 2 * 2,
                1.0,
                0,
                null(),
                0.0,
                sys::norm_write_slots,
                null_mut(),
            )
        });
        // A head with one element has no pair.
        assert_eq!(problem.is_some(), size > 1, "rope to a cache");
        let Some(problem) = problem else { return };
        let primitive = made(|out| unsafe { sys::norm_primitive_create(out, problem) });
        let primitive = primitive.expect("a primitive");
        if let Some(mut arguments) = Arguments::of(problem, false, &args, source) {
            arguments.create_memories(self.engine, source);
            assert!(dim(problem, sys::NORM_ARG_POSITIONS, 0) == tokens);
            assert!(arguments.execute(primitive, self.stream), "rope: {}", message());
            arguments.destroy();
            cache.forget_keys(layer);
            self.executed += 1;
        }
        unsafe {
            sys::norm_primitive_destroy(primitive);
            sys::norm_primitive_desc_destroy(problem);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.cache = None;
        // SAFETY: live handles that are not used again.
        unsafe {
            sys::norm_stream_destroy(self.stream);
            sys::norm_engine_destroy(self.engine);
        }
    }
}

/// Returns the number of executions that succeeded.
pub fn run(data: &[u8]) -> u64 {
    let mut source = Source::new(data);
    let mut world = World::new();
    let (of_cache, mut calls) = (source.below(4), 0);
    // Miri takes seconds for a problem, because kernels compute whole blocks.
    let most = if cfg!(miri) { 8 } else { 40 };
    while !source.is_empty() && calls < most {
        calls += 1;
        // Inputs differ in what they mostly test.
        if source.below(4) < of_cache || calls % 8 == 0 {
            world.step(&mut source);
        } else {
            world.attend(&mut source);
        }
    }
    if let Some(cache) = &world.cache {
        cache.verify();
    }
    world.executed
}
