/* Causal attention with grouped heads: each of two tokens sees itself and those before it. */
#include <norm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

enum { TOKENS = 2, HEADS = 2, SIZE = 2 };

int main(void) {
    /* Tokens x heads x elements; keys and values have one head, which both heads of queries share. */
    float queries[TOKENS][HEADS][SIZE] = {{{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}};
    float keys[TOKENS][SIZE] = {{1, 0}, {0, 1}}, values[TOKENS][SIZE] = {{1, 2}, {3, 4}};
    float result[TOKENS][HEADS][SIZE];

    norm_engine_t engine;
    norm_stream_t stream;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    /* Sequences x heads x tokens x elements; in memory, tokens come before heads. */
    const norm_dims_t rows = {1, HEADS, TOKENS, SIZE}, row_strides = {8, SIZE, HEADS * SIZE, 1};
    const norm_dims_t of_values = {1, 1, TOKENS, SIZE}, value_strides = {4, 4, SIZE, 1};
    const norm_dims_t of_keys = {1, 1, SIZE, TOKENS}, key_strides = {4, 4, 1, SIZE};
    norm_memory_desc_t query_desc, key_desc, value_desc;
    check(norm_memory_desc_create_with_strides(&query_desc, 4, rows, norm_f32, row_strides));
    check(norm_memory_desc_create_with_strides(&key_desc, 4, of_keys, norm_f32, key_strides));
    check(norm_memory_desc_create_with_strides(&value_desc, 4, of_values, norm_f32, value_strides));

    norm_primitive_desc_t desc;
    norm_primitive_t attention;
    const float scale = 1 / sqrtf(SIZE), no_soft_cap = 0;
    const norm_dim_t no_window = 0, first_keys = 0;
    check(norm_sdpa_forward_primitive_desc_create(&desc, engine, norm_forward_inference,
            query_desc, key_desc, value_desc, query_desc, NULL, NULL, norm_attn_mask_bottom_right,
            norm_window_none, no_window, first_keys, scale, no_soft_cap, 0, NULL));
    check(norm_primitive_create(&attention, desc));

    norm_memory_t q, k, v, dst;
    check(norm_memory_create(&q, query_desc, engine, queries));
    check(norm_memory_create(&k, key_desc, engine, keys));
    check(norm_memory_create(&v, value_desc, engine, values));
    check(norm_memory_create(&dst, query_desc, engine, result));
    const norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, q}, {NORM_ARG_KEYS, k},
            {NORM_ARG_VALUES, v}, {NORM_ARG_DST, dst}};
    check(norm_primitive_execute(attention, stream, 4, args));
    for (int token = 0; token < TOKENS; ++token)
        printf("%7.4f %7.4f   %7.4f %7.4f\n", result[token][0][0], result[token][0][1],
                result[token][1][0], result[token][1][1]);

    norm_memory_destroy(dst);
    norm_memory_destroy(v);
    norm_memory_destroy(k);
    norm_memory_destroy(q);
    norm_primitive_destroy(attention);
    norm_primitive_desc_destroy(desc);
    norm_memory_desc_destroy(value_desc);
    norm_memory_desc_destroy(key_desc);
    norm_memory_desc_destroy(query_desc);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
