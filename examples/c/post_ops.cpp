// Multiplies normalized rows by a factor, adds a row to each, and applies GELU, in one pass.
#include <norm.hpp>

#include <cstdio>
#include <vector>

int main() {
    using norm::memory;
    const norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc rows({2, 2}, memory::data_type::f32, memory::format_tag::ab);
    std::vector<float> x {1, 7, -3, 4}, y(4), b {0.5f, -1};
    const memory src(rows, engine, x.data()), dst(rows, engine, y.data());

    // ANCHOR: create
    // The operand has as many dimensions as dst. Those of size 1 are broadcast.
    const memory::desc row({1, 2}, memory::data_type::f32, memory::format_tag::ab);
    norm::post_ops ops;
    ops.append_eltwise(norm::algorithm::eltwise_linear, 2, 0);
    ops.append_binary(norm::algorithm::binary_add, row);
    ops.append_eltwise(norm::algorithm::eltwise_gelu_tanh, 0, 0);
    norm::primitive_attr attr;
    attr.set_post_ops(ops);
    const norm::layer_normalization_forward normalize(
            norm::layer_normalization_forward::primitive_desc(engine,
                    norm::prop_kind::forward_inference, rows, rows, 1e-5f,
                    norm::normalization_flags::rms_norm, attr));
    // ANCHOR_END: create

    // ANCHOR: execute
    // Operation 1 of the chain has an operand.
    normalize.execute(stream,
            {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst},
                    {NORM_ARG_ATTR_MULTIPLE_POST_OP(1) | NORM_ARG_SRC_1,
                            memory(row, engine, b.data())}});
    // ANCHOR_END: execute
    for (int i = 0; i < 4; i += 2)
        std::printf("%7.4f %7.4f\n", y[i], y[i + 1]);
}
