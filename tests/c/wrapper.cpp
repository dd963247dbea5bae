// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// All of norm.hpp, and its behaviour when a call fails.
#include "norm.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

using norm::memory;
using dt = memory::data_type;
using tag = memory::format_tag;
using flags = norm::normalization_flags;
using forward = norm::layer_normalization_forward;
using backward = norm::layer_normalization_backward;

static long checked, failed;

static void expect_that(bool holds, int line, const char *what) {
    ++checked;
    if (holds) return;
    ++failed;
    std::fprintf(stderr, "wrapper.cpp:%d: %s\n", line, what);
}
#define EXPECT(condition) expect_that((condition), __LINE__, #condition)
#include "group_normalization.hpp"
// Expects `call` to throw `code` with a message that contains `word`.
template <typename Call>
static void expect_error(int line, norm_status_t code, const char *word, Call call) {
    try {
        call();
        expect_that(false, line, "throws");
    } catch (const norm::error &e) {
        expect_that(e.status == code, line, "throws the expected status");
        if (std::strstr(e.what(), word) == nullptr) {
            std::fprintf(stderr, "    %s\n", e.what());
            expect_that(false, line, "the sentence names it");
        }
    }
}
#define THROWS(code, word, ...) expect_error(__LINE__, code, word, [&] { __VA_ARGS__; })
#include "rope.hpp"

static void engines_and_streams(const norm::engine &engine) {
    EXPECT(norm::engine::get_count(norm::engine::kind::cpu) == 1);
    EXPECT(norm::engine::get_count(norm::engine::kind::gpu) == 0);
    EXPECT(engine.get_kind() == norm::engine::kind::cpu);
    norm::engine outlives;
    EXPECT(!outlives);
    {
        norm::stream stream(engine, norm::stream::flags::out_of_order);
        outlives = stream.wait().get_engine();
        EXPECT(outlives == engine);
        outlives = norm::stream(norm::engine(norm::engine::kind::any, 0)).get_engine();
    }
    // The result keeps its owner alive.
    EXPECT(outlives && outlives.get_kind() == norm::engine::kind::cpu);
    norm::engine copy = engine;
    EXPECT(copy == engine && copy != outlives);
    copy.reset();
    EXPECT(!copy && engine && copy.get(true) == nullptr);
    copy.reset(engine.get(), true);
    EXPECT(copy.get() == engine.get());
    copy.reset();
    norm_engine_t taken = nullptr;
    norm::check(norm_engine_create(&taken, norm_cpu, 0));
    copy.reset(taken);
    EXPECT(copy.get_kind() == norm::engine::kind::cpu);
    THROWS(norm_invalid_arguments, "kind", norm::engine(norm::engine::kind::gpu, 0));
}

