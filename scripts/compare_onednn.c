/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The yardstick of speed: libnorm against a plain copy of the same bytes, and
 * against a second library with oneDNN's C interface, in one process, on one
 * thread of one core, taking turns. compare_onednn.py builds and starts it.
 *
 *     compare_onednn CPU ROUNDS OURS OURS_PREFIX [THEIRS THEIRS_PREFIX]
 *
 * Both libraries have the same prototypes and enumerators, so one table of
 * function pointers serves both, and norm.h is the only header. Times on a shared
 * machine drift by tens of per cent within seconds: only the ratio of two
 * neighbouring samples means something, so every figure is the median of such
 * ratios, and the order within a pair changes every round.
 *
 * Exit status: 0 measured, 1 the two libraries computed different things, 2 a
 * call failed. A time never decides it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "norm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static _Noreturn void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("compare_onednn: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(2);
}

/* ---- the two libraries ---- */

#define FUNCTIONS(X) \
    X(version) \
    X(engine_create) \
    X(engine_destroy) \
    X(stream_create) \
    X(stream_destroy) \
    X(memory_desc_create_with_tag) \
    X(memory_desc_destroy) \
    X(memory_create) \
    X(memory_destroy) \
    X(layer_normalization_forward_primitive_desc_create) \
    X(layer_normalization_backward_primitive_desc_create) \
    X(primitive_desc_query) \
    X(primitive_desc_destroy) \
    X(primitive_create) \
    X(primitive_execute) \
    X(primitive_destroy)

struct library {
    const char *name;
#define MEMBER(function) __typeof__(norm_##function) *function;
    FUNCTIONS(MEMBER)
    norm_engine_t engine;
    norm_stream_t stream;
};

static void *symbol(void *handle, const char *prefix, const char *function) {
    char name[128];
    snprintf(name, sizeof name, "%s_%s", prefix, function);
    void *address = dlsym(handle, name);
    if (!address) fail("%s", dlerror());
    return address;
}

