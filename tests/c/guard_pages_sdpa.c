/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attention reads nothing outside the sequence: beyond the lengths, before and after the offsets of
 * packed sequences, in other pages and the rest of the last one, and in page tables, scales and
 * masks there. Descriptors have more queries and keys than the buffers, which end at an unreadable
 * page or, in a second round, start right after one. Each level and type, forward and backward, has
 * the bits of larger buffers on the portable level.
 */
#define _DEFAULT_SOURCE
#include "element.h"
#include "levels.h"
#include "slots.h"

enum { HEADS = 2, MORE_QUERIES = 3, MORE_KEYS = 40, PAGE = 16, PAGES_MOST = 32 };

static norm_engine_t engine;
static norm_stream_t stream;

enum { Q, K, V, DST, DIFF_DST, DIFF_Q, DIFF_K, DIFF_V, TENSORS };

/* Keys and values have one head. */
static const struct {
    int id, heads, of_keys, of_values;
} tensors[TENSORS] = {{NORM_ARG_QUERIES, HEADS, 0, 0}, {NORM_ARG_KEYS, 1, 1, 0}, {NORM_ARG_VALUES, 1, 1, 1},
        {NORM_ARG_DST, HEADS, 0, 1}, {NORM_ARG_DIFF_DST, HEADS, 0, 1}, {NORM_ARG_DIFF_QUERIES, HEADS, 0, 0},
        {NORM_ARG_DIFF_KEYS, 1, 1, 0}, {NORM_ARG_DIFF_VALUES, 1, 1, 1}};

/* Where the sequence is: at the beginning, after other rows, or in all pages but the first. A mask
 * has a row for each query. */
typedef enum { PLAIN, PACKED, PAGED, MASKED, KINDS } kind_t;

typedef struct {
    norm_data_type_t type;
    kind_t kind;
    int are_codes;              /* keys and values are s8 with scales */
    int queries, keys, sizes[2]; /* the lengths; the sizes of keys and of values */
    unsigned char *data[TENSORS];
    float *logarithms, *scales, *mask;
} attention_t;

static norm_data_type_t type_of(const attention_t *a, int i) {
    return a->are_codes && (i == K || i == V) ? norm_s8 : a->type;
}

static size_t row_bytes(const attention_t *a, int i) {
    return element_bytes(type_of(a, i)) * (size_t)(tensors[i].heads * a->sizes[tensors[i].of_values]);
}

static int length(const attention_t *a, int i) { return tensors[i].of_keys ? a->keys : a->queries; }

/* The rows before those of the sequence. */
static int before(const attention_t *a, int i) {
    if (a->kind == PACKED) return tensors[i].of_keys ? 5 : 2;
    return a->kind == PAGED && tensors[i].of_keys ? PAGE : 0;
}

static int rows(const attention_t *a, int i) {
    const int all = before(a, i) + length(a, i) + (tensors[i].of_keys ? MORE_KEYS : MORE_QUERIES);
    return a->kind == PAGED && tensors[i].of_keys ? (all + PAGE - 1) / PAGE * PAGE : all;
}

/* Tokens before heads. The dimensions of keys are those of their transpose. */
static norm_memory_desc_t desc_of(const attention_t *a, int i) {
    const int is_paged = a->kind == PAGED && tensors[i].of_keys;
    const norm_dim_t heads = tensors[i].heads, size = a->sizes[tensors[i].of_values];
    const norm_dim_t count = is_paged ? PAGE : rows(a, i), sequences = is_paged ? rows(a, i) / PAGE : 1;
    const int turned = i == K || i == DIFF_K;
    const norm_dims_t dims = {sequences, heads, turned ? size : count, turned ? count : size};
    const norm_dims_t strides = {a->kind == PACKED ? 0 : count * heads * size, size,
            turned ? 1 : heads * size, turned ? heads * size : 1};
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, 4, dims, type_of(a, i), strides));
    return desc;
}

