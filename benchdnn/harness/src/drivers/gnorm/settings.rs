//! The options of the driver, and the combinations of their lists.

use super::descriptor;
use super::parameters::GnormProblem;
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
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
        text: &str,
    ) -> Result<Vec<GnormProblem>, BadValue> {
        let problem = descriptor::parse(text)?;
        let ndims = problem.dims.len();
        check_tags("tag", self.tags.iter().flat_map(|(src, dst)| [src, dst]), ndims)?;
        self.steps.check_tags(ndims)?;
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![problem];
        multiply(&mut problems, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut problems, &self.data_types, |problem, &value| {
            (problem.src_dt, problem.dst_dt) = value;
        });
        multiply(&mut problems, &self.tags, |problem, (src, dst)| {
            (problem.src_tag, problem.dst_tag) = (src.clone(), dst.clone());
        });
        multiply(&mut problems, &self.steps.flags, |problem, &value| problem.flags = value);
        self.steps.multiply(&mut problems, |problem| &mut problem.steps);
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.steps.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

/// The heading of the options.
const TOPIC: &str = "Problems of gnorm (lists multiply out)";

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
            "Layouts of src and dst: abx (channels first), axb (channels last), letters (acb),\n\
             names (nhwc) or SRC:DST; dst may be any, which is its default",
        ),
        set: |state, text| {
            let tags = |item: &str| pair(item, Tag::parse, |_| Tag::Any);
            list(text, ',', tags).map(|list| state.tags = list)
        },
    },
    normalization::flags(TOPIC),
    normalization::residual(TOPIC),
    normalization::residual_tag(
        TOPIC,
        "Layouts of residual and sum, one or RESIDUAL:SUM; any is the layout of src; row\n\
         broadcasts one sample of the residual",
    ),
    normalization::gate(TOPIC),
    normalization::gate_tag(TOPIC),
    normalization::partial(
        TOPIC,
        "How many elements of a group, in its first channels, the RMS is taken over: a\n\
         number, or a share of its channels as in 25%; 0: all",
    ),
    normalization::inplace(TOPIC),
];
