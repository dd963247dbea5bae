// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_core.hpp - errors, handles, enumerations, engines and streams for C++.
// Programs include norm.hpp.
#ifndef NORM_CORE_HPP
#define NORM_CORE_HPP

#include "norm.h"
#include "norm_empty.hpp"

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

// 1 if failing calls throw, 0 if they call the error handler. The default follows the
// compiler's options; define it as 0 to use handlers in a program that has exceptions.
#ifndef NORM_ENABLE_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define NORM_ENABLE_EXCEPTIONS 1
#else
#define NORM_ENABLE_EXCEPTIONS 0
#endif
#endif

// The two modes have different classes, so that files compiled in different modes
// can be linked into one program.
#if NORM_ENABLE_EXCEPTIONS
#define NORM_HPP_MODE throws
#else
#define NORM_HPP_MODE calls_handler
#endif

namespace norm {
inline namespace NORM_HPP_MODE {

// The exception of this API. `status` is never norm_success; what() is the
// sentence of norm_get_last_error().
struct error : std::runtime_error {
    // From a status and a sentence.
    error(norm_status_t code, const std::string &sentence)
        : std::runtime_error(sentence), status(code), message(what()) {}
    error(const error &other)
        : std::runtime_error(other), status(other.status), message(what()) {}
    error &operator=(const error &other) {
        std::runtime_error::operator=(other);
        status = other.status;
        message = what();
        return *this;
    }
    // Fails with `message` if a C function failed.
    static void wrap_c_api(norm_status_t status, const char *message);

    // The status of the call that failed.
    norm_status_t status;
    const char *message; // what()
};

#if !NORM_ENABLE_EXCEPTIONS
// Called by a failing call, with the status and one sentence that is valid until
// the handler returns. If it returns, so does the call: a constructor or a function
// that creates leaves its object empty, a query returns a default value (0, NULL, an
// empty object or vector), and nothing else has happened. Using an empty object is a
// failing call. A mistake may be reported more than once.
using error_handler = void (*)(norm_status_t status, const char *sentence);

// The default: prints the sentence on standard error and aborts.
inline void abort_on_error(norm_status_t status, const char *sentence) {
    std::fprintf(stderr, "%s: %s\n", norm_status2str(status), sentence);
    std::abort();
}

// Change it with set_error_handler.
inline std::atomic<error_handler> current_error_handler {abort_on_error};

// Replaces the handler of all threads and returns the previous one. NULL restores
// the default. The handler is called on the failing thread.
inline error_handler set_error_handler(error_handler handler) noexcept {
    return current_error_handler.exchange(handler == nullptr ? abort_on_error : handler);
}
// The handler of all threads.
inline error_handler get_error_handler() noexcept { return current_error_handler.load(); }
#endif

// Throws norm::error, or calls the error handler.
inline void fail(norm_status_t status, const char *sentence) {
#if NORM_ENABLE_EXCEPTIONS
    throw error(status, sentence);
#else
    get_error_handler()(status, sentence);
#endif
}

// Fails if a C function failed, with the sentence of norm_get_last_error(). True if
// it did not fail. Also for direct calls of norm.h functions.
inline bool check(norm_status_t status) {
    if (status != norm_success) fail(status, norm_get_last_error());
    return status == norm_success;
}

// Declared above.
inline void error::wrap_c_api(norm_status_t status, const char *message) {
    if (status != norm_success) fail(status, message);
}

// A reference-counted handle to a C object.
template <typename Object, norm_status_t (*destroy)(Object *)>
class handle {
public:
    // An empty handle.
    handle() = default;
    // Takes ownership of `object`.
    explicit handle(Object *object) : object_(object, destroy) {}
    // The C object, still owned by this handle. Fails if it is empty, unless that is
    // allowed; then it is NULL.
    Object *get(bool allow_empty = false) const {
        if (!object_ && !allow_empty) fail(norm_invalid_arguments, empty_message(object_.get()));
        return object_.get();
    }
    // The C object, or NULL.
    Object *get_or_null() const noexcept { return object_.get(); }
    // Releases the object.
    void reset() noexcept { object_.reset(); }
    // Releases the object and takes ownership of `object`. With `weak`, the caller keeps the
    // ownership: it must destroy `object`, and not before the last use of this handle.
    void reset(Object *object, bool weak = false) {
        if (weak)
            object_ = std::shared_ptr<Object>(std::shared_ptr<Object>(), object);
        else
            object_.reset(object, destroy);
    }
    // Whether there is an object.
    explicit operator bool() const noexcept { return object_ != nullptr; }
    // Compares identity, not value.
    bool operator==(const handle &other) const noexcept { return object_ == other.object_; }
    bool operator!=(const handle &other) const noexcept { return object_ != other.object_; }

protected:
    // `object` belongs to `owner`, which this handle keeps alive.
    template <typename Owner>
    handle(const Owner &owner, Object *object) : object_(owner.object_, object) {}

private:
    template <typename O, norm_status_t (*d)(O *)>
    friend class handle;
    std::shared_ptr<Object> object_;
};

// ---------------------------------------------------------------------------
// Enumerations outside classes
// ---------------------------------------------------------------------------

// See norm_status_t.
enum class status {
    success = norm_success,
    out_of_memory = norm_out_of_memory,
    invalid_arguments = norm_invalid_arguments,
    unimplemented = norm_unimplemented,
    last_impl_reached = norm_last_impl_reached,
    runtime_error = norm_runtime_error,
    not_required = norm_not_required,
};

// Also norm::primitive::kind. Not all kinds are implemented; see norm_primitive_kind_t.
enum class primitive_kind {
    undef = norm_undefined_primitive,
    reorder = norm_reorder,
    shuffle = norm_shuffle,
    concat = norm_concat,
    sum = norm_sum,
    convolution = norm_convolution,
    deconvolution = norm_deconvolution,
    eltwise = norm_eltwise,
    lrn = norm_lrn,
    batch_normalization = norm_batch_normalization,
    inner_product = norm_inner_product,
    rnn = norm_rnn,
    binary = norm_binary,
    matmul = norm_matmul,
    resampling = norm_resampling,
    pooling = norm_pooling,
    reduction = norm_reduction,
    prelu = norm_prelu,
    softmax = norm_softmax,
    layer_normalization = norm_layer_normalization,
    group_normalization = norm_group_normalization,
    rope = norm_rope,
    gated = norm_gated,
    sdpa = norm_sdpa,
};

// What an execution computes; see norm_prop_kind_t.
enum class prop_kind {
    undef = norm_prop_kind_undef,
    forward_training = norm_forward_training,
    forward_inference = norm_forward_inference,
    forward = norm_forward,
    backward = norm_backward,
    backward_data = norm_backward_data,
    backward_weights = norm_backward_weights,
    backward_bias = norm_backward_bias,
};

// Post-operation functions; see norm_alg_kind_t for the formulas.
enum class algorithm {
    undef = norm_alg_kind_undef,
    eltwise_relu = norm_eltwise_relu,
    eltwise_tanh = norm_eltwise_tanh,
    eltwise_elu = norm_eltwise_elu,
    eltwise_square = norm_eltwise_square,
    eltwise_abs = norm_eltwise_abs,
    eltwise_sqrt = norm_eltwise_sqrt,
    eltwise_linear = norm_eltwise_linear,
    eltwise_soft_relu = norm_eltwise_soft_relu,
    eltwise_hardsigmoid = norm_eltwise_hardsigmoid,
    eltwise_logistic = norm_eltwise_logistic,
    eltwise_exp = norm_eltwise_exp,
    eltwise_gelu_tanh = norm_eltwise_gelu_tanh,
    eltwise_swish = norm_eltwise_swish,
    eltwise_log = norm_eltwise_log,
    eltwise_clip = norm_eltwise_clip,
    eltwise_clip_v2 = norm_eltwise_clip_v2,
    eltwise_pow = norm_eltwise_pow,
    eltwise_gelu_erf = norm_eltwise_gelu_erf,
    eltwise_round = norm_eltwise_round,
    eltwise_mish = norm_eltwise_mish,
    eltwise_hardswish = norm_eltwise_hardswish,
    eltwise_relu_use_dst_for_bwd = norm_eltwise_relu_use_dst_for_bwd,
    eltwise_tanh_use_dst_for_bwd = norm_eltwise_tanh_use_dst_for_bwd,
    eltwise_elu_use_dst_for_bwd = norm_eltwise_elu_use_dst_for_bwd,
    eltwise_sqrt_use_dst_for_bwd = norm_eltwise_sqrt_use_dst_for_bwd,
    eltwise_logistic_use_dst_for_bwd = norm_eltwise_logistic_use_dst_for_bwd,
    eltwise_exp_use_dst_for_bwd = norm_eltwise_exp_use_dst_for_bwd,
    eltwise_clip_v2_use_dst_for_bwd = norm_eltwise_clip_v2_use_dst_for_bwd,
    binary_add = norm_binary_add,
    binary_mul = norm_binary_mul,
    binary_max = norm_binary_max,
    binary_min = norm_binary_min,
    binary_div = norm_binary_div,
    binary_sub = norm_binary_sub,
    binary_ge = norm_binary_ge,
    binary_gt = norm_binary_gt,
    binary_le = norm_binary_le,
    binary_lt = norm_binary_lt,
    binary_eq = norm_binary_eq,
    binary_ne = norm_binary_ne,
    binary_select = norm_binary_select,
    softmax_accurate = norm_softmax_accurate,
    softmax_log = norm_softmax_log,
    softmax_accurate_inf_as_zero = norm_softmax_accurate_inf_as_zero,
};

// See norm_normalization_flags_t for what each one changes.
enum class normalization_flags : unsigned {
    none = norm_normalization_flags_none,
    use_global_stats = norm_use_global_stats,
    use_scale = norm_use_scale,
    use_shift = norm_use_shift,
    fuse_norm_relu = norm_fuse_norm_relu,
    fuse_norm_add_relu = norm_fuse_norm_add_relu,
    rms_norm = norm_rms_norm,
    // Not in oneDNN.
    scale_plus_one = norm_scale_plus_one,
    round_before_scale = norm_round_before_scale,
    gate_output = norm_gate_output,
    gate_input = norm_gate_input,
};

// Whether the statistics come from the sum as stored or as computed; see norm_residual_rounding_t.
enum class residual_rounding {
    rounded = norm_residual_rounded,
    exact = norm_residual_exact,
};

// Flags combine with | and are tested with &.
constexpr normalization_flags operator|(normalization_flags a, normalization_flags b) {
    return static_cast<normalization_flags>(
            static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr normalization_flags operator&(normalization_flags a, normalization_flags b) {
    return static_cast<normalization_flags>(
            static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
inline normalization_flags &operator|=(normalization_flags &a, normalization_flags b) {
    return a = a | b;
}

// Who provides the scratchpad: the library, or an execution argument.
enum class scratchpad_mode {
    library = norm_scratchpad_mode_library,
    user = norm_scratchpad_mode_user,
};

// Which types may replace f32 inside a computation. Every operation computes as with strict.
enum class fpmath_mode {
    strict = norm_fpmath_mode_strict,
    bf16 = norm_fpmath_mode_bf16,
    f16 = norm_fpmath_mode_f16,
    any = norm_fpmath_mode_any,
    tf32 = norm_fpmath_mode_tf32,
};

// The type of sums. Every operation computes as with strict.
enum class accumulation_mode {
    strict = norm_accumulation_mode_strict,
    relaxed = norm_accumulation_mode_relaxed,
    any = norm_accumulation_mode_any,
    s32 = norm_accumulation_mode_s32,
    f32 = norm_accumulation_mode_f32,
    f16 = norm_accumulation_mode_f16,
};

// How an output is rounded; see norm_rounding_mode_t.
enum class rounding_mode {
    environment = norm_rounding_mode_environment,
    stochastic = norm_rounding_mode_stochastic,
};

// Where the scales of a quantized tensor come from; see norm_quantization_mode_t.
enum class quantization_mode {
    undef = norm_quantization_mode_undef,
    static_sazp = norm_quantization_mode_static_sazp,
    dynamic_mx = norm_quantization_mode_dynamic_mx,
    dynamic_fp = norm_quantization_mode_dynamic_fp,
};

// What primitive_desc_base::ask answers, with the type that norm_query_t says.
enum class query {
    undef = norm_query_undef,
    engine = norm_query_engine,
    primitive_kind = norm_query_primitive_kind,
    num_of_inputs_s32 = norm_query_num_of_inputs_s32,
    num_of_outputs_s32 = norm_query_num_of_outputs_s32,
    time_estimate_f64 = norm_query_time_estimate_f64,
    memory_consumption_s64 = norm_query_memory_consumption_s64,
    scratchpad_engine = norm_query_scratchpad_engine,
    impl_info_str = norm_query_impl_info_str,
    reorder_src_engine = norm_query_reorder_src_engine,
    reorder_dst_engine = norm_query_reorder_dst_engine,
    prop_kind = norm_query_prop_kind,
    epsilon_f32 = norm_query_epsilon_f32,
    flags = norm_query_flags,
    alg_kind = norm_query_alg_kind,
    alpha_f32 = norm_query_alpha_f32,
    beta_f32 = norm_query_beta_f32,
    axis_s32 = norm_query_axis_s32,
    group_size_s64 = norm_query_group_size_s64,
    some_md = norm_query_some_md,
    src_md = norm_query_src_md,
    diff_src_md = norm_query_diff_src_md,
    weights_md = norm_query_weights_md,
    diff_weights_md = norm_query_diff_weights_md,
    dst_md = norm_query_dst_md,
    diff_dst_md = norm_query_diff_dst_md,
    workspace_md = norm_query_workspace_md,
    scratchpad_md = norm_query_scratchpad_md,
    exec_arg_md = norm_query_exec_arg_md,
    ndims_s32 = norm_query_ndims_s32,
    dims = norm_query_dims,
    data_type = norm_query_data_type,
    submemory_offset_s64 = norm_query_submemory_offset_s64,
    padded_dims = norm_query_padded_dims,
    padded_offsets = norm_query_padded_offsets,
    format_kind = norm_query_format_kind,
    inner_nblks_s32 = norm_query_inner_nblks_s32,
    inner_blks = norm_query_inner_blks,
    inner_idxs = norm_query_inner_idxs,
    num_handles_s32 = norm_query_num_handles_s32,
    strides = norm_query_strides,
};

// The C enumerators.
inline norm_prop_kind_t convert_to_c(prop_kind kind) {
    return static_cast<norm_prop_kind_t>(kind);
}
inline norm_primitive_kind_t convert_to_c(primitive_kind kind) {
    return static_cast<norm_primitive_kind_t>(kind);
}
inline norm_alg_kind_t convert_to_c(algorithm of) { return static_cast<norm_alg_kind_t>(of); }
inline unsigned convert_to_c(normalization_flags flags) { return static_cast<unsigned>(flags); }
inline norm_scratchpad_mode_t convert_to_c(scratchpad_mode mode) {
    return static_cast<norm_scratchpad_mode_t>(mode);
}
inline norm_fpmath_mode_t convert_to_c(fpmath_mode mode) {
    return static_cast<norm_fpmath_mode_t>(mode);
}
inline norm_accumulation_mode_t convert_to_c(accumulation_mode mode) {
    return static_cast<norm_accumulation_mode_t>(mode);
}
inline norm_rounding_mode_t convert_to_c(rounding_mode mode) {
    return static_cast<norm_rounding_mode_t>(mode);
}
inline norm_quantization_mode_t convert_to_c(quantization_mode mode) {
    return static_cast<norm_quantization_mode_t>(mode);
}
inline norm_query_t convert_to_c(query what) { return static_cast<norm_query_t>(what); }

// ---------------------------------------------------------------------------
// Engine and stream
// ---------------------------------------------------------------------------

// The device that runs primitives.
class engine : public handle<norm_engine, norm_engine_destroy> {
public:
    // See norm_engine_kind_t. There is no GPU engine.
    enum class kind { any = norm_any_engine, cpu = norm_cpu, gpu = norm_gpu };

    engine() = default;
    // Engine number `index` of a kind. There is one, number 0 of kind cpu (or any).
    engine(kind of, std::size_t index) : handle(create(of, index)) {}
    // An engine returned by `owner`, which it keeps alive.
    template <typename Owner>
    engine(const Owner &owner, norm_engine_t object) : handle(owner, object) {}

    // The number of engines of a kind.
    static std::size_t get_count(kind of) {
        return norm_engine_get_count(static_cast<norm_engine_kind_t>(of));
    }
    // The kind that the engine was created with.
    kind get_kind() const {
        norm_engine_kind_t answer = norm_any_engine;
        check(norm_engine_get_kind(get(), &answer));
        return static_cast<kind>(answer);
    }

private:
    static norm_engine_t create(kind of, std::size_t index) {
        norm_engine_t object = nullptr;
        check(norm_engine_create(&object, static_cast<norm_engine_kind_t>(of), index));
        return object;
    }
};

// The C value of a kind.
inline norm_engine_kind_t convert_to_c(engine::kind kind) {
    return static_cast<norm_engine_kind_t>(kind);
}

// Executes primitives in call order. An execution has finished when execute()
// returns.
class stream : public handle<norm_stream, norm_stream_destroy> {
public:
    // Executions are synchronous, so both orders are the same.
    enum class flags : unsigned {
        in_order = norm_stream_in_order,
        out_of_order = norm_stream_out_of_order,
        default_flags = norm_stream_default_flags,
    };

    stream() = default;
    // A stream on an engine.
    explicit stream(const engine &on, flags f = flags::default_flags) : handle(create(on, f)) {}

    // The engine that the stream was created with: equal to it.
    engine get_engine() const {
        norm_engine_t answer = nullptr;
        check(norm_stream_get_engine(get(), &answer));
        return engine(*this, answer);
    }
    // Returns at once: executions are synchronous.
    stream &wait() {
        check(norm_stream_wait(get()));
        return *this;
    }
    // Makes executions on this stream use the caller's threads: `run(pool, count,
    // body, context)` calls body(i, context) once for each i below count. `pool`
    // must stay valid while the stream uses it. `run` must not throw.
    stream &set_parallel_for(norm_parallel_for_t run, void *pool, int num_threads) {
        check(norm_stream_set_parallel_for(get(), run, pool, num_threads));
        return *this;
    }
    // Restores the library's own threads.
    stream &reset_parallel_for() { return set_parallel_for(nullptr, nullptr, 1); }

private:
    static norm_stream_t create(const engine &on, flags f) {
        norm_stream_t object = nullptr;
        check(norm_stream_create(&object, on.get(), static_cast<unsigned>(f)));
        return object;
    }
};

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_CORE_HPP
