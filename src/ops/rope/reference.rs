//! The formula as plain loops over scalars, for any layout and types, with the bits of the vector implementations.

use super::angles::{self, Angles};
use super::kernel::kept_excess;
use super::norm::{PlainHead, normalize};
use super::positions::slot;
use super::problem::{MOST_SECTIONS, Pairing, Rope};
use crate::error::Result;
use crate::heap::{Counted, LINE, counted};
use crate::primitive::{Execution, Implementation, Padding, Variant};
use crate::rows::{Neutral, Parameter, PlainRow, PlainTensor};
use crate::simd::Level;
use crate::simd::portable::Portable;
use crate::tensor::DataType;
use norm_sys as sys;

/// Supports every problem.
pub(super) fn make(
    problem: &Rope,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let [input, output] = problem.ids().map(|id| problem.desc(id));
    let scale_type = problem.norm.and_then(|norm| norm.scale).unwrap_or(DataType::F32);
    let neutral = Some(Neutral::One);
    Ok(counted(Reference {
        variant,
        problem: problem.try_clone()?,
        input: PlainTensor::new(input)?,
        output: PlainTensor::new(output)?,
        padding: Padding::of(output)?,
        scale: Parameter::new(Level::Portable, problem.cols(), scale_type, neutral)
            .plus_one(problem.norm.is_some_and(|norm| norm.plus_one)),
    })?)
}

struct Reference {
    variant: &'static Variant,
    problem: Rope,
    input: PlainTensor,
    output: PlainTensor,
    padding: Padding,
    scale: Parameter,
}

impl Reference {
    /// Bytes of the scale, of a head's values, and of a token's angles.
    fn rooms(&self) -> [usize; 3] {
        let floats = |count: usize| (count * size_of::<f32>()).next_multiple_of(LINE);
        let scaled = self.problem.norm.is_some_and(|norm| norm.scale.is_some());
        let scale = if self.problem.norm.is_some() { self.scale.room(scaled) } else { 0 };
        [scale, floats(self.problem.cols()), floats(2 * angles::width(&self.problem))]
    }

    /// Reads the values of a head and normalizes them if the problem has a normalization.
    fn read(&self, from: PlainRow<'_>, scale: *const f32, values: &mut [f32]) {
        let problem = &self.problem;
        let Some(norm) = &problem.norm else {
            for (col, value) in values.iter_mut().enumerate() {
                *value = from.get(col);
            }
            return;
        };
        let output_type = problem.desc(problem.ids()[1]).data_type();
        let rounded = output_type.filter(|_| norm.rounded);
        let head = PlainHead { get: &|col| from.get(col), scale, rounded };
        // SAFETY: the scale is as long as a head.
        unsafe { normalize(&head, norm, values) };
    }

    /// Rotates values.
    fn rotate(&self, values: &mut [f32], angles: &[f32]) {
        let (problem, width) = (&self.problem, angles.len() / 2);
        let interleaved = problem.pairing == Pairing::Interleaved;
        let kept = problem.desc(problem.ids()[1]).data_type().map_or(0, kept_excess);
        for pair in 0..problem.rotary_dims / 2 {
            let (first, second, at) = if interleaved {
                (2 * pair, 2 * pair + 1, 2 * pair + 1)
            } else {
                (pair, pair + problem.distance(), pair)
            };
            let (cos, sin) = (angles[at], angles[width + at]);
            let (a, b) = (values[first], values[second]);
            values[first] = turned((a, cos), (-b, sin), kept);
            values[second] = turned((b, cos), (a, sin), kept);
        }
    }
}

/// The corrected sum of two products, as the kernels compute it.
fn turned((a, cos): (f32, f32), (b, sin): (f32, f32), kept: u32) -> f32 {
    let value = a * cos;
    let excess = (-a).mul_add(cos, value);
    b.mul_add(sin, value) - f32::from_bits(excess.to_bits() & kept)
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        self.rooms().iter().sum()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let problem = &self.problem;
        let (plan, address) = (&problem.plan, |id| execution.arguments.get(id));
        let [input, output] = problem.ids().map(address);
        let [scale_room, values_room, _] = self.rooms();
        let scale = address(sys::NORM_ARG_SCALE);
        let values_at = execution.scratchpad.wrapping_add(scale_room);
        let angles_at = values_at.wrapping_add(values_room).cast::<f32>();
        let positions = problem.positions(address(sys::NORM_ARG_POSITIONS));
        let tables = [sys::NORM_ARG_ROPE_COS, sys::NORM_ARG_ROPE_SIN];
        let tables = tables.map(|id| address(id).cast_const());
        let frequencies = address(sys::NORM_ARG_ROPE_FREQUENCIES);
        let source = Angles::new(problem, false, frequencies, tables);
        // SAFETY: the execution's buffers were checked, and the scratchpad has this room.
        let (scale, values, angles) = unsafe {
            self.padding.clear(output);
            angles_at.write_bytes(0, 2 * source.width);
            values_at.write_bytes(0, problem.cols() * size_of::<f32>());
            (
                if problem.norm.is_some() {
                    self.scale.get(scale, execution.scratchpad)
                } else {
                    std::ptr::null()
                },
                std::slice::from_raw_parts_mut(values_at.cast::<f32>(), problem.cols()),
                std::slice::from_raw_parts_mut(angles_at, 2 * source.width),
            )
        };
        // The positions of tokens without heads were not checked.
        let tokens = if plan.heads == 0 { 0 } else { plan.tokens };
        for token in 0..tokens {
            let mut parts = [0; MOST_SECTIONS];
            for (part, position) in parts.iter_mut().enumerate().take(positions.parts) {
                // SAFETY: the execution's buffers were checked.
                *position = unsafe { positions.get(token, part) };
            }
            // SAFETY: as above; every machine has the level.
            unsafe {
                angles::fill::<Portable>(&source, parts.as_ptr(), 1, angles.as_mut_ptr());
            }
            let place = match plan.slots {
                None => Some(token),
                // SAFETY: as above.
                Some(_) => unsafe { slot(address(sys::NORM_ARG_SLOTS), token) },
            };
            for head in (0..plan.heads).filter(|_| place.is_some()) {
                let rows = &plan.input_rows;
                let from = rows.tokens.offset(token) + rows.heads.offset(head);
                let rows = &plan.output_rows;
                let to = rows.tokens.offset(place.unwrap_or(0)) + rows.heads.offset(head);
                // SAFETY: as above, and there is one thread.
                let (from, to) =
                    unsafe { (self.input.row(input, from), self.output.row(output, to)) };
                self.read(from, scale, values);
                self.rotate(values, angles);
                for (col, value) in values.iter().enumerate() {
                    to.set(col, *value);
                }
            }
        }
        1
    }
}
