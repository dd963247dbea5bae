/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The elementwise and binary functions and their derivatives in double.
 */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "norm.h"

#include <math.h>

typedef struct {
    /* What to compute, and the algorithm with its formula. */
    norm_alg_kind_t alg, formula;
    float alpha, beta;
    /* Whether the function is only defined for positive numbers. */
    int positive;
} function_t;

#define SAME(name, a, b, positive) {norm_eltwise_##name, norm_eltwise_##name, a, b, positive}
#define OF_DST(name, a, b, positive) \
    {norm_eltwise_##name##_use_dst_for_bwd, norm_eltwise_##name, a, b, positive}

static const function_t functions[] = {SAME(relu, 0, 0, 0), SAME(relu, 0.25f, 0, 0),
        SAME(tanh, 0, 0, 0), SAME(elu, 0.5f, 0, 0), SAME(square, 0, 0, 0), SAME(abs, 0, 0, 0),
        SAME(sqrt, 0, 0, 1), SAME(linear, 3, 0.5f, 0), SAME(soft_relu, 2, 0, 0),
        SAME(soft_relu, -1, 0, 0), SAME(hardsigmoid, 0.25f, 0.5f, 0), SAME(logistic, 0, 0, 0),
        SAME(exp, 0, 0, 0), SAME(gelu_tanh, 0, 0, 0), SAME(swish, 1.5f, 0, 0), SAME(log, 0, 0, 1),
        SAME(clip, -2, 3, 0), SAME(clip_v2, -2, 3, 0), SAME(pow, 0.5f, 1.5f, 1),
        SAME(pow, 1, 0, 0), SAME(pow, 2, 3, 0), SAME(gelu_erf, 0, 0, 0), SAME(round, 0, 0, 0),
        SAME(mish, 0, 0, 0), SAME(hardswish, 0.25f, 0.5f, 0), OF_DST(relu, 0, 0, 0),
        OF_DST(relu, 0.25f, 0, 0), OF_DST(tanh, 0, 0, 0), OF_DST(elu, 0.5f, 0, 0),
        OF_DST(sqrt, 0, 0, 1), OF_DST(logistic, 0, 0, 0), OF_DST(exp, 0, 0, 0),
        OF_DST(clip_v2, -2, 3, 0)};

#define FUNCTIONS (sizeof functions / sizeof *functions)

static inline double function_sigmoid(double x) { return 1 / (1 + exp(-x)); }

static inline double function_value(const function_t *f, double x) {
    const double a = f->alpha, b = f->beta;
    switch (f->formula) {
        case norm_eltwise_relu: return x > 0 ? x : a * x;
        case norm_eltwise_tanh: return tanh(x);
        case norm_eltwise_elu: return x > 0 ? x : a * expm1(x);
        case norm_eltwise_square: return x * x;
        case norm_eltwise_abs: return fabs(x);
        case norm_eltwise_sqrt: return sqrt(x);
        case norm_eltwise_linear: return a * x + b;
        case norm_eltwise_soft_relu: return log1p(exp(a * x)) / a;
        case norm_eltwise_hardsigmoid: return fmax(0, fmin(1, a * x + b));
        case norm_eltwise_logistic: return function_sigmoid(x);
        case norm_eltwise_exp: return exp(x);
        case norm_eltwise_gelu_tanh:
            return x * function_sigmoid(2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
        case norm_eltwise_swish: return x * function_sigmoid(a * x);
        case norm_eltwise_log: return log(x);
        case norm_eltwise_clip:
        case norm_eltwise_clip_v2: return fmax(a, fmin(b, x));
        case norm_eltwise_pow: return a * pow(x, b);
        case norm_eltwise_gelu_erf: return x * erfc(-x / sqrt(2)) / 2;
        case norm_eltwise_round: return nearbyint(x);
        case norm_eltwise_mish: return x * tanh(log1p(exp(x)));
        case norm_eltwise_hardswish: return x * fmax(0, fmin(1, a * x + b));
        default: return NAN;
    }
}

/* The derivative at x; for some algorithms x is an element of dst. */
static inline double function_slope(const function_t *f, double x) {
    const double a = f->alpha, b = f->beta, line = a * x + b;
    const double h = 1e-5, s = function_sigmoid(a * x);
    switch (f->alg) {
        case norm_eltwise_relu:
        case norm_eltwise_relu_use_dst_for_bwd: return x > 0 ? 1 : a;
        case norm_eltwise_elu: return x > 0 ? 1 : a * exp(x);
        case norm_eltwise_elu_use_dst_for_bwd: return x > 0 ? 1 : x + a;
        case norm_eltwise_abs: return x > 0 ? 1 : x < 0 ? -1 : 0;
        case norm_eltwise_sqrt: return 1 / (2 * sqrt(x));
        case norm_eltwise_sqrt_use_dst_for_bwd: return 1 / (2 * x);
        case norm_eltwise_hardsigmoid: return line > 0 && line < 1 ? a : 0;
        case norm_eltwise_hardswish: return line <= 0 ? 0 : line >= 1 ? 1 : line + a * x;
        case norm_eltwise_tanh_use_dst_for_bwd: return 1 - x * x;
        case norm_eltwise_logistic_use_dst_for_bwd: return x * (1 - x);
        case norm_eltwise_exp_use_dst_for_bwd: return x;
        case norm_eltwise_clip: return x > a && x <= b;
        case norm_eltwise_clip_v2:
        case norm_eltwise_clip_v2_use_dst_for_bwd: return x > a && x < b;
        case norm_eltwise_log: return 1 / x;
        case norm_eltwise_pow: return b == 0 ? 0 : a * b * pow(x, b - 1);
        case norm_eltwise_exp: return exp(x);
        case norm_eltwise_square: return 2 * x;
        case norm_eltwise_swish: return s + a * x * s * (1 - s);
        /* Smooth functions: a third-order difference. */
        default: {
            const double near = function_value(f, x + h) - function_value(f, x - h);
            const double far = function_value(f, x + 2 * h) - function_value(f, x - 2 * h);
            return (8 * near - far) / (12 * h);
        }
    }
}

static inline double binary_value(norm_alg_kind_t alg, double x, double y, double condition) {
    switch (alg) {
        case norm_binary_add: return x + y;
        case norm_binary_mul: return x * y;
        case norm_binary_max: return fmax(x, y);
        case norm_binary_min: return fmin(x, y);
        case norm_binary_div: return x / y;
        case norm_binary_sub: return x - y;
        case norm_binary_ge: return x >= y;
        case norm_binary_gt: return x > y;
        case norm_binary_le: return x <= y;
        case norm_binary_lt: return x < y;
        case norm_binary_eq: return x == y;
        case norm_binary_ne: return x != y;
        default: return condition != 0 ? x : y;
    }
}

#endif
