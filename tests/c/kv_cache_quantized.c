/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * KV caches of s8 and f8_e4m3: every token of a head is quantized with its own scale. Attention
 * through any kind of cache has the bits of attention over plain tensors with the same scales.
 */
#include "kv_cache.h"
#include "refused.h"

static const norm_data_type_t quantized_types[] = {norm_s8, norm_f8_e4m3};
static const norm_data_type_t input_types[] = {norm_f32, norm_bf16, norm_f16};

/* Keys, values, table, scales of keys, scales of values. */
typedef struct {
    const unsigned char *keys, *values;
    const int32_t *table;
    const float *scales[2];
    norm_dim_t page;
} pages_t;

static pages_t pages_of(norm_kv_cache_t cache, int layer, norm_dim_t sequence) {
    norm_exec_arg_t args[6];
    void *data[6];
    int nargs = 6;
    MUST(norm_kv_cache_get_arguments(cache, layer, 1, &sequence, &nargs, args));
    EXPECT(nargs == 6 && args[4].arg == (NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS)
            && args[5].arg == (NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES));
    for (int i = 0; i < 6; ++i) MUST(norm_memory_get_data_handle(args[i].memory, &data[i]));
    const pages_t pages = {data[0], data[1], data[2], {data[4], data[5]}, stats_of(cache).page_size};
    return pages;
}

/* The index of a token of a head. */
static size_t place_of(const pages_t *pages, int heads, int head, int token) {
    const norm_dim_t page = pages->table[token / pages->page];
    return (size_t)((page * heads + head) * pages->page + token % pages->page);
}

/* Whether the tokens from `from` on are in the cache as the formula has them. */
static int stored_as_told(norm_kv_cache_t cache, norm_dim_t sequence, int b, int from) {
    norm_dim_t length = 0;
    MUST(norm_kv_cache_get_length(cache, sequence, &length));
    int same = 1;
    for (int layer = 0; layer < LAYERS; ++layer) {
        const story_t *s = &stories[b][layer];
        const pages_t pages = pages_of(cache, layer, sequence);
        for (int token = from; token < length; ++token)
            for (int head = 0; head < GROUPS; ++head) {
                const size_t at = place_of(&pages, GROUPS, head, token);
                const size_t row = (size_t)head * LENGTH + (size_t)token;
                same &= memcmp(pages.keys + at * KEY, s->codes[0].data + row * KEY, KEY) == 0;
                same &= memcmp(pages.values + at * VALUE, s->codes[1].data + row * VALUE, VALUE) == 0;
                for (int i = 0; i < 2; ++i)
                    same &= memcmp(pages.scales[i] + at, s->scales[i].data + row * 4, 4) == 0;
            }
    }
    return same;
}

/* Elements times scales are as close to the numbers as possible. */
static void errors(void) {
    for (int i = 0; i < 2; ++i) {
        const story_t *s = &stories[0][0];
        const tensor_t *x = i == 0 ? &s->k : &s->v;
        int near = 1;
        for (size_t row = 0; row < x->rows; ++row) {
            const double scale = ((const float *)(const void *)s->scales[i].data)[row];
            for (size_t col = 0; col < x->cols; ++col) {
                const double value = tensor_get(x, row, col);
                const double off = fabs(tensor_get(&s->codes[i], row, col) * scale - value);
                const double allowed = quantized_to == norm_s8
                        ? scale / 2
                        : fmax(fabs(value) / 16, scale / 1024);
                near &= off <= allowed + 127 * scale * ldexp(1, -22);
            }
        }
        EXPECT(near);
    }
}

