/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Explanations: the measures compared with plain loops, every data type and layout, each
 * warning, the remedies compared with the library's own normalization of changed data, the
 * text, and refusals.
 */
#include "refused.h"
#include "tensor.h"

#include <math.h>

static norm_engine_t engine;

static int near(double a, double b, double share) {
    return fabs(a - b) <= share * (fabs(a) > fabs(b) ? fabs(a) : fabs(b));
}

/* The measures of one row by their definitions. */
static norm_explanation_t expected(const tensor_t *src, const tensor_t *scale, double epsilon,
        unsigned flags, size_t row) {
    norm_explanation_t e;
    memset(&e, 0, sizeof e);
    const double count = (double)src->cols;
    double mean = 0, squares = 0, out = 0, a = 0, w = 0, aw = 0, aa = 0, ww = 0, signed_w = 0;
    for (size_t i = 0; i < src->cols; ++i) mean += tensor_get(src, row, i) / count;
    if (flags & norm_rms_norm) mean = 0;
    for (size_t i = 0; i < src->cols; ++i) {
        const double x = tensor_get(src, row, i) - mean;
        double s = scale ? element_get(scale->type, scale->data, i * (size_t)scale->strides[0]) : 1;
        if (scale && flags & norm_scale_plus_one) s += 1;
        squares += x * x / count;
        out += x * s * x * s / count;
        a += fabs(x) / count, w += fabs(s) / count, signed_w += s / count;
        aa += x * x / count, ww += s * s / count, aw += fabs(x * s) / count;
    }
    e.rms_in = sqrt(squares);
    e.divisor = sqrt(squares + epsilon);
    e.ratio = e.divisor > 0 ? e.rms_in / e.divisor : 0;
    e.rms_out = e.divisor > 0 ? sqrt(out) / e.divisor : 0;
    e.amplification = e.rms_in > 0 ? e.rms_out / e.rms_in : 0;
    e.scale_mean = signed_w;
    e.scale_rms = sqrt(ww);
    e.correlation = (aw - a * w) / sqrt((aa - a * a) * (ww - w * w));
    return e;
}

static void each_row(norm_data_type_t type, norm_data_type_t scale_type, unsigned flags, int spread) {
    const norm_dims_t dims = {2, 3, 70}, strides = {3 * 150, 150, 2}, every_third = {3};
    uint64_t state = 5 + type;
    tensor_t src = tensor_make(type, 3, dims, spread ? strides : NULL, engine);
    tensor_t scale = tensor_make(scale_type, 1, dims + 2, spread ? every_third : NULL, engine);
    tensor_fill_random(&src, &state, -0.01, 0.02);
    tensor_fill_random(&scale, &state, -0.5, 2);
    double rms = 0, ratio = 0, out = 0, smallest = 1;
    for (int row = 0; row < 6; ++row) {
        norm_explanation_t found;
        const norm_explanation_t want = expected(&src, &scale, 1e-5f, flags, (size_t)row);
        MUST(norm_explain(src.memory, scale.memory, 1e-5f, flags, row, &found));
        snprintf(expect_case, sizeof expect_case, "%s flags %#x row %d", norm_dt2str(type), flags, row);
        EXPECT(found.rows == 1 && found.cols == 70 && found.epsilon == 1e-5f);
        EXPECT(near(found.rms_in, want.rms_in, 1e-12));
        EXPECT(near(found.divisor, want.divisor, 1e-12) && near(found.ratio, want.ratio, 1e-12));
        EXPECT(found.smallest_ratio == found.ratio && found.smallest_ratio_row == row);
        EXPECT(near(found.scale_mean, want.scale_mean, 1e-12));
        EXPECT(near(found.scale_rms, want.scale_rms, 1e-12));
        EXPECT(near(found.correlation, want.correlation, 1e-9));
        EXPECT(near(found.rms_out, want.rms_out, 1e-12));
        EXPECT(near(found.amplification, want.amplification, 1e-12));
        rms += found.rms_in * found.rms_in / 6, ratio += found.ratio * found.ratio / 6;
        out += found.rms_out * found.rms_out / 6;
        if (found.ratio < smallest) smallest = found.ratio;
    }
    norm_explanation_t all;
    MUST(norm_explain(src.memory, scale.memory, 1e-5f, flags, -1, &all));
    EXPECT(all.rows == 6 && near(all.rms_in, sqrt(rms), 1e-12) && near(all.ratio, sqrt(ratio), 1e-12));
    EXPECT(near(all.rms_out, sqrt(out), 1e-12) && all.smallest_ratio == smallest);
    EXPECT(near(all.amplification, all.rms_out / all.rms_in, 1e-12));
    EXPECT(near(all.divisor, sqrt(rms + (double)1e-5f), 1e-12));
    tensor_free(&src);
    tensor_free(&scale);
}

