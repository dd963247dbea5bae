//! The tensors and scores of the reference implementations: one element at a time, in any layout and type.

use super::order::plain_product;
use super::problem::Sdpa;
use super::sequences::{Sequences, integer};
use crate::error::{Error, Result};
use crate::primitive::Arguments;
use crate::rows::plain_map;
use crate::simd::lanes::Lanes;
use crate::simd::portable::Portable;
use crate::simd::{bf16_bits, math, read_scalar, write_scalar};
use crate::tensor::{DataType, DimOffsets, Offsets};
use norm_sys as sys;

/// A tensor of four dimensions, of any layout. Dimensions of 1 are broadcast.
pub(super) struct Plain {
    id: i32,
    data_type: DataType,
    offsets: Offsets,
    dims: [usize; 4],
    /// The argument with the first rows of packed sequences, and the dimension of rows.
    packed: Option<(i32, usize)>,
}

impl Plain {
    /// A tensor that every problem has.
    pub(super) fn required(problem: &Sdpa, id: i32) -> Result<Self> {
        let missing = || Error::invalid("a tensor is missing");
        Self::new(problem, id)?.ok_or_else(missing)
    }

    pub(super) fn new(problem: &Sdpa, id: i32) -> Result<Option<Self>> {
        let desc = problem.desc(id);
        let Some(data_type) = desc.data_type() else { return Ok(None) };
        let rows = if [sys::NORM_ARG_KEYS, sys::NORM_ARG_DIFF_KEYS].contains(&id) { 3 } else { 2 };
        let packed = problem.offsets_of(id).map(|offsets| (offsets, rows));
        let dims = [0, 1, 2, 3].map(|dim| desc.dims()[dim] as usize);
        let offsets = Offsets::of(desc)?.broadcast(desc.dims());
        Ok(Some(Self { id, data_type, offsets, dims, packed }))
    }

    /// The index of an element in row-major order.
    pub(super) fn dense(&self, index: [usize; 4]) -> usize {
        let dims = self.dims.iter().zip(index);
        dims.fold(0, |at, (dim, i)| at * dim + if *dim == 1 { 0 } else { i })
    }

    /// Writes all elements, from values in row-major order.
    ///
    /// # Safety
    /// As [`set`](Self::set).
    pub(super) unsafe fn set_all(&self, arguments: &Arguments, values: &[f64]) {
        for (at, value) in values.iter().enumerate() {
            let mut index = [0; 4];
            let mut rest = at;
            for dim in (0..4).rev() {
                (index[dim], rest) = (rest % self.dims[dim], rest / self.dims[dim]);
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.set(arguments, index, *value as f32) };
        }
    }

    /// The index in the memory, where packed sequences follow each other.
    ///
    /// # Safety
    /// The arguments were checked.
    unsafe fn stored(&self, arguments: &Arguments, mut index: [usize; 4]) -> [usize; 4] {
        if let Some((offsets, rows)) = self.packed {
            // SAFETY: guaranteed by the caller.
            let first = unsafe { integer(arguments.get(offsets).cast_const(), index[0]) };
            index[rows] += first as usize;
        }
        index
    }

    /// # Safety
    /// The arguments were checked.
    unsafe fn place(&self, arguments: &Arguments, index: [usize; 4]) -> usize {
        // SAFETY: guaranteed by the caller.
        let index = unsafe { self.stored(arguments, index) };
        (0..4).map(|dim| self.offsets.dim(dim).offset(index[dim])).sum()
    }

    /// The elements along a dimension, from the one at `index` on.
    ///
    /// # Safety
    /// The arguments were checked, and no other thread writes the elements while the line is used.
    pub(super) unsafe fn line(
        &self,
        arguments: &Arguments,
        index: [usize; 4],
        dim: usize,
    ) -> Line<'_> {
        let (start, along) = (arguments.get(self.id).cast_const(), self.offsets.dim(dim));
        // SAFETY: guaranteed by the caller.
        let index = unsafe { self.stored(arguments, index) };
        let others = (0..4).filter(|other| *other != dim);
        let place = others.map(|other| self.offsets.dim(other).offset(index[other])).sum();
        Line { start, place, along, first: index[dim], data_type: self.data_type }
    }

    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn get(&self, arguments: &Arguments, index: [usize; 4]) -> f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { read_scalar(self.data_type, arguments.get(self.id), self.place(arguments, index)) }
    }

    /// # Safety
    /// As [`get`](Self::get), and no other thread writes the element.
    pub(super) unsafe fn set(&self, arguments: &Arguments, index: [usize; 4], value: f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let place = self.place(arguments, index);
            write_scalar(self.data_type, arguments.get(self.id), place, value);
        }
    }
}

