//! What is explained, and its measures.
//!
//! For a row x of C elements, less its mean without `rms_norm`, and w = scale or 1 + scale:
//! rms = sqrt(sum(x^2) / C), divisor = sqrt(rms^2 + epsilon), ratio = rms / divisor, and
//! rms_out = sqrt(sum((x * w)^2) / C) / divisor. Squares are averaged over the rows.

use crate::error::{Error, Result};
use crate::simd::{DefaultEnvironment, read_wide};
use crate::tensor::{DataType, DimOffsets, MemoryDesc, Offsets};
use norm_sys as sys;
use std::ffi::CStr;
use std::ops::Range;

/// A row is dominated by epsilon if its ratio is below this.
const DOMINATED: f64 = 0.9;
/// If the variance is below this share of the mean square, there is no correlation.
const CONSTANT: f64 = 1e-12;

/// The warning bits and their names.
pub(crate) const WARNINGS: [(u32, &CStr); 5] = [
    (sys::norm_warning_epsilon_dominates, c"epsilon_dominates"),
    (sys::norm_warning_epsilon_vanishes, c"epsilon_vanishes"),
    (sys::norm_warning_squares_overflow, c"squares_overflow"),
    (sys::norm_warning_zero_rows, c"zero_rows"),
    (sys::norm_warning_not_finite, c"not_finite"),
];

/// A tensor and its data.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) desc: &'a MemoryDesc,
    /// The first element of the buffer.
    pub(crate) data: *const u8,
}

/// The rows to explain.
pub(crate) struct Subject {
    src: Rows,
    /// Scale, or 1 + scale; ones without a scale.
    weights: Rows,
    has_scale: bool,
    pub(super) plus_one: bool,
    /// Whether the mean is not subtracted.
    rms: bool,
    pub(super) epsilon: f64,
    rows: Range<usize>,
    pub(super) cols: usize,
}

/// The elements of a tensor by row and column.
struct Rows {
    data_type: DataType,
    start: *const u8,
    rows: Offsets,
    cols: DimOffsets,
}

impl Rows {
    fn new(view: View<'_>) -> Result<Self> {
        let (rows, cols) = Offsets::of(view.desc)?.split_last();
        let data_type = view.desc.data_type().unwrap_or(DataType::F32);
        let start = view.data.wrapping_add(view.desc.offset() as usize * data_type.size());
        Ok(Self { data_type, start, rows, cols })
    }

    fn get(&self, row: usize, col: usize) -> f64 {
        let at = self.rows.offset(row) + self.cols.offset(col);
        // SAFETY: the caller of `Subject::new` vouched for the buffer.
        unsafe { read_wide(self.data_type, self.start, at) }
    }
}

/// The measures; see `norm_explanation_t`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Explanation {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) epsilon: f64,
    pub(crate) rms_in: f64,
    pub(crate) divisor: f64,
    pub(crate) ratio: f64,
    pub(crate) smallest_ratio: f64,
    pub(crate) smallest_ratio_row: usize,
    pub(crate) scale_mean: f64,
    pub(crate) scale_rms: f64,
    pub(crate) correlation: f64,
    pub(crate) rms_out: f64,
    pub(crate) amplification: f64,
    pub(crate) warnings: u32,
}

/// What a remedy changes.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) epsilon: f64,
    /// Limits the magnitude of src.
    pub(super) bound: f64,
    /// Added to scale.
    pub(super) added: f64,
    /// Multiplies scale.
    pub(super) factor: f64,
}

