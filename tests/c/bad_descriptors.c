/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Invalid input to the functions of primitive descriptors and primitives: a valid
 * problem with one error at a time.
 */
#include "refused.h"

#include <math.h>

static norm_engine_t engine;
/* Valid and invalid parts of problems. */
static norm_memory_desc_t good, stats, other_dims, any, empty, flat, deep, overlapping;
static norm_memory_desc_t stats_f16, stats_short, stats_deep;

static norm_memory_desc_t describe(
        int ndims, norm_dim_t first, norm_dim_t last, norm_data_type_t type, norm_format_tag_t tag) {
    norm_dims_t dims;
    norm_memory_desc_t desc = NULL;
    for (int i = 0; i < NORM_MAX_NDIMS; ++i) dims[i] = i + 1 == ndims ? last : first;
    MUST(norm_memory_desc_create_with_tag(&desc, ndims, dims, type, tag));
    return desc;
}

/* Both forward functions, with the arguments and the error of the row. */
#define FORWARD(want, parameter, out, engine, prop, src, dst, stat, eps, flags, attr) \
    do { \
        REFUSED(want, parameter, norm_layer_normalization_forward_primitive_desc_create, \
                (out, engine, prop, src, dst, stat, eps, flags, attr)); \
        REFUSED(want, parameter, norm_layer_normalization_forward_primitive_desc_create_v2, \
                (out, engine, prop, src, dst, stat, norm_f32, eps, flags, attr)); \
    } while (0)

#define BACKWARD(want, parameter, out, engine, prop, dsrc, ddst, src, stat, eps, flags) \
    do { \
        REFUSED(want, parameter, norm_layer_normalization_backward_primitive_desc_create, \
                (out, engine, prop, dsrc, ddst, src, stat, eps, flags, NULL, NULL)); \
        REFUSED(want, parameter, norm_layer_normalization_backward_primitive_desc_create_v2, \
                (out, engine, prop, dsrc, ddst, src, stat, norm_f32, norm_f32, eps, flags, NULL, \
                        NULL)); \
    } while (0)

#define BAD norm_invalid_arguments

static const unsigned no_flags[] = {norm_fuse_norm_relu, norm_fuse_norm_add_relu, 0x40,
        1u << 24, 1u << 31, UINT_MAX, norm_rms_norm | 0x80};
#define NO_FLAGS (sizeof no_flags / sizeof no_flags[0])

static void forward(void) {
    norm_primitive_desc_t out = UNTOUCHED;
    const norm_prop_kind_t kind = norm_forward_training;
    const unsigned flags = norm_use_scale;
    static const int no_kind[] = {-1, 1000, INT_MAX, norm_prop_kind_undef, norm_backward,
            norm_backward_data};
    const float no_epsilon[] = {-1, -1e-30f, NAN, INFINITY, -INFINITY};
    const float eps = 1e-5f;
    FORWARD(BAD, "primitive_desc", NULL, engine, kind, good, good, stats, eps, flags, NULL);
    FORWARD(BAD, "engine", &out, NULL, kind, good, good, stats, eps, flags, NULL);
    FORWARD(BAD, "src_desc", &out, engine, kind, NULL, good, stats, eps, flags, NULL);
    FORWARD(BAD, "src_desc", &out, engine, kind, any, good, stats, eps, flags, NULL);
    FORWARD(BAD, "src_desc", &out, engine, kind, empty, good, stats, eps, flags, NULL);
    FORWARD(BAD, "src_desc", &out, engine, kind, flat, flat, NULL, eps, flags, NULL);
    FORWARD(BAD, "src_desc", &out, engine, kind, deep, deep, NULL, eps, flags, NULL);
    FORWARD(BAD, "dst_desc", &out, engine, kind, good, NULL, stats, eps, flags, NULL);
    FORWARD(BAD, "dst_desc", &out, engine, kind, good, empty, stats, eps, flags, NULL);
    FORWARD(BAD, "dst_desc", &out, engine, kind, good, other_dims, stats, eps, flags, NULL);
    FORWARD(BAD, "dst_desc", &out, engine, kind, good, flat, stats, eps, flags, NULL);
    FORWARD(BAD, "dst_desc", &out, engine, kind, good, overlapping, stats, eps, flags, NULL);
    FORWARD(BAD, "stat_desc", &out, engine, kind, good, good, stats_short, eps, flags, NULL);
    FORWARD(BAD, "stat_desc", &out, engine, kind, good, good, stats_deep, eps, flags, NULL);
    FORWARD(norm_unimplemented, "stat_desc", &out, engine, kind, good, good, stats_f16, eps,
            flags, NULL);
    for (int i = 0; i < 6; ++i)
        FORWARD(BAD, "prop_kind", &out, engine, (norm_prop_kind_t)no_kind[i], good, good, stats,
                eps, flags, NULL);
    for (int i = 0; i < 5; ++i)
        FORWARD(BAD, "epsilon", &out, engine, kind, good, good, stats, no_epsilon[i], flags, NULL);
    for (size_t i = 0; i < NO_FLAGS; ++i)
        FORWARD(BAD, "flags", &out, engine, kind, good, good, stats, eps, no_flags[i], NULL);
    for (int i = 0; i <= NO_ENUMERATORS; ++i)
        INVALID("scale_shift_data_type",
                norm_layer_normalization_forward_primitive_desc_create_v2,
                (&out, engine, kind, good, good, stats,
                        i < NO_ENUMERATORS ? (norm_data_type_t)no_enumerator[i]
                                           : norm_data_type_undef,
                        eps, flags, NULL));
    EXPECT(out == UNTOUCHED);
}

