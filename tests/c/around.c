/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The steps around a layer normalization: a residual, gates, a partial norm, 1 +
 * scale, rounding before the scale, and dynamic scales. Forward is compared with
 * the formula in double on every level. Also attributes and queries.
 */
#include "levels.h"
#include "tensor.h"
#include "around.h"

#include <math.h>

/* Executes with f32 tensors; the descriptors are those of the primitive. */
static void execute(norm_primitive_desc_t pd, int count, const int *ids, void *const *data) {
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[12];
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
        EXPECT(desc != NULL);
        args[i].arg = ids[i];
        args[i].memory = NULL;
        MUST(norm_memory_create(&args[i].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = 0; i < count; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
}

static float src[COUNT], residual[COUNT], gate[COUNT], sum[COUNT], dst[COUNT],
        variance[ROWS], scale[COLS];

static double swish(double x, double alpha) {
    return x / (1 + exp(-alpha * x));
}

/* All of them: a residual, a gate, a partial norm and 1 + scale. */
static void compare(unsigned flags, int with_residual, int partial) {
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_VARIANCE, NORM_ARG_SCALE,
            NORM_ARG_GATE, NORM_ARG_RESIDUAL, NORM_ARG_RESIDUAL_DST};
    void *const data[] = {src, dst, variance, scale, gate, residual, sum};
    norm_primitive_attr_t attr = attributes();
    norm_memory_desc_t rows = rows_of(norm_f32);
    norm_primitive_desc_t pd = NULL;
    MUST(norm_primitive_attr_set_gate(attr, rows, norm_eltwise_swish, 1.5f));
    if (with_residual)
        MUST(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_rounded));
    MUST(norm_primitive_attr_set_partial_norm(attr, partial));
    MUST(forward(&pd, rows, rows, flags, attr));
    execute(pd, with_residual ? 7 : 5, ids, data);
    int wrong = 0;
    for (int r = 0; r < ROWS; ++r) {
        double x[COLS], squares = 0;
        for (int c = 0; c < COLS; ++c) {
            const int at = r * COLS + c;
            const float added = src[at] + residual[at];
            x[c] = with_residual ? added : src[at];
            wrong += with_residual && sum[at] != added;
            if (flags & norm_gate_input) x[c] *= swish(gate[at], 1.5);
            if (c < partial) squares += x[c] * x[c];
        }
        const double root = sqrt(squares / partial + epsilon);
        wrong += fabs(variance[r] - squares / partial) > 1e-6 * variance[r];
        for (int c = 0; c < COLS; ++c) {
            double y = x[c] / root * (1 + (double)scale[c]);
            if (flags & norm_gate_output) y *= swish(gate[r * COLS + c], 1.5);
            wrong += fabs(dst[r * COLS + c] - y) > 1e-6 * fabs(y) + 1e-30;
        }
    }
    snprintf(expect_case, sizeof expect_case, "flags %#x, residual %d, partial %d", flags,
            with_residual, partial);
    EXPECT(wrong == 0);
    expect_case[0] = 0;
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_primitive_attr_destroy(attr));
}

/* The largest element of a group becomes the largest of the type. */
static void compare_dynamic(norm_dim_t group) {
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_VARIANCE,
            NORM_ARG_ATTR_SCALES | NORM_ARG_DST};
    static signed char codes[COUNT];
    static float scales[COUNT];
    void *const data[] = {src, codes, variance, scales};
    const norm_dims_t groups = {1, group};
    norm_primitive_attr_t attr = attributes();
    norm_memory_desc_t rows = rows_of(norm_f32), bytes = rows_of(norm_s8);
    norm_primitive_desc_t pd = NULL;
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, groups, norm_f32, 0,
            norm_quantization_mode_dynamic_fp));
    MUST(forward(&pd, rows, bytes, norm_rms_norm, attr));
    execute(pd, 4, ids, data);
    int wrong = 0;
    for (int r = 0; r < ROWS; ++r) {
        double squares = 0;
        for (int c = 0; c < COLS; ++c)
            squares += (double)src[r * COLS + c] * src[r * COLS + c];
        const double root = sqrt(squares / COLS + epsilon);
        for (int g = 0; g < COLS / group; ++g) {
            double most = 0;
            const float found = scales[r * (COLS / group) + g];
            for (int c = 0; c < group; ++c)
                most = fmax(most, fabs(src[r * COLS + g * group + c] / root));
            /* A group of zeros has scale 1. */
            const double want = most == 0 ? 1 : most / 127;
            wrong += fabs(found - want) > 1e-6 * found;
            for (int c = 0; c < group; ++c) {
                const int at = r * COLS + (int)(g * group) + c;
                wrong += fabs(codes[at] - src[at] / root / found) > 0.5001;
            }
        }
    }
    EXPECT(wrong == 0);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(bytes));
    MUST(norm_primitive_attr_destroy(attr));
}

/* Scales of f8_e4m3 for rows whose results are `size` times larger, and for a row with an
 * infinity. */
