//! Dimensions, strides and element type of a tensor.

use crate::data_type::DataType;
use std::fmt;
use std::ops::Range;

/// A tensor's layout in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Elements in each dimension.
    pub dims: Vec<usize>,
    /// The stride of each dimension, in elements: from one index to the next, or from one block to
    /// the next if it is blocked.
    pub strides: Vec<usize>,
    /// Dimension and size of the blocks, outermost first. They are dense within the strides. The
    /// padding of a dimension's last block belongs to no element.
    pub blocks: Vec<(usize, usize)>,
    /// The type of the elements.
    pub data_type: DataType,
}

impl Layout {
    /// A layout with this order of dimensions, outermost first, and `padding` unused elements after
    /// the innermost one.
    pub fn ordered(dims: &[usize], order: &[usize], padding: usize, data_type: DataType) -> Layout {
        let mut strides = vec![0; dims.len()];
        let mut stride = 1;
        for (position, &dimension) in order.iter().rev().enumerate() {
            strides[dimension] = stride;
            // Outer strides stay usable if a dimension is empty.
            stride *= dims[dimension].max(1);
            if position == 0 {
                stride += padding;
            }
        }
        Layout::strided(dims, &strides, data_type)
    }

    /// A layout with these strides.
    pub fn strided(dims: &[usize], strides: &[usize], data_type: DataType) -> Layout {
        Layout { dims: dims.to_vec(), strides: strides.to_vec(), blocks: Vec::new(), data_type }
    }

    /// A dense blocked layout with these orders of dimensions and blocks, outermost first.
    pub fn blocked(
        dims: &[usize],
        order: &[usize],
        blocks: &[(usize, usize)],
        data_type: DataType,
    ) -> Layout {
        let mut layout = Layout::strided(dims, &vec![0; dims.len()], data_type);
        layout.blocks = blocks.to_vec();
        let mut stride = blocks.iter().map(|block| block.1).product();
        for &dimension in order.iter().rev() {
            layout.strides[dimension] = stride;
            stride *= layout.padded(dimension).max(1) / layout.block_of(dimension);
        }
        layout
    }

    /// The number of indices of a dimension that one stride covers.
    fn block_of(&self, dimension: usize) -> usize {
        self.blocks.iter().filter(|block| block.0 == dimension).map(|block| block.1).product()
    }

    /// The size of a dimension, including the padding of its last block.
    fn padded(&self, dimension: usize) -> usize {
        self.dims[dimension].next_multiple_of(self.block_of(dimension))
    }

    /// The offset of each index of a dimension, including padding.
    fn places(&self, dimension: usize) -> Vec<usize> {
        let place = |index: usize| {
            let (mut rest, mut inside, mut place) = (index, 1, 0);
            for &(d, size) in self.blocks.iter().rev() {
                if d == dimension {
                    place += rest % size * inside;
                    rest /= size;
                }
                inside *= size;
            }
            place + rest * self.strides[dimension]
        };
        (0..self.padded(dimension)).map(place).collect()
    }

    /// The dense row-major layout.
    pub fn dense(dims: &[usize], data_type: DataType) -> Layout {
        Layout::ordered(dims, &(0..dims.len()).collect::<Vec<_>>(), 0, data_type)
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes from the first element to the end of the last one, including the padding of blocks.
    pub fn span(&self) -> usize {
        usize::try_from(self.wide_span()).unwrap_or(usize::MAX)
    }

    /// The same for a layout that may exceed the address space.
    pub fn wide_span(&self) -> u128 {
        if self.dims.contains(&0) {
            return 0;
        }
        let steps = |d: usize| (self.padded(d) / self.block_of(d) - 1) as u128;
        let last: u128 = (0..self.dims.len()).map(|d| steps(d) * self.strides[d] as u128).sum();
        let tile: usize = self.blocks.iter().map(|block| block.1).product();
        (last + tile as u128) * self.data_type.size() as u128
    }

    /// Whether two layouts have every element at the same offset.
    pub fn same_places(&self, other: &Layout) -> bool {
        self.dims == other.dims
            && self.data_type == other.data_type
            && self.blocks == other.blocks
            && (0..self.dims.len())
                .all(|d| self.dims[d] <= 1 || self.strides[d] == other.strides[d])
    }

    /// The dimensions in memory order, outermost first.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.dims.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(self.strides[d]));
        order
    }

