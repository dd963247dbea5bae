/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A layer normalization problem of the tests: its parameters (problem_spec_t) and the
 * objects to run it (problem_t). All arguments are always passed, so that tests see
 * that unused ones stay unchanged.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "tensor.h"

enum {
    LAYOUT_DENSE,    /* row-major */
    LAYOUT_PADDED,   /* the last dimension dense, gaps between the others */
    LAYOUT_REVERSED, /* the first dimension innermost */
    LAYOUT_SPREAD,   /* row-major with a gap after every element */
    LAYOUTS
};

/* The contents of src rows. */
enum {
    ROWS_RANDOM,    /* [-3, 5) */
    ROWS_HUGE,      /* about 1e20: squares overflow f32 */
    ROWS_TINY,      /* about 1e-30: squares vanish in f32 */
    ROWS_SUBNORMAL, /* below the smallest normal f32 */
    ROWS_CONSTANT,  /* all 3.7 */
    ROWS_OFFSET,    /* 1e6 + {-1, 0, 1, 1.25} */
    ROWS_ULPS,      /* 1 + k ulp of the type, k = 0 to 3 */
    ROWS_ZERO,
    ROWS_STEP,      /* the first 64 elements far from the others */
    ROWS_OUTLIER,   /* one element of the first 64 far from all others */
    ROWS_MIXED,     /* a different kind for each row */
    ROWS
};

typedef struct {
    int ndims;
    norm_dims_t dims;
    norm_prop_kind_t prop_kind;
    unsigned flags;
    float epsilon;
    norm_data_type_t src, dst; /* backward: dst is the type of diff_src */
    norm_data_type_t diff_dst;
    norm_data_type_t parameters, diff_parameters;
    int src_layout, dst_layout, stat_layout;
    int in_place, user_scratchpad;
    int implementation; /* number of norm_primitive_desc_next_impl calls */
    int rows; /* ROWS_* */
    uint64_t seed;
} problem_spec_t;

typedef struct {
    problem_spec_t spec;
    tensor_t src, dst, mean, variance, scale, shift;
    tensor_t diff_dst, diff_src, diff_scale, diff_shift, scratchpad;
    double *src_before, *diff_dst_before; /* rows x cols, copied before in-place runs */
    norm_primitive_desc_t primitive_desc;
    norm_primitive_t primitive;
    norm_exec_arg_t args[12];
    int nargs;
} problem_t;

static inline int problem_is_backward(const problem_spec_t *spec) {
    return spec->prop_kind == norm_backward || spec->prop_kind == norm_backward_data;
}

/* The strides of a layout, in elements. */
static inline void layout_strides(
        int layout, int ndims, const norm_dim_t *dims, norm_dim_t *strides) {
    norm_dim_t next = layout == LAYOUT_SPREAD ? 2 : 1;
    for (int k = 0; k < ndims; ++k) {
        const int i = layout == LAYOUT_REVERSED ? k : ndims - 1 - k;
        strides[i] = next;
        next *= dims[i] > 0 ? dims[i] : 1;
        if (layout == LAYOUT_PADDED) next += 3;
    }
}

static inline tensor_t problem_tensor(norm_data_type_t type, int ndims, const norm_dim_t *dims,
        int layout, norm_engine_t engine) {
    norm_dims_t strides;
    layout_strides(layout, ndims, dims, strides);
    return tensor_make(type, ndims, dims, strides, engine);
}

static inline norm_status_t problem_describe(norm_primitive_desc_t *out, const problem_t *p,
        norm_engine_t engine, const_norm_primitive_attr_t attr) {
    const problem_spec_t *s = &p->spec;
    const_norm_memory_desc_t stat = p->variance.desc;
    const int plain = s->parameters == norm_f32 && s->diff_parameters == norm_f32;
    if (!problem_is_backward(s))
        return plain ? norm_layer_normalization_forward_primitive_desc_create(out, engine,
                       s->prop_kind, p->src.desc, p->dst.desc, stat, s->epsilon, s->flags, attr)
                     : norm_layer_normalization_forward_primitive_desc_create_v2(out, engine,
                             s->prop_kind, p->src.desc, p->dst.desc, stat, s->parameters,
                             s->epsilon, s->flags, attr);
    return plain ? norm_layer_normalization_backward_primitive_desc_create(out, engine,
                   s->prop_kind, p->diff_src.desc, p->diff_dst.desc, p->src.desc, stat,
                   s->epsilon, s->flags, NULL, attr)
                 : norm_layer_normalization_backward_primitive_desc_create_v2(out, engine,
                         s->prop_kind, p->diff_src.desc, p->diff_dst.desc, p->src.desc, stat,
                         s->diff_parameters, s->parameters, s->epsilon, s->flags, NULL, attr);
}

