/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The instruction set levels of the machine that runs the test.
 */
#ifndef LEVELS_H
#define LEVELS_H

#include "expect.h"

#define LEVELS_MAX 6

/* Writes the levels of this machine, portable last, and returns their number. Removes the limit
 * afterwards. A level only counts if the library uses it. */
static inline int levels_here(norm_cpu_isa_t levels[LEVELS_MAX]) {
    static const norm_cpu_isa_t all[LEVELS_MAX]
            = {norm_cpu_isa_avx512_core_amx, norm_cpu_isa_avx512_core_bf16,
                    norm_cpu_isa_avx512_core, norm_cpu_isa_avx2, norm_cpu_isa_neon,
                    norm_cpu_isa_portable};
    int count = 0;
    for (int i = 0; i < LEVELS_MAX; ++i)
        if (norm_set_max_cpu_isa(all[i]) == norm_success
                && norm_get_effective_cpu_isa() == all[i])
            levels[count++] = all[i];
    MUST(norm_set_max_cpu_isa(norm_cpu_isa_default));
    EXPECT(count >= 1 && levels[count - 1] == norm_cpu_isa_portable);
    /* Without a limit the library uses the best level. */
    EXPECT(count >= 1 && norm_get_effective_cpu_isa() == levels[0]);
    printf("levels:");
    for (int i = 0; i < count; ++i) printf(" %s", norm_cpu_isa2str(levels[i]));
    printf("\n");
    return count;
}

#endif
