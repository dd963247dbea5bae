/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Packed sequences: attention over concatenated tokens has the bits of attention over each
 * sequence alone, forward and backward, and does not change rows outside all sequences. Entropies
 * are those of each sequence.
 */
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { SEQUENCES = 5, HEADS = 4, GROUPS = 2, D = 20, E = 12, S = 90, T = 700 };
static const int32_t query_offsets[] = {3, 8, 8, 77, 78, 86}, key_offsets[] = {0, 9, 14, 350, 351, 690};

/* Tokens before heads, in a tensor of `rows` rows, as a number of sequences; keys may have elements
 * first. */
static norm_memory_desc_t desc_of(
        norm_data_type_t type, int sequences, int heads, int rows, int size, int by_element) {
    const norm_dims_t dims = {sequences, heads, by_element ? size : rows, by_element ? rows : size};
    const norm_dims_t strides = {0, size, by_element ? 1 : heads * size, by_element ? heads * size : 1};
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, 4, dims, type, strides));
    return desc;
}

/* A tensor: its argument, its heads, its rows in the packed tensor, the size of a head. */
typedef struct {
    int argument, heads, of_keys, size, is_output, by_element;
    unsigned char *data, *alone; /* packed, and of the sequences one by one */
    norm_memory_desc_t desc;
} part_t;

#define PART(id, number, keys, elements, output, turned) \
    {.argument = id, .heads = number, .of_keys = keys, .size = elements, .is_output = output, \
            .by_element = turned}

enum { Q, K, V, DST, STATS, DIFF_DST, DIFF_Q, DIFF_K, DIFF_V, PARTS };

static int rows_of(const part_t *p) { return p->of_keys ? T : S; }

static size_t row_bytes(const part_t *p, size_t element) { return (size_t)p->heads * p->size * element; }

typedef struct {
    norm_data_type_t type;
    norm_attn_mask_type_t mask;
    norm_attn_window_t window_kind;
    int window;
} story_t;

static norm_primitive_desc_t create(const story_t *s, int is_forward, norm_memory_desc_t *d, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    if (is_forward)
        MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_training, d[Q], d[K], d[V],
                d[DST], NULL, NULL, s->mask, s->window_kind, s->window, 0, 0.25f, 0, flags, NULL));
    else
        MUST(norm_sdpa_backward_primitive_desc_create(&pd, engine, d[DIFF_Q], d[DIFF_K], d[DIFF_V],
                d[DIFF_DST], d[Q], d[K], d[V], d[DST], NULL, NULL, s->mask, s->window_kind, s->window, 0, 0.25f, 0,
                flags, NULL, NULL));
    return pd;
}

/* Executes with the tensors at these addresses. */
static norm_status_t execute(norm_primitive_desc_t pd, const part_t *parts, void *const *data, int is_forward,
        const int32_t *queries, const int32_t *keys) {
    norm_primitive_t primitive = NULL;
    norm_memory_t memories[PARTS + 2] = {NULL};
    norm_exec_arg_t args[PARTS + 2];
    int count = 0;
    const int last = is_forward ? STATS : DIFF_V;
    for (int i = 0; i <= last; ++i) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, parts[i].argument);
        MUST(norm_memory_create(&memories[count], desc, engine, data[i]));
        args[count] = (norm_exec_arg_t) {parts[i].argument, memories[count]};
        ++count;
    }
    const int ids[] = {NORM_ARG_QUERY_OFFSETS, NORM_ARG_KEY_OFFSETS};
    const int32_t *offsets[] = {queries, keys};
    for (int i = 0; i < 2; ++i) {
        if (offsets[i] == NULL) continue;
        const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
        MUST(norm_memory_create(&memories[count], desc, engine, (void *)offsets[i]));
        args[count] = (norm_exec_arg_t) {ids[i], memories[count]};
        ++count;
    }
    MUST(norm_primitive_create(&primitive, pd));
    const norm_status_t status = norm_primitive_execute(primitive, stream, count, args);
    MUST(norm_primitive_destroy(primitive));
    for (int i = 0; i < count; ++i) MUST(norm_memory_destroy(memories[i]));
    return status;
}

