//! Frequencies and magnitude for the configurations of models.
//!
//! The formulas are those of the papers, as Hugging Face's transformers implements them, in f64.

use crate::error::{Error, Result};
use crate::primitive::enumerators;
use crate::text::shown;
use norm_sys as sys;
use std::f64::consts::PI;
use std::mem::MaybeUninit;

enumerators! {
    /// The scaling of frequencies.
    Scaling: norm_rope_scaling_t {
        None = norm_rope_scaling_none, "none";
        Linear = norm_rope_scaling_linear, "linear";
        Ntk = norm_rope_scaling_ntk, "ntk";
        DynamicNtk = norm_rope_scaling_dynamic_ntk, "dynamic_ntk";
        Yarn = norm_rope_scaling_yarn, "yarn";
        Llama3 = norm_rope_scaling_llama3, "llama3";
        Longrope = norm_rope_scaling_longrope, "longrope";
    }
}

impl Scaling {
    /// The minimum and maximum number of parameters for `pairs` pairs.
    fn counts(self, pairs: usize) -> (usize, usize) {
        match self {
            Self::None => (0, 0),
            Self::Linear | Self::Ntk => (1, 1),
            Self::DynamicNtk => (3, 3),
            Self::Yarn => (2, 8),
            Self::Llama3 => (4, 4),
            Self::Longrope => (2 + pairs, 2 + pairs),
        }
    }

    /// The parameters by name, in the order of norm_rope_frequencies.
    fn parameters(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Linear | Self::Ntk => "factor",
            Self::DynamicNtk => "factor, trained length, current length",
            Self::Yarn => {
                "factor, trained length and, if given, beta_fast, beta_slow, mscale, mscale_all_dim, truncate, magnitude"
            }
            Self::Llama3 => "factor, low_freq_factor, high_freq_factor, trained length",
            Self::Longrope => "factor, trained length, and a divisor for each pair of rotary_dims",
        }
    }

    /// Whether a parameter, the third or a later one, may be 0.
    fn may_be_zero(self, at: usize) -> bool {
        self == Self::Yarn && at >= 4
    }
}

fn check(scaling: Scaling, base: f64, parameters: &[f64], pairs: usize) -> Result<()> {
    let (fewest, most) = scaling.counts(pairs);
    if !(fewest..=most).contains(&parameters.len()) {
        let (name, count) = (scaling.name(), parameters.len());
        return Err(Error::invalid(format_args!(
            "num_parameters: {count}, but scaling {name} has {}: {}",
            shown(|f| match fewest == most {
                true => write!(f, "{most}"),
                false => write!(f, "{fewest} to {most}"),
            }),
            scaling.parameters()
        )));
    }
    if !(base > 1.0 && base.is_finite()) {
        return Err(Error::invalid(format_args!("base: {base} is not a number above 1")));
    }
    for (at, value) in parameters.iter().enumerate() {
        let zero = *value == 0.0 && scaling.may_be_zero(at);
        if !(*value > 0.0 && value.is_finite() || zero) {
            return Err(Error::invalid(format_args!(
                "parameters: {value}, number {at}, is not a positive number"
            )));
        }
    }
    match (scaling, parameters) {
        (Scaling::Llama3, [_, low, high, _]) if low >= high => Err(Error::invalid(format_args!(
            "parameters: low_freq_factor {low} is not below high_freq_factor {high}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a frequency for each pair and returns the magnitude. Writes nothing on failure.
pub(crate) fn frequencies(
    scaling: Scaling,
    base: f64,
    parameters: &[f64],
    frequencies: &mut [MaybeUninit<f64>],
) -> Result<f32> {
    let pairs = frequencies.len();
    check(scaling, base, parameters, pairs)?;
    let ntk = match scaling {
        Scaling::Ntk => parameters[0],
        Scaling::DynamicNtk => {
            let [factor, trained, current] = [parameters[0], parameters[1], parameters[2]];
            factor * current.max(trained) / trained - (factor - 1.0)
        }
        _ => 1.0,
    };
    let dims = 2.0 * pairs as f64;
    let base = if ntk == 1.0 || pairs == 1 { base } else { base * ntk.powf(dims / (dims - 2.0)) };
    for (pair, frequency) in frequencies.iter_mut().enumerate() {
        frequency.write(base.powf(2.0 * pair as f64 / dims).recip());
    }
    // SAFETY: they were written.
    let frequencies =
        unsafe { std::slice::from_raw_parts_mut(frequencies.as_mut_ptr().cast::<f64>(), pairs) };
    Ok(match scaling {
        Scaling::None | Scaling::Ntk | Scaling::DynamicNtk => 1.0,
        Scaling::Linear => {
            frequencies.iter_mut().for_each(|frequency| *frequency /= parameters[0]);
            1.0
        }
        Scaling::Llama3 => llama3(parameters, frequencies),
        Scaling::Yarn => yarn(base, parameters, frequencies),
        Scaling::Longrope => {
            for (frequency, divisor) in frequencies.iter_mut().zip(&parameters[2..]) {
                *frequency /= divisor;
            }
            let [factor, trained] = [parameters[0], parameters[1]];
            if factor <= 1.0 { 1.0 } else { (1.0 + factor.ln() / trained.ln()).sqrt() as f32 }
        }
    })
}

/// Stretches long waves, keeps short ones, and interpolates in between.
fn llama3(parameters: &[f64], frequencies: &mut [f64]) -> f32 {
    let [factor, low, high, trained] = [parameters[0], parameters[1], parameters[2], parameters[3]];
    for frequency in frequencies {
        let wave = 2.0 * PI / *frequency;
        if wave > trained / low {
            *frequency /= factor;
        } else if wave >= trained / high {
            let share = (trained / wave - low) / (high - low);
            *frequency = (1.0 - share) * *frequency / factor + share * *frequency;
        }
    }
    1.0
}

/// Keeps pairs with many turns over the trained length, stretches those with few, and joins the two with a ramp.
fn yarn(base: f64, parameters: &[f64], frequencies: &mut [f64]) -> f32 {
    let or = |at: usize, otherwise: f64| parameters.get(at).copied().unwrap_or(otherwise);
    let [factor, trained] = [parameters[0], parameters[1]];
    let (fast, slow, truncate) = (or(2, 32.0), or(3, 1.0), or(6, 1.0) != 0.0);
    let dims = 2.0 * frequencies.len() as f64;
    let pair_of = |turns: f64| dims * (trained / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
    let (low, high) = (pair_of(fast), pair_of(slow));
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, mut high) = (low.max(0.0), high.min(dims - 1.0));
    if low == high {
        high += 0.001;
    }
    for (pair, frequency) in frequencies.iter_mut().enumerate() {
        let stretched = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
        *frequency = *frequency / factor * stretched + *frequency * (1.0 - stretched);
    }
    let magnitude = |weight: f64| {
        if factor <= 1.0 { 1.0 } else { 0.1 * weight * factor.ln() + 1.0 }
    };
    let (scale, all_dims, given) = (or(4, 0.0), or(5, 0.0), or(7, 0.0));
    if given != 0.0 {
        given as f32
    } else if scale != 0.0 && all_dims != 0.0 {
        (magnitude(scale) / magnitude(all_dims)) as f32
    } else {
        magnitude(1.0) as f32
    }
}