static void memories(const norm::engine &engine) {
    memory::desc desc({2, 3, 5}, dt::bf16, tag::cab);
    EXPECT(desc.get_ndims() == 3 && desc.get_dims() == memory::dims({2, 3, 5}));
    EXPECT(desc.get_strides() == memory::dims({3, 1, 6}) && desc.get_size() == 60);
    EXPECT(desc.get_padded_dims() == desc.get_dims());
    EXPECT(desc.get_padded_offsets() == memory::dims({0, 0, 0}));
    EXPECT(desc.get_data_type() == dt::bf16 && desc.get_inner_nblks() == 0);
    EXPECT(desc.get_format_kind() == memory::format_kind::blocked);
    EXPECT(desc.get_submemory_offset() == 0 && !desc.is_zero());
    EXPECT(desc == memory::desc({2, 3, 5}, dt::bf16, memory::dims {3, 1, 6}));
    EXPECT(desc != memory::desc({2, 3, 5}, dt::bf16, memory::dims {}));
    EXPECT(memory::desc().is_zero() && memory::desc().get_size() == 0);
    THROWS(norm_invalid_arguments, "tag", memory::desc({2, 3}, dt::f32, tag::abc));
    THROWS(norm_invalid_arguments, "strides has 1 entries, but sizes has 2",
            memory::desc({2, 3}, dt::f32, memory::dims {1}));
    THROWS(norm_invalid_arguments, "what",
            memory::desc({2, 3}, dt::f32, tag::any).get_strides());

    float buffer[6] = {1, 2, 3, 4, 5, 6};
    const memory::desc matrix({2, 3}, dt::f32, tag::ab);
    memory own(matrix, engine), given(matrix, engine, buffer), none(matrix, engine, nullptr);
    EXPECT(given.get_data_handle() == buffer && none.get_data_handle() == nullptr);
    none.set_data_handle(buffer);
    EXPECT(none.get_data_handle() == buffer);
    float *mapped = own.map_data<float>();
    EXPECT(mapped != nullptr && mapped[5] == 0);
    own.unmap_data(mapped);
    EXPECT(own.get_desc() == matrix && own.get_engine() == engine);
    THROWS(norm_out_of_memory, "handle",
            memory({{memory::dim(1) << 58}, dt::f32, tag::a}, engine));
    EXPECT(memory::data_type_size(dt::bf16) == 2);
    memory::validate_dims(memory::dims {1, 2}, 2);
    THROWS(norm_invalid_arguments, "1 entries, but must have 2 to 12", memory::validate_dims(memory::dims {1}, 2));
    THROWS(norm_invalid_arguments, "13 entries, but must have 0 to 12",
            memory::validate_dims(memory::dims(NORM_MAX_NDIMS + 1)));
    norm::error::wrap_c_api(norm_success, "not thrown");
    try {
        norm::error::wrap_c_api(norm_unimplemented, "a sentence");
        EXPECT(false);
    } catch (const norm::error &e) {
        norm::error copied(norm_success, "");
        copied = e;
        EXPECT(e.status == norm_unimplemented && std::strcmp(e.message, "a sentence") == 0);
        EXPECT(copied.status == e.status && std::strcmp(copied.message, "a sentence") == 0);
        EXPECT(std::strcmp(copied.what(), e.what()) == 0);
    }
}

static void layouts(const norm::engine &engine) {
    const memory::desc blocked({32, 48}, dt::f32, tag::AB16b16a);
    EXPECT(blocked.get_inner_nblks() == 2 && blocked.get_inner_blks() == memory::dims({16, 16}));
    EXPECT(blocked.get_inner_idxs() == memory::dims({1, 0}) && blocked.get_num_handles() == 1);
    EXPECT(blocked.get_size(0) == 32 * 48 * 4);
    std::vector<std::uint8_t> blob = blocked.get_blob();
    EXPECT(memory::desc(blob) == blocked);
    blob.pop_back();
    THROWS(norm_invalid_arguments, "bytes, but get_blob() gives", const memory::desc whole(blob));
    EXPECT(memory::desc::with_letters({32, 48}, dt::f32, "AB16b16a") == blocked);
    THROWS(norm_invalid_arguments, "tag", memory::desc::with_letters({32, 48}, dt::f32, "AB16"));
    EXPECT(blocked.with_data_type(dt::f64).get_size() == 2 * blocked.get_size());
    EXPECT(blocked.get_data_type() == dt::f32);
    const memory::desc part = blocked.submemory_desc({16, 16}, {16, 32});
    EXPECT(part.get_dims() == memory::dims({16, 16}) && part.get_submemory_offset() == 1280);
    EXPECT(blocked.submemory_desc({8, 16}, {8, 0}, true).is_zero());
    const memory::desc plain({32, 48}, dt::f32, tag::ab);
    EXPECT(plain.reshape({32, 6, 8}).get_strides() == memory::dims({48, 8, 1}));
    EXPECT(plain.permute_axes({1, 0}) == memory::desc({48, 32}, dt::f32, tag::ba));
    THROWS(norm_invalid_arguments, "dims", plain.reshape({32, 47}));
    THROWS(norm_invalid_arguments, "permutation has 1 entry", plain.permute_axes({1}));
    THROWS(norm_invalid_arguments, "sizes has 1 entry", plain.submemory_desc({1}, {0, 0}));
    THROWS(norm_invalid_arguments, "offsets has 3 entries", plain.submemory_desc({1, 1}, {0, 0, 0}));
    THROWS(norm_unimplemented, "offsets", blocked.submemory_desc({8, 16}, {8, 0}));

    float buffer[6] = {1, 2, 3, 4, 5, 6};
    const memory::desc small({2, 3}, dt::f32, tag::ab);
    memory given(small, engine, std::vector<void *> {nullptr});
    given.set_data_handle(buffer, 0);
    EXPECT(given.get_data_handle(0) == buffer && given.map_data<float>(0)[5] == 6);
    given.unmap_data(buffer, 0);

    memory turned({{2, 3}, dt::s8, tag::ba}, engine);
    norm::primitive_attr attr;
    attr.set_scales_mask(NORM_ARG_SRC, 0);
    float two = 2;
    memory scale({{1}, dt::f32, tag::a}, engine, &two);
    const norm::reorder::primitive_desc problem(given, turned, attr);
    EXPECT(problem.get_src_engine().get_kind() == norm::engine::kind::cpu);
    EXPECT(problem.get_dst_engine().get_kind() == norm::engine::kind::cpu);
    norm::stream stream(engine);
    norm::reorder(problem).execute(stream,
            {{NORM_ARG_SRC, given}, {NORM_ARG_DST, turned},
                    {NORM_ARG_ATTR_SCALES | NORM_ARG_SRC, scale}});
    const signed char *got = turned.map_data<signed char>();
    EXPECT(got[0] == 2 && got[1] == 8 && got[2] == 4 && got[5] == 12);
    norm::reorder(given, turned).execute(stream, given, turned);
    EXPECT(got[0] == 1 && got[1] == 4 && got[5] == 6);
}

