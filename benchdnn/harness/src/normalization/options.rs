//! The options of the steps around a normalization, which the drivers share.

use super::Inplace;
use crate::driver::check_tags;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, list, one_of};
use crate::oracle::lnorm::Flags;
use crate::steps::{Gate, Partial, Residual, ResidualTag, Steps, residual_tags};
use crate::tensor::Tag;

/// The values of the options.
#[derive(Clone, Debug, Default)]
pub struct StepLists {
    /// Flags of the normalization.
    pub flags: Vec<Flags>,
    residuals: Vec<Option<Residual>>,
    residual_tags: Vec<(ResidualTag, Tag)>,
    gates: Vec<Option<Gate>>,
    gate_tags: Vec<Tag>,
    partials: Vec<Partial>,
    /// Which tensors share buffers.
    pub inplace: Vec<Inplace>,
}

/// Settings with these options.
pub trait StepOptions {
    /// Their values.
    fn steps(&mut self) -> &mut StepLists;
}

impl StepLists {
    /// Checks the tags for a number of dimensions.
    pub fn check_tags(&self, ndims: usize) -> Result<(), BadValue> {
        let both = (self.residual_tags.iter())
            .flat_map(|(residual, sum)| residual.plain().into_iter().chain([sum]));
        check_tags("residual_tag", both, ndims)?;
        check_tags("gate_tag", &self.gate_tags, ndims)
    }

    /// Multiplies problems by the values of residuals and gates.
    pub fn multiply<P: Clone>(&self, problems: &mut Vec<P>, steps: fn(&mut P) -> &mut Steps) {
        multiply(problems, &self.residuals, |problem, &value| steps(problem).residual = value);
        multiply(problems, &self.residual_tags, |problem, tags| {
            steps(problem).residual_tags = tags.clone();
        });
        multiply(problems, &self.gates, |problem, &value| steps(problem).gate = value);
        multiply(problems, &self.gate_tags, |problem, tag| steps(problem).gate_tag = tag.clone());
        multiply(problems, &self.partials, |problem, &value| steps(problem).partial = value);
    }
}

fn read_flags(text: &str) -> Result<Flags, BadValue> {
    let mut flags = Flags::default();
    for letter in text.chars() {
        match letter.to_ascii_uppercase() {
            'G' => flags.global_stats = true,
            'C' => flags.scale = true,
            'H' => flags.shift = true,
            'M' => flags.rms_norm = true,
            'P' => flags.plus_one = true,
            'B' => flags.round_first = true,
            'O' => flags.gate_output = true,
            'I' => flags.gate_input = true,
            _ => {
                return Err(BadValue::new(format!(
                    "'{text}' is not a combination of G (global statistics), C (scale), H \
                     (shift), M (RMS norm), P (1 + scale), B (rounding before the scale), O and I \
                     (output and input gate)"
                )));
            }
        }
    }
    Ok(flags)
}

/// `--flags`.
pub const fn flags<S: StepOptions>(topic: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(
            topic,
            "flags",
            "",
            "Any of G (global statistics), C (scale), H (shift), M (RMS norm), P (1 + scale), B\n\
             (rounding before the scale), O (output gate), I (input gate), in upper or lower\n\
             case, as in CM",
        ),
        set: |state, text| list(text, ',', read_flags).map(|list| state.steps().flags = list),
    }
}

/// `--residual`.
pub const fn residual<S: StepOptions>(topic: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(
            topic,
            "residual",
            "",
            "Residuals added to src: DT[:SUM_DT|:none][:rounded|:exact], as in f32 or bf16:f32:exact\n\
             (SUM_DT: type of the stored sum, by default DT; exact: the f32 sum is normalized)",
        ),
        set: |state, text| {
            list(text, ',', Residual::parse).map(|list| state.steps().residuals = list)
        },
    }
}

/// `--residual_tag`, with the help of a shared residual.
pub const fn residual_tag<S: StepOptions>(topic: &'static str, help: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(topic, "residual_tag", "any", help),
        set: |state, text| {
            list(text, ',', residual_tags).map(|list| state.steps().residual_tags = list)
        },
    }
}

/// `--gate`.
pub const fn gate<S: StepOptions>(topic: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(
            topic,
            "gate",
            "",
            "Gates, for the flags O and I: DT[:swish[:ALPHA]|:logistic], as in bf16",
        ),
        set: |state, text| list(text, ',', Gate::parse).map(|list| state.steps().gates = list),
    }
}

/// `--gate_tag`.
pub const fn gate_tag<S: StepOptions>(topic: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(topic, "gate_tag", "any", "Layouts of the gate; any is the layout of src"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.steps().gate_tags = list),
    }
}

/// `--partial`.
pub const fn partial<S: StepOptions>(topic: &'static str, help: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(topic, "partial", "0", help),
        set: |state, text| {
            list(text, ',', Partial::parse).map(|list| state.steps().partials = list)
        },
    }
}

/// `--inplace`.
pub const fn inplace<S: StepOptions>(topic: &'static str) -> Opt<S> {
    Opt {
        info: Info::list(
            topic,
            "inplace",
            "false",
            "Which tensors share buffers: true (dst overwrites src), residual (the sum overwrites\n\
             the residual), both, sum (the sum overwrites src), false",
        ),
        set: |state, text| {
            let read = |item: &str| one_of(item, &Inplace::NAMES);
            list(text, ',', read).map(|list| state.steps().inplace = list)
        },
    }
}
