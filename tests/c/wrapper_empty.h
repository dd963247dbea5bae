// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What using an empty object says in C++; part of wrapper.cpp.
#ifndef WRAPPER_EMPTY_H
#define WRAPPER_EMPTY_H

// Each message says how to create the object.
static void empty_objects() {
    using norm::memory;
    norm::engine engine(norm::engine::kind::cpu, 0);
    norm::stream stream(engine);
    const memory::desc row({4}, memory::data_type::f32, memory::format_tag::a);
    THROWS(norm_invalid_arguments, "the engine is empty; create it with norm::engine(",
            norm::stream {norm::engine()});
    THROWS(norm_invalid_arguments, "the stream is empty; create it with norm::stream(engine)",
            norm::stream().wait());
    memory::desc desc = row;
    const memory::desc taken = std::move(desc);
    THROWS(norm_invalid_arguments, "is empty; create it with norm::memory::desc(", desc.get_size());
    EXPECT(taken == row);
    THROWS(norm_invalid_arguments, "the memory is empty; create it with norm::memory(desc, engine)",
            memory().get_desc());
    norm::post_ops list;
    list.reset();
    THROWS(norm_invalid_arguments, "empty; create them with norm::post_ops()", list.len());
    norm::primitive_attr attr;
    attr.reset();
    THROWS(norm_invalid_arguments, "is empty; create it with norm::primitive_attr()",
            attr.get_fpmath_mode());
    THROWS(norm_invalid_arguments, "the primitive_desc is empty; create it from an engine",
            norm::softmax_forward {norm::softmax_forward::primitive_desc()});
    THROWS(norm_invalid_arguments, "the primitive is empty; create it from a primitive_desc",
            norm::softmax_forward().execute(stream, {}));
    THROWS(norm_invalid_arguments, "is empty; create it with norm::kv_cache(engine, options)",
            norm::kv_cache().new_sequence());
}

#endif
