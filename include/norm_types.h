/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_types.h - the types and enumerators of libnorm. Programs include norm.h.
 */
#ifndef NORM_TYPES_H
#define NORM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "norm_own.h"
#include "norm_tags.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Status                                                                   */
/* ------------------------------------------------------------------------ */

/* The result of a function. Values above 6 are not used. */
typedef enum {
    norm_success = 0,           /* done */
    norm_out_of_memory = 1,     /* an allocation failed, or something with a limit is full */
    norm_invalid_arguments = 2, /* a parameter is wrong; nothing was done */
    norm_unimplemented = 3,     /* valid, but not implemented */
    norm_last_impl_reached = 4, /* norm_primitive_desc_next_impl: no more */
    norm_runtime_error = 5,     /* an internal error, caught */
    norm_not_required = 6       /* the queried object does not exist here */
} norm_status_t;

/* ------------------------------------------------------------------------ */
/* Version                                                                  */
/* ------------------------------------------------------------------------ */

/* What norm_version returns. */
typedef struct {
    int major;            /* incompatible changes */
    int minor;            /* additions */
    int patch;            /* fixes */
    const char *hash;     /* the source revision that `make` found in git or in
                           * the variable NORM_REVISION; "" if there was none */
    unsigned cpu_runtime; /* 0x01000000: the library's own threads */
    unsigned gpu_runtime; /* 0: none */
} norm_version_t;

/* ------------------------------------------------------------------------ */
/* Data types, dimensions, layouts                                          */
/* ------------------------------------------------------------------------ */

/* The type of a tensor's elements. Each operation lists the types it
 * supports. Descriptors and memory support the types up to norm_f8_e4m3
 * except norm_boolean, and norm_e8m0 and norm_s64; for the others their
 * functions return norm_unimplemented. */
typedef enum {
    norm_data_type_undef = 0,
    norm_f16 = 1,  /* IEEE 754 binary16 */
    norm_bf16 = 2, /* the upper half of a binary32, rounded to nearest even */
    norm_f32 = 3,  /* IEEE 754 binary32 */
    norm_s32 = 4,
    norm_s8 = 5,
    norm_u8 = 6,
    norm_f64 = 7, /* IEEE 754 binary64 */
    norm_boolean = 8,
    norm_f8_e5m2 = 9,  /* the upper half of a binary16, rounded to nearest even */
    norm_f8_e4m3 = 10, /* bias 7, no infinity, NaN 0x7f and 0xff (OCP 8-bit) */
    norm_s4 = 11,
    norm_u4 = 12,
    norm_e8m0 = 13, /* for scales and reorders: 2^(code - 127), NaN 0xff */
    norm_f4_e2m1 = 14,
    norm_f4_e3m0 = 15,
    norm_s64 = 16 /* for positions, slots, seeds of dropout, and reorders */
} norm_data_type_t;

/* Maximum number of dimensions of a descriptor. */
#define NORM_MAX_NDIMS 12

/* A dimension, a stride or a number of elements. */
typedef int64_t norm_dim_t;
/* Dimensions or strides. Entries from ndims on are ignored. Strides are in
 * elements, not bytes. */
typedef norm_dim_t norm_dims_t[NORM_MAX_NDIMS];

/* The kind of a descriptor's layout. */
typedef enum {
    norm_format_kind_undef = 0,  /* an empty descriptor */
    norm_format_kind_any = 1,    /* created with norm_format_tag_any */
    /* has strides; oneDNN has this value without a public name */
    norm_blocked = 2,
    norm_format_kind_opaque = 3,     /* oneDNN only */
    norm_format_kind_sparse = 4,     /* oneDNN only */
    norm_format_kind_host_scalar = 5 /* norm_memory_desc_create_host_scalar */
} norm_format_kind_t;

/* ------------------------------------------------------------------------ */
/* Engine                                                                   */
/* ------------------------------------------------------------------------ */

/* The kinds of engines. */
typedef enum {
    norm_any_engine = 0,
    norm_cpu = 1,
    norm_gpu = 2 /* not available: the count is 0 */
} norm_engine_kind_t;

/* The device that runs primitives. */
struct norm_engine;
typedef struct norm_engine *norm_engine_t;

/* ------------------------------------------------------------------------ */
/* Stream                                                                   */
/* ------------------------------------------------------------------------ */

/* Executions are synchronous, so both orders are the same. */
typedef enum {
    norm_stream_in_order = 0x1U,
    norm_stream_out_of_order = 0x2U,
    norm_stream_default_flags = norm_stream_in_order
} norm_stream_flags_t;

