/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Buffers that end at an unreadable page or start right after one. Define _DEFAULT_SOURCE first.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "expect.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 16

/* A slot is a run of pages between two unreadable ones. */
static unsigned char *slots[SLOTS];
static size_t slot_bytes, slots_used;
static int place_at_end;

/* Reports the case. Only calls async-signal-safe functions. */
static void slot_fault(int signal_number) {
    static const char text[] = "access outside a tensor: ";
    ssize_t written = write(2, text, sizeof text - 1);
    written += write(2, expect_case, strlen(expect_case));
    written += write(2, "\n", 1);
    _exit(written > 0 ? 100 + signal_number : 99);
}

static inline void slots_make(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    slot_bytes = 16 * page; /* room for a staged problem's scratchpad */
    for (int i = 0; i < SLOTS; ++i) {
        unsigned char *all = mmap(NULL, slot_bytes + 2 * page, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!EXPECT(all != MAP_FAILED)) exit(1);
        slots[i] = all + page;
        if (!EXPECT(mprotect(slots[i], slot_bytes, PROT_READ | PROT_WRITE) == 0)) exit(1);
    }
    signal(SIGSEGV, slot_fault);
    signal(SIGBUS, slot_fault);
}

static inline void *slot_place(size_t bytes) {
    if (!EXPECT(slots_used < SLOTS && bytes <= slot_bytes)) exit(1);
    unsigned char *slot = slots[slots_used++];
    return place_at_end ? slot + slot_bytes - bytes : slot;
}

#endif
