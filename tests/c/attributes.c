/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Attributes and lists of post-operations return what was set and reject invalid
 * values.
 */
#include "refused.h"
#include "tensor.h"

static norm_engine_t engine;

static void modes(void) {
    norm_primitive_attr_t attr = NULL, clone = NULL;
    norm_fpmath_mode_t fpmath = norm_fpmath_mode_any;
    norm_accumulation_mode_t sums = norm_accumulation_mode_any;
    norm_rounding_mode_t rounding = norm_rounding_mode_stochastic;
    int number = -1;
    MUST(norm_primitive_attr_create(&attr));
    EXPECT(norm_primitive_attr_get_fpmath_mode(attr, &fpmath) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_strict);
    EXPECT(norm_primitive_attr_get_accumulation_mode(attr, &sums) == norm_success);
    EXPECT(sums == norm_accumulation_mode_strict);
    EXPECT(norm_primitive_attr_get_deterministic(attr, &number) == norm_success && number == 0);
    EXPECT(norm_primitive_attr_get_rounding(attr, NORM_ARG_DST, &rounding) == norm_success);
    EXPECT(rounding == norm_rounding_mode_environment);

    MUST(norm_primitive_attr_set_fpmath_mode_v2(attr, norm_fpmath_mode_tf32, 1));
    MUST(norm_primitive_attr_set_accumulation_mode(attr, norm_accumulation_mode_f16));
    MUST(norm_primitive_attr_set_deterministic(attr, 7));
    MUST(norm_primitive_attr_set_rounding(attr, NORM_ARG_DST, norm_rounding_mode_stochastic));
    MUST(norm_primitive_attr_set_rounding(attr, NORM_ARG_SRC, norm_rounding_mode_environment));
    MUST(norm_primitive_attr_clone(&clone, attr));
    MUST(norm_primitive_attr_destroy(attr));
    EXPECT(norm_primitive_attr_get_fpmath_mode_v2(clone, &fpmath, &number) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_tf32 && number == 1);
    EXPECT(norm_primitive_attr_get_fpmath_mode_v2(clone, NULL, NULL) == norm_success);
    EXPECT(norm_primitive_attr_get_accumulation_mode(clone, &sums) == norm_success);
    EXPECT(sums == norm_accumulation_mode_f16);
    EXPECT(norm_primitive_attr_get_deterministic(clone, &number) == norm_success && number == 1);
    EXPECT(norm_primitive_attr_get_rounding(clone, NORM_ARG_DST, &rounding) == norm_success);
    EXPECT(rounding == norm_rounding_mode_stochastic);
    MUST(norm_primitive_attr_set_rounding(clone, NORM_ARG_DST, norm_rounding_mode_environment));
    EXPECT(norm_primitive_attr_get_rounding(clone, NORM_ARG_DST, &rounding) == norm_success);
    EXPECT(rounding == norm_rounding_mode_environment);
    MUST(norm_primitive_attr_set_fpmath_mode(clone, norm_fpmath_mode_bf16));
    EXPECT(norm_primitive_attr_get_fpmath_mode_v2(clone, &fpmath, &number) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_bf16 && number == 0);

    INVALID("attr", norm_primitive_attr_get_fpmath_mode, (NULL, &fpmath));
    INVALID("mode", norm_primitive_attr_get_fpmath_mode, (clone, NULL));
    INVALID("attr", norm_primitive_attr_get_fpmath_mode_v2, (NULL, &fpmath, &number));
    INVALID("attr", norm_primitive_attr_set_fpmath_mode, (NULL, norm_fpmath_mode_any));
    INVALID("attr", norm_primitive_attr_set_fpmath_mode_v2, (NULL, norm_fpmath_mode_any, 0));
    INVALID("attr", norm_primitive_attr_get_accumulation_mode, (NULL, &sums));
    INVALID("mode", norm_primitive_attr_get_accumulation_mode, (clone, NULL));
    INVALID("attr", norm_primitive_attr_set_accumulation_mode,
            (NULL, norm_accumulation_mode_any));
    INVALID("attr", norm_primitive_attr_get_deterministic, (NULL, &number));
    INVALID("value", norm_primitive_attr_get_deterministic, (clone, NULL));
    INVALID("attr", norm_primitive_attr_set_deterministic, (NULL, 1));
    INVALID("attr", norm_primitive_attr_get_rounding, (NULL, NORM_ARG_DST, &rounding));
    INVALID("mode", norm_primitive_attr_get_rounding, (clone, NORM_ARG_DST, NULL));
    INVALID("attr", norm_primitive_attr_set_rounding,
            (NULL, NORM_ARG_DST, norm_rounding_mode_environment));
    INVALID("arg", norm_primitive_attr_set_rounding,
            (clone, NORM_ARG_SRC, norm_rounding_mode_stochastic));
    for (int i = 0; i < NO_ENUMERATORS; ++i) {
        const int no = no_enumerator[i];
        INVALID("mode", norm_primitive_attr_set_fpmath_mode, (clone, (norm_fpmath_mode_t)no));
        INVALID("mode", norm_primitive_attr_set_fpmath_mode_v2,
                (clone, (norm_fpmath_mode_t)no, 0));
        INVALID("mode", norm_primitive_attr_set_accumulation_mode,
                (clone, (norm_accumulation_mode_t)no));
        INVALID("mode", norm_primitive_attr_set_rounding,
                (clone, NORM_ARG_DST, (norm_rounding_mode_t)no));
        INVALID("mode", norm_set_default_fpmath_mode, ((norm_fpmath_mode_t)no));
    }
    MUST(norm_primitive_attr_destroy(clone));
}

