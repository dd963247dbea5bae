/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Frequencies: those of a partial rotation over the whole head, and the parameters that
 * are refused because their results are not usable. Slots in a layout that is not given.
 */
#include "refused.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { D = 512, R = 128, PAIRS = R / 2, POSITION = 1000 };

static norm_memory_desc_t desc_of(int ndims, const norm_dim_t *dims, norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, type, NULL));
    return desc;
}

/* The full attention of Gemma 4: 128 of 512 elements rotate, with the frequencies of a
 * whole head, 10^6^(-2i/512), in pairs that are 256 apart. The numbers were computed
 * with 40 digits. */
static void whole_head(void) {
    snprintf(expect_case, sizeof expect_case, "partial rotation of a whole head");
    static double frequencies[D / 2];
    static float src[D], dst[D];
    const norm_dim_t dims[] = {1, D}, position_dims[] = {1}, pair_dims[] = {PAIRS};
    float magnitude = 0;
    MUST(norm_rope_frequencies(norm_rope_scaling_none, D, 1e6, 0, NULL, frequencies, &magnitude));
    EXPECT(magnitude == 1 && frequencies[0] == 1);
    EXPECT(fabs(frequencies[1] - 0.94746352565537540) < 1e-15);
    EXPECT(fabs(frequencies[2] - 0.89768713244731419) < 1e-15);
    EXPECT(fabs(frequencies[PAIRS - 1] - 0.033376246942920385) < 1e-15);

    norm_memory_desc_t head = desc_of(2, dims, norm_f32), at = desc_of(1, position_dims, norm_s32);
    norm_memory_desc_t pairs = desc_of(1, pair_dims, norm_f64);
    int32_t position = POSITION;
    for (int i = 0; i < D; ++i) src[i] = i < D / 2 ? 1 : 2;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t rope = NULL;
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_rope_half_split_of_head, norm_rope_from_frequencies, head, head, at, -1, NULL, NULL,
            R, magnitude, 0, NULL, 0, 0, NULL));
    MUST(norm_primitive_create(&rope, pd));
    norm_exec_arg_t args[] = {{NORM_ARG_SRC, NULL}, {NORM_ARG_DST, NULL},
            {NORM_ARG_POSITIONS, NULL}, {NORM_ARG_ROPE_FREQUENCIES, NULL}};
    MUST(norm_memory_create(&args[0].memory, head, engine, src));
    MUST(norm_memory_create(&args[1].memory, head, engine, dst));
    MUST(norm_memory_create(&args[2].memory, at, engine, &position));
    MUST(norm_memory_create(&args[3].memory, pairs, engine, frequencies));
    MUST(norm_primitive_execute(rope, stream, 4, args));
    /* Cosines and sines of 1000 times the frequencies of pairs 1 and 63. */
    const int pair[] = {1, PAIRS - 1};
    const double cosine[] = {0.26994951357427494, -0.3797481895742164};
    const double sine[] = {-0.9628744778635543, 0.9250898942887145};
    for (int i = 0; i < 2; ++i) {
        EXPECT(fabs(dst[pair[i]] - (cosine[i] - 2 * sine[i])) < 1e-6);
        EXPECT(fabs(dst[D / 2 + pair[i]] - (sine[i] + 2 * cosine[i])) < 1e-6);
    }
    EXPECT(dst[PAIRS] == 1 && dst[D / 2 - 1] == 1 && dst[D / 2 + PAIRS] == 2 && dst[D - 1] == 2);
    for (int i = 0; i < 4; ++i) MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(rope));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(head));
    MUST(norm_memory_desc_destroy(at));
    MUST(norm_memory_desc_destroy(pairs));
}

