//! Data of a rope: elements of moderate size with both signs; positions far beyond current contexts, including the
//! first ones and those around powers of two; a model's frequencies.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;

/// The parameters of a problem's data.
#[derive(Clone, Copy, Debug)]
pub struct RopeFill {
    /// Elements of src besides diff_dst, and their type; 0 without.
    pub src: (usize, DataType),
    /// Elements of the input.
    pub count: usize,
    /// Their type.
    pub data_type: DataType,
    /// Numbers of positions.
    pub positions: usize,
    /// The positions are below this number.
    pub limit: usize,
    /// Pairs that are rotated.
    pub pairs: usize,
    /// Elements of each table, and their type.
    pub table: (usize, DataType),
    /// Elements of the scale, and their type.
    pub scale: (usize, DataType),
    /// Tokens, and the slots that they are written to; 0 without.
    pub slots: (usize, usize),
}

/// The inputs.
#[derive(Clone, Debug, Default)]
pub struct RopeData {
    /// src, or diff_dst.
    pub input: Vec<f64>,
    /// src besides diff_dst.
    pub src: Vec<f64>,
    /// Positions.
    pub positions: Vec<f64>,
    /// Frequencies.
    pub frequencies: Vec<f64>,
    /// Tables of cosines and sines.
    pub tables: [Vec<f64>; 2],
    /// The factors of a normalization.
    pub scale: Vec<f64>,
    /// A slot for each token, or -1.
    pub slots: Vec<f64>,
}

/// Streams of random numbers for each tensor.
const INPUT: u64 = 0x726f_7065;
const SRC: u64 = 0x736f_7572;
const POSITIONS: u64 = 0x706f_7369;
const SCALE: u64 = 0x7363_616c;

/// The elements of heads.
fn elements(stream: u64, (count, data_type): (usize, DataType), fill: Fill) -> Vec<f64> {
    const ROW: usize = 64;
    let (mut input, mut at) = (Vec::with_capacity(count), 0);
    while at < count {
        let mut generator = Generator::new(stream, at / ROW);
        // In some heads the squares overflow f32, which tests the normalization.
        let wide = data_type != DataType::F16 && fill == Fill::Random;
        let unit = match generator.below(128) {
            0 if wide => 1e25,
            1 if wide => 1e-25,
            _ => 1.0,
        };
        for _ in at..count.min(at + ROW) {
            input.push(data_type.round(unit * generator.normal()));
        }
        at += ROW;
    }
    input
}

/// The values of all inputs.
pub fn rope(p: &RopeFill, fill: Fill) -> RopeData {
    let input = elements(INPUT, (p.count, p.data_type), fill);
    let mut generator = Generator::new(POSITIONS, 0);
    let largest = p.limit.max(1) as u64 - 1;
    let positions = (0..p.positions).map(|at| {
        let position = match at % 5 {
            // The last position, and the largest of shorter contexts.
            0 => largest >> (at / 5 % 20),
            1 => at as u64,
            _ => generator.below(largest + 1),
        };
        position.min(largest) as f64
    });
    let frequency = |i: usize| 10_000f64.powf(-(i as f64) / p.pairs as f64);
    let angle = |at: usize| ((at / p.pairs.max(1)) as f64) * frequency(at % p.pairs.max(1));
    let table = |of: fn(f64) -> f64| {
        let (count, data_type) = p.table;
        (0..count).map(|at| data_type.round(of(angle(at)))).collect()
    };
    let mut scale = Generator::new(SCALE, 0);
    let (tokens, slots) = p.slots;
    RopeData {
        input,
        src: elements(SRC, p.src, fill),
        positions: positions.collect(),
        frequencies: (0..p.pairs).map(frequency).collect(),
        tables: [table(f64::cos), table(f64::sin)],
        scale: (0..p.scale.0)
            .map(|_| p.scale.1.round(0.5 + scale.below(64) as f64 / 64.0))
            .collect(),
        // From the last slot down; some tokens have none.
        slots: (0..tokens)
            .map(|token| if token % 4 == 2 { -1.0 } else { (slots - 1 - token) as f64 })
            .collect(),
    }
}
