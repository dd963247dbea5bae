/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The largest errors of softmax, its logarithm, the logarithm of the sum, and their
 * gradients against double, for rows of 0 and every 997th float, and for long rows.
 * docs/primitives/softmax.md has the table that this prints. All levels have the same bits.
 */
#include "expect.h"
#include "tensor.h"

#include <math.h>
#include <stdint.h>

enum { LONG = 4096, LONG_ROWS = 64, STEP = 997 };

static norm_engine_t engine;
static norm_stream_t stream;

/* The unit in the last place of a number, or of `least` if that is larger. */
static double ulp_of(double number, float least) {
    const float f = fmaxf(fabsf((float)number), least);
    return nextafterf(f, INFINITY) - f;
}

typedef struct {
    norm_dim_t rows, cols;
    norm_alg_kind_t algorithm;
    const float *src;
    float *dst, *stats, *diff_dst, *diff_src;
} rows_t;

static void execute(norm_primitive_desc_t pd, int count, const int *ids, void *const *data) {
    norm_exec_arg_t args[3];
    norm_primitive_t primitive = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < count; ++i) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
        args[i].arg = ids[i];
        MUST(norm_memory_create(&args[i].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_execute(primitive, stream, count, args));
    for (int i = 0; i < count; ++i) MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
}

static void compute(const rows_t *r) {
    const norm_dim_t dims[] = {r->rows, r->cols}, stats_dims[] = {r->rows, 1};
    norm_memory_desc_t desc = NULL, stats_desc = NULL;
    norm_primitive_desc_t forward = NULL, backward = NULL;
    norm_primitive_attr_t attr = NULL;
    MUST(norm_memory_desc_create_with_strides(&desc, 2, dims, norm_f32, NULL));
    MUST(norm_memory_desc_create_with_strides(&stats_desc, 2, stats_dims, norm_f32, NULL));
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_softmax_stats(attr, stats_desc));
    MUST(norm_softmax_forward_primitive_desc_create(
            &forward, engine, norm_forward_training, r->algorithm, desc, desc, 1, attr));
    MUST(norm_softmax_backward_primitive_desc_create(
            &backward, engine, r->algorithm, desc, desc, desc, 1, NULL, NULL));
    const int there[] = {NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_SOFTMAX_STATS};
    const int back[] = {NORM_ARG_DST, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC};
    execute(forward, 3, there, (void *const[]) {(void *)(uintptr_t)r->src, r->dst, r->stats});
    execute(backward, 3, back, (void *const[]) {r->dst, r->diff_dst, r->diff_src});
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_memory_desc_destroy(stats_desc));
    MUST(norm_primitive_attr_destroy(attr));
    MUST(norm_primitive_desc_destroy(forward));
    MUST(norm_primitive_desc_destroy(backward));
}

static void add(double *most, double off) {
    if (!(off <= *most)) *most = off;
}

/* Errors of dst and of the statistics in ulp, and of diff_src in ulp of the sum of the magnitudes
 * of its terms. Numbers below `least` count with its ulp. */
static void errors(const rows_t *r, double most[3]) {
    const int log_of = r->algorithm == norm_softmax_log;
    const float least = log_of ? 1 : 1.17549435e-38f;
    most[0] = most[1] = most[2] = 0;
    for (norm_dim_t row = 0; row < r->rows; ++row) {
        const float *x = r->src + row * r->cols, *y = r->dst + row * r->cols;
        const float *g = r->diff_dst + row * r->cols, *d = r->diff_src + row * r->cols;
        double max = x[0], sum = 0, dot = 0, dot_abs = 0;
        for (norm_dim_t c = 0; c < r->cols; ++c) max = fmax(max, x[c]);
        for (norm_dim_t c = 0; c < r->cols; ++c) {
            sum += exp(x[c] - max);
            dot += log_of ? g[c] : (double)g[c] * y[c];
            dot_abs += fabs(log_of ? g[c] : (double)g[c] * y[c]);
        }
        const double stat = max + log(sum);
        add(&most[1], fabs(r->stats[row] - stat) / ulp_of(stat, 1));
        for (norm_dim_t c = 0; c < r->cols; ++c) {
            const double distance = x[c] - max;
            /* log1p if the other element is far smaller. */
            const double log_sum = r->cols == 2 ? log1p(exp(-fabs((double)x[0] - x[1]))) : log(sum);
            const double right = log_of ? distance - log_sum : exp(distance) / sum;
            if (right >= least || log_of) add(&most[0], fabs(y[c] - right) / ulp_of(right, least));
            const double factor = log_of ? exp(y[c]) : y[c];
            const double grad = log_of ? g[c] - factor * dot : factor * (g[c] - dot);
            const double terms = log_of ? fabs(g[c]) + factor * dot_abs : factor * (fabs(g[c]) + dot_abs);
            if (terms >= 1e-30) add(&most[2], fabs(d[c] - grad) / ulp_of(terms, 1e-30f));
        }
    }
}

static void measure(const char *name, rows_t r) {
    const norm_dim_t count = r.rows * r.cols;
    double most[3];
    uint64_t state = 3;
    r.dst = malloc(4 * count), r.diff_dst = malloc(4 * count), r.diff_src = malloc(4 * count);
    r.stats = malloc(4 * r.rows);
    if (!EXPECT(r.dst && r.diff_dst && r.diff_src && r.stats)) exit(1);
    for (norm_dim_t i = 0; i < count; ++i) r.diff_dst[i] = (float)random_between(&state, -1, 1);
    compute(&r);
    errors(&r, most);
    printf("| `%s` of %s | %.2f | %.2f | %.2f |\n",
            r.algorithm == norm_softmax_log ? "softmax_log" : "softmax_accurate", name, most[0],
            most[1], most[2]);
    for (int i = 0; i < 3; ++i) EXPECT(most[i] > 0);
    free(r.dst), free(r.diff_dst), free(r.diff_src), free(r.stats);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    const uint32_t infinite = 0x7f800000;
    const norm_dim_t pairs = (infinite + STEP - 1) / STEP;
    float *two = calloc(2 * pairs, sizeof *two), *many = malloc(sizeof *many * LONG * LONG_ROWS);
    if (!EXPECT(two && many)) return 1;
    norm_dim_t row = 0;
    for (uint32_t bits = 0; bits < infinite; bits += STEP, ++row)
        memcpy(two + 2 * row, &bits, sizeof bits);
    EXPECT(row == pairs);
    uint64_t state = 9;
    for (int i = 0; i < LONG * LONG_ROWS; ++i) many[i] = (float)random_between(&state, -8, 8);
    static const norm_alg_kind_t algorithms[] = {norm_softmax_accurate, norm_softmax_log};
    for (int a = 0; a < 2; ++a) {
        measure("0 and every 997th f32",
                (rows_t) {.rows = pairs, .cols = 2, .algorithm = algorithms[a], .src = two});
        measure("4096 elements from -8 to 8",
                (rows_t) {.rows = LONG_ROWS, .cols = LONG, .algorithm = algorithms[a], .src = many});
    }
    free(two), free(many);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("softmax_errors");
}
