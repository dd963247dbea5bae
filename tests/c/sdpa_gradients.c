/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attention backward: every option compared with the derivatives of the formula in double,
 * and the same bits from every implementation and at every address.
 */
#include "refused.h"
#include "sdpa.h"

static norm_engine_t engine;
static norm_stream_t stream;
static uint64_t random_state = 11;

typedef struct {
    tensor_t diff_dst, diff_q, diff_k, diff_v, diff_sinks;
} gradients_t;

static gradients_t gradients_make(const sdpa_t *p) {
    const setup_t *s = &p->s;
    const norm_data_type_t type = s->data_type ? s->data_type : norm_f32;
    const norm_dim_t heads[] = {s->heads};
    gradients_t g;
    g.diff_dst = sdpa_tokens(type, s->batch, s->heads, s->queries, s->value_size, 0, engine);
    g.diff_q = sdpa_tokens(type, s->batch, s->heads, s->queries, s->key_size, 0, engine);
    g.diff_k = sdpa_tokens(norm_f32, s->batch, s->groups, s->keys, s->key_size, 1, engine);
    g.diff_v = sdpa_tokens(norm_f32, s->batch, s->groups, s->keys, s->value_size, 0, engine);
    g.diff_sinks = tensor_make(norm_f32, 1, heads, NULL, engine);
    tensor_fill_random(&g.diff_dst, &random_state, -2, 2);
    return g;
}

static void gradients_free(gradients_t *g) {
    tensor_t *all[] = {&g->diff_dst, &g->diff_q, &g->diff_k, &g->diff_v, &g->diff_sinks};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) tensor_free(all[i]);
}

static void backward(norm_primitive_desc_t *pd, const sdpa_t *p, const gradients_t *g) {
    MUST(norm_sdpa_backward_primitive_desc_create(pd, engine, g->diff_q.desc, g->diff_k.desc,
            g->diff_v.desc, g->diff_dst.desc, p->q.desc, p->k.desc, p->v.desc, p->dst.desc,
            p->mask.desc, NULL, p->s.mask_type, p->s.window_kind ? p->s.window_kind : norm_window_none,
            p->s.window, p->s.first_keys, p->scale, p->s.soft_cap, p->s.flags, NULL, NULL));
}

static norm_status_t execute(const sdpa_t *p, const gradients_t *g, norm_primitive_desc_t pd) {
    const norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, p->q.memory}, {NORM_ARG_KEYS, p->k.memory},
            {NORM_ARG_VALUES, p->v.memory}, {NORM_ARG_DST, p->dst.memory},
            {NORM_ARG_WORKSPACE, p->stats.memory}, {NORM_ARG_DIFF_DST, g->diff_dst.memory},
            {NORM_ARG_DIFF_QUERIES, g->diff_q.memory}, {NORM_ARG_DIFF_KEYS, g->diff_k.memory},
            {NORM_ARG_DIFF_VALUES, g->diff_v.memory}, {NORM_ARG_DIFF_SINKS, g->diff_sinks.memory},
            {NORM_ARG_ATTN_MASK, p->mask.memory}};
    return sdpa_execute(p, pd, engine, stream, p->s.mask ? 11 : 10, args);
}

static double *zeros(const tensor_t *t) { return calloc(t->rows * t->cols + 1, sizeof(double)); }

static void compare(const tensor_t *t, const double *want, const char *what) {
    int wrong = 0;
    for (size_t i = 0; i < t->rows; ++i)
        for (size_t j = 0; j < t->cols; ++j)
            wrong += !(fabs(tensor_get(t, i, j) - want[i * t->cols + j]) <= 1e-4);
    if (!EXPECT(wrong == 0)) fprintf(stderr, "%s: %d wrong\n", what, wrong);
}

