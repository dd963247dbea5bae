/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * No access outside the tensors: every buffer ends at an unreadable page and, in a
 * second round, starts right after one. All C from 1 to 130 are tested, on each level,
 * in each type, forward and backward. The bits must be those with larger buffers on
 * the portable level. (valgrind does not support AVX-512; this test covers it.)
 */
#define _DEFAULT_SOURCE
#include "formula.h"
#include "levels.h"
#include "slots.h"

/* Runs of pages between guards. With `overrun`, shows what a fault looks like. */
static void guards_work(int overrun) {
    volatile unsigned char *slot = slots[0];
    slot[0] = slot[slot_bytes - 1] = 1;
    EXPECT(slot[0] == 1 && slot[slot_bytes - 1] == 1);
    if (overrun) slot[slot_bytes] = 1;
}

static problem_spec_t spec_of(norm_dim_t cols, norm_data_type_t type, int kind) {
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = 2;
    s.dims[0] = 3;
    s.dims[1] = cols;
    s.prop_kind = kind & 1 ? norm_backward : norm_forward_training;
    s.flags = (unsigned)(norm_use_scale | norm_use_shift) | (kind & 2 ? (unsigned)norm_rms_norm : 0);
    s.epsilon = 1e-5f;
    s.src = s.dst = s.diff_dst = s.parameters = s.diff_parameters = type;
    s.user_scratchpad = 1;
    s.seed = (uint64_t)cols * 4 + (uint64_t)kind;
    return s;
}

/* With the argument "overrun", it deliberately writes out of bounds and exits with 100 + SIGSEGV.
 * */
int main(int argc, char **argv) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    norm_engine_t engine = NULL;
    norm_stream_t stream = NULL;
    norm_cpu_isa_t levels[LEVELS_MAX];
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    const int count = levels_here(levels);
    slots_make();
    guards_work(argc > 1 && strcmp(argv[1], "overrun") == 0);
    long cases = 0;
    for (int type = 0; type < 3; ++type)
        for (int kind = 0; kind < 4; ++kind)
            for (norm_dim_t cols = 1; cols <= 130; ++cols) {
                problem_spec_t spec = spec_of(cols, types[type], kind);
                problem_t roomy, tight;
                MUST(norm_set_max_cpu_isa(norm_cpu_isa_portable));
                tensor_place = NULL;
                problem_name(&spec, "roomy");
                EXPECT(problem_make(&roomy, &spec, engine));
                EXPECT(problem_execute(&roomy, stream) == norm_success);
                formula_check(&roomy);
                for (int level = 0; level < count; ++level)
                    for (int end = 0; end < 2; ++end, ++cases) {
                        MUST(norm_set_max_cpu_isa(levels[level]));
                        tensor_place = slot_place;
                        slots_used = 0;
                        place_at_end = end;
                        problem_name(&spec, norm_cpu_isa2str(levels[level]));
                        EXPECT(problem_make(&tight, &spec, engine));
                        EXPECT(problem_execute(&tight, stream) == norm_success);
                        EXPECT(problem_same_bits(&roomy, &tight));
                        problem_free(&tight);
                    }
                problem_free(&roomy);
            }
    EXPECT(cases == 3L * 4 * 130 * 2 * count);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("guard_pages");
}
