//! The formula as plain loops over scalars, for any layout and types, with the bits of the vector implementations.

use super::forward::mean;
use super::kernel::larger;
use super::order::plain_product;
use super::plain::{Plain, PlainScores, Row, of_head, one, rounded};
use super::problem::Sdpa;
use super::sequences::Sequences;
use super::{BLOCK, plain_backward};
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Arguments, Execution, Implementation, Padding, Variant};
use crate::simd::{LANES, math};
use norm_sys as sys;
use std::ops::Range;

/// Supports every problem.
pub(super) fn make(
    problem: &Sdpa,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    if !problem.prop_kind.is_forward() {
        return plain_backward::make(problem, variant);
    }
    Ok(counted(Reference {
        variant,
        scores: PlainScores::new(problem)?,
        values: Plain::required(problem, sys::NORM_ARG_VALUES)?,
        value_scales: Plain::new(problem, sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_VALUES)?,
        dst: Plain::required(problem, sys::NORM_ARG_DST)?,
        padding: Padding::of(problem.desc(sys::NORM_ARG_DST))?,
    })?)
}

struct Reference {
    variant: &'static Variant,
    scores: PlainScores,
    values: Plain,
    value_scales: Option<Plain>,
    dst: Plain,
    padding: Padding,
}

/// The state of a row: the largest score, and the sums of weights, of the weights of keys, and of weights times
/// distances.
#[derive(Clone, Copy)]
struct Sums {
    max: f32,
    sum: f32,
    keys: f32,
    moment: f32,
}

impl Implementation for Reference {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// Bytes of the scratchpad: the values of a row, and the entropies of a head.
    fn scratchpad_size(&self) -> usize {
        let shape = &self.scores.problem.shape;
        (2 * shape.value_size + shape.queries) * size_of::<f32>()
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let (shape, arguments) = (&self.scores.problem.shape, execution.arguments);
        if self.scores.problem.is_empty() {
            return 1;
        }
        let sequences = Sequences::new(&self.scores.problem, arguments);
        let room = execution.scratchpad.cast::<f32>();
        // SAFETY: the execution's buffers were checked, the scratchpad has this size, and there is one thread.
        unsafe {
            self.padding.clear(arguments.get(sys::NORM_ARG_DST));
            room.write_bytes(0, 2 * shape.value_size + shape.queries);
            let sums = std::slice::from_raw_parts_mut(room, shape.value_size);
            let block = room.add(shape.value_size);
            let block = std::slice::from_raw_parts_mut(block, shape.value_size);
            let entropies = room.add(2 * shape.value_size);
            let entropies = std::slice::from_raw_parts_mut(entropies, shape.queries);
            for sequence in 0..shape.batch {
                for head in 0..shape.heads {
                    for (query, entropy) in entropies.iter_mut().enumerate() {
                        let row = Row { sequence, head, query };
                        *entropy = self.row(arguments, &sequences, row, (sums, block));
                    }
                    let to = arguments.get(sys::NORM_ARG_ENTROPY).cast::<f32>();
                    if !to.is_null() {
                        let (queries, _) = sequences.lengths(sequence);
                        let to = to.add(sequence * shape.heads + head);
                        to.write_unaligned(mean(&entropies[..queries]));
                    }
                }
            }
        }
        1
    }
}

/// The sum of 16 lanes, by halves.
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

