/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Forward for training with norm_residual_exact and backward from the stored sum, compared
 * with the formulas in double: the mean and variance are those of the f32 sum, the elements
 * of backward those of the sum in bf16. Layer and group normalization, channels first and
 * last, every implementation on every level.
 */
#include "levels.h"
#include "tensor.h"

#include <math.h>

/* Rows of layer normalization, and groups of K channels with P positions. */
enum { ROWS = 6, COLS = 90, SAMPLES = 2, CHANNELS = 6, P = 45, GROUPS = 3, K = CHANNELS / GROUPS };
enum { PARTS = ROWS, SIZE = COLS, COUNT = PARTS * SIZE };

static const float epsilon = 1e-3f;
static const unsigned parameters = norm_use_scale | norm_use_shift;

static norm_engine_t engine;
static norm_stream_t stream;

typedef struct {
    int ndims; /* 2 for layer normalization, 3 for group normalization */
    norm_dims_t dims;
    norm_format_tag_t tag;
    int rms;
} case_t;

typedef struct {
    tensor_t src, residual, sum, dst, mean, variance, scale, shift;
    tensor_t diff_dst, diff_sum, diff_src, diff_scale, diff_shift;
} tensors_t;

/* Layer normalization's rows and group normalization's groups both have 90 elements. */
static size_t offset_of(const case_t *c, int part, int i) {
    if (c->ndims == 2 || c->tag == norm_abc) return (size_t)(part * SIZE + i);
    const int sample = part / GROUPS, channel = part % GROUPS * K + i / P;
    return (size_t)((sample * P + i % P) * CHANNELS + channel);
}

/* The index of an element's scale. */
static size_t parameter_of(const case_t *c, int part, int i) {
    return (size_t)(c->ndims == 2 ? i : part % GROUPS * K + i / P);
}

static double at(const tensor_t *t, size_t index) {
    return element_get(t->type, t->data, index);
}

static int close_to(double got, double want, double terms) {
    return fabs(got - want) <= 1e-6 * (terms + fabs(want));
}

/* The f32 sum of an element. */
static double sum_of(const case_t *c, const tensors_t *t, int part, int i) {
    const size_t index = offset_of(c, part, i);
    return (float)(at(&t->src, index) + at(&t->residual, index));
}

/* The mean and variance of the f32 sums. */
static void statistics(
        const case_t *c, const tensors_t *t, int part, double *mean, double *variance) {
    *mean = *variance = 0;
    for (int i = 0; i < SIZE && !c->rms; ++i)
        *mean += sum_of(c, t, part, i) / SIZE;
    for (int i = 0; i < SIZE; ++i)
        *variance += pow(sum_of(c, t, part, i) - *mean, 2) / SIZE;
}

static int wrong_forward(const case_t *c, const tensors_t *t) {
    int wrong = 0;
    for (int part = 0; part < PARTS; ++part) {
        double mean, variance;
        statistics(c, t, part, &mean, &variance);
        wrong += !close_to(at(&t->variance, (size_t)part), variance, 0);
        wrong += !c->rms && !close_to(at(&t->mean, (size_t)part), mean, 8);
        for (int i = 0; i < SIZE; ++i) {
            const size_t index = offset_of(c, part, i), own = parameter_of(c, part, i);
            const double x = sum_of(c, t, part, i), factor = at(&t->scale, own);
            const double scaled = (x - mean) / sqrt(variance + epsilon) * factor;
            const double shift = at(&t->shift, own);
            unsigned char rounded[2];
            element_set(norm_bf16, rounded, 0, x);
            wrong += memcmp(rounded, t->sum.data + 2 * index, 2) != 0;
            wrong += !close_to(at(&t->dst, index), scaled + shift, fabs(scaled) + fabs(shift));
        }
    }
    return wrong;
}

