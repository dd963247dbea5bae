/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_attr.h - primitive attributes and post-operations. Programs include norm.h.
 */
#ifndef NORM_ATTR_H
#define NORM_ATTR_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Primitive attributes                                                     */
/* ------------------------------------------------------------------------ */

/* Creates attributes with default values: library scratchpad, no scales, no
 * zero points, no post-operations, the math mode of
 * norm_set_default_fpmath_mode, strict accumulation, and the deterministic
 * flag unset (results are always deterministic).
 *
 * The setters below accept every valid attribute. Primitive descriptor
 * creation returns norm_unimplemented for attributes that the operation does
 * not support. */
NORM_API norm_status_t norm_primitive_attr_create(norm_primitive_attr_t *attr);
/* Creates a copy, post-operations included. */
NORM_API norm_status_t norm_primitive_attr_clone(
        norm_primitive_attr_t *attr, const_norm_primitive_attr_t existing_attr);
/* Frees attributes that the caller owns. */
NORM_API norm_status_t norm_primitive_attr_destroy(norm_primitive_attr_t attr);
/* Who provides the scratchpad. */
NORM_API norm_status_t norm_primitive_attr_get_scratchpad_mode(
        const_norm_primitive_attr_t attr, norm_scratchpad_mode_t *mode);
/* Sets who provides the scratchpad; norm_scratchpad_mode_library by default. */
NORM_API norm_status_t norm_primitive_attr_set_scratchpad_mode(
        norm_primitive_attr_t attr, norm_scratchpad_mode_t mode);
/* Whether f32 arithmetic may use a narrower type, and, with apply_to_int not
 * 0, integer arithmetic too. This library always uses strict arithmetic.
 * Outputs of the _v2 getter may be NULL. */
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode);
/* Sets the math mode, with apply_to_int 0. */
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode);
/* The math mode, and whether it applies to integers. */
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode_v2(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode,
        int *apply_to_int);
/* Sets both. */
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode_v2(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode, int apply_to_int);
/* The type of accumulators. */
NORM_API norm_status_t norm_primitive_attr_get_accumulation_mode(
        const_norm_primitive_attr_t attr, norm_accumulation_mode_t *mode);
/* Sets the type of accumulators; norm_accumulation_mode_strict by default. */
NORM_API norm_status_t norm_primitive_attr_set_accumulation_mode(
        norm_primitive_attr_t attr, norm_accumulation_mode_t mode);
/* 1 if equal inputs must give equal bits. They always do. */
NORM_API norm_status_t norm_primitive_attr_get_deterministic(
        const_norm_primitive_attr_t attr, int *value);
/* Sets the flag, which changes nothing: `value` is 0 or another number. */
NORM_API norm_status_t norm_primitive_attr_set_deterministic(
        norm_primitive_attr_t attr, int value);
/* The rounding of argument `arg`, NORM_ARG_DST or NORM_ARG_DIFF_SRC. No
 * operation supports stochastic rounding yet. */
NORM_API norm_status_t norm_primitive_attr_get_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t *mode);
/* Sets the rounding of an argument; norm_rounding_mode_environment by default. */
NORM_API norm_status_t norm_primitive_attr_set_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t mode);

