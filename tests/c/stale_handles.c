/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Handles that were destroyed, that are of another kind, or that belong to other objects are
 * refused with a message. The memory of destroyed objects is reused.
 */
#define _GNU_SOURCE
#include "heap.h"
#include "refused.h"

static volatile long allocations; /* updated with __sync_fetch_and_add */

static int heap_grants(void) {
    __sync_fetch_and_add(&allocations, 1);
    return 1;
}

static norm_engine_t engine;
static norm_stream_t stream;
static norm_memory_desc_t desc;
static norm_memory_t memory;
static norm_primitive_attr_t attr;
static norm_post_ops_t post_ops;
static norm_primitive_desc_t problem;
static norm_primitive_t primitive;

static float data[6];
static const norm_dims_t dims = {2, 3};

static void make_all(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_create(&memory, desc, engine, data));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_post_ops_create(&post_ops));
    MUST(norm_layer_normalization_forward_primitive_desc_create(&problem, engine,
            norm_forward_inference, desc, desc, NULL, 0, norm_rms_norm, attr));
    MUST(norm_primitive_create(&primitive, problem));
}

/* Calls with each kind of handle, by the name of the parameter. Each message contains `says`. */
static void all_are_refused(const char *says) {
    norm_engine_kind_t kind = norm_gpu;
    norm_scratchpad_mode_t mode = norm_scratchpad_mode_user;
    norm_engine_t its = UNTOUCHED;
    norm_stream_t new_stream = UNTOUCHED;
    norm_memory_t new_memory = UNTOUCHED;
    norm_memory_desc_t new_desc = UNTOUCHED;
    norm_primitive_attr_t new_attr = UNTOUCHED;
    norm_post_ops_t new_post_ops = UNTOUCHED;
    norm_primitive_desc_t new_problem = UNTOUCHED;
    norm_primitive_t new_primitive = UNTOUCHED;
    const_norm_memory_desc_t its_desc = UNTOUCHED;
    const_norm_primitive_desc_t its_problem = UNTOUCHED;
    void *handle = UNTOUCHED;
#define STALE(parameter, function, arguments) \
    do { \
        INVALID(parameter, function, arguments); \
        EXPECT(strstr(norm_get_last_error(), says) != NULL); \
    } while (0)
    STALE("engine", norm_engine_get_kind, (engine, &kind));
    STALE("engine", norm_stream_create, (&new_stream, engine, norm_stream_default_flags));
    STALE("engine", norm_engine_destroy, (engine));
    STALE("stream", norm_stream_wait, (stream));
    STALE("stream", norm_stream_get_engine, (stream, &its));
    STALE("stream", norm_stream_set_parallel_for, (stream, NULL, NULL, 1));
    STALE("stream", norm_stream_destroy, (stream));
    STALE("existing_memory_desc", norm_memory_desc_clone, (&new_desc, desc));
    STALE("memory_desc", norm_memory_desc_set_data_type, (desc, norm_bf16));
    STALE("memory_desc", norm_memory_desc_destroy, (desc));
    FAILS_WITH(0, "memory_desc", norm_memory_desc_get_size, (desc));
    FAILS_WITH(0, "lhs", norm_memory_desc_equal, (desc, NULL));
    FAILS_WITH(0, "rhs", norm_memory_desc_equal, (NULL, desc));
    STALE("memory", norm_memory_get_data_handle, (memory, &handle));
    STALE("memory", norm_memory_get_memory_desc, (memory, &its_desc));
    STALE("memory", norm_memory_set_data_handle, (memory, data));
    STALE("memory", norm_memory_destroy, (memory));
    STALE("attr", norm_primitive_attr_get_scratchpad_mode, (attr, &mode));
    STALE("existing_attr", norm_primitive_attr_clone, (&new_attr, attr));
    STALE("attr", norm_primitive_attr_destroy, (attr));
    STALE("post_ops", norm_post_ops_append_eltwise, (post_ops, norm_eltwise_relu, 0, 0));
    STALE("existing_post_ops", norm_post_ops_clone, (&new_post_ops, post_ops));
    FAILS_WITH(0, "post_ops", norm_post_ops_len, (post_ops));
    STALE("post_ops", norm_post_ops_destroy, (post_ops));
    STALE("primitive_desc", norm_primitive_create, (&new_primitive, problem));
    STALE("primitive_desc", norm_primitive_desc_next_impl, (problem));
    STALE("primitive_desc", norm_primitive_desc_destroy, (problem));
    STALE("primitive", norm_primitive_get_primitive_desc, (primitive, &its_problem));
    STALE("primitive", norm_primitive_execute, (primitive, stream, 0, NULL));
    STALE("primitive", norm_primitive_destroy, (primitive));
    EXPECT(its == UNTOUCHED && new_stream == UNTOUCHED && new_memory == UNTOUCHED
            && new_desc == UNTOUCHED && new_attr == UNTOUCHED && new_post_ops == UNTOUCHED
            && new_problem == UNTOUCHED && new_primitive == UNTOUCHED && its_desc == UNTOUCHED
            && its_problem == UNTOUCHED && handle == UNTOUCHED && kind == norm_gpu
            && mode == norm_scratchpad_mode_user);
}

