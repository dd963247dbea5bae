/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Host scalars: their descriptors, their memories, and every refused call.
 * Primitives give the same bits with a host scalar as with the same number in a
 * buffer.
 */
#include "refused.h"
#include "mapped_scalar.h"

#include <math.h>

enum { ROWS = 6, COLS = 37, ELEMENTS = ROWS * COLS, MOST = 8 };

static norm_engine_t engine;
static norm_stream_t stream;

static norm_memory_desc_t scalar_of(norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_host_scalar(&desc, type));
    return desc;
}

static norm_memory_desc_t matrix_of(norm_data_type_t type) {
    const norm_dim_t dims[] = {ROWS, COLS};
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, type, norm_ab));
    return desc;
}

/* A host scalar with the value. */
static norm_memory_t holding(norm_data_type_t type, void *value) {
    norm_memory_desc_t desc = scalar_of(type);
    norm_memory_t memory = NULL;
    MUST(norm_memory_create_host_scalar(&memory, desc, value));
    MUST(norm_memory_desc_destroy(desc));
    return memory;
}

/* A memory of one element with the value in a buffer. */
static norm_memory_t pointing(norm_data_type_t type, void *value) {
    const norm_dim_t one = 1;
    norm_memory_desc_t desc = NULL;
    norm_memory_t memory = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 1, &one, type, norm_a));
    MUST(norm_memory_create(&memory, desc, engine, value));
    MUST(norm_memory_desc_destroy(desc));
    return memory;
}

static void descriptors(void) {
    static const norm_data_type_t types[]
            = {norm_f32, norm_bf16, norm_f16, norm_f64, norm_s8, norm_u8, norm_s32, norm_s64};
    norm_memory_desc_t out = UNTOUCHED, tensor = matrix_of(norm_f32);
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        norm_memory_desc_t desc = scalar_of(types[i]), copy = NULL, restored = NULL;
        norm_format_kind_t kind = norm_format_kind_undef;
        norm_data_type_t type = norm_data_type_undef;
        const norm_dims_t *dims = NULL;
        int ndims = 0;
        MUST(norm_memory_desc_query(desc, norm_query_format_kind, &kind));
        MUST(norm_memory_desc_query(desc, norm_query_data_type, &type));
        MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &ndims));
        MUST(norm_memory_desc_query(desc, norm_query_dims, (void *)&dims));
        EXPECT(kind == norm_format_kind_host_scalar && type == types[i]);
        EXPECT(ndims == 1 && (*dims)[0] == 1);
        EXPECT(norm_memory_desc_get_size(desc) == norm_data_type_size(types[i]));
        INVALID("what", norm_memory_desc_query, (desc, norm_query_strides, &dims));
        unsigned char blob[4096];
        size_t size = sizeof blob;
        MUST(norm_memory_desc_get_blob(blob, &size, desc));
        MUST(norm_memory_desc_create_with_blob(&restored, blob));
        MUST(norm_memory_desc_clone(&copy, desc));
        EXPECT(norm_memory_desc_equal(desc, copy) && norm_memory_desc_equal(desc, restored));
        EXPECT(!norm_memory_desc_equal(desc, tensor));
        const norm_dims_t one = {1}, zero = {0};
        REFUSED(norm_unimplemented, "parent_memory_desc", norm_memory_desc_create_submemory,
                (&out, desc, one, zero));
        INVALID("in_memory_desc", norm_memory_desc_reshape, (&out, desc, 1, one));
        EXPECT(out == UNTOUCHED);
        MUST(norm_memory_desc_destroy(desc));
        MUST(norm_memory_desc_destroy(copy));
        MUST(norm_memory_desc_destroy(restored));
    }
    INVALID("memory_desc", norm_memory_desc_create_host_scalar, (NULL, norm_f32));
    INVALID("data_type", norm_memory_desc_create_host_scalar, (&out, norm_data_type_undef));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("data_type", norm_memory_desc_create_host_scalar,
                (&out, (norm_data_type_t)no_enumerator[i]));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(tensor));
}