static inline double *problem_copy(const tensor_t *t) {
    double *copy = malloc((t->rows * t->cols + 1) * sizeof *copy);
    for (size_t row = 0; row < t->rows; ++row)
        for (size_t col = 0; col < t->cols; ++col)
            copy[row * t->cols + col] = tensor_get(t, row, col);
    return copy;
}

static inline void problem_argument(problem_t *p, int id, const tensor_t *t) {
    p->args[p->nargs].arg = id;
    p->args[p->nargs++].memory = t->memory;
}

/* The next element of src. */
static inline double problem_src(
        const problem_spec_t *s, uint64_t *state, size_t row, size_t col) {
    static const double offsets[] = {-1, 0, 1, 1.25};
    const double wide = random_between(state, -3, 5);
    const unsigned pick = random_bits(state) % 4;
    switch (s->rows == ROWS_MIXED ? (int)(row % ROWS_MIXED) : s->rows) {
        case ROWS_HUGE: return wide * 1e20;
        case ROWS_TINY: return wide * 1e-30;
        case ROWS_SUBNORMAL: return wide * 1e-39;
        case ROWS_CONSTANT: return 3.7;
        case ROWS_OFFSET: return 1e6 + offsets[pick];
        case ROWS_ULPS: return 1 + pick * element_ulp(s->src, 1);
        case ROWS_ZERO: return 0;
        case ROWS_STEP: return col < 64 ? 100 + wide : wide;
        case ROWS_OUTLIER: return col == 5 ? 4000 : wide;
        default: return wide;
    }
}

/* Statistics as inputs: arbitrary for use_global_stats, otherwise those of src. */
static inline void problem_give_statistics(problem_t *p, uint64_t *state) {
    const size_t cols = p->src.cols;
    for (size_t row = 0; row < p->src.rows; ++row) {
        double mean = 0, squares = 0;
        for (size_t col = 0; col < cols; ++col) mean += tensor_get(&p->src, row, col);
        mean = p->spec.flags & norm_rms_norm ? 0 : mean / (double)cols;
        for (size_t col = 0; col < cols; ++col) {
            const double centred = tensor_get(&p->src, row, col) - mean;
            squares += centred * centred;
        }
        double variance = cols ? squares / (double)cols : 0;
        if (p->spec.flags & norm_use_global_stats) {
            mean = random_between(state, -1, 1);
            variance = random_between(state, 0.25, 4);
        }
        tensor_set(&p->mean, row / p->mean.cols, row % p->mean.cols, mean);
        tensor_set(&p->variance, row / p->variance.cols, row % p->variance.cols, variance);
    }
}

/* Creates all objects. Inputs are random; outputs have the fill pattern. Returns 0, without a
 * primitive, if there is no such implementation. */
static inline int problem_make(problem_t *p, const problem_spec_t *spec, norm_engine_t engine) {
    memset(p, 0, sizeof *p);
    p->spec = *spec;
    const problem_spec_t *s = &p->spec;
    uint64_t state = s->seed * 2654435761u + 1;
    const int n = s->ndims, backward = problem_is_backward(s);
    const norm_dim_t *cols = s->dims + n - 1;

    p->src = problem_tensor(s->src, n, s->dims, s->src_layout, engine);
    p->mean = problem_tensor(norm_f32, n - 1, s->dims, s->stat_layout, engine);
    p->variance = problem_tensor(norm_f32, n - 1, s->dims, s->stat_layout, engine);
    p->scale = tensor_make(s->parameters, 1, cols, NULL, engine);
    p->shift = tensor_make(s->parameters, 1, cols, NULL, engine);
    p->diff_scale = tensor_make(s->diff_parameters, 1, cols, NULL, engine);
    p->diff_shift = tensor_make(s->diff_parameters, 1, cols, NULL, engine);
    for (size_t row = 0; row < p->src.rows; ++row)
        for (size_t col = 0; col < p->src.cols; ++col)
            tensor_set(&p->src, row, col, problem_src(s, &state, row, col));
    tensor_fill_random(&p->scale, &state, 0.5, 2);
    tensor_fill_random(&p->shift, &state, -1, 1);
    p->src_before = problem_copy(&p->src);
    norm_dims_t strides;
    layout_strides(s->dst_layout, n, s->dims, strides);
    norm_memory_desc_t out_desc = NULL;
    MUST(norm_memory_desc_create_with_strides(&out_desc, n, s->dims, s->dst, strides));
    if (backward) {
        p->diff_dst = problem_tensor(s->diff_dst, n, s->dims, s->dst_layout, engine);
        tensor_fill_random(&p->diff_dst, &state, -1, 2);
        p->diff_dst_before = problem_copy(&p->diff_dst);
        p->diff_src = tensor_of_desc(out_desc, engine, s->in_place ? p->diff_dst.data : NULL);
    } else {
        p->dst = tensor_of_desc(out_desc, engine, s->in_place ? p->src.data : NULL);
    }
    if (backward || s->flags & norm_use_global_stats) problem_give_statistics(p, &state);

    norm_primitive_attr_t attr = NULL;
    if (s->user_scratchpad) {
        MUST(norm_primitive_attr_create(&attr));
        MUST(norm_primitive_attr_set_scratchpad_mode(attr, norm_scratchpad_mode_user));
    }
    MUST(problem_describe(&p->primitive_desc, p, engine, attr));
    MUST(norm_primitive_attr_destroy(attr));
    int there = 1;
    for (int i = 0; i < s->implementation && there; ++i) {
        const norm_status_t status = norm_primitive_desc_next_impl(p->primitive_desc);
        EXPECT(status == norm_success || status == norm_last_impl_reached);
        there = status == norm_success;
    }
    if (there) MUST(norm_primitive_create(&p->primitive, p->primitive_desc));

    problem_argument(p, NORM_ARG_SRC, &p->src);
    problem_argument(p, NORM_ARG_MEAN, &p->mean);
    problem_argument(p, NORM_ARG_VARIANCE, &p->variance);
    problem_argument(p, NORM_ARG_SCALE, &p->scale);
    problem_argument(p, NORM_ARG_SHIFT, &p->shift);
    problem_argument(p, NORM_ARG_DIFF_SCALE, &p->diff_scale);
    problem_argument(p, NORM_ARG_DIFF_SHIFT, &p->diff_shift);
    if (backward) {
        problem_argument(p, NORM_ARG_DIFF_DST, &p->diff_dst);
        problem_argument(p, NORM_ARG_DIFF_SRC, &p->diff_src);
    } else {
        problem_argument(p, NORM_ARG_DST, &p->dst);
    }
    const_norm_memory_desc_t scratchpad
            = norm_primitive_desc_query_md(p->primitive_desc, norm_query_scratchpad_md, 0);
    if (norm_memory_desc_get_size(scratchpad) > 0) {
        EXPECT(s->user_scratchpad);
        p->scratchpad = tensor_like(scratchpad, engine);
        problem_argument(p, NORM_ARG_SCRATCHPAD, &p->scratchpad);
    }
    return there;
}

