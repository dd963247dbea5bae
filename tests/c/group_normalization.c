/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Group normalization and grouped RMS normalization, forward and backward, channels
 * first and last, by every implementation, compared with the formula in double.
 * Also queries and refusals.
 */
#include "levels.h"
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { N = 2, C = 12, H = 5, W = 7, P = H * W, COUNT = N * C * P, G = 4, K = C / G, M = K * P };
static const norm_dim_t dims[] = {N, C, H, W};
static const float epsilon = 0.0625f;

static norm_memory_desc_t desc_of(norm_data_type_t type, norm_format_tag_t tag) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 4, dims, type, tag));
    return desc;
}

/* The offset of an element, given its index in the order of samples, channels and positions. */
static int place(int i, norm_format_tag_t tag) {
    const int n = i / (C * P), c = i / P % C, p = i % P;
    return tag == norm_abcd ? i : (n * P + p) * C + c;
}

typedef struct {
    float src[COUNT], dst[COUNT], diff_dst[COUNT], diff_src[COUNT];
    float mean[N * G], variance[N * G], scale[C], shift[C], diff_scale[C], diff_shift[C];
} data_t;

static void execute(norm_primitive_desc_t pd, int count, const int *ids, float *const *data) {
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[9];
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        args[i].arg = ids[i];
        args[i].memory = NULL;
        MUST(norm_memory_create(&args[i].memory,
                norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]), engine, data[i]));
    }
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = 0; i < count; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
}

static int close_to(double got, double want, double terms) {
    return fabs(got - want) <= 4e-7 * (terms + fabs(want)) + 1e-37;
}

/* The mean and variance of a group. */
static void statistics(
        const data_t *d, norm_format_tag_t tag, int group, int rms, double *mean, double *variance) {
    *mean = *variance = 0;
    for (int i = 0; i < M && !rms; ++i)
        *mean += d->src[place(group * M + i, tag)] / (double)M;
    for (int i = 0; i < M; ++i)
        *variance += pow(d->src[place(group * M + i, tag)] - *mean, 2) / M;
}

static void compare_forward(const data_t *d, norm_format_tag_t tag, int rms) {
    int wrong = 0;
    for (int group = 0; group < N * G; ++group) {
        double mean, variance;
        statistics(d, tag, group, rms, &mean, &variance);
        wrong += !close_to(d->variance[group], variance, 0);
        wrong += !rms && !close_to(d->mean[group], mean, 8);
        for (int i = 0; i < M; ++i) {
            const int at = place(group * M + i, tag), c = group % G * K + i / P;
            const double scaled = (d->src[at] - mean) / sqrt(variance + epsilon) * d->scale[c];
            wrong += !close_to(d->dst[at], scaled + d->shift[c], fabs(scaled) + fabs(d->shift[c]));
        }
    }
    EXPECT(wrong == 0);
}

static void compare_backward(const data_t *d, norm_format_tag_t tag, int rms) {
    double of_xhat[C] = {0}, of_dd[C] = {0};
    int wrong = 0;
    for (int group = 0; group < N * G; ++group) {
        double mean, variance, sum = 0, slope = 0, sum_abs = 0, slope_abs = 0;
        statistics(d, tag, group, rms, &mean, &variance);
        const double r = 1 / sqrt(variance + epsilon);
        for (int i = 0; i < M; ++i) {
            const int at = place(group * M + i, tag), c = group % G * K + i / P;
            const double dd = d->diff_dst[at], xhat = (d->src[at] - mean) * r;
            sum += dd * d->scale[c], slope += dd * d->scale[c] * xhat;
            sum_abs += fabs(dd * d->scale[c]), slope_abs += fabs(dd * d->scale[c] * xhat);
            of_xhat[c] += dd * xhat, of_dd[c] += dd;
        }
        if (rms) sum = sum_abs = 0;
        for (int i = 0; i < M; ++i) {
            const int at = place(group * M + i, tag), c = group % G * K + i / P;
            const double dd = d->diff_dst[at] * d->scale[c], xhat = (d->src[at] - mean) * r;
            const double want = r * (dd - sum / M - xhat * slope / M);
            const double terms = r * (fabs(dd) + sum_abs / M + fabs(xhat) * slope_abs / M);
            wrong += !close_to(d->diff_src[at], want, terms);
        }
    }
    for (int c = 0; c < C; ++c)
        wrong += !close_to(d->diff_scale[c], of_xhat[c], 400)
                || !close_to(d->diff_shift[c], of_dd[c], 400);
    EXPECT(wrong == 0);
}