static size_t element_of(const story_t *s, int part) {
    return part == STATS || s->type == norm_f32 ? 4 : 2;
}

/* Runs each sequence with its own tensors. The results go to `alone`; logarithms are ordered by
 * heads. */
static void one_by_one(const story_t *s, part_t *parts, int is_forward) {
    for (int b = 0; b < SEQUENCES; ++b) {
        const int first[] = {query_offsets[b], key_offsets[b]};
        const int counts[] = {query_offsets[b + 1] - first[0], key_offsets[b + 1] - first[1]};
        norm_memory_desc_t descs[PARTS] = {NULL};
        void *data[PARTS];
        float logarithms[HEADS * S];
        for (int i = 0; i < PARTS; ++i) {
            const part_t *p = &parts[i];
            const size_t row = row_bytes(p, element_of(s, i));
            data[i] = (p->is_output ? p->alone : p->data) + (size_t)first[p->of_keys] * row;
            descs[i] = desc_of(s->type, 1, p->heads, counts[p->of_keys], p->size, p->by_element);
        }
        data[STATS] = logarithms;
        for (int h = 0; h < HEADS && !is_forward; ++h)
            memcpy(logarithms + h * counts[0], (float *)parts[STATS].alone + h * S + first[0],
                    sizeof(float) * (size_t)counts[0]);
        norm_primitive_desc_t pd = create(s, is_forward, descs, 0);
        MUST(execute(pd, parts, data, is_forward, NULL, NULL));
        for (int h = 0; h < HEADS && is_forward; ++h)
            memcpy((float *)parts[STATS].alone + h * S + first[0], logarithms + h * counts[0],
                    sizeof(float) * (size_t)counts[0]);
        MUST(norm_primitive_desc_destroy(pd));
        for (int i = 0; i < PARTS; ++i) MUST(norm_memory_desc_destroy(descs[i]));
    }
}

static void check(const story_t *s, int is_forward, part_t *parts) {
    norm_memory_desc_t descs[PARTS];
    void *data[PARTS];
    for (int i = 0; i < PARTS; ++i) {
        const part_t *p = &parts[i];
        descs[i] = desc_of(s->type, SEQUENCES, p->heads, rows_of(p), p->size, p->by_element);
        data[i] = p->data;
    }
    const int first = is_forward ? DST : DIFF_Q, last = is_forward ? STATS : DIFF_V;
    for (int i = first; i <= last; ++i) memset(parts[i].alone, TENSOR_FILL, row_bytes(&parts[i], 4) * T);
    one_by_one(s, parts, is_forward);
    norm_primitive_desc_t pd
            = create(s, is_forward, descs, norm_sdpa_query_offsets | norm_sdpa_key_offsets);
    do {
        for (int i = first; i <= last; ++i) memset(parts[i].data, TENSOR_FILL, row_bytes(&parts[i], 4) * T);
        EXPECT(execute(pd, parts, data, is_forward, query_offsets, key_offsets) == norm_success);
        for (int i = first; i <= last; ++i)
            EXPECT(memcmp(parts[i].data, parts[i].alone, row_bytes(&parts[i], 4) * T) == 0);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < PARTS; ++i) MUST(norm_memory_desc_destroy(descs[i]));
}

