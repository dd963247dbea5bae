// Trains scale and shift of a layer normalization by gradient descent: forward,
// loss, backward, update. The loss approaches 0, because the target is the same
// normalization with other parameters.
//
//     cargo build --release
//     c++ -std=c++17 -Iinclude examples/c/layer_norm_training.cpp -Ltarget/release
//         -lnorm -Wl,-rpath,$PWD/target/release
#include <norm.hpp>

#include <cstdio>
#include <vector>

using norm::memory;

int main() try {
    const int rows = 64, cols = 32, steps = 60;
    const float epsilon = 1e-5f, rate = 0.5f;

    const norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc matrix({rows, cols}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc vector({cols}, memory::data_type::f32, memory::format_tag::a);
    const auto flags = norm::normalization_flags::use_scale | norm::normalization_flags::use_shift;

    const norm::layer_normalization_forward::primitive_desc problem(
            engine, norm::prop_kind::forward_training, matrix, matrix, epsilon, flags);
    const norm::layer_normalization_forward forward(problem);
    const norm::layer_normalization_backward backward(
            norm::layer_normalization_backward::primitive_desc(engine, norm::prop_kind::backward,
                    matrix, matrix, matrix, epsilon, flags, problem));

    // The program owns the buffers; the memories refer to them.
    std::vector<float> x(rows * cols), y(x.size()), target(x.size()), dy(x.size()), dx(x.size());
    std::vector<float> scale(cols), shift(cols), d_scale(cols), d_shift(cols);
    const memory src(matrix, engine, x.data()), dst(matrix, engine, y.data());
    const memory mean(problem.mean_desc(), engine), variance(problem.variance_desc(), engine);
    const memory gamma(vector, engine, scale.data()), beta(vector, engine, shift.data());
    const auto normalize = [&] {
        forward.execute(stream,
                {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst}, {NORM_ARG_MEAN, mean},
                        {NORM_ARG_VARIANCE, variance}, {NORM_ARG_SCALE, gamma},
                        {NORM_ARG_SHIFT, beta}});
    };

    for (int i = 0; i < rows * cols; ++i) x[i] = static_cast<float>((i * 7919 + i / 3) % 101) / 10;
    for (int i = 0; i < cols; ++i) {
        scale[i] = 0.5f + static_cast<float>(i) / cols;
        shift[i] = static_cast<float>(i % 5) - 2;
    }
    normalize();
    target = y;
    scale.assign(cols, 1);
    shift.assign(cols, 0);

    for (int step = 0; step <= steps; ++step) {
        normalize();
        double loss = 0;
        for (int i = 0; i < rows * cols; ++i) {
            const float error = y[i] - target[i];
            loss += error * error / (2.0 * rows);
            dy[i] = error / rows;
        }
        if (step % 10 == 0) std::printf("step %2d loss %.6f\n", step, loss);
        backward.execute(stream,
                {{NORM_ARG_SRC, src}, {NORM_ARG_MEAN, mean}, {NORM_ARG_VARIANCE, variance},
                        {NORM_ARG_SCALE, gamma},
                        {NORM_ARG_DIFF_DST, memory(matrix, engine, dy.data())},
                        {NORM_ARG_DIFF_SRC, memory(matrix, engine, dx.data())},
                        {NORM_ARG_DIFF_SCALE, memory(vector, engine, d_scale.data())},
                        {NORM_ARG_DIFF_SHIFT, memory(vector, engine, d_shift.data())}});
        for (int i = 0; i < cols; ++i) {
            scale[i] -= rate * d_scale[i];
            shift[i] -= rate * d_shift[i];
        }
    }
    return 0;
} catch (const norm::error &e) {
    std::fprintf(stderr, "%s: %s\n", norm_status2str(e.status), e.what());
    return 1;
}
