/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls for kv_cache.c that must be refused.
 */
#ifndef KV_CACHE_REFUSALS_H
#define KV_CACHE_REFUSALS_H

/* The parameters of norm_kv_cache_create, beginning with `layers`. */
static norm_status_t create(norm_kv_cache_kind_t kind, norm_data_type_t type, const norm_dim_t *p) {
    norm_kv_cache_t cache = UNTOUCHED;
    const norm_status_t status = norm_kv_cache_create(&cache, engine, kind, type, p[0], p[1], p[2],
            p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]);
    EXPECT((cache == UNTOUCHED) == (status != norm_success));
    if (status == norm_success) MUST(norm_kv_cache_destroy(cache));
    return status;
}

static void refused_creation(norm_status_t want, const char *parameter, norm_kv_cache_kind_t kind,
        norm_data_type_t type, const norm_dim_t *p) {
    refused_forget("norm_kv_cache_create");
    refused_sentence(__LINE__, create(kind, type, p) == want, "norm_kv_cache_create", parameter);
}

static void refused_creations(void) {
    static const char *const names[] = {"layers", "kv_heads", "key_size", "value_size", "sequences",
            "tokens", "step_tokens", "page_size", "pages", "window", "first_tokens"};
    const norm_dim_t good[] = {2, 2, 8, 8, 3, 64, 16, 4, 20, 10, 5};
    const norm_dim_t huge = (norm_dim_t)1 << 40;
    norm_dim_t p[11];
    EXPECT(create(norm_kv_ring, norm_f32, good) == norm_success);
    for (int i = 0; i < 11; ++i) {
        memcpy(p, good, sizeof p);
        p[i] = -1;
        refused_creation(norm_invalid_arguments, names[i], norm_kv_ring, norm_f32, p);
        p[i] = 0;
        if (i != 8 && i != 10)
            refused_creation(norm_invalid_arguments, names[i], norm_kv_ring, norm_f32, p);
    }
    for (int i = 9; i < 11; ++i) {
        memcpy(p, good, sizeof p);
        p[19 - i] = 0;
        refused_creation(norm_invalid_arguments, names[i], norm_kv_paged, norm_f32, p);
        p[7] = 0;
        refused_creation(norm_invalid_arguments, names[i], norm_kv_contiguous, norm_f32, p);
    }
    memcpy(p, good, sizeof p);
    p[9] = p[10] = 0;
    refused_creation(norm_invalid_arguments, "page_size", norm_kv_contiguous, norm_f32, p);
    p[7] = 64;
    refused_creation(norm_invalid_arguments, "pages", norm_kv_contiguous, norm_f32, p);
    p[8] = 0;
    EXPECT(create(norm_kv_contiguous, norm_f32, p) == norm_success);
    EXPECT(create(norm_kv_contiguous, norm_s8, p) == norm_success);
    EXPECT(create(norm_kv_contiguous, norm_f8_e4m3, p) == norm_success);
    static const norm_data_type_t others[] = {norm_u8, norm_s32, norm_s64, norm_f64, norm_f8_e5m2,
            norm_e8m0, norm_data_type_undef};
    for (int i = 0; i < 7; ++i)
        refused_creation(norm_invalid_arguments, "data_type", norm_kv_contiguous, others[i], p);
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        refused_creation(norm_invalid_arguments, "kind", (norm_kv_cache_kind_t)no_enumerator[i],
                norm_f32, p);
    p[2] = 65537;
    refused_creation(norm_unimplemented, "key_size", norm_kv_contiguous, norm_f32, p);
    memcpy(p, good, sizeof p);
    p[5] = huge;
    refused_creation(norm_invalid_arguments, "tokens", norm_kv_ring, norm_f32, p);
    p[5] = 64, p[4] = huge;
    refused_creation(norm_invalid_arguments, "sequences", norm_kv_ring, norm_f32, p);
    p[4] = 3, p[8] = huge;
    refused_creation(norm_invalid_arguments, "pages", norm_kv_ring, norm_f32, p);
    p[8] = 20, p[1] = huge, p[0] = huge;
    refused_creation(norm_invalid_arguments, "address space", norm_kv_ring, norm_f32, p);
    p[1] = 1, p[0] = (norm_dim_t)1 << 45;
    refused_creation(norm_out_of_memory, "keys and values", norm_kv_ring, norm_f32, p);
    norm_kv_cache_t cache = UNTOUCHED;
    INVALID("cache", norm_kv_cache_create, (NULL, engine, norm_kv_ring, norm_f32, 2, 2, 8, 8, 3, 64,
            16, 4, 20, 10, 5));
    INVALID("engine", norm_kv_cache_create, (&cache, NULL, norm_kv_ring, norm_f32, 2, 2, 8, 8, 3,
            64, 16, 4, 20, 10, 5));
    EXPECT(cache == UNTOUCHED);
}

