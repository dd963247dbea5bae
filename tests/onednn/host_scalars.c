/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Host scalars: descriptors, memories, mapped addresses, refused calls, and dropout of softmax with them.
 */
#include "problem.h"

enum { ROWS = 3, COLS = 8 };

static void objects(void) {
    const dnnl_dims_t one = {1};
    dnnl_memory_desc_t scalar = NULL, tensor = with_tag(1, one, dnnl_f32, dnnl_a), out = NULL;
    dnnl_memory_t memory = NULL, no_memory = NULL;
    dnnl_engine_t its_engine = engine;
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    float value = 0.5f, read = 0;
    void *address = NULL;
    OK(dnnl_memory_desc_create_host_scalar(&scalar, dnnl_f32));
    OK(dnnl_memory_desc_query(scalar, dnnl_query_format_kind, &kind));
    printf("kind: %d, bytes: %d\n", kind == dnnl_format_kind_host_scalar,
            (int)dnnl_memory_desc_get_size(scalar));
    OK(dnnl_memory_create_host_scalar(&memory, scalar, &value));
    value = 7;
    OK(dnnl_memory_get_host_scalar_value(memory, &read));
    print_values("value", &read, 1, 3);
    OK(dnnl_memory_set_host_scalar_value(memory, &value));
    OK(dnnl_memory_get_host_scalar_value(memory, &read));
    print_values("another", &read, 1, 3);
    OK(dnnl_memory_get_engine(memory, &its_engine));
    printf("engine: %d\n", its_engine != NULL);
    STATUS("handle", dnnl_memory_get_data_handle(memory, &address));
    STATUS("set handle", dnnl_memory_set_data_handle(memory, &value));
    OK(dnnl_memory_map_data(memory, &address));
    print_values("mapped", address, 1, 3);
    *(float *)address = 3;
    OK(dnnl_memory_unmap_data(memory, address));
    OK(dnnl_memory_get_host_scalar_value(memory, &read));
    print_values("written", &read, 1, 3);
    OK(dnnl_memory_map_data_v2(memory, &address, 0));
    OK(dnnl_memory_unmap_data_v2(memory, address, 0));
    STATUS("map the second", dnnl_memory_map_data_v2(memory, &address, 1));
    STATUS("of a tensor", dnnl_memory_create_host_scalar(&no_memory, tensor, &value));
    STATUS("without a value", dnnl_memory_create_host_scalar(&no_memory, scalar, NULL));
    STATUS("with an engine", dnnl_memory_create(&no_memory, scalar, engine, &value));
    STATUS("without a place", dnnl_memory_get_host_scalar_value(memory, NULL));
    STATUS("without a memory", dnnl_memory_set_host_scalar_value(NULL, &value));
    STATUS("undef", dnnl_memory_desc_create_host_scalar(&out, dnnl_data_type_undef));
    OK(dnnl_memory_destroy(memory));
    OK(dnnl_memory_desc_destroy(scalar));
    OK(dnnl_memory_desc_destroy(tensor));
}

static dnnl_memory_t holding(dnnl_data_type_t type, void *value) {
    dnnl_memory_desc_t desc = NULL;
    dnnl_memory_t memory = NULL;
    OK(dnnl_memory_desc_create_host_scalar(&desc, type));
    OK(dnnl_memory_create_host_scalar(&memory, desc, value));
    OK(dnnl_memory_desc_destroy(desc));
    return memory;
}

static void softmax(void) {
    const dnnl_dims_t dims = {ROWS, COLS};
    static float src[ROWS * COLS], dst[ROWS * COLS];
    static unsigned char mask[ROWS * COLS];
    float probability = 0.25f;
    int64_t seed = 12345678, offset = 1;
    for (int i = 0; i < ROWS * COLS; ++i) src[i] = (float)(i % 5) / 4;
    dnnl_memory_desc_t desc = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t mask_desc = with_tag(2, dims, dnnl_u8, dnnl_ab);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_primitive_attr_set_dropout_v2(attr, mask_desc, dnnl_s64, 1, 1));
    STATUS("with a mask", dnnl_primitive_attr_set_scales_v2(
                                  attr, DNNL_ARG_SRC, 1, 0, NULL, dnnl_f32, 1));
    OK(dnnl_softmax_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference,
            dnnl_softmax_accurate, desc, desc, 1, attr));
    OK(dnnl_primitive_create(&primitive, pd));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, NULL}, {DNNL_ARG_DST, NULL},
            {DNNL_ARG_ATTR_DROPOUT_MASK, NULL},
            {DNNL_ARG_ATTR_DROPOUT_PROBABILITY, holding(dnnl_f32, &probability)},
            {DNNL_ARG_ATTR_DROPOUT_SEED, holding(dnnl_s64, &seed)},
            {DNNL_ARG_ATTR_DROPOUT_OFFSET, holding(dnnl_s64, &offset)}};
    OK(dnnl_memory_create(&args[0].memory, desc, engine, src));
    OK(dnnl_memory_create(&args[1].memory, desc, engine, dst));
    OK(dnnl_memory_create(&args[2].memory, mask_desc, engine, mask));
    OK(dnnl_primitive_execute(primitive, stream, 6, args));
    OK(dnnl_stream_wait(stream));
    print_values("dst", dst, ROWS * COLS, 4);
    printf("mask:");
    for (int i = 0; i < ROWS * COLS; ++i) printf(" %d", mask[i]);
    printf("\n");
    for (int i = 0; i < 6; ++i) OK(dnnl_memory_destroy(args[i].memory));
    OK(dnnl_primitive_destroy(primitive));
    OK(dnnl_primitive_desc_destroy(pd));
    OK(dnnl_primitive_attr_destroy(attr));
    OK(dnnl_memory_desc_destroy(desc));
    OK(dnnl_memory_desc_destroy(mask_desc));
}

int main(void) {
    begin();
    objects();
    softmax();
    end();
    return 0;
}
