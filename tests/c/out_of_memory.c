/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Every function, with one allocation inside the library failing. One process makes all calls, in
 * parts, without failures. Before each part it forks. In child n, allocation n of the part fails,
 * once alone and once with all later ones of its call. A call then either returns
 * norm_out_of_memory and writes nothing, or succeeds. It never ends the process. With the argument
 * `list`, the program prints the functions and nothing fails.
 */
#define _GNU_SOURCE
#include "control_without_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 64, COLS = 768 }; /* enough for two threads */
static norm_dim_t rows; /* fewer on one thread */

static norm_engine_t engine;
static norm_stream_t stream;
static norm_memory_desc_t rows_desc, row_desc, stat_desc, any_desc, blocked_desc;
static float src[ROWS * COLS], dst[ROWS * COLS], diff_dst[ROWS * COLS], diff_src[ROWS * COLS];
static float mean[ROWS], variance[ROWS], scale[COLS], shift[COLS], diff_scale[COLS],
        diff_shift[COLS], again[ROWS * COLS], factor[1] = {2};
static char scratchpad[1 << 22];
static norm_primitive_attr_t attr;
static int threads;

static void engines_and_streams(void) {
    norm_engine_kind_t kind = norm_gpu;
    norm_engine_t its = NULL, none = NULL;
    VALUE(1, norm_engine_get_count, (norm_cpu));
    WATCH(engine);
    CALL(norm_engine_create, (&engine, norm_cpu, 0));
    WATCH(none);
    ENDS(norm_invalid_arguments, norm_engine_create, (&none, norm_gpu, 0));
    WATCH(kind);
    CALL(norm_engine_get_kind, (engine, &kind));
    EXPECT(kind == norm_cpu && none == NULL);
    WATCH(stream);
    CALL(norm_stream_create, (&stream, engine, norm_stream_default_flags));
    WATCH(its);
    CALL(norm_stream_get_engine, (stream, &its));
    CALL(norm_stream_wait, (stream));
    CALL(norm_stream_set_parallel_for, (stream, NULL, NULL, 1));
}

static void descriptors(void) {
    const norm_dims_t dims = {rows, COLS}, flat = {rows * COLS}, half = {rows / 2, COLS / 2};
    const norm_dims_t strides = {1, rows}, offsets = {rows / 2, COLS / 2}, none = {0, -1};
    const int swapped[] = {1, 0};
    norm_memory_desc_t by_tag = NULL, turned = NULL, copy = NULL, part = NULL, whole = NULL;
    norm_memory_desc_t restored = NULL;
    WATCH(rows_desc);
    CALL(norm_memory_desc_create_with_tag, (&rows_desc, 2, dims, norm_f32, norm_ab));
    WATCH(row_desc);
    CALL(norm_memory_desc_create_with_tag, (&row_desc, 1, dims + 1, norm_f32, norm_a));
    WATCH(stat_desc);
    CALL(norm_memory_desc_create_with_tag, (&stat_desc, 1, dims, norm_f32, norm_a));
    WATCH(any_desc);
    CALL(norm_memory_desc_create_with_tag,
            (&any_desc, 2, dims, norm_f32, norm_format_tag_any));
    WATCH(by_tag);
    ENDS(norm_invalid_arguments, norm_memory_desc_create_with_tag,
            (&by_tag, 2, none, norm_f32, norm_ab));
    WATCH(blocked_desc);
    CALL(norm_memory_desc_create_with_string_tag,
            (&blocked_desc, 2, dims, norm_f32, "aB32b"));
    WATCH(by_tag);
    ENDS(norm_invalid_arguments, norm_memory_desc_create_with_string_tag,
            (&by_tag, 2, dims, norm_f32, "abc"));
    WATCH(turned);
    CALL(norm_memory_desc_create_with_strides, (&turned, 2, dims, norm_f32, strides));
    WATCH(copy);
    CALL(norm_memory_desc_clone, (&copy, turned));
    VALUE(1, norm_memory_desc_equal, (copy, turned));
    CALL(norm_memory_desc_set_data_type, (copy, norm_bf16));
    VALUE(0, norm_memory_desc_equal, (copy, turned));
    VALUE((size_t)rows * COLS * 2, norm_memory_desc_get_size, (copy));
    VALUE((size_t)rows * COLS * 2, norm_memory_desc_get_size_v2, (copy, 0));
    VALUE(0, norm_memory_desc_get_size_v2, (copy, 1));
    WATCH(part);
    CALL(norm_memory_desc_create_submemory, (&part, rows_desc, half, offsets));
    WATCH(whole);
    CALL(norm_memory_desc_reshape, (&whole, rows_desc, 1, flat));
    WATCH(by_tag);
    CALL(norm_memory_desc_permute_axes, (&by_tag, rows_desc, swapped));
    size_t bytes = 0;
    int ndims = 0;
    CALL(norm_memory_desc_get_blob, (NULL, &bytes, part));
    uint8_t *blob = malloc(bytes);
    if (blob == NULL) _exit(2);
    CALL(norm_memory_desc_get_blob, (blob, &bytes, part));
    WATCH(restored);
    CALL(norm_memory_desc_create_with_blob, (&restored, blob));
    VALUE(1, norm_memory_desc_equal, (restored, part));
    free(blob);
    CALL(norm_memory_desc_query, (part, norm_query_ndims_s32, &ndims));
    CALL(norm_memory_desc_query_v2, (part, norm_query_ndims_s32, 0, &ndims));
    ENDS(norm_invalid_arguments, norm_memory_desc_query_v2,
            (part, norm_query_ndims_s32, 1, &ndims));
    EXPECT(ndims == 2);
    const norm_memory_desc_t all[] = {by_tag, turned, copy, part, whole, restored};
    for (int i = 0; i < 6; ++i) CALL(norm_memory_desc_destroy, (all[i]));
}

