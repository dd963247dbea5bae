/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rope with a normalization of each head has the bits of layer normalization followed by rope:
 * every implementation, pairing, and pair of types, with every scale, with tables and frequencies,
 * with slots, partly rotated heads, sizes that are no multiple of a vector, and long heads.
 */
#include "arguments.h"
#include "levels.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { T = 5, H = 3, LONGEST = 5000, ROWS = 16 };
static const float epsilon = 1e-6f;
static double frequencies[LONGEST / 2];
static int32_t far_positions[T] = {0, 131071, 7, 1 << 20, 4095}, near_positions[T] = {3, 0, 15, 7, 7};
static int64_t slots[T] = {6, -1, 0, 3, 1};

typedef struct {
    norm_rope_pairing_t pairing;
    norm_dim_t head, rotary;
    /* Without a scale or a table, its type is undefined. */
    norm_data_type_t src, dst, scale, table;
    unsigned flags;
    float unit;
} case_t;

typedef struct {
    tensor_t src, middle, want, dst, scale, cosines, sines;
} tensors_t;

static tensors_t tensors_of(const case_t *c) {
    const norm_dim_t dims[] = {T, H, c->head}, table_dims[] = {ROWS, c->rotary / 2};
    const norm_dim_t dst_dims[] = {c->flags & norm_write_slots ? T + 2 : T, H, c->head};
    const int rounded = (c->flags & norm_rope_norm_rounded) != 0;
    tensors_t t;
    uint64_t state = 3;
    memset(&t, 0, sizeof t);
    t.src = tensor_make(c->src, 3, dims, NULL, engine);
    t.middle = tensor_make(rounded ? c->dst : norm_f32, 3, dims, NULL, engine);
    t.want = tensor_make(c->dst, 3, dst_dims, NULL, engine);
    t.dst = tensor_make(c->dst, 3, dst_dims, NULL, engine);
    tensor_fill_random(&t.src, &state, -c->unit, c->unit);
    for (size_t col = 0; col < t.src.cols; ++col) tensor_set(&t.src, 4, col, 0);
    if (c->scale != norm_data_type_undef) {
        t.scale = tensor_make(c->scale, 1, dims + 2, NULL, engine);
        tensor_fill_random(&t.scale, &state, -2, 2);
    }
    if (c->table != norm_data_type_undef) {
        t.cosines = tensor_make(c->table, 2, table_dims, NULL, engine);
        t.sines = tensor_make(c->table, 2, table_dims, NULL, engine);
        tensor_fill_random(&t.cosines, &state, -1, 1);
        tensor_fill_random(&t.sines, &state, -1, 1);
    }
    return t;
}

static void tensors_free(tensors_t *t) {
    tensor_free(&t->src), tensor_free(&t->middle), tensor_free(&t->want), tensor_free(&t->dst);
    tensor_free(&t->scale), tensor_free(&t->cosines), tensor_free(&t->sines);
}

/* Runs rope, in its first implementation or in all of them, and compares the results of the latter. */
static void rotate(const case_t *c, const tensors_t *t, int alone) {
    const norm_dim_t position_dims[] = {T, 1};
    const int tables = c->table != norm_data_type_undef;
    const int scaled = !alone && c->scale != norm_data_type_undef;
    const tensor_t *from = alone ? &t->middle : &t->src, *to = alone ? &t->want : &t->dst;
    norm_memory_desc_t at = NULL;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_memory_desc_create_with_strides(&at, 2, position_dims, norm_s32, NULL));
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference, c->pairing,
            tables ? norm_rope_from_tables : norm_rope_from_frequencies, from->desc, to->desc, at,
            -1, tables ? t->cosines.desc : NULL, scaled ? t->scale.desc : NULL, c->rotary, 0.75f, 0,
            NULL, epsilon, alone ? c->flags & norm_write_slots : c->flags, NULL));
    argument_t args[7] = {{NORM_ARG_SRC, from->data}, {NORM_ARG_DST, to->data},
            {NORM_ARG_POSITIONS, tables ? near_positions : far_positions}};
    int count = 3;
    if (tables) {
        args[count++] = (argument_t) {NORM_ARG_ROPE_COS, t->cosines.data};
        args[count++] = (argument_t) {NORM_ARG_ROPE_SIN, t->sines.data};
    } else {
        args[count++] = (argument_t) {NORM_ARG_ROPE_FREQUENCIES, frequencies};
    }
    if (scaled) args[count++] = (argument_t) {NORM_ARG_SCALE, t->scale.data};
    if (c->flags & norm_write_slots) args[count++] = (argument_t) {NORM_ARG_SLOTS, slots};
    do {
        memset(to->data, TENSOR_FILL, to->bytes);
        MUST(execute_with(pd, engine, stream, count, args));
        if (!alone) EXPECT(memcmp(t->dst.data, t->want.data, t->dst.bytes) == 0);
    } while (!alone && norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(at));
}

