//! The driver of gated activation.
//!
//! `parameters` holds one problem, `settings` the options, `request` the calls that create it, `data` the tensors, the
//! packing of gate and up and the expected results, `problem` the line.

mod data;
mod parameters;
mod problem;
mod request;
mod settings;

pub use parameters::{GatedProblem, Packing};
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "gated",
    about: "Gated activation: a function of a gate times another tensor",
    manual: "A problem of a gated activation is the 1 to 12 dimensions of dst, NxNxN; a name may follow: \
             8x128_n\"some name\". src has twice the last one, unless gate and up are separate.\n\
             In file names of --buffer-prefix the argument ids are SRC 1, SRC_1 2, DST 17, DIFF_DST 145.\n\
             \n\
             Examples:\n  \
             benchdnn --gated 32x4096\n  \
             benchdnn --gated --dir=FWD_I,BWD_D --packing=gate_first --alg=GELU_TANH --sdt=bf16 --ddt=bf16 16x14336\n  \
             benchdnn --gated --packing=interleaved --alpha=1.702 --limit=7 --shift=1 64x2880",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(GatedProblem { dims: vec![16, 64], ..GatedProblem::default() }),
};
