//! The options of the driver, and the combinations of their lists.

use super::parameters::{DIMENSIONS, EltwiseProblem};
use crate::attributes::{AttributeSettings, number};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, list, pair};
use crate::oracle::post_ops::EltwiseAlgorithm;
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    dts: Vec<(DataType, DataType)>,
    tags: Vec<(Tag, Tag)>,
    algorithms: Vec<EltwiseAlgorithm>,
    alphas: Vec<f32>,
    betas: Vec<f32>,
    inplace: Vec<bool>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<EltwiseProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("tag", self.tags.iter().flat_map(|(src, dst)| [src, dst]), dims.len())?;
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![EltwiseProblem { dims, name, ..EltwiseProblem::default() }];
        multiply(&mut problems, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut problems, &self.dts, |problem, &(src, dst)| {
            (problem.src_dt, problem.dst_dt) = (src, dst);
        });
        multiply(&mut problems, &self.tags, |problem, (src, dst)| {
            (problem.src_tag, problem.dst_tag) = (src.clone(), dst.clone());
        });
        multiply(&mut problems, &self.algorithms, |problem, &value| problem.algorithm = value);
        multiply(&mut problems, &self.alphas, |problem, &value| problem.alpha = value);
        multiply(&mut problems, &self.betas, |problem, &value| problem.beta = value);
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

fn algorithm(text: &str) -> Result<EltwiseAlgorithm, BadValue> {
    EltwiseAlgorithm::named(&text.to_ascii_lowercase()).ok_or_else(|| {
        let names = EltwiseAlgorithm::names().join(", ");
        BadValue::new(format!("'{text}' is none of {names}"))
    })
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of eltwise (lists multiply out)", name, default, help)
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
            "dt",
            "f32",
            "Types SRC[:DST]: f32, bf16, f16, f64, f8_e5m2, f8_e4m3; forward also s32, s8, u8",
        ),
        set: |state, text| {
            let types =
                |item: &str| pair(item, DataType::among(&DataType::ELEMENTWISE), |&src| src);
            list(text, ',', types).map(|list| state.dts = list)
        },
    },
    Opt {
        info: row(
            "tag",
            "abx",
            "Layouts SRC[:DST]: abx, axb, xba, letters (acb), names (tnc), or with blocks\n\
             (aBx16b); DST is any by default",
        ),
        set: |state, text| {
            let tags = |item: &str| pair(item, Tag::parse_blocked, |_| Tag::Any);
            list(text, ',', tags).map(|list| state.tags = list)
        },
    },
    Opt {
        info: row(
            "alg",
            "relu",
            "Functions, as in --attr-post-ops; with the suffix _dst, gradients are computed from \
             dst",
        ),
        set: |state, text| list(text, ',', algorithm).map(|list| state.algorithms = list),
    },
    Opt {
        info: row("alpha", "0", "The first parameter of the function"),
        set: |state, text| list(text, ',', number).map(|list| state.alphas = list),
    },
    Opt {
        info: row("beta", "0", "The second parameter of the function"),
        set: |state, text| list(text, ',', number).map(|list| state.betas = list),
    },
    Opt {
        info: row(
            "inplace",
            "false",
            "Whether dst shares the buffer of src, or diff_src that of diff_dst: true, false",
        ),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
