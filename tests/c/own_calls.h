/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls of out_of_memory.c to functions that oneDNN does not have.
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
    EXPECT(sum_rounding == norm_residual_exact && gating == norm_eltwise_swish && elements == 4);
    MUST(norm_memory_desc_destroy(rows));
}

#endif
