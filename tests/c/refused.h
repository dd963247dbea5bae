/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls that must be rejected with the given status and an error message that
 * names the function and the parameter, without writing anything.
 */
#ifndef REFUSED_H
#define REFUSED_H

#include "expect.h"

#include <ctype.h>
#include <limits.h>

/* Values that are no enumerators. */
static const int no_enumerator[] = {-1, 1000, INT_MAX};
#define NO_ENUMERATORS 3

/* The content of outputs before and after a call. */
#define UNTOUCHED ((void *)(size_t)0x5A5A5A50)

/* Whether `text` contains `word` as a whole word. */
static inline int refused_names(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        const int before = at == text ? ' ' : at[-1], after = at[length];
        if (!isalnum(before) && before != '_' && !isalnum(after) && after != '_') return 1;
    }
    return 0;
}

/* Causes another error first, so that its message cannot pass for the new one. */
static inline void refused_forget(const char *function) {
    if (strcmp(function, "norm_set_verbose") == 0)
        EXPECT(norm_set_num_threads(-7) == norm_invalid_arguments);
    else
        EXPECT(norm_set_verbose(77) == norm_invalid_arguments);
}

static inline void refused_sentence(
        int line, int holds, const char *function, const char *parameter) {
    const char *sentence = norm_get_last_error();
    snprintf(expect_case, sizeof expect_case, "%s, %s", function, parameter);
    expect_that(holds, "refused, on line", line, "the status is the expected one");
    expect_that(refused_names(sentence, function), "refused, on line", line,
            "the sentence names the function");
    expect_that(refused_names(sentence, parameter), "refused, on line", line,
            "the sentence names the parameter");
    expect_case[0] = 0;
}

/* Expects the status `want` from `function arguments`. */
#define REFUSED(want, parameter, function, arguments) \
    do { \
        refused_forget(#function); \
        const norm_status_t status_ = function arguments; \
        refused_sentence(__LINE__, status_ == (want), #function, parameter); \
        if (status_ != (want)) \
            fprintf(stderr, "    %s instead of %s\n", norm_status2str(status_), \
                    norm_status2str(want)); \
    } while (0)

/* norm_invalid_arguments, the most common status. */
#define INVALID(parameter, function, arguments) \
    REFUSED(norm_invalid_arguments, parameter, function, arguments)

/* A function without a status, with the value that it returns on failure. */
#define FAILS_WITH(value, parameter, function, arguments) \
    do { \
        refused_forget(#function); \
        const int holds_ = (function arguments) == (value); \
        refused_sentence(__LINE__, holds_, #function, parameter); \
    } while (0)

#endif
