/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Backward with a hint: a forward descriptor of another problem is refused, because
 * the gradients would be those of neither. Layer and group normalization.
 */
#include "refused.h"

enum { ROWS = 4, COLS = 8 };

static norm_engine_t engine;
static norm_memory_desc_t rows, half;

typedef struct {
    norm_prop_kind_t kind;
    float epsilon;
    unsigned flags;
    /* RESIDUAL and what differs from f32 tensors, or 0. */
    int residual;
    norm_residual_rounding_t rounding;
    /* 0 for none, else alpha. */
    float gate;
    int gate_is_half;
    norm_dim_t partial;
} problem_t;

enum { RESIDUAL = 1, HALF_RESIDUAL = 2, HALF_SUM = 4, NO_SUM = 8 };

static const problem_t plain = {norm_forward_training, 1e-5f, norm_rms_norm, 0,
        norm_residual_rounded, 0, 0, 0};

static norm_memory_desc_t sum_of(const problem_t *p) {
    if (p->residual & NO_SUM) return NULL;
    return p->residual & HALF_SUM ? half : rows;
}

static norm_primitive_attr_t attributes(const problem_t *p) {
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    if (p->residual)
        MUST(norm_primitive_attr_set_residual(
                attr, p->residual & HALF_RESIDUAL ? half : rows, sum_of(p), p->rounding));
    if (p->gate != 0)
        MUST(norm_primitive_attr_set_gate(
                attr, p->gate_is_half ? half : rows, norm_eltwise_swish, p->gate));
    MUST(norm_primitive_attr_set_partial_norm(attr, p->partial));
    return attr;
}

/* The status of backward for `second` with a hint for `first`, by layer or group
 * normalization. */
static norm_status_t backward(const problem_t *first, const problem_t *second, int groups) {
    norm_primitive_attr_t theirs = attributes(first), ours = attributes(second);
    norm_primitive_desc_t hint = NULL, pd = UNTOUCHED;
    norm_status_t status;
    if (groups) {
        MUST(norm_group_normalization_forward_primitive_desc_create(&hint, engine, first->kind,
                rows, rows, groups, first->epsilon, first->flags, theirs));
        status = norm_group_normalization_backward_primitive_desc_create(&pd, engine,
                norm_backward, rows, rows, rows, groups, second->epsilon, second->flags, hint,
                ours);
    } else {
        MUST(norm_layer_normalization_forward_primitive_desc_create(&hint, engine, first->kind,
                rows, rows, NULL, first->epsilon, first->flags, theirs));
        status = norm_layer_normalization_backward_primitive_desc_create(&pd, engine,
                norm_backward, rows, rows, rows, NULL, second->epsilon, second->flags, hint,
                ours);
    }
    EXPECT((pd == UNTOUCHED) == (status != norm_success));
    if (status == norm_success) MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_desc_destroy(hint));
    MUST(norm_primitive_attr_destroy(theirs));
    MUST(norm_primitive_attr_destroy(ours));
    return status;
}

/* Refused with a sentence that contains `words`, in both directions of the mistake. */
static void differ(problem_t first, problem_t second, const char *words, const char *reverse) {
    for (int groups = 0; groups <= 2; groups += 2) {
        snprintf(expect_case, sizeof expect_case, "%s, %d groups", words, groups);
        EXPECT(backward(&first, &first, groups) == norm_success);
        EXPECT(backward(&second, &second, groups) == norm_success);
        EXPECT(backward(&first, &second, groups) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), words) != NULL);
        EXPECT(backward(&second, &first, groups) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), reverse) != NULL);
    }
}

