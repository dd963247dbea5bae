/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_normalization.h - layer and RMS normalization, group
 * normalization and the explanation of their outputs. Programs include norm.h.
 */
#ifndef NORM_NORMALIZATION_H
#define NORM_NORMALIZATION_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Layer normalization and RMS normalization                                */
/* ------------------------------------------------------------------------ */

/* Normalizes over the last logical dimension, which has C elements. The other
 * dimensions together hold N rows. For each row x:
 *
 *   layer norm   mean     = sum(x) / C
 *                variance = sum((x - mean)^2) / C             (population)
 *                dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
 *   rms_norm     variance = sum(x^2) / C
 *                dst      = x / sqrt(variance + epsilon) * scale + shift
 *
 * Formulas: Ba, Kiros and Hinton 2016 (layer norm); Zhang and Sennrich 2019 (RMS
 * norm).
 *
 * Arithmetic is f32 with f64 sums, and the result is rounded once, to the type of
 * dst. If src or dst is f64, all arithmetic is f64, and a narrower dst is rounded
 * from the f64 result, f8 via f32. A row whose squares overflow or underflow in f32
 * is computed in f64; its variance saturates to +Inf. If variance + epsilon = 0, the
 * factor 1/sqrt is 0.
 *
 * A row's result depends only on the row, the data types, the flags and the
 * attributes. It does not depend on the instruction set, the threads, the batch,
 * the row's position in the batch, the layout or the alignment.
 *
 * prop_kind     norm_forward_training or norm_forward_inference
 * src_desc      2 to 5 dimensions; f32, bf16, f16, f64, s8, u8, f8_e4m3 or
 *               f8_e5m2; any layout but "any"
 * dst_desc      the dimensions of src; one of the same types; any layout. "any"
 *               means the layout of src. s8 and u8 round to nearest even and
 *               saturate, and NaN becomes 0. On overflow f8_e5m2 becomes an
 *               infinity, and f8_e4m3, which has none, becomes NaN
 * stat_desc     mean and variance: f32, the dimensions of src without the last.
 *               NULL, an empty descriptor or "any" selects the dimension order
 *               of src
 * epsilon       added to the variance under the root; finite and not negative
 * flags         bitwise or of norm_normalization_flags_t
 * attr          may be NULL. Supported unless dst is f64: a residual, a gate, a
 *               partial norm, dynamic scales of DST, one scale for SRC, one for
 *               DST, and eltwise, binary and sum post-operations. The
 *               normalized value is multiplied by the scale of SRC, passed
 *               through the post-operations in order, multiplied by the
 *               reciprocal of the scale of DST, all in f32, and then rounded.
 *               The data type of a sum must have the size of dst's. A binary
 *               operand may be dst itself, in the same layout: it is read before
 *               it is written
 *
 * Execution arguments (in: read, out: written, -: ignored)
 *                          SRC DST MEAN VARIANCE SCALE SHIFT
 *   inference               in out  -     -       if use_scale, if use_shift: in
 *   training                in out out   out      likewise
 *   use_global_stats        in out in    in       likewise
 *   rms_norm                as above, MEAN always -
 * SCALE and SHIFT are dense 1D tensors of C elements, f32 (or the type passed to
 * _v2). SRC and DST may share a buffer if their types and layouts are the same.
 * The attributes that oneDNN does not have add, in: RESIDUAL and GATE; out:
 * RESIDUAL_DST if the sum is stored, and ATTR_SCALES | DST and ATTR_ZERO_POINTS |
 * DST if they are dynamic. */
NORM_API norm_status_t norm_layer_normalization_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t stat_desc,
        float epsilon, unsigned flags, const_norm_primitive_attr_t attr);
/* The same with scale and shift in f32, bf16 or f16. */
NORM_API norm_status_t norm_layer_normalization_forward_primitive_desc_create_v2(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t stat_desc,
        norm_data_type_t scale_shift_data_type, float epsilon, unsigned flags,
        const_norm_primitive_attr_t attr);