static void queries(norm_primitive_desc_t forward, norm_primitive_desc_t backward, int rms) {
    norm_dim_t groups = 0;
    float asked = 0;
    unsigned flags = 0;
    norm_primitive_kind_t kind = norm_undefined_primitive;
    const norm_dims_t *stat = NULL;
    MUST(norm_primitive_desc_query(backward, norm_query_group_size_s64, 0, &groups));
    MUST(norm_primitive_desc_query(forward, norm_query_epsilon_f32, 0, &asked));
    MUST(norm_primitive_desc_query(forward, norm_query_flags, 0, &flags));
    MUST(norm_primitive_desc_query(forward, norm_query_primitive_kind, 0, &kind));
    EXPECT(groups == G && asked == epsilon && kind == norm_group_normalization);
    EXPECT(((flags & norm_rms_norm) != 0) == rms);
    MUST(norm_memory_desc_query(norm_primitive_desc_query_md(forward, norm_query_dst_md, 2),
            norm_query_dims, (void *)&stat));
    EXPECT((*stat)[0] == N && (*stat)[1] == G);
    EXPECT((norm_primitive_desc_query_md(forward, norm_query_exec_arg_md, NORM_ARG_MEAN) == NULL
                   || norm_memory_desc_get_size(norm_primitive_desc_query_md(forward,
                              norm_query_exec_arg_md, NORM_ARG_MEAN))
                           == 0)
            == rms);
    EXPECT(norm_memory_desc_get_size(
                   norm_primitive_desc_query_md(backward, norm_query_src_md, 2))
            == sizeof(float) * N * G);
    EXPECT(norm_primitive_desc_query_s32(forward, norm_query_num_of_inputs_s32, 0) == 3);
    EXPECT(norm_primitive_desc_query_s32(backward, norm_query_num_of_outputs_s32, 0) == 3);
}

static void both_directions(norm_format_tag_t tag, int rms) {
    static data_t d;
    const unsigned flags
            = norm_use_scale | norm_use_shift | (rms ? (unsigned)norm_rms_norm : 0u);
    norm_memory_desc_t desc = desc_of(norm_f32, tag);
    norm_primitive_desc_t forward = NULL, backward = NULL;
    snprintf(expect_case, sizeof expect_case, "%s, %s", norm_fmt_tag2str(tag), rms ? "rms" : "mean");
    for (int i = 0; i < COUNT; ++i) {
        const int at = place(i, tag);
        d.src[at] = (float)(i * 37 % 101) / 8 + (float)(i / P % 5) * 3;
        d.diff_dst[at] = (float)(i * 29 % 61 - 20) / 16;
    }
    for (int c = 0; c < C; ++c) {
        d.scale[c] = (float)(c + 3) / 8;
        d.shift[c] = (float)(c - 5) / 4;
    }
    MUST(norm_group_normalization_forward_primitive_desc_create(
            &forward, engine, norm_forward_training, desc, desc, G, epsilon, flags, NULL));
    MUST(norm_group_normalization_backward_primitive_desc_create(&backward, engine, norm_backward,
            desc, desc, desc, G, epsilon, flags, forward, NULL));
    queries(forward, backward, rms);
    do {
        const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_SCALE, NORM_ARG_SHIFT,
                NORM_ARG_VARIANCE, NORM_ARG_MEAN};
        float *const data[] = {d.src, d.dst, d.scale, d.shift, d.variance, d.mean};
        memset(d.dst, TENSOR_FILL, sizeof d.dst);
        execute(forward, rms ? 5 : 6, ids, data);
        compare_forward(&d, tag, rms);
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    do {
        const int ids[] = {NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_SCALE,
                NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_VARIANCE, NORM_ARG_MEAN};
        float *const data[] = {d.src, d.diff_dst, d.diff_src, d.scale, d.diff_scale, d.diff_shift,
                d.variance, d.mean};
        memset(d.diff_src, TENSOR_FILL, sizeof d.diff_src);
        execute(backward, rms ? 7 : 8, ids, data);
        compare_backward(&d, tag, rms);
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(desc));
}

/* A group of zeros, one whose squares overflow, and one with NaN. None affects the others, and a
 * constant group becomes the shift. */