static void destroy_all(void) {
    MUST(norm_engine_destroy(engine));
    MUST(norm_stream_destroy(stream));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_destroy(memory));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_post_ops_destroy(post_ops));
    MUST(norm_primitive_desc_destroy(problem));
    MUST(norm_primitive_destroy(primitive));
}

/* Executions check the primitive, the stream and every memory. */
static void executions(void) {
    make_all();
    norm_memory_t gone = NULL;
    norm_stream_t ended = NULL;
    MUST(norm_memory_create(&gone, desc, engine, data));
    MUST(norm_memory_destroy(gone));
    MUST(norm_stream_create(&ended, engine, norm_stream_default_flags));
    MUST(norm_stream_destroy(ended));
    norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory}, {NORM_ARG_DST, memory}};
    const float before[6] = {1, 2, 3, 4, 5, 6};
    memcpy(data, before, sizeof data);
    INVALID("stream", norm_primitive_execute, (primitive, ended, 2, args));
    args[1].memory = gone;
    INVALID("NORM_ARG_DST", norm_primitive_execute, (primitive, stream, 2, args));
    EXPECT(strstr(norm_get_last_error(), "destroyed") != NULL);
    args[1].memory = (norm_memory_t)(void *)stream;
    INVALID("NORM_ARG_DST", norm_primitive_execute, (primitive, stream, 2, args));
    EXPECT(strstr(norm_get_last_error(), "it is a norm_stream_t, not a norm_memory_t") != NULL);
    INVALID("attr", norm_primitive_attr_set_scratchpad_mode,
            ((norm_primitive_attr_t)(void *)engine, norm_scratchpad_mode_user));
    EXPECT(strstr(norm_get_last_error(), "it is a norm_engine_t, not a norm_primitive_attr_t"));
    INVALID("engine", norm_engine_destroy, ((norm_engine_t)(void *)((char *)engine + 1)));
    EXPECT(memcmp(data, before, sizeof data) == 0);
    args[1].memory = memory;
    EXPECT(norm_primitive_execute(primitive, stream, 2, args) == norm_success);
    EXPECT(memcmp(data, before, sizeof data) != 0);
    destroy_all();
}

