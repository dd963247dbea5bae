/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The lifetime of every object, and the result of every query.
 */
#include "tensor.h"

static norm_engine_t engine;

static void engine_and_stream(void) {
    norm_engine_kind_t kind = norm_gpu;
    EXPECT(norm_engine_get_kind(engine, &kind) == norm_success && kind == norm_cpu);
    norm_engine_t any = NULL, of_stream = NULL;
    MUST(norm_engine_create(&any, norm_any_engine, 0));
    EXPECT(norm_engine_get_kind(any, &kind) == norm_success && kind == norm_cpu);
    norm_stream_t stream = NULL;
    MUST(norm_stream_create(&stream, any, norm_stream_out_of_order));
    EXPECT(norm_stream_get_engine(stream, &of_stream) == norm_success && of_stream == any);
    EXPECT(norm_stream_wait(stream) == norm_success);
    /* The objects that a stream was created from may be destroyed first. */
    MUST(norm_engine_destroy(any));
    EXPECT(norm_stream_get_engine(stream, &of_stream) == norm_success && of_stream == any);
    EXPECT(norm_engine_get_kind(of_stream, &kind) == norm_success && kind == norm_cpu);
    EXPECT(norm_engine_destroy(any) == norm_invalid_arguments);
    EXPECT(strstr(norm_get_last_error(), "owned by another object") != NULL);
    norm_stream_t second = NULL;
    MUST(norm_stream_create(&second, of_stream, norm_stream_in_order));
    MUST(norm_stream_destroy(stream));
    EXPECT(norm_engine_get_kind(of_stream, &kind) == norm_success);
    MUST(norm_stream_destroy(second));
    EXPECT(norm_engine_get_kind(any, &kind) == norm_invalid_arguments);

    EXPECT(norm_engine_destroy(NULL) == norm_success);
    EXPECT(norm_stream_destroy(NULL) == norm_success);
    EXPECT(norm_memory_desc_destroy(NULL) == norm_success);
    EXPECT(norm_memory_destroy(NULL) == norm_success);
    EXPECT(norm_primitive_attr_destroy(NULL) == norm_success);
    EXPECT(norm_primitive_desc_destroy(NULL) == norm_success);
    EXPECT(norm_primitive_destroy(NULL) == norm_success);
}

static const norm_dim_t *dims_of(const_norm_memory_desc_t desc, norm_query_t what) {
    const norm_dims_t *answer = NULL;
    MUST(norm_memory_desc_query(desc, what, (void *)&answer));
    return *answer;
}

static int equal_dims(const norm_dim_t *got, norm_dim_t a, norm_dim_t b, norm_dim_t c) {
    return got[0] == a && got[1] == b && got[2] == c;
}