#define CHECK(library, call) \
    do { \
        norm_status_t status_ = (library)->call; \
        if (status_ != norm_success) \
            fail("%s: %s: status %d", (library)->name, #call, (int)status_); \
    } while (0)

static struct library load(const char *name, const char *path, const char *prefix) {
    struct library it = {.name = name};
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail("%s", dlerror());
#define LOAD(function) \
    *(void **)&it.function = symbol(handle, prefix, #function);
    FUNCTIONS(LOAD)
    CHECK(&it, engine_create(&it.engine, norm_cpu, 0));
    CHECK(&it, stream_create(&it.stream, it.engine, norm_stream_default_flags));
    const norm_version_t *version = it.version();
    printf("%-7s version %d.%d.%d, functions %s_*\n", name, version->major,
            version->minor, version->patch, prefix);
    return it;
}

/* ---- a problem, ready to run in one library ---- */

enum { SRC, DST, MEAN, VARIANCE, SCALE, SHIFT, DIFF_DST, DIFF_SRC, DIFF_SCALE,
    DIFF_SHIFT, BUFFERS };
static const int arg_id[BUFFERS] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_MEAN,
        NORM_ARG_VARIANCE, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_DIFF_DST,
        NORM_ARG_DIFF_SRC, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT};

struct problem {
    norm_prop_kind_t prop_kind;
    unsigned flags;
    int64_t rows, cols;
};

static size_t length(const struct problem *problem, int buffer) {
    if (buffer == SRC || buffer == DST || buffer == DIFF_SRC || buffer == DIFF_DST)
        return (size_t)(problem->rows * problem->cols);
    return (size_t)(buffer == MEAN || buffer == VARIANCE ? problem->rows
                                                         : problem->cols);
}

struct prepared {
    struct library *library;
    norm_primitive_t primitive;
    norm_memory_t memory[BUFFERS];
    norm_exec_arg_t args[BUFFERS];
    char implementation[64];
};

static struct prepared prepare(struct library *library,
        const struct problem *problem, float *const buffers[BUFFERS]) {
    const float epsilon = 1e-5f;
    struct prepared it = {.library = library};
    norm_memory_desc_t data, stat, channel;
    const norm_dims_t dims = {problem->rows, problem->cols};
    const norm_dims_t channels = {problem->cols};
    CHECK(library, memory_desc_create_with_tag(&data, 2, dims, norm_f32, norm_ab));
    CHECK(library, memory_desc_create_with_tag(&stat, 1, dims, norm_f32, norm_a));
    CHECK(library,
            memory_desc_create_with_tag(
                    &channel, 1, channels, norm_f32, norm_a));

    norm_primitive_desc_t desc, forward;
    const int backward = problem->prop_kind == norm_backward;
    CHECK(library,
            layer_normalization_forward_primitive_desc_create(&forward,
                    library->engine,
                    backward ? norm_forward_training : problem->prop_kind, data,
                    data, stat, epsilon, problem->flags, NULL));
    desc = forward;
    if (backward) {
        CHECK(library,
                layer_normalization_backward_primitive_desc_create(&desc,
                        library->engine, norm_backward, data, data, data, stat,
                        epsilon, problem->flags, forward, NULL));
        CHECK(library, primitive_desc_destroy(forward));
    }
    const char *implementation = "";
    CHECK(library,
            primitive_desc_query(
                    desc, norm_query_impl_info_str, 0, &implementation));
    snprintf(it.implementation, sizeof it.implementation, "%s", implementation);
    CHECK(library, primitive_create(&it.primitive, desc));
    CHECK(library, primitive_desc_destroy(desc));

    for (int i = 0; i < BUFFERS; i++) {
        norm_memory_desc_t of = i == MEAN || i == VARIANCE ? stat : channel;
        if (i == SRC || i == DST || i == DIFF_SRC || i == DIFF_DST) of = data;
        CHECK(library,
                memory_create(&it.memory[i], of, library->engine, buffers[i]));
        it.args[i] = (norm_exec_arg_t) {arg_id[i], it.memory[i]};
    }
    CHECK(library, memory_desc_destroy(data));
    CHECK(library, memory_desc_destroy(stat));
    CHECK(library, memory_desc_destroy(channel));
    return it;
}

static void release(struct prepared *it) {
    for (int i = 0; i < BUFFERS; i++)
        CHECK(it->library, memory_destroy(it->memory[i]));
    CHECK(it->library, primitive_destroy(it->primitive));
}

/* Superfluous arguments are ignored by both libraries. */
static void execute(struct prepared *it) {
    CHECK(it->library,
            primitive_execute(it->primitive, it->library->stream, BUFFERS, it->args));
}

/* ---- plain copies ---- */

typedef void copy_t(float *to, const float *from, size_t count);

static void copy_memcpy(float *to, const float *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
}

#if defined(__x86_64__)
#define COPY(name, isa, lanes, vector, load, store, after) \
    __attribute__((target(isa))) static void name( \
            float *to, const float *from, size_t count) { \
        for (size_t i = 0; i < count; i += 4 * lanes) { \
            vector a = load(from + i), b = load(from + i + lanes); \
            vector c = load(from + i + 2 * lanes), d = load(from + i + 3 * lanes); \
            store(to + i, a); \
            store(to + i + lanes, b); \
            store(to + i + 2 * lanes, c); \
            store(to + i + 3 * lanes, d); \
        } \
        after; \
    }
COPY(copy_avx512, "avx512f", 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, (void)0)
COPY(copy_avx512_nt, "avx512f", 16, __m512, _mm512_loadu_ps, _mm512_stream_ps,
        _mm_sfence())
COPY(copy_avx2, "avx2", 8, __m256, _mm256_loadu_ps, _mm256_storeu_ps, (void)0)
#endif

static const struct copy {
    const char *name;
    copy_t *run;
    const char *needs;
} copies[] = {
        {"memcpy", copy_memcpy, ""},
#if defined(__x86_64__)
        {"avx512 loop", copy_avx512, "avx512f"},
        {"avx512 non-temporal loop", copy_avx512_nt, "avx512f"},
        {"avx2 loop", copy_avx2, "avx2"},
#endif
};

static int supported(const struct copy *copy) {
#if defined(__x86_64__)
    if (!strcmp(copy->needs, "avx512f")) return __builtin_cpu_supports("avx512f");
    if (!strcmp(copy->needs, "avx2")) return __builtin_cpu_supports("avx2");
#endif
    return !*copy->needs;
}

/* ---- measuring ---- */

struct action {
    struct prepared *prepared; /* or NULL: a copy */
    copy_t *copy;
    float *to;
    const float *from;
    size_t count;
};

static double seconds(const struct action *action, int calls) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < calls; i++) {
        if (action->prepared) execute(action->prepared);
        else action->copy(action->to, action->from, action->count);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec)
                   + 1e-9 * (double)(end.tv_nsec - start.tv_nsec))
            / calls;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct comparison {
    double first, second;         /* median seconds per call */
    double ratio, low, high;      /* second/first: median and quartiles */
};

/* A sample lasts at least this long, so that the clock does not matter. */
static const double sample_seconds = 100e-6;

