/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attention forward: every option compared with the formula in double, the same
 * bits from every implementation, for tokens one by one and together, and refusals.
 */
#include "refused.h"
#include "sdpa.h"

static norm_engine_t engine;
static norm_stream_t stream;
static uint64_t random_state = 7;

static void against_the_formula(const sdpa_t *p) {
    const setup_t *s = &p->s;
    double *weights = malloc(sizeof(double) * (size_t)(s->keys + 1));
    double *dst = malloc(sizeof(double) * (size_t)(s->value_size + 1));
    for (int b = 0; b < s->batch; ++b)
        for (int h = 0; h < s->heads; ++h) {
            double entropy = 0;
            for (int i = 0; i < s->queries; ++i) {
                double logarithm;
                const size_t row = (size_t)((b * s->heads + h) * s->queries + i);
                entropy += sdpa_row(p, b, h, i, weights, dst, &logarithm);
                for (int e = 0; e < s->value_size; ++e)
                    EXPECT(fabs(tensor_get(&p->dst, row, (size_t)e) - dst[e]) <= 2e-5);
                const double found = tensor_get(&p->stats, row, 0);
                EXPECT(found == logarithm || fabs(found - logarithm) <= 1e-5);
            }
            const int queries = sdpa_queries(p, b);
            if (sdpa_has(p, norm_sdpa_entropy))
                EXPECT(fabs(tensor_get(&p->entropy, (size_t)b, (size_t)h) - (queries ? entropy / queries : 0)) <= 1e-5);
        }
    free(weights);
    free(dst);
}

/* Compares all implementations with the formula and with each other's bits. */
static void check_made(sdpa_t *made, const char *name, int has_formula) {
    sdpa_t p = *made;
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    unsigned char *first = NULL, *logarithms = NULL, *entropies = NULL;
    do {
        const char *implementation = "";
        MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, (void *)&implementation));
        snprintf(expect_case, sizeof expect_case, "%s, %s", name, implementation);
        memset(p.dst.data, TENSOR_FILL, p.dst.bytes);
        memset(p.stats.data, TENSOR_FILL, p.stats.bytes);
        if (!EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success)) break;
        if (first == NULL) {
            if (has_formula) against_the_formula(&p);
            first = malloc(p.dst.bytes + 1);
            logarithms = malloc(p.stats.bytes + 1);
            entropies = malloc(p.entropy.bytes + 1);
            memcpy(first, p.dst.data, p.dst.bytes);
            memcpy(logarithms, p.stats.data, p.stats.bytes);
            memcpy(entropies, p.entropy.data, p.entropy.bytes);
        }
        EXPECT(memcmp(first, p.dst.data, p.dst.bytes) == 0);
        EXPECT(memcmp(logarithms, p.stats.data, p.stats.bytes) == 0);
        EXPECT(memcmp(entropies, p.entropy.data, p.entropy.bytes) == 0);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    free(first);
    free(logarithms);
    free(entropies);
}

static void check(const setup_t *setup, const char *name) {
    snprintf(expect_case, sizeof expect_case, "%s", name);
    sdpa_t p = sdpa_make(setup, engine, &random_state);
    check_made(&p, name, !setup->data_type);
    sdpa_free(&p);
}

#define LENGTHS (norm_sdpa_key_lengths | norm_sdpa_query_lengths)
#define EVERYTHING (norm_sdpa_sinks | norm_sdpa_alibi | LENGTHS | norm_sdpa_entropy)

