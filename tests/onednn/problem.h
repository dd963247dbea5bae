/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * One layer normalization: objects, data, execution. Included once per C program.
 *
 * The exact data has statistics, results and gradients that are exact in all types and
 * for every order of summation: each element is the row's mean plus or minus a power of
 * two, and epsilon is 0.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "print.h"

enum { MAX_ELEMENTS = 512 };

struct flags_name {
    unsigned flags;
    const char *name;
};

/* Every combination of flags, named as in benchdnn. */
static const struct flags_name every_flags[] = {{0, "none"}, {1, "G"}, {2, "C"},
        {3, "GC"}, {4, "H"}, {5, "GH"}, {6, "CH"}, {7, "GCH"}, {32, "M"},
        {33, "GM"}, {34, "CM"}, {35, "GCM"}, {36, "HM"}, {37, "GHM"},
        {38, "CHM"}, {39, "GCHM"}};
enum { FLAGS = sizeof every_flags / sizeof *every_flags };

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static inline void begin(void) {
    OK(dnnl_engine_create(&engine, dnnl_cpu, 0));
    OK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

static inline void end(void) {
    OK(dnnl_stream_destroy(stream));
    OK(dnnl_engine_destroy(engine));
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* f16 of a number that is exact and normal in f16, or 0. */
static inline uint16_t to_f16(float value) {
    const uint32_t bits = bits_of(value);
    if (value == 0) return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10
            | (bits >> 13 & 0x3ff));
}

static inline float from_f16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    if (!(half & 0x7fff)) return of_bits(sign);
    return of_bits(sign | ((half >> 10 & 31u) + 112) << 23 | (half & 0x3ffu) << 13);
}

static inline void put(void *buffer, dnnl_data_type_t type, size_t at, float value) {
    switch (type) {
        case dnnl_f32: ((float *)buffer)[at] = value; break;
        case dnnl_bf16: ((uint16_t *)buffer)[at] = (uint16_t)(bits_of(value) >> 16); break;
        case dnnl_f16: ((uint16_t *)buffer)[at] = to_f16(value); break;
        case dnnl_s8: ((int8_t *)buffer)[at] = (int8_t)value; break;
        case dnnl_u8: ((uint8_t *)buffer)[at] = (uint8_t)value; break;
        default: printf("no such type\n"); exit(1);
    }
}

static inline float get(const void *buffer, dnnl_data_type_t type, size_t at) {
    switch (type) {
        case dnnl_f32: return ((const float *)buffer)[at];
        case dnnl_bf16: return of_bits((uint32_t)((const uint16_t *)buffer)[at] << 16);
        case dnnl_f16: return from_f16(((const uint16_t *)buffer)[at]);
        case dnnl_s8: return ((const int8_t *)buffer)[at];
        case dnnl_u8: return ((const uint8_t *)buffer)[at];
        default: printf("no such type\n"); exit(1);
    }
}

static inline dnnl_memory_desc_t with_tag(int ndims, const dnnl_dims_t dims,
        dnnl_data_type_t type, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t desc;
    OK(dnnl_memory_desc_create_with_tag(&desc, ndims, dims, type, tag));
    return desc;
}

/* A tensor: its memory and its layout. */
struct tensor {
    dnnl_memory_t memory;
    dnnl_data_type_t type;
    int ndims;
    dnnl_dims_t dims, strides;
    dnnl_dim_t offset;
    int count;
};

/* A tensor with a descriptor that the caller keeps; the library allocates the
 * buffer. */
static inline struct tensor tensor_of(const_dnnl_memory_desc_t desc) {
    struct tensor t;
    const dnnl_dims_t *dims, *strides;
    OK(dnnl_memory_desc_query(desc, dnnl_query_data_type, &t.type));
    OK(dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &t.ndims));
    OK(dnnl_memory_desc_query(desc, dnnl_query_dims, (void *)&dims));
    OK(dnnl_memory_desc_query(desc, dnnl_query_strides, (void *)&strides));
    OK(dnnl_memory_desc_query(desc, dnnl_query_submemory_offset_s64, &t.offset));
    memcpy(t.dims, *dims, sizeof t.dims);
    memcpy(t.strides, *strides, sizeof t.strides);
    t.count = 1;
    for (int i = 0; i < t.ndims; ++i)
        t.count *= (int)t.dims[i];
    OK(dnnl_memory_create(&t.memory, desc, engine, DNNL_MEMORY_ALLOCATE));
    return t;
}

