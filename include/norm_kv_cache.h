/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_kv_cache.h - a cache of the keys and values of attention. Programs include norm.h.
 */
#ifndef NORM_KV_CACHE_H
#define NORM_KV_CACHE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A cache owns the keys and values of several sequences in all layers of a model. They lie
 * in pages: a page holds page_size tokens of all heads of a layer, and page n of each layer
 * belongs to the same sequence. Attention (norm_sdpa.h) reads pages by a table, so one
 * primitive serves every step and every kind of cache, and a key has its index in the
 * sequence wherever it lies: the bits of a token are those of plain tensors.
 *
 * One step of a model is
 *
 *   norm_kv_cache_extend()              room for the new tokens of each sequence
 *   for each layer:
 *     rope with norm_write_slots        writes keys to the arguments of
 *                                       norm_kv_cache_get_rope_arguments(), or
 *     norm_kv_cache_write()             writes keys, values, or both
 *     sdpa                              reads norm_kv_cache_get_arguments()
 *
 * Calls for one cache must not overlap, except norm_kv_cache_get_length() and
 * norm_kv_cache_get_stats() with each other. Executions that read or write its memories
 * count as calls. Different caches are independent.
 *
 * All memory is allocated by norm_kv_cache_create(). A full cache is norm_out_of_memory. A
 * call that fails changes nothing. */
struct norm_kv_cache;
typedef struct norm_kv_cache *norm_kv_cache_t;
typedef const struct norm_kv_cache *const_norm_kv_cache_t;

/* How pages are given to sequences. */
typedef enum {
    norm_kv_contiguous = 0x01000000, /* one page of all tokens for each sequence */
    norm_kv_paged = 0x01000001,      /* as many pages of a pool as the tokens need */
    /* Paged, for attention with a sliding window: pages that no further token sees are
     * given back by norm_kv_cache_extend(). */
    norm_kv_ring = 0x01000002
} norm_kv_cache_kind_t;

/* Creates a cache without sequences.
 *
 * kind        above
 * data_type   of keys and values: f32, bf16 or f16; or s8 or f8_e4m3, which have scales: see
 *             norm_kv_cache_write()
 * layers, kv_heads, key_size, value_size   of the model, from 1; sizes up to 65536
 * sequences   the most at a time
 * tokens      the most of a sequence; rounded up to whole pages below 2^31
 * step_tokens the most rows of the tensors of a step, all sequences together; see
 *             norm_kv_cache_extend()
 * page_size   tokens of a page; contiguous: tokens, or 0 for it
 * pages       of the pool; 0 for as many as all sequences can need. That is for each
 *             sequence tokens/page_size, and in a ring at most those of
 *             window + step_tokens tokens, of first_tokens, and one. Contiguous: 0
 * window      ring: keys that a token sees, itself among them, from 1. So it is W of
 *             norm_window_with_self and W + 1 of norm_window_before_self. Else 0
 * first_tokens  ring: first tokens of a sequence whose pages stay, for the first_keys of
 *             attention. Else 0
 *
 * norm_out_of_memory if the memory cannot be had. */
NORM_API norm_status_t norm_kv_cache_create(norm_kv_cache_t *cache, norm_engine_t engine,
        norm_kv_cache_kind_t kind, norm_data_type_t data_type, norm_dim_t layers,
        norm_dim_t kv_heads, norm_dim_t key_size, norm_dim_t value_size, norm_dim_t sequences,
        norm_dim_t tokens, norm_dim_t step_tokens, norm_dim_t page_size, norm_dim_t pages,
        norm_dim_t window, norm_dim_t first_tokens);
/* Frees a cache with its memories. NULL is fine. */
NORM_API norm_status_t norm_kv_cache_destroy(norm_kv_cache_t cache);

/* Begins a sequence of no tokens. `sequence` is its number, 0 or more, which no other
 * sequence of the cache had or will have. norm_out_of_memory if there are as many as the
 * cache was created for. */
NORM_API norm_status_t norm_kv_cache_new_sequence(norm_kv_cache_t cache, norm_dim_t *sequence);
/* Ends a sequence. Pages that no other sequence has are free. */
NORM_API norm_status_t norm_kv_cache_drop(norm_kv_cache_t cache, norm_dim_t sequence);
/* The tokens of a sequence. */
NORM_API norm_status_t norm_kv_cache_get_length(
        const_norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t *length);
/* Drops the tokens of a sequence from `length` on. In a ring, norm_invalid_arguments if the
 * next token would see keys whose pages were given back. The tokens of the last extension can
 * always be dropped. */
NORM_API norm_status_t norm_kv_cache_truncate(
        norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t length);
/* Begins a sequence with the tokens of another. Both share all pages. The first of them to
 * extend a page that is neither full nor its own gets a copy of that page alone. */
NORM_API norm_status_t norm_kv_cache_fork(
        norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t *copy);

/* Makes room for tokens[b] further tokens of each of `count` sequences, in all layers, and
 * opens a step, to which keys and values are written. Sequences differ; a number of -1 with 0
 * tokens is an empty place. norm_out_of_memory if the pool has too few free pages. Fork,
 * truncate and drop end the step.
 *
 * rows        rows of each sequence in the tensors of the step, at least the largest of
 *             `tokens`: row b*rows + s is token s of sequence b. 0 if rows of sequences follow
 *             each other without gaps.
 *
 * `count` times `rows`, or the sum of `tokens`, is at most the cache's step_tokens. With a
 * `count` of 0 no step is open. */
