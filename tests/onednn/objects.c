/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Engines, streams, memory, attributes, scratchpads: the objects around an execution.
 */
#include "problem.h"

static const dnnl_dims_t dims = {2, 4};

static void engines(void) {
    dnnl_engine_t other, of_stream;
    dnnl_engine_kind_t kind;
    dnnl_stream_t stream_of_other;
    OK(dnnl_engine_create(&other, dnnl_cpu, 0));
    OK(dnnl_engine_get_kind(other, &kind));
    printf("kind %s\n", dnnl_engine_kind2str(kind));
    OK(dnnl_stream_create(&stream_of_other, other, dnnl_stream_in_order));
    OK(dnnl_stream_get_engine(stream_of_other, &of_stream));
    printf("the stream's engine: %d %d\n", of_stream == other, of_stream == engine);
    OK(dnnl_engine_get_kind(of_stream, &kind));
    printf("kind %s\n", dnnl_engine_kind2str(kind));
    STATUS("wait", dnnl_stream_wait(stream_of_other));
    OK(dnnl_stream_destroy(stream_of_other));
    OK(dnnl_engine_destroy(other));
    STATUS("destroy no engine", dnnl_engine_destroy(NULL));
    STATUS("destroy no stream", dnnl_stream_destroy(NULL));
    STATUS("destroy no memory", dnnl_memory_destroy(NULL));
    STATUS("destroy no descriptor", dnnl_memory_desc_destroy(NULL));
    STATUS("destroy no attributes", dnnl_primitive_attr_destroy(NULL));
    STATUS("destroy no post-ops", dnnl_post_ops_destroy(NULL));
    STATUS("destroy no problem", dnnl_primitive_desc_destroy(NULL));
    STATUS("destroy no primitive", dnnl_primitive_destroy(NULL));
}

static void memories(void) {
    static float buffer[8] = {1, 2, 3, 4, 5, 6, 7, 8}, other[8];
    dnnl_memory_desc_t desc = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_memory_t memory;
    const_dnnl_memory_desc_t its_desc;
    dnnl_engine_t its_engine;
    dnnl_engine_kind_t kind;
    void *handle;

    OK(dnnl_memory_create(&memory, desc, engine, buffer));
    OK(dnnl_memory_get_data_handle(memory, &handle));
    printf("handle is the buffer: %d\n", handle == buffer);
    OK(dnnl_memory_get_memory_desc(memory, &its_desc));
    printf("same descriptor: %d\n", dnnl_memory_desc_equal(its_desc, desc));
    OK(dnnl_memory_get_engine(memory, &its_engine));
    printf("the memory's engine: %d\n", its_engine == engine);
    OK(dnnl_engine_get_kind(its_engine, &kind));
    printf("kind %s\n", dnnl_engine_kind2str(kind));
    OK(dnnl_memory_map_data(memory, &handle));
    print_values("mapped", handle, 8, 1);
    OK(dnnl_memory_unmap_data(memory, handle));
    OK(dnnl_memory_set_data_handle(memory, other));
    OK(dnnl_memory_get_data_handle_v2(memory, &handle, 0));
    printf("handle is the other buffer: %d\n", handle == other);
    OK(dnnl_memory_set_data_handle_v2(memory, buffer, 0));
    OK(dnnl_memory_map_data_v2(memory, &handle, 0));
    print_values("mapped", handle, 8, 1);
    OK(dnnl_memory_unmap_data_v2(memory, handle, 0));
    STATUS("map the second buffer", dnnl_memory_map_data_v2(memory, &handle, 1));
    OK(dnnl_memory_destroy(memory));

    OK(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_NONE));
    OK(dnnl_memory_get_data_handle(memory, &handle));
    printf("no buffer: %d\n", handle == NULL);
    OK(dnnl_memory_destroy(memory));

    void *handles[] = {DNNL_MEMORY_ALLOCATE};
    OK(dnnl_memory_create_v2(&memory, desc, engine, 1, handles));
    OK(dnnl_memory_get_data_handle(memory, &handle));
    printf("allocated: %d, aligned: %d\n", handle != NULL, (uintptr_t)handle % 64 == 0);
    OK(dnnl_memory_destroy(memory));
    OK(dnnl_memory_desc_destroy(desc));

    desc = with_tag(0, NULL, dnnl_data_type_undef, dnnl_format_tag_undef);
    OK(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE));
    OK(dnnl_memory_get_data_handle(memory, &handle));
    printf("empty: %d\n", handle == NULL);
    OK(dnnl_memory_destroy(memory));
    OK(dnnl_memory_desc_destroy(desc));
}

