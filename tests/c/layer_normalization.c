/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Layer and RMS normalization compared with plain double loops: every propagation kind
 * and combination of flags on every level and implementation, over shapes of 2 to 5
 * dimensions. Types, layouts, epsilon, in place and scratchpad mode are drawn at random
 * for each. Every implementation must give the bits of the first.
 *
 * With the argument "emulated", for valgrind: a few shapes, without comparison of bits,
 * because its fused multiply-add rounds twice.
 */
#include "formula.h"
#include "levels.h"

#define IMPLEMENTATIONS_MAX 8
#define CASES_MAX 4096

static const struct {
    int ndims, emulated; /* whether valgrind runs it */
    norm_dims_t dims;
} shapes[] = {
        {2, 0, {3, 5}}, {2, 0, {2, 16}}, {2, 1, {4, 17}}, {2, 0, {1, 1}}, {2, 0, {5, 33}},
        {2, 0, {3, 130}}, {2, 0, {2, 301}}, {3, 0, {2, 3, 7}}, {3, 0, {1, 4, 48}},
        {4, 0, {2, 1, 4, 19}}, {4, 0, {3, 2, 2, 2}}, {5, 1, {2, 2, 1, 3, 20}},
        {2, 0, {0, 5}}, {2, 0, {3, 0}}, {3, 1, {2, 0, 3}}, {5, 0, {2, 2, 2, 2, 0}},
};

static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
static const norm_prop_kind_t prop_kinds[]
        = {norm_forward_training, norm_forward_inference, norm_backward, norm_backward_data};
static const float epsilons[] = {1e-5f, 0.0625f, 0.0f};

static problem_spec_t draw(size_t shape, norm_prop_kind_t prop_kind, unsigned flags, uint64_t seed) {
    uint64_t state = seed + 99;
    problem_spec_t s;
    memset(&s, 0, sizeof s);
    s.ndims = shapes[shape].ndims;
    memcpy(s.dims, shapes[shape].dims, sizeof s.dims);
    s.prop_kind = prop_kind;
    s.flags = flags;
    s.seed = seed;
    s.epsilon = epsilons[random_bits(&state) % 3];
    s.src = types[random_bits(&state) % 3];
    s.dst = types[random_bits(&state) % 3];
    s.diff_dst = types[random_bits(&state) % 3];
    s.parameters = types[random_bits(&state) % 3];
    s.diff_parameters = types[random_bits(&state) % 3];
    if (random_bits(&state) % 2) s.parameters = s.diff_parameters = norm_f32;
    /* Dense half of the time, because dense layouts use the fast path. */
    s.src_layout = random_bits(&state) % 2 ? LAYOUT_DENSE : (int)(random_bits(&state) % LAYOUTS);
    s.dst_layout = random_bits(&state) % 2 ? LAYOUT_DENSE : (int)(random_bits(&state) % LAYOUTS);
    s.stat_layout = (int)(random_bits(&state) % LAYOUTS);
    s.user_scratchpad = (int)(random_bits(&state) % 2);
    if (random_bits(&state) % 2) {
        s.in_place = 1;
        s.dst_layout = problem_is_backward(&s) ? s.dst_layout : s.src_layout;
        s.dst = problem_is_backward(&s) ? s.diff_dst : s.src;
    }
    return s;
}

/* FNV-1a over every output. */
static uint64_t digest(const problem_t *p) {
    const tensor_t *outputs[] = {&p->dst, &p->diff_src, &p->mean, &p->variance, &p->diff_scale,
            &p->diff_shift};
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < 6; ++i)
        for (size_t k = 0; k < outputs[i]->bytes; ++k)
            hash = (hash ^ outputs[i]->data[k]) * 1099511628211u;
    return hash;
}

static uint64_t first_bits[CASES_MAX];
static char first_seen[CASES_MAX];

/* Runs all cases on one implementation. Returns how many it supports. */
static long run_all(const char *level, int implementation, int emulated, norm_engine_t engine,
        norm_stream_t stream) {
    long ran = 0;
    size_t index = 0;
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; ++shape)
        for (size_t kind = 0; kind < 4; ++kind)
            for (unsigned bits = 0; bits < 16; ++bits, ++index) {
                if (emulated && !shapes[shape].emulated) continue;
                const unsigned flags = (bits & 7) | (bits & 8 ? (unsigned)norm_rms_norm : 0);
                problem_spec_t spec = draw(shape, prop_kinds[kind], flags, index);
                spec.implementation = implementation;
                problem_name(&spec, level);
                problem_t p;
                if (problem_make(&p, &spec, engine)) {
                    ++ran;
                    if (EXPECT(problem_execute(&p, stream) == norm_success)) formula_check(&p);
                    if (!first_seen[index]) first_bits[index] = digest(&p);
                    first_seen[index] = 1;
                    EXPECT(emulated || first_bits[index] == digest(&p));
                }
                problem_free(&p);
            }
    return ran;
}

int main(int argc, char **argv) {
    const int emulated = argc > 1 && strcmp(argv[1], "emulated") == 0;
    norm_engine_t engine = NULL;
    norm_stream_t stream = NULL;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int i = 0; i < count; ++i) {
        MUST(norm_set_max_cpu_isa(levels[i]));
        for (int implementation = 0; implementation < IMPLEMENTATIONS_MAX; ++implementation) {
            const char *level = norm_cpu_isa2str(levels[i]);
            const long ran = run_all(level, implementation, emulated, engine, stream);
            if (ran > 0) printf("%s, implementation %d: %ld cases\n", level, implementation, ran);
            /* The first implementation supports every case. */
            EXPECT(implementation > 0 || ran >= (emulated ? 150 : 1000));
        }
    }
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("layer_normalization");
}
