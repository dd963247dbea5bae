//! Dynamic scales and zero points in f64, and the elements that they quantize.
//!
//! For each group of values `y`, with `M` the largest value of the stored type:
//!
//! ```text
//! largest value   scale = max|y| / M, rounded to f32 and then to the scale's type
//! power of two    scale = 2^(floor(log2 max|y|) - floor(log2 M))
//! zero points     scale = (max(y, 0) - min(y, 0)) / 255    zero point = round(-min(y, 0) / scale)
//! element         y * (1/scale) + zero point, rounded and saturated
//! ```
//!
//! A scale of 0 becomes 1, and scales of f8_e4m3 for finite values other than 0 stay within its numbers. `y` has the
//! error of f32 arithmetic, so a scale lies in an interval: it is one value in most cases and two neighbours near a
//! boundary. An element is checked against all scales of that interval, which leaves it one value, or two next to a
//! boundary.

use super::estimate::Estimate;
use super::post_ops::ulp;
use crate::data_type::DataType;
use crate::parallel;

/// The exponent of the smallest scale of e8m0.
const LOWEST_POWER: f64 = -127.0;
/// The smallest scale of f8_e4m3.
const LOWEST_E4M3: f64 = 1.0 / 512.0;

/// How scales are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the largest value.
    Largest,
    /// The power of two below it.
    PowerOfTwo,
    /// From the range of the values, with a zero point.
    Range,
}

/// What to quantize, and how.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// How scales are computed.
    pub kind: Kind,
    /// Values that share a scale.
    pub group: usize,
    /// The type of the elements.
    pub data_type: DataType,
    /// The type of the scales.
    pub scale_type: DataType,
}

/// Expected results with their possible errors before rounding to their types.
#[derive(Clone, Debug, Default)]
pub struct Quantized {
    /// One for each value.
    pub elements: Vec<Estimate>,
    /// One for each group.
    pub scales: Vec<Estimate>,
    /// One for each group; used with [`Kind::Range`].
    pub zero_points: Vec<Estimate>,
}

/// Quantizes the values.
pub fn quantize(problem: &Problem, values: &[Estimate]) -> Quantized {
    let zero = Estimate::exact(0.0);
    let groups = values.len() / problem.group.max(1);
    let mut all = Quantized {
        elements: vec![zero; values.len()],
        scales: vec![zero; groups],
        zero_points: vec![zero; groups],
    };
    if groups == 0 {
        return all;
    }
    let of_group = all.scales.iter_mut().zip(&mut all.zero_points);
    let groups = all.elements.chunks_mut(problem.group).zip(values.chunks(problem.group));
    parallel::for_each(groups.zip(of_group), 1, &|_, ((elements, values), (scale, zero_point))| {
        let scales = problem.scales(values);
        *scale = scales.middle();
        let shifts = match problem.kind {
            Kind::Range => problem.zero_points(values, scales),
            Kind::Largest | Kind::PowerOfTwo => Interval::of(0.0, 0.0),
        };
        *zero_point = shifts.middle();
        for (element, value) in elements.iter_mut().zip(values) {
            *element = problem.element(*value, scales, shifts);
        }
    });
    all
}

/// The interval of possible values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    const fn of(low: f64, high: f64) -> Interval {
        Interval { low, high }
    }

    /// The estimate whose bounds are the ends of the interval.
    fn middle(self) -> Estimate {
        Estimate { value: (self.low + self.high) / 2.0, error: (self.high - self.low) / 2.0 }
    }

    /// Applies `f`, which need not be increasing: a scale of 0 becomes 1.
    fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        let (low, high) = (f(self.low), f(self.high));
        Interval::of(low.min(high), low.max(high))
    }
}

impl Problem {
    /// The largest of the values of `f`, where `f` grows with the value.
    fn largest(values: &[Estimate], f: impl Fn(f64) -> f64) -> Interval {
        values.iter().fold(Interval::of(0.0, 0.0), |most, value| {
            let (low, high) = (f(value.value - value.error), f(value.value + value.error));
            Interval::of(most.low.max(low), most.high.max(high))
        })
    }

