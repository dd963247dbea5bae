/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Executing a primitive on buffers whose descriptors come from the primitive.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "expect.h"

#define ARGUMENTS_MAX 8

typedef struct {
    int id;
    void *data;
} argument_t;

/* Creates the primitive and its memories, which primitive_free destroys. */
typedef struct {
    norm_primitive_t primitive;
    int count;
    norm_exec_arg_t args[ARGUMENTS_MAX];
} primitive_t;

static inline primitive_t primitive_of(
        norm_primitive_desc_t pd, norm_engine_t engine, int count, const argument_t *arguments) {
    primitive_t p;
    memset(&p, 0, sizeof p);
    p.count = count;
    MUST(norm_primitive_create(&p.primitive, pd));
    for (int i = 0; i < count; ++i) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, arguments[i].id);
        p.args[i].arg = arguments[i].id;
        MUST(norm_memory_create(&p.args[i].memory, desc, engine, arguments[i].data));
    }
    return p;
}

static inline void primitive_free(primitive_t *p) {
    for (int i = 0; i < p->count; ++i) MUST(norm_memory_destroy(p->args[i].memory));
    MUST(norm_primitive_destroy(p->primitive));
}

static inline norm_status_t execute_with(norm_primitive_desc_t pd, norm_engine_t engine,
        norm_stream_t stream, int count, const argument_t *arguments) {
    primitive_t p = primitive_of(pd, engine, count, arguments);
    const norm_status_t status = norm_primitive_execute(p.primitive, stream, count, p.args);
    primitive_free(&p);
    return status;
}

#endif
