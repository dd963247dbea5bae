/* The parts of docs/c.md as one program: training, attributes, threads. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

/* ANCHOR: check */
static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}
/* ANCHOR_END: check */

/* ANCHOR: parallel_for */
/* Runs body(0, context) to body(count - 1, context) and returns when all have returned. A real
 * pool would hand them to its threads. */
static void parallel_for(void *pool, int count, norm_parallel_body_t body, void *context) {
    int *calls = pool;
    for (int i = 0; i < count; ++i)
        body(i, context);
    ++*calls;
}
/* ANCHOR_END: parallel_for */

enum { N = 512, C = 1024 };
static float src[N][C], dst[N][C], diff_dst[N][C], diff_src[N][C], mean[N], variance[N];
static float scale[C], shift[C], diff_scale[C], diff_shift[C];

static norm_memory_t memory_of(norm_engine_t engine, const_norm_memory_desc_t desc, float *data) {
    norm_memory_t memory;
    check(norm_memory_create(&memory, desc, engine, data));
    return memory;
}

int main(void) {
    norm_engine_t engine;
    norm_stream_t stream;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int i = 0; i < N * C; ++i) {
        src[i / C][i % C] = (float)(i % 13) - 5;
        diff_dst[i / C][i % C] = (float)(i % 7) - 3;
    }
    for (int c = 0; c < C; ++c)
        scale[c] = 1;

    /* ANCHOR: training */
    const norm_dims_t dims = {N, C}, outer = {N}, columns = {C};
    norm_memory_desc_t rows, stats, params; /* N x C, N and C elements */
    check(norm_memory_desc_create_with_tag(&rows, 2, dims, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&stats, 1, outer, norm_f32, norm_a));
    check(norm_memory_desc_create_with_tag(&params, 1, columns, norm_f32, norm_a));

    const unsigned flags = norm_use_scale | norm_use_shift;
    norm_primitive_desc_t forward_desc, backward_desc;
    check(norm_layer_normalization_forward_primitive_desc_create(&forward_desc, engine,
            norm_forward_training, rows, rows, stats, 1e-5f, flags, NULL));
    check(norm_layer_normalization_backward_primitive_desc_create(&backward_desc, engine,
            norm_backward, rows, rows, rows, stats, 1e-5f, flags, forward_desc, NULL));
    /* ANCHOR_END: training */

    norm_primitive_t forward, backward;
    check(norm_primitive_create(&forward, forward_desc));
    check(norm_primitive_create(&backward, backward_desc));
    norm_memory_t x = memory_of(engine, rows, src[0]), y = memory_of(engine, rows, dst[0]);
    norm_memory_t dx = memory_of(engine, rows, diff_src[0]);
    norm_memory_t dy = memory_of(engine, rows, diff_dst[0]);
    norm_memory_t mu = memory_of(engine, stats, mean);
    /* ANCHOR: query */
    /* It belongs to the primitive descriptor. */
    const_norm_memory_desc_t of_variance = norm_primitive_desc_query_md(
            forward_desc, norm_query_exec_arg_md, NORM_ARG_VARIANCE);
    /* ANCHOR_END: query */
    norm_memory_t var = memory_of(engine, of_variance, variance);
    norm_memory_t g = memory_of(engine, params, scale), b = memory_of(engine, params, shift);
    norm_memory_t dg = memory_of(engine, params, diff_scale);
    norm_memory_t db = memory_of(engine, params, diff_shift);

    /* ANCHOR: execution */
    const norm_exec_arg_t forward_args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y},
            {NORM_ARG_MEAN, mu}, {NORM_ARG_VARIANCE, var}, {NORM_ARG_SCALE, g},
            {NORM_ARG_SHIFT, b}};
    const norm_exec_arg_t backward_args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DIFF_DST, dy},
            {NORM_ARG_MEAN, mu}, {NORM_ARG_VARIANCE, var}, {NORM_ARG_SCALE, g},
            {NORM_ARG_DIFF_SRC, dx}, {NORM_ARG_DIFF_SCALE, dg}, {NORM_ARG_DIFF_SHIFT, db}};
    check(norm_primitive_execute(forward, stream, 6, forward_args));
    check(norm_primitive_execute(backward, stream, 8, backward_args));
    /* ANCHOR_END: execution */
    printf("diff_shift[0] = %g\n", diff_shift[0]);

    /* ANCHOR: attributes */
    norm_post_ops_t ops;
    norm_primitive_attr_t attr;
    check(norm_post_ops_create(&ops));
    check(norm_post_ops_append_eltwise(ops, norm_eltwise_gelu_tanh, 0, 0));
    check(norm_primitive_attr_create(&attr));
    check(norm_primitive_attr_set_post_ops(attr, ops)); /* copies ops */
    check(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_SRC, 0));
    /* ANCHOR_END: attributes */

    float two = 2;
    const norm_dims_t one = {1};
    norm_memory_desc_t scalar;
    check(norm_memory_desc_create_with_tag(&scalar, 1, one, norm_f32, norm_a));
    norm_memory_t factor = memory_of(engine, scalar, &two);
    norm_primitive_desc_t gelu_desc;
    norm_primitive_t gelu;
    check(norm_layer_normalization_forward_primitive_desc_create(&gelu_desc, engine,
            norm_forward_inference, rows, rows, NULL, 1e-5f, norm_rms_norm, attr));
    check(norm_primitive_create(&gelu, gelu_desc));
    /* ANCHOR: attribute_arguments */
    const norm_exec_arg_t gelu_args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y},
            {NORM_ARG_ATTR_SCALES | NORM_ARG_SRC, factor}};
    check(norm_primitive_execute(gelu, stream, 3, gelu_args));
    /* ANCHOR_END: attribute_arguments */
    const float before = dst[0][0];

    /* ANCHOR: threads */
    /* Applies to the process. 1 keeps every execution on its caller's thread; 0 is the default. */
    check(norm_set_num_threads(4));
    /* ANCHOR_END: threads */

    int calls = 0;
    void *my_pool = &calls;
    /* ANCHOR: pool */
    check(norm_stream_set_parallel_for(stream, parallel_for, my_pool, 8));
    /* ANCHOR_END: pool */
    check(norm_primitive_execute(gelu, stream, 3, gelu_args));
    printf("the pool was %s, and the result is %s\n", calls > 0 ? "used" : "not used",
            dst[0][0] == before ? "the same" : "another");

    norm_memory_t memories[] = {x, y, dx, dy, mu, var, g, b, dg, db, factor};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; ++i)
        norm_memory_destroy(memories[i]);
    norm_primitive_destroy(gelu);
    norm_primitive_destroy(backward);
    norm_primitive_destroy(forward);
    norm_primitive_desc_destroy(gelu_desc);
    norm_primitive_desc_destroy(backward_desc);
    norm_primitive_desc_destroy(forward_desc);
    norm_primitive_attr_destroy(attr);
    norm_post_ops_destroy(ops);
    norm_memory_desc_destroy(scalar);
    norm_memory_desc_destroy(params);
    norm_memory_desc_destroy(stats);
    norm_memory_desc_destroy(rows);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
