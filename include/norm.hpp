// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm.hpp - the C++17 interface of libnorm; header only, over norm.h.
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
// Ownership.  Every object is a counted reference to a C object: a copy is the
//             same object, the last one to go destroys it. What an object answers
//             (an engine, a descriptor, attributes) may outlive that object.
//             Buffers handed in stay the caller's and must outlive the memory.
// Errors.     A failing call throws norm::error, with the status and the sentence
//             of norm_get_last_error(). An empty object (default constructed)
//             throws norm_invalid_arguments when it is used.
// Threads.    As in norm.h; copying a reference is safe from any thread.
// Shapes and formulas stand in norm.h, which is what every function here calls.
#ifndef NORM_HPP
#define NORM_HPP

#include "norm.h"
#include "norm_tags.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace norm {

// What is thrown. `status` is never norm_success; what() is the sentence.
struct error : std::runtime_error {
    error(norm_status_t code, const std::string &sentence)
        : std::runtime_error(sentence), status(code) {}
    norm_status_t status;
};

// Throws if a C function failed. For calls of norm.h beside this header.
inline void check(norm_status_t status) {
    if (status != norm_success) throw error(status, norm_get_last_error());
}

// A counted reference to a C object.
template <typename Object, norm_status_t (*destroy)(Object *)>
class handle {
public:
    // No object.
    handle() = default;
    // Takes over the ownership of `object`.
    explicit handle(Object *object) : object_(object, destroy) {}
    // The C object, still owned by this reference; throws if there is none.
    Object *get() const {
        if (!object_) throw error(norm_invalid_arguments, "the object is empty");
        return object_.get();
    }
    // The C object, or NULL.
    Object *get_or_null() const noexcept { return object_.get(); }
    // Lets go of the object.
    void reset() noexcept { object_.reset(); }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    // The same object, not an equal one.
    bool operator==(const handle &other) const noexcept { return object_ == other.object_; }
    bool operator!=(const handle &other) const noexcept { return object_ != other.object_; }

protected:
    // `object` belongs to `owner`, which this reference keeps alive.
    template <typename Owner>
    handle(const Owner &owner, Object *object) : object_(owner.object_, object) {}

private:
    template <typename O, norm_status_t (*d)(O *)>
    friend class handle;
    std::shared_ptr<Object> object_;
};

// ---------------------------------------------------------------------------
// Enumerations that belong to no class
// ---------------------------------------------------------------------------

enum class status {
    success = norm_success,
    out_of_memory = norm_out_of_memory,
    invalid_arguments = norm_invalid_arguments,
    unimplemented = norm_unimplemented,
    last_impl_reached = norm_last_impl_reached,
    runtime_error = norm_runtime_error,
    not_required = norm_not_required,
};

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

// Functions of post-operations; the formulas stand at norm_alg_kind_t.
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
};

enum class normalization_flags : unsigned {
    none = norm_normalization_flags_none,
    use_global_stats = norm_use_global_stats,
    use_scale = norm_use_scale,
    use_shift = norm_use_shift,
    fuse_norm_relu = norm_fuse_norm_relu,
    fuse_norm_add_relu = norm_fuse_norm_add_relu,
    rms_norm = norm_rms_norm,
};

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

enum class scratchpad_mode {
    library = norm_scratchpad_mode_library,
    user = norm_scratchpad_mode_user,
};

enum class fpmath_mode {
    strict = norm_fpmath_mode_strict,
    bf16 = norm_fpmath_mode_bf16,
    f16 = norm_fpmath_mode_f16,
    any = norm_fpmath_mode_any,
    tf32 = norm_fpmath_mode_tf32,
};

enum class accumulation_mode {
    strict = norm_accumulation_mode_strict,
    relaxed = norm_accumulation_mode_relaxed,
    any = norm_accumulation_mode_any,
    s32 = norm_accumulation_mode_s32,
    f32 = norm_accumulation_mode_f32,
    f16 = norm_accumulation_mode_f16,
};

enum class rounding_mode {
    environment = norm_rounding_mode_environment,
    stochastic = norm_rounding_mode_stochastic,
};

enum class quantization_mode {
    undef = norm_quantization_mode_undef,
    static_sazp = norm_quantization_mode_static_sazp,
    dynamic_mx = norm_quantization_mode_dynamic_mx,
    dynamic_fp = norm_quantization_mode_dynamic_fp,
};

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

// ---------------------------------------------------------------------------
// Engine and stream
// ---------------------------------------------------------------------------

// Where primitives run.
class engine : public handle<norm_engine, norm_engine_destroy> {
public:
    enum class kind { any = norm_any_engine, cpu = norm_cpu, gpu = norm_gpu };

