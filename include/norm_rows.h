/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_rows.h - the attributes softmax stats and dropout. Programs include norm.h.
 */
#ifndef NORM_ROWS_H
#define NORM_ROWS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Softmax stats (not in oneDNN)                                            */
/* ------------------------------------------------------------------------ */

#define NORM_ARG_SOFTMAX_STATS (0x40000000 | 6) /* out: ln(sum(exp(src))) */

/* Forward softmax also writes, for each row of src, max + ln(sum(exp(src - max))) in
 * f32 to NORM_ARG_SOFTMAX_STATS, whatever the algorithm. It does not include scales,
 * dropout and post-operations. A row of only -inf, or without elements, gives -inf;
 * one with +inf gives +inf; one with NaN gives NaN.
 *
 * stats_desc  f32, src's dimensions with 1 for the softmax axis; any strides, or
 *             the layout `any` (dense). NULL removes the attribute.
 *
 * Another type is norm_unimplemented. The attributes keep a copy. Dimensions are
 * checked when a primitive descriptor is created. */
NORM_API norm_status_t norm_primitive_attr_set_softmax_stats(
        norm_primitive_attr_t attr, const_norm_memory_desc_t stats_desc);
/* NULL if there is none. The descriptor is owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_softmax_stats(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *stats_desc);

/* ------------------------------------------------------------------------ */
/* Dropout                                                                  */
/* ------------------------------------------------------------------------ */

#define NORM_ARG_ATTR_DROPOUT_OFFSET 507      /* in: s64, one element */
#define NORM_ARG_ATTR_DROPOUT_MASK 509        /* out: u8 */
#define NORM_ARG_ATTR_DROPOUT_PROBABILITY 510 /* in: f32, one element */
#define NORM_ARG_ATTR_DROPOUT_SEED 511        /* in: s32 or s64, one element */

/* Forward softmax, eltwise and binary (in oneDNN not binary) apply it to the f32
 * result x, before the post-operations:
 *
 *   mask = number > (2^32 - 1)*p,   x becomes mask ? x * 1/(1 - p) : 0
 *
 * where p is the probability that an element is dropped, and Philox 4x32-10 generates
 * the number from the seed, the offset and the element's row-major index. An execution
 * refuses a p that is not from 0 to 1. The mask does not depend on layouts or threads;
 * it is oneDNN's, byte for byte. As in oneDNN, without an offset, or if it is 0, four
 * neighbours share a number, which depends on the lowest 32 bits of the seed and of the
 * index; with any other offset, each element has its own. softmax multiplies by the
 * scale of src before dropout, and divides by that of dst after the post-operations.
 *
 * mask_desc         u8, dimensions of dst, any strides or the layout `any` (as dst); if
 *                   empty, the mask is not stored
 * seed_data_type    norm_s64 or norm_s32
 * use_offset        whether NORM_ARG_ATTR_DROPOUT_OFFSET is passed; otherwise it is 0
 * use_host_scalars  whether probability, seed and offset are host scalars
 *                   (norm_memory_create_host_scalar); an execution refuses the
 *                   other kind of memory
 *
 * norm_primitive_attr_set_dropout() is the same with norm_s32, 0 and 0. A NULL
 * descriptor or another type is norm_invalid_arguments. */
NORM_API norm_status_t norm_primitive_attr_set_dropout(
        norm_primitive_attr_t attr, const_norm_memory_desc_t mask_desc);
/* The same, with the seed's type, an offset and host scalars. */
NORM_API norm_status_t norm_primitive_attr_set_dropout_v2(norm_primitive_attr_t attr,
        const_norm_memory_desc_t mask_desc, norm_data_type_t seed_data_type,
        int use_offset, int use_host_scalars);
/* Results may be NULL. Without dropout they are an empty descriptor,
 * norm_data_type_undef, 0 and 0. The descriptor is owned by the attributes, or by the
 * library if empty. */
NORM_API norm_status_t norm_primitive_attr_get_dropout(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *mask_desc);
/* The same, with all parameters. */
NORM_API norm_status_t norm_primitive_attr_get_dropout_v2(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *mask_desc,
        norm_data_type_t *seed_data_type, int *use_offset, int *use_host_scalars);

#ifdef __cplusplus
}
#endif

#endif /* NORM_ROWS_H */