/* Adds scales to an argument of the primitive: NORM_ARG_SRC or NORM_ARG_DST, of binary
 * NORM_ARG_SRC_0 or NORM_ARG_SRC_1, and of attention NORM_ARG_KEYS or NORM_ARG_VALUES.
 * The values are passed at execution as argument NORM_ARG_ATTR_SCALES | arg.
 * An input is multiplied by its scale when it is read; an output is divided
 * by its scale before it is rounded. If bit d of `mask` is set, there is one
 * scale per index of dimension d, stored dense row-major; mask 0 means one
 * scale for the tensor.
 *
 * The second form sets the data type of the scales: f32, bf16, f16, f8_e5m2 or f8_e4m3
 * (the first form uses f32). group_ndims is 0 or 2. If it is 2, there is one scale per
 * group of indices; only dynamic scales support that. In the third form a nonzero
 * `is_on_host` means that the scale is a host scalar: the argument must then come from
 * norm_memory_create_host_scalar. This requires mask 0, no groups and static scales,
 * or else the result is norm_invalid_arguments; attention does not support it
 * (norm_unimplemented).
 *
 * In the fourth form `qmode` says whether the scales are passed
 * (norm_quantization_mode_static_sazp) or computed. Layer and group normalization
 * and gated activation compute the scales of NORM_ARG_DST from their results and
 * write them to NORM_ARG_ATTR_SCALES | NORM_ARG_DST, one for each group of `n`
 * elements of a row: `mask` has the bit of every dimension, `ndims` is 2 and
 * `group_dims` is {1, n}, where n divides the last dimension. In group
 * normalization the last dimension is the channels if there are two dimensions,
 * and otherwise positions, where channels do not share a scale. The scales are
 * dense and have dst's dimensions, with the last divided by n. norm_query_dst_md
 * describes them as index 3, zero points as index 4. dst is s8, u8, f8_e4m3 or
 * f8_e5m2.
 *
 *   dynamic_fp  scale = max|y| / M, rounded to f32 or f8_e4m3
 *   dynamic_mx  scale = 2^(floor(log2(max|y|)) - floor(log2(M))), e8m0, n = 32,
 *               dst f8_e4m3 or f8_e5m2
 *
 * M is the largest value of dst's type: 127, 255, 448, 57344. The scale of a group of
 * zeros is 1. In f8_e4m3 the scale of other finite groups is at least 2^-9 and at most
 * 448: larger results saturate. Elements are y * (1/scale) in f32, saturated and
 * rounded to nearest even. If dst is u8 and has zero points (s32, the same mask and
 * groups), they are also written: scale = (max(y, 0) - min(y, 0)) / 255, zero point =
 * round(-min(y, 0) / scale), at most 255. */
NORM_API norm_status_t norm_primitive_attr_set_scales_mask(
        norm_primitive_attr_t attr, int arg, int mask);
/* The second form: with a data type and groups. */
NORM_API norm_status_t norm_primitive_attr_set_scales(norm_primitive_attr_t attr,
        int arg, int mask, int group_ndims, const norm_dim_t *group_dims,
        norm_data_type_t data_type);
/* The third form: with host scalars. */
NORM_API norm_status_t norm_primitive_attr_set_scales_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type,
        int is_on_host);
/* The fourth form: with the quantization mode. */
NORM_API norm_status_t norm_primitive_attr_set_scales_v3(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type, int is_on_host,
        norm_quantization_mode_t qmode);
/* The same for zero points, passed as argument NORM_ARG_ATTR_ZERO_POINTS | arg.
 * They are subtracted from an input before it is scaled, and added to an output
 * after it is scaled. Values are s32; those of SRC may also be s8 or u8 in the
 * second and third form. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points_mask(
        norm_primitive_attr_t attr, int arg, int mask);
/* The second form: with a data type and groups. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points(
        norm_primitive_attr_t attr, int arg, int mask, int group_ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type);
/* The third form: with host scalars. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type,
        int is_on_host);

/* Adds a residual to src before it is normalized (layer and group normalization;
 * not in oneDNN):
 *
 *   sum = src + residual,  dst = normalization of sum
 *
 * The residual is argument NORM_ARG_RESIDUAL, with src's dimensions. The sum is
 * output NORM_ARG_RESIDUAL_DST with `sum_desc`; if that is NULL, it is not
 * stored. It may overwrite src or the residual if type and layout are the same.
 * src, residual and sum may each be f32, bf16 or f16.
 *
 *   norm_residual_rounded  dst and the statistics come from the sum rounded to
 *                          the type of sum_desc (without it, of residual_desc):
 *                          the same bits as an addition followed by the
 *                          normalization of its result
 *   norm_residual_exact    they come from the sum in f32
 *
 * Backward reads the sum that forward stored as NORM_ARG_SRC, with the sum's
 * descriptor as src_desc, and the sum's gradient as NORM_ARG_DIFF_RESIDUAL_DST, with
 * `sum_desc` as its descriptor, which must not be NULL:
 *
 *   diff_src = gradient of the normalization + diff_residual_dst
 *
 * in f32, rounded once: the gradient of src and of the residual. With
 * norm_residual_exact, mean and variance must be those of the f32 sum, which
 * norm_forward_training writes; they cannot be computed from the stored sum. A NULL
 * residual_desc removes the attribute. Descriptors are copied. */
