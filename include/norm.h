/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm.h - the C API of libnorm.
 *
 * libnorm computes normalizations, softmax, attention, rope, gated and other
 * element-wise functions, forward and backward, and reorders on the CPU. Its
 * objects and call order are those of oneDNN 3.x. Functions that exist in both
 * libraries have the same parameters, and enumerators have the same values.
 *
 *     engine + memory descriptors -> primitive descriptor -> primitive
 *     engine                      -> stream
 *     memory descriptor + buffer  -> memory
 *     primitive + stream + {argument id, memory} pairs -> norm_primitive_execute
 *
 * CONVENTIONS. These hold for every function unless its comment says otherwise.
 *
 * Status.     A function returns norm_success or the reason for the failure. A
 *             function that fails has no effect and writes no outputs.
 *             norm_get_last_error() then describes this thread's last failure
 *             in one sentence that names the parameter. The text is kept in a
 *             per-thread buffer, allocated when the thread first needs it; a
 *             reserve serves threads that have no memory for it.
 *               norm_invalid_arguments  a required object or output is NULL, a
 *                                       handle is stale (see Handles), an
 *                                       enumerator does not exist, dimensions
 *                                       do not match, or an execution argument
 *                                       is missing, has another data type or
 *                                       has too few bytes (execution checks
 *                                       sizes, not dimensions)
 *               norm_unimplemented      valid, but not implemented
 *               norm_out_of_memory      an allocation failed, or a KV cache or a
 *                                       list of post-operations is full. Every
 *                                       allocation in the library may fail; if a
 *                                       thread cannot be started, executions run
 *                                       without it
 *               norm_runtime_error      an internal error; it never causes
 *                                       undefined behaviour, an exception or an
 *                                       abort
 * Ownership.  Every pointer type *_t below is a handle. The caller owns what a
 *             function creates (*_create*, *_clone, norm_memory_desc_reshape,
 *             norm_memory_desc_permute_axes) and destroys it once with the
 *             matching *_destroy. Destroying NULL succeeds. Objects do not
 *             depend on the handles that they were created from, so those may
 *             be destroyed first. A handle returned by a query is owned by the
 *             queried object and valid as long as that object; an engine is the
 *             one that the object was created with, and destroying it destroys
 *             the caller's.
 * Handles.    Using a destroyed handle or one of another kind, or destroying a
 *             handle that another object owns, is norm_invalid_arguments. The
 *             library does not return the memory of destroyed objects to the
 *             system, but reuses it for new objects of the same kind, after 32
 *             other objects of that kind have been destroyed; from then on the
 *             old handle refers to the new object. It does not
 *             detect handles from a query whose owner was destroyed (except the
 *             memories of a KV cache), pointers that were never handles, and
 *             destroying an object while another thread uses it.
 *             An object occupies less than 1 kB; buffers that the library
 *             allocated are freed.
 * Threads.    Different objects may be used by different threads at the same
 *             time. One object may be read by several threads at the same time;
 *             executing a primitive counts as reading it. Modifying or
 *             destroying an object requires exclusive access.
 * Strings.    Returned strings are NUL-terminated and owned by the library.
 *             They are static unless noted.
 */
#ifndef NORM_H
#define NORM_H

#include "norm_types.h"

#if defined(_WIN32)
#define NORM_API __declspec(dllimport)
#elif defined(__GNUC__)
#define NORM_API __attribute__((visibility("default")))
#else
#define NORM_API
#endif

/* The version of this header. norm_version() returns the library's. */
#define NORM_VERSION_MAJOR 0
#define NORM_VERSION_MINOR 1
#define NORM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Status                                                                   */
/* ------------------------------------------------------------------------ */

/* The name of a status without its prefix ("success", "invalid_arguments");
 * "unknown status" for other values. Never NULL. */
NORM_API const char *norm_status2str(norm_status_t status);

/* The reason for the calling thread's last failure: one sentence that names
 * the function and the parameter, or "" before the first failure, or a fixed sentence
 * if the thread could not keep one. Successful calls do not clear it. The string is
 * valid until the next failing call on this thread. Never NULL. */
NORM_API const char *norm_get_last_error(void);

/* ------------------------------------------------------------------------ */
/* Version                                                                  */
/* ------------------------------------------------------------------------ */

/* The version of the running library. Never NULL. */
NORM_API const norm_version_t *norm_version(void);

/* ------------------------------------------------------------------------ */
/* Data types, dimensions, layouts                                          */
/* ------------------------------------------------------------------------ */

/* Size of an element in bytes, rounded up; 0 for norm_data_type_undef and
 * unknown values. */
NORM_API size_t norm_data_type_size(norm_data_type_t data_type);
/* The machine epsilon of a floating-point type, the distance from 1 to the next
 * larger number: 2^-23 for f32, 2^-7 for bf16, 2^-10 for f16, 2^-52 for f64, 2^-3 and
 * 2^-2 for f8_e4m3 and f8_e5m2; 0 for other values. PyTorch's rms_norm uses it if eps
 * is None. It is never a default here: that of bf16 makes outputs 0.4% smaller at an
 * RMS of 1, and 9 times smaller at 0.01. */
NORM_API double norm_data_type_epsilon(norm_data_type_t data_type);
/* "f32", "bf16", ...; "undef" for norm_data_type_undef, "unknown data type"
 * for unknown values. */
NORM_API const char *norm_dt2str(norm_data_type_t data_type);

/* The letters of a tag ("abc"), "undef" or "any"; "unknown format tag" for
 * unknown values. */
NORM_API const char *norm_fmt_tag2str(norm_format_tag_t tag);

/* ------------------------------------------------------------------------ */
/* Engine                                                                   */
/* ------------------------------------------------------------------------ */

/* The number of engines of a kind: 1 for norm_cpu and norm_any_engine, 0 for
 * other values. */
NORM_API size_t norm_engine_get_count(norm_engine_kind_t kind);
/* Creates engine number `index` of kind norm_cpu or norm_any_engine. There
 * is one engine, number 0. */
NORM_API norm_status_t norm_engine_create(
        norm_engine_t *engine, norm_engine_kind_t kind, size_t index);
/* The kind of the engine: norm_cpu. */
NORM_API norm_status_t norm_engine_get_kind(
        norm_engine_t engine, norm_engine_kind_t *kind);
/* Frees an engine once the objects that were created with it are destroyed. */
NORM_API norm_status_t norm_engine_destroy(norm_engine_t engine);

/* ------------------------------------------------------------------------ */
/* Stream                                                                   */
/* ------------------------------------------------------------------------ */

/* Creates a stream. `flags` is norm_stream_in_order or
 * norm_stream_out_of_order. */
