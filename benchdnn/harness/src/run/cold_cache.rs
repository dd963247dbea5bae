//! `--cold-cache`: which tensors are not in the cache when an execution is timed.

/// Tensors that every execution finds uncached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColdCache {
    /// None: the same buffers every time.
    #[default]
    None,
    /// Parameters such as scale and shift.
    Weights,
    /// All of them.
    All,
}

impl ColdCache {
    /// Names and values of the option.
    pub const NAMES: [(&'static str, ColdCache); 3] =
        [("none", ColdCache::None), ("wei", ColdCache::Weights), ("all", ColdCache::All)];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        ColdCache::NAMES[self as usize].0
    }
}
