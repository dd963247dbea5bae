//! Backward as plain loops over scalars, for any layout and types, with the bits of the vector implementations.

use super::BLOCK;
use super::backward::add_sinks;
use super::gradient::QUERIES;
use super::order::plain_product;
use super::plain::{Plain, PlainScores, Row, of_head, one, rounded};
use super::problem::Sdpa;
use super::sequences::Sequences;
use crate::error::Result;
use crate::heap::{Counted, counted};
use crate::primitive::{Arguments, Execution, Implementation, Padding, Variant};
use crate::rows::plain_fold;
use crate::simd::math;
use norm_sys as sys;
use std::ops::Range;

/// The arguments of the gradients.
const GRADIENTS: [i32; 4] = [
    sys::NORM_ARG_DIFF_QUERIES,
    sys::NORM_ARG_DIFF_KEYS,
    sys::NORM_ARG_DIFF_VALUES,
    sys::NORM_ARG_DIFF_ATTN_MASK,
];

pub(super) fn make(
    problem: &Sdpa,
    variant: &'static Variant,
) -> Result<Box<Counted<dyn Implementation>>> {
    let gradient = |id| Plain::required(problem, id);
    let padding = |id| Padding::of(problem.desc(id));
    let [queries, keys, values, mask] = GRADIENTS;
    Ok(counted(PlainBackward {
        variant,
        scores: PlainScores::new(problem)?,
        values: Plain::required(problem, sys::NORM_ARG_VALUES)?,
        dst: Plain::required(problem, sys::NORM_ARG_DST)?,
        diff_dst: Plain::required(problem, sys::NORM_ARG_DIFF_DST)?,
        diff_queries: gradient(queries)?,
        diff_keys: gradient(keys)?,
        diff_values: gradient(values)?,
        diff_mask: Plain::new(problem, sys::NORM_ARG_DIFF_ATTN_MASK)?,
        paddings: [padding(queries)?, padding(keys)?, padding(values)?, padding(mask)?],
    })?)
}

struct PlainBackward {
    variant: &'static Variant,
    scores: PlainScores,
    values: Plain,
    dst: Plain,
    diff_dst: Plain,
    diff_queries: Plain,
    diff_keys: Plain,
    diff_values: Plain,
    diff_mask: Option<Plain>,
    paddings: [Padding; 4],
}

/// The buffers of an execution.
struct Room<'a> {
    weights: &'a mut [f32],
    diff_scores: &'a mut [f32],
    deltas: &'a mut [f32],
    diff_queries: &'a mut [f32],
    diff_keys: &'a mut [f32],
    diff_values: &'a mut [f32],
    /// The sums of the mask's gradient.
    diff_mask: &'a mut [f64],
}

impl PlainBackward {
    /// The sizes of the buffers, in elements.
    fn sizes(&self) -> [usize; 6] {
        let shape = &self.scores.problem.shape;
        [
            QUERIES * BLOCK,
            QUERIES * BLOCK,
            QUERIES,
            QUERIES * shape.key_size,
            shape.keys.saturating_mul(shape.key_size),
            shape.keys.saturating_mul(shape.value_size),
        ]
    }

    /// The size of the mask's gradient, in elements.
    fn mask_size(&self) -> usize {
        let dims = self.scores.problem.desc(sys::NORM_ARG_DIFF_ATTN_MASK).dims();
        let size = dims.iter().fold(1usize, |size, dim| size.saturating_mul(*dim as usize));
        if dims.is_empty() { 0 } else { size }
    }

    fn sinks(&self) -> usize {
        let shape = &self.scores.problem.shape;
        shape.batch * shape.heads
    }
}

