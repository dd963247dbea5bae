/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A small model's attention for kv_cache.c and kv_cache_quantized.c: the queries, keys and values
 * of some sequences, the results of sdpa on them as plain tensors, and the same in steps through
 * a cache.
 */
#ifndef KV_CACHE_H
#define KV_CACHE_H

#include "tensor.h"

enum { LAYERS = 2, HEADS = 4, GROUPS = 2, KEY = 12, VALUE = 8, MOST = 3, LENGTH = 300 };

static norm_engine_t engine;
static norm_stream_t stream;

/* With the argument "emulated", for valgrind, every attention has a window of WINDOW keys. */
static int emulated;
enum { WINDOW = 40 };
static int has_window(norm_kv_cache_kind_t kind) {
    return kind == norm_kv_ring || emulated;
}

/* One sequence in one layer: 1 x heads x LENGTH x size, tokens before heads in memory. */
typedef struct {
    tensor_t q, k, v, dst;
    /* Keys and values as in a quantized cache: 1 x groups x LENGTH x size, and scales. */
    tensor_t codes[2], scales[2];
} story_t;
static story_t stories[MOST][LAYERS];

/* B x heads x S x size with tokens before heads. */
static tensor_t tokens_of(norm_data_type_t type, int b, int heads, int s, int size) {
    const norm_dim_t dims[] = {b, heads, s, size};
    const norm_dim_t strides[] = {(norm_dim_t)s * heads * size, size, (norm_dim_t)heads * size, 1};
    return tensor_make(type, 4, dims, strides, engine);
}

static unsigned char *row_of(const tensor_t *t, int b, int head, int token) {
    const norm_dim_t row = ((norm_dim_t)b * t->dims[1] + head) * t->dims[2] + token;
    return t->data + tensor_index(t, (size_t)row, 0) * element_bytes(t->type);
}

static void copy_row(tensor_t *to, int b, int token, const tensor_t *from, int from_token) {
    for (int head = 0; head < to->dims[1]; ++head)
        memcpy(row_of(to, b, head, token), row_of(from, 0, head, from_token),
                to->cols * element_bytes(to->type));
}

#include "kv_cache_scales.h"

/* The number of first keys that are visible besides a window. */
static int kept;

/* A window of W keys; 0 for none. */
static norm_primitive_desc_t attention_desc(const_norm_memory_desc_t q, const_norm_memory_desc_t k,
        const_norm_memory_desc_t v, const_norm_memory_desc_t dst, const_norm_memory_desc_t table,
        int window, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    if (quantized_to != norm_data_type_undef) {
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 11));
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_VALUES, 7));
    }
    MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_inference, q, k, v, dst,
            NULL, table, norm_attn_mask_bottom_right,
            window ? norm_window_with_self : norm_window_none, window,
            window ? kept : 0, 0.25f, 0, flags, attr));
    MUST(norm_primitive_attr_destroy(attr));
    return pd;
}

/* The results of sdpa on the plain tensors, all tokens at once. */
static void tell(story_t *s, int window) {
    norm_memory_desc_t keys = NULL;
    norm_memory_t k = NULL;
    norm_primitive_t primitive = NULL;
    const int turned[] = {0, 1, 3, 2}, quantized = quantized_to != norm_data_type_undef;
    const tensor_t *of_keys = quantized ? &s->codes[0] : &s->k;
    const tensor_t *of_values = quantized ? &s->codes[1] : &s->v;
    MUST(norm_memory_desc_permute_axes(&keys, of_keys->desc, turned));
    MUST(norm_memory_create(&k, keys, engine, of_keys->data));
    norm_primitive_desc_t pd
            = attention_desc(s->q.desc, keys, of_values->desc, s->dst.desc, NULL, window, 0);
    MUST(norm_primitive_create(&primitive, pd));
    const norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, s->q.memory}, {NORM_ARG_KEYS, k},
            {NORM_ARG_VALUES, of_values->memory}, {NORM_ARG_DST, s->dst.memory},
            {NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, s->scales[0].memory},
            {NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES, s->scales[1].memory}};
    MUST(norm_primitive_execute(primitive, stream, quantized ? 6 : 4, args));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_destroy(k));
    MUST(norm_memory_desc_destroy(keys));
}

