//! Steps around the kernels of an operation that stages its tensors itself. A section is some columns of some rows.

use super::around::{Around, Bound, Functions, Normalized, StagedRows};
use crate::primitive::Arguments;
use crate::simd::Level;
use std::ops::Range;

/// Some columns of some rows. A stage begins with the section's first element, and its rows have a constant stride.
pub(crate) struct Section {
    pub(crate) rows: Range<usize>,
    pub(crate) cols: Range<usize>,
    /// The distance between rows on stages, in elements.
    pub(crate) step: usize,
}

/// The steps of a problem with the functions of a level.
pub(crate) struct Sections {
    around: Around,
    functions: Functions,
}

impl Sections {
    pub(crate) fn new(level: Level, around: Around) -> Self {
        let functions = Functions::new(level, &around);
        Self { around, functions }
    }

    /// Which of src, dst or diff_dst, and diff_src are on a stage for the kernels.
    pub(crate) fn staged(&self) -> [bool; 3] {
        self.around.staged()
    }

    fn bound<'a>(
        &'a self,
        arguments: &'a Arguments,
        section: &Section,
        normalized: Option<&'a Normalized<'a>>,
    ) -> Bound<'a> {
        Bound {
            around: &self.around,
            functions: &self.functions,
            arguments,
            normalized,
            first_row: section.rows.start,
            cols: (section.cols.start, section.cols.end),
            streams: false,
        }
    }

    /// Runs the steps before the kernels, onto the stages of src and of diff_dst, which may be null.
    ///
    /// # Safety
    /// The execution's buffers were checked. The section and the stages belong to this thread.
    pub(crate) unsafe fn enter(
        &self,
        arguments: &Arguments,
        section: &Section,
        [src, diff_dst]: [*mut f32; 2],
    ) {
        let bound = self.bound(arguments, section, None);
        let stages = [section.staged(src), section.staged(diff_dst)];
        // SAFETY: guaranteed by the caller.
        unsafe { bound.enter(section.rows.start, section.rows.end, stages) };
    }

    /// Runs the steps after the kernels, from the stages of dst and of diff_src, which may be null.
    ///
    /// # Safety
    /// As [`enter`](Self::enter).
    pub(crate) unsafe fn leave(
        &self,
        arguments: &Arguments,
        section: &Section,
        stages: [*mut f32; 2],
        normalized: &Normalized<'_>,
    ) {
        let bound = self.bound(arguments, section, Some(normalized));
        let stages = stages.map(|stage| section.staged(stage));
        // SAFETY: guaranteed by the caller.
        unsafe { bound.leave(section.rows.start, section.rows.end, stages) };
    }
}

impl Section {
    /// The rows of a stage, counted from column 0.
    fn staged(&self, stage: *mut f32) -> Option<StagedRows> {
        let start = stage.wrapping_sub(self.cols.start);
        let rows = StagedRows { start, first: self.rows.start, step: self.step };
        (!stage.is_null()).then_some(rows)
    }
}
