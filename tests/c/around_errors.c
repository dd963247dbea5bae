/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Refusals of the steps around a layer normalization: residuals, gates, partial norms,
 * dynamic scales and their flags, in creation and execution.
 */
#include "refused.h"
#include "around.h"

#include <math.h>

/* Expects the last error message to contain a text. */
#define SAYS(text) EXPECT(strstr(norm_get_last_error(), text) != NULL)

/* Expects the constructor to refuse `flags` with attributes. */
#define REFUSED_FORWARD(want, parameter, flags, attr) \
    do { \
        norm_primitive_desc_t pd_ = UNTOUCHED; \
        REFUSED(want, parameter, norm_layer_normalization_forward_primitive_desc_create, \
                (&pd_, engine, norm_forward_training, rows, rows, NULL, epsilon, flags, attr)); \
        EXPECT(pd_ == UNTOUCHED); \
    } while (0)

static void mistakes_are_refused(void) {
    const norm_dim_t other_dims[] = {ROWS, COLS + 1};
    norm_memory_desc_t rows = rows_of(norm_f32), bytes = rows_of(norm_s8), other = NULL;
    norm_primitive_attr_t attr = attributes();
    const unsigned rms = norm_rms_norm;
    MUST(norm_memory_desc_create_with_tag(&other, 2, other_dims, norm_f32, norm_ab));
    INVALID("rounding", norm_primitive_attr_set_residual, (attr, rows, rows, 7));
    INVALID("residual_desc", norm_primitive_attr_set_residual, (attr, NULL, rows, norm_residual_rounded));
    REFUSED(norm_unimplemented, "residual_desc", norm_primitive_attr_set_residual,
            (attr, bytes, rows, norm_residual_rounded));
    INVALID("alg_kind", norm_primitive_attr_set_gate, (attr, rows, norm_eltwise_relu, 0));
    INVALID("alpha", norm_primitive_attr_set_gate, (attr, rows, norm_eltwise_swish, INFINITY));
    INVALID("elements", norm_primitive_attr_set_partial_norm, (attr, -1));

    REFUSED_FORWARD(norm_invalid_arguments, "flags", rms | norm_gate_output, attr);
    REFUSED_FORWARD(norm_invalid_arguments, "flags", rms | norm_scale_plus_one, attr);
    REFUSED_FORWARD(norm_invalid_arguments, "flags", 1U << 30, attr);
    MUST(norm_primitive_attr_set_gate(attr, rows, norm_eltwise_swish, 1));
    REFUSED_FORWARD(norm_invalid_arguments, "attr", rms, attr);
    REFUSED_FORWARD(norm_invalid_arguments, "flags", norm_gate_input | norm_gate_output, attr);
    MUST(norm_primitive_attr_set_gate(attr, other, norm_eltwise_swish, 1));
    REFUSED_FORWARD(norm_invalid_arguments, "gate_desc", rms | norm_gate_output, attr);
    MUST(norm_primitive_attr_set_gate(attr, NULL, norm_alg_kind_undef, 0));
    MUST(norm_primitive_attr_set_residual(attr, other, rows, norm_residual_rounded));
    REFUSED_FORWARD(norm_invalid_arguments, "residual_desc", rms, attr);
    MUST(norm_primitive_attr_set_residual(attr, rows, other, norm_residual_rounded));
    REFUSED_FORWARD(norm_invalid_arguments, "sum_desc", rms, attr);
    MUST(norm_primitive_attr_set_residual(attr, NULL, NULL, norm_residual_rounded));
    MUST(norm_primitive_attr_set_partial_norm(attr, COLS + 1));
    REFUSED_FORWARD(norm_invalid_arguments, "attr", rms, attr);
    MUST(norm_primitive_attr_set_partial_norm(attr, COLS));
    REFUSED_FORWARD(norm_invalid_arguments, "attr", 0, attr);
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(other));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(bytes));
}

static void dynamic_mistakes_are_refused(void) {
    const norm_dims_t seven = {1, 7};
    norm_memory_desc_t rows = rows_of(norm_f32), bytes = rows_of(norm_s8);
    norm_primitive_attr_t attr = attributes();
    norm_primitive_desc_t pd = UNTOUCHED;
    INVALID("qmode", norm_primitive_attr_set_scales_v3,
            (attr, NORM_ARG_DST, 3, 2, seven, norm_f32, 0, 9));
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, seven, norm_f32, 0,
            norm_quantization_mode_dynamic_fp));
    /* 7 does not divide 83. */
    INVALID("attr", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_training, rows, bytes, NULL, epsilon, 0, attr));
    SAYS("groups of 7 do not divide the 83 elements of a row");
    const norm_dims_t both = {ROWS, COLS};
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, both, norm_f32, 0,
            norm_quantization_mode_dynamic_fp));
    REFUSED(norm_unimplemented, "attr", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_training, rows, bytes, NULL, epsilon, 0, attr));
    const norm_dims_t row = {1, COLS};
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, row, norm_f32, 0,
            norm_quantization_mode_dynamic_fp));
    REFUSED(norm_unimplemented, "dst_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_training, rows, rows, NULL, epsilon, 0, attr));
    EXPECT(pd == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(bytes));
}

