/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The largest errors of eltwise and softmax in double, and of their gradients, against long
 * double, for numbers of every exponent, most of them near 1. docs/primitives/eltwise.md and
 * softmax.md have the tables that this prints, unless long double is no wider than double.
 */
#include "expect.h"
#include "tensor.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

typedef long double wide_t;

enum { NEAR = 997, FAR = 5, LONG = 4096, LONG_ROWS = 16 };

static norm_engine_t engine;
static norm_stream_t stream;
/* How much an inexact reference may add to an error, and what rows of a table begin with. */
static double allowance;
static const char *begin = "| ";
static double *numbers;
static norm_dim_t count;

static void spread(void) {
    uint64_t state = 5;
    numbers = malloc(2 * 2047 * NEAR * sizeof *numbers);
    if (!EXPECT(numbers)) exit(1);
    for (int exponent = -1074; exponent < 1024; ++exponent) {
        const int many = exponent > -70 && exponent < 12 ? NEAR : FAR;
        for (int i = 0; i < many; ++i) {
            const double x = ldexp(i == 0 ? 1 : random_between(&state, 1, 2), exponent);
            numbers[count++] = x, numbers[count++] = -x;
        }
    }
}

/* The unit of an error. */
typedef enum { ULP, OF_NUMBER, OF_ONE } unit_t;

static double error_of(unit_t unit, double x, double got, wide_t right) {
    const double nearest = (double)right;
    if (got == nearest || (isnan(got) && isnan(nearest))) return 0;
    /* Numbers on both sides of where results become infinite. */
    if (isinf(nearest) && fabs(got) == DBL_MAX) return 0.5;
    const double magnitude = fmax(fabs(nearest), DBL_MIN);
    const double last = unit == ULP         ? nextafter(magnitude, INFINITY) - magnitude
                        : unit == OF_NUMBER ? DBL_EPSILON * fmax(fabs(x), DBL_MIN)
                                            : DBL_EPSILON;
    return (double)(fabsl(got - right) / last);
}

static wide_t pi(void) { return acosl(-1.0L); }
/* From here on, the functions' other factor is 0. */
static wide_t bounded(wide_t x) { return fmaxl(-1000, fminl(1000, x)); }
static wide_t logistic(wide_t x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static wide_t logistic_slope(wide_t x) { return logistic(x) * logistic(-x); }
static wide_t tanh_slope(wide_t x) { return 4 * logistic_slope(2 * x); }
static wide_t softplus(wide_t x) { return x > 60 ? x : log1pl(expl(x)); }
static wide_t elu(wide_t x) { return x > 0 ? x : expm1l(x); }
static wide_t elu_slope(wide_t x) { return x > 0 ? 1 : expl(x); }
static wide_t swish(wide_t x) { return x * logistic(x); }
static wide_t swish_slope(wide_t x) {
    return logistic(x) + bounded(x) * logistic_slope(bounded(x));
}
static wide_t steep(wide_t x) { return x * logistic(1.702f * x); }
static wide_t steep_slope(wide_t x) {
    const wide_t z = 1.702f * bounded(x);
    return logistic(z) + z * logistic_slope(z);
}
static wide_t inner(wide_t x, wide_t cube) {
    return 2 * sqrtl(2 / pi()) * (bounded(x) + cube * powl(bounded(x), 3));
}
static wide_t gelu_tanh(wide_t x) { return x * logistic(inner(x, 0.044715L)); }
static wide_t gelu_tanh_slope(wide_t x) {
    const wide_t z = inner(x, 0.044715L);
    return logistic(z) + inner(x, 3 * 0.044715L) * logistic_slope(z);
}
static wide_t below(wide_t x) { return erfcl(-x / sqrtl(2)) / 2; }
static wide_t gelu_erf(wide_t x) { return x * below(x); }
static wide_t gelu_erf_slope(wide_t x) {
    return below(x) + bounded(x) * expl(-bounded(x) * bounded(x) / 2) / sqrtl(2 * pi());
}
static wide_t mish(wide_t x) { return x * tanhl(softplus(x)); }
static wide_t mish_slope(wide_t x) {
    const wide_t e = expl(bounded(x)), t = e * (e + 2);
    return tanhl(softplus(x)) + bounded(x) * 4 * e * (e + 1) / ((t + 2) * (t + 2));
}
static wide_t power(wide_t x) { return 2 * powl(x, 1.5L); }
static wide_t power_slope(wide_t x) { return 3 * sqrtl(x); }
static wide_t reciprocal(wide_t x) { return 1 / x; }
static wide_t half_root(wide_t x) { return 0.5L / sqrtl(x); }
static wide_t square(wide_t x) { return x * x; }
static wide_t twice(wide_t x) { return 2 * x; }

typedef struct {
    const char *name;
    norm_alg_kind_t algorithm;
    float alpha, beta;
    /* Only numbers from here on are measured. For smaller ones the result, or a factor of it, is
     * subnormal. */
    double from;
    wide_t (*value)(wide_t), (*slope)(wide_t);
    unit_t units[2];
    double stated[2];
} function_t;

static const function_t functions[] = {
    {"exp", norm_eltwise_exp, 0, 0, -INFINITY, expl, expl, {ULP, ULP}, {1, 1}},
    {"log", norm_eltwise_log, 0, 0, -INFINITY, logl, reciprocal, {ULP, ULP}, {1, 1}},
    {"tanh, from -354 to 354", norm_eltwise_tanh, 0, 0, -354, tanhl, tanh_slope, {ULP, ULP}, {3, 3}},
    {"elu", norm_eltwise_elu, 1, 0, -INFINITY, elu, elu_slope, {ULP, ULP}, {1, 1}},
    {"soft_relu", norm_eltwise_soft_relu, 1, 0, -INFINITY, softplus, logistic, {ULP, ULP}, {2, 3}},
    {"logistic, from -708 to 708", norm_eltwise_logistic, 0, 0, -708, logistic, logistic_slope, {ULP, ULP}, {3, 3}},
    {"swish, alpha 1, above -708", norm_eltwise_swish, 1, 0, -708, swish, swish_slope, {ULP, OF_ONE}, {3, 2}},
    {"swish, alpha 1.702", norm_eltwise_swish, 1.702f, 0, -INFINITY, steep, steep_slope,
            {OF_NUMBER, OF_ONE}, {2, 2}},
    {"gelu_tanh", norm_eltwise_gelu_tanh, 0, 0, -INFINITY, gelu_tanh, gelu_tanh_slope,
            {OF_NUMBER, OF_ONE}, {2, 2}},
    {"gelu_erf, above -37.5", norm_eltwise_gelu_erf, 0, 0, -37.5, gelu_erf, gelu_erf_slope, {ULP, OF_ONE},
            {4, 2}},
    {"mish, above -708", norm_eltwise_mish, 0, 0, -708, mish, mish_slope, {ULP, OF_ONE}, {4, 2}},
    {"pow, alpha 2, beta 1.5", norm_eltwise_pow, 2, 1.5f, -INFINITY, power, power_slope, {ULP, ULP}, {1.5, 1.5}},
    {"sqrt", norm_eltwise_sqrt, 0, 0, -INFINITY, sqrtl, half_root, {ULP, ULP}, {0.51, 1.5}},
    {"square", norm_eltwise_square, 0, 0, -INFINITY, square, twice, {ULP, ULP}, {0.51, 0}},
};

static void execute(norm_primitive_desc_t pd, int arguments, const int *ids, void *const *data) {
    norm_exec_arg_t args[3];
    norm_primitive_t primitive = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    for (int i = 0; i < arguments; ++i) {
        const_norm_memory_desc_t desc
                = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, ids[i]);
        args[i].arg = ids[i];
        MUST(norm_memory_create(&args[i].memory, desc, engine, data[i]));
    }
    MUST(norm_primitive_execute(primitive, stream, arguments, args));
    for (int i = 0; i < arguments; ++i) MUST(norm_memory_destroy(args[i].memory));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
}