impl Implementation for PlainBackward {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        let floats = self.sizes().iter().fold(0usize, |sum, size| sum.saturating_add(*size));
        let doubles = self.mask_size().saturating_add(self.sinks());
        floats
            .saturating_mul(size_of::<f32>())
            .saturating_add(doubles.saturating_mul(size_of::<f64>()))
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let (shape, arguments) = (&self.scores.problem.shape, execution.arguments);
        if self.scores.problem.is_empty() {
            return 1;
        }
        let sequences = Sequences::new(&self.scores.problem, arguments);
        let parts = execution.scratchpad.cast::<f64>();
        let mask_sums = parts.wrapping_add(self.sinks());
        let mut at = mask_sums.wrapping_add(self.mask_size()).cast::<f32>();
        let mut next = |size: usize| {
            let start = at;
            at = at.wrapping_add(size);
            // SAFETY: the scratchpad has room for them, and there is one thread.
            unsafe {
                start.write_bytes(0, size);
                std::slice::from_raw_parts_mut(start, size)
            }
        };
        let [weights, diff_scores, deltas, diff_queries, diff_keys, diff_values] =
            self.sizes().map(&mut next);
        // SAFETY: as above.
        let diff_mask = unsafe {
            mask_sums.write_bytes(0, self.mask_size());
            std::slice::from_raw_parts_mut(mask_sums, self.mask_size())
        };
        let mut room =
            Room { weights, diff_scores, deltas, diff_queries, diff_keys, diff_values, diff_mask };
        // SAFETY: the execution's buffers were checked, and there is one thread.
        unsafe {
            for (padding, id) in self.paddings.iter().zip(GRADIENTS) {
                padding.clear(arguments.get(id));
            }
            for sequence in 0..shape.batch {
                for group in 0..shape.groups {
                    self.group(arguments, &sequences, (sequence, group), &mut room, parts);
                }
            }
            if let Some(mask) = &self.diff_mask {
                mask.set_all(arguments, room.diff_mask);
            }
            let to = arguments.get(sys::NORM_ARG_DIFF_SINKS).cast::<f32>();
            if !to.is_null() {
                add_sinks(parts, (shape.batch, shape.heads), to);
            }
        }
        1
    }
}

impl PlainBackward {
    /// # Safety
    /// The arguments were checked, and no other thread writes the gradients.
    unsafe fn group(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        (sequence, group): (usize, usize),
        room: &mut Room<'_>,
        parts: *mut f64,
    ) {
        let shape = &self.scores.problem.shape;
        let scale = self.scores.problem.scoring.scale;
        room.diff_keys.fill(0.0);
        room.diff_values.fill(0.0);
        let heads = shape.heads_of_group();
        // SAFETY: guaranteed by the caller.
        unsafe {
            for head in group * heads..(group + 1) * heads {
                let mut of_sink = 0.0;
                for first in (0..shape.queries).step_by(QUERIES) {
                    let queries = first..shape.queries.min(first + QUERIES);
                    let place = (sequence, head, group);
                    self.queries(arguments, sequences, (place, queries), room, &mut of_sink);
                }
                parts.add(sequence * shape.heads + head).write(of_sink);
            }
            let (_, length) = sequences.lengths(sequence);
            for key in 0..sequences.stored_keys(length) {
                for d in 0..shape.key_size {
                    let value = room.diff_keys[key * shape.key_size + d] * scale;
                    self.diff_keys.set(arguments, [sequence, group, d, key], value);
                }
                for e in 0..shape.value_size {
                    let value = room.diff_values[key * shape.value_size + e];
                    self.diff_values.set(arguments, [sequence, group, key, e], value);
                }
            }
        }
    }

