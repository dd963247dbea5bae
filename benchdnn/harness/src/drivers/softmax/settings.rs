//! The options of the driver, and the combinations of their lists.

use super::parameters::{Algorithm, DIMENSIONS, SoftmaxProblem};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, integer, list, one_of};
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    src_dts: Vec<DataType>,
    dst_dts: Vec<DataType>,
    src_tags: Vec<Tag>,
    dst_tags: Vec<Tag>,
    algorithms: Vec<Algorithm>,
    axes: Vec<usize>,
    stats_tags: Vec<Tag>,
    inplace: Vec<bool>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<SoftmaxProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("stag", &self.src_tags, dims.len())?;
        check_tags("dtag", &self.dst_tags, dims.len())?;
        check_tags("stats", &self.stats_tags, dims.len())?;
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= dims.len()) {
            let count = dims.len();
            let message =
                format!("--axis: {axis} is not one of the {count} dimensions, which count from 0");
            return Err(BadValue::new(message));
        }
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![SoftmaxProblem { dims, name, ..SoftmaxProblem::default() }];
        multiply(&mut problems, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut problems, &self.src_dts, |problem, &value| problem.src_dt = value);
        multiply(&mut problems, &self.dst_dts, |problem, &value| problem.dst_dt = value);
        multiply(&mut problems, &self.src_tags, |problem, tag| problem.src_tag = tag.clone());
        multiply(&mut problems, &self.dst_tags, |problem, tag| problem.dst_tag = tag.clone());
        multiply(&mut problems, &self.algorithms, |problem, &value| problem.algorithm = value);
        multiply(&mut problems, &self.axes, |problem, &value| problem.axis = value);
        multiply(&mut problems, &self.stats_tags, |problem, tag| problem.stats_tag = tag.clone());
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of softmax (lists multiply out)", name, default, help)
}

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "dir",
            "FWD_D",
            "FWD_D: forward for training; FWD_I: for inference; BWD_D: gradient of src",
        ),
        set: |state, text| {
            list(text, ',', Direction::parse_without_parameters).map(|list| state.directions = list)
        },
    },
    Opt {
        info: row(
            "sdt",
            "f32",
            "Types of src: f32, bf16, f16, f64; forward also s8, u8, f8_e5m2, f8_e4m3",
        ),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::NORMALIZED)).map(|list| state.src_dts = list)
        },
    },
    Opt {
        info: row("ddt", "f32", "Types of dst: the same"),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::NORMALIZED)).map(|list| state.dst_dts = list)
        },
    },
    Opt {
        info: row(
            "stag",
            "abx",
            "Layouts of src: abx, axb, xba, letters (acb), names (tnc), or with blocks (aBx16b)",
        ),
        set: |state, text| list(text, ',', Tag::parse_blocked).map(|list| state.src_tags = list),
    },
    Opt {
        info: row("dtag", "any", "Layouts of dst; any: the library chooses"),
        set: |state, text| list(text, ',', Tag::parse_blocked).map(|list| state.dst_tags = list),
    },
    Opt {
        info: row(
            "alg",
            "SOFTMAX",
            "SOFTMAX (softmax_accurate), LOGSOFTMAX (softmax_log), softmax_accurate_inf_as_zero",
        ),
        set: |state, text| {
            let algorithm = |item: &str| one_of(item, &Algorithm::NAMES);
            list(text, ',', algorithm).map(|list| state.algorithms = list)
        },
    },
    Opt {
        info: row("axis", "1", "The axis, counted from 0"),
        set: |state, text| {
            let axis = |item: &str| integer(item, 0..=11).map(|axis| axis as usize);
            list(text, ',', axis).map(|list| state.axes = list)
        },
    },
    Opt {
        info: row(
            "stats",
            "undef",
            "Layouts of the logarithms of the rows' sums, which forward stores; undef: not stored",
        ),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.stats_tags = list),
    },
    Opt {
        info: row("inplace", "false", "Whether dst shares the buffer of src: true, false"),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
