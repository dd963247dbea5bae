/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attention reads nothing beyond the lengths: descriptors have more queries and keys than the
 * buffers, which end at an unreadable page or, in a second round, start right after one. Each level
 * and type, forward and backward, has the bits of larger buffers on the portable level.
 */
#define _DEFAULT_SOURCE
#include "element.h"
#include "levels.h"
#include "slots.h"

enum { HEADS = 2, MORE_QUERIES = 3, MORE_KEYS = 40 };

static norm_engine_t engine;
static norm_stream_t stream;

enum { Q, K, V, DST, DIFF_DST, DIFF_Q, DIFF_K, DIFF_V, TENSORS };

/* Keys and values have one head. */
static const struct {
    int id, heads, of_keys, of_values;
} tensors[TENSORS] = {{NORM_ARG_QUERIES, HEADS, 0, 0}, {NORM_ARG_KEYS, 1, 1, 0}, {NORM_ARG_VALUES, 1, 1, 1},
        {NORM_ARG_DST, HEADS, 0, 1}, {NORM_ARG_DIFF_DST, HEADS, 0, 1}, {NORM_ARG_DIFF_QUERIES, HEADS, 0, 0},
        {NORM_ARG_DIFF_KEYS, 1, 1, 0}, {NORM_ARG_DIFF_VALUES, 1, 1, 1}};

typedef struct {
    norm_data_type_t type;
    int queries, keys, sizes[2]; /* the lengths; the sizes of keys and of values */
    unsigned char *data[TENSORS];
    float *logarithms;
} attention_t;

static size_t row_bytes(const attention_t *a, int i) {
    const size_t element = a->type == norm_f32 ? 4 : 2;
    return element * (size_t)(tensors[i].heads * a->sizes[tensors[i].of_values]);
}

static int length(const attention_t *a, int i) { return tensors[i].of_keys ? a->keys : a->queries; }

static int rows(const attention_t *a, int i) {
    return tensors[i].of_keys ? a->keys + MORE_KEYS : a->queries + MORE_QUERIES;
}

/* Tokens before heads. The dimensions of keys are those of their transpose. */
static norm_memory_desc_t desc_of(const attention_t *a, int i) {
    const norm_dim_t heads = tensors[i].heads, size = a->sizes[tensors[i].of_values], count = rows(a, i);
    const int turned = i == K || i == DIFF_K;
    const norm_dims_t dims = {1, heads, turned ? size : count, turned ? count : size};
    const norm_dims_t strides
            = {count * heads * size, size, turned ? 1 : heads * size, turned ? heads * size : 1};
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, 4, dims, a->type, strides));
    return desc;
}

static norm_primitive_desc_t create(const attention_t *a, int is_forward) {
    norm_memory_desc_t d[TENSORS];
    norm_primitive_desc_t pd = NULL;
    const unsigned flags = norm_sdpa_query_lengths | norm_sdpa_key_lengths;
    const norm_attn_mask_type_t mask = norm_attn_mask_bottom_right;
    for (int i = 0; i < TENSORS; ++i) d[i] = desc_of(a, i);
    if (is_forward)
        MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_training, d[Q], d[K], d[V],
                d[DST], NULL, NULL, mask, norm_window_none, 0, 0, 0.5f, 0, flags, NULL));
    else
        MUST(norm_sdpa_backward_primitive_desc_create(&pd, engine, d[DIFF_Q], d[DIFF_K], d[DIFF_V], d[DIFF_DST],
                d[Q], d[K], d[V], d[DST], NULL, NULL, mask, norm_window_none, 0, 0, 0.5f, 0, flags, NULL, NULL));
    for (int i = 0; i < TENSORS; ++i) MUST(norm_memory_desc_destroy(d[i]));
    return pd;
}

/* Runs with buffers in slots or, if `are_roomy`, with space for all rows. Writes the outputs, all
 * rows of them, to `results` and `logarithms`. */
