/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Invalid input to the functions of engines, streams, memory descriptors, memory and
 * attributes, and to the process-wide settings.
 */
#include "refused.h"

static norm_engine_t engine;

static void engines(void) {
    norm_engine_t out = UNTOUCHED;
    norm_engine_kind_t kind = norm_gpu;
    INVALID("engine", norm_engine_create, (NULL, norm_cpu, 0));
    INVALID("index", norm_engine_create, (&out, norm_cpu, 1));
    INVALID("index", norm_engine_create, (&out, norm_cpu, (size_t)-1));
    INVALID("kind", norm_engine_create, (&out, norm_gpu, 0));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("kind", norm_engine_create, (&out, (norm_engine_kind_t)no_enumerator[i], 0));
    INVALID("engine", norm_engine_get_kind, (NULL, &kind));
    INVALID("kind", norm_engine_get_kind, (engine, NULL));
    EXPECT(out == UNTOUCHED && kind == norm_gpu);
}

static void run_pieces(void *pool, int count, norm_parallel_body_t body, void *context) {
    (void)pool;
    for (int i = 0; i < count; ++i) body(i, context);
}

static void streams(void) {
    norm_stream_t out = UNTOUCHED, stream = NULL;
    norm_engine_t its = UNTOUCHED;
    static const unsigned no_flags[] = {0, 3, 4, 1000, INT_MAX, UINT_MAX};
    INVALID("stream", norm_stream_create, (NULL, engine, norm_stream_default_flags));
    INVALID("engine", norm_stream_create, (&out, NULL, norm_stream_default_flags));
    for (int i = 0; i < 6; ++i) INVALID("flags", norm_stream_create, (&out, engine, no_flags[i]));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    INVALID("stream", norm_stream_get_engine, (NULL, &its));
    INVALID("engine", norm_stream_get_engine, (stream, NULL));
    INVALID("stream", norm_stream_wait, (NULL));
    INVALID("stream", norm_stream_set_parallel_for, (NULL, run_pieces, NULL, 1));
    INVALID("num_threads", norm_stream_set_parallel_for, (stream, run_pieces, NULL, 0));
    INVALID("num_threads", norm_stream_set_parallel_for, (stream, run_pieces, NULL, -1));
    INVALID("num_threads", norm_stream_set_parallel_for, (stream, run_pieces, NULL, INT_MIN));
    EXPECT(norm_stream_set_parallel_for(stream, NULL, NULL, 1) == norm_success);
    EXPECT(out == UNTOUCHED && its == UNTOUCHED);
    MUST(norm_stream_destroy(stream));
}

static void descriptors_by_tag(void) {
    norm_memory_desc_t out = UNTOUCHED;
    const norm_dims_t dims = {2, 3}, negative = {2, -3}, runtime = {INT64_MIN, 3};
    const norm_dims_t huge = {INT64_MAX, 4}, many = {INT64_C(1) << 32, INT64_C(1) << 32};
    INVALID("memory_desc", norm_memory_desc_create_with_tag, (NULL, 2, dims, norm_f32, norm_ab));
    INVALID("ndims", norm_memory_desc_create_with_tag, (&out, -1, dims, norm_f32, norm_ab));
    INVALID("ndims", norm_memory_desc_create_with_tag,
            (&out, NORM_MAX_NDIMS + 1, dims, norm_f32, norm_ab));
    INVALID("ndims", norm_memory_desc_create_with_tag, (&out, INT_MAX, dims, norm_f32, norm_ab));
    INVALID("dims", norm_memory_desc_create_with_tag, (&out, 2, NULL, norm_f32, norm_ab));
    INVALID("dims", norm_memory_desc_create_with_tag, (&out, 2, negative, norm_f32, norm_ab));
    INVALID("dims", norm_memory_desc_create_with_tag, (&out, 2, runtime, norm_f32, norm_ab));
    INVALID("dims", norm_memory_desc_create_with_tag, (&out, 2, huge, norm_f32, norm_ab));
    INVALID("dims", norm_memory_desc_create_with_tag, (&out, 2, many, norm_f32, norm_ab));
    INVALID("tag", norm_memory_desc_create_with_tag, (&out, 2, dims, norm_f32, norm_abc));
    INVALID("tag", norm_memory_desc_create_with_tag, (&out, 2, dims, norm_f32, norm_a));
    INVALID("tag", norm_memory_desc_create_with_tag,
            (&out, 2, dims, norm_f32, norm_format_tag_undef));
    INVALID("data_type", norm_memory_desc_create_with_tag,
            (&out, 2, dims, norm_data_type_undef, norm_ab));
    for (int i = 0; i < NO_ENUMERATORS; ++i) {
        const int value = no_enumerator[i];
        INVALID("data_type", norm_memory_desc_create_with_tag,
                (&out, 2, dims, (norm_data_type_t)value, norm_ab));
        INVALID("tag", norm_memory_desc_create_with_tag,
                (&out, 2, dims, norm_f32, (norm_format_tag_t)value));
    }
    EXPECT(out == UNTOUCHED);
}

