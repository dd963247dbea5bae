// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Layer normalization with scales and post-operations: which are supported, and their
// results.

#include "print.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <cstring>
#include <unordered_map>
#include <vector>

using dnnl::algorithm;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::post_ops;
using dnnl::primitive_attr;
using dt = memory::data_type;
using tag = memory::format_tag;
using forward = dnnl::layer_normalization_forward;

static const int rows = 3, cols = 8;

static memory filled(const dnnl::engine &engine, const memory::desc &desc, float first, float step) {
    memory m(desc, engine);
    const size_t count = desc.get_size() / memory::data_type_size(desc.get_data_type());
    void *data = m.map_data();
    for (size_t i = 0; i < count; ++i) {
        // All rows differ, and no value is close to a rounding boundary.
        const float value = first + step * float(i * 7 % 11) + 0.013f * float(i);
        switch (desc.get_data_type()) {
            case dt::f32: static_cast<float *>(data)[i] = value; break;
            case dt::s8: static_cast<int8_t *>(data)[i] = int8_t(value * 10); break;
            case dt::u8: static_cast<uint8_t *>(data)[i] = uint8_t(value * 10 + 60); break;
            default: std::printf("no such type\n");
        }
    }
    m.unmap_data(data);
    return m;
}

static void print(const char *name, const memory &m) {
    const memory::desc desc = m.get_desc();
    std::vector<float> values(rows * cols);
    void *data = m.map_data();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = desc.get_data_type() == dt::f32 ? static_cast<float *>(data)[i]
                : desc.get_data_type() == dt::s8    ? static_cast<int8_t *>(data)[i]
                                                    : static_cast<uint8_t *>(data)[i];
    m.unmap_data(data);
    print_values(name, values.data(), rows * cols, 3);
}

// One problem with attributes; `known` is the reason for a difference.
static void run(const char *name, dt src_type, dt dst_type, const primitive_attr &attr,
        const std::unordered_map<int, memory> &more, const char *known = nullptr) {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const memory::desc src({rows, cols}, src_type, tag::ab), dst({rows, cols}, dst_type, tag::ab);
    try {
        const forward::primitive_desc problem(engine, dnnl::prop_kind::forward_inference, src, dst,
                0.01f, normalization_flags::use_scale | normalization_flags::use_shift, attr);
        memory result(problem.dst_desc(), engine);
        std::unordered_map<int, memory> args = more;
        void *data = result.map_data();
        std::memset(data, 0, problem.dst_desc().get_size());
        result.unmap_data(data);
        args[DNNL_ARG_SRC] = filled(engine, src, -1.1f, 0.23f);
        args[DNNL_ARG_DST] = result;
        args[DNNL_ARG_SCALE] = filled(engine, problem.weights_desc(), 1.07f, 0.17f);
        args[DNNL_ARG_SHIFT] = filled(engine, problem.weights_desc(), 0.31f, -0.05f);
        forward(problem).execute(stream, args);
        stream.wait();
        if (known) {
            std::printf("* %s: %s: success\n", known, name);
        } else {
            std::printf("%s: %d inputs\n", name,
                    dnnl_primitive_desc_query_s32(
                            problem.get(), dnnl_query_num_of_inputs_s32, 0));
            print("  dst", result);
        }
    } catch (const dnnl::error &e) {
        if (known)
            std::printf("* %s: %s: %s\n", known, name, dnnl_status2str(e.status));
        else
            std::printf("%s: %s\n", name, dnnl_status2str(e.status));
    }
}

static memory scalar(float value) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return filled(engine, {{1}, dt::f32, tag::a}, value, 0);
}

static void types_and_scales() {
    const dt types[] = {dt::f32, dt::s8, dt::u8};
    for (const dt src : types)
        for (const dt dst : types) {
            primitive_attr attr;
            char name[40];
            std::snprintf(name, sizeof name, "%s to %s", dnnl_dt2str(dnnl_data_type_t(src)),
                    dnnl_dt2str(dnnl_data_type_t(dst)));
            run(name, src, dst, attr, {});
            attr.set_scales_mask(DNNL_ARG_SRC, 0);
            attr.set_scales_mask(DNNL_ARG_DST, 0);
            std::snprintf(name, sizeof name, "%s to %s, scaled", dnnl_dt2str(dnnl_data_type_t(src)),
                    dnnl_dt2str(dnnl_data_type_t(dst)));
            run(name, src, dst, attr,
                    {{DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, scalar(1.87f)},
                            {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, scalar(0.057f)}},
                    src == dt::f32 && dst == dt::f32 ? "scales without integers" : nullptr);
        }
    primitive_attr per_channel, weights, zero_point;
    per_channel.set_scales_mask(DNNL_ARG_SRC, 2);
    run("scale per channel", dt::s8, dt::f32, per_channel, {});
    weights.set_scales_mask(DNNL_ARG_WEIGHTS, 0);
    run("weights scale", dt::f32, dt::f32, weights, {});
    zero_point.set_zero_points_mask(DNNL_ARG_SRC, 0);
    run("zero point", dt::s8, dt::f32, zero_point, {});
}

