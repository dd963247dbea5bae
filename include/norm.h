/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm.h - the C interface of libnorm.
 *
 * libnorm computes layer normalization and RMS normalization, forward and
 * backward, on the CPU. The objects and the order of calls are those of
 * oneDNN 3.x: what both libraries have takes the same parameters, and every
 * enumerator has the same numeric value.
 *
 *     engine + memory descriptors -> primitive descriptor -> primitive
 *     engine                      -> stream
 *     memory descriptor + buffer  -> memory
 *     primitive + stream + {argument id, memory} pairs -> norm_primitive_execute
 *
 * CONVENTIONS, true of every function unless its own text says otherwise
 *
 * Status.     A function returns norm_success or the reason why it did nothing.
 *             Outputs are written on success only. norm_get_last_error() then
 *             gives this thread's last failure as a sentence that names the
 *             parameter.
 *               norm_invalid_arguments  NULL where an object or an output is
 *                                       required, an enumerator that does not
 *                                       exist, dimensions that do not fit (at
 *                                       execution bytes alone are looked at),
 *                                       a missing execution argument, one of
 *                                       another data type or with too few bytes
 *               norm_unimplemented      legal, but not built
 *               norm_out_of_memory      a buffer could not be had
 *               norm_runtime_error      a defect of the library; never undefined
 *                                       behaviour, never an exception or abort
 * Handles.    Every *_t below that is a pointer is a handle. The caller owns
 *             what a *_create or *_clone function returned and gives it to the
 *             matching *_destroy, once. Destroying NULL succeeds. A handle that
 *             another object was made from may be destroyed before that object.
 *             Handles returned by queries (const ones) are owned by the object
 *             that was asked, and live as long as it does.
 * Threads.    Different objects may be used from different threads freely. One
 *             object may be read by many threads at once (that includes
 *             executing one primitive); changing or destroying it needs
 *             exclusion by the caller.
 * Strings.    Returned strings are NUL-terminated, static unless noted, and
 *             never freed by the caller.
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

/* The version of this header; norm_version() gives that of the library. */
#define NORM_VERSION_MAJOR 0
#define NORM_VERSION_MINOR 1
#define NORM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Status                                                                   */
/* ------------------------------------------------------------------------ */

/* The name of a status without the prefix ("success", "invalid_arguments");
 * "unknown status" for any other value. Never NULL. */
NORM_API const char *norm_status2str(norm_status_t status);

/* Why the calling thread's last failed call failed: one sentence that names
 * the function and the parameter; "" if none has failed yet. A successful call
 * leaves it as it is. The text belongs to the library and is valid until the
 * next failing call on this thread. Never NULL. */
NORM_API const char *norm_get_last_error(void);

/* ------------------------------------------------------------------------ */
/* Version                                                                  */
/* ------------------------------------------------------------------------ */

/* The version of the library that runs. Never NULL. */
NORM_API const norm_version_t *norm_version(void);

/* ------------------------------------------------------------------------ */
/* Data types, dimensions, layouts                                          */
/* ------------------------------------------------------------------------ */

/* Bytes per element, rounded up; 0 for norm_data_type_undef and unknown values. */
NORM_API size_t norm_data_type_size(norm_data_type_t data_type);
/* "f32", "bf16", ...; "undef" for norm_data_type_undef, "unknown data type" for
 * a value that does not exist. */
NORM_API const char *norm_dt2str(norm_data_type_t data_type);

/* The letters of a tag ("abc"), "undef" or "any"; "unknown format tag" for a
 * value that does not exist. */
NORM_API const char *norm_fmt_tag2str(norm_format_tag_t tag);

/* ------------------------------------------------------------------------ */
/* Engine                                                                   */
/* ------------------------------------------------------------------------ */

/* How many engines of a kind there are: 1 for norm_cpu and norm_any_engine, 0
 * for every other value. */
NORM_API size_t norm_engine_get_count(norm_engine_kind_t kind);
/* Creates the engine `index` (0) of kind norm_cpu or norm_any_engine. */
NORM_API norm_status_t norm_engine_create(
        norm_engine_t *engine, norm_engine_kind_t kind, size_t index);
NORM_API norm_status_t norm_engine_get_kind(
        norm_engine_t engine, norm_engine_kind_t *kind);
NORM_API norm_status_t norm_engine_destroy(norm_engine_t engine);

/* ------------------------------------------------------------------------ */
/* Stream                                                                   */
/* ------------------------------------------------------------------------ */

/* Creates a stream. `flags` is norm_stream_in_order or norm_stream_out_of_order. */
NORM_API norm_status_t norm_stream_create(
        norm_stream_t *stream, norm_engine_t engine, unsigned flags);
/* The engine that the stream was created with; owned by the stream. */
NORM_API norm_status_t norm_stream_get_engine(
        const_norm_stream_t stream, norm_engine_t *engine);
/* Waits until everything on the stream has finished: here, at once. */
NORM_API norm_status_t norm_stream_wait(norm_stream_t stream);
NORM_API norm_status_t norm_stream_destroy(norm_stream_t stream);