static void compare_f8_scales(float size, unsigned char want) {
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_VARIANCE, NORM_ARG_SCALE,
            NORM_ARG_ATTR_SCALES | NORM_ARG_DST};
    static signed char codes[COUNT];
    static float rows_of_src[COUNT], sizes[COLS];
    unsigned char scales[ROWS];
    void *const data[] = {rows_of_src, codes, variance, sizes, scales};
    const norm_dims_t groups = {1, COLS};
    norm_primitive_attr_t attr = attributes();
    norm_memory_desc_t rows = rows_of(norm_f32), bytes = rows_of(norm_s8);
    norm_primitive_desc_t pd = NULL;
    memcpy(rows_of_src, src, sizeof src);
    rows_of_src[COLS] = INFINITY;
    for (int c = 0; c < COLS; ++c)
        sizes[c] = size;
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, groups, norm_f8_e4m3, 0,
            norm_quantization_mode_dynamic_fp));
    MUST(forward(&pd, rows, bytes, norm_rms_norm | norm_use_scale, attr));
    execute(pd, 5, ids, data);
    const double scale_of_row = element_get(norm_f8_e4m3, &want, 0);
    int wrong = 0;
    for (int r = 0; r < ROWS; ++r) {
        double squares = 0;
        for (int c = 0; c < COLS; ++c)
            squares += (double)src[r * COLS + c] * src[r * COLS + c];
        const double factor = size / sqrt(squares / COLS + epsilon) / scale_of_row;
        wrong += scales[r] != (r == 1 ? 0x7F : want);
        for (int c = 0; r != 1 && c < COLS; ++c) {
            const double code = fmax(-128, fmin(src[r * COLS + c] * factor, 127));
            wrong += fabs(codes[r * COLS + c] - code) > 0.5001;
        }
    }
    EXPECT(wrong == 0);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(bytes));
    MUST(norm_primitive_attr_destroy(attr));
}

static void attributes_are_kept(void) {
    norm_primitive_attr_t attr = attributes(), copy = NULL;
    norm_memory_desc_t f32 = rows_of(norm_f32), bf16 = rows_of(norm_bf16);
    const_norm_memory_desc_t first = f32, second = f32;
    norm_residual_rounding_t rounding = norm_residual_exact;
    norm_alg_kind_t alg = norm_eltwise_relu;
    float alpha = 3;
    norm_dim_t elements = 3;
    MUST(norm_primitive_attr_get_residual(attr, &first, &second, &rounding));
    EXPECT(first == NULL && second == NULL && rounding == norm_residual_rounded);
    MUST(norm_primitive_attr_get_gate(attr, &first, &alg, &alpha));
    EXPECT(first == NULL && alg == norm_alg_kind_undef && alpha == 0);
    MUST(norm_primitive_attr_get_partial_norm(attr, &elements));
    EXPECT(elements == 0);
    MUST(norm_primitive_attr_set_residual(attr, bf16, f32, norm_residual_exact));
    MUST(norm_primitive_attr_set_gate(attr, bf16, norm_eltwise_logistic, 0));
    MUST(norm_primitive_attr_set_partial_norm(attr, 20));
    MUST(norm_primitive_attr_clone(&copy, attr));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_primitive_attr_get_residual(copy, &first, &second, &rounding));
    EXPECT(norm_memory_desc_equal(first, bf16) && norm_memory_desc_equal(second, f32));
    EXPECT(rounding == norm_residual_exact);
    MUST(norm_primitive_attr_get_gate(copy, &first, &alg, &alpha));
    EXPECT(norm_memory_desc_equal(first, bf16) && alg == norm_eltwise_logistic);
    MUST(norm_primitive_attr_get_partial_norm(copy, &elements));
    EXPECT(elements == 20);
    MUST(norm_primitive_attr_set_residual(copy, NULL, NULL, norm_residual_rounded));
    MUST(norm_primitive_attr_set_gate(copy, NULL, norm_alg_kind_undef, 0));
    MUST(norm_primitive_attr_set_partial_norm(copy, 0));
    MUST(norm_primitive_attr_get_partial_norm(copy, &elements));
    EXPECT(elements == 0);
    /* Without rms_norm, a partial norm would be refused. */
    norm_primitive_desc_t pd = NULL;
    MUST(forward(&pd, f32, f32, 0, copy));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_get_residual(copy, &first, &second, &rounding));
    EXPECT(first == NULL && second == NULL);
    MUST(norm_primitive_attr_get_gate(copy, &first, NULL, NULL));
    EXPECT(first == NULL);
    MUST(norm_primitive_attr_destroy(copy));
    MUST(norm_memory_desc_destroy(f32));
    MUST(norm_memory_desc_destroy(bf16));
}

static void run_level(void) {
    const unsigned flags = norm_rms_norm | norm_use_scale | norm_scale_plus_one;
    for (int partial = 1; partial <= COLS; partial += 41) {
        for (int with_residual = 0; with_residual < 2; ++with_residual) {
            compare(flags | norm_gate_input, with_residual, partial);
            compare(flags | norm_gate_output, with_residual, partial);
        }
    }
    compare_dynamic(1);
    compare_dynamic(COLS);
    /* The smallest number of the type, and the largest. */
    compare_f8_scales(0.046f, 0x01);
    compare_f8_scales(1e5f, 0x7E);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int i = 0; i < COUNT; ++i) {
        src[i] = (float)((i * 37 % 101) - 50) / 16;
        residual[i] = (float)((i * 53 % 97) - 48) / 64;
        gate[i] = (float)((i * 29 % 89) - 44) / 8;
    }
    for (int c = 0; c < COLS; ++c)
        scale[c] = (float)(c % 13 - 6) / 8;
    attributes_are_kept();
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int i = 0; i < count; ++i) {
        MUST(norm_set_max_cpu_isa(levels[i]));
        run_level();
    }
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("around");
}
