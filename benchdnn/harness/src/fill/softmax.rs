//! Data of a softmax. In each row a few elements near the largest share most of the result. Rows are far from 0 on both
//! sides, where the exponential overflows unless the maximum is subtracted.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;
use crate::oracle::softmax::Rows;

/// The inputs of forward and of backward.
#[derive(Clone, Debug, Default)]
pub struct SoftmaxData {
    /// src.
    pub src: Vec<f64>,
    /// dst, which backward reads.
    pub dst: Vec<f64>,
    /// diff_dst.
    pub diff_dst: Vec<f64>,
}

impl SoftmaxData {
    /// Fills every third row with -Inf, as a mask does.
    pub fn empty_rows(&mut self, rows: Rows) {
        let elements = self.src.iter_mut().enumerate();
        for (at, x) in elements {
            let row = at / (rows.cols * rows.inner) * rows.inner + at % rows.inner;
            if row % 3 == 1 {
                *x = f64::NEG_INFINITY;
            }
        }
    }
}

/// Streams of random numbers for each tensor.
const SRC: u64 = 0x736f_6674;
const BACKWARD: u64 = 0x6261_636b;

/// The values of all inputs, in row-major order.
pub fn softmax(
    rows: Rows,
    (src_dt, dst_dt): (DataType, DataType),
    log: bool,
    fill: Fill,
) -> SoftmaxData {
    let count = rows.outer * rows.cols * rows.inner;
    let mut data =
        SoftmaxData { src: vec![0.0; count], dst: vec![0.0; count], diff_dst: vec![0.0; count] };
    for row in 0..rows.outer * rows.inner {
        let (mut src, mut backward) = (Generator::new(SRC, row), Generator::new(BACKWARD, row));
        let (outer, inner) = (row / rows.inner, row % rows.inner);
        let start = start_of_row(src_dt, &mut src);
        for col in 0..rows.cols {
            let at = (outer * rows.cols + col) * rows.inner + inner;
            data.src[at] = src_dt.round(start + element(src_dt, fill, col, &mut src));
            let (y, g) = (backward.below(16) as f64, backward.below(16) as f64);
            let g = if dst_dt == DataType::F64 { g + backward.fraction(dst_dt) } else { g };
            let y = if log { -y / 4.0 } else { (y + 1.0) / (16 * rows.cols) as f64 };
            data.dst[at] = dst_dt.round(y);
            // Mostly positive, so that the sum is not close to 0.
            data.diff_dst[at] = dst_dt.round((g - 4.0) / 8.0);
        }
    }
    data
}

/// The base of a row's values.
fn start_of_row(src_dt: DataType, generator: &mut Generator) -> f64 {
    match src_dt {
        DataType::U8 => 60.0,
        DataType::S8 => 20.0 - 60.0 * generator.below(2) as f64,
        _ => [0.0, 90.0, -90.0, 1.0][generator.below(4) as usize],
    }
}

/// An element of a row with base 0.
fn element(src_dt: DataType, fill: Fill, col: usize, generator: &mut Generator) -> f64 {
    if fill != Fill::Exact {
        return 3.0 * generator.normal();
    }
    let (near, below) = match src_dt.is_integer() {
        true => (generator.below(3) as f64, 10.0 + generator.below(6) as f64),
        false => (generator.below(16) as f64 / 8.0, 4.0 + generator.below(48) as f64 / 4.0),
    };
    let near = if src_dt == DataType::F64 { near + generator.fraction(src_dt) } else { near };
    // One in six, including the first.
    if col == 0 || generator.below(6) == 0 { near } else { near - below }
}
