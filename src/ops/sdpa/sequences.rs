//! The buffers of an execution: which may be shared, and the values of lengths, offsets and page tables.

use super::parameters::Shape;
use super::problem::Sdpa;
use super::visible::Masking;
use crate::error::{Error, Result};
use crate::primitive::{Arguments, OpArgument, Usage};
use crate::text::Capitals;
use norm_sys as sys;

impl Sdpa {
    /// Checks that only the queries share an output's buffer, and only that of dst.
    pub(super) fn check_shared(&self, arguments: &Arguments) -> Result<()> {
        let of = |usage| self.arguments.iter().filter(move |argument| argument.usage == usage);
        for output in of(Usage::Output).filter(|output| !output.desc.has_zero_dim()) {
            let buffer = arguments.get(output.id);
            let shares = |input: &&OpArgument| {
                arguments.get(input.id) == buffer
                    && (input.id, output.id) != (sys::NORM_ARG_QUERIES, sys::NORM_ARG_DST)
            };
            if let Some(input) = of(Usage::Input).find(shares) {
                return Err(Error::invalid(format_args!(
                    "args: {} and {} share a buffer",
                    Capitals(input.name),
                    Capitals(output.name)
                )));
            }
        }
        Ok(())
    }
}

/// Element `i` of a dense tensor of s32.
///
/// # Safety
/// It exists.
pub(super) unsafe fn integer(start: *const u8, i: usize) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { start.cast::<i32>().add(i).read_unaligned() }
}

/// Checks that the offsets of sequences ascend and are at most `most`.
///
/// # Safety
/// `list` is null or has one element more than there are sequences.
unsafe fn check_offsets(list: *const u8, name: &str, sequences: usize, most: usize) -> Result<()> {
    if list.is_null() {
        return Ok(());
    }
    let mut before = 0;
    for at in 0..=sequences {
        // SAFETY: guaranteed by the caller.
        let offset = unsafe { integer(list, at) };
        if offset < before {
            return Err(Error::invalid(format_args!(
                "args: NORM_ARG_{name}: {offset}, entry {at}, is below {before}"
            )));
        }
        before = offset;
    }
    if before as usize > most {
        return Err(Error::invalid(format_args!(
            "args: NORM_ARG_{name}: {before}, the last entry, is above {most}, the rows of the tensors"
        )));
    }
    Ok(())
}

/// The lengths and the page tables of an execution.
#[derive(Clone, Copy)]
pub(super) struct Sequences {
    /// Null for full lengths.
    query_lengths: *const u8,
    key_lengths: *const u8,
    /// Null if sequences are not packed.
    query_offsets: *const u8,
    key_offsets: *const u8,
    /// Null without pages.
    page_table: *const u8,
    shape: Shape,
}

// SAFETY: it reads inputs.
unsafe impl Sync for Sequences {}

impl Sequences {
    pub(super) fn new(problem: &Sdpa, arguments: &Arguments) -> Self {
        let get = |id| arguments.get(id).cast_const();
        Self {
            query_lengths: get(sys::NORM_ARG_QUERY_LENGTHS),
            key_lengths: get(sys::NORM_ARG_KEY_LENGTHS),
            query_offsets: get(sys::NORM_ARG_QUERY_OFFSETS),
            key_offsets: get(sys::NORM_ARG_KEY_OFFSETS),
            page_table: get(sys::NORM_ARG_PAGE_TABLE),
            shape: problem.shape,
        }
    }