/* All sequences have the same first `shared` tokens. */
static void make_stories(norm_data_type_t type, int window, int shared) {
    uint64_t state = 77;
    for (int b = 0; b < MOST; ++b)
        for (int layer = 0; layer < LAYERS; ++layer) {
            story_t *s = &stories[b][layer];
            s->q = tokens_of(type, 1, HEADS, LENGTH, KEY);
            s->k = tokens_of(type, 1, GROUPS, LENGTH, KEY);
            s->v = tokens_of(type, 1, GROUPS, LENGTH, VALUE);
            s->dst = tokens_of(type, 1, HEADS, LENGTH, VALUE);
            tensor_fill_random(&s->q, &state, -2, 2);
            tensor_fill_random(&s->k, &state, -2, 2);
            tensor_fill_random(&s->v, &state, -2, 2);
            for (int token = 0; token < shared && b > 0; ++token) {
                copy_row(&s->q, 0, token, &stories[0][layer].q, token);
                copy_row(&s->k, 0, token, &stories[0][layer].k, token);
                copy_row(&s->v, 0, token, &stories[0][layer].v, token);
            }
            if (quantized_to != norm_data_type_undef) {
                quantize(&s->k, 0, &s->codes[0], &s->scales[0]);
                quantize(&s->v, 1, &s->codes[1], &s->scales[1]);
            }
            tell(s, window);
        }
}

static void free_stories(void) {
    for (int b = 0; b < MOST; ++b)
        for (int layer = 0; layer < LAYERS; ++layer) {
            story_t *s = &stories[b][layer];
            tensor_free(&s->q), tensor_free(&s->k), tensor_free(&s->v), tensor_free(&s->dst);
            for (int i = 0; i < 2; ++i) tensor_free(&s->codes[i]), tensor_free(&s->scales[i]);
        }
}

/* Attention in steps of up to `rows` tokens of `count` sequences, through a cache. */
typedef struct {
    norm_kv_cache_t cache;
    norm_data_type_t type;
    int count, rows;
    norm_primitive_desc_t pd;
    norm_primitive_t primitive;
    tensor_t q, k, v, dst, lengths;
} steps_t;

static steps_t steps_make(
        norm_kv_cache_t cache, norm_data_type_t type, int count, int rows, int window) {
    steps_t s;
    memset(&s, 0, sizeof s);
    s.cache = cache, s.type = type, s.count = count, s.rows = rows;
    norm_memory_desc_t keys = NULL, values = NULL, table = NULL;
    MUST(norm_kv_cache_get_descs(cache, count, &keys, &values, &table, NULL));
    s.q = tokens_of(type, count, HEADS, rows, KEY);
    s.k = tokens_of(type, count, GROUPS, rows, KEY);
    s.v = tokens_of(type, count, GROUPS, rows, VALUE);
    s.dst = tokens_of(type, count, HEADS, rows, VALUE);
    const norm_dim_t dims[] = {count};
    s.lengths = tensor_make(norm_s32, 1, dims, NULL, engine);
    s.pd = attention_desc(s.q.desc, keys, values, s.dst.desc, table, window,
            norm_sdpa_key_lengths | norm_sdpa_query_lengths);
    MUST(norm_primitive_create(&s.primitive, s.pd));
    MUST(norm_memory_desc_destroy(keys));
    MUST(norm_memory_desc_destroy(values));
    MUST(norm_memory_desc_destroy(table));
    return s;
}

static void steps_free(steps_t *s) {
    MUST(norm_primitive_destroy(s->primitive));
    MUST(norm_primitive_desc_destroy(s->pd));
    tensor_free(&s->q), tensor_free(&s->k), tensor_free(&s->v), tensor_free(&s->dst);
    tensor_free(&s->lengths);
}