static void memories(void) {
    norm_memory_desc_t desc = scalar_of(norm_f32), tensor = matrix_of(norm_f32);
    norm_memory_t memory = NULL, buffered = NULL, out = UNTOUCHED;
    unsigned char odd[sizeof(float) + 1];
    float value = 0.375f, read = 0;
    void *address = UNTOUCHED;
    memcpy(odd + 1, &value, sizeof value);
    MUST(norm_memory_create_host_scalar(&memory, desc, odd + 1));
    memset(odd, 0, sizeof odd);
    MUST(norm_memory_get_host_scalar_value(memory, &read));
    EXPECT(read == 0.375f);
    value = -2;
    MUST(norm_memory_set_host_scalar_value(memory, &value));
    value = 7;
    MUST(norm_memory_get_host_scalar_value(memory, &read));
    EXPECT(read == -2);
    const_norm_memory_desc_t its = NULL;
    MUST(norm_memory_get_memory_desc(memory, &its));
    EXPECT(norm_memory_desc_equal(its, desc));
    norm_engine_t of = UNTOUCHED;
    MUST(norm_memory_get_engine(memory, &of));
    EXPECT(of == NULL);
    INVALID("memory", norm_memory_get_data_handle, (memory, &address));
    INVALID("memory", norm_memory_get_data_handle_v2, (memory, &address, 0));
    INVALID("memory", norm_memory_set_data_handle, (memory, &value));
    INVALID("memory", norm_memory_set_data_handle_v2, (memory, &value, 0));
    EXPECT(address == UNTOUCHED);
    mapped(memory);
    INVALID("memory", norm_memory_create_host_scalar, (NULL, desc, &value));
    INVALID("memory_desc", norm_memory_create_host_scalar, (&out, NULL, &value));
    INVALID("memory_desc", norm_memory_create_host_scalar, (&out, tensor, &value));
    INVALID("scalar_ptr", norm_memory_create_host_scalar, (&out, desc, NULL));
    INVALID("memory_desc", norm_memory_create, (&out, desc, engine, NORM_MEMORY_ALLOCATE));
    INVALID("memory_desc", norm_memory_create, (&out, desc, engine, &value));
    void *list[] = {&value};
    INVALID("memory_desc", norm_memory_create_v2, (&out, desc, engine, 1, list));
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_create(&buffered, tensor, engine, NORM_MEMORY_ALLOCATE));
    INVALID("memory", norm_memory_get_host_scalar_value, (NULL, &read));
    INVALID("memory", norm_memory_get_host_scalar_value, (buffered, &read));
    INVALID("value", norm_memory_get_host_scalar_value, (memory, NULL));
    INVALID("memory", norm_memory_set_host_scalar_value, (NULL, &value));
    INVALID("memory", norm_memory_set_host_scalar_value, (buffered, &value));
    INVALID("value", norm_memory_set_host_scalar_value, (memory, NULL));
    MUST(norm_memory_get_host_scalar_value(memory, &read));
    EXPECT(read == -2);
    MUST(norm_memory_destroy(memory));
    MUST(norm_memory_destroy(buffered));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(tensor));
}

