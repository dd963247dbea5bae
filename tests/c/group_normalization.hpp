/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Group normalization through the C++ classes; part of wrapper.cpp.
 */
#ifndef GROUP_NORMALIZATION_HPP
#define GROUP_NORMALIZATION_HPP

// After EXPECT of wrapper.cpp.
static void group_normalization() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc desc({1, 4, 2}, dt::f32, tag::abc);
    const auto flags = norm::normalization_flags::none;
    float src[] = {1, 3, 1, 3, 5, 5, -5, -5}, dst[8] = {}, mean[2] = {}, variance[2] = {};
    const norm::group_normalization_forward::primitive_desc forward(
            engine, norm::prop_kind::forward_training, desc, desc, 2, 0.0f, flags);
    EXPECT(forward.get_group_size() == 2 && forward.get_flags() == flags);
    EXPECT(forward.get_epsilon() == 0 && forward.mean_desc() == forward.variance_desc());
    const memory mean_memory(forward.mean_desc(), engine, mean);
    const memory variance_memory(forward.variance_desc(), engine, variance);
    const memory src_memory(desc, engine, src);
    norm::group_normalization_forward(forward).execute(stream,
            {{NORM_ARG_SRC, src_memory}, {NORM_ARG_DST, memory(desc, engine, dst)},
                    {NORM_ARG_MEAN, mean_memory}, {NORM_ARG_VARIANCE, variance_memory}});
    EXPECT(mean[0] == 2 && variance[0] == 1 && mean[1] == 0 && variance[1] == 25);
    EXPECT(dst[0] == -1 && dst[1] == 1 && dst[4] == 1 && dst[7] == -1);
    float diff_dst[] = {1, 1, 1, 1, 2, 2, 0, 0}, diff_src[8] = {};
    const norm::group_normalization_backward::primitive_desc backward(
            engine, norm::prop_kind::backward_data, desc, desc, desc, 2, 0.0f, flags, forward);
    EXPECT(backward.get_group_size() == 2);
    norm::group_normalization_backward(backward).execute(stream,
            {{NORM_ARG_SRC, src_memory}, {NORM_ARG_DIFF_DST, memory(desc, engine, diff_dst)},
                    {NORM_ARG_DIFF_SRC, memory(desc, engine, diff_src)},
                    {NORM_ARG_MEAN, mean_memory}, {NORM_ARG_VARIANCE, variance_memory}});
    for (const float value : diff_src)
        EXPECT(value == 0);
}

#endif