/* Steps of any size, in every kind of cache. */
static void bits_of_plain_tensors(void) {
    static const struct {
        norm_kv_cache_kind_t kind;
        int page, window, kept;
    } kinds[] = {{norm_kv_contiguous, 0, 0, 0}, {norm_kv_paged, 16, 0, 0},
            {norm_kv_ring, 16, WINDOW, 0}, {norm_kv_paged, 7, WINDOW, 0}, {norm_kv_ring, 3, WINDOW, 20}};
    static const int chunks[] = {1, 7, 64};
    const norm_dim_t ends[] = {LENGTH, 211, 7};
    const int before = norm_get_num_threads();
    for (int t = 0; t < 2; ++t)
        for (int k = emulated ? 2 : 0; k < (emulated ? 4 : 5); ++k) {
            if (emulated && k % 2 != t) continue;
            kept = kinds[k].kept, quantized_to = quantized_types[t];
            const norm_data_type_t type = input_types[(k + t) % 3];
            make_stories(type, kinds[k].window, 0);
            errors();
            for (int c = emulated ? 2 : 0; c < 3; ++c) {
                snprintf(expect_case, sizeof expect_case, "type %d, kind %d, chunk %d", t, k,
                        chunks[c]);
                MUST(norm_set_num_threads(emulated ? 1 : 1 + c));
                norm_kv_cache_t cache = make_cache(kinds[k].kind, quantized_to, kinds[k].page);
                steps_t steps = steps_make(cache, type, MOST, chunks[c], kinds[k].window);
                norm_dim_t sequences[MOST];
                for (int b = 0; b < MOST; ++b)
                    MUST(norm_kv_cache_new_sequence(cache, &sequences[b]));
                EXPECT(follow(&steps, sequences, ends));
                for (int b = 0; b < 2; ++b)
                    MUST(norm_kv_cache_truncate(cache, sequences[b], ends[b] - 1));
                EXPECT(follow(&steps, sequences, ends));
                for (int b = 0; b < MOST; ++b) {
                    const int first = kinds[k].kind == norm_kv_ring ? (int)ends[b] - WINDOW : 0;
                    EXPECT(stored_as_told(cache, sequences[b], b, first > 0 ? first : 0));
                }
                steps_free(&steps);
                MUST(norm_kv_cache_destroy(cache));
            }
            free_stories();
        }
    MUST(norm_set_num_threads(before));
    expect_case[0] = 0;
    kept = 0;
}

/* All tokens in one step. */
static void all_at_once(void) {
    const norm_dim_t ends[] = {LENGTH};
    for (int t = 0; t < (emulated ? 1 : 2); ++t) {
        norm_kv_cache_t cache = NULL;
        norm_dim_t sequence = 0;
        quantized_to = quantized_types[t];
        make_stories(norm_f32, emulated ? WINDOW : 0, 0);
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, quantized_to, LAYERS, GROUPS, KEY,
                VALUE, 1, LENGTH, LENGTH, 16, 0, 0, 0));
        poison(cache);
        steps_t steps = steps_make(cache, norm_f32, 1, LENGTH, emulated ? WINDOW : 0);
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        EXPECT(follow(&steps, &sequence, ends));
        EXPECT(stored_as_told(cache, sequence, 0, 0));
        steps_free(&steps);
        MUST(norm_kv_cache_destroy(cache));
        free_stories();
    }
}

/* A fork in the middle of a page: one page is copied, with its scales. */
static void forked(void) {
    static const norm_kv_cache_kind_t kinds[] = {norm_kv_contiguous, norm_kv_paged, norm_kv_ring};
    const norm_dim_t shared[] = {205}, ends[] = {230, 260, 206};
    for (int k = 0; k < 3; ++k) {
        const int ring = kinds[k] == norm_kv_ring;
        const int window = has_window(kinds[k]) ? WINDOW : 0;
        quantized_to = quantized_types[k % 2];
        make_stories(norm_f32, window, (int)shared[0]);
        norm_kv_cache_t cache = make_cache(kinds[k], quantized_to, k == 0 ? 0 : 16);
        steps_t alone = steps_make(cache, norm_f32, 1, 64, window);
        steps_t together = steps_make(cache, norm_f32, MOST, 7, window);
        norm_dim_t sequences[MOST];
        MUST(norm_kv_cache_new_sequence(cache, &sequences[0]));
        EXPECT(follow(&alone, sequences, shared));
        for (int b = 1; b < MOST; ++b) MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[b]));
        EXPECT(stats_of(cache).copied_pages == 0);
        EXPECT(follow(&together, sequences, ends));
        EXPECT(stats_of(cache).copied_pages == MOST - 1);
        for (int b = 0; b < MOST; ++b)
            EXPECT(stored_as_told(cache, sequences[b], b, ring ? (int)ends[b] - WINDOW : 0));
        steps_free(&alone);
        steps_free(&together);
        MUST(norm_kv_cache_destroy(cache));
        free_stories();
    }
}

