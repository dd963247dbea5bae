//! Layouts of several arrays at once: dimensions of rows that can be joined, and memory that
//! overlaps.

use arrayvec::ArrayVec;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tensor::{Dims, Tensor};
use crate::wanted::{MAKE_CONTIGUOUS, NEW_CONTIGUOUS};

/// The most dimensions of rows that the library accepts, besides the dimension of columns.
pub(crate) const MAX_ROW_DIMS: usize = 4;

/// The most arrays of a call that have elements for each row.
pub(crate) const MAX_JOINED: usize = 8;

/// Sizes or strides of joined dimensions.
pub(crate) type RowDims = ArrayVec<usize, MAX_ROW_DIMS>;

/// The dimensions of the rows of several arrays, joined.
pub(crate) struct Joined {
    pub(crate) sizes: RowDims,
    /// For each array, in the order given.
    pub(crate) strides: ArrayVec<RowDims, MAX_JOINED>,
}

/// Joins dimensions of rows that are contiguous in every array: the library gets as few dimensions as possible, only
/// one for dense arrays.
///
/// The order of the rows does not change, so neither do the bits of sums over them.
pub(crate) fn join(shape: &[usize], arrays: &[&Tensor<'_, '_>]) -> PyResult<Joined> {
    debug_assert!(arrays.iter().all(|array| array.strides.len() >= shape.len()));
    let mut sizes = Dims::new();
    let mut strides: ArrayVec<Dims, MAX_JOINED> = arrays.iter().map(|_| Dims::new()).collect();
    if shape.contains(&0) {
        // No rows: any strides will do.
        sizes.push(0);
        strides.iter_mut().for_each(|strides| strides.push(1));
    }
    let dimensions = if shape.contains(&0) { 0 } else { shape.len() };
    // From the innermost dimension to the outermost.
    for dimension in (0..dimensions).rev().filter(|&dimension| shape[dimension] != 1) {
        let continues = sizes.last().is_some_and(|inner| {
            let of_array = |(array, strides): (&&Tensor<'_, '_>, &Dims)| {
                strides.last().and_then(|stride| stride.checked_mul(*inner))
                    == Some(array.strides[dimension])
            };
            arrays.iter().zip(&strides).all(of_array)
        });
        if continues {
            let inner = sizes.last_mut().expect("the dimension that continues");
            *inner *= shape[dimension];
        } else {
            sizes.push(shape[dimension]);
            for (strides, array) in strides.iter_mut().zip(arrays) {
                strides.push(array.strides[dimension]);
            }
        }
    }
    if sizes.is_empty() {
        sizes.push(1);
        strides.iter_mut().for_each(|strides| strides.push(1));
    }
    if sizes.len() > MAX_ROW_DIMS {
        let names: Vec<_> = arrays.iter().map(|array| array.name).collect();
        let has_gaps = arrays.iter().any(|array| array.is_output && !array.is_dense());
        let pass = if has_gaps { NEW_CONTIGUOUS } else { MAKE_CONTIGUOUS };
        return Err(PyValueError::new_err(format!(
            "the strides of {} leave {} dimensions of rows, but the maximum is {MAX_ROW_DIMS}: \
             {pass}",
            names.join(", "),
            sizes.len(),
        )));
    }
    let outermost_first = |dims: &Dims| dims.iter().rev().copied().collect::<RowDims>();
    Ok(Joined {
        sizes: outermost_first(&sizes),
        strides: strides.iter().map(outermost_first).collect(),
    })
}

/// Rejects outputs that share memory with another argument. `in_place` are pairs of an input and an
/// output that may be the same array.
pub(crate) fn check_overlaps(
    outputs: &[&Tensor<'_, '_>],
    inputs: &[&Tensor<'_, '_>],
    in_place: &[(&Tensor<'_, '_>, &Tensor<'_, '_>)],
) -> PyResult<()> {
    for (at, output) in outputs.iter().enumerate() {
        for other in outputs[..at].iter().chain(inputs) {
            let is_pair = in_place
                .iter()
                .any(|(input, to)| std::ptr::eq(*other, *input) && std::ptr::eq(*output, *to));
            if overlap(output, other) && !(is_pair && is_same(output, other)) {
                let same = if is_pair {
                    format!(", or {} itself with the same type and layout", other.name)
                } else {
                    String::new()
                };
                return Err(PyValueError::new_err(format!(
                    "{} overlaps {} in memory: pass an array with memory of its own{same}",
                    output.name, other.name,
                )));
            }
        }
    }
    Ok(())
}

/// Whether two arrays have the same elements in the same places.
fn is_same(a: &Tensor<'_, '_>, b: &Tensor<'_, '_>) -> bool {
    let same_steps = || {
        let steps = a.strides.iter().zip(&b.strides).zip(&a.shape);
        steps.into_iter().all(|((a, b), &size)| size <= 1 || a == b)
    };
    a.data == b.data && a.data_type == b.data_type && a.shape == b.shape && same_steps()
}

/// Whether two arrays may have a byte in common.
///
/// Columns of one matrix interleave without overlapping. Arrays whose ranges overlap are therefore compared within one
/// period: the greatest common divisor of the strides that are larger than a dense block of elements. Arrays without
/// such a period count as overlapping.
fn overlap(a: &Tensor<'_, '_>, b: &Tensor<'_, '_>) -> bool {
    let ((a_first, a_end), (b_first, b_end)) = (a.range(), b.range());
    if a_first >= b_end || b_first >= a_end || a_first == a_end || b_first == b_end {
        return false;
    }
    let (a_block, a_period) = block(a);
    let (b_block, b_period) = block(b);
    let period = gcd(a_period, b_period);
    if period == 0 || a_block > period || b_block > period {
        return true;
    }
    let distance = (b_first % period + period - a_first % period) % period;
    distance < a_block || distance + b_block > period
}

/// The bytes of the dense block at an array's start, and the greatest common divisor of its other
/// strides; 0 if it has none.
fn block(array: &Tensor<'_, '_>) -> (usize, usize) {
    let mut dimensions: Dims = (0..array.shape.len()).filter(|&d| array.shape[d] > 1).collect();
    dimensions.sort_unstable_by_key(|&d| array.strides[d]);
    let (mut block, mut period) = (1, 0);
    for &dimension in &dimensions {
        if period == 0 && array.strides[dimension] <= block {
            block += (array.shape[dimension] - 1) * array.strides[dimension];
        } else {
            period = gcd(period, array.strides[dimension]);
        }
    }
    let size = array.data_type.size();
    (block * size, period * size)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