NORM_API norm_status_t norm_stream_create(
        norm_stream_t *stream, norm_engine_t engine, unsigned flags);
/* The handle that the stream was created with, valid as long as the stream. */
NORM_API norm_status_t norm_stream_get_engine(
        const_norm_stream_t stream, norm_engine_t *engine);
/* Waits for all executions on the stream. Executions are synchronous, so it
 * returns at once. */
NORM_API norm_status_t norm_stream_wait(norm_stream_t stream);
/* Frees the stream, not the caller's thread pool. */
NORM_API norm_status_t norm_stream_destroy(norm_stream_t stream);

/* Makes executions on this stream use the caller's threads instead of the
 * library's. `num_threads` is the number of threads to split work over, 1 to
 * 255. `pool` is passed to `parallel_for` unchanged and must stay valid
 * while the stream uses it. `parallel_for` NULL restores the library's
 * threads. Results have the same bits either way.
 *
 * `parallel_for` must return. An exception, longjmp() or pthread_exit() that leaves
 * it, or a piece, ends the process, because other threads may still run pieces, which
 * use the caller's stack. Catch exceptions inside and return; the calling thread then
 * runs the remaining pieces. On Linux and macOS, pthread_cancel() of the calling
 * thread takes effect after the execution if cancellation is deferred, which is the
 * default. */
NORM_API norm_status_t norm_stream_set_parallel_for(norm_stream_t stream,
        norm_parallel_for_t parallel_for, void *pool, int num_threads);

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

/* ------------------------------------------------------------------------ */
/* Primitive attributes                                                     */
/* ------------------------------------------------------------------------ */

/* Creates attributes with default values: library scratchpad, no scales, no
 * zero points, no post-operations, the math mode of
 * norm_set_default_fpmath_mode, strict accumulation, and the deterministic
 * flag unset (results are always deterministic).
 *
 * The setters below accept every valid attribute. Primitive descriptor
 * creation returns norm_unimplemented for attributes that the operation does
 * not support. */
NORM_API norm_status_t norm_primitive_attr_create(norm_primitive_attr_t *attr);
/* Creates a copy, post-operations included. */
NORM_API norm_status_t norm_primitive_attr_clone(
        norm_primitive_attr_t *attr, const_norm_primitive_attr_t existing_attr);
/* Frees attributes that the caller owns. */
NORM_API norm_status_t norm_primitive_attr_destroy(norm_primitive_attr_t attr);
/* Who provides the scratchpad. */
NORM_API norm_status_t norm_primitive_attr_get_scratchpad_mode(
        const_norm_primitive_attr_t attr, norm_scratchpad_mode_t *mode);
/* Sets who provides the scratchpad; norm_scratchpad_mode_library by default. */
NORM_API norm_status_t norm_primitive_attr_set_scratchpad_mode(
        norm_primitive_attr_t attr, norm_scratchpad_mode_t mode);
/* Whether f32 arithmetic may use a narrower type, and, with apply_to_int not
 * 0, integer arithmetic too. This library always uses strict arithmetic.
 * Outputs of the _v2 getter may be NULL. */
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode);
/* Sets the math mode, with apply_to_int 0. */
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode);
/* The math mode, and whether it applies to integers. */
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode_v2(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode,
        int *apply_to_int);
/* Sets both. */
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode_v2(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode, int apply_to_int);
/* The type of accumulators. */
NORM_API norm_status_t norm_primitive_attr_get_accumulation_mode(
        const_norm_primitive_attr_t attr, norm_accumulation_mode_t *mode);
/* Sets the type of accumulators; norm_accumulation_mode_strict by default. */
NORM_API norm_status_t norm_primitive_attr_set_accumulation_mode(
        norm_primitive_attr_t attr, norm_accumulation_mode_t mode);
/* 1 if equal inputs must give equal bits. They always do. */
NORM_API norm_status_t norm_primitive_attr_get_deterministic(
        const_norm_primitive_attr_t attr, int *value);
/* Sets the flag, which changes nothing: `value` is 0 or another number. */
NORM_API norm_status_t norm_primitive_attr_set_deterministic(
        norm_primitive_attr_t attr, int value);
/* The rounding of argument `arg`, NORM_ARG_DST or NORM_ARG_DIFF_SRC. No
 * operation supports stochastic rounding yet. */
NORM_API norm_status_t norm_primitive_attr_get_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t *mode);
/* Sets the rounding of an argument; norm_rounding_mode_environment by default. */
NORM_API norm_status_t norm_primitive_attr_set_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t mode);

/* Adds scales to an argument of the primitive: NORM_ARG_SRC or NORM_ARG_DST, of binary
 * NORM_ARG_SRC_0 or NORM_ARG_SRC_1, and of attention NORM_ARG_KEYS or NORM_ARG_VALUES.
 * The values are passed at execution as argument NORM_ARG_ATTR_SCALES | arg.
 * An input is multiplied by its scale when it is read; an output is divided
 * by its scale before it is rounded. If bit d of `mask` is set, there is one
 * scale per index of dimension d, stored dense row-major; mask 0 means one
 * scale for the tensor.
 *
 * The second form sets the data type of the scales: f32, bf16, f16, f8_e5m2 or f8_e4m3
 * (the first form uses f32). group_ndims is 0 or 2. If it is 2, there is one scale per
 * group of indices; only dynamic scales support that. In the third form a nonzero
 * `is_on_host` means that the scale is a host scalar: the argument must then come from
 * norm_memory_create_host_scalar. This requires mask 0, no groups and static scales,
 * or else the result is norm_invalid_arguments; attention does not support it
 * (norm_unimplemented).
 *
 * In the fourth form `qmode` says whether the scales are passed
 * (norm_quantization_mode_static_sazp) or computed. Layer and group normalization
 * and gated activation compute the scales of NORM_ARG_DST from their results and
 * write them to NORM_ARG_ATTR_SCALES | NORM_ARG_DST, one for each group of `n`
 * elements of a row: `mask` has the bit of every dimension, `ndims` is 2 and
 * `group_dims` is {1, n}, where n divides the last dimension. In group
 * normalization the last dimension is the channels if there are two dimensions,
 * and otherwise positions, where channels do not share a scale. The scales are
 * dense and have dst's dimensions, with the last divided by n. norm_query_dst_md
 * describes them as index 3, zero points as index 4. dst is s8, u8, f8_e4m3 or
 * f8_e5m2.
 *
 *   dynamic_fp  scale = max|y| / M, rounded to f32 or f8_e4m3
 *   dynamic_mx  scale = 2^(floor(log2(max|y|)) - floor(log2(M))), e8m0, n = 32,
 *               dst f8_e4m3 or f8_e5m2
 *
 * M is the largest value of dst's type: 127, 255, 448, 57344. The scale of a group of
 * zeros is 1. In f8_e4m3 the scale of other finite groups is at least 2^-9 and at most
 * 448: larger results saturate. Elements are y * (1/scale) in f32, saturated and
 * rounded to nearest even. If dst is u8 and has zero points (s32, the same mask and
 * groups), they are also written: scale = (max(y, 0) - min(y, 0)) / 255, zero point =
 * round(-min(y, 0) / scale), at most 255. */