/* Rows that cannot be divided by a scale, between others. */
static void special_rows(void) {
    enum { SIZE = 20, TOKENS = 9 };
    static const float specials[TOKENS] = {1, 0, NAN, INFINITY, -INFINITY, 1e-40f, -3.4e38f, 2e-36f, 2};
    const norm_dim_t dims[] = {1, 1, TOKENS, SIZE}, tokens[] = {TOKENS};
    for (int t = 0; t < 2; ++t) {
        norm_kv_cache_t cache = NULL;
        norm_dim_t sequence = 0;
        const norm_data_type_t type = quantized_types[t];
        tensor_t rows = tensor_make(norm_f32, 4, dims, NULL, engine);
        for (int token = 0; token < TOKENS; ++token) {
            const float most = specials[token], size = isfinite(most) ? most : 1;
            for (int i = 0; i < SIZE; ++i)
                tensor_set(&rows, (size_t)token, (size_t)i, size * cos(i * (token + 1)));
            ((float *)(void *)rows.data)[token * SIZE + 3] = most;
        }
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, type, 1, 1, SIZE, SIZE, 1, 64, 64,
                4, 0, 0, 0));
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        MUST(norm_kv_cache_write(cache, stream, 0, rows.memory, rows.memory));
        const pages_t pages = pages_of(cache, 0, sequence);
        for (int token = 0; token < TOKENS; ++token) {
            unsigned char wanted[SIZE];
            const size_t at = place_of(&pages, 1, 0, token);
            const float scale = quantize_row(type, (const float *)(const void *)rows.data + token * SIZE,
                    SIZE, wanted);
            const float found = pages.scales[0][at];
            snprintf(expect_case, sizeof expect_case, "type %d, token %d", t, token);
            EXPECT(memcmp(&pages.scales[0][at], &pages.scales[1][at], 4) == 0);
            EXPECT(memcmp(pages.keys + at * SIZE, pages.values + at * SIZE, SIZE) == 0);
            EXPECT(found == scale || (isnan(found) && isnan(scale)));
            EXPECT(token != 1 && token != 5 ? found != 1 : found == 1);
            EXPECT(isnan(found) == (token == 2) && isinf(found) == (token == 3 || token == 4));
            int same = 1, finite = 1;
            for (int i = 0; i < SIZE; ++i) {
                const unsigned char code = pages.keys[at * SIZE + (size_t)i];
                const double value = element_get(type, &code, 0);
                same &= isnan(value) ? element_get(type, &wanted[i], 0) != value : code == wanted[i];
                same &= isnan(value) == isnan(element_get(type, &wanted[i], 0));
                finite &= isfinite(value * found);
            }
            EXPECT(same && finite == (token < 2 || token > 4));
        }
        expect_case[0] = 0;
        tensor_free(&rows);
        MUST(norm_kv_cache_destroy(cache));
    }
}

