//! Data of a gated activation: gates of both signs, small and large, some beyond a limit, some far below.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;

/// The inputs, in row-major order.
#[derive(Clone, Debug, Default)]
pub struct GatedData {
    /// Gates.
    pub gate: Vec<f64>,
    /// The factors.
    pub up: Vec<f64>,
    /// The gradient of the product.
    pub diff_dst: Vec<f64>,
}

/// Streams of random numbers.
const SEED: u64 = 0x6761_7465;
/// Elements of a stream.
const ROW: usize = 4096;

/// The values of all inputs. Those of [`Fill::Exact`] keep a distance from 0 and `limit`, where functions have kinks.
pub fn gated(
    count: usize,
    (src_dt, dst_dt): (DataType, DataType),
    limit: f64,
    fill: Fill,
) -> GatedData {
    let mut data = GatedData::default();
    for row in 0..count.div_ceil(ROW) {
        let mut random = Generator::new(SEED, row);
        for _ in row * ROW..count.min((row + 1) * ROW) {
            let (gate, up, diff_dst) = match fill {
                Fill::Exact => exact(&mut random, limit),
                Fill::Random => extreme(&mut random),
                Fill::Perf => (2.0 * random.normal(), random.normal(), random.normal()),
            };
            data.gate.push(src_dt.round(gate));
            data.up.push(src_dt.round(up));
            data.diff_dst.push(dst_dt.round(diff_dst));
        }
    }
    data
}

/// Multiples of 1/8, a little further than that from any kink.
fn exact(random: &mut Generator, limit: f64) -> (f64, f64, f64) {
    let eighths = |random: &mut Generator, most: u64| {
        let size = (2 * random.below(most) + 3) as f64 / 8.0;
        if random.below(2) == 0 { size } else { -size }
    };
    let gate = match random.below(16) {
        0 => -20.0 - random.below(100) as f64,
        1 => 9.0 + random.below(16) as f64,
        _ => eighths(random, 16),
    };
    let most = if random.below(4) == 0 { 64 } else { 16 };
    let up = eighths(random, most);
    let diff_dst = eighths(random, 8);
    // A step along a gradient must not cross the limit.
    let off = |x: f64| if (x.abs() - limit).abs() < 0.25 { x + 0.5f64.copysign(x) } else { x };
    (off(gate), off(up), diff_dst)
}

/// Numbers of every size.
fn extreme(random: &mut Generator) -> (f64, f64, f64) {
    let scale = [1.0, 1.0, 1.0, 8.0, 1e-3, 90.0, 1e4, 1e-20][random.below(8) as usize];
    (scale * random.normal(), 3.0 * random.normal(), random.normal())
}
