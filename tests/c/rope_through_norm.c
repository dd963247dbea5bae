/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Backward of rope through the normalization of heads at every level. It has the bits
 * of three primitives one after another: layer normalization forward for the variance,
 * rope backward to f32, and layer normalization backward. Also finite differences of
 * forward, in place, and refusals.
 */
#include "arguments.h"
#include "levels.h"
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { T = 37, H = 5, D = 64, R = 48, PAIRS = R / 2 };
static const norm_dim_t dims[] = {T, H, D}, position_dims[] = {T, 1}, row_dims[] = {D};
static const float epsilon = 1e-5f;
static double frequencies[PAIRS];
static int positions[T];
static norm_memory_desc_t at;

/* Runs a primitive and destroys its descriptor. */
static void run(norm_primitive_desc_t pd, int count, const argument_t *arguments) {
    MUST(execute_with(pd, engine, stream, count, arguments));
    MUST(norm_primitive_desc_destroy(pd));
}

static norm_primitive_desc_t backward_of(norm_rope_pairing_t pairing, const tensor_t *diff_src,
        const tensor_t *diff_dst, const tensor_t *src, const tensor_t *scale,
        const tensor_t *diff_scale, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    MUST(norm_rope_backward_primitive_desc_create(&pd, engine, pairing, norm_rope_from_frequencies,
            diff_src->desc, diff_dst->desc, src == NULL ? NULL : src->desc, at, -1, NULL,
            scale == NULL ? NULL : scale->desc, diff_scale == NULL ? NULL : diff_scale->desc, R, 1,
            0, NULL, epsilon, flags, NULL, NULL));
    return pd;
}

/* All tensors of a problem. `type` is the type of src and diff_src, `other` that of diff_dst. */
typedef struct {
    tensor_t src, diff_dst, diff_src, want, middle, scale, diff_scale, want_scale, variance, unused;
} problem_t;

static problem_t problem_of(norm_data_type_t type, norm_data_type_t other, float unit) {
    problem_t p;
    uint64_t state = 11;
    p.src = tensor_make(type, 3, dims, NULL, engine);
    p.diff_dst = tensor_make(other, 3, dims, NULL, engine);
    p.diff_src = tensor_make(type, 3, dims, NULL, engine);
    p.want = tensor_make(type, 3, dims, NULL, engine);
    p.middle = tensor_make(norm_f32, 3, dims, NULL, engine);
    p.unused = tensor_make(norm_f32, 3, dims, NULL, engine);
    p.scale = tensor_make(other, 1, row_dims, NULL, engine);
    p.diff_scale = tensor_make(norm_f32, 1, row_dims, NULL, engine);
    p.want_scale = tensor_make(norm_f32, 1, row_dims, NULL, engine);
    p.variance = tensor_make(norm_f32, 2, dims, NULL, engine);
    tensor_fill_random(&p.src, &state, -unit, unit);
    tensor_fill_random(&p.diff_dst, &state, -2, 2);
    tensor_fill_random(&p.scale, &state, -2, 2);
    for (size_t col = 0; col < D; ++col) tensor_set(&p.src, 4, col, 0);
    return p;
}

static void problem_free(problem_t *p) {
    tensor_t *const all[] = {&p->src, &p->diff_dst, &p->diff_src, &p->want, &p->middle, &p->scale,
            &p->diff_scale, &p->want_scale, &p->variance, &p->unused};
    for (int i = 0; i < 10; ++i) tensor_free(all[i]);
}

