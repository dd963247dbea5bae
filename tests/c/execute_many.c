/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Several primitives in one call. They give the bits of running them one after another, on the
 * library's threads and on the caller's. If one of them fails, none writes anything.
 *
 * With the argument "emulated", for valgrind: fewer rounds.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"
#include "refused.h"

#include <pthread.h>
#include <unistd.h>

#define MOST 12

static norm_engine_t engine;
static norm_stream_t stream;
static int rounds = 8, emulated;

/* Problems, and the arrays for norm_primitive_execute_many. */
typedef struct {
    int count;
    problem_t one_by_one[MOST], together[MOST];
    const_norm_primitive_t primitives[MOST];
    int nargs[MOST];
    const norm_exec_arg_t *args[MOST];
} batch_t;

static problem_spec_t spec_of(norm_prop_kind_t kind, norm_dim_t rows, norm_dim_t cols,
        norm_data_type_t type, unsigned flags, uint64_t seed) {
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = 2;
    s.dims[0] = rows;
    s.dims[1] = cols;
    s.prop_kind = kind;
    s.flags = flags;
    s.epsilon = 1e-5f;
    s.src = s.dst = s.diff_dst = type;
    s.parameters = s.diff_parameters = norm_f32;
    s.seed = seed;
    return s;
}

static void add(batch_t *b, problem_spec_t spec) {
    const int i = b->count++;
    EXPECT(problem_make(&b->one_by_one[i], &spec, engine));
    EXPECT(problem_make(&b->together[i], &spec, engine));
    b->primitives[i] = b->together[i].primitive;
    b->nargs[i] = b->together[i].nargs;
    b->args[i] = b->together[i].args;
}

static norm_status_t run(const batch_t *b, norm_stream_t on) {
    return norm_primitive_execute_many(b->count, b->primitives, on, b->nargs, b->args);
}

static void finish(batch_t *b) {
    for (int i = 0; i < b->count; ++i) {
        problem_free(&b->one_by_one[i]);
        problem_free(&b->together[i]);
    }
    memset(b, 0, sizeof *b);
}

static void forget(problem_t *p) {
    tensor_t *outputs[] = {&p->dst, &p->diff_src, &p->diff_scale, &p->diff_shift};
    for (int i = 0; i < 4; ++i)
        if (outputs[i]->desc != NULL) memset(outputs[i]->data, TENSOR_FILL, outputs[i]->bytes);
}

/* The norms of a decoder block, small and large, every propagation kind, types and layouts that
 * need a scratchpad of the library or of the caller, and no rows at all. */
static void fill(batch_t *b, int kind, int user_scratchpad) {
    const unsigned rms = norm_rms_norm | norm_use_scale, both = norm_use_scale | norm_use_shift;
    problem_spec_t spec;
    memset(b, 0, sizeof *b);
    if (kind == 0) {
        for (unsigned i = 0; i < 3; ++i)
            add(b, spec_of(norm_forward_inference, i ? 8 : 32, 128, norm_bf16, rms, i));
    } else if (kind == 1) {
        for (unsigned i = 0; i < 3; ++i)
            add(b, spec_of(norm_forward_training, 32, 4096, norm_bf16, rms, i));
    } else {
        add(b, spec_of(norm_forward_training, 1500, 300, norm_f32, both, 1));
        add(b, spec_of(norm_forward_training, 0, 64, norm_f32, both, 2));
        add(b, spec_of(norm_backward, 700, 301, norm_f32, both, 3));
        add(b, spec_of(norm_backward, 5, 33, norm_bf16, rms, 4));
        spec = spec_of(norm_forward_inference, 200, 129, norm_f16, rms, 5);
        spec.src_layout = spec.dst_layout = LAYOUT_REVERSED;
        add(b, spec);
        spec = spec_of(norm_backward, 300, 257, norm_f32, both, 6);
        spec.src_layout = LAYOUT_SPREAD;
        add(b, spec);
        spec = spec_of(norm_forward_inference, 64, 64, norm_f32, both, 7);
        spec.implementation = 1;
        add(b, spec);
        add(b, spec_of(norm_backward_data, 3, 70000, norm_f32, rms, 8));
    }
    for (int i = 0; i < b->count && user_scratchpad; ++i) {
        const problem_spec_t with = b->together[i].spec;
        problem_spec_t own = with;
        own.user_scratchpad = 1;
        problem_free(&b->together[i]);
        EXPECT(problem_make(&b->together[i], &own, engine));
        b->primitives[i] = b->together[i].primitive;
        b->nargs[i] = b->together[i].nargs;
        b->args[i] = b->together[i].args;
    }
    for (int i = 0; i < b->count; ++i)
        EXPECT(problem_execute(&b->one_by_one[i], stream) == norm_success);
}

