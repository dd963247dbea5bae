/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * One primitive on eight threads at once, each with its own outputs and with the
 * library's scratchpad. Also the last error, which is per thread.
 *
 * With the argument "emulated", for valgrind: fewer rounds.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"

#include <pthread.h>

#define THREADS 8

static norm_engine_t engine;
static int rounds = 60;

static problem_spec_t spec_of(norm_prop_kind_t kind, norm_dim_t rows) {
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = 2;
    s.dims[0] = rows;
    s.dims[1] = 301;
    s.prop_kind = kind;
    s.flags = norm_use_scale | norm_use_shift;
    s.epsilon = 1e-5f;
    s.src = s.dst = s.diff_dst = s.parameters = s.diff_parameters = norm_f32;
    s.seed = 11;
    return s;
}

typedef struct {
    pthread_barrier_t *start;
    const problem_t *shared; /* its primitive is executed */
    problem_t own;           /* its tensors are the arguments */
    long good;
} worker_t;

static void *work(void *argument) {
    worker_t *worker = argument;
    norm_stream_t stream = NULL;
    if (norm_stream_create(&stream, engine, norm_stream_default_flags) != norm_success)
        return NULL;
    pthread_barrier_wait(worker->start);
    for (int i = 0; i < rounds; ++i) {
        tensor_t *out = problem_is_backward(&worker->own.spec) ? &worker->own.diff_src
                                                               : &worker->own.dst;
        memset(out->data, TENSOR_FILL, out->bytes);
        const norm_status_t status = norm_primitive_execute(
                worker->shared->primitive, stream, worker->own.nargs, worker->own.args);
        worker->good += status == norm_success && problem_same_bits(worker->shared, &worker->own);
    }
    norm_stream_destroy(stream);
    return NULL;
}

static void one_primitive(norm_prop_kind_t kind, norm_dim_t rows, int library_threads) {
    const problem_spec_t spec = spec_of(kind, rows);
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    problem_t shared;
    norm_stream_t stream = NULL;
    problem_name(&spec, "eight threads");
    MUST(norm_set_num_threads(library_threads));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    EXPECT(problem_make(&shared, &spec, engine));
    EXPECT(problem_execute(&shared, stream) == norm_success);
    formula_check(&shared);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i) {
        workers[i].start = &start;
        workers[i].shared = &shared;
        workers[i].good = 0;
        EXPECT(problem_make(&workers[i].own, &spec, engine));
        EXPECT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
        EXPECT(workers[i].good == rounds);
        problem_free(&workers[i].own);
    }
    pthread_barrier_destroy(&start);
    problem_free(&shared);
    MUST(norm_stream_destroy(stream));
}

typedef struct {
    pthread_barrier_t *step;
    int fails_at;
    int nothing_before, own_after, own_kept;
} failing_t;

/* Two threads fail in different functions, in an order fixed by the barrier. */
static void *fail(void *argument) {
    failing_t *f = argument;
    f->nothing_before = norm_get_last_error()[0] == 0;
    pthread_barrier_wait(f->step);
    if (f->fails_at == 0)
        norm_set_verbose(99);
    else
        norm_stream_wait(NULL);
    const char *mine = f->fails_at == 0 ? "norm_set_verbose" : "norm_stream_wait";
    const char *sentence = norm_get_last_error();
    f->own_after = strstr(sentence, mine) != NULL;
    pthread_barrier_wait(f->step);
    /* The other thread has failed since, and success does not clear the message. */
    f->own_kept = norm_set_verbose(0) == norm_success && norm_get_last_error() == sentence
            && strstr(sentence, mine) != NULL;
    return NULL;
}

static void last_error(void) {
    pthread_barrier_t step;
    pthread_t threads[2];
    failing_t failing[2];
    memset(failing, 0, sizeof failing);
    pthread_barrier_init(&step, NULL, 2);
    EXPECT(norm_set_num_threads(-1) == norm_invalid_arguments);
    for (int i = 0; i < 2; ++i) {
        failing[i].step = &step;
        failing[i].fails_at = i;
        EXPECT(pthread_create(&threads[i], NULL, fail, &failing[i]) == 0);
    }
    for (int i = 0; i < 2; ++i) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
        EXPECT(failing[i].nothing_before && failing[i].own_after && failing[i].own_kept);
    }
    EXPECT(strstr(norm_get_last_error(), "norm_set_num_threads") != NULL);
    pthread_barrier_destroy(&step);
}

static pthread_barrier_t shared_by_all;

/* Uses the engine of a stream, which main destroys meanwhile: the stream keeps it. */
static void *use_engine(void *argument) {
    norm_stream_t stream = argument, other = NULL;
    long good = 0;
    pthread_barrier_wait(&shared_by_all);
    for (int i = 0; i < 200; ++i) {
        norm_engine_t its = NULL;
        good += norm_stream_get_engine(stream, &its) == norm_success
                && norm_stream_create(&other, its, norm_stream_default_flags) == norm_success
                && norm_stream_destroy(other) == norm_success;
    }
    return (void *)good;
}

static void destroyed_engine(void) {
    pthread_t threads[2];
    void *good[2] = {NULL, NULL};
    norm_engine_t own = NULL;
    norm_stream_t stream = NULL;
    MUST(norm_engine_create(&own, norm_cpu, 0));
    MUST(norm_stream_create(&stream, own, norm_stream_default_flags));
    EXPECT(pthread_barrier_init(&shared_by_all, NULL, 3) == 0);
    for (int i = 0; i < 2; ++i)
        EXPECT(pthread_create(&threads[i], NULL, use_engine, stream) == 0);
    pthread_barrier_wait(&shared_by_all);
    MUST(norm_engine_destroy(own));
    for (int i = 0; i < 2; ++i) EXPECT(pthread_join(threads[i], &good[i]) == 0 && (long)good[i] == 200);
    EXPECT(norm_engine_destroy(own) == norm_invalid_arguments);
    MUST(norm_stream_destroy(stream));
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "emulated") == 0) rounds = 1;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    last_error();
    destroyed_engine();
    for (int library_threads = 1; library_threads <= 2; ++library_threads) {
        one_primitive(norm_forward_training, 7, library_threads);
        one_primitive(norm_forward_training, 400, library_threads);
        one_primitive(norm_backward, 7, library_threads);
        one_primitive(norm_backward, 400, library_threads);
    }
    MUST(norm_engine_destroy(engine));
    return expect_summary("threads");
}
