/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Elementwise problems for out_of_memory.c, which includes this file.
 */
#ifndef OUT_OF_MEMORY_ELEMENTWISE_H
#define OUT_OF_MEMORY_ELEMENTWISE_H

static void elementwise(void) {
    norm_primitive_desc_t forward = NULL, backward = NULL, add = NULL, choice = NULL;
    norm_memory_desc_t mask = NULL;
    MUST(norm_memory_desc_clone(&mask, rows_desc));
    MUST(norm_memory_desc_set_data_type(mask, norm_s8));
    WATCH(forward);
    CALL(norm_eltwise_forward_primitive_desc_create,
            (&forward, engine, norm_forward_training, norm_eltwise_exp, rows_desc, any_desc, 0, 0,
                    NULL));
    WATCH(backward);
    CALL(norm_eltwise_backward_primitive_desc_create,
            (&backward, engine, norm_eltwise_exp_use_dst_for_bwd, any_desc, rows_desc, rows_desc, 0,
                    0, forward, NULL));
    WATCH(add);
    CALL(norm_binary_primitive_desc_create,
            (&add, engine, norm_binary_add, rows_desc, blocked_desc, any_desc, NULL));
    WATCH(choice);
    CALL(norm_binary_primitive_desc_create_v2,
            (&choice, engine, norm_binary_select, rows_desc, rows_desc, mask, rows_desc, NULL));
    queries(forward);
    queries(backward);
    queries(add);
    queries(choice);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(rows_desc, src)},
            {NORM_ARG_DST, memory(rows_desc, dst)},
            {NORM_ARG_DIFF_DST, memory(rows_desc, src)},
            {NORM_ARG_DIFF_SRC, memory(rows_desc, diff_src)},
            {NORM_ARG_SRC_1, memory(rows_desc, src)},
            {NORM_ARG_SRC_2, memory(mask, src)}};
    execute(backward, 6, args, diff_src, bytes_of_rows());
    execute(choice, 6, args, dst, bytes_of_rows());
    for (int i = 0; i < 6; ++i) CALL(norm_memory_destroy, (args[i].memory));
    const norm_primitive_desc_t all[] = {forward, backward, add, choice};
    for (int i = 0; i < 4; ++i) CALL(norm_primitive_desc_destroy, (all[i]));
    CALL(norm_memory_desc_destroy, (mask));
}

#endif