static void refused_sequences(norm_kv_cache_t cache, norm_dim_t sequence) {
    norm_dim_t number = -5;
    const norm_dim_t strangers[] = {-1, -2, 3, 1000, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 6; ++i) {
        const norm_dim_t tokens[] = {i == 0 ? 1 : 0};
        INVALID("sequence", norm_kv_cache_drop, (cache, strangers[i]));
        INVALID("sequence", norm_kv_cache_get_length, (cache, strangers[i], &number));
        INVALID("sequence", norm_kv_cache_truncate, (cache, strangers[i], 0));
        INVALID("sequence", norm_kv_cache_fork, (cache, strangers[i], &number));
        INVALID(i == 0 ? "tokens" : "sequence", norm_kv_cache_extend,
                (cache, 1, strangers + i, tokens, 0));
        EXPECT(number == -5);
    }
    INVALID("sequence", norm_kv_cache_new_sequence, (cache, NULL));
    INVALID("length", norm_kv_cache_get_length, (cache, sequence, NULL));
    INVALID("copy", norm_kv_cache_fork, (cache, sequence, NULL));
    INVALID("length", norm_kv_cache_truncate, (cache, sequence, -1));
    INVALID("length", norm_kv_cache_truncate, (cache, sequence, 1));
    INVALID("stats", norm_kv_cache_get_stats, (cache, NULL));
    MUST(norm_kv_cache_fork(cache, sequence, &number));
    MUST(norm_kv_cache_drop(cache, number));
    INVALID("sequence", norm_kv_cache_drop, (cache, number));
    norm_dim_t again = number;
    MUST(norm_kv_cache_new_sequence(cache, &again));
    EXPECT(again != number);
    INVALID("sequence", norm_kv_cache_drop, (cache, number));
    MUST(norm_kv_cache_drop(cache, again));
}

static void refused_extensions(norm_kv_cache_t cache, norm_dim_t sequence) {
    norm_dim_t other = 0;
    MUST(norm_kv_cache_new_sequence(cache, &other));
    const norm_dim_t twice[] = {sequence, sequence}, both[] = {sequence, other, -1, -1};
    const norm_dim_t one[] = {1, 1, 0, 0}, many[] = {10, 7}, more[] = {65}, less[] = {-1};
    INVALID("sequences", norm_kv_cache_extend, (cache, 2, twice, one, 0));
    INVALID("tokens", norm_kv_cache_extend, (cache, 1, &sequence, more, 0));
    INVALID("tokens", norm_kv_cache_extend, (cache, 1, &sequence, less, 0));
    INVALID("step_tokens", norm_kv_cache_extend, (cache, 2, both, many, 0));
    INVALID("step_tokens", norm_kv_cache_extend, (cache, 2, both, one, 9));
    INVALID("step_tokens", norm_kv_cache_extend, (cache, 2, both, one, INT64_MAX));
    INVALID("rows", norm_kv_cache_extend, (cache, 2, both, many, 8));
    INVALID("rows", norm_kv_cache_extend, (cache, 2, both, one, -1));
    INVALID("count", norm_kv_cache_extend, (cache, -1, both, one, 0));
    INVALID("count", norm_kv_cache_extend, (cache, 4, both, one, 0));
    INVALID("sequences", norm_kv_cache_extend, (cache, 1, NULL, one, 0));
    INVALID("tokens", norm_kv_cache_extend, (cache, 1, both, NULL, 0));
    MUST(norm_kv_cache_drop(cache, other));
    EXPECT(stats_of(cache).used_pages == 0);
}

