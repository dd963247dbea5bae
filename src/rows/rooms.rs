//! Scratch memory for the threads of an execution: each takes a room and returns it.

use super::schedule::MOST_STAGES;
use super::slots::{Slot, Slots};
use crate::heap::LINE;
use crate::threads::most_threads;

/// The number of rooms: one for each thread, up to [`MOST_STAGES`].
pub(crate) fn rooms() -> usize {
    most_threads().min(MOST_STAGES)
}

/// Rooms of equal size in the scratchpad.
pub(crate) struct Rooms {
    /// The size of one in bytes, a multiple of a cache line.
    bytes: usize,
    count: usize,
}

impl Rooms {
    /// Rooms of at least `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.checked_next_multiple_of(LINE).unwrap_or(usize::MAX / LINE * LINE);
        Self { bytes, count: rooms() }
    }

    /// Bytes of all rooms. A size beyond the address space saturates, and the allocation then fails.
    pub(crate) fn size(&self) -> usize {
        self.bytes.saturating_mul(self.count)
    }

    /// The most threads that may take rooms.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The rooms of an execution, which begin at `start`.
    pub(crate) fn open(&self, start: *mut u8) -> OpenRooms {
        OpenRooms { start, bytes: self.bytes, slots: Slots::new(self.count) }
    }
}

/// The rooms of an execution.
pub(crate) struct OpenRooms {
    start: *mut u8,
    bytes: usize,
    slots: Slots,
}

// SAFETY: a thread uses only the room that it has taken.
unsafe impl Sync for OpenRooms {}

impl OpenRooms {
    /// The start of a free room, which belongs to this thread until the slot is dropped.
    pub(crate) fn take(&self) -> (Slot<'_>, *mut u8) {
        let slot = self.slots.take();
        let start = self.start.wrapping_add(slot.number() * self.bytes);
        (slot, start)
    }
}
