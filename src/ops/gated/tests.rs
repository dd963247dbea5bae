//! The largest errors of the functions and their derivatives, over every 997th f32, against f64. The documentation has
//! the table that this prints.

use super::functions::{plain_backward, plain_forward};
use super::problem::{GatedFunction as F, Numbers};
use crate::primitive::exact_tests::{
    Unit, below, gelu_erf_slope, gelu_tanh_slope, largest, numbers, quote, sigmoid, swish_slope,
    tanh_argument,
};
use crate::simd::LANES;
use crate::simd::lanes::Lanes;
use crate::simd::portable::Portable;

/// dst and diff_gate for gates, where up and diff_dst are 1.
fn results(function: F, alpha: f32, gates: &[f32]) -> [Vec<f32>; 2] {
    let numbers = Numbers { alpha, limit: f32::INFINITY, shift: 0.0 };
    let mut results = [const { Vec::new() }; 2];
    for gates in gates.chunks(LANES) {
        let [mut dst, mut diff_gate] = [[0.0f32; LANES]; 2];
        // SAFETY: there are as many elements, and every machine has the level.
        unsafe {
            let gate = Lanes::<Portable>::load(gates.as_ptr(), gates.len());
            let one = gate.all(1.0);
            plain_forward(function, numbers, [gate, one]).store(dst.as_mut_ptr(), LANES);
            let gradients = plain_backward(function, numbers, [gate, one, one]);
            gradients.gate.store(diff_gate.as_mut_ptr(), LANES);
        }
        for (all, lanes) in results.iter_mut().zip([dst, diff_gate]) {
            all.extend_from_slice(&lanes[..gates.len()]);
        }
    }
    results
}

#[test]
fn errors_are_as_stated() {
    use Unit::{Absolute, OfX, Ulp, UlpAbove};
    type Right = (Unit, fn(f64) -> f64);
    let table: [(&str, F, f32, [Right; 2]); 7] = [
        (
            "`swish`, alpha 1",
            F::Swish,
            1.0,
            [(UlpAbove(-87.0), |g| g * sigmoid(g)), (Absolute, swish_slope)],
        ),
        (
            "`swish`, alpha 1.702",
            F::Swish,
            1.702,
            [
                (OfX, |g| g * sigmoid(f64::from(1.702f32) * g)),
                (Absolute, |g| swish_slope(f64::from(1.702f32) * g)),
            ],
        ),
        ("`gelu_erf`", F::GeluErf, 0.0, [(OfX, |g| g * below(g)), (Absolute, gelu_erf_slope)]),
        (
            "`gelu_tanh`",
            F::GeluTanh,
            0.0,
            [(OfX, |g| g * sigmoid(tanh_argument(g).0)), (Absolute, gelu_tanh_slope)],
        ),
        ("`logistic`", F::Logistic, 0.0, [(Ulp, sigmoid), (Ulp, |g| sigmoid(g) * sigmoid(-g))]),
        (
            "`relu`, alpha 0.25",
            F::Relu,
            0.25,
            [
                (Ulp, |g| if g > 0.0 { g } else { 0.25 * g }),
                (Ulp, |g| if g > 0.0 { 1.0 } else { 0.25 }),
            ],
        ),
        ("`linear`, alpha 3", F::Linear, 3.0, [(Ulp, |g| 3.0 * g), (Ulp, |_| 3.0)]),
    ];
    let numbers = numbers();
    let rows = table.map(|(name, function, alpha, rights)| {
        let results = results(function, alpha, &numbers);
        let [dst, slope] = [0, 1].map(|part| {
            let (unit, right) = rights[part];
            unit.quoted(largest(unit, &numbers, &results[part], right))
        });
        format!("| {name} | {dst} | {slope} |")
    });
    quote(include_str!("../../../docs/primitives/gated.md"), &rows);
}