static void descriptors(void) {
    const norm_dims_t dims = {2, 3, 5};
    const norm_dims_t loose = {40, 8, 1};
    norm_memory_desc_t tagged = NULL, strided = NULL, dense = NULL, clone = NULL, empty = NULL;
    MUST(norm_memory_desc_create_with_tag(&tagged, 3, dims, norm_f16, norm_cab));
    MUST(norm_memory_desc_create_with_strides(&strided, 3, dims, norm_f32, loose));
    MUST(norm_memory_desc_create_with_strides(&dense, 3, dims, norm_f32, NULL));
    MUST(norm_memory_desc_create_with_tag(
            &empty, 0, NULL, norm_data_type_undef, norm_format_tag_undef));

    EXPECT(equal_dims(dims_of(tagged, norm_query_dims), 2, 3, 5));
    EXPECT(equal_dims(dims_of(tagged, norm_query_padded_dims), 2, 3, 5));
    EXPECT(equal_dims(dims_of(tagged, norm_query_padded_offsets), 0, 0, 0));
    EXPECT(equal_dims(dims_of(tagged, norm_query_strides), 3, 1, 6));
    EXPECT(equal_dims(dims_of(strided, norm_query_strides), 40, 8, 1));
    EXPECT(equal_dims(dims_of(dense, norm_query_strides), 15, 5, 1));
    EXPECT(norm_memory_desc_get_size(tagged) == 60);
    EXPECT(norm_memory_desc_get_size(strided) == (40 + 2 * 8 + 4 + 1) * 4);
    EXPECT(norm_memory_desc_get_size(dense) == 120);
    EXPECT(norm_memory_desc_get_size(empty) == 0);
    EXPECT(norm_memory_desc_get_size(NULL) == 0);

    int number = -1;
    norm_dim_t offset = -1;
    norm_data_type_t type = norm_s32;
    norm_format_kind_t kind = norm_format_kind_undef;
    EXPECT(norm_memory_desc_query(tagged, norm_query_ndims_s32, &number) == norm_success);
    EXPECT(number == 3);
    EXPECT(norm_memory_desc_query(tagged, norm_query_inner_nblks_s32, &number) == norm_success);
    EXPECT(number == 0);
    EXPECT(norm_memory_desc_query(tagged, norm_query_submemory_offset_s64, &offset)
            == norm_success);
    EXPECT(offset == 0);
    EXPECT(norm_memory_desc_query(tagged, norm_query_data_type, &type) == norm_success);
    EXPECT(type == norm_f16);
    EXPECT(norm_memory_desc_query(tagged, norm_query_format_kind, &kind) == norm_success);
    EXPECT(kind == norm_blocked);
    EXPECT(norm_memory_desc_query(empty, norm_query_ndims_s32, &number) == norm_success);
    EXPECT(number == 0);

    MUST(norm_memory_desc_clone(&clone, strided));
    EXPECT(norm_memory_desc_equal(clone, strided) == 1);
    EXPECT(norm_memory_desc_equal(dense, strided) == 0);
    EXPECT(norm_memory_desc_equal(tagged, NULL) == 0);
    EXPECT(norm_memory_desc_equal(NULL, tagged) == 0);
    EXPECT(norm_memory_desc_equal(NULL, NULL) == 1);
    MUST(norm_memory_desc_destroy(strided));
    EXPECT(equal_dims(dims_of(clone, norm_query_strides), 40, 8, 1));
    MUST(norm_memory_desc_destroy(clone));
    MUST(norm_memory_desc_destroy(tagged));
    MUST(norm_memory_desc_destroy(dense));
    MUST(norm_memory_desc_destroy(empty));

    /* Strides of dimensions of size 1 do not matter. */
    const norm_dims_t thin = {1, 4}, one = {4, 1}, other = {77, 1};
    norm_memory_desc_t a = NULL, b = NULL, any = NULL;
    MUST(norm_memory_desc_create_with_strides(&a, 2, thin, norm_f32, one));
    MUST(norm_memory_desc_create_with_strides(&b, 2, thin, norm_f32, other));
    EXPECT(norm_memory_desc_equal(a, b) == 1);
    MUST(norm_memory_desc_create_with_tag(&any, 2, thin, norm_f32, norm_format_tag_any));
    EXPECT(norm_memory_desc_query(any, norm_query_format_kind, &kind) == norm_success);
    EXPECT(kind == norm_format_kind_any);
    EXPECT(norm_memory_desc_get_size(any) == 0 && norm_memory_desc_equal(any, a) == 0);
    MUST(norm_memory_desc_destroy(a));
    MUST(norm_memory_desc_destroy(b));
    MUST(norm_memory_desc_destroy(any));
}

/* Compares each tag with the strides that its letters imply. */
static void tags(void) {
    int value = 2;
    for (; strcmp(norm_fmt_tag2str((norm_format_tag_t)value), "unknown format tag"); ++value) {
        const char *letters = norm_fmt_tag2str((norm_format_tag_t)value);
        const int ndims = (int)strcspn(letters, "0123456789");
        const norm_dims_t dims = {2, 3, 5, 7, 11, 13, 2, 3, 2, 2, 2, 2};
        norm_dims_t block = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        norm_memory_desc_t desc = NULL;
        snprintf(expect_case, sizeof expect_case, "tag %s", letters);
        MUST(norm_memory_desc_create_with_tag(
                &desc, ndims, dims, norm_bf16, (norm_format_tag_t)value));
        norm_dim_t stride = 1;
        int blocks = 0, count = -1;
        for (const char *at = letters + ndims; *at != 0; ++at, ++blocks) {
            char *axis = NULL;
            const long size = strtol(at, &axis, 10);
            at = axis;
            block[*at - 'a'] *= size;
            stride *= size;
            EXPECT(dims_of(desc, norm_query_inner_blks)[blocks] == size);
            EXPECT(dims_of(desc, norm_query_inner_idxs)[blocks] == *at - 'a');
        }
        EXPECT(norm_memory_desc_query(desc, norm_query_inner_nblks_s32, &count) == norm_success);
        EXPECT(count == blocks);
        for (int i = ndims - 1; i >= 0; --i) {
            const int axis = (letters[i] | 0x20) - 'a';
            EXPECT(axis >= 0 && axis < ndims && dims_of(desc, norm_query_strides)[axis] == stride);
            EXPECT((letters[i] < 'a') == (block[axis] > 1));
            const norm_dim_t whole = (dims[axis] + block[axis] - 1) / block[axis];
            EXPECT(dims_of(desc, norm_query_padded_dims)[axis] == whole * block[axis]);
            stride *= whole;
        }
        EXPECT(norm_memory_desc_get_size(desc) == (size_t)stride * 2);
        MUST(norm_memory_desc_destroy(desc));
    }
    EXPECT(value == norm_aBcdef32b + 1);
    expect_case[0] = 0;
}

