//! The parameters of the constructors, and the sizes derived from them.

use super::visible::{MaskType, WindowKind};
use crate::error::{Error, Result};
use crate::primitive::{Attr, PropKind};
use crate::tensor::{Layout, MemoryDesc, Support};

/// The tensors that only backward has.
pub(crate) struct Gradients<'a> {
    pub(crate) query: &'a MemoryDesc,
    pub(crate) key: &'a MemoryDesc,
    pub(crate) value: &'a MemoryDesc,
    pub(crate) dst: &'a MemoryDesc,
    /// The gradient of an additive mask.
    pub(crate) mask: Option<&'a MemoryDesc>,
}

/// The parameters of the constructors.
pub(crate) struct Parameters<'a> {
    pub(crate) prop_kind: PropKind,
    pub(crate) query: &'a MemoryDesc,
    pub(crate) key: &'a MemoryDesc,
    pub(crate) value: &'a MemoryDesc,
    pub(crate) dst: &'a MemoryDesc,
    pub(crate) mask: Option<&'a MemoryDesc>,
    pub(crate) page_table: Option<&'a MemoryDesc>,
    pub(crate) gradients: Option<Gradients<'a>>,
    pub(crate) mask_type: MaskType,
    pub(crate) window_kind: WindowKind,
    pub(crate) window: i64,
    pub(crate) first_keys: i64,
    pub(crate) scale: f32,
    pub(crate) soft_cap: f32,
    pub(crate) flags: u32,
    pub(crate) attr: &'a Attr,
}

/// The sizes of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) batch: usize,
    pub(super) heads: usize,
    /// Heads of keys and values.
    pub(super) groups: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    /// Keys in a page; without pages, all keys.
    pub(super) page: usize,
    /// Pages per sequence.
    pub(super) pages: usize,
}

impl Shape {
    /// The number of query heads that share keys.
    pub(super) fn heads_of_group(&self) -> usize {
        self.heads / self.groups.max(1)
    }
}

pub(super) fn dst_dims(shape: &Shape) -> [i64; 4] {
    [shape.batch, shape.heads, shape.queries, shape.value_size].map(|dim| dim as i64)
}

/// An output or a gradient, with its layout.
pub(super) fn checked_output(
    desc: &MemoryDesc,
    name: &str,
    like: (&str, &MemoryDesc),
    dims: [i64; 4],
    packed: bool,
) -> Result<MemoryDesc> {
    desc.check_type(name, "sdpa", |data_type| data_type.support() == Support::Full)?;
    if desc.dims() != dims {
        return Err(Error::invalid(format_args!(
            "{name}: dimensions {:?} are not {dims:?}, which follow from the other tensors",
            desc.dims()
        )));
    }
    let desc = match desc.layout() {
        Layout::Strided => desc.clone(),
        _ if like.1.dims() == dims => desc.resolved_for(name, like)?,
        _ => match desc.data_type() {
            Some(data_type) => MemoryDesc::dense(&dims, data_type)?,
            None => return Err(Error::invalid(format_args!("{name}: an empty descriptor"))),
        },
    };
    if packed {
        // Packed sequences share the tensor, but rows must not overlap.
        let [_, rest @ ..] = dims;
        desc.part(&[dims[0].min(1), rest[0], rest[1], rest[2]], &[0; 4])?.check_output(name)?;
    } else {
        desc.check_output(name)?;
    }
    Ok(desc)
}
