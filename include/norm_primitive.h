/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_primitive.h - primitive descriptors and primitives. Programs include norm.h.
 */
#ifndef NORM_PRIMITIVE_H
#define NORM_PRIMITIVE_H

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* NORM_PRIMITIVE_H */
