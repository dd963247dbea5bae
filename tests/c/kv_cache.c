/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * KV caches: attention through any kind of cache, in steps of any size, has the bits of
 * attention over plain tensors. Also forks, truncation, full pools, rope and refusals.
 */
#include "kv_cache.h"
#include "refused.h"

/* Three sequences of different lengths in every kind of cache, then truncated and extended again.
 * */
static void bits_of_plain_tensors(void) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16};
    static const struct {
        norm_kv_cache_kind_t kind;
        int page, window, back, kept;
    } kinds[] = {{norm_kv_contiguous, 0, 0, 90, 0}, {norm_kv_paged, 16, 0, 90, 0},
            {norm_kv_paged, 7, WINDOW, 90, 0}, {norm_kv_ring, 16, WINDOW, 1, 0},
            {norm_kv_ring, 3, WINDOW, 1, 0},
            {norm_kv_ring, 16, WINDOW, 1, 4}, {norm_kv_ring, 3, WINDOW, 1, 20}};
    static const int chunks[] = {1, 7, 64, LENGTH};
    const norm_dim_t ends[] = {LENGTH, 211, 7};
    for (int t = 0; t < (emulated ? 1 : 3); ++t)
        for (int k = emulated ? 2 : 0; k < 7; k += emulated ? 3 : 1) {
            kept = kinds[k].kept;
            make_stories(types[t], kinds[k].window, 0);
            for (int c = emulated ? 2 : 0; c < (emulated ? 3 : 4); ++c) {
                step_rows = chunks[c];
                snprintf(expect_case, sizeof expect_case, "type %d, kind %d, chunk %d", t, k,
                        chunks[c]);
                norm_kv_cache_t cache = make_cache(kinds[k].kind, types[t], kinds[k].page);
                steps_t steps = steps_make(cache, types[t], MOST, chunks[c], kinds[k].window);
                norm_dim_t sequences[MOST];
                for (int b = 0; b < MOST; ++b)
                    MUST(norm_kv_cache_new_sequence(cache, &sequences[b]));
                EXPECT(follow(&steps, sequences, ends));
                for (int b = 0; b < 2; ++b)
                    MUST(norm_kv_cache_truncate(cache, sequences[b], ends[b] - kinds[k].back));
                EXPECT(follow(&steps, sequences, ends));
                EXPECT(stats_of(cache).copied_pages == 0);
                steps_free(&steps);
                MUST(norm_kv_cache_destroy(cache));
            }
            free_stories();
        }
    expect_case[0] = 0;
    kept = 0;
    step_rows = 64;
}

/* Sequences that share their first tokens, by forks in the middle of a page. */
static void forked(void) {
    static const norm_kv_cache_kind_t kinds[] = {norm_kv_contiguous, norm_kv_paged, norm_kv_ring};
    for (int k = 0; k < 3; ++k) {
        const int window = has_window(kinds[k]) ? WINDOW : 0;
        make_stories(norm_f32, window, 205);
        norm_kv_cache_t cache = make_cache(kinds[k], norm_f32, k == 0 ? 0 : 16);
        steps_t alone = steps_make(cache, norm_f32, 1, 64, window);
        steps_t together = steps_make(cache, norm_f32, MOST, 7, window);
        norm_dim_t sequences[MOST];
        const norm_dim_t shared[] = {205}, ends[] = {230, 260, 206}, more[] = {LENGTH, 280, 290};
        MUST(norm_kv_cache_new_sequence(cache, &sequences[0]));
        EXPECT(follow(&alone, sequences, shared));
        for (int b = 1; b < MOST; ++b) MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[b]));
        const norm_kv_cache_stats_t before = stats_of(cache);
        EXPECT(before.copied_pages == 0 && before.shared_pages > 0 && before.sequences == MOST);
        EXPECT(follow(&together, sequences, ends));
        EXPECT(stats_of(cache).copied_pages == MOST - 1);
        MUST(norm_kv_cache_truncate(cache, sequences[0], 216));
        EXPECT(follow(&together, sequences, more));
        EXPECT(stats_of(cache).copied_pages == MOST - 1);
        steps_free(&alone);
        steps_free(&together);
        MUST(norm_kv_cache_destroy(cache));
        free_stories();
    }
}

