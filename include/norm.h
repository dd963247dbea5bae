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

#include <stddef.h>
#include <stdint.h>

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

/* What a function did. Values above 6 are not used. */
typedef enum {
    norm_success = 0,           /* done */
    norm_out_of_memory = 1,     /* memory could not be had */
    norm_invalid_arguments = 2, /* a parameter is wrong; nothing was done */
    norm_unimplemented = 3,     /* legal, but not built here */
    norm_last_impl_reached = 4, /* norm_primitive_desc_next_impl: no more */
    norm_runtime_error = 5,     /* a defect of the library, caught */
    norm_not_required = 6       /* the query has no answer for this object */
} norm_status_t;

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

typedef struct {
    int major;            /* changes when programs must change */
    int minor;            /* changes when something was added */
    int patch;            /* changes when something was mended */
    const char *hash;     /* the sources' revision, or "" if not known */
    unsigned cpu_runtime; /* 0x01000000: the library's own threads */
    unsigned gpu_runtime; /* 0: none */
} norm_version_t;

/* The version of the library that runs. Never NULL. */
NORM_API const norm_version_t *norm_version(void);

/* ------------------------------------------------------------------------ */
/* Data types, dimensions, layouts                                          */
/* ------------------------------------------------------------------------ */

/* The type of a tensor's elements. Layer normalization takes f32, bf16 and f16;
 * descriptors and memory may be made of any type below. */
typedef enum {
    norm_data_type_undef = 0,
    norm_f16 = 1,  /* IEEE 754 binary16 */
    norm_bf16 = 2, /* the upper half of a binary32, rounded to nearest even */
    norm_f32 = 3,  /* IEEE 754 binary32 */
    norm_s32 = 4,
    norm_s8 = 5,
    norm_u8 = 6,
    norm_f64 = 7 /* IEEE 754 binary64 */
} norm_data_type_t;

/* Bytes per element; 0 for norm_data_type_undef and unknown values. */
NORM_API size_t norm_data_type_size(norm_data_type_t data_type);
/* "f32", "bf16", ...; "undef" for norm_data_type_undef, "unknown data type" for
 * a value that does not exist. */
NORM_API const char *norm_dt2str(norm_data_type_t data_type);

/* The largest number of dimensions a descriptor can have. */
#define NORM_MAX_NDIMS 12

typedef int64_t norm_dim_t;
/* Dimensions or strides; entries from ndims on are not read. Strides count
 * elements, not bytes. */
typedef norm_dim_t norm_dims_t[NORM_MAX_NDIMS];

/* How the elements of a tensor lie in memory. Letters are the logical
 * dimensions, outermost first: with norm_ba of a 2D tensor the first dimension
 * is contiguous. */
typedef enum {
    norm_format_tag_undef = 0, /* no layout: the argument is left out */
    norm_format_tag_any = 1,   /* the primitive descriptor chooses */
    norm_a = 2,
    norm_ab = 3,
    norm_abc = 4,
    norm_abcd = 5,
    norm_abcde = 6,
    norm_abcdef = 7,
    norm_ba = 14,
    norm_acb = 15,
    norm_bac = 16,
    norm_bca = 17,
    norm_cab = 18,
    norm_cba = 19,
    norm_abdc = 20,
    norm_acbd = 21,
    norm_acdb = 22,
    norm_adbc = 23,
    norm_adcb = 24,
    norm_bacd = 25,
    norm_bcda = 26,
    norm_cdab = 27,
    norm_cdba = 28,
    norm_dcab = 29,
    norm_abced = 30,
    norm_abdec = 31,
    norm_acbde = 32,
    norm_acdeb = 33,
    norm_adecb = 34,
    norm_bacde = 35,
    norm_bcdea = 36,
    norm_cdeab = 37,
    norm_cdeba = 38,
    norm_decab = 39,
    norm_abcdfe = 40,
    norm_abdefc = 41,
    norm_abdfce = 42,
    norm_acbdef = 43,
    norm_adefcb = 44,
    norm_defcab = 45,
    norm_bcad = 835,
    norm_cabd = 836,
    norm_dabc = 837,
    /* names by meaning: n batch, t time, c channels */
    norm_x = norm_a,
    norm_nc = norm_ab,
    norm_cn = norm_ba,
    norm_tn = norm_ab,
    norm_nt = norm_ba,
    norm_tnc = norm_abc,
    norm_ntc = norm_bac,
    norm_ncw = norm_abc,
    norm_nwc = norm_acb,
    norm_nchw = norm_abcd,
    norm_nhwc = norm_acdb,
    norm_chwn = norm_bcda,
    norm_ncdhw = norm_abcde,
    norm_ndhwc = norm_acdeb,
    norm_ldnc = norm_abcd
} norm_format_tag_t;

