//! Why is an output so small, or so large? [`Explain`] measures the rows of a tensor.
//!
//! ```
//! use norm_rs::explain::{Explain, RemedyKind, Warnings};
//! use norm_rs::{DataType, Engine, Memory, MemoryDesc};
//!
//! let engine = Engine::cpu()?;
//! let rows = MemoryDesc::dense(&[2, 64], DataType::F32)?;
//! let small = vec![0.005f32; 128];
//! let src = Memory::from_slice(&engine, &rows, &small)?;
//! let explain = Explain::new(&src).epsilon(1e-5);
//! let found = explain.measure()?;
//! // 0.005 / sqrt(0.005^2 + 1e-5)
//! assert!((found.ratio - 0.84515).abs() < 1e-5);
//! assert!(found.warnings.contains(Warnings::EPSILON_DOMINATES));
//! let remedies = explain.remedies()?;
//! let smaller = remedies.iter().find(|remedy| remedy.kind == RemedyKind::SmallerEpsilon);
//! assert!((smaller.unwrap().ratio - 0.99).abs() < 1e-6);
//! println!("{}", explain.report()?);
//! # Ok::<(), norm_rs::Error>(())
//! ```

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::ops::BitOr;
use std::ptr;

use norm_sys as sys;

use crate::error::{Error, Result, check};
use crate::layer_normalization::{DEFAULT_EPSILON, Flags};
use crate::memory::{Access, Memory};

/// The rows that are explained, and how they are normalized. The formulas are those of `norm_explain` in `norm.h`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Explain<'x> {
    src: sys::const_norm_memory_t,
    scale: sys::const_norm_memory_t,
    epsilon: f32,
    flags: Flags,
    row: i64,
    memories: PhantomData<&'x ()>,
}

impl<'x> Explain<'x> {
    /// All rows of `src` (f32, bf16, f16 or f64, any layout) under RMS normalization with [`DEFAULT_EPSILON`] and no
    /// scale.
    pub fn new<A: Access>(src: &'x Memory<'_, A>) -> Self {
        Self {
            src: src.as_ptr(),
            scale: ptr::null(),
            epsilon: DEFAULT_EPSILON,
            flags: Flags::RMS_NORM,
            row: -1,
            memories: PhantomData,
        }
    }

    /// The scale: one dimension, as long as a row.
    pub fn scale<A: Access>(self, scale: &'x Memory<'_, A>) -> Self {
        Self { scale: scale.as_ptr(), ..self }
    }

    /// The normalization's epsilon.
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon, ..self }
    }

    /// [`Flags::RMS_NORM`], without which the mean of each row is subtracted first.
    pub fn flags(self, flags: Flags) -> Self {
        Self { flags, ..self }
    }

    /// One row instead of all.
    pub fn row(self, row: usize) -> Self {
        // An index that does not fit i64 is out of range anyway.
        Self { row: i64::try_from(row).unwrap_or(i64::MAX), ..self }
    }

    /// Measures the rows.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if scale, epsilon, flags or the row do not
    /// fit; [`ErrorKind::Unimplemented`](crate::ErrorKind::Unimplemented) for other types.
    pub fn measure(&self) -> Result<Explanation> {
        // SAFETY: all members are numbers, and 0 is valid.
        let mut found: sys::norm_explanation_t = unsafe { std::mem::zeroed() };
        let Self { src, scale, epsilon, flags, row, .. } = *self;
        // SAFETY: the memories are borrowed, and `found` is a place for the answer.
        check(unsafe { sys::norm_explain(src, scale, epsilon, flags.to_c(), row, &mut found) })?;
        Ok(Explanation::of_c(&found))
    }

    /// What would change the size of the output, with the effect on the rows.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn remedies(&self) -> Result<Vec<Remedy>> {
        self.remedies_of_c()?.iter().map(Remedy::of_c).collect()
    }

    /// The measures and the remedies as lines of text.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn report(&self) -> Result<String> {
        Ok(text(&self.measure()?.to_c(), self.remedies_of_c()?.as_ptr()))
    }

    fn remedies_of_c(&self) -> Result<[sys::norm_remedy_t; sys::NORM_REMEDIES as usize]> {
        // SAFETY: as above.
        let mut list: [sys::norm_remedy_t; sys::NORM_REMEDIES as usize] =
            unsafe { std::mem::zeroed() };
        let Self { src, scale, epsilon, flags, row, .. } = *self;
        // SAFETY: the memories are borrowed, and the list has room for all remedies.
        check(unsafe {
            sys::norm_explain_remedies(src, scale, epsilon, flags.to_c(), row, list.as_mut_ptr())
        })?;
        Ok(list)
    }
}

/// What was found; see `norm_explanation_t` in `norm_explain.h`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The number of rows explained.
    pub rows: usize,
    /// Their length.
    pub cols: usize,
    /// The epsilon, as an f32.
    pub epsilon: f64,
    /// RMS of src, less the row's mean without [`Flags::RMS_NORM`].
    pub rms_in: f64,
    /// `sqrt(rms_in^2 + epsilon)`.
    pub divisor: f64,
    /// RMS of the normalized values before scale.
    pub ratio: f64,
    /// The smallest ratio of a row that has more than zeros.
    pub smallest_ratio: f64,
    /// That row.
    pub smallest_ratio_row: usize,
    /// The mean of scale; 1 without one.
    pub scale_mean: f64,
    /// RMS of scale; 1 without one.
    pub scale_rms: f64,
    /// Pearson's correlation of |scale| and |src| / RMS of its row; 0 if one of them is constant.
    pub correlation: f64,
    /// RMS of the output without shift.
    pub rms_out: f64,
    /// `rms_out / rms_in`.
    pub amplification: f64,
    /// What to look at.
    pub warnings: Warnings,
}