static void memories(void) {
    const norm_dims_t dims = {3, 7};
    norm_memory_desc_t desc = NULL;
    norm_memory_t own = NULL, none = NULL, given = NULL;
    float buffer[21] = {0};
    void *handle = buffer, *mapped = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_create(&own, desc, engine, NORM_MEMORY_ALLOCATE));
    MUST(norm_memory_create(&none, desc, engine, NORM_MEMORY_NONE));
    MUST(norm_memory_create(&given, desc, engine, buffer));

    EXPECT(norm_memory_get_data_handle(own, &handle) == norm_success && handle != NULL);
    EXPECT((uintptr_t)handle % 64 == 0);
    for (int i = 0; i < 21; ++i) EXPECT(((float *)handle)[i] == 0);
    EXPECT(norm_memory_map_data(own, &mapped) == norm_success && mapped == handle);
    ((float *)mapped)[20] = 4;
    EXPECT(norm_memory_unmap_data(own, mapped) == norm_success);
    EXPECT(((float *)handle)[20] == 4);
    EXPECT(norm_memory_get_data_handle(none, &handle) == norm_success && handle == NULL);
    mapped = buffer;
    EXPECT(norm_memory_map_data(none, &mapped) == norm_success && mapped == NULL);
    EXPECT(norm_memory_set_data_handle(none, buffer) == norm_success);
    EXPECT(norm_memory_get_data_handle(none, &handle) == norm_success && handle == buffer);
    EXPECT(norm_memory_get_data_handle(given, &handle) == norm_success && handle == buffer);
    /* The library's buffer is freed; valgrind would report a leak. */
    EXPECT(norm_memory_set_data_handle(own, buffer) == norm_success);
    EXPECT(norm_memory_get_data_handle(own, &handle) == norm_success && handle == buffer);
    EXPECT(norm_memory_set_data_handle(own, NULL) == norm_success);
    EXPECT(norm_memory_get_data_handle(own, &handle) == norm_success && handle == NULL);

    const_norm_memory_desc_t its_desc = NULL;
    norm_engine_t its_engine = NULL;
    norm_engine_kind_t kind = norm_gpu;
    EXPECT(norm_memory_get_memory_desc(given, &its_desc) == norm_success);
    EXPECT(norm_memory_desc_equal(its_desc, desc) == 1);
    MUST(norm_memory_desc_destroy(desc));
    EXPECT(dims_of(its_desc, norm_query_dims)[1] == 7);
    EXPECT(norm_memory_get_engine(given, &its_engine) == norm_success && its_engine == engine);
    EXPECT(norm_engine_get_kind(its_engine, &kind) == norm_success && kind == norm_cpu);
    MUST(norm_memory_destroy(own));
    MUST(norm_memory_destroy(none));
    MUST(norm_memory_destroy(given));
}

static void attributes(void) {
    norm_primitive_attr_t attr = NULL, clone = NULL;
    norm_scratchpad_mode_t mode = norm_scratchpad_mode_user;
    MUST(norm_primitive_attr_create(&attr));
    EXPECT(norm_primitive_attr_get_scratchpad_mode(attr, &mode) == norm_success);
    EXPECT(mode == norm_scratchpad_mode_library);
    EXPECT(norm_primitive_attr_set_scratchpad_mode(attr, norm_scratchpad_mode_user)
            == norm_success);
    MUST(norm_primitive_attr_clone(&clone, attr));
    MUST(norm_primitive_attr_destroy(attr));
    EXPECT(norm_primitive_attr_get_scratchpad_mode(clone, &mode) == norm_success);
    EXPECT(mode == norm_scratchpad_mode_user);
    MUST(norm_primitive_attr_destroy(clone));
}

