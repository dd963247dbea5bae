//! The options of the driver, and the combinations of their lists.

use super::parameters::{DIMENSIONS, LnormProblem};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, list, pair};
use crate::normalization::{self, StepLists, StepOptions};
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    data_types: Vec<(DataType, DataType)>,
    tags: Vec<(Tag, Tag)>,
    stat_tags: Vec<Tag>,
    ss_dts: Vec<DataType>,
    epsilons: Vec<f32>,
    steps: StepLists,
}

impl StepOptions for Settings {
    fn steps(&mut self) -> &mut StepLists {
        &mut self.steps
    }
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<LnormProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("tag", self.tags.iter().flat_map(|(src, dst)| [src, dst]), dims.len())?;
        self.steps.check_tags(dims.len())?;
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
        multiply(&mut problems, &self.steps.flags, |problem, &value| problem.flags = value);
        multiply(&mut problems, &self.epsilons, |problem, &value| problem.epsilon = value);
        self.steps.multiply(&mut problems, |problem| &mut problem.steps);
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.steps.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

fn epsilon(text: &str) -> Result<f32, BadValue> {
    match text.parse::<f32>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon >= 0.0 => Ok(epsilon.abs()),
        _ => Err(BadValue::new(format!("'{text}' is not a finite number of 0 or more"))),
    }
}

/// The heading of the options.
const TOPIC: &str = "Problems of lnorm (lists multiply out)";

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list(TOPIC, name, default, help)
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
            let types = |item: &str| pair(item, DataType::among(&DataType::NORMALIZED), |&src| src);
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
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::ROUNDED_FLOATS))
                .map(|list| state.ss_dts = list)
        },
    },
    normalization::flags(TOPIC),
    Opt {
        info: row("eps", "0.0625", "Epsilons, added to the variance"),
        set: |state, text| list(text, ',', epsilon).map(|list| state.epsilons = list),
    },
    normalization::residual(TOPIC),
    normalization::residual_tag(
        TOPIC,
        "Layouts of residual and sum, one or RESIDUAL:SUM; any is the layout of src; row\n\
         broadcasts one row of the residual",
    ),
    normalization::gate(TOPIC),
    normalization::gate_tag(TOPIC),
    normalization::partial(
        TOPIC,
        "How many elements of a row the RMS is taken over: a number, or a share as in 25%; 0: all",
    ),
    normalization::inplace(TOPIC),
];
