/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Problems of the programs about the steps around a layer normalization. Include
 * it after the header of the checks.
 */
#ifndef AROUND_H
#define AROUND_H

static norm_engine_t engine;
static norm_stream_t stream;

enum { ROWS = 7, COLS = 83, COUNT = ROWS * COLS };
static const norm_dim_t dims[] = {ROWS, COLS};
static const float epsilon = 1e-3f;

static norm_memory_desc_t rows_of(norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, type, norm_ab));
    return desc;
}

static norm_primitive_attr_t attributes(void) {
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    return attr;
}

static norm_status_t forward(norm_primitive_desc_t *pd, norm_memory_desc_t src,
        norm_memory_desc_t dst, unsigned flags, norm_primitive_attr_t attr) {
    return norm_layer_normalization_forward_primitive_desc_create(pd, engine,
            norm_forward_training, src, dst, NULL, epsilon, flags, attr);
}

#endif