impl Reference {
    /// Computes a row of dst and its logarithm. Returns its entropy.
    ///
    /// # Safety
    /// The arguments were checked, and no other thread writes the row.
    unsafe fn row(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        row: Row,
        (sums, block): (&mut [f32], &mut [f32]),
    ) -> f32 {
        let problem = &self.scores.problem;
        let Row { sequence, head, query } = row;
        sums.fill(0.0);
        let mut all = Sums { max: f32::NEG_INFINITY, sum: 0.0, keys: 0.0, moment: 0.0 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let lengths = sequences.lengths(sequence);
            if query >= sequences.stored_queries(lengths.0) {
                return 0.0;
            }
            if query < lengths.0 {
                if let Some(sink) = of_head(arguments, sys::NORM_ARG_SINKS, head) {
                    all = Sums { max: sink, sum: 1.0, ..all };
                }
                let seen = problem.masking.seen(query, lengths);
                for first in (0..lengths.1).step_by(BLOCK) {
                    let keys = first..lengths.1.min(first + BLOCK);
                    if keys.clone().any(&seen) {
                        let of_block = (row, keys, &seen as &dyn Fn(usize) -> bool);
                        self.block(arguments, sequences, of_block, (&mut all, sums, block));
                    }
                }
            }
            let reciprocal = if all.sum == 0.0 { 0.0 } else { 1.0 / all.sum };
            for (col, sum) in sums.iter().enumerate() {
                self.dst.set(arguments, [sequence, head, query, col], (sum + 0.0) * reciprocal);
            }
            let log = one(math::log, all.sum);
            let workspace = arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
            if !workspace.is_null() {
                let at = sequences.row(sequence, head, query);
                let logarithm = if all.sum == 0.0 { f32::NEG_INFINITY } else { all.max + log };
                workspace.add(at).write_unaligned(logarithm);
            }
            if all.sum == 0.0 { 0.0 } else { all.keys.mul_add(log, -all.moment) / all.sum }
        }
    }

    /// Adds a block of keys to the sums of a row.
    ///
    /// # Safety
    /// As [`row`](Self::row).
    unsafe fn block(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        (row, keys, seen): (Row, Range<usize>, &dyn Fn(usize) -> bool),
        (all, sums, block): (&mut Sums, &mut [f32], &mut [f32]),
    ) {
        let (problem, shape) = (&self.scores.problem, &self.scores.problem.shape);
        let group = row.head / shape.heads_of_group();
        let (first, count) = (keys.start, keys.len());
        let mut weights = [f32::NEG_INFINITY; BLOCK];
        // SAFETY: guaranteed by the caller.
        unsafe {
            for key in keys.filter(|key| seen(*key)) {
                (weights[key - first], _) = self.scores.score(arguments, sequences, row, key);
            }
            let max = weights.iter().fold(f32::NEG_INFINITY, |max, s| larger(*s, max));
            let from = if max == f32::NEG_INFINITY { 0.0 } else { max };
            let (mut sum, mut moment) = ([0.0f32; LANES], [0.0f32; LANES]);
            for (key, s) in weights.iter_mut().enumerate() {
                let x = *s - from;
                let p = one(math::weight, x);
                sum[key % LANES] += p;
                let bounded = if x < -30.0 { -30.0 } else { x };
                moment[key % LANES] = p.mul_add(bounded, moment[key % LANES]);
                *s = p;
            }
            let found = Sums { max, sum: total(sum), keys: total(sum), moment: total(moment) };
            if found.sum == 0.0 {
                return;
            }
            let mut values = [None; BLOCK];
            for (key, p) in weights.iter_mut().enumerate().filter(|(_, p)| **p != 0.0) {
                let (page, place) = sequences.page_of(row.sequence, first + key);
                let index = [page, group, place, 0];
                if let Some(scales) = &self.value_scales {
                    *p *= scales.get(arguments, index);
                }
                *p = rounded(problem.is_bf16(), *p);
                values[key] = Some(self.values.line(arguments, index, 3));
            }
            for (col, sum) in block.iter_mut().enumerate() {
                *sum = plain_product::<true>(problem.is_bf16(), count, |key| match values[key] {
                    Some(value) if weights[key] != 0.0 => (weights[key], value.get(col)),
                    _ => (0.0, 0.0),
                });
            }
            join(all, &found, sums, block);
        }
    }
}

/// Joins a block with the previous ones.
fn join(all: &mut Sums, found: &Sums, sums: &mut [f32], block: &[f32]) {
    let max = larger(all.max, found.max);
    let factor = |state: &Sums| one(math::weight, state.max - max);
    let (before, after) = (factor(all), factor(found));
    let join = |a: f32, b: f32| b.mul_add(after, a * before);
    let moment = |state: &Sums, factor: f32| match factor {
        0.0 => 0.0,
        _ => state.keys.mul_add(state.max - max, state.moment),
    };
    let moment = join(moment(all, before), moment(found, after));
    for (sum, value) in sums.iter_mut().zip(block) {
        *sum = join(*sum, *value);
    }
    *all = Sums { max, sum: join(all.sum, found.sum), keys: join(all.keys, found.keys), moment };
}
