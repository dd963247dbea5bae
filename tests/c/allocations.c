/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * From the second execution on, no memory is allocated. The program replaces the allocation
 * functions, so that it sees the library's calls on every thread.
 *
 * With the argument "emulated", for valgrind: fewer and smaller executions, on however many threads
 * its scheduler runs.
 */
#define _GNU_SOURCE
#include "formula.h"
#include "heap.h"
#include "thread_wait.h"

static int emulated;
static volatile long allocations; /* updated with __sync_fetch_and_add */

static int heap_grants(void) {
    __sync_fetch_and_add(&allocations, 1);
    return 1;
}

static void from_the_second_on(norm_engine_t engine, norm_prop_kind_t kind, norm_dim_t rows,
        norm_dim_t cols, int threads, int user_scratchpad, int layout) {
    problem_spec_t spec;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = rows;
    spec.dims[1] = cols;
    spec.prop_kind = kind;
    spec.flags = norm_use_scale | norm_use_shift;
    spec.epsilon = 1e-5f;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_bf16;
    spec.src_layout = spec.dst_layout = layout;
    spec.user_scratchpad = user_scratchpad;
    char where[64];
    snprintf(where, sizeof where, "%d threads", threads);
    problem_name(&spec, where);
    MUST(norm_set_num_threads(threads));
    norm_stream_t stream = NULL;
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    problem_t p;
    const long before_making = allocations;
    EXPECT(problem_make(&p, &spec, engine));
    EXPECT(allocations > before_making); /* the counter works */
    EXPECT(problem_execute(&p, stream) == norm_success);
    const long before = allocations;
    /* On a busy machine it may take a while until several threads take part. */
    const int several = rows * cols > 100000 && !emulated ? threads : 1;
    int failures = 0, most = 0;
    thread_wait_t waiting = {0, 0, 0};
    for (int i = 0; i < (emulated ? 2 : 300) || (most < several && thread_wait_continues(&waiting)); ++i) {
        failures += problem_execute(&p, stream) != norm_success;
        if (norm_get_last_num_threads() > most) most = norm_get_last_num_threads();
    }
    /* The same for several primitives in one call. */
    const const_norm_primitive_t several_of[] = {p.primitive};
    const norm_exec_arg_t *const args[] = {p.args};
    const long before_many = allocations;
    failures += norm_primitive_execute_many(1, several_of, stream, &p.nargs, args) != norm_success;
    const long after_first = allocations;
    for (int i = 0; i < 5; ++i)
        failures += norm_primitive_execute_many(1, several_of, stream, &p.nargs, args) != norm_success;
    EXPECT(allocations == after_first);
    const long during = before_many - before;
    if (most < several) thread_wait_retries(&waiting);
    if (!EXPECT(failures == 0 && during == 0))
        fprintf(stderr, "    %ld allocations, %d failures\n", during, failures);
    EXPECT(most <= threads && (most >= several || waiting.excused));
    formula_check(&p);
    problem_free(&p);
    MUST(norm_stream_destroy(stream));
}

/* A KV cache only allocates at its creation. */
static void caches(norm_engine_t engine) {
    norm_kv_cache_t cache = NULL;
    norm_stream_t stream = NULL;
    norm_memory_desc_t desc = NULL;
    norm_memory_t rows = NULL;
    static float values[8 * 4];
    const norm_dim_t dims[] = {1, 1, 8, 4};
    norm_exec_arg_t args[4];
    int nargs = 4;
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_memory_desc_create_with_tag(&desc, 4, dims, norm_f32, norm_abcd));
    MUST(norm_memory_create(&rows, desc, engine, values));
    const long before_making = allocations;
    MUST(norm_kv_cache_create(&cache, engine, norm_kv_ring, norm_bf16, 1, 1, 4, 4, 3, 64, 24, 4, 0, 6, 2));
    EXPECT(allocations > before_making);
    const long before = allocations;
    for (int i = 0; i < 20; ++i) {
        norm_dim_t sequences[3];
        const norm_dim_t tokens[] = {7, 8, 0};
        MUST(norm_kv_cache_new_sequence(cache, &sequences[0]));
        MUST(norm_kv_cache_extend(cache, 1, sequences, tokens, 0));
        MUST(norm_kv_cache_write(cache, stream, 0, rows, rows));
        MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[1]));
        MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[2]));
        MUST(norm_kv_cache_extend(cache, 1, &sequences[1], tokens, 0));
        MUST(norm_kv_cache_get_rope_arguments(cache, 0, &nargs, args));
        MUST(norm_kv_cache_write(cache, stream, 0, NULL, rows));
        nargs = 4;
        MUST(norm_kv_cache_get_arguments(cache, 0, 3, sequences, &nargs, args));
        MUST(norm_kv_cache_truncate(cache, sequences[1], 9));
        for (int b = 0; b < 3; ++b) MUST(norm_kv_cache_drop(cache, sequences[b]));
    }
    EXPECT(allocations == before);
    MUST(norm_kv_cache_destroy(cache));
    MUST(norm_memory_destroy(rows));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_stream_destroy(stream));
}

int main(int argc, char **argv) {
    emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    static const norm_prop_kind_t kinds[]
            = {norm_forward_training, norm_forward_inference, norm_backward, norm_backward_data};
    norm_engine_t engine = NULL;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    for (int threads = 1; threads <= 2; ++threads)
        for (int user = 0; user < 2; ++user)
            for (int kind = 0; kind < 4; kind += emulated ? 2 : 1) {
                from_the_second_on(engine, kinds[kind], emulated ? 180 : 700, 301, threads, user, LAYOUT_DENSE);
                from_the_second_on(engine, kinds[kind], 5, 33, threads, user, LAYOUT_DENSE);
                from_the_second_on(engine, kinds[kind], 5, 33, threads, user, LAYOUT_REVERSED);
            }
    caches(engine);
    MUST(norm_engine_destroy(engine));
    return expect_summary("allocations");
}