static norm_memory_t memory(const_norm_memory_desc_t desc, void *data) {
    norm_memory_t made = NULL;
    WATCH(made);
    CALL(norm_memory_create, (&made, desc, engine, data));
    return made;
}

static void memories(void) {
    norm_memory_t mem = NULL;
    const_norm_memory_desc_t desc = NULL;
    norm_engine_t its = NULL;
    void *handle = NULL, *handles[] = {src};
    WATCH(mem);
    CALL(norm_memory_create_v2, (&mem, rows_desc, engine, 1, handles));
    CALL(norm_memory_get_memory_desc, (mem, &desc));
    CALL(norm_memory_get_engine, (mem, &its));
    CALL(norm_memory_get_data_handle, (mem, &handle));
    CALL(norm_memory_get_data_handle_v2, (mem, &handle, 0));
    CALL(norm_memory_map_data, (mem, &handle));
    CALL(norm_memory_unmap_data, (mem, handle));
    CALL(norm_memory_map_data_v2, (mem, &handle, 0));
    CALL(norm_memory_unmap_data_v2, (mem, handle, 0));
    ENDS(norm_invalid_arguments, norm_memory_unmap_data, (mem, dst));
    CALL(norm_memory_set_data_handle, (mem, dst));
    CALL(norm_memory_set_data_handle_v2, (mem, src, 0));
    EXPECT(handle == src && norm_memory_desc_equal(desc, rows_desc));
    const norm_memory_t owned = memory(rows_desc, NORM_MEMORY_ALLOCATE);
    CALL(norm_memory_destroy, (owned));
    CALL(norm_memory_destroy, (mem));
}

