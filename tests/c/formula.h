/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The formulas of norm.h as plain loops in double, and the error bounds of the
 * library:
 *
 *     results      1 ulp of the result + 2^-22 * (the sizes of its terms)
 *     variance     4 ulp
 *     mean         4 ulp of mean|x|
 *     column sums  4 f32 ulp of sum|term| (+ 1 ulp of the result, for the rounding)
 */
#ifndef FORMULA_H
#define FORMULA_H

#include "problem.h"

#define FORMULA_SLACK (1.0 / 4194304) /* 2^-22 */

/* Expects got to be within `terms` * 2^-22 plus one ulp of want. */
static inline void formula_near(
        const tensor_t *t, size_t row, size_t col, double want, double terms) {
    const double got = tensor_get(t, row, col);
    const double bound = element_ulp(t->type, want) + FORMULA_SLACK * terms;
    const int overflown = fabs(want) > element_largest(t->type) && isinf(got)
            && signbit(got) == signbit(want);
    if (!EXPECT(overflown || fabs(got - want) <= bound))
        fprintf(stderr, "    at %zu, %zu: got %.9g, want %.17g, bound %.3g\n", row, col, got, want,
                bound);
}

static inline void formula_statistic(
        const tensor_t *t, size_t row, double want, double ulp_of) {
    const double got = tensor_get(t, row / t->cols, row % t->cols);
    /* Overflow of f32 saturates. */
    const int overflown = want > element_largest(norm_f32) && got == (double)INFINITY;
    if (!EXPECT(overflown || fabs(got - want) <= 4 * element_ulp(norm_f32, ulp_of)))
        fprintf(stderr, "    statistic of row %zu: got %.9g, want %.17g\n", row, got, want);
}

typedef struct {
    double mean, variance, reciprocal, mean_size;
} formula_row_t;

static inline double formula_reciprocal(double variance, float epsilon) {
    const double under_root = variance + (double)epsilon;
    return under_root == 0 ? 0 : 1 / sqrt(under_root);
}

/* The statistics that normalize a row. */
static inline formula_row_t formula_row(const problem_t *p, size_t row, int given) {
    const size_t cols = p->src.cols;
    const double *x = p->src_before + row * cols;
    const int rms = (p->spec.flags & norm_rms_norm) != 0;
    formula_row_t s = {0, 0, 0, 0};
    if (given) {
        const double variance
                = tensor_get(&p->variance, row / p->variance.cols, row % p->variance.cols);
        /* Untrusted variances are recomputed, unless they are global. */
        given = (p->spec.flags & norm_use_global_stats)
                || (variance >= ldexp(1, -126) && isfinite(variance));
        s.variance = variance;
        s.mean = rms ? 0 : tensor_get(&p->mean, row / p->mean.cols, row % p->mean.cols);
    }
    if (!given) {
        s.mean = s.variance = 0;
        for (size_t i = 0; i < cols; ++i) s.mean_size += fabs(x[i]) / (double)cols;
        for (size_t i = 0; i < cols && !rms; ++i) s.mean += x[i];
        if (cols) s.mean /= (double)cols;
        for (size_t i = 0; i < cols; ++i) s.variance += (x[i] - s.mean) * (x[i] - s.mean);
        if (cols) s.variance /= (double)cols;
    }
    s.reciprocal = formula_reciprocal(s.variance, p->spec.epsilon);
    return s;
}

