/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Replaces the allocation functions of the program, and so of the library, on every
 * thread. Before the first include, define _GNU_SOURCE and heap_grants().
 */
#ifndef HEAP_H
#define HEAP_H

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

/* Called at every allocation. If it returns 0, the allocation fails. */
static int heap_grants(void);

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);

/* dlsym itself may allocate before the original functions are known. */
static union {
    char bytes[8192];
    long double aligned;
} early;
static size_t early_used;
static int looking;

static void *early_alloc(size_t bytes) {
    const size_t start = (early_used + 15) & ~(size_t)15;
    if (start + bytes > sizeof early.bytes) abort();
    early_used = start + bytes;
    return early.bytes + start;
}

static int is_early(const void *p) {
    return (const char *)p >= early.bytes
            && (const char *)p < early.bytes + sizeof early.bytes;
}

/* POSIX guarantees that dlsym's result converts to a function; C does not. */
static void find_next(void) {
    looking = 1;
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    *(void **)&next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    looking = 0;
}

/* Whether the original functions are known. */
static int ready(void) {
    if (next_aligned_alloc == NULL && !looking) find_next();
    return !looking;
}

/* glibc's own callers expect errno. */
static void *heap_refuses(void) {
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes) {
    if (!heap_grants()) return heap_refuses();
    return ready() ? next_malloc(bytes) : early_alloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    if (!heap_grants()) return heap_refuses();
    return ready() ? next_calloc(count, bytes) : early_alloc(count * bytes);
}

void *realloc(void *p, size_t bytes) {
    if (!heap_grants()) return heap_refuses();
    if (!ready() || is_early(p)) abort();
    return next_realloc(p, bytes);
}

void free(void *p) {
    if (p != NULL && !is_early(p)) next_free(p);
}

int posix_memalign(void **p, size_t alignment, size_t bytes) {
    return heap_grants() && ready() ? next_posix_memalign(p, alignment, bytes) : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return heap_grants() && ready() ? next_aligned_alloc(alignment, bytes) : heap_refuses();
}

#endif
