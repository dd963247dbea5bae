/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_softmax.h - softmax and logsoftmax. Programs include norm.h.
 */
#ifndef NORM_SOFTMAX_H
#define NORM_SOFTMAX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Softmax along one dimension. Per row x of C elements, with m = max(x) and
 * s = sum(exp(x - m)):
 *
 *   norm_softmax_accurate   dst = exp(x - m) / s
 *   norm_softmax_log        dst = (x - m) - log(s)
 *   norm_softmax_accurate_inf_as_zero   as the first, but 0 for a row of only -Inf
 *
 * Arithmetic is f32, with f64 for sums of more than a few hundred elements, or all f64
 * if src or dst is. The bits do not depend on the instruction set, the threads or the
 * layouts. A row with NaN or +Inf becomes NaN, as does one of only -Inf, except with
 * norm_softmax_accurate_inf_as_zero.
 *
 * prop_kind      norm_forward_training or norm_forward_inference, which are the same
 * alg_kind       norm_softmax_accurate, norm_softmax_log or
 *                norm_softmax_accurate_inf_as_zero
 * src_desc       1 to 12 dimensions; f32, bf16, f16, f64, s8, u8, f8_e5m2 or f8_e4m3;
 *                any layout but "any"
 * dst_desc       the same dimensions, any of these types, any layout or "any" (as src)
 * softmax_axis   the dimension of the rows, from 0
 * attr           may be NULL. One scale each for SRC and DST; dropout; eltwise and
 *                binary post-operations; softmax stats. The result of the formula is
 *                multiplied by the scale of SRC, as in oneDNN, then come dropout and
 *                the post-operations, then the division by the scale of DST. With
 *                f64 only softmax stats
 *
 * Arguments: in SRC and those that the attributes add; out DST. SRC and DST may share a
 * buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_softmax_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, norm_alg_kind_t alg_kind,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_attr_t attr);

/* The gradient, from the dst of forward. Per row:
 *
 *   norm_softmax_accurate   diff_src = dst*(diff_dst - sum(diff_dst*dst))
 *   norm_softmax_log        diff_src = diff_dst - exp(dst)*sum(diff_dst)
 *   norm_softmax_accurate_inf_as_zero   as the first
 *
 * diff_src_desc  f32, bf16, f16 or f64, any layout or "any" (as diff_dst)
 * diff_dst_desc  f32, bf16, f16 or f64, any layout or "any" (as dst)
 * dst_desc       f32, bf16, f16 or f64, any layout but "any"
 * attr           may be NULL; neither scales nor post-operations
 * hint_fwd_pd    ignored; may be NULL
 *
 * Arguments: in DST, DIFF_DST; out DIFF_SRC, which may share a buffer with either if
 * the types and layouts are the same. */
NORM_API norm_status_t norm_softmax_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

#ifdef __cplusplus
}
#endif

#endif /* NORM_SOFTMAX_H */
