//! `--cold-cache`: which tensors are out of the cache when their time is measured.

/// Tensors that every execution finds out of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColdCache {
    /// None: the same buffers again and again.
    #[default]
    None,
    /// Scale and shift.
    Weights,
    /// All of them.
    All,
}

impl ColdCache {
    /// Names and values, as the option takes them.
    pub const NAMES: [(&'static str, ColdCache); 3] =
        [("none", ColdCache::None), ("wei", ColdCache::Weights), ("all", ColdCache::All)];

    /// The name that the option takes.
    pub fn name(self) -> &'static str {
        ColdCache::NAMES[self as usize].0
    }
}
