//! The memory for the keys and values of each layer and their scales.

use super::book::PageCopy;
use super::buffer::Buffer;
use super::shape::Shape;
use crate::error::Result;

/// The data of a layer. Each area is pages x heads x tokens of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Area {
    Keys,
    Values,
    /// A scale for each token of each head; empty if elements are not quantized.
    KeyScales,
    ValueScales,
}

/// The areas of all layers, one layer after another.
#[derive(Debug)]
pub(super) struct Areas {
    data: Buffer,
    sizes: [usize; 4],
}

impl Areas {
    pub(super) fn new(shape: &Shape) -> Result<Self> {
        // `Shape::new` has checked the sizes.
        let sizes = shape.area_bytes().unwrap_or_default();
        let bytes = sizes.iter().sum::<usize>().saturating_mul(shape.layers);
        Ok(Self { data: Buffer::new(bytes, "keys and values")?, sizes })
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.size()
    }

    pub(super) fn at(&self, layer: usize, area: Area) -> *mut u8 {
        let before: usize = self.sizes[..area as usize].iter().sum();
        self.data.start().wrapping_add(layer * self.sizes.iter().sum::<usize>() + before)
    }

    /// Copies the first tokens of a page to another page, in all layers.
    pub(super) fn copy(&self, shape: &Shape, copy: PageCopy) {
        let areas = [Area::Keys, Area::Values, Area::KeyScales, Area::ValueScales];
        for (layer, (area, row)) in (0..shape.layers)
            .flat_map(|layer| areas.into_iter().zip(shape.rows()).map(move |pair| (layer, pair)))
        {
            let (start, head) = (self.at(layer, area), shape.page * row);
            for index in 0..shape.heads {
                let at =
                    |page: i32| start.wrapping_add((page as usize * shape.heads + index) * head);
                // SAFETY: both pages are in the pool and differ. Areas without scales have rows of no bytes.
                unsafe {
                    let bytes = copy.tokens * row;
                    std::ptr::copy_nonoverlapping(at(copy.from), at(copy.to), bytes);
                }
            }
        }
    }
}
