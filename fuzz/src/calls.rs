//! Sequences of C calls with descriptors, attributes, problems, memories and executions. A refused call leaves its
//! outputs unchanged and sets a message. An execution writes neither inputs nor anything outside the tensors; a refused
//! one writes nothing. Objects say about themselves what they were created with, and copies say the same.

mod attributes;
mod explanations;
mod getters;
mod many;
mod memories;
mod numbers;
mod settings;
mod weights;

use crate::execution::Arguments;
use crate::handles::{done, engine_and_stream, made};
use crate::layouts::strides;
use crate::problems;
use crate::source::Source;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The objects of a sequence.
struct World {
    engine: sys::norm_engine_t,
    stream: sys::norm_stream_t,
    descs: Vec<sys::norm_memory_desc_t>,
    /// Each with whether an execution computes scales.
    attrs: Vec<(sys::norm_primitive_attr_t, bool)>,
    problems: Vec<(sys::norm_primitive_desc_t, bool)>,
    executed: u64,
}

const TYPES: [u32; 12] = [
    sys::norm_f32,
    sys::norm_bf16,
    sys::norm_f16,
    sys::norm_f64,
    sys::norm_s8,
    sys::norm_u8,
    sys::norm_s32,
    sys::norm_f8_e5m2,
    sys::norm_f8_e4m3,
    sys::norm_e8m0,
    sys::norm_s64,
    sys::norm_f32,
];

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed. The sanitizers also find mistakes here.
impl World {
    fn new() -> Self {
        let (engine, stream) = engine_and_stream();
        let (descs, attrs, problems) = (Vec::new(), Vec::new(), Vec::new());
        Self { engine, stream, descs, attrs, problems, executed: 0 }
    }

    /// A live descriptor, or sometimes NULL.
    fn desc(&self, source: &mut Source<'_>) -> sys::norm_memory_desc_t {
        if self.descs.is_empty() || source.one_in(30) {
            return null_mut();
        }
        source.one_of(&self.descs)
    }

    fn describe(&mut self, source: &mut Source<'_>) {
        let ndims = if source.one_in(20) { source.below(14) } else { 2 + source.below(3) };
        let mut dims = [1i64; 13];
        for dim in &mut dims[..ndims] {
            *dim = source.one_of(&[1, 2, 3, 4, 5, 8, 16, 17, 33, 70]);
        }
        if source.one_in(20) {
            dims[source.below(4)] = source.one_of(&[0, -1, i64::MAX, 1 << 40]);
        }
        let data_type = if source.one_in(40) { 99 } else { source.one_of(&TYPES) };
        let n = ndims as i32;
        let desc = match source.below(6) {
            0 => made(|out| unsafe {
                sys::norm_memory_desc_create_with_tag(out, n, dims.as_ptr(), data_type, 1)
            }),
            1 => {
                let tag = u32::from(source.byte()) + 2;
                made(|out| unsafe {
                    sys::norm_memory_desc_create_with_tag(out, n, dims.as_ptr(), data_type, tag)
                })
            }
            2 | 3 => {
                let strides = strides(source, &dims[..ndims]);
                made(|out| unsafe {
                    let (dims, strides) = (dims.as_ptr(), strides.as_ptr());
                    sys::norm_memory_desc_create_with_strides(out, n, dims, data_type, strides)
                })
            }
            _ => made(|out| unsafe {
                let dims = dims.as_ptr();
                sys::norm_memory_desc_create_with_strides(out, n, dims, data_type, null())
            }),
        };
        self.descs.extend(desc);
    }

    /// Derives a descriptor from another: a part of it, another shape or another type.
    fn derive(&mut self, source: &mut Source<'_>) {
        let desc = self.desc(source);
        let numbers: [i64; 13] = std::array::from_fn(|_| source.below(18) as i64);
        let offsets: [i64; 13] = std::array::from_fn(|_| source.below(3) as i64);
        let derived = match source.below(4) {
            0 => made(|out| unsafe {
                let (dims, offsets) = (numbers.as_ptr(), offsets.as_ptr());
                sys::norm_memory_desc_create_submemory(out, desc, dims, offsets)
            }),
            1 => made(|out| unsafe {
                sys::norm_memory_desc_reshape(out, desc, numbers[0] as i32, numbers[1..].as_ptr())
            }),
            2 => {
                let axes: [i32; 12] = std::array::from_fn(|d| (d as i32) ^ (numbers[0] as i32 & 1));
                made(|out| unsafe { sys::norm_memory_desc_permute_axes(out, desc, axes.as_ptr()) })
            }
            _ => {
                let copy = made(|out| unsafe { sys::norm_memory_desc_clone(out, desc) });
                if let Some(copy) = copy {
                    let data_type = source.one_of(&TYPES);
                    done(unsafe { sys::norm_memory_desc_set_data_type(copy, data_type) });
                }
                copy
            }
        };
        self.descs.extend(derived);
    }

