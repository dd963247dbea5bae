/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How long to wait until several threads take part in an execution. The library
 * promises no such thing: where other processes keep the processors busy, a caller
 * does well to work alone. So who waits in vain looks whether this machine runs two
 * threads at once at all, and is excused if not.
 *
 *     patience_t patience = {0, 0, 0};  (or static)
 *     do
 *         do ...; while (most < several && patience_lasts(&patience));
 *     while (most < several && patience_returns(&patience));
 *     EXPECT(most >= several || patience.excused);
 */
#ifndef PATIENCE_H
#define PATIENCE_H

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE_SECONDS 3.0
#define PATIENCE_ROUNDS 3
#define PATIENCE_LOOK 0.02 /* seconds */

typedef struct {
    double begun; /* 0: not yet */
    int rounds, excused;
} patience_t;

static inline double patience_clock(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Keeps a processor busy; the share of the time that the thread had one. */
static inline void *patience_spin(void *share) {
    const double wall = patience_clock(CLOCK_MONOTONIC);
    const double own = patience_clock(CLOCK_THREAD_CPUTIME_ID);
    double took;
    do
        took = patience_clock(CLOCK_MONOTONIC) - wall;
    while (took < PATIENCE_LOOK);
    *(double *)share = (patience_clock(CLOCK_THREAD_CPUTIME_ID) - own) / took;
    return NULL;
}

/* Who is excused once waits no more. */
static inline int patience_lasts(patience_t *p) {
    if (p->excused) return 0;
    const double now = patience_clock(CLOCK_MONOTONIC);
    if (p->begun == 0) p->begun = now;
    return now - p->begun < PATIENCE_SECONDS;
}

/* Whether it is worth another round. */
static inline int patience_returns(patience_t *p) {
    if (p->excused) return 0;
    for (int look = 0; look < 10; ++look) {
        double shares[2] = {0, 0};
        pthread_t other;
        if (pthread_create(&other, NULL, patience_spin, &shares[0]) != 0) continue;
        patience_spin(&shares[1]);
        pthread_join(other, NULL);
        if (shares[0] < 0.9 || shares[1] < 0.9) {
            printf("    two threads had %.2f and %.2f of a processor each: no help was waited for\n",
                    shares[0], shares[1]);
            p->excused = 1;
            return 0;
        }
    }
    p->begun = 0;
    return ++p->rounds < PATIENCE_ROUNDS;
}

#endif