    engine() = default;
    // The engine number `index` of a kind; there is one, for cpu (and any).
    engine(kind of, std::size_t index) : handle(create(of, index)) {}
    // An engine that `owner` answered; it keeps the owner alive.
    template <typename Owner>
    engine(const Owner &owner, norm_engine_t object) : handle(owner, object) {}

    static std::size_t get_count(kind of) {
        return norm_engine_get_count(static_cast<norm_engine_kind_t>(of));
    }
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

// What executes primitives, in the order of the calls. An execution is finished
// when execute() returns.
class stream : public handle<norm_stream, norm_stream_destroy> {
public:
    enum class flags : unsigned {
        in_order = norm_stream_in_order,
        out_of_order = norm_stream_out_of_order,
        default_flags = norm_stream_default_flags,
    };

    stream() = default;
    explicit stream(const engine &on, flags f = flags::default_flags) : handle(create(on, f)) {}

    engine get_engine() const {
        norm_engine_t answer = nullptr;
        check(norm_stream_get_engine(get(), &answer));
        return engine(*this, answer);
    }
    // Returns at once: nothing is ever pending.
    stream &wait() {
        check(norm_stream_wait(get()));
        return *this;
    }
    // Executions on this stream use the caller's threads: `run(pool, count, body,
    // context)` calls body(i, context) once for each i below count. `pool` must
    // live as long as the stream uses it; `run` must not throw.
    stream &set_parallel_for(norm_parallel_for_t run, void *pool, int num_threads) {
        check(norm_stream_set_parallel_for(get(), run, pool, num_threads));
        return *this;
    }
    // Back to the library's own threads.
    stream &reset_parallel_for() { return set_parallel_for(nullptr, nullptr, 1); }

private:
    static norm_stream_t create(const engine &on, flags f) {
        norm_stream_t object = nullptr;
        check(norm_stream_create(&object, on.get(), static_cast<unsigned>(f)));
        return object;
    }
};

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

// A descriptor and a buffer.
class memory : public handle<norm_memory, norm_memory_destroy> {
public:
    using dim = norm_dim_t;
    using dims = std::vector<dim>; // dimensions or strides; strides count elements

    enum class data_type {
        undef = norm_data_type_undef,
        f16 = norm_f16,
        bf16 = norm_bf16,
        f32 = norm_f32,
        s32 = norm_s32,
        s8 = norm_s8,
        u8 = norm_u8,
        f64 = norm_f64,
        boolean = norm_boolean,
        f8_e5m2 = norm_f8_e5m2,
        f8_e4m3 = norm_f8_e4m3,
        s4 = norm_s4,
        u4 = norm_u4,
        e8m0 = norm_e8m0,
        f4_e2m1 = norm_f4_e2m1,
        f4_e3m0 = norm_f4_e3m0,
        s64 = norm_s64,
    };

    enum class format_kind {
        undef = norm_format_kind_undef,
        any = norm_format_kind_any,
        blocked = norm_blocked,
        opaque = norm_format_kind_opaque,
        sparse = norm_format_kind_sparse,
        host_scalar = norm_format_kind_host_scalar,
    };

    using format_tag = norm::format_tag;

    // Dimensions, data type and layout, without data.
    class desc : public handle<norm_memory_desc, norm_memory_desc_destroy> {
    public:
        // No dimensions: stands for an argument that is left out.
        desc() : desc(dims {}, data_type::undef, format_tag::undef) {}
        // The dense layout that a tag names, or any, for a primitive descriptor
        // to choose.
        desc(const dims &sizes, data_type type, format_tag tag)
            : handle(create(sizes, type, tag)) {}
        // Element (i0, i1, ...) at i0*strides[0] + i1*strides[1] + ...; no strides
        // at all: dense, row-major.
        desc(const dims &sizes, data_type type, const dims &strides)
            : handle(create(sizes, type, strides)) {}
        // Takes over a C descriptor.
        explicit desc(norm_memory_desc_t object) : handle(object) {}
        // A copy of a descriptor that some object owns; empty for NULL.
        static desc copy_of(const_norm_memory_desc_t existing) {
            if (existing == nullptr) return desc();
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_clone(&object, existing));
            return desc(object);
        }

