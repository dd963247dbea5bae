/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reorder: layouts, types, scales, zero points, sums.
 */
#include "problem.h"

static float values[MAX_ELEMENTS];

/* Logical elements of a plain descriptor. */
static void read_as_f32(dnnl_memory_t memory, const dnnl_dims_t dims, int ndims, int count,
        const char *name, int digits) {
    static const dnnl_format_tag_t plain[]
            = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    const_dnnl_memory_desc_t desc;
    dnnl_primitive_desc_t problem;
    dnnl_memory_t floats;
    void *data;
    dnnl_memory_desc_t wanted = with_tag(ndims, dims, dnnl_f32, plain[ndims - 1]);
    OK(dnnl_memory_get_memory_desc(memory, &desc));
    OK(dnnl_reorder_primitive_desc_create(&problem, desc, engine, wanted, engine, NULL));
    dnnl_primitive_desc_t only = NULL;
    OK(dnnl_primitive_desc_clone(&only, problem));
    printf("next: %s\n", dnnl_status2str(dnnl_primitive_desc_next_impl(only)));
    OK(dnnl_primitive_desc_destroy(only));
    OK(dnnl_memory_create(&floats, wanted, engine, DNNL_MEMORY_ALLOCATE));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, memory}, {DNNL_ARG_TO, floats}};
    run(problem, 2, args);
    OK(dnnl_memory_map_data(floats, &data));
    print_values(name, data, count, digits);
    OK(dnnl_memory_unmap_data(floats, data));
    OK(dnnl_memory_destroy(floats));
    OK(dnnl_primitive_desc_destroy(problem));
    OK(dnnl_memory_desc_destroy(wanted));
}

struct side {
    dnnl_data_type_t type;
    dnnl_format_tag_t tag;
};

/* Reorders from dense f32 to the second layout and back. */
static void reorder(int ndims, const dnnl_dims_t dims, struct side from, struct side to,
        dnnl_primitive_attr_t attr, const float *scale, const char *known) {
    static const dnnl_format_tag_t plain[]
            = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    char name[160];
    snprintf(name, sizeof name, "%s %s to %s %s", dnnl_dt2str(from.type),
            dnnl_fmt_tag2str(from.tag), dnnl_dt2str(to.type), dnnl_fmt_tag2str(to.tag));
    int count = 1;
    for (int i = 0; i < ndims; ++i)
        count *= (int)dims[i];
    dnnl_memory_desc_t first = with_tag(ndims, dims, dnnl_f32, plain[ndims - 1]);
    dnnl_memory_desc_t source = with_tag(ndims, dims, from.type, from.tag);
    dnnl_memory_desc_t target = with_tag(ndims, dims, to.type, to.tag);
    dnnl_primitive_desc_t in, problem;
    OK(dnnl_reorder_primitive_desc_create(&in, first, engine, source, engine, NULL));
    const dnnl_status_t status
            = dnnl_reorder_primitive_desc_create(&problem, source, engine, target, engine, attr);
    if (known)
        printf("* %s: %s: %s\n", known, name, dnnl_status2str(status));
    else
        STATUS(name, status);
    if (status == dnnl_success) {
        dnnl_memory_t memories[3], scales = NULL;
        void *data;
        OK(dnnl_memory_create(&memories[0], first, engine, DNNL_MEMORY_ALLOCATE));
        OK(dnnl_memory_create(&memories[1], source, engine, DNNL_MEMORY_ALLOCATE));
        OK(dnnl_memory_create(&memories[2], target, engine, DNNL_MEMORY_ALLOCATE));
        OK(dnnl_memory_map_data(memories[0], &data));
        memcpy(data, values, sizeof *values * (size_t)count);
        OK(dnnl_memory_unmap_data(memories[0], data));
        OK(dnnl_memory_map_data(memories[2], &data));
        memset(data, 0, dnnl_memory_desc_get_size(target));
        OK(dnnl_memory_unmap_data(memories[2], data));
        const dnnl_exec_arg_t args[]
                = {{DNNL_ARG_FROM, memories[0]}, {DNNL_ARG_TO, memories[1]}};
        run(in, 2, args);
        dnnl_exec_arg_t last[] = {{DNNL_ARG_FROM, memories[1]}, {DNNL_ARG_TO, memories[2]},
                {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, NULL}};
        if (scale) {
            const dnnl_dims_t one = {1};
            dnnl_memory_desc_t desc = with_tag(1, one, dnnl_f32, dnnl_a);
            OK(dnnl_memory_create(&scales, desc, engine, DNNL_MEMORY_ALLOCATE));
            OK(dnnl_memory_map_data(scales, &data));
            memcpy(data, scale, sizeof *scale);
            OK(dnnl_memory_unmap_data(scales, data));
            OK(dnnl_memory_desc_destroy(desc));
            last[2].memory = scales;
        }
        run(problem, scale ? 3 : 2, last);
        if (!known) read_as_f32(memories[2], dims, ndims, count, "  values", 2);
        for (int i = 0; i < 3; ++i)
            OK(dnnl_memory_destroy(memories[i]));
        OK(dnnl_memory_destroy(scales));
        OK(dnnl_primitive_desc_destroy(problem));
    }
    OK(dnnl_primitive_desc_destroy(in));
    OK(dnnl_memory_desc_destroy(first));
    OK(dnnl_memory_desc_destroy(source));
    OK(dnnl_memory_desc_destroy(target));
}

