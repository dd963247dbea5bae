/* Group normalization of an image with channels last, followed by SiLU in the same pass. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    /* One sample, four channels in two groups, 1 x 2 pixels: the channels of a pixel are adjacent. */
    float src[2][4] = {{1, 3, 10, -10}, {3, 1, 30, -30}}, dst[2][4];
    float scale[4] = {1, 1, 2, 2}, shift[4] = {0, 0, 0, 1};
    float mean[2], variance[2];
    const norm_dims_t dims = {1, 4, 1, 2};
    const norm_dim_t channels = 4, groups = 2;

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t image, parameter;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&image, 4, dims, norm_f32, norm_nhwc));
    check(norm_memory_desc_create_with_tag(&parameter, 1, &channels, norm_f32, norm_a));

    norm_primitive_attr_t attr;
    norm_post_ops_t silu;
    check(norm_post_ops_create(&silu));
    check(norm_post_ops_append_eltwise(silu, norm_eltwise_swish, 1, 0));
    check(norm_primitive_attr_create(&attr));
    check(norm_primitive_attr_set_post_ops(attr, silu));

    norm_primitive_desc_t desc;
    norm_primitive_t primitive;
    check(norm_group_normalization_forward_primitive_desc_create(&desc, engine,
            norm_forward_training, image, image, groups, 1e-5f, norm_use_scale | norm_use_shift,
            attr));
    check(norm_primitive_create(&primitive, desc));

    /* Mean and variance have an element for each group of each sample. */
    const_norm_memory_desc_t stat
            = norm_primitive_desc_query_md(desc, norm_query_exec_arg_md, NORM_ARG_MEAN);
    norm_memory_t x, y, a, b, m, v;
    check(norm_memory_create(&x, image, engine, src));
    check(norm_memory_create(&y, image, engine, dst));
    check(norm_memory_create(&a, parameter, engine, scale));
    check(norm_memory_create(&b, parameter, engine, shift));
    check(norm_memory_create(&m, stat, engine, mean));
    check(norm_memory_create(&v, stat, engine, variance));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y}, {NORM_ARG_SCALE, a},
            {NORM_ARG_SHIFT, b}, {NORM_ARG_MEAN, m}, {NORM_ARG_VARIANCE, v}};
    check(norm_primitive_execute(primitive, stream, 6, args));
    for (int group = 0; group < 2; ++group)
        printf("group %d: mean %g, variance %g\n", group, mean[group], variance[group]);
    for (int pixel = 0; pixel < 2; ++pixel)
        printf("pixel %d: %7.4f %7.4f %7.4f %7.4f\n", pixel, dst[pixel][0], dst[pixel][1],
                dst[pixel][2], dst[pixel][3]);

    norm_memory_destroy(v);
    norm_memory_destroy(m);
    norm_memory_destroy(b);
    norm_memory_destroy(a);
    norm_memory_destroy(y);
    norm_memory_destroy(x);
    norm_primitive_destroy(primitive);
    norm_primitive_desc_destroy(desc);
    norm_primitive_attr_destroy(attr);
    norm_post_ops_destroy(silu);
    norm_memory_desc_destroy(parameter);
    norm_memory_desc_destroy(image);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
