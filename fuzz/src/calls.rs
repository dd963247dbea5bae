//! Sequences of C calls with descriptors, attributes, problems and executions. A refused call leaves its outputs
//! unchanged and sets a message. An execution writes neither inputs nor anything outside the tensors; a refused one
//! writes nothing.

use crate::execution::Arguments;
use crate::handles::{engine_and_stream, made};
use crate::layouts::{Descs, strides};
use crate::problems;
use crate::source::Source;
use norm_sys as sys;
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

const TYPES: [u32; 10] = [
    sys::norm_f32,
    sys::norm_bf16,
    sys::norm_f16,
    sys::norm_f64,
    sys::norm_s8,
    sys::norm_u8,
    sys::norm_s32,
    sys::norm_f8_e5m2,
    sys::norm_f8_e4m3,
    sys::norm_f32,
];

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed. The sanitizers also find mistakes here.
#[allow(clippy::undocumented_unsafe_blocks)]
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
                    unsafe { sys::norm_memory_desc_set_data_type(copy, source.one_of(&TYPES)) };
                }
                copy
            }
        };
        self.descs.extend(derived);
    }

    fn attributes(&mut self, source: &mut Source<'_>) {
        let attr = made(|out| unsafe { sys::norm_primitive_attr_create(out) }).expect("attributes");
        let dynamic = self.row_attributes(source, attr);
        self.attrs.push((attr, dynamic));
        let args =
            [sys::NORM_ARG_SRC, sys::NORM_ARG_DST, sys::NORM_ARG_WEIGHTS, sys::NORM_ARG_MEAN];
        unsafe {
            if source.one_in(3) {
                sys::norm_primitive_attr_set_scratchpad_mode(attr, sys::norm_scratchpad_mode_user);
            }
            for _ in 0..source.below(3) {
                let (arg, mask) = (source.one_of(&args), source.one_of(&[0, 0, 0, 1, 2, 3, -1]));
                let data_type = source.one_of(&TYPES);
                let group = [1i64, 2, 1, 1];
                let groups = if source.one_in(12) { 2 } else { 0 };
                if source.one_in(3) {
                    sys::norm_primitive_attr_set_zero_points_mask(attr, arg, mask);
                } else if source.one_in(2) {
                    sys::norm_primitive_attr_set_scales_mask(attr, arg, mask);
                } else {
                    let (group, host) = (group.as_ptr(), i32::from(source.one_in(3)));
                    let set = if source.one_in(3) {
                        sys::norm_primitive_attr_set_zero_points_v2
                    } else {
                        sys::norm_primitive_attr_set_scales_v2
                    };
                    set(attr, arg, mask, groups, group, data_type, host);
                }
            }
        }
        if source.one_in(2) {
            return;
        }
        let list = made(|out| unsafe { sys::norm_post_ops_create(out) }).expect("a list");
        for _ in 0..source.below(5) {
            self.post_operation(source, list);
        }
        unsafe {
            sys::norm_primitive_attr_set_post_ops(attr, list);
            sys::norm_post_ops_destroy(list);
        }
    }

    /// Sets attributes that oneDNN lacks, and dropout. Returns whether scales of dst are dynamic.
    fn row_attributes(&self, source: &mut Source<'_>, attr: sys::norm_primitive_attr_t) -> bool {
        let dynamic = source.one_in(6);
        unsafe {
            if dynamic {
                let modes = [
                    sys::norm_quantization_mode_dynamic_fp,
                    sys::norm_quantization_mode_dynamic_mx,
                    sys::norm_quantization_mode_dynamic_fp,
                    99,
                ];
                let (mask, group) = (source.one_of(&[0, 1, 2, 3, 7]), [1i64, 32, 1, 1]);
                let types = [sys::norm_f32, sys::norm_e8m0, sys::norm_f8_e4m3, sys::norm_bf16];
                let (groups, data_type) = (source.below(3) as i32, source.one_of(&types));
                let (arg, mode) = (sys::NORM_ARG_DST, source.one_of(&modes));
                let dims = if groups == 0 { null() } else { group.as_ptr() };
                sys::norm_primitive_attr_set_scales_v3(
                    attr, arg, mask, groups, dims, data_type, 0, mode,
                );
            }
            let mut descs = Descs::default();
            // Tensors with the dimensions of a tensor that a problem may have.
            let mut dims = problems::dims(self.desc(source));
            let float = source.one_of(&[sys::norm_f32, sys::norm_bf16, sys::norm_u8]);
            match source.below(10) {
                0 => {
                    let rounding = sys::norm_residual_rounded + source.below(3) as u32;
                    let first = descs.tensor(source, &dims, float);
                    let sum = if source.one_in(2) { first } else { self.desc(source) };
                    sys::norm_primitive_attr_set_residual(attr, first, sum, rounding);
                }
                1 => {
                    let algorithm = sys::norm_eltwise_relu + source.below(22) as u32;
                    let gate = descs.tensor(source, &dims, float);
                    sys::norm_primitive_attr_set_gate(attr, gate, algorithm, 1.0);
                }
                2 => {
                    let elements = source.one_of(&[1, 4, 16, 0, -1, i64::MAX]);
                    sys::norm_primitive_attr_set_partial_norm(attr, elements);
                }
                3 => {
                    dims.last_mut().into_iter().for_each(|dim| *dim = 1);
                    let stats = descs.tensor(source, &dims, sys::norm_f32);
                    sys::norm_primitive_attr_set_softmax_stats(attr, stats);
                }
                4 | 5 => {
                    let seed = source.one_of(&[sys::norm_s64, sys::norm_s32, sys::norm_f32]);
                    let (offset, host) = (source.below(2) as i32, source.below(2) as i32);
                    let mask = descs.tensor(source, &dims, sys::norm_u8);
                    sys::norm_primitive_attr_set_dropout_v2(attr, mask, seed, offset, host);
                }
                _ => {}
            }
        }
        dynamic
    }

    fn post_operation(&self, source: &mut Source<'_>, list: sys::norm_post_ops_t) {
        let numbers = [0.0, 1.0, -1.0, 0.25, 3.0, f32::NAN, f32::INFINITY, 1e-40];
        let (alpha, beta) = (source.one_of(&numbers), source.one_of(&numbers));
        let eltwise = source.below(0x16) as u32 + sys::norm_eltwise_relu;
        let binary = source.below(14) as u32 + sys::norm_binary_add;
        unsafe {
            match source.below(8) {
                0..=2 => sys::norm_post_ops_append_eltwise(list, eltwise, alpha, beta),
                3 | 4 => sys::norm_post_ops_append_binary(list, binary, self.desc(source)),
                5 => sys::norm_post_ops_append_binary_v2(
                    list,
                    binary,
                    self.desc(source),
                    self.desc(source),
                ),
                6 => sys::norm_post_ops_append_sum(list, alpha, source.below(3) as i32, 0),
                _ => sys::norm_post_ops_append_prelu(list, source.below(4) as i32),
            };
        }
    }

    fn problem(&mut self, source: &mut Source<'_>) {
        let (attr, dynamic) = if self.attrs.is_empty() || source.one_in(2) {
            (null_mut(), false)
        } else {
            source.one_of(&self.attrs)
        };
        let engine = if source.one_in(40) { null_mut() } else { self.engine };
        let given = problems::Given { engine, attr, descs: &self.descs };
        if let Some(problem) = given.problem(source) {
            for _ in 0..source.below(4) {
                if unsafe { sys::norm_primitive_desc_next_impl(problem) } != sys::norm_success {
                    break;
                }
            }
            self.problems.push((problem, dynamic));
        }
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
        unsafe {
            // Miri does not support signal masks, which starting a team needs.
            sys::norm_set_num_threads(if cfg!(miri) { 1 } else { 1 + source.below(2) as i32 });
            self.executed += u64::from(arguments.execute(primitive, self.stream));
            sys::norm_primitive_destroy(primitive);
        }
        arguments.destroy();
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Drop for World {
    fn drop(&mut self) {
        unsafe {
            self.problems.iter().for_each(|p| _ = sys::norm_primitive_desc_destroy(p.0));
            self.attrs.iter().for_each(|a| _ = sys::norm_primitive_attr_destroy(a.0));
            self.descs.iter().for_each(|d| _ = sys::norm_memory_desc_destroy(*d));
            sys::norm_stream_destroy(self.stream);
            sys::norm_engine_destroy(self.engine);
        }
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
        match source.below(10) {
            0 | 1 => world.describe(&mut source),
            2 => world.derive(&mut source),
            3 => world.attributes(&mut source),
            4..=6 => world.problem(&mut source),
            _ => world.execute(&mut source),
        }
    }
    world.executed
}