static double *room(norm_dim_t elements) {
    double *p = malloc(elements * sizeof *p);
    if (!EXPECT(p)) exit(1);
    return p;
}

static void add(double *most, double off) {
    if (!(off <= *most)) *most = off;
}

/* Rounded up, because the reference is not exact either. */
static double tenths(double error) { return ceil(10 * error) / 10; }

static void eltwise(const function_t *f) {
    double *results[] = {room(count), room(count)}, *ones = room(count), most[] = {0, 0};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t forward = NULL, backward = NULL;
    for (norm_dim_t i = 0; i < count; ++i) ones[i] = 1;
    MUST(norm_memory_desc_create_with_tag(&desc, 1, &count, norm_f64, norm_a));
    MUST(norm_eltwise_forward_primitive_desc_create(&forward, engine, norm_forward_training,
            f->algorithm, desc, desc, f->alpha, f->beta, NULL));
    MUST(norm_eltwise_backward_primitive_desc_create(&backward, engine, f->algorithm, desc, desc,
            desc, f->alpha, f->beta, forward, NULL));
    execute(forward, 2, (const int[]) {NORM_ARG_SRC, NORM_ARG_DST},
            (void *const[]) {numbers, results[0]});
    execute(backward, 3, (const int[]) {NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC},
            (void *const[]) {numbers, ones, results[1]});
    for (norm_dim_t i = 0; i < count; ++i) {
        const double x = numbers[i];
        if (x < f->from || (f->slope == tanh_slope && x > -f->from)
                || (f->slope == logistic_slope && x > -f->from))
            continue;
        add(&most[0], error_of(f->units[0], x, results[0][i], f->value(x)));
        add(&most[1], error_of(f->units[1], x, results[1][i], f->slope(x)));
    }
    static const char *const names[] = {"ulp", "* 2^-52 of \\|x\\|", "* 2^-52"};
    printf("%s%s | %.1f %s | %.1f %s |\n", begin, f->name, tenths(most[0]), names[f->units[0]],
            tenths(most[1]), names[f->units[1]]);
    for (int i = 0; i < 2; ++i) EXPECT(most[i] <= f->stated[i] + allowance);
    free(results[0]), free(results[1]), free(ones);
    MUST(norm_memory_desc_destroy(desc));
}

