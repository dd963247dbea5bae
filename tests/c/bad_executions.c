/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Executions with an invalid argument are rejected before anything is written.
 * Also unusual but valid arguments: unused ones and repeated ids.
 */
#include "formula.h"
#include "refused.h"

static norm_engine_t engine;
static norm_stream_t stream;

static problem_spec_t spec_of(norm_prop_kind_t kind, unsigned flags) {
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = 2;
    s.dims[0] = 3;
    s.dims[1] = 37;
    s.prop_kind = kind;
    s.flags = flags;
    s.epsilon = 1e-5f;
    s.src = s.dst = s.diff_dst = s.parameters = s.diff_parameters = norm_f32;
    s.seed = 5;
    return s;
}

/* The name of an argument in messages. */
static const char *argument_name(int id) {
    switch (id) {
        case NORM_ARG_SRC: return "NORM_ARG_SRC";
        case NORM_ARG_DST: return "NORM_ARG_DST";
        case NORM_ARG_MEAN: return "NORM_ARG_MEAN";
        case NORM_ARG_VARIANCE: return "NORM_ARG_VARIANCE";
        case NORM_ARG_SCALE: return "NORM_ARG_SCALE";
        case NORM_ARG_SHIFT: return "NORM_ARG_SHIFT";
        case NORM_ARG_DIFF_SRC: return "NORM_ARG_DIFF_SRC";
        case NORM_ARG_DIFF_DST: return "NORM_ARG_DIFF_DST";
        case NORM_ARG_DIFF_SCALE: return "NORM_ARG_DIFF_SCALE";
        case NORM_ARG_DIFF_SHIFT: return "NORM_ARG_DIFF_SHIFT";
        default: return "NORM_ARG_SCRATCHPAD";
    }
}

/* Whether the problem uses the argument, according to the tables in norm.h. */
static int uses(const problem_spec_t *s, int id) {
    const int global = (s->flags & norm_use_global_stats) != 0;
    const int rms = (s->flags & norm_rms_norm) != 0;
    const int backward = problem_is_backward(s);
    const int stats = backward || global || s->prop_kind == norm_forward_training;
    switch (id) {
        case NORM_ARG_MEAN: return stats && !rms;
        case NORM_ARG_VARIANCE: return stats;
        case NORM_ARG_SCALE: return (s->flags & norm_use_scale) != 0;
        case NORM_ARG_SHIFT: return !backward && (s->flags & norm_use_shift) != 0;
        case NORM_ARG_DIFF_SCALE:
            return s->prop_kind == norm_backward && (s->flags & norm_use_scale) != 0;
        case NORM_ARG_DIFF_SHIFT:
            return s->prop_kind == norm_backward && (s->flags & norm_use_shift) != 0;
        default: return 1; /* tensors of either direction, the scratchpad */
    }
}

/* Whether no output was written. */
static int nothing_written(const problem_t *p) {
    const int backward = problem_is_backward(&p->spec);
    const int stats_are_inputs = backward || p->spec.flags & norm_use_global_stats;
    return (backward ? tensor_untouched(&p->diff_src) : tensor_untouched(&p->dst))
            && tensor_untouched(&p->diff_scale) && tensor_untouched(&p->diff_shift)
            && (stats_are_inputs
                    || (tensor_untouched(&p->mean) && tensor_untouched(&p->variance)));
}

/* Each argument of the problem, invalid in each way. An invalid argument that is not
 * used has no effect. */
