/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The environment variables. Without arguments, none is set. With arguments: the expected number
 * of threads, or 0, and the expected instruction set, or "any".
 */
#include "expect.h"

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 0;
    const char *isa = argc > 2 ? argv[2] : "any";
    for (int i = 0; i < 2; ++i) {
        EXPECT(norm_get_num_threads() >= 1);
        EXPECT(threads == 0 || norm_get_num_threads() == threads);
        const char *found = norm_cpu_isa2str(norm_get_effective_cpu_isa());
        EXPECT(strcmp(isa, "any") == 0 || strcmp(isa, found) == 0);
    }
    /* The environment requests verbosity here. */
    norm_engine_t engine = NULL;
    norm_memory_desc_t desc = NULL;
    norm_primitive_desc_t problem = NULL;
    const norm_dims_t dims = {2, 3};
    MUST(norm_engine_create(&engine, norm_cpu, 0));
    MUST(norm_memory_desc_create_with_tag(&desc, 2, dims, norm_f32, norm_ab));
    MUST(norm_reorder_primitive_desc_create(&problem, desc, engine, desc, engine, NULL));
    MUST(norm_primitive_desc_destroy(problem));
    MUST(norm_memory_desc_destroy(desc));
    MUST(norm_engine_destroy(engine));
    return expect_summary("environment");
}
