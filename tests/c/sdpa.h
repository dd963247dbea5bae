/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Problems of attention: random inputs with tokens before heads, as models have them,
 * and the formula in double.
 */
#ifndef SDPA_H
#define SDPA_H

#include "tensor.h"

#include <math.h>

typedef struct {
    int batch, heads, groups, queries, keys, key_size, value_size;
    norm_attn_mask_type_t mask_type;
    norm_attn_window_t window_kind;
    int window, first_keys;
    float soft_cap;
    unsigned flags;
    norm_data_type_t mask;      /* undef: none */
    norm_data_type_t data_type; /* undef: f32 */
    int page;                   /* 0: without pages */
} setup_t;

enum { SDPA_MOST_SEQUENCES = 8, SDPA_MOST_HEADS = 16 };

typedef struct {
    setup_t s;
    float scale;
    tensor_t q, k, v, mask, table, dst, stats, entropy;
    float sinks[SDPA_MOST_HEADS], slopes[SDPA_MOST_HEADS];
    int32_t query_lengths[SDPA_MOST_SEQUENCES], key_lengths[SDPA_MOST_SEQUENCES];
} sdpa_t;

static inline int sdpa_has(const sdpa_t *p, unsigned flag) { return (p->s.flags & flag) != 0; }

/* Tokens before heads: b, token, head, element. `by_element` swaps the last two dims of the
 * descriptor. */
static inline tensor_t sdpa_tokens(norm_data_type_t type, int b, int heads, int tokens, int size,
        int by_element, norm_engine_t engine) {
    const norm_dim_t sequence = (norm_dim_t)tokens * heads * size, token = (norm_dim_t)heads * size;
    const norm_dim_t plain[] = {b, heads, tokens, size}, strides[] = {sequence, size, token, 1};
    const norm_dim_t turned[] = {b, heads, size, tokens}, turns[] = {sequence, size, 1, token};
    return by_element ? tensor_make(type, 4, turned, turns, engine)
                      : tensor_make(type, 4, plain, strides, engine);
}

/* The rows of tokens, heads outermost. */
static inline double sdpa_at(const tensor_t *t, int b, int head, int i, int j) {
    return tensor_get(t, (size_t)(((norm_dim_t)b * t->dims[1] + head) * t->dims[2] + i), (size_t)j);
}

static inline int sdpa_queries(const sdpa_t *p, int b) {
    return sdpa_has(p, norm_sdpa_query_lengths) ? p->query_lengths[b] : p->s.queries;
}
static inline int sdpa_keys(const sdpa_t *p, int b) {
    return sdpa_has(p, norm_sdpa_key_lengths) ? p->key_lengths[b] : p->s.keys;
}

/* The page of a key, and its index in the page. */
static inline void sdpa_place(const sdpa_t *p, int b, int key, int *page, int *place) {
    *page = b;
    *place = key;
    if (p->s.page == 0) return;
    *page = ((const int32_t *)p->table.data)[b * (p->s.keys / p->s.page) + key / p->s.page];
    *place = key % p->s.page;
}

