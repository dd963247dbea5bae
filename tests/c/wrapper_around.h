/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The steps around a normalization in C++, executed and compared with the formula; part of
 * wrapper.cpp.
 */
#ifndef WRAPPER_AROUND_H
#define WRAPPER_AROUND_H

// Two rows of 4 elements, or two groups of 2 channels with 2 positions: RMS normalization of
// src + residual over the first 2 elements, times 1 + scale, with a gate before or after it, in s8
// with a scale for every `shared` elements.
struct steps {
    const norm::engine &engine;
    bool grouped;
    int shared;
    float src[8] = {1, 3, -2, 4, 0.5f, 2, 5, -1};
    float residual[8] = {1, -1, 4, 0, 2, 2, -3, 0.25f};
    float gate[8] = {1, 2, -1, 0.5f, 3, -2, 0.25f, 1};
    float scale[4] = {0.5f, -0.25f, 1, 2};
    float sum[8] = {}, scales[4] = {}, variance[2] = {};
    signed char dst[8] = {};

    norm::primitive_attr attr(const memory::desc &rows) const {
        norm::primitive_attr own;
        own.set_residual(rows, rows, norm::residual_rounding::exact);
        own.set_gate(rows, norm::algorithm::eltwise_swish, 1.5f);
        own.set_partial_norm(2);
        own.set_scales(NORM_ARG_DST, grouped ? 7 : 3, {1, shared}, dt::f32, false,
                norm::quantization_mode::dynamic_fp);
        return own;
    }

    void execute(const norm::primitive_desc &problem) {
        const auto of = [&](int arg, void *data) {
            return memory(problem.arg_desc(arg), engine, data);
        };
        const int scales_arg = NORM_ARG_ATTR_SCALES | NORM_ARG_DST;
        norm::stream stream(engine);
        norm::primitive(problem).execute(stream,
                {{NORM_ARG_SRC, of(NORM_ARG_SRC, src)}, {NORM_ARG_DST, of(NORM_ARG_DST, dst)},
                        {NORM_ARG_RESIDUAL, of(NORM_ARG_RESIDUAL, residual)},
                        {NORM_ARG_RESIDUAL_DST, of(NORM_ARG_RESIDUAL_DST, sum)},
                        {NORM_ARG_GATE, of(NORM_ARG_GATE, gate)},
                        {NORM_ARG_SCALE, of(NORM_ARG_SCALE, scale)},
                        {NORM_ARG_VARIANCE, of(NORM_ARG_VARIANCE, variance)},
                        {scales_arg, of(scales_arg, scales)}});
    }

    void compare(bool gates_input) const {
        int wrong = 0;
        double y[8];
        for (int row = 0; row < 2; ++row) {
            double x[4], factor[4], squares = 0;
            for (int j = 0; j < 4; ++j) {
                const int i = 4 * row + j;
                const double added = src[i] + residual[i], own = scale[grouped ? i / 2 : j];
                const double opened = gate[i] / (1 + std::exp(-1.5 * gate[i]));
                wrong += sum[i] != added;
                x[j] = gates_input ? added * opened : added;
                factor[j] = gates_input ? 1 + own : (1 + own) * opened;
                if (j < 2) squares += x[j] * x[j] / 2;
            }
            wrong += !near(variance[row], squares);
            for (int j = 0; j < 4; ++j)
                y[4 * row + j] = x[j] / std::sqrt(squares + 0.25) * factor[j];
        }
        for (int i = 0; i < 8; ++i) {
            double most = 0;
            for (int j = 0; j < shared; ++j)
                most = std::fmax(most, std::fabs(y[i / shared * shared + j]));
            wrong += !near(scales[i / shared], most / 127);
            wrong += std::fabs(dst[i] - y[i] / (most / 127)) > 0.5001;
        }
        EXPECT(wrong == 0);
    }
};

static void steps_around(const norm::engine &engine) {
    const auto kind = norm::prop_kind::forward_training;
    const auto all = flags::rms_norm | flags::use_scale | flags::scale_plus_one;
    const memory::desc rows({2, 4}, dt::f32, tag::ab), bytes({2, 4}, dt::s8, tag::ab);
    const memory::desc groups({1, 4, 2}, dt::f32, tag::abc), codes({1, 4, 2}, dt::s8, tag::abc);
    for (const bool gates_input : {false, true}) {
        const auto own = all | (gates_input ? flags::gate_input : flags::gate_output);
        steps of_rows {engine, false, 4};
        of_rows.execute(forward::primitive_desc(
                engine, kind, rows, bytes, 0.25f, own, of_rows.attr(rows)));
        of_rows.compare(gates_input);
        steps of_groups {engine, true, 2};
        of_groups.execute(norm::group_normalization_forward::primitive_desc(
                engine, kind, groups, codes, 2, 0.25f, own, of_groups.attr(groups)));
        of_groups.compare(gates_input);
    }
}

#endif