NORM_API norm_status_t norm_primitive_attr_set_scales_mask(
        norm_primitive_attr_t attr, int arg, int mask);
/* The second form: with a data type and groups. */
NORM_API norm_status_t norm_primitive_attr_set_scales(norm_primitive_attr_t attr,
        int arg, int mask, int group_ndims, const norm_dim_t *group_dims,
        norm_data_type_t data_type);
/* The third form: with host scalars. */
NORM_API norm_status_t norm_primitive_attr_set_scales_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type,
        int is_on_host);
/* The fourth form: with the quantization mode. */
NORM_API norm_status_t norm_primitive_attr_set_scales_v3(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type, int is_on_host,
        norm_quantization_mode_t qmode);
/* The same for zero points, passed as argument NORM_ARG_ATTR_ZERO_POINTS | arg.
 * They are subtracted from an input before it is scaled, and added to an output
 * after it is scaled. Values are s32; those of SRC may also be s8 or u8 in the
 * second and third form. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points_mask(
        norm_primitive_attr_t attr, int arg, int mask);
/* The second form: with a data type and groups. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points(
        norm_primitive_attr_t attr, int arg, int mask, int group_ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type);
/* The third form: with host scalars. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dim_t *group_dims, norm_data_type_t data_type,
        int is_on_host);

/* Adds a residual to src before it is normalized (layer and group normalization;
 * not in oneDNN):
 *
 *   sum = src + residual,  dst = normalization of sum
 *
 * The residual is argument NORM_ARG_RESIDUAL, with src's dimensions. The sum is
 * output NORM_ARG_RESIDUAL_DST with `sum_desc`; if that is NULL, it is not
 * stored. It may overwrite src or the residual if type and layout are the same.
 * src, residual and sum may each be f32, bf16 or f16.
 *
 *   norm_residual_rounded  dst and the statistics come from the sum rounded to
 *                          the type of sum_desc (without it, of residual_desc):
 *                          the same bits as an addition followed by the
 *                          normalization of its result
 *   norm_residual_exact    they come from the sum in f32
 *
 * Backward reads the sum that forward stored as NORM_ARG_SRC, with the sum's
 * descriptor as src_desc, and the sum's gradient as NORM_ARG_DIFF_RESIDUAL_DST, with
 * `sum_desc` as its descriptor, which must not be NULL:
 *
 *   diff_src = gradient of the normalization + diff_residual_dst
 *
 * in f32, rounded once: the gradient of src and of the residual. With
 * norm_residual_exact, mean and variance must be those of the f32 sum, which
 * norm_forward_training writes; they cannot be computed from the stored sum. A NULL
 * residual_desc removes the attribute. Descriptors are copied. */
NORM_API norm_status_t norm_primitive_attr_set_residual(
        norm_primitive_attr_t attr, const_norm_memory_desc_t residual_desc,
        const_norm_memory_desc_t sum_desc, norm_residual_rounding_t rounding);
/* NULL descriptors and norm_residual_rounded if there is none. The descriptors
 * are owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_residual(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *residual_desc,
        const_norm_memory_desc_t *sum_desc, norm_residual_rounding_t *rounding);
/* Multiplies by f(gate), element by element (layer and group normalization; not
 * in oneDNN). The flag norm_gate_input or norm_gate_output of the normalization
 * says where:
 *
 *   norm_gate_input   dst = normalization of src * f(gate)
 *   norm_gate_output  dst = (normalization of src) * f(gate)
 *
 * f is norm_eltwise_swish, gate / (1 + exp(-alpha*gate)), or norm_eltwise_logistic, 1
 * / (1 + exp(-gate)). The gate, argument NORM_ARG_GATE, has src's dimensions, is f32,
 * bf16 or f16, and may have any strides. Backward writes its gradient to
 * NORM_ARG_DIFF_GATE, with the same descriptor. A NULL gate_desc removes the
 * attribute. */
NORM_API norm_status_t norm_primitive_attr_set_gate(norm_primitive_attr_t attr,
        const_norm_memory_desc_t gate_desc, norm_alg_kind_t alg_kind,
        float alpha);
/* NULL, norm_alg_kind_undef and 0 if there is none. */
NORM_API norm_status_t norm_primitive_attr_get_gate(
        const_norm_primitive_attr_t attr, const_norm_memory_desc_t *gate_desc,
        norm_alg_kind_t *alg_kind, float *alpha);
/* RMS normalization by the mean square of the first `elements` of each row (pRMSNorm,
 * Zhang and Sennrich 2019; layer and group normalization; not in oneDNN). The whole
 * row is normalized. 0, the default, means the whole row: it removes the attribute. A
 * negative number is norm_invalid_arguments. So is, when a primitive descriptor is
 * created, more elements than a row has, or a missing norm_rms_norm. In group
 * normalization a row is a group in the logical order of its channels and positions,
 * whatever the layout: the first elements are those of its first channels, and parts
 * of a channel are norm_unimplemented. */
NORM_API norm_status_t norm_primitive_attr_set_partial_norm(
        norm_primitive_attr_t attr, norm_dim_t elements);
/* The number of elements; 0 for the whole row. */
NORM_API norm_status_t norm_primitive_attr_get_partial_norm(
        const_norm_primitive_attr_t attr, norm_dim_t *elements);

/* The post-operations; owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_post_ops(
        const_norm_primitive_attr_t attr, const_norm_post_ops_t *post_ops);
/* Replaces the post-operations with a copy of `post_ops`. */
NORM_API norm_status_t norm_primitive_attr_set_post_ops(
        norm_primitive_attr_t attr, const_norm_post_ops_t post_ops);

/* ------------------------------------------------------------------------ */
/* Post-operations                                                          */
/* ------------------------------------------------------------------------ */

/* Creates an empty list. A list has at most 32 entries; appending another is
 * norm_out_of_memory. */
NORM_API norm_status_t norm_post_ops_create(norm_post_ops_t *post_ops);
/* Creates a copy. */
NORM_API norm_status_t norm_post_ops_clone(
        norm_post_ops_t *post_ops, const_norm_post_ops_t existing_post_ops);
