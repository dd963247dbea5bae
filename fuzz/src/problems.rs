//! Problems of every kind, from descriptors that a sequence of calls has made and from others that fit them.

use crate::handles::made;
use crate::layouts::Descs;
use crate::sdpa;
use crate::source::Source;
use norm_sys as sys;
use std::ptr::null_mut;

/// The inputs of a problem.
pub(crate) struct Given<'a> {
    pub(crate) engine: sys::norm_engine_t,
    pub(crate) attr: sys::norm_primitive_attr_t,
    pub(crate) descs: &'a [sys::norm_memory_desc_t],
    /// Problems that may be hints of others, each with whether an execution computes scales.
    pub(crate) problems: &'a [(sys::norm_primitive_desc_t, bool)],
}

/// The hint of a backward problem; NULL for none.
struct Hint {
    handle: sys::norm_primitive_desc_t,
    /// Whether it is destroyed with this value.
    is_owned: bool,
}

impl Drop for Hint {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: a live handle that is not used again.
            unsafe { sys::norm_primitive_desc_destroy(self.handle) };
        }
    }
}

type Problem = Option<sys::norm_primitive_desc_t>;

/// Tensors of a problem, often with the same descriptor.
#[derive(Clone, Copy)]
struct Tensors {
    src: sys::norm_memory_desc_t,
    dst: sys::norm_memory_desc_t,
    third: sys::norm_memory_desc_t,
}