static void groups_apart(norm_format_tag_t tag) {
    static data_t d;
    norm_memory_desc_t desc = desc_of(norm_f32, tag);
    norm_primitive_desc_t pd = NULL;
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_SHIFT, NORM_ARG_VARIANCE, NORM_ARG_MEAN};
    float *const data[] = {d.src, d.dst, d.shift, d.variance, d.mean};
    snprintf(expect_case, sizeof expect_case, "groups apart, %s", norm_fmt_tag2str(tag));
    for (int i = 0; i < COUNT; ++i) {
        const float values[] = {0.1f, i % 2 == 0 ? 3e38f : -1e38f, (float)(i % 3), (float)(i % 5)};
        d.src[place(i, tag)] = values[i / M % G];
    }
    d.src[place(2 * M + 5, tag)] = NAN;
    for (int c = 0; c < C; ++c)
        d.shift[c] = 1;
    MUST(norm_group_normalization_forward_primitive_desc_create(
            &pd, engine, norm_forward_training, desc, desc, G, 0.0f, norm_use_shift, NULL));
    do {
        int wrong = 0;
        execute(pd, 5, ids, data);
        for (int i = 0; i < COUNT; ++i) {
            const float got = d.dst[place(i, tag)];
            const int group = i / M;
            wrong += (group == 2) != (got != got) || fabs(got - 1) > 2;
            wrong += group % G == 0 && got != 1;
        }
        EXPECT(wrong == 0 && d.variance[0] == 0 && isinf(d.variance[1]) && d.mean[0] == 0.1f);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
}

/* Expects the last error message to contain a text. */
#define SAYS(text) EXPECT(strstr(norm_get_last_error(), text) != NULL)

static void refusals_forward(norm_memory_desc_t good, norm_memory_desc_t other,
        norm_memory_desc_t any, norm_memory_desc_t flat) {
    norm_primitive_desc_t out = UNTOUCHED;
    const norm_prop_kind_t kind = norm_forward_inference;
    INVALID("prop_kind", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, norm_backward, good, good, G, epsilon, 0, NULL));
    INVALID("groups", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, 5, epsilon, 0, NULL));
    SAYS("5 groups do not divide 12 channels");
    INVALID("groups", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, 24, epsilon, 0, NULL));
    SAYS("24 groups do not divide 12 channels");
    for (norm_dim_t groups = -1; groups <= 0; ++groups)
        INVALID("groups", norm_group_normalization_forward_primitive_desc_create,
                (&out, engine, kind, good, good, groups, epsilon, 0, NULL));
    INVALID("epsilon", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, -1.0f, 0, NULL));
    INVALID("epsilon", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, NAN, 0, NULL));
    INVALID("flags", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, 1u << 30, NULL));
    INVALID("src_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, any, good, G, epsilon, 0, NULL));
    INVALID("src_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, flat, flat, 1, epsilon, 0, NULL));
    INVALID("src_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, NULL, good, G, epsilon, 0, NULL));
    INVALID("dst_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, other, G, epsilon, 0, NULL));
    EXPECT(out == UNTOUCHED);
}

static void refusals_backward(
        norm_memory_desc_t good, norm_memory_desc_t other, norm_memory_desc_t bytes) {
    norm_primitive_desc_t out = UNTOUCHED, hint = NULL, softmax = NULL;
    const norm_prop_kind_t kind = norm_backward;
    MUST(norm_group_normalization_forward_primitive_desc_create(
            &hint, engine, norm_forward_training, good, good, G, epsilon, norm_use_scale, NULL));
    MUST(norm_softmax_forward_primitive_desc_create(&softmax, engine, norm_forward_training,
            norm_softmax_accurate, good, good, 1, NULL));
    INVALID("flags", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, good, good, G, epsilon, norm_use_shift, hint, NULL));
    SAYS("hint_fwd_pd was created without use_shift");
    INVALID("groups", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, good, good, 2, epsilon, norm_use_scale, hint, NULL));
    SAYS("2, but hint_fwd_pd was created with 4");
    INVALID("hint_fwd_pd", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, good, good, G, epsilon, norm_use_scale, softmax, NULL));
    INVALID("groups", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, good, good, 7, epsilon, 0, NULL, NULL));
    SAYS("7 groups do not divide 12 channels");
    INVALID("prop_kind", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, norm_forward_training, good, good, good, G, epsilon, 0, NULL, NULL));
    INVALID("diff_src_desc", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, other, good, good, G, epsilon, 0, NULL, NULL));
    INVALID("diff_dst_desc", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, other, good, G, epsilon, 0, NULL, NULL));
    REFUSED(norm_unimplemented, "src_desc", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, kind, good, good, bytes, G, epsilon, 0, NULL, NULL));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_desc_destroy(hint));
    MUST(norm_primitive_desc_destroy(softmax));
}

