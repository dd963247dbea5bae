/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rope forward and backward compared with the formula in double at every level;
 * angles at far positions; slots; permuted weights; and refusals.
 */
#include "arguments.h"
#include "levels.h"
#include "refused.h"
#include "tensor.h"

#include <math.h>
#include <stdint.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { T = 7, H = 3, D = 64, PAIRS = D / 2, COUNT = T * H * D };
static const norm_dim_t dims[] = {T, H, D}, position_dims[] = {T, 1};
static const norm_rope_pairing_t pairings[]
        = {norm_rope_interleaved, norm_rope_half_split, norm_rope_half_split_of_head};
static double frequencies[PAIRS];
static int32_t positions[T] = {0, 1, 131071, 1 << 20, 77, 4096, 2147483647};

static norm_memory_desc_t desc_of(int ndims, const norm_dim_t *of, norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, of, type, NULL));
    return desc;
}

static norm_memory_t memory_of(const_norm_memory_desc_t desc, void *data) {
    norm_memory_t memory = NULL;
    MUST(norm_memory_create(&memory, desc, engine, data));
    return memory;
}

static norm_status_t execute(norm_primitive_desc_t pd, int count, const argument_t *arguments) {
    return execute_with(pd, engine, stream, count, arguments);
}

static int refuses(norm_primitive_desc_t pd, int count, const argument_t *args, const char *name) {
    return execute(pd, count, args) == norm_invalid_arguments
            && refused_names(norm_get_last_error(), name);
}

static float src[COUNT], dst[COUNT], back[COUNT], scale[D];

static void places(norm_rope_pairing_t pairing, int i, int pairs, int *a, int *b) {
    const int near = pairing == norm_rope_interleaved;
    *a = near ? 2 * i : i;
    *b = near ? 2 * i + 1 : i + (pairing == norm_rope_half_split ? pairs : D / 2);
}

/* The largest error in units in the last place of a pair's larger element. */
static double worst(norm_rope_pairing_t pairing, int pairs, const float *of, const float *got) {
    double most = 0;
    for (int row = 0; row < T * H; ++row) {
        const float *x = of + row * D, *y = got + row * D;
        for (int i = 0; i < pairs; ++i) {
            const double angle = positions[row / H] * frequencies[i];
            int a, b;
            places(pairing, i, pairs, &a, &b);
            const double first = x[a] * cos(angle) - x[b] * sin(angle);
            const double second = x[a] * sin(angle) + x[b] * cos(angle);
            const float larger = (float)fmax(fabs(first), fabs(second));
            const double ulp = nextafterf(larger, INFINITY) - larger;
            most = fmax(most, fabs(y[a] - first) / ulp);
            most = fmax(most, fabs(y[b] - second) / ulp);
            /* The rotation keeps the length. */
            const double length = hypot(x[a], x[b]);
            EXPECT(fabs(hypot(y[a], y[b]) - length) <= 4 * length / (1 << 23));
        }
    }
    return most;
}

static norm_primitive_desc_t forward_of(norm_rope_pairing_t pairing, norm_data_type_t src_type,
        norm_data_type_t dst_type, norm_dim_t rotary_dims, float epsilon, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    norm_memory_desc_t src_desc = desc_of(3, dims, src_type), dst_desc = desc_of(3, dims, dst_type);
    norm_memory_desc_t position_desc = desc_of(2, position_dims, norm_s32);
    norm_memory_desc_t scale_desc = NULL;
    if (flags & norm_use_scale) scale_desc = desc_of(1, dims + 2, norm_f32);
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference, pairing,
            norm_rope_from_frequencies, src_desc, dst_desc, position_desc, -1, NULL, scale_desc,
            rotary_dims, 1, 0, NULL, epsilon, flags, NULL));
    MUST(norm_memory_desc_destroy(src_desc));
    MUST(norm_memory_desc_destroy(dst_desc));
    MUST(norm_memory_desc_destroy(position_desc));
    MUST(norm_memory_desc_destroy(scale_desc));
    return pd;
}