static void backward(void) {
    norm_primitive_desc_t out = UNTOUCHED;
    const norm_prop_kind_t kind = norm_backward;
    const unsigned flags = norm_use_scale | norm_use_shift;
    static const int no_kind[] = {-1, 1000, INT_MAX, norm_prop_kind_undef, norm_forward_training,
            norm_forward_inference};
    const float no_epsilon[] = {-1, -1e-30f, NAN, INFINITY, -INFINITY};
    const float eps = 1e-5f;
    norm_memory_desc_t bad_diff[] = {NULL, empty, other_dims, flat};
    BACKWARD(BAD, "primitive_desc", NULL, engine, kind, good, good, good, stats, eps, flags);
    BACKWARD(BAD, "engine", &out, NULL, kind, good, good, good, stats, eps, flags);
    for (int i = 0; i < 4; ++i) {
        BACKWARD(BAD, "diff_src_desc", &out, engine, kind, bad_diff[i], good, good, stats, eps,
                flags);
        BACKWARD(BAD, "diff_dst_desc", &out, engine, kind, good, bad_diff[i], good, stats, eps,
                flags);
    }
    BACKWARD(BAD, "diff_src_desc", &out, engine, kind, overlapping, good, good, stats, eps, flags);
    BACKWARD(BAD, "src_desc", &out, engine, kind, good, good, NULL, stats, eps, flags);
    BACKWARD(BAD, "src_desc", &out, engine, kind, good, good, empty, stats, eps, flags);
    BACKWARD(BAD, "src_desc", &out, engine, kind, flat, flat, flat, NULL, eps, flags);
    BACKWARD(BAD, "src_desc", &out, engine, kind, deep, deep, deep, NULL, eps, flags);
    BACKWARD(BAD, "stat_desc", &out, engine, kind, good, good, good, stats_short, eps, flags);
    BACKWARD(BAD, "stat_desc", &out, engine, kind, good, good, good, stats_deep, eps, flags);
    BACKWARD(norm_unimplemented, "stat_desc", &out, engine, kind, good, good, good, stats_f16,
            eps, flags);
    for (int i = 0; i < 6; ++i)
        BACKWARD(BAD, "prop_kind", &out, engine, (norm_prop_kind_t)no_kind[i], good, good, good,
                stats, eps, flags);
    for (int i = 0; i < 5; ++i)
        BACKWARD(BAD, "epsilon", &out, engine, kind, good, good, good, stats, no_epsilon[i],
                flags);
    for (size_t i = 0; i < NO_FLAGS; ++i)
        BACKWARD(BAD, "flags", &out, engine, kind, good, good, good, stats, eps, no_flags[i]);
    for (int i = 0; i <= NO_ENUMERATORS; ++i) {
        const norm_data_type_t type = i < NO_ENUMERATORS ? (norm_data_type_t)no_enumerator[i]
                                                         : norm_data_type_undef;
        INVALID("scale_shift_data_type",
                norm_layer_normalization_backward_primitive_desc_create_v2,
                (&out, engine, kind, good, good, good, stats, norm_f32, type, eps, flags, NULL,
                        NULL));
        INVALID("diff_scale_shift_data_type",
                norm_layer_normalization_backward_primitive_desc_create_v2,
                (&out, engine, kind, good, good, good, stats, type, norm_f32, eps, flags, NULL,
                        NULL));
    }
    EXPECT(out == UNTOUCHED);
}

