/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rejected calls and their statuses.
 */
#include "problem.h"

static const dnnl_dims_t dims = {2, 3, 8};

static void descriptors(void) {
    const dnnl_dims_t negative = {2, -3, 8}, no_stride = {0, 8, 1};
    dnnl_memory_desc_t desc, good = with_tag(3, dims, dnnl_f32, dnnl_abc);
    int number;
    STATUS("no place", dnnl_memory_desc_create_with_tag(NULL, 3, dims, dnnl_f32, dnnl_abc));
    STATUS("13 dims", dnnl_memory_desc_create_with_tag(&desc, 13, dims, dnnl_f32, dnnl_abc));
    STATUS("-1 dims", dnnl_memory_desc_create_with_tag(&desc, -1, dims, dnnl_f32, dnnl_abc));
    STATUS("negative dim",
            dnnl_memory_desc_create_with_tag(&desc, 3, negative, dnnl_f32, dnnl_abc));
    STATUS("no type", dnnl_memory_desc_create_with_tag(
                              &desc, 3, dims, dnnl_data_type_undef, dnnl_abc));
    STATUS("another tag", dnnl_memory_desc_create_with_tag(&desc, 3, dims, dnnl_f32, dnnl_ab));
    STATUS("tag undef", dnnl_memory_desc_create_with_tag(
                             &desc, 3, dims, dnnl_f32, dnnl_format_tag_undef));
    STATUS("no such tag", dnnl_memory_desc_create_with_tag(
                                  &desc, 3, dims, dnnl_f32, (dnnl_format_tag_t)5000));
    STATUS("no place for strides",
            dnnl_memory_desc_create_with_strides(NULL, 3, dims, dnnl_f32, NULL));
    STATUS("stride of 0",
            dnnl_memory_desc_create_with_strides(&desc, 3, dims, dnnl_f32, no_stride));
    STATUS("query of nothing", dnnl_memory_desc_query(NULL, dnnl_query_ndims_s32, &number));
    STATUS("query to nothing", dnnl_memory_desc_query(good, dnnl_query_ndims_s32, NULL));
    STATUS("no such query", dnnl_memory_desc_query(good, (dnnl_query_t)999, &number));
    STATUS("query of a problem", dnnl_memory_desc_query(good, dnnl_query_flags, &number));
    STATUS("query of index 1",
            dnnl_memory_desc_query_v2(good, dnnl_query_ndims_s32, 1, &number));
    printf("equal to nothing: %d\n", dnnl_memory_desc_equal(good, NULL));
    OK(dnnl_memory_desc_destroy(good));
}

