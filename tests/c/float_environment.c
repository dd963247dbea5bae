/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The caller's floating-point environment has no effect and is preserved: upward
 * rounding, flush-to-zero, denormals-are-zero, unmasked exceptions. Such a caller
 * starts the library's threads, which inherit its environment.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"
#include "levels.h"
#include "thread_wait.h"

#include <fenv.h>
#if defined(__SSE__)
#include <xmmintrin.h>

/* Rounding upwards, FTZ and DAZ set, all six exceptions unmasked. */
#define HOSTILE 0xC040u
#define CONTROL_BITS 0xFFC0u

static unsigned environment(void) {
    return _mm_getcsr() & CONTROL_BITS;
}
static void set_environment(unsigned control) {
    _mm_setcsr(control);
}
#elif defined(__aarch64__)
/* FZ, and rounding towards +Inf. */
#define HOSTILE ((1u << 24) | (1u << 22))

static unsigned environment(void) {
    unsigned long fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (unsigned)fpcr;
}
static void set_environment(unsigned control) {
    const unsigned long fpcr = control;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}
#else
#define HOSTILE 1u

static unsigned environment(void) {
    return fegetround() == FE_UPWARD;
}
static void set_environment(unsigned control) {
    fesetround(control ? FE_UPWARD : FE_TONEAREST);
}
#endif

static norm_engine_t engine;
static norm_stream_t stream;

/* Executes in the hostile environment, then restores this program's own. */
static void execute_hostile(const problem_t *p) {
    const unsigned own = environment();
    const int rounding = fegetround();
    fesetround(FE_UPWARD);
    set_environment(HOSTILE);
    const norm_status_t status = problem_execute(p, stream);
    const unsigned after = environment();
    set_environment(own);
    const int rounding_after = fegetround();
    fesetround(rounding);
    EXPECT(status == norm_success);
    EXPECT(after == HOSTILE);
    EXPECT(rounding_after == FE_UPWARD || rounding_after == rounding);
}

/* Checks that the environment affects this program's arithmetic. Exceptions stay
 * masked for this. */
static void it_is_hostile(void) {
    const unsigned own = environment();
    volatile float tiny = 1e-39f, one = 1, speck = 1e-9f, product, sum;
#if defined(__SSE__)
    set_environment(HOSTILE | 0x1F80u);
#else
    set_environment(HOSTILE);
#endif
    product = tiny * one;
    sum = one + speck;
    set_environment(own);
#if defined(__SSE__) || defined(__aarch64__)
    EXPECT(product == 0);
#else
    EXPECT(product == tiny);
#endif
    EXPECT(sum > one && one + speck == one);
}

static void same_bits(norm_cpu_isa_t level, norm_prop_kind_t kind, int rows, unsigned flags,
        norm_dim_t count, int threads, norm_data_type_t type) {
    problem_spec_t spec;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = count;
    spec.dims[1] = 301;
    spec.prop_kind = kind;
    spec.flags = flags;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = type;
    if (problem_is_backward(&spec)) spec.dst = spec.diff_dst = norm_f32;
    spec.rows = rows;
    problem_name(&spec, norm_cpu_isa2str(level));
    problem_t expected, got;
    MUST(norm_set_max_cpu_isa(level));
    EXPECT(problem_make(&expected, &spec, engine) && problem_make(&got, &spec, engine));
    /* Some results that flush-to-zero would lose. */
    for (size_t col = 0; col < 301 && type != norm_f16; col += 3) {
        tensor_set(&expected.scale, 0, col, 3e-39);
        tensor_set(&got.scale, 0, col, 3e-39);
    }
    MUST(norm_set_num_threads(1));
    EXPECT(problem_execute(&expected, stream) == norm_success);
    formula_check(&expected);
    MUST(norm_set_num_threads(threads));
    execute_hostile(&got);
    EXPECT(problem_same_bits(&expected, &got));
    int most = norm_get_last_num_threads();
    static thread_wait_t waiting;
    waiting.begun = 0, waiting.rounds = 0;
    do
        while (most < threads && thread_wait_continues(&waiting)) {
            execute_hostile(&got);
            EXPECT(problem_same_bits(&expected, &got));
            most = norm_get_last_num_threads();
        }
    while (most < threads && thread_wait_retries(&waiting));
    EXPECT(most == threads || waiting.excused);
    problem_free(&expected);
    problem_free(&got);
}

int main(void) {
    static const norm_prop_kind_t kinds[] = {norm_forward_training, norm_backward};
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    static const int rows[] = {ROWS_RANDOM, ROWS_TINY, ROWS_SUBNORMAL};
    norm_cpu_isa_t levels[LEVELS_MAX];
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    it_is_hostile();
    const int count = levels_here(levels);
    for (int i = 0; i < count; ++i)
        for (int kind = 0; kind < 2; ++kind)
            for (int type = 0; type < 3; ++type)
                for (int pattern = 0; pattern < (type == 2 ? 1 : 3); ++pattern) {
                    const unsigned flags = norm_use_scale | norm_use_shift;
                    same_bits(levels[i], kinds[kind], rows[pattern], flags, 5, 1, types[type]);
                    same_bits(levels[i], kinds[kind], rows[pattern], flags | norm_rms_norm, 5, 1,
                            types[type]);
                    same_bits(levels[i], kinds[kind], rows[pattern], flags, 400, 2, types[type]);
                }
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("float_environment");
}
