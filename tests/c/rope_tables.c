/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rope with tables, in every implementation: positions outside them, tables whose rows have the
 * cosines followed by the sines, and queries and keys in one call.
 */
#include "arguments.h"
#include "levels.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { T = 6, ROWS = 8, D = 64, R = 52, PAIRS = R / 2, QUERIES = 8, KEYS = 2, SLOTS = 9 };
static const norm_rope_pairing_t pairings[]
        = {norm_rope_interleaved, norm_rope_half_split, norm_rope_half_split_of_head};
static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
static const norm_dim_t table_dims[] = {ROWS, PAIRS};

static norm_memory_desc_t desc_of(
        int ndims, const norm_dim_t *dims, norm_data_type_t type, const norm_dim_t *strides) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, type, strides));
    return desc;
}

/* Every implementation refuses positions, says why, and writes nothing. */
static void refuses(norm_primitive_desc_t pd, int count, const argument_t *args, tensor_t *dst,
        const char *sentence) {
    do {
        memset(dst->data, TENSOR_FILL, dst->bytes);
        EXPECT(execute_with(pd, engine, stream, count, args) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), sentence) != NULL);
        EXPECT(tensor_untouched(dst));
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
}

/* A position that is not a row of the tables: of the last token, of the last part of a position, and
 * after an index is added. */
static void outside(void) {
    static const norm_dim_t dims[] = {T, 2, D}, sections[] = {PAIRS - 9, 9};
    static const norm_dim_t parts_dims[] = {T, 1, 2}, one_dims[] = {1, 1}, each_dims[] = {T, 1};
    static int64_t positions[2 * T];
    static const int64_t outside_of[] = {ROWS, ROWS + 1, 1000000, INT64_MAX, -1, INT64_MIN};
    tensor_t src = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t dst = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t table = tensor_make(norm_f32, 2, table_dims, NULL, engine);
    const argument_t args[] = {{NORM_ARG_SRC, src.data}, {NORM_ARG_DST, dst.data},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_COS, table.data},
            {NORM_ARG_ROPE_SIN, table.data}};
    norm_memory_desc_t at[] = {desc_of(2, each_dims, norm_s64, NULL),
            desc_of(3, parts_dims, norm_s64, NULL), desc_of(2, one_dims, norm_s64, NULL)};
    memset(src.data, 0, src.bytes), memset(table.data, 0, table.bytes);
    for (int way = 0; way < 3; ++way)
        for (size_t p = 0; p < sizeof outside_of / sizeof *outside_of; ++p) {
            const int64_t position = outside_of[p];
            const int last = way == 0 ? T - 1 : way == 1 ? 2 * T - 1 : 0;
            char sentence[80];
            snprintf(expect_case, sizeof expect_case, "outside, %d, %lld", way, (long long)position);
            norm_primitive_desc_t pd = NULL;
            MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
                    norm_rope_half_split, norm_rope_from_tables, src.desc, dst.desc, at[way],
                    way == 2 ? 0 : -1, table.desc, NULL, R, 1, way == 1 ? 2 : 0, sections, 0, 0,
                    NULL));
            for (int i = 0; i < 2 * T; ++i) positions[i] = i % ROWS;
            /* The last row is not outside. */
            positions[last] = way == 2 ? ROWS - T : ROWS - 1;
            MUST(execute_with(pd, engine, stream, 5, args));
            /* With an index, the last token is the first outside. */
            positions[last] = way == 2 && position == ROWS ? ROWS - T + 1 : position;
            if (position < 0) snprintf(sentence, sizeof sentence, "is below 0");
            else snprintf(sentence, sizeof sentence, "is outside the tables' %d rows", ROWS);
            refuses(pd, 5, args, &dst, sentence);
        }
    for (int i = 0; i < 3; ++i) MUST(norm_memory_desc_destroy(at[i]));
    tensor_free(&src), tensor_free(&dst), tensor_free(&table);
}

