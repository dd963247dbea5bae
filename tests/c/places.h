/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Where the elements of any descriptor lie, from what it answers to queries.
 */
#ifndef PLACES_H
#define PLACES_H

#include "expect.h"

typedef struct {
    int ndims, blocks;
    norm_dim_t offset;
    norm_dims_t dims, padded, strides, sizes, cut;
} places_t;

static inline void places_ask(
        const_norm_memory_desc_t desc, norm_query_t what, int count, norm_dim_t *to) {
    const norm_dims_t *answer = NULL;
    MUST(norm_memory_desc_query(desc, what, (void *)&answer));
    for (int i = 0; i < count; ++i) to[i] = (*answer)[i];
}

static inline places_t places_of(const_norm_memory_desc_t desc) {
    places_t p;
    memset(&p, 0, sizeof p);
    MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &p.ndims));
    MUST(norm_memory_desc_query(desc, norm_query_inner_nblks_s32, &p.blocks));
    MUST(norm_memory_desc_query(desc, norm_query_submemory_offset_s64, &p.offset));
    places_ask(desc, norm_query_dims, p.ndims, p.dims);
    places_ask(desc, norm_query_padded_dims, p.ndims, p.padded);
    places_ask(desc, norm_query_strides, p.ndims, p.strides);
    places_ask(desc, norm_query_inner_blks, p.blocks, p.sizes);
    places_ask(desc, norm_query_inner_idxs, p.blocks, p.cut);
    return p;
}

static inline norm_dim_t places_count(const places_t *p) {
    norm_dim_t count = 1;
    for (int d = 0; d < p->ndims; ++d) count *= p->dims[d];
    return count;
}

/* The element number `flat` in row-major order of dims (or padded dims). */
static inline void places_index(
        const norm_dim_t *dims, int ndims, norm_dim_t flat, norm_dim_t *index) {
    for (int d = ndims - 1; d >= 0; --d) {
        index[d] = flat % dims[d];
        flat /= dims[d];
    }
}

static inline size_t places_at(const places_t *p, const norm_dim_t *index) {
    norm_dims_t rest;
    norm_dim_t at = p->offset, inside = 1;
    for (int d = 0; d < p->ndims; ++d) rest[d] = index[d];
    for (int b = p->blocks - 1; b >= 0; --b) {
        const int d = (int)p->cut[b];
        at += rest[d] % p->sizes[b] * inside;
        rest[d] /= p->sizes[b];
        inside *= p->sizes[b];
    }
    for (int d = 0; d < p->ndims; ++d) at += rest[d] * p->strides[d];
    return (size_t)at;
}

/* The place of the element number `flat`. */
static inline size_t places_flat(const places_t *p, norm_dim_t flat) {
    norm_dims_t index;
    places_index(p->dims, p->ndims, flat, index);
    return places_at(p, index);
}

#endif
