// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm.hpp - the header-only C++17 interface of libnorm, over norm.h.
//
// The classes and the order of calls are those of oneDNN 3.x's C++ interface:
//
//     norm::engine engine(norm::engine::kind::cpu, 0);
//     norm::stream stream(engine);
//     norm::memory::desc desc({rows, cols}, norm::memory::data_type::f32,
//             norm::memory::format_tag::ab);
//     norm::layer_normalization_forward::primitive_desc problem(engine,
//             norm::prop_kind::forward_inference, desc, desc, 1e-5f,
//             norm::normalization_flags::rms_norm);
//     norm::layer_normalization_forward(problem).execute(
//             stream, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst}});
//
// Ownership.  Every object is a reference-counted handle to a C object. A copy
//             refers to the same object; the last reference destroys it. Objects
//             returned by queries (engines, descriptors, attributes) may outlive
//             the queried object. The caller owns the buffers that it passes in;
//             they must outlive the memory.
// Errors.     A failing call throws norm::error with the status and the sentence
//             of norm_get_last_error(). Using an empty (default-constructed)
//             object throws norm_invalid_arguments. Without exceptions
//             (NORM_ENABLE_EXCEPTIONS 0, as with -fno-exceptions) it calls the
//             handler of norm::set_error_handler instead; see error_handler in
//             norm_core.hpp.
// Members.    Every primitive `p` and every p::primitive_desc has a default
//             constructor, which makes an empty object, and p(primitive_desc) makes
//             the executable primitive. mean_desc(), src_desc(), ... are the
//             descriptors of arguments, empty if the problem does not have them.
//             `attr` holds attributes; with `allow_empty`, an unimplemented problem
//             makes an empty object instead of failing.
// Threads.    As in norm.h. Handles may be copied from any thread.
// Shapes and formulas are documented at the C functions in norm.h.
#ifndef NORM_HPP
#define NORM_HPP

#include "norm_primitive.hpp"
#include "norm_rope.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// ---------------------------------------------------------------------------
// Layer normalization and RMS normalization
// ---------------------------------------------------------------------------

// Normalizes over the last dimension: dst = (src - mean) / sqrt(variance + epsilon)
// * scale + shift. With normalization_flags::rms_norm there is no mean. See
// norm_layer_normalization_forward_primitive_desc_create for the arguments.
struct layer_normalization_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // Scale and shift in f32; mean and variance in the dimension order of src.
        // With `allow_empty`, an unimplemented problem results in an empty object
        // instead of an exception.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, float epsilon, normalization_flags flags,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, src, dst, memory::desc(), memory::data_type::f32, epsilon,
                    flags, attr, allow_empty) {}
        // The same with scale and shift in `scale_shift` (f32, bf16 or f16).
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, memory::data_type scale_shift, float epsilon,
                normalization_flags flags, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(on, kind, src, dst, memory::desc(), scale_shift, epsilon, flags,
                    attr, allow_empty) {}
        // Scale and shift in f32; mean and variance in the layout of `stat`.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, const memory::desc &stat, float epsilon,
                normalization_flags flags, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_layer_normalization_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), src.get(), dst.get(), stat.get(),
                        epsilon, static_cast<unsigned>(flags), attr.get());
            })) {}
        // All parameters.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, const memory::desc &stat,
                memory::data_type scale_shift, float epsilon, normalization_flags flags,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_layer_normalization_forward_primitive_desc_create_v2(object,
                        on.get(), static_cast<norm_prop_kind_t>(kind), src.get(), dst.get(),
                        stat.get(), static_cast<norm_data_type_t>(scale_shift), epsilon,
                        static_cast<unsigned>(flags), attr.get());
            })) {}

        // The statistics' descriptors; empty for a statistic that the problem does not use.
        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
    };

    layer_normalization_forward() = default;
    explicit layer_normalization_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of layer_normalization_forward. prop_kind::backward computes
