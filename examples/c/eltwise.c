/* A swish in place, and a ReLU with the gradient computed from its result. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float x[4] = {-100, -1, 1, 100}, y[4] = {-2, -1, 1, 2};
    float diff[4] = {1, 2, 3, 4};
    const norm_dims_t dims = {4};

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t desc;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&desc, 1, dims, norm_f32, norm_a));

    norm_memory_t gate, hidden, gradient;
    check(norm_memory_create(&gate, desc, engine, x));
    check(norm_memory_create(&hidden, desc, engine, y));
    check(norm_memory_create(&gradient, desc, engine, diff));

    norm_primitive_desc_t swish_desc, relu_desc, relu_backward_desc;
    norm_primitive_t swish, relu, relu_backward;
    const float alpha = 1, slope = 0.25f;
    const norm_alg_kind_t leaky = norm_eltwise_relu_use_dst_for_bwd;
    check(norm_eltwise_forward_primitive_desc_create(&swish_desc, engine,
            norm_forward_inference, norm_eltwise_swish, desc, desc, alpha, 0, NULL));
    check(norm_eltwise_forward_primitive_desc_create(
            &relu_desc, engine, norm_forward_training, leaky, desc, desc, slope, 0, NULL));
    check(norm_eltwise_backward_primitive_desc_create(&relu_backward_desc, engine, leaky, desc,
            desc, desc, slope, 0, relu_desc, NULL));
    check(norm_primitive_create(&swish, swish_desc));
    check(norm_primitive_create(&relu, relu_desc));
    check(norm_primitive_create(&relu_backward, relu_backward_desc));

    const norm_exec_arg_t gated[] = {{NORM_ARG_SRC, gate}, {NORM_ARG_DST, gate}};
    const norm_exec_arg_t forward[] = {{NORM_ARG_SRC, hidden}, {NORM_ARG_DST, hidden}};
    const norm_exec_arg_t backward[] = {{NORM_ARG_DST, hidden}, {NORM_ARG_DIFF_DST, gradient},
            {NORM_ARG_DIFF_SRC, gradient}};
    check(norm_primitive_execute(swish, stream, 2, gated));
    check(norm_primitive_execute(relu, stream, 2, forward));
    check(norm_primitive_execute(relu_backward, stream, 3, backward));
    printf("swish  %8.4f %8.4f %8.4f %8.4f\n", x[0], x[1], x[2], x[3]);
    printf("relu   %8.4f %8.4f %8.4f %8.4f\n", y[0], y[1], y[2], y[3]);
    printf("grad   %8.4f %8.4f %8.4f %8.4f\n", diff[0], diff[1], diff[2], diff[3]);

    norm_primitive_destroy(relu_backward);
    norm_primitive_destroy(relu);
    norm_primitive_destroy(swish);
    norm_primitive_desc_destroy(relu_backward_desc);
    norm_primitive_desc_destroy(relu_desc);
    norm_primitive_desc_destroy(swish_desc);
    norm_memory_destroy(gradient);
    norm_memory_destroy(hidden);
    norm_memory_destroy(gate);
    norm_memory_desc_destroy(desc);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
