/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Names, the version, and process-wide settings.
 */
#include "expect.h"

#include <limits.h>

static int same(const char *got, const char *want) {
    return got != NULL && strcmp(got, want) == 0;
}

static const int no_value[] = {-1, 1000, INT_MAX};

static void names(void) {
    EXPECT(same(norm_status2str(norm_success), "success"));
    EXPECT(same(norm_status2str(norm_out_of_memory), "out_of_memory"));
    EXPECT(same(norm_status2str(norm_invalid_arguments), "invalid_arguments"));
    EXPECT(same(norm_status2str(norm_unimplemented), "unimplemented"));
    EXPECT(same(norm_status2str(norm_last_impl_reached), "last_impl_reached"));
    EXPECT(same(norm_status2str(norm_runtime_error), "runtime_error"));
    EXPECT(same(norm_status2str(norm_not_required), "not_required"));

    EXPECT(same(norm_dt2str(norm_data_type_undef), "undef"));
    EXPECT(same(norm_dt2str(norm_f16), "f16"));
    EXPECT(same(norm_dt2str(norm_bf16), "bf16"));
    EXPECT(same(norm_dt2str(norm_f32), "f32"));
    EXPECT(same(norm_dt2str(norm_s32), "s32"));
    EXPECT(same(norm_dt2str(norm_s8), "s8"));
    EXPECT(same(norm_dt2str(norm_u8), "u8"));
    EXPECT(same(norm_dt2str(norm_f64), "f64"));

    EXPECT(same(norm_fmt_tag2str(norm_format_tag_undef), "undef"));
    EXPECT(same(norm_fmt_tag2str(norm_format_tag_any), "any"));
    EXPECT(same(norm_fmt_tag2str(norm_ba), "ba"));
    EXPECT(same(norm_fmt_tag2str(norm_ndhwc), "acdeb"));
    EXPECT(same(norm_fmt_tag2str(norm_defcab), "defcab"));
    EXPECT(same(norm_fmt_tag2str(norm_dabc), "dabc"));

    EXPECT(same(norm_prop_kind2str(norm_prop_kind_undef), "undef"));
    EXPECT(same(norm_prop_kind2str(norm_forward_training), "forward_training"));
    EXPECT(same(norm_prop_kind2str(norm_forward_inference), "forward_inference"));
    EXPECT(same(norm_prop_kind2str(norm_backward), "backward"));
    EXPECT(same(norm_prop_kind2str(norm_backward_data), "backward_data"));

    EXPECT(same(norm_cpu_isa2str(norm_cpu_isa_avx512_core), "avx512_core"));
    EXPECT(same(norm_cpu_isa2str(norm_cpu_isa_avx2), "avx2"));
    EXPECT(same(norm_cpu_isa2str(norm_cpu_isa_portable), "portable"));
    EXPECT(same(norm_cpu_isa2str(norm_cpu_isa_neon), "neon"));

    EXPECT(same(norm_dt2str(norm_f8_e4m3), "f8_e4m3"));
    EXPECT(same(norm_dt2str(norm_e8m0), "e8m0") && same(norm_dt2str(norm_s64), "s64"));
    EXPECT(same(norm_engine_kind2str(norm_any_engine), "any"));
    EXPECT(same(norm_engine_kind2str(norm_cpu), "cpu"));
    EXPECT(same(norm_fmt_kind2str(norm_blocked), "blocked"));
    EXPECT(same(norm_fmt_kind2str(norm_format_kind_host_scalar), "host_scalar"));
    EXPECT(same(norm_prim_kind2str(norm_undefined_primitive), "undef"));
    EXPECT(same(norm_prim_kind2str(norm_eltwise), "eltwise"));
    EXPECT(same(norm_prim_kind2str(norm_layer_normalization), "layer_normalization"));
    EXPECT(same(norm_prim_kind2str(norm_group_normalization), "group_normalization"));
    EXPECT(same(norm_alg_kind2str(norm_alg_kind_undef), "undef"));
    EXPECT(same(norm_alg_kind2str(norm_eltwise_hardswish), "eltwise_hardswish"));
    EXPECT(same(norm_alg_kind2str(norm_eltwise_clip_v2_use_dst_for_bwd),
            "eltwise_clip_v2_use_dst_for_bwd"));
    EXPECT(same(norm_alg_kind2str(norm_binary_select), "binary_select"));
    EXPECT(same(norm_scratchpad_mode2str(norm_scratchpad_mode_user), "user"));
    EXPECT(same(norm_fpmath_mode2str(norm_fpmath_mode_tf32), "tf32"));
    EXPECT(same(norm_accumulation_mode2str(norm_accumulation_mode_f16), "f16"));
    EXPECT(same(norm_rounding_mode2str(norm_rounding_mode_stochastic), "stochastic"));
    EXPECT(same(norm_quantization_mode2str(norm_quantization_mode_dynamic_mx), "dynamic_mx"));
    EXPECT(same(norm_cpu_isa_hints2str(norm_cpu_isa_prefer_ymm), "cpu_isa_prefer_ymm"));

    for (int i = 0; i < 3; ++i) {
        const int no = no_value[i];
        EXPECT(same(norm_engine_kind2str((norm_engine_kind_t)no), "unknown engine_kind"));
        EXPECT(same(norm_fmt_kind2str((norm_format_kind_t)no), "unknown fmt_kind"));
        EXPECT(same(norm_prim_kind2str((norm_primitive_kind_t)no), "unknown prim_kind"));
        EXPECT(same(norm_alg_kind2str((norm_alg_kind_t)no), "unknown alg_kind"));
        EXPECT(same(norm_scratchpad_mode2str((norm_scratchpad_mode_t)no),
                "unknown scratchpad_mode"));
        EXPECT(same(norm_fpmath_mode2str((norm_fpmath_mode_t)no), "unknown fpmath_mode"));
        EXPECT(same(norm_accumulation_mode2str((norm_accumulation_mode_t)no),
                "unknown accumulation_mode"));
        EXPECT(same(norm_rounding_mode2str((norm_rounding_mode_t)no), "unknown rounding_mode"));
        EXPECT(same(norm_quantization_mode2str((norm_quantization_mode_t)no),
                "unknown quantization_mode"));
        EXPECT(same(norm_cpu_isa_hints2str((norm_cpu_isa_hints_t)no), "unknown cpu_isa_hints"));
        EXPECT(same(norm_status2str((norm_status_t)no_value[i]), "unknown status"));
        EXPECT(same(norm_dt2str((norm_data_type_t)no_value[i]), "unknown data type"));
        EXPECT(same(norm_fmt_tag2str((norm_format_tag_t)no_value[i]), "unknown format tag"));
        EXPECT(same(norm_prop_kind2str((norm_prop_kind_t)no_value[i]), "unknown prop_kind"));
        EXPECT(same(norm_cpu_isa2str((norm_cpu_isa_t)no_value[i]), "unknown cpu_isa"));
        EXPECT(norm_data_type_size((norm_data_type_t)no_value[i]) == 0);
        EXPECT(norm_engine_get_count((norm_engine_kind_t)no_value[i]) == 0);
    }
}

