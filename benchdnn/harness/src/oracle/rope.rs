//! Rotary position embedding in f64.
//!
//! ```text
//! angle   t = p * f[i]                        or cos t and sin t from tables
//! forward   a' = m*(a*cos t - b*sin t)        b' = m*(a*sin t + b*cos t)
//! backward  the same with -t
//! with a normalization a and b are  x / sqrt(mean(x^2) + epsilon) * scale
//! its gradient, of d that was turned back   r*s*d - x*r^3*mean(x*s*d), and of the scale  sum d*x*r
//! ```

use super::sum::pairwise;

/// Which elements form a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Neighbours.
    #[default]
    Interleaved,
    /// The halves of the rotary dimensions.
    Half,
    /// The halves of the head.
    HalfOfHead,
}

impl Pairing {
    /// The indices of pair `i` of `pairs` in a head of `cols` elements.
    pub fn places(self, i: usize, pairs: usize, cols: usize) -> (usize, usize) {
        match self {
            Pairing::Interleaved => (2 * i, 2 * i + 1),
            Pairing::Half => (i, i + pairs),
            Pairing::HalfOfHead => (i, i + cols / 2),
        }
    }
}

/// The part of a position that pair `i` uses. Sections follow one another or alternate.
pub fn section(i: usize, sections: &[usize], interleaved: bool) -> usize {
    if sections.is_empty() {
        return 0;
    }
    if interleaved {
        let part = i % sections.len();
        return if i < sections.len() * sections[part] { part } else { 0 };
    }
    let ends = sections.iter().scan(0, |end, pairs| {
        *end += pairs;
        Some(*end)
    });
    ends.take_while(|end| *end <= i).count()
}

/// The normalization of a head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm<'a> {
    /// Added under the root.
    pub epsilon: f64,
    /// Factors of the columns.
    pub scale: Option<&'a [f64]>,
    /// Whether to add 1 to them.
    pub plus_one: bool,
}

/// The error of an f32 relative to a number: half an ulp.
const HALF_ULP: f64 = 1.0 / 16_777_216.0;
/// The smallest f32; results below the normal numbers have its spacing.
const SMALLEST: f64 = f32::from_bits(1) as f64;

/// A head before the rotation: its values and their error bounds. `round` is the type in which normalized values are
/// stored, if they are.
pub fn normalized(
    src: &[f64],
    norm: &Norm<'_>,
    round: Option<&dyn Fn(f64) -> f64>,
) -> (Vec<f64>, Vec<f64>) {
    let [sum] = pairwise(src.len(), &|c| [src[c] * src[c]]);
    let square = sum / src.len() as f64 + norm.epsilon;
    let r = if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() };
    let one = |(c, x): (usize, &f64)| {
        let scale = norm.scale.map_or(1.0, |scale| scale[c] + f64::from(u8::from(norm.plus_one)));
        let exact = x * r * scale;
        // The mean square is within 4 ulp; its root and two products add half an ulp each.
        let error = 8.0 * HALF_ULP * exact.abs() + SMALLEST;
        match round {
            None => (exact, error),
            // A value near the middle of two may be rounded to either.
            Some(round) => {
                let (low, high) = (round(exact - error), round(exact + error));
                ((low + high) / 2.0, (high - low) / 2.0)
            }
        }
    };
    src.iter().enumerate().map(one).unzip()
}