static void layouts(void) {
    static const struct {
        int ndims;
        dnnl_format_tag_t from, to;
    } cases[] = {{1, dnnl_a, dnnl_a}, {2, dnnl_ab, dnnl_ba}, {2, dnnl_ba, dnnl_ab},
            {3, dnnl_abc, dnnl_cab}, {3, dnnl_acb, dnnl_bac}, {4, dnnl_nchw, dnnl_nhwc},
            {4, dnnl_abcd, dnnl_dcab}, {5, dnnl_abcde, dnnl_acdeb}, {2, dnnl_ab, dnnl_AB16b16a},
            {3, dnnl_aBc8b, dnnl_abc}, {4, dnnl_nchw, dnnl_nChw16c}, {4, dnnl_nChw8c, dnnl_nhwc}};
    const dnnl_dims_t dims = {2, 5, 3, 2, 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const struct side from = {dnnl_f32, cases[i].from}, to = {dnnl_f32, cases[i].to};
        reorder(cases[i].ndims, dims, from, to, NULL, NULL, NULL);
    }
}

static void types(void) {
    static const dnnl_data_type_t all[] = {dnnl_f32, dnnl_bf16, dnnl_s32, dnnl_s8, dnnl_u8};
    const dnnl_dims_t dims = {3, 4};
    for (int f = 0; f < 5; ++f)
        for (int t = 0; t < 5; ++t) {
            const struct side from = {all[f], dnnl_ab}, to = {all[t], dnnl_ba};
            const int is_known = (all[f] == dnnl_bf16 && all[t] == dnnl_s32)
                    || (all[f] == dnnl_s32 && all[t] == dnnl_bf16);
            reorder(2, dims, from, to, NULL, NULL, is_known ? "reorder bf16 and s32" : NULL);
        }
}

static void attributes(void) {
    const dnnl_dims_t dims = {3, 4};
    const float scale = 0.5f;
    const struct side floats = {dnnl_f32, dnnl_ab}, bytes = {dnnl_s8, dnnl_ab};
    dnnl_primitive_attr_t attr;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_SRC, 0));
    reorder(2, dims, floats, bytes, attr, &scale, NULL);
    reorder(2, dims, bytes, floats, attr, &scale, NULL);
    reorder(2, dims, floats, floats, attr, &scale, NULL);
    OK(dnnl_primitive_attr_destroy(attr));
    dnnl_post_ops_t sum;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_post_ops_create(&sum));
    OK(dnnl_post_ops_append_sum(sum, 2, 0, dnnl_data_type_undef));
    OK(dnnl_primitive_attr_set_post_ops(attr, sum));
    OK(dnnl_post_ops_destroy(sum));
    reorder(2, dims, floats, floats, attr, NULL, NULL);
    OK(dnnl_primitive_attr_destroy(attr));
    dnnl_post_ops_t relu;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_post_ops_create(&relu));
    OK(dnnl_post_ops_append_eltwise(relu, dnnl_eltwise_relu, 0, 0));
    OK(dnnl_primitive_attr_set_post_ops(attr, relu));
    OK(dnnl_post_ops_destroy(relu));
    reorder(2, dims, floats, floats, attr, NULL, NULL);
    OK(dnnl_primitive_attr_destroy(attr));
}

static void refused(void) {
    const dnnl_dims_t dims = {3, 4}, other = {4, 3};
    dnnl_memory_desc_t good = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t wrong = with_tag(2, other, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t any = with_tag(2, dims, dnnl_f32, dnnl_format_tag_any);
    dnnl_primitive_desc_t problem;
    STATUS("no place",
            dnnl_reorder_primitive_desc_create(NULL, good, engine, good, engine, NULL));
    STATUS("no src", dnnl_reorder_primitive_desc_create(&problem, NULL, engine, good, engine, NULL));
    STATUS("no dst", dnnl_reorder_primitive_desc_create(&problem, good, engine, NULL, engine, NULL));
    STATUS("another shape",
            dnnl_reorder_primitive_desc_create(&problem, good, engine, wrong, engine, NULL));
    STATUS("from any",
            dnnl_reorder_primitive_desc_create(&problem, any, engine, good, engine, NULL));
    STATUS("to any", dnnl_reorder_primitive_desc_create(&problem, good, engine, any, engine, NULL));
    OK(dnnl_memory_desc_destroy(good));
    OK(dnnl_memory_desc_destroy(wrong));
    OK(dnnl_memory_desc_destroy(any));
}

int main(void) {
    begin();
    /* Ties round to even, and values out of range saturate. */
    for (int i = 0; i < MAX_ELEMENTS; ++i)
        values[i] = (float)((i * 37) % 61 - 20) * 0.5f;
    values[3] = 300;
    values[7] = -300;
    layouts();
    types();
    attributes();
    refused();
    end();
    return 0;
}
