//! The options of the driver, and how their lists multiply out.

use super::problem::{DIMENSIONS, Inplace, LnormProblem};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, list, one_of, pair};
use crate::oracle::lnorm::Flags;
use crate::steps::{Gate, Partial, Residual, ResidualTag, residual_tags};
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    data_types: Vec<(DataType, DataType)>,
    tags: Vec<(Tag, Tag)>,
    stat_tags: Vec<Tag>,
    ss_dts: Vec<DataType>,
    flags: Vec<Flags>,
    epsilons: Vec<f32>,
    residuals: Vec<Option<Residual>>,
    residual_tags: Vec<(ResidualTag, Tag)>,
    gates: Vec<Option<Gate>>,
    gate_tags: Vec<Tag>,
    partials: Vec<Partial>,
    inplace: Vec<Inplace>,
}

impl Settings {
    /// Every combination of the options for one descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<LnormProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("tag", self.tags.iter().flat_map(|(src, dst)| [src, dst]), dims.len())?;
        let both = (self.residual_tags.iter())
            .flat_map(|(residual, sum)| residual.plain().into_iter().chain([sum]));
        check_tags("residual_tag", both, dims.len())?;
        check_tags("gate_tag", &self.gate_tags, dims.len())?;
        check_tags("stat_tag", &self.stat_tags, dims.len() - 1).map_err(|error| {
            let message = error.message;
            BadValue::new(format!("{message}, which mean and variance have"))
        })?;
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![LnormProblem { dims, name, ..LnormProblem::default() }];
        multiply(&mut problems, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut problems, &self.data_types, |problem, &value| {
            (problem.src_dt, problem.dst_dt) = value;
        });
        multiply(&mut problems, &self.tags, |problem, (src, dst)| {
            (problem.src_tag, problem.dst_tag) = (src.clone(), dst.clone());
        });
        multiply(&mut problems, &self.stat_tags, |problem, tag| problem.stat_tag = tag.clone());
        multiply(&mut problems, &self.ss_dts, |problem, &value| problem.ss_dt = value);
        multiply(&mut problems, &self.flags, |problem, &value| problem.flags = value);
        multiply(&mut problems, &self.epsilons, |problem, &value| problem.epsilon = value);
        self.multiply_steps(&mut problems);
        multiply(&mut problems, &attributes.combinations(), |problem, value| {
            problem.attributes = value.clone();
        });
        multiply(&mut problems, &attributes.contexts(), |problem, &contexts| {
            problem.contexts = contexts;
        });
        multiply(&mut problems, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }

    fn multiply_steps(&self, problems: &mut Vec<LnormProblem>) {
        multiply(problems, &self.residuals, |problem, &value| problem.steps.residual = value);
        multiply(problems, &self.residual_tags, |problem, tags| {
            problem.steps.residual_tags = tags.clone();
        });
        multiply(problems, &self.gates, |problem, &value| problem.steps.gate = value);
        multiply(problems, &self.gate_tags, |problem, tag| problem.steps.gate_tag = tag.clone());
        multiply(problems, &self.partials, |problem, &value| problem.steps.partial = value);
    }
}

fn flags(text: &str) -> Result<Flags, BadValue> {
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
                    "'{text}' is not a combination of G (global statistics), C (scale), H (shift), \
                     M (RMS norm), P (1 + scale), B (rounded before the scale), O and I (gate of the \
                     output or the input)"
                )));
            }
        }
    }
    Ok(flags)
}

fn epsilon(text: &str) -> Result<f32, BadValue> {
    match text.parse::<f32>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon >= 0.0 => Ok(epsilon.abs()),
        _ => Err(BadValue::new(format!("'{text}' is not a finite number from 0 upwards"))),
    }
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of lnorm (lists multiply out)", name, default, help)
}

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "dir",
            "FWD_D",
            "FWD_D: forward for training; FWD_I: for inference; BWD_D: gradient of src;\n\
             BWD_DW: gradients of src, scale and shift",
        ),
        set: |state, text| list(text, ',', Direction::parse).map(|list| state.directions = list),
    },
    Opt {
        info: row(
            "dt",
            "f32",
            "Data types of src and dst: f32, bf16, f16, f64, s8, u8, f8_e4m3, f8_e5m2 or SRC:DST",
        ),
        set: |state, text| {
            let types = |item: &str| pair(item, DataType::parse, |&src| src);
            list(text, ',', types).map(|list| state.data_types = list)
        },
    },
    Opt {
        info: row(
            "tag",
            "abx",
            "Layouts of src and dst: abx, axb, xba, letters (acb), names (tnc) or SRC:DST;\n\
             dst may be any, which is its default",
        ),
        set: |state, text| {
            let tags = |item: &str| pair(item, Tag::parse, |_| Tag::Any);
            list(text, ',', tags).map(|list| state.tags = list)
        },
    },
    Opt {
        info: row("stat_tag", "any", "Layouts of mean and variance; undef passes no descriptor"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.stat_tags = list),
    },
    Opt {
        info: row("ss_dt", "f32", "Data types of scale and shift: f32, bf16, f16"),
        set: |state, text| list(text, ',', DataType::parse).map(|list| state.ss_dts = list),
    },
    Opt {
        info: row(
            "flags",
            "",
            "Any of G (global statistics), C (scale), H (shift), M (RMS norm), P (1 + scale), B (rounded\n\
             before the scale), O (gate of the output), I (gate of the input), in either case, as in CM",
        ),
        set: |state, text| list(text, ',', flags).map(|list| state.flags = list),
    },
    Opt {
        info: row("eps", "0.0625", "Epsilons, added to the variance"),
        set: |state, text| list(text, ',', epsilon).map(|list| state.epsilons = list),
    },
    Opt {
        info: row(
            "residual",
            "",
            "Residuals added to src: DT[:SUM_DT|:none][:rounded|:exact], as in f32 or bf16:f32:exact\n\
             (SUM_DT: type of the stored sum, by default DT; exact: the f32 sum is normalized)",
        ),
        set: |state, text| list(text, ',', Residual::parse).map(|list| state.residuals = list),
    },
    Opt {
        info: row(
            "residual_tag",
            "any",
            "Layouts of residual and sum, one or RESIDUAL:SUM; any is the layout of src; row: one row of\n\
             the residual for all",
        ),
        set: |state, text| list(text, ',', residual_tags).map(|list| state.residual_tags = list),
    },
    Opt {
        info: row(
            "gate",
            "",
            "Gates, for the flags O and I: DT[:swish[:ALPHA]|:logistic], as in bf16",
        ),
        set: |state, text| list(text, ',', Gate::parse).map(|list| state.gates = list),
    },
    Opt {
        info: row("gate_tag", "any", "Layouts of the gate; any is the layout of src"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.gate_tags = list),
    },
    Opt {
        info: row(
            "partial",
            "0",
            "Elements of a row that the RMS is taken over: a number, or a share as in 25%; 0: all",
        ),
        set: |state, text| list(text, ',', Partial::parse).map(|list| state.partials = list),
    },
    Opt {
        info: row(
            "inplace",
            "false",
            "Which tensors share buffers: true (dst that of src), residual (the sum that of the\n\
             residual), both, sum (the sum that of src), false",
        ),
        set: |state, text| {
            let read = |item: &str| one_of(item, &Inplace::NAMES);
            list(text, ',', read).map(|list| state.inplace = list)
        },
    },
];
