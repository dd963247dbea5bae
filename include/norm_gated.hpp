// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_gated.hpp - gated activation. Programs include norm.hpp.
#ifndef NORM_GATED_HPP
#define NORM_GATED_HPP

#include "norm_primitive.hpp"

namespace norm {
inline namespace NORM_HPP_MODE {

// Where the gate and the tensor that it multiplies are; see norm_gate_packing_t.
enum class gate_packing {
    gate_first = norm_gate_first,
    up_first = norm_up_first,
    interleaved = norm_gate_interleaved,
    separate = norm_gate_separate,
};

// dst = f(min(gate, limit)) * (up within +-limit, + shift). `up` is empty unless the
// packing is gate_packing::separate. See norm_gated_forward_primitive_desc_create for
// the functions and the arguments.
struct gated_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // alpha is swish's; limit is INFINITY for none; shift is added to up.
        primitive_desc(const engine &on, prop_kind kind, algorithm of, gate_packing packing,
                const memory::desc &src, const memory::desc &up, const memory::desc &dst,
                float alpha, float limit, float shift,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_gated_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), static_cast<norm_alg_kind_t>(of),
                        static_cast<norm_gate_packing_t>(packing), src.get(),
                        up.get_if_given(), dst.get(), alpha, limit, shift, attr.get());
            })) {}
    };

    gated_forward() = default;
    explicit gated_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradients of gated_forward, from its inputs. If `dst` is not empty, dst is written
// again. The forward descriptor is oneDNN's parameter and is not read: pass the function, its
// numbers and the packing of forward again.
struct gated_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // diff_up is empty unless the packing is gate_packing::separate.
        primitive_desc(const engine &on, algorithm of, gate_packing packing,
                const memory::desc &diff_src, const memory::desc &diff_up,
                const memory::desc &diff_dst, const memory::desc &src, const memory::desc &up,
                const memory::desc &dst, float alpha, float limit, float shift,
                const gated_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_gated_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_alg_kind_t>(of),
                        static_cast<norm_gate_packing_t>(packing), diff_src.get(),
                        diff_up.get_if_given(), diff_dst.get(), src.get(), up.get_if_given(),
                        dst.get_if_given(), alpha, limit, shift, forward.get_or_null(), attr.get());
            })) {}
    };

    gated_backward() = default;
    explicit gated_backward(const primitive_desc &problem) : primitive(problem) {}
};

} // inline namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_GATED_HPP
