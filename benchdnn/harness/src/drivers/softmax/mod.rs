//! The driver of softmax and logsoftmax.
//!
//! `parameters` holds one problem, `settings` the options, `request` the calls that create it, `problem`
//! its line, its tensors, their data and the expected results.

mod parameters;
mod problem;
mod request;
mod settings;

pub use parameters::{Algorithm, SoftmaxProblem};
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "softmax",
    about: "Softmax and logsoftmax along one dimension",
    manual: "A problem of softmax is its 1 to 12 dimensions, NxNxN; a name may follow: 8x128_n\"some name\".\n\
             In file names of --buffer-prefix the argument ids are SRC 1, DST 17, DIFF_DST 145.\n\
             \n\
             Examples:\n  \
             benchdnn --softmax --axis=1 256x1000\n  \
             benchdnn --softmax --dir=FWD_I,BWD_D --alg=LOGSOFTMAX --sdt=bf16 --ddt=bf16 --axis=3 1x2x112x64\n  \
             benchdnn --softmax --sdt=f32 --ddt=u8 --attr-scales=dst:common:0.0039 32x512",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(SoftmaxProblem { dims: vec![16, 64], ..SoftmaxProblem::default() }),
};