/* A host scalar where a tensor is expected. */
static void no_tensors(void) {
    norm_memory_desc_t scalar = scalar_of(norm_f32), byte = scalar_of(norm_u8);
    norm_memory_desc_t good = matrix_of(norm_f32);
    norm_primitive_desc_t out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t post_ops = NULL;
    const norm_prop_kind_t forward = norm_forward_inference;
    INVALID("src_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, norm_softmax_accurate, scalar, good, 0, NULL));
    INVALID("dst_desc", norm_softmax_forward_primitive_desc_create,
            (&out, engine, forward, norm_softmax_accurate, good, scalar, 0, NULL));
    INVALID("src_desc", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, forward, norm_eltwise_relu, scalar, good, 0, 0, NULL));
    INVALID("src1_desc", norm_binary_primitive_desc_create,
            (&out, engine, norm_binary_add, good, scalar, good, NULL));
    INVALID("src_desc", norm_reorder_primitive_desc_create,
            (&out, scalar, engine, scalar, engine, NULL));
    INVALID("stat_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&out, engine, forward, good, good, scalar, 1e-5f, 0, NULL));
    INVALID("dst_desc", norm_layer_normalization_forward_primitive_desc_create,
            (&out, engine, forward, good, scalar, NULL, 1e-5f, 0, NULL));
    INVALID("src_desc", norm_group_normalization_forward_primitive_desc_create,
            (&out, engine, forward, scalar, good, 1, 1e-5f, 0, NULL));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_create(&attr));
    INVALID("mask_desc", norm_primitive_attr_set_dropout, (attr, byte));
    INVALID("stats_desc", norm_primitive_attr_set_softmax_stats, (attr, scalar));
    MUST(norm_post_ops_create(&post_ops));
    INVALID("src1_desc", norm_post_ops_append_binary, (post_ops, norm_binary_add, scalar));
    MUST(norm_post_ops_destroy(post_ops));
    INVALID("is_on_host", norm_primitive_attr_set_scales_v3,
            (attr, NORM_ARG_DST, 0, 0, NULL, norm_f32, 1, norm_quantization_mode_dynamic_fp));
    INVALID("mask", norm_primitive_attr_set_scales_v2,
            (attr, NORM_ARG_DST, 1, 0, NULL, norm_f32, 1));
    INVALID("data_type", norm_primitive_attr_set_scales_v2,
            (attr, NORM_ARG_DST, 0, 0, NULL, norm_s32, 1));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(scalar));
    MUST(norm_memory_desc_destroy(byte));
    MUST(norm_memory_desc_destroy(good));
}

typedef struct {
    int id;
    norm_data_type_t type;
    void *value;
} number_t;

typedef struct {
    norm_primitive_t primitive;
    norm_primitive_desc_t pd;
    norm_exec_arg_t args[MOST];
    int count;
    unsigned char dst[ELEMENTS * 4], mask[ELEMENTS];
} run_t;

static void add(run_t *run, int id, norm_memory_t memory) {
    run->args[run->count].arg = id;
    run->args[run->count++].memory = memory;
}

/* Binds the tensors and the numbers, as host scalars or in buffers. */
static void bind(run_t *run, const int *ids, void *const *data, const number_t *numbers, int host) {
    MUST(norm_primitive_create(&run->primitive, run->pd));
    memset(run->dst, 0xA5, sizeof run->dst);
    memset(run->mask, 0xA5, sizeof run->mask);
    for (; *ids != 0; ++ids, ++data) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(run->pd, norm_query_exec_arg_md, *ids);
        void *place = *ids == NORM_ARG_DST ? run->dst
                : *ids == NORM_ARG_ATTR_DROPOUT_MASK ? run->mask : *data;
        norm_memory_t memory = NULL;
        MUST(norm_memory_create(&memory, desc, engine, place));
        add(run, *ids, memory);
    }
    for (; numbers->id != 0; ++numbers) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(run->pd, norm_query_exec_arg_md, numbers->id);
        norm_format_kind_t kind = norm_format_kind_undef;
        MUST(norm_memory_desc_query(desc, norm_query_format_kind, &kind));
        EXPECT((kind == norm_format_kind_host_scalar) == host);
        add(run, numbers->id,
                host ? holding(numbers->type, numbers->value)
                     : pointing(numbers->type, numbers->value));
    }
}

static void unbind(run_t *run) {
    for (int i = 0; i < run->count; ++i) MUST(norm_memory_destroy(run->args[i].memory));
    MUST(norm_primitive_destroy(run->primitive));
    MUST(norm_primitive_desc_destroy(run->pd));
}

/* A number that is missing, has another type, or is in the other kind of memory is refused. */
static void refused_numbers(run_t *run, const number_t *numbers, int host) {
    const int tensors = run->count;
    int first = 0;
    while (run->args[first].arg != numbers->id) ++first;
    for (int i = first; numbers->id != 0; ++i, ++numbers) {
        norm_memory_t right = run->args[i].memory;
        double room = 0;
        norm_memory_t others[] = {
                host ? pointing(numbers->type, numbers->value)
                     : holding(numbers->type, numbers->value),
                host ? holding(norm_f64, &room) : pointing(norm_f64, &room),
                NULL,
        };
        for (int k = 0; k < 3; ++k) {
            run->args[i].memory = others[k];
            INVALID("args", norm_primitive_execute,
                    (run->primitive, stream, tensors, run->args));
            if (others[k] != NULL) MUST(norm_memory_destroy(others[k]));
        }
        run->args[i].memory = right;
    }
}