static inline sdpa_t sdpa_make(const setup_t *setup, norm_engine_t engine, uint64_t *state) {
    sdpa_t p;
    memset(&p, 0, sizeof p);
    p.s = *setup;
    const setup_t *s = &p.s;
    const norm_data_type_t type = s->data_type ? s->data_type : norm_f32;
    const int pages = s->page ? s->keys / s->page : 1;
    const int stored = s->page ? s->batch * pages + 2 : s->batch, tokens = s->page ? s->page : s->keys;
    p.scale = (float)(1 / sqrt(s->key_size));
    p.q = sdpa_tokens(type, s->batch, s->heads, s->queries, s->key_size, 0, engine);
    p.k = sdpa_tokens(type, stored, s->groups, tokens, s->key_size, 1, engine);
    p.v = sdpa_tokens(type, stored, s->groups, tokens, s->value_size, 0, engine);
    p.dst = sdpa_tokens(type, s->batch, s->heads, s->queries, s->value_size, 0, engine);
    tensor_fill_random(&p.q, state, -2, 2);
    tensor_fill_random(&p.k, state, -2, 2);
    tensor_fill_random(&p.v, state, -2, 2);
    const norm_dim_t rows[] = {s->batch, s->heads, s->queries, 1}, heads[] = {s->batch, s->heads};
    p.stats = tensor_make(norm_f32, 4, rows, NULL, engine);
    p.entropy = tensor_make(norm_f32, 2, heads, NULL, engine);
    if (s->mask) {
        const norm_dim_t dims[] = {s->batch, 1, s->queries, s->keys};
        p.mask = tensor_make(s->mask, 4, dims, NULL, engine);
        for (size_t i = 0; i < p.mask.rows; ++i)
            for (size_t j = 0; j < p.mask.cols; ++j) {
                const int hidden = random_bits(state) % 4 == 0;
                const double added = random_between(state, -1, 1);
                tensor_set(&p.mask, i, j, s->mask == norm_u8 ? !hidden : hidden ? -INFINITY : added);
            }
    }
    if (s->page) {
        const norm_dim_t dims[] = {s->batch, pages};
        p.table = tensor_make(norm_s32, 2, dims, NULL, engine);
        for (int i = 0; i < s->batch * pages; ++i)
            ((int32_t *)p.table.data)[i] = (i * 5 + 3) % (s->batch * pages + 2);
        /* Shuffled, because 5 divides no number of pages in the tests. */
        EXPECT((s->batch * pages + 2) % 5 != 0);
    }
    for (int i = 0; i < s->heads; ++i) {
        p.sinks[i] = (float)random_between(state, -2, 2);
        p.slopes[i] = (float)random_between(state, 0, 0.5);
    }
    for (int b = 0; b < s->batch; ++b) {
        p.query_lengths[b] = (int32_t)(random_bits(state) % (unsigned)(s->queries + 1));
        p.key_lengths[b] = (int32_t)(random_bits(state) % (unsigned)(s->keys + 1));
    }
    /* Elements beyond the lengths have no effect. */
    for (int b = 0; b < s->batch; ++b)
        for (int j = sdpa_keys(&p, b); j < s->keys; ++j) {
            int page, place;
            sdpa_place(&p, b, j, &page, &place);
            for (int g = 0; g < s->groups; ++g) {
                for (int d = 0; d < s->key_size; ++d)
                    tensor_set(&p.k, (size_t)((page * s->groups + g) * s->key_size + d), (size_t)place, NAN);
                for (int e = 0; e < s->value_size; ++e)
                    tensor_set(&p.v, (size_t)((page * s->groups + g) * tokens + place), (size_t)e, NAN);
            }
        }
    return p;
}

static inline void sdpa_free(sdpa_t *p) {
    tensor_t *all[] = {&p->q, &p->k, &p->v, &p->mask, &p->table, &p->dst, &p->stats, &p->entropy};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tensor_free(all[i]);
}

static inline norm_status_t sdpa_forward(
        norm_primitive_desc_t *pd, const sdpa_t *p, norm_engine_t engine) {
    return norm_sdpa_forward_primitive_desc_create(pd, engine, norm_forward_training, p->q.desc,
            p->k.desc, p->v.desc, p->dst.desc, p->mask.desc, p->table.desc, p->s.mask_type,
            p->s.window_kind ? p->s.window_kind : norm_window_none, p->s.window,
            p->s.first_keys, p->scale, p->s.soft_cap, p->s.flags, NULL);
}

/* The score of a key, and whether the query sees it. */
static inline int sdpa_score(const sdpa_t *p, int b, int h, int i, int j, double *score) {
    const setup_t *s = &p->s;
    const int queries = sdpa_queries(p, b), keys = sdpa_keys(p, b), g = h / (s->heads / s->groups);
    const int position = i + (s->mask_type == norm_attn_mask_bottom_right ? keys - queries : 0);
    const int windowed = s->window_kind && s->window_kind != norm_window_none;
    const int causal = s->mask_type >= norm_attn_mask_top_left || windowed;
    if (i >= queries || j >= keys || (causal && j > position)) return 0;
    if (j >= s->first_keys && s->window_kind == norm_window_with_self && j <= position - s->window) return 0;
    if (j >= s->first_keys && s->window_kind == norm_window_before_self && j < position - s->window) return 0;
    int page, place;
    sdpa_place(p, b, j, &page, &place);
    double sum = 0;
    for (int d = 0; d < s->key_size; ++d)
        sum += sdpa_at(&p->q, b, h, i, d) * sdpa_at(&p->k, page, g, d, place);
    sum *= p->scale;
    if (s->soft_cap > 0) sum = s->soft_cap * tanh(sum / s->soft_cap);
    if (sdpa_has(p, norm_sdpa_alibi)) sum += p->slopes[h] * (j - position);
    if (s->mask) {
        const double mask = tensor_get(&p->mask, (size_t)(b * s->queries + i), (size_t)j);
        if (s->mask == norm_u8 ? mask == 0 : mask == -INFINITY) return 0;
        if (s->mask != norm_u8) sum += mask;
    }
    *score = sum;
    return 1;
}

