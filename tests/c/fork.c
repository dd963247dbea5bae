/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * fork() in a host with running library threads; the child then executes. This happens once
 * while the library is idle, then repeatedly while another thread of the host executes. A child
 * that hangs is killed by its own alarm and counts as a failure.
 *
 * With the argument "emulated", for valgrind: fewer forks and rows, on however many threads its
 * scheduler runs.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"
#include "thread_wait.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Only reached by a child that hangs. */
#define CHILD_SECONDS 120

static norm_engine_t engine;
static int several = 2; /* threads that must take part */
static norm_dim_t rows = 512;

static problem_spec_t spec_of(norm_prop_kind_t kind) {
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = 2;
    s.dims[0] = rows;
    s.dims[1] = 1024;
    s.prop_kind = kind;
    s.flags = norm_use_scale | norm_use_shift;
    s.epsilon = 1e-5f;
    s.src = s.dst = s.diff_dst = s.parameters = s.diff_parameters = norm_f32;
    return s;
}

/* Executes `fresh` at least once, until several threads took part or the wait gives up. */
static int execute_on_threads(problem_t *fresh, norm_stream_t stream) {
    static thread_wait_t waiting;
    waiting.begun = 0, waiting.rounds = 0;
    int most = 0;
    do
        do {
            if (problem_execute(fresh, stream) != norm_success) return -1;
            if (norm_get_last_num_threads() > most) most = norm_get_last_num_threads();
        } while (most < several && thread_wait_continues(&waiting));
    while (most < several && thread_wait_retries(&waiting));
    return waiting.excused ? several : most;
}

/* In the child: both directions, on several threads, with the parent's bits. */
static int child(const problem_t *forward, const problem_t *backward) {
    const problem_t *parents[] = {forward, backward};
    alarm(CHILD_SECONDS);
    for (int i = 0; i < 2; ++i) {
        problem_t own;
        norm_stream_t stream = NULL;
        if (norm_stream_create(&stream, engine, norm_stream_default_flags) != norm_success)
            return 2;
        if (!problem_make(&own, &parents[i]->spec, engine)) return 3;
        if (execute_on_threads(&own, stream) < several) return 4;
        if (!problem_same_bits(parents[i], &own)) return 5;
        /* The parent's primitive also works. */
        if (norm_primitive_execute(parents[i]->primitive, stream, own.nargs, own.args)
                != norm_success)
            return 6;
        if (!problem_same_bits(parents[i], &own)) return 7;
        problem_free(&own);
        norm_stream_destroy(stream);
    }
    return expect_failed != 0;
}

static void fork_and_wait(const problem_t *forward, const problem_t *backward) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) _exit(child(forward, backward));
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    EXPECT(!WIFSIGNALED(status));
    if (!EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        fprintf(stderr, "    the child ended with %#x\n", (unsigned)status);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stop_load;
static long loads;

static void *load(void *argument) {
    const problem_t *p = argument;
    norm_stream_t stream = NULL;
    norm_stream_create(&stream, engine, norm_stream_default_flags);
    for (int stop = 0; !stop;) {
        const int good = problem_execute(p, stream) == norm_success;
        pthread_mutex_lock(&lock);
        loads += good;
        stop = stop_load;
        pthread_mutex_unlock(&lock);
    }
    norm_stream_destroy(stream);
    return NULL;
}

int main(int argc, char **argv) {
    const int emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    const int forks_under_load = emulated ? 2 : 20;
    if (emulated) several = 1, rows = 128;
    const problem_spec_t specs[] = {spec_of(norm_forward_training), spec_of(norm_backward)};
    problem_t forward, backward, busy;
    norm_stream_t stream = NULL;
    MUST(norm_set_num_threads(3));
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    EXPECT(problem_make(&forward, &specs[0], engine) && problem_make(&backward, &specs[1], engine)
            && problem_make(&busy, &specs[1], engine));
    EXPECT(execute_on_threads(&forward, stream) >= several);
    EXPECT(execute_on_threads(&backward, stream) >= several);
    fork_and_wait(&forward, &backward);

    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, load, &busy) == 0);
    for (int i = 0; i < forks_under_load && expect_failed == 0; ++i)
        fork_and_wait(&forward, &backward);
    pthread_mutex_lock(&lock);
    stop_load = 1;
    pthread_mutex_unlock(&lock);
    EXPECT(pthread_join(thread, NULL) == 0 && loads > 0);

    /* The parent continues as before. */
    problem_t again;
    EXPECT(problem_make(&again, &specs[1], engine));
    EXPECT(execute_on_threads(&again, stream) >= several && problem_same_bits(&backward, &again));
    problem_free(&again);
    problem_free(&forward);
    problem_free(&backward);
    problem_free(&busy);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("fork");
}
