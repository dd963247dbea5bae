//! Permutes weights from one pairing to another.

use super::problem::Pairing;
use crate::error::{Error, Result};
use crate::tensor::{DataType, MemoryDesc, Offsets};

/// The rows of a projection.
pub(crate) struct Permuted<'a> {
    pub(crate) from: Pairing,
    pub(crate) to: Pairing,
    pub(crate) heads: i64,
    pub(crate) rotary_dims: i64,
    pub(crate) src: (&'a MemoryDesc, *const u8),
    pub(crate) dst: (&'a MemoryDesc, *mut u8),
}

/// The row of a head that has element `part` (0 or 1) of a pair, or the `rest`th row outside the pairs.
fn place(pairing: Pairing, (pairs, head): (usize, usize), row: usize) -> usize {
    let (pair, part) = (row % pairs.max(1), row / pairs.max(1));
    if row < 2 * pairs {
        return match pairing {
            Pairing::Interleaved => 2 * pair + part,
            Pairing::HalfSplit => row,
            Pairing::HalfSplitOfHead => pair + part * (head / 2),
        };
    }
    match pairing {
        Pairing::Interleaved | Pairing::HalfSplit => row,
        // First the rest of the first half, then that of the second.
        Pairing::HalfSplitOfHead if row - pairs < head / 2 => row - pairs,
        Pairing::HalfSplitOfHead => row,
    }
}

/// Copies the rows.
///
/// # Safety
/// The buffers are as large as their descriptors.
pub(crate) unsafe fn permute(p: &Permuted<'_>) -> Result<()> {
    let ((src, from), (dst, to)) = (p.src, p.dst);
    if src.dims() != dst.dims() || src.data_type() != dst.data_type() {
        return Err(Error::invalid("dst: its dimensions and data type are not those of src"));
    }
    if src.is_blocked() || dst.is_blocked() || !(1..=2).contains(&src.ndims()) {
        return Err(Error::invalid("src: weights have one or two dimensions, with strides"));
    }
    dst.check_output("dst")?;
    let rows = src.dims()[0];
    if p.heads < 1 || rows % p.heads != 0 {
        return Err(Error::invalid(format_args!(
            "heads: {} do not divide the {rows} rows of src",
            p.heads
        )));
    }
    let head = rows / p.heads;
    if p.rotary_dims < 2 || p.rotary_dims % 2 != 0 || p.rotary_dims > head {
        return Err(Error::invalid(format_args!(
            "rotary_dims: {} is not an even number from 2 to the {head} rows of a head",
            p.rotary_dims
        )));
    }
    if head % 2 != 0 && [p.from, p.to].contains(&Pairing::HalfSplitOfHead) {
        let text =
            format_args!("heads: rope_half_split_of_head needs an even number of rows, not {head}");
        return Err(Error::invalid(text));
    }
    if from == to.cast_const() && src.size() > 0 {
        return Err(Error::invalid("dst: it shares a buffer with src"));
    }
    let size = src.data_type().map_or(0, DataType::size);
    let cols = src.dims().get(1).map_or(1, |cols| *cols as usize);
    let (inputs, outputs) = (Offsets::of(src)?, Offsets::of(dst)?);
    let (head, shape) = (head as usize, (p.rotary_dims as usize / 2, head as usize));
    for row in 0..rows as usize {
        let (start, row) = (row - row % head, row % head);
        let input = start + place(p.from, shape, row);
        let output = start + place(p.to, shape, row);
        for col in 0..cols {
            let (i, o) = (inputs.offset(input * cols + col), outputs.offset(output * cols + col));
            // SAFETY: guaranteed by the caller; the buffers differ.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    from.wrapping_add(i * size),
                    to.wrapping_add(o * size),
                    size,
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_place() {
        for (pairs, head) in [(4, 8), (2, 8), (3, 10), (1, 2), (32, 128)] {
            for pairing in [Pairing::Interleaved, Pairing::HalfSplit, Pairing::HalfSplitOfHead] {
                let mut taken = vec![false; head];
                for row in 0..head {
                    let at = place(pairing, (pairs, head), row);
                    assert!(!std::mem::replace(&mut taken[at], true), "{pairing:?} {row}");
                }
            }
        }
    }
}
