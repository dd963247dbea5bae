/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_rope.h - rotary position embedding. Programs include norm.h.
 */
#ifndef NORM_ROPE_H
#define NORM_ROPE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The pairs of elements of a head that are rotated together. R is rotary_dims, D the
 * size of a head, and i counts pairs from 0 to R/2 - 1. There is no default: weights
 * trained with one pairing silently give wrong results with another.
 * norm_rope_permute() converts weights from one to another. */
typedef enum {
    norm_rope_interleaved = 0x01000000,  /* 2i and 2i + 1 (GPT-J, Llama's own files) */
    norm_rope_half_split = 0x01000001,   /* i and i + R/2 (GPT-NeoX, Hugging Face) */
    norm_rope_half_split_of_head = 0x01000002 /* i and i + D/2 (Gemma 4) */
} norm_rope_pairing_t;

/* Where cosines and sines come from. */
typedef enum {
    norm_rope_from_frequencies = 0x01000000, /* computed from positions and frequencies */
    norm_rope_from_tables = 0x01000001       /* read from rows of tables */
} norm_rope_angles_t;

/* Flags of rope, besides norm_rms_norm, norm_use_scale and norm_scale_plus_one. */
typedef enum {
    /* The rows of dst are those that NORM_ARG_SLOTS names. */
    norm_write_slots = 1U << 28,
    /* The normalized values are rounded to the type of dst before the rotation. */
    norm_rope_norm_rounded = 1U << 29,
    /* Sections alternate pair by pair, instead of following one another. */
    norm_rope_interleaved_sections = 1U << 30
} norm_rope_flags_t;

/* Scaling of frequencies for contexts longer than in training; parameters and formulas are
 * at norm_rope_frequencies(). */
typedef enum {
    norm_rope_scaling_none = 0x01000000,        /* frequencies as they are */
    norm_rope_scaling_linear = 0x01000001,      /* divided by a factor */
    norm_rope_scaling_ntk = 0x01000002,         /* of a larger base */
    norm_rope_scaling_dynamic_ntk = 0x01000003, /* of a base that grows with the length */
    norm_rope_scaling_yarn = 0x01000004,        /* low ones divided, with a ramp by index */
    norm_rope_scaling_llama3 = 0x01000005,      /* low ones divided, with a ramp by wavelength */
    norm_rope_scaling_longrope = 0x01000006     /* each divided by its own number */
} norm_rope_scaling_t;

#define NORM_ARG_POSITIONS (0x40000000 | 16)        /* in: s32 or s64 */
#define NORM_ARG_ROPE_FREQUENCIES (0x40000000 | 17) /* in: f64, rotary_dims / 2 */
#define NORM_ARG_ROPE_COS (0x40000000 | 18)         /* in: a table */
#define NORM_ARG_ROPE_SIN (0x40000000 | 19)         /* in: a table */
#define NORM_ARG_SLOTS (0x40000000 | 20)            /* in: s64, one per token */