/* Compares host scalars with buffers. `pds` has the primitive with buffers and the one with
 * scalars. Then the number changes, and executions of the same primitive read the new one. */
static void compare(norm_primitive_desc_t const pds[2], const int *ids, void *const *data,
        const number_t *numbers, void *other) {
    static run_t runs[2];
    memset(runs, 0, sizeof runs);
    for (int host = 0; host < 2; ++host) {
        run_t *run = &runs[host];
        run->pd = pds[host];
        bind(run, ids, data, numbers, host);
        refused_numbers(run, numbers, host);
        norm_memory_t src = run->args[0].memory;
        run->args[0].memory = holding(norm_f32, other);
        INVALID("args", norm_primitive_execute, (run->primitive, stream, run->count, run->args));
        MUST(norm_memory_destroy(run->args[0].memory));
        run->args[0].memory = src;
        for (size_t i = 0; i < sizeof run->dst; ++i) EXPECT(run->dst[i] == 0xA5);
        MUST(norm_primitive_execute(run->primitive, stream, run->count, run->args));
    }
    EXPECT(memcmp(runs[0].dst, runs[1].dst, sizeof runs[0].dst) == 0);
    EXPECT(memcmp(runs[0].mask, runs[1].mask, sizeof runs[0].mask) == 0);
    static unsigned char before[ELEMENTS * 4];
    memcpy(before, runs[0].dst, sizeof before);
    /* The first number, in its buffer and in the memory. */
    memcpy(numbers->value, other, norm_data_type_size(numbers->type));
    for (int i = 0; i < runs[1].count; ++i)
        if (runs[1].args[i].arg == numbers->id)
            MUST(norm_memory_set_host_scalar_value(runs[1].args[i].memory, other));
    for (int host = 0; host < 2; ++host)
        MUST(norm_primitive_execute(
                runs[host].primitive, stream, runs[host].count, runs[host].args));
    EXPECT(memcmp(runs[0].dst, runs[1].dst, sizeof runs[0].dst) == 0);
    EXPECT(memcmp(runs[0].dst, before, sizeof before) != 0);
    for (int host = 0; host < 2; ++host) unbind(&runs[host]);
}

/* Attention only accepts tensors as scales of keys. */
static void attention(void) {
    const norm_dim_t dims[] = {1, 1, 8, 8};
    norm_memory_desc_t f32 = NULL, s8 = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t out = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&f32, 4, dims, norm_f32, norm_abcd));
    MUST(norm_memory_desc_create_with_tag(&s8, 4, dims, norm_s8, norm_abcd));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_v2(attr, NORM_ARG_KEYS, 0, 0, NULL, norm_f32, 1));
    REFUSED(norm_unimplemented, "attr", norm_sdpa_forward_primitive_desc_create,
            (&out, engine, norm_forward_inference, f32, s8, f32, f32, NULL, NULL,
                    norm_attn_mask_undef, norm_window_none, 0, 0, 0.5f, 0, 0, attr));
    EXPECT(strstr(norm_get_last_error(), "host scalar") != NULL);
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(f32));
    MUST(norm_memory_desc_destroy(s8));
}

static norm_primitive_attr_t scaled(int src, int dst, int host) {
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_v2(attr, src, 0, 0, NULL, norm_f32, host));
    MUST(norm_primitive_attr_set_scales_v2(attr, dst, 0, 0, NULL, norm_f32, host));
    return attr;
}

static float src[ELEMENTS], src1[ELEMENTS];

typedef norm_status_t (*create_t)(
        norm_primitive_desc_t *pd, norm_memory_desc_t f32, norm_primitive_attr_t attr);

static norm_status_t layer(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_layer_normalization_forward_primitive_desc_create(
            pd, engine, norm_forward_inference, f32, f32, NULL, 1e-5f, 0, attr);
}

