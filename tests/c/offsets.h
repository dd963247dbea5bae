/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The offsets of a descriptor's elements, computed from its query results.
 */
#ifndef OFFSETS_H
#define OFFSETS_H

#include "expect.h"

typedef struct {
    int ndims, blocks;
    norm_dim_t offset;
    norm_dims_t dims, padded, strides, sizes, cut;
} offsets_t;

static inline void offsets_query(
        const_norm_memory_desc_t desc, norm_query_t what, int count, norm_dim_t *to) {
    const norm_dims_t *answer = NULL;
    MUST(norm_memory_desc_query(desc, what, (void *)&answer));
    for (int i = 0; i < count; ++i) to[i] = (*answer)[i];
}

static inline offsets_t offsets_of(const_norm_memory_desc_t desc) {
    offsets_t p;
    memset(&p, 0, sizeof p);
    MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &p.ndims));
    MUST(norm_memory_desc_query(desc, norm_query_inner_nblks_s32, &p.blocks));
    MUST(norm_memory_desc_query(desc, norm_query_submemory_offset_s64, &p.offset));
    offsets_query(desc, norm_query_dims, p.ndims, p.dims);
    offsets_query(desc, norm_query_padded_dims, p.ndims, p.padded);
    offsets_query(desc, norm_query_strides, p.ndims, p.strides);
    offsets_query(desc, norm_query_inner_blks, p.blocks, p.sizes);
    offsets_query(desc, norm_query_inner_idxs, p.blocks, p.cut);
    return p;
}

static inline norm_dim_t offsets_count(const offsets_t *p) {
    norm_dim_t count = 1;
    for (int d = 0; d < p->ndims; ++d) count *= p->dims[d];
    return count;
}

/* The index of element `flat` in row-major order of dims (or padded dims). */
static inline void offsets_index(
        const norm_dim_t *dims, int ndims, norm_dim_t flat, norm_dim_t *index) {
    for (int d = ndims - 1; d >= 0; --d) {
        index[d] = flat % dims[d];
        flat /= dims[d];
    }
}

static inline size_t offsets_at(const offsets_t *p, const norm_dim_t *index) {
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

/* The offset of element `flat`. */
static inline size_t offsets_flat(const offsets_t *p, norm_dim_t flat) {
    norm_dims_t index;
    offsets_index(p->dims, p->ndims, flat, index);
    return offsets_at(p, index);
}

#endif
