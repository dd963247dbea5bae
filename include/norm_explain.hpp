// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_explain.hpp - explanation of outputs. Programs include norm.hpp.
#ifndef NORM_EXPLAIN_HPP
#define NORM_EXPLAIN_HPP

#include "norm_primitive.hpp"

#include <string>
#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// ---------------------------------------------------------------------------
// Explanation of outputs
// ---------------------------------------------------------------------------

// Measures the rows of src; see norm_explain. `scale` may be empty. Row -1 means
// all rows.
inline norm_explanation_t explain(const memory &src, const memory &scale, float epsilon,
        normalization_flags flags = normalization_flags::rms_norm, memory::dim row = -1) {
    norm_explanation_t found = {};
    check(norm_explain(src.get(), scale.get_or_null(), epsilon, static_cast<unsigned>(flags), row,
            &found));
    return found;
}
// Remedies that would change the size of the output, with their effect on the rows.
inline std::vector<norm_remedy_t> explain_remedies(const memory &src, const memory &scale,
        float epsilon, normalization_flags flags = normalization_flags::rms_norm,
        memory::dim row = -1) {
    std::vector<norm_remedy_t> remedies(NORM_REMEDIES);
    check(norm_explain_remedies(src.get(), scale.get_or_null(), epsilon,
            static_cast<unsigned>(flags), row, remedies.data()));
    return remedies;
}
// The names without their prefix.
inline std::string to_string(norm_explanation_warning_t warning) {
    return norm_warning2str(warning);
}
// The name of a remedy.
inline std::string to_string(norm_remedy_kind_t kind) { return norm_remedy2str(kind); }
// An explanation as lines of text. `remedies` is what explain_remedies returned, or
// empty.
inline std::string to_string(const norm_explanation_t &explanation,
        const std::vector<norm_remedy_t> &remedies = {}) {
    const norm_remedy_t *list = remedies.size() < NORM_REMEDIES ? nullptr : remedies.data();
    std::string text(norm_explanation_text(&explanation, list, nullptr, 0), '\0');
    if (!text.empty()) {
        norm_explanation_text(&explanation, list, &text[0], text.size());
        text.pop_back();
    }
    return text;
}

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_EXPLAIN_HPP