NORM_API norm_status_t norm_primitive_attr_set_residual(
        norm_primitive_attr_t attr, const_norm_memory_desc_t residual_desc,
        const_norm_memory_desc_t sum_desc, norm_residual_rounding_t rounding);
/* NULL descriptors and norm_residual_rounded if there is none. The descriptors
 * are owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_residual(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *residual_desc,
        const_norm_memory_desc_t *sum_desc, norm_residual_rounding_t *rounding);
/* Multiplies by f(gate), element by element (layer and group normalization; not
 * in oneDNN). The flag norm_gate_input or norm_gate_output of the normalization
 * says where:
 *
 *   norm_gate_input   dst = normalization of src * f(gate)
 *   norm_gate_output  dst = (normalization of src) * f(gate)
 *
 * f is norm_eltwise_swish, gate / (1 + exp(-alpha*gate)), or norm_eltwise_logistic, 1
 * / (1 + exp(-gate)). The gate, argument NORM_ARG_GATE, has src's dimensions, is f32,
 * bf16 or f16, and may have any strides. Backward writes its gradient to
 * NORM_ARG_DIFF_GATE, with the same descriptor. A NULL gate_desc removes the
 * attribute. */
NORM_API norm_status_t norm_primitive_attr_set_gate(norm_primitive_attr_t attr,
        const_norm_memory_desc_t gate_desc, norm_alg_kind_t alg_kind,
        float alpha);
/* NULL, norm_alg_kind_undef and 0 if there is none. */
NORM_API norm_status_t norm_primitive_attr_get_gate(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *gate_desc,
        norm_alg_kind_t *alg_kind, float *alpha);
/* RMS normalization by the mean square of the first `elements` of each row (pRMSNorm,
 * Zhang and Sennrich 2019; layer and group normalization; not in oneDNN). The whole
 * row is normalized. 0, the default, means the whole row: it removes the attribute. A
 * negative number is norm_invalid_arguments. So is, when a primitive descriptor is
 * created, more elements than a row has, or a missing norm_rms_norm. In group
 * normalization a row is a group in the logical order of its channels and positions,
 * whatever the layout: the first elements are those of its first channels, and parts
 * of a channel are norm_unimplemented. */
NORM_API norm_status_t norm_primitive_attr_set_partial_norm(
        norm_primitive_attr_t attr, norm_dim_t elements);
/* The number of elements; 0 for the whole row. */
NORM_API norm_status_t norm_primitive_attr_get_partial_norm(
        const_norm_primitive_attr_t attr, norm_dim_t *elements);

/* The post-operations; owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_post_ops(
        const_norm_primitive_attr_t attr, const_norm_post_ops_t *post_ops);
/* Replaces the post-operations with a copy of `post_ops`. */
NORM_API norm_status_t norm_primitive_attr_set_post_ops(
        norm_primitive_attr_t attr, const_norm_post_ops_t post_ops);

/* ------------------------------------------------------------------------ */
/* Post-operations                                                          */
/* ------------------------------------------------------------------------ */

/* Creates an empty list. A list has at most 32 entries; appending another is
 * norm_out_of_memory. */
NORM_API norm_status_t norm_post_ops_create(norm_post_ops_t *post_ops);
/* Creates a copy. */
NORM_API norm_status_t norm_post_ops_clone(
        norm_post_ops_t *post_ops, const_norm_post_ops_t existing_post_ops);