/* Whether an argument's descriptor has these dimensions. */
static int argument_is(const_norm_primitive_desc_t pd, int arg, norm_data_type_t type, int ndims) {
    const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, arg);
    int number = -1;
    norm_data_type_t its = norm_data_type_undef;
    if (desc == NULL) return 0;
    MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &number));
    MUST(norm_memory_desc_query(desc, norm_query_data_type, &its));
    return number == ndims && (ndims == 0 || its == type);
}

static int query_ndims(const_norm_primitive_desc_t pd, norm_query_t what, int index) {
    const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, what, index);
    int number = -1;
    if (desc != NULL) MUST(norm_memory_desc_query(desc, norm_query_ndims_s32, &number));
    return number;
}

static void primitive_descriptors(void) {
    const norm_dims_t dims = {2, 3, 48};
    norm_memory_desc_t src = NULL, any = NULL;
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL, clone = NULL, backward = NULL;
    MUST(norm_memory_desc_create_with_tag(&src, 3, dims, norm_bf16, norm_abc));
    MUST(norm_memory_desc_create_with_tag(&any, 3, dims, norm_f16, norm_format_tag_any));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_scratchpad_mode(attr, norm_scratchpad_mode_user));
    MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
            norm_forward_training, src, any, NULL, 0.25f, norm_use_scale | norm_use_shift, attr));
    MUST(norm_primitive_attr_destroy(attr));

    int number = -1;
    float epsilon = -1;
    unsigned flags = 0;
    const char *name = NULL;
    norm_dim_t bytes = -1;
    norm_engine_t its_engine = NULL;
    norm_prop_kind_t prop = norm_prop_kind_undef;
    norm_primitive_kind_t kind = norm_undefined_primitive;
    norm_scratchpad_mode_t mode = norm_scratchpad_mode_library;
    const_norm_primitive_attr_t its_attr = NULL;
    EXPECT(norm_primitive_desc_query(pd, norm_query_primitive_kind, 0, &kind) == norm_success);
    EXPECT(kind == norm_layer_normalization);
    EXPECT(norm_primitive_desc_query(pd, norm_query_prop_kind, 0, &prop) == norm_success);
    EXPECT(prop == norm_forward_training);
    EXPECT(norm_primitive_desc_query(pd, norm_query_epsilon_f32, 0, &epsilon) == norm_success);
    EXPECT(epsilon == 0.25f);
    EXPECT(norm_primitive_desc_query(pd, norm_query_flags, 0, &flags) == norm_success);
    EXPECT(flags == (norm_use_scale | norm_use_shift));
    EXPECT(norm_primitive_desc_query(pd, norm_query_engine, 0, &its_engine) == norm_success);
    EXPECT(its_engine == engine);
    its_engine = NULL;
    EXPECT(norm_primitive_desc_query(pd, norm_query_scratchpad_engine, 0, &its_engine)
            == norm_success);
    EXPECT(its_engine == engine);
    EXPECT(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, &name) == norm_success);
    EXPECT(name != NULL && (strncmp(name, "simd:", 5) == 0 || strncmp(name, "ref:", 4) == 0));
    EXPECT(norm_primitive_desc_query(pd, norm_query_memory_consumption_s64, 0, &bytes)
            == norm_success);
    EXPECT(bytes == 0); /* the caller provides it */
    double estimate = -1;
    EXPECT(norm_primitive_desc_query(pd, norm_query_time_estimate_f64, 0, &estimate)
            == norm_unimplemented);
    EXPECT(estimate == -1);
    EXPECT(norm_primitive_desc_query_s32(pd, norm_query_num_of_inputs_s32, 0) == 3);
    EXPECT(norm_primitive_desc_query(pd, norm_query_num_of_outputs_s32, 0, &number)
            == norm_success);
    EXPECT(number == norm_primitive_desc_query_s32(pd, norm_query_num_of_outputs_s32, 0));
    EXPECT(number >= 3);
    EXPECT(norm_primitive_desc_get_attr(pd, &its_attr) == norm_success);
    EXPECT(norm_primitive_attr_get_scratchpad_mode(its_attr, &mode) == norm_success);
    EXPECT(mode == norm_scratchpad_mode_user);

    EXPECT(argument_is(pd, NORM_ARG_SRC, norm_bf16, 3));
    EXPECT(argument_is(pd, NORM_ARG_DST, norm_f16, 3));
    EXPECT(argument_is(pd, NORM_ARG_MEAN, norm_f32, 2));
    EXPECT(argument_is(pd, NORM_ARG_VARIANCE, norm_f32, 2));
    EXPECT(argument_is(pd, NORM_ARG_SCALE, norm_f32, 1));
    EXPECT(argument_is(pd, NORM_ARG_SHIFT, norm_f32, 1));
    EXPECT(argument_is(pd, NORM_ARG_DIFF_SRC, norm_f32, 0));
    EXPECT(query_ndims(pd, norm_query_src_md, 0) == 3);
    EXPECT(query_ndims(pd, norm_query_src_md, 1) == 0); /* not an input here */
    EXPECT(query_ndims(pd, norm_query_dst_md, 0) == 3);
    EXPECT(query_ndims(pd, norm_query_dst_md, 1) == 2);
    EXPECT(query_ndims(pd, norm_query_dst_md, 2) == 2);
    EXPECT(query_ndims(pd, norm_query_weights_md, 0) >= 1);
    EXPECT(query_ndims(pd, norm_query_workspace_md, 0) == 0);
    /* There is one. */
    EXPECT(norm_primitive_desc_query_md(pd, norm_query_workspace_md, 1) == NULL);
    EXPECT(query_ndims(pd, norm_query_diff_src_md, 0) == 0);
    const_norm_memory_desc_t by_query = NULL;
    EXPECT(norm_primitive_desc_query(pd, norm_query_dst_md, 0, (void *)&by_query)
            == norm_success);
    EXPECT(by_query == norm_primitive_desc_query_md(pd, norm_query_dst_md, 0));
    /* "any" became the layout of src. */
    EXPECT(by_query != NULL && dims_of(by_query, norm_query_strides)[0] == 144
            && dims_of(by_query, norm_query_strides)[2] == 1);

    /* A clone advances independently. The last implementation ends the list. */
    MUST(norm_primitive_desc_clone(&clone, pd));
    norm_status_t status = norm_success;
    int implementations = 1;
    char last[64] = "";
    for (; implementations < 20; ++implementations) {
        MUST(norm_primitive_desc_query(clone, norm_query_impl_info_str, 0, &name));
        snprintf(last, sizeof last, "%s", name);
        status = norm_primitive_desc_next_impl(clone);
        if (status != norm_success) break;
    }
    EXPECT(status == norm_last_impl_reached);
    EXPECT(implementations >= 2 && strcmp(last, "ref:any") == 0);
    MUST(norm_primitive_desc_query(clone, norm_query_impl_info_str, 0, &name));
    EXPECT(strcmp(last, name) == 0);
    MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, &name));
    EXPECT(strcmp(last, name) != 0);

    MUST(norm_layer_normalization_backward_primitive_desc_create(&backward, engine,
            norm_backward, src, src, src, NULL, 0.5f, norm_use_scale | norm_rms_norm, NULL, NULL));
    EXPECT(argument_is(backward, NORM_ARG_DIFF_SRC, norm_bf16, 3));
    EXPECT(argument_is(backward, NORM_ARG_DIFF_DST, norm_bf16, 3));
    EXPECT(argument_is(backward, NORM_ARG_MEAN, norm_f32, 0));
    EXPECT(argument_is(backward, NORM_ARG_VARIANCE, norm_f32, 2));
    EXPECT(argument_is(backward, NORM_ARG_DIFF_SCALE, norm_f32, 1));
    EXPECT(argument_is(backward, NORM_ARG_DIFF_SHIFT, norm_f32, 0));
    EXPECT(query_ndims(backward, norm_query_src_md, 2) == 2);
    EXPECT(query_ndims(backward, norm_query_diff_weights_md, 0) == 1);
    MUST(norm_primitive_desc_destroy(backward));

    /* The objects that the primitive was created from are destroyed first. */
    norm_primitive_t primitive = NULL;
    const_norm_primitive_desc_t its_pd = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_memory_desc_destroy(src));
    MUST(norm_memory_desc_destroy(any));
    EXPECT(norm_primitive_get_primitive_desc(primitive, &its_pd) == norm_success);
    EXPECT(argument_is(its_pd, NORM_ARG_SRC, norm_bf16, 3));
    MUST(norm_primitive_desc_destroy(clone));
    MUST(norm_primitive_destroy(primitive));
}

/* With the argument "leak", one object is not destroyed; the memory checker must
 * report it. */
int main(int argc, char **argv) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    if (argc > 1 && strcmp(argv[1], "leak") == 0) {
        norm_primitive_attr_t attr = NULL;
        MUST(norm_primitive_attr_create(&attr));
    }
    engine_and_stream();
    descriptors();
    tags();
    memories();
    attributes();
    primitive_descriptors();
    MUST(norm_engine_destroy(engine));
    return expect_summary("objects");
}
