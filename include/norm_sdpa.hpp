// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_sdpa.hpp - scaled dot-product attention. Programs include norm.hpp.
#ifndef NORM_SDPA_HPP
#define NORM_SDPA_HPP

#include "norm_primitive.hpp"

namespace norm {
inline namespace NORM_HPP_MODE {

// See norm_attn_mask_type_t.
enum class attn_mask_type {
    undef = norm_attn_mask_undef,
    buffer = norm_attn_mask_buffer,
    top_left = norm_attn_mask_top_left,
    bottom_right = norm_attn_mask_bottom_right,
};

// See norm_attn_window_t.
enum class attn_window {
    none = norm_window_none,
    with_self = norm_window_with_self,
    before_self = norm_window_before_self,
};

// The options that both directions share; by default none is set.
struct sdpa_options {
    attn_mask_type mask_type = attn_mask_type::undef; // an added or a causal mask
    attn_window window_kind = attn_window::none;      // what `window` counts
    memory::dim window = 0;                           // keys that a query sees; 0: no window
    memory::dim first_keys = 0;                       // keys seen despite a window
    float soft_cap = 0;                               // 0: none
    unsigned flags = 0;                               // norm_sdpa_flags_t
    memory::desc mask = {};                           // broadcast to queries x keys
    memory::desc diff_mask = {}; // backward
    memory::desc page_table = {}; // forward
};

// softmax(mask(scale * Q K^T)) V. See norm_sdpa_forward_primitive_desc_create for the
// dimensions and the arguments.
struct sdpa_forward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // `kind` is forward_training or forward_inference; scale multiplies the dot products.
        primitive_desc(const engine &on, prop_kind kind, const memory::desc &queries,
                const memory::desc &keys, const memory::desc &values, const memory::desc &dst,
                float scale, const sdpa_options &options = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_sdpa_forward_primitive_desc_create(object, on.get(),
                        static_cast<norm_prop_kind_t>(kind), queries.get(), keys.get(),
                        values.get(), dst.get(), options.mask.get_if_given(), options.page_table.get_if_given(),
                        static_cast<norm_attn_mask_type_t>(options.mask_type),
                        static_cast<norm_attn_window_t>(options.window_kind), options.window,
                        options.first_keys, scale, options.soft_cap, options.flags, attr.get());
            })) {}
    };

    sdpa_forward() = default;
    explicit sdpa_forward(const primitive_desc &problem) : primitive(problem) {}
};

// The gradients of sdpa_forward in training. The forward descriptor is oneDNN's parameter
// and is not read: pass the options of forward again.
struct sdpa_backward : public primitive {
    class primitive_desc : public primitive_desc_base {
    public:
        primitive_desc() = default;
        // The scale and the options are those of forward.
        primitive_desc(const engine &on, const memory::desc &diff_queries,
                const memory::desc &diff_keys, const memory::desc &diff_values,
                const memory::desc &diff_dst, const memory::desc &queries,
                const memory::desc &keys, const memory::desc &values, const memory::desc &dst,
                float scale, const sdpa_options &options = {},
                const sdpa_forward::primitive_desc &forward = {},
                const primitive_attr &attr = primitive_attr(), bool allow_empty = false)
            : primitive_desc_base(finish(allow_empty, [&](norm_primitive_desc_t *object) {
                return norm_sdpa_backward_primitive_desc_create(object, on.get(),
                        diff_queries.get(), diff_keys.get(), diff_values.get(), diff_dst.get(),
                        queries.get(), keys.get(), values.get(), dst.get(), options.mask.get_if_given(),
                        options.diff_mask.get_if_given(), static_cast<norm_attn_mask_type_t>(options.mask_type),
                        static_cast<norm_attn_window_t>(options.window_kind), options.window,
                        options.first_keys, scale, options.soft_cap, options.flags, forward.get_or_null(),
                        attr.get());
            })) {}
    };

    sdpa_backward() = default;
    explicit sdpa_backward(const primitive_desc &problem) : primitive(problem) {}
};

// See norm_window_strategy_t.
enum class window_strategy {
    fixed = norm_window_fixed,
    by_length = norm_window_by_length,
    by_entropy = norm_window_by_entropy,
    by_entropy_over_4 = norm_window_by_entropy_over_4,
    by_perplexity = norm_window_by_perplexity,
};

// The width of the next sliding window, at most max_step from `previous` limited to
// min_window and max_window; see norm_adaptive_window.
inline memory::dim adaptive_window(window_strategy strategy, memory::dim length,
        memory::dim min_window, memory::dim max_window, double measured, double vocabulary = 0,
        memory::dim previous = 0, double smoothing = 1, memory::dim max_step = 0) {
    memory::dim window = 0;
    check(norm_adaptive_window(static_cast<norm_window_strategy_t>(strategy), length,
            min_window, max_window, measured, vocabulary, previous, smoothing, max_step, &window));
    return window;
}

} // inline namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_SDPA_HPP
