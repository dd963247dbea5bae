//! Data of a reorder: values over the whole range of src's type, with different neighbours. dst's type has to round
//! many of them or cannot represent them.

use crate::data_type::DataType;

/// The values of src, in row-major order.
pub fn reorder(count: usize, src: DataType, dst: DataType) -> Vec<f64> {
    (0..count).map(|i| value(i, src, dst)).collect()
}

fn value(i: usize, src: DataType, dst: DataType) -> f64 {
    let number = (i * 37 % 509) as f64 - 254.0;
    let value = match src {
        DataType::S8 => (i * 37 % 256) as f64 - 128.0,
        DataType::U8 => (i * 37 % 256) as f64,
        // Occasionally a value that f32 does not represent, or an extreme one.
        DataType::S32 => match i % 7 {
            0 => number * 8_388_593.0,
            _ => number,
        },
        DataType::S64 => match i % 7 {
            0 => number * 8_388_593.0 * 1_048_573.0,
            3 => number * 8_388_593.0,
            _ => number,
        },
        // Some that integers do not represent, and some that are too large for short types.
        DataType::E8m0 => f64::exp2((i * 37 % 31) as f64 - 8.0),
        // Fractions that integers and short types have to round, including halves.
        _ => match i % 11 {
            3 => number * 1.000_001_3,
            // Only f64 and long integers represent these.
            5 if src == DataType::F64 => number * 8_388_593.3,
            5 => number * 300.7,
            7 => number / 512.0,
            // Infinities stay infinite; integers saturate.
            9 if i % 143 == 9 && !src.is_integer() => f64::INFINITY.copysign(number),
            _ => number / 8.0,
        },
    };
    let value = src.round(value);
    match (value.is_finite(), src, dst) {
        // A NaN of a type without infinities says nothing about integers.
        (false, DataType::F8E4m3, _) => src.round(number / 8.0),
        _ => value,
    }
}