/* Rotates the pairs of each head by angles that grow with the token's position:
 *
 *   angle  = position * frequency[i]                       i < rotary_dims / 2
 *   dst[a] = src[a] * cos(angle) - src[b] * sin(angle)     a, b: see pairing
 *   dst[b] = src[a] * sin(angle) + src[b] * cos(angle)
 *
 * The other elements are copied. The last dimension of src is a head; the others
 * are tokens, heads and batches in any order.
 *
 *   angles        norm_rope_from_frequencies: NORM_ARG_ROPE_FREQUENCIES has
 *                 rotary_dims / 2 f64 numbers, which norm_rope_frequencies()
 *                 computes. Angles are products rounded to f64, so they are off by
 *                 at most 2^-53 of themselves. Their sines and cosines are accurate
 *                 to 1 ulp of f32 and computed once per token. Positions are at
 *                 most 2^31 - 1. Frequencies are not checked: angles beyond 2^32,
 *                 which need frequencies above 2, give meaningless results.
 *                 norm_rope_from_tables: row p of NORM_ARG_ROPE_COS and
 *                 NORM_ARG_ROPE_SIN has the values for position p, in the type
 *                 of the tables.
 *   src_desc      f32, bf16 or f16, 2 to 6 dimensions, any layout
 *   dst_desc      the same dimensions, any of these types; the layout `any` is that
 *                 of src. src and dst may share a buffer if type and layout are the
 *                 same. For norm_write_slots see below; the layout is then given.
 *   epsilon       0 or more, finite; read with norm_rms_norm only
 *   position_desc NORM_ARG_POSITIONS, s32 or s64: the dimensions of src without
 *                 the last, or 1 to broadcast. So T x H x D has positions of
 *                 T x 1. With sections there is one more dimension, num_sections.
 *   index_dim     -1: positions are those of POSITIONS. Otherwise a dimension of
 *                 src whose index is added to them; position_desc has 1 there. So
 *                 B x S x H x D with index_dim 1 has B x 1 x 1 offsets.
 *   table_desc    with norm_rope_from_tables: positions x (rotary_dims / 2), f32,
 *                 bf16 or f16, for both tables; strides can describe tables whose
 *                 rows have cosines followed by sines. Otherwise NULL.
 *   scale_desc    with norm_use_scale: the last dimension of src, f32, bf16 or
 *                 f16. Otherwise NULL.
 *   rotary_dims   even, 2 to the last dimension of src
 *   magnitude     a factor of cosines and sines, as from norm_rope_frequencies();
 *                 1 for none
 *   num_sections  0 or 1: one position per token. 2 to 4: parts of the position,
 *                 such as time, row and column of an image patch; `sections` has
 *                 the number of pairs that each part rotates, together
 *                 rotary_dims / 2. The first sections[0] pairs use part 0, and so
 *                 on (Qwen2-VL). With norm_rope_interleaved_sections pair i uses
 *                 part i % num_sections as long as i < num_sections *
 *                 sections[that part], else part 0 (Qwen3-VL).
 *   flags         0 or a combination:
 *                 norm_rms_norm        each head is normalized before the
 *                                      rotation, src / sqrt(mean(src^2) +
 *                                      epsilon): the bits are those of layer
 *                                      normalization with the same flags to an
 *                                      f32 dst, then rope
 *                 norm_use_scale       with norm_rms_norm: times NORM_ARG_SCALE
 *                 norm_scale_plus_one  with norm_use_scale: 1 + scale
 *                 norm_rope_norm_rounded  with norm_rms_norm: as if the layer
 *                                      normalization had the type of dst
 *                 norm_write_slots     dimension 0 of src is tokens; the position
 *                                      is the same for all others but the last.
 *                                      Token t is written to row NORM_ARG_SLOTS[t]
 *                                      of dst, or nowhere for -1. Slots must
 *                                      differ. dst has slots instead of tokens in
 *                                      dimension 0, or pages x slots per page in
 *                                      its first two. Other rows of dst are not
 *                                      changed. src and dst must not share memory.
 *
 * Execution refuses positions below 0, above the limit or outside the tables, and
 * slots outside dst, with norm_invalid_arguments before it writes anything.
 *
 * prop_kind: norm_forward_training or norm_forward_inference. No attribute other
 * than the scratchpad mode is supported. */
NORM_API norm_status_t norm_rope_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine, norm_prop_kind_t prop_kind,
        norm_rope_pairing_t pairing, norm_rope_angles_t angles, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t position_desc, int index_dim,
        const_norm_memory_desc_t table_desc, const_norm_memory_desc_t scale_desc,
        norm_dim_t rotary_dims, float magnitude, int num_sections, const norm_dim_t *sections,
        float epsilon, unsigned flags, const_norm_primitive_attr_t attr);

