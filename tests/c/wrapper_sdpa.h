// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Attention in C++; part of wrapper.cpp.
#ifndef WRAPPER_SDPA_H
#define WRAPPER_SDPA_H

#include "wrapper_gated.h"

// Two keys with equal scores. The causal mask hides the second one from the first query.
static void sdpa() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc rows({1, 1, 2, 1}, dt::f32, tag::abcd), keys({1, 1, 1, 2}, dt::f32, tag::abcd);
    float q[] = {1, 1}, k[] = {1, 1}, v[] = {2, 4}, dst[2], logarithms[2], diff_dst[] = {0, 2};
    float diff_q[2], diff_k[2], diff_v[2];
    norm::sdpa_options options;
    options.mask_type = norm::attn_mask_type::top_left;
    const norm::sdpa_forward::primitive_desc forward(
            engine, norm::prop_kind::forward_training, rows, keys, rows, rows, 1, options);
    EXPECT(forward.get_kind() == norm::primitive::kind::sdpa);
    EXPECT(forward.workspace_desc().get_size() == sizeof logarithms);
    const memory queries(rows, engine, q), cached(keys, engine, k), values(rows, engine, v);
    const memory result(rows, engine, dst);
    const memory stats(forward.workspace_desc(), engine, logarithms);
    norm::sdpa_forward(forward).execute(stream,
            {{NORM_ARG_QUERIES, queries}, {NORM_ARG_KEYS, cached}, {NORM_ARG_VALUES, values},
                    {NORM_ARG_DST, result}, {NORM_ARG_WORKSPACE, stats}});
    EXPECT(dst[0] == 2 && dst[1] == 3 && logarithms[0] == 1 && near(logarithms[1], 1 + std::log(2.0)));
    const norm::sdpa_backward::primitive_desc backward(engine, rows, keys, rows, rows, rows, keys,
            rows, rows, 1, options, forward);
    norm::sdpa_backward(backward).execute(stream,
            {{NORM_ARG_QUERIES, queries}, {NORM_ARG_KEYS, cached}, {NORM_ARG_VALUES, values},
                    {NORM_ARG_DST, result}, {NORM_ARG_WORKSPACE, stats},
                    {NORM_ARG_DIFF_DST, memory(rows, engine, diff_dst)},
                    {NORM_ARG_DIFF_QUERIES, memory(rows, engine, diff_q)},
                    {NORM_ARG_DIFF_KEYS, memory(keys, engine, diff_k)},
                    {NORM_ARG_DIFF_VALUES, memory(rows, engine, diff_v)}});
    EXPECT(near(diff_v[0], 1) && near(diff_v[1], 1) && near(diff_k[0], -1) && near(diff_k[1], 1));
    EXPECT(near(diff_q[0], 0) && near(diff_q[1], 0));
    EXPECT(norm::adaptive_window(norm::window_strategy::by_length, 1026, 512, 4096, NAN) == 513);
}

#endif