/* Makes every execution on this stream use the caller's threads instead of the
 * library's. `num_threads` (1 or more) is how many of them are worth splitting
 * for. `parallel_for` NULL goes back to the library's own; `pool` is handed
 * through unread and must live as long as the stream uses it. The results have
 * the same bits either way. */
NORM_API norm_status_t norm_stream_set_parallel_for(norm_stream_t stream,
        norm_parallel_for_t parallel_for, void *pool, int num_threads);

/* ------------------------------------------------------------------------ */
/* Memory descriptor                                                        */
/* ------------------------------------------------------------------------ */

/* A descriptor with the dense layout that a tag names; dimensions that it cuts into
 * blocks are filled up to whole blocks (norm_query_padded_dims). `ndims` 0 makes an empty
 * descriptor (dims is not read). Dimensions are 0 or more. With
 * norm_format_tag_any the layout is left to a primitive descriptor; memory cannot
 * be made of such a descriptor. A tag with another number of letters than `ndims`
 * is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_create_with_tag(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, norm_format_tag_t tag);
/* The same with the letters of a tag, and of layouts that no tag has: every
 * dimension once, "a" the first one, outermost first; then the inner blocks, sizes
 * and dimensions, outermost first: "cBA6a7b". Capitals make no difference. No other
 * text, "any" among them, is a tag. */
NORM_API norm_status_t norm_memory_desc_create_with_string_tag(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, const char *tag);
/* Changes the type of the elements; the layout, counted in elements, stays. Not of
 * an empty descriptor, and not of one that another object owns. */
NORM_API norm_status_t norm_memory_desc_set_data_type(
        norm_memory_desc_t memory_desc, norm_data_type_t data_type);
/* A part of a tensor: `dims` elements from `offsets` on. It has the strides of the
 * parent, and is used with the parent's buffer. Of a dimension that is cut into
 * blocks a part begins with a block and ends with one, or with the tensor;
 * norm_unimplemented otherwise. */
NORM_API norm_status_t norm_memory_desc_create_submemory(
        norm_memory_desc_t *memory_desc,
        const_norm_memory_desc_t parent_memory_desc, const norm_dims_t dims,
        const norm_dims_t offsets);
/* The same elements in the same logical order as a tensor of other dimensions.
 * norm_invalid_arguments if their number differs, or if no layout does that
 * without moving them: dimensions that are joined or cut must lie densely and not
 * in blocks. */
NORM_API norm_status_t norm_memory_desc_reshape(
        norm_memory_desc_t *out_memory_desc,
        const_norm_memory_desc_t in_memory_desc, int ndims,
        const norm_dims_t dims);
/* The same elements with the dimensions in another order: dimension i becomes
 * dimension permutation[i]. */
NORM_API norm_status_t norm_memory_desc_permute_axes(
        norm_memory_desc_t *out_memory_desc,
        const_norm_memory_desc_t in_memory_desc, const int *permutation);
/* The descriptor as bytes: with `blob` NULL writes how many they are to `size`,
 * otherwise writes them, for which `size` must say that there is room. */
NORM_API norm_status_t norm_memory_desc_get_blob(
        uint8_t *blob, size_t *size, const_norm_memory_desc_t memory_desc);
/* The descriptor that such bytes, all of them, stand for. Bytes that were changed
 * or come from another version are norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_create_with_blob(
        norm_memory_desc_t *memory_desc, const uint8_t *blob);
/* A descriptor with the given strides, in elements, 0 or more. Element
 * (i0, i1, ...) lies at i0*strides[0] + i1*strides[1] + ... `strides` NULL means
 * dense row-major. A stride of 0 repeats one element and is for inputs only: an
 * output with overlapping elements is norm_invalid_arguments at the primitive
 * descriptor. */
NORM_API norm_status_t norm_memory_desc_create_with_strides(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, const norm_dim_t *strides);
NORM_API norm_status_t norm_memory_desc_clone(norm_memory_desc_t *memory_desc,
        const_norm_memory_desc_t existing_memory_desc);
NORM_API norm_status_t norm_memory_desc_destroy(norm_memory_desc_t memory_desc);
/* 1 if both describe the same tensor (dimensions of size 1 have no stride worth
 * comparing), 0 if not or if one is NULL. NULL equals NULL. */
NORM_API int norm_memory_desc_equal(
        const_norm_memory_desc_t lhs, const_norm_memory_desc_t rhs);
/* Bytes of a buffer for the tensor: from its start (for a part, the start of the
 * parent's buffer) to one past the last element, what fills up blocks included; 0
 * for an empty descriptor, one with a dimension of 0, one of kind any, and NULL. */
NORM_API size_t norm_memory_desc_get_size(const_norm_memory_desc_t memory_desc);
/* The same of the buffer number `index`; 0 if it is not 0. */
NORM_API size_t norm_memory_desc_get_size_v2(
        const_norm_memory_desc_t memory_desc, int index);
