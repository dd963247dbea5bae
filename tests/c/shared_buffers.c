/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Inputs and outputs in one buffer: every pair that docs/programming-model.md allows, in every
 * implementation, with several types and layouts. The outputs have the same bits as with a buffer
 * each. Also pairs that are refused.
 */
#include "tensor.h"

static norm_engine_t engine;
static norm_stream_t stream;
static const float epsilon = 1e-3f;

enum { INPUTS = 12, OUTPUTS = 5, PAIRS = 9 };

/* Lists of argument ids end with 0. A pair is an input and the output that overwrites it. */
typedef struct {
    const char *name;
    int inputs[INPUTS], outputs[OUTPUTS], pairs[PAIRS][2];
} case_t;

typedef struct {
    tensor_t inputs[INPUTS], outputs[OUTPUTS];
} tensors_t;

/* The second size of each problem occupies several threads. */
static int sizes_of(int layout) {
    return layout == 0 ? 2 : 1;
}

static norm_memory_desc_t desc_of(
        norm_data_type_t type, int ndims, const norm_dim_t *dims, int layout) {
    norm_memory_desc_t desc = NULL;
    norm_dims_t strides;
    norm_dim_t step = 1;
    /* 0: dense; 1: the first dimension has gaps; 2: the last dimension is outermost. */
    for (int i = ndims - 1; i >= 0; --i) {
        if (layout == 1 && i == 0) step += 5;
        strides[i] = step;
        step *= dims[i];
    }
    if (layout == 2) {
        step = 1;
        for (int i = ndims - 2; i >= 0; --i) {
            strides[i] = step;
            step *= dims[i];
        }
        strides[ndims - 1] = step;
    }
    MUST(norm_memory_desc_create_with_strides(&desc, ndims, dims, type, strides));
    return desc;
}

/* An argument of the problem with the values that belong to its id. */
static tensor_t argument(norm_primitive_desc_t pd, int id) {
    const_norm_memory_desc_t desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, id);
    EXPECT(desc != NULL);
    tensor_t t = tensor_like(desc, engine);
    uint64_t state = 1000u + (unsigned)id;
    const int positive = id == NORM_ARG_VARIANCE || id == NORM_ARG_POSITIONS;
    tensor_fill_random(&t, &state, positive ? 0.5 : -2, 2);
    return t;
}

static int place(const int *list, int id) {
    int i = 0;
    while (list[i] != 0 && list[i] != id) ++i;
    return i;
}

/* Executes on new tensors; `pair` may be NULL. */
static norm_status_t execute(const case_t *c, norm_primitive_desc_t pd,
        norm_primitive_t primitive, const int *pair, tensors_t *t) {
    norm_exec_arg_t args[INPUTS + OUTPUTS];
    int count = 0;
    for (int i = 0; c->inputs[i] != 0; ++i) {
        t->inputs[i] = argument(pd, c->inputs[i]);
        args[count].arg = c->inputs[i];
        args[count++].memory = t->inputs[i].memory;
    }
    for (int i = 0; c->outputs[i] != 0; ++i) {
        t->outputs[i] = argument(pd, c->outputs[i]);
        if (pair != NULL && c->outputs[i] == pair[1]) {
            const int in = place(c->inputs, pair[0]), out = place(c->outputs, pair[0]);
            const int is_input = c->inputs[in] != 0;
            void *data = is_input ? t->inputs[in].data : t->outputs[out].data;
            MUST(norm_memory_set_data_handle(t->outputs[i].memory, data));
            t->outputs[i].data = data;
        }
        args[count].arg = c->outputs[i];
        args[count++].memory = t->outputs[i].memory;
    }
    return norm_primitive_execute(primitive, stream, count, args);
}

static void tensors_free(const case_t *c, tensors_t *t) {
    for (int i = 0; c->inputs[i] != 0; ++i) tensor_free(&t->inputs[i]);
    for (int i = 0; c->outputs[i] != 0; ++i) tensor_free(&t->outputs[i]);
}

static void compare_pairs(const case_t *c, norm_primitive_desc_t pd) {
    const char *implementation = NULL;
    norm_primitive_t primitive = NULL;
    tensors_t apart, shared;
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, (void *)&implementation));
    MUST(execute(c, pd, primitive, NULL, &apart));
    for (int p = 0; c->pairs[p][0] != 0; ++p) {
        snprintf(expect_case, sizeof expect_case, "%s, %s, %d overwrites %d", c->name,
                implementation, c->pairs[p][1], c->pairs[p][0]);
        EXPECT(execute(c, pd, primitive, c->pairs[p], &shared) == norm_success);
        for (int i = 0; c->outputs[i] != 0; ++i)
            EXPECT(tensor_same_bits(&apart.outputs[i], &shared.outputs[i]));
        tensors_free(c, &shared);
    }
    tensors_free(c, &apart);
    MUST(norm_primitive_destroy(primitive));
}

