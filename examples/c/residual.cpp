// Adds what a layer returned to the residual stream, and normalizes the sum for the next layer;
// then the same with a gate on the result.
#include <norm.hpp>

#include <cstdio>
#include <vector>

int main() {
    using norm::memory;
    using norm::normalization_flags;
    const norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc rows({2, 2}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc column({2}, memory::data_type::f32, memory::format_tag::a);

    std::vector<float> block {0.5f, 3, 1, -1}, sums {0.5f, 4, -8, 2}, y(4), weights {1, 2};
    const memory src(rows, engine, block.data()), sum(rows, engine, sums.data());
    const memory dst(rows, engine, y.data()), scale(column, engine, weights.data());

    // ANCHOR: residual
    // The residual and the stored sum have the descriptor `rows`.
    norm::primitive_attr attr;
    attr.set_residual(rows, rows);
    const auto flags = normalization_flags::rms_norm | normalization_flags::use_scale;
    const norm::layer_normalization_forward add_and_normalize(
            norm::layer_normalization_forward::primitive_desc(
                    engine, norm::prop_kind::forward_inference, rows, rows, 1e-5f, flags, attr));
    // The sum overwrites the residual.
    add_and_normalize.execute(stream,
            {{NORM_ARG_SRC, src}, {NORM_ARG_RESIDUAL, sum}, {NORM_ARG_RESIDUAL_DST, sum},
                    {NORM_ARG_SCALE, scale}, {NORM_ARG_DST, dst}});
    // ANCHOR_END: residual
    for (int row = 0; row < 2; ++row)
        std::printf("sum %4.1f %4.1f, normalized %4.1f %4.1f\n", sums[2 * row], sums[2 * row + 1],
                y[2 * row], y[2 * row + 1]);

    // ANCHOR: gate
    // The normalized sums times the swish of a gate.
    norm::primitive_attr gated;
    gated.set_gate(rows, norm::algorithm::eltwise_swish);
    const norm::layer_normalization_forward normalize_and_gate(
            norm::layer_normalization_forward::primitive_desc(engine,
                    norm::prop_kind::forward_inference, rows, rows, 1e-5f,
                    normalization_flags::rms_norm | normalization_flags::gate_output, gated));
    std::vector<float> gates {0, 1, 1, 0};
    normalize_and_gate.execute(stream,
            {{NORM_ARG_SRC, sum}, {NORM_ARG_GATE, memory(rows, engine, gates.data())},
                    {NORM_ARG_DST, dst}});
    // ANCHOR_END: gate
    for (int row = 0; row < 2; ++row)
        std::printf("gated %6.3f %6.3f\n", y[2 * row], y[2 * row + 1]);
}