static void kept_for_those_who_ask(void) {
    norm_primitive_attr_t attr = NULL;
    norm_fpmath_mode_t fpmath = norm_fpmath_mode_any;
    int capacity = -1;
    EXPECT(norm_get_default_fpmath_mode(&fpmath) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_strict);
    EXPECT(norm_set_default_fpmath_mode(norm_fpmath_mode_f16) == norm_success);
    EXPECT(norm_get_default_fpmath_mode(&fpmath) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_f16);
    MUST(norm_primitive_attr_create(&attr));
    EXPECT(norm_set_default_fpmath_mode(norm_fpmath_mode_strict) == norm_success);
    fpmath = norm_fpmath_mode_any;
    EXPECT(norm_primitive_attr_get_fpmath_mode(attr, &fpmath) == norm_success);
    EXPECT(fpmath == norm_fpmath_mode_f16);
    MUST(norm_primitive_attr_destroy(attr));
    INVALID("mode", norm_get_default_fpmath_mode, (NULL));

    EXPECT(norm_get_primitive_cache_capacity(&capacity) == norm_success && capacity == 1024);
    EXPECT(norm_set_primitive_cache_capacity(0) == norm_success);
    EXPECT(norm_get_primitive_cache_capacity(&capacity) == norm_success && capacity == 0);
    INVALID("capacity", norm_set_primitive_cache_capacity, (-1));
    INVALID("capacity", norm_get_primitive_cache_capacity, (NULL));
    EXPECT(norm_get_cpu_isa_hints() == norm_cpu_isa_no_hints);
    EXPECT(norm_set_cpu_isa_hints(norm_cpu_isa_prefer_ymm) == norm_success);
    EXPECT(norm_get_cpu_isa_hints() == norm_cpu_isa_prefer_ymm);
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("isa_hints", norm_set_cpu_isa_hints, ((norm_cpu_isa_hints_t)no_enumerator[i]));
    EXPECT(norm_set_cpu_isa_hints(norm_cpu_isa_no_hints) == norm_success);
}