        // The layout that letters name as those of tags do, which need not be a tag's: "cBA6a7b".
        static desc with_letters(const dims &sizes, data_type type, const std::string &letters) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_string_tag(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type), letters.c_str()));
            return desc(object);
        }
        // This one with elements of another type.
        desc with_data_type(data_type type) const {
            desc changed = copy_of(get());
            check(norm_memory_desc_set_data_type(
                    changed.get(), static_cast<norm_data_type_t>(type)));
            return changed;
        }
        // The descriptor that the bytes of get_blob() stand for.
        explicit desc(const std::vector<std::uint8_t> &blob) : handle(create(blob)) {}

        // A part of this tensor, used with this tensor's buffer. With `allow_empty`,
        // what is not built makes an empty descriptor, here and below.
        desc submemory_desc(
                const dims &sizes, const dims &offsets, bool allow_empty = false) const {
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_create_submemory(
                        object, get(), sizes.data(), offsets.data());
            });
        }
        // The same elements as a tensor of other dimensions.
        desc reshape(const dims &sizes, bool allow_empty = false) const {
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_reshape(
                        object, get(), static_cast<int>(sizes.size()), sizes.data());
            });
        }
        // The same elements; dimension i becomes dimension permutation[i].
        desc permute_axes(const std::vector<int> &permutation, bool allow_empty = false) const {
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_permute_axes(object, get(), permutation.data());
            });
        }
        // The descriptor as bytes.
        std::vector<std::uint8_t> get_blob() const {
            std::size_t size = 0;
            check(norm_memory_desc_get_blob(nullptr, &size, get()));
            std::vector<std::uint8_t> blob(size);
            check(norm_memory_desc_get_blob(blob.data(), &size, get()));
            return blob;
        }

        // Equal as tensors, be it the same object or not.
        bool operator==(const desc &other) const {
            return norm_memory_desc_equal(get_or_null(), other.get_or_null()) != 0;
        }
        bool operator!=(const desc &other) const { return !(*this == other); }
        // Bytes from the first to one past the last element; 0 for kind any.
        std::size_t get_size() const { return norm_memory_desc_get_size(get()); }
        // The same of one of the buffers.
        std::size_t get_size(int index) const {
            return norm_memory_desc_get_size_v2(get(), index);
        }
        int get_num_handles() const {
            int answer = 0;
            check(norm_memory_desc_query_v2(get(), norm_query_num_handles_s32, 0, &answer));
            return answer;
        }
        bool is_zero() const { return get_ndims() == 0; }
        int get_ndims() const { return ask<int>(query::ndims_s32); }
        dims get_dims() const { return ask_dims(query::dims); }
        dims get_padded_dims() const { return ask_dims(query::padded_dims); }
        dims get_padded_offsets() const { return ask_dims(query::padded_offsets); }
        // Throws for kind any and for an empty descriptor.
        dims get_strides() const { return ask_dims(query::strides); }
        dim get_submemory_offset() const { return ask<dim>(query::submemory_offset_s64); }
        int get_inner_nblks() const { return ask<int>(query::inner_nblks_s32); }
        // Sizes of the inner blocks, and the dimensions that they cut.
        dims get_inner_blks() const { return ask_dims(query::inner_blks, get_inner_nblks()); }
        dims get_inner_idxs() const { return ask_dims(query::inner_idxs, get_inner_nblks()); }
        data_type get_data_type() const {
            return static_cast<data_type>(ask<norm_data_type_t>(query::data_type));
        }
        format_kind get_format_kind() const {
            return static_cast<format_kind>(ask<norm_format_kind_t>(query::format_kind));
        }

    private:
        template <typename T>
        T ask(query what) const {
            T answer {};
            check(norm_memory_desc_query(get(), static_cast<norm_query_t>(what), &answer));
            return answer;
        }
        dims ask_dims(query what) const { return ask_dims(what, get_ndims()); }
        dims ask_dims(query what, int count) const {
            const norm_dims_t *answer = ask<const norm_dims_t *>(what);
            return dims(*answer, *answer + count);
        }
        template <typename Make>
        static desc derive(bool allow_empty, Make make) {
            norm_memory_desc_t object = nullptr;
            const norm_status_t status = make(&object);
            if (allow_empty && status != norm_success) return desc();
            check(status);
            return desc(object);
        }
        static norm_memory_desc_t create(const std::vector<std::uint8_t> &blob) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_blob(&object, blob.data()));
            return object;
        }
        static norm_memory_desc_t create(const dims &sizes, data_type type, format_tag tag) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_tag(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type),
                    static_cast<norm_format_tag_t>(tag)));
            return object;
        }
        static norm_memory_desc_t create(const dims &sizes, data_type type, const dims &strides) {
            if (!strides.empty() && strides.size() != sizes.size())
                throw error(norm_invalid_arguments,
                        "norm::memory::desc: strides has another length than sizes");
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_strides(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type),
                    strides.empty() ? nullptr : strides.data()));
            return object;
        }
    };

    memory() = default;
    // The library allocates the buffer, zero-filled, and frees it.
    memory(const desc &of, const engine &on) : memory(of, on, NORM_MEMORY_ALLOCATE) {}
    // The caller's buffer of at least of.get_size() bytes, or NULL: no buffer yet.
    memory(const desc &of, const engine &on, void *buffer) : handle(create(of, on, buffer)) {}
    // The same with a list of buffers: one.
    memory(const desc &of, const engine &on, std::vector<void *> buffers)
        : handle(create(of, on, buffers)) {}

    desc get_desc() const {
        const_norm_memory_desc_t answer = nullptr;
        check(norm_memory_get_memory_desc(get(), &answer));
        return desc::copy_of(answer);
    }
    engine get_engine() const {
        norm_engine_t answer = nullptr;
        check(norm_memory_get_engine(get(), &answer));
        return engine(*this, answer);
    }
    // The buffer, or NULL.
    void *get_data_handle() const {
        void *answer = nullptr;
        check(norm_memory_get_data_handle(get(), &answer));
        return answer;
    }
    // The buffer with a number, 0, here and below.
    void *get_data_handle(int index) const {
        void *answer = nullptr;
        check(norm_memory_get_data_handle_v2(get(), &answer, index));
        return answer;
    }
    // Replaces the buffer; one that the library allocated is freed.
    void set_data_handle(void *buffer) const {
        check(norm_memory_set_data_handle(get(), buffer));
    }
    void set_data_handle(void *buffer, int index) const {
        check(norm_memory_set_data_handle_v2(get(), buffer, index));
    }
    // An address for the host to read and write, valid until unmap_data.
    template <typename T = void>
    T *map_data() const {
        void *answer = nullptr;
        check(norm_memory_map_data(get(), &answer));
        return static_cast<T *>(answer);
    }
    template <typename T = void>
    T *map_data(int index) const {
        void *answer = nullptr;
        check(norm_memory_map_data_v2(get(), &answer, index));
        return static_cast<T *>(answer);
    }
    void unmap_data(void *mapped) const { check(norm_memory_unmap_data(get(), mapped)); }
    void unmap_data(void *mapped, int index) const {
        check(norm_memory_unmap_data_v2(get(), mapped, index));
    }