/* Attention to a token with a NaN or an Inf gives NaN only for the queries that see it. */
static void seen_by_some(void) {
    enum { TOKENS = 9, BAD = 5 };
    const norm_dim_t tokens[] = {TOKENS};
    for (int i = 0; i < 8; ++i) {
        norm_kv_cache_t cache = NULL;
        norm_memory_desc_t keys = NULL, values = NULL, table = NULL;
        norm_primitive_t primitive = NULL;
        norm_dim_t sequence = 0;
        uint64_t state = 4;
        quantized_to = quantized_types[i % 2];
        tensor_t q = tokens_of(norm_f32, 1, HEADS, TOKENS, KEY);
        tensor_t k = tokens_of(norm_f32, 1, GROUPS, TOKENS, KEY);
        tensor_t v = tokens_of(norm_f32, 1, GROUPS, TOKENS, VALUE);
        tensor_t dst = tokens_of(norm_f32, 1, HEADS, TOKENS, VALUE);
        tensor_fill_random(&q, &state, -2, 2);
        tensor_fill_random(&k, &state, -2, 2);
        tensor_fill_random(&v, &state, -2, 2);
        /* Only in the first group. */
        ((float *)(void *)row_of(i / 2 % 2 ? &k : &v, 0, 0, BAD))[3] = i < 4 ? NAN : INFINITY;
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, quantized_to, 1, GROUPS, KEY, VALUE,
                1, 32, 32, 4, 0, 0, 0));
        MUST(norm_kv_cache_get_descs(cache, 1, &keys, &values, &table, NULL));
        norm_primitive_desc_t pd = attention_desc(
                q.desc, keys, values, dst.desc, table, 0, norm_sdpa_key_lengths);
        MUST(norm_primitive_create(&primitive, pd));
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        MUST(norm_kv_cache_write(cache, stream, 0, k.memory, v.memory));
        norm_exec_arg_t args[8] = {{NORM_ARG_QUERIES, q.memory}, {NORM_ARG_DST, dst.memory}};
        int nargs = 6;
        MUST(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &nargs, args + 2));
        MUST(norm_primitive_execute(primitive, stream, 8, args));
        int right = 1;
        for (size_t row = 0; row < dst.rows; ++row) {
            const int sees = row / TOKENS < HEADS / GROUPS && row % TOKENS >= BAD;
            for (size_t col = 0; col < dst.cols; ++col)
                right &= sees ? isnan(tensor_get(&dst, row, col)) : isfinite(tensor_get(&dst, row, col));
        }
        snprintf(expect_case, sizeof expect_case, "case %d", i);
        EXPECT(right);
        expect_case[0] = 0;
        MUST(norm_primitive_destroy(primitive));
        MUST(norm_primitive_desc_destroy(pd));
        MUST(norm_memory_desc_destroy(keys));
        MUST(norm_memory_desc_destroy(values));
        MUST(norm_memory_desc_destroy(table));
        MUST(norm_kv_cache_destroy(cache));
        tensor_free(&q), tensor_free(&k), tensor_free(&v), tensor_free(&dst);
    }
}

/* Inputs of any type and strides, heads of any size, any number of threads. */
static void inputs(void) {
    enum { TOKENS = 130, HEADS_HERE = 3 };
    static const int sizes[] = {1, 17, 256, 300};
    const int before = norm_get_num_threads();
    uint64_t state = 9;
    for (int i = 0; i < 48; i += emulated ? 7 : 1) {
        const int size = sizes[i % 4], step = 1 + i / 4 % 2;
        const norm_dim_t heads = HEADS_HERE, tokens[] = {TOKENS};
        const norm_dim_t dims[] = {1, heads, TOKENS, size};
        const norm_dim_t strides[] = {1000, size * step, heads * size * step + 3, step};
        norm_kv_cache_t cache = NULL;
        norm_dim_t sequence = 0;
        tensor_t src = tensor_make(input_types[i / 8 % 3], 4, dims, strides, engine), codes, scales;
        quantized_to = quantized_types[i / 24];
        tensor_fill_random(&src, &state, -9, 9);
        quantize(&src, 0, &codes, &scales);
        MUST(norm_set_num_threads(emulated ? 1 : 1 + i % 3));
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, quantized_to, 2, heads, 1, size, 1,
                256, 256, 4, 0, 0, 0));
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        MUST(norm_kv_cache_write(cache, stream, 1, NULL, src.memory));
        /* Ends the step, whose keys are missing. */
        MUST(norm_kv_cache_truncate(cache, sequence, tokens[0]));
        const pages_t pages = pages_of(cache, 1, sequence);
        int same = 1;
        for (int row = 0; row < HEADS_HERE * TOKENS; ++row) {
            const size_t at = place_of(&pages, HEADS_HERE, row / TOKENS, row % TOKENS);
            const size_t bytes = (size_t)size;
            same &= memcmp(pages.values + at * bytes, codes.data + (size_t)row * bytes, bytes) == 0;
            same &= memcmp(pages.scales[1] + at, scales.data + (size_t)row * 4, 4) == 0;
        }
        snprintf(expect_case, sizeof expect_case, "case %d", i);
        EXPECT(same);
        expect_case[0] = 0;
        MUST(norm_kv_cache_destroy(cache));
        tensor_free(&src), tensor_free(&codes), tensor_free(&scales);
    }
    MUST(norm_set_num_threads(before));
}