/* A request for scales of dst, perhaps with zero points for groups of `points`, and the refusal. */
typedef struct {
    norm_status_t want;
    norm_data_type_t dst, scale;
    norm_quantization_mode_t mode;
    norm_dim_t points;
    const char *sentence;
} scales_t;

static void scales_of_other_kinds_are_refused(void) {
    const norm_quantization_mode_t fp = norm_quantization_mode_dynamic_fp,
                                   mx = norm_quantization_mode_dynamic_mx,
                                   fixed = norm_quantization_mode_static_sazp;
    const char *const symmetric = "zero points of DST are computed for u8; other types are symmetric";
    const char *const powers
            = "dynamic_mx scales are e8m0, for groups of 32 elements of f8_e4m3 or f8_e5m2";
    const scales_t all[] = {
            {norm_unimplemented, norm_s8, norm_f32, fp, COLS, symmetric},
            {norm_unimplemented, norm_f8_e4m3, norm_f32, fp, COLS, symmetric},
            {norm_unimplemented, norm_f8_e5m2, norm_f32, fp, COLS, symmetric},
            {norm_invalid_arguments, norm_u8, norm_f32, fp, 1,
                    "the zero points of DST need the mask and groups of its scales"},
            {norm_unimplemented, norm_f8_e4m3, norm_f32, mx, 0, powers},
            {norm_unimplemented, norm_f8_e4m3, norm_e8m0, mx, 0, powers}, /* groups of 83 */
            {norm_unimplemented, norm_s8, norm_bf16, fp, 0,
                    "dynamic_fp scales are f32 or f8_e4m3, not bf16"},
            {norm_unimplemented, norm_s8, norm_e8m0, fp, 0,
                    "dynamic_fp scales are f32 or f8_e4m3, not e8m0"},
            {norm_unimplemented, norm_s8, norm_f32, fixed, 0,
                    "does not support a scale per group for DST unless it is dynamic"},
    };
    norm_memory_desc_t rows = rows_of(norm_f32);
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        const norm_dims_t group = {1, COLS}, points = {1, all[i].points};
        norm_memory_desc_t dst = rows_of(all[i].dst);
        norm_primitive_attr_t attr = attributes();
        norm_primitive_desc_t pd = UNTOUCHED;
        MUST(norm_primitive_attr_set_scales_v3(
                attr, NORM_ARG_DST, 3, 2, group, all[i].scale, 0, all[i].mode));
        if (all[i].points > 0)
            MUST(norm_primitive_attr_set_zero_points(attr, NORM_ARG_DST, 3, 2, points, norm_s32));
        REFUSED(all[i].want, "attr", norm_layer_normalization_forward_primitive_desc_create,
                (&pd, engine, norm_forward_training, rows, dst, NULL, epsilon, 0, attr));
        SAYS(all[i].sentence);
        EXPECT(pd == UNTOUCHED);
        MUST(norm_primitive_attr_destroy(attr));
        MUST(norm_memory_desc_destroy(dst));
    }
    MUST(norm_memory_desc_destroy(rows));
}

/* The steps are computed in f32, so each is refused if src or dst is f64. */
static void steps_in_f64_are_refused(norm_data_type_t src_type, norm_data_type_t dst_type) {
    const unsigned rms = norm_rms_norm, rounds = rms | norm_use_scale | norm_round_before_scale;
    norm_memory_desc_t rows = rows_of(norm_f32), from = rows_of(src_type), to = rows_of(dst_type);
    norm_primitive_desc_t pd = UNTOUCHED;
    for (int step = 0; step < 4; ++step) {
        norm_primitive_attr_t attr = attributes();
        if (step == 1)
            MUST(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_rounded));
        if (step == 2) MUST(norm_primitive_attr_set_gate(attr, rows, norm_eltwise_swish, 1));
        if (step == 3) MUST(norm_primitive_attr_set_partial_norm(attr, 1));
        const unsigned flags = step == 0 ? rounds : step == 2 ? rms | norm_gate_output : rms;
        REFUSED(norm_unimplemented, "attr", norm_layer_normalization_forward_primitive_desc_create,
                (&pd, engine, norm_forward_training, from, to, NULL, epsilon, flags, attr));
        SAYS("a residual, a gate, a partial norm and round_before_scale are computed in f32, and a "
             "tensor is f64");
        MUST(norm_primitive_attr_destroy(attr));
    }
    EXPECT(pd == UNTOUCHED);
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(from));
    MUST(norm_memory_desc_destroy(to));
}