static void descriptors_by_strides(void) {
    norm_memory_desc_t out = UNTOUCHED;
    const norm_dims_t dims = {2, 3}, negative = {2, -3}, strides = {3, 1}, back = {-3, 1};
    const norm_dims_t far = {INT64_MAX, 1}, beyond = {INT64_MAX / 2, INT64_MAX / 3};
    INVALID("memory_desc", norm_memory_desc_create_with_strides,
            (NULL, 2, dims, norm_f32, strides));
    INVALID("ndims", norm_memory_desc_create_with_strides, (&out, -1, dims, norm_f32, strides));
    INVALID("ndims", norm_memory_desc_create_with_strides,
            (&out, NORM_MAX_NDIMS + 1, dims, norm_f32, strides));
    INVALID("dims", norm_memory_desc_create_with_strides, (&out, 2, NULL, norm_f32, strides));
    INVALID("dims", norm_memory_desc_create_with_strides,
            (&out, 2, negative, norm_f32, strides));
    INVALID("strides", norm_memory_desc_create_with_strides, (&out, 2, dims, norm_f32, back));
    INVALID("strides", norm_memory_desc_create_with_strides, (&out, 2, dims, norm_f32, far));
    INVALID("strides", norm_memory_desc_create_with_strides, (&out, 2, dims, norm_f32, beyond));
    INVALID("data_type", norm_memory_desc_create_with_strides,
            (&out, 2, dims, norm_data_type_undef, strides));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("data_type", norm_memory_desc_create_with_strides,
                (&out, 2, dims, (norm_data_type_t)no_enumerator[i], strides));
    EXPECT(out == UNTOUCHED);
}

static void descriptor_queries(void) {
    const norm_dims_t dims = {2, 3};
    norm_memory_desc_t out = UNTOUCHED, desc = NULL, any = NULL;
    long long result[2] = {0x5A5A5A5A, 0x5A5A5A5A};
    static const norm_query_t of_primitives[] = {norm_query_undef, norm_query_engine,
            norm_query_src_md, norm_query_exec_arg_md, norm_query_epsilon_f32};
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_desc_create_with_tag(&any, 2, dims, norm_f32, norm_format_tag_any));
    INVALID("memory_desc", norm_memory_desc_clone, (NULL, desc));
    INVALID("existing_memory_desc", norm_memory_desc_clone, (&out, NULL));
    INVALID("memory_desc", norm_memory_desc_query, (NULL, norm_query_ndims_s32, result));
    INVALID("result", norm_memory_desc_query, (desc, norm_query_ndims_s32, NULL));
    INVALID("what", norm_memory_desc_query, (any, norm_query_strides, result));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        REFUSED(norm_unimplemented, "what", norm_memory_desc_query,
                (desc, (norm_query_t)no_enumerator[i], result));
    for (int i = 0; i < 5; ++i)
        REFUSED(norm_unimplemented, "what", norm_memory_desc_query,
                (desc, of_primitives[i], result));
    EXPECT(out == UNTOUCHED && result[0] == 0x5A5A5A5A && result[1] == 0x5A5A5A5A);
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(any));
}