static void refused_writes(norm_kv_cache_t cache, norm_dim_t sequence) {
    const norm_dim_t tokens[] = {3};
    tensor_t good = tokens_of(norm_f32, 1, 2, 3, 8), longer = tokens_of(norm_bf16, 1, 2, 5, 8);
    tensor_t wrong[] = {tokens_of(norm_f32, 2, 2, 3, 8), tokens_of(norm_f32, 1, 1, 3, 8),
            tokens_of(norm_f32, 1, 2, 2, 8), tokens_of(norm_f32, 1, 2, 3, 7),
            tokens_of(norm_s32, 1, 2, 3, 8),
            tensor_make(norm_f32, 3, (norm_dim_t[]) {2, 3, 8}, NULL, engine)};
    norm_memory_t empty = NULL;
    MUST(norm_memory_create(&empty, good.desc, engine, NULL));
    INVALID("step", norm_kv_cache_write, (cache, stream, 0, good.memory, good.memory));
    MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
    for (int i = 0; i < 6; ++i) {
        /* A type that caches do not support is not implemented. */
        const norm_status_t want = i == 4 ? norm_unimplemented : norm_invalid_arguments;
        REFUSED(want, "keys", norm_kv_cache_write, (cache, stream, 0, wrong[i].memory, good.memory));
        REFUSED(want, "values", norm_kv_cache_write, (cache, stream, 0, good.memory, wrong[i].memory));
        tensor_free(&wrong[i]);
    }
    INVALID("layer", norm_kv_cache_write, (cache, stream, 2, good.memory, good.memory));
    INVALID("layer", norm_kv_cache_write, (cache, stream, -1, good.memory, good.memory));
    INVALID("stream", norm_kv_cache_write, (cache, NULL, 0, good.memory, good.memory));
    INVALID("keys", norm_kv_cache_write, (cache, stream, 0, empty, good.memory));
    MUST(norm_kv_cache_write(cache, stream, 1, good.memory, longer.memory));
    INVALID("keys and values", norm_kv_cache_write, (cache, stream, 1, NULL, NULL));
    norm_dim_t copy = 0;
    MUST(norm_kv_cache_fork(cache, sequence, &copy));
    INVALID("step", norm_kv_cache_write, (cache, stream, 0, good.memory, good.memory));
    MUST(norm_kv_cache_drop(cache, copy));
    MUST(norm_memory_destroy(empty));
    tensor_free(&good), tensor_free(&longer);
}

static void refused_arguments(norm_kv_cache_t cache, norm_dim_t sequence) {
    norm_exec_arg_t args[4] = {{0, NULL}};
    int nargs = 3;
    norm_memory_desc_t desc = UNTOUCHED;
    INVALID("nargs", norm_kv_cache_get_arguments, (cache, 0, 1, &sequence, &nargs, args));
    INVALID("nargs", norm_kv_cache_get_arguments, (cache, 0, 1, &sequence, NULL, args));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 2, 1, &sequence, &nargs, args));
    INVALID("count", norm_kv_cache_get_arguments, (cache, 0, -1, &sequence, &nargs, args));
    INVALID("sequences", norm_kv_cache_get_arguments, (cache, 0, 1, NULL, &nargs, args));
    MUST(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &nargs, NULL));
    EXPECT(nargs == 4 && args[0].memory == NULL);
    const norm_dim_t many[] = {sequence, -1, sequence, sequence}, stranger[] = {77};
    INVALID("count", norm_kv_cache_get_arguments, (cache, 0, 4, many, &nargs, args));
    INVALID("sequence", norm_kv_cache_get_arguments, (cache, 0, 1, stranger, &nargs, args));
    MUST(norm_kv_cache_get_arguments(cache, 0, 3, many, &nargs, args));
    void *lengths = NULL;
    MUST(norm_memory_get_data_handle(args[3].memory, &lengths));
    EXPECT(memcmp(lengths, ((int32_t[]) {3, 0, 3}), 12) == 0);
    MUST(norm_kv_cache_get_arguments(cache, 0, 1, many, &nargs, args));
    EXPECT(memcmp(lengths, ((int32_t[]) {3, 0, 0}), 12) == 0);
    INVALID("memory", norm_memory_destroy, (args[0].memory));
    nargs = 2;
    INVALID("nargs", norm_kv_cache_get_rope_arguments, (cache, 0, &nargs, args));
    INVALID("nargs", norm_kv_cache_get_rope_arguments, (cache, 0, NULL, args));
    INVALID("layer", norm_kv_cache_get_rope_arguments, (cache, 2, &nargs, args));
    INVALID("count", norm_kv_cache_get_descs, (cache, 4, &desc, NULL, NULL, NULL));
    INVALID("count", norm_kv_cache_get_descs, (cache, -1, &desc, NULL, NULL, NULL));
    EXPECT(desc == UNTOUCHED);
}

/* The open step has tokens of `other`, but nothing was written: it cannot be read, while other
 * sequences can. */
