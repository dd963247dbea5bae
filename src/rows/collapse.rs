//! Merges dimensions of elementwise problems where all tensors allow it. Dense tensors of the same layout become a
//! single row.

use crate::error::{Error, Result};
use crate::tensor::{DataType, MAX_NDIMS, MemoryDesc, RowMap};
use arrayvec::ArrayVec;

/// How the dimensions of an output are merged.
pub(super) struct Collapse {
    /// Sizes, from outermost to innermost in memory, and the innermost original dimension of each; `None` for all
    /// elements in memory order.
    dims: ArrayVec<(i64, Option<usize>), MAX_NDIMS>,
}

/// The stride of a tensor in a dimension that is not 1 in the output.
fn stride(desc: &MemoryDesc, dim: usize) -> i64 {
    if desc.dims()[dim] == 1 { 0 } else { desc.strides()[dim] }
}

impl Collapse {
    /// `all(f)` returns whether `f` holds for the output and all tensors that are broadcast to it.
    pub(super) fn new(
        dst: &MemoryDesc,
        all: impl Fn(&dyn Fn(&MemoryDesc) -> bool) -> bool,
    ) -> Result<Self> {
        let mut dims = ArrayVec::new();
        if dst.is_blocked() || !all(&|desc| !desc.is_blocked()) {
            let same = |desc: &MemoryDesc| is_single(desc) || in_same_places(desc, dst);
            if !dst.is_dense() || !all(&same) {
                return Err(Error::unimplemented("a blocked layout"));
            }
            dims.push((dst.padded_dims().iter().product(), None));
            return Ok(Self { dims });
        }
        let spread = |dim: &usize| dst.dims()[*dim] != 1;
        for dim in dst.order()[..dst.ndims()].iter().copied().filter(spread) {
            let size = dst.dims()[dim];
            let joins = |outer: usize| {
                let fits = |desc: &MemoryDesc| {
                    size.checked_mul(stride(desc, dim)) == Some(stride(desc, outer))
                };
                fits(dst) && all(&fits)
            };
            match dims.last_mut() {
                Some((merged, Some(outer))) if joins(*outer) => {
                    (*merged, *outer) = (*merged * size, dim);
                }
                _ => dims.push((size, Some(dim))),
            }
        }
        if dims.is_empty() {
            dims.push((1, None));
        }
        if dims.len() > RowMap::MAX_LEVELS + 1 {
            let count = dims.len();
            return Err(Error::unimplemented(format_args!(
                "{count} dimensions that cannot be merged"
            )));
        }
        Ok(Self { dims })
    }

    /// A tensor with the merged dimensions; broadcast dimensions have stride 0.
    pub(super) fn of(&self, desc: &MemoryDesc) -> Result<MemoryDesc> {
        let step = |dim: Option<usize>| match dim {
            Some(dim) => stride(desc, dim),
            None => i64::from(!is_single(desc)),
        };
        let sizes: ArrayVec<i64, MAX_NDIMS> = self.dims.iter().map(|(size, _)| *size).collect();
        let steps: ArrayVec<i64, MAX_NDIMS> = self.dims.iter().map(|(_, dim)| step(*dim)).collect();
        let data_type = desc.data_type().unwrap_or(DataType::F32);
        MemoryDesc::with_strides(&sizes, data_type, &steps)
    }
}

/// Whether it has a single element.
fn is_single(desc: &MemoryDesc) -> bool {
    desc.dims().iter().all(|dim| *dim == 1)
}

/// Whether elements are at the same offsets as the other's, whatever the types.
fn in_same_places(desc: &MemoryDesc, other: &MemoryDesc) -> bool {
    let steps =
        |desc: &MemoryDesc, d: usize| (desc.padded_dims()[d] > 1).then(|| desc.strides()[d]);
    desc.dims() == other.dims()
        && desc.padded_dims() == other.padded_dims()
        && desc.blocks().eq(other.blocks())
        && (0..desc.ndims()).all(|d| steps(desc, d) == steps(other, d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use norm_sys as sys;

    fn tensor(dims: &[i64], tag: sys::norm_format_tag_t) -> MemoryDesc {
        MemoryDesc::with_tag(dims, DataType::F32, tag).unwrap()
    }

    fn collapsed(dst: &MemoryDesc, other: &MemoryDesc) -> Option<[Vec<(i64, i64)>; 2]> {
        let collapse = Collapse::new(dst, |holds| holds(other)).ok()?;
        let pairs = |desc: &MemoryDesc| {
            let desc = collapse.of(desc).unwrap();
            desc.dims().iter().copied().zip(desc.strides().iter().copied()).collect()
        };
        Some([pairs(dst), pairs(other)])
    }

    #[test]
    fn dimensions_merge_where_both_tensors_allow_it() {
        let dims = [2, 3, 4, 5];
        let dst = tensor(&dims, sys::norm_acdb);
        let same = collapsed(&dst, &dst).unwrap();
        assert_eq!(same, [vec![(120, 1)], vec![(120, 1)]]);
        let bias = tensor(&[1, 3, 1, 1], sys::norm_abcd);
        assert_eq!(collapsed(&dst, &bias).unwrap(), [vec![(40, 3), (3, 1)], vec![(40, 0), (3, 1)]]);
        let rows = tensor(&dims, sys::norm_abcd);
        let per_channel = collapsed(&rows, &bias).unwrap();
        assert_eq!(per_channel[1], [(2, 0), (3, 1), (20, 0)]);
        let one = tensor(&[1, 1, 1, 1], sys::norm_abcd);
        assert_eq!(collapsed(&dst, &one).unwrap()[1], [(120, 0)]);
        let strided = MemoryDesc::with_strides(&[4, 6], DataType::F32, &[8, 1]).unwrap();
        assert_eq!(collapsed(&strided, &strided).unwrap()[0], [(4, 8), (6, 1)]);
    }

    #[test]
    fn blocked_tensors_of_one_layout_are_a_row_with_its_padding() {
        let dst = tensor(&[2, 17, 3], sys::norm_aBc16b);
        assert_eq!(collapsed(&dst, &dst).unwrap()[0], [(2 * 32 * 3, 1)]);
        assert!(collapsed(&dst, &tensor(&[2, 17, 3], sys::norm_abc)).is_none());
        assert!(collapsed(&dst, &tensor(&[1, 17, 1], sys::norm_aBc16b)).is_none());
    }
}
