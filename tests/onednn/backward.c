/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Backward: every flag, both kinds, types, layouts, in place. The gradient with
 * rms_norm is compared with this program's own formula, because oneDNN's differs. If
 * sum(scale*diff_dst) is 0 in every row, both agree.
 */
#include "problem.h"

static struct data data;

/* Whether diff_src is the derivative. */
static int is_right(const struct tensor *diff_src, unsigned flags) {
    const int cols = (int)diff_src->dims[diff_src->ndims - 1];
    const int rows = diff_src->count / cols;
    float got[MAX_ELEMENTS];
    double worst = 0;
    read_values(diff_src, got);
    for (int i = 0; i < rows; ++i) {
        const double mean = flags & 32 ? 0 : data.mean[i];
        const double r = 1 / sqrt(data.variance[i] + data.epsilon);
        const float *src = data.src + i * cols, *diff_dst = data.diff_dst + i * cols;
        double sum = 0, sum_x = 0;
        for (int c = 0; c < cols; ++c) {
            const double d = diff_dst[c] * (flags & 2 ? data.scale[c] : 1);
            if (!(flags & 1)) sum_x += d * (src[c] - mean) * r / cols;
            if (!(flags & 33)) sum += d / cols;
        }
        for (int c = 0; c < cols; ++c) {
            const double d = diff_dst[c] * (flags & 2 ? data.scale[c] : 1);
            const double want = r * (d - sum - (src[c] - mean) * r * sum_x);
            const double error = fabs(got[i * cols + c] - want);
            if (!(error <= worst)) worst = error;
        }
    }
    return worst < 1e-4;
}

/* The parameters of a problem. The descriptors are consumed. */
struct problem {
    dnnl_memory_desc_t src, diff_src, diff_dst, stat;
    dnnl_prop_kind_t prop_kind;
    unsigned flags;
    int in_place;
};

/* Executes one problem and prints its results. Where the libraries differ for a known reason,
 * prints whether diff_src is right instead. */
static void backward(const char *known, const char *name, struct problem p, int digits) {
    const unsigned flags = p.flags;
    dnnl_primitive_desc_t hint = NULL, problem;
    dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(&hint,
            engine, dnnl_forward_training, p.src, p.src, p.stat, data.epsilon, flags, NULL);
    if (status == dnnl_success)
        status = dnnl_layer_normalization_backward_primitive_desc_create(&problem, engine,
                p.prop_kind, p.diff_src, p.diff_dst, p.src, p.stat, data.epsilon, flags,
                hint, NULL);
    if (!known)
        STATUS(name, status);
    else if (status != dnnl_success)
        printf("* %s: %s: %s\n", known, name, dnnl_status2str(status));
    if (status == dnnl_success) {
        struct tensor t_src = argument(problem, DNNL_ARG_SRC);
        struct tensor t_diff_dst = argument(problem, DNNL_ARG_DIFF_DST);
        struct tensor t_diff_src = t_diff_dst;
        struct tensor t_variance = argument(problem, DNNL_ARG_VARIANCE), t_mean;
        struct tensor t_scale, t_diff_scale, t_diff_shift;
        const int weights = p.prop_kind == dnnl_backward;
        dnnl_exec_arg_t args[MAX_ARGS];
        int count = 0;
        fill(&t_src, data.src);
        add(args, &count, DNNL_ARG_SRC, &t_src);
        fill(&t_diff_dst, data.diff_dst);
        add(args, &count, DNNL_ARG_DIFF_DST, &t_diff_dst);
        if (!p.in_place) t_diff_src = argument(problem, DNNL_ARG_DIFF_SRC);
        add(args, &count, DNNL_ARG_DIFF_SRC, &t_diff_src);
        fill(&t_variance, data.variance);
        add(args, &count, DNNL_ARG_VARIANCE, &t_variance);
        if (!(flags & 32)) {
            t_mean = argument(problem, DNNL_ARG_MEAN);
            fill(&t_mean, data.mean);
            add(args, &count, DNNL_ARG_MEAN, &t_mean);
        }
        if (flags & 2) {
            t_scale = argument(problem, DNNL_ARG_SCALE);
            fill(&t_scale, data.scale);
            add(args, &count, DNNL_ARG_SCALE, &t_scale);
        }
        if (weights && flags & 2) {
            t_diff_scale = argument(problem, DNNL_ARG_DIFF_SCALE);
            add(args, &count, DNNL_ARG_DIFF_SCALE, &t_diff_scale);
        }
        if (weights && flags & 4) {
            t_diff_shift = argument(problem, DNNL_ARG_DIFF_SHIFT);
            add(args, &count, DNNL_ARG_DIFF_SHIFT, &t_diff_shift);
        }
        run(problem, count, args);
        if (!known)
            print_tensor("  diff_src", &t_diff_src, digits);
        else
            printf("* %s: %s: %s\n", known, name, is_right(&t_diff_src, flags) ? "right" : "wrong");
        if (weights && flags & 2) print_tensor("  diff_scale", &t_diff_scale, digits);
        if (weights && flags & 4) print_tensor("  diff_shift", &t_diff_shift, digits);
        for (int i = 0; i < count; ++i)
            if (!p.in_place || args[i].arg != DNNL_ARG_DIFF_SRC)
                OK(dnnl_memory_destroy(args[i].memory));
        OK(dnnl_primitive_desc_destroy(problem));
    }
    OK(dnnl_primitive_desc_destroy(hint));
    OK(dnnl_memory_desc_destroy(p.src));
    OK(dnnl_memory_desc_destroy(p.diff_src));
    OK(dnnl_memory_desc_destroy(p.diff_dst));
    OK(dnnl_memory_desc_destroy(p.stat));
}

