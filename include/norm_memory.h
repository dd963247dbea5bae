/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_memory.h - memory descriptors and memory. Programs include norm.h.
 */
#ifndef NORM_MEMORY_H
#define NORM_MEMORY_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Memory descriptor                                                        */
/* ------------------------------------------------------------------------ */

/* Creates a descriptor with the dense layout of a format tag. Dimensions are
 * 0 or more. Blocked dimensions are padded to whole blocks
 * (norm_query_padded_dims). `ndims` 0 creates an empty descriptor and does
 * not read `dims`. norm_format_tag_any lets a primitive descriptor choose
 * the layout; memory cannot be created from such a descriptor.
 * norm_invalid_arguments if the tag's number of letters is not `ndims`. */
NORM_API norm_status_t norm_memory_desc_create_with_tag(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, norm_format_tag_t tag);
/* Like norm_memory_desc_create_with_tag, with the tag as text, which can
 * also name layouts that have no enumerator. The letters name each dimension
 * once, outermost first; "a" is the first dimension. Inner blocks follow as
 * size and dimension, outermost first: "cBA6a7b". Upper and lower case are
 * equivalent. Other text, including "any", is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_create_with_string_tag(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, const char *tag);
/* Describes a host scalar: one number of the data type, stored in the memory object
 * itself (norm_memory_create_host_scalar). Scales, zero points and dropout parameters
 * can be host scalars. It is not a tensor; using it as one is norm_invalid_arguments.
 * Its kind is norm_format_kind_host_scalar, its dimensions are {1}, and it has no
 * strides. */
NORM_API norm_status_t norm_memory_desc_create_host_scalar(
        norm_memory_desc_t *memory_desc, norm_data_type_t data_type);
/* Changes the data type. The layout, counted in elements, stays the same.
 * norm_invalid_arguments for an empty descriptor. Do not use it on a
 * descriptor that another object owns. */
NORM_API norm_status_t norm_memory_desc_set_data_type(
        norm_memory_desc_t memory_desc, norm_data_type_t data_type);
/* Describes a part of a tensor: `dims` elements starting at `offsets`. The
 * part has the parent's strides and uses the parent's buffer. In a blocked
 * dimension the part must start at a block boundary and end at one or at the
 * end of the tensor; otherwise norm_unimplemented. */
NORM_API norm_status_t norm_memory_desc_create_submemory(
        norm_memory_desc_t *memory_desc,
        const_norm_memory_desc_t parent_memory_desc, const norm_dim_t *dims,
        const norm_dim_t *offsets);
/* Describes the same elements in the same logical order with other
 * dimensions. norm_invalid_arguments if the number of elements differs or if
 * elements would have to move. Dimensions that are merged or split must be
 * dense and not blocked. */
NORM_API norm_status_t norm_memory_desc_reshape(
        norm_memory_desc_t *out_memory_desc,
        const_norm_memory_desc_t in_memory_desc, int ndims,
        const norm_dim_t *dims);
/* Describes the same elements with reordered dimensions: dimension i becomes
 * dimension permutation[i]. An empty descriptor is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_permute_axes(
        norm_memory_desc_t *out_memory_desc,
        const_norm_memory_desc_t in_memory_desc, const int *permutation);
/* Serializes a descriptor. With `blob` NULL, writes the required number of
 * bytes to `*size`. Otherwise writes the bytes; `*size` must be at least the
 * required number. */
NORM_API norm_status_t norm_memory_desc_get_blob(
        uint8_t *blob, size_t *size, const_norm_memory_desc_t memory_desc);
/* Creates a descriptor from a complete blob, whose size is that returned by
 * norm_memory_desc_get_blob. norm_invalid_arguments if the blob was modified or comes
 * from another version. */
NORM_API norm_status_t norm_memory_desc_create_with_blob(
        norm_memory_desc_t *memory_desc, const uint8_t *blob);
/* Creates a descriptor with the given strides, in elements, 0 or more.
 * Element (i0, i1, ...) is at i0*strides[0] + i1*strides[1] + ... `strides`
 * NULL means dense row-major. A stride of 0 broadcasts one element and is
 * valid for inputs only: a primitive descriptor rejects an output with
 * overlapping elements with norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_create_with_strides(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, const norm_dim_t *strides);
/* Creates a copy. */
NORM_API norm_status_t norm_memory_desc_clone(norm_memory_desc_t *memory_desc,
        const_norm_memory_desc_t existing_memory_desc);
/* Frees a descriptor that the caller owns. */
NORM_API norm_status_t norm_memory_desc_destroy(norm_memory_desc_t memory_desc);
/* 1 if both describe the same tensor, 0 otherwise. Strides of dimensions of
 * size 1 are ignored. Two NULLs are equal; NULL and a descriptor are not. */
NORM_API int norm_memory_desc_equal(
        const_norm_memory_desc_t lhs, const_norm_memory_desc_t rhs);
/* Size in bytes of a buffer for the tensor: from its start (for a part, the
 * start of the parent's buffer) to the end of the last element, including
 * block padding. 0 for NULL, an empty descriptor, a descriptor with a
 * dimension of 0 and one of kind any. */
NORM_API size_t norm_memory_desc_get_size(const_norm_memory_desc_t memory_desc);
/* The size of buffer number `index`; 0 unless `index` is 0. */
NORM_API size_t norm_memory_desc_get_size_v2(
        const_norm_memory_desc_t memory_desc, int index);