/// The dimensions of a descriptor.
pub(crate) fn dims(desc: sys::norm_memory_desc_t) -> Vec<i64> {
    let ndims: i32 = crate::fill::told(desc, sys::norm_query_ndims_s32);
    (0..ndims as usize).map(|d| crate::fill::desc_dim(desc, d)).collect()
}

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed.
impl Given<'_> {
    /// A live descriptor, or sometimes NULL.
    fn desc(&self, source: &mut Source<'_>) -> sys::norm_memory_desc_t {
        if self.descs.is_empty() || source.one_in(30) {
            return null_mut();
        }
        source.one_of(self.descs)
    }

    /// A descriptor for another tensor of a problem, often the first one itself.
    fn like(
        &self,
        source: &mut Source<'_>,
        first: sys::norm_memory_desc_t,
    ) -> sys::norm_memory_desc_t {
        if source.one_in(3) { self.desc(source) } else { first }
    }

    /// A hint: often the problem that `forward` makes, sometimes one that does not fit.
    fn hint(&self, source: &mut Source<'_>, forward: impl FnOnce() -> Problem) -> Hint {
        match source.below(4) {
            0 | 1 => {
                let made = forward();
                Hint { handle: made.unwrap_or(null_mut()), is_owned: made.is_some() }
            }
            2 if !self.problems.is_empty() => {
                Hint { handle: source.one_of(self.problems).0, is_owned: false }
            }
            _ => Hint { handle: null_mut(), is_owned: false },
        }
    }

    /// A problem of any kind, if the library accepts it.
    pub(crate) fn problem(&self, source: &mut Source<'_>) -> Problem {
        let src = self.desc(source);
        let tensors = Tensors { src, dst: self.like(source, src), third: self.like(source, src) };
        match source.below(12) {
            0 | 1 => self.layer_normalization(source, tensors),
            2 => self.group_normalization(source, tensors),
            3 => self.softmax(source, tensors),
            4 | 5 => self.elementwise(source, tensors),
            6 | 7 => self.gated(source, src),
            8 | 9 => self.rope(source, tensors),
            10 => {
                let hint = self.hint(source, || None);
                sdpa::problem(source, self.engine, hint.handle)
            }
            _ => {
                let (engine, dst) = (self.engine, self.desc(source));
                made(|out| unsafe {
                    sys::norm_reorder_primitive_desc_create(
                        out, src, engine, dst, engine, self.attr,
                    )
                })
            }
        }
    }

    fn layer_normalization(&self, source: &mut Source<'_>, t: Tensors) -> Problem {
        let stat = if source.one_in(4) { self.desc(source) } else { null_mut() };
        let flags = flags(source);
        let data_type =
            source.one_of(&[sys::norm_f32, sys::norm_f32, sys::norm_bf16, sys::norm_s8]);
        let kind = kind(source);
        if source.one_in(3) {
            return self.layer_normalization_backward(source, t, stat, (kind, flags, data_type));
        }
        let (engine, attr) = (self.engine, self.attr);
        // The constructors of the first version have no parameter for the type.
        let is_first = data_type == sys::norm_f32 && source.one_in(2);
        made(|out| unsafe {
            if is_first {
                sys::norm_layer_normalization_forward_primitive_desc_create(
                    out, engine, kind, t.src, t.dst, stat, 1e-3, flags, attr,
                )
            } else {
                sys::norm_layer_normalization_forward_primitive_desc_create_v2(
                    out, engine, kind, t.src, t.dst, stat, data_type, 1e-3, flags, attr,
                )
            }
        })
    }

    fn layer_normalization_backward(
        &self,
        source: &mut Source<'_>,
        t: Tensors,
        stat: sys::norm_memory_desc_t,
        (kind, flags, data_type): (u32, u32, u32),
    ) -> Problem {
        let (engine, attr) = (self.engine, self.attr);
        let hint = self.hint(source, || {
            let kind = sys::norm_forward_training;
            made(|out| unsafe {
                sys::norm_layer_normalization_forward_primitive_desc_create(
                    out, engine, kind, t.src, t.src, stat, 1e-3, flags, attr,
                )
            })
        });
        let (diff_src, diff_dst, hint) = (t.third, t.dst, &hint);
        if data_type == sys::norm_f32 && source.one_in(2) {
            return made(|out| unsafe {
                sys::norm_layer_normalization_backward_primitive_desc_create(
                    out,
                    engine,
                    kind,
                    diff_src,
                    diff_dst,
                    t.src,
                    stat,
                    1e-3,
                    flags,
                    hint.handle,
                    attr,
                )
            });
        }
        made(|out| unsafe {
            sys::norm_layer_normalization_backward_primitive_desc_create_v2(
                out,
                engine,
                kind,
                diff_src,
                diff_dst,
                t.src,
                stat,
                data_type,
                data_type,
                1e-3,
                flags,
                hint.handle,
                attr,
            )
        })
    }

    fn group_normalization(&self, source: &mut Source<'_>, t: Tensors) -> Problem {
        let (engine, attr, kind, flags) = (self.engine, self.attr, kind(source), flags(source));
        let groups = source.one_of(&[1, 2, 4, 8, 3, 0, -1, i64::MAX]);
        let forward = |kind, dst| {
            made(|out| unsafe {
                sys::norm_group_normalization_forward_primitive_desc_create(
                    out, engine, kind, t.src, dst, groups, 1e-3, flags, attr,
                )
            })
        };
        if kind < 128 {
            return forward(kind, t.dst);
        }
        let hint = self.hint(source, || forward(sys::norm_forward_training, t.src));
        made(|out| unsafe {
            sys::norm_group_normalization_backward_primitive_desc_create(
                out,
                engine,
                kind,
                t.third,
                t.dst,
                t.src,
                groups,
                1e-3,
                flags,
                hint.handle,
                attr,
            )
        })
    }

    fn softmax(&self, source: &mut Source<'_>, t: Tensors) -> Problem {
        let algorithm = sys::norm_softmax_accurate + source.below(3) as u32;
        let (axis, kind) = (source.below(6) as i32 - 1, kind(source));
        let (engine, attr) = (self.engine, self.attr);
        let hint = self.hint(source, || None);
        made(|out| unsafe {
            if source.one_in(2) {
                sys::norm_softmax_backward_primitive_desc_create(
                    out,
                    engine,
                    algorithm,
                    t.third,
                    t.dst,
                    t.src,
                    axis,
                    hint.handle,
                    attr,
                )
            } else {
                sys::norm_softmax_forward_primitive_desc_create(
                    out, engine, kind, algorithm, t.src, t.dst, axis, attr,
                )
            }
        })
    }

    fn elementwise(&self, source: &mut Source<'_>, t: Tensors) -> Problem {
        let numbers = [0.0, 1.0, -1.0, 0.25, 3.0, f32::NAN, f32::INFINITY, 1e-40];
        let (alpha, beta) = (source.one_of(&numbers), source.one_of(&numbers));
        let (engine, attr, kind) = (self.engine, self.attr, kind(source));
        let of_dst = if source.one_in(3) { 0x100 - 0x20 } else { 0 };
        let eltwise = sys::norm_eltwise_relu + source.below(0x18) as u32 + of_dst;
        let binary = sys::norm_binary_add + source.below(15) as u32;
        let hint = self.hint(source, || None);
        match source.below(4) {
            0 => made(|out| unsafe {
                sys::norm_eltwise_forward_primitive_desc_create(
                    out, engine, kind, eltwise, t.src, t.dst, alpha, beta, attr,
                )
            }),
            1 => made(|out| unsafe {
                sys::norm_eltwise_backward_primitive_desc_create(
                    out,
                    engine,
                    eltwise,
                    t.third,
                    t.dst,
                    t.src,
                    alpha,
                    beta,
                    hint.handle,
                    attr,
                )
            }),
            2 => made(|out| unsafe {
                sys::norm_binary_primitive_desc_create(
                    out, engine, binary, t.src, t.third, t.dst, attr,
                )
            }),
            _ => {
                let mut descs = Descs::default();
                let mut of_condition = dims(t.src);
                if let Some(dim) = of_condition.last_mut().filter(|_| source.one_in(2)) {
                    *dim = 1;
                }
                let condition = descs.tensor(source, &of_condition, sys::norm_s8);
                made(|out| unsafe {
                    let select = sys::norm_binary_select;
                    sys::norm_binary_primitive_desc_create_v2(
                        out, engine, select, t.src, t.third, condition, t.dst, attr,
                    )
                })
            }
        }
    }

    /// A gated problem with the dimensions of a descriptor, in any packing.
    fn gated(&self, source: &mut Source<'_>, src: sys::norm_memory_desc_t) -> Problem {
        let mut descs = Descs::default();
        let packing = sys::norm_gate_first + source.below(4) as u32 + u32::from(source.one_in(40));
        let mut half = dims(src);
        let separate = packing == sys::norm_gate_separate;
        if let Some(dim) = half.last_mut().filter(|_| !separate) {
            *dim /= 2;
        }
        let types = [sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_s8, sys::norm_u8];
        let mut tensor = |source: &mut Source<'_>, dims: &[i64]| {
            let data_type = source.one_of(&types);
            if source.one_in(12) { null_mut() } else { descs.tensor(source, dims, data_type) }
        };
        let up = if separate { tensor(source, &half) } else { null_mut() };
        let dst = tensor(source, &half);
        let functions = [
            sys::norm_eltwise_swish,
            sys::norm_eltwise_gelu_erf,
            sys::norm_eltwise_gelu_tanh,
            sys::norm_eltwise_relu,
            sys::norm_eltwise_logistic,
            sys::norm_eltwise_linear,
            sys::norm_eltwise_exp,
        ];
        let function = source.one_of(&functions);
        let alpha = source.one_of(&[1.0, 0.0, 1.702, f32::NAN]);
        let limit = source.one_of(&[f32::INFINITY, 7.0, 1e-3, 0.0, f32::NAN]);
        let shift = source.one_of(&[0.0, 1.0, f32::INFINITY]);
        let (engine, attr) = (self.engine, self.attr);
        if source.one_in(2) {
            let kind = kind(source);
            return made(|out| unsafe {
                sys::norm_gated_forward_primitive_desc_create(
                    out, engine, kind, function, packing, src, up, dst, alpha, limit, shift, attr,
                )
            });
        }
        let full = dims(src);
        let diff_up = if separate { tensor(source, &half) } else { null_mut() };
        let (diff_src, diff_dst) = (tensor(source, &full), tensor(source, &half));
        let dst = if source.one_in(2) { dst } else { null_mut() };
        let hint = self.hint(source, || None);
        made(|out| unsafe {
            sys::norm_gated_backward_primitive_desc_create(
                out,
                engine,
                function,
                packing,
                diff_src,
                diff_up,
                diff_dst,
                src,
                up,
                dst,
                alpha,
                limit,
                shift,
                hint.handle,
                attr,
            )
        })
    }

    fn rope(&self, source: &mut Source<'_>, t: Tensors) -> Problem {
        let mut descs = Descs::default();
        let full = dims(t.src);
        let (&head, others) = full.split_last()?;
        let pairing = sys::norm_rope_interleaved + source.below(3) as u32;
        let tables = source.one_in(3);
        let angles = sys::norm_rope_from_frequencies + u32::from(tables);
        let rotary =
            source.one_of(&[head / 2 * 2, head / 4 * 2, 2, 0, head.wrapping_add(2), -2, i64::MAX]);
        let slots = source.one_in(3);
        let mut of_positions = others.to_vec();
        for (d, dim) in of_positions.iter_mut().enumerate() {
            if source.one_in(2) || slots && d > 0 {
                *dim = 1;
            }
        }
        let index_dim = source.one_of(&[-1, -1, 0, 1, 7]);
        if let Some(dim) = usize::try_from(index_dim).ok().and_then(|d| of_positions.get_mut(d)) {
            *dim = 1;
        }
        let sections = source.one_of(&[0, 0, 0, 1, 2, 3, 4, 5]);
        let third = rotary / 2 / i64::from(sections.max(1));
        let parts = [
            rotary / 2 - third * (i64::from(sections) - 1).clamp(0, 3),
            third,
            third,
            third,
            third,
        ];
        if sections > 1 {
            of_positions.push(i64::from(sections));
        }
        let of_position = source.one_of(&[sys::norm_s32, sys::norm_s64]);
        let position = descs.tensor(source, &of_positions, of_position);
        let rows = source.one_of(&[64, 300, 1]);
        let float = source.one_of(&[sys::norm_f32, sys::norm_bf16, sys::norm_f16]);
        let table = if tables {
            descs.tensor(source, &[rows, rotary.clamp(0, 1 << 20) / 2], float)
        } else {
            null_mut()
        };
        let mut flags = if slots { sys::norm_write_slots } else { 0 };
        let mut scale = null_mut();
        if source.one_in(3) {
            flags |= sys::norm_rms_norm;
            if source.one_in(2) {
                flags |= sys::norm_use_scale;
                scale = descs.tensor(source, &[head], float);
            }
        }
        flags |= u32::from(sections > 1 && source.one_in(2)) * sys::norm_rope_interleaved_sections;
        flags |= u32::from(source.one_in(30)) << source.below(32);
        let mut of_dst = full.clone();
        if slots {
            of_dst[0] = source.one_of(&[40, 3, 100]);
        }
        let dst = if slots { descs.tensor(source, &of_dst, float) } else { t.dst };
        let magnitude = source.one_of(&[1.0, 0.5, f32::NAN]);
        let (engine, attr) = (self.engine, self.attr);
        if source.one_in(3) {
            let kept = source.one_in(2);
            let hint = self.hint(source, || None);
            return made(|out| unsafe {
                sys::norm_rope_backward_primitive_desc_create(
                    out,
                    engine,
                    pairing,
                    angles,
                    t.third,
                    t.dst,
                    if flags & sys::norm_rms_norm == 0 { null_mut() } else { t.src },
                    position,
                    index_dim,
                    table,
                    scale,
                    if kept { scale } else { null_mut() },
                    rotary,
                    magnitude,
                    sections,
                    parts.as_ptr(),
                    1e-5,
                    flags,
                    hint.handle,
                    attr,
                )
            });
        }
        let kind = kind(source);
        made(|out| unsafe {
            sys::norm_rope_forward_primitive_desc_create(
                out,
                engine,
                kind,
                pairing,
                angles,
                t.src,
                dst,
                position,
                index_dim,
                table,
                scale,
                rotary,
                magnitude,
                sections,
                parts.as_ptr(),
                1e-5,
                flags,
                attr,
            )
        })
    }
}

/// A propagation kind, sometimes an invalid one.
fn kind(source: &mut Source<'_>) -> u32 {
    source.one_of(&[64, 96, 128, 160, 64, 1000])
}

/// Flags of a normalization.
fn flags(source: &mut Source<'_>) -> u32 {
    let own = [sys::norm_scale_plus_one, sys::norm_round_before_scale, sys::norm_gate_output];
    let own = if source.one_in(4) { source.one_of(&own) } else { 0 };
    source.below(64) as u32 & 0x27 | u32::from(source.one_in(40)) << 4 | own
}
