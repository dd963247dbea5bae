// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_kv_cache.hpp - a cache of the keys and values of attention. Programs include norm.hpp.
// The functions are documented in norm_kv_cache.h.
#ifndef NORM_KV_CACHE_HPP
#define NORM_KV_CACHE_HPP

#include "norm_primitive.hpp"

#include <unordered_map>
#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// See norm_kv_cache_kind_t.
enum class kv_cache_kind {
    contiguous = norm_kv_contiguous,
    paged = norm_kv_paged,
    ring = norm_kv_ring,
};

// The parameters of norm_kv_cache_create. Those without a default are required.
struct kv_cache_options {
    kv_cache_kind kind = kv_cache_kind::contiguous;                   // where tokens lie
    memory::data_type data_type = memory::data_type::undef;           // of keys and values
    memory::dim layers = 0, kv_heads = 0, key_size = 0, value_size = 0; // sizes: elements of a head
    // The most sequences, tokens of a sequence, and tokens appended to one at a time.
    memory::dim sequences = 0, tokens = 0, step_tokens = 0;
    memory::dim page_size = 0, pages = 0;       // 0: all tokens (contiguous only); as many as needed
    memory::dim window = 0, first_tokens = 0;   // ring
};

// The keys and values of the tokens of several sequences; see norm_kv_cache_create for
// the options, and the functions of norm_kv_cache.h for what the members do.
class kv_cache : public handle<norm_kv_cache, norm_kv_cache_destroy> {
public:
    // The number of a sequence.
    using sequence = memory::dim;

    kv_cache() = default;
    // Takes ownership of a C cache.
    explicit kv_cache(norm_kv_cache_t object) : handle(object) {}
    // A cache with room for the sequences and tokens of the options.
    kv_cache(const engine &on, const kv_cache_options &options) : handle(create(on, options)) {}

    // The number of a new, empty sequence.
    sequence new_sequence() const {
        sequence number = -1;
        check(norm_kv_cache_new_sequence(get(), &number));
        return number;
    }
    // Ends a sequence. Its pages are used again, its number is not.
    void drop(sequence number) const { check(norm_kv_cache_drop(get(), number)); }
    // The number of tokens of a sequence.
    memory::dim get_length(sequence number) const {
        memory::dim length = 0;
        check(norm_kv_cache_get_length(get(), number, &length));
        return length;
    }
    // Keeps the first `length` tokens of a sequence.
    void truncate(sequence number, memory::dim length) const {
        check(norm_kv_cache_truncate(get(), number, length));
    }
    // The number of a new sequence with the same tokens, which share memory until one is
    // extended.
    sequence fork(sequence number) const {
        sequence copy = -1;
        check(norm_kv_cache_fork(get(), number, &copy));
        return copy;
    }
    // Fails if `tokens` and `sequences` differ in length.
    void extend(const std::vector<sequence> &sequences, const std::vector<memory::dim> &tokens,
            memory::dim rows = 0) const {
        if (sequences.size() != tokens.size()) {
            fail(norm_invalid_arguments,
                    ("norm::kv_cache: tokens has " + std::to_string(tokens.size())
                            + " entries, but sequences has " + std::to_string(sequences.size()))
                            .c_str());
            return;
        }
        check(norm_kv_cache_extend(get(), static_cast<int>(sequences.size()), sequences.data(),
                tokens.data(), rows));
    }
    // Either may be empty.
    void write(const stream &on, memory::dim layer, const memory &keys, const memory &values) const {
        check(norm_kv_cache_write(
                get(), on.get(), layer, keys.get_or_null(), values.get_or_null()));
    }

    // Arguments for an execution. The memory objects keep the cache alive.
    using arguments = std::unordered_map<int, memory>;
    // For sdpa: keys, values, page table and key lengths; for s8 and f8_e4m3 also the scales of
    // keys and values.
    arguments get_arguments(memory::dim layer, const std::vector<sequence> &sequences) const {
        norm_exec_arg_t args[6] = {};
        int nargs = 6;
        const bool done = check(norm_kv_cache_get_arguments(get(), layer,
                static_cast<int>(sequences.size()), sequences.data(), &nargs, args));
        return of_list(args, done ? nargs : 0);
    }
    // For rope: dst, slots and positions. Fails for s8 and f8_e4m3, as rope_dst_desc() does.
    arguments get_rope_arguments(memory::dim layer) const {
        norm_exec_arg_t args[3] = {};
        int nargs = 3;
        const bool done = check(norm_kv_cache_get_rope_arguments(get(), layer, &nargs, args));
        return of_list(args, done ? nargs : 0);
    }

    // The keys, the values, and dst of a rope that writes keys, of one layer.
    memory::desc key_desc() const {
        norm_memory_desc_t found = nullptr;
        check(norm_kv_cache_get_descs(get(), 0, &found, nullptr, nullptr, nullptr));
        return memory::desc(found);
    }
    // As key_desc(), for the values.
    memory::desc value_desc() const {
        norm_memory_desc_t found = nullptr;
        check(norm_kv_cache_get_descs(get(), 0, nullptr, &found, nullptr, nullptr));
        return memory::desc(found);
    }
    // The table for this many sequences.
    memory::desc page_table_desc(int sequences) const {
        norm_memory_desc_t found = nullptr;
        check(norm_kv_cache_get_descs(get(), sequences, nullptr, nullptr, &found, nullptr));
        return memory::desc(found);
    }
    // dst of a rope that writes to the slots of the cache.
    memory::desc rope_dst_desc() const {
        norm_memory_desc_t found = nullptr;
        check(norm_kv_cache_get_descs(get(), 0, nullptr, nullptr, nullptr, &found));
        return memory::desc(found);
    }
    // See norm_kv_cache_stats_t.
    norm_kv_cache_stats_t get_stats() const {
        norm_kv_cache_stats_t stats = {};
        check(norm_kv_cache_get_stats(get(), &stats));
        return stats;
    }

private:
    static norm_kv_cache_t create(const engine &on, const kv_cache_options &o) {
        norm_kv_cache_t object = nullptr;
        check(norm_kv_cache_create(&object, on.get(), static_cast<norm_kv_cache_kind_t>(o.kind),
                static_cast<norm_data_type_t>(o.data_type), o.layers, o.kv_heads, o.key_size,
                o.value_size, o.sequences, o.tokens, o.step_tokens, o.page_size, o.pages, o.window,
                o.first_tokens));
        return object;
    }
    arguments of_list(const norm_exec_arg_t *args, int count) const {
        arguments found;
        for (int i = 0; i < count; ++i)
            found.emplace(args[i].arg, memory(*this, args[i].memory));
        return found;
    }
};

} // inline namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_KV_CACHE_HPP
