// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A training step and inference through dnnl.hpp: forward, backward with its
// statistics, weight gradients, submemory as input, exceptions.

#include "print.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <unordered_map>
#include <vector>

using dnnl::layer_normalization_backward;
using dnnl::layer_normalization_forward;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;
using tag = memory::format_tag;
using dt = memory::data_type;

static void fill(const memory &m, unsigned seed, float offset) {
    float *data = m.map_data<float>();
    const size_t count = m.get_desc().get_size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = float(seed >> 8) / (1 << 23) - 1 + offset;
    }
    m.unmap_data(data);
}

static void print(const char *name, const memory &m) {
    float *data = m.map_data<float>();
    print_values(name, data, int(m.get_desc().get_size() / sizeof(float)), 3);
    m.unmap_data(data);
}

static void training(const dnnl::engine &engine, normalization_flags flags) {
    dnnl::stream stream(engine);
    const memory::desc data({2, 3, 4}, dt::f32, tag::abc), weights({4}, dt::f32, tag::a);
    const layer_normalization_forward::primitive_desc forward(
            engine, prop_kind::forward_training, data, data, 1e-3f, flags);
    std::printf("epsilon %g, flags %u, %s\n", forward.get_epsilon(), unsigned(forward.get_flags()),
            dnnl_prop_kind2str(dnnl_prop_kind_t(forward.get_prop_kind())));
    std::printf("%d %d %d %d %d\n", forward.src_desc() == data, forward.dst_desc() == data,
            forward.weights_desc() == weights, forward.mean_desc() == forward.variance_desc(),
            int(forward.mean_desc().get_ndims()));
    memory src(data, engine), dst(data, engine), scale(weights, engine), shift(weights, engine);
    memory mean(forward.mean_desc(), engine), variance(forward.variance_desc(), engine);
    fill(src, 11, 0.3f);
    fill(scale, 12, 1.5f);
    fill(shift, 13, 0);
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst},
            {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_SCALE, scale},
            {DNNL_ARG_SHIFT, shift}};
    layer_normalization_forward(forward).execute(stream, args);
    stream.wait();
    print("dst", dst);
    print("mean", mean);
    print("variance", variance);

    const layer_normalization_backward::primitive_desc backward(
            engine, prop_kind::backward, data, data, data, 1e-3f, flags, forward);
    memory diff_dst(data, engine), diff_src(backward.diff_src_desc(), engine);
    memory diff_scale(backward.diff_weights_desc(), engine), diff_shift(weights, engine);
    fill(diff_dst, 14, 0.2f);
    args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_MEAN, mean},
            {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_DIFF_SRC, diff_src},
            {DNNL_ARG_DIFF_SCALE, diff_scale}, {DNNL_ARG_DIFF_SHIFT, diff_shift}};
    layer_normalization_backward(backward).execute(stream, args);
    stream.wait();
    print("diff_src", diff_src);
    print("diff_scale", diff_scale);
    print("diff_shift", diff_shift);

    const layer_normalization_forward::primitive_desc inference(engine,
            prop_kind::forward_inference, data, data, 1e-3f,
            flags | normalization_flags::use_global_stats);
    fill(mean, 15, 0);
    fill(variance, 16, 1.5f);
    args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, src}, {DNNL_ARG_MEAN, mean},
            {DNNL_ARG_VARIANCE, variance}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift}};
    layer_normalization_forward(inference).execute(stream, args);
    stream.wait();
    print("in place", src);
}

// Whole rows of a larger tensor: their memory is dense, so both libraries agree.
static void rows_of_a_larger_tensor(const dnnl::engine &engine) {
    dnnl::stream stream(engine);
    const memory::desc whole({5, 4}, dt::f32, tag::ab);
    const memory::desc part = whole.submemory_desc({2, 4}, {1, 0});
    std::printf("offset %d, %d dims, stride %d\n", int(part.get_submemory_offset()),
            int(part.get_ndims()), int(part.get_strides()[0]));
    memory all(whole, engine);
    fill(all, 21, 0.1f);
    float *data = static_cast<float *>(all.get_data_handle());
    const memory::desc rows({2, 4}, dt::f32, tag::ab);
    const memory src(rows, engine, data + 4), dst(rows, engine, data + 12);
    const layer_normalization_forward::primitive_desc problem(engine,
            prop_kind::forward_inference, rows, rows, 1e-3f, normalization_flags::none);
    layer_normalization_forward(problem).execute(
            stream, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
    stream.wait();
    print("rows", all);
}

template <typename F>
static void refused(const char *name, F f) {
    try {
        f();
        std::printf("%s: success\n", name);
    } catch (const dnnl::error &e) {
        std::printf("%s: %s\n", name, dnnl_status2str(e.status));
    }
}

static void errors(const dnnl::engine &engine) {
    const memory::desc data({2, 4}, dt::f32, tag::ab), other({2, 5}, dt::f32, tag::ab);
    refused("another shape", [&] {
        layer_normalization_forward::primitive_desc(engine, prop_kind::forward_inference, data,
                other, 0.5f, normalization_flags::none);
    });
    refused("relu", [&] {
        layer_normalization_forward::primitive_desc(engine, prop_kind::forward_inference, data,
                data, 0.5f, normalization_flags::fuse_norm_relu);
    });
    refused("no src", [&] {
        layer_normalization_forward::primitive_desc(engine, prop_kind::forward_inference, {},
                data, 0.5f, normalization_flags::none);
    });
    // An empty object instead of an exception.
    const layer_normalization_forward::primitive_desc empty(engine,
            prop_kind::forward_inference, data, other, 0.5f, normalization_flags::none, {}, true);
    std::printf("empty: %d\n", !empty);
    refused("tag", [&] { memory::desc({2, 3}, dt::f32, tag::abc); });
    std::printf("allowed empty: %d\n", !memory::desc({2, 3}, dt::f32, tag::abc, true).get(true));
    refused("strides", [&] { memory::desc({2, 3}, dt::f32, memory::dims {-3, 1}); });
    refused("memory of any", [&] { memory(memory::desc({2, 3}, dt::f32, tag::any), engine); });
}

int main() {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    training(engine, normalization_flags::use_scale | normalization_flags::use_shift);
    rows_of_a_larger_tensor(engine);
    errors(engine);
    return 0;
}