    fn magnitude(values: &[Estimate]) -> Interval {
        values.iter().fold(Interval::of(0.0, 0.0), |most, value| {
            let size = value.value.abs();
            let low = (size - value.error).max(0.0);
            Interval::of(most.low.max(low), most.high.max(size + value.error))
        })
    }

    fn scales(&self, values: &[Estimate]) -> Interval {
        let finite = DataType::F32.round(Self::magnitude(values).high).is_finite();
        let round = |x: f64| match self.scale_type {
            _ if x == 0.0 => 1.0,
            DataType::F8E4m3 if finite => DataType::F8E4m3
                .round(DataType::F32.round(x).clamp(LOWEST_E4M3, DataType::F8E4m3.largest())),
            scale_type => {
                let scale = scale_type.round(DataType::F32.round(x));
                if scale == 0.0 { 1.0 } else { scale }
            }
        };
        let largest = self.data_type.largest();
        match self.kind {
            Kind::Largest => Self::magnitude(values).map(|size| round(size / largest)),
            Kind::PowerOfTwo => Self::magnitude(values).map(|size| match size {
                0.0 => 1.0,
                size => (floor_log2(size) - floor_log2(largest)).max(LOWEST_POWER).exp2(),
            }),
            Kind::Range => {
                let (most, least) =
                    (Self::largest(values, |x| x), Self::largest(&negated(values), |x| x));
                // The difference is rounded before it is divided.
                let range = Interval::of(most.low + least.low, most.high + least.high);
                Interval::of(range.low - ulp(range.low), range.high + ulp(range.high))
                    .map(|range| round(range.max(0.0) / largest))
            }
        }
    }

    fn zero_points(&self, values: &[Estimate], scales: Interval) -> Interval {
        let least = Self::largest(&negated(values), |x| x);
        let (low, high) = (least.low / scales.high, least.high / scales.low);
        let round = |x: f64| x.round_ties_even().clamp(0.0, 255.0);
        // The quotient is rounded, or the product with a rounded reciprocal is.
        Interval::of(round(low - 2.0 * ulp(low)), round(high + 2.0 * ulp(high)))
    }

    /// An element before it is rounded. Values that would round to an infinity or NaN saturate at the largest value of
    /// the type.
    fn element(&self, value: Estimate, scales: Interval, shifts: Interval) -> Estimate {
        let Estimate { value: y, error } = value;
        let (ends, limit) = ([y - error, y + error], self.data_type.largest());
        let quotients = ends.into_iter().flat_map(|y| [y / scales.low, y / scales.high]);
        let (low, high) = quotients
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), q| (low.min(q), high.max(q)));
        // A power of two divides exactly; else the reciprocal and the product are rounded.
        let rounding = |q: f64| match self.kind {
            Kind::PowerOfTwo => 0.0,
            Kind::Largest => 2.0 * ulp(q),
            Kind::Range => 2.0 * ulp(q) + ulp(255.0),
        };
        let zero = y == 0.0 && error == 0.0;
        let around = |q: f64| if zero { 0.0 } else { rounding(q) };
        let low = low - around(low) + shifts.low;
        let high = high + around(high) + shifts.high;
        match self.data_type.is_integer() {
            true => Interval::of(low, high),
            false => Interval::of(low.clamp(-limit, limit), high.clamp(-limit, limit)),
        }
        .middle()
    }
}

fn negated(values: &[Estimate]) -> Vec<Estimate> {
    values.iter().map(|value| Estimate { value: -value.value, error: value.error }).collect()
}