/* Frees a list that the caller owns. */
NORM_API norm_status_t norm_post_ops_destroy(norm_post_ops_t post_ops);
/* The number of entries; 0 for NULL. */
NORM_API int norm_post_ops_len(const_norm_post_ops_t post_ops);
/* The kind of entry `index`: norm_sum, norm_eltwise, norm_binary,
 * norm_prelu, or norm_convolution for a depthwise one.
 * norm_undefined_primitive if there is no such entry. */
NORM_API norm_primitive_kind_t norm_post_ops_get_kind(
        const_norm_post_ops_t post_ops, int index);

/* x + scale*(dst - zero_point), where dst is the previous content of the
 * output, read as data_type (norm_data_type_undef: the output's own type).
 * In every _get_params_ function outputs may be NULL, and an entry of
 * another kind is norm_invalid_arguments. */
NORM_API norm_status_t norm_post_ops_append_sum(norm_post_ops_t post_ops,
        float scale, int32_t zero_point, norm_data_type_t data_type);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_sum(
        const_norm_post_ops_t post_ops, int index, float *scale,
        int32_t *zero_point, norm_data_type_t *data_type);
/* An elementwise function. For clip, beta must not be less than alpha. Algorithms
 * that end with _use_dst_for_bwd compute the same as those without, and the getter
 * returns them as given. */
NORM_API norm_status_t norm_post_ops_append_eltwise(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, float alpha, float beta);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_eltwise(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        float *alpha, float *beta);
/* A function of x and a second tensor, src1. src1 has as many dimensions as
 * the output; each has the output's size or 1, which broadcasts it. Its
 * memory is passed at execution as NORM_ARG_ATTR_MULTIPLE_POST_OP(i) |
 * NORM_ARG_SRC_1, where i is the entry's index in this list.
 * norm_binary_select requires a third tensor, src2, and therefore _v2; its
 * memory is NORM_ARG_ATTR_MULTIPLE_POST_OP(i) | NORM_ARG_SRC_2. Other
 * algorithms do not read src2_desc. */
NORM_API norm_status_t norm_post_ops_append_binary(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc);
/* The same, with src2 for norm_binary_select. */
NORM_API norm_status_t norm_post_ops_append_binary_v2(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc,
        const_norm_memory_desc_t src2_desc);
/* The descriptors are owned by the list and valid until it changes.
 * src2_desc is an empty descriptor if there is no src2. */
NORM_API norm_status_t norm_post_ops_get_params_binary(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc);
/* The same, with src2. */
NORM_API norm_status_t norm_post_ops_get_params_binary_v2(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc,
        const_norm_memory_desc_t *src2_desc);
/* x > 0 ? x : w*x with weights w, one per index of the dimensions in `mask`.
 * No operation supports it yet. */
NORM_API norm_status_t norm_post_ops_append_prelu(
        norm_post_ops_t post_ops, int mask);
/* The mask of entry `index`. */
NORM_API norm_status_t norm_post_ops_get_params_prelu(
        const_norm_post_ops_t post_ops, int index, int *mask);
/* A depthwise convolution; bias_data_type may be norm_data_type_undef.
 * norm_invalid_arguments unless kernel_size and stride_size are positive and
 * padding_l_size is less than kernel_size. No operation supports it yet. */
NORM_API norm_status_t norm_post_ops_append_dw(norm_post_ops_t post_ops,
        norm_data_type_t weights_data_type, norm_data_type_t bias_data_type,
        norm_data_type_t dst_data_type, norm_dim_t kernel_size,
        norm_dim_t stride_size, norm_dim_t padding_l_size);
/* The parameters of entry `index`, as they were appended. */
NORM_API norm_status_t norm_post_ops_get_params_dw(
        const_norm_post_ops_t post_ops, int index,
        norm_data_type_t *weights_data_type, norm_data_type_t *bias_data_type,
        norm_data_type_t *dst_data_type, norm_dim_t *kernel_size,
        norm_dim_t *stride_size, norm_dim_t *padding_l_size);

/* ------------------------------------------------------------------------ */
/* Primitive descriptor                                                     */
/* ------------------------------------------------------------------------ */

/* "forward_training", ...; "undef" for norm_prop_kind_undef, "unknown
 * prop_kind" for unknown values. */
NORM_API const char *norm_prop_kind2str(norm_prop_kind_t prop_kind);

/* Switches to the next implementation of the problem, which is not expected
 * to be faster. norm_last_impl_reached, and no change, if there is none. */
NORM_API norm_status_t norm_primitive_desc_next_impl(
        norm_primitive_desc_t primitive_desc);
/* Creates a copy, which uses the same implementation. */
NORM_API norm_status_t norm_primitive_desc_clone(
        norm_primitive_desc_t *primitive_desc,
        const_norm_primitive_desc_t existing_primitive_desc);
/* Frees a primitive descriptor that the caller owns. */
NORM_API norm_status_t norm_primitive_desc_destroy(
        norm_primitive_desc_t primitive_desc);
/* The attributes; owned by the primitive descriptor. */
NORM_API norm_status_t norm_primitive_desc_get_attr(
        const_norm_primitive_desc_t primitive_desc,
        const_norm_primitive_attr_t *attr);
/* Writes the answer to query `what` to `*result`, whose type is given at
 * norm_query_t. `index` selects one of several answers; otherwise it is 0.
 * norm_not_required if the problem has no such object (the mean with
 * norm_rms_norm, for example); norm_unimplemented if the query does not
 * apply to the operation. */
NORM_API norm_status_t norm_primitive_desc_query(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index, void *result);
/* The memory descriptor queries (norm_query_some_md < what <=
 * norm_query_exec_arg_md). The result is owned by the primitive descriptor.
 * An argument that the problem does not use has an empty descriptor (0
 * dimensions). NULL if `what` is not a memory descriptor query or
 * primitive_desc is NULL. */
NORM_API const_norm_memory_desc_t norm_primitive_desc_query_md(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index);
/* The *_s32 queries; 0 on failure. */
NORM_API int norm_primitive_desc_query_s32(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index);

/* ------------------------------------------------------------------------ */
/* Primitive                                                                */
/* ------------------------------------------------------------------------ */

/* Creates a primitive, which may be executed by several threads at once. It keeps what
 * it needs of the descriptor, which may be destroyed. Free it with
 * norm_primitive_destroy. norm_out_of_memory is the only failure with valid handles. */
NORM_API norm_status_t norm_primitive_create(norm_primitive_t *primitive,
        const_norm_primitive_desc_t primitive_desc);