#include "own_calls.h"
static void attributes(void) {
    norm_primitive_attr_t copy = NULL;
    norm_scratchpad_mode_t scratchpad_mode = norm_scratchpad_mode_user;
    norm_accumulation_mode_t accumulation = norm_accumulation_mode_f16;
    norm_fpmath_mode_t math = norm_fpmath_mode_any;
    norm_rounding_mode_t rounding = norm_rounding_mode_stochastic;
    const_norm_post_ops_t list = NULL;
    int number = 7;
    WATCH(attr);
    CALL(norm_primitive_attr_create, (&attr));
    CALL(norm_primitive_attr_set_scratchpad_mode, (attr, norm_scratchpad_mode_library));
    CALL(norm_primitive_attr_get_scratchpad_mode, (attr, &scratchpad_mode));
    CALL(norm_primitive_attr_set_accumulation_mode, (attr, norm_accumulation_mode_strict));
    CALL(norm_primitive_attr_get_accumulation_mode, (attr, &accumulation));
    CALL(norm_primitive_attr_set_fpmath_mode, (attr, norm_fpmath_mode_strict));
    CALL(norm_primitive_attr_get_fpmath_mode, (attr, &math));
    CALL(norm_primitive_attr_set_fpmath_mode_v2, (attr, norm_fpmath_mode_strict, 0));
    CALL(norm_primitive_attr_get_fpmath_mode_v2, (attr, &math, &number));
    CALL(norm_primitive_attr_set_deterministic, (attr, 1));
    CALL(norm_primitive_attr_get_deterministic, (attr, &number));
    CALL(norm_primitive_attr_set_rounding, (attr, NORM_ARG_DST, norm_rounding_mode_stochastic));
    CALL(norm_primitive_attr_set_rounding, (attr, NORM_ARG_DST, norm_rounding_mode_environment));
    CALL(norm_primitive_attr_get_rounding, (attr, NORM_ARG_DST, &rounding));
    CALL(norm_primitive_attr_get_post_ops, (attr, &list));
    WATCH(copy);
    CALL(norm_primitive_attr_clone, (&copy, attr));
    CALL(norm_primitive_attr_set_scales_mask, (copy, NORM_ARG_SRC, 0));
    CALL(norm_primitive_attr_set_scales, (copy, NORM_ARG_DST, 0, 0, NULL, norm_f32));
    CALL(norm_primitive_attr_set_scales_v2, (copy, NORM_ARG_SRC_1, 0, 0, NULL, norm_f32, 0));
    CALL(norm_primitive_attr_set_scales_v3, (copy, NORM_ARG_WEIGHTS, 0, 0, NULL, norm_f32, 0,
            norm_quantization_mode_static_sazp));
    CALL(norm_primitive_attr_set_zero_points_mask, (copy, NORM_ARG_SRC, 0));
    CALL(norm_primitive_attr_set_zero_points, (copy, NORM_ARG_DST, 0, 0, NULL, norm_s32));
    CALL(norm_primitive_attr_set_zero_points_v2,
            (copy, NORM_ARG_WEIGHTS, 0, 0, NULL, norm_s32, 0));
    own_attributes(copy);
    ENDS(norm_invalid_arguments, norm_primitive_attr_set_scales_mask, (copy, -5, 0));
    CALL(norm_primitive_attr_destroy, (copy));
    EXPECT(number == 1 && rounding == norm_rounding_mode_environment);
}

static norm_post_ops_t post_operations(void) {
    norm_post_ops_t all = NULL, used = NULL;
    norm_alg_kind_t algorithm = norm_alg_kind_undef;
    norm_data_type_t types[3];
    const_norm_memory_desc_t operands[2] = {NULL, NULL};
    float numbers[2];
    int32_t point;
    norm_dim_t sizes[3];
    int mask;
    WATCH(all);
    CALL(norm_post_ops_create, (&all));
    CALL(norm_post_ops_append_eltwise, (all, norm_eltwise_relu, 0, 0));
    CALL(norm_post_ops_append_binary, (all, norm_binary_add, blocked_desc));
    WATCH(used);
    CALL(norm_post_ops_clone, (&used, all));
    CALL(norm_post_ops_append_sum, (all, 1, 0, norm_f32));
    CALL(norm_post_ops_append_binary_v2, (all, norm_binary_select, rows_desc, any_desc));
    CALL(norm_post_ops_append_prelu, (all, 0));
    CALL(norm_post_ops_append_dw, (all, norm_f32, norm_f32, norm_f32, 3, 1, 1));
    VALUE(6, norm_post_ops_len, (all));
    VALUE(norm_eltwise, norm_post_ops_get_kind, (all, 0));
    VALUE(norm_undefined_primitive, norm_post_ops_get_kind, (all, 6));
    CALL(norm_post_ops_get_params_eltwise, (all, 0, &algorithm, numbers, numbers + 1));
    CALL(norm_post_ops_get_params_binary, (all, 1, &algorithm, operands));
    CALL(norm_post_ops_get_params_sum, (all, 2, numbers, &point, types));
    CALL(norm_post_ops_get_params_binary_v2, (all, 3, &algorithm, operands, operands + 1));
    CALL(norm_post_ops_get_params_prelu, (all, 4, &mask));
    CALL(norm_post_ops_get_params_dw,
            (all, 5, types, types + 1, types + 2, sizes, sizes + 1, sizes + 2));
    CALL(norm_post_ops_destroy, (all));
    EXPECT(norm_post_ops_len(used) == 2 && algorithm == norm_binary_select);
    return used;
}

static norm_primitive_t primitive(norm_primitive_desc_t desc) {
    norm_primitive_t made = NULL;
    const_norm_primitive_desc_t its = NULL;
    WATCH(made);
    CALL(norm_primitive_create, (&made, desc));
    CALL(norm_primitive_get_primitive_desc, (made, &its));
    EXPECT(its != NULL);
    return made;
}

