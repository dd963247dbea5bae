//! The tensors of elementwise primitives as rows, and the buffers of those that cannot be read in place.

use super::order::row_map;
use super::pack::{Entry, Packing};
use crate::primitive::{Ahead, INPUTS, InputRows};
use crate::simd::read_scalar;
use crate::tensor::{DataType, MemoryDesc, RowMap};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements in a unit that is computed in buffers.
pub(super) const BUFFERED: usize = 2048;
/// How far ahead of elements that are read in place others are prefetched, in bytes: the hardware prefetcher stops at
/// the end of a page.
const AHEAD: usize = 2048;

/// A buffer for a unit.
#[repr(C, align(64))]
pub(super) struct Buffer([MaybeUninit<f32>; BUFFERED]);

impl Buffer {
    pub(super) const EMPTY: Self = Self([const { MaybeUninit::uninit() }; BUFFERED]);

    pub(super) fn start(&mut self) -> *mut f32 {
        self.0.as_mut_ptr().cast()
    }
}

/// The buffers of a thread.
pub(super) struct Buffers {
    pub(super) inputs: [Buffer; INPUTS],
    pub(super) output: Buffer,
    /// For each input, the bits of the value that fills the start of its buffer, and how many times.
    pub(super) filled: [(u32, usize); INPUTS],
}

/// A tensor as rows.
pub(super) struct Side {
    pub(super) id: i32,
    pub(super) data_type: DataType,
    pub(super) rows: RowMap,
    /// The stride of the last dimension, in elements.
    pub(super) step: usize,
    /// Whether the chain multiplies it by a scale, which needs a buffer.
    pub(super) scaled: bool,
}

impl Side {
    pub(super) fn new(id: i32, desc: &MemoryDesc, order: &[usize], scaled: bool) -> Self {
        let last = desc.ndims() - 1;
        let is_one = desc.dims()[last] == 1;
        Self {
            id,
            data_type: desc.data_type().unwrap_or(DataType::F32),
            rows: row_map(desc, order),
            step: if is_one { 1 } else { desc.strides()[last] as usize },
            scaled,
        }
    }

    /// Whether rows at an address are dense f32, so that one row or, if they are evenly spaced, several are read in
    /// place.
    pub(super) fn is_direct(&self, address: *mut u8, one: bool) -> bool {
        self.data_type == DataType::F32
            && self.step == 1
            && !self.scaled
            && (one || self.rows.step().is_some())
            && address.cast::<f32>().is_aligned()
    }

    /// The address of an element, and the distance between rows, in elements.
    pub(super) fn place(&self, address: *mut u8, row: usize, col: usize) -> (*mut u8, usize) {
        let offset = (self.rows.offset(row) + col) * self.data_type.size();
        (address.wrapping_add(offset), self.rows.step().unwrap_or(0))
    }

    /// The rows in place.
    pub(super) fn in_place(&self, address: *mut u8, row: usize, col: usize) -> InputRows {
        let (start, step) = self.place(address, row, col);
        let ahead = self.ahead(start.wrapping_add(AHEAD));
        InputRows { start: start.cast(), step, ahead }
    }

    /// The elements from an address on.
    fn ahead(&self, start: *const u8) -> Ahead {
        Ahead { start, step: self.step * self.data_type.size() }
    }

    /// The address behind the elements of a unit, where the next unit of a dense tensor starts.
    fn next(&self, address: *mut u8, rows: &Range<usize>, cols: &Range<usize>) -> *const u8 {
        let (row, col) = match rows.len() {
            1 => (rows.start, cols.end),
            _ => (rows.end, cols.start),
        };
        let at = self.rows.offset(row) + col * self.step;
        address.wrapping_add(at * self.data_type.size()).cast_const()
    }

    pub(super) fn packing(
        &self,
        address: *mut u8,
        cols: &Range<usize>,
        stage: *mut f32,
    ) -> Packing {
        let first = address.wrapping_add(cols.start * self.step * self.data_type.size());
        let elements = (first, self.data_type, self.step);
        Packing { rows: self.rows, ..Packing::of_row(elements, cols.len(), stage) }
    }

    /// Rows of an input as f32 in a buffer.
    ///
    /// # Safety
    /// They are the elements of a unit of an execution whose buffers were checked.
    pub(super) unsafe fn packed(
        &self,
        pack: Entry,
        address: *mut u8,
        (buffer, filled): (&mut Buffer, &mut (u32, usize)),
        (rows, cols): (&Range<usize>, &Range<usize>),
    ) -> InputRows {
        let (start, len) = (buffer.start(), cols.len());
        let shared = self.rows.step() == Some(0) && !self.scaled;
        let last = if shared { rows.start + 1 } else { rows.end };
        let step = if shared { 0 } else { len };
        let ahead = self.ahead(self.next(address, rows, cols));
        if self.step > 0 {
            let packing = self.packing(address, cols, start);
            // SAFETY: guaranteed by the caller; the buffer has the elements of a unit.
            unsafe { pack(&packing, rows.start, last) };
            return InputRows { start, step, ahead };
        }
        for (at, row) in (rows.start..last).enumerate() {
            // SAFETY: guaranteed by the caller.
            let value = unsafe { read_scalar(self.data_type, address, self.rows.offset(row)) };
            let is_there = filled.0 == value.to_bits() && filled.1 >= len;
            if !(shared && is_there) {
                let to = &mut buffer.0[at * len..(at + 1) * len];
                to.fill(MaybeUninit::new(value));
            }
            *filled = if shared { (value.to_bits(), len.max(filled.1)) } else { (0, 0) };
        }
        InputRows { start, step, ahead }
    }
}
