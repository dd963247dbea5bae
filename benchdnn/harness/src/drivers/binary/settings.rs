//! The options of the driver, its descriptor, and the combinations of lists.

use super::parameters::{BinaryProblem, DIMENSIONS};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, list, pair};
use crate::oracle::post_ops::BinaryAlgorithm;
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    src_dts: Vec<(DataType, DataType)>,
    dst_dts: Vec<DataType>,
    src_tags: Vec<Vec<Tag>>,
    dst_tags: Vec<Tag>,
    algorithms: Vec<BinaryAlgorithm>,
    inplace: Vec<bool>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<BinaryProblem>, BadValue> {
        let (dims, name) = sources(descriptor)?;
        check_tags("stag", self.src_tags.iter().flatten(), dims[0].len())?;
        check_tags("dtag", &self.dst_tags, dims[0].len())?;
        // The first option varies slowest, as in oneDNN.
        let mut problems = vec![BinaryProblem { dims, name, ..BinaryProblem::default() }];
        multiply(&mut problems, &self.src_dts, |problem, &(src0, src1)| {
            problem.src_dts = [src0, src1];
        });
        multiply(&mut problems, &self.dst_dts, |problem, &value| problem.dst_dt = value);
        multiply(&mut problems, &self.src_tags, |problem, tags| problem.src_tags = tags.clone());
        multiply(&mut problems, &self.dst_tags, |problem, tag| problem.dst_tag = tag.clone());
        multiply(&mut problems, &self.algorithms, |problem, &value| problem.algorithm = value);
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

/// The dimensions of the sources, the same number for each, and the name.
fn sources(text: &str) -> Result<(Vec<Vec<usize>>, String), BadValue> {
    let end = text.find('n').map_or(text.len(), |at| text[..at].trim_end_matches('_').len());
    let (sizes, end) = text.split_at(end);
    let mut all: Vec<Vec<usize>> = list(sizes, ':', |item| {
        Descriptor::parse(item, &DIMENSIONS).map(|descriptor| descriptor.dims)
    })?;
    let name = match end.find('n') {
        None => String::new(),
        Some(at) => {
            let shifted = |error: BadValue| error.shifted(sizes.len() + at + 1);
            Descriptor::name(&end[at + 1..]).map_err(shifted)?
        }
    };
    if all.len() == 1 {
        all.push(all[0].clone());
    }
    let ndims = all[0].len();
    let bad = |what: &str| BadValue::new(format!("'{sizes}': {what}"));
    if all.len() > 3 || all.iter().any(|dims| dims.len() > ndims) {
        return Err(bad("two sources and a condition, none with more dimensions than the first"));
    }
    all.iter_mut().for_each(|dims| dims.resize(ndims, 1));
    let most = |d: usize| if all[0][d] == 1 { all[1][d] } else { all[0][d] };
    let fits = |dims: &Vec<usize>| (0..ndims).all(|d| dims[d] == 1 || dims[d] == most(d));
    if !all.iter().all(fits) {
        return Err(bad("sources have equal dimensions, or one of them has 1"));
    }
    Ok((all, name))
}

/// `SRC0[:SRC1[:SRC2]]`.
fn tags(text: &str) -> Result<Vec<Tag>, BadValue> {
    let tags = list(text, ':', Tag::parse_blocked)?;
    match tags.len() {
        1..=3 => Ok(tags),
        _ => Err(BadValue::new(format!("'{text}' is not SRC0:SRC1 or SRC0:SRC1:SRC2"))),
    }
}

fn algorithm(text: &str) -> Result<BinaryAlgorithm, BadValue> {
    BinaryAlgorithm::named(&text.to_ascii_lowercase()).ok_or_else(|| {
        let names = BinaryAlgorithm::names().join(", ");
        BadValue::new(format!("'{text}' is none of {names}"))
    })
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of binary (lists multiply out)", name, default, help)
}

/// The types of sources and dst.
const TYPES: [DataType; 8] = [
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::S32,
    DataType::S8,
    DataType::U8,
    DataType::F8E5m2,
    DataType::F8E4m3,
];

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "sdt",
            "f32:f32",
            "Types SRC0[:SRC1]: f32, bf16, f16, s32, s8, u8, f8_e5m2, f8_e4m3",
        ),
        set: |state, text| {
            let types = |item: &str| pair(item, DataType::among(&TYPES), |&first| first);
            list(text, ',', types).map(|list| state.src_dts = list)
        },
    },
    Opt {
        info: row("ddt", "f32", "Types of dst: the same"),
        set: |state, text| {
            list(text, ',', DataType::among(&TYPES)).map(|list| state.dst_dts = list)
        },
    },
    Opt {
        info: row(
            "stag",
            "abx:any",
            "Layouts SRC0[:SRC1[:SRC2]]: abx, axb, xba, letters (acb), names (tnc), or with\n\
             blocks (aBx16b); by default any for SRC1 and as SRC0 for SRC2",
        ),
        set: |state, text| list(text, ',', tags).map(|list| state.src_tags = list),
    },
    Opt {
        info: row("dtag", "any", "Layouts of dst; any: the library chooses"),
        set: |state, text| list(text, ',', Tag::parse_blocked).map(|list| state.dst_tags = list),
    },
    Opt {
        info: row("alg", "add", "add, div, eq, ge, gt, le, lt, max, min, mul, ne, sub, select"),
        set: |state, text| list(text, ',', algorithm).map(|list| state.algorithms = list),
    },
    Opt {
        info: row("inplace", "false", "Whether dst shares the buffer of src0: true, false"),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
