/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Softmax and logsoftmax, forward and backward, along each dimension, compared
 * with the formula in double. Also queries and refusals.
 */
#include "levels.h"
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { D0 = 5, D1 = 19, D2 = 33, COUNT = D0 * D1 * D2 };
static const norm_dim_t dims[] = {D0, D1, D2};
static const int steps[] = {D1 * D2, D2, 1};

static norm_memory_desc_t desc_of(norm_data_type_t type, norm_format_tag_t tag) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 3, dims, type, tag));
    return desc;
}

static void execute(norm_primitive_desc_t pd, int count, const int *ids, float *const *data) {
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[3];
    norm_memory_desc_t desc = desc_of(norm_f32, norm_abc);
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        args[i].arg = ids[i];
        args[i].memory = NULL;
        MUST(norm_memory_create(&args[i].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = 0; i < count; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_primitive_destroy(primitive));
}

static int close_to(double got, double want, double terms) {
    return fabs(got - want) <= 4e-7 * (terms + fabs(want)) + 1e-37;
}

/* For each row along the axis, the largest element and the sum of the exponentials. */
static void compare_forward(
        const float *src, const float *dst, norm_alg_kind_t alg, int axis) {
    const int step = steps[axis], n = (int)dims[axis];
    int wrong = 0;
    for (int start = 0; start < COUNT; ++start) {
        if (start / step % n != 0) continue;
        double max = -INFINITY, sum = 0;
        for (int c = 0; c < n; ++c)
            max = fmax(max, src[start + c * step]);
        for (int c = 0; c < n; ++c)
            sum += exp(src[start + c * step] - max);
        for (int c = 0; c < n; ++c) {
            const double d = src[start + c * step] - max;
            const double log_of = d - log(sum);
            const double want = alg == norm_softmax_log ? log_of : exp(d) / sum;
            const double terms = alg == norm_softmax_log ? 1 : want * fabs(d);
            wrong += !close_to(dst[start + c * step], want, terms);
        }
    }
    EXPECT(wrong == 0);
}

static void compare_backward(const float *dst, const float *diff_dst, const float *diff_src,
        norm_alg_kind_t alg, int axis) {
    const int step = steps[axis], n = (int)dims[axis];
    int wrong = 0;
    for (int start = 0; start < COUNT; ++start) {
        if (start / step % n != 0) continue;
        double sum = 0, terms = 0;
        for (int c = 0; c < n; ++c) {
            const int at = start + c * step;
            const double term
                    = diff_dst[at] * (alg == norm_softmax_log ? 1.0 : (double)dst[at]);
            sum += term;
            terms += fabs(term);
        }
        for (int c = 0; c < n; ++c) {
            const int at = start + c * step;
            const double y = dst[at], g = diff_dst[at];
            const int log_of = alg == norm_softmax_log;
            const double want = log_of ? g - exp(y) * sum : y * (g - sum);
            const double all = log_of ? fabs(g) + exp(y) * terms : fabs(y) * (fabs(g) + terms);
            wrong += !close_to(diff_src[at], want, all);
        }
    }
    EXPECT(wrong == 0);
}

static void along(norm_alg_kind_t alg, int axis) {
    static float src[COUNT], dst[COUNT], diff_dst[COUNT], diff_src[COUNT];
    snprintf(expect_case, sizeof expect_case, "%s along %d", norm_alg_kind2str(alg), axis);
    norm_memory_desc_t desc = desc_of(norm_f32, norm_abc);
    norm_primitive_desc_t forward = NULL, backward = NULL;
    norm_alg_kind_t answered = norm_alg_kind_undef;
    norm_prop_kind_t kind = norm_prop_kind_undef;
    norm_primitive_kind_t primitive_kind = norm_undefined_primitive;
    int asked = -1;
    for (int i = 0; i < COUNT; ++i) {
        src[i] = (float)(i * 37 % 101) / 8 + (float)(i % 3) * 90;
        diff_dst[i] = (float)(i * 29 % 61 - 20) / 16;
    }
    MUST(norm_softmax_forward_primitive_desc_create(
            &forward, engine, norm_forward_training, alg, desc, desc, axis, NULL));
    MUST(norm_softmax_backward_primitive_desc_create(
            &backward, engine, alg, desc, desc, desc, axis, forward, NULL));
    MUST(norm_primitive_desc_query(backward, norm_query_axis_s32, 0, &asked));
    MUST(norm_primitive_desc_query(backward, norm_query_alg_kind, 0, &answered));
    MUST(norm_primitive_desc_query(backward, norm_query_prop_kind, 0, &kind));
    MUST(norm_primitive_desc_query(forward, norm_query_primitive_kind, 0, &primitive_kind));
    EXPECT(asked == axis && answered == alg && kind == norm_backward_data);
    EXPECT(primitive_kind == norm_softmax);
    EXPECT(norm_primitive_desc_query_s32(forward, norm_query_axis_s32, 0) == axis);
    EXPECT(norm_primitive_desc_query_s32(forward, norm_query_num_of_inputs_s32, 0) == 1);
    EXPECT(norm_primitive_desc_query_s32(backward, norm_query_num_of_inputs_s32, 0) == 2);
    EXPECT(norm_primitive_desc_query_md(forward, norm_query_dst_md, 0) != NULL);
    do {
        const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST};
        float *const data[] = {src, dst};
        memset(dst, TENSOR_FILL, sizeof dst);
        execute(forward, 2, ids, data);
        compare_forward(src, dst, alg, axis);
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    do {
        const int ids[] = {NORM_ARG_DST, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC};
        float *const data[] = {dst, diff_dst, diff_src};
        memset(diff_src, TENSOR_FILL, sizeof diff_src);
        execute(backward, 3, ids, data);
        compare_backward(dst, diff_dst, diff_src, alg, axis);
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(desc));
}

/* Rows of -Inf, with NaN and with +Inf. */
static void not_finite(void) {
    float src[COUNT], dst[COUNT];
    norm_primitive_desc_t pd = NULL;
    norm_memory_desc_t desc = desc_of(norm_f32, norm_abc);
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST};
    float *const data[] = {src, dst};
    for (int i = 0; i < COUNT; ++i)
        src[i] = i < D2 ? -INFINITY : (float)(i % 5);
    src[D2 + 1] = NAN;
    src[2 * D2 + 1] = INFINITY;
    src[3 * D2 + 1] = -INFINITY;
    MUST(norm_softmax_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_softmax_accurate, desc, desc, 2, NULL));
    do {
        int wrong = 0;
        execute(pd, 2, ids, data);
        for (int i = 0; i < COUNT; ++i)
            wrong += (i < 3 * D2) != (dst[i] != dst[i]);
        EXPECT(wrong == 0 && dst[3 * D2 + 1] == 0);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
}