static struct comparison compare(
        const struct action *first, const struct action *second, int rounds) {
    double *samples = malloc(3 * (size_t)rounds * sizeof *samples);
    if (!samples) fail("out of memory");
    double *a = samples, *b = samples + rounds, *r = samples + 2 * rounds;
    seconds(first, 3), seconds(second, 3);
    const double once = fmin(seconds(first, 3), seconds(second, 3));
    const int calls = (int)fmax(1, ceil(sample_seconds / fmax(once, 1e-9)));
    for (int i = -10; i < rounds; i++) { /* rounds below 0 warm up */
        double x, y;
        if (i & 1) x = seconds(first, calls), y = seconds(second, calls);
        else y = seconds(second, calls), x = seconds(first, calls);
        if (i >= 0) a[i] = x, b[i] = y, r[i] = y / x;
    }
    qsort(a, (size_t)rounds, sizeof *a, ascending);
    qsort(b, (size_t)rounds, sizeof *b, ascending);
    qsort(r, (size_t)rounds, sizeof *r, ascending);
    struct comparison it = {a[rounds / 2], b[rounds / 2], r[rounds / 2],
            r[rounds / 4], r[3 * rounds / 4]};
    free(samples);
    return it;
}

/* ---- data ---- */

static float uniform(uint64_t *state) { /* xorshift*, in [-1, 1) */
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return (float)(int32_t)((*state * 2685821657736338717u) >> 32) / 2147483648.0f;
}

static void allocate(const struct problem *problem, float *buffers[BUFFERS]) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < BUFFERS; i++) {
        const size_t count = length(problem, i);
        buffers[i] = aligned_alloc(4096, (count * sizeof(float) + 4095) / 4096 * 4096);
        if (!buffers[i]) fail("out of memory");
        for (size_t j = 0; j < count; j++)
            buffers[i][j] = uniform(&state) + (i == SRC || i == SCALE ? 0.5f : 0.0f);
    }
    /* Backward reads statistics: true ones, so that its result is a gradient. */
    for (int64_t row = 0; row < problem->rows; row++) {
        const float *src = buffers[SRC] + row * problem->cols;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < problem->cols; i++) sum += src[i];
        const double mean = sum / (double)problem->cols;
        for (int64_t i = 0; i < problem->cols; i++)
            squares += (src[i] - mean) * (src[i] - mean);
        buffers[MEAN][row] = (float)mean;
        buffers[VARIANCE][row] = (float)(squares / (double)problem->cols);
    }
}

static void deallocate(float *buffers[BUFFERS]) {
    for (int i = 0; i < BUFFERS; i++) free(buffers[i]);
}

/* ---- the comparisons ---- */

static void against_copies(struct library *ours, int rounds) {
    const struct problem problem
            = {norm_forward_inference, norm_use_scale | norm_rms_norm, 32, 4096};
    float *buffers[BUFFERS];
    allocate(&problem, buffers);
    struct prepared prepared = prepare(ours, &problem, buffers);
    execute(&prepared);
    /* What is timed must be RMSNorm: a library that writes nothing is fast too. */
    double worst = 0;
    for (int64_t row = 0; row < problem.rows; row++) {
        const float *src = buffers[SRC] + row * problem.cols;
        double squares = 0;
        for (int64_t i = 0; i < problem.cols; i++)
            squares += (double)src[i] * src[i];
        const double r = 1 / sqrt(squares / (double)problem.cols + 1e-5f);
        for (int64_t i = 0; i < problem.cols; i++) {
            const double error = buffers[DST][row * problem.cols + i]
                    - src[i] * r * buffers[SCALE][i];
            worst = fmax(worst, isnan(error) ? INFINITY : fabs(error));
        }
    }
    printf("\nf32 RMSNorm forward inference with scale, 32x4096 (%s)\n"
           "against plain copies of the same bytes; %d rounds\n"
           "largest difference from f64: %.2e\n\n",
            prepared.implementation, rounds, worst);
    if (!(worst < 1e-5)) {
        printf("DIFFERENT: this is not RMSNorm\n");
        exit(1);
    }
    printf("%-26s %10s %10s %22s\n", "copy", "copy us", "ours us",
            "speed of ours [quartiles]");
    const struct action norm = {.prepared = &prepared};
    const char *best_name = NULL;
    struct comparison best = {0};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        if (!supported(&copies[i])) continue;
        const struct action copy = {NULL, copies[i].run, buffers[DST], buffers[SRC],
                length(&problem, SRC)};
        const struct comparison it = compare(&norm, &copy, rounds);
        printf("%-26s %10.2f %10.2f %8.3f [%.3f %.3f]\n", copies[i].name,
                1e6 * it.second, 1e6 * it.first, it.ratio, it.low, it.high);
        /* The fastest copy is the one that ours looks slowest against. */
        if (!best_name || it.ratio < best.ratio)
            best = it, best_name = copies[i].name;
    }
    printf("=> %.3f of the speed of the best copy (%s)\n", best.ratio, best_name);
    release(&prepared);
    deallocate(buffers);
}

