/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What error messages tell beside the parameter: the accepted values, what an argument
 * should be, and what to do instead.
 */
#include "refused.h"

static norm_engine_t engine;
static norm_stream_t stream;

enum { ROWS = 3, COLS = 5 };

static norm_memory_desc_t desc_of(int ndims, const norm_dim_t *dims) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, norm_f32, NULL));
    return desc;
}

static void says(int line, const char *words) {
    snprintf(expect_case, sizeof expect_case, "%s", words);
    expect_that(strstr(norm_get_last_error(), words) != NULL, "sentences, on line", line,
            "the sentence has these words");
}
#define SAYS(words) says(__LINE__, words)

static void enumerators_are_listed(void) {
    const norm_dim_t dims[] = {1, 2, ROWS, 8};
    norm_memory_desc_t desc = desc_of(4, dims);
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = UNTOUCHED;
    MUST(norm_primitive_attr_create(&attr));
    INVALID("rounding", norm_primitive_attr_set_residual,
            (attr, desc, NULL, (norm_residual_rounding_t)77));
    SAYS("77 is none of norm_residual_rounded, norm_residual_exact");
    INVALID("mode", norm_primitive_attr_set_scratchpad_mode,
            (attr, (norm_scratchpad_mode_t)77));
    SAYS("norm_scratchpad_mode_library, norm_scratchpad_mode_user");
    INVALID("arg", norm_primitive_attr_set_scales_mask, (attr, NORM_ARG_SCALE, 0));
    SAYS("NORM_ARG_SRC, NORM_ARG_DST and NORM_ARG_WEIGHTS can");
    INVALID("arg", norm_primitive_attr_set_rounding,
            (attr, NORM_ARG_SRC, norm_rounding_mode_stochastic));
    SAYS("NORM_ARG_DST and NORM_ARG_DIFF_SRC can");
    INVALID("window_kind", norm_sdpa_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, desc, desc, desc, desc, NULL, NULL,
                    norm_attn_mask_undef, (norm_attn_window_t)77, 0, 0, 1.0f, 0.0f, 0, NULL));
    SAYS("77 is none of norm_window_none, norm_window_with_self");
    INVALID("flags", norm_sdpa_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, desc, desc, desc, desc, NULL, NULL,
                    norm_attn_mask_undef, norm_window_none, 0, 0, 1.0f, 0.0f, 1u << 31, NULL));
    SAYS("0x80000000 is not among norm_sdpa_sinks, norm_sdpa_alibi");
    EXPECT(pd == UNTOUCHED);
    double frequencies[4];
    INVALID("scaling", norm_rope_frequencies,
            ((norm_rope_scaling_t)77, 8, 1e4, 0, NULL, frequencies, NULL));
    SAYS("77 is none of norm_rope_scaling_none, norm_rope_scaling_linear");
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(desc));
}

static void shapes_are_told(void) {
    const norm_dim_t row[] = {COLS}, many[] = {1, 1, 1, 1, 1, COLS};
    norm_memory_desc_t line = desc_of(1, row), six = desc_of(6, many), none = NULL;
    norm_primitive_desc_t pd = UNTOUCHED;
    INVALID("src_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, line, line, NULL, 1e-5f, 0, NULL));
    SAYS("a single row of C elements is {1, C}");
    INVALID("src_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, six, six, NULL, 1e-5f, 0, NULL));
    SAYS("more than 5 dimensions");
    MUST(norm_memory_desc_create_with_strides(&none, 0, row, norm_f32, NULL));
    INVALID("src_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, none, none, NULL, 1e-5f, 0, NULL));
    SAYS("an empty descriptor");
    EXPECT(pd == UNTOUCHED);
    MUST(norm_memory_desc_destroy(none));
    MUST(norm_memory_desc_destroy(line));
    MUST(norm_memory_desc_destroy(six));
}

/* A missing argument: whether it is read or written, its type and its dimensions. */
static void arguments_are_described(void) {
    const norm_dim_t dims[] = {ROWS, COLS};
    norm_memory_desc_t desc = desc_of(2, dims);
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_memory_t memory = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_v2(attr, NORM_ARG_DST, 0, 0, NULL, norm_f32, 1));
    MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
            norm_forward_training, desc, desc, NULL, 1e-5f, norm_use_scale, attr));
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_memory_create(&memory, desc, engine, NORM_MEMORY_ALLOCATE));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory}, {NORM_ARG_DST, memory},
            {NORM_ARG_MEAN, memory}, {NORM_ARG_VARIANCE, memory}, {NORM_ARG_SCALE, memory}};
    INVALID("NORM_ARG_DST", norm_primitive_execute, (primitive, stream, 1, args));
    SAYS("missing; it is an output, f32 of 3x5");
    INVALID("NORM_ARG_MEAN", norm_primitive_execute, (primitive, stream, 2, args));
    SAYS("missing; it is an output, f32 of 3");
    INVALID("NORM_ARG_SCALE", norm_primitive_execute, (primitive, stream, 4, args));
    SAYS("missing; it is an input, f32 of 5");
    INVALID("NORM_ARG_ATTR_SCALES", norm_primitive_execute, (primitive, stream, 5, args));
    SAYS("missing; it is an input, f32 of 1 on the host");
    MUST(norm_memory_destroy(memory));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(desc));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    enumerators_are_listed();
    shapes_are_told();
    arguments_are_described();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("sentences");
}