static void other_problems_are_refused(void) {
    problem_t other = plain;
    other.residual = 1;
    differ(other, plain, "created with a residual", "created without a residual");
    other = plain;
    other.partial = 4;
    problem_t third = plain;
    third.partial = 2;
    differ(other, plain, "created with a partial norm", "created without a partial norm");
    differ(other, third, "of 2 elements, but hint_fwd_pd was created with 4",
            "of 4 elements, but hint_fwd_pd was created with 2");
    other = plain;
    other.epsilon = 0.5f;
    differ(other, plain, "epsilon: 0.00001, but hint_fwd_pd was created with 0.5",
            "epsilon: 0.5, but hint_fwd_pd was created with 0.00001");
    other = plain;
    other.flags |= norm_gate_output;
    other.gate = 1;
    third = other;
    third.gate = 2;
    differ(other, third, "the gate's function", "the gate's function");
    third = other;
    third.gate_is_half = 1;
    differ(other, third, "the gate is bf16, but hint_fwd_pd was created with f32",
            "the gate is f32, but hint_fwd_pd was created with bf16");
}

/* Backward reads the sum that forward stored, and statistics of what forward
 * normalized. */
static void other_residuals_are_refused(void) {
    problem_t other = plain, third = plain;
    other.residual = RESIDUAL;
    third.residual = RESIDUAL | HALF_RESIDUAL;
    differ(other, third, "the residual is bf16, but hint_fwd_pd was created with f32",
            "the residual is f32, but hint_fwd_pd was created with bf16");
    third = other;
    third.rounding = norm_residual_exact;
    differ(other, third, "a residual that is exact, but hint_fwd_pd was created with rounded",
            "a residual that is rounded, but hint_fwd_pd was created with exact");
    for (int groups = 0; groups <= 2; groups += 2) {
        /* As src of backward, the sum is f32. */
        third.residual = RESIDUAL | HALF_SUM;
        EXPECT(backward(&third, &other, groups) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(),
                       "the sum is f32, but hint_fwd_pd was created with bf16")
                != NULL);
        third.residual = RESIDUAL | NO_SUM;
        EXPECT(backward(&third, &other, groups) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(),
                       "the sum is f32, but hint_fwd_pd was created with none")
                != NULL);
    }
}

/* Inference stores no statistics. Statistics that both directions get are allowed. */
static void inference_is_refused(void) {
    problem_t inference = plain;
    inference.kind = norm_forward_inference;
    for (int groups = 0; groups <= 2; groups += 2) {
        EXPECT(backward(&inference, &plain, groups) == norm_invalid_arguments);
        EXPECT(strstr(norm_get_last_error(), "create it with forward_training") != NULL);
        problem_t given = inference, training = plain;
        given.flags |= norm_use_global_stats;
        training.flags |= norm_use_global_stats;
        EXPECT(backward(&given, &training, groups) == norm_success);
    }
}

static void other_dimensions_are_refused(void) {
    const norm_dim_t dims[] = {COLS, ROWS};
    norm_memory_desc_t other = NULL;
    norm_primitive_desc_t hint = NULL, pd = UNTOUCHED;
    MUST(norm_memory_desc_create_with_tag(&other, 2, dims, norm_f32, norm_ab));
    MUST(norm_layer_normalization_forward_primitive_desc_create(&hint, engine,
            norm_forward_training, other, other, NULL, 1e-5f, 0, NULL));
    INVALID("src_desc", norm_layer_normalization_backward_primitive_desc_create,
            (&pd, engine, norm_backward, rows, rows, rows, NULL, 1e-5f, 0, hint, NULL));
    EXPECT(strstr(norm_get_last_error(), "[4, 8], but hint_fwd_pd was created for [8, 4]"));
    EXPECT(pd == UNTOUCHED);
    MUST(norm_primitive_desc_destroy(hint));
    MUST(norm_memory_desc_destroy(other));
}

int main(void) {
    const norm_dim_t dims[] = {ROWS, COLS};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_memory_desc_create_with_tag(&rows, 2, dims, norm_f32, norm_ab));
    MUST(norm_memory_desc_create_with_tag(&half, 2, dims, norm_bf16, norm_ab));
    other_problems_are_refused();
    other_residuals_are_refused();
    inference_is_refused();
    other_dimensions_are_refused();
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(half));
    MUST(norm_engine_destroy(engine));
    return expect_summary("hints");
}