/* Eight beams over 1024 tokens: nothing is copied until a beam writes, and then one page is. */
static void beams(void) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequences[8], tokens[] = {1024}, one[] = {1};
    for (int page = 64; page <= 96; page += 32) {
        /* 1024 tokens fill 16 pages of 64 tokens, or ten and two thirds of 96. */
        const int partly = page == 96, pages = partly ? 11 : 16;
        MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, norm_f32, 3, 2, 8, 8, 8, 2048, 1024,
                page, 0, 0, 0));
        MUST(norm_kv_cache_new_sequence(cache, &sequences[0]));
        MUST(norm_kv_cache_extend(cache, 1, sequences, tokens, 0));
        for (int b = 1; b < 8; ++b) MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[b]));
        norm_kv_cache_stats_t stats = stats_of(cache);
        EXPECT(stats.copied_pages == 0 && stats.used_pages == pages && stats.shared_pages == pages);
        MUST(norm_kv_cache_extend(cache, 1, &sequences[3], one, 0));
        stats = stats_of(cache);
        EXPECT(stats.copied_pages == partly && stats.used_pages == pages + 1);
        MUST(norm_kv_cache_extend(cache, 1, &sequences[3], one, 0));
        EXPECT(stats_of(cache).copied_pages == partly && stats_of(cache).used_pages == pages + 1);
        for (int b = 0; b < 8; ++b) MUST(norm_kv_cache_drop(cache, sequences[b]));
        EXPECT(stats_of(cache).used_pages == 0 && stats_of(cache).sequences == 0);
        MUST(norm_kv_cache_destroy(cache));
    }
}

/* A pool that is too small for a step leaves everything unchanged, including the open step. */
static void full(void) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequences[3];
    MUST(norm_kv_cache_create(&cache, engine, norm_kv_paged, norm_f32, 1, 1, 2, 2, 3, 64, 64, 4, 5,
            0, 0));
    for (int b = 0; b < 2; ++b) MUST(norm_kv_cache_new_sequence(cache, &sequences[b]));
    MUST(norm_kv_cache_extend(cache, 2, sequences, (norm_dim_t[]) {9, 3}, 0));
    MUST(norm_kv_cache_fork(cache, sequences[0], &sequences[2]));
    MUST(norm_kv_cache_extend(cache, 1, sequences + 1, (norm_dim_t[]) {1}, 0));
    norm_exec_arg_t args[4], slots[3];
    int nargs = 4, found = 3;
    void *table = NULL, *lengths = NULL, *slot = NULL;
    tensor_t values = tokens_of(norm_f32, 1, 1, 1, 2);
    MUST(norm_kv_cache_write(cache, stream, 0, NULL, values.memory));
    tensor_free(&values);
    MUST(norm_kv_cache_get_rope_arguments(cache, 0, &found, slots));
    MUST(norm_kv_cache_get_arguments(cache, 0, 3, sequences, &nargs, args));
    EXPECT(nargs == 4 && found == 3);
    MUST(norm_memory_get_data_handle(args[2].memory, &table));
    MUST(norm_memory_get_data_handle(args[3].memory, &lengths));
    MUST(norm_memory_get_data_handle(slots[1].memory, &slot));
    int32_t before[48];
    int64_t slots_before[64];
    memcpy(before, table, sizeof before);
    memcpy(slots_before, slot, sizeof slots_before);
    const norm_kv_cache_stats_t stats = stats_of(cache);
    EXPECT(stats.pages == 5 && stats.used_pages == 4 && slots_before[0] % 4 == 3);
    /* The step needs two copies and a page, but only one page is free. */
    REFUSED(norm_out_of_memory, "tokens", norm_kv_cache_extend,
            (cache, 3, sequences, ((norm_dim_t[]) {1, 1, 1}), 0));
    EXPECT(strstr(norm_get_last_error(), "needs 2 free pages, but 1 of the 5") != NULL);
    const norm_kv_cache_stats_t after = stats_of(cache);
    EXPECT(memcmp(&stats, &after, sizeof stats) == 0);
    MUST(norm_kv_cache_get_arguments(cache, 0, 3, sequences, &nargs, args));
    EXPECT(memcmp(before, table, sizeof before) == 0);
    EXPECT(memcmp(slots_before, slot, sizeof slots_before) == 0);
    EXPECT(memcmp(lengths, ((int32_t[]) {9, 4, 9}), 12) == 0);
    /* A step that fits succeeds. */
    MUST(norm_kv_cache_extend(cache, 3, sequences, (norm_dim_t[]) {1, 0, 1}, 0));
    EXPECT(stats_of(cache).copied_pages == 1 && stats_of(cache).used_pages == 5);
    norm_dim_t none = -7;
    REFUSED(norm_out_of_memory, "sequence", norm_kv_cache_new_sequence, (cache, &none));
    EXPECT(strstr(norm_get_last_error(), "drop one first") != NULL);
    REFUSED(norm_out_of_memory, "sequence", norm_kv_cache_fork, (cache, sequences[0], &none));
    EXPECT(none == -7);
    MUST(norm_kv_cache_destroy(cache));
}