// diff_src, diff_scale and diff_shift; backward_data computes diff_src only. The
// forward descriptor may be empty; otherwise its dimensions, epsilon, flags and the attributes
// of residual, gate and partial norm must be the same.
struct layer_normalization_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // Scale, shift and their gradients in f32; mean and variance in the
        // dimension order of src.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src, float epsilon,
                normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, diff_src, diff_dst, src, memory::desc(), epsilon, flags,
                    forward, attr, allow_empty) {}
        // The same with data types for the parameters and for their gradients.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src,
                memory::data_type diff_scale_shift, memory::data_type scale_shift, float epsilon,
                normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, diff_src, diff_dst, src, memory::desc(), diff_scale_shift,
                    scale_shift, epsilon, flags, forward, attr, allow_empty) {}
        // Parameters in f32; mean and variance in the layout of `stat`.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src, const memory::desc &stat,
                float epsilon, normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_layer_normalization_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), diff_src.get(), diff_dst.get(),
                        src.get(), stat.get(), epsilon, static_cast<unsigned>(flags),
                        forward.get_or_null(), attr.get());
            })) {}
        // All parameters.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src, const memory::desc &stat,
                memory::data_type diff_scale_shift, memory::data_type scale_shift, float epsilon,
                normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_layer_normalization_backward_primitive_desc_create_v2(object,
                        on.get(), static_cast<norm_prop_kind_t>(kind), diff_src.get(),
                        diff_dst.get(), src.get(), stat.get(),
                        static_cast<norm_data_type_t>(diff_scale_shift),
                        static_cast<norm_data_type_t>(scale_shift), epsilon,
                        static_cast<unsigned>(flags), forward.get_or_null(), attr.get());
            })) {}

        // The statistics' descriptors; empty for a statistic that the problem does not use.
        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
    };

    layer_normalization_backward() = default;
    explicit layer_normalization_backward(const primitive_desc &problem) : primitive(problem) {}
};

// ---------------------------------------------------------------------------
// Group normalization
// ---------------------------------------------------------------------------

// Normalizes `groups` groups of channels, dimension 1. Execution arguments are those of
// layer_normalization_forward, including those for a residual and a gate. Mean and
// variance have N x groups elements, scale and shift one for each channel; see
// norm_group_normalization_forward_primitive_desc_create.
struct group_normalization_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // `kind` is forward_training or forward_inference.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, memory::dim groups, float epsilon,
                normalization_flags flags, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_group_normalization_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), src.get(), dst.get(), groups,
                        epsilon, static_cast<unsigned>(flags), attr.get());
            })) {}

        // The statistics' descriptors; empty for a statistic that the problem does not use.
        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
    };

    group_normalization_forward() = default;
    explicit group_normalization_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of group_normalization_forward. prop_kind::backward computes diff_src,
// diff_scale and diff_shift; backward_data computes diff_src only. The forward
// descriptor may be empty; otherwise its dimensions, groups, epsilon, flags and the attributes
// of residual, gate and partial norm must be the same.
struct group_normalization_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // `kind` is backward or backward_data.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src, memory::dim groups,
                float epsilon, normalization_flags flags,
                const group_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_group_normalization_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), diff_src.get(), diff_dst.get(),
                        src.get(), groups, epsilon, static_cast<unsigned>(flags),
                        forward.get_or_null(), attr.get());
            })) {}

        // The statistics' descriptors; empty for a statistic that the problem does not use.
        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
    };

    group_normalization_backward() = default;
    explicit group_normalization_backward(const primitive_desc &problem) : primitive(problem) {}
};

// ---------------------------------------------------------------------------
// Softmax
// ---------------------------------------------------------------------------

// Along dimension `axis`: algorithm::softmax_accurate, softmax_log or
// softmax_accurate_inf_as_zero. Arguments are NORM_ARG_SRC, NORM_ARG_DST and those that
// the attributes add; see norm_softmax_forward_primitive_desc_create.
struct softmax_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // `kind` is forward_training or forward_inference; dst may have the layout any.
        primitive_desc(const engine &on, prop_kind kind, algorithm of, const memory::desc &src,
                const memory::desc &dst, int axis, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_softmax_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), static_cast<norm_alg_kind_t>(of),
                        src.get(), dst.get(), axis, attr.get());
            })) {}
    };

    softmax_forward() = default;
    explicit softmax_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of softmax_forward, from its dst. The forward descriptor is not read, as in
// oneDNN: pass its algorithm and axis again.
struct softmax_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // diff_src and diff_dst may have the layout any.
        primitive_desc(const engine &on, algorithm of, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &dst, int axis,
                const softmax_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_softmax_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_alg_kind_t>(of), diff_src.get(), diff_dst.get(),
                        dst.get(), axis, forward.get_or_null(), attr.get());
            })) {}
    };

    softmax_backward() = default;
    explicit softmax_backward(const primitive_desc &problem) : primitive(problem) {}
};

