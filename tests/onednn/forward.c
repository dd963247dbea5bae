/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Forward: every flag, inference and training, types, numbers of dimensions, layouts,
 * in place.
 */
#include "problem.h"

static struct data data;

/* Whether dst matches the formula, in the order of the logical indices. */
static int is_right(const struct tensor *dst, unsigned flags) {
    const int cols = (int)dst->dims[dst->ndims - 1], rows = dst->count / cols;
    float got[MAX_ELEMENTS];
    double worst = 0;
    read_values(dst, got);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            const double x = (data.src[r * cols + c] - data.mean[r])
                    / sqrt(data.variance[r] + data.epsilon);
            const double want = x * (flags & 2 ? data.scale[c] : 1)
                    + (flags & 4 ? data.shift[c] : 0);
            /* Not greater, or NaN. */
            const double error = fabs(got[r * cols + c] - want);
            if (!(error <= worst)) worst = error;
        }
    return worst < 1e-5;
}

/* Executes one problem and prints its results. Where the libraries differ for a known reason,
 * prints whether they are right instead. Consumes the descriptors. */
static void forward(const char *known, const char *name, dnnl_prop_kind_t prop_kind, dnnl_memory_desc_t src,
        dnnl_memory_desc_t dst, dnnl_memory_desc_t stat, unsigned flags, int in_place,
        int digits) {
    dnnl_primitive_desc_t problem;
    const dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(
            &problem, engine, prop_kind, src, dst, stat, data.epsilon, flags, NULL);
    if (!known)
        STATUS(name, status);
    else if (status != dnnl_success)
        printf("* %s: %s: %s\n", known, name, dnnl_status2str(status));
    if (status == dnnl_success) {
        const int has_stats = flags & 1 || prop_kind == dnnl_forward_training;
        struct tensor t_src = argument(problem, DNNL_ARG_SRC), t_dst = t_src;
        struct tensor t_mean, t_variance, t_scale, t_shift;
        dnnl_exec_arg_t args[MAX_ARGS];
        int count = 0;
        fill(&t_src, data.src);
        add(args, &count, DNNL_ARG_SRC, &t_src);
        if (!in_place) t_dst = argument(problem, DNNL_ARG_DST);
        add(args, &count, DNNL_ARG_DST, &t_dst);
        if (has_stats) {
            t_variance = argument(problem, DNNL_ARG_VARIANCE);
            if (flags & 1) fill(&t_variance, data.variance);
            add(args, &count, DNNL_ARG_VARIANCE, &t_variance);
        }
        if (has_stats && !(flags & 32)) {
            t_mean = argument(problem, DNNL_ARG_MEAN);
            if (flags & 1) fill(&t_mean, data.mean);
            add(args, &count, DNNL_ARG_MEAN, &t_mean);
        }
        if (flags & 2) {
            t_scale = argument(problem, DNNL_ARG_SCALE);
            fill(&t_scale, data.scale);
            add(args, &count, DNNL_ARG_SCALE, &t_scale);
        }
        if (flags & 4) {
            t_shift = argument(problem, DNNL_ARG_SHIFT);
            fill(&t_shift, data.shift);
            add(args, &count, DNNL_ARG_SHIFT, &t_shift);
        }
        run(problem, count, args);
        if (!known) {
            print_tensor("  dst", &t_dst, digits);
            if (has_stats) print_tensor("  variance", &t_variance, digits);
            if (has_stats && !(flags & 32)) print_tensor("  mean", &t_mean, digits);
        } else {
            printf("* %s: %s: %s\n", known, name, is_right(&t_dst, flags) ? "right" : "wrong");
        }
        for (int i = 0; i < count; ++i)
            if (!in_place || args[i].arg != DNNL_ARG_DST)
                OK(dnnl_memory_destroy(args[i].memory));
        OK(dnnl_primitive_desc_destroy(problem));
    }
    OK(dnnl_memory_desc_destroy(src));
    OK(dnnl_memory_desc_destroy(dst));
    OK(dnnl_memory_desc_destroy(stat));
}

static void flags_and_kinds(void) {
    const dnnl_dims_t dims = {4, 8};
    for (int general = 0; general < 2; ++general)
        for (int training = 0; training < 2; ++training)
            for (int f = 0; f < FLAGS; ++f)
                for (int in_place = 0; in_place < 2; ++in_place) {
                    char name[80];
                    snprintf(name, sizeof name, "%s %s flags %s%s",
                            general ? "general" : "exact",
                            training ? "training" : "inference", every_flags[f].name,
                            in_place ? " in place" : "");
                    if (general)
                        general_data(&data, 4, 8, 2);
                    else
                        exact_data(&data, 4, 8, every_flags[f].flags & 32);
                    forward(NULL, name, training ? dnnl_forward_training : dnnl_forward_inference,
                            with_tag(2, dims, dnnl_f32, dnnl_ab),
                            with_tag(2, dims, dnnl_f32, dnnl_ab),
                            with_tag(1, dims, dnnl_f32, dnnl_a), every_flags[f].flags,
                            in_place, general ? 3 : 6);
                }
}