/* The gradients, from the rounded sum and the statistics of the exact one. */
static int wrong_backward(const case_t *c, const tensors_t *t) {
    double of_scale[COLS] = {0}, of_shift[COLS] = {0};
    int wrong = 0;
    for (int part = 0; part < PARTS; ++part) {
        double mean, variance, total = 0, slope = 0, total_abs = 0, slope_abs = 0;
        double d[SIZE], xhat[SIZE];
        statistics(c, t, part, &mean, &variance);
        const double r = 1 / sqrt(variance + epsilon);
        for (int i = 0; i < SIZE; ++i) {
            const size_t index = offset_of(c, part, i), own = parameter_of(c, part, i);
            const double dy = at(&t->diff_dst, index);
            xhat[i] = (at(&t->sum, index) - mean) * r;
            d[i] = dy * at(&t->scale, own);
            total += c->rms ? 0 : d[i], total_abs += c->rms ? 0 : fabs(d[i]);
            slope += d[i] * xhat[i], slope_abs += fabs(d[i] * xhat[i]);
            of_scale[own] += dy * xhat[i], of_shift[own] += dy;
        }
        for (int i = 0; i < SIZE; ++i) {
            const size_t index = offset_of(c, part, i);
            const double of_sum = at(&t->diff_sum, index);
            const double want = r * (d[i] - total / SIZE - xhat[i] * slope / SIZE) + of_sum;
            const double terms
                    = r * (fabs(d[i]) + total_abs / SIZE + fabs(xhat[i]) * slope_abs / SIZE);
            wrong += !close_to(at(&t->diff_src, index), want, terms + fabs(of_sum));
        }
    }
    for (size_t i = 0; i < (size_t)t->scale.cols; ++i)
        wrong += !close_to(at(&t->diff_scale, i), of_scale[i], 200)
                || !close_to(at(&t->diff_shift, i), of_shift[i], 200);
    return wrong;
}

static tensor_t tensor_of(const case_t *c, norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, c->ndims, c->dims, type, c->tag));
    return tensor_of_desc(desc, engine, NULL);
}

static void execute(norm_primitive_desc_t pd, int count, const norm_exec_arg_t *args) {
    norm_primitive_t primitive = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_execute(primitive, stream, count, args));
    MUST(norm_primitive_destroy(primitive));
}