private:
    static norm_memory_t create(const desc &of, const engine &on, void *buffer) {
        norm_memory_t object = nullptr;
        check(norm_memory_create(&object, of.get(), on.get(), buffer));
        return object;
    }
    static norm_memory_t create(
            const desc &of, const engine &on, std::vector<void *> &buffers) {
        norm_memory_t object = nullptr;
        check(norm_memory_create_v2(&object, of.get(), on.get(),
                static_cast<int>(buffers.size()), buffers.data()));
        return object;
    }
};

// ---------------------------------------------------------------------------
// Attributes, primitive descriptors, primitives
// ---------------------------------------------------------------------------

// What is done to each element of an output, in order, before it is rounded.
class post_ops : public handle<norm_post_ops, norm_post_ops_destroy> {
public:
    // An empty list.
    post_ops() : handle(create()) {}
    // Takes over a C list.
    explicit post_ops(norm_post_ops_t object) : handle(object) {}
    // A copy of a list that some object owns.
    static post_ops copy_of(const_norm_post_ops_t existing) {
        norm_post_ops_t object = nullptr;
        check(norm_post_ops_clone(&object, existing));
        return post_ops(object);
    }

    int len() const { return norm_post_ops_len(get()); }
    norm_primitive_kind_t kind(int index) const { return norm_post_ops_get_kind(get(), index); }

    void append_sum(float scale = 1.f, std::int32_t zero_point = 0,
            memory::data_type type = memory::data_type::undef) {
        check(norm_post_ops_append_sum(
                get(), scale, zero_point, static_cast<norm_data_type_t>(type)));
    }
    void get_params_sum(int index, float &scale, std::int32_t &zero_point,
            memory::data_type &type) const {
        norm_data_type_t its = norm_data_type_undef;
        check(norm_post_ops_get_params_sum(get(), index, &scale, &zero_point, &its));
        type = static_cast<memory::data_type>(its);
    }
    void append_eltwise(algorithm of, float alpha, float beta) {
        check(norm_post_ops_append_eltwise(
                get(), static_cast<norm_alg_kind_t>(of), alpha, beta));
    }
    void get_params_eltwise(int index, algorithm &of, float &alpha, float &beta) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        check(norm_post_ops_get_params_eltwise(get(), index, &its, &alpha, &beta));
        of = static_cast<algorithm>(its);
    }
    // Its operand is the argument NORM_ARG_ATTR_MULTIPLE_POST_OP(i) | NORM_ARG_SRC_1.
    void append_binary(algorithm of, const memory::desc &src1) {
        check(norm_post_ops_append_binary(
                get(), static_cast<norm_alg_kind_t>(of), src1.get()));
    }
    // With the second operand that binary_select has, ... | NORM_ARG_SRC_2.
    void append_binary(algorithm of, const memory::desc &src1, const memory::desc &src2) {
        check(norm_post_ops_append_binary_v2(
                get(), static_cast<norm_alg_kind_t>(of), src1.get(), src2.get()));
    }
    void get_params_binary(int index, algorithm &of, memory::desc &src1) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        const_norm_memory_desc_t first = nullptr;
        check(norm_post_ops_get_params_binary(get(), index, &its, &first));
        of = static_cast<algorithm>(its);
        src1 = memory::desc::copy_of(first);
    }
    void get_params_binary(
            int index, algorithm &of, memory::desc &src1, memory::desc &src2) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        const_norm_memory_desc_t first = nullptr, second = nullptr;
        check(norm_post_ops_get_params_binary_v2(get(), index, &its, &first, &second));
        of = static_cast<algorithm>(its);
        src1 = memory::desc::copy_of(first);
        src2 = memory::desc::copy_of(second);
    }
    void append_prelu(int mask) { check(norm_post_ops_append_prelu(get(), mask)); }
    void get_params_prelu(int index, int &mask) const {
        check(norm_post_ops_get_params_prelu(get(), index, &mask));
    }
    void append_dw(memory::data_type weights, memory::data_type bias, memory::data_type dst,
            memory::dim kernel_size, memory::dim stride_size, memory::dim padding_l_size) {
        check(norm_post_ops_append_dw(get(), static_cast<norm_data_type_t>(weights),
                static_cast<norm_data_type_t>(bias), static_cast<norm_data_type_t>(dst),
                kernel_size, stride_size, padding_l_size));
    }
    void get_params_dw(int index, memory::data_type &weights, memory::data_type &bias,
            memory::data_type &dst, memory::dim &kernel_size, memory::dim &stride_size,
            memory::dim &padding_l_size) const {
        norm_data_type_t types[3] = {};
        check(norm_post_ops_get_params_dw(get(), index, &types[0], &types[1], &types[2],
                &kernel_size, &stride_size, &padding_l_size));
        weights = static_cast<memory::data_type>(types[0]);
        bias = static_cast<memory::data_type>(types[1]);
        dst = static_cast<memory::data_type>(types[2]);
    }

