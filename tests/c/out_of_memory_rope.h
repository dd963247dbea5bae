/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls to rope for out_of_memory.c.
 */
#ifndef OUT_OF_MEMORY_ROPE_H
#define OUT_OF_MEMORY_ROPE_H

/* Rope with every option that allocates, and its helper functions. */
static void ropes(void) {
    static float values[4 * 8], weights[8];
    static int position[4];
    static double frequency[4];
    static long long slot[4] = {3, 2, 1, 0};
    const norm_dim_t three[] = {4, 1, 8}, two[] = {4, 1}, one[] = {8}, parts[] = {4, 1, 2};
    const norm_dim_t sections[] = {3, 1};
    float magnitude = 0;
    norm_memory_desc_t heads = NULL, at = NULL, parts_at = NULL, row = NULL;
    norm_primitive_desc_t there = NULL, back = NULL;
    norm_memory_t from = NULL, to = NULL;
    MUST(norm_memory_desc_create_with_tag(&heads, 3, three, norm_f32, norm_abc));
    MUST(norm_memory_desc_create_with_tag(&at, 2, two, norm_s32, norm_ab));
    MUST(norm_memory_desc_create_with_tag(&parts_at, 3, parts, norm_s32, norm_abc));
    MUST(norm_memory_desc_create_with_tag(&row, 1, one, norm_f32, norm_a));
    CALL(norm_rope_frequencies, (norm_rope_scaling_none, 8, 1e4, 0, NULL, frequency, &magnitude));
    WATCH(there);
    CALL(norm_rope_forward_primitive_desc_create,
            (&there, engine, norm_forward_inference, norm_rope_half_split,
                    norm_rope_from_frequencies, heads, heads, at, -1, NULL, row, 8, magnitude, 0,
                    NULL, 1e-6f, norm_rms_norm | norm_use_scale | norm_write_slots, NULL));
    WATCH(back);
    CALL(norm_rope_backward_primitive_desc_create,
            (&back, engine, norm_rope_interleaved, norm_rope_from_frequencies, heads, heads,
                    NULL, parts_at, -1, NULL, NULL, NULL, 8, magnitude, 2, sections, 0, 0, NULL,
                    NULL));
    CALL(norm_primitive_desc_destroy, (back));
    WATCH(back);
    CALL(norm_rope_backward_primitive_desc_create,
            (&back, engine, norm_rope_half_split, norm_rope_from_frequencies, heads, heads, heads,
                    at, -1, NULL, row, row, 8, magnitude, 0, NULL, 1e-6f,
                    norm_rms_norm | norm_use_scale, NULL, NULL));
    const_norm_memory_desc_t slots
            = norm_primitive_desc_query_md(there, norm_query_exec_arg_md, NORM_ARG_SLOTS);
    const_norm_memory_desc_t table = norm_primitive_desc_query_md(
            there, norm_query_exec_arg_md, NORM_ARG_ROPE_FREQUENCIES);
    const norm_exec_arg_t args[] = {{NORM_ARG_SRC, memory(heads, src)},
            {NORM_ARG_DST, memory(heads, values)}, {NORM_ARG_POSITIONS, memory(at, position)},
            {NORM_ARG_ROPE_FREQUENCIES, memory(table, frequency)},
            {NORM_ARG_SCALE, memory(row, scale)}, {NORM_ARG_SLOTS, memory(slots, slot)}};
    execute(there, 6, args, values, sizeof values);
    MUST(norm_memory_create(&from, row, engine, scale));
    MUST(norm_memory_create(&to, row, engine, weights));
    CALL(norm_rope_permute, (norm_rope_interleaved, norm_rope_half_split, 1, 8, from, to));
    for (int i = 0; i < 6; ++i) CALL(norm_memory_destroy, (args[i].memory));
    CALL(norm_memory_destroy, (from));
    CALL(norm_memory_destroy, (to));
    CALL(norm_primitive_desc_destroy, (there));
    CALL(norm_primitive_desc_destroy, (back));
    const norm_memory_desc_t all[] = {heads, at, parts_at, row};
    for (int i = 0; i < 4; ++i) CALL(norm_memory_desc_destroy, (all[i]));
}

#endif
