//! Attributes with random settings, and lists of post-operations.

use super::{TYPES, World};
use crate::handles::{done, made};
use crate::layouts::Descs;
use crate::problems;
use crate::source::Source;
use norm_sys as sys;
use std::ptr::null;

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and arrays have the lengths
// that are passed.
impl World {
    /// Makes attributes. Some are copies, whose original is destroyed.
    pub(super) fn attributes(&mut self, source: &mut Source<'_>) {
        let attr = made(|out| unsafe { sys::norm_primitive_attr_create(out) }).expect("attributes");
        let dynamic = self.row_attributes(source, attr);
        for _ in 0..source.below(3) {
            quantize(source, attr);
        }
        for _ in 0..source.below(3) {
            set_mode(source, attr);
        }
        if source.one_in(2) {
            let list = made(|out| unsafe { sys::norm_post_ops_create(out) }).expect("a list");
            for _ in 0..source.below(5) {
                self.post_operation(source, list);
            }
            let mut given = list;
            if source.one_in(3) {
                given = made(|out| unsafe { sys::norm_post_ops_clone(out, list) }).expect("a copy");
                unsafe { sys::norm_post_ops_destroy(list) };
            }
            assert!(done(unsafe { sys::norm_primitive_attr_set_post_ops(attr, given) }));
            unsafe { sys::norm_post_ops_destroy(given) };
        }
        let mut kept = attr;
        if source.one_in(3) {
            kept =
                made(|out| unsafe { sys::norm_primitive_attr_clone(out, attr) }).expect("a copy");
            unsafe { sys::norm_primitive_attr_destroy(attr) };
        }
        self.attrs.push((kept, dynamic));
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
                done(sys::norm_primitive_attr_set_scales_v3(
                    attr, arg, mask, groups, dims, data_type, 0, mode,
                ));
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
                    done(sys::norm_primitive_attr_set_residual(attr, first, sum, rounding));
                }
                1 => {
                    let algorithm = sys::norm_eltwise_relu + source.below(22) as u32;
                    let gate = descs.tensor(source, &dims, float);
                    done(sys::norm_primitive_attr_set_gate(attr, gate, algorithm, 1.0));
                }
                2 => {
                    let elements = source.one_of(&[1, 4, 16, 0, -1, i64::MAX]);
                    done(sys::norm_primitive_attr_set_partial_norm(attr, elements));
                }
                3 => {
                    dims.last_mut().into_iter().for_each(|dim| *dim = 1);
                    let stats = descs.tensor(source, &dims, sys::norm_f32);
                    done(sys::norm_primitive_attr_set_softmax_stats(attr, stats));
                }
                4 | 5 => {
                    let seed = source.one_of(&[sys::norm_s64, sys::norm_s32, sys::norm_f32]);
                    let (offset, host) = (source.below(2) as i32, source.below(2) as i32);
                    let mask = descs.tensor(source, &dims, sys::norm_u8);
                    let status = if source.one_in(4) {
                        sys::norm_primitive_attr_set_dropout(attr, mask)
                    } else {
                        sys::norm_primitive_attr_set_dropout_v2(attr, mask, seed, offset, host)
                    };
                    done(status);
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
        let status = unsafe {
            match source.below(9) {
                0..=2 => sys::norm_post_ops_append_eltwise(list, eltwise, alpha, beta),
                3 | 4 => sys::norm_post_ops_append_binary(list, binary, self.desc(source)),
                5 => sys::norm_post_ops_append_binary_v2(
                    list,
                    binary,
                    self.desc(source),
                    self.desc(source),
                ),
                6 => sys::norm_post_ops_append_sum(list, alpha, source.below(3) as i32, 0),
                7 => sys::norm_post_ops_append_prelu(list, source.below(4) as i32),
                _ => {
                    let types: [u32; 3] = std::array::from_fn(|_| source.one_of(&TYPES));
                    let sizes = [3, 1, 2, 0, -1, i64::MAX];
                    let (kernel, stride) = (source.one_of(&sizes), source.one_of(&sizes));
                    let padding = source.one_of(&[1, 0, 3, i64::MIN]);
                    sys::norm_post_ops_append_dw(
                        list, types[0], types[1], types[2], kernel, stride, padding,
                    )
                }
            }
        };
        done(status);
    }
}

/// Sets scales or zero points of an argument.
fn quantize(source: &mut Source<'_>, attr: sys::norm_primitive_attr_t) {
    let args = [sys::NORM_ARG_SRC, sys::NORM_ARG_DST, sys::NORM_ARG_WEIGHTS, sys::NORM_ARG_MEAN];
    let (arg, mask) = (source.one_of(&args), source.one_of(&[0, 0, 0, 1, 2, 3, -1]));
    let (data_type, host) = (source.one_of(&TYPES), i32::from(source.one_in(3)));
    let groups = if source.one_in(12) { 2 } else { 0 };
    let group = [1i64, 2, 1, 1].as_ptr();
    let status = unsafe {
        match source.below(9) {
            0..=2 => sys::norm_primitive_attr_set_zero_points_mask(attr, arg, mask),
            3 | 4 => sys::norm_primitive_attr_set_scales_mask(attr, arg, mask),
            5 => sys::norm_primitive_attr_set_zero_points_v2(
                attr, arg, mask, groups, group, data_type, host,
            ),
            6 => {
                sys::norm_primitive_attr_set_zero_points(attr, arg, mask, groups, group, data_type)
            }
            7 => sys::norm_primitive_attr_set_scales(attr, arg, mask, groups, group, data_type),
            _ => sys::norm_primitive_attr_set_scales_v2(
                attr, arg, mask, groups, group, data_type, host,
            ),
        }
    };
    done(status);
}

/// Sets a mode, sometimes to a value that does not exist.
fn set_mode(source: &mut Source<'_>, attr: sys::norm_primitive_attr_t) {
    let mode = source.one_of(&[0, 0, 1, 2, 3, 4, 5, 6, u32::MAX]);
    let flag = source.one_of(&[0, 1, -1]);
    let status = unsafe {
        match source.below(7) {
            0 | 1 => sys::norm_primitive_attr_set_scratchpad_mode(attr, mode),
            2 => sys::norm_primitive_attr_set_fpmath_mode(attr, mode),
            3 => sys::norm_primitive_attr_set_fpmath_mode_v2(attr, mode, flag),
            4 => sys::norm_primitive_attr_set_accumulation_mode(attr, mode),
            5 => sys::norm_primitive_attr_set_deterministic(attr, flag),
            _ => {
                let arg = source.one_of(&[sys::NORM_ARG_DST, sys::NORM_ARG_DIFF_SRC, 1, -1]);
                sys::norm_primitive_attr_set_rounding(attr, arg, mode)
            }
        }
    };
    done(status);
}