private:
    static norm_post_ops_t create() {
        norm_post_ops_t object = nullptr;
        check(norm_post_ops_create(&object));
        return object;
    }
};

// How a primitive is to run, beyond its problem.
class primitive_attr : public handle<norm_primitive_attr, norm_primitive_attr_destroy> {
public:
    // The defaults: scratchpad by the library.
    primitive_attr() : handle(create()) {}
    // Takes over C attributes.
    explicit primitive_attr(norm_primitive_attr_t object) : handle(object) {}
    // A copy of attributes that some object owns.
    static primitive_attr copy_of(const_norm_primitive_attr_t existing) {
        norm_primitive_attr_t object = nullptr;
        check(norm_primitive_attr_clone(&object, existing));
        return primitive_attr(object);
    }

    scratchpad_mode get_scratchpad_mode() const {
        norm_scratchpad_mode_t answer = norm_scratchpad_mode_library;
        check(norm_primitive_attr_get_scratchpad_mode(get(), &answer));
        return static_cast<scratchpad_mode>(answer);
    }
    void set_scratchpad_mode(scratchpad_mode mode) {
        check(norm_primitive_attr_set_scratchpad_mode(
                get(), static_cast<norm_scratchpad_mode_t>(mode)));
    }
    fpmath_mode get_fpmath_mode() const {
        norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
        check(norm_primitive_attr_get_fpmath_mode(get(), &answer));
        return static_cast<fpmath_mode>(answer);
    }
    void get_fpmath_mode(fpmath_mode &mode, bool &apply_to_int) const {
        norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
        int ints = 0;
        check(norm_primitive_attr_get_fpmath_mode_v2(get(), &answer, &ints));
        mode = static_cast<fpmath_mode>(answer);
        apply_to_int = ints != 0;
    }
    void set_fpmath_mode(fpmath_mode mode) {
        check(norm_primitive_attr_set_fpmath_mode(get(), static_cast<norm_fpmath_mode_t>(mode)));
    }
    void set_fpmath_mode(fpmath_mode mode, bool apply_to_int) {
        check(norm_primitive_attr_set_fpmath_mode_v2(
                get(), static_cast<norm_fpmath_mode_t>(mode), apply_to_int));
    }
    accumulation_mode get_accumulation_mode() const {
        norm_accumulation_mode_t answer = norm_accumulation_mode_strict;
        check(norm_primitive_attr_get_accumulation_mode(get(), &answer));
        return static_cast<accumulation_mode>(answer);
    }
    void set_accumulation_mode(accumulation_mode mode) {
        check(norm_primitive_attr_set_accumulation_mode(
                get(), static_cast<norm_accumulation_mode_t>(mode)));
    }
    bool get_deterministic() const {
        int answer = 0;
        check(norm_primitive_attr_get_deterministic(get(), &answer));
        return answer != 0;
    }
    void set_deterministic(bool value) {
        check(norm_primitive_attr_set_deterministic(get(), value));
    }
    rounding_mode get_rounding_mode(int arg) const {
        norm_rounding_mode_t answer = norm_rounding_mode_environment;
        check(norm_primitive_attr_get_rounding(get(), arg, &answer));
        return static_cast<rounding_mode>(answer);
    }
    void set_rounding_mode(int arg, rounding_mode mode) {
        check(norm_primitive_attr_set_rounding(
                get(), arg, static_cast<norm_rounding_mode_t>(mode)));
    }

