/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * With norm_residual_rounded, a normalization has the bits of a binary addition that is
 * followed by the normalization of its result: rows of several lengths, layer and group
 * normalization, channels first and last, on every level. With both roundings, src may be
 * its own residual.
 */
#include "levels.h"
#include "tensor.h"

enum { ROWS = 5, SAMPLES = 2, CHANNELS = 6, GROUPS = 3, ARGUMENTS = 8 };

static const norm_dim_t lengths[] = {17, 64, 100, 333, 768, 1030, 2048, 4099, 5000};
static const float epsilon = 1e-5f;

static norm_engine_t engine;
static norm_stream_t stream;

typedef struct {
    int ndims;
    norm_dims_t dims;
    norm_format_tag_t tag;
    norm_data_type_t residual, sum;
    unsigned flags;
    norm_residual_rounding_t rounding;
} case_t;

/* What a normalization writes. */
typedef struct {
    tensor_t sum, dst, mean, variance;
} results_t;

static tensor_t tensor_of(const case_t *c, norm_data_type_t type) {
    norm_memory_desc_t desc = NULL;
    MUST(norm_memory_desc_create_with_tag(&desc, c->ndims, c->dims, type, c->tag));
    return tensor_of_desc(desc, engine, NULL);
}

static tensor_t random_tensor(
        const case_t *c, norm_data_type_t type, double size, uint64_t *state) {
    tensor_t t = tensor_of(c, type);
    tensor_fill_random(&t, state, -size, size);
    return t;
}

static norm_primitive_desc_t describe(const case_t *c, const tensor_t *src, const tensor_t *dst,
        norm_primitive_attr_t attr) {
    norm_primitive_desc_t pd = NULL;
    if (c->ndims == 2)
        MUST(norm_layer_normalization_forward_primitive_desc_create(&pd, engine,
                norm_forward_training, src->desc, dst->desc, NULL, epsilon, c->flags, attr));
    else
        MUST(norm_group_normalization_forward_primitive_desc_create(&pd, engine,
                norm_forward_training, src->desc, dst->desc, GROUPS, epsilon, c->flags, attr));
    return pd;
}

static void execute(norm_primitive_desc_t pd, int count, const norm_exec_arg_t *args) {
    norm_primitive_t primitive = NULL;
    MUST(norm_primitive_create(&primitive, pd));
    MUST(norm_primitive_execute(primitive, stream, count, args));
    MUST(norm_primitive_destroy(primitive));
    MUST(norm_primitive_desc_destroy(pd));
}

/* Normalizes src or, with a residual, the sum of both. */
static void normalize(const case_t *c, const tensor_t *src, const tensor_t *residual,
        const tensor_t *scale, const tensor_t *shift, results_t *out) {
    norm_primitive_attr_t attr = NULL;
    MUST(norm_primitive_attr_create(&attr));
    if (residual != NULL)
        MUST(norm_primitive_attr_set_residual(
                attr, residual->desc, out->sum.desc, c->rounding));
    out->dst = tensor_of(c, norm_bf16);
    norm_primitive_desc_t pd = describe(c, src, &out->dst, attr);
    const int statistics[] = {NORM_ARG_MEAN, NORM_ARG_VARIANCE};
    tensor_t *const places[] = {&out->mean, &out->variance};
    for (int i = 0; i < 2; ++i)
        *places[i] = tensor_like(
                norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, statistics[i]), engine);
    const norm_exec_arg_t args[ARGUMENTS] = {{NORM_ARG_SRC, src->memory},
            {NORM_ARG_DST, out->dst.memory}, {NORM_ARG_SCALE, scale->memory},
            {NORM_ARG_SHIFT, shift->memory}, {NORM_ARG_MEAN, out->mean.memory},
            {NORM_ARG_VARIANCE, out->variance.memory}, {NORM_ARG_RESIDUAL_DST, out->sum.memory},
            {NORM_ARG_RESIDUAL, residual != NULL ? residual->memory : NULL}};
    execute(pd, residual != NULL ? ARGUMENTS : ARGUMENTS - 2, args);
    MUST(norm_primitive_attr_destroy(attr));
}

