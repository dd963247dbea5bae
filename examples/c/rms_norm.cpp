// RMS normalization of two rows of four numbers.
#include <norm.hpp>

#include <cstdio>
#include <vector>

int main() try {
    using norm::memory;
    const norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);

    const memory::desc desc({2, 4}, memory::data_type::f32, memory::format_tag::ab);
    const norm::layer_normalization_forward::primitive_desc problem(engine,
            norm::prop_kind::forward_inference, desc, desc, 1e-5f,
            norm::normalization_flags::rms_norm);
    const norm::layer_normalization_forward rms_norm(problem);

    std::vector<float> src {1, 2, 3, 4, -2, -4, -6, -8}, dst(src.size());
    rms_norm.execute(stream,
            {{NORM_ARG_SRC, memory(desc, engine, src.data())},
                    {NORM_ARG_DST, memory(desc, engine, dst.data())}});
    for (const float *row = dst.data(); row < dst.data() + 8; row += 4)
        std::printf("%.4f %.4f %.4f %.4f\n", row[0], row[1], row[2], row[3]);
    return 0;
} catch (const norm::error &error) {
    std::fprintf(stderr, "%s: %s\n", norm_status2str(error.status), error.what());
    return 1;
}