static void quantities(void) {
    const norm_dims_t groups = {1, 32}, no_groups = {1, 0};
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    EXPECT(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 0) == norm_success);
    EXPECT(norm_primitive_attr_set_scales(attr, NORM_ARG_DST, 3, 0, NULL, norm_bf16)
            == norm_success);
    EXPECT(norm_primitive_attr_set_scales_v2(attr, NORM_ARG_WEIGHTS, 0, 0, NULL, norm_f16, 0)
            == norm_success);
    EXPECT(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_SRC_1, 0, 0, NULL, norm_f32, 0,
                   norm_quantization_mode_static_sazp)
            == norm_success);
    EXPECT(norm_primitive_attr_set_zero_points_mask(attr, NORM_ARG_SRC, 1) == norm_success);
    EXPECT(norm_primitive_attr_set_zero_points(attr, NORM_ARG_DST, 0, 0, NULL, norm_s32)
            == norm_success);
    EXPECT(norm_primitive_attr_set_zero_points_v2(attr, NORM_ARG_SRC, 0, 0, NULL, norm_u8, 0)
            == norm_success);

    INVALID("attr", norm_primitive_attr_set_scales_mask, (NULL, NORM_ARG_SRC, 0));
    INVALID("arg", norm_primitive_attr_set_scales_mask, (attr, NORM_ARG_MEAN, 0));
    INVALID("mask", norm_primitive_attr_set_scales_mask, (attr, NORM_ARG_SRC, -1));
    INVALID("attr", norm_primitive_attr_set_scales, (NULL, NORM_ARG_SRC, 0, 0, NULL, norm_f32));
    INVALID("data_type", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 0, 0, NULL, norm_s32));
    INVALID("group_ndims", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 3, -1, NULL, norm_f32));
    INVALID("group_dims", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 3, 2, NULL, norm_f32));
    INVALID("group_dims", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 3, 2, no_groups, norm_f32));
    INVALID("mask", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 0, 2, groups, norm_f32));
    EXPECT(norm_primitive_attr_set_scales(attr, NORM_ARG_SRC, 3, 2, groups, norm_f32)
            == norm_success);
    INVALID("data_type", norm_primitive_attr_set_scales,
            (attr, NORM_ARG_SRC, 0, 0, NULL, norm_s8));
    EXPECT(norm_primitive_attr_set_scales(attr, NORM_ARG_SRC, 0, 0, NULL, norm_e8m0)
            == norm_success);
    EXPECT(norm_primitive_attr_set_scales_v2(attr, NORM_ARG_SRC, 0, 0, NULL, norm_f32, 1)
            == norm_success);
    INVALID("mask", norm_primitive_attr_set_scales_v2,
            (attr, NORM_ARG_SRC, 1, 0, NULL, norm_f32, 1));
    EXPECT(norm_primitive_attr_set_scales_v3(attr, NORM_ARG_SRC, 0, 0, NULL, norm_f32, 0,
                   norm_quantization_mode_dynamic_mx)
            == norm_success);
    for (int i = 0; i < NO_ENUMERATORS; ++i) {
        const int no = no_enumerator[i];
        INVALID("qmode", norm_primitive_attr_set_scales_v3,
                (attr, NORM_ARG_SRC, 0, 0, NULL, norm_f32, 0, (norm_quantization_mode_t)no));
        INVALID("data_type", norm_primitive_attr_set_zero_points,
                (attr, NORM_ARG_SRC, 0, 0, NULL, (norm_data_type_t)no));
    }
    INVALID("attr", norm_primitive_attr_set_zero_points_mask, (NULL, NORM_ARG_SRC, 0));
    INVALID("arg", norm_primitive_attr_set_zero_points_mask, (attr, NORM_ARG_SCALE, 0));
    INVALID("data_type", norm_primitive_attr_set_zero_points,
            (attr, NORM_ARG_DST, 0, 0, NULL, norm_s8));
    INVALID("data_type", norm_primitive_attr_set_zero_points,
            (attr, NORM_ARG_SRC, 0, 0, NULL, norm_f32));
    EXPECT(norm_primitive_attr_set_zero_points_v2(attr, NORM_ARG_SRC, 0, 0, NULL, norm_s32, 1)
            == norm_success);
    MUST(norm_primitive_attr_destroy(attr));
}