/* Writes the answer to query `what` to `*result`, whose type is given at
 * norm_query_t. Pointers in the answer are owned by the descriptor.
 * norm_invalid_arguments for strides and inner blocks of a descriptor of
 * kind any or undef; norm_unimplemented for queries that do not apply to
 * memory descriptors. `index` must be 0. */
NORM_API norm_status_t norm_memory_desc_query(
        const_norm_memory_desc_t memory_desc, norm_query_t what, void *result);
/* The same, with oneDNN's parameter `index`. */
NORM_API norm_status_t norm_memory_desc_query_v2(
        const_norm_memory_desc_t memory_desc, norm_query_t what, int index,
        void *result);

/* ------------------------------------------------------------------------ */
/* Memory                                                                   */
/* ------------------------------------------------------------------------ */

/* Creates a memory object. The descriptor is copied. `handle` is
 *   NORM_MEMORY_ALLOCATE  the library allocates a zero-filled, 64-byte aligned
 *                         buffer and frees it with the memory; a descriptor of
 *                         0 bytes gets no buffer;
 *   NORM_MEMORY_NONE      no buffer yet; see norm_memory_set_data_handle;
 *   any other pointer     the caller's buffer. It has at least
 *                         norm_memory_desc_get_size() bytes, is aligned for the
 *                         element type and outlives the memory.
 * norm_invalid_arguments for a descriptor of kind any or of a host scalar. */
NORM_API norm_status_t norm_memory_create(norm_memory_t *memory,
        const_norm_memory_desc_t memory_desc, norm_engine_t engine,
        void *handle);
/* Like norm_memory_create, with a list of `nhandles` handles: 1, or 0 for an
 * empty descriptor. In this and the following functions, `index` must be 0. */
NORM_API norm_status_t norm_memory_create_v2(norm_memory_t *memory,
        const_norm_memory_desc_t memory_desc, norm_engine_t engine,
        int nhandles, void **handles);
/* Frees the memory, and the buffer if the library allocated it. */
NORM_API norm_status_t norm_memory_destroy(norm_memory_t memory);
/* The descriptor; owned by the memory. */
NORM_API norm_status_t norm_memory_get_memory_desc(
        const_norm_memory_t memory, const_norm_memory_desc_t *memory_desc);
/* The handle that the memory was created with, valid as long as the memory. NULL for
 * a host scalar, which has none. */
NORM_API norm_status_t norm_memory_get_engine(
        const_norm_memory_t memory, norm_engine_t *engine);
/* Creates a memory with a copy of the number at `scalar_ptr`, which has the
 * descriptor's data type and need not be aligned. Pass it only for arguments whose
 * attribute asks for a host scalar (is_on_host of norm_primitive_attr_set_scales_v2
 * and norm_primitive_attr_set_zero_points_v2, use_host_scalars of
 * norm_primitive_attr_set_dropout_v2). Executions read the number when they run;
 * results have the same bits as with the number in a buffer. Free it with
 * norm_memory_destroy. The memory has no engine and no buffer, so the functions below
 * for data handles return norm_invalid_arguments; norm_memory_map_data gives the
 * address of the number. NULL or a descriptor of a tensor is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_create_host_scalar(norm_memory_t *memory,
        const_norm_memory_desc_t memory_desc, void *scalar_ptr);
/* Copies the number out of or into a host scalar. `value` has as many bytes as the
 * descriptor's data type. Do not set it while another thread reads it or executes
 * with it. NULL or another memory is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_get_host_scalar_value(
        const_norm_memory_t memory, void *value);
/* Copies `value` into a host scalar; see norm_memory_get_host_scalar_value. */
NORM_API norm_status_t norm_memory_set_host_scalar_value(
        norm_memory_t memory, const void *value);
/* The address of the buffer; NULL if there is none. */
NORM_API norm_status_t norm_memory_get_data_handle(
        const_norm_memory_t memory, void **handle);
/* The same, of buffer number `index`. */
NORM_API norm_status_t norm_memory_get_data_handle_v2(
        const_norm_memory_t memory, void **handle, int index);
/* Replaces the buffer; NULL removes it. A buffer that the library allocated
 * is freed. NORM_MEMORY_ALLOCATE is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_set_data_handle(
        norm_memory_t memory, void *handle);
/* The same, of buffer number `index`. */
NORM_API norm_status_t norm_memory_set_data_handle_v2(
        norm_memory_t memory, void *handle, int index);
/* Returns an address for reading and writing the data until
 * norm_memory_unmap_data; NULL if there is no buffer. On the CPU it is the
 * buffer itself. */
NORM_API norm_status_t norm_memory_map_data(
        const_norm_memory_t memory, void **mapped_ptr);
/* The same, of buffer number `index`. */
NORM_API norm_status_t norm_memory_map_data_v2(
        const_norm_memory_t memory, void **mapped_ptr, int index);
/* Ends a mapping. norm_invalid_arguments unless `mapped_ptr` came from
 * norm_memory_map_data. */
NORM_API norm_status_t norm_memory_unmap_data(
        const_norm_memory_t memory, void *mapped_ptr);
/* The same, of buffer number `index`. */
NORM_API norm_status_t norm_memory_unmap_data_v2(
        const_norm_memory_t memory, void *mapped_ptr, int index);

#ifdef __cplusplus
}
#endif

#endif /* NORM_MEMORY_H */
