//! The functions of gates and their derivatives.

use super::{EltwiseAlgorithm, Gate};
use crate::simd::Simd;
use crate::simd::lanes::Lanes;
use crate::simd::math;

/// The function of a gate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gating {
    /// `g/(1 + exp(-alpha*g))`.
    Swish(f32),
    /// `1/(1 + exp(-g))`.
    Logistic,
}

impl Gating {
    pub(crate) fn of(gate: &Gate) -> Self {
        match gate.algorithm {
            EltwiseAlgorithm::Logistic => Self::Logistic,
            _ => Self::Swish(gate.alpha),
        }
    }

    #[inline(always)]
    pub(crate) fn value<S: Simd>(self, g: Lanes<S>) -> Lanes<S> {
        match self {
            Self::Swish(alpha) => math::swish(g, alpha),
            Self::Logistic => math::logistic(g),
        }
    }

    /// The value and the derivative.
    #[inline(always)]
    pub(crate) fn derived<S: Simd>(self, g: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
        match self {
            Self::Swish(alpha) => math::swish_and_slope(g, alpha),
            Self::Logistic => math::logistic_and_slope(g),
        }
    }
}