/* A call with `count` parameters is refused with these words. */
static void refuses(int line, norm_rope_scaling_t scaling, double base, int count,
        const double *parameters, const char *words) {
    double out[4] = {9, 9, 9, 9};
    float magnitude = 9;
    INVALID("parameters", norm_rope_frequencies,
            (scaling, 8, base, count, parameters, out, &magnitude));
    expect_that(strstr(norm_get_last_error(), words) != NULL, "refuses, on line", line, words);
    for (int i = 0; i < 4; ++i) EXPECT(out[i] == 9);
    EXPECT(magnitude == 9);
}
#define REFUSES(scaling, base, words, ...) \
    do { \
        const double parameters_[] = {__VA_ARGS__}; \
        refuses(__LINE__, norm_rope_scaling_##scaling, base, \
                (int)(sizeof parameters_ / sizeof *parameters_), parameters_, words); \
    } while (0)

static void unusable_parameters(void) {
    snprintf(expect_case, sizeof expect_case, "parameters");
    REFUSES(linear, 1e4, "factor 0.5 is below 1, which scaling linear", 0.5);
    REFUSES(ntk, 1e4, "is below 1, which scaling ntk", 1e-300);
    REFUSES(dynamic_ntk, 1e4, "is below 1, which scaling dynamic_ntk", 0.5, 4096, 8192);
    REFUSES(llama3, 1e4, "is below 1, which scaling llama3", 0.5, 1, 4, 8192);
    REFUSES(yarn, 1e4, "is below 1, which scaling yarn", 0.5, 4096);
    REFUSES(longrope, 1e4, "is below 1, which scaling longrope", 0.5, 4096, 1, 1, 1, 1);
    REFUSES(yarn, 1e4, "beta_fast 1.0 is below beta_slow 32.0", 4, 4096, 1, 32);
    REFUSES(yarn, 1e4, "beta_fast 0.5 is below beta_slow 1.0", 4, 4096, 0.5);
    REFUSES(yarn, 1e4, "a magnitude of inf", 4, 4096, 32, 1, 0, 0, 1, 1e300);
    REFUSES(yarn, 1e4, "a magnitude of 0.0", 4, 4096, 32, 1, 0, 0, 1, 1e-300);
    REFUSES(longrope, 1e4, "trained length 1.0 is not above 1", 32, 1, 1, 1, 1, 1);
    REFUSES(longrope, 1e4, "trained length 0.5 is not above 1", 32, 0.5, 1, 1, 1, 1);
    REFUSES(longrope, 1e4, "pair 0 a frequency of 4.0", 32, 4096, 0.25, 1, 1, 1);
    REFUSES(ntk, 1e300, "pair 1 a frequency of 0.0", 1e20);
    /* The limits themselves. */
    double out[4];
    float magnitude = 0;
    const double one[] = {1, 4096, 32, 32}, divisors[] = {1, 2, 0.5, 1, 1, 1};
    MUST(norm_rope_frequencies(norm_rope_scaling_linear, 8, 1e4, 1, one, out, NULL));
    MUST(norm_rope_frequencies(norm_rope_scaling_yarn, 8, 1e4, 4, one, out, NULL));
    MUST(norm_rope_frequencies(norm_rope_scaling_longrope, 8, 1e4, 6, divisors, out, &magnitude));
    EXPECT(out[0] == 2 && magnitude == 1);
}

static void slots_need_a_layout(void) {
    snprintf(expect_case, sizeof expect_case, "slots");
    const norm_dim_t dims[] = {3, 2, 8}, slots[] = {5, 2, 8}, position_dims[] = {3, 1};
    norm_memory_desc_t src = desc_of(3, dims, norm_f32), at = desc_of(2, position_dims, norm_s32);
    norm_memory_desc_t any = NULL;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_memory_desc_create_with_tag(&any, 3, slots, norm_f32, norm_format_tag_any));
    INVALID("dst_desc", norm_rope_forward_primitive_desc_create,
            (&pd, engine, norm_forward_inference, norm_rope_half_split, norm_rope_from_frequencies,
                    src, any, at, -1, NULL, NULL, 8, 1, 0, NULL, 0, norm_write_slots, NULL));
    EXPECT(strstr(norm_get_last_error(), "with write_slots the layout must be given, not `any`") != NULL);
    MUST(norm_memory_desc_destroy(src));
    MUST(norm_memory_desc_destroy(at));
    MUST(norm_memory_desc_destroy(any));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    whole_head();
    unusable_parameters();
    slots_need_a_layout();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope_frequencies");
}