static void every_option(void) {
    static const setup_t setups[] = {
            {.batch = 1, .heads = 1, .groups = 1, .queries = 1, .keys = 1, .key_size = 1, .value_size = 1},
            {.batch = 2, .heads = 4, .groups = 2, .queries = 37, .keys = 300, .key_size = 33, .value_size = 20},
            {.mask_type = norm_attn_mask_top_left},
            {.mask_type = norm_attn_mask_bottom_right},
            {.mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 40},
            {.mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_before_self, .window = 0},
            {.window_kind = norm_window_before_self, .window = 7},
            {.window_kind = norm_window_before_self, .window = 7, .first_keys = 4},
            {.mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 20, .first_keys = 19},
            {.flags = EVERYTHING, .mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 9, .first_keys = 270},
            {.soft_cap = 1.5f},
            {.flags = norm_sdpa_alibi, .mask_type = norm_attn_mask_bottom_right},
            {.flags = norm_sdpa_sinks},
            {.flags = LENGTHS},
            {.flags = LENGTHS, .mask_type = norm_attn_mask_bottom_right},
            {.flags = norm_sdpa_entropy},
            {.mask_type = norm_attn_mask_buffer, .mask = norm_f32},
            {.mask_type = norm_attn_mask_buffer, .mask = norm_u8},
            {.mask_type = norm_attn_mask_bottom_right, .mask = norm_f16},
            {.mask_type = norm_attn_mask_top_left, .mask = norm_bf16},
            {.page = 12, .keys = 300},
            {.page = 50, .keys = 300, .flags = EVERYTHING, .mask_type = norm_attn_mask_bottom_right, .soft_cap = 2},
            {.flags = EVERYTHING, .mask = norm_u8, .mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 100, .soft_cap = 3},
            {.batch = 1, .heads = 7, .groups = 1, .queries = 1, .keys = 700, .key_size = 64, .value_size = 64},
            {.batch = 1, .heads = 2, .groups = 2, .queries = 130, .keys = 130, .key_size = 16, .value_size = 48, .mask_type = norm_attn_mask_top_left},
    };
    static const norm_data_type_t types[] = {norm_data_type_undef, norm_bf16, norm_f16};
    for (size_t i = 0; i < sizeof setups / sizeof *setups; ++i)
        for (int t = 0; t < 3; ++t) {
            setup_t s = setups[i];
            if (s.batch == 0) {
                s.batch = 2, s.heads = 4, s.groups = 2, s.queries = 21, s.keys = 300;
                s.key_size = types[t] == norm_bf16 ? 34 : 33, s.value_size = 20;
            }
            s.data_type = types[t];
            char name[40];
            snprintf(name, sizeof name, "setup %d type %d", (int)i, t);
            check(&s, name);
        }
}

/* Numbers of every size, including ones so small that products and their sums are subnormal or lose
 * bits, and values that are not finite. The bits must be the same, although matrix instructions
 * treat subnormals as zeros. */
static void extremes(void) {
    static const struct { int least, most; double one; } ranges[]
            = {{-10, 1, 0}, {-57, -55, 0}, {-140, 3, 0}, {-74, -70, 0}, {-2, 1, INFINITY}, {-2, 1, NAN}};
    static const setup_t setups[] = {
            {.batch = 1, .heads = 2, .groups = 1, .queries = 40, .keys = 300, .key_size = 64, .value_size = 48},
            {.batch = 2, .heads = 2, .groups = 2, .queries = 50, .keys = 47, .key_size = 34, .value_size = 18,
                    .mask_type = norm_attn_mask_bottom_right},
            {.batch = 1, .heads = 2, .groups = 1, .queries = 33, .keys = 300, .key_size = 72, .value_size = 80,
                    .page = 10, .mask_type = norm_attn_mask_top_left, .flags = EVERYTHING},
    };
    static const norm_data_type_t types[] = {norm_bf16, norm_f16};
    for (int s = 0; s < 3; ++s)
        for (int range = 0; range < 6; ++range)
            for (int t = 0; t < 2; ++t) {
                setup_t setup = setups[s];
                if (types[t] == norm_f16 && range % 3 < 2) continue;
                setup.data_type = types[t];
                char name[60];
                snprintf(name, sizeof name, "extremes %d, range %d, type %d", s, range, t);
                sdpa_t p = sdpa_make(&setup, engine, &random_state);
                tensor_t *tensors[] = {&p.q, &p.k, &p.v};
                for (int i = 0; i < 3; ++i)
                    for (size_t row = 0; row < tensors[i]->rows; ++row)
                        for (size_t col = 0; col < tensors[i]->cols; ++col) {
                            const double x = random_between(&random_state, -2, 2);
                            const int span = ranges[range].most - ranges[range].least;
                            const int power = ranges[range].least + (int)(random_bits(&random_state) % (unsigned)span);
                            tensor_set(tensors[i], row, col, ldexp(x, power));
                        }
                if (ranges[range].one != 0) tensor_set(&p.v, p.v.rows / 2, 3, ranges[range].one);
                check_made(&p, name, 0);
                sdpa_free(&p);
            }
}

