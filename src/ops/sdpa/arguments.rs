//! The arguments of an execution, and the checks of integers that come with it.

use super::problem::{Gradients, Parameters, Sdpa, Shape, checked_output};
use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{ArgumentName, Arguments, OpArgument, PropKind, Usage};
use crate::tensor::{DataType, MemoryDesc};
use crate::text::Capitals;
use norm_sys as sys;

/// What a problem may have.
pub(super) struct Optional<'a> {
    pub(super) mask: Option<&'a MemoryDesc>,
    pub(super) page_table: Option<&'a MemoryDesc>,
    pub(super) flags: u32,
}

fn argument(id: i32, name: &'static str, usage: Usage, desc: &MemoryDesc) -> OpArgument {
    OpArgument { id, name: ArgumentName::Tensor(name), usage, desc: desc.clone() }
}

pub(super) fn arguments(
    p: &Parameters<'_>,
    shape: &Shape,
    dst: &MemoryDesc,
    optional: &Optional<'_>,
) -> Result<Vec<OpArgument>> {
    use Usage::{Input, Output};
    let forward = p.prop_kind.is_forward();
    let mut list = heap::list([
        argument(sys::NORM_ARG_QUERIES, "queries", Input, p.query),
        argument(sys::NORM_ARG_KEYS, "keys", Input, p.key),
        argument(sys::NORM_ARG_VALUES, "values", Input, p.value),
        argument(sys::NORM_ARG_DST, "dst", if forward { Output } else { Input }, dst),
    ])?;
    if let Some(of) = &p.gradients {
        add_gradients(&mut list, p, of, dst)?;
    }
    if !forward || p.prop_kind == PropKind::ForwardTraining {
        let dims = [shape.batch, shape.heads, shape.queries, 1].map(|dim| dim as i64);
        let desc = MemoryDesc::dense(&dims, DataType::F32)?;
        let usage = if forward { Output } else { Input };
        heap::push(&mut list, argument(sys::NORM_ARG_WORKSPACE, "workspace", usage, &desc))?;
    }
    add_options(&mut list, shape, forward, optional)?;
    Ok(list)
}

/// The gradients, and that of dst.
fn add_gradients(
    list: &mut Vec<OpArgument>,
    p: &Parameters<'_>,
    Gradients { query, key, value, dst: diff_dst }: &Gradients<'_>,
    dst: &MemoryDesc,
) -> Result<()> {
    let outputs = [
        (sys::NORM_ARG_DIFF_QUERIES, "diff_queries", query, ("query_desc", p.query)),
        (sys::NORM_ARG_DIFF_KEYS, "diff_keys", key, ("key_desc", p.key)),
        (sys::NORM_ARG_DIFF_VALUES, "diff_values", value, ("value_desc", p.value)),
    ];
    let names = ["diff_query_desc", "diff_key_desc", "diff_value_desc"];
    for ((id, name, desc, like), desc_name) in outputs.into_iter().zip(names) {
        let dims = <[i64; 4]>::try_from(like.1.dims()).unwrap_or_default();
        let desc = checked_output(desc, desc_name, like, dims)?;
        heap::push(list, argument(id, name, Usage::Output, &desc))?;
    }
    let diff_dst = diff_dst.resolved_for("diff_dst_desc", ("dst_desc", dst))?;
    let same = |data_type| Some(data_type) == p.query.data_type();
    diff_dst.check_type("diff_dst_desc", "sdpa with these queries", same)?;
    heap::push(list, argument(sys::NORM_ARG_DIFF_DST, "diff_dst", Usage::Input, &diff_dst))
}

