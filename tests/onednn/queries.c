/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Queries of memory descriptors and primitive descriptors.
 */
#include "describe.h"

static void descriptors(void) {
    const dnnl_dims_t dims = {2, 3, 4, 5, 6, 7};
    for (int n = 1; n <= 6; ++n) {
        static const dnnl_format_tag_t plain[]
                = {dnnl_a, dnnl_ba, dnnl_acb, dnnl_acdb, dnnl_bacde, dnnl_abcdef};
        dnnl_memory_desc_t desc = with_tag(n, dims, dnnl_bf16, plain[n - 1]), copy;
        describe(dnnl_fmt_tag2str(plain[n - 1]), desc);
        OK(dnnl_memory_desc_clone(&copy, desc));
        printf("  equal: %d\n", dnnl_memory_desc_equal(copy, desc));
        OK(dnnl_memory_desc_destroy(copy));
        copy = with_tag(n, dims, dnnl_f32, plain[n - 1]);
        printf("  of another type: %d\n", dnnl_memory_desc_equal(copy, desc));
        OK(dnnl_memory_desc_destroy(copy));
        OK(dnnl_memory_desc_destroy(desc));
    }
    dnnl_memory_desc_t desc = with_tag(3, dims, dnnl_f32, dnnl_format_tag_any);
    describe("any", desc);
    OK(dnnl_memory_desc_destroy(desc));
    desc = with_tag(0, NULL, dnnl_f32, dnnl_format_tag_undef);
    describe("empty", desc);
    OK(dnnl_memory_desc_destroy(desc));
    const dnnl_dims_t none = {2, 0, 4}, strides = {100, 20, 2}, dense = {12, 4, 1};
    desc = with_tag(3, none, dnnl_f32, dnnl_abc);
    describe("no elements", desc);
    OK(dnnl_memory_desc_destroy(desc));
    OK(dnnl_memory_desc_create_with_strides(&desc, 3, dims, dnnl_f32, strides));
    describe("strides", desc);
    OK(dnnl_memory_desc_destroy(desc));
    dnnl_memory_desc_t tagged = with_tag(3, dims, dnnl_f32, dnnl_abc);
    OK(dnnl_memory_desc_create_with_strides(&desc, 3, dims, dnnl_f32, dense));
    printf("dense strides are abc: %d\n", dnnl_memory_desc_equal(desc, tagged));
    OK(dnnl_memory_desc_destroy(desc));
    OK(dnnl_memory_desc_create_with_strides(&desc, 3, dims, dnnl_f32, NULL));
    printf("no strides are abc: %d\n", dnnl_memory_desc_equal(desc, tagged));
    OK(dnnl_memory_desc_destroy(desc));
    OK(dnnl_memory_desc_destroy(tagged));
}

/* Submemory, another shape, another order, and a blob round trip. */
static void derived(void) {
    const dnnl_dims_t dims = {4, 6, 8}, part = {2, 3, 8}, at = {1, 2, 0}, too_far = {3, 2, 0};
    const dnnl_dims_t flat = {24, 8}, split = {4, 6, 2, 4}, joined = {4, 48}, wrong = {5, 7};
    const int swap[] = {1, 0, 2}, no_order[] = {0, 0, 2};
    dnnl_memory_desc_t desc = with_tag(3, dims, dnnl_f32, dnnl_abc), made;
    OK(dnnl_memory_desc_create_submemory(&made, desc, part, at));
    describe("submemory", made);
    OK(dnnl_memory_desc_destroy(made));
    STATUS("submemory outside", dnnl_memory_desc_create_submemory(&made, desc, part, too_far));
    OK(dnnl_memory_desc_reshape(&made, desc, 2, flat));
    describe("rows joined", made);
    OK(dnnl_memory_desc_destroy(made));
    OK(dnnl_memory_desc_reshape(&made, desc, 4, split));
    describe("columns split", made);
    OK(dnnl_memory_desc_destroy(made));
    OK(dnnl_memory_desc_reshape(&made, desc, 2, joined));
    describe("columns joined", made);
    OK(dnnl_memory_desc_destroy(made));
    STATUS("another count", dnnl_memory_desc_reshape(&made, desc, 2, wrong));
    OK(dnnl_memory_desc_permute_axes(&made, desc, swap));
    describe("axes swapped", made);
    STATUS("reshaped then", dnnl_memory_desc_reshape(&made, made, 2, flat));
    OK(dnnl_memory_desc_destroy(made));
    STATUS("no permutation", dnnl_memory_desc_permute_axes(&made, desc, no_order));
    dnnl_memory_desc_t empty = NULL;
    OK(dnnl_memory_desc_create_with_tag(&empty, 0, NULL, dnnl_f32, dnnl_format_tag_undef));
    STATUS("axes of nothing", dnnl_memory_desc_permute_axes(&made, empty, swap));
    OK(dnnl_memory_desc_destroy(empty));
    size_t size = 0;
    OK(dnnl_memory_desc_get_blob(NULL, &size, desc));
    uint8_t *blob = malloc(size);
    OK(dnnl_memory_desc_get_blob(blob, &size, desc));
    OK(dnnl_memory_desc_create_with_blob(&made, blob));
    printf("from bytes: %d\n", dnnl_memory_desc_equal(made, desc));
    free(blob);
    OK(dnnl_memory_desc_destroy(made));
    OK(dnnl_memory_desc_destroy(desc));
}

