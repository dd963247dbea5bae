/* Adds what a layer returned to the residual stream, and normalizes the sum for the next layer. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float block[2][2] = {{0.5f, 3}, {1, -1}}; /* of attention or of a feed-forward layer */
    float stream_of_sums[2][2] = {{0.5f, 4}, {-8, 2}};
    float normalized[2][2], weights[2] = {1, 2};
    norm_engine_t engine;
    norm_stream_t stream;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    /* ANCHOR: create */
    const norm_dims_t dims = {2, 2}, columns = {2};
    norm_memory_desc_t rows, column;
    check(norm_memory_desc_create_with_tag(&rows, 2, dims, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&column, 1, columns, norm_f32, norm_a));

    norm_primitive_attr_t attr;
    norm_primitive_desc_t problem;
    norm_primitive_t norm;
    check(norm_primitive_attr_create(&attr));
    /* The residual and the stored sum have the descriptor `rows`. */
    check(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_rounded));
    check(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, rows, rows, NULL, 1e-5f, norm_rms_norm | norm_use_scale,
            attr));
    check(norm_primitive_create(&norm, problem));
    /* ANCHOR_END: create */

    norm_memory_t src, sum, dst, scale;
    check(norm_memory_create(&src, rows, engine, block));
    check(norm_memory_create(&sum, rows, engine, stream_of_sums));
    check(norm_memory_create(&dst, rows, engine, normalized));
    check(norm_memory_create(&scale, column, engine, weights));

    /* ANCHOR: execute */
    /* The sum overwrites the residual. */
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_RESIDUAL, sum},
            {NORM_ARG_RESIDUAL_DST, sum}, {NORM_ARG_SCALE, scale}, {NORM_ARG_DST, dst}};
    check(norm_primitive_execute(norm, stream, 5, args));
    /* ANCHOR_END: execute */
    for (int i = 0; i < 2; ++i)
        printf("sum %4.1f %4.1f, normalized %4.1f %4.1f\n", stream_of_sums[i][0],
                stream_of_sums[i][1], normalized[i][0], normalized[i][1]);

    norm_memory_destroy(scale);
    norm_memory_destroy(dst);
    norm_memory_destroy(sum);
    norm_memory_destroy(src);
    norm_primitive_destroy(norm);
    norm_primitive_desc_destroy(problem);
    norm_primitive_attr_destroy(attr);
    norm_memory_desc_destroy(column);
    norm_memory_desc_destroy(rows);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