static void attributes() {
    norm::primitive_attr attr;
    EXPECT(attr.get_fpmath_mode() == norm::fpmath_mode::strict && !attr.get_deterministic());
    attr.set_fpmath_mode(norm::fpmath_mode::bf16);
    EXPECT(attr.get_fpmath_mode() == norm::fpmath_mode::bf16);
    attr.set_fpmath_mode(norm::fpmath_mode::any, true);
    norm::fpmath_mode mode = norm::fpmath_mode::strict;
    bool ints = false;
    attr.get_fpmath_mode(mode, ints);
    EXPECT(mode == norm::fpmath_mode::any && ints);
    attr.set_accumulation_mode(norm::accumulation_mode::relaxed);
    EXPECT(attr.get_accumulation_mode() == norm::accumulation_mode::relaxed);
    attr.set_deterministic(true);
    EXPECT(attr.get_deterministic());
    attr.set_rounding_mode(NORM_ARG_DST, norm::rounding_mode::stochastic);
    EXPECT(attr.get_rounding_mode(NORM_ARG_DST) == norm::rounding_mode::stochastic);
    attr.set_scales(NORM_ARG_SRC, 0, {});
    attr.set_scales(NORM_ARG_SRC, 0, {}, dt::bf16, false);
    attr.set_scales(NORM_ARG_DST, 1, {}, dt::f32, false, norm::quantization_mode::static_sazp);
    attr.set_zero_points_mask(NORM_ARG_DST, 0);
    attr.set_zero_points(NORM_ARG_SRC, 0, {}, dt::s8);
    attr.set_zero_points(NORM_ARG_SRC, 0, {}, dt::u8, false);
    attr.set_scales(NORM_ARG_SRC, 0, {}, dt::f32, true);
    THROWS(norm_invalid_arguments, "arg", attr.set_scales_mask(NORM_ARG_MEAN, 0));

    const memory::desc rows({4, 8}, dt::bf16, tag::ab);
    norm::residual_rounding rounding = norm::residual_rounding::rounded;
    norm::algorithm gating = norm::algorithm::undef;
    float gate_alpha = 0;
    memory::desc residual, sum, gate;
    attr.set_residual(rows, rows, norm::residual_rounding::exact);
    attr.get_residual(residual, sum, rounding);
    EXPECT(residual == rows && sum == rows && rounding == norm::residual_rounding::exact);
    attr.set_residual(memory::desc(), memory::desc());
    attr.get_residual(residual, sum, rounding);
    EXPECT(residual.is_zero() && sum.is_zero() && rounding == norm::residual_rounding::rounded);
    attr.set_gate(rows);
    attr.get_gate(gate, gating, gate_alpha);
    EXPECT(gate == rows && gating == norm::algorithm::eltwise_swish && gate_alpha == 1.0f);
    attr.set_gate(memory::desc());
    attr.set_partial_norm(3);
    EXPECT(attr.get_partial_norm() == 3);
    attr.set_partial_norm(0);

    norm::post_ops list;
    const memory::desc src1({4, 1}, dt::f32, tag::ab), src2({1, 8}, dt::s8, tag::ab);
    list.append_sum(0.5f);
    list.append_eltwise(norm::algorithm::eltwise_linear, 2, 3);
    list.append_binary(norm::algorithm::binary_max, src1);
    list.append_binary(norm::algorithm::binary_select, src1, src2);
    list.append_prelu(1);
    list.append_dw(dt::s8, dt::undef, dt::u8, 3, 1, 1);
    attr.set_post_ops(list);
    const norm::post_ops its = attr.get_post_ops();
    EXPECT(its.len() == 6 && its.kind(1) == norm::primitive::kind::eltwise && its != list);
    float a = 0, b = 0;
    std::int32_t point = 1;
    int mask = 0;
    dt types[3] = {dt::f64, dt::f64, dt::f64};
    norm::algorithm of = norm::algorithm::undef;
    memory::desc first, second;
    memory::dim sizes[3] = {0, 0, 0};
    its.get_params_sum(0, a, point, types[0]);
    EXPECT(a == 0.5f && point == 0 && types[0] == dt::undef);
    its.get_params_eltwise(1, of, a, b);
    EXPECT(of == norm::algorithm::eltwise_linear && a == 2 && b == 3);
    its.get_params_binary(2, of, first);
    EXPECT(of == norm::algorithm::binary_max && first == src1);
    its.get_params_binary(3, of, first, second);
    EXPECT(of == norm::algorithm::binary_select && first == src1 && second == src2);
    its.get_params_prelu(4, mask);
    EXPECT(mask == 1);
    its.get_params_dw(5, types[0], types[1], types[2], sizes[0], sizes[1], sizes[2]);
    EXPECT(types[0] == dt::s8 && types[1] == dt::undef && types[2] == dt::u8 && sizes[0] == 3);
    THROWS(norm_invalid_arguments, "index", its.get_params_prelu(0, mask));
}

