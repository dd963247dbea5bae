// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Gated activation in C++; part of wrapper.cpp.
#ifndef WRAPPER_GATED_H
#define WRAPPER_GATED_H

#include "wrapper_explain.h"

static void gated() {
    using norm::memory;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc both({1, 4}, dt::f32, tag::ab), one({1, 2}, dt::f32, tag::ab);
    const float none = INFINITY;
    float src[] = {3, 10, -1, 5}, dst[2] = {}, diff_dst[] = {1, 2}, diff_src[4] = {};
    const norm::gated_forward::primitive_desc forward(engine, norm::prop_kind::forward_training,
            norm::algorithm::eltwise_relu, norm::gate_packing::interleaved, both, memory::desc(), one,
            0, none, 0);
    EXPECT(forward.get_algorithm() == norm::algorithm::eltwise_relu);
    EXPECT(forward.get_kind() == norm::primitive::kind::gated);
    norm::gated_forward(forward).execute(stream,
            {{NORM_ARG_SRC, memory(both, engine, src)}, {NORM_ARG_DST, memory(one, engine, dst)}});
    EXPECT(dst[0] == 30 && dst[1] == 0);
    const norm::gated_backward::primitive_desc backward(engine, norm::algorithm::eltwise_relu,
            norm::gate_packing::interleaved, both, memory::desc(), one, both, memory::desc(),
            memory::desc(), 0, none, 0, forward);
    norm::gated_backward(backward).execute(stream,
            {{NORM_ARG_SRC, memory(both, engine, src)},
                    {NORM_ARG_DIFF_DST, memory(one, engine, diff_dst)},
                    {NORM_ARG_DIFF_SRC, memory(both, engine, diff_src)}});
    EXPECT(diff_src[0] == 10 && diff_src[1] == 3 && diff_src[2] == 0 && diff_src[3] == 0);
}

#endif