/// Rotates a head by the cosine and the sine of each pair. Returns the values and their error bounds in f32, given
/// those of the head.
pub fn rotated(
    head: &[f64],
    errors: &[f64],
    pairing: Pairing,
    angles: &[(f64, f64)],
) -> (Vec<f64>, Vec<f64>) {
    let error = |at: usize| errors.get(at).copied().unwrap_or(0.0);
    let (mut values, mut bounds) = (head.to_vec(), vec![0.0; head.len()]);
    for (at, bound) in bounds.iter_mut().enumerate() {
        *bound = error(at);
    }
    for (i, (cos, sin)) in angles.iter().enumerate() {
        let (first, second) = pairing.places(i, angles.len(), head.len());
        let (a, b) = (head[first], head[second]);
        let mut put = |at: usize, [x, y]: [f64; 2], inherited: f64| {
            values[at] = x + y;
            // Half an ulp in each factor from the angle and in each product, and in the sum.
            let own = 2.0 * HALF_ULP * (x.abs() + y.abs()) + HALF_ULP * (x + y).abs();
            bounds[at] = 1.01 * own + inherited + 2.0 * SMALLEST;
        };
        let (cosine, sine) = (cos.abs(), sin.abs());
        put(first, [a * cos, -b * sin], error(first) * cosine + error(second) * sine);
        put(second, [a * sin, b * cos], error(first) * sine + error(second) * cosine);
    }
    (values, bounds)
}

/// The gradients of a head through its normalization, and their error bounds in f32.
pub struct Through {
    /// The gradient of the head.
    pub diff_src: Vec<f64>,
    /// Its bounds.
    pub diff_src_bounds: Vec<f64>,
    /// The head's contribution to the gradient of the scale.
    pub diff_scale: Vec<f64>,
    /// Its bounds.
    pub diff_scale_bounds: Vec<f64>,
}

