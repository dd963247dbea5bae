/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A tensor of the tests: a descriptor, a buffer and a memory over it. Elements are
 * addressed by row and column. The last dimension is the column; the others, in
 * row-major order, are the row, whatever the strides.
 */
#ifndef TENSOR_H
#define TENSOR_H

#include "element.h"
#include "expect.h"

/* Fill pattern of buffers, to detect unexpected writes. */
#define TENSOR_FILL 0xA5

typedef struct {
    norm_data_type_t type;
    int ndims;
    norm_dims_t dims, strides;
    size_t rows, cols, bytes;
    norm_memory_desc_t desc;
    norm_memory_t memory;
    unsigned char *data; /* the caller's, or own_data */
    void *own_data;
} tensor_t;

/* Allocates the buffers of tensors; NULL means malloc. A program may set it. */
static void *(*tensor_place)(size_t bytes);

/* Creates a tensor from a descriptor and takes ownership of it. If `data` is NULL, allocates a
 * buffer. */
static inline tensor_t tensor_of_desc(
        norm_memory_desc_t desc, norm_engine_t engine, void *data) {
    tensor_t t;
    memset(&t, 0, sizeof t);
    t.desc = desc;
    t.bytes = norm_memory_desc_get_size(desc);
    const norm_dims_t *dims = NULL, *strides = NULL;
    MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &t.ndims));
    MUST(norm_memory_desc_query(desc, norm_query_data_type, &t.type));
    if (t.ndims > 0) {
        MUST(norm_memory_desc_query(desc, norm_query_dims, (void *)&dims));
        MUST(norm_memory_desc_query(desc, norm_query_strides, (void *)&strides));
    }
    t.rows = 1;
    for (int i = 0; i < t.ndims; ++i) {
        t.dims[i] = (*dims)[i];
        t.strides[i] = (*strides)[i];
        if (i + 1 < t.ndims) t.rows *= (size_t)t.dims[i];
    }
    t.cols = t.ndims > 0 ? (size_t)t.dims[t.ndims - 1] : 0;
    t.data = data;
    if (data == NULL) {
        if (tensor_place != NULL) {
            t.data = tensor_place(t.bytes);
        } else {
            t.own_data = malloc(t.bytes + 1);
            t.data = t.own_data;
        }
        memset(t.data, TENSOR_FILL, t.bytes);
    }
    MUST(norm_memory_create(&t.memory, desc, engine, t.data));
    return t;
}

/* `strides` NULL means dense row-major. */
static inline tensor_t tensor_make(norm_data_type_t type, int ndims, const norm_dim_t *dims,
        const norm_dim_t *strides, norm_engine_t engine) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, type, strides));
    return tensor_of_desc(desc, engine, NULL);
}

/* Creates a tensor with a copy of the library's descriptor. */
static inline tensor_t tensor_like(const_norm_memory_desc_t existing, norm_engine_t engine) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_clone(&desc, existing));
    return tensor_of_desc(desc, engine, NULL);
}

static inline void tensor_free(tensor_t *t) {
    if (t->desc == NULL) return;
    MUST(norm_memory_destroy(t->memory));
    MUST(norm_memory_desc_destroy(t->desc));
    free(t->own_data);
    memset(t, 0, sizeof *t);
}

/* The offset of an element in the buffer, in elements. */
/* A copy at an odd address, which the memory then refers to. tensor_even undoes this. */
static inline unsigned char *tensor_odd(const tensor_t *t) {
    unsigned char *odd = malloc(t->bytes + 1);
    memcpy(odd + 1, t->data, t->bytes);
    MUST(norm_memory_set_data_handle(t->memory, odd + 1));
    return odd;
}

static inline void tensor_even(const tensor_t *t, unsigned char *odd) {
    MUST(norm_memory_set_data_handle(t->memory, t->data));
    free(odd);
}

static inline size_t tensor_index(const tensor_t *t, size_t row, size_t col) {
    size_t index = col * (size_t)t->strides[t->ndims - 1];
    for (int i = t->ndims - 2; i >= 0; --i) {
        index += row % (size_t)t->dims[i] * (size_t)t->strides[i];
        row /= (size_t)t->dims[i];
    }
    return index;
}

static inline double tensor_get(const tensor_t *t, size_t row, size_t col) {
    return element_get(t->type, t->data, tensor_index(t, row, col));
}
static inline void tensor_set(tensor_t *t, size_t row, size_t col, double value) {
    element_set(t->type, t->data, tensor_index(t, row, col), value);
}

static inline void tensor_fill_random(tensor_t *t, uint64_t *state, double low, double high) {
    for (size_t row = 0; row < t->rows; ++row)
        for (size_t col = 0; col < t->cols; ++col)
            tensor_set(t, row, col, random_between(state, low, high));
}

/* Whether the bytes between elements still have the fill pattern. */
static inline int tensor_gaps_untouched(const tensor_t *t) {
    const size_t size = element_bytes(t->type);
    unsigned char *element = calloc(t->bytes + 1, 1);
    int untouched = 1;
    for (size_t row = 0; row < t->rows; ++row)
        for (size_t col = 0; col < t->cols; ++col)
            memset(element + tensor_index(t, row, col) * size, 1, size);
    for (size_t i = 0; i < t->bytes; ++i)
        if (!element[i] && t->data[i] != TENSOR_FILL) untouched = 0;
    free(element);
    return untouched;
}

/* Whether nothing was written since the tensor was created. */
static inline int tensor_untouched(const tensor_t *t) {
    for (size_t i = 0; i < t->bytes; ++i)
        if (t->data[i] != TENSOR_FILL) return 0;
    return 1;
}

/* Whether the elements of a row follow each other. */
static inline int tensor_has_dense_rows(const tensor_t *t) {
    return t->ndims > 0 && t->strides[t->ndims - 1] == 1;
}

static inline int tensor_same_bits(const tensor_t *a, const tensor_t *b) {
    if (a->type != b->type || a->rows != b->rows || a->cols != b->cols) return 0;
    const size_t size = element_bytes(a->type);
    const int dense = tensor_has_dense_rows(a) && tensor_has_dense_rows(b);
    const size_t count = dense ? a->cols : 1;
    for (size_t row = 0; row < a->rows; ++row)
        for (size_t col = 0; col < a->cols; col += count)
            if (memcmp(a->data + tensor_index(a, row, col) * size,
                        b->data + tensor_index(b, row, col) * size, count * size)
                    != 0)
                return 0;
    return 1;
}

#endif
