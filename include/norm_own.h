/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_own.h - argument ids and enumerators that oneDNN does not have, with their
 * values.
 * Programs include norm.h.
 */
#ifndef NORM_OWN_H
#define NORM_OWN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Own argument ids are 0x40000000 | n with n below 1024, own enumerators start
 * at 0x01000000, own flags at 1 << 24. norm_version_t.cpu_runtime is 0x01000000.
 * They are
 *
 * argument ids
 *   0x40000001 NORM_ARG_RESIDUAL
 *   0x40000002 NORM_ARG_RESIDUAL_DST
 *   0x40000003 NORM_ARG_DIFF_RESIDUAL_DST
 *   0x40000004 NORM_ARG_GATE
 *   0x40000005 NORM_ARG_DIFF_GATE
 *   0x40000006 NORM_ARG_SOFTMAX_STATS      norm_rows.h
 *   0x40000010 NORM_ARG_POSITIONS          norm_rope.h
 *   0x40000011 NORM_ARG_ROPE_FREQUENCIES   norm_rope.h
 *   0x40000012 NORM_ARG_ROPE_COS           norm_rope.h
 *   0x40000013 NORM_ARG_ROPE_SIN           norm_rope.h
 *   0x40000014 NORM_ARG_SLOTS              norm_rope.h
 *   0x40000020 NORM_ARG_SINKS              norm_sdpa.h
 *   0x40000021 NORM_ARG_DIFF_SINKS         norm_sdpa.h
 *   0x40000022 NORM_ARG_ALIBI_SLOPES       norm_sdpa.h
 *   0x40000023 NORM_ARG_QUERY_LENGTHS      norm_sdpa.h
 *   0x40000024 NORM_ARG_KEY_LENGTHS        norm_sdpa.h
 *   0x40000025 NORM_ARG_PAGE_TABLE         norm_sdpa.h
 *   0x40000026 NORM_ARG_ENTROPY            norm_sdpa.h
 *   0x40000027 NORM_ARG_QUERY_OFFSETS      norm_sdpa.h
 *   0x40000028 NORM_ARG_KEY_OFFSETS        norm_sdpa.h
 * norm_residual_rounding_t (norm_own.h)
 *   0x01000000 norm_residual_rounded
 *   0x01000001 norm_residual_exact
 * norm_alg_kind_t (norm_types.h)
 *   0x01000000 norm_softmax_accurate_inf_as_zero
 * norm_primitive_kind_t (norm_types.h)
 *   0x01000000 norm_rope
 *   0x01000001 norm_gated
 *   0x01000002 norm_sdpa
 * norm_normalization_flags_t (norm_types.h)
 *   0x01000000 norm_scale_plus_one
 *   0x02000000 norm_round_before_scale
 *   0x04000000 norm_gate_output
 *   0x08000000 norm_gate_input
 * norm_cpu_isa_t (norm_isa.h)
 *   0x01000000 norm_cpu_isa_portable
 *   0x01000001 norm_cpu_isa_neon
 * norm_explanation_warning_t (norm_explain.h)
 *   0x01000000 norm_warning_epsilon_dominates
 *   0x02000000 norm_warning_epsilon_vanishes
 *   0x04000000 norm_warning_squares_overflow
 *   0x08000000 norm_warning_zero_rows
 *   0x10000000 norm_warning_not_finite
 * norm_remedy_kind_t (norm_explain.h)
 *   0x01000000 norm_remedy_smaller_epsilon
 *   0x01000001 norm_remedy_larger_epsilon
 *   0x01000002 norm_remedy_clip_src
 *   0x01000003 norm_remedy_scale_plus_one
 *   0x01000004 norm_remedy_temperature
 *   0x01000005 norm_remedy_fold_ratio
 * norm_gate_packing_t (norm_gated.h)
 *   0x01000000 norm_gate_first
 *   0x01000001 norm_up_first
 *   0x01000002 norm_gate_interleaved
 *   0x01000003 norm_gate_separate
 * norm_rope_pairing_t (norm_rope.h)
 *   0x01000000 norm_rope_interleaved
 *   0x01000001 norm_rope_half_split
 *   0x01000002 norm_rope_half_split_of_head
 * norm_rope_angles_t (norm_rope.h)
 *   0x01000000 norm_rope_from_frequencies
 *   0x01000001 norm_rope_from_tables
 * norm_rope_flags_t (norm_rope.h)
 *   0x10000000 norm_write_slots
 *   0x20000000 norm_rope_norm_rounded
 *   0x40000000 norm_rope_interleaved_sections
 * norm_rope_scaling_t (norm_rope.h)
 *   0x01000000 norm_rope_scaling_none
 *   0x01000001 norm_rope_scaling_linear
 *   0x01000002 norm_rope_scaling_ntk
 *   0x01000003 norm_rope_scaling_dynamic_ntk
 *   0x01000004 norm_rope_scaling_yarn
 *   0x01000005 norm_rope_scaling_llama3
 *   0x01000006 norm_rope_scaling_longrope
 * norm_attn_window_t (norm_sdpa.h)
 *   0x01000000 norm_window_none
 *   0x01000001 norm_window_with_self
 *   0x01000002 norm_window_before_self
 * norm_sdpa_flags_t (norm_sdpa.h)
 *   0x01000000 norm_sdpa_sinks
 *   0x02000000 norm_sdpa_alibi
 *   0x04000000 norm_sdpa_key_lengths
 *   0x08000000 norm_sdpa_query_lengths
 *   0x10000000 norm_sdpa_query_offsets
 *   0x20000000 norm_sdpa_entropy
 *   0x40000000 norm_sdpa_key_offsets
 * norm_window_strategy_t (norm_sdpa.h)
 *   0x01000000 norm_window_fixed
 *   0x01000001 norm_window_by_length
 *   0x01000002 norm_window_by_entropy
 *   0x01000003 norm_window_by_entropy_over_4
 *   0x01000004 norm_window_by_perplexity
 * norm_kv_cache_kind_t (norm_kv_cache.h)
 *   0x01000000 norm_kv_contiguous
 *   0x01000001 norm_kv_paged
 *   0x01000002 norm_kv_ring
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