/* The gradient of src: NORM_ARG_DIFF_DST is rotated back, by the negative angles,
 * into NORM_ARG_DIFF_SRC. Parameters are those of forward; diff_src_desc may have
 * the layout `any`, that of diff_dst. hint_fwd_pd is ignored and may be NULL.
 *
 *   flags         those of forward except norm_write_slots. norm_rope_norm_rounded
 *                 has no effect: the gradient of rounding is taken as 1.
 *
 * With norm_rms_norm the result is the gradient of the heads before their
 * normalization, with d = diff_dst rotated back, in f32, and v = mean(src^2):
 *
 *   diff_src   = r*s*d - src * r^3 * sum(src*s*d)/D     r = 1/sqrt(v + epsilon),
 *   diff_scale = sum of d*src*r over all heads          s = scale, 1 + scale or 1
 *
 * The bits are those of a layer normalization's backward with the same flags,
 * given src, d and the variance that its forward stores. Sums over heads have the
 * same bits for any number of threads.
 *
 *   src_desc      NORM_ARG_SRC, the src of forward: the dimensions of diff_dst, 2
 *                 to 5; f32, bf16 or f16, any layout. NULL without norm_rms_norm
 *   scale_desc    with norm_use_scale, as forward: NORM_ARG_SCALE; otherwise NULL
 *   diff_scale_desc  with norm_use_scale: NORM_ARG_DIFF_SCALE, D numbers of f32,
 *                 bf16 or f16, or NULL if it is not needed; otherwise NULL
 *
 * The scratchpad has the size of diff_dst in f32. DIFF_SRC may share the buffer
 * of DIFF_DST or of SRC if type and layout are the same. */
NORM_API norm_status_t norm_rope_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine, norm_rope_pairing_t pairing,
        norm_rope_angles_t angles, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t position_desc, int index_dim, const_norm_memory_desc_t table_desc,
        const_norm_memory_desc_t scale_desc, const_norm_memory_desc_t diff_scale_desc,
        norm_dim_t rotary_dims, float magnitude, int num_sections, const norm_dim_t *sections,
        float epsilon, unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* Writes rotary_dims / 2 frequencies, in radians per position, and the factor for
 * cosines and sines (magnitude, may be NULL). Without scaling, frequency i is
 * base^(-2i / rotary_dims).
 *
 * rotary_dims is that of the rotation, except for models that rotate a part of the head
 * with the frequencies of a whole one (rope_type "proportional" in transformers: full
 * attention of Gemma 4, with norm_rope_half_split_of_head). For these pass the size of
 * the head, and use the first R/2 of the D/2 frequencies.
 *
 * `parameters` has num_parameters numbers, each finite and, unless stated, above 0:
 *
 *   factor        1 or more, in every scaling that has it
 *
 *   none          none
 *   linear        factor: frequencies are divided by it
 *   ntk           factor: base * factor^(R / (R - 2))
 *   dynamic_ntk   factor, trained length, current length: ntk with the factor
 *                 factor * current / trained - (factor - 1), if current > trained
 *   yarn          factor, trained length; then, as far as given, beta_fast (32),
 *                 beta_slow (1, at most beta_fast) and, which may be 0, mscale (0),
 *                 mscale_all_dim (0), truncate (1), magnitude (0: from the others)
 *   llama3        factor, low_freq_factor, high_freq_factor (above the former),
 *                 trained length
 *   longrope      factor, trained length (above 1), then rotary_dims / 2 divisors of the
 *                 frequencies (the short or the long ones); magnitude
 *                 sqrt(1 + ln(factor) / ln(trained length))
 *
 * The formulas are those of Hugging Face's transformers (modeling_rope_utils),
 * computed in f64. base is finite and above 1. Frequencies are above 0 and at most 1,
 * with longrope at most 2, and the magnitude is a positive f32 number. Parameters that
 * are out of range, or give results that are, are norm_invalid_arguments. */
NORM_API norm_status_t norm_rope_frequencies(norm_rope_scaling_t scaling, norm_dim_t rotary_dims,
        double base, int num_parameters, const double *parameters, double *frequencies,
        float *magnitude);

/* Permutes the rows of a projection's weights so that a model trained with pairing
 * `from` gives the same scores with pairing `to`. Dimension 0 of src and dst has
 * heads * D rows, those of a head together; a second dimension, which a bias or the
 * scale of a norm (with heads = 1) does not have, is copied. Rows of a head beyond
 * rotary_dims keep their order. src and dst have the same type and dimensions, any type
 * and strided layout, and different buffers. */
NORM_API norm_status_t norm_rope_permute(norm_rope_pairing_t from, norm_rope_pairing_t to,
        norm_dim_t heads, norm_dim_t rotary_dims, const_norm_memory_t src, norm_memory_t dst);

#ifdef __cplusplus
}
#endif

#endif /* NORM_ROPE_H */
