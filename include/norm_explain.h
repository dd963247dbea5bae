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

/* Warnings of norm_explain(), as bits. */
typedef enum {
    /* A row, not of zeros, has a ratio below 0.9: epsilon makes its output
     * smaller by a tenth or more. */
    norm_warning_epsilon_dominates = 0x01000000,
    /* Epsilon is 0 in the type of src, as 1e-8 is in f16. This library adds it
     * in f32 or f64; an implementation that adds it in that type divides a row
     * of zeros by 0. */
    norm_warning_epsilon_vanishes = 0x02000000,
    /* A square exceeds the largest number of the type of src, as that of 300
     * does in f16. This library is not affected. */
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
    /* value: elements of src beyond 3 * rms_in are limited to it */
    norm_remedy_clip_src = 0x01000002,
    /* value: 1 is added to scale, as for checkpoints that store scale - 1; 0 if it
     * was added already */
    norm_remedy_scale_plus_one = 0x01000003,
    /* value: 1 / ratio, a factor of the scale of attention whose queries or keys
     * this output is; the output stays */
    norm_remedy_temperature = 0x01000004,
    /* value: 1 / ratio, a factor of scale, folded into the stored weights */
    norm_remedy_fold_ratio = 0x01000005
} norm_remedy_kind_t;
#define NORM_REMEDIES 6

/* What norm_explain() finds. Over several rows the three RMS, those of the
 * input, of the normalized values (ratio) and of the output, are of all their
 * elements. */
typedef struct {
    norm_dim_t rows, cols;    /* the rows explained, and their length */
    double epsilon;           /* as an f32 */
    double rms_in;            /* RMS of src, less the row's mean without norm_rms_norm */
    double divisor;           /* sqrt(rms_in^2 + epsilon) */
    double ratio;             /* RMS of the normalized values before scale; of one row
                               * rms_in / divisor */
    double smallest_ratio;    /* of a row that has more than zeros; 0 if none has */
    norm_dim_t smallest_ratio_row;
    double scale_mean, scale_rms; /* 1 without scale; with norm_scale_plus_one of 1 + scale */
    double correlation;       /* Pearson's, of |scale| and |src| / RMS of its row; 0 if one
                               * of them is constant */
    double rms_out;           /* RMS of the output without shift */
    double amplification;     /* rms_out / rms_in; 0 for zeros */
    unsigned warnings;        /* norm_explanation_warning_t */
} norm_explanation_t;

/* A remedy and its effect on the rows. */
typedef struct {
    norm_remedy_kind_t kind;
    double value;         /* see norm_remedy_kind_t */
    double ratio;         /* as in norm_explanation_t, with the remedy */
    double rms_out;
    double amplification; /* rms_out / rms_in of the rows without the remedy */
    double scores;        /* factor by which the remedy changes the scores of attention
                           * whose queries or keys this output is */
} norm_remedy_t;

#ifdef __cplusplus
}
#endif

#endif /* NORM_EXPLAIN_H */
