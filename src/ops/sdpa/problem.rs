//! The validated problem.

use super::arguments::{Optional, arguments};
use super::parameters::{Parameters, Shape, checked_output, dst_dims};
use super::visible::{MaskType, Masking, Window, WindowKind};
use crate::error::{Error, Result};
use crate::primitive::{Accepted, OpArgument, PropKind, Usage, check_known_flags};
use crate::tensor::{DataType, Layout, MemoryDesc, Support};
use norm_sys as sys;

/// The largest head. It keeps the sizes of buffers far below that of the address space.
const MOST_ELEMENTS: i64 = 1 << 16;

/// The tensors that may have scales.
const SCALED: &[i32] = &[sys::NORM_ARG_KEYS, sys::NORM_ARG_VALUES];

/// How a score is computed from a dot product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scoring {
    pub(super) scale: f32,
    /// 0 for none.
    pub(super) soft_cap: f32,
}

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Sdpa {
    pub(super) prop_kind: PropKind,
    pub(super) flags: u32,
    pub(super) shape: Shape,
    pub(super) mask_type: MaskType,
    pub(super) masking: Masking,
    pub(super) scoring: Scoring,
    pub(super) arguments: Vec<OpArgument>,
}

impl Sdpa {
    pub(crate) fn new(p: &Parameters<'_>) -> Result<Self> {
        let forward = p.prop_kind.is_forward();
        let (name, accepted) = match forward {
            true => ("forward sdpa", Accepted { scales: SCALED, masks: true, ..Accepted::NOTHING }),
            false => ("backward sdpa", Accepted::NOTHING),
        };
        p.attr.check(name, &accepted)?;
        check_flags(p.flags, forward)?;
        let shape = checked_shape(p)?;
        check_types(p, forward)?;
        check_packed(p)?;
        let like = ("query_desc", p.query);
        let packed = p.flags & sys::norm_sdpa_query_offsets != 0;
        let dst = checked_output(p.dst, "dst_desc", like, dst_dims(&shape), packed)?;
        check_mask(p, &shape)?;
        let window = checked_window(p)?;
        if !p.scale.is_finite() {
            return Err(Error::invalid(format_args!("scale: {} is not finite", p.scale)));
        }
        if !(p.soft_cap >= 0.0 && p.soft_cap.is_finite()) {
            let text = format_args!("soft_cap: {} is not a number of 0 or more", p.soft_cap);
            return Err(Error::invalid(text));
        }
        let optional = Optional { mask: p.mask, page_table: p.page_table, flags: p.flags };
        let arguments = arguments(p, &shape, &dst, &optional)?;
        let bottom_right = p.mask_type == MaskType::BottomRight;
        let causal = bottom_right || p.mask_type == MaskType::TopLeft || window.is_some();
        Ok(Self {
            prop_kind: p.prop_kind,
            flags: p.flags,
            shape,
            mask_type: p.mask_type,
            masking: Masking { causal, bottom_right, window },
            scoring: Scoring { scale: p.scale, soft_cap: p.soft_cap },
            arguments,
        })
    }

    /// The descriptor of an argument; an empty one if the problem does not have it.
    pub(super) fn desc(&self, id: i32) -> &MemoryDesc {
        let found = self.arguments.iter().find(|argument| argument.id == id);
        found.map_or(&MemoryDesc::EMPTY, |argument| &argument.desc)
    }

    pub(super) fn data_type(&self, id: i32) -> DataType {
        self.desc(id).data_type().unwrap_or(DataType::F32)
    }

    pub(super) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The argument with the first row of each sequence in a tensor; `None` if sequences are not packed.
    pub(super) fn offsets_of(&self, id: i32) -> Option<i32> {
        let (flag, offsets) = match id {
            sys::NORM_ARG_KEYS
            | sys::NORM_ARG_VALUES
            | sys::NORM_ARG_DIFF_KEYS
            | sys::NORM_ARG_DIFF_VALUES => (sys::norm_sdpa_key_offsets, sys::NORM_ARG_KEY_OFFSETS),
            sys::NORM_ARG_QUERIES
            | sys::NORM_ARG_DST
            | sys::NORM_ARG_WORKSPACE
            | sys::NORM_ARG_DIFF_DST
            | sys::NORM_ARG_DIFF_QUERIES => {
                (sys::norm_sdpa_query_offsets, sys::NORM_ARG_QUERY_OFFSETS)
            }
            // Masks and scales are not packed.
            _ => return None,
        };
        self.has(flag).then_some(offsets)
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        let outputs = self.arguments.iter().filter(|argument| argument.usage == Usage::Output);
        outputs.into_iter().all(|output| output.desc.has_zero_dim())
    }