/* Executes every implementation of both directions, and returns how many there were. */
static int both_directions(const case_t *c, tensors_t *t, norm_primitive_attr_t attr) {
    const unsigned flags = parameters | (c->rms ? (unsigned)norm_rms_norm : 0u);
    norm_primitive_desc_t forward = NULL, backward = NULL;
    int count = 0;
    if (c->ndims == 2) {
        MUST(norm_layer_normalization_forward_primitive_desc_create(&forward, engine,
                norm_forward_training, t->src.desc, t->dst.desc, NULL, epsilon, flags, attr));
        MUST(norm_layer_normalization_backward_primitive_desc_create(&backward, engine,
                norm_backward, t->diff_src.desc, t->diff_dst.desc, t->sum.desc, NULL, epsilon,
                flags, forward, attr));
    } else {
        MUST(norm_group_normalization_forward_primitive_desc_create(&forward, engine,
                norm_forward_training, t->src.desc, t->dst.desc, GROUPS, epsilon, flags, attr));
        MUST(norm_group_normalization_backward_primitive_desc_create(&backward, engine,
                norm_backward, t->diff_src.desc, t->diff_dst.desc, t->sum.desc, GROUPS, epsilon,
                flags, forward, attr));
    }
    const norm_exec_arg_t in[] = {{NORM_ARG_SRC, t->src.memory}, {NORM_ARG_DST, t->dst.memory},
            {NORM_ARG_RESIDUAL, t->residual.memory}, {NORM_ARG_RESIDUAL_DST, t->sum.memory},
            {NORM_ARG_SCALE, t->scale.memory}, {NORM_ARG_SHIFT, t->shift.memory},
            {NORM_ARG_VARIANCE, t->variance.memory}, {NORM_ARG_MEAN, t->mean.memory}};
    do {
        tensor_t *const written[] = {&t->dst, &t->sum, &t->mean, &t->variance};
        for (int i = 0; i < 4; ++i)
            memset(written[i]->data, TENSOR_FILL, written[i]->bytes);
        execute(forward, c->rms ? 7 : 8, in);
        EXPECT(wrong_forward(c, t) == 0);
        ++count;
    } while (norm_primitive_desc_next_impl(forward) == norm_success);
    const norm_exec_arg_t back[] = {{NORM_ARG_SRC, t->sum.memory},
            {NORM_ARG_DIFF_DST, t->diff_dst.memory}, {NORM_ARG_DIFF_SRC, t->diff_src.memory},
            {NORM_ARG_DIFF_RESIDUAL_DST, t->diff_sum.memory}, {NORM_ARG_SCALE, t->scale.memory},
            {NORM_ARG_DIFF_SCALE, t->diff_scale.memory},
            {NORM_ARG_DIFF_SHIFT, t->diff_shift.memory}, {NORM_ARG_VARIANCE, t->variance.memory},
            {NORM_ARG_MEAN, t->mean.memory}};
    do {
        tensor_t *const written[] = {&t->diff_src, &t->diff_scale, &t->diff_shift};
        for (int i = 0; i < 3; ++i)
            memset(written[i]->data, TENSOR_FILL, written[i]->bytes);
        execute(backward, c->rms ? 8 : 9, back);
        EXPECT(wrong_backward(c, t) == 0);
        ++count;
    } while (norm_primitive_desc_next_impl(backward) == norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    return count;
}

static void compare(const case_t *c) {
    uint64_t state = 11;
    const norm_dim_t channels[] = {c->ndims == 2 ? COLS : CHANNELS};
    const norm_dim_t stats[] = {c->ndims == 2 ? ROWS : SAMPLES, GROUPS};
    const int stat_ndims = c->ndims - 1;
    tensors_t t;
    t.src = tensor_of(c, norm_bf16), t.residual = tensor_of(c, norm_bf16);
    t.sum = tensor_of(c, norm_bf16), t.diff_sum = tensor_of(c, norm_bf16);
    t.dst = tensor_of(c, norm_f32), t.diff_dst = tensor_of(c, norm_f32);
    t.diff_src = tensor_of(c, norm_f32);
    tensor_t *const of_parts[] = {&t.mean, &t.variance};
    for (int i = 0; i < 2; ++i)
        *of_parts[i] = tensor_make(norm_f32, stat_ndims, stats, NULL, engine);
    tensor_t *const of_channels[] = {&t.scale, &t.shift, &t.diff_scale, &t.diff_shift};
    for (int i = 0; i < 4; ++i)
        *of_channels[i] = tensor_make(norm_f32, 1, channels, NULL, engine);
    /* Sums with more bits than bf16 has. */
    tensor_fill_random(&t.src, &state, -1, 1);
    tensor_fill_random(&t.residual, &state, 2, 7);
    tensor_fill_random(&t.scale, &state, 0.5, 2);
    tensor_fill_random(&t.shift, &state, -2, 2);
    tensor_fill_random(&t.diff_dst, &state, -2, 3);
    tensor_fill_random(&t.diff_sum, &state, -1, 2);
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_residual(
            attr, t.residual.desc, t.sum.desc, norm_residual_exact));
    snprintf(expect_case, sizeof expect_case, "%d dimensions, tag %d, rms %d", c->ndims,
            (int)c->tag, c->rms);
    /* Of group normalization also the reference. */
    EXPECT(both_directions(c, &t, attr) >= (c->ndims == 2 ? 2 : 4));
    expect_case[0] = 0;
    MUST(norm_primitive_attr_destroy(attr));
    tensor_t *const all[] = {&t.src, &t.residual, &t.sum, &t.dst, &t.mean, &t.variance, &t.scale,
            &t.shift, &t.diff_dst, &t.diff_sum, &t.diff_src, &t.diff_scale, &t.diff_shift};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        tensor_free(all[i]);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int i = 0; i < count; ++i) {
        MUST(norm_set_max_cpu_isa(levels[i]));
        for (int rms = 0; rms < 2; ++rms) {
            const case_t cases[] = {{2, {ROWS, COLS}, norm_ab, rms},
                    {3, {SAMPLES, CHANNELS, P}, norm_abc, rms},
                    {3, {SAMPLES, CHANNELS, P}, norm_acb, rms}};
            for (int j = 0; j < 3; ++j)
                compare(&cases[j]);
        }
    }
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("residual_exact");
}