static void sizes(void) {
    EXPECT(norm_data_type_size(norm_data_type_undef) == 0);
    EXPECT(norm_data_type_size(norm_f16) == 2);
    EXPECT(norm_data_type_size(norm_bf16) == 2);
    EXPECT(norm_data_type_size(norm_f32) == 4);
    EXPECT(norm_data_type_size(norm_s32) == 4);
    EXPECT(norm_data_type_size(norm_s8) == 1);
    EXPECT(norm_data_type_size(norm_u8) == 1);
    EXPECT(norm_data_type_size(norm_f64) == 8);
}

static void version(void) {
    const norm_version_t *version = norm_version();
    EXPECT(version != NULL && version == norm_version());
    EXPECT(version->major == NORM_VERSION_MAJOR && version->minor == NORM_VERSION_MINOR
            && version->patch == NORM_VERSION_PATCH);
    EXPECT(version->hash != NULL);
    EXPECT(version->cpu_runtime == 0x01000000u && version->gpu_runtime == 0);
}

static void levels(void) {
    static const norm_cpu_isa_t as_portable[]
            = {norm_cpu_isa_portable, norm_cpu_isa_sse41, norm_cpu_isa_avx};
    static const norm_cpu_isa_t as_avx512[] = {norm_cpu_isa_avx512_core,
            norm_cpu_isa_avx512_core_vnni, norm_cpu_isa_avx512_core_bf16,
            norm_cpu_isa_avx512_core_fp16, norm_cpu_isa_avx512_core_amx,
            norm_cpu_isa_avx512_core_amx_fp16};
    /* The value of a level includes the bits of lower levels. */
    const norm_cpu_isa_t levels[] = {norm_cpu_isa_avx512_core, norm_cpu_isa_avx512_core,
            norm_cpu_isa_avx512_core_bf16, norm_cpu_isa_avx512_core_bf16,
            norm_cpu_isa_avx512_core_amx, norm_cpu_isa_avx512_core_amx};
    const norm_cpu_isa_t best = norm_get_effective_cpu_isa();
    for (int i = 0; i < 3; ++i) {
        const norm_status_t status = norm_set_max_cpu_isa(as_portable[i]);
        EXPECT(status == norm_success || (status == norm_unimplemented && i > 0));
        EXPECT(status != norm_success || norm_get_effective_cpu_isa() == norm_cpu_isa_portable);
    }
    for (int i = 0; i < 6; ++i) {
        const norm_status_t status = norm_set_max_cpu_isa(as_avx512[i]);
        EXPECT(status == norm_success || status == norm_unimplemented);
        /* A limit above the machine's best level has no effect. */
        EXPECT(status != norm_success
                || norm_get_effective_cpu_isa()
                        == (best < levels[i] || best == norm_cpu_isa_portable ? best : levels[i]));
    }
#if defined(__x86_64__)
    EXPECT(norm_set_max_cpu_isa(norm_cpu_isa_neon) == norm_unimplemented);
    EXPECT(norm_set_max_cpu_isa(norm_cpu_isa_avx2_vnni_2) == norm_success);
    EXPECT(norm_get_effective_cpu_isa() == norm_cpu_isa_avx2
            || norm_get_effective_cpu_isa() == norm_cpu_isa_portable);
#endif
    EXPECT(norm_set_max_cpu_isa(norm_cpu_isa_default) == norm_success);
    EXPECT(norm_get_effective_cpu_isa() == best);
}

static void threads(void) {
    const int before = norm_get_num_threads();
    EXPECT(before >= 1);
    EXPECT(norm_get_last_num_threads() == 0);
    EXPECT(norm_set_num_threads(3) == norm_success && norm_get_num_threads() == 3);
    EXPECT(norm_set_num_threads(255) == norm_success && norm_get_num_threads() == 255);
    EXPECT(norm_set_num_threads(0) == norm_success && norm_get_num_threads() == before);
}

static void engines(void) {
    EXPECT(norm_engine_get_count(norm_cpu) == 1);
    EXPECT(norm_engine_get_count(norm_any_engine) == 1);
    EXPECT(norm_engine_get_count(norm_gpu) == 0);
}

int main(void) {
    /* There was no failure yet. */
    EXPECT(same(norm_get_last_error(), ""));
    names();
    sizes();
    version();
    engines();
    threads();
    levels();
    EXPECT(norm_set_verbose(0) == norm_success);
    return expect_summary("names");
}
