/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * All names and process-wide settings while allocations fail.
 */
#ifndef CONTROL_WITHOUT_MEMORY_H
#define CONTROL_WITHOUT_MEMORY_H

#include "failing_heap.h"

static void names(void) {
    NAME("success", norm_status2str, norm_success);
    NAME("bf16", norm_dt2str, norm_bf16);
    NAME("abc", norm_fmt_tag2str, norm_abc);
    NAME("cpu", norm_engine_kind2str, norm_cpu);
    NAME("blocked", norm_fmt_kind2str, norm_blocked);
    NAME("backward", norm_prop_kind2str, norm_backward);
    NAME("eltwise_relu", norm_alg_kind2str, norm_eltwise_relu);
    NAME("avx2", norm_cpu_isa2str, norm_cpu_isa_avx2);
    NAME("cpu_isa_no_hints", norm_cpu_isa_hints2str, norm_cpu_isa_no_hints);
    NAME("softmax", norm_prim_kind2str, norm_softmax);
    NAME("gated", norm_prim_kind2str, norm_gated);
    NAME("user", norm_scratchpad_mode2str, norm_scratchpad_mode_user);
    NAME("any", norm_fpmath_mode2str, norm_fpmath_mode_any);
    NAME("f16", norm_accumulation_mode2str, norm_accumulation_mode_f16);
    NAME("stochastic", norm_rounding_mode2str, norm_rounding_mode_stochastic);
    NAME("static_sazp", norm_quantization_mode2str, norm_quantization_mode_static_sazp);
    NAME("zero_rows", norm_warning2str, norm_warning_zero_rows);
    NAME("clip_src", norm_remedy2str, norm_remedy_clip_src);
    VALUE(2, norm_data_type_size, (norm_bf16));
    VALUE(0.0078125, norm_data_type_epsilon, (norm_bf16));
    enter("norm_version");
    EXPECT(norm_version()->major == NORM_VERSION_MAJOR);
    inside = 0;
}

static void settings(int threads) {
    int capacity = 0;
    norm_fpmath_mode_t mode = norm_fpmath_mode_any;
    enter("norm_get_num_threads");
    EXPECT(norm_get_num_threads() >= 1);
    inside = 0;
    CALL(norm_set_num_threads, (threads));
    VALUE(threads, norm_get_num_threads, ());
    CALL(norm_set_verbose, (2)); /* for the rest */
    CALL(norm_set_max_cpu_isa, (norm_cpu_isa_default));
    enter("norm_get_effective_cpu_isa");
    EXPECT(norm_get_effective_cpu_isa() != norm_cpu_isa_default);
    inside = 0;
    CALL(norm_set_cpu_isa_hints, (norm_cpu_isa_no_hints));
    VALUE(norm_cpu_isa_no_hints, norm_get_cpu_isa_hints, ());
    CALL(norm_set_default_fpmath_mode, (norm_fpmath_mode_strict));
    CALL(norm_get_default_fpmath_mode, (&mode));
    CALL(norm_set_primitive_cache_capacity, (16));
    CALL(norm_get_primitive_cache_capacity, (&capacity));
    EXPECT(capacity == 16 && mode == norm_fpmath_mode_strict);
}

#endif