// ---------------------------------------------------------------------------
// Reorder
// ---------------------------------------------------------------------------

// Copies a tensor into another layout and data type. Arguments are NORM_ARG_SRC,
// NORM_ARG_DST and those that the attributes add; see
// norm_reorder_primitive_desc_create.
struct reorder : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // Both engines are the same.
        primitive_desc(const engine &src_engine, const memory::desc &src,
                const engine &dst_engine, const memory::desc &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_reorder_primitive_desc_create(object, src.get(), src_engine.get(),
                        dst.get(), dst_engine.get(), attr.get());
            })) {}
        // The same with descriptors and engines taken from memories.
        primitive_desc(const memory &src, const memory &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(src.get_engine(), src.get_desc(), dst.get_engine(), dst.get_desc(),
                    attr, allow_empty) {}

        // The engine of src, and that of dst.
        engine get_src_engine() const {
            return engine(*this, ask<norm_engine_t>(query::reorder_src_engine));
        }
        engine get_dst_engine() const {
            return engine(*this, ask<norm_engine_t>(query::reorder_dst_engine));
        }
    };

    reorder() = default;
    explicit reorder(const primitive_desc &problem) : primitive(problem) {}
    // The reorder between the descriptors of two memories.
    reorder(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr())
        : primitive(primitive_desc(src, dst, attr)) {}

    // With the arguments by their ids.
    using primitive::execute;
    // Copies src to dst. For reorders without further arguments.
    void execute(const stream &on, const memory &src, const memory &dst) const {
        execute(on, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst}});
    }
};

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

// The name of a value, as in the C enumerators without their prefix.
inline std::string to_string(status s) {
    return norm_status2str(static_cast<norm_status_t>(s));
}
inline std::string to_string(memory::data_type type) {
    return norm_dt2str(static_cast<norm_data_type_t>(type));
}
inline std::string to_string(memory::format_tag tag) {
    return norm_fmt_tag2str(static_cast<norm_format_tag_t>(tag));
}
inline std::string to_string(prop_kind kind) {
    return norm_prop_kind2str(static_cast<norm_prop_kind_t>(kind));
}
inline std::string to_string(engine::kind kind) {
    return norm_engine_kind2str(static_cast<norm_engine_kind_t>(kind));
}
inline std::string to_string(memory::format_kind kind) {
    return norm_fmt_kind2str(static_cast<norm_format_kind_t>(kind));
}
inline std::string to_string(primitive::kind kind) {
    return norm_prim_kind2str(static_cast<norm_primitive_kind_t>(kind));
}
inline std::string to_string(algorithm of) {
    return norm_alg_kind2str(static_cast<norm_alg_kind_t>(of));
}
inline std::string to_string(scratchpad_mode mode) {
    return norm_scratchpad_mode2str(static_cast<norm_scratchpad_mode_t>(mode));
}
inline std::string to_string(fpmath_mode mode) {
    return norm_fpmath_mode2str(static_cast<norm_fpmath_mode_t>(mode));
}
inline std::string to_string(accumulation_mode mode) {
    return norm_accumulation_mode2str(static_cast<norm_accumulation_mode_t>(mode));
}
inline std::string to_string(rounding_mode mode) {
    return norm_rounding_mode2str(static_cast<norm_rounding_mode_t>(mode));
}
inline std::string to_string(quantization_mode mode) {
    return norm_quantization_mode2str(static_cast<norm_quantization_mode_t>(mode));
}

// ---------------------------------------------------------------------------
// Control of the whole library
// ---------------------------------------------------------------------------