/* One row of 64 elements, all `x` except the first. */
static norm_explanation_t of_row(norm_data_type_t type, double x, double first, float epsilon) {
    const norm_dims_t dims = {1, 64};
    tensor_t src = tensor_make(type, 2, dims, NULL, engine);
    norm_explanation_t found;
    for (size_t i = 0; i < 64; ++i) tensor_set(&src, 0, i, i ? x : first);
    MUST(norm_explain(src.memory, NULL, epsilon, norm_rms_norm, -1, &found));
    tensor_free(&src);
    return found;
}

static void warnings(void) {
    const unsigned dominates = norm_warning_epsilon_dominates, vanishes = norm_warning_epsilon_vanishes;
    EXPECT(of_row(norm_f32, 1, 1, 1e-5f).warnings == 0);
    EXPECT(of_row(norm_f32, 0.005, 0.005, 1e-5f).warnings == dominates);
    EXPECT(of_row(norm_f32, 0.0066, 0.0066, 1e-5f).warnings == 0); /* ratio 0.902 */
    EXPECT(of_row(norm_f16, 1, 1, 1e-8f).warnings == vanishes);
    EXPECT(of_row(norm_f16, 1, 1, 6e-8f).warnings == 0);
    EXPECT(of_row(norm_bf16, 1, 1, 1e-8f).warnings == 0);
    EXPECT(of_row(norm_f32, 1, 1, 0).warnings == vanishes);
    EXPECT(of_row(norm_f16, 1, 300, 1e-5f).warnings == (unsigned)norm_warning_squares_overflow);
    EXPECT(of_row(norm_f16, 1, 250, 1e-5f).warnings == 0);
    EXPECT(of_row(norm_f32, 1, 1e20, 1e-5f).warnings == (unsigned)norm_warning_squares_overflow);
    EXPECT(of_row(norm_f32, 0, 0, 1e-5f).warnings == (unsigned)norm_warning_zero_rows);
    EXPECT(of_row(norm_f32, 1, NAN, 1e-5f).warnings & norm_warning_not_finite);
    EXPECT(of_row(norm_f32, 1, INFINITY, 1e-5f).warnings & norm_warning_not_finite);
    /* The measures of data whose squares overflow or underflow in f64. */
    const norm_explanation_t huge = of_row(norm_f64, 1e200, 1e200, 1e-5f);
    EXPECT(near(huge.rms_in, 1e200, 1e-12) && near(huge.rms_out, 1, 1e-12));
    const norm_explanation_t tiny = of_row(norm_f64, 1e-200, 1e-200, 0);
    EXPECT(near(tiny.rms_in, 1e-200, 1e-12) && near(tiny.ratio, 1, 1e-12));
    const norm_explanation_t zero = of_row(norm_f32, 0, 0, 0);
    EXPECT(zero.ratio == 0 && zero.rms_out == 0 && zero.amplification == 0);
    EXPECT(zero.scale_mean == 1 && zero.scale_rms == 1 && zero.correlation == 0);
}

static const norm_remedy_t *the(const norm_remedy_t *remedies, norm_remedy_kind_t kind) {
    for (int i = 0; i < NORM_REMEDIES; ++i)
        if (remedies[i].kind == kind) return &remedies[i];
    EXPECT(!"the kind is there");
    return remedies;
}