static norm_status_t group(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_group_normalization_forward_primitive_desc_create(
            pd, engine, norm_forward_inference, f32, f32, 1, 1e-5f, 0, attr);
}

static norm_status_t softmax(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_softmax_forward_primitive_desc_create(
            pd, engine, norm_forward_inference, norm_softmax_accurate, f32, f32, 1, attr);
}

static norm_status_t eltwise(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_eltwise_forward_primitive_desc_create(
            pd, engine, norm_forward_inference, norm_eltwise_tanh, f32, f32, 0, 0, attr);
}

static norm_status_t binary(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_binary_primitive_desc_create(pd, engine, norm_binary_mul, f32, f32, f32, attr);
}

static norm_status_t reorder(norm_primitive_desc_t *pd, norm_memory_desc_t f32,
        norm_primitive_attr_t attr) {
    return norm_reorder_primitive_desc_create(pd, f32, engine, f32, engine, attr);
}

static const struct {
    const char *name;
    create_t create;
    int src, dst, src1;
} with_scales[] = {
        {"layer", layer, NORM_ARG_SRC, NORM_ARG_DST, 0},
        {"group", group, NORM_ARG_SRC, NORM_ARG_DST, 0},
        {"softmax", softmax, NORM_ARG_SRC, NORM_ARG_DST, 0},
        {"binary", binary, NORM_ARG_SRC_0, NORM_ARG_SRC_1, 1},
        {"reorder", reorder, NORM_ARG_SRC, NORM_ARG_DST, 0},
};

static void scales(void) {
    norm_memory_desc_t f32 = matrix_of(norm_f32);
    for (size_t i = 0; i < sizeof with_scales / sizeof *with_scales; ++i) {
        snprintf(expect_case, sizeof expect_case, "scales of %s", with_scales[i].name);
        norm_primitive_desc_t pds[2] = {NULL, NULL};
        const int one = with_scales[i].src, two = with_scales[i].dst;
        float first = 0.3f, second = 1.7f, other = 0.9f;
        for (int host = 0; host < 2; ++host) {
            norm_primitive_attr_t attr = scaled(one, two, host);
            MUST(with_scales[i].create(&pds[host], f32, attr));
            MUST(norm_primitive_attr_destroy(attr));
        }
        /* The scale of dst comes first, because it is the one that changes. */
        const number_t numbers[] = {{NORM_ARG_ATTR_SCALES | two, norm_f32, &second},
                {NORM_ARG_ATTR_SCALES | one, norm_f32, &first}, {0, norm_f32, NULL}};
        const int both[] = {NORM_ARG_SRC_0, NORM_ARG_SRC_1, NORM_ARG_DST, 0};
        const int single[] = {NORM_ARG_SRC, NORM_ARG_DST, 0};
        compare(pds, with_scales[i].src1 ? both : single, (void *[]) {src, src1, NULL}, numbers,
                &other);
    }
    MUST(norm_memory_desc_destroy(f32));
}

/* The gated activation only has a scale of dst. */
static void gate(void) {
    norm_memory_desc_t f32 = matrix_of(norm_f32);
    norm_primitive_desc_t pds[2] = {NULL, NULL};
    float scale = 0.3f, other = 0.7f;
    snprintf(expect_case, sizeof expect_case, "gate");
    for (int host = 0; host < 2; ++host) {
        norm_primitive_attr_t attr = NULL;
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_primitive_attr_set_scales_v2(
                attr, NORM_ARG_DST, 0, 0, NULL, norm_f32, host));
        MUST(norm_gated_forward_primitive_desc_create(&pds[host], engine, norm_forward_inference,
                norm_eltwise_swish, norm_gate_separate, f32, f32, f32, 1, INFINITY, 0, attr));
        MUST(norm_primitive_attr_destroy(attr));
    }
    const number_t numbers[]
            = {{NORM_ARG_ATTR_SCALES | NORM_ARG_DST, norm_f32, &scale}, {0, norm_f32, NULL}};
    compare(pds, (const int[]) {NORM_ARG_SRC, NORM_ARG_SRC_1, NORM_ARG_DST, 0},
            (void *[]) {src, src1, NULL}, numbers, &other);
    MUST(norm_memory_desc_destroy(f32));
}