static norm_post_ops_t one_of_each(norm_memory_desc_t src1, norm_memory_desc_t src2) {
    norm_post_ops_t list = NULL;
    MUST(norm_post_ops_create(&list));
    MUST(norm_post_ops_append_sum(list, 0.5f, 3, norm_s8));
    MUST(norm_post_ops_append_eltwise(list, norm_eltwise_clip_v2_use_dst_for_bwd, -1.f, 2.f));
    MUST(norm_post_ops_append_binary(list, norm_binary_mul, src1));
    MUST(norm_post_ops_append_binary_v2(list, norm_binary_select, src1, src2));
    MUST(norm_post_ops_append_prelu(list, 2));
    MUST(norm_post_ops_append_dw(list, norm_s8, norm_data_type_undef, norm_u8, 3, 2, 1));
    return list;
}

static void expect_one_of_each(
        const_norm_post_ops_t list, norm_memory_desc_t src1, norm_memory_desc_t src2) {
    static const norm_primitive_kind_t kinds[] = {norm_sum, norm_eltwise, norm_binary,
            norm_binary, norm_prelu, norm_convolution};
    float a = 0, b = 0;
    int32_t point = 0;
    int mask = 0, ndims = -1;
    norm_data_type_t types[3] = {norm_f64, norm_f64, norm_f64};
    norm_alg_kind_t alg = norm_alg_kind_undef;
    norm_dim_t sizes[3] = {0, 0, 0};
    const_norm_memory_desc_t first = NULL, second = NULL;
    EXPECT(norm_post_ops_len(list) == 6);
    for (int i = 0; i < 6; ++i) EXPECT(norm_post_ops_get_kind(list, i) == kinds[i]);
    EXPECT(norm_post_ops_get_params_sum(list, 0, &a, &point, types) == norm_success);
    EXPECT(a == 0.5f && point == 3 && types[0] == norm_s8);
    EXPECT(norm_post_ops_get_params_eltwise(list, 1, &alg, &a, &b) == norm_success);
    EXPECT(alg == norm_eltwise_clip_v2_use_dst_for_bwd && a == -1.f && b == 2.f);
    EXPECT(norm_post_ops_get_params_binary(list, 2, &alg, &first) == norm_success);
    EXPECT(alg == norm_binary_mul && norm_memory_desc_equal(first, src1));
    EXPECT(norm_post_ops_get_params_binary_v2(list, 2, &alg, &first, &second) == norm_success);
    EXPECT(norm_memory_desc_query(second, norm_query_ndims_s32, &ndims) == norm_success);
    EXPECT(ndims == 0);
    EXPECT(norm_post_ops_get_params_binary_v2(list, 3, &alg, &first, &second) == norm_success);
    EXPECT(alg == norm_binary_select && norm_memory_desc_equal(second, src2));
    EXPECT(norm_post_ops_get_params_prelu(list, 4, &mask) == norm_success && mask == 2);
    EXPECT(norm_post_ops_get_params_dw(
                   list, 5, &types[0], &types[1], &types[2], &sizes[0], &sizes[1], &sizes[2])
            == norm_success);
    EXPECT(types[0] == norm_s8 && types[1] == norm_data_type_undef && types[2] == norm_u8);
    EXPECT(sizes[0] == 3 && sizes[1] == 2 && sizes[2] == 1);
    /* Outputs may be NULL. */
    EXPECT(norm_post_ops_get_params_sum(list, 0, NULL, NULL, NULL) == norm_success);
    EXPECT(norm_post_ops_get_params_eltwise(list, 1, NULL, NULL, NULL) == norm_success);
    EXPECT(norm_post_ops_get_params_binary(list, 2, NULL, NULL) == norm_success);
    EXPECT(norm_post_ops_get_params_dw(list, 5, NULL, NULL, NULL, NULL, NULL, NULL)
            == norm_success);
}

