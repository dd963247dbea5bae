//! The driver of rotary position embedding.
//!
//! `choices` has the values of options, `parameters` one problem, `shape` the meaning of its dimensions, `settings` the
//! options, `request` the calls that create it, `through` backward through a normalization, `problem` the line, the
//! tensors, their data and the expected results.

mod choices;
mod parameters;
mod problem;
mod request;
mod settings;
mod shape;
mod through;

pub use choices::{Angles, Flags};
pub use parameters::RopeProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "rope",
    about: "Rotary position embedding; with M in --flags, heads are normalized first",
    manual: "A problem of rope is its 2 to 6 dimensions, NxNxN, the last of them a head; a name may\n\
             follow: 512x32x128_n\"some name\".\n\
             In file names of --buffer-prefix the argument ids are SRC 1, DST 17, DIFF_DST 145.\n\
             \n\
             Examples:\n  \
             benchdnn --rope --pairing=HALF 512x32x128\n  \
             benchdnn --rope --dir=BWD_D --sdt=bf16 --ddt=bf16 --rotary=64 2x16x8x128\n  \
             benchdnn --rope --tokens=ac --positions=s64 2x8x16x64\n  \
             benchdnn --rope --flags=MCW --eps=1e-6 --sdt=bf16 --ddt=bf16 16x8x128",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(RopeProblem { dims: vec![4, 2, 16], ..RopeProblem::default() }),
};