/* The largest difference of an output, relative to the largest entry. */
static double difference(const float *x, const float *y, size_t count) {
    double largest = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)y[i]));
        const double error = fabs((double)x[i] - y[i]);
        worst = fmax(worst, isnan(error) ? INFINITY : error);
    }
    return worst / fmax(largest, 1e-30);
}

static int against_library(
        struct library *ours, struct library *theirs, int rounds) {
    static const int64_t shapes[][2]
            = {{32, 4096}, {512, 4096}, {4096, 4096}, {1, 4096}, {257, 768}};
    static const struct {
        norm_prop_kind_t prop_kind;
        const char *name;
    } kinds[] = {{norm_forward_training, "training"},
            {norm_forward_inference, "inference"}, {norm_backward, "backward"}};
    int different = 0;
    printf("\nf32 LayerNorm with scale and shift (CH) against %s; %d rounds\n\n",
            theirs->name, rounds);
    printf("%-10s %-10s %10s %10s %8s %-15s %10s  %s\n", "kind", "shape", "ours us",
            "theirs us", "speed", "[quartiles]", "max diff", "implementations");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const struct problem problem = {kinds[k].prop_kind,
                    norm_use_scale | norm_use_shift, shapes[s][0], shapes[s][1]};
            float *buffers[BUFFERS], *kept[BUFFERS];
            allocate(&problem, buffers);
            allocate(&problem, kept);
            struct prepared a = prepare(ours, &problem, buffers);
            struct prepared b = prepare(theirs, &problem, buffers);
            execute(&a);
            for (int i = 0; i < BUFFERS; i++)
                memcpy(kept[i], buffers[i], length(&problem, i) * sizeof(float));
            /* So that theirs cannot pass by leaving our results alone. */
            static const int forward[] = {DST, MEAN, VARIANCE, -1};
            static const int backward[] = {DIFF_SRC, DIFF_SCALE, DIFF_SHIFT, -1};
            const int *outputs
                    = problem.prop_kind == norm_backward ? backward : forward;
            const int inference = problem.prop_kind == norm_forward_inference;
            for (int i = 0; outputs[i] >= 0 && !(inference && i); i++)
                memset(buffers[outputs[i]], 0xff,
                        length(&problem, outputs[i]) * sizeof(float));
            execute(&b);
            double worst = 0;
            for (int i = 0; outputs[i] >= 0 && !(inference && i); i++)
                worst = fmax(worst,
                        difference(kept[outputs[i]], buffers[outputs[i]],
                                length(&problem, outputs[i])));
            const struct action x = {.prepared = &a}, y = {.prepared = &b};
            const struct comparison it = compare(&x, &y, rounds);
            char shape[32];
            snprintf(shape, sizeof shape, "%lldx%lld", (long long)problem.rows,
                    (long long)problem.cols);
            /* f32 sums of up to 4096 terms: both are right to a few 1e-6. */
            const int wrong = !(worst < 1e-5);
            different |= wrong;
            printf("%-10s %-10s %10.2f %10.2f %8.3f [%.3f %.3f] %10.1e  %s, %s%s\n",
                    kinds[k].name, shape, 1e6 * it.first, 1e6 * it.second, it.ratio,
                    it.low, it.high, worst, a.implementation, b.implementation,
                    wrong ? "  DIFFERENT" : "");
            fflush(stdout);
            release(&a), release(&b);
            deallocate(buffers), deallocate(kept);
        }
    return different;
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 7)
        fail("usage: compare_onednn CPU ROUNDS OURS PREFIX [THEIRS PREFIX]");
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)atoi(argv[1]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus)) fail("no processor %s", argv[1]);
    const int rounds = atoi(argv[2]);
    if (rounds < 1) fail("ROUNDS is not a positive number");
    setenv("OMP_NUM_THREADS", "1", 1); /* read when the libraries are loaded */
    setenv("NORM_NUM_THREADS", "1", 1);
    struct library ours = load("ours", argv[3], argv[4]);
    if (argc == 5) {
        against_copies(&ours, rounds);
        return 0;
    }
    struct library theirs = load("theirs", argv[5], argv[6]);
    /* "dnnl" against itself: the null test of the yardstick has no RMSNorm. */
    if (strcmp(argv[4], "dnnl")) against_copies(&ours, rounds);
    return against_library(&ours, &theirs, rounds);
}