static void post_operations(void) {
    const norm_dims_t dims = {4, 1}, other = {1, 8};
    norm_memory_desc_t src1 = NULL, src2 = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t clone = NULL;
    const_norm_post_ops_t its = NULL;
    MUST(norm_memory_desc_create_with_tag(&src1, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_desc_create_with_tag(&src2, 2, other, norm_s8, norm_format_tag_any));
    norm_post_ops_t list = one_of_each(src1, src2);
    expect_one_of_each(list, src1, src2);
    MUST(norm_post_ops_clone(&clone, list));
    MUST(norm_primitive_attr_create(&attr));
    EXPECT(norm_primitive_attr_get_post_ops(attr, &its) == norm_success);
    EXPECT(norm_post_ops_len(its) == 0);
    EXPECT(norm_primitive_attr_set_post_ops(attr, list) == norm_success);
    MUST(norm_post_ops_destroy(list));
    expect_one_of_each(clone, src1, src2);
    EXPECT(norm_primitive_attr_get_post_ops(attr, &its) == norm_success);
    expect_one_of_each(its, src1, src2);
    /* A list may be replaced by itself. */
    EXPECT(norm_primitive_attr_set_post_ops(attr, its) == norm_success);
    EXPECT(norm_primitive_attr_get_post_ops(attr, &its) == norm_success);
    expect_one_of_each(its, src1, src2);

    for (int i = 6; i < 32; ++i)
        EXPECT(norm_post_ops_append_eltwise(clone, norm_eltwise_relu, 0, 0) == norm_success);
    REFUSED(norm_out_of_memory, "post_ops", norm_post_ops_append_eltwise,
            (clone, norm_eltwise_relu, 0, 0));
    EXPECT(norm_post_ops_len(clone) == 32 && norm_post_ops_len(NULL) == 0);
    MUST(norm_post_ops_destroy(clone));
    MUST(norm_primitive_attr_destroy(attr));
    EXPECT(norm_post_ops_destroy(NULL) == norm_success);
    MUST(norm_memory_desc_destroy(src1));
    MUST(norm_memory_desc_destroy(src2));
}

static void bad_post_operations(void) {
    const norm_dims_t dims = {4, 1};
    norm_memory_desc_t src1 = NULL;
    norm_post_ops_t list = NULL, out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    const_norm_post_ops_t its = UNTOUCHED;
    float a = 7;
    int32_t point = 7;
    int mask = 7;
    union {
        uint32_t bits;
        float value;
    } unknown = {0x7fc000d0};
    norm_alg_kind_t alg = norm_alg_kind_undef;
    const_norm_memory_desc_t desc = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&src1, 2, dims, norm_f32, norm_ab));
    MUST(norm_post_ops_create(&list));
    MUST(norm_primitive_attr_create(&attr));
    INVALID("post_ops", norm_post_ops_create, (NULL));
    INVALID("post_ops", norm_post_ops_clone, (NULL, list));
    INVALID("existing_post_ops", norm_post_ops_clone, (&out, NULL));
    INVALID("attr", norm_primitive_attr_get_post_ops, (NULL, &its));
    INVALID("post_ops", norm_primitive_attr_get_post_ops, (attr, NULL));
    INVALID("attr", norm_primitive_attr_set_post_ops, (NULL, list));
    INVALID("post_ops", norm_primitive_attr_set_post_ops, (attr, NULL));
    INVALID("post_ops", norm_post_ops_append_sum, (NULL, 1.f, 0, norm_data_type_undef));
    INVALID("scale", norm_post_ops_append_sum, (list, unknown.value, 0, norm_f32));
    INVALID("post_ops", norm_post_ops_append_eltwise, (NULL, norm_eltwise_relu, 0, 0));
    INVALID("beta", norm_post_ops_append_eltwise, (list, norm_eltwise_clip, 2.f, 1.f));
    INVALID("alpha", norm_post_ops_append_eltwise,
            (list, norm_eltwise_linear, unknown.value, 1.f));
    INVALID("alg_kind", norm_post_ops_append_eltwise, (list, norm_binary_add, 0, 0));
    INVALID("post_ops", norm_post_ops_append_binary, (NULL, norm_binary_add, src1));
    INVALID("src1_desc", norm_post_ops_append_binary, (list, norm_binary_add, NULL));
    INVALID("alg_kind", norm_post_ops_append_binary, (list, norm_eltwise_relu, src1));
    INVALID("src2_desc", norm_post_ops_append_binary, (list, norm_binary_select, src1));
    INVALID("src2_desc", norm_post_ops_append_binary_v2, (list, norm_binary_select, src1, NULL));
    INVALID("post_ops", norm_post_ops_append_prelu, (NULL, 0));
    INVALID("post_ops", norm_post_ops_append_dw, (NULL, norm_f32, norm_f32, norm_f32, 3, 1, 1));
    INVALID("kernel_size", norm_post_ops_append_dw,
            (list, norm_f32, norm_f32, norm_f32, 0, 1, 0));
    INVALID("stride_size", norm_post_ops_append_dw,
            (list, norm_f32, norm_f32, norm_f32, 3, 0, 1));
    INVALID("padding_l_size", norm_post_ops_append_dw,
            (list, norm_f32, norm_f32, norm_f32, 3, 1, 3));
    INVALID("weights_data_type", norm_post_ops_append_dw,
            (list, norm_data_type_undef, norm_f32, norm_f32, 3, 1, 1));
    for (int i = 0; i < NO_ENUMERATORS; ++i) {
        const int no = no_enumerator[i];
        INVALID("alg_kind", norm_post_ops_append_eltwise, (list, (norm_alg_kind_t)no, 0, 0));
        INVALID("alg_kind", norm_post_ops_append_binary, (list, (norm_alg_kind_t)no, src1));
        INVALID("data_type", norm_post_ops_append_sum, (list, 1.f, 0, (norm_data_type_t)no));
    }
    EXPECT(norm_post_ops_len(list) == 0);

    MUST(norm_post_ops_append_prelu(list, 0));
    INVALID("index", norm_post_ops_get_params_sum, (list, 0, &a, &point, NULL));
    INVALID("index", norm_post_ops_get_params_eltwise, (list, 0, &alg, &a, &a));
    INVALID("index", norm_post_ops_get_params_binary, (list, 0, &alg, &desc));
    INVALID("index", norm_post_ops_get_params_binary_v2, (list, 1, &alg, &desc, &desc));
    INVALID("index", norm_post_ops_get_params_prelu, (list, -1, &mask));
    INVALID("index", norm_post_ops_get_params_dw, (list, 0, NULL, NULL, NULL, NULL, NULL, NULL));
    INVALID("post_ops", norm_post_ops_get_params_prelu, (NULL, 0, &mask));
    FAILS_WITH(norm_undefined_primitive, "index", norm_post_ops_get_kind, (list, 1));
    FAILS_WITH(norm_undefined_primitive, "post_ops", norm_post_ops_get_kind, (NULL, 0));
    EXPECT(a == 7 && point == 7 && mask == 7 && alg == norm_alg_kind_undef);
    EXPECT(out == UNTOUCHED && its == UNTOUCHED && desc == UNTOUCHED);
    MUST(norm_post_ops_destroy(list));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(src1));
}