static void there_and_back(norm_rope_pairing_t pairing, int rotary_dims) {
    snprintf(expect_case, sizeof expect_case, "pairing %#x of %d", (unsigned)pairing, rotary_dims);
    norm_primitive_desc_t forward
            = forward_of(pairing, norm_f32, norm_f32, rotary_dims, 0, 0), backward = NULL;
    norm_memory_desc_t desc = desc_of(3, dims, norm_f32);
    norm_memory_desc_t position_desc = desc_of(2, position_dims, norm_s32);
    MUST(norm_rope_backward_primitive_desc_create(&backward, engine, pairing,
            norm_rope_from_frequencies, desc, desc, NULL, position_desc, -1, NULL, NULL, NULL,
            rotary_dims, 1, 0, NULL, 0, 0, forward, NULL));
    const argument_t there[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    memset(dst, 0xff, sizeof dst);
    MUST(execute(forward, 4, there));
    EXPECT(worst(pairing, rotary_dims / 2, src, dst) <= 2);
    /* Position 0 changes nothing, and elements that are not rotated are copied. */
    EXPECT(memcmp(dst, src, H * D * sizeof *dst) == 0);
    const argument_t again[] = {{NORM_ARG_DIFF_DST, dst}, {NORM_ARG_DIFF_SRC, back},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    MUST(execute(backward, 4, again));
    int wrong = 0, moved = 0;
    for (int i = 0; i < COUNT; ++i) {
        wrong += fabsf(back[i] - src[i]) > 2e-6f;
        moved += fabsf(dst[i] - src[i]) > 1e-3f;
    }
    EXPECT(wrong == 0 && moved > 0);
    /* In place. */
    memcpy(back, src, sizeof src);
    const argument_t shared[] = {{NORM_ARG_SRC, back}, {NORM_ARG_DST, back},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    MUST(execute(forward, 4, shared));
    EXPECT(memcmp(back, dst, sizeof dst) == 0);
    norm_primitive_kind_t kind = norm_undefined_primitive;
    MUST(norm_primitive_desc_query(backward, norm_query_primitive_kind, 0, &kind));
    EXPECT(kind == norm_rope);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(position_desc));
}

/* Inf stays Inf, which the correction of products must not change. So do NaN and -0. */
static void special(norm_rope_pairing_t pairing) {
    snprintf(expect_case, sizeof expect_case, "special values, pairing %#x", (unsigned)pairing);
    static float x[COUNT], y[COUNT];
    norm_primitive_desc_t pd = forward_of(pairing, norm_f32, norm_f32, D, 0, 0);
    const float of[] = {INFINITY, -INFINITY, NAN, 3e38f};
    int a, b;
    for (int i = 0; i < COUNT; ++i) x[i] = 1;
    for (int pair = 0; pair < 4; ++pair) {
        places(pairing, pair, PAIRS, &a, &b);
        x[a] = -0.0f;
        x[H * D + a] = of[pair];
    }
    const argument_t args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    MUST(execute(pd, 4, args));
    EXPECT(memcmp(x, y, D * sizeof *x) == 0);
    /* Token 1 turns by frequency[pair], at most 1 radian, so its cosine and sine are positive. */
    for (int pair = 0; pair < 3; ++pair) {
        places(pairing, pair, PAIRS, &a, &b);
        const float p = y[H * D + a], q = y[H * D + b];
        EXPECT(pair == 2 ? isnan(p) && isnan(q) : p == of[pair] && q == of[pair]);
    }
    places(pairing, 3, PAIRS, &a, &b);
    const double angle = frequencies[3];
    EXPECT(fabs(y[H * D + a] / (3e38f * cos(angle)) - 1) < 3e-7);
    EXPECT(fabs(y[H * D + b] / (3e38f * sin(angle)) - 1) < 3e-7);
    MUST(norm_primitive_desc_destroy(pd));
}

/* Rows of tokens in a cache of slots, and in pages of slots. The others stay unchanged. */
static void slots(int paged) {
    snprintf(expect_case, sizeof expect_case, "slots, %d", paged);
    enum { SLOTS = 12 };
    static float cache[SLOTS * H * D], before[SLOTS * H * D];
    static int64_t slot[T] = {3, 0, 11, -1, 7, 8, 1};
    const norm_dim_t cache_dims[] = {SLOTS, H, D}, page_dims[] = {SLOTS / 4, 4, H, D};
    norm_primitive_desc_t plain = forward_of(norm_rope_half_split, norm_f32, norm_f32, D, 0, 0);
    norm_primitive_desc_t pd = NULL;
    norm_memory_desc_t desc = desc_of(3, dims, norm_f32);
    norm_memory_desc_t cache_desc
            = paged ? desc_of(4, page_dims, norm_f32) : desc_of(3, cache_dims, norm_f32);
    norm_memory_desc_t position_desc = desc_of(2, position_dims, norm_s32);
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_rope_half_split, norm_rope_from_frequencies, desc, cache_desc, position_desc, -1,
            NULL, NULL, D, 1, 0, NULL, 0, norm_write_slots, NULL));
    const argument_t once[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    MUST(execute(plain, 4, once));
    for (int i = 0; i < SLOTS * H * D; ++i) cache[i] = before[i] = (float)i;
    argument_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, cache},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies},
            {NORM_ARG_SLOTS, slot}};
    MUST(execute(pd, 5, args));
    for (int s = 0; s < SLOTS; ++s) {
        const float *want = before + s * H * D;
        for (int t = 0; t < T; ++t)
            if (slot[t] == s) want = dst + t * H * D;
        EXPECT(memcmp(cache + s * H * D, want, H * D * sizeof *want) == 0);
    }
    memcpy(cache, before, sizeof cache);
    slot[5] = SLOTS;
    EXPECT(refuses(pd, 5, args, "NORM_ARG_SLOTS"));
    slot[5] = -2;
    EXPECT(refuses(pd, 5, args, "NORM_ARG_SLOTS"));
    slot[5] = 8;
    EXPECT(memcmp(cache, before, sizeof cache) == 0);
    MUST(norm_primitive_desc_destroy(plain));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(cache_desc));
    MUST(norm_memory_desc_destroy(position_desc));
}

