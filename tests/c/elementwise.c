/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Eltwise and binary compared with their formulas in double: every function and gradient,
 * on every implementation, over layouts, types and broadcasts. Also queries and refusals.
 */
#include "functions.h"
#include "levels.h"
#include "refused.h"
#include "tensor.h"

static norm_engine_t engine;
static norm_stream_t stream;

enum { D0 = 3, D1 = 17, D2 = 37, COUNT = D0 * D1 * D2 };
static const norm_dim_t dims[] = {D0, D1, D2};

static norm_memory_desc_t desc_of(
        const norm_dim_t *of, norm_data_type_t type, norm_format_tag_t tag) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 3, of, type, tag));
    return desc;
}

static tensor_t tensor_in(const norm_dim_t *of, norm_data_type_t type, norm_format_tag_t tag) {
    return tensor_of_desc(desc_of(of, type, tag), engine, NULL);
}

static void run(norm_primitive_desc_t pd, int count, const int *ids, const tensor_t *tensors) {
    norm_primitive_t primitive = NULL;
    norm_exec_arg_t args[6];
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        args[i].arg = ids[i];
        args[i].memory = tensors[i].memory;
    }
    MUST(norm_primitive_execute(primitive, stream, count, args));
    MUST(norm_primitive_destroy(primitive));
}

static int close_to(double got, double want, double terms) {
    if (want != want) return got != got;
    return fabs(got - want) <= 1e-6 * (terms + fabs(want)) + 1e-36;
}

/* From -9 to 9, each number twice, including small numbers and zero. */
static double number(size_t i, int positive) {
    const double x = ((double)(i * 37 % 289) - 144) / 16;
    return positive ? fabs(x) + 0.0625 : x;
}

static void fill(tensor_t *t, int positive, size_t shift) {
    for (size_t r = 0; r < t->rows; ++r)
        for (size_t c = 0; c < t->cols; ++c)
            tensor_set(t, r, c, number(r * t->cols + c + shift, positive));
}

/* The bits of the first implementation, for comparison with the others. */
static unsigned char kept[16 * COUNT];

static void expect_kept_bits(const tensor_t *t, int first) {
    EXPECT(t->bytes <= sizeof kept);
    if (first) memcpy(kept, t->data, t->bytes);
    EXPECT(memcmp(kept, t->data, t->bytes) == 0);
}

static void forward_of(const function_t *f, norm_format_tag_t src_tag, norm_format_tag_t dst_tag) {
    tensor_t tensors[2] = {tensor_in(dims, norm_f32, src_tag), tensor_in(dims, norm_f32, dst_tag)};
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST};
    norm_primitive_desc_t pd = NULL;
    snprintf(expect_case, sizeof expect_case, "%s", norm_alg_kind2str(f->alg));
    fill(&tensors[0], f->positive, 0);
    MUST(norm_eltwise_forward_primitive_desc_create(&pd, engine, norm_forward_training, f->alg,
            tensors[0].desc, tensors[1].desc, f->alpha, f->beta, NULL));
    int implementations = 0;
    do {
        int wrong = 0;
        tensor_t in_place[2] = {tensors[0], tensors[0]};
        memset(tensors[1].data, TENSOR_FILL, tensors[1].bytes);
        run(pd, 2, ids, tensors);
        for (size_t r = 0; r < tensors[0].rows; ++r)
            for (size_t c = 0; c < tensors[0].cols; ++c) {
                const double x = tensor_get(&tensors[0], r, c);
                wrong += !close_to(tensor_get(&tensors[1], r, c),
                        function_value(f, x), fabs(x) + 0.1);
            }
        EXPECT(wrong == 0);
        expect_kept_bits(&tensors[1], implementations++ == 0);
        if (src_tag != dst_tag) continue;
        unsigned char *first = malloc(tensors[0].bytes);
        memcpy(first, tensors[0].data, tensors[0].bytes);
        run(pd, 2, ids, in_place);
        EXPECT(memcmp(tensors[0].data, tensors[1].data, tensors[0].bytes) == 0);
        memcpy(tensors[0].data, first, tensors[0].bytes);
        free(first);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 2; ++i) tensor_free(&tensors[i]);
}