static norm_primitive_desc_t create(const attention_t *a, int is_forward) {
    norm_memory_desc_t d[TENSORS], mask_desc = NULL, table = NULL;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_attr_t attr = NULL;
    const unsigned flags = a->kind == PACKED ? norm_sdpa_query_offsets | norm_sdpa_key_offsets
                                             : norm_sdpa_query_lengths | norm_sdpa_key_lengths;
    const norm_attn_mask_type_t mask = norm_attn_mask_bottom_right;
    const norm_dims_t pages = {1, PAGES_MOST}, scores = {1, 1, rows(a, Q), rows(a, K)};
    for (int i = 0; i < TENSORS; ++i) d[i] = desc_of(a, i);
    MUST(norm_primitive_attr_create(&attr));
    if (a->kind == PAGED) MUST(norm_memory_desc_create_with_tag(&table, 2, pages, norm_s32, norm_ab));
    if (a->kind == MASKED) MUST(norm_memory_desc_create_with_tag(&mask_desc, 4, scores, norm_f32, norm_abcd));
    if (a->are_codes) {
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_KEYS, 11));
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_VALUES, 7));
    }
    if (is_forward)
        MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_training, d[Q], d[K], d[V],
                d[DST], mask_desc, table, mask, norm_window_none, 0, 0, 0.5f, 0, flags, attr));
    else
        MUST(norm_sdpa_backward_primitive_desc_create(&pd, engine, d[DIFF_Q], d[DIFF_K], d[DIFF_V], d[DIFF_DST],
                d[Q], d[K], d[V], d[DST], mask_desc, NULL, mask, norm_window_none, 0, 0, 0.5f, 0, flags, NULL, NULL));
    for (int i = 0; i < TENSORS; ++i) MUST(norm_memory_desc_destroy(d[i]));
    MUST(norm_memory_desc_destroy(mask_desc));
    MUST(norm_memory_desc_destroy(table));
    MUST(norm_primitive_attr_destroy(attr));
    return pd;
}

/* An argument that is read: its bytes, and how many come before them in the tensor. */
typedef struct {
    int id;
    const void *data;
    size_t bytes, before;
} input_t;

/* Writes the lengths or offsets, the page table, the scales and the mask; returns their number. */
static int more_inputs(const attention_t *a, int32_t numbers[4 + PAGES_MOST], input_t more[5]) {
    const int pages = (a->keys + PAGE - 1) / PAGE, is_packed = a->kind == PACKED;
    const size_t each = is_packed ? 2 : 1;
    int count = 0;
    for (int i = Q; i <= K; ++i) {
        int32_t *at = numbers + 2 * i;
        at[0] = is_packed ? before(a, i) : length(a, i);
        at[1] = before(a, i) + length(a, i);
        const int ids[] = {NORM_ARG_QUERY_LENGTHS, NORM_ARG_KEY_LENGTHS, NORM_ARG_QUERY_OFFSETS,
                NORM_ARG_KEY_OFFSETS};
        more[count++] = (input_t) {ids[2 * is_packed + i], at, each * sizeof *at, 0};
    }
    for (int i = 0; i < pages; ++i) numbers[4 + i] = i + 1;
    if (a->kind == PAGED)
        more[count++] = (input_t) {NORM_ARG_PAGE_TABLE, numbers + 4, sizeof *numbers * (size_t)pages, 0};
    const size_t scales = sizeof(float) * (size_t)a->keys, skipped = sizeof(float) * (size_t)before(a, K);
    if (a->are_codes) {
        more[count++] = (input_t) {NORM_ARG_ATTR_SCALES | NORM_ARG_KEYS, a->scales, scales, skipped};
        more[count++] = (input_t) {NORM_ARG_ATTR_SCALES | NORM_ARG_VALUES, a->scales + a->keys, scales, skipped};
    }
    if (a->kind == MASKED) {
        const size_t elements = (size_t)(a->queries - 1) * (size_t)rows(a, K) + (size_t)a->keys;
        more[count++] = (input_t) {NORM_ARG_ATTN_MASK, a->mask, sizeof(float) * elements, 0};
    }
    return count;
}

/* Runs with buffers in slots or, if `are_roomy`, with space for all rows. Writes the outputs, all
 * rows of them, to `results` and `logarithms`. */
