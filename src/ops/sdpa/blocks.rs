//! The blocks of keys that rows see.

use super::BLOCK;
use super::score::ScoreRow;
use std::ops::Range;

/// The blocks of keys that any of some rows sees: the number of the first key of each, and the keys from the first to the
/// last that are seen there.
pub(super) struct Blocks {
    first: usize,
    /// The keys of windows.
    window: Range<usize>,
    /// The end of the keys that are seen before their window.
    kept: usize,
}

impl Blocks {
    pub(super) fn of(rows: &[ScoreRow]) -> Self {
        let seen = || rows.iter().filter(|row| !row.keys.is_empty());
        let start = seen().map(|row| row.keys.start).min().unwrap_or(usize::MAX);
        let end = seen().map(|row| row.keys.end).max().unwrap_or(0);
        let kept = rows.iter().map(|row| row.kept).max().unwrap_or(0);
        let mut blocks = Self { first: 0, window: start..end, kept };
        blocks.skip_unseen();
        blocks
    }

    /// Skips the blocks between the kept keys and the window.
    fn skip_unseen(&mut self) {
        if self.first >= self.kept {
            self.first = self.first.max(self.window.start / BLOCK * BLOCK);
        }
    }

    /// The number of blocks that are left.
    pub(super) fn left(&self) -> usize {
        let blocks = |start: usize, end: usize| end.div_ceil(BLOCK).saturating_sub(start / BLOCK);
        let kept = self.kept.min(self.window.start / BLOCK * BLOCK);
        blocks(self.first, kept) + blocks(self.first.max(self.window.start), self.window.end)
    }
}

impl Iterator for Blocks {
    type Item = (usize, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, window, kept) = (self.first, self.window.clone(), self.kept);
        if first >= window.end.max(kept) {
            return None;
        }
        let start = if first < kept { first } else { first.max(window.start) };
        let end = if first + BLOCK <= window.start { kept } else { window.end.max(kept) };
        self.first += BLOCK;
        self.skip_unseen();
        Some((first, start..end.min(first + BLOCK)))
    }
}

#[cfg(test)]
mod tests;
