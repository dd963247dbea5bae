//! What becomes of dst on its way through scales and post-ops: the oracle's chain for a problem.
//!
//! The normalized, scaled and shifted value times the scale of src, then the post-ops in their
//! order, then divided by the scale of dst; the type of dst rounds and saturates at the end.

use super::problem::Problem;
use crate::attributes::{AttributeTensor, PostOp, Source};
use crate::check::Kind;
use crate::fill::{self, DataType};
use crate::oracle::estimate::{Estimate, Step};
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use rayon::prelude::*;
use std::borrow::Cow;

/// Elements that one thread takes at a time.
const CHUNK: usize = 16 * 1024;

/// The tensors of the attributes and their values.
pub(super) fn operands(problem: &Problem) -> Vec<Vec<f64>> {
    problem.attribute_tensors().iter().map(fill::attribute).collect()
}

/// What dst holds before a problem that adds to it; empty if none does, and in place, where it is src.
pub(super) fn before(problem: &Problem) -> Vec<f64> {
    let reads = problem.attributes.reads_dst() && problem.direction.is_forward();
    match reads && !problem.inplace {
        true => fill::before(&problem.dims, problem.dst_dt),
        false => Vec::new(),
    }
}

/// What dst holds as a sum with a type of its own reads it: the same bytes. In place they are src's.
fn reread<'v>(problem: &Problem, before: &'v [f64], as_type: Option<DataType>) -> Cow<'v, [f64]> {
    let held = if problem.inplace { problem.src_dt } else { problem.dst_dt };
    match as_type {
        Some(other) if other != held => Cow::Owned(other.decode(&held.encode(before))),
        _ => Cow::Borrowed(before),
    }
}

/// A tensor that is repeated along some dimensions.
struct Spread<'v> {
    values: &'v [f64],
    dims: &'v [usize],
    /// Elements from one index to the next; 0 where it is repeated.
    strides: Vec<usize>,
}

impl<'v> Spread<'v> {
    fn new(values: &'v [f64], dims: &'v [usize], own: &[usize]) -> Spread<'v> {
        let mut strides = vec![0; dims.len()];
        let mut stride = 1;
        for d in (0..dims.len()).rev() {
            if own[d] > 1 {
                strides[d] = stride;
            }
            stride *= own[d];
        }
        Spread { values, dims, strides }
    }

    /// Where the element at `position`, in row-major order of the whole, comes from.
    fn offset(&self, mut position: usize) -> usize {
        let mut offset = 0;
        for (dim, stride) in self.dims.iter().zip(&self.strides).rev() {
            offset += position % dim * stride;
            position /= dim;
        }
        offset
    }

    /// The element in a column of the row that begins at `row`.
    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row + column * self.strides.last().copied().unwrap_or(0)]
    }
}

/// A post-op with its tensors.
enum Link<'v> {
    Fixed(Step),
    Sum {
        before: Cow<'v, [f64]>,
        scale: f64,
        zero_point: f64,
    },
    Binary {
        post_op: &'v crate::attributes::Binary,
        other: Spread<'v>,
        condition: Option<Spread<'v>>,
    },
}

/// Values and bounds of dst after the chain, from those before it. `before` is what dst holds.
pub(super) fn apply(
    problem: &Problem,
    dst: (&[f64], &[f64], Kind),
    operands: &[Vec<f64>],
    before: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let (values, terms, kind) = dst;
    let tensors = problem.attribute_tensors();
    let links = links(problem, &tensors, operands, before);
    let cols = problem.cols().max(1);
    let mut results = vec![0.0; values.len()];
    let mut bounds = vec![0.0; values.len()];
    // Whole rows, so that only their beginning has to be found in a tensor that is repeated.
    let chunk = CHUNK.div_ceil(cols) * cols;
    results.par_chunks_mut(chunk).zip(bounds.par_chunks_mut(chunk)).enumerate().for_each(
        |(index, (results, bounds))| {
            let rows = results.chunks_mut(cols).zip(bounds.chunks_mut(cols));
            for (row, (results, bounds)) in (0..).zip(rows) {
                let first = index * chunk + row * cols;
                let mut estimates: Vec<Estimate> = (first..first + results.len())
                    .map(|at| Estimate {
                        value: values[at],
                        error: kind.bound(values[at], terms[at]),
                    })
                    .collect();
                for link in &links {
                    link.advance(first, &mut estimates);
                }
                for (estimate, (result, bound)) in
                    estimates.iter().zip(results.iter_mut().zip(bounds))
                {
                    (*result, *bound) = (estimate.value, estimate.error);
                }
            }
        },
    );
    (results, bounds)
}