/* A primitive with tables of some strides. */
static norm_primitive_desc_t with_tables(norm_rope_pairing_t pairing, int backward,
        const_norm_memory_desc_t desc, const_norm_memory_desc_t table) {
    static const norm_dim_t position_dims[] = {T, 1};
    norm_memory_desc_t at = desc_of(2, position_dims, norm_s32, NULL);
    norm_primitive_desc_t pd = NULL;
    if (backward)
        MUST(norm_rope_backward_primitive_desc_create(&pd, engine, pairing, norm_rope_from_tables,
                desc, desc, NULL, at, -1, table, NULL, NULL, R, 1, 0, NULL, 0, 0, NULL, NULL));
    else
        MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference, pairing,
                norm_rope_from_tables, desc, desc, at, -1, table, NULL, R, 1, 0, NULL, 0, 0, NULL));
    MUST(norm_memory_desc_destroy(at));
    return pd;
}

static int32_t positions[T] = {5, 0, 7, 3, 3, 1};

/* A row of one buffer has the cosines and then the sines, in vLLM's layout. Two tables with the
 * same numbers give the same bits. */
static void in_one_row(norm_rope_pairing_t pairing, norm_data_type_t type, int backward) {
    static const norm_dim_t dims[] = {T, 3, D}, both_dims[] = {ROWS, 2 * PAIRS};
    static const norm_dim_t strides[] = {2 * PAIRS, 1};
    snprintf(expect_case, sizeof expect_case, "tables in one row, pairing %#x, %s, backward %d",
            (unsigned)pairing, norm_dt2str(type), backward);
    tensor_t src = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t dst = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t want = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t cosines = tensor_make(type, 2, table_dims, NULL, engine);
    tensor_t sines = tensor_make(type, 2, table_dims, NULL, engine);
    tensor_t both = tensor_make(type, 2, both_dims, NULL, engine);
    norm_memory_desc_t half = desc_of(2, table_dims, type, strides);
    uint64_t state = 7;
    tensor_fill_random(&src, &state, -2, 2);
    for (size_t row = 0; row < ROWS; ++row)
        for (size_t pair = 0; pair < PAIRS; ++pair) {
            const double angle = (double)row / (double)(pair + 1);
            tensor_set(&cosines, row, pair, cos(angle));
            tensor_set(&sines, row, pair, sin(angle));
            tensor_set(&both, row, pair, cos(angle));
            tensor_set(&both, row, PAIRS + pair, sin(angle));
        }
    const int from = backward ? NORM_ARG_DIFF_DST : NORM_ARG_SRC;
    const int to = backward ? NORM_ARG_DIFF_SRC : NORM_ARG_DST;
    const argument_t apart[] = {{from, src.data}, {to, want.data}, {NORM_ARG_POSITIONS, positions},
            {NORM_ARG_ROPE_COS, cosines.data}, {NORM_ARG_ROPE_SIN, sines.data}};
    norm_primitive_desc_t pd = with_tables(pairing, backward, src.desc, cosines.desc);
    MUST(execute_with(pd, engine, stream, 5, apart));
    MUST(norm_primitive_desc_destroy(pd));
    unsigned char *second = both.data + PAIRS * element_bytes(type);
    const argument_t together[] = {{from, src.data}, {to, dst.data}, {NORM_ARG_POSITIONS, positions},
            {NORM_ARG_ROPE_COS, both.data}, {NORM_ARG_ROPE_SIN, second}};
    pd = with_tables(pairing, backward, src.desc, half);
    do {
        memset(dst.data, TENSOR_FILL, dst.bytes);
        MUST(execute_with(pd, engine, stream, 5, together));
        EXPECT(tensor_same_bits(&dst, &want));
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(half));
    tensor_free(&src), tensor_free(&dst), tensor_free(&want), tensor_free(&cosines);
    tensor_free(&sines), tensor_free(&both);
}

/* Queries, and keys into slots, of the same tokens. */
typedef struct {
    tensor_t src[2], dst[2];
    primitive_t primitives[2];
} step_t;

