/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_kv_cache.h - a cache of the keys and values of attention. Programs include norm.h.
 */
#ifndef NORM_KV_CACHE_H
#define NORM_KV_CACHE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A cache owns the keys and values of several sequences in all layers of a model, in
 * pages. A page holds page_size tokens of all heads of a layer, and page n of each layer
 * belongs to the same sequence. Attention (norm_sdpa.h) reads pages through a table, so one
 * primitive serves every step and every kind of cache. A key has its index in the sequence
 * wherever it is stored, so a token has the same bits as with plain tensors.
 *
 * One step of a model is
 *
 *   norm_kv_cache_extend()              makes room for the new tokens of each sequence
 *   for each layer:
 *     rope with norm_write_slots        writes keys to the arguments of
 *                                       norm_kv_cache_get_rope_arguments(), or
 *     norm_kv_cache_write()             writes keys, values, or both
 *     sdpa                              reads norm_kv_cache_get_arguments()
 *
 * Calls on one cache must not overlap, except norm_kv_cache_get_length() and
 * norm_kv_cache_get_stats() with each other. Executions that read or write its memory count
 * as calls. Different caches are independent.
 *
 * norm_kv_cache_create() allocates all memory. Later, norm_out_of_memory means that no page
 * is free, or that there are as many sequences as the cache was created for; more tokens than
 * a sequence may have are norm_invalid_arguments. A call that fails changes nothing. */
struct norm_kv_cache;
typedef struct norm_kv_cache *norm_kv_cache_t;
typedef const struct norm_kv_cache *const_norm_kv_cache_t;

/* How pages are given to sequences. */
typedef enum {
    norm_kv_contiguous = 0x01000000, /* one page for each sequence, for all its tokens */
    norm_kv_paged = 0x01000001,      /* as many pages from a pool as the tokens need */
    /* Paged, for attention with a sliding window: norm_kv_cache_extend() returns pages that
     * no further token sees to the pool. */
    norm_kv_ring = 0x01000002
} norm_kv_cache_kind_t;

/* Creates a cache without sequences.
 *
 * kind        above
 * data_type   of keys and values: f32, bf16 or f16; or s8 or f8_e4m3, which have scales (see
 *             norm_kv_cache_write())
 * layers, kv_heads, key_size, value_size   of the model, from 1; sizes up to 65536
 * sequences   the maximum at a time
 * tokens      the maximum per sequence; rounded up to whole pages, below 2^31
 * step_tokens the maximum rows in the tensors of a step, all sequences together; see
 *             norm_kv_cache_extend()
 * page_size   tokens per page; contiguous: the same as tokens, or 0
 * pages       in the pool; 0 for as many as all sequences can need: for each sequence
 *             tokens/page_size, but in a ring at most those for window + step_tokens
 *             tokens, those for first_tokens, and one more. Contiguous: 0
 * window      ring: how many keys a token sees, including its own, from 1: W with
 *             norm_window_with_self, and W + 1 with norm_window_before_self. Otherwise 0
 * first_tokens  ring: how many first tokens of a sequence are kept, for the first_keys of
 *             attention. Otherwise 0
 *
 * norm_out_of_memory if there is not enough memory. */
NORM_API norm_status_t norm_kv_cache_create(norm_kv_cache_t *cache, norm_engine_t engine,
        norm_kv_cache_kind_t kind, norm_data_type_t data_type, norm_dim_t layers,
        norm_dim_t kv_heads, norm_dim_t key_size, norm_dim_t value_size, norm_dim_t sequences,
        norm_dim_t tokens, norm_dim_t step_tokens, norm_dim_t page_size, norm_dim_t pages,
        norm_dim_t window, norm_dim_t first_tokens);
/* Destroys a cache and its memory objects. NULL is fine. */
NORM_API norm_status_t norm_kv_cache_destroy(norm_kv_cache_t cache);

/* Begins a sequence without tokens. `sequence` receives its number, 0 or more, which no
 * other sequence of the cache has had or will have. norm_out_of_memory if there are already
 * as many as the cache was created for. */
NORM_API norm_status_t norm_kv_cache_new_sequence(norm_kv_cache_t cache, norm_dim_t *sequence);
/* Ends a sequence and frees the pages that no other sequence shares. */
NORM_API norm_status_t norm_kv_cache_drop(norm_kv_cache_t cache, norm_dim_t sequence);
/* The number of tokens in a sequence. */
NORM_API norm_status_t norm_kv_cache_get_length(
        const_norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t *length);
/* Drops the tokens of a sequence from `length` on. In a ring, norm_invalid_arguments if the
 * next token would see keys whose pages have returned to the pool. The tokens of the last
 * extension can always be dropped. */
NORM_API norm_status_t norm_kv_cache_truncate(
        norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t length);
/* Begins a sequence with the tokens of another. Both share all pages. A sequence that extends
 * a shared page that is not full gets a copy of that page only. */
NORM_API norm_status_t norm_kv_cache_fork(
        norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t *copy);

/* Makes room for tokens[b] more tokens of each of `count` sequences, in all layers, and opens
 * a step, to which keys and values are written. The sequences must differ; -1 with 0 tokens is
 * an empty place. norm_out_of_memory if the pool has too few free pages. Fork, truncate and
 * drop end the step.
 *
 * rows        rows of each sequence in the tensors of the step, at least the largest of
 *             `tokens`: row b*rows + s is token s of sequence b. 0 if the rows of all
 *             sequences are packed without gaps.
 *
 * `count` times `rows`, or the sum of `tokens`, is at most the cache's step_tokens. A `count`
 * of 0 opens no step. */
NORM_API norm_status_t norm_kv_cache_extend(norm_kv_cache_t cache, int count,
        const norm_dim_t *sequences, const norm_dim_t *tokens, norm_dim_t rows);

