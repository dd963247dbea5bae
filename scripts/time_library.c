/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Times layer normalization in one library with oneDNN's C interface, alone in
 * its process. performance.py --separate starts one process per library and
 * alternates between them, so the worker threads of one library cannot slow
 * down the other.
 *
 *     time_library LIBRARY PREFIX        (PREFIX is norm or dnnl)
 *
 * Reads commands from standard input and answers each with one line:
 *
 *     problem DIR SRC DST FLAGS ROWS COLS    "ready" or "refused STATUS"
 *     sample SECONDS                         seconds per execution
 *
 * DIR is FWD_I, FWD_D or BWD_DW; SRC and DST are f32, bf16 or f16; FLAGS are
 * benchdnn's letters. OMP_NUM_THREADS and NORM_NUM_THREADS set the threads.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "norm.h"

/* Both libraries have the same prototypes and enumerators. */
#define FUNCTIONS(X) \
    X(engine_create) \
    X(stream_create) \
    X(stream_wait) \
    X(memory_desc_create_with_tag) \
    X(memory_desc_destroy) \
    X(memory_create) \
    X(memory_destroy) \
    X(layer_normalization_forward_primitive_desc_create) \
    X(layer_normalization_backward_primitive_desc_create) \
    X(primitive_desc_destroy) \
    X(primitive_create) \
    X(primitive_execute) \
    X(primitive_destroy)

static struct {
#define MEMBER(function) __typeof__(norm_##function) *function;
    FUNCTIONS(MEMBER)
} library;

static norm_engine_t engine;
static norm_stream_t stream;

static void fail(const char *message) {
    fprintf(stderr, "time_library: %s\n", message);
    exit(2);
}

static void check(norm_status_t status) {
    if (status != norm_success) fail("a call failed");
}

static void open_library(const char *path, const char *prefix) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail(dlerror());
    char name[128];
#define LOAD(function) \
    snprintf(name, sizeof name, "%s_%s", prefix, #function); \
    *(void **)&library.function = dlsym(handle, name); \
    if (!library.function) fail(name);
    FUNCTIONS(LOAD)
    check(library.engine_create(&engine, norm_cpu, 0));
    check(library.stream_create(&stream, engine, norm_stream_default_flags));
}

/* ---- a problem ---- */

enum { MOST = 10 };
static norm_primitive_t primitive;
static norm_exec_arg_t args[MOST];
static char *blocks[MOST]; /* what was allocated */
static void *buffers[MOST]; /* where the elements are in it */
static int nargs;

static void release(void) {
    for (int i = 0; i < nargs; i++) {
        check(library.memory_destroy(args[i].memory));
        free(blocks[i]);
    }
    nargs = 0;
    if (primitive) check(library.primitive_destroy(primitive));
    primitive = NULL;
}

static norm_data_type_t type_of(const char *name) {
    if (!strcmp(name, "f32")) return norm_f32;
    if (!strcmp(name, "bf16")) return norm_bf16;
    if (!strcmp(name, "f16")) return norm_f16;
    fail("a type is neither f32, bf16 nor f16");
    return norm_f32;
}

static uint32_t random_bits(void) { /* xorshift */
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Adds an argument with random elements of magnitude 1 to 2 and either sign. */
static void add(int id, norm_memory_desc_t desc, norm_data_type_t type, size_t count) {
    const size_t size = type == norm_f32 ? 4 : 2;
    /* Different offsets within a page, so that stores to one buffer do not alias
     * loads from another one whose addresses have the same low bits. */
    const size_t offset = (size_t)nargs * 17 * 64;
    void *block = NULL;
    if (posix_memalign(&block, 4096, count * size + offset)) fail("out of memory");
    blocks[nargs] = block;
    void *buffer = blocks[nargs] + offset;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = random_bits();
        if (type == norm_f32)
            ((uint32_t *)buffer)[i] = (bits & 0x807fffffu) | 0x3f800000u;
        else if (type == norm_bf16)
            ((uint16_t *)buffer)[i] = (uint16_t)((bits & 0x807fu) | 0x3f80u);
        else
            ((uint16_t *)buffer)[i] = (uint16_t)((bits & 0x83ffu) | 0x3c00u);
    }
    buffers[nargs] = buffer;
    args[nargs].arg = id;
    check(library.memory_create(&args[nargs].memory, desc, engine, buffer));
    nargs++;
}

/* Overwrites the last argument, which is f32. */
static void fill(float value, int64_t count) {
    float *buffer = buffers[nargs - 1];
    for (int64_t i = 0; i < count; i++) buffer[i] = value;
}

