/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_elementwise.h - element-wise functions of one and of two tensors, as
 * primitives. Programs include norm.h.
 */
#ifndef NORM_ELEMENTWISE_H
#define NORM_ELEMENTWISE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters and their order are those of oneDNN's functions of the same names. */

/* ------------------------------------------------------------------------ */
/* Eltwise                                                                  */
/* ------------------------------------------------------------------------ */

/* Applies a function to every element: dst = f(src). norm_alg_kind_t in norm_types.h
 * has the formulas, with alpha for a and beta for b. Arithmetic is f32, or
 * f64 if src or dst is, rounded once to the type of dst; integers saturate. An
 * element's bits depend on the element, the types and the parameters, not on the
 * instruction set, the threads or the layouts.
 *
 * prop_kind  norm_forward_training or norm_forward_inference, which are the same
 * alg_kind   any norm_eltwise_*; those with _use_dst_for_bwd have the same formulas
 *            as those without
 * src_desc   1 to 12 dimensions; f32, bf16, f16, f64, s32, s8, u8, f8_e5m2 or f8_e4m3;
 *            any layout but "any"
 * dst_desc   the same dimensions, any of these types, any layout or "any" (as src).
 *            Block padding is set to zero
 * alpha, beta  parameters of the function, if it has any; not NaN. For
 *            norm_eltwise_clip and _clip_v2, alpha is at most beta
 * attr       may be NULL. Dropout; eltwise and binary post-operations; none with f64
 *
 * Arguments: in SRC and those that the attributes add; out DST. SRC and DST may share
 * a buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_eltwise_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, norm_alg_kind_t alg_kind,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t dst_desc,
        float alpha, float beta, const_norm_primitive_attr_t attr);

/* The gradient: diff_src = diff_dst * f'(src). With an alg_kind that ends in
 * _use_dst_for_bwd it is computed from the dst of forward, and src is not
 * needed. s and d are elements of src and dst:
 *
 *   relu         s > 0 ? 1 : a           tanh       1 - tanh(s)^2
 *   elu          s > 0 ? 1 : a*exp(s)    square     2*s
 *   abs          sign of s, 0 for 0      sqrt       1/(2*sqrt(s))
 *   linear       a                       soft_relu  1/(1 + exp(-a*s))
 *   logistic     f(s)*(1 - f(s))         exp        exp(s)
 *   log          1/s                     pow        a*b*s^(b - 1), 0 if b is 0
 *   clip         a < s <= b ? 1 : 0      clip_v2    a < s < b ? 1 : 0
 *   hardsigmoid  0 < a*s + b < 1 ? a : 0
 *   hardswish    a*s + b <= 0 ? 0 : a*s + b >= 1 ? 1 : 2*a*s + b
 *   swish        l*(1 + a*s*(1 - l)), l = 1/(1 + exp(-a*s))
 *   gelu_tanh, gelu_erf, mish   the derivatives of their formulas
 *
 *   from dst: relu d > 0 ? 1 : a, tanh 1 - d^2, elu d > 0 ? 1 : d + a,
 *   sqrt 1/(2*d), logistic d*(1 - d), exp d, clip_v2 a < d < b ? 1 : 0
 *
 * norm_eltwise_round has no gradient.
 *
 * diff_src_desc  f32, bf16, f16, f64, f8_e5m2 or f8_e4m3, any layout or "any" (as
 *                diff_dst)
 * diff_dst_desc  one of these types, any layout or "any" (as data)
 * data_desc      of src, or of dst with _use_dst_for_bwd; one of these types, any
 *                layout but "any"
 * alpha, beta    as forward. For relu and elu from dst, alpha is not negative
 * hint_fwd_pd    ignored; may be NULL
 * attr           may be NULL; no post-operations
 *
 * Arguments: in SRC (or DST) and DIFF_DST; out DIFF_SRC, which may share a buffer with
 * either if the types and layouts are the same. */
NORM_API norm_status_t norm_eltwise_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t data_desc,
        float alpha, float beta, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Binary                                                                   */
/* ------------------------------------------------------------------------ */

/* Applies a function to the elements of two tensors: dst = f(src0, src1). Each source
 * is first multiplied by its scale, if it has one; the post-operations follow.
 * Comparisons give 1 or 0. Arithmetic is f32, rounded once to the type of dst;
 * integers saturate. An element's bits depend only on the elements, the types and the
 * parameters.
 *
 * alg_kind   norm_binary_add, _mul, _max, _min, _div, _sub, _ge, _gt, _le, _lt, _eq
 *            or _ne
 * src0_desc  1 to 12 dimensions; f32, bf16, f16, s32, s8, u8, f8_e5m2 or f8_e4m3; any
 *            layout but "any"
 * src1_desc  as many dimensions, any of these types, any layout or "any" (as src0)
 * dst_desc   likewise. Each of its dimensions equals that of src0 or src1; the other
 *            source has the same size there, or 1 to broadcast. Block padding is set
 *            to zero
 * attr       may be NULL. One scale each for SRC_0 and SRC_1; dropout; sum, eltwise
 *            and binary post-operations. The data type of a sum must have the size of
 *            dst's
 *
 * Arguments: in SRC_0, SRC_1 and those that the attributes add; out DST, which may
 * share a buffer with a source of the same type and layout. */
NORM_API norm_status_t norm_binary_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src0_desc,
        const_norm_memory_desc_t src1_desc, const_norm_memory_desc_t dst_desc,
        const_norm_primitive_attr_t attr);

/* The same, and also norm_binary_select: dst = src2 != 0 ? src0 : src1, with the
 * additional argument SRC_2.
 *
 * src2_desc  the condition, s8; each dimension is dst's, or 1 to broadcast; any layout
 *            or "any" (as src0). NULL unless alg_kind is norm_binary_select */
NORM_API norm_status_t norm_binary_primitive_desc_create_v2(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src0_desc,
        const_norm_memory_desc_t src1_desc, const_norm_memory_desc_t src2_desc,
        const_norm_memory_desc_t dst_desc, const_norm_primitive_attr_t attr);

#ifdef __cplusplus
}
#endif

#endif /* NORM_ELEMENTWISE_H */