/* Tensors without elements: a dimension of 0 counts as 1 in the number of elements. */
static void without_elements(void) {
    static const struct {
        int from, to;
        dnnl_dims_t old, now;
        dnnl_format_tag_t tag;
    } cases[] = {{4, 3, {2, 3, 0, 2}, {6, 0, 2}, dnnl_abcd}, {4, 3, {2, 3, 0, 2}, {6, 0, 2}, dnnl_cdba},
            {2, 2, {0, 3}, {3, 0}, dnnl_ab}, {2, 3, {0, 6}, {0, 2, 3}, dnnl_ab},
            {2, 3, {4, 5}, {4, 1, 5}, dnnl_ab}, {2, 3, {4, 5}, {1, 4, 5}, dnnl_ba}};
    for (int i = 0; i < 6; ++i) {
        dnnl_memory_desc_t desc = with_tag(cases[i].from, cases[i].old, dnnl_f32, cases[i].tag), made;
        const dnnl_status_t status = dnnl_memory_desc_reshape(&made, desc, cases[i].to, cases[i].now);
        printf("reshape %d: %s\n", i, dnnl_status2str(status));
        if (status == dnnl_success) {
            describe("", made);
            OK(dnnl_memory_desc_destroy(made));
        }
        OK(dnnl_memory_desc_destroy(desc));
    }
}

/* Even about arguments that the flags exclude, because programs query all of them. */
static void ask(const char *name, const_dnnl_primitive_desc_t problem) {
    static const struct {
        dnnl_query_t what;
        const char *name;
    } ints[] = {{dnnl_query_num_of_inputs_s32, "inputs"},
            {dnnl_query_num_of_outputs_s32, "outputs"},
            {dnnl_query_primitive_kind, "kind"}, {dnnl_query_prop_kind, "prop_kind"},
            {dnnl_query_flags, "flags"}};
    static const struct {
        dnnl_query_t what;
        const char *name;
    } mds[] = {{dnnl_query_src_md, "src"}, {dnnl_query_dst_md, "dst"},
            {dnnl_query_diff_src_md, "diff_src"}, {dnnl_query_diff_dst_md, "diff_dst"},
            {dnnl_query_weights_md, "weights"}, {dnnl_query_diff_weights_md, "diff_weights"},
            {dnnl_query_workspace_md, "workspace"}, {dnnl_query_exec_arg_md, "no argument"}};
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_MEAN,
            DNNL_ARG_VARIANCE, DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DIFF_SRC,
            DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT};
    printf("%s\n", name);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; ++i) {
        int value = -1;
        const dnnl_status_t status
                = dnnl_primitive_desc_query(problem, ints[i].what, 0, &value);
        printf(" %s: %s %d\n", ints[i].name, dnnl_status2str(status), value);
    }
    float epsilon = -1;
    double time = -1;
    STATUS(" epsilon", dnnl_primitive_desc_query(problem, dnnl_query_epsilon_f32, 0, &epsilon));
    printf(" %g\n", epsilon);
    STATUS(" time", dnnl_primitive_desc_query(problem, dnnl_query_time_estimate_f64, 0, &time));
    STATUS(" alpha", dnnl_primitive_desc_query(problem, dnnl_query_alpha_f32, 0, &epsilon));
    STATUS(" alg_kind", dnnl_primitive_desc_query(problem, dnnl_query_alg_kind, 0, &time));
    const char *implementation = NULL;
    STATUS(" implementation", dnnl_primitive_desc_query(problem, dnnl_query_impl_info_str, 0,
            (void *)&implementation));
    printf(" %d\n", implementation && *implementation);
    dnnl_engine_t its_engine = NULL;
    dnnl_engine_kind_t kind;
    OK(dnnl_primitive_desc_query(problem, dnnl_query_engine, 0, &its_engine));
    OK(dnnl_engine_get_kind(its_engine, &kind));
    printf(" engine: %s\n", dnnl_engine_kind2str(kind));
    printf(" inputs: %d\n",
            dnnl_primitive_desc_query_s32(problem, dnnl_query_num_of_inputs_s32, 0));
    for (size_t i = 0; i < sizeof mds / sizeof *mds; ++i)
        for (int index = 0; index < (i < 6 ? 3 : 1); ++index) {
            char title[40];
            snprintf(title, sizeof title, " %s %d", mds[i].name, index);
            describe(title, dnnl_primitive_desc_query_md(problem, mds[i].what, index));
        }
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; ++i) {
        char title[40];
        snprintf(title, sizeof title, " argument %d", arguments[i]);
        describe(title,
                dnnl_primitive_desc_query_md(problem, dnnl_query_exec_arg_md, arguments[i]));
    }
}