static void in_three_steps(
        norm_rope_pairing_t pairing, norm_data_type_t type, norm_data_type_t other, unsigned flags, float unit) {
    snprintf(expect_case, sizeof expect_case, "pairing %#x, %s, %s, %#x, %g", (unsigned)pairing,
            norm_dt2str(type), norm_dt2str(other), flags, (double)unit);
    problem_t p = problem_of(type, other, unit);
    const int scaled = (flags & norm_use_scale) != 0;
    const unsigned own = flags & ~(unsigned)norm_rope_norm_rounded;
    norm_primitive_desc_t forward = NULL, gradient = NULL;
    MUST(norm_layer_normalization_forward_primitive_desc_create(&forward, engine,
            norm_forward_training, p.src.desc, p.unused.desc, p.variance.desc, epsilon,
            norm_rms_norm, NULL));
    const argument_t first[] = {{NORM_ARG_SRC, p.src.data}, {NORM_ARG_DST, p.unused.data},
            {NORM_ARG_VARIANCE, p.variance.data}};
    run(forward, 3, first);
    const argument_t second[] = {{NORM_ARG_DIFF_DST, p.diff_dst.data},
            {NORM_ARG_DIFF_SRC, p.middle.data}, {NORM_ARG_POSITIONS, positions},
            {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    run(backward_of(pairing, &p.middle, &p.diff_dst, NULL, NULL, NULL, 0), 4, second);
    MUST(norm_layer_normalization_backward_primitive_desc_create_v2(&gradient, engine,
            norm_backward, p.want.desc, p.middle.desc, p.src.desc, p.variance.desc, norm_f32, other,
            epsilon, own, NULL, NULL));
    const argument_t third[] = {{NORM_ARG_SRC, p.src.data}, {NORM_ARG_DIFF_DST, p.middle.data},
            {NORM_ARG_VARIANCE, p.variance.data}, {NORM_ARG_DIFF_SRC, p.want.data},
            {NORM_ARG_SCALE, p.scale.data}, {NORM_ARG_DIFF_SCALE, p.want_scale.data}};
    run(gradient, scaled ? 6 : 4, third);
    const argument_t once[] = {{NORM_ARG_DIFF_DST, p.diff_dst.data}, {NORM_ARG_SRC, p.src.data},
            {NORM_ARG_DIFF_SRC, p.diff_src.data}, {NORM_ARG_POSITIONS, positions},
            {NORM_ARG_ROPE_FREQUENCIES, frequencies}, {NORM_ARG_SCALE, p.scale.data},
            {NORM_ARG_DIFF_SCALE, p.diff_scale.data}};
    const tensor_t *of_scale = scaled ? &p.scale : NULL;
    run(backward_of(pairing, &p.diff_src, &p.diff_dst, &p.src, of_scale,
                scaled ? &p.diff_scale : NULL, flags),
            scaled ? 7 : 5, once);
    EXPECT(tensor_same_bits(&p.diff_src, &p.want));
    if (scaled) EXPECT(tensor_same_bits(&p.diff_scale, &p.want_scale));
    /* Without the gradient of the scale, and with diff_src in place of src. */
    argument_t shared[6];
    memcpy(shared, once, sizeof shared);
    shared[2].data = p.src.data;
    run(backward_of(pairing, &p.diff_src, &p.diff_dst, &p.src, of_scale, NULL, flags),
            scaled ? 6 : 5, shared);
    EXPECT(tensor_same_bits(&p.src, &p.want));
    problem_free(&p);
}

/* The sum of dst * diff_dst changes with an element of src as the gradient says. */
static void differences(norm_rope_pairing_t pairing) {
    snprintf(expect_case, sizeof expect_case, "differences, pairing %#x", (unsigned)pairing);
    problem_t p = problem_of(norm_f32, norm_f32, 2);
    const unsigned flags = norm_rms_norm | norm_use_scale | norm_scale_plus_one;
    const argument_t back[] = {{NORM_ARG_DIFF_DST, p.diff_dst.data}, {NORM_ARG_SRC, p.src.data},
            {NORM_ARG_DIFF_SRC, p.diff_src.data}, {NORM_ARG_POSITIONS, positions},
            {NORM_ARG_ROPE_FREQUENCIES, frequencies}, {NORM_ARG_SCALE, p.scale.data}};
    run(backward_of(pairing, &p.diff_src, &p.diff_dst, &p.src, &p.scale, NULL, flags), 6, back);
    for (size_t col = 0; col < D; col += 9) {
        const size_t row = 5 * col % (T * H);
        const double x = tensor_get(&p.src, row, col), step = 1. / 64;
        double loss[2];
        for (int side = 0; side < 2; ++side) {
            norm_primitive_desc_t pd = NULL;
            tensor_set(&p.src, row, col, x + (side ? step : -step));
            MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_training, pairing,
                    norm_rope_from_frequencies, p.src.desc, p.middle.desc, at, -1, NULL,
                    p.scale.desc, R, 1, 0, NULL, epsilon, flags, NULL));
            const argument_t there[] = {{NORM_ARG_SRC, p.src.data}, {NORM_ARG_DST, p.middle.data},
                    {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies},
                    {NORM_ARG_SCALE, p.scale.data}};
            run(pd, 5, there);
            loss[side] = 0;
            for (size_t c = 0; c < D; ++c)
                loss[side] += tensor_get(&p.middle, row, c) * tensor_get(&p.diff_dst, row, c);
        }
        tensor_set(&p.src, row, col, x);
        const double slope = (loss[1] - loss[0]) / (2 * step);
        EXPECT(fabs(slope - tensor_get(&p.diff_src, row, col)) < 2e-3);
    }
    problem_free(&p);
}

