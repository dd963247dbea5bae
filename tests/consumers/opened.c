/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Opens the library named on the command line, which is not linked, and calls it on threads that have no memory from
 * the start: there, thread-local storage would end the process.
 */
#define _GNU_SOURCE
static volatile int denied;
static int heap_grants(void) {
    return !denied;
}
#include "../c/heap.h"
#include "norm.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static norm_status_t (*engine_create)(norm_engine_t *, norm_engine_kind_t, size_t);
static const char *(*get_last_error)(void);
static int failed;

static void expect(int holds, const char *what) {
    if (holds) return;
    ++failed;
    fprintf(stderr, "%s, but the last error is: %s\n", what, get_last_error());
}

static void *without_memory(void *unused) {
    norm_engine_t engine = NULL;
    denied = 1;
    const norm_status_t wrong = engine_create(&engine, norm_cpu, 7);
    const int says = strstr(get_last_error(), "norm_engine_create: index: 7") != NULL;
    const norm_status_t lacking = engine_create(&engine, norm_cpu, 0);
    denied = 0;
    expect(wrong == norm_invalid_arguments && says, "a wrong index is named");
    expect(lacking == norm_out_of_memory && engine == NULL, "there is no memory for an engine");
    return unused;
}

static pthread_barrier_t together;

static void *waiting(void *unused) {
    pthread_barrier_wait(&together);
    engine_create(NULL, norm_cpu, 0);
    expect(strlen(get_last_error()) > 0, "there is a message");
    pthread_barrier_wait(&together);
    return unused;
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) return 2;
    *(void **)&engine_create = dlsym(library, "norm_engine_create");
    *(void **)&get_last_error = dlsym(library, "norm_get_last_error");
    pthread_t threads[12];
    /* One after another: each returns what it took from the reserve. */
    for (int i = 0; i < 20; ++i)
        if (pthread_create(&threads[0], NULL, without_memory, NULL) || pthread_join(threads[0], NULL))
            return 2;
    /* Together, more than the reserve has room for. */
    pthread_barrier_init(&together, NULL, 13);
    for (int i = 0; i < 12; ++i)
        if (pthread_create(&threads[i], NULL, waiting, NULL)) return 2;
    denied = 1;
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    denied = 0;
    for (int i = 0; i < 12; ++i) pthread_join(threads[i], NULL);
    printf("opened: %d failed\n", failed);
    return failed != 0;
}
