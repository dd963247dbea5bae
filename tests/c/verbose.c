/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Creates a problem of every kind on the portable level. With NORM_VERBOSE=2 the library
 * prints a line for each one, which tests/consumers/verbose.rs compares.
 */
#include "expect.h"

enum { B = 2, T = 4, D = 8 };

static norm_memory_desc_t desc_of(int ndims, const norm_dim_t *dims, norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, type, NULL));
    return desc;
}

int main(void) {
    const norm_dim_t row_dims[] = {T, D}, half_dims[] = {T, D / 2}, head_dims[] = {B, 1, T, D};
    const norm_dim_t key_dims[] = {B, 1, D, T}, position_dims[] = {T, 1}, token_dims[] = {T, 1, D};
    norm_engine_t engine = NULL;
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_portable));
    norm_memory_desc_t rows = desc_of(2, row_dims, norm_f32), bytes = desc_of(2, row_dims, norm_s8);
    norm_memory_desc_t half = desc_of(2, half_dims, norm_f32), heads = desc_of(4, head_dims, norm_f32);
    norm_memory_desc_t keys = desc_of(4, key_dims, norm_f32), tokens = desc_of(3, token_dims, norm_bf16);
    norm_memory_desc_t at = desc_of(2, position_dims, norm_s32);
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_exact));
    norm_primitive_desc_t made[9] = {NULL};
    int count = 0;
    MUST(norm_layer_normalization_forward_primitive_desc_create(&made[count++], engine,
            norm_forward_training, rows, bytes, NULL, 0.5f, norm_rms_norm | norm_use_scale, attr));
    MUST(norm_group_normalization_forward_primitive_desc_create(&made[count++], engine,
            norm_forward_inference, rows, rows, 2, 0.25f, norm_use_shift, NULL));
    MUST(norm_softmax_forward_primitive_desc_create(&made[count++], engine, norm_forward_inference,
            norm_softmax_log, rows, rows, 1, NULL));
    MUST(norm_eltwise_backward_primitive_desc_create(&made[count++], engine,
            norm_eltwise_elu_use_dst_for_bwd, rows, rows, rows, 2.0f, 0.0f, NULL, NULL));
    MUST(norm_binary_primitive_desc_create(
            &made[count++], engine, norm_binary_mul, rows, rows, rows, NULL));
    MUST(norm_gated_forward_primitive_desc_create(&made[count++], engine, norm_forward_inference,
            norm_eltwise_swish, norm_up_first, rows, NULL, half, 1.5f, 7.0f, 1.0f, NULL));
    MUST(norm_rope_forward_primitive_desc_create(&made[count++], engine, norm_forward_inference,
            norm_rope_half_split, norm_rope_from_frequencies, tokens, tokens, at, -1, NULL, NULL, 4,
            1.0f, 0, NULL, 0.0f, norm_rms_norm, NULL));
    MUST(norm_sdpa_forward_primitive_desc_create(&made[count++], engine, norm_forward_inference,
            heads, keys, heads, heads, NULL, NULL, norm_attn_mask_top_left,
            norm_window_with_self, 2, 0, 0.5f, 0.0f, norm_sdpa_sinks, NULL));
    MUST(norm_reorder_primitive_desc_create(&made[count++], rows, engine, bytes, engine, NULL));
    for (int i = 0; i < count; ++i) MUST(norm_primitive_desc_destroy(made[i]));
    norm_memory_desc_t descs[] = {rows, bytes, half, heads, keys, tokens, at};
    for (int i = 0; i < 7; ++i) MUST(norm_memory_desc_destroy(descs[i]));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_engine_destroy(engine));
    return expect_summary("verbose");
}
