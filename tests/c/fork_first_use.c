/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * fork(), repeatedly, while other threads of the host use the library for the first
 * time. An unfinished first use must not block the child. First use happens once per
 * process, so the program restarts itself for each round; a number as argument runs
 * that round in this process. A child that hangs is killed by its own alarm.
 */
#define _POSIX_C_SOURCE 200809L
#include "formula.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 60
#define THREADS 4
#define FORKS 12
/* Only reached by a child that hangs. */
#define CHILD_SECONDS 60

static volatile int begin; /* accessed with __sync_fetch_and_add */

static int names(void) {
    return norm_dt2str(norm_f32)[0] == 'f' && norm_fmt_tag2str(norm_ab)[0] == 'a'
            && norm_prop_kind2str(norm_backward)[0] == 'b'
            && norm_cpu_isa2str(norm_cpu_isa_avx2)[0] == 'a';
}

/* Everything that the library initializes on first use, including its threads. */
static int execute(void) {
    problem_spec_t spec;
    problem_t p;
    norm_engine_t engine = NULL;
    norm_stream_t stream = NULL;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = 200;
    spec.dims[1] = 1024;
    spec.prop_kind = norm_forward_inference;
    spec.epsilon = 1e-5f;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_f32;
    if (norm_engine_create(&engine, norm_cpu, 0) != norm_success
            || norm_stream_create(&stream, engine, norm_stream_default_flags) != norm_success
            || !problem_make(&p, &spec, engine))
        return 0;
    const int good = problem_execute(&p, stream) == norm_success;
    problem_free(&p);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return good;
}

static int use(int turn) {
    switch (turn % 4) {
        case 0: return norm_get_num_threads() > 0 && execute() && names();
        case 1: return names() && norm_get_num_threads() > 0 && execute();
        case 2: return execute() && norm_get_effective_cpu_isa() != 0 && names();
        default: return norm_set_verbose(0) == norm_success && execute() && names();
    }
}

static void *first_use(void *argument) {
    const int turn = (int)(size_t)argument;
    while (!__sync_fetch_and_add(&begin, 0)) {}
    return use(turn) ? argument : NULL;
}

static int round_of(int round) {
    pthread_t threads[THREADS];
    pid_t children[FORKS];
    for (int i = 0; i < THREADS; ++i)
        EXPECT(pthread_create(&threads[i], NULL, first_use, (void *)(size_t)(1 + round + i)) == 0);
    __sync_fetch_and_add(&begin, 1);
    for (int i = 0; i < FORKS; ++i) {
        children[i] = fork();
        if (children[i] == 0) {
            alarm(CHILD_SECONDS);
            _exit(!use(i));
        }
        EXPECT(children[i] > 0);
    }
    for (int i = 0; i < FORKS; ++i) {
        int status = -1;
        EXPECT(children[i] > 0 && waitpid(children[i], &status, 0) == children[i]);
        if (!EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            fprintf(stderr, "    round %d: a child ended with %#x\n", round, (unsigned)status);
    }
    for (int i = 0; i < THREADS; ++i) {
        void *good = NULL;
        EXPECT(pthread_join(threads[i], &good) == 0 && good != NULL);
    }
    return expect_failed != 0;
}

int main(int argc, char **argv) {
    if (argc == 2) return round_of(atoi(argv[1]));
    for (int round = 0; round < ROUNDS && expect_failed == 0; ++round) {
        char number[16];
        snprintf(number, sizeof number, "%d", round);
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) {
            execl(argv[0], argv[0], number, (char *)NULL);
            _exit(127);
        }
        int status = -1;
        EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return expect_summary("fork_first_use");
}