/* Writes the keys and values of the step to a layer, converted to the cache's type, rounded
 * to nearest even. Either may be NULL, but not both.
 *
 * A cache of s8 or f8_e4m3 has one f32 scale for the key of each token and head, and one for
 * the value, computed by the rule of dynamic scales (norm_primitive_attr_set_scales_v3()):
 *
 *   scale = max|x| / M          M is 127 for s8 and 448 for f8_e4m3
 *   element = x * (1/scale)     rounded to nearest even, saturated
 *
 * in f32. If all elements are zeros, or if 1/scale overflows (scales up to 2^-128), the scale
 * is 1 and zeros are stored. With an Inf the scale is Inf, with a NaN it is NaN, and every
 * element times it is NaN. So what is stored for a token and head does not depend on what is
 * written together with it. Apart from f32 rounding errors, an element times its scale is off
 * by at most half the scale (s8), or the larger of 2^-4 of the element and 2^-10 of the scale
 * (f8_e4m3).
 *
 * keys        count x kv_heads x S x key_size, f32, bf16 or f16, any strides. S is at least
 *             the largest of `tokens`; rows from tokens[b] on are not read. After an
 *             extension with rows 0: 1 x kv_heads x T x key_size, sequences one after
 *             another, with T at least the sum of `tokens`
 * values      likewise, with value_size */
NORM_API norm_status_t norm_kv_cache_write(norm_kv_cache_t cache, norm_stream_t stream,
        norm_dim_t layer, const_norm_memory_t keys, const_norm_memory_t values);

/* The arguments with which sdpa reads a layer: NORM_ARG_KEYS, NORM_ARG_VALUES,
 * NORM_ARG_PAGE_TABLE and NORM_ARG_KEY_LENGTHS, for `count` sequences in this order. Create
 * sdpa with the flag norm_sdpa_key_lengths and the mask norm_attn_mask_bottom_right. -1 is an
 * empty place, a sequence may appear twice, and places from `count` on are empty and have
 * length 0. Table entries without a page are -1, so attention without the flag is refused.
 *
 * For s8 and f8_e4m3, NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, N x G x 1 x P, and
 * NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES, N x G x P x 1, follow, in f32. Then sdpa needs the
 * attributes set by norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 11) and
 * norm_primitive_attr_set_scales_mask(attr, NORM_ARG_VALUES, 7).
 *
 * nargs       in: the capacity of args; out: the number of arguments, 4, or 6 with scales
 * args        if NULL, only nargs is written
 *
 * The memory objects belong to the cache, are the same for every call with the same layer, and
 * are valid until the cache is destroyed. All layers share the table and the lengths, which
 * the next call that gets arguments overwrites. Arguments obtained before an extension,
 * truncation, fork or drop are out of date.
 *
 * norm_invalid_arguments if the open step has tokens of one of the sequences and their keys or
 * their values were not written to the layer: the pages hold what was there before. Rope counts
 * as having written the keys in every step once it was given the layer's arguments. */
NORM_API norm_status_t norm_kv_cache_get_arguments(norm_kv_cache_t cache, norm_dim_t layer,
        int count, const norm_dim_t *sequences, int *nargs, norm_exec_arg_t *args);
/* The arguments with which rope writes the step's keys to a layer: NORM_ARG_DST,
 * NORM_ARG_SLOTS and NORM_ARG_POSITIONS, s32. Rope's src is T x kv_heads x key_size with the
 * rows of the step, where T is between their number and step_tokens; its positions are T x 1,
 * and its dst_desc comes from norm_kv_cache_get_descs(). Rows without a token have the slot
 * -1; if no step is open, all rows do. norm_unimplemented for s8 and f8_e4m3, since rope does
 * not quantize; have it write a tensor, which norm_kv_cache_write() quantizes.
 *
 * nargs, args   as above; 3 arguments. The memory objects belong to the cache; the next
 * extension, truncation, fork or drop changes their contents. */
NORM_API norm_status_t norm_kv_cache_get_rope_arguments(
        norm_kv_cache_t cache, norm_dim_t layer, int *nargs, norm_exec_arg_t *args);
/* Creates descriptors for sdpa with `count` sequences, and for the dst of rope. The caller
 * destroys them. With N pages of P tokens, G heads and head sizes D and E:
 *
 * key_desc         N x G x D x P
 * value_desc       N x G x P x E
 * page_table_desc  count x pages per sequence, s32
 * rope_dst_desc    N x P x G x D, the same memory as key_desc; norm_unimplemented for s8 and
 *                  f8_e4m3
 *
 * Each may be NULL. */
NORM_API norm_status_t norm_kv_cache_get_descs(const_norm_kv_cache_t cache, int count,
        norm_memory_desc_t *key_desc, norm_memory_desc_t *value_desc,
        norm_memory_desc_t *page_table_desc, norm_memory_desc_t *rope_dst_desc);

/* The contents of a cache. */
typedef struct {
    norm_dim_t sequences;    /* begun and not dropped */
    norm_dim_t page_size;    /* tokens per page */
    norm_dim_t page_bytes;   /* keys, values, scales of a page in all layers */
    norm_dim_t pages;        /* in the pool */
    norm_dim_t used_pages;   /* belonging to sequences */
    norm_dim_t shared_pages; /* belonging to several; included in used_pages */
    norm_dim_t copied_pages; /* since creation; a page in all layers counts once */
    norm_dim_t bytes;        /* of keys, values, scales, tables and slots */
} norm_kv_cache_stats_t;

/* Writes what the cache holds at the moment. */
NORM_API norm_status_t norm_kv_cache_get_stats(
        const_norm_kv_cache_t cache, norm_kv_cache_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* NORM_KV_CACHE_H */