/* Executes primitives in call order. On the CPU an execution has finished
 * when norm_primitive_execute returns. */
struct norm_stream;
typedef struct norm_stream *norm_stream_t;
typedef const struct norm_stream *const_norm_stream_t;

/* One piece of an execution. `index` is less than the count passed to
 * norm_parallel_for_t. Pieces may run in any order, concurrently or one
 * after another, on any thread. */
typedef void (*norm_parallel_body_t)(int index, void *body_context);
/* Runs body(0, body_context) ... body(count - 1, body_context), each once,
 * and returns after all of them have returned. It throws no exception. `pool`
 * is the pointer registered with norm_stream_set_parallel_for. */
typedef void (*norm_parallel_for_t)(
        void *pool, int count, norm_parallel_body_t body, void *body_context);

/* ------------------------------------------------------------------------ */
/* Memory descriptor                                                        */
/* ------------------------------------------------------------------------ */

/* The dimensions, data type and layout of a tensor, without data. */
struct norm_memory_desc;
typedef struct norm_memory_desc *norm_memory_desc_t;
typedef const struct norm_memory_desc *const_norm_memory_desc_t;

/* Queries of memory descriptors and primitive descriptors. The comment gives
 * the type that `result` points to. */
typedef enum {
    norm_query_undef = 0,
    norm_query_engine = 1,                /* norm_engine_t */
    norm_query_primitive_kind = 2,        /* norm_primitive_kind_t */
    norm_query_num_of_inputs_s32 = 3,     /* int */
    norm_query_num_of_outputs_s32 = 4,    /* int */
    norm_query_time_estimate_f64 = 5,     /* double; not implemented */
    norm_query_memory_consumption_s64 = 6, /* norm_dim_t, bytes of scratchpad
                                              that the library allocates */
    norm_query_scratchpad_engine = 7,     /* norm_engine_t */
    norm_query_impl_info_str = 8,         /* const char *, "simd:avx512" */
    norm_query_reorder_src_engine = 9,    /* norm_engine_t, of a reorder */
    norm_query_reorder_dst_engine = 10,   /* norm_engine_t, of a reorder */
    norm_query_prop_kind = 11,            /* norm_prop_kind_t */
    norm_query_cache_blob_id_size_s64 = 12, /* norm_dim_t: 0, nothing is cached */
    norm_query_cache_blob_id = 13,        /* const uint8_t *; not implemented */
    norm_query_dilations = 15,            /* for other oneDNN operations; from here
                                             to group_size_s64 only those with a
                                             type are implemented */
    norm_query_padding_l = 16,
    norm_query_padding_r = 17,
    norm_query_epsilon_f32 = 18,          /* float */
    norm_query_flags = 19,                /* unsigned */
    norm_query_alg_kind = 20,             /* norm_alg_kind_t, of those with one */
    norm_query_alpha_f32 = 21,            /* float, of an eltwise */
    norm_query_beta_f32 = 22,             /* float, of an eltwise */
    norm_query_axis_s32 = 23,             /* int, of a softmax */
    norm_query_local_size_s64 = 24,
    norm_query_k_f32 = 25,
    norm_query_p_f32 = 26,
    norm_query_factors = 27,
    norm_query_cell_kind = 28,
    norm_query_direction = 29,
    norm_query_activation_kind = 30,
    norm_query_kernel = 31,
    norm_query_group_size_s64 = 32,       /* norm_dim_t: the groups of a group
                                             normalization */
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
    /* queries of a memory descriptor */
    norm_query_ndims_s32 = 256,            /* int */
    norm_query_dims = 257,                 /* const norm_dims_t * */
    norm_query_data_type = 258,            /* norm_data_type_t */
    norm_query_submemory_offset_s64 = 259, /* norm_dim_t, elements */
    norm_query_padded_dims = 260,          /* const norm_dims_t * */
    norm_query_padded_offsets = 261,       /* const norm_dims_t * */
    norm_query_format_kind = 262,          /* norm_format_kind_t */
    norm_query_inner_nblks_s32 = 263,      /* int: 0 for plain layouts */
    norm_query_inner_blks = 264,           /* const norm_dims_t * */
    norm_query_inner_idxs = 265,           /* const norm_dims_t * */
    norm_query_sparse_encoding = 266,      /* norm_invalid_arguments: no layout */
    norm_query_nnz_s64 = 267,              /* is sparse */
    norm_query_num_handles_s32 = 268,      /* int: 1 */
    norm_query_strides = 14                /* const norm_dims_t *, elements */
} norm_query_t;

