/* SwiGLU of two tokens, with gate and up in one tensor: the gate in the first half of each row. */
#include <norm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float x[8] = {0, 1, 10, 10, -1, 2, 3, 0.5f}, y[4];
    const norm_dims_t packed = {2, 4}, dims = {2, 2};

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t src_desc, dst_desc;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&src_desc, 2, packed, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&dst_desc, 2, dims, norm_f32, norm_ab));

    norm_memory_t src, dst;
    check(norm_memory_create(&src, src_desc, engine, x));
    check(norm_memory_create(&dst, dst_desc, engine, y));

    norm_primitive_desc_t desc;
    norm_primitive_t swiglu;
    const float alpha = 1, limit = INFINITY, shift = 0;
    check(norm_gated_forward_primitive_desc_create(&desc, engine, norm_forward_inference,
            norm_eltwise_swish, norm_gate_first, src_desc, NULL, dst_desc, alpha, limit, shift,
            NULL));
    check(norm_primitive_create(&swiglu, desc));

    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst}};
    check(norm_primitive_execute(swiglu, stream, 2, args));
    printf("%8.4f %8.4f\n", y[0], y[1]);
    printf("%8.4f %8.4f\n", y[2], y[3]);

    norm_primitive_destroy(swiglu);
    norm_primitive_desc_destroy(desc);
    norm_memory_destroy(dst);
    norm_memory_destroy(src);
    norm_memory_desc_destroy(dst_desc);
    norm_memory_desc_destroy(src_desc);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