/* The offset of a logical index. */
static inline size_t place(const struct tensor *t, int index) {
    dnnl_dim_t at = t->offset;
    for (int i = t->ndims - 1; i >= 0; --i) {
        at += index % t->dims[i] * t->strides[i];
        index /= (int)t->dims[i];
    }
    return (size_t)at;
}

static inline void fill(const struct tensor *t, const float *values) {
    void *data;
    OK(dnnl_memory_map_data(t->memory, &data));
    for (int i = 0; i < t->count; ++i)
        put(data, t->type, place(t, i), values[i]);
    OK(dnnl_memory_unmap_data(t->memory, data));
}

static inline void read_values(const struct tensor *t, float *values) {
    void *data;
    OK(dnnl_memory_map_data(t->memory, &data));
    for (int i = 0; i < t->count; ++i)
        values[i] = get(data, t->type, place(t, i));
    OK(dnnl_memory_unmap_data(t->memory, data));
}

static inline void print_tensor(const char *name, const struct tensor *t, int digits) {
    float values[MAX_ELEMENTS];
    read_values(t, values);
    print_values(name, values, t->count, digits);
}

/* The same, with the descriptor of a primitive descriptor's argument. */
static inline struct tensor argument(const_dnnl_primitive_desc_t problem, int id) {
    return tensor_of(dnnl_primitive_desc_query_md(problem, dnnl_query_exec_arg_md, id));
}

/* Data for the problem's rows of C elements. */
struct data {
    float src[MAX_ELEMENTS], mean[MAX_ELEMENTS], variance[MAX_ELEMENTS];
    float scale[MAX_ELEMENTS], shift[MAX_ELEMENTS], diff_dst[MAX_ELEMENTS];
    float epsilon;
};

/* With `rms`, data whose mean square is the variance. */
static inline void exact_data(struct data *d, int rows, int cols, int rms) {
    for (int r = 0; r < rows; ++r) {
        const float mean = rms ? 0.f : (float)(r % 5 - 2);
        const float half = (float)(1 << r % 3);
        d->mean[r] = mean;
        d->variance[r] = half * half;
        for (int c = 0; c < cols; ++c) {
            d->src[r * cols + c] = mean + (c % 2 ? half : -half);
            /* Sums of multiples of 8 over 8 elements are exact. */
            d->diff_dst[r * cols + c] = (float)((c * 3 + r * 5) % 8 - 2);
        }
    }
    for (int c = 0; c < cols; ++c) {
        d->scale[c] = (float)(1 + c % 4) / 2;
        d->shift[c] = (float)(c % 3 - 1) / 4;
    }
    d->epsilon = 0;
}

/* Ordinary data for f32. */
static inline void general_data(struct data *d, int rows, int cols, uint32_t seed) {
    float *const all[] = {d->src, d->diff_dst, d->scale, d->shift, d->mean, d->variance};
    for (int a = 0; a < 6; ++a)
        for (int i = 0; i < (a < 2 ? rows * cols : a < 4 ? cols : rows); ++i) {
            seed = seed * 1664525u + 1013904223u;
            all[a][i] = (float)(seed >> 8) / (1 << 22) - 1.5f;
        }
    for (int r = 0; r < rows; ++r)
        d->variance[r] = fabsf(d->variance[r]) + 0.25f;
    d->epsilon = 1e-3f;
}

#define MAX_ARGS 16

/* Runs a primitive on the given arguments. */
static inline void run(dnnl_primitive_desc_t problem, int count, const dnnl_exec_arg_t *args) {
    dnnl_primitive_t primitive;
    OK(dnnl_primitive_create(&primitive, problem));
    OK(dnnl_primitive_execute(primitive, stream, count, args));
    OK(dnnl_stream_wait(stream));
    OK(dnnl_primitive_destroy(primitive));
}

static inline void add(dnnl_exec_arg_t *args, int *count, int id, const struct tensor *t) {
    args[*count].arg = id;
    args[*count].memory = t->memory;
    ++*count;
}

#endif