static void run(const attention_t *a, int is_forward, int are_roomy, unsigned char *const *results, float *logarithms) {
    norm_primitive_desc_t pd = create(a, is_forward);
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[TENSORS + 3];
    unsigned char *data[TENSORS + 3];
    size_t bytes[TENSORS + 3];
    int32_t lengths[] = {a->queries, a->keys};
    int count = 0, first = is_forward ? DST : DIFF_Q;
    const int last = is_forward ? DST : DIFF_V;
    slots_used = 0;
    for (int i = 0; i <= last + 3; ++i) {
        const int id = i <= last       ? tensors[i].id
                : i == last + 1 ? NORM_ARG_WORKSPACE
                : i == last + 2 ? NORM_ARG_QUERY_LENGTHS
                                : NORM_ARG_KEY_LENGTHS;
        const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, id);
        const size_t all = norm_memory_desc_get_size(desc);
        bytes[i] = i < first ? row_bytes(a, i) * (size_t)length(a, i) : all;
        data[i] = are_roomy ? malloc(all) : slot_place(bytes[i]);
        memset(data[i], 0xA5, are_roomy ? all : bytes[i]);
        if (i < first) memcpy(data[i], a->data[i], bytes[i]);
        if (i == last + 1 && !is_forward) memcpy(data[i], a->logarithms, bytes[i]);
        if (i > last + 1) memcpy(data[i], &lengths[i - last - 2], sizeof(int32_t));
        args[count].arg = id;
        MUST(norm_memory_create(&args[count++].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = first; i <= last; ++i) memcpy(results[i], data[i], bytes[i]);
    if (is_forward) memcpy(logarithms, data[last + 1], bytes[last + 1]);
    for (int i = 0; i < count; ++i) {
        MUST(norm_memory_destroy(args[i].memory));
        if (are_roomy) free(data[i]);
    }
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
}

/* One problem on all levels and at both ends of the slots. Returns how often it ran. */
static long check(attention_t *a, const norm_cpu_isa_t *levels, int count) {
    unsigned char *found[TENSORS];
    const size_t logarithms = sizeof(float) * HEADS * (size_t)(a->queries + MORE_QUERIES);
    float *found_logarithms = malloc(logarithms);
    uint64_t state = 7;
    long cases = 0;
    a->logarithms = malloc(logarithms);
    for (int i = 0; i < TENSORS; ++i) {
        const size_t bytes = row_bytes(a, i) * (size_t)rows(a, i), element = a->type == norm_f32 ? 4 : 2;
        found[i] = malloc(bytes);
        a->data[i] = malloc(bytes);
        for (size_t j = 0; j < bytes / element; ++j)
            element_set(a->type, a->data[i], j, random_between(&state, -2, 2));
    }
    for (int is_forward = 1; is_forward >= 0; --is_forward) {
        const char *name = is_forward ? "forward" : "backward";
        MUST(norm_set_max_cpu_isa(norm_cpu_isa_portable));
        run(a, is_forward, 1, a->data, a->logarithms);
        for (int i = 0; i < 2 * count; ++i, ++cases) {
            MUST(norm_set_max_cpu_isa(levels[i / 2]));
            place_at_end = i % 2;
            snprintf(expect_case, sizeof expect_case, "%s type %d, %d queries, %d keys, sizes %d %d, %s", name,
                    (int)a->type, a->queries, a->keys, a->sizes[0], a->sizes[1],
                    norm_cpu_isa2str(levels[i / 2]));
            run(a, is_forward, 0, found, found_logarithms);
            for (int t = is_forward ? DST : DIFF_Q; t <= (is_forward ? DST : DIFF_V); ++t)
                EXPECT(memcmp(found[t], a->data[t], row_bytes(a, t) * (size_t)rows(a, t)) == 0);
            if (is_forward) EXPECT(memcmp(found_logarithms, a->logarithms, logarithms) == 0);
        }
    }
    for (int i = 0; i < TENSORS; ++i) free(found[i]), free(a->data[i]);
    free(found_logarithms);
    free(a->logarithms);
    return cases;
}

int main(void) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    static const int queries[] = {1, 5, 30}, keys[] = {1, 15, 17, 255, 257};
    static const int sizes[][2] = {{1, 3}, {8, 16}, {33, 31}, {48, 48}};
    norm_cpu_isa_t levels[LEVELS_MAX];
    long cases = 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    const int count = levels_here(levels);
    slots_make();
    for (int type = 0; type < 3; ++type)
        for (int q = 0; q < 3; ++q)
            for (int k = 0; k < 5; ++k)
                for (int s = 0; s < 4; ++s) {
                    attention_t a = {.type = types[type],
                            .queries = queries[q],
                            .keys = keys[k],
                            .sizes = {sizes[s][0], sizes[s][1]}};
                    cases += check(&a, levels, count);
                }
    EXPECT(cases == 3L * 3 * 5 * 4 * 2 * 2 * count);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("guard_pages_sdpa");
}
