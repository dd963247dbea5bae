/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * norm_isa.h - instruction sets. Programs include norm.h.
 */
#ifndef NORM_ISA_H
#define NORM_ISA_H

#ifdef __cplusplus
extern "C" {
#endif

/* The highest instruction set to use. A oneDNN value selects the best level
 * of this library that it includes: sse41 and avx select portable,
 * avx512_core_vnni selects avx512_core, and so on. Results have the same bits
 * at every level. */
typedef enum {
    norm_cpu_isa_default = 0x0, /* no limit */
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
    norm_cpu_isa_avx10_2_512 = 0x201ff,
    norm_cpu_isa_avx10_2_512_amx_2 = 0x22fff,
    norm_cpu_isa_portable = 0x01000000, /* no explicit vector instructions */
    norm_cpu_isa_neon = 0x01000001
} norm_cpu_isa_t;

/* Preferred instructions. A hint that this library ignores. */
typedef enum {
    norm_cpu_isa_no_hints = 0x0,
    norm_cpu_isa_prefer_ymm = 0x1
} norm_cpu_isa_hints_t;

#ifdef __cplusplus
}
#endif

#endif /* NORM_ISA_H */
