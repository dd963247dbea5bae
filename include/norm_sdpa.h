/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_sdpa.h - scaled dot-product attention.
 * Programs include norm.h.
 */
#ifndef NORM_SDPA_H
#define NORM_SDPA_H

#ifdef __cplusplus
extern "C" {
#endif

/* Own argument ids; see norm_own.h. */
#define NORM_ARG_SINKS (0x40000000 | 32)         /* f32, a logit per head */
#define NORM_ARG_DIFF_SINKS (0x40000000 | 33)    /* out, backward */
#define NORM_ARG_ALIBI_SLOPES (0x40000000 | 34)  /* f32, per head */
#define NORM_ARG_QUERY_LENGTHS (0x40000000 | 35) /* s32, per sequence */
#define NORM_ARG_KEY_LENGTHS (0x40000000 | 36)   /* s32, per sequence */
#define NORM_ARG_PAGE_TABLE (0x40000000 | 37)    /* s32, sequences x pages */
#define NORM_ARG_ENTROPY (0x40000000 | 38)       /* out: f32, sequences x heads */
#define NORM_ARG_QUERY_OFFSETS (0x40000000 | 39) /* s32, sequences + 1 */
#define NORM_ARG_KEY_OFFSETS (0x40000000 | 40)   /* s32, sequences + 1 */
/* oneDNN's numbers; the names are those of its internal sdpa primitive. */
#define NORM_ARG_QUERIES NORM_ARG_SRC_0
#define NORM_ARG_KEYS NORM_ARG_SRC_1
#define NORM_ARG_VALUES NORM_ARG_SRC_2
#define NORM_ARG_ATTN_MASK NORM_ARG_SHIFT
#define NORM_ARG_DIFF_QUERIES 129
#define NORM_ARG_DIFF_KEYS 130
#define NORM_ARG_DIFF_VALUES 131
#define NORM_ARG_DIFF_ATTN_MASK 132 /* DS there, for the scores */

/* The masks; oneDNN's values. The position of query i is i, or, with
 * norm_attn_mask_bottom_right, i + (keys - queries), with its sequence's lengths. */
typedef enum {
    norm_attn_mask_undef = 0,       /* none: every query sees every key */
    norm_attn_mask_buffer = 1,      /* only mask_desc */
    norm_attn_mask_top_left = 2,    /* key j if j <= the position; causal */
    norm_attn_mask_bottom_right = 3 /* likewise: the last query sees the last key */
} norm_attn_mask_type_t;

/* Sliding windows of W keys. They imply a causal mask. Papers and models count in both
 * ways, so there is no default. */
typedef enum {
    norm_window_none = 0x01000000,
    norm_window_with_self = 0x01000001,  /* W keys: position - W < j <= position */
    norm_window_before_self = 0x01000002 /* W + 1: position - W <= j <= position */
} norm_attn_window_t;

/* Flags of attention. Their bits have other meanings among the flags of normalizations. */
typedef enum {
    norm_sdpa_sinks = 1U << 24,         /* argument SINKS */
    norm_sdpa_alibi = 1U << 25,         /* argument ALIBI_SLOPES */
    norm_sdpa_key_lengths = 1U << 26,   /* argument KEY_LENGTHS */
    norm_sdpa_query_lengths = 1U << 27, /* argument QUERY_LENGTHS */
    norm_sdpa_query_offsets = 1U << 28, /* argument QUERY_OFFSETS */
    norm_sdpa_entropy = 1U << 29,       /* argument ENTROPY; forward */
    norm_sdpa_key_offsets = 1U << 30    /* argument KEY_OFFSETS */
} norm_sdpa_flags_t;

/* Scaled dot-product attention (Vaswani et al., arXiv:1706.03762),
 *
 *   dst = softmax(mask(scale * Q K^T)) V
 *
 * in tiles, without a tensor of queries x keys. With B sequences, H query heads, G heads of
 * keys and values (H is a multiple of G, as in grouped-query attention: head h uses key head
 * h/(H/G)), S queries, T keys, head sizes D and E, for query i and key j
 *
 *   s = scale * sum over d of Q[b,h,i,d] * K[b,g,d,j]
 *   s = soft_cap * tanh(s / soft_cap)      with a soft cap
 *   s = s + slope[h] * (j - position)      with norm_sdpa_alibi (arXiv:2108.12409)
 *   s = s + mask[b,h,i,j]                  with an additive mask
 *
 * and dst[b,h,i,:] is the sum of V[b,g,j,:] * exp(s - m) over the keys that the query sees,
 * divided by the sum of exp(s - m), where m is the largest s. With norm_sdpa_sinks, a sink is
 * one more key with the score sinks[h] and values of 0.
 *
 * A query does not see a key that is beyond the length of its sequence, above the diagonal of
 * a causal mask, outside the window, 0 in a u8 mask, or -Inf after an additive mask. Keys and
 * values that no query sees may hold anything, even NaN, and those beyond the length of a
 * sequence are not read. A query that sees no key, and has no sink, gives zeros. A weight
 * below 2^-40 of the largest in its block of 256 keys counts as 0.
 *
 * The bits of a row of dst depend only on its query, the keys and values that it sees, their
 * indices, the types and the options, not on other queries and sequences, lengths of
 * tensors, page tables, strides, the instruction set or the threads. A token decoded alone
 * has the same bits as in a prefill. rfcs/0014-attention defines the order of every sum.
 *
 * prop_kind   norm_forward_inference, or norm_forward_training, which also writes WORKSPACE
 * query_desc  B x H x S x D, f32, bf16 or f16, any strides; D and E up to 65536
 * key_desc    B x G x D x T, the type of query_desc, or s8 or f8_e4m3, any strides: for the
 *             usual cache of B x G x T x D, permute the strides
 * value_desc  B x G x T x E, the type of query_desc, or s8 or f8_e4m3, any strides
 * dst_desc    B x H x S x E, f32, bf16 or f16, any strides or "any"
 * mask_desc   NULL, or B x H x S x T with 1 in dimensions to broadcast: f32, bf16 and f16
 *             are added; a 0 in u8 hides the key
 * page_table_desc  NULL, or dense s32 of B x pages. Keys and values are then in pages of P
 *             keys: key_desc is N x G x D x P and value_desc N x G x P x E, and key j of
 *             sequence b is key j % P of page table[b, j/P]. T is pages * P. Entries beyond
 *             the length of a sequence are not read. Those for pages before the windows of
 *             all queries may be -1
 * mask_type, window_kind, window   above; mask_desc is NULL with norm_attn_mask_undef. window
 *             is at least 1 (with norm_window_before_self 0), and 0 without a window
 * first_keys  with a window: keys below this number are also seen, whatever the window
 *             (arXiv:2309.17453 keeps four); otherwise 0
 * scale       finite, usually 1/sqrt(D). There is no default: with 0 all keys that a query
 *             sees have the same weight
 * soft_cap    above 0; 0 for none
 * flags       0, or norm_sdpa_flags_t
 * attr        may be NULL; no post-operations. s8 keys and values must have, and f8_e4m3 ones
 *             may have, f32 scales (norm_primitive_attr_set_scales_mask for KEYS, VALUES), by
 *             which their elements are multiplied: one for all, or one for each index of the
 *             mask's dimensions, except the elements of a head. For one per token and head,
 *             the masks are 11 for keys and 7 for values, with B x G x 1 x T and
 *             B x G x T x 1 scales; with pages, N x G x 1 x P and N x G x P x 1
 *
 * Packed sequences: with norm_sdpa_query_offsets, the queries of all sequences are stored one
 * after another: sequence b has the rows from QUERY_OFFSETS[b] to QUERY_OFFSETS[b + 1] - 1.
 * The same holds for dst. S is the number of rows of the tensors, and the stride of the
 * sequence dimension is 0; WORKSPACE is 1 x H x S x 1. norm_sdpa_key_offsets does the same for
 * keys and values, with T rows. Offsets ascend from 0 or more to at most S or T; rows that
 * belong to no sequence are neither read nor written. Offsets cannot be combined with lengths
 * of the same tensors or a mask_desc, nor those of keys with pages or scales.
 *
 * Arguments: in QUERIES, KEYS, VALUES, ATTR_SCALES | KEYS and VALUES, ATTN_MASK, PAGE_TABLE,
 * SINKS (H), ALIBI_SLOPES (H), QUERY_LENGTHS and KEY_LENGTHS (B; from 0 to S and T),
 * QUERY_OFFSETS and KEY_OFFSETS (B + 1); out DST; in training WORKSPACE: f32, dense,
 * B x H x S x 1, the logarithm of the sum of exp(s), or -Inf if there is none; ENTROPY: dense,
 * B x H, the mean over the queries of -sum(p * ln p), where p are the weights of keys. Rows of
 * dst beyond the length of a sequence are zeros. Lengths, offsets and pages are checked before
 * anything is written. DST may share the buffer of QUERIES if types and strides are the same. */
NORM_API norm_status_t norm_sdpa_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t query_desc,
        const_norm_memory_desc_t key_desc, const_norm_memory_desc_t value_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t mask_desc,
        const_norm_memory_desc_t page_table_desc, norm_attn_mask_type_t mask_type,
        norm_attn_window_t window_kind, norm_dim_t window, norm_dim_t first_keys, float scale,
        float soft_cap, unsigned flags, const_norm_primitive_attr_t attr);