static void objects(void) {
    dnnl_engine_t no_engine;
    dnnl_stream_t no_stream;
    dnnl_memory_t memory;
    dnnl_engine_kind_t kind;
    dnnl_memory_desc_t any = with_tag(3, dims, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_t good = with_tag(3, dims, dnnl_f32, dnnl_abc);
    void *handles[] = {DNNL_MEMORY_ALLOCATE, DNNL_MEMORY_ALLOCATE}, *handle;
    STATUS("no place for an engine", dnnl_engine_create(NULL, dnnl_cpu, 0));
    STATUS("engine 99", dnnl_engine_create(&no_engine, dnnl_cpu, 99));
    STATUS("no kind", dnnl_engine_get_kind(NULL, &kind));
    STATUS("no place for a stream", dnnl_stream_create(NULL, engine, dnnl_stream_default_flags));
    STATUS("no engine", dnnl_stream_create(&no_stream, NULL, dnnl_stream_default_flags));
    STATUS("no such flags", dnnl_stream_create(&no_stream, engine, 0xff00));
    STATUS("no stream to wait for", dnnl_stream_wait(NULL));
    STATUS("no engine of nothing", dnnl_stream_get_engine(NULL, &no_engine));
    STATUS("memory of any", dnnl_memory_create(&memory, any, engine, DNNL_MEMORY_ALLOCATE));
    STATUS("memory nowhere", dnnl_memory_create(NULL, good, engine, DNNL_MEMORY_ALLOCATE));
    STATUS("no memory engine", dnnl_memory_create(&memory, good, NULL, DNNL_MEMORY_ALLOCATE));
    STATUS("no buffers", dnnl_memory_create_v2(&memory, good, engine, 0, handles));
    STATUS("handles nowhere", dnnl_memory_create_v2(&memory, good, engine, 1, NULL));
    STATUS("set nothing", dnnl_memory_set_data_handle(NULL, NULL));
    STATUS("get nowhere", dnnl_memory_get_data_handle(NULL, NULL));
    STATUS("map nothing", dnnl_memory_map_data(NULL, &handle));
    STATUS("unmap nothing", dnnl_memory_unmap_data(NULL, NULL));
    OK(dnnl_memory_desc_destroy(any));
    OK(dnnl_memory_desc_destroy(good));
}

struct forward {
    dnnl_primitive_desc_t *problem;
    dnnl_engine_t engine;
    dnnl_prop_kind_t prop_kind;
    dnnl_memory_desc_t src, dst, stat;
    float epsilon;
    unsigned flags;
};

static void forward(const char *name, struct forward f) {
    const dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(
            f.problem, f.engine, f.prop_kind, f.src, f.dst, f.stat, f.epsilon, f.flags, NULL);
    STATUS(name, status);
    if (status == dnnl_success) OK(dnnl_primitive_desc_destroy(*f.problem));
}

static void problems(void) {
    const dnnl_dims_t other = {2, 3, 9}, one = {8}, six = {1, 1, 1, 1, 2, 8};
    dnnl_primitive_desc_t problem = NULL;
    dnnl_memory_desc_t good = with_tag(3, dims, dnnl_f32, dnnl_abc);
    dnnl_memory_desc_t stat = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t any = with_tag(3, dims, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_t wide = with_tag(3, other, dnnl_f32, dnnl_abc);
    dnnl_memory_desc_t flat = with_tag(1, one, dnnl_f32, dnnl_a);
    dnnl_memory_desc_t deep = with_tag(6, six, dnnl_f32, dnnl_abcdef);
    dnnl_memory_desc_t half_stat = with_tag(2, dims, dnnl_bf16, dnnl_ab);
    dnnl_memory_desc_t integers = with_tag(3, dims, dnnl_s32, dnnl_abc);
    dnnl_memory_desc_t doubles = with_tag(3, dims, dnnl_f64, dnnl_abc);
    dnnl_memory_desc_t small = with_tag(3, dims, dnnl_f8_e4m3, dnnl_abc);
    dnnl_memory_desc_t blocked = with_tag(3, dims, dnnl_f32, dnnl_aBc16b);
    const struct forward plain
            = {&problem, engine, dnnl_forward_training, good, good, stat, 0.5f, 0};
    struct forward f = plain;
    forward("plain", f);
    f.problem = NULL, forward("no place for a problem", f), f = plain;
    f.src = NULL, forward("no src", f), f = plain;
    f.dst = NULL, forward("no dst", f), f = plain;
    f.stat = NULL, forward("no stat", f), f = plain;
    f.src = any, forward("src any", f), f = plain;
    f.dst = wide, forward("dst of another shape", f), f = plain;
    f.stat = good, forward("* stat of another shape: forward", f), f = plain;
    f.stat = half_stat, forward("stat of bf16", f), f = plain;
    f.src = f.dst = integers, forward("s32", f), f = plain;
    f.src = f.dst = doubles, forward("* f64: forward", f), f = plain;
    f.src = f.dst = small, forward("* f8: forward", f), f = plain;
    f.src = f.dst = blocked, forward("blocked layout", f), f = plain;
    f.src = f.dst = flat, f.stat = NULL, forward("one dim", f), f = plain;
    f.src = f.dst = deep, f.stat = NULL, forward("six dims", f), f = plain;
    f.prop_kind = dnnl_backward, forward("backward", f), f = plain;
    f.prop_kind = dnnl_prop_kind_undef, forward("no kind of propagation", f), f = plain;
    f.prop_kind = (dnnl_prop_kind_t)1234, forward("no such kind", f), f = plain;
    f.flags = dnnl_fuse_norm_relu, forward("relu", f), f = plain;
    f.flags = dnnl_fuse_norm_add_relu, forward("add and relu", f), f = plain;
    f.flags = 0x4000, forward("no such flag", f), f = plain;
    f.epsilon = 0, forward("epsilon 0", f), f = plain;

    dnnl_primitive_desc_t hint, backward;
    OK(dnnl_layer_normalization_forward_primitive_desc_create(
            &hint, engine, dnnl_forward_training, good, good, stat, 0.5f, 0, NULL));
#define BACKWARD(name, kind, diff_src, diff_dst, src, stat, flags) \
    do { \
        const dnnl_status_t status = dnnl_layer_normalization_backward_primitive_desc_create( \
                &backward, engine, kind, diff_src, diff_dst, src, stat, 0.5f, flags, hint, NULL); \
        STATUS(name, status); \
        if (status == dnnl_success) OK(dnnl_primitive_desc_destroy(backward)); \
    } while (0)
    BACKWARD("backward plain", dnnl_backward, good, good, good, stat, 0);
    BACKWARD("backward with a forward kind", dnnl_forward_training, good, good, good, stat, 0);
    BACKWARD("backward_weights", dnnl_backward_weights, good, good, good, stat, 2);
    BACKWARD("no diff_src", dnnl_backward, NULL, good, good, stat, 0);
    BACKWARD("no diff_dst", dnnl_backward, good, NULL, good, stat, 0);
    BACKWARD("backward without src", dnnl_backward, good, good, NULL, stat, 0);
    BACKWARD("diff_src of another shape", dnnl_backward, wide, good, good, stat, 0);
    BACKWARD("diff_dst of another shape", dnnl_backward, good, wide, good, stat, 0);
    BACKWARD("backward stat of another shape", dnnl_backward, good, good, good, good, 0);
    BACKWARD("backward src any", dnnl_backward, good, good, any, stat, 0);
    OK(dnnl_layer_normalization_backward_primitive_desc_create(
            &backward, engine, dnnl_backward, good, good, any, stat, 0.5f, 0, hint, NULL));
    dnnl_format_kind_t told;
    OK(dnnl_memory_desc_query(dnnl_primitive_desc_query_md(backward, dnnl_query_src_md, 0),
            dnnl_query_format_kind, &told));
    printf("* src any: told: %s\n", dnnl_fmt_kind2str(told));
    OK(dnnl_primitive_desc_destroy(backward));
    BACKWARD("backward relu", dnnl_backward, good, good, good, stat, dnnl_fuse_norm_relu);
    OK(dnnl_primitive_desc_destroy(hint));

    STATUS("next of nothing", dnnl_primitive_desc_next_impl(NULL));
    STATUS("primitive of nothing", dnnl_primitive_create(NULL, NULL));
    printf("no md of nothing: %d\n",
            dnnl_primitive_desc_query_md(NULL, dnnl_query_src_md, 0) == NULL);
    printf("no number of nothing: %d\n",
            dnnl_primitive_desc_query_s32(NULL, dnnl_query_num_of_inputs_s32, 0));
    OK(dnnl_memory_desc_destroy(good));
    OK(dnnl_memory_desc_destroy(stat));
    OK(dnnl_memory_desc_destroy(any));
    OK(dnnl_memory_desc_destroy(wide));
    OK(dnnl_memory_desc_destroy(flat));
    OK(dnnl_memory_desc_destroy(deep));
    OK(dnnl_memory_desc_destroy(half_stat));
    OK(dnnl_memory_desc_destroy(integers));
    OK(dnnl_memory_desc_destroy(doubles));
    OK(dnnl_memory_desc_destroy(small));
    OK(dnnl_memory_desc_destroy(blocked));
}

static void executions(void) {
    dnnl_memory_desc_t desc = with_tag(3, dims, dnnl_f32, dnnl_abc);
    dnnl_primitive_desc_t problem;
    dnnl_primitive_t primitive;
    OK(dnnl_layer_normalization_forward_primitive_desc_create(&problem, engine,
            dnnl_forward_inference, desc, desc, NULL, 0.5f, dnnl_use_scale, NULL));
    OK(dnnl_primitive_create(&primitive, problem));
    struct tensor src = argument(problem, DNNL_ARG_SRC), dst = argument(problem, DNNL_ARG_DST);
    struct tensor scale = argument(problem, DNNL_ARG_SCALE);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, src.memory}, {DNNL_ARG_DST, dst.memory},
            {DNNL_ARG_SCALE, scale.memory}, {DNNL_ARG_SHIFT, scale.memory}};
    STATUS("all arguments", dnnl_primitive_execute(primitive, stream, 3, args));
    STATUS("an unused argument", dnnl_primitive_execute(primitive, stream, 4, args));
    STATUS("no scale", dnnl_primitive_execute(primitive, stream, 2, args));
    STATUS("no src", dnnl_primitive_execute(primitive, stream, 2, args + 1));
    STATUS("no stream", dnnl_primitive_execute(primitive, NULL, 3, args));
    STATUS("no primitive", dnnl_primitive_execute(NULL, stream, 3, args));
    STATUS("no arguments", dnnl_primitive_execute(primitive, stream, 3, NULL));
    STATUS("-1 arguments", dnnl_primitive_execute(primitive, stream, -1, args));
    OK(dnnl_stream_wait(stream));
    OK(dnnl_primitive_destroy(primitive));
    OK(dnnl_primitive_desc_destroy(problem));
    OK(dnnl_memory_destroy(src.memory));
    OK(dnnl_memory_destroy(dst.memory));
    OK(dnnl_memory_destroy(scale.memory));
    OK(dnnl_memory_desc_destroy(desc));
}

int main(void) {
    begin();
    descriptors();
    objects();
    problems();
    executions();
    end();
    return 0;
}