impl Subject {
    /// # Safety
    /// The buffers have the descriptors' elements while the subject is used.
    pub(crate) unsafe fn new(
        (src, scale): (View<'_>, Option<View<'_>>),
        epsilon: f32,
        flags: u32,
        row: i64,
    ) -> Result<Self> {
        check_type("src", src.desc)?;
        let dims = src.desc.dims();
        let (Some(&cols), count) = (dims.last(), dims.iter().rev().skip(1).product::<i64>()) else {
            return Err(Error::invalid("src: the descriptor is empty"));
        };
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Error::invalid(format_args!(
                "epsilon: {epsilon} is negative or not finite"
            )));
        }
        const KNOWN: u32 = sys::norm_rms_norm | sys::norm_scale_plus_one;
        if flags & !KNOWN != 0 {
            return Err(Error::invalid(format_args!(
                "flags: {flags:#x} has flags other than rms_norm and scale_plus_one"
            )));
        }
        if !(-1..count.max(0)).contains(&row) {
            return Err(Error::invalid(format_args!(
                "row: {row} is neither -1, for all rows, nor one of the {count} rows"
            )));
        }
        if let Some(scale) = scale {
            check_type("scale", scale.desc)?;
            if scale.desc.dims() != [cols] {
                return Err(Error::invalid(format_args!(
                    "scale: it must have one dimension of {cols} elements, like a row of src"
                )));
            }
        }
        let rows = if row < 0 { 0..count as usize } else { row as usize..row as usize + 1 };
        Ok(Self {
            src: Rows::new(src)?,
            weights: Rows::new(scale.unwrap_or(src))?,
            has_scale: scale.is_some(),
            plus_one: flags & sys::norm_scale_plus_one != 0 && scale.is_some(),
            rms: flags & sys::norm_rms_norm != 0,
            epsilon: f64::from(epsilon),
            rows,
            cols: cols as usize,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols == 0
    }

    pub(super) fn unchanged(&self) -> Change {
        let added = if self.plus_one { 1.0 } else { 0.0 };
        Change { epsilon: self.epsilon, bound: f64::INFINITY, added, factor: 1.0 }
    }

    fn weight(&self, col: usize, change: &Change) -> f64 {
        let scale = if self.has_scale { self.weights.get(0, col) } else { 1.0 };
        (scale + change.added) * change.factor
    }

    /// The measures under a change.
    pub(super) fn measure(&self, change: &Change) -> Explanation {
        let _environment = DefaultEnvironment::ensure();
        let mut found = Explanation {
            rows: self.rows.len(),
            cols: self.cols,
            epsilon: change.epsilon,
            smallest_ratio: f64::INFINITY,
            ..Explanation::default()
        };
        if self.is_empty() {
            return Explanation { smallest_ratio: 0.0, ..found };
        }
        let (mut pairs, mut roots) = (Pairs::default(), [0.0f64; 3]);
        for row in self.rows.clone() {
            let measured = self.measure_row(row, change, &mut pairs);
            let RowMeasures { rms, ratio, rms_out, largest } = measured;
            for (root, value) in roots.iter_mut().zip([rms, ratio, rms_out]) {
                *root = root.hypot(value);
            }
            if rms > 0.0 && ratio < found.smallest_ratio {
                (found.smallest_ratio, found.smallest_ratio_row) = (ratio, row);
            }
            found.warnings |= if rms == 0.0 { sys::norm_warning_zero_rows } else { 0 };
            let overflows = largest * largest > largest_finite(self.src.data_type);
            found.warnings |= if overflows { sys::norm_warning_squares_overflow } else { 0 };
        }
        let count = self.rows.len() as f64;
        [found.rms_in, found.ratio, found.rms_out] = roots.map(|root| root / count.sqrt());
        found.divisor = found.rms_in.hypot(change.epsilon.sqrt());
        if found.smallest_ratio == f64::INFINITY {
            (found.smallest_ratio, found.smallest_ratio_row) = (0.0, self.rows.start);
        } else if found.smallest_ratio < DOMINATED {
            found.warnings |= sys::norm_warning_epsilon_dominates;
        }
        let weights = || (0..self.cols).map(|col| self.weight(col, change));
        found.scale_mean = weights().sum::<f64>() / self.cols as f64;
        found.scale_rms = (weights().map(|w| w * w).sum::<f64>() / self.cols as f64).sqrt();
        found.correlation = pairs.correlation();
        found.amplification = if found.rms_in > 0.0 { found.rms_out / found.rms_in } else { 0.0 };
        if change.epsilon <= smallest_kept(self.src.data_type) {
            found.warnings |= sys::norm_warning_epsilon_vanishes;
        }
        if !(found.rms_in.is_finite() && found.rms_out.is_finite()) {
            found.warnings |= sys::norm_warning_not_finite;
        }
        found
    }

    fn measure_row(&self, row: usize, change: &Change, pairs: &mut Pairs) -> RowMeasures {
        let limited = |col| {
            let x = self.src.get(row, col);
            // Unlike `clamp`, keeps NaN.
            if x.abs() > change.bound { change.bound.copysign(x) } else { x }
        };
        let count = self.cols as f64;
        let sum = || (0..self.cols).map(limited).sum::<f64>();
        let mean = if self.rms { 0.0 } else { sum() / count };
        let value = |col| limited(col) - mean;
        let largest = (0..self.cols).map(|col| value(col).abs()).fold(0.0, f64::max);
        // Relative to the largest element, squares neither overflow nor underflow.
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let squares = |weighted: bool| {
            let square = |col| {
                let weight = if weighted { self.weight(col, change) } else { 1.0 };
                (value(col) / unit * weight).powi(2)
            };
            ((0..self.cols).map(square).sum::<f64>() / count).sqrt() * unit
        };
        let rms = squares(false);
        let divisor = rms.hypot(change.epsilon.sqrt());
        // A row of zeros stays zero, even without epsilon.
        let share = |x: f64| if divisor == 0.0 { 0.0 } else { x / divisor };
        if rms > 0.0 {
            for col in 0..self.cols {
                pairs.add(value(col).abs() / rms, self.weight(col, change).abs());
            }
        }
        RowMeasures { rms, ratio: share(rms), rms_out: share(squares(true)), largest }
    }
}