// See norm_cpu_isa_t in norm_isa.h.
enum class cpu_isa {
    isa_default = norm_cpu_isa_default,
    sse41 = norm_cpu_isa_sse41,
    avx = norm_cpu_isa_avx,
    avx2 = norm_cpu_isa_avx2,
    avx2_vnni = norm_cpu_isa_avx2_vnni,
    avx2_vnni_2 = norm_cpu_isa_avx2_vnni_2,
    avx512_core = norm_cpu_isa_avx512_core,
    avx512_core_vnni = norm_cpu_isa_avx512_core_vnni,
    avx512_core_bf16 = norm_cpu_isa_avx512_core_bf16,
    avx10_1_512 = norm_cpu_isa_avx10_1_512,
    avx512_core_fp16 = norm_cpu_isa_avx512_core_fp16,
    avx10_1_512_amx = norm_cpu_isa_avx10_1_512_amx,
    avx512_core_amx = norm_cpu_isa_avx512_core_amx,
    avx10_1_512_amx_fp16 = norm_cpu_isa_avx10_1_512_amx_fp16,
    avx512_core_amx_fp16 = norm_cpu_isa_avx512_core_amx_fp16,
    avx10_2 = norm_cpu_isa_avx10_2_512,
    avx10_2_512 = norm_cpu_isa_avx10_2_512,
    avx10_2_amx_2 = norm_cpu_isa_avx10_2_512_amx_2,
    avx10_2_512_amx_2 = norm_cpu_isa_avx10_2_512_amx_2,
    portable = norm_cpu_isa_portable,
    neon = norm_cpu_isa_neon,
};

// The name of an instruction set.
inline std::string to_string(cpu_isa isa) {
    return norm_cpu_isa2str(static_cast<norm_cpu_isa_t>(isa));
}
// Limits the instruction set of descriptors created from now on.
inline void set_max_cpu_isa(cpu_isa isa) {
    check(norm_set_max_cpu_isa(static_cast<norm_cpu_isa_t>(isa)));
}
// The instruction set of descriptors created from now on.
inline cpu_isa get_effective_cpu_isa() {
    return static_cast<cpu_isa>(norm_get_effective_cpu_isa());
}
// Preferred instructions. A hint that the library ignores.
enum class cpu_isa_hints {
    no_hints = norm_cpu_isa_no_hints,
    prefer_ymm = norm_cpu_isa_prefer_ymm,
};

// The name of a hint.
inline std::string to_string(cpu_isa_hints hints) {
    return norm_cpu_isa_hints2str(static_cast<norm_cpu_isa_hints_t>(hints));
}
// Stores the hint; see norm_set_cpu_isa_hints.
inline void set_cpu_isa_hints(cpu_isa_hints hints) {
    check(norm_set_cpu_isa_hints(static_cast<norm_cpu_isa_hints_t>(hints)));
}
// The stored hint.
inline cpu_isa_hints get_cpu_isa_hints() {
    return static_cast<cpu_isa_hints>(norm_get_cpu_isa_hints());
}
// The math mode of attributes created from now on.
inline void set_default_fpmath_mode(fpmath_mode mode) {
    check(norm_set_default_fpmath_mode(static_cast<norm_fpmath_mode_t>(mode)));
}
// That mode.
inline fpmath_mode get_default_fpmath_mode() {
    norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
    check(norm_get_default_fpmath_mode(&answer));
    return static_cast<fpmath_mode>(answer);
}
// Stored for compatibility; nothing is cached.
inline void set_primitive_cache_capacity(int capacity) {
    check(norm_set_primitive_cache_capacity(capacity));
}
// The stored capacity.
inline int get_primitive_cache_capacity() {
    int answer = 0;
    check(norm_get_primitive_cache_capacity(&answer));
    return answer;
}
// The number of threads that an execution may use, including the calling thread. 0
// restores the default.
inline void set_num_threads(int num_threads) { check(norm_set_num_threads(num_threads)); }
// That number.
inline int get_num_threads() { return norm_get_num_threads(); }
// The number of threads that took part in this thread's last execution.
inline int get_last_num_threads() { return norm_get_last_num_threads(); }
// 0 prints nothing, 1 executions, 2 creations as well; on standard output.
inline void set_verbose(int level) { check(norm_set_verbose(level)); }

// See norm.h.
using version_t = norm_version_t;
// The version of the library, which lives as long as the process.
inline const version_t &version() { return *norm_version(); }
// The size of an element in bytes.
inline std::size_t data_type_size(memory::data_type type) {
    return norm_data_type_size(static_cast<norm_data_type_t>(type));
}
// The distance from 1 to the next larger number; 0 for integers.
inline double data_type_epsilon(memory::data_type type) {
    return norm_data_type_epsilon(static_cast<norm_data_type_t>(type));
}

} // namespace NORM_HPP_MODE
} // namespace norm

#include "norm_elementwise.hpp"
#include "norm_explain.hpp"
#include "norm_gated.hpp"
#include "norm_sdpa.hpp"
#include "norm_kv_cache.hpp"

#endif // NORM_HPP