static void wrong_arguments(norm_prop_kind_t kind, unsigned flags, int user_scratchpad) {
    problem_spec_t spec = spec_of(kind, flags);
    spec.user_scratchpad = user_scratchpad;
    problem_t p;
    EXPECT(problem_make(&p, &spec, engine));
    for (int i = 0; i < p.nargs; ++i) {
        const norm_exec_arg_t kept = p.args[i];
        const_norm_memory_desc_t desc = NULL;
        int ndims = 0;
        norm_data_type_t type = norm_data_type_undef;
        const norm_dims_t *dims = NULL;
        MUST(norm_memory_get_memory_desc(kept.memory, &desc));
        MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &ndims));
        MUST(norm_memory_desc_query(desc, norm_query_data_type, &type));
        MUST(norm_memory_desc_query(desc, norm_query_dims, (void *)&dims));
        norm_dims_t fewer;
        memcpy(fewer, *dims, sizeof fewer);
        fewer[0] -= 1;
        norm_memory_desc_t short_desc = NULL, odd_desc = NULL;
        norm_memory_t wrong[5] = {NULL, NULL, NULL, NULL, NULL};
        MUST(norm_memory_desc_create_with_strides(&short_desc, ndims, fewer, type, NULL));
        MUST(norm_memory_desc_create_with_strides(&odd_desc, ndims, *dims,
                type == norm_f32 ? norm_s32 : norm_f32, NULL));
        MUST(norm_memory_create(&wrong[1], short_desc, engine, NORM_MEMORY_ALLOCATE));
        MUST(norm_memory_create(&wrong[2], odd_desc, engine, NORM_MEMORY_ALLOCATE));
        MUST(norm_memory_create(&wrong[3], desc, engine, NORM_MEMORY_NONE));
        /* 0: NULL, 1: too few bytes, 2: another type, 3: no buffer, 4: missing */
        for (int way = 0; way < 5; ++way) {
            /* Only the size of a scratchpad matters. */
            if (way == 2 && kept.arg == NORM_ARG_SCRATCHPAD) continue;
            p.args[i].memory = wrong[way];
            if (way == 4) p.args[i] = p.args[i == 0 ? 1 : 0];
            if (uses(&spec, kept.arg)) {
                INVALID(argument_name(kept.arg), norm_primitive_execute,
                        (p.primitive, stream, p.nargs, p.args));
                EXPECT(nothing_written(&p));
            }
            p.args[i] = kept;
        }
        for (int way = 1; way < 4; ++way) MUST(norm_memory_destroy(wrong[way]));
        MUST(norm_memory_desc_destroy(short_desc));
        MUST(norm_memory_desc_destroy(odd_desc));
    }
    /* With valid arguments the same primitive works. */
    EXPECT(problem_execute(&p, stream) == norm_success);
    formula_check(&p);
    problem_free(&p);
}

static void wrong_calls(void) {
    const problem_spec_t spec = spec_of(norm_forward_training, norm_use_scale);
    problem_t p;
    EXPECT(problem_make(&p, &spec, engine));
    INVALID("primitive", norm_primitive_execute, (NULL, stream, p.nargs, p.args));
    INVALID("stream", norm_primitive_execute, (p.primitive, NULL, p.nargs, p.args));
    INVALID("args", norm_primitive_execute, (p.primitive, stream, p.nargs, NULL));
    INVALID("nargs", norm_primitive_execute, (p.primitive, stream, -1, p.args));
    INVALID("nargs", norm_primitive_execute, (p.primitive, stream, INT_MIN, p.args));
    INVALID("NORM_ARG_SRC", norm_primitive_execute, (p.primitive, stream, 0, NULL));
    EXPECT(nothing_written(&p));
    problem_free(&p);
}

/* Unused ids with any memory. If an id is repeated, the last one counts. */
static void odd_but_allowed(void) {
    const problem_spec_t spec = spec_of(norm_forward_inference, norm_rms_norm);
    problem_t p, other;
    EXPECT(problem_make(&p, &spec, engine) && problem_make(&other, &spec, engine));
    norm_exec_arg_t args[8] = {{NORM_ARG_DST, other.dst.memory}, {NORM_ARG_SRC, NULL},
            {NORM_ARG_MEAN, NULL}, {-5, NULL}, {INT_MAX, p.scale.memory},
            {NORM_ARG_DIFF_SRC, p.dst.memory}, {NORM_ARG_SRC, p.src.memory},
            {NORM_ARG_DST, p.dst.memory}};
    EXPECT(norm_primitive_execute(p.primitive, stream, 8, args) == norm_success);
    formula_check(&p);
    EXPECT(tensor_untouched(&other.dst));
    problem_free(&p);
    problem_free(&other);
}

/* A failed execution does not change the thread count of the last execution. */
static void last_num_threads(void) {
    const problem_spec_t spec = spec_of(norm_forward_inference, norm_rms_norm);
    problem_t p;
    EXPECT(problem_make(&p, &spec, engine));
    EXPECT(problem_execute(&p, stream) == norm_success && norm_get_last_num_threads() >= 1);
    problem_free(&p);
}

int main(void) {
    static const norm_prop_kind_t kinds[]
            = {norm_forward_training, norm_forward_inference, norm_backward, norm_backward_data};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int kind = 0; kind < 4; ++kind)
        for (unsigned bits = 0; bits < 16; ++bits)
            for (int user = 0; user < 2; ++user)
                wrong_arguments(kinds[kind],
                        (bits & 7) | (bits & 8 ? (unsigned)norm_rms_norm : 0), user);
    wrong_calls();
    odd_but_allowed();
    last_num_threads();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("bad_executions");
}