/* The gradients of attention, from WORKSPACE and dst of forward in training. With the weights
 * p, and delta the sum of diff_dst * dst over a row,
 *
 *   diff_V = P^T diff_dst
 *   dS     = p * (diff_dst V^T - delta)    times 1 - (s/soft_cap)^2 with a soft cap
 *   diff_Q = scale * dS K
 *   diff_K = scale * dS^T Q
 *   diff_sinks[h] = -sum of exp(sink - logarithm) * delta
 *   diff_mask = the sum of p * (diff_dst V^T - delta) over broadcast dimensions
 *
 * where diff_K and diff_V of a group are sums over its heads. For bf16, p and dS are rounded to
 * bf16 before they are multiplied. No buffer has the size queries x keys.
 *
 * diff_query_desc, diff_key_desc, diff_value_desc   the dimensions of the tensors; f32, bf16
 *             or f16, any strides or "any"
 * diff_dst_desc   the dimensions of dst, the type of query_desc, any strides or "any"
 * dst_desc    as forward
 * diff_mask_desc   NULL, or for an additive mask the dimensions of mask_desc, f32, bf16 or
 *             f16, any strides or "any". Its sums are f64 and take another pass over the
 *             scores
 * query_desc to flags   as forward, without norm_sdpa_entropy
 * hint_fwd_pd ignored; may be NULL
 * attr        may be NULL; neither scales nor post-operations
 *
 * Arguments: in QUERIES, KEYS, VALUES, DST, DIFF_DST, WORKSPACE, and those for forward's
 * options; out DIFF_QUERIES, DIFF_KEYS, DIFF_VALUES, with norm_sdpa_sinks DIFF_SINKS (f32, H),
 * with diff_mask_desc DIFF_ATTN_MASK. Gradients beyond the length of a sequence are zeros. */