/* Writes the answer to `what` to `result`. Pointers written are owned by the
 * descriptor. norm_query_strides and those of inner blocks, of a descriptor of
 * kind any or undef, are norm_invalid_arguments; what is not asked of a memory
 * descriptor is norm_unimplemented. In _v2 `index` is 0. */
NORM_API norm_status_t norm_memory_desc_query(
        const_norm_memory_desc_t memory_desc, norm_query_t what, void *result);
NORM_API norm_status_t norm_memory_desc_query_v2(
        const_norm_memory_desc_t memory_desc, norm_query_t what, int index,
        void *result);

/* ------------------------------------------------------------------------ */
/* Memory                                                                   */
/* ------------------------------------------------------------------------ */

/* Creates memory. `handle` is
 *   NORM_MEMORY_ALLOCATE  the library allocates, zero-filled and 64-byte aligned,
 *                         and frees with the memory;
 *   NORM_MEMORY_NONE      no buffer yet (norm_memory_set_data_handle gives one);
 *   any other pointer     the caller's buffer of at least
 *                         norm_memory_desc_get_size() bytes, aligned for the
 *                         element type, which must outlive the memory.
 * The descriptor is copied. */
NORM_API norm_status_t norm_memory_create(norm_memory_t *memory,
        const_norm_memory_desc_t memory_desc, norm_engine_t engine,
        void *handle);
/* The same with a list of handles: one. An empty descriptor may have none. Of this
 * and the following functions, the forms with `index` take 0. */
NORM_API norm_status_t norm_memory_create_v2(norm_memory_t *memory,
        const_norm_memory_desc_t memory_desc, norm_engine_t engine,
        int nhandles, void **handles);
NORM_API norm_status_t norm_memory_destroy(norm_memory_t memory);
/* The descriptor; owned by the memory. */
NORM_API norm_status_t norm_memory_get_memory_desc(
        const_norm_memory_t memory, const_norm_memory_desc_t *memory_desc);
/* The engine; owned by the memory. */
NORM_API norm_status_t norm_memory_get_engine(
        const_norm_memory_t memory, norm_engine_t *engine);
NORM_API norm_status_t norm_memory_get_data_handle(
        const_norm_memory_t memory, void **handle);
NORM_API norm_status_t norm_memory_get_data_handle_v2(
        const_norm_memory_t memory, void **handle, int index);
/* Replaces the buffer, NULL for none. A buffer that the library allocated is
 * freed. */
NORM_API norm_status_t norm_memory_set_data_handle(
        norm_memory_t memory, void *handle);
NORM_API norm_status_t norm_memory_set_data_handle_v2(
        norm_memory_t memory, void *handle, int index);
/* Gives an address at which the data can be read and written until
 * norm_memory_unmap_data; NULL if there is no buffer. On the CPU it is the
 * buffer itself. */
NORM_API norm_status_t norm_memory_map_data(
        const_norm_memory_t memory, void **mapped_ptr);
NORM_API norm_status_t norm_memory_map_data_v2(
        const_norm_memory_t memory, void **mapped_ptr, int index);
/* Ends a mapping; `mapped_ptr` is what norm_memory_map_data gave. */
NORM_API norm_status_t norm_memory_unmap_data(
        const_norm_memory_t memory, void *mapped_ptr);
NORM_API norm_status_t norm_memory_unmap_data_v2(
        const_norm_memory_t memory, void *mapped_ptr, int index);

/* ------------------------------------------------------------------------ */
/* Primitive attributes                                                     */
/* ------------------------------------------------------------------------ */

/* Attributes with their defaults: scratchpad by the library, no scales, no zero
 * points, no post-operations, the math mode that norm_set_default_fpmath_mode set,
 * strict accumulation, not asked to be deterministic (it is nevertheless).
 *
 * The functions below take what exists; whether an operation can do it is decided
 * when its primitive descriptor is created, which is norm_unimplemented if not. */
NORM_API norm_status_t norm_primitive_attr_create(norm_primitive_attr_t *attr);
NORM_API norm_status_t norm_primitive_attr_clone(
        norm_primitive_attr_t *attr, const_norm_primitive_attr_t existing_attr);
NORM_API norm_status_t norm_primitive_attr_destroy(norm_primitive_attr_t attr);
NORM_API norm_status_t norm_primitive_attr_get_scratchpad_mode(
        const_norm_primitive_attr_t attr, norm_scratchpad_mode_t *mode);
NORM_API norm_status_t norm_primitive_attr_set_scratchpad_mode(
        norm_primitive_attr_t attr, norm_scratchpad_mode_t mode);
/* Whether f32 may be computed in a narrower type; nothing here makes use of it.
 * With apply_to_int not 0, integers too. Results of _v2 may be NULL. */
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode);
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode);
NORM_API norm_status_t norm_primitive_attr_get_fpmath_mode_v2(
        const_norm_primitive_attr_t attr, norm_fpmath_mode_t *mode,
        int *apply_to_int);