/* Element types that layer normalization does not support. */
static void types_not_built(void) {
    static const norm_data_type_t types[] = {norm_s32};
    norm_primitive_desc_t out = UNTOUCHED;
    const unsigned flags = norm_use_scale;
    for (int i = 0; i < 1; ++i) {
        norm_memory_desc_t odd = describe(2, 3, 5, types[i], norm_ab);
        FORWARD(norm_unimplemented, "src_desc", &out, engine, norm_forward_inference, odd, good,
                NULL, 0, flags, NULL);
        FORWARD(norm_unimplemented, "dst_desc", &out, engine, norm_forward_inference, good, odd,
                NULL, 0, flags, NULL);
        BACKWARD(norm_unimplemented, "diff_src_desc", &out, engine, norm_backward, odd, good,
                good, NULL, 0, flags);
        BACKWARD(norm_unimplemented, "diff_dst_desc", &out, engine, norm_backward, good, odd,
                good, NULL, 0, flags);
        BACKWARD(norm_unimplemented, "src_desc", &out, engine, norm_backward, good, good, odd,
                NULL, 0, flags);
        REFUSED(norm_unimplemented, "scale_shift_data_type",
                norm_layer_normalization_forward_primitive_desc_create_v2,
                (&out, engine, norm_forward_inference, good, good, NULL, types[i], 0, flags,
                        NULL));
        REFUSED(norm_unimplemented, "diff_scale_shift_data_type",
                norm_layer_normalization_backward_primitive_desc_create_v2,
                (&out, engine, norm_backward, good, good, good, NULL, types[i], norm_f32, 0,
                        flags, NULL, NULL));
        MUST(norm_memory_desc_destroy(odd));
    }
    EXPECT(out == UNTOUCHED);
}

/* Attributes may have scales per group, but this operation does not support them. */
static void groups(void) {
    const norm_dims_t group = {1, 5};
    norm_primitive_desc_t out = UNTOUCHED;
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scales(attr, NORM_ARG_SRC, 3, 2, group, norm_f32));
    FORWARD(norm_unimplemented, "attr", &out, engine, norm_forward_inference, good, good, NULL,
            0, 0, attr);
    EXPECT(out == UNTOUCHED);
    MUST(norm_primitive_attr_destroy(attr));
}

/* If src has the layout `any`, backward uses that of diff_dst. */
static void any_src(void) {
    norm_primitive_desc_t pd = NULL;
    norm_memory_desc_t columns = describe(2, 3, 5, norm_f32, norm_ba);
    MUST(norm_layer_normalization_backward_primitive_desc_create(
            &pd, engine, norm_backward, any, columns, any, NULL, 0, 0, NULL, NULL));
    EXPECT(norm_memory_desc_equal(
            norm_primitive_desc_query_md(pd, norm_query_src_md, 0), columns));
    EXPECT(norm_memory_desc_equal(
            norm_primitive_desc_query_md(pd, norm_query_diff_src_md, 0), columns));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_layer_normalization_backward_primitive_desc_create(
            &pd, engine, norm_backward, any, any, any, NULL, 0, 0, NULL, NULL));
    EXPECT(norm_memory_desc_equal(norm_primitive_desc_query_md(pd, norm_query_src_md, 0), good));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(columns));
}

