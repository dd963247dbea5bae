//! Golden values: the library compared with PyTorch's autograd in f64 and with published numbers.
//!
//! - `vectors`: the small hand-made vectors of `tests/data/golden.txt`, for every combination of
//!   flags
//! - `around`: `tests/data/golden_around.txt`: residuals, gates, partial norms, flags, dynamic scales
//! - `dropout`: `tests/data/golden_dropout.txt`: masks of oneDNN
//! - `elementwise`: `tests/data/golden_elementwise.txt`: eltwise, softmax, binary
//! - `gated`: `tests/data/golden_gated.txt`: gated activations
//! - `groups`: the same for groups of channels
//! - `rope`: `tests/data/golden_rope.txt`: frequencies of configurations, rotated heads
//! - `real`: layers of a real transformer in `benchdnn/inputs/real`
//! - `epsilon`: published analyses of small activations and two worked examples
//!
//! `library` calls the C functions. `formula` has the f64 formulas, two well-known wrong gradients,
//! and the error bounds. Every problem runs on every implementation available on the machine.

#![expect(non_upper_case_globals, reason = "constants that patterns name are those of C")]

mod around;
mod dropout;
mod elementwise;
mod epsilon;
mod formula;
mod gated;
mod groups;
mod library;
mod real;
mod rope;
mod vectors;
