/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * More problems for out_of_memory.c, which includes this file.
 */
#ifndef OUT_OF_MEMORY_PROBLEMS_H
#define OUT_OF_MEMORY_PROBLEMS_H

static void scaled(void) {
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t desc = NULL;
    const norm_dims_t one = {1};
    norm_memory_desc_t factor_desc = NULL, half = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 0));
    MUST(norm_memory_desc_create_with_tag(&factor_desc, 1, one, norm_f32, norm_a));
    MUST(norm_memory_desc_clone(&half, rows_desc));
    MUST(norm_memory_desc_set_data_type(half, norm_bf16));
    WATCH(desc);
    CALL(norm_layer_normalization_forward_primitive_desc_create,
            (&desc, engine, norm_forward_inference, half, rows_desc, NULL, 1e-5f, norm_rms_norm,
                    attr));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(half, src)},
            {NORM_ARG_DST, memory(rows_desc, dst)},
            {NORM_ARG_ATTR_SCALES | NORM_ARG_SRC, memory(factor_desc, factor)}};
    execute(desc, 3, args, dst, bytes_of_rows());
    for (int i = 0; i < 3; ++i) CALL(norm_memory_destroy, (args[i].memory));
    CALL(norm_primitive_desc_destroy, (desc));
    CALL(norm_primitive_attr_destroy, (attr));
    CALL(norm_memory_desc_destroy, (factor_desc));
    CALL(norm_memory_desc_destroy, (half));
}

static void groups(void) {
    norm_primitive_desc_t desc = NULL, second = NULL;
    const unsigned flags = norm_use_scale;
    WATCH(desc);
    CALL(norm_group_normalization_forward_primitive_desc_create,
            (&desc, engine, norm_forward_training, rows_desc, any_desc, 1, 1e-5f, flags, NULL));
    WATCH(second);
    CALL(norm_group_normalization_backward_primitive_desc_create,
            (&second, engine, norm_backward, any_desc, rows_desc, rows_desc, 1, 1e-5f, flags, desc,
                    NULL));
    queries(desc);
    const int stat = NORM_ARG_MEAN;
    const_norm_memory_desc_t stats = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, stat);
    const_norm_memory_desc_t channels
            = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, NORM_ARG_SCALE);
    EXPECT(norm_memory_desc_get_size(stats) <= sizeof mean);
    EXPECT(norm_memory_desc_get_size(channels) <= sizeof scale);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(rows_desc, src)},
            {NORM_ARG_DST, memory(rows_desc, dst)}, {NORM_ARG_MEAN, memory(stats, mean)},
            {NORM_ARG_VARIANCE, memory(stats, variance)}, {NORM_ARG_SCALE, memory(channels, scale)},
            {NORM_ARG_DIFF_DST, memory(rows_desc, diff_dst)},
            {NORM_ARG_DIFF_SRC, memory(rows_desc, diff_src)},
            {NORM_ARG_DIFF_SCALE, memory(channels, diff_scale)}};
    execute(desc, 8, args, dst, bytes_of_rows());
    execute(second, 8, args, diff_src, bytes_of_rows());
    for (int i = 0; i < 8; ++i) CALL(norm_memory_destroy, (args[i].memory));
    CALL(norm_primitive_desc_destroy, (second));
    CALL(norm_primitive_desc_destroy, (desc));
}

static void gates(void) {
    norm_primitive_desc_t desc = NULL, second = NULL;
    WATCH(desc);
    CALL(norm_gated_forward_primitive_desc_create,
            (&desc, engine, norm_forward_training, norm_eltwise_swish, norm_gate_separate, rows_desc,
                    any_desc, any_desc, 1, 7, 1, NULL));
    WATCH(second);
    CALL(norm_gated_backward_primitive_desc_create,
            (&second, engine, norm_eltwise_swish, norm_gate_separate, any_desc, any_desc, rows_desc,
                    rows_desc, rows_desc, NULL, 1, 7, 1, desc, NULL));
    queries(desc);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(rows_desc, src)},
            {NORM_ARG_SRC_1, memory(rows_desc, src)}, {NORM_ARG_DST, memory(rows_desc, dst)},
            {NORM_ARG_DIFF_DST, memory(rows_desc, diff_dst)},
            {NORM_ARG_DIFF_SRC, memory(rows_desc, diff_src)},
            {NORM_ARG_DIFF_SRC_1, memory(rows_desc, dst)}};
    execute(desc, 6, args, dst, bytes_of_rows());
    execute(second, 6, args, diff_src, bytes_of_rows());
    for (int i = 0; i < 6; ++i) CALL(norm_memory_destroy, (args[i].memory));
    CALL(norm_primitive_desc_destroy, (second));
    CALL(norm_primitive_desc_destroy, (desc));
}