/* A row by the formula: its weights, the sums of values and the logarithm. Returns the entropy. */
static inline double sdpa_row(const sdpa_t *p, int b, int h, int i, double *weights, double *dst, double *logarithm) {
    const setup_t *s = &p->s;
    const int g = h / (s->heads / s->groups);
    const int sink = sdpa_has(p, norm_sdpa_sinks) && p->sinks[h] != -INFINITY && i < sdpa_queries(p, b);
    double max = sink ? p->sinks[h] : -INFINITY, total = 0, entropy = 0;
    for (int j = 0; j < s->keys; ++j) {
        double score;
        weights[j] = sdpa_score(p, b, h, i, j, &score) ? score : -INFINITY;
        max = fmax(max, weights[j]);
    }
    for (int e = 0; e < s->value_size; ++e) dst[e] = 0;
    *logarithm = -INFINITY;
    if (max == -INFINITY) {
        for (int j = 0; j < s->keys; ++j) weights[j] = 0;
        return 0;
    }
    total = sink ? exp(p->sinks[h] - max) : 0;
    for (int j = 0; j < s->keys; ++j) total += exp(weights[j] - max);
    *logarithm = max + log(total);
    for (int j = 0; j < s->keys; ++j) {
        const double weight = exp(weights[j] - *logarithm);
        if (weight > 0) {
            int page, place;
            sdpa_place(p, b, j, &page, &place);
            entropy -= weight * log(weight);
            for (int e = 0; e < s->value_size; ++e) dst[e] += weight * sdpa_at(&p->v, page, g, place, e);
        }
        weights[j] = weight;
    }
    return entropy;
}

/* Executes with the first `count` arguments and those of the options. */
static inline norm_status_t sdpa_execute(const sdpa_t *p, norm_primitive_desc_t pd, norm_engine_t engine,
        norm_stream_t stream, int count, const norm_exec_arg_t *own) {
    norm_exec_arg_t args[20];
    norm_memory_t made[4] = {NULL, NULL, NULL, NULL};
    const struct {
        unsigned flag;
        int id, count;
        norm_data_type_t type;
        const void *data;
    } more[] = {{norm_sdpa_sinks, NORM_ARG_SINKS, p->s.heads, norm_f32, p->sinks},
            {norm_sdpa_alibi, NORM_ARG_ALIBI_SLOPES, p->s.heads, norm_f32, p->slopes},
            {norm_sdpa_query_lengths, NORM_ARG_QUERY_LENGTHS, p->s.batch, norm_s32, p->query_lengths},
            {norm_sdpa_key_lengths, NORM_ARG_KEY_LENGTHS, p->s.batch, norm_s32, p->key_lengths}};
    for (int i = 0; i < count; ++i) args[i] = own[i];
    for (int i = 0; i < 4; ++i) {
        if (!sdpa_has(p, more[i].flag)) continue;
        norm_memory_desc_t desc = NULL;
        const norm_dim_t dims[] = {more[i].count}, one[] = {1};
        MUST(norm_memory_desc_create_with_strides(&desc, 1, dims, more[i].type, one));
        MUST(norm_memory_create(&made[i], desc, engine, (void *)(size_t)more[i].data));
        MUST(norm_memory_desc_destroy(desc));
        args[count].arg = more[i].id;
        args[count++].memory = made[i];
    }
    norm_primitive_t primitive = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    const norm_status_t status = norm_primitive_execute(primitive, stream, count, args);
    MUST(norm_primitive_destroy(primitive));
    for (int i = 0; i < 4; ++i) MUST(norm_memory_destroy(made[i]));
    return status;
}

static inline norm_status_t sdpa_execute_forward(
        sdpa_t *p, norm_primitive_desc_t pd, norm_engine_t engine, norm_stream_t stream) {
    norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, p->q.memory}, {NORM_ARG_KEYS, p->k.memory},
            {NORM_ARG_VALUES, p->v.memory}, {NORM_ARG_DST, p->dst.memory},
            {NORM_ARG_WORKSPACE, p->stats.memory}, {NORM_ARG_ENTROPY, p->entropy.memory},
            {NORM_ARG_ATTN_MASK, p->mask.memory}, {NORM_ARG_PAGE_TABLE, p->table.memory}};
    const int count = p->s.page ? 8 : p->s.mask ? 7 : 6;
    if (p->s.page && !p->s.mask) args[6] = args[7];
    return sdpa_execute(p, pd, engine, stream, p->s.page && !p->s.mask ? 7 : count, args);
}

#endif