static void backward_of(const function_t *f, norm_format_tag_t tag) {
    const norm_format_tag_t tags[] = {norm_abc, tag, norm_bca};
    const int from_dst = f->alg != f->formula;
    const int ids[] = {from_dst ? NORM_ARG_DST : NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC};
    tensor_t tensors[3];
    norm_primitive_desc_t pd = NULL;
    for (int i = 0; i < 3; ++i) tensors[i] = tensor_in(dims, norm_f32, tags[i]);
    snprintf(expect_case, sizeof expect_case, "gradient of %s", norm_alg_kind2str(f->alg));
    fill(&tensors[0], f->positive, 0);
    fill(&tensors[1], 0, 11);
    for (size_t r = 0; from_dst && r < tensors[0].rows; ++r)
        for (size_t c = 0; c < tensors[0].cols; ++c)
            tensor_set(&tensors[0], r, c, function_value(f, tensor_get(&tensors[0], r, c)));
    MUST(norm_eltwise_backward_primitive_desc_create(&pd, engine, f->alg, tensors[2].desc,
            tensors[1].desc, tensors[0].desc, f->alpha, f->beta, NULL, NULL));
    int implementations = 0;
    do {
        int wrong = 0;
        memset(tensors[2].data, TENSOR_FILL, tensors[2].bytes);
        run(pd, 3, ids, tensors);
        for (size_t r = 0; r < tensors[0].rows; ++r)
            for (size_t c = 0; c < tensors[0].cols; ++c) {
                const double x = tensor_get(&tensors[0], r, c), y = tensor_get(&tensors[1], r, c);
                wrong += !close_to(tensor_get(&tensors[2], r, c), y * function_slope(f, x), fabs(y));
            }
        EXPECT(wrong == 0);
        expect_kept_bits(&tensors[2], implementations++ == 0);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 3; ++i) tensor_free(&tensors[i]);
}

static size_t place_in(const tensor_t *t, size_t row, size_t col, size_t *at_col) {
    const size_t a = t->dims[0] == 1 ? 0 : row / D1, b = t->dims[1] == 1 ? 0 : row % D1;
    *at_col = t->dims[2] == 1 ? 0 : col;
    return a * (size_t)t->dims[1] + b;
}

static double at(const tensor_t *t, size_t row, size_t col) {
    size_t at_col;
    const size_t at_row = place_in(t, row, col, &at_col);
    return tensor_get(t, at_row, at_col);
}

static int is_whole(norm_data_type_t type) {
    return type == norm_s32 || type == norm_s8 || type == norm_u8;
}

