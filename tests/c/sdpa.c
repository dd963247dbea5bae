/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attention forward: every option against the formula in double, the same bits from
 * every implementation, tokens one by one and together, and what is refused.
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

/* All implementations: the formula, and one set of bits. */
static void check(const setup_t *setup, const char *name) {
    snprintf(expect_case, sizeof expect_case, "%s", name);
    sdpa_t p = sdpa_make(setup, engine, &random_state);
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
            if (!setup->data_type) against_the_formula(&p);
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
                s.key_size = 33, s.value_size = 20;
            }
            s.data_type = types[t];
            char name[40];
            snprintf(name, sizeof name, "setup %d type %d", (int)i, t);
            check(&s, name);
        }
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    every_option();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("sdpa");
}