/* A query's result belongs to the queried object, except an engine, which is the caller's. */
static void lent_handles(void) {
    make_all();
    norm_engine_t its = NULL;
    const_norm_memory_desc_t its_desc = NULL;
    const_norm_primitive_attr_t its_attr = NULL;
    const_norm_post_ops_t its_post_ops = NULL;
    const_norm_primitive_desc_t its_problem = NULL;
    EXPECT(norm_stream_get_engine(stream, &its) == norm_success && its == engine);
    MUST(norm_memory_get_memory_desc(memory, &its_desc));
    MUST(norm_primitive_desc_get_attr(problem, &its_attr));
    MUST(norm_primitive_attr_get_post_ops(its_attr, &its_post_ops));
    MUST(norm_primitive_get_primitive_desc(primitive, &its_problem));
#define OWNED(parameter, function, type, handle) \
    do { \
        INVALID(parameter, function, ((type)(size_t)(handle))); \
        EXPECT(strstr(norm_get_last_error(), "owned by another object") != NULL); \
    } while (0)
    OWNED("memory_desc", norm_memory_desc_destroy, norm_memory_desc_t, its_desc);
    OWNED("attr", norm_primitive_attr_destroy, norm_primitive_attr_t, its_attr);
    OWNED("post_ops", norm_post_ops_destroy, norm_post_ops_t, its_post_ops);
    OWNED("primitive_desc", norm_primitive_desc_destroy, norm_primitive_desc_t, its_problem);
    /* They can be used in all other ways, even after the owned one has changed. */
    norm_engine_kind_t kind = norm_gpu;
    norm_memory_desc_t copy = NULL;
    EXPECT(norm_engine_get_kind(its, &kind) == norm_success && kind == norm_cpu);
    EXPECT(norm_memory_desc_clone(&copy, its_desc) == norm_success);
    EXPECT(norm_memory_desc_set_data_type(copy, norm_bf16) == norm_success);
    EXPECT(norm_memory_desc_destroy(copy) == norm_success);
    EXPECT(norm_post_ops_len(its_post_ops) == 0);
    destroy_all();
}

/* The memories of a cache belong to it, and are destroyed with it. */
static void memories_of_a_cache(void) {
    make_all();
    norm_kv_cache_t cache = NULL;
    const norm_dim_t tokens = 4;
    MUST(norm_kv_cache_create(&cache, engine, norm_kv_contiguous, norm_f32, 1, 1, 8, 8, 1, tokens,
            tokens, 0, 0, 0, 0));
    norm_exec_arg_t args[3];
    int count = 3;
    void *handle = NULL;
    MUST(norm_kv_cache_get_rope_arguments(cache, 0, &count, args));
    EXPECT(count == 3);
    for (int i = 0; i < count; ++i) {
        MUST(norm_memory_get_data_handle(args[i].memory, &handle));
        OWNED("memory", norm_memory_destroy, norm_memory_t, args[i].memory);
    }
    MUST(norm_kv_cache_destroy(cache));
    INVALID("cache", norm_kv_cache_destroy, (cache));
    for (int i = 0; i < count; ++i) {
        INVALID("memory", norm_memory_get_data_handle, (args[i].memory, &handle));
        EXPECT(strstr(norm_get_last_error(), "destroyed") != NULL);
    }
    destroy_all();
}

int main(void) {
    make_all();
    destroy_all();
    all_are_refused("destroyed");
    /* Still refused after as many other objects as norm.h says. */
    for (int i = 0; i < 31; ++i) {
        const norm_engine_t old_engine = engine;
        const norm_stream_t old_stream = stream;
        const norm_memory_desc_t old_desc = desc;
        const norm_memory_t old_memory = memory;
        const norm_primitive_attr_t old_attr = attr;
        const norm_post_ops_t old_post_ops = post_ops;
        const norm_primitive_desc_t old_problem = problem;
        const norm_primitive_t old_primitive = primitive;
        make_all();
        destroy_all();
        engine = old_engine, stream = old_stream, desc = old_desc, memory = old_memory;
        attr = old_attr, post_ops = old_post_ops, problem = old_problem, primitive = old_primitive;
    }
    all_are_refused("destroyed");
    executions();
    lent_handles();
    memories_of_a_cache();
    /* After that, their memory is reused. */
    for (int i = 0; i < 40; ++i) make_all(), destroy_all();
    const long before = allocations;
    norm_memory_desc_t copy = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    for (int i = 0; i < 10000; ++i) {
        MUST(norm_memory_desc_clone(&copy, desc));
        MUST(norm_memory_desc_destroy(copy));
    }
    EXPECT(allocations - before < 10);
    MUST(norm_memory_desc_destroy(desc));
    return expect_summary("stale_handles");
}
