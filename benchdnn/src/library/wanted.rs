//! The tensors of a request, and the hint of a backward one.

use super::{Connection, MemoryDesc, PrimitiveDesc};
use crate::data_type::DataType;
use crate::executor::Refusal;
use crate::tensor::{Layout, Tag};

/// The layout that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The library chooses.
    Any,
    /// No descriptor is passed.
    Null,
    /// Dense, the dimensions in this order, outermost first.
    Ordered(Vec<usize>),
    /// These very strides.
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
            Wanted::Strided(layout) => MemoryDesc::strided(connection, layout),
        }
    }
}

/// The descriptor of the forward primitive that backward gets as a hint: oneDNN needs it, this
/// library does not.
pub(crate) fn hint(
    connection: &Connection,
    backward: bool,
    forward: impl FnOnce() -> Result<PrimitiveDesc, Refusal>,
) -> Result<Option<PrimitiveDesc>, Refusal> {
    let is_other = connection.source().is_some();
    (backward && is_other).then(forward).transpose()
}
