//! The options of the driver, and the combinations of their lists.

use super::choices::{Angles, Flags};
use super::parameters::{DIMENSIONS, PAIRINGS, RopeProblem};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, integer, list, one_of};
use crate::oracle::rope::Pairing;
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    src_dts: Vec<DataType>,
    dst_dts: Vec<DataType>,
    position_dts: Vec<DataType>,
    table_dts: Vec<DataType>,
    src_tags: Vec<Tag>,
    dst_tags: Vec<Tag>,
    pairings: Vec<Pairing>,
    angles: Vec<Angles>,
    tokens: Vec<String>,
    index_dims: Vec<i32>,
    rotary: Vec<usize>,
    magnitudes: Vec<f32>,
    sections: Vec<Vec<usize>>,
    flags: Vec<Flags>,
    epsilons: Vec<f32>,
    limits: Vec<usize>,
    inplace: Vec<bool>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<RopeProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("stag", &self.src_tags, dims.len())?;
        check_tags("dtag", &self.dst_tags, dims.len())?;
        // The first option varies slowest, as in oneDNN.
        let mut all = vec![RopeProblem { dims, name, ..RopeProblem::default() }];
        multiply(&mut all, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut all, &self.src_dts, |problem, &value| problem.src_dt = value);
        multiply(&mut all, &self.dst_dts, |problem, &value| problem.dst_dt = value);
        multiply(&mut all, &self.position_dts, |problem, &value| problem.position_dt = value);
        multiply(&mut all, &self.table_dts, |problem, &value| problem.table_dt = value);
        multiply(&mut all, &self.src_tags, |problem, tag| problem.src_tag = tag.clone());
        multiply(&mut all, &self.dst_tags, |problem, tag| problem.dst_tag = tag.clone());
        multiply(&mut all, &self.pairings, |problem, &value| problem.pairing = value);
        multiply(&mut all, &self.angles, |problem, &value| problem.angles = value);
        multiply(&mut all, &self.tokens, |problem, value| problem.tokens.clone_from(value));
        multiply(&mut all, &self.index_dims, |problem, &value| problem.index_dim = value);
        multiply(&mut all, &self.rotary, |problem, &value| problem.rotary = value);
        multiply(&mut all, &self.magnitudes, |problem, &value| problem.magnitude = value);
        multiply(&mut all, &self.sections, |problem, value| problem.sections.clone_from(value));
        multiply(&mut all, &self.flags, |problem, &value| problem.flags = value);
        multiply(&mut all, &self.epsilons, |problem, &value| problem.epsilon = value);
        multiply(&mut all, &self.limits, |problem, &value| problem.limit = value);
        attributes.multiply(&mut all, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut all, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(all)
    }
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of rope (lists multiply out)", name, default, help)
}

fn number(item: &str) -> Result<f32, BadValue> {
    item.parse().map_err(|_| BadValue::new(format!("'{item}' is not a number")))
}

fn letters(item: &str) -> Result<String, BadValue> {
    match item.chars().find(|letter| !('a'..='e').contains(letter)) {
        Some(letter) => Err(BadValue::new(format!("'{letter}' is not a dimension, a to e"))),
        None => Ok(item.to_owned()),
    }
}

fn sections(item: &str) -> Result<Vec<usize>, BadValue> {
    if item.is_empty() {
        return Ok(Vec::new());
    }
    list(item, ':', |pairs| integer(pairs, 0..=1 << 20).map(|pairs| pairs as usize))
}

fn index_dim(item: &str) -> Result<i32, BadValue> {
    if item == "-1" { Ok(-1) } else { integer(item, 0..=4).map(|dim| dim as i32) }
}