/* Rows of numbers, of -Inf, with +Inf and with NaN. */
static void stats(void) {
    enum { ROWS = 5, COLS = 67 };
    static const norm_dim_t its_dims[] = {ROWS, COLS}, stats_dims[] = {ROWS, 1};
    static const norm_dim_t strides[] = {3, 1};
    static float src[ROWS * COLS], dst[ROWS * COLS], sums[3 * ROWS];
    norm_memory_desc_t desc = NULL, wide = NULL, any = NULL, half = NULL;
    const_norm_memory_desc_t its = NULL;
    norm_primitive_attr_t attr = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, its_dims, norm_f32, norm_ab));
    MUST(norm_memory_desc_create_with_strides(&wide, 2, stats_dims, norm_f32, strides));
    MUST(norm_memory_desc_create_with_tag(&any, 2, stats_dims, norm_f32, norm_format_tag_any));
    MUST(norm_memory_desc_create_with_tag(&half, 2, stats_dims, norm_f16, norm_ab));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_get_softmax_stats(attr, &its));
    EXPECT(its == NULL);
    for (int i = 0; i < ROWS * COLS; ++i) src[i] = (float)(i * 37 % 101) / 8;
    for (int i = 0; i < COLS; ++i) src[COLS + i] = -INFINITY;
    src[2 * COLS + 40] = INFINITY;
    src[3 * COLS + 66] = NAN;
    src[4 * COLS] = -INFINITY;
    double sum = 0, last = 0;
    for (int i = 0; i < COLS; ++i) sum += exp(src[i] - 20.0);
    for (int i = 1; i < COLS; ++i) last += exp(src[4 * COLS + i] - 20.0);
    static const norm_alg_kind_t algs[] = {norm_softmax_accurate, norm_softmax_log,
            norm_softmax_accurate_inf_as_zero};
    for (int k = 0; k < 6; ++k) {
        norm_primitive_desc_t pd = NULL;
        const int step = k < 3 ? 3 : 1;
        MUST(norm_primitive_attr_set_softmax_stats(attr, k < 3 ? wide : any));
        MUST(norm_softmax_forward_primitive_desc_create(
                &pd, engine, norm_forward_inference, algs[k % 3], desc, desc, 1, attr));
        const_norm_memory_desc_t of_stats = norm_primitive_desc_query_md(
                pd, norm_query_exec_arg_md, NORM_ARG_SOFTMAX_STATS);
        EXPECT(of_stats != NULL && norm_memory_desc_get_size(of_stats) > 0);
        do {
            norm_primitive_t primitive = NULL;
            norm_exec_arg_t args[] = {{NORM_ARG_SRC, NULL}, {NORM_ARG_DST, NULL},
                    {NORM_ARG_SOFTMAX_STATS, NULL}};
            for (int i = 0; i < 3 * ROWS; ++i) sums[i] = -7;
            MUST(norm_primitive_create(&primitive, pd));
            MUST(norm_memory_create(&args[0].memory, desc, engine, src));
            MUST(norm_memory_create(&args[1].memory, desc, engine, dst));
            MUST(norm_memory_create(&args[2].memory, of_stats, engine, sums));
            INVALID("NORM_ARG_SOFTMAX_STATS", norm_primitive_execute, (primitive, stream, 2, args));
            MUST(norm_primitive_execute(primitive, stream, 3, args));
            EXPECT(close_to(sums[0], 20 + log(sum), 20) && sums[step] == -INFINITY);
            EXPECT(sums[2 * step] == INFINITY && sums[3 * step] != sums[3 * step]);
            EXPECT(close_to(sums[4 * step], 20 + log(last), 20) && (step == 1 || sums[1] == -7));
            for (int i = 0; i < 3; ++i) MUST(norm_memory_destroy(args[i].memory));
            MUST(norm_primitive_destroy(primitive));
        } while (norm_primitive_desc_next_impl(pd) == norm_success);
        MUST(norm_primitive_desc_destroy(pd));
    }
    norm_primitive_desc_t out = UNTOUCHED;
    REFUSED(norm_unimplemented, "stats_desc", norm_primitive_attr_set_softmax_stats, (attr, half));
    INVALID("stats_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, norm_forward_inference, norm_softmax_log, desc, desc, 0, attr));
    REFUSED(norm_unimplemented, "attr", norm_softmax_backward_primitive_desc_create,
            (&out, engine, norm_softmax_log, desc, desc, desc, 1, NULL, attr));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_set_softmax_stats(attr, NULL));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(wide));
    MUST(norm_memory_desc_destroy(any));
    MUST(norm_memory_desc_destroy(half));
}

