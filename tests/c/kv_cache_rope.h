/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Writes for kv_cache.c: by rope, and with conversions.
 */
#ifndef KV_CACHE_ROPE_H
#define KV_CACHE_ROPE_H

enum { ROPE_ROWS = 5, ROPE_TOKENS = 2 * ROPE_ROWS };

static norm_primitive_t rope_of(const_norm_memory_desc_t src, const_norm_memory_desc_t dst,
        const_norm_memory_desc_t positions, unsigned flags) {
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_rope_half_split, norm_rope_from_frequencies, src, dst, positions, -1, NULL, NULL,
            KEY, 1, 0, NULL, 1e-6f, norm_rms_norm | flags, NULL));
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_desc_destroy(pd));
    return primitive;
}

/* The keys of a layer, in all pages. */
static const unsigned char *keys_of(norm_kv_cache_t cache, int layer, size_t *bytes) {
    norm_exec_arg_t args[4];
    const_norm_memory_desc_t desc = NULL;
    void *data = NULL;
    int nargs = 4;
    MUST(norm_kv_cache_get_arguments(cache, layer, 0, NULL, &nargs, args));
    MUST(norm_memory_get_memory_desc(args[0].memory, &desc));
    MUST(norm_memory_get_data_handle(args[0].memory, &data));
    *bytes = norm_memory_desc_get_size(desc);
    return data;
}