/* Takes ownership of the primitive descriptor. */
static void every_implementation(const case_t *c, norm_primitive_desc_t pd) {
    do compare_pairs(c, pd);
    while (norm_primitive_desc_next_impl(pd) == norm_success);
    MUST(norm_primitive_desc_destroy(pd));
}

/* The pair is norm_invalid_arguments with this sentence. */
static void refuse(const case_t *c, norm_primitive_desc_t pd, int input, int output,
        const char *sentence) {
    const int pair[] = {input, output};
    norm_primitive_t primitive = NULL;
    tensors_t t;
    snprintf(expect_case, sizeof expect_case, "%s: %s", c->name, sentence);
    MUST(norm_primitive_create(&primitive, pd));
    EXPECT(execute(c, pd, primitive, pair, &t) == norm_invalid_arguments);
    EXPECT(strstr(norm_get_last_error(), sentence) != NULL);
    tensors_free(c, &t);
    MUST(norm_primitive_destroy(primitive));
}

/* ------------------------------------------------------------------------ */

static const case_t around_forward = {"norm",
        {NORM_ARG_SRC, NORM_ARG_RESIDUAL, NORM_ARG_GATE, NORM_ARG_SCALE},
        {NORM_ARG_DST, NORM_ARG_RESIDUAL_DST, NORM_ARG_VARIANCE},
        {{NORM_ARG_SRC, NORM_ARG_DST}, {NORM_ARG_RESIDUAL, NORM_ARG_DST},
                {NORM_ARG_GATE, NORM_ARG_DST}, {NORM_ARG_SRC, NORM_ARG_RESIDUAL_DST},
                {NORM_ARG_RESIDUAL, NORM_ARG_RESIDUAL_DST}}};

static const case_t around_gradient = {"gradient of norm",
        {NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_RESIDUAL_DST, NORM_ARG_GATE,
                NORM_ARG_SCALE, NORM_ARG_VARIANCE},
        {NORM_ARG_DIFF_SRC, NORM_ARG_DIFF_GATE, NORM_ARG_DIFF_SCALE},
        {{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC},
                {NORM_ARG_DIFF_RESIDUAL_DST, NORM_ARG_DIFF_SRC},
                {NORM_ARG_GATE, NORM_ARG_DIFF_GATE}}};

static norm_primitive_desc_t norm_of(int groups, int backward, norm_memory_desc_t rows,
        norm_memory_desc_t residual, norm_residual_rounding_t rounding, unsigned flags) {
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    flags |= norm_rms_norm | norm_use_scale;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_residual(attr, residual, rows, rounding));
    MUST(norm_primitive_attr_set_gate(attr, rows, norm_eltwise_swish, 1));
    if (groups == 0 && !backward)
        MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
                norm_forward_training, rows, rows, NULL, epsilon, flags, attr));
    else if (groups == 0)
        MUST(norm_layer_normalization_backward_primitive_desc_create(&pd, engine, norm_backward,
                rows, rows, rows, NULL, epsilon, flags, NULL, attr));
    else if (!backward)
        MUST(norm_group_normalization_forward_primitive_desc_create(&pd, engine,
                norm_forward_training, rows, rows, groups, epsilon, flags, attr));
    else
        MUST(norm_group_normalization_backward_primitive_desc_create(&pd, engine, norm_backward,
                rows, rows, rows, groups, epsilon, flags, NULL, attr));
    MUST(norm_primitive_attr_destroy(attr));
    return pd;
}

static void norms(norm_data_type_t type, int layout) {
    const norm_dim_t sizes[][3] = {{3, 8, 21}, {4, 64, 200}};
    for (int i = 0; i < sizes_of(layout); ++i) {
        norm_memory_desc_t rows = desc_of(type, 3, sizes[i], layout);
        for (int k = 0; k < 8; k += i == 0 ? 1 : 3) {
            const unsigned gate = k & 1 ? norm_gate_input : norm_gate_output;
            const norm_residual_rounding_t rounding
                    = k & 2 ? norm_residual_exact : norm_residual_rounded;
            const int groups = k & 4;
            every_implementation(
                    &around_forward, norm_of(groups, 0, rows, rows, rounding, gate));
            every_implementation(
                    &around_gradient, norm_of(groups, 1, rows, rows, rounding, gate));
        }
        MUST(norm_memory_desc_destroy(rows));
    }
}