/* One token alone, tokens in chunks, and all at once: the same bits. */
static void chunks(norm_data_type_t type) {
    enum { TOKENS = 300, BEFORE = 13 };
    static const int lengths[] = {1, 7, 64, TOKENS};
    setup_t setup = {.batch = 1, .heads = 6, .groups = 2, .queries = TOKENS, .keys = TOKENS + BEFORE,
            .key_size = 24, .value_size = 32, .mask_type = norm_attn_mask_bottom_right,
            .soft_cap = 4, .flags = norm_sdpa_sinks, .data_type = type};
    sdpa_t whole = sdpa_make(&setup, engine, &random_state);
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &whole, engine));
    MUST(sdpa_execute_forward(&whole, pd, engine, stream));
    MUST(norm_primitive_desc_destroy(pd));
    const size_t token = whole.dst.bytes / TOKENS, stats = TOKENS * sizeof(float);
    for (int l = 0; l < 4; ++l)
        for (int first = 0; first < TOKENS; first += lengths[l]) {
            const int count = first + lengths[l] < TOKENS ? lengths[l] : TOKENS - first;
            snprintf(expect_case, sizeof expect_case, "%d tokens from %d on, type %d", count, first, type);
            if (lengths[l] == 1 && first % 37 > 2) continue;
            setup_t one = setup;
            one.queries = count;
            one.keys = BEFORE + first + count;
            sdpa_t part = sdpa_make(&one, engine, &random_state);
            memcpy(part.q.data, whole.q.data + (size_t)first * (whole.q.bytes / TOKENS), part.q.bytes);
            memcpy(part.k.data, whole.k.data, part.k.bytes);
            memcpy(part.v.data, whole.v.data, part.v.bytes);
            memcpy(part.sinks, whole.sinks, sizeof part.sinks);
            MUST(sdpa_forward(&pd, &part, engine));
            MUST(sdpa_execute_forward(&part, pd, engine, stream));
            EXPECT(memcmp(part.dst.data, whole.dst.data + (size_t)first * token, part.dst.bytes) == 0);
            for (int h = 0; h < setup.heads; ++h)
                EXPECT(memcmp(part.stats.data + (size_t)(h * count) * sizeof(float),
                               whole.stats.data + (size_t)h * stats + (size_t)first * sizeof(float),
                               (size_t)count * sizeof(float)) == 0);
            MUST(norm_primitive_desc_destroy(pd));
            sdpa_free(&part);
        }
    sdpa_free(&whole);
}