static void names_and_control() {
    using norm::to_string;
    EXPECT(to_string(norm::engine::kind::cpu) == "cpu");
    EXPECT(to_string(memory::format_kind::blocked) == "blocked");
    EXPECT(to_string(norm::primitive::kind::reorder) == "reorder");
    EXPECT(to_string(norm::primitive::kind::rope) == "rope");
    EXPECT(to_string(norm::algorithm::eltwise_relu) == "eltwise_relu");
    EXPECT(to_string(norm::scratchpad_mode::user) == "user");
    EXPECT(to_string(norm::fpmath_mode::any) == "any");
    EXPECT(to_string(norm::accumulation_mode::s32) == "s32");
    EXPECT(to_string(norm::rounding_mode::environment) == "environment");
    EXPECT(to_string(norm::quantization_mode::static_sazp) == "static_sazp");
    EXPECT(to_string(norm::cpu_isa_hints::no_hints) == "cpu_isa_no_hints");
    norm::set_cpu_isa_hints(norm::cpu_isa_hints::prefer_ymm);
    EXPECT(norm::get_cpu_isa_hints() == norm::cpu_isa_hints::prefer_ymm);
    norm::set_default_fpmath_mode(norm::fpmath_mode::bf16);
    EXPECT(norm::get_default_fpmath_mode() == norm::fpmath_mode::bf16);
    norm::set_default_fpmath_mode(norm::fpmath_mode::strict);
    norm::set_primitive_cache_capacity(5);
    EXPECT(norm::get_primitive_cache_capacity() == 5);
    EXPECT(to_string(norm::status::out_of_memory) == "out_of_memory");
    EXPECT(to_string(dt::f16) == "f16" && to_string(tag::nwc) == "acb");
    EXPECT(to_string(norm::prop_kind::backward_data) == "backward_data");
    EXPECT(to_string(norm::cpu_isa::portable) == "portable");
    EXPECT(norm::data_type_size(dt::f64) == 8);
    EXPECT(convert_to_c(norm::engine::kind::cpu) == norm_cpu);
    EXPECT(convert_to_c(norm::prop_kind::backward) == norm_backward);
    EXPECT(convert_to_c(norm::primitive::kind::softmax) == norm_softmax);
    EXPECT(convert_to_c(norm::algorithm::softmax_log) == norm_softmax_log);
    EXPECT(convert_to_c(flags::rms_norm) == norm_rms_norm);
    EXPECT(convert_to_c(norm::scratchpad_mode::user) == norm_scratchpad_mode_user);
    EXPECT(convert_to_c(norm::fpmath_mode::tf32) == norm_fpmath_mode_tf32);
    EXPECT(convert_to_c(norm::accumulation_mode::s32) == norm_accumulation_mode_s32);
    EXPECT(convert_to_c(norm::rounding_mode::stochastic) == norm_rounding_mode_stochastic);
    EXPECT(convert_to_c(norm::quantization_mode::dynamic_mx) == norm_quantization_mode_dynamic_mx);
    EXPECT(convert_to_c(norm::query::strides) == norm_query_strides);
    EXPECT(memory::convert_to_c(dt::bf16) == norm_bf16);
    EXPECT(memory::convert_to_c(tag::nwc) == norm_acb);
    EXPECT(norm::version().major == NORM_VERSION_MAJOR);
    norm::set_max_cpu_isa(norm::cpu_isa::portable);
    EXPECT(norm::get_effective_cpu_isa() == norm::cpu_isa::portable);
    norm::set_max_cpu_isa(norm::cpu_isa::isa_default);
    norm::set_num_threads(2);
    EXPECT(norm::get_num_threads() == 2);
    norm::set_verbose(0);
    THROWS(norm_invalid_arguments, "level", norm::set_verbose(7));
    THROWS(norm_invalid_arguments, "num_threads", norm::set_num_threads(-1));
    norm::set_num_threads(0);
}