    // Gives an argument a scale, the argument NORM_ARG_ATTR_SCALES | arg.
    void set_scales_mask(int arg, int mask) {
        check(norm_primitive_attr_set_scales_mask(get(), arg, mask));
    }
    // The same with groups (none are built) and a type of the scales.
    void set_scales(int arg, int mask, const memory::dims &groups,
            memory::data_type type = memory::data_type::f32) {
        check(norm_primitive_attr_set_scales(get(), arg, mask, static_cast<int>(groups.size()),
                groups.data(), static_cast<norm_data_type_t>(type)));
    }
    void set_scales(int arg, int mask, const memory::dims &groups, memory::data_type type,
            bool is_on_host) {
        check(norm_primitive_attr_set_scales_v2(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type), is_on_host));
    }
    void set_scales(int arg, int mask, const memory::dims &groups, memory::data_type type,
            bool is_on_host, quantization_mode mode) {
        check(norm_primitive_attr_set_scales_v3(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type), is_on_host,
                static_cast<norm_quantization_mode_t>(mode)));
    }
    // Gives an argument a zero point, the argument NORM_ARG_ATTR_ZERO_POINTS | arg.
    void set_zero_points_mask(int arg, int mask) {
        check(norm_primitive_attr_set_zero_points_mask(get(), arg, mask));
    }
    void set_zero_points(int arg, int mask, const memory::dims &groups,
            memory::data_type type = memory::data_type::s32) {
        check(norm_primitive_attr_set_zero_points(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type)));
    }
    void set_zero_points(int arg, int mask, const memory::dims &groups, memory::data_type type,
            bool is_on_host) {
        check(norm_primitive_attr_set_zero_points_v2(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type), is_on_host));
    }
    // A copy of the post-operations.
    post_ops get_post_ops() const {
        const_norm_post_ops_t answer = nullptr;
        check(norm_primitive_attr_get_post_ops(get(), &answer));
        return post_ops::copy_of(answer);
    }
    void set_post_ops(const post_ops &list) {
        check(norm_primitive_attr_set_post_ops(get(), list.get()));
    }

private:
    static norm_primitive_attr_t create() {
        norm_primitive_attr_t object = nullptr;
        check(norm_primitive_attr_create(&object));
        return object;
    }
};

// A problem, checked, with the implementation chosen.
class primitive_desc_base : public handle<norm_primitive_desc, norm_primitive_desc_destroy> {
public:
    primitive_desc_base() = default;
    // Takes over a C primitive descriptor.
    explicit primitive_desc_base(norm_primitive_desc_t object) : handle(object) {}
    // A copy of a primitive descriptor that some object owns.
    static primitive_desc_base copy_of(const_norm_primitive_desc_t existing) {
        norm_primitive_desc_t object = nullptr;
        check(norm_primitive_desc_clone(&object, existing));
        return primitive_desc_base(object);
    }

    // Moves to the next implementation; false, and no change, after the last.
    // Every reference to this object sees it.
    bool next_impl() {
        const norm_status_t status = norm_primitive_desc_next_impl(get());
        if (status == norm_last_impl_reached) return false;
        check(status);
        return true;
    }

    // The answer to `what`, of the type that stands at norm_query_t.
    template <typename T>
    T ask(query what, int index = 0) const {
        T answer {};
        check(norm_primitive_desc_query(
                get(), static_cast<norm_query_t>(what), index, &answer));
        return answer;
    }
    // The number that a *_s32 query answers; 0 on failure.
    int query_s32(query what) const {
        return norm_primitive_desc_query_s32(get(), static_cast<norm_query_t>(what), 0);
    }
    // The descriptor that a *_md query answers; empty if the problem has none.
    memory::desc query_md(query what, int index = 0) const {
        return memory::desc::copy_of(norm_primitive_desc_query_md(
                get(), static_cast<norm_query_t>(what), index));
    }
    // The descriptor of the execution argument NORM_ARG_*; empty if unused.
    memory::desc arg_desc(int arg) const { return query_md(query::exec_arg_md, arg); }