NORM_API norm_status_t norm_primitive_attr_set_fpmath_mode_v2(
        norm_primitive_attr_t attr, norm_fpmath_mode_t mode, int apply_to_int);
/* The type of sums. */
NORM_API norm_status_t norm_primitive_attr_get_accumulation_mode(
        const_norm_primitive_attr_t attr, norm_accumulation_mode_t *mode);
NORM_API norm_status_t norm_primitive_attr_set_accumulation_mode(
        norm_primitive_attr_t attr, norm_accumulation_mode_t mode);
/* Whether (1) equal inputs must give equal bits. They always do. */
NORM_API norm_status_t norm_primitive_attr_get_deterministic(
        const_norm_primitive_attr_t attr, int *value);
NORM_API norm_status_t norm_primitive_attr_set_deterministic(
        norm_primitive_attr_t attr, int value);
/* How the argument `arg` is rounded: NORM_ARG_DST or NORM_ARG_DIFF_SRC if not as
 * the environment says. No operation here takes stochastic rounding. */
NORM_API norm_status_t norm_primitive_attr_get_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t *mode);
NORM_API norm_status_t norm_primitive_attr_set_rounding(
        norm_primitive_attr_t attr, int arg, norm_rounding_mode_t mode);

/* Gives an argument of the primitive (NORM_ARG_SRC, NORM_ARG_DST) a scale. Its
 * value is an argument of the execution, NORM_ARG_ATTR_SCALES | arg: an input is
 * multiplied by its scale as it is read, an output is divided by its own before it
 * is rounded. Bit d of `mask` set: a scale for each index of dimension d, dense
 * row-major; 0: one for the tensor. The second form names the type of the scales
 * (f32 otherwise) and groups, which are not built: group_ndims is 0. In the third
 * `is_on_host` is 0, and in the fourth `qmode` is static_sazp; other values are
 * norm_unimplemented. */
NORM_API norm_status_t norm_primitive_attr_set_scales_mask(
        norm_primitive_attr_t attr, int arg, int mask);
NORM_API norm_status_t norm_primitive_attr_set_scales(norm_primitive_attr_t attr,
        int arg, int mask, int group_ndims, const norm_dims_t group_dims,
        norm_data_type_t data_type);
NORM_API norm_status_t norm_primitive_attr_set_scales_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dims_t group_dims, norm_data_type_t data_type,
        int is_on_host);
NORM_API norm_status_t norm_primitive_attr_set_scales_v3(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dims_t group_dims, norm_data_type_t data_type, int is_on_host,
        norm_quantization_mode_t qmode);
/* The same with zero points, whose values are s32 and the arguments
 * NORM_ARG_ATTR_ZERO_POINTS | arg: subtracted from an input before its scale,
 * added to an output after its own. */
NORM_API norm_status_t norm_primitive_attr_set_zero_points_mask(
        norm_primitive_attr_t attr, int arg, int mask);
NORM_API norm_status_t norm_primitive_attr_set_zero_points(
        norm_primitive_attr_t attr, int arg, int mask, int group_ndims,
        const norm_dims_t group_dims, norm_data_type_t data_type);
NORM_API norm_status_t norm_primitive_attr_set_zero_points_v2(
        norm_primitive_attr_t attr, int arg, int mask, int ndims,
        const norm_dims_t group_dims, norm_data_type_t data_type,
        int is_on_host);

/* The post-operations; owned by the attributes. */
NORM_API norm_status_t norm_primitive_attr_get_post_ops(
        const_norm_primitive_attr_t attr, const_norm_post_ops_t *post_ops);
/* Replaces the post-operations by a copy of `post_ops`. */
NORM_API norm_status_t norm_primitive_attr_set_post_ops(
        norm_primitive_attr_t attr, const_norm_post_ops_t post_ops);

/* ------------------------------------------------------------------------ */
/* Post-operations                                                          */
/* ------------------------------------------------------------------------ */

/* An empty list. A list has at most 32 entries; one more is norm_out_of_memory. */
NORM_API norm_status_t norm_post_ops_create(norm_post_ops_t *post_ops);
NORM_API norm_status_t norm_post_ops_clone(
        norm_post_ops_t *post_ops, const_norm_post_ops_t existing_post_ops);
NORM_API norm_status_t norm_post_ops_destroy(norm_post_ops_t post_ops);
/* The number of entries; 0 for NULL. */
NORM_API int norm_post_ops_len(const_norm_post_ops_t post_ops);
/* norm_sum, norm_eltwise, norm_binary, norm_prelu, or norm_convolution for a
 * depthwise one; norm_undefined_primitive if there is no entry `index`. */
NORM_API norm_primitive_kind_t norm_post_ops_get_kind(
        const_norm_post_ops_t post_ops, int index);

/* x + scale*(dst - zero_point), where dst is what the output held before, read as
 * data_type (norm_data_type_undef: its own). Of each _get_params_ function the
 * results may be NULL; an entry of another kind is norm_invalid_arguments. */
NORM_API norm_status_t norm_post_ops_append_sum(norm_post_ops_t post_ops,
        float scale, int32_t zero_point, norm_data_type_t data_type);
