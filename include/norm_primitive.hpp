// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_primitive.hpp - primitive descriptors and primitives for C++. Programs include
// norm.hpp.
#ifndef NORM_PRIMITIVE_HPP
#define NORM_PRIMITIVE_HPP

#include "norm_attr.hpp"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// ---------------------------------------------------------------------------
// Primitive descriptors, primitives
// ---------------------------------------------------------------------------

// A validated problem and its implementation.
class primitive_desc_base : public handle<norm_primitive_desc, norm_primitive_desc_destroy> {
public:
    primitive_desc_base() = default;
    // Takes ownership of a C primitive descriptor.
    explicit primitive_desc_base(norm_primitive_desc_t object) : handle(object) {}
    // A copy of a primitive descriptor that another object owns.
    static primitive_desc_base copy_of(const_norm_primitive_desc_t existing) {
        norm_primitive_desc_t object = nullptr;
        check(norm_primitive_desc_clone(&object, existing));
        return primitive_desc_base(object);
    }

    // Switches to the next implementation. False, and no change, after the last.
    // The change is visible through every copy of this handle.
    bool next_impl() {
        const norm_status_t status = norm_primitive_desc_next_impl(get());
        if (status == norm_last_impl_reached) return false;
        return check(status);
    }

    // The answer to query `what`, of the type given at norm_query_t.
    template <typename T>
    T ask(query what, int index = 0) const {
        T answer {};
        check(norm_primitive_desc_query(
                get(), static_cast<norm_query_t>(what), index, &answer));
        return answer;
    }
    // The answer to a *_s64 query; 0 on failure.
    memory::dim query_s64(query what) const {
        memory::dim answer = 0;
        const norm_status_t status
                = norm_primitive_desc_query(get(), static_cast<norm_query_t>(what), 0, &answer);
        return status == norm_success ? answer : 0;
    }
    // The answer to a *_s32 query; 0 on failure.
    int query_s32(query what) const {
        return norm_primitive_desc_query_s32(get(), static_cast<norm_query_t>(what), 0);
    }
    // The answer to a *_md query; empty if the problem does not use it.
    memory::desc query_md(query what, int index = 0) const {
        return memory::desc::copy_of(norm_primitive_desc_query_md(
                get(), static_cast<norm_query_t>(what), index));
    }
    // The descriptor of execution argument NORM_ARG_*; empty if unused.
    memory::desc arg_desc(int arg) const { return query_md(query::exec_arg_md, arg); }

