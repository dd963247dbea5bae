/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_own.h - argument ids and enumerators that oneDNN does not have.
 * Programs include norm.h.
 */
#ifndef NORM_OWN_H
#define NORM_OWN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Own argument ids are 0x40000000 | n with n below 1024, own enumerators start
 * at 0x01000000, own flags at 1 << 24. They are
 *
 *   NORM_ARG_RESIDUAL, NORM_ARG_RESIDUAL_DST, NORM_ARG_DIFF_RESIDUAL_DST,
 *   NORM_ARG_GATE, NORM_ARG_DIFF_GATE          below
 *   norm_residual_rounding_t                   below
 *   NORM_ARG_SOFTMAX_STATS                     norm_rows.h
 *   norm_softmax_accurate_inf_as_zero          norm_alg_kind_t
 *   norm_scale_plus_one, norm_round_before_scale, norm_gate_output,
 *   norm_gate_input                            norm_normalization_flags_t
 *   norm_gated                                 norm_primitive_kind_t
 *   norm_gate_packing_t                        norm_gated.h
 *   norm_remedy_kind_t, norm_explanation_warning_t
 *                                              norm_explain.h
 *   NORM_ARG_POSITIONS, NORM_ARG_ROPE_FREQUENCIES, NORM_ARG_ROPE_COS,
 *   NORM_ARG_ROPE_SIN, NORM_ARG_SLOTS, norm_rope_pairing_t,
 *   norm_rope_angles_t, norm_rope_flags_t, norm_rope_scaling_t
 *                                              norm_rope.h
 *   norm_rope                                  norm_primitive_kind_t
 *   NORM_ARG_SINKS, NORM_ARG_DIFF_SINKS, NORM_ARG_ALIBI_SLOPES,
 *   NORM_ARG_QUERY_LENGTHS, NORM_ARG_KEY_LENGTHS, NORM_ARG_PAGE_TABLE,
 *   NORM_ARG_ENTROPY, NORM_ARG_QUERY_OFFSETS, NORM_ARG_KEY_OFFSETS,
 *   norm_attn_window_t, norm_sdpa_flags_t,
 *   norm_window_strategy_t
 *                                              norm_sdpa.h
 *   norm_sdpa                                  norm_primitive_kind_t
 *   norm_kv_cache_kind_t                       norm_kv_cache.h
 *   norm_cpu_isa_portable, norm_cpu_isa_neon   norm_cpu_isa_t
 */
#define NORM_ARG_RESIDUAL (0x40000000 | 1)          /* in: added to src */
#define NORM_ARG_RESIDUAL_DST (0x40000000 | 2)      /* out: src + residual */
#define NORM_ARG_DIFF_RESIDUAL_DST (0x40000000 | 3) /* in, backward: gradient of the sum */
#define NORM_ARG_GATE (0x40000000 | 4)              /* in: gates; dimensions of src */
#define NORM_ARG_DIFF_GATE (0x40000000 | 5)         /* out, backward: their gradients */

/* What is normalized when a residual is added; see
 * norm_primitive_attr_set_residual(). */
typedef enum {
    norm_residual_rounded = 0x01000000, /* the sum as it is stored */
    norm_residual_exact = 0x01000001    /* the f32 sum */
} norm_residual_rounding_t;

#ifdef __cplusplus
}
#endif

#endif /* NORM_OWN_H */
