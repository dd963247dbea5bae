/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Dropout's probability is from 0 to 1 in each operation, as a memory and as a host
 * scalar. Others are refused before anything is written.
 */
#include "refused.h"

#include <math.h>

static norm_engine_t engine;
static norm_stream_t stream;

enum { COUNT = 40, OPERATIONS = 3 };

static norm_primitive_desc_t created(int operation, const_norm_memory_desc_t row, int on_host) {
    norm_primitive_desc_t pd = NULL;
    norm_primitive_attr_t attr = NULL;
    const norm_dim_t empty[] = {0};
    norm_memory_desc_t none = NULL;
    MUST(norm_memory_desc_create_with_tag(&none, 0, empty, norm_u8, norm_format_tag_any));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_dropout_v2(attr, none, norm_s64, 0, on_host));
    if (operation == 0)
        MUST(norm_softmax_forward_primitive_desc_create(
                &pd, engine, norm_forward_training, norm_softmax_accurate, row, row, 0, attr));
    else if (operation == 1)
        MUST(norm_eltwise_forward_primitive_desc_create(
                &pd, engine, norm_forward_training, norm_eltwise_linear, row, row, 1, 0, attr));
    else
        MUST(norm_binary_primitive_desc_create(&pd, engine, norm_binary_add, row, row, row, attr));
    MUST(norm_memory_desc_destroy(none));
    MUST(norm_primitive_attr_destroy(attr));
    return pd;
}

/* A number in a buffer, or in a memory of its own. */
static norm_memory_t number(norm_data_type_t type, void *value, int on_host) {
    const norm_dim_t one[] = {1};
    norm_memory_desc_t desc = NULL;
    norm_memory_t memory = NULL;
    if (on_host) {
        MUST(norm_memory_desc_create_host_scalar(&desc, type));
        MUST(norm_memory_create_host_scalar(&memory, desc, value));
    } else {
        MUST(norm_memory_desc_create_with_strides(&desc, 1, one, type, NULL));
        MUST(norm_memory_create(&memory, desc, engine, value));
    }
    MUST(norm_memory_desc_destroy(desc));
    return memory;
}

static void probabilities(int operation, int on_host) {
    const float good[] = {0, -0.0f, 0.5f, 1}, bad[] = {-1, -1e-30f, 1.0000001f, 2, NAN, INFINITY};
    const norm_dim_t dims[] = {COUNT};
    float x[COUNT] = {0}, y[COUNT];
    int64_t seed = 7;
    norm_memory_desc_t row = NULL;
    norm_primitive_t primitive = NULL;
    MUST(norm_memory_desc_create_with_strides(&row, 1, dims, norm_f32, NULL));
    norm_primitive_desc_t pd = created(operation, row, on_host);
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < 10; ++i) {
        float p = i < 4 ? good[i] : bad[i - 4];
        norm_exec_arg_t args[] = {{NORM_ARG_SRC, NULL}, {NORM_ARG_DST, NULL}, {NORM_ARG_SRC_1, NULL},
                {NORM_ARG_ATTR_DROPOUT_PROBABILITY, number(norm_f32, &p, on_host)},
                {NORM_ARG_ATTR_DROPOUT_SEED, number(norm_s64, &seed, on_host)}};
        MUST(norm_memory_create(&args[0].memory, row, engine, x));
        MUST(norm_memory_create(&args[1].memory, row, engine, y));
        MUST(norm_memory_create(&args[2].memory, row, engine, x));
        for (int c = 0; c < COUNT; ++c) y[c] = 9;
        snprintf(expect_case, sizeof expect_case, "operation %d, probability %g", operation, (double)p);
        if (i < 4) {
            EXPECT(norm_primitive_execute(primitive, stream, 5, args) == norm_success);
            EXPECT(y[0] != 9);
        } else {
            INVALID("NORM_ARG_ATTR_DROPOUT_PROBABILITY", norm_primitive_execute,
                    (primitive, stream, 5, args));
            EXPECT(strstr(norm_get_last_error(), "is not a probability from 0 to 1") != NULL);
            for (int c = 0; c < COUNT; ++c) EXPECT(y[c] == 9);
        }
        for (int a = 0; a < 5; ++a) MUST(norm_memory_destroy(args[a].memory));
    }
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(row));
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    for (int operation = 0; operation < OPERATIONS; ++operation)
        for (int on_host = 0; on_host < 2; ++on_host) probabilities(operation, on_host);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("dropout");
}
