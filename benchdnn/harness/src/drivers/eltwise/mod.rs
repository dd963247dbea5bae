//! The driver of elementwise functions of one tensor.
//!
//! `parameters` holds one problem, `settings` the options, `request` the calls that create it, `problem`
//! its line, its tensors, their data and the expected results.

mod parameters;
mod problem;
mod request;
mod settings;

pub use parameters::EltwiseProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "eltwise",
    about: "An element-wise function",
    manual: "A problem of eltwise is its 1 to 12 dimensions, NxNxN; a name may follow: 8x128_n\"some name\".\n\
             In file names of --buffer-prefix the argument ids are SRC 1, DST 17, DIFF_DST 145.\n\
             \n\
             Examples:\n  \
             benchdnn --eltwise --alg=swish --alpha=1 256x1000\n  \
             benchdnn --eltwise --dir=FWD_I,BWD_D --alg=gelu_erf,gelu_tanh --dt=bf16 --tag=axb 2x64x8x8\n  \
             benchdnn --eltwise --alg=relu --attr-post-ops=mul:f32:per_oc 32x512",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(EltwiseProblem { dims: vec![16, 64], ..EltwiseProblem::default() }),
};
