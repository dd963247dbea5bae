//! The formula of an element, for vectors of any level.
//!
//! ```text
//! forward    dst       = f(g)*u             g = min(gate, limit), u = (up within +-limit) + shift
//! backward   diff_gate = diff_dst*(u*f'(g)), 0 where gate > limit
//!            diff_up   = diff_dst*f(g),      0 where |up| > limit
//! ```

use super::problem::{GatedFunction, Numbers};
use crate::simd::Simd;
use crate::simd::lanes::Lanes;
use crate::simd::math;

/// A function of the gate and its derivative.
pub(super) trait Activation: Copy {
    fn value<S: Simd>(self, g: Lanes<S>) -> Lanes<S>;
    /// The value, with the bits of [`value`](Self::value), and the derivative.
    fn both<S: Simd>(self, g: Lanes<S>) -> (Lanes<S>, Lanes<S>);
}

macro_rules! activations {
    ($($name:ident { $($field:ident)? }: |$self:ident, $g:ident| $value:expr, $both:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub(super) $field: f32)? }

        impl Activation for $name {
            #[inline(always)]
            fn value<S: Simd>($self, $g: Lanes<S>) -> Lanes<S> {
                $value
            }
            #[inline(always)]
            fn both<S: Simd>($self, $g: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
                $both
            }
        }
    )*};
}

activations! {
    Swish { alpha }: |self, g| math::swish(g, self.alpha), math::swish_and_slope(g, self.alpha);
    GeluErf {}: |self, g| math::gelu_erf(g), math::gelu_erf_and_slope(g);
    GeluTanh {}: |self, g| math::gelu_tanh(g), math::gelu_tanh_and_slope(g);
    Relu { alpha }: |self, g| relu(g, self.alpha),
        (relu(g, self.alpha), g.all(0.0).lt(g).select(1.0, self.alpha));
    Logistic {}: |self, g| math::logistic(g), math::logistic_and_slope(g);
    Linear { alpha }: |self, g| g * self.alpha, (g * self.alpha, g.all(self.alpha));
}

#[inline(always)]
fn relu<S: Simd>(g: Lanes<S>, alpha: f32) -> Lanes<S> {
    // 0 times infinity would be NaN.
    let below = if alpha == 0.0 { g.all(0.0) } else { g * alpha };
    g.lt(0.0).select(below, g)
}

/// `$call` with the activation of a function.
macro_rules! by_function {
    ($function:expr, $numbers:expr, |$activation:ident| $call:expr) => {{
        use $crate::ops::gated::functions::{GeluErf, GeluTanh, Linear, Logistic, Relu, Swish};
        let alpha = $numbers.alpha;
        match $function {
            GatedFunction::Swish => {
                let $activation = Swish { alpha };
                $call
            }
            GatedFunction::GeluErf => {
                let $activation = GeluErf {};
                $call
            }
            GatedFunction::GeluTanh => {
                let $activation = GeluTanh {};
                $call
            }
            GatedFunction::Relu => {
                let $activation = Relu { alpha };
                $call
            }
            GatedFunction::Logistic => {
                let $activation = Logistic {};
                $call
            }
            GatedFunction::Linear => {
                let $activation = Linear { alpha };
                $call
            }
        }
    }};
}
pub(super) use by_function;

/// The gate and up after the limits and the shift.
#[inline(always)]
fn limited<S: Simd, const LIMITED: bool>(
    numbers: Numbers,
    gate: Lanes<S>,
    up: Lanes<S>,
) -> (Lanes<S>, Lanes<S>) {
    if !LIMITED {
        return (gate, up);
    }
    let Numbers { limit, shift, .. } = numbers;
    (gate.all(limit).min(gate), up.within(-limit, limit) + shift)
}

/// dst. Without `LIMITED` the numbers are neutral.
#[inline(always)]
pub(super) fn forward<S: Simd, A: Activation, const LIMITED: bool>(
    activation: A,
    numbers: Numbers,
    gate: Lanes<S>,
    up: Lanes<S>,
) -> Lanes<S> {
    let (g, u) = limited::<S, LIMITED>(numbers, gate, up);
    activation.value(g) * u
}

/// The results of backward for an element.
pub(super) struct Gradients<S: Simd> {
    pub(super) dst: Lanes<S>,
    pub(super) gate: Lanes<S>,
    pub(super) up: Lanes<S>,
}

/// As [`forward`].
#[inline(always)]
pub(super) fn backward<S: Simd, A: Activation, const LIMITED: bool>(
    activation: A,
    numbers: Numbers,
    [gate, up, diff_dst]: [Lanes<S>; 3],
) -> Gradients<S> {
    let (g, u) = limited::<S, LIMITED>(numbers, gate, up);
    let (value, slope) = activation.both(g);
    let (mut diff_gate, mut diff_up) = (diff_dst * (u * slope), diff_dst * value);
    if LIMITED {
        let limit = gate.all(numbers.limit);
        diff_gate = limit.lt(gate).select(0.0, diff_gate);
        diff_up = limit.lt(up.abs()).select(0.0, diff_up);
    }
    Gradients { dst: value * u, gate: diff_gate, up: diff_up }
}

/// 16 elements backward by function, for the reference: gate, up and diff_dst become dst, diff_gate and diff_up.
pub(super) fn plain_backward<S: Simd>(
    function: GatedFunction,
    numbers: Numbers,
    inputs: [Lanes<S>; 3],
) -> Gradients<S> {
    by_function!(function, numbers, |activation| backward::<S, _, true>(
        activation, numbers, inputs
    ))
}

/// The same for forward: gate and up become dst.
pub(super) fn plain_forward<S: Simd>(
    function: GatedFunction,
    numbers: Numbers,
    [gate, up]: [Lanes<S>; 2],
) -> Lanes<S> {
    by_function!(function, numbers, |activation| forward::<S, _, true>(
        activation, numbers, gate, up
    ))
}