static inline norm_status_t problem_execute(const problem_t *p, norm_stream_t stream) {
    return norm_primitive_execute(p->primitive, stream, p->nargs, p->args);
}

static inline void problem_free(problem_t *p) {
    tensor_t *tensors[] = {&p->src, &p->dst, &p->mean, &p->variance, &p->scale, &p->shift,
            &p->diff_dst, &p->diff_src, &p->diff_scale, &p->diff_shift, &p->scratchpad};
    MUST(norm_primitive_destroy(p->primitive));
    MUST(norm_primitive_desc_destroy(p->primitive_desc));
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; ++i) tensor_free(tensors[i]);
    free(p->src_before);
    free(p->diff_dst_before);
    memset(p, 0, sizeof *p);
}

/* Whether two runs of equal problems gave the same bits in every output. NaNs do not occur. Tensors
 * that are not outputs are equal by construction. */
static inline int problem_same_bits(const problem_t *a, const problem_t *b) {
    const tensor_t *left[] = {&a->dst, &a->diff_src, &a->mean, &a->variance, &a->diff_scale,
            &a->diff_shift};
    const tensor_t *right[] = {&b->dst, &b->diff_src, &b->mean, &b->variance, &b->diff_scale,
            &b->diff_shift};
    for (int i = 0; i < 6; ++i)
        if ((left[i]->desc != NULL || right[i]->desc != NULL)
                && !tensor_same_bits(left[i], right[i]))
            return 0;
    return 1;
}

/* Names the case for messages. */
static inline void problem_name(const problem_spec_t *s, const char *level) {
    int used = snprintf(expect_case, sizeof expect_case, "%s %s flags=%s%s%s%s %s:%s:%s ss=%s:%s "
            "layout=%d:%d:%d eps=%g inplace=%d scratchpad=%d impl=%d rows=%d seed=%lu ",
            level, norm_prop_kind2str(s->prop_kind), s->flags & norm_use_global_stats ? "G" : "",
            s->flags & norm_use_scale ? "C" : "", s->flags & norm_use_shift ? "H" : "",
            s->flags & norm_rms_norm ? "M" : "", norm_dt2str(s->src), norm_dt2str(s->dst),
            norm_dt2str(s->diff_dst), norm_dt2str(s->parameters),
            norm_dt2str(s->diff_parameters), s->src_layout, s->dst_layout, s->stat_layout,
            (double)s->epsilon, s->in_place, s->user_scratchpad, s->implementation, s->rows,
            (unsigned long)s->seed);
    for (int i = 0; i < s->ndims; ++i)
        used += snprintf(expect_case + used, sizeof expect_case - (size_t)used, "%s%ld",
                i ? "x" : "", (long)s->dims[i]);
}

#endif
