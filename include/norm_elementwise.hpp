// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_elementwise.hpp - element-wise functions of one and of two tensors. Programs
// include norm.hpp.
#ifndef NORM_ELEMENTWISE_HPP
#define NORM_ELEMENTWISE_HPP

#include "norm_primitive.hpp"

#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// Applies a function to every element. Arguments are NORM_ARG_SRC, NORM_ARG_DST and
// those that the attributes add; see norm_eltwise_forward_primitive_desc_create.
struct eltwise_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // A function with two parameters.
        primitive_desc(const engine &on, prop_kind kind, algorithm of, const memory::desc &src,
                const memory::desc &dst, float alpha, float beta,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_eltwise_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), static_cast<norm_alg_kind_t>(of),
                        src.get(), dst.get(), alpha, beta, attr.get());
            })) {}
        // Functions with one parameter, and with none.
        primitive_desc(const engine &on, prop_kind kind, algorithm of, const memory::desc &src,
                const memory::desc &dst, float alpha,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, kind, of, src, dst, alpha, 0.0f, attr, allow_empty) {}
        primitive_desc(const engine &on, prop_kind kind, algorithm of, const memory::desc &src,
                const memory::desc &dst, const primitive_attr &attr = primitive_attr(),
                bool allow_empty = false)
            : primitive_desc(on, kind, of, src, dst, 0.0f, 0.0f, attr, allow_empty) {}

        // The parameters of the function, as they were given.
        float get_alpha() const { return ask<float>(query::alpha_f32); }
        float get_beta() const { return ask<float>(query::beta_f32); }
    };

    eltwise_forward() = default;
    explicit eltwise_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradient of eltwise_forward, from src, or from dst if the algorithm says so. The
// forward descriptor is not read, as in oneDNN: pass its algorithm, alpha and beta again.
struct eltwise_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // A function with two parameters. `data` is src, or dst for algorithms with
        // use_dst_for_bwd.
        primitive_desc(const engine &on, algorithm of, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &data, float alpha, float beta,
                const eltwise_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_eltwise_backward_primitive_desc_create(object, on.get(),
                        static_cast<norm_alg_kind_t>(of), diff_src.get(), diff_dst.get(),
                        data.get(), alpha, beta, forward.get_or_null(), attr.get());
            })) {}
        // Functions with one parameter, and with none.
        primitive_desc(const engine &on, algorithm of, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &data, float alpha,
                const eltwise_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, of, diff_src, diff_dst, data, alpha, 0.0f, forward, attr,
                    allow_empty) {}
        primitive_desc(const engine &on, algorithm of, const memory::desc &diff_src,
                const memory::desc &diff_dst, const memory::desc &data,
                const eltwise_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc(on, of, diff_src, diff_dst, data, 0.0f, 0.0f, forward, attr,
                    allow_empty) {}

        // The parameters of the function, as they were given.
        float get_alpha() const { return ask<float>(query::alpha_f32); }
        float get_beta() const { return ask<float>(query::beta_f32); }
    };

    eltwise_backward() = default;
    explicit eltwise_backward(const primitive_desc &problem) : primitive(problem) {}
};

// Applies a function to two tensors, or selects between them by a third. Arguments are
// NORM_ARG_SRC_0, NORM_ARG_SRC_1, for a selection NORM_ARG_SRC_2, NORM_ARG_DST and those
// that the attributes add; see norm_binary_primitive_desc_create.
struct binary : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // A function of two tensors. A dimension of 1 is broadcast.
        primitive_desc(const engine &on, algorithm of, const memory::desc &src0,
                const memory::desc &src1, const memory::desc &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_binary_primitive_desc_create(object, on.get(),
                        static_cast<norm_alg_kind_t>(of), src0.get(), src1.get(), dst.get(),
                        attr.get());
            })) {}
        // With the condition of algorithm::binary_select, an s8.
        primitive_desc(const engine &on, algorithm of, const memory::desc &src0,
                const memory::desc &src1, const memory::desc &src2, const memory::desc &dst,
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_binary_primitive_desc_create_v2(object, on.get(),
                        static_cast<norm_alg_kind_t>(of), src0.get(), src1.get(), src2.get(),
                        dst.get(), attr.get());
            })) {}

        // The descriptor of src0, src1 or src2; empty if the function has none.
        memory::desc src_desc(int index = 0) const {
            return arg_desc(index == 0 ? NORM_ARG_SRC_0
                            : index == 1 ? NORM_ARG_SRC_1 : NORM_ARG_SRC_2);
        }
        memory::desc src0_desc() const { return src_desc(0); }
        memory::desc src1_desc() const { return src_desc(1); }
        memory::desc src2_desc() const { return src_desc(2); }
    };

    binary() = default;
    explicit binary(const primitive_desc &problem) : primitive(problem) {}
};

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_ELEMENTWISE_HPP