/* Runs the primitive. The outputs are complete on return.
 *
 * `args` holds `nargs` pairs. Every argument of the problem must be present,
 * with a memory of the data type and at least the size that
 * norm_query_exec_arg_md reports. If an id is repeated, the last pair
 * counts. Arguments that the problem does not use are ignored and their
 * memory is not accessed. An output must not share its buffer with another
 * argument unless the operation allows in-place execution.
 *
 * All checks come before any write. Not checked: whether memories have the
 * problem's dimensions and strides (the problem's are used), alignment, and whether
 * buffers overlap, except for some arguments that start at the same address
 * (docs/programming-model.md).
 *
 * The call uses the default floating-point environment (rounding,
 * flush-to-zero) and restores the caller's. From the second execution of a
 * primitive on a thread, nothing is allocated unless the thread count was
 * raised in between. */
NORM_API norm_status_t norm_primitive_execute(const_norm_primitive_t primitive,
        norm_stream_t stream, int nargs, const norm_exec_arg_t *args);
/* Runs `count` primitives that do not depend on each other, such as the norms of
 * queries, keys and values, in one parallel region. The outputs are complete on
 * return and have the same bits as when the primitives run one after another.
 *
 * `args[i]` holds the `nargs[i]` pairs of `primitives[i]`, as in
 * norm_primitive_execute. A primitive may appear in the list several times with
 * different arguments. If `count` is 0, nothing happens, and the arrays may be NULL.
 *
 * Before anything is written, the arguments of all primitives are checked and all
 * memory is allocated. Error messages begin with the index of the primitive.
 *
 * The primitives run concurrently and in any order. If one writes what another one
 * reads or writes, the results are undefined; this is not detected. Overlapping user
 * scratchpads are detected and are norm_invalid_arguments.
 *
 * Threads take whole primitives. A thread that finds none left takes rows of those
 * still running, so a large primitive among small ones gets all threads. There is one
 * thread for every 24576 elements of all primitives together, counting the largest
 * tensor of each, as for one primitive. From the second call on a thread with the
 * same primitives, nothing is allocated. */
NORM_API norm_status_t norm_primitive_execute_many(int count,
        const const_norm_primitive_t *primitives, norm_stream_t stream,
        const int *nargs, const norm_exec_arg_t *const *args);
/* The primitive descriptor; owned by the primitive. */
NORM_API norm_status_t norm_primitive_get_primitive_desc(
        const_norm_primitive_t primitive,
        const_norm_primitive_desc_t *primitive_desc);
/* Frees the primitive. No execution of it may be running. */
NORM_API norm_status_t norm_primitive_destroy(norm_primitive_t primitive);

/* ------------------------------------------------------------------------ */
/* Layer normalization and RMS normalization                                */
/* ------------------------------------------------------------------------ */

/* Normalizes over the last logical dimension, which has C elements. The other
 * dimensions together hold N rows. For each row x:
 *
 *   layer norm   mean     = sum(x) / C
 *                variance = sum((x - mean)^2) / C             (population)
 *                dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
 *   rms_norm     variance = sum(x^2) / C
 *                dst      = x / sqrt(variance + epsilon) * scale + shift
 *
 * Formulas: Ba, Kiros and Hinton 2016 (layer norm); Zhang and Sennrich 2019 (RMS
 * norm).
 *
 * Arithmetic is f32 with f64 sums, and the result is rounded once, to the type of
 * dst. If src or dst is f64, all arithmetic is f64, and a narrower dst is rounded
 * from the f64 result, f8 via f32. A row whose squares overflow or underflow in f32
 * is computed in f64; its variance saturates to +Inf. If variance + epsilon = 0, the
 * factor 1/sqrt is 0.
 *
 * A row's result depends only on the row, the data types, the flags and the
 * attributes. It does not depend on the instruction set, the threads, the batch,
 * the row's position in the batch, the layout or the alignment.
 *
 * prop_kind     norm_forward_training or norm_forward_inference
 * src_desc      2 to 5 dimensions; f32, bf16, f16, f64, s8, u8, f8_e4m3 or
 *               f8_e5m2; any layout but "any"
 * dst_desc      the dimensions of src; one of the same types; any layout. "any"
 *               means the layout of src. s8 and u8 round to nearest even and
 *               saturate, and NaN becomes 0. On overflow f8_e5m2 becomes an
 *               infinity, and f8_e4m3, which has none, becomes NaN
 * stat_desc     mean and variance: f32, the dimensions of src without the last.
 *               NULL, an empty descriptor or "any" selects the dimension order
 *               of src
 * epsilon       added to the variance under the root; finite and not negative
 * flags         bitwise or of norm_normalization_flags_t
 * attr          may be NULL. Supported unless dst is f64: a residual, a gate, a
 *               partial norm, dynamic scales of DST, one scale for SRC, one for
 *               DST, and eltwise, binary and sum post-operations. The
 *               normalized value is multiplied by the scale of SRC, passed
 *               through the post-operations in order, multiplied by the
 *               reciprocal of the scale of DST, all in f32, and then rounded.
 *               The data type of a sum must have the size of dst's. A binary
 *               operand may be dst itself, in the same layout: it is read before
 *               it is written
 *
 * Execution arguments (in: read, out: written, -: ignored)
 *                          SRC DST MEAN VARIANCE SCALE SHIFT
 *   inference               in out  -     -       if use_scale, if use_shift: in
 *   training                in out out   out      likewise
 *   use_global_stats        in out in    in       likewise
 *   rms_norm                as above, MEAN always -
 * SCALE and SHIFT are dense 1D tensors of C elements, f32 (or the type passed to
 * _v2). SRC and DST may share a buffer if their types and layouts are the same.
 * The attributes that oneDNN does not have add, in: RESIDUAL and GATE; out:
 * RESIDUAL_DST if the sum is stored, and ATTR_SCALES | DST and ATTR_ZERO_POINTS |
 * DST if they are dynamic. */
NORM_API norm_status_t norm_layer_normalization_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t stat_desc,
        float epsilon, unsigned flags, const_norm_primitive_attr_t attr);
/* The same with scale and shift in f32, bf16 or f16. */
NORM_API norm_status_t norm_layer_normalization_forward_primitive_desc_create_v2(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, const_norm_memory_desc_t stat_desc,
        norm_data_type_t scale_shift_data_type, float epsilon, unsigned flags,
        const_norm_primitive_attr_t attr);