fn links<'v>(
    problem: &'v Problem,
    tensors: &'v [AttributeTensor],
    operands: &'v [Vec<f64>],
    before: &'v [f64],
) -> Vec<Link<'v>> {
    let attributes = &problem.attributes;
    let mut pairs = tensors.iter().zip(operands);
    let factor = |argument: i32| {
        attributes.scale(argument)?;
        let scales = |tensor: &AttributeTensor| match &tensor.source {
            Source::Quantization(quantization) => quantization.argument == argument,
            _ => false,
        };
        let mut all = tensors.iter().zip(operands);
        all.find(|(tensor, _)| scales(tensor)).map(|(_, values)| values[0])
    };
    let mut links = Vec::new();
    links.extend(factor(NORM_ARG_SRC).map(|scale| Link::Fixed(Step::Times(scale))));
    let last = factor(NORM_ARG_DST).map(|scale| Link::Fixed(Step::Over(scale)));
    let mut next = |condition: bool| {
        let (tensor, values) = pairs
            .find(|(tensor, _)| match tensor.source {
                Source::Quantization(_) => false,
                Source::Operand(_) => !condition,
                Source::Condition => condition,
            })
            .expect("a tensor for each operand");
        Spread::new(values, &problem.dims, &tensor.dims)
    };
    for post_op in &attributes.post_ops.value {
        links.push(match post_op {
            &PostOp::Sum { scale, zero_point, data_type } => Link::Sum {
                before: reread(problem, before, data_type),
                scale: f64::from(scale),
                zero_point: f64::from(zero_point),
            },
            &PostOp::Eltwise { algorithm, alpha, beta } => Link::Fixed(Step::Eltwise {
                algorithm,
                alpha: f64::from(alpha),
                beta: f64::from(beta),
            }),
            PostOp::Binary(post_op) => {
                let other = next(false);
                let condition = post_op.algorithm.is_ternary().then(|| next(true));
                Link::Binary { post_op, other, condition }
            }
            PostOp::Depthwise { .. } | PostOp::Prelu(_) => {
                unreachable!("no library offers these with layer normalization")
            }
        });
    }
    links.extend(last);
    links
}

