// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_rope.hpp - rotary position embedding in C++; programs include norm.hpp. The
// parameters are documented in norm_rope.h.
#ifndef NORM_ROPE_HPP
#define NORM_ROPE_HPP

#include "norm_primitive.hpp"

#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// Which elements of a head are rotated together; see norm_rope_pairing_t.
enum class rope_pairing {
    interleaved = norm_rope_interleaved,
    half_split = norm_rope_half_split,
    half_split_of_head = norm_rope_half_split_of_head,
};

// How frequencies are adapted to longer contexts; see norm_rope_scaling_t.
enum class rope_scaling {
    none = norm_rope_scaling_none,
    linear = norm_rope_scaling_linear,
    ntk = norm_rope_scaling_ntk,
    dynamic_ntk = norm_rope_scaling_dynamic_ntk,
    yarn = norm_rope_scaling_yarn,
    llama3 = norm_rope_scaling_llama3,
    longrope = norm_rope_scaling_longrope,
};

// The options that both directions share; the defaults suit most models.
struct rope_options {
    memory::dim rotary_dims = 0; // 0: the last dimension
    float magnitude = 1;         // multiplies cosines and sines
    memory::desc table; // of cosines and sines; empty to use frequencies
    int index_dim = -1; // the dimension that counts tokens if positions are offsets; -1: none
    std::vector<memory::dim> sections = {}; // pairs of each part of a position; empty: one part
    unsigned flags = 0; // norm_rms_norm, norm_rope_flags_t
    // With norm_rms_norm.
    float epsilon = 0;
    memory::desc scale = {};
    // Backward with norm_rms_norm: src, and optionally the gradient of the scale.
    memory::desc src = {};
    memory::desc diff_scale = {};

    // rotary_dims, or the size of a head if it is 0.
    memory::dim rotary_dims_of(const memory::desc &head) const {
        if (rotary_dims != 0 || head.get_ndims() == 0) return rotary_dims;
        return head.get_dims().back();
    }
    // Where the angles come from.
    norm_rope_angles_t angles() const {
        return !table.is_zero() ? norm_rope_from_tables : norm_rope_from_frequencies;
    }
};

// Rotates the pairs of each head; see norm_rope_forward_primitive_desc_create.
// Arguments: NORM_ARG_SRC, NORM_ARG_DST, NORM_ARG_POSITIONS,
// NORM_ARG_ROPE_FREQUENCIES or NORM_ARG_ROPE_COS and NORM_ARG_ROPE_SIN,
// NORM_ARG_SCALE, NORM_ARG_SLOTS.
struct rope_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // src and dst are heads in the last dimension, positions one number for each token.
        primitive_desc(const engine &on, prop_kind kind, rope_pairing pairing,
                const memory::desc &src, const memory::desc &dst, const memory::desc &positions,
                const rope_options &with = {}, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_rope_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind),
                        static_cast<norm_rope_pairing_t>(pairing), with.angles(), src.get(),
                        dst.get(), positions.get(), with.index_dim, with.table.get_if_given(),
                        with.scale.get_if_given(), with.rotary_dims_of(src), with.magnitude,
                        static_cast<int>(with.sections.size()), with.sections.data(),
                        with.epsilon, with.flags, attr.get());
            })) {}
    };

    rope_forward() = default;
    explicit rope_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of rope_forward. The forward descriptor is oneDNN's parameter
// and is not read: pass the options of forward again.
// Arguments: NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, and those of the angles; with
// norm_rms_norm also NORM_ARG_SRC, NORM_ARG_SCALE, NORM_ARG_DIFF_SCALE.
struct rope_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // The options are those of forward, with src and diff_scale if heads are normalized.
        primitive_desc(const engine &on, rope_pairing pairing, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &positions,
                const rope_options &with = {}, const rope_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_rope_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_rope_pairing_t>(pairing), with.angles(), diff_src.get(),
                        diff_dst.get(), with.src.get_if_given(), positions.get(),
                        with.index_dim, with.table.get_if_given(),
                        with.scale.get_if_given(), with.diff_scale.get_if_given(),
                        with.rotary_dims_of(diff_dst), with.magnitude,
                        static_cast<int>(with.sections.size()), with.sections.data(),
                        with.epsilon, with.flags, forward.get_or_null(), attr.get());
            })) {}
    };

    rope_backward() = default;
    explicit rope_backward(const primitive_desc &problem) : primitive(problem) {}
};

// The frequencies of a configuration, and the factor for cosines and sines.
struct rope_frequencies {
    std::vector<double> values; // radians per position, one for each pair
    float magnitude = 1;        // for rope_options

    // One frequency for each pair; see norm_rope_frequencies for the parameters.
    rope_frequencies(rope_scaling scaling, memory::dim rotary_dims, double base,
            const std::vector<double> &parameters = {})
        : values(static_cast<std::size_t>(rotary_dims > 0 ? rotary_dims / 2 : 0) + 1) {
        check(norm_rope_frequencies(static_cast<norm_rope_scaling_t>(scaling), rotary_dims, base,
                static_cast<int>(parameters.size()), parameters.data(), values.data(),
                &magnitude));
        values.pop_back();
    }
};

// Copies weights for another pairing; see norm_rope_permute.
inline void rope_permute(rope_pairing from, rope_pairing to, memory::dim heads,
        memory::dim rotary_dims, const memory &src, const memory &dst) {
    check(norm_rope_permute(static_cast<norm_rope_pairing_t>(from),
            static_cast<norm_rope_pairing_t>(to), heads, rotary_dims, src.get(), dst.get()));
}

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_ROPE_HPP