struct RowMeasures {
    rms: f64,
    ratio: f64,
    rms_out: f64,
    /// The largest |x|.
    largest: f64,
}

/// The sums behind a correlation.
#[derive(Default)]
struct Pairs {
    count: f64,
    sums: [f64; 2],
    squares: [f64; 2],
    product: f64,
}

impl Pairs {
    fn add(&mut self, a: f64, b: f64) {
        self.count += 1.0;
        for (i, x) in [a, b].into_iter().enumerate() {
            self.sums[i] += x;
            self.squares[i] += x * x;
        }
        self.product += a * b;
    }

    /// Pearson's coefficient; 0 if one of the two is constant.
    fn correlation(&self) -> f64 {
        let n = self.count.max(1.0);
        let mean = self.sums.map(|sum| sum / n);
        let square = self.squares.map(|sum| sum / n);
        let variance = [0, 1].map(|i| square[i] - mean[i] * mean[i]);
        if (0..2).any(|i| variance[i] <= CONSTANT * square[i]) {
            return 0.0;
        }
        (self.product / n - mean[0] * mean[1]) / (variance[0] * variance[1]).sqrt()
    }
}

/// The measures of the unchanged rows.
pub(crate) fn explain(subject: &Subject) -> Explanation {
    subject.measure(&subject.unchanged())
}

fn check_type(name: &str, desc: &MemoryDesc) -> Result<()> {
    match desc.data_type() {
        Some(DataType::F32 | DataType::Bf16 | DataType::F16 | DataType::F64) => Ok(()),
        None => Err(Error::invalid(format_args!("{name}: the descriptor is empty"))),
        Some(other) => Err(Error::unimplemented(format_args!(
            "{name}: {} is none of f32, bf16, f16 and f64",
            other.name()
        ))),
    }
}

/// The largest finite number of a type.
fn largest_finite(data_type: DataType) -> f64 {
    match data_type {
        DataType::F16 => 65504.0,
        DataType::F64 => f64::MAX,
        // bf16 has the exponents of f32.
        _ => f64::from(f32::MAX),
    }
}

/// The largest number that the type rounds to 0: half its smallest subnormal.
fn smallest_kept(data_type: DataType) -> f64 {
    let exponent = match data_type {
        DataType::F16 => -25,
        DataType::Bf16 => -134,
        DataType::F64 => return 0.0,
        _ => -150,
    };
    2f64.powi(exponent)
}