/// `floor(log2(x))`, exactly.
fn floor_log2(x: f64) -> f64 {
    f64::from((x.to_bits() >> 52) as u32 & 0x7ff) - 1023.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: Kind, dt: DataType, scale_type: DataType, values: &[f64]) -> Quantized {
        let values: Vec<Estimate> = values.iter().copied().map(Estimate::exact).collect();
        let group = values.len();
        quantize(&Problem { kind, group, data_type: dt, scale_type }, &values)
    }

    #[test]
    fn the_largest_value_becomes_that_of_the_type() {
        let all = run(Kind::Largest, DataType::S8, DataType::F32, &[0.5, -2.0, 1.0, 0.0]);
        assert_eq!(all.scales, [Estimate::exact(DataType::F32.round(2.0 / 127.0))]);
        let elements: Vec<f64> =
            all.elements.iter().map(|element| DataType::S8.round(element.value)).collect();
        assert_eq!(elements, [32.0, -127.0, 64.0, 0.0]);
        let all = run(Kind::Largest, DataType::F8E4m3, DataType::F8E4m3, &[448.0 * 3.2, 1.0]);
        assert_eq!(all.scales, [Estimate::exact(3.25)]);
    }

    #[test]
    fn powers_of_two_leave_room_below_the_largest_value() {
        let all = run(Kind::PowerOfTwo, DataType::F8E4m3, DataType::E8m0, &[500.0, 1.0]);
        assert_eq!(all.scales, [Estimate::exact(1.0)]);
        assert_eq!(all.elements[0], Estimate::exact(448.0), "saturated");
        let all = run(Kind::PowerOfTwo, DataType::F8E5m2, DataType::E8m0, &[1.0, 0.3]);
        assert_eq!(all.scales, [Estimate::exact(1.0 / 32768.0)]);
    }

    #[test]
    fn groups_of_zeros_have_scale_one() {
        for kind in [Kind::Largest, Kind::PowerOfTwo, Kind::Range] {
            let all = run(kind, DataType::U8, DataType::F32, &[0.0, -0.0]);
            assert_eq!(all.scales[0], Estimate::exact(1.0), "{kind:?}");
            assert_eq!(all.elements, [Estimate::exact(0.0); 2], "{kind:?}");
        }
    }

    /// Scales that f8_e4m3 would round to 0 or to NaN.
    #[test]
    fn scales_of_f8_e4m3_are_limited() {
        let all = run(Kind::Largest, DataType::F8E4m3, DataType::F8E4m3, &[0.25, 0.125]);
        assert_eq!(all.scales[0], Estimate::exact(1.0 / 512.0));
        assert!((all.elements[0].value - 128.0).abs() < 1e-4);
        let all = run(Kind::Largest, DataType::S8, DataType::F8E4m3, &[1e5, 4480.0]);
        assert_eq!(all.scales[0], Estimate::exact(448.0));
        let elements: Vec<f64> =
            all.elements.iter().map(|element| DataType::S8.round(element.value)).collect();
        assert_eq!(elements, [127.0, 10.0]);
        let all = run(Kind::Range, DataType::U8, DataType::F8E4m3, &[-0.01, 0.02]);
        assert_eq!(all.scales[0], Estimate::exact(1.0 / 512.0));
        assert_eq!(all.zero_points, [Estimate::exact(5.0)]);
    }

    #[test]
    fn ranges_have_zero_points() {
        let all = run(Kind::Range, DataType::U8, DataType::F32, &[-1.0, 4.1, 0.0]);
        assert!((all.scales[0].value - 5.1 / 255.0).abs() < 1e-8);
        assert_eq!(all.zero_points, [Estimate::exact(50.0)]);
        let elements: Vec<f64> =
            all.elements.iter().map(|element| DataType::U8.round(element.value)).collect();
        assert_eq!(elements, [0.0, 255.0, 50.0]);
    }

    /// An uncertain value near a power of two has two possible scales, and elements between.
    #[test]
    fn uncertain_scales_widen_the_elements() {
        let values = [Estimate { value: 256.0, error: 1e-4 }, Estimate::exact(3.0)];
        let problem = Problem {
            kind: Kind::PowerOfTwo,
            group: 2,
            data_type: DataType::F8E4m3,
            scale_type: DataType::E8m0,
        };
        let all = quantize(&problem, &values);
        assert_eq!(all.scales[0], Estimate { value: 0.75, error: 0.25 });
        assert_eq!(all.elements[1], Estimate { value: 4.5, error: 1.5 });
    }
}