static void memories(void) {
    const norm_dims_t dims = {2, 3};
    norm_memory_desc_t desc = NULL, any = NULL;
    norm_memory_t out = UNTOUCHED, memory = NULL;
    const_norm_memory_desc_t its_desc = UNTOUCHED;
    norm_engine_t its_engine = UNTOUCHED;
    void *handle = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_desc_create_with_tag(&any, 2, dims, norm_f32, norm_format_tag_any));
    MUST(norm_memory_create(&memory, desc, engine, NORM_MEMORY_ALLOCATE));
    INVALID("memory", norm_memory_create, (NULL, desc, engine, NULL));
    INVALID("memory_desc", norm_memory_create, (&out, NULL, engine, NULL));
    INVALID("memory_desc", norm_memory_create, (&out, any, engine, NULL));
    INVALID("engine", norm_memory_create, (&out, desc, NULL, NULL));
    INVALID("memory", norm_memory_get_memory_desc, (NULL, &its_desc));
    INVALID("memory_desc", norm_memory_get_memory_desc, (memory, NULL));
    INVALID("memory", norm_memory_get_engine, (NULL, &its_engine));
    INVALID("engine", norm_memory_get_engine, (memory, NULL));
    INVALID("memory", norm_memory_get_data_handle, (NULL, &handle));
    INVALID("handle", norm_memory_get_data_handle, (memory, NULL));
    INVALID("memory", norm_memory_set_data_handle, (NULL, &handle));
    INVALID("memory", norm_memory_map_data, (NULL, &handle));
    INVALID("mapped_ptr", norm_memory_map_data, (memory, NULL));
    INVALID("memory", norm_memory_unmap_data, (NULL, &handle));
    EXPECT(out == UNTOUCHED && its_desc == UNTOUCHED && its_engine == UNTOUCHED
            && handle == UNTOUCHED);
    MUST(norm_memory_destroy(memory));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(any));
}

/* Impossible sizes: more than 2^47 bytes exceed any process's address space. */
static void absurd_sizes(void) {
    static const int bits[] = {48, 52, 56, 60};
    for (int i = 0; i < 4; ++i) {
        const norm_dims_t dims = {INT64_C(1) << (bits[i] - 2)};
        norm_memory_desc_t desc = NULL;
        norm_memory_t out = UNTOUCHED;
        MUST(norm_memory_desc_create_with_tag(&desc, 1, dims, norm_f32, norm_a));
        EXPECT(norm_memory_desc_get_size(desc) == (size_t)1 << bits[i]);
        REFUSED(norm_out_of_memory, "handle", norm_memory_create,
                (&out, desc, engine, NORM_MEMORY_ALLOCATE));
        EXPECT(out == UNTOUCHED);
        MUST(norm_memory_desc_destroy(desc));
    }
}

static void attributes(void) {
    norm_primitive_attr_t out = UNTOUCHED, attr = NULL;
    norm_scratchpad_mode_t mode = norm_scratchpad_mode_user;
    MUST(norm_primitive_attr_create(&attr));
    INVALID("attr", norm_primitive_attr_create, (NULL));
    INVALID("attr", norm_primitive_attr_clone, (NULL, attr));
    INVALID("existing_attr", norm_primitive_attr_clone, (&out, NULL));
    INVALID("attr", norm_primitive_attr_get_scratchpad_mode, (NULL, &mode));
    INVALID("mode", norm_primitive_attr_get_scratchpad_mode, (attr, NULL));
    INVALID("attr", norm_primitive_attr_set_scratchpad_mode, (NULL, mode));
    for (int i = 0; i < NO_ENUMERATORS; ++i)
        INVALID("mode", norm_primitive_attr_set_scratchpad_mode,
                (attr, (norm_scratchpad_mode_t)no_enumerator[i]));
    EXPECT(out == UNTOUCHED && mode == norm_scratchpad_mode_user);
    EXPECT(norm_primitive_attr_get_scratchpad_mode(attr, &mode) == norm_success);
    EXPECT(mode == norm_scratchpad_mode_library);
    MUST(norm_primitive_attr_destroy(attr));
}

static void whole_library(void) {
    const norm_cpu_isa_t isa = norm_get_effective_cpu_isa();
    const int threads = norm_get_num_threads();
    static const int no_isa[] = {-1, 2, 5, 1000, INT_MAX, 0x01000002};
    static const int no_count[] = {-1, 1025, INT_MAX, INT_MIN};
    static const int no_level[] = {-1, 3, 1000, INT_MAX};
    for (int i = 0; i < 6; ++i) INVALID("isa", norm_set_max_cpu_isa, ((norm_cpu_isa_t)no_isa[i]));
    for (int i = 0; i < 4; ++i) INVALID("num_threads", norm_set_num_threads, (no_count[i]));
    for (int i = 0; i < 4; ++i) INVALID("level", norm_set_verbose, (no_level[i]));
    EXPECT(norm_get_effective_cpu_isa() == isa && norm_get_num_threads() == threads);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    engines();
    streams();
    descriptors_by_tag();
    descriptors_by_strides();
    descriptor_queries();
    memories();
    absurd_sizes();
    attributes();
    whole_library();
    MUST(norm_engine_destroy(engine));
    return expect_summary("bad_objects");
}
