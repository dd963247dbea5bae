//! Masks for attention to a cache. The array has an element for each key, the library's tensor one for each key that
//! the cache has room for.

use norm_rs::primitive::Arg;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::attention_arguments::{Bound4, mask4};
use crate::tensor::{Dims, Tensor, tuple};

/// A mask whose last dimension is that of the cache, and its memory.
pub(crate) type Padded<'a, 'py> = (Bound4<'a, 'py>, Vec<u64>);

/// The mask of sequences with up to `tokens` tokens. Keys beyond those of the array do not exist, so their
/// elements do not matter.
pub(crate) fn mask_of_cache<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    scores: [usize; 4],
    tokens: usize,
) -> PyResult<Padded<'a, 'py>> {
    let tensor = Tensor::read_mask("mask", object)?;
    let keys = tensor.shape.last().copied().unwrap_or(1);
    let room = scores[3];
    if keys == room || keys == 1 && tokens <= 1 {
        return Ok((mask4(object, scores)?, Vec::new()));
    }
    if keys != 1 && (keys < tokens || keys > room) {
        return Err(PyValueError::new_err(format!(
            "mask has the shape {}, but the sequences have up to {tokens} tokens: pass one element for each, at most {room}, \
             or 1",
            tuple(&tensor.shape)
        )));
    }
    // Checks types and the other sizes.
    let [batch, heads, queries, _] = scores;
    let mut mask = mask4(object, [batch, heads, queries, keys])?;
    if keys == 1 {
        return Ok((mask, Vec::new()));
    }
    let size = mask.tensor.data_type.size();
    let rows: usize = mask.dims[..3].iter().product();
    let mut memory = vec![0u64; (rows * room * size).div_ceil(size_of::<u64>())];
    let start = memory.as_mut_ptr().cast::<u8>();
    for row in 0..rows {
        let (mut rest, mut from) = (row, 0);
        for dim in (0..3).rev() {
            from += rest % mask.dims[dim] * mask.strides[dim];
            rest /= mask.dims[dim];
        }
        for key in 0..keys {
            let at = (from + key * mask.strides[3]) * size;
            // SAFETY: the array has these elements, and the memory has room for `room` keys of each row.
            unsafe {
                let to = start.add((row * room + key) * size);
                mask.tensor.data.add(at).copy_to_nonoverlapping(to, size);
            }
        }
    }
    let shape: Dims = [mask.dims[0], mask.dims[1], mask.dims[2], room].into_iter().collect();
    let strides = [step_of(&shape, 1), step_of(&shape, 2), room, 1];
    (mask.tensor.shape, mask.tensor.strides) = (shape, strides.into_iter().collect());
    mask.tensor.data = start;
    Ok((Bound4::new(Arg::AttnMask, mask.tensor), memory))
}

/// The stride of dimension `dim - 1` in row-major order.
fn step_of(shape: &Dims, dim: usize) -> usize {
    shape[dim..].iter().product()
}
