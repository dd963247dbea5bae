//! The driver of layer normalization and RMS normalization.
//!
//! `parameters` holds one problem, `settings` the options, `request` the calls that create it, `tensors` its arguments,
//! `data` their data and the expected results, `gradients` the gradients to check, `problem` the line.

mod data;
mod gradients;
mod parameters;
mod problem;
mod request;
mod settings;
mod tensors;

pub use parameters::LnormProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use crate::tensor::Tag;
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "lnorm",
    about: "Layer normalization and RMS normalization over the last dimension",
    manual: "A problem of lnorm is its 2 to 5 dimensions, NxNxN, the last one normalized; a name may\n\
             follow: 8x128x1024_n\"some name\". In file names of --buffer-prefix the argument ids are\n\
             SRC 1, DST 17, MEAN 49, VARIANCE 50, SCALE 51, SHIFT 52, DIFF_DST 145,\n\
             RESIDUAL 1073741825, DIFF_RESIDUAL_DST 1073741827, GATE 1073741828.\n\
             \n\
             Examples:\n  \
             benchdnn --flags=CM 4096x4096\n  \
             benchdnn --dir=FWD_D,BWD_DW --dt=f32,bf16:f32 --flags=CH,CM 8x128x1024 30x301\n  \
             benchdnn --mode=P --max-ms-per-prb=500 --cpu-isa=avx2,avx512 --flags=CM 32x4096\n  \
             benchdnn --mode=B --batch=test_lnorm_smoke\n  \
             benchdnn --residual=f32 --dt=bf16 --inplace=both --flags=CM 32x4096\n  \
             benchdnn --dt=bf16:f8_e4m3 --flags=CM --attr-scales=dst:dynamic_fp:f32:1x128 32x4096\n  \
             benchdnn --mode=F --roofline --compare=libdnnl.so.3 --threads=1 --batch=perf_odd",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || {
        let src_tag = Tag::parse("abx").expect("a tag");
        Rc::new(LnormProblem { dims: vec![16, 64], src_tag, ..LnormProblem::default() })
    },
};