/* The letters of a tag ("abc"), "undef" or "any"; "unknown format tag" for a
 * value that does not exist. */
NORM_API const char *norm_fmt_tag2str(norm_format_tag_t tag);

typedef enum {
    norm_format_kind_undef = 0,  /* an empty descriptor */
    norm_format_kind_any = 1,    /* made with norm_format_tag_any */
    /* strides are known; oneDNN has the value but keeps the name to itself */
    norm_blocked = 2
} norm_format_kind_t;

/* ------------------------------------------------------------------------ */
/* Engine                                                                   */
/* ------------------------------------------------------------------------ */

typedef enum {
    norm_any_engine = 0,
    norm_cpu = 1,
    norm_gpu = 2 /* none is offered: the count is 0 */
} norm_engine_kind_t;

/* Where primitives run. */
struct norm_engine;
typedef struct norm_engine *norm_engine_t;

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

typedef enum {
    norm_stream_in_order = 0x1U,
    norm_stream_out_of_order = 0x2U,
    norm_stream_default_flags = norm_stream_in_order
} norm_stream_flags_t;

/* What executes primitives, in the order of the calls. On the CPU an execution
 * is finished when norm_primitive_execute returns. */
struct norm_stream;
typedef struct norm_stream *norm_stream_t;
typedef const struct norm_stream *const_norm_stream_t;

/* Creates a stream. `flags` is norm_stream_in_order or norm_stream_out_of_order. */
NORM_API norm_status_t norm_stream_create(
        norm_stream_t *stream, norm_engine_t engine, unsigned flags);
/* The engine that the stream was created with; owned by the stream. */
NORM_API norm_status_t norm_stream_get_engine(
        const_norm_stream_t stream, norm_engine_t *engine);
/* Waits until everything on the stream has finished: here, at once. */
NORM_API norm_status_t norm_stream_wait(norm_stream_t stream);
NORM_API norm_status_t norm_stream_destroy(norm_stream_t stream);

/* One piece of an execution: `index` is below the count given to
 * norm_parallel_for_t. Pieces may run in any order, at once or one by one. */
typedef void (*norm_parallel_body_t)(int index, void *body_context);
/* Runs body(0, body_context) ... body(count - 1, body_context), each once, and
 * returns when all have returned. `pool` is what the caller registered. */
typedef void (*norm_parallel_for_t)(
        void *pool, int count, norm_parallel_body_t body, void *body_context);

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

/* Dimensions, data type and layout of a tensor, without data. */
struct norm_memory_desc;
typedef struct norm_memory_desc *norm_memory_desc_t;
typedef const struct norm_memory_desc *const_norm_memory_desc_t;

/* What can be asked of a memory descriptor or primitive descriptor; the type
 * that `result` points to stands behind each. */
