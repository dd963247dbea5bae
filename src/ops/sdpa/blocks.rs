//! The blocks of keys that rows see.

use super::BLOCK;
use super::order::GROUP;
use super::score::ScoreRow;
use std::ops::Range;

/// The index of the first key of a block, and the range from the first to the last visible key in it.
pub(super) type BlockKeys = (usize, Range<usize>);

/// The visible keys of the block that begins at `first`, extended down to the start of a group.
pub(super) fn whole_groups(first: usize, within: &Range<usize>) -> Range<usize> {
    first + (within.start - first) / GROUP * GROUP..within.end
}

/// The blocks with keys that at least one of several rows sees.
pub(super) struct Blocks {
    first: usize,
    /// The union of the rows' windows.
    window: Range<usize>,
    /// The end of the keys that are visible before the window.
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

    /// The keys of the block that begins at `first`; `None` if none is visible.
    pub(super) fn at(&self, first: usize) -> Option<Range<usize>> {
        let (Range { start, end }, kept) = (self.window.clone(), self.kept);
        let (is_kept, is_window) = (first < kept, first < end && start < first + BLOCK);
        let from = if is_kept { first } else { first.max(start) };
        let to = if is_window { end.max(kept) } else { kept };
        (is_kept || is_window).then(|| from..to.min(first + BLOCK))
    }

    /// The number of remaining blocks.
    pub(super) fn left(&self) -> usize {
        let blocks = |start: usize, end: usize| end.div_ceil(BLOCK).saturating_sub(start / BLOCK);
        let kept = self.kept.min(self.window.start / BLOCK * BLOCK);
        blocks(self.first, kept) + blocks(self.first.max(self.window.start), self.window.end)
    }
}

impl Iterator for Blocks {
    type Item = BlockKeys;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.first;
        let keys = self.at(first)?;
        self.first += BLOCK;
        self.skip_unseen();
        Some((first, keys))
    }
}

#[cfg(test)]
mod tests;