/* The gradient. With r = 1/sqrt(variance + epsilon), d = scale*diff_dst (diff_dst
 * without use_scale) and xhat = (src - mean)*r (rms_norm: src*r), for each row:
 *
 *   layer norm         diff_src = r*(d - sum(d)/C - xhat*sum(d*xhat)/C)
 *   rms_norm           diff_src = r*(d - xhat*sum(d*xhat)/C)
 *   use_global_stats   diff_src = r*d
 *   over all rows      diff_scale = sum(diff_dst*xhat), diff_shift = sum(diff_dst)
 *
 * The rms_norm gradient has no sum(d) term, because rms_norm subtracts no mean.
 * (oneDNN keeps that term; see docs/onednn.md.) diff_scale and diff_shift depend
 * only on the rows and their order.
 *
 * A row whose variance is +Inf, subnormal or 0 has its statistics recomputed from
 * src, unless use_global_stats is set. If a tensor is f64, all arithmetic is f64
 * and every row's statistics are recomputed, because f32 statistics would leave an
 * error of 2^-24 of the mean in src - mean. MEAN and VARIANCE are still arguments.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src only. The
 *                latter still reads scale with use_scale (frozen parameters)
 * diff_src_desc  f32, bf16, f16 or f64; any layout. "any" means the layout of src
 * diff_dst_desc  likewise
 * src_desc       f32, bf16, f16 or f64; any layout. "any" means the layout of
 *                diff_dst, or dense row-major if that is also "any"
 * stat_desc, epsilon, flags   as forward
 * attr           may be NULL. A residual, a gate and a partial norm; no scales, no
 *                post-operations
 * hint_fwd_pd    may be NULL; otherwise a forward layer normalization with the same
 *                dimensions, flags, epsilon, residual, gate and partial norm, and of kind
 *                norm_forward_training unless use_global_stats is set. The types of
 *                residual, sum and gate are compared, not their layouts. (A library
 *                with oneDNN's names compares the attributes and the flags from
 *                bit 24 on)
 *
 * Execution arguments: in SRC, DIFF_DST, VARIANCE, MEAN (without rms_norm), SCALE
 * (with use_scale); out DIFF_SRC and, for norm_backward, DIFF_SCALE (with
 * use_scale) and DIFF_SHIFT (with use_shift). DIFF_DST and DIFF_SRC may share a
 * buffer if their types and layouts are the same. If N = 0, DIFF_SCALE and
 * DIFF_SHIFT are set to zero. The attributes that oneDNN does not have add, in:
 * DIFF_RESIDUAL_DST, GATE, and SHIFT for an output gate with use_shift; out:
 * DIFF_GATE. */
NORM_API norm_status_t norm_layer_normalization_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t stat_desc,
        float epsilon, unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);
/* The same with scale and shift, and with their gradients, in f32, bf16 or
 * f16. The two types may differ. */
NORM_API norm_status_t norm_layer_normalization_backward_primitive_desc_create_v2(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t stat_desc,
        norm_data_type_t diff_scale_shift_data_type,
        norm_data_type_t scale_shift_data_type, float epsilon, unsigned flags,
        const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Explanation of outputs                                                   */
/* ------------------------------------------------------------------------ */

/* Why is an output so small, or so large? Measures the rows of src, whose last
 * dimension is normalized:
 *
 *   ratio         = rms / sqrt(rms^2 + epsilon), the RMS of the normalized
 *                   values. Epsilon matters if rms^2 is near it: with epsilon
 *                   1e-5 an rms of 0.1 gives 0.9995, one of 0.005 gives 0.845
 *   rms_out       = sqrt(sum((src * scale)^2) / C) / sqrt(rms^2 + epsilon). It
 *                   is ratio * RMS of scale if |scale| does not depend on |src|,
 *                   and larger if scale is large where src is (correlation)
 *   amplification = rms_out / rms_in
 *
 *   src      f32, bf16, f16 or f64, any layout
 *   scale    one of these types, one dimension of C elements; NULL for none
 *   epsilon  that of the normalization, finite and not negative
 *   flags    norm_rms_norm, without which the mean of each row is subtracted
 *            first; norm_scale_plus_one
 *   row      0 to the number of rows - 1; -1 for all rows
 *
 * Without rows or elements the measures are 0. The arithmetic is f64 and runs on
 * the calling thread: this is a diagnostic tool. */
NORM_API norm_status_t norm_explain(const_norm_memory_t src, const_norm_memory_t scale,
        float epsilon, unsigned flags, norm_dim_t row, norm_explanation_t *explanation);
/* Writes NORM_REMEDIES remedies, in the order of norm_remedy_kind_t, each with
 * its effect on the same rows. */
NORM_API norm_status_t norm_explain_remedies(const_norm_memory_t src,
        const_norm_memory_t scale, float epsilon, unsigned flags, norm_dim_t row,
        norm_remedy_t *remedies);
/* Writes an explanation as lines of text, with the remedies unless `remedies` is
 * NULL. Writes at most `size` bytes to `text`, including a terminating NUL; `text`
 * may be NULL if `size` is 0. Returns the number of bytes that the whole text needs,
 * including the NUL, or 0 on failure. */
NORM_API size_t norm_explanation_text(const norm_explanation_t *explanation,
        const norm_remedy_t *remedies, char *text, size_t size);
/* The names without their prefix ("epsilon_dominates", "clip_src"); "unknown
 * warning" and "unknown remedy" for other values. Never NULL. */
NORM_API const char *norm_warning2str(norm_explanation_warning_t warning);
/* The same for remedies. */
NORM_API const char *norm_remedy2str(norm_remedy_kind_t kind);

/* ------------------------------------------------------------------------ */
/* Group normalization                                                      */
/* ------------------------------------------------------------------------ */

/* Group normalization of a tensor with N samples, C channels and any positions. The
 * channels are divided into G groups of C/G neighbours. For each group x of a
 * sample, with M elements:
 *
 *   mean = sum(x)/M, variance = sum((x - mean)^2)/M
 *   rms_norm: no mean, variance = sum(x^2)/M
 *   dst = (x - mean)/sqrt(variance + epsilon) * scale + shift
 *
 * with a scale and a shift for each channel. rms_norm is an extension: oneDNN
 * refuses it here. The bits of a group depend only on its values, the data types,
 * flags and attributes. A group whose squares overflow or underflow in f32 is
 * computed in f64; a variance beyond f32 is stored as +Inf.
 *
 * prop_kind      norm_forward_training, which stores MEAN and VARIANCE, or
 *                norm_forward_inference
 * src_desc       N x C [x D] [x H] [x W]: 2 to 5 dimensions; f32, bf16, f16, f64, s8,
 *                u8, f8_e5m2 or f8_e4m3; any layout but "any". Channels first and
 *                channels last are fast
 * dst_desc       the same dimensions, any of these types, any layout or "any" (as src)
 * groups         1 to C, a divisor of C
 * epsilon        0 or more, added to the variance
 * flags          norm_normalization_flags_t, combined with |
 * attr           may be NULL. A residual, a gate and a partial norm; one scale for SRC;
 *                one scale or dynamic scales for DST; eltwise, binary and sum
 *                post-operations, as for layer normalization. None if dst is f64
 *
 * Execution arguments (in: read, out: written, -: ignored)
 *                          SRC DST MEAN VARIANCE SCALE SHIFT
 *   inference               in out  -     -       if use_scale, if use_shift: in
 *   training                in out out   out      likewise
 *   use_global_stats        in out in    in       likewise
 *   rms_norm                as above, MEAN always -
 * MEAN and VARIANCE are dense N x G tensors, SCALE and SHIFT dense 1D tensors of C
 * elements, all f32. SRC and DST may share a buffer if their types and layouts are
 * the same. The attributes that oneDNN does not have add, in: RESIDUAL and GATE; out:
 * RESIDUAL_DST, and ATTR_SCALES and ATTR_ZERO_POINTS of DST if they are dynamic. */
NORM_API norm_status_t norm_group_normalization_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, norm_dim_t groups, float epsilon,
        unsigned flags, const_norm_primitive_attr_t attr);

