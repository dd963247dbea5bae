//! Functions of two tensors in f64, with bounds of the error in f32 arithmetic. Sources are scaled first, and those
//! with one element along a dimension are repeated along it.

use super::eltwise::Output;
use super::estimate::{Estimate, Step};
use super::post_ops::BinaryAlgorithm;

/// A source: its values, dimensions and scale.
#[derive(Clone, Copy, Debug)]
pub struct Source<'v> {
    /// In row-major order.
    pub values: &'v [f64],
    /// Each is that of dst, or 1.
    pub dims: &'v [usize],
    /// The factor of all values.
    pub scale: f64,
}

impl Source<'_> {
    /// The element that belongs to the element of dst at `position`.
    fn at(&self, dims: &[usize], mut position: usize) -> f64 {
        let (mut place, mut stride) = (0, 1);
        for (&dim, &own) in dims.iter().zip(self.dims).rev() {
            if own > 1 {
                place += position % dim * stride;
            }
            stride *= own;
            position /= dim;
        }
        self.values[place]
    }

    fn scaled(&self, dims: &[usize], position: usize) -> Estimate {
        let value = self.at(dims, position);
        Estimate { value, error: 0.0 }.after(Step::Times(self.scale))
    }
}

/// The expected dst. Only `select` has a condition.
pub fn binary(
    algorithm: BinaryAlgorithm,
    dims: &[usize],
    [first, second]: [Source<'_>; 2],
    condition: Option<Source<'_>>,
) -> Output {
    let one = |at: usize| {
        let condition = condition.is_none_or(|condition| condition.at(dims, at) != 0.0);
        pair(algorithm, first.scaled(dims, at), second.scaled(dims, at), condition)
    };
    (0..dims.iter().product()).map(one).collect()
}

/// The function of two values with errors.
fn pair(algorithm: BinaryAlgorithm, x: Estimate, y: Estimate, condition: bool) -> Estimate {
    let step = |other| Step::Binary { algorithm, other, condition };
    let result = x.after(step(y.value));
    if y.error == 0.0 {
        return result;
    }
    // The first error is that of the first operand and of rounding; the others are those of both operands.
    let corners = [y.value - y.error, y.value + y.error].map(|other| x.after(step(other)));
    let distance = |corner: Estimate| match (corner.value - result.value).abs() {
        distance if distance.is_nan() && corner.value.is_nan() == result.value.is_nan() => 0.0,
        distance if distance.is_nan() => f64::INFINITY,
        distance => distance + corner.error,
    };
    let jumps = algorithm.is_comparison() && (x.value - y.value).abs() <= x.error + y.error;
    let error = distance(corners[0]).max(distance(corners[1])).max(result.error);
    Estimate { value: result.value, error: if jumps { error.max(1.0) } else { error } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_source_is_repeated() {
        let first = Source { values: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dims: &[2, 3], scale: 1.0 };
        let rows = Source { values: &[10.0, 20.0], dims: &[2, 1], scale: 2.0 };
        let columns = Source { values: &[10.0, 20.0, 30.0], dims: &[1, 3], scale: 1.0 };
        let add = |a, b| binary(BinaryAlgorithm::Add, &[2, 3], [a, b], None).values;
        assert_eq!(add(first, rows), [21.0, 22.0, 23.0, 44.0, 45.0, 46.0]);
        assert_eq!(add(columns, first), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
        assert_eq!(add(rows, columns), [30.0, 40.0, 50.0, 50.0, 60.0, 70.0]);
        let condition =
            Source { values: &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0], dims: &[2, 3], scale: 1.0 };
        let select = binary(BinaryAlgorithm::Select, &[2, 3], [first, columns], Some(condition));
        assert_eq!(select.values, [1.0, 20.0, 30.0, 4.0, 5.0, 30.0]);
        assert_eq!(select.bounds, [0.0; 6]);
    }

    #[test]
    fn errors_of_scaling_reach_the_result() {
        let (third, tenth) = ([f64::from(1.0_f32 / 3.0)], f64::from(0.1_f32));
        let (three, near) = ([3.0], [f64::from(0.3_f32)]);
        let source = |values, scale| Source { values, dims: &[1], scale };
        let pair = [source(&three, 1.0), source(&third, tenth)];
        let of = |algorithm| binary(algorithm, &[1], pair, None);
        let quotient = of(BinaryAlgorithm::Div);
        assert!((1e-7..4e-5).contains(&quotient.bounds[0]), "{quotient:?}");
        assert_eq!(of(BinaryAlgorithm::Gt), Output { values: vec![1.0], bounds: vec![0.0] });
        let pair = [source(&near, 1.0), source(&three, tenth)];
        assert_eq!(binary(BinaryAlgorithm::Ge, &[1], pair, None).bounds, [1.0]);
    }
}