/* Attention: 2 sequences, 4 heads over 2, 8 queries and keys of 16. */
static void attentions(void) {
    static float heads[4], logarithms[2 * 4 * 8], keys_gradient[2 * 2 * 8 * 16];
    static int lengths[2] = {8, 5};
    norm_dim_t window = 0;
    const norm_dim_t rows[] = {2, 4, 8, 16}, cached[] = {2, 2, 16, 8}, valued[] = {2, 2, 8, 16};
    const unsigned flags = norm_sdpa_sinks | norm_sdpa_key_lengths;
    norm_memory_desc_t rows_of = NULL, keys = NULL, values = NULL;
    norm_primitive_desc_t desc = NULL, second = NULL;
    CALL(norm_adaptive_window, (norm_window_fixed, 8, 1, 4, 0, 0, 0, 1, 0, &window));
    EXPECT(window == 4);
    MUST(norm_memory_desc_create_with_tag(&rows_of, 4, rows, norm_f32, norm_abcd));
    MUST(norm_memory_desc_create_with_tag(&keys, 4, cached, norm_f32, norm_abcd));
    MUST(norm_memory_desc_create_with_tag(&values, 4, valued, norm_f32, norm_abcd));
    WATCH(desc);
    CALL(norm_sdpa_forward_primitive_desc_create,
            (&desc, engine, norm_forward_training, rows_of, keys, values, rows_of, NULL, NULL,
                    norm_attn_mask_top_left, norm_window_with_self, 4, 1, 0.25f, 2, flags, NULL));
    WATCH(second);
    CALL(norm_sdpa_backward_primitive_desc_create,
            (&second, engine, rows_of, keys, values, rows_of, rows_of, keys, values, rows_of, NULL,
                    NULL, norm_attn_mask_top_left, norm_window_with_self, 4, 1, 0.25f, 2, flags, desc, NULL));
    queries(desc);
    const_norm_memory_desc_t stats
            = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, NORM_ARG_WORKSPACE);
    const_norm_memory_desc_t per_head
            = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, NORM_ARG_SINKS);
    const_norm_memory_desc_t per_sequence
            = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, NORM_ARG_KEY_LENGTHS);
    const norm_exec_arg_t args[] = {{NORM_ARG_QUERIES, memory(rows_of, src)},
            {NORM_ARG_KEYS, memory(keys, src)}, {NORM_ARG_VALUES, memory(values, src)},
            {NORM_ARG_DST, memory(rows_of, dst)}, {NORM_ARG_WORKSPACE, memory(stats, logarithms)},
            {NORM_ARG_SINKS, memory(per_head, scale)},
            {NORM_ARG_KEY_LENGTHS, memory(per_sequence, lengths)},
            {NORM_ARG_DIFF_DST, memory(rows_of, diff_dst)},
            {NORM_ARG_DIFF_QUERIES, memory(rows_of, diff_src)},
            {NORM_ARG_DIFF_KEYS, memory(keys, diff_scale)},
            {NORM_ARG_DIFF_VALUES, memory(values, keys_gradient)},
            {NORM_ARG_DIFF_SINKS, memory(per_head, heads)}};
    execute(desc, 7, args, dst, sizeof(float) * 2 * 4 * 8 * 16);
    execute(second, 12, args, diff_src, sizeof(float) * 2 * 4 * 8 * 16);
    for (int i = 0; i < 12; ++i) CALL(norm_memory_destroy, (args[i].memory));
    CALL(norm_primitive_desc_destroy, (second));
    CALL(norm_primitive_desc_destroy, (desc));
    const norm_memory_desc_t all[] = {rows_of, keys, values};
    for (int i = 0; i < 3; ++i) CALL(norm_memory_desc_destroy, (all[i]));
}

#endif
