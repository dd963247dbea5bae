/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Gated activation: every function and packing, forward and backward, compared
 * with the formula in double; in place, strided, with limits. Also queries and
 * refusals.
 */
#include "levels.h"
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { ROWS = 7, COLS = 53, COUNT = ROWS * COLS };

static const norm_alg_kind_t functions[] = {norm_eltwise_swish, norm_eltwise_gelu_erf,
        norm_eltwise_gelu_tanh, norm_eltwise_relu, norm_eltwise_logistic, norm_eltwise_linear};
static const norm_gate_packing_t packings[]
        = {norm_gate_first, norm_up_first, norm_gate_interleaved, norm_gate_separate};

static double logistic(double x) { return 1 / (1 + exp(-x)); }

static double value(norm_alg_kind_t alg, double g, double alpha) {
    const double inner = 2 * sqrt(2 / 3.14159265358979323846) * (g + 0.044715 * g * g * g);
    switch (alg) {
    case norm_eltwise_swish: return g * logistic(alpha * g);
    case norm_eltwise_gelu_erf: return g * erfc(-g / sqrt(2)) / 2;
    case norm_eltwise_gelu_tanh: return g * logistic(inner);
    case norm_eltwise_relu: return g > 0 ? g : alpha * g;
    case norm_eltwise_logistic: return logistic(g);
    default: return alpha * g;
    }
}

/* By differences: at multiples of 1/8 other than 0 the functions are smooth enough. */
static double slope(norm_alg_kind_t alg, double g, double alpha) {
    const double h = 1e-4;
    return (8 * (value(alg, g + h, alpha) - value(alg, g - h, alpha))
                   - (value(alg, g + 2 * h, alpha) - value(alg, g - 2 * h, alpha)))
            / (12 * h);
}

static float gate[COUNT], up[COUNT], diff_dst[COUNT];
static double want_dst[COUNT], want_gate[COUNT], want_up[COUNT];

static void formula(norm_alg_kind_t alg, double alpha, double limit, double shift) {
    for (int i = 0; i < COUNT; ++i) {
        const double g = fmin(gate[i], limit), u = fmax(-limit, fmin(up[i], limit)) + shift;
        want_dst[i] = value(alg, g, alpha) * u;
        want_gate[i] = gate[i] > limit ? 0 : diff_dst[i] * u * slope(alg, g, alpha);
        want_up[i] = fabs(up[i]) > limit ? 0 : diff_dst[i] * value(alg, g, alpha);
    }
}

/* The column of an element of gate or up in a packed src. */
static int place(norm_gate_packing_t packing, int i, int is_up) {
    const int row = i / COLS * 2 * COLS, col = i % COLS;
    if (packing == norm_gate_interleaved) return row + 2 * col + is_up;
    return row + col + (is_up == (packing == norm_gate_first) ? COLS : 0);
}

static int wrong(const float *got, const double *want, norm_gate_packing_t packing, int is_up) {
    int count = 0;
    for (int i = 0; i < COUNT; ++i) {
        const double found = got[packing == norm_gate_separate ? i : place(packing, i, is_up)];
        count += !(fabs(found - want[i]) <= 2e-6 * (4 + fabs(want[i])));
    }
    return count;
}

typedef struct {
    int id;
    norm_memory_desc_t desc;
    void *data;
} given_t;

static norm_status_t execute(norm_primitive_desc_t pd, int count, const given_t *given) {
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[6];
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        args[i].arg = given[i].id;
        args[i].memory = NULL;
        MUST(norm_memory_create(&args[i].memory, given[i].desc, engine, given[i].data));
    }
    const norm_status_t status = norm_primitive_execute(primitive, stream, count, args);
    for (int i = 0; i < count; ++i) MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
    return status;
}

static norm_memory_desc_t desc_of(norm_dim_t cols, norm_dim_t stride) {
    norm_memory_desc_t desc = NULL;
    const norm_dim_t dims[] = {ROWS, cols}, strides[] = {stride, 1};
    MUST(norm_memory_desc_create_with_strides(&desc, 2, dims, norm_f32, strides));
    return desc;
}