/* Rope that writes to slots gives the same pages as rope to a tensor that is then written. */
static void rope_writes_slots(void) {
    norm_kv_cache_t by_rope = make_cache(norm_kv_paged, norm_bf16, 16);
    norm_kv_cache_t by_write = make_cache(norm_kv_paged, norm_bf16, 16);
    /* Tokens x heads as sequences x rows of the step, and the same with heads before rows. */
    const norm_dim_t dims[] = {ROPE_TOKENS, GROUPS, KEY}, two[] = {ROPE_TOKENS, 1}, row[] = {KEY / 2};
    tensor_t src = tensor_make(norm_f32, 3, dims, NULL, engine);
    tensor_t at = tensor_make(norm_s32, 2, two, NULL, engine);
    tensor_t frequencies = tensor_make(norm_f64, 1, row, NULL, engine);
    tensor_t rotated = tokens_of(norm_bf16, 2, GROUPS, ROPE_ROWS, KEY);
    norm_memory_desc_t flat = NULL, pages = NULL;
    norm_memory_t dst = NULL;
    MUST(norm_rope_frequencies(norm_rope_scaling_none, KEY, 1e4, 0, NULL,
            (double *)(void *)frequencies.data, NULL));
    MUST(norm_memory_desc_create_with_tag(&flat, 3, dims, norm_bf16, norm_abc));
    MUST(norm_memory_create(&dst, flat, engine, rotated.data));
    MUST(norm_kv_cache_get_descs(by_rope, 2, NULL, NULL, NULL, &pages));
    norm_primitive_t to_slots = rope_of(src.desc, pages, at.desc, norm_write_slots);
    norm_primitive_t to_rows = rope_of(src.desc, flat, at.desc, 0);
    norm_dim_t first[2], second[2];
    uint64_t state = 5;
    for (int b = 0; b < 2; ++b) {
        MUST(norm_kv_cache_new_sequence(by_rope, &first[b]));
        MUST(norm_kv_cache_new_sequence(by_write, &second[b]));
    }
    for (int step = 0; step < 20; ++step) {
        const norm_dim_t tokens[] = {step % (ROPE_ROWS + 1), (step * 7 + 2) % (ROPE_ROWS + 1)};
        norm_dim_t starts[2];
        for (int b = 0; b < 2; ++b) MUST(norm_kv_cache_get_length(by_rope, first[b], &starts[b]));
        MUST(norm_kv_cache_extend(by_rope, 2, first, tokens, ROPE_ROWS));
        MUST(norm_kv_cache_extend(by_write, 2, second, tokens, ROPE_ROWS));
        for (int i = 0; i < ROPE_TOKENS; ++i)
            ((int32_t *)(void *)at.data)[i] = (int32_t)starts[i / ROPE_ROWS] + i % ROPE_ROWS;
        for (int layer = 0; layer < LAYERS; ++layer) {
            tensor_fill_random(&src, &state, -2, 2);
            norm_exec_arg_t args[5]
                    = {{NORM_ARG_SRC, src.memory}, {NORM_ARG_ROPE_FREQUENCIES, frequencies.memory}};
            int nargs = 3;
            MUST(norm_kv_cache_get_rope_arguments(by_rope, layer, &nargs, args + 2));
            MUST(norm_primitive_execute(to_slots, stream, 5, args));
            const norm_exec_arg_t plain[] = {args[0], args[1], {NORM_ARG_DST, dst},
                    {NORM_ARG_POSITIONS, at.memory}};
            MUST(norm_primitive_execute(to_rows, stream, 4, plain));
            MUST(norm_kv_cache_write(by_write, stream, layer, rotated.memory, NULL));
            size_t one = 0, other = 0;
            const unsigned char *rope = keys_of(by_rope, layer, &one);
            const unsigned char *write = keys_of(by_write, layer, &other);
            EXPECT(one == other && memcmp(rope, write, one) == 0);
        }
    }
    norm_dim_t length = 0;
    MUST(norm_kv_cache_get_length(by_rope, first[1], &length));
    EXPECT(length > 40);
    /* Without a step, rope writes nothing. */
    size_t bytes = 0;
    const unsigned char *keys = keys_of(by_rope, 0, &bytes);
    unsigned char *before = malloc(bytes);
    memcpy(before, keys, bytes);
    MUST(norm_kv_cache_truncate(by_rope, first[0], 0));
    norm_exec_arg_t args[5]
            = {{NORM_ARG_SRC, src.memory}, {NORM_ARG_ROPE_FREQUENCIES, frequencies.memory}};
    int nargs = 3;
    MUST(norm_kv_cache_get_rope_arguments(by_rope, 0, &nargs, args + 2));
    MUST(norm_primitive_execute(to_slots, stream, 5, args));
    EXPECT(memcmp(before, keys, bytes) == 0);
    free(before);
    MUST(norm_primitive_destroy(to_slots));
    MUST(norm_primitive_destroy(to_rows));
    MUST(norm_memory_destroy(dst));
    MUST(norm_memory_desc_destroy(flat));
    MUST(norm_memory_desc_destroy(pages));
    tensor_free(&src), tensor_free(&at), tensor_free(&frequencies), tensor_free(&rotated);
    MUST(norm_kv_cache_destroy(by_rope));
    MUST(norm_kv_cache_destroy(by_write));
}

/* Sequences whose rows follow one another, and sequences with equal numbers of rows: the same pages
 * on any number of threads. */
