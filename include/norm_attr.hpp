// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_attr.hpp - attributes and post-operations for C++. Programs include norm.hpp.
#ifndef NORM_ATTR_HPP
#define NORM_ATTR_HPP

#include "norm_memory.hpp"

namespace norm {
inline namespace NORM_HPP_MODE {

// ---------------------------------------------------------------------------
// Attributes
// ---------------------------------------------------------------------------

// Functions applied in order to each element of an output before it is rounded.
class post_ops : public handle<norm_post_ops, norm_post_ops_destroy> {
public:
    // An empty list.
    post_ops() : handle(create()) {}
    // Takes ownership of a C list.
    explicit post_ops(norm_post_ops_t object) : handle(object) {}
    // A copy of a list that another object owns.
    static post_ops copy_of(const_norm_post_ops_t existing) {
        norm_post_ops_t object = nullptr;
        check(norm_post_ops_clone(&object, existing));
        return post_ops(object);
    }

    // The number of post-operations.
    int len() const { return norm_post_ops_len(get()); }
    // The kind of entry `index`; see norm_post_ops_get_kind.
    primitive_kind kind(int index) const {
        return static_cast<primitive_kind>(norm_post_ops_get_kind(get(), index));
    }

    // x + scale*(dst - zero_point), where dst is the previous content of the output, read as
    // `type` (undef: the output's own type).
    void append_sum(float scale = 1.f, std::int32_t zero_point = 0,
            memory::data_type type = memory::data_type::undef) {
        check(norm_post_ops_append_sum(
                get(), scale, zero_point, static_cast<norm_data_type_t>(type)));
    }
    // The parameters of the sum at `index`; fails if it is another kind.
    void get_params_sum(int index, float &scale, std::int32_t &zero_point,
            memory::data_type &type) const {
        norm_data_type_t its = norm_data_type_undef;
        check(norm_post_ops_get_params_sum(get(), index, &scale, &zero_point, &its));
        type = static_cast<memory::data_type>(its);
    }
    // Applies a function with two parameters; see norm_post_ops_append_eltwise.
    void append_eltwise(algorithm of, float alpha, float beta) {
        check(norm_post_ops_append_eltwise(
                get(), static_cast<norm_alg_kind_t>(of), alpha, beta));
    }
    // The parameters of the eltwise at `index`; fails if it is another kind.
    void get_params_eltwise(int index, algorithm &of, float &alpha, float &beta) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        check(norm_post_ops_get_params_eltwise(get(), index, &its, &alpha, &beta));
        of = static_cast<algorithm>(its);
    }
    // The operand is argument NORM_ARG_ATTR_MULTIPLE_POST_OP(i) | NORM_ARG_SRC_1.
    void append_binary(algorithm of, const memory::desc &src1) {
        check(norm_post_ops_append_binary(
                get(), static_cast<norm_alg_kind_t>(of), src1.get()));
    }
    // With the second operand of binary_select, ... | NORM_ARG_SRC_2.
    void append_binary(algorithm of, const memory::desc &src1, const memory::desc &src2) {
        check(norm_post_ops_append_binary_v2(
                get(), static_cast<norm_alg_kind_t>(of), src1.get(), src2.get()));
    }
    // The parameters of the binary at `index`; fails if it is another kind.
    void get_params_binary(int index, algorithm &of, memory::desc &src1) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        const_norm_memory_desc_t first = nullptr;
        check(norm_post_ops_get_params_binary(get(), index, &its, &first));
        of = static_cast<algorithm>(its);
        src1 = memory::desc::copy_of(first);
    }
    // The same with the second operand of a selection, which is otherwise empty.
    void get_params_binary(
            int index, algorithm &of, memory::desc &src1, memory::desc &src2) const {
        norm_alg_kind_t its = norm_alg_kind_undef;
        const_norm_memory_desc_t first = nullptr, second = nullptr;
        check(norm_post_ops_get_params_binary_v2(get(), index, &its, &first, &second));
        of = static_cast<algorithm>(its);
        src1 = memory::desc::copy_of(first);
        src2 = memory::desc::copy_of(second);
    }
    // x > 0 ? x : w*x with weights w. No operation supports it yet.
    void append_prelu(int mask) { check(norm_post_ops_append_prelu(get(), mask)); }
    // The mask of the prelu at `index`.
    void get_params_prelu(int index, int &mask) const {
        check(norm_post_ops_get_params_prelu(get(), index, &mask));
    }
    // A depthwise convolution. No operation supports it yet.
    void append_dw(memory::data_type weights, memory::data_type bias, memory::data_type dst,
            memory::dim kernel_size, memory::dim stride_size, memory::dim padding_l_size) {
        check(norm_post_ops_append_dw(get(), static_cast<norm_data_type_t>(weights),
                static_cast<norm_data_type_t>(bias), static_cast<norm_data_type_t>(dst),
                kernel_size, stride_size, padding_l_size));
    }
    // The parameters of the convolution at `index`.
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

// Options of a primitive: scratchpad, scales, zero points, post-operations, modes.
class primitive_attr : public handle<norm_primitive_attr, norm_primitive_attr_destroy> {
public:
    // Default values; the library provides the scratchpad.
    primitive_attr() : handle(create()) {}
    // Takes ownership of C attributes.
    explicit primitive_attr(norm_primitive_attr_t object) : handle(object) {}
    // A copy of attributes that another object owns.
    static primitive_attr copy_of(const_norm_primitive_attr_t existing) {
        norm_primitive_attr_t object = nullptr;
        check(norm_primitive_attr_clone(&object, existing));
        return primitive_attr(object);
    }