/* Scores depend on the difference of positions, whatever the pairing of the weights. */
static void scores(void) {
    static float rows[2 * D], moved[2 * D], q[COUNT], k[COUNT];
    const norm_dim_t row_dims[] = {2 * D};
    const int32_t kept[T] = {5, 1000, 5000, 70000, 100000, 200000, 300000};
    double first = 0;
    snprintf(expect_case, sizeof expect_case, "scores");
    memcpy(positions, kept, sizeof kept);
    norm_memory_desc_t desc = desc_of(1, row_dims, norm_f32);
    norm_memory_t from = memory_of(desc, rows), to = memory_of(desc, moved);
    for (int p = 0; p < 3; ++p) {
        norm_primitive_desc_t pd = forward_of(pairings[p], norm_f32, norm_f32, D, 0, 0);
        for (int i = 0; i < 2 * D; ++i) rows[i] = sinf((float)(3 * i + 1)) / 4;
        MUST(norm_rope_permute(norm_rope_half_split, pairings[p], 2, D, from, to));
        double score[T];
        for (int shift = 0; shift < 2; ++shift) {
            for (int t = 0; t < T; ++t) {
                memcpy(src + t * H * D, moved, 2 * D * sizeof *moved);
                positions[t] = kept[t] + 9 * shift;
            }
            const argument_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, shift ? k : q},
                    {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
            MUST(execute(pd, 4, args));
        }
        for (int t = 0; t < T; ++t) {
            score[t] = 0;
            for (int c = 0; c < D; ++c) score[t] += q[t * H * D + c] * k[t * H * D + D + c];
            if (p == 0 && t == 0) first = score[0];
            EXPECT(fabs(score[t] - first) < 1e-5);
        }
        /* And back. */
        MUST(norm_rope_permute(pairings[p], norm_rope_half_split, 2, D, to, from));
        for (int i = 0; i < 2 * D; ++i) EXPECT(rows[i] == sinf((float)(3 * i + 1)) / 4);
        MUST(norm_primitive_desc_destroy(pd));
    }
    MUST(norm_memory_destroy(from));
    MUST(norm_memory_destroy(to));
    MUST(norm_memory_desc_destroy(desc));
}

