/* Three failing calls and their messages. */
#include <norm.h>

#include <stdio.h>

static norm_status_t report(norm_status_t status) {
    if (status != norm_success)
        printf("%s: %s\n", norm_status2str(status), norm_get_last_error());
    return status;
}

int main(void) {
    const norm_dims_t dims = {2, 4}, longer = {2, 5};
    float x[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    norm_engine_t engine;
    norm_stream_t stream;
    norm_memory_desc_t rows, other, integers;
    norm_memory_t memory;
    norm_primitive_desc_t problem;
    norm_primitive_t primitive;

    if (report(norm_engine_create(&engine, norm_cpu, 0))
            || report(norm_stream_create(&stream, engine, norm_stream_default_flags))
            || report(norm_memory_desc_create_with_tag(&rows, 2, dims, norm_f32, norm_ab))
            || report(norm_memory_desc_create_with_tag(&other, 2, longer, norm_f32, norm_ab))
            || report(norm_memory_desc_create_with_tag(&integers, 2, dims, norm_s32, norm_ab))
            || report(norm_memory_create(&memory, rows, engine, x)))
        return 1;

    /* dst has a different number of columns. */
    report(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, rows, other, NULL, 1e-5f, norm_rms_norm, NULL));
    /* Integers of 32 bits can be reordered, not normalized. */
    report(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, integers, rows, NULL, 1e-5f, norm_rms_norm, NULL));

    if (report(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
                norm_forward_inference, rows, rows, NULL, 1e-5f, norm_rms_norm, NULL))
            || report(norm_primitive_create(&primitive, problem)))
        return 1;
    /* The output is missing. */
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory}};
    report(norm_primitive_execute(primitive, stream, 1, args));

    norm_primitive_destroy(primitive);
    norm_primitive_desc_destroy(problem);
    norm_memory_destroy(memory);
    norm_memory_desc_destroy(integers);
    norm_memory_desc_destroy(other);
    norm_memory_desc_destroy(rows);
    norm_stream_destroy(stream);
    norm_engine_destroy(engine);
    return 0;
}
