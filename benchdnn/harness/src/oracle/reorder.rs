//! Reorder, in f64.
//!
//! ```text
//! x   = src_scale*(src - src_zero_point)
//! x  += sum_scale*dst                     dst as it was before
//! dst = x/dst_scale + dst_zero_point
//! ```
//!
//! Only attributes cause rounding: without them the result is the source's value, which dst's type
//! rounds once.

use crate::data_type::DataType;

/// The attributes of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The factor of src.
    pub src_scale: f64,
    /// Subtracted from src first.
    pub src_zero_point: f64,
    /// The scale of the sum, and the previous value of dst.
    pub sum: Option<(f64, f64)>,
    /// The divisor of dst.
    pub dst_scale: f64,
    /// Added at the end.
    pub dst_zero_point: f64,
}

impl Default for Terms {
    /// No attributes.
    fn default() -> Terms {
        Terms {
            src_scale: 1.0,
            src_zero_point: 0.0,
            sum: None,
            dst_scale: 1.0,
            dst_zero_point: 0.0,
        }
    }
}

/// The type of the arithmetic: f64 if f32 does not represent all values of both types.
pub fn precision(src: DataType, dst: DataType) -> DataType {
    let wide = |dt| matches!(dt, DataType::F64 | DataType::S32 | DataType::S64);
    if wide(src) || wide(dst) { DataType::F64 } else { DataType::F32 }
}

/// The value of an element before it is rounded to dst's type, and the possible error of the arithmetic: an ulp for
/// each inexact operation.
pub fn element(src: f64, terms: &Terms, precision: DataType) -> (f64, f64) {
    let Terms { src_scale, src_zero_point, sum, dst_scale, dst_zero_point } = *terms;
    let mut estimate = (src, 0.0);
    let mut step = |is_neutral: bool, slope: f64, of: &dyn Fn(f64) -> f64| {
        if is_neutral {
            return;
        }
        let (value, error) = estimate;
        let result = of(value);
        // It is not known whether an f64 operation is exact.
        let exact = precision == DataType::F32 && precision.round(result) == result;
        let own = if exact || !result.is_finite() { 0.0 } else { precision.ulp(result) };
        estimate = (result, error * slope.abs() + own);
    };
    step(src_zero_point == 0.0, 1.0, &|x| x - src_zero_point);
    step(src_scale == 1.0, src_scale, &|x| x * src_scale);
    if let Some((scale, before)) = sum {
        step(false, 1.0, &|x| x + scale * before);
    }
    step(dst_scale == 1.0, 1.0 / dst_scale, &|x| x / dst_scale);
    step(dst_zero_point == 0.0, 1.0, &|x| x + dst_zero_point);
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_has_its_place() {
        let terms = Terms {
            src_scale: 4.0,
            src_zero_point: -1.0,
            sum: Some((0.5, 6.0)),
            dst_scale: 2.0,
            dst_zero_point: 10.0,
        };
        let (value, error) = element(7.0, &terms, DataType::F32);
        assert_eq!((value, error), (((7.0 + 1.0) * 4.0 + 3.0) / 2.0 + 10.0, 0.0));
        assert_eq!(element(7.3, &Terms::default(), DataType::F32), (7.3, 0.0));
    }

    #[test]
    fn only_what_is_rounded_is_allowed_for() {
        let third = Terms { dst_scale: 3.0, ..Terms::default() };
        let (value, error) = element(1.0, &third, DataType::F32);
        assert_eq!(error, DataType::F32.ulp(value));
        let (_, error) = element(1.0, &third, DataType::F64);
        assert_eq!(error, DataType::F64.ulp(value));
        assert_eq!(precision(DataType::S32, DataType::F32), DataType::F64);
        assert_eq!(precision(DataType::S8, DataType::Bf16), DataType::F32);
    }
}