static void types(void) {
    static const dnnl_data_type_t float_types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};
    const dnnl_dims_t dims = {3, 16};
    exact_data(&data, 3, 16, 0);
    for (int s = 0; s < 3; ++s)
        for (int d = 0; d < 3; ++d) {
            char name[80];
            snprintf(name, sizeof name, "%s to %s", dnnl_dt2str(float_types[s]),
                    dnnl_dt2str(float_types[d]));
            /* oneDNN supports f16 only on CPUs with f16 arithmetic. */
            forward(s == 2 || d == 2 ? "f16" : NULL, name, dnnl_forward_training,
                    with_tag(2, dims, float_types[s], dnnl_ab),
                    with_tag(2, dims, float_types[d], dnnl_ab),
                    with_tag(1, dims, dnnl_f32, dnnl_a), 6, 0, 6);
        }
}

static void layouts(void) {
    static const struct {
        int ndims;
        dnnl_format_tag_t src, dst, stat;
    } cases[] = {{2, dnnl_ab, dnnl_ba, dnnl_a}, {2, dnnl_ba, dnnl_ab, dnnl_a},
            {3, dnnl_abc, dnnl_abc, dnnl_ab}, {3, dnnl_tnc, dnnl_tnc, dnnl_tn},
            {3, dnnl_ntc, dnnl_ntc, dnnl_nt}, {3, dnnl_ntc, dnnl_tnc, dnnl_tn},
            {3, dnnl_abc, dnnl_abc, dnnl_ba}, {3, dnnl_acb, dnnl_abc, dnnl_ab},
            {3, dnnl_abc, dnnl_format_tag_any, dnnl_format_tag_any},
            {3, dnnl_bac, dnnl_format_tag_any, dnnl_ab},
            {4, dnnl_abcd, dnnl_abcd, dnnl_abc}, {4, dnnl_ldnc, dnnl_abcd, dnnl_acb},
            {4, dnnl_acdb, dnnl_acdb, dnnl_abc},
            {5, dnnl_abcde, dnnl_abcde, dnnl_abcd},
            {5, dnnl_abcde, dnnl_acdeb, dnnl_abcd}};
    const dnnl_dims_t dims[] = {{4, 8}, {2, 3, 8}, {2, 1, 3, 8}, {2, 1, 2, 2, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const int n = cases[i].ndims;
        char name[80];
        snprintf(name, sizeof name, "layouts src %s dst %s stat %s",
                dnnl_fmt_tag2str(cases[i].src), dnnl_fmt_tag2str(cases[i].dst),
                dnnl_fmt_tag2str(cases[i].stat));
        exact_data(&data, 8, 8, 0);
        /* oneDNN writes such a dst in the layout of src. */
        forward(cases[i].dst == dnnl_ba ? "last dim of dst not dense" : NULL, name, dnnl_forward_training,
                with_tag(n, dims[n - 2], dnnl_f32, cases[i].src),
                with_tag(n, dims[n - 2], dnnl_f32, cases[i].dst),
                with_tag(n - 1, dims[n - 2], dnnl_f32, cases[i].stat), 6, 0, 6);
    }
    /* Rows with a gap after each: oneDNN ignores the gap. */
    const dnnl_dims_t strides = {36, 12, 1};
    dnnl_memory_desc_t src, dst;
    OK(dnnl_memory_desc_create_with_strides(&src, 3, dims[1], dnnl_f32, strides));
    OK(dnnl_memory_desc_clone(&dst, src));
    forward("rows apart", "strides", dnnl_forward_training, src, dst,
            with_tag(2, dims[1], dnnl_f32, dnnl_ab), 6, 0, 6);
    OK(dnnl_memory_desc_create_with_strides(&src, 3, dims[1], dnnl_f32, strides));
    OK(dnnl_memory_desc_clone(&dst, src));
    forward("rows apart", "strides in place", dnnl_forward_inference, src, dst,
            with_tag(2, dims[1], dnnl_f32, dnnl_ab), 2, 1, 6);
}

/* No rows, one row, one column. */
static void small(void) {
    static const dnnl_dims_t shapes[] = {{1, 8}, {0, 8}, {5, 1}};
    for (int i = 0; i < 3; ++i) {
        char name[80];
        snprintf(name, sizeof name, "shape %dx%d", (int)shapes[i][0], (int)shapes[i][1]);
        exact_data(&data, 8, 8, 0);
        data.epsilon = 1;
        forward(NULL, name, dnnl_forward_training, with_tag(2, shapes[i], dnnl_f32, dnnl_ab),
                with_tag(2, shapes[i], dnnl_f32, dnnl_ab),
                with_tag(1, shapes[i], dnnl_f32, dnnl_a), 6, 0, 4);
    }
}

int main(void) {
    begin();
    flags_and_kinds();
    types();
    layouts();
    small();
    end();
    return 0;
}