    // Who provides the scratchpad; by default the library.
    scratchpad_mode get_scratchpad_mode() const {
        norm_scratchpad_mode_t answer = norm_scratchpad_mode_library;
        check(norm_primitive_attr_get_scratchpad_mode(get(), &answer));
        return static_cast<scratchpad_mode>(answer);
    }
    // Sets who provides it. With scratchpad_mode::user, executions need NORM_ARG_SCRATCHPAD.
    void set_scratchpad_mode(scratchpad_mode mode) {
        check(norm_primitive_attr_set_scratchpad_mode(
                get(), static_cast<norm_scratchpad_mode_t>(mode)));
    }
    // Whether f32 arithmetic may use a narrower type. This library always uses strict
    // arithmetic.
    fpmath_mode get_fpmath_mode() const {
        norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
        check(norm_primitive_attr_get_fpmath_mode(get(), &answer));
        return static_cast<fpmath_mode>(answer);
    }
    // The same, and whether integer arithmetic may.
    void get_fpmath_mode(fpmath_mode &mode, bool &apply_to_int) const {
        norm_fpmath_mode_t answer = norm_fpmath_mode_strict;
        int ints = 0;
        check(norm_primitive_attr_get_fpmath_mode_v2(get(), &answer, &ints));
        mode = static_cast<fpmath_mode>(answer);
        apply_to_int = ints != 0;
    }
    // Sets the mode; it changes no result.
    void set_fpmath_mode(fpmath_mode mode) {
        check(norm_primitive_attr_set_fpmath_mode(get(), static_cast<norm_fpmath_mode_t>(mode)));
    }
    // The same, and whether integer arithmetic may use a narrower type.
    void set_fpmath_mode(fpmath_mode mode, bool apply_to_int) {
        check(norm_primitive_attr_set_fpmath_mode_v2(
                get(), static_cast<norm_fpmath_mode_t>(mode), apply_to_int));
    }
    // The type of accumulators. This library always uses strict accumulation.
    accumulation_mode get_accumulation_mode() const {
        norm_accumulation_mode_t answer = norm_accumulation_mode_strict;
        check(norm_primitive_attr_get_accumulation_mode(get(), &answer));
        return static_cast<accumulation_mode>(answer);
    }
    // Sets the mode; it changes no result.
    void set_accumulation_mode(accumulation_mode mode) {
        check(norm_primitive_attr_set_accumulation_mode(
                get(), static_cast<norm_accumulation_mode_t>(mode)));
    }
    // Whether equal inputs must give equal bits. They always do.
    bool get_deterministic() const {
        int answer = 0;
        check(norm_primitive_attr_get_deterministic(get(), &answer));
        return answer != 0;
    }
    // Sets whether they must; it changes no result.
    void set_deterministic(bool value) {
        check(norm_primitive_attr_set_deterministic(get(), value));
    }
    // The rounding of an argument, NORM_ARG_DST or NORM_ARG_DIFF_SRC.
    rounding_mode get_rounding_mode(int arg) const {
        norm_rounding_mode_t answer = norm_rounding_mode_environment;
        check(norm_primitive_attr_get_rounding(get(), arg, &answer));
        return static_cast<rounding_mode>(answer);
    }
    // Sets the rounding. No operation supports stochastic rounding yet.
    void set_rounding_mode(int arg, rounding_mode mode) {
        check(norm_primitive_attr_set_rounding(
                get(), arg, static_cast<norm_rounding_mode_t>(mode)));
    }

