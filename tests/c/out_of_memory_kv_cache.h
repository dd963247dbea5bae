/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls to KV caches for out_of_memory.c.
 */
#ifndef OUT_OF_MEMORY_KV_CACHE_H
#define OUT_OF_MEMORY_KV_CACHE_H

/* With scales. */
static void quantized_caches(const_norm_memory_t rows) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequence = -1, copy = -1;
    const norm_dim_t tokens[] = {5};
    norm_kv_cache_stats_t stats;
    norm_exec_arg_t args[6];
    int nargs = 6;
    WATCH(cache);
    CALL(norm_kv_cache_create, (&cache, engine, norm_kv_paged, norm_s8, 2, 2, 8, 8, 2, 64, 8, 4, 0,
            0, 0));
    CALL(norm_kv_cache_new_sequence, (cache, &sequence));
    CALL(norm_kv_cache_extend, (cache, 1, &sequence, tokens, 0));
    CALL(norm_kv_cache_write, (cache, stream, 1, rows, rows));
    CALL(norm_kv_cache_get_arguments, (cache, 1, 1, &sequence, &nargs, args));
    CALL(norm_kv_cache_fork, (cache, sequence, &copy));
    CALL(norm_kv_cache_extend, (cache, 1, &copy, tokens, 0));
    CALL(norm_kv_cache_get_stats, (cache, &stats));
    EXPECT(nargs == 6 && stats.copied_pages == 1);
    CALL(norm_kv_cache_destroy, (cache));
}

static void kv_caches(void) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequence = -1, copy = -1, length = -1;
    const norm_dim_t tokens[] = {5}, dims[] = {1, 2, 5, 8};
    norm_memory_desc_t desc = NULL, keys = NULL, values = NULL, table = NULL, dst_of_rope = NULL;
    norm_kv_cache_stats_t stats;
    norm_exec_arg_t args[4];
    int nargs = 4;
    WATCH(cache);
    CALL(norm_kv_cache_create, (&cache, engine, norm_kv_ring, norm_bf16, 2, 2, 8, 8, 2, 64, 8, 4, 0,
            10, 2));
    CALL(norm_kv_cache_new_sequence, (cache, &sequence));
    CALL(norm_kv_cache_extend, (cache, 1, &sequence, tokens, 0));
    MUST(norm_memory_desc_create_with_tag(&desc, 4, dims, norm_f32, norm_abcd));
    const norm_memory_t rows = memory(desc, src);
    CALL(norm_kv_cache_write, (cache, stream, 1, rows, rows));
    CALL(norm_kv_cache_get_arguments, (cache, 1, 1, &sequence, &nargs, args));
    CALL(norm_kv_cache_get_rope_arguments, (cache, 1, &nargs, args));
    WATCH(keys);
    WATCH(values);
    WATCH(table);
    WATCH(dst_of_rope);
    CALL(norm_kv_cache_get_descs, (cache, 2, &keys, &values, &table, &dst_of_rope));
    CALL(norm_kv_cache_fork, (cache, sequence, &copy));
    CALL(norm_kv_cache_truncate, (cache, copy, 3));
    CALL(norm_kv_cache_extend, (cache, 1, &copy, tokens, 0));
    CALL(norm_kv_cache_get_length, (cache, copy, &length));
    CALL(norm_kv_cache_drop, (cache, sequence));
    CALL(norm_kv_cache_get_stats, (cache, &stats));
    EXPECT(length == 8 && stats.copied_pages == 1 && stats.sequences == 1);
    quantized_caches(rows);
    CALL(norm_memory_destroy, (rows));
    const norm_memory_desc_t all[] = {desc, keys, values, table, dst_of_rope};
    for (int i = 0; i < 5; ++i) CALL(norm_memory_desc_destroy, (all[i]));
    CALL(norm_kv_cache_destroy, (cache));
}

#endif