static void same_bits(batch_t *b, norm_stream_t on, int most_threads, const char *where) {
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < b->count; ++i) forget(&b->together[i]);
        snprintf(expect_case, sizeof expect_case, "%s, %d threads, %d primitives, round %d", where,
                most_threads, b->count, round);
        EXPECT(run(b, on) == norm_success);
        EXPECT(norm_get_last_num_threads() >= 1 && norm_get_last_num_threads() <= most_threads);
        for (int i = 0; i < b->count; ++i)
            EXPECT(problem_same_bits(&b->one_by_one[i], &b->together[i]));
    }
}

static void on_the_librarys_threads(void) {
    batch_t b;
    for (int kind = 0; kind < 3; ++kind)
        for (int user = 0; user < 2; ++user) {
            if (emulated && kind == 1) continue; /* no scratchpads, and large */
            fill(&b, kind, user);
            for (int threads = 1; threads <= (emulated ? 2 : 8); threads += threads < 3 ? 1 : 5) {
                MUST(norm_set_num_threads(threads));
                same_bits(&b, stream, threads, user ? "own scratchpads" : "library");
            }
            MUST(norm_set_num_threads(0));
            finish(&b);
        }
}

/* Pools of the caller: one with threads, one that runs pieces one after another, and one that runs
 * nothing. */
typedef struct {
    norm_parallel_body_t body;
    void *context;
    int index, calls;
} piece_t;

static void *run_piece(void *argument) {
    piece_t *piece = argument;
    piece->body(piece->index, piece->context);
    return NULL;
}

static void on_threads(void *pool, int count, norm_parallel_body_t body, void *context) {
    piece_t pieces[8];
    pthread_t threads[8];
    for (int i = 0; i < count && i < 8; ++i) {
        pieces[i].body = body;
        pieces[i].context = context;
        pieces[i].index = i;
        EXPECT(pthread_create(&threads[i], NULL, run_piece, &pieces[i]) == 0);
    }
    for (int i = 0; i < count && i < 8; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
    ++*(int *)pool;
}

static void in_turn(void *pool, int count, norm_parallel_body_t body, void *context) {
    for (int i = count - 1; i >= 0; --i) body(i, context);
    ++*(int *)pool;
}

static void nothing(void *pool, int count, norm_parallel_body_t body, void *context) {
    (void)count;
    (void)body;
    (void)context;
    ++*(int *)pool;
}

static void on_the_callers_threads(void) {
    static const norm_parallel_for_t pools[] = {on_threads, in_turn, nothing};
    batch_t b;
    for (int kind = 0; kind < (emulated ? 1 : 3); ++kind)
        for (int pool = 0; pool < 3; ++pool) {
            int calls = 0;
            norm_stream_t pooled = NULL;
            MUST(norm_stream_create(&pooled, engine, norm_stream_default_flags));
            MUST(norm_stream_set_parallel_for(pooled, pools[pool], &calls, 4));
            fill(&b, kind, 0);
            same_bits(&b, pooled, 4, "pool");
            /* One parallel region for all primitives, and none for small ones. */
            EXPECT(calls == (kind == 0 ? 0 : rounds));
            finish(&b);
            MUST(norm_stream_destroy(pooled));
        }
}

/* One primitive several times, with different tensors. */
static void one_primitive_several_times(void) {
    batch_t b;
    memset(&b, 0, sizeof b);
    for (unsigned i = 0; i < 5; ++i)
        add(&b, spec_of(norm_backward, 400, 256, norm_f32, norm_use_scale, i));
    for (int i = 0; i < 5; ++i) {
        b.primitives[i] = b.together[0].primitive;
        EXPECT(problem_execute(&b.one_by_one[i], stream) == norm_success);
    }
    MUST(norm_set_num_threads(2));
    same_bits(&b, stream, 2, "one primitive");
    MUST(norm_set_num_threads(0));
    finish(&b);
}

static int untouched(const batch_t *b) {
    for (int i = 0; i < b->count; ++i)
        if (!tensor_untouched(&b->together[i].dst)) return 0;
    return 1;
}

/* Each primitive is refused in each way. The others are not executed, and the message begins with
 * the index. */
static void refused(void) {
    batch_t b;
    memset(&b, 0, sizeof b);
    for (unsigned i = 0; i < 3; ++i)
        add(&b, spec_of(norm_forward_inference, 300, 257, norm_f32, norm_use_scale, i));
    for (int i = 0; i < b.count; ++i) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "norm_primitive_execute_many: primitive %d: ", i);
        norm_exec_arg_t args[12];
        memcpy(args, b.args[i], sizeof args[0] * (size_t)b.nargs[i]);
        for (int way = 0; way < 5; ++way) {
            static const char *const named[]
                    = {"primitive", "args", "nargs", "NORM_ARG_SRC", "NORM_ARG_DST"};
            batch_t bad = b;
            if (way == 0) bad.primitives[i] = NULL;
            if (way == 1) bad.args[i] = NULL;
            if (way == 2) bad.nargs[i] = -1;
            if (way == 3) bad.nargs[i] = 0;
            if (way == 4)
                for (int a = 0; a < b.nargs[i]; ++a)
                    if (args[a].arg == NORM_ARG_DST) args[a].memory = b.together[i].mean.memory;
            if (way == 4) bad.args[i] = args;
            INVALID(named[way], norm_primitive_execute_many,
                    (bad.count, bad.primitives, stream, bad.nargs, bad.args));
            EXPECT(strncmp(norm_get_last_error(), prefix, strlen(prefix)) == 0);
            EXPECT(untouched(&b));
        }
    }
    INVALID("count", norm_primitive_execute_many, (-1, b.primitives, stream, b.nargs, b.args));
    INVALID("primitives", norm_primitive_execute_many, (3, NULL, stream, b.nargs, b.args));
    INVALID("stream", norm_primitive_execute_many, (3, b.primitives, NULL, b.nargs, b.args));
    INVALID("stream", norm_primitive_execute_many, (0, NULL, NULL, NULL, NULL));
    INVALID("nargs", norm_primitive_execute_many, (3, b.primitives, stream, NULL, b.args));
    INVALID("args", norm_primitive_execute_many, (3, b.primitives, stream, b.nargs, NULL));
    EXPECT(untouched(&b));
    EXPECT(norm_primitive_execute_many(0, NULL, stream, NULL, NULL) == norm_success);
    EXPECT(run(&b, stream) == norm_success);
    for (int i = 0; i < b.count; ++i) formula_check(&b.together[i]);
    finish(&b);
}