/* Sources of any dimensions and types; optionally a sum with a quarter of the previous dst. */
static void binary_of(norm_alg_kind_t alg, const norm_dim_t *const of[3],
        const norm_data_type_t *types, const norm_format_tag_t *tags, int attributes) {
    const int ids[] = {NORM_ARG_SRC_0, NORM_ARG_SRC_1, NORM_ARG_SRC_2, NORM_ARG_DST,
            NORM_ARG_ATTR_SCALES | NORM_ARG_SRC_0, NORM_ARG_ATTR_SCALES | NORM_ARG_SRC_1};
    const norm_dim_t one[] = {1, 1, 1};
    tensor_t t[6];
    norm_primitive_desc_t pd = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t list = NULL;
    for (int i = 0; i < 3; ++i) {
        t[i] = tensor_in(of[i], i == 2 ? norm_s8 : types[i], tags[i]);
        for (size_t r = 0; r < t[i].rows; ++r)
            for (size_t c = 0; c < t[i].cols; ++c) {
                const size_t n = r * t[i].cols + c;
                tensor_set(&t[i], r, c, i == 2 ? (double)(n % 3 % 2) : (double)((n * (i ? 7 : 5)) % 13) + 1);
            }
    }
    t[3] = tensor_in(dims, types[2], tags[3]);
    for (int i = 4; i < 6; ++i) {
        t[i] = tensor_in(one, norm_f32, norm_abc);
        tensor_set(&t[i], 0, 0, i == 4 ? 0.5 : 2);
    }
    snprintf(expect_case, sizeof expect_case, "%s of %s and %s to %s", norm_alg_kind2str(alg),
            norm_dt2str(types[0]), norm_dt2str(types[1]), norm_dt2str(types[2]));
    if (attributes) {
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC_0, 0));
        MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC_1, 0));
        MUST(norm_post_ops_create(&list));
        MUST(norm_post_ops_append_sum(list, 0.25f, 0, norm_data_type_undef));
        MUST(norm_primitive_attr_set_post_ops(attr, list));
        MUST(norm_post_ops_destroy(list));
    }
    MUST(norm_binary_primitive_desc_create_v2(&pd, engine, alg, t[0].desc, t[1].desc,
            alg == norm_binary_select ? t[2].desc : NULL, t[3].desc, attr));
    int implementations = 0;
    do {
        int wrong = 0;
        for (size_t r = 0; r < t[3].rows; ++r)
            for (size_t c = 0; c < t[3].cols; ++c) tensor_set(&t[3], r, c, 8);
        run(pd, 6, ids, t);
        for (size_t r = 0; r < t[3].rows; ++r)
            for (size_t c = 0; c < t[3].cols; ++c) {
                const double x = at(&t[0], r, c) * (attributes ? 0.5 : 1);
                const double y = at(&t[1], r, c) * (attributes ? 2 : 1);
                double want
                        = binary_value(alg, x, y, at(&t[2], r, c)) + (attributes ? 2 : 0);
                if (types[2] == norm_u8) want = fmax(0, want);
                const double got = tensor_get(&t[3], r, c);
                wrong += fabs(got - want) > (is_whole(types[2])
                                                    ? 0.500001
                                                    : 0.75 * element_ulp(types[2], want));
            }
        EXPECT(wrong == 0);
        expect_kept_bits(&t[3], implementations++ == 0);
    } while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
    for (int i = 0; i < 6; ++i) tensor_free(&t[i]);
}

static void binaries(void) {
    static const norm_dim_t whole[] = {D0, D1, D2}, channel[] = {1, D1, 1}, row[] = {1, 1, D2},
                            col[] = {D0, D1, 1}, single[] = {1, 1, 1}, first[] = {D0, 1, D2};
    static const norm_dim_t *const shapes[][3] = {{whole, whole, whole}, {whole, channel, col},
            {whole, row, whole}, {whole, single, single}, {row, col, whole}, {channel, first, row},
            {whole, col, whole}};
    static const norm_data_type_t types[][3] = {{norm_f32, norm_f32, norm_f32},
            {norm_bf16, norm_f32, norm_f16}, {norm_s8, norm_u8, norm_s32},
            {norm_s32, norm_f16, norm_f32}, {norm_f32, norm_bf16, norm_bf16},
            {norm_u8, norm_s32, norm_u8}};
    static const norm_format_tag_t tags[][4] = {{norm_abc, norm_abc, norm_abc, norm_abc},
            {norm_acb, norm_abc, norm_cab, norm_acb}, {norm_abc, norm_cba, norm_abc, norm_bac}};
    for (norm_alg_kind_t alg = norm_binary_add; alg <= norm_binary_select; ++alg)
        for (int s = 0; s < 7; ++s)
            binary_of(alg, shapes[s], types[s % 6], tags[s % 3], 0);
    for (int s = 0; s < 7; ++s)
        for (int t = 0; t < 6; ++t)
            for (int tag = 0; tag < 3; ++tag)
                binary_of(norm_binary_mul, shapes[s], types[t], tags[tag], (s + t) % 2);
}