impl Link<'_> {
    /// Takes the elements of a row, which begins at `first`, one step on.
    fn advance(&self, first: usize, estimates: &mut [Estimate]) {
        match self {
            Link::Fixed(step) => Estimate::all_after(estimates, *step),
            Link::Sum { before, scale, zero_point } => {
                let (before, scale, zero_point) = (&before[first..], *scale, *zero_point);
                Estimate::each(estimates, |i| Step::Sum { before: before[i], scale, zero_point });
            }
            Link::Binary { post_op, other, condition } => {
                let row = other.offset(first);
                let conditions = condition.as_ref().map(|spread| (spread, spread.offset(first)));
                Estimate::all_after_binary(
                    estimates,
                    post_op.algorithm,
                    |column| other.at(row, column),
                    |column| conditions.is_none_or(|(spread, row)| spread.at(row, column) != 0.0),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::{ATTRIBUTES, AttributeSettings};
    use crate::language::options::{defaults, set};

    fn problem(options: &[(&str, &str)]) -> Problem {
        let mut settings: AttributeSettings = defaults(ATTRIBUTES);
        for (name, value) in options {
            set(ATTRIBUTES, &mut settings, name, value).expect(name).expect(value);
        }
        let attributes = settings.combinations().remove(0);
        Problem { dims: vec![2, 3, 4], attributes, ..Problem::default() }
    }

    fn run(options: &[(&str, &str)]) -> (Vec<f64>, Vec<f64>) {
        let problem = problem(options);
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        let operands = operands(&problem);
        let before = before(&problem);
        apply(&problem, (&values, &[1e-6; 24], Kind::Chain), &operands, &before)
    }

    #[test]
    fn scales_stand_at_the_two_ends() {
        let (values, bounds) = run(&[
            ("attr-scales", "dst:common:0.5+src:common:64"),
            ("attr-post-ops", "linear:1:3"),
        ]);
        assert_eq!(values[2], (2.0 * 64.0 + 3.0) / 0.5);
        // 1e-6, times 64, over 0.5.
        assert!((1.28e-4..4.0e-4).contains(&bounds[2]), "{}", bounds[2]);
    }

    #[test]
    fn operands_are_repeated_along_the_missing_dimensions() {
        for (mask, own) in [
            ("common", [1, 1, 1]),
            ("per_tensor", [2, 3, 4]),
            ("per_oc", [1, 1, 4]),
            ("per_dim_0", [2, 1, 1]),
            ("per_dim_01", [2, 3, 1]),
            ("5", [2, 1, 4]),
        ] {
            let options = [("attr-post-ops", &*format!("add:f32:{mask}+mul:f32:{mask}"))];
            let problem = problem(&options);
            let tensors = problem.attribute_tensors();
            assert_eq!(tensors[0].dims, own, "{mask}");
            let operands = operands(&problem);
            let (values, _) = run(&options);
            for (i, value) in values.into_iter().enumerate() {
                let index = [i / 12, i / 4 % 3, i % 4];
                let at = index
                    .iter()
                    .zip(own)
                    .fold(0, |at, (&index, dim)| at * dim + if dim > 1 { index } else { 0 });
                let want = (i as f64 + operands[0][at]) * operands[1][at];
                assert_eq!(value, want, "{mask} at {index:?}");
            }
        }
    }

    #[test]
    fn select_takes_by_the_condition_and_sum_what_dst_held() {
        let options = [("attr-post-ops", "select:f32.per_tensor+sum:2:1")];
        let operands = operands(&problem(&options));
        let before = before(&problem(&options));
        let (values, _) = run(&options);
        for (i, value) in values.into_iter().enumerate() {
            let chosen = if operands[1][i] != 0.0 { i as f64 } else { operands[0][i] };
            assert_eq!(value, chosen + 2.0 * (before[i] - 1.0));
        }
        assert!(operands[1].contains(&0.0) && operands[1].contains(&1.0));
        assert!(problem(&options).attributes.reads_dst());
        assert_eq!(DataType::S8, problem(&options).attribute_tensors()[1].data_type);
    }

    /// -2 in s8 is 254 in u8, and 1 in bf16 is 1.875 in f16.
    #[test]
    fn a_sum_reads_the_bytes_of_dst_in_its_own_type() {
        let options = [("attr-post-ops", "sum:0.5:1:u8+sum")];
        let problem = Problem { dst_dt: DataType::S8, ..problem(&options) };
        let held = before(&problem);
        assert!(held.contains(&-2.0));
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        let (results, _) = apply(&problem, (&values, &[0.0; 24], Kind::Chain), &[], &held);
        for ((result, value), held) in results.iter().zip(&values).zip(&held) {
            let unsigned = if *held < 0.0 { held + 256.0 } else { *held };
            assert_eq!(*result, value + 0.5 * (unsigned - 1.0) + held);
        }
        let problem = Problem { src_dt: DataType::Bf16, inplace: true, ..problem };
        assert_eq!(*reread(&problem, &[1.0], Some(DataType::F16)), [1.875]);
    }
}