/* Each remedy, applied by hand, gives the measures that it announced. */
static void remedies(void) {
    const norm_dims_t dims = {4, 96};
    uint64_t state = 9;
    tensor_t src = tensor_make(norm_f64, 2, dims, NULL, engine);
    tensor_t scale = tensor_make(norm_f64, 1, dims + 1, NULL, engine);
    tensor_fill_random(&src, &state, -0.01, 0.01);
    tensor_fill_random(&scale, &state, 0, 0.1);
    for (size_t row = 0; row < 4; ++row) tensor_set(&src, row, 7, 0.1); /* to be clipped */
    const float epsilon = 1e-4f;
    const unsigned rms = norm_rms_norm;
    norm_explanation_t now, then;
    norm_remedy_t list[NORM_REMEDIES];
    MUST(norm_explain(src.memory, scale.memory, epsilon, rms, -1, &now));
    MUST(norm_explain_remedies(src.memory, scale.memory, epsilon, rms, -1, list));
    EXPECT(now.warnings == (unsigned)norm_warning_epsilon_dominates);

    const norm_remedy_t *r = the(list, norm_remedy_smaller_epsilon);
    MUST(norm_explain(src.memory, scale.memory, (float)r->value, rms, -1, &then));
    EXPECT(r->value < epsilon && near(then.ratio, 0.99, 1e-3) && near(r->ratio, then.ratio, 1e-6));
    EXPECT(near(r->rms_out, then.rms_out, 1e-6) && near(r->scores, then.rms_out / now.rms_out, 1e-6));
    r = the(list, norm_remedy_larger_epsilon);
    MUST(norm_explain(src.memory, scale.memory, (float)r->value, rms, -1, &then));
    EXPECT(near(then.divisor, 2 * now.divisor, 1e-6) && near(r->rms_out, then.rms_out, 1e-6));
    r = the(list, norm_remedy_temperature);
    EXPECT(near(r->value, 1 / now.ratio, 1e-12) && r->scores == r->value);
    EXPECT(r->rms_out == now.rms_out && r->ratio == now.ratio);
    r = the(list, norm_remedy_fold_ratio);
    for (size_t i = 0; i < 96; ++i) tensor_set(&scale, 0, i, tensor_get(&scale, 0, i) * r->value);
    MUST(norm_explain(src.memory, scale.memory, epsilon, rms, -1, &then));
    EXPECT(near(r->rms_out, then.rms_out, 1e-12) && near(r->scores, r->value, 1e-12));
    EXPECT(near(r->amplification, then.amplification, 1e-12));
    for (size_t i = 0; i < 96; ++i) tensor_set(&scale, 0, i, tensor_get(&scale, 0, i) / r->value);
    r = the(list, norm_remedy_scale_plus_one);
    MUST(norm_explain(src.memory, scale.memory, epsilon, rms | norm_scale_plus_one, -1, &then));
    EXPECT(r->value == 1 && near(r->rms_out, then.rms_out, 1e-9) && r->rms_out > 5 * now.rms_out);
    norm_remedy_t again[NORM_REMEDIES];
    MUST(norm_explain_remedies(src.memory, scale.memory, epsilon, rms | norm_scale_plus_one, -1, again));
    EXPECT(the(again, norm_remedy_scale_plus_one)->value == 0);
    EXPECT(the(again, norm_remedy_scale_plus_one)->scores == 1);
    r = the(list, norm_remedy_clip_src);
    EXPECT(near(r->value, 3 * now.rms_in, 1e-12) && r->value < 0.1);
    for (size_t row = 0; row < 4; ++row) tensor_set(&src, row, 7, r->value);
    MUST(norm_explain(src.memory, scale.memory, epsilon, rms, -1, &then));
    EXPECT(near(r->rms_out, then.rms_out, 1e-9) && near(r->ratio, then.ratio, 1e-9));
    EXPECT(near(r->amplification, then.rms_out / now.rms_in, 1e-9) && r->ratio < now.ratio);
    tensor_free(&src);
    tensor_free(&scale);
}

static void text(void) {
    const norm_explanation_t found = of_row(norm_f32, 0.005, 0.005, 1e-5f);
    norm_remedy_t list[NORM_REMEDIES];
    memset(list, 0, sizeof list);
    for (int i = 0; i < NORM_REMEDIES; ++i) list[i].kind = (norm_remedy_kind_t)(norm_remedy_smaller_epsilon + i);
    char whole[4096], part[64];
    const size_t size = norm_explanation_text(&found, NULL, whole, sizeof whole);
    EXPECT(size == strlen(whole) + 1 && size == norm_explanation_text(&found, NULL, NULL, 0));
    EXPECT(strstr(whole, "ratio          0.845154\n") != NULL);
    EXPECT(strstr(whole, "warnings       epsilon_dominates\n") != NULL);
    EXPECT(norm_explanation_text(&found, NULL, part, sizeof part) == size);
    EXPECT(strlen(part) == sizeof part - 1 && strncmp(part, whole, sizeof part - 1) == 0);
    EXPECT(norm_explanation_text(&found, list, whole, sizeof whole) > size);
    for (int i = 0; i < NORM_REMEDIES; ++i)
        EXPECT(strstr(whole, norm_remedy2str(list[i].kind)) != NULL);
    EXPECT(strcmp(norm_warning2str(norm_warning_squares_overflow), "squares_overflow") == 0);
    EXPECT(strcmp(norm_warning2str((norm_explanation_warning_t)3), "unknown warning") == 0);
    EXPECT(strcmp(norm_remedy2str((norm_remedy_kind_t)3), "unknown remedy") == 0);
    FAILS_WITH((size_t)0, "explanation", norm_explanation_text, (NULL, NULL, whole, sizeof whole));
    FAILS_WITH((size_t)0, "text", norm_explanation_text, (&found, NULL, NULL, 1));
    list[2].kind = (norm_remedy_kind_t)7;
    FAILS_WITH((size_t)0, "remedies", norm_explanation_text, (&found, list, whole, sizeof whole));
}