/* Two primitives with the same scratchpad. */
static void shared_scratchpad(void) {
    batch_t b;
    memset(&b, 0, sizeof b);
    for (unsigned i = 0; i < 2; ++i) {
        problem_spec_t spec = spec_of(norm_backward, 64, 257, norm_f32, norm_use_scale, i);
        spec.user_scratchpad = 1;
        add(&b, spec);
    }
    norm_exec_arg_t args[12];
    memcpy(args, b.args[1], sizeof args[0] * (size_t)b.nargs[1]);
    for (int a = 0; a < b.nargs[1]; ++a)
        if (args[a].arg == NORM_ARG_SCRATCHPAD) args[a].memory = b.together[0].scratchpad.memory;
    const norm_exec_arg_t *const shared[] = {b.args[0], args};
    INVALID("NORM_ARG_SCRATCHPAD", norm_primitive_execute_many,
            (2, b.primitives, stream, b.nargs, shared));
    EXPECT(strstr(norm_get_last_error(), "primitives 0 and 1") != NULL);
    EXPECT(tensor_untouched(&b.together[0].diff_src) && tensor_untouched(&b.together[1].diff_src));
    EXPECT(run(&b, stream) == norm_success);
    finish(&b);
}

/* A verbose line for each primitive. */
static void verbose_lines(void) {
    batch_t b;
    fill(&b, 1, 0);
    FILE *printed = tmpfile();
    if (!EXPECT(printed != NULL)) return;
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    EXPECT(out >= 0 && dup2(fileno(printed), STDOUT_FILENO) >= 0);
    MUST(norm_set_verbose(1));
    const norm_status_t status = run(&b, stream);
    MUST(norm_set_verbose(0));
    EXPECT(dup2(out, STDOUT_FILENO) >= 0 && status == norm_success);
    char line[4096];
    int lines = 0;
    rewind(printed);
    while (fgets(line, sizeof line, printed) != NULL)
        lines += strstr(line, "primitive,exec,cpu,layer_normalization,") != NULL
                && strstr(line, "32x4096,") != NULL;
    EXPECT(lines == 3);
    fclose(printed);
    close(out);
    finish(&b);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "emulated") == 0) rounds = emulated = 1;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    on_the_librarys_threads();
    on_the_callers_threads();
    one_primitive_several_times();
    refused();
    shared_scratchpad();
    verbose_lines();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("execute_many");
}
