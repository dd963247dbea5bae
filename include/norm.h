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
 *
 * Programs include this header. It includes norm_types.h (types and enumerators),
 * norm_memory.h, norm_attr.h and norm_primitive.h (the objects of an execution), a
 * header for each group of operations, and norm_kv_cache.h.
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

#ifdef __cplusplus
}
#endif

#include "norm_memory.h"
#include "norm_attr.h"
#include "norm_primitive.h"
#include "norm_normalization.h"
#include "norm_softmax.h"
#include "norm_rows.h"
#include "norm_elementwise.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#include "norm_gated.h"
#include "norm_rope.h"
#include "norm_sdpa.h"
#include "norm_kv_cache.h"

#endif /* NORM_H */
