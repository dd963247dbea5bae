/* Reorder: a matrix of f32 transposed and quantized to signed bytes, with a scale for each column. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float src[2][3] = {{0.5f, -20, 1000}, {-1, 60, 125}};
    float scales[3] = {0.01f, 0.5f, 10}; /* dst = src / scale */
    signed char dst[3][2];
    const norm_dims_t dims = {2, 3}, columns = {3};

    norm_engine_t engine;
    norm_stream_t stream;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    /* Both have the dimensions 2 and 3; ba stores dst column by column. */
    norm_memory_desc_t from, to, of_scales;
    check(norm_memory_desc_create_with_tag(&from, 2, dims, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&to, 2, dims, norm_s8, norm_ba));
    check(norm_memory_desc_create_with_tag(&of_scales, 1, columns, norm_f32, norm_a));

    /* Bit 1 of the mask: a scale for each index of dimension 1. */
    norm_primitive_attr_t attr;
    check(norm_primitive_attr_create(&attr));
    check(norm_primitive_attr_set_scales_mask(attr, NORM_ARG_DST, 1 << 1));

    norm_primitive_desc_t problem;
    norm_primitive_t reorder;
    check(norm_reorder_primitive_desc_create(&problem, from, engine, to, engine, attr));
    check(norm_primitive_create(&reorder, problem));

    norm_memory_t input, output, factors;
    check(norm_memory_create(&input, from, engine, src));
    check(norm_memory_create(&output, to, engine, dst));
    check(norm_memory_create(&factors, of_scales, engine, scales));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, input}, {NORM_ARG_DST, output},
            {NORM_ARG_ATTR_SCALES | NORM_ARG_DST, factors}};
    check(norm_primitive_execute(reorder, stream, 3, args));
    for (int column = 0; column < 3; ++column)
        printf("%4d %4d\n", dst[column][0], dst[column][1]);

    norm_memory_destroy(factors);
    norm_memory_destroy(output);
    norm_memory_destroy(input);
    norm_primitive_destroy(reorder);
    norm_primitive_desc_destroy(problem);
    norm_primitive_attr_destroy(attr);
    norm_memory_desc_destroy(of_scales);
    norm_memory_desc_destroy(to);
    norm_memory_desc_destroy(from);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