static bool near(double got, double want) {
    return std::fabs(got - want) <= 1e-6 * (1 + std::fabs(want));
}

// Two rows with all features at once, compared with the formula.
static void forward_and_backward(const norm::engine &engine) {
    norm::stream stream(engine);
    const memory::desc rows({2, 4}, dt::f32, tag::ab), stat({2}, dt::f32, tag::a),
            vector({4}, dt::f32, tag::a);
    float x[8] = {1, -2, 3, 5, 0.5f, 4, -1, 2}, y[8], mean[2], variance[2];
    float scale[4] = {1, 2, 0.5f, -1}, shift[4] = {0, 1, -1, 3};
    norm::primitive_attr attr;
    attr.set_scratchpad_mode(norm::scratchpad_mode::user);
    EXPECT(attr.get_scratchpad_mode() == norm::scratchpad_mode::user);
    flags all = flags::use_scale;
    all |= flags::use_shift;

    forward::primitive_desc problem(engine, norm::prop_kind::forward_training, rows, rows, stat,
            0.25f, all, attr);
    EXPECT(problem.get_kind() == norm::primitive::kind::layer_normalization);
    EXPECT(problem.get_prop_kind() == norm::prop_kind::forward_training);
    EXPECT(problem.get_flags() == all && (all & flags::rms_norm) == flags::none);
    EXPECT(problem.get_epsilon() == 0.25f && problem.impl_info_str()[0] != 0);
    EXPECT(problem.src_desc() == rows && problem.dst_desc() == rows);
    EXPECT(problem.mean_desc() == stat && problem.variance_desc() == stat);
    EXPECT(!problem.weights_desc().is_zero() && problem.diff_src_desc().is_zero());
    EXPECT(problem.workspace_desc().is_zero() && problem.diff_weights_desc().is_zero());
    EXPECT(problem.query_s64(norm::query::memory_consumption_s64)
            == static_cast<memory::dim>(problem.scratchpad_desc().get_size()));
    EXPECT(problem.query_s64(norm::query::ndims_s32) == 0);
    EXPECT(problem.query_s32(norm::query::num_of_inputs_s32) == 3);
    EXPECT(problem.get_engine().get_kind() == norm::engine::kind::cpu);
    EXPECT(problem.scratchpad_engine().get_kind() == norm::engine::kind::cpu);
    EXPECT(problem.get_primitive_attr().get_scratchpad_mode() == norm::scratchpad_mode::user);

    auto last = forward::primitive_desc(engine, norm::prop_kind::forward_training, rows, rows,
            0.25f, all);
    int more = 0;
    while (last.next_impl() && more < 20) ++more;
    EXPECT(more >= 1 && more < 20 && std::strcmp(last.impl_info_str(), "ref:any") == 0);

    const forward training(problem);
    EXPECT(training.get_kind() == norm::primitive::kind::layer_normalization);
    EXPECT(training.get_primitive_desc().src_desc() == rows);
    const auto wrap = [&](const memory::desc &desc, void *data) {
        return memory(desc, engine, data);
    };
    const memory src = wrap(rows, x);
    training.execute(stream,
            {{NORM_ARG_SRC, src}, {NORM_ARG_DST, wrap(rows, y)}, {NORM_ARG_MEAN, wrap(stat, mean)},
                    {NORM_ARG_VARIANCE, wrap(stat, variance)},
                    {NORM_ARG_SCALE, wrap(vector, scale)}, {NORM_ARG_SHIFT, wrap(vector, shift)},
                    {NORM_ARG_SCRATCHPAD, memory(problem.scratchpad_desc(), engine)}});
    EXPECT(norm::get_last_num_threads() == 1);
    for (int row = 0; row < 2; ++row) {
        double m = 0, v = 0;
        for (int i = 0; i < 4; ++i) m += x[4 * row + i] / 4.0;
        for (int i = 0; i < 4; ++i) v += (x[4 * row + i] - m) * (x[4 * row + i] - m) / 4;
        EXPECT(near(mean[row], m) && near(variance[row], v));
        for (int i = 0; i < 4; ++i)
            EXPECT(near(y[4 * row + i],
                    (x[4 * row + i] - m) / std::sqrt(v + 0.25) * scale[i] + shift[i]));
    }
    THROWS(norm_invalid_arguments, "NORM_ARG_DST", training.execute(stream, {{NORM_ARG_SRC, src}}));

    // The RMS gradient has neither a mean nor a sum(d) term.
    float dy[8] = {1, 1, 2, -1, 3, 0, 1, 1}, dx[8], squares[2], d_scale[4];
    const flags rms = flags::use_scale | flags::rms_norm;
    const forward::primitive_desc rms_problem(
            engine, norm::prop_kind::forward_training, rows, rows, dt::f32, 0.25f, rms);
    THROWS(norm_invalid_arguments, "hint_fwd_pd was created with use_shift, too",
            backward::primitive_desc(engine, norm::prop_kind::backward, rows, rows, rows, dt::f32,
                    dt::f32, 0.25f, flags::use_scale, problem));
    const backward::primitive_desc gradient(engine, norm::prop_kind::backward, rows, rows, rows,
            dt::f32, dt::f32, 0.25f, rms, rms_problem);
    EXPECT(gradient.get_flags() == (flags::use_scale | flags::rms_norm));
    EXPECT(gradient.diff_src_desc() == rows && gradient.diff_dst_desc() == rows);
    EXPECT(gradient.mean_desc().is_zero() && gradient.variance_desc() == stat);
    EXPECT(gradient.diff_weights_desc() == vector && gradient.get_epsilon() == 0.25f);
    EXPECT(!gradient.weights_desc().is_zero());
    for (int row = 0; row < 2; ++row) {
        squares[row] = 0;
        for (int i = 0; i < 4; ++i) squares[row] += x[4 * row + i] * x[4 * row + i] / 4;
    }
    backward(gradient).execute(stream,
            {{NORM_ARG_SRC, src}, {NORM_ARG_DIFF_DST, wrap(rows, dy)},
                    {NORM_ARG_VARIANCE, wrap(stat, squares)},
                    {NORM_ARG_SCALE, wrap(vector, scale)}, {NORM_ARG_DIFF_SRC, wrap(rows, dx)},
                    {NORM_ARG_DIFF_SCALE, wrap(vector, d_scale)}});
    double sums[4] = {0, 0, 0, 0};
    for (int row = 0; row < 2; ++row) {
        const double r = 1 / std::sqrt(squares[row] + 0.25);
        double dot = 0;
        for (int i = 0; i < 4; ++i) {
            const double hat = x[4 * row + i] * r;
            dot += scale[i] * dy[4 * row + i] * hat / 4;
            sums[i] += dy[4 * row + i] * hat;
        }
        for (int i = 0; i < 4; ++i)
            EXPECT(near(dx[4 * row + i],
                    r * (scale[i] * dy[4 * row + i] - x[4 * row + i] * r * dot)));
    }
    for (int i = 0; i < 4; ++i) EXPECT(near(d_scale[i], sums[i]));

    // The other constructors.
    const forward::primitive_desc half(engine, norm::prop_kind::forward_inference, rows, rows,
            dt::bf16, 0.0f, flags::use_scale);
    EXPECT(half.weights_desc().get_data_type() == dt::bf16);
    const backward::primitive_desc by_stat(engine, norm::prop_kind::backward_data, rows, rows,
            rows, stat, 0.0f, flags::none);
    EXPECT(by_stat.get_prop_kind() == norm::prop_kind::backward_data);
    const backward::primitive_desc plain(engine, norm::prop_kind::backward, rows, rows, rows,
            0.0f, flags::none);
    EXPECT(plain && plain.src_desc() == rows);
    const memory::desc integers({2, 4}, dt::s32, tag::ab);
    const forward::primitive_desc none(engine, norm::prop_kind::forward_inference, integers,
            integers, 0.0f, flags::none, norm::primitive_attr(), true);
    EXPECT(!none);
    THROWS(norm_unimplemented, "src_desc",
            forward::primitive_desc(engine, norm::prop_kind::forward_inference, integers,
                    integers, 0.0f, flags::none));
    THROWS(norm_invalid_arguments, "epsilon",
            forward::primitive_desc(engine, norm::prop_kind::forward_inference, rows, rows,
                    -1.0f, flags::none, norm::primitive_attr(), true));
    THROWS(norm_invalid_arguments, "empty", forward {none});
}