typedef enum {
    norm_query_undef = 0,
    norm_query_engine = 1,                /* norm_engine_t */
    norm_query_primitive_kind = 2,        /* norm_primitive_kind_t */
    norm_query_num_of_inputs_s32 = 3,     /* int */
    norm_query_num_of_outputs_s32 = 4,    /* int */
    norm_query_time_estimate_f64 = 5,     /* double; not required here */
    norm_query_memory_consumption_s64 = 6, /* norm_dim_t, bytes of scratchpad
                                              that the library provides */
    norm_query_scratchpad_engine = 7,     /* norm_engine_t */
    norm_query_impl_info_str = 8,         /* const char *, "simd:avx512" */
    norm_query_prop_kind = 11,            /* norm_prop_kind_t */
    norm_query_epsilon_f32 = 18,          /* float */
    norm_query_flags = 19,                /* unsigned */
    /* memory descriptors of a primitive descriptor: const_norm_memory_desc_t */
    norm_query_some_md = 128,
    norm_query_src_md = 129, /* index 1 mean, 2 variance where they are inputs */
    norm_query_diff_src_md = 130,
    norm_query_weights_md = 131,      /* scale and shift */
    norm_query_diff_weights_md = 132, /* index 0 diff_scale, 1 diff_shift */
    norm_query_dst_md = 133, /* index 1 mean, 2 variance where they are outputs */
    norm_query_diff_dst_md = 134,
    norm_query_workspace_md = 135,
    norm_query_scratchpad_md = 136,
    norm_query_exec_arg_md = 255, /* index is a NORM_ARG_* id */
    /* of a memory descriptor */
    norm_query_ndims_s32 = 256,            /* int */
    norm_query_dims = 257,                 /* const norm_dims_t * */
    norm_query_data_type = 258,            /* norm_data_type_t */
    norm_query_submemory_offset_s64 = 259, /* norm_dim_t, elements */
    norm_query_padded_dims = 260,          /* const norm_dims_t * */
    norm_query_padded_offsets = 261,       /* const norm_dims_t * */
    norm_query_format_kind = 262,          /* norm_format_kind_t */
    norm_query_inner_nblks_s32 = 263,      /* int: 0, layouts are plain */
    norm_query_inner_blks = 264,           /* const norm_dims_t * */
    norm_query_inner_idxs = 265,           /* const norm_dims_t * */
    norm_query_strides = 14                /* const norm_dims_t *, elements */
} norm_query_t;

/* A descriptor with the dense layout that a tag names. `ndims` 0 makes an empty
 * descriptor (dims is not read). Dimensions are 0 or more. With
 * norm_format_tag_any the layout is left to a primitive descriptor; memory cannot
 * be made of such a descriptor. A tag with another number of letters than `ndims`
 * is norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_create_with_tag(
        norm_memory_desc_t *memory_desc, int ndims, const norm_dim_t *dims,
        norm_data_type_t data_type, norm_format_tag_t tag);
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
/* Bytes from the first to one past the last element; 0 for an empty descriptor,
 * one with a dimension of 0, one of kind any, and NULL. */
NORM_API size_t norm_memory_desc_get_size(const_norm_memory_desc_t memory_desc);
/* Writes the answer to `what` to `result`. Pointers written are owned by the
 * descriptor. norm_query_strides of a descriptor of kind any or undef is
 * norm_invalid_arguments. */
NORM_API norm_status_t norm_memory_desc_query(
        const_norm_memory_desc_t memory_desc, norm_query_t what, void *result);

/* ------------------------------------------------------------------------ */
/* Memory                                                                   */
/* ------------------------------------------------------------------------ */

/* A memory descriptor and a buffer. */
struct norm_memory;
typedef struct norm_memory *norm_memory_t;
typedef const struct norm_memory *const_norm_memory_t;

#define NORM_MEMORY_NONE (NULL)
#define NORM_MEMORY_ALLOCATE ((void *)(size_t)-1)

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
NORM_API norm_status_t norm_memory_destroy(norm_memory_t memory);
/* The descriptor; owned by the memory. */
NORM_API norm_status_t norm_memory_get_memory_desc(
        const_norm_memory_t memory, const_norm_memory_desc_t *memory_desc);
/* The engine; owned by the memory. */
NORM_API norm_status_t norm_memory_get_engine(
        const_norm_memory_t memory, norm_engine_t *engine);
NORM_API norm_status_t norm_memory_get_data_handle(
        const_norm_memory_t memory, void **handle);
/* Replaces the buffer, NULL for none. A buffer that the library allocated is
 * freed. */
NORM_API norm_status_t norm_memory_set_data_handle(
        norm_memory_t memory, void *handle);
/* Gives an address at which the data can be read and written until
 * norm_memory_unmap_data; NULL if there is no buffer. On the CPU it is the
 * buffer itself. */
NORM_API norm_status_t norm_memory_map_data(
        const_norm_memory_t memory, void **mapped_ptr);