static void without_gaps(void) {
    enum { MOST_ROWS = 3000, ALL_ROWS = 2 * MOST_ROWS };
    const norm_dim_t tokens[] = {2500, MOST_ROWS};
    norm_kv_cache_t caches[2] = {NULL, NULL};
    tensor_t rows[] = {tokens_of(norm_f32, 2, GROUPS, MOST_ROWS, KEY),
            tokens_of(norm_f32, 1, GROUPS, ALL_ROWS, KEY)};
    uint64_t state = 3;
    tensor_fill_random(&rows[0], &state, -2, 2);
    const size_t row = rows[0].bytes / ALL_ROWS;
    memcpy(rows[1].data, rows[0].data, 2500 * row);
    memcpy(rows[1].data + 2500 * row, rows[0].data + MOST_ROWS * row, MOST_ROWS * row);
    const int before = norm_get_num_threads();
    for (int i = 0; i < 2; ++i) {
        norm_dim_t sequences[3];
        MUST(norm_kv_cache_create(&caches[i], engine, norm_kv_paged, norm_bf16, 1, GROUPS, KEY, 1,
                3, MOST_ROWS, 3 * MOST_ROWS, 16, 0, 0, 0));
        for (int b = 0; b < 2; ++b)
            MUST(norm_kv_cache_new_sequence(caches[i], &sequences[b]));
        MUST(norm_set_num_threads(i == 0 ? 3 : 1));
        MUST(norm_kv_cache_extend(caches[i], 2, sequences, tokens, i == 0 ? MOST_ROWS : 0));
        MUST(norm_kv_cache_write(caches[i], stream, 0, rows[i].memory, NULL));
    }
    MUST(norm_set_num_threads(before));
    size_t bytes[2] = {0, 0};
    const unsigned char *one = keys_of(caches[0], 0, &bytes[0]);
    const unsigned char *other = keys_of(caches[1], 0, &bytes[1]);
    EXPECT(bytes[0] == bytes[1] && memcmp(one, other, bytes[0]) == 0);
    size_t written = 0;
    for (size_t i = 0; i < bytes[0]; ++i) written += one[i] != 0;
    EXPECT(written > 5000 * GROUPS * KEY * 2);
    for (int i = 0; i < 2; ++i) {
        MUST(norm_kv_cache_destroy(caches[i]));
        tensor_free(&rows[i]);
    }
}

/* Values of other types and strides are rounded like those of a reorder. */
static void conversions(void) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    enum { TOKENS = 11 };
    uint64_t state = 9;
    for (int pair = 0; pair < 18; ++pair) {
        const norm_data_type_t from = types[pair % 3], to = types[pair / 3 % 3];
        const norm_dim_t dims[] = {1, GROUPS, TOKENS, VALUE}, step = 1 + pair / 9;
        const norm_dim_t strides[]
                = {1000, VALUE * step, GROUPS * VALUE * step + 3, step};
        tensor_t src = tensor_make(from, 4, dims, strides, engine);
        tensor_t expected = tensor_make(to, 4, dims, NULL, engine);
        tensor_fill_random(&src, &state, -9, 9);
        norm_primitive_desc_t pd = NULL;
        norm_primitive_t reorder = NULL;
        MUST(norm_reorder_primitive_desc_create(&pd, src.desc, engine, expected.desc, engine, NULL));
        MUST(norm_primitive_create(&reorder, pd));
        const norm_exec_arg_t moved[]
                = {{NORM_ARG_FROM, src.memory}, {NORM_ARG_TO, expected.memory}};
        MUST(norm_primitive_execute(reorder, stream, 2, moved));
        norm_kv_cache_t cache = make_cache(norm_kv_paged, to, 4);
        norm_dim_t sequence = 0;
        const norm_dim_t tokens[] = {TOKENS};
        MUST(norm_kv_cache_new_sequence(cache, &sequence));
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        MUST(norm_kv_cache_write(cache, stream, 1, NULL, src.memory));
        /* Ends the step, whose keys are missing. */
        MUST(norm_kv_cache_truncate(cache, sequence, TOKENS));
        norm_exec_arg_t args[4];
        int nargs = 4;
        void *values = NULL, *table = NULL;
        MUST(norm_kv_cache_get_arguments(cache, 1, 1, &sequence, &nargs, args));
        MUST(norm_memory_get_data_handle(args[1].memory, &values));
        MUST(norm_memory_get_data_handle(args[2].memory, &table));
        const size_t row = VALUE * element_bytes(to);
        int same = 1;
        for (int token = 0; token < TOKENS; ++token)
            for (int head = 0; head < GROUPS; ++head) {
                const int page = ((int32_t *)table)[token / 4];
                const size_t at = (size_t)((page * GROUPS + head) * 4 + token % 4);
                same &= memcmp((char *)values + at * row, row_of(&expected, 0, head, token), row) == 0;
            }
        EXPECT(same);
        MUST(norm_kv_cache_destroy(cache));
        MUST(norm_primitive_destroy(reorder));
        MUST(norm_primitive_desc_destroy(pd));
        tensor_free(&src), tensor_free(&expected);
    }
}

#endif