static void eltwise() {
    static const struct {
        algorithm kind;
        float alpha, beta;
    } all[] = {{algorithm::eltwise_relu, 0.25f, 0}, {algorithm::eltwise_tanh, 0, 0},
            {algorithm::eltwise_elu, 0.75f, 0}, {algorithm::eltwise_square, 0, 0},
            {algorithm::eltwise_abs, 0, 0}, {algorithm::eltwise_swish, 1.5f, 0},
            {algorithm::eltwise_linear, 2, 0.125f}, {algorithm::eltwise_soft_relu, 1, 0},
            {algorithm::eltwise_logistic, 0, 0}, {algorithm::eltwise_mish, 0, 0},
            {algorithm::eltwise_exp, 0, 0}, {algorithm::eltwise_clip, -0.5f, 0.75f},
            {algorithm::eltwise_clip_v2, -0.5f, 0.75f}, {algorithm::eltwise_pow, 2, 2},
            {algorithm::eltwise_gelu_tanh, 0, 0}, {algorithm::eltwise_gelu_erf, 0, 0},
            {algorithm::eltwise_round, 0, 0}, {algorithm::eltwise_hardswish, 0.5f, 0.25f},
            {algorithm::eltwise_hardsigmoid, 0.5f, 0.25f}, {algorithm::eltwise_sqrt, 0, 0},
            {algorithm::eltwise_log, 0, 0}};
    for (const auto &one : all) {
        primitive_attr attr;
        post_ops ops;
        // Roots and logarithms of positive numbers.
        if (one.kind == algorithm::eltwise_sqrt || one.kind == algorithm::eltwise_log)
            ops.append_eltwise(algorithm::eltwise_soft_relu, 1, 0);
        ops.append_eltwise(one.kind, one.alpha, one.beta);
        attr.set_post_ops(ops);
        run(dnnl_alg_kind2str(dnnl_alg_kind_t(one.kind)), dt::f32, dt::f32, attr, {});
    }
}

static void binary() {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const memory::desc shapes[] = {{{1, 1}, dt::f32, tag::ab}, {{1, cols}, dt::f32, tag::ab},
            {{rows, 1}, dt::f32, tag::ab}, {{rows, cols}, dt::f32, tag::ab}};
    for (const algorithm kind : {algorithm::binary_add, algorithm::binary_mul,
                 algorithm::binary_max, algorithm::binary_min, algorithm::binary_div,
                 algorithm::binary_sub, algorithm::binary_ge, algorithm::binary_gt,
                 algorithm::binary_le, algorithm::binary_lt, algorithm::binary_eq,
                 algorithm::binary_ne})
        for (int s = 0; s < 4; ++s) {
            primitive_attr attr;
            post_ops ops;
            char name[40];
            ops.append_binary(kind, shapes[s]);
            attr.set_post_ops(ops);
            std::snprintf(name, sizeof name, "%s %d", dnnl_alg_kind2str(dnnl_alg_kind_t(kind)), s);
            run(name, dt::f32, dt::f32, attr,
                    {{DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                            filled(engine, shapes[s], 0.412f, 0.19f)}});
        }
    primitive_attr select;
    post_ops of_select;
    const memory::desc condition({rows, cols}, dt::s8, tag::ab);
    of_select.append_binary(algorithm::binary_select, shapes[3], condition);
    select.set_post_ops(of_select);
    memory choice(condition, engine);
    int8_t *chosen = choice.map_data<int8_t>();
    for (int i = 0; i < rows * cols; ++i)
        chosen[i] = int8_t(i % 3);
    choice.unmap_data(chosen);
    run("select", dt::f32, dt::f32, select,
            {{DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                     filled(engine, shapes[3], 0.412f, 0.19f)},
                    {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_2, choice}});

    primitive_attr chain;
    post_ops ops;
    ops.append_binary(algorithm::binary_mul, shapes[1]);
    ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
    ops.append_binary(algorithm::binary_add, shapes[3]);
    chain.set_post_ops(ops);
    chain.set_scales_mask(DNNL_ARG_DST, 0);
    run("a chain", dt::f32, dt::s8, chain,
            {{DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                     filled(engine, shapes[1], 0.41f, 0.19f)},
                    {DNNL_ARG_ATTR_MULTIPLE_POST_OP(2) | DNNL_ARG_SRC_1,
                            filled(engine, shapes[3], 0.3f, 0.11f)},
                    {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, scalar(0.043f)}});
}

static void others() {
    primitive_attr sum, prelu, wrong;
    post_ops ops;
    ops.append_sum(1);
    sum.set_post_ops(ops);
    run("sum", dt::f32, dt::f32, sum, {}, "sum post-operation");
    post_ops of_prelu;
    of_prelu.append_prelu(2);
    prelu.set_post_ops(of_prelu);
    run("prelu", dt::f32, dt::f32, prelu, {});
    post_ops of_wrong;
    of_wrong.append_binary(algorithm::binary_add, {{rows, cols + 1}, dt::f32, tag::ab});
    wrong.set_post_ops(of_wrong);
    run("binary of another shape", dt::f32, dt::f32, wrong, {});
}

// Backward supports only the modes.
static void backward() {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const memory::desc data({rows, cols}, dt::f32, tag::ab);
    const forward::primitive_desc hint(engine, dnnl::prop_kind::forward_training, data, data, 0.5f,
            normalization_flags::none);
    primitive_attr modes, scale, eltwise;
    modes.set_deterministic(true);
    modes.set_fpmath_mode(dnnl::fpmath_mode::any);
    scale.set_scales_mask(DNNL_ARG_SRC, 0);
    post_ops ops;
    ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
    eltwise.set_post_ops(ops);
    const struct {
        const char *name;
        const primitive_attr &attr;
    } all[] = {{"backward, modes", modes}, {"backward, scale", scale}, {"backward, eltwise", eltwise}};
    for (const auto &one : all) {
        dnnl_primitive_desc_t problem = nullptr;
        STATUS(one.name,
                dnnl_layer_normalization_backward_primitive_desc_create(&problem, engine.get(),
                        dnnl_backward, data.get(), data.get(), data.get(), nullptr, 0.5f, 0,
                        hint.get(), one.attr.get()));
        dnnl_primitive_desc_destroy(problem);
    }
}

int main() {
    types_and_scales();
    eltwise();
    binary();
    others();
    backward();
    return 0;
}