    const char *impl_info_str() const { return ask<const char *>(query::impl_info_str); }
    norm_primitive_kind_t get_kind() const {
        return ask<norm_primitive_kind_t>(query::primitive_kind);
    }
    prop_kind get_prop_kind() const {
        return static_cast<prop_kind>(ask<norm_prop_kind_t>(query::prop_kind));
    }
    engine get_engine() const { return engine(*this, ask<norm_engine_t>(query::engine)); }
    engine scratchpad_engine() const {
        return engine(*this, ask<norm_engine_t>(query::scratchpad_engine));
    }
    primitive_attr get_primitive_attr() const {
        const_norm_primitive_attr_t answer = nullptr;
        check(norm_primitive_desc_get_attr(get(), &answer));
        return primitive_attr::copy_of(answer);
    }
    memory::desc src_desc() const { return arg_desc(NORM_ARG_SRC); }
    memory::desc dst_desc() const { return arg_desc(NORM_ARG_DST); }
    memory::desc diff_src_desc() const { return arg_desc(NORM_ARG_DIFF_SRC); }
    memory::desc diff_dst_desc() const { return arg_desc(NORM_ARG_DIFF_DST); }
    // What scratchpad_mode::user must provide as NORM_ARG_SCRATCHPAD.
    memory::desc scratchpad_desc() const { return query_md(query::scratchpad_md); }

protected:
    // What `create` made; NULL for what is not built, if that is allowed.
    template <typename Create>
    static norm_primitive_desc_t finish(bool allow_empty, Create create) {
        norm_primitive_desc_t object = nullptr;
        const norm_status_t status = create(&object);
        if (!(allow_empty && status == norm_unimplemented)) check(status);
        return object;
    }
};

// A problem ready to run; immutable.
class primitive : public handle<norm_primitive, norm_primitive_destroy> {
public:
    using kind = norm_primitive_kind_t;

    primitive() = default;
    explicit primitive(const primitive_desc_base &problem) : handle(create(problem)) {}

    primitive_desc_base get_primitive_desc() const {
        const_norm_primitive_desc_t answer = nullptr;
        check(norm_primitive_get_primitive_desc(get(), &answer));
        return primitive_desc_base::copy_of(answer);
    }
    kind get_kind() const { return get_primitive_desc().get_kind(); }

    // Runs it. `args` maps NORM_ARG_* to memory; the outputs are complete on return.
    void execute(const stream &on, const std::unordered_map<int, memory> &args) const {
        std::vector<norm_exec_arg_t> list;
        list.reserve(args.size());
        for (const auto &pair : args)
            list.push_back({pair.first, pair.second.get_or_null()});
        check(norm_primitive_execute(
                get(), on.get(), static_cast<int>(list.size()), list.data()));
    }

private:
    static norm_primitive_t create(const primitive_desc_base &problem) {
        norm_primitive_t object = nullptr;
        check(norm_primitive_create(&object, problem.get()));
        return object;
    }
};

// ---------------------------------------------------------------------------
// Layer normalization and RMS normalization
// ---------------------------------------------------------------------------

// Over the last dimension: dst = (src - mean) / sqrt(variance + epsilon) * scale
// + shift; with normalization_flags::rms_norm without mean. Arguments by flags:
// see norm_layer_normalization_forward_primitive_desc_create.
struct layer_normalization_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // Scale and shift in f32; mean and variance in the order of src. With
        // `allow_empty`, what is legal but not built makes an empty object
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
        // Scale and shift in f32; mean and variance laid out as `stat` says.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &src,
                const memory::desc &dst, const memory::desc &stat, float epsilon,
                normalization_flags flags, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_layer_normalization_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), src.get(), dst.get(), stat.get(),
                        epsilon, static_cast<unsigned>(flags), attr.get());
            })) {}
        // Everything said.
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

        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
        memory::desc weights_desc() const { return query_md(query::weights_md); }
        float get_epsilon() const { return ask<float>(query::epsilon_f32); }
        normalization_flags get_flags() const {
            return static_cast<normalization_flags>(ask<unsigned>(query::flags));
        }
    };

    layer_normalization_forward() = default;
    explicit layer_normalization_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of layer_normalization_forward. prop_kind::backward gives diff_src,
// diff_scale and diff_shift; backward_data gives diff_src alone. The forward
// descriptor is a hint and may be empty.
struct layer_normalization_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // Scale, shift and their gradients in f32; mean and variance in the order
        // of src.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src, float epsilon,
                normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, diff_src, diff_dst, src, memory::desc(), epsilon, flags,
                    forward, attr, allow_empty) {}
        // The same with parameters and their gradients in types of their own.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &src,
                memory::data_type diff_scale_shift, memory::data_type scale_shift, float epsilon,
                normalization_flags flags,
                const layer_normalization_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, diff_src, diff_dst, src, memory::desc(), diff_scale_shift,
                    scale_shift, epsilon, flags, forward, attr, allow_empty) {}
        // Parameters in f32; mean and variance laid out as `stat` says.
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
        // Everything said.
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

        memory::desc mean_desc() const { return arg_desc(NORM_ARG_MEAN); }
        memory::desc variance_desc() const { return arg_desc(NORM_ARG_VARIANCE); }
        memory::desc weights_desc() const { return query_md(query::weights_md); }
        memory::desc diff_weights_desc() const { return query_md(query::diff_weights_md); }
        float get_epsilon() const { return ask<float>(query::epsilon_f32); }
        normalization_flags get_flags() const {
            return static_cast<normalization_flags>(ask<unsigned>(query::flags));
        }
    };

    layer_normalization_backward() = default;
    explicit layer_normalization_backward(const primitive_desc &problem) : primitive(problem) {}
};