impl Explanation {
    fn of_c(found: &sys::norm_explanation_t) -> Self {
        Self {
            rows: found.rows as usize,
            cols: found.cols as usize,
            epsilon: found.epsilon,
            rms_in: found.rms_in,
            divisor: found.divisor,
            ratio: found.ratio,
            smallest_ratio: found.smallest_ratio,
            smallest_ratio_row: found.smallest_ratio_row as usize,
            scale_mean: found.scale_mean,
            scale_rms: found.scale_rms,
            correlation: found.correlation,
            rms_out: found.rms_out,
            amplification: found.amplification,
            warnings: Warnings(found.warnings),
        }
    }

    fn to_c(&self) -> sys::norm_explanation_t {
        sys::norm_explanation_t {
            rows: self.rows as i64,
            cols: self.cols as i64,
            epsilon: self.epsilon,
            rms_in: self.rms_in,
            divisor: self.divisor,
            ratio: self.ratio,
            smallest_ratio: self.smallest_ratio,
            smallest_ratio_row: self.smallest_ratio_row as i64,
            scale_mean: self.scale_mean,
            scale_rms: self.scale_rms,
            correlation: self.correlation,
            rms_out: self.rms_out,
            amplification: self.amplification,
            warnings: self.warnings.0,
        }
    }
}

impl fmt::Display for Explanation {
    /// Several lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text(&self.to_c(), ptr::null()).trim_end())
    }
}

/// The text that the library writes.
fn text(found: &sys::norm_explanation_t, remedies: *const sys::norm_remedy_t) -> String {
    // SAFETY: the explanation is valid, and so are the remedies unless NULL; 0 bytes are written.
    let size = unsafe { sys::norm_explanation_text(found, remedies, ptr::null_mut(), 0) };
    let mut bytes = vec![0u8; size];
    // SAFETY: as above, and the buffer has this size.
    unsafe { sys::norm_explanation_text(found, remedies, bytes.as_mut_ptr().cast(), size) };
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}

/// Warnings, combined with `|`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Warnings(u32);

impl Warnings {
    /// No warnings.
    pub const NONE: Self = Self(0);
    /// A row has a ratio below 0.9: epsilon makes its output smaller by a tenth or more.
    pub const EPSILON_DOMINATES: Self = Self(sys::norm_warning_epsilon_dominates);
    /// Epsilon is 0 in the type of src. This library adds it in f32 or f64.
    pub const EPSILON_VANISHES: Self = Self(sys::norm_warning_epsilon_vanishes);
    /// A square exceeds the largest number of the type of src. This library is not affected.
    pub const SQUARES_OVERFLOW: Self = Self(sys::norm_warning_squares_overflow);
    /// There are rows of zeros.
    pub const ZERO_ROWS: Self = Self(sys::norm_warning_zero_rows);
    /// Src or scale has a NaN or an infinity.
    pub const NOT_FINITE: Self = Self(sys::norm_warning_not_finite);

    const ALL: [Self; 5] = [
        Self::EPSILON_DOMINATES,
        Self::EPSILON_VANISHES,
        Self::SQUARES_OVERFLOW,
        Self::ZERO_ROWS,
        Self::NOT_FINITE,
    ];

    /// Whether all of `other`'s warnings are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Warnings {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::ALL.into_iter().filter(|warning| self.contains(*warning));
        // SAFETY: any value is allowed; the string returned is static.
        let name = |warning: Self| unsafe { CStr::from_ptr(sys::norm_warning2str(warning.0)) };
        f.debug_list().entries(set.map(|warning| name(warning).to_string_lossy())).finish()
    }
}

/// What changes the size of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemedyKind {
    /// An epsilon with a ratio of 0.99.
    SmallerEpsilon,
    /// An epsilon that doubles the divisor.
    LargerEpsilon,
    /// A limit for the elements of src: 3 times their RMS.
    ClipSrc,
    /// 1 is added to scale.
    ScalePlusOne,
    /// A factor of the scale of attention whose queries or keys the output is.
    Temperature,
    /// A factor of scale, folded into the stored weights.
    FoldRatio,
}

/// A remedy and its effect on the rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Remedy {
    /// What is changed.
    pub kind: RemedyKind,
    /// The epsilon, limit, summand or factor.
    pub value: f64,
    /// RMS of the normalized values with the remedy.
    pub ratio: f64,
    /// RMS of the output with the remedy.
    pub rms_out: f64,
    /// `rms_out` by the RMS of the rows without the remedy.
    pub amplification: f64,
    /// The factor by which the scores of attention change whose queries or keys the output is.
    pub scores: f64,
}

impl Remedy {
    fn of_c(remedy: &sys::norm_remedy_t) -> Result<Self> {
        let kind = match remedy.kind {
            sys::norm_remedy_smaller_epsilon => RemedyKind::SmallerEpsilon,
            sys::norm_remedy_larger_epsilon => RemedyKind::LargerEpsilon,
            sys::norm_remedy_clip_src => RemedyKind::ClipSrc,
            sys::norm_remedy_scale_plus_one => RemedyKind::ScalePlusOne,
            sys::norm_remedy_temperature => RemedyKind::Temperature,
            sys::norm_remedy_fold_ratio => RemedyKind::FoldRatio,
            _ => return Err(Error::defect("the library has a remedy that norm-rs does not know")),
        };
        let &sys::norm_remedy_t { value, ratio, rms_out, amplification, scores, .. } = remedy;
        Ok(Self { kind, value, ratio, rms_out, amplification, scores })
    }
}