static void against_the_formula(const sdpa_t *p, const gradients_t *gradients) {
    const setup_t *s = &p->s;
    double *q = zeros(&gradients->diff_q), *k = zeros(&gradients->diff_k);
    double *v = zeros(&gradients->diff_v), *sinks = zeros(&gradients->diff_sinks);
    double *weights = malloc(sizeof(double) * (size_t)(s->keys + 1));
    double *dst = malloc(sizeof(double) * (size_t)(s->value_size + 1));
    for (int b = 0; b < s->batch; ++b)
        for (int h = 0; h < s->heads; ++h)
            for (int i = 0; i < sdpa_queries(p, b); ++i) {
                const int g = h / (s->heads / s->groups);
                const int row = (b * s->heads + h) * s->queries + i;
                double logarithm, delta = 0;
                sdpa_row(p, b, h, i, weights, dst, &logarithm);
                for (int e = 0; e < s->value_size; ++e)
                    delta += dst[e] * sdpa_at(&gradients->diff_dst, b, h, i, e);
                if (sdpa_has(p, norm_sdpa_sinks) && p->sinks[h] != -INFINITY)
                    sinks[h] -= exp(p->sinks[h] - logarithm) * delta;
                for (int j = 0; j < sdpa_keys(p, b); ++j) {
                    if (weights[j] == 0) continue;
                    double dot = 0, qk = 0;
                    for (int e = 0; e < s->value_size; ++e) {
                        const double diff = sdpa_at(&gradients->diff_dst, b, h, i, e);
                        dot += diff * sdpa_at(&p->v, b, g, j, e);
                        v[((b * s->groups + g) * s->keys + j) * s->value_size + e] += weights[j] * diff;
                    }
                    for (int d = 0; d < s->key_size; ++d)
                        qk += p->scale * sdpa_at(&p->q, b, h, i, d) * sdpa_at(&p->k, b, g, d, j);
                    double ds = weights[j] * (dot - delta);
                    if (s->soft_cap > 0) ds *= 1 - pow(tanh(qk / s->soft_cap), 2);
                    for (int d = 0; d < s->key_size; ++d) {
                        q[row * s->key_size + d] += p->scale * ds * sdpa_at(&p->k, b, g, d, j);
                        k[((b * s->groups + g) * s->key_size + d) * s->keys + j]
                                += p->scale * ds * sdpa_at(&p->q, b, h, i, d);
                    }
                }
            }
    compare(&gradients->diff_q, q, "diff_queries");
    compare(&gradients->diff_k, k, "diff_keys");
    compare(&gradients->diff_v, v, "diff_values");
    if (sdpa_has(p, norm_sdpa_sinks)) compare(&gradients->diff_sinks, sinks, "diff_sinks");
    free(q), free(k), free(v), free(sinks), free(weights), free(dst);
}

/* Compares all implementations with the formula and with each other's bits. */
static void check_made(sdpa_t *made, gradients_t *gradients, const char *name, int has_formula) {
    sdpa_t p = *made;
    gradients_t g = *gradients;
    norm_primitive_desc_t pd = NULL;
    MUST(sdpa_forward(&pd, &p, engine));
    MUST(sdpa_execute_forward(&p, pd, engine, stream));
    MUST(norm_primitive_desc_destroy(pd));
    backward(&pd, &p, &g);
    tensor_t *outputs[] = {&g.diff_q, &g.diff_k, &g.diff_v, &g.diff_sinks};
    unsigned char *first[4] = {NULL, NULL, NULL, NULL};
    do {
        const char *implementation = "";
        MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, (void *)&implementation));
        snprintf(expect_case, sizeof expect_case, "%s, %s", name, implementation);
        for (int i = 0; i < 4; ++i) memset(outputs[i]->data, TENSOR_FILL, outputs[i]->bytes);
        if (!EXPECT(execute(&p, &g, pd) == norm_success)) break;
        if (first[0] == NULL && has_formula) against_the_formula(&p, &g);
        for (int i = 0; i < 4; ++i) {
            if (first[i] == NULL) {
                first[i] = malloc(outputs[i]->bytes + 1);
                memcpy(first[i], outputs[i]->data, outputs[i]->bytes);
            }
            EXPECT(memcmp(first[i], outputs[i]->data, outputs[i]->bytes) == 0);
        }
        const tensor_t *inputs[] = {&p.q, &p.k, &p.v, &p.dst, &g.diff_dst};
        unsigned char *odd[5];
        for (int i = 0; i < 5; ++i) odd[i] = tensor_odd(inputs[i]);
        EXPECT(execute(&p, &g, pd) == norm_success);
        for (int i = 0; i < 4; ++i) EXPECT(memcmp(first[i], outputs[i]->data, outputs[i]->bytes) == 0);
        for (int i = 0; i < 5; ++i) tensor_even(inputs[i], odd[i]);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 4; ++i) free(first[i]);
}

static void check(const setup_t *setup, const char *name) {
    snprintf(expect_case, sizeof expect_case, "%s", name);
    sdpa_t p = sdpa_make(setup, engine, &random_state);
    gradients_t g = gradients_make(&p);
    check_made(&p, &g, name, !setup->data_type);
    gradients_free(&g);
    sdpa_free(&p);
}

/* Sets numbers to powers of 2 times numbers of about 1, with exponents from `least` below `most`. */
static void fill_powers(tensor_t *t, int least, int most) {
    for (size_t row = 0; row < t->rows; ++row)
        for (size_t col = 0; col < t->cols; ++col) {
            const int power = least + (int)(random_bits(&random_state) % (unsigned)(most - least));
            tensor_set(t, row, col, ldexp(random_between(&random_state, -2, 2), power));
        }
}

/* Numbers of every size, including ones so small that products and their sums are subnormal, and values
 * that are not finite, in inputs and in the gradient of dst. The bits must be the same, although matrix
 * instructions treat subnormals as zeros. */