    /// Whether the elements are contiguous in row-major order.
    pub fn is_dense(&self) -> bool {
        self.same_places(&Layout::dense(&self.dims, self.data_type))
    }

    /// Calls `visit` with the bytes of contiguous elements, in row-major order of the indices.
    pub fn for_each_run(&self, mut visit: impl FnMut(Range<usize>)) {
        if self.count() == 0 {
            return;
        }
        let size = self.data_type.size();
        if !self.blocks.is_empty() {
            return self.each_place(|offset, is_element| {
                if is_element {
                    visit(offset * size..(offset + 1) * size);
                }
            });
        }
        let (outer, run) = match (self.dims.split_last(), self.strides.last()) {
            (Some((&last, outer)), Some(1)) => (outer, last),
            _ => (&self.dims[..], 1),
        };
        let mut index = vec![0; outer.len()];
        let mut offset = 0;
        loop {
            visit(offset * size..(offset + run) * size);
            let mut d = outer.len();
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                index[d] += 1;
                offset += self.strides[d];
                if index[d] < outer[d] {
                    break;
                }
                offset -= index[d] * self.strides[d];
                index[d] = 0;
            }
        }
    }

    /// Calls `visit` with the byte offset of each padding element of blocks.
    pub fn for_each_filler(&self, mut visit: impl FnMut(usize)) {
        if self.blocks.is_empty() || self.count() == 0 {
            return;
        }
        let size = self.data_type.size();
        self.each_place(|offset, is_element| {
            if !is_element {
                visit(offset * size);
            }
        });
    }

    /// Calls `visit` with the offset of each index of the padded dimensions, in row-major order, and with whether there
    /// is an element.
    fn each_place(&self, mut visit: impl FnMut(usize, bool)) {
        let places: Vec<Vec<usize>> = (0..self.dims.len()).map(|d| self.places(d)).collect();
        let mut index = vec![0; places.len()];
        for _ in 0..places.iter().map(Vec::len).product() {
            let offset = index.iter().zip(&places).map(|(i, places)| places[*i]).sum();
            visit(offset, index.iter().zip(&self.dims).all(|(i, dim)| i < dim));
            for d in (0..index.len()).rev() {
                index[d] += 1;
                if index[d] < places[d].len() {
                    break;
                }
                index[d] = 0;
            }
        }
    }

    /// The index of the element at `position` in row-major order, as `(i,j)`.
    pub fn coordinates(&self, mut position: usize) -> String {
        let mut index = vec![0; self.dims.len()];
        for d in (0..self.dims.len()).rev() {
            let dim = self.dims[d].max(1);
            index[d] = position % dim;
            position /= dim;
        }
        let index: Vec<String> = index.iter().map(usize::to_string).collect();
        format!("({})", index.join(","))
    }

    /// Copies elements from row-major order to their offsets.
    pub fn scatter(&self, elements: &[u8], memory: &mut [u8]) {
        if self.is_dense() {
            memory[..elements.len()].copy_from_slice(elements);
            return;
        }
        let mut rest = elements;
        self.for_each_run(|run| {
            let (first, after) = rest.split_at(run.len());
            memory[run].copy_from_slice(first);
            rest = after;
        });
    }

    /// Copies elements from their offsets into row-major order.
    pub fn gather(&self, memory: &[u8]) -> Vec<u8> {
        let size = self.data_type.size();
        if self.is_dense() {
            return memory[..self.count() * size].to_vec();
        }
        let mut elements = Vec::with_capacity(self.count() * size);
        self.for_each_run(|run| elements.extend_from_slice(&memory[run]));
        elements
    }
}

