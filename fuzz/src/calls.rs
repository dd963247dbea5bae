//! Sequences of C calls with descriptors, attributes, problems and executions. A refused call leaves its outputs alone
//! and has a message. An execution never writes an input, nor anything outside the tensors; a refused one writes
//! nothing.

use crate::execution::Arguments;
use crate::handles::{has_message, made};
use crate::source::Source;
use norm_sys as sys;
use std::ptr::{null, null_mut};

/// The objects of a sequence.
struct World {
    engine: sys::norm_engine_t,
    stream: sys::norm_stream_t,
    descs: Vec<sys::norm_memory_desc_t>,
    attrs: Vec<sys::norm_primitive_attr_t>,
    problems: Vec<sys::norm_primitive_desc_t>,
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

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths that
// are passed. A mistake here is found by the sanitizers, too.
#[allow(clippy::undocumented_unsafe_blocks)]
impl World {
    fn new() -> Self {
        unsafe {
            let engine = made(|out| sys::norm_engine_create(out, sys::norm_cpu, 0)).expect("a CPU");
            let stream = made(|out| sys::norm_stream_create(out, engine, 1)).expect("a stream");
            let (descs, attrs, problems) = (Vec::new(), Vec::new(), Vec::new());
            Self { engine, stream, descs, attrs, problems, executed: 0 }
        }
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

    /// A descriptor like another: a part of it, another shape or another type.
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
        self.attrs.push(attr);
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
                    let group = group.as_ptr().cast();
                    sys::norm_primitive_attr_set_scales(attr, arg, mask, groups, group, data_type);
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

    /// A descriptor for another tensor of a problem: often the first one itself.
    fn like(
        &self,
        source: &mut Source<'_>,
        first: sys::norm_memory_desc_t,
    ) -> sys::norm_memory_desc_t {
        if source.one_in(3) { self.desc(source) } else { first }
    }

    fn problem(&mut self, source: &mut Source<'_>) {
        let src = self.desc(source);
        let (dst, third) = (self.like(source, src), self.like(source, src));
        let stat = if source.one_in(4) { self.desc(source) } else { null_mut() };
        let attr = if self.attrs.is_empty() || source.one_in(2) {
            null_mut()
        } else {
            source.one_of(&self.attrs)
        };
        let engine = if source.one_in(40) { null_mut() } else { self.engine };
        let flags = source.below(64) as u32 & 0x27 | u32::from(source.one_in(40)) << 4;
        let axis = source.below(6) as i32 - 1;
        let data_type =
            source.one_of(&[sys::norm_f32, sys::norm_f32, sys::norm_bf16, sys::norm_s8]);
        let kind = source.one_of(&[64, 96, 128, 160, 64, 1000]);
        let algorithm = source.one_of(&[0x30000, 0x30001, 7]);
        let softmax = sys::norm_softmax_accurate + algorithm % 3;
        let made = match source.below(5) {
            0 | 1 => made(|out| unsafe {
                sys::norm_layer_normalization_forward_primitive_desc_create_v2(
                    out, engine, kind, src, dst, stat, data_type, 1e-3, flags, attr,
                )
            }),
            2 => made(|out| unsafe {
                sys::norm_layer_normalization_backward_primitive_desc_create_v2(
                    out,
                    engine,
                    kind,
                    third,
                    dst,
                    src,
                    stat,
                    data_type,
                    data_type,
                    1e-3,
                    flags,
                    null_mut(),
                    attr,
                )
            }),
            3 if source.one_in(2) => made(|out| unsafe {
                let hint = null_mut();
                sys::norm_softmax_backward_primitive_desc_create(
                    out, engine, softmax, third, dst, src, axis, hint, attr,
                )
            }),
            3 => made(|out| unsafe {
                sys::norm_softmax_forward_primitive_desc_create(
                    out, engine, kind, softmax, src, dst, axis, attr,
                )
            }),
            4 if source.one_in(2) => made(|out| unsafe {
                let (groups, hint) = (i64::from(axis), null_mut());
                if kind < 128 {
                    sys::norm_group_normalization_forward_primitive_desc_create(
                        out, engine, kind, src, dst, groups, 1e-3, flags, attr,
                    )
                } else {
                    sys::norm_group_normalization_backward_primitive_desc_create(
                        out, engine, kind, third, dst, src, groups, 1e-3, flags, hint, attr,
                    )
                }
            }),
            _ => {
                let dst = self.desc(source);
                made(|out| unsafe {
                    sys::norm_reorder_primitive_desc_create(out, src, engine, dst, engine, attr)
                })
            }
        };
        if let Some(problem) = made {
            for _ in 0..source.below(4) {
                if unsafe { sys::norm_primitive_desc_next_impl(problem) } != sys::norm_success {
                    break;
                }
            }
            self.problems.push(problem);
        }
    }

    fn execute(&mut self, source: &mut Source<'_>) {
        if self.problems.is_empty() {
            return;
        }
        let problem = source.one_of(&self.problems);
        let Some(mut arguments) = Arguments::of(problem, source) else { return };
        let primitive = made(|out| unsafe { sys::norm_primitive_create(out, problem) });
        let Some(primitive) = primitive else { return };
        arguments.create_memories(self.engine, source);
        if source.one_in(4) {
            let other = self.desc(source);
            arguments.spoil(self.engine, other, source);
        }
        let list = arguments.list();
        let before: Vec<Vec<u8>> = arguments.all.iter().map(|a| a.buffer.contents()).collect();
        arguments.protect();
        unsafe {
            // Miri has no signal masks, which a team's threads start with.
            sys::norm_set_num_threads(if cfg!(miri) { 1 } else { 1 + source.below(2) as i32 });
            let count = list.len() as i32;
            let status = sys::norm_primitive_execute(primitive, self.stream, count, list.as_ptr());
            arguments.check(&before, status == sys::norm_success);
            if status == sys::norm_success {
                self.executed += 1;
            } else {
                has_message();
            }
            sys::norm_primitive_destroy(primitive);
        }
        arguments.destroy();
    }
}

#[allow(clippy::undocumented_unsafe_blocks)]
impl Drop for World {
    fn drop(&mut self) {
        unsafe {
            self.problems.iter().for_each(|p| _ = sys::norm_primitive_desc_destroy(*p));
            self.attrs.iter().for_each(|a| _ = sys::norm_primitive_attr_destroy(*a));
            self.descs.iter().for_each(|d| _ = sys::norm_memory_desc_destroy(*d));
            sys::norm_stream_destroy(self.stream);
            sys::norm_engine_destroy(self.engine);
        }
    }
}

/// Strides in some order, with gaps, sometimes overlapping.
fn strides(source: &mut Source<'_>, dims: &[i64]) -> [i64; 13] {
    let mut strides = [0; 13];
    let mut order: Vec<usize> = (0..dims.len()).collect();
    if dims.len() > 1 && source.one_in(2) {
        order.swap(source.below(dims.len()), dims.len() - 1);
    }
    let mut stride = 1 + i64::from(source.one_in(4));
    for &d in order.iter().rev() {
        strides[d] = stride;
        stride = stride.wrapping_mul(dims[d].max(1)).wrapping_add(source.below(3) as i64);
    }
    if source.one_in(8) {
        strides[source.below(4)] = source.one_of(&[0, 1, -1, i64::MAX]);
    }
    strides
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
