//! Tensors: element type, dimensions and layout.
//!
//! Owns [`DataType`], [`MemoryDesc`], [`Offsets`] (the offsets of elements in any layout) and
//! [`RowMap`] (a plain tensor as rows of its last dimension). Imports only `error`; independent of
//! kernels and of C.

mod blob;
mod derive;
mod desc;
mod offsets;
mod rows;
mod tag_names;
mod tags;

pub(crate) use blob::BLOB_SIZE;
pub(crate) use desc::{Layout, MemoryDesc};
pub(crate) use offsets::{DimOffsets, Offsets};
pub(crate) use rows::RowMap;
pub(crate) use tags::{all_tags, letters_of};

use norm_sys as sys;

/// Maximum number of dimensions.
pub(crate) const MAX_NDIMS: usize = sys::NORM_MAX_NDIMS as usize;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DataType {
    F16,
    Bf16,
    F32,
    S32,
    S8,
    U8,
    F64,
    F8E5m2,
    F8E4m3,
}

impl DataType {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::S8 | Self::U8 | Self::F8E5m2 | Self::F8E4m3 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::S32 => 4,
            Self::F64 => 8,
        }
    }

    /// Whether it is a 16-bit floating-point type.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::S32 | Self::S8 | Self::U8)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::S32 => "s32",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::F64 => "f64",
            Self::F8E5m2 => "f8_e5m2",
            Self::F8E4m3 => "f8_e4m3",
        }
    }
}
