/* A bias for each column, and a choice between two tensors by a mask. */
#include <norm.h>

#include <stdio.h>
#include <stdlib.h>

static void check(norm_status_t status) {
    if (status == norm_success) return;
    fprintf(stderr, "%s: %s\n", norm_status2str(status), norm_get_last_error());
    exit(1);
}

int main(void) {
    float rows[2][3] = {{1, 2, 3}, {4, 5, 6}}, bias[3] = {10, 20, 30}, zero[1] = {0};
    float chosen[2][3];
    signed char mask[2][3] = {{1, 0, 1}, {0, 1, 0}};
    const norm_dims_t dims = {2, 3}, bias_dims = {1, 3}, one = {1, 1};

    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t rows_desc, bias_desc, one_desc, mask_desc;
    check(norm_engine_create(&engine, norm_cpu, 0));
    check(norm_stream_create(&stream, engine, norm_stream_default_flags));
    check(norm_memory_desc_create_with_tag(&rows_desc, 2, dims, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&bias_desc, 2, bias_dims, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&one_desc, 2, one, norm_f32, norm_ab));
    check(norm_memory_desc_create_with_tag(&mask_desc, 2, dims, norm_s8, norm_ab));

    norm_memory_t x, b, none, m, y;
    check(norm_memory_create(&x, rows_desc, engine, rows));
    check(norm_memory_create(&b, bias_desc, engine, bias));
    check(norm_memory_create(&none, one_desc, engine, zero));
    check(norm_memory_create(&m, mask_desc, engine, mask));
    check(norm_memory_create(&y, rows_desc, engine, chosen));

    norm_primitive_desc_t add_desc, select_desc;
    norm_primitive_t add, select;
    check(norm_binary_primitive_desc_create(
            &add_desc, engine, norm_binary_add, rows_desc, bias_desc, rows_desc, NULL));
    check(norm_binary_primitive_desc_create_v2(&select_desc, engine, norm_binary_select, rows_desc,
            one_desc, mask_desc, rows_desc, NULL));
    check(norm_primitive_create(&add, add_desc));
    check(norm_primitive_create(&select, select_desc));

    const norm_exec_arg_t added[]
            = {{NORM_ARG_SRC_0, x}, {NORM_ARG_SRC_1, b}, {NORM_ARG_DST, x}};
    const norm_exec_arg_t selected[] = {{NORM_ARG_SRC_0, x}, {NORM_ARG_SRC_1, none},
            {NORM_ARG_SRC_2, m}, {NORM_ARG_DST, y}};
    check(norm_primitive_execute(add, stream, 3, added));
    check(norm_primitive_execute(select, stream, 4, selected));
    for (int row = 0; row < 2; ++row) {
        printf("sum     %4g %4g %4g\n", rows[row][0], rows[row][1], rows[row][2]);
        printf("chosen  %4g %4g %4g\n", chosen[row][0], chosen[row][1], chosen[row][2]);
    }

    norm_primitive_destroy(select);
    norm_primitive_destroy(add);
    norm_primitive_desc_destroy(select_desc);
    norm_primitive_desc_destroy(add_desc);
    norm_memory_destroy(y);
    norm_memory_destroy(m);
    norm_memory_destroy(none);
    norm_memory_destroy(b);
    norm_memory_destroy(x);
    norm_memory_desc_destroy(mask_desc);
    norm_memory_desc_destroy(one_desc);
    norm_memory_desc_destroy(bias_desc);
    norm_memory_desc_destroy(rows_desc);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