static void extremes(void) {
    static const struct { int inputs[2], gradient[2]; double one; } ranges[] = {
            {{-10, 1}, {-30, -10}, 0}, {{-2, 1}, {-60, -40}, 0}, {{-2, 1}, {-76, -68}, 0},
            {{-42, -36}, {-2, 1}, 0}, {{-2, 1}, {-140, 3}, 0}, {{-2, 1}, {-2, 1}, INFINITY},
            {{-2, 1}, {-2, 1}, NAN}};
    static const setup_t setups[] = {
            {.batch = 1, .heads = 2, .groups = 1, .queries = 70, .keys = 300, .key_size = 64, .value_size = 48},
            {.batch = 1, .heads = 2, .groups = 1, .queries = 133, .keys = 130, .key_size = 34, .value_size = 80,
                    .mask_type = norm_attn_mask_bottom_right, .flags = norm_sdpa_sinks},
    };
    for (int s = 0; s < 2; ++s)
        for (size_t r = 0; r < 2 * sizeof ranges / sizeof *ranges; ++r) {
            setup_t setup = setups[s];
            setup.data_type = norm_bf16;
            char name[60];
            snprintf(name, sizeof name, "extremes %d, range %d", s, (int)r);
            sdpa_t p = sdpa_make(&setup, engine, &random_state);
            gradients_t g = gradients_make(&p);
            const size_t range = r / 2;
            tensor_t *inputs[] = {&p.q, &p.k, &p.v};
            for (int i = 0; i < 3; ++i)
                fill_powers(inputs[i], ranges[range].inputs[0], ranges[range].inputs[1]);
            fill_powers(&g.diff_dst, ranges[range].gradient[0], ranges[range].gradient[1]);
            /* In a gradient or in a value. */
            tensor_t *odd = r % 2 ? &g.diff_dst : &p.v;
            if (ranges[range].one != 0) tensor_set(odd, odd->rows / 2, 3, ranges[range].one);
            check_made(&p, &g, name, 0);
            gradients_free(&g);
            sdpa_free(&p);
        }
}

/* A head whose sink is -Inf has none, and the gradient of that is 0 even if a row sees no key. */
static void sinks_of_unseen_rows(void) {
    setup_t setup = {.batch = 2, .heads = 2, .groups = 1, .queries = 20, .keys = 17, .key_size = 8,
            .value_size = 16, .mask_type = norm_attn_mask_bottom_right, .flags = norm_sdpa_sinks};
    snprintf(expect_case, sizeof expect_case, "sinks of unseen rows");
    sdpa_t p = sdpa_make(&setup, engine, &random_state);
    gradients_t g = gradients_make(&p);
    p.sinks[0] = -INFINITY;
    check_made(&p, &g, "sinks of unseen rows", 1);
    EXPECT(tensor_get(&g.diff_sinks, 0, 0) == 0);
    EXPECT(isfinite(tensor_get(&g.diff_sinks, 0, 1)) && tensor_get(&g.diff_sinks, 0, 1) != 0);
    gradients_free(&g);
    sdpa_free(&p);
}

#define LENGTHS (norm_sdpa_key_lengths | norm_sdpa_query_lengths)
#define EVERYTHING (norm_sdpa_sinks | norm_sdpa_alibi | LENGTHS)

int main(void) {
    static const setup_t setups[] = {
            {.batch = 1, .heads = 1, .groups = 1, .queries = 1, .keys = 1, .key_size = 1, .value_size = 1},
            {.flags = 0},
            {.mask_type = norm_attn_mask_top_left},
            {.mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 40},
            {.window_kind = norm_window_before_self, .window = 7},
            {.window_kind = norm_window_before_self, .window = 7, .first_keys = 3},
            {.soft_cap = 1.5f},
            {.flags = norm_sdpa_alibi, .mask_type = norm_attn_mask_bottom_right},
            {.flags = norm_sdpa_sinks},
            {.flags = LENGTHS, .mask_type = norm_attn_mask_bottom_right},
            {.mask_type = norm_attn_mask_buffer, .mask = norm_u8},
            {.mask_type = norm_attn_mask_bottom_right, .mask = norm_f32},
            {.flags = EVERYTHING, .mask = norm_u8, .mask_type = norm_attn_mask_bottom_right, .window_kind = norm_window_with_self, .window = 100, .soft_cap = 3},
            {.batch = 1, .heads = 3, .groups = 1, .queries = 150, .keys = 290, .key_size = 16, .value_size = 32, .mask_type = norm_attn_mask_top_left},
    };
    static const norm_data_type_t types[] = {norm_data_type_undef, norm_bf16, norm_f16};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (size_t i = 0; i < sizeof setups / sizeof *setups; ++i)
        for (int t = 0; t < 3; ++t) {
            setup_t s = setups[i];
            if (s.batch == 0) {
                s.batch = 2, s.heads = 4, s.groups = 2, s.queries = 21, s.keys = 270;
                s.key_size = 18, s.value_size = types[t] == norm_bf16 ? 12 : 11;
            }
            s.data_type = types[t];
            char name[40];
            snprintf(name, sizeof name, "setup %d type %d", (int)i, t);
            check(&s, name);
        }
    extremes();
    sinks_of_unseen_rows();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("sdpa_gradients");
}