static void packed(void) {
    static const story_t stories[] = {
            {norm_f32, norm_attn_mask_undef, norm_window_none, 0},
            {norm_bf16, norm_attn_mask_bottom_right, norm_window_none, 0},
            {norm_f32, norm_attn_mask_top_left, norm_window_with_self, 9},
            {norm_f16, norm_attn_mask_bottom_right, norm_window_before_self, 30}};
    uint64_t state = 5;
    for (size_t n = 0; n < sizeof stories / sizeof *stories; ++n) {
        const story_t *s = &stories[n];
        snprintf(expect_case, sizeof expect_case, "packed, story %d", (int)n);
        part_t parts[PARTS] = {PART(NORM_ARG_QUERIES, HEADS, 0, D, 0, 0), PART(NORM_ARG_KEYS, GROUPS, 1, D, 0, 1),
                PART(NORM_ARG_VALUES, GROUPS, 1, E, 0, 0), PART(NORM_ARG_DST, HEADS, 0, E, 1, 0),
                PART(NORM_ARG_WORKSPACE, HEADS, 0, 1, 1, 0), PART(NORM_ARG_DIFF_DST, HEADS, 0, E, 0, 0),
                PART(NORM_ARG_DIFF_QUERIES, HEADS, 0, D, 1, 0), PART(NORM_ARG_DIFF_KEYS, GROUPS, 1, D, 1, 1),
                PART(NORM_ARG_DIFF_VALUES, GROUPS, 1, E, 1, 0)};
        for (int i = 0; i < PARTS; ++i) {
            part_t *p = &parts[i];
            p->data = malloc(row_bytes(p, 4) * T);
            p->alone = malloc(row_bytes(p, 4) * T);
            for (size_t j = 0; j < row_bytes(p, 1) * (size_t)rows_of(p); ++j)
                element_set(s->type, p->data, j, random_between(&state, -2, 2));
        }
        check(s, 1, parts);
        /* dst and the logarithms of forward. */
        parts[DST].is_output = parts[STATS].is_output = 0;
        check(s, 0, parts);
        for (int i = 0; i < PARTS; ++i) free(parts[i].data), free(parts[i].alone);
    }
    expect_case[0] = 0;
}

static void refusals(void) {
    norm_primitive_desc_t pd = UNTOUCHED;
    norm_memory_desc_t q = desc_of(norm_f32, 2, 2, 8, 4, 0), k = desc_of(norm_f32, 2, 2, 9, 4, 1),
                       v = desc_of(norm_f32, 2, 2, 9, 4, 0), apart = NULL, mask = NULL;
    const norm_dims_t dims = {2, 2, 8, 4}, mask_dims = {1, 1, 8, 9};
    MUST(norm_memory_desc_create_with_tag(&apart, 4, dims, norm_f32, norm_abcd));
    MUST(norm_memory_desc_create_with_tag(&mask, 4, mask_dims, norm_u8, norm_abcd));
    const unsigned queries = norm_sdpa_query_offsets, keys = norm_sdpa_key_offsets;
#define CREATE(q, dst, mask, type, flags) \
    (&pd, engine, norm_forward_inference, q, k, v, dst, mask, NULL, type, norm_window_none, 0, 0, 1, 0, flags, NULL)
    INVALID("flags", norm_sdpa_forward_primitive_desc_create,
            CREATE(q, q, NULL, norm_attn_mask_undef, queries | norm_sdpa_query_lengths));
    INVALID("flags", norm_sdpa_forward_primitive_desc_create,
            CREATE(q, q, NULL, norm_attn_mask_undef, keys | norm_sdpa_key_lengths));
    INVALID("query_desc", norm_sdpa_forward_primitive_desc_create,
            CREATE(apart, q, NULL, norm_attn_mask_undef, queries));
    INVALID("dst_desc", norm_sdpa_forward_primitive_desc_create,
            CREATE(q, apart, NULL, norm_attn_mask_undef, queries));
    /* Without offsets, results would overlap. */
    INVALID("dst_desc", norm_sdpa_forward_primitive_desc_create, CREATE(q, q, NULL, norm_attn_mask_undef, 0));
    REFUSED(norm_unimplemented, "mask_desc", norm_sdpa_forward_primitive_desc_create,
            CREATE(q, q, mask, norm_attn_mask_buffer, queries));
    EXPECT(pd == UNTOUCHED);
    MUST(norm_sdpa_forward_primitive_desc_create CREATE(q, q, NULL, norm_attn_mask_undef, queries | keys));
    part_t parts[] = {{.argument = NORM_ARG_QUERIES}, {.argument = NORM_ARG_KEYS},
            {.argument = NORM_ARG_VALUES}, {.argument = NORM_ARG_DST}, {.argument = NORM_ARG_WORKSPACE}};
    float numbers[4][72], statistics[16];
    memset(numbers, TENSOR_FILL, sizeof numbers);
    void *data[] = {numbers[0], numbers[1], numbers[2], numbers[3], statistics};
    static const int32_t right[] = {0, 3, 8}, wrong[][3] = {{-1, 3, 8}, {0, 5, 4}, {0, 3, 10}};
    for (int i = 0; i < 3; ++i) {
        EXPECT(execute(pd, parts, data, 1, wrong[i], right) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), "QUERY_OFFSETS") != NULL);
        EXPECT(execute(pd, parts, data, 1, right, wrong[i]) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), "KEY_OFFSETS") != NULL);
    }
    for (size_t i = 0; i < sizeof numbers[3]; ++i)
        EXPECT(((unsigned char *)numbers[3])[i] == TENSOR_FILL);
    MUST(norm_primitive_desc_destroy(pd));
    norm_memory_desc_t descs[] = {q, k, v, apart, mask};
    for (size_t i = 0; i < sizeof descs / sizeof *descs; ++i) MUST(norm_memory_desc_destroy(descs[i]));
}