NORM_API norm_status_t norm_post_ops_get_params_sum(
        const_norm_post_ops_t post_ops, int index, float *scale,
        int32_t *zero_point, norm_data_type_t *data_type);
/* An elementwise function. For clip, beta is not below alpha. */
NORM_API norm_status_t norm_post_ops_append_eltwise(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, float alpha, float beta);
NORM_API norm_status_t norm_post_ops_get_params_eltwise(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        float *alpha, float *beta);
/* A function of x and the element of another tensor, src1. It has as many
 * dimensions as the output, each of the same size or 1, which repeats it. Its
 * memory is the argument NORM_ARG_ATTR_MULTIPLE_POST_OP(i) | NORM_ARG_SRC_1 of the
 * execution, where i is the place in this list. norm_binary_select takes a third
 * tensor, src2, and with it _v2; its memory is ... | NORM_ARG_SRC_2. src2_desc is
 * not read for the others. */
NORM_API norm_status_t norm_post_ops_append_binary(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc);
NORM_API norm_status_t norm_post_ops_append_binary_v2(norm_post_ops_t post_ops,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t src1_desc,
        const_norm_memory_desc_t src2_desc);
/* The descriptors are those that were given, owned by the list and valid until it
 * changes; src2_desc is an empty one if there is none. */
NORM_API norm_status_t norm_post_ops_get_params_binary(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc);
NORM_API norm_status_t norm_post_ops_get_params_binary_v2(
        const_norm_post_ops_t post_ops, int index, norm_alg_kind_t *alg_kind,
        const_norm_memory_desc_t *src1_desc,
        const_norm_memory_desc_t *src2_desc);
/* x > 0 ? x : w*x with weights w, one for each index of the dimensions in `mask`.
 * No operation here takes it. */
NORM_API norm_status_t norm_post_ops_append_prelu(
        norm_post_ops_t post_ops, int mask);
NORM_API norm_status_t norm_post_ops_get_params_prelu(
        const_norm_post_ops_t post_ops, int index, int *mask);
/* A depthwise convolution. No operation here takes it. */
NORM_API norm_status_t norm_post_ops_append_dw(norm_post_ops_t post_ops,
        norm_data_type_t weights_data_type, norm_data_type_t bias_data_type,
        norm_data_type_t dst_data_type, norm_dim_t kernel_size,
        norm_dim_t stride_size, norm_dim_t padding_l_size);
NORM_API norm_status_t norm_post_ops_get_params_dw(
        const_norm_post_ops_t post_ops, int index,
        norm_data_type_t *weights_data_type, norm_data_type_t *bias_data_type,
        norm_data_type_t *dst_data_type, norm_dim_t *kernel_size,
        norm_dim_t *stride_size, norm_dim_t *padding_l_size);

/* ------------------------------------------------------------------------ */
/* Primitive descriptor                                                     */
/* ------------------------------------------------------------------------ */

/* "forward_training", ...; "undef", or "unknown prop_kind". */
NORM_API const char *norm_prop_kind2str(norm_prop_kind_t prop_kind);

/* Moves to the next implementation that can run the problem, slower or equal;
 * norm_last_impl_reached (and no change) when there is none. */
NORM_API norm_status_t norm_primitive_desc_next_impl(
        norm_primitive_desc_t primitive_desc);
NORM_API norm_status_t norm_primitive_desc_clone(
        norm_primitive_desc_t *primitive_desc,
        const_norm_primitive_desc_t existing_primitive_desc);
NORM_API norm_status_t norm_primitive_desc_destroy(
        norm_primitive_desc_t primitive_desc);
/* The attributes; owned by the primitive descriptor. */
NORM_API norm_status_t norm_primitive_desc_get_attr(
        const_norm_primitive_desc_t primitive_desc,
        const_norm_primitive_attr_t *attr);
/* Writes the answer to `what` to `result`, whose type stands at norm_query_t.
 * `index` picks one of several; 0 where there is one. norm_not_required: this
 * problem has no such thing (a mean with norm_rms_norm, say); norm_unimplemented:
 * it is not asked of this operation. */
NORM_API norm_status_t norm_primitive_desc_query(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index, void *result);
/* The same for the memory descriptors (norm_query_some_md < what, up to
 * norm_query_exec_arg_md). An argument that the problem does not use has an
 * empty descriptor (0 dimensions). NULL if `what` is no memory descriptor or
 * primitive_desc is NULL. */
NORM_API const_norm_memory_desc_t norm_primitive_desc_query_md(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index);
/* The same for the *_s32 queries; 0 on failure. */
NORM_API int norm_primitive_desc_query_s32(
        const_norm_primitive_desc_t primitive_desc, norm_query_t what,
        int index);

/* ------------------------------------------------------------------------ */
/* Primitive                                                                */
/* ------------------------------------------------------------------------ */

NORM_API norm_status_t norm_primitive_create(norm_primitive_t *primitive,
        const_norm_primitive_desc_t primitive_desc);