static void questions(void) {
    norm_primitive_desc_t pd = NULL, out = UNTOUCHED;
    norm_primitive_t primitive = NULL, no_primitive = UNTOUCHED;
    const_norm_primitive_attr_t attr = UNTOUCHED;
    const_norm_primitive_desc_t its = UNTOUCHED;
    long long result[2] = {0x5A5A5A5A, 0x5A5A5A5A};
    int ndims = -1;
    MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
            norm_forward_training, good, good, NULL, 0, norm_rms_norm, NULL));
    INVALID("primitive_desc", norm_primitive_desc_next_impl, (NULL));
    INVALID("primitive_desc", norm_primitive_desc_clone, (NULL, pd));
    INVALID("existing_primitive_desc", norm_primitive_desc_clone, (&out, NULL));
    INVALID("primitive_desc", norm_primitive_desc_get_attr, (NULL, &attr));
    INVALID("attr", norm_primitive_desc_get_attr, (pd, NULL));
    INVALID("primitive_desc", norm_primitive_desc_query, (NULL, norm_query_flags, 0, result));
    INVALID("result", norm_primitive_desc_query, (pd, norm_query_flags, 0, NULL));
    REFUSED(norm_unimplemented, "what", norm_primitive_desc_query, (pd, norm_query_undef, 0, result));
    REFUSED(norm_unimplemented, "what", norm_primitive_desc_query, (pd, norm_query_dims, 0, result));
    FAILS_WITH(NULL, "primitive_desc", norm_primitive_desc_query_md,
            (NULL, norm_query_src_md, 0));
    FAILS_WITH(NULL, "what", norm_primitive_desc_query_md, (pd, norm_query_flags, 0));
    FAILS_WITH(NULL, "what", norm_primitive_desc_query_md, (pd, norm_query_some_md, 0));
    FAILS_WITH(0, "primitive_desc", norm_primitive_desc_query_s32,
            (NULL, norm_query_num_of_inputs_s32, 0));
    FAILS_WITH(0, "what", norm_primitive_desc_query_s32, (pd, norm_query_epsilon_f32, 0));
    for (int i = 0; i < NO_ENUMERATORS; ++i) {
        const norm_query_t what = (norm_query_t)no_enumerator[i];
        REFUSED(norm_unimplemented, "what", norm_primitive_desc_query, (pd, what, 0, result));
        FAILS_WITH(NULL, "what", norm_primitive_desc_query_md, (pd, what, 0));
        FAILS_WITH(0, "what", norm_primitive_desc_query_s32, (pd, what, 0));
    }
    /* rms_norm has no mean: the query fails, and the descriptor is empty. */
    EXPECT(norm_primitive_desc_query(pd, norm_query_exec_arg_md, NORM_ARG_MEAN, result)
            == norm_not_required);
    MUST(norm_memory_desc_query(
            norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, NORM_ARG_MEAN),
            norm_query_ndims_s32, &ndims));
    EXPECT(ndims == 0);
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        EXPECT(norm_primitive_desc_query(pd, norm_query_src_md, no_enumerator[i], result)
                != norm_success);

    MUST(norm_primitive_create(&primitive, pd));
    INVALID("primitive", norm_primitive_create, (NULL, pd));
    INVALID("primitive_desc", norm_primitive_create, (&no_primitive, NULL));
    INVALID("primitive", norm_primitive_get_primitive_desc, (NULL, &its));
    INVALID("primitive_desc", norm_primitive_get_primitive_desc, (primitive, NULL));
    EXPECT(out == UNTOUCHED && no_primitive == UNTOUCHED && attr == UNTOUCHED && its == UNTOUCHED);
    EXPECT(result[0] == 0x5A5A5A5A && result[1] == 0x5A5A5A5A);
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    const norm_dims_t dims = {3, 5}, same_place = {0, 1};
    MUST(norm_memory_desc_create_with_strides(&overlapping, 2, dims, norm_f32, same_place));
    MUST(norm_memory_desc_create_with_tag(
            &empty, 0, NULL, norm_data_type_undef, norm_format_tag_undef));
    good = describe(2, 3, 5, norm_f32, norm_ab);
    stats = describe(1, 3, 3, norm_f32, norm_a);
    other_dims = describe(2, 3, 6, norm_f32, norm_ab);
    any = describe(2, 3, 5, norm_f32, norm_format_tag_any);
    flat = describe(1, 5, 5, norm_f32, norm_a);
    deep = describe(6, 2, 5, norm_f32, norm_abcdef);
    stats_f16 = describe(1, 3, 3, norm_f16, norm_a);
    stats_short = describe(1, 2, 2, norm_f32, norm_a);
    stats_deep = describe(2, 3, 1, norm_f32, norm_ab);
    forward();
    backward();
    types_not_built();
    groups();
    any_src();
    questions();
    norm_memory_desc_t all[] = {good, stats, other_dims, any, empty, flat, deep, overlapping,
            stats_f16, stats_short, stats_deep};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        MUST(norm_memory_desc_destroy(all[i]));
    MUST(norm_engine_destroy(engine));
    return expect_summary("bad_descriptors");
}
