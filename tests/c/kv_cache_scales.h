/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Keys and values of s8 and f8_e4m3 with a scale per token and head, by the formula of
 * norm_kv_cache_write(), independently of the library.
 */
#ifndef KV_CACHE_SCALES_H
#define KV_CACHE_SCALES_H

/* The types of quantized caches. */
static norm_data_type_t quantized_to = norm_data_type_undef;

/* The element nearest to x, ties to even. */
static unsigned char nearest_code(norm_data_type_t type, float x) {
    if (type == norm_s8) {
        if (isnan(x)) return 0;
        const float rounded = nearbyintf(x);
        return (unsigned char)(signed char)(rounded > 127 ? 127 : rounded < -128 ? -128 : rounded);
    }
    if (isnan(x)) return 127;
    static double magnitudes[127];
    for (int i = 0; magnitudes[126] == 0 && i < 127; ++i) {
        const unsigned char code = (unsigned char)i;
        magnitudes[i] = element_get(type, &code, 0);
    }
    /* The neighbours of |x|, which is at most 448. */
    const double size = fabs((double)x);
    int below = 0, above = 126;
    while (above - below > 1) {
        const int middle = (below + above) / 2;
        *(magnitudes[middle] <= size ? &below : &above) = middle;
    }
    const double to_below = size - magnitudes[below], to_above = magnitudes[above] - size;
    const int best = to_below < to_above || (to_below == to_above && below % 2 == 0) ? below : above;
    return (unsigned char)(signbit(x) ? best | 128 : best);
}

/* Computes the scale of a row and its elements. */
static float quantize_row(norm_data_type_t type, const float *x, size_t count, unsigned char *codes) {
    const float largest = type == norm_s8 ? 127 : 448;
    float most = 0;
    for (size_t i = 0; i < count; ++i)
        most = isnan(x[i]) || isnan(most) ? NAN : fmaxf(most, fabsf(x[i]));
    float scale = most / largest;
    if (most == 0 || isinf(1 / scale)) scale = 1;
    const float factor = 1 / scale;
    for (size_t i = 0; i < count; ++i) {
        const float scaled = x[i] * factor;
        codes[i] = nearest_code(type,
                scaled > largest ? largest : scaled < -largest ? -largest : scaled);
    }
    return scale;
}

/* Quantizes 1 x groups x tokens x size. The scales of keys are 1 x groups x 1 x tokens, those of
 * values 1 x groups x tokens x 1. */
static void quantize(const tensor_t *src, int values, tensor_t *codes, tensor_t *scales) {
    const norm_dim_t dims[] = {1, src->dims[1], values ? src->dims[2] : 1, values ? 1 : src->dims[2]};
    *codes = tensor_make(quantized_to, 4, src->dims, NULL, engine);
    *scales = tensor_make(norm_f32, 4, dims, NULL, engine);
    float *row = malloc(src->cols * sizeof *row);
    for (size_t i = 0; i < src->rows; ++i) {
        for (size_t col = 0; col < src->cols; ++col) row[col] = (float)tensor_get(src, i, col);
        ((float *)(void *)scales->data)[i]
                = quantize_row(quantized_to, row, src->cols, codes->data + i * src->cols);
    }
    free(row);
}

#endif