/* Blocked layouts: padding becomes zero, even if the function of zero is not. */
static void padding(void) {
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST};
    tensor_t plain = tensor_in(dims, norm_f32, norm_abc);
    norm_memory_desc_t blocked = desc_of(dims, norm_f32, norm_aBc16b);
    const norm_memory_desc_t both[] = {blocked, plain.desc};
    for (int from = 0; from < 2; ++from) {
        norm_primitive_desc_t pd = NULL;
        tensor_t src = tensor_like(both[from], engine), dst = tensor_like(blocked, engine);
        const tensor_t tensors[] = {src, dst};
        memset(src.data, 0, src.bytes);
        snprintf(expect_case, sizeof expect_case, "padding, from %d", from);
        MUST(norm_eltwise_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
                norm_eltwise_exp, src.desc, dst.desc, 0, 0, NULL));
        do {
            int ones = 0, zeros = 0;
            const float *got = (const float *)(void *)dst.data;
            memset(dst.data, TENSOR_FILL, dst.bytes);
            run(pd, 2, ids, tensors);
            for (size_t i = 0; i < dst.bytes / sizeof *got; ++i) {
                ones += got[i] == 1;
                zeros += got[i] == 0;
            }
            EXPECT(ones == COUNT && zeros == D0 * (32 - D1) * D2);
        } while (norm_primitive_desc_next_impl(pd) == norm_success);
        MUST(norm_primitive_desc_destroy(pd));
        tensor_free(&src);
        tensor_free(&dst);
    }
    MUST(norm_memory_desc_destroy(blocked));
    tensor_free(&plain);
}

/* Large gates, no elements, and tensors that are stored non-temporally. */
static void edges(void) {
    static const float gates[] = {-100, -200, 100, INFINITY, 0, -0.0f};
    const int ids[] = {NORM_ARG_SRC, NORM_ARG_DST};
    const norm_dim_t six[] = {1, 1, 6}, none[] = {3, 0, 5}, many[] = {1, 1, 5000003};
    tensor_t t[2] = {tensor_in(six, norm_f32, norm_abc), tensor_in(six, norm_f32, norm_abc)};
    norm_primitive_desc_t pd = NULL;
    for (size_t i = 0; i < 6; ++i) tensor_set(&t[0], 0, i, gates[i]);
    MUST(norm_eltwise_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_eltwise_swish, t[0].desc, t[1].desc, 1, 0, NULL));
    run(pd, 2, ids, t);
    EXPECT(fabs(tensor_get(&t[1], 0, 0)) < 1e-40 && fabs(tensor_get(&t[1], 0, 1)) == 0);
    EXPECT(tensor_get(&t[1], 0, 2) == 100 && tensor_get(&t[1], 0, 3) == (double)INFINITY);
    EXPECT(tensor_get(&t[1], 0, 4) == 0 && tensor_get(&t[1], 0, 5) == 0);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 2; ++i) tensor_free(&t[i]);
    for (int i = 0; i < 2; ++i) t[i] = tensor_in(none, norm_f32, norm_abc);
    MUST(norm_eltwise_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_eltwise_exp, t[0].desc, t[1].desc, 1, 0, NULL));
    do run(pd, 2, ids, t);
    while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 2; ++i) tensor_free(&t[i]);
    for (int i = 0; i < 2; ++i) t[i] = tensor_in(many, norm_f32, norm_abc);
    for (size_t i = 0; i < 5000003; ++i) tensor_set(&t[0], 0, i, number(i, 0));
    MUST(norm_eltwise_forward_primitive_desc_create(&pd, engine, norm_forward_inference,
            norm_eltwise_linear, t[0].desc, t[1].desc, 2, 1, NULL));
    for (int threads = 1; threads <= 3; threads += 2) {
        int wrong = 0;
        MUST(norm_set_num_threads(threads));
        memset(t[1].data, TENSOR_FILL, t[1].bytes);
        run(pd, 2, ids, t);
        for (size_t i = 0; i < 5000003; ++i)
            wrong += tensor_get(&t[1], 0, i) != 2 * number(i, 0) + 1;
        EXPECT(wrong == 0);
    }
    MUST(norm_set_num_threads(0));
    MUST(norm_primitive_desc_destroy(pd));
    for (int i = 0; i < 2; ++i) tensor_free(&t[i]);
}

