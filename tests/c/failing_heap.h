/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls of the library in which an allocation fails. Define _GNU_SOURCE before the first include.
 */
#ifndef FAILING_HEAP_H
#define FAILING_HEAP_H

#include "expect.h"
#include "heap.h"

#include <unistd.h>

/* Which allocation fails, and whether the later ones of its call fail with it. */
static long failing;
static int to_the_end;
/* Allocations of the library so far; updated with __sync_add_and_fetch. */
static volatile long allocations;
static volatile int inside, refused;
/* Whether the functions are printed. */
static int listing;

static int heap_grants(void) {
    if (!inside) return 1;
    const int is_it = __sync_add_and_fetch(&allocations, 1) == failing;
    if (is_it || (refused && to_the_end)) refused = 1;
    return !(is_it || (refused && to_the_end));
}

/* Names of functions, in memory that all processes share. */
#define MOST_NAMES 128
#define LONGEST_NAME 80
typedef char names_t[MOST_NAMES][LONGEST_NAME];
/* The functions that have refused, and those that were called and create an object; NULL if not
 * recorded. */
static names_t *refusing, *creating;

static void note(names_t *names, const char *function) {
    int i = 0;
    while (i < MOST_NAMES - 1 && (*names)[i][0] != 0 && strcmp((*names)[i], function) != 0) ++i;
    strncpy((*names)[i], function, LONGEST_NAME - 1);
}

static int has_refused(const char *function) {
    for (int i = 0; i < MOST_NAMES; ++i)
        if (strcmp((*refusing)[i], function) == 0) return 1;
    return 0;
}

static int creates(const char *function) {
    return strstr(function, "_create") != NULL || strstr(function, "_clone") != NULL;
}

/* What the next call may write only if it succeeds. */
#define MOST_WATCHED 4
static struct {
    void *place;
    size_t bytes;
    char *before;
} watched[MOST_WATCHED];
static int watching;

static void watch(void *place, size_t bytes) {
    char *before = malloc(bytes);
    if (before == NULL) exit(2);
    memcpy(before, place, bytes);
    watched[watching].place = place;
    watched[watching].bytes = bytes;
    watched[watching++].before = before;
}

#define WATCH(object) watch(&(object), sizeof(object))

static void enter(const char *function) {
    snprintf(expect_case, sizeof expect_case, "%s, allocation %ld%s", function, failing,
            to_the_end ? " and after" : "");
    if (listing) puts(function), fflush(stdout); /* the library writes without stdio */
    refused = 0;
    inside = 1;
}

/* Whether the call must be repeated. */
static int leave(const char *function, norm_status_t status, norm_status_t want) {
    inside = 0;
    const int again = status == norm_out_of_memory;
    EXPECT(status == want || (again && refused));
    if (creating != NULL && creates(function)) note(creating, function);
    if (again) {
        note(refusing, function);
        for (int i = 0; i < watching; ++i)
            EXPECT(memcmp(watched[i].place, watched[i].before, watched[i].bytes) == 0);
        const char *sentence = norm_get_last_error();
        EXPECT(strncmp(sentence, function, strlen(function)) == 0);
        EXPECT(strstr(sentence, "alloc") != NULL);
    }
    while (watching > 0) free(watched[--watching].before);
    return again;
}

/* A call that returns a status, which must be `want`. If memory is lacking, the call is repeated.
 * */
#define ENDS(want, function, arguments) \
    do { \
        enter(#function); \
        const norm_status_t status_ = function arguments; \
        if (leave(#function, status_, want) && !EXPECT(function arguments == (want))) _exit(2); \
    } while (0)
#define CALL(function, arguments) ENDS(norm_success, function, arguments)

/* A call that does not return a status and cannot fail. */
#define VALUE(value, function, arguments) \
    do { \
        enter(#function); \
        const int holds_ = (function arguments) == (value); \
        inside = 0; \
        EXPECT(holds_); \
    } while (0)
#define NAME(name, function, value) \
    do { \
        enter(#function); \
        const char *name_ = function(value); \
        inside = 0; \
        EXPECT(strcmp(name_, name) == 0); \
    } while (0)

#endif
