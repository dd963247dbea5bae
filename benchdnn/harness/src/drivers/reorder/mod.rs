//! The driver of reorder: a tensor copied into another layout and element type.
//!
//! `parameters` holds one problem, `settings` the options, `request` the calls that create it, `data` the expected
//! results, `problem` the line and the tensors.

mod data;
mod parameters;
mod problem;
mod request;
mod settings;

pub use parameters::ReorderProblem;
pub use request::Request;
pub use settings::Settings;

use crate::data_type::DataType;
use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "reorder",
    about: "Copy of a tensor into another layout and data type",
    manual: "A problem of reorder is its 1 to 12 dimensions, NxNxN; a name may follow:\n\
             2x16x3x4_n\"some name\". In file names of --buffer-prefix the argument ids are SRC 1, DST 17.\n\
             \n\
             Examples:\n  \
             benchdnn --reorder --stag=abx --dtag=axb 2x16x3x4\n  \
             benchdnn --reorder --sdt=f32,bf16 --ddt=s8,u8 --attr-scales=src:per_dim_1 30x300\n  \
             benchdnn --reorder --sdt=s8 --ddt=f32 --attr-post-ops=sum:0.5 4x128x768",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || {
        let (dims, dst_dt) = (vec![16, 64], DataType::Bf16);
        Rc::new(ReorderProblem { dims, dst_dt, ..ReorderProblem::default() })
    },
};