static void refused(void) {
    norm_primitive_desc_t pd = NULL;
    const norm_dim_t others[] = {T, H, D + 2}, other_row[] = {D + 2};
    tensor_t x = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t wrong = tensor_make(norm_f32, 3, others, NULL, engine);
    tensor_t row = tensor_make(norm_f32, 1, row_dims, NULL, engine);
    tensor_t long_row = tensor_make(norm_f32, 1, other_row, NULL, engine);
    tensor_t bytes = tensor_make(norm_s8, 3, dims, NULL, engine);
    const unsigned rms = norm_rms_norm, scaled = norm_rms_norm | norm_use_scale;
#define BACKWARD(status, parameter, diff_src, src, scale, diff_scale, epsilon, flags) \
    REFUSED(status, parameter, norm_rope_backward_primitive_desc_create, \
            (&pd, engine, norm_rope_half_split, norm_rope_from_frequencies, diff_src, x.desc, src, at, \
                    -1, NULL, scale, diff_scale, R, 1, 0, NULL, epsilon, flags, NULL, NULL))
    const norm_status_t invalid = norm_invalid_arguments, missing = norm_unimplemented;
    BACKWARD(invalid, "src_desc", x.desc, x.desc, NULL, NULL, 0, 0);
    BACKWARD(invalid, "src_desc", x.desc, NULL, NULL, NULL, 0, rms);
    BACKWARD(invalid, "src_desc", x.desc, wrong.desc, NULL, NULL, 0, rms);
    BACKWARD(missing, "src_desc", x.desc, bytes.desc, NULL, NULL, 0, rms);
    BACKWARD(invalid, "diff_src_desc", wrong.desc, x.desc, NULL, NULL, 0, rms);
    BACKWARD(missing, "diff_src_desc", bytes.desc, x.desc, NULL, NULL, 0, rms);
    BACKWARD(invalid, "scale_desc", x.desc, x.desc, NULL, NULL, 0, scaled);
    BACKWARD(invalid, "scale_desc", x.desc, x.desc, row.desc, NULL, 0, rms);
    BACKWARD(invalid, "scale_desc", x.desc, x.desc, long_row.desc, NULL, 0, scaled);
    BACKWARD(invalid, "diff_scale_desc", x.desc, x.desc, NULL, row.desc, 0, rms);
    BACKWARD(invalid, "diff_scale_desc", x.desc, NULL, NULL, row.desc, 0, 0);
    BACKWARD(invalid, "diff_scale_desc", x.desc, x.desc, row.desc, long_row.desc, 0, scaled);
    BACKWARD(invalid, "epsilon", x.desc, x.desc, NULL, NULL, -1, rms);
    BACKWARD(invalid, "flags", x.desc, x.desc, NULL, NULL, 0, rms | norm_write_slots);
    BACKWARD(invalid, "flags", x.desc, x.desc, NULL, NULL, 0, rms | norm_scale_plus_one);
    tensor_free(&x), tensor_free(&wrong), tensor_free(&row), tensor_free(&long_row);
    tensor_free(&bytes);
}

int main(void) {
    static const norm_data_type_t types[][2] = {{norm_f32, norm_f32}, {norm_bf16, norm_bf16},
            {norm_bf16, norm_f32}, {norm_f16, norm_f16}};
    static const unsigned flags[] = {norm_rms_norm, norm_rms_norm | norm_use_scale,
            norm_rms_norm | norm_use_scale | norm_scale_plus_one | norm_rope_norm_rounded};
    float magnitude = 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_memory_desc_create_with_strides(&at, 2, position_dims, norm_s32, NULL));
    MUST(norm_rope_frequencies(norm_rope_scaling_none, R, 10000, 0, NULL, frequencies, &magnitude));
    for (int t = 0; t < T; ++t) positions[t] = t * t * 97;
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        for (unsigned p = norm_rope_interleaved; p <= norm_rope_half_split_of_head; ++p) {
            const norm_rope_pairing_t pairing = (norm_rope_pairing_t)p;
            for (int f = 0; f < 3; ++f) {
                for (int t = 0; t < 4; ++t)
                    in_three_steps(pairing, types[t][0], types[t][1], flags[f], 3);
                /* Squares that overflow or vanish in f32. */
                in_three_steps(pairing, norm_f32, norm_f32, flags[f], 1e25f);
                in_three_steps(pairing, norm_bf16, norm_f32, flags[f], 1e-25f);
            }
            differences(pairing);
        }
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    refused();
    MUST(norm_memory_desc_destroy(at));
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope_through_norm");
}
