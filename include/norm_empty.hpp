// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_empty.hpp - messages about empty handles. Programs include norm.hpp.
#ifndef NORM_EMPTY_HPP
#define NORM_EMPTY_HPP

#include "norm.h"

namespace norm {

// The message for an empty handle: one that was declared without a value, moved from,
// or left empty by a call that failed.
inline const char *empty_message(norm_engine *) {
    return "the engine is empty; create it with norm::engine(norm::engine::kind::cpu, 0)";
}
inline const char *empty_message(norm_stream *) {
    return "the stream is empty; create it with norm::stream(engine)";
}
inline const char *empty_message(norm_memory_desc *) {
    return "the memory::desc is empty; create it with norm::memory::desc(sizes, data_type, tag)";
}
inline const char *empty_message(norm_memory *) {
    return "the memory is empty; create it with norm::memory(desc, engine)";
}
inline const char *empty_message(norm_post_ops *) {
    return "the post_ops are empty; create them with norm::post_ops()";
}
inline const char *empty_message(norm_primitive_attr *) {
    return "the primitive_attr is empty; create it with norm::primitive_attr()";
}
inline const char *empty_message(norm_primitive_desc *) {
    return "the primitive_desc is empty; create it from an engine and the problem, as in "
           "norm::softmax_forward::primitive_desc(engine, ...)";
}
inline const char *empty_message(norm_primitive *) {
    return "the primitive is empty; create it from a primitive_desc, as in "
           "norm::softmax_forward(primitive_desc)";
}
inline const char *empty_message(norm_kv_cache *) {
    return "the kv_cache is empty; create it with norm::kv_cache(engine, options)";
}

} // namespace norm

#endif // NORM_EMPTY_HPP