/* Exported, but not declared in any oneDNN header. */
dnnl_status_t dnnl_memory_desc_create_with_string_tag(dnnl_memory_desc_t *memory_desc, int ndims,
        const dnnl_dims_t dims, dnnl_data_type_t data_type, const char *tag);
dnnl_status_t dnnl_memory_desc_set_data_type(
        dnnl_memory_desc_t memory_desc, dnnl_data_type_t data_type);

static void layouts_by_letters(void) {
    static const char *const letters[] = {"ab", "ba", "AB16b16a", "BA6a7b", "Ba2a3a", "aB4b"};
    const dnnl_dims_t sizes = {20, 30};
    dnnl_memory_desc_t desc;
    for (int i = 0; i < 6; ++i) {
        const dnnl_dims_t *strides, *padded, *blocks, *cut;
        int count;
        OK(dnnl_memory_desc_create_with_string_tag(&desc, 2, sizes, dnnl_f32, letters[i]));
        OK(dnnl_memory_desc_query(desc, dnnl_query_strides, &strides));
        OK(dnnl_memory_desc_query(desc, dnnl_query_padded_dims, &padded));
        OK(dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &count));
        OK(dnnl_memory_desc_query(desc, dnnl_query_inner_blks, &blocks));
        OK(dnnl_memory_desc_query(desc, dnnl_query_inner_idxs, &cut));
        printf("%s: %d x %d, strides %d %d,", letters[i], (int)(*padded)[0], (int)(*padded)[1],
                (int)(*strides)[0], (int)(*strides)[1]);
        for (int b = 0; b < count; ++b) printf(" %d of %d", (int)(*blocks)[b], (int)(*cut)[b]);
        OK(dnnl_memory_desc_set_data_type(desc, dnnl_bf16));
        printf(", %d bytes of bf16\n", (int)dnnl_memory_desc_get_size(desc));
        OK(dnnl_memory_desc_destroy(desc));
    }
    STATUS("letters of three dims",
            dnnl_memory_desc_create_with_string_tag(&desc, 2, sizes, dnnl_f32, "abc"));
    STATUS("letters of one dim",
            dnnl_memory_desc_create_with_string_tag(&desc, 2, sizes, dnnl_f32, "a"));
    STATUS("letters nowhere",
            dnnl_memory_desc_create_with_string_tag(NULL, 2, sizes, dnnl_f32, "ab"));
    STATUS("type of nothing", dnnl_memory_desc_set_data_type(NULL, dnnl_f32));
}