/* Packed queries of two sequences and quantized keys, which are not packed. Every implementation
 * must use the scales of the right keys. */
static void quantized_keys(void) {
    enum { KEYS = 8, QUERIES = 5, SIZE = 4 };
    norm_memory_desc_t q = desc_of(norm_f32, 2, 2, QUERIES, SIZE, 0), k = NULL, v = NULL;
    const norm_dims_t of_keys = {2, 1, SIZE, KEYS}, of_values = {2, 1, KEYS, SIZE};
    MUST(norm_memory_desc_create_with_tag(&k, 4, of_keys, norm_s8, norm_abcd));
    MUST(norm_memory_desc_create_with_tag(&v, 4, of_values, norm_s8, norm_abcd));
    float queries[2 * QUERIES * SIZE], scales[2][2 * KEYS], results[2][2 * QUERIES * SIZE];
    int8_t keys[2 * SIZE * KEYS], values[2 * SIZE * KEYS];
    int32_t offsets[] = {0, 3, QUERIES};
    for (int i = 0; i < 2 * QUERIES * SIZE; ++i) queries[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 2 * SIZE * KEYS; ++i) keys[i] = (int8_t)(i * 37), values[i] = (int8_t)(i * 53);
    for (int i = 0; i < 2 * KEYS; ++i) scales[0][i] = 0.01f + 0.001f * (float)i, scales[1][i] = 1 + (float)i;
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 11));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_VALUES, 7));
    MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_inference, q, k, v, q, NULL,
            NULL, norm_attn_mask_undef, norm_window_none, 0, 0, 0.5f, 0, norm_sdpa_query_offsets, attr));
    const int ids[] = {NORM_ARG_QUERIES, NORM_ARG_KEYS, NORM_ARG_VALUES, NORM_ARG_DST,
            NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES,
            NORM_ARG_QUERY_OFFSETS};
    int implementations = 0;
    do {
        void *data[] = {queries, keys, values, results[implementations > 0], scales[0], scales[1], offsets};
        norm_exec_arg_t args[7];
        norm_primitive_t primitive = NULL;
        MUST(norm_primitive_create(&primitive, pd));
        for (int i = 0; i < 7; ++i) {
            args[i].arg = ids[i];
            MUST(norm_memory_create(&args[i].memory,
                    norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]), engine, data[i]));
        }
        MUST(norm_primitive_execute(primitive, stream, 7, args));
        EXPECT(memcmp(results[0], results[implementations > 0], sizeof results[0]) == 0);
        for (int i = 0; i < 7; ++i) MUST(norm_memory_destroy(args[i].memory));
        MUST(norm_primitive_destroy(primitive));
        ++implementations;
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    EXPECT(implementations > 1);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
    norm_memory_desc_t descs[] = {q, k, v};
    for (int i = 0; i < 3; ++i) MUST(norm_memory_desc_destroy(descs[i]));
}

