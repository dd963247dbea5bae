//! The tensors of a request, and the hint of a backward one.

use super::connection::Connection;
use super::objects::{CreateWithStringTag, MemoryDesc};
use super::primitive::PrimitiveDesc;
use crate::data_type::DataType;
use crate::executor::Refusal;
use crate::tensor::{Layout, Tag};
use norm_sys::norm_memory_desc_create_with_string_tag;

/// The layout that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The library chooses.
    Any,
    /// No descriptor is passed.
    Null,
    /// Dense, with the dimensions in this order, outermost first.
    Ordered(Vec<usize>),
    /// Dense, with this order of dimensions and these blocks, outermost first.
    Blocked(Vec<usize>, Vec<(usize, usize)>),
    /// With exactly these strides.
    Strided(Layout),
}

/// Type and layout of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRequest {
    /// The type.
    pub data_type: DataType,
    /// The layout.
    pub wanted: Wanted,
}

impl TensorRequest {
    /// A tensor with a tag, which was checked to fit the number of dimensions.
    pub fn tagged(tag: &Tag, ndims: usize, data_type: DataType) -> TensorRequest {
        let wanted = match tag {
            Tag::Undef => Wanted::Null,
            tag => match tag.order(ndims).expect("checked with the descriptor") {
                None => Wanted::Any,
                Some(order) if !tag.blocks().is_empty() => {
                    Wanted::Blocked(order, tag.blocks().to_vec())
                }
                Some(order) => Wanted::Ordered(order),
            },
        };
        TensorRequest { data_type, wanted }
    }

    /// The library's descriptor.
    pub(crate) fn desc(
        &self,
        connection: &Connection,
        dims: &[usize],
    ) -> Result<MemoryDesc, Refusal> {
        match &self.wanted {
            Wanted::Any => MemoryDesc::any(connection, dims, self.data_type),
            Wanted::Null => Ok(MemoryDesc::null()),
            Wanted::Ordered(order) => MemoryDesc::ordered(connection, dims, order, self.data_type),
            Wanted::Blocked(order, blocks) => {
                let layout = Layout::blocked(dims, order, blocks, self.data_type);
                MemoryDesc::blocked(connection, &layout, string_tag(connection)?)
            }
            Wanted::Strided(layout) => MemoryDesc::strided(connection, layout),
        }
    }
}

/// The library's function that creates a descriptor from letters.
fn string_tag(connection: &Connection) -> Result<CreateWithStringTag, Refusal> {
    match connection.source() {
        None => Ok(norm_memory_desc_create_with_string_tag),
        // SAFETY: the function of this name has oneDNN's prototype, which norm.h shares.
        Some(library) => unsafe { library.function("memory_desc_create_with_string_tag") },
    }
}

/// The descriptor of the forward primitive that backward gets as a hint. oneDNN needs it; this library does not.
pub(crate) fn hint(
    connection: &Connection,
    backward: bool,
    forward: impl FnOnce() -> Result<PrimitiveDesc, Refusal>,
) -> Result<Option<PrimitiveDesc>, Refusal> {
    let is_other = connection.source().is_some();
    (backward && is_other).then(forward).transpose()
}
