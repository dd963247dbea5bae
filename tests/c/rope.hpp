/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Rope through the C++ classes; part of wrapper.cpp.
 */
#ifndef ROPE_HPP
#define ROPE_HPP

// After EXPECT and THROWS of wrapper.cpp.
static void rope() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc desc({2, 1, 4}, dt::f32, tag::abc), at({2, 1}, dt::s64, tag::ab);
    const memory::desc two({2}, dt::f64, tag::a), row({4}, dt::f32, tag::a);
    norm::rope_frequencies frequencies(norm::rope_scaling::linear, 4, 10000, {2});
    EXPECT(frequencies.values.size() == 2 && frequencies.magnitude == 1);
    EXPECT(frequencies.values[0] == 0.5 && std::fabs(frequencies.values[1] - 0.005) < 1e-12);
    float src[] = {1, 2, 3, 4, 1, 0, 0, 2}, dst[8] = {}, back[8] = {};
    long long positions[] = {0, 2};
    const memory positions_memory(at, engine, positions);
    const memory frequencies_memory(two, engine, frequencies.values.data());
    const memory dst_memory(desc, engine, dst);
    const norm::rope_forward::primitive_desc forward(engine, norm::prop_kind::forward_inference,
            norm::rope_pairing::half_split, desc, desc, at);
    norm::rope_forward(forward).execute(stream,
            {{NORM_ARG_SRC, memory(desc, engine, src)}, {NORM_ARG_DST, dst_memory},
                    {NORM_ARG_POSITIONS, positions_memory},
                    {NORM_ARG_ROPE_FREQUENCIES, frequencies_memory}});
    EXPECT(dst[0] == 1 && dst[3] == 4 && std::fabs(dst[4] - std::cos(1.0)) < 1e-6);
    EXPECT(std::fabs(dst[6] - std::sin(1.0)) < 1e-6);
    const norm::rope_backward::primitive_desc backward(
            engine, norm::rope_pairing::half_split, desc, desc, at, {}, forward);
    norm::rope_backward(backward).execute(stream,
            {{NORM_ARG_DIFF_DST, dst_memory}, {NORM_ARG_DIFF_SRC, memory(desc, engine, back)},
                    {NORM_ARG_POSITIONS, positions_memory},
                    {NORM_ARG_ROPE_FREQUENCIES, frequencies_memory}});
    for (int i = 0; i < 8; ++i) EXPECT(std::fabs(back[i] - src[i]) < 1e-6);
    // Through a normalization: a head has no gradient along itself.
    norm::rope_options with;
    with.rotary_dims = -8;
    for (const memory::desc &head : {desc, memory::desc()}) {
        const auto make = [&] {
            norm::rope_forward::primitive_desc(engine, norm::prop_kind::forward_inference,
                    norm::rope_pairing::half_split, head, desc, at, with);
        };
        THROWS(norm_invalid_arguments, with.rotary_dims < 0 ? "rotary_dims" : "src_desc", make());
        with.rotary_dims = 0;
    }
    with.flags = norm_rms_norm | norm_use_scale;
    with.scale = with.diff_scale = row;
    with.src = desc;
    float scale[] = {1, 1, 1, 1}, diff_scale[4] = {};
    const norm::rope_backward::primitive_desc through(
            engine, norm::rope_pairing::half_split, desc, desc, at, with, forward);
    norm::rope_backward(through).execute(stream,
            {{NORM_ARG_DIFF_DST, dst_memory}, {NORM_ARG_DIFF_SRC, memory(desc, engine, back)},
                    {NORM_ARG_SRC, memory(desc, engine, src)},
                    {NORM_ARG_SCALE, memory(row, engine, scale)},
                    {NORM_ARG_DIFF_SCALE, memory(row, engine, diff_scale)},
                    {NORM_ARG_POSITIONS, positions_memory},
                    {NORM_ARG_ROPE_FREQUENCIES, frequencies_memory}});
    for (int i = 0; i < 8; ++i) EXPECT(std::fabs(back[i]) < 1e-6);
    const double first = std::sqrt(30. / 4), second = std::sqrt(5. / 4);
    EXPECT(std::fabs(diff_scale[0] - (1 / first + 1 / second)) < 1e-6);
    float weights[] = {1, 2, 3, 4}, moved[4] = {};
    norm::rope_permute(norm::rope_pairing::half_split, norm::rope_pairing::interleaved, 1, 4,
            memory(row, engine, weights), memory(row, engine, moved));
    EXPECT(moved[0] == 1 && moved[1] == 3 && moved[2] == 2 && moved[3] == 4);
}

#endif