/* Creating a descriptor rejects attributes that the operation does not support. */
static void refused_by_an_operation(void) {
    const norm_dims_t dims = {4, 8};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t out = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    for (int i = 0; i < 6; ++i) {
        norm_primitive_attr_t attr = NULL;
        norm_post_ops_t list = NULL;
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_post_ops_create(&list));
        /* A sum that would read wider elements than dst has. */
        if (i == 5)
            MUST(norm_post_ops_append_sum(list, 1.f, 0, norm_f64));
        else
            MUST(norm_post_ops_append_prelu(list, 0));
        if (i == 0) MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_WEIGHTS, 0));
        if (i == 1) MUST(norm_primitive_attr_set_zero_points_mask(attr, NORM_ARG_SRC, 0));
        if (i == 2 || i == 5) MUST(norm_primitive_attr_set_post_ops(attr, list));
        if (i == 3)
            MUST(norm_primitive_attr_set_accumulation_mode(attr, norm_accumulation_mode_f16));
        if (i == 4)
            MUST(norm_primitive_attr_set_rounding(
                    attr, NORM_ARG_DST, norm_rounding_mode_stochastic));
        REFUSED(norm_unimplemented, "attr", norm_layer_normalization_forward_primitive_desc_create,
                (&out, engine, norm_forward_inference, desc, desc, NULL, 0.f, 0, attr));
        MUST(norm_post_ops_destroy(list));
        MUST(norm_primitive_attr_destroy(attr));
    }
    EXPECT(out == UNTOUCHED);
    MUST(norm_memory_desc_destroy(desc));
}