/* Runs the primitive; the outputs are complete on return.
 *
 * `args` holds `nargs` pairs. Every argument that the problem uses must be there
 * with a memory of the data type and at least the size that
 * norm_query_exec_arg_md tells; of a repeated id the last counts; ids that the
 * problem does not use are ignored and their memory is never touched. An output
 * may share its buffer with no other argument, except where the operation's text
 * allows work in place. All checks come first: on failure nothing is written. Not
 * checked: that a memory has the problem's dimensions and strides (the problem's
 * are used), that buffers do not overlap, and their alignment.
 *
 * The caller's floating-point environment (rounding, flush-to-zero) is set aside
 * during the call and restored. No memory is allocated from the second execution
 * of a primitive on a thread, unless the number of threads was raised meanwhile. */
NORM_API norm_status_t norm_primitive_execute(const_norm_primitive_t primitive,
        norm_stream_t stream, int nargs, const norm_exec_arg_t *args);
/* The primitive descriptor; owned by the primitive. */
NORM_API norm_status_t norm_primitive_get_primitive_desc(
        const_norm_primitive_t primitive,
        const_norm_primitive_desc_t *primitive_desc);
NORM_API norm_status_t norm_primitive_destroy(norm_primitive_t primitive);

/* ------------------------------------------------------------------------ */
/* Layer normalization and RMS normalization                                */
/* ------------------------------------------------------------------------ */

/* Normalizes over the last logical dimension, of size C; all others together
 * count N rows. The primitive, forward, per row x:
 *
 *   layer norm   mean     = sum(x) / C
 *                variance = sum((x - mean)^2) / C             (population)
 *                dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
 *   rms_norm     variance = sum(x^2) / C
 *                dst      = x / sqrt(variance + epsilon) * scale + shift
 *
 * (Ba, Kiros and Hinton 2016; Zhang and Sennrich 2019.) Arithmetic is f32 with
 * f64 sums, rounded to the type of dst once; with src or dst in f64 it is f64
 * throughout (dst of a narrower type is rounded to f32 first). A row's result
 * depends on the row, its types, the flags and the attributes alone: not on the
 * instruction set, the threads, the batch, its place in it, the layout or the
 * alignment. A row whose squares leave
 * the range of f32 is computed in f64; its variance saturates to +Inf. With
 * variance + epsilon = 0 the factor 1/sqrt is taken as 0.
 *
 * prop_kind     norm_forward_training or norm_forward_inference
 * src_desc      2 to 5 dimensions, f32, bf16, f16, f64, s8, u8, f8_e4m3 or
 *               f8_e5m2, a layout of its own
 * dst_desc      the same dimensions, one of these types, any layout or "any"
 *               (then as src). s8 and u8 round to nearest even and saturate, NaN
 *               becomes 0; what is too large for f8_e5m2 becomes an infinity, for
 *               f8_e4m3, which has none, NaN
 * stat_desc     mean and variance: f32, the dimensions of src without the last;
 *               NULL, an empty descriptor or "any" for the order of src
 * epsilon       added to the variance inside the root; finite and not negative
 * flags         norm_normalization_flags_t, or-ed
 * attr          may be NULL. One scale for SRC and one for DST, eltwise, binary and
 *               sum post-operations, not with dst in f64. Done in f32: times the
 *               scale of SRC, the post-operations in order, times the reciprocal
 *               of the scale of DST; then dst is rounded. A sum's type has
 *               the size of dst's. A binary operand may be dst itself, laid out as it: it is
 *               read before it is written
 *
 * Arguments of the execution (in: read, out: written, -: ignored)
 *                          SRC DST MEAN VARIANCE SCALE SHIFT
 *   inference               in out  -     -       if use_scale, if use_shift: in
 *   training                in out out   out      likewise
 *   use_global_stats        in out in    in       likewise
 *   rms_norm                as above, MEAN always -
 * SCALE and SHIFT are dense 1D of C elements, f32 (or the type given to _v2).
 * SRC and DST may be one buffer if their types and layouts are the same. */
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

/* The gradient. With r = 1/sqrt(variance + epsilon), d = scale*diff_dst (or
 * diff_dst) and xhat = (src - mean)*r (rms_norm: src*r), per row:
 *
 *   layer norm         diff_src = r*(d - sum(d)/C - xhat*sum(d*xhat)/C)
 *   rms_norm           diff_src = r*(d - xhat*sum(d*xhat)/C)
 *   use_global_stats   diff_src = r*d
 *   over all rows      diff_scale = sum(diff_dst*xhat), diff_shift = sum(diff_dst)
 *
 * The rms_norm gradient has no sum(d) term: rms_norm subtracts no mean. (oneDNN
 * keeps that term; see docs/onednn.md.) diff_scale and diff_shift depend on the
 * rows and their order alone. A row whose variance is +Inf, subnormal or 0 has
 * its statistics taken anew from src, unless use_global_stats is set. So has every
 * row if a tensor is f64, and all arithmetic is f64 then: statistics in f32 would
 * leave 2^-24 of the mean in src - mean. MEAN and VARIANCE are still arguments.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src alone (then
 *                scale is still read with use_scale: frozen parameters)
 * diff_src_desc  f32, bf16, f16 or f64, any layout or "any" (then as src)
 * diff_dst_desc  likewise
 * src_desc       f32, bf16, f16 or f64, a layout of its own
 * stat_desc, epsilon, flags   as forward
 * attr           may be NULL; neither scales nor post-operations
 * hint_fwd_pd    may be NULL; not needed
 *
 * Arguments: in SRC, DIFF_DST, VARIANCE, MEAN (not with rms_norm), SCALE (with
 * use_scale); out DIFF_SRC, DIFF_SCALE (with use_scale), DIFF_SHIFT (with
 * use_shift), both of norm_backward only. DIFF_DST and DIFF_SRC may be one buffer
 * if their types and layouts are the same. With N = 0, DIFF_SCALE and DIFF_SHIFT
 * are zeros. */
