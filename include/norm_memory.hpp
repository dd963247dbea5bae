// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// norm_memory.hpp - memory and memory descriptors for C++. Programs include
// norm.hpp.
#ifndef NORM_MEMORY_HPP
#define NORM_MEMORY_HPP

#include "norm_core.hpp"
#include "norm_tags.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace norm {
inline namespace NORM_HPP_MODE {

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

// A descriptor and a buffer.
class memory : public handle<norm_memory, norm_memory_destroy> {
public:
    // A dimension or a stride.
    using dim = norm_dim_t;
    using dims = std::vector<dim>; // dimensions or strides; strides count elements

    // The type of elements; see norm_data_type_t.
    enum class data_type {
        undef = norm_data_type_undef,
        f16 = norm_f16,
        bf16 = norm_bf16,
        f32 = norm_f32,
        s32 = norm_s32,
        s8 = norm_s8,
        u8 = norm_u8,
        f64 = norm_f64,
        boolean = norm_boolean,
        f8_e5m2 = norm_f8_e5m2,
        f8_e4m3 = norm_f8_e4m3,
        s4 = norm_s4,
        u4 = norm_u4,
        e8m0 = norm_e8m0,
        f4_e2m1 = norm_f4_e2m1,
        f4_e3m0 = norm_f4_e3m0,
        s64 = norm_s64,
    };

    // The kind of a layout; see norm_format_kind_t.
    enum class format_kind {
        undef = norm_format_kind_undef,
        any = norm_format_kind_any,
        blocked = norm_blocked,
        opaque = norm_format_kind_opaque,
        sparse = norm_format_kind_sparse,
        host_scalar = norm_format_kind_host_scalar,
    };

    // A layout by name, as in oneDNN.
    using format_tag = norm::format_tag;

    // Dimensions, data type and layout, without data.
    class desc : public handle<norm_memory_desc, norm_memory_desc_destroy> {
    public:
        // An empty descriptor, for an omitted argument.
        desc() : desc(dims {}, data_type::undef, format_tag::undef) {}
        // The dense layout of a tag. With `any` a primitive descriptor chooses the
        // layout.
        desc(const dims &sizes, data_type type, format_tag tag)
            : handle(create(sizes, type, tag)) {}
        // Element (i0, i1, ...) is at i0*strides[0] + i1*strides[1] + ... Without
        // strides the layout is dense row-major.
        desc(const dims &sizes, data_type type, const dims &strides)
            : handle(create(sizes, type, strides)) {}
        // Takes ownership of a C descriptor.
        explicit desc(norm_memory_desc_t object) : handle(object) {}
        // A copy of a descriptor that another object owns; empty for NULL.
        static desc copy_of(const_norm_memory_desc_t existing) {
            if (existing == nullptr) return desc();
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_clone(&object, existing));
            return desc(object);
        }

        // The layout that a tag's letters name; no enumerator is required:
        // "cBA6a7b".
        static desc with_letters(const dims &sizes, data_type type, const std::string &letters) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_string_tag(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type), letters.c_str()));
            return desc(object);
        }
        // One number, stored in the memory object itself.
        static desc host_scalar(data_type type) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_host_scalar(
                    &object, static_cast<norm_data_type_t>(type)));
            return desc(object);
        }
        // A copy with another data type.
        desc with_data_type(data_type type) const {
            desc changed = copy_of(get());
            check(norm_memory_desc_set_data_type(
                    changed.get(), static_cast<norm_data_type_t>(type)));
            return changed;
        }
        // Restores a descriptor from get_blob().
        explicit desc(const std::vector<std::uint8_t> &blob) : handle(create(blob)) {}

        // The C descriptor for a parameter that may be omitted: NULL for an empty
        // descriptor. One that could not be created is not taken for omitted: this
        // fails, and then so does the C function.
        const_norm_memory_desc_t get_if_given() const {
            static const std::uint64_t not_a_descriptor[16] = {};
            if (get() == nullptr)
                return reinterpret_cast<const_norm_memory_desc_t>(not_a_descriptor);
            return is_zero() ? nullptr : get();
        }

        // A part of this tensor, in this tensor's buffer. Sizes and offsets count
        // elements and have an entry for each dimension. Here and below,
        // `allow_empty` returns an empty descriptor if the result is not
        // implemented.
        desc submemory_desc(
                const dims &sizes, const dims &offsets, bool allow_empty = false) const {
            if (!covers("sizes", sizes.size()) || !covers("offsets", offsets.size())) return desc();
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_create_submemory(
                        object, get(), sizes.data(), offsets.data());
            });
        }
        // The same elements with other dimensions.
        desc reshape(const dims &sizes, bool allow_empty = false) const {
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_reshape(
                        object, get(), static_cast<int>(sizes.size()), sizes.data());
            });
        }
        // The same elements; dimension i becomes dimension permutation[i].
        desc permute_axes(const std::vector<int> &permutation, bool allow_empty = false) const {
            if (!covers("permutation", permutation.size())) return desc();
            return derive(allow_empty, [&](norm_memory_desc_t *object) {
                return norm_memory_desc_permute_axes(object, get(), permutation.data());
            });
        }
        // The serialized descriptor.
        std::vector<std::uint8_t> get_blob() const {
            std::size_t size = 0;
            if (!check(norm_memory_desc_get_blob(nullptr, &size, get()))) return {};
            std::vector<std::uint8_t> blob(size);
            check(norm_memory_desc_get_blob(blob.data(), &size, get()));
            return blob;
        }

        // Whether both describe the same tensor; they may be different objects.
        bool operator==(const desc &other) const {
            return norm_memory_desc_equal(get_or_null(), other.get_or_null()) != 0;
        }
        bool operator!=(const desc &other) const { return !(*this == other); }
        // Size in bytes of a buffer for the tensor; 0 for kind any.
        std::size_t get_size() const { return norm_memory_desc_get_size(get()); }
        // The size of buffer number `index`.
        std::size_t get_size(int index) const {
            return norm_memory_desc_get_size_v2(get(), index);
        }
        // The number of buffers of the tensor.
        int get_num_handles() const {
            int answer = 0;
            check(norm_memory_desc_query_v2(get(), norm_query_num_handles_s32, 0, &answer));
            return answer;
        }
        // Whether the descriptor is empty.
        bool is_zero() const { return get_ndims() == 0; }
        // The number of dimensions, and the dimensions; padded, as far as blocks reach beyond
        // them, and the offsets of the data in the padding (0).
        int get_ndims() const { return ask<int>(query::ndims_s32); }
        dims get_dims() const { return ask_dims(query::dims); }
        dims get_padded_dims() const { return ask_dims(query::padded_dims); }
        dims get_padded_offsets() const { return ask_dims(query::padded_offsets); }
        // Fails for kind any and for an empty descriptor.
        dims get_strides() const { return ask_dims(query::strides); }
        // The offset of the first element, in elements.
        dim get_submemory_offset() const { return ask<dim>(query::submemory_offset_s64); }
        // The number of inner blocks.
        int get_inner_nblks() const { return ask<int>(query::inner_nblks_s32); }
        // The sizes of the inner blocks, and the dimensions that they divide.
        dims get_inner_blks() const { return ask_dims(query::inner_blks, get_inner_nblks()); }
        dims get_inner_idxs() const { return ask_dims(query::inner_idxs, get_inner_nblks()); }
        // The type of an element.
        data_type get_data_type() const {
            return static_cast<data_type>(ask<norm_data_type_t>(query::data_type));
        }
        // Whether the layout is known (blocked), any, undef or that of a host scalar.
        format_kind get_format_kind() const {
            return static_cast<format_kind>(ask<norm_format_kind_t>(query::format_kind));
        }

    private:
        template <typename T>
        T ask(query what) const {
            T answer {};
            check(norm_memory_desc_query(get(), static_cast<norm_query_t>(what), &answer));
            return answer;
        }
        dims ask_dims(query what) const { return ask_dims(what, get_ndims()); }
        dims ask_dims(query what, int count) const {
            const norm_dims_t *answer = ask<const norm_dims_t *>(what);
            if (answer == nullptr) return dims(); // after a failure without exceptions
            return dims(*answer, *answer + count);
        }
        // Whether a list has an entry for each dimension.
        bool covers(const char *name, std::size_t entries) const {
            if (get() == nullptr) return false;
            const int ndims = get_ndims();
            if (entries == static_cast<std::size_t>(ndims)) return true;
            fail(norm_invalid_arguments,
                    ("norm::memory::desc: " + std::string(name) + " has "
                            + std::to_string(entries)
                            + (entries == 1 ? " entry, but the descriptor has "
                                            : " entries, but the descriptor has ")
                            + std::to_string(ndims) + " dimensions")
                            .c_str());
            return false;
        }
        template <typename Make>
        static desc derive(bool allow_empty, Make make) {
            norm_memory_desc_t object = nullptr;
            const norm_status_t status = make(&object);
            if (allow_empty && status != norm_success) return desc();
            check(status);
            return desc(object);
        }
        static norm_memory_desc_t create(const std::vector<std::uint8_t> &blob) {
            // All blobs have one size.
            std::size_t size = 0;
            if (!check(norm_memory_desc_get_blob(nullptr, &size, desc().get()))) return nullptr;
            if (blob.size() != size) {
                fail(norm_invalid_arguments,
                        ("norm::memory::desc: blob has " + std::to_string(blob.size())
                                + " bytes, but get_blob() gives " + std::to_string(size))
                                .c_str());
                return nullptr;
            }
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_blob(&object, blob.data()));
            return object;
        }
        static norm_memory_desc_t create(const dims &sizes, data_type type, format_tag tag) {
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_tag(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type),
                    static_cast<norm_format_tag_t>(tag)));
            return object;
        }
        static norm_memory_desc_t create(const dims &sizes, data_type type, const dims &strides) {
            if (!strides.empty() && strides.size() != sizes.size()) {
                fail(norm_invalid_arguments,
                        ("norm::memory::desc: strides has " + std::to_string(strides.size())
                                + " entries, but sizes has " + std::to_string(sizes.size()))
                                .c_str());
                return nullptr;
            }
            norm_memory_desc_t object = nullptr;
            check(norm_memory_desc_create_with_strides(&object, static_cast<int>(sizes.size()),
                    sizes.data(), static_cast<norm_data_type_t>(type),
                    strides.empty() ? nullptr : strides.data()));
            return object;
        }
    };

    // The C enumerators.
    static norm_data_type_t convert_to_c(data_type type) {
        return static_cast<norm_data_type_t>(type);
    }
    static norm_format_tag_t convert_to_c(format_tag tag) {
        return static_cast<norm_format_tag_t>(tag);
    }
    // Size of an element in bytes.
    static std::size_t data_type_size(data_type type) {
        return norm_data_type_size(static_cast<norm_data_type_t>(type));
    }
    // Fails if there are more than NORM_MAX_NDIMS entries, or fewer than `least`.
    template <typename T>
    static void validate_dims(const std::vector<T> &sizes, int least = 0) {
        if (sizes.size() > static_cast<std::size_t>(NORM_MAX_NDIMS)
                || sizes.size() < static_cast<std::size_t>(least))
            fail(norm_invalid_arguments,
                    ("norm::memory: sizes has " + std::to_string(sizes.size())
                            + " entries, but must have " + std::to_string(least) + " to "
                            + std::to_string(NORM_MAX_NDIMS))
                            .c_str());
    }

    memory() = default;
    // The library allocates a zero-filled buffer and frees it.
    memory(const desc &of, const engine &on) : memory(of, on, NORM_MEMORY_ALLOCATE) {}
    // The caller's buffer of at least of.get_size() bytes, or NULL for no buffer
    // yet.
    memory(const desc &of, const engine &on, void *buffer) : handle(create(of, on, buffer)) {}
    // The same with a list of one buffer.
    memory(const desc &of, const engine &on, std::vector<void *> buffers)
        : handle(create(of, on, buffers)) {}
    // A host scalar with a value. T has the size of the descriptor's data type.
    template <typename T>
    memory(const desc &of, const T value) : handle(create(of, value)) {}
    // A memory returned by `owner`, which it keeps alive.
    template <typename Owner>
    memory(const Owner &owner, norm_memory_t object) : handle(owner, object) {}

    // A copy of the descriptor.
    desc get_desc() const {
        const_norm_memory_desc_t answer = nullptr;
        check(norm_memory_get_memory_desc(get(), &answer));
        return desc::copy_of(answer);
    }
    // The engine that the memory was created with; empty for a host scalar.
    engine get_engine() const {
        norm_engine_t answer = nullptr;
        check(norm_memory_get_engine(get(), &answer));
        return engine(*this, answer);
    }
    // The buffer, or NULL.
    void *get_data_handle() const {
        void *answer = nullptr;
        check(norm_memory_get_data_handle(get(), &answer));
        return answer;
    }
    // Buffer number `index`. Here and below, it must be 0.
    void *get_data_handle(int index) const {
        void *answer = nullptr;
        check(norm_memory_get_data_handle_v2(get(), &answer, index));
        return answer;
    }
    // Replaces the buffer. A buffer that the library allocated is freed.
    void set_data_handle(void *buffer) const {
        check(norm_memory_set_data_handle(get(), buffer));
    }
    void set_data_handle(void *buffer, int index) const {
        check(norm_memory_set_data_handle_v2(get(), buffer, index));
    }
    // An address for reading and writing, valid until unmap_data.
    template <typename T = void>
    T *map_data() const {
        void *answer = nullptr;
        check(norm_memory_map_data(get(), &answer));
        return static_cast<T *>(answer);
    }
    template <typename T = void>
    T *map_data(int index) const {
        void *answer = nullptr;
        check(norm_memory_map_data_v2(get(), &answer, index));
        return static_cast<T *>(answer);
    }
    void unmap_data(void *mapped) const { check(norm_memory_unmap_data(get(), mapped)); }
    void unmap_data(void *mapped, int index) const {
        check(norm_memory_unmap_data_v2(get(), mapped, index));
    }
    // The value of a host scalar. T has the size of its data type.
    template <typename T>
    T get_host_scalar_value() const {
        T value {};
        if (check_scalar<T>(get_desc()))
            check(norm_memory_get_host_scalar_value(get(), &value));
        return value;
    }
    template <typename T>
    void set_host_scalar_value(const T value) const {
        if (check_scalar<T>(get_desc()))
            check(norm_memory_set_host_scalar_value(get(), &value));
    }

private:
    template <typename T>
    static bool check_scalar(const desc &of) {
        static_assert(!std::is_pointer<T>::value,
                "a memory of a tensor needs an engine: memory(desc, engine, buffer)");
        if (of.get_size() == sizeof(T)) return true;
        fail(norm_invalid_arguments,
                "norm::memory: the value is not as large as the host scalar's data type");
        return false;
    }
    template <typename T>
    static norm_memory_t create(const desc &of, T value) {
        norm_memory_t object = nullptr;
        if (check_scalar<T>(of)) check(norm_memory_create_host_scalar(&object, of.get(), &value));
        return object;
    }
    static norm_memory_t create(const desc &of, const engine &on, void *buffer) {
        norm_memory_t object = nullptr;
        check(norm_memory_create(&object, of.get(), on.get(), buffer));
        return object;
    }
    static norm_memory_t create(
            const desc &of, const engine &on, std::vector<void *> &buffers) {
        norm_memory_t object = nullptr;
        check(norm_memory_create_v2(&object, of.get(), on.get(),
                static_cast<int>(buffers.size()), buffers.data()));
        return object;
    }
};

} // namespace NORM_HPP_MODE
} // namespace norm

#endif // NORM_MEMORY_HPP
