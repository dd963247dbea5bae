//! Data of an attention: queries of several magnitudes, so that some weights are even and some are those of a single
//! key; masks that hide a quarter of the keys; lengths from 0 to all; pages in no particular order.

use super::Fill;
use super::generator::Generator;
use crate::data_type::DataType;

/// Streams of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Queries.
    Queries,
    /// Keys.
    Keys,
    /// Values.
    Values,
    /// The mask.
    Mask,
    /// Sinks.
    Sinks,
    /// Lengths of queries.
    QueryLengths,
    /// Lengths of keys.
    KeyLengths,
    /// Pages.
    Pages,
    /// diff_dst.
    DiffDst,
    /// Scales of keys.
    KeyScales,
    /// Scales of values.
    ValueScales,
}

const SEED: u64 = 0x7364_7061;

fn generator(stream: Stream, index: usize) -> Generator {
    Generator::new(SEED + stream as u64, index)
}

/// The magnitude of a row. Every other head has rows so small that products of two bf16 are subnormal; implementations
/// may multiply the other heads with other instructions.
fn unit(
    (stream, head): (Stream, usize),
    fill: Fill,
    data_type: DataType,
    generator: &mut Generator,
) -> f64 {
    match (stream, fill) {
        (Stream::Queries, Fill::Exact) => [1.0, 1.0, 2.0, 5.0][generator.below(4) as usize],
        (Stream::Queries, Fill::Random) => [1.0, 3.0, 20.0, 300.0][generator.below(4) as usize],
        (Stream::Keys | Stream::Values, _) if data_type.is_integer() => 40.0,
        (Stream::Keys | Stream::Values, _) if !DataType::ROUNDED_FLOATS.contains(&data_type) => {
            16.0
        }
        (Stream::Keys | Stream::Values, Fill::Random) if data_type != DataType::F16 => {
            [1.0, 1e-37][usize::from(head % 2 == 1 && generator.below(16) == 0)]
        }
        _ => 1.0,
    }
}

/// Elements of a tensor with this row length and this many rows per head.
pub fn elements(
    stream: Stream,
    count: usize,
    (row, rows_of_head): (usize, usize),
    data_type: DataType,
    fill: Fill,
) -> Vec<f64> {
    let rows = count / row.max(1);
    let mut elements = Vec::with_capacity(count);
    for at in 0..rows {
        let mut generator = generator(stream, at);
        let head = at / rows_of_head.max(1);
        let unit = unit((stream, head), fill, data_type, &mut generator);
        elements.extend((0..row).map(|_| data_type.round(unit * generator.normal())));
    }
    elements
}

/// A mask: 0 and other numbers for u8, otherwise numbers from -4 to 4 and -Inf.
pub fn mask(count: usize, data_type: DataType) -> Vec<f64> {
    let mut generator = generator(Stream::Mask, 0);
    let hides = data_type == DataType::U8;
    let one = |_| match (generator.below(4), hides) {
        (0, true) => 0.0,
        (0, false) => f64::NEG_INFINITY,
        (_, true) => 1.0 + generator.below(255) as f64,
        (_, false) => data_type.round(generator.below(513) as f64 / 64.0 - 4.0),
    };
    (0..count).map(one).collect()
}

/// Scales of keys or values that give them the usual magnitude.
pub fn scales(stream: Stream, count: usize) -> Vec<f64> {
    let mut generator = generator(stream, 0);
    (0..count)
        .map(|_| DataType::F32.round((0.5 + generator.below(1000) as f64 / 700.0) / 30.0))
        .collect()
}

/// Scores of sinks.
pub fn sinks(heads: usize) -> Vec<f64> {
    let mut generator = generator(Stream::Sinks, heads);
    (0..heads).map(|_| DataType::F32.round(1.0 + 2.0 * generator.normal())).collect()
}

/// The usual slopes of ALiBi: 2^(-8h/H).
pub fn slopes(heads: usize) -> Vec<f64> {
    let slope = |h: usize| (-8.0 * (h + 1) as f64 / heads as f64).exp2();
    (0..heads).map(|h| DataType::F32.round(slope(h))).collect()
}

/// Lengths up to `most`: the first between half and all of it, then all, then 0, then any.
pub fn lengths(stream: Stream, sequences: usize, most: usize) -> Vec<f64> {
    let mut generator = generator(stream, most);
    let one = |b: usize| {
        let any = generator.below(most as u64 + 1);
        let half = most as u64 - generator.below(most as u64 / 2) - u64::from(most > 1);
        // All queries are present where keys are not, and vice versa.
        let turn = if stream == Stream::KeyLengths { b % 5 } else { (b + 2) % 5 };
        (match turn {
            0 => half,
            1 => most as u64,
            2 if sequences > 2 => 0,
            3 => any,
            _ => half,
        }) as f64
    };
    (0..sequences).map(one).collect()
}

/// The pages of each sequence, taken from `pool` in no particular order. The first two sequences share their first
/// page. Entries beyond the lengths are not pages.
pub fn pages(
    (sequences, pages): (usize, usize),
    pool: usize,
    page_size: usize,
    lengths: &[f64],
) -> Vec<f64> {
    let mut generator = generator(Stream::Pages, pool);
    let mut all: Vec<usize> = (0..pool).collect();
    for i in (1..pool).rev() {
        all.swap(i, generator.below(i as u64 + 1) as usize);
    }
    let one = |at: usize| {
        let (sequence, page) = (at / pages, at % pages);
        let used = lengths.get(sequence).is_none_or(|length| page * page_size < *length as usize);
        match (sequence, page) {
            _ if !used => [-1.0, 1e9][at % 2],
            (1, 0) => all[0] as f64,
            _ => all[at] as f64,
        }
    };
    (0..sequences * pages).map(one).collect()
}
