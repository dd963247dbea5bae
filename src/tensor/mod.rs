//! Tensors: element type, dimensions and layout.
//!
//! Owns [`DataType`], [`MemoryDesc`], [`Offsets`] (the offsets of elements in any layout) and
//! [`RowMap`] (a plain tensor as rows of its last dimension). Imports only `error`;
//! independent of kernels, and knows C only by its constants.

mod blob;
mod checks;
mod data_type;
mod derive;
mod desc;
mod offsets;
mod rows;
mod tag_names;
mod tags;

pub(crate) use blob::{BLOB_MARK, BLOB_SIZE};
pub(crate) use data_type::{DataType, Support, for_type};
pub(crate) use desc::{Layout, MemoryDesc};
pub(crate) use offsets::{DimOffsets, Offsets};
pub(crate) use rows::RowMap;
#[cfg(test)]
pub(crate) use tags::all_tags;
pub(crate) use tags::{c_letters_of, letters_of};

use norm_sys as sys;

/// Maximum number of dimensions.
pub(crate) const MAX_NDIMS: usize = sys::NORM_MAX_NDIMS as usize;