/* Dropout is refused where it is not supported, and needs its arguments. */
static void dropout(void) {
    norm_memory_desc_t good = desc_of(norm_f32, norm_abc), other = desc_of(norm_s8, norm_abc);
    norm_memory_desc_t none = NULL, small = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t out = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&none, 0, dims, norm_f32, norm_format_tag_any));
    MUST(norm_memory_desc_create_with_tag(&small, 2, dims, norm_u8, norm_ab));
    MUST(norm_primitive_attr_create(&attr));
    INVALID("mask_desc", norm_primitive_attr_set_dropout, (attr, NULL));
    INVALID("mask_desc", norm_primitive_attr_set_dropout, (attr, other));
    INVALID("seed_data_type", norm_primitive_attr_set_dropout_v2, (attr, none, norm_f32, 0, 0));
    const_norm_memory_desc_t its = NULL;
    norm_data_type_t seed = norm_s64;
    int has_offset = 1, on_host = 1;
    MUST(norm_primitive_attr_get_dropout_v2(attr, &its, &seed, &has_offset, &on_host));
    EXPECT(norm_memory_desc_equal(its, none) && seed == norm_data_type_undef);
    EXPECT(!has_offset && !on_host);
    MUST(norm_primitive_attr_set_dropout(attr, small));
    MUST(norm_primitive_attr_get_dropout(attr, &its));
    EXPECT(norm_memory_desc_equal(its, small));
    INVALID("mask_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, norm_forward_training, norm_softmax_log, good, good, 1, attr));
    MUST(norm_primitive_attr_set_dropout_v2(attr, none, norm_s64, 1, 0));
    REFUSED(norm_unimplemented, "attr", norm_softmax_backward_primitive_desc_create,
            (&out, engine, norm_softmax_log, good, good, good, 1, NULL, attr));
    EXPECT(out == UNTOUCHED);
    MUST(norm_softmax_forward_primitive_desc_create(
            &out, engine, norm_forward_training, norm_softmax_log, good, good, 1, attr));
    EXPECT(norm_primitive_desc_query_md(
                   out, norm_query_exec_arg_md, NORM_ARG_ATTR_DROPOUT_OFFSET) != NULL);
    MUST(norm_primitive_desc_destroy(out));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(good));
    MUST(norm_memory_desc_destroy(other));
    MUST(norm_memory_desc_destroy(none));
    MUST(norm_memory_desc_destroy(small));
}