/* However large the value of a key with weight 0 is, it has no effect. */
static void hidden_values(void) {
    setup_t setup = {.batch = 1, .heads = 2, .groups = 1, .queries = 20, .keys = 20, .key_size = 8,
            .value_size = 16, .mask_type = norm_attn_mask_top_left};
    snprintf(expect_case, sizeof expect_case, "hidden values");
    sdpa_t p = sdpa_make(&setup, engine, &random_state);
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    MUST(sdpa_execute_forward(&p, pd, engine, stream));
    const size_t seen = p.dst.bytes / 20 * 19;
    unsigned char *before = malloc(seen);
    memcpy(before, p.dst.data, seen);
    for (int e = 0; e < 16; ++e) tensor_set(&p.v, 19, (size_t)e, e % 2 ? INFINITY : NAN);
    for (int d = 0; d < 8; ++d) tensor_set(&p.k, (size_t)d, 19, NAN);
    do {
        MUST(sdpa_execute_forward(&p, pd, engine, stream));
        EXPECT(memcmp(before, p.dst.data, seen) == 0);
        EXPECT(isnan(sdpa_at(&p.dst, 0, 0, 19, 0)));
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    free(before);
    sdpa_free(&p);
}

static norm_memory_desc_t dense(norm_data_type_t type, norm_dim_t a, norm_dim_t b, norm_dim_t c, norm_dim_t d) {
    norm_memory_desc_t desc = NULL;
    const norm_dim_t dims[] = {a, b, c, d};
    MUST(norm_memory_desc_create_with_tag(&desc, 4, dims, type, norm_abcd));
    return desc;
}

/* Quantized keys and values: wrong scales, and tensors that cannot have any. */
static void quantized_refusals(norm_memory_desc_t q, norm_memory_desc_t dst) {
    norm_primitive_desc_t pd = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    norm_memory_desc_t bytes = dense(norm_s8, 2, 2, 16, 9), eighths = dense(norm_f8_e4m3, 2, 2, 16, 9),
                       keys = dense(norm_f32, 2, 2, 16, 9), values = dense(norm_f32, 2, 2, 9, 5),
                       fives = dense(norm_f8_e5m2, 2, 2, 16, 9);
#define QUANTIZED(k) \
    (&pd, engine, norm_forward_inference, q, k, values, dst, NULL, NULL, norm_attn_mask_undef, \
            norm_window_none, 0, 0, 1, 0, 0, attr)
    INVALID("key_desc", norm_sdpa_forward_primitive_desc_create, QUANTIZED(bytes));
    REFUSED(norm_unimplemented, "key_desc", norm_sdpa_forward_primitive_desc_create, QUANTIZED(fives));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 2));
    INVALID("key_desc", norm_sdpa_forward_primitive_desc_create, QUANTIZED(keys));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 15));
    REFUSED(norm_unimplemented, "key_desc", norm_sdpa_forward_primitive_desc_create, QUANTIZED(bytes));
    MUST(norm_primitive_attr_set_scales_v2(attr, NORM_ARG_KEYS, 2, 0, NULL, norm_bf16, 0));
    REFUSED(norm_unimplemented, "key_desc", norm_sdpa_forward_primitive_desc_create, QUANTIZED(bytes));
    MUST(norm_primitive_attr_destroy(attr));
    attr = NULL;
    EXPECT(pd == UNTOUCHED);
    MUST(norm_sdpa_forward_primitive_desc_create QUANTIZED(eighths));
    MUST(norm_primitive_desc_destroy(pd));
    norm_memory_desc_t descs[] = {bytes, eighths, keys, values, fives};
    for (size_t i = 0; i < sizeof descs / sizeof *descs; ++i) MUST(norm_memory_desc_destroy(descs[i]));
}

