//! Layer normalization and RMS normalization, forward ([`Forward`]) and backward ([`Backward`]).
//!
//! Rows are normalized along the last logical dimension, of size `C`. The other dimensions together
//! hold `N` rows. For each row `x`:
//!
//! ```text
//! layer norm     mean     = sum(x) / C
//!                variance = sum((x - mean)^2) / C                (population)
//!                dst      = (x - mean) / sqrt(variance + epsilon) * scale + shift
//! RMS_NORM       variance = sum(x^2) / C
//!                dst      = x / sqrt(variance + epsilon) * scale + shift
//! ```
//!
//! (Ba, Kiros and Hinton, *Layer Normalization*, 2016; Zhang and Sennrich, *Root Mean Square Layer
//! Normalization*, 2019.) Without [`Flags::SCALE`] the scale is 1, without [`Flags::SHIFT`] the
//! shift is 0. With [`Flags::GLOBAL_STATS`] mean and variance are inputs.
//!
//! The gradient for each row, with `r = 1/sqrt(variance + epsilon)`, `d = scale*diff_dst` and `xhat
//! = (src - mean)*r` (RMS norm: `src*r`):
//!
//! ```text
//! layer norm     diff_src = r*(d - sum(d)/C - xhat*sum(d*xhat)/C)
//! RMS_NORM       diff_src = r*(d - xhat*sum(d*xhat)/C)
//! GLOBAL_STATS   diff_src = r*d
//! over all rows  diff_scale = sum(diff_dst*xhat),  diff_shift = sum(diff_dst)
//! ```
//!
//! If `variance + epsilon` is 0, `r` is 0.
//!
//! What engines wrap around a normalization is in the same pass: [`Attr::set_residual`] adds to `src` before,
//! [`Attr::set_gate`] multiplies, [`Attr::set_partial_norm`] takes the mean square of a part of the row, and
//! [`Attr::set_dynamic_scales`] quantizes the result.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | `src`, `dst` | 2 to 5, the last is `C` | f32, bf16, f16, f64; forward also s8, u8, f8_e4m3, f8_e5m2; in any combination |
//! | `diff_src`, `diff_dst` | those of `src` | f32, bf16, f16, f64, in any combination |
//! | `mean`, `variance` | those of `src` without the last | f32 |
//! | `scale`, `shift`, `diff_scale`, `diff_shift` | `[C]`, dense | f32, bf16, f16 |

mod backward;
mod forward;

pub use backward::{Backward, BackwardArgs, BackwardBuilder};
pub(crate) use forward::any_like;
pub use forward::{Forward, ForwardArgs, ForwardBuilder};

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use norm_sys as sys;

#[cfg(doc)]
use crate::attr::Attr;

/// The default epsilon of [`Forward`] and [`Backward`]: `1e-5`, as in PyTorch's `LayerNorm`.
///
/// Models differ (BERT uses `1e-12`, Llama `1e-5` or `1e-6`); use the model's own value.
pub const DEFAULT_EPSILON: f32 = 1e-5;

/// Flags of a normalization, combined with `|`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// No flags: layer normalization without scale and shift.
    pub const NONE: Self = Self(sys::norm_normalization_flags_none);
    /// Mean and variance are inputs of forward and constants in the gradient.
    pub const GLOBAL_STATS: Self = Self(sys::norm_use_global_stats);
    /// Multiplies the result by `scale` (gamma), per column.
    pub const SCALE: Self = Self(sys::norm_use_scale);
    /// Adds `shift` (beta) to the result, per column.
    pub const SHIFT: Self = Self(sys::norm_use_shift);
    /// RMS normalization: there is no mean, and `variance` is the mean of the squares.
    pub const RMS_NORM: Self = Self(sys::norm_rms_norm);
    /// The scale is `1 + scale`, added in f32. Needs [`SCALE`](Self::SCALE).
    pub const SCALE_PLUS_ONE: Self = Self(sys::norm_scale_plus_one);
    /// The normalized value is rounded to the type of `src` before scale and shift, as in Hugging
    /// Face's Llama.
    pub const ROUND_BEFORE_SCALE: Self = Self(sys::norm_round_before_scale);
    /// The result is multiplied by a function of a gate; needs [`Attr::set_gate`].
    pub const GATE_OUTPUT: Self = Self(sys::norm_gate_output);
    /// What is normalized is multiplied by a function of a gate; needs [`Attr::set_gate`].
    pub const GATE_INPUT: Self = Self(sys::norm_gate_input);

    const NAMES: [(Self, &str); 8] = [
        (Self::GLOBAL_STATS, "GLOBAL_STATS"),
        (Self::SCALE, "SCALE"),
        (Self::SHIFT, "SHIFT"),
        (Self::RMS_NORM, "RMS_NORM"),
        (Self::SCALE_PLUS_ONE, "SCALE_PLUS_ONE"),
        (Self::ROUND_BEFORE_SCALE, "ROUND_BEFORE_SCALE"),
        (Self::GATE_OUTPUT, "GATE_OUTPUT"),
        (Self::GATE_INPUT, "GATE_INPUT"),
    ];

    /// Whether all of `other`'s flags are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn to_c(self) -> u32 {
        self.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<_> = Self::NAMES
            .iter()
            .filter(|(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
            .collect();
        f.write_str(if set.is_empty() { "NONE".into() } else { set.join(" | ") }.as_str())
    }
}