static void modes_of_attributes(void) {
    dnnl_primitive_attr_t attr, copy;
    dnnl_scratchpad_mode_t scratchpad;
    dnnl_fpmath_mode_t fpmath;
    dnnl_accumulation_mode_t accumulation;
    dnnl_rounding_mode_t rounding;
    int flag;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_primitive_attr_get_scratchpad_mode(attr, &scratchpad));
    OK(dnnl_primitive_attr_get_fpmath_mode(attr, &fpmath));
    OK(dnnl_primitive_attr_get_accumulation_mode(attr, &accumulation));
    OK(dnnl_primitive_attr_get_deterministic(attr, &flag));
    OK(dnnl_primitive_attr_get_rounding(attr, DNNL_ARG_DST, &rounding));
    printf("%s %s %s %d %s\n", dnnl_scratchpad_mode2str(scratchpad),
            dnnl_fpmath_mode2str(fpmath), dnnl_accumulation_mode2str(accumulation), flag,
            dnnl_rounding_mode2str(rounding));
    STATUS("scratchpad", dnnl_primitive_attr_set_scratchpad_mode(
                                 attr, dnnl_scratchpad_mode_user));
    STATUS("fpmath", dnnl_primitive_attr_set_fpmath_mode(attr, dnnl_fpmath_mode_tf32));
    STATUS("fpmath for integers", dnnl_primitive_attr_set_fpmath_mode_v2(
                                          attr, dnnl_fpmath_mode_any, 1));
    STATUS("accumulation", dnnl_primitive_attr_set_accumulation_mode(
                                   attr, dnnl_accumulation_mode_relaxed));
    STATUS("deterministic", dnnl_primitive_attr_set_deterministic(attr, 1));
    STATUS("rounding", dnnl_primitive_attr_set_rounding(
                               attr, DNNL_ARG_DST, dnnl_rounding_mode_environment));
    STATUS("no such fpmath", dnnl_primitive_attr_set_fpmath_mode(
                                     attr, (dnnl_fpmath_mode_t)100));
    STATUS("no such scratchpad", dnnl_primitive_attr_set_scratchpad_mode(
                                         attr, (dnnl_scratchpad_mode_t)100));
    OK(dnnl_primitive_attr_clone(&copy, attr));
    OK(dnnl_primitive_attr_destroy(attr));
    OK(dnnl_primitive_attr_get_scratchpad_mode(copy, &scratchpad));
    OK(dnnl_primitive_attr_get_fpmath_mode_v2(copy, &fpmath, &flag));
    printf("%s %s %d", dnnl_scratchpad_mode2str(scratchpad), dnnl_fpmath_mode2str(fpmath), flag);
    OK(dnnl_primitive_attr_get_accumulation_mode(copy, &accumulation));
    OK(dnnl_primitive_attr_get_deterministic(copy, &flag));
    printf(" %s %d\n", dnnl_accumulation_mode2str(accumulation), flag);
    OK(dnnl_primitive_attr_destroy(copy));
}

/* The caller's scratchpad, and the same primitive twice. */
static void users_scratchpad(void) {
    static struct data data;
    dnnl_memory_desc_t desc = with_tag(2, dims, dnnl_f32, dnnl_ab);
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t problem;
    dnnl_primitive_t primitive;
    OK(dnnl_primitive_attr_create(&attr));
    OK(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    OK(dnnl_layer_normalization_forward_primitive_desc_create(&problem, engine,
            dnnl_forward_inference, desc, desc, NULL, 0, dnnl_use_scale, attr));
    OK(dnnl_primitive_attr_destroy(attr));
    const_dnnl_memory_desc_t wanted
            = dnnl_primitive_desc_query_md(problem, dnnl_query_scratchpad_md, 0);
    dnnl_memory_t scratchpad;
    OK(dnnl_memory_create(&scratchpad, wanted, engine, DNNL_MEMORY_ALLOCATE));
    struct tensor src = argument(problem, DNNL_ARG_SRC), dst = argument(problem, DNNL_ARG_DST);
    struct tensor scale = argument(problem, DNNL_ARG_SCALE);
    exact_data(&data, 2, 4, 0);
    fill(&src, data.src);
    fill(&scale, data.scale);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, src.memory}, {DNNL_ARG_DST, dst.memory},
            {DNNL_ARG_SCALE, scale.memory}, {DNNL_ARG_SCRATCHPAD, scratchpad}};
    OK(dnnl_primitive_create(&primitive, problem));
    for (int i = 0; i < 2; ++i) {
        OK(dnnl_primitive_execute(primitive, stream, 4, args));
        OK(dnnl_stream_wait(stream));
        print_tensor("with the caller's scratchpad", &dst, 6);
    }
    OK(dnnl_primitive_destroy(primitive));
    OK(dnnl_primitive_desc_destroy(problem));
    OK(dnnl_memory_destroy(scratchpad));
    OK(dnnl_memory_destroy(src.memory));
    OK(dnnl_memory_destroy(dst.memory));
    OK(dnnl_memory_destroy(scale.memory));
    OK(dnnl_memory_desc_destroy(desc));
}

int main(void) {
    begin();
    engines();
    memories();
    layouts_by_letters();
    modes_of_attributes();
    users_scratchpad();
    end();
    return 0;
}
