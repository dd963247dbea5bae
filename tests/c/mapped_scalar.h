/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The address of a host scalar's number. Part of host_scalars.c.
 */
#ifndef MAPPED_SCALAR_H
#define MAPPED_SCALAR_H

/* Maps an f32 that is -2, and leaves it so. */
static void mapped(norm_memory_t memory) {
    void *address = UNTOUCHED;
    float read = 0, value = -2;
    INVALID("mapped_ptr", norm_memory_map_data, (memory, NULL));
    MUST(norm_memory_map_data(memory, &address));
    EXPECT(*(float *)address == -2);
    *(float *)address = 0.75f;
    INVALID("mapped_ptr", norm_memory_unmap_data, (memory, &value));
    MUST(norm_memory_unmap_data(memory, address));
    MUST(norm_memory_get_host_scalar_value(memory, &read));
    EXPECT(read == 0.75f);
    MUST(norm_memory_set_host_scalar_value(memory, &value));
    MUST(norm_memory_map_data_v2(memory, &address, 0));
    EXPECT(*(float *)address == -2);
    MUST(norm_memory_unmap_data_v2(memory, address, 0));
}

#endif
