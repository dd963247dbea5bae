//! Softmax and logsoftmax in f64.
//!
//! ```text
//! m = max(x), s = sum(exp(x - m))
//! forward   softmax      exp(x - m) / s
//!           logsoftmax   (x - m) - ln(s)
//! backward  softmax      y*(g - sum(g*y))        y = dst, g = diff_dst
//!           logsoftmax   g - exp(y)*sum(g)
//! ```
//!
//! A library that computes in f64 is no less accurate than this. It gets the bounds of f32 in units that are 2^26 times
//! finer: the ratio of the two precisions is 2^29, and a factor of 8 covers the errors of both.

use super::sum::pairwise;

/// The rows of a tensor along an axis: element `c` of the row `(o, i)` is at
/// `(o*cols + c)*inner + i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The product of the dimensions before the axis.
    pub outer: usize,
    /// The elements of a row.
    pub cols: usize,
    /// The product of the dimensions after the axis.
    pub inner: usize,
}

impl Rows {
    /// Along the dimension `axis`.
    pub fn of(dims: &[usize], axis: usize) -> Rows {
        let product = |dims: &[usize]| dims.iter().product();
        Rows { outer: product(&dims[..axis]), cols: dims[axis], inner: product(&dims[axis + 1..]) }
    }

    /// Calls `f` with the indices of each row's elements.
    fn each(&self, mut f: impl FnMut(&dyn Fn(usize) -> usize)) {
        let &Rows { outer, cols, inner } = self;
        for row in 0..outer * inner {
            let (o, i) = (row / inner, row % inner);
            f(&|c| (o * cols + c) * inner + i);
        }
    }
}

/// The values of an output, and the bounds of their errors or the terms to which they are proportional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The values.
    pub values: Vec<f64>,
    /// In forward the error bounds, in backward the sums of absolute terms.
    pub terms: Vec<f64>,
}

/// The arithmetic of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// That of f32.
    F32,
    /// That of f64.
    F64,
}

impl Arithmetic {
    /// Half an ulp, relative to the value, including the error of this oracle.
    fn half_ulp(self) -> f64 {
        match self {
            Arithmetic::F32 => 1.0 / 16_777_216.0,
            Arithmetic::F64 => 4.0 * f64::EPSILON,
        }
    }

    /// The smallest number; results below the normal numbers have its spacing.
    fn smallest(self) -> f64 {
        match self {
            Arithmetic::F32 => f64::from(f32::from_bits(1)),
            Arithmetic::F64 => f64::from_bits(1),
        }
    }
}

/// The expected dst and its error bound in f32: 3 ulp and the relative error of the exponential from rounding `x - m`,
/// or 2 ulp and the error of the sum in its logarithm.
pub fn forward(rows: Rows, src: &[f64], log: bool) -> Output {
    forward_or(rows, src, log, None, Arithmetic::F32)
}

/// The same in an arithmetic. A row with only -Inf becomes `empty`, if given.
pub fn forward_or(
    rows: Rows,
    src: &[f64],
    log: bool,
    empty: Option<f64>,
    arithmetic: Arithmetic,
) -> Output {
    let (half_ulp, smallest) = (arithmetic.half_ulp(), arithmetic.smallest());
    let mut output = Output { values: vec![0.0; src.len()], terms: vec![0.0; src.len()] };
    rows.each(|at| {
        let max = (0..rows.cols).map(|c| src[at(c)]).fold(f64::NEG_INFINITY, |max, x| {
            // Keeps NaN, whichever side it is on.
            if max.is_nan() || max > x { max } else { x }
        });
        if let (Some(empty), true) = (empty, max == f64::NEG_INFINITY) {
            (0..rows.cols).for_each(|c| output.values[at(c)] = empty);
            return;
        }
        let [sum] = pairwise(rows.cols, &|c| [(src[at(c)] - max).exp()]);
        for c in 0..rows.cols {
            let distance = src[at(c)] - max;
            let (value, bound) = if log {
                let value = distance - sum.ln();
                (value, 4.0 * half_ulp * (value.abs() + 1.0))
            } else {
                let value = distance.exp() / sum;
                (value, half_ulp * value * (6.0 + 2.0 * distance.abs()))
            };
            output.values[at(c)] = value;
            output.terms[at(c)] = bound + 2.0 * smallest;
        }
    });
    output
}

