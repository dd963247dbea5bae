//! Data of a reorder: values of the type of src over its whole range, neighbours different, many of
//! which the type of dst has to round or cannot hold.

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
        // Now and then one that f32 does not have, or the far end.
        DataType::S32 => match i % 7 {
            0 => number * 8_388_593.0,
            _ => number,
        },
        // Fractions that whole numbers and short types have to round, halves among them.
        _ => match i % 11 {
            3 => number * 1.000_001_3,
            // Of f64 and s32 alone.
            5 if src == DataType::F64 => number * 8_388_593.3,
            5 => number * 300.7,
            7 => number / 512.0,
            // Infinities stay, or are the far end of whole numbers.
            9 if i % 143 == 9 && !src.is_integer() => f64::INFINITY.copysign(number),
            _ => number / 8.0,
        },
    };
    let value = src.round(value);
    match (value.is_finite(), src, dst) {
        // NaN of a type that has no infinity says nothing about whole numbers.
        (false, DataType::F8E4m3, _) => src.round(number / 8.0),
        _ => value,
    }
}