/* The gradient. With r = 1/sqrt(variance + epsilon), d = scale*diff_dst (diff_dst
 * without use_scale) and xhat = (src - mean)*r (rms_norm: src*r), for each row:
 *
 *   layer norm         diff_src = r*(d - sum(d)/C - xhat*sum(d*xhat)/C)
 *   rms_norm           diff_src = r*(d - xhat*sum(d*xhat)/C)
 *   use_global_stats   diff_src = r*d
 *   over all rows      diff_scale = sum(diff_dst*xhat), diff_shift = sum(diff_dst)
 *
 * The rms_norm gradient has no sum(d) term, because rms_norm subtracts no mean.
 * (oneDNN keeps that term; see docs/onednn.md.) diff_scale and diff_shift depend
 * only on the rows and their order.
 *
 * A row whose variance is +Inf, subnormal or 0 has its statistics recomputed from
 * src, unless use_global_stats is set. If a tensor is f64, all arithmetic is f64
 * and every row's statistics are recomputed, because f32 statistics would leave an
 * error of 2^-24 of the mean in src - mean. MEAN and VARIANCE are still arguments.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src only. The
 *                latter still reads scale with use_scale (frozen parameters)
 * diff_src_desc  f32, bf16, f16 or f64; any layout. "any" means the layout of src
 * diff_dst_desc  likewise
 * src_desc       f32, bf16, f16 or f64; any layout. "any" means the layout of
 *                diff_dst, or dense row-major if that is also "any"
 * stat_desc, epsilon, flags   as forward
 * attr           may be NULL. A residual, a gate and a partial norm; no scales, no
 *                post-operations
 * hint_fwd_pd    may be NULL; otherwise a forward layer normalization with the same
 *                dimensions, flags, epsilon, residual, gate and partial norm, and of kind
 *                norm_forward_training unless use_global_stats is set. The types of
 *                residual, sum and gate are compared, not their layouts. (A library
 *                with oneDNN's names compares the attributes and the flags from
 *                bit 24 on)
 *
 * Execution arguments: in SRC, DIFF_DST, VARIANCE, MEAN (without rms_norm), SCALE
 * (with use_scale); out DIFF_SRC and, for norm_backward, DIFF_SCALE (with
 * use_scale) and DIFF_SHIFT (with use_shift). DIFF_DST and DIFF_SRC may share a
 * buffer if their types and layouts are the same. If N = 0, DIFF_SCALE and
 * DIFF_SHIFT are set to zero. The attributes that oneDNN does not have add, in:
 * DIFF_RESIDUAL_DST, GATE, and SHIFT for an output gate with use_shift; out:
 * DIFF_GATE. */
NORM_API norm_status_t norm_layer_normalization_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t stat_desc,
        float epsilon, unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);
/* The same with scale and shift, and with their gradients, in f32, bf16 or
 * f16. The two types may differ. */
NORM_API norm_status_t norm_layer_normalization_backward_primitive_desc_create_v2(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t stat_desc,
        norm_data_type_t diff_scale_shift_data_type,
        norm_data_type_t scale_shift_data_type, float epsilon, unsigned flags,
        const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Explanation of outputs                                                   */
/* ------------------------------------------------------------------------ */

/* Why is an output so small, or so large? Measures the rows of src, whose last
 * dimension is normalized:
 *
 *   ratio         = rms / sqrt(rms^2 + epsilon), the RMS of the normalized
 *                   values. Epsilon matters if rms^2 is near it: with epsilon
 *                   1e-5 an rms of 0.1 gives 0.9995, one of 0.005 gives 0.845
 *   rms_out       = sqrt(sum((src * scale)^2) / C) / sqrt(rms^2 + epsilon). It
 *                   is ratio * RMS of scale if |scale| does not depend on |src|,
 *                   and larger if scale is large where src is (correlation)
 *   amplification = rms_out / rms_in
 *
 *   src      f32, bf16, f16 or f64, any layout
 *   scale    one of these types, one dimension of C elements; NULL for none
 *   epsilon  that of the normalization, finite and not negative
 *   flags    norm_rms_norm, without which the mean of each row is subtracted
 *            first; norm_scale_plus_one
 *   row      0 to the number of rows - 1; -1 for all rows
 *
 * Without rows or elements the measures are 0. The arithmetic is f64 and runs on
 * the calling thread: this is a diagnostic tool. */
NORM_API norm_status_t norm_explain(const_norm_memory_t src, const_norm_memory_t scale,
        float epsilon, unsigned flags, norm_dim_t row, norm_explanation_t *explanation);
/* Writes NORM_REMEDIES remedies, in the order of norm_remedy_kind_t, each with
 * its effect on the same rows. */
NORM_API norm_status_t norm_explain_remedies(const_norm_memory_t src,
        const_norm_memory_t scale, float epsilon, unsigned flags, norm_dim_t row,
        norm_remedy_t *remedies);
/* Writes an explanation as lines of text, with the remedies unless `remedies` is
 * NULL. Writes at most `size` bytes to `text`, including a terminating NUL; `text`
 * may be NULL if `size` is 0. Returns the number of bytes that the whole text needs,
 * including the NUL, or 0 on failure. */
NORM_API size_t norm_explanation_text(const norm_explanation_t *explanation,
        const norm_remedy_t *remedies, char *text, size_t size);
/* The names without their prefix ("epsilon_dominates", "clip_src"); "unknown
 * warning" and "unknown remedy" for other values. Never NULL. */
NORM_API const char *norm_warning2str(norm_explanation_warning_t warning);
/* The same for remedies. */
NORM_API const char *norm_remedy2str(norm_remedy_kind_t kind);

/* ------------------------------------------------------------------------ */
/* Group normalization                                                      */
/* ------------------------------------------------------------------------ */

/* Group normalization of a tensor with N samples, C channels and any positions. The
 * channels are divided into G groups of C/G neighbours. For each group x of a
 * sample, with M elements:
 *
 *   mean = sum(x)/M, variance = sum((x - mean)^2)/M
 *   rms_norm: no mean, variance = sum(x^2)/M
 *   dst = (x - mean)/sqrt(variance + epsilon) * scale + shift
 *
 * with a scale and a shift for each channel. rms_norm is an extension: oneDNN
 * refuses it here. The bits of a group depend only on its values, the data types,
 * flags and attributes. A group whose squares overflow or underflow in f32 is
 * computed in f64; a variance beyond f32 is stored as +Inf.
 *
 * prop_kind      norm_forward_training, which stores MEAN and VARIANCE, or
 *                norm_forward_inference
 * src_desc       N x C [x D] [x H] [x W]: 2 to 5 dimensions; f32, bf16, f16, f64, s8,
 *                u8, f8_e5m2 or f8_e4m3; any layout but "any". Channels first and
 *                channels last are fast
 * dst_desc       the same dimensions, any of these types, any layout or "any" (as src)
 * groups         1 to C, a divisor of C
 * epsilon        0 or more, added to the variance
 * flags          norm_normalization_flags_t, combined with |
 * attr           may be NULL. A residual, a gate and a partial norm; one scale for SRC;
 *                one scale or dynamic scales for DST; eltwise, binary and sum
 *                post-operations, as for layer normalization. None if dst is f64
 *
 * Execution arguments (in: read, out: written, -: ignored)
 *                          SRC DST MEAN VARIANCE SCALE SHIFT
 *   inference               in out  -     -       if use_scale, if use_shift: in
 *   training                in out out   out      likewise
 *   use_global_stats        in out in    in       likewise
 *   rms_norm                as above, MEAN always -
 * MEAN and VARIANCE are dense N x G tensors, SCALE and SHIFT dense 1D tensors of C
 * elements, all f32. SRC and DST may share a buffer if their types and layouts are
 * the same. The attributes that oneDNN does not have add, in: RESIDUAL and GATE; out:
 * RESIDUAL_DST, and ATTR_SCALES and ATTR_ZERO_POINTS of DST if they are dynamic. */
NORM_API norm_status_t norm_group_normalization_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t src_desc,
        const_norm_memory_desc_t dst_desc, norm_dim_t groups, float epsilon,
        unsigned flags, const_norm_primitive_attr_t attr);

