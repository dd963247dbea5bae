//! Layer and group normalizations with residuals, gates, partial norms, flags of this library and dynamic scales.

use crate::run::{self, Ids};
use crate::{Library, Numbers, check};
use norm_sys as sys;
use std::ptr::{null, null_mut};

/// Channels and groups of group normalizations.
const CHANNELS: i64 = 6;
const GROUPS: i64 = 2;

const INPUTS: [i32; 7] = [
    sys::NORM_ARG_SRC,
    sys::NORM_ARG_RESIDUAL,
    sys::NORM_ARG_GATE,
    sys::NORM_ARG_SCALE,
    sys::NORM_ARG_SHIFT,
    sys::NORM_ARG_DIFF_DST,
    sys::NORM_ARG_DIFF_RESIDUAL_DST,
];
const OUTPUTS: [i32; 10] = [
    sys::NORM_ARG_DST,
    sys::NORM_ARG_RESIDUAL_DST,
    sys::NORM_ARG_MEAN,
    sys::NORM_ARG_VARIANCE,
    sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST,
    sys::NORM_ARG_ATTR_ZERO_POINTS | sys::NORM_ARG_DST,
    sys::NORM_ARG_DIFF_SRC,
    sys::NORM_ARG_DIFF_SCALE,
    sys::NORM_ARG_DIFF_SHIFT,
    sys::NORM_ARG_DIFF_GATE,
];

/// A layer normalization of dimensions `ab`, or a group normalization of `abc` or `acb`.
#[derive(Clone, Copy)]
struct Shape {
    tag: sys::norm_format_tag_t,
    /// The last dimension.
    last: i64,
}

impl Shape {
    fn is_grouped(self) -> bool {
        self.tag != sys::norm_ab
    }

    fn desc(self, data_type: u32) -> sys::norm_memory_desc_t {
        let mut desc = null_mut();
        let (rows, groups) = ([13, self.last], [2, CHANNELS, self.last]);
        let dims: &[i64] = if self.is_grouped() { &groups } else { &rows };
        let (ndims, dims) = (dims.len() as i32, dims.as_ptr());
        // SAFETY: there are as many dimensions as the tag has letters.
        check(unsafe {
            sys::norm_memory_desc_create_with_tag(&raw mut desc, ndims, dims, data_type, self.tag)
        });
        desc
    }

    /// A part of the elements that share statistics: of a row, or one of three channels.
    fn part(self) -> i64 {
        if self.is_grouped() { self.last } else { (self.last + 3) / 4 }
    }
}

/// A problem without its shape and the type of src.
#[derive(Clone, Copy, Default)]
struct Steps {
    name: &'static str,
    flags: u32,
    /// The type, if it is not that of src, and the rounding.
    residual: Option<(Option<u32>, u32)>,
    /// The type and the function.
    gate: Option<(u32, u32)>,
    partial: bool,
    dynamic: Option<Dynamic>,
}

/// Types of dst and of the scales.
#[derive(Clone, Copy)]
struct Dynamic {
    dst: u32,
    scale: u32,
    zero_points: bool,
}

/// With both directions.
fn steps() -> [Steps; 9] {
    let (scale, shift) = (sys::norm_use_scale, sys::norm_use_scale | sys::norm_use_shift);
    let (rms, plus, round) =
        (sys::norm_rms_norm, sys::norm_scale_plus_one, sys::norm_round_before_scale);
    let swish = sys::norm_eltwise_swish;
    let step = |name, flags| Steps { name, flags, ..Steps::default() };
    let residual = Some((None, sys::norm_residual_rounded));
    [
        Steps { residual, ..step("residual", scale | rms) },
        Steps {
            residual: Some((Some(sys::norm_f32), sys::norm_residual_exact)),
            ..step("exact", shift)
        },
        Steps {
            gate: Some((sys::norm_f32, swish)),
            ..step("gate_output", shift | sys::norm_gate_output)
        },
        Steps {
            gate: Some((sys::norm_bf16, sys::norm_eltwise_logistic)),
            ..step("gate_input", scale | rms | sys::norm_gate_input)
        },
        step("plus_one", shift | plus),
        step("round", shift | rms | round),
        Steps { partial: true, ..step("partial", scale | rms) },
        step("none", shift),
        Steps {
            residual,
            gate: Some((sys::norm_f16, swish)),
            partial: true,
            ..step("all", shift | rms | plus | round | sys::norm_gate_output)
        },
    ]
}

/// Forward only.
fn quantized() -> [Steps; 5] {
    let dynamic = |name, flags, dst, scale| Steps {
        name,
        flags,
        dynamic: Some(Dynamic { dst, scale, zero_points: dst == sys::norm_u8 }),
        ..Steps::default()
    };
    let (rms, scale) = (sys::norm_rms_norm, sys::norm_use_scale);
    [
        dynamic("s8", scale | rms, sys::norm_s8, sys::norm_f32),
        dynamic("u8", scale, sys::norm_u8, sys::norm_f32),
        dynamic("f8_e4m3", rms, sys::norm_f8_e4m3, sys::norm_f8_e4m3),
        dynamic("f8_e5m2", scale, sys::norm_f8_e5m2, sys::norm_f32),
        dynamic("mx", rms, sys::norm_f8_e4m3, sys::norm_e8m0),
    ]
}