static step_t step_of(norm_rope_pairing_t pairing, norm_data_type_t type, unsigned flags) {
    static int64_t slots[T] = {4, -1, 8, 0, 1, 6};
    static double frequencies[PAIRS];
    static const norm_dim_t position_dims[] = {T, 1}, row_dims[] = {D};
    step_t step;
    uint64_t state = 11;
    norm_memory_desc_t at = desc_of(2, position_dims, norm_s32, NULL);
    norm_memory_desc_t scale_desc = flags ? desc_of(1, row_dims, norm_f32, NULL) : NULL;
    static float scale[D];
    for (int i = 0; i < PAIRS; ++i) frequencies[i] = 1. / (1 + i);
    for (int i = 0; i < D; ++i) scale[i] = (float)(i % 5 + 1) / 4;
    for (int side = 0; side < 2; ++side) {
        const norm_dim_t dims[] = {T, side ? KEYS : QUERIES, D}, cache_dims[] = {SLOTS, KEYS, D};
        norm_primitive_desc_t pd = NULL;
        step.src[side] = tensor_make(type, 3, dims, NULL, engine);
        step.dst[side] = tensor_make(type, 3, side ? cache_dims : dims, NULL, engine);
        tensor_fill_random(&step.src[side], &state, -2, 2);
        MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference, pairing,
                norm_rope_from_frequencies, step.src[side].desc, step.dst[side].desc, at, -1, NULL,
                scale_desc, R, 1, 0, NULL, 1e-6f,
                flags | (side ? (unsigned)norm_write_slots : 0), NULL));
        argument_t args[6] = {{NORM_ARG_SRC, step.src[side].data},
                {NORM_ARG_DST, step.dst[side].data}, {NORM_ARG_POSITIONS, positions},
                {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
        int count = 4;
        if (flags) args[count++] = (argument_t) {NORM_ARG_SCALE, scale};
        if (side) args[count++] = (argument_t) {NORM_ARG_SLOTS, slots};
        step.primitives[side] = primitive_of(pd, engine, count, args);
        MUST(norm_primitive_desc_destroy(pd));
    }
    MUST(norm_memory_desc_destroy(at));
    MUST(norm_memory_desc_destroy(scale_desc));
    return step;
}

static void step_free(step_t *step) {
    for (int side = 0; side < 2; ++side) {
        primitive_free(&step->primitives[side]);
        tensor_free(&step->src[side]), tensor_free(&step->dst[side]);
    }
}

/* One call gives the bits of two. If it is refused because of the keys, it writes no queries. */
static void in_one_call(norm_rope_pairing_t pairing, norm_data_type_t type, unsigned flags) {
    snprintf(expect_case, sizeof expect_case, "one call, pairing %#x, %s, %#x", (unsigned)pairing,
            norm_dt2str(type), flags);
    step_t alone = step_of(pairing, type, flags), together = step_of(pairing, type, flags);
    for (int side = 0; side < 2; ++side) {
        const primitive_t *p = &alone.primitives[side];
        MUST(norm_primitive_execute(p->primitive, stream, p->count, p->args));
    }
    const primitive_t *p = together.primitives;
    const const_norm_primitive_t primitives[] = {p[0].primitive, p[1].primitive};
    const int counts[] = {p[0].count, p[1].count};
    const norm_exec_arg_t *const args[] = {p[0].args, p[1].args};
    const norm_exec_arg_t at = p[1].args[2];
    static int32_t wrong[T] = {0, 0, 0, 0, 0, -1};
    MUST(norm_memory_set_data_handle(at.memory, wrong));
    EXPECT(norm_primitive_execute_many(2, primitives, stream, counts, args)
            == norm_invalid_arguments);
    EXPECT(tensor_untouched(&together.dst[0]) && tensor_untouched(&together.dst[1]));
    MUST(norm_memory_set_data_handle(at.memory, positions));
    MUST(norm_primitive_execute_many(2, primitives, stream, counts, args));
    for (int side = 0; side < 2; ++side)
        EXPECT(memcmp(alone.dst[side].data, together.dst[side].data, alone.dst[side].bytes) == 0);
    step_free(&alone), step_free(&together);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        outside();
        for (int p = 0; p < 3; ++p)
            for (int t = 0; t < 3; ++t) {
                in_one_row(pairings[p], types[t], 0);
                in_one_row(pairings[p], types[t], 1);
                in_one_call(pairings[p], types[t], 0);
                in_one_call(pairings[p], types[t], norm_rms_norm | norm_use_scale);
            }
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope_tables");
}
