// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Attributes and post-operations as objects: getters return what was set, and invalid
// values are rejected.

#include "print.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <vector>

using dnnl::algorithm;
using dnnl::memory;
using dnnl::post_ops;
using dnnl::primitive_attr;
using dt = memory::data_type;
using tag = memory::format_tag;

template <typename F>
static void status(const char *name, F f) {
    try {
        f();
        std::printf("%s: success\n", name);
    } catch (const dnnl::error &e) {
        std::printf("%s: %s\n", name, dnnl_status2str(e.status));
    }
}

static const std::vector<algorithm> eltwise = {algorithm::eltwise_relu, algorithm::eltwise_tanh,
        algorithm::eltwise_elu, algorithm::eltwise_square, algorithm::eltwise_abs,
        algorithm::eltwise_sqrt, algorithm::eltwise_swish, algorithm::eltwise_linear,
        algorithm::eltwise_soft_relu, algorithm::eltwise_logistic, algorithm::eltwise_mish,
        algorithm::eltwise_exp, algorithm::eltwise_log, algorithm::eltwise_clip,
        algorithm::eltwise_clip_v2, algorithm::eltwise_pow, algorithm::eltwise_gelu_tanh,
        algorithm::eltwise_gelu_erf, algorithm::eltwise_round, algorithm::eltwise_hardswish,
        algorithm::eltwise_hardsigmoid};

static const std::vector<algorithm> binary = {algorithm::binary_add, algorithm::binary_mul,
        algorithm::binary_max, algorithm::binary_min, algorithm::binary_div,
        algorithm::binary_sub, algorithm::binary_ge, algorithm::binary_gt, algorithm::binary_le,
        algorithm::binary_lt, algorithm::binary_eq, algorithm::binary_ne};

static const char *name_of(algorithm a) {
    return dnnl_alg_kind2str(dnnl_alg_kind_t(a));
}

static void post_operations() {
    post_ops ops;
    std::printf("%d\n", ops.len());
    ops.append_sum(2.5f, 0, dt::s8);
    for (const algorithm a : eltwise)
        status(name_of(a), [&] { ops.append_eltwise(a, 0.5f, 0.25f); });
    std::printf("%d\n", ops.len());
    post_ops for_backward;
    status("eltwise for backward", [&] {
        for_backward.append_eltwise(algorithm::eltwise_relu_use_dst_for_bwd, 0, 0);
    });
    std::printf("%d\n", for_backward.len());
    float alpha, beta, scale;
    algorithm kind;
    for_backward.get_params_eltwise(0, kind, alpha, beta);
    std::printf("%s\n", name_of(kind));
    ops.get_params_sum(0, scale);
    std::printf("%g\n", scale);
    for (int i = 1; i < ops.len(); ++i) {
        ops.get_params_eltwise(i, kind, alpha, beta);
        std::printf("%s %g %g %s\n", name_of(kind), alpha, beta,
                dnnl_prim_kind2str(dnnl_primitive_kind_t(ops.kind(i))));
    }
    status("not a sum", [&] { ops.get_params_sum(1, scale); });
    status("past the end", [&] { ops.get_params_eltwise(99, kind, alpha, beta); });

    post_ops others;
    const memory::desc row({1, 8}, dt::f32, tag::ab);
    for (const algorithm a : binary)
        status(name_of(a), [&] { others.append_binary(a, row); });
    status("select", [&] { others.append_binary(algorithm::binary_select, row, row); });
    status("binary of an eltwise", [&] { others.append_binary(algorithm::eltwise_relu, row); });
    status("eltwise of a binary", [&] { others.append_eltwise(algorithm::binary_add, 0, 0); });
    status("prelu", [&] { others.append_prelu(2); });
    for (int i = 0; i < 12; ++i) {
        memory::desc desc;
        others.get_params_binary(i, kind, desc);
        std::printf("%s %d\n", name_of(kind), desc == row);
    }
    std::printf("%d\n", others.len());

    post_ops many;
    for (int i = 0; i < 33; ++i)
        status("another", [&] { many.append_eltwise(algorithm::eltwise_relu, 0, 0); });
}

static void attributes() {
    primitive_attr attr;
    post_ops ops;
    ops.append_eltwise(algorithm::eltwise_linear, 2, 3);
    attr.set_post_ops(ops);
    ops.append_eltwise(algorithm::eltwise_tanh, 0, 0);
    std::printf("a copy was taken: %d\n", attr.get_post_ops().len());
    status("src scale", [&] { attr.set_scales_mask(DNNL_ARG_SRC, 0); });
    status("dst scale", [&] { attr.set_scales_mask(DNNL_ARG_DST, 0); });
    status("scale of a mean", [&] { attr.set_scales_mask(DNNL_ARG_MEAN, 0); });
    status("negative mask", [&] { attr.set_scales_mask(DNNL_ARG_SRC, -1); });
    status("zero point", [&] { attr.set_zero_points_mask(DNNL_ARG_SRC, 0); });
    status("scales in groups", [&] { attr.set_scales(DNNL_ARG_WEIGHTS, 3, {4, 1}, dt::bf16); });
    status("groups of one dim", [&] { attr.set_scales(DNNL_ARG_WEIGHTS, 3, {4}, dt::bf16); });
    dnnl::primitive_attr others;
    status("scale of a second source", [&] { others.set_scales_mask(DNNL_ARG_MULTIPLE_SRC + 1, 0); });
    status("scale of other weights", [&] { others.set_scales_mask(DNNL_ARG_WEIGHTS_1, 0); });
    status("scale of a depthwise dst",
            [&] { others.set_scales_mask(DNNL_ARG_ATTR_POST_OP_DW | DNNL_ARG_DST, 0); });
    status("deterministic", [&] { attr.set_deterministic(true); });
    std::printf("%d\n", attr.get_deterministic());
    status("user scratchpad", [&] { attr.set_scratchpad_mode(dnnl::scratchpad_mode::user); });
    std::printf("%d\n", attr.get_scratchpad_mode() == dnnl::scratchpad_mode::user);
}

int main() {
    post_operations();
    attributes();
    return 0;
}
