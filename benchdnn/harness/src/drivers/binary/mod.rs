//! The driver of elementwise functions of two tensors.
//!
//! `parameters` holds one problem, `settings` the options, `request` the call that creates it, `problem`
//! its line, its tensors, their data and the expected results.

mod parameters;
mod problem;
mod request;
mod settings;

pub use parameters::BinaryProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "binary",
    about: "An element-wise function of two tensors",
    manual: "A problem of binary is the dimensions of src0 and of src1, NxNxN:NxNxN. Either may have 1 where\n\
             the other has more; dimensions that src1 lacks are 1, and without a colon both have the same.\n\
             The condition of select has those of src0, or follows: NxN:NxN:NxN. A name may end it.\n\
             In file names of --buffer-prefix the argument ids are SRC_0 1, SRC_1 2, SRC_2 3.\n\
             \n\
             Examples:\n  \
             benchdnn --binary --alg=add,mul 256x1000:1x1000\n  \
             benchdnn --binary --alg=div --sdt=s8:f32 --ddt=u8 --stag=axb:any 2x64x8x8:1x64x1x1\n  \
             benchdnn --binary --attr-scales=src0:common:0.5 --attr-post-ops=sum:2+relu 32x512",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(BinaryProblem { dims: vec![vec![16, 64]; 2], ..BinaryProblem::default() }),
};
