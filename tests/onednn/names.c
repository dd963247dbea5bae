/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Names of enumerators, sizes of types, process-wide settings.
 */
#include "print.h"

#define NAMES(function, type, count) \
    do { \
        printf(#function ":"); \
        for (int i = 0; i < (count); ++i) \
            printf(" %s", function((type)i)); \
        printf("\n"); \
    } while (0)

static void names(void) {
    NAMES(dnnl_status2str, dnnl_status_t, 7);
    NAMES(dnnl_dt2str, dnnl_data_type_t, 15);
    NAMES(dnnl_fpmath_mode2str, dnnl_fpmath_mode_t, 5);
    NAMES(dnnl_accumulation_mode2str, dnnl_accumulation_mode_t, 6);
    NAMES(dnnl_engine_kind2str, dnnl_engine_kind_t, 3);
    NAMES(dnnl_fmt_kind2str, dnnl_format_kind_t, 3);
    NAMES(dnnl_fmt_tag2str, dnnl_format_tag_t, 875);
    NAMES(dnnl_prim_kind2str, dnnl_primitive_kind_t, 22);
    NAMES(dnnl_scratchpad_mode2str, dnnl_scratchpad_mode_t, 2);
    NAMES(dnnl_rounding_mode2str, dnnl_rounding_mode_t, 2);
    NAMES(dnnl_quantization_mode2str, dnnl_quantization_mode_t, 4);
    NAMES(dnnl_cpu_isa_hints2str, dnnl_cpu_isa_hints_t, 2);
    NAMES(dnnl_sparse_encoding2str, dnnl_sparse_encoding_t, 4);
    NAMES(dnnl_rnn_flags2str, dnnl_rnn_flags_t, 2);

    static const dnnl_prop_kind_t kinds[] = {dnnl_prop_kind_undef, dnnl_forward_training,
            dnnl_forward_inference, dnnl_backward, dnnl_backward_data, dnnl_backward_weights,
            dnnl_backward_bias};
    for (int i = 0; i < 7; ++i)
        printf("%s ", dnnl_prop_kind2str(kinds[i]));
    static const dnnl_rnn_direction_t directions[]
            = {dnnl_rnn_direction_undef, dnnl_unidirectional_left2right,
                    dnnl_unidirectional_right2left, dnnl_bidirectional_concat,
                    dnnl_bidirectional_sum};
    for (int i = 0; i < 5; ++i)
        printf("%s ", dnnl_rnn_direction2str(directions[i]));
    printf("\n");
    static const dnnl_cpu_isa_t isas[] = {dnnl_cpu_isa_default, dnnl_cpu_isa_sse41,
            dnnl_cpu_isa_avx, dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx2_vnni,
            dnnl_cpu_isa_avx2_vnni_2, dnnl_cpu_isa_avx512_core, dnnl_cpu_isa_avx512_core_vnni,
            dnnl_cpu_isa_avx512_core_bf16, dnnl_cpu_isa_avx10_1_512,
            dnnl_cpu_isa_avx10_1_512_amx, dnnl_cpu_isa_avx10_1_512_amx_fp16,
            dnnl_cpu_isa_avx10_2, dnnl_cpu_isa_avx10_2_amx_2};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; ++i)
        printf("%s ", dnnl_cpu_isa2str(isas[i]));
    printf("\n");
    static const unsigned runtimes[] = {DNNL_RUNTIME_NONE, DNNL_RUNTIME_SEQ, DNNL_RUNTIME_OMP,
            DNNL_RUNTIME_TBB, DNNL_RUNTIME_THREADPOOL, DNNL_RUNTIME_OCL, DNNL_RUNTIME_SYCL};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; ++i)
        printf("%s ", dnnl_runtime2str(runtimes[i]));
    printf("\n");
}

static void algorithms(void) {
    static const dnnl_alg_kind_t first_last[][2] = {{dnnl_alg_kind_undef, dnnl_alg_kind_undef},
            {dnnl_eltwise_relu, dnnl_eltwise_hardsigmoid},
            {dnnl_eltwise_relu_use_dst_for_bwd, dnnl_eltwise_clip_v2_use_dst_for_bwd},
            {dnnl_binary_add, dnnl_binary_select}};
    for (int i = 0; i < 4; ++i) {
        for (int a = first_last[i][0]; a <= (int)first_last[i][1]; ++a)
            printf("%s ", dnnl_alg_kind2str((dnnl_alg_kind_t)a));
        printf("\n");
    }
}

static void sizes(void) {
    for (int i = 1; i < 15; ++i)
        printf("size of %s: %d\n", dnnl_dt2str((dnnl_data_type_t)i),
                (int)dnnl_data_type_size((dnnl_data_type_t)i));
    printf("engines: %d %d\n", dnnl_engine_get_count(dnnl_cpu) > 0,
            dnnl_engine_get_count((dnnl_engine_kind_t)7) > 0);
}

static void version(void) {
    const dnnl_version_t *version = dnnl_version();
    printf("version: %d %d\n", version->major, version->minor >= DNNL_VERSION_MINOR);
    printf("* version: whose: %s\n", strncmp(version->hash, "libnorm-", 8) ? "oneDNN" : "libnorm");
}

/* The instruction set can be set once, before its first use. */
static void levels(void) {
    STATUS("no such isa", dnnl_set_max_cpu_isa((dnnl_cpu_isa_t)0x5000));
    STATUS("avx2", dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2));
    STATUS("twice", dnnl_set_max_cpu_isa(dnnl_cpu_isa_default));
    printf("%s\n", dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()));
    STATUS("hints", dnnl_set_cpu_isa_hints(dnnl_cpu_isa_prefer_ymm));
    printf("%s\n", dnnl_cpu_isa_hints2str(dnnl_get_cpu_isa_hints()));
}

static void modes(void) {
    dnnl_fpmath_mode_t mode;
    int capacity;
    STATUS("fpmath", dnnl_get_default_fpmath_mode(&mode));
    printf("%s\n", dnnl_fpmath_mode2str(mode));
    STATUS("fpmath", dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_bf16));
    STATUS("fpmath", dnnl_get_default_fpmath_mode(&mode));
    printf("%s\n", dnnl_fpmath_mode2str(mode));
    STATUS("no such fpmath", dnnl_set_default_fpmath_mode((dnnl_fpmath_mode_t)77));
    STATUS("fpmath", dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict));
    STATUS("no place", dnnl_get_default_fpmath_mode(NULL));

    STATUS("cache", dnnl_get_primitive_cache_capacity(&capacity));
    printf("%d\n", capacity);
    STATUS("cache", dnnl_set_primitive_cache_capacity(7));
    STATUS("cache", dnnl_get_primitive_cache_capacity(&capacity));
    printf("%d\n", capacity);
    STATUS("negative cache", dnnl_set_primitive_cache_capacity(-1));
    STATUS("no place", dnnl_get_primitive_cache_capacity(NULL));

    STATUS("verbose", dnnl_set_verbose(0));
    STATUS("no such level", dnnl_set_verbose(-1));
    STATUS("JIT dump", dnnl_set_jit_dump(0));
    STATUS("JIT profiling", dnnl_set_jit_profiling_flags(0));
    STATUS("JIT directory", dnnl_set_jit_profiling_jitdumpdir("."));
}

int main(void) {
    levels();
    names();
    algorithms();
    sizes();
    version();
    modes();
    return 0;
}