/// The types of positions.
const POSITIONS: [DataType; 2] = [DataType::S32, DataType::S64];

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "dir",
            "FWD_D",
            "FWD_D: forward; FWD_I: the same; BWD_D: gradient of src; BWD_DW: gradients of src \
             and of the scale",
        ),
        set: |state, text| list(text, ',', Direction::parse).map(|list| state.directions = list),
    },
    Opt {
        info: row("sdt", "f32", "Types of src: f32, bf16, f16"),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::ROUNDED_FLOATS))
                .map(|list| state.src_dts = list)
        },
    },
    Opt {
        info: row("ddt", "f32", "Types of dst: the same"),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::ROUNDED_FLOATS))
                .map(|list| state.dst_dts = list)
        },
    },
    Opt {
        info: row("positions", "s32", "Types of positions: s32, s64"),
        set: |state, text| {
            list(text, ',', DataType::among(&POSITIONS)).map(|list| state.position_dts = list)
        },
    },
    Opt {
        info: row("tables", "f32", "Types of tables: f32, bf16, f16"),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::ROUNDED_FLOATS))
                .map(|list| state.table_dts = list)
        },
    },
    Opt {
        info: row("stag", "abx", "Layouts of src: abx, axb, letters (acbd)"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.src_tags = list),
    },
    Opt {
        info: row("dtag", "any", "Layouts of dst; any: the library chooses"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.dst_tags = list),
    },
    Opt {
        info: row(
            "pairing",
            "INTERLEAVED",
            "INTERLEAVED: 2i and 2i+1; HALF: i and i+rotary/2; HALF_OF_HEAD: i and i+head/2",
        ),
        set: |state, text| {
            let pairing = |item: &str| one_of(item, &PAIRINGS);
            list(text, ',', pairing).map(|list| state.pairings = list)
        },
    },
    Opt {
        info: row("angles", "FREQUENCIES", "FREQUENCIES: computed; TABLES: read"),
        set: |state, text| {
            let angles = |item: &str| one_of(item, &Angles::NAMES);
            list(text, ',', angles).map(|list| state.angles = list)
        },
    },
    Opt {
        info: row(
            "tokens",
            "",
            "Dimensions with positions, such as ac; empty: all but the last two",
        ),
        set: |state, text| list(text, ',', letters).map(|list| state.tokens = list),
    },
    Opt {
        info: row("index-dim", "-1", "A dimension whose index is added to positions, or -1"),
        set: |state, text| list(text, ',', index_dim).map(|list| state.index_dims = list),
    },
    Opt {
        info: row("rotary", "0", "How many elements of a head are rotated; 0: all"),
        set: |state, text| {
            let rotary = |item: &str| integer(item, 0..=1 << 20).map(|rotary| rotary as usize);
            list(text, ',', rotary).map(|list| state.rotary = list)
        },
    },
    Opt {
        info: row("magnitude", "1", "Factors for cosines and sines"),
        set: |state, text| list(text, ',', number).map(|list| state.magnitudes = list),
    },
    Opt {
        info: row(
            "sections",
            "",
            "Pairs that each part of the position rotates, as in 16:24:24; \
             empty: one part",
        ),
        set: |state, text| list(text, ',', sections).map(|list| state.sections = list),
    },
    Opt {
        info: row(
            "flags",
            "",
            "M: heads are normalized; C: with a scale; P: 1 is added to the scale; R: rounded \
             before the rotation; W: dst has slots; I: sections alternate",
        ),
        set: |state, text| list(text, ',', Flags::parse).map(|list| state.flags = list),
    },
    Opt {
        info: row("eps", "1e-6", "Epsilons of the normalization"),
        set: |state, text| list(text, ',', number).map(|list| state.epsilons = list),
    },
    Opt {
        info: row(
            "limit",
            "1048576",
            "Upper limit of positions, exclusive; tables have at most \
             64 rows",
        ),
        set: |state, text| {
            let limit = |item: &str| integer(item, 1..=1 << 31).map(|limit| limit as usize);
            list(text, ',', limit).map(|list| state.limits = list)
        },
    },
    Opt {
        info: row("inplace", "false", "Whether dst shares the buffer of src: true, false"),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