/* The gradient. With r = 1/sqrt(variance + epsilon), d = scale*diff_dst (diff_dst
 * without use_scale) and xhat = (src - mean)*r (rms_norm: src*r), for each group of
 * M elements:
 *
 *   group norm         diff_src = r*(d - sum(d)/M - xhat*sum(d*xhat)/M)
 *   rms_norm           diff_src = r*(d - xhat*sum(d*xhat)/M)
 *   use_global_stats   diff_src = r*d
 *   for each channel   diff_scale = sum(diff_dst*xhat), diff_shift = sum(diff_dst)
 *
 * over all samples and positions. A group whose variance is +Inf, subnormal or 0 has
 * its statistics recomputed from src, unless use_global_stats is set. If a tensor is
 * f64, all arithmetic is f64 and the statistics of every group are recomputed.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src only
 * diff_src_desc  f32, bf16, f16 or f64; any layout. "any" means the layout of src
 * diff_dst_desc  likewise
 * src_desc       f32, bf16, f16 or f64; any layout. "any" means the layout of
 *                diff_dst, or dense row-major if that is also "any"
 * groups, epsilon, flags   as forward
 * attr           may be NULL. A residual, a gate and a partial norm; no scales, no
 *                post-operations
 * hint_fwd_pd    may be NULL; otherwise a forward group normalization with the same
 *                groups, and what layer normalization compares
 *
 * Execution arguments: in SRC, DIFF_DST, VARIANCE, MEAN (without rms_norm), SCALE
 * (with use_scale); out DIFF_SRC and, for norm_backward, DIFF_SCALE (with
 * use_scale) and DIFF_SHIFT (with use_shift). DIFF_DST and DIFF_SRC may share a
 * buffer if their types and layouts are the same. The attributes that oneDNN does
 * not have add, in: DIFF_RESIDUAL_DST, GATE, and SHIFT for an output gate with
 * use_shift; out: DIFF_GATE. */
NORM_API norm_status_t norm_group_normalization_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, norm_dim_t groups, float epsilon,
        unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Softmax                                                                  */
/* ------------------------------------------------------------------------ */

/* Softmax along one dimension. Per row x of C elements, with m = max(x) and
 * s = sum(exp(x - m)):
 *
 *   norm_softmax_accurate   dst = exp(x - m) / s
 *   norm_softmax_log        dst = (x - m) - log(s)
 *   norm_softmax_accurate_inf_as_zero   as the first, but 0 for a row of only -Inf
 *
 * Arithmetic is f32, with f64 for sums of more than a few hundred elements, or all f64
 * if src or dst is. The bits do not depend on the instruction set, the threads or the
 * layouts. A row with NaN or +Inf becomes NaN, as does one of only -Inf, except with
 * norm_softmax_accurate_inf_as_zero.
 *
 * prop_kind      norm_forward_training or norm_forward_inference, which are the same
 * alg_kind       norm_softmax_accurate, norm_softmax_log or
 *                norm_softmax_accurate_inf_as_zero
 * src_desc       1 to 12 dimensions; f32, bf16, f16, f64, s8, u8, f8_e5m2 or f8_e4m3;
 *                any layout but "any"
 * dst_desc       the same dimensions, any of these types, any layout or "any" (as src)
 * softmax_axis   the dimension of the rows, from 0
 * attr           may be NULL. One scale each for SRC and DST; dropout; eltwise and
 *                binary post-operations; softmax stats. The result of the formula is
 *                multiplied by the scale of SRC, as in oneDNN, then come dropout and
 *                the post-operations, then the division by the scale of DST. With
 *                f64 only softmax stats
 *
 * Arguments: in SRC and those that the attributes add; out DST. SRC and DST may share a
 * buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_softmax_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, norm_alg_kind_t alg_kind,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_attr_t attr);

/* The gradient, from the dst of forward. Per row:
 *
 *   norm_softmax_accurate   diff_src = dst*(diff_dst - sum(diff_dst*dst))
 *   norm_softmax_log        diff_src = diff_dst - exp(dst)*sum(diff_dst)
 *   norm_softmax_accurate_inf_as_zero   as the first
 *
 * diff_src_desc  f32, bf16, f16 or f64, any layout or "any" (as diff_dst)
 * diff_dst_desc  f32, bf16, f16 or f64, any layout or "any" (as dst)
 * dst_desc       f32, bf16, f16 or f64, any layout but "any"
 * attr           may be NULL; neither scales nor post-operations
 * hint_fwd_pd    ignored; may be NULL
 *
 * Arguments: in DST, DIFF_DST; out DIFF_SRC, which may share a buffer with either if
 * the types and layouts are the same. */
NORM_API norm_status_t norm_softmax_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

#include "norm_rows.h"

/* Element-wise functions of one and of two tensors: norm_eltwise_* and norm_binary_*. */
#include "norm_elementwise.h"

/* ------------------------------------------------------------------------ */
/* Reorder                                                                  */
/* ------------------------------------------------------------------------ */