    /// Whether matrix products have the order of bf16.
    pub(super) fn is_bf16(&self) -> bool {
        self.data_type(sys::NORM_ARG_QUERIES) == DataType::Bf16
    }
}

fn check_flags(flags: u32, forward: bool) -> Result<()> {
    let all = [
        (sys::norm_sdpa_sinks, "norm_sdpa_sinks"),
        (sys::norm_sdpa_alibi, "norm_sdpa_alibi"),
        (sys::norm_sdpa_key_lengths, "norm_sdpa_key_lengths"),
        (sys::norm_sdpa_query_lengths, "norm_sdpa_query_lengths"),
        (sys::norm_sdpa_key_offsets, "norm_sdpa_key_offsets"),
        (sys::norm_sdpa_query_offsets, "norm_sdpa_query_offsets"),
        (sys::norm_sdpa_entropy, "norm_sdpa_entropy"),
    ];
    // The entropy has no backward.
    check_known_flags(flags, if forward { &all } else { &all[..6] })
}

fn dims_of(name: &str, desc: &MemoryDesc) -> Result<[i64; 4]> {
    <[i64; 4]>::try_from(desc.dims()).map_err(|_| {
        Error::invalid(format_args!("{name}: {} dimensions, but sdpa has 4", desc.ndims()))
    })
}

/// The error for other heads, with a hint: keys are often passed transposed.
fn other_heads(key_depth: i64, key_size: i64, is_exchanged: bool) -> Error {
    let layouts = "; key_desc is B x G x D x T, value_desc B x G x T x E";
    let hint = if is_exchanged { layouts } else { "" };
    Error::invalid(format_args!(
        "key_desc: its heads have {key_depth} elements (dimension 2), those of query_desc {key_size}{hint}"
    ))
}

fn checked_shape(p: &Parameters<'_>) -> Result<Shape> {
    let [batch, heads, queries, key_size] = dims_of("query_desc", p.query)?;
    let [key_batch, groups, key_depth, page] = dims_of("key_desc", p.key)?;
    let [value_batch, value_groups, value_page, value_size] = dims_of("value_desc", p.value)?;
    for (name, desc) in [("query_desc", p.query), ("key_desc", p.key), ("value_desc", p.value)] {
        desc.check_layout(name)?;
    }
    if key_depth != key_size {
        let is_exchanged = page == key_size && key_depth == value_page;
        return Err(other_heads(key_depth, key_size, is_exchanged));
    }
    if heads % groups.max(1) != 0 || (groups == 0) != (heads == 0) {
        return Err(Error::invalid(format_args!(
            "query_desc: {heads} heads are not a multiple of the {groups} of key_desc"
        )));
    }
    if (value_batch, value_groups, value_page) != (key_batch, groups, page) {
        return Err(Error::invalid(format_args!(
            "value_desc: {value_batch} x {value_groups} heads of {value_page} values, but key_desc has {key_batch} x {groups} of {page} keys"
        )));
    }
    let pages = match p.page_table {
        None if key_batch != batch => {
            return Err(Error::invalid(format_args!(
                "key_desc: {key_batch} sequences, but query_desc has {batch}; keys in pages need page_table_desc"
            )));
        }
        None => 1,
        Some(table) => checked_pages(table, batch, page)?,
    };
    let Some(keys) = pages.checked_mul(page).filter(|keys| i32::try_from(*keys).is_ok()) else {
        return Err(Error::invalid("key_desc: more than 2^31 - 1 keys in a sequence"));
    };
    if i32::try_from(queries).is_err() {
        return Err(Error::invalid("query_desc: more than 2^31 - 1 queries in a sequence"));
    }
    for (name, size) in [("query_desc", key_size), ("value_desc", value_size)] {
        if size > MOST_ELEMENTS {
            let text = format_args!("{name}: heads of {size} elements, more than {MOST_ELEMENTS}");
            return Err(Error::unimplemented(text));
        }
    }
    let size = |dim: i64| dim as usize;
    Ok(Shape {
        batch: size(batch),
        heads: size(heads),
        groups: size(groups),
        queries: size(queries),
        keys: size(keys),
        key_size: size(key_size),
        value_size: size(value_size),
        page: size(page),
        pages: size(pages),
    })
}