static void refusals(void) {
    norm_primitive_desc_t out = UNTOUCHED;
    norm_memory_desc_t good = desc_of(norm_f32, norm_abc), other = NULL;
    norm_memory_desc_t any = desc_of(norm_f32, norm_format_tag_any);
    MUST(norm_memory_desc_create_with_tag(&other, 2, dims, norm_f32, norm_ab));
    const norm_alg_kind_t alg = norm_softmax_accurate;
    const norm_prop_kind_t forward = norm_forward_inference;
    INVALID("alg_kind", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, norm_eltwise_relu, good, good, 1, NULL));
    INVALID("prop_kind", norm_softmax_forward_primitive_desc_create,
            (&out, engine, norm_backward_data, alg, good, good, 1, NULL));
    for (int axis = -1; axis <= 3; axis += 4)
        INVALID("softmax_axis", norm_softmax_forward_primitive_desc_create,
                (&out, engine, forward, alg, good, good, axis, NULL));
    EXPECT(strstr(norm_get_last_error(), "dimensions of src_desc, which count from 0") != NULL);
    INVALID("src_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, alg, any, good, 1, NULL));
    INVALID("src_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, alg, NULL, good, 1, NULL));
    INVALID("dst_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, alg, good, other, 1, NULL));
    INVALID("dst_desc", norm_softmax_backward_primitive_desc_create,
            (&out, engine, alg, good, good, any, 1, NULL, NULL));
    INVALID("diff_dst_desc", norm_softmax_backward_primitive_desc_create,
            (&out, engine, alg, good, other, good, 1, NULL, NULL));
    INVALID("diff_src_desc", norm_softmax_backward_primitive_desc_create,
            (&out, engine, alg, other, good, good, 1, NULL, NULL));
    INVALID("softmax_axis", norm_softmax_backward_primitive_desc_create,
            (&out, engine, alg, good, good, good, 3, NULL, NULL));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(good));
    MUST(norm_memory_desc_destroy(other));
    MUST(norm_memory_desc_destroy(any));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int axis = 0; axis < 3; ++axis) {
        along(norm_softmax_accurate, axis);
        along(norm_softmax_log, axis);
    }
    not_finite();
    stats();
    dropout();
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("softmax");
}