/* Residuals, gates and flags that contradict each other. */
static void refusals_steps(norm_memory_desc_t good, norm_memory_desc_t other) {
    norm_primitive_desc_t out = UNTOUCHED, hint = NULL;
    norm_primitive_attr_t attr = NULL, gated = NULL;
    const norm_prop_kind_t kind = norm_forward_training;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_create(&gated));
    MUST(norm_primitive_attr_set_gate(gated, good, norm_eltwise_swish, 1));
    MUST(norm_primitive_attr_set_residual(attr, other, NULL, norm_residual_rounded));
    INVALID("residual_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, 0, attr));
    MUST(norm_primitive_attr_set_residual(attr, good, NULL, norm_residual_rounded));
    INVALID("attr", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, norm_backward, good, good, good, G, epsilon, 0, NULL, attr));
    SAYS("needs a sum_desc");
    MUST(norm_primitive_attr_set_residual(attr, NULL, NULL, norm_residual_rounded));
    INVALID("flags", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, norm_gate_input, NULL));
    INVALID("attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, 0, gated));
    INVALID("flags", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, norm_gate_input | norm_gate_output,
                    gated));
    INVALID("flags", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, norm_scale_plus_one, NULL));
    MUST(norm_group_normalization_forward_primitive_desc_create(
            &hint, engine, kind, good, good, G, epsilon, norm_gate_input, gated));
    INVALID("flags", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, norm_backward, good, good, good, G, epsilon, norm_gate_output, hint,
                    gated));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_desc_destroy(hint));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_primitive_attr_destroy(gated));
}

static void refusals_partial(norm_memory_desc_t good) {
    norm_primitive_desc_t out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    const norm_prop_kind_t kind = norm_forward_training;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_partial_norm(attr, P));
    INVALID("attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, 0, attr));
    SAYS("a partial norm needs the flag rms_norm");
    INVALID("attr", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, norm_backward, good, good, good, G, epsilon, 0, NULL, attr));
    MUST(norm_primitive_attr_set_partial_norm(attr, M + P));
    INVALID("attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, norm_rms_norm, attr));
    SAYS("140 elements, but groups have 105");
    MUST(norm_primitive_attr_set_partial_norm(attr, P + 1));
    REFUSED(norm_unimplemented, "attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, norm_rms_norm, attr));
    SAYS("36 elements is not a whole number of channels of 35 positions");
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
}

static void refusals_dynamic(norm_memory_desc_t good, norm_memory_desc_t bytes) {
    norm_primitive_desc_t out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    const norm_prop_kind_t kind = norm_forward_inference;
    const norm_dims_t row = {1, W}, three = {1, 3};
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_v3(
            attr, NORM_ARG_DST, 15, 2, three, norm_f32, 0, norm_quantization_mode_dynamic_fp));
    INVALID("attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, bytes, G, epsilon, 0, attr));
    SAYS("groups of 3 do not divide the 7 elements of a row");
    MUST(norm_primitive_attr_set_scales_v3(
            attr, NORM_ARG_DST, 15, 2, row, norm_f32, 0, norm_quantization_mode_dynamic_fp));
    REFUSED(norm_unimplemented, "dst_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, good, G, epsilon, 0, attr));
    REFUSED(norm_unimplemented, "attr", norm_group_normalization_backward_primitive_desc_create,
            (&out, engine, norm_backward, good, good, good, G, epsilon, 0, NULL, attr));
    INVALID("group_ndims", norm_primitive_attr_set_scales_v3,
            (attr, NORM_ARG_DST, 2, 1, row, norm_f32, 0, norm_quantization_mode_dynamic_fp));
    MUST(norm_primitive_attr_set_scales_v3(
            attr, NORM_ARG_DST, 2, 2, row, norm_f32, 0, norm_quantization_mode_dynamic_fp));
    REFUSED(norm_unimplemented, "attr", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, kind, good, bytes, G, epsilon, 0, attr));
    SAYS("need mask 0xf");
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
}

/* A gate that is missing, and one that the sum would overwrite. */
static void bad_gate(norm_memory_desc_t good) {
    static data_t d;
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[5] = {{NORM_ARG_SRC, NULL}, {NORM_ARG_DST, NULL},
            {NORM_ARG_RESIDUAL, NULL}, {NORM_ARG_RESIDUAL_DST, NULL}, {NORM_ARG_GATE, NULL}};
    float *const data[] = {d.src, d.dst, d.src, d.diff_src, d.diff_src};
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_residual(attr, good, good, norm_residual_rounded));
    MUST(norm_primitive_attr_set_gate(attr, good, norm_eltwise_logistic, 0));
    MUST(norm_group_normalization_forward_primitive_desc_create(&pd, engine,
            norm_forward_inference, good, good, G, epsilon, norm_gate_output, attr));
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < 5; ++i)
        MUST(norm_memory_create(&args[i].memory, good, engine, data[i]));
    memset(d.dst, TENSOR_FILL, sizeof d.dst);
    INVALID("NORM_ARG_GATE", norm_primitive_execute, (primitive, stream, 4, args));
    INVALID("args", norm_primitive_execute, (primitive, stream, 5, args));
    SAYS("GATE and RESIDUAL_DST share a buffer");
    const unsigned char *bytes = (const unsigned char *)d.dst;
    EXPECT(bytes[0] == TENSOR_FILL && bytes[sizeof d.dst - 1] == TENSOR_FILL);
    for (int i = 0; i < 5; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
}

