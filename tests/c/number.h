/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The number that an element of any type stands for, and the element nearest to a number. Written
 * from the definitions of the types, independently of the library, for a little-endian machine.
 */
#ifndef NUMBER_H
#define NUMBER_H

#include "norm.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A floating-point type: the bits of the fraction, the bias of the exponent, and the code of the
 * largest number. */
typedef struct {
    int fraction, bias;
    uint32_t largest;
} number_format_t;

static inline number_format_t number_format(norm_data_type_t type) {
    switch (type) {
    case norm_f32: return (number_format_t) {23, 127, 0x7f7fffff};
    case norm_bf16: return (number_format_t) {7, 127, 0x7f7f};
    case norm_f16: return (number_format_t) {10, 15, 0x7bff};
    case norm_f8_e5m2: return (number_format_t) {2, 15, 0x7b};
    default: return (number_format_t) {3, 7, 0x7e}; /* norm_f8_e4m3 */
    }
}

/* The number of a code without sign; that after the largest as if the exponent had no limit. */
static inline double number_size(number_format_t format, uint32_t code) {
    const int exponent = (int)(code >> format.fraction), unit = -format.bias - format.fraction;
    const int fraction = (int)(code & ((1u << format.fraction) - 1));
    if (exponent == 0) return ldexp(fraction, unit + 1);
    return ldexp(fraction + (1 << format.fraction), exponent + unit);
}

/* The number of an element, as a double: s64 beyond 2^53 are rounded. */
static inline double number_get(norm_data_type_t type, const void *data, size_t i) {
    const size_t size = norm_data_type_size(type);
    uint64_t bits = 0;
    double number;
    memcpy(&bits, (const char *)data + size * i, size);
    const uint32_t code = (uint32_t)bits;
    switch (type) {
    case norm_f64: memcpy(&number, &bits, 8); return number;
    case norm_s64: return (double)(int64_t)bits;
    case norm_s32: return (int32_t)code;
    case norm_s8: return (int8_t)code;
    case norm_u8: return code;
    case norm_e8m0: return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
    default: break;
    }
    const number_format_t format = number_format(type);
    const uint32_t sign = 1u << (8 * size - 1), rest = code & (sign - 1);
    const int is_infinity = rest == format.largest + 1 && type != norm_f8_e4m3;
    number = number_size(format, rest);
    if (rest > format.largest) number = is_infinity ? (double)INFINITY : (double)NAN;
    return code & sign ? -number : number;
}

/* The nearest integer, ties to even, between `low` and `high`; 0 for NaN. */
static inline int64_t number_whole(double x, double low, double high) {
    if (isnan(x)) return 0;
    if (x <= low) return (int64_t)low;
    /* The largest s64 is not a double. */
    if (x >= high) return high < 9e18 ? (int64_t)high : INT64_MAX;
    return (int64_t)nearbyint(x);
}

/* The code of the nearest number, ties to even; some NaN for NaN. */
static inline uint32_t number_code(norm_data_type_t type, double x) {
    const number_format_t format = number_format(type);
    const uint32_t first_bit = 1u << (8 * norm_data_type_size(type) - 1);
    const uint32_t sign = signbit(x) ? first_bit : 0;
    if (isnan(x)) return first_bit - 1;
    /* The last code whose number is not above |x|. */
    uint32_t code = 0, above = format.largest + 1;
    while (above - code > 1) {
        const uint32_t middle = code + (above - code) / 2;
        if (number_size(format, middle) <= fabs(x)) code = middle;
        else above = middle;
    }
    const double below = fabs(x) - number_size(format, code);
    const double short_of = number_size(format, code + 1) - fabs(x);
    return sign | (code + (below > short_of || (below == short_of && code % 2 == 1)));
}

/* The code of the largest power of two that is not above x, or of the smallest one; that of NaN for
 * negative numbers, infinities and NaN. */
static inline uint8_t number_power(double x) {
    if (isnan(x) || isinf(x) || x < 0) return 255;
    const int exponent = x == 0 ? -127 : ilogb(x);
    return (uint8_t)((exponent < -127 ? -127 : exponent > 127 ? 127 : exponent) + 127);
}

/* Stores the element nearest to a number. */
static inline void number_put(norm_data_type_t type, void *data, size_t i, double x) {
    const size_t size = norm_data_type_size(type);
    int64_t whole = 0;
    switch (type) {
    case norm_f64: memcpy(&whole, &x, 8); break;
    case norm_s64: whole = number_whole(x, -ldexp(1, 63), ldexp(1, 63)); break;
    case norm_s32: whole = number_whole(x, -ldexp(1, 31), ldexp(1, 31) - 1); break;
    case norm_s8: whole = number_whole(x, -128, 127); break;
    case norm_u8: whole = number_whole(x, 0, 255); break;
    case norm_e8m0: whole = number_power(x); break;
    default: whole = number_code(type, x);
    }
    memcpy((char *)data + size * i, &whole, size);
}

#endif
