/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Softmax and the attributes of norm_rows.h in C++; part of wrapper.cpp.
 */
#ifndef WRAPPER_ROWS_H
#define WRAPPER_ROWS_H

static void softmax() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc desc({2, 2}, dt::f32, tag::ab);
    float src[] = {0, 0, 1, 1}, dst[4] = {}, diff_dst[] = {1, 3, 0, 0}, diff_src[4] = {};
    const norm::softmax_forward::primitive_desc forward(engine,
            norm::prop_kind::forward_training, norm::algorithm::softmax_accurate, desc, desc, 1);
    EXPECT(forward.get_axis() == 1 && to_string(forward.get_algorithm()) == "softmax_accurate");
    norm::softmax_forward(forward).execute(stream,
            {{NORM_ARG_SRC, memory(desc, engine, src)}, {NORM_ARG_DST, memory(desc, engine, dst)}});
    EXPECT(dst[0] == 0.5f && dst[1] == 0.5f && dst[2] == 0.5f && dst[3] == 0.5f);
    const norm::softmax_backward::primitive_desc backward(engine,
            norm::algorithm::softmax_accurate, desc, desc, desc, 1, forward);
    EXPECT(backward.get_axis() == 1);
    EXPECT(backward.get_algorithm() == norm::algorithm::softmax_accurate);
    norm::softmax_backward(backward).execute(stream,
            {{NORM_ARG_DST, memory(desc, engine, dst)},
                    {NORM_ARG_DIFF_DST, memory(desc, engine, diff_dst)},
                    {NORM_ARG_DIFF_SRC, memory(desc, engine, diff_src)}});
    EXPECT(diff_src[0] == -0.5f && diff_src[1] == 0.5f && diff_src[2] == 0 && diff_src[3] == 0);
}

static void row_attributes() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::primitive_attr attr;
    attr.set_softmax_stats(memory::desc({4, 1}, dt::f32, tag::ab));
    EXPECT(attr.get_softmax_stats() == memory::desc({4, 1}, dt::f32, tag::ab));
    attr.set_softmax_stats(memory::desc());
    EXPECT(attr.get_softmax_stats().is_zero());
    memory::desc mask;
    dt seed = dt::undef;
    bool has_offset = false, on_host = true;
    attr.get_dropout(mask, seed, has_offset, on_host);
    EXPECT(mask.is_zero() && seed == dt::undef && !has_offset && !on_host);
    norm::primitive_attr dropping;
    dropping.set_dropout(memory::desc({4, 8}, dt::u8, tag::ab), dt::s64, true, false);
    dropping.get_dropout(mask, seed, has_offset, on_host);
    EXPECT(mask == memory::desc({4, 8}, dt::u8, tag::ab) && seed == dt::s64 && has_offset);
    dropping.set_dropout(memory::desc());
    dropping.get_dropout(mask);
    EXPECT(mask.is_zero());
    const memory::desc scalar = memory::desc::host_scalar(dt::f32);
    EXPECT(scalar.get_format_kind() == memory::format_kind::host_scalar);
    const memory held(scalar, 0.5f);
    EXPECT(held.get_host_scalar_value<float>() == 0.5f);
    held.set_host_scalar_value(2.0f);
    EXPECT(held.get_host_scalar_value<float>() == 2.0f && held.get_desc() == scalar);
    THROWS(norm_invalid_arguments, "memory", held.set_host_scalar_value(2.0));
    THROWS(norm_invalid_arguments, "memory", memory(scalar, 2.0));
    THROWS(norm_invalid_arguments, "memory", held.get_data_handle());
    dropping.set_host_scale(NORM_ARG_SRC);
    dropping.set_host_zero_point(NORM_ARG_DST);
}

#endif
