/* Logsoftmax of two samples with three classes, and the gradient of the cross entropy. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float src[2][3] = {{1, 2, 3}, {5, 0.5f, 0}}, dst[2][3], diff_src[2][3];
    float diff_dst[2][3] = {{0, 0, -1}, {-1, 0, 0}}; /* the labels are 2 and 0 */
    const norm_dims_t dims = {2, 3};
    const int axis = 1;

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t rows;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&rows, 2, dims, norm_f32, norm_ab));

    norm_memory_t x, y, dx, dy;
    check(norm_memory_create(&x, rows, engine, src));
    check(norm_memory_create(&y, rows, engine, dst));
    check(norm_memory_create(&dx, rows, engine, diff_src));
    check(norm_memory_create(&dy, rows, engine, diff_dst));

    norm_primitive_desc_t forward_desc, backward_desc;
    norm_primitive_t forward, backward;
    check(norm_softmax_forward_primitive_desc_create(&forward_desc, engine, norm_forward_training,
            norm_softmax_log, rows, rows, axis, NULL));
    check(norm_softmax_backward_primitive_desc_create(&backward_desc, engine, norm_softmax_log,
            rows, rows, rows, axis, forward_desc, NULL));
    check(norm_primitive_create(&forward, forward_desc));
    check(norm_primitive_create(&backward, backward_desc));

    const norm_exec_arg_t forward_args[] = {{NORM_ARG_SRC, x}, {NORM_ARG_DST, y}};
    const norm_exec_arg_t backward_args[]
            = {{NORM_ARG_DST, y}, {NORM_ARG_DIFF_DST, dy}, {NORM_ARG_DIFF_SRC, dx}};
    check(norm_primitive_execute(forward, stream, 2, forward_args));
    check(norm_primitive_execute(backward, stream, 3, backward_args));
    for (int row = 0; row < 2; ++row) {
        printf("log p  %7.4f %7.4f %7.4f\n", dst[row][0], dst[row][1], dst[row][2]);
        printf("grad   %7.4f %7.4f %7.4f\n", diff_src[row][0], diff_src[row][1], diff_src[row][2]);
    }

    norm_primitive_destroy(backward);
    norm_primitive_destroy(forward);
    norm_primitive_desc_destroy(backward_desc);
    norm_primitive_desc_destroy(forward_desc);
    norm_memory_destroy(dy);
    norm_memory_destroy(dx);
    norm_memory_destroy(y);
    norm_memory_destroy(x);
    norm_memory_desc_destroy(rows);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
