//! Frequencies and magnitude for the configurations of models.
//!
//! The formulas are those of the papers, as Hugging Face's transformers implements them, in f64. Frequencies are above 0
//! and at most [`LARGEST`].

use crate::error::{Error, Result};
use crate::primitive::enumerators;
use crate::text::shown;
use norm_sys as sys;
use std::f64::consts::PI;
use std::mem::MaybeUninit;

/// The largest frequency. Its product with the largest position is within 2^32, where sines and cosines are exact to
/// 1 ulp.
const LARGEST: f64 = 2.0;

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
    check_relations(scaling, parameters)
}

/// What parameters must be besides positive.
fn check_relations(scaling: Scaling, parameters: &[f64]) -> Result<()> {
    let (name, Some(factor)) = (scaling.name(), parameters.first()) else { return Ok(()) };
    if *factor < 1.0 {
        return Err(Error::invalid(format_args!(
            "parameters: factor {factor:?} is below 1, which scaling {name} does not allow"
        )));
    }
    match (scaling, parameters) {
        (Scaling::Llama3, [_, low, high, _]) if low >= high => Err(Error::invalid(format_args!(
            "parameters: low_freq_factor {low} is not below high_freq_factor {high}"
        ))),
        (Scaling::Longrope, [_, trained, ..]) if *trained <= 1.0 => {
            Err(Error::invalid(format_args!(
                "parameters: trained length {trained:?} is not above 1; the magnitude divides by its logarithm"
            )))
        }
        (Scaling::Yarn, _) => {
            let [fast, slow] = betas(parameters);
            if fast < slow {
                return Err(Error::invalid(format_args!(
                    "parameters: beta_fast {fast:?} is below beta_slow {slow:?}; it must be the same or larger"
                )));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A parameter, or its default.
fn given(parameters: &[f64], at: usize, otherwise: f64) -> f64 {
    parameters.get(at).copied().unwrap_or(otherwise)
}

/// beta_fast and beta_slow of YaRN.
fn betas(parameters: &[f64]) -> [f64; 2] {
    [given(parameters, 2, 32.0), given(parameters, 3, 1.0)]
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
    let curve = Curve::new(scaling, base, parameters, pairs);
    let magnitude = magnitude(scaling, parameters);
    if !(magnitude > 0.0 && magnitude.is_finite()) {
        return Err(Error::invalid(format_args!(
            "parameters: they give a magnitude of {magnitude:?}, not a positive number in the range of f32"
        )));
    }
    for pair in 0..pairs {
        let frequency = curve.at(pair);
        if !(frequency > 0.0 && frequency <= LARGEST) {
            return Err(Error::invalid(format_args!(
                "parameters: they give pair {pair} a frequency of {frequency:?}, not one above 0 and up to {LARGEST}"
            )));
        }
    }
    for (pair, frequency) in frequencies.iter_mut().enumerate() {
        frequency.write(curve.at(pair));
    }
    Ok(magnitude)
}

/// The frequencies of a configuration.
struct Curve<'a> {
    base: f64,
    dims: f64,
    change: Change<'a>,
}

/// How a scaling changes frequencies.
enum Change<'a> {
    None,
    /// Divides all by a factor.
    Linear(f64),
    Llama3(&'a [f64]),
    /// Stretches pairs by a factor: not those up to `low`, those from `high` on, and in between in part.
    Yarn {
        factor: f64,
        low: f64,
        high: f64,
    },
    /// Divides each pair by its own number.
    Longrope(&'a [f64]),
}

impl<'a> Curve<'a> {
    fn new(scaling: Scaling, base: f64, parameters: &'a [f64], pairs: usize) -> Self {
        let ntk = match scaling {
            Scaling::Ntk => parameters[0],
            Scaling::DynamicNtk => {
                let [factor, trained, current] = [parameters[0], parameters[1], parameters[2]];
                factor * current.max(trained) / trained - (factor - 1.0)
            }
            _ => 1.0,
        };
        let dims = 2.0 * pairs as f64;
        let base =
            if ntk == 1.0 || pairs == 1 { base } else { base * ntk.powf(dims / (dims - 2.0)) };
        let change = match scaling {
            Scaling::None | Scaling::Ntk | Scaling::DynamicNtk => Change::None,
            Scaling::Linear => Change::Linear(parameters[0]),
            Scaling::Llama3 => Change::Llama3(parameters),
            Scaling::Yarn => yarn(base, dims, parameters),
            Scaling::Longrope => Change::Longrope(&parameters[2..]),
        };
        Self { base, dims, change }
    }

    fn at(&self, pair: usize) -> f64 {
        let frequency = self.base.powf(2.0 * pair as f64 / self.dims).recip();
        match self.change {
            Change::None => frequency,
            Change::Linear(factor) => frequency / factor,
            Change::Llama3(parameters) => llama3(parameters, frequency),
            Change::Yarn { factor, low, high } => {
                let stretched = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
                frequency / factor * stretched + frequency * (1.0 - stretched)
            }
            Change::Longrope(divisors) => frequency / divisors[pair],
        }
    }
}

/// Stretches long waves, keeps short ones, and interpolates in between.
fn llama3(parameters: &[f64], frequency: f64) -> f64 {
    let [factor, low, high, trained] = [parameters[0], parameters[1], parameters[2], parameters[3]];
    let wave = 2.0 * PI / frequency;
    if wave > trained / low {
        frequency / factor
    } else if wave >= trained / high {
        let share = (trained / wave - low) / (high - low);
        (1.0 - share) * frequency / factor + share * frequency
    } else {
        frequency
    }
}

/// Keeps pairs with many turns over the trained length, stretches those with few, and joins the two with a ramp.
fn yarn(base: f64, dims: f64, parameters: &[f64]) -> Change<'_> {
    let [factor, trained] = [parameters[0], parameters[1]];
    let ([fast, slow], truncate) = (betas(parameters), given(parameters, 6, 1.0) != 0.0);
    let pair_of = |turns: f64| dims * (trained / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
    let (low, high) = (pair_of(fast), pair_of(slow));
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, mut high) = (low.max(0.0), high.min(dims - 1.0));
    if low == high {
        high += 0.001;
    }
    Change::Yarn { factor, low, high }
}

/// The factor for cosines and sines.
fn magnitude(scaling: Scaling, parameters: &[f64]) -> f32 {
    match scaling {
        Scaling::Yarn => {
            let of = |weight: f64| match parameters[0] <= 1.0 {
                true => 1.0,
                false => 0.1 * weight * parameters[0].ln() + 1.0,
            };
            let [scale, all_dims, own] = [4, 5, 7].map(|at| given(parameters, at, 0.0));
            if own != 0.0 {
                own as f32
            } else if scale != 0.0 && all_dims != 0.0 {
                (of(scale) / of(all_dims)) as f32
            } else {
                of(1.0) as f32
            }
        }
        Scaling::Longrope => {
            let [factor, trained] = [parameters[0], parameters[1]];
            if factor <= 1.0 { 1.0 } else { (1.0 + factor.ln() / trained.ln()).sqrt() as f32 }
        }
        _ => 1.0,
    }
}