/* Ends a mapping; `mapped_ptr` is what norm_memory_map_data gave. */
NORM_API norm_status_t norm_memory_unmap_data(
        const_norm_memory_t memory, void *mapped_ptr);

/* ------------------------------------------------------------------------ */
/* Primitive attributes                                                     */
/* ------------------------------------------------------------------------ */

/* Who provides the temporary memory of an execution. */
typedef enum {
    /* The library, from a buffer per calling thread that grows on first use. */
    norm_scratchpad_mode_library = 0,
    /* The caller, as argument NORM_ARG_SCRATCHPAD, described by
     * norm_query_scratchpad_md; one per execution in flight. An empty descriptor
     * means that none is needed, and the argument may be left out. */
    norm_scratchpad_mode_user = 1
} norm_scratchpad_mode_t;

struct norm_primitive_attr;
typedef struct norm_primitive_attr *norm_primitive_attr_t;
typedef const struct norm_primitive_attr *const_norm_primitive_attr_t;

/* Attributes with their defaults: scratchpad by the library. */
NORM_API norm_status_t norm_primitive_attr_create(norm_primitive_attr_t *attr);
NORM_API norm_status_t norm_primitive_attr_clone(
        norm_primitive_attr_t *attr, const_norm_primitive_attr_t existing_attr);
NORM_API norm_status_t norm_primitive_attr_destroy(norm_primitive_attr_t attr);
NORM_API norm_status_t norm_primitive_attr_get_scratchpad_mode(
        const_norm_primitive_attr_t attr, norm_scratchpad_mode_t *mode);
NORM_API norm_status_t norm_primitive_attr_set_scratchpad_mode(
        norm_primitive_attr_t attr, norm_scratchpad_mode_t mode);

/* ------------------------------------------------------------------------ */
/* Primitive descriptor                                                     */
/* ------------------------------------------------------------------------ */

typedef enum {
    norm_undefined_primitive = 0,
    norm_layer_normalization = 20
} norm_primitive_kind_t;

typedef enum {
    norm_prop_kind_undef = 0,
    norm_forward_training = 64,  /* statistics are outputs */
    norm_forward_inference = 96, /* statistics are not exposed */
    norm_forward = norm_forward_training,
    norm_backward = 128,     /* diff_src, diff_scale, diff_shift */
    norm_backward_data = 160 /* diff_src alone */
} norm_prop_kind_t;

/* "forward_training", ...; "undef", or "unknown prop_kind". */
NORM_API const char *norm_prop_kind2str(norm_prop_kind_t prop_kind);

/* A problem, checked, with the implementation chosen. */
struct norm_primitive_desc;
typedef struct norm_primitive_desc *norm_primitive_desc_t;
typedef const struct norm_primitive_desc *const_norm_primitive_desc_t;

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
 * problem has no such thing (a mean with norm_rms_norm, say). */
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

/* A problem ready to run. Immutable: it may be executed from several threads at
 * once, each with its own outputs (and scratchpad, if the caller provides it). */
struct norm_primitive;
typedef struct norm_primitive *norm_primitive_t;
typedef const struct norm_primitive *const_norm_primitive_t;

/* Execution argument ids. */
#define NORM_ARG_SRC 1
#define NORM_ARG_DST 17
#define NORM_ARG_MEAN 49
#define NORM_ARG_VARIANCE 50
#define NORM_ARG_SCALE 51
#define NORM_ARG_SHIFT 52
#define NORM_ARG_WORKSPACE 64
#define NORM_ARG_SCRATCHPAD 80
#define NORM_ARG_DIFF_SRC 129
#define NORM_ARG_DIFF_DST 145
#define NORM_ARG_DIFF_SCALE 255
#define NORM_ARG_DIFF_SHIFT 256

typedef struct {
    int arg;              /* NORM_ARG_* */
    norm_memory_t memory; /* not owned */
} norm_exec_arg_t;

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