    // Adds scales to an argument, passed as NORM_ARG_ATTR_SCALES | arg.
    void set_scales_mask(int arg, int mask) {
        check(norm_primitive_attr_set_scales_mask(get(), arg, mask));
    }
    // The same with groups and the data type of the scales.
    void set_scales(int arg, int mask, const memory::dims &groups,
            memory::data_type type = memory::data_type::f32) {
        check(norm_primitive_attr_set_scales(get(), arg, mask, static_cast<int>(groups.size()),
                groups.data(), static_cast<norm_data_type_t>(type)));
    }
    // The same for scales that may be host scalars.
    void set_scales(int arg, int mask, const memory::dims &groups, memory::data_type type,
            bool is_on_host) {
        check(norm_primitive_attr_set_scales_v2(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type), is_on_host));
    }
    // The same for scales that may be computed from dst; see norm_quantization_mode_t.
    void set_scales(int arg, int mask, const memory::dims &groups, memory::data_type type,
            bool is_on_host, quantization_mode mode) {
        check(norm_primitive_attr_set_scales_v3(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type), is_on_host,
                static_cast<norm_quantization_mode_t>(mode)));
    }
    // The scale of an argument is a host scalar.
    void set_host_scale(int arg, memory::data_type type = memory::data_type::f32) {
        set_scales(arg, 0, {}, type, true);
    }
    // The zero point of an argument is a host scalar.
    void set_host_zero_point(int arg, memory::data_type type = memory::data_type::s32) {
        set_zero_points(arg, 0, {}, type, true);
    }
    // Adds zero points to an argument, passed as NORM_ARG_ATTR_ZERO_POINTS | arg. The mask,
    // groups and host scalars are those of scales.
    void set_zero_points_mask(int arg, int mask) {
        check(norm_primitive_attr_set_zero_points_mask(get(), arg, mask));
    }
    // With groups and the data type of the zero points.
    void set_zero_points(int arg, int mask, const memory::dims &groups,
            memory::data_type type = memory::data_type::s32) {
        check(norm_primitive_attr_set_zero_points(get(), arg, mask,
                static_cast<int>(groups.size()), groups.data(),
                static_cast<norm_data_type_t>(type)));
    }
    // The same for zero points that may be host scalars.
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
    // Copies the list.
    void set_post_ops(const post_ops &list) {
        check(norm_primitive_attr_set_post_ops(get(), list.get()));
    }

    // Steps around a normalization; not in oneDNN. Empty descriptors remove an
    // attribute, or mean that the sum is not stored.
    void set_residual(const memory::desc &residual, const memory::desc &sum,
            residual_rounding rounding = residual_rounding::rounded) {
        check(norm_primitive_attr_set_residual(get(), residual.get_if_given(), sum.get_if_given(),
                static_cast<norm_residual_rounding_t>(rounding)));
    }
    // Empty descriptors if there is no residual, or if the sum is not stored.
    void get_residual(
            memory::desc &residual, memory::desc &sum, residual_rounding &rounding) const {
        const_norm_memory_desc_t first = nullptr, second = nullptr;
        norm_residual_rounding_t its = norm_residual_rounded;
        check(norm_primitive_attr_get_residual(get(), &first, &second, &its));
        residual = first != nullptr ? memory::desc::copy_of(first) : memory::desc();
        sum = second != nullptr ? memory::desc::copy_of(second) : memory::desc();
        rounding = static_cast<residual_rounding>(its);
    }
    // Multiplies by swish or logistic of a tensor with the dimensions of src; alpha is
    // swish's. The flags of the problem say where. An empty descriptor removes the gate.
    void set_gate(const memory::desc &gate, algorithm of = algorithm::eltwise_swish,
            float alpha = 1.0f) {
        check(norm_primitive_attr_set_gate(
                get(), gate.get_if_given(), static_cast<norm_alg_kind_t>(of), alpha));
    }
    // The gate, empty if there is none, its function and swish's alpha.
    void get_gate(memory::desc &gate, algorithm &of, float &alpha) const {
        const_norm_memory_desc_t its = nullptr;
        norm_alg_kind_t alg = norm_alg_kind_undef;
        check(norm_primitive_attr_get_gate(get(), &its, &alg, &alpha));
        gate = its != nullptr ? memory::desc::copy_of(its) : memory::desc();
        of = static_cast<algorithm>(alg);
    }
    // The mean square is taken over the first elements of each row; 0, the default, for all.
    void set_partial_norm(memory::dim elements) {
        check(norm_primitive_attr_set_partial_norm(get(), elements));
    }
    // The number of elements, or 0 for all.
    memory::dim get_partial_norm() const {
        memory::dim elements = 0;
        check(norm_primitive_attr_get_partial_norm(get(), &elements));
        return elements;
    }

    // The logarithms of softmax's sums; an empty descriptor means none.
    void set_softmax_stats(const memory::desc &stats) {
        check(norm_primitive_attr_set_softmax_stats(get(), stats.get_if_given()));
    }
    // Empty if they are not stored.
    memory::desc get_softmax_stats() const {
        const_norm_memory_desc_t its = nullptr;
        check(norm_primitive_attr_get_softmax_stats(get(), &its));
        return its != nullptr ? memory::desc::copy_of(its) : memory::desc();
    }
    // Dropout before the post-operations. With an empty descriptor, the mask is not stored.
    void set_dropout(const memory::desc &mask_desc) {
        check(norm_primitive_attr_set_dropout(get(), mask_desc.get()));
    }
    // With the type of the seed, an offset of the generator, and host scalars for the
    // parameters; see norm_primitive_attr_set_dropout.
    void set_dropout(const memory::desc &mask_desc, memory::data_type seed_dt, bool use_offset,
            bool use_host_scalars) {
        check(norm_primitive_attr_set_dropout_v2(get(), mask_desc.get(),
                static_cast<norm_data_type_t>(seed_dt), use_offset, use_host_scalars));
    }
    // The mask; empty if there is no dropout, or none is stored.
    void get_dropout(memory::desc &mask_desc) const {
        const_norm_memory_desc_t its = nullptr;
        check(norm_primitive_attr_get_dropout(get(), &its));
        mask_desc = memory::desc::copy_of(its);
    }
    // The parameters of set_dropout.
    void get_dropout(memory::desc &mask_desc, memory::data_type &seed_dt, bool &use_offset,
            bool &use_host_scalars) const {
        const_norm_memory_desc_t its = nullptr;
        norm_data_type_t type = norm_data_type_undef;
        int offset = 0, host = 0;
        check(norm_primitive_attr_get_dropout_v2(get(), &its, &type, &offset, &host));
        mask_desc = memory::desc::copy_of(its);
        seed_dt = static_cast<memory::data_type>(type);
        use_offset = offset != 0;
        use_host_scalars = host != 0;
    }

private:
    static norm_primitive_attr_t create() {
        norm_primitive_attr_t object = nullptr;
        check(norm_primitive_attr_create(&object));
        return object;
    }
};

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_ATTR_HPP
