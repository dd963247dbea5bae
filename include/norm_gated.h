/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_gated.h - gated activation: a function of a gate times another tensor.
 * Programs include norm.h.
 */
#ifndef NORM_GATED_H
#define NORM_GATED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Where the gate and the tensor that it multiplies, `up`, are. There is no default:
 * models differ, and the results of a wrong packing look plausible. */
typedef enum {
    norm_gate_first = 0x01000000,       /* src is ... x 2C: each row has C elements of
                                         * gate, then C of up */
    norm_up_first = 0x01000001,         /* src is ... x 2C: each row has C elements of
                                         * up, then C of gate */
    norm_gate_interleaved = 0x01000002, /* src is ... x 2C: gate at the even indices of
                                         * a row, up at the odd ones */
    norm_gate_separate = 0x01000003     /* two tensors of ... x C */
} norm_gate_packing_t;

/* Gated activation, the middle of a transformer's feed-forward layer. With
 *
 *   g = min(gate, limit)
 *   u = max(-limit, min(up, limit)) + shift
 *
 * it computes, element by element,
 *
 *   dst = f(g) * u
 *
 * where f is
 *
 *   norm_eltwise_swish      g/(1 + exp(-alpha*g))            SwiGLU with alpha 1
 *   norm_eltwise_gelu_erf   g*(1 + erf(g/sqrt(2)))/2         GEGLU
 *   norm_eltwise_gelu_tanh  g*(1 + tanh(sqrt(2/pi)*(g + 0.044715*g^3)))/2
 *   norm_eltwise_relu       g if above 0, else alpha*g       ReGLU with alpha 0
 *   norm_eltwise_logistic   1/(1 + exp(-g))                  GLU
 *   norm_eltwise_linear     alpha*g                          bilinear with alpha 1
 *
 * (Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202.) GPT-OSS uses
 * swish, norm_gate_interleaved, alpha 1.702, limit 7 and shift 1. Arithmetic is f32,
 * rounded once to the type of dst; the bits do not depend on the instruction set,
 * the threads or the layouts. NaN stays NaN. A gate of -Inf gives NaN with swish and
 * gelu, as in PyTorch.
 *
 * prop_kind   norm_forward_training or norm_forward_inference, which are the same
 * alg_kind    f
 * packing     required
 * src_desc    gate and up, 1 to 12 dimensions, the last of even size; with
 *             norm_gate_separate only the gate. f32, bf16 or f16; any layout but "any"
 * up_desc     with norm_gate_separate, up: the dimensions of src; f32, bf16 or f16; any
 *             layout or "any" (as src). Otherwise NULL or empty
 * dst_desc    the dimensions of src, the last one halved unless up is separate; f32,
 *             bf16, f16, s8, u8, f8_e5m2 or f8_e4m3; any layout or "any" (dense in
 *             src's order of dimensions)
 * alpha       parameter of f; finite
 * limit       above 0; INFINITY for none
 * shift       finite; 0 for none
 * attr        may be NULL. Eltwise and binary post-operations, then one scale for DST,
 *             or dynamic scales (and, for u8, zero points) for DST as for a
 *             normalization
 *
 * Arguments: in SRC, with norm_gate_separate SRC_1, and those that the attributes add;
 * out DST. DST may overwrite SRC_1, or the gate or up part of SRC, if it has the same
 * address, type and strides. */
NORM_API norm_status_t norm_gated_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, norm_alg_kind_t alg_kind,
        norm_gate_packing_t packing, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t up_desc, const_norm_memory_desc_t dst_desc,
        float alpha, float limit, float shift, const_norm_primitive_attr_t attr);

/* The gradients, from the inputs of forward:
 *
 *   diff_gate = diff_dst * u * f'(g), 0 where gate > limit
 *   diff_up   = diff_dst * f(g),      0 where up > limit or up < -limit
 *
 * and optionally dst again, with the same bits as forward, so a program that recomputes
 * activations needs no further pass for the input of the next layer's gradient. The
 * derivative of relu at 0 is alpha.
 *
 * alg_kind, packing, alpha, limit, shift   as forward
 * diff_src_desc  the dimensions of src; f32, bf16 or f16, any layout or "any" (as src).
 *                It is packed like src; with norm_gate_separate it is the gate's gradient
 * diff_up_desc   likewise for up, with norm_gate_separate. Otherwise NULL or empty
 * diff_dst_desc  the dimensions of dst; f32, bf16 or f16, any layout or "any" (dense in
 *                src's order of dimensions)
 * src_desc, up_desc   as forward
 * dst_desc       NULL or empty if dst is not to be written. Otherwise as diff_dst_desc
 * attr           may be NULL; neither scales nor post-operations
 * hint_fwd_pd    ignored; may be NULL
 *
 * Arguments: in SRC, DIFF_DST, with norm_gate_separate SRC_1; out DIFF_SRC, with
 * norm_gate_separate DIFF_SRC_1, with a dst_desc DST. An output may overwrite an input, or
 * the gate or up part of it, if it has the same address, type and strides. */
NORM_API norm_status_t norm_gated_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, norm_gate_packing_t packing,
        const_norm_memory_desc_t diff_src_desc, const_norm_memory_desc_t diff_up_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t up_desc, const_norm_memory_desc_t dst_desc,
        float alpha, float limit, float shift, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

#ifdef __cplusplus
}
#endif

#endif /* NORM_GATED_H */