/* Attention never sees a page that a ring has freed. */
static void windows_of_ring(norm_kv_cache_t cache, norm_dim_t sequence, norm_memory_t row) {
    norm_memory_desc_t keys = NULL, values = NULL, table = NULL;
    const_norm_memory_desc_t desc = NULL;
    MUST(norm_memory_get_memory_desc(row, &desc));
    MUST(norm_kv_cache_get_descs(cache, 1, &keys, &values, &table, NULL));
    const int windows[] = {10, 9, 30, 0}, right[] = {1, 1, 0, 0};
    for (int i = 0; i < 4; ++i) {
        norm_primitive_desc_t pd = attention_desc(
                desc, keys, values, desc, table, windows[i], norm_sdpa_key_lengths);
        norm_primitive_t primitive = NULL;
        MUST(norm_primitive_create(&primitive, pd));
        norm_exec_arg_t args[6] = {{NORM_ARG_QUERIES, row}, {NORM_ARG_DST, row}};
        int nargs = 4;
        MUST(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &nargs, args + 2));
        if (right[i])
            EXPECT(norm_primitive_execute(primitive, stream, 6, args) == norm_success);
        else
            INVALID("args", norm_primitive_execute, (primitive, stream, 6, args));
        MUST(norm_primitive_destroy(primitive));
        MUST(norm_primitive_desc_destroy(pd));
    }
    MUST(norm_memory_desc_destroy(keys));
    MUST(norm_memory_desc_destroy(values));
    MUST(norm_memory_desc_destroy(table));
}

/* A ring keeps its first tokens in place. */
static void kept_tokens(void) {
    norm_kv_cache_t cache = NULL;
    norm_dim_t sequence = 0, length = 0;
    MUST(norm_kv_cache_create(&cache, engine, norm_kv_ring, norm_f32, 1, 1, 1, 1, 1, 4000, 8, 4, 0,
            10, 6));
    /* 9 + 8 tokens in five pages, one for the ends, and two that are kept. */
    EXPECT(stats_of(cache).pages == 8);
    MUST(norm_kv_cache_new_sequence(cache, &sequence));
    float values[8];
    const norm_dim_t dims[] = {1, 1, 8, 1};
    norm_memory_desc_t desc = NULL;
    norm_memory_t rows = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 4, dims, norm_f32, norm_abcd));
    MUST(norm_memory_create(&rows, desc, engine, values));
    norm_exec_arg_t args[4];
    int nargs = 4;
    for (int step = 0; step < 400; ++step) {
        const norm_dim_t tokens[] = {1 + step % 8};
        MUST(norm_kv_cache_extend(cache, 1, &sequence, tokens, 0));
        for (int i = 0; i < 8; ++i) values[i] = (float)(length + i);
        MUST(norm_kv_cache_write(cache, stream, 0, rows, rows));
        MUST(norm_kv_cache_get_length(cache, sequence, &length));
        MUST(norm_kv_cache_get_arguments(cache, 0, 1, &sequence, &nargs, args));
        void *keys = NULL, *table = NULL;
        MUST(norm_memory_get_data_handle(args[0].memory, &keys));
        MUST(norm_memory_get_data_handle(args[2].memory, &table));
        int right = 1;
        for (norm_dim_t token = 0; token < length; ++token) {
            const int page = ((int32_t *)table)[token / 4];
            right &= page >= -1 && page < 8;
            if (token < 6 || token > length - 10)
                right &= page >= 0 && ((float *)keys)[page * 4 + token % 4] == (float)token;
        }
        if (!EXPECT(right)) break;
    }
    EXPECT(length == 50 * 36);
    float one = 1;
    const norm_dim_t of_one[] = {1, 1, 1, 1};
    norm_memory_desc_t one_desc = NULL;
    norm_memory_t one_row = NULL;
    MUST(norm_memory_desc_create_with_tag(&one_desc, 4, of_one, norm_f32, norm_abcd));
    MUST(norm_memory_create(&one_row, one_desc, engine, &one));
    windows_of_ring(cache, sequence, one_row);
    MUST(norm_memory_destroy(one_row));
    MUST(norm_memory_desc_destroy(one_desc));
    INVALID("length", norm_kv_cache_truncate, (cache, sequence, length - 30));
    MUST(norm_kv_cache_truncate(cache, sequence, 8));
    EXPECT(stats_of(cache).used_pages == 2);
    MUST(norm_memory_destroy(rows));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_kv_cache_destroy(cache));
}

#include "kv_cache_rope.h"
#include "kv_cache_refusals.h"

int main(int argc, char **argv) {
    emulated = argc == 2 && strcmp(argv[1], "emulated") == 0;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    bits_of_plain_tensors();
    forked();
    beams();
    full();
    kept_tokens();
    rope_writes_slots();
    without_gaps();
    conversions();
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("kv_cache");
}
