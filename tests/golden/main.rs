//! Golden values from outside: what the library computes against PyTorch's autograd in f64 and
//! against published numbers.
//!
//! - `vectors` takes the small hand-made vectors of `tests/data/golden.txt`, every flag set;
//! - `real` takes the layers of a real transformer in `benchdnn/inputs/real`;
//! - `epsilon` takes published analyses of small activations and two worked examples.
//!
//! `library` calls the C functions, `formula` has the f64 formulas, the two wrong gradients that
//! circulate, and how far a result may be off. Every problem runs on every implementation that the
//! machine has.

#![expect(non_upper_case_globals, reason = "constants that patterns name are those of C")]

mod epsilon;
mod formula;
mod library;
mod real;
mod vectors;
