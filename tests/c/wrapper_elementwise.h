/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The elementwise classes of norm.hpp; part of wrapper.cpp.
 */
#ifndef WRAPPER_ELEMENTWISE_H
#define WRAPPER_ELEMENTWISE_H

static void eltwise() {
    using norm::algorithm;
    using norm::memory;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc desc({2, 2}, memory::data_type::f32, memory::format_tag::ab);
    float src[] = {-1, 2, 0, 4}, dst[4] = {}, diff_dst[] = {1, 3, 5, 7}, diff_src[4] = {};
    const norm::eltwise_forward::primitive_desc forward(engine,
            norm::prop_kind::forward_training, algorithm::eltwise_linear, desc, desc, 2, 1);
    EXPECT(forward.get_alpha() == 2 && forward.get_beta() == 1);
    EXPECT(forward.get_algorithm() == algorithm::eltwise_linear);
    norm::eltwise_forward(forward).execute(stream,
            {{NORM_ARG_SRC, memory(desc, engine, src)}, {NORM_ARG_DST, memory(desc, engine, dst)}});
    EXPECT(dst[0] == -1 && dst[1] == 5 && dst[2] == 1 && dst[3] == 9);
    const norm::eltwise_forward::primitive_desc relu(engine, norm::prop_kind::forward_training,
            algorithm::eltwise_relu_use_dst_for_bwd, desc, desc, 0.5f);
    const norm::eltwise_forward::primitive_desc square(engine,
            norm::prop_kind::forward_inference, algorithm::eltwise_square, desc, desc);
    EXPECT(relu.get_alpha() == 0.5f && square.get_beta() == 0);
    const norm::primitive_desc of_any_kind = norm::eltwise_forward(forward).get_primitive_desc();
    EXPECT(of_any_kind.get_alpha() == 2 && of_any_kind.get_beta() == 1);
    const norm::eltwise_backward::primitive_desc backward(engine,
            algorithm::eltwise_relu_use_dst_for_bwd, desc, desc, desc, 0.5f, relu);
    EXPECT(backward.get_alpha() == 0.5f && backward.src_desc().get_ndims() == 0);
    EXPECT(backward.get_prop_kind() == norm::prop_kind::backward_data);
    norm::eltwise_backward(backward).execute(stream,
            {{NORM_ARG_DST, memory(desc, engine, dst)},
                    {NORM_ARG_DIFF_DST, memory(desc, engine, diff_dst)},
                    {NORM_ARG_DIFF_SRC, memory(desc, engine, diff_src)}});
    EXPECT(diff_src[0] == 0.5f && diff_src[1] == 3 && diff_src[2] == 5 && diff_src[3] == 7);
    const norm::eltwise_backward::primitive_desc of_src(
            engine, algorithm::eltwise_square, desc, desc, desc);
    const norm::eltwise_backward::primitive_desc power(
            engine, algorithm::eltwise_pow, desc, desc, desc, 2, 3);
    EXPECT(of_src.src_desc() == desc && power.get_beta() == 3);
}

static void binary() {
    using norm::algorithm;
    using norm::memory;
    using dt = memory::data_type;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc desc({2, 2}, dt::f32, memory::format_tag::ab);
    const memory::desc row({1, 2}, dt::f32, memory::format_tag::any);
    const memory::desc mask({2, 2}, dt::s8, memory::format_tag::ab);
    float src0[] = {1, 2, 3, 4}, src1[] = {10, 20}, dst[4] = {};
    signed char chosen[] = {1, 0, 0, 1};
    const norm::binary::primitive_desc add(engine, algorithm::binary_add, desc, row, desc);
    EXPECT(add.get_algorithm() == algorithm::binary_add && add.src0_desc() == desc);
    norm::binary(add).execute(stream,
            {{NORM_ARG_SRC_0, memory(desc, engine, src0)},
                    {NORM_ARG_SRC_1, memory(add.src1_desc(), engine, src1)},
                    {NORM_ARG_DST, memory(desc, engine, dst)}});
    EXPECT(dst[0] == 11 && dst[1] == 22 && dst[2] == 13 && dst[3] == 24);
    const norm::binary::primitive_desc select(
            engine, algorithm::binary_select, desc, row, mask, desc);
    EXPECT(select.src2_desc() == mask && select.src_desc(1) == add.src1_desc());
    norm::binary(select).execute(stream,
            {{NORM_ARG_SRC_0, memory(desc, engine, src0)},
                    {NORM_ARG_SRC_1, memory(select.src1_desc(), engine, src1)},
                    {NORM_ARG_SRC_2, memory(mask, engine, chosen)},
                    {NORM_ARG_DST, memory(desc, engine, dst)}});
    EXPECT(dst[0] == 1 && dst[1] == 20 && dst[2] == 10 && dst[3] == 4);
}

#endif
