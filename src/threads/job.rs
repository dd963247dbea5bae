//! What a job consists of.

/// Whether a job runs longer than it takes to wake a sleeping thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Short,
    Long,
}

/// Maximum number of shares per job. A thread that finds no work has scanned every share, and each share is on its own
/// cache line. With more threads, several use the same share.
pub(super) const MAX_SHARES: usize = 32;
