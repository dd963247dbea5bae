//! Which keys a query sees by their positions alone.

use crate::primitive::enumerators;
use norm_sys as sys;
use std::ops::Range;

enumerators! {
    /// Which keys a query sees by their positions.
    MaskType: norm_attn_mask_type_t {
        Undef = norm_attn_mask_undef, "undef";
        Buffer = norm_attn_mask_buffer, "buffer";
        TopLeft = norm_attn_mask_top_left, "top_left";
        BottomRight = norm_attn_mask_bottom_right, "bottom_right";
    }
}

enumerators! {
    /// How a window counts its keys.
    WindowKind: norm_attn_window_t {
        None = norm_window_none, "none";
        WithSelf = norm_window_with_self, "with_self";
        BeforeSelf = norm_window_before_self, "before_self";
    }
}

/// A sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The number of visible keys before the query's own.
    pub(super) before: i64,
    /// How the caller counts.
    pub(super) kind: WindowKind,
    pub(super) size: i64,
    /// Keys below this index are visible too.
    pub(super) first_keys: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masking {
    /// Also applies with a window.
    pub(super) causal: bool,
    /// Aligns the last query with the last key.
    pub(super) bottom_right: bool,
    pub(super) window: Option<Window>,
}

impl Masking {
    /// The position of a query in a sequence with these numbers of queries and keys.
    #[inline(always)]
    pub(super) fn position(&self, query: usize, (queries, keys): (usize, usize)) -> i64 {
        let offset = if self.bottom_right { keys as i64 - queries as i64 } else { 0 };
        query as i64 + offset
    }

    /// The keys that a query sees, without those before its window.
    #[inline(always)]
    pub(super) fn keys(&self, query: usize, lengths: (usize, usize)) -> Range<usize> {
        let position = self.position(query, lengths);
        let all = lengths.1 as i64;
        let end = if self.causal { (position + 1).clamp(0, all) } else { all };
        let first = self.window.map_or(0, |window| position.saturating_sub(window.before));
        first.clamp(0, end) as usize..end as usize
    }

    /// Whether a query sees a key.
    pub(super) fn seen(&self, query: usize, lengths: (usize, usize)) -> impl Fn(usize) -> bool {
        let keys = self.keys(query, lengths);
        let kept = self.kept(&keys);
        move |key| keys.contains(&key) || key < kept
    }

    /// The end of the first keys, which a query sees in addition to its window.
    #[inline(always)]
    pub(super) fn kept(&self, keys: &Range<usize>) -> usize {
        let first_keys = self.window.map_or(0, |window| window.first_keys);
        usize::try_from(first_keys).unwrap_or(0).min(keys.start)
    }
}

#[cfg(test)]
mod tests;