/* ------------------------------------------------------------------------ */
/* Memory                                                                   */
/* ------------------------------------------------------------------------ */

/* A memory descriptor and a buffer. */
struct norm_memory;
typedef struct norm_memory *norm_memory_t;
typedef const struct norm_memory *const_norm_memory_t;

/* For norm_memory_create: no buffer yet. */
#define NORM_MEMORY_NONE (NULL)
/* For norm_memory_create: a buffer that the library allocates. */
#define NORM_MEMORY_ALLOCATE ((void *)(size_t)-1)

/* ------------------------------------------------------------------------ */
/* Primitive attributes                                                     */
/* ------------------------------------------------------------------------ */

/* Who provides the scratchpad, the temporary memory of an execution. */
typedef enum {
    /* The library, in a buffer per calling thread that grows on first use. */
    norm_scratchpad_mode_library = 0,
    /* The caller, as argument NORM_ARG_SCRATCHPAD, described by
     * norm_query_scratchpad_md. Concurrent executions need separate
     * scratchpads. If the descriptor is empty, no scratchpad is needed and
     * the argument may be omitted. */
    norm_scratchpad_mode_user = 1
} norm_scratchpad_mode_t;

/* Whether f32 may be computed in a narrower type. Results are those of
 * strict arithmetic in every mode. */
typedef enum {
    norm_fpmath_mode_strict = 0,
    norm_fpmath_mode_bf16 = 1,
    norm_fpmath_mode_f16 = 2,
    norm_fpmath_mode_any = 3,
    norm_fpmath_mode_tf32 = 4
} norm_fpmath_mode_t;

/* The type of accumulators. Operations accept strict, relaxed and any, and
 * treat them alike. */
typedef enum {
    norm_accumulation_mode_strict = 0,
    norm_accumulation_mode_relaxed = 1,
    norm_accumulation_mode_any = 2,
    norm_accumulation_mode_s32 = 3,
    norm_accumulation_mode_f32 = 4,
    norm_accumulation_mode_f16 = 5
} norm_accumulation_mode_t;

/* The rounding of an output. The environment mode rounds to nearest even. */
typedef enum {
    norm_rounding_mode_environment = 0,
    norm_rounding_mode_stochastic = 1
} norm_rounding_mode_t;

/* When scales are determined. */
typedef enum {
    norm_quantization_mode_undef = 0,
    norm_quantization_mode_static_sazp = 1, /* passed as execution arguments */
    norm_quantization_mode_dynamic_mx = 2, /* computed: a power of two, e8m0 */
    norm_quantization_mode_dynamic_fp = 3  /* computed: largest value / type's */
} norm_quantization_mode_t;

struct norm_primitive_attr;
typedef struct norm_primitive_attr *norm_primitive_attr_t;
typedef const struct norm_primitive_attr *const_norm_primitive_attr_t;

/* ------------------------------------------------------------------------ */
/* Post-operations                                                          */
/* ------------------------------------------------------------------------ */

/* Element-wise functions with parameters alpha (a) and beta (b), and binary and
 * softmax functions. Those that end with _use_dst_for_bwd differ only in
 * backward, which computes the gradient from dst. */