/// The elements of a tensor along one dimension.
#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    start: *const u8,
    place: usize,
    along: &'t DimOffsets,
    first: usize,
    data_type: DataType,
}

impl Line<'_> {
    #[inline]
    pub(super) fn get(self, at: usize) -> f32 {
        let place = self.place + self.along.offset(self.first + at);
        // SAFETY: guaranteed by the caller of `Plain::line`.
        unsafe { read_scalar(self.data_type, self.start, place) }
    }
}

/// A query of a head of a sequence.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) sequence: usize,
    pub(super) head: usize,
    pub(super) query: usize,
}

/// An elementary function of one number.
pub(super) fn one(f: fn(Lanes<Portable>) -> Lanes<Portable>, x: f32) -> f32 {
    let mut value = [x];
    plain_map(&mut value, f);
    value[0]
}

/// Rounds a number to bf16, if the problem has the order of bf16.
pub(super) fn rounded(is_bf16: bool, x: f32) -> f32 {
    if is_bf16 { f32::from_bits(u32::from(bf16_bits(x)) << 16) } else { x }
}

/// One number per head; `None` without the argument.
///
/// # Safety
/// The arguments were checked.
pub(super) unsafe fn of_head(arguments: &Arguments, id: i32, head: usize) -> Option<f32> {
    let start = arguments.get(id).cast_const().cast::<f32>();
    // SAFETY: guaranteed by the caller.
    (!start.is_null()).then(|| unsafe { start.add(head).read_unaligned() })
}

/// What scores are computed from.
pub(super) struct PlainScores {
    pub(super) problem: Sdpa,
    pub(super) queries: Plain,
    pub(super) keys: Plain,
    mask: Option<Plain>,
    key_scales: Option<Plain>,
}

impl PlainScores {
    pub(super) fn new(problem: &Sdpa) -> Result<Self> {
        Ok(Self {
            problem: problem.try_clone()?,
            queries: Plain::required(problem, sys::NORM_ARG_QUERIES)?,
            keys: Plain::required(problem, sys::NORM_ARG_KEYS)?,
            mask: Plain::new(problem, sys::NORM_ARG_ATTN_MASK)?,
            key_scales: Plain::new(problem, sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_KEYS)?,
        })
    }

    /// The score of a key that the query sees by its position, and the derivative of the soft cap.
    ///
    /// # Safety
    /// The arguments were checked.
    pub(super) unsafe fn score(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        row: Row,
        key: usize,
    ) -> (f32, f32) {
        let Self { problem, .. } = self;
        let Row { sequence, head, query } = row;
        let group = head / problem.shape.heads_of_group();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (page, place) = sequences.page_of(sequence, key);
            let queries = self.queries.line(arguments, [sequence, head, query, 0], 3);
            let keys = self.keys.line(arguments, [page, group, 0, place], 2);
            let dot = plain_product::<false>(problem.is_bf16(), problem.shape.key_size, |d| {
                (queries.get(d), keys.get(d))
            });
            let scale = self.key_scales.as_ref();
            let scale = scale.map(|scales| scales.get(arguments, [page, group, 0, place]));
            let dot = scale.map_or(dot, |scale| dot * scale);
            let mut s = dot * problem.scoring.scale;
            let cap = problem.scoring.soft_cap;
            let mut slope = 1.0;
            if cap > 0.0 {
                let t = one(math::tanh, s / cap);
                s = t * cap;
                slope = (-t).mul_add(t, 1.0);
            }
            if let Some(alibi) = of_head(arguments, sys::NORM_ARG_ALIBI_SLOPES, head) {
                let position = problem.masking.position(query, sequences.lengths(sequence));
                s += (key as i64).wrapping_sub(position) as i32 as f32 * alibi;
            }
            let Some(mask) = &self.mask else { return (s, slope) };
            let value = mask.get(arguments, [sequence, head, query, key]);
            let s = match mask.data_type {
                DataType::U8 if value == 0.0 => f32::NEG_INFINITY,
                DataType::U8 => s,
                _ if value == f32::NEG_INFINITY => value,
                _ => s + value,
            };
            (s, slope)
        }
    }
}