/// The pages of a sequence.
fn checked_pages(table: &MemoryDesc, batch: i64, page: i64) -> Result<i64> {
    table.check_type("page_table_desc", "sdpa", |data_type| data_type == DataType::S32)?;
    let &[sequences, pages] = table.dims() else {
        let text = format_args!("page_table_desc: {} dimensions, not 2", table.ndims());
        return Err(Error::invalid(text));
    };
    if sequences != batch {
        return Err(Error::invalid(format_args!(
            "page_table_desc: {sequences} sequences, but query_desc has {batch}"
        )));
    }
    if table.layout() != Layout::Strided || !table.is_dense() || table.is_blocked() {
        return Err(Error::invalid("page_table_desc: the rows must be dense"));
    }
    if page == 0 {
        return Err(Error::invalid("key_desc: pages of 0 keys"));
    }
    Ok(pages)
}

fn check_types(p: &Parameters<'_>, forward: bool) -> Result<()> {
    let full = |data_type: DataType| data_type.support() == Support::Full;
    p.query.check_type("query_desc", "sdpa", full)?;
    let quantized = |data_type| matches!(data_type, DataType::S8 | DataType::F8E4m3);
    let known =
        |data_type| Some(data_type) == p.query.data_type() || forward && quantized(data_type);
    p.key.check_type("key_desc", "sdpa with these queries", known)?;
    p.value.check_type("value_desc", "sdpa with these queries", known)?;
    for (name, desc, id, of_element) in [
        ("key_desc", p.key, sys::NORM_ARG_KEYS, 2),
        ("value_desc", p.value, sys::NORM_ARG_VALUES, 3),
    ] {
        let data_type = desc.data_type().unwrap_or(DataType::F32);
        let what = data_type.name();
        match p.attr.scales.get(id) {
            None if data_type == DataType::S8 => {
                return Err(Error::invalid(format_args!(
                    "attr: {name} is s8, but has no scale; norm_primitive_attr_set_scales_mask sets one"
                )));
            }
            None => (),
            Some(_) if !quantized(data_type) => {
                return Err(Error::invalid(format_args!(
                    "attr: a scale for {name}, which is {what}, not s8 or f8_e4m3"
                )));
            }
            Some(scales) if scales.data_type != DataType::F32 => {
                return Err(Error::unimplemented(format_args!(
                    "attr: the scales of {name} are {}, not f32",
                    scales.data_type.name()
                )));
            }
            Some(scales) if scales.on_host => {
                return Err(Error::unimplemented(format_args!(
                    "attr: the scale of {name} is a host scalar"
                )));
            }
            Some(scales) if scales.mask >> of_element & 1 == 1 => {
                return Err(Error::unimplemented(format_args!(
                    "attr: mask {} of {name}'s scale has a scale per element of a head; use 11 for keys, 7 for values",
                    scales.mask
                )));
            }
            Some(_) => (),
        }
    }
    Ok(())
}

