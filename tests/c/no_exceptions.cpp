// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm.hpp without exceptions: failing calls call the handler, return defaults and
// leave objects empty; the default handler aborts. With the argument `abort` the
// program fails on purpose.
#include "norm.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#if NORM_ENABLE_EXCEPTIONS
#error "this program is compiled without exceptions"
#endif

using norm::memory;
using dt = memory::data_type;
using tag = memory::format_tag;
using forward = norm::layer_normalization_forward;

static long checked, failed;

static void expect_that(bool holds, int line, const char *what) {
    ++checked;
    if (holds) return;
    ++failed;
    std::fprintf(stderr, "no_exceptions.cpp:%d: %s\n", line, what);
}
#define EXPECT(condition) expect_that((condition), __LINE__, #condition)

static int failures;
static norm_status_t last_status;
static std::string first_sentence;

static void remember(norm_status_t status, const char *sentence) {
    if (failures++ == 0) first_sentence = sentence;
    last_status = status;
}

// Whether the calls since the last check failed with `status`, the first with `word`.
static bool failed_with(norm_status_t status, const char *word) {
    const bool as_expected = failures > 0 && last_status == status
            && first_sentence.find(word) != std::string::npos;
    if (!as_expected) std::fprintf(stderr, "    %d failures: %s\n", failures, first_sentence.c_str());
    failures = 0;
    first_sentence.clear();
    return as_expected;
}

static void normalize(const norm::engine &engine) {
    norm::stream stream(engine);
    const memory::desc rows({2, 2}, dt::f32, tag::ab);
    float src[] = {1, 7, -7, 1}, dst[4] = {};
    const forward primitive(forward::primitive_desc(engine, norm::prop_kind::forward_inference,
            rows, rows, 0.0f, norm::normalization_flags::rms_norm));
    EXPECT(primitive && primitive.get_kind() == norm::primitive::kind::layer_normalization);
    primitive.execute(stream,
            {{NORM_ARG_SRC, memory(rows, engine, src)}, {NORM_ARG_DST, memory(rows, engine, dst)}});
    EXPECT(dst[0] == 0.2f && dst[1] == 1.4f && dst[2] == -1.4f && dst[3] == 0.2f);
    EXPECT(failures == 0);

    dst[0] = 9;
    primitive.execute(stream, {{NORM_ARG_DST, memory(rows, engine, dst)}});
    EXPECT(failed_with(norm_invalid_arguments, "NORM_ARG_SRC") && dst[0] == 9);
}

static void failures_leave_empty_objects(const norm::engine &engine) {
    const norm::engine gpu(norm::engine::kind::gpu, 0);
    EXPECT(failed_with(norm_invalid_arguments, "kind") && !gpu);
    EXPECT(gpu.get_kind() == norm::engine::kind::any && failed_with(norm_invalid_arguments, "empty"));
    const norm::stream stream(gpu);
    EXPECT(failed_with(norm_invalid_arguments, "empty") && !stream && !stream.get_engine());
    EXPECT(failed_with(norm_invalid_arguments, "empty"));

    const memory::desc wrong({2, 3}, dt::f32, tag::abc);
    EXPECT(failed_with(norm_invalid_arguments, "tag") && !wrong);
    const memory::desc strides({2, 3}, dt::f32, memory::dims {1});
    EXPECT(failed_with(norm_invalid_arguments, "strides has 1 entries, but sizes has 2") && !strides);
    EXPECT(memory::desc({2}, dt::f32, tag::any).get_strides().empty());
    EXPECT(failed_with(norm_invalid_arguments, "what"));
    EXPECT(wrong.get_dims().empty() && wrong.get_blob().empty() && wrong.get_size() == 0);
    EXPECT(failed_with(norm_invalid_arguments, "empty"));
    EXPECT(!memory::desc(std::vector<std::uint8_t>(64)));
    EXPECT(failed_with(norm_invalid_arguments, "64 bytes, but get_blob() gives"));
    const memory none(wrong, engine);
    EXPECT(failed_with(norm_invalid_arguments, "empty") && !none);
    EXPECT(none.get_desc().is_zero() && none.get_data_handle() == nullptr && !none.get_engine());
    EXPECT(none.map_data<float>() == nullptr && failed_with(norm_invalid_arguments, "empty"));
    const memory huge({{memory::dim(1) << 58}, dt::f32, tag::a}, engine);
    EXPECT(failed_with(norm_out_of_memory, "handle") && !huge);

    const memory::desc integers({2, 4}, dt::s32, tag::ab);
    const auto create = [&](bool allow_empty) {
        return forward::primitive_desc(engine, norm::prop_kind::forward_inference, integers,
                integers, 0.0f, norm::normalization_flags::none, norm::primitive_attr(), allow_empty);
    };
    EXPECT(!create(true) && failures == 0);
    forward::primitive_desc unimplemented = create(false);
    EXPECT(failed_with(norm_unimplemented, "src_desc") && !unimplemented);
    EXPECT(!unimplemented.next_impl() && unimplemented.impl_info_str() == nullptr);
    EXPECT(!unimplemented.src_desc() || unimplemented.src_desc().is_zero());
    EXPECT(!unimplemented.get_primitive_attr() && !unimplemented.get_engine());
    EXPECT(failed_with(norm_invalid_arguments, "empty"));
    EXPECT(!forward(unimplemented) && failed_with(norm_invalid_arguments, "empty"));

    // An optional descriptor that could not be created is not an omitted one.
    norm::primitive_attr attr;
    const memory::desc right({2, 4}, dt::f32, tag::ab);
    memory::desc residual, sum;
    norm::residual_rounding rounding;
    attr.set_residual(right, right);
    attr.set_residual(wrong, right);
    EXPECT(failed_with(norm_invalid_arguments, "empty"));
    attr.get_residual(residual, sum, rounding);
    EXPECT(residual == right && sum == right);

    norm::post_ops list;
    int mask = 7;
    list.get_params_prelu(0, mask);
    EXPECT(failed_with(norm_invalid_arguments, "index") && mask == 7);
    norm::set_verbose(7);
    EXPECT(failed_with(norm_invalid_arguments, "level"));
    norm::error::wrap_c_api(norm_runtime_error, "mine");
    EXPECT(failed_with(norm_runtime_error, "mine"));
    EXPECT(norm::check(norm_success) && failures == 0);
}

int main(int argc, char **argv) {
    if (argc == 2 && std::strcmp(argv[1], "abort") == 0) {
        norm::set_verbose(7);
        std::puts("not aborted");
        return 0;
    }
    EXPECT(norm::get_error_handler() == norm::abort_on_error);
    EXPECT(norm::set_error_handler(remember) == norm::abort_on_error);
    EXPECT(norm::get_error_handler() == remember);
    const norm::engine engine(norm::engine::kind::cpu, 0);
    normalize(engine);
    failures_leave_empty_objects(engine);
    EXPECT(norm::set_error_handler(nullptr) == remember);
    EXPECT(norm::get_error_handler() == norm::abort_on_error);
    std::printf("no_exceptions: %ld checks, %ld failed\n", checked, failed);
    return failed != 0 || checked == 0;
}