typedef struct {
    norm_dim_t rows, cols;
    norm_alg_kind_t algorithm;
    double *src, *dst, *diff_dst, *diff_src;
} rows_t;

static void both_ways(const rows_t *r) {
    const norm_dim_t dims[] = {r->rows, r->cols};
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t forward = NULL, backward = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f64, norm_ab));
    MUST(norm_softmax_forward_primitive_desc_create(
            &forward, engine, norm_forward_training, r->algorithm, desc, desc, 1, NULL));
    MUST(norm_softmax_backward_primitive_desc_create(
            &backward, engine, r->algorithm, desc, desc, desc, 1, forward, NULL));
    execute(forward, 2, (const int[]) {NORM_ARG_SRC, NORM_ARG_DST},
            (void *const[]) {r->src, r->dst});
    execute(backward, 3, (const int[]) {NORM_ARG_DST, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC},
            (void *const[]) {r->dst, r->diff_dst, r->diff_src});
    MUST(norm_memory_desc_destroy(desc));
}

/* Errors of dst in ulp (of at least 1 for logarithms), and of diff_src in ulp of the sum of the
 * magnitudes of its terms. */
static void errors(const rows_t *r, double most[2]) {
    const int log_of = r->algorithm == norm_softmax_log;
    for (norm_dim_t row = 0; row < r->rows; ++row) {
        const double *x = r->src + row * r->cols, *y = r->dst + row * r->cols;
        const double *g = r->diff_dst + row * r->cols, *d = r->diff_src + row * r->cols;
        wide_t max = x[0], sum = 0, dot = 0, dot_abs = 0;
        for (norm_dim_t c = 0; c < r->cols; ++c) max = fmaxl(max, x[c]);
        for (norm_dim_t c = 0; c < r->cols; ++c) {
            sum += expl(x[c] - max);
            dot += log_of ? g[c] : (wide_t)g[c] * y[c];
            dot_abs += fabsl(log_of ? g[c] : (wide_t)g[c] * y[c]);
        }
        for (norm_dim_t c = 0; c < r->cols; ++c) {
            const wide_t right = log_of ? x[c] - max - logl(sum) : expl(x[c] - max) / sum;
            if (log_of && fabsl(right) < 1) add(&most[0], error_of(OF_ONE, 1, y[c], right));
            else if (log_of || right >= DBL_MIN) add(&most[0], error_of(ULP, 1, y[c], right));
            const wide_t factor = log_of ? expl(y[c]) : y[c];
            const wide_t slope = log_of ? g[c] - factor * dot : factor * (g[c] - dot);
            const wide_t terms = (log_of ? 1 : factor) * fabsl(g[c]) + factor * dot_abs;
            if (terms >= 1e-290) {
                const double last = nextafter((double)terms, INFINITY) - (double)terms;
                add(&most[1], (double)(fabsl(d[c] - slope) / last));
            }
        }
    }
}

static void softmax(const char *name, rows_t r, const double stated[2]) {
    const norm_dim_t elements = r.rows * r.cols;
    double most[] = {0, 0};
    uint64_t state = 3;
    r.dst = room(elements), r.diff_dst = room(elements), r.diff_src = room(elements);
    for (norm_dim_t i = 0; i < elements; ++i) r.diff_dst[i] = random_between(&state, -1, 1);
    both_ways(&r);
    errors(&r, most);
    printf("%s`%s` of %s | %.1f | %.1f |\n", begin,
            r.algorithm == norm_softmax_log ? "softmax_log" : "softmax_accurate", name,
            tenths(most[0]), tenths(most[1]));
    for (int i = 0; i < 2; ++i) EXPECT(most[i] > 0 && most[i] <= stated[i] + allowance);
    free(r.dst), free(r.diff_dst), free(r.diff_src);
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    /* At run time, because valgrind differs only there. */
    volatile wide_t one = 1, sum = 0;
    sum = one + ldexpl(1, -60);
    if (sum == one) allowance = 16, begin = "inexact: ";
    spread();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) eltwise(&functions[i]);
    double *two = room(2 * count), *many = room(LONG * LONG_ROWS);
    for (norm_dim_t i = 0; i < count; ++i) two[2 * i] = 0, two[2 * i + 1] = numbers[i];
    uint64_t state = 9;
    for (int i = 0; i < LONG * LONG_ROWS; ++i) many[i] = random_between(&state, -30, 30);
    static const norm_alg_kind_t algorithms[] = {norm_softmax_accurate, norm_softmax_log};
    static const double stated[2][2] = {{3, 3}, {3, 3}};
    for (int a = 0; a < 2; ++a) {
        softmax("0 and numbers of every exponent",
                (rows_t) {.rows = count, .cols = 2, .algorithm = algorithms[a], .src = two},
                stated[a]);
        softmax("4096 elements from -30 to 30",
                (rows_t) {.rows = LONG_ROWS, .cols = LONG, .algorithm = algorithms[a], .src = many},
                stated[a]);
    }
    free(two), free(many), free(numbers);
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("f64_errors");
}