static size_t bytes_of_rows(void) { return (size_t)rows * COLS * sizeof(float); }
/* Executes twice, the second time without a failing allocation. */
static void execute(norm_primitive_desc_t desc, int count, const norm_exec_arg_t *args,
        float *out, size_t bytes) {
    const norm_primitive_t made = primitive(desc);
    watch(out, bytes);
    CALL(norm_primitive_execute, (made, stream, count, args));
    memcpy(again, out, bytes);
    memset(out, 0x55, bytes);
    MUST(norm_primitive_execute(made, stream, count, args));
    EXPECT(memcmp(again, out, bytes) == 0);
    const const_norm_primitive_t twice[] = {made};
    watch(out, bytes);
    CALL(norm_primitive_execute_many, (1, twice, stream, &count, &args));
    ENDS(norm_invalid_arguments, norm_primitive_execute, (made, stream, 0, args));
    CALL(norm_primitive_destroy, (made));
}

static void queries(norm_primitive_desc_t desc) {
    norm_primitive_desc_t copy = NULL;
    const_norm_primitive_attr_t attr = NULL;
    const char *name = NULL;
    WATCH(copy);
    CALL(norm_primitive_desc_clone, (&copy, desc));
    CALL(norm_primitive_desc_get_attr, (copy, &attr));
    CALL(norm_primitive_desc_query, (copy, norm_query_impl_info_str, 0, &name));
    enter("norm_primitive_desc_query_s32");
    EXPECT(norm_primitive_desc_query_s32(copy, norm_query_num_of_outputs_s32, 0) >= 1);
    inside = 0;
    enter("norm_primitive_desc_query_md");
    const_norm_memory_desc_t src_desc = norm_primitive_desc_query_md(copy, norm_query_src_md, 0);
    inside = 0;
    EXPECT(src_desc != NULL && attr != NULL && name != NULL);
    /* Up to the reference implementation, which has more lists. */
    norm_status_t status;
    do {
        enter("norm_primitive_desc_next_impl");
        status = norm_primitive_desc_next_impl(copy);
        if (leave("norm_primitive_desc_next_impl", status,
                    status == norm_success ? norm_success : norm_last_impl_reached))
            status = norm_success;
    } while (status == norm_success);
    MUST(norm_primitive_desc_query(copy, norm_query_impl_info_str, 0, &name));
    EXPECT(strcmp(name, "ref:any") == 0);
    const norm_primitive_t made = primitive(copy);
    CALL(norm_primitive_destroy, (made));
    CALL(norm_primitive_desc_destroy, (copy));
}

static void forward(void) {
    norm_primitive_desc_t desc = NULL, second = NULL, softmax = NULL, reorder = NULL;
    norm_post_ops_t list = post_operations();
    CALL(norm_primitive_attr_set_post_ops, (attr, list));
    CALL(norm_post_ops_destroy, (list));
    const unsigned flags = norm_use_scale | norm_use_shift;
    WATCH(desc);
    CALL(norm_layer_normalization_forward_primitive_desc_create,
            (&desc, engine, norm_forward_training, rows_desc, any_desc, stat_desc, 1e-5f, flags,
                    attr));
    WATCH(second);
    CALL(norm_layer_normalization_forward_primitive_desc_create_v2,
            (&second, engine, norm_forward_training, rows_desc, rows_desc, NULL, norm_f32, 1e-5f,
                    flags, NULL));
    WATCH(softmax);
    CALL(norm_softmax_forward_primitive_desc_create,
            (&softmax, engine, norm_forward_inference, norm_softmax_accurate, rows_desc, any_desc,
                    0, attr));
    WATCH(reorder);
    CALL(norm_reorder_primitive_desc_create,
            (&reorder, rows_desc, engine, blocked_desc, engine, NULL));
    queries(second);
    queries(softmax);
    queries(reorder);
    const norm_memory_t blocked = memory(blocked_desc, diff_dst);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(rows_desc, src)},
            {NORM_ARG_DST, memory(rows_desc, dst)}, {NORM_ARG_MEAN, memory(stat_desc, mean)},
            {NORM_ARG_VARIANCE, memory(stat_desc, variance)},
            {NORM_ARG_SCALE, memory(row_desc, scale)}, {NORM_ARG_SHIFT, memory(row_desc, shift)},
            {NORM_ARG_ATTR_MULTIPLE_POST_OP(1) | NORM_ARG_SRC_1, blocked}};
    execute(desc, 7, args, dst, bytes_of_rows());
    execute(second, 7, args, dst, bytes_of_rows());
    execute(softmax, 7, args, dst, bytes_of_rows());
    const norm_exec_arg_t moved[] = {{NORM_ARG_SRC, args[0].memory}, {NORM_ARG_DST, blocked}};
    execute(reorder, 2, moved, diff_dst, bytes_of_rows());
    for (int i = 0; i < 7; ++i) CALL(norm_memory_destroy, (args[i].memory));
    const norm_primitive_desc_t all[] = {desc, second, softmax, reorder};
    for (int i = 0; i < 4; ++i) CALL(norm_primitive_desc_destroy, (all[i]));
}

