//! The driver of group normalization and grouped RMS normalization.
//!
//! `parameters` holds one problem, `descriptor` its sizes as text, `settings` the options, `request` the calls that
//! create it, `tensors` its arguments, `data` their data and the expected results, `gradients` the gradients to check,
//! `problem` the line.

mod data;
mod descriptor;
mod gradients;
mod parameters;
mod problem;
mod request;
mod settings;
mod tensors;

pub use parameters::GnormProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use crate::tensor::Tag;
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "gnorm",
    about: "Group normalization and grouped RMS normalization of channels",
    manual: "A problem of gnorm is gNmbNicN[idN][ihN][iwN]: groups, samples (2 if not given), channels\n\
             and spatial sizes; id alone makes a cube, ih alone a square. epsF sets the epsilon\n\
             (0.0625), and a name may follow: g32ic320ih64_n\"some name\". In file names of\n\
             --buffer-prefix the argument ids are SRC 1, DST 17, MEAN 49, VARIANCE 50, SCALE 51,\n\
             SHIFT 52, DIFF_DST 145.\n\
             \n\
             Examples:\n  \
             benchdnn --gnorm --flags=CH g32mb2ic320ih64iw64\n  \
             benchdnn --gnorm --dir=FWD_D,BWD_DW --tag=abx,axb --dt=f32,bf16 --flags=CH,CM g4mb2ic32iw9\n  \
             benchdnn --gnorm --mode=P --tag=axb --flags=CH g32mb2ic1280ih16",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || {
        let tag = Tag::parse("abx").expect("a tag");
        Rc::new(GnormProblem {
            dims: vec![2, 16, 20],
            groups: 4,
            src_tag: tag,
            ..GnormProblem::default()
        })
    },
};
