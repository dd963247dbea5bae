//! A tensor as rows: the offset of row `i` of the flattened outer dimensions.

/// The offsets, in elements, of rows over the outer dimensions. Adjacent dimensions with compatible
/// strides are merged, so most tensors have a single stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMap {
    levels: usize,
    dims: [usize; RowMap::MAX_LEVELS],
    strides: [usize; RowMap::MAX_LEVELS],
}

impl RowMap {
    /// The maximum number of dimensions that number rows.
    pub(crate) const MAX_LEVELS: usize = 5;

    /// Rows over `dims` with `strides`, both outermost first.
    pub(crate) fn new(dims: &[i64], strides: &[i64]) -> Self {
        let mut map = Self { levels: 0, dims: [1; 5], strides: [0; 5] };
        for (&dim, &stride) in dims.iter().zip(strides) {
            let (dim, stride) = (dim as usize, stride as usize);
            if dim == 1 {
                continue;
            }
            match map.levels.checked_sub(1) {
                Some(outer) if map.strides[outer] == dim * stride => {
                    map.dims[outer] *= dim;
                    map.strides[outer] = stride;
                }
                _ => {
                    map.dims[map.levels] = dim;
                    map.strides[map.levels] = stride;
                    map.levels += 1;
                }
            }
        }
        map
    }

    /// Any number of rows, `step` elements apart.
    pub(crate) fn every(step: usize) -> Self {
        let (mut dims, mut strides) = ([1; 5], [0; 5]);
        (dims[0], strides[0]) = (usize::MAX, step);
        Self { levels: 1, dims, strides }
    }

    /// The distance between rows, if it is constant.
    #[inline(always)]
    pub(crate) fn step(&self) -> Option<usize> {
        (self.levels <= 1).then_some(self.strides[0])
    }

    /// The distance between rows within the innermost level, and the number of rows in it.
    #[inline(always)]
    pub(crate) fn innermost(&self) -> (usize, usize) {
        let last = self.levels.saturating_sub(1);
        (self.strides[last], if last == 0 { usize::MAX } else { self.dims[last].max(1) })
    }

    /// The number of rows from a row on, inclusive, that have the stride of the innermost level.
    #[inline(always)]
    pub(crate) fn stretch(&self, row: usize) -> usize {
        let (_, rows) = self.innermost();
        if self.levels <= 1 { rows } else { rows - row % rows }
    }

    /// The distance between rows, if it is constant within each group of `size` rows from `first` on.
    #[inline(always)]
    pub(crate) fn step_of_groups(&self, size: usize, first: usize) -> Option<usize> {
        let (step, count) = self.innermost();
        let whole = |rows: usize| rows.is_multiple_of(size);
        (self.levels <= 1 || whole(count) && whole(self.stretch(first))).then_some(step)
    }

    /// The offset of a row's first element.
    #[inline(always)]
    pub(crate) fn offset(&self, row: usize) -> usize {
        if self.levels <= 1 {
            return row * self.strides[0];
        }
        // Not a call, around which kernels would have to save their vectors.
        let mut rest = row;
        let mut offset = 0;
        let mut level = self.levels;
        while level > 1 {
            level -= 1;
            // Levels below `levels` have a dimension of 2 or more, unless there are no rows.
            let dim = self.dims[level].max(1);
            offset += rest % dim * self.strides[level];
            rest /= dim;
        }
        offset + rest * self.strides[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_end_where_the_distance_changes() {
        let map = RowMap::new(&[5, 3], &[100, 10]);
        assert_eq!([0, 1, 2, 3, 14].map(|row| map.stretch(row)), [3, 2, 1, 3, 1]);
        assert_eq!(RowMap::new(&[5, 3], &[30, 10]).stretch(7), usize::MAX);
    }

    #[test]
    fn groups_do_not_cross_a_change_of_distance() {
        // Tokens of 8 heads in rows of 12 heads.
        let heads = RowMap::new(&[5, 8], &[12 * 64, 64]);
        assert_eq!(
            [0, 2, 4, 12].map(|row| heads.step_of_groups(4, row).is_some()),
            [true, false, true, true]
        );
        assert_eq!(heads.step_of_groups(16, 0), None);
        assert_eq!(RowMap::new(&[5, 6], &[12 * 64, 64]).step_of_groups(4, 2), None);
        assert_eq!(RowMap::every(64).step_of_groups(16, 3), Some(64));
    }

    #[test]
    fn dense_rows_merge_to_one_stride() {
        let map = RowMap::new(&[2, 3, 4], &[120, 40, 10]);
        assert_eq!(map.levels, 1);
        assert_eq!(map.offset(5), 50);
    }

    #[test]
    fn permuted_rows_keep_their_offsets() {
        let (dims, strides) = ([2, 3, 4], [10, 20, 300]);
        let map = RowMap::new(&dims, &strides);
        let mut row = 0;
        for a in 0..2 {
            for b in 0..3 {
                for c in 0..4 {
                    assert_eq!(map.offset(row), a * 10 + b * 20 + c * 300);
                    row += 1;
                }
            }
        }
    }
}