static void unwritten(norm_kv_cache_t cache, norm_dim_t sequence, norm_dim_t other) {
    norm_exec_arg_t args[4], slots[3];
    int nargs = 4, found = 3;
    const norm_dim_t both[] = {sequence, other};
    void *lengths = NULL;
    MUST(norm_kv_cache_get_arguments(cache, 1, 1, &sequence, &nargs, args));
    MUST(norm_memory_get_data_handle(args[3].memory, &lengths));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 1, 2, both, &nargs, args));
    EXPECT(strstr(norm_get_last_error(), "layer 1 has no keys or values of the open step") != NULL);
    EXPECT(memcmp(lengths, ((int32_t[]) {3, 0, 0}), 12) == 0);
    MUST(norm_kv_cache_get_arguments(cache, 1, 2, both, &nargs, NULL));
    tensor_t rows = tokens_of(norm_bf16, 1, 2, 9, 8);
    INVALID("keys", norm_kv_cache_write, (cache, stream, 1, NULL, NULL));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 1, 1, &other, &nargs, args));
    MUST(norm_kv_cache_write(cache, stream, 1, rows.memory, NULL));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 1, 1, &other, &nargs, args));
    EXPECT(strstr(norm_get_last_error(), "layer 1 has no values of the open step") != NULL);
    MUST(norm_kv_cache_write(cache, stream, 1, NULL, rows.memory));
    MUST(norm_kv_cache_get_arguments(cache, 1, 2, both, &nargs, args));
    EXPECT(memcmp(lengths, ((int32_t[]) {3, 9, 0}), 12) == 0);
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 0, 1, &other, &nargs, args));
    MUST(norm_kv_cache_get_rope_arguments(cache, 0, &found, NULL));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 0, 1, &other, &nargs, args));
    MUST(norm_kv_cache_write(cache, stream, 0, NULL, rows.memory));
    INVALID("layer", norm_kv_cache_get_arguments, (cache, 0, 1, &other, &nargs, args));
    EXPECT(strstr(norm_get_last_error(), "layer 0 has no keys of the open step") != NULL);
    MUST(norm_kv_cache_get_rope_arguments(cache, 0, &found, slots));
    MUST(norm_kv_cache_get_arguments(cache, 0, 1, &other, &nargs, args));
    tensor_free(&rows);
}

/* A primitive without norm_sdpa_key_lengths would read the whole table. Entries without tokens are
 * -1, even if there was a longer sequence before. */
static void refused_without_lengths(norm_kv_cache_t cache, norm_dim_t sequence) {
    norm_memory_desc_t keys = NULL, values = NULL, table = NULL;
    norm_primitive_t primitive = NULL;
    norm_dim_t other = 0, tokens = 9;
    tensor_t row = tokens_of(norm_bf16, 1, 2, 1, 8);
    norm_exec_arg_t args[6] = {{NORM_ARG_QUERIES, row.memory}, {NORM_ARG_DST, row.memory}};
    int nargs = 4;
    MUST(norm_kv_cache_get_descs(cache, 1, &keys, &values, &table, NULL));
    norm_primitive_desc_t pd = attention_desc(row.desc, keys, values, row.desc, table, 0, 0);
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_kv_cache_new_sequence(cache, &other));
    MUST(norm_kv_cache_extend(cache, 1, &other, &tokens, 0));
    unwritten(cache, sequence, other);
    MUST(norm_kv_cache_get_arguments(cache, 0, 1, &other, &nargs, args + 2));
    MUST(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &nargs, args + 2));
    int32_t *pages = NULL;
    MUST(norm_memory_get_data_handle(args[4].memory, (void **)&pages));
    for (int column = 1; column < 16; ++column) EXPECT(pages[0] >= 0 && pages[column] == -1);
    INVALID("args", norm_primitive_execute, (primitive, stream, 6, args));
    EXPECT(strstr(norm_get_last_error(), "NORM_ARG_PAGE_TABLE: -1") != NULL);
    MUST(norm_kv_cache_drop(cache, other));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(keys));
    MUST(norm_memory_desc_destroy(values));
    MUST(norm_memory_desc_destroy(table));
    tensor_free(&row);
}

static void refusals(void) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequence = 0, number = 0;
    refused_creations();
    MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, norm_bf16, 2, 2, 8, 8, 3, 64, 16, 4, 0,
            0, 0));
    MUST(norm_kv_cache_new_sequence(cache, &sequence));
    refused_sequences(cache, sequence);
    refused_extensions(cache, sequence);
    refused_writes(cache, sequence);
    refused_arguments(cache, sequence);
    refused_without_lengths(cache, sequence);
    MUST(norm_kv_cache_destroy(cache));
    INVALID("cache", norm_kv_cache_new_sequence, (cache, &number));
    EXPECT(strstr(norm_get_last_error(), "destroyed") != NULL);
    INVALID("cache", norm_kv_cache_destroy, (cache));
    INVALID("cache", norm_kv_cache_drop, ((norm_kv_cache_t)(void *)engine, 0));
    EXPECT(strstr(norm_get_last_error(), "it is a norm_engine_t, not a norm_kv_cache_t") != NULL);
    INVALID("cache", norm_kv_cache_truncate, (NULL, 0, 0));
    EXPECT(norm_kv_cache_destroy(NULL) == norm_success);
}

#endif
