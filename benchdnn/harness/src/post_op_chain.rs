//! The effect of scales and post-ops on a result, in the oracle.
//!
//! The operation's result is multiplied by the scale of src, goes through the post-ops in order
//! and is divided by the scale of dst. At the end it is rounded and saturated to the type of dst.

use crate::attributes::{AttributeTensor, Attributes, Binary, PostOp, Source};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::oracle::dropout::Draw;
use crate::oracle::estimate::{Estimate, Step};
use crate::parallel::{self, GRAIN};
use crate::problem::{Data, Expected};
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use std::borrow::Cow;

/// The attributes of a problem with their data.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'v> {
    /// Scales and post-ops.
    pub attributes: &'v Attributes,
    /// Dimensions of dst.
    pub dims: &'v [usize],
    /// The tensors of the attributes.
    pub tensors: &'v [AttributeTensor],
    /// Their values, by argument id.
    pub data: &'v Data,
    /// The previous contents of dst, if a post-op adds them.
    pub before: &'v [f64],
    /// The type of these contents.
    pub held: DataType,
}

/// A tensor that is broadcast along some dimensions.
struct Spread<'v> {
    values: &'v [f64],
    dims: &'v [usize],
    /// Elements from one index to the next; 0 along broadcast dimensions.
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

    /// The offset of the element for `position`, a row-major index into the whole tensor.
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
    Dropout(Draw),
    Sum { before: Cow<'v, [f64]>, scale: f64, zero_point: f64 },
    Binary { post_op: &'v Binary, other: Spread<'v>, condition: Option<Spread<'v>> },
}

impl<'v> Chain<'v> {
    /// The expected dst after the chain.
    pub fn applied_to(&self, plain: &Expected) -> Expected {
        let Expected { values, terms, kind, .. } = plain;
        // After the operation, the arithmetic is f32, whatever the types.
        let kind = if *kind == Kind::Double { Kind::Result } else { *kind };
        let (values, bounds) = self.apply(values, terms, kind);
        Expected::new(plain.id, Kind::Chain, values, bounds)
    }

    /// The expected mask of dropout, if it is stored.
    pub fn mask(&self) -> Option<Expected> {
        let is_mask = |tensor: &&AttributeTensor| tensor.is_output();
        let (draw, tensor) = (self.draw()?, self.tensors.iter().find(is_mask)?);
        let count: usize = self.dims.iter().product();
        let values = (0..count).map(|place| f64::from(u8::from(draw.stays(place)))).collect();
        Some(Expected::new(tensor.id, Kind::Chain, values, vec![0.0; count]))
    }

    fn draw(&self) -> Option<Draw> {
        let dropout = self.attributes.dropout.value.as_ref()?;
        let (probability, seed, offset) = (dropout.probability, dropout.seed, dropout.offset);
        Some(Draw { probability, seed, offset })
    }

    /// Values and bounds of dst after the chain, from those before it.
    fn apply(&self, values: &[f64], terms: &[f64], kind: Kind) -> (Vec<f64>, Vec<f64>) {
        let links = self.links();
        let cols = self.dims.last().copied().unwrap_or(1).max(1);
        let mut results = vec![0.0; values.len()];
        let mut bounds = vec![0.0; values.len()];
        // Whole rows, so that a broadcast tensor only needs one lookup per row.
        let chunk = GRAIN.div_ceil(cols) * cols;
        parallel::for_each(
            results.chunks_mut(chunk).zip(bounds.chunks_mut(chunk)),
            1,
            &|index, (results, bounds)| {
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

    /// The contents of dst, as the type of a sum that has its own: the same bytes.
    fn reread(&self, as_type: Option<DataType>) -> Cow<'v, [f64]> {
        match as_type {
            Some(other) if other != self.held => {
                Cow::Owned(other.decode(&self.held.encode(self.before)))
            }
            _ => Cow::Borrowed(self.before),
        }
    }

    fn spread(&self, tensor: &AttributeTensor) -> Spread<'v> {
        Spread::new(self.data.get(tensor.id), self.dims, &tensor.dims)
    }

    /// The scale of an argument.
    fn factor(&self, argument: i32) -> Option<f64> {
        let scales = |tensor: &&AttributeTensor| match &tensor.source {
            Source::Quantization(quantization) => quantization.argument == argument,
            _ => false,
        };
        self.attributes.scale(argument)?;
        Some(self.data.get(self.tensors.iter().find(scales)?.id)[0])
    }

    fn links(&self) -> Vec<Link<'v>> {
        let mut operands = self.tensors.iter();
        let mut next = |condition: bool| {
            let tensor = operands.find(|tensor| match tensor.source {
                Source::Quantization(_) | Source::Mask(_) | Source::Number(_) => false,
                Source::Operand(_) => !condition,
                Source::Condition => condition,
            });
            self.spread(tensor.expect("a tensor for each operand"))
        };
        let mut links = Vec::new();
        links.extend(self.factor(NORM_ARG_SRC).map(|scale| Link::Fixed(Step::Times(scale))));
        links.extend(self.draw().map(Link::Dropout));
        for post_op in &self.attributes.post_ops.value {
            links.push(match post_op {
                &PostOp::Sum { scale, zero_point, data_type } => Link::Sum {
                    before: self.reread(data_type),
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
                    unreachable!("the library refuses these post-ops")
                }
            });
        }
        links.extend(self.factor(NORM_ARG_DST).map(|scale| Link::Fixed(Step::Over(scale))));
        links
    }
}

impl Link<'_> {
    /// Advances the elements of a row, which begins at `first`, by one step.
    fn advance(&self, first: usize, estimates: &mut [Estimate]) {
        match self {
            Link::Fixed(step) => Estimate::all_after(estimates, *step),
            Link::Dropout(draw) => {
                Estimate::all_after(estimates, Step::Times(draw.factor()));
                for (i, estimate) in estimates.iter_mut().enumerate() {
                    if !draw.stays(first + i) {
                        *estimate = Estimate { value: 0.0, error: 0.0 };
                    }
                }
            }
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
    use crate::fill;
    use crate::language::options::{defaults, set};

    const DIMS: [usize; 3] = [2, 3, 4];

    fn attributes(options: &[(&str, &str)]) -> Attributes {
        let mut settings: AttributeSettings = defaults(ATTRIBUTES);
        for (name, value) in options {
            set(ATTRIBUTES, &mut settings, name, value).expect(name).expect(value);
        }
        settings.combinations().remove(0)
    }

    /// The values of each operand.
    fn operands(tensors: &[AttributeTensor]) -> Vec<Vec<f64>> {
        tensors.iter().map(fill::attribute).collect()
    }

    fn run_on(held: DataType, options: &[(&str, &str)], term: f64) -> (Vec<f64>, Vec<f64>) {
        let attributes = attributes(options);
        let tensors = attributes.tensors(&DIMS, 2);
        let mut data = Data::default();
        tensors.iter().for_each(|tensor| data.set(tensor.id, fill::attribute(tensor)));
        let before = fill::before(&DIMS, held);
        let (attributes, tensors, data) = (&attributes, &tensors[..], &data);
        let chain = Chain { attributes, dims: &DIMS, tensors, data, before: &before, held };
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        chain.apply(&values, &[term; 24], Kind::Chain)
    }

    fn run(options: &[(&str, &str)]) -> (Vec<f64>, Vec<f64>) {
        run_on(DataType::F32, options, 1e-6)
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
            let tensors = attributes(&options).tensors(&DIMS, 2);
            assert_eq!(tensors[0].dims, own, "{mask}");
            let operands = operands(&tensors);
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
        let tensors = attributes(&options).tensors(&DIMS, 2);
        let operands = operands(&tensors);
        let before = fill::before(&DIMS, DataType::F32);
        let (values, _) = run(&options);
        for (i, value) in values.into_iter().enumerate() {
            let chosen = if operands[1][i] != 0.0 { i as f64 } else { operands[0][i] };
            assert_eq!(value, chosen + 2.0 * (before[i] - 1.0));
        }
        assert!(operands[1].contains(&0.0) && operands[1].contains(&1.0));
        assert!(attributes(&options).reads_dst());
        assert_eq!(DataType::S8, tensors[1].data_type);
    }

    /// -2 in s8 is 254 in u8, and 1 in bf16 is 1.875 in f16.
    #[test]
    fn a_sum_reads_the_bytes_of_dst_in_its_own_type() {
        let options = [("attr-post-ops", "sum:0.5:1:u8+sum")];
        let held = fill::before(&DIMS, DataType::S8);
        assert!(held.contains(&-2.0));
        let (results, _) = run_on(DataType::S8, &options, 0.0);
        for ((result, value), held) in results.iter().zip(0..).zip(&held) {
            let unsigned = if *held < 0.0 { held + 256.0 } else { *held };
            assert_eq!(*result, f64::from(value) + 0.5 * (unsigned - 1.0) + held);
        }
        let (attributes, data) = (attributes(&[]), Data::default());
        let (before, held) = (&[1.0][..], DataType::Bf16);
        let (attributes, data) = (&attributes, &data);
        let chain = Chain { attributes, dims: &DIMS, tensors: &[], data, before, held };
        assert_eq!(*chain.reread(Some(DataType::F16)), [1.875]);
    }
}