/// Type, dimensions and strides, as in `f32 5x33, strides 33x1`.
impl fmt::Display for Layout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined =
            |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let (dims, strides) = (joined(&self.dims), joined(&self.strides));
        write!(out, "{} {dims}, strides {strides}", self.data_type.name())?;
        self.blocks.iter().try_for_each(|(d, size)| write!(out, ", {size} of dimension {d}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: DataType = DataType::F32;

    #[test]
    fn strides_follow_the_order() {
        let layout = Layout::ordered(&[2, 3, 4], &[0, 2, 1], 0, F32);
        assert_eq!(layout.strides, [12, 1, 3]);
        assert_eq!((layout.count(), layout.span()), (24, 96));
        assert_eq!(layout.order(), [0, 2, 1]);
        let padded = Layout::ordered(&[2, 3, 4], &[0, 1, 2], 3, F32);
        assert_eq!(padded.strides, [21, 7, 1]);
        assert_eq!(padded.span(), (21 + 14 + 3 + 1) * 4);
        assert!(!padded.is_dense() && Layout::dense(&[2, 3, 4], F32).is_dense());
    }

    #[test]
    fn scattered_elements_are_gathered_in_order() {
        let elements: Vec<u8> = (0..2 * 3 * 4 * 2).collect();
        for (order, padding) in [([0, 1, 2], 0), ([0, 1, 2], 5), ([2, 0, 1], 1), ([1, 2, 0], 0)] {
            let layout = Layout::ordered(&[2, 3, 4], &order, padding, DataType::Bf16);
            let mut memory = vec![0xee; layout.span()];
            layout.scatter(&elements, &mut memory);
            assert_eq!(layout.gather(&memory), elements);
            let unused = memory.iter().filter(|&&byte| byte == 0xee).count();
            assert_eq!(unused, layout.span() - elements.len(), "{order:?} + {padding}");
        }
        // Element (1,2,0) in an order written out by hand.
        let layout = Layout::ordered(&[2, 3, 4], &[2, 0, 1], 0, DataType::Bf16);
        let mut memory = vec![0; layout.span()];
        layout.scatter(&elements, &mut memory);
        let place = 2 * (3 + 2);
        assert_eq!(memory[place..place + 2], elements[2 * (12 + 8)..][..2]);
    }

    #[test]
    fn empty_tensors_take_no_memory() {
        let layout = Layout::ordered(&[0, 5], &[1, 0], 0, F32);
        assert_eq!((layout.count(), layout.span()), (0, 0));
        layout.for_each_run(|_| panic!("no element"));
        assert_eq!(layout.gather(&[]), Vec::<u8>::new());
    }

    #[test]
    fn strides_of_single_elements_do_not_count() {
        let odd = Layout::strided(&[3, 1, 2], &[2, 99, 1], F32);
        assert!(odd.same_places(&Layout::dense(&[3, 1, 2], F32)));
        assert!(!odd.same_places(&Layout::dense(&[3, 1, 2], DataType::F16)));
        assert_eq!(odd.coordinates(3), "(1,0,1)");
    }

    /// AB3b2a: tiles of 3 rows of b by 2 of a, two of them down and two across, written out.
    #[test]
    fn blocks_lie_as_written_out() {
        let layout = Layout::blocked(&[3, 4], &[0, 1], &[(1, 3), (0, 2)], DataType::U8);
        assert_eq!((&layout.strides[..], layout.span()), (&[12, 6][..], 24));
        #[rustfmt::skip]
        let lies = [
            0, 4, 1, 5, 2, 6,  3, 7, 9, 9, 9, 9,
            8, 9, 10, 9, 11, 9,  12, 9, 9, 9, 9, 9u8,
        ];
        let elements: Vec<u8> = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12].to_vec();
        let mut memory = vec![9; 24];
        layout.scatter(&elements, &mut memory);
        assert_eq!(memory, lies);
        assert_eq!(layout.gather(&memory), elements);
        let mut fillers = Vec::new();
        layout.for_each_filler(|offset| fillers.push(offset));
        fillers.sort_unstable();
        let places = lies.iter().enumerate().filter(|(_, byte)| **byte == 9).map(|(at, _)| at);
        assert_eq!(fillers, places.collect::<Vec<_>>());
        assert!(!layout.is_dense());
        // b is blocked twice.
        let twice = Layout::blocked(&[2, 5], &[1, 0], &[(1, 2), (0, 2), (1, 2)], DataType::U8);
        assert_eq!(twice.strides, [8, 8]);
        let mut places = Vec::new();
        twice.for_each_run(|run| places.push(run.start));
        assert_eq!(places, [0, 1, 4, 5, 8, 2, 3, 6, 7, 10]);
    }
}