static void add(const tensor_t *src, const tensor_t *residual, const tensor_t *sum) {
    norm_primitive_desc_t pd = NULL;
    MUST(norm_binary_primitive_desc_create(
            &pd, engine, norm_binary_add, src->desc, residual->desc, sum->desc, NULL));
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC_0, src->memory},
            {NORM_ARG_SRC_1, residual->memory}, {NORM_ARG_DST, sum->memory}};
    execute(pd, 3, args);
}

static int same(const tensor_t *a, const tensor_t *b) {
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Compares with an addition and a normalization or, with norm_residual_exact, with a residual that
 * has a buffer of its own. With `shared`, src is the residual. */
static void compare(const case_t *c, int shared) {
    uint64_t state = (uint64_t)c->dims[c->ndims - 1];
    const norm_dim_t columns[] = {c->ndims == 2 ? c->dims[1] : CHANNELS};
    tensor_t src = random_tensor(c, norm_bf16, 3, &state);
    tensor_t residual = random_tensor(c, c->residual, 40, &state);
    tensor_t scale = tensor_make(norm_f32, 1, columns, NULL, engine);
    tensor_t shift = tensor_make(norm_f32, 1, columns, NULL, engine);
    tensor_fill_random(&scale, &state, -2, 2);
    tensor_fill_random(&shift, &state, -2, 2);
    if (shared) memcpy(residual.data, src.data, src.bytes);
    results_t fused, apart;
    fused.sum = tensor_of(c, c->sum);
    apart.sum = tensor_of(c, c->sum);
    normalize(c, &src, shared ? &src : &residual, &scale, &shift, &fused);
    if (c->rounding == norm_residual_rounded) {
        add(&src, &residual, &apart.sum);
        normalize(c, &apart.sum, NULL, &scale, &shift, &apart);
    } else {
        normalize(c, &src, &residual, &scale, &shift, &apart);
    }
    snprintf(expect_case, sizeof expect_case,
            "%d dimensions, the last %d, tag %d, flags %#x, rounding %#x, shared %d", c->ndims,
            (int)c->dims[c->ndims - 1], (int)c->tag, c->flags, c->rounding, shared);
    EXPECT(same(&fused.sum, &apart.sum));
    EXPECT(same(&fused.dst, &apart.dst));
    if (!(c->flags & norm_rms_norm)) EXPECT(same(&fused.mean, &apart.mean));
    EXPECT(same(&fused.variance, &apart.variance));
    expect_case[0] = 0;
    tensor_t *const all[] = {&src, &residual, &scale, &shift, &fused.sum, &fused.dst, &fused.mean,
            &fused.variance, &apart.sum, &apart.dst, &apart.mean, &apart.variance};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        tensor_free(all[i]);
}

/* With residuals of the type of src. */
static void compare_shared(case_t c) {
    compare(&c, 0);
    compare(&c, 1);
    c.rounding = norm_residual_exact;
    compare(&c, 1);
}

static void run_level(void) {
    const unsigned flags = norm_use_scale | norm_use_shift;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        for (int rms = 0; rms < 2; ++rms) {
            case_t c = {2, {ROWS, lengths[i]}, norm_ab, norm_bf16, norm_bf16,
                    flags | (rms ? norm_rms_norm : 0), norm_residual_rounded};
            compare_shared(c);
            c.residual = norm_f32;
            compare(&c, 0);
            c.sum = norm_f32;
            compare(&c, 0);
            c.residual = c.sum = norm_bf16;
            c.ndims = 3;
            c.dims[0] = SAMPLES, c.dims[1] = CHANNELS, c.dims[2] = lengths[i];
            c.tag = norm_abc;
            compare_shared(c);
            c.tag = norm_acb;
            compare_shared(c);
        }
    }
}

int main(void) {
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_stream_create(&stream, engine, norm_stream_default_flags));
    norm_cpu_isa_t levels[LEVELS_MAX];
    const int count = levels_here(levels);
    for (int i = 0; i < count; ++i) {
        MUST(norm_set_max_cpu_isa(levels[i]));
        run_level();
    }
    MUST(norm_stream_destroy(stream));
    MUST(norm_engine_destroy(engine));
    return expect_summary("residual_bits");
}