static void one_by_one(void *calls, int count, norm_parallel_body_t body, void *context) {
    for (int i = 0; i < count; ++i) body(i, context);
    ++*static_cast<int *>(calls);
}

static void callers_threads(const norm::engine &engine) {
    const memory::desc rows({4000, 256}, dt::f32, tag::ab);
    const forward primitive(forward::primitive_desc(engine, norm::prop_kind::forward_inference,
            rows, rows, 1e-5f, flags::rms_norm));
    memory src(rows, engine), own(rows, engine), pooled(rows, engine);
    float *x = src.map_data<float>();
    for (int i = 0; i < 4000 * 256; ++i) x[i] = static_cast<float>((i * 37 + i / 256) % 101 - 30);
    src.unmap_data(x);
    int calls = 0;
    norm::stream stream(engine);
    primitive.execute(stream, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, own}});
    stream.set_parallel_for(one_by_one, &calls, 4);
    primitive.execute(stream, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, pooled}});
    EXPECT(calls >= 1);
    const int before = calls;
    stream.reset_parallel_for();
    EXPECT(std::memcmp(own.get_data_handle(), pooled.get_data_handle(), rows.get_size()) == 0);
    primitive.execute(stream, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, pooled}});
    EXPECT(calls == before);
    memory other(rows, engine);
    norm::primitive::execute_many(stream,
            {{primitive, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, pooled}}},
                    {primitive, {{NORM_ARG_SRC, own}, {NORM_ARG_DST, other}}}});
    primitive.execute(stream, {{NORM_ARG_SRC, own}, {NORM_ARG_DST, pooled}});
    EXPECT(std::memcmp(other.get_data_handle(), pooled.get_data_handle(), rows.get_size()) == 0);
    THROWS(norm_invalid_arguments, "primitive 1: args: NORM_ARG_SRC",
            norm::primitive::execute_many(stream,
                    {{primitive, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, pooled}}},
                            {primitive, {{NORM_ARG_DST, other}}}}));
    primitive.execute(stream, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, pooled}});
    double squares = 0;
    for (int i = 0; i < 256; ++i) squares += x[i] * static_cast<double>(x[i]) / 256;
    EXPECT(near(static_cast<float *>(pooled.get_data_handle())[0], -30 / std::sqrt(squares + 1e-5)));
}

#include "wrapper_around.h"
#include "wrapper_elementwise.h"
#include "wrapper_empty.h"
#include "wrapper_gated.h"
#include "wrapper_kv_cache.h"
#include "wrapper_rows.h"

int main() {
    try {
        const norm::engine engine(norm::engine::kind::cpu, 0);
        names_and_control();
        engines_and_streams(engine);
        memories(engine);
        layouts(engine);
        attributes();
        softmax();
        eltwise();
        binary();
        gated();
        sdpa();
        empty_objects();
        kv_caches();
        row_attributes();
        group_normalization();
        rope();
        forward_and_backward(engine);
        steps_around(engine);
        callers_threads(engine);
        explanations(engine);
    } catch (const norm::error &e) {
        std::fprintf(stderr, "unexpected: %s\n", e.what());
        ++failed;
    }
    std::printf("wrapper: %ld checks, %ld failed\n", checked, failed);
    return failed != 0 || checked == 0;
}
