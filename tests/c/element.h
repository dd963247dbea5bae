/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Elements of a tensor as doubles: f32, bf16 and f16; f8_e4m3 only for reading. Written from the
 * definitions of the formats, independently of the library.
 */
#ifndef ELEMENT_H
#define ELEMENT_H

#include "norm.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline size_t element_bytes(norm_data_type_t type) {
    if (type == norm_s8 || type == norm_u8 || type == norm_f8_e4m3) return 1;
    return type == norm_f64 ? 8 : type == norm_f32 || type == norm_s32 ? 4 : 2;
}

/* The number of fraction bits, and the exponent of the smallest normal number. */
static inline int element_fraction_bits(norm_data_type_t type) {
    return type == norm_f32 ? 23 : type == norm_bf16 ? 7 : 10;
}
static inline int element_least_exponent(norm_data_type_t type) {
    return type == norm_f16 ? -14 : -126;
}

/* The largest finite number. */
static inline double element_largest(norm_data_type_t type) {
    const int bits = element_fraction_bits(type);
    return ldexp(2 - ldexp(1, -bits), type == norm_f16 ? 15 : 127);
}

/* The distance between adjacent numbers of `type` at `value`. */
static inline double element_ulp(norm_data_type_t type, double value) {
    int exponent = element_least_exponent(type);
    if (value != 0 && isfinite(value) && ilogb(value) > exponent) exponent = ilogb(value);
    return ldexp(1.0, exponent - element_fraction_bits(type));
}

static inline double element_get(norm_data_type_t type, const void *data, size_t index) {
    if (type == norm_s8) return ((const signed char *)data)[index];
    if (type == norm_u8) return ((const unsigned char *)data)[index];
    if (type == norm_f8_e4m3) {
        const int code = ((const unsigned char *)data)[index], size = code & 127;
        const double sign = code & 128 ? -1 : 1;
        if (size == 127) return (double)NAN;
        return sign * (size < 8 ? ldexp(size, -9) : ldexp(8 + size % 8, size / 8 - 10));
    }
    if (type == norm_s32) {
        int32_t value;
        memcpy(&value, (const char *)data + 4 * index, 4);
        return value;
    }
    if (type == norm_f32) {
        float value;
        memcpy(&value, (const char *)data + 4 * index, 4);
        return value;
    }
    if (type == norm_f64) {
        double value;
        memcpy(&value, (const char *)data + 8 * index, 8);
        return value;
    }
    uint16_t half;
    memcpy(&half, (const char *)data + 2 * index, 2);
    if (type == norm_bf16) {
        const uint32_t bits = (uint32_t)half << 16;
        float value;
        memcpy(&value, &bits, 4);
        return value;
    }
    const int exponent = (half >> 10) & 31, fraction = half & 1023;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, -24);
    return sign * ldexp(fraction + 1024, exponent - 25);
}

/* Stores a finite `value`, rounded to nearest even. Integer types must represent it exactly. */
static inline void element_set(norm_data_type_t type, void *data, size_t index, double value) {
    if (type == norm_s8 || type == norm_u8) {
        ((unsigned char *)data)[index] = (unsigned char)(int)nearbyint(value);
        return;
    }
    if (type == norm_s32) {
        const int32_t whole = (int32_t)nearbyint(value);
        memcpy((char *)data + 4 * index, &whole, 4);
        return;
    }
    if (type == norm_f32) {
        const float narrow = (float)value;
        memcpy((char *)data + 4 * index, &narrow, 4);
        return;
    }
    if (type == norm_f64) {
        memcpy((char *)data + 8 * index, &value, 8);
        return;
    }
    const double ulp = element_ulp(type, value);
    const double rounded = nearbyint(value / ulp) * ulp;
    uint16_t half;
    if (type == norm_bf16) {
        const float narrow = (float)rounded;
        uint32_t bits;
        memcpy(&bits, &narrow, 4);
        half = (uint16_t)(bits >> 16);
    } else {
        const double size = fabs(rounded);
        if (size < ldexp(1.0, -14)) {
            half = (uint16_t)ldexp(size, 24);
        } else {
            const int exponent = ilogb(size);
            half = (uint16_t)(((exponent + 15) << 10)
                    | ((int)ldexp(size, 10 - exponent) & 1023));
        }
        if (signbit(value)) half |= 0x8000;
    }
    memcpy((char *)data + 2 * index, &half, 2);
}

/* A reproducible stream of numbers: the LCG of Knuth's MMIX. */
static inline uint32_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}
/* Uniform in [low, high). */
static inline double random_between(uint64_t *state, double low, double high) {
    return low + (high - low) * (random_bits(state) / 4294967296.0);
}

#endif
