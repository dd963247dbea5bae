/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A system that refuses threads for a while. The caller does the work, the library tries again
 * less and less often, and in the end workers take part. The program replaces pthread_create.
 */
#define _GNU_SOURCE
#include "formula.h"
#include "thread_wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static volatile int refuses = 1, asked;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
        void *argument) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    ++asked;
    if (refuses) return EAGAIN;
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, start, argument);
}

int main(void) {
    norm_engine_t engine = NULL;
    norm_stream_t stream = NULL;
    problem_t p;
    problem_spec_t spec;
    memset(&spec, 0, sizeof spec);
    spec.ndims = 2;
    spec.dims[0] = 700;
    spec.dims[1] = 301;
    spec.prop_kind = norm_forward_training;
    spec.epsilon = 1e-5f;
    spec.src = spec.dst = spec.diff_dst = spec.parameters = spec.diff_parameters = norm_f32;
    problem_name(&spec, "threads are refused");
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_set_num_threads(2));
    EXPECT(problem_make(&p, &spec, engine));
    for (int i = 0; i < 100; ++i) {
        EXPECT(problem_execute(&p, stream) == norm_success);
        EXPECT(norm_get_last_num_threads() == 1);
    }
    formula_check(&p);
    EXPECT(asked >= 4 && asked <= 10); /* at 1, 3, 7, 15, ... */
    refuses = 0;
    const int before = asked;
    for (int i = 0; i < 100; ++i) EXPECT(problem_execute(&p, stream) == norm_success);
    EXPECT(asked == before + 1);
    int most = 0;
    thread_wait_t waiting = {0, 0, 0};
    do
        do {
            EXPECT(problem_execute(&p, stream) == norm_success);
            if (norm_get_last_num_threads() > most) most = norm_get_last_num_threads();
        } while (most < 2 && thread_wait_continues(&waiting));
    while (most < 2 && thread_wait_retries(&waiting));
    EXPECT(most == 2 || waiting.excused);
    formula_check(&p);
    problem_free(&p);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("refused_threads");
}
