/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Softmax: queries, statuses and sums.
 */
#include "describe.h"

static void ask(const char *name, const_dnnl_primitive_desc_t problem) {
    static const dnnl_query_t ints[] = {dnnl_query_num_of_inputs_s32,
            dnnl_query_num_of_outputs_s32, dnnl_query_primitive_kind, dnnl_query_prop_kind,
            dnnl_query_alg_kind, dnnl_query_axis_s32, dnnl_query_flags};
    static const dnnl_query_t mds[] = {dnnl_query_src_md, dnnl_query_dst_md,
            dnnl_query_diff_src_md, dnnl_query_diff_dst_md, dnnl_query_weights_md,
            dnnl_query_workspace_md};
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_DIFF_SRC,
            DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE, DNNL_ARG_MEAN};
    char title[40];
    printf("%s\n", name);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; ++i) {
        int value = -1;
        const dnnl_status_t status = dnnl_primitive_desc_query(problem, ints[i], 0, &value);
        printf(" number %d: %s %d\n", (int)i, dnnl_status2str(status), value);
    }
    for (size_t i = 0; i < sizeof mds / sizeof *mds; ++i)
        for (int index = 0; index < 2; ++index) {
            snprintf(title, sizeof title, " md %d of index %d", (int)i, index);
            describe(title, dnnl_primitive_desc_query_md(problem, mds[i], index));
        }
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; ++i) {
        snprintf(title, sizeof title, " argument %d", arguments[i]);
        describe(title,
                dnnl_primitive_desc_query_md(problem, dnnl_query_exec_arg_md, arguments[i]));
    }
}

static void problems(void) {
    const dnnl_dims_t dims = {2, 3, 8};
    static const dnnl_alg_kind_t algorithms[] = {dnnl_softmax_accurate, dnnl_softmax_log};
    dnnl_memory_desc_t data = with_tag(3, dims, dnnl_f32, dnnl_acb);
    dnnl_memory_desc_t any = with_tag(3, dims, dnnl_f32, dnnl_format_tag_any);
    for (int a = 0; a < 2; ++a)
        for (int axis = 0; axis < 3; ++axis) {
            dnnl_primitive_desc_t forward, backward;
            OK(dnnl_softmax_forward_primitive_desc_create(&forward, engine,
                    a ? dnnl_forward_inference : dnnl_forward_training, algorithms[a], data, any,
                    axis, NULL));
            ask("forward", forward);
            OK(dnnl_softmax_backward_primitive_desc_create(
                    &backward, engine, algorithms[a], any, any, data, axis, forward, NULL));
            ask("backward", backward);
            OK(dnnl_primitive_desc_destroy(backward));
            OK(dnnl_primitive_desc_destroy(forward));
        }
    OK(dnnl_memory_desc_destroy(data));
    OK(dnnl_memory_desc_destroy(any));
}

static void forward(const char *name, dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
        dnnl_memory_desc_t src, dnnl_memory_desc_t dst, int axis) {
    dnnl_primitive_desc_t problem;
    const dnnl_status_t status = dnnl_softmax_forward_primitive_desc_create(
            &problem, engine, kind, algorithm, src, dst, axis, NULL);
    STATUS(name, status);
    if (status == dnnl_success) OK(dnnl_primitive_desc_destroy(problem));
}

static void refused(void) {
    const dnnl_dims_t dims = {2, 3, 8}, other = {2, 3, 9};
    const dnnl_prop_kind_t kind = dnnl_forward_training;
    const dnnl_alg_kind_t algorithm = dnnl_softmax_accurate;
    dnnl_memory_desc_t good = with_tag(3, dims, dnnl_f32, dnnl_abc);
    dnnl_memory_desc_t any = with_tag(3, dims, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_t wide = with_tag(3, other, dnnl_f32, dnnl_abc);
    forward("plain", kind, algorithm, good, good, 1);
    forward("no src", kind, algorithm, NULL, good, 1);
    forward("no dst", kind, algorithm, good, NULL, 1);
    forward("src any", kind, algorithm, any, good, 1);
    forward("* dst of another shape: softmax", kind, algorithm, good, wide, 1);
    forward("axis -1", kind, algorithm, good, good, -1);
    forward("axis 3", kind, algorithm, good, good, 3);
    forward("backward", dnnl_backward_data, algorithm, good, good, 1);
    forward("no kind", dnnl_prop_kind_undef, algorithm, good, good, 1);
    forward("an eltwise", kind, dnnl_eltwise_relu, good, good, 1);
    forward("no algorithm", kind, dnnl_alg_kind_undef, good, good, 1);
    OK(dnnl_memory_desc_destroy(good));
    OK(dnnl_memory_desc_destroy(any));
    OK(dnnl_memory_desc_destroy(wide));
}

/* Rows of the last dimension sum to 1. */
static void executed(void) {
    const dnnl_dims_t dims = {2, 4};
    float src[8] = {1, 2, 3, 4, -1, 0, 100, 100}, dst[8] = {0};
    dnnl_memory_desc_t data = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_primitive_desc_t problem;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_SRC, NULL}, {DNNL_ARG_DST, NULL}};
    OK(dnnl_softmax_forward_primitive_desc_create(&problem, engine, dnnl_forward_inference,
            dnnl_softmax_accurate, data, data, 1, NULL));
    OK(dnnl_primitive_create(&primitive, problem));
    OK(dnnl_memory_create(&args[0].memory, data, engine, src));
    OK(dnnl_memory_create(&args[1].memory, data, engine, dst));
    STATUS("execute", dnnl_primitive_execute(primitive, stream, 2, args));
    OK(dnnl_stream_wait(stream));
    for (int row = 0; row < 2; ++row)
        printf("%.4f\n", dst[4 * row] + dst[4 * row + 1] + dst[4 * row + 2] + dst[4 * row + 3]);
    printf("%.4f %.4f\n", dst[3], dst[6]);
    OK(dnnl_memory_destroy(args[0].memory));
    OK(dnnl_memory_destroy(args[1].memory));
    OK(dnnl_primitive_destroy(primitive));
    OK(dnnl_primitive_desc_destroy(problem));
    OK(dnnl_memory_desc_destroy(data));
}

int main(void) {
    begin();
    problems();
    refused();
    executed();
    end();
    return 0;
}