static void queries(void) {
    norm_memory_desc_t desc = desc_of(dims, norm_f32, norm_acb);
    norm_memory_desc_t any = desc_of(dims, norm_bf16, norm_format_tag_any);
    norm_memory_desc_t mask = desc_of(dims, norm_s8, norm_format_tag_any);
    norm_primitive_desc_t forward = NULL, backward = NULL, select = NULL;
    norm_alg_kind_t alg = norm_alg_kind_undef;
    norm_prop_kind_t kind = norm_prop_kind_undef;
    float alpha = 0, beta = 0;
    MUST(norm_eltwise_forward_primitive_desc_create(&forward, engine, norm_forward_training,
            norm_eltwise_linear, desc, any, 2, 3, NULL));
    MUST(norm_eltwise_backward_primitive_desc_create(&backward, engine,
            norm_eltwise_relu_use_dst_for_bwd, any, any, desc, 0.5f, 0, forward, NULL));
    MUST(norm_binary_primitive_desc_create_v2(
            &select, engine, norm_binary_select, desc, any, mask, any, NULL));
    MUST(norm_primitive_desc_query(forward, norm_query_alpha_f32, 0, &alpha));
    MUST(norm_primitive_desc_query(forward, norm_query_beta_f32, 0, &beta));
    EXPECT(alpha == 2 && beta == 3);
    MUST(norm_primitive_desc_query(backward, norm_query_alg_kind, 0, &alg));
    MUST(norm_primitive_desc_query(backward, norm_query_prop_kind, 0, &kind));
    EXPECT(alg == norm_eltwise_relu_use_dst_for_bwd && kind == norm_backward_data);
    EXPECT(norm_primitive_desc_query_md(backward, norm_query_dst_md, 0) != NULL);
    EXPECT(norm_memory_desc_get_size(norm_primitive_desc_query_md(backward, norm_query_src_md, 0)) == 0);
    EXPECT(norm_primitive_desc_query_s32(backward, norm_query_num_of_inputs_s32, 0) == 2);
    EXPECT(norm_primitive_desc_query_s32(select, norm_query_num_of_inputs_s32, 0) == 3);
    EXPECT(norm_primitive_desc_query_s32(select, norm_query_num_of_outputs_s32, 0) == 1);
    for (int i = 0; i < 3; ++i) {
        const_norm_memory_desc_t md = norm_primitive_desc_query_md(select, norm_query_src_md, i);
        const norm_dims_t *strides = NULL;
        MUST(norm_memory_desc_query(md, norm_query_strides, (void *)&strides));
        EXPECT((*strides)[1] == 1 && (*strides)[2] == D1);
    }
    EXPECT(norm_primitive_desc_query(select, norm_query_prop_kind, 0, &kind) != norm_success);
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
    MUST(norm_primitive_desc_destroy(select));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(any));
    MUST(norm_memory_desc_destroy(mask));
}