static void refused(void) {
    norm_primitive_desc_t pd = NULL;
    const norm_dim_t sections[] = {10, 10, 12}, bad_sections[] = {10, 10, 10};
    const norm_dim_t section_dims[] = {T, 1, 3}, odd[] = {T, H, 15}, wrong[] = {T + 1, 1};
    const norm_dim_t table_dims[] = {16, PAIRS}, scale_dims[] = {D};
    norm_memory_desc_t desc = desc_of(3, dims, norm_f32), bytes = desc_of(3, dims, norm_u8);
    norm_memory_desc_t at = desc_of(2, position_dims, norm_s32), at3 = desc_of(3, section_dims, norm_s64);
    norm_memory_desc_t short_head = desc_of(3, odd, norm_f32), other = desc_of(2, wrong, norm_s32);
    norm_memory_desc_t table = desc_of(2, table_dims, norm_f32), its = desc_of(1, scale_dims, norm_f32);
    const norm_rope_pairing_t half = norm_rope_half_split, whole = norm_rope_half_split_of_head;
    const norm_rope_angles_t computed = norm_rope_from_frequencies, tables = norm_rope_from_tables;
#define FORWARD(parameter, kind, pairing, angles, x, y, p, index, t, s, rotary, magnitude, n, parts, \
        epsilon, flags) \
    INVALID(parameter, norm_rope_forward_primitive_desc_create, \
            (&pd, engine, kind, pairing, angles, x, y, p, index, t, s, rotary, magnitude, n, parts, \
                    epsilon, flags, NULL))
    const norm_prop_kind_t kind = norm_forward;
    FORWARD("prop_kind", norm_backward_data, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("pairing", kind, (norm_rope_pairing_t)1, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("angles", kind, half, (norm_rope_angles_t)7, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("src_desc", kind, half, computed, NULL, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("src_desc", kind, half, computed, its, its, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("src_desc", kind, whole, computed, short_head, short_head, at, -1, NULL, NULL, 14, 1, 0, NULL, 0, 0);
    FORWARD("dst_desc", kind, half, computed, desc, short_head, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("position_desc", kind, half, computed, desc, desc, other, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("position_desc", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 3, sections, 0, 0);
    FORWARD("index_dim", kind, half, computed, desc, desc, at, 0, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("index_dim", kind, half, computed, desc, desc, at, 2, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("table_desc", kind, half, computed, desc, desc, at, -1, table, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("table_desc", kind, half, tables, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0);
    FORWARD("table_desc", kind, half, tables, desc, desc, at, -1, table, NULL, D / 2, 1, 0, NULL, 0, 0);
    FORWARD("scale_desc", kind, half, computed, desc, desc, at, -1, NULL, its, D, 1, 0, NULL, 0, 0);
    FORWARD("scale_desc", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0,
            norm_rms_norm | norm_use_scale);
    FORWARD("rotary_dims", kind, half, computed, desc, desc, at, -1, NULL, NULL, 15, 1, 0, NULL, 0, 0);
    FORWARD("rotary_dims", kind, half, computed, desc, desc, at, -1, NULL, NULL, D + 2, 1, 0, NULL, 0, 0);
    FORWARD("magnitude", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, INFINITY, 0, NULL, 0, 0);
    FORWARD("num_sections", kind, half, computed, desc, desc, at3, -1, NULL, NULL, D, 1, 5, sections, 0, 0);
    FORWARD("sections", kind, half, computed, desc, desc, at3, -1, NULL, NULL, D, 1, 3, NULL, 0, 0);
    FORWARD("sections", kind, half, computed, desc, desc, at3, -1, NULL, NULL, D, 1, 3, bad_sections, 0, 0);
    FORWARD("epsilon", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, -1, norm_rms_norm);
    FORWARD("flags", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, norm_use_shift);
    FORWARD("flags", kind, half, computed, desc, desc, at, -1, NULL, NULL, D, 1, 0, NULL, 0, norm_rope_norm_rounded);
    REFUSED(norm_unimplemented, "src_desc", norm_rope_forward_primitive_desc_create,
            (&pd, engine, kind, half, computed, bytes, bytes, at, -1, NULL, NULL, D, 1, 0, NULL, 0, 0, NULL));
    INVALID("flags", norm_rope_backward_primitive_desc_create,
            (&pd, engine, half, computed, desc, desc, NULL, at, -1, NULL, NULL, NULL, D, 1, 0, NULL, 0, norm_use_scale,
                    NULL, NULL));
    INVALID("diff_src_desc", norm_rope_backward_primitive_desc_create,
            (&pd, engine, half, computed, short_head, desc, NULL, at, -1, NULL, NULL, NULL, D, 1, 0, NULL, 0, 0, NULL,
                    NULL));
    double out[4] = {9, 9, 9, 9}, parameters[] = {4, 1, 0.5, 4096};
    float magnitude = 9;
    INVALID("scaling", norm_rope_frequencies, ((norm_rope_scaling_t)3, 8, 1e4, 0, NULL, out, NULL));
    INVALID("rotary_dims", norm_rope_frequencies, (norm_rope_scaling_none, 7, 1e4, 0, NULL, out, NULL));
    INVALID("base", norm_rope_frequencies, (norm_rope_scaling_none, 8, 1, 0, NULL, out, NULL));
    INVALID("num_parameters", norm_rope_frequencies, (norm_rope_scaling_yarn, 8, 1e4, 1, parameters, out, NULL));
    INVALID("parameters", norm_rope_frequencies, (norm_rope_scaling_linear, 8, 1e4, 1, NULL, out, NULL));
    INVALID("parameters", norm_rope_frequencies,
            (norm_rope_scaling_llama3, 8, 1e4, 4, parameters, out, &magnitude));
    INVALID("frequencies", norm_rope_frequencies, (norm_rope_scaling_none, 8, 1e4, 0, NULL, NULL, NULL));
    EXPECT(out[0] == 9 && out[3] == 9 && magnitude == 9);
    norm_memory_t rows = memory_of(desc, src), same = memory_of(its, scale), to = memory_of(its, dst);
    INVALID("from", norm_rope_permute, ((norm_rope_pairing_t)0, half, 1, D, same, to));
    INVALID("to", norm_rope_permute, (half, (norm_rope_pairing_t)0, 1, D, same, to));
    INVALID("heads", norm_rope_permute, (half, whole, 5, D, same, to));
    INVALID("rotary_dims", norm_rope_permute, (half, whole, 2, D, same, to));
    INVALID("src", norm_rope_permute, (half, whole, 1, D, rows, rows));
    INVALID("dst", norm_rope_permute, (half, whole, 1, D, same, rows));
    INVALID("dst", norm_rope_permute, (half, whole, 1, D, same, same));
    MUST(norm_memory_destroy(rows));
    MUST(norm_memory_destroy(same));
    MUST(norm_memory_destroy(to));
    const norm_memory_desc_t all[] = {desc, bytes, at, at3, short_head, other, table, its};
    for (int i = 0; i < 8; ++i) MUST(norm_memory_desc_destroy(all[i]));
}

/* Wrong positions are refused before anything is written. */
static void wrong_positions(void) {
    snprintf(expect_case, sizeof expect_case, "wrong positions");
    norm_primitive_desc_t pd = forward_of(norm_rope_half_split, norm_f32, norm_f32, D, 0, 0);
    const argument_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_FREQUENCIES, frequencies}};
    memset(dst, 0, sizeof dst);
    positions[T - 1] = -1;
    EXPECT(refuses(pd, 4, args, "NORM_ARG_POSITIONS"));
    for (int i = 0; i < COUNT; ++i) EXPECT(dst[i] == 0);
    positions[T - 1] = 2147483647;
    MUST(norm_primitive_desc_destroy(pd));
}

/* Tokens without heads: their positions are rows of no table, and no implementation reads one. */
static void without_heads(void) {
    static float table[8 * PAIRS];
    const norm_dim_t none[] = {T, 0, D}, table_dims[] = {8, PAIRS};
    norm_memory_desc_t desc = desc_of(3, none, norm_f32);
    norm_memory_desc_t at = desc_of(2, position_dims, norm_s32);
    norm_memory_desc_t rows = desc_of(2, table_dims, norm_f32);
    norm_primitive_desc_t pd = NULL;
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_rope_half_split, norm_rope_from_tables, desc, desc, at, -1, rows, NULL, D, 1, 0,
            NULL, 0, 0, NULL));
    const argument_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst},
            {NORM_ARG_POSITIONS, positions}, {NORM_ARG_ROPE_COS, table}, {NORM_ARG_ROPE_SIN, table}};
    do {
        EXPECT(execute(pd, 5, args) == norm_success);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(at));
    MUST(norm_memory_desc_destroy(rows));
}

int main(void) {
    float magnitude = 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_rope_frequencies(norm_rope_scaling_none, D, 10000, 0, NULL, frequencies, &magnitude));
    EXPECT(magnitude == 1 && frequencies[0] == 1 && fabs(frequencies[16] - 0.01) < 1e-15);
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int c = 0; c < D; ++c) scale[c] = (float)(c % 7 + 1) / 4;
    int32_t kept[T];
    memcpy(kept, positions, sizeof kept);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        memcpy(positions, kept, sizeof kept);
        uint64_t state = 1;
        for (int i = 0; i < COUNT; ++i) src[i] = (float)random_between(&state, -2, 2);
        for (int p = 0; p < 3; ++p)
            for (int rotary = D; rotary > 8; rotary -= 22) there_and_back(pairings[p], rotary);
        for (int p = 0; p < 3; ++p) special(pairings[p]);
        slots(0);
        slots(1);
        wrong_positions();
        without_heads();
        scores();
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    refused();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope");
}