static void both_ways(norm_alg_kind_t alg, norm_gate_packing_t packing, float alpha, float limit,
        float shift) {
    static float src[2 * COUNT], dst[COUNT], again[COUNT], diff_src[2 * COUNT], diff_up[COUNT];
    const int separate = packing == norm_gate_separate;
    snprintf(expect_case, sizeof expect_case, "%s, packing %x", norm_alg_kind2str(alg),
            (unsigned)packing);
    norm_memory_desc_t one = desc_of(COLS, COLS), all = desc_of(2 * COLS, 2 * COLS);
    norm_memory_desc_t src_desc = separate ? one : all, up_desc = separate ? one : NULL;
    norm_primitive_desc_t forward = NULL, backward = NULL;
    for (int i = 0; i < COUNT; ++i) {
        src[separate ? i : place(packing, i, 0)] = gate[i];
        if (!separate) src[place(packing, i, 1)] = up[i];
    }
    formula(alg, alpha, limit, shift);
    MUST(norm_gated_forward_primitive_desc_create(&forward, engine, norm_forward_inference, alg,
            packing, src_desc, up_desc, one, alpha, limit, shift, NULL));
    MUST(norm_gated_backward_primitive_desc_create(&backward, engine, alg, packing, src_desc,
            up_desc, one, src_desc, up_desc, one, alpha, limit, shift, forward, NULL));
    norm_alg_kind_t answered = norm_alg_kind_undef;
    norm_primitive_kind_t kind = norm_undefined_primitive;
    float factor = 0;
    MUST(norm_primitive_desc_query(forward, norm_query_alg_kind, 0, &answered));
    MUST(norm_primitive_desc_query(forward, norm_query_alpha_f32, 0, &factor));
    MUST(norm_primitive_desc_query(backward, norm_query_primitive_kind, 0, &kind));
    EXPECT(answered == alg && factor == alpha && kind == norm_gated);
    EXPECT(norm_primitive_desc_query_s32(forward, norm_query_num_of_inputs_s32, 0) == 1 + separate);
    EXPECT(norm_primitive_desc_query_s32(backward, norm_query_num_of_outputs_s32, 0)
            == 2 + separate);
    const_norm_memory_desc_t second = norm_primitive_desc_query_md(forward, norm_query_src_md, 1);
    EXPECT((norm_memory_desc_get_size(second) > 0) == separate);
    do {
        const given_t given[] = {{NORM_ARG_SRC, src_desc, src}, {NORM_ARG_DST, one, dst},
                {NORM_ARG_SRC_1, one, up}};
        memset(dst, TENSOR_FILL, sizeof dst);
        MUST(execute(forward, 2 + separate, given));
        EXPECT(wrong(dst, want_dst, norm_gate_separate, 0) == 0);
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    do {
        const given_t given[] = {{NORM_ARG_SRC, src_desc, src}, {NORM_ARG_DST, one, again},
                {NORM_ARG_DIFF_DST, one, diff_dst}, {NORM_ARG_DIFF_SRC, src_desc, diff_src},
                {NORM_ARG_SRC_1, one, up}, {NORM_ARG_DIFF_SRC_1, one, diff_up}};
        memset(diff_src, TENSOR_FILL, sizeof diff_src);
        memset(diff_up, TENSOR_FILL, sizeof diff_up);
        MUST(execute(backward, separate ? 6 : 4, given));
        EXPECT(wrong(diff_src, want_gate, packing, 0) == 0);
        EXPECT(wrong(separate ? diff_up : diff_src, want_up, packing, 1) == 0);
        EXPECT(memcmp(dst, again, sizeof dst) == 0);
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(one));
    MUST(norm_memory_desc_destroy(all));
}

/* dst may replace the gate, and gradients may replace src; other overlaps are refused. */
static void in_place(void) {
    static float src[2 * COUNT], kept[2 * COUNT];
    norm_memory_desc_t all = desc_of(2 * COLS, 2 * COLS), one = desc_of(COLS, COLS);
    norm_memory_desc_t half = desc_of(COLS, 2 * COLS);
    norm_primitive_desc_t forward = NULL, backward = NULL, dense = NULL;
    for (int i = 0; i < COUNT; ++i) {
        src[place(norm_gate_first, i, 0)] = gate[i];
        src[place(norm_gate_first, i, 1)] = up[i];
    }
    memcpy(kept, src, sizeof src);
    formula(norm_eltwise_swish, 1, INFINITY, 0);
    snprintf(expect_case, sizeof expect_case, "in place");
    MUST(norm_gated_forward_primitive_desc_create(&forward, engine, norm_forward_inference,
            norm_eltwise_swish, norm_gate_first, all, NULL, half, 1, INFINITY, 0, NULL));
    MUST(norm_gated_forward_primitive_desc_create(&dense, engine, norm_forward_inference,
            norm_eltwise_swish, norm_gate_first, all, NULL, one, 1, INFINITY, 0, NULL));
    MUST(norm_gated_backward_primitive_desc_create(&backward, engine, norm_eltwise_swish,
            norm_gate_first, all, NULL, one, all, NULL, NULL, 1, INFINITY, 0, NULL, NULL));
    do {
        const given_t given[] = {{NORM_ARG_SRC, all, src}, {NORM_ARG_DST, half, src}};
        MUST(execute(forward, 2, given));
        int bad = 0;
        for (int i = 0; i < COUNT; ++i) {
            bad += !(fabs(src[place(norm_gate_first, i, 0)] - want_dst[i])
                    <= 2e-6 * (4 + fabs(want_dst[i])));
            bad += src[place(norm_gate_first, i, 1)] != up[i];
        }
        EXPECT(bad == 0);
        memcpy(src, kept, sizeof src);
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    do {
        const given_t given[] = {{NORM_ARG_SRC, all, src}, {NORM_ARG_DIFF_DST, one, diff_dst},
                {NORM_ARG_DIFF_SRC, all, src}};
        MUST(execute(backward, 3, given));
        EXPECT(wrong(src, want_gate, norm_gate_first, 0) == 0);
        EXPECT(wrong(src, want_up, norm_gate_first, 1) == 0);
        memcpy(src, kept, sizeof src);
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    const given_t given[] = {{NORM_ARG_SRC, all, src}, {NORM_ARG_DST, one, src}};
    EXPECT(execute(dense, 2, given) == norm_invalid_arguments);
    EXPECT(strstr(norm_get_last_error(), "SRC and DST share a buffer") != NULL);
    EXPECT(memcmp(src, kept, sizeof src) == 0);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(dense));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(all));
    MUST(norm_memory_desc_destroy(half));
    MUST(norm_memory_desc_destroy(one));
}

/* Gates of every size. Only a NaN or infinite gate gives NaN. */
static void extremes(void) {
    float x[] = {-1e30f, -1e4f, -100, -1e-30f, 0, 1e-30f, 100, 1e30f, INFINITY, NAN};
    float ones[10], dst[10];
    const norm_dim_t dims[] = {10};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t pd = NULL;
    for (int i = 0; i < 10; ++i) ones[i] = 1;
    MUST(norm_memory_desc_create_with_tag(&desc, 1, dims, norm_f32, norm_a));
    MUST(norm_gated_forward_primitive_desc_create(&pd, engine, norm_forward_training,
            norm_eltwise_swish, norm_gate_separate, desc, desc, desc, 1, INFINITY, 0, NULL));
    do {
        const given_t given[] = {{NORM_ARG_SRC, desc, x}, {NORM_ARG_SRC_1, desc, ones},
                {NORM_ARG_DST, desc, dst}};
        MUST(execute(pd, 3, given));
        EXPECT(dst[0] == 0 && dst[1] == 0 && dst[4] == 0);
        EXPECT(fabs(dst[2] + 100 * exp(-100)) <= 3 * 1.5e-45 * 100);
        EXPECT(dst[3] == -5e-31f && dst[5] == 5e-31f && dst[6] == 100 && dst[7] == 1e30f);
        EXPECT(dst[8] == INFINITY && dst[9] != dst[9]);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
}

/* NaN stays NaN, whatever the limit: a minimum must not replace it, nor a clamp. */
static void not_a_number(norm_alg_kind_t alg, float limit) {
    enum { LENGTH = 70 };
    float x[LENGTH], u[LENGTH], g[LENGTH], dst[LENGTH], diff_gate[LENGTH], diff_up[LENGTH];
    const norm_dim_t dims[] = {LENGTH};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t forward = NULL, backward = NULL;
    snprintf(expect_case, sizeof expect_case, "NaN, %s, limit %g", norm_alg_kind2str(alg),
            (double)limit);
    for (int i = 0; i < LENGTH; ++i) {
        x[i] = i % 7 == 3 ? NAN : (float)(i % 5) + 0.5f;
        u[i] = i % 5 == 4 ? NAN : (float)(i % 3) + 0.5f;
        g[i] = i % 11 == 6 ? NAN : 1;
    }
    MUST(norm_memory_desc_create_with_tag(&desc, 1, dims, norm_f32, norm_a));
    MUST(norm_gated_forward_primitive_desc_create(&forward, engine, norm_forward_training, alg,
            norm_gate_separate, desc, desc, desc, 1.5f, limit, 0.5f, NULL));
    MUST(norm_gated_backward_primitive_desc_create(&backward, engine, alg, norm_gate_separate, desc,
            desc, desc, desc, desc, NULL, 1.5f, limit, 0.5f, forward, NULL));
    do {
        const given_t given[] = {{NORM_ARG_SRC, desc, x}, {NORM_ARG_SRC_1, desc, u},
                {NORM_ARG_DST, desc, dst}};
        MUST(execute(forward, 3, given));
        for (int i = 0; i < LENGTH; ++i)
            EXPECT(!isnan(dst[i]) == !(isnan(x[i]) || isnan(u[i])));
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    do {
        const given_t given[] = {{NORM_ARG_SRC, desc, x}, {NORM_ARG_SRC_1, desc, u},
                {NORM_ARG_DIFF_DST, desc, g}, {NORM_ARG_DIFF_SRC, desc, diff_gate},
                {NORM_ARG_DIFF_SRC_1, desc, diff_up}};
        MUST(execute(backward, 5, given));
        for (int i = 0; i < LENGTH; ++i) {
            const int slope = isnan(x[i]) && alg != norm_eltwise_linear && alg != norm_eltwise_relu;
            const int gate_nan = x[i] > limit ? 0 : slope || isnan(u[i]) || isnan(g[i]);
            const int up_nan = fabsf(u[i]) > limit ? 0 : isnan(x[i]) || isnan(g[i]);
            EXPECT(!isnan(diff_gate[i]) == !gate_nan && !isnan(diff_up[i]) == !up_nan);
        }
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(desc));
}

static void refusals(void) {
    norm_primitive_desc_t out = UNTOUCHED;
    norm_memory_desc_t one = desc_of(COLS, COLS), all = desc_of(2 * COLS, 2 * COLS);
    norm_memory_desc_t any = NULL, odd = desc_of(COLS - 2, COLS - 2);
    const norm_dim_t dims[] = {ROWS, COLS};
    MUST(norm_memory_desc_create_with_tag(&any, 2, dims, norm_f32, norm_format_tag_any));
    const norm_alg_kind_t alg = norm_eltwise_swish;
    const norm_prop_kind_t kind = norm_forward_inference;
    const norm_gate_packing_t first = norm_gate_first, separate = norm_gate_separate;
#define FORWARD norm_gated_forward_primitive_desc_create
#define BACKWARD norm_gated_backward_primitive_desc_create
    INVALID("alg_kind", FORWARD,
            (&out, engine, kind, norm_eltwise_tanh, first, all, NULL, one, 1, INFINITY, 0, NULL));
    INVALID("prop_kind", FORWARD,
            (&out, engine, norm_backward, alg, first, all, NULL, one, 1, INFINITY, 0, NULL));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("packing", FORWARD,
                (&out, engine, kind, alg, (norm_gate_packing_t)no_enumerator[i], all, NULL, one, 1,
                        INFINITY, 0, NULL));
    INVALID("up_desc", FORWARD,
            (&out, engine, kind, alg, separate, one, NULL, one, 1, INFINITY, 0, NULL));
    INVALID("up_desc", FORWARD,
            (&out, engine, kind, alg, first, all, one, one, 1, INFINITY, 0, NULL));
    INVALID("src_desc", FORWARD,
            (&out, engine, kind, alg, first, odd, NULL, one, 1, INFINITY, 0, NULL));
    INVALID("src_desc", FORWARD,
            (&out, engine, kind, alg, separate, any, one, one, 1, INFINITY, 0, NULL));
    INVALID("dst_desc", FORWARD,
            (&out, engine, kind, alg, first, all, NULL, all, 1, INFINITY, 0, NULL));
    INVALID("alpha", FORWARD,
            (&out, engine, kind, alg, first, all, NULL, one, NAN, INFINITY, 0, NULL));
    INVALID("limit", FORWARD, (&out, engine, kind, alg, first, all, NULL, one, 1, 0, 0, NULL));
    INVALID("limit", FORWARD, (&out, engine, kind, alg, first, all, NULL, one, 1, NAN, 0, NULL));
    INVALID("shift", FORWARD,
            (&out, engine, kind, alg, first, all, NULL, one, 1, INFINITY, INFINITY, NULL));
    INVALID("diff_dst_desc", BACKWARD,
            (&out, engine, alg, first, all, NULL, all, all, NULL, NULL, 1, INFINITY, 0, NULL, NULL));
    INVALID("diff_src_desc", BACKWARD,
            (&out, engine, alg, first, one, NULL, one, all, NULL, NULL, 1, INFINITY, 0, NULL, NULL));
    INVALID("diff_up_desc", BACKWARD,
            (&out, engine, alg, separate, one, NULL, one, one, one, NULL, 1, INFINITY, 0, NULL,
                    NULL));
    INVALID("dst_desc", BACKWARD,
            (&out, engine, alg, first, all, NULL, one, all, NULL, all, 1, INFINITY, 0, NULL, NULL));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(one));
    MUST(norm_memory_desc_destroy(all));
    MUST(norm_memory_desc_destroy(any));
    MUST(norm_memory_desc_destroy(odd));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int i = 0; i < COUNT; ++i) {
        gate[i] = (float)(2 * (i * 37 % 101) - 99) / 16;
        up[i] = (float)(2 * (i * 53 % 89) - 87) / 8;
        diff_dst[i] = (float)(i * 29 % 61 - 20) / 16;
    }
    for (int f = 0; f < 6; ++f)
        for (int p = 0; p < 4; ++p) {
            both_ways(functions[f], packings[p], 1, INFINITY, 0);
            both_ways(functions[f], packings[p], 1.702f, 5.01f, 1);
        }
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        for (int f = 0; f < 6; ++f)
            not_a_number(functions[f], INFINITY), not_a_number(functions[f], 2);
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    in_place();
    extremes();
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("gated");
}