    /// Computes the gradients of a block of queries and stores all of them.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn queries(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        ((sequence, head, group), queries): ((usize, usize, usize), Range<usize>),
        room: &mut Room<'_>,
        of_sink: &mut f64,
    ) {
        let problem = &self.scores.problem;
        let shape = &problem.shape;
        room.diff_queries.fill(0.0);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let lengths = sequences.lengths(sequence);
            let there = queries.start..queries.end.min(lengths.0).max(queries.start);
            for query in there.clone() {
                let index = [sequence, head, query, 0];
                let diff_dst = self.diff_dst.line(arguments, index, 3);
                let dst = self.dst.line(arguments, index, 3);
                let delta = plain_fold(shape.value_size, |e| (diff_dst.get(e), dst.get(e))) as f32;
                room.deltas[query - queries.start] = delta;
                let sink = of_head(arguments, sys::NORM_ARG_SINKS, head);
                // The logarithm of a row that sees neither keys nor a sink is -Inf, too.
                if let Some(sink) = sink.filter(|sink| *sink != f32::NEG_INFINITY) {
                    let row = Row { sequence, head, query };
                    let weight = one(math::exp, sink - self.logarithm(arguments, sequences, row));
                    *of_sink += f64::from(weight * delta);
                }
            }
            let seen =
                |key: &usize| there.clone().any(|query| problem.masking.seen(query, lengths)(*key));
            for first in (0..lengths.1).step_by(BLOCK) {
                let Some(last) = (first..lengths.1.min(first + BLOCK)).rfind(seen) else {
                    continue;
                };
                let keys = first..last + 1;
                let place = (sequence, head, group);
                self.pairs(arguments, sequences, (place, there.clone(), keys), room);
            }
            let stored = sequences.stored_queries(lengths.0);
            for query in queries.clone().take_while(|query| *query < stored) {
                for d in 0..shape.key_size {
                    let sum = room.diff_queries[(query - queries.start) * shape.key_size + d];
                    let value = sum * problem.scoring.scale;
                    self.diff_queries.set(arguments, [sequence, head, query, d], value);
                }
            }
        }
    }

    /// The logarithm that forward stored.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn logarithm(&self, arguments: &Arguments, sequences: &Sequences, row: Row) -> f32 {
        let workspace = arguments.get(sys::NORM_ARG_WORKSPACE).cast::<f32>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let at = sequences.row(row.sequence, row.head, row.query);
            workspace.add(at).read_unaligned()
        }
    }

    /// A block of queries against a block of keys.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn pairs(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        ((sequence, head, group), queries, keys): (
            (usize, usize, usize),
            Range<usize>,
            Range<usize>,
        ),
        room: &mut Room<'_>,
    ) {
        let problem = &self.scores.problem;
        let (shape, is_bf16) = (&problem.shape, problem.is_bf16());
        let (key_size, value_size) = (shape.key_size, shape.value_size);
        let (first, count) = (keys.start, keys.len());
        // SAFETY: guaranteed by the caller.
        unsafe {
            for query in queries.clone() {
                let row = Row { sequence, head, query };
                self.weigh(arguments, sequences, (row, group, queries.start), keys.clone(), room);
            }
            let at = |query: usize, key: usize| query * BLOCK + key;
            for query in 0..queries.len() {
                for d in 0..key_size {
                    let keys = self.scores.keys.line(arguments, [sequence, group, d, first], 3);
                    room.diff_queries[query * key_size + d] +=
                        plain_product::<true>(is_bf16, count, |key| {
                            factors(room.diff_scores[at(query, key)], || keys.get(key))
                        });
                }
            }
            let index = |col| [sequence, head, queries.start, col];
            for key in 0..count {
                for e in 0..value_size {
                    let diff_dst = self.diff_dst.line(arguments, index(e), 2);
                    room.diff_values[(first + key) * value_size + e] +=
                        plain_product::<true>(is_bf16, queries.len(), |query| {
                            factors(room.weights[at(query, key)], || diff_dst.get(query))
                        });
                }
                for d in 0..key_size {
                    let values = self.scores.queries.line(arguments, index(d), 2);
                    room.diff_keys[(first + key) * key_size + d] +=
                        plain_product::<true>(is_bf16, queries.len(), |query| {
                            factors(room.diff_scores[at(query, key)], || values.get(query))
                        });
                }
            }
        }
    }

    /// The weights and dS of a row.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    unsafe fn weigh(
        &self,
        arguments: &Arguments,
        sequences: &Sequences,
        (row, group, first_query): (Row, usize, usize),
        keys: Range<usize>,
        room: &mut Room<'_>,
    ) {
        let problem = &self.scores.problem;
        let is_bf16 = problem.is_bf16();
        let Row { sequence, head, query } = row;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let seen = problem.masking.seen(query, sequences.lengths(sequence));
            let logarithm = self.logarithm(arguments, sequences, row);
            let delta = room.deltas[query - first_query];
            let diff_dst = self.diff_dst.line(arguments, [sequence, head, query, 0], 3);
            for key in keys.clone() {
                let at = (query - first_query) * BLOCK + (key - keys.start);
                (room.weights[at], room.diff_scores[at]) = (0.0, 0.0);
                if !seen(key) {
                    continue;
                }
                let (s, slope) = self.scores.score(arguments, sequences, row, key);
                let p = if s == f32::NEG_INFINITY { 0.0 } else { one(math::weight, s - logarithm) };
                let values = self.values.line(arguments, [sequence, group, key, 0], 3);
                let dot = plain_product::<false>(is_bf16, problem.shape.value_size, |e| {
                    (diff_dst.get(e), values.get(e))
                });
                let ds = p * (dot - delta);
                if let Some(mask) = &self.diff_mask {
                    let own = if p == 0.0 { 0.0 } else { ds };
                    room.diff_mask[mask.dense([sequence, head, query, key])] += f64::from(own);
                }
                let ds = if problem.scoring.soft_cap > 0.0 { ds * slope } else { ds };
                let ds = if p == 0.0 { 0.0 } else { ds };
                room.weights[at] = rounded(is_bf16, p);
                room.diff_scores[at] = rounded(is_bf16, ds);
            }
        }
    }
}

/// The factors of a term. The right one is not read if the left one is 0.
fn factors(left: f32, right: impl Fn() -> f32) -> (f32, f32) {
    (left, if left == 0.0 { 0.0 } else { right() })
}
