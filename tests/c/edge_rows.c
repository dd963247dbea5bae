/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rows that plain f32 arithmetic gets wrong: squares that overflow or vanish,
 * constants, small differences at a large offset, zeros without epsilon, prefixes far
 * from the mean, and mixtures of these. Every level is compared with the formulas,
 * forward and backward, and all levels must give the same bits.
 *
 * With the argument "emulated", for valgrind: bits are not compared, because its fused
 * multiply-add rounds twice, long rows are shorter, and a third of the cases runs.
 */
#include "formula.h"
#include "levels.h"

static norm_engine_t engine;
static norm_stream_t stream;
static int emulated;

/* Whether a type can represent such rows. */
static int holds(norm_data_type_t type, int rows) {
    const int extreme = rows == ROWS_HUGE || rows == ROWS_TINY || rows == ROWS_SUBNORMAL;
    if (rows == ROWS_MIXED) return type == norm_f32;
    if (type == norm_f16) return !extreme && rows != ROWS_OFFSET;
    return type == norm_f32 || rows != ROWS_OFFSET;
}

static long all_rows(norm_cpu_isa_t level, problem_t *first, size_t *index) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    static const norm_prop_kind_t kinds[] = {norm_forward_training, norm_backward};
    static const norm_dim_t cols[] = {1, 4, 37, 257, 1030};
    static const float epsilons[] = {0, 1e-5f};
    long cases = 0;
    MUST(norm_set_max_cpu_isa(level));
    for (int rows = ROWS_HUGE; rows < ROWS; ++rows)
        for (int type = 0; type < 3; ++type)
            for (int i = 0; i < 2 * 2 * 2 * 5; ++i) {
                if (!holds(types[type], rows) || (emulated && (i + type + rows) % 3 != 0)) continue;
                problem_spec_t spec;
                memset(&spec, 0, sizeof spec);
                spec.ndims = 2;
                spec.dims[0] = rows == ROWS_MIXED ? 23 : 3;
                spec.dims[1] = cols[i / 8];
                /* Long rows, so that the mean is many standard deviations from the first elements.
                 * */
                if (rows == ROWS_STEP && spec.dims[1] == 1030) spec.dims[1] = emulated ? 2003 : 20011;
                spec.prop_kind = kinds[i & 1];
                spec.flags = (unsigned)norm_use_shift | (i & 2 ? (unsigned)norm_rms_norm : 0);
                spec.epsilon = epsilons[i >> 2 & 1];
                /* Gradients of such rows leave the range of half types. */
                spec.src = types[type];
                spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_f32;
                spec.rows = rows;
                problem_name(&spec, norm_cpu_isa2str(level));
                problem_t p;
                EXPECT(problem_make(&p, &spec, engine));
                EXPECT(problem_execute(&p, stream) == norm_success);
                formula_check(&p);
                ++cases;
                problem_t *kept = &first[(*index)++];
                if (kept->primitive == NULL) {
                    *kept = p;
                } else {
                    EXPECT(emulated || problem_same_bits(kept, &p));
                    problem_free(&p);
                }
            }
    return cases;
}

/* With epsilon 0, a row of zeros gives the shift, and its gradient is 0. */
static void zero_row(void) {
    problem_spec_t spec;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = 2;
    spec.dims[1] = 21;
    spec.prop_kind = norm_forward_training;
    spec.flags = norm_use_scale | norm_use_shift;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_f32;
    spec.rows = ROWS_ZERO;
    problem_t p;
    EXPECT(problem_make(&p, &spec, engine));
    EXPECT(problem_execute(&p, stream) == norm_success);
    for (size_t row = 0; row < 2; ++row)
        for (size_t col = 0; col < 21; ++col)
            EXPECT(tensor_get(&p.dst, row, col) == tensor_get(&p.shift, 0, col));
    problem_free(&p);
    spec.prop_kind = norm_backward;
    EXPECT(problem_make(&p, &spec, engine));
    EXPECT(problem_execute(&p, stream) == norm_success);
    for (size_t row = 0; row < 2; ++row)
        for (size_t col = 0; col < 21; ++col) EXPECT(tensor_get(&p.diff_src, row, col) == 0);
    problem_free(&p);
}

int main(int argc, char **argv) {
    emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    static problem_t first[1024];
    norm_cpu_isa_t levels[LEVELS_MAX];
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    const int count = levels_here(levels);
    size_t used = 0;
    for (int i = 0; i < count; ++i) {
        used = 0;
        const long cases = all_rows(levels[i], first, &used);
        EXPECT(emulated ? cases > 290 : cases == (10 + 8 + 5) * 40);
    }
    for (size_t i = 0; i < used; ++i) problem_free(&first[i]);
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    zero_row();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("edge_rows");
}
