//! The arguments of an execution.

use super::parameters::{Gradients, Parameters, Shape, checked_output};
use crate::error::Result;
use crate::heap;
use crate::primitive::{OpArgument, PropKind, Usage};
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

/// The optional tensors of a problem.
pub(super) struct Optional<'a> {
    pub(super) mask: Option<&'a MemoryDesc>,
    pub(super) page_table: Option<&'a MemoryDesc>,
    pub(super) flags: u32,
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
        OpArgument::tensor(sys::NORM_ARG_QUERIES, "queries", Input, p.query),
        OpArgument::tensor(sys::NORM_ARG_KEYS, "keys", Input, p.key),
        OpArgument::tensor(sys::NORM_ARG_VALUES, "values", Input, p.value),
        OpArgument::tensor(sys::NORM_ARG_DST, "dst", if forward { Output } else { Input }, dst),
    ])?;
    if let Some(of) = &p.gradients {
        add_gradients(&mut list, p, of, dst)?;
    }
    if !forward || p.prop_kind == PropKind::ForwardTraining {
        let packed = p.flags & sys::norm_sdpa_query_offsets != 0;
        let sequences = if packed { 1 } else { shape.batch };
        let dims = [sequences, shape.heads, shape.queries, 1].map(|dim| dim as i64);
        let desc = MemoryDesc::dense(&dims, DataType::F32)?;
        let usage = if forward { Output } else { Input };
        heap::push(
            &mut list,
            OpArgument::tensor(sys::NORM_ARG_WORKSPACE, "workspace", usage, &desc),
        )?;
    }
    add_options(&mut list, shape, forward, optional)?;
    let scaled = [(sys::NORM_ARG_KEYS, p.key), (sys::NORM_ARG_VALUES, p.value)];
    p.attr.add_arguments(&mut list, &scaled, dst)?;
    Ok(list)
}

/// Adds the gradients, including that of dst.
fn add_gradients(
    list: &mut Vec<OpArgument>,
    p: &Parameters<'_>,
    Gradients { query, key, value, dst: diff_dst, mask }: &Gradients<'_>,
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
        let flag = match id {
            sys::NORM_ARG_DIFF_QUERIES => sys::norm_sdpa_query_offsets,
            _ => sys::norm_sdpa_key_offsets,
        };
        let desc = checked_output(desc, desc_name, like, dims, p.flags & flag != 0)?;
        heap::push(list, OpArgument::tensor(id, name, Usage::Output, &desc))?;
    }
    if let (Some(diff), Some(mask)) = (mask, p.mask) {
        let dims = <[i64; 4]>::try_from(mask.dims()).unwrap_or_default();
        let desc = checked_output(diff, "diff_mask_desc", ("mask_desc", mask), dims, false)?;
        let id = sys::NORM_ARG_DIFF_ATTN_MASK;
        heap::push(list, OpArgument::tensor(id, "diff_attn_mask", Usage::Output, &desc))?;
    }
    let diff_dst = diff_dst.resolved_for("diff_dst_desc", ("dst_desc", dst))?;
    let same = |data_type| Some(data_type) == p.query.data_type();
    diff_dst.check_type("diff_dst_desc", "sdpa with these queries", same)?;
    heap::push(
        list,
        OpArgument::tensor(sys::NORM_ARG_DIFF_DST, "diff_dst", Usage::Input, &diff_dst),
    )
}

/// Adds the arguments of options.
fn add_options(
    list: &mut Vec<OpArgument>,
    shape: &Shape,
    forward: bool,
    optional: &Optional<'_>,
) -> Result<()> {
    use Usage::{Input, Output};
    let has = |flag| optional.flags & flag != 0;
    let mut add = |id, name, usage, desc: &MemoryDesc| {
        heap::push(list, OpArgument::tensor(id, name, usage, desc))
    };
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
    let offsets = MemoryDesc::dense(&[shape.batch as i64 + 1], DataType::S32)?;
    if has(sys::norm_sdpa_query_offsets) {
        add(sys::NORM_ARG_QUERY_OFFSETS, "query_offsets", Input, &offsets)?;
    }
    if has(sys::norm_sdpa_key_offsets) {
        add(sys::NORM_ARG_KEY_OFFSETS, "key_offsets", Input, &offsets)?;
    }
    if has(sys::norm_sdpa_entropy) {
        let desc = MemoryDesc::dense(&[shape.batch as i64, shape.heads as i64], DataType::F32)?;
        add(sys::NORM_ARG_ENTROPY, "entropy", Output, &desc)?;
    }
    Ok(())
}
