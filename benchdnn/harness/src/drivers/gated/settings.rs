//! The options of the driver, and the combinations of their lists.

use super::parameters::{DIMENSIONS, FUNCTIONS, GatedProblem, Packing};
use crate::attributes::AttributeSettings;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::check_tags;
use crate::language::descriptor::Descriptor;
use crate::language::options::{Info, Opt, multiply};
use crate::language::value::{BadValue, boolean, list, one_of};
use crate::oracle::gated::Function;
use crate::tensor::Tag;

/// The values of the driver's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    directions: Vec<Direction>,
    src_dts: Vec<DataType>,
    dst_dts: Vec<DataType>,
    src_tags: Vec<Tag>,
    dst_tags: Vec<Tag>,
    functions: Vec<Function>,
    packings: Vec<Packing>,
    alphas: Vec<f32>,
    limits: Vec<f32>,
    shifts: Vec<f32>,
    rewrites: Vec<bool>,
    inplace: Vec<bool>,
}

impl Settings {
    /// All combinations of the options for a descriptor.
    pub(super) fn problems(
        &self,
        attributes: &AttributeSettings,
        descriptor: &str,
    ) -> Result<Vec<GatedProblem>, BadValue> {
        let Descriptor { dims, name } = Descriptor::parse(descriptor, &DIMENSIONS)?;
        check_tags("stag", &self.src_tags, dims.len())?;
        check_tags("dtag", &self.dst_tags, dims.len())?;
        // The first option varies slowest.
        let mut problems = vec![GatedProblem { dims, name, ..GatedProblem::default() }];
        multiply(&mut problems, &self.directions, |problem, &value| problem.direction = value);
        multiply(&mut problems, &self.src_dts, |problem, &value| problem.src_dt = value);
        multiply(&mut problems, &self.dst_dts, |problem, &value| problem.dst_dt = value);
        multiply(&mut problems, &self.src_tags, |problem, tag| problem.src_tag = tag.clone());
        multiply(&mut problems, &self.dst_tags, |problem, tag| problem.dst_tag = tag.clone());
        multiply(&mut problems, &self.functions, |problem, &value| problem.function = value);
        multiply(&mut problems, &self.packings, |problem, &value| problem.packing = value);
        multiply(&mut problems, &self.alphas, |problem, &value| problem.alpha = value);
        multiply(&mut problems, &self.limits, |problem, &value| problem.limit = value);
        multiply(&mut problems, &self.shifts, |problem, &value| problem.shift = value);
        multiply(&mut problems, &self.rewrites, |problem, &value| problem.rewrites = value);
        attributes
            .multiply(&mut problems, |problem| (&mut problem.attributes, &mut problem.contexts));
        multiply(&mut problems, &self.inplace, |problem, &value| problem.inplace = value);
        Ok(problems)
    }
}

fn number(text: &str) -> Result<f32, BadValue> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(BadValue::new(format!("`{text}` is not a finite number"))),
    }
}

fn limit(text: &str) -> Result<f32, BadValue> {
    if text == "none" {
        return Ok(f32::INFINITY);
    }
    match number(text)? {
        limit if limit > 0.0 => Ok(limit),
        _ => Err(BadValue::new(format!("`{text}` is neither a number above 0 nor none"))),
    }
}

const fn row(name: &'static str, default: &'static str, help: &'static str) -> Info {
    Info::list("Problems of gated activation (lists multiply out)", name, default, help)
}

/// The types of dst.
const DST_TYPES: [DataType; 7] = [
    DataType::F32,
    DataType::Bf16,
    DataType::F16,
    DataType::S8,
    DataType::U8,
    DataType::F8E5m2,
    DataType::F8E4m3,
];

/// The driver's options.
pub(super) const OPTIONS: &[Opt<Settings>] = &[
    Opt {
        info: row(
            "dir",
            "FWD_D",
            "FWD_D: forward for training; FWD_I: for inference; BWD_D: gradients of gate and up",
        ),
        set: |state, text| {
            list(text, ',', Direction::parse_without_parameters).map(|list| state.directions = list)
        },
    },
    Opt {
        info: row("sdt", "f32", "Types of src: f32, bf16, f16"),
        set: |state, text| {
            list(text, ',', DataType::among(&DataType::ROUNDED_FLOATS))
                .map(|list| state.src_dts = list)
        },
    },
    Opt {
        info: row("ddt", "f32", "Types of dst: the same; forward also s8, u8, f8_e5m2, f8_e4m3"),
        set: |state, text| {
            list(text, ',', DataType::among(&DST_TYPES)).map(|list| state.dst_dts = list)
        },
    },
    Opt {
        info: row("stag", "abx", "Layouts of src: abx, axb, xba, letters (acb) or names (tnc)"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.src_tags = list),
    },
    Opt {
        info: row("dtag", "any", "Layouts of dst; any: the library chooses"),
        set: |state, text| list(text, ',', Tag::parse).map(|list| state.dst_tags = list),
    },
    Opt {
        info: row("alg", "SWISH", "SWISH, GELU_ERF, GELU_TANH, RELU, LOGISTIC, LINEAR"),
        set: |state, text| {
            let function = |item: &str| one_of(item, &FUNCTIONS);
            list(text, ',', function).map(|list| state.functions = list)
        },
    },
    Opt {
        info: row(
            "packing",
            "separate",
            "separate: gate is src, up is src_1; gate_first, up_first: halves of each row of src;\n\
             interleaved: gate at even indices, up at odd ones",
        ),
        set: |state, text| {
            let packing = |item: &str| one_of(item, &Packing::NAMES);
            list(text, ',', packing).map(|list| state.packings = list)
        },
    },
    Opt {
        info: row("alpha", "1", "The parameter of SWISH, RELU and LINEAR"),
        set: |state, text| list(text, ',', number).map(|list| state.alphas = list),
    },
    Opt {
        info: row("limit", "none", "Upper limit of the gate and of the magnitude of up, or none"),
        set: |state, text| list(text, ',', limit).map(|list| state.limits = list),
    },
    Opt {
        info: row("shift", "0", "Added to up"),
        set: |state, text| list(text, ',', number).map(|list| state.shifts = list),
    },
    Opt {
        info: row("rewrite", "false", "Whether backward writes dst again: true, false"),
        set: |state, text| list(text, ',', boolean).map(|list| state.rewrites = list),
    },
    Opt {
        info: row(
            "inplace",
            "false",
            "Whether dst, or diff_src, shares the buffer of src: true, false",
        ),
        set: |state, text| list(text, ',', boolean).map(|list| state.inplace = list),
    },
];