/// The attributes of a problem.
fn attributes(steps: &Steps, shape: Shape, data_type: u32) -> sys::norm_primitive_attr_t {
    let mut attr = null_mut();
    // SAFETY: descriptors and attributes are alive, and groups have two dimensions.
    unsafe {
        check(sys::norm_primitive_attr_create(&raw mut attr));
        if let Some((its_type, rounding)) = steps.residual {
            let (residual, sum) =
                (shape.desc(its_type.unwrap_or(data_type)), shape.desc(data_type));
            check(sys::norm_primitive_attr_set_residual(attr, residual, sum, rounding));
        }
        if let Some((gate, function)) = steps.gate {
            check(sys::norm_primitive_attr_set_gate(attr, shape.desc(gate), function, 1.0));
        }
        if steps.partial {
            check(sys::norm_primitive_attr_set_partial_norm(attr, shape.part()));
        }
        if let Some(Dynamic { scale, zero_points, .. }) = steps.dynamic {
            let (mask, dst) = (if shape.is_grouped() { 7 } else { 3 }, sys::NORM_ARG_DST);
            let (group, mode) = match scale {
                sys::norm_e8m0 => (32, sys::norm_quantization_mode_dynamic_mx),
                _ => (shape.last, sys::norm_quantization_mode_dynamic_fp),
            };
            let groups: [i64; 2] = [1, group];
            check(sys::norm_primitive_attr_set_scales_v3(
                attr,
                dst,
                mask,
                2,
                groups.as_ptr(),
                scale,
                0,
                mode,
            ));
            if zero_points {
                check(sys::norm_primitive_attr_set_zero_points_v2(
                    attr,
                    dst,
                    mask,
                    2,
                    groups.as_ptr(),
                    sys::norm_s32,
                    0,
                ));
            }
        }
    }
    attr
}

/// The descriptors of forward and, unless dst is quantized, of backward.
fn descriptors(
    library: &Library,
    steps: &Steps,
    shape: Shape,
    data_type: u32,
) -> Vec<sys::norm_primitive_desc_t> {
    let attr = attributes(steps, shape, data_type);
    let (src, engine, flags) = (shape.desc(data_type), library.engine, steps.flags);
    let dst = steps.dynamic.map_or(src, |dynamic| shape.desc(dynamic.dst));
    let (training, kind) = (sys::norm_forward_training, sys::norm_backward);
    let epsilon = 1e-5;
    let (mut forward, mut backward) = (null_mut(), null_mut());
    let (to, back) = (&raw mut forward, &raw mut backward);
    let directions = steps.dynamic.is_none();
    // SAFETY: descriptors and attributes are alive.
    unsafe {
        if shape.is_grouped() {
            check(sys::norm_group_normalization_forward_primitive_desc_create(
                to, engine, training, src, dst, GROUPS, epsilon, flags, attr,
            ));
            if directions {
                check(sys::norm_group_normalization_backward_primitive_desc_create(
                    back, engine, kind, src, src, src, GROUPS, epsilon, flags, forward, attr,
                ));
            }
        } else {
            let stat = null();
            check(sys::norm_layer_normalization_forward_primitive_desc_create(
                to, engine, training, src, dst, stat, epsilon, flags, attr,
            ));
            if directions {
                check(sys::norm_layer_normalization_backward_primitive_desc_create(
                    back, engine, kind, src, src, src, stat, epsilon, flags, forward, attr,
                ));
            }
        }
    }
    if directions { vec![forward, backward] } else { vec![forward] }
}

/// The digest of all outputs.
fn digest(library: &Library, steps: &Steps, shape: Shape, data_type: u32) -> u64 {
    let mut numbers = Numbers(shape.last as u64 * 31 + u64::from(data_type));
    // The src of backward is the sum.
    let source = |index, id| match id {
        sys::NORM_ARG_SRC if index > 0 && steps.residual.is_some() => sys::NORM_ARG_RESIDUAL_DST,
        id => id,
    };
    let mut fill = |_, data_type, count| numbers.calm_bytes(data_type, count);
    let descs = descriptors(library, steps, shape, data_type);
    run::digest(library, &descs, Ids { inputs: &INPUTS, outputs: &OUTPUTS }, &mut fill, &source)
}

/// Prints the lines of a level.
pub(crate) fn print(library: &Library, level: &str) {
    let types = [("f32", sys::norm_f32), ("bf16", sys::norm_bf16), ("f16", sys::norm_f16)];
    let tags = [("ab", sys::norm_ab), ("abc", sys::norm_abc), ("acb", sys::norm_acb)];
    for (tag_name, tag) in tags {
        for last in [7, 64, 96, 300, 1024] {
            let shape = Shape { tag, last };
            for (type_name, data_type) in types {
                for steps in steps().iter().chain(&quantized()) {
                    let is_mx = steps.dynamic.is_some_and(|it| it.scale == sys::norm_e8m0);
                    if is_mx && last % 32 != 0 {
                        continue;
                    }
                    let digest = digest(library, steps, shape, data_type);
                    println!("{level} {type_name} {tag_name} {last} {} {digest:016x}", steps.name);
                }
            }
        }
    }
}