static void refusals(void) {
    norm_primitive_desc_t pd = UNTOUCHED;
    norm_memory_desc_t q = dense(norm_f32, 2, 4, 8, 16), k = dense(norm_f32, 2, 2, 16, 9),
                       v = dense(norm_f32, 2, 2, 9, 5), dst = dense(norm_f32, 2, 4, 8, 5);
    norm_memory_desc_t three = dense(norm_f32, 2, 3, 16, 9), depth = dense(norm_f32, 2, 2, 17, 9),
                       fewer = dense(norm_f32, 2, 2, 8, 5), half = dense(norm_f16, 2, 2, 16, 9),
                       mask = dense(norm_u8, 1, 1, 8, 9), wrong = dense(norm_u8, 1, 3, 8, 9),
                       rows = dense(norm_f32, 2, 2, 9, 16);
    snprintf(expect_case, sizeof expect_case, "refusals");
#define CREATE(kind, q, k, v, dst, mask, type, window_kind, window, scale, cap, flags) \
    (&pd, engine, kind, q, k, v, dst, mask, NULL, type, window_kind, window, 0, scale, cap, flags, NULL)
#define BAD(parameter, ...) INVALID(parameter, norm_sdpa_forward_primitive_desc_create, CREATE(__VA_ARGS__))
    const norm_prop_kind_t kind = norm_forward_inference;
    const norm_attn_mask_type_t none = norm_attn_mask_undef;
    const norm_attn_window_t all = norm_window_none;
    BAD("prop_kind", norm_backward, q, k, v, dst, NULL, none, all, 0, 1, 0, 0);
    BAD("query_desc", kind, NULL, k, v, dst, NULL, none, all, 0, 1, 0, 0);
    BAD("query_desc", kind, q, three, v, dst, NULL, none, all, 0, 1, 0, 0);
    BAD("key_desc", kind, q, depth, v, dst, NULL, none, all, 0, 1, 0, 0);
    BAD("key_desc", kind, q, rows, v, dst, NULL, none, all, 0, 1, 0, 0);
    EXPECT(strstr(norm_get_last_error(), "key_desc is B x G x D x T") != NULL);
    BAD("value_desc", kind, q, k, fewer, dst, NULL, none, all, 0, 1, 0, 0);
    BAD("dst_desc", kind, q, k, v, q, NULL, none, all, 0, 1, 0, 0);
    BAD("mask_desc", kind, q, k, v, dst, NULL, norm_attn_mask_buffer, all, 0, 1, 0, 0);
    BAD("mask_type", kind, q, k, v, dst, mask, none, all, 0, 1, 0, 0);
    BAD("mask_desc", kind, q, k, v, dst, wrong, norm_attn_mask_buffer, all, 0, 1, 0, 0);
    BAD("mask_type", kind, q, k, v, dst, NULL, (norm_attn_mask_type_t)7, all, 0, 1, 0, 0);
    BAD("window_kind", kind, q, k, v, dst, NULL, none, (norm_attn_window_t)7, 0, 1, 0, 0);
    BAD("window_kind", kind, q, k, v, dst, NULL, none, (norm_attn_window_t)0, 0, 1, 0, 0);
    EXPECT(strstr(norm_get_last_error(), "norm_window_none") != NULL);
    BAD("window", kind, q, k, v, dst, NULL, none, all, 3, 1, 0, 0);
    BAD("window", kind, q, k, v, dst, NULL, none, norm_window_with_self, 0, 1, 0, 0);
    BAD("window", kind, q, k, v, dst, NULL, none, norm_window_before_self, -1, 1, 0, 0);
    INVALID("first_keys", norm_sdpa_forward_primitive_desc_create,
            (&pd, engine, kind, q, k, v, dst, NULL, NULL, none, all, 0, 1, 1, 0, 0, NULL));
    INVALID("first_keys", norm_sdpa_forward_primitive_desc_create,
            (&pd, engine, kind, q, k, v, dst, NULL, NULL, none, norm_window_with_self, 3, -1, 1, 0, 0, NULL));
    BAD("scale", kind, q, k, v, dst, NULL, none, all, 0, INFINITY, 0, 0);
    BAD("soft_cap", kind, q, k, v, dst, NULL, none, all, 0, 1, -1, 0);
    BAD("flags", kind, q, k, v, dst, NULL, none, all, 0, 1, 0, 1);
    REFUSED(norm_unimplemented, "key_desc", norm_sdpa_forward_primitive_desc_create,
            CREATE(kind, q, half, v, dst, NULL, none, all, 0, 1, 0, 0));
    quantized_refusals(q, dst);
    /* Heads with too many elements, all in a buffer of one. */
    norm_memory_desc_t wide = NULL, wide_keys = NULL;
    const norm_dim_t dims[] = {2, 4, 8, 1LL << 50}, key_dims[] = {2, 2, 1LL << 50, 9}, zeros[4] = {0};
    MUST(norm_memory_desc_create_with_strides(&wide, 4, dims, norm_f32, zeros));
    MUST(norm_memory_desc_create_with_strides(&wide_keys, 4, key_dims, norm_f32, zeros));
    REFUSED(norm_unimplemented, "query_desc", norm_sdpa_forward_primitive_desc_create,
            CREATE(kind, wide, wide_keys, v, dst, NULL, none, all, 0, 1, 0, 0));
    MUST(norm_memory_desc_destroy(wide));
    MUST(norm_memory_desc_destroy(wide_keys));
    EXPECT(pd == UNTOUCHED);
    norm_memory_desc_t descs[] = {q, k, v, dst, three, depth, fewer, half, mask, wrong, rows};
    for (size_t i = 0; i < sizeof descs / sizeof *descs; ++i) MUST(norm_memory_desc_destroy(descs[i]));
}