typedef enum {
    norm_alg_kind_undef = 0,
    norm_eltwise_relu = 0x20,      /* x > 0 ? x : a*x */
    norm_eltwise_tanh = 0x21,      /* tanh(x) */
    norm_eltwise_elu = 0x22,       /* x > 0 ? x : a*(exp(x) - 1) */
    norm_eltwise_square = 0x23,    /* x*x */
    norm_eltwise_abs = 0x24,       /* |x| */
    norm_eltwise_sqrt = 0x25,      /* sqrt(x) */
    norm_eltwise_linear = 0x26,    /* a*x + b */
    norm_eltwise_soft_relu = 0x27, /* log(1 + exp(a*x))/a */
    norm_eltwise_hardsigmoid = 0x28, /* max(0, min(1, a*x + b)) */
    norm_eltwise_logistic = 0x29,  /* 1/(1 + exp(-x)) */
    norm_eltwise_exp = 0x2a,       /* exp(x) */
    norm_eltwise_gelu_tanh = 0x2b, /* x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715x^3))) */
    norm_eltwise_swish = 0x2c,     /* x/(1 + exp(-a*x)) */
    norm_eltwise_log = 0x2d,       /* log(x) */
    norm_eltwise_clip = 0x2e,      /* max(a, min(b, x)) */
    norm_eltwise_clip_v2 = 0x2f,   /* the same; the gradients differ at a and b */
    norm_eltwise_pow = 0x30,       /* a*x^b */
    norm_eltwise_gelu_erf = 0x31,  /* x/2*(1 + erf(x/sqrt(2))) */
    norm_eltwise_round = 0x32,     /* to the nearest integer, ties to even */
    norm_eltwise_mish = 0x33,      /* x*tanh(log(1 + exp(x))) */
    norm_eltwise_hardswish = 0x34, /* x*max(0, min(1, a*x + b)) */
    norm_eltwise_relu_use_dst_for_bwd = 0x100,
    norm_eltwise_tanh_use_dst_for_bwd = 0x101,
    norm_eltwise_elu_use_dst_for_bwd = 0x102,
    norm_eltwise_sqrt_use_dst_for_bwd = 0x103,
    norm_eltwise_logistic_use_dst_for_bwd = 0x104,
    norm_eltwise_exp_use_dst_for_bwd = 0x105,
    norm_eltwise_clip_v2_use_dst_for_bwd = 0x106,
    norm_binary_add = 0x1fff0, /* x + src1 */
    norm_binary_mul = 0x1fff1, /* x*src1 */
    norm_binary_max = 0x1fff2,
    norm_binary_min = 0x1fff3,
    norm_binary_div = 0x1fff4, /* x/src1 */
    norm_binary_sub = 0x1fff5, /* x - src1 */
    norm_binary_ge = 0x1fff6,  /* x >= src1; comparisons return 1 or 0 */
    norm_binary_gt = 0x1fff7,
    norm_binary_le = 0x1fff8,
    norm_binary_lt = 0x1fff9,
    norm_binary_eq = 0x1fffa,
    norm_binary_ne = 0x1fffb,
    norm_binary_select = 0x1fffc, /* src2 != 0 ? x : src1 */
    norm_softmax_accurate = 0x30000, /* exp(x - max) / sum */
    norm_softmax_log = 0x30001, /* the logarithm of the above */
    norm_softmax_accurate_inf_as_zero = 0x01000000 /* the first, but zeros for a row of
                                                    * only -Inf */
} norm_alg_kind_t;

/* Functions applied in order to each element of a primitive's output before
 * it is scaled and rounded. */
struct norm_post_ops;
typedef struct norm_post_ops *norm_post_ops_t;
typedef const struct norm_post_ops *const_norm_post_ops_t;

/* ------------------------------------------------------------------------ */
/* Primitive descriptor                                                     */
/* ------------------------------------------------------------------------ */

/* Operations. */
typedef enum {
    norm_undefined_primitive = 0,
    norm_reorder = 1,
    norm_shuffle = 2, /* of oneDNN's kinds from here on, only eltwise, binary, softmax, */
    norm_concat = 3,  /* layer_normalization and group_normalization are implemented;
                       * some others are kinds of post-operations */
    norm_sum = 4,
    norm_convolution = 5,
    norm_deconvolution = 6,
    norm_eltwise = 7,
    norm_lrn = 8,
    norm_batch_normalization = 9,
    norm_inner_product = 10,
    norm_rnn = 11,
    norm_gemm = 12,
    norm_binary = 13,
    norm_matmul = 14,
    norm_resampling = 15,
    norm_pooling = 16,
    norm_reduction = 17,
    norm_prelu = 18,
    norm_softmax = 19,
    norm_layer_normalization = 20,
    norm_group_normalization = 21,
    norm_rope = 0x01000000, /* from here on not in oneDNN */
    norm_gated = 0x01000001,
    norm_sdpa = 0x01000002
} norm_primitive_kind_t;

/* What an execution computes. */
typedef enum {
    norm_prop_kind_undef = 0,
    norm_forward_training = 64,  /* statistics are outputs */
    norm_forward_inference = 96, /* statistics are not outputs */
    norm_forward = norm_forward_training,
    norm_backward = 128,     /* diff_src, diff_scale, diff_shift */
    norm_backward_data = 160,    /* diff_src only */
    norm_backward_weights = 192, /* for other oneDNN operations */
    norm_backward_bias = 193     /* for other oneDNN operations */
} norm_prop_kind_t;

