/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls for out_of_memory.c to functions that oneDNN lacks.
 */
#ifndef OWN_CALLS_H
#define OWN_CALLS_H

static void own_attributes(norm_primitive_attr_t copy) {
    norm_memory_desc_t rows = NULL;
    const_norm_memory_desc_t first = NULL, second = NULL;
    norm_residual_rounding_t sum_rounding = norm_residual_rounded;
    norm_alg_kind_t gating = norm_alg_kind_undef;
    norm_dim_t elements = 0;
    float alpha = 0;
    const norm_dim_t its_dims[] = {4, 8};
    MUST(norm_memory_desc_create_with_tag(&rows, 2, its_dims, norm_f32, norm_ab));
    CALL(norm_primitive_attr_set_residual, (copy, rows, rows, norm_residual_exact));
    CALL(norm_primitive_attr_get_residual, (copy, &first, &second, &sum_rounding));
    CALL(norm_primitive_attr_set_gate, (copy, rows, norm_eltwise_swish, 1));
    CALL(norm_primitive_attr_get_gate, (copy, &first, &gating, &alpha));
    CALL(norm_primitive_attr_set_partial_norm, (copy, 4));
    CALL(norm_primitive_attr_get_partial_norm, (copy, &elements));
    CALL(norm_primitive_attr_set_softmax_stats, (copy, rows));
    CALL(norm_primitive_attr_get_softmax_stats, (copy, &first));
    EXPECT(norm_memory_desc_equal(first, rows));
    CALL(norm_primitive_attr_set_softmax_stats, (copy, NULL));
    norm_memory_desc_t mask = NULL;
    norm_data_type_t seed = norm_data_type_undef;
    int has_offset = 0, on_host = 0;
    MUST(norm_memory_desc_create_with_tag(&mask, 2, its_dims, norm_u8, norm_ab));
    CALL(norm_primitive_attr_set_dropout, (copy, mask));
    CALL(norm_primitive_attr_get_dropout, (copy, &first));
    EXPECT(norm_memory_desc_equal(first, mask));
    CALL(norm_primitive_attr_set_dropout_v2, (copy, mask, norm_s64, 1, 1));
    CALL(norm_primitive_attr_get_dropout_v2, (copy, &first, &seed, &has_offset, &on_host));
    EXPECT(seed == norm_s64 && has_offset && on_host);
    MUST(norm_memory_desc_destroy(mask));
    norm_memory_t held = NULL;
    float number = 0.5f;
    CALL(norm_memory_desc_create_host_scalar, (&mask, norm_f32));
    CALL(norm_memory_create_host_scalar, (&held, mask, &number));
    CALL(norm_memory_set_host_scalar_value, (held, &number));
    CALL(norm_memory_get_host_scalar_value, (held, &number));
    EXPECT(number == 0.5f);
    MUST(norm_memory_destroy(held));
    MUST(norm_memory_desc_destroy(mask));
    EXPECT(sum_rounding == norm_residual_exact && gating == norm_eltwise_swish && elements == 4);
    MUST(norm_memory_desc_destroy(rows));
}

#endif