/* Buffers at odd addresses change no bit. */
static void unaligned(void) {
    setup_t setup = {.batch = 2, .heads = 4, .groups = 2, .queries = 40, .keys = 300, .key_size = 64,
            .value_size = 32, .mask_type = norm_attn_mask_bottom_right};
    const int queries[] = {40, 2};
    for (int i = 0; i < 2; ++i) {
        setup.queries = queries[i];
        snprintf(expect_case, sizeof expect_case, "unaligned, %d queries", queries[i]);
        sdpa_t p = sdpa_make(&setup, engine, &random_state);
        norm_primitive_desc_t pd = NULL;
        MUST(sdpa_forward(&pd, &p, engine));
        do {
            EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success);
            unsigned char *aligned = malloc(p.dst.bytes), *odd[3];
            memcpy(aligned, p.dst.data, p.dst.bytes);
            memset(p.dst.data, TENSOR_FILL, p.dst.bytes);
            const tensor_t *inputs[] = {&p.q, &p.k, &p.v};
            for (int t = 0; t < 3; ++t) odd[t] = tensor_odd(inputs[t]);
            EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success);
            EXPECT(memcmp(aligned, p.dst.data, p.dst.bytes) == 0);
            for (int t = 0; t < 3; ++t) tensor_even(inputs[t], odd[t]);
            free(aligned);
        } while (norm_primitive_desc_next_impl(pd) == norm_success);
        MUST(norm_primitive_desc_destroy(pd));
        sdpa_free(&p);
    }
}

/* Page table entries before the windows of all queries are not read; the others are. */
static void unseen_pages(void) {
    setup_t setup = {.batch = 2, .heads = 2, .groups = 1, .queries = 3, .keys = 600, .key_size = 4,
            .value_size = 4, .page = 6, .mask_type = norm_attn_mask_bottom_right,
            .window_kind = norm_window_with_self, .window = 20, .first_keys = 7};
    snprintf(expect_case, sizeof expect_case, "unseen pages");
    sdpa_t p = sdpa_make(&setup, engine, &random_state);
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    do {
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success);
        unsigned char *all = malloc(p.dst.bytes);
        memcpy(all, p.dst.data, p.dst.bytes);
        /* The first query sees the keys from 578 on, and 0 to 6. */
        int32_t *table = (int32_t *)p.table.data, entries[200];
        memcpy(entries, table, sizeof entries);
        for (int i = 2; i < 96; ++i) table[i] = table[100 + i] = -1;
        memset(p.dst.data, TENSOR_FILL, p.dst.bytes);
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success);
        EXPECT(memcmp(all, p.dst.data, p.dst.bytes) == 0);
        const int wrong[] = {0, 1, 96, 99, 101, 196};
        for (int i = 0; i < 6; ++i) {
            table[wrong[i]] = -1;
            EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
            EXPECT(strstr(norm_get_last_error(), "PAGE_TABLE") != NULL);
            table[wrong[i]] = entries[wrong[i]];
        }
        table[50] = -2;
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
        memcpy(table, entries, sizeof entries);
        free(all);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    sdpa_free(&p);
}