/* Flags of a normalization; any combination of the first three and rms_norm. */
typedef enum {
    norm_normalization_flags_none = 0x0U,
    /* Mean and variance are inputs forward, and constants for the gradient. */
    norm_use_global_stats = 0x1U,
    norm_use_scale = 0x2U, /* scale (gamma) is an input, diff_scale an output */
    norm_use_shift = 0x4U, /* shift (beta) is an input, diff_shift an output */
    norm_fuse_norm_relu = 0x8U,      /* norm_invalid_arguments here */
    norm_fuse_norm_add_relu = 0x10U, /* norm_invalid_arguments here */
    /* RMS normalization (Zhang and Sennrich 2019): no mean anywhere, and the
     * variance slot holds RMS^2, the mean of the squares, without epsilon. */
    norm_rms_norm = 0x20U
} norm_normalization_flags_t;

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
 * f64 sums, rounded to the type of dst once. A row's result depends on the row,
 * its types and the flags alone: not on the instruction set, the threads, the
 * batch, its place in it, the layout or the alignment. A row whose squares leave
 * the range of f32 is computed in f64; its variance saturates to +Inf. With
 * variance + epsilon = 0 the factor 1/sqrt is taken as 0.
 *
 * prop_kind     norm_forward_training or norm_forward_inference
 * src_desc      2 to 5 dimensions, f32, bf16 or f16, a layout of its own
 * dst_desc      the same dimensions, f32, bf16 or f16, any layout or "any" (then
 *               as src)
 * stat_desc     mean and variance: f32, the dimensions of src without the last;
 *               NULL, an empty descriptor or "any" for the order of src
 * epsilon       added to the variance inside the root; finite and not negative
 * flags         norm_normalization_flags_t, or-ed
 * attr          may be NULL
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
 * its statistics taken anew from src, unless use_global_stats is set.
 *
 * prop_kind      norm_backward, or norm_backward_data for diff_src alone (then
 *                scale is still read with use_scale: frozen parameters)
 * diff_src_desc  f32, bf16 or f16, any layout or "any" (then as src)
 * diff_dst_desc  likewise
 * src_desc       as forward
 * stat_desc, epsilon, flags, attr   as forward
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
/* Control of the whole library                                             */
/* ------------------------------------------------------------------------ */

/* The highest instruction set to use. oneDNN's values are understood; they mean
 * the best level below that they include: sse41 and avx mean portable, avx512_core
 * and everything above mean avx512. The result has the same bits at every level. */
typedef enum {
    norm_cpu_isa_default = 0x0, /* no cap */
    norm_cpu_isa_sse41 = 0x1,
    norm_cpu_isa_avx = 0x3,
    norm_cpu_isa_avx2 = 0x7,
    norm_cpu_isa_avx2_vnni = 0xf,
    norm_cpu_isa_avx2_vnni_2 = 0x1f,
    norm_cpu_isa_avx512_core = 0x27,
    norm_cpu_isa_avx512_core_vnni = 0x67,
    norm_cpu_isa_avx512_core_bf16 = 0xe7,
    norm_cpu_isa_avx10_1_512 = 0x1ef,
    norm_cpu_isa_avx512_core_fp16 = norm_cpu_isa_avx10_1_512,
    norm_cpu_isa_avx10_1_512_amx = 0xfef,
    norm_cpu_isa_avx512_core_amx = norm_cpu_isa_avx10_1_512_amx,
    norm_cpu_isa_avx10_1_512_amx_fp16 = 0x1fef,
    norm_cpu_isa_avx512_core_amx_fp16 = norm_cpu_isa_avx10_1_512_amx_fp16,
    norm_cpu_isa_portable = 0x01000000, /* plain code, no vector instructions */
    norm_cpu_isa_neon = 0x01000001
} norm_cpu_isa_t;

/* Caps the instruction set of the primitive descriptors that are created from
 * now on, in the whole process; may be called again. The environment variable
 * NORM_MAX_CPU_ISA (portable, avx2, avx512, neon, or oneDNN's names) sets the cap
 * that holds until the first call; a name that is not understood sets none.
 * norm_unimplemented for a level of another architecture than the machine's. */
NORM_API norm_status_t norm_set_max_cpu_isa(norm_cpu_isa_t isa);
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
 * implementations were passed over. The environment variable NORM_VERBOSE sets
 * the level that holds until the first call. Levels other than 0, 1 and 2 are
 * norm_invalid_arguments. */
NORM_API norm_status_t norm_set_verbose(int level);

#ifdef __cplusplus
}
#endif

#endif /* NORM_H */