/* Reorder to s8 with scales in bf16 and zero points in s32. */
static void zero_points(void) {
    norm_memory_desc_t f32 = matrix_of(norm_f32), s8 = matrix_of(norm_s8);
    norm_primitive_desc_t pds[2] = {NULL, NULL};
    uint16_t scale = 0x3D80; /* 0.0625 */
    int32_t point = 3, other = -5;
    snprintf(expect_case, sizeof expect_case, "zero points");
    for (int host = 0; host < 2; ++host) {
        norm_primitive_attr_t attr = NULL;
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_DST, 0, 0, NULL, norm_bf16, host,
                norm_quantization_mode_static_sazp));
        MUST(norm_primitive_attr_set_zero_points_v2(
                attr, NORM_ARG_DST, 0, 0, NULL, norm_s32, host));
        MUST(norm_reorder_primitive_desc_create(&pds[host], f32, engine, s8, engine, attr));
        MUST(norm_primitive_attr_destroy(attr));
    }
    const number_t numbers[]
            = {{NORM_ARG_ATTR_ZERO_POINTS | NORM_ARG_DST, norm_s32, &point},
                    {NORM_ARG_ATTR_SCALES | NORM_ARG_DST, norm_bf16, &scale}, {0, norm_f32, NULL}};
    compare(pds, (const int[]) {NORM_ARG_SRC, NORM_ARG_DST, 0}, (void *[]) {src, NULL}, numbers,
            &other);
    MUST(norm_memory_desc_destroy(f32));
    MUST(norm_memory_desc_destroy(s8));
}

static void dropout(norm_data_type_t seed_type, int has_offset) {
    static const create_t creates[] = {softmax, eltwise, binary};
    norm_memory_desc_t f32 = matrix_of(norm_f32), u8 = matrix_of(norm_u8);
    for (int i = 0; i < 3; ++i) {
        snprintf(expect_case, sizeof expect_case, "dropout %d", i);
        norm_primitive_desc_t pds[2] = {NULL, NULL};
        float probability = 0.4f, other = 0.8f;
        int64_t seed = 12345678, offset = 99;
        int32_t small_seed = 12345678;
        for (int host = 0; host < 2; ++host) {
            norm_primitive_attr_t attr = NULL;
            MUST(norm_primitive_attr_create(&attr));
            MUST(norm_primitive_attr_set_dropout_v2(attr, u8, seed_type, has_offset, host));
            MUST(creates[i](&pds[host], f32, attr));
            MUST(norm_primitive_attr_destroy(attr));
        }
        const number_t numbers[] = {{NORM_ARG_ATTR_DROPOUT_PROBABILITY, norm_f32, &probability},
                {NORM_ARG_ATTR_DROPOUT_SEED, seed_type,
                        seed_type == norm_s64 ? (void *)&seed : (void *)&small_seed},
                {has_offset ? NORM_ARG_ATTR_DROPOUT_OFFSET : 0, norm_s64, &offset},
                {0, norm_f32, NULL}};
        const int both[]
                = {NORM_ARG_SRC_0, NORM_ARG_SRC_1, NORM_ARG_DST, NORM_ARG_ATTR_DROPOUT_MASK, 0};
        const int single[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_ATTR_DROPOUT_MASK, 0};
        compare(pds, i == 2 ? both : single, (void *[]) {src, src1, NULL, NULL}, numbers, &other);
    }
    MUST(norm_memory_desc_destroy(f32));
    MUST(norm_memory_desc_destroy(u8));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int i = 0; i < ELEMENTS; ++i) {
        src[i] = (float)(i % 23) / 7 - 1.3f;
        src1[i] = (float)(i % 11) / 5 + 0.1f;
    }
    descriptors();
    memories();
    no_tensors();
    scales();
    gate();
    zero_points();
    attention();
    dropout(norm_s64, 1);
    dropout(norm_s64, 0);
    dropout(norm_s32, 1);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("host_scalars");
}