/* The gradient. With r = 1/sqrt(variance + epsilon), d = scale*diff_dst (diff_dst
 * without use_scale) and xhat = (src - mean)*r (rms_norm: src*r), for each group of
 * M elements:
 *
 *   group norm         diff_src = r*(d - sum(d)/M - xhat*sum(d*xhat)/M)
 *   rms_norm           diff_src = r*(d - xhat*sum(d*xhat)/M)
 *   use_global_stats   diff_src = r*d
 *   for each channel   diff_scale = sum(diff_dst*xhat), diff_shift = sum(diff_dst)
 *
 * over all samples and positions. A group whose variance is +Inf, subnormal or 0 has
 * its statistics recomputed from src, unless use_global_stats is set. If a tensor is
 * f64, all arithmetic is f64 and the statistics of every group are recomputed.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src only
 * diff_src_desc  f32, bf16, f16 or f64; any layout. "any" means the layout of src
 * diff_dst_desc  likewise
 * src_desc       f32, bf16, f16 or f64; any layout. "any" means the layout of
 *                diff_dst, or dense row-major if that is also "any"
 * groups, epsilon, flags   as forward
 * attr           may be NULL. A residual, a gate and a partial norm; no scales, no
 *                post-operations
 * hint_fwd_pd    may be NULL; otherwise a forward group normalization with the same
 *                groups, and what layer normalization compares
 *
 * Execution arguments: in SRC, DIFF_DST, VARIANCE, MEAN (without rms_norm), SCALE
 * (with use_scale); out DIFF_SRC and, for norm_backward, DIFF_SCALE (with
 * use_scale) and DIFF_SHIFT (with use_shift). DIFF_DST and DIFF_SRC may share a
 * buffer if their types and layouts are the same. The attributes that oneDNN does
 * not have add, in: DIFF_RESIDUAL_DST, GATE, and SHIFT for an output gate with
 * use_shift; out: DIFF_GATE. */
NORM_API norm_status_t norm_group_normalization_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, norm_dim_t groups, float epsilon,
        unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

#ifdef __cplusplus
}
#endif

#endif /* NORM_NORMALIZATION_H */