NORM_API norm_status_t norm_layer_normalization_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t stat_desc,
        float epsilon, unsigned flags, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);
/* The same with scale and shift, and their gradients, in f32, bf16 or f16. The
 * two types may differ. */
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
/* Softmax                                                                  */
/* ------------------------------------------------------------------------ */

/* Softmax along one dimension. Per row x of C elements, with m = max(x) and
 * s = sum(exp(x - m)):
 *
 *   norm_softmax_accurate   dst = exp(x - m) / s
 *   norm_softmax_log        dst = (x - m) - log(s)
 *
 * Arithmetic is f32, sums of more than a few hundred elements f64; the bits depend
 * on none of the instruction set, the threads and the layouts. A row with NaN or
 * +Inf, or of -Inf alone, becomes NaN.
 *
 * prop_kind      norm_forward_training or norm_forward_inference, which are the same
 * alg_kind       norm_softmax_accurate or norm_softmax_log
 * src_desc       1 to 12 dimensions; f32, bf16, f16, s8, u8, f8_e5m2 or f8_e4m3; a
 *                layout of its own
 * dst_desc       the same dimensions, any of these types, any layout or "any" (then
 *                as src)
 * softmax_axis   the dimension of the rows, from 0
 * attr           may be NULL. Scales of SRC and DST, one for the tensor; eltwise and
 *                binary post-operations. The scale of SRC multiplies the result of
 *                the formula, as in oneDNN, then come the post-operations, then the
 *                division by the scale of DST
 *
 * Arguments: in SRC, and what the attributes ask for; out DST. SRC and DST may be
 * one buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_softmax_forward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_prop_kind_t prop_kind, norm_alg_kind_t alg_kind,
        const_norm_memory_desc_t src_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_attr_t attr);

/* The gradient, from dst as forward gave it. Per row:
 *
 *   norm_softmax_accurate   diff_src = dst*(diff_dst - sum(diff_dst*dst))
 *   norm_softmax_log        diff_src = diff_dst - exp(dst)*sum(diff_dst)
 *
 * diff_src_desc  f32, bf16 or f16, any layout or "any" (then as diff_dst)
 * diff_dst_desc  likewise (then as dst)
 * dst_desc       f32, bf16 or f16, a layout of its own
 * attr           may be NULL; neither scales nor post-operations
 * hint_fwd_pd    may be NULL; not needed
 *
 * Arguments: in DST, DIFF_DST; out DIFF_SRC, which may be one buffer with either if
 * the types and layouts are the same. */
