/* Decodes tokens one at a time with a cache, then two continuations of the same prefix. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

static norm_engine_t engine;
static norm_stream_t stream;
static norm_kv_cache_t cache;
static norm_primitive_t attention;

/* One token of a sequence: its key and value go to the cache; its query sees all tokens so far. */
static void decode(norm_dim_t sequence, float *query, float *key, float *value) {
    const norm_dim_t one = 1;
    const norm_dims_t dims = {1, 1, 1, 2}; /* sequences x heads x tokens x elements */
    float result[2];
    norm_memory_desc_t row;
    norm_memory_t q, k, v, dst;
    check(norm_memory_desc_create_with_tag(&row, 4, dims, norm_f32, norm_abcd));
    check(norm_memory_create(&q, row, engine, query));
    check(norm_memory_create(&k, row, engine, key));
    check(norm_memory_create(&v, row, engine, value));
    check(norm_memory_create(&dst, row, engine, result));

    check(norm_kv_cache_extend(cache, 1, &sequence, &one, 0));
    /* For each layer; this model has one. */
    check(norm_kv_cache_write(cache, stream, 0, k, v));
    norm_exec_arg_t args[6] = {{NORM_ARG_QUERIES, q}, {NORM_ARG_DST, dst}};
    int count = 4;
    check(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &count, args + 2));
    check(norm_primitive_execute(attention, stream, 2 + count, args));
    printf("sequence %d: %7.4f %7.4f\n", (int)sequence, result[0], result[1]);

    norm_memory_destroy(dst);
    norm_memory_destroy(v);
    norm_memory_destroy(k);
    norm_memory_destroy(q);
    norm_memory_desc_destroy(row);
}

int main(void) {
    float queries[3][2] = {{1, 0}, {1, 0}, {0, 1}}, keys[3][2] = {{1, 0}, {0, 1}, {1, 1}};
    float values[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    /* One layer with one head of 2 elements; 2 sequences of up to 64 tokens; steps of 1 token;
     * pages of 16 tokens, as many as all sequences need. */
    check(norm_kv_cache_create(&cache, engine, norm_kv_paged, norm_f32, 1, 1, 2, 2, 2, 64, 1, 16, 0,
            0, 0));

    /* One primitive for every step. */
    const norm_dims_t dims = {1, 1, 1, 2};
    norm_memory_desc_t row, key_desc, value_desc, table_desc;
    norm_primitive_desc_t desc;
    check(norm_memory_desc_create_with_tag(&row, 4, dims, norm_f32, norm_abcd));
    check(norm_kv_cache_get_descs(cache, 1, &key_desc, &value_desc, &table_desc, NULL));
    check(norm_sdpa_forward_primitive_desc_create(&desc, engine, norm_forward_inference, row,
            key_desc, value_desc, row, NULL, table_desc, norm_attn_mask_bottom_right,
            norm_window_none, 0, 0, 1, 0, norm_sdpa_key_lengths, NULL));
    check(norm_primitive_create(&attention, desc));

    norm_dim_t first, second;
    check(norm_kv_cache_new_sequence(cache, &first));
    decode(first, queries[0], keys[0], values[0]);
    decode(first, queries[1], keys[1], values[1]);
    check(norm_kv_cache_fork(cache, first, &second));
    decode(first, queries[2], keys[2], values[2]);
    decode(second, queries[2], keys[0], values[0]);

    norm_kv_cache_stats_t stats;
    check(norm_kv_cache_get_stats(cache, &stats));
    printf("%d of %d pages, %d copied\n", (int)stats.used_pages, (int)stats.pages,
            (int)stats.copied_pages);

    norm_primitive_destroy(attention);
    norm_primitive_desc_destroy(desc);
    norm_memory_desc_destroy(table_desc);
    norm_memory_desc_destroy(value_desc);
    norm_memory_desc_destroy(key_desc);
    norm_memory_desc_destroy(row);
    norm_kv_cache_destroy(cache);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