/* The gradient of the sum in another type than diff_src. */
static void refused_gradient(norm_memory_desc_t rows, norm_memory_desc_t half) {
    static const case_t of_residual = {"gradient of residual",
            {NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_RESIDUAL_DST, NORM_ARG_VARIANCE},
            {NORM_ARG_DIFF_SRC}, {{0}}};
    norm_primitive_attr_t attr = NULL;
    norm_primitive_desc_t pd = NULL;
    MUST(norm_primitive_attr_create(&attr));
    MUST(norm_primitive_attr_set_residual(attr, rows, rows, norm_residual_rounded));
    MUST(norm_layer_normalization_backward_primitive_desc_create(&pd, engine, norm_backward, half,
            rows, rows, NULL, epsilon, norm_rms_norm, NULL, attr));
    refuse(&of_residual, pd, NORM_ARG_DIFF_RESIDUAL_DST, NORM_ARG_DIFF_SRC,
            "DIFF_RESIDUAL_DST and DIFF_SRC share a buffer, but differ in data type or layout");
    MUST(norm_primitive_desc_destroy(pd));
    MUST(norm_primitive_attr_destroy(attr));
}

static void refused_norms(void) {
    const norm_dim_t dims[] = {2, 8, 16};
    norm_memory_desc_t rows = desc_of(norm_f32, 3, dims, 0), other = desc_of(norm_f32, 3, dims, 2);
    norm_memory_desc_t half = desc_of(norm_bf16, 3, dims, 0);
    for (int groups = 0; groups <= 4; groups += 4) {
        norm_primitive_desc_t pd
                = norm_of(groups, 0, rows, rows, norm_residual_exact, norm_gate_output);
        refuse(&around_forward, pd, NORM_ARG_DST, NORM_ARG_RESIDUAL_DST,
                "DST and RESIDUAL_DST are outputs and share a buffer");
        refuse(&around_forward, pd, NORM_ARG_GATE, NORM_ARG_RESIDUAL_DST,
                "GATE and RESIDUAL_DST share a buffer, but the gate is read after");
        MUST(norm_primitive_desc_destroy(pd));
        for (int i = 0; i < 2; ++i) {
            pd = norm_of(groups, 0, rows, i ? half : other, norm_residual_exact, norm_gate_output);
            refuse(&around_forward, pd, NORM_ARG_RESIDUAL, NORM_ARG_DST,
                    "share a buffer, but differ in data type or layout");
            refuse(&around_forward, pd, NORM_ARG_RESIDUAL, NORM_ARG_RESIDUAL_DST,
                    "share a buffer, but differ in data type or layout");
            MUST(norm_primitive_desc_destroy(pd));
        }
        pd = norm_of(groups, 1, rows, rows, norm_residual_exact, norm_gate_output);
        refuse(&around_gradient, pd, NORM_ARG_DIFF_SRC, NORM_ARG_DIFF_GATE,
                "DIFF_SRC and DIFF_GATE are outputs and share a buffer");
        MUST(norm_primitive_desc_destroy(pd));
    }
    refused_gradient(rows, half);
    MUST(norm_memory_desc_destroy(rows));
    MUST(norm_memory_desc_destroy(other));
    MUST(norm_memory_desc_destroy(half));
}

/* ------------------------------------------------------------------------ */

static const case_t unary = {
        "src to dst", {NORM_ARG_SRC}, {NORM_ARG_DST}, {{NORM_ARG_SRC, NORM_ARG_DST}}};
static const case_t from_src = {"gradient from src", {NORM_ARG_SRC, NORM_ARG_DIFF_DST},
        {NORM_ARG_DIFF_SRC},
        {{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC}, {NORM_ARG_SRC, NORM_ARG_DIFF_SRC}}};
static const case_t from_dst = {"gradient from dst", {NORM_ARG_DST, NORM_ARG_DIFF_DST},
        {NORM_ARG_DIFF_SRC},
        {{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC}, {NORM_ARG_DST, NORM_ARG_DIFF_SRC}}};