/* Copies a tensor into another layout and data type. For each element
 *
 *   x   = src_scale * (src - src_zero_point)
 *   x  += sum_scale * dst         (with a sum; dst is the previous content)
 *   dst = x / dst_scale + dst_zero_point
 *
 * rounded to nearest even. Integers saturate and NaN becomes 0. Values that
 * f8_e4m3 cannot hold become NaN. e8m0 gets the largest power of two that is not
 * above the value, at least 2^-127, and NaN for negative values and infinities. If
 * the types are the same and no attribute is set, the bytes are copied. Arithmetic is
 * f32, or f64 if a type is s32, s64 or f64. Other than in a copy, s64 beyond 2^53 are
 * first rounded to f64. Block padding of dst is set to zero. The bits do not depend
 * on the instruction set, the threads or the layouts.
 *
 * src_desc, dst_desc  the same dimensions, 1 to 12; f32, f64, bf16, f16, s32, s64,
 *                     s8, u8, f8_e5m2, f8_e4m3 or e8m0; any layouts but "any"
 * attr                may be NULL. Scales of SRC and DST with any mask; zero
 *                     points with any mask for integer tensors; one sum
 *                     post-operation with zero point 0 and the type of dst
 *
 * Execution arguments: in SRC and the arguments that the attributes add; out DST.
 * SRC and DST may share a buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_reorder_primitive_desc_create(
        norm_primitive_desc_t *reorder_primitive_desc,
        const_norm_memory_desc_t src_desc, norm_engine_t src_engine,
        const_norm_memory_desc_t dst_desc, norm_engine_t dst_engine,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Names                                                                    */
/* ------------------------------------------------------------------------ */

/* The name of an engine's kind. This and the following functions return an enumerator's
 * name without its prefix: "cpu", "blocked", "layer_normalization", "eltwise_relu",
 * "user", "strict". "undef" for undefined values, "unknown ..." for values that do not
 * exist. Never NULL. */
NORM_API const char *norm_engine_kind2str(norm_engine_kind_t kind);
/* The name of a layout's kind. */
NORM_API const char *norm_fmt_kind2str(norm_format_kind_t format_kind);
/* The name of an operation. */
NORM_API const char *norm_prim_kind2str(norm_primitive_kind_t primitive_kind);
/* The name of an algorithm. */
NORM_API const char *norm_alg_kind2str(norm_alg_kind_t alg_kind);
/* The name of a scratchpad mode. */
NORM_API const char *norm_scratchpad_mode2str(norm_scratchpad_mode_t mode);
/* The name of a math mode. */
NORM_API const char *norm_fpmath_mode2str(norm_fpmath_mode_t mode);
/* The name of an accumulation mode. */
NORM_API const char *norm_accumulation_mode2str(norm_accumulation_mode_t mode);
/* The name of a rounding mode. */
NORM_API const char *norm_rounding_mode2str(norm_rounding_mode_t mode);
/* The name of a quantization mode. */
NORM_API const char *norm_quantization_mode2str(norm_quantization_mode_t mode);
/* The name of hints. */
NORM_API const char *norm_cpu_isa_hints2str(norm_cpu_isa_hints_t isa_hints);

/* ------------------------------------------------------------------------ */
/* Control of the whole library                                             */
/* ------------------------------------------------------------------------ */

/* Limits the instruction set of primitive descriptors created from now on, in the
 * whole process. It may be called again. Until the first call the limit comes from
 * the environment variable NORM_MAX_CPU_ISA (portable, avx2, avx512, avx512_bf16,
 * avx512_amx, neon, or oneDNN's names); an unknown name sets no limit. If the machine
 * or the build lacks the limit's instruction set, those below it are allowed.
 * norm_unimplemented for an instruction set of another architecture. */
NORM_API norm_status_t norm_set_max_cpu_isa(norm_cpu_isa_t isa);
/* Preferred instructions. Stored, but has no effect. */
NORM_API norm_status_t norm_set_cpu_isa_hints(norm_cpu_isa_hints_t isa_hints);
/* The hints that were set; norm_cpu_isa_no_hints by default. */
NORM_API norm_cpu_isa_hints_t norm_get_cpu_isa_hints(void);
/* The capacity of the primitive cache, initially 1024. Stored for
 * compatibility: primitives are cheap to create and are not cached.
 * norm_invalid_arguments for negative values. */
NORM_API norm_status_t norm_get_primitive_cache_capacity(int *capacity);
/* Sets the capacity, a number of primitives. */
NORM_API norm_status_t norm_set_primitive_cache_capacity(int capacity);
/* The math mode of attributes created from now on, in the whole process;
 * initially strict. */
NORM_API norm_status_t norm_set_default_fpmath_mode(norm_fpmath_mode_t mode);
/* The math mode of new attributes. */
NORM_API norm_status_t norm_get_default_fpmath_mode(norm_fpmath_mode_t *mode);
/* The instruction set that a primitive descriptor created now would use:
 * norm_cpu_isa_avx512_core_amx, norm_cpu_isa_avx512_core_bf16,
 * norm_cpu_isa_avx512_core, norm_cpu_isa_avx2, norm_cpu_isa_neon or
 * norm_cpu_isa_portable. */
NORM_API norm_cpu_isa_t norm_get_effective_cpu_isa(void);
/* "avx512_core", ...; "unknown cpu_isa" for values that do not exist. */
NORM_API const char *norm_cpu_isa2str(norm_cpu_isa_t isa);

/* The number of threads that an execution may use, including the calling thread; 1 to
 * 255, process-wide. 1 keeps every execution on the calling thread. 0 restores the
 * default: NORM_NUM_THREADS (values above 255 mean 255; text that is not a number is
 * ignored), or else the number of CPUs available to the process. Other values are
 * norm_invalid_arguments. The number of threads never changes a bit of a result.
 *
 * The library owns its worker threads. They start with the first execution
 * that needs them and sleep when idle. A child of fork() starts its own. */
NORM_API norm_status_t norm_set_num_threads(int num_threads);
/* The number of threads that an execution may use. */
NORM_API int norm_get_num_threads(void);
/* The number of threads that took part in the calling thread's last
 * norm_primitive_execute or norm_primitive_execute_many; 0 before the first.
 * For tests and tuning. */
NORM_API int norm_get_last_num_threads(void);

/* Prints lines that begin with "norm_verbose," to standard output. Level 0
 * prints nothing; 1 prints each execution with its time in milliseconds; 2
 * also prints each creation and why implementations were skipped. Until the
 * first call the level comes from the environment variable NORM_VERBOSE (a
 * level, or oneDNN's words: none, profile_exec, profile_create, all). Other
 * levels are norm_invalid_arguments. */
NORM_API norm_status_t norm_set_verbose(int level);

#include "norm_gated.h"

#ifdef __cplusplus
}
#endif

#include "norm_rope.h"
#include "norm_sdpa.h"
#include "norm_kv_cache.h"

#endif /* NORM_H */