/* Writes the tokens of the open step to a layer and attends. Returns whether dst is as expected. */
static int attend(steps_t *s, int layer, const norm_dim_t *sequences, const norm_dim_t *starts,
        const norm_dim_t *tokens) {
    /* Rows beyond are NaN, which must not be read. */
    memset(s->k.data, 0xff, s->k.bytes), memset(s->v.data, 0xff, s->v.bytes);
    memset(s->q.data, 0, s->q.bytes);
    for (int b = 0; b < s->count; ++b) {
        ((int32_t *)s->lengths.data)[b] = (int32_t)tokens[b];
        for (int i = 0; i < tokens[b]; ++i) {
            const int token = (int)starts[b] + i;
            copy_row(&s->q, b, i, &stories[b][layer].q, token);
            copy_row(&s->k, b, i, &stories[b][layer].k, token);
            copy_row(&s->v, b, i, &stories[b][layer].v, token);
        }
    }
    MUST(norm_kv_cache_write(s->cache, stream, layer, s->k.memory, s->v.memory));
    norm_exec_arg_t args[9] = {{NORM_ARG_QUERIES, s->q.memory}, {NORM_ARG_DST, s->dst.memory},
            {NORM_ARG_QUERY_LENGTHS, s->lengths.memory}};
    int nargs = 6;
    MUST(norm_kv_cache_get_arguments(s->cache, layer, s->count, sequences, &nargs, args + 3));
    MUST(norm_primitive_execute(s->primitive, stream, 3 + nargs, args));
    int same = 1;
    for (int b = 0; b < s->count; ++b)
        for (int i = 0; i < tokens[b]; ++i)
            for (int head = 0; head < HEADS; ++head)
                same &= memcmp(row_of(&s->dst, b, head, i),
                                row_of(&stories[b][layer].dst, 0, head, (int)starts[b] + i),
                                s->dst.cols * element_bytes(s->type))
                        == 0;
    return same;
}

/* Extends sequence b up to ends[b], in steps of up to s->rows tokens. */
static int follow(steps_t *s, const norm_dim_t *sequences, const norm_dim_t *ends) {
    int same = 1;
    for (;;) {
        norm_dim_t starts[MOST], tokens[MOST];
        int left = 0;
        for (int b = 0; b < s->count; ++b) {
            MUST(norm_kv_cache_get_length(s->cache, sequences[b], &starts[b]));
            tokens[b] = ends[b] - starts[b];
            if (tokens[b] > s->rows) tokens[b] = s->rows;
            left += tokens[b] > 0;
        }
        if (left == 0) return same;
        MUST(norm_kv_cache_extend(s->cache, s->count, sequences, tokens, s->rows));
        for (int layer = 0; layer < LAYERS; ++layer)
            same &= attend(s, layer, sequences, starts, tokens);
    }
}

/* Fills the memory of all pages with NaN. */
static void poison(norm_kv_cache_t cache) {
    for (int layer = 0; layer < LAYERS; ++layer) {
        norm_exec_arg_t args[6];
        int nargs = 6;
        MUST(norm_kv_cache_get_arguments(cache, layer, 0, NULL, &nargs, args));
        for (int i = 0; i < nargs; ++i) {
            if (i == 2 || i == 3) continue;
            const_norm_memory_desc_t desc = NULL;
            void *data = NULL;
            MUST(norm_memory_get_memory_desc(args[i].memory, &desc));
            MUST(norm_memory_get_data_handle(args[i].memory, &data));
            memset(data, 0xff, norm_memory_desc_get_size(desc));
        }
    }
}

/* The most tokens of a sequence in a step. */
static int step_rows = 64;

/* A cache of a kind for the model. The window of a ring has WINDOW tokens. */
static norm_kv_cache_t make_cache(norm_kv_cache_kind_t kind, norm_data_type_t type, int page) {
    norm_kv_cache_t cache = NULL;
    MUST(norm_kv_cache_create(&cache, engine, kind, type, LAYERS, GROUPS, KEY, VALUE, MOST, 320,
            MOST * step_rows, page, 0, kind == norm_kv_ring ? WINDOW : 0,
            kind == norm_kv_ring ? kept : 0));
    poison(cache);
    return cache;
}

static norm_kv_cache_stats_t stats_of(norm_kv_cache_t cache) {
    norm_kv_cache_stats_t stats;
    MUST(norm_kv_cache_get_stats(cache, &stats));
    return stats;
}

#endif