/* The dimensions of scales, the bytes, and refusals. */
static void sizes_and_refusals(void) {
    const norm_dim_t scale_dims[2][4] = {{20, 3, 1, 4}, {20, 3, 4, 1}}, tokens[] = {2};
    for (int t = 0; t < 2; ++t) {
        norm_kv_cache_t cache = NULL, plain = NULL;
        norm_dim_t sequence = 0;
        norm_exec_arg_t args[6];
        int nargs = 0;
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, quantized_types[t], 2, 3, 16, 24, 3,
                64, 16, 4, 20, 0, 0));
        MUST(norm_kv_cache_create(&plain, engine, norm_kv_paged, norm_f32, 2, 3, 16, 24, 3, 64, 16,
                4, 20, 0, 0));
        const norm_kv_cache_stats_t stats = stats_of(cache), wide = stats_of(plain);
        EXPECT(stats.page_bytes == 2 * 4 * 3 * (16 + 24 + 4 + 4));
        EXPECT(wide.page_bytes == 2 * 4 * 3 * 4 * (16 + 24));
        /* Areas begin at cache lines. */
        EXPECT(wide.bytes - stats.bytes == 20 * (wide.page_bytes - stats.page_bytes));
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        MUST(norm_kv_cache_get_arguments(cache, 1, 1, &sequence, &nargs, NULL));
        EXPECT(nargs == 6);
        nargs = 5;
        INVALID("nargs", norm_kv_cache_get_arguments, (cache, 1, 1, &sequence, &nargs, args));
        nargs = 6;
        INVALID("layer", norm_kv_cache_get_arguments, (cache, 1, 1, &sequence, &nargs, args));
        MUST(norm_kv_cache_extend(cache, 0, &sequence, tokens, 0));
        MUST(norm_kv_cache_get_arguments(cache, 1, 1, &sequence, &nargs, args));
        for (int i = 0; i < 2; ++i) {
            const_norm_memory_desc_t desc = NULL;
            const norm_dims_t *dims = NULL;
            norm_data_type_t type = norm_data_type_undef;
            MUST(norm_memory_get_memory_desc(args[4 + i].memory, &desc));
            MUST(norm_memory_desc_query(desc, norm_query_dims, (void *)&dims));
            MUST(norm_memory_desc_query(desc, norm_query_data_type, &type));
            EXPECT(type == norm_f32 && memcmp(*dims, scale_dims[i], sizeof scale_dims[i]) == 0);
        }
        norm_memory_desc_t desc = UNTOUCHED, other = UNTOUCHED;
        nargs = 3;
        REFUSED(norm_unimplemented, "cache", norm_kv_cache_get_rope_arguments,
                (cache, 0, &nargs, args));
        EXPECT(strstr(norm_get_last_error(), "norm_kv_cache_write") != NULL && nargs == 3);
        REFUSED(norm_unimplemented, "rope_dst_desc", norm_kv_cache_get_descs,
                (cache, 1, &other, NULL, NULL, &desc));
        EXPECT(desc == UNTOUCHED && other == UNTOUCHED);
        nargs = 4;
        MUST(norm_kv_cache_get_arguments(plain, 1, 0, NULL, &nargs, args));
        EXPECT(nargs == 4);
        MUST(norm_kv_cache_destroy(plain));
        MUST(norm_kv_cache_destroy(cache));
    }
}

int main(int argc, char **argv) {
    emulated = argc == 2 && strcmp(argv[1], "emulated") == 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    bits_of_plain_tensors();
    all_at_once();
    forked();
    special_rows();
    seen_by_some();
    inputs();
    sizes_and_refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("kv_cache_quantized");
}