NORM_API norm_status_t norm_softmax_backward_primitive_desc_create(
        norm_primitive_desc_t *primitive_desc, norm_engine_t engine,
        norm_alg_kind_t alg_kind, const_norm_memory_desc_t diff_src_desc,
        const_norm_memory_desc_t diff_dst_desc, const_norm_memory_desc_t dst_desc,
        int softmax_axis, const_norm_primitive_desc_t hint_fwd_pd,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Reorder                                                                  */
/* ------------------------------------------------------------------------ */

/* Brings a tensor into another layout and another data type. Per element
 *
 *   x   = src_scale * (src - src_zero_point)
 *   x  += sum_scale * dst                      (with a sum; dst as it was before)
 *   dst = x / dst_scale + dst_zero_point
 *
 * rounded to nearest even; integers saturate, NaN becomes 0, f8_e4m3 has NaN for
 * what it cannot hold. Where the types are the same and no attribute is set, the
 * bytes are copied. Arithmetic is f32, or f64 where a type is s32 or f64. What
 * fills up the blocks of dst is set to zeros. The bits depend on none of the
 * instruction set, the threads and the layouts.
 *
 * src_desc, dst_desc  the same dimensions, 1 to 12; any of f32, f64, bf16, f16,
 *                     s32, s8, u8, f8_e5m2, f8_e4m3; any layouts, but not "any"
 * attr                may be NULL. Scales of SRC and DST, with any mask; zero
 *                     points of those that are integers, likewise; one sum as
 *                     post-operation, of zero point 0 and the type of dst
 *
 * Arguments: in SRC, and what the attributes ask for; out DST. SRC and DST may be
 * one buffer if their types and layouts are the same. */
NORM_API norm_status_t norm_reorder_primitive_desc_create(
        norm_primitive_desc_t *reorder_primitive_desc,
        const_norm_memory_desc_t src_desc, norm_engine_t src_engine,
        const_norm_memory_desc_t dst_desc, norm_engine_t dst_engine,
        const_norm_primitive_attr_t attr);

/* ------------------------------------------------------------------------ */
/* Names                                                                    */
/* ------------------------------------------------------------------------ */

/* An enumerator without prefix: "cpu", "blocked", "layer_normalization",
 * "eltwise_relu", "user", "strict"; "undef" for the ones that say so, "unknown ..."
 * for a value that does not exist. Never NULL. */
NORM_API const char *norm_engine_kind2str(norm_engine_kind_t kind);
NORM_API const char *norm_fmt_kind2str(norm_format_kind_t format_kind);
NORM_API const char *norm_prim_kind2str(norm_primitive_kind_t primitive_kind);
NORM_API const char *norm_alg_kind2str(norm_alg_kind_t alg_kind);
NORM_API const char *norm_scratchpad_mode2str(norm_scratchpad_mode_t mode);
NORM_API const char *norm_fpmath_mode2str(norm_fpmath_mode_t mode);
NORM_API const char *norm_accumulation_mode2str(norm_accumulation_mode_t mode);
NORM_API const char *norm_rounding_mode2str(norm_rounding_mode_t mode);
NORM_API const char *norm_quantization_mode2str(norm_quantization_mode_t mode);
NORM_API const char *norm_cpu_isa_hints2str(norm_cpu_isa_hints_t isa_hints);

/* ------------------------------------------------------------------------ */
/* Control of the whole library                                             */
/* ------------------------------------------------------------------------ */

/* Caps the instruction set of the primitive descriptors that are created from
 * now on, in the whole process; may be called again. The environment variable
 * NORM_MAX_CPU_ISA (portable, avx2, avx512, neon, or oneDNN's names) sets the cap
 * that holds until the first call; a name that is not understood sets none.
 * norm_unimplemented for a level of another architecture than the machine's. */
NORM_API norm_status_t norm_set_max_cpu_isa(norm_cpu_isa_t isa);
/* What instructions to prefer. Kept, and otherwise without effect. */
NORM_API norm_status_t norm_set_cpu_isa_hints(norm_cpu_isa_hints_t isa_hints);
NORM_API norm_cpu_isa_hints_t norm_get_cpu_isa_hints(void);
/* How many primitives a cache may hold, 1024 at first. Kept for programs that ask;
 * primitives are quick to make, and none are cached. Negative values are
 * norm_invalid_arguments. */
NORM_API norm_status_t norm_get_primitive_cache_capacity(int *capacity);
NORM_API norm_status_t norm_set_primitive_cache_capacity(int capacity);
/* The math mode of attributes that are created from now on, in the whole process;
 * strict if never set. */
NORM_API norm_status_t norm_set_default_fpmath_mode(norm_fpmath_mode_t mode);
NORM_API norm_status_t norm_get_default_fpmath_mode(norm_fpmath_mode_t *mode);
/* The level that a primitive descriptor created now would use:
 * norm_cpu_isa_avx512_core, norm_cpu_isa_avx2, norm_cpu_isa_neon or
 * norm_cpu_isa_portable. */
NORM_API norm_cpu_isa_t norm_get_effective_cpu_isa(void);
/* "avx512_core", ...; "unknown cpu_isa" for a value that does not exist. */
NORM_API const char *norm_cpu_isa2str(norm_cpu_isa_t isa);

/* How many threads, the caller's included, an execution may use; process-wide.
 * 0 goes back to the default: NORM_NUM_THREADS (at most 255; what is no number is
 * ignored), or else the processors that the process may run on. 1 keeps every execution on its caller's thread. Negative
 * values and values above 255 are norm_invalid_arguments. The count never changes
 * a bit of a result. The library's threads are its own, start with the first
 * execution that needs them and sleep when there is nothing to do; a child of
 * fork() starts its own. */
NORM_API norm_status_t norm_set_num_threads(int num_threads);
NORM_API int norm_get_num_threads(void);
/* How many different threads took part in the calling thread's last
 * norm_primitive_execute; 0 before the first. For tests and tuning. */
NORM_API int norm_get_last_num_threads(void);

/* Lines on standard output, each beginning with "norm_verbose,": 0 none, 1 each
 * execution with its time in milliseconds, 2 also each creation and why
 * implementations were passed over. The environment variable NORM_VERBOSE (a
 * level, or oneDNN's words: none, profile_exec, profile_create, all) sets the one
 * that holds until the first call. Levels other than 0, 1 and 2 are
 * norm_invalid_arguments. */
NORM_API norm_status_t norm_set_verbose(int level);

#ifdef __cplusplus
}
#endif

#endif /* NORM_H */
