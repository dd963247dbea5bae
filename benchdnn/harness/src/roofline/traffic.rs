//! What a problem reads and writes, as bytes.

/// Where a tensor's bytes are.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The first byte, valid as long as the traffic is used.
    pub pointer: *mut u8,
    /// The number of contiguous bytes.
    pub bytes: usize,
}

/// What a problem reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// What is read.
    pub first: Region,
    /// What else is read.
    pub second: Option<Region>,
    /// What is overwritten, with meaningless data. It may be one of the others.
    pub to: Region,
}