static void refusals(void) {
    const norm_dims_t dims = {2, 8}, none = {0, 8}, odd = {7};
    tensor_t src = tensor_make(norm_f32, 2, dims, NULL, engine);
    tensor_t empty = tensor_make(norm_f32, 2, none, NULL, engine);
    tensor_t bytes = tensor_make(norm_s8, 2, dims, NULL, engine);
    tensor_t scale = tensor_make(norm_f32, 1, odd, NULL, engine);
    norm_memory_t bare = NULL;
    MUST(norm_memory_create(&bare, src.desc, engine, NORM_MEMORY_NONE));
    norm_explanation_t found, kept;
    norm_remedy_t list[NORM_REMEDIES];
    memset(&found, 0x5a, sizeof found);
    kept = found;
    INVALID("src", norm_explain, (NULL, NULL, 1, 0, 0, &found));
    INVALID("src", norm_explain, (bare, NULL, 1, 0, 0, &found));
    INVALID("scale", norm_explain, (src.memory, scale.memory, 1, 0, 0, &found));
    INVALID("scale", norm_explain, (src.memory, src.memory, 1, 0, 0, &found));
    INVALID("epsilon", norm_explain, (src.memory, NULL, -1, 0, 0, &found));
    INVALID("epsilon", norm_explain, (src.memory, NULL, NAN, 0, 0, &found));
    INVALID("flags", norm_explain, (src.memory, NULL, 1, norm_use_scale, 0, &found));
    INVALID("row", norm_explain, (src.memory, NULL, 1, 0, 2, &found));
    INVALID("row", norm_explain, (src.memory, NULL, 1, 0, -2, &found));
    INVALID("row", norm_explain, (empty.memory, NULL, 1, 0, 0, &found));
    INVALID("explanation", norm_explain, (src.memory, NULL, 1, 0, 0, NULL));
    REFUSED(norm_unimplemented, "src", norm_explain, (bytes.memory, NULL, 1, 0, 0, &found));
    INVALID("src", norm_explain_remedies, (NULL, NULL, 1, 0, 0, list));
    INVALID("remedies", norm_explain_remedies, (src.memory, NULL, 1, 0, 0, NULL));
    EXPECT(memcmp(&found, &kept, sizeof found) == 0);
    MUST(norm_explain(empty.memory, NULL, 1, 0, -1, &found));
    EXPECT(found.rows == 0 && found.rms_in == 0 && found.warnings == 0);
    MUST(norm_explain_remedies(empty.memory, NULL, 1, 0, -1, list));
    MUST(norm_memory_destroy(bare));
    tensor_free(&src);
    tensor_free(&empty);
    tensor_free(&bytes);
    tensor_free(&scale);
}

static void machine_epsilons(void) {
    EXPECT(norm_data_type_epsilon(norm_f32) == 1.1920928955078125e-7);
    EXPECT(norm_data_type_epsilon(norm_bf16) == 0.0078125);
    EXPECT(norm_data_type_epsilon(norm_f16) == 0.0009765625);
    EXPECT(norm_data_type_epsilon(norm_f64) == 2.220446049250313e-16);
    EXPECT(norm_data_type_epsilon(norm_f8_e4m3) == 0.125);
    EXPECT(norm_data_type_epsilon(norm_f8_e5m2) == 0.25);
    EXPECT(norm_data_type_epsilon(norm_s8) == 0 && norm_data_type_epsilon(norm_e8m0) == 0);
    EXPECT(norm_data_type_epsilon((norm_data_type_t)999) == 0);
}

int main(void) {
    static const norm_data_type_t types[] = {norm_f32, norm_bf16, norm_f16, norm_f64};
    static const unsigned flags[] = {norm_rms_norm, 0, norm_rms_norm | norm_scale_plus_one};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    for (int type = 0; type < 4; ++type)
        for (int flag = 0; flag < 3; ++flag)
            for (int spread = 0; spread < 2; ++spread)
                each_row(types[type], types[(type + flag) % 4], flags[flag], spread);
    expect_case[0] = 0;
    warnings();
    remedies();
    text();
    refusals();
    machine_epsilons();
    MUST(norm_engine_destroy(engine));
    return expect_summary("explain");
}
