/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Expectations of the test programs. A program continues after a failure and prints
 * each one with its line. main returns expect_summary(), which is 0 only if something
 * was checked and nothing failed.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include "norm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_PRINTED_AT_MOST 20

static long expect_checked, expect_failed;
/* The current case, for messages; set by the programs. */
static char expect_case[512];

static inline int expect_that(int holds, const char *file, int line, const char *what) {
    ++expect_checked;
    if (!holds && ++expect_failed <= EXPECT_PRINTED_AT_MOST)
        fprintf(stderr, "%s:%d: %s [%s] last error: %s\n", file, line, what, expect_case,
                norm_get_last_error());
    return holds;
}

/* Checks a condition and returns its value. */
#define EXPECT(condition) expect_that(!!(condition), __FILE__, __LINE__, #condition)

/* A call that must succeed for the program to continue. */
#define MUST(call) \
    do { \
        if (!EXPECT((call) == norm_success)) exit(1); \
    } while (0)

static inline int expect_summary(const char *program) {
    printf("%s: %ld checks, %ld failed\n", program, expect_checked, expect_failed);
    return expect_failed != 0 || expect_checked == 0;
}

#endif