/// The arguments of options.
fn add_options(
    list: &mut Vec<OpArgument>,
    shape: &Shape,
    forward: bool,
    optional: &Optional<'_>,
) -> Result<()> {
    use Usage::{Input, Output};
    let has = |flag| optional.flags & flag != 0;
    let mut add =
        |id, name, usage, desc: &MemoryDesc| heap::push(list, argument(id, name, usage, desc));
    if let Some(mask) = optional.mask {
        add(sys::NORM_ARG_ATTN_MASK, "attn_mask", Input, mask)?;
    }
    if let Some(table) = optional.page_table {
        add(sys::NORM_ARG_PAGE_TABLE, "page_table", Input, table)?;
    }
    let per_head = MemoryDesc::dense(&[shape.heads as i64], DataType::F32)?;
    let per_sequence = MemoryDesc::dense(&[shape.batch as i64], DataType::S32)?;
    if has(sys::norm_sdpa_sinks) {
        add(sys::NORM_ARG_SINKS, "sinks", Input, &per_head)?;
        if !forward {
            add(sys::NORM_ARG_DIFF_SINKS, "diff_sinks", Output, &per_head)?;
        }
    }
    if has(sys::norm_sdpa_alibi) {
        add(sys::NORM_ARG_ALIBI_SLOPES, "alibi_slopes", Input, &per_head)?;
    }
    if has(sys::norm_sdpa_query_lengths) {
        add(sys::NORM_ARG_QUERY_LENGTHS, "query_lengths", Input, &per_sequence)?;
    }
    if has(sys::norm_sdpa_key_lengths) {
        add(sys::NORM_ARG_KEY_LENGTHS, "key_lengths", Input, &per_sequence)?;
    }
    if has(sys::norm_sdpa_entropy) {
        let desc = MemoryDesc::dense(&[shape.batch as i64, shape.heads as i64], DataType::F32)?;
        add(sys::NORM_ARG_ENTROPY, "entropy", Output, &desc)?;
    }
    Ok(())
}

impl Sdpa {
    /// Checks that no input but the queries shares the buffer of an output, and those dst's alone.
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

/// The lengths and the page tables of an execution.
#[derive(Clone, Copy)]
pub(super) struct Sequences {
    /// Null for full lengths.
    query_lengths: *const u8,
    key_lengths: *const u8,
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
            page_table: get(sys::NORM_ARG_PAGE_TABLE),
            shape: problem.shape,
        }
    }

    /// The numbers of queries and keys of a sequence.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn lengths(&self, sequence: usize) -> (usize, usize) {
        let length = |lengths: *const u8, all: usize| match lengths.is_null() {
            true => all,
            // SAFETY: guaranteed by the caller; lengths are not negative.
            false => unsafe { integer(lengths, sequence) as usize },
        };
        let (queries, keys) = (self.shape.queries, self.shape.keys);
        (length(self.query_lengths, queries), length(self.key_lengths, keys))
    }

    /// The page of a key of a sequence, and its place there.
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
        (page as usize, place)
    }

    /// Keys from one on that follow each other in memory.
    pub(super) fn run_from(&self, key: usize) -> usize {
        if self.page_table.is_null() { usize::MAX } else { self.shape.page - key % self.shape.page }
    }

    /// # Safety
    /// The arguments have the sizes of their descriptors.
    pub(super) unsafe fn check(&self, pages: usize) -> Result<()> {
        let all = [
            (self.query_lengths, "QUERY_LENGTHS", self.shape.queries, "queries"),
            (self.key_lengths, "KEY_LENGTHS", self.shape.keys, "keys"),
        ];
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
            // SAFETY: as above; the lengths of the sequence are right.
            unsafe { self.check_pages(sequence, pages)? };
        }
        Ok(())
    }

    /// # Safety
    /// As [`check`](Self::check), after the lengths.
    unsafe fn check_pages(&self, sequence: usize, count: usize) -> Result<()> {
        if self.page_table.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let (_, keys) = unsafe { self.lengths(sequence) };
        for place in 0..keys.div_ceil(self.shape.page) {
            // SAFETY: guaranteed by the caller.
            let page = unsafe { integer(self.page_table, sequence * self.shape.pages + place) };
            if !usize::try_from(page).is_ok_and(|page| page < count) {
                return Err(Error::invalid(format_args!(
                    "args: NORM_ARG_PAGE_TABLE: {page}, page {place} of sequence {sequence}, is not among the {count} pages of keys"
                )));
            }
        }
        Ok(())
    }
}
