/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A stream on the caller's own threads, which run pieces in any order, one by one
 * or concurrently. Results have the same bits as on the library's threads.
 *
 * With the argument "emulated", for valgrind: fewer and shorter rows.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"

#include <pthread.h>

#define POOL_THREADS 3

/* A slow but correct pool that starts threads for each call. */
typedef struct {
    norm_parallel_body_t body;
    void *context;
    int count, next, finished, calls, pieces;
    int workers_only; /* the calling thread runs no piece */
    pthread_mutex_t lock;
} pool_t;

static void *take_pieces(void *argument) {
    pool_t *pool = argument;
    for (;;) {
        pthread_mutex_lock(&pool->lock);
        const int index = pool->next++;
        pthread_mutex_unlock(&pool->lock);
        if (index >= pool->count) return NULL;
        /* The last piece first, because no order is guaranteed. */
        pool->body(pool->count - 1 - index, pool->context);
        pthread_mutex_lock(&pool->lock);
        ++pool->finished;
        pthread_mutex_unlock(&pool->lock);
    }
}

static void run_on_threads(void *argument, int count, norm_parallel_body_t body, void *context) {
    pool_t *pool = argument;
    pthread_t threads[POOL_THREADS];
    pool->body = body;
    pool->context = context;
    pool->count = count;
    pool->next = pool->finished = 0;
    for (int i = 0; i < POOL_THREADS; ++i)
        EXPECT(pthread_create(&threads[i], NULL, take_pieces, pool) == 0);
    if (!pool->workers_only) take_pieces(pool);
    for (int i = 0; i < POOL_THREADS; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
    EXPECT(pool->finished == count);
    ++pool->calls;
    pool->pieces += count;
}

static void run_one_by_one(void *argument, int count, norm_parallel_body_t body, void *context) {
    pool_t *pool = argument;
    for (int i = 0; i < count; ++i) body(i, context);
    ++pool->calls;
    pool->pieces += count;
}

/* Pools that do not do everything that they should. */
static void run_none(void *argument, int count, norm_parallel_body_t body, void *context) {
    pool_t *pool = argument;
    (void)body;
    (void)context;
    ++pool->calls;
    pool->pieces += count;
}

static void run_first(void *argument, int count, norm_parallel_body_t body, void *context) {
    body(0, context);
    run_none(argument, count, body, context);
}

static void same_bits(norm_engine_t engine, norm_prop_kind_t kind, norm_dim_t rows,
        norm_dim_t cols, norm_parallel_for_t run, int workers_only) {
    problem_spec_t spec;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = rows;
    spec.dims[1] = cols;
    spec.prop_kind = kind;
    spec.flags = norm_use_scale | norm_use_shift;
    spec.epsilon = 1e-5f;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_f32;
    problem_name(&spec, workers_only ? "workers only" : "caller's pool");
    pool_t pool;
    memset(&pool, 0, sizeof pool);
    pool.workers_only = workers_only;
    pthread_mutex_init(&pool.lock, NULL);
    norm_stream_t own = NULL, pooled = NULL;
    problem_t expected, got, back;
    MUST(norm_stream_create(&own, engine, norm_stream_default_flags));
    MUST(norm_stream_create(&pooled, engine, norm_stream_default_flags));
    EXPECT(problem_make(&expected, &spec, engine) && problem_make(&got, &spec, engine)
            && problem_make(&back, &spec, engine));
    MUST(norm_set_num_threads(1));
    EXPECT(problem_execute(&expected, own) == norm_success);
    formula_check(&expected);
    MUST(norm_stream_set_parallel_for(pooled, run, &pool, POOL_THREADS + 1));
    EXPECT(problem_execute(&got, pooled) == norm_success);
    EXPECT(problem_same_bits(&expected, &got));
    /* Many rows are split, and the pool runs the pieces. */
    const int calls = pool.calls;
    EXPECT(rows < 100 || (calls >= 1 && pool.pieces >= 2));
    EXPECT(norm_get_last_num_threads() >= 1
            && norm_get_last_num_threads() <= POOL_THREADS + 1);
    MUST(norm_stream_set_parallel_for(pooled, NULL, NULL, 1));
    EXPECT(problem_execute(&back, pooled) == norm_success);
    EXPECT(problem_same_bits(&expected, &back) && pool.calls == calls);
    problem_free(&expected);
    problem_free(&got);
    problem_free(&back);
    MUST(norm_stream_destroy(own));
    MUST(norm_stream_destroy(pooled));
    MUST(norm_set_num_threads(0));
    pthread_mutex_destroy(&pool.lock);
}

/* A thread that is cancelled in its pool ends after the execution. */
static norm_primitive_t cancelled;
static norm_stream_t cancelled_stream;
static norm_exec_arg_t cancelled_args[2];
static volatile int executed, past_the_end;

static void cancel_and_run(void *argument, int count, norm_parallel_body_t body, void *context) {
    (void)argument;
    pthread_cancel(pthread_self());
    for (int i = 0; i < count; ++i) {
        pthread_testcancel();
        body(i, context);
    }
}

static void *execute_cancelled(void *argument) {
    (void)argument;
    executed = norm_primitive_execute(cancelled, cancelled_stream, 2, cancelled_args) == norm_success;
    pthread_testcancel();
    past_the_end = 1;
    return NULL;
}

static void cancellation(norm_engine_t engine) {
    enum { ROWS = 512, COLS = 512 };
    static float src[ROWS * COLS], dst[ROWS * COLS];
    const norm_dims_t dims = {ROWS, COLS};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t problem = NULL;
    pthread_t thread;
    void *result = NULL;
    for (int i = 0; i < ROWS * COLS; ++i) src[i] = i % COLS == 0 ? 2 : 0;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, desc, desc, NULL, 0, norm_rms_norm, NULL));
    MUST(norm_primitive_create(&cancelled, problem));
    MUST(norm_stream_create(&cancelled_stream, engine, norm_stream_default_flags));
    MUST(norm_stream_set_parallel_for(cancelled_stream, cancel_and_run, NULL, 4));
    cancelled_args[0].arg = NORM_ARG_SRC;
    cancelled_args[1].arg = NORM_ARG_DST;
    MUST(norm_memory_create(&cancelled_args[0].memory, desc, engine, src));
    MUST(norm_memory_create(&cancelled_args[1].memory, desc, engine, dst));
    EXPECT(pthread_create(&thread, NULL, execute_cancelled, NULL) == 0);
    EXPECT(pthread_join(thread, &result) == 0);
    EXPECT(executed && !past_the_end && result == PTHREAD_CANCELED);
    int wrong = 0;
    for (int i = 0; i < ROWS * COLS; ++i) wrong += (dst[i] != 0) != (i % COLS == 0);
    EXPECT(wrong == 0);
    for (int i = 0; i < 2; ++i) MUST(norm_memory_destroy(cancelled_args[i].memory));
    MUST(norm_stream_destroy(cancelled_stream));
    MUST(norm_primitive_destroy(cancelled));
    MUST(norm_primitive_desc_destroy(problem));
    MUST(norm_memory_desc_destroy(desc));
}

int main(int argc, char **argv) {
    const int emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    const norm_dim_t many = emulated ? 260 : 600, wide = emulated ? 25000 : 50000;
    static const norm_prop_kind_t kinds[]
            = {norm_forward_training, norm_forward_inference, norm_backward, norm_backward_data};
    norm_engine_t engine = NULL;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    for (int i = 0; i < 4; i += emulated ? 2 : 1) {
        same_bits(engine, kinds[i], many, 301, run_on_threads, 0);
        same_bits(engine, kinds[i], many, 301, run_on_threads, 1);
        same_bits(engine, kinds[i], many, 301, run_one_by_one, 0);
        same_bits(engine, kinds[i], many, 301, run_none, 0);
        same_bits(engine, kinds[i], many, 301, run_first, 0);
        same_bits(engine, kinds[i], 2, wide, run_on_threads, 0);
        same_bits(engine, kinds[i], 3, 5, run_on_threads, 0);
    }
    cancellation(engine);
    MUST(norm_engine_destroy(engine));
    return expect_summary("caller_threads");
}