static void problems(void) {
    const dnnl_dims_t dims = {2, 3, 8};
    static const unsigned flags[] = {0, 1, 6, 7, 34, 2, 4, 32, 33, 38};
    dnnl_memory_desc_t data = with_tag(3, dims, dnnl_f32, dnnl_abc);
    dnnl_memory_desc_t stat = with_tag(2, dims, dnnl_f32, dnnl_ab);
    for (int f = 0; f < 10; ++f)
        for (int kind = 0; kind < 4; ++kind) {
            dnnl_primitive_desc_t forward, problem, copy;
            char name[80];
            OK(dnnl_layer_normalization_forward_primitive_desc_create(&forward, engine,
                    kind == 1 ? dnnl_forward_inference : dnnl_forward_training, data, data, stat,
                    0.25f, flags[f], NULL));
            problem = forward;
            /* oneDNN has no backward_data with scale. */
            if (kind == 3 && flags[f] & 6) {
                OK(dnnl_primitive_desc_destroy(forward));
                continue;
            }
            if (kind >= 2)
                OK(dnnl_layer_normalization_backward_primitive_desc_create(&problem, engine,
                        kind == 2 ? dnnl_backward : dnnl_backward_data, data, data, data, stat, 0.25f, flags[f], forward, NULL));
            snprintf(name, sizeof name, "kind %d flags %u", kind, flags[f]);
            ask(name, problem);
            OK(dnnl_primitive_desc_clone(&copy, problem));
            const_dnnl_primitive_attr_t attr;
            STATUS(" attr", dnnl_primitive_desc_get_attr(copy, &attr));
            dnnl_scratchpad_mode_t mode;
            OK(dnnl_primitive_attr_get_scratchpad_mode(attr, &mode));
            printf(" scratchpad %s\n", dnnl_scratchpad_mode2str(mode));
            dnnl_primitive_t primitive;
            const_dnnl_primitive_desc_t its;
            OK(dnnl_primitive_create(&primitive, copy));
            OK(dnnl_primitive_desc_destroy(copy));
            OK(dnnl_primitive_get_primitive_desc(primitive, &its));
            printf(" inputs again: %d\n",
                    dnnl_primitive_desc_query_s32(its, dnnl_query_num_of_inputs_s32, 0));
            OK(dnnl_primitive_destroy(primitive));
            /* The list of implementations ends. */
            dnnl_status_t status;
            while ((status = dnnl_primitive_desc_next_impl(problem)) == dnnl_success) {}
            printf(" walked: %s\n", dnnl_status2str(status));
            const uint8_t *blob = (const uint8_t *)"";
            OK(dnnl_primitive_desc_query(problem, dnnl_query_cache_blob_id, 0, &blob));
            printf(" blob: %d\n", blob != NULL);
            const_dnnl_memory_desc_t none = NULL;
            OK(dnnl_primitive_desc_query(problem, dnnl_query_workspace_md, 0, &none));
            describe(" workspace", none);
            if (problem != forward) OK(dnnl_primitive_desc_destroy(problem));
            OK(dnnl_primitive_desc_destroy(forward));
        }
    OK(dnnl_memory_desc_destroy(data));
    OK(dnnl_memory_desc_destroy(stat));
}

int main(void) {
    begin();
    descriptors();
    problems();
    derived();
    without_elements();
    end();
    return 0;
}
