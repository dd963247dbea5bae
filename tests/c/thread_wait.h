/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How long to wait until several threads take part in an execution. The library
 * does not guarantee it: if other processes keep the CPUs busy, the caller works
 * alone. After waiting in vain, a test measures whether this machine runs two
 * threads at once at all, and gives up without failing if it does not.
 *
 *     thread_wait_t waiting = {0, 0, 0};  (or static)
 *     do
 *         do ...; while (most < several && thread_wait_continues(&waiting));
 *     while (most < several && thread_wait_retries(&waiting));
 *     EXPECT(most >= several || waiting.excused);
 */
#ifndef THREAD_WAIT_H
#define THREAD_WAIT_H

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define THREAD_WAIT_SECONDS 3.0
#define THREAD_WAIT_ROUNDS 3
#define THREAD_WAIT_SAMPLE 0.02 /* seconds */

typedef struct {
    double begun; /* 0: not started */
    int rounds, excused;
} thread_wait_t;

static inline double thread_wait_clock(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Keeps a CPU busy, and stores the fraction of the time in which the thread ran. */
static inline void *thread_wait_spin(void *share) {
    const double wall = thread_wait_clock(CLOCK_MONOTONIC);
    const double own = thread_wait_clock(CLOCK_THREAD_CPUTIME_ID);
    double took;
    do
        took = thread_wait_clock(CLOCK_MONOTONIC) - wall;
    while (took < THREAD_WAIT_SAMPLE);
    *(double *)share = (thread_wait_clock(CLOCK_THREAD_CPUTIME_ID) - own) / took;
    return NULL;
}

/* False after the time limit, or if the test has given up. */
static inline int thread_wait_continues(thread_wait_t *p) {
    if (p->excused) return 0;
    const double now = thread_wait_clock(CLOCK_MONOTONIC);
    if (p->begun == 0) p->begun = now;
    return now - p->begun < THREAD_WAIT_SECONDS;
}

/* Whether to try another round. */
static inline int thread_wait_retries(thread_wait_t *p) {
    if (p->excused) return 0;
    for (int look = 0; look < 10; ++look) {
        double shares[2] = {0, 0};
        pthread_t other;
        if (pthread_create(&other, NULL, thread_wait_spin, &shares[0]) != 0) continue;
        thread_wait_spin(&shares[1]);
        pthread_join(other, NULL);
        if (shares[0] < 0.9 || shares[1] < 0.9) {
            printf("    two threads ran %.2f and %.2f of the time: not waiting for several threads\n",
                    shares[0], shares[1]);
            p->excused = 1;
            return 0;
        }
    }
    p->begun = 0;
    return ++p->rounds < THREAD_WAIT_ROUNDS;
}

#endif