/// Checks what is not supported together with packed sequences.
fn check_packed(p: &Parameters<'_>) -> Result<()> {
    let has = |flag| p.flags & flag != 0;
    let queries = (sys::norm_sdpa_query_offsets, sys::norm_sdpa_query_lengths, "queries");
    let keys = (sys::norm_sdpa_key_offsets, sys::norm_sdpa_key_lengths, "keys");
    for (offsets, lengths, what) in [queries, keys] {
        if has(offsets) && has(lengths) {
            let text = format_args!("flags: both offsets and lengths of {what}");
            return Err(Error::invalid(text));
        }
        if has(offsets) && p.mask.is_some() {
            let text = format_args!("mask_desc: not NULL, but flags say offsets of {what}");
            return Err(Error::unimplemented(text));
        }
    }
    let diff = p.gradients.as_ref();
    let tensors = [
        (queries.0, "query_desc", Some(p.query)),
        (queries.0, "dst_desc", Some(p.dst)),
        (queries.0, "diff_query_desc", diff.map(|diff| diff.query)),
        (queries.0, "diff_dst_desc", diff.map(|diff| diff.dst)),
        (keys.0, "key_desc", Some(p.key)),
        (keys.0, "value_desc", Some(p.value)),
        (keys.0, "diff_key_desc", diff.map(|diff| diff.key)),
        (keys.0, "diff_value_desc", diff.map(|diff| diff.value)),
    ];
    for (flag, name, desc) in tensors {
        let Some(desc) = desc.filter(|_| has(flag)) else { continue };
        let strided = desc.layout() == Layout::Strided;
        if !strided || desc.dims()[0] > 1 && desc.strides()[0] != 0 {
            return Err(Error::invalid(format_args!(
                "{name}: the stride of packed sequences (dimension 0) is not 0"
            )));
        }
    }
    if has(keys.0) && p.page_table.is_some() {
        return Err(Error::invalid("page_table_desc: not NULL, but flags say offsets of keys"));
    }
    if has(keys.0) && !p.attr.scales.is_empty() {
        return Err(Error::unimplemented("attr: scales, but flags say offsets of keys"));
    }
    Ok(())
}

fn check_mask(p: &Parameters<'_>, shape: &Shape) -> Result<()> {
    let Some(mask) = p.mask else {
        if p.gradients.as_ref().is_some_and(|of| of.mask.is_some()) {
            return Err(Error::invalid("diff_mask_desc: not NULL, but mask_desc is"));
        }
        return match p.mask_type {
            MaskType::Buffer => {
                Err(Error::invalid("mask_desc: NULL, but mask_type is attn_mask_buffer"))
            }
            _ => Ok(()),
        };
    };
    if p.mask_type == MaskType::Undef {
        return Err(Error::invalid(
            "mask_type: attn_mask_undef, but mask_desc is not NULL; use attn_mask_buffer",
        ));
    }
    let types =
        |data_type: DataType| data_type.support() == Support::Full || data_type == DataType::U8;
    mask.check_type("mask_desc", "the mask of sdpa", types)?;
    let full = [shape.batch, shape.heads, shape.queries, shape.keys].map(|dim| dim as i64);
    let dims = dims_of("mask_desc", mask)?;
    if dims.iter().zip(&full).any(|(dim, all)| dim != all && *dim != 1) {
        return Err(Error::invalid(format_args!(
            "mask_desc: dimensions {dims:?} are neither 1 nor those of the scores, {full:?}"
        )));
    }
    let differentiated = p.gradients.as_ref().is_some_and(|of| of.mask.is_some());
    if differentiated && mask.data_type() == Some(DataType::U8) {
        return Err(Error::invalid("diff_mask_desc: a mask of u8 has no gradient"));
    }
    mask.check_layout("mask_desc")?;
    Ok(())
}

/// The window: how many keys before its own a query sees.
fn checked_window(p: &Parameters<'_>) -> Result<Option<Window>> {
    let (window, first_keys, name) = (p.window, p.first_keys, p.window_kind.name());
    let least = match p.window_kind {
        WindowKind::None => {
            let given = [("window", window), ("first_keys", first_keys)];
            return match given.into_iter().find(|(_, keys)| *keys != 0) {
                None => Ok(None),
                Some((name, keys)) => Err(Error::invalid(format_args!(
                    "{name}: {keys}, but window_kind is window_none; use window_with_self or window_before_self"
                ))),
            };
        }
        WindowKind::WithSelf => 1,
        WindowKind::BeforeSelf => 0,
    };
    if window < least {
        let text = format_args!("window: {window} is below {least}, the minimum of window_{name}");
        return Err(Error::invalid(text));
    }
    if first_keys < 0 {
        return Err(Error::invalid(format_args!("first_keys: {first_keys} is below 0")));
    }
    let before = window - least;
    Ok(Some(Window { before, kind: p.window_kind, size: window, first_keys }))
}
