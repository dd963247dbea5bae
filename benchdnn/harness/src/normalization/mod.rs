//! What the drivers of normalizations share: flags, the options of the steps around a normalization, shared buffers,
//! and the expected results.

mod dynamic;
mod expected;
mod options;

pub use dynamic::{Dynamic, inputs, with_attributes};
pub use expected::{Case, Inputs, Oracle};
pub use options::{
    StepLists, StepOptions, flags, gate, gate_tag, inplace, partial, residual, residual_tag,
};

use crate::data_type::DataType;
use crate::library::{ResidualRequest, StepsRequest, TensorRequest, Wanted};
use crate::oracle::lnorm::Flags;
use crate::steps::{Partial, Steps};
use crate::tensor::Tag;
use norm_sys::*;

/// Which tensors share buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inplace {
    /// None.
    #[default]
    Nothing,
    /// dst shares the buffer of src, or diff_src that of diff_dst.
    Dst,
    /// The sum shares the buffer of the residual.
    Residual,
    /// dst shares the buffer of src, and the sum that of the residual.
    Both,
    /// The sum shares the buffer of src.
    Sum,
}

impl Inplace {
    /// The values of `--inplace`.
    pub const NAMES: [(&'static str, Inplace); 7] = [
        ("false", Inplace::Nothing),
        ("true", Inplace::Dst),
        ("residual", Inplace::Residual),
        ("both", Inplace::Both),
        ("sum", Inplace::Sum),
        ("0", Inplace::Nothing),
        ("1", Inplace::Dst),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Inplace::NAMES[self as usize].0
    }

    /// Whether dst shares the buffer of src.
    pub fn of_dst(self) -> bool {
        matches!(self, Inplace::Dst | Inplace::Both)
    }

    /// The arguments that share buffers; `dst` is the pair of an input and dst or diff_src.
    pub fn pairs(self, dst: (i32, i32)) -> Vec<(i32, i32)> {
        let sum = (NORM_ARG_RESIDUAL, NORM_ARG_RESIDUAL_DST);
        match self {
            Inplace::Nothing => vec![],
            Inplace::Dst => vec![dst],
            Inplace::Residual => vec![sum],
            Inplace::Both => vec![dst, sum],
            Inplace::Sum => vec![(NORM_ARG_SRC, NORM_ARG_RESIDUAL_DST)],
        }
    }
}

/// One value, or two if the second is not implied.
pub fn both(first: String, second: &str, implied: &str) -> String {
    if second == implied { first } else { format!("{first}:{second}") }
}

/// The types of src and dst.
pub fn types_text(src: DataType, dst: DataType) -> String {
    both(src.name().to_owned(), dst.name(), src.name())
}

/// The layouts of src and dst.
pub fn tags_text(src: &Tag, dst: &Tag) -> String {
    both(src.to_string(), &dst.to_string(), &Tag::Any.to_string())
}

/// The letters of flags.
pub fn flags_text(flags: Flags) -> String {
    let Flags { global_stats, scale, shift, rms_norm, .. } = flags;
    let Flags { plus_one, round_first, gate_output, gate_input, .. } = flags;
    let shared = [(global_stats, 'G'), (scale, 'C'), (shift, 'H'), (rms_norm, 'M')];
    let own = [(plus_one, 'P'), (round_first, 'B'), (gate_output, 'O'), (gate_input, 'I')];
    (shared.into_iter().chain(own)).filter_map(|(set, letter)| set.then_some(letter)).collect()
}

/// The layouts of residual and sum.
pub fn residual_tags_text(steps: &Steps) -> String {
    let (residual, sum) = &steps.residual_tags;
    let implied = residual.plain().unwrap_or(&Tag::Any);
    both(residual.to_string(), &sum.to_string(), &implied.to_string())
}

/// Why flags and steps contradict each other.
pub fn contradiction(
    steps: &Steps,
    flags: Flags,
    inplace: Inplace,
    forward: bool,
) -> Option<String> {
    let residual = steps.residual;
    let none = |what: &str| Some(what.to_owned());
    if flags.gate_output && flags.gate_input {
        return none("the flags O and I exclude each other");
    }
    if steps.gate.is_some() && !flags.gate() {
        return none("--gate needs the flag O (output gate) or I (input gate)");
    }
    if steps.gate.is_none() && flags.gate() {
        let letter = if flags.gate_output { 'O' } else { 'I' };
        return Some(format!("the flag {letter} needs --gate"));
    }
    if flags.plus_one && !flags.scale {
        return none("the flag P needs C");
    }
    if steps.partial != Partial::Whole && !flags.rms_norm {
        return none("--partial needs the flag M");
    }
    if residual.is_some_and(|residual| residual.sum.is_none()) && !forward {
        return none("backward needs the sum");
    }
    let of_residual = matches!(inplace, Inplace::Residual | Inplace::Both | Inplace::Sum);
    if of_residual && !(forward && residual.is_some_and(|residual| residual.sum.is_some())) {
        return none("--inplace of a sum needs --residual, forward");
    }
    None
}

/// The steps of a request. `any` stands for the layout of src; `shared` is a residual whose elements are read several
/// times.
pub fn steps_request(
    steps: &Steps,
    src_tag: &Tag,
    ndims: usize,
    partial: usize,
    shared: impl Fn(DataType) -> TensorRequest,
) -> StepsRequest {
    let tensor = |tag: &Tag, data_type| {
        let tag = if *tag == Tag::Any { src_tag } else { tag };
        let request = TensorRequest::tagged(tag, ndims, data_type);
        match request.wanted {
            Wanted::Any => {
                TensorRequest { wanted: Wanted::Ordered((0..ndims).collect()), ..request }
            }
            _ => request,
        }
    };
    let (residual_tag, sum_tag) = &steps.residual_tags;
    StepsRequest {
        residual: steps.residual.map(|residual| ResidualRequest {
            residual: match residual_tag.plain() {
                Some(tag) => tensor(tag, residual.data_type),
                None => shared(residual.data_type),
            },
            sum: residual.sum.map(|sum| tensor(sum_tag, sum)),
            exact: residual.exact,
        }),
        gate: (steps.gate).map(|gate| (tensor(&steps.gate_tag, gate.data_type), gate.function)),
        partial,
    }
}

/// The tensor of a step's argument in a request.
pub fn step_tensor(steps: &mut StepsRequest, id: i32) -> Option<&mut TensorRequest> {
    let (residual, gate) = (steps.residual.as_mut(), steps.gate.as_mut());
    match id {
        NORM_ARG_RESIDUAL => Some(&mut residual?.residual),
        NORM_ARG_RESIDUAL_DST | NORM_ARG_DIFF_RESIDUAL_DST => residual?.sum.as_mut(),
        NORM_ARG_GATE | NORM_ARG_DIFF_GATE => Some(&mut gate?.0),
        _ => None,
    }
}