NORM_API norm_status_t norm_sdpa_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        const_norm_memory_desc_t diff_query_desc, const_norm_memory_desc_t diff_key_desc,
        const_norm_memory_desc_t diff_value_desc, const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t query_desc, const_norm_memory_desc_t key_desc,
        const_norm_memory_desc_t value_desc, const_norm_memory_desc_t dst_desc,
        const_norm_memory_desc_t mask_desc, const_norm_memory_desc_t diff_mask_desc,
        norm_attn_mask_type_t mask_type, norm_attn_window_t window_kind, norm_dim_t window, norm_dim_t first_keys, float scale,
        float soft_cap, unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* What determines the width of a sliding window; see norm_adaptive_window(). */
typedef enum {
    norm_window_fixed = 0x01000000,             /* max_window */
    norm_window_by_length = 0x01000001,         /* half of the length */
    norm_window_by_entropy = 0x01000002,        /* entropy, relative to ln(window) */
    norm_window_by_entropy_over_4 = 0x01000003, /* entropy, relative to 4 */
    norm_window_by_perplexity = 0x01000004      /* ln(perplexity), relative to ln(vocabulary) */
} norm_window_strategy_t;

/* The width of the sliding window for the next step of a model.
 *
 *   fixed               w = max_window
 *   by length           w = length/2, within min_window and max_window
 *   entropy, perplexity w = min_window + floor((max_window - min_window) * min(n, 1))
 *
 * with n = measured/ln(previous), measured/4 or ln(measured)/ln(vocabulary). Attention
 * writes its entropy to ENTROPY; ln(previous) is the maximum for a window. (If there is no
 * previous window, the one by length is used, at least 2.) Then
 *
 *   window = p + step,  step = smoothing * (w - p), within +-max_step
 *
 * where p is previous, limited to min_window and max_window, and step is rounded to the
 * nearest integer, ties to even.
 *
 * length      tokens of the sequence, 0 or more
 * min_window, max_window   1 <= min_window <= max_window
 * measured    entropy in nats, 0 or more, or perplexity, 1 or more; NAN if not measured, which
 *             selects the window by length
 * vocabulary  tokens in the vocabulary, 2 or more; for perplexity
 * previous    the previous window, or 0 for none: then window is w
 * smoothing   above 0 and at most 1, which means none
 * max_step    the largest step, 0 for any
 * window      out
 *
 * May be called from any thread. */
NORM_API norm_status_t norm_adaptive_window(norm_window_strategy_t strategy,
        norm_dim_t length, norm_dim_t min_window, norm_dim_t max_window, double measured,
        double vocabulary, norm_dim_t previous, double smoothing, norm_dim_t max_step,
        norm_dim_t *window);

#ifdef __cplusplus
}
#endif

#endif /* NORM_SDPA_H */