/* An execution without one of the arguments that the attributes add. */
static void missing_arguments_are_refused(void) {
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_VARIANCE, NORM_ARG_RESIDUAL,
            NORM_ARG_RESIDUAL_DST, NORM_ARG_GATE, NORM_ARG_ATTR_SCALES | NORM_ARG_DST};
    const char *const names[] = {"NORM_ARG_SRC", "NORM_ARG_DST", "NORM_ARG_VARIANCE",
            "NORM_ARG_RESIDUAL", "NORM_ARG_RESIDUAL_DST", "NORM_ARG_GATE", "NORM_ARG_ATTR_SCALES"};
    enum { ALL = sizeof ids / sizeof *ids };
    static signed char codes[COUNT];
    static float src[COUNT], residual[COUNT], sum[COUNT], gate[COUNT];
    float variance[ROWS], scales[ROWS];
    void *const data[ALL] = {src, codes, variance, residual, sum, gate, scales};
    const norm_dims_t row = {1, COLS};
    norm_memory_desc_t rows = rows_of(norm_f32), bytes = rows_of(norm_s8);
    norm_primitive_attr_t attr = attributes();
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[ALL], others[ALL - 1];
    MUST(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_rounded));
    MUST(norm_primitive_attr_set_gate(attr, rows, norm_eltwise_swish, 1));
    MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 3, 2, row, norm_f32, 0,
            norm_quantization_mode_dynamic_fp));
    MUST(forward(&pd, rows, bytes, norm_rms_norm | norm_gate_output, attr));
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < ALL; ++i) {
        args[i].arg = ids[i];
        args[i].memory = NULL;
        MUST(norm_memory_create(&args[i].memory,
                norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]), engine, data[i]));
    }
    memset(codes, 77, sizeof codes);
    for (int missing = 0; missing < ALL; ++missing) {
        for (int i = 0; i < ALL - 1; ++i)
            others[i] = args[i < missing ? i : i + 1];
        INVALID(names[missing], norm_primitive_execute, (primitive, stream, ALL - 1, others));
        EXPECT(codes[0] == 77);
    }
    MUST(norm_primitive_execute(primitive, stream, ALL, args));
    for (int i = 0; i < ALL; ++i)
        MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(bytes));
}

static void backward_mistakes_are_refused(void) {
    norm_memory_desc_t rows = rows_of(norm_f32), half = rows_of(norm_bf16);
    norm_primitive_attr_t attr = attributes(), none = attributes();
    norm_primitive_desc_t hint = NULL, pd = UNTOUCHED;
    const unsigned flags = norm_rms_norm | norm_use_scale;
    MUST(forward(&hint, rows, rows, flags | norm_scale_plus_one, none));
    INVALID("flags", norm_layer_normalization_backward_primitive_desc_create,
            (&pd, engine, norm_backward, rows, rows, rows, NULL, epsilon, flags, hint, none));
    SAYS("hint_fwd_pd was created with scale_plus_one, too");
    norm_primitive_desc_t softmax = NULL;
    MUST(norm_softmax_forward_primitive_desc_create(&softmax, engine, norm_forward_training,
            norm_softmax_accurate, rows, rows, 1, NULL));
    INVALID("hint_fwd_pd", norm_layer_normalization_backward_primitive_desc_create,
            (&pd, engine, norm_backward, rows, rows, rows, NULL, epsilon, flags, softmax, none));
    MUST(norm_primitive_desc_destroy(softmax));
    MUST(norm_primitive_attr_set_residual(attr, rows, NULL, norm_residual_rounded));
    INVALID("attr", norm_layer_normalization_backward_primitive_desc_create,
            (&pd, engine, norm_backward, rows, rows, rows, NULL, epsilon, flags, NULL, attr));
    MUST(norm_primitive_attr_set_residual(attr, rows, half, norm_residual_rounded));
    INVALID("src_desc", norm_layer_normalization_backward_primitive_desc_create,
            (&pd, engine, norm_backward, rows, rows, rows, NULL, epsilon, flags, NULL, attr));
    EXPECT(pd == UNTOUCHED);
    MUST(norm_primitive_desc_destroy(hint));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_primitive_attr_destroy(none));
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(half));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    mistakes_are_refused();
    dynamic_mistakes_are_refused();
    scales_of_other_kinds_are_refused();
    steps_in_f64_are_refused(norm_f64, norm_f32);
    steps_in_f64_are_refused(norm_f32, norm_f64);
    missing_arguments_are_refused();
    backward_mistakes_are_refused();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("around_errors");
}
