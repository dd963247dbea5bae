//! Tensors that post-operations read: where the elements of a row are, as f32.

use crate::error::Result;
use crate::simd::{Bf16, Element, F16, Simd, Widened, entry_points, map, read_scalar};
use crate::tensor::{DataType, DimOffsets, MAX_NDIMS, MemoryDesc, Offsets, RowMap, for_type};
use arrayvec::ArrayVec;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// The maximum number of inputs of a chain.
pub(crate) const INPUTS: usize = 3;

/// A tensor that a step reads, broadcast to the shape of the output.
pub(super) struct Operand {
    pub(super) argument: i32,
    pub(super) data_type: DataType,
    place: Place,
    /// Whether it has a single element.
    pub(super) single: bool,
}

/// An operand of a step besides its chunk.
pub(super) enum Source {
    /// An input of the chain, already f32.
    Input(usize),
    Tensor(Operand),
}

impl Source {
    /// The tensor, unless it is an input of the chain.
    pub(super) fn tensor(&self) -> Option<&Operand> {
        match self {
            Self::Input(_) => None,
            Self::Tensor(operand) => Some(operand),
        }
    }

    /// The elements of a row from `col` on, as f32: in place if possible, otherwise copied to `to`.
    ///
    /// # Safety
    /// As [`Operand::read`]; the inputs are those of the elements.
    #[inline(always)]
    pub(super) unsafe fn read<S: Simd>(
        &self,
        inputs: &[*mut f32; INPUTS],
        start: *const u8,
        at: (usize, usize),
        to: &mut [MaybeUninit<f32>],
    ) -> *const f32 {
        match self {
            Self::Input(input) => inputs[*input],
            // SAFETY: guaranteed by the caller.
            Self::Tensor(operand) => unsafe { operand.read::<S>(start, at, to) },
        }
    }
}

/// The location of a row's elements.
enum Place {
    /// Rows in an order chosen by the caller, with a constant stride within a row.
    Strided { rows: RowMap, step: usize },
    /// Rows in logical order, in any layout.
    Any { rows: Offsets, cols: DimOffsets },
}

impl Operand {
    /// An operand for an output of dimensions `dims`. Rows have the given order of the outer dimensions, or logical
    /// order.
    pub(super) fn new(
        argument: i32,
        desc: &MemoryDesc,
        data_type: DataType,
        dims: &[i64],
        order: Option<&[usize]>,
    ) -> Result<Self> {
        let place = match order {
            Some(order) => {
                let stride = |d: &usize| match desc.dims()[*d] {
                    1 => 0,
                    _ => desc.strides()[*d],
                };
                let sizes: ArrayVec<i64, MAX_NDIMS> = order.iter().map(|d| dims[*d]).collect();
                let strides: ArrayVec<i64, MAX_NDIMS> = order.iter().map(stride).collect();
                let rows = RowMap::new(&sizes, &strides);
                Place::Strided { rows, step: stride(&(dims.len() - 1)) as usize }
            }
            None => {
                let (rows, cols) = Offsets::of(desc)?.broadcast(dims).split_last();
                Place::Any { rows, cols }
            }
        };
        let single = desc.dims().iter().all(|dim| *dim == 1);
        Ok(Self { argument, data_type, place, single })
    }

    /// The offset of an element.
    #[inline(always)]
    pub(super) fn offset(&self, row: usize, col: usize) -> usize {
        match &self.place {
            Place::Strided { rows, step } => rows.offset(row) + col * step,
            Place::Any { rows, cols } => rows.offset(row) + cols.offset(col),
        }
    }

    /// Whether the elements of a row are contiguous.
    #[inline(always)]
    pub(super) fn is_dense(&self) -> bool {
        matches!(self.place, Place::Strided { step: 1, .. })
    }

    /// Elements `col` to `col + to.len() - 1` of a row, as f32: in place if possible, otherwise copied to `to`.
    ///
    /// # Safety
    /// The elements are readable, counted from `start`. The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn read<S: Simd>(
        &self,
        start: *const u8,
        (row, col): (usize, usize),
        to: &mut [MaybeUninit<f32>],
    ) -> *const f32 {
        if let (Place::Strided { rows, step: 1 }, DataType::F32) = (&self.place, self.data_type) {
            let there = start.cast::<f32>().wrapping_add(rows.offset(row) + col);
            if there.is_aligned() {
                return there;
            }
        }
        let entry = copy_entries::at(S::LEVEL).unwrap_or(copy_entries::portable::entry_portable);
        // Opaque, as in `eltwise`.
        let entry = black_box(entry);
        // SAFETY: guaranteed by the caller.
        unsafe { entry(self, start, (row, col), to) };
        to.as_ptr().cast()
    }
}

entry_points! {
    /// [`copy`], compiled separately from the chain, which reads operands in many places.
    mod copy_entries: copy<>(
        operand: &Operand, start: *const u8, at: (usize, usize), to: &mut [MaybeUninit<f32>]
    ) -> ();
}

/// Copies elements `col` to `col + to.len() - 1` of a row.
///
/// # Safety
/// As [`Operand::read`].
#[inline(always)]
unsafe fn copy<S: Simd>(
    operand: &Operand,
    start: *const u8,
    (row, col): (usize, usize),
    to: &mut [MaybeUninit<f32>],
) {
    let data_type = operand.data_type;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match &operand.place {
            Place::Strided { rows, step: 0 } => {
                let value = read_scalar(data_type, start, rows.offset(row));
                // Not `fill`, which may stay a call.
                for i in 0..to.len() {
                    to[i].write(value);
                }
            }
            Place::Strided { rows, step: 1 } => {
                let first = rows.offset(row) + col;
                match data_type {
                    DataType::Bf16 => widen::<S, Bf16>(data_type, start, first, to),
                    DataType::F16 => widen::<S, F16>(data_type, start, first, to),
                    _ => for_type!(data_type, |TYPE| for (i, to) in to.iter_mut().enumerate() {
                        to.write(read_scalar(TYPE, start, first + i));
                    }),
                }
            }
            Place::Strided { rows, step } => {
                let first = rows.offset(row) + col * step;
                for (i, to) in to.iter_mut().enumerate() {
                    to.write(read_scalar(data_type, start, first + i * step));
                }
            }
            Place::Any { rows, cols } => {
                let first = rows.offset(row);
                for (i, to) in to.iter_mut().enumerate() {
                    to.write(read_scalar(data_type, start, first + cols.offset(col + i)));
                }
            }
        }
    }
}

/// Converts adjacent elements from `first` on.
///
/// # Safety
/// As [`Operand::read`].
#[inline(always)]
unsafe fn widen<S: Simd, E: Element>(
    data_type: DataType,
    start: *const u8,
    first: usize,
    to: &mut [MaybeUninit<f32>],
) {
    let element = E::of(data_type);
    let from = start.wrapping_add(first * element.size());
    // SAFETY: guaranteed by the caller.
    unsafe { map::<S, _>(to.len(), &Widened { element, from, to: to.as_mut_ptr().cast() }) };
}