#include "out_of_memory_problems.h"
#include "out_of_memory_elementwise.h"
#include "out_of_memory_kv_cache.h"
#include "out_of_memory_rope.h"

static void backward(void) {
    norm_primitive_desc_t desc = NULL, second = NULL, softmax = NULL;
    const unsigned flags = norm_use_scale | norm_use_shift;
    norm_post_ops_t none = NULL;
    MUST(norm_post_ops_create(&none));
    MUST(norm_primitive_attr_set_post_ops(attr, none));
    MUST(norm_post_ops_destroy(none));
    MUST(norm_primitive_attr_set_scratchpad_mode(attr, norm_scratchpad_mode_user));
    WATCH(desc);
    CALL(norm_layer_normalization_backward_primitive_desc_create,
            (&desc, engine, norm_backward, any_desc, rows_desc, rows_desc, stat_desc, 1e-5f, flags,
                    NULL, NULL));
    WATCH(second);
    CALL(norm_layer_normalization_backward_primitive_desc_create_v2,
            (&second, engine, norm_backward, rows_desc, rows_desc, rows_desc, stat_desc, norm_f32,
                    norm_f32, 1e-5f, flags, NULL, attr));
    WATCH(softmax);
    CALL(norm_softmax_backward_primitive_desc_create,
            (&softmax, engine, norm_softmax_log, rows_desc, rows_desc, rows_desc, 1, NULL, NULL));
    queries(desc);
    const_norm_memory_desc_t pad = norm_primitive_desc_query_md(second, norm_query_scratchpad_md, 0);
    EXPECT(norm_memory_desc_get_size(pad) <= sizeof scratchpad);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(rows_desc, src)},
            {NORM_ARG_DIFF_DST, memory(rows_desc, diff_dst)},
            {NORM_ARG_DIFF_SRC, memory(rows_desc, diff_src)},
            {NORM_ARG_MEAN, memory(stat_desc, mean)},
            {NORM_ARG_VARIANCE, memory(stat_desc, variance)},
            {NORM_ARG_SCALE, memory(row_desc, scale)},
            {NORM_ARG_DIFF_SCALE, memory(row_desc, diff_scale)},
            {NORM_ARG_DIFF_SHIFT, memory(row_desc, diff_shift)},
            {NORM_ARG_SCRATCHPAD, memory(pad, scratchpad)},
            {NORM_ARG_DST, memory(rows_desc, dst)}};
    execute(desc, 10, args, diff_src, bytes_of_rows());
    execute(second, 10, args, diff_scale, sizeof diff_scale);
    execute(softmax, 10, args, diff_src, bytes_of_rows());
    for (int i = 0; i < 10; ++i) CALL(norm_memory_destroy, (args[i].memory));
    const norm_primitive_desc_t all[] = {desc, second, softmax};
    for (int i = 0; i < 3; ++i) CALL(norm_primitive_desc_destroy, (all[i]));
}

static void in_turn(void *pool, int count, norm_parallel_body_t body, void *context) {
    (void)pool;
    for (int i = 0; i < count; ++i) body(i, context);
}

/* Execution on threads of the caller's. */
static void callers_threads(void) {
    CALL(norm_stream_set_parallel_for, (stream, in_turn, NULL, 3));
    backward();
    CALL(norm_stream_set_parallel_for, (stream, NULL, NULL, 1));
}

static void explanations(void) {
    norm_memory_t its = NULL;
    norm_explanation_t found;
    norm_remedy_t remedies[NORM_REMEDIES];
    WATCH(its);
    CALL(norm_memory_create, (&its, rows_desc, engine, src));
    watch(&found, sizeof found);
    CALL(norm_explain, (its, NULL, 1e-5f, norm_rms_norm, 0, &found));
    watch(remedies, sizeof remedies);
    CALL(norm_explain_remedies, (its, NULL, 1e-5f, norm_rms_norm, 0, remedies));
    enter("norm_explanation_text");
    EXPECT(norm_explanation_text(&found, remedies, NULL, 0) > 100);
    inside = 0;
    CALL(norm_memory_destroy, (its));
}