/* Tables of a cache have -1 beyond the tokens of a sequence. If lengths were forgotten, the message
 * says so. */
static void forgotten_lengths(void) {
    setup_t setup = {.batch = 2, .heads = 2, .groups = 1, .queries = 3, .keys = 24, .key_size = 4,
            .value_size = 4, .page = 12};
    sdpa_t p = sdpa_make(&setup, engine, &random_state);
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    ((int32_t *)p.table.data)[3] = -1;
    EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
    EXPECT(strstr(norm_get_last_error(), "norm_sdpa_key_lengths") != NULL);
    MUST(norm_primitive_desc_destroy(pd));
    sdpa_free(&p);
}

/* Lengths and pages are checked before anything is written. */
static void wrong_integers(void) {
    setup_t setup = {.batch = 2, .heads = 2, .groups = 1, .queries = 3, .keys = 24, .key_size = 4,
            .value_size = 4, .page = 12, .flags = LENGTHS};
    snprintf(expect_case, sizeof expect_case, "wrong integers");
    sdpa_t p = sdpa_make(&setup, engine, &random_state);
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    memset(p.dst.data, TENSOR_FILL, p.dst.bytes);
    const int32_t lengths[] = {-1, 25}, pages[] = {-1, 6};
    for (int i = 0; i < 2; ++i) {
        p.key_lengths[0] = 24;
        p.key_lengths[1] = lengths[i];
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), "KEY_LENGTHS") != NULL);
        p.key_lengths[1] = 13;
        int32_t *last = (int32_t *)p.table.data + 3;
        const int32_t right = *last;
        *last = pages[i];
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), "PAGE_TABLE") != NULL);
        /* A page beyond the length is not read. */
        p.key_lengths[1] = 12;
        EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_success);
        *last = right;
        memset(p.dst.data, TENSOR_FILL, p.dst.bytes);
    }
    p.query_lengths[0] = 4;
    EXPECT(sdpa_execute_forward(&p, pd, engine, stream) == norm_invalid_arguments);
    for (size_t i = 0; i < p.dst.bytes; ++i) EXPECT(p.dst.data[i] == TENSOR_FILL);
    MUST(norm_primitive_desc_destroy(pd));
    sdpa_free(&p);
    forgotten_lengths();
}

/* Windows that follow the entropy of attention. */
static void adaptive_windows(void) {
    norm_dim_t window = 0;
    snprintf(expect_case, sizeof expect_case, "adaptive windows");
    MUST(norm_adaptive_window(norm_window_by_entropy_over_4, 100, 512, 4096, 2, 0, 0, 1, 0, &window));
    EXPECT(window == 2304);
    MUST(norm_adaptive_window(norm_window_by_length, 4096, 512, 4096, NAN, 0, window, 0.5, 100, &window));
    EXPECT(window == 2204);
    INVALID("strategy", norm_adaptive_window,
            ((norm_window_strategy_t)7, 100, 512, 4096, 2, 0, 0, 1, 0, &window));
    INVALID("max_window", norm_adaptive_window,
            (norm_window_fixed, 100, 512, 500, 2, 0, 0, 1, 0, &window));
    INVALID("window", norm_adaptive_window, (norm_window_fixed, 100, 1, 2, 2, 0, 0, 1, 0, NULL));
    EXPECT(window == 2204);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    every_option();
    extremes();
    chunks(norm_data_type_undef);
    chunks(norm_bf16);
    hidden_values();
    refusals();
    wrong_integers();
    unseen_pages();
    unaligned();
    adaptive_windows();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("sdpa");
}