    fn problem(&mut self, source: &mut Source<'_>) {
        let (attr, dynamic) = if self.attrs.is_empty() || source.one_in(2) {
            (null_mut(), false)
        } else {
            source.one_of(&self.attrs)
        };
        let engine = if source.one_in(40) { null_mut() } else { self.engine };
        let given = problems::Given { engine, attr, descs: &self.descs, problems: &self.problems };
        if let Some(problem) = given.problem(source) {
            for _ in 0..source.below(4) {
                if !done(unsafe { sys::norm_primitive_desc_next_impl(problem) }) {
                    break;
                }
            }
            self.problems.push((problem, dynamic));
        }
    }

    /// Changes a setting of the process or of the stream.
    fn set(&self, source: &mut Source<'_>) {
        if source.one_in(2) {
            return settings::change(source);
        }
        let own: sys::norm_parallel_for_t = if source.one_in(3) { None } else { Some(one_by_one) };
        let threads = source.one_of(&[1, 2, 3, 255, 0, 256, -1]);
        let set = done(unsafe {
            sys::norm_stream_set_parallel_for(self.stream, own, null_mut(), threads)
        });
        assert_eq!(set, own.is_none() || (1..=255).contains(&threads));
    }

    /// A number of threads, for executions.
    fn set_threads(source: &mut Source<'_>) {
        // Miri does not support signal masks, which starting a team needs.
        let threads = if cfg!(miri) { 1 } else { 1 + source.below(2) as i32 };
        assert!(done(unsafe { sys::norm_set_num_threads(threads) }));
    }

    fn execute(&mut self, source: &mut Source<'_>) {
        if self.problems.is_empty() {
            return;
        }
        let (problem, dynamic) = source.one_of(&self.problems);
        let Some(mut arguments) = Arguments::of(problem, dynamic, &[], source) else { return };
        let primitive = made(|out| unsafe { sys::norm_primitive_create(out, problem) });
        let Some(primitive) = primitive else { return };
        arguments.create_memories(self.engine, source);
        if source.one_in(4) {
            let other = self.desc(source);
            arguments.spoil(self.engine, other, source);
        }
        if source.one_in(4) {
            self.ask_primitive(primitive, problem, source);
        }
        Self::set_threads(source);
        if arguments.execute(primitive, self.stream) {
            self.executed += 1;
            let threads = unsafe { sys::norm_get_last_num_threads() };
            // None if a tensor is empty.
            assert!((0..=255).contains(&threads), "{threads} threads took part");
        }
        unsafe { sys::norm_primitive_destroy(primitive) };
        arguments.destroy();
    }
}

/// The caller's threads: the calling thread alone runs the pieces, the last one first.
extern "C" fn one_by_one(
    _pool: *mut c_void,
    count: i32,
    body: sys::norm_parallel_body_t,
    context: *mut c_void,
) {
    let body = body.expect("a body");
    for index in (0..count).rev() {
        // SAFETY: the library passes a body and its context.
        unsafe { body(index, context) };
    }
}

impl Drop for World {
    fn drop(&mut self) {
        unsafe {
            self.problems.iter().for_each(|p| _ = sys::norm_primitive_desc_destroy(p.0));
            self.attrs.iter().for_each(|a| _ = sys::norm_primitive_attr_destroy(a.0));
            self.descs.iter().for_each(|d| _ = sys::norm_memory_desc_destroy(*d));
            sys::norm_stream_destroy(self.stream);
            sys::norm_engine_destroy(self.engine);
        }
        settings::restore();
    }
}

/// Returns the number of executions that succeeded.
pub fn run(data: &[u8]) -> u64 {
    let mut source = Source::new(data);
    let mut world = World::new();
    for _ in 0..2 {
        world.describe(&mut source);
    }
    let mut calls = 0;
    while !source.is_empty() && calls < 60 {
        calls += 1;
        match source.below(16) {
            0 | 1 => world.describe(&mut source),
            2 => world.derive(&mut source),
            3 | 4 => world.attributes(&mut source),
            5..=7 => world.problem(&mut source),
            8..=10 => world.execute(&mut source),
            11 => world.execute_many(&mut source),
            12 => world.ask(&mut source),
            13 => world.memory(&mut source),
            14 => world.measure(&mut source),
            _ => world.set(&mut source),
        }
    }
    world.executed
}