static void normalized(const case_t *c) {
    snprintf(expect_case, sizeof expect_case, "pairing %#x, %d of %d, %s, %s, scale %s, table %s, %#x, %g",
            (unsigned)c->pairing, (int)c->rotary, (int)c->head, norm_dt2str(c->src),
            norm_dt2str(c->dst), norm_dt2str(c->scale), norm_dt2str(c->table), c->flags,
            (double)c->unit);
    tensors_t t = tensors_of(c);
    norm_primitive_desc_t norm = NULL;
    const int scaled = c->scale != norm_data_type_undef;
    const unsigned own = c->flags & ~(unsigned)(norm_rope_norm_rounded | norm_write_slots);
    MUST(norm_layer_normalization_forward_primitive_desc_create_v2(&norm, engine,
            norm_forward_inference, t.src.desc, t.middle.desc, NULL, scaled ? c->scale : norm_f32,
            epsilon, own, NULL));
    const argument_t args[] = {{NORM_ARG_SRC, t.src.data}, {NORM_ARG_DST, t.middle.data},
            {NORM_ARG_SCALE, t.scale.data}};
    MUST(execute_with(norm, engine, stream, scaled ? 3 : 2, args));
    MUST(norm_primitive_desc_destroy(norm));
    rotate(c, &t, 1);
    rotate(c, &t, 0);
    tensors_free(&t);
}

static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};

/* Every scale, with the normalized heads rounded and not. */
static void scales(case_t c) {
    static const norm_data_type_t scale_types[]
            = {norm_data_type_undef, norm_f32, norm_bf16, norm_f16, norm_f32, norm_bf16};
    for (int s = 0; s < 6; ++s)
        for (int rounded = 0; rounded < 2; ++rounded) {
            case_t one = c;
            one.scale = scale_types[s];
            one.flags |= norm_rms_norm | (s > 0 ? (unsigned)norm_use_scale : 0)
                    | (s > 3 ? (unsigned)norm_scale_plus_one : 0)
                    | (rounded ? (unsigned)norm_rope_norm_rounded : 0);
            normalized(&one);
        }
}

static void with_pairing(norm_rope_pairing_t pairing) {
    static const norm_dim_t sizes[][2] = {{64, 64}, {64, 26}, {30, 30}, {30, 8}, {132, 100}};
    static const norm_data_type_t tables[] = {norm_data_type_undef, norm_f32, norm_bf16};
    static const norm_dim_t long_sizes[][2] = {{LONGEST, LONGEST}, {LONGEST, 130}, {4098, 4000}};
    static const float units[] = {1e25f, 1e-25f};
    case_t c = {.pairing = pairing, .unit = 3};
    for (int size = 0; size < 5; ++size)
        for (int pair = 0; pair < 9; ++pair)
            for (int table = 0; table < 3; ++table)
                for (int to_slots = 0; to_slots < 2; ++to_slots) {
                    c.head = sizes[size][0], c.rotary = sizes[size][1];
                    c.src = types[pair / 3], c.dst = types[pair % 3], c.table = tables[table];
                    c.flags = to_slots ? norm_write_slots : 0;
                    scales(c);
                }
    c.table = norm_data_type_undef, c.flags = 0;
    for (int size = 0; size < 3; ++size)
        for (int type = 0; type < 2; ++type) {
            c.head = long_sizes[size][0], c.rotary = long_sizes[size][1];
            c.src = types[type], c.dst = types[1 - type], c.scale = norm_bf16;
            c.flags = norm_rms_norm | norm_use_scale;
            normalized(&c);
            c.flags |= norm_rope_norm_rounded | norm_write_slots;
            normalized(&c);
        }
    /* Squares that overflow or vanish in f32. */
    for (int u = 0; u < 2; ++u)
        for (int pair = 0; pair < 4; ++pair) {
            c.head = 30, c.rotary = 26, c.unit = units[u], c.flags = 0;
            c.src = types[pair / 2], c.dst = types[pair % 2];
            scales(c);
        }
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int i = 0; i < LONGEST / 2; ++i) frequencies[i] = 1. / (1 + 0.37 * i);
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        with_pairing(norm_rope_interleaved);
        with_pairing(norm_rope_half_split);
        with_pairing(norm_rope_half_split_of_head);
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope_norm");
}
