/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_explain.h - the types of norm_explain() and norm_explain_remedies().
 * Programs include norm.h.
 */
#ifndef NORM_EXPLAIN_H
#define NORM_EXPLAIN_H

#include "norm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Warnings of norm_explain(); a bit mask. */
typedef enum {
    /* A row that is not all zeros has a ratio below 0.9: epsilon makes its
     * output smaller by a tenth or more. */
    norm_warning_epsilon_dominates = 0x01000000,
    /* Epsilon is 0 in the type of src, as 1e-8 is in f16. This library adds it
     * in f32 or f64; an implementation that adds it in that type divides a row
     * of zeros by 0. */
    norm_warning_epsilon_vanishes = 0x02000000,
    /* A square exceeds the largest value of src's type, as that of 300 does in
     * f16. This library is not affected. */
    norm_warning_squares_overflow = 0x04000000,
    norm_warning_zero_rows = 0x08000000,
    /* Src or scale has a NaN or an infinity. */
    norm_warning_not_finite = 0x10000000
} norm_explanation_warning_t;

/* What changes the size of an output. */
typedef enum {
    /* value: an epsilon, at most the given one, with a ratio of 0.99 at rms_in */
    norm_remedy_smaller_epsilon = 0x01000000,
    /* value: an epsilon that doubles the divisor, for outputs that are too large */
    norm_remedy_larger_epsilon = 0x01000001,
    /* value: 3 * rms_in, to which elements of src are clipped */
    norm_remedy_clip_src = 0x01000002,
    /* value: 1, added to scale, as for checkpoints that store scale - 1; 0 if it was
     * already added */
    norm_remedy_scale_plus_one = 0x01000003,
    /* value: 1 / ratio, a factor for the scale of the attention whose queries or
     * keys this output is; the output does not change */
    norm_remedy_temperature = 0x01000004,
    /* value: 1 / ratio, a factor for scale, folded into the stored weights */
    norm_remedy_fold_ratio = 0x01000005
} norm_remedy_kind_t;
#define NORM_REMEDIES 6

/* What norm_explain() finds. For several rows, the RMS of the input, of the
 * normalized values (ratio) and of the output are those of all elements. */
typedef struct {
    norm_dim_t rows, cols;    /* the rows explained, and their length */
    double epsilon;           /* as an f32 */
    double rms_in;            /* RMS of src; without norm_rms_norm, minus the row's mean */
    double divisor;           /* sqrt(rms_in^2 + epsilon) */
    double ratio;             /* RMS of the normalized values before scale; for one row
                               * rms_in / divisor */
    double smallest_ratio;    /* of the rows that are not all zeros; 0 if all are */
    norm_dim_t smallest_ratio_row;
    double scale_mean, scale_rms; /* 1 without scale; of 1 + scale with norm_scale_plus_one */
    double correlation;       /* Pearson's, of |scale| and |src| / RMS of its row; 0 if
                               * either is constant */
    double rms_out;           /* RMS of the output without shift */
    double amplification;     /* rms_out / rms_in; 0 if src is all zeros */
    unsigned warnings;        /* norm_explanation_warning_t */
} norm_explanation_t;

/* A remedy and its effect on the rows. */
typedef struct {
    norm_remedy_kind_t kind;
    double value;         /* see norm_remedy_kind_t */
    double ratio;         /* as in norm_explanation_t, with the remedy */
    double rms_out;
    double amplification; /* rms_out / rms_in of the rows without the remedy */
    double scores;        /* factor by which the remedy changes the scores of the
                           * attention whose queries or keys this output is */
} norm_remedy_t;

#ifdef __cplusplus
}
#endif

#endif /* NORM_EXPLAIN_H */