/* Adds the residual in place: dst is also an operand, and is read before it is
 * written. */
static void operand_where_dst_lies(void) {
    enum { ROWS = 3, COLS = 20 };
    const norm_dims_t dims = {ROWS, COLS};
    float src[ROWS * COLS], dst[2][ROWS * COLS], residual[ROWS * COLS];
    norm_memory_desc_t desc = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t list = NULL;
    norm_primitive_desc_t pd = NULL;
    norm_primitive_t primitive = NULL;
    norm_stream_t stream = NULL;
    for (int i = 0; i < ROWS * COLS; ++i) {
        src[i] = (float)(i * 7 % 13) - 6.f;
        residual[i] = dst[1][i] = 100.f + (float)i;
    }
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_post_ops_create(&list));
    MUST(norm_post_ops_append_binary(list, norm_binary_add, desc));
    MUST(norm_primitive_attr_set_post_ops(attr, list));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_layer_normalization_forward_primitive_desc_create(
            &pd, engine, norm_forward_inference, desc, desc, NULL, 1e-5f, 0, attr));
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < 2; ++i) {
        norm_memory_t memories[3] = {NULL, NULL, NULL};
        float *buffers[3];
        buffers[0] = src;
        buffers[1] = dst[i];
        buffers[2] = i == 0 ? residual : dst[i];
        for (int m = 0; m < 3; ++m)
            MUST(norm_memory_create(&memories[m], desc, engine, buffers[m]));
        const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memories[0]}, {NORM_ARG_DST, memories[1]},
                {NORM_ARG_ATTR_MULTIPLE_POST_OP(0) | NORM_ARG_SRC_1, memories[2]}};
        MUST(norm_primitive_execute(primitive, stream, 3, args));
        for (int m = 0; m < 3; ++m)
            MUST(norm_memory_destroy(memories[m]));
    }
    EXPECT(dst[0][0] > 90.f);
    for (int i = 0; i < ROWS * COLS; ++i)
        EXPECT(dst[0][i] == dst[1][i]);
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_stream_destroy(stream));
    MUST(norm_post_ops_destroy(list));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_memory_desc_destroy(desc));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    modes();
    kept_for_those_who_ask();
    quantities();
    post_operations();
    bad_post_operations();
    refused_by_an_operation();
    operand_where_dst_lies();
    MUST(norm_engine_destroy(engine));
    return expect_summary("attributes");
}
