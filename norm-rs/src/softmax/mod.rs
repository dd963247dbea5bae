//! Softmax and logsoftmax along one dimension, forward ([`Forward`]) and backward ([`Backward`]).
//!
//! The axis, of size `C`, is any dimension. The other dimensions together hold the rows. For each
//! row `x`, with `m = max(x)` and `s = sum(exp(x - m))`:
//!
//! ```text
//! Accurate   dst = exp(x - m) / s         diff_src = dst*(diff_dst - sum(diff_dst*dst))
//! Log        dst = (x - m) - ln(s)        diff_src = diff_dst - exp(dst)*sum(diff_dst)
//! ```
//!
//! A row with NaN or +Inf, or of only -Inf, becomes NaN; [`Algorithm::AccurateInfAsZero`] is `Accurate` with zeros for
//! a row of only -Inf. The backward pass reads `dst` as the forward pass gave it.
//!
//! | tensor | dimensions | element type |
//! |---|---|---|
//! | `src`, `dst` of forward | 1 to 12 | f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2, in any combination |
//! | `dst`, `diff_dst`, `diff_src` of backward | 1 to 12 | f32, bf16, f16, f64, in any combination |

mod backward;
mod forward;

pub use backward::{Backward, BackwardArgs, BackwardBuilder};
pub use forward::{Forward, ForwardArgs, ForwardBuilder};

use norm_sys as sys;

use crate::error::{Error, Result};

/// What is computed of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Softmax.
    #[default]
    Accurate,
    /// The logarithm of softmax.
    Log,
    /// Softmax; a row of only -Inf becomes zeros.
    AccurateInfAsZero,
}

impl Algorithm {
    fn to_c(self) -> sys::norm_alg_kind_t {
        match self {
            Self::Accurate => sys::norm_softmax_accurate,
            Self::Log => sys::norm_softmax_log,
            Self::AccurateInfAsZero => sys::norm_softmax_accurate_inf_as_zero,
        }
    }
}

/// The axis for C.
fn axis_to_c(axis: usize) -> Result<i32> {
    i32::try_from(axis).map_err(|_| Error::invalid("axis", format_args!("is {axis}: too large")))
}