static norm_status_t prepare(const char *direction, norm_data_type_t src_type,
        norm_data_type_t dst_type, const char *letters, int64_t rows, int64_t cols) {
    const float epsilon = 1e-5f;
    const int backward = !strcmp(direction, "BWD_DW");
    const norm_prop_kind_t forward_kind = strcmp(direction, "FWD_I")
            ? norm_forward_training : norm_forward_inference;
    const unsigned flags = (strchr(letters, 'C') ? norm_use_scale : 0u)
            | (strchr(letters, 'H') ? norm_use_shift : 0u)
            | (strchr(letters, 'M') ? norm_rms_norm : 0u);
    const norm_dims_t dims = {rows, cols}, channels = {cols};
    const size_t elements = (size_t)(rows * cols);
    norm_memory_desc_t src, dst, stat, channel;
    check(library.memory_desc_create_with_tag(&src, 2, dims, src_type, norm_ab));
    check(library.memory_desc_create_with_tag(&dst, 2, dims, dst_type, norm_ab));
    check(library.memory_desc_create_with_tag(&stat, 1, dims, norm_f32, norm_a));
    check(library.memory_desc_create_with_tag(&channel, 1, channels, norm_f32, norm_a));

    norm_primitive_desc_t hint = NULL, desc = NULL;
    norm_status_t status = library.layer_normalization_forward_primitive_desc_create(&hint,
            engine, forward_kind, src, dst, stat, epsilon, flags, NULL);
    if (status == norm_success && backward) {
        status = library.layer_normalization_backward_primitive_desc_create(&desc, engine,
                norm_backward, src, dst, src, stat, epsilon, flags, hint, NULL);
        check(library.primitive_desc_destroy(hint));
    } else {
        desc = hint;
    }
    if (status == norm_success) {
        status = library.primitive_create(&primitive, desc);
        check(library.primitive_desc_destroy(desc));
    }
    if (status == norm_success) {
        /* Arguments that a problem does not use are ignored. */
        add(NORM_ARG_SRC, src, src_type, elements);
        add(backward ? NORM_ARG_DIFF_DST : NORM_ARG_DST, dst, dst_type, elements);
        if (backward) add(NORM_ARG_DIFF_SRC, src, src_type, elements);
        /* Backward reads the statistics of the elements above. */
        add(NORM_ARG_MEAN, stat, norm_f32, (size_t)rows), fill(0.0f, rows);
        add(NORM_ARG_VARIANCE, stat, norm_f32, (size_t)rows), fill(7.0f / 3, rows);
        add(NORM_ARG_SCALE, channel, norm_f32, (size_t)cols);
        add(NORM_ARG_SHIFT, channel, norm_f32, (size_t)cols);
        if (backward) {
            add(NORM_ARG_DIFF_SCALE, channel, norm_f32, (size_t)cols);
            add(NORM_ARG_DIFF_SHIFT, channel, norm_f32, (size_t)cols);
        }
    }
    check(library.memory_desc_destroy(src));
    check(library.memory_desc_destroy(dst));
    check(library.memory_desc_destroy(stat));
    check(library.memory_desc_destroy(channel));
    return status;
}

/* ---- timing ---- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds per execution, measured over at least `least` seconds. Executions for
 * 200 us come first, to wake the library's threads and fill the caches. */
static double sample(double least) {
    const double warm_up = 200e-6;
    double begin = now();
    long calls = 0;
    do {
        check(library.primitive_execute(primitive, stream, nargs, args));
        calls++;
    } while (now() - begin < warm_up);
    const double once = (now() - begin) / (double)calls;
    const long count = (long)(least / once) + 1;
    begin = now();
    for (long i = 0; i < count; i++)
        check(library.primitive_execute(primitive, stream, nargs, args));
    check(library.stream_wait(stream));
    return (now() - begin) / (double)count;
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: time_library LIBRARY PREFIX");
    open_library(argv[1], argv[2]);
    char line[256], direction[16], src[16], dst[16], letters[16];
    long long rows, cols;
    double least;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "problem %15s %15s %15s %15s %lld %lld", direction, src, dst, letters,
                    &rows, &cols) == 6) {
            release();
            const norm_status_t status
                    = prepare(direction, type_of(src), type_of(dst), letters, rows, cols);
            if (status == norm_success) printf("ready\n");
            else printf("refused %d\n", (int)status);
        } else if (primitive && sscanf(line, "sample %lf", &least) == 1) {
            printf("%.9e\n", sample(least));
        } else {
            fail("a command is not understood");
        }
        fflush(stdout);
    }
    release();
    return 0;
}
