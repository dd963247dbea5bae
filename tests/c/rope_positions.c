/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rope at positions from 0 to 2^20, compared with the formula in double at every level:
 * elements, the length of heads, and scores, which depend on the difference of positions.
 */
#include "levels.h"
#include "tensor.h"

#include <math.h>
#include <stdint.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { LAST = 1 << 20, TOKENS = 1 << 14, D = 64, R = 56, PAIRS = R / 2, SCORES = 10000 };
static const norm_dim_t dims[] = {TOKENS, 1, D}, position_dims[] = {TOKENS, 1};
static double frequencies[PAIRS];
static int32_t positions[TOKENS];
static float src[TOKENS * D], dst[TOKENS * D];

typedef struct {
    norm_primitive_t primitive;
    norm_exec_arg_t args[4];
} rope_t;

static rope_t rope_of(norm_rope_pairing_t pairing) {
    rope_t rope = {0};
    norm_primitive_desc_t pd = NULL;
    norm_memory_desc_t desc = NULL, position_desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, 3, dims, norm_f32, NULL));
    MUST(norm_memory_desc_create_with_strides(&position_desc, 2, position_dims, norm_s32, NULL));
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference, pairing,
            norm_rope_from_frequencies, desc, desc, position_desc, -1, NULL, NULL, R, 1, 0, NULL, 0,
            0, NULL));
    MUST(norm_primitive_create(&rope.primitive, pd));
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_POSITIONS, NORM_ARG_ROPE_FREQUENCIES};
    void *const data[] = {src, dst, positions, frequencies};
    for (int i = 0; i < 4; ++i) {
        const_norm_memory_desc_t its
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
        rope.args[i].arg = ids[i];
        MUST(norm_memory_create(&rope.args[i].memory, its, engine, data[i]));
    }
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(position_desc));
    return rope;
}

static void rope_free(rope_t *rope) {
    for (int i = 0; i < 4; ++i) MUST(norm_memory_destroy(rope->args[i].memory));
    MUST(norm_primitive_destroy(rope->primitive));
}

/* The elements of a pair. */
static void places(norm_rope_pairing_t pairing, int pair, int at[2]) {
    at[0] = pairing == norm_rope_interleaved ? 2 * pair : pair;
    at[1] = at[0]
            + (pairing == norm_rope_interleaved      ? 1
                      : pairing == norm_rope_half_split ? PAIRS
                                                        : D / 2);
}

static double ulp_of(double number) {
    const float f = fabsf((float)number);
    return nextafterf(f, INFINITY) - f;
}

/* The cosines and sines of each position and pair, the same for every pairing and level. */
static double turns[TOKENS * PAIRS][2];

static void make_turns(void) {
    for (int t = 0; t < TOKENS; ++t)
        for (int i = 0; i < PAIRS; ++i) {
            turns[t * PAIRS + i][0] = cos(positions[t] * frequencies[i]);
            turns[t * PAIRS + i][1] = sin(positions[t] * frequencies[i]);
        }
}

/* The largest errors of elements, in units in the last place of the larger one of their pair, and
 * of the lengths of what is rotated of heads, in units in their last place. */
static void errors(const rope_t *rope, norm_rope_pairing_t pairing, double most[2]) {
    MUST(norm_primitive_execute(rope->primitive, stream, 4, rope->args));
    for (int t = 0; t < TOKENS; ++t) {
        const float *x = src + t * D, *y = dst + t * D;
        double before = 0, after = 0;
        for (int i = 0; i < PAIRS; ++i) {
            int at[2];
            places(pairing, i, at);
            const int a = at[0], b = at[1];
            const double cosine = turns[t * PAIRS + i][0], sine = turns[t * PAIRS + i][1];
            const double first = x[a] * cosine - x[b] * sine;
            const double second = x[a] * sine + x[b] * cosine;
            const double unit = ulp_of(fmax(fabs(first), fabs(second)));
            const double off = fmax(fabs(y[a] - first), fabs(y[b] - second)) / unit;
            if (!(off <= most[0])) most[0] = off;
            before += (double)x[a] * x[a] + (double)x[b] * x[b];
            after += (double)y[a] * y[a] + (double)y[b] * y[b];
        }
        const double off = fabs(sqrt(after) - sqrt(before)) / ulp_of(sqrt(before));
        if (!(off <= most[1])) most[1] = off;
    }
}