/// The gradients for `d`, the gradient of the normalized values, with the given `errors`.
pub fn through(src: &[f64], (d, errors): (&[f64], &[f64]), norm: &Norm<'_>) -> Through {
    let (count, cols) = (src.len() as f64, 0..src.len());
    let [sum] = pairwise(src.len(), &|c| [src[c] * src[c]]);
    let square = sum / count + norm.epsilon;
    let r = if square == 0.0 { 0.0 } else { 1.0 / square.sqrt() };
    let scale = |c: usize| match norm.scale {
        Some(scale) => scale[c] + f64::from(u8::from(norm.plus_one)),
        None => 1.0,
    };
    let xhat = |c: usize| src[c] * r;
    let of_row = pairwise(src.len(), &|c| {
        let (factor, gradient) = (xhat(c) * scale(c), d[c]);
        let off = errors[c] * factor.abs();
        [factor * gradient, (factor * gradient).abs(), off]
    });
    let [mean, mean_terms, mean_off] = of_row.map(|sum| sum / count);
    // The variance is within 4 ulp of f32, its root within half of that. Three products and a sum have f32 chains.
    let share = 24.0 * HALF_ULP;
    let mut result = Through {
        diff_src: cols.clone().map(|c| r * (scale(c) * d[c] - xhat(c) * mean)).collect(),
        diff_src_bounds: Vec::new(),
        diff_scale: cols.clone().map(|c| d[c] * xhat(c)).collect(),
        diff_scale_bounds: Vec::new(),
    };
    for c in cols {
        let (own, x) = ((scale(c) * d[c]).abs(), xhat(c).abs());
        let inherited = r * ((scale(c)).abs() * errors[c] + x * mean_off);
        let bound = share * r * (own + x * mean_terms) + inherited + 2.0 * SMALLEST;
        result.diff_src_bounds.push(bound);
        let bound = share * (d[c] * xhat(c)).abs() + x * errors[c] + SMALLEST;
        result.diff_scale_bounds.push(bound);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_4};

    #[test]
    fn a_turn_has_known_values() {
        let eighth = (FRAC_PI_4.cos(), FRAC_PI_4.sin());
        let (values, _) = rotated(&[1.0, 0.0, 0.0, 2.0], &[], Pairing::Interleaved, &[eighth; 2]);
        let root = FRAC_1_SQRT_2;
        let close = |got: &[f64], want: &[f64]| {
            got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12)
        };
        assert!(close(&values, &[root, root, -2.0 * root, 2.0 * root]), "{values:?}");
        let (values, _) = rotated(&[1.0, 0.0, 0.0, 2.0], &[], Pairing::Half, &[eighth, (0.0, 1.0)]);
        assert!(close(&values, &[root, -2.0, root, 0.0]), "{values:?}");
        let (values, _) = rotated(&[1.0, 5.0, 0.0, 7.0], &[], Pairing::HalfOfHead, &[(0.0, 1.0)]);
        assert!(close(&values, &[0.0, 5.0, 1.0, 7.0]), "{values:?}");
    }

    #[test]
    fn sections_follow_or_alternate() {
        let parts = |sections: &[usize], interleaved| -> Vec<usize> {
            (0..6).map(|i| section(i, sections, interleaved)).collect()
        };
        assert_eq!(parts(&[], false), [0; 6]);
        assert_eq!(parts(&[1, 3, 2], false), [0, 1, 1, 1, 2, 2]);
        assert_eq!(parts(&[3, 2, 1], true), [0, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn the_way_back_is_the_inverse() {
        let head: Vec<f64> = (0..10).map(|i| f64::from(i) - 4.5).collect();
        for pairing in [Pairing::Interleaved, Pairing::Half, Pairing::HalfOfHead] {
            let angles: Vec<_> =
                (0..4).map(|i| f64::from(i).sin_cos()).map(|(s, c)| (c, s)).collect();
            let back: Vec<_> = angles.iter().map(|(c, s)| (*c, -s)).collect();
            let (there, _) = rotated(&head, &[], pairing, &angles);
            let (again, _) = rotated(&there, &[], pairing, &back);
            assert!(head.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-12), "{pairing:?}");
            assert!(head.iter().zip(&there).any(|(a, b)| (a - b).abs() > 0.1), "{pairing:?}");
        }
    }

    #[test]
    fn gradients_are_differences_of_the_normalization() {
        let (src, d): (Vec<f64>, Vec<f64>) =
            (0..6).map(|c| (f64::from(c).sin() + 0.3, f64::from(c).cos())).unzip();
        let scale = [0.5, 2.0, -1.0, 0.25, 1.0, 3.0];
        let loss = |src: &[f64], scale: &[f64]| -> f64 {
            let norm = Norm { epsilon: 1e-3, scale: Some(scale), plus_one: true };
            normalized(src, &norm, None).0.iter().zip(&d).map(|(y, d)| y * d).sum()
        };
        let norm = Norm { epsilon: 1e-3, scale: Some(&scale), plus_one: true };
        let found = through(&src, (&d, &[0.0; 6]), &norm);
        let moved = |values: &[f64], c: usize, by: f64| {
            let mut values = values.to_vec();
            values[c] += by;
            values
        };
        let step = 1e-6;
        for c in 0..6 {
            let of = |by| loss(&moved(&src, c, by), &scale);
            let slope = (of(step) - of(-step)) / (2.0 * step);
            assert!((slope - found.diff_src[c]).abs() < 1e-8, "{c}: {slope}");
            let of = |by| loss(&src, &moved(&scale, c, by));
            let slope = (of(step) - of(-step)) / (2.0 * step);
            assert!((slope - found.diff_scale[c]).abs() < 1e-8, "{c}: {slope}");
        }
    }

    #[test]
    fn a_head_has_a_root_mean_square_of_1() {
        let check = |norm: &Norm<'_>, expected: [f64; 4]| {
            let (values, _) = normalized(&[3.0, -4.0, 0.0, 0.0], norm, None);
            let near = values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15);
            assert!(near, "{values:?}");
        };
        let norm = Norm { epsilon: 0.0, scale: None, plus_one: false };
        check(&norm, [1.2, -1.6, 0.0, 0.0]);
        check(
            &Norm { scale: Some(&[1.0, 0.0, 5.0, 5.0]), plus_one: true, ..norm },
            [2.4, -1.6, 0.0, 0.0],
        );
    }
}
