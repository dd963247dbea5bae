//! The width of a sliding window, from statistics of a sequence.

use crate::error::{Error, Result};
use crate::primitive::enumerators;
use norm_sys as sys;

enumerators! {
    /// What the width follows.
    WindowStrategy: norm_window_strategy_t {
        Fixed = norm_window_fixed, "fixed";
        Length = norm_window_by_length, "by_length";
        Entropy = norm_window_by_entropy, "by_entropy";
        EntropyOver4 = norm_window_by_entropy_over_4, "by_entropy_over_4";
        Perplexity = norm_window_by_perplexity, "by_perplexity";
    }
}

/// The parameters of [`adaptive_window`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowState {
    pub(crate) strategy: WindowStrategy,
    pub(crate) length: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// Entropy or perplexity; NaN if there is none.
    pub(crate) measured: f64,
    pub(crate) vocabulary: f64,
    /// The previous window; 0 for none.
    pub(crate) previous: i64,
    /// The share of the way to the new window to move, at most 1.
    pub(crate) smoothing: f64,
    /// The largest change from the previous window, once that is limited to `min` and `max`; 0 for no limit.
    pub(crate) max_step: i64,
}

/// The next window.
pub(crate) fn adaptive_window(state: &WindowState) -> Result<i64> {
    check(state)?;
    let target = target(state);
    if state.previous == 0 {
        return Ok(target);
    }
    // The bounds may have changed since the previous window.
    let from = state.previous.clamp(state.min, state.max);
    let step = ((target - from) as f64 * state.smoothing).round_ties_even() as i64;
    let most = if state.max_step == 0 { i64::MAX } else { state.max_step };
    Ok((from + step.clamp(-most, most)).clamp(state.min, state.max))
}

fn check(state: &WindowState) -> Result<()> {
    let WindowState { strategy, length, min, max, measured, vocabulary, .. } = *state;
    // Sums and differences of windows stay within i64.
    const MOST: i64 = i64::MAX / 4;
    let bad = |text: std::fmt::Arguments<'_>| Err(Error::invalid(text));
    if length < 0 {
        return bad(format_args!("length: {length} is below 0"));
    }
    if min < 1 {
        return bad(format_args!("min_window: {min} is below 1"));
    }
    if !(min..=MOST).contains(&max) {
        return bad(format_args!("max_window: {max} is below min_window, {min}, or too large"));
    }
    if !(0..=MOST).contains(&state.previous) {
        return bad(format_args!("previous: {} is below 0", state.previous));
    }
    if !(state.smoothing > 0.0 && state.smoothing <= 1.0) {
        return bad(format_args!("smoothing: {} is not above 0 and at most 1", state.smoothing));
    }
    if state.max_step < 0 {
        return bad(format_args!("max_step: {} is below 0", state.max_step));
    }
    let least = match strategy {
        WindowStrategy::Entropy | WindowStrategy::EntropyOver4 => 0.0,
        WindowStrategy::Perplexity => 1.0,
        _ => return Ok(()),
    };
    if measured < least {
        let name = strategy.name();
        return bad(format_args!("measured: {measured} is below {least}, the minimum of {name}"));
    }
    if strategy == WindowStrategy::Perplexity && !(vocabulary >= 2.0 && vocabulary.is_finite()) {
        return bad(format_args!("vocabulary: {vocabulary} is not a number of tokens, 2 or more"));
    }
    Ok(())
}

/// The window without smoothing.
fn target(state: &WindowState) -> i64 {
    let WindowState { strategy, length, min, max, measured, vocabulary, previous, .. } = *state;
    let by_length = (length / 2).clamp(min, max);
    let current = if previous == 0 { by_length } else { previous };
    let part = match strategy {
        WindowStrategy::Fixed => return max,
        WindowStrategy::Length => return by_length,
        _ if measured.is_nan() => return by_length,
        // Equal weights have the largest entropy, the logarithm of their number.
        WindowStrategy::Entropy => measured / (current.max(2) as f64).ln(),
        WindowStrategy::EntropyOver4 => measured / 4.0,
        WindowStrategy::Perplexity => measured.ln() / vocabulary.ln(),
    };
    // A large difference may be rounded up.
    (min + ((max - min) as f64 * part.min(1.0)).floor() as i64).min(max)
}

#[cfg(test)]
mod tests;