// ---------------------------------------------------------------------------
// Reorder
// ---------------------------------------------------------------------------

// A tensor in another layout and another data type. Arguments NORM_ARG_SRC and
// NORM_ARG_DST, and what the attributes ask for: see
// norm_reorder_primitive_desc_create.
struct reorder : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        primitive_desc(const engine &src_engine, const memory::desc &src,
                const engine &dst_engine, const memory::desc &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_reorder_primitive_desc_create(object, src.get(), src_engine.get(),
                        dst.get(), dst_engine.get(), attr.get());
            })) {}
        // The same from memories.
        primitive_desc(const memory &src, const memory &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(src.get_engine(), src.get_desc(), dst.get_engine(), dst.get_desc(),
                    attr, allow_empty) {}

        engine get_src_engine() const {
            return engine(*this, ask<norm_engine_t>(query::reorder_src_engine));
        }
        engine get_dst_engine() const {
            return engine(*this, ask<norm_engine_t>(query::reorder_dst_engine));
        }
    };

    reorder() = default;
    explicit reorder(const primitive_desc &problem) : primitive(problem) {}
    reorder(const memory &src, const memory &dst, const primitive_attr &attr = primitive_attr())
        : primitive(primitive_desc(src, dst, attr)) {}

    using primitive::execute;
    void execute(const stream &on, const memory &src, const memory &dst) const {
        execute(on, {{NORM_ARG_SRC, src}, {NORM_ARG_DST, dst}});
    }
};

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

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
inline std::string to_string(primitive::kind kind) { return norm_prim_kind2str(kind); }
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
    avx10_2_512 = norm_cpu_isa_avx10_2_512,
    avx10_2_512_amx_2 = norm_cpu_isa_avx10_2_512_amx_2,
    portable = norm_cpu_isa_portable,
    neon = norm_cpu_isa_neon,
};

inline std::string to_string(cpu_isa isa) {
    return norm_cpu_isa2str(static_cast<norm_cpu_isa_t>(isa));
}
// Caps the instruction set of the descriptors created from now on.
inline void set_max_cpu_isa(cpu_isa isa) {
    check(norm_set_max_cpu_isa(static_cast<norm_cpu_isa_t>(isa)));
}
inline cpu_isa get_effective_cpu_isa() {
    return static_cast<cpu_isa>(norm_get_effective_cpu_isa());
}
// What instructions to prefer; a hint.
enum class cpu_isa_hints {
    no_hints = norm_cpu_isa_no_hints,
    prefer_ymm = norm_cpu_isa_prefer_ymm,
};

inline std::string to_string(cpu_isa_hints hints) {
    return norm_cpu_isa_hints2str(static_cast<norm_cpu_isa_hints_t>(hints));
}
inline void set_cpu_isa_hints(cpu_isa_hints hints) {
    check(norm_set_cpu_isa_hints(static_cast<norm_cpu_isa_hints_t>(hints)));
}
inline cpu_isa_hints get_cpu_isa_hints() {
    return static_cast<cpu_isa_hints>(norm_get_cpu_isa_hints());
}
// The math mode of attributes made from now on.
inline void set_default_fpmath_mode(fpmath_mode mode) {
    check(norm_set_default_fpmath_mode(static_cast<norm_fpmath_mode_t>(mode)));
}
inline fpmath_mode get_default_fpmath_mode() {
    norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
    check(norm_get_default_fpmath_mode(&answer));
    return static_cast<fpmath_mode>(answer);
}
// Kept for programs that ask; nothing is cached.
inline void set_primitive_cache_capacity(int capacity) {
    check(norm_set_primitive_cache_capacity(capacity));
}
inline int get_primitive_cache_capacity() {
    int answer = 0;
    check(norm_get_primitive_cache_capacity(&answer));
    return answer;
}
// How many threads an execution may use, the caller's included; 0: the default.
inline void set_num_threads(int num_threads) { check(norm_set_num_threads(num_threads)); }
inline int get_num_threads() { return norm_get_num_threads(); }
// How many took part in this thread's last execution.
inline int get_last_num_threads() { return norm_get_last_num_threads(); }
// 0 silent, 1 executions, 2 also creations; lines on standard output.
inline void set_verbose(int level) { check(norm_set_verbose(level)); }
inline const norm_version_t &version() { return *norm_version(); }
inline std::size_t data_type_size(memory::data_type type) {
    return norm_data_type_size(static_cast<norm_data_type_t>(type));
}

} // namespace norm

#endif // NORM_HPP
