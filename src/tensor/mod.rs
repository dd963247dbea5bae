//! Tensors: element type, dimensions and layout.
//!
//! Owns [`DataType`], [`MemoryDesc`], [`Offsets`] (the offsets of elements in any layout) and
//! [`RowMap`] (a plain tensor as rows of its last dimension). Imports no other room; independent of
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
#[cfg(test)]
pub(crate) use tags::all_tags;
pub(crate) use tags::{c_letters_of, letters_of};

use norm_sys as sys;
use std::ffi::CStr;

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
        self.c_name().to_str().unwrap_or_default()
    }

    pub(crate) fn c_name(self) -> &'static CStr {
        match self {
            Self::F16 => c"f16",
            Self::Bf16 => c"bf16",
            Self::F32 => c"f32",
            Self::S32 => c"s32",
            Self::S8 => c"s8",
            Self::U8 => c"u8",
            Self::F64 => c"f64",
            Self::F8E5m2 => c"f8_e5m2",
            Self::F8E4m3 => c"f8_e4m3",
        }
    }
}