/* The score of a token's query, 16 of the unit's squares, and of the key `distance` before. */
static void scores(const rope_t *rope, norm_rope_pairing_t pairing) {
    static float queries[TOKENS * D];
    static float given[2][D];
    static int32_t distances[SCORES];
    uint64_t state = 5;
    double most = 0, least = 1;
    for (int c = 0; c < D; ++c)
        for (int side = 0; side < 2; ++side)
            given[side][c] = (float)random_between(&state, -1, 1) / 8;
    for (int t = 0; t < TOKENS; ++t) memcpy(src + t * D, given[0], sizeof given[0]);
    for (int t = 0; t < SCORES; ++t) {
        distances[t] = (int32_t)random_between(&state, 0, LAST);
        positions[t] = (int32_t)random_between(&state, distances[t], LAST);
    }
    MUST(norm_primitive_execute(rope->primitive, stream, 4, rope->args));
    memcpy(queries, dst, sizeof dst);
    for (int t = 0; t < TOKENS; ++t) memcpy(src + t * D, given[1], sizeof given[1]);
    for (int t = 0; t < SCORES; ++t) positions[t] -= distances[t];
    MUST(norm_primitive_execute(rope->primitive, stream, 4, rope->args));
    for (int t = 0; t < SCORES; ++t) {
        double score = 0, right = 0;
        for (int c = 0; c < D; ++c) score += (double)queries[t * D + c] * dst[t * D + c];
        const float *q = given[0], *k = given[1];
        int turned[D] = {0};
        for (int i = 0; i < PAIRS; ++i) {
            int at[2];
            places(pairing, i, at);
            const int a = at[0], b = at[1];
            const double angle = distances[t] * frequencies[i];
            turned[a] = turned[b] = 1;
            right += cos(angle) * ((double)q[a] * k[a] + (double)q[b] * k[b])
                    + sin(angle) * ((double)q[a] * k[b] - (double)q[b] * k[a]);
        }
        for (int c = 0; c < D; ++c)
            if (!turned[c]) right += (double)q[c] * k[c];
        if (!(fabs(score - right) <= most)) most = fabs(score - right);
        if (score < least) least = score;
    }
    printf("%d scores: off by %.2g at most\n", SCORES, most);
    EXPECT(most <= 1e-5);
    /* They do depend on the distance. */
    EXPECT(least < -0.01);
}

int main(void) {
    static const norm_rope_pairing_t pairings[]
            = {norm_rope_interleaved, norm_rope_half_split, norm_rope_half_split_of_head};
    float magnitude = 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_rope_frequencies(norm_rope_scaling_none, R, 10000, 0, NULL, frequencies, &magnitude));
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int level = 0; level < count; ++level) {
        MUST(norm_set_max_cpu_isa(levels[level]));
        for (int p = 0; p < 3; ++p) {
            snprintf(expect_case, sizeof expect_case, "%s, pairing %d",
                    norm_cpu_isa2str(levels[level]), p);
            rope_t rope = rope_of(pairings[p]);
            uint64_t state = 7;
            for (int i = 0; i < TOKENS * D; ++i) src[i] = (float)random_between(&state, -2, 2);
            /* The smallest and the largest, and about every 64th in between. */
            for (int t = 0; t < TOKENS; ++t)
                positions[t] = t < 1024 ? t : LAST - (int32_t)((TOKENS - 1 - t) * 68.2L);
            if (level == 0 && p == 0) make_turns();
            double most[2] = {0, 0};
            errors(&rope, pairings[p], most);
            printf("%d positions to %d: %.2f ulp, lengths %.2f ulp\n", TOKENS, positions[TOKENS - 1],
                    most[0], most[1]);
            /* One unit for cosine and sine, and half a unit for each of the two sums. */
            EXPECT(most[0] > 0 && most[0] <= 2 && most[1] <= 1);
            scores(&rope, pairings[p]);
            rope_free(&rope);
        }
    }
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("rope_positions");
}