/* Frees a list that the caller owns. */
NORM_API norm_status_t norm_post_ops_destroy(norm_post_ops_t post_ops);
/* The number of entries; 0 for NULL. */
NORM_API int norm_post_ops_len(const_norm_post_ops_t post_ops);
/* The kind of entry `index`: norm_sum, norm_eltwise, norm_binary,
 * norm_prelu, or norm_convolution for a depthwise one.
 * norm_undefined_primitive if there is no such entry. */
NORM_API norm_primitive_kind_t norm_post_ops_get_kind(
        const_norm_post_ops_t post_ops, int index);

/* x + scale*(dst - zero_point), where dst is the previous content of the
 * output, read as data_type (norm_data_type_undef: the output's own type).
 * In every _get_params_ function outputs may be NULL, and an entry of
 * another kind is norm_invalid_arguments. */
NORM_API norm_status_t norm_post_ops_append_sum(norm_post_ops_t post_ops,
        float scale, int32_t zero_point, norm_data_type_t data_type);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_sum(
        const_norm_post_ops_t post_ops, int index, float *scale,
        int32_t *zero_point, norm_data_type_t *data_type);
/* An elementwise function. For clip, beta must not be less than alpha. Algorithms
 * that end with _use_dst_for_bwd compute the same as those without, and the getter
 * returns them as given. */
NORM_API norm_status_t norm_post_ops_append_eltwise(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, float alpha, float beta);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_eltwise(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        float *alpha, float *beta);
/* A function of x and a second tensor, src1. src1 has as many dimensions as
 * the output; each has the output's size or 1, which broadcasts it. Its
 * memory is passed at execution as NORM_ARG_ATTR_MULTIPLE_POST_OP(i) |
 * NORM_ARG_SRC_1, where i is the entry's index in this list.
 * norm_binary_select requires a third tensor, src2, and therefore _v2; its
 * memory is NORM_ARG_ATTR_MULTIPLE_POST_OP(i) | NORM_ARG_SRC_2. Other
 * algorithms do not read src2_desc. */
NORM_API norm_status_t norm_post_ops_append_binary(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc);
/* The same, with src2 for norm_binary_select. */
NORM_API norm_status_t norm_post_ops_append_binary_v2(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc,
        const_norm_memory_desc_t src2_desc);
/* The descriptors are owned by the list and valid until it changes.
 * src2_desc is an empty descriptor if there is no src2. */
NORM_API norm_status_t norm_post_ops_get_params_binary(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc);
/* The same, with src2. */
NORM_API norm_status_t norm_post_ops_get_params_binary_v2(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc,
        const_norm_memory_desc_t *src2_desc);
/* x > 0 ? x : w*x with weights w, one per index of the dimensions in `mask`.
 * No operation supports it yet. */
NORM_API norm_status_t norm_post_ops_append_prelu(
        norm_post_ops_t post_ops, int mask);
/* The mask of entry `index`. */
NORM_API norm_status_t norm_post_ops_get_params_prelu(
        const_norm_post_ops_t post_ops, int index, int *mask);
/* A depthwise convolution; bias_data_type may be norm_data_type_undef.
 * norm_invalid_arguments unless kernel_size and stride_size are positive and
 * padding_l_size is less than kernel_size. No operation supports it yet. */
NORM_API norm_status_t norm_post_ops_append_dw(norm_post_ops_t post_ops,
        norm_data_type_t weights_data_type, norm_data_type_t bias_data_type,
        norm_data_type_t dst_data_type, norm_dim_t kernel_size,
        norm_dim_t stride_size, norm_dim_t padding_l_size);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_dw(
        const_norm_post_ops_t post_ops, int index,
        norm_data_type_t *weights_data_type, norm_data_type_t *bias_data_type,
        norm_data_type_t *dst_data_type, norm_dim_t *kernel_size,
        norm_dim_t *stride_size, norm_dim_t *padding_l_size);

#ifdef __cplusplus
}
#endif

#endif /* NORM_ATTR_H */