/// The logarithm of the sum of the exponentials of each row, and its error bound: 5 ulp for the sum and its logarithm,
/// and two roundings.
pub fn logarithms(rows: Rows, src: &[f64], arithmetic: Arithmetic) -> Output {
    let mut output = Output::default();
    rows.each(|at| {
        let row: Vec<f64> = (0..rows.cols).map(|c| src[at(c)]).collect();
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_plain = max.is_finite() && !row.iter().any(|x| x.is_nan());
        let (value, log) = if is_plain {
            let [sum] = pairwise(rows.cols, &|c| [(row[c] - max).exp()]);
            (max + sum.ln(), sum.ln())
        } else {
            (if row.iter().any(|x| x.is_nan()) { f64::NAN } else { max }, 0.0)
        };
        output.values.push(value);
        output.terms.push(if is_plain {
            arithmetic.half_ulp() * (2.0 * value.abs() + 2.0 * log + 10.0)
        } else {
            0.0
        });
    });
    output
}

/// The expected diff_src, and its terms.
pub fn backward(rows: Rows, dst: &[f64], diff_dst: &[f64], log: bool) -> Output {
    let mut output = Output { values: vec![0.0; dst.len()], terms: vec![0.0; dst.len()] };
    rows.each(|at| {
        let [sum, total] = pairwise(rows.cols, &|c| {
            let term = if log { diff_dst[at(c)] } else { diff_dst[at(c)] * dst[at(c)] };
            [term, term.abs()]
        });
        for c in 0..rows.cols {
            let (y, g) = (dst[at(c)], diff_dst[at(c)]);
            (output.values[at(c)], output.terms[at(c)]) = if log {
                (g - y.exp() * sum, g.abs() + y.exp() * total)
            } else {
                (y * (g - sum), y.abs() * (g.abs() + total))
            };
        }
    });
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_known_values() {
        let src = [0.0, f64::ln(2.0), f64::ln(5.0)];
        let rows = Rows::of(&[3], 0);
        for shift in [0.0, 1000.0, -1000.0] {
            let src = src.map(|x| x + shift);
            let close = |got: &[f64], want: [f64; 3]| {
                got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12)
            };
            let plain = forward(rows, &src, false).values;
            assert!(close(&plain, [0.125, 0.25, 0.625]), "{plain:?}");
            let log = forward(rows, &src, true).values;
            assert!(close(&log, [0.125, 0.25, 0.625].map(f64::ln)), "{log:?}");
        }
        // dst = [1/4, 3/4], diff_dst = [4, 8]: the sum is 7.
        let back = backward(Rows::of(&[2], 0), &[0.25, 0.75], &[4.0, 8.0], false).values;
        assert_eq!(back, [0.25 * -3.0, 0.75]);
        let back = backward(Rows::of(&[2], 0), &[0.0, 0.0], &[4.0, 8.0], true).values;
        assert_eq!(back, [4.0 - 12.0, 8.0 - 12.0]);
    }

    #[test]
    fn an_axis_is_any_dimension() {
        let src: Vec<f64> = (0..24).map(f64::from).collect();
        for axis in 0..3 {
            let rows = Rows::of(&[2, 3, 4], axis);
            let values = forward(rows, &src, false).values;
            let mut sums = Vec::new();
            rows.each(|at| sums.push((0..rows.cols).map(|c| values[at(c)]).sum::<f64>()));
            assert_eq!(sums.len(), 24 / rows.cols);
            assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{axis}: {sums:?}");
        }
    }

    #[test]
    fn what_is_not_finite_stays_in_its_row() {
        let src =
            [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, f64::NAN, f64::INFINITY, 1.0, 2.0, 2.0];
        let values = forward(Rows::of(&[4, 2], 1), &src, false).values;
        assert!(values[..6].iter().all(|y| y.is_nan()));
        assert_eq!(values[6..], [0.5, 0.5]);
        let rows = Rows::of(&[4, 2], 1);
        let values = forward_or(rows, &src, false, Some(0.0), Arithmetic::F32).values;
        assert_eq!(values[..2], [0.0, 0.0]);
        assert!(values[2..6].iter().all(|y| y.is_nan()));
    }

    /// Differences of the forward formula.
    #[test]
    fn gradients_are_those_of_forward() {
        let src = [0.3, -1.2, 0.7, 0.1];
        let diff_dst = [0.5, -0.25, 1.0, 0.75];
        let rows = Rows::of(&[4], 0);
        for log in [false, true] {
            let loss = |src: &[f64]| -> f64 {
                let dst = forward(rows, src, log).values;
                dst.iter().zip(diff_dst).map(|(y, g)| y * g).sum()
            };
            let dst = forward(rows, &src, log).values;
            let claimed = backward(rows, &dst, &diff_dst, log).values;
            for (i, claimed) in claimed.iter().enumerate() {
                let moved = |by: f64| {
                    let mut src = src;
                    src[i] += by;
                    loss(&src)
                };
                let found = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((found - claimed).abs() < 1e-9, "{log} {i}: {found}, not {claimed}");
            }
        }
    }
}