    /// The numbers of queries and keys of a sequence.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn lengths(&self, sequence: usize) -> (usize, usize) {
        // SAFETY: guaranteed by the caller; lengths are not negative, and offsets ascend.
        let at = |list: *const u8, at: usize| unsafe { integer(list, at) as usize };
        let length = |lengths: *const u8, offsets: *const u8, all: usize| {
            if !offsets.is_null() {
                at(offsets, sequence + 1) - at(offsets, sequence)
            } else if !lengths.is_null() {
                at(lengths, sequence)
            } else {
                all
            }
        };
        (
            length(self.query_lengths, self.query_offsets, self.shape.queries),
            length(self.key_lengths, self.key_offsets, self.shape.keys),
        )
    }

    /// The number of a sequence's queries to store: those beyond the length are zeros, unless other sequences follow.
    pub(super) fn stored_queries(&self, length: usize) -> usize {
        if self.query_offsets.is_null() { self.shape.queries } else { length }
    }

    /// As [`stored_queries`](Self::stored_queries), for keys.
    pub(super) fn stored_keys(&self, length: usize) -> usize {
        if self.key_offsets.is_null() { self.shape.keys } else { length }
    }

    /// The index of a query among those of all sequences, such as that of its logarithm.
    ///
    /// # Safety
    /// As [`lengths`](Self::lengths).
    pub(super) unsafe fn row(&self, sequence: usize, head: usize, query: usize) -> usize {
        if self.query_offsets.is_null() {
            return (sequence * self.shape.heads + head) * self.shape.queries + query;
        }
        // SAFETY: guaranteed by the caller.
        let first = unsafe { integer(self.query_offsets, sequence) } as usize;
        head * self.shape.queries + first + query
    }

    /// The page of a sequence's key, and the index within the page.
    ///
    /// # Safety
    /// As [`lengths`](Self::lengths), for a key within the length.
    pub(super) unsafe fn page_of(&self, sequence: usize, key: usize) -> (usize, usize) {
        if self.page_table.is_null() {
            return (sequence, key);
        }
        let (page, place) = (key / self.shape.page, key % self.shape.page);
        // SAFETY: guaranteed by the caller.
        let page = unsafe { integer(self.page_table, sequence * self.shape.pages + page) };
        // Keys that are not visible, from any page, may be read together with visible ones.
        (page.max(0) as usize, place)
    }

    /// The number of keys from a given one that are consecutive in memory.
    pub(super) fn run_from(&self, key: usize) -> usize {
        if self.page_table.is_null() { usize::MAX } else { self.shape.page - key % self.shape.page }
    }

    /// # Safety
    /// The arguments have the sizes of their descriptors.
    pub(super) unsafe fn check(&self, pages: usize, masking: &Masking) -> Result<()> {
        let all = [
            (self.query_lengths, "QUERY_LENGTHS", self.shape.queries, "queries"),
            (self.key_lengths, "KEY_LENGTHS", self.shape.keys, "keys"),
        ];
        let offsets = [
            (self.query_offsets, "QUERY_OFFSETS", self.shape.queries),
            (self.key_offsets, "KEY_OFFSETS", self.shape.keys),
        ];
        for (list, name, most) in offsets {
            // SAFETY: guaranteed by the caller.
            unsafe { check_offsets(list, name, self.shape.batch, most)? };
        }
        for sequence in 0..self.shape.batch {
            for (lengths, name, most, what) in all {
                if lengths.is_null() {
                    continue;
                }
                // SAFETY: guaranteed by the caller.
                let length = unsafe { integer(lengths, sequence) };
                if !usize::try_from(length).is_ok_and(|length| length <= most) {
                    return Err(Error::invalid(format_args!(
                        "args: NORM_ARG_{name}: {length}, of sequence {sequence}, is not from 0 to {most}, the {what} of the tensors"
                    )));
                }
            }
            // SAFETY: as above; the lengths of the sequence were checked.
            unsafe { self.check_pages(sequence, pages, masking)? };
        }
        Ok(())
    }

    /// Checks the pages of the keys within the length. Pages that no query sees may be -1.
    ///
    /// # Safety
    /// As [`check`](Self::check), after the lengths.
    unsafe fn check_pages(&self, sequence: usize, count: usize, masking: &Masking) -> Result<()> {
        if self.page_table.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let lengths = unsafe { self.lengths(sequence) };
        // The window of the first query begins first.
        let keys = masking.keys(0, lengths);
        let (kept, size) = (masking.kept(&keys), self.shape.page);
        for place in 0..lengths.1.div_ceil(size) {
            let is_seen = lengths.0 > 0 && (place * size < kept || (place + 1) * size > keys.start);
            // SAFETY: guaranteed by the caller.
            let page = unsafe { integer(self.page_table, sequence * self.shape.pages + place) };
            if usize::try_from(page).is_ok_and(|page| page < count) || page == -1 && !is_seen {
                continue;
            }
            // In a page table of a cache, entries beyond the tokens of a sequence are -1.
            let hint = match page == -1 && self.key_lengths.is_null() {
                true => "; without norm_sdpa_key_lengths every entry is read",
                false => "",
            };
            return Err(Error::invalid(format_args!(
                "args: NORM_ARG_PAGE_TABLE: {page}, page {place} of sequence {sequence}, is not among the {count} pages of keys{hint}"
            )));
        }
        Ok(())
    }
}