static void run(const attention_t *a, int is_forward, int are_roomy, unsigned char *const *results, float *logarithms) {
    enum { MOST = TENSORS + 6 };
    norm_primitive_desc_t pd = create(a, is_forward);
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[MOST];
    unsigned char *data[MOST];
    size_t bytes[MOST];
    int32_t numbers[4 + PAGES_MOST];
    input_t more[5];
    const int first = is_forward ? DST : DIFF_Q, last = is_forward ? DST : DIFF_V, stats = last + 1;
    const int count = stats + 1 + more_inputs(a, numbers, more);
    slots_used = 0;
    for (int i = 0; i < count; ++i) {
        input_t in = {NORM_ARG_WORKSPACE, is_forward ? NULL : a->logarithms, 0, 0};
        if (i <= last) {
            const size_t row = row_bytes(a, i), skipped = row * (size_t)before(a, i);
            in = (input_t) {tensors[i].id, i < first ? a->data[i] + skipped : NULL,
                    row * (size_t)length(a, i), skipped};
        } else if (i > stats)
            in = more[i - stats - 1];
        const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, in.id);
        const size_t all = norm_memory_desc_get_size(desc);
        /* Outputs have all rows. */
        if (in.data == NULL || i == stats) in.bytes = all, in.before = 0;
        bytes[i] = in.bytes;
        data[i] = are_roomy ? malloc(all) : slot_place(in.bytes);
        memset(data[i], 0xA5, are_roomy ? all : in.bytes);
        if (!are_roomy) data[i] -= in.before;
        if (in.data != NULL) memcpy(data[i] + in.before, in.data, in.bytes);
        args[i].arg = in.id;
        MUST(norm_memory_create(&args[i].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = first; i <= last; ++i) memcpy(results[i], data[i], bytes[i]);
    if (is_forward) memcpy(logarithms, data[stats], bytes[stats]);
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
    const size_t logarithms = sizeof(float) * HEADS * (size_t)rows(a, Q), scores = (size_t)(rows(a, Q) * rows(a, K));
    float *found_logarithms = malloc(logarithms);
    uint64_t state = 7;
    long cases = 0;
    a->logarithms = malloc(logarithms);
    a->scales = malloc(sizeof(float) * 2 * (size_t)a->keys);
    a->mask = malloc(sizeof(float) * scores);
    for (int i = 0; i < 2 * a->keys; ++i) a->scales[i] = (float)random_between(&state, 0.01, 0.02);
    /* NaN beyond the length, where rows of the mask go on. */
    for (size_t i = 0; i < scores; ++i)
        a->mask[i] = (int)(i % (size_t)rows(a, K)) < a->keys ? (float)random_between(&state, -1, 1) : NAN;
    for (int i = 0; i < TENSORS; ++i) {
        const norm_data_type_t type = type_of(a, i);
        const size_t bytes = row_bytes(a, i) * (size_t)rows(a, i);
        const double most = type == norm_s8 ? 127 : 2;
        found[i] = malloc(bytes);
        a->data[i] = malloc(bytes);
        for (size_t j = 0; j < bytes / element_bytes(type); ++j)
            element_set(type, a->data[i], j, random_between(&state, -most, most));
    }
    /* Pages and s8 have no gradients. */
    for (int is_forward = 1; is_forward >= (a->kind == PAGED || a->are_codes); --is_forward) {
        const char *name = is_forward ? "forward" : "backward";
        MUST(norm_set_max_cpu_isa(norm_cpu_isa_portable));
        run(a, is_forward, 1, a->data, a->logarithms);
        for (int i = 0; i < 2 * count; ++i, ++cases) {
            MUST(norm_set_max_cpu_isa(levels[i / 2]));
            place_at_end = i % 2;
            snprintf(expect_case, sizeof expect_case, "%s kind %d codes %d type %d, %d queries, %d keys, sizes %d %d, %s",
                    name, (int)a->kind, a->are_codes, (int)a->type, a->queries, a->keys, a->sizes[0], a->sizes[1],
                    norm_cpu_isa2str(levels[i / 2]));
            run(a, is_forward, 0, found, found_logarithms);
            for (int t = is_forward ? DST : DIFF_Q; t <= (is_forward ? DST : DIFF_V); ++t)
                EXPECT(memcmp(found[t], a->data[t], row_bytes(a, t) * (size_t)rows(a, t)) == 0);
            if (is_forward) EXPECT(memcmp(found_logarithms, a->logarithms, logarithms) == 0);
        }
    }
    for (int i = 0; i < TENSORS; ++i) free(found[i]), free(a->data[i]);
    free(found_logarithms);
    free(a->logarithms), free(a->scales), free(a->mask);
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
    cases = 0;
    for (int n = 0; n < 3 * 2 * 2 * 2; ++n)
        for (int kind = PLAIN; kind < KINDS; ++kind)
            for (int are_codes = 0; are_codes < 2; ++are_codes) {
                const int *size = sizes[2 + n / 2 % 2];
                attention_t a = {.type = types[n / 8], .kind = (kind_t)kind, .are_codes = are_codes,
                        .queries = queries[2 * (n % 2)], .keys = keys[n / 4 % 2 ? 4 : 1],
                        .sizes = {size[0], size[1]}};
                /* Plain ones are above. Packed keys have no scales. */
                if (are_codes ? kind == PACKED : kind == PLAIN) continue;
                cases += check(&a, levels, count);
            }
    /* Four have forward only, and two have both directions. */
    EXPECT(cases == 3L * 2 * 2 * 2 * (4 + 2 * 2) * 2 * count);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("guard_pages_sdpa");
}