static void beginning(void) {
    settings(threads);
    names();
}

static void ending(void) {
    enter("norm_get_last_num_threads");
    EXPECT(norm_get_last_num_threads() > 0);
    inside = 0;
    CALL(norm_primitive_attr_destroy, (attr));
    const norm_memory_desc_t all[] = {rows_desc, row_desc, stat_desc, any_desc, blocked_desc};
    for (int i = 0; i < 5; ++i) CALL(norm_memory_desc_destroy, (all[i]));
    CALL(norm_stream_destroy, (stream));
    CALL(norm_engine_destroy, (engine));
    enter("norm_get_last_error");
    EXPECT(norm_get_last_error() != NULL);
    inside = 0;
}

static void (*const parts[])(void) = {beginning, engines_and_streams, descriptors, memories,
        attributes, forward, scaled, groups, elementwise, backward, gates, attentions, explanations,
        ropes, kv_caches, callers_threads, ending};

/* How a process ended. */
enum { PASSED = 10, FAILED, NOTHING_FAILED };

/* How a child ended, which is also in expect_case. */
static int wait_for(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
    snprintf(expect_case, sizeof expect_case, "%d threads, allocation %ld%s, status %#x", threads,
            failing, to_the_end ? " and after" : "", (unsigned)status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/* Runs a part in a child in which an allocation fails. */
static int in_a_child(void (*part)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        allocations = 0;
        part();
        _exit(expect_failed > 0 ? FAILED : allocations < failing ? NOTHING_FAILED : PASSED);
    }
    return wait_for(child);
}

/* Runs a part in children until none of its allocations is left to fail. Returns the number of
 * allocations. */
static long without_memory(void (*part)(void)) {
    int end = PASSED;
    for (failing = 1; end != NOTHING_FAILED && expect_failed < 5; ++failing) {
        end = in_a_child(part);
        EXPECT(end == PASSED || end == NOTHING_FAILED);
    }
    return failing - 2;
}

static void sequence(void) {
    long alone = 0, with_later = 0;
    for (int i = 0; i < ROWS * COLS; ++i) {
        src[i] = (float)(i % 37) - 11;
        diff_dst[i] = (float)(i % 23) - 9;
    }
    for (int i = 0; i < COLS; ++i) scale[i] = (float)(i % 5), shift[i] = (float)(i % 3);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        if (!listing) {
            alone += without_memory(parts[i]);
            to_the_end = 1;
            with_later += without_memory(parts[i]);
        }
        failing = to_the_end = 0;
        parts[i]();
    }
    EXPECT(listing || (alone > 100 && with_later > 100));
}

static void expect_refusal(const char *function) {
    snprintf(expect_case, sizeof expect_case, "%s", function);
    EXPECT(has_refused(function));
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        listing = threads = 1, rows = ROWS;
        sequence();
        return expect_failed > 0;
    }
    refusing = mmap(NULL, 2 * sizeof(names_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
            -1, 0);
    if (refusing == MAP_FAILED) return 2;
    creating = refusing + 1;
    for (threads = 1; threads <= 3; threads += 2) {
        rows = threads == 1 ? 8 : ROWS;
        const pid_t child = fork();
        if (child == 0) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO); /* the verbose lines */
            sequence();
            _exit(expect_failed > 0 ? FAILED : PASSED);
        }
        EXPECT(wait_for(child) == PASSED);
    }
    /* Every function that creates something has run out of memory. */
    static const char *const others[] = {"norm_memory_desc_reshape",
            "norm_memory_desc_permute_axes", "norm_primitive_attr_set_post_ops",
            "norm_primitive_attr_set_residual", "norm_primitive_attr_set_gate",
            "norm_post_ops_append_sum", "norm_post_ops_append_eltwise",
            "norm_post_ops_append_prelu", "norm_rope_permute", "norm_kv_cache_get_descs",
            "norm_primitive_desc_next_impl", "norm_primitive_execute",
            "norm_primitive_execute_many", "norm_explain", "norm_explain_remedies"};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) expect_refusal(others[i]);
    EXPECT((*creating)[0][0] != 0);
    for (int i = 0; i < MOST_NAMES && (*creating)[i][0] != 0; ++i) expect_refusal((*creating)[i]);
    return expect_summary("out_of_memory");
}
