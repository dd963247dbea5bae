//! Pairings, frequencies and weights: what a model's configuration says.

use norm_sys as sys;

use crate::error::{Error, Result, check};
use crate::memory::{Access, Memory};

/// Which elements of a head are a pair; `R` of its `D` elements are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// `2i` and `2i + 1`.
    Interleaved,
    /// `i` and `i + R/2`: most models of Hugging Face.
    HalfSplit,
    /// `i` and `i + D/2`: the full attention of Gemma 4, whose [`frequencies`] are the first `R/2` for `D`.
    HalfSplitOfHead,
}

impl Pairing {
    pub(super) fn to_c(self) -> sys::norm_rope_pairing_t {
        match self {
            Self::Interleaved => sys::norm_rope_interleaved,
            Self::HalfSplit => sys::norm_rope_half_split,
            Self::HalfSplitOfHead => sys::norm_rope_half_split_of_head,
        }
    }
}

/// How frequencies are stretched for long contexts. The formulas are those of Hugging Face's transformers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scaling<'a> {
    /// `base^(-2i/R)`.
    None,
    /// Divided by a factor.
    Linear(f64),
    /// The base times `factor^(R/(R - 2))`.
    Ntk(f64),
    /// [`Ntk`](Self::Ntk) with a factor that grows with the current length.
    DynamicNtk {
        /// The factor.
        factor: f64,
        /// The length that the model was trained for.
        trained: f64,
        /// The current length.
        current: f64,
    },
    /// `YaRN`: `[factor, trained length, beta_fast, beta_slow, mscale, mscale_all_dim, truncate, magnitude]`. The
    /// last ones may be omitted, up to the third.
    Yarn(&'a [f64]),
    /// Llama 3.1.
    Llama3 {
        /// The factor for long waves.
        factor: f64,
        /// Waves longer than the trained length over this are long.
        low_freq_factor: f64,
        /// Waves shorter than the trained length over this are unchanged.
        high_freq_factor: f64,
        /// The length that the model was trained for.
        trained: f64,
    },
    /// `LongRoPE`: `[factor, trained length]`, then a divisor for each pair.
    Longrope(&'a [f64]),
}

impl Scaling<'_> {
    fn to_c(self) -> (sys::norm_rope_scaling_t, Vec<f64>) {
        match self {
            Self::None => (sys::norm_rope_scaling_none, Vec::new()),
            Self::Linear(factor) => (sys::norm_rope_scaling_linear, vec![factor]),
            Self::Ntk(factor) => (sys::norm_rope_scaling_ntk, vec![factor]),
            Self::DynamicNtk { factor, trained, current } => {
                (sys::norm_rope_scaling_dynamic_ntk, vec![factor, trained, current])
            }
            Self::Yarn(parameters) => (sys::norm_rope_scaling_yarn, parameters.to_vec()),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, trained } => (
                sys::norm_rope_scaling_llama3,
                vec![factor, low_freq_factor, high_freq_factor, trained],
            ),
            Self::Longrope(parameters) => (sys::norm_rope_scaling_longrope, parameters.to_vec()),
        }
    }
}

/// The frequency of each of `rotary_dims / 2` pairs, and the factor of cosines and sines.
///
/// Frequencies are above 0 and at most 1; divisors of `LongRoPE` may increase them to 2.
///
/// ```
/// use norm_rs::rope::{Scaling, frequencies};
/// let (values, magnitude) = frequencies(Scaling::None, 4, 10000.0)?;
/// assert_eq!((values, magnitude), (vec![1.0, 0.01], 1.0));
/// # Ok::<(), norm_rs::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) for an odd `rotary_dims` and for parameters that
/// are not positive numbers or not as many as the scaling has, a factor below 1, `beta_fast` below `beta_slow`, a
/// trained length of `LongRoPE` of 1 or less, and frequencies or a magnitude out of range.
pub fn frequencies(scaling: Scaling<'_>, rotary_dims: usize, base: f64) -> Result<(Vec<f64>, f32)> {
    let (code, parameters) = scaling.to_c();
    let dims = to_c("rotary_dims", rotary_dims)?;
    let count = i32::try_from(parameters.len()).unwrap_or(i32::MAX);
    // The function rejects larger sizes, so nothing is allocated for them.
    let room = if rotary_dims <= 1 << 20 { rotary_dims.max(2) / 2 } else { 1 };
    let (mut values, mut magnitude) = (vec![0.0; room], 1.0);
    // SAFETY: there are as many parameters and there is room for as many values as stated.
    check(unsafe {
        sys::norm_rope_frequencies(
            code,
            dims,
            base,
            count,
            parameters.as_ptr(),
            values.as_mut_ptr(),
            &raw mut magnitude,
        )
    })?;
    Ok((values, magnitude))
}

/// Copies the rows of a projection's weights, `heads * D` in dimension 0, for another pairing.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if `src` and `dst` differ in type or dimensions
/// or the heads do not divide the rows.
pub fn permute<A: Access>(
    (from, to): (Pairing, Pairing),
    heads: usize,
    rotary_dims: usize,
    src: &Memory<'_, A>,
    dst: &mut Memory<'_>,
) -> Result<()> {
    let (heads, dims) = (to_c("heads", heads)?, to_c("rotary_dims", rotary_dims)?);
    // SAFETY: both memories are valid, and dst is borrowed exclusively.
    check(unsafe {
        sys::norm_rope_permute(from.to_c(), to.to_c(), heads, dims, src.as_ptr(), dst.as_ptr())
    })
}

pub(super) fn to_c(name: &'static str, value: usize) -> Result<sys::norm_dim_t> {
    let too_large = |_| Error::invalid(name, format_args!("is {value}: too large"));
    sys::norm_dim_t::try_from(value).map_err(too_large)
}