NORM_API norm_status_t norm_kv_cache_extend(norm_kv_cache_t cache, int count,
        const norm_dim_t *sequences, const norm_dim_t *tokens, norm_dim_t rows);

/* Writes the keys and values of the step to a layer, converted to the cache's type, rounded
 * to nearest even. Either may be NULL.
 *
 * A cache of s8 or f8_e4m3 has one scale in f32 for the key of each token and head, and one
 * for the value, by the rule of dynamic scales (norm_primitive_attr_set_scales_v3()):
 *
 *   scale = max|x| / M          M is 127 for s8 and 448 for f8_e4m3
 *   element = x * (1/scale)     rounded to nearest even, saturated
 *
 * each step in f32. The scale is 1 if all elements are zeros, or if 1/scale overflows, which
 * it does up to 2^-128; then zeros are stored. With an Inf the scale is Inf, with a NaN it is
 * NaN, and every element times it is NaN. So the key of a token and head is stored by itself,
 * whatever is written together with it. But for roundings of f32, an element times its scale
 * is off by at most half of the scale (s8), or the larger of 2^-4 of the element and 2^-10 of
 * the scale (f8_e4m3).
 *
 * keys        count x kv_heads x S x key_size, f32, bf16 or f16, any strides. S is at least
 *             the largest of `tokens`; rows from tokens[b] on are not read. After an
 *             extension with rows 0: 1 x kv_heads x T x key_size, sequences one after
 *             another, with T at least the sum of `tokens`
 * values      likewise, with value_size */
NORM_API norm_status_t norm_kv_cache_write(norm_kv_cache_t cache, norm_stream_t stream,
        norm_dim_t layer, const_norm_memory_t keys, const_norm_memory_t values);

/* The arguments with which sdpa reads a layer: NORM_ARG_KEYS, NORM_ARG_VALUES,
 * NORM_ARG_PAGE_TABLE and NORM_ARG_KEY_LENGTHS, for `count` sequences in this order. The flag
 * is norm_sdpa_key_lengths, the mask norm_attn_mask_bottom_right. -1 is an empty place, a
 * sequence may be named twice, and places from `count` on are empty: of length 0. Entries of
 * the table that are of no page are -1: attention without the flag is refused.
 *
 * For s8 and f8_e4m3 NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, N x G x 1 x P, and
 * NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES, N x G x P x 1, follow, in f32. The attributes of sdpa
 * are those of norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 11) and
 * norm_primitive_attr_set_scales_mask(attr, NORM_ARG_VALUES, 7).
 *
 * nargs       in: the arguments that args has room for; out: their number, 4, with scales 6
 * args        NULL: only nargs is written
 *
 * The memories belong to the cache and are the same for every call of a layer. They are valid
 * until it is destroyed. The contents of table and lengths, one for all layers, are those of
 * the last call, and stay until the next call that gets arguments. What was got before an
 * extension, truncation, fork or drop is out of date. */
NORM_API norm_status_t norm_kv_cache_get_arguments(norm_kv_cache_t cache, norm_dim_t layer,
        int count, const norm_dim_t *sequences, int *nargs, norm_exec_arg_t *args);
/* The arguments with which rope writes keys of the step to a layer: NORM_ARG_DST,
 * NORM_ARG_SLOTS and NORM_ARG_POSITIONS, s32. Its src is T x kv_heads x key_size with the rows
 * of the step and T from their number to step_tokens, its positions are T x 1, and its dst_desc is
 * that of norm_kv_cache_get_descs(). Rows without a token have the slot -1, all of them if there is no
 * open step. norm_unimplemented for s8 and f8_e4m3: rope does not quantize. It writes a tensor
 * then, and norm_kv_cache_write() quantizes that.
 *
 * nargs, args   as above; 3 arguments. The memories belong to the cache; the next extension,
 * truncation, fork or drop changes their contents. */
NORM_API norm_status_t norm_kv_cache_get_rope_arguments(
        norm_kv_cache_t cache, norm_dim_t layer, int *nargs, norm_exec_arg_t *args);
/* Creates descriptors for sdpa of `count` sequences, and the dst of rope. The caller destroys
 * them. With N pages of P tokens, G heads and head sizes D and E:
 *
 * key_desc         N x G x D x P
 * value_desc       N x G x P x E
 * page_table_desc  count x pages of a sequence, s32
 * rope_dst_desc    N x P x G x D, the same memory as key_desc; norm_unimplemented for s8 and
 *                  f8_e4m3
 *
 * Each may be NULL. */
NORM_API norm_status_t norm_kv_cache_get_descs(const_norm_kv_cache_t cache, int count,
        norm_memory_desc_t *key_desc, norm_memory_desc_t *value_desc,
        norm_memory_desc_t *page_table_desc, norm_memory_desc_t *rope_dst_desc);

/* What a cache has. */
typedef struct {
    norm_dim_t sequences;    /* that were begun and not dropped */
    norm_dim_t page_size;    /* tokens of a page */
    norm_dim_t page_bytes;   /* keys, values, scales of a page in all layers */
    norm_dim_t pages;        /* of the pool */
    norm_dim_t used_pages;   /* of sequences */
    norm_dim_t shared_pages; /* of several sequences; also among used_pages */
    norm_dim_t copied_pages; /* since creation; one in all layers counts once */
    norm_dim_t bytes;        /* of keys, values, scales, tables and slots */
} norm_kv_cache_stats_t;

NORM_API norm_status_t norm_kv_cache_get_stats(
        const_norm_kv_cache_t cache, norm_kv_cache_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* NORM_KV_CACHE_H */
