//! The reference implementation: element by element, for any layouts and any scales.

use super::convert::Conversion;
use super::problem::{Quantizations, Reorder};
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Execution, Implementation, Padding, Variant};
use crate::rows::{spread, width_of};
use crate::tensor::{DataType, MAX_NDIMS, Offsets};
use arrayvec::ArrayVec;
use norm_sys as sys;

/// Supports every problem.
pub(super) fn make(
    problem: &Reorder,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let Reorder { src_type, dst_type, quantized, .. } = *problem;
    let dims: ArrayVec<usize, MAX_NDIMS> = problem.src.dims().iter().map(|d| *d as usize).collect();
    let values = quantized.all().map(|(quantized, _)| quantized.map_or(0, |q| q.mask));
    Ok(counted(Reference {
        variant,
        types: (src_type, dst_type),
        quantized,
        src: Offsets::of(&problem.src)?,
        dst: Offsets::of(&problem.dst)?,
        count: dims.iter().product(),
        values: values.map(|mask| ValueIndices::new(&dims, mask)),
        padding: Padding::of(&problem.dst)?,
    })?)
}

/// Where an element's scale or zero point is: sizes and strides, innermost dimension first.
struct ValueIndices(ArrayVec<(usize, usize), MAX_NDIMS>);

impl ValueIndices {
    fn new(dims: &[usize], mask: u32) -> Self {
        if mask == 0 {
            return Self(ArrayVec::new());
        }
        let mut step = 1;
        let place = |(d, size): (usize, &usize)| {
            let own = if mask >> d & 1 == 1 { step } else { 0 };
            step *= if own > 0 { *size } else { 1 };
            (*size, own)
        };
        Self(dims.iter().enumerate().rev().map(place).collect())
    }

    fn at(&self, flat: usize) -> usize {
        let mut rest = flat;
        let step = |(size, step): &(usize, usize)| {
            let index = rest % size;
            rest /= size;
            index * step
        };
        self.0.iter().map(step).sum()
    }
}

struct Reference {
    variant: &'static Variant,
    /// The types of src and dst.
    types: (DataType, DataType),
    quantized: Quantizations,
    src: Offsets,
    dst: Offsets,
    count: usize,
    values: [ValueIndices; 4],
    padding: Padding,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        0
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let arguments = execution.arguments;
        let count = self.count;
        let width = (width_of(execution.threads, count), count);
        let threads = spread(execution, (count, count), width, &|_, elements| {
            let (src, dst) = (arguments.get(sys::NORM_ARG_SRC), arguments.get(sys::NORM_ARG_DST));
            for flat in elements {
                // SAFETY: the buffers were checked, and each element belongs to one block.
                unsafe {
                    let at = self.values.each_ref().map(|indices| indices.at(flat));
                    let arithmetic = self.quantized.arithmetic(arguments, at);
                    let (src_type, dst_type) = self.types;
                    let conversion = Conversion { src_type, dst_type, arithmetic };
                    conversion.convert_element(
                        src,
                        self.src.offset(flat),
                        dst,
                        self.dst.offset(flat),
                    );
                }
            }
        });
        // SAFETY: the buffers were checked.
        unsafe { self.padding.clear(arguments.get(sys::NORM_ARG_DST)) };
        threads
    }
}