static const case_t two_sources = {"two sources", {NORM_ARG_SRC, NORM_ARG_SRC_1}, {NORM_ARG_DST},
        {{NORM_ARG_SRC, NORM_ARG_DST}, {NORM_ARG_SRC_1, NORM_ARG_DST}}};
static const case_t gated_gradient = {"gradient of gated",
        {NORM_ARG_SRC, NORM_ARG_SRC_1, NORM_ARG_DIFF_DST},
        {NORM_ARG_DIFF_SRC, NORM_ARG_DIFF_SRC_1, NORM_ARG_DST},
        {{NORM_ARG_SRC, NORM_ARG_DIFF_SRC}, {NORM_ARG_SRC_1, NORM_ARG_DIFF_SRC},
                {NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC}, {NORM_ARG_SRC, NORM_ARG_DIFF_SRC_1},
                {NORM_ARG_SRC_1, NORM_ARG_DIFF_SRC_1}, {NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC_1},
                {NORM_ARG_SRC, NORM_ARG_DST}, {NORM_ARG_DIFF_DST, NORM_ARG_DST}}};

static void elementwise_and_rows(norm_data_type_t type, int layout) {
    const norm_dim_t sizes[][2] = {{6, 83}, {130, 400}};
    for (int i = 0; i < sizes_of(layout); ++i) {
        norm_memory_desc_t x = desc_of(type, 2, sizes[i], layout);
        norm_primitive_desc_t pd = NULL;
        MUST(norm_softmax_forward_primitive_desc_create(&pd, engine, norm_forward_training,
                norm_softmax_accurate, x, x, 1, NULL));
        every_implementation(&unary, pd);
        MUST(norm_softmax_backward_primitive_desc_create(
                &pd, engine, norm_softmax_accurate, x, x, x, 1, NULL, NULL));
        every_implementation(&from_dst, pd);
        MUST(norm_eltwise_forward_primitive_desc_create(
                &pd, engine, norm_forward_training, norm_eltwise_swish, x, x, 1, 0, NULL));
        every_implementation(&unary, pd);
        MUST(norm_eltwise_backward_primitive_desc_create(
                &pd, engine, norm_eltwise_swish, x, x, x, 1, 0, NULL, NULL));
        every_implementation(&from_src, pd);
        MUST(norm_eltwise_backward_primitive_desc_create(&pd, engine,
                norm_eltwise_relu_use_dst_for_bwd, x, x, x, 0, 0, NULL, NULL));
        every_implementation(&from_dst, pd);
        MUST(norm_binary_primitive_desc_create(&pd, engine, norm_binary_sub, x, x, x, NULL));
        every_implementation(&two_sources, pd);
        MUST(norm_gated_forward_primitive_desc_create(&pd, engine, norm_forward_training,
                norm_eltwise_swish, norm_gate_separate, x, x, x, 1, INFINITY, 0, NULL));
        every_implementation(&two_sources, pd);
        MUST(norm_gated_backward_primitive_desc_create(&pd, engine, norm_eltwise_swish,
                norm_gate_separate, x, x, x, x, x, x, 1, INFINITY, 0, NULL, NULL));
        every_implementation(&gated_gradient, pd);
        MUST(norm_gated_backward_primitive_desc_create(&pd, engine, norm_eltwise_swish,
                norm_gate_separate, x, x, x, x, x, x, 1, INFINITY, 0, NULL, NULL));
        refuse(&gated_gradient, pd, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
                "DIFF_SRC and DST are outputs and share a buffer");
        MUST(norm_primitive_desc_destroy(pd));
        MUST(norm_reorder_primitive_desc_create(&pd, x, engine, x, engine, NULL));
        every_implementation(&unary, pd);
        MUST(norm_memory_desc_destroy(x));
    }
}

/* ------------------------------------------------------------------------ */

static const case_t rope_forward = {"rope",
        {NORM_ARG_SRC, NORM_ARG_POSITIONS, NORM_ARG_ROPE_FREQUENCIES}, {NORM_ARG_DST},
        {{NORM_ARG_SRC, NORM_ARG_DST}}};
static const case_t rope_gradient = {"gradient of rope",
        {NORM_ARG_SRC, NORM_ARG_DIFF_DST, NORM_ARG_POSITIONS, NORM_ARG_ROPE_FREQUENCIES},
        {NORM_ARG_DIFF_SRC},
        {{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC}, {NORM_ARG_SRC, NORM_ARG_DIFF_SRC}}};