/* A scale with other dimensions than those of channels, and a missing one. */
static void bad_scale(norm_memory_desc_t good) {
    static data_t d;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_memory_desc_t few = NULL;
    norm_exec_arg_t args[3] = {{NORM_ARG_SRC, NULL}, {NORM_ARG_DST, NULL}, {NORM_ARG_SCALE, NULL}};
    const norm_dim_t count = C - 1;
    MUST(norm_memory_desc_create_with_tag(&few, 1, &count, norm_f32, norm_a));
    MUST(norm_group_normalization_forward_primitive_desc_create(
            &pd, engine, norm_forward_inference, good, good, G, epsilon, norm_use_scale, NULL));
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_memory_create(&args[0].memory, good, engine, d.src));
    MUST(norm_memory_create(&args[1].memory, good, engine, d.dst));
    MUST(norm_memory_create(&args[2].memory, few, engine, d.scale));
    memset(d.dst, TENSOR_FILL, sizeof d.dst);
    INVALID("NORM_ARG_SCALE", norm_primitive_execute, (primitive, stream, 3, args));
    INVALID("NORM_ARG_SCALE", norm_primitive_execute, (primitive, stream, 2, args));
    const unsigned char *bytes = (const unsigned char *)d.dst;
    EXPECT(bytes[0] == TENSOR_FILL && bytes[sizeof d.dst - 1] == TENSOR_FILL);
    for (int i = 0; i < 3; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(few));
}

static void refusals(void) {
    norm_memory_desc_t good = desc_of(norm_f32, norm_abcd), other = NULL, flat = NULL;
    norm_memory_desc_t any = desc_of(norm_f32, norm_format_tag_any);
    norm_memory_desc_t bytes = desc_of(norm_s8, norm_abcd);
    MUST(norm_memory_desc_create_with_tag(&other, 3, dims, norm_f32, norm_abc));
    MUST(norm_memory_desc_create_with_tag(&flat, 1, dims, norm_f32, norm_a));
    refusals_forward(good, other, any, flat);
    refusals_backward(good, other, bytes);
    refusals_steps(good, other);
    refusals_partial(good);
    refusals_dynamic(good, bytes);
    bad_scale(good);
    bad_gate(good);
    MUST(norm_memory_desc_destroy(good));
    MUST(norm_memory_desc_destroy(other));
    MUST(norm_memory_desc_destroy(any));
    MUST(norm_memory_desc_destroy(flat));
    MUST(norm_memory_desc_destroy(bytes));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int rms = 0; rms < 2; ++rms) {
        both_directions(norm_abcd, rms);
        both_directions(norm_acdb, rms);
    }
    groups_apart(norm_abcd);
    groups_apart(norm_acdb);
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("group_normalization");
}
