//! The formula of an element, for vectors of any level.
//!
//! ```text
//! forward    dst       = f(g)*u             g = min(gate, limit), u = clamp(up, -limit, limit) + shift
//! backward   diff_gate = diff_dst*(u*f'(g)), 0 where gate > limit
//!            diff_up   = diff_dst*f(g),      0 where |up| > limit
//! ```

use super::problem::{GatedFunction, Numbers};
use crate::simd::Simd;
use crate::simd::lanes::Lanes;
use crate::simd::math;

/// A function of the gate and its derivative, computed in one or two steps.
pub(super) trait Activation: Copy {
    /// Whether there is a separate first step.
    const TWO_STEPS: bool;
    /// The result of the first step; unspecified if there is none.
    fn begun<S: Simd>(self, g: Lanes<S>) -> Lanes<S>;
    /// The value, from the gate and the result of the first step.
    fn value<S: Simd>(self, g: Lanes<S>, begun: Lanes<S>) -> Lanes<S>;
    /// The value, with the bits of [`value`](Self::value), and the derivative.
    fn both<S: Simd>(self, g: Lanes<S>, begun: Lanes<S>) -> (Lanes<S>, Lanes<S>);
}

macro_rules! activations {
    ($($name:ident { $($field:ident)? }, $two:literal: |$self:ident, $g:ident, $begun:ident|
        $begin:expr, $value:expr, $both:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub(super) $field: f32)? }

        impl Activation for $name {
            const TWO_STEPS: bool = $two;

            #[inline(always)]
            fn begun<S: Simd>($self, $g: Lanes<S>) -> Lanes<S> {
                $begin
            }
            #[inline(always)]
            fn value<S: Simd>($self, $g: Lanes<S>, $begun: Lanes<S>) -> Lanes<S> {
                $value
            }
            #[inline(always)]
            fn both<S: Simd>($self, $g: Lanes<S>, $begun: Lanes<S>) -> (Lanes<S>, Lanes<S>) {
                $both
            }
        }
    )*};
}

activations! {
    Swish { alpha }, true: |self, g, begun| math::logistic_begun(g * self.alpha),
        math::swish_ended(g, self.alpha, begun), math::swish_and_slope_ended(g, self.alpha, begun);
    GeluErf {}, false: |self, g, _begun| g, math::gelu_erf(g), math::gelu_erf_and_slope(g);
    GeluTanh {}, true: |self, g, begun| math::gelu_tanh_begun(g),
        math::gelu_tanh_ended(g, begun), math::gelu_tanh_and_slope_ended(g, begun);
    Relu { alpha }, false: |self, g, _begun| g, relu(g, self.alpha),
        (relu(g, self.alpha), g.all(0.0).lt(g).select(1.0, self.alpha));
    Logistic {}, true: |self, g, begun| math::logistic_begun(g),
        math::logistic_ended(g, begun), math::logistic_and_slope_ended(g, begun);
    Linear { alpha }, false: |self, g, _begun| g, g * self.alpha, (g * self.alpha, g.all(self.alpha));
}

#[inline(always)]
fn relu<S: Simd>(g: Lanes<S>, alpha: f32) -> Lanes<S> {
    // 0 times infinity would be NaN.
    let below = if alpha == 0.0 { g.all(0.0) } else { g * alpha };
    g.lt(0.0).select(below, g)
}

/// Evaluates `$call` with the activation of a function.
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

#[inline(always)]
fn limited_gate<S: Simd, const LIMITED: bool>(numbers: Numbers, gate: Lanes<S>) -> Lanes<S> {
    if LIMITED { gate.all(numbers.limit).min(gate) } else { gate }
}

/// The gate and up, clamped and shifted.
#[inline(always)]
fn limited<S: Simd, const LIMITED: bool>(
    numbers: Numbers,
    gate: Lanes<S>,
    up: Lanes<S>,
) -> (Lanes<S>, Lanes<S>) {
    let Numbers { limit, shift, .. } = numbers;
    let up = if LIMITED { up.within(-limit, limit) + shift } else { up };
    (limited_gate::<S, LIMITED>(numbers, gate), up)
}

/// The first step, for both directions. Without `LIMITED` there is no limit and no shift.
#[inline(always)]
pub(super) fn begun<S: Simd, A: Activation, const LIMITED: bool>(
    activation: A,
    numbers: Numbers,
    gate: Lanes<S>,
) -> Lanes<S> {
    activation.begun(limited_gate::<S, LIMITED>(numbers, gate))
}

/// dst, as [`begun`].
#[inline(always)]
pub(super) fn forward<S: Simd, A: Activation, const LIMITED: bool>(
    activation: A,
    numbers: Numbers,
    [gate, up]: [Lanes<S>; 2],
    begun: Lanes<S>,
) -> Lanes<S> {
    let (g, u) = limited::<S, LIMITED>(numbers, gate, up);
    activation.value(g, begun) * u
}

/// The results of backward for an element.
pub(super) struct Gradients<S: Simd> {
    pub(super) dst: Lanes<S>,
    pub(super) gate: Lanes<S>,
    pub(super) up: Lanes<S>,
}

/// As [`begun`].
#[inline(always)]
pub(super) fn backward<S: Simd, A: Activation, const LIMITED: bool>(
    activation: A,
    numbers: Numbers,
    [gate, up, diff_dst]: [Lanes<S>; 3],
    begun: Lanes<S>,
) -> Gradients<S> {
    let (g, u) = limited::<S, LIMITED>(numbers, gate, up);
    let (value, slope) = activation.both(g, begun);
    let (mut diff_gate, mut diff_up) = (diff_dst * (u * slope), diff_dst * value);
    if LIMITED {
        let limit = gate.all(numbers.limit);
        diff_gate = limit.lt(gate).select(0.0, diff_gate);
        diff_up = limit.lt(up.abs()).select(0.0, diff_up);
    }
    Gradients { dst: value * u, gate: diff_gate, up: diff_up }
}

/// 16 elements backward, by function, for the reference: turns gate, up and diff_dst into dst, diff_gate and diff_up.
pub(super) fn plain_backward<S: Simd>(
    function: GatedFunction,
    numbers: Numbers,
    inputs: [Lanes<S>; 3],
) -> Gradients<S> {
    by_function!(function, numbers, |a| {
        let begun = begun::<S, _, true>(a, numbers, inputs[0]);
        backward::<S, _, true>(a, numbers, inputs, begun)
    })
}

/// The same for forward: turns gate and up into dst.
pub(super) fn plain_forward<S: Simd>(
    function: GatedFunction,
    numbers: Numbers,
    inputs: [Lanes<S>; 2],
) -> Lanes<S> {
    by_function!(function, numbers, |a| {
        let begun = begun::<S, _, true>(a, numbers, inputs[0]);
        forward::<S, _, true>(a, numbers, inputs, begun)
    })
}