static void ropes(norm_data_type_t type, int layout) {
    const norm_dim_t sizes[][3] = {{5, 3, 16}, {70, 12, 64}};
    for (int i = 0; i < sizes_of(layout); ++i) {
        const norm_dim_t tokens[] = {sizes[i][0], 1}, head = sizes[i][2];
        norm_memory_desc_t x = desc_of(type, 3, sizes[i], layout);
        norm_memory_desc_t at = desc_of(norm_s32, 2, tokens, 0);
        norm_primitive_desc_t pd = NULL;
        for (unsigned flags = 0; flags <= norm_rms_norm; flags += norm_rms_norm) {
            MUST(norm_rope_forward_primitive_desc_create(&pd, engine, norm_forward_training,
                    norm_rope_half_split, norm_rope_from_frequencies, x, x, at, -1, NULL, NULL,
                    head, 1, 0, NULL, epsilon, flags, NULL));
            every_implementation(&rope_forward, pd);
        }
        MUST(norm_rope_backward_primitive_desc_create(&pd, engine, norm_rope_half_split,
                norm_rope_from_frequencies, x, x, x, at, -1, NULL, NULL, NULL, head, 1, 0, NULL,
                epsilon, norm_rms_norm, NULL, NULL));
        every_implementation(&rope_gradient, pd);
        MUST(norm_memory_desc_destroy(x));
        MUST(norm_memory_desc_destroy(at));
    }
}

static const case_t attention = {"attention",
        {NORM_ARG_QUERIES, NORM_ARG_KEYS, NORM_ARG_VALUES}, {NORM_ARG_DST},
        {{NORM_ARG_QUERIES, NORM_ARG_DST}}};
static const case_t attention_gradient = {"gradient of attention",
        {NORM_ARG_QUERIES, NORM_ARG_KEYS, NORM_ARG_VALUES, NORM_ARG_DST, NORM_ARG_WORKSPACE,
                NORM_ARG_DIFF_DST},
        {NORM_ARG_DIFF_QUERIES, NORM_ARG_DIFF_KEYS, NORM_ARG_DIFF_VALUES}, {{0}}};

static norm_primitive_desc_t attention_of(norm_memory_desc_t q, norm_memory_desc_t k) {
    norm_primitive_desc_t pd = NULL;
    MUST(norm_sdpa_forward_primitive_desc_create(&pd, engine, norm_forward_inference, q, k, q, q,
            NULL, NULL, norm_attn_mask_undef, norm_window_none, 0, 0, 0.25f, 0, 0, NULL));
    return pd;
}

static void attentions(norm_data_type_t type, int layout) {
    const norm_dim_t sizes[][4] = {{1, 2, 5, 16}, {2, 3, 70, 32}};
    for (int i = 0; i < sizes_of(layout); ++i) {
        const norm_dim_t of_keys[] = {sizes[i][0], sizes[i][1], sizes[i][3], sizes[i][2]};
        norm_memory_desc_t q = desc_of(type, 4, sizes[i], layout);
        norm_memory_desc_t k = desc_of(type, 4, of_keys, 0);
        every_implementation(&attention, attention_of(q, k));
        norm_primitive_desc_t pd = attention_of(q, k);
        refuse(&attention, pd, NORM_ARG_VALUES, NORM_ARG_DST, "VALUES and DST share a buffer");
        MUST(norm_primitive_desc_destroy(pd));
        MUST(norm_sdpa_backward_primitive_desc_create(&pd, engine, q, k, q, q, q, k, q, q, NULL,
                NULL, norm_attn_mask_undef, norm_window_none, 0, 0, 0.25f, 0, 0, NULL, NULL));
        refuse(&attention_gradient, pd, NORM_ARG_DST, NORM_ARG_DIFF_QUERIES,
                "DST and DIFF_QUERIES share a buffer");
        refuse(&attention_gradient, pd, NORM_ARG_DIFF_KEYS, NORM_ARG_DIFF_VALUES,
                "DIFF_KEYS and DIFF_VALUES are outputs and share a buffer");
        MUST(norm_primitive_desc_destroy(pd));
        MUST(norm_memory_desc_destroy(q));
        MUST(norm_memory_desc_destroy(k));
    }
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    MUST(norm_set_num_threads(3));
    for (int layout = 0; layout < 3; ++layout)
        for (int half = 0; half < 2; ++half) {
            const norm_data_type_t type = half ? norm_bf16 : norm_f32;
            norms(type, layout);
            elementwise_and_rows(type, layout);
            ropes(type, layout);
            attentions(type, layout);
        }
    refused_norms();
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("shared_buffers");
}