static inline void formula_check_forward(const problem_t *p) {
    const unsigned flags = p->spec.flags;
    const size_t cols = p->src.cols;
    const int training = p->spec.prop_kind == norm_forward_training;
    const int writes = training && !(flags & norm_use_global_stats);
    for (size_t row = 0; row < p->src.rows; ++row) {
        const formula_row_t s = formula_row(p, row, (flags & norm_use_global_stats) != 0);
        for (size_t col = 0; col < cols; ++col) {
            const double g = flags & norm_use_scale ? tensor_get(&p->scale, 0, col) : 1;
            const double b = flags & norm_use_shift ? tensor_get(&p->shift, 0, col) : 0;
            const double normal = (p->src_before[row * cols + col] - s.mean) * s.reciprocal * g;
            formula_near(&p->dst, row, col, normal + b, fabs(normal) + fabs(b));
        }
        if (writes) {
            formula_statistic(&p->variance, row, s.variance, s.variance);
            if (!(flags & norm_rms_norm)) formula_statistic(&p->mean, row, s.mean, s.mean_size);
        }
    }
    if (!(flags & norm_use_global_stats)) {
        EXPECT(writes || tensor_untouched(&p->variance));
        EXPECT((writes && !(flags & norm_rms_norm)) || tensor_untouched(&p->mean));
    }
    EXPECT(tensor_untouched(&p->diff_scale) && tensor_untouched(&p->diff_shift));
    EXPECT(tensor_gaps_untouched(&p->dst));
}

static inline void formula_check_backward(const problem_t *p) {
    const unsigned flags = p->spec.flags;
    const size_t cols = p->src.cols, rows = p->src.rows;
    double *sums = calloc(3 * cols + 1, sizeof *sums);
    double *d_scale = sums, *d_scale_size = sums + cols, *d_shift = sums + 2 * cols;
    double *d_shift_size = calloc(cols + 1, sizeof *d_shift_size);
    for (size_t row = 0; row < rows; ++row) {
        const formula_row_t s = formula_row(p, row, 1);
        const double *x = p->src_before + row * cols, *dy = p->diff_dst_before + row * cols;
        double sum_d = 0, sum_d_size = 0, sum_dx = 0, sum_dx_size = 0;
        for (size_t col = 0; col < cols; ++col) {
            const double g = flags & norm_use_scale ? tensor_get(&p->scale, 0, col) : 1;
            const double d = g * dy[col], hat = (x[col] - s.mean) * s.reciprocal;
            sum_d += d, sum_d_size += fabs(d), sum_dx += d * hat, sum_dx_size += fabs(d * hat);
            d_scale[col] += dy[col] * hat, d_scale_size[col] += fabs(dy[col] * hat);
            d_shift[col] += dy[col], d_shift_size[col] += fabs(dy[col]);
        }
        if (flags & norm_rms_norm) sum_d = sum_d_size = 0;
        if (flags & norm_use_global_stats) sum_d = sum_d_size = sum_dx = sum_dx_size = 0;
        const double count = (double)cols;
        for (size_t col = 0; col < cols; ++col) {
            const double g = flags & norm_use_scale ? tensor_get(&p->scale, 0, col) : 1;
            const double d = g * dy[col], hat = (x[col] - s.mean) * s.reciprocal;
            formula_near(&p->diff_src, row, col,
                    s.reciprocal * (d - sum_d / count - hat * sum_dx / count),
                    s.reciprocal
                            * (fabs(d) + sum_d_size / count + fabs(hat) * sum_dx_size / count));
        }
    }
    const int parameters = p->spec.prop_kind == norm_backward;
    for (size_t col = 0; col < cols && parameters; ++col) {
        /* 4 ulp are at most 2^-21 of the sum, twice the slack. */
        if (flags & norm_use_scale)
            formula_near(&p->diff_scale, 0, col, d_scale[col], 2 * d_scale_size[col]);
        if (flags & norm_use_shift)
            formula_near(&p->diff_shift, 0, col, d_shift[col], 2 * d_shift_size[col]);
    }
    EXPECT((parameters && flags & norm_use_scale) || tensor_untouched(&p->diff_scale));
    EXPECT((parameters && flags & norm_use_shift) || tensor_untouched(&p->diff_shift));
    EXPECT(tensor_gaps_untouched(&p->diff_src));
    free(sums);
    free(d_shift_size);
}

/* Compares the outputs of an executed problem with the formulas. */
static inline void formula_check(const problem_t *p) {
    if (problem_is_backward(&p->spec))
        formula_check_backward(p);
    else
        formula_check_forward(p);
}

#endif
