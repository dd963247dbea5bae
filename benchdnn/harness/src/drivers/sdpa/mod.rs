//! The driver of scaled dot-product attention.
//!
//! `choices` has the values of options, `parameters` one problem, `shape` the meaning of its dimensions, `settings` the
//! options, `request` the calls that create it, `data` its tensors, their data and the expected results, `packed` the
//! same for packed sequences, `excerpts` problems whose results are parts of its own, `caches` those among them with
//! keys and values as in a cache, `problem` the line.

mod caches;
mod choices;
mod data;
mod excerpts;
mod packed;
mod parameters;
mod problem;
mod request;
mod settings;
mod shape;

pub use choices::{Flags, KvScales, MaskKind, Scale, Types, Window};
pub use parameters::SdpaProblem;
pub use request::Request;
pub use settings::Settings;

use crate::driver::{Row, erased};
use std::rc::Rc;

/// The driver's row.
pub const ROW: Row<Settings> = Row {
    name: "sdpa",
    about: "Scaled dot-product attention",
    manual: "A problem of sdpa is the dimensions of queries, keys and values, Q:K:V; Q is batch x\n\
             heads x queries x D, K is batch x heads x D x keys, V is batch x heads x keys x E. K and\n\
             V may have fewer heads. A name may follow: 1x2x8x16:1x2x16x8:1x2x8x16_n\"some name\".\n\
             In file names of --buffer-prefix the argument ids are queries 1, keys 2, values 3,\n\
             mask 52, dst 17, diff_dst 145, workspace 64.\n\
             \n\
             Examples:\n  \
             benchdnn --sdpa --mask=causal_top_left 1x12x128x64:1x12x64x128:1x12x128x64\n  \
             benchdnn --sdpa --dir=BWD_D --dt=bf16 1x32x64x64:1x8x64x64:1x8x64x64\n  \
             benchdnn --sdpa --mask=causal_bottom_right --window=with_self:32 --flags=SK \\\n    \
             3x4x5x64:3x2x64x300:3x2x300x64\n  \
             benchdnn --sdpa --dt=bf16 --ktag=abdc --page-size=16 --flags=K \\\n    \
             4x8x1x128:4x2x128x512:4x2x512x128\n  \
             benchdnn --sdpa --dir=FWD_D,BWD_D --qtag=acbd --mask=causal_bottom_right --flags=OT \\\n    \
             5x4x70x64:5x2x64x300:5x2x300x64",
    options: settings::OPTIONS,
    problems: |settings, attributes, descriptor| {
        settings.problems(attributes, descriptor).map(erased)
    },
    sample: || Rc::new(SdpaProblem::sample()),
};
