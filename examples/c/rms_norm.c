/* RMS normalization of two rows of four numbers.
 *
 *     cargo build --release
 *     cc -Iinclude examples/c/rms_norm.c -Ltarget/release -lnorm -Wl,-rpath,$PWD/target/release
 */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float src[2][4] = {{1, 2, 3, 4}, {-2, -4, -6, -8}}, dst[2][4];
    const norm_dims_t dims = {2, 4};

    norm_engine_t engine;
    norm_stream_t stream;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));

    norm_memory_desc_t desc;
    norm_memory_t src_memory, dst_memory;
    check(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    check(norm_memory_create(&src_memory, desc, engine, src));
    check(norm_memory_create(&dst_memory, desc, engine, dst));

    norm_primitive_desc_t problem;
    norm_primitive_t rms_norm;
    check(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, desc, desc, NULL, 1e-5f, norm_rms_norm, NULL));
    check(norm_primitive_create(&rms_norm, problem));

    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, src_memory}, {NORM_ARG_DST, dst_memory}};
    check(norm_primitive_execute(rms_norm, stream, 2, args));
    for (int row = 0; row < 2; ++row)
        printf("%.4f %.4f %.4f %.4f\n", dst[row][0], dst[row][1], dst[row][2], dst[row][3]);

    norm_primitive_destroy(rms_norm);
    norm_primitive_desc_destroy(problem);
    norm_memory_destroy(src_memory);
    norm_memory_destroy(dst_memory);
    norm_memory_desc_destroy(desc);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