static void refusals(void) {
    norm_primitive_desc_t out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    norm_post_ops_t chain = NULL;
    const norm_dim_t other_dims[] = {D0, D1, 2}, single[] = {1, 1, 1};
    norm_memory_desc_t good = desc_of(dims, norm_f32, norm_abc);
    norm_memory_desc_t any = desc_of(dims, norm_f32, norm_format_tag_any);
    norm_memory_desc_t other = desc_of(other_dims, norm_f32, norm_abc);
    norm_memory_desc_t one = desc_of(single, norm_f32, norm_abc);
    norm_memory_desc_t s32 = desc_of(dims, norm_s32, norm_abc);
    norm_memory_desc_t f64 = desc_of(dims, norm_f64, norm_abc);
    const norm_prop_kind_t fwd = norm_forward_inference;
    const norm_alg_kind_t exp_of = norm_eltwise_exp, add = norm_binary_add;
    INVALID("alg_kind", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, norm_binary_add, good, good, 0, 0, NULL));
    INVALID("prop_kind", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, norm_backward_data, exp_of, good, good, 0, 0, NULL));
    INVALID("beta", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, norm_eltwise_clip, good, good, 1, 0, NULL));
    INVALID("alpha", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, exp_of, good, good, NAN, 0, NULL));
    INVALID("src_desc", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, exp_of, any, good, 0, 0, NULL));
    INVALID("dst_desc", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, exp_of, good, other, 0, 0, NULL));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_post_ops_create(&chain));
    MUST(norm_post_ops_append_eltwise(chain, norm_eltwise_abs, 0, 0));
    MUST(norm_primitive_attr_set_post_ops(attr, chain));
    REFUSED(norm_unimplemented, "attr", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, exp_of, f64, good, 0, 0, attr));
    MUST(norm_post_ops_destroy(chain));
    MUST(norm_primitive_attr_destroy(attr));
    REFUSED(norm_unimplemented, "src1_desc", norm_binary_primitive_desc_create,
            (&out, engine, add, good, f64, good, NULL));
    INVALID("alg_kind", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, norm_eltwise_round, good, good, good, 0, 0, NULL, NULL));
    INVALID("alpha", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, norm_eltwise_elu_use_dst_for_bwd, good, good, good, -1, 0, NULL, NULL));
    INVALID("data_desc", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, exp_of, good, good, any, 0, 0, NULL, NULL));
    INVALID("diff_dst_desc", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, exp_of, good, other, good, 0, 0, NULL, NULL));
    INVALID("diff_src_desc", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, exp_of, other, good, good, 0, 0, NULL, NULL));
    REFUSED(norm_unimplemented, "diff_src_desc", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, exp_of, s32, good, good, 0, 0, NULL, NULL));
    INVALID("alg_kind", norm_binary_primitive_desc_create,
            (&out, engine, norm_eltwise_relu, good, good, good, NULL));
    INVALID("src0_desc", norm_binary_primitive_desc_create,
            (&out, engine, add, any, good, good, NULL));
    INVALID("src1_desc", norm_binary_primitive_desc_create,
            (&out, engine, add, good, other, good, NULL));
    INVALID("dst_desc", norm_binary_primitive_desc_create,
            (&out, engine, add, one, one, good, NULL));
    INVALID("src2_desc", norm_binary_primitive_desc_create,
            (&out, engine, norm_binary_select, good, good, good, NULL));
    INVALID("src2_desc", norm_binary_primitive_desc_create_v2,
            (&out, engine, norm_binary_select, good, good, good, good, NULL));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_DST, 0));
    REFUSED(norm_unimplemented, "attr", norm_binary_primitive_desc_create,
            (&out, engine, add, good, good, good, attr));
    REFUSED(norm_unimplemented, "attr", norm_eltwise_forward_primitive_desc_create,
            (&out, engine, fwd, exp_of, good, good, 0, 0, attr));
    REFUSED(norm_unimplemented, "attr", norm_eltwise_backward_primitive_desc_create,
            (&out, engine, exp_of, good, good, good, 0, 0, NULL, attr));
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
    const norm_memory_desc_t all[] = {good, any, other, one, s32, f64};
    for (int i = 0; i < 6; ++i) MUST(norm_memory_desc_destroy(all[i]));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (size_t i = 0; i < FUNCTIONS; ++i) {
        forward_of(&functions[i], norm_abc, norm_abc);
        forward_of(&functions[i], norm_abc, norm_cab);
        if (functions[i].alg == norm_eltwise_round) continue;
        backward_of(&functions[i], norm_abc);
        backward_of(&functions[i], norm_acb);
    }
    binaries();
    padding();
    edges();
    queries();
    refusals();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("elementwise");
}
