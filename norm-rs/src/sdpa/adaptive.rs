//! The width of a sliding window by the length or by a measure of the model.

use std::ops::RangeInclusive;

use norm_sys as sys;

use super::dim;
use crate::error::{Error, Result, check};

/// What determines the width. Without a measure it is determined by the length.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// The largest width.
    Fixed,
    /// Half of the length.
    ByLength,
    /// The mean entropy of attention's weights, in nats, relative to the logarithm of the previous width.
    ByEntropy(Option<f64>),
    /// The same, but relative to 4.
    ByEntropyOver4(Option<f64>),
    /// The logarithm of the perplexity, relative to that of the vocabulary's size.
    ByPerplexity {
        /// 1 or more.
        perplexity: Option<f64>,
        /// Tokens in the vocabulary, 2 or more.
        vocabulary: f64,
    },
}

/// The previous window, and how the next one may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous {
    /// Its width; 1 or more.
    pub window: usize,
    /// The fraction of the difference by which the window changes: above 0; 1 for all of it.
    pub smoothing: f64,
    /// The largest change, counted from the bounds if the window is outside them; `None` for any.
    pub max_step: Option<usize>,
}

impl Previous {
    /// A window without bounds for the next one.
    pub fn new(window: usize) -> Self {
        Self { window, smoothing: 1.0, max_step: None }
    }
}

/// The width of the sliding window for the next step of a model, for
/// [`ForwardBuilder::window`](super::ForwardBuilder::window).
///
/// ```text
/// fixed               w = max
/// by length           w = length/2, within min and max
/// entropy, perplexity w = min + floor((max - min) * min(n, 1))
/// ```
///
/// with `n` the measure relative to its largest value. With a previous window, the result is `p + smoothing * (w - p)`,
/// where `p` is that window, limited to `min` and `max`, and the change is rounded to the nearest integer and limited to
/// `max_step`.
///
/// ```
/// use norm_rs::sdpa::{Previous, Strategy, adaptive_window};
/// assert_eq!(adaptive_window(Strategy::ByLength, 4096, 512..=4096, None)?, 2048);
/// assert_eq!(adaptive_window(Strategy::ByEntropyOver4(Some(2.0)), 4096, 512..=4096, None)?, 2304);
/// let previous = Previous { max_step: Some(64), ..Previous::new(1000) };
/// assert_eq!(adaptive_window(Strategy::ByLength, 8192, 512..=4096, Some(previous))?, 1064);
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for a number out of its range.
pub fn adaptive_window(
    strategy: Strategy,
    length: usize,
    bounds: RangeInclusive<usize>,
    previous: Option<Previous>,
) -> Result<usize> {
    let (kind, measured, vocabulary) = match strategy {
        Strategy::Fixed => (sys::norm_window_fixed, None, 0.0),
        Strategy::ByLength => (sys::norm_window_by_length, None, 0.0),
        Strategy::ByEntropy(entropy) => (sys::norm_window_by_entropy, entropy, 0.0),
        Strategy::ByEntropyOver4(entropy) => (sys::norm_window_by_entropy_over_4, entropy, 0.0),
        Strategy::ByPerplexity { perplexity, vocabulary } => {
            (sys::norm_window_by_perplexity, perplexity, vocabulary)
        }
    };
    if let Some(Previous { window, max_step, .. }) = previous {
        if window == 0 {
            return Err(Error::invalid("previous", "is a window of 0; pass None if there is none"));
        }
        if max_step == Some(0) {
            return Err(Error::invalid("max_step", "is 0; pass 1 or more, or None for any"));
        }
    }
    let Previous { window: before, smoothing, max_step } = previous.unwrap_or(Previous::new(0));
    let mut window = 0;
    let (length, min) = (dim("length", length)?, dim("min_window", *bounds.start())?);
    let (max, before) = (dim("max_window", *bounds.end())?, dim("previous", before)?);
    let max_step = dim("max_step", max_step.unwrap_or(0))?;
    // SAFETY: any numbers are allowed, and `window` is a place for the answer.
    check(unsafe {
        sys::norm_adaptive_window(
            kind,
            length,
            min,
            max,
            measured.unwrap_or(f64::NAN),
            vocabulary,
            before,
            smoothing,
            max_step,
            &mut window,
        )
    })?;
    Ok(usize::try_from(window).unwrap_or(0))
}