    // The name of the implementation, such as simd:avx512.
    const char *impl_info_str() const { return ask<const char *>(query::impl_info_str); }
    // The operation.
    primitive_kind get_kind() const {
        return static_cast<primitive_kind>(ask<norm_primitive_kind_t>(query::primitive_kind));
    }
    // The propagation kind that the problem was created with.
    prop_kind get_prop_kind() const {
        return static_cast<prop_kind>(ask<norm_prop_kind_t>(query::prop_kind));
    }
    // Parameters of the operation; fail for an operation that does not have them.
    float get_epsilon() const { return ask<float>(query::epsilon_f32); }
    float get_alpha() const { return ask<float>(query::alpha_f32); }
    float get_beta() const { return ask<float>(query::beta_f32); }
    normalization_flags get_flags() const {
        return static_cast<normalization_flags>(ask<unsigned>(query::flags));
    }
    algorithm get_algorithm() const {
        return static_cast<algorithm>(ask<norm_alg_kind_t>(query::alg_kind));
    }
    int get_axis() const { return ask<int>(query::axis_s32); }
    memory::dim get_group_size() const { return ask<norm_dim_t>(query::group_size_s64); }
    // The engine of the problem, and that of its scratchpad, which is the same.
    engine get_engine() const { return engine(*this, ask<norm_engine_t>(query::engine)); }
    engine scratchpad_engine() const {
        return engine(*this, ask<norm_engine_t>(query::scratchpad_engine));
    }
    // A copy of the attributes.
    primitive_attr get_primitive_attr() const {
        const_norm_primitive_attr_t answer = nullptr;
        check(norm_primitive_desc_get_attr(get(), &answer));
        return primitive_attr::copy_of(answer);
    }
    // The descriptor of an argument, with its layout chosen; empty if the problem has none.
    memory::desc src_desc() const { return arg_desc(NORM_ARG_SRC); }
    memory::desc dst_desc() const { return arg_desc(NORM_ARG_DST); }
    memory::desc diff_src_desc() const { return arg_desc(NORM_ARG_DIFF_SRC); }
    memory::desc diff_dst_desc() const { return arg_desc(NORM_ARG_DIFF_DST); }
    // Scale and shift, or their gradients, with their data type.
    memory::desc weights_desc() const { return query_md(query::weights_md); }
    memory::desc diff_weights_desc() const { return query_md(query::diff_weights_md); }
    // The workspace of attention in training; otherwise empty.
    memory::desc workspace_desc() const { return query_md(query::workspace_md); }
    // The scratchpad that scratchpad_mode::user must pass as NORM_ARG_SCRATCHPAD.
    memory::desc scratchpad_desc() const { return query_md(query::scratchpad_md); }

protected:
    // The object that `create` creates. NULL if unimplemented and `allow_empty` is
    // set.
    template <typename Create>
    static norm_primitive_desc_t finish(bool allow_empty, Create create) {
        norm_primitive_desc_t object = nullptr;
        const norm_status_t status = create(&object);
        if (!(allow_empty && status == norm_unimplemented)) check(status);
        return object;
    }
};

// oneDNN's name for a primitive descriptor whose operation is not in the type.
using primitive_desc = primitive_desc_base;

// An executable problem; immutable.
class primitive : public handle<norm_primitive, norm_primitive_destroy> {
public:
    // The operation.
    using kind = primitive_kind;

    primitive() = default;
    // The executable primitive of a problem.
    explicit primitive(const primitive_desc_base &problem) : handle(create(problem)) {}

    // A copy of its problem.
    primitive_desc_base get_primitive_desc() const {
        const_norm_primitive_desc_t answer = nullptr;
        check(norm_primitive_get_primitive_desc(get(), &answer));
        return primitive_desc_base::copy_of(answer);
    }
    // The operation.
    kind get_kind() const { return get_primitive_desc().get_kind(); }

    // Runs the primitive. `args` maps NORM_ARG_* to memory. The outputs are
    // complete on return.
    void execute(const stream &on, const std::unordered_map<int, memory> &args) const {
        std::vector<norm_exec_arg_t> list;
        list.reserve(args.size());
        for (const auto &pair : args)
            list.push_back({pair.first, pair.second.get_or_null()});
        check(norm_primitive_execute(
                get(), on.get(), static_cast<int>(list.size()), list.data()));
    }

    // Runs primitives that do not depend on each other in one parallel region;
    // see norm_primitive_execute_many.
    using call = std::pair<primitive, std::unordered_map<int, memory>>;
    static void execute_many(const stream &on, const std::vector<call> &calls) {
        std::vector<std::vector<norm_exec_arg_t>> lists(calls.size());
        std::vector<const_norm_primitive_t> primitives;
        std::vector<int> counts;
        std::vector<const norm_exec_arg_t *> args;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            for (const auto &pair : calls[i].second)
                lists[i].push_back({pair.first, pair.second.get_or_null()});
            primitives.push_back(calls[i].first.get());
            counts.push_back(static_cast<int>(lists[i].size()));
            args.push_back(lists[i].data());
        }
        check(norm_primitive_execute_many(static_cast<int>(calls.size()), primitives.data(),
                on.get(), counts.data(), args.data()));
    }

private:
    static norm_primitive_t create(const primitive_desc_base &problem) {
        norm_primitive_t object = nullptr;
        check(norm_primitive_create(&object, problem.get()));
        return object;
    }
};

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_PRIMITIVE_HPP