static struct problem of_two_dims(const dnnl_dims_t dims, dnnl_data_type_t src,
        dnnl_data_type_t diff, dnnl_prop_kind_t prop_kind, unsigned flags) {
    const struct problem p = {with_tag(2, dims, src, dnnl_ab), with_tag(2, dims, diff, dnnl_ab),
            with_tag(2, dims, diff, dnnl_ab), with_tag(1, dims, dnnl_f32, dnnl_a), prop_kind,
            flags, 0};
    return p;
}

static void flags_and_kinds(void) {
    const dnnl_dims_t dims = {4, 8};
    for (int general = 0; general < 2; ++general)
        for (int all = 0; all < 2; ++all)
            for (int f = 0; f < FLAGS; ++f)
                for (int in_place = 0; in_place < 2; ++in_place) {
                    const unsigned flags = every_flags[f].flags;
                    /* oneDNN requires weights to have gradients. */
                    const char *known = !all && flags & 6 ? "frozen weights"
                            : (flags & 33) == 32          ? "rms_norm gradient"
                                                          : NULL;
                    char name[80];
                    snprintf(name, sizeof name, "%s %s flags %s%s",
                            general ? "general" : "exact",
                            all ? "backward" : "backward_data", every_flags[f].name,
                            in_place ? " in place" : "");
                    if (general)
                        general_data(&data, 4, 8, 3);
                    else
                        exact_data(&data, 4, 8, flags & 32);
                    struct problem p = of_two_dims(dims, dnnl_f32, dnnl_f32,
                            all ? dnnl_backward : dnnl_backward_data, flags);
                    p.in_place = in_place;
                    backward(known, name, p, general ? 3 : 6);
                }
}

/* Gradients for which subtracting the mean makes no difference. */
static void rms_norm_without_a_mean(void) {
    const dnnl_dims_t dims = {4, 8};
    exact_data(&data, 4, 8, 1);
    for (int i = 0; i < 32; ++i)
        data.diff_dst[i] = (float)((i % 4 < 2 ? 1 : -1) * (1 + i / 4));
    for (int c = 0; c < 8; ++c)
        data.scale[c] = 0.5f;
    backward(NULL, "rms_norm, sums of 0",
            of_two_dims(dims, dnnl_f32, dnnl_f32, dnnl_backward, 38), 6);
}

static void types(void) {
    static const dnnl_data_type_t float_types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};
    const dnnl_dims_t dims = {3, 16};
    exact_data(&data, 3, 16, 0);
    for (int s = 0; s < 3; ++s)
        for (int d = 0; d < 3; ++d) {
            char name[80];
            snprintf(name, sizeof name, "src %s, diff %s", dnnl_dt2str(float_types[s]),
                    dnnl_dt2str(float_types[d]));
            backward(s == 2 || d == 2 ? "f16" : NULL, name,
                    of_two_dims(dims, float_types[s], float_types[d], dnnl_backward, 0), 6);
        }
}

static void layouts(void) {
    static const struct {
        int ndims;
        dnnl_format_tag_t src, diff_src, diff_dst, stat;
    } cases[] = {{3, dnnl_abc, dnnl_abc, dnnl_abc, dnnl_ab},
            {3, dnnl_ntc, dnnl_ntc, dnnl_ntc, dnnl_nt},
            {3, dnnl_abc, dnnl_format_tag_any, dnnl_format_tag_any, dnnl_format_tag_any},
            {3, dnnl_ntc, dnnl_format_tag_any, dnnl_format_tag_any, dnnl_tn},
            {4, dnnl_abcd, dnnl_abcd, dnnl_abcd, dnnl_abc},
            {5, dnnl_abcde, dnnl_abcde, dnnl_abcde, dnnl_abcd}};
    const dnnl_dims_t dims[] = {{2, 3, 8}, {2, 1, 3, 8}, {2, 1, 2, 2, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const int n = cases[i].ndims;
        char name[100];
        snprintf(name, sizeof name, "layouts src %s diff_src %s diff_dst %s stat %s",
                dnnl_fmt_tag2str(cases[i].src), dnnl_fmt_tag2str(cases[i].diff_src),
                dnnl_fmt_tag2str(cases[i].diff_dst), dnnl_fmt_tag2str(cases[i].stat));
        exact_data(&data, 8, 8, 0);
        const struct problem p = {with_tag(n, dims[n - 3], dnnl_f32, cases[i].src),
                with_tag(n, dims[n - 3], dnnl_f32, cases[i].diff_src),
                with_tag(n, dims[n - 3], dnnl_f32, cases[i].diff_dst),
                with_tag(n - 1, dims[n - 3], dnnl_f32, cases[i].stat), dnnl_backward, 6, 0};
        backward(NULL, name, p, 6);
    }
}

/* No rows: the gradients of the weights are zero. */
static void nothing(void) {
    const dnnl_dims_t dims = {0, 8};
    exact_data(&data, 1, 8, 0);
    backward(NULL, "shape 0x8", of_two_dims(dims, dnnl_f32, dnnl_f32, dnnl_backward, 6), 6);
}

int main(void) {
    begin();
    flags_and_kinds();
    rms_norm_without_a_mean();
    types();
    layouts();
    nothing();
    end();
    return 0;
}