/* Bytes of the scratchpad of packed sequences. */
static norm_dim_t scratchpad_size(norm_memory_desc_t *d, const_norm_primitive_attr_t attr, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_inference, d[0], d[1], d[2], d[3], NULL,
            NULL, norm_attn_mask_undef, norm_window_none, 0, 0, 0.25f, 0,
            flags | norm_sdpa_query_offsets | norm_sdpa_key_offsets, attr));
    const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_scratchpad_md, 0);
    const norm_dim_t bytes = (norm_dim_t)norm_memory_desc_get_size(desc);
    MUST(norm_primitive_desc_destroy(pd));
    return bytes;
}

/* The mean entropies of packed sequences whose queries are 0, so that all keys have the same weight,
 * ln(keys) for each sequence. The scratchpad has a float for each query of each head. */
static void entropies(void) {
    norm_memory_desc_t d[] = {desc_of(norm_f32, SEQUENCES, HEADS, S, D, 0),
            desc_of(norm_f32, SEQUENCES, GROUPS, T, D, 1), desc_of(norm_f32, SEQUENCES, GROUPS, T, E, 0),
            desc_of(norm_f32, SEQUENCES, HEADS, S, E, 0)};
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scratchpad_mode(attr, norm_scratchpad_mode_user));
    const norm_dim_t room = scratchpad_size(d, attr, norm_sdpa_entropy) - scratchpad_size(d, attr, 0);
    const norm_dim_t least = (norm_dim_t)sizeof(float) * HEADS * S;
    EXPECT(room >= least && room < least + 128);
    float *data[] = {calloc(HEADS * S * D, sizeof(float)), calloc(GROUPS * T * D, sizeof(float)),
            calloc(GROUPS * T * E, sizeof(float)), calloc(HEADS * S * E, sizeof(float)),
            calloc(SEQUENCES * HEADS, sizeof(float))};
    const int ids[] = {NORM_ARG_QUERIES, NORM_ARG_KEYS, NORM_ARG_VALUES, NORM_ARG_DST, NORM_ARG_ENTROPY,
            NORM_ARG_QUERY_OFFSETS, NORM_ARG_KEY_OFFSETS, NORM_ARG_SCRATCHPAD};
    MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_inference, d[0], d[1], d[2], d[3], NULL,
            NULL, norm_attn_mask_undef, norm_window_none, 0, 0, 0.25f, 0,
            norm_sdpa_entropy | norm_sdpa_query_offsets | norm_sdpa_key_offsets, attr));
    do {
        const_norm_memory_desc_t pad = norm_primitive_desc_query_md(pd, norm_query_scratchpad_md, 0);
        /* Of its own size, so that memcheck notices accesses beyond it. */
        void *scratchpad = malloc(norm_memory_desc_get_size(pad));
        void *places[] = {data[0], data[1], data[2], data[3], data[4], (void *)(size_t)query_offsets,
                (void *)(size_t)key_offsets, scratchpad};
        norm_exec_arg_t args[8];
        norm_primitive_t primitive = NULL;
        MUST(norm_primitive_create(&primitive, pd));
        for (int i = 0; i < 8; ++i) {
            args[i].arg = ids[i];
            const_norm_memory_desc_t desc
                    = i == 7 ? pad : norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
            MUST(norm_memory_create(&args[i].memory, desc, engine, places[i]));
        }
        memset(data[4], TENSOR_FILL, sizeof(float) * SEQUENCES * HEADS);
        MUST(norm_primitive_execute(primitive, stream, 8, args));
        for (int i = 0; i < SEQUENCES * HEADS; ++i) {
            const int b = i / HEADS, keys = key_offsets[b + 1] - key_offsets[b];
            const double expected = query_offsets[b] == query_offsets[b + 1] ? 0 : log(keys);
            EXPECT(fabs(data[4][i] - expected) < 1e-5);
        }
        for (int i = 0; i < 8; ++i) MUST(norm_memory_destroy(args[i].memory));
        MUST(norm_primitive_destroy(primitive));
        free(scratchpad);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
    for (int i = 0; i < 4; ++i) MUST(norm_memory_desc_destroy(d[i]));
    for (int i = 0; i < 5; ++i) free(data[i]);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    packed();
    entropies();
    quantized_keys();
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("sdpa_packed");
}