/* A validated problem and its implementation. */
struct norm_primitive_desc;
typedef struct norm_primitive_desc *norm_primitive_desc_t;
typedef const struct norm_primitive_desc *const_norm_primitive_desc_t;

/* ------------------------------------------------------------------------ */
/* Primitive                                                                */
/* ------------------------------------------------------------------------ */

/* An executable problem. It is immutable: several threads may execute it at
 * the same time, each with its own outputs (and its own scratchpad in user
 * mode). */
struct norm_primitive;
typedef struct norm_primitive *norm_primitive_t;
typedef const struct norm_primitive *const_norm_primitive_t;

/* Execution argument ids. The constructor of each operation says which it reads and
 * writes. */
#define NORM_ARG_SRC 1    /* the first input */
#define NORM_ARG_SRC_0 1  /* another name of it */
#define NORM_ARG_FROM 1   /* the same, for reorder */
#define NORM_ARG_SRC_1 2  /* the second input */
#define NORM_ARG_SRC_2 3  /* the third input */
#define NORM_ARG_DST 17   /* the output */
#define NORM_ARG_DST_0 17 /* another name of it */
#define NORM_ARG_TO 17    /* the same, for reorder */
#define NORM_ARG_WEIGHTS 33    /* oneDNN only */
#define NORM_ARG_MEAN 49       /* of each row or group */
#define NORM_ARG_VARIANCE 50   /* of each row or group; with norm_rms_norm the mean square */
#define NORM_ARG_SCALE 51      /* gamma */
#define NORM_ARG_SHIFT 52      /* beta */
#define NORM_ARG_WORKSPACE 64  /* what forward training keeps for backward */
#define NORM_ARG_SCRATCHPAD 80 /* temporary memory in norm_scratchpad_mode_user */
#define NORM_ARG_DIFF_SRC 129    /* the gradient of NORM_ARG_SRC */
#define NORM_ARG_DIFF_SRC_1 130  /* the gradient of NORM_ARG_SRC_1 */
#define NORM_ARG_DIFF_DST 145    /* the gradient of NORM_ARG_DST */
#define NORM_ARG_DIFF_SCALE 255  /* the gradient of NORM_ARG_SCALE */
#define NORM_ARG_DIFF_SHIFT 256  /* the gradient of NORM_ARG_SHIFT */
/* Added to an argument's id for its scale or zero point. */
#define NORM_ARG_ATTR_SCALES 4096
#define NORM_ARG_ATTR_ZERO_POINTS 8192
/* Added to NORM_ARG_SRC_1 or NORM_ARG_SRC_2 for an operand of post-operation
 * number idx, counted from 0. */
#define NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE 32768
#define NORM_ARG_ATTR_MULTIPLE_POST_OP(idx) \
    (NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE * ((idx) + 1))

/* An execution argument. */
typedef struct {
    int arg;              /* NORM_ARG_* */
    norm_memory_t memory; /* not owned */
} norm_exec_arg_t;

/* ------------------------------------------------------------------------ */
/* Layer normalization and RMS normalization                                */
/* ------------------------------------------------------------------------ */

/* Flags of a normalization. The first three and rms_norm can be combined
 * freely. */
typedef enum {
    norm_normalization_flags_none = 0x0U,
    /* Mean and variance are inputs of forward and constants in the gradient. */
    norm_use_global_stats = 0x1U,
    norm_use_scale = 0x2U, /* scale (gamma) is an input, diff_scale an output */
    norm_use_shift = 0x4U, /* shift (beta) is an input, diff_shift an output */
    norm_fuse_norm_relu = 0x8U,      /* not supported: norm_invalid_arguments */
    norm_fuse_norm_add_relu = 0x10U, /* not supported: norm_invalid_arguments */
    /* RMS normalization (Zhang and Sennrich 2019): there is no mean, and the
     * variance argument holds the mean of the squares without epsilon. */
    norm_rms_norm = 0x20U,
    /* The flags from here on are not in oneDNN. */
    norm_scale_plus_one = 1U << 24, /* the scale is 1 + scale, added in f32 */
    /* The normalized value is rounded to src's type, bf16 or f16, before scale
     * and shift. */
    norm_round_before_scale = 1U << 25,
    norm_gate_output = 1U << 26, /* dst is multiplied by a function of a gate */
    norm_gate_input = 1U << 27   /* the input of the normalization is */
} norm_normalization_flags_t;

#ifdef __cplusplus
}
#endif

#include "norm_isa.h"

#include "norm_explain.h"

#endif /* NORM_TYPES_H */
